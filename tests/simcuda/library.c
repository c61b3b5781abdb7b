/* SPDX-License-Identifier: MIT */
/*
 * Libraries (CUDA 12): code that belongs to no context, and its kernels.
 *
 * A library keeps the text and one engine module that is never run, to know kernels without a context; in each
 * context that needs it a module is loaded on first use. A CUkernel is accepted wherever a CUfunction
 * is. Driver lock held.
 */
#include "tests/simcuda/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *keep_variable(void *opaque, size_t size, size_t align)
{
	CUlibrary lib = opaque;
	void **list = realloc(lib->vars, (lib->nvars + 1) * sizeof(*list));
	void *p = NULL;

	if (!list)
		return NULL;
	lib->vars = list;
	if (posix_memalign(&p, align < 16 ? 16 : align, size ? size : 1))
		return NULL;
	list[lib->nvars++] = p;
	return p;
}

/* A module of the library is being deleted, with its context or by library_free. */
void sim_library_drop(CUlibrary lib, CUmodule m)
{
	for (size_t i = 0; i < lib->nmods; i++)
		if (lib->mods[i].mod == m) {
			lib->mods[i] = lib->mods[--lib->nmods];
			return;
		}
}

static void library_free(CUlibrary lib)
{
	while (lib->nmods)
		sim_module_delete(lib->mods[0].mod);
	while (lib->kerns) {
		CUkernel k = lib->kerns;

		lib->kerns = k->next;
		sim_handle_del(k);
		free(k);
	}
	if (lib->engine)
		sim_module_free(lib->engine);
	for (size_t i = 0; i < lib->nvars; i++)
		free(lib->vars[i]);
	sim_handle_del(lib);
	free(lib->vars);
	free(lib->mods);
	free(lib->text);
	free(lib);
}

static CUresult add_kernels(CUlibrary lib)
{
	const struct sim_kernel *k;
	CUkernel *at = &lib->kerns;

	for (unsigned i = 0; (k = sim_module_kernel_at(lib->engine, i)); i++) {
		CUkernel kern = calloc(1, sizeof(*kern));

		if (!kern || sim_handle_add(kern, SIM_H_KERN)) {
			free(kern);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		kern->lib = lib;
		kern->k = k;
		sim_func_defaults(kern->attr);
		*at = kern;
		at = &kern->next;
	}
	return CUDA_SUCCESS;
}

static CUresult load(CUlibrary *ret, const void *image)
{
	CUlibrary lib = calloc(1, sizeof(*lib));
	char err[512] = "";
	CUresult r;

	if (!lib)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = sim_image_text(image, &lib->text);
	if (!r) {
		lib->engine = sim_module_load(lib->text, strlen(lib->text), keep_variable, lib, err,
					      sizeof(err));
		if (!lib->engine) {
			sim_log("PTX refused: %s", err);
			r = CUDA_ERROR_INVALID_PTX;
		}
	}
	if (!r)
		r = add_kernels(lib);
	if (!r && sim_handle_add(lib, SIM_H_LIB))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (r)
		library_free(lib);
	else
		*ret = lib;
	return r;
}

static CUresult module_in(CUcontext ctx, CUlibrary lib, CUmodule *ret)
{
	struct sim_lib_mod *list;
	char err[512] = "";
	char *text;
	CUresult r;

	for (size_t i = 0; i < lib->nmods; i++)
		if (lib->mods[i].ctx == ctx) {
			*ret = lib->mods[i].mod;
			return CUDA_SUCCESS;
		}
	list = realloc(lib->mods, (lib->nmods + 1) * sizeof(*list));
	if (!list)
		return CUDA_ERROR_OUT_OF_MEMORY;
	lib->mods = list;
	text = strdup(lib->text);
	r = text ? sim_module_new(ctx, text, err, sizeof(err), ret) : CUDA_ERROR_OUT_OF_MEMORY;
	if (r)
		return r;
	(*ret)->lib = lib;
	list[lib->nmods++] = (struct sim_lib_mod){ctx, *ret};
	/* Functions and kernels are in the same order: both list the text. */
	CUkernel k = lib->kerns;

	for (CUfunction f = (*ret)->funcs; f && k; f = f->next, k = k->next) {
		f->kern = k;
		memcpy(f->attr, k->attr, sizeof(f->attr));
	}
	return CUDA_SUCCESS;
}

CUresult sim_func_resolve(CUcontext ctx, CUfunction h, CUfunction *ret, CUkernel *ret_kern)
{
	CUkernel k = (CUkernel)h;
	CUmodule m;
	CUresult r;

	*ret_kern = NULL;
	if (sim_handle_is(h, SIM_H_FUNC)) {
		*ret = h;
		return CUDA_SUCCESS;
	}
	if (!sim_handle_is(k, SIM_H_KERN))
		return CUDA_ERROR_INVALID_HANDLE;
	r = module_in(ctx, k->lib, &m);
	if (r)
		return r;
	for (CUfunction f = m->funcs; f; f = f->next)
		if (f->kern == k) {
			*ret = f;
			*ret_kern = k;
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_NOT_FOUND;
}

SIM_API(cuLibraryLoadData, SIM_INIT,
	P(CUlibrary *ret, const void *image, CUjit_option *jit, void **jit_values, unsigned njit,
	  CUlibraryOption *opts, void **values, unsigned n),
	P(ret, image, jit, jit_values, njit, opts, values, n))
{
	if (!ret || !image || (njit && (!jit || !jit_values)) || (n && !opts))
		return CUDA_ERROR_INVALID_VALUE;
	(void)values;
	return load(ret, image);
}

SIM_API(cuLibraryLoadFromFile, SIM_INIT,
	P(CUlibrary *ret, const char *name, CUjit_option *jit, void **jit_values, unsigned njit,
	  CUlibraryOption *opts, void **values, unsigned n),
	P(ret, name, jit, jit_values, njit, opts, values, n))
{
	char *image = NULL;
	CUresult r;

	if (!ret || !name || (njit && (!jit || !jit_values)) || (n && !opts))
		return CUDA_ERROR_INVALID_VALUE;
	(void)values;
	r = sim_image_read(name, &image);
	if (!r)
		r = load(ret, image);
	free(image);
	return r;
}

SIM_API(cuLibraryUnload, SIM_INIT, P(CUlibrary lib), P(lib))
{
	if (!sim_handle_is(lib, SIM_H_LIB))
		return CUDA_ERROR_INVALID_HANDLE;
	for (size_t i = 0; i < lib->nmods; i++)
		sim_ctx_sync(lib->mods[i].ctx);
	library_free(lib);
	return CUDA_SUCCESS;
}

SIM_API(cuLibraryGetKernel, SIM_INIT, P(CUkernel *ret, CUlibrary lib, const char *name),
	P(ret, lib, name))
{
	if (!ret || !name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_handle_is(lib, SIM_H_LIB))
		return CUDA_ERROR_INVALID_HANDLE;
	for (CUkernel k = lib->kerns; k; k = k->next)
		if (!strcmp(sim_kernel_name(k->k), name)) {
			*ret = k;
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_NOT_FOUND;
}

SIM_API(cuLibraryGetKernelCount, SIM_INIT, P(unsigned *ret, CUlibrary lib), P(ret, lib))
{
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_handle_is(lib, SIM_H_LIB))
		return CUDA_ERROR_INVALID_HANDLE;
	*ret = 0;
	for (CUkernel k = lib->kerns; k; k = k->next)
		++*ret;
	return CUDA_SUCCESS;
}

SIM_API(cuLibraryEnumerateKernels, SIM_INIT, P(CUkernel *ret, unsigned n, CUlibrary lib),
	P(ret, n, lib))
{
	if (!ret || !n)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_handle_is(lib, SIM_H_LIB))
		return CUDA_ERROR_INVALID_HANDLE;
	for (CUkernel k = lib->kerns; k && n; k = k->next, n--)
		*ret++ = k;
	return CUDA_SUCCESS;
}

SIM_API(cuLibraryGetModule, SIM_CTX, P(CUmodule *ret, CUlibrary lib), P(ret, lib))
{
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_handle_is(lib, SIM_H_LIB))
		return CUDA_ERROR_INVALID_HANDLE;
	return module_in(call->ctx, lib, ret);
}

