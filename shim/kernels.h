/* SPDX-License-Identifier: MIT */
/*
 * Kernel handles (CUfunction, CUkernel): which code they are, looked up at each launch, lock-free and in
 * constant time.
 *
 * What is remembered about a handle goes when its module or library is unloaded; the code behind it
 * (image.h) stays.
 * Locks: one mutex, for loading and unloading; the driver and the engine are called without it.
 */
#ifndef RS_SHIM_KERNELS_H
#define RS_SHIM_KERNELS_H

#include "shim/image.h"

struct rs_global {
	uint64_t addr, bytes;
};

struct rs_kernel {
	struct rs_code *code;
	const void *handle;
	const void *owner; /* the CUmodule or CUlibrary */
	uint8_t is_kernel; /* a CUkernel */
	struct rs_kernel *next;
};

/* NULL: a handle that no hook has seen. */
const struct rs_kernel *rs_kernels_find(const void *handle);

/* After the driver's success. From memory, else from a file. */
void rs_kernels_loaded(const void *owner, int is_library, const void *image, const char *path);
/* Before the driver unloads, and after, with what it said: what it refused is known again. */
struct rs_loaded *rs_kernels_leave(struct rs_tls *t, const void *owner);
void rs_kernels_left(struct rs_loaded *list, CUresult r);
/* A context goes; a new one may get its handle. The engine has dropped its memory. */
void rs_kernels_ctx_destroy(uint64_t ctx);
/* A library's code as a module of one context. */
void rs_kernels_module_of(const void *library, const void *module);
/* The driver has given out a function of owner. */
void rs_kernels_function(const void *owner, const void *handle, const char *name, int is_kernel);
/* A kernel's function: the same code under another handle. */
void rs_kernels_function_of(const void *kernel, const void *function);

/* A variable of owner has an address: from now on it is tracked memory. */
void rs_kernels_global(struct rs_tls *t, const void *owner, uint64_t addr, uint64_t bytes);
/*
 * The global variables of a kernel's module in this context, all of them tracked. 1 when there may be others, that
 * nobody has a name for or that the driver does not find by name.
 */
int rs_kernels_globals(struct rs_tls *t, const struct rs_kernel *k, const struct rs_global **ret,
		       unsigned *ret_n);

/* devops.c */
extern const struct rs_devops rs_devops_ops;
/* Our module in that context goes with it. */
void rs_devops_ctx_destroy(uint64_t ctx);
/* From here on, until it is told of another one (0: none), nothing is done in that context. */
void rs_devops_ctx_leaves(uint64_t ctx);

#endif
