/* SPDX-License-Identifier: MIT */
/*
 * The stand-in libcurand draws on the simulated device, in stream order, what the real library's host generators
 * give: known values always; where the real library is installed (RS_CURAND names it, else the toolkit's place)
 * whole sequences of calls are compared bit by bit, and error codes too.
 */
#include "tests/clients/curand_lib.h"
#include "tests/clients/drv.h"

static struct curand sim, real;
static CUdeviceptr out;
static CUstream stream;

#define ROOM (600u << 10) /* results of a draw, at most */

/* --- draws in both libraries -------------------------------------------------------------------- */

enum op {
	WORD,
	UNIFORM,
	UNIFORM_D,
	NORMAL,
	NORMAL_D,
	LOGNORMAL,
	LOGNORMAL_D,
	LONGLONG,
	SEED,
	OFFSET,
	ORDER,
	DIMS,
	SEEDS,
	END
};

static const char *const op_name[] = {
	"words",     "uniform",		 "uniform double", "normal", "normal double",
	"lognormal", "lognormal double", "long long",	   "seed",   "offset",
	"order",     "dimensions",	 "seeds"};

struct act {
	enum op op;
	unsigned long long n;
};

static size_t bytes_of(const struct act *a)
{
	int wide = a->op == UNIFORM_D || a->op == NORMAL_D || a->op == LOGNORMAL_D ||
		   a->op == LONGLONG;

	return a->op >= SEED ? 0 : a->n * (wide ? 8 : 4);
}

static int perform(const struct curand *c, rs_curand g, const struct act *a, void *to)
{
	switch (a->op) {
	case WORD:
		return c->curandGenerate(g, to, a->n);
	case UNIFORM:
		return c->curandGenerateUniform(g, to, a->n);
	case UNIFORM_D:
		return c->curandGenerateUniformDouble(g, to, a->n);
	case NORMAL:
		return c->curandGenerateNormal(g, to, a->n, 0.25f, 1.7f);
	case NORMAL_D:
		return c->curandGenerateNormalDouble(g, to, a->n, -3.1, 0.3);
	case LOGNORMAL:
		return c->curandGenerateLogNormal(g, to, a->n, 0.1f, 0.7f);
	case LOGNORMAL_D:
		return c->curandGenerateLogNormalDouble(g, to, a->n, 0.1, 0.7);
	case LONGLONG:
		return c->curandGenerateLongLong(g, to, a->n);
	case SEED:
		return c->curandSetPseudoRandomGeneratorSeed(g, a->n);
	case OFFSET:
		return c->curandSetGeneratorOffset(g, a->n);
	case ORDER:
		return c->curandSetGeneratorOrdering(g, (int)a->n);
	case DIMS:
		return c->curandSetQuasiRandomGeneratorDimensions(g, (unsigned)a->n);
	case SEEDS:
		return c->curandGenerateSeeds(g);
	case END:
		break;
	}
	return -1;
}

/* The sequence of acts gives the same codes and the same bytes, all of them, in both libraries. */
static void compare(const char *what, int type, const struct act *acts)
{
	static unsigned char host[ROOM * 8], back[ROOM * 8];
	rs_curand s, r;
	int bad = 0;

	if (sim.curandCreateGenerator(&s, type) || real.curandCreateGeneratorHost(&r, type) ||
	    sim.curandSetStream(s, stream)) {
		ok(0, "%s: both libraries have the generator", what);
		return;
	}
	for (unsigned i = 0; acts[i].op != END && !bad; i++) {
		size_t bytes = bytes_of(acts + i), at = 0;
		int want = perform(&real, r, acts + i, host);
		int got = perform(&sim, s, acts + i, (void *)(uintptr_t)out);

		if (got == want && !got && bytes) {
			must(cuMemcpyDtoHAsync(back, out, bytes, stream));
			must(cuStreamSynchronize(stream));
			while (at < bytes && host[at] == back[at])
				at++;
		} else {
			at = bytes;
		}
		bad = got != want || at != bytes;
		if (bad)
			tap_diag("%s, act %u (%s %llu): code %d, want %d; equal up to byte %zu",
				 what, i, op_name[acts[i].op], acts[i].n, got, want, at);
	}
	ok(!bad, "%s: as the real library", what);
	sim.curandDestroyGenerator(s);
	real.curandDestroyGenerator(r);
}

/* --- cases -------------------------------------------------------------------------------------- */

