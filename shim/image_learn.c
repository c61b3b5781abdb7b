/* SPDX-License-Identifier: MIT */
/*
 * What is learned about an image: of PTX, what each kernel does with its arguments and the names of the
 * module's variables; of machine code, where parameters are and the variables again.
 *
 * Callers: image.c, without its lock: the image is not published yet. Nothing of the image's memory is kept.
 */
#include "shim/image_priv.h"
#include "shim/log.h"
#include "tracker/cubin.h"
#include "tracker/digest.h"
#include "tracker/fatbin.h"

#include <stdlib.h>
#include <string.h>

uint64_t rs_image_hash(uint64_t h, const void *data, uint64_t bytes)
{
	const char *p = data;

	for (uint64_t at = 0; at < bytes; at += RS_DIGEST_CHUNK) {
		uint64_t n = bytes - at < RS_DIGEST_CHUNK ? bytes - at : RS_DIGEST_CHUNK;

		h = rs_digest_mix(h + RS_DIGEST_K + rs_digest_chunk(p + at, n));
	}
	return h;
}

/* --- PTX ---------------------------------------------------------------------------------------- */

/*
 * String literals ($str, $str$1 of cicc, _$_str of clang) are in the table of variables, too. Nobody writes
 * them, so nothing is lost when they are left out, and a program that prints or asserts has many.
 */
static int is_literal(const char *name)
{
	size_t n = strncmp(name, "_$_", 3) ? 0 : 3;

	if (!n && name[0] == '$')
		n = 1;
	return n && !strncmp(name + n, "str", 3) &&
	       strspn(name + n + 3, "$_.0123456789") == strlen(name + n + 3);
}

/* A name to ask the driver for when the first kernel that may use it is launched. */
static void keep_global(struct rs_image *image, const char *name)
{
	unsigned n = image->nglobals;
	char **more, *copy;

	if (is_literal(name))
		return;
	if (!(n & (n - 1))) {
		more = realloc(image->globals, (n ? 2 * n : 1) * sizeof(*more));
		if (!more) {
			image->hidden = 1;
			return;
		}
		image->globals = more;
	}
	copy = *name ? strdup(name) : NULL;
	if (copy)
		image->globals[image->nglobals++] = copy;
	else
		image->hidden = 1;
}

static void keep_globals(struct rs_image *image, const struct rs_ptx *ptx)
{
	int used = 0;

	for (uint32_t i = 0; i < image->ptx->nkernels; i++)
		used |= image->ptx->kernels[i].reads_globals ||
			image->ptx->kernels[i].writes_globals;
	for (uint32_t i = 0; used && i < ptx->nvars; i++)
		if (ptx->vars[i]->space == RS_PTX_SPACE_GLOBAL && ptx->vars[i]->size)
			keep_global(image, ptx->vars[i]->name);
}

static void keep_layout(struct rs_code *code, const struct rs_ptx_func *f)
{
	code->params = calloc(f->nparams + 1, sizeof(*code->params));
	if (!code->params)
		return;
	for (uint32_t i = 0; i < f->nparams; i++) {
		code->params[i].offset = (uint32_t)f->params[i]->offset;
		code->params[i].size = (uint32_t)f->params[i]->size;
	}
	code->nparams = f->nparams;
	code->param_bytes = (uint32_t)f->param_bytes;
	code->layout = RS_LAYOUT_KNOWN;
}

struct rs_code *rs_image_new_code(const struct rs_image *image, const char *name)
{
	struct rs_code *code = calloc(1, sizeof(*code));

	if (!code)
		return NULL;
	code->name = strdup(name);
	if (!code->name) {
		free(code);
		return NULL;
	}
	code->hash = rs_image_hash(image ? image->hash : 1, name, strlen(name));
	if (image && image->ptx)
		code->ptx = rs_ptx_module_find(image->ptx, name);
	code->globals = !image || image->hidden || image->nglobals;
	code->opaque = image && image->calls_out;
	return code;
}

