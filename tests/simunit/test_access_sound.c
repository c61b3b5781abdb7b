/* SPDX-License-Identifier: MIT */
/*
 * The access analyser against the engine: generated and real kernels are executed, and every access
 * made must lie within what the analyser says; what it calls densely written must be.
 *
 * Each pointer has a region of its own, far larger than any index, so that attribution is by
 * address. Seeds are printed on failure; RS_SEED=n runs one, RS_COUNT=n how many.
 */
#include "tests/tap.h"
#include "tests/simcuda/exec.h"
#include "tests/simunit/kernel_gen.h"
#include "tracker/ptx_access.h"

#include <dirent.h>
#include <stdint.h>
#include <sys/mman.h>

#define REGION	    ((uint64_t)1 << 38)
#define MAX_RECORDS (1 << 21)

static uint64_t region[GEN_POINTERS]; /* middle */

struct record {
	uint64_t addr;
	uint32_t bytes;
	uint8_t is_write;
};

static struct record *records;
static size_t nrecords;
static int overflowed;

static void on_access(void *opaque, uint64_t addr, unsigned bytes, int is_write)
{
	(void)opaque;
	if (nrecords == MAX_RECORDS) {
		overflowed = 1;
		return;
	}
	records[nrecords++] = (struct record){addr, bytes, (uint8_t)is_write};
}

/* Module variables get ranges of their own. */
#define MAX_GLOBALS 40
static struct sim_range globals[MAX_GLOBALS];
static unsigned nglobals;

static void *alloc_global(void *opaque, size_t size, size_t align)
{
	size_t room = (size + 4095) / 4096 * 4096;
	void *p = aligned_alloc(align < 4096 ? 4096 : align, room ? room : 4096);

	(void)opaque;
	if (p && nglobals < MAX_GLOBALS)
		globals[nglobals++] = (struct sim_range){(uint64_t)(uintptr_t)p, size, NULL, 0};
	return p;
}

static void free_globals(void)
{
	while (nglobals)
		free((void *)(uintptr_t)globals[--nglobals].base);
}

static int in_globals(uint64_t addr)
{
	for (unsigned i = 0; i < nglobals; i++)
		if (addr - globals[i].base < globals[i].size)
			return 1;
	return 0;
}

struct totals {
	uint64_t others, same;
	unsigned kernels, opaque, sides, known, writes, dense, faults;
	unsigned nratio;
	double ratio[20000];
};

static struct totals totals;

/* Is the access within the extent of some word that points into its region? */
static int explained(const struct rs_ptx_kernel *k, const struct rs_ptx_extent (*x)[2],
		     const uint8_t *params, const struct record *r)
{
	if (in_globals(r->addr))
		return r->is_write ? k->writes_globals : k->reads_globals;
	for (uint32_t w = 0; w < k->nwords; w++) {
		const struct rs_ptx_extent *e = &x[w][r->is_write];
		uint64_t p;

		if (!(k->words[w].dir & (r->is_write ? RS_PTX_WRITES : RS_PTX_READS)))
			continue;
		memcpy(&p, params + k->words[w].offset, 8);
		if (!e->known) {
			if (r->addr - (p - REGION / 2) < REGION)
				return 1;
		} else if ((int64_t)(r->addr - p) >= e->lo &&
			   (int64_t)(r->addr - p) + r->bytes <= e->hi) {
			return 1;
		}
	}
	return 0;
}

/* Was every byte of the dense extent written? */
static int covered(const struct rs_ptx_extent *e, uint64_t p)
{
	uint64_t size = (uint64_t)(e->hi - e->lo), n = 0;
	uint8_t *seen;

	if (size > 64 << 20)
		return 0;
	seen = calloc(1, size + 1);
	for (size_t i = 0; i < nrecords; i++)
		for (unsigned b = 0; records[i].is_write && b < records[i].bytes; b++) {
			uint64_t at = records[i].addr + b - (p + (uint64_t)e->lo);

			if (at < size && !seen[at]) {
				seen[at] = 1;
				n++;
			}
		}
	free(seen);
	return n == size;
}

static void note_ratio(const struct rs_ptx_extent *e, uint64_t p, int is_write)
{
	int64_t lo = INT64_MAX, hi = INT64_MIN;

	for (size_t i = 0; i < nrecords; i++) {
		int64_t at = (int64_t)(records[i].addr - p);

		if (records[i].is_write != is_write || at > (int64_t)REGION / 2 ||
		    at < -(int64_t)REGION / 2)
			continue;
		lo = at < lo ? at : lo;
		hi = at + records[i].bytes > hi ? at + records[i].bytes : hi;
	}
	if (lo < hi && totals.nratio < 20000)
		totals.ratio[totals.nratio++] = (double)(e->hi - e->lo) / (double)(hi - lo);
}

