/* SPDX-License-Identifier: MIT */
/*
 * Small training steps whose recomputation goes wrong in a graph: the forward, the replay, or what overwrites
 * between them is one launch of many nodes, and the graph may have been changed since it was made. Driver API
 * only; it knows of replayshim nothing but the marker header.
 *
 *	hazards_graph CASE [VARIANT...] [--streams] [--steps=N | --seeds=N]	see hazards_rig.h
 *
 * What is right and what goes wrong is in tests/t/hazards_graph.t.
 */
#include "tests/clients/hazards2_ptx.h"
#include "tests/clients/hazards_ptx.h"

#define HAZARD_MODULES hazards_ptx, hazards2_ptx
#include "tests/clients/hazards_rig.h"

/* --- graphs and nodes ----------------------------------------------------------------------- */

static CUgraphExec execs[8];
static unsigned nexecs;

/* Until the end of the step. */
static CUgraphExec instantiate(CUgraph graph)
{
	MUST(cuGraphInstantiate(&execs[nexecs], graph, 0));
	return execs[nexecs++];
}

static void destroy_execs(void)
{
	MUST(cuCtxSynchronize());
	while (nexecs)
		MUST(cuGraphExecDestroy(execs[--nexecs]));
}

static CUgraph new_graph(void)
{
	CUgraph g;

	MUST(cuGraphCreate(&g, 0));
	return g;
}

