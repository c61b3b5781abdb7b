/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for NVIDIA's libcurand.so.10, for the simulated device: NVIDIA's own library draws on the device only
 * through a driver that is NVIDIA's. Programs tell it by the symbol simcurand_about.
 *
 * Device generators write, in stream order and through the public Driver API, the values that the real library's
 * host generators give for the same type, seed, offset, ordering and sequence of calls (tests/clients/t_curand.c
 * compares them). The values depend on no device memory, so they are computed at the call and copied from a buffer
 * that a host function frees.
 *
 * Offered: XORWOW, MRG32k3a, Philox4x32-10 (all but Poisson), Sobol32 up to ten dimensions (no normals).
 * Left out, with the code of a type, order or range that is not supported: MTGP32, MT19937, scrambled and 64-bit
 * Sobol, Poisson (CURAND_STATUS_TYPE_ERROR); the SEEDED order, tables of direction vectors and scramble constants
 * (CURAND_STATUS_OUT_OF_RANGE). Not matched: a Philox generator that is seeded anew within its first three results.
 *
 * Locks: none; as with the real library, a generator belongs to one thread at a time.
 */
#include "shim/curand_abi.h"
#include "tests/simcurand/rng.h"

#include <cuda.h>
#include <math.h>
#include <stdlib.h>

#define API __attribute__((visibility("default")))

#define CURAND(sym, action, params, args) API rs_curand_status sym params;
#include "shim/curand.def"
#undef CURAND

extern const char simcurand_about[];
API const char simcurand_about[] = "stand-in for libcurand.so.10 on the simulated device";

struct rs_curand_opaque {
	struct rng rng;
	int order;
	int host; /* output is host memory */
	CUstream stream;
};

/* --- generators --------------------------------------------------------------------------------- */

static const struct rng_ops *ops_of(int type)
{
	switch (type) {
	case RS_CURAND_PSEUDO_DEFAULT:
	case RS_CURAND_XORWOW:
		return &rng_xorwow;
	case RS_CURAND_MRG32K3A:
		return &rng_mrg;
	case RS_CURAND_PHILOX:
		return &rng_philox;
	case RS_CURAND_QUASI_DEFAULT:
	case RS_CURAND_SOBOL32:
		return &rng_sobol;
	}
	return NULL;
}

static rs_curand_status create(rs_curand *generator, int type, int host)
{
	const struct rng_ops *ops = ops_of(type);
	struct rs_curand_opaque *g;

	if (!ops)
		return RS_CURAND_TYPE_ERROR;
	g = calloc(1, sizeof(*g));
	if (!g)
		return RS_CURAND_ALLOCATION_FAILED;
	g->rng.ops = ops;
	g->rng.dims = 1;
	g->order = ops->quasi ? RS_CURAND_ORDER_QUASI : RS_CURAND_ORDER_DEFAULT;
	g->host = host;
	*generator = g;
	return RS_CURAND_SUCCESS;
}

/* As the CUDA runtime does: without a current context the device's primary one is made current. */
static int have_context(void)
{
	CUcontext ctx = NULL;
	CUdevice dev;

	if (cuInit(0) != CUDA_SUCCESS || cuCtxGetCurrent(&ctx) != CUDA_SUCCESS)
		return 0;
	if (ctx)
		return 1;
	return cuDeviceGet(&dev, 0) == CUDA_SUCCESS &&
	       cuDevicePrimaryCtxRetain(&ctx, dev) == CUDA_SUCCESS &&
	       cuCtxSetCurrent(ctx) == CUDA_SUCCESS;
}

rs_curand_status curandCreateGenerator(rs_curand *generator, int rng_type)
{
	if (!have_context())
		return RS_CURAND_INIT_FAILED;
	return create(generator, rng_type, 0);
}

rs_curand_status curandCreateGeneratorHost(rs_curand *generator, int rng_type)
{
	return create(generator, rng_type, 1);
}

rs_curand_status curandDestroyGenerator(rs_curand generator)
{
	if (!generator)
		return RS_CURAND_NOT_INITIALIZED;
	free(generator->rng.lanes);
	free(generator);
	return RS_CURAND_SUCCESS;
}

rs_curand_status curandSetStream(rs_curand generator, void *stream)
{
	if (!generator)
		return RS_CURAND_NOT_INITIALIZED;
	generator->stream = stream;
	return RS_CURAND_SUCCESS;
}

/* The seed that it has already changes nothing, and another one does not move the offset. */
rs_curand_status curandSetPseudoRandomGeneratorSeed(rs_curand generator, unsigned long long seed)
{
	if (!generator)
		return RS_CURAND_NOT_INITIALIZED;
	if (generator->rng.ops->quasi)
		return RS_CURAND_TYPE_ERROR;
	if (seed != generator->rng.seed)
		rng_restart(&generator->rng);
	generator->rng.seed = seed;
	return RS_CURAND_SUCCESS;
}

