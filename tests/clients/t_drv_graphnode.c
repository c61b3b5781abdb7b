/* SPDX-License-Identifier: MIT */
/*
 * Graph nodes of every type through the tagged union, set-params in the graph and in the executable graph,
 * batches of memory operations, kernel attributes, annotated edges, child graphs, updates, dot files.
 */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/clients/drv_graph.h"

static CUfunction f_inc;
static CUdeviceptr a, b, word;
static CUcontext ctx;

static void host_add(void *arg)
{
	*(unsigned *)arg += 100;
}

static CUgraphNodeParams any_kernel(CUfunction f, void **args)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

	p.kernel.func = f;
	p.kernel.gridDimX = p.kernel.gridDimY = p.kernel.gridDimZ = 1;
	p.kernel.blockDimX = N;
	p.kernel.blockDimY = p.kernel.blockDimZ = 1;
	p.kernel.kernelParams = args;
	return p;
}

static CUgraphNodeParams any_fill(CUdeviceptr p, unsigned v)
{
	CUgraphNodeParams q = {.type = CU_GRAPH_NODE_TYPE_MEMSET};

	q.memset.dst = p;
	q.memset.value = v;
	q.memset.elementSize = 4;
	q.memset.width = N;
	q.memset.height = 1;
	return q;
}

static CUgraphNode put(CUgraph g, const CUgraphNode *dep, CUgraphNodeParams p)
{
	CUgraphNode n;

	must(cuGraphAddNode(&n, g, dep, NULL, dep ? 1 : 0, &p));
	return n;
}

