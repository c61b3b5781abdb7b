/* SPDX-License-Identifier: MIT */
/*
 * A program that goes on whatever fails, and prints what it saw: the result of every call, every byte that it read
 * back, every event query. For tests/t/faults.t, which lets one call fail and compares what is printed with and
 * without the tool.
 *
 *	faults [--streams]
 *
 * Two forwards are pending while all kinds of calls are made, so that the tool follows them; in the end both are
 * replayed. Whatever the program fails to give back (memory, a mapping, a module, a stream, a context ...) is used
 * once more, by the replay of a segment whose forward has used it before. A replay's line is
 *
 *	segment NAME PRODUCT-OF-FORWARD PRODUCT-OF-REPLAY STATE-BEFORE STATE-AFTER
 *
 * each a digest, or "?" where it could not be read. The replayed state differs from the forward's, so that the tool,
 * where it may, has to put bytes there and back.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/include/replayshim.h"
#include "tests/clients/drv.h"

#define N     64u
#define BYTES (N * 4)
#define MB    (1ull << 20)

static CUcontext context;
static CUstream stream, other;
static CUevent event;
static CUmodule module;
static CUfunction inc, addto, store;
static unsigned n_words = N;
static int two_streams;
static CUdeviceptr scratch; /* two arrays */

/* The call's own text stands for it; arguments are names, never values. */
#define DO(call) said(#call, call)

static CUresult said(const char *what, CUresult r)
{
	printf("%.*s=%d\n", (int)strcspn(what, "("), what, (int)r);
	return r;
}

static void saw(const char *what, const void *bytes, size_t n)
{
	const unsigned char *b = bytes;
	uint64_t h = 14695981039346656037ull;

	for (size_t i = 0; i < n; i++)
		h = (h ^ b[i]) * 1099511628211ull;
	printf("%s: %016llx\n", what, (unsigned long long)h);
}

static void read_back(const char *what, CUdeviceptr p, size_t n)
{
	static unsigned char bytes[4096];

	memset(bytes, 0, n);
	DO(cuMemcpyDtoH(bytes, p, n));
	saw(what, bytes, n);
}

static void run(CUfunction f, CUdeviceptr p, CUdeviceptr q, CUstream s)
{
	void *one[] = {&p, &n_words}, *two[] = {&p, &q, &n_words};

	DO(cuLaunchKernel(f, 1, 1, 1, N, 1, 1, 0, s, q ? two : one, NULL));
}

/* --- segments ----------------------------------------------------------------------------------- */

/* What a segment works with; parts of it may be something that the program failed to give back. */
struct segment {
	const char *name;
	void (*work)(const struct segment *s);
	CUdeviceptr y, state;
	unsigned bytes; /* of each */
	CUstream on;
	CUfunction addto, inc;
	CUgraphExec exec;
	CUarray array;
	char made[24];
};

static void launches(const struct segment *s)
{
	unsigned n = s->bytes / 4;
	CUdeviceptr y = s->y, state = s->state;
	void *add[] = {&y, &state, &n}, *step[] = {&state, &n};

	DO(cuMemsetD32Async(y, 5, n, s->on));
	DO(cuLaunchKernel(s->addto, 1, 1, 1, N, 1, 1, 0, s->on, add, NULL));
	DO(cuLaunchKernel(s->inc, 1, 1, 1, N, 1, 1, 0, s->on, step, NULL));
}

static void graph_launch(const struct segment *s)
{
	DO(cuGraphLaunch(s->exec, s->on));
}

static void array_copy(const struct segment *s)
{
	DO(cuMemcpyAtoD(s->y, s->array, 0, s->bytes));
}

/* Not the program's business: 1 and the bytes, or 0. */
static int look(CUdeviceptr p, unsigned bytes, uint64_t *ret)
{
	unsigned char at[BYTES];
	uint64_t h = 14695981039346656037ull;

	if (cuMemcpyDtoH(at, p, bytes) != CUDA_SUCCESS)
		return 0;
	for (unsigned i = 0; i < bytes; i++)
		h = (h ^ at[i]) * 1099511628211ull;
	*ret = h;
	return 1;
}

