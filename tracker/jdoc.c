/* SPDX-License-Identifier: MIT */
/* See jdoc.h. */
#include "tracker/jdoc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rs_jdoc_begin(struct rs_jdoc *d, char *text, size_t size, int keep, void *to,
		   struct rs_jdoc_error *error)
{
	memset(d, 0, sizeof(*d));
	rs_jread_begin(&d->j, text, size);
	d->j.keep = (uint8_t)keep;
	d->to = to;
	d->error = error;
}

/* --- errors ------------------------------------------------------------------------------------- */

static void put_path(const struct rs_jdoc *d, const char *field)
{
	char *out = d->error->field;
	size_t size = sizeof(d->error->field), n = 0;

	out[0] = '\0';
	for (unsigned i = 0; i < d->depth && n < size; i++)
		n += d->path[i].name
			     ? (size_t)snprintf(out + n, size - n, "%s%s", n ? "." : "",
						d->path[i].name)
			     : (size_t)snprintf(out + n, size - n, "[%u]", d->path[i].index);
	if (field && n < size)
		snprintf(out + n, size - n, "%s%s", n ? "." : "", field);
}

int rs_jdoc_bad(struct rs_jdoc *d, const char *field, const char *why)
{
	if (d->error->text[0])
		return -EINVAL;
	d->error->line = d->j.line;
	d->error->column = d->j.column;
	put_path(d, field);
	snprintf(d->error->text, sizeof(d->error->text), "%s", why);
	return -EINVAL;
}

int rs_jdoc_no_memory(struct rs_jdoc *d)
{
	d->no_memory = 1;
	return -ENOMEM;
}

int rs_jdoc_failed(const struct rs_jdoc *d)
{
	return d->no_memory ? -ENOMEM : -EINVAL;
}

/* --- scalars ------------------------------------------------------------------------------------ */

static int read_token(struct rs_jdoc *d, const char *field)
{
	return rs_jread_next(&d->j) == RS_J_ERROR ? rs_jdoc_bad(d, field, d->j.error) : 0;
}

int rs_jdoc_next(struct rs_jdoc *d)
{
	return read_token(d, NULL);
}

int rs_jdoc_want(struct rs_jdoc *d, const char *field, enum rs_jtok tok, const char *what)
{
	int err = read_token(d, field);

	return err ? err : d->j.tok == tok ? 0 : rs_jdoc_bad(d, field, what);
}

int rs_jdoc_text(struct rs_jdoc *d, const char *field, const char **ret)
{
	int err = rs_jdoc_want(d, field, RS_J_STRING, "must be a string");

	if (!err && !d->j.str_len)
		err = rs_jdoc_bad(d, field, "must not be empty");
	if (!err)
		*ret = d->j.str;
	return err;
}

int rs_jdoc_flag(struct rs_jdoc *d, const char *field, uint8_t *ret)
{
	int err = rs_jdoc_want(d, field, RS_J_BOOL, "must be true or false");

	if (!err)
		*ret = (uint8_t)d->j.number;
	return err;
}

int rs_jdoc_number(struct rs_jdoc *d, const char *field, uint64_t most, uint64_t *ret)
{
	int err = read_token(d, field);

	if (err)
		return err;
	if (d->j.tok != RS_J_INTEGER || d->j.negative)
		return rs_jdoc_bad(d, field, "must be an integer, not negative");
	if (d->j.number > most)
		return rs_jdoc_bad(d, field, "is too large");
	*ret = d->j.number;
	return 0;
}

int rs_jdoc_is_hex(struct rs_jdoc *d, const char *field, uint64_t *ret)
{
	char *end;

	if (d->j.tok != RS_J_STRING || strncmp(d->j.str, "0x", 2) || d->j.str_len < 3 ||
	    d->j.str_len > 18 || strspn(d->j.str + 2, "0123456789abcdefABCDEF") + 2 != d->j.str_len)
		return rs_jdoc_bad(d, field, "must be a string of 0x and up to 16 hex digits");
	*ret = strtoull(d->j.str, &end, 16);
	return 0;
}

