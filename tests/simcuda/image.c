/* SPDX-License-Identifier: MIT */
/*
 * The PTX text inside an image: text itself, a fat binary or its wrapper, raw, LZ4 or zstd.
 *
 * Of a fat binary's PTX entries the one for the highest architecture that this device has is taken.
 * Machine code cannot run here: an image without usable PTX is CUDA_ERROR_NO_BINARY_FOR_GPU.
 */
#include "tests/simcuda/sim.h"
#include "tracker/fatbin.h"

#include <lz4.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define MAX_TEXT (1ull << 30)

static CUresult decode(const struct rs_fatbin_entry *e, char **ret_text)
{
	uint64_t n = e->codec == RS_FATBIN_RAW ? e->size : e->raw_size;
	size_t got = n;
	char *text;

	if (n > MAX_TEXT || e->size > MAX_TEXT)
		return CUDA_ERROR_INVALID_IMAGE;
	text = malloc(n + 1);
	if (!text)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (e->codec == RS_FATBIN_RAW) {
		memcpy(text, e->data, n);
	} else if (e->codec == RS_FATBIN_LZ4) {
		int r = LZ4_decompress_safe((const char *)e->data, text, (int)e->size, (int)n);

		got = r < 0 ? n + 1 : (size_t)r;
	} else if (e->codec == RS_FATBIN_ZSTD) {
		got = ZSTD_decompress(text, n, e->data, e->size);
		if (ZSTD_isError(got))
			got = n + 1;
	} else {
		got = n + 1;
	}
	if (got > n) {
		free(text);
		sim_log("fatbin: the PTX entry for sm_%u cannot be decompressed", e->sm);
		return CUDA_ERROR_INVALID_IMAGE;
	}
	text[got] = 0;
	*ret_text = text;
	return CUDA_SUCCESS;
}

CUresult sim_image_text(const void *image, char **ret_text)
{
	struct rs_fatbin_entry e, best = {0};
	const uint8_t *fatbin = NULL;
	uint64_t cursor = 0;
	bool found = false;
	int r;

	switch (rs_image_identify(image, &fatbin)) {
	case RS_IMAGE_PTX:
		*ret_text = strdup(image);
		return *ret_text ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	case RS_IMAGE_FATBIN:
		break;
	case RS_IMAGE_CUBIN:
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	default:
		return CUDA_ERROR_INVALID_IMAGE;
	}
	while ((r = rs_fatbin_next(fatbin, &cursor, &e)) > 0)
		if (e.kind == 1 && (int)e.sm <= sim_options.cc && (!found || e.sm > best.sm)) {
			best = e;
			found = true;
		}
	if (r < 0)
		return CUDA_ERROR_INVALID_IMAGE;
	return found ? decode(&best, ret_text) : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

CUresult sim_image_read(const char *name, char **ret)
{
	FILE *f = fopen(name, "rb");
	char *buf = NULL;
	long n = -1;

	if (!f)
		return CUDA_ERROR_FILE_NOT_FOUND;
	if (!fseek(f, 0, SEEK_END))
		n = ftell(f);
	if (n >= 0)
		buf = calloc(1, (size_t)n + 64); /* zeros behind it, for text and for headers */
	if (buf) {
		rewind(f);
		if (fread(buf, 1, (size_t)n, f) != (size_t)n) {
			free(buf);
			buf = NULL;
		}
	}
	fclose(f);
	*ret = buf;
	return buf ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}