/* Parameters that are said to have the same bounds: other pointers, and one other byte. Are they? */
static int are_same(const struct rs_ptx_kernel *k, const struct rs_ptx_launch *launch,
		    struct rs_ptx_extent (*x)[2])
{
	uint64_t n = launch->nparams_bytes;
	uint8_t *other = malloc(n + 1);
	struct rs_ptx_launch l = *launch;
	struct rs_ptx_extent y;
	int same = 1;

	l.params = other;
	for (uint64_t i = 0; i < n && same; i += 3) {
		memcpy(other, launch->params, n);
		for (uint32_t w = 0; w < k->nwords; w++)
			if (k->words[w].offset + 8 <= n)
				other[k->words[w].offset + 2] ^= 0x11;
		other[i] ^= 1;
		totals.others++;
		if (!rs_ptx_access_same(k, launch->params, other, n))
			continue;
		totals.same++;
		for (uint32_t w = 0; w < 2 * k->nwords; w++) {
			const struct rs_ptx_extent *e = &x[w / 2][w % 2];

			rs_ptx_access_eval(k, w / 2, w % 2 ? RS_PTX_WRITES : RS_PTX_READS, &l, &y);
			same &= y.known == e->known && y.dense == e->dense && y.lo == e->lo &&
				y.hi == e->hi;
		}
	}
	free(other);
	return same;
}

/* Checks after a run; returns what is wrong, or NULL. */
static const char *judge(const struct rs_ptx_kernel *k, const struct rs_ptx_launch *launch,
			 int complete)
{
	struct rs_ptx_extent(*x)[2] = calloc(k->nwords + 1, sizeof(*x));
	const char *wrong = NULL;

	for (uint32_t w = 0; w < k->nwords; w++)
		for (int d = 0; d < 2; d++)
			rs_ptx_access_eval(k, w, d ? RS_PTX_WRITES : RS_PTX_READS, launch,
					   &x[w][d]);
	if (!are_same(k, launch, x))
		wrong = "bounds that are not the same";
	for (size_t i = 0; i < nrecords && !wrong; i++)
		if (!k->opaque && !explained(k, x, launch->params, &records[i])) {
			tap_diag("%s of %u bytes at %" PRIx64,
				 records[i].is_write ? "write" : "read", records[i].bytes,
				 records[i].addr);
			wrong = "an access outside of the extents";
		}
	for (uint32_t w = 0; w < k->nwords; w++) {
		uint64_t p;

		memcpy(&p, launch->params + k->words[w].offset, 8);
		for (int d = 0; d < 2; d++) {
			if (!(k->words[w].dir & (d ? RS_PTX_WRITES : RS_PTX_READS)))
				continue;
			totals.sides++;
			totals.known += x[w][d].known;
			if (x[w][d].known)
				note_ratio(&x[w][d], p, d);
		}
		if (!(k->words[w].dir & RS_PTX_WRITES))
			continue;
		totals.writes++;
		totals.dense += x[w][1].dense;
		if (complete && x[w][1].dense && !covered(&x[w][1], p)) {
			tap_diag("word +%u dense [%" PRId64 ", %" PRId64 ")", k->words[w].offset,
				 x[w][1].lo, x[w][1].hi);
			wrong = "a dense extent with a hole";
		}
	}
	for (uint32_t w = 0; wrong && w < k->nwords; w++)
		tap_diag("word +%u: reads %d [%" PRId64 ", %" PRId64 "), writes %d [%" PRId64
			 ", %" PRId64 ")",
			 k->words[w].offset, x[w][0].known, x[w][0].lo, x[w][0].hi, x[w][1].known,
			 x[w][1].lo, x[w][1].hi);
	free(x);
	return wrong;
}

static int by_base(const void *a, const void *b)
{
	const struct sim_range *x = a, *y = b;

	return x->base < y->base ? -1 : x->base > y->base;
}

static const char *execute(const struct rs_ptx_kernel *k, const struct sim_module *m,
			   const struct rs_ptx_launch *launch)
{
	struct sim_range ranges[GEN_POINTERS + MAX_GLOBALS];
	struct sim_launch run = {
		.kernel = sim_module_kernel(m, k->name),
		.params = launch->params,
		.ranges = ranges,
		.nranges = GEN_POINTERS + nglobals,
		.on_access = on_access,
		.shared_dynamic = 16384,
		.max_insns = 4000000,
	};
	struct sim_fault fault = {0};
	struct sim_counts counts;
	enum sim_fault_kind kind;

	for (unsigned i = 0; i < GEN_POINTERS; i++)
		ranges[i] = (struct sim_range){region[i] - REGION / 2, REGION, NULL, 0};
	memcpy(ranges + GEN_POINTERS, globals, nglobals * sizeof(*globals));
	qsort(ranges, run.nranges, sizeof(*ranges), by_base);
	memcpy(run.grid, launch->grid, sizeof(run.grid));
	memcpy(run.block, launch->block, sizeof(run.block));
	nrecords = 0;
	overflowed = 0;
	kind = sim_exec(&run, &fault, &counts);
	totals.faults += kind != SIM_OK;
	if (kind != SIM_OK && getenv("RS_VERBOSE"))
		tap_diag("%s: %s", k->name, fault.text);
	return judge(k, launch, kind == SIM_OK && !overflowed);
}

