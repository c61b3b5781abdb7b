/* SPDX-License-Identifier: MIT */
/*
 * From CUPTI's buffers to busy times: records that are cut off, of other kinds, without times; windows whose records come
 * late, in any order or never; unions against a brute-force one.
 */
#include "cupti/busy.c"
#include "cupti/parse.c"
#include "tests/tap.h"

#define NEVER UINT64_MAX

/* --- buffers ------------------------------------------------------------------------------------ */

/* Records as they come, each behind its length, which only this test's `next` knows of. */
static uint8_t buffer[1 << 16];
static size_t filled;
static int end_code;

/* Lengths lie at the end of the buffer, one for each record; length 0: the same record again. */
static uint16_t lengths[4096];
static unsigned nlengths, at_length;

static int next(uint8_t *buf, size_t valid, void **record)
{
	uint8_t *p = *record;

	if (!p) {
		at_length = 0;
		p = buf;
	} else {
		p += lengths[at_length++];
	}
	if (at_length >= nlengths || p >= buf + valid)
		return end_code;
	*record = p;
	return RS_CUPTI_SUCCESS;
}

static void start_buffer(void)
{
	memset(buffer, 0xee, sizeof(buffer));
	filled = nlengths = 0;
	end_code = RS_CUPTI_MAX_LIMIT_REACHED;
}

static void put_record(const void *bytes, size_t n, size_t length)
{
	memcpy(buffer + filled, bytes, n);
	lengths[nlengths++] = (uint16_t)length;
	filled += length;
}

static void put_work(uint32_t kind, size_t length, uint32_t correlation, uint64_t start,
		     uint64_t end)
{
	uint8_t r[256] = {0};

	memcpy(r, &kind, 4);
	memcpy(r + 16, &start, 8);
	memcpy(r + 24, &end, 8);
	memcpy(r + (kind == 10 ? 92 : kind == 22 ? 60 : 44), &correlation, 4);
	put_record(r, length, length);
}

static void put_call(uint32_t kind, uint32_t correlation, uint64_t window)
{
	struct rs_cupti_external e = {39, kind, window, correlation, 0};

	put_record(&e, sizeof(e), sizeof(e));
}

static struct rs_cupti_item got[8192];
static unsigned ngot;

static void collect(void *arg, const struct rs_cupti_item *items, unsigned n)
{
	(void)arg;
	memcpy(got + ngot, items, n * sizeof(*items));
	ngot += n;
}

static int parse(uint64_t *records)
{
	const struct rs_cupti_sink sink = {.items = collect};

	ngot = 0;
	*records = 77;
	return rs_cupti_parse(next, buffer, filled, &sink, records);
}

static int item_is(unsigned i, enum rs_cupti_what what, uint32_t correlation, uint64_t a,
		   uint64_t b)
{
	return i < ngot && got[i].what == what && got[i].correlation == correlation &&
	       (what == RS_CUPTI_CALL ? got[i].window == a : got[i].start == a && got[i].end == b);
}

static void test_parse(void)
{
	uint64_t records;

	start_buffer();
	ok(!parse(&records) && !records && !ngot, "an empty buffer");
	put_call(5, 7, 42);
	put_work(10, 216, 7, 1000, 1500); /* CUPTI 13 */
	put_work(10, 208, 8, 1500, 1600); /* and 12 */
	put_work(1, 96, 9, 10, 20);
	put_work(2, 80, 10, 30, 30);
	put_work(22, 88, 11, 5, 6);
	put_call(3, 12, 43); /* somebody else's */
	put_work(4, 48, 13, 1, 2);
	put_work(999, 64, 14, 1, 2);
	ok(!parse(&records) && records == 9 && ngot == 6, "nine records, six of them wanted");
	ok(item_is(0, RS_CUPTI_CALL, 7, 42, 0) && item_is(1, RS_CUPTI_BUSY, 7, 1000, 1500) &&
		   item_is(2, RS_CUPTI_BUSY, 8, 1500, 1600) &&
		   item_is(3, RS_CUPTI_BUSY, 9, 10, 20) && item_is(4, RS_CUPTI_BUSY, 10, 30, 30) &&
		   item_is(5, RS_CUPTI_BUSY, 11, 5, 6),
	   "and read right");
	start_buffer();
	put_work(10, 216, 1, 0, 0);
	put_work(10, 216, 2, 500, 400);
	put_work(1, 96, 3, 1, 1ull << 60);
	ok(!parse(&records) && ngot == 3 && got[0].what == RS_CUPTI_UNTIMED &&
		   got[1].what == RS_CUPTI_UNTIMED && got[2].what == RS_CUPTI_UNTIMED,
	   "no times, reversed ones, impossible ones");
}

