/* SPDX-License-Identifier: MIT */
/*
 * tex: reads through texture objects, lane by lane, by the rules of the CUDA C++ Programming Guide's
 * appendix on texture fetching.
 *
 * Point sampling takes the texel that holds the coordinate; linear filtering weighs the neighbours with
 * fractions of 8 bits (to the nearest here; the sum is rounded once). Integer coordinates name texels.
 * A level is chosen to the nearest. Open in the documents, defined here: a component that the format
 * lacks is 0, the fourth 1; a coordinate that is no number is 0; the border of integers is the
 * border colour's integer part.
 * Linear and pitched memory is read like global memory, with its checks.
 */
#include <math.h>
#include <string.h>

#include "tests/simcuda/exec_float.h"
#include "tests/simcuda/exec_view.h"

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#define FLOAT_AT (1u << 3) /* coordinates are floats */
#define LEVEL	 (1u << 4) /* a level of detail follows them */

#define OUTSIDE (-1)

/* A texel index under an addressing mode, or OUTSIDE. */
static s64 address(unsigned mode, s64 i, s64 n)
{
	s64 r;

	if (i >= 0 && i < n)
		return i;
	switch (mode) {
	case SIM_ADDR_CLAMP:
		return i < 0 ? 0 : n - 1;
	case SIM_ADDR_WRAP:
		r = i % n;
		return r < 0 ? r + n : r;
	case SIM_ADDR_MIRROR:
		r = i % (2 * n);
		r = r < 0 ? r + 2 * n : r;
		return r < n ? r : 2 * n - 1 - r;
	default:
		return OUTSIDE;
	}
}

static u32 component(const struct sim_texel *t, u32 raw)
{
	u32 top = t->bits == 32 ? ~0u : (1u << t->bits) - 1;
	s32 s = (s32)(raw << (32 - t->bits)) >> (32 - t->bits);
	float f;

	switch (t->channel) {
	case SIM_CHAN_UINT:
		return raw;
	case SIM_CHAN_SINT:
		return (u32)s;
	case SIM_CHAN_UNORM:
		return sim_bits32((float)raw / (float)top);
	case SIM_CHAN_SNORM:
		f = (float)s / (float)(top >> 1);
		return sim_bits32(f < -1 ? -1 : f);
	default:
		return t->bits == 16 ? sim_bits32(sim_half_to_float((u16)raw)) : raw;
	}
}

static int is_integer(const struct sim_texel *t)
{
	return t->channel == SIM_CHAN_UINT || t->channel == SIM_CHAN_SINT;
}

static u32 border(const struct sim_view *v, unsigned c)
{
	float f = v->is_linear ? 0 : v->border[c];

	return is_integer(&v->texel) ? (u32)(s32)f : sim_bits32(f);
}

/* The four words of one texel; 0, or -1 after a fault. */
static int texel(struct sim_warp *w, const struct sim_uop *o, unsigned lane,
		 const struct sim_view *v, unsigned level, const s64 i[3], u32 out[4])
{
	const struct sim_texel *t = &v->texel;
	const u8 *p = v->level[level].data + (u64)i[2] * v->level[level].slice +
		      (u64)i[1] * v->level[level].pitch + (u64)i[0] * t->bytes;

	if (i[0] == OUTSIDE || i[1] == OUTSIDE || i[2] == OUTSIDE) {
		for (unsigned c = 0; c < 4; c++)
			out[c] = border(v, c);
		return 0;
	}
	if (v->is_memory && !sim_mem_readable(w, o, lane, (u64)(uintptr_t)p, t->bytes))
		return -1;
	w->run->counts.load_bytes += t->bytes;
	for (unsigned c = 0; c < 4; c++) {
		u32 raw = 0;

		if (c < t->channels) {
			memcpy(&raw, p + c * t->bits / 8, t->bits / 8);
			out[c] = component(t, raw);
		} else {
			out[c] = c < 3 ? 0 : is_integer(t) ? 1 : sim_bits32(1);
		}
	}
	return 0;
}

/* ---- coordinates ---- */

struct sample {
	s64 near[3][2];	  /* the texel, or its two neighbours */
	double weight[3]; /* of the second neighbour */
	int linear;
};

static s64 whole(double x)
{
	const double far = (double)(1ll << 48);

	return x != x ? 0 : (s64)(x < -far ? -far : x > far ? far : floor(x));
}

static void coordinate(const struct sim_view *v, unsigned d, double x, s64 n, struct sample *s)
{
	s64 i;

	if (v->normalised)
		x *= (double)n;
	if (s->linear)
		x -= 0.5;
	i = whole(x);
	s->near[d][0] = address(v->address[d], i, n);
	if (!s->linear)
		return;
	s->near[d][1] = address(v->address[d], i + 1, n);
	s->weight[d] = x - (double)i >= 0 && x - (double)i <= 1
			       ? floor((x - (double)i) * 256 + 0.5) / 256
			       : 0;
}

