/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: the reader of CUDA ELF images. Any bytes are refused, or give names that end inside of the image,
 * and layouts whose parameters lie inside of the size of all.
 * Seeds: tests/fuzz/corpus/fuzz_cubin. No state between inputs, no locks.
 */
#include "tracker/cubin.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int good)
{
	if (!good)
		abort();
}

/* Read to its end, under the address sanitizer. */
static void check_name(const struct rs_cubin *c, const char *name)
{
	const char *image = (const char *)c->image.data;

	require(!*name || (name >= image && name + strlen(name) < image + c->image.n));
}

static void check_kernel(const struct rs_cubin_kernel *k)
{
	struct rs_cubin_param *p = malloc(k->nparams * sizeof(*p) + 1);

	if (p && !rs_cubin_params(k, p))
		for (uint32_t i = 0; i < k->nparams; i++)
			require(p[i].size && p[i].offset + p[i].size <= k->param_bytes);
	free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *image = malloc(size + 1); /* of just that size, and not aligned */
	struct rs_cubin_kernel k;
	struct rs_cubin_var v;
	uint64_t cursor = 0;
	struct rs_cubin c;

	if (!image)
		return 0;
	memcpy(image + 1, data, size);
	if (!rs_cubin_open(image + 1, size, &c)) {
		while (rs_cubin_next_var(&c, &cursor, &v) == 1) {
			check_name(&c, v.name);
			check_name(&c, v.section);
			require(v.size > 0);
		}
		for (cursor = 0; rs_cubin_next_kernel(&c, &cursor, &k) == 1;) {
			check_name(&c, k.name);
			check_kernel(&k);
		}
	}
	free(image);
	return 0;
}
