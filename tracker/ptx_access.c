/* SPDX-License-Identifier: MIT */
/*
 * What each kernel of a module may do through its parameter words: rs_ptx_analyse.
 *
 * Every memory instruction's address is reduced to its bases: the terms that can be a pointer, that
 * is 64-bit atoms with coefficient 1. A base that is a parameter word gets the access; one that is
 * the address of a module variable sets reads_globals or writes_globals; one that was loaded, or no
 * base at all, makes the kernel opaque. A loaded 64-bit number that is scaled before it is added to
 * a pointer is an index: the access stays with the pointer, its bounds are unknown.
 *
 * Callers: the shim once per module image, tests. No locks, no global state.
 */
#include "tracker/ptx_access.h"
#include "tracker/ptx_build.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCRATCH_LIMIT  ((size_t)256 << 20)
#define MAX_GROUPS     160
#define MAX_CHOICES    4
#define MAX_EXPANSIONS 16
#define MAX_RUNS       96

struct access {
	const struct rs_val *address;
	const struct rs_pred *guard;
	const struct rs_ptx_insn *insn;
	struct access *next;
	uint32_t block, bytes;
	uint8_t dir, unbounded, no_dense, guarded;
};

/* Groups of one word and direction while they grow. */
struct side {
	struct rs_bound_group *groups;
	struct rs_bound_run (*runs)[MAX_RUNS];
	uint32_t n, cap;
	uint8_t unknown, any;
};

struct analysis {
	struct rs_vals v;
	struct rs_build build;
	struct rs_aff_mem scratch, *out;
	struct rs_ptx_kernel *k;
	const struct rs_ptx *ptx;
	const struct rs_ptx_func *func;
	struct access *first, **last;
	struct side side[RS_MAX_WORDS][2];
	unsigned expansions; /* of the access at hand */
	uint8_t any_word;    /* directions that may go through any word of the block */
};

static void opaque(struct analysis *an, const struct rs_ptx_insn *insn, const char *fmt,
		   const char *arg)
{
	char text[160];
	char *copy;

	if (an->k->opaque)
		return;
	snprintf(text, sizeof(text), fmt, arg);
	copy = rs_aff_alloc(an->out, strlen(text) + 1);
	strcpy(copy, text);
	an->k->opaque = 1;
	an->k->why = copy;
	an->k->why_line = insn ? insn->line : an->func->line;
}

static struct access *push_access(struct analysis *an, const struct rs_flow_step *step,
				  const struct rs_ptx_operand *addr, unsigned dir, uint32_t bytes)
{
	struct access *a = rs_aff_alloc(&an->scratch, sizeof(*a));

	a->address = rs_vals_address(&an->v, addr);
	a->insn = step->insn;
	a->block = an->v.block;
	a->bytes = bytes;
	a->dir = (uint8_t)dir;
	a->guard = rs_vals_guard(&an->v, step);
	a->guarded = step->pred >= 0;
	*an->last = a;
	an->last = &a->next;
	return a;
}

static int is_private(const struct rs_ptx_insn *insn)
{
	return insn->space == RS_PTX_SPACE_SHARED || insn->space == RS_PTX_SPACE_LOCAL ||
	       insn->space == RS_PTX_SPACE_PARAM || insn->space == RS_PTX_SPACE_REG;
}

/* wmma.load/store: a tile whose rows are a register apart. */
static void matrix(struct analysis *an, const struct rs_flow_step *step)
{
	const struct rs_ptx_insn *insn = step->insn;
	int store = insn->nparts > 1 && !strcmp(insn->part[1], "store");

	for (unsigned i = 0; i < insn->noperands; i++)
		if (insn->op[i].kind == RS_PTX_OP_ADDR && !is_private(insn))
			push_access(an, step, &insn->op[i], store ? RS_PTX_WRITES : RS_PTX_READS,
				    16)
				->unbounded = 1;
}