static const struct act mixed[] = {{SEED, 1234},
				   {WORD, 100},
				   {UNIFORM, 101},
				   {UNIFORM_D, 300},
				   {NORMAL, 5002},
				   {NORMAL_D, 5000},
				   {WORD, 90003},
				   {LOGNORMAL, 20000},
				   {LOGNORMAL_D, 600},
				   {UNIFORM, 300000},
				   {UNIFORM_D, 300001},
				   {NORMAL, 30000},
				   {WORD, 300000},
				   {NORMAL_D, 4},
				   {UNIFORM, 0},
				   {WORD, 5000},
				   {END, 0}};

/* Where the offset counts from, and what starts a generator anew. */
static const struct act moved[] = {{SEED, 0x123456789abcdef0},
				   {OFFSET, 12345},
				   {NORMAL_D, 20000},
				   {SEED, 0x123456789abcdef0},
				   {WORD, 9000},
				   {SEED, 99},
				   {UNIFORM, 9000},
				   {ORDER, 101},
				   {UNIFORM_D, 9000},
				   {ORDER, 103},
				   {WORD, 9000},
				   {SEEDS, 0},
				   {UNIFORM_D, 7000},
				   {SEEDS, 0},
				   {WORD, 200000},
				   {OFFSET, 1ull << 40},
				   {NORMAL, 9000},
				   {OFFSET, 262143},
				   {LOGNORMAL, 6},
				   {UNIFORM, 5},
				   {ORDER, 100},
				   {WORD, 100},
				   {END, 0}};

static const struct act errors[] = {{NORMAL, 7},   {NORMAL_D, 7}, {LOGNORMAL, 7}, {LOGNORMAL_D, 7},
				    {LONGLONG, 4}, {DIMS, 1},	  {ORDER, 0},	  {ORDER, 104},
				    {ORDER, 201},  {ORDER, 200},  {UNIFORM, 7},	  {UNIFORM_D, 7},
				    {OFFSET, 5},   {SEED, 0},	  {WORD, 9},	  {END, 0}};

static const struct act quasi[] = {
	{WORD, 100},	{OFFSET, 3},	 {UNIFORM, 50},	     {DIMS, 0},	 {DIMS, 20001},
	{DIMS, 2},	{UNIFORM, 50},	 {WORD, 51},	     {DIMS, 10}, {UNIFORM, 7000},
	{SEED, 1},	{ORDER, 101},	 {ORDER, 201},	     {SEEDS, 0}, {WORD, 30},
	{LONGLONG, 10}, {UNIFORM_D, 40}, {OFFSET, 1u << 31}, {DIMS, 3},	 {WORD, 99},
	{END, 0}};

static void against_real(void)
{
	compare("XORWOW, all distributions", RS_CURAND_XORWOW, mixed);
	compare("XORWOW, set anew", RS_CURAND_PSEUDO_DEFAULT, moved);
	compare("XORWOW, errors", RS_CURAND_XORWOW, errors);
	compare("MRG32k3a, all distributions", RS_CURAND_MRG32K3A, mixed);
	compare("MRG32k3a, set anew", RS_CURAND_MRG32K3A, moved);
	compare("MRG32k3a, errors", RS_CURAND_MRG32K3A, errors);
	compare("Philox, all distributions", RS_CURAND_PHILOX, mixed);
	compare("Philox, set anew", RS_CURAND_PHILOX, moved);
	compare("Philox, errors", RS_CURAND_PHILOX, errors);
	compare("Sobol32", RS_CURAND_QUASI_DEFAULT, quasi);
}

static int near(float got, double want)
{
	return got > want - 6e-10 && got < want + 6e-10;
}

static void known(void)
{
	static const struct {
		const char *name;
		int type;
		double first[4];
	} want[] = {
		{"XORWOW", RS_CURAND_XORWOW, {.145467639, .820180893, .550399244, .294830292}},
		{"Philox", RS_CURAND_PHILOX, {.12720795, .853468955, .265648872, .796055257}},
	};
	float got[4];
	rs_curand g;

	for (unsigned i = 0; i < sizeof(want) / sizeof(*want); i++) {
		int right = !sim.curandCreateGenerator(&g, want[i].type) &&
			    !sim.curandSetPseudoRandomGeneratorSeed(g, 1234) &&
			    !sim.curandGenerateUniform(g, (float *)(uintptr_t)out, 4);

		must(cuMemcpyDtoH(got, out, sizeof(got)));
		for (unsigned k = 0; k < 4; k++)
			right &= near(got[k], want[i].first[k]);
		ok(right, "%s: the known first values", want[i].name);
		sim.curandDestroyGenerator(g);
	}
}

