/* SPDX-License-Identifier: MIT */
/*
 * See contract.h. One function for each level of the document, with jdoc.h.
 */
#include "tracker/contract.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_TERMS   4000000u
#define MOST_ALIASES 4000000u

const char *const rs_option_names[RS_OPTIONS] = {"undo",    "free",  "whole",
						 "regions", "pages", "retain"};
const char *const rs_restore_names[RS_RESTORES] = {"copy", "swap", "remap"};

struct segment {
	const char *name;
	struct rs_policy policy;
	uint8_t incomplete;
	uint32_t replays;  /* most of a forward; 0: not told */
	uint64_t forwards; /* seen when it was learned; 0: not told */
	uint32_t first_call, ncalls, first_term, nterms, first_alias, naliases;
	uint8_t all_aliases; /* there are no others */
};

struct alias {
	struct rs_alias is;
	uint64_t forwards; /* in which it was seen; 0: not told */
};

struct rs_contract {
	char *owned; /* the file */
	const char *fingerprint;
	struct segment *segments;
	uint64_t *calls;
	struct rs_term *terms;
	struct alias *aliases;
	uint32_t nsegments, ncalls, nterms, naliases;
	uint32_t room_segments, room_calls, room_terms, room_aliases;
};

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

/* --- the document ----------------------------------------------------------------------------- */

static int add_term(struct rs_jdoc *d, const struct rs_term *term)
{
	struct rs_contract *c = d->to;
	struct rs_term *t;

	if (c->nterms >= MOST_TERMS)
		return rs_jdoc_bad(d, NULL, "too many state entries and windows");
	t = PUSH(c, terms);
	if (!t)
		return rs_jdoc_no_memory(d);
	*t = *term;
	return 0;
}

/* [offset, bytes]; what memory it is in is known when the state's end has been read. */
static int one_window(struct rs_jdoc *d, void *arg)
{
	struct rs_term w = {.window = 1};
	int err;

	(void)arg;
	if (d->j.tok != RS_J_ARRAY)
		return rs_jdoc_bad(d, NULL, "must be [offset, bytes]");
	err = rs_jdoc_number(d, NULL, UINT64_MAX, &w.off);
	if (!err)
		err = rs_jdoc_number(d, NULL, UINT64_MAX, &w.len);
	if (!err && (!w.len || w.off + w.len < w.off))
		err = rs_jdoc_bad(d, NULL, "must have bytes, and end below 2^64");
	if (!err)
		err = rs_jdoc_want(d, NULL, RS_J_ARRAY_END, "must be [offset, bytes]");
	return err ? err : add_term(d, &w);
}

enum { S_REGION, S_CALL, S_SLOT, S_PIECE, S_OFFSET, S_BYTES, S_ROLE, S_ENTRY, S_WINDOWS, S_N };

static int state_field(struct rs_jdoc *d, unsigned field, struct rs_term *t)
{
	static const char *const roles[] = {"state", "product", "unknown"};
	static const char *const entries[] = {"digest"};
	uint64_t n = 0;
	uint8_t entry;
	int err;

	switch (field) {
	case S_REGION:
		return rs_jdoc_text(d, "region", &t->region);
	case S_CALL:
		err = rs_jdoc_number(d, "call", UINT32_MAX, &n);
		t->call = (uint32_t)n;
		return err;
	case S_SLOT:
		err = rs_jdoc_number(d, "slot", UINT16_MAX, &n);
		t->slot = (uint16_t)n;
		return err;
	case S_PIECE:
		err = rs_jdoc_number(d, "piece", UINT16_MAX, &n);
		t->piece = (uint16_t)n;
		return err;
	case S_OFFSET:
		return rs_jdoc_number(d, "offset", UINT64_MAX, &t->off);
	case S_BYTES:
		return rs_jdoc_number(d, "bytes", UINT64_MAX, &t->len);
	case S_ROLE:
		return rs_jdoc_name(d, "role", roles, 3, &t->role);
	case S_ENTRY:
		return rs_jdoc_name(d, "entry", entries, 1, &entry);
	case S_WINDOWS:
		return rs_jdoc_each(d, "windows", one_window, NULL);
	default:
		return rs_jdoc_skip(d);
	}
}

