/* SPDX-License-Identifier: MIT */
/*
 * Code images by content: the PTX inside, what it proves about each kernel, where parameters are.
 *
 * Where the device runs machine code that came without its PTX (NVIDIA's libraries), the code's own tables
 * (tracker/cubin.h) tell where parameters are and which variables a kernel can reach besides its arguments.
 *
 * An image is analysed once; its kernels' names and analyses live as long as the process.
 * Locks: one mutex around the list of images and each image's list of kernels; never held while
 * parsing or calling the driver.
 */
#ifndef RS_SHIM_IMAGE_H
#define RS_SHIM_IMAGE_H

#include "shim/shim.h"
#include "tracker/ptx_access.h"

struct rs_code_param {
	uint32_t offset, size;
};

/* A kernel of an image. */
struct rs_code {
	const char *name;
	uint64_t hash;			 /* of the name and the image's content */
	const struct rs_ptx_kernel *ptx; /* NULL: nothing could be proved */
	uint8_t opaque;			 /* no PTX: it may write anything */
	uint8_t globals;		 /* no PTX: the image has variables, or may have some */
	uint8_t params_found;		 /* in the image: they count if the driver does not tell */
	uint8_t layout;			 /* enum rs_layout; then the fields below are constant */
	uint8_t words;			 /* there are parameters, 8 bytes each, without padding */
	uint32_t nparams, param_bytes;
	struct rs_code_param *params;
	struct rs_code *next;
};

enum rs_layout { RS_LAYOUT_ASK, RS_LAYOUT_KNOWN, RS_LAYOUT_NONE };

struct rs_image {
	uint64_t hash;
	struct rs_ptx_module *ptx; /* NULL: none, or not what the device runs */
	uint8_t hidden;		   /* there may be variables whose names are not known */
	uint8_t calls_out;	   /* machine code that calls a function of the driver */
	char **globals;
	unsigned nglobals;
	struct rs_code *codes;
	struct rs_image *next;
};

/* The image in memory, or in the file; NULL when it cannot be identified or without memory. */
struct rs_image *rs_image_of_memory(const void *image);
struct rs_image *rs_image_of_file(const char *path);
/* The kernel of that name; image may be NULL. NULL only without memory. */
struct rs_code *rs_image_code(struct rs_image *image, const char *name);
/* Ask the driver where the parameters are, once. handle: CUfunction, or CUkernel if is_kernel. */
void rs_image_layout(struct rs_code *code, const void *handle, int is_kernel);

/* unpack.c: the entry's content, `raw_size` bytes from malloc with a NUL behind them; NULL if it cannot be had. */
struct rs_fatbin_entry;
char *rs_unpack(const struct rs_fatbin_entry *entry);

#endif
