/* SPDX-License-Identifier: MIT */
/*
 * Streams, events, default streams, host functions, stream memory operations.
 */
#include <pthread.h>
#include <unistd.h>

#include "tests/clients/drv.h"

#define WORDS 1024u

static CUcontext ctx;
static CUdeviceptr d;
static unsigned *pinned;

static void events(void)
{
	CUevent a, b, untimed;
	CUstream s;
	float ms = -1;

	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuEventCreate(&a, 0));
	must(cuEventCreate(&b, CU_EVENT_BLOCKING_SYNC));
	must(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
	is_cu(cuEventQuery(a), CUDA_SUCCESS, "an event that was never recorded is complete");
	is_cu(cuEventElapsedTime(&ms, a, b), CUDA_ERROR_INVALID_HANDLE, "but has no time");
	simcuda_set_schedule("lazy");
	must(cuEventRecord(a, s));
	must(cuMemsetD32Async(d, 1, WORDS, s));
	must(cuEventRecord(b, s));
	is_cu(cuEventElapsedTime(&ms, a, b), CUDA_ERROR_NOT_READY, "not complete yet");
	is_cu(cuEventSynchronize(b), CUDA_SUCCESS, "wait");
	is_cu(cuEventElapsedTime(&ms, a, b), CUDA_SUCCESS, "elapsed");
	ok(ms > 0.0024f && ms < 0.0027f, "one fill: launch latency and 4 KiB (%g ms)", ms);
	must(cuEventRecord(untimed, s));
	must(cuEventSynchronize(untimed));
	is_cu(cuEventElapsedTime(&ms, a, untimed), CUDA_ERROR_INVALID_HANDLE, "timing is disabled");
	is_cu(cuEventDestroy(a), CUDA_SUCCESS, "destroy");
	is_cu(cuEventDestroy(a), CUDA_ERROR_INVALID_HANDLE, "but once");
	is_cu(cuEventRecord(a, s), CUDA_ERROR_INVALID_HANDLE, "a dead event");
	must(cuEventDestroy(b));
	must(cuEventDestroy(untimed));
	simcuda_set_schedule("eager");
	is_cu(cuStreamDestroy(s), CUDA_SUCCESS, "destroy the stream");
	is_cu(cuStreamSynchronize(s), CUDA_ERROR_INVALID_HANDLE, "a dead stream");
}

static void overlap(void)
{
	uint64_t t0, apart, together;
	CUstream s, t;

	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	t0 = simcuda_virtual_ns();
	must(cuMemcpyHtoDAsync(d, pinned, WORDS * 4, s));
	must(cuStreamSynchronize(s));
	must(cuMemcpyDtoHAsync(pinned + WORDS, d + WORDS * 4, WORDS * 4, t));
	must(cuStreamSynchronize(t));
	apart = simcuda_virtual_ns() - t0;
	t0 = simcuda_virtual_ns();
	must(cuMemcpyHtoDAsync(d, pinned, WORDS * 4, s));
	must(cuMemcpyDtoHAsync(pinned + WORDS, d + WORDS * 4, WORDS * 4, t));
	must(cuCtxSynchronize());
	together = simcuda_virtual_ns() - t0;
	is_u64(apart, 2 * together, "copies up and down overlap unless the host waits between");
	must(cuStreamDestroy(s));
	must(cuStreamDestroy(t));
}

static void destroyed_with_work(void)
{
	CUstream s;

	simcuda_set_schedule("lazy");
	memset(pinned, 0, 4);
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuMemsetD32Async(d, 42, 1, s));
	must(cuMemcpyDtoHAsync(pinned, d, 4, s));
	must(cuStreamDestroy(s));
	must(cuCtxSynchronize());
	is_u64(pinned[0], 42, "the work of a destroyed stream is done all the same");
	simcuda_set_schedule("eager");
}

/* ---- the per-thread default stream ---- */

extern CUresult cuMemsetD32Async_ptsz(CUdeviceptr, unsigned, size_t, CUstream);
extern CUresult cuMemcpyDtoHAsync_v2_ptsz(void *, CUdeviceptr, size_t, CUstream);
extern CUresult cuStreamGetId_ptsz(CUstream, unsigned long long *);
extern CUresult cuStreamSynchronize_ptsz(CUstream);

static void *other_thread(void *arg)
{
	unsigned long long *id = arg;

	must(cuCtxSetCurrent(ctx));
	must(cuStreamGetId_ptsz(NULL, id));
	must(cuMemsetD32Async_ptsz(d + 4096, 8, 1, NULL));
	return NULL;
}

static void per_thread(void)
{
	unsigned long long legacy, mine, explicit_id, theirs = 0;
	pthread_t t;

	must(cuStreamGetId(NULL, &legacy));
	must(cuStreamGetId_ptsz(NULL, &mine));
	must(cuStreamGetId(CU_STREAM_PER_THREAD, &explicit_id));
	pthread_create(&t, NULL, other_thread, &theirs);
	pthread_join(t, NULL);
	ok(legacy != mine && mine == explicit_id, "handle 0 of a twin is the per-thread stream");
	ok(theirs != mine && theirs != legacy, "another thread has another one");
	must(cuStreamGetId_ptsz(CU_STREAM_LEGACY, &explicit_id));
	is_u64(explicit_id, legacy, "CU_STREAM_LEGACY is the legacy stream in both");

	must(cuCtxSynchronize());
	simcuda_set_schedule("lazy");
	pinned[0] = pinned[1] = 0;
	must(cuMemsetD32Async_ptsz(d, 3, 1, NULL));
	must(cuMemcpyDtoHAsync(pinned, d, 4, NULL)); /* legacy: after the blocking streams */
	must(cuMemsetD32Async_ptsz(d, 4, 1, NULL));  /* and before what follows */
	must(cuMemcpyDtoHAsync_v2_ptsz(pinned + 1, d, 4, NULL));
	must(cuStreamSynchronize_ptsz(NULL));
	ok(pinned[0] == 3 && pinned[1] == 4, "legacy and per-thread streams wait for each other");
	simcuda_set_schedule("eager");
}