static void copy(struct analysis *an, const struct rs_flow_step *step)
{
	const struct rs_ptx_insn *insn = step->insn;

	if (insn->nparts < 2 || strcmp(insn->part[1], "async") || rs_ptx_has(insn, "bulk") ||
	    rs_ptx_has(insn, "reduce")) {
		opaque(an, insn, "a bulk copy, %s", insn->text);
		return;
	}
	if (insn->noperands < 3) /* commit, wait, arrive */
		return;
	if (insn->op[2].kind == RS_PTX_OP_IMM && insn->op[2].imm > 0 && insn->op[2].imm <= 16)
		push_access(an, step, &insn->op[1], RS_PTX_READS, (uint32_t)insn->op[2].imm);
	else
		opaque(an, insn, "an unknown form of %s", insn->text);
}

static void call(struct analysis *an, const struct rs_ptx_insn *insn)
{
	static const char *const harmless[] = {"vprintf", "__assertfail", "__assert_fail"};
	const char *name = NULL;

	for (unsigned i = 0; i < insn->noperands; i++)
		if (insn->op[i].kind == RS_PTX_OP_FUNC)
			name = insn->op[i].name;
	for (unsigned i = 0; name && i < sizeof(harmless) / sizeof(*harmless); i++)
		if (!strcmp(name, harmless[i])) {
			an->k->reads_globals = 1;
			return;
		}
	if (name)
		opaque(an, insn, "a call of %s", name);
	else
		opaque(an, insn, "an indirect call", NULL);
}

/* The walk's observer: collect the accesses of the round. */
static void on_step(struct rs_vals *v, const struct rs_flow_step *step)
{
	struct analysis *an = v->opaque;
	const struct rs_ptx_insn *insn = step->insn;
	uint32_t bytes = rs_ptx_type_bytes(insn->type) * (insn->vec ? insn->vec : 1u);

	if (step->kind != RS_FLOW_PLAIN)
		return;
	switch (v->what[v->step]) {
	case RS_WHAT_UNKNOWN:
		opaque(an, insn, "instruction %s", insn->text);
		return;
	case RS_WHAT_CALL:
		call(an, insn);
		return;
	case RS_WHAT_COPY:
		copy(an, step);
		return;
	case RS_WHAT_MATRIX:
		matrix(an, step);
		return;
	case RS_WHAT_QUIET:
	case RS_WHAT_VALUE:
		return;
	default:
		break;
	}
	if (is_private(insn))
		return;
	if (insn->noperands < 2 || !bytes) {
		opaque(an, insn, "an unknown form of %s", insn->text);
		return;
	}
	if (insn->space == RS_PTX_SPACE_CONST)
		an->k->reads_globals = 1;
	else if (v->what[v->step] == RS_WHAT_LOAD)
		push_access(an, step, &insn->op[1], RS_PTX_READS, bytes);
	else if (v->what[v->step] == RS_WHAT_STORE)
		push_access(an, step, &insn->op[0], RS_PTX_WRITES, bytes);
	else
		push_access(an, step, &insn->op[v->what[v->step] == RS_WHAT_ATOM],
			    RS_PTX_READS | RS_PTX_WRITES, bytes)
			->no_dense = 1;
}

static void on_round(struct rs_vals *v)
{
	struct analysis *an = v->opaque;

	an->first = NULL;
	an->last = &an->first;
	an->k->opaque = an->k->reads_globals = an->k->writes_globals = 0;
	an->k->why = NULL;
	if (v->flow.why) {
		an->k->opaque = 1;
		an->k->why = v->flow.why;
		an->k->why_line = v->flow.why_line;
	}
}

