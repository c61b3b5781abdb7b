/* SPDX-License-Identifier: MIT */
/*
 * A program with an allocator of its own: with what it says of its blocks, kernels of which nobody knows how far they reach are
 * judged in one allocation of the driver's as they are in many.
 */
#include "tests/unit/engine_rig.h"

/* Machine code only: reads and writes whatever its pointers lead to. */
#define ANY(at)                                                                                    \
	{                                                                                          \
		(at), 0, 1, RS_READ | RS_WRITE, 1, 2                                               \
	}
#define WHOLE(at, dir)                                                                             \
	{                                                                                          \
		(at), 0, 1, (dir), 1, 1                                                            \
	}

static void twice(struct rig_arg *a)
{
	a[0].p[0] = a[1].p[0] * 2;
}

static void plus1(struct rig_arg *a)
{
	a[0].p[0] = a[1].p[0] + 1;
}

static void set(struct rig_arg *a)
{
	a[0].p[0] = 77;
}

#define POOL  256
#define BLOCK 16

static uint32_t *pool;

static uint64_t at(const uint32_t *p)
{
	return (uintptr_t)p;
}

/* Block i of the pool. */
static uint32_t *block(unsigned i)
{
	return pool + (uint64_t)i * BLOCK;
}

static int give(unsigned i)
{
	return rs_engine_suballoc(eng, at(block(i)), BLOCK * sizeof(*pool));
}

static int take(unsigned i)
{
	return rs_engine_subfree(eng, at(block(i)));
}

static void begin(enum rs_mode mode, int told)
{
	rig_start(mode);
	STEP(1);
	pool = words(POOL);
	for (unsigned i = 0; i < POOL / BLOCK; i++) {
		pool[i * BLOCK] = i + 1;
		if (told && i < 4)
			give(i);
	}
}

static unsigned matches(void)
{
	fake_drain();
	return count(rig_read("records.jsonl"), "\"match\"");
}

/* y = 2 w, by machine code; both in the pool, y new. */
static void segment(unsigned y, int told)
{
	if (told)
		give(y);
	KERNEL(twice, ANY(block(y)), ANY(block(0)));
}

static void neighbours(enum rs_mode mode, int told)
{
	begin(mode, told);
	PUSH("forward:f");
	segment(8, told);
	POP();
	KERNEL(set, W_(block(1), 1)); /* of no concern to the segment */
	PUSH("replay:f");
	segment(9, told);
	POP();
	ok(matches() == (unsigned)told, "a neighbour in the pool has changed; blocks known: %d",
	   told);
	is_u64(block(9)[0], 2, "the product is right");
	is_u64(block(1)[0], 77, "and so is the neighbour");
	rig_stop();
}

/* What it does reach is seen as ever, in the block only. */
static void state(void)
{
	begin(RS_MODE_AUDIT, 1);
	PUSH("forward:f");
	give(8);
	KERNEL(plus1, W_(block(8), 1), WHOLE(block(0), RS_READ));
	POP();
	KERNEL(set, W_(block(0) + BLOCK - 1, 1)); /* the block's last word */
	PUSH("replay:f");
	give(9);
	KERNEL(plus1, W_(block(9), 1), WHOLE(block(0), RS_READ));
	POP();
	is_u64(matches(), 0, "a change at the block's end is one to what was read");
	ok(count(rig_read("records.jsonl"), "RS010") == 1, "and is told");
	rig_stop();
}

/* x is read and given back, and y takes its place, all inside of the segment. */
static void again(int told)
{
	begin(RS_MODE_PRESERVE, told);
	for (unsigned i = 0; i < 2; i++) {
		PUSH(i ? "replay:f" : "forward:f");
		KERNEL(twice, ANY(block(5)), ANY(block(0)));
		KERNEL(plus1, ANY(block(2)), ANY(block(5)));
		if (told) {
			take(5);
			give(5);
		}
		KERNEL(plus1, ANY(block(5)), ANY(block(2)));
		POP();
		if (!i) {
			is_u64(block(5)[0], 4, "the forward's product");
			KERNEL(set, W_(block(5), 1));
			if (told) {
				take(5);
				give(5);
			}
		}
	}
	matches();
	ok(block(5)[0] == 4, "a product in the place of what was read stays; blocks known: %d (%u)",
	   told, block(5)[0]);
	rig_stop();
}