/* ---- host functions ---- */

static struct {
	unsigned seen, calls;
	CUresult inner, status;
} host;

static void host_fn(void *arg)
{
	size_t free_bytes, total;

	host.seen = *(unsigned *)arg;
	host.calls++;
	host.inner = cuMemGetInfo(&free_bytes, &total);
}

static void callback(CUstream s, CUresult status, void *arg)
{
	(void)s;
	host.status = status;
	host_fn(arg);
}

static void host_functions(void)
{
	CUstream s;

	simcuda_set_schedule("lazy");
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuMemsetD32Async(d, 5, 1, s));
	must(cuMemcpyDtoHAsync(pinned, d, 4, s));
	must(cuLaunchHostFunc(s, host_fn, pinned));
	must(cuMemsetD32Async(d, 6, 1, s));
	must(cuMemcpyDtoHAsync(pinned, d, 4, s));
	is_u64(host.calls, 0, "a host function waits for its turn");
	must(cuStreamSynchronize(s));
	ok(host.calls == 1 && host.seen == 5 && pinned[0] == 6, "and runs between its neighbours");
	is_cu(host.inner, CUDA_ERROR_NOT_PERMITTED, "it may not call CUDA");
	host.status = CUDA_ERROR_UNKNOWN;
	must(cuStreamAddCallback(s, callback, pinned, 0));
	must(cuStreamSynchronize(s));
	ok(host.calls == 2 && host.status == CUDA_SUCCESS, "a callback is told that all is well");
	is_cu(cuLaunchHostFunc(s, NULL, NULL), CUDA_ERROR_INVALID_VALUE, "no function");
	must(cuStreamDestroy(s));
	simcuda_set_schedule("eager");
}

/* ---- stream memory operations ---- */

static void *write_later(void *arg)
{
	usleep(30000);
	__atomic_store_n((unsigned *)arg, 9, __ATOMIC_RELEASE);
	return NULL;
}

static void memory_operations(void)
{
	CUstreamBatchMemOpParams ops[2];
	CUstream s, t;
	pthread_t thread;

	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	must(cuMemsetD32(d, 0, 16));
	must(cuCtxSynchronize());
	pinned[0] = 0;
	must(cuStreamWaitValue32(s, d, 7, CU_STREAM_WAIT_VALUE_EQ));
	must(cuMemcpyDtoHAsync(pinned, d + 8, 4, s));
	is_cu(cuStreamQuery(s), CUDA_ERROR_NOT_READY, "the stream waits for a value");
	must(cuMemsetD32Async(d + 8, 77, 1, t));
	must(cuStreamWriteValue32(t, d, 7, 0));
	is_cu(cuStreamSynchronize(s), CUDA_SUCCESS, "which another stream writes");
	is_u64(pinned[0], 77, "everything before the write is seen");

	memset(ops, 0, sizeof(ops));
	ops[0].operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
	ops[0].writeValue.address = d;
	ops[0].writeValue.value64 = 1ull << 40;
	ops[1].operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
	ops[1].waitValue.address = d;
	ops[1].waitValue.value64 = 1ull << 40;
	ops[1].waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
	is_cu(cuStreamBatchMemOp(s, 2, ops, 0), CUDA_SUCCESS, "a batch of them");
	is_cu(cuStreamSynchronize(s), CUDA_SUCCESS, "done");
	is_cu(cuStreamWriteValue32(s, d + 2, 7, 0), CUDA_ERROR_INVALID_VALUE, "misaligned");

	pinned[2] = 0;
	must(cuStreamWaitValue32(s, (CUdeviceptr)&pinned[2], 9, CU_STREAM_WAIT_VALUE_EQ));
	pthread_create(&thread, NULL, write_later, &pinned[2]);
	is_cu(cuStreamSynchronize(s), CUDA_SUCCESS, "a value that the host writes meanwhile");
	pthread_join(thread, NULL);

	must(cuStreamWaitValue32(s, d, 12345, CU_STREAM_WAIT_VALUE_EQ));
	is_cu(cuStreamSynchronize(s), CUDA_ERROR_LAUNCH_TIMEOUT, "a value that nobody writes");
	is_cu(cuMemsetD32(d, 0, 1), CUDA_ERROR_LAUNCH_TIMEOUT, "breaks the context");
}

int main(void)
{
	ctx = drv_context();
	must(cuMemAlloc(&d, WORDS * 8));
	must(cuMemHostAlloc((void **)&pinned, WORDS * 8, 0));
	events();
	overlap();
	destroyed_with_work();
	per_thread();
	host_functions();
	memory_operations();
	is_cu(cuCtxDestroy(ctx), CUDA_SUCCESS, "a broken context can be destroyed");
	return tap_done();
}
