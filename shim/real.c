/* SPDX-License-Identifier: MIT */
/*
 * The driver's own functions: found in the library that the program itself got, else in libcuda.so.1.
 *
 * Invariants: bound once, never rebound; a pointer of rs_real is callable before (it resolves) and
 * after (a function that the driver lacks answers CUDA_ERROR_NOT_SUPPORTED). The address hash is
 * complete before `bound` is published, and constant from then on.
 * Callers: doors.c and, through the resolvers, any wrapper on any thread. One mutex, held over dlopen
 * and dlsym of libc, under which nothing of ours is called back: the program's look-ups made by the
 * driver's own constructors find `busy` set and are passed on.
 */
#include "shim/shim.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define HASH_SIZE 4096u /* a power of two, over four times RS_EP_COUNT */
_Static_assert(HASH_SIZE >= 4 * RS_EP_COUNT, "address hash too small");

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static int bound, busy;

static struct {
	const void *addr;
	uint16_t ep;
} hash[HASH_SIZE];

/* Functions whose own addresses are handed out: first the old ABIs, then the passive ones. */
#define OLD_REPLACE(sym)
#define OLD_OBSERVE(sym)
#define OLD_THIN(sym) #sym,
static const char *const untouched_name[] = {
#define EP(sym, group, action, since, flavour, params, args) OLD_##action(sym)
#include "shim/entry_points.def"
#undef EP
#define PASSIVE(sym, reason) #sym,
#include "shim/passive.def"
#undef PASSIVE
};
#define NUNTOUCHED (sizeof(untouched_name) / sizeof(*untouched_name))

enum {
#define PASSIVE(sym, reason) PASSIVE_##sym,
#include "shim/passive.def"
#undef PASSIVE
	NPASSIVE,
	NTHIN = NUNTOUCHED - NPASSIVE
};
static const void *untouched[NUNTOUCHED];

/* Driver functions take their arguments in registers and on the stack: any prototype may end here. */
static CUresult rs_missing(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

#define EP(sym, group, action, since, flavour, params, args)                                       \
	RS_WRAPPED(                                                                                \
		action, static CUresult rs_first_##sym params {                                    \
			if (rs_real_open())                                                        \
				return CUDA_ERROR_NOT_INITIALIZED;                                 \
			return rs_real.sym args;                                                   \
		})
#include "shim/entry_points.def"
#undef EP

