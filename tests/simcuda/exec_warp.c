/* SPDX-License-Identifier: MIT */
/*
 * Instructions that look across the lanes of a warp: shfl, vote, match, redux, elect, activemask.
 *
 * The run loop has brought the lanes of the member mask together before a handler runs (SIM_K_WSYNC);
 * `w->act` are the lanes that execute. A lane that is not among them gives no value: a shuffle from
 * it returns the reader's own (the ISA leaves it undefined).
 */
#include <errno.h>
#include <string.h>

#include "tests/simcuda/exec_priv.h"

typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;

enum { UP, DOWN, BFLY, IDX };

static u32 source_lane(int mode, u32 lane, u32 b, u32 c, int *ret_inside)
{
	u32 seg = c >> 8 & 31, bval = b & 31, cval = c & 31;
	int max = (int)((lane & seg) | (cval & ~seg)), j;

	switch (mode) {
	case UP:
		j = (int)lane - (int)bval;
		*ret_inside = j >= max;
		break;
	case DOWN:
		j = (int)(lane + bval);
		*ret_inside = j <= max;
		break;
	case BFLY:
		j = (int)(lane ^ bval);
		*ret_inside = j <= max;
		break;
	default:
		j = (int)((lane & seg) | (bval & ~seg));
		*ret_inside = j <= max;
	}
	return *ret_inside ? (u32)j : lane;
}

/* r[0] result, r[4] predicate of being inside, r[1] value, r[2] b, r[3] c */
static void shfl(const struct sim_uop *o, struct sim_warp *w)
{
	u32 *d = SIM_REG(u32, w, o, 0), *p = SIM_REG(u32, w, o, 4), old[SIM_LANES];
	const u32 *a = SIM_REG(u32, w, o, 1), *b = SIM_REG(u32, w, o, 2),
		  *c = SIM_REG(u32, w, o, 3);
	u32 result[SIM_LANES], in[SIM_LANES];

	memcpy(old, a, sizeof old);
	for (u32 i = 0; i < SIM_LANES; i++) {
		int inside;
		u32 j = source_lane((int)o->imm, i, b[i], c[i], &inside) & 31;

		result[i] = w->act >> j & 1 ? old[j] : old[i];
		in[i] = inside ? ~0u : 0;
	}
	for (int i = 0; i < SIM_LANES; i++)
		if (w->lanes[i]) {
			d[i] = result[i];
			p[i] = in[i];
		}
}

static void write_all(const struct sim_uop *o, struct sim_warp *w, u32 value)
{
	u32 *d = SIM_REG(u32, w, o, 0);

	for (int i = 0; i < SIM_LANES; i++)
		d[i] = w->lanes[i] ? value : d[i];
}

static u32 ballot(const struct sim_uop *o, const struct sim_warp *w)
{
	const u32 *a = SIM_REG(u32, w, o, 1);
	u32 bits = 0;

	for (int i = 0; i < SIM_LANES; i++)
		bits |= (a[i] & w->lanes[i] & 1) << i;
	return bits;
}

static void vote_all(const struct sim_uop *o, struct sim_warp *w)
{
	write_all(o, w, ballot(o, w) == w->act ? ~0u : 0);
}

static void vote_any(const struct sim_uop *o, struct sim_warp *w)
{
	write_all(o, w, ballot(o, w) ? ~0u : 0);
}

static void vote_uni(const struct sim_uop *o, struct sim_warp *w)
{
	u32 bits = ballot(o, w);

	write_all(o, w, !bits || bits == w->act ? ~0u : 0);
}

static void vote_ballot(const struct sim_uop *o, struct sim_warp *w)
{
	write_all(o, w, ballot(o, w));
}

static void activemask(const struct sim_uop *o, struct sim_warp *w)
{
	write_all(o, w, w->act);
}

static void nothing(const struct sim_uop *o, struct sim_warp *w)
{
	(void)o, (void)w;
}

static u64 value_of(const struct sim_uop *o, const struct sim_warp *w, int lane)
{
	return o->n == 8 ? SIM_REG(u64, w, o, 1)[lane] : SIM_REG(u32, w, o, 1)[lane];
}

