/* SPDX-License-Identifier: MIT */
/*
 * Memory that an allocator of the program's own hands out again, which the engine does not see: what was state at an
 * address when a replay began may be a product there when it ends.
 */
#include "tests/unit/engine_rig.h"

static void times2(struct rig_arg *a)
{
	a[0].p[0] = a[1].p[0] * 2;
}

static void plus1(struct rig_arg *a)
{
	a[0].p[0] = a[1].p[0] + 1;
}

static void set7(struct rig_arg *a)
{
	a[0].p[0] = 7;
}

static void count_up(struct rig_arg *a)
{
	a[0].p[0]++;
}

/*
 * The forward reads a buffer and makes a product in m. Then the program binds the buffer anew: it lies in m, which was free
 * again. The replay reads it there and frees it, so that its product comes to lie in m, too.
 */
static void product_in_state(enum rs_mode mode, int same_buffer)
{
	uint32_t *m, *n, *x, *y;
	const char *records;

	rig_start(mode);
	STEP(1);
	m = words(1), n = words(1), x = words(1), y = words(1);
	*n = same_buffer ? 7 : 3, *x = 10;
	PUSH("forward:f");
	KERNEL(times2, W_(y, 1), R_(n, 1));
	KERNEL(plus1, W_(m, 1), R_(x, 1));
	POP();
	KERNEL(set7, W_(m, 1));
	PUSH("replay:f");
	KERNEL(times2, W_(y, 1), R_(m, 1));
	KERNEL(plus1, W_(m, 1), R_(x, 1));
	POP();
	records = rig_read("records.jsonl");
	fake_drain();
	is_u64(*m, 11, "the product of the replay stays");
	is_u64(count(records, "\"match\""), 0, "but nobody vouches for it");
	rig_stop();
}

/* State that the first run sets up, and each run counts up: nothing was handed out again. */
static void set_up_lazily(void)
{
	uint32_t *m, *y;

	rig_start(RS_MODE_PRESERVE);
	STEP(1);
	m = words(1), y = words(1);
	PUSH("forward:f");
	KERNEL(set7, W_(m, 1));
	KERNEL(count_up, RW_(m, 1));
	KERNEL(times2, W_(y, 1), R_(m, 1));
	POP();
	PUSH("replay:f");
	KERNEL(count_up, RW_(m, 1));
	KERNEL(times2, W_(y, 1), R_(m, 1));
	POP();
	is_u64(count(rig_read("records.jsonl"), "\"match\""), 0, "set up once: no match");
	fake_drain();
	is_u64(*m, 8, "but state, which is counted up once");
	rig_stop();
}

static unsigned made;

static void another(struct rig_arg *a)
{
	a[0].p[0] = a[1].p[0] + ++made;
}

/* As above, but what the replay makes there is not what the forward made. */
static void another_product(enum rs_mode mode)
{
	uint32_t *m, *n, *x, *y;

	rig_start(mode);
	STEP(1);
	m = words(1), n = words(1), x = words(1), y = words(1);
	*n = 7;
	PUSH("forward:f");
	KERNEL(times2, W_(y, 1), R_(n, 1));
	KERNEL(another, W_(m, 1), R_(x, 1));
	POP();
	KERNEL(set7, W_(m, 1));
	PUSH("replay:f");
	KERNEL(times2, W_(y, 1), R_(m, 1));
	KERNEL(another, W_(m, 1), R_(x, 1));
	POP();
	is_u64(count(rig_read("records.jsonl"), "\"product\":\"different\""), 1,
	       "a product where the replay has read state is compared with the forward's");
	rig_stop();
}

int main(void)
{
	another_product(RS_MODE_AUDIT);
	another_product(RS_MODE_PRESERVE);
	set_up_lazily();
	product_in_state(RS_MODE_AUDIT, 0);
	product_in_state(RS_MODE_PRESERVE, 0);
	product_in_state(RS_MODE_AUDIT, 1);
	product_in_state(RS_MODE_PRESERVE, 1);
	return tap_done();
}
