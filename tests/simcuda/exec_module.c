/* SPDX-License-Identifier: MIT */
/*
 * Modules: parse, place variables, lower every kernel; queries.
 *
 * The parse stays with the module, because micro-ops point at their instructions and names. Device
 * functions are lowered on their own as well, so that an unsupported instruction is found even where
 * no kernel reaches it. Immutable after the load.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simcuda/exec_lower.h"

static void kernel_free(struct sim_kernel *k)
{
	for (uint32_t i = 0; i < k->ntables; i++)
		free(k->tables[i]);
	free(k->tables);
	free(k->code);
	free(k->pre);
	free(k->consts);
	free(k->side);
}

void sim_module_free(struct sim_module *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < m->nkernels; i++)
		kernel_free(&m->kernels[i]);
	free(m->kernels);
	free(m->placed);
	rs_ptx_free(m->ptx);
	free(m);
}

static const struct sim_placed *find_placed(const struct sim_module *m, const char *name)
{
	for (uint32_t i = 0; i < m->nplaced; i++)
		if (!strcmp(m->placed[i].var->name, name))
			return &m->placed[i];
	return NULL;
}

/* Addresses of other variables inside an initialiser. */
static int relocate(const struct sim_module *m, const struct sim_placed *p, char *err,
		    size_t errlen)
{
	for (uint32_t i = 0; i < p->var->nrelocs; i++) {
		const struct rs_ptx_reloc *r = &p->var->relocs[i];
		const struct sim_placed *to = find_placed(m, r->symbol);
		uint64_t value;

		if (!to) {
			snprintf(err, errlen,
				 "line %u: the address of %s in an initialiser is not supported",
				 p->var->line, r->symbol);
			return -EINVAL;
		}
		value = to->addr + (uint64_t)r->addend;
		memcpy((uint8_t *)(uintptr_t)p->addr + r->offset, &value, r->bytes);
	}
	return 0;
}

static int place_variables(struct sim_module *m, sim_alloc_fn alloc, void *opaque, char *err,
			   size_t errlen)
{
	const struct rs_ptx *ptx = m->ptx;
	int rc = 0;

	m->placed = calloc(ptx->nvars + 1, sizeof *m->placed);
	if (!m->placed)
		return -ENOMEM;
	for (uint32_t i = 0; i < ptx->nvars; i++) {
		const struct rs_ptx_var *v = ptx->vars[i];
		void *mem;

		if (v->space != RS_PTX_SPACE_GLOBAL && v->space != RS_PTX_SPACE_CONST)
			continue;
		if (v->is_extern) {
			snprintf(err, errlen, "line %u: variable %s is defined nowhere", v->line,
				 v->name);
			return -EINVAL;
		}
		mem = alloc(opaque, v->size ? v->size : 1, v->align ? v->align : 1);
		if (!mem)
			return -ENOMEM;
		if (v->init)
			memcpy(mem, v->init, v->size);
		else
			memset(mem, 0, v->size);
		m->placed[m->nplaced].var = v;
		m->placed[m->nplaced++].addr = (uint64_t)(uintptr_t)mem;
	}
	for (uint32_t i = 0; i < m->nplaced && !rc; i++)
		rc = relocate(m, &m->placed[i], err, errlen);
	return rc;
}

static int lower_all(struct sim_module *m, char *err, size_t errlen)
{
	const struct rs_ptx *ptx = m->ptx;
	int rc = 0;

	m->kernels = calloc(ptx->nfuncs + 1, sizeof *m->kernels);
	if (!m->kernels)
		return -ENOMEM;
	for (uint32_t i = 0; i < ptx->nfuncs && !rc; i++) {
		const struct rs_ptx_func *f = ptx->funcs[i];
		struct sim_kernel *k = &m->kernels[m->nkernels];

		if (f->is_extern)
			continue;
		k->func = f;
		k->module = m;
		if (f->is_entry) {
			m->nkernels++;
			rc = sim_lower_kernel(m, k, err, errlen);
		} else {
			rc = sim_lower_function(m, k, err, errlen);
			kernel_free(k);
			memset(k, 0, sizeof *k);
		}
	}
	return rc;
}

static int load(struct sim_module *m, const char *ptx, size_t len, sim_alloc_fn alloc, void *opaque,
		char *err, size_t errlen)
{
	struct rs_ptx_error e = {0, ""};
	int rc = rs_ptx_parse(ptx, len, &m->ptx, &e);

	if (rc == -EINVAL)
		snprintf(err, errlen, "line %u: %s", e.line, e.text);
	if (!rc)
		rc = place_variables(m, alloc, opaque, err, errlen);
	if (!rc)
		rc = lower_all(m, err, errlen);
	return rc;
}

struct sim_module *sim_module_load(const char *ptx, size_t len, sim_alloc_fn alloc, void *opaque,
				   char *err, size_t errlen)
{
	struct sim_module *m = calloc(1, sizeof *m);
	char scratch[256];
	int rc;

	if (!err || !errlen)
		err = scratch, errlen = sizeof scratch;
	err[0] = 0;
	rc = m ? load(m, ptx, len, alloc, opaque, err, errlen) : -ENOMEM;
	if (!rc)
		return m;
	if (rc == -ENOMEM)
		snprintf(err, errlen, "out of memory");
	sim_module_free(m);
	return NULL;
}

const struct sim_kernel *sim_module_kernel(const struct sim_module *m, const char *name)
{
	for (uint32_t i = 0; i < m->nkernels; i++)
		if (!strcmp(m->kernels[i].func->name, name))
			return &m->kernels[i];
	return NULL;
}

const struct sim_kernel *sim_module_kernel_at(const struct sim_module *m, unsigned i)
{
	return i < m->nkernels ? &m->kernels[i] : NULL;
}

int sim_module_global(const struct sim_module *m, const char *name, uint64_t *ret_addr,
		      size_t *ret_size)
{
	const struct sim_placed *p = find_placed(m, name);

	if (!p)
		return -ENOENT;
	*ret_addr = p->addr;
	*ret_size = p->var->size;
	return 0;
}

const char *sim_kernel_name(const struct sim_kernel *k)
{
	return k->func->name;
}

unsigned sim_kernel_nparams(const struct sim_kernel *k)
{
	return k->func->nparams;
}

int sim_kernel_param(const struct sim_kernel *k, unsigned i, size_t *ret_offset, size_t *ret_size)
{
	if (i >= k->func->nparams)
		return -EINVAL;
	*ret_offset = k->func->params[i]->offset;
	*ret_size = k->func->params[i]->size;
	return 0;
}

size_t sim_kernel_param_bytes(const struct sim_kernel *k)
{
	return k->func->param_bytes;
}

size_t sim_kernel_shared_bytes(const struct sim_kernel *k)
{
	return k->shared_bytes;
}

size_t sim_kernel_local_bytes(const struct sim_kernel *k)
{
	return k->local_bytes;
}

unsigned sim_kernel_nregs(const struct sim_kernel *k)
{
	return k->nslots;
}

unsigned sim_kernel_max_threads(const struct sim_kernel *k)
{
	const uint32_t *t = k->func->reqntid[0] ? k->func->reqntid : k->func->maxntid;

	return t[0] ? t[0] * t[1] * t[2] : 0;
}