static void match_any(const struct sim_uop *o, struct sim_warp *w)
{
	u32 result[SIM_LANES] = {0};

	for (int i = 0; i < SIM_LANES; i++)
		for (int j = 0; j < SIM_LANES; j++)
			if (w->lanes[i] & w->lanes[j] && value_of(o, w, i) == value_of(o, w, j))
				result[i] |= 1u << j;
	for (int i = 0; i < SIM_LANES; i++)
		if (w->lanes[i])
			SIM_REG(u32, w, o, 0)[i] = result[i];
}

static void match_all(const struct sim_uop *o, struct sim_warp *w)
{
	int first = __builtin_ctz(w->act), same = 1;

	for (int i = 0; i < SIM_LANES; i++)
		if (w->lanes[i] && value_of(o, w, i) != value_of(o, w, first))
			same = 0;
	for (int i = 0; i < SIM_LANES; i++)
		if (w->lanes[i])
			SIM_REG(u32, w, o, 4)[i] = same ? ~0u : 0;
	write_all(o, w, same ? w->act : 0);
}

static void elect(const struct sim_uop *o, struct sim_warp *w)
{
	u32 first = (u32)__builtin_ctz(w->act);

	for (u32 i = 0; i < SIM_LANES; i++)
		if (w->lanes[i])
			SIM_REG(u32, w, o, 4)[i] = i == first ? ~0u : 0;
	write_all(o, w, first);
}

#define REDUX(name, T, ...)                                                                        \
	static void redux_##name(const struct sim_uop *o, struct sim_warp *w)                      \
	{                                                                                          \
		const T *v = SIM_REG(T, w, o, 1);                                                  \
		T a = v[__builtin_ctz(w->act)];                                                    \
                                                                                                   \
		for (u32 m = w->act & (w->act - 1); m; m &= m - 1) {                               \
			T b = v[__builtin_ctz(m)];                                                 \
                                                                                                   \
			a = (__VA_ARGS__);                                                         \
		}                                                                                  \
		write_all(o, w, (u32)a);                                                           \
	}
REDUX(add, u32, a + b)
REDUX(min_u, u32, a < b ? a : b)
REDUX(max_u, u32, a > b ? a : b)
REDUX(min_s, s32, a < b ? a : b)
REDUX(max_s, s32, a > b ? a : b)
REDUX(and, u32, a &b)
REDUX(or, u32, a | b)
REDUX(xor, u32, a ^ b)

/* ---- lowering ---- */

/* Signature letters: destination, `q` second destination, sources, `m` member mask. */
static int lower_warp(struct sim_lower *l, const struct rs_ptx_insn *in,
		      const struct sim_form *form, unsigned flags)
{
	const char *sig = form->sig;
	u32 r[8] = {0};
	unsigned op = 0, src = 1, wr = 1, rd = 0;
	int has_mask = strchr(sig, 'm') != NULL, rc;
	struct sim_uop *o;

	(void)flags;
	if (in->noperands != strlen(sig) - (strchr(sig, 'q') != NULL))
		return sim_lower_fail(l, "wrong operands");
	l->k->packable = 0;
	r[4] = sim_lower_temp(l, 4);
	wr |= 16;
	for (const char *s = sig + 1 + (sig[1] == 'q'); *s; s++) {
		unsigned at = *s == 'm' ? 6 : src++;

		rc = sim_lower_src(l, &in->op[++op], *s == 'm' ? 'w' : *s, &r[at]);
		if (rc)
			return rc;
		rd |= 1u << at;
	}
	rc = sim_lower_dst(l, &in->op[0], sig[0], 0, &r[0]);
	if (rc)
		return rc;
	if (in->op[0].kind == RS_PTX_OP_REG && in->op[0].reg2 >= 0) {
		struct rs_ptx_operand second = in->op[0];

		if (sig[1] != 'q')
			return sim_lower_fail(l, "wrong operands");
		second.reg = second.reg2;
		second.reg2 = -1;
		rc = sim_lower_dst(l, &second, 'p', 0, &r[4]);
		if (rc)
			return rc;
	}
	o = sim_lower_emit(l, SIM_K_WSYNC, form->fn);
	if (!o)
		return l->failed;
	for (int i = 0; i < 7; i++)
		o->r[i] = r[i];
	o->wr |= (uint8_t)wr;
	o->rd |= (uint8_t)rd;
	o->flags |= has_mask ? 0 : SIM_F_NOMASK;
	return 0;
}

