/* SPDX-License-Identifier: MIT */
/*
 * The crossover map as a drawing: one panel for each ratio of activations to buffer, density to the right, budget upwards. One
 * file without scripts, fonts or links; its colours follow the reader's light or dark scheme. Gains are shades of one blue,
 * and what cannot be planned is told apart by hatching and text, too, so that no meaning hangs on hue alone.
 */
#include <inttypes.h>

#include "planner/fmt.h"
#include "planner/map.h"

#define CELL_W	 46
#define CELL_H	 24
#define LEFT	 60
#define TOP	 92
#define PANEL_W	 (RS_MAP_DENSITIES * CELL_W + LEFT + 20)
#define PANEL_H	 (RS_MAP_BETAS * CELL_H + 74)
#define ACROSS	 2
#define SHADES	 6
#define FULL_PCT 20.0 /* the darkest shade */

/* Sequential blues, light to dark, with ink that is read on each; dark: on a dark page. */
static const char style[] =
	"<style>\n"
	"svg{--page:#fff;--ink:#1b1f24;--dim:#57606a;--none:#e6e8eb;--only:#fbe3bd;--line:#b35900;\n"
	"--s0:#f3f8fd;--s1:#d6e6f4;--s2:#abd0e6;--s3:#6aaed6;--s4:#3787c0;--s5:#105ba4}\n"
	"@media(prefers-color-scheme:dark){svg{--page:#14171c;--ink:#e8eaed;--dim:#9aa4af;--none:#2a2f37;\n"
	"--only:#4a3410;--line:#f0a33e;--s0:#19222c;--s1:#1d3348;--s2:#22496b;--s3:#2a6593;--s4:#4a8fc4;"
	"--s5:#8cc2ee}}\n"
	"text{font:11px system-ui,sans-serif;fill:var(--ink)}.dim{fill:var(--dim)}\n"
	".big{font-size:15px;font-weight:600}.panel{font-size:12px;font-weight:600}\n"
	".v{text-anchor:middle}.e{text-anchor:end}.t4,.t5{fill:#fff}\n"
	"@media(prefers-color-scheme:dark){.t5{fill:#0b1016}}\n"
	"</style>\n";

static int shade(const struct rs_map_cell *c)
{
	int s = (int)(c->gain * 100 / FULL_PCT * (SHADES - 1) + 0.999);

	return s < 0 ? 0 : s < SHADES ? s : SHADES - 1;
}

static void cell(FILE *out, const struct rs_map_cell *c, int x, int y, double density, double beta)
{
	char mark[16];
	int s = shade(c);

	fprintf(out, "<g><title>density %g, beta %g: ", density, beta);
	if (c->state == RS_MAP_BOTH)
		fprintf(out, "joint %.2f ms, eager/whole %.2f ms", (double)c->joint_ns / 1e6,
			(double)c->ew_ns / 1e6);
	else
		fputs(c->state == RS_MAP_NEITHER ? "no plan" : "only joint has a plan", out);
	fprintf(out, "</title><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" ", x, y,
		CELL_W - 1, CELL_H - 1);
	if (c->state == RS_MAP_BOTH)
		fprintf(out, "fill=\"var(--s%d)\"/>", s);
	else if (c->state == RS_MAP_NEITHER)
		fputs("fill=\"var(--none)\"/>", out);
	else
		fputs("fill=\"url(#only)\"/>", out);
	fprintf(out, "<text class=\"v%s\" x=\"%d\" y=\"%d\">%s</text></g>\n",
		c->state != RS_MAP_BOTH ? " dim"
		: s == SHADES - 1	? " t5"
		: s == SHADES - 2	? " t4"
					: "",
		x + CELL_W / 2, y + CELL_H / 2 + 4, rs_map_mark(c, mark));
}

/* Is the measured program nearest to this panel? */
static int is_here(const struct rs_map_model *m, int r)
{
	int best = 0;

	for (int k = 1; m->rho > 0 && k < RS_MAP_RHOS; k++) {
		double now = rs_map_rhos[k] / m->rho, old = rs_map_rhos[best] / m->rho;

		if ((now > 1 ? now : 1 / now) < (old > 1 ? old : 1 / old))
			best = k;
	}
	return m->rho > 0 && best == r;
}

