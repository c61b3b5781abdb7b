/* SPDX-License-Identifier: MIT */
/*
 * Graphs built by hand, executable graphs and their updates, stream capture and its rules.
 */
#include "tests/clients/drv.h"

#define N 64u

static CUfunction f_inc, f_addto;
static CUdeviceptr a, b;
static unsigned *pinned;

static unsigned value(CUdeviceptr p)
{
	unsigned v;

	must(cuMemcpyDtoH(&v, p + 4 * (N - 1), 4));
	return v;
}

static CUDA_KERNEL_NODE_PARAMS kernel(CUfunction f, void **params)
{
	CUDA_KERNEL_NODE_PARAMS p = {.func = f, .kernelParams = params};

	p.gridDimX = p.gridDimY = p.gridDimZ = p.blockDimY = p.blockDimZ = 1;
	p.blockDimX = N;
	return p;
}

/* As tinygrad does: packed arguments through `extra`, changed in place and set again. */
static void packed(void)
{
	struct {
		CUdeviceptr p;
		unsigned n;
	} args = {a, N};
	size_t size = sizeof(args);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &args, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			 CU_LAUNCH_PARAM_END};
	CUDA_KERNEL_NODE_PARAMS p = kernel(f_inc, NULL);
	CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			      .srcDevice = a,
			      .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			      .dstDevice = b,
			      .WidthInBytes = N * 4,
			      .Height = 1,
			      .Depth = 1};
	CUgraphNode n1, n2, found[4];
	CUgraphExec exec;
	size_t n = 4;
	CUgraph g;

	p.extra = extra;
	must(cuMemsetD32(a, 10, N));
	must(cuMemsetD32(b, 20, N));
	must(cuGraphCreate(&g, 0));
	is_cu(cuGraphAddKernelNode(&n1, g, NULL, 0, &p), CUDA_SUCCESS, "kernel node");
	is_cu(cuGraphAddMemcpyNode(&n2, g, &n1, 1, &copy, NULL), CUDA_SUCCESS, "copy after it");
	args.p = 0; /* the node has its own copy */
	is_cu(cuGraphInstantiate(&exec, g, 0), CUDA_SUCCESS, "instantiate");
	is_u64(value(a), 10, "nothing has run");
	is_cu(cuGraphLaunch(exec, NULL), CUDA_SUCCESS, "launch");
	is_cu(cuGraphLaunch(exec, NULL), CUDA_SUCCESS, "launch again");
	ok(value(a) == 12 && value(b) == 12, "both ran, each in order");
	args.p = b;
	is_cu(cuGraphExecKernelNodeSetParams(exec, n1, &p), CUDA_SUCCESS, "change the kernel");
	copy.srcDevice = b;
	copy.dstDevice = a;
	is_cu(cuGraphExecMemcpyNodeSetParams(exec, n2, &copy, NULL), CUDA_SUCCESS,
	      "change the copy");
	must(cuGraphLaunch(exec, NULL));
	ok(value(b) == 13 && value(a) == 13, "the executable graph has changed");
	must(cuGraphGetNodes(g, found, &n));
	ok(n == 2 && found[0] == n1 && found[1] == n2 && !found[2], "the graph lists its nodes");
	is_cu(cuGraphDestroy(g), CUDA_SUCCESS, "the graph can go");
	must(cuGraphLaunch(exec, NULL));
	is_u64(value(a), 14, "before its executable");
	is_cu(cuGraphExecDestroy(exec), CUDA_SUCCESS, "which goes, too");
	is_cu(cuGraphLaunch(exec, NULL), CUDA_ERROR_INVALID_VALUE, "and cannot be launched then");
}

static void host_add(void *arg)
{
	*(unsigned *)arg += 100;
}