/* One of each type in a row; then other parameters in the executable graph, then in the graph. */
static void every_type(void)
{
	static unsigned counter, other;
	void *inc[] = {&a, &n_elems}, *inc_b[] = {&b, &n_elems};
	CUstreamBatchMemOpParams op = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32};
	CUgraphNodeParams fill_a = any_fill(a, 5), kern = any_kernel(f_inc, inc), p;
	CUgraphNode nodes[8];
	CUgraphExec exec;
	unsigned right = 0, v = 0;
	CUgraph g, child;
	CUevent e, f;

	must(cuEventCreate(&e, CU_EVENT_DEFAULT));
	must(cuEventCreate(&f, CU_EVENT_DEFAULT));
	must(cuGraphCreate(&g, 0));
	must(cuGraphCreate(&child, 0));
	put(child, NULL, kern);
	nodes[0] = put(g, NULL, fill_a);
	nodes[1] = put(g, &nodes[0], kern);
	p = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_GRAPH};
	p.graph.graph = child;
	nodes[2] = put(g, &nodes[1], p);
	p = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEMCPY};
	p.memcpy.copyParams = copy(b, a);
	nodes[3] = put(g, &nodes[2], p);
	p = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_HOST};
	p.host.fn = host_add;
	p.host.userData = &counter;
	nodes[4] = put(g, &nodes[3], p);
	p = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD};
	p.eventRecord.event = e;
	nodes[5] = put(g, &nodes[4], p);
	p = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EMPTY};
	nodes[6] = put(g, &nodes[5], p);
	op.writeValue.address = word;
	op.writeValue.value = 77;
	p = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
	p.memOp.count = 1;
	p.memOp.paramArray = &op;
	nodes[7] = put(g, &nodes[6], p);
	must(cuGraphInstantiate(&exec, g, 0));
	for (unsigned i = 0; i < SEEDS; i++) {
		must(cuMemsetD32(word, 0, 1));
		schedule(i);
		must(cuGraphLaunch(exec, NULL));
		must(cuMemcpyDtoH(&v, word, 4));
		right += value(b) == 7 && v == 77 && counter == 100 * (i + 1);
	}
	is_u64(right, SEEDS, "a node of each type did its work");
	schedule(0);
	is_cu(cuEventQuery(e), CUDA_SUCCESS, "the event is recorded");

	/* In the executable graph only. */
	fill_a.memset.value = 50;
	is_cu(cuGraphExecNodeSetParams(exec, nodes[0], &fill_a), CUDA_SUCCESS, "set a fill");
	p = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_HOST};
	p.host.fn = host_add;
	p.host.userData = &other;
	is_cu(cuGraphExecNodeSetParams(exec, nodes[4], &p), CUDA_SUCCESS, "set a host function");
	p = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD};
	p.eventRecord.event = f;
	is_cu(cuGraphExecNodeSetParams(exec, nodes[5], &p), CUDA_SUCCESS, "set an event");
	op.writeValue.value = 78;
	p = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
	p.memOp.count = 1;
	p.memOp.paramArray = &op;
	is_cu(cuGraphExecNodeSetParams(exec, nodes[7], &p), CUDA_SUCCESS, "set a batch");
	op.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	is_cu(cuGraphExecNodeSetParams(exec, nodes[7], &p), CUDA_ERROR_INVALID_VALUE,
	      "its operations stay");
	kern = any_kernel(f_inc, inc_b);
	is_cu(cuGraphExecNodeSetParams(exec, nodes[1], &kern), CUDA_SUCCESS, "set a kernel");
	is_cu(cuGraphExecNodeSetParams(exec, nodes[0], &kern), CUDA_ERROR_INVALID_VALUE,
	      "the type stays");
	must(cuGraphLaunch(exec, NULL));
	must(cuMemcpyDtoH(&v, word, 4));
	ok(value(a) == 51 && value(b) == 51 && v == 78 && other == 100 && counter == 100 * SEEDS,
	   "all changed");
	must(cuGraphExecDestroy(exec));
	must(cuGraphInstantiate(&exec, g, 0));
	must(cuGraphLaunch(exec, NULL));
	is_u64(value(a), 7, "the graph is as it was");

	/* In the graph only. */
	is_cu(cuGraphNodeSetParams(nodes[1], &kern), CUDA_SUCCESS, "set a kernel in the graph");
	is_cu(cuGraphNodeSetParams(nodes[0], &kern), CUDA_ERROR_INVALID_VALUE, "of one type");
	must(cuGraphLaunch(exec, NULL));
	is_u64(value(a), 7, "the executable graph does not care");
	must(cuGraphExecDestroy(exec));
	must(cuGraphInstantiate(&exec, g, 0));
	must(cuGraphLaunch(exec, NULL));
	is_u64(value(a), 6, "a new one does");

	kern.reserved0[1] = 1;
	is_cu(cuGraphNodeSetParams(nodes[1], &kern), CUDA_ERROR_INVALID_VALUE, "reserved bytes");
	p = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EMPTY};
	p.reserved1[3] = 1;
	is_cu(cuGraphAddNode(&nodes[0], g, NULL, NULL, 0, &p), CUDA_ERROR_INVALID_VALUE,
	      "unused bytes");
	must(cuGraphExecDestroy(exec));
	must(cuGraphDestroy(g));
	must(cuGraphDestroy(child));
	must(cuEventDestroy(e));
	must(cuEventDestroy(f));
}

