/* SPDX-License-Identifier: MIT */
/*
 * Launches known by their words alone (rs_engine_again_words): marks are left at whatever the words point into, and the call
 * is described as soon as somebody claims any of that, or has work of the shim's own there. Then calls known by what they
 * reach (rs_engine_again_reach), and what a thread remembers of the memory that it met lately: whatever makes that void.
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
	rs_moment_next(eng);
	ok(!rs_engine_again_words(eng, thr, RIG_Q(0), words_, 3),
	   "work of the shim's own comes first");
	ok(rs_engine_again_words(eng, thr, RIG_Q(1), words_, 3), "on another stream only");
	eng->fence_queues = 0;
	rig_stop();
}

/* What the engine says of a call that writes through the one word, which lies among others or by itself in turn. */
static int passes(unsigned q, uint64_t word)
{
	void *const place = &word;
	static int turn;

	if (turn++ % 2)
		return !!rs_engine_again_scattered(eng, thr, RIG_Q(q), &place, 1);
	return !!rs_engine_again_words(eng, thr, RIG_Q(q), &word, 1);
}

static int reaches(uint64_t addr, uint64_t lo, uint64_t hi, int dir)
{
	const struct rs_reach r = {(int64_t)(lo - addr), (int64_t)(hi - addr), 0, (uint32_t)dir};

	return !!rs_engine_again_reach(eng, thr, RIG_Q(0), &addr, &r, 1);
}

static struct rs_alloc *alloc_of(const void *p)
{
	return (struct rs_alloc *)rs_engine_lookup(eng, (uint64_t)p, &(uint64_t){0},
						   &(uint64_t){0});
}

/* As alloc_of; it lies between these. */
static const void *lately(uint64_t at, uint64_t *base, uint64_t *bytes)
{
	return rs_engine_lookup_lately(eng, thr, rs_engine_generation(eng), at, base, bytes);
}

static void forget_marks(struct rs_alloc *a)
{
	a->touched = a->loose = 0;
}

static int is_marked(const struct rs_alloc *a, uint64_t queues)
{
	return a->touched == queues && a->loose == eng->version + 1;
}

/* As somebody else's forward would. */
static void claim(struct rs_alloc *a)
{
	a->claimed = eng->claim_epoch;
	rs_moment_next(eng);
}

/* Two streams that are known, and something pending. */
static void begin(uint32_t **x)
{
	uint32_t *y;

	rig_start(RS_MODE_PRESERVE);
	*x = words(1), y = words(1);
	STEP(1);
	something_pending();
	ON(0, bump, RW_(y, 1));
	ON(1, bump, RW_(y, 1));
}

/* Words that lie apart. */
static void scattered(void)
{
	uint32_t *x, *y, *z;
	struct rs_alloc *a;
	uint64_t word[3];
	void *place[3] = {&word[2], &word[0], &word[1]};

	begin(&x);
	y = words(1), z = words(1);
	a = alloc_of(z);
	word[0] = (uint64_t)x, word[1] = (uint64_t)y, word[2] = 7;
	ok(!rs_engine_again_scattered(eng, thr, RIG_Q(7), place, 3), "a stream seen first");
	ok(rs_engine_again_scattered(eng, thr, RIG_Q(0), place, 3) == rs_engine_moment(eng),
	   "words that nobody claims");
	ok(is_marked(alloc_of(x), 1) && is_marked(alloc_of(y), 1) && !a->loose,
	   "marks are left at all of them, and at no others");
	place[0] = NULL;
	ok(!rs_engine_again_scattered(eng, thr, RIG_Q(0), place, 3), "one that is not there");
	ok(rs_engine_again_scattered(eng, thr, RIG_Q(0), place, 0), "none at all");
	claim(a);
	place[0] = &word[2];
	ok(rs_engine_again_scattered(eng, thr, RIG_Q(0), place, 3), "other memory is claimed");
	word[2] = (uint64_t)z;
	ok(!rs_engine_again_scattered(eng, thr, RIG_Q(0), place, 3), "what one of them points to");
	PUSH("forward:f");
	ok(!rs_engine_again_scattered(eng, thr, RIG_Q(0), place + 1, 2), "inside of a window");
	POP();
	rig_stop();
}

