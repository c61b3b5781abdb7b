/* SPDX-License-Identifier: MIT */
/*
 * What both sides of the shared memory must agree on: the digest over all fields, and the area's head.
 *
 * Invariants: the list below has every field of every struct in the area; its rows tile each struct, PAD rows standing
 * for what alignment leaves free (tests/unit/test_wire_layout.c adds them up, and the assertions below fail when a struct
 * grows, so that nobody forgets). Pure functions, any thread, no locks.
 */
#include "tracker/wire_layout.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "tracker/digest.h"

#define F(type, field)                                                                             \
	{                                                                                          \
#type, #field, offsetof(struct type, field), sizeof(((struct type *)0)->field)     \
	}
#define PAD(type, before, bytes)                                                                   \
	{                                                                                          \
#type, "", offsetof(struct type, before) - (bytes), bytes                          \
	}

const struct rs_wire_field rs_wire_fields[] = {
	F(rs_cost_time, median_ns),
	F(rs_cost_time, error_ns),
	F(rs_cost_time, n),

	F(rs_cost, segment),
	F(rs_cost, invocation),
	F(rs_cost, order),
	F(rs_cost, steps),
	F(rs_cost, flags),
	F(rs_cost, forward),
	F(rs_cost, replay),
	F(rs_cost, forward_busy),
	F(rs_cost, replay_busy),
	F(rs_cost, live_forward),
	F(rs_cost, peak_forward),
	F(rs_cost, live_replay),
	F(rs_cost, end_replay),
	F(rs_cost, peak_backward),
	F(rs_cost, product_bytes),
	F(rs_cost, state_bytes),
	F(rs_cost, whole_bytes),
	F(rs_cost, whole_pieces),
	F(rs_cost, kept_bytes),
	F(rs_cost, kept_pieces),
	F(rs_cost, own_bytes),
	F(rs_cost, own_pieces),
	F(rs_cost, draw_bytes),
	F(rs_cost, region_bytes),
	F(rs_cost, region_pieces),
	F(rs_cost, replays),
	F(rs_cost, compared_bytes),
	F(rs_cost, compared_pieces),
	F(rs_cost, remap_bytes),
	F(rs_cost, remap_pieces),

	F(rs_cost_share, bytes),
	F(rs_cost_share, pieces),
	F(rs_cost_share, n),
	F(rs_cost_share, order),
	{"rs_cost_share", "", sizeof(struct rs_cost_share) - 4, 4},

	F(rs_cost_rate, kind),
	F(rs_cost_rate, n),
	F(rs_cost_rate, bytes),
	F(rs_cost_rate, each_ns),
	F(rs_cost_rate, gib_ns),

	F(rs_plan_entry, name),
	F(rs_plan_entry, invocation),
	F(rs_plan_entry, option),
	F(rs_plan_entry, restore),
	F(rs_plan_entry, order),
	F(rs_plan_entry, forward),
	F(rs_plan_entry, backward),

	F(rs_plan_head, generation),
	F(rs_plan_head, from_step),
	F(rs_plan_head, fingerprint),
	F(rs_plan_head, budget),
	F(rs_plan_head, arena),
	F(rs_plan_head, peak),
	F(rs_plan_head, time),
	F(rs_plan_head, bound),
	F(rs_plan_head, n),
	F(rs_plan_head, flags),

	F(rs_wire_record, kind),
	F(rs_wire_record, u),

	F(rs_wire_ring, head),
	F(rs_wire_ring, lost),
	PAD(rs_wire_ring, tail, 48),
	F(rs_wire_ring, tail),
	PAD(rs_wire_ring, record, 56),
	F(rs_wire_ring, record),

	F(rs_wire_client, heartbeat_ns),
	F(rs_wire_client, pid),
	F(rs_wire_client, started),
	F(rs_wire_client, device),
	F(rs_wire_client, device_bytes),
	F(rs_wire_client, job),
	F(rs_wire_client, rank),
	F(rs_wire_client, ranks),
	F(rs_wire_client, wanted),
	F(rs_wire_client, step),
	F(rs_wire_client, steps),
	F(rs_wire_client, step_ns),
	F(rs_wire_client, live_bytes),
	F(rs_wire_client, peak_bytes),
	F(rs_wire_client, arena_bytes),
	F(rs_wire_client, arena_used),
	F(rs_wire_client, turn_bytes),
	F(rs_wire_client, outside_bytes),
	F(rs_wire_client, segments),
	F(rs_wire_client, replays),
	F(rs_wire_client, rejections),
	F(rs_wire_client, divergences),
	F(rs_wire_client, plan_generation),
	F(rs_wire_client, plan_state),
	F(rs_wire_client, plan_order),
	F(rs_wire_client, plan_predicted),
	F(rs_wire_client, plan_measured),
	F(rs_wire_client, rings),
	F(rs_wire_client, lost_threads),
	F(rs_wire_client, program),

	F(rs_wire_plan, sequence),
	F(rs_wire_plan, head),
	F(rs_wire_plan, entry),
	F(rs_wire_plan, digest),

	F(rs_wire, magic),
	F(rs_wire, major),
	F(rs_wire, minor),
	F(rs_wire, bytes),
	F(rs_wire, layout),
	F(rs_wire, planner_pid),
	PAD(rs_wire, heartbeat_ns, 24),
	F(rs_wire, heartbeat_ns),
	F(rs_wire, generation),
	F(rs_wire, budget),
	F(rs_wire, off),
	PAD(rs_wire, client, 32),
	F(rs_wire, client),
	PAD(rs_wire, plan, 16),
	F(rs_wire, plan),
	PAD(rs_wire, ring, 16),
	F(rs_wire, ring),
};
const unsigned rs_wire_nfields = sizeof(rs_wire_fields) / sizeof(*rs_wire_fields);

