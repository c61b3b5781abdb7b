/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: what an image is, and the walk over a fat binary's entries. An image comes without its length, so
 * the input is cut to what it claims: a fat binary that claims more than there is, is none that a driver was given.
 * Then no entry may lie outside of it, and the walk must end.
 * Seeds: tests/fuzz/corpus/fuzz_fatbin. No state between inputs, no locks.
 */
#include "tracker/fatbin.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int good)
{
	if (!good)
		abort();
}

/* A wrapper holds pointers, which no input can have. */
static int is_wrapper(const uint8_t *data, size_t size)
{
	static const uint32_t magic = 0x466243b1;

	return size >= sizeof(magic) && !memcmp(data, &magic, sizeof(magic));
}

static int claims_more(const uint8_t *data, size_t size)
{
	uint16_t header;
	uint64_t rest;

	if (size < 16)
		return 1;
	memcpy(&header, data + 6, sizeof(header));
	memcpy(&rest, data + 8, sizeof(rest));
	return header > size || rest > size - header;
}

static void walk(const uint8_t *fatbin, size_t size)
{
	struct rs_fatbin_entry e;
	uint64_t cursor = 0, last = 0;

	while (rs_fatbin_next(fatbin, &cursor, &e) == 1) {
		require(cursor > last);
		last = cursor;
		require(e.data >= fatbin && e.data <= fatbin + size &&
			e.size <= (uint64_t)(fatbin + size - e.data));
		require(e.codec <= RS_FATBIN_CODEC_UNKNOWN);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *fatbin = NULL;
	uint8_t *image;

	if (is_wrapper(data, size))
		return 0;
	image = malloc(size + 2); /* of just that size, not aligned; a NUL ends text */
	if (!image)
		return 0;
	memcpy(image + 1, data, size);
	image[size + 1] = 0;
	if (rs_image_identify(image + 1, &fatbin) == RS_IMAGE_FATBIN) {
		require(fatbin == image + 1);
		if (!claims_more(fatbin, size))
			walk(fatbin, size);
	} else {
		require(!fatbin);
	}
	free(image);
	return 0;
}
