/* SPDX-License-Identifier: MIT */
/*
 * SIMCUDA_* settings: several devices and their peers, capability, profile, trace. Each runs in a child process.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/clients/drv.h"

static char child_log[16384];

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

static int two_devices(void)
{
	unsigned n = 16, v = 0;
	CUdeviceptr d0, d1;
	void *params[] = {&d1, &n};
	CUcontext c0, c1;
	int count = 0;
	CUmodule mod;
	CUdevice dev;

	must(cuInit(0));
	must(cuDeviceGetCount(&count));
	must(cuCtxCreate(&c1, NULL, 0, 1));
	must(cuMemAlloc(&d1, 64));
	must(cuMemsetD32(d1, 7, 16));
	must(cuCtxGetDevice(&dev));
	if (count != 2 || dev != 1 || simcuda_live_bytes(0) || !simcuda_live_bytes(1))
		return 1;
	must(cuCtxCreate(&c0, NULL, 0, 0));
	must(cuMemAlloc(&d0, 64));
	must(cuMemcpyPeer(d0, c0, d1, c1, 64));
	must(cuMemcpyDtoH(&v, d0, 4));
	if (v != 7)
		return 2;
	must(cuModuleLoadData(&mod, drv_ptx));
	must(cuCtxEnablePeerAccess(c1, 0));
	if (cuCtxEnablePeerAccess(c1, 0) != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
		return 3;
	must(drv_launch(drv_function(mod, "inc"), n, NULL, params));
	must(cuCtxSynchronize());
	must(cuCtxDisablePeerAccess(c1));
	drv_launch(drv_function(mod, "inc"), n, NULL, params);
	if (cuCtxSynchronize() != CUDA_ERROR_ILLEGAL_ADDRESS)
		return 4;
	must(cuCtxSetCurrent(c1)); /* the other context is not broken */
	must(cuMemcpyDtoH(&v, d1, 4));
	return v == 8 ? 0 : 5;
}

static int no_device(void)
{
	return cuInit(0) == CUDA_ERROR_NO_DEVICE ? 0 : 1;
}

static int capability(void)
{
	int major = 0, minor = 0;

	must(cuInit(0));
	must(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
	must(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0));
	return major * 10 + minor;
}

static int profile(void)
{
	char name[64] = "";

	must(cuInit(0));
	must(cuDeviceGetName(name, sizeof(name), 0));
	return strcmp(name, "Simulated device (H200 profile)") != 0;
}

static int some_work(void)
{
	unsigned n = 4;
	CUdeviceptr p;
	void *params[] = {&p, &n};
	CUmodule mod;

	drv_context();
	must(cuModuleLoadData(&mod, drv_ptx));
	must(cuMemAlloc(&p, 16));
	must(cuMemsetD32(p, 0, 4));
	must(drv_launch(drv_function(mod, "inc"), 4, NULL, params));
	must(cuCtxSynchronize());
	return 0;
}

static const char sleep_ptx[] = ".version 7.5\n.target sm_75\n.address_size 64\n"
				".visible .entry doze(.param .u32 doze_0)\n"
				"{\n"
				"\t.reg .pred %p<2>;\n"
				"\t.reg .b32 %r<4>;\n"
				"\tld.param.u32 %r1, [doze_0];\n"
				"\tmov.u32 %r2, %tid.x;\n"
				"\tsetp.ne.u32 %p1, %r2, 3;\n"
				"\t@%p1 bra DONE;\n"
				"\tnanosleep.u32 %r1;\n"
				"\tnanosleep.u32 1000;\n"
				"DONE:\n"
				"\tret;\n"
				"}\n";

/* Virtual ns that `threads` threads take, of which the fourth, if there is one, sleeps. */
static uint64_t doze(unsigned threads, unsigned ns)
{
	uint64_t before = simcuda_virtual_ns();
	void *params[] = {&ns};
	CUmodule mod;

	must(cuModuleLoadData(&mod, sleep_ptx));
	must(cuLaunchKernel(drv_function(mod, "doze"), 1, 1, 1, threads, 1, 1, 0, NULL, params,
			    NULL));
	must(cuCtxSynchronize());
	return simcuda_virtual_ns() - before;
}

static int sleeping(void)
{
	uint64_t awake;

	drv_context();
	awake = doze(3, 5000);
	if (awake < 39 || awake > 45)
		return 1; /* 2500 ns over 64, and some instructions */
	if (doze(64, 5000) != 39 + 6000)
		return 2;
	return doze(4, 2000000) == 39 + 1001000 ? 0 : 3;
}

int main(void)
{
	is_u64(in_child(two_devices, "SIMCUDA_DEVICES", "2"), 0,
	       "two devices: contexts, memory, peer copies, peer access");
	is_u64(in_child(no_device, "SIMCUDA_DEVICES", "0"), 0, "no device at all");
	is_u64(in_child(capability, "SIMCUDA_CC", "9.0"), 90, "compute capability 9.0");
	is_u64(in_child(capability, "SIMCUDA_CC", "x"), 75, "a bad one is not taken");
	ok(strstr(child_log, "SIMCUDA_CC=x"), "and is named");
	is_u64(in_child(profile, "SIMCUDA_PROFILE", "h200"), 0, "another profile");
	is_u64(in_child(sleeping, "SIMCUDA_SCALE", "64"), 0,
	       "nanosleep takes virtual time, at most 1 ms each; latencies are divided");
	is_u64(in_child(some_work, "SIMCUDA_TRACE", "1"), 0, "trace");
	ok(strstr(child_log, "fill") && strstr(child_log, "inc") &&
		   strstr(child_log, "fill") < strstr(child_log, "inc"),
	   "a line for each operation, in the order of execution");
	return tap_done();
}