/* A struct has grown? Then a row above is missing, and RS_WIRE_MINOR (or MAJOR) is due. */
_Static_assert(sizeof(struct rs_cost_time) == 24, "rs_cost_time");
_Static_assert(sizeof(struct rs_cost) == 424, "rs_cost");
_Static_assert(sizeof(struct rs_cost_share) == 152, "rs_cost_share");
_Static_assert(sizeof(struct rs_cost_rate) == 40, "rs_cost_rate");
_Static_assert(sizeof(struct rs_plan_entry) == 32, "rs_plan_entry");
_Static_assert(sizeof(struct rs_plan_head) == 72, "rs_plan_head");
_Static_assert(sizeof(struct rs_wire_record) == 432, "rs_wire_record");
_Static_assert(sizeof(struct rs_wire_client) == 368, "rs_wire_client");
_Static_assert(sizeof(struct rs_wire_plan) == 16 + 72 + 32 * RS_PLAN_MAX, "rs_wire_plan");
/* Each side's words in cache lines of their own, so that telling and planning do not slow each other down. */
_Static_assert(offsetof(struct rs_wire, heartbeat_ns) == 64, "the planner's words");
_Static_assert(offsetof(struct rs_wire, client) == 128, "the program's words");
_Static_assert(offsetof(struct rs_wire_ring, tail) == 64, "the consumer's word");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "words are shared without locks");

static uint64_t mix_text(uint64_t h, const char *text)
{
	for (; *text; text++)
		h = rs_digest_mix(h + RS_DIGEST_K + (unsigned char)*text);
	return rs_digest_mix(h + RS_DIGEST_K + 256);
}

uint64_t rs_wire_layout(void)
{
	uint64_t h = sizeof(struct rs_wire);

	for (unsigned i = 0; i < rs_wire_nfields; i++) {
		const struct rs_wire_field *f = &rs_wire_fields[i];

		h = mix_text(mix_text(h, f->of), f->name);
		h = rs_digest_mix(h + RS_DIGEST_K + f->offset);
		h = rs_digest_mix(h + RS_DIGEST_K + f->bytes);
	}
	return h;
}

void rs_wire_init(struct rs_wire *w, uint64_t planner_pid)
{
	w->magic = RS_WIRE_MAGIC;
	w->major = RS_WIRE_MAJOR;
	w->minor = RS_WIRE_MINOR;
	w->bytes = sizeof(*w);
	w->layout = rs_wire_layout();
	w->planner_pid = planner_pid;
}

int rs_wire_check(const struct rs_wire *w, uint64_t bytes, const char **ret_why)
{
	const char *why = NULL;

	/* In this order: what is not there is not looked at, and the first difference explains the others. */
	if (bytes != sizeof(*w))
		why = "the shared memory has another size";
	else if (w->magic != RS_WIRE_MAGIC)
		why = "this is no shared memory of replayshim";
	else if (w->major != RS_WIRE_MAJOR)
		why = "the planner speaks another version";
	else if (w->bytes != sizeof(*w) || w->layout != rs_wire_layout())
		why = "the planner lays out the shared memory in another way";
	if (!why)
		return 0;
	*ret_why = why;
	return -EPROTO;
}