static CUgraphExec captured(segment_fn fn, void *inputs)
{
	CUstream before = on;
	CUgraphExec exec;
	CUgraph g;

	on = outside;
	MUST(cuStreamBeginCapture(outside, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	fn(inputs);
	MUST(cuStreamEndCapture(outside, &g));
	on = before;
	exec = instantiate(g);
	MUST(cuGraphDestroy(g));
	return exec;
}

static CUfunction function(const char *name)
{
	CUfunction f = NULL;
	unsigned i;

	for (i = 0; i < MODULES && !f; i++)
		if (cuModuleGetFunction(&f, modules[i], name) != CUDA_SUCCESS)
			f = NULL;
	if (!f)
		fail(name, CUDA_ERROR_NOT_FOUND);
	return f;
}

static CUDA_KERNEL_NODE_PARAMS kernel_params(const char *name, unsigned threads, void **params)
{
	return (CUDA_KERNEL_NODE_PARAMS){.func = function(name),
					 .gridDimX = 1,
					 .gridDimY = 1,
					 .gridDimZ = 1,
					 .blockDimX = threads,
					 .blockDimY = 1,
					 .blockDimZ = 1,
					 .kernelParams = params};
}

static CUgraphNode kernel_node(CUgraph g, CUgraphNode after, const char *name, unsigned threads,
			       void **params)
{
	CUDA_KERNEL_NODE_PARAMS p = kernel_params(name, threads, params);
	CUgraphNode n;

	MUST(cuGraphAddKernelNode(&n, g, &after, after != NULL, &p));
	return n;
}
#define KERNEL_NODE(g, after, name, threads, ...)                                                  \
	kernel_node(g, after, name, threads, (void *[]){__VA_ARGS__})

static CUDA_MEMSET_NODE_PARAMS fill_params(dev to, unsigned value, unsigned words)
{
	return (CUDA_MEMSET_NODE_PARAMS){
		.dst = to, .value = value, .elementSize = 4, .width = words, .height = 1};
}

static CUgraphNode fill_node(CUgraph g, CUgraphNode after, dev to, unsigned value, unsigned words)
{
	CUDA_MEMSET_NODE_PARAMS p = fill_params(to, value, words);
	CUgraphNode n;

	MUST(cuGraphAddMemsetNode(&n, g, &after, after != NULL, &p, NULL));
	return n;
}

static CUDA_MEMCPY3D copy_params(dev to, dev from, unsigned words)
{
	return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			       .srcDevice = from,
			       .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			       .dstDevice = to,
			       .WidthInBytes = words * 4,
			       .Height = 1,
			       .Depth = 1};
}

static CUgraphNode copy_node(CUgraph g, CUgraphNode after, dev to, dev from, unsigned words)
{
	CUDA_MEMCPY3D p = copy_params(to, from, words);
	CUgraphNode n;

	MUST(cuGraphAddMemcpyNode(&n, g, &after, after != NULL, &p, NULL));
	return n;
}

/* --- segments in graphs --------------------------------------------------------------------- */

/* As one launch of a graph, or call by call. */
static dev run_exec(void *exec)
{
	MUST(cuGraphLaunch(exec, on));
	return 0;
}

static void segment(int is_forward, segment_fn fn, void *inputs)
{
	if (is_forward)
		run_forward("block", 0, fn, inputs);
	else
		run_replay("block", 0, fn, inputs, NULL, 0);
}

/* y = x * s; s = s + 1. */
struct pair {
	dev s, x, y;
};

static dev pair_segment(void *inputs)
{
	struct pair *p = inputs;
	unsigned one = 1;

	LAUNCH("mul", 1, &p->y, &p->x, &p->s);
	LAUNCH("add", 1, &p->s, &one);
	return p->y;
}

static CUgraph pair_graph(struct pair *p)
{
	CUgraph g = new_graph();
	unsigned one = 1;

	KERNEL_NODE(g, KERNEL_NODE(g, NULL, "mul", 1, &p->y, &p->x, &p->s), "add", 1, &p->s, &one);
	return g;
}

static CUgraph child_of(CUgraph child)
{
	CUgraph g = new_graph();
	CUgraphNode n;

	MUST(cuGraphAddChildGraphNode(&n, g, NULL, 0, child));
	MUST(cuGraphDestroy(child));
	return g;
}

static CUgraphExec pair_exec(struct pair *p)
{
	CUgraphExec exec;
	CUgraph g;

	if (option("captured"))
		return captured(pair_segment, p);
	g = pair_graph(p);
	if (option("child"))
		g = child_of(child_of(g));
	exec = instantiate(g);
	MUST(cuGraphDestroy(g));
	return exec;
}

/* A node that fills s before, and does not run: it is disabled, or the body of a condition that is not met. */
static CUgraphNode skipped_fill(CUgraph g, dev s)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
	CUgraphNode n;

	if (!option("conditional"))
		return fill_node(g, NULL, s, 1, 1);
	MUST(cuCtxGetCurrent(&p.conditional.ctx));
	MUST(cuGraphConditionalHandleCreate(&p.conditional.handle, g, p.conditional.ctx, 0,
					    CU_GRAPH_COND_ASSIGN_DEFAULT));
	p.conditional.type = CU_GRAPH_COND_TYPE_IF;
	p.conditional.size = 1;
	MUST(cuGraphAddNode(&n, g, NULL, NULL, 0, &p));
	fill_node(p.conditional.phGraph_out[0], NULL, s, 1, 1);
	return n;
}

static void skipped(void)
{
	struct pair p = {STATE("state:s", 1, 1), STATE(NULL, 1, 7), alloc(1)};
	CUgraph g = new_graph();
	CUgraphNode n = skipped_fill(g, p.s);
	unsigned one = 1;
	CUgraphExec exec;

	KERNEL_NODE(g, KERNEL_NODE(g, n, "mul", 1, &p.y, &p.x, &p.s), "add", 1, &p.s, &one);
	exec = instantiate(g);
	MUST(cuGraphDestroy(g));
	if (!option("conditional"))
		MUST(cuGraphNodeSetEnabled(exec, n, 0));
	segment(1, run_exec, exec);
	segment(0, run_exec, exec);
	probe("y", p.y, 1);
	probe("s", p.s, 1);
	destroy_execs();
}

/* C02 with the forward, the replay, or both in a graph. */
static void pair(void)
{
	struct pair p = {STATE("state:s", 1, 1), STATE(NULL, 1, 7), alloc(1)};
	int only_forward = option("forward"), only_replay = option("replay");
	CUgraphExec exec = pair_exec(&p);

	segment(1, only_replay ? pair_segment : run_exec, only_replay ? (void *)&p : exec);
	segment(0, only_forward ? pair_segment : run_exec, only_forward ? (void *)&p : exec);
	probe("y", p.y, 1);
	probe("s", p.s, 1);
	destroy_execs();
}