static void add_run(struct rs_bound_group *g, struct rs_bound_run *runs, int64_t offset,
		    int64_t bytes)
{
	int64_t end = offset + bytes;
	unsigned i = 0, j;

	while (i < g->nruns && runs[i].offset + runs[i].bytes < offset)
		i++;
	/* Runs [i, j) touch the new one and join it. */
	for (j = i; j < g->nruns && runs[j].offset <= end; j++) {
		if (runs[j].offset < offset)
			offset = runs[j].offset;
		if (runs[j].offset + runs[j].bytes > end)
			end = runs[j].offset + runs[j].bytes;
	}
	if (j == i && g->nruns == MAX_RUNS) { /* no room: keep the hull, give up density */
		g->no_dense = 1;
		if (runs[0].offset < offset)
			offset = runs[0].offset;
		if (runs[MAX_RUNS - 1].offset + runs[MAX_RUNS - 1].bytes > end)
			end = runs[MAX_RUNS - 1].offset + runs[MAX_RUNS - 1].bytes;
		runs[0] = (struct rs_bound_run){offset, end - offset};
		g->nruns = 1;
		return;
	}
	memmove(&runs[i + 1], &runs[j], (g->nruns - j) * sizeof(*runs));
	runs[i] = (struct rs_bound_run){offset, end - offset};
	g->nruns = (uint16_t)(g->nruns + 1 - (j - i));
}

/* The same polynomial but for its constant? Both kept copies. */
static int same_shape(const struct rs_aff_poly *a, const struct rs_aff_poly *b)
{
	return a->n == b->n && !memcmp(a->t, b->t, a->n * sizeof(*a->t));
}

/*
 * Merge the needs of another access. Needs that differ only by the constant become one over the
 * hull of the constants.
 */
static int merge_needs(struct analysis *an, struct rs_bound_group *g, const struct rs_needs *needs)
{
	struct rs_need *list = (struct rs_need *)g->needs;

	for (unsigned i = 0; needs && i < needs->n; i++) {
		const struct rs_need *n = rs_build_need(&an->build, needs->id[i]);
		struct rs_need *m = NULL;
		int64_t shift;

		if (!n)
			return 0;
		for (unsigned j = 0; j < g->nneeds && !m; j++)
			if (same_shape(list[j].p, n->p))
				m = &list[j];
		if (!m) {
			if (g->nneeds == RS_MAX_NEEDS)
				return 0;
			list[g->nneeds++] = *n;
			continue;
		}
		/* lo <= p + shift <= hi, in terms of p */
		shift = n->p->c - m->p->c;
		if (shift > INT32_MAX || shift < INT32_MIN)
			return 0;
		if (n->lo - shift > m->lo)
			m->lo = n->lo - shift;
		if (n->hi - shift < m->hi)
			m->hi = n->hi - shift;
	}
	return 1;
}

static struct rs_bound_group *find_group(struct analysis *an, struct side *s,
					 const struct rs_aff_poly *p,
					 const struct rs_bound_context *context, int no_dense)
{
	struct rs_bound_group *g;

	for (uint32_t i = 0; i < s->n; i++) {
		g = &s->groups[i];
		if (g->context == context && g->no_dense == no_dense && same_shape(g->p, p))
			return g;
	}
	if (s->n == MAX_GROUPS)
		return NULL;
	if (s->n == s->cap) {
		uint32_t cap = s->cap ? 2 * s->cap : 4;
		struct rs_bound_group *groups = rs_aff_alloc(&an->scratch, cap * sizeof(*groups));
		struct rs_bound_run(*runs)[MAX_RUNS] =
			rs_aff_alloc(&an->scratch, cap * sizeof(*runs));

		if (s->n) {
			memcpy(groups, s->groups, s->n * sizeof(*groups));
			memcpy(runs, s->runs, s->n * sizeof(*runs));
		}
		s->groups = groups;
		s->runs = runs;
		s->cap = cap;
	}
	g = &s->groups[s->n++];
	g->p = p;
	g->context = context;
	g->no_dense = (uint8_t)no_dense;
	g->needs = rs_aff_alloc(&an->scratch, RS_MAX_NEEDS * sizeof(*g->needs));
	return g;
}