/* The draw happens on the generator's stream: a fill before it is overwritten, a copy after it sees it. */
static void in_order(void)
{
	float got[64], want[64];
	rs_curand dev, host;
	CUdeviceptr copy;

	must(cuMemAlloc(&copy, sizeof(got)));
	ok(!sim.curandCreateGenerator(&dev, RS_CURAND_XORWOW) &&
		   !sim.curandCreateGeneratorHost(&host, RS_CURAND_XORWOW) &&
		   !sim.curandSetStream(dev, stream),
	   "a device and a host generator");
	must(cuMemsetD32Async(out, 7, 64, stream));
	is_u64((uint64_t)sim.curandGenerateUniform(dev, (float *)(uintptr_t)out, 64), 0, "a draw");
	must(cuMemcpyDtoDAsync(copy, out, sizeof(got), stream));
	must(cuMemsetD32Async(out, 9, 64, stream));
	must(cuMemcpyDtoHAsync(got, copy, sizeof(got), stream));
	must(cuStreamSynchronize(stream));
	is_u64((uint64_t)sim.curandGenerateUniform(host, want, 64), 0, "a draw into host memory");
	ok(!memcmp(got, want, sizeof(got)), "drawn in stream order");
	sim.curandDestroyGenerator(dev);
	sim.curandDestroyGenerator(host);
	must(cuMemFree(copy));
}

/* A captured draw gives the captured values at every launch of the graph. */
static void captured(void)
{
	float got[2][64];
	rs_curand g;
	CUgraph graph;
	CUgraphExec exec;

	ok(!sim.curandCreateGenerator(&g, RS_CURAND_PHILOX) && !sim.curandSetStream(g, stream),
	   "a generator on a stream");
	must(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	is_u64((uint64_t)sim.curandGenerateUniform(g, (float *)(uintptr_t)out, 64), 0,
	       "a draw under capture");
	must(cuStreamEndCapture(stream, &graph));
	must(cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (unsigned i = 0; i < 2; i++) {
		must(cuMemsetD32Async(out, 0, 64, stream));
		must(cuGraphLaunch(exec, stream));
		must(cuStreamSynchronize(stream));
		must(cuMemcpyDtoH(got[i], out, sizeof(got[i])));
	}
	ok(got[0][0] > 0, "the graph draws");
	ok(!memcmp(got[0], got[1], sizeof(got[0])), "and draws the same again");
	must(cuGraphExecDestroy(exec));
	must(cuGraphDestroy(graph));
	sim.curandDestroyGenerator(g);
}

static void refused(void)
{
	static const int left_out[] = {
		RS_CURAND_MTGP32, RS_CURAND_MT19937, 202, 203, RS_CURAND_SCRAMBLED64, 102, 1};
	unsigned types = 0, nulls = 0;
	unsigned char word[4];
	rs_curand g;
	int n = 0;

	for (unsigned i = 0; i < sizeof(left_out) / sizeof(*left_out); i++)
		types += sim.curandCreateGenerator(&g, left_out[i]) == RS_CURAND_TYPE_ERROR;
	is_u64(types, sizeof(left_out) / sizeof(*left_out), "types left out are type errors");
	for (struct act a = {WORD, 1}; a.op < SEED; a.op++)
		nulls += perform(&sim, NULL, &a, word) == RS_CURAND_NOT_INITIALIZED;
	is_u64(nulls, SEED, "no generator: not initialised");
	ok(!sim.curandGetVersion(&n) && n == 10400, "the version whose sequences these are");
	ok(!sim.curandCreateGenerator(&g, RS_CURAND_XORWOW), "a generator");
	is_u64((uint64_t)sim.curandGeneratePoisson(g, (unsigned *)word, 1, 3.0),
	       RS_CURAND_TYPE_ERROR, "Poisson is left out");
	is_u64((uint64_t)sim.curandGenerateUniform(g, (float *)(uintptr_t)16, 4),
	       RS_CURAND_LAUNCH_FAILURE, "a draw to nowhere fails");
	sim.curandDestroyGenerator(g);
}

int main(void)
{
	const char *path = getenv("RS_CURAND");

	drv_context();
	if (curand_open_sim(&sim)) {
		ok(0, "the stand-in library has all functions: %s", dlerror());
		return tap_done();
	}
	must(cuMemAlloc(&out, ROOM * 8));
	must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	known();
	in_order();
	captured();
	refused();
	if (!curand_open(&real, path ? path : "/usr/local/cuda/lib64/libcurand.so.10"))
		against_real();
	else
		tap_diag("no real libcurand: nothing compared with it");
	return tap_done();
}
