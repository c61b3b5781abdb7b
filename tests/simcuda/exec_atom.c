/* SPDX-License-Identifier: MIT */
/*
 * atom and red: lane by lane in ascending order, so results do not depend on anything but the PTX.
 *
 * f32 addition in global memory flushes subnormals, in shared memory it does not, as the ISA
 * documents for NVIDIA's implementation.
 */
#include <errno.h>
#include <string.h>

#include "tests/simcuda/exec_float.h"

typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

/* clang-format off */
#define ATOM_OPS(X) X(ADD, "add") X(MIN, "min") X(MAX, "max") X(INC, "inc") X(DEC, "dec") X(CAS, "cas") \
	X(EXCH, "exch") X(AND, "and") X(OR, "or") X(XOR, "xor")
/* clang-format on */

enum atom_op {
#define X(id, name) id,
	ATOM_OPS(X)
#undef X
};

static u64 integer_op(enum atom_op op, u64 old, u64 b, u64 c)
{
	switch (op) {
	case ADD:
		return old + b;
	case INC:
		return old >= b ? 0 : old + 1;
	case DEC:
		return old == 0 || old > b ? b : old - 1;
	case CAS:
		return old == b ? c : old;
	case EXCH:
		return b;
	case AND:
		return old & b;
	case OR:
		return old | b;
	case XOR:
		return old ^ b;
	case MIN:
		return old < b ? old : b;
	default:
		return old > b ? old : b;
	}
}

static u64 apply(enum atom_op op, unsigned type, int flush, u64 old, u64 b, u64 c)
{
	switch (type) {
	case RS_PTX_F32: {
		float x = sim_float((u32)old), y = sim_float((u32)b);

		if (op != ADD)
			break;
		if (flush)
			return sim_bits32(sim_ftz(sim_canon(sim_ftz(x) + sim_ftz(y))));
		return sim_bits32(sim_canon(x + y));
	}
	case RS_PTX_F64:
		if (op == ADD)
			return sim_bits64(sim_canon64(sim_double(old) + sim_double(b)));
		break;
	case RS_PTX_S32:
		if (op == MIN || op == MAX)
			return ((s32)old < (s32)b) == (op == MIN) ? old : b;
		break;
	case RS_PTX_S64:
		if (op == MIN || op == MAX)
			return ((s64)old < (s64)b) == (op == MIN) ? old : b;
		break;
	default:
		break;
	}
	return integer_op(op, old, b, c);
}

static u64 read_lane(const struct sim_uop *o, const struct sim_warp *w, int field, u32 lane,
		     int wide)
{
	return wide ? SIM_REG(u64, w, o, field)[lane] : SIM_REG(u32, w, o, field)[lane];
}

static void atom(const struct sim_uop *o, struct sim_warp *w)
{
	enum atom_op op = (enum atom_op)(o->flags & 15);
	unsigned type = o->n, bytes = rs_ptx_type_bytes(type);
	int narrow_address = o->flags >> 4 & 1;

	for (u32 m = w->act; m; m &= m - 1) {
		u32 lane = (u32)__builtin_ctz(m);
		u64 addr = narrow_address ? (u32)(SIM_REG(u32, w, o, 1)[lane] + (u32)o->imm)
					  : SIM_REG(u64, w, o, 1)[lane] + (u64)o->imm;
		uint8_t *p = sim_mem_check(w, o, lane, addr, bytes, 0);
		int in_global = (u64)(uintptr_t)p == addr;
		u64 old = 0, b, c, result;

		if (!p || !sim_mem_check(w, o, lane, addr, bytes, 1))
			return;
		memcpy(&old, p, bytes);
		b = read_lane(o, w, 2, lane, bytes == 8);
		c = read_lane(o, w, 3, lane, bytes == 8);
		if (bytes == 2)
			b &= 0xffff;
		result = apply(op, type, in_global, old, b, c);
		memcpy(p, &result, bytes);
		if (in_global) {
			w->run->counts.load_bytes += bytes;
			w->run->counts.store_bytes += bytes;
		}
		if (bytes == 8)
			SIM_REG(u64, w, o, 0)[lane] = old;
		else
			SIM_REG(u32, w, o, 0)[lane] = (u32)old;
	}
}