static void test_parse_broken(void)
{
	uint64_t records;
	unsigned bad = 0;

	start_buffer();
	put_call(5, 1, 42);
	put_work(1, 96, 1, 10, 20);
	for (size_t cut = 1; cut < 24 + 48; cut++) {
		filled = cut;
		bad += parse(&records) != -EINVAL && cut != 24;
		bad += ngot != (cut >= 24);
	}
	ok(!bad, "a buffer cut off anywhere within what is read");
	start_buffer();
	put_work(1, 96, 1, 10, 20);
	put_work(1, 0, 2, 10, 20);
	put_work(1, 96, 3, 10, 20);
	ok(parse(&records) == -EINVAL && records == 2 && ngot == 2, "a record of length 0");
	start_buffer();
	put_work(1, 96, 1, 10, 20);
	end_code = 21;
	ok(parse(&records) == -EINVAL && ngot == 1, "a kind that the library does not know");
	end_code = 15;
	ok(parse(&records) == -EINVAL && ngot == 1, "a library that has gone");
	start_buffer();
	put_work(1, 96, 1, 10, 20);
	lengths[0] = (uint16_t)-8;
	put_work(1, 96, 2, 10, 20);
	ok(parse(&records) == -EINVAL || ngot == 1, "a record far behind the buffer");
	start_buffer();
	for (unsigned i = 0; i < 300; i++)
		put_work(2, 80, i, 10 + i, 20 + i);
	ok(!parse(&records) && ngot == 300 && got[299].correlation == 299, "many records");
}

/* --- windows ------------------------------------------------------------------------------------ */

static struct rs_cupti_busy *b;
static struct rs_cupti_told told[64];
static unsigned ntold;

static void call(uint32_t correlation, uint64_t window)
{
	rs_cupti_busy_item(b, &(struct rs_cupti_item){.what = RS_CUPTI_CALL,
						      .correlation = correlation,
						      .window = window});
}

static void work(uint32_t correlation, uint64_t start, uint64_t end)
{
	rs_cupti_busy_item(b, &(struct rs_cupti_item){.what = RS_CUPTI_BUSY,
						      .correlation = correlation,
						      .start = start,
						      .end = end});
}

/* Flush n times; what was told is in told. */
static void flush(unsigned n, uint64_t oldest)
{
	ntold = 0;
	while (n--) {
		rs_cupti_busy_flushed(b);
		ntold += rs_cupti_busy_tell(b, oldest, told + ntold, 64 - ntold);
	}
}

static struct rs_cupti_counts counts(void)
{
	struct rs_cupti_counts c;

	rs_cupti_busy_counts(b, &c);
	return c;
}

static int told_is(unsigned i, uint64_t window, uint64_t ns)
{
	return ok(ntold > i && told[i].window == window && told[i].ns == ns, "window %d: %d ns",
		  (int)window, (int)ns);
}

static void test_windows(void)
{
	b = rs_cupti_busy_create();
	rs_cupti_busy_enter(b, 1);
	call(100, 1);
	call(101, 1);
	call(102, 9); /* a window that nobody is in */
	work(100, 1000, 1500);
	work(102, 1000, 9500);
	work(101, 1200, 1700);
	flush(3, NEVER);
	is_u64(ntold, 0, "a window is not told while somebody is in it");
	rs_cupti_busy_leave(b, 1, 5);
	flush(1, NEVER);
	is_u64(ntold, 0, "nor before two flushes have brought nothing");
	flush(1, NEVER);
	told_is(0, 1, 700);
	flush(6, NEVER);
	is_u64(ntold, 0, "once");
	is_u64(counts().unmatched, 1, "work of no window");
	rs_cupti_busy_destroy(b);
}

static void test_late(void)
{
	b = rs_cupti_busy_create();
	rs_cupti_busy_enter(b, 1);
	rs_cupti_busy_leave(b, 1, 5);
	rs_cupti_busy_enter(b, 2);
	rs_cupti_busy_leave(b, 2, 6);
	call(1, 1);
	call(2, 2);
	work(1, 10, 20);
	work(2, 30, 50);
	flush(2, 6);
	told_is(0, 1, 10);
	is_u64(ntold, 1, "a buffer that is still out holds its window back");
	flush(1, 7);
	told_is(0, 2, 20);
	rs_cupti_busy_enter(b, 3);
	rs_cupti_busy_leave(b, 3, 7);
	call(3, 3);
	call(4, 3);
	work(3, 10, 20);
	flush(2, NEVER);
	is_u64(ntold, 0, "a call without work, too");
	work(4, 30, 40);
	flush(2, NEVER);
	told_is(0, 3, 20);
	work(6, 100, 110);
	rs_cupti_busy_enter(b, 4);
	rs_cupti_busy_leave(b, 4, 7);
	flush(1, NEVER);
	call(6, 4);
	call(7, 4);
	flush(5, 3);
	told_is(0, 4, 10);
	ok(ntold == 1, "work before its call; a call that failed, after some patience");
	rs_cupti_busy_enter(b, 5);
	rs_cupti_busy_leave(b, 5, 7);
	flush(5, NEVER);
	ok(!ntold && counts().empty == 1, "a window without work is not told");
	rs_cupti_busy_enter(b, 6);
	flush(300, NEVER);
	ok(!ntold && counts().missing == 1, "one that a thread never leaves is dropped");
	rs_cupti_busy_leave(b, 6, 7);
	rs_cupti_busy_destroy(b);
}