/* One generated kernel at two launches. */
static int try_seed(uint64_t seed)
{
	static struct gen g;
	struct rs_ptx_error err;
	struct rs_ptx_module *am = NULL;
	struct rs_ptx *ptx = NULL;
	struct sim_module *m;
	const char *wrong = NULL;
	char text[256] = "";

	memset(&g, 0, sizeof(g));
	g.rng = seed * 0x9e3779b97f4a7c15ull + 12345;
	for (int i = 0; i < 4; i++)
		gen_rand(&g, 2);
	if (seed % 3 == 0)
		gen_tame(&g);
	else
		gen_wild(&g);
	m = sim_module_load(g.text, g.len, alloc_global, NULL, text, sizeof(text));
	if (rs_ptx_parse(g.text, g.len, &ptx, &err) || rs_ptx_analyse(ptx, &am) || !m) {
		tap_diag("seed %" PRIu64 ": %u %s %s", seed, ptx ? 0 : err.line,
			 ptx ? "" : err.text, text);
		wrong = "the kernel was refused";
	}
	for (unsigned run = 0; run < 2 && !wrong; run++) {
		uint8_t params[GEN_PARAM_BYTES];
		uint32_t n = gen_rand(&g, 150), mm = gen_rand(&g, 9) + 1;
		uint64_t len = gen_rand(&g, 100);
		struct rs_ptx_launch launch = {
			.grid = {gen_rand(&g, 4) + 1, gen_rand(&g, 3) + 1, 1},
			.block = {1u << gen_rand(&g, 6), gen_rand(&g, 2) + 1, 1},
			.params = params,
			.nparams_bytes = GEN_PARAM_BYTES,
		};

		memcpy(params, region, sizeof(region));
		/* Sometimes two parameters are one buffer. */
		if (!gen_rand(&g, 4))
			memcpy(params + 8, &region[0], 8);
		memcpy(params + 40, &n, 4);
		memcpy(params + 44, &mm, 4);
		memcpy(params + 48, &len, 8);
		totals.kernels++;
		totals.opaque += am->kernels[0].opaque;
		wrong = execute(&am->kernels[0], m, &launch);
		if (wrong)
			tap_diag("grid %u,%u block %u,%u n %u m %u", launch.grid[0], launch.grid[1],
				 launch.block[0], launch.block[1], n, mm);
	}
	if (wrong) {
		tap_diag("seed %" PRIu64 ": %s", seed, wrong);
		if (getenv("RS_SEED"))
			fwrite(g.text, 1, g.len, stderr);
	}
	rs_ptx_module_free(am);
	if (ptx)
		rs_ptx_free(ptx);
	if (m)
		sim_module_free(m);
	free_globals();
	return !wrong;
}

/* Parameters for a kernel of which only the words are known: pointers there, small numbers else. */
static void fill_params(struct gen *g, const struct rs_ptx_kernel *k, uint8_t *params)
{
	for (uint64_t at = 0; at + 4 <= k->param_bytes; at += 4) {
		uint32_t v = gen_rand(g, 40) + (gen_rand(g, 3) ? 0 : 100);

		memcpy(params + at, &v, 4);
	}
	for (uint32_t w = 0; w < k->nwords; w++) {
		uint64_t p = gen_rand(g, 200);

		if (k->words[w].dir)
			p = region[w % GEN_POINTERS];
		memcpy(params + k->words[w].offset, &p, 8);
	}
}

static const char *try_kernel(struct gen *g, const struct rs_ptx_kernel *k,
			      const struct sim_module *m)
{
	uint8_t params[4096] = {0};
	struct rs_ptx_launch launch = {.params = params, .nparams_bytes = k->param_bytes};
	unsigned limit = sim_kernel_max_threads(sim_module_kernel(m, k->name));

	if (k->param_bytes > sizeof(params))
		return NULL;
	for (unsigned i = 0; i < 3; i++) {
		launch.grid[i] = i < 2 ? gen_rand(g, 5) + 1 : 1;
		launch.block[i] = i == 0 ? 1u << gen_rand(g, 8) : i == 1 ? 1u << gen_rand(g, 3) : 1;
	}
	if (limit && launch.block[0] * launch.block[1] > limit) {
		launch.block[0] = limit;
		launch.block[1] = 1;
	}
	fill_params(g, k, params);
	totals.kernels++;
	totals.opaque += k->opaque;
	return execute(k, m, &launch);
}

