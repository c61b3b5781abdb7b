/* SPDX-License-Identifier: MIT */
/*
 * Many rows of a table, each overwritten by a call of its own, and a replay that reads them all: kept, shown and put
 * back by few operations of the device; and what becomes of them when some of those fail.
 */
#include "tests/unit/engine_rig.h"
#include "tracker/model.h"

#define ROWS 48u
#define ROW  21u /* words: rows do not begin at multiples of 16 bytes */
#define ALL  (ROWS * ROW)

static uint32_t *table, *product;

static void read_all(struct rig_arg *a)
{
	memcpy(a[1].p, a[0].p, a[0].n * 4);
}

static void bump(struct rig_arg *a)
{
	for (unsigned i = 0; i < a->n; i++)
		a->p[a->first + i] += 1000;
}

/* Odd rows, in an order of no use to anybody. */
static unsigned odd_row(unsigned n)
{
	return (n * 7 + 5) % (ROWS / 2) * 2 % ROWS + 1;
}

static void segment(const char *marker)
{
	PUSH(marker);
	KERNEL(read_all, R_(table, ALL), W_(product, ALL));
	POP();
}

static unsigned wrong(const uint32_t *p, unsigned added)
{
	unsigned bad = 0;

	for (unsigned i = 0; i < ALL; i++)
		bad += p[i] != i + (i / ROW % 2 ? added : 0);
	return bad;
}

/* The step until its replay begins. */
static void prepare(enum rs_option option, enum rs_restore restore)
{
	rig_start(RS_MODE_PRESERVE);
	rs_engine_policy(eng, NULL, (struct rs_policy){(uint8_t)option, (uint8_t)restore});
	table = words(ALL);
	product = words(ALL);
	for (unsigned i = 0; i < ALL; i++)
		table[i] = i;
	rs_engine_region(eng, (uint64_t)product, ALL * 4, "output:y");
	STEP(1);
	segment("forward:f");
	for (unsigned n = 0; n < ROWS / 2; n++) {
		struct rig_arg a = {table, odd_row(n) * ROW, ROW, RS_READ | RS_WRITE, 0, 0};

		kernel_q(0, "bump", bump, 1, &a);
	}
	fake_drain();
	memset(product, 0xff, ALL * 4);
	fake.copies = fake.moves = fake.digests = fake.batches = 0;
}

static const char *outcome(void)
{
	return count(rig_read("records.jsonl"), "\"match\"")	   ? "match"
	       : count(rig_read("records.jsonl"), "\"rejection\"") ? "rejection"
								   : "divergence";
}

static void together(enum rs_option option, enum rs_restore restore, unsigned copies,
		     unsigned moves, unsigned batches, unsigned alone)
{
	prepare(option, restore);
	segment("replay:f");
	fake_drain();
	ok(!wrong(product, 0), "option %d, restore %d: the replay sees all rows as they were",
	   option, restore);
	is_u64(wrong(table, 1000), 0, "and leaves all rows as it found them");
	ok(fake.moves == moves && fake.copies == copies, "by %d moves and %d copies",
	   (int)fake.moves, (int)fake.copies);
	ok(fake.batches == batches && fake.digests == alone, "%d times many digests, and %d alone",
	   (int)fake.batches, (int)fake.digests);
	is_str(outcome(), "match", "a match");
	STEP(2);
	is_u64(eng->stats.snapshot_bytes, 0, "and nothing stays preserved");
	rig_stop();
}

/* The n-th operation and `more` after it fail. Returns whether anything has. */
static int fails(int n, int more, unsigned *ret_lost)
{
	int failed;

	prepare(RS_OPTION_UNDO, RS_RESTORE_COPY);
	fake.fail_copy = n;
	fake.fail_more = more;
	segment("replay:f");
	failed = fake.fail_copy == 0 || fake.fail_more < more;
	fake.fail_copy = fake.fail_more = 0;
	fake_drain();
	*ret_lost = wrong(table, 1000);
	if (*ret_lost % ROW || *ret_lost > (unsigned)more * ROW)
		ok(0, "operation %d, %d more: %u words lost", n, more, *ret_lost);
	if ((wrong(product, 0) || *ret_lost || (failed && more)) == !strcmp(outcome(), "match"))
		ok(0, "operation %d, %d more: %u words seen wrong, %u left wrong, and a %s", n,
		   more, wrong(product, 0), *ret_lost, outcome());
	STEP(2);
	if (eng->stats.snapshot_bytes)
		ok(0, "operation %d, %d more: %u bytes stay preserved", n, more,
		   (unsigned)eng->stats.snapshot_bytes);
	rig_stop();
	return failed;
}

static void failures(void)
{
	static const int more[] = {0, 1, 2, ROWS / 2};
	unsigned lost, worst, i;
	int n;

	for (i = 0; i < 4; i++) {
		worst = 0;
		for (n = 1; fails(n, more[i], &lost); n++)
			worst = lost > worst ? lost : worst;
		ok(n == 4, "each of 3 moves fails by half, and then %d of its copies", more[i]);
		is_u64(worst, more[i] == ROWS / 2 ? ALL / 4 : 0,
		       "lost is what neither a move nor a copy has put back");
	}
}

/*
 * The digests of what is held (1st), of what is shown (2nd) and of the product (3rd) fail by half; with more, one of
 * the rows' does so by itself, too. Nobody asks for that of what is held.
 */
static void digest_fails(int n, int more)
{
	int lost = n == 3 || (n == 2 && more);

	prepare(RS_OPTION_UNDO, RS_RESTORE_COPY);
	fake.fail_digest = n;
	fake.fail_digests = more;
	segment("replay:f");
	fake.fail_digest = fake.fail_digests = 0;
	fake_drain();
	ok(!wrong(product, 0) && !wrong(table, 1000),
	   "digest %d fails, %d more: no byte is another", n, more);
	is_str(outcome(), lost ? "rejection" : "match", "and what it says of that");
	rig_stop();
}

