/* SPDX-License-Identifier: MIT */
/* The crossover map: its cells, as text and CSV. See map.h; map_svg.c draws it. */
#include "planner/map.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "planner/costing_priv.h"
#include "planner/fmt.h"

#define GIB 1073741824.0

const double rs_map_rhos[RS_MAP_RHOS] = {0.8, 1.25, 2, 4, 8, 16};
const double rs_map_betas[RS_MAP_BETAS] = {0.2, 0.4, 0.6, 0.8, 0.9, 0.95};
const double rs_map_densities[RS_MAP_DENSITIES] = {0.001, 0.01, 0.05, 0.1,  0.2,
						   0.4,	  0.6,	0.8,  0.95, 1};

/* 3.35 TB/s of memory, of which copies and digests reach 0.9, gathers 0.6; a copy reads and writes each byte. */
const struct rs_map_model rs_map_reference = {
	.n = 16,
	.activations = 3.2 * GIB,
	.inputs = 0.08 * GIB,
	.scratch = 0.1 * GIB,
	.replay_ns = 12e6,
	.other_ns = 1e6,
	.row = 512,
	.row_more = 16,
	.copy = 2 / (0.9 * 3350),
	.gather = 2 / (0.6 * 3350),
	.digest = 1 / (0.9 * 3350),
	.launch_ns = 6000,
};

/* --- one cell ----------------------------------------------------------------------------------- */

enum { RETAIN, WHOLE, REGIONS };

/* Held, transient, added time of a segment's option. */
static struct rs_arc option(const struct rs_map_model *m, int which, double buffer, double density)
{
	double rows = density * buffer / m->row, sector = 32 * ceil(m->row / 32);
	double kept = rows * (sector + m->row_more), held, transient, time;

	if (which == RETAIN) {
		held = m->activations;
		transient = m->scratch;
		time = 0;
	} else if (which == WHOLE) {
		held = m->inputs + buffer;
		transient = m->activations + m->scratch + buffer;
		time = m->replay_ns + 4 * buffer * m->copy + 2 * buffer * m->digest +
		       4 * m->launch_ns;
	} else {
		held = m->inputs + kept;
		transient = m->activations + m->scratch + kept;
		time = m->replay_ns + 4 * rows * sector * m->gather +
		       2 * rows * m->row * m->digest + 6 * m->launch_ns;
	}
	return (struct rs_arc){
		.option = which, .m = (int64_t)held, .w = (int64_t)transient, .t = (int64_t)time};
}

/* Added time of the best plan with those options (bits); -1: there is none. -ENOMEM. */
static int solve(const struct rs_map_model *m, const struct rs_arc *options, unsigned allowed,
		 int64_t budget, int64_t *ret_time)
{
	const struct rs_solve_options solve = {.tie = -1};
	struct rs_problem_error error;
	struct rs_solve_result s = {0};
	struct rs_problem p;
	uint32_t out = 0;
	int r = rs_problem_alloc(&p, m->n, 1, 3 * m->n);

	if (r)
		return r;
	for (uint32_t i = 0; i < m->n; i++) {
		p.cap[i] = budget;
		for (unsigned k = 0; k < 3; k++)
			if (allowed & 1u << k)
				p.arcs[out++] = options[k];
		p.first[i + 1] = out;
	}
	r = rs_problem_check(&p, &error);
	if (!r)
		r = rs_solve(&p, &solve, &s);
	if (!r) {
		*ret_time = s.status == RS_SOLVE_INFEASIBLE ? -1 : s.best;
		rs_solve_free(&s);
	}
	rs_problem_free(&p);
	return r;
}

/* From the peak of regions everywhere, hardly anything written (0), to that of retaining all (1). */
static double budget_at(const struct rs_map_model *m, double buffer, double beta)
{
	struct rs_arc least = option(m, REGIONS, buffer, rs_map_densities[0]);
	double floor = (double)m->n * (double)least.m + (double)least.w;
	double eager = m->n * m->activations + m->scratch;

	return beta < 0 ? m->budget : floor + beta * (eager - floor);
}

int rs_map_cell(const struct rs_map_model *m, double rho, double beta, double density,
		struct rs_map_cell *ret)
{
	double buffer = m->activations / rho;
	double base = m->n * 3 * m->replay_ns + m->other_ns;
	struct rs_arc options[3];
	int64_t joint, ew;
	int r;

