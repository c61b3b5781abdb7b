/* SPDX-License-Identifier: MIT */
/*
 * NVTX version 3: the library as an injection library. Ranges and marks go to marker.h, with
 * their domain; what matters of them is decided there.
 *
 * NVTX's state is hidden in each binary that uses it, so initialisation happens once per binary, on any
 * thread. Another injection library that was set before is initialised first and called before us; its
 * handles and return values are the ones that the program sees.
 * Locks: one mutex around new registered strings, domains, and the map of its range ids to ours.
 */
#include "shim/nvtx.h"
#include "shim/handles.h"
#include "shim/log.h"
#include "shim/marker.h"
#include "shim/pattern.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rs_handles strings, ranges, domains;

/* The other library's functions, NULL where it has none. */
static NvtxFunctionPointer next_core[NVTX_CBID_CORE_SIZE], next_core2[NVTX_CBID_CORE2_SIZE];
#define NEXT(fn)  ((nvtx##fn##_impl_fntype)next_core[NVTX_CBID_CORE_##fn])
#define NEXT2(fn) ((nvtx##fn##_impl_fntype)next_core2[NVTX_CBID_CORE2_##fn])

/* One that was made before we came, or that there was no memory for, is nobody's. */
const struct rs_domain *rs_nvtx_domain(const void *handle)
{
	static const struct rs_domain unknown;
	const struct rs_domain *d;

	if (!handle)
		return &rs_domain_default;
	d = rs_handles_find(&domains, handle);
	return d ? d : &unknown;
}

/* --- texts -------------------------------------------------------------------------------------- */

struct text {
	char buffer[512];
};

/* Markers are ASCII; anything else only needs to stay a different text. */
static const char *narrow(const wchar_t *wide, struct text *t)
{
	size_t n = 0;

	for (; wide && wide[n] && n < sizeof(t->buffer) - 1; n++)
		t->buffer[n] = wide[n] > 0 && wide[n] < 128 ? (char)wide[n] : '?';
	t->buffer[n] = '\0';
	return t->buffer;
}

const char *rs_nvtx_text(uint32_t type, nvtxMessageValue_t value, char *buffer)
{
	const char *found;

	switch (type) {
	case NVTX_MESSAGE_TYPE_ASCII:
		return value.ascii ? value.ascii : "";
	case NVTX_MESSAGE_TYPE_UNICODE:
		return narrow(value.unicode, (struct text *)buffer);
	case NVTX_MESSAGE_TYPE_REGISTERED:
		found = rs_handles_find(&strings, value.registered);
		return found ? found : "";
	default:
		return "";
	}
}

static const char *text_of(const nvtxEventAttributes_t *a, struct text *t)
{
	return a ? rs_nvtx_text((uint32_t)a->messageType, a->message, t->buffer) : "";
}

/* --- core: the default domain ------------------------------------------------------------------- */

static void NVTX_API mark_ex(const nvtxEventAttributes_t *a)
{
	struct text t;

	if (NEXT(MarkEx))
		NEXT(MarkEx)(a);
	rs_marker_mark(&rs_domain_default, text_of(a, &t));
}

static void NVTX_API mark_a(const char *message)
{
	if (NEXT(MarkA))
		NEXT(MarkA)(message);
	rs_marker_mark(&rs_domain_default, message);
}

static void NVTX_API mark_w(const wchar_t *message)
{
	struct text t;

	if (NEXT(MarkW))
		NEXT(MarkW)(message);
	rs_marker_mark(&rs_domain_default, narrow(message, &t));
}

static int NVTX_API push_ex(const nvtxEventAttributes_t *a)
{
	int r = NEXT(RangePushEx) ? NEXT(RangePushEx)(a) : NVTX_NO_PUSH_POP_TRACKING;
	struct text t;

	rs_marker_push(&rs_domain_default, text_of(a, &t));
	return r;
}

static int NVTX_API push_a(const char *message)
{
	int r = NEXT(RangePushA) ? NEXT(RangePushA)(message) : NVTX_NO_PUSH_POP_TRACKING;

	rs_marker_push(&rs_domain_default, message);
	return r;
}