/* More at once than are fetched at once: some that are known, some that are not, some where there is nothing. */
#define MANY (2 * RS_ADDRMAP_FETCH + 7)
static void many(void)
{
	const uint64_t at = 1ull << 46;
	struct rs_reach reach[MANY];
	uint64_t word[MANY];
	void *place[MANY];
	uint32_t *x, left = 0;

	begin(&x);
	for (unsigned i = 0; i < MANY; i++) {
		word[i] = at + i * (i % 3 ? 4096ull : 5ull << 21);
		place[i] = &word[i];
		reach[i] = (struct rs_reach){0, 1, 8 * i, RS_WRITE};
		if (i % 5 && i % 3)
			rs_engine_alloc(eng, thr, RIG_Q(0), word[i], 4096, RS_ALLOC_DEVICE);
	}
	for (unsigned form = 0; form < 3; form++) {
		uint64_t now;

		for (unsigned i = 0; i < MANY; i++)
			if (alloc_of((void *)word[i]))
				forget_marks(alloc_of((void *)word[i]));
		rs_moment_next(eng);
		ok(passes(0, word[7]), "one of them is known");
		now = form == 0	  ? rs_engine_again_words(eng, thr, RIG_Q(0), word, MANY)
		      : form == 1 ? rs_engine_again_scattered(eng, thr, RIG_Q(0), place, MANY)
				  : rs_engine_again_reach(eng, thr, RIG_Q(0), word, reach, MANY);
		left = 0;
		for (unsigned i = 0; i < MANY; i++)
			left += alloc_of((void *)word[i]) &&
				!is_marked(alloc_of((void *)word[i]), 1);
		ok(now == rs_engine_moment(eng) && !left, "many words, a mark at each");
	}
	for (unsigned i = 0; i < MANY; i++) {
		struct rs_alloc *a = alloc_of((void *)word[i]);

		if (!a)
			continue;
		rs_moment_next(eng);
		claim(a);
		left += rs_engine_again_words(eng, thr, RIG_Q(0), word, MANY) ||
			rs_engine_again_scattered(eng, thr, RIG_Q(0), place, MANY) ||
			rs_engine_again_reach(eng, thr, RIG_Q(0), word, reach, MANY);
		a->claimed = 0;
	}
	ok(!left, "whichever one is claimed");
	rs_moment_next(eng);
	ok(rs_engine_again_words(eng, thr, RIG_Q(0), word, MANY), "none is");
	rig_stop();
}

/* A copy, and a fill: from nowhere. */
static void copied(void)
{
	const uint64_t to = 1ull << 46, from = to + 4096; /* not in one entry */
	struct rs_alloc *a, *b;
	uint32_t *x;

	begin(&x);
	rs_engine_alloc(eng, thr, RIG_Q(0), to, 4096, RS_ALLOC_DEVICE);
	rs_engine_alloc(eng, thr, RIG_Q(0), from, 4096, RS_ALLOC_DEVICE);
	a = alloc_of((void *)to), b = alloc_of((void *)from);
	ok(!rs_engine_again_copy(eng, thr, RIG_Q(7), to, from), "a stream seen first");
	ok(rs_engine_again_copy(eng, thr, RIG_Q(0), to, from) == rs_engine_moment(eng),
	   "a copy of what nobody claims");
	ok(is_marked(a, 1) && b->touched == 1 && !b->loose, "is a write here, a read there");
	forget_marks(a);
	ok(rs_engine_again_copy(eng, thr, RIG_Q(0), to + 3, from) && !a->touched,
	   "another one, too, without a look");
	forget_marks(b);
	rs_moment_next(eng);
	ok(rs_engine_again_copy(eng, thr, RIG_Q(0), to, 0) && a->touched == 1 &&
		   rs_engine_again_copy(eng, thr, RIG_Q(0), to, from) && b->touched == 1,
	   "what is read is looked at where what is written is known");
	ok(rs_engine_again_copy(eng, thr, RIG_Q(0), from, to) && b->loose == eng->version + 1,
	   "the other way it is a write there");
	claim(b);
	ok(rs_engine_again_copy(eng, thr, RIG_Q(0), to, from), "what is claimed may be read");
	ok(rs_engine_again_copy(eng, thr, RIG_Q(0), to, 0) && is_marked(a, 1), "or not");
	ok(!rs_engine_again_copy(eng, thr, RIG_Q(0), from, to), "but not be written");
	ok(!rs_engine_again_copy(eng, thr, RIG_Q(0), from + 3, 0), "nor filled");
	PUSH("forward:f");
	ok(!rs_engine_again_copy(eng, thr, RIG_Q(0), to, from), "inside of a window");
	POP();
	rig_stop();
}