	for (int k = 0; k < 3; k++)
		options[k] = option(m, k, buffer, density);
	ret->budget = (int64_t)budget_at(m, buffer, beta);
	r = solve(m, options, 7, ret->budget, &joint);
	if (!r)
		r = solve(m, options, 1u << RETAIN | 1u << WHOLE, ret->budget, &ew);
	if (r)
		return r;
	ret->state = joint < 0 ? RS_MAP_NEITHER : ew < 0 ? RS_MAP_ONLY_JOINT : RS_MAP_BOTH;
	ret->joint_ns = joint < 0 ? 0 : (int64_t)base + joint;
	ret->ew_ns = ew < 0 ? 0 : (int64_t)base + ew;
	ret->gain = ret->state == RS_MAP_BOTH ? 1 - (double)ret->joint_ns / (double)ret->ew_ns : 0;
	return 0;
}

int rs_map_make(const struct rs_map_model *m, struct rs_map *ret)
{
	int err = 0;

	for (int r = 0; r < RS_MAP_RHOS; r++)
		for (int b = 0; b < RS_MAP_BETAS; b++)
			for (int d = 0; !err && d < RS_MAP_DENSITIES; d++)
				err = rs_map_cell(m, rs_map_rhos[r], rs_map_betas[b],
						  rs_map_densities[d], &ret->cell[r][b][d]);
	return err;
}

double rs_map_less_memory(const struct rs_map_model *m)
{
	return m->row / (32 * ceil(m->row / 32) + m->row_more);
}

double rs_map_less_time(const struct rs_map_model *m)
{
	double sector = 32 * ceil(m->row / 32);

	return (4 * m->copy + 2 * m->digest) / (4 * m->gather * sector / m->row + 2 * m->digest);
}

/* --- a measured program ------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

enum { ACTIVATIONS, INPUTS, SCRATCH, REPLAY, BUFFER, KEPT, ROW, MEDIANS };

static void values(const struct rs_costs *c, uint32_t i, double v[MEDIANS])
{
	const struct rs_cost *s = &c->segment[i];
	uint64_t after = i + 1 < c->n ? s[1].live_forward : c->usage.turn_bytes;
	struct rs_events e;

	rs_costs_events(c, i, &e);
	v[ACTIVATIONS] = (double)e.activations;
	v[INPUTS] = (double)rs_less(after, s->live_forward);
	v[SCRATCH] = (double)(e.retained_backward - e.base);
	v[REPLAY] = (double)(s->replay.n ? s->replay.median_ns : s->forward.median_ns);
	v[BUFFER] = (double)s->whole_bytes;
	v[KEPT] = (double)s->kept_bytes;
	v[ROW] = s->kept_pieces ? (double)s->kept_bytes / (double)s->kept_pieces : 0;
}

static double rate(const struct rs_costs *c, enum rs_rate_kind kind, double otherwise)
{
	return c->rate[kind].n && c->rate[kind].gib_ns ? (double)c->rate[kind].gib_ns / GIB
						       : otherwise;
}

int rs_map_measured(const struct rs_costs *c, uint64_t budget, struct rs_map_model *ret)
{
	double *all = calloc((size_t)(c->n + 1) * MEDIANS, sizeof(*all)), v[MEDIANS];
	uint32_t n = 0;

	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n; i++) {
		if (!(c->segment[i].flags & RS_COST_REPLAYED))
			continue;
		values(c, i, v);
		for (int k = 0; k < MEDIANS; k++)
			all[(size_t)k * c->n + n] = v[k];
		n++;
	}
	for (int k = 0; n && k < MEDIANS; k++) {
		qsort(&all[(size_t)k * c->n], n, sizeof(*all), by_value);
		v[k] = all[(size_t)k * c->n + n / 2];
	}
	free(all);
	if (!n || !v[ACTIVATIONS] || !v[REPLAY])
		return -ENODATA;
	*ret = rs_map_reference;
	ret->n = n < 64 ? n : 64;
	ret->activations = v[ACTIVATIONS];
	ret->inputs = v[INPUTS];
	ret->scratch = v[SCRATCH];
	ret->replay_ns = v[REPLAY];
	ret->other_ns = 0;
	ret->row = v[ROW] >= 1 ? floor(v[ROW]) : ret->row;
	ret->digest = rate(c, RS_RATE_DIGEST, ret->digest);
	ret->copy = rate(c, RS_RATE_COPY, ret->copy);
	/* copies of small pieces only say little about large ones: see costing_price.c */
	if (c->rate[RS_RATE_DIGEST].n && !c->rate[RS_RATE_COPY].each_ns &&
	    ret->copy > 2 * ret->digest)
		ret->copy = 2 * ret->digest;
	ret->gather = rate(c, RS_RATE_MOVE, 1.5 * ret->copy);
	ret->launch_ns = c->rate[RS_RATE_DIGEST].n ? (double)c->rate[RS_RATE_DIGEST].each_ns
						   : ret->launch_ns;
	ret->rho = v[BUFFER] > 0 ? v[ACTIVATIONS] / v[BUFFER] : 0;
	ret->density = v[BUFFER] > 0 ? v[KEPT] / v[BUFFER] : 0;
	ret->budget = budget ? (double)budget - (double)c->segment[0].live_forward : 0;
	return 0;
}