static void test_again(void)
{
	b = rs_cupti_busy_create();
	rs_cupti_busy_enter(b, 1);
	call(1, 1);
	rs_cupti_busy_leave(b, 1, 1);
	rs_cupti_busy_enter(b, 2); /* within 1 */
	call(2, 2);
	rs_cupti_busy_leave(b, 2, 1);
	rs_cupti_busy_enter(b, 1);
	call(3, 1);
	work(1, 100, 200);
	work(2, 200, 300);
	work(3, 300, 450);
	flush(2, NEVER);
	told_is(0, 2, 100);
	rs_cupti_busy_leave(b, 1, 1);
	flush(2, NEVER);
	told_is(0, 1, 250);
	call(UINT32_MAX, 1);
	rs_cupti_busy_enter(b, 8);
	call(UINT32_MAX, 8);
	call(0, 8);
	rs_cupti_busy_leave(b, 8, 1);
	work(UINT32_MAX, 1, 2);
	work(0, 3, 5);
	flush(2, NEVER);
	told_is(0, 8, 3);
	rs_cupti_busy_destroy(b);
}

static void test_missing(void)
{
	b = rs_cupti_busy_create();
	for (uint64_t w = 1; w <= 3; w++) {
		rs_cupti_busy_enter(b, w);
		call((uint32_t)w, w);
		rs_cupti_busy_leave(b, w, 1);
		if (w != 2)
			work((uint32_t)w, 10, 20);
	}
	rs_cupti_busy_item(b, &(struct rs_cupti_item){.what = RS_CUPTI_UNTIMED, .correlation = 2});
	flush(2, NEVER);
	told_is(0, 1, 10);
	told_is(1, 3, 10);
	ok(ntold == 2 && counts().missing == 1, "a record without times: not told");
	rs_cupti_busy_enter(b, 4);
	rs_cupti_busy_leave(b, 4, 1);
	call(4, 4);
	work(4, 10, 20);
	rs_cupti_busy_spoil(b);
	rs_cupti_busy_enter(b, 5);
	rs_cupti_busy_leave(b, 5, 1);
	call(5, 5);
	work(5, 10, 20);
	flush(2, NEVER);
	ok(ntold == 1 && told[0].window == 5 && counts().missing == 2,
	   "lost records: not told, but later ones are");
	rs_cupti_busy_destroy(b);
}

static void test_bounds(void)
{
	b = rs_cupti_busy_create();
	for (uint32_t i = 0; i < MOST_PENDING + 10; i++)
		work(i, i, i + 1);
	is_u64(counts().forgotten, 1, "work without end, of no call");
	for (uint32_t i = 0; i < MOST_WINDOWS + 10; i++)
		rs_cupti_busy_enter(b, i + 1);
	is_u64(counts().forgotten, 2, "windows without end");
	is_u64(counts().missing, MOST_WINDOWS, "which are missing then");
	rs_cupti_busy_destroy(b);
	b = rs_cupti_busy_create();
	rs_cupti_busy_enter(b, 1);
	call(1, 1);
	for (uint64_t i = 0; i < 5 * MOST_SPANS; i++)
		work(1, 10 + 10 * i, 13 + 10 * i);
	work(1, 10, 10 * MOST_SPANS); /* long summed up: what it adds is not counted */
	rs_cupti_busy_leave(b, 1, 1);
	flush(2, NEVER);
	ok(ntold == 1 && told[0].ns >= 15 * MOST_SPANS && told[0].ns < 22 * MOST_SPANS,
	   "a window with more gaps than are kept");
	rs_cupti_busy_destroy(b);
}

static uint64_t seed = 12345;

static uint32_t below(uint32_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((seed >> 33) % n);
}

/* Random windows and spans against a bit for each nanosecond. */
static void test_union(void)
{
	static uint8_t busy[4][4096];
	unsigned bad = 0;

	for (unsigned round = 0; round < 200; round++) {
		uint64_t want[4] = {0}, have[4] = {0};
		unsigned n = below(300);

		b = rs_cupti_busy_create();
		memset(busy, 0, sizeof(busy));
		for (uint64_t w = 1; w <= 4; w++)
			rs_cupti_busy_enter(b, w);
		for (uint32_t i = 0; i < n; i++) {
			uint32_t w = below(4), from = 1 + below(3900), len = below(190);
			int late = below(2);

			if (!late)
				call(i, w + 1);
			work(i, from, from + len);
			if (late)
				call(i, w + 1);
			memset(busy[w] + from, 1, len);
		}
		for (uint64_t w = 1; w <= 4; w++)
			rs_cupti_busy_leave(b, w, 1);
		flush(6, NEVER);
		for (unsigned i = 0; i < ntold; i++)
			have[told[i].window - 1] += told[i].ns;
		for (unsigned w = 0; w < 4; w++) {
			for (unsigned i = 0; i < 4096; i++)
				want[w] += busy[w][i];
			bad += want[w] != have[w];
		}
		rs_cupti_busy_destroy(b);
	}
	ok(!bad, "unions of 200 random sets of spans");
}

int main(void)
{
	test_parse();
	test_parse_broken();
	test_windows();
	test_late();
	test_again();
	test_missing();
	test_bounds();
	test_union();
	return tap_done();
}
