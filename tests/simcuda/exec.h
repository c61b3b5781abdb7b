/* SPDX-License-Identifier: MIT */
/*
 * The engine of the simulated device: PTX modules in, bytes in host memory out.
 *
 * exec.h is the border between the driver half of tests/simcuda (contexts, streams, scheduling,
 * which never looks into a kernel) and the engine half (exec*.c, which knows no CUDA API).
 * A launch runs to its end on the calling thread. Device addresses are host addresses: global
 * memory is dereferenced directly after a check against the launch's range table.
 */
#ifndef SIM_EXEC_H
#define SIM_EXEC_H

#include <stddef.h>
#include <stdint.h>

struct sim_module;
struct sim_kernel;

/*
 * Load PTX text. Module-level .global/.const variables are placed with `alloc` (so that the driver
 * owns their ranges and can check them); addresses are final after the load. On failure returns NULL
 * and err names the line and the reason ("line 12: unknown instruction lop9.b32").
 */
typedef void *(*sim_alloc_fn)(void *opaque, size_t size, size_t align);
struct sim_module *sim_module_load(const char *ptx, size_t len, sim_alloc_fn alloc, void *opaque,
				   char *err, size_t errlen);
void sim_module_free(struct sim_module *m); /* does not free what `alloc` gave */
const struct sim_kernel *sim_module_kernel(const struct sim_module *m, const char *name);
const struct sim_kernel *sim_module_kernel_at(const struct sim_module *m,
					      unsigned i); /* NULL past the end */
int sim_module_global(const struct sim_module *m, const char *name, uint64_t *ret_addr,
		      size_t *ret_size);

const char *sim_kernel_name(const struct sim_kernel *k);
unsigned sim_kernel_nparams(const struct sim_kernel *k);
int sim_kernel_param(const struct sim_kernel *k, unsigned i, size_t *ret_offset, size_t *ret_size);
size_t sim_kernel_param_bytes(const struct sim_kernel *k);
size_t sim_kernel_shared_bytes(const struct sim_kernel *k); /* static */
size_t sim_kernel_local_bytes(const struct sim_kernel *k);
unsigned sim_kernel_nregs(
	const struct sim_kernel *k); /* 32-bit registers after allocation, for attributes */
unsigned
sim_kernel_max_threads(const struct sim_kernel *k); /* .maxntid/.reqntid product, 0: no limit */

/* Ranges a kernel may touch, sorted by base, disjoint. */
struct sim_range {
	uint64_t base, size;
	uint8_t *
		init; /* uninitialised-read check: one byte per byte, nonzero = written; NULL: not checked */
	int read_only; /* a write is a fault */
};

/*
 * What a texture or surface object shows to kernels. The memory of an array lies outside of all ranges,
 * so only an object leads to it; linear and pitched memory is checked against the ranges as well.
 */
enum sim_channel {
	SIM_CHAN_UINT,
	SIM_CHAN_SINT,
	SIM_CHAN_UNORM, /* only these two are spread over [0, 1] and [-1, 1] */
	SIM_CHAN_SNORM,
	SIM_CHAN_FLOAT,
};
struct sim_texel {
	uint8_t channel; /* enum sim_channel */
	uint8_t channels, bits;
	uint8_t bytes; /* of a texel */
};
enum sim_address { SIM_ADDR_WRAP, SIM_ADDR_CLAMP, SIM_ADDR_MIRROR, SIM_ADDR_BORDER };

#define SIM_VIEW_LEVELS 18
struct sim_view {
	uint64_t handle;
	uint8_t is_surface;
	uint8_t dims;	   /* 1, 2 or 3, layers not counted */
	uint8_t layered;   /* depth counts layers */
	uint8_t is_cube;   /* a texture of six faces or more: not for the other geometries */
	uint8_t is_memory; /* linear or pitched memory of the ranges */
	uint8_t is_linear; /* linear: integer coordinates only, zero outside */
	uint8_t normalised, filter;
	uint8_t address[3]; /* enum sim_address */
	struct sim_texel texel;
	float border[4];
	float bias, min_level, max_level;
	uint8_t nlevels; /* 0: the array has been destroyed */
	struct {
		uint8_t *data;
		size_t pitch, slice;
		uint32_t width, height, depth; /* texels; 1 where there is no such dimension */
	} level[SIM_VIEW_LEVELS];
};

struct sim_launch {
	const struct sim_kernel *kernel;
	uint32_t grid[3], block[3];
	uint32_t shared_dynamic;
	const void *params; /* sim_kernel_param_bytes bytes */
	const struct sim_range *ranges;
	size_t nranges;
	const struct sim_view *views; /* sorted by handle */
	size_t nviews;
	/* Optional observers, for tests of the write-set analyser: every global access by
	 * address (arrays have none). */
	void (*on_access)(void *opaque, uint64_t addr, unsigned bytes, int is_write);
	void *opaque;
	/* cudaGraphSetConditional of the kernel; nonzero: no such handle, the kernel traps. */
	int (*set_conditional)(void *opaque, uint64_t handle, uint32_t value);
	void *conditional_opaque;
	uint64_t max_insns; /* watchdog: thread-instructions; 0: none */
};

enum sim_fault_kind {
	SIM_OK,
	SIM_FAULT_OUT_OF_BOUNDS,
	SIM_FAULT_MISALIGNED,
	SIM_FAULT_UNINITIALISED,
	SIM_FAULT_TRAP,
	SIM_FAULT_DEADLOCK, /* threads of a CTA wait at different barriers for ever */
	SIM_FAULT_TIMEOUT,
	SIM_FAULT_NOMEM,
};

struct sim_fault {
	enum sim_fault_kind kind;
	uint32_t line; /* of the PTX */
	uint64_t addr;
	uint32_t bytes;
	uint8_t is_write;
	uint32_t ctaid[3], tid[3];
	char text[200]; /* ready to print: kernel, line, instruction, address, thread */
};

struct sim_counts {
	uint64_t thread_insns;		  /* executed by active lanes */
	uint64_t load_bytes, store_bytes; /* global */
	uint64_t sleep_ns;		  /* longest that any warp has spent in nanosleep */
};

/* Run the grid. Returns SIM_OK or the first fault's kind; counts are valid in both cases. */
enum sim_fault_kind sim_exec(const struct sim_launch *launch, struct sim_fault *ret_fault,
			     struct sim_counts *ret_counts);

#endif