/*
 * y[0..4) = x * s, then y[0..2) = y[0..2) * 5 or y[0..4) = y * 5: what the first node wrote is gone, wholly or in
 * part, when the launch is over.
 */
struct over {
	dev s, x, y;
	unsigned n;
};

static dev over_segment(void *inputs)
{
	struct over *o = inputs;
	unsigned one = 1, five = 5;

	LAUNCH("mul", 4, &o->y, &o->x, &o->s);
	LAUNCH("scale", o->n, &o->y, &o->y, &five);
	LAUNCH("add", 4, &o->s, &one);
	return o->y;
}

static void over(void)
{
	struct over o = {STATE("state:s", 4, 1, 2, 3, 4), STATE(NULL, 4, 1, 1, 1, 1), alloc(4),
			 option("part") ? 2 : 4};
	int only_replay = option("replay");
	CUgraphExec exec = captured(over_segment, &o);

	segment(1, only_replay ? over_segment : run_exec, only_replay ? (void *)&o : exec);
	segment(0, run_exec, exec);
	probe("y", o.y, 4);
	probe("s", o.s, 4);
	destroy_execs();
}

/* --- what overwrites ------------------------------------------------------------------------ */

/* y = C. */
static dev reading_segment(void *inputs)
{
	dev *in = inputs;
	unsigned one = 1;

	LAUNCH("scale", 1, &in[1], &in[0], &one);
	return in[1];
}

/* One node that makes a 9 of the word at `to`, and what it takes to change its mind. */
struct writer {
	dev nine;
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec exec;
};

static unsigned six = 6;

static CUDA_BATCH_MEM_OP_NODE_PARAMS memop_params(dev to)
{
	static CUstreamBatchMemOpParams op;
	CUDA_BATCH_MEM_OP_NODE_PARAMS p = {.count = 1, .paramArray = &op};

	op.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	op.writeValue.address = to;
	op.writeValue.value = 9;
	op.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
	MUST(cuCtxGetCurrent(&p.ctx));
	return p;
}

static CUgraphNode memop_node(CUgraph g, dev to)
{
	CUDA_BATCH_MEM_OP_NODE_PARAMS p = memop_params(to);
	CUgraphNode n;

	MUST(cuGraphAddBatchMemOpNode(&n, g, NULL, 0, &p));
	return n;
}

static CUgraph writing(struct writer *w, dev to)
{
	CUgraph g = new_graph();

	if (option("kernel"))
		w->node = KERNEL_NODE(g, NULL, "add", 1, &to, &six);
	else if (option("memcpy"))
		w->node = copy_node(g, NULL, to, w->nine, 1);
	else if (option("memop"))
		w->node = memop_node(g, to);
	else
		w->node = fill_node(g, NULL, to, 9, 1);
	if (option("child")) {
		CUgraph child = g;

		g = new_graph();
		MUST(cuGraphAddChildGraphNode(&w->node, g, NULL, 0, child));
		MUST(cuGraphDestroy(child));
	}
	return g;
}

static void set_params(struct writer *w, dev to)
{
	CUDA_KERNEL_NODE_PARAMS k = kernel_params("add", 1, (void *[]){&to, &six});
	CUDA_BATCH_MEM_OP_NODE_PARAMS m = memop_params(to);
	CUDA_MEMSET_NODE_PARAMS f = fill_params(to, 9, 1);
	CUDA_MEMCPY3D c = copy_params(to, w->nine, 1);
	CUgraph child;

	if (option("child")) {
		child = new_graph();
		fill_node(child, NULL, to, 9, 1);
		MUST(cuGraphExecChildGraphNodeSetParams(w->exec, w->node, child));
		MUST(cuGraphDestroy(child));
	} else if (option("kernel")) {
		MUST(cuGraphExecKernelNodeSetParams(w->exec, w->node, &k));
	} else if (option("memcpy")) {
		MUST(cuGraphExecMemcpyNodeSetParams(w->exec, w->node, &c, NULL));
	} else if (option("memop")) {
		MUST(cuGraphExecBatchMemOpNodeSetParams(w->exec, w->node, &m));
	} else {
		MUST(cuGraphExecMemsetNodeSetParams(w->exec, w->node, &f, NULL));
	}
}