static void digest(char text[24], CUdeviceptr p, unsigned bytes)
{
	uint64_t h = 0;

	if (p && cuCtxSynchronize() == CUDA_SUCCESS && look(p, bytes, &h))
		snprintf(text, 24, "%016llx", (unsigned long long)h);
	else
		strcpy(text, "?");
}

/* Everything that is not said: the launches of the program's own module on its stream. */
static void forward(struct segment *s)
{
	s->work = s->work ? s->work : launches;
	s->bytes = s->bytes ? s->bytes : BYTES;
	s->on = s->on ? s->on : stream;
	s->addto = s->addto ? s->addto : addto;
	s->inc = s->inc ? s->inc : inc;
	if (!s->y)
		DO(cuMemAlloc(&s->y, BYTES));
	DO(cuStreamSynchronize(s->on));
	replayshim_forward_begin(s->name, 0);
	s->work(s);
	replayshim_forward_end();
	digest(s->made, s->y, s->bytes);
}

static void replay(const struct segment *s)
{
	char made[24], before[24], after[24];

	digest(before, s->state, s->bytes);
	replayshim_replay_begin(s->name, 0);
	s->work(s);
	replayshim_replay_end();
	DO(cuEventRecord(event, s->on));
	DO(cuEventQuery(event));
	DO(cuEventSynchronize(event));
	digest(made, s->y, s->bytes);
	digest(after, s->state, s->bytes);
	printf("segment %s %s %s %s %s\n", s->name, s->made, made, before, after);
}

static struct segment segments[2] = {{.name = "first"}, {.name = "second"}};

static void forwards(void)
{
	for (unsigned i = 0; i < 2; i++) {
		DO(cuMemAlloc(&segments[i].state, BYTES));
		DO(cuMemsetD32(segments[i].state, 7 + i, N));
		forward(&segments[i]);
	}
}

static void replays(void)
{
	for (unsigned i = 2; i-- > 0;) {
		if (two_streams) {
			DO(cuEventRecord(event, stream));
			DO(cuStreamWaitEvent(other, event, 0));
			segments[i].on = other;
		}
		replay(&segments[i]);
		DO(cuMemFree(segments[i].y));
		DO(cuMemFree(segments[i].state));
	}
}

/* --- memory ------------------------------------------------------------------------------------- */

/* Fill, read back, free; the memory of a free that failed is used and freed again. */
static void use(const char *what, CUdeviceptr p)
{
	if (!p)
		return;
	DO(cuMemsetD8(p, 0x5a, BYTES));
	run(inc, p, 0, stream);
	DO(cuStreamSynchronize(stream));
	read_back(what, p, BYTES);
}

static void device_memory(void)
{
	CUdeviceptr p = 0, pitched = 0, managed = 0, base = 0, ordered = 0, pooled = 0;
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
	struct segment freed = {.name = "freed"}, freed_later = {.name = "freed-later"};
	CUmemoryPool pool = NULL;
	size_t pitch = 0, size = 0;

	DO(cuMemAlloc(&p, BYTES));
	use("alloc", p);
	DO(cuMemGetAddressRange(&base, &size, p));
	printf("range %d %zu\n", base == p, size);
	freed.state = p;
	forward(&freed);
	if (DO(cuMemFree(p)) && p) {
		replay(&freed);
		use("not freed", p);
		DO(cuMemFree(p));
	}
	DO(cuMemFree(freed.y));
	DO(cuMemAllocPitch(&pitched, &pitch, 100, 4, 4));
	use("pitched", pitched);
	DO(cuMemFree(pitched));
	DO(cuMemAllocManaged(&managed, BYTES, CU_MEM_ATTACH_GLOBAL));
	use("managed", managed);
	DO(cuMemFree(managed));
	DO(cuMemAllocAsync(&ordered, BYTES, stream));
	use("ordered", ordered);
	freed_later.state = ordered;
	forward(&freed_later);
	if (DO(cuMemFreeAsync(ordered, stream)) && ordered) {
		replay(&freed_later);
		use("not freed", ordered);
		DO(cuMemFreeAsync(ordered, stream));
	}
	DO(cuMemFree(freed_later.y));
	DO(cuMemPoolCreate(&pool, &props));
	DO(cuMemAllocFromPoolAsync(&pooled, BYTES, pool, stream));
	use("pooled", pooled);
	DO(cuMemFreeAsync(pooled, stream));
	DO(cuStreamSynchronize(stream));
	if (DO(cuMemPoolDestroy(pool)) && pool)
		DO(cuMemPoolDestroy(pool));
}