static int type_fits(enum atom_op op, unsigned type)
{
	switch (op) {
	case ADD:
		return type == RS_PTX_U32 || type == RS_PTX_S32 || type == RS_PTX_U64 ||
		       type == RS_PTX_S64 || type == RS_PTX_F32 || type == RS_PTX_F64;
	case MIN:
	case MAX:
		return type == RS_PTX_U32 || type == RS_PTX_S32 || type == RS_PTX_U64 ||
		       type == RS_PTX_S64;
	case INC:
	case DEC:
		return type == RS_PTX_U32;
	case CAS:
		return type == RS_PTX_B16 || type == RS_PTX_B32 || type == RS_PTX_B64 ||
		       type == RS_PTX_U32 || type == RS_PTX_U64;
	case EXCH:
		return type == RS_PTX_B32 || type == RS_PTX_B64 || type == RS_PTX_U32 ||
		       type == RS_PTX_U64;
	default:
		return type == RS_PTX_B32 || type == RS_PTX_B64;
	}
}

static int find_op(const struct rs_ptx_insn *in)
{
	static const char *const names[] = {
#define X(id, name) name,
		ATOM_OPS(X)
#undef X
	};

	for (int i = 0; i < (int)(sizeof names / sizeof *names); i++)
		if (rs_ptx_has(in, names[i]))
			return i;
	return -1;
}

static char letter_of(unsigned type)
{
	if (type == RS_PTX_F32)
		return 'f';
	if (type == RS_PTX_F64)
		return 'g';
	return rs_ptx_type_bytes(type) == 8 ? 'd' : rs_ptx_type_bytes(type) == 4 ? 'w' : 'h';
}

static int lower_atom(struct sim_lower *l, const struct rs_ptx_insn *in,
		      const struct sim_form *form, unsigned flags)
{
	static const char *const allowed[] = {"relaxed",
					      "acquire",
					      "release",
					      "acq_rel",
					      "cta",
					      "cluster",
					      "gpu",
					      "sys",
#define X(id, name) name,
					      ATOM_OPS(X)
#undef X
						      NULL};
	static const sim_fn fn[2] = {atom, atom};
	int red = !strcmp(in->part[0], "red"), op = find_op(in), rc;
	unsigned n = 3u - (unsigned)red + (op == CAS), space;
	char letter = letter_of(in->type);
	u32 d, addr, b, c = 0;
	struct sim_uop *o;
	s64 imm;

	(void)form, (void)flags;
	if (op < 0 || sim_form_parts(in, allowed) >= 0 || in->vec > 1 ||
	    !type_fits((enum atom_op)op, in->type) ||
	    (in->space != RS_PTX_SPACE_NONE && in->space != RS_PTX_SPACE_GLOBAL &&
	     in->space != RS_PTX_SPACE_SHARED) ||
	    (red && (op == CAS || op == EXCH)))
		return sim_lower_fail(l, "unknown instruction %s", in->text);
	if (in->noperands != n || in->op[!red].kind != RS_PTX_OP_ADDR)
		return sim_lower_fail(l, "wrong operands");
	rc = sim_lower_addr(l, &in->op[!red], in->space, &addr, &imm, &space);
	if (!rc)
		rc = sim_lower_src(l, &in->op[2 - red], letter, &b);
	if (!rc && op == CAS)
		rc = sim_lower_src(l, &in->op[3 - red], letter, &c);
	d = sim_lower_temp(l, sim_letter_class(letter));
	if (!rc && !red)
		rc = sim_lower_dst(l, &in->op[0], letter, 0, &d);
	if (rc)
		return rc;
	o = sim_lower_emit(l, SIM_K_MEM, fn);
	if (!o)
		return l->failed;
	o->r[0] = d, o->r[1] = addr, o->r[2] = b, o->r[3] = c;
	o->imm = imm;
	o->n = in->type;
	o->target = (s32)l->k->nhits++;
	o->flags |= (uint16_t)(op | (l->vreg[addr].cls == 4) << 4);
	o->wr |= 1;
	o->rd |= (uint8_t)(2 | 4 | (op == CAS ? 8 : 0));
	return 0;
}

const struct sim_form sim_forms_atom[] = {
	{"atom *", NULL, {NULL, NULL}, lower_atom},
	{"red *", NULL, {NULL, NULL}, lower_atom},
};
const unsigned sim_nforms_atom = sizeof sim_forms_atom / sizeof *sim_forms_atom;