static void set_any(struct writer *w, dev to)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
	CUDA_KERNEL_NODE_PARAMS k = kernel_params("add", 1, (void *[]){&to, &six});

	MUST(cuCtxGetCurrent(&p.memset.ctx));
	p.memset.dst = to;
	p.memset.value = 9;
	p.memset.elementSize = 4;
	p.memset.width = p.memset.height = 1;
	if (option("kernel")) {
		memset(&p, 0, sizeof(p));
		p.type = CU_GRAPH_NODE_TYPE_KERNEL;
		memcpy(&p.kernel, &k, sizeof(k));
	}
	if (option("memcpy")) {
		memset(&p, 0, sizeof(p));
		p.type = CU_GRAPH_NODE_TYPE_MEMCPY;
		MUST(cuCtxGetCurrent(&p.memcpy.copyCtx));
		p.memcpy.copyParams = copy_params(to, w->nine, 1);
	}
	MUST(cuGraphExecNodeSetParams(w->exec, w->node, &p));
}

static void update(struct writer *w, dev to)
{
	CUgraphExecUpdateResultInfo info;
	CUgraph g = writing(w, to);

	MUST(cuGraphExecUpdate(w->exec, g, &info));
	MUST(cuGraphDestroy(g));
}

/* A graph outside of every window, which has run before, writes to C after the forward has read it. */
static void writer(void)
{
	dev in[2] = {STATE("state:C", 1, 3), alloc(1)}, elsewhere = STATE(NULL, 1, 3);
	int later = option("set") || option("any") || option("update");
	struct writer w = {.nine = STATE(NULL, 1, 9)};

	w.graph = writing(&w, later ? elsewhere : in[0]);
	w.exec = instantiate(w.graph);
	if (later)
		MUST(cuGraphLaunch(w.exec, on));
	run_forward("block", 0, reading_segment, in);
	if (option("set"))
		set_params(&w, in[0]);
	else if (option("any"))
		set_any(&w, in[0]);
	else if (option("update"))
		update(&w, in[0]);
	if (option("off") || option("on"))
		MUST(cuGraphNodeSetEnabled(w.exec, w.node, 0));
	if (option("on"))
		MUST(cuGraphNodeSetEnabled(w.exec, w.node, 1));
	MUST(cuGraphDestroy(w.graph));
	MUST(cuGraphLaunch(w.exec, on));
	run_replay("block", 0, reading_segment, in, "y", 1);
	probe("C", in[0], 1);
	destroy_execs();
}

/* A change that the driver refuses changes nothing. */
static void refused(void)
{
	dev in[2] = {STATE("state:C", 1, 3), alloc(1)}, elsewhere = STATE(NULL, 1, 3);
	CUDA_MEMSET_NODE_PARAMS bad = fill_params(in[0], 9, 0);
	struct writer w = {.nine = STATE(NULL, 1, 9)};
	CUgraphExecUpdateResultInfo info;
	CUgraph other = new_graph();

	fill_node(other, fill_node(other, NULL, in[0], 9, 1), in[0], 9, 1);
	w.graph = writing(&w, elsewhere);
	w.exec = instantiate(w.graph);
	run_forward("block", 0, reading_segment, in);
	if (cuGraphExecMemsetNodeSetParams(w.exec, w.node, &bad, NULL) == CUDA_SUCCESS ||
	    cuGraphExecUpdate(w.exec, other, &info) == CUDA_SUCCESS)
		fail("a bad change was accepted", CUDA_ERROR_UNKNOWN);
	MUST(cuGraphLaunch(w.exec, on));
	run_replay("block", 0, reading_segment, in, "y", 1);
	probe("C", in[0], 1);
	MUST(cuGraphDestroy(w.graph));
	MUST(cuGraphDestroy(other));
	destroy_execs();
}

