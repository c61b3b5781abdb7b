/* SPDX-License-Identifier: MIT */
/*
 * For the kernel tests: modules of tests/kernels through the Driver API, data, comparison.
 *
 * Modules are looked for in argv[1], $RS_KERNELS, $RS_TOP/tests/kernels or tests/kernels. A driver call
 * that fails ends the test with a line that names it. Comparisons are to the bit except for kinds of
 * NaN, or within a tolerance where the ISA only bounds the error of an approximation.
 */
#ifndef TESTS_CLIENTS_KERNELS_H
#define TESTS_CLIENTS_KERNELS_H

#include <cuda.h>
#include <math.h>

#include "tests/tap.h"

#define MUST(call) k_must(call, #call, __FILE__, __LINE__)
#define UNUSED	   __attribute__((unused))

static const char *k_dir;
static CUmodule k_module;

static void k_must(CUresult r, const char *call, const char *file, int line)
{
	const char *name = "?";

	if (r == CUDA_SUCCESS)
		return;
	cuGetErrorName(r, &name);
	printf("Bail out! %s:%d: %s: %s\n", file, line, call, name);
	exit(1);
}

static char *k_read(const char *path)
{
	FILE *f = fopen(path, "rb");
	char *text;
	long size;

	if (!f) {
		printf("Bail out! cannot read %s\n", path);
		exit(1);
	}
	fseek(f, 0, SEEK_END);
	size = ftell(f);
	rewind(f);
	text = calloc(1, (size_t)size + 1);
	if (!text || fread(text, 1, (size_t)size, f) != (size_t)size)
		exit(1);
	fclose(f);
	return text;
}

/* The module that launches refer to from here on. */
UNUSED static void k_load(const char *name)
{
	char path[4096], log[4096] = "";
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)(uintptr_t)sizeof(log)};
	char *text;
	CUresult r;

	if (strchr(name, '/'))
		snprintf(path, sizeof(path), "%s/../../%s.ptx", k_dir, name);
	else
		snprintf(path, sizeof(path), "%s/%s.ptx", k_dir, name);
	text = k_read(path);
	r = cuModuleLoadDataEx(&k_module, text, 2, options, values);
	if (r != CUDA_SUCCESS)
		tap_diag("%s: %s", path, log);
	MUST(r);
	free(text);
}

static void k_begin(int argc, char **argv)
{
	static char path[4096];
	CUdevice dev;
	CUcontext ctx;

	k_dir = argc > 1 ? argv[1] : getenv("RS_KERNELS");
	if (!k_dir) {
		snprintf(path, sizeof(path), "%s/tests/kernels",
			 getenv("RS_TOP") ? getenv("RS_TOP") : ".");
		k_dir = path;
	}
	MUST(cuInit(0));
	MUST(cuDeviceGet(&dev, 0));
	MUST(cuDevicePrimaryCtxRetain(&ctx, dev));
	MUST(cuCtxSetCurrent(ctx));
}

/* Device memory: with these bytes, or filled with a pattern that no result has by chance. */
UNUSED static CUdeviceptr k_in(const void *host, size_t bytes)
{
	CUdeviceptr d;

	MUST(cuMemAlloc(&d, bytes));
	MUST(cuMemcpyHtoD(d, host, bytes));
	return d;
}

UNUSED static CUdeviceptr k_out(size_t bytes)
{
	CUdeviceptr d;

	MUST(cuMemAlloc(&d, bytes));
	MUST(cuMemsetD8(d, 0xa5, bytes));
	return d;
}

static void k_get(void *host, CUdeviceptr d, size_t bytes)
{
	MUST(cuMemcpyDtoH(host, d, bytes));
}

/* K_RUN("kernel", gx, gy, bx, by, dynamic shared bytes, &argument...) */
#define K_RUN(name, gx, gy, bx, by, shared, ...)                                                   \
	k_run(name, gx, gy, bx, by, shared, (void *[]){__VA_ARGS__})

UNUSED static void k_run(const char *name, unsigned gx, unsigned gy, unsigned bx, unsigned by,
			 unsigned shared, void **params)
{
	CUfunction f;
	CUresult r = cuModuleGetFunction(&f, k_module, name);

	if (r == CUDA_SUCCESS)
		r = cuLaunchKernel(f, gx, gy, 1, bx, by, 1, shared, NULL, params, NULL);
	if (r == CUDA_SUCCESS)
		r = cuCtxSynchronize();
	if (r != CUDA_SUCCESS)
		tap_diag("kernel %s", name);
	MUST(r);
}

static uint64_t k_seed = 0x9e3779b97f4a7c15ull;

UNUSED static uint64_t k_random(void)
{
	k_seed ^= k_seed << 13;
	k_seed ^= k_seed >> 7;
	k_seed ^= k_seed << 17;
	return k_seed * 0x2545f4914f6cdd1dull;
}

/* In [-scale, scale). */
UNUSED static float k_float(float scale)
{
	return scale * ((float)(k_random() >> 40) / (1 << 23) - 1);
}

UNUSED static float *k_floats(size_t n, float scale)
{
	float *x = malloc(n * sizeof(*x));
	size_t i;

	for (i = 0; i < n; i++)
		x[i] = k_float(scale);
	return x;
}

UNUSED static int k_same_bits(const void *got, const void *want, size_t n, size_t size,
			      const char *what)
{
	size_t i, bad = 0;

	for (i = 0; i < n; i++) {
		if (!memcmp((const char *)got + i * size, (const char *)want + i * size, size))
			continue;
		if (bad++ < 3) {
			uint64_t g = 0, w = 0;

			memcpy(&g, (const char *)got + i * size, size < 8 ? size : 8);
			memcpy(&w, (const char *)want + i * size, size < 8 ? size : 8);
			tap_diag("%s [%zu]: 0x%" PRIx64 ", not 0x%" PRIx64, what, i, g, w);
		}
	}
	return ok(!bad, "%s: %zu values to the bit", what, n);
}

UNUSED static int k_same_f32(float *got, float *want, size_t n, const char *what)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (isnan(got[i]) && isnan(want[i]))
			got[i] = want[i] = 0;
	return k_same_bits(got, want, n, sizeof(*got), what);
}

UNUSED static int k_same_f64(double *got, double *want, size_t n, const char *what)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (isnan(got[i]) && isnan(want[i]))
			got[i] = want[i] = 0;
	return k_same_bits(got, want, n, sizeof(*got), what);
}

/* |got - want| <= rel |want| + abs */
UNUSED static int k_near_f32(const float *got, const double *want, size_t n, double rel, double abs,
			     const char *what)
{
	double worst = 0;
	size_t i, bad = 0;

	for (i = 0; i < n; i++) {
		double error = fabs(got[i] - want[i]), limit = rel * fabs(want[i]) + abs;

		if (isnan(got[i]) && isnan(want[i]))
			continue;
		if (isinf(want[i]) && got[i] == want[i])
			continue;
		if (error / limit > worst)
			worst = error / limit;
		if (!(error <= limit) && bad++ < 3)
			tap_diag("%s [%zu]: %.9g, not %.9g", what, i, got[i], want[i]);
	}
	return ok(!bad, "%s: %zu values, worst error %.0f%% of the limit", what, n, worst * 100);
}

#endif
