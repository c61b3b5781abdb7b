/* SPDX-License-Identifier: MIT */
/*
 * Small training steps that are captured as a whole, windows and all, and launched as a graph. Driver API only; it knows
 * of replayshim nothing but the marker header.
 *
 *	captures CASE [VARIANT...] [--streams] [--steps=N | --seeds=N]	see hazards_rig.h
 *
 * With --streams replays are captured on a stream that joins the capture and leaves it again.
 * What is right and what goes wrong is in tests/t/captures.t.
 */
#include "tests/clients/hazards_ptx.h"

#define HAZARD_MODULES hazards_ptx
#include "tests/clients/captures.h"

/* Forward, somebody who overwrites, replay: in one capture. */
static CUgraph capture_pair(struct pair *p)
{
	begin();
	pair_forward(p);
	if (option("fill"))
		fill(p->s, 9, 1);
	pair_replay(p);
	return end();
}

/* --- cases ---------------------------------------------------------------------------------------- */

static void pair(void)
{
	struct pair p = make_pair(!option("fill"));

	launch_graph(capture_pair(&p));
	show(&p);
}

/* Launched three times, each time with other state, twice in a row and once from another stream. */
static void launches(void)
{
	struct pair p = make_pair(0);
	CUgraph g;
	CUgraphExec exec;
	unsigned i;

	begin();
	pair_forward(&p);
	fill(p.s, 9, 1);
	pair_replay(&p);
	g = end();
	exec = instantiate(g);
	for (i = 0; i < 3; i++) {
		CUstream to = i == 1 ? replays : outside;
		char name[16];

		on = outside;
		fill(p.s, 2 + i, 1);
		hand_over(outside, to);
		MUST(cuGraphLaunch(exec, to));
		hand_over(to, outside);
		snprintf(name, sizeof(name), "y%u", i);
		probe(name, p.y, 1);
		snprintf(name, sizeof(name), "again%u", i);
		probe(name, p.again, 1);
	}
	probe("s", p.s, 1);
	MUST(cuGraphExecDestroy(exec));
	MUST(cuGraphDestroy(g));
}

/* The replay comes three times; with `none` not at all. */
static void repeated(void)
{
	struct pair p = make_pair(1);
	unsigned i;

	fill(p.again, 0, 1);
	begin();
	pair_forward(&p);
	for (i = 0; i < 3 && !option("none"); i++)
		pair_replay(&p);
	launch_graph(end());
	show(&p);
}

/* Two invocations of one segment, replayed in the other order, each with its own state. */
static void nested(void)
{
	struct pair p = make_pair(1);
	dev first = alloc(1);

	begin();
	replayshim_forward_begin("block", 0);
	pair_work(&p, first);
	replayshim_forward_end();
	replayshim_forward_begin("block", 1);
	pair_work(&p, p.y);
	replayshim_forward_end();
	replay("block", 1);
	pair_work(&p, p.again);
	replay_end();
	replay("block", 0);
	pair_work(&p, option("checked") ? first : p.again);
	replay_end();
	launch_graph(end());
	probe("first", first, 1);
	show(&p);
}

/* The capture ends before the replay does. */
static void open_end(void)
{
	struct pair p = make_pair(1);
	CUgraph g;

	begin();
	pair_forward(&p);
	replay("block", 0);
	pair_work(&p, p.again);
	hand_over(replays, outside);
	g = end();
	replayshim_replay_end();
	on = outside;
	launch_graph(g);
	show(&p);
}

/* Only one of the two is captured, or each in a capture of its own. */
static void apart(void)
{
	struct pair p = make_pair(1);
	int forward = !option("replay"), again = !option("forward");

	if (forward)
		begin();
	pair_forward(&p);
	if (forward)
		launch_graph(end());
	if (again)
		begin();
	pair_replay(&p);
	if (again)
		launch_graph(end());
	show(&p);
}

/* Some of the replay is captured, some runs. */
static void mixed(void)
{
	struct pair p = make_pair(0);
	unsigned one = 1;
	CUgraph g;

	begin();
	pair_forward(&p);
	fill(p.s, 9, 1);
	replay("block", 0);
	pair_work(&p, p.again);
	hand_over(replays, outside);
	on = outside;
	g = end();
	LAUNCH("add", 1, &p.x, &one);
	replayshim_replay_end();
	launch_graph(g);
	show(&p);
}

