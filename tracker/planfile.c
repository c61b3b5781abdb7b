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

struct plan {
	struct rs_plan_head head;
	struct rs_plan_entry *entry;
	uint32_t room;
};

/* --- the document --------------------------------------------------------------------------------- */

static int entry_field(struct rs_jdoc *d, unsigned field, struct rs_plan_entry *e)
{
	uint64_t n = 0;
	int err;

	switch (field) {
	case 0:
		err = rs_jdoc_want(d, "segment", RS_J_STRING, "must be a string");
		if (!err && (!d->j.str_len || d->j.str_len >= RS_COST_NAME))
			err = rs_jdoc_bad(d, "segment", "must have 1 to 127 bytes");
		if (!err)
			e->name = rs_plan_name(d->j.str);
		return err;
	case 1:
		err = rs_jdoc_number(d, "invocation", UINT32_MAX, &n);
		e->invocation = (uint32_t)n;
		return err;
	case 2:
		return rs_jdoc_name(d, "option", rs_option_names, RS_OPTIONS, &e->option);
	case 3:
		return rs_jdoc_name(d, "restore", rs_restore_names, RS_RESTORES, &e->restore);
	case 4:
		return rs_jdoc_number(d, "forward", INT64_MAX, &e->forward);
	case 5:
		return rs_jdoc_number(d, "backward", INT64_MAX, &e->backward);
	default:
		return rs_jdoc_skip(d);
	}
}

static int one_entry(struct rs_jdoc *d, void *arg)
{
	static const char *const fields[] = {"segment", "invocation", "option",
					     "restore", "forward",    "backward"};
	struct plan *p = arg;
	struct rs_plan_entry e = {.order = (uint16_t)p->head.n};
	uint32_t seen = 0;
	unsigned field;
	int err;

	if (d->j.tok != RS_J_OBJECT)
		return rs_jdoc_bad(d, NULL, "must be an object");
	if (p->head.n == RS_PLAN_MAX)
		return rs_jdoc_bad(d, NULL, "is one segment too many: a plan has 4096 at most");
	while ((err = rs_jdoc_key(d, fields, 6, &seen, &field)) == 1) {
		err = entry_field(d, field, &e);
		if (err)
			return err;
	}
	if (!err)
		err = rs_jdoc_seen(d, fields, 6, ~0u, seen);
	if (err)
		return err;
	if (p->head.n == p->room) {
		uint32_t room = p->room ? p->room * 2 : 64;
		struct rs_plan_entry *v = realloc(p->entry, room * sizeof(*v));

		if (!v)
			return rs_jdoc_no_memory(d);
		p->entry = v;
		p->room = room;
	}
	p->entry[p->head.n++] = e;
	return 0;
}

static int version(struct rs_jdoc *d)
{
	uint64_t v = 0;
	int err = rs_jdoc_number(d, "plan_version", UINT64_MAX, &v);

	if (!err && v > RS_PLANFILE_VERSION)
		return rs_jdoc_bad(
			d, "plan_version",
			"is newer than this library, which reads version 1: use a newer one, or plan again");
	if (!err && !v)
		return rs_jdoc_bad(d, "plan_version",
				   "is older than any that exists: versions begin at 1");
	return err;
}

static int head_field(struct rs_jdoc *d, unsigned field)
{
	struct plan *p = d->to;
	struct rs_plan_head *h = &p->head;
	uint64_t n = 0;
	int err;

	switch (field) {
	case 0:
		return version(d);
	case 1:
		return rs_jdoc_hex(d, "fingerprint", &h->fingerprint);
	case 2:
		return rs_jdoc_number(d, "budget", INT64_MAX, &h->budget);
	case 3:
		return rs_jdoc_number(d, "arena", INT64_MAX, &h->arena);
	case 4:
		return rs_jdoc_number(d, "peak", INT64_MAX, &h->peak);
	case 5:
		err = rs_jdoc_number(d, "time", INT64_MAX, &n);
		h->time = (int64_t)n;
		return err;
	case 6:
		err = rs_jdoc_number(d, "bound", INT64_MAX, &n);
		h->bound = (int64_t)n;
		return err;
	case 7:
		return rs_jdoc_each(d, "segments", one_entry, p);
	default:
		return rs_jdoc_skip(d);
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
static int agree(struct rs_jdoc *d)
{
	const struct plan *p = d->to;
	struct rs_plan_entry *sorted;
	uint64_t print = 0;
	int err = 0;

	for (uint32_t i = 0; i < p->head.n; i++)
		print = rs_plan_print(print, p->entry[i].name, p->entry[i].invocation);
	if (print != p->head.fingerprint)
		return rs_jdoc_bad(d, "fingerprint",
				   "is not that of the plan's segments: it was changed");
	sorted = malloc((p->head.n + 1u) * sizeof(*sorted));
	if (!sorted)
		return rs_jdoc_no_memory(d);
	if (p->head.n)
		memcpy(sorted, p->entry, p->head.n * sizeof(*sorted));
	qsort(sorted, p->head.n, sizeof(*sorted), by_key);
	for (uint32_t i = 1; !err && i < p->head.n; i++)
		if (!by_key(&sorted[i - 1], &sorted[i]))
			err = rs_jdoc_bad(d, "segments", "has an invocation twice");
	free(sorted);
	return err;
}

static int document(struct rs_jdoc *d)
{
	static const char *const fields[] = {"plan_version", "fingerprint", "budget", "arena",
					     "peak",	     "time",	    "bound",  "segments"};
	uint32_t seen = 0;
	unsigned field;
	int err = rs_jdoc_want(d, NULL, RS_J_OBJECT, "must be an object");

	while (!err && (err = rs_jdoc_key(d, fields, 8, &seen, &field)) == 1)
		err = head_field(d, field);
	if (!err)
		err = rs_jdoc_seen(d, fields, 8, ~0u, seen);
	if (!err)
		err = agree(d);
	return err ? err : rs_jdoc_next(d); /* nothing may follow */
}

int rs_planfile_parse(char *text, size_t size, struct rs_plan_head *ret_head,
		      struct rs_plan_entry **ret_entries, struct rs_jdoc_error *ret_error)
{
	struct plan p = {.entry = NULL};
	struct rs_jdoc d;

	memset(ret_error, 0, sizeof(*ret_error));
	rs_jdoc_begin(&d, text, size, 0, &p, ret_error);
	if (document(&d)) {
		free(p.entry);
		return rs_jdoc_failed(&d);
	}
	p.head.generation = 1;
	*ret_head = p.head;
	*ret_entries = p.entry;
	return 0;
}

int rs_planfile_load(const char *path, struct rs_plan_head *ret_head,
		     struct rs_plan_entry **ret_entries, struct rs_jdoc_error *ret_error)
{
	int saved = errno, err;
	char *text = NULL;
	size_t size = 0;

	err = rs_jdoc_load(path, RS_PLANFILE_MAX_SIZE, "larger than 8 MiB", &text, &size,
			   ret_error);

	if (err)
		return err;
	err = rs_planfile_parse(text, size, ret_head, ret_entries, ret_error);
	free(text);
	if (err == -ENOMEM)
		snprintf(ret_error->text, sizeof(ret_error->text), "%s", strerror(ENOMEM));
	errno = saved;
	return err;
}
