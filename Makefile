# SPDX-License-Identifier: MIT
# replayshim: build, test, demonstrate. `make help` lists the targets. Everything goes under O (build/).
#
#   V=1            show commands            ASAN=1 UBSAN=1 TSAN=1 COV=1   instrumented builds
#   CUDA_HOME=DIR  toolkit with cuda.h      O=DIR                         another build directory

VERSION := 0.1.0
O ?= build
Q := $(if $(V),,@)
msg = $(if $(V),,@printf '  %-8s %s\n' $(1) $(2))

CC ?= gcc
OPT ?= -O2
CFLAGS ?= $(OPT) -g
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Werror
SAN := $(if $(ASAN),-fsanitize=address) $(if $(UBSAN),-fsanitize=undefined -fno-sanitize-recover=undefined) \
	$(if $(TSAN),-fsanitize=thread) $(if $(COV),--coverage)
SAN := $(strip $(SAN))
BASE := -std=gnu11 -D_GNU_SOURCE -DRS_VERSION='"$(VERSION)"' -fno-strict-aliasing -ffp-contract=off \
	-fvisibility=hidden -fPIC -I. -MMD -MP $(WARN) $(SAN)

# CUDA headers: a toolkit on the machine, else NVIDIA's header wheels (scripts/deps puts them there).
CUDA_HOME ?= $(firstword $(wildcard /usr/local/cuda) $(abspath $(O)/cuda))
CUDA_INC := -isystem $(CUDA_HOME)/include
NVCC := $(wildcard $(CUDA_HOME)/bin/nvcc)

objs = $(patsubst %.c,$(O)/obj/%.o,$(1))

TRACKER_SRC := $(wildcard tracker/*.c)
SHIM_SRC := $(wildcard shim/*.c) $(wildcard cupti/*.c)
PLANNER_SRC := $(wildcard planner/*.c)
SIM_SRC := $(wildcard tests/simcuda/*.c)
UNIT_SRC := $(wildcard tests/unit/*.c)
SIMTEST_SRC := $(wildcard tests/simunit/*.c)
CLIENT_SRC := $(wildcard tests/clients/*.c)
BENCH_SRC := $(wildcard tests/bench/*.c)

SHIM := $(O)/libreplayshim.so
CTL := $(O)/replayctl
SIM := $(O)/simcuda/libcuda.so.1
UNITS := $(patsubst tests/unit/%.c,$(O)/tests/%.t,$(UNIT_SRC))
SIMTESTS := $(patsubst tests/simunit/%.c,$(O)/tests/%.t,$(SIMTEST_SRC))
CLIENTS := $(patsubst tests/clients/%.c,$(O)/clients/%,$(CLIENT_SRC))
BENCHES := $(patsubst tests/bench/%.c,$(O)/bench/%,$(BENCH_SRC))

.PHONY: all
all: $(SHIM) $(CTL) $(SIM) $(UNITS) $(SIMTESTS) $(CLIENTS) $(BENCHES)

# The interpreter lives from vectorised lane loops; the rest has no use for -O3.
$(O)/obj/tests/simcuda/exec%.o: OPT := -O3 -mavx2 -mfma -mf16c

$(O)/obj/%.o: %.c
	$(call msg,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(BASE) $(CFLAGS) $(CUDA_INC) -c $< -o $@

$(O)/libtracker.a: $(call objs,$(TRACKER_SRC))
	$(call msg,AR,$@)
	$(Q)rm -f $@; ar rcs $@ $^

$(O)/libsim.a: $(call objs,$(SIM_SRC))
	$(call msg,AR,$@)
	$(Q)rm -f $@; ar rcs $@ $^

$(SHIM): $(call objs,$(SHIM_SRC)) $(O)/libtracker.a $(wildcard shim/*.map)
	$(call msg,LINK,$@)
	$(Q)$(CC) -shared $(CFLAGS) $(SAN) -Wl,-soname,libreplayshim.so -Wl,-z,relro,-z,now \
		$(patsubst %,-Wl$(comma)--version-script=%,$(wildcard shim/*.map)) -o $@ \
		$(call objs,$(SHIM_SRC)) $(O)/libtracker.a -ldl -lpthread
comma := ,

$(CTL): $(call objs,$(PLANNER_SRC)) $(O)/libtracker.a
	$(call msg,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(SAN) -o $@ $^ -ljansson -lm

$(SIM): $(call objs,$(SIM_SRC)) $(O)/libtracker.a $(wildcard tests/simcuda/*.map)
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -shared $(CFLAGS) $(SAN) -Wl,-soname,libcuda.so.1 -Wl,-z,now -Wl,--gc-sections \
		$(patsubst %,-Wl$(comma)--version-script=%,$(wildcard tests/simcuda/*.map)) -o $@ \
		$(call objs,$(SIM_SRC)) $(O)/libtracker.a -lm -lpthread -lzstd -llz4
	$(Q)ln -sf libcuda.so.1 $(@D)/libcuda.so

# tests/unit: the tracker alone. tests/simunit: the simulated device's insides, linked statically.
$(UNITS): $(O)/tests/%.t: $(O)/obj/tests/unit/%.o $(O)/libtracker.a
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SAN) -o $@ $^ -lm -lpthread

$(SIMTESTS): $(O)/tests/%.t: $(O)/obj/tests/simunit/%.o $(O)/libsim.a $(O)/libtracker.a
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SAN) -o $@ $^ -lm -lpthread -lzstd -llz4

# Programs on the Driver API, linked as any user would: with -lcuda and nothing of ours.
$(CLIENTS): $(O)/clients/%: $(O)/obj/tests/clients/%.o $(SIM)
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SAN) -o $@ $< -L$(O)/simcuda -lcuda -lm -ldl -lpthread

$(BENCHES): $(O)/bench/%: $(O)/obj/tests/bench/%.o $(O)/libsim.a $(O)/libtracker.a
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SAN) -o $@ $^ -lm -ldl -lpthread -lzstd -llz4

.PHONY: clean
clean:
	$(Q)rm -rf $(O)

-include $(shell find $(O)/obj -name '*.d' 2>/dev/null)
