/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: a shared area in which the other side has written whatever it likes, for the readers of both sides.
 * The input is a list of writes of 9 bytes each, a place and eight bytes, into an area that holds a plan and a record;
 * what is left of it is laid over a ring's first records. Then: a program checks and takes, the planner hears all rings.
 * Whatever they hand on keeps the bounds that the rest of the code counts on. No state between inputs, no locks.
 */
#include "tracker/wire.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct rs_wire *w;
static struct rs_plan_entry *taken;

static void require(int good)
{
	if (!good)
		abort();
}

/* Places that matter: the first bytes of the area, of both plans, and of each ring. */
static uint64_t *place(uint8_t p)
{
	if (p < 128)
		return (uint64_t *)w + p;
	if (p < 160)
		return (uint64_t *)&w->plan[p & 1] + ((p - 128) >> 1);
	if (p < 192)
		return (uint64_t *)&w->plan[p & 1].digest;
	return (uint64_t *)&w->ring[p & (RS_WIRE_RINGS - 1)] + ((p - 192) >> 4) * 4;
}

static void prepare(void)
{
	struct rs_plan_entry entry = {.name = 5, .forward = 7};
	struct rs_plan_head head = {.from_step = 3, .n = 1};
	struct rs_wire_record record = {.kind = RS_WIRE_RATE};

	memset(w, 0, offsetof(struct rs_wire, plan[0].entry[2]));
	memset(&w->plan[0].digest, 0, 8);
	memset(&w->plan[1], 0, offsetof(struct rs_wire_plan, entry[2]));
	for (unsigned i = 0; i < RS_WIRE_RINGS; i++)
		w->ring[i].head = w->ring[i].tail = w->ring[i].lost = 0;
	rs_wire_init(w, 1);
	rs_wire_publish(w, &head, &entry);
	rs_wire_tell(rs_wire_claim(w), &record);
}

static void heard(const struct rs_wire_record *r)
{
	const struct rs_cost_share *s = &r->u.share;

	require(r->kind > RS_WIRE_NONE && r->kind <= RS_WIRE_FORGET);
	if (r->kind == RS_WIRE_COST) {
		require(memchr(r->u.cost.segment, 0, RS_COST_NAME) != NULL && r->u.cost.segment[0]);
		require(r->u.cost.order < RS_PLAN_MAX && r->u.cost.invocation <= UINT32_MAX);
		/* What is added up over all segments does not overflow. */
		require(r->u.cost.peak_backward <= UINT64_MAX / RS_PLAN_MAX / 8);
		require(r->u.cost.product_bytes <= UINT64_MAX / RS_PLAN_MAX / 8);
	} else if (r->kind == RS_WIRE_SHARE) {
		require(s->n && s->n <= RS_COST_SHARERS);
		for (uint32_t i = 0; i < s->n; i++)
			require(s->order[i] < RS_PLAN_MAX);
	} else if (r->kind == RS_WIRE_RATE) {
		require(r->u.rate.kind < RS_RATES);
	}
}

static void planner_reads(void)
{
	struct rs_wire_record record;

	for (unsigned i = 0; i < RS_WIRE_RINGS; i++) {
		unsigned n = 0;

		while (rs_wire_hear(&w->ring[i], &record)) {
			heard(&record);
			n++;
		}
		require(n <= RS_WIRE_RECORDS && w->ring[i].tail == w->ring[i].head);
	}
}

static void program_reads(void)
{
	struct rs_plan_head head = {.n = 77};
	const char *why = NULL;
	struct rs_wire_ring *r;
	int n = rs_wire_check(w, sizeof(*w), &why);

	require(!n == !why);
	n = rs_wire_take(w, 0, &head, taken);
	require(n == 1 || n == 0 || n == -EAGAIN || n == -EPROTO);
	require(n == 1 ? head.n <= RS_PLAN_MAX && head.generation != 0 : head.n == 77);
	r = rs_wire_claim(w);
	require(!r || (r >= w->ring && r < w->ring + RS_WIRE_RINGS));
	rs_wire_tell(&w->ring[0], &(struct rs_wire_record){.kind = RS_WIRE_FORGET});
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!w) {
		w = aligned_alloc(64, (sizeof(*w) + 63) & ~(size_t)63);
		taken = malloc(RS_PLAN_MAX * sizeof(*taken));
		require(w && taken);
		memset(w, 0, sizeof(*w));
	}
	prepare();
	for (; size >= 9 && *data; data += 9, size -= 9)
		memcpy(place(data[0]), data + 1, 8);
	if (size > 1)
		memcpy(w->ring[1].record, data + 1, size - 1 < 4096 ? size - 1 : 4096);
	program_reads();
	planner_reads();
	return 0;
}
