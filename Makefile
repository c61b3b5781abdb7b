# SPDX-License-Identifier: MIT
# replayshim: build, test, demonstrate. `make help` lists the targets. Everything goes under O (build/).
#
#   V=1            show commands            ASAN=1 UBSAN=1 TSAN=1 COV=1   instrumented builds, each in its own O
#   CUDA_HOME=DIR  toolkit with cuda.h      O=DIR                         another build directory
#   PREFIX=DIR DESTDIR=DIR  for install     FUZZ_SECONDS=N                for each fuzz target
#   DEPS=no        never look for, nor install, packages

VERSION := 0.1.0
SAN_NAMES := $(if $(ASAN),asan) $(if $(UBSAN),ubsan) $(if $(TSAN),tsan) $(if $(COV),cov)
empty :=
comma := ,
O ?= build$(if $(strip $(SAN_NAMES)),/$(subst $(empty) $(empty),-,$(strip $(SAN_NAMES))))
Q := $(if $(V),,@)
msg = $(if $(V),,@printf '  %-8s %s\n' '$(1)' '$(2)')

ifeq ($(origin CC),default)
CC := gcc
endif
OPT ?= -O2
CFLAGS ?= $(OPT) -g
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Werror
SAN := $(if $(ASAN),-fsanitize=address) $(if $(UBSAN),-fsanitize=undefined -fno-sanitize-recover=undefined) \
	$(if $(TSAN),-fsanitize=thread) $(if $(COV),--coverage)
SAN := $(strip $(SAN))
BASE := -std=gnu11 -D_GNU_SOURCE -DRS_VERSION='"$(VERSION)"' -fno-strict-aliasing -ffp-contract=off \
	-fvisibility=hidden -fPIC -I. -MMD -MP $(WARN) $(SAN)

# What is not a Debian package: one copy for all builds.
DEPDIR := build
VENV := $(DEPDIR)/venv

# CUDA headers: a toolkit on the machine, else NVIDIA's header wheels (scripts/deps puts them into DEPDIR).
CUDA_HOME ?= $(patsubst %/include/cuda.h,%,$(wildcard /usr/local/cuda/include/cuda.h))
CUDA_INC := $(if $(CUDA_HOME),-isystem $(CUDA_HOME)/include) -isystem $(DEPDIR)/cuda/include
NVCC := $(if $(CUDA_HOME),$(wildcard $(CUDA_HOME)/bin/nvcc))
export CUDA_HOME CC

# An undefined symbol shows at link time, not in the user's process; a sanitizer's are defined by the program.
DEFS := $(if $(SAN),,-Wl$(comma)-z$(comma)defs)

objs = $(patsubst %.c,$(O)/obj/%.o,$(1))

TRACKER_SRC := $(wildcard tracker/*.c)
SHIM_SRC := $(wildcard shim/*.c) $(wildcard cupti/*.c)
PLANNER_SRC := $(wildcard planner/*.c)
CTL_SRC := $(filter planner/replayctl.c planner/cmd_%.c,$(PLANNER_SRC))
SIM_SRC := $(wildcard tests/simcuda/*.c)
SIMRAND_SRC := $(wildcard tests/simcurand/*.c)
SIMCUPTI_SRC := $(wildcard tests/simcupti/*.c)
UNIT_SRC := $(wildcard tests/unit/*.c)
SIMTEST_SRC := $(wildcard tests/simunit/*.c)
CLIENT_SRC := $(wildcard tests/clients/*.c)
BENCH_SRC := $(wildcard tests/bench/*.c)
FUZZ_SRC := $(wildcard tests/fuzz/*.c)

SHIM := $(O)/libreplayshim.so
CTL := $(O)/replayctl
SIM := $(O)/simcuda/libcuda.so.1
SIMRAND := $(O)/simcurand/libcurand.so.10
SIMCUPTI := $(O)/simcupti/libcupti.so.12 $(O)/simcupti/libcupti.so.13
UNITS := $(patsubst tests/unit/%.c,$(O)/tests/%.t,$(UNIT_SRC))
SIMTESTS := $(patsubst tests/simunit/%.c,$(O)/tests/%.t,$(SIMTEST_SRC))
CLIENTS := $(patsubst tests/clients/%.c,$(O)/clients/%,$(CLIENT_SRC))
BENCHES := $(patsubst tests/bench/%.c,$(O)/bench/%,$(BENCH_SRC))
FUZZERS := $(patsubst tests/fuzz/%.c,$(O)/fuzz/%,$(FUZZ_SRC))
TESTS := $(UNITS) $(SIMTESTS) $(filter $(O)/clients/t_%,$(CLIENTS)) $(wildcard tests/t/*.t)

# The Python hook goes beside the library, which looks for it there.
PYHOOK := $(patsubst shim/python/%,$(O)/python/%,$(wildcard shim/python/*.py shim/python/*/*.py))