/* An access at p + [0, bytes) through parameter word number `word`. */
static void add_bounds(struct analysis *an, const struct access *a, const struct rs_aff_poly *p,
		       unsigned word, struct side *s, int no_dense)
{
	struct rs_aff_atom key = {
		.kind = RS_AFF_PARAM,
		.a = an->v.word[word],
		.b = 8,
		.origin = {(uint64_t)1 << word, 0},
	};
	const struct rs_bound_context *context;
	const struct rs_aff_poly *q, *kept;
	struct rs_bound_group *g;

	q = rs_aff_add(&an->v.aff, p,
		       rs_aff_var(&an->v.aff, 64, rs_aff_atom(&an->v.aff, &key, NULL)), -1);
	kept = q ? rs_build_poly(&an->build, q) : NULL;
	if (!kept || kept->c > INT32_MAX * (int64_t)256 || kept->c < INT32_MIN * (int64_t)256) {
		s->unknown = 1;
		return;
	}
	context = rs_build_context(&an->build, a->block, a->guarded ? a->guard : NULL);
	g = find_group(an, s, kept, context, no_dense || a->no_dense);
	if (!g || !merge_needs(an, g, a->address->needs)) {
		s->unknown = 1;
		return;
	}
	add_run(g, s->runs[g - s->groups], kept->c - g->p->c, a->bytes);
}

static void through_word(struct analysis *an, const struct access *a, const struct rs_aff_poly *p,
			 unsigned word, int no_dense)
{
	for (unsigned d = 0; d < 2; d++) {
		struct side *s = &an->side[word][d];

		if (!(a->dir & (d ? RS_PTX_WRITES : RS_PTX_READS)))
			continue;
		s->any = 1;
		if (!p || a->unbounded)
			s->unknown = 1;
		if (!s->unknown)
			add_bounds(an, a, p, word, s, no_dense);
	}
}

/* Consequences of a base that is no single parameter word; returns 1 if there were any. */
static int through_origin(struct analysis *an, const struct access *a, uint32_t from)
{
	if (from & RS_AFF_MEMORY)
		opaque(an, a->insn, "%s at an address that was loaded from memory", a->insn->text);
	if (from & RS_AFF_ANYWORD)
		an->any_word |= a->dir;
	if (from & (RS_AFF_GLOBAL | RS_AFF_CONSTANT)) {
		if (a->dir & RS_PTX_READS)
			an->k->reads_globals = 1;
		if (a->dir & RS_PTX_WRITES && from & RS_AFF_GLOBAL)
			an->k->writes_globals = 1;
	}
	return from != 0;
}

/* All that the value may have come from. */
static void through_anything(struct analysis *an, const struct access *a,
			     const struct rs_aff_poly *p)
{
	struct rs_aff_origin o = a->address->origin;

	for (unsigned i = 0; p && i < p->n; i++)
		for (unsigned d = 0; d < RS_AFF_DEGREE && p->t[i].atom[d]; d++)
			o = rs_origin_join(o, an->v.aff.atoms[p->t[i].atom[d]]->origin);
	for (unsigned w = 0; w < an->v.nwords; w++)
		if (o.words >> w & 1)
			through_word(an, a, p, w, 1);
	if (!through_origin(an, a, o.from) && !o.words)
		opaque(an, a->insn, "%s at an address without a base", a->insn->text);
}

static void resolve(struct analysis *an, const struct access *a, const struct rs_aff_poly *p,
		    unsigned depth)
{
	struct rs_aff_origin base = {0, 0};

	for (unsigned i = 0; i < p->n; i++) {
		uint16_t id = p->t[i].atom[0];
		const struct rs_aff_atom *x = an->v.aff.atoms[id];

		if (p->t[i].coef != 1 || p->t[i].atom[1] || x->narrow)
			continue;
		if (x->kind == RS_AFF_CHOICE && (x->origin.words || x->origin.from) &&
		    depth < MAX_CHOICES && an->expansions++ < MAX_EXPANSIONS) {
			const struct rs_aff_poly *rest =
				rs_aff_add(&an->v.aff, p, rs_aff_var(&an->v.aff, 64, id), -1);

			for (unsigned j = 0; rest && j < x->nargs; j++) {
				const struct rs_aff_poly *q =
					rs_aff_add(&an->v.aff, rest, x->arg[j], 1);

				if (q)
					resolve(an, a, q, depth + 1);
				else
					through_anything(an, a, p);
			}
			if (rest)
				return;
		}
		base = rs_origin_join(base, x->origin);
	}
	if (!base.words && !base.from) {
		through_anything(an, a, p);
		return;
	}
	for (unsigned w = 0; w < an->v.nwords; w++)
		if (base.words >> w & 1)
			through_word(an, a, p, w, depth > 0);
	through_origin(an, a, base.from);
}