static void host_memory(void)
{
	static unsigned char registered[8192] __attribute__((aligned(4096)));
	CUdeviceptr alias = 0;
	void *p = NULL, *q = NULL;
	unsigned flags = 0;

	DO(cuMemAllocHost(&p, BYTES));
	if (p) {
		memset(p, 1, BYTES);
		DO(cuMemcpyHtoDAsync(scratch, p, BYTES, stream));
		DO(cuStreamSynchronize(stream));
		read_back("from pinned", scratch, BYTES);
		DO(cuMemFreeHost(p));
	}
	DO(cuMemHostAlloc(&q, BYTES, CU_MEMHOSTALLOC_DEVICEMAP));
	if (q) {
		memset(q, 2, BYTES);
		DO(cuMemHostGetDevicePointer(&alias, q, 0));
		DO(cuMemHostGetFlags(&flags, q));
		run(inc, alias, 0, stream);
		DO(cuStreamSynchronize(stream));
		saw("mapped", q, BYTES);
		if (DO(cuMemFreeHost(q)))
			DO(cuMemFreeHost(q));
	}
	memset(registered, 3, sizeof(registered));
	DO(cuMemHostRegister(registered, sizeof(registered), CU_MEMHOSTREGISTER_DEVICEMAP));
	DO(cuMemcpyDtoHAsync(registered, scratch, BYTES, stream));
	DO(cuStreamSynchronize(stream));
	saw("registered", registered, sizeof(registered));
	if (DO(cuMemHostUnregister(registered)))
		DO(cuMemHostUnregister(registered));
}

static void copies(void)
{
	CUdeviceptr y = scratch, z = scratch + BYTES;
	static unsigned char from[BYTES], to[BYTES];
	CUDA_MEMCPY2D flat = {.srcMemoryType = CU_MEMORYTYPE_HOST,
			      .srcHost = from,
			      .srcPitch = 32,
			      .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			      .dstDevice = y,
			      .dstPitch = 64,
			      .WidthInBytes = 16,
			      .Height = 4};
	CUDA_MEMCPY3D deep = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			      .srcDevice = y,
			      .srcPitch = 32,
			      .srcHeight = 2,
			      .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
			      .dstDevice = z,
			      .dstPitch = 32,
			      .dstHeight = 2,
			      .WidthInBytes = 12,
			      .Height = 2,
			      .Depth = 2};
	int type = 0;

	for (unsigned i = 0; i < BYTES; i++)
		from[i] = (unsigned char)(i * 7 + 1);
	DO(cuMemcpyHtoD(y, from, BYTES));
	DO(cuMemcpyDtoD(z, y, BYTES));
	read_back("copied", z, BYTES);
	DO(cuMemcpy(z, (CUdeviceptr)(uintptr_t)to, BYTES));
	DO(cuMemcpyAsync(z, y + 16, BYTES - 16, stream));
	DO(cuMemcpyPeer(z, context, y, context, 32));
	DO(cuMemcpyPeerAsync(z + 32, context, y, context, 32, stream));
	DO(cuMemcpy2D(&flat));
	DO(cuMemcpy2DAsync(&flat, stream));
	DO(cuMemcpy2DUnaligned(&flat));
	DO(cuMemcpy3D(&deep));
	DO(cuMemcpy3DAsync(&deep, stream));
	DO(cuMemcpyDtoHAsync(to, z, BYTES, stream));
	DO(cuStreamSynchronize(stream));
	saw("to", to, BYTES);
	DO(cuMemsetD16(y, 3, 8));
	DO(cuMemsetD2D8(y + 16, 16, 9, 8, 4));
	DO(cuMemsetD2D16(y, 16, 4, 4, 2));
	DO(cuMemsetD2D32(y, 16, 8, 2, 2));
	DO(cuMemsetD8Async(y + 128, 1, 16, stream));
	DO(cuMemsetD16Async(y + 144, 2, 8, stream));
	DO(cuMemsetD2D32Async(y + 160, 16, 4, 2, 2, stream));
	DO(cuStreamWriteValue32(stream, y + 200, 77, 0));
	DO(cuStreamWaitValue32(stream, y + 200, 77, CU_STREAM_WAIT_VALUE_GEQ));
	DO(cuStreamSynchronize(stream));
	read_back("filled", y, BYTES);
	DO(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, y));
	printf("type %d\n", type);
}