static int one_state(struct rs_jdoc *d, void *arg)
{
	struct rs_contract *c = d->to;
	static const char *const fields[] = {"region", "call", "slot",	"piece",  "offset",
					     "bytes",  "role", "entry", "windows"};
	const uint32_t spot = 1u << S_CALL | 1u << S_SLOT | 1u << S_PIECE;
	const uint32_t must = 1u << S_OFFSET | 1u << S_BYTES | 1u << S_ROLE;
	struct rs_term t = {0};
	uint32_t first = c->nterms, seen = 0;
	unsigned field;
	int err;

	(void)arg;
	if (d->j.tok != RS_J_OBJECT)
		return rs_jdoc_bad(d, NULL, "must be an object");
	while ((err = rs_jdoc_key(d, fields, S_N, &seen, &field)) == 1) {
		err = state_field(d, field, &t);
		if (err)
			return err;
	}
	if (err)
		return err;
	err = rs_jdoc_seen(d, fields, S_N, must, seen);
	if (err)
		return err;
	if (!(seen & 1u << S_REGION) == !(seen & spot) || (seen & spot && (seen & spot) != spot))
		return rs_jdoc_bad(d, "region", "must be given, or else call, slot and piece");
	if (!t.len || t.off + t.len < t.off)
		return rs_jdoc_bad(d, "bytes", "must not be 0, and the end must lie below 2^64");
	for (uint32_t i = first; i < c->nterms; i++) {
		struct rs_term *w = &c->terms[i];

		w->region = t.region;
		w->call = t.call;
		w->slot = t.slot;
		w->piece = t.piece;
	}
	/* what nobody could tell stays to be told by the run */
	return t.role == RS_ROLE_PRODUCT + 1 ? 0 : add_term(d, &t);
}

static int one_call(struct rs_jdoc *d, void *arg)
{
	struct rs_contract *c = d->to;
	uint64_t ident = 0, *call;
	int err = rs_jdoc_is_hex(d, NULL, &ident);

	(void)arg;
	if (err)
		return err;
	call = PUSH(c, calls);
	if (!call)
		return rs_jdoc_no_memory(d);
	*call = ident;
	return 0;
}

static int preserve(struct rs_jdoc *d, struct rs_policy *policy)
{
	static const char *const fields[] = {"option", "restore"};
	uint32_t seen = 0;
	unsigned field;
	int err = rs_jdoc_enter(d, "preserve");

	if (err)
		return err;
	while ((err = rs_jdoc_key(d, fields, 2, &seen, &field)) == 1) {
		if (field == 0)
			err = rs_jdoc_name(d, "option", rs_option_names, RS_OPTIONS,
					   &policy->option);
		else if (field == 1)
			err = rs_jdoc_name(d, "restore", rs_restore_names, RS_RESTORES,
					   &policy->restore);
		else
			err = rs_jdoc_skip(d);
		if (err)
			return err;
	}
	if (!err)
		err = rs_jdoc_seen(d, fields, 2, 1, seen);
	if (!err)
		rs_jdoc_leave(d);
	return err;
}

/* [call, slot, piece, the other slot, the other piece, bytes], as contracts of before have them: of one call. */
static int old_alias(struct rs_jdoc *d, struct rs_alias *is)
{
	static const uint64_t most[6] = {UINT32_MAX, UINT16_MAX, UINT16_MAX,
					 UINT16_MAX, UINT16_MAX, UINT64_MAX};
	uint64_t v[6] = {0};
	int err = 0;

	for (unsigned i = 0; i < 6 && !err; i++)
		err = rs_jdoc_number(d, NULL, most[i], &v[i]);
	*is = (struct rs_alias){.call = (uint32_t)v[0],
				.slot = (uint16_t)v[1],
				.piece = (uint16_t)v[2],
				.other_call = (uint32_t)v[0],
				.other_slot = (uint16_t)v[3],
				.other_piece = (uint16_t)v[4]};
	return err ? err : rs_jdoc_want(d, NULL, RS_J_ARRAY_END, "must have six numbers");
}

