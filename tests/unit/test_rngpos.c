/* SPDX-License-Identifier: MIT */
/*
 * Positions of generators: two ways to the same place give one number where that is known to be true, and any two
 * places that draw differently give two. The places are those that the host generators of cuRAND 10.4 showed.
 */
#include "tests/tap.h"
#include "tracker/rngpos.h"

enum {
	XORWOW = 101,
	MRG = 121,
	MTGP32 = 141,
	PHILOX = 161,
	SOBOL = 201,
	LEGACY = 103,
	DYNAMIC = 104
};

static struct rs_rngpos start(int type)
{
	struct rs_rngpos p;

	rs_rngpos_init(&p, type);
	rs_rngpos_seed(&p, 1234);
	return p;
}

static struct rs_rngpos at(int type, uint64_t offset)
{
	struct rs_rngpos p = start(type);

	rs_rngpos_offset(&p, offset);
	return p;
}

static struct rs_rngpos after(struct rs_rngpos p, enum rs_rngpos_draw draw, uint64_t n)
{
	rs_rngpos_draw(&p, draw, n, 0);
	return p;
}

static int same(struct rs_rngpos a, struct rs_rngpos b)
{
	return rs_rngpos_value(&a) == rs_rngpos_value(&b);
}

#define DOUBLE RS_RNGPOS_UNIFORM_DOUBLE
#define WORD   RS_RNGPOS_WORD
#define NORMAL RS_RNGPOS_NORMAL
#define WIDE   RS_RNGPOS_NORMAL_DOUBLE

static void offsets(void)
{
	static const int types[] = {XORWOW, MRG, PHILOX, SOBOL};

	for (unsigned i = 0; i < 4; i++) {
		int t = types[i];

		ok(same(start(t), at(t, 0)), "%d: a fresh generator is at offset 0", t);
		ok(same(after(start(t), WORD, 100), at(t, 100)), "%d: words move by one", t);
		ok(same(after(after(at(t, 7), RS_RNGPOS_UNIFORM, 100), WORD, 300), at(t, 407)),
		   "%d: split calls are one", t);
		ok(!same(after(start(t), WORD, 100), at(t, 101)), "%d: another place", t);
		ok(same(after(start(t), WORD, 0), at(t, 0)), "%d: nothing drawn", t);
	}
	ok(same(after(start(XORWOW), DOUBLE, 4096), at(XORWOW, 8192)), "a whole round of doubles");
	ok(same(after(start(XORWOW), NORMAL, 8192), at(XORWOW, 8192)), "of normals, in pairs");
	ok(same(after(after(start(XORWOW), WIDE, 192), WIDE, 8000), at(XORWOW, 16384)),
	   "of double normals, in two calls");
	ok(same(after(at(XORWOW, 5), DOUBLE, 8192), at(XORWOW, 16389)), "from anywhere");
	ok(same(after(start(MRG), DOUBLE, 33), at(MRG, 33)), "MRG32k3a: a double is one value");
	ok(same(after(start(MRG), NORMAL, 163840), at(MRG, 163840)), "its round is longer");
	ok(same(after(start(PHILOX), NORMAL, 33), at(PHILOX, 33)), "Philox: normals move by one");
	ok(same(after(start(PHILOX), DOUBLE, 262144), at(PHILOX, 524288)), "a round of doubles");
}

/* Lanes that were drawn from unequally: no offset is that place. */
static void between_offsets(void)
{
	struct rs_rngpos p = after(start(XORWOW), DOUBLE, 5000);

	ok(!same(p, at(XORWOW, 5000)) && !same(p, at(XORWOW, 9096)) && !same(p, at(XORWOW, 10000)),
	   "doubles in the middle of a round are at no offset");
	ok(same(p, after(after(start(XORWOW), DOUBLE, 2000), DOUBLE, 3000)), "split calls are one");
	ok(same(p, after(start(XORWOW), NORMAL, 10000)), "pairs of normals take as much");
	ok(!same(p, after(start(XORWOW), WIDE, 10000)), "double normals more");
	ok(!same(after(p, WORD, 10), after(after(start(XORWOW), WORD, 10), DOUBLE, 5000)),
	   "the order of draws matters");
	rs_rngpos_offset(&p, 77);
	ok(same(p, at(XORWOW, 77)), "an offset ends all that");
	p = after(start(PHILOX), DOUBLE, 100);
	ok(!same(p, at(PHILOX, 100)) && !same(p, at(PHILOX, 200)), "Philox: doubles too");
}