/* Nobody can tell what a kernel reaches that takes its pointers from memory. */
static dev pointed_segment(void *inputs)
{
	dev *in = inputs;

	LAUNCH("plus_pointed", 1, &in[0], &in[1], &in[2]);
	return in[0];
}

static void opaque(void)
{
	dev z = STATE("state:Z", 1, 4), in[3] = {alloc(1), STATE(NULL, 1, 5), alloc(2)};
	CUgraphExec exec;

	MUST(cuMemcpyHtoD(in[2], &z, sizeof(z)));
	MUST(cuCtxSynchronize());
	exec = captured(pointed_segment, in);
	segment(1, run_exec, exec);
	segment(0, run_exec, exec);
	probe("y", in[0], 1);
	destroy_execs();
}

/* --- memory of the graph's own --------------------------------------------------------------- */

/* t = x * s in memory of its own; y = t * 5; s = s + 1. `kept`: who launches frees it. */
struct temp {
	dev s, x, y, t;
};

static dev temp_segment(void *inputs)
{
	struct temp *p = inputs;
	unsigned one = 1, five = 5;

	MUST(cuMemAllocAsync(&p->t, 4, on));
	LAUNCH("mul", 1, &p->t, &p->x, &p->s);
	LAUNCH("scale", 1, &p->y, &p->t, &five);
	LAUNCH("add", 1, &p->s, &one);
	if (!option("kept"))
		MUST(cuMemFreeAsync(p->t, on));
	return p->y;
}

static void temp(void)
{
	struct temp p = {STATE("state:s", 1, 1), STATE(NULL, 1, 7), alloc(1), 0};
	CUgraphExec exec = captured(temp_segment, &p);

	if (option("before")) { /* nobody is interested in this launch, but for its memory */
		MUST(cuGraphLaunch(exec, on));
		if (option("kept"))
			MUST(cuMemFreeAsync(p.t, on));
		fill(p.s, 1, 1);
	}
	segment(1, run_exec, exec);
	if (option("kept")) {
		probe("t", p.t, 1);
		MUST(cuMemFreeAsync(p.t, on));
	}
	segment(0, run_exec, exec);
	if (option("kept")) {
		probe("t_again", p.t, 1);
		MUST(cuMemFreeAsync(p.t, on));
	}
	probe("y", p.y, 1);
	probe("s", p.s, 1);
	destroy_execs();
}

/* Memory that a graph has left behind, when nobody was interested in its launch, is state like any other. */
static void left(void)
{
	struct temp p = {STATE(NULL, 1, 1), STATE(NULL, 1, 7), alloc(1), 0};
	dev in[2] = {0, alloc(1)};

	MUST(cuGraphLaunch(captured(temp_segment, &p), on));
	in[0] = p.t;
	run_forward("block", 0, reading_segment, in);
	fill(p.t, 9, 1);
	run_replay("block", 0, reading_segment, in, "y", 1);
	probe("t", p.t, 1);
	MUST(cuMemFreeAsync(p.t, on));
	destroy_execs();
}

/* --- order ---------------------------------------------------------------------------------- */