static void finish_side(struct analysis *an, struct side *s, struct rs_bound_side *out)
{
	struct rs_bound_group *groups;

	out->unknown = s->unknown;
	if (s->unknown || !s->n)
		return;
	groups = rs_aff_alloc(an->out, s->n * sizeof(*groups));
	for (uint32_t i = 0; i < s->n; i++) {
		struct rs_need *needs =
			rs_aff_alloc(an->out, (s->groups[i].nneeds + 1u) * sizeof(*needs));
		struct rs_bound_run *runs =
			rs_aff_alloc(an->out, s->groups[i].nruns * sizeof(*runs));

		memcpy(needs, s->groups[i].needs, s->groups[i].nneeds * sizeof(*needs));
		memcpy(runs, s->runs[i], s->groups[i].nruns * sizeof(*runs));
		groups[i] = s->groups[i];
		groups[i].needs = needs;
		groups[i].runs = runs;
	}
	out->groups = groups;
	out->ngroups = s->n;
	rs_build_order(&an->build, out);
}

static void put_word(struct analysis *an, struct rs_ptx_bounds *b, uint32_t offset, int index)
{
	struct rs_ptx_kernel *k = an->k;
	uint32_t n = k->nwords++;

	k->words[n].offset = offset;
	k->words[n].dir = an->any_word;
	for (unsigned d = 0; d < 2; d++) {
		if (index >= 0 && an->side[index][d].any) {
			k->words[n].dir |= d ? RS_PTX_WRITES : RS_PTX_READS;
			finish_side(an, &an->side[index][d], &b->words[n][d]);
		}
		if (an->any_word & (d ? RS_PTX_WRITES : RS_PTX_READS))
			b->words[n][d].unknown = 1;
	}
}

static void put_decides(struct analysis *an, struct rs_ptx_bounds *b)
{
	struct rs_bound_bytes *d = rs_aff_alloc(an->out, (b->natoms + 1) * sizeof(*d));

	for (uint32_t i = 0; i < b->natoms; i++) {
		const struct rs_bound_atom *a = &b->atoms[i];

		if (a->kind == RS_AFF_PARAM)
			d[b->ndecides++] = (struct rs_bound_bytes){
				(uint32_t)a->a, (uint32_t)(a->b < 0 ? -a->b : a->b)};
	}
	b->decides = d;
}

/* The words in the order of their offsets; all of them if any may be used. */
static void finish(struct analysis *an)
{
	struct rs_ptx_bounds *b = rs_aff_alloc(an->out, sizeof(*b));
	uint64_t max = an->v.nwords + an->func->param_bytes / 8 + 1;
	struct rs_bound_atom *atoms;

	an->k->words = rs_aff_alloc(an->out, max * sizeof(*an->k->words));
	b->words = rs_aff_alloc(an->out, max * sizeof(*b->words));
	an->k->nwords = 0;
	for (uint64_t offset = 0; offset < an->func->param_bytes; offset++) {
		int index = -1;

		for (uint32_t w = 0; w < an->v.nwords; w++)
			if (an->v.word[w] == offset)
				index = (int)w;
		if (index >= 0 ||
		    (an->any_word && !(offset % 8) && offset + 8 <= an->func->param_bytes))
			put_word(an, b, (uint32_t)offset, index);
	}
	atoms = rs_aff_alloc(an->out, (an->build.natoms + 1) * sizeof(*atoms));
	if (an->build.natoms)
		memcpy(atoms, an->build.atoms, an->build.natoms * sizeof(*atoms));
	b->atoms = atoms;
	b->natoms = an->build.natoms;
	put_decides(an, b);
	an->k->bounds = b;
}

