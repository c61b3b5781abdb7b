/* SPDX-License-Identifier: MIT */
/*
 * Faults: injected ones, those of kernels (out of bounds, use after free, uninitialised), fork, bad arguments.
 *
 * Each part that breaks its driver runs in a child process; its stderr is read back.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/clients/drv.h"

static char child_log[8192];

/* Run fn in a child with var=value; its exit status, or -1. What it says goes to child_log. */
static int in_child(int (*fn)(void), const char *var, const char *value)
{
	int fd[2], status;
	size_t n = 0;
	ssize_t r;
	pid_t pid;

	fflush(stdout);
	if (pipe(fd) || (pid = fork()) < 0)
		return -1;
	if (!pid) {
		dup2(fd[1], 2);
		close(fd[0]);
		close(fd[1]);
		if (var)
			setenv(var, value, 1);
		_exit(fn());
	}
	close(fd[1]);
	while (n < sizeof(child_log) - 1 &&
	       (r = read(fd[0], child_log + n, sizeof(child_log) - 1 - n)) > 0)
		n += (size_t)r;
	child_log[n] = 0;
	close(fd[0]);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static unsigned count(const char *needle)
{
	unsigned n = 0;

	for (const char *p = child_log; (p = strstr(p, needle)); p++)
		n++;
	return n;
}

/* ---- injection ---- */

static int third_alloc_fails(void)
{
	CUdeviceptr p[4];
	CUresult r[4];

	drv_context();
	for (int i = 0; i < 4; i++)
		r[i] = cuMemAlloc(&p[i], 1024);
	return !r[0] && !r[1] && r[2] == CUDA_ERROR_OUT_OF_MEMORY && !r[3] &&
			       simcuda_live_bytes(0) == 3 * 1024
		       ? 0
		       : 1;
}

static void injected(void)
{
	is_u64(in_child(third_alloc_fails, "SIMCUDA_FAIL", "cuMemAlloc_v2:3=2"), 0,
	       "the third allocation fails, without effect");
	is_str(child_log, "", "and nothing is said");
	is_u64(in_child(third_alloc_fails, "SIMCUDA_FAIL", "cuNothing:1=2,cuMemAlloc_v2:3=2"), 0,
	       "a bad item does not harm the others");
	is_u64(count("cuNothing:1=2"), 1, "but it is named");
	is_u64(in_child(third_alloc_fails, "SIMCUDA_SCHED", "later"), 1, "no injection, no fault");
	is_u64(count("SIMCUDA_SCHED=later"), 1, "a bad schedule is named");
}

/* ---- kernels ---- */

static CUdeviceptr p;

static CUresult run(const char *name, unsigned n, CUdeviceptr at)
{
	void *inc[] = {&at, &n};
	CUmodule mod;
	CUresult r;

	must(cuModuleLoadData(&mod, drv_ptx));
	r = drv_launch(drv_function(mod, name), n, NULL, inc);
	return r ? r : cuCtxSynchronize();
}

static int out_of_bounds(void)
{
	CUdeviceptr other;
	CUcontext ctx = drv_context();
	CUresult r, again;

	must(cuMemAlloc(&p, 100 * 4));
	must(cuMemAlloc(&other, 1024)); /* the neighbour is not what is hit */
	must(cuMemsetD32(p, 0, 100));
	r = run("inc", 101, p);
	again = cuMemAlloc(&other, 16);
	if (r != CUDA_ERROR_ILLEGAL_ADDRESS || again != r || cuCtxSynchronize() != r)
		return 1;
	must(cuCtxDestroy(ctx));
	must(cuCtxCreate(&ctx, NULL, 0, 0));
	return cuMemAlloc(&other, 16) ? 2 : 0;
}

static int after_free(void)
{
	drv_context();
	must(cuMemAlloc(&p, 400));
	must(cuMemFree(p));
	return run("inc", 100, p) == CUDA_ERROR_ILLEGAL_ADDRESS ? 0 : 1;
}

static int misaligned(void)
{
	drv_context();
	must(cuMemAlloc(&p, 800));
	must(cuMemsetD32(p, 0, 200));
	return run("inc", 100, p + 2) == CUDA_ERROR_MISALIGNED_ADDRESS ? 0 : 1;
}

static int uninitialised(void)
{
	drv_context();
	must(cuMemAlloc(&p, 400));
	must(cuMemsetD32(p, 0, 50));
	if (run("inc", 50, p))
		return 1;
	return run("inc", 100, p) == CUDA_ERROR_LAUNCH_FAILED ? 0 : 2;
}

static int copied_initialised(void)
{
	CUdeviceptr q;

	drv_context();
	must(cuMemAlloc(&p, 400));
	must(cuMemAlloc(&q, 400));
	must(cuMemcpyDtoD(q, p, 400)); /* copying is no use of the bytes, and carries their state */
	must(cuMemsetD32(p, 1, 100));
	if (run("inc", 100, p))
		return 1;
	return run("inc", 100, q) == CUDA_ERROR_LAUNCH_FAILED ? 0 : 2;
}

static int freed_in_flight(void)
{
	CUresult r;

	drv_context();
	simcuda_set_schedule("lazy");
	must(cuMemAllocAsync(&p, 400, NULL));
	must(cuMemFreeAsync(p, NULL));
	r = cuMemsetD32Async(p, 1, 100, NULL);
	return r == CUDA_ERROR_INVALID_VALUE ? 0 : 1;
}

static void kernels(void)
{
	is_u64(in_child(out_of_bounds, NULL, NULL), 0,
	       "out of bounds: sticky until the context is gone");
	is_u64(count("simcuda: fault: "), 2, "told once, in two lines");
	ok(count("inc") && count("line ") && count("past the end of allocation"),
	   "with kernel, line and allocation");
	tap_diag("%s", child_log);
	is_u64(in_child(after_free, NULL, NULL), 0, "use after free");
	ok(count("use after free"), "is called that");
	is_u64(in_child(misaligned, NULL, NULL), 0, "misaligned");
	is_u64(in_child(uninitialised, "SIMCUDA_CHECK", "uninit"), 0, "uninitialised read");
	ok(count("inc") && count("line "), "with kernel and line");
	is_u64(in_child(copied_initialised, "SIMCUDA_CHECK", "uninit"), 0,
	       "a copy carries what is initialised");
	is_u64(in_child(freed_in_flight, NULL, NULL), 0, "a pointer is dead after cuMemFreeAsync");
}

/* ---- fork ---- */

static int inherits(void)
{
	CUdevice dev;
	int version = 0;

	return cuDeviceGet(&dev, 0) == CUDA_ERROR_NOT_INITIALIZED &&
			       cuInit(0) == CUDA_ERROR_NOT_INITIALIZED &&
			       cuDriverGetVersion(&version) == CUDA_SUCCESS
		       ? 0
		       : 1;
}

/* ---- arguments ---- */

static void arguments(void)
{
	CUcontext ctx = drv_context();
	unsigned n = 4;
	CUdeviceptr d;
	void *params[] = {&d, &n}, *half[] = {&d, NULL};
	size_t size = 4;
	void *small[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &d, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			 CU_LAUNCH_PARAM_END};
	CUfunction f;
	CUmodule mod;
	CUstream s;
	int v;

	must(cuMemAlloc(&d, 64));
	must(cuMemsetD32(d, 0, 16));
	must(cuModuleLoadData(&mod, drv_ptx));
	f = drv_function(mod, "inc");
	is_cu(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
	      CUDA_ERROR_INVALID_HANDLE, "launch: no function");
	is_cu(cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE,
	      "launch: empty grid");
	is_cu(cuLaunchKernel(f, 1, 65536, 1, 1, 1, 1, 0, NULL, params, NULL),
	      CUDA_ERROR_INVALID_VALUE, "launch: grid too high");
	is_cu(cuLaunchKernel(f, 1, 1, 1, 1024, 2, 1, 0, NULL, params, NULL),
	      CUDA_ERROR_INVALID_VALUE, "launch: block too large");
	is_cu(cuLaunchKernel(f, 1, 1, 1, 1, 1, 65, 0, NULL, params, NULL), CUDA_ERROR_INVALID_VALUE,
	      "launch: block too deep");
	is_cu(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 50000, NULL, params, NULL),
	      CUDA_ERROR_INVALID_VALUE, "launch: too much shared memory");
	is_cu(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000),
	      CUDA_SUCCESS, "ask for more");
	is_cu(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 50000, NULL, params, NULL), CUDA_SUCCESS,
	      "now it fits");
	is_cu(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE,
	      "launch: no arguments");
	is_cu(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, half, NULL), CUDA_ERROR_INVALID_VALUE,
	      "launch: half of the arguments");
	is_cu(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, small), CUDA_ERROR_INVALID_VALUE,
	      "launch: packed arguments too short");
	is_cu(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, (CUstream)&n, params, NULL),
	      CUDA_ERROR_INVALID_HANDLE, "launch: no such stream");
	is_cu(cuFuncGetAttribute(&v, 99, f), CUDA_ERROR_INVALID_VALUE, "no such attribute");
	is_cu(cuStreamCreate(&s, 2), CUDA_ERROR_INVALID_VALUE, "unknown stream flags");
	is_cu(cuCtxPushCurrent((CUcontext)&n), CUDA_ERROR_INVALID_CONTEXT, "no such context");
	is_cu(cuCtxSetLimit(99, 1), CUDA_ERROR_UNSUPPORTED_LIMIT, "no such limit");
	is_u64(in_child(inherits, NULL, NULL), 0, "a forked child has no driver");
	must(cuCtxDestroy(ctx));
	is_cu(cuMemAlloc(&d, 64), CUDA_ERROR_INVALID_CONTEXT, "no context is left");
}