enum { A_CALL, A_SLOT, A_PIECE, A_OTHER, A_FORWARDS, A_N };

static int alias_field(struct rs_jdoc *d, unsigned field, struct alias *a);

/* The members of an alias, or of its other place: until the object's end. */
static int alias_fields(struct rs_jdoc *d, struct alias *a, int is_other)
{
	static const char *const fields[] = {"call", "slot", "piece", "other", "forwards"};
	uint32_t seen = 0;
	unsigned field;
	int err;

	while ((err = rs_jdoc_key(d, fields, is_other ? A_OTHER : A_N, &seen, &field)) == 1) {
		err = is_other && field == A_OTHER ? rs_jdoc_skip(d) : alias_field(d, field, a);
		if (err)
			return err;
	}
	return err ? err : rs_jdoc_seen(d, fields, is_other ? A_OTHER : A_FORWARDS, ~0u, seen);
}

static int alias_field(struct rs_jdoc *d, unsigned field, struct alias *a)
{
	struct alias other = {0};
	uint64_t n = 0;
	int err;

	switch (field) {
	case A_CALL:
		err = rs_jdoc_number(d, "call", UINT32_MAX, &n);
		a->is.call = (uint32_t)n;
		return err;
	case A_SLOT:
		err = rs_jdoc_number(d, "slot", UINT16_MAX, &n);
		a->is.slot = (uint16_t)n;
		return err;
	case A_PIECE:
		err = rs_jdoc_number(d, "piece", UINT16_MAX, &n);
		a->is.piece = (uint16_t)n;
		return err;
	case A_OTHER:
		err = rs_jdoc_enter(d, "other") ?: alias_fields(d, &other, 1);
		if (err)
			return err;
		rs_jdoc_leave(d);
		a->is.other_call = other.is.call;
		a->is.other_slot = other.is.slot;
		a->is.other_piece = other.is.piece;
		return 0;
	case A_FORWARDS:
		return rs_jdoc_number(d, "forwards", UINT64_MAX, &a->forwards);
	default:
		return rs_jdoc_skip(d);
	}
}

static int one_alias(struct rs_jdoc *d, void *arg)
{
	struct rs_contract *c = d->to;
	struct alias a = {0}, *added;
	int err;

	(void)arg;
	if (d->j.tok == RS_J_ARRAY)
		err = old_alias(d, &a.is);
	else if (d->j.tok == RS_J_OBJECT)
		err = alias_fields(d, &a, 0);
	else
		err = rs_jdoc_bad(d, NULL, "must be an object");
	if (err)
		return err;
	if (a.is.call == a.is.other_call && a.is.slot == a.is.other_slot &&
	    a.is.piece == a.is.other_piece)
		return rs_jdoc_bad(d, "other", "must be another place");
	if (c->naliases >= MOST_ALIASES)
		return rs_jdoc_bad(d, NULL, "is one too many");
	added = PUSH(c, aliases);
	if (!added)
		return rs_jdoc_no_memory(d);
	*added = a;
	return 0;
}

enum {
	G_NAME,
	G_CALLS,
	G_COMPLETE,
	G_PRESERVE,
	G_STATE,
	G_NEEDED,
	G_REPLAYS = G_NEEDED,
	G_FORWARDS,
	G_ALIASES,
	G_ALL_ALIASES,
	G_N
};