static CUDA_KERNEL_NODE_PARAMS params_of(CUgraphNode n)
{
	CUDA_KERNEL_NODE_PARAMS p;

	MUST(cuGraphKernelNodeGetParams(n, &p));
	return p;
}

/* The program's own kernel node that reads s into y: its first argument is y. */
static CUgraphNode find_node(CUgraph g, dev y)
{
	CUgraphNode node[64], found = NULL;
	CUfunction mul;
	CUgraphNodeType type;
	size_t n = 64, i;

	MUST(cuModuleGetFunction(&mul, modules[0], "mul"));
	MUST(cuGraphGetNodes(g, node, &n));
	for (i = 0; i < n; i++) {
		MUST(cuGraphNodeGetType(node[i], &type));
		if (type == CU_GRAPH_NODE_TYPE_KERNEL && params_of(node[i]).func == mul &&
		    *(dev *)params_of(node[i]).kernelParams[0] == y)
			found = node[i];
	}
	return found;
}

/* The replay's kernel is told to read something else, in the graph or after it was instantiated. */
static void changed(void)
{
	struct pair p = make_pair(0);
	CUgraph g = capture_pair(&p);
	CUgraphNode n = find_node(g, p.again);
	CUDA_KERNEL_NODE_PARAMS k = params_of(n);
	CUgraphExec exec;

	k.kernelParams = (void *[]){&p.again, &p.x, &p.x};
	if (option("graph"))
		MUST(cuGraphKernelNodeSetParams(n, &k));
	exec = instantiate(g);
	if (!option("graph"))
		MUST(cuGraphExecKernelNodeSetParams(exec, n, &k));
	MUST(cuGraphLaunch(exec, outside));
	show(&p);
	MUST(cuGraphExecDestroy(exec));
	MUST(cuGraphDestroy(g));
}

/* In the middle of its capture, the program puts a node into the graph itself, which overwrites the state. */
static void by_hand(void)
{
	struct pair p = make_pair(0);
	CUDA_MEMSET_NODE_PARAMS set = {
		.dst = p.s, .value = 9, .elementSize = 4, .width = 1, .height = 1};
	CUstreamCaptureStatus status;
	const CUgraphEdgeData *edges;
	const CUgraphNode *deps;
	CUgraphNode n;
	cuuint64_t id;
	CUcontext ctx;
	size_t count;
	CUgraph g;

	MUST(cuCtxGetCurrent(&ctx));
	begin();
	pair_forward(&p);
	MUST(cuStreamGetCaptureInfo(outside, &status, &id, &g, &deps, &edges, &count));
	MUST(cuGraphAddMemsetNode(&n, g, deps, count, &set, ctx));
	MUST(cuStreamUpdateCaptureDependencies(outside, &n, NULL, 1,
					       CU_STREAM_SET_CAPTURE_DEPENDENCIES));
	pair_replay(&p);
	launch_graph(end());
	show(&p);
}

static void clone(void)
{
	struct pair p = make_pair(0);
	CUgraph g = capture_pair(&p), copy;

	MUST(cuGraphClone(&copy, g));
	MUST(cuGraphDestroy(g));
	launch_graph(copy);
	show(&p);
}

/* In another graph: as a child, or launched into a capture. */
static void inside(void)
{
	struct pair p = make_pair(0);
	CUgraph g = capture_pair(&p), parent;
	CUgraphNode n;
	CUgraphExec exec = NULL;

	if (option("child")) {
		MUST(cuGraphCreate(&parent, 0));
		MUST(cuGraphAddChildGraphNode(&n, parent, NULL, 0, g));
	} else {
		exec = instantiate(g);
		begin();
		MUST(cuGraphLaunch(exec, outside));
		parent = end();
		MUST(cuGraphExecDestroy(exec));
	}
	MUST(cuGraphDestroy(g));
	launch_graph(parent);
	show(&p);
}

/* An executable graph that goes on as another capture of the same. */
static void update(void)
{
	struct pair p = make_pair(0), q = make_pair(0);
	CUgraph g = capture_pair(&p), h = capture_pair(&q);
	CUgraphExec exec = instantiate(g);
	CUgraphExecUpdateResultInfo info;

	MUST(cuGraphLaunch(exec, outside));
	MUST(cuGraphExecUpdate(exec, h, &info));
	MUST(cuGraphDestroy(g));
	MUST(cuGraphDestroy(h));
	MUST(cuGraphLaunch(exec, outside));
	show(&p);
	show(&q);
	MUST(cuGraphExecDestroy(exec));
}