static void panel(FILE *out, const struct rs_map_model *m, const struct rs_map *map, int r)
{
	int x0 = r % ACROSS * PANEL_W + LEFT, y0 = r / ACROSS * PANEL_H + TOP;

	fprintf(out, "<text class=\"panel\" x=\"%d\" y=\"%d\">rho = %g</text>\n", x0, y0 - 8,
		rs_map_rhos[r]);
	if (is_here(m, r))
		fprintf(out,
			"<text x=\"%d\" y=\"%d\" fill=\"var(--line)\">this program: rho %.2f, density "
			"%.3g</text>\n",
			x0 + 90, y0 - 8, m->rho, m->density);
	for (int b = 0; b < RS_MAP_BETAS; b++) {
		int y = y0 + (RS_MAP_BETAS - 1 - b) * CELL_H;

		fprintf(out, "<text class=\"e dim\" x=\"%d\" y=\"%d\">%g</text>\n", x0 - 6,
			y + CELL_H / 2 + 4, rs_map_betas[b]);
		for (int d = 0; d < RS_MAP_DENSITIES; d++)
			cell(out, &map->cell[r][b][d], x0 + d * CELL_W, y, rs_map_densities[d],
			     rs_map_betas[b]);
	}
	for (int d = 0; d < RS_MAP_DENSITIES; d++)
		fprintf(out, "<text class=\"v dim\" x=\"%d\" y=\"%d\">%g</text>\n",
			x0 + d * CELL_W + CELL_W / 2, y0 + RS_MAP_BETAS * CELL_H + 14,
			rs_map_densities[d]);
	fprintf(out,
		"<text class=\"v dim\" x=\"%d\" y=\"%d\">part of a buffer that is written</text>\n",
		x0 + RS_MAP_DENSITIES * CELL_W / 2, y0 + RS_MAP_BETAS * CELL_H + 30);
	fprintf(out,
		"<text class=\"v dim\" transform=\"translate(%d %d) rotate(-90)\">budget (beta)</text>\n",
		x0 - 42, y0 + RS_MAP_BETAS * CELL_H / 2);
}

static void legend(FILE *out, int y)
{
	int x = LEFT;

	for (int s = 0; s < SHADES; s++)
		fprintf(out,
			"<rect x=\"%d\" y=\"%d\" width=\"30\" height=\"12\" fill=\"var(--s%d)\"/>",
			x + s * 31, y, s);
	fprintf(out,
		"<text class=\"dim\" x=\"%d\" y=\"%d\">joint saves 0 to %.0f%% of the step or "
		"more</text>\n",
		x + SHADES * 31 + 8, y + 10, FULL_PCT);
	x += 520;
	fprintf(out,
		"<rect x=\"%d\" y=\"%d\" width=\"30\" height=\"12\" fill=\"url(#only)\"/><text "
		"class=\"dim\" x=\"%d\" y=\"%d\">X: only joint has a plan</text>\n",
		x, y, x + 38, y + 10);
	x += 220;
	fprintf(out,
		"<rect x=\"%d\" y=\"%d\" width=\"30\" height=\"12\" fill=\"var(--none)\"/><text "
		"class=\"dim\" x=\"%d\" y=\"%d\">-: no plan</text>\n",
		x, y, x + 38, y + 10);
}

void rs_map_svg(FILE *out, const struct rs_map_model *m, const struct rs_map *map)
{
	int width = ACROSS * PANEL_W, height = RS_MAP_RHOS / ACROSS * PANEL_H + TOP + 10;
	struct rs_fmt a, b;

	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
		"height=\"%d\" role=\"img\">\n<title>Step time that joint plans save over eager/whole "
		"plans</title>\n",
		width, height, width, height);
	fputs(style, out);
	fputs("<defs><pattern id=\"only\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
	      "patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"var(--only)\"/>"
	      "<line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"6\" stroke=\"var(--line)\" stroke-opacity=\".35\" "
	      "stroke-width=\"2\"/></pattern></defs>\n",
	      out);
	fprintf(out, "<rect width=\"%d\" height=\"%d\" fill=\"var(--page)\"/>\n", width, height);
	fprintf(out,
		"<text class=\"big\" x=\"%d\" y=\"26\">Step time that joint plans save over eager/whole "
		"plans, %%</text>\n",
		LEFT);
	fprintf(out,
		"<text class=\"dim\" x=\"%d\" y=\"44\">%u equal segments; activations %s, rows of %.0f "
		"B, replay %s; rho = activations / buffer; beta: budget from regions alone (0) to all "
		"retained (1)</text>\n",
		LEFT, m->n, rs_fmt_bytes(&a, (uint64_t)m->activations), m->row,
		rs_fmt_ns(&b, (uint64_t)m->replay_ns));
	legend(out, 54);
	for (int r = 0; r < RS_MAP_RHOS; r++)
		panel(out, m, map, r);
	fputs("</svg>\n", out);
}
