/* SPDX-License-Identifier: MIT */
/*
 * Code loading: PTX text, fat binaries raw, LZ4 and zstd, libraries and kernels, errors and their logs.
 *
 * The fat binaries are made here, with the compressors that the simulated driver has loaded.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include "tests/clients/drv.h"

typedef int (*lz4_fn)(const char *, char *, int, int);
typedef size_t (*zstd_fn)(void *, size_t, const void *, size_t, int);

enum codec { RAW, LZ4, ZSTD };

/* One entry: header of 64 bytes, then the data, padded to 8. */
static size_t add_entry(unsigned char *at, uint16_t kind, uint32_t sm, enum codec codec,
			const char *text)
{
	static const uint64_t flag[] = {0, 0x2000, 0x8000};
	size_t n = strlen(text) + 1, padded;
	uint64_t flags = 0x11 | flag[codec], raw = codec == RAW ? 0 : n;
	uint32_t header = 64, stored = 0;

	memset(at, 0, header);
	if (codec == RAW) {
		memcpy(at + header, text, n);
	} else if (codec == LZ4) {
		lz4_fn fn = (lz4_fn)dlsym(dlopen("liblz4.so.1", RTLD_NOW), "LZ4_compress_default");

		n = stored = (uint32_t)fn(text, (char *)at + header, (int)n, 65536);
	} else {
		zstd_fn fn = (zstd_fn)dlsym(dlopen("libzstd.so.1", RTLD_NOW), "ZSTD_compress");

		n = stored = (uint32_t)fn(at + header, 65536, text, n, 3);
	}
	padded = (n + 7) & ~(size_t)7;
	memset(at + header + n, 0, padded - n);
	memcpy(at, &kind, 2);
	memcpy(at + 2, &(uint16_t){0x0101}, 2);
	memcpy(at + 4, &header, 4);
	memcpy(at + 8, &(uint64_t){padded}, 8);
	memcpy(at + 16, &stored, 4);
	memcpy(at + 28, &sm, 4);
	memcpy(at + 40, &flags, 8);
	memcpy(at + 56, &raw, 8);
	return header + padded;
}

static void set_header(unsigned char *fatbin, size_t body)
{
	memcpy(fatbin, &(uint32_t){0xBA55ED50}, 4);
	memcpy(fatbin + 4, &(uint16_t){1}, 2);
	memcpy(fatbin + 6, &(uint16_t){16}, 2);
	memcpy(fatbin + 8, &(uint64_t){body}, 8);
}

static unsigned run(CUfunction f)
{
	unsigned n = 4, v = 0;
	CUdeviceptr p;
	void *params[] = {&p, &n};

	must(cuMemAlloc(&p, 16));
	must(cuMemsetD32(p, 41, 4));
	must(drv_launch(f, n, NULL, params));
	must(cuMemcpyDtoH(&v, p, 4));
	must(cuMemFree(p));
	return v;
}

static _Alignas(8) unsigned char fatbin[262144];

static void fatbins(void)
{
	static const char *const names[] = {"raw", "LZ4", "zstd"};
	struct {
		uint32_t magic, version;
		const void *data, *files;
	} wrapper = {0x466243B1, 1, fatbin, NULL};
	CUmodule mod;
	size_t n;

	for (enum codec c = RAW; c <= ZSTD; c++) {
		n = add_entry(fatbin + 16, 2, 75, RAW, "machine code");
		n += add_entry(fatbin + 16 + n, 1, 70, RAW, "not PTX at all");
		n += add_entry(fatbin + 16 + n, 1, 75, c, drv_ptx);
		n += add_entry(fatbin + 16 + n, 1, 90, RAW, "for a newer device");
		set_header(fatbin, n);
		ok(!cuModuleLoadData(&mod, fatbin), "fat binary, %s", names[c]);
		is_u64(run(drv_function(mod, "inc")), 42, "its kernel runs");
		must(cuModuleUnload(mod));
		is_cu(cuModuleLoadFatBinary(&mod, &wrapper), CUDA_SUCCESS, "and through a wrapper");
		must(cuModuleUnload(mod));
	}
	n = add_entry(fatbin + 16, 1, 75, ZSTD, drv_ptx);
	set_header(fatbin, n);
	fatbin[16 + 64] ^= 0xff;
	is_cu(cuModuleLoadData(&mod, fatbin), CUDA_ERROR_INVALID_IMAGE, "broken zstd data");
	n = add_entry(fatbin + 16, 2, 75, RAW, "machine code");
	n += add_entry(fatbin + 16 + n, 1, 90, RAW, drv_ptx);
	set_header(fatbin, n);
	is_cu(cuModuleLoadData(&mod, fatbin), CUDA_ERROR_NO_BINARY_FOR_GPU,
	      "no PTX for this device");
	is_cu(cuModuleLoadData(&mod, "\x7f"
				     "ELF machine code"),
	      CUDA_ERROR_NO_BINARY_FOR_GPU, "machine code");
	is_cu(cuModuleLoadData(&mod, "\x01\x02\x03 nothing"), CUDA_ERROR_INVALID_IMAGE, "neither");
}

static void bad_ptx(void)
{
	static const char bad[] = ".version 7.5\n.target sm_75\n.address_size 64\n"
				  ".visible .entry k()\n{\n\t.reg .b32 %r<3>;\n"
				  "\tlop9.b32 %r1, %r1, %r2;\n\tret;\n}\n";
	char log[256] = "unchanged", info[16] = "unchanged";
	CUjit_option opts[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
			       CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)sizeof(log), info, (void *)sizeof(info)};
	CUmodule mod;

	is_cu(cuModuleLoadDataEx(&mod, bad, 4, opts, values), CUDA_ERROR_INVALID_PTX, "bad PTX");
	ok(strstr(log, "line 7") && strstr(log, "lop9"), "the log names line and instruction: %s",
	   log);
	ok((size_t)values[1] == strlen(log) && !info[0], "and says how much it filled");
	is_u64(simcuda_live_bytes(0), 0, "nothing is left of it");
}