/* State that is read for certain, and a product where it was. */
static void reborn(enum rs_mode mode)
{
	begin(mode, 1);
	for (unsigned i = 0; i < 2; i++) {
		PUSH(i ? "replay:f" : "forward:f");
		give(8);
		KERNEL(twice, W_(block(8), 1), R_(block(3), 1));
		take(3);
		give(3);
		KERNEL(plus1, WHOLE(block(3), RS_WRITE), R_(block(8), 1));
		POP();
		take(8);
		if (!i) { /* the program makes it what it was */
			KERNEL(twice, W_(block(3), 1), R_(block(1), 1));
		}
	}
	is_u64(matches(), 1, "memory that was given out again is no state");
	is_u64(block(3)[0], 9, "and what is made there stays");
	rig_stop();
}

/* The forward's third call touches nothing new, but what it writes to is another block by then: its product is compared. */
static void steady(unsigned differs)
{
	begin(RS_MODE_AUDIT, 1);
	for (unsigned i = 0; i < 2; i++) {
		PUSH(i ? "replay:f" : "forward:f");
		KERNEL(plus1, W_(block(8), 1), R_(block(3), 1));
		KERNEL(plus1, W_(block(3), 1), R_(block(1), 1));
		take(3);
		give(3);
		KERNEL(plus1, W_(block(3), 1), R_(block(1), 1));
		POP();
		fake_drain();
		if (!i)
			KERNEL(plus1, W_(block(3), 1), R_(block(2), 1)); /* 4, as ever */
		fake_drain();
		block(1)[0] += differs; /* by nobody that could be seen */
	}
	ok(matches() == !differs, "a product in a block that was given out again (differs: %u)",
	   differs);
	rig_stop();
}

/* What a name says counts all the same. */
static void named(void)
{
	begin(RS_MODE_PRESERVE, 1);
	rs_engine_region(eng, at(block(3)), 4, "state:s");
	for (unsigned i = 0; i < 2; i++) {
		PUSH(i ? "replay:f" : "forward:f");
		take(3);
		give(3);
		KERNEL(plus1, RW_(block(3), 1), R_(block(3), 1));
		POP();
		if (!i)
			KERNEL(set, W_(block(3), 1));
	}
	is_u64(matches(), 1, "declared state is shown as it was");
	is_u64(block(3)[0], 77, "and put back, whenever its memory was given out");
	rig_stop();
}

/* A call that was made when other blocks were there. */
static void deferred(void)
{
	struct rs_access x = {.whole = 1, .dir = RS_WRITE, .how = RS_HOW_PTX};
	struct rs_call c = {
		.name = "graph", .kind = RS_CALL_KERNEL, .q = RIG_Q(0), .access = &x, .naccess = 1};

	for (unsigned later = 0; later < 2; later++) {
		begin(RS_MODE_AUDIT, 1);
		PUSH("forward:f");
		give(8);
		KERNEL(twice, W_(block(8), 1), R_(block(2), 1));
		POP();
		c.deferred = (uint8_t)later;
		x.addr = at(block(0));
		rs_engine_before(eng, thr, &c);
		block(2)[0] += later;
		rs_engine_after(eng, thr, &c, 1);
		PUSH("replay:f");
		give(9);
		KERNEL(twice, W_(block(9), 1), R_(block(2), 1));
		POP();
		matches();
		ok(count(rig_read("records.jsonl"), "RS010") == later,
		   "a call reaches its block; made earlier (%u), all of the pool", later);
		rig_stop();
	}
}

