/* SPDX-License-Identifier: MIT */
/*
 * What a kernel can do to the memory behind its pointer parameters, proved from its PTX.
 *
 * The analysis is sound, not complete: a parameter is "not stored through" only if no store, atomic,
 * reduction, call or unknown instruction can reach an address derived from it. What cannot be
 * followed (addresses loaded from memory, joined bases, opaque calls) makes the kernel `opaque`, which
 * means: it may read and write whatever any of its arguments reaches.
 *
 * Runs once per module image, off the launch path; rs_ptx_access_eval runs at each launch.
 * No global state, no locks, no exit; memory by malloc.
 */
#ifndef RS_TRACKER_PTX_ACCESS_H
#define RS_TRACKER_PTX_ACCESS_H

#include "tracker/ptx.h"

enum rs_ptx_dir {
	RS_PTX_READS = 1,  /* may load through this pointer */
	RS_PTX_WRITES = 2, /* may store, reduce or do an atomic through it */
};

/* A pointer-sized word of the parameter block. */
struct rs_ptx_word {
	uint32_t offset; /* bytes into the parameter block */
	uint8_t dir;	 /* RS_PTX_READS | RS_PTX_WRITES; 0: never dereferenced */
};

struct rs_ptx_bounds; /* affine byte bounds per word and direction, opaque to callers */

struct rs_ptx_kernel {
	const char *name;
	uint64_t param_bytes;
	uint8_t opaque; /* may also read and write things that no word describes; see `why` */
	uint8_t writes_globals; /* may store to module-level .global variables */
	uint8_t reads_globals;
	const char *why; /* static or arena text: first reason for opaque, NULL if it is not */
	uint32_t why_line;
	struct rs_ptx_word
		*words; /* every 8-byte word that is dereferenced or passed on, by offset */
	uint32_t nwords;
	struct rs_ptx_bounds *bounds;
};

struct rs_ptx_module {
	struct rs_ptx_kernel *kernels;
	uint32_t nkernels;
	void *arena;
};

int rs_ptx_analyse(const struct rs_ptx *ptx, struct rs_ptx_module **ret_module);
void rs_ptx_module_free(struct rs_ptx_module *module);
const struct rs_ptx_kernel *rs_ptx_module_find(const struct rs_ptx_module *m, const char *name);

/* One launch of the kernel. */
struct rs_ptx_launch {
	uint32_t grid[3], block[3];
	const uint8_t *params; /* param_bytes bytes */
	uint64_t nparams_bytes;
};

/* Byte range relative to the pointer value in the word; valid only where `known`. */
struct rs_ptx_extent {
	uint8_t known;	/* 0: no bound could be derived, assume all of the allocation */
	uint8_t dense;	/* writes only: every byte of [lo, hi) is certainly written */
	int64_t lo, hi; /* half open; lo == hi: nothing */
};

/*
 * Bounds of the reads (dir = RS_PTX_READS) or writes of one word for one launch. Constant time in
 * the launch's size; no allocation.
 */
void rs_ptx_access_eval(const struct rs_ptx_kernel *k, uint32_t word, enum rs_ptx_dir dir,
			const struct rs_ptx_launch *launch, struct rs_ptx_extent *ret_extent);

/*
 * Are all bounds the same for two launches of the same grid and blocks whose parameters are these, `n` bytes each? They do
 * not depend on pointers that are only added to. 0: they have to be evaluated.
 */
int rs_ptx_access_same(const struct rs_ptx_kernel *k, const uint8_t *a, const uint8_t *b,
		       uint64_t n);

#endif
