/* SPDX-License-Identifier: MIT */
/*
 * suld.b, sust.b and sust.p: loads and stores through surface objects, lane by lane in ascending order.
 *
 * The first coordinate of .b counts bytes, that of .p texels. Outside of the surface .trap is a fault,
 * .clamp takes the nearest place that the access fits into, .zero reads zeros and drops stores. The
 * layer is a coordinate like the others. The ISA leaves open: the components of a texel that sust.p
 * has no source for are zero here, integers that do not fit their component saturate.
 */
#include <string.h>

#include "tests/simcuda/exec_float.h"
#include "tests/simcuda/exec_view.h"

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

enum { TRAP, CLAMP, ZERO };
#define MODE(o) ((o)->flags >> 3 & 3)
#define LOG2(o) ((o)->flags >> 5 & 3) /* bytes of an element of .b */

/* 0: taken as it is or clamped; 1: outside, under .zero; -1: a fault. */
static int bound(struct sim_warp *w, const struct sim_uop *o, unsigned lane, s64 *x, s64 max)
{
	s64 in = *x < 0 ? 0 : *x > max ? max : *x;

	if (in == *x)
		return 0;
	if (MODE(o) == ZERO)
		return 1;
	if (MODE(o) == TRAP || max < 0) {
		sim_run_fault(w, o, SIM_FAULT_TRAP, 1u << lane, "outside of the surface");
		return -1;
	}
	*x = in;
	return 0;
}

/* Where the access of a lane goes: NULL after a fault, or if there is no such place (*ret_none). */
static u8 *place(struct sim_warp *w, const struct sim_uop *o, unsigned lane,
		 const struct sim_view *v, unsigned unit, unsigned bytes, int *ret_none)
{
	unsigned first = (unsigned)o->target + 1, layered = !!(o->flags & SIM_VIEW_LAYERED);
	s64 c[3] = {0}, max[3] = {0};
	int none = 0;

	for (unsigned i = 0; i < sim_view_ncoords(o); i++)
		c[layered && !i ? 2 : i - layered] = SIM_SIDE(s32, o, w, first + i)[lane];
	c[0] *= unit;
	max[0] = (s64)v->level[0].width * v->texel.bytes - bytes;
	max[1] = (s64)v->level[0].height - 1;
	max[2] = (s64)v->level[0].depth - 1;
	*ret_none = 0;
	for (unsigned i = 0; i < 3; i++) {
		int out = bound(w, o, lane, &c[i], max[i]);

		if (out < 0)
			return NULL;
		none |= out;
	}
	if (none) {
		*ret_none = 1;
		return NULL;
	}
	if (unit == 1 && c[0] & (bytes - 1)) {
		sim_mem_fault(w, o, SIM_FAULT_MISALIGNED, lane, (u64)c[0], bytes,
			      o->src->part[0][2] == 's');
		return NULL;
	}
	return v->level[0].data + (u64)c[2] * v->level[0].slice + (u64)c[1] * v->level[0].pitch +
	       c[0];
}

static u64 get(const struct sim_uop *o, const struct sim_warp *w, unsigned i, u32 lane, int wide)
{
	return wide ? SIM_SIDE(u64, o, w, i)[lane] : SIM_SIDE(u32, o, w, i)[lane];
}

static void put(const struct sim_uop *o, struct sim_warp *w, unsigned i, u32 lane, int wide, u64 x)
{
	if (wide)
		SIM_SIDE(u64, o, w, i)[lane] = x;
	else
		SIM_SIDE(u32, o, w, i)[lane] = (u32)x;
}

static void suld(const struct sim_uop *o, struct sim_warp *w)
{
	unsigned n = (unsigned)o->target, size = 1u << LOG2(o);

	for (u32 m = w->act; m; m &= m - 1) {
		u32 lane = (u32)__builtin_ctz(m);
		const struct sim_view *v =
			sim_view_find(w, o, lane, SIM_SIDE(u64, o, w, n)[lane], 1);
		int none = 0;
		const u8 *p = v ? place(w, o, lane, v, 1, n * size, &none) : NULL;

		if (!p && !none)
			return;
		for (unsigned e = 0; e < n; e++) {
			u64 x = 0;

			if (p)
				memcpy(&x, p + e * size, size);
			put(o, w, e, lane, size == 8, x);
		}
		w->run->counts.load_bytes += p ? n * size : 0;
	}
}

static void sust(const struct sim_uop *o, struct sim_warp *w)
{
	unsigned first = 1 + sim_view_ncoords(o), n = o->n - first, size = 1u << LOG2(o);

	for (u32 m = w->act; m; m &= m - 1) {
		u32 lane = (u32)__builtin_ctz(m);
		const struct sim_view *v =
			sim_view_find(w, o, lane, SIM_SIDE(u64, o, w, 0)[lane], 1);
		int none = 0;
		u8 *p = v ? place(w, o, lane, v, 1, n * size, &none) : NULL;

		if (!p && !none)
			return;
		for (unsigned e = 0; e < n && p; e++) {
			u64 x = get(o, w, first + e, lane, size == 8);

			memcpy(p + e * size, &x, size);
		}
		w->run->counts.store_bytes += p ? n * size : 0;
	}
}