static void kinds(void)
{
	unsigned n = N, counter = 1, enabled = 5;
	void *inc[] = {&a, &n};
	CUDA_KERNEL_NODE_PARAMS p = kernel(f_inc, inc), got;
	CUDA_MEMSET_NODE_PARAMS fill = {
		.dst = a, .value = 3, .elementSize = 4, .width = N, .height = 1};
	CUDA_HOST_NODE_PARAMS host = {host_add, &counter};
	CUgraphNode f, k, h, e, c, x;
	CUgraphNodeType type;
	CUgraph g, clone, child;
	CUgraphExec exec;
	CUevent ev;

	must(cuGraphCreate(&g, 0));
	must(cuGraphCreate(&child, 0));
	must(cuEventCreate(&ev, 0));
	must(cuGraphAddKernelNode(&k, child, NULL, 0, &p));
	must(cuGraphAddMemsetNode(&f, g, NULL, 0, &fill, NULL));
	must(cuGraphAddHostNode(&h, g, NULL, 0, &host));
	must(cuGraphAddEmptyNode(&e, g, (CUgraphNode[]){f, h}, 2));
	must(cuGraphAddChildGraphNode(&c, g, &e, 1, child));
	must(cuGraphAddEventRecordNode(&x, g, &c, 1, ev));
	is_cu(cuGraphAddEmptyNode(&x, g, &k, 1), CUDA_ERROR_INVALID_VALUE,
	      "a dependency of another graph");
	is_cu(cuGraphAddDependencies(g, &c, &f, NULL, 1), CUDA_SUCCESS, "a cycle can be made");
	is_cu(cuGraphInstantiate(&exec, g, 0), CUDA_ERROR_INVALID_VALUE, "but not instantiated");
	is_cu(cuGraphRemoveDependencies(g, &c, &f, NULL, 1), CUDA_SUCCESS, "and be removed");
	must(cuGraphKernelNodeGetParams(k, &got));
	ok(got.func == f_inc && *(unsigned *)got.kernelParams[1] == N && got.blockDimX == N,
	   "kernel node parameters read back");
	must(cuGraphClone(&clone, g));
	must(cuGraphNodeFindInClone(&x, f, clone));
	must(cuGraphNodeGetType(x, &type));
	is_u64(type, CU_GRAPH_NODE_TYPE_MEMSET, "a clone has the same nodes");
	must(cuGraphInstantiate(&exec, clone, 0));
	for (unsigned seed = 0; seed < 50; seed++) {
		char spec[32];

		snprintf(spec, sizeof(spec), "random:%u", seed);
		simcuda_set_schedule(spec);
		must(cuGraphLaunch(exec, NULL));
		if (value(a) != 4)
			break;
	}
	ok(value(a) == 4 && counter == 5001, "a graph with a child is right in every schedule");
	simcuda_set_schedule("eager");
	is_cu(cuEventQuery(ev), CUDA_SUCCESS, "the event was recorded");
	is_cu(cuGraphNodeSetEnabled(exec, x, 0), CUDA_SUCCESS, "disable the fill");
	must(cuGraphNodeGetEnabled(exec, x, &enabled));
	must(cuGraphLaunch(exec, NULL));
	ok(!enabled && value(a) == 5, "the rest still runs");
	must(cuGraphExecDestroy(exec));
	must(cuGraphDestroy(clone));
	must(cuGraphDestroy(child));
	must(cuGraphDestroy(g));
	must(cuEventDestroy(ev));
}

/* Two branches without an edge between them run in either order. */
static void branches(void)
{
	CUDA_MEMSET_NODE_PARAMS one = {
		.dst = a, .value = 1, .elementSize = 4, .width = N, .height = 1};
	CUDA_MEMSET_NODE_PARAMS two = one;
	unsigned ones = 0, twos = 0;
	CUgraphExec exec;
	CUgraphNode n;
	CUgraph g;

	two.value = 2;
	must(cuGraphCreate(&g, 0));
	must(cuGraphAddMemsetNode(&n, g, NULL, 0, &one, NULL));
	must(cuGraphAddMemsetNode(&n, g, NULL, 0, &two, NULL));
	must(cuGraphInstantiate(&exec, g, 0));
	for (unsigned seed = 0; seed < 50; seed++) {
		char spec[32];

		snprintf(spec, sizeof(spec), "random:%u", seed);
		simcuda_set_schedule(spec);
		must(cuGraphLaunch(exec, NULL));
		must(cuCtxSynchronize());
		ones += value(a) == 1;
		twos += value(a) == 2;
	}
	ok(ones && twos && ones + twos == 50, "unordered branches show (%u, %u)", ones, twos);
	simcuda_set_schedule("eager");
	must(cuGraphExecDestroy(exec));
	must(cuGraphDestroy(g));
}