/* --- text and CSV ------------------------------------------------------------------------------- */

static void head(FILE *out, const struct rs_map_model *m)
{
	struct rs_fmt a, b, c, d;

	fprintf(out,
		"Step time that joint plans save over eager/whole ones, in %%.  X: only joint has a plan"
		"  -: neither\n"
		".: less than 0.5  rho: activations / buffer  beta: budget, from regions alone (0) to "
		"all retained (1)\n"
		"%u segments; activations %s, inputs %s, scratch %s, rows of %.0f B",
		m->n, rs_fmt_bytes(&a, (uint64_t)m->activations),
		rs_fmt_bytes(&b, (uint64_t)m->inputs), rs_fmt_bytes(&c, (uint64_t)m->scratch),
		m->row);
	fprintf(out, "; replay %s; copy %.0f, gather %.0f, digest %.0f GB/s, launch %s\n",
		rs_fmt_ns(&d, (uint64_t)m->replay_ns), 1 / m->copy, 1 / m->gather, 1 / m->digest,
		rs_fmt_ns(&a, (uint64_t)m->launch_ns));
}

const char *rs_map_mark(const struct rs_map_cell *c, char text[16])
{
	if (c->state != RS_MAP_BOTH)
		snprintf(text, 16, "%s", c->state == RS_MAP_ONLY_JOINT ? "X" : "-");
	else if (c->gain < 0.005)
		snprintf(text, 16, ".");
	else
		snprintf(text, 16, "%.1f", 100 * c->gain);
	return text;
}

/* What one can do about the program that was measured. */
static void place(FILE *out, const struct rs_map_model *m)
{
	struct rs_map_cell cell;
	struct rs_fmt a, b;

	if (m->rho <= 0)
		return;
	fprintf(out, "\nthis program: rho %.2f, density %.3g", m->rho, m->density);
	if (m->budget > 0 && !rs_map_cell(m, m->rho, -1, m->density, &cell)) {
		fprintf(out, "; with %s above what it always has: ",
			rs_fmt_bytes(&a, (uint64_t)cell.budget));
		if (cell.state == RS_MAP_BOTH)
			fprintf(out, "joint saves %.1f%% of %s", 100 * cell.gain,
				rs_fmt_ns(&b, (uint64_t)cell.ew_ns));
		else
			fputs(cell.state == RS_MAP_NEITHER ? "no plan" : "only joint has a plan",
			      out);
	}
	fputc('\n', out);
}

void rs_map_text(FILE *out, const struct rs_map_model *m, const struct rs_map *map)
{
	char text[16];

	head(out, m);
	fputs("\n   rho  beta", out);
	for (int d = 0; d < RS_MAP_DENSITIES; d++)
		fprintf(out, "%6.3g", rs_map_densities[d]);
	fputs("  of a buffer written\n", out);
	for (int r = 0; r < RS_MAP_RHOS; r++)
		for (int b = 0; b < RS_MAP_BETAS; b++) {
			fprintf(out, "%6.2f%6.2f", rs_map_rhos[r], rs_map_betas[b]);
			for (int d = 0; d < RS_MAP_DENSITIES; d++)
				fprintf(out, "%6s", rs_map_mark(&map->cell[r][b][d], text));
			fputc('\n', out);
		}
	fprintf(out,
		"\nrows hold less than whole buffers below a density of %.3f, and take less time below "
		"%.3f\n",
		rs_map_less_memory(m), rs_map_less_time(m));
	place(out, m);
}

void rs_map_csv(FILE *out, const struct rs_map_model *m, const struct rs_map *map)
{
	static const char *const states[] = {"both", "only joint", "neither"};

	fputs("segments,rho,beta,density,budget_bytes,state,joint_ns,eager_whole_ns,gain\n", out);
	for (int r = 0; r < RS_MAP_RHOS; r++)
		for (int b = 0; b < RS_MAP_BETAS; b++)
			for (int d = 0; d < RS_MAP_DENSITIES; d++) {
				const struct rs_map_cell *c = &map->cell[r][b][d];

				fprintf(out, "%u,%g,%g,%g,%" PRId64 ",%s,", m->n, rs_map_rhos[r],
					rs_map_betas[b], rs_map_densities[d], c->budget,
					states[c->state]);
				if (c->state != RS_MAP_NEITHER)
					fprintf(out, "%" PRId64, c->joint_ns);
				fputc(',', out);
				if (c->state == RS_MAP_BOTH)
					fprintf(out, "%" PRId64 ",%.6f", c->ew_ns, c->gain);
				else
					fputc(',', out);
				fputc('\n', out);
			}
}
