/* SPDX-License-Identifier: MIT */
/*
 * The planner on realistic problems (plan_gen.h), in processor time: median, 90th percentile and
 * worst to the proven optimum and to a gap; equal segments; beside it on the same problems a knapsack
 * over rounded bytes, with the bytes by which its plan exceeds the budget, and cbc and glpsol on the
 * exported file where they are installed (one problem of each size, SECONDS at most).
 *
 * The knapsack is our own re-implementation of what memory-budget planners do: bytes in steps of 1e-4
 * of all activations, rounded to nearest, float sums, no transients. It minimises the same times.
 */
#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "planner/lpwrite.h"
#include "tests/bench/plan_gen.h"

#define SECONDS 20
#define STEPS	10000
#define RUNS	40

static double now_ms(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int ascending(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return a < b ? -1 : a > b;
}

/* ms of processor time; the result is to be freed. */
static double solve(const struct rs_problem *p, double gap, struct rs_solve_result *s)
{
	struct rs_solve_options options = {.tie = -1, .gap = gap};
	double begin = now_ms(CLOCK_PROCESS_CPUTIME_ID);

	if (rs_solve(p, &options, s))
		exit(1);
	return now_ms(CLOCK_PROCESS_CPUTIME_ID) - begin;
}

/* Seeds from 1 on, each at 0.1 and 0.4 of the way from the least possible peak to retaining all. */
static void distribution(uint32_t n, int runs, double gap)
{
	double ms[RUNS] = {0}, worst = 0;
	int proven = 0;

	for (int i = 0; i < runs; i++) {
		struct rs_solve_result s;
		struct rs_problem p;

		gen_problem(&p, n, 1 + (uint64_t)i / 2, i % 2 ? 0.4 : 0.1, 0);
		ms[i] = solve(&p, gap, &s);
		proven += s.status == RS_SOLVE_OPTIMAL;
		worst = s.gap > worst ? s.gap : worst;
		rs_solve_free(&s);
		rs_problem_free(&p);
	}
	qsort(ms, (size_t)runs, sizeof(*ms), ascending);
	printf("planner n=%u gap %g: median %.2f ms, p90 %.2f, max %.2f; %d of %d optimal, worst "
	       "gap %.1e\n",
	       n, gap, ms[runs / 2], ms[runs * 9 / 10], ms[runs - 1], proven, runs, worst);
}

static void equal(void)
{
	double ms[20];

	for (int i = 0; i < 20; i++) {
		struct rs_solve_result s;
		struct rs_problem p;

		gen_problem(&p, 4096, 1 + (uint64_t)i / 2, i % 2 ? 0.4 : 0.1, 1);
		ms[i] = solve(&p, 0, &s);
		if (s.status != RS_SOLVE_OPTIMAL)
			printf("planner: equal segments, seed %d: not optimal\n", 1 + i / 2);
		rs_solve_free(&s);
		rs_problem_free(&p);
	}
	qsort(ms, 20, sizeof(*ms), ascending);
	printf("planner 4096 equal segments, gap 0: median %.2f ms, max %.2f\n", ms[10], ms[19]);
}

/* Takes the last option at which the table was reached, from the end. */
static void take_back(const struct rs_problem *p, const uint8_t *taken, double unit, uint32_t at,
		      uint32_t *arc)
{
	for (uint32_t i = p->n; i-- > 0;) {
		arc[i] = taken[(size_t)i * (STEPS + 1) + at];
		at -= (uint32_t)lround((double)p->arcs[p->first[i] + arc[i]].m / unit);
	}
}

/* Least time over rounded bytes; 0, or -1 without a plan. */
static int quantised(const struct rs_problem *p, uint32_t *arc)
{
	double unit = (double)gen_peak(p, 0) / STEPS;
	uint32_t budget = (uint32_t)((double)p->cap[0] / unit), at;
	float *best = malloc((STEPS + 1) * sizeof(*best)),
	      *next = malloc((STEPS + 1) * sizeof(*best));
	uint8_t *taken = calloc((size_t)p->n * (STEPS + 1), 1);
	int found;

	for (uint32_t b = 0; b <= STEPS; b++)
		best[b] = b ? INFINITY : 0;
	for (uint32_t i = 0; i < p->n; i++) {
		float *swap = best;

		for (uint32_t b = 0; b <= budget; b++)
			next[b] = INFINITY;
		for (uint32_t k = p->first[i]; k < p->first[i + 1]; k++) {
			uint32_t m = (uint32_t)lround((double)p->arcs[k].m / unit);
			float t = (float)p->arcs[k].t;

			for (uint32_t b = m; b <= budget; b++)
				if (best[b - m] + t < next[b]) {
					next[b] = best[b - m] + t;
					taken[(size_t)i * (STEPS + 1) + b] =
						(uint8_t)(k - p->first[i]);
				}
		}
		best = next;
		next = swap;
	}
	at = 0;
	for (uint32_t b = 0; b <= budget; b++)
		at = best[b] < best[at] ? b : at;
	found = best[at] < INFINITY;
	if (found)
		take_back(p, taken, unit, at, arc);
	free(taken);
	free(next);
	free(best);
	return found ? 0 : -1;
}

static void knapsack(uint32_t n, int runs)
{
	double ms = 0, sum_over = 0, peak_over = 0;
	uint32_t *arc = malloc(n * sizeof(*arc));
	int over = 0, broken = 0;

	for (int i = 0; i < runs; i++) {
		int64_t held = 0, peak = INT64_MIN;
		struct rs_problem p;
		double begin;

		gen_problem(&p, n, 1 + (uint64_t)i / 2, i % 2 ? 0.4 : 0.1, 0);
		begin = now_ms(CLOCK_PROCESS_CPUTIME_ID);
		if (quantised(&p, arc))
			exit(1);
		ms += (now_ms(CLOCK_PROCESS_CPUTIME_ID) - begin) / runs;
		for (uint32_t k = 0; k < n; k++) {
			held += p.arcs[p.first[k] + arc[k]].m;
			peak = held + p.arcs[p.first[k] + arc[k]].w > peak
				       ? held + p.arcs[p.first[k] + arc[k]].w
				       : peak;
		}
		over += held > p.cap[0];
		broken += peak > p.cap[0];
		sum_over = fmax(sum_over, (double)(held - p.cap[0]));
		peak_over = fmax(peak_over, (double)(peak - p.cap[0]));
		rs_problem_free(&p);
	}
	printf("  rounded knapsack n=%u: %.0f ms; held bytes over budget in %d of %d, by %.1f MiB at "
	       "most; peak over budget in %d, by %.1f MiB at most\n",
	       n, ms, over, runs, sum_over / 0x1p20, broken, peak_over / 0x1p20);
	free(arc);
}

static int installed(const char *program)
{
	char command[64];

	snprintf(command, sizeof(command), "command -v %s >/dev/null 2>&1", program);
	return !system(command);
}

/* Its own words for the result, and the wall time with reading the file. */
static void external(const char *name, const char *pattern, const char *arguments, const char *lp,
		     uint32_t n)
{
	char command[512], line[200] = "no result";
	double begin = now_ms(CLOCK_MONOTONIC);
	FILE *in;

	snprintf(command, sizeof(command), arguments, lp, SECONDS);
	strncat(command, pattern, sizeof(command) - strlen(command) - 1);
	in = popen(command, "r");
	if (!in)
		return;
	if (fgets(line, sizeof(line), in))
		line[strcspn(line, "\n")] = 0;
	pclose(in);
	printf("  %s n=%u: %.0f ms (wall); %s\n", name, n, now_ms(CLOCK_MONOTONIC) - begin, line);
}

static void externals(uint32_t n)
{
	char path[] = P_tmpdir "/planner-bench-XXXXXX.lp";
	int fd = mkstemps(path, 3);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
	struct rs_solve_result s;
	struct rs_problem p;

	if (!out)
		return;
	gen_problem(&p, n, 1, 0.4, 0);
	rs_lp_write(out, &p);
	fclose(out);
	printf("  planner n=%u: %.2f ms, ", n, solve(&p, 0, &s));
	printf("%s, %.6f ms added\n", rs_solve_status_names[s.status], (double)s.best / 1e6);
	if (installed("cbc"))
		external("cbc", " | grep -E '^(Result|Objective value)' | tr '\\n' ' '",
			 "cbc %s seconds %d ratioGap 0 allowableGap 0 solve 2>&1", path, n);
	if (installed("glpsol"))
		external("glpsol", " | grep -E '^(INTEGER|TIME|\\+.*mip)' | tail -2 | tr '\\n' ' '",
			 "glpsol --lp %s --tmlim %d 2>&1", path, n);
	unlink(path);
	rs_solve_free(&s);
	rs_problem_free(&p);
}

int main(void)
{
	static const struct {
		uint32_t n;
		int runs;
	} sizes[] = {{96, 40}, {256, 40}, {1000, 40}, {4096, 16}};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		distribution(sizes[i].n, sizes[i].runs, 0);
		distribution(sizes[i].n, sizes[i].runs, 1e-4);
		if (sizes[i].n == 4096)
			distribution(sizes[i].n, sizes[i].runs, 1e-3);
		knapsack(sizes[i].n, sizes[i].n > 1000 ? 2 : 8);
		externals(sizes[i].n);
		fflush(stdout);
	}
	equal();
	return 0;
}