/* The forward's stream and the writer's are ordered by an event that a graph records, or waits for. */
static void event(void)
{
	dev in[2] = {STATE("state:C", 1, 3), alloc(1)};
	CUgraph g = new_graph();
	CUgraphExec exec;
	CUstream other;
	CUgraphNode n;
	CUevent e;

	MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	MUST(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	if (option("record")) {
		MUST(cuGraphAddEventRecordNode(&n, g, NULL, 0, e));
	} else {
		MUST(cuGraphAddEventWaitNode(&n, g, NULL, 0, e));
		fill_node(g, n, in[0], 9, 1);
	}
	exec = instantiate(g);
	run_forward("block", 0, reading_segment, in);
	if (option("record")) {
		MUST(cuGraphLaunch(exec, on));
		MUST(cuStreamWaitEvent(other, e, 0));
		MUST(cuMemsetD32Async(in[0], 9, 1, other));
	} else {
		MUST(cuEventRecord(e, on));
		MUST(cuGraphLaunch(exec, other));
	}
	hand_over(other, on);
	run_replay("block", 0, reading_segment, in, "y", 1);
	probe("C", in[0], 1);
	MUST(cuGraphDestroy(g));
	destroy_execs();
	MUST(cuStreamDestroy(other));
	MUST(cuEventDestroy(e));
}

/* --- conditional bodies ----------------------------------------------------------------------- */

/* C becomes 9 if the body runs, which nobody can tell from the outside; `not`: it does not. */
static void conditional(void)
{
	dev in[2] = {STATE("state:C", 1, 3), alloc(1)};
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
	CUgraph g = new_graph();
	CUgraphExec exec;
	CUgraphNode n;

	MUST(cuCtxGetCurrent(&p.conditional.ctx));
	MUST(cuGraphConditionalHandleCreate(&p.conditional.handle, g, p.conditional.ctx,
					    !option("not"), CU_GRAPH_COND_ASSIGN_DEFAULT));
	p.conditional.type = CU_GRAPH_COND_TYPE_IF;
	p.conditional.size = 1;
	MUST(cuGraphAddNode(&n, g, NULL, NULL, 0, &p));
	fill_node(p.conditional.phGraph_out[0], NULL, in[0], 9, 1);
	exec = instantiate(g);
	MUST(cuGraphDestroy(g));
	run_forward("block", 0, reading_segment, in);
	MUST(cuGraphLaunch(exec, on));
	run_replay("block", 0, reading_segment, in, "y", 1);
	probe("C", in[0], 1);
	destroy_execs();
}

/* --- arguments of kernel nodes ---------------------------------------------------------------- */

struct scaled {
	dev y, x, twice;
	unsigned by;
};

/* y = x * by, in a place of its own each time; twice = y * 2. */
static dev scaled_segment(void *inputs)
{
	struct scaled *p = inputs;
	unsigned two = 2;

	LAUNCH("scale", 1, &p->y, &p->x, &p->by);
	LAUNCH("scale", 1, &p->twice, &p->y, &two);
	return p->y;
}

static CUgraphExec scaled_graph(const struct scaled *p)
{
	struct scaled in = *p;
	CUgraph g = new_graph();
	unsigned two = 2;
	CUgraphExec exec;

	KERNEL_NODE(g, KERNEL_NODE(g, NULL, "scale", 1, &in.y, &in.x, &in.by), "scale", 1,
		    &in.twice, &in.y, &two);
	exec = instantiate(g);
	MUST(cuGraphDestroy(g));
	return exec;
}

/* The replay is launched with another number, or with another pointer (`moved`); of 0 any multiple is 0 (`equal`). */
static void numbers(void)
{
	struct scaled p = {alloc(1), STATE("state:x", 1, option("equal") ? 0 : 3), alloc(1), 5};
	int forward = option("forward") || option("both"),
	    again = option("replay") || option("both");
	CUgraphExec exec[2] = {NULL};

	if (forward)
		exec[0] = scaled_graph(&p);
	segment(1, forward ? run_exec : scaled_segment, forward ? (void *)exec[0] : &p);
	if (option("moved")) {
		p.y = alloc(1);
		p.twice = alloc(1);
	} else if (!option("same")) {
		p.by = 6;
	}
	if (again)
		exec[1] = scaled_graph(&p);
	segment(0, again ? run_exec : scaled_segment, again ? (void *)exec[1] : &p);
	probe("twice", p.twice, 1);
	destroy_execs();
}

/* --- main ----------------------------------------------------------------------------------- */

static const struct hazard_case cases[] = {
	{"pair", pair},	      {"over", over},	    {"writer", writer},
	{"refused", refused}, {"skipped", skipped}, {"left", left},
	{"opaque", opaque},   {"temp", temp},	    {"conditional", conditional},
	{"event", event},     {"numbers", numbers},
};

HAZARD_MAIN(cases)
