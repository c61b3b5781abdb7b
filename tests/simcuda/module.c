/* SPDX-License-Identifier: MIT */
/*
 * Modules: loading PTX into a context, functions, module variables.
 *
 * A module keeps its text (the engine may refer to it) and owns the allocations of its variables. What
 * the engine says against the PTX goes to the JIT error log if the caller gave one, and to stderr.
 * Driver lock held.
 */
#include "tests/simcuda/sim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct placing {
	CUcontext ctx;
	CUmodule mod;
	CUresult failed;
};

static void *place_variable(void *opaque, size_t size, size_t align)
{
	struct placing *p = opaque;
	struct sim_alloc *a, **list;

	(void)align; /* every block is aligned to 512 bytes, more than PTX asks for */
	list = realloc(p->mod->vars, (p->mod->nvars + 1) * sizeof(*list));
	if (!list) {
		p->failed = CUDA_ERROR_OUT_OF_MEMORY;
		return NULL;
	}
	p->mod->vars = list;
	p->failed = sim_mem_alloc(p->ctx, SIM_MEM_MODULE, size ? size : 1, 0, &a);
	if (p->failed)
		return NULL;
	list[p->mod->nvars++] = a;
	return (void *)(uintptr_t)a->base;
}

void sim_func_defaults(int *attr)
{
	memset(attr, 0, SIM_FUNC_ATTRS * sizeof(*attr));
	attr[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = -1; /* up to the default limit */
	attr[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = -1;
}

static int add_functions(CUmodule m)
{
	const struct sim_kernel *k;
	CUfunction *at = &m->funcs;

	for (unsigned i = 0; (k = sim_module_kernel_at(m->engine, i)); i++) {
		CUfunction f = calloc(1, sizeof(*f));

		if (!f || sim_handle_add(f, SIM_H_FUNC)) {
			free(f);
			return -ENOMEM;
		}
		f->mod = m;
		f->k = k;
		sim_func_defaults(f->attr);
		*at = f;
		at = &f->next;
	}
	return 0;
}

CUresult sim_module_new(CUcontext ctx, char *text, char *err, size_t errlen, CUmodule *ret)
{
	CUmodule m = calloc(1, sizeof(*m));
	struct placing p = {ctx, m, CUDA_SUCCESS};
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (!m) {
		free(text);
		return r;
	}
	m->ctx = ctx;
	m->text = text;
	m->next = ctx->modules;
	ctx->modules = m;
	m->engine = sim_module_load(text, strlen(text), place_variable, &p, err, errlen);
	if (!m->engine) {
		r = p.failed ? p.failed : CUDA_ERROR_INVALID_PTX;
		if (r == CUDA_ERROR_INVALID_PTX)
			sim_log("PTX refused: %s", err);
	} else if (!add_functions(m) && !sim_handle_add(m, SIM_H_MODULE)) {
		*ret = m;
		return CUDA_SUCCESS;
	}
	sim_module_delete(m);
	return r;
}

void sim_module_delete(CUmodule m)
{
	CUmodule *at = &m->ctx->modules;

	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
	while (m->funcs) {
		CUfunction f = m->funcs;

		m->funcs = f->next;
		sim_handle_del(f);
		free(f->old);
		free(f);
	}
	if (m->engine)
		sim_module_free(m->engine);
	for (size_t i = 0; i < m->nvars; i++)
		sim_mem_free(m->vars[i]);
	if (m->lib)
		sim_library_drop(m->lib, m);
	sim_handle_del(m);
	free(m->vars);
	free(m->text);
	free(m);
}

/* Fill the caller's log buffers: `text` for errors, an empty string for information. */
static void fill_logs(unsigned n, CUjit_option *opts, void **values, const char *text)
{
	char *error = NULL, *info = NULL;
	size_t size = 0;

	for (unsigned i = 0; i < n; i++) {
		if (opts[i] == CU_JIT_ERROR_LOG_BUFFER)
			error = values[i];
		else if (opts[i] == CU_JIT_INFO_LOG_BUFFER)
			info = values[i];
		else if (opts[i] == CU_JIT_WALL_TIME)
			values[i] = NULL; /* 0.0f: time on this device is not wall time */
	}
	for (unsigned i = 0; i < n; i++) {
		size_t room = (size_t)(uintptr_t)values[i];

		if (opts[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES) {
			if (info && room)
				*info = 0;
			values[i] = NULL;
		} else if (opts[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) {
			if (error && room) {
				snprintf(error, room, "%s", text);
				size = strlen(error);
			}
			values[i] = (void *)(uintptr_t)size;
		}
	}
}

static CUresult load(CUcontext ctx, CUmodule *ret, const void *image, unsigned n,
		     CUjit_option *opts, void **values)
{
	char err[512] = "";
	char *text;
	CUresult r;

	if (!ret || !image || (n && (!opts || !values)))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < n; i++)
		if ((unsigned)opts[i] >= CU_JIT_NUM_OPTIONS)
			return CUDA_ERROR_INVALID_VALUE;
	r = sim_image_text(image, &text);
	if (!r)
		r = sim_module_new(ctx, text, err, sizeof(err), ret);
	fill_logs(n, opts, values, err);
	return r;
}

SIM_API(cuModuleLoad, SIM_CTX | SIM_UNSAFE, P(CUmodule *ret, const char *name), P(ret, name))
{
	char *image;
	CUresult r = ret && name ? sim_image_read(name, &image) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = load(call->ctx, ret, image, 0, NULL, NULL);
	free(image);
	return r;
}

SIM_API(cuModuleLoadData, SIM_CTX | SIM_UNSAFE, P(CUmodule *ret, const void *image), P(ret, image))
{
	return load(call->ctx, ret, image, 0, NULL, NULL);
}

SIM_API(cuModuleLoadDataEx, SIM_CTX | SIM_UNSAFE,
	P(CUmodule *ret, const void *image, unsigned n, CUjit_option *opts, void **values),
	P(ret, image, n, opts, values))
{
	return load(call->ctx, ret, image, n, opts, values);
}

SIM_API(cuModuleLoadFatBinary, SIM_CTX | SIM_UNSAFE, P(CUmodule *ret, const void *image),
	P(ret, image))
{
	return load(call->ctx, ret, image, 0, NULL, NULL);
}

SIM_API(cuModuleUnload, SIM_CTX | SIM_UNSAFE, P(CUmodule m), P(m))
{
	CUresult r;

	if (!sim_handle_is(m, SIM_H_MODULE) || m->lib)
		return CUDA_ERROR_INVALID_HANDLE;
	r = sim_ctx_sync(m->ctx);
	if (!r)
		sim_module_delete(m);
	return r;
}

static CUfunction find(CUmodule m, const char *name)
{
	for (CUfunction f = m->funcs; f; f = f->next)
		if (!strcmp(sim_kernel_name(f->k), name))
			return f;
	return NULL;
}

SIM_API(cuModuleGetFunction, SIM_CTX, P(CUfunction *ret, CUmodule m, const char *name),
	P(ret, m, name))
{
	CUfunction f;

	if (!ret || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_handle_is(m, SIM_H_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	f = find(m, name);
	if (!f)
		return CUDA_ERROR_NOT_FOUND;
	*ret = f;
	return CUDA_SUCCESS;
}

SIM_API(cuModuleGetFunctionCount, SIM_CTX, P(unsigned *ret, CUmodule m), P(ret, m))
{
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_handle_is(m, SIM_H_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	*ret = 0;
	for (CUfunction f = m->funcs; f; f = f->next)
		++*ret;
	return CUDA_SUCCESS;
}

SIM_API(cuModuleEnumerateFunctions, SIM_CTX, P(CUfunction *ret, unsigned n, CUmodule m),
	P(ret, n, m))
{
	if (!ret || !n)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_handle_is(m, SIM_H_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	for (CUfunction f = m->funcs; f && n; f = f->next, n--)
		*ret++ = f;
	return CUDA_SUCCESS;
}

SIM_API(cuModuleGetLoadingMode, SIM_INIT, P(CUmoduleLoadingMode *ret), P(ret))
{
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = CU_MODULE_EAGER_LOADING;
	return CUDA_SUCCESS;
}

SIM_API(cuModuleGetGlobal_v2, SIM_CTX,
	P(CUdeviceptr *ret, size_t *ret_size, CUmodule m, const char *name),
	P(ret, ret_size, m, name))
{
	uint64_t addr;
	size_t size;

	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_handle_is(m, SIM_H_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	if (sim_module_global(m->engine, name, &addr, &size))
		return CUDA_ERROR_NOT_FOUND;
	if (ret)
		*ret = addr;
	if (ret_size)
		*ret_size = size;
	return CUDA_SUCCESS;
}