/* A stream outside of the graph, let go and waited for by its events, overwrites the state in between. */
static void foreign(void)
{
	struct pair p = make_pair(0);
	CUgraphExec exec;
	CUevent go, done;
	CUstream other;
	CUgraph g;

	MUST(cuEventCreate(&go, CU_EVENT_DISABLE_TIMING));
	MUST(cuEventCreate(&done, CU_EVENT_DISABLE_TIMING));
	MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	begin();
	pair_forward(&p);
	MUST(cuEventRecordWithFlags(go, outside, CU_EVENT_RECORD_EXTERNAL));
	MUST(cuStreamWaitEvent(outside, done, CU_EVENT_WAIT_EXTERNAL));
	pair_replay(&p);
	g = end();
	exec = instantiate(g);
	/* what is waited for must have been recorded: it overwrites before, as far as the device is concerned in between */
	on = other;
	fill(p.s, option("before") ? 5 : 1, 1);
	MUST(cuEventRecord(done, other));
	on = outside;
	MUST(cuStreamWaitEvent(outside, done, 0));
	MUST(cuGraphLaunch(exec, outside));
	show(&p);
	MUST(cuCtxSynchronize());
	MUST(cuGraphExecDestroy(exec));
	MUST(cuGraphDestroy(g));
	MUST(cuStreamDestroy(other));
	MUST(cuEventDestroy(go));
	MUST(cuEventDestroy(done));
}

/* Two addresses of one memory: the forward reads through one, the state is overwritten through the other. */
static void alias(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle h;
	struct pair p = make_pair(0);
	unsigned one = 1;
	size_t bytes;
	dev va;

	MUST(cuMemGetAllocationGranularity(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	MUST(cuMemCreate(&h, bytes, &prop, 0));
	MUST(cuMemAddressReserve(&va, 2 * bytes, 0, 0, 0));
	MUST(cuMemMap(va, bytes, 0, h, 0));
	MUST(cuMemMap(va + bytes, bytes, 0, h, 0));
	MUST(cuMemSetAccess(va, 2 * bytes, &access, 1));
	MUST(cuMemcpyHtoD(va, &one, 4));
	MUST(cuCtxSynchronize());
	replayshim_region_name(va, 4, "state:v");
	p.s = va;
	begin();
	pair_forward(&p);
	fill(va + bytes, 9, 1);
	pair_replay(&p);
	launch_graph(end());
	show(&p);
	MUST(cuCtxSynchronize());
	MUST(cuMemUnmap(va, 2 * bytes));
	MUST(cuMemRelease(h));
	MUST(cuMemAddressFree(va, 2 * bytes));
}

/* An ended capture leaves nothing behind when its graphs have gone. */
static void memory(void)
{
	struct pair p = make_pair(0);
	size_t before, after, total;
	unsigned i;

	launch_graph(capture_pair(&p)); /* the first one loads kernels */
	MUST(cuCtxSynchronize());
	MUST(cuMemGetInfo(&before, &total));
	for (i = 0; i < 4; i++) {
		launch_graph(capture_pair(&p));
		MUST(cuCtxSynchronize());
	}
	MUST(cuMemGetInfo(&after, &total));
	tell("lost", (unsigned)(before - after));
	show(&p);
}

/* The program breaks its own capture: an error of its own, and nothing is left of it. */
static void broken(void)
{
	struct pair p = make_pair(0);
	CUgraph g = NULL;
	CUresult r;

	begin();
	pair_forward(&p);
	r = cuStreamSynchronize(outside);
	tell("refused", r == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	replayshim_replay_begin("block", 0);
	replayshim_replay_end();
	r = cuStreamEndCapture(outside, &g);
	tell("ended", r == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED && !g);
	/* the same again, as it should be */
	launch_graph(capture_pair(&p));
	show(&p);
}

static const struct hazard_case cases[] = {
	{"pair", pair},	      {"launches", launches}, {"repeated", repeated},
	{"nested", nested},   {"open_end", open_end}, {"apart", apart},
	{"mixed", mixed},     {"changed", changed},   {"clone", clone},
	{"by_hand", by_hand}, {"inside", inside},     {"update", update},
	{"foreign", foreign}, {"memory", memory},     {"alias", alias},
	{"broken", broken},
};

HAZARD_MAIN(cases)
