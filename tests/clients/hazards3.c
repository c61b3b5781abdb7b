/* SPDX-License-Identifier: MIT */
/*
 * Small training steps whose recomputation goes wrong: graphs, lifetimes of memory, the extent of a window. Driver
 * API only; it knows of replayshim nothing but the marker header.
 *
 *	hazards3 CASE [VARIANT...] [--streams] [--steps=N | --seeds=N]	see hazards_rig.h
 *
 * What is right and what goes wrong is in tests/t/hazards2.t.
 */
#include "tests/clients/hazards2_ptx.h"
#include "tests/clients/hazards_ptx.h"

#define HAZARD_MODULES hazards_ptx, hazards2_ptx
#include "tests/clients/hazards_rig.h"

/* y = what is there. */
static dev reading_segment(void *inputs)
{
	dev *from = inputs, y = alloc(1);
	unsigned one = 1;

	LAUNCH("scale", 1, &y, from, &one);
	return y;
}

/* --- graphs --------------------------------------------------------------------------------- */

static CUgraphExec instantiate(CUgraph graph, unsigned *ret_nodes)
{
	CUgraphExec exec;
	size_t n;

	MUST(cuGraphGetNodes(graph, NULL, &n));
	*ret_nodes += (unsigned)n;
	MUST(cuGraphInstantiate(&exec, graph, 0));
	MUST(cuGraphDestroy(graph));
	return exec;
}