static void analyse(struct rs_image *image, const char *text, size_t len)
{
	struct rs_ptx_error err = {0, ""};
	struct rs_ptx *ptx;
	int r = rs_ptx_parse(text, len, &ptx, &err);

	if (r) {
		rs_log(RS_LOG_INFO, "PTX of an image is not understood, line %u: %s", err.line,
		       err.text);
		return;
	}
	if (!rs_ptx_analyse(ptx, &image->ptx)) {
		keep_globals(image, ptx);
		for (uint32_t i = 0; i < ptx->nfuncs; i++) {
			struct rs_code *code;

			if (!ptx->funcs[i]->is_entry || ptx->funcs[i]->is_extern)
				continue;
			code = rs_image_new_code(image, ptx->funcs[i]->name);
			if (!code)
				continue;
			keep_layout(code, ptx->funcs[i]);
			code->next = image->codes;
			image->codes = code;
		}
	} else {
		image->ptx = NULL;
	}
	rs_ptx_free(ptx);
}

/* --- machine code ------------------------------------------------------------------------------- */

struct rs_code *rs_image_find(struct rs_code *code, const char *name)
{
	while (code && strcmp(code->name, name))
		code = code->next;
	return code;
}

/* The parameters stand by; the driver is asked first. */
static void keep_params(struct rs_code *code, const struct rs_cubin_kernel *k)
{
	struct rs_cubin_param *found = calloc(k->nparams + 1, sizeof(*found));

	code->params = calloc(k->nparams + 1, sizeof(*code->params));
	if (found && code->params && !rs_cubin_params(k, found)) {
		for (uint32_t i = 0; i < k->nparams; i++)
			code->params[i] = (struct rs_code_param){found[i].offset, found[i].size};
		code->nparams = k->nparams;
		code->param_bytes = k->param_bytes;
		code->params_found = 1;
	}
	free(found);
}

/* The same kernel for another architecture: what differs between them is not known. */
static void merge_params(struct rs_code *code, const struct rs_cubin_kernel *k)
{
	struct rs_code other = {0};

	keep_params(&other, k);
	if (!other.params_found || other.nparams != code->nparams ||
	    memcmp(other.params, code->params, other.nparams * sizeof(*other.params)))
		code->params_found = 0;
	free(other.params);
}

static void keep_kernels(struct rs_image *image, const struct rs_cubin *c)
{
	int first = !image->codes;
	struct rs_cubin_kernel k;
	uint64_t cursor = 0;

	while (rs_cubin_next_kernel(c, &cursor, &k) == 1) {
		struct rs_code *code = first ? NULL : rs_image_find(image->codes, k.name);

		if (code) {
			merge_params(code, &k);
		} else {
			code = rs_image_new_code(image, k.name);
			if (!code)
				return;
			keep_params(code, &k);
			code->next = image->codes;
			image->codes = code;
		}
		code->opaque |= k.images || k.launches;
	}
}

static void keep_cubin(struct rs_image *image, const void *data, uint64_t size)
{
	struct rs_cubin_var v;
	uint64_t cursor = 0;
	struct rs_cubin c;

	if (rs_cubin_open(data, size, &c)) {
		rs_log(RS_LOG_INFO, "machine code of an image is not understood");
		image->hidden = 1;
		return;
	}
	while (rs_cubin_next_var(&c, &cursor, &v) == 1)
		keep_global(image, v.name);
	image->hidden |= c.nameless || c.relocatable;
	image->calls_out |= c.calls_out;
	keep_kernels(image, &c);
}

/* All entries of the architecture that runs (it may have variants); of every one if that is not known. */
static void keep_cubins(struct rs_image *image, const uint8_t *fatbin, uint32_t machine)
{
	struct rs_fatbin_entry e;
	uint64_t cursor = 0;
	int found = 0;

	while (rs_fatbin_next(fatbin, &cursor, &e) == 1) {
		char *data = NULL;

		if (e.kind != 2 || (machine && e.sm != machine))
			continue;
		found = 1;
		if (e.codec == RS_FATBIN_RAW) {
			keep_cubin(image, e.data, e.size);
			continue;
		}
		data = rs_unpack(&e);
		if (data)
			keep_cubin(image, data, e.raw_size);
		else
			image->hidden = 1;
		free(data);
	}
	image->hidden |= !found;
}

/* --- both ---------------------------------------------------------------------------------------- */

void rs_image_learn(struct rs_image *image, const struct rs_image_source *s)
{
	if (s->text)
		analyse(image, s->text, s->len);
	if (image->ptx)
		return;
	if (s->fatbin)
		keep_cubins(image, s->fatbin, s->machine);
	else if (s->cubin)
		keep_cubin(image, s->cubin, rs_cubin_size(s->cubin));
	else
		image->hidden = 1;
	for (struct rs_code *code = image->codes; code; code = code->next) {
		code->globals = image->hidden || image->nglobals;
		code->opaque |= image->calls_out;
	}
}
