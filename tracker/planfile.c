/* SPDX-License-Identifier: MIT */
/* See planfile.h. One value after the other; what is wrong is told at the token where it shows. */
#include "tracker/planfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/contract.h"
#include "tracker/costs.h"
#include "tracker/json.h"

struct reader {
	struct rs_jread j;
	struct rs_planfile_error *error;
	struct rs_plan_head head;
	struct rs_plan_entry *entry;
	uint32_t room;
	int in_segments, no_memory;
};

/* --- tokens --------------------------------------------------------------------------------------- */

static int bad(struct reader *r, const char *field, const char *why)
{
	char *out = r->error->field;
	size_t size = sizeof(r->error->field);

	if (r->error->text[0])
		return -EINVAL;
	r->error->line = r->j.line;
	r->error->column = r->j.column;
	if (r->in_segments)
		snprintf(out, size, "segments[%u]%s%s", r->head.n, *field ? "." : "", field);
	else
		snprintf(out, size, "%s", field);
	snprintf(r->error->text, sizeof(r->error->text), "%s", why);
	return -EINVAL;
}

static int next(struct reader *r, const char *field)
{
	return rs_jread_next(&r->j) == RS_J_ERROR ? bad(r, field, r->j.error) : 0;
}

static int want(struct reader *r, const char *field, enum rs_jtok tok, const char *what)
{
	int err = next(r, field);

	return err ? err : r->j.tok == tok ? 0 : bad(r, field, what);
}

static int get_number(struct reader *r, const char *field, uint64_t most, uint64_t *ret)
{
	int err = next(r, field);

	if (err)
		return err;
	if (r->j.tok != RS_J_INTEGER || r->j.negative)
		return bad(r, field, "must be an integer, not negative");
	if (r->j.number > most)
		return bad(r, field, "is too large");
	*ret = r->j.number;
	return 0;
}

/* One of `n` names; its place. */
static int get_name(struct reader *r, const char *field, const char *const *names, unsigned n,
		    uint8_t *ret)
{
	char why[128] = "must be one of";
	int err = want(r, field, RS_J_STRING, "must be a string");

	if (err)
		return err;
	for (unsigned i = 0; i < n; i++) {
		if (rs_jread_is(&r->j, names[i])) {
			*ret = (uint8_t)i;
			return 0;
		}
		snprintf(why + strlen(why), sizeof(why) - strlen(why), " %s", names[i]);
	}
	return bad(r, field, why);
}

static int get_hex(struct reader *r, const char *field, uint64_t *ret)
{
	int err = want(r, field, RS_J_STRING, "must be a string");
	char *end;

	if (err)
		return err;
	if (strncmp(r->j.str, "0x", 2) || r->j.str_len < 3 || r->j.str_len > 18 ||
	    strspn(r->j.str + 2, "0123456789abcdefABCDEF") + 2 != r->j.str_len)
		return bad(r, field, "must be a string of 0x and up to 16 hex digits");
	*ret = strtoull(r->j.str, &end, 16);
	return 0;
}

static int skip(struct reader *r)
{
	int err = next(r, "");

	return !err && rs_jread_skip(&r->j) ? bad(r, "", r->j.error) : err;
}

/* A key, or the object's end: 1, 0, or an error. *ret: which of the known ones, or n. */
static int get_key(struct reader *r, const char *const *known, unsigned n, uint32_t *seen,
		   unsigned *ret)
{
	int err = next(r, "");

	if (err)
		return err;
	if (r->j.tok == RS_J_OBJECT_END)
		return 0;
	for (*ret = 0; *ret < n && !rs_jread_is(&r->j, known[*ret]); ++*ret)
		;
	if (*ret < n && *seen & 1u << *ret)
		return bad(r, known[*ret], "is given twice");
	if (*ret < n)
		*seen |= 1u << *ret;
	return 1;
}

static int all_seen(struct reader *r, const char *const *known, unsigned n, uint32_t seen)
{
	for (unsigned i = 0; i < n; i++)
		if (~seen & 1u << i)
			return bad(r, known[i], "is missing");
	return 0;
}

/* --- the document --------------------------------------------------------------------------------- */

static int entry_field(struct reader *r, unsigned field, struct rs_plan_entry *e)
{
	uint64_t n = 0;
	int err;

	switch (field) {
	case 0:
		err = want(r, "segment", RS_J_STRING, "must be a string");
		if (!err && (!r->j.str_len || r->j.str_len >= RS_COST_NAME))
			err = bad(r, "segment", "must have 1 to 127 bytes");
		if (!err)
			e->name = rs_plan_name(r->j.str);
		return err;
	case 1:
		err = get_number(r, "invocation", UINT32_MAX, &n);
		e->invocation = (uint32_t)n;
		return err;
	case 2:
		return get_name(r, "option", rs_option_names, RS_OPTIONS, &e->option);
	case 3:
		return get_name(r, "restore", rs_restore_names, RS_RESTORES, &e->restore);
	case 4:
		return get_number(r, "forward", INT64_MAX, &e->forward);
	case 5:
		return get_number(r, "backward", INT64_MAX, &e->backward);
	default:
		return skip(r);
	}
}

