/* SPDX-License-Identifier: MIT */
/*
 * Between image.c (which images there are, which of its entries the device runs) and image_learn.c (what is in one).
 */
#ifndef RS_SHIM_IMAGE_PRIV_H
#define RS_SHIM_IMAGE_PRIV_H

#include "shim/image.h"

/* Where to learn about an image: PTX; if that is not there or not understood, machine code. */
struct rs_image_source {
	const char *text;
	size_t len;
	const uint8_t *fatbin;
	uint32_t
		machine; /* the architecture of the fatbin's machine code that runs; 0: not known */
	const void *cubin;
};

void rs_image_learn(struct rs_image *image, const struct rs_image_source *s);

uint64_t rs_image_hash(uint64_t h, const void *data, uint64_t bytes);
/* A kernel that image_learn.c has not met, or NULL without memory. image may be NULL. */
struct rs_code *rs_image_new_code(const struct rs_image *image, const char *name);
struct rs_code *rs_image_find(struct rs_code *list, const char *name);

#endif