static void analyse(struct analysis *an)
{
	struct rs_vals *v = &an->v;

	v->mem = &an->scratch;
	v->opaque = an;
	v->on_step = on_step;
	rs_aff_init(&v->aff, &an->scratch);
	rs_flow_build(&v->flow, &an->scratch, an->ptx, an->func);
	rs_vals_run(v, on_round);
	rs_build_init(&an->build, v, an->out);
	for (const struct access *a = an->first; a; a = a->next) {
		an->expansions = 0;
		if (a->address->p && a->address->p->width == 64)
			resolve(an, a, a->address->p, 0);
		else
			through_anything(an, a, NULL);
	}
	finish(an);
}

/* A kernel that cannot be followed: everything its arguments reach. */
static void give_up(struct analysis *an, const char *why)
{
	memset(an->side, 0, sizeof(an->side));
	memset(&an->v, 0, sizeof(an->v));
	memset(&an->build, 0, sizeof(an->build));
	an->k->opaque = 1;
	an->k->reads_globals = an->k->writes_globals = 1;
	an->k->why = why;
	an->k->why_line = an->func->line;
	an->any_word = RS_PTX_READS | RS_PTX_WRITES;
	finish(an);
}

/* Everything of the analysis but its result. */
static void drop(struct analysis *an)
{
	rs_aff_release(&an->scratch);
	free(an);
}

static int analyse_kernel(const struct rs_ptx *ptx, const struct rs_ptx_func *func,
			  struct rs_aff_mem *out, struct rs_ptx_kernel *k)
{
	struct analysis *const an = calloc(1, sizeof(*an));
	char *name;
	int why;

	if (!an)
		return -ENOMEM;
	if (setjmp(out->fail)) {
		drop(an);
		return -ENOMEM;
	}
	name = rs_aff_alloc(out, strlen(func->name) + 1);
	strcpy(name, func->name);
	k->name = name;
	k->param_bytes = func->param_bytes;
	an->k = k;
	an->ptx = ptx;
	an->func = func;
	an->out = out;
	an->scratch.limit = SCRATCH_LIMIT;
	why = setjmp(an->scratch.fail);
	if (why == RS_AFF_NOMEM) {
		drop(an);
		return -ENOMEM;
	}
	if (why)
		give_up(an, "the kernel is too large to be followed");
	else
		analyse(an);
	drop(an);
	return 0;
}

static int make_room(const struct rs_ptx *ptx, struct rs_aff_mem *out, struct rs_ptx_module *m)
{
	if (setjmp(out->fail))
		return -ENOMEM;
	m->kernels = rs_aff_alloc(out, (ptx->nfuncs + 1) * sizeof(*m->kernels));
	return 0;
}

/* Kept memory: the module, its kernels, and all that hangs off them. */
static int analyse_all(const struct rs_ptx *ptx, struct rs_aff_mem *out, struct rs_ptx_module *m)
{
	int r = make_room(ptx, out, m);

	for (uint32_t i = 0; !r && i < ptx->nfuncs; i++)
		if (ptx->funcs[i]->is_entry)
			r = analyse_kernel(ptx, ptx->funcs[i], out, &m->kernels[m->nkernels++]);
	return r;
}

int rs_ptx_analyse(const struct rs_ptx *ptx, struct rs_ptx_module **ret_module)
{
	struct rs_ptx_module *m = calloc(1, sizeof(*m));
	struct rs_aff_mem *out = calloc(1, sizeof(*out));
	int r = m && out ? analyse_all(ptx, out, m) : -ENOMEM;

	if (m)
		m->arena = out;
	if (r)
		rs_ptx_module_free(m);
	else
		*ret_module = m;
	if (r && !m)
		free(out);
	return r;
}

void rs_ptx_module_free(struct rs_ptx_module *module)
{
	if (!module)
		return;
	if (module->arena)
		rs_aff_release(module->arena);
	free(module->arena);
	free(module);
}

const struct rs_ptx_kernel *rs_ptx_module_find(const struct rs_ptx_module *m, const char *name)
{
	for (uint32_t i = 0; i < m->nkernels; i++)
		if (!strcmp(m->kernels[i].name, name))
			return &m->kernels[i];
	return NULL;
}