static int one_entry(struct reader *r)
{
	static const char *const fields[] = {"segment", "invocation", "option",
					     "restore", "forward",    "backward"};
	struct rs_plan_entry e = {.order = (uint16_t)r->head.n};
	uint32_t seen = 0;
	unsigned field;
	int err;

	if (r->j.tok != RS_J_OBJECT)
		return bad(r, "", "must be an object");
	if (r->head.n == RS_PLAN_MAX)
		return bad(r, "", "is one segment too many: a plan has 4096 at most");
	while ((err = get_key(r, fields, 6, &seen, &field)) == 1) {
		err = entry_field(r, field, &e);
		if (err)
			return err;
	}
	if (!err)
		err = all_seen(r, fields, 6, seen);
	if (err)
		return err;
	if (r->head.n == r->room) {
		uint32_t room = r->room ? r->room * 2 : 64;
		struct rs_plan_entry *v = realloc(r->entry, room * sizeof(*v));

		if (!v) {
			r->no_memory = 1;
			return -ENOMEM;
		}
		r->entry = v;
		r->room = room;
	}
	r->entry[r->head.n++] = e;
	return 0;
}

static int segments(struct reader *r)
{
	int err = want(r, "segments", RS_J_ARRAY, "must be an array");

	r->in_segments = 1;
	while (!err) {
		err = next(r, "");
		if (err || r->j.tok == RS_J_ARRAY_END)
			break;
		err = one_entry(r);
	}
	if (!err)
		r->in_segments = 0;
	return err;
}

static int version(struct reader *r)
{
	uint64_t v = 0;
	int err = get_number(r, "plan_version", UINT64_MAX, &v);

	if (!err && v > RS_PLANFILE_VERSION)
		return bad(
			r, "plan_version",
			"is newer than this library, which reads version 1: use a newer one, or plan again");
	if (!err && !v)
		return bad(r, "plan_version", "is older than any that exists: versions begin at 1");
	return err;
}

static int head_field(struct reader *r, unsigned field)
{
	struct rs_plan_head *h = &r->head;
	uint64_t n = 0;
	int err;

	switch (field) {
	case 0:
		return version(r);
	case 1:
		return get_hex(r, "fingerprint", &h->fingerprint);
	case 2:
		return get_number(r, "budget", INT64_MAX, &h->budget);
	case 3:
		return get_number(r, "arena", INT64_MAX, &h->arena);
	case 4:
		return get_number(r, "peak", INT64_MAX, &h->peak);
	case 5:
		err = get_number(r, "time", INT64_MAX, &n);
		h->time = (int64_t)n;
		return err;
	case 6:
		err = get_number(r, "bound", INT64_MAX, &n);
		h->bound = (int64_t)n;
		return err;
	case 7:
		return segments(r);
	default:
		return skip(r);
	}
}

static int by_key(const void *a, const void *b)
{
	const struct rs_plan_entry *x = a, *y = b;

	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	return x->invocation < y->invocation ? -1 : x->invocation > y->invocation;
}

/* One decision for each segment, and for those that the fingerprint says. */
static int agree(struct reader *r)
{
	struct rs_plan_entry *sorted;
	uint64_t print = 0;
	int err = 0;

	for (uint32_t i = 0; i < r->head.n; i++)
		print = rs_plan_print(print, r->entry[i].name, r->entry[i].invocation);
	if (print != r->head.fingerprint)
		return bad(r, "fingerprint", "is not that of the plan's segments: it was changed");
	sorted = malloc((r->head.n + 1u) * sizeof(*sorted));
	if (!sorted) {
		r->no_memory = 1;
		return -ENOMEM;
	}
	if (r->head.n)
		memcpy(sorted, r->entry, r->head.n * sizeof(*sorted));
	qsort(sorted, r->head.n, sizeof(*sorted), by_key);
	for (uint32_t i = 1; !err && i < r->head.n; i++)
		if (!by_key(&sorted[i - 1], &sorted[i]))
			err = bad(r, "segments", "has an invocation twice");
	free(sorted);
	return err;
}

static int document(struct reader *r)
{
	static const char *const fields[] = {"plan_version", "fingerprint", "budget", "arena",
					     "peak",	     "time",	    "bound",  "segments"};
	uint32_t seen = 0;
	unsigned field;
	int err = want(r, "", RS_J_OBJECT, "must be an object");

	while (!err && (err = get_key(r, fields, 8, &seen, &field)) == 1)
		err = head_field(r, field);
	if (!err)
		err = all_seen(r, fields, 8, seen);
	if (!err)
		err = agree(r);
	return err ? err : next(r, ""); /* nothing may follow */
}

int rs_planfile_parse(char *text, size_t size, struct rs_plan_head *ret_head,
		      struct rs_plan_entry **ret_entries, struct rs_planfile_error *ret_error)
{
	struct reader r = {.error = ret_error};

	memset(ret_error, 0, sizeof(*ret_error));
	rs_jread_begin(&r.j, text, size);
	if (document(&r)) {
		free(r.entry);
		return r.no_memory ? -ENOMEM : -EINVAL;
	}
	r.head.generation = 1;
	*ret_head = r.head;
	*ret_entries = r.entry;
	return 0;
}

/* --- the file ------------------------------------------------------------------------------------- */

int rs_planfile_load(const char *path, struct rs_plan_head *ret_head,
		     struct rs_plan_entry **ret_entries, struct rs_planfile_error *ret_error)
{
	int saved = errno, err;
	char *text = NULL;
	size_t size = 0;

	memset(ret_error, 0, sizeof(*ret_error));
	err = rs_jread_file(path, RS_PLANFILE_MAX_SIZE, &text, &size);
	if (!err)
		err = rs_planfile_parse(text, size, ret_head, ret_entries, ret_error);
	free(text);
	if (err && !ret_error->text[0])
		snprintf(ret_error->text, sizeof(ret_error->text), "%s",
			 err == -ENODEV	 ? "not a regular file"
			 : err == -EFBIG ? "larger than 8 MiB"
					 : strerror(-err));
	errno = saved;
	return err;
}
