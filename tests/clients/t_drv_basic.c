/* SPDX-License-Identifier: MIT */
/*
 * A plain Driver API program: device, context, memory, copies, module, launch in both argument forms.
 */
#include "tests/clients/drv.h"

#define N 1000u

static void device(void)
{
	int count = 0, version = 0, major = 0, minor = 0, warp = 0;
	char name[64] = "";
	size_t total = 0;
	CUdevice dev;
	CUuuid uuid;

	is_cu(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED, "nothing works before cuInit");
	is_cu(cuInit(1), CUDA_ERROR_INVALID_VALUE, "cuInit takes no flags");
	is_cu(cuInit(0), CUDA_SUCCESS, "cuInit");
	cuDriverGetVersion(&version);
	is_u64(version, 13000, "driver version");
	cuDeviceGetCount(&count);
	is_u64(count, 1, "one device by default");
	is_cu(cuDeviceGet(&dev, 0), CUDA_SUCCESS, "device 0");
	is_cu(cuDeviceGet(&dev, 1), CUDA_ERROR_INVALID_DEVICE, "no device 1");
	cuDeviceGetName(name, sizeof(name), 0);
	is_str(name, "Simulated device (H100 profile)", "the name says what it is");
	cuDeviceTotalMem(&total, 0);
	is_u64(total, 8ull << 30, "8 GiB by default");
	cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
	cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
	cuDeviceGetAttribute(&warp, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0);
	ok(major == 7 && minor == 5 && warp == 32, "compute capability 7.5, warps of 32");
	is_cu(cuDeviceGetAttribute(&warp, 9999, 0), CUDA_ERROR_INVALID_VALUE, "no such attribute");
	is_cu(cuDeviceGetUuid(&uuid, 0), CUDA_SUCCESS, "uuid");
}

static void launch(CUmodule mod)
{
	CUfunction inc = drv_function(mod, "inc"), none;
	unsigned host[N], back[N], n = N, bad = 0;
	struct {
		CUdeviceptr p;
		unsigned n;
	} packed;
	size_t size = 12; /* without the padding */
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE,
			 &size, CU_LAUNCH_PARAM_END};
	CUdeviceptr p;
	void *params[] = {&p, &n};

	is_cu(cuModuleGetFunction(&none, mod, "nothing"), CUDA_ERROR_NOT_FOUND, "no such kernel");
	for (unsigned i = 0; i < N; i++)
		host[i] = i * 3;
	must(cuMemAlloc(&p, sizeof(host)));
	ok(p % 256 == 0, "allocations are aligned to 256 bytes");
	is_cu(cuMemcpyHtoD(p, host, sizeof(host)), CUDA_SUCCESS, "copy up");
	is_cu(drv_launch(inc, n, NULL, params), CUDA_SUCCESS, "launch with kernelParams");
	packed.p = p;
	packed.n = N;
	is_cu(cuLaunchKernel(inc, 16, 1, 1, 64, 1, 1, 0, NULL, NULL, extra), CUDA_SUCCESS,
	      "launch with a packed buffer");
	packed.p = 0;
	n = 0; /* the launches have their own copies */
	is_cu(cuCtxSynchronize(), CUDA_SUCCESS, "synchronize");
	is_cu(cuMemcpyDtoH(back, p, sizeof(back)), CUDA_SUCCESS, "copy down");
	for (unsigned i = 0; i < N; i++)
		bad += back[i] != i * 3 + 2;
	is_u64(bad, 0, "every element was incremented twice");
	is_cu(cuMemFree(p), CUDA_SUCCESS, "free");
	is_cu(cuMemFree(p), CUDA_ERROR_INVALID_VALUE, "free again");
}

static void globals(CUmodule mod)
{
	char zero[64] = {0}, bytes[64];
	CUdeviceptr p = 0;
	size_t size = 0;

	is_cu(cuModuleGetGlobal(&p, &size, mod, "counter"), CUDA_SUCCESS, "module variable");
	is_u64(size, 64, "its size");
	must(cuMemcpyDtoH(bytes, p, 64));
	ok(!memcmp(bytes, zero, 64), "it starts as zeros");
	is_cu(cuModuleGetGlobal(&p, &size, mod, "none"), CUDA_ERROR_NOT_FOUND, "no such variable");
}

int main(void)
{
	CUcontext ctx, current = NULL;
	CUmodule mod;

	device();
	is_cu(cuModuleLoadData(&mod, drv_ptx), CUDA_ERROR_INVALID_CONTEXT, "no context yet");
	is_cu(cuCtxCreate(&ctx, NULL, 0, 0), CUDA_SUCCESS, "context");
	cuCtxGetCurrent(&current);
	ok(current == ctx, "a new context is current");
	is_cu(cuModuleLoadData(&mod, drv_ptx), CUDA_SUCCESS, "module from PTX text");
	launch(mod);
	globals(mod);
	is_cu(cuModuleUnload(mod), CUDA_SUCCESS, "unload");
	is_cu(cuModuleUnload(mod), CUDA_ERROR_INVALID_HANDLE, "unload again");
	is_cu(cuCtxDestroy(ctx), CUDA_SUCCESS, "destroy");
	is_u64(simcuda_live_bytes(0), 0, "nothing is left");
	return tap_done();
}
