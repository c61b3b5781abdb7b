/* SPDX-License-Identifier: MIT */
/*
 * See contract.h. One function for each level of the document; where the reader stands is kept as a path of
 * names and numbers, for errors.
 */
#include "tracker/contract.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/json.h"

#define MOST_TERMS 4000000u
#define LEVELS	   8

const char *const rs_option_names[RS_OPTIONS] = {"undo",    "free",  "whole",
						 "regions", "pages", "retain"};
const char *const rs_restore_names[RS_RESTORES] = {"copy", "swap"};

struct segment {
	const char *name;
	struct rs_policy policy;
	uint8_t incomplete;
	uint32_t replays; /* most of a forward; 0: not told */
	uint32_t first_call, ncalls, first_term, nterms;
};

struct rs_contract {
	char *owned; /* the file */
	const char *fingerprint;
	struct segment *segments;
	uint64_t *calls;
	struct rs_term *terms;
	uint32_t nsegments, ncalls, nterms, room_segments, room_calls, room_terms;
};

struct reader {
	struct rs_jread j;
	struct rs_contract *c;
	struct rs_contract_error *error;
	/* the way to here: a name, or an element's number */
	struct {
		const char *name;
		unsigned index;
	} path[LEVELS];
	unsigned depth;
	int no_memory;
};

/* --- errors ----------------------------------------------------------------------------------- */

static void put_path(const struct reader *r, const char *field)
{
	char *out = r->error->field;
	size_t size = sizeof(r->error->field), n = 0;

	for (unsigned i = 0; i < r->depth && n < size; i++)
		n += r->path[i].name
			     ? (size_t)snprintf(out + n, size - n, "%s%s", n ? "." : "",
						r->path[i].name)
			     : (size_t)snprintf(out + n, size - n, "[%u]", r->path[i].index);
	if (field && n < size)
		snprintf(out + n, size - n, "%s%s", n ? "." : "", field);
}

/* At the reader's token. */
static int bad(struct reader *r, const char *field, const char *why)
{
	if (r->error->text[0])
		return -EINVAL;
	r->error->line = r->j.line;
	r->error->column = r->j.column;
	put_path(r, field);
	snprintf(r->error->text, sizeof(r->error->text), "%s", why);
	return -EINVAL;
}

static int no_memory(struct reader *r)
{
	r->no_memory = 1;
	return -ENOMEM;
}

static void *grow(void *v, uint32_t n, uint32_t *room, size_t size)
{
	uint32_t want = n < 16 ? 16 : n * 2;
	void *grown;

	if (n < *room)
		return v;
	grown = realloc(v, want * size);
	if (grown)
		*room = want;
	return grown;
}