struct rs_real rs_real = {
#define EP(sym, group, action, since, flavour, params, args)                                       \
	RS_WRAPPED(action, .sym = rs_first_##sym, )
#include "shim/entry_points.def"
#undef EP
#define X(sym) .sym = (__typeof__(&sym))(void *)rs_missing,
	RS_REAL_EXTRA(X)
#undef X
};

static unsigned hash_slot(const void *addr)
{
	return (unsigned)(((uintptr_t)addr >> 2) * 0x9e3779b97f4a7c15ull >> 40) & (HASH_SIZE - 1);
}

/* Symbols of one address are one function under several names; a wrapper of substance wins. */
static void hash_add(const void *addr, unsigned ep)
{
	unsigned i = hash_slot(addr);

	while (hash[i].addr && hash[i].addr != addr)
		i = (i + 1) & (HASH_SIZE - 1);
	if (hash[i].addr && rs_ep_info[hash[i].ep].replace >= rs_ep_info[ep].replace)
		return;
	hash[i].addr = addr;
	hash[i].ep = (uint16_t)ep;
}

void *rs_real_wrapper(const void *addr)
{
	unsigned i = hash_slot(addr);

	if (!__atomic_load_n(&bound, __ATOMIC_ACQUIRE))
		return NULL;
	while (hash[i].addr) {
		if (hash[i].addr == addr)
			return rs_ep_info[hash[i].ep].hook;
		i = (i + 1) & (HASH_SIZE - 1);
	}
	return NULL;
}

/* The driver's function, entered into the hash; rs_missing when it has none. */
static void *find(void *handle, unsigned ep)
{
	void *addr = rs_doors_dlsym(handle, rs_ep_info[ep].name);

	if (!addr || addr == rs_ep_info[ep].hook)
		return (void *)rs_missing;
	hash_add(addr, ep);
	return addr;
}

/* Under lock. */
static void bind(void *handle)
{
	void *addr;

#define EP(sym, group, action, since, flavour, params, args)                                       \
	RS_WRAPPED(action, addr = find(handle, RS_EP_##sym);                                       \
		   __atomic_store_n(&rs_real.sym, (__typeof__(&sym))addr, __ATOMIC_RELAXED);)
#include "shim/entry_points.def"
#undef EP
#define X(sym)                                                                                     \
	addr = rs_doors_dlsym(handle, #sym);                                                       \
	if (addr)                                                                                  \
		__atomic_store_n(&rs_real.sym, (__typeof__(&sym))addr, __ATOMIC_RELAXED);
	RS_REAL_EXTRA(X)
#undef X
	for (unsigned i = 0; i < NUNTOUCHED; i++)
		untouched[i] = rs_doors_dlsym(handle, untouched_name[i]);
	__atomic_store_n(&bound, 1, __ATOMIC_RELEASE);
}

void rs_real_bind_address(void *addr)
{
	void *handle;

	if (__atomic_load_n(&bound, __ATOMIC_ACQUIRE))
		return;
	pthread_mutex_lock(&lock);
	if (!bound && !busy) {
		busy = 1;
		handle = rs_doors_library_of(addr);
		if (handle)
			bind(handle);
		busy = 0;
	}
	pthread_mutex_unlock(&lock);
}

int rs_real_open(void)
{
	void *handle;

	if (__atomic_load_n(&bound, __ATOMIC_ACQUIRE))
		return 0;
	pthread_mutex_lock(&lock);
	if (!bound && !busy) {
		busy = 1;
		handle = dlopen("libcuda.so.1", RTLD_LAZY);
		if (handle)
			bind(handle);
		busy = 0;
	}
	pthread_mutex_unlock(&lock);
	return bound ? 0 : -ENOENT;
}

/* Length of a symbol's name without _v2 and _ptsz: what cuGetProcAddress is asked for. */
static size_t base_length(const char *name)
{
	size_t len = strlen(name);

	if (len > 5 && (!strcmp(name + len - 5, "_ptsz") || !strcmp(name + len - 5, "_ptds")))
		len -= 5;
	if (len > 3 && name[len - 3] == '_' && name[len - 2] == 'v' && name[len - 1] >= '2' &&
	    name[len - 1] <= '9')
		len -= 3;
	return len;
}

void *rs_real_wrapper_by_name(const char *name, int version, uint64_t flags)
{
	int per_thread = !!(flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
	size_t len = strlen(name);
	int best = -1;

	/* A newer driver may have an ABI under this name that the table does not know. */
	if (version > CUDA_VERSION)
		return NULL;
	for (unsigned i = 0; i < RS_EP_COUNT; i++) {
		const struct rs_ep_info *ep = &rs_ep_info[i];

		if (base_length(ep->name) != len || memcmp(ep->name, name, len) ||
		    ep->since > (uint32_t)version)
			continue;
		/* A function without a twin serves both kinds of default stream. */
		if (ep->flavour != RS_PLAIN && !per_thread)
			continue;
		if (best >= 0 && per_thread && rs_ep_info[best].flavour != RS_PLAIN &&
		    ep->flavour == RS_PLAIN)
			continue;
		if (best < 0 || ep->since > rs_ep_info[best].since ||
		    (per_thread && ep->flavour != RS_PLAIN && rs_ep_info[best].flavour == RS_PLAIN))
			best = (int)i;
	}
	return best < 0 ? NULL : rs_ep_info[best].hook;
}

void *rs_real_knows(const char *name)
{
	for (unsigned i = 0; i < RS_EP_COUNT; i++)
		if (!strcmp(rs_ep_info[i].name, name))
			return rs_ep_info[i].hook;
	return NULL;
}

/* --- functions without a wrapper ---------------------------------------------------------------- */

int rs_real_untouched(const void *addr)
{
	if (!__atomic_load_n(&bound, __ATOMIC_ACQUIRE))
		return 0;
	for (unsigned i = 0; i < NUNTOUCHED; i++)
		if (untouched[i] == addr)
			return 1;
	return 0;
}

/* What these map is met again where the memory is used. */
static int graphics(const char *name)
{
	static const char *const prefixes[] = {"cuGL", "cuEGL", "cuVDPAU", "cuGraphics"};

	for (unsigned i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return 1;
	return 0;
}

int rs_real_listed(const char *name)
{
	for (unsigned i = 0; i < NUNTOUCHED; i++)
		if (!strcmp(untouched_name[i], name))
			return 1;
	return rs_real_knows(name) || graphics(name);
}

int rs_real_listed_base(const char *name, int version)
{
	size_t len = strlen(name);

	for (unsigned i = 0; i < NUNTOUCHED; i++)
		if (base_length(untouched_name[i]) == len &&
		    !memcmp(untouched_name[i], name, len) &&
		    (i >= NTHIN || version <= CUDA_VERSION))
			return 1;
	for (unsigned i = 0; version <= CUDA_VERSION && i < RS_EP_COUNT; i++)
		if (base_length(rs_ep_info[i].name) == len &&
		    !memcmp(rs_ep_info[i].name, name, len))
			return 1;
	return graphics(name);
}