static int lower_shfl(struct sim_lower *l, const struct rs_ptx_insn *in,
		      const struct sim_form *form, unsigned flags)
{
	static const char *const modes[] = {"up", "down", "bfly", "idx"};
	int rc = lower_warp(l, in, form, flags);

	for (int i = 0; i < 4 && !rc; i++)
		if (rs_ptx_has(in, modes[i]))
			l->uop[l->nuops - 1].imm = i;
	return rc;
}

/* The element width goes along in n. */
static int lower_match(struct sim_lower *l, const struct rs_ptx_insn *in,
		       const struct sim_form *form, unsigned flags)
{
	int rc = lower_warp(l, in, form, flags);

	if (!rc)
		l->uop[l->nuops - 1].n = (uint8_t)rs_ptx_type_bytes(in->type);
	return rc;
}

static int lower_warp_barrier(struct sim_lower *l, const struct rs_ptx_insn *in,
			      const struct sim_form *form, unsigned flags)
{
	struct sim_uop *o;
	u32 mask;
	int rc;

	(void)flags;
	if (in->noperands != 1)
		return sim_lower_fail(l, "wrong operands");
	l->k->packable = 0;
	rc = sim_lower_src(l, &in->op[0], 'w', &mask);
	if (rc)
		return rc;
	o = sim_lower_emit(l, SIM_K_WSYNC, form->fn);
	if (!o)
		return l->failed;
	o->r[6] = mask;
	o->rd |= 64;
	o->flags |= SIM_F_ANYPC;
	return 0;
}

#define F(name)                                                                                    \
	{                                                                                          \
		name, name                                                                         \
	}
const struct sim_form sim_forms_warp[] = {
	{"shfl sync up|down|bfly|idx b32", "wqwwwm", F(shfl), lower_shfl},
	{"shfl up|down|bfly|idx b32", "wqwww", F(shfl), lower_shfl},
	{"vote sync all pred", "ppm", F(vote_all), lower_warp},
	{"vote sync any pred", "ppm", F(vote_any), lower_warp},
	{"vote sync uni pred", "ppm", F(vote_uni), lower_warp},
	{"vote sync ballot b32", "wpm", F(vote_ballot), lower_warp},
	{"vote all pred", "pp", F(vote_all), lower_warp},
	{"vote any pred", "pp", F(vote_any), lower_warp},
	{"vote uni pred", "pp", F(vote_uni), lower_warp},
	{"vote ballot b32", "wp", F(vote_ballot), lower_warp},
	{"activemask b32", "w", F(activemask), lower_warp},
	{"match any sync b32", "wwm", F(match_any), lower_match},
	{"match any sync b64", "wdm", F(match_any), lower_match},
	{"match all sync b32", "wqwm", F(match_all), lower_match},
	{"match all sync b64", "wqdm", F(match_all), lower_match},
	{"elect sync", "wqm", F(elect), lower_warp},
	{"redux sync add u32|s32", "wwm", F(redux_add), lower_warp},
	{"redux sync min u32", "wwm", F(redux_min_u), lower_warp},
	{"redux sync max u32", "wwm", F(redux_max_u), lower_warp},
	{"redux sync min s32", "wwm", F(redux_min_s), lower_warp},
	{"redux sync max s32", "wwm", F(redux_max_s), lower_warp},
	{"redux sync and b32", "wwm", F(redux_and), lower_warp},
	{"redux sync or b32", "wwm", F(redux_or), lower_warp},
	{"redux sync xor b32", "wwm", F(redux_xor), lower_warp},
	{"bar warp sync", NULL, F(nothing), lower_warp_barrier},
};
const unsigned sim_nforms_warp = sizeof sim_forms_warp / sizeof *sim_forms_warp;