#define PUSH(c, list)                                                                              \
	({                                                                                         \
		void *grown_ =                                                                     \
			grow((c)->list, (c)->n##list, &(c)->room_##list, sizeof(*(c)->list));      \
		if (grown_)                                                                        \
			(c)->list = grown_;                                                        \
		grown_ ? &(c)->list[(c)->n##list++] : NULL;                                        \
	})

/* --- scalars ---------------------------------------------------------------------------------- */

static int next(struct reader *r)
{
	return rs_jread_next(&r->j) == RS_J_ERROR ? bad(r, NULL, r->j.error) : 0;
}

static int want(struct reader *r, const char *field, enum rs_jtok tok, const char *what)
{
	int err = next(r);

	return err ? err : r->j.tok == tok ? 0 : bad(r, field, what);
}

static int get_text(struct reader *r, const char *field, const char **ret)
{
	int err = want(r, field, RS_J_STRING, "must be a string");

	if (!err)
		*ret = r->j.str;
	return err;
}

static int take_number(struct reader *r, const char *field, uint64_t most, uint64_t *ret)
{
	if (r->j.tok != RS_J_INTEGER || r->j.negative)
		return bad(r, field, "must be an integer, not negative");
	if (r->j.number > most)
		return bad(r, field, "is too large");
	*ret = r->j.number;
	return 0;
}

static int get_number(struct reader *r, const char *field, uint64_t most, uint64_t *ret)
{
	int err = next(r);

	return err ? err : take_number(r, field, most, ret);
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

/* A key, or the object's end: 1, 0, or an error. `known`: names of fields; *ret: which, or n. */
static int get_key(struct reader *r, const char *const *known, unsigned n, uint32_t *seen,
		   unsigned *ret)
{
	int err = next(r);

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

static int skip(struct reader *r)
{
	int err = next(r);

	return !err && rs_jread_skip(&r->j) ? bad(r, NULL, r->j.error) : err;
}

static void enter(struct reader *r, const char *name)
{
	r->path[r->depth].name = name;
	r->path[r->depth++].index = 0;
}

typedef int element_fn(struct reader *r, void *arg);

/* An array; fn is called with each element's first token read. */
static int each(struct reader *r, const char *field, element_fn *fn, void *arg)
{
	int err = want(r, field, RS_J_ARRAY, "must be an array");

	if (err)
		return err;
	enter(r, field);
	enter(r, NULL);
	for (;;) {
		err = next(r);
		if (err || r->j.tok == RS_J_ARRAY_END)
			break;
		err = fn(r, arg);
		if (err)
			break;
		r->path[r->depth - 1].index++;
	}
	if (!err)
		r->depth -= 2;
	return err;
}

/* --- the document ----------------------------------------------------------------------------- */

static int add_term(struct reader *r, const struct rs_term *term)
{
	struct rs_term *t;

	if (r->c->nterms >= MOST_TERMS)
		return bad(r, NULL, "too many state entries and windows");
	t = PUSH(r->c, terms);
	if (!t)
		return no_memory(r);
	*t = *term;
	return 0;
}

/* [offset, bytes]; what memory it is in is known when the state's end has been read. */
static int one_window(struct reader *r, void *arg)
{
	struct rs_term w = {.window = 1};
	int err;

	(void)arg;
	if (r->j.tok != RS_J_ARRAY)
		return bad(r, NULL, "must be [offset, bytes]");
	err = get_number(r, NULL, UINT64_MAX, &w.off);
	if (!err)
		err = get_number(r, NULL, UINT64_MAX, &w.len);
	if (!err && (!w.len || w.off + w.len < w.off))
		err = bad(r, NULL, "must have bytes, and end below 2^64");
	if (!err)
		err = want(r, NULL, RS_J_ARRAY_END, "must be [offset, bytes]");
	return err ? err : add_term(r, &w);
}

enum { S_REGION, S_CALL, S_SLOT, S_PIECE, S_OFFSET, S_BYTES, S_ROLE, S_ENTRY, S_WINDOWS, S_N };

static int state_field(struct reader *r, unsigned field, struct rs_term *t)
{
	static const char *const roles[] = {"state", "product", "unknown"};
	static const char *const entries[] = {"digest"};
	uint64_t n = 0;
	uint8_t entry;
	int err;

	switch (field) {
	case S_REGION:
		err = get_text(r, "region", &t->region);
		return err || *t->region ? err : bad(r, "region", "must not be empty");
	case S_CALL:
		err = get_number(r, "call", UINT32_MAX, &n);
		t->call = (uint32_t)n;
		return err;
	case S_SLOT:
		err = get_number(r, "slot", UINT16_MAX, &n);
		t->slot = (uint16_t)n;
		return err;
	case S_PIECE:
		err = get_number(r, "piece", UINT16_MAX, &n);
		t->piece = (uint16_t)n;
		return err;
	case S_OFFSET:
		return get_number(r, "offset", UINT64_MAX, &t->off);
	case S_BYTES:
		return get_number(r, "bytes", UINT64_MAX, &t->len);
	case S_ROLE:
		return get_name(r, "role", roles, 3, &t->role);
	case S_ENTRY:
		return get_name(r, "entry", entries, 1, &entry);
	case S_WINDOWS:
		return each(r, "windows", one_window, NULL);
	default:
		return skip(r);
	}
}

static int one_state(struct reader *r, void *arg)
{
	static const char *const fields[] = {"region", "call", "slot",	"piece",  "offset",
					     "bytes",  "role", "entry", "windows"};
	const uint32_t spot = 1u << S_CALL | 1u << S_SLOT | 1u << S_PIECE;
	const uint32_t must = 1u << S_OFFSET | 1u << S_BYTES | 1u << S_ROLE;
	struct rs_term t = {0};
	uint32_t first = r->c->nterms, seen = 0;
	unsigned field;
	int err;

	(void)arg;
	if (r->j.tok != RS_J_OBJECT)
		return bad(r, NULL, "must be an object");
	while ((err = get_key(r, fields, S_N, &seen, &field)) == 1) {
		err = state_field(r, field, &t);
		if (err)
			return err;
	}
	if (err)
		return err;
	for (field = 0; field < S_N; field++)
		if (must & ~seen & 1u << field)
			return bad(r, fields[field], "is missing");
	if (!(seen & 1u << S_REGION) == !(seen & spot) || (seen & spot && (seen & spot) != spot))
		return bad(r, "region", "must be given, or else call, slot and piece");
	if (!t.len || t.off + t.len < t.off)
		return bad(r, "bytes", "must not be 0, and the end must lie below 2^64");
	for (uint32_t i = first; i < r->c->nterms; i++) {
		struct rs_term *w = &r->c->terms[i];

		w->region = t.region;
		w->call = t.call;
		w->slot = t.slot;
		w->piece = t.piece;
	}
	/* what nobody could tell stays to be told by the run */
	return t.role == RS_ROLE_PRODUCT + 1 ? 0 : add_term(r, &t);
}

static int one_call(struct reader *r, void *arg)
{
	uint64_t *call;
	char *end;

	(void)arg;
	if (r->j.tok != RS_J_STRING || strncmp(r->j.str, "0x", 2) || r->j.str_len < 3 ||
	    r->j.str_len > 18 || strspn(r->j.str + 2, "0123456789abcdefABCDEF") + 2 != r->j.str_len)
		return bad(r, NULL, "must be a string of 0x and up to 16 hex digits");
	call = PUSH(r->c, calls);
	if (!call)
		return no_memory(r);
	*call = strtoull(r->j.str, &end, 16);
	return 0;
}

static int preserve(struct reader *r, struct rs_policy *policy)
{
	static const char *const fields[] = {"option", "restore"};
	uint32_t seen = 0;
	unsigned field;
	int err = want(r, "preserve", RS_J_OBJECT, "must be an object");

	if (err)
		return err;
	enter(r, "preserve");
	while ((err = get_key(r, fields, 2, &seen, &field)) == 1) {
		if (field == 0)
			err = get_name(r, "option", rs_option_names, RS_OPTIONS, &policy->option);
		else if (field == 1)
			err = get_name(r, "restore", rs_restore_names, RS_RESTORES,
				       &policy->restore);
		else
			err = skip(r);
		if (err)
			return err;
	}
	if (!err && !(seen & 1))
		err = bad(r, "option", "is missing");
	if (!err)
		r->depth--;
	return err;
}

enum { G_NAME, G_CALLS, G_COMPLETE, G_PRESERVE, G_STATE, G_NEEDED, G_REPLAYS = G_NEEDED, G_N };

static int segment_field(struct reader *r, unsigned field, struct segment *s)
{
	int err;

	switch (field) {
	case G_NAME:
		err = get_text(r, "name", &s->name);
		return err || *s->name ? err : bad(r, "name", "must not be empty");
	case G_CALLS:
		return each(r, "calls", one_call, NULL);
	case G_COMPLETE:
		err = want(r, "complete", RS_J_BOOL, "must be true or false");
		s->incomplete = !r->j.number;
		return err;
	case G_PRESERVE:
		return preserve(r, &s->policy);
	case G_STATE:
		return each(r, "state", one_state, NULL);
	case G_REPLAYS:
		err = want(r, "replays", RS_J_INTEGER, "must be a number");
		if (!err && (r->j.negative || r->j.number > UINT32_MAX))
			return bad(r, "replays", "is out of range");
		s->replays = (uint32_t)r->j.number;
		return err;
	default:
		return skip(r);
	}
}

static int one_segment(struct reader *r, void *arg)
{
	static const char *const fields[] = {"name",	 "calls", "complete",
					     "preserve", "state", "replays"};
	struct segment s = {.first_call = r->c->ncalls, .first_term = r->c->nterms}, *added;
	uint32_t seen = 0;
	unsigned field;
	int err;

	(void)arg;
	if (r->j.tok != RS_J_OBJECT)
		return bad(r, NULL, "must be an object");
	while ((err = get_key(r, fields, G_N, &seen, &field)) == 1) {
		err = segment_field(r, field, &s);
		if (err)
			return err;
	}
	if (err)
		return err;
	for (field = 0; field < G_NEEDED; field++)
		if (~seen & 1u << field)
			return bad(r, fields[field], "is missing");
	s.ncalls = r->c->ncalls - s.first_call;
	s.nterms = r->c->nterms - s.first_term;
	if (!s.ncalls && !s.incomplete)
		return bad(r, "calls", "must not be empty");
	added = PUSH(r->c, segments);
	if (!added)
		return no_memory(r);
	*added = s;
	return 0;
}

static int program(struct reader *r)
{
	static const char *const fields[] = {"fingerprint"};
	uint32_t seen = 0;
	unsigned field;
	int err = want(r, "program", RS_J_OBJECT, "must be an object");

	if (err)
		return err;
	enter(r, "program");
	while ((err = get_key(r, fields, 1, &seen, &field)) == 1) {
		err = field ? skip(r) : get_text(r, "fingerprint", &r->c->fingerprint);
		if (err)
			return err;
	}
	if (!err)
		r->depth--;
	return err;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Two of one name would contradict each other. */
static int unique(struct reader *r)
{
	const char **names = calloc(r->c->nsegments + 1u, sizeof(*names));
	int err = 0;

	if (!names)
		return no_memory(r);
	for (uint32_t i = 0; i < r->c->nsegments; i++)
		names[i] = r->c->segments[i].name;
	qsort(names, r->c->nsegments, sizeof(*names), by_name);
	for (uint32_t i = 1; !err && i < r->c->nsegments; i++)
		if (!strcmp(names[i], names[i - 1]))
			err = bad(r, "segments", "has two segments of one name");
	free(names);
	return err;
}

static int document(struct reader *r)
{
	static const char *const fields[] = {"contract_version", "program", "segments"};
	uint32_t seen = 0;
	unsigned field;
	int err = want(r, NULL, RS_J_OBJECT, "must be an object");

	while (!err && (err = get_key(r, fields, 3, &seen, &field)) == 1)
		err = field == 1   ? program(r)
		      : field == 2 ? each(r, "segments", one_segment, NULL)
				   : skip(r);
	if (!err && ~seen & 4)
		err = bad(r, "segments", "is missing");
	if (!err)
		err = next(r); /* nothing may follow */
	return err ? err : unique(r);
}

/* What else is in it can only be judged when its version is known. */
static int version(struct reader *r)
{
	static const char *const fields[] = {"contract_version"};
	uint32_t seen = 0;
	uint64_t v = 0;
	unsigned field;
	int err;

	r->j.keep = 1;
	err = want(r, NULL, RS_J_OBJECT, "must be an object");
	while (!err && (err = get_key(r, fields, 1, &seen, &field)) == 1) {
		if (field) {
			err = skip(r);
			continue;
		}
		err = get_number(r, "contract_version", UINT64_MAX, &v);
		if (!err && v > RS_CONTRACT_VERSION)
			return bad(
				r, "contract_version",
				"is newer than this library, which reads version 1: use a newer one, or learn the contract again");
		if (!err && v < RS_CONTRACT_VERSION)
			return bad(r, "contract_version",
				   "is older than any that exists: versions begin at 1");
	}
	return err || seen ? err : bad(r, "contract_version", "is missing");
}

int rs_contract_parse(char *text, size_t size, struct rs_contract **ret_contract,
		      struct rs_contract_error *ret_error)
{
	struct reader r = {.error = ret_error};
	int err;

	memset(ret_error, 0, sizeof(*ret_error));
	r.c = calloc(1, sizeof(*r.c));
	if (!r.c)
		return -ENOMEM;
	rs_jread_begin(&r.j, text, size);
	err = version(&r);
	if (!err) {
		rs_jread_begin(&r.j, text, size);
		err = document(&r);
	}
	if (err) {
		rs_contract_free(r.c);
		return r.no_memory ? -ENOMEM : -EINVAL;
	}
	*ret_contract = r.c;
	return 0;
}

/* --- the file --------------------------------------------------------------------------------- */

int rs_contract_load(const char *path, struct rs_contract **ret_contract,
		     struct rs_contract_error *ret_error)
{
	struct rs_contract *c = NULL;
	int saved = errno, err;
	char *text = NULL;
	size_t size = 0;

	memset(ret_error, 0, sizeof(*ret_error));
	err = rs_jread_file(path, RS_CONTRACT_MAX_SIZE, &text, &size);
	if (!err)
		err = rs_contract_parse(text, size, &c, ret_error);
	if (err) {
		free(text);
		if (!ret_error->text[0])
			snprintf(ret_error->text, sizeof(ret_error->text), "%s",
				 err == -ENODEV	 ? "not a regular file"
				 : err == -EFBIG ? "larger than 64 MiB"
						 : strerror(-err));
		errno = saved;
		return err;
	}
	c->owned = text;
	*ret_contract = c;
	errno = saved;
	return 0;
}

void rs_contract_free(struct rs_contract *c)
{
	if (!c)
		return;
	free(c->segments);
	free(c->calls);
	free(c->terms);
	free(c->owned);
	free(c);
}

/* --- the engine ------------------------------------------------------------------------------- */

uint64_t rs_contract_segments(const struct rs_contract *c)
{
	return c->nsegments;
}

uint64_t rs_contract_terms(const struct rs_contract *c)
{
	return c->nterms;
}

const char *rs_contract_fingerprint(const struct rs_contract *c)
{
	return c->fingerprint ? c->fingerprint : "";
}

static int apply_segment(const struct rs_contract *c, const struct segment *s, struct rs_engine *e)
{
	static const struct rs_policy conservative = {RS_OPTION_UNDO, RS_RESTORE_COPY};
	int err = rs_engine_policy(e, s->name, s->incomplete ? conservative : s->policy);

	for (uint32_t i = 0; !err && i < s->nterms; i++)
		err = rs_engine_term(e, s->name, &c->terms[s->first_term + i]);
	for (uint32_t i = 0; !err && !s->incomplete && i < s->ncalls; i++)
		err = rs_engine_expect_calls(e, s->name, c->calls[s->first_call + i]);
	if (!err && !s->incomplete && s->replays)
		err = rs_engine_expect_replays(e, s->name, s->replays);
	return err;
}

int rs_contract_apply(const struct rs_contract *c, struct rs_engine *e)
{
	int err = rs_engine_expect_none(e);

	for (uint32_t i = 0; !err && i < c->nsegments; i++)
		err = apply_segment(c, &c->segments[i], e);
	return err;
}
