/* SPDX-License-Identifier: MIT */
/*
 * Matching an instruction's dotted name against the tables of forms.
 *
 * A form either matches all parts of the name in order, or it does not match: an unknown modifier
 * is never skipped. First match wins, so a fast special case stands before its general form.
 * Called while loading a module only; no state, no locks.
 */
#include <string.h>

#include "tests/simcuda/exec_priv.h"

static const struct {
	const char *name;
	unsigned flag;
} modifiers[] = {
	{"rn", SIM_RN},	  {"rz", SIM_RZ},   {"rm", SIM_RM},   {"rp", SIM_RP},
	{"rni", SIM_RN},  {"rzi", SIM_RZ},  {"rmi", SIM_RM},  {"rpi", SIM_RP},
	{"ftz", SIM_FTZ}, {"sat", SIM_SAT}, {"rna", SIM_RNA},
};

static const struct {
	const struct sim_form *rows;
	const unsigned *n;
} tables[] = {
#define T(name) {sim_forms_##name, &sim_nforms_##name},
	SIM_FORM_TABLES(T)
#undef T
};

static unsigned flag_of(const char *part)
{
	for (unsigned i = 0; i < sizeof modifiers / sizeof *modifiers; i++)
		if (!strcmp(part, modifiers[i].name))
			return modifiers[i].flag;
	return 0;
}

/* Does one of the alternatives in [s, end) spell `part`? */
static int token_has(const char *s, const char *end, const char *part)
{
	size_t len = strlen(part);

	while (s < end) {
		const char *bar = memchr(s, '|', (size_t)(end - s));
		const char *stop = bar ? bar : end;

		if ((size_t)(stop - s) == len && !memcmp(s, part, len))
			return 1;
		s = stop + 1;
	}
	return 0;
}

/* `pattern *` ends in a star: the form's own lowering looks at the remaining parts. */
static int form_matches(const char *pattern, const struct rs_ptx_insn *in, unsigned *ret_flags)
{
	unsigned part = 0, flags = 0;

	while (*pattern) {
		const char *end = strchrnul(pattern, ' ');
		int optional = end[-1] == '?';

		if (end - pattern == 1 && *pattern == '*') {
			*ret_flags = flags;
			return 1;
		}
		if (part < in->nparts && token_has(pattern, end - optional, in->part[part])) {
			if (part)
				flags |= flag_of(in->part[part]);
			part++;
		} else if (!optional) {
			return 0;
		}
		pattern = *end ? end + 1 : end;
	}
	if (part != in->nparts)
		return 0;
	*ret_flags = flags;
	return 1;
}

const struct sim_form *sim_form_find(const struct rs_ptx_insn *in, unsigned *ret_flags)
{
	for (unsigned t = 0; t < sizeof tables / sizeof *tables; t++)
		for (unsigned i = 0; i < *tables[t].n; i++) {
			const struct sim_form *f = &tables[t].rows[i];

			if (f->pattern[0] == in->part[0][0] &&
			    form_matches(f->pattern, in, ret_flags))
				return f;
		}
	return NULL;
}

/*
 * For forms with a star: every part after the first must be a type, a space, a vector width or in
 * the NULL-terminated list. Returns the index of the first that is not, or -1.
 */
int sim_form_parts(const struct rs_ptx_insn *in, const char *const *allowed)
{
	static const char *const known[] = {"v2",	    "v4",	   "global", "shared",
					    "local",	    "param",	   "const",  "shared::cta",
					    "param::entry", "param::func", NULL};

	for (unsigned p = 1; p < in->nparts; p++) {
		int found = 0;

		for (unsigned i = 0; known[i] && !found; i++)
			found = !strcmp(known[i], in->part[p]);
		for (unsigned i = 0; allowed[i] && !found; i++)
			found = !strcmp(allowed[i], in->part[p]);
		for (unsigned t = RS_PTX_PRED; t < RS_PTX_TYPE_COUNT && !found; t++)
			found = !strcmp(rs_ptx_type_name(t), in->part[p]);
		if (!found)
			return (int)p;
	}
	return -1;
}