static void wrong(void)
{
	uint64_t base, bytes;

	begin(RS_MODE_AUDIT, 0);
	is_u64(-rs_engine_suballoc(eng, at(pool), 0), EINVAL, "no bytes");
	is_u64(-rs_engine_suballoc(eng, at(pool), POOL * 4 + 4), ENOENT, "more than the pool has");
	is_u64(-rs_engine_suballoc(eng, at(block(1)), POOL * 4), ENOENT, "beyond its end");
	is_u64(-rs_engine_suballoc(eng, UINT64_MAX - 4, 16), ENOENT, "no memory");
	is_u64(-take(0), ENOENT, "nothing was given out there");
	ok(!give(0) && !give(1) && !give(2), "three blocks");
	is_u64(-rs_engine_subfree(eng, at(block(1)) + 4), ENOENT,
	       "the middle of one is no beginning");
	ok(!rs_engine_suballoc(eng, at(block(0)) + 4, BLOCK * 12 - 4), "one over all of them");
	ok(take(0) && take(1) && take(2), "takes their place");
	ok(!rs_engine_subfree(eng, at(block(0)) + 4), "and is one");
	give(3);
	ok(rs_engine_lookup(eng, at(block(3)), &base, &bytes) && base == at(pool),
	   "the pool is what it was");
	drop(pool);
	ok(take(3), "blocks go with their pool");
	pool = words(POOL);
	give(3);
	rs_engine_alloc(eng, thr, RIG_Q(0), at(pool), POOL * 4, RS_ALLOC_DEVICE);
	ok(take(3), "also where nobody has seen the pool go");
	rig_stop();
}

/* Blocks in mapped memory. */
static void mapped(void)
{
	enum { PAGE = 1 << 16 };
	char *area =
		mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t addr = (uintptr_t)area;
	uint32_t *w = (uint32_t *)area, *far = (uint32_t *)(area + PAGE + 4096);

	rig_start(RS_MODE_AUDIT);
	STEP(1);
	rs_engine_reserve(eng, addr, 4 * PAGE);
	for (unsigned i = 0; i < 2; i++) {
		rs_engine_backing(eng, 77 + i, PAGE, RS_ALLOC_DEVICE);
		rs_engine_map(eng, addr + i * PAGE, PAGE, 77 + i, 0);
	}
	ok(!rs_engine_suballoc(eng, addr + 4096, 2 * PAGE - 8192), "a block across two mappings");
	ok(!rs_engine_suballoc(eng, addr, 4096), "and one before it");
	w[0] = 3;
	pool = words(2);
	PUSH("forward:f");
	KERNEL(twice, W_(pool, 1), WHOLE(w, RS_READ));
	POP();
	KERNEL(set, W_(far, 1));
	PUSH("replay:f");
	KERNEL(twice, W_(pool + 1, 1), WHOLE(w, RS_READ));
	POP();
	is_u64(matches(), 1, "a block of mapped memory");
	PUSH("forward:g");
	KERNEL(twice, W_(pool, 1), WHOLE(w + 1024, RS_READ));
	POP();
	far[0]++;
	KERNEL(set, W_(far, 1));
	PUSH("replay:g");
	KERNEL(twice, W_(pool + 1, 1), WHOLE(w + 1024, RS_READ));
	POP();
	matches();
	rs_engine_unmap(eng, addr, PAGE);
	ok(rs_engine_subfree(eng, addr) && rs_engine_subfree(eng, addr + 4096),
	   "blocks go with a mapping below them");
	rig_stop();
	munmap(area, 4 * PAGE);
}

int main(void)
{
	neighbours(RS_MODE_AUDIT, 0);
	neighbours(RS_MODE_AUDIT, 1);
	neighbours(RS_MODE_PRESERVE, 1);
	state();
	again(0);
	again(1);
	reborn(RS_MODE_PRESERVE);
	reborn(RS_MODE_AUDIT);
	steady(0);
	steady(1);
	named();
	deferred();
	wrong();
	mapped();
	return tap_done();
}
