/* SPDX-License-Identifier: MIT */
/*
 * Launches known by their words alone (rs_engine_again_words): marks are left at whatever the words point into, and the call
 * is described as soon as somebody claims any of that, or has work of the shim's own there.
 */
#include "tests/unit/engine_rig.h"
#include "tracker/model.h"

static void read_it(struct rig_arg *a)
{
	a[0].p[0] = a[1].p[0];
}

static void bump(struct rig_arg *a)
{
	a[0].p[0] += 1;
}

#define ON(q, fn, ...)                                                                             \
	kernel_q(q, #fn, fn, sizeof((struct rig_arg[]){__VA_ARGS__}) / sizeof(struct rig_arg),     \
		 (struct rig_arg[]){__VA_ARGS__})

/* A forward that nobody here is interested in, so that something is pending. */
static void something_pending(void)
{
	uint32_t *other = words(1), *product = words(1);

	PUSH("forward:other");
	KERNEL(read_it, W_(product, 1), R_(other, 1));
	POP();
}

/* What they point into may be written. */
static void by_words(void)
{
	uint32_t *x, *y, *z;
	struct rs_alloc *a;
	const struct rs_alloc *b;
	uint64_t base, bytes, words_[3];

	rig_start(RS_MODE_PRESERVE);
	x = words(1), y = words(1), z = words(1);
	a = (struct rs_alloc *)rs_engine_lookup(eng, (uint64_t)x, &base, &bytes);
	b = rs_engine_lookup(eng, (uint64_t)z, &base, &bytes);
	STEP(1);
	words_[0] = (uint64_t)x, words_[1] = 12, words_[2] = (uint64_t)x + 4096 * 4096;
	something_pending();
	ok(!rs_engine_again_words(eng, thr, RIG_Q(7), words_, 3), "a stream seen first");
	ON(0, bump, RW_(y, 1));
	ok(rs_engine_again_words(eng, thr, RIG_Q(0), words_, 3) == rs_engine_moment(eng),
	   "words that nobody claims");
	ok(a->loose == eng->version + 1 && a->touched & 1, "marks are left");
	PUSH("forward:f");
	ok(!rs_engine_again_words(eng, thr, RIG_Q(0), words_, 3), "inside of a window");
	KERNEL(read_it, W_(y, 1), R_(z, 1));
	POP();
	ok(rs_engine_again_words(eng, thr, RIG_Q(0), words_, 3), "other memory was claimed");
	words_[1] = (uint64_t)z + 3;
	ok(b->claimed == eng->claim_epoch && !rs_engine_again_words(eng, thr, RIG_Q(0), words_, 3),
	   "one that points into what is claimed");
	words_[1] = (uint64_t)y;
	ON(1, bump, RW_(y, 1));
	a->fence = 1 + rs_known_at(thr, RIG_Q(1))->id;
	eng->fence_queues = RS_QBIT(a->fence - 1);
	ok(!rs_engine_again_words(eng, thr, RIG_Q(0), words_, 3),
	   "work of the shim's own comes first");
	ok(rs_engine_again_words(eng, thr, RIG_Q(1), words_, 3), "on another stream only");
	eng->fence_queues = 0;
	rig_stop();
}

int main(void)
{
	by_words();
	return tap_done();
}