static void files(void)
{
	char name[] = "/tmp/t_drv_module.XXXXXX";
	CUlibrary lib;
	CUmodule mod;
	int fd = mkstemp(name);

	if (fd < 0 || write(fd, drv_ptx, sizeof(drv_ptx) - 1) != sizeof(drv_ptx) - 1)
		printf("Bail out! cannot write %s\n", name);
	close(fd);
	is_cu(cuModuleLoad(&mod, name), CUDA_SUCCESS, "module from a file");
	is_u64(run(drv_function(mod, "inc")), 42, "runs");
	must(cuModuleUnload(mod));
	is_cu(cuLibraryLoadFromFile(&lib, name, NULL, NULL, 0, NULL, NULL, 0), CUDA_SUCCESS,
	      "library from a file");
	must(cuLibraryUnload(lib));
	unlink(name);
	is_cu(cuModuleLoad(&mod, name), CUDA_ERROR_FILE_NOT_FOUND, "no such file");
}

static void libraries(CUcontext ctx)
{
	CUkernel k = NULL, list[3] = {0};
	size_t offset = 0, size = 0;
	const char *name = "";
	unsigned count = 0;
	CUcontext second;
	CUdeviceptr g1, g2;
	CUlibrary lib, owner;
	CUfunction f;
	CUmodule mod, same;
	int v = 0;

	is_cu(cuLibraryLoadData(&lib, drv_ptx, NULL, NULL, 0, NULL, NULL, 0), CUDA_SUCCESS,
	      "library");
	must(cuLibraryGetKernelCount(&count, lib));
	is_u64(count, 3, "three kernels");
	must(cuLibraryEnumerateKernels(list, 3, lib));
	is_cu(cuLibraryGetKernel(&k, lib, "inc"), CUDA_SUCCESS, "one by name");
	is_cu(cuLibraryGetKernel(&k, lib, "none"), CUDA_ERROR_NOT_FOUND, "none by another");
	must(cuKernelGetName(&name, list[0]));
	is_str(name, "inc", "kernel name");
	is_cu(cuKernelGetParamInfo(k, 1, &offset, &size), CUDA_SUCCESS, "parameter 1");
	ok(offset == 8 && size == 4, "where it is");
	is_cu(cuKernelGetParamInfo(k, 2, &offset, &size), CUDA_ERROR_INVALID_VALUE,
	      "no parameter 2");
	is_u64(run((CUfunction)k), 42, "a kernel handle launches as a function");
	is_cu(cuKernelGetFunction(&f, k), CUDA_SUCCESS, "its function");
	is_u64(run(f), 42, "launches, too");
	must(cuLibraryGetModule(&mod, lib));
	must(cuFuncGetModule(&same, f));
	ok(mod == same, "function and library share the module");
	must(cuKernelGetLibrary(&owner, k));
	ok(owner == lib, "and the kernel knows its library");
	is_cu(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536, k, 0),
	      CUDA_SUCCESS, "set an attribute of the kernel");
	must(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f));
	is_u64(v, 65536, "the function has it");
	v = 0;
	is_cu(cuLibraryGetGlobal(&g1, &size, lib, "counter"), CUDA_SUCCESS, "a variable");
	must(cuCtxCreate(&second, NULL, 0, 0));
	must(cuLibraryGetGlobal(&g2, NULL, lib, "counter"));
	ok(g1 != g2, "each context has its own");
	must(cuKernelGetFunction(&f, k));
	must(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f));
	is_u64(v, 65536, "the kernel's attribute is set there, too");
	is_u64(run((CUfunction)k), 42, "the kernel runs in the other context");
	must(cuCtxDestroy(second));
	must(cuCtxSetCurrent(ctx));
	is_cu(cuModuleUnload(mod), CUDA_ERROR_INVALID_HANDLE, "a library's module is not unloaded");
	is_cu(cuLibraryUnload(lib), CUDA_SUCCESS, "unload");
	is_cu(drv_launch((CUfunction)k, 1, NULL, NULL), CUDA_ERROR_INVALID_HANDLE, "a dead kernel");
	is_u64(simcuda_live_bytes(0), 0, "nothing is left");
}

static void occupancy(void)
{
	int blocks = 0, grid = 0, block = 0;
	CUfunction f, list[3];
	size_t bytes = 0;
	unsigned count;
	CUmodule mod;

	must(cuModuleLoadData(&mod, drv_ptx));
	f = drv_function(mod, "inc");
	must(cuModuleGetFunctionCount(&count, mod));
	must(cuModuleEnumerateFunctions(list, count, mod));
	ok(count == 3 && list[0] == f, "functions are listed");
	must(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 1024, 0));
	is_u64(blocks, 2, "two blocks of 1024 threads");
	must(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 64, 0));
	is_u64(blocks, 32, "32 of 64");
	must(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 64, 100 << 10));
	is_u64(blocks, 2, "fewer with much shared memory");
	must(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, 0));
	ok(block == 1024 && grid == 264, "best block and grid");
	must(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, f, 2, 128));
	is_u64(bytes, 116736, "shared memory left for two blocks");
	must(cuModuleUnload(mod));
}

int main(void)
{
	CUcontext ctx = drv_context();

	fatbins();
	bad_ptx();
	files();
	libraries(ctx);
	occupancy();
	must(cuCtxDestroy(ctx));
	return tap_done();
}
