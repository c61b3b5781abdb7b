/* SPDX-License-Identifier: MIT */
/*
 * CUDA machine code (ELF64, EM_CUDA): what can be known about kernels that come without PTX. The
 * module's global variables, where each kernel's parameters are, and what the image itself says about
 * textures, surfaces and calls out of it.
 *
 * The format has no public description. What is read here was observed in what ptxas, nvlink and
 * NVIDIA's libraries contain; .nv.info is a list of records (format, attribute, value), as cuobjdump
 * names them. What an attribute says is used; that one is absent proves nothing (surface objects leave
 * no trace), but for the parameters, whose records must add up.
 *
 * Bounded: nothing outside of [image, image + size) is read, names are NUL-terminated inside of it.
 * Nothing is allocated, no state, any thread. The structs point into the image.
 */
#ifndef RS_TRACKER_CUBIN_H
#define RS_TRACKER_CUBIN_H

#include <stdint.h>

struct rs_cubin_bytes {
	const uint8_t *data;
	uint64_t n;
};

#define RS_CUBIN_DATA_SECTIONS 8

struct rs_cubin {
	struct rs_cubin_bytes image, names, symbols, strings;
	uint64_t sections; /* offset of their table */
	uint32_t nsections;
	uint32_t data[RS_CUBIN_DATA_SECTIONS]; /* sections that hold variables */
	uint32_t ndata;
	uint8_t relocatable; /* to be linked with others, whose variables are not here */
	uint8_t nameless;    /* has variables without a symbol */
	uint8_t calls_out;   /* calls a function of the driver that may write: malloc, a launch */
};

/* A variable that kernels can write. Its name may be one that the driver does not give out (static). */
struct rs_cubin_var {
	const char *name, *section;
	uint64_t offset, size; /* in the section */
};

struct rs_cubin_param {
	uint32_t offset, size;
};

struct rs_cubin_kernel {
	const char *name;
	uint32_t nparams, param_bytes; /* as far as rs_cubin_params() confirms them */
	uint8_t images;		       /* texture or surface references */
	uint8_t launches;	       /* starts kernels itself */
	struct rs_cubin_bytes info;
};

/* The bytes of an image whose length nobody knows, as its headers have it; 0: no ELF64 of CUDA. */
uint64_t rs_cubin_size(const void *image);

/* 0, -EINVAL (damaged), -ENOTSUP (ELF, but not CUDA's or not 64 bit). */
int rs_cubin_open(const void *image, uint64_t size, struct rs_cubin *ret);

/* *cursor starts at 0. 1 with *ret filled, 0 at the end. */
int rs_cubin_next_var(const struct rs_cubin *c, uint64_t *cursor, struct rs_cubin_var *ret);
/* Device functions come, too: nothing tells them from a kernel without parameters. */
int rs_cubin_next_kernel(const struct rs_cubin *c, uint64_t *cursor, struct rs_cubin_kernel *ret);

/* k->nparams entries, by ordinal. -ENODATA: the records do not add up, the layout is unknown. */
int rs_cubin_params(const struct rs_cubin_kernel *k, struct rs_cubin_param *ret_params);

#endif
