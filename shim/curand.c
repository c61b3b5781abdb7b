/* SPDX-License-Identifier: MIT */
/*
 * cuRAND's host API, wrapped: generators are followed from creation to destruction, a draw is a call of the program
 * that writes its output densely, and a replay's draws are served from what its forward drew.
 *
 * Invariants
 * - A draw is one call: what the library launches and copies for it stays unseen (the thread's depth is held).
 * - A generator's serial is never used again, its handle may be. Its position moves only by calls that succeeded;
 *   a draw that was served did not happen.
 * - Generators are registered in the modes that observe, even before the first cuInit: the library may be what
 *   makes that call. Unknown handles and host generators are passed on and counted.
 * Callers: the program, any thread; one generator belongs to one thread at a time, as the library demands. Locks:
 * the table's mutex, for creation and destruction, nothing is called under it.
 */
#include "shim/curand.h"
#include "shim/call.h"
#include "shim/handles.h"
#include "tracker/rngpos.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

uint64_t rs_curand_count[RS_CURAND_COUNT];
uint64_t rs_curand_unfollowed, rs_curand_host;

struct generator {
	uint64_t serial;
	CUstream stream;
	struct rs_rngpos pos;
	int host; /* draws into host memory */
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rs_handles table;
static uint64_t serials;

#define HOOK(sym, params)                                                                          \
	extern rs_curand_status sym params                                                         \
		__attribute__((alias("rs_curand_hook_" #sym), visibility("default")));             \
	rs_curand_status rs_curand_hook_##sym params

static void count(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* As rs_guard_enter; NULL: forward unseen. */
static struct rs_tls *enter(void)
{
	struct rs_tls *t;

	if (__atomic_load_n(&rs_on, __ATOMIC_RELAXED) != RS_ON)
		return NULL;
	t = rs_tls ? rs_tls : rs_tls_get();
	if (!t || t->depth)
		return NULL;
	t->depth = 1;
	return t;
}

/* --- generators --------------------------------------------------------------------------------- */

static struct generator *find(rs_curand handle)
{
	return rs_handles_find(&table, handle);
}

static void put(rs_curand handle, struct generator *g)
{
	struct generator *old;
	int r;

	pthread_mutex_lock(&table_lock);
	old = find(handle);
	r = rs_handles_set(&table, handle, g);
	pthread_mutex_unlock(&table_lock);
	free(old);
	if (r)
		free(g);
}

static void made(rs_curand handle, int type, int host)
{
	struct generator *g;

	rs_init_boot();
	if (rs_state.mode != RS_MODE_AUDIT && rs_state.mode != RS_MODE_PRESERVE)
		return;
	g = calloc(1, sizeof(*g));
	if (!g)
		return;
	g->serial = __atomic_add_fetch(&serials, 1, __ATOMIC_RELAXED);
	g->host = host;
	rs_rngpos_init(&g->pos, type);
	put(handle, g);
}

#define CREATE(sym, host)                                                                          \
	HOOK(sym, (rs_curand * generator, int rng_type))                                           \
	{                                                                                          \
		rs_curand_status r;                                                                \
		count(&rs_curand_count[RS_CURAND_##sym]);                                          \
		r = rs_curand_real.sym(generator, rng_type);                                       \
		if (r == RS_CURAND_SUCCESS)                                                        \
			RS_ENGINE(made(*generator, rng_type, host));                               \
		return r;                                                                          \
	}

/* Not guarded: this may be what brings up the driver, and that is to be seen. */
CREATE(curandCreateGenerator, 0)
CREATE(curandCreateGeneratorHost, 1)

HOOK(curandDestroyGenerator, (rs_curand generator))
{
	count(&rs_curand_count[RS_CURAND_curandDestroyGenerator]);
	/* Before the call: another thread may be given the handle as soon as it is free. */
	if (find(generator))
		RS_ENGINE(put(generator, NULL));
	return rs_curand_real.curandDestroyGenerator(generator);
}

/* The real call, unseen; then, if it succeeded, what it did to a generator that we know. */
#define SET(sym, params, args, effect)                                                             \
	HOOK(sym, params)                                                                          \
	{                                                                                          \
		struct rs_tls *t = enter();                                                        \
		struct generator *g = find(generator);                                             \
		rs_curand_status r;                                                                \
		count(&rs_curand_count[RS_CURAND_##sym]);                                          \
		r = rs_curand_real.sym args;                                                       \
		if (r == RS_CURAND_SUCCESS && g)                                                   \
			effect;                                                                    \
		if (t)                                                                             \
			t->depth = 0;                                                              \
		return r;                                                                          \
	}

SET(curandSetStream, (rs_curand generator, void *stream), (generator, stream), g->stream = stream)
SET(curandSetPseudoRandomGeneratorSeed, (rs_curand generator, unsigned long long seed),
    (generator, seed), rs_rngpos_seed(&g->pos, seed))
SET(curandSetGeneratorOffset, (rs_curand generator, unsigned long long offset), (generator, offset),
    rs_rngpos_offset(&g->pos, offset))
SET(curandSetGeneratorOrdering, (rs_curand generator, int order), (generator, order),
    rs_rngpos_order(&g->pos, order))
SET(curandSetQuasiRandomGeneratorDimensions, (rs_curand generator, unsigned int num_dimensions),
    (generator, num_dimensions), rs_rngpos_dims(&g->pos, num_dimensions))
SET(curandGenerateSeeds, (rs_curand generator), (generator), rs_rngpos_seeds(&g->pos))

/* --- draws -------------------------------------------------------------------------------------- */

struct draw {
	struct rs_call call;
	struct rs_access access[1];
	uint64_t position;
};

static uint64_t bits_of(double x)
{
	uint64_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

static void describe(struct draw *d, struct rs_tls *t, const struct generator *g,
		     enum rs_curand_id id, const char *name, const void *out, uint64_t bytes,
		     double a, double b)
{
	d->call = (struct rs_call){
		.name = name,
		.ident = rs_digest_mix(RS_EP_COUNT + (uint64_t)id + 1),
		.kind = RS_CALL_OTHER,
		.q = rs_queue_of(t, g->stream, RS_PLAIN),
		.access = d->access,
		.capturing = (uint8_t)rs_queue_capturing(g->stream, RS_PLAIN),
	};
	rs_call_ident(&d->call, bytes);
	rs_call_ident(&d->call, bits_of(a));
	rs_call_ident(&d->call, bits_of(b));
	rs_call_device(&d->call, d->access, (uintptr_t)out, bytes, RS_WRITE, 1, 0);
	d->position = rs_rngpos_value(&g->pos);
}

static int served(struct rs_tls *t, const struct generator *g, const struct draw *d)
{
	int r;

	RS_ENGINE(r = rs_engine_draw(rs_state.engine, t->thread, &d->call, g->serial, d->position));
	return r;
}

static void drawn(struct rs_tls *t, const struct generator *g, const struct draw *d)
{
	RS_ENGINE(rs_engine_drawn(rs_state.engine, t->thread, &d->call, g->serial, d->position));
}

/* Is this a draw to follow? */
static struct generator *followed(rs_curand handle)
{
	struct generator *g = find(handle);

	if (!g)
		count(&rs_curand_unfollowed);
	else if (g->host)
		count(&rs_curand_host);
	return g && !g->host ? g : NULL;
}

/* n and outputPtr are the wrapper's parameters; a and b shape the distribution. */
#define DRAW(sym, kind, n, a, b, params, args)                                                     \
	HOOK(sym, params)                                                                          \
	{                                                                                          \
		struct generator *g = followed(generator);                                         \
		struct rs_tls *t = g ? enter() : NULL;                                             \
		rs_curand_status r = RS_CURAND_SUCCESS;                                            \
		struct draw d;                                                                     \
		count(&rs_curand_count[RS_CURAND_##sym]);                                          \
		if (!t) {                                                                          \
			if (rs_guard_strict())                                                     \
				return RS_CURAND_LAUNCH_FAILURE;                                   \
			r = rs_curand_real.sym args;                                               \
			if (r == RS_CURAND_SUCCESS && g)                                           \
				rs_rngpos_draw(&g->pos, kind, n, a);                               \
			return r;                                                                  \
		}                                                                                  \
		describe(&d, t, g, RS_CURAND_##sym, #sym, outputPtr, (n) * sizeof(*outputPtr), a,  \
			 b);                                                                       \
		rs_guard_before(t, &d.call);                                                       \
		if (!served(t, g, &d)) {                                                           \
			r = rs_curand_real.sym args;                                               \
			if (r == RS_CURAND_SUCCESS) {                                              \
				rs_rngpos_draw(&g->pos, kind, n, a);                               \
				drawn(t, g, &d);                                                   \
			}                                                                          \
		}                                                                                  \
		rs_guard_after(t, &d.call,                                                         \
			       r == RS_CURAND_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN);        \
		RS_LEAVE(t, r);                                                                    \
	}

DRAW(curandGenerate, RS_RNGPOS_WORD, num, 0, 0,
     (rs_curand generator, unsigned int *outputPtr, size_t num), (generator, outputPtr, num))
DRAW(curandGenerateLongLong, RS_RNGPOS_WORD64, num, 0, 0,
     (rs_curand generator, unsigned long long *outputPtr, size_t num), (generator, outputPtr, num))
DRAW(curandGenerateUniform, RS_RNGPOS_UNIFORM, num, 0, 0,
     (rs_curand generator, float *outputPtr, size_t num), (generator, outputPtr, num))
DRAW(curandGenerateUniformDouble, RS_RNGPOS_UNIFORM_DOUBLE, num, 0, 0,
     (rs_curand generator, double *outputPtr, size_t num), (generator, outputPtr, num))
DRAW(curandGenerateNormal, RS_RNGPOS_NORMAL, n, mean, stddev,
     (rs_curand generator, float *outputPtr, size_t n, float mean, float stddev),
     (generator, outputPtr, n, mean, stddev))
DRAW(curandGenerateNormalDouble, RS_RNGPOS_NORMAL_DOUBLE, n, mean, stddev,
     (rs_curand generator, double *outputPtr, size_t n, double mean, double stddev),
     (generator, outputPtr, n, mean, stddev))
DRAW(curandGenerateLogNormal, RS_RNGPOS_NORMAL, n, mean, stddev,
     (rs_curand generator, float *outputPtr, size_t n, float mean, float stddev),
     (generator, outputPtr, n, mean, stddev))
DRAW(curandGenerateLogNormalDouble, RS_RNGPOS_NORMAL_DOUBLE, n, mean, stddev,
     (rs_curand generator, double *outputPtr, size_t n, double mean, double stddev),
     (generator, outputPtr, n, mean, stddev))
DRAW(curandGeneratePoisson, RS_RNGPOS_POISSON, n, lambda, 0,
     (rs_curand generator, unsigned int *outputPtr, size_t n, double lambda),
     (generator, outputPtr, n, lambda))
DRAW(curandGeneratePoissonMethod, RS_RNGPOS_POISSON, n, lambda, method,
     (rs_curand generator, unsigned int *outputPtr, size_t n, double lambda, int method),
     (generator, outputPtr, n, lambda, method))

/* --- the rest ----------------------------------------------------------------------------------- */

#define PASS_MAKE(sym, params, args)
#define PASS_SET(sym, params, args)
#define PASS_DRAW(sym, params, args)
#define PASS_PASS(sym, params, args)                                                               \
	HOOK(sym, params)                                                                          \
	{                                                                                          \
		count(&rs_curand_count[RS_CURAND_##sym]);                                          \
		return rs_curand_real.sym args;                                                    \
	}
#define CURAND(sym, action, params, args) PASS_##action(sym, params, args)
#include "shim/curand.def"
#undef CURAND