static void starts(void)
{
	struct rs_rngpos p = after(start(XORWOW), DOUBLE, 5000), q = p, r;

	rs_rngpos_seed(&q, 1234);
	ok(same(p, q), "the seed that it has changes nothing");
	rs_rngpos_seed(&q, 99);
	rs_rngpos_seed(&q, 1234);
	ok(same(q, at(XORWOW, 5000)), "another starts at the count of turns");
	rs_rngpos_seeds(&p);
	ok(same(p, at(XORWOW, 5000)), "and so do new states");
	p = after(start(XORWOW), WORD, 10);
	q = p;
	rs_rngpos_seed(&q, 99);
	ok(!same(p, q), "another seed is another place");
	p = after(start(PHILOX), WORD, 100);
	q = p;
	rs_rngpos_seeds(&q);
	ok(!same(p, q) && !same(q, at(PHILOX, 25)), "Philox starts at a place not relied on");
	rs_rngpos_offset(&q, 100);
	ok(same(p, q), "until an offset says it");
	p = start(XORWOW);
	rs_rngpos_order(&p, LEGACY);
	ok(!same(p, start(XORWOW)), "another order is another place");
	r = at(SOBOL, 3);
	rs_rngpos_dims(&r, 4);
	ok(!same(r, at(SOBOL, 3)), "and so are more dimensions");
	q = r;
	rs_rngpos_offset(&q, 6);
	ok(same(after(r, WORD, 12), q), "which share the results");
}

static void lawless(void)
{
	struct rs_rngpos p = start(XORWOW), q;

	rs_rngpos_draw(&p, RS_RNGPOS_POISSON, 10, 3.0);
	q = start(XORWOW);
	rs_rngpos_draw(&q, RS_RNGPOS_POISSON, 10, 5000.0);
	ok(!same(p, q), "Poisson depends on lambda");
	q = start(XORWOW);
	rs_rngpos_draw(&q, RS_RNGPOS_POISSON, 10, 3.0);
	ok(same(p, q) && !same(p, at(XORWOW, 10)), "the same calls lead to the same place");
	rs_rngpos_seed(&q, 9);
	rs_rngpos_seed(&q, 1234);
	ok(!same(p, q) && !same(q, at(XORWOW, 10)), "a new start after them is unknown");
	p = start(XORWOW);
	rs_rngpos_order(&p, DYNAMIC);
	q = after(p, DOUBLE, 4096);
	ok(!same(after(p, WORD, 8192), q), "in an order of unknown lanes nothing is equal");
	ok(same(after(p, WORD, 8), after(p, WORD, 8)), "but the same calls");
	p = after(start(MTGP32), WORD, 100);
	ok(!same(p, start(MTGP32)), "MTGP32 moves");
	q = p;
	rs_rngpos_seed(&q, 1234);
	ok(!same(q, start(MTGP32)), "its seed alone does not rewind it");
	rs_rngpos_seeds(&q);
	ok(same(q, start(MTGP32)), "new states do");
}

int main(void)
{
	ok(!same(after(after(after(start(XORWOW), DOUBLE, 3), WIDE, 4), WORD, 1),
		 after(after(after(start(XORWOW), WIDE, 4), DOUBLE, 3), WORD, 1)),
	   "draws in another order lead elsewhere");
	offsets();
	between_offsets();
	starts();
	lawless();
	return tap_done();
}