static int NVTX_API push_w(const wchar_t *message)
{
	int r = NEXT(RangePushW) ? NEXT(RangePushW)(message) : NVTX_NO_PUSH_POP_TRACKING;
	struct text t;

	rs_marker_push(&rs_domain_default, narrow(message, &t));
	return r;
}

static int NVTX_API pop(void)
{
	int r = NEXT(RangePop) ? NEXT(RangePop)() : NVTX_NO_PUSH_POP_TRACKING;

	rs_marker_pop(&rs_domain_default);
	return r;
}

/* An id of the other library's leads to ours by the map; without one, ours is the program's. */
static nvtxRangeId_t started(const struct rs_domain *d, nvtxRangeId_t theirs, int chained,
			     const char *text)
{
	uint64_t id;

	if (rs_marker_start(d, text, &id))
		return theirs;
	if (!chained)
		return id;
	pthread_mutex_lock(&lock);
	rs_handles_set(&ranges, (void *)(uintptr_t)theirs, (void *)(uintptr_t)(id + 1));
	pthread_mutex_unlock(&lock);
	return theirs;
}

static void ended(nvtxRangeId_t id, int chained)
{
	uint64_t ours;

	if (!chained) {
		rs_marker_end(id);
		return;
	}
	ours = (uintptr_t)rs_handles_find(&ranges, (void *)(uintptr_t)id);
	if (!ours)
		return;
	pthread_mutex_lock(&lock);
	rs_handles_set(&ranges, (void *)(uintptr_t)id, NULL);
	pthread_mutex_unlock(&lock);
	rs_marker_end(ours - 1);
}

static nvtxRangeId_t NVTX_API start_ex(const nvtxEventAttributes_t *a)
{
	nvtxRangeId_t id = NEXT(RangeStartEx) ? NEXT(RangeStartEx)(a) : 0;
	struct text t;

	return started(&rs_domain_default, id, !!NEXT(RangeStartEx), text_of(a, &t));
}

static nvtxRangeId_t NVTX_API start_a(const char *message)
{
	nvtxRangeId_t id = NEXT(RangeStartA) ? NEXT(RangeStartA)(message) : 0;

	return started(&rs_domain_default, id, !!NEXT(RangeStartA), message);
}

static nvtxRangeId_t NVTX_API start_w(const wchar_t *message)
{
	nvtxRangeId_t id = NEXT(RangeStartW) ? NEXT(RangeStartW)(message) : 0;
	struct text t;

	return started(&rs_domain_default, id, !!NEXT(RangeStartW), narrow(message, &t));
}

static void NVTX_API range_end(nvtxRangeId_t id)
{
	if (NEXT(RangeEnd))
		NEXT(RangeEnd)(id);
	ended(id, !!NEXT(RangeEnd));
}

/* --- core2: any domain -------------------------------------------------------------------------- */

static void NVTX_API domain_mark(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
	struct text t;

	if (NEXT2(DomainMarkEx))
		NEXT2(DomainMarkEx)(domain, a);
	rs_marker_mark(rs_nvtx_domain(domain), text_of(a, &t));
}

static int NVTX_API domain_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
	int r = NEXT2(DomainRangePushEx) ? NEXT2(DomainRangePushEx)(domain, a)
					 : NVTX_NO_PUSH_POP_TRACKING;
	struct text t;

	rs_marker_push(rs_nvtx_domain(domain), text_of(a, &t));
	return r;
}

static int NVTX_API domain_pop(nvtxDomainHandle_t domain)
{
	int r = NEXT2(DomainRangePop) ? NEXT2(DomainRangePop)(domain) : NVTX_NO_PUSH_POP_TRACKING;

	rs_marker_pop(rs_nvtx_domain(domain));
	return r;
}

static nvtxRangeId_t NVTX_API domain_start(nvtxDomainHandle_t domain,
					   const nvtxEventAttributes_t *a)
{
	nvtxRangeId_t id = NEXT2(DomainRangeStartEx) ? NEXT2(DomainRangeStartEx)(domain, a) : 0;
	struct text t;

	return started(rs_nvtx_domain(domain), id, !!NEXT2(DomainRangeStartEx), text_of(a, &t));
}

