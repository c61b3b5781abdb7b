/* SPDX-License-Identifier: MIT */
/*
 * A state that a forward has read is overwritten in overwrite(), called by inner(), called by outer(). For tests/t/where.t.
 *
 *	where once	one segment
 *	where thread	overwritten by another thread
 *	where graph	overwritten by a node of a graph, launched by launch()
 *	where many N	N segments, each overwritten by calls that came another way
 *	where steps N	N steps with a segment each, the same way
 *	where clean N	the same, but nothing that matters is overwritten
 *	where time N	as steps, and the median time of the call that overwrites, in ns
 */
#include "shim/include/replayshim.h"

#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define APART __attribute__((noinline, noclone))

/* With a driver that does nothing, too: tests/bench/where.py. */
static void must(CUresult r)
{
	if (r == CUDA_SUCCESS)
		return;
	fprintf(stderr, "where: error %d\n", (int)r);
	exit(3);
}

static CUdeviceptr state, other, product;

/* Not a tail call: the frame stays. */
#define STAY() __asm__ volatile("" ::: "memory")

static APART void overwrite(CUdeviceptr p, unsigned value)
{
	must(cuMemsetD8Async(p, (unsigned char)value, 4, NULL)); /* HERE */
	STAY();
}

static APART void inner(CUdeviceptr p, unsigned value)
{
	overwrite(p, value);
	STAY();
}

static APART void outer(CUdeviceptr p, unsigned value)
{
	inner(p, value);
	STAY();
}

static APART void right(unsigned way, unsigned depth);

static APART void left(unsigned way, unsigned depth)
{
	if (!depth)
		overwrite(state, way);
	else if (way & 1)
		right(way >> 1, depth - 1);
	else
		left(way >> 1, depth - 1);
	STAY();
}

static APART void right(unsigned way, unsigned depth)
{
	if (!depth)
		overwrite(state, way + 1);
	else if (way & 1)
		left(way >> 1, depth - 1);
	else
		right(way >> 1, depth - 1);
	STAY();
}

static void segment(void)
{
	must(cuMemcpyDtoDAsync(product, state, 4, NULL));
}

static void *in_thread(void *context)
{
	must(cuCtxSetCurrent(context));
	outer(state, 5);
	return NULL;
}

static void in_another(void)
{
	CUcontext context;
	pthread_t t;

	must(cuCtxGetCurrent(&context));
	if (pthread_create(&t, NULL, in_thread, context) || pthread_join(t, NULL))
		exit(3);
}

static CUgraphExec exec;

static void make_graph(CUcontext ctx)
{
	CUDA_MEMSET_NODE_PARAMS fill = {
		.dst = state, .elementSize = 1, .width = 4, .height = 1, .value = 9};
	CUgraphNode node;
	CUgraph graph;

	must(cuGraphCreate(&graph, 0));
	must(cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, ctx));
	must(cuGraphInstantiateWithFlags(&exec, graph, 0));
}

static APART void launch(void)
{
	must(cuGraphLaunch(exec, NULL));
	STAY();
}

static unsigned long long now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (unsigned long long)ts.tv_sec * 1000000000u + (unsigned long long)ts.tv_nsec;
}

static int less(const void *a, const void *b)
{
	const unsigned long long *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void time_calls(unsigned n)
{
	unsigned long long *took = calloc(n + 1, sizeof(*took));

	for (unsigned i = 0; took && i < n; i++) {
		replayshim_step((long)i);
		replayshim_forward_begin("block", REPLAYSHIM_NEXT);
		segment();
		replayshim_forward_end();
		took[i] = now();
		outer(state, i);
		took[i] = now() - took[i];
	}
	if (took)
		qsort(took, n, sizeof(*took), less);
	printf("%llu\n", took ? took[n / 2] : 0);
	free(took);
}

static void step(const char *kind, unsigned n)
{
	replayshim_step((long)n);
	replayshim_forward_begin("block", REPLAYSHIM_NEXT);
	segment();
	replayshim_forward_end();
	if (!strcmp(kind, "thread"))
		in_another();
	else if (!strcmp(kind, "graph"))
		launch();
	else if (!strcmp(kind, "many"))
		left(n, 12);
	else
		outer(!strcmp(kind, "clean") ? other : state, n + 1);
	replayshim_replay_begin("block", REPLAYSHIM_NEXT);
	segment();
	replayshim_replay_end();
}

int main(int argc, char **argv)
{
	CUcontext ctx;
	const char *kind = argc > 1 ? argv[1] : "once";
	unsigned n = argc > 2 ? (unsigned)atoi(argv[2]) : 1;

	must(cuInit(0));
	must(cuCtxCreate(&ctx, NULL, 0, 0));
	must(cuMemAlloc(&state, 4096));
	must(cuMemAlloc(&other, 4096));
	must(cuMemAlloc(&product, 4096));
	if (!strcmp(kind, "graph"))
		make_graph(ctx);
	if (!strcmp(kind, "time"))
		time_calls(n);
	for (unsigned i = 0; i < n && strcmp(kind, "time"); i++)
		step(kind, i);
	must(cuCtxSynchronize());
	if (strcmp(kind, "time"))
		puts("done");
	return 0;
}
