/* SPDX-License-Identifier: MIT */
/* Terms of contracts by place: every answer against a walk over all of them, and that thousands of them are no burden. */
#include "tests/unit/engine_rig.h"
#include "tracker/model.h"

#define BYTES 4096u
#define MOST  64u

static struct rs_term given[MOST];
static unsigned ngiven;

/* What of the term applies to the spot: 1 and [*from, *end). */
static int applies(const struct rs_term *t, const struct rs_spot *s, uint64_t *from, uint64_t *end)
{
	const struct rs_alloc *a = s->range->a;
	uint64_t base = s->range->off, room = s->range->len;
	uint32_t i;

	if (t->region) {
		for (i = 0; i < a->regions.n && strcmp(a->regions.v[i].name, t->region); i++)
			;
		if (i == a->regions.n)
			return 0;
		base = a->regions.v[i].off;
		room = a->regions.v[i].len;
	} else if (t->call != s->call || t->slot != s->slot || t->piece != s->range->piece) {
		return 0;
	}
	if (t->off >= room)
		return 0;
	*from = base + t->off;
	*end = base + (t->len < room - t->off ? t->off + t->len : room);
	return 1;
}

/* The number of the first term that contains off, or -1. */
static int walk(const struct rs_spot *s, uint64_t off, int window)
{
	uint64_t from, end;
	unsigned i;

	for (i = 0; i < ngiven; i++)
		if (given[i].window == window && applies(&given[i], s, &from, &end) &&
		    off >= from && off < end)
			return (int)i;
	return -1;
}

static void some_terms(void)
{
	static const char *const names[] = {"a", "b", "c", "nowhere"};
	unsigned i;

	ngiven = 1 + fake_random(MOST);
	for (i = 0; i < ngiven; i++) {
		struct rs_term *t = &given[i];

		memset(t, 0, sizeof(*t));
		t->region = fake_random(3) ? NULL : names[fake_random(4)];
		t->call = fake_random(2);
		t->slot = (uint16_t)fake_random(2);
		t->piece = (uint16_t)!fake_random(4);
		t->window = (uint8_t)fake_random(2);
		t->off = fake_random(BYTES / 2);
		t->len = 1 + fake_random(fake_random(2) ? 40 : BYTES);
		t->role = (uint8_t)fake_random(2);
		rs_engine_term(eng, "f", t);
	}
}

/* Every answer holds from off to until, and nothing else is found there. */
static unsigned disagreements(const struct rs_terms *terms, const struct rs_spot *s)
{
	unsigned bad = 0;
	int window;

	for (window = 0; window < 2; window++) {
		uint64_t off = s->range->off, end = off + s->range->len, until, at;

		for (; off < end; off = until) {
			const struct rs_term *t;

			until = end;
			t = rs_terms_at(terms, s, off, window, &until);
			bad += until <= off;
			for (at = off; at < until; at++) {
				int want = walk(s, at, window);

				bad += want < 0 ? t != NULL : !t || t != &terms->terms.v[want];
			}
			until = until <= off ? end : until;
		}
	}
	return bad;
}

static void random_terms(void)
{
	unsigned bad = 0, round, i;

	for (round = 0; round < 400; round++) {
		uint64_t base, bytes;
		struct rs_range r = {.access = 0};
		struct rs_spot s = {.range = &r};
		uint32_t *p;

		rig_start(RS_MODE_AUDIT);
		fake.rng = round * 77 + 1;
		p = words(BYTES / 4);
		rs_engine_region(eng, (uint64_t)p + 100, 300, "state:a");
		rs_engine_region(eng, (uint64_t)p + 400, 50, "state:b");
		rs_engine_region(eng, (uint64_t)p + 1000, 2000, "c");
		some_terms();
		r.a = rs_addrmap_find(eng->map, (uint64_t)p, &base, &bytes);
		for (i = 0; i < 8; i++) {
			s.call = i & 1;
			s.slot = i >> 1 & 1;
			r.piece = (uint16_t)(i >> 2);
			r.off = fake_random(BYTES / 2);
			r.len = 1 + fake_random(BYTES / 2);
			bad += disagreements(rs_terms_find(eng, rs_intern(eng, "f")), &s);
		}
		rig_stop();
	}
	is_u64(bad, 0, "every answer is that of a walk over all terms");
}

static void read_it(struct rig_arg *a)
{
	a[1].p[0] = a[0].p[0];
}

/* A forward that reads a table with `n` windows, of each of which its contract knows; the answers take so much time. */
static double forward_under(unsigned n, int named)
{
	uint32_t *x, *y;
	uint64_t begin;

	rig_start(RS_MODE_PRESERVE);
	rs_engine_policy(eng, "f", (struct rs_policy){RS_OPTION_REGIONS, RS_RESTORE_COPY});
	x = words(n * 4), y = words(1);
	for (unsigned i = 0; i < n; i++) {
		struct rs_term w = {.region = named ? "x" : NULL,
				    .call = 0,
				    .slot = 0,
				    .off = i * 16,
				    .len = 8,
				    .window = 1};

		rs_engine_term(eng, "f", &w);
	}
	if (named)
		rs_engine_region(eng, (uint64_t)x, n * 16, "state:x");
	STEP(1);
	begin = rs_now_ns();
	PUSH("forward:f");
	KERNEL(read_it, R_(x, n * 4), W_(y, 1));
	POP();
	begin = rs_now_ns() - begin;
	is_u64(eng->stats.snapshots, n, "all windows are preserved, and nothing between them");
	rig_stop();
	return (double)begin / 1e6;
}

int main(void)
{
	random_terms();
	for (int named = 0; named < 2; named++) {
		double few = forward_under(500, named), many = forward_under(5000, named);

		printf("# %s: 500 windows %.2f ms, 5,000 windows %.2f ms\n",
		       named ? "by name" : "by argument", few, many);
	}
	return tap_done();
}