int rs_jdoc_hex(struct rs_jdoc *d, const char *field, uint64_t *ret)
{
	int err = read_token(d, field);

	return err ? err : rs_jdoc_is_hex(d, field, ret);
}

int rs_jdoc_name(struct rs_jdoc *d, const char *field, const char *const *names, unsigned n,
		 uint8_t *ret)
{
	char why[128] = "must be one of";
	int err = rs_jdoc_want(d, field, RS_J_STRING, "must be a string");

	if (err)
		return err;
	for (unsigned i = 0; i < n; i++) {
		if (rs_jread_is(&d->j, names[i])) {
			*ret = (uint8_t)i;
			return 0;
		}
		snprintf(why + strlen(why), sizeof(why) - strlen(why), " %s", names[i]);
	}
	return rs_jdoc_bad(d, field, why);
}

int rs_jdoc_skip(struct rs_jdoc *d)
{
	int err = read_token(d, NULL);

	return !err && rs_jread_skip(&d->j) ? rs_jdoc_bad(d, NULL, d->j.error) : err;
}

/* --- objects and arrays ------------------------------------------------------------------------- */

int rs_jdoc_key(struct rs_jdoc *d, const char *const *known, unsigned n, uint32_t *seen,
		unsigned *ret)
{
	int err = read_token(d, NULL);

	if (err)
		return err;
	if (d->j.tok == RS_J_OBJECT_END)
		return 0;
	for (*ret = 0; *ret < n && !rs_jread_is(&d->j, known[*ret]); ++*ret)
		;
	if (*ret < n && *seen & 1u << *ret)
		return rs_jdoc_bad(d, known[*ret], "is given twice");
	if (*ret < n)
		*seen |= 1u << *ret;
	return 1;
}

int rs_jdoc_seen(struct rs_jdoc *d, const char *const *known, unsigned n, uint32_t must,
		 uint32_t seen)
{
	for (unsigned i = 0; i < n; i++)
		if (must & ~seen & 1u << i)
			return rs_jdoc_bad(d, known[i], "is missing");
	return 0;
}

static int enter(struct rs_jdoc *d, const char *name)
{
	if (d->depth == RS_JDOC_LEVELS)
		return rs_jdoc_bad(d, name, "is nested too deeply");
	d->path[d->depth].name = name;
	d->path[d->depth++].index = 0;
	return 0;
}

int rs_jdoc_enter(struct rs_jdoc *d, const char *field)
{
	int err = rs_jdoc_want(d, field, RS_J_OBJECT, "must be an object");

	return err ? err : enter(d, field);
}

void rs_jdoc_leave(struct rs_jdoc *d)
{
	d->depth--;
}

int rs_jdoc_each(struct rs_jdoc *d, const char *field, rs_jdoc_fn *fn, void *arg)
{
	int err = rs_jdoc_want(d, field, RS_J_ARRAY, "must be an array");

	if (!err)
		err = enter(d, field) ?: enter(d, NULL);
	while (!err) {
		err = read_token(d, NULL);
		if (err || d->j.tok == RS_J_ARRAY_END)
			break;
		err = fn(d, arg);
		d->path[d->depth - 1].index += !err;
	}
	if (!err)
		d->depth -= 2;
	return err;
}

/* --- files -------------------------------------------------------------------------------------- */

int rs_jdoc_load(const char *path, size_t most, const char *too_large, char **ret_text,
		 size_t *ret_size, struct rs_jdoc_error *error)
{
	int saved = errno, err = rs_jread_file(path, most, ret_text, ret_size);

	memset(error, 0, sizeof(*error));
	if (err)
		snprintf(error->text, sizeof(error->text), "%s",
			 err == -ENODEV	 ? "not a regular file"
			 : err == -EFBIG ? too_large
					 : strerror(-err));
	errno = saved;
	return err;
}
