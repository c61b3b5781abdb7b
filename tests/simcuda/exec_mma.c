/* SPDX-License-Identifier: MIT */
/*
 * mma.sync with 32-bit float accumulators: m16n8k8 and m16n8k16 of f16 and bf16, m16n8k8 of tf32.
 *
 * The ISA leaves order and intermediate precision open. Here: products are exact, they and the
 * accumulator are added in double in ascending k, and the sum is rounded once to float.
 * A tf32 operand is a float whose low 13 bits are ignored. Operands live in the side list: d, a, b, c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simcuda/exec_float.h"

typedef uint16_t u16;
typedef uint32_t u32;

enum { M = 16, N = 8, MAX_K = 16 };

struct shape {
	unsigned k, na, nb, type;
};

static const u32 *operand(const struct sim_uop *o, const struct sim_warp *w, unsigned i)
{
	return (const u32 *)(w->r + w->run->k->side[o->imm + i]);
}

static double element(u32 reg, unsigned half, unsigned type)
{
	u16 h = (u16)(half ? reg >> 16 : reg);

	switch (type) {
	case RS_PTX_F16:
		return sim_half_to_float(h);
	case RS_PTX_BF16:
		return sim_bf16_to_float(h);
	default:
		return sim_float(reg & ~0x1fffu);
	}
}

/* Fragments of 16-bit types hold two neighbours in k per register, tf32 one. */
static void gather(const struct sim_uop *o, const struct sim_warp *w, const struct shape *s,
		   double a[M][MAX_K], double b[MAX_K][N])
{
	unsigned per = s->type == RS_PTX_TF32 ? 1 : 2;

	for (unsigned lane = 0; lane < SIM_LANES; lane++) {
		unsigned group = lane >> 2, t = lane & 3;

		for (unsigned i = 0; i < s->na * per; i++) {
			unsigned r = i / per;

			a[group + 8 * (r & 1)][t * per + i % per + 4 * per * (r >> 1)] =
				element(operand(o, w, 4 + r)[lane], i % per, s->type);
		}
		for (unsigned i = 0; i < s->nb * per; i++) {
			unsigned r = i / per;

			b[t * per + i % per + 4 * per * r][group] =
				element(operand(o, w, 4 + s->na + r)[lane], i % per, s->type);
		}
	}
}

static void multiply(const struct sim_uop *o, struct sim_warp *w, const struct shape *s)
{
	double a[M][MAX_K], b[MAX_K][N];
	float d[4][SIM_LANES];

	gather(o, w, s, a, b);
	for (unsigned lane = 0; lane < SIM_LANES; lane++)
		for (unsigned i = 0; i < 4; i++) {
			unsigned row = (lane >> 2) + 8 * (i >> 1), col = 2 * (lane & 3) + (i & 1);
			double sum = sim_float(operand(o, w, 4 + s->na + s->nb + i)[lane]);

			for (unsigned k = 0; k < s->k; k++)
				sum += a[row][k] * b[k][col];
			d[i][lane] = sim_canon((float)sum);
		}
	for (unsigned i = 0; i < 4; i++)
		memcpy(w->r + w->run->k->side[o->imm + i], d[i], sizeof d[i]);
}

#define MMA(name, k, na, nb, type)                                                                 \
	static void name(const struct sim_uop *o, struct sim_warp *w)                              \
	{                                                                                          \
		static const struct shape s = {k, na, nb, type};                                   \
                                                                                                   \
		multiply(o, w, &s);                                                                \
	}
MMA(mma_f16_8, 8, 2, 1, RS_PTX_F16)
MMA(mma_f16_16, 16, 4, 2, RS_PTX_F16)
MMA(mma_bf16_8, 8, 2, 1, RS_PTX_BF16)
MMA(mma_bf16_16, 16, 4, 2, RS_PTX_BF16)
MMA(mma_tf32_8, 8, 4, 2, RS_PTX_TF32)

/* sig: how many registers a and b have, as digits. */
static int lower_mma(struct sim_lower *l, const struct rs_ptx_insn *in, const struct sim_form *form,
		     unsigned flags)
{
	unsigned want[4] = {4, (unsigned)(form->sig[0] - '0'), (unsigned)(form->sig[1] - '0'), 4};
	u32 start = l->nside, v;
	struct sim_uop *o;
	int rc = 0;

	(void)flags;
	if (in->noperands != 4)
		return sim_lower_fail(l, "wrong operands");
	l->k->packable = 0;
	for (unsigned i = 0; i < 4; i++) {
		const struct rs_ptx_operand *op = &in->op[i];
		int vec = op->kind == RS_PTX_OP_VEC;

		if (vec ? op->nelems != want[i] : want[i] != 1)
			return sim_lower_fail(l, "wrong operands");
		for (unsigned e = 0; e < want[i] && !rc; e++) {
			const struct rs_ptx_operand *x = vec ? &op->elems[e] : op;

			rc = i ? sim_lower_src(l, x, i == 3 ? 'f' : 'w', &v)
			       : sim_lower_dst(l, x, 'f', 0, &v);
			if (!rc)
				rc = sim_lower_side(l, v);
		}
	}
	if (rc)
		return rc;
	v = sim_lower_const(l, SIM_FULL, 4);
	o = sim_lower_emit(l, SIM_K_WSYNC, form->fn);
	if (!o)
		return l->failed;
	o->imm = start;
	o->n = (uint8_t)(8 + want[1] + want[2]);
	o->target = 4;
	o->r[6] = v;
	o->rd |= 64;
	o->flags |= SIM_F_SIDE;
	return 0;
}

#define F(name)                                                                                    \
	{                                                                                          \
		name, name                                                                         \
	}
const struct sim_form sim_forms_mma[] = {
	{"mma sync aligned m16n8k8 row col f32 f16 f16 f32", "21", F(mma_f16_8), lower_mma},
	{"mma sync aligned m16n8k16 row col f32 f16 f16 f32", "42", F(mma_f16_16), lower_mma},
	{"mma sync aligned m16n8k8 row col f32 bf16 bf16 f32", "21", F(mma_bf16_8), lower_mma},
	{"mma sync aligned m16n8k16 row col f32 bf16 bf16 f32", "42", F(mma_bf16_16), lower_mma},
	{"mma sync aligned m16n8k8 row col f32 tf32 tf32 f32", "42", F(mma_tf32_8), lower_mma},
};
const unsigned sim_nforms_mma = sizeof sim_forms_mma / sizeof *sim_forms_mma;
