/* SPDX-License-Identifier: MIT */
/*
 * What cupti/abi.h and cupti/calls.def say by hand, against NVIDIA's headers: all layouts that CUPTI ever wrote.
 */
#include "cupti/abi.h"
#include "tests/tap.h"

#if __has_include(<cupti.h>)
#include <cupti.h>

#define AT(type, field)                                                                            \
	((unsigned)offsetof(type, field) | (unsigned)sizeof(((type *)0)->field) << 16)

static void layout(const char *name, unsigned kind, unsigned start, unsigned end,
		   unsigned correlation, int which)
{
	static const unsigned want[][3] = {
#define X(kind, start, end, correlation) {start, end, correlation},
		RS_CUPTI_LAYOUTS(X)
#undef X
	};

	ok(kind == (4u << 16) && start == (want[which][0] | 8u << 16) &&
		   end == (want[which][1] | 8u << 16) && correlation == (want[which][2] | 4u << 16),
	   "%s", name);
}

enum {
#define X(kind, start, end, correlation) L_##kind,
	RS_CUPTI_LAYOUTS(X)
#undef X
};

#define LAYOUT(type, which)                                                                        \
	layout(#type, AT(type, kind), AT(type, start), AT(type, end), AT(type, correlationId),     \
	       L_##which);

static void layouts(void)
{
	LAYOUT(CUpti_ActivityKernel3, CONCURRENT_KERNEL)
	LAYOUT(CUpti_ActivityKernel4, CONCURRENT_KERNEL)
	LAYOUT(CUpti_ActivityKernel5, CONCURRENT_KERNEL)
	LAYOUT(CUpti_ActivityKernel6, CONCURRENT_KERNEL)
	LAYOUT(CUpti_ActivityKernel7, CONCURRENT_KERNEL)
	LAYOUT(CUpti_ActivityKernel8, CONCURRENT_KERNEL)
	LAYOUT(CUpti_ActivityKernel9, CONCURRENT_KERNEL)
	LAYOUT(CUpti_ActivityMemcpy, MEMCPY)
	LAYOUT(CUpti_ActivityMemcpy3, MEMCPY)
	LAYOUT(CUpti_ActivityMemcpy4, MEMCPY)
	LAYOUT(CUpti_ActivityMemcpy5, MEMCPY)
	LAYOUT(CUpti_ActivityMemcpyPtoP, MEMCPY2)
	LAYOUT(CUpti_ActivityMemcpyPtoP2, MEMCPY2)
	LAYOUT(CUpti_ActivityMemcpyPtoP3, MEMCPY2)
	LAYOUT(CUpti_ActivityMemcpyPtoP4, MEMCPY2)
	LAYOUT(CUpti_ActivityMemset, MEMSET)
	LAYOUT(CUpti_ActivityMemset2, MEMSET)
	LAYOUT(CUpti_ActivityMemset3, MEMSET)
	LAYOUT(CUpti_ActivityMemset4, MEMSET)
#if CUPTI_API_VERSION >= 130000
	LAYOUT(CUpti_ActivityKernel10, CONCURRENT_KERNEL)
	LAYOUT(CUpti_ActivityMemcpy6, MEMCPY)
#endif
}

static void numbers(void)
{
	ok(sizeof(struct rs_cupti_external) == sizeof(CUpti_ActivityExternalCorrelation) &&
		   offsetof(struct rs_cupti_external, external_kind) ==
			   offsetof(CUpti_ActivityExternalCorrelation, externalKind) &&
		   offsetof(struct rs_cupti_external, external_id) ==
			   offsetof(CUpti_ActivityExternalCorrelation, externalId) &&
		   offsetof(struct rs_cupti_external, correlation) ==
			   offsetof(CUpti_ActivityExternalCorrelation, correlationId),
	   "CUpti_ActivityExternalCorrelation");
	ok((int)RS_CUPTI_KIND_MEMCPY == (int)CUPTI_ACTIVITY_KIND_MEMCPY &&
		   (int)RS_CUPTI_KIND_MEMSET == (int)CUPTI_ACTIVITY_KIND_MEMSET &&
		   (int)RS_CUPTI_KIND_DRIVER == (int)CUPTI_ACTIVITY_KIND_DRIVER &&
		   (int)RS_CUPTI_KIND_RUNTIME == (int)CUPTI_ACTIVITY_KIND_RUNTIME &&
		   (int)RS_CUPTI_KIND_CONCURRENT_KERNEL ==
			   (int)CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL &&
		   (int)RS_CUPTI_KIND_MEMCPY2 == (int)CUPTI_ACTIVITY_KIND_MEMCPY2 &&
		   (int)RS_CUPTI_KIND_EXTERNAL == (int)CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
	   "kinds of records");
	ok((int)RS_CUPTI_EXTERNAL_OURS == (int)CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2 &&
		   (int)RS_CUPTI_FLUSH_FORCED == (int)CUPTI_ACTIVITY_FLAG_FLUSH_FORCED,
	   "kind of correlation, flag");
	ok((int)RS_CUPTI_MAX_LIMIT_REACHED == (int)CUPTI_ERROR_MAX_LIMIT_REACHED &&
		   (int)RS_CUPTI_NOT_INITIALIZED == (int)CUPTI_ERROR_NOT_INITIALIZED &&
		   (int)RS_CUPTI_MULTIPLE_USERS ==
			   (int)CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
	   "results");
	ok(rs_cupti_version_known(CUPTI_API_VERSION), "the headers' version %d is known",
	   (int)CUPTI_API_VERSION);
}

static void calls(void)
{
	unsigned n = 0, bad = 0;

	/* pasted at once: cuda.h makes macros of some names */
#define CALL(kind, name, number)                                                                   \
	n++;                                                                                       \
	if ((int)CUPTI_##kind##_TRACE_CBID_##name != number) {                                     \
		bad++;                                                                             \
		tap_diag("%s is %d", #name, (int)CUPTI_##kind##_TRACE_CBID_##name);                \
	}
#if CUPTI_API_VERSION >= 130000
#include "cupti/calls.def"
#endif
#undef CALL
	ok(!bad, "numbers of %u calls", n);
}

int main(void)
{
	layouts();
	numbers();
	calls();
	ok(!rs_cupti_version_known(18) && !rs_cupti_version_known(140000) &&
		   rs_cupti_version_known(28) && rs_cupti_version_known(130201),
	   "other versions");
	return tap_done();
}
#else
int main(void)
{
	tap_skip_all("no cupti.h");
}
#endif