static void remembered(void)
{
	struct rs_alloc *a;
	uint64_t at;
	uint32_t *x;

	begin(&x);
	at = (uint64_t)x;
	a = alloc_of(x);
	ok(passes(0, at) && is_marked(a, 1), "memory that is met leaves marks");
	forget_marks(a);
	ok(passes(0, at) && !a->touched && !a->loose, "and is not looked at again");
	ok(passes(1, at) && is_marked(a, 2), "on another stream it is");
	ok(passes(0, at) && is_marked(a, 3), "and on the first one again, with its own mark");
	forget_marks(a);
	something_pending();
	ok(passes(0, at) && is_marked(a, 1),
	   "and when a forward has begun since: marks are of its time");
	claim(a);
	ok(!passes(0, at) && !passes(0, at), "and when it was claimed");
	ok(reaches(at, at, at + 4, RS_READ) && !reaches(at, at, at + 4, RS_WRITE),
	   "which is no matter to readers");
	ok(!passes(0, at), "what holds for reading does not hold for writing");
	rig_stop();
}

/* A reader leaves the mark of a reader only. */
static void read_then_written(void)
{
	struct rs_alloc *a;
	uint64_t at;
	uint32_t *x;

	begin(&x);
	at = (uint64_t)x;
	a = alloc_of(x);
	ok(reaches(at, at, at + 4, RS_READ) && a->touched == 1 && !a->loose, "a reader's mark");
	ok(reaches(at, at, at + 4, RS_WRITE) && is_marked(a, 1), "then a writer's");
	forget_marks(a);
	ok(reaches(at, at, at + 4, RS_READ) && reaches(at, at, at + 4, RS_WRITE) && !a->touched,
	   "which stands for a reader's, too");
	rig_stop();
}

/* Another allocation gets the address. */
static void replaced(void)
{
	uint64_t at, base = 0, bytes = 0;
	struct rs_alloc *a, *b;
	uint32_t *x;

	begin(&x);
	at = (uint64_t)x;
	a = alloc_of(x);
	ok(passes(0, at) && passes(0, at), "memory that was met");
	ok(lately(at + 3, &base, &bytes) == a && base == at && bytes == 4,
	   "is known by its addresses");
	rs_engine_free(eng, thr, RIG_Q(0), at);
	forget_marks(a);
	ok(!lately(at, &base, &bytes), "not when it has gone");
	ok(passes(0, at) && !a->touched, "nothing is there");
	ok(words(2) != x, "its place among those that are to be used again is taken");
	rs_engine_alloc(eng, thr, RIG_Q(0), at, 4, RS_ALLOC_DEVICE);
	b = alloc_of(x);
	ok(lately(at, &base, &bytes) == b, "what has come to its address is known");
	ok(b && passes(0, at) && is_marked(b, 1), "and met");
	claim(b);
	ok(!passes(0, at), "and is asked about");
	rig_stop();
}

