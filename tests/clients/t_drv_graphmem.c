/* SPDX-License-Identifier: MIT */
/*
 * Graph memory nodes: addresses, lifetime across launches, who may free, what a graph with them may not.
 */
#include "tests/clients/drv_graph.h"

static CUfunction f_inc, f_addto;
static CUdeviceptr out;

static CUDA_MEM_ALLOC_NODE_PARAMS want(size_t bytes)
{
	CUDA_MEM_ALLOC_NODE_PARAMS p = {.bytesize = bytes};

	p.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	p.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	return p;
}

static cuuint64_t usage(CUgraphMem_attribute attr)
{
	cuuint64_t v = 0;

	must(cuDeviceGetGraphMemAttribute(0, attr, &v));
	return v;
}

/* out += 5 + 1 through a temporary that lives inside of the graph. */
static void inside(void)
{
	CUDA_MEM_ALLOC_NODE_PARAMS mem = want(N * 4), got;
	CUgraphNode alloc, set, inc, add, release, again;
	void *inc_args[] = {&mem.dptr, &n_elems}, *add_args[] = {&out, &mem.dptr, &n_elems};
	CUDA_KERNEL_NODE_PARAMS p_inc, p_add;
	CUDA_MEMSET_NODE_PARAMS five;
	CUdeviceptr address = 0;
	CUgraphExec exec, second;
	unsigned right = 0;
	CUgraph g, copied;

	must(cuGraphCreate(&g, 0));
	is_cu(cuGraphAddMemAllocNode(&alloc, g, NULL, 0, &mem), CUDA_SUCCESS, "an allocation node");
	ok(mem.dptr, "has its address at once");
	p_inc = kernel(f_inc, inc_args);
	p_add = kernel(f_addto, add_args);
	five = fill(mem.dptr, 5);
	must(cuGraphAddMemsetNode(&set, g, &alloc, 1, &five, NULL));
	must(cuGraphAddKernelNode(&inc, g, &set, 1, &p_inc));
	must(cuGraphAddKernelNode(&add, g, &inc, 1, &p_add));
	is_cu(cuGraphAddMemFreeNode(&release, g, &add, 1, mem.dptr), CUDA_SUCCESS, "a free node");
	is_cu(cuGraphAddMemFreeNode(&again, g, &add, 1, mem.dptr), CUDA_ERROR_INVALID_VALUE,
	      "no second one");
	is_cu(cuGraphAddMemFreeNode(&again, g, &add, 1, out), CUDA_ERROR_INVALID_VALUE,
	      "nor one for other memory");
	must(cuGraphMemAllocNodeGetParams(alloc, &got));
	must(cuGraphMemFreeNodeGetParams(release, &address));
	ok(got.dptr == mem.dptr && got.bytesize == N * 4 && address == mem.dptr, "parameters");
	is_cu(cuGraphMemFreeNodeGetParams(alloc, &address), CUDA_ERROR_INVALID_VALUE, "by type");

	is_cu(cuGraphClone(&copied, g), CUDA_ERROR_NOT_SUPPORTED, "no clone");
	is_cu(cuGraphDestroyNode(set), CUDA_ERROR_NOT_SUPPORTED, "no node goes");
	is_cu(cuGraphRemoveDependencies(g, &alloc, &set, NULL, 1), CUDA_ERROR_NOT_SUPPORTED,
	      "no edge goes");
	must(cuGraphCreate(&copied, 0));
	is_cu(cuGraphAddChildGraphNode(&again, copied, NULL, 0, g), CUDA_ERROR_NOT_SUPPORTED,
	      "no copy as a child");
	must(cuGraphDestroy(copied));
	must(cuGraphInstantiate(&exec, g, 0));
	is_cu(cuGraphInstantiate(&second, g, 0), CUDA_ERROR_INVALID_VALUE, "one instantiation");

	for (unsigned i = 0; i < SEEDS; i++) {
		must(cuMemsetD32(out, 100, N));
		schedule(i);
		for (unsigned k = 0; k < 4; k++)
			must(cuGraphLaunch(exec, NULL));
		right += value(out) == 124;
		must(cuCtxSynchronize());
	}
	is_u64(right, SEEDS, "used and freed in each launch, in every schedule");
	schedule(0);
	is_u64(usage(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0, "nothing is in use after that");
	ok(usage(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH) >= N * 4, "but something was");
	ok(usage(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) >= N * 4, "and is kept");
	must(cuDeviceGraphMemTrim(0));
	is_u64(usage(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0, "until it is trimmed");
	must(cuGraphLaunch(exec, NULL));
	is_u64(value(out), 130, "a launch takes it again");
	is_cu(cuMemFree(mem.dptr), CUDA_ERROR_INVALID_VALUE,
	      "what the graph frees nobody else may");
	is_cu(cuMemFreeAsync(mem.dptr, NULL), CUDA_ERROR_INVALID_VALUE, "in no way");
	must(cuGraphExecDestroy(exec));
	must(cuGraphInstantiate(&exec, g, 0));
	must(cuGraphExecDestroy(exec));
	must(cuGraphDestroy(g));
	is_u64(usage(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0, "a destroyed graph has nothing");
}

/* The allocation outlives its graph's launch. */
static void outside(void)
{
	CUDA_MEM_ALLOC_NODE_PARAMS mem = want(N * 4);
	CUgraphNode alloc, set, release;
	CUDA_MEMSET_NODE_PARAMS five;
	CUgraphExec exec, freeing;
	unsigned right = 0;
	CUgraph g, f;

	must(cuGraphCreate(&g, 0));
	must(cuGraphAddMemAllocNode(&alloc, g, NULL, 0, &mem));
	five = fill(mem.dptr, 5);
	must(cuGraphAddMemsetNode(&set, g, &alloc, 1, &five, NULL));
	must(cuGraphInstantiate(&exec, g, 0));
	is_cu(cuMemFree(mem.dptr), CUDA_ERROR_INVALID_VALUE, "not allocated yet");
	must(cuGraphLaunch(exec, NULL));
	is_u64(value(mem.dptr), 5, "memory after a launch");
	is_cu(cuGraphLaunch(exec, NULL), CUDA_ERROR_INVALID_VALUE, "no relaunch while it is there");
	is_cu(cuMemFree(mem.dptr), CUDA_SUCCESS, "cuMemFree");
	is_cu(cuMemFree(mem.dptr), CUDA_ERROR_INVALID_VALUE, "once");
	must(cuGraphLaunch(exec, NULL));
	is_u64(value(mem.dptr), 5, "at the same address again");
	must(cuMemFreeAsync(mem.dptr, NULL));

	must(cuGraphCreate(&f, 0));
	is_cu(cuGraphAddMemFreeNode(&release, f, NULL, 0, mem.dptr), CUDA_SUCCESS,
	      "a free node in another graph");
	is_cu(cuGraphAddMemFreeNode(&release, g, NULL, 0, mem.dptr), CUDA_ERROR_INVALID_VALUE,
	      "closes the owner's way");
	must(cuGraphInstantiate(&freeing, f, 0));
	is_cu(cuGraphLaunch(freeing, NULL), CUDA_ERROR_INVALID_VALUE, "nothing to free");
	for (unsigned i = 0; i < SEEDS; i++) {
		CUstream s, t;

		schedule(i);
		must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
		must(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
		for (unsigned k = 0; k < 4; k++) {
			CUevent e;

			must(cuEventCreate(&e, 0));
			must(cuGraphLaunch(exec, s));
			must(cuMemcpyDtoDAsync(out, mem.dptr, N * 4, s));
			must(cuEventRecord(e, s));
			must(cuStreamWaitEvent(t, e, 0));
			must(k % 2 ? cuMemFreeAsync(mem.dptr, t) : cuGraphLaunch(freeing, t));
			must(cuEventDestroy(e));
		}
		right += cuCtxSynchronize() == CUDA_SUCCESS && value(out) == 5;
		must(cuStreamDestroy(s));
		must(cuStreamDestroy(t));
	}
	is_u64(right, SEEDS, "freed on another stream, or by another graph");
	schedule(0);
	is_u64(usage(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0, "all free");
	must(cuGraphLaunch(exec, NULL));
	must(cuGraphExecDestroy(freeing));
	must(cuGraphDestroy(f));
	must(cuGraphExecDestroy(exec));
	must(cuGraphDestroy(g));
	is_u64(value(mem.dptr), 5, "it outlives its graph, too");
	must(cuMemFree(mem.dptr));
	is_cu(cuMemsetD32(mem.dptr, 0, N), CUDA_ERROR_INVALID_VALUE,
	      "then the address is nobody's");
}

static void auto_free(void)
{
	CUDA_MEM_ALLOC_NODE_PARAMS mem = want(N * 4);
	CUgraphNode alloc, set;
	CUDA_MEMSET_NODE_PARAMS five;
	unsigned right = 0;
	CUgraphExec exec;
	CUgraph g;

	must(cuGraphCreate(&g, 0));
	must(cuGraphAddMemAllocNode(&alloc, g, NULL, 0, &mem));
	five = fill(mem.dptr, 5);
	must(cuGraphAddMemsetNode(&set, g, &alloc, 1, &five, NULL));
	must(cuGraphInstantiateWithFlags(&exec, g,
					 CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
	for (unsigned i = 0; i < SEEDS; i++) {
		schedule(i);
		for (unsigned k = 0; k < 3; k++)
			must(cuGraphLaunch(exec, NULL));
		right += value(mem.dptr) == 5;
		must(cuCtxSynchronize());
	}
	schedule(0);
	is_u64(right, SEEDS, "a launch frees what the one before left");
	must(cuMemFree(mem.dptr));
	must(cuGraphExecDestroy(exec));
	must(cuGraphDestroy(g));
}

/* cuMemAllocAsync and cuMemFreeAsync in a capture are nodes. */
static void captured(void)
{
	CUgraphNode nodes[5];
	CUgraphNodeType first, last;
	CUdeviceptr p = 0, q;
	CUgraphExec exec;
	size_t n = 5;
	CUstream s;
	CUgraph g;

	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuMemAllocAsync(&q, N * 4, s));
	must(cuMemsetD32(out, 0, N));
	must(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	is_cu(cuMemAllocAsync(&p, N * 4, s), CUDA_SUCCESS, "cuMemAllocAsync captured");
	must(cuMemsetD32Async(p, 7, N, s));
	must(cuMemcpyDtoDAsync(out, p, N * 4, s));
	is_cu(cuMemFreeAsync(q, s), CUDA_ERROR_INVALID_VALUE, "not for memory of a pool");
	is_cu(cuMemFreeAsync(p, s), CUDA_SUCCESS, "cuMemFreeAsync captured");
	must(cuStreamEndCapture(s, &g));
	must(cuGraphGetNodes(g, nodes, &n));
	must(cuGraphNodeGetType(nodes[0], &first));
	must(cuGraphNodeGetType(nodes[3], &last));
	ok(n == 4 && first == CU_GRAPH_NODE_TYPE_MEM_ALLOC && last == CU_GRAPH_NODE_TYPE_MEM_FREE,
	   "made nodes");
	must(cuGraphInstantiate(&exec, g, 0));
	must(cuGraphLaunch(exec, s));
	must(cuGraphLaunch(exec, s));
	must(cuStreamSynchronize(s));
	is_u64(value(out), 7, "that work");
	must(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	is_cu(cuGraphLaunch(exec, s), CUDA_ERROR_NOT_SUPPORTED, "no launch into a capture");
	cuStreamEndCapture(s, &g);
	must(cuMemFreeAsync(q, s));
	must(cuStreamDestroy(s));
	must(cuGraphExecDestroy(exec));
}

/* Within a graph an address may come again, where the free comes before the allocation. */
static void again(void)
{
	CUdeviceptr p, q, other;
	unsigned right = 0;
	CUgraphExec exec;
	CUstream s, t;
	CUevent e;
	CUgraph g;

	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	must(cuEventCreate(&e, 0));
	must(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	must(cuEventRecord(e, s));
	must(cuStreamWaitEvent(t, e, 0));
	must(cuMemAllocAsync(&p, N * 4, s));
	must(cuMemsetD32Async(p, 7, N, s));
	must(cuMemFreeAsync(p, s));
	must(cuMemAllocAsync(&other, N * 4, t));
	must(cuMemsetD32Async(other, 8, N, t));
	must(cuMemAllocAsync(&q, N * 4, s));
	ok(q == p && other != p, "an address comes again after its free, and not beside it");
	must(cuMemsetD32Async(q, 9, N, s));
	must(cuMemcpyDtoDAsync(out, q, N * 4, s));
	is_cu(cuMemFreeAsync(q, s), CUDA_SUCCESS, "it is freed again");
	is_cu(cuMemFreeAsync(q, s), CUDA_ERROR_INVALID_VALUE, "once");
	must(cuMemAllocAsync(&q, N * 4, s));
	must(cuMemsetD32Async(q, 10, N, s));
	must(cuEventRecord(e, t));
	must(cuStreamWaitEvent(s, e, 0));
	must(cuMemFreeAsync(other, s));
	must(cuStreamEndCapture(s, &g));
	must(cuGraphInstantiate(&exec, g, 0));
	for (unsigned i = 0; i < SEEDS; i++) {
		schedule(i);
		must(cuGraphLaunch(exec, s));
		must(cuStreamSynchronize(s));
		right += value(out) == 9 && value(q) == 10;
		must(cuMemFreeAsync(q, s));
	}
	is_u64(right, SEEDS, "each has its own bytes, and the last one outlives the launch");
	must(cuGraphExecDestroy(exec));
	must(cuGraphDestroy(g));
	must(cuEventDestroy(e));
	must(cuStreamDestroy(s));
	must(cuStreamDestroy(t));
}

/* A child graph with memory nodes is moved into its parent. */
static void moved(void)
{
	CUDA_MEM_ALLOC_NODE_PARAMS mem = want(N * 4);
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
	CUgraphNode alloc, set, child, take;
	CUDA_MEMSET_NODE_PARAMS nine;
	CUDA_MEMCPY3D c;
	CUgraphExec exec;
	CUgraph g, part;

	must(cuGraphCreate(&g, 0));
	must(cuGraphCreate(&part, 0));
	must(cuGraphAddMemAllocNode(&alloc, part, NULL, 0, &mem));
	nine = fill(mem.dptr, 9);
	must(cuGraphAddMemsetNode(&set, part, &alloc, 1, &nine, NULL));
	p.graph.graph = part;
	is_cu(cuGraphAddNode(&child, g, NULL, NULL, 0, &p), CUDA_ERROR_NOT_SUPPORTED, "not cloned");
	p.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
	is_cu(cuGraphAddNode(&child, g, NULL, NULL, 0, &p), CUDA_SUCCESS, "but moved");
	is_cu(cuGraphDestroy(part), CUDA_ERROR_INVALID_VALUE, "it is the parent's then");
	is_cu(cuGraphInstantiate(&exec, part, 0), CUDA_ERROR_INVALID_VALUE, "only");
	is_cu(cuGraphAddMemFreeNode(&take, part, NULL, 0, mem.dptr), CUDA_ERROR_NOT_SUPPORTED,
	      "and gets no more memory nodes");
	c = copy(out, mem.dptr);
	must(cuGraphAddMemcpyNode(&take, g, &child, 1, &c, NULL));
	must(cuGraphAddMemFreeNode(&take, g, &take, 1, mem.dptr));
	must(cuGraphInstantiate(&exec, g, 0));
	must(cuGraphLaunch(exec, NULL));
	must(cuGraphLaunch(exec, NULL));
	is_u64(value(out), 9, "allocated in the child, freed in the parent");
	must(cuGraphExecDestroy(exec));
	must(cuGraphDestroy(g));
}

static void wrong(void)
{
	CUDA_MEM_ALLOC_NODE_PARAMS mem = want(0);
	cuuint64_t zero = 0, one = 1;
	CUgraphExec exec;
	CUgraphNode n;
	CUgraph g;

	must(cuGraphCreate(&g, 0));
	is_cu(cuGraphAddMemAllocNode(&n, g, NULL, 0, &mem), CUDA_ERROR_INVALID_VALUE, "no bytes");
	mem = want(64);
	mem.poolProps.location.id = 99;
	is_cu(cuGraphAddMemAllocNode(&n, g, NULL, 0, &mem), CUDA_ERROR_INVALID_VALUE, "no device");
	mem = want(64);
	mem.poolProps.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	is_cu(cuGraphAddMemAllocNode(&n, g, NULL, 0, &mem), CUDA_ERROR_NOT_SUPPORTED, "no IPC");
	mem = want((size_t)1 << 45);
	is_cu(cuGraphAddMemAllocNode(&n, g, NULL, 0, &mem), CUDA_ERROR_OUT_OF_MEMORY, "too much");
	is_cu(cuDeviceGetGraphMemAttribute(99, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &zero),
	      CUDA_ERROR_INVALID_DEVICE, "attributes of no device");
	is_cu(cuDeviceGraphMemTrim(-1), CUDA_ERROR_INVALID_DEVICE, "nothing to trim");
	is_cu(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &one),
	      CUDA_ERROR_INVALID_VALUE, "a watermark is only reset");
	must(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &zero));
	is_u64(usage(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), 0, "to what is used");
	is_cu(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &zero),
	      CUDA_ERROR_INVALID_VALUE, "what is used is not set");

	/* A free that is not ordered after its allocation is a fault in some schedule. */
	mem = want(N * 4);
	must(cuGraphAddMemAllocNode(&n, g, NULL, 0, &mem));
	must(cuGraphAddMemFreeNode(&n, g, NULL, 0, mem.dptr));
	must(cuGraphInstantiate(&exec, g, 0));
	for (unsigned i = 2; i < SEEDS; i++) {
		schedule(i);
		if (cuGraphLaunch(exec, NULL) || cuCtxSynchronize())
			break;
	}
	is_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS, "a free before its allocation");
}

int main(void)
{
	CUcontext ctx = drv_context();
	CUmodule mod;

	must(cuModuleLoadData(&mod, drv_ptx));
	f_inc = drv_function(mod, "inc");
	f_addto = drv_function(mod, "addto");
	must(cuMemAlloc(&out, N * 4));
	inside();
	outside();
	auto_free();
	captured();
	again();
	moved();
	wrong();
	cuCtxDestroy(ctx);
	return tap_done();
}
