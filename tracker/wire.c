/* SPDX-License-Identifier: MIT */
/*
 * The shared memory's traffic: plans one way, measured costs the other.
 *
 * Publishing: the planner writes the plan of generation g into buffer g & 1 while programs read the other one, and then
 * sets `generation`. A program that sleeps over two publications finds its buffer written under its hands: the buffer's
 * sequence number, odd while it is written, tells it so. The digest is for damage, not for this.
 *
 * Order: every load of a shared word is an acquire, every store a release. So a reader that sees any word of a new plan
 * also sees the odd sequence number before it, and reads the number for the second time after all words; no fence is
 * needed, and a thread sanitizer understands it. Words are read once, into memory of our own, and judged there: whoever
 * shares the area may change it at any time.
 *
 * A planner that dies leaves the generation before, or the new one, whole. One that goes on with an area in which a
 * predecessor died (tests do that) makes the next odd number from whatever it finds.
 *
 * RS_WIRE_STEP(word) stands before each access, for tests/unit/test_wire_steps.c, which runs both sides in every order.
 * Callers: the shim, the planner, any thread; of a ring's either end, one thread at a time. No locks, nothing waits.
 */
#include "tracker/wire.h"

#include <errno.h>
#include <string.h>

#include "tracker/digest.h"

#ifndef RS_WIRE_STEP
#define RS_WIRE_STEP(word) ((void)(word))
#endif

#define WORDS(bytes) ((bytes) / sizeof(uint64_t))

_Static_assert(sizeof(struct rs_plan_head) % 8 == 0 && sizeof(struct rs_plan_entry) % 8 == 0 &&
		       sizeof(struct rs_wire_record) % 8 == 0,
	       "copied by words");
_Static_assert((RS_WIRE_RECORDS & (RS_WIRE_RECORDS - 1)) == 0, "indices are masked");

static uint64_t peek(const void *word)
{
	RS_WIRE_STEP(word);
	return __atomic_load_n((const uint64_t *)word, __ATOMIC_ACQUIRE);
}

static void poke(void *word, uint64_t value)
{
	RS_WIRE_STEP(word);
	__atomic_store_n((uint64_t *)word, value, __ATOMIC_RELEASE);
}

static void peek_all(void *to, const void *from, uint64_t bytes)
{
	for (uint64_t i = 0; i < WORDS(bytes); i++)
		((uint64_t *)to)[i] = peek((const uint64_t *)from + i);
}

static void poke_all(void *to, const void *from, uint64_t bytes)
{
	for (uint64_t i = 0; i < WORDS(bytes); i++)
		poke((uint64_t *)to + i, ((const uint64_t *)from)[i]);
}

static uint64_t mix_all(uint64_t h, const void *words, uint64_t bytes)
{
	for (uint64_t i = 0; i < WORDS(bytes); i++)
		h = rs_digest_mix((h + RS_DIGEST_K) ^ ((const uint64_t *)words)[i]);
	return h;
}

static uint64_t plan_digest(const struct rs_plan_head *head, const struct rs_plan_entry *entries)
{
	return mix_all(mix_all(0, head, sizeof(*head)), entries, head->n * sizeof(*entries));
}

/* --- plans ---------------------------------------------------------------------------------------- */

uint64_t rs_wire_publish(struct rs_wire *w, struct rs_plan_head *head,
			 const struct rs_plan_entry *entries)
{
	struct rs_wire_plan *p;
	uint64_t odd;

	if (head->n > RS_PLAN_MAX)
		return 0;
	head->generation = peek(&w->generation) + 1;
	/* 0 is for "none yet"; only a damaged area comes here. */
	if (!head->generation)
		head->generation = 2;
	p = &w->plan[head->generation & 1];
	odd = (peek(&p->sequence) + 1) | 1;
	poke(&p->sequence, odd);
	poke_all(&p->head, head, sizeof(*head));
	poke_all(p->entry, entries, head->n * sizeof(*entries));
	poke(&p->digest, plan_digest(head, entries));
	poke(&p->sequence, odd + 1);
	poke(&w->generation, head->generation);
	return head->generation;
}

int rs_wire_take(const struct rs_wire *w, uint64_t have, struct rs_plan_head *ret_head,
		 struct rs_plan_entry *entries)
{
	uint64_t generation = peek(&w->generation), sequence, digest;
	const struct rs_wire_plan *p = &w->plan[generation & 1];
	struct rs_plan_head head;

	if (!generation || generation == have)
		return 0;
	sequence = peek(&p->sequence);
	if (sequence & 1)
		return -EAGAIN;
	peek_all(&head, &p->head, sizeof(head));
	if (head.n <= RS_PLAN_MAX)
		peek_all(entries, p->entry, head.n * sizeof(*entries));
	digest = peek(&p->digest);
	if (peek(&p->sequence) != sequence)
		return -EAGAIN;
	if (head.n > RS_PLAN_MAX || digest != plan_digest(&head, entries))
		return -EPROTO;
	/* Whole, but newer than was looked for: it is published in a moment, or has been. */
	if (head.generation != generation)
		return peek(&w->generation) != generation ? -EAGAIN : -EPROTO;
	*ret_head = head;
	return 1;
}

