/* SPDX-License-Identifier: MIT */
/*
 * Speed of the simulated device's engine: a tiled sgemm as nvcc compiles it, one core.
 *
 * The product is compared with an fmaf reference bit for bit before a figure is printed. Not TAP:
 * prints one line and exits with 1 if the result is wrong. Run from the top of the tree, or give the
 * PTX file as the argument.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/simcuda/exec.h"

#define N    256
#define RUNS 15

static void *place(void *opaque, size_t size, size_t align)
{
	(void)opaque, (void)align;
	return aligned_alloc(256, (size + 255) & ~(size_t)255);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static char *slurp(const char *path, size_t *ret_len)
{
	FILE *f = fopen(path, "rb");
	char *text = malloc(1 << 20);

	if (!f || !text) {
		perror(path);
		exit(1);
	}
	*ret_len = fread(text, 1, 1 << 20, f);
	fclose(f);
	return text;
}

static int is_right(const float *a, const float *b, const float *c)
{
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			float sum = 0;

			for (int k = 0; k < N; k++)
				sum = fmaf(a[i * N + k], b[k * N + j], sum);
			if (memcmp(&sum, &c[i * N + j], sizeof sum))
				return 0;
		}
	return 1;
}

int main(int argc, char **argv)
{
	static float m[3][N * N];
	struct {
		int n, m, k;
		float *a, *b, *c;
	} params = {N, N, N, m[0], m[1], m[2]};
	struct sim_range range = {(uint64_t)(uintptr_t)m, sizeof m, NULL, 0};
	struct sim_launch launch = {.grid = {N / 16, N / 16, 1}, .block = {16, 16, 1}};
	struct sim_fault fault;
	struct sim_counts counts;
	double best = 1e9;
	char err[256];
	size_t len;
	char *ptx = slurp(argc > 1 ? argv[1] : "tests/kernels/gemm.ptx", &len);
	struct sim_module *mod = sim_module_load(ptx, len, place, NULL, err, sizeof err);

	if (!mod) {
		fprintf(stderr, "%s\n", err);
		return 1;
	}
	for (int i = 0; i < N * N; i++) {
		m[0][i] = (float)(i * 37 % 1009) / 1009 - 0.5f;
		m[1][i] = (float)(i * 91 % 2003) / 2003 - 0.5f;
	}
	launch.kernel = sim_module_kernel(mod, "sgemm");
	launch.params = &params;
	launch.ranges = &range;
	launch.nranges = 1;
	for (int i = 0; i < RUNS; i++) {
		double t = seconds();

		if (sim_exec(&launch, &fault, &counts) != SIM_OK) {
			fprintf(stderr, "%s\n", fault.text);
			return 1;
		}
		t = seconds() - t;
		best = t < best ? t : best;
	}
	if (!is_right(m[0], m[1], m[2])) {
		fprintf(stderr, "sgemm: wrong result\n");
		return 1;
	}
	printf("sgemm 256^3: %.1f ms, %.2f G thread-instr/s (simulated)\n", best * 1e3,
	       (double)counts.thread_insns / best * 1e-9);
	sim_module_free(mod);
	free(ptx);
	return 0;
}