/* Addresses that share an entry; memory that is large, beside small memory; addresses that nobody maps. */
static void places(void)
{
	const uint64_t one = 1ull << 46, other = one + (1 << 22) + (1 << 12),
		       big = one + (1ull << 40);
	uint32_t *x;

	begin(&x);
	rs_engine_alloc(eng, thr, RIG_Q(0), one, 4096, RS_ALLOC_DEVICE);
	rs_engine_alloc(eng, thr, RIG_Q(0), other, 4096, RS_ALLOC_DEVICE);
	rs_engine_alloc(eng, thr, RIG_Q(0), big, 3ull << 20, RS_ALLOC_DEVICE);
	rs_engine_alloc(eng, thr, RIG_Q(0), big + (3ull << 20), 4096, RS_ALLOC_DEVICE);
	ok(passes(0, one) && passes(0, other) && passes(0, one + 4095), "they take turns");
	claim(alloc_of((void *)other));
	ok(passes(0, one) && !passes(0, other) && passes(0, one) && !passes(0, other + 4095),
	   "each by its own memory");
	ok(passes(0, one + 4096) && passes(0, other - 1), "beside which there is none");
	ok(passes(0, big) && passes(0, big + (3ull << 20) - 1) && passes(0, big + (3ull << 20)),
	   "large memory, and small memory behind it");
	claim(alloc_of((void *)big));
	ok(!passes(0, big) && !passes(0, big + (3ull << 20) - 1) && passes(0, big + (3ull << 20)),
	   "large memory is claimed as a whole");
	rig_stop();
}

static void reach(void)
{
	struct rs_reach two[2] = {{0, 4, 0, RS_WRITE}, {0, 4, 8, RS_WRITE}};
	uint64_t words_[2];
	struct rs_alloc *a;
	uint32_t *x, *z;
	uint64_t at;

	begin(&x);
	z = words(1);
	at = (uint64_t)x;
	a = alloc_of(x);
	ok(rs_engine_again_reach(eng, thr, RIG_Q(0), NULL, two, 0), "a call that reaches nothing");
	ok(!rs_engine_again_reach(eng, thr, RIG_Q(7), NULL, two, 0), "a stream seen first");
	ok(reaches(at, at - 8, at + 1, RS_WRITE) && is_marked(a, 1), "bytes around an address");
	ok(!reaches(at, at + 4, at + 8, RS_WRITE) && !reaches(at, at - 8, at, RS_WRITE),
	   "none of its memory: another one's, perhaps");
	ok(reaches(1 << 20, 1 << 20, 1 << 21, RS_WRITE), "memory that nobody knows");
	ok(!reaches(1 << 20, at, at + 4, RS_WRITE),
	   "from where memory is reached that somebody does");
	claim(alloc_of(z));
	forget_marks(a);
	words_[0] = at, words_[1] = (uint64_t)z;
	ok(!rs_engine_again_reach(eng, thr, RIG_Q(0), words_, two, 2) && !a->touched && !a->loose,
	   "a call that does not pass leaves no marks");
	two[1].dir = RS_READ;
	ok(rs_engine_again_reach(eng, thr, RIG_Q(0), words_, two, 2) && is_marked(a, 1),
	   "one that does, all");
	two[1] = (struct rs_reach){4, 8, 8, RS_WRITE};
	words_[1] = 0;
	rs_moment_next(eng); /* so that the other one has to be looked at */
	ok(rs_engine_again_reach(eng, thr, RIG_Q(0), words_, two, 2),
	   "from NULL nothing is reached");
	PUSH("forward:f");
	ok(!rs_engine_again_reach(eng, thr, RIG_Q(0), words_, two, 2), "inside of a window");
	POP();
	rig_stop();
}

/* Mapped memory may be any number of backings: it is always asked about. */
static void mapped(void)
{
	uint64_t base = 0, bytes = 0;
	const uint64_t at = 1ull << 46;
	uint32_t *x;

	begin(&x);
	rs_engine_backing(eng, 77, 4 << 20, RS_ALLOC_DEVICE);
	rs_engine_reserve(eng, at, 8 << 20);
	ok(!rs_engine_map(eng, at + (2 << 20), 4 << 20, 77, 0), "a mapping");
	base = at + (3 << 20);
	ok(!passes(0, base) && !passes(0, base) && !reaches(base, base, base + 1, RS_READ),
	   "is never passed by");
	for (int i = 0; i < 2; i++)
		ok(lately(at + (2 << 20), &base, &bytes) && base == at && bytes == 8 << 20,
		   "its memory is all of the reservation");
	rig_stop();
}

int main(void)
{
	by_words();
	scattered();
	copied();
	many();
	remembered();
	read_then_written();
	replaced();
	places();
	reach();
	mapped();
	return tap_done();
}