static unsigned level_of(const struct sim_uop *o, const struct sim_warp *w,
			 const struct sim_view *v, unsigned lane)
{
	double lod = v->bias;

	if (v->nlevels == 1)
		return 0;
	if (o->flags & LEVEL && o->flags & FLOAT_AT)
		lod += sim_float(SIM_SIDE(u32, o, w, o->n - 1u)[lane]);
	else if (o->flags & LEVEL)
		lod += SIM_SIDE(s32, o, w, o->n - 1u)[lane];
	lod = lod > v->min_level ? lod : v->min_level;
	lod = lod < v->max_level ? lod : v->max_level;
	return lod < 0.5 ? 0 : lod > v->nlevels - 1 ? v->nlevels - 1u : (unsigned)floor(lod + 0.5);
}

static void aim(const struct sim_uop *o, const struct sim_warp *w, const struct sim_view *v,
		unsigned level, unsigned lane, struct sample *s)
{
	const u32 n[3] = {v->level[level].width, v->level[level].height, v->level[level].depth};
	unsigned first = 5, dims = o->flags & SIM_VIEW_DIMS;

	memset(s, 0, sizeof *s);
	s->linear = v->filter && o->flags & FLOAT_AT;
	if (o->flags & SIM_VIEW_LAYERED) {
		u32 layer = SIM_SIDE(u32, o, w, first++)[lane];

		s->near[2][0] = s->near[2][1] = layer < n[2] ? layer : n[2] - 1;
	}
	for (unsigned d = 0; d < dims; d++) {
		u32 x = SIM_SIDE(u32, o, w, first + d)[lane];
		unsigned mode = v->is_linear ? SIM_ADDR_BORDER : v->address[d];

		if (o->flags & FLOAT_AT)
			coordinate(v, d, sim_float(x), n[d], s);
		else
			s->near[d][0] = address(mode, (s32)x, n[d]);
	}
}

/* ---- the instruction ---- */

/* The corners of the square or cube around the coordinate. */
static int filtered(struct sim_warp *w, const struct sim_uop *o, unsigned lane,
		    const struct sim_view *v, unsigned level, const struct sample *s, u32 out[4])
{
	unsigned dims = o->flags & SIM_VIEW_DIMS;
	double sum[4] = {0};

	for (unsigned corner = 0; corner < 1u << dims; corner++) {
		s64 i[3] = {s->near[0][0], s->near[1][0], s->near[2][0]};
		double weight = 1;
		u32 words[4];

		for (unsigned d = 0; d < dims; d++) {
			unsigned second = corner >> d & 1;

			i[d] = s->near[d][second];
			weight *= second ? s->weight[d] : 1 - s->weight[d];
		}
		if (weight == 0)
			continue;
		if (texel(w, o, lane, v, level, i, words))
			return -1;
		for (unsigned c = 0; c < 4; c++)
			sum[c] += weight * sim_float(words[c]);
	}
	for (unsigned c = 0; c < 4; c++)
		out[c] = sim_bits32(sim_canon((float)sum[c]));
	return 0;
}

static void tex(const struct sim_uop *o, struct sim_warp *w)
{
	for (u32 m = w->act; m; m &= m - 1) {
		u32 lane = (u32)__builtin_ctz(m), out[4];
		const struct sim_view *v =
			sim_view_find(w, o, lane, SIM_SIDE(u64, o, w, 4)[lane], 0);
		struct sample s;
		unsigned level;

		if (!v)
			return;
		if (v->is_linear && o->flags & FLOAT_AT) {
			sim_run_fault(w, o, SIM_FAULT_TRAP, 1u << lane,
				      "linear memory has integer coordinates");
			return;
		}
		level = level_of(o, w, v, lane);
		aim(o, w, v, level, lane, &s);
		if (s.linear ? filtered(w, o, lane, v, level, &s, out)
			     : texel(w, o, lane, v, level,
				     (s64[3]){s.near[0][0], s.near[1][0], s.near[2][0]}, out))
			return;
		for (unsigned c = 0; c < 4; c++)
			SIM_SIDE(u32, o, w, c)[lane] = out[c];
	}
}

static int lower_tex(struct sim_lower *l, const struct rs_ptx_insn *in, const struct sim_form *form,
		     unsigned flags)
{
	int is_float = in->type == RS_PTX_F32, level = rs_ptx_has(in, "level"), rc;
	u32 start = l->nside, v;

	(void)form;
	flags = (is_float ? FLOAT_AT : 0) | (level ? LEVEL : 0);
	if (in->noperands != 2u + (unsigned)level || in->op[0].kind != RS_PTX_OP_VEC)
		return sim_lower_fail(l, "wrong operands");
	rc = sim_view_data(l, &in->op[0], 4, in->type2 == RS_PTX_F32 ? 'f' : 'w', 1);
	if (!rc)
		rc = sim_view_lower(l, in, &in->op[1], is_float ? 'f' : 'w', &flags);
	if (!rc && level)
		rc = sim_lower_src(l, &in->op[2], is_float ? 'f' : 'w', &v);
	if (!rc && level)
		rc = sim_lower_side(l, v);
	if (!rc)
		rc = sim_view_emit(l, tex, start, 4, flags);
	return rc ? rc : sim_lower_finish(l);
}

const struct sim_form sim_forms_tex[] = {
	{"tex level? 1d|2d|3d|a1d|a2d v4 f32|s32|u32 f32|s32", NULL, {tex, tex}, lower_tex},
};
const unsigned sim_nforms_tex = sizeof sim_forms_tex / sizeof *sim_forms_tex;
