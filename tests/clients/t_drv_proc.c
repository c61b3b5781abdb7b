/* SPDX-License-Identifier: MIT */
/*
 * Resolution: every exported entry point, through dlsym and through cuGetProcAddress in both ABIs, with
 * versions and the per-thread flag; what is not there is said.
 */
#include <dlfcn.h>
#include <string.h>

#include "tests/clients/drv.h"

static const struct entry {
	const char *symbol, *base;
	int version, twin;
} entries[] = {
#define API(symbol, base, version, twin) {#symbol, #base, version, twin},
#include "tests/simcuda/api.def"
#undef API
};
#define ENTRIES (sizeof(entries) / sizeof(entries[0]))

typedef CUresult (*get_v1)(const char *, void **, int, cuuint64_t);
typedef CUresult (*get_v2)(const char *, void **, int, cuuint64_t,
			   CUdriverProcAddressQueryResult *);

static void every_symbol(get_v1 v1, get_v2 v2)
{
	unsigned missing = 0, different = 0, old = 0;

	for (unsigned i = 0; i < ENTRIES; i++) {
		const struct entry *e = &entries[i];
		void *fn = dlsym(RTLD_DEFAULT, e->symbol), *p = NULL, *q = NULL;
		CUdriverProcAddressQueryResult st;
		cuuint64_t flags = e->twin ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
					   : CU_GET_PROC_ADDRESS_LEGACY_STREAM;

		missing += !fn;
		if (v2(e->base, &p, e->version, flags, &st) || st || p != fn) {
			different++;
			tap_diag("%s", e->symbol);
		}
		old += v1(e->base, &q, e->version, flags) || q != fn;
	}
	is_u64(missing, 0, "every listed symbol is exported");
	is_u64(different, 0, "cuGetProcAddress_v2 gives the exported addresses");
	is_u64(old, 0, "and so does cuGetProcAddress");
}

static void *ask(get_v2 v2, const char *name, int version, cuuint64_t flags)
{
	void *p = NULL;

	v2(name, &p, version, flags, NULL);
	return p;
}

static void versions(get_v1 v1, get_v2 v2)
{
	CUdriverProcAddressQueryResult st = CU_GET_PROC_ADDRESS_SUCCESS;
	void *p = &st;

	ok(ask(v2, "cuCtxSynchronize", 12000, 0) == dlsym(RTLD_DEFAULT, "cuCtxSynchronize"),
	   "an older version gives the older ABI");
	ok(ask(v2, "cuCtxSynchronize", 13000, 0) == dlsym(RTLD_DEFAULT, "cuCtxSynchronize_v2"),
	   "a newer version the newer one");
	ok(ask(v2, "cuMemcpyBatchAsync", 12090, 2) ==
		   dlsym(RTLD_DEFAULT, "cuMemcpyBatchAsync_ptsz"),
	   "per-thread, between two ABIs");
	ok(ask(v2, "cuMemAlloc", 13000, 2) == dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"),
	   "without a twin the per-thread flag gives the plain symbol");
	ok(ask(v2, "cuStreamGetCaptureInfo", 11030, 0) ==
		   dlsym(RTLD_DEFAULT, "cuStreamGetCaptureInfo_v2"),
	   "the middle one of three ABIs");
	is_cu(v2("cuLaunchKernelEx", &p, 11000, 0, &st), CUDA_SUCCESS, "version too old: no error");
	ok(!p && st == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, "but no address, and a status");
	is_cu(v2("", &p, 0, 0, &st), CUDA_SUCCESS, "the empty name: no error");
	ok(!p && st == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, "but not found");
	is_cu(v1("cuNothing", &p, 12000, 0), CUDA_ERROR_NOT_FOUND,
	      "without a status it is an error");
	is_cu(v2("cuInit", &p, 13010, 0, &st), CUDA_ERROR_INVALID_VALUE, "newer than the driver");
	is_cu(v2("cuInit", NULL, 13000, 0, &st), CUDA_ERROR_INVALID_VALUE, "nowhere to put it");
	is_cu(v2("cuInit", &p, 13000, 8, &st), CUDA_ERROR_INVALID_VALUE, "unknown flags");
}

static void export_tables(void)
{
	static const CUuuid id = {{(char)0x6b, (char)0xd5}};
	const void *table = &id;

	ok(cuGetExportTable(&table, &id) != CUDA_SUCCESS && !table, "no private tables are given");
}

static void hidden(void)
{
	ok(!dlsym(RTLD_DEFAULT, "sim_api_enter") && !dlsym(RTLD_DEFAULT, "rs_fatbin_next"),
	   "nothing else is exported");
}

int main(void)
{
	get_v1 v1 = (get_v1)dlsym(RTLD_DEFAULT, "cuGetProcAddress");
	get_v2 v2 = (get_v2)dlsym(RTLD_DEFAULT, "cuGetProcAddress_v2");
	int version;

	must(cuDriverGetVersion(&version)); /* keeps the library linked */
	every_symbol(v1, v2);
	versions(v1, v2);
	export_tables();
	hidden();
	return tap_done();
}