rs_curand_status curandSetGeneratorOffset(rs_curand generator, unsigned long long offset)
{
	if (!generator)
		return RS_CURAND_NOT_INITIALIZED;
	generator->rng.offset = offset;
	generator->rng.started = 0;
	return RS_CURAND_SUCCESS;
}

rs_curand_status curandSetGeneratorOrdering(rs_curand generator, int order)
{
	int quasi;

	if (!generator)
		return RS_CURAND_NOT_INITIALIZED;
	quasi = generator->rng.ops->quasi;
	if (quasi ? order != RS_CURAND_ORDER_QUASI
		  : order != RS_CURAND_ORDER_BEST && order != RS_CURAND_ORDER_DEFAULT &&
			    order != RS_CURAND_ORDER_LEGACY)
		return RS_CURAND_OUT_OF_RANGE;
	if (order == generator->order)
		return RS_CURAND_SUCCESS;
	rng_restart(&generator->rng);
	generator->order = order;
	if (generator->rng.ops == &rng_mrg || generator->rng.ops == &rng_mrg_legacy) {
		generator->rng.ops = order == RS_CURAND_ORDER_LEGACY ? &rng_mrg_legacy : &rng_mrg;
		free(generator->rng.lanes);
		generator->rng.lanes = NULL;
		generator->rng.started = 0;
	}
	return RS_CURAND_SUCCESS;
}

rs_curand_status curandSetQuasiRandomGeneratorDimensions(rs_curand generator,
							 unsigned int num_dimensions)
{
	if (!generator)
		return RS_CURAND_NOT_INITIALIZED;
	if (!generator->rng.ops->quasi)
		return RS_CURAND_TYPE_ERROR;
	if (!num_dimensions || num_dimensions > RNG_SOBOL_DIMS)
		return RS_CURAND_OUT_OF_RANGE;
	generator->rng.dims = num_dimensions;
	return RS_CURAND_SUCCESS;
}

rs_curand_status curandGenerateSeeds(rs_curand generator)
{
	if (!generator)
		return RS_CURAND_NOT_INITIALIZED;
	rng_restart(&generator->rng);
	return rng_start(&generator->rng) ? RS_CURAND_ALLOCATION_FAILED : RS_CURAND_SUCCESS;
}

/* --- drawing ------------------------------------------------------------------------------------ */

/* A graph may run a captured copy at any later time, so its buffer stays; the list keeps it reachable. */
static void keep(void **buffer)
{
	static void **kept;

	do
		*buffer = __atomic_load_n(&kept, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&kept, (void ***)buffer, buffer, 1, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED));
}

/* The first bytes of a buffer are the list's. */
#define HEADER 64

static rs_curand_status send(struct rs_curand_opaque *g, void *out, char *buffer, size_t bytes)
{
	CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
	CUdeviceptr dst = (CUdeviceptr)(uintptr_t)out;

	if (cuMemcpyHtoDAsync(dst, buffer + HEADER, bytes, g->stream) != CUDA_SUCCESS) {
		free(buffer);
		return RS_CURAND_LAUNCH_FAILURE;
	}
	cuStreamIsCapturing(g->stream, &capture);
	if (capture != CU_STREAM_CAPTURE_STATUS_NONE)
		keep((void **)buffer);
	else if (cuLaunchHostFunc(g->stream, free, buffer) != CUDA_SUCCESS)
		return RS_CURAND_LAUNCH_FAILURE;
	return RS_CURAND_SUCCESS;
}

typedef void make_fn(struct rng *g, void *out, size_t n, double mean, double dev);

/* offered: by this type of generator; paired: made in pairs. */
static rs_curand_status draw(struct rs_curand_opaque *g, int offered, int paired, void *out,
			     size_t n, size_t size, make_fn *make, double mean, double dev)
{
	char *buffer;

	if (!offered)
		return RS_CURAND_TYPE_ERROR;
	if ((paired && g->rng.ops->pairs && n % 2) || n % g->rng.dims)
		return RS_CURAND_LENGTH_NOT_MULTIPLE;
	if (rng_start(&g->rng))
		return RS_CURAND_ALLOCATION_FAILED;
	if (!n)
		return RS_CURAND_SUCCESS;
	if (g->host) {
		make(&g->rng, out, n, mean, dev);
		return RS_CURAND_SUCCESS;
	}
	buffer = n < (SIZE_MAX - HEADER) / size ? malloc(HEADER + n * size) : NULL;
	if (!buffer)
		return RS_CURAND_ALLOCATION_FAILED;
	make(&g->rng, buffer + HEADER, n, mean, dev);
	return send(g, out, buffer, n * size);
}