/* --- virtual memory ----------------------------------------------------------------------------- */

static void mappings(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
	CUmemAccessDesc rw = {.location = prop.location,
			      .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle h = 0, again = 0;
	struct segment unmapped = {.name = "unmapped"};
	CUdeviceptr p = 0;
	size_t g = 0;

	DO(cuMemGetAllocationGranularity(&g, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	g = 2 * MB;
	DO(cuMemAddressReserve(&p, 2 * g, 0, 0, 0));
	DO(cuMemCreate(&h, g, &prop, 0));
	if (p && h) {
		DO(cuMemMap(p, g, 0, h, 0));
		DO(cuMemMap(p + g, g, 0, h, 0));
		DO(cuMemSetAccess(p, 2 * g, &rw, 1));
		DO(cuMemsetD32(p, 3, N));
		run(inc, p + g, 0, stream);
		DO(cuStreamSynchronize(stream));
		read_back("first mapping", p, BYTES);
		DO(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)p));
		printf("same %d\n", again == h);
		if (again)
			DO(cuMemRelease(again));
		unmapped.state = p;
		forward(&unmapped);
		if (DO(cuMemUnmap(p, g))) {
			replay(&unmapped);
			use("still mapped", p);
			DO(cuMemUnmap(p, g));
		}
		DO(cuMemFree(unmapped.y));
		read_back("second mapping", p + g, BYTES);
		DO(cuMemUnmap(p + g, g));
		if (DO(cuMemRelease(h)))
			DO(cuMemRelease(h));
	}
	if (p && DO(cuMemAddressFree(p, 2 * g)))
		DO(cuMemAddressFree(p, 2 * g));
}

/* --- modules ------------------------------------------------------------------------------------ */

static void modules(void)
{
	CUdeviceptr counter = 0, p = scratch;
	CUlaunchConfig config = {.gridDimX = 1,
				 .gridDimY = 1,
				 .gridDimZ = 1,
				 .blockDimX = N,
				 .blockDimY = 1,
				 .blockDimZ = 1,
				 .hStream = stream};
	unsigned one = 1, count = 0;
	void *params[] = {&p, &n_words, &one};
	CUmodule m = NULL, of = NULL;
	struct segment unloaded = {.name = "unloaded", .bytes = 64};
	struct segment closed = {.name = "closed", .bytes = 64};
	CUlibrary library = NULL;
	CUkernel kernel = NULL;
	CUfunction f = NULL, g = NULL;
	size_t size = 0, offset = 0;
	const char *name = "";
	int v = 0;

	DO(cuModuleLoadDataEx(&m, drv_ptx, 0, NULL, NULL));
	if (m) {
		DO(cuModuleGetFunctionCount(&count, m));
		DO(cuModuleGetFunction(&f, m, "store"));
		DO(cuModuleGetGlobal(&counter, &size, m, "counter"));
		if (counter)
			DO(cuMemsetD32(counter, 4, 16));
	}
	if (f) {
		DO(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
		DO(cuFuncGetParamInfo(f, 1, &offset, &size));
		DO(cuFuncGetModule(&of, f));
		DO(cuFuncGetName(&name, f));
		printf("%zu %zu %d %s\n", offset, size, of == m, name);
		DO(cuLaunchKernel(f, 1, 1, 1, N, 1, 1, 0, stream, params, NULL));
		DO(cuLaunchKernelEx(&config, f, params, NULL));
		DO(cuLaunchCooperativeKernel(f, 1, 1, 1, N, 1, 1, 0, stream, params));
		DO(cuStreamSynchronize(stream));
		read_back("stored", p, BYTES);
	}
	if (m && counter) {
		DO(cuModuleGetFunction(&unloaded.addto, m, "addto"));
		DO(cuModuleGetFunction(&unloaded.inc, m, "inc"));
		unloaded.state = counter;
		forward(&unloaded);
	}
	if (m && DO(cuModuleUnload(m))) {
		if (unloaded.y)
			replay(&unloaded);
		DO(cuModuleUnload(m));
	}
	DO(cuMemFree(unloaded.y));
	counter = 0;
	DO(cuLibraryLoadData(&library, drv_ptx, NULL, NULL, 0, NULL, NULL, 0));
	if (!library)
		return;
	DO(cuLibraryGetKernel(&kernel, library, "store"));
	if (kernel) {
		DO(cuKernelGetFunction(&g, kernel));
		DO(cuKernelGetName(&name, kernel));
		DO(cuKernelGetParamInfo(kernel, 2, &offset, &size));
		DO(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, N, 1, 1, 0, stream, params, NULL));
		DO(cuStreamSynchronize(stream));
	}
	DO(cuLibraryGetGlobal(&counter, &size, library, "counter"));
	DO(cuLibraryGetModule(&of, library));
	if (counter) {
		DO(cuLibraryGetKernel((CUkernel *)&closed.addto, library, "addto"));
		DO(cuLibraryGetKernel((CUkernel *)&closed.inc, library, "inc"));
		closed.state = counter;
		forward(&closed);
	}
	if (DO(cuLibraryUnload(library))) {
		if (closed.y)
			replay(&closed);
		DO(cuLibraryUnload(library));
	}
	DO(cuMemFree(closed.y));
}

/* --- streams, events, host functions ------------------------------------------------------------ */

static int called;

static void CUDA_CB host_function(void *arg)
{
	(void)arg;
	called++;
}

static void CUDA_CB callback(CUstream s, CUresult r, void *arg)
{
	(void)s;
	(void)arg;
	called += 10 + 100 * (int)r;
}

static void streams(void)
{
	struct segment destroyed = {.name = "destroyed"};
	CUstream s = NULL, low = NULL;
	CUevent a = NULL, b = NULL;
	CUcontext of = NULL;
	unsigned flags = 0;
	int priority = 0;
	float ms;

	DO(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	DO(cuStreamCreateWithPriority(&low, CU_STREAM_NON_BLOCKING, 0));
	DO(cuEventCreate(&a, 0));
	DO(cuEventCreate(&b, CU_EVENT_DISABLE_TIMING));
	if (!s || !a || !b)
		return;
	DO(cuEventQuery(a));
	DO(cuEventRecord(a, s));
	DO(cuMemsetD32Async(scratch, 9, N, s));
	DO(cuEventRecordWithFlags(b, s, 0));
	DO(cuStreamWaitEvent(stream, b, 0));
	run(inc, scratch, 0, stream);
	DO(cuLaunchHostFunc(stream, host_function, NULL));
	DO(cuStreamAddCallback(stream, callback, NULL, 0));
	DO(cuStreamQuery(s));
	DO(cuStreamGetCtx(s, &of));
	DO(cuStreamGetFlags(s, &flags));
	DO(cuStreamGetPriority(s, &priority));
	DO(cuStreamSynchronize(s));
	DO(cuStreamSynchronize(stream));
	printf("called %d context %d flags %u\n", called, of == context, flags);
	DO(cuEventQuery(b));
	DO(cuEventRecord(a, s));
	DO(cuEventSynchronize(a));
	DO(cuEventElapsedTime(&ms, a, a));
	DO(cuEventQuery(a));
	if (DO(cuEventDestroy(a))) {
		DO(cuEventRecord(a, s));
		DO(cuEventQuery(a));
		DO(cuEventDestroy(a));
	}
	DO(cuEventDestroy(b));
	destroyed.state = scratch + BYTES;
	destroyed.on = s;
	forward(&destroyed);
	if (DO(cuStreamDestroy(s))) {
		replay(&destroyed);
		DO(cuStreamSynchronize(s));
		DO(cuStreamDestroy(s));
	}
	DO(cuMemFree(destroyed.y));
	if (low)
		DO(cuStreamDestroy(low));
	read_back("on streams", scratch, BYTES);
}

/* --- graphs ------------------------------------------------------------------------------------- */

static void graphs(void)
{
	CUdeviceptr y = scratch;
	CUDA_MEMSET_NODE_PARAMS fill = {
		.dst = y, .value = 3, .elementSize = 4, .width = N, .height = 1};
	CUgraphNode node = NULL, next = NULL;
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	void *params[] = {&y, &n_words};
	CUDA_KERNEL_NODE_PARAMS k = {.func = inc,
				     .gridDimX = 1,
				     .gridDimY = 1,
				     .gridDimZ = 1,
				     .blockDimX = N,
				     .blockDimY = 1,
				     .blockDimZ = 1,
				     .kernelParams = params};
	struct segment executed = {.name = "executed", .work = graph_launch};
	CUgraph graph = NULL, built = NULL;
	CUgraphExec exec = NULL;
	size_t n = 0;

	if (!DO(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))) {
		DO(cuMemsetD32Async(y, 2, N, stream));
		run(inc, y, 0, stream);
		DO(cuStreamIsCapturing(stream, &status));
		if (DO(cuStreamEndCapture(stream, &graph))) {
			run(inc, y, 0, stream);
			DO(cuStreamEndCapture(stream, &graph));
		}
		printf("capturing %d\n", (int)status);
	}
	if (graph) {
		DO(cuGraphGetNodes(graph, NULL, &n));
		DO(cuGraphInstantiate(&exec, graph, 0));
		printf("nodes %zu\n", n);
		DO(cuGraphDestroy(graph));
	}
	if (exec) {
		DO(cuGraphLaunch(exec, stream));
		DO(cuStreamSynchronize(stream));
		read_back("captured", y, BYTES);
		executed.exec = exec;
		executed.state = y;
		executed.y = y;
		forward(&executed);
		if (DO(cuGraphExecDestroy(exec))) {
			replay(&executed);
			DO(cuGraphExecDestroy(exec));
		}
	}
	exec = NULL;
	DO(cuGraphCreate(&built, 0));
	if (!built)
		return;
	DO(cuGraphAddMemsetNode(&node, built, NULL, 0, &fill, context));
	DO(cuGraphAddKernelNode(&next, built, node ? &node : NULL, node != NULL, &k));
	DO(cuGraphInstantiate(&exec, built, 0));
	if (exec) {
		DO(cuGraphLaunch(exec, stream));
		fill.value = 6;
		DO(cuGraphExecMemsetNodeSetParams(exec, node, &fill, context));
		DO(cuGraphLaunch(exec, stream));
		DO(cuStreamSynchronize(stream));
		DO(cuGraphExecDestroy(exec));
	}
	DO(cuGraphDestroy(built));
	read_back("built", y, BYTES);
}

/* --- arrays ------------------------------------------------------------------------------------- */

static void arrays(void)
{
	CUDA_ARRAY_DESCRIPTOR d = {
		.Width = N, .Height = 0, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1};
	CUDA_RESOURCE_DESC over = {.resType = CU_RESOURCE_TYPE_ARRAY};
	CUDA_TEXTURE_DESC how = {.flags = CU_TRSF_READ_AS_INTEGER};
	static unsigned words[N];
	struct segment copied = {.name = "copied", .work = array_copy};
	CUtexObject texture = 0;
	CUarray array = NULL;

	for (unsigned i = 0; i < N; i++)
		words[i] = i;
	DO(cuArrayCreate(&array, &d));
	if (!array)
		return;
	DO(cuMemcpyHtoA(array, 0, words, BYTES));
	DO(cuMemcpyAtoD(scratch, array, 0, BYTES));
	read_back("array", scratch, BYTES);
	DO(cuMemcpyDtoA(array, 8, scratch, 16));
	DO(cuMemcpyAtoH(words, array, 0, BYTES));
	saw("array again", words, BYTES);
	over.res.array.hArray = array;
	DO(cuTexObjectCreate(&texture, &over, &how, NULL));
	if (texture)
		DO(cuTexObjectDestroy(texture));
	copied.array = array;
	forward(&copied);
	words[3] = 99;
	DO(cuMemcpyHtoA(array, 0, words, BYTES));
	if (DO(cuArrayDestroy(array))) {
		replay(&copied);
		DO(cuMemcpyAtoH(words, array, 0, BYTES));
		saw("array not destroyed", words, BYTES);
		DO(cuArrayDestroy(array));
	}
	DO(cuMemFree(copied.y));
}

/* --- contexts ----------------------------------------------------------------------------------- */

static void in_context(CUcontext second)
{
	struct segment left = {.name = "left"};
	CUmodule m = NULL;

	DO(cuMemAlloc(&left.state, BYTES));
	DO(cuModuleLoadData(&m, drv_ptx));
	DO(cuStreamCreate(&left.on, CU_STREAM_NON_BLOCKING));
	if (m) {
		DO(cuModuleGetFunction(&left.addto, m, "addto"));
		DO(cuModuleGetFunction(&left.inc, m, "inc"));
	}
	if (left.state && left.addto && left.inc && left.on) {
		DO(cuMemsetD32(left.state, 5, N));
		DO(cuCtxSynchronize());
		forward(&left);
		read_back("in the second context", left.y, BYTES);
	}
	if (!DO(cuCtxDestroy(second)))
		return;
	if (left.y) {
		replay(&left);
		DO(cuMemsetD32(left.y, 4, N));
		read_back("context not destroyed", left.y, BYTES);
	}
	DO(cuCtxDestroy(second));
}

static void contexts(void)
{
	CUcontext second = NULL, now = NULL, primary = NULL;
	CUdevice dev = 0;
	unsigned version = 0, flags = 0;
	int active = 0;

	DO(cuCtxCreate(&second, NULL, 0, 0));
	if (second) {
		DO(cuCtxGetApiVersion(second, &version));
		in_context(second);
	}
	DO(cuCtxGetCurrent(&now));
	DO(cuCtxSetCurrent(context));
	DO(cuCtxGetDevice(&dev));
	DO(cuDevicePrimaryCtxRetain(&primary, 0));
	if (primary) {
		DO(cuCtxPushCurrent(primary));
		DO(cuCtxGetCurrent(&now));
		printf("current %d\n", now == primary);
		DO(cuCtxPopCurrent(&now));
		if (DO(cuDevicePrimaryCtxRelease(0)))
			DO(cuDevicePrimaryCtxRelease(0));
	}
	DO(cuDevicePrimaryCtxGetState(0, &flags, &active));
	printf("active %d device %d\n", active, dev);
	DO(cuCtxSetCurrent(context));
}

/* --- main --------------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
	two_streams = argc > 1 && !strcmp(argv[1], "--streams");
	if (DO(cuInit(0)))
		DO(cuInit(0));
	if (DO(cuCtxCreate(&context, NULL, 0, 0)))
		DO(cuCtxCreate(&context, NULL, 0, 0));
	DO(cuModuleLoadData(&module, drv_ptx));
	DO(cuModuleGetFunction(&inc, module, "inc"));
	DO(cuModuleGetFunction(&addto, module, "addto"));
	DO(cuModuleGetFunction(&store, module, "store"));
	DO(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	DO(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	DO(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	DO(cuMemAlloc(&scratch, 2 * BYTES));
	DO(cuMemsetD32(scratch, 1, 2 * N));
	replayshim_step(1);
	forwards();
	device_memory();
	host_memory();
	copies();
	mappings();
	modules();
	streams();
	graphs();
	arrays();
	contexts();
	replays();
	DO(cuMemFree(scratch));
	DO(cuEventDestroy(event));
	DO(cuStreamDestroy(other));
	DO(cuStreamDestroy(stream));
	DO(cuModuleUnload(module));
	if (DO(cuCtxDestroy(context)))
		DO(cuCtxDestroy(context));
	return 0;
}