/* --- rings ---------------------------------------------------------------------------------------- */

struct rs_wire_ring *rs_wire_claim(struct rs_wire *w)
{
	uint64_t n = peek(&w->client.rings);

	do {
		if (n >= RS_WIRE_RINGS) {
			atomic_fetch_add(&w->client.lost_threads, 1);
			return NULL;
		}
	} while (!atomic_compare_exchange_weak(&w->client.rings, &n, n + 1));
	return &w->ring[n];
}

int rs_wire_tell(struct rs_wire_ring *r, const struct rs_wire_record *record)
{
	uint64_t head = peek(&r->head);

	/* A tail in front of the head, which no planner writes, looks like a full ring. */
	if (head - peek(&r->tail) >= RS_WIRE_RECORDS) {
		poke(&r->lost, peek(&r->lost) + 1);
		return -ENOSPC;
	}
	poke_all(&r->record[head & (RS_WIRE_RECORDS - 1)], record, sizeof(*record));
	poke(&r->head, head + 1);
	return 0;
}

/* No device has more, no run lasts longer: what is above was not measured. */
#define MOST_BYTES (UINT64_C(1) << 48)
#define MOST_NS	   (UINT64_C(1) << 60)
#define MOST_COUNT (UINT64_C(1) << 48)

static int sane_time(const struct rs_cost_time *t)
{
	return t->median_ns <= MOST_NS && t->error_ns <= MOST_NS && t->n <= MOST_COUNT;
}

static int all_below(const uint64_t *v, unsigned n, uint64_t most)
{
	for (unsigned i = 0; i < n; i++)
		if (v[i] > most)
			return 0;
	return 1;
}

static int sane_cost(const struct rs_cost *c)
{
	const uint64_t bytes[] = {
		c->live_forward,    c->peak_forward,  c->live_replay,	c->end_replay,
		c->peak_backward,   c->whole_bytes,   c->kept_bytes,	c->own_bytes,
		c->draw_bytes,	    c->product_bytes, c->state_bytes,	c->region_bytes,
		c->whole_pieces,    c->kept_pieces,   c->own_pieces,	c->steps,
		c->replays,	    c->flags,	      c->region_pieces, c->compared_bytes,
		c->compared_pieces, c->remap_bytes,   c->remap_pieces};

	return c->segment[0] && memchr(c->segment, 0, sizeof(c->segment)) &&
	       c->invocation <= UINT32_MAX && c->order < RS_PLAN_MAX && sane_time(&c->forward) &&
	       sane_time(&c->replay) && sane_time(&c->forward_busy) && sane_time(&c->replay_busy) &&
	       all_below(bytes, sizeof(bytes) / sizeof(*bytes), MOST_BYTES);
}

static int sane_share(const struct rs_cost_share *s)
{
	if (!s->n || s->n > RS_COST_SHARERS || s->bytes > MOST_BYTES || s->pieces > MOST_COUNT)
		return 0;
	for (uint32_t i = 0; i < s->n; i++)
		if (s->order[i] >= RS_PLAN_MAX || (i && s->order[i] <= s->order[i - 1]))
			return 0;
	return 1;
}

static int sane_rate(const struct rs_cost_rate *r)
{
	return r->kind < RS_RATES && r->n <= MOST_COUNT && r->bytes <= MOST_NS &&
	       r->each_ns <= MOST_NS && r->gib_ns <= MOST_NS;
}

static int sane(const struct rs_wire_record *record)
{
	switch (record->kind) {
	case RS_WIRE_COST:
		return sane_cost(&record->u.cost);
	case RS_WIRE_SHARE:
		return sane_share(&record->u.share);
	case RS_WIRE_RATE:
		return sane_rate(&record->u.rate);
	case RS_WIRE_SHARES_BEGIN:
	case RS_WIRE_FORGET:
		return 1;
	default:
		return 0;
	}
}

int rs_wire_hear(struct rs_wire_ring *r, struct rs_wire_record *ret_record)
{
	uint64_t tail = peek(&r->tail), head = peek(&r->head);
	struct rs_wire_record record;

	/* Nobody who tells gets there: what lies between is not known, and skipped. */
	if (head - tail > RS_WIRE_RECORDS) {
		poke(&r->tail, head);
		return 0;
	}
	while (tail != head) {
		peek_all(&record, &r->record[tail & (RS_WIRE_RECORDS - 1)], sizeof(record));
		poke(&r->tail, ++tail);
		if (sane(&record)) {
			*ret_record = record;
			return 1;
		}
	}
	return 0;
}