static void NVTX_API domain_end(nvtxDomainHandle_t domain, nvtxRangeId_t id)
{
	if (NEXT2(DomainRangeEnd))
		NEXT2(DomainRangeEnd)(domain, id);
	ended(id, !!NEXT2(DomainRangeEnd));
}

/* Without another library the handle is our own description of the domain, which is there for good. */
static nvtxDomainHandle_t domain_made(nvtxDomainHandle_t theirs, int chained, const char *name)
{
	struct rs_domain *d = rs_domain_get(name);
	const void *handle = chained ? (const void *)theirs : d;

	pthread_mutex_lock(&lock);
	rs_handles_set(&domains, handle, d);
	pthread_mutex_unlock(&lock);
	return (nvtxDomainHandle_t)(uintptr_t)handle;
}

static nvtxDomainHandle_t NVTX_API domain_create_a(const char *name)
{
	nvtxDomainHandle_t h = NEXT2(DomainCreateA) ? NEXT2(DomainCreateA)(name) : NULL;

	return domain_made(h, !!NEXT2(DomainCreateA), name);
}

static nvtxDomainHandle_t NVTX_API domain_create_w(const wchar_t *name)
{
	nvtxDomainHandle_t h = NEXT2(DomainCreateW) ? NEXT2(DomainCreateW)(name) : NULL;
	struct text t;

	return domain_made(h, !!NEXT2(DomainCreateW), narrow(name, &t));
}

/* Kept for good, as NVTX keeps them. The text's address is the handle when nobody else makes one. */
static nvtxStringHandle_t registered(nvtxStringHandle_t theirs, int chained, const char *text)
{
	char *copy = strdup(text ? text : "");
	const void *handle = chained ? (const void *)theirs : copy;

	if (!copy || !handle) {
		free(copy);
		return theirs;
	}
	pthread_mutex_lock(&lock);
	if (!rs_handles_find(&strings, handle))
		rs_handles_set(&strings, handle, copy);
	else
		free(copy);
	pthread_mutex_unlock(&lock);
	return (nvtxStringHandle_t)(uintptr_t)handle;
}

static nvtxStringHandle_t NVTX_API register_a(nvtxDomainHandle_t domain, const char *string)
{
	nvtxStringHandle_t h =
		NEXT2(DomainRegisterStringA) ? NEXT2(DomainRegisterStringA)(domain, string) : NULL;

	return registered(h, !!NEXT2(DomainRegisterStringA), string);
}

static nvtxStringHandle_t NVTX_API register_w(nvtxDomainHandle_t domain, const wchar_t *string)
{
	nvtxStringHandle_t h =
		NEXT2(DomainRegisterStringW) ? NEXT2(DomainRegisterStringW)(domain, string) : NULL;
	struct text t;

	return registered(h, !!NEXT2(DomainRegisterStringW), narrow(string, &t));
}

/* --- initialisation ----------------------------------------------------------------------------- */

#define F(fn) ((NvtxFunctionPointer)(fn))

static const NvtxFunctionPointer core[NVTX_CBID_CORE_SIZE] = {
	[NVTX_CBID_CORE_MarkEx] = F(mark_ex),	   [NVTX_CBID_CORE_MarkA] = F(mark_a),
	[NVTX_CBID_CORE_MarkW] = F(mark_w),	   [NVTX_CBID_CORE_RangeStartEx] = F(start_ex),
	[NVTX_CBID_CORE_RangeStartA] = F(start_a), [NVTX_CBID_CORE_RangeStartW] = F(start_w),
	[NVTX_CBID_CORE_RangeEnd] = F(range_end),  [NVTX_CBID_CORE_RangePushEx] = F(push_ex),
	[NVTX_CBID_CORE_RangePushA] = F(push_a),   [NVTX_CBID_CORE_RangePushW] = F(push_w),
	[NVTX_CBID_CORE_RangePop] = F(pop),
};