.PHONY: all
all: $(SHIM) $(PYHOOK) $(CTL) $(SIM) $(SIMRAND) $(SIMCUPTI) $(UNITS) $(SIMTESTS) $(CLIENTS) $(BENCHES) ## build everything (default)

# Set-up. `make check`, `make demo` and the like install what is missing; any other goal only says what it is. The
# stamp of a check is not one of an installation, but both say the same: all is there.
DEPS := $(if $(filter check demo bench bench-sparse lint fuzz deps,$(MAKECMDGOALS)),yes,check)
deps = $(if $(filter no,$(DEPS)),:,scripts/deps $(if $(filter check,$(DEPS)),--check) --into $(DEPDIR) $(1))

# A source may have begun to include a library, so the look (some 50 ms) follows every change.
SOURCES := $(wildcard tracker/*.[ch] shim/*.[ch] planner/*.[ch] cupti/*.[ch] tests/*/*.[ch])

$(O)/.deps-build: scripts/deps scripts/headers.txt $(SOURCES)
	@mkdir -p $(@D)
	$(Q)$(call deps,build)
	@touch $@

$(O)/.deps-%: scripts/deps scripts/requirements.txt
	@mkdir -p $(@D)
	$(Q)$(call deps,$*)
	@touch $@

.PHONY: deps
deps: $(O)/.deps-build $(O)/.deps-test $(O)/.deps-python ## install what build, check and demo need

# The interpreter lives from vectorised lane loops; the rest has no use for -O3.
$(O)/obj/tests/simcuda/exec%.o: OPT := -O3 -mavx2 -mfma -mf16c
# A call's few nanoseconds must not be a matter of what stands before its functions and loops.
$(addprefix $(O)/obj/,tracker/calm.o shim/memo.o shim/wrap_launch.o shim/wrap_copy.o): OPT += -falign-functions=64 -falign-loops=32

