/* SPDX-License-Identifier: MIT */
/* The problem in LP format. See lpwrite.h. */
#include "planner/lpwrite.h"

#include <inttypes.h>

#define GB_DIGITS 9
#define MS_DIGITS 6

/* value / 10^digits, exactly; the sign is written apart, as terms need it. */
static void put(FILE *out, int64_t value, int digits)
{
	uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value, unit = 1;

	for (int i = 0; i < digits; i++)
		unit *= 10;
	fprintf(out, "%" PRIu64 ".%0*" PRIu64, magnitude / unit, digits, magnitude % unit);
}

static void term(FILE *out, int64_t factor, int digits, uint32_t i, uint32_t k)
{
	fputs(factor < 0 ? "\n - " : "\n + ", out);
	put(out, factor, digits);
	fprintf(out, " x%u_%u", i, k);
}

/* P<i> = P<i-1> + m, and P<i-1> + m + w <= cap. */
static void segment_bytes(FILE *out, const struct rs_problem *p, uint32_t i)
{
	uint32_t n = p->first[i + 1] - p->first[i];
	const struct rs_arc *a = &p->arcs[p->first[i]];

	fprintf(out, "held%u: P%u", i, i);
	if (i)
		fprintf(out, " - P%u", i - 1);
	for (uint32_t k = 0; k < n; k++)
		term(out, -a[k].m, GB_DIGITS, i, k);
	fprintf(out, "\n = 0\ncap%u: 0 P%u", i, i);
	if (i)
		fprintf(out, " + P%u", i - 1);
	for (uint32_t k = 0; k < n; k++)
		term(out, a[k].m + a[k].w, GB_DIGITS, i, k);
	fprintf(out, "\n <= %s", p->cap[i] < 0 ? "-" : "");
	put(out, p->cap[i], GB_DIGITS);
	fputc('\n', out);
}

/* One arc for each segment, and modes that agree with the segment before. */
static void segment_choice(FILE *out, const struct rs_problem *p, uint32_t i)
{
	fprintf(out, "one%u:", i);
	for (uint32_t k = p->first[i]; k < p->first[i + 1]; k++)
		fprintf(out, "\n + x%u_%u", i, k - p->first[i]);
	fputs("\n = 1\n", out);
	for (uint32_t mode = 0; p->modes > 1 && mode < p->modes; mode++) {
		fprintf(out, "mode%u_%u: 0 P%u", i, mode, i);
		for (uint32_t k = p->first[i]; k < p->first[i + 1]; k++)
			if (p->arcs[k].from == mode)
				fprintf(out, "\n + x%u_%u", i, k - p->first[i]);
		for (uint32_t k = i ? p->first[i - 1] : 0; i && k < p->first[i]; k++)
			if (p->arcs[k].to == mode)
				fprintf(out, "\n - x%u_%u", i - 1, k - p->first[i - 1]);
		fprintf(out, "\n = %d\n", !i && !mode);
	}
}

void rs_lp_write(FILE *out, const struct rs_problem *p)
{
	fputs("\\ replayshim: least added time in ms, bytes in GB\nMinimize\nadded:", out);
	for (uint32_t i = 0; i < p->n; i++)
		for (uint32_t k = p->first[i]; k < p->first[i + 1]; k++)
			term(out, p->arcs[k].t, MS_DIGITS, i, k - p->first[i]);
	fputs("\nSubject To\n", out);
	for (uint32_t i = 0; i < p->n; i++) {
		segment_bytes(out, p, i);
		segment_choice(out, p, i);
	}
	fputs("Binaries\n", out);
	for (uint32_t i = 0; i < p->n; i++)
		for (uint32_t k = p->first[i]; k < p->first[i + 1]; k++)
			fprintf(out, "x%u_%u\n", i, k - p->first[i]);
	fputs("End\n", out);
}