static const NvtxFunctionPointer core2[NVTX_CBID_CORE2_SIZE] = {
	[NVTX_CBID_CORE2_DomainMarkEx] = F(domain_mark),
	[NVTX_CBID_CORE2_DomainRangeStartEx] = F(domain_start),
	[NVTX_CBID_CORE2_DomainRangeEnd] = F(domain_end),
	[NVTX_CBID_CORE2_DomainRangePushEx] = F(domain_push),
	[NVTX_CBID_CORE2_DomainRangePop] = F(domain_pop),
	[NVTX_CBID_CORE2_DomainRegisterStringA] = F(register_a),
	[NVTX_CBID_CORE2_DomainRegisterStringW] = F(register_w),
	[NVTX_CBID_CORE2_DomainCreateA] = F(domain_create_a),
	[NVTX_CBID_CORE2_DomainCreateW] = F(domain_create_w),
};

void *rs_nvtx_next(const char *symbol)
{
	static void *handle; /* &handle: it cannot be loaded */
	const char *path;
	void *h = __atomic_load_n(&handle, __ATOMIC_ACQUIRE);

	rs_init_boot();
	path = rs_state.opt.nvtx_next;
	if (!path[0] || !strcmp(path, rs_state.self))
		return NULL;
	if (!h) {
		h = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
		if (!h)
			rs_log(RS_LOG_WARN, "REPLAYSHIM_NVTX_NEXT=%s: %s", path, dlerror());
		if (!h)
			h = &handle;
		__atomic_store_n(&handle, h, __ATOMIC_RELEASE);
	}
	return h != &handle ? rs_doors_dlsym(h, symbol) : NULL;
}

/* Slots that the other library has filled in meanwhile are called before ours. */
static void install(const NvtxExportTableCallbacks *callbacks, NvtxCallbackModule module,
		    const NvtxFunctionPointer *ours, NvtxFunctionPointer *next,
		    const NvtxFunctionPointer *before, unsigned count)
{
	NvtxFunctionTable table;
	unsigned size = 0;

	if (!callbacks->GetModuleFunctionTable(module, &table, &size))
		return;
	for (unsigned i = 0; i < count && i < size; i++) {
		if (!ours[i] || !table[i])
			continue;
		if (before && *table[i] != before[i] && *table[i] != ours[i])
			next[i] = *table[i];
		*table[i] = ours[i];
	}
}

static void remember(const NvtxExportTableCallbacks *callbacks, NvtxCallbackModule module,
		     NvtxFunctionPointer *ret_before, unsigned count)
{
	NvtxFunctionTable table;
	unsigned size = 0;

	if (!callbacks->GetModuleFunctionTable(module, &table, &size))
		return;
	for (unsigned i = 0; i < count && i < size; i++)
		ret_before[i] = table[i] ? *table[i] : NULL;
}

RS_EXPORT int NVTX_API InitializeInjectionNvtx2(NvtxGetExportTableFunc_t getExportTable);

int NVTX_API InitializeInjectionNvtx2(NvtxGetExportTableFunc_t getExportTable)
{
	NvtxFunctionPointer before[NVTX_CBID_CORE_SIZE] = {0}, before2[NVTX_CBID_CORE2_SIZE] = {0};
	NvtxInitializeInjectionNvtxFunc_t next;
	const NvtxExportTableCallbacks *callbacks;
	int chained;

	callbacks = getExportTable ? getExportTable(NVTX_ETID_CALLBACKS) : NULL;
	if (!callbacks)
		return 0;
	remember(callbacks, NVTX_CB_MODULE_CORE, before, NVTX_CBID_CORE_SIZE);
	remember(callbacks, NVTX_CB_MODULE_CORE2, before2, NVTX_CBID_CORE2_SIZE);
	next = (NvtxInitializeInjectionNvtxFunc_t)rs_nvtx_next("InitializeInjectionNvtx2");
	chained = next && next(getExportTable);
	install(callbacks, NVTX_CB_MODULE_CORE, core, next_core, chained ? before : NULL,
		NVTX_CBID_CORE_SIZE);
	install(callbacks, NVTX_CB_MODULE_CORE2, core2, next_core2, chained ? before2 : NULL,
		NVTX_CBID_CORE2_SIZE);
	return 1;
}