/* Two graphs that talk through memory: a batch waits for what the other writes. */
static void batches(void)
{
	CUDA_BATCH_MEM_OP_NODE_PARAMS wait = {.ctx = ctx, .count = 3}, got;
	CUDA_BATCH_MEM_OP_NODE_PARAMS write = {.ctx = ctx, .count = 2};
	CUstreamBatchMemOpParams w[3] = {0}, s[2] = {0};
	unsigned right = 0, v = 0;
	CUgraphExec waits, writes;
	CUgraphNode nw, ns, after;
	CUgraph gw, gs, captured;
	CUDA_MEMSET_NODE_PARAMS set;
	CUgraphNodeType type;
	CUstream t, u;
	size_t n = 1;

	w[0].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	w[0].waitValue.address = word;
	w[0].waitValue.value = 5;
	w[0].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
	w[1].operation = CU_STREAM_MEM_OP_BARRIER;
	w[2].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	w[2].writeValue.address = word;
	w[2].writeValue.value = 9;
	s[0].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	s[0].writeValue.address = word;
	s[0].writeValue.value = 5;
	s[1].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	s[1].waitValue.address = word;
	s[1].waitValue.value = 9;
	wait.paramArray = w;
	write.paramArray = s;
	set = fill(a, 3);
	must(cuGraphCreate(&gw, 0));
	must(cuGraphCreate(&gs, 0));
	is_cu(cuGraphAddBatchMemOpNode(&nw, gw, NULL, 0, &wait), CUDA_SUCCESS, "a batch node");
	must(cuGraphAddMemsetNode(&after, gw, &nw, 1, &set, ctx));
	must(cuGraphAddBatchMemOpNode(&ns, gs, NULL, 0, &write));
	must(cuGraphBatchMemOpNodeGetParams(nw, &got));
	ok(got.count == 3 && got.paramArray != w && got.paramArray[2].writeValue.value == 9,
	   "parameters");
	wait.count = 0;
	is_cu(cuGraphBatchMemOpNodeSetParams(nw, &wait), CUDA_ERROR_INVALID_VALUE, "no operation");
	must(cuGraphInstantiate(&waits, gw, 0));
	must(cuGraphInstantiate(&writes, gs, 0));
	must(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&u, CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; i < SEEDS; i++) {
		must(cuMemsetD32(word, 0, 1));
		must(cuMemsetD32(a, 0, N));
		must(cuCtxSynchronize());
		schedule(i);
		must(cuGraphLaunch(waits, t));
		must(cuGraphLaunch(writes, u));
		must(cuStreamSynchronize(u));
		must(cuStreamSynchronize(t));
		right += value(a) == 3;
	}
	is_u64(right, SEEDS, "waits and writes of batches are in order");
	schedule(0);
	w[2].writeValue.value = 11;
	wait.count = 3;
	is_cu(cuGraphExecBatchMemOpNodeSetParams(waits, nw, &wait), CUDA_SUCCESS, "another value");
	wait.count = 2;
	is_cu(cuGraphExecBatchMemOpNodeSetParams(waits, nw, &wait), CUDA_ERROR_INVALID_VALUE,
	      "not another number");
	must(cuMemsetD32(word, 5, 1));
	must(cuGraphLaunch(waits, NULL));
	must(cuMemcpyDtoH(&v, word, 4));
	is_u64(v, 11, "what was set is written");
	must(cuStreamBeginCapture(t, CU_STREAM_CAPTURE_MODE_GLOBAL));
	must(cuStreamBatchMemOp(t, 3, w, 0));
	must(cuStreamWriteValue32(t, word, 1, 0));
	must(cuStreamEndCapture(t, &captured));
	must(cuGraphGetNodes(captured, NULL, &n));
	must(cuGraphGetRootNodes(captured, &ns, (size_t[]){1}));
	must(cuGraphNodeGetType(ns, &type));
	must(cuGraphBatchMemOpNodeGetParams(ns, &got));
	ok(n == 2 && type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP && got.count == 3,
	   "a captured batch is one node");
	must(cuGraphDestroy(captured));
	must(cuGraphExecDestroy(waits));
	must(cuGraphExecDestroy(writes));
	must(cuGraphDestroy(gw));
	must(cuGraphDestroy(gs));
	must(cuStreamDestroy(t));
	must(cuStreamDestroy(u));
}