/* In an audit a replay compares what it finds with the digest of what was overwritten. */
static void audited(void)
{
	rig_start(RS_MODE_AUDIT);
	table = words(ALL);
	product = words(ALL);
	rs_engine_region(eng, (uint64_t)product, ALL * 4, "output:y");
	STEP(1);
	segment("forward:f");
	for (unsigned n = 0; n < ROWS / 2; n++) {
		struct rig_arg a = {table, odd_row(n) * ROW, ROW, RS_READ | RS_WRITE, 0, 0};

		kernel_q(0, "bump", bump, 1, &a);
	}
	fake.digests = fake.batches = 0;
	segment("replay:f");
	ok(fake.batches == 1 && fake.digests == 1,
	   "an audit digests what the replay finds at once: %d times many, %d alone",
	   (int)fake.batches, (int)fake.digests);
	is_str(outcome(), "divergence", "and tells");
	rig_stop();
}

/* No memory for the third row's P2: that one is not shown, and stays. */
static void no_room(void)
{
	unsigned seen;

	rig_snapshot_max = (ROWS / 2 + 2) * 256;
	prepare(RS_OPTION_UNDO, RS_RESTORE_COPY);
	segment("replay:f");
	fake_drain();
	seen = wrong(product, 0);
	ok(seen && seen < ALL / 2 && seen % ROW == 0, "no room: %u words are not shown", seen);
	is_u64(wrong(table, 1000), 0, "and all rows are left as they were");
	is_str(outcome(), "divergence", "no match");
	rig_stop();
	rig_snapshot_max = 0;
}

static void aligned(void)
{
	unsigned bad = 0;

	prepare(RS_OPTION_UNDO, RS_RESTORE_COPY);
	for (unsigned n = 0; n < ROWS / 2; n++) {
		uint64_t at = (uint64_t)(table + odd_row(n) * ROW);
		uint64_t base, bytes;
		struct rs_alloc *a = rs_addrmap_find(eng->map, at, &base, &bytes);

		for (unsigned i = 0; i < a->keeps.n; i++)
			bad += (a->keeps.v[i]->addr ^ (base + a->keeps.v[i]->off)) % 16 != 0 ||
			       a->keeps.v[i]->addr + a->keeps.v[i]->len >
				       a->keeps.v[i]->block->addr + a->keeps.v[i]->block->bytes;
	}
	is_u64(bad, 0, "kept bytes lie as they did, modulo 16, within their blocks");
	rig_stop();
}

/* Two replays at once, one in the other: what the outer one shows is kept for the inner one's end. */
static void nested(void)
{
	prepare(RS_OPTION_UNDO, RS_RESTORE_COPY);
	PUSH("forward:g");
	KERNEL(read_all, R_(table, ALL), W_(product, ALL));
	POP();
	PUSH("replay:f");
	PUSH("replay:g");
	KERNEL(read_all, R_(table, ALL), W_(product, ALL));
	fake_drain();
	is_u64(wrong(product, 1000), 0, "nested: the inner replay sees what its forward saw");
	POP();
	KERNEL(read_all, R_(table, ALL), W_(product, ALL));
	fake_drain();
	is_u64(wrong(product, 0), 0, "then the outer one what its own saw");
	POP();
	fake_drain();
	is_u64(wrong(table, 1000), 0, "and all rows are left as they were");
	rig_stop();
}

/* Two process-wide replays see the same call: both show it their rows, the later one's are what it reads. */
static void at_once(int last_first)
{
	uint64_t f, g;

	prepare(RS_OPTION_UNDO, RS_RESTORE_COPY);
	PUSH("forward:g");
	KERNEL(read_all, R_(table, ALL), W_(product, ALL));
	POP();
	for (unsigned n = 0; n < ROWS / 2; n++) {
		struct rig_arg a = {table, odd_row(n) * ROW, ROW, RS_READ | RS_WRITE, 0, 0};

		kernel_q(0, "bump", bump, 1, &a);
	}
	fake.overlaps = 0;
	g = rs_engine_range_start(eng, thr, "replay:g");
	f = rs_engine_range_start(eng, thr, "replay:f");
	KERNEL(read_all, R_(table, ALL), W_(product, ALL));
	fake_drain();
	ok(!wrong(product, 1000) || !wrong(product, 0), "two at once: one of them sees its bytes");
	rs_engine_range_end(eng, thr, last_first ? g : f);
	rs_engine_range_end(eng, thr, last_first ? f : g);
	fake_drain();
	is_u64(wrong(table, 2000), 0, "and all rows are left as they were");
	is_u64(fake.overlaps, 0, "no move has two copies whose order matters");
	rig_stop();
}

int main(void)
{
	together(RS_OPTION_UNDO, RS_RESTORE_COPY, 0, 3, 2, 1);
	together(RS_OPTION_WHOLE, RS_RESTORE_COPY, 0, 3, 1,
		 1); /* parts of a keep are not compared */
	together(RS_OPTION_PAGES, RS_RESTORE_COPY, 0, 3, 2, 1);
	/* what a row shows, and what the next one has before it is exchanged */
	together(RS_OPTION_UNDO, RS_RESTORE_SWAP, 0, 0, ROWS / 2 - 1, 3);
	failures();
	for (int n = 1; n <= 4; n++) {
		digest_fails(n, 0);
		digest_fails(n, 1);
	}
	audited();
	no_room();
	aligned();
	nested();
	at_once(0);
	at_once(1);
	return tap_done();
}