static int segment_field(struct rs_jdoc *d, unsigned field, struct segment *s)
{
	uint8_t complete = 0;
	uint64_t n = 0;
	int err;

	switch (field) {
	case G_NAME:
		return rs_jdoc_text(d, "name", &s->name);
	case G_CALLS:
		return rs_jdoc_each(d, "calls", one_call, NULL);
	case G_COMPLETE:
		err = rs_jdoc_flag(d, "complete", &complete);
		s->incomplete = !complete;
		return err;
	case G_PRESERVE:
		return preserve(d, &s->policy);
	case G_STATE:
		return rs_jdoc_each(d, "state", one_state, NULL);
	case G_REPLAYS:
		err = rs_jdoc_number(d, "replays", UINT32_MAX, &n);
		s->replays = (uint32_t)n;
		return err;
	case G_FORWARDS:
		return rs_jdoc_number(d, "forwards", UINT64_MAX, &s->forwards);
	case G_ALIASES:
		return rs_jdoc_each(d, "aliases", one_alias, NULL);
	case G_ALL_ALIASES:
		return rs_jdoc_flag(d, "aliases_complete", &s->all_aliases);
	default:
		return rs_jdoc_skip(d);
	}
}

static int one_segment(struct rs_jdoc *d, void *arg)
{
	struct rs_contract *c = d->to;
	static const char *const fields[] = {"name",	 "calls",   "complete",
					     "preserve", "state",   "replays",
					     "forwards", "aliases", "aliases_complete"};
	struct segment s = {.first_call = c->ncalls,
			    .first_term = c->nterms,
			    .first_alias = c->naliases},
		       *added;
	uint32_t seen = 0;
	unsigned field;
	int err;

	(void)arg;
	if (d->j.tok != RS_J_OBJECT)
		return rs_jdoc_bad(d, NULL, "must be an object");
	while ((err = rs_jdoc_key(d, fields, G_N, &seen, &field)) == 1) {
		err = segment_field(d, field, &s);
		if (err)
			return err;
	}
	if (err)
		return err;
	err = rs_jdoc_seen(d, fields, G_NEEDED, ~0u, seen);
	if (err)
		return err;
	s.ncalls = c->ncalls - s.first_call;
	s.nterms = c->nterms - s.first_term;
	s.naliases = c->naliases - s.first_alias;
	if (!s.ncalls && !s.incomplete)
		return rs_jdoc_bad(d, "calls", "must not be empty");
	added = PUSH(c, segments);
	if (!added)
		return rs_jdoc_no_memory(d);
	*added = s;
	return 0;
}