static void attributes(void)
{
	void *inc[] = {&a, &n_elems};
	CUDA_KERNEL_NODE_PARAMS p = kernel(f_inc, inc);
	CUkernelNodeAttrValue v = {.priority = -3}, got;
	CUgraphExecUpdateResultInfo info;
	CUgraphExec exec;
	CUgraphNode x, y;
	CUgraph g;

	must(cuGraphCreate(&g, 0));
	must(cuGraphAddKernelNode(&x, g, NULL, 0, &p));
	must(cuGraphAddKernelNode(&y, g, &x, 1, &p));
	must(cuGraphKernelNodeGetAttribute(x, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY, &got));
	is_u64((unsigned)got.priority, 0, "attributes are zero at first");
	must(cuGraphKernelNodeSetAttribute(x, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY, &v));
	must(cuGraphInstantiate(&exec, g, 0));
	v.cooperative = 1;
	must(cuGraphKernelNodeSetAttribute(x, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &v));
	is_cu(cuGraphExecUpdate(exec, g, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
	      "a kernel cannot become cooperative");
	ok(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED && info.errorNode == x,
	   "which says why");
	is_cu(cuGraphKernelNodeCopyAttributes(y, x), CUDA_SUCCESS, "copy attributes");
	must(cuGraphKernelNodeGetAttribute(y, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY, &got));
	is_u64((unsigned)got.priority, (unsigned)-3, "one");
	must(cuGraphKernelNodeGetAttribute(y, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &got));
	is_u64((unsigned)got.cooperative, 1, "and another");
	must(cuGraphKernelNodeSetParams(x, &p));
	must(cuGraphKernelNodeGetAttribute(x, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &got));
	is_u64((unsigned)got.cooperative, 1, "which other parameters leave alone");
	is_cu(cuGraphKernelNodeSetAttribute(x, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v),
	      CUDA_ERROR_INVALID_VALUE, "not for nodes");
	must(cuGraphExecDestroy(exec));
	must(cuGraphDestroy(g));
}

static void edges(void)
{
	void *inc[] = {&a, &n_elems};
	CUgraphEdgeData pdl = {.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
			       .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC},
			got[4], plain = {0};
	CUgraphNodeParams p = any_kernel(f_inc, inc), set = any_fill(a, 1);
	CUgraphNode x, y, z, from[4], to[4];
	size_t n = 4;
	CUgraph g;

	must(cuGraphCreate(&g, 0));
	must(cuGraphAddNode(&x, g, NULL, NULL, 0, &p));
	is_cu(cuGraphAddNode(&y, g, &x, &pdl, 1, &p), CUDA_SUCCESS, "a programmatic edge");
	is_cu(cuGraphAddNode(&z, g, &x, &pdl, 1, &set), CUDA_ERROR_INVALID_VALUE,
	      "only between kernels");
	must(cuGraphAddNode(&z, g, &y, &plain, 1, &set));
	must(cuGraphGetEdges(g, from, to, got, &n));
	ok(n == 2 && from[0] == x && to[0] == y && got[0].type == pdl.type &&
		   got[0].from_port == pdl.from_port && !got[1].type,
	   "edges with their annotations");
	is_cu(cuGraphGetEdges(g, from, to, NULL, &n), CUDA_ERROR_LOSSY_QUERY, "not without");
	n = 4;
	is_cu(cuGraphNodeGetDependencies(y, from, NULL, &n), CUDA_ERROR_LOSSY_QUERY, "nor here");
	n = 4;
	must(cuGraphNodeGetDependencies(y, from, got, &n));
	ok(n == 1 && got[0].type == pdl.type, "annotated dependency");
	n = 4;
	must(cuGraphNodeGetDependentNodes(x, from, got, &n));
	ok(n == 1 && from[0] == y && got[0].type == pdl.type, "annotated dependent");
	is_cu(cuGraphRemoveDependencies(g, &x, &y, &plain, 1), CUDA_ERROR_INVALID_VALUE,
	      "no such edge");
	is_cu(cuGraphRemoveDependencies(g, &x, &y, &pdl, 1), CUDA_SUCCESS, "but such a one");
	is_cu(cuGraphAddDependencies(g, &x, &y, &pdl, 1), CUDA_SUCCESS, "and back");
	must(cuGraphDestroy(g));
}

/* Set-params reach into child graphs; enabling does, too; whole child graphs change at once. */
static void children(void)
{
	CUgraphNodeParams set = any_fill(a, 1), p = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
	CUgraphNode child, inner, other_node;
	CUgraphExecUpdateResultInfo info;
	CUgraph g, part, own, other;
	CUgraphExec exec;
	size_t n = 1;

	must(cuGraphCreate(&g, 0));
	must(cuGraphCreate(&part, 0));
	must(cuGraphCreate(&other, 0));
	put(part, NULL, set);
	set.memset.value = 2;
	other_node = put(other, NULL, set);
	must(cuGraphAddChildGraphNode(&child, g, NULL, 0, part));
	must(cuGraphChildGraphNodeGetGraph(child, &own));
	must(cuGraphGetNodes(own, &inner, &n));
	must(cuGraphInstantiate(&exec, g, 0));
	must(cuGraphLaunch(exec, NULL));
	is_u64(value(a), 1, "a child graph");
	is_cu(cuGraphExecChildGraphNodeSetParams(exec, child, other), CUDA_SUCCESS, "another one");
	must(cuGraphLaunch(exec, NULL));
	is_u64(value(a), 2, "of the same shape");
	set.memset.value = 3;
	is_cu(cuGraphExecNodeSetParams(exec, inner, &set), CUDA_SUCCESS, "a node inside of it");
	must(cuGraphLaunch(exec, NULL));
	is_u64(value(a), 3, "by its first handle");
	must(cuGraphNodeSetEnabled(exec, inner, 0));
	must(cuMemsetD32(a, 9, N));
	must(cuGraphLaunch(exec, NULL));
	is_u64(value(a), 9, "disabled there");
	must(cuGraphNodeSetEnabled(exec, inner, 1));
	p.graph.graph = other;
	is_cu(cuGraphExecNodeSetParams(exec, child, &p), CUDA_SUCCESS, "through the union");
	must(cuGraphLaunch(exec, NULL));
	is_u64(value(a), 2, "the same");
	put(other, &other_node, set);
	is_cu(cuGraphExecChildGraphNodeSetParams(exec, child, other), CUDA_ERROR_INVALID_VALUE,
	      "another shape");
	is_cu(cuGraphExecUpdate(exec, g, &info), CUDA_SUCCESS, "an update reaches the child");
	must(cuGraphLaunch(exec, NULL));
	is_u64(value(a), 1, "and brings it back");
	must(cuGraphExecDestroy(exec));
	must(cuGraphDestroy(g));
	must(cuGraphDestroy(part));
	must(cuGraphDestroy(other));
}

static void updates(void)
{
	CUDA_MEMSET_NODE_PARAMS one = fill(a, 1), rows = fill(a, 1), narrow;
	CUDA_GRAPH_INSTANTIATE_PARAMS how = {0};
	CUgraphExecUpdateResultInfo info;
	CUDA_MEMCPY3D flat = copy(b, a), tall;
	CUgraph g, crossed;
	CUgraphNode x, y, z, c;
	CUgraphExec exec;
	unsigned on = 7;

	must(cuGraphCreate(&g, 0));
	must(cuGraphCreate(&crossed, 0));
	must(cuGraphAddMemsetNode(&x, g, NULL, 0, &one, NULL));
	must(cuGraphAddMemsetNode(&y, g, NULL, 0, &one, NULL));
	must(cuGraphAddEmptyNode(&z, g, &x, 1));
	must(cuGraphAddMemcpyNode(&c, g, &y, 1, &flat, NULL));
	must(cuGraphInstantiate(&exec, g, 0));
	must(cuGraphAddMemsetNode(&x, crossed, NULL, 0, &one, NULL));
	must(cuGraphAddMemsetNode(&y, crossed, NULL, 0, &one, NULL));
	must(cuGraphAddEmptyNode(&z, crossed, &y, 1));
	must(cuGraphAddMemcpyNode(&x, crossed, &y, 1, &flat, NULL));
	is_cu(cuGraphExecUpdate(exec, crossed, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
	      "other edges");
	ok(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED && info.errorNode == z &&
		   info.errorFromNode == y,
	   "which says from where to where");
	must(cuGraphDestroyNode(z));
	is_cu(cuGraphExecUpdate(exec, crossed, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
	      "fewer nodes");
	ok(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED && !info.errorNode,
	   "nowhere");
	tall = flat;
	tall.WidthInBytes = N * 2;
	tall.Height = 2;
	tall.srcPitch = tall.dstPitch = N * 2;
	is_cu(cuGraphExecMemcpyNodeSetParams(exec, c, &tall, NULL), CUDA_ERROR_INVALID_VALUE,
	      "a copy stays one row");
	must(cuGraphNodeGetEnabled(exec, c, &on));
	is_u64(on, 1, "nodes are enabled");
	must(cuGraphExecDestroy(exec));
	must(cuGraphDestroy(g));
	must(cuGraphDestroy(crossed));

	must(cuGraphCreate(&g, 0));
	rows.width = N / 2;
	rows.height = 2;
	rows.pitch = N * 2;
	must(cuGraphAddMemsetNode(&x, g, NULL, 0, &rows, NULL));
	must(cuGraphInstantiate(&exec, g, 0));
	rows.value = 4;
	is_cu(cuGraphExecMemsetNodeSetParams(exec, x, &rows, NULL), CUDA_SUCCESS, "another value");
	narrow = rows;
	narrow.width = 2;
	is_cu(cuGraphExecMemsetNodeSetParams(exec, x, &narrow, NULL), CUDA_ERROR_INVALID_VALUE,
	      "not another width of rows");
	must(cuGraphLaunch(exec, NULL));
	is_u64(value(a), 4, "the value is there");
	must(cuGraphExecDestroy(exec));
	must(cuGraphAddEmptyNode(&y, g, &x, 1));
	must(cuGraphAddDependencies(g, &y, &x, NULL, 1));
	is_cu(cuGraphInstantiateWithParams(&exec, g, &how), CUDA_ERROR_INVALID_VALUE, "a cycle");
	ok(how.result_out == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE &&
		   (how.hErrNode_out == x || how.hErrNode_out == y),
	   "which names a node of it");
	how.flags = CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
	is_cu(cuGraphInstantiateWithParams(&exec, g, &how), CUDA_ERROR_NOT_SUPPORTED,
	      "launches from the device");
	must(cuGraphDestroy(g));
}

/* An external semaphore is signalled by one graph and awaited by another. */
static void semaphores(void)
{
	CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC d = {
		.type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD};
	CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS sp = {0};
	CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS wp = {0};
	CUDA_EXT_SEM_SIGNAL_NODE_PARAMS s, got;
	CUDA_EXT_SEM_WAIT_NODE_PARAMS w;
	CUDA_MEMSET_NODE_PARAMS set = fill(a, 6);
	CUgraphExec signals, waits;
	CUexternalSemaphore sem;
	CUgraphNode n, m, sn;
	unsigned right = 0;
	CUgraph gs, gw;
	CUstream t, u;

	d.handle.fd = eventfd(0, EFD_NONBLOCK);
	must(cuImportExternalSemaphore(&sem, &d));
	s = (CUDA_EXT_SEM_SIGNAL_NODE_PARAMS){&sem, &sp, 1};
	w = (CUDA_EXT_SEM_WAIT_NODE_PARAMS){&sem, &wp, 1};
	must(cuGraphCreate(&gs, 0));
	must(cuGraphCreate(&gw, 0));
	must(cuGraphAddExternalSemaphoresSignalNode(&sn, gs, NULL, 0, &s));
	must(cuGraphAddExternalSemaphoresWaitNode(&n, gw, NULL, 0, &w));
	must(cuGraphAddMemsetNode(&m, gw, &n, 1, &set, NULL));
	must(cuGraphExternalSemaphoresSignalNodeGetParams(sn, &got));
	ok(got.numExtSems == 1 && got.extSemArray[0] == sem && got.extSemArray != &sem,
	   "parameters of a semaphore node");
	s.numExtSems = 0;
	is_cu(cuGraphExternalSemaphoresSignalNodeSetParams(sn, &s), CUDA_ERROR_INVALID_VALUE,
	      "no semaphore");
	must(cuGraphInstantiate(&signals, gs, 0));
	must(cuGraphInstantiate(&waits, gw, 0));
	must(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&u, CU_STREAM_NON_BLOCKING));
	for (unsigned i = 0; i < SEEDS; i++) {
		must(cuMemsetD32(a, 0, N));
		must(cuCtxSynchronize());
		schedule(i);
		must(cuGraphLaunch(waits, t));
		must(cuGraphLaunch(signals, u));
		must(cuStreamSynchronize(u));
		must(cuStreamSynchronize(t));
		right += value(a) == 6;
	}
	is_u64(right, SEEDS, "one graph waits for the other's signal");
	schedule(0);
	must(cuGraphExecDestroy(signals));
	must(cuGraphExecDestroy(waits));
	must(cuGraphDestroy(gs));
	must(cuGraphDestroy(gw));
	must(cuDestroyExternalSemaphore(sem));
	must(cuStreamDestroy(t));
	must(cuStreamDestroy(u));
}

static void dot(void)
{
	char path[] = "/tmp/t_drv_graphnode.XXXXXX", text[4096] = "";
	void *inc[] = {&a, &n_elems};
	CUgraphNode x, y;
	CUgraph g, part;
	FILE *f;

	close(mkstemp(path));
	must(cuGraphCreate(&g, 0));
	must(cuGraphCreate(&part, 0));
	put(part, NULL, any_fill(a, 5));
	x = put(g, NULL, any_kernel(f_inc, inc));
	must(cuGraphAddChildGraphNode(&y, g, &x, 1, part));
	is_cu(cuGraphDebugDotPrint(g, path, CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE), CUDA_SUCCESS, "dot");
	f = fopen(path, "r");
	ok(f && fread(text, 1, sizeof(text) - 1, f) > 0, "a file is there");
	if (f)
		fclose(f);
	ok(strstr(text, "digraph") && strstr(text, "KERNEL\\ninc") &&
		   strstr(text, "block 64,1,1") &&
		   strstr(text, "\"graph_0_node_0\" -> \"graph_0_node_1\"") &&
		   strstr(text, "cluster_1") && strstr(text, "MEMSET"),
	   "with nodes, edges, child graphs and parameters");
	is_cu(cuGraphDebugDotPrint(g, "/nowhere/at/all", 0), CUDA_ERROR_OPERATING_SYSTEM,
	      "no file");
	is_cu(cuGraphDebugDotPrint(g, NULL, 0), CUDA_ERROR_INVALID_VALUE, "no name");
	unlink(path);
	must(cuGraphDestroy(g));
	must(cuGraphDestroy(part));
}

int main(void)
{
	CUmodule mod;

	ctx = drv_context();
	must(cuModuleLoadData(&mod, drv_ptx));
	f_inc = drv_function(mod, "inc");
	must(cuMemAlloc(&a, N * 4));
	must(cuMemAlloc(&b, N * 4));
	must(cuMemAlloc(&word, 4));
	every_type();
	batches();
	attributes();
	edges();
	children();
	updates();
	semaphores();
	dot();
	must(cuCtxDestroy(ctx));
	return tap_done();
}