static void capture(void)
{
	unsigned n = N;
	void *inc[] = {&a, &n}, *add[] = {&b, &a, &n};
	CUstreamCaptureStatus status;
	CUgraphExec exec;
	CUstream s, t;
	CUevent e, f;
	size_t count = 0;
	CUgraph g;

	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	must(cuEventCreate(&e, 0));
	must(cuEventCreate(&f, 0));
	must(cuMemsetD32(b, 0, N));
	must(cuCtxSynchronize());
	must(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	must(cuMemsetD32Async(a, 1, N, s));
	must(cuEventRecord(e, s));
	must(cuStreamWaitEvent(t, e, 0));
	must(cuStreamIsCapturing(t, &status));
	is_u64(status, CU_STREAM_CAPTURE_STATUS_ACTIVE, "waiting for an event joins the capture");
	must(drv_launch(f_inc, N, t, inc));
	must(cuEventRecord(f, t));
	must(cuStreamWaitEvent(s, f, 0));
	must(drv_launch(f_addto, N, s, add));
	must(cuMemcpyDtoHAsync(pinned, b, N * 4, s));
	is_cu(cuEventQuery(f), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "an unsafe call is refused");
	is_cu(cuStreamEndCapture(s, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "and breaks it");
	ok(!g, "no graph then");

	must(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	must(cuMemsetD32Async(a, 1, N, s));
	must(cuEventRecord(e, s));
	must(cuStreamWaitEvent(t, e, 0));
	must(drv_launch(f_inc, N, t, inc));
	must(cuEventRecord(f, t));
	must(cuStreamWaitEvent(s, f, 0));
	must(drv_launch(f_addto, N, s, add));
	must(cuMemcpyDtoHAsync(pinned, b, N * 4, s));
	is_cu(cuStreamEndCapture(s, &g), CUDA_SUCCESS, "the same without it");
	must(cuGraphGetNodes(g, NULL, &count));
	is_u64(count, 4, "four nodes");
	is_u64(value(b), 0, "nothing has run");
	must(cuGraphInstantiate(&exec, g, 0));
	simcuda_set_schedule("random:5");
	for (unsigned i = 0; i < 20; i++)
		must(cuGraphLaunch(exec, s));
	must(cuStreamSynchronize(s));
	is_u64(pinned[0], 40, "twenty launches");
	simcuda_set_schedule("eager");
	must(cuGraphExecDestroy(exec));
	must(cuGraphDestroy(g));
	must(cuEventDestroy(e));
	must(cuEventDestroy(f));
	must(cuStreamDestroy(s));
	must(cuStreamDestroy(t));
}

static void capture_rules(void)
{
	CUstreamCaptureStatus status;
	unsigned long long id = 0;
	CUdeviceptr p;
	CUstream s, t;
	CUevent e;
	CUgraph g;

	must(cuStreamCreate(&s, CU_STREAM_DEFAULT));
	must(cuStreamCreate(&t, CU_STREAM_DEFAULT));
	must(cuEventCreate(&e, 0));
	is_cu(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL),
	      CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "the legacy stream cannot be captured");
	is_cu(cuStreamEndCapture(s, &g), CUDA_ERROR_ILLEGAL_STATE, "nothing to end");

	must(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	is_cu(cuMemAlloc(&p, 16), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "cuMemAlloc is unsafe");
	is_cu(cuMemsetD32Async(a, 1, N, s), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "broken");
	must(cuStreamGetCaptureInfo(s, &status, NULL, NULL, NULL, NULL, NULL));
	is_u64(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED, "which the status says");
	cuStreamEndCapture(s, &g);

	must(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	must(cuStreamGetCaptureInfo(s, &status, (cuuint64_t *)&id, NULL, NULL, NULL, NULL));
	ok(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && id, "capture id");
	is_cu(cuMemsetD32Async(a, 1, N, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
	      "the legacy stream would wait for a captured one");
	cuStreamEndCapture(s, &g);

	must(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	must(cuEventRecord(e, s));
	must(cuStreamWaitEvent(t, e, 0));
	must(cuMemsetD32Async(a, 1, N, t));
	is_cu(cuStreamEndCapture(t, &g), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "not its origin");
	cuStreamEndCapture(s, &g);

	must(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	must(cuEventRecord(e, s));
	must(cuStreamWaitEvent(t, e, 0));
	must(cuMemsetD32Async(a, 1, N, t));
	is_cu(cuStreamEndCapture(s, &g), CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "work left outside");
	is_cu(cuEventSynchronize(e), CUDA_ERROR_CAPTURED_EVENT, "a capture's event has no state");
	must(cuStreamIsCapturing(t, &status));
	is_u64(status, CU_STREAM_CAPTURE_STATUS_NONE, "all over");

	must(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	must(cuEventRecord(e, t));
	is_cu(cuStreamWaitEvent(s, e, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
	      "work outside cannot be waited for");
	must(cuStreamDestroy(s));
	must(cuStreamDestroy(t));
	must(cuEventDestroy(e));
}

static void update(void)
{
	unsigned n = N;
	void *inc[] = {&a, &n}, *other[] = {&b, &n};
	CUDA_KERNEL_NODE_PARAMS p = kernel(f_inc, inc), q = kernel(f_inc, other);
	CUgraphExecUpdateResultInfo info;
	CUgraph g, same, different;
	CUgraphNode node, first;
	CUgraphExec exec;

	must(cuMemsetD32(a, 1, N));
	must(cuMemsetD32(b, 1, N));
	must(cuGraphCreate(&g, 0));
	must(cuGraphCreate(&same, 0));
	must(cuGraphCreate(&different, 0));
	must(cuGraphAddKernelNode(&first, g, NULL, 0, &p));
	must(cuGraphAddKernelNode(&node, g, &first, 1, &p));
	must(cuGraphAddKernelNode(&first, same, NULL, 0, &q));
	must(cuGraphAddKernelNode(&node, same, &first, 1, &q));
	must(cuGraphAddKernelNode(&first, different, NULL, 0, &q));
	must(cuGraphAddEmptyNode(&node, different, &first, 1));
	must(cuGraphInstantiate(&exec, g, 0));
	is_cu(cuGraphExecUpdate(exec, different, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
	      "update with a graph of another shape");
	ok(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED && info.errorNode == node,
	   "which says why and where");
	must(cuGraphLaunch(exec, NULL));
	ok(value(a) == 3 && value(b) == 1, "and changes nothing");
	is_cu(cuGraphExecUpdate(exec, same, &info), CUDA_SUCCESS, "update with the same shape");
	must(cuGraphLaunch(exec, NULL));
	ok(value(a) == 3 && value(b) == 3, "takes the new parameters");
	must(cuGraphExecDestroy(exec));
	must(cuGraphDestroy(g));
	must(cuGraphDestroy(same));
	must(cuGraphDestroy(different));
}

static void unloaded(void)
{
	unsigned n = N;
	void *inc[] = {&a, &n};
	CUDA_KERNEL_NODE_PARAMS p;
	CUgraphExec exec;
	CUgraphNode node;
	CUmodule mod;
	CUgraph g;

	must(cuModuleLoadData(&mod, drv_ptx));
	p = kernel(drv_function(mod, "inc"), inc);
	must(cuGraphCreate(&g, 0));
	must(cuGraphAddKernelNode(&node, g, NULL, 0, &p));
	must(cuGraphInstantiate(&exec, g, 0));
	must(cuModuleUnload(mod));
	is_cu(cuGraphLaunch(exec, NULL), CUDA_ERROR_INVALID_HANDLE, "its module was unloaded");
	must(cuGraphExecDestroy(exec));
	must(cuGraphDestroy(g));
}

static void user_objects(void)
{
	unsigned gone = 0;
	CUuserObject o;
	CUgraphExec exec;
	CUgraph g;

	must(cuGraphCreate(&g, 0));
	must(cuUserObjectCreate(&o, &gone, host_add, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	must(cuGraphRetainUserObject(g, o, 1, CU_GRAPH_USER_OBJECT_MOVE));
	must(cuGraphInstantiate(&exec, g, 0));
	must(cuGraphDestroy(g));
	is_u64(gone, 0, "a user object lives while an executable graph holds it");
	simcuda_set_schedule("lazy");
	must(cuGraphLaunch(exec, NULL));
	must(cuGraphExecDestroy(exec));
	is_u64(gone, 0, "or is in flight");
	must(cuCtxSynchronize());
	is_u64(gone, 100, "and is destroyed with the last one");
	simcuda_set_schedule("eager");
}

int main(void)
{
	CUcontext ctx = drv_context();
	CUmodule mod;

	must(cuModuleLoadData(&mod, drv_ptx));
	f_inc = drv_function(mod, "inc");
	f_addto = drv_function(mod, "addto");
	must(cuMemAlloc(&a, N * 4));
	must(cuMemAlloc(&b, N * 4));
	must(cuMemHostAlloc((void **)&pinned, N * 4, 0));
	packed();
	kinds();
	branches();
	capture();
	capture_rules();
	update();
	user_objects();
	unloaded();
	must(cuCtxDestroy(ctx));
	return tap_done();
}
