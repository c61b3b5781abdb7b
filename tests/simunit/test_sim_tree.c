/* SPDX-License-Identifier: MIT */
/*
 * The range tree and the handle table of the simulated driver against plain arrays.
 */
#include "tests/simcuda/sim.h"
#include "tests/tap.h"

#define SLOTS 512

static struct sim_node nodes[SLOTS];
static bool in[SLOTS];
static uint32_t state = 1;

static uint32_t rnd(void)
{
	state = state * 1664525u + 1013904223u;
	return state >> 8;
}

/* Slot i may hold [i * 100, i * 100 + size). */
static void *want(uint64_t addr)
{
	uint64_t i = addr / 100;

	return i < SLOTS && in[i] && addr - i * 100 < nodes[i].size ? &nodes[i] : NULL;
}

struct walk {
	uint64_t last;
	unsigned n;
	bool ordered;
};

static void visit(void *owner, void *opaque)
{
	struct sim_node *n = owner;
	struct walk *w = opaque;

	w->ordered &= !w->n || n->base > w->last;
	w->last = n->base;
	w->n++;
}

static void tree(void)
{
	struct sim_tree t = {0};
	struct walk w = {.ordered = true};
	unsigned bad = 0, live = 0;

	for (unsigned step = 0; step < 20000; step++) {
		unsigned i = rnd() % SLOTS;
		uint64_t addr = rnd() % (SLOTS * 100), base = rnd() % (SLOTS * 100);
		bool overlaps = false;

		if (in[i])
			sim_tree_remove(&t, &nodes[i]);
		else
			sim_tree_insert(&t, &nodes[i], i * 100, 1 + rnd() % 100, &nodes[i]);
		in[i] = !in[i];
		bad += sim_tree_find(&t, addr) != want(addr);
		for (uint64_t a = base; a < base + 7; a++)
			overlaps |= want(a) != NULL;
		bad += sim_tree_overlaps(&t, base, 7) != overlaps;
	}
	is_u64(bad, 0, "20,000 changes: every look-up and overlap as in the array");
	sim_tree_walk(t.root, visit, &w);
	for (unsigned i = 0; i < SLOTS; i++)
		live += in[i];
	ok(w.ordered && w.n == live, "a walk visits all of them in order");
}

static void handles(void)
{
	static char objects[4096];
	static uint8_t kind[4096];
	unsigned bad = 0;

	for (unsigned step = 0; step < 50000; step++) {
		unsigned i = rnd() % sizeof(objects);

		if (kind[i]) {
			sim_handle_del(&objects[i]);
			kind[i] = SIM_H_NONE;
		} else {
			kind[i] = (uint8_t)(1 + rnd() % SIM_H_USEROBJ);
			bad += sim_handle_add(&objects[i], kind[i]) != 0;
		}
		i = rnd() % sizeof(objects);
		bad += sim_handle_kind(&objects[i]) != kind[i];
	}
	is_u64(bad, 0, "50,000 handles come and go");
	ok(!sim_handle_is(NULL, SIM_H_CTX), "null is no handle");
}

int main(void)
{
	tree();
	handles();
	return tap_done();
}
