/* SPDX-License-Identifier: MIT */
/*
 * Modules, libraries and their variables (entry_points.def, groups B7, F1, F2).
 *
 * The driver's answer is never changed; what it loaded and gave out is told to kernels.c.
 * Callers: the program, any thread. No locks here.
 */
#include "shim/guard.h"
#include "shim/kernels.h"

#define LOAD(sym, params, args, out, library, image, path)                                         \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, args);                                                            \
		r = rs_real.sym args;                                                              \
		if (r == CUDA_SUCCESS && (out))                                                    \
			RS_ENGINE(rs_kernels_loaded(*(out), library, image, path));                \
		RS_LEAVE(t, r);                                                                    \
	}

LOAD(cuModuleLoad, (CUmodule * module, const char *fname), (module, fname), module, 0, NULL, fname)
LOAD(cuModuleLoadData, (CUmodule * module, const void *image), (module, image), module, 0, image,
     NULL)
LOAD(cuModuleLoadDataEx,
     (CUmodule * module, const void *image, unsigned int numOptions, CUjit_option *options,
      void **optionValues),
     (module, image, numOptions, options, optionValues), module, 0, image, NULL)
LOAD(cuModuleLoadFatBinary, (CUmodule * module, const void *fatCubin), (module, fatCubin), module,
     0, fatCubin, NULL)
LOAD(cuLibraryLoadData,
     (CUlibrary * library, const void *code, CUjit_option *jitOptions, void **jitOptionsValues,
      unsigned int numJitOptions, CUlibraryOption *libraryOptions, void **libraryOptionValues,
      unsigned int numLibraryOptions),
     (library, code, jitOptions, jitOptionsValues, numJitOptions, libraryOptions,
      libraryOptionValues, numLibraryOptions),
     library, 1, code, NULL)
LOAD(cuLibraryLoadFromFile,
     (CUlibrary * library, const char *fileName, CUjit_option *jitOptions, void **jitOptionsValues,
      unsigned int numJitOptions, CUlibraryOption *libraryOptions, void **libraryOptionValues,
      unsigned int numLibraryOptions),
     (library, fileName, jitOptions, jitOptionsValues, numJitOptions, libraryOptions,
      libraryOptionValues, numLibraryOptions),
     library, 1, NULL, fileName)

#define UNLOAD(sym, type)                                                                          \
	RS_HOOK(sym, (type owner))                                                                 \
	{                                                                                          \
		struct rs_loaded *l;                                                               \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, (owner));                                                         \
		RS_ENGINE(l = rs_kernels_leave(t, owner));                                         \
		r = rs_real.sym(owner);                                                            \
		RS_ENGINE(rs_kernels_left(l, r));                                                  \
		RS_LEAVE(t, r);                                                                    \
	}
UNLOAD(cuModuleUnload, CUmodule)
UNLOAD(cuLibraryUnload, CUlibrary)

/* --- functions ---------------------------------------------------------------------------------- */

#define GIVE(sym, params, args, tell)                                                              \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, args);                                                            \
		r = rs_real.sym args;                                                              \
		if (r == CUDA_SUCCESS)                                                             \
			RS_ENGINE(tell);                                                           \
		RS_LEAVE(t, r);                                                                    \
	}

static void functions(CUmodule mod, const CUfunction *f, unsigned n)
{
	const char *name;

	for (unsigned i = 0; f && i < n; i++)
		if (f[i] && rs_real.cuFuncGetName(&name, f[i]) == CUDA_SUCCESS)
			rs_kernels_function(mod, f[i], name, 0);
}

static void library_kernels(CUlibrary lib, const CUkernel *k, unsigned n)
{
	const char *name;

	for (unsigned i = 0; k && i < n; i++)
		if (k[i] && rs_real.cuKernelGetName(&name, k[i]) == CUDA_SUCCESS)
			rs_kernels_function(lib, k[i], name, 1);
}

GIVE(cuModuleGetFunction, (CUfunction * hfunc, CUmodule hmod, const char *name),
     (hfunc, hmod, name), if (hfunc) rs_kernels_function(hmod, *hfunc, name, 0))
GIVE(cuModuleEnumerateFunctions, (CUfunction * f, unsigned int numFunctions, CUmodule mod),
     (f, numFunctions, mod), functions(mod, f, numFunctions))
GIVE(cuLibraryGetKernel, (CUkernel * pKernel, CUlibrary library, const char *name),
     (pKernel, library, name), if (pKernel) rs_kernels_function(library, *pKernel, name, 1))
GIVE(cuLibraryEnumerateKernels, (CUkernel * k, unsigned int numKernels, CUlibrary lib),
     (k, numKernels, lib), library_kernels(lib, k, numKernels))
GIVE(cuLibraryGetModule, (CUmodule * pMod, CUlibrary library), (pMod, library),
     if (pMod) rs_kernels_module_of(library, *pMod))
GIVE(cuKernelGetFunction, (CUfunction * pFunc, CUkernel kernel), (pFunc, kernel),
     if (pFunc) rs_kernels_function_of(kernel, *pFunc))

/* --- variables ---------------------------------------------------------------------------------- */

/* Both out-parameters may be absent; the size is asked for again then. */
#define VARIABLE(sym, type)                                                                        \
	RS_HOOK(sym, (CUdeviceptr * dptr, size_t * bytes, type owner, const char *name))           \
	{                                                                                          \
		size_t size = 0;                                                                   \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, (dptr, bytes, owner, name));                                      \
		r = rs_real.sym(dptr, bytes, owner, name);                                         \
		if (r == CUDA_SUCCESS && dptr) {                                                   \
			if (bytes)                                                                 \
				size = *bytes;                                                     \
			else if (rs_real.sym(NULL, &size, owner, name) != CUDA_SUCCESS)            \
				size = 0;                                                          \
			RS_ENGINE(rs_kernels_global(t, owner, *dptr, size));                       \
		}                                                                                  \
		RS_LEAVE(t, r);                                                                    \
	}
VARIABLE(cuModuleGetGlobal_v2, CUmodule)
VARIABLE(cuLibraryGetGlobal, CUlibrary)
VARIABLE(cuLibraryGetManaged, CUlibrary)