$(O)/obj/%.o: %.c | $(O)/.deps-build
	$(call msg,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(BASE) $(CFLAGS) $(CUDA_INC) -c $< -o $@

$(O)/libtracker.a: $(call objs,$(TRACKER_SRC))
	$(call msg,AR,$@)
	$(Q)rm -f $@; ar rcs $@ $^

$(O)/libsim.a: $(call objs,$(SIM_SRC))
	$(call msg,AR,$@)
	$(Q)rm -f $@; ar rcs $@ $^

# The library's lists of functions, for replayctl, which sees no CUDA header.
$(O)/gen/planner/entry_rows.inc: scripts/make-entries shim/entry_points.def shim/passive.def
	$(call msg,GEN,$@)
	@mkdir -p $(@D)
	$(Q)$^ >$@.new && mv $@.new $@

$(O)/obj/planner/cmd_entrypoints.o: $(O)/gen/planner/entry_rows.inc
$(O)/obj/planner/cmd_entrypoints.o: BASE += -I$(O)/gen

# Our kernels' PTX is part of the library.
$(O)/obj/shim/devkernels.o $(O)/obj/tests/clients/t_devops.o: $(wildcard shim/kernels/*.ptx)

# One launch is one thread's, and under a thread sanitizer the interpreter would take six times as long.
ifneq ($(TSAN),)
$(O)/obj/tests/simcuda/exec%.o: BASE := $(filter-out $(SAN),$(BASE))
endif

# The dlsym door is called while a sanitizer starts, before instrumented code can run; the other two read what belongs
# to others.
$(O)/obj/shim/doors.o $(O)/obj/shim/bypass.o $(O)/obj/shim/object.o: BASE := $(filter-out $(SAN),$(BASE))

$(SHIM): $(call objs,$(SHIM_SRC)) $(O)/libtracker.a $(wildcard shim/*.map) | $(PYHOOK)
	$(call msg,LINK,$@)
	$(Q)$(CC) -shared $(CFLAGS) $(SAN) -Wl,-soname,libreplayshim.so -Wl,-z,relro,-z,now $(DEFS) \
		$(patsubst %,-Wl$(comma)--version-script=%,$(wildcard shim/*.map)) -o $@ \
		$(call objs,$(SHIM_SRC)) $(O)/libtracker.a -ldl -lpthread

$(O)/libplanner.a: $(call objs,$(filter-out $(CTL_SRC),$(PLANNER_SRC)))
	$(call msg,AR,$@)
	$(Q)rm -f $@; ar rcs $@ $^

$(CTL): $(call objs,$(CTL_SRC)) $(O)/libplanner.a $(O)/libtracker.a
	$(call msg,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(SAN) -o $@ $^ -ljansson -lm

$(SIM): $(call objs,$(SIM_SRC)) $(O)/libtracker.a $(wildcard tests/simcuda/*.map)
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -shared $(CFLAGS) $(SAN) -Wl,-soname,libcuda.so.1 -Wl,-z,now -Wl,-Bsymbolic -Wl,--gc-sections $(DEFS) \
		$(patsubst %,-Wl$(comma)--version-script=%,$(wildcard tests/simcuda/*.map)) -o $@ \
		$(call objs,$(SIM_SRC)) $(O)/libtracker.a -lm -lpthread -lzstd -llz4
	$(Q)ln -sf libcuda.so.1 $(@D)/libcuda.so

# On the Driver API like any other client of the device.
$(SIMRAND): $(call objs,$(SIMRAND_SRC)) $(SIM) $(wildcard tests/simcurand/*.map)
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -shared $(CFLAGS) $(SAN) -Wl,-soname,libcurand.so.10 -Wl,-z,now $(DEFS) \
		$(patsubst %,-Wl$(comma)--version-script=%,$(wildcard tests/simcurand/*.map)) -o $@ \
		$(call objs,$(SIMRAND_SRC)) -L$(O)/simcuda -lcuda -lm

# Two versions of one source; it watches the device through a hook of its own.
$(SIMCUPTI): $(O)/simcupti/libcupti.so.%: $(SIMCUPTI_SRC) $(wildcard tests/simcupti/*.h) tests/simcuda/simcuda.h $(SIM)
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -shared $(filter-out -MMD -MP,$(BASE)) $(CFLAGS) -DSIMCUPTI_MAJOR=$* -Wl,-soname,$(@F) -Wl,-z,now $(DEFS) \
		-o $@ $(SIMCUPTI_SRC) -L$(O)/simcuda -lcuda -lpthread

# tests/unit: tracker and planner, no device. tests/simunit: the simulated device's insides, linked statically.
$(UNITS): $(O)/tests/%.t: $(O)/obj/tests/unit/%.o $(O)/libplanner.a $(O)/libtracker.a
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SAN) -o $@ $^ -Wl,--as-needed -ljansson -lm -lpthread

$(SIMTESTS): $(O)/tests/%.t: $(O)/obj/tests/simunit/%.o $(O)/libsim.a $(O)/libtracker.a
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SAN) -o $@ $^ -lm -lpthread -lzstd -llz4

$(PYHOOK): $(O)/python/%: shim/python/%
	@mkdir -p $(@D)
	$(Q)cp $< $@

# Programs on the Driver API, linked as any user would: with -lcuda and nothing of ours.
$(CLIENTS): $(O)/clients/%: $(O)/obj/tests/clients/%.o $(SIM)
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SAN) -o $@ $< -L$(O)/simcuda -lcuda -lm -ldl -lpthread

$(BENCHES): $(O)/bench/%: $(O)/obj/tests/bench/%.o $(O)/libsim.a $(O)/libplanner.a $(O)/libtracker.a
	$(call msg,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SAN) -o $@ $^ -Wl,--as-needed -ljansson -lm -ldl -lpthread -lzstd -llz4

# Fuzz targets: the code under test is compiled with them, for the coverage to guide the fuzzer. cmd_*.c holds the
# commands, main included, and is left out.
FUZZ_CC := clang
FUZZ_SECONDS ?= 30
FUZZ_FLAGS := -std=gnu11 -D_GNU_SOURCE -DRS_VERSION='"$(VERSION)"' -fno-strict-aliasing -I. -O1 -g -MMD -MP \
	-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
FUZZ_LIB := $(TRACKER_SRC) $(filter-out $(CTL_SRC),$(PLANNER_SRC))

$(O)/fuzz/obj/%.o: %.c | $(O)/.deps-build $(O)/.deps-fuzz
	$(call msg,FUZZ CC,$<)
	@mkdir -p $(@D)
	$(Q)$(FUZZ_CC) $(FUZZ_FLAGS) -c $< -o $@

$(O)/fuzz/libfuzzed.a: $(patsubst %.c,$(O)/fuzz/obj/%.o,$(FUZZ_LIB))
	$(call msg,AR,$@)
	$(Q)rm -f $@; ar rcs $@ $^

$(FUZZERS): $(O)/fuzz/%: $(O)/fuzz/obj/tests/fuzz/%.o $(O)/fuzz/libfuzzed.a
	$(call msg,LINK,$@)
	$(Q)$(FUZZ_CC) -fsanitize=fuzzer,address,undefined -o $@ $^ -ljansson -lm

.PHONY: check
check: all $(O)/.deps-test $(O)/.deps-python ## run all tests (installs what is missing)
	$(Q)RS_BUILD=$(abspath $(O)) RS_PYTHON=$(abspath $(VENV))/bin/python RS_SAN="$(strip $(SAN_NAMES))" \
		tests/check $(TESTS)

.PHONY: demo
demo: all $(O)/.deps-python ## train a real network on the simulated device: unprotected, audited, preserved
	$(Q)RS_BUILD=$(abspath $(O)) $(VENV)/bin/python scripts/demo/run.py

.PHONY: bench
bench: all ## measure, in this order, build/bench/* and tests/bench/*.sh
	$(Q)set -e; for b in $(BENCHES) $(wildcard tests/bench/*.sh); do \
		echo "== $$b"; RS_BUILD=$(abspath $(O)) LD_LIBRARY_PATH=$(abspath $(O))/simcuda $$b; done

.PHONY: bench-sparse
bench-sparse: all ## the sparse-write experiment: plans, runs and ratios on the simulated device (SPARSE='--pairs N')
	$(Q)RS_BUILD=$(abspath $(O)) tests/bench/sparse.py $(SPARSE)

.PHONY: mutate
mutate: ## break the engine in one place after the other: its tests must notice each
	$(Q)tests/mutate.py

.PHONY: mutate-shim
mutate-shim: ## break the preloaded library in one place after the other: scripts must notice each
	$(Q)tests/mutate_shim.py

.PHONY: soak
soak: $(O)/tests/test_engine_soak.t ## ten million calls on the engine, next to a model (RS_SOAK=N)
	$(Q)RS_SOAK=$(or $(RS_SOAK),10000000) $<

.PHONY: seeds
seeds: all ## hazard and client suites under SEEDS (1000) schedules each
	$(Q)RS_BUILD=$(abspath $(O)) tests/seeds

.PHONY: fuzz
fuzz: $(FUZZERS) ## run every fuzz target for FUZZ_SECONDS, starting from tests/fuzz/corpus
	$(Q)set -e; for f in $(FUZZERS); do n=$$(basename $$f); mkdir -p $(O)/fuzz/corpus/$$n; \
		echo "== $$n"; $$f -max_total_time=$(FUZZ_SECONDS) -timeout=10 \
		-print_final_stats=1 -verbosity=1 -artifact_prefix=$(O)/fuzz/ $(O)/fuzz/corpus/$$n \
		$$(ls -d tests/fuzz/corpus/$$n 2>/dev/null); done

.PHONY: lint
lint: $(O)/.deps-lint ## formatting, static analysis, layer directions, file rules
	$(Q)scripts/lint

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
MANS := $(wildcard scripts/man/*.1)

.PHONY: install
install: $(SHIM) $(PYHOOK) $(CTL) ## install library, replayctl, header, manual page, rules (PREFIX, DESTDIR)
	$(call msg,INSTALL,$(DESTDIR)$(PREFIX))
	$(Q)install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(LIBDIR) $(DESTDIR)$(PREFIX)/include \
		$(DESTDIR)$(PREFIX)/share/man/man1
	$(Q)install -m 755 $(CTL) $(DESTDIR)$(PREFIX)/bin/
	$(Q)install -m 755 $(SHIM) $(DESTDIR)$(LIBDIR)/
	$(Q)set -e; for h in $(wildcard shim/include/*.h); do \
		install -m 644 $$h $(DESTDIR)$(PREFIX)/include/; done
	$(Q)set -e; for m in $(MANS); do \
		install -m 644 $$m $(DESTDIR)$(PREFIX)/share/man/man1/; done
	$(Q)set -e; for r in $(wildcard scripts/markers/*.markers); do \
		install -D -m 644 $$r $(DESTDIR)$(PREFIX)/share/replayshim/markers/$${r##*/}; done
	$(Q)set -e; for f in $(PYHOOK); do \
		install -D -m 644 $$f $(DESTDIR)$(LIBDIR)/replayshim/python/$${f#$(O)/python/}; done

.PHONY: clean
clean: ## remove what was built in O, but not the downloads in build/venv and build/cuda
	$(Q)find $(O) -mindepth 1 -maxdepth 1 ! -name venv ! -name cuda -exec rm -rf {} + 2>/dev/null || true

.PHONY: help
help: ## this text
	@sed -n '2,7s/^# \{0,1\}//p' Makefile
	@echo
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 12

.PRECIOUS: $(O)/.deps-%

-include $(shell find $(O)/obj $(O)/fuzz/obj -name '*.d' 2>/dev/null)
