/* SPDX-License-Identifier: MIT */
/*
 * What the shim does with rs_call.calm (shim/call.h, shim/memo.h), for tests of the engine: a call like an earlier
 * one of the thread, on the same allocations, that needed nothing at a moment which is still the moment is not
 * described; at another moment the engine is asked once more (rs_engine_again). Keyed by allocations where the shim has addresses,
 * so that it is taken more often. A call that is like none is asked about by its addresses alone, each second time.
 */
#ifndef TESTS_CALM_H
#define TESTS_CALM_H

#include "tracker/engine.h"

#define CALM_ENTRIES  512u
#define CALM_ACCESSES 4u

struct calm {
	struct {
		uint64_t moment;
		const struct rs_thread *t;
		struct rs_queue q;
		unsigned n;
		uint64_t at[CALM_ACCESSES]; /* an allocation's address, and the direction */
	} entry[CALM_ENTRIES];
	unsigned long taken, again, kept, calls, reached;
	unsigned skipped; /* the call between before and after was not described */
};

static inline unsigned calm_key(struct rs_engine *e, const struct rs_call *c,
				uint64_t at[CALM_ACCESSES])
{
	uint64_t h = c->q.stream + c->naccess, base, bytes;

	for (unsigned i = 0; i < c->naccess; i++) {
		if (!rs_engine_lookup(e, c->access[i].addr, &base, &bytes))
			base = c->access[i].addr;
		at[i] = base << 2 | c->access[i].dir;
		h = (h ^ at[i]) * 0x9e3779b97f4a7c15ull;
	}
	return (unsigned)(h >> 40) % CALM_ENTRIES;
}

/* The shim tells what its own look-ups have found; now and then nobody has looked. */
static inline void calm_look_up(struct calm *m, struct rs_engine *e, struct rs_call *c)
{
	struct rs_access *x = (struct rs_access *)c->access;
	uint64_t base, bytes;

	if (m->calls++ % 4 == 3)
		return;
	c->generation = rs_engine_generation(e);
	for (unsigned i = 0; i < c->naccess; i++)
		x[i].memory = rs_engine_lookup(e, x[i].addr, &base, &bytes);
}

/* The forms that fit such a call: a copy's, or that of a kernel of which nothing is known but its arguments. */
static inline int calm_is_copy(const struct rs_call *c)
{
	return c->naccess == 2 && c->access[0].dir == RS_WRITE && c->access[1].dir == RS_READ &&
	       (c->access[0].whole || c->access[0].bytes) &&
	       (c->access[1].whole || c->access[1].bytes);
}

static inline int calm_is_scanned(const struct rs_call *c)
{
	unsigned i;

	for (i = 0; i < c->naccess; i++)
		if (c->access[i].dir != (RS_READ | RS_WRITE))
			break;
	return i && i == c->naccess;
}

static inline uint64_t calm_scan(struct rs_engine *e, struct rs_thread *t, const struct rs_call *c,
				 int scattered)
{
	uint64_t at[CALM_ACCESSES];
	void *places[CALM_ACCESSES];

	for (unsigned i = 0; i < c->naccess; i++) {
		at[i] = c->access[i].addr;
		places[i] = &at[i];
	}
	return scattered ? rs_engine_again_scattered(e, t, c->q, places, c->naccess)
			 : rs_engine_again_words(e, t, c->q, at, c->naccess);
}

/* By what it reaches; a moment, or 0. */
static inline uint64_t calm_reach(const struct calm *m, struct rs_engine *e, struct rs_thread *t,
				  const struct rs_call *c)
{
	struct rs_reach r[CALM_ACCESSES];
	uint64_t at[CALM_ACCESSES];
	unsigned n = 0;

	if (m->calls % 4 == 1 && calm_is_copy(c))
		return rs_engine_again_copy(e, t, c->q, c->access[0].addr, c->access[1].addr);
	if (m->calls % 4 == 1 && calm_is_scanned(c))
		return calm_scan(e, t, c, m->calls % 8 == 1);
	for (unsigned i = 0; i < c->naccess; i++) {
		const struct rs_access *x = &c->access[i];

		if (!x->whole && !x->bytes)
			continue;
		at[n] = x->addr;
		r[n] = (struct rs_reach){0, x->whole ? 1 : (int64_t)x->bytes, 8 * n, x->dir};
		n++;
	}
	return rs_engine_again_reach(e, t, c->q, at, r, n);
}

static inline void calm_before(struct calm *m, struct rs_engine *e, struct rs_thread *t,
			       struct rs_call *c)
{
	int fits =
		c->naccess <= CALM_ACCESSES && !c->capturing && !c->everything && !c->synchronous;
	uint64_t at[CALM_ACCESSES];
	unsigned i = fits ? calm_key(e, c, at) : 0, k = 0, is_new = 1;

	m->skipped = 0;
	calm_look_up(m, e, c);
	if (fits && m->entry[i].moment && m->entry[i].t == t && m->entry[i].n == c->naccess &&
	    m->entry[i].q.stream == c->q.stream && m->entry[i].q.ctx == c->q.ctx) {
		while (k < c->naccess && at[k] == m->entry[i].at[k])
			k++;
		if (k == c->naccess && m->entry[i].moment == rs_engine_moment(e)) {
			m->taken++;
			m->skipped = 1;
			return;
		}
		is_new = k < c->naccess;
		if (!is_new) {
			uint64_t now =
				rs_engine_again(e, t, c->q, c->access, c->naccess, c->generation);

			if (now) {
				m->entry[i].moment = now;
				m->again++;
				m->skipped = 1;
				return;
			}
		}
	}
	c->calm = 0;
	if (fits && is_new && m->calls % 2)
		c->calm = calm_reach(m, e, t, c);
	if (c->calm) {
		m->reached++;
		m->skipped = 1;
	} else {
		rs_engine_before(e, t, c);
	}
	if (!c->calm || !fits)
		return;
	m->kept += !m->skipped;
	m->entry[i].moment = c->calm;
	m->entry[i].t = t;
	m->entry[i].q = c->q;
	m->entry[i].n = c->naccess;
	for (k = 0; k < c->naccess; k++)
		m->entry[i].at[k] = at[k];
}

static inline void calm_after(struct calm *m, struct rs_engine *e, struct rs_thread *t,
			      struct rs_call *c)
{
	if (!m->skipped)
		rs_engine_after(e, t, c, 1);
	m->skipped = 0;
}

#endif