/* All kernels of a file of real PTX, some launches each. */
static int try_file(const char *path)
{
	static struct gen g;
	struct rs_ptx_module *am = NULL;
	struct rs_ptx *ptx = NULL;
	struct rs_ptx_error err;
	struct sim_module *m = NULL;
	const char *wrong = NULL;
	size_t len = 0;
	char text[256] = "", *data = malloc(4 << 20);
	FILE *f = fopen(path, "rb");

	g.rng = 99;
	if (f) {
		len = fread(data, 1, 4 << 20, f);
		fclose(f);
		m = sim_module_load(data, len, alloc_global, NULL, text, sizeof(text));
	}
	if (!m || rs_ptx_parse(data, len, &ptx, &err) || rs_ptx_analyse(ptx, &am))
		wrong = "the module was refused";
	for (uint32_t i = 0; am && i < am->nkernels; i++)
		for (unsigned run = 0; run < 12 && !wrong; run++) {
			wrong = try_kernel(&g, &am->kernels[i], m);
			if (wrong)
				tap_diag("kernel %s, run %u", am->kernels[i].name, run);
		}
	if (wrong)
		tap_diag("%s: %s %s", path, wrong, text);
	rs_ptx_module_free(am);
	if (ptx)
		rs_ptx_free(ptx);
	if (m)
		sim_module_free(m);
	free_globals();
	free(data);
	return !wrong;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void summary(const char *what)
{
	qsort(totals.ratio, totals.nratio, sizeof(double), by_value);
	tap_diag(
		"%s: %u launches (%u opaque, %u cut short), known bounds %u of %u, dense %u of %u writes",
		what, totals.kernels, totals.opaque, totals.faults, totals.known, totals.sides,
		totals.dense, totals.writes);
	if (totals.nratio)
		tap_diag("%s: bounds over bytes touched: median %.2f, 90%% below %.2f", what,
			 totals.ratio[totals.nratio / 2], totals.ratio[totals.nratio * 9 / 10]);
	memset(&totals, 0, sizeof(totals));
}

static void try_directory(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	unsigned files = 0, good = 0;

	while (d && (e = readdir(d))) {
		size_t len = strlen(e->d_name);
		char path[512];

		if (len < 5 || strcmp(e->d_name + len - 4, ".ptx"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		files++;
		good += (unsigned)try_file(path);
	}
	if (d)
		closedir(d);
	if (files) {
		ok(good == files, "%u files of compiled kernels stay within their extents", files);
		summary(dir);
	}
}

static void map_regions(void)
{
	for (unsigned i = 0; i < GEN_POINTERS; i++) {
		void *p = mmap(NULL, REGION, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		int32_t *at;

		if (p == MAP_FAILED)
			tap_skip_all("no address space for the regions");
		region[i] = (uint64_t)(uintptr_t)p + REGION / 2;
		at = (int32_t *)(uintptr_t)region[i];
		for (int j = 0; j < 4096; j++)
			at[j] = j * 37 % 61;
	}
	/* The engine wants ranges in order of their bases. */
	for (unsigned i = 1; i < GEN_POINTERS; i++)
		for (unsigned j = i; j && region[j - 1] > region[j]; j--) {
			uint64_t t = region[j];

			region[j] = region[j - 1];
			region[j - 1] = t;
		}
}

int main(void)
{
	const char *one = getenv("RS_SEED"), *many = getenv("RS_COUNT");
	const char *scale = getenv("RS_TEST_SCALE");
	uint64_t parts = scale && atoi(scale) > 0 ? strtoull(scale, NULL, 0) : 1;
	uint64_t count = many ? strtoull(many, NULL, 0) : 600 / parts, good = 0;

	records = malloc(MAX_RECORDS * sizeof(*records));
	map_regions();
	if (one) {
		ok(try_seed(strtoull(one, NULL, 0)), "seed %s", one);
		summary("seed");
		return tap_done();
	}
	for (uint64_t seed = 1; seed <= count; seed++)
		good += (uint64_t)try_seed(seed);
	ok(totals.same > totals.others / 10 && totals.same < totals.others,
	   "%" PRIu64 " of %" PRIu64 " other parameters have the same bounds", totals.same,
	   totals.others);
	ok(good == count, "%" PRIu64 " generated kernels stay within their extents", count);
	summary("generated");
	try_directory(getenv("RS_KERNELS") ? getenv("RS_KERNELS") : "tests/kernels");
	return tap_done();
}
