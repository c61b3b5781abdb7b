/* SPDX-License-Identifier: MIT */
/* What the programs that capture their steps have in common: graphs, a segment. Included in place of hazards_rig.h. */
#ifndef TESTS_CLIENTS_CAPTURES_H
#define TESTS_CLIENTS_CAPTURES_H

#include "tests/clients/hazards_rig.h"

/* --- graphs --------------------------------------------------------------------------------------- */

RIG void begin(void)
{
	MUST(cuStreamBeginCapture(outside, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	on = outside;
}

RIG CUgraph end(void)
{
	CUgraph g;

	MUST(cuStreamEndCapture(outside, &g));
	return g;
}

RIG CUgraphExec instantiate(CUgraph g)
{
	CUgraphExec exec;

	MUST(cuGraphInstantiate(&exec, g, 0));
	return exec;
}

/* Launched, and the graph gone before it has run. */
RIG void launch_graph(CUgraph g)
{
	CUgraphExec exec = instantiate(g);

	MUST(cuGraphDestroy(g));
	MUST(cuGraphLaunch(exec, outside));
	MUST(cuGraphExecDestroy(exec));
}

/* --- segments ------------------------------------------------------------------------------------- */

/* y = x * s; s = s + 1, where `adds`. What a replay makes is its own. */
struct pair {
	dev s, x, y, again;
	int adds;
};

RIG void pair_work(struct pair *p, dev y)
{
	unsigned one = 1;

	LAUNCH("mul", 1, &y, &p->x, &p->s);
	if (p->adds)
		LAUNCH("add", 1, &p->s, &one);
}

RIG struct pair make_pair(int adds)
{
	return (struct pair){STATE("state:s", 1, 1), STATE(NULL, 1, 7), alloc(1), alloc(1), adds};
}

RIG void pair_forward(struct pair *p)
{
	replayshim_forward_begin("block", 0);
	pair_work(p, p->y);
	replayshim_forward_end();
}

RIG void pair_replay(struct pair *p)
{
	replay("block", 0);
	pair_work(p, p->again);
	replay_end();
}

RIG void show(struct pair *p)
{
	probe("y", p->y, 1);
	probe("again", p->again, 1);
	probe("s", p->s, 1);
}

/* --- by hand -------------------------------------------------------------------------------------- */

/* What the next node of a captured stream comes after. */
struct dependencies {
	CUgraphNode node[16];
	size_t n;
};

RIG void dependencies_of(CUstream s, struct dependencies *ret)
{
	CUstreamCaptureStatus status;
	const CUgraphEdgeData *edges;
	const CUgraphNode *deps;
	cuuint64_t id;
	CUgraph g;

	MUST(cuStreamGetCaptureInfo(s, &status, &id, &g, &deps, &edges, &ret->n));
	memcpy(ret->node, deps, ret->n * sizeof(ret->node[0]));
}

#endif