static int program(struct rs_jdoc *d)
{
	static const char *const fields[] = {"fingerprint"};
	struct rs_contract *c = d->to;
	uint32_t seen = 0;
	unsigned field;
	int err = rs_jdoc_enter(d, "program");

	if (err)
		return err;
	while ((err = rs_jdoc_key(d, fields, 1, &seen, &field)) == 1) {
		err = field ? rs_jdoc_skip(d) : rs_jdoc_text(d, "fingerprint", &c->fingerprint);
		if (err)
			return err;
	}
	if (!err)
		rs_jdoc_leave(d);
	return err;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Two of one name would contradict each other. */
static int unique(struct rs_jdoc *d)
{
	struct rs_contract *c = d->to;
	const char **names = calloc(c->nsegments + 1u, sizeof(*names));
	int err = 0;

	if (!names)
		return rs_jdoc_no_memory(d);
	for (uint32_t i = 0; i < c->nsegments; i++)
		names[i] = c->segments[i].name;
	qsort(names, c->nsegments, sizeof(*names), by_name);
	for (uint32_t i = 1; !err && i < c->nsegments; i++)
		if (!strcmp(names[i], names[i - 1]))
			err = rs_jdoc_bad(d, "segments", "has two segments of one name");
	free(names);
	return err;
}

static int document(struct rs_jdoc *d)
{
	static const char *const fields[] = {"contract_version", "program", "segments"};
	uint32_t seen = 0;
	unsigned field;
	int err = rs_jdoc_want(d, NULL, RS_J_OBJECT, "must be an object");

	while (!err && (err = rs_jdoc_key(d, fields, 3, &seen, &field)) == 1)
		err = field == 1   ? program(d)
		      : field == 2 ? rs_jdoc_each(d, "segments", one_segment, NULL)
				   : rs_jdoc_skip(d);
	if (!err && ~seen & 4)
		err = rs_jdoc_bad(d, "segments", "is missing");
	if (!err)
		err = rs_jdoc_next(d); /* nothing may follow */
	return err ? err : unique(d);
}

/* What else is in it can only be judged when its version is known. */
static int version(struct rs_jdoc *d)
{
	static const char *const fields[] = {"contract_version"};
	uint32_t seen = 0;
	uint64_t v = 0;
	unsigned field;
	int err;

	err = rs_jdoc_want(d, NULL, RS_J_OBJECT, "must be an object");
	while (!err && (err = rs_jdoc_key(d, fields, 1, &seen, &field)) == 1) {
		if (field) {
			err = rs_jdoc_skip(d);
			continue;
		}
		err = rs_jdoc_number(d, "contract_version", UINT64_MAX, &v);
		if (!err && v > RS_CONTRACT_VERSION)
			return rs_jdoc_bad(
				d, "contract_version",
				"is newer than this library, which reads version 1: use a newer one, or learn the contract again");
		if (!err && v < RS_CONTRACT_VERSION)
			return rs_jdoc_bad(d, "contract_version",
					   "is older than any that exists: versions begin at 1");
	}
	return err || seen ? err : rs_jdoc_bad(d, "contract_version", "is missing");
}

int rs_contract_parse(char *text, size_t size, struct rs_contract **ret_contract,
		      struct rs_jdoc_error *ret_error)
{
	struct rs_contract *c = calloc(1, sizeof(*c));
	struct rs_jdoc d;
	int err;

	memset(ret_error, 0, sizeof(*ret_error));
	if (!c)
		return -ENOMEM;
	rs_jdoc_begin(&d, text, size, 1, c, ret_error);
	err = version(&d);
	if (!err) {
		rs_jdoc_begin(&d, text, size, 0, c, ret_error);
		err = document(&d);
	}
	if (err) {
		rs_contract_free(c);
		return rs_jdoc_failed(&d);
	}
	*ret_contract = c;
	return 0;
}

int rs_contract_load(const char *path, struct rs_contract **ret_contract,
		     struct rs_jdoc_error *ret_error)
{
	int saved = errno, err;
	char *text = NULL;
	size_t size = 0;

	err = rs_jdoc_load(path, RS_CONTRACT_MAX_SIZE, "larger than 64 MiB", &text, &size,
			   ret_error);
	if (err)
		return err;
	err = rs_contract_parse(text, size, ret_contract, ret_error);
	if (err == -ENOMEM)
		snprintf(ret_error->text, sizeof(ret_error->text), "%s", strerror(ENOMEM));
	errno = saved;
	if (err)
		free(text);
	else
		(*ret_contract)->owned = text;
	return err;
}

void rs_contract_free(struct rs_contract *c)
{
	if (!c)
		return;
	free(c->segments);
	free(c->calls);
	free(c->terms);
	free(c->aliases);
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

/* What was seen in every forward must be there again. */
static int apply_aliases(const struct rs_contract *c, const struct segment *s, struct rs_engine *e)
{
	int err = 0;

	for (uint32_t i = 0; !err && i < s->naliases; i++) {
		const struct alias *a = &c->aliases[s->first_alias + i];
		struct rs_alias is = a->is;

		is.always = a->forwards && a->forwards >= s->forwards;
		err = rs_engine_alias(e, s->name, &is);
	}
	if (!err && s->all_aliases)
		err = rs_engine_expect_no_other_alias(e, s->name);
	return err;
}

static int apply_segment(const struct rs_contract *c, const struct segment *s, struct rs_engine *e)
{
	static const struct rs_policy conservative = {RS_OPTION_UNDO, RS_RESTORE_COPY};
	int err = rs_engine_policy(e, s->name, s->incomplete ? conservative : s->policy);

	for (uint32_t i = 0; !err && i < s->nterms; i++)
		err = rs_engine_term(e, s->name, &c->terms[s->first_term + i]);
	for (uint32_t i = 0; !err && !s->incomplete && i < s->ncalls; i++)
		err = rs_engine_expect_calls(e, s->name, c->calls[s->first_call + i]);
	if (!err && !s->incomplete)
		err = apply_aliases(c, s, e);
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