/* A graph of one draw of 8; with `save` the generator's words are copied there before. */
static CUgraphExec draw_graph(dev g, dev save, dev m, unsigned *ret_nodes)
{
	unsigned eight = 8;
	CUgraph graph;

	MUST(cuStreamBeginCapture(outside, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	if (save)
		copy(save, g, 2);
	LAUNCH("draw", 8, &g, &m, &eight);
	MUST(cuStreamEndCapture(outside, &graph));
	return instantiate(graph, ret_nodes);
}

/* C17: forwards and replays are launches of graphs; with `saved` the graphs themselves save the generator. */
static void c17(void)
{
	dev g = STATE("state:G", 2, 1, 0), save = alloc(4), mf = alloc(8), mr = alloc(8);
	CUgraphExec forward[2], again[2];
	unsigned i, nodes = 0;

	for (i = 0; i < 2; i++) {
		dev slot = save + i * 8;

		forward[i] = draw_graph(g, slot, mf, &nodes);
		again[i] = draw_graph(option("saved") ? slot : g, 0, mr, &nodes);
	}
	for (i = 0; i < 2; i++) {
		replayshim_forward_begin("graph", i);
		MUST(cuGraphLaunch(forward[i], on));
		replayshim_forward_end();
	}
	while (i--) {
		replay("graph", i);
		MUST(cuGraphLaunch(again[i], on));
		replay_end();
		probe(i ? "mask1" : "mask0", mr, 8);
	}
	probe("offset", g + 4, 1);
	tell("nodes", nodes);
	MUST(cuCtxSynchronize());
	for (i = 0; i < 2; i++) {
		MUST(cuGraphExecDestroy(forward[i]));
		MUST(cuGraphExecDestroy(again[i]));
	}
}

/* The same with the windows inside of one capture. */
static void c17_capture(void)
{
	dev g = STATE("state:G", 2, 1, 0), mf = alloc(8), mr = alloc(8);
	unsigned nodes = 0, eight = 8;
	CUgraphExec exec;
	CUgraph graph;

	MUST(cuStreamBeginCapture(outside, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	replayshim_forward_begin("captured", 0);
	LAUNCH("draw", 8, &g, &mf, &eight);
	replayshim_forward_end();
	replay("captured", 0);
	LAUNCH("draw", 8, &g, &mr, &eight);
	replay_end();
	MUST(cuStreamEndCapture(outside, &graph));
	exec = instantiate(graph, &nodes);
	MUST(cuGraphLaunch(exec, on));
	probe("mask", mr, 8);
	probe("offset", g + 4, 1);
	if (option("nodes"))
		tell("nodes", nodes);
	MUST(cuCtxSynchronize());
	MUST(cuGraphExecDestroy(exec));
}

/* A graph, outside of every window, overwrites what a segment without graphs has read. */
static void c17_writer(void)
{
	dev c = STATE("state:C", 1, 3);
	unsigned nodes = 0;
	CUgraphExec exec;
	CUgraph graph;

	MUST(cuStreamBeginCapture(outside, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	fill(c, 9, 1);
	MUST(cuStreamEndCapture(outside, &graph));
	exec = instantiate(graph, &nodes);
	run_forward("layer", 0, reading_segment, &c);
	MUST(cuGraphLaunch(exec, on));
	run_replay("layer", 0, reading_segment, &c, "y", 1);
	probe("C", c, 1);
	MUST(cuCtxSynchronize());
	MUST(cuGraphExecDestroy(exec));
}

/* --- lifetimes and windows ------------------------------------------------------------------ */

static dev stream_ordered(unsigned value)
{
	dev p;

	MUST(cuMemAllocAsync(&p, 4, outside));
	fill(p, value, 1);
	return p;
}

/*
 * C27: state in stream-ordered memory is freed as soon as the replay's own kernels are done, which is all that the
 * program orders, and its address goes to a new owner.
 */
static dev scaled_update(void *inputs)
{
	dev *in = inputs, y = alloc(1);
	unsigned one = 1;

	LAUNCH("mul", 1, &y, &in[1], &in[0]);
	LAUNCH("add", 1, &in[0], &one);
	return y;
}

static void c27(void)
{
	dev in[2] = {stream_ordered(1), STATE(NULL, 1, 7)}, y, owner;

	replayshim_region_name(in[0], 4, "state:s");
	run_forward("offload", 0, scaled_update, in);
	replay("offload", 0);
	y = scaled_update(in);
	hand_over(replays, outside);
	replayshim_replay_end();
	on = outside;
	MUST(cuMemFreeAsync(in[0], outside));
	owner = stream_ordered(255);
	probe("y", y, 1);
	probe("owner", owner, 1);
	tell("reused", owner == in[0]);
	MUST(cuMemFreeAsync(owner, outside));
}

/*
 * What a stream of its own copies away is freed, and its address reused, on another stream, which has not waited for it
 * (or has: `ordered`). No replay comes.
 */
static void c27_reader(void)
{
	static CUstream aside;
	dev x = stream_ordered(17), h = alloc(1), owner;

	if (!aside)
		MUST(cuStreamCreate(&aside, CU_STREAM_NON_BLOCKING));
	hand_over(outside, aside);
	replayshim_forward_begin("offload", 0);
	on = aside;
	copy(h, x, 1);
	on = outside;
	replayshim_forward_end();
	if (option("ordered"))
		hand_over(aside, outside);
	MUST(cuMemFreeAsync(x, outside));
	owner = stream_ordered(255);
	probe("owner", owner, 1);
	tell("reused", owner == x);
	MUST(cuMemFreeAsync(owner, outside));
}

/* The replay reads through the old address, where somebody else lives now. */
static void c27_recycled(void)
{
	dev x = stream_ordered(17), owner;

	run_forward("offload", 0, reading_segment, &x);
	MUST(cuMemFreeAsync(x, outside));
	owner = stream_ordered(255);
	run_replay("offload", 0, reading_segment, &x, "y", 1);
	probe("owner", owner, 1);
	tell("reused", owner == x);
	MUST(cuMemFreeAsync(owner, outside));
}

/* C28: gathering the parameters of a module fetches those of the next one, too, also in a replay. */
struct gather_inputs {
	dev shards, *full, x;
	unsigned i;
};

static void gather(struct gather_inputs *in, unsigned i)
{
	if (i >= 2 || in->full[i])
		return;
	in->full[i] = alloc(1);
	copy(in->full[i], in->shards + i * 4, 1);
}

static dev gathered_segment(void *inputs)
{
	struct gather_inputs *in = inputs;
	dev y;

	gather(in, in->i);
	gather(in, in->i + 1);
	y = alloc(1);
	LAUNCH("mul", 1, &y, &in->x, &in->full[in->i]);
	return y;
}

static void reshard(dev *full)
{
	if (*full)
		release(*full);
	*full = 0;
}

static void c28(void)
{
	dev full[2] = {0, 0}, shards = STATE(NULL, 2, 11, 13), x = STATE(NULL, 1, 2);
	struct gather_inputs call[2] = {{shards, full, x, 0}, {shards, full, x, 1}};
	unsigned i;

	for (i = 0; i < 2; i++)
		run_forward("module", i, gathered_segment, &call[i]);
	reshard(&full[0]);
	reshard(&full[1]);
	while (i--) {
		run_replay("module", i, gathered_segment, &call[i], i ? "y1" : "y0", 1);
		reshard(&full[i]);
	}
	tell("still_there", full[1] != 0);
	if (full[1])
		probe("P1", full[1], 1);
}

/* X3: the backward accumulates a gradient after the replay's window is closed, or in it (`inside`). */
static dev stat_segment(void *inputs)
{
	dev *in = inputs, y = alloc(1);
	unsigned five = 5;

	LAUNCH("scale", 1, &y, &in[1], &five);
	LAUNCH("stat", 1, &in[0], &in[1]);
	return y;
}

static void x3(void)
{
	dev in[2] = {STATE("state:S", 1, 10), STATE(NULL, 1, 3)};
	dev grad = STATE(option("named") ? "state:grad" : NULL, 1, 100), y;
	unsigned seven = 7;

	run_forward("block", 0, stat_segment, in);
	replay("block", 0);
	y = stat_segment(in);
	if (option("inside"))
		LAUNCH("add", 1, &grad, &seven);
	replay_end();
	if (!option("inside"))
		LAUNCH("add", 1, &grad, &seven);
	probe("y", y, 1);
	probe("grad", grad, 1);
	probe("S", in[0], 1);
}

/* --- main ----------------------------------------------------------------------------------- */

static const struct hazard_case cases[] = {{"c17", c17},
					   {"c17_capture", c17_capture},
					   {"c17_writer", c17_writer},
					   {"c27", c27},
					   {"c27_recycled", c27_recycled},
					   {"c27_reader", c27_reader},
					   {"c28", c28},
					   {"x3", x3}};

HAZARD_MAIN(cases)
