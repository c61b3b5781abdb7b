/* SPDX-License-Identifier: MIT */
/*
 * Captured training steps whose memory the graph itself allocates, and that order their streams in their own ways. As
 * captures.c:
 *
 *	captures_memory CASE [VARIANT...] [--streams] [--steps=N | --seeds=N]	see hazards_rig.h
 *
 * What is right and what goes wrong is in tests/t/captures.t.
 */
#include "tests/clients/hazards_ptx.h"

#define HAZARD_MODULES hazards_ptx
#include "tests/clients/captures.h"

/* --- memory nodes --------------------------------------------------------------------------------- */

static dev node_alloc(void)
{
	CUmemoryPool pool;
	CUdevice device;
	dev p;

	if (!option("pool")) {
		MUST(cuMemAllocAsync(&p, 4, on));
		return p;
	}
	MUST(cuCtxGetDevice(&device));
	MUST(cuDeviceGetDefaultMemPool(&pool, device));
	MUST(cuMemAllocFromPoolAsync(&p, 4, pool, on));
	return p;
}

/* A product by way of the graph's own memory. */
static void temp(void)
{
	struct pair p = make_pair(1);
	unsigned i;
	dev t;

	begin();
	for (i = 0; i < 2; i++) {
		if (i)
			replay("block", 0);
		else
			replayshim_forward_begin("block", 0);
		t = node_alloc();
		pair_work(&p, t);
		copy(i ? p.again : p.y, t, 1);
		MUST(cuMemFreeAsync(t, on));
		if (i)
			replay_end();
		else
			replayshim_forward_end();
	}
	launch_graph(end());
	show(&p);
}

/*
 * State in the graph's own memory, shown at its end. `early`: freed on the replay's stream as soon as the replay is over, so
 * that what the tool puts back must come before.
 */
static void inner_state(void)
{
	struct pair p = make_pair(option("adds"));
	dev shown = p.s;

	begin();
	p.s = node_alloc();
	fill(p.s, 1, 1);
	pair_forward(&p);
	if (!p.adds)
		fill(p.s, 9, 1);
	replay("block", 0);
	pair_work(&p, p.again);
	replayshim_replay_end();
	if (!option("early")) {
		hand_over(replays, outside);
		on = outside;
	}
	copy(shown, p.s, 1);
	MUST(cuMemFreeAsync(p.s, on));
	hand_over(on, outside);
	on = outside;
	launch_graph(end());
	p.s = shown;
	show(&p);
}

/* What the windows allocate outlives the launch: freed by the program, or by the next launch (`auto`). */
static void left(void)
{
	struct pair p = make_pair(0);
	int by_launch = option("auto");
	CUgraphExec exec;
	unsigned i;
	CUgraph g;

	begin();
	replayshim_forward_begin("block", 0);
	p.y = node_alloc();
	pair_work(&p, p.y);
	replayshim_forward_end();
	fill(p.s, 9, 1);
	replay("block", 0);
	p.again = node_alloc();
	pair_work(&p, p.again);
	replay_end();
	g = end();
	MUST(cuGraphInstantiateWithFlags(
		&exec, g, by_launch ? CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH : 0));
	for (i = 0; i < 3; i++) {
		char name[16];

		fill(p.s, 2 + i, 1);
		MUST(cuGraphLaunch(exec, outside));
		snprintf(name, sizeof(name), "y%u", i);
		probe(name, p.y, 1);
		snprintf(name, sizeof(name), "again%u", i);
		probe(name, p.again, 1);
		if (!by_launch || i == 2) {
			MUST(cuMemFreeAsync(p.y, outside));
			MUST(cuMemFreeAsync(p.again, outside));
		}
	}
	probe("s", p.s, 1);
	MUST(cuCtxSynchronize());
	MUST(cuGraphExecDestroy(exec));
	MUST(cuGraphDestroy(g));
}

/* One graph leaves state that another one has its segment on, and frees; both are captured before any runs. */
static void other(void)
{
	struct pair p = make_pair(0);
	CUgraphExec first, second;
	dev shown = p.s;
	CUgraph g, h;
	unsigned i;

	begin();
	p.s = node_alloc();
	fill(p.s, 1, 1);
	g = end();
	begin();
	pair_forward(&p);
	fill(p.s, 9, 1);
	pair_replay(&p);
	copy(shown, p.s, 1);
	MUST(cuMemFreeAsync(p.s, outside));
	h = end();
	p.s = shown;
	first = instantiate(g);
	second = instantiate(h);
	for (i = 0; i < 2; i++) {
		MUST(cuGraphLaunch(first, outside));
		MUST(cuGraphLaunch(second, outside));
	}
	show(&p);
	MUST(cuCtxSynchronize());
	MUST(cuGraphExecDestroy(second));
	MUST(cuGraphDestroy(h));
	MUST(cuGraphExecDestroy(first));
	MUST(cuGraphDestroy(g));
}

/* --- order ---------------------------------------------------------------------------------------- */

/*
 * A second stream of the capture writes the state, after the forward has read it if it is `ordered`: by an event, or by
 * hand. What it writes if it is not is what is there, so that the words are the same in every order.
 */
static void race(void)
{
	struct pair p = make_pair(0);
	int ordered = option("ordered"), by_hand = option("by_hand");
	struct dependencies d;
	CUstream aside;

	MUST(cuStreamCreate(&aside, CU_STREAM_NON_BLOCKING));
	begin();
	hand_over(outside, aside);
	pair_forward(&p);
	if (ordered)
		hand_over(outside, aside);
	if (by_hand) {
		dependencies_of(outside, &d);
		MUST(cuStreamUpdateCaptureDependencies(aside, d.node, NULL, d.n,
						       CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
	}
	on = aside;
	fill(p.s, ordered || by_hand ? 9 : 1, 1);
	if (ordered || by_hand)
		hand_over(aside, outside);
	on = outside;
	pair_replay(&p);
	hand_over(aside, outside);
	launch_graph(end());
	show(&p);
	MUST(cuCtxSynchronize());
	MUST(cuStreamDestroy(aside));
}

/* A branch without a stream of its own: it comes after the writer, beside the replay, and reads the state. */
static void branch(void)
{
	struct pair p = make_pair(0);
	struct dependencies early, late;
	dev seen = alloc(1);

	begin();
	pair_forward(&p);
	fill(p.s, 9, 1);
	dependencies_of(outside, &early);
	replay("block", 0);
	LAUNCH("mul", 1, &p.again, &p.x, &p.s);
	replay_end();
	dependencies_of(outside, &late);
	MUST(cuStreamUpdateCaptureDependencies(outside, early.node, NULL, early.n,
					       CU_STREAM_SET_CAPTURE_DEPENDENCIES));
	copy(seen, p.s, 1);
	MUST(cuStreamUpdateCaptureDependencies(outside, late.node, NULL, late.n,
					       CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
	launch_graph(end());
	show(&p);
	probe("seen", seen, 1);
}

static const struct hazard_case cases[] = {
	{"temp", temp},	  {"state", inner_state}, {"left", left},
	{"other", other}, {"race", race},	  {"branch", branch},
};

HAZARD_MAIN(cases)