static void contexts(void)
{
	CUcontext a, b, c, now;
	unsigned flags;
	int active;

	must(cuDevicePrimaryCtxGetState(0, &flags, &active));
	ok(!active, "the primary context is not active");
	must(cuDevicePrimaryCtxRetain(&a, 0));
	must(cuDevicePrimaryCtxRetain(&b, 0));
	must(cuDevicePrimaryCtxGetState(0, &flags, &active));
	ok(a == b && active, "there is one of it");
	must(cuCtxCreate(&c, NULL, 0, 0));
	must(cuCtxPushCurrent(a));
	must(cuCtxPopCurrent(&now));
	ok(now == a, "popped what was pushed");
	must(cuCtxGetCurrent(&now));
	ok(now == c, "and what was below is current");
	is_cu(cuCtxDestroy(a), CUDA_ERROR_INVALID_CONTEXT, "a primary context is not destroyed");
	must(cuDevicePrimaryCtxRelease(0));
	must(cuDevicePrimaryCtxRelease(0));
	is_cu(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT, "released once too often");
	is_cu(cuCtxSetCurrent(a), CUDA_ERROR_INVALID_CONTEXT, "and is gone");
	must(cuCtxDestroy(c));
}

int main(void)
{
	injected();
	kernels();
	arguments();
	contexts();
	return tap_done();
}
