/* SPDX-License-Identifier: MIT */
/*
 * The arena of preserved bytes: blocks never overlap, stay inside of their chunks and limits, merge again, and
 * go back. Random sequences against a list.
 */
#include "tests/unit/engine_rig.h"
#include "tracker/model.h"

#define SLOTS 300

static struct rs_block *slot[SLOTS];

static int overlaps(const struct rs_block *b)
{
	for (unsigned i = 0; i < SLOTS; i++)
		if (slot[i] && slot[i] != b && slot[i]->addr < b->addr + b->bytes &&
		    b->addr < slot[i]->addr + slot[i]->bytes)
			return 1;
	return 0;
}

static uint64_t some_bytes(void)
{
	return 1 + fake_random(1u << (4 + fake_random(18)));
}

static void random_blocks(uint64_t limit)
{
	unsigned overlapping = 0, small = 0, unaligned = 0, refused = 0, over = 0;

	rig_snapshot_max = limit;
	rig_start(RS_MODE_PRESERVE);
	memset(slot, 0, sizeof(slot));
	rs_queue_id(eng, thr, RIG_Q(1));
	rs_queue_id(eng, thr, RIG_Q(2));
	for (unsigned n = 0; n < 20000; n++) {
		unsigned i = fake_random(SLOTS);
		uint64_t bytes = some_bytes();

		if (slot[i]) {
			rs_block_put(eng, slot[i]);
			slot[i] = NULL;
			continue;
		}
		slot[i] = rs_block_get(eng, fake_random(2), bytes);
		if (!slot[i]) {
			refused++;
			continue;
		}
		overlapping += (unsigned)overlaps(slot[i]);
		small += slot[i]->bytes < bytes;
		unaligned += slot[i]->addr % 256 != 0;
		over += limit && eng->block_bytes > limit;
	}
	is_u64(overlapping, 0, "no two blocks overlap");
	is_u64(small, 0, "none is too small");
	is_u64(unaligned, 0, "all are aligned");
	ok(limit ? refused && !over : !refused, "the limit is held, and only the limit refuses");
	ok(eng->block_bytes < (limit ? limit + 1 : 400ull << 20), "%u MiB from the device",
	   (unsigned)(eng->block_bytes >> 20));
	for (unsigned i = 0; i < SLOTS; i++)
		if (slot[i])
			rs_block_put(eng, slot[i]);
	ok(rs_engine_trim(eng) > 0 && !eng->block_bytes, "everything merges and goes back");
	is_u64(fake.live_blocks, 0, "to the driver");
	is_u64(rs_engine_trim(eng), 0, "once");
	rig_stop();
	rig_snapshot_max = 0;
}

/* A block that other queues have used is waited for. */
static void ordered(void)
{
	struct rs_block *b;
	uint64_t waits;

	rig_start(RS_MODE_PRESERVE);
	rs_queue_id(eng, thr, RIG_Q(1));
	rs_queue_id(eng, thr, RIG_Q(2));
	b = rs_block_get(eng, 0, 4096);
	rs_block_put(eng, b);
	waits = fake.nevents;
	b = rs_block_get(eng, 0, 4096);
	is_u64(fake.nevents, waits, "the same queue needs no event");
	rs_block_used(eng, b, 0);
	rs_block_put(eng, b);
	b = rs_block_get(eng, 1, 8192); /* merged with its free neighbour */
	is_u64(fake.nevents, waits + 1, "another one does");
	is_u64(rs_block_users(eng, b), RS_QBIT(1), "and is the only user then");
	rs_block_put(eng, b);
	ok(!rs_arena_reserve(eng, RIG_Q(1), 1000), "memory is set aside");
	fake.fail_alloc = -1;
	is_u64((uint64_t)-rs_arena_reserve(eng, RIG_Q(1), 1000), ENOMEM, "or refused");
	ok((b = rs_block_get(eng, 0, 1000)) != NULL, "and what is there serves without the driver");
	rs_arena_ctx_gone(eng, 1);
	is_u64(eng->block_bytes, 0, "a context takes its memory with it");
	rs_block_put(eng, b);
	ok(!rs_block_get(eng, 0, 1000), "of which nothing is given out again");
	fake.live_blocks = 0;
	rig_stop();
}

/* Under a plan: its arena is one context's, and another one takes what the budget leaves beside the peak, and no more. */
static void other_context(void)
{
	struct rs_block *b, *c;

	rig_start(RS_MODE_PRESERVE);
	rs_queue_id(eng, thr, RIG_Q(1));
	rs_queue_id(eng, thr, (struct rs_queue){.ctx = 2, .stream = 2});
	eng->is_planned = 1;
	eng->planned_bytes = 1u << 20;
	eng->planned_most = (1u << 20) + (256u << 10);
	ok(!rs_arena_reserve(eng, RIG_Q(1), 1u << 20), "an arena is reserved");
	b = rs_block_get(eng, 1, 128u << 10);
	is_u64(fake.live_blocks, 2, "the other context's bytes lie in memory of its own");
	ok(!rs_block_get(eng, 1, 256u << 10), "up to the budget");
	ok(eng->block_bytes <= eng->planned_most, "which is kept");
	c = rs_block_get(eng, 0, 512u << 10);
	ok(b && c && c->chunk != b->chunk && fake.live_blocks == 2,
	   "the arena is there all the same");
	rs_block_put(eng, b);
	rs_block_put(eng, c);
	rs_engine_trim(eng);
	eng->is_planned = 0;
	rig_stop();
}

int main(void)
{
	random_blocks(0);
	random_blocks(5u << 20);
	ordered();
	other_context();
	return tap_done();
}