SIM_API(cuLibraryGetGlobal, SIM_CTX,
	P(CUdeviceptr *ret, size_t *ret_size, CUlibrary lib, const char *name),
	P(ret, ret_size, lib, name))
{
	uint64_t addr;
	size_t size;
	CUmodule m;
	CUresult r;

	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_handle_is(lib, SIM_H_LIB))
		return CUDA_ERROR_INVALID_HANDLE;
	r = module_in(call->ctx, lib, &m);
	if (r)
		return r;
	if (sim_module_global(m->engine, name, &addr, &size))
		return CUDA_ERROR_NOT_FOUND;
	if (ret)
		*ret = addr;
	if (ret_size)
		*ret_size = size;
	return CUDA_SUCCESS;
}

/* Variables here are never managed, so none is found. */
SIM_API(cuLibraryGetManaged, SIM_INIT,
	P(CUdeviceptr *ret, size_t *ret_size, CUlibrary lib, const char *name),
	P(ret, ret_size, lib, name))
{
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	(void)ret, (void)ret_size;
	return sim_handle_is(lib, SIM_H_LIB) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
}

/* Function pointers of device code are not addresses of the host: none is unified. */
SIM_API(cuLibraryGetUnifiedFunction, SIM_INIT, P(void **ret, CUlibrary lib, const char *name),
	P(ret, lib, name))
{
	if (!ret || !name)
		return CUDA_ERROR_INVALID_VALUE;
	return sim_handle_is(lib, SIM_H_LIB) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
}

SIM_API(cuKernelGetFunction, SIM_CTX, P(CUfunction *ret, CUkernel k), P(ret, k))
{
	CUkernel same;

	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_handle_is(k, SIM_H_KERN))
		return CUDA_ERROR_INVALID_HANDLE;
	return sim_func_resolve(call->ctx, (CUfunction)k, ret, &same);
}

SIM_API(cuKernelGetLibrary, SIM_INIT, P(CUlibrary *ret, CUkernel k), P(ret, k))
{
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_handle_is(k, SIM_H_KERN))
		return CUDA_ERROR_INVALID_HANDLE;
	*ret = k->lib;
	return CUDA_SUCCESS;
}

SIM_API(cuKernelSetAttribute, SIM_INIT,
	P(CUfunction_attribute a, int value, CUkernel k, CUdevice dev), P(a, value, k, dev))
{
	CUresult r;

	if (!sim_handle_is(k, SIM_H_KERN))
		return CUDA_ERROR_INVALID_HANDLE;
	if (dev < 0 || dev >= (int)sim_options.devices)
		return CUDA_ERROR_INVALID_DEVICE;
	r = sim_func_set(k->k, k->attr, a, value);
	for (size_t i = 0; i < k->lib->nmods && !r; i++)
		for (CUfunction f = k->lib->mods[i].mod->funcs; f; f = f->next)
			if (f->kern == k && f->mod->ctx->dev_id == dev)
				r = sim_func_set(f->k, f->attr, a, value);
	return r;
}