/* A 32-bit value as the texel's component. */
static u32 component(const struct sim_texel *t, u32 x)
{
	u32 top = t->bits == 32 ? ~0u : (1u << t->bits) - 1;
	float f = sim_float(x), scale;

	switch (t->channel) {
	case SIM_CHAN_UINT:
		return x < top ? x : top;
	case SIM_CHAN_SINT: {
		s64 low = -(s64)(top >> 1) - 1, high = top >> 1, y = (s32)x;

		return (u32)(y < low ? low : y > high ? high : y) & top;
	}
	case SIM_CHAN_UNORM:
		scale = (float)top;
		f = f > 0 ? f < 1 ? f : 1 : 0;
		return (u32)(f * scale + 0.5f);
	case SIM_CHAN_SNORM:
		scale = (float)(top >> 1);
		f = f > -1 ? f < 1 ? f : 1 : f <= -1 ? -1 : 0;
		return (u32)(s32)(f * scale + (f < 0 ? -0.5f : 0.5f)) & top;
	default:
		return t->bits == 16 ? sim_float_to_half(f, SIM_RN) : x;
	}
}

static void sust_p(const struct sim_uop *o, struct sim_warp *w)
{
	unsigned first = 1 + sim_view_ncoords(o), n = o->n - first;

	for (u32 m = w->act; m; m &= m - 1) {
		u32 lane = (u32)__builtin_ctz(m);
		const struct sim_view *v =
			sim_view_find(w, o, lane, SIM_SIDE(u64, o, w, 0)[lane], 1);
		const struct sim_texel *t = v ? &v->texel : NULL;
		int none = 0;
		u8 *p = v ? place(w, o, lane, v, t->bytes, t->bytes, &none) : NULL;

		if (!p && !none)
			return;
		for (unsigned e = 0; p && e < t->channels; e++) {
			u32 x = e < n ? component(t, (u32)get(o, w, first + e, lane, 0)) : 0;

			memcpy(p + e * t->bits / 8, &x, t->bits / 8);
		}
		w->run->counts.store_bytes += p ? t->bytes : 0;
	}
}

/* ---- lowering ---- */

static unsigned mode_of(const struct rs_ptx_insn *in)
{
	return rs_ptx_has(in, "trap") ? TRAP : rs_ptx_has(in, "clamp") ? CLAMP : ZERO;
}

static int lower(struct sim_lower *l, const struct rs_ptx_insn *in, sim_fn fn, int is_load)
{
	unsigned size = rs_ptx_type_bytes(in->type), n = in->vec;
	unsigned flags = mode_of(in) << 3 | (unsigned)__builtin_ctz(size) << 5;
	char letter = size == 8 ? 'd' : size == 4 ? 'w' : 'h';
	u32 start = l->nside;
	int rc;

	if (in->noperands != 2)
		return sim_lower_fail(l, "wrong operands");
	if (n * size > 16)
		return sim_lower_fail(l, "unknown instruction %s", in->text);
	rc = is_load ? sim_view_data(l, &in->op[0], n, letter, 1) : 0;
	if (!rc)
		rc = sim_view_lower(l, in, &in->op[is_load], 'w', &flags);
	if (!rc && !is_load)
		rc = sim_view_data(l, &in->op[1], n, letter, 0);
	if (!rc)
		rc = sim_view_emit(l, fn, start, is_load ? n : 0, flags);
	return rc ? rc : sim_lower_finish(l);
}

static int lower_suld(struct sim_lower *l, const struct rs_ptx_insn *in,
		      const struct sim_form *form, unsigned flags)
{
	(void)form, (void)flags;
	return lower(l, in, suld, 1);
}

static int lower_sust(struct sim_lower *l, const struct rs_ptx_insn *in,
		      const struct sim_form *form, unsigned flags)
{
	(void)flags;
	return lower(l, in, form->fn[0], 0);
}

const struct sim_form sim_forms_surf[] = {
	{"suld b 1d|2d|3d|a1d|a2d ca|cg|cs|cv? v2|v4? b8|b16|b32|b64 trap|clamp|zero",
	 NULL,
	 {suld, suld},
	 lower_suld},
	{"sust b 1d|2d|3d|a1d|a2d wb|cg|cs|wt? v2|v4? b8|b16|b32|b64 trap|clamp|zero",
	 NULL,
	 {sust, sust},
	 lower_sust},
	{"sust p 1d|2d|3d wb|cg|cs|wt? v2|v4? b32|u32|s32|f32 trap|clamp|zero",
	 NULL,
	 {sust_p, sust_p},
	 lower_sust},
};
const unsigned sim_nforms_surf = sizeof sim_forms_surf / sizeof *sim_forms_surf;
