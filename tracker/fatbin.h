/* SPDX-License-Identifier: MIT */
/*
 * NVIDIA fat binaries: finding the PTX inside an image handed to cuModuleLoadData or
 * cuLibraryLoadData.
 *
 * An image is PTX text, a fatbin, a fatbin wrapper or an ELF cubin; its length is not passed to the
 * driver, so it is taken from the image's own headers. Layout: fatbinary_section.h of the toolkit and
 * observation (the entry header's fields). Decompression is the caller's: tracker links libc only.
 * No global state; nothing is allocated.
 */
#ifndef RS_TRACKER_FATBIN_H
#define RS_TRACKER_FATBIN_H

#include <stddef.h>
#include <stdint.h>

enum rs_image_kind { RS_IMAGE_UNKNOWN, RS_IMAGE_PTX, RS_IMAGE_FATBIN, RS_IMAGE_CUBIN };
enum rs_fatbin_codec { RS_FATBIN_RAW, RS_FATBIN_LZ4, RS_FATBIN_ZSTD, RS_FATBIN_CODEC_UNKNOWN };

struct rs_fatbin_entry {
	uint16_t kind; /* 1 PTX, 2 ELF, 8 LTO IR */
	uint32_t sm;
	enum rs_fatbin_codec codec;
	const uint8_t *data;
	uint64_t size;	   /* stored bytes */
	uint64_t raw_size; /* bytes after decompression */
};

/* What the image is; for a wrapper or fatbin *ret_fatbin points at the (first) fatbin header. */
enum rs_image_kind rs_image_identify(const void *image, const uint8_t **ret_fatbin);

/* Walk entries: *cursor starts at 0. Returns 1 with *ret filled, 0 at the end, -EINVAL on a bad header. */
int rs_fatbin_next(const uint8_t *fatbin, uint64_t *cursor, struct rs_fatbin_entry *ret);

#endif