#define DRAW(sym, type, op, paired, params, mean, dev, finish)                                     \
	static void make_##sym(struct rng *g, void *out, size_t n, double m, double s)             \
	{                                                                                          \
		type *p = out;                                                                     \
		(void)m, (void)s;                                                                  \
		g->ops->op(g, p, n);                                                               \
		for (size_t i = 0; i < n; i++)                                                     \
			p[i] = finish;                                                             \
	}                                                                                          \
	rs_curand_status sym params                                                                \
	{                                                                                          \
		if (!generator)                                                                    \
			return RS_CURAND_NOT_INITIALIZED;                                          \
		return draw(generator, !!generator->rng.ops->op, paired, outputPtr, n,             \
			    sizeof(type), make_##sym, mean, dev);                                  \
	}

#define PLAIN(type)  (rs_curand generator, type * outputPtr, size_t n)
#define SHAPED(type) (rs_curand generator, type * outputPtr, size_t n, type mean, type stddev)

DRAW(curandGenerate, unsigned int, word, 0, PLAIN(unsigned int), 0, 0, p[i])
DRAW(curandGenerateUniform, float, uniform, 0, PLAIN(float), 0, 0, p[i])
DRAW(curandGenerateUniformDouble, double, uniform_double, 0, PLAIN(double), 0, 0, p[i])
DRAW(curandGenerateNormal, float, normal, 1, SHAPED(float), mean, stddev,
     (float)m + (float)s * p[i])
DRAW(curandGenerateNormalDouble, double, normal_double, 1, SHAPED(double), mean, stddev,
     m + s * p[i])
DRAW(curandGenerateLogNormal, float, normal, 1, SHAPED(float), mean, stddev,
     expf((float)m + (float)s * p[i]))
DRAW(curandGenerateLogNormalDouble, double, normal_double, 1, SHAPED(double), mean, stddev,
     exp(m + s * p[i]))

/* --- what this library does not offer, and questions --------------------------------------------- */

#define REFUSE(sym, params, unused, status)                                                        \
	rs_curand_status sym params                                                                \
	{                                                                                          \
		unused;                                                                            \
		return status;                                                                     \
	}

REFUSE(curandGenerateLongLong, (rs_curand generator, unsigned long long *outputPtr, size_t num),
       ((void)outputPtr, (void)num), generator ? RS_CURAND_TYPE_ERROR : RS_CURAND_NOT_INITIALIZED)
REFUSE(curandGeneratePoisson,
       (rs_curand generator, unsigned int *outputPtr, size_t n, double lambda),
       ((void)outputPtr, (void)n, (void)lambda),
       generator ? RS_CURAND_TYPE_ERROR : RS_CURAND_NOT_INITIALIZED)
REFUSE(curandGeneratePoissonMethod,
       (rs_curand generator, unsigned int *outputPtr, size_t n, double lambda, int method),
       ((void)outputPtr, (void)n, (void)lambda, (void)method),
       generator ? RS_CURAND_TYPE_ERROR : RS_CURAND_NOT_INITIALIZED)
REFUSE(curandCreatePoissonDistribution, (double lambda, void **discrete_distribution),
       ((void)lambda, (void)discrete_distribution), RS_CURAND_TYPE_ERROR)
REFUSE(curandDestroyDistribution, (void *discrete_distribution), (void)discrete_distribution,
       RS_CURAND_TYPE_ERROR)
REFUSE(curandGetDirectionVectors32, (void *vectors, int set), ((void)vectors, (void)set),
       RS_CURAND_OUT_OF_RANGE)
REFUSE(curandGetDirectionVectors64, (void *vectors, int set), ((void)vectors, (void)set),
       RS_CURAND_OUT_OF_RANGE)
REFUSE(curandGetScrambleConstants32, (unsigned int **constants), (void)constants,
       RS_CURAND_OUT_OF_RANGE)
REFUSE(curandGetScrambleConstants64, (unsigned long long **constants), (void)constants,
       RS_CURAND_OUT_OF_RANGE)

/* The release whose sequences these are. */
rs_curand_status curandGetVersion(int *version)
{
	*version = 10400;
	return RS_CURAND_SUCCESS;
}

rs_curand_status curandGetProperty(int type, int *value)
{
	static const int numbers[] = {10, 4, 0};

	if (type < 0 || type > 2)
		return RS_CURAND_OUT_OF_RANGE;
	*value = numbers[type];
	return RS_CURAND_SUCCESS;
}
