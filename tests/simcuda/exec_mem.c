/* SPDX-License-Identifier: MIT */
/*
 * ld and st: handlers and lowering; the check of one access that atomics share.
 *
 * Fast path: all addresses of the active lanes are tested at once against the range that this
 * instruction hit last (global) or the window (shared, local); if they pass, the lanes are copied,
 * as one run when consecutive. Anything else (another range, a window in a generic access, an
 * initialisation map, an observer, a fault) goes lane by lane through sim_mem_check, in lane order.
 * Lanes store in ascending order: the highest lane wins.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/simcuda/exec_priv.h"

#include <immintrin.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

#define INLINE static inline __attribute__((always_inline))

#define WINDOW 0x3fffff00ull

enum space { G, S32, S64, L32, L64, P };

static const char *fault_name(enum sim_fault_kind kind)
{
	static const char *const names[] = {
		[SIM_FAULT_OUT_OF_BOUNDS] = "out of bounds",
		[SIM_FAULT_MISALIGNED] = "misaligned",
		[SIM_FAULT_UNINITIALISED] = "uninitialised memory",
	};

	return names[kind];
}

void sim_mem_fault(struct sim_warp *w, const struct sim_uop *o, enum sim_fault_kind kind,
		   unsigned lane, u64 addr, unsigned bytes, int is_write)
{
	struct sim_fault *f = &w->run->fault;

	if (f->kind != SIM_OK)
		return;
	f->kind = kind;
	f->line = o->src->line;
	f->addr = addr;
	f->bytes = bytes;
	f->is_write = (u8)is_write;
	for (int i = 0; i < 3; i++) {
		f->ctaid[i] = w->ctaid[i][lane];
		f->tid[i] = w->tid[i][lane];
	}
	snprintf(
		f->text, sizeof f->text,
		"kernel %.60s, line %u: %.40s: %s of %u bytes at 0x%llx: %s, block %u,%u,%u thread "
		"%u,%u,%u",
		w->run->k->func->name, f->line, o->src->text, is_write ? "write" : "read", bytes,
		(unsigned long long)addr, fault_name(kind), f->ctaid[0], f->ctaid[1], f->ctaid[2],
		f->tid[0], f->tid[1], f->tid[2]);
}

static const struct sim_range *find_range(const struct sim_launch *launch, u64 addr)
{
	size_t lo = 0, hi = launch->nranges;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (launch->ranges[mid].base <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? &launch->ranges[lo - 1] : NULL;
}

/* The range that holds the access, or NULL after a fault. */
static const struct sim_range *check_range(struct sim_warp *w, const struct sim_uop *o,
					   unsigned lane, u64 addr, unsigned bytes, int is_write)
{
	const struct sim_launch *launch = w->run->launch;
	const struct sim_range *r = find_range(launch, addr);

	if (!r || addr - r->base > r->size || r->size - (addr - r->base) < bytes ||
	    (is_write && r->read_only)) {
		sim_mem_fault(w, o, SIM_FAULT_OUT_OF_BOUNDS, lane, addr, bytes, is_write);
		return NULL;
	}
	if (addr & (bytes - 1)) {
		sim_mem_fault(w, o, SIM_FAULT_MISALIGNED, lane, addr, bytes, is_write);
		return NULL;
	}
	if (r->init && is_write)
		memset(r->init + (addr - r->base), 1, bytes);
	else if (r->init && memchr(r->init + (addr - r->base), 0, bytes)) {
		sim_mem_fault(w, o, SIM_FAULT_UNINITIALISED, lane, addr, bytes, is_write);
		return NULL;
	}
	if (launch->on_access)
		launch->on_access(launch->opaque, addr, bytes, is_write);
	return r;
}

int sim_mem_readable(struct sim_warp *w, const struct sim_uop *o, unsigned lane, uint64_t addr,
		     unsigned bytes)
{
	return !!check_range(w, o, lane, addr, bytes, 0);
}

static u8 *check_global(struct sim_warp *w, const struct sim_uop *o, unsigned lane, u64 addr,
			unsigned bytes, int is_write)
{
	const struct sim_range *r = check_range(w, o, lane, addr, bytes, is_write);
	struct sim_hit *hit = &w->run->hit[o->target];

	if (!r)
		return NULL;
	/* at most 1 GiB to either side, so that offsets have 31 bits */
	hit->base = addr - r->base > WINDOW ? addr - WINDOW : r->base;
	hit->size = (s64)(r->base + r->size - hit->base);
	if (hit->size > 2 * (s64)WINDOW)
		hit->size = 2 * (s64)WINDOW;
	if (r->init || w->run->launch->on_access)
		hit->size = 0;
	return (u8 *)(uintptr_t)addr;
}

static u8 *check_window(struct sim_warp *w, const struct sim_uop *o, unsigned lane, u8 *mem,
			u64 size, u64 offset, u64 addr, unsigned bytes, int is_write)
{
	if (offset > size || size - offset < bytes)
		sim_mem_fault(w, o, SIM_FAULT_OUT_OF_BOUNDS, lane, addr, bytes, is_write);
	else if (offset & (bytes - 1))
		sim_mem_fault(w, o, SIM_FAULT_MISALIGNED, lane, addr, bytes, is_write);
	else
		return mem + offset;
	return NULL;
}

static u8 *check_local(struct sim_warp *w, const struct sim_uop *o, unsigned lane, u64 offset,
		       u64 addr, unsigned bytes, int is_write)
{
	u64 size = w->run->k->local_bytes;

	return check_window(w, o, lane, w->local + lane * size, size, offset, addr, bytes,
			    is_write);
}

/* Entry parameters from 0, the parameters of calls (in the local frame) further up. */
static u8 *check_param(struct sim_warp *w, const struct sim_uop *o, unsigned lane, u64 offset,
		       u64 addr, unsigned bytes, int is_write)
{
	if (offset >= SIM_CALLPARAM_BASE)
		return check_local(w, o, lane, offset - SIM_CALLPARAM_BASE, addr, bytes, is_write);
	return check_window(w, o, lane, (u8 *)(uintptr_t)w->run->launch->params,
			    is_write ? 0 : w->run->k->func->param_bytes, offset, addr, bytes,
			    is_write);
}

static u8 *check_space(struct sim_warp *w, const struct sim_uop *o, unsigned space, unsigned lane,
		       u64 addr, unsigned bytes, int is_write)
{
	struct sim_run *run = w->run;

	switch (space) {
	case RS_PTX_SPACE_SHARED:
		return check_window(w, o, lane, run->shared, run->shared_bytes, addr, addr, bytes,
				    is_write);
	case RS_PTX_SPACE_LOCAL:
		return check_local(w, o, lane, addr, addr, bytes, is_write);
	case RS_PTX_SPACE_PARAM:
		return check_param(w, o, lane, addr, addr, bytes, is_write);
	case RS_PTX_SPACE_NONE:
		if (addr - SIM_SHARED_BASE < SIM_WINDOW_BYTES)
			return check_window(w, o, lane, run->shared, run->shared_bytes,
					    addr - SIM_SHARED_BASE, addr, bytes, is_write);
		if (addr - SIM_LOCAL_BASE < SIM_WINDOW_BYTES)
			return check_local(w, o, lane, addr - SIM_LOCAL_BASE, addr, bytes,
					   is_write);
		if (addr - SIM_PARAM_BASE < SIM_WINDOW_BYTES)
			return check_param(w, o, lane, addr - SIM_PARAM_BASE, addr, bytes,
					   is_write);
		return check_global(w, o, lane, addr, bytes, is_write);
	default:
		return check_global(w, o, lane, addr, bytes, is_write);
	}
}

uint8_t *sim_mem_check(struct sim_warp *w, const struct sim_uop *o, unsigned lane, uint64_t addr,
		       unsigned bytes, int is_write)
{
	return check_space(w, o, o->src->space, lane, addr, bytes, is_write);
}

/* ---- fast tests: all active lanes inside and aligned; their offsets from one base ---- */

struct lanes_at {
	uint32_t off[SIM_LANES] __attribute__((aligned(32)));
	u8 *base;
};

INLINE int is_run(const struct lanes_at *at, const struct sim_warp *w, unsigned bytes)
{
	u32 apart = 0;

	if (w->act != SIM_FULL)
		return 0;
	for (u32 i = 0; i < SIM_LANES; i++)
		apart |= at->off[i] - (at->off[0] + i * bytes);
	return !apart;
}

INLINE int test64(const u64 *a, u64 imm, u64 base, s64 size, unsigned bytes,
		  const struct sim_warp *w, struct lanes_at *at)
{
	s64 bad = 0, lim = size - (s64)bytes;
	u64 low = 0;

	if (w->act == SIM_FULL) {
		for (u32 i = 0; i < SIM_LANES; i++) {
			s64 d = (s64)(a[i] + imm - base);

			bad |= d | (lim - d);
			low |= (u64)d;
			at->off[i] = (u32)d;
		}
	} else {
		for (int i = 0; i < SIM_LANES; i++) {
			s64 m = (s32)w->lanes[i];
			s64 d = (s64)(a[i] + imm - base);

			bad |= (d | (lim - d)) & m;
			low |= (u64)(d & m);
			at->off[i] = (u32)d;
		}
	}
	return bad >= 0 && !((low | base) & (bytes - 1));
}

INLINE int test32(const u32 *a, u32 imm, u64 size, unsigned bytes, const struct sim_warp *w,
		  struct lanes_at *at)
{
	u32 top = 0, low = 0;

	if (w->act == SIM_FULL) {
		for (u32 i = 0; i < SIM_LANES; i++) {
			u32 x = a[i] + imm;

			top = x > top ? x : top;
			low |= x;
			at->off[i] = x;
		}
	} else {
		for (int i = 0; i < SIM_LANES; i++) {
			u32 x = (a[i] + imm) & w->lanes[i];

			top = x > top ? x : top;
			low |= x;
			at->off[i] = x;
		}
	}
	return (u64)top + bytes <= size && !(low & (bytes - 1));
}

INLINE int test(enum space s, const struct sim_uop *o, const struct sim_warp *w, unsigned bytes,
		struct lanes_at *at)
{
	const struct sim_run *run = w->run;
	const u32 *a32 = SIM_REG(u32, w, o, 1);
	const u64 *a64 = SIM_REG(u64, w, o, 1);
	u32 stride = (u32)run->k->local_bytes;
	const struct sim_hit *h;
	int fits;

	switch (s) {
	case G:
		h = &run->hit[o->target];
		at->base = (u8 *)(uintptr_t)h->base;
		return test64(a64, (u64)o->imm, h->base, h->size, bytes, w, at);
	case S32:
		at->base = run->shared;
		return test32(a32, (u32)o->imm, run->shared_bytes, bytes, w, at);
	case S64:
		at->base = run->shared;
		return test64(a64, (u64)o->imm, 0, (s64)run->shared_bytes, bytes, w, at);
	case L32:
	case L64:
		at->base = w->local;
		fits = s == L32 ? test32(a32, (u32)o->imm, stride, bytes, w, at)
				: test64(a64, (u64)o->imm, 0, stride, bytes, w, at);
		for (u32 i = 0; i < SIM_LANES; i++)
			at->off[i] += i * stride;
		return fits;
	default:
		return 0;
	}
}

/* 32 words, 8 at a time: broadcast, one load, or a gather. */
INLINE void load_words(u32 *d, const struct lanes_at *at)
{
	const __m256i iota = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);

	for (int i = 0; i < SIM_LANES; i += 8) {
		__m256i off = _mm256_load_si256((const __m256i *)(at->off + i));
		__m256i first = _mm256_set1_epi32((int)at->off[i]);
		const u8 *p = at->base + at->off[i];
		__m256i v;

		if (_mm256_movemask_epi8(_mm256_cmpeq_epi32(off, first)) == -1)
			v = _mm256_set1_epi32(*(const int *)p);
		else if (_mm256_movemask_epi8(
				 _mm256_cmpeq_epi32(off, _mm256_add_epi32(first, iota))) == -1)
			v = _mm256_loadu_si256((const __m256i *)p);
		else
			v = _mm256_i32gather_epi32((const int *)at->base, off, 1);
		_mm256_store_si256((__m256i *)(d + i), v);
	}
}

/* 32 quadruples of words: 8 lanes are an 8 x 4 transposition. */
INLINE void load_quads(u32 *const d[4], const struct lanes_at *at)
{
	for (int i = 0; i < SIM_LANES; i += 8) {
		__m256 r[4], lo0, hi0, lo1, hi1;

		for (int j = 0; j < 4; j++) {
			__m128 x = _mm_loadu_ps((const float *)(at->base + at->off[i + j]));
			__m128 y = _mm_loadu_ps((const float *)(at->base + at->off[i + j + 4]));

			r[j] = _mm256_insertf128_ps(_mm256_castps128_ps256(x), y, 1);
		}
		lo0 = _mm256_unpacklo_ps(r[0], r[1]);
		hi0 = _mm256_unpackhi_ps(r[0], r[1]);
		lo1 = _mm256_unpacklo_ps(r[2], r[3]);
		hi1 = _mm256_unpackhi_ps(r[2], r[3]);
		_mm256_store_ps((float *)(d[0] + i), _mm256_shuffle_ps(lo0, lo1, 0x44));
		_mm256_store_ps((float *)(d[1] + i), _mm256_shuffle_ps(lo0, lo1, 0xee));
		_mm256_store_ps((float *)(d[2] + i), _mm256_shuffle_ps(hi0, hi1, 0x44));
		_mm256_store_ps((float *)(d[3] + i), _mm256_shuffle_ps(hi0, hi1, 0xee));
	}
}

/* ---- the checked path ---- */

static unsigned slow_space(enum space s, const struct sim_uop *o)
{
	switch (s) {
	case S32:
	case S64:
		return RS_PTX_SPACE_SHARED;
	case L32:
	case L64:
		return RS_PTX_SPACE_LOCAL;
	case P:
		return RS_PTX_SPACE_PARAM;
	default:
		return o->src->space == RS_PTX_SPACE_NONE ? RS_PTX_SPACE_NONE : RS_PTX_SPACE_GLOBAL;
	}
}

static u64 slow_addr(enum space s, const struct sim_uop *o, const struct sim_warp *w, int lane)
{
	return s == S32 || s == L32 ? (u32)(SIM_REG(u32, w, o, 1)[lane] + (u32)o->imm)
				    : SIM_REG(u64, w, o, 1)[lane] + (u64)o->imm;
}

/* Lane by lane; on a fault the run's fault is set and the rest is left alone. */
static u8 *slow_place(enum space s, const struct sim_uop *o, struct sim_warp *w, int lane,
		      unsigned bytes, int is_write)
{
	u8 *p = check_space(w, o, slow_space(s, o), (unsigned)lane, slow_addr(s, o, w, lane), bytes,
			    is_write);

	if (p && s == G) {
		if (is_write)
			w->run->counts.store_bytes += bytes;
		else
			w->run->counts.load_bytes += bytes;
	}
	return p;
}

#define FOR_LANES(i, mask)                                                                         \
	for (u32 m_ = (mask), i; m_ && (i = (u32)__builtin_ctz(m_), 1); m_ &= m_ - 1)

#define ELEMS(T, d)                                                                                \
	T *d[4] = {SIM_REG(T, w, o, 3), SIM_REG(T, w, o, 4), SIM_REG(T, w, o, 5),                  \
		   SIM_REG(T, w, o, 6)}

#define LOAD_FN(name, s, M, D)                                                                     \
	static __attribute__((noinline)) void name##_slow(const struct sim_uop *o,                 \
							  struct sim_warp *w)                      \
	{                                                                                          \
		ELEMS(D, d);                                                                       \
                                                                                                   \
		FOR_LANES(i, w->act)                                                               \
		{                                                                                  \
			const M *p = (const M *)slow_place(s, o, w, (int)i,                        \
							   o->n * (unsigned)sizeof(M), 0);         \
                                                                                                   \
			if (!p)                                                                    \
				return;                                                            \
			for (unsigned e = 0; e < o->n; e++)                                        \
				d[e][i] = (D)p[e];                                                 \
		}                                                                                  \
	}                                                                                          \
	static void name(const struct sim_uop *o, struct sim_warp *w)                              \
	{                                                                                          \
		const unsigned n = o->n, bytes = n * (unsigned)sizeof(M);                          \
		struct lanes_at at;                                                                \
		ELEMS(D, d);                                                                       \
                                                                                                   \
		if (!test(s, o, w, bytes, &at)) {                                                  \
			name##_slow(o, w);                                                         \
			return;                                                                    \
		}                                                                                  \
		if (s == G)                                                                        \
			w->run->counts.load_bytes += (u64)bytes * (u32)__builtin_popcount(w->act); \
		if (n == 1 && sizeof(M) == 4 && w->act == SIM_FULL) {                              \
			load_words((u32 *)d[0], &at);                                              \
		} else if (n == 1 && is_run(&at, w, bytes)) {                                      \
			const M *p = (const M *)(at.base + at.off[0]);                             \
			D *d0 = d[0];                                                              \
                                                                                                   \
			_Pragma("GCC ivdep") for (int i = 0; i < SIM_LANES; i++) d0[i] = (D)p[i];  \
		} else if (n == 1) {                                                               \
			const u8 *base = at.base;                                                  \
			D *d0 = d[0];                                                              \
                                                                                                   \
			FOR_LANES(i, w->act) d0[i] = (D) * (const M *)(base + at.off[i]);          \
		} else if (n == 4 && sizeof(M) == 4 && w->act == SIM_FULL) {                       \
			load_quads((u32 *const *)d, &at);                                          \
		} else {                                                                           \
			FOR_LANES(i, w->act)                                                       \
			{                                                                          \
				const M *p = (const M *)(at.base + at.off[i]);                     \
                                                                                                   \
				for (unsigned e = 0; e < n; e++)                                   \
					d[e][i] = (D)p[e];                                         \
			}                                                                          \
		}                                                                                  \
	}

#define STORE_FN(name, s, M, D)                                                                    \
	static __attribute__((noinline)) void name##_slow(const struct sim_uop *o,                 \
							  struct sim_warp *w)                      \
	{                                                                                          \
		ELEMS(const D, d);                                                                 \
                                                                                                   \
		FOR_LANES(i, w->act)                                                               \
		{                                                                                  \
			M *p = (M *)slow_place(s, o, w, (int)i, o->n * (unsigned)sizeof(M), 1);    \
                                                                                                   \
			if (!p)                                                                    \
				return;                                                            \
			for (unsigned e = 0; e < o->n; e++)                                        \
				p[e] = (M)d[e][i];                                                 \
		}                                                                                  \
	}                                                                                          \
	static void name(const struct sim_uop *o, struct sim_warp *w)                              \
	{                                                                                          \
		const unsigned n = o->n, bytes = n * (unsigned)sizeof(M);                          \
		struct lanes_at at;                                                                \
		ELEMS(const D, d);                                                                 \
                                                                                                   \
		if (!test(s, o, w, bytes, &at)) {                                                  \
			name##_slow(o, w);                                                         \
			return;                                                                    \
		}                                                                                  \
		if (s == G)                                                                        \
			w->run->counts.store_bytes +=                                              \
				(u64)bytes * (u32)__builtin_popcount(w->act);                      \
		if (n == 1 && is_run(&at, w, bytes)) {                                             \
			M *p = (M *)(at.base + at.off[0]);                                         \
			const D *d0 = d[0];                                                        \
                                                                                                   \
			_Pragma("GCC ivdep") for (int i = 0; i < SIM_LANES; i++) p[i] = (M)d0[i];  \
		} else {                                                                           \
			FOR_LANES(i, w->act)                                                       \
			{                                                                          \
				M *p = (M *)(at.base + at.off[i]);                                 \
                                                                                                   \
				for (unsigned e = 0; e < n; e++)                                   \
					p[e] = (M)d[e][i];                                         \
			}                                                                          \
		}                                                                                  \
	}

/* clang-format off */
#define LOAD_TYPES(X, s) X(s, u8, u32) X(s, s8, s32) X(s, u16, u32) X(s, s16, s32) X(s, u32, u32) X(s, u64, u64)
#define STORE_TYPES(X, s) X(s, u8, u32) X(s, u16, u32) X(s, u32, u32) X(s, u64, u64)
#define SPACES(Y, X) Y(X, G) Y(X, S32) Y(X, S64) Y(X, L32) Y(X, L64) Y(X, P)
/* clang-format on */

#define X(s, M, D) LOAD_FN(ld_##s##_##M, s, M, D)
SPACES(LOAD_TYPES, X)
#undef X
#define X(s, M, D) STORE_FN(st_##s##_##M, s, M, D)
SPACES(STORE_TYPES, X)
#undef X

/* Index: unsigned 8, signed 8, unsigned 16, signed 16, 32, 64 bits. */
static const sim_fn load_fn[6][6] = {
#define X(s, M, D) ld_##s##_##M,
#define Y(X, s)	   [s] = {LOAD_TYPES(X, s)},
	SPACES(Y, X)
#undef X
#undef Y
};
static const sim_fn store_fn[6][4] = {
#define X(s, M, D) st_##s##_##M,
#define Y(X, s)	   [s] = {STORE_TYPES(X, s)},
	SPACES(Y, X)
#undef X
#undef Y
};

/* An entry parameter at a fixed place: one value for all lanes. */
#define PARAM_FN(name, M, D)                                                                       \
	static void name(const struct sim_uop *o, struct sim_warp *w)                              \
	{                                                                                          \
		const u8 *p = (const u8 *)w->run->launch->params + o->imm;                         \
		ELEMS(D, d);                                                                       \
                                                                                                   \
		for (unsigned e = 0; e < o->n; e++) {                                              \
			M v;                                                                       \
                                                                                                   \
			memcpy(&v, p + e * sizeof v, sizeof v);                                    \
			for (int i = 0; i < SIM_LANES; i++)                                        \
				d[e][i] = w->lanes[i] ? (D)v : d[e][i];                            \
		}                                                                                  \
	}
PARAM_FN(param_u8, u8, u32)
PARAM_FN(param_s8, s8, s32)
PARAM_FN(param_u16, u16, u32)
PARAM_FN(param_s16, s16, s32)
PARAM_FN(param_u32, u32, u32)
PARAM_FN(param_u64, u64, u64)

static const sim_fn param_fn[6] = {param_u8, param_s8, param_u16, param_s16, param_u32, param_u64};

/* ---- lowering ---- */

/* Ordering, caching and prefetch qualifiers: one thread runs everything in order. */
static const char *const qualifiers[] = {"volatile",
					 "relaxed",
					 "acquire",
					 "release",
					 "weak",
					 "cta",
					 "cluster",
					 "gpu",
					 "sys",
					 "nc",
					 "ca",
					 "cg",
					 "cs",
					 "lu",
					 "cv",
					 "wb",
					 "wt",
					 "mmio",
					 "L1::evict_normal",
					 "L1::evict_unchanged",
					 "L1::evict_first",
					 "L1::evict_last",
					 "L1::no_allocate",
					 "L2::evict_normal",
					 "L2::evict_last",
					 "L2::evict_first",
					 "L2::cache_hint",
					 "L2::64B",
					 "L2::128B",
					 "L2::256B",
					 NULL};

static int type_index(unsigned type)
{
	int is_signed = type == RS_PTX_S8 || type == RS_PTX_S16;

	switch (rs_ptx_type_bytes(type)) {
	case 1:
		return is_signed;
	case 2:
		return 2 + is_signed;
	case 4:
		return 4;
	case 8:
		return 5;
	default:
		return -1;
	}
}

static char type_letter(unsigned type)
{
	switch (rs_ptx_type_bytes(type)) {
	case 8:
		return 'd';
	case 4:
		return 'w';
	default:
		return 'h';
	}
}

/* Registers of the data operand: one, or the elements of {a, b, ...}. */
static int data_operands(struct sim_lower *l, const struct rs_ptx_insn *in,
			 const struct rs_ptx_operand *op, int is_load, u32 *ret_v, unsigned *ret_n)
{
	unsigned n = in->vec ? in->vec : 1;
	char letter = type_letter(in->type);
	int is_signed = in->type == RS_PTX_S8 || in->type == RS_PTX_S16 || in->type == RS_PTX_S32;
	int rc = 0;

	if (n > 4)
		return sim_lower_fail(l, "unknown instruction %s", in->text);
	if ((n > 1) != (op->kind == RS_PTX_OP_VEC) || (n > 1 && op->nelems != n))
		return sim_lower_fail(l, "wrong operands");
	for (unsigned i = 0; i < n && !rc; i++) {
		const struct rs_ptx_operand *e = n > 1 ? &op->elems[i] : op;

		rc = is_load ? sim_lower_dst(l, e, letter, is_signed, &ret_v[i])
			     : sim_lower_src(l, e, letter, &ret_v[i]);
	}
	*ret_n = n;
	return rc;
}

static enum space fast_space(unsigned space, unsigned width)
{
	switch (space) {
	case RS_PTX_SPACE_SHARED:
		return width == 8 ? S64 : S32;
	case RS_PTX_SPACE_LOCAL:
		return width == 8 ? L64 : L32;
	case RS_PTX_SPACE_PARAM:
		return P;
	default:
		return G;
	}
}

/* RS_PTX_SPACE_REG marks an entry parameter at a fixed offset (see sim_lower_addr). */
static const sim_fn *pick(sim_fn pair[2], int is_load, unsigned space, unsigned width, int t)
{
	enum space s = fast_space(space, width);

	pair[0] = pair[1] = !is_load			? store_fn[s][t < 4 ? t / 2 : t - 2]
			    : space == RS_PTX_SPACE_REG ? param_fn[t]
							: load_fn[s][t];
	return pair;
}

static int lower_access(struct sim_lower *l, const struct rs_ptx_insn *in, int is_load)
{
	int t = type_index(in->type), rc;
	unsigned n = 0, space = 0;
	u32 addr, data[4];
	sim_fn pair[2];
	struct sim_uop *o;
	s64 imm;

	if (sim_form_parts(in, qualifiers) >= 0 || t < 0 || in->type == RS_PTX_PRED ||
	    strcmp(in->part[in->nparts - 1], rs_ptx_type_name(in->type)))
		return sim_lower_fail(l, "unknown instruction %s", in->text);
	if (in->noperands != 2u + rs_ptx_has(in, "L2::cache_hint") ||
	    in->op[!!is_load].kind != RS_PTX_OP_ADDR)
		return sim_lower_fail(l, "wrong operands");
	rc = sim_lower_addr(l, &in->op[!!is_load], in->space, &addr, &imm, &space);
	if (!rc)
		rc = data_operands(l, in, &in->op[!is_load], is_load, data, &n);
	if (rc)
		return rc;
	if (!is_load && (space == RS_PTX_SPACE_REG || in->space == RS_PTX_SPACE_CONST))
		return sim_lower_fail(l, "store to read-only memory");
	o = sim_lower_emit(l, space == RS_PTX_SPACE_REG ? SIM_K_ALU : SIM_K_MEM,
			   pick(pair, is_load, space, l->vreg[addr].cls, t));
	if (!o)
		return -ENOMEM;
	o->r[1] = addr, o->imm = imm, o->n = (u8)n;
	memcpy(&o->r[3], data, n * sizeof *data);
	o->rd |= space == RS_PTX_SPACE_REG ? 0 : 2;
	*(is_load ? &o->wr : &o->rd) |= (u8)(((1 << n) - 1) << 3);
	if (space == RS_PTX_SPACE_REG)
		o->flags |= SIM_F_PURE;
	else
		o->target = (s32)l->k->nhits++;
	return sim_lower_finish(l);
}

static int lower_ld(struct sim_lower *l, const struct rs_ptx_insn *in, const struct sim_form *form,
		    unsigned flags)
{
	(void)form, (void)flags;
	return lower_access(l, in, 1);
}

static int lower_st(struct sim_lower *l, const struct rs_ptx_insn *in, const struct sim_form *form,
		    unsigned flags)
{
	(void)form, (void)flags;
	return lower_access(l, in, 0);
}

/* Nothing to do: memory is sequentially consistent and has no cache. */
static int lower_nothing(struct sim_lower *l, const struct rs_ptx_insn *in,
			 const struct sim_form *form, unsigned flags)
{
	static const sim_fn none[2] = {NULL, NULL};

	(void)in, (void)form, (void)flags;
	return sim_lower_emit(l, SIM_K_NOP, none) ? 0 : -ENOMEM;
}

#define LONGEST_SLEEP 1000000u /* ns, of one instruction: the ISA's bound */

/* Exactly as long as asked for, of the 0 to twice that which the ISA allows; a warp sleeps as long as its longest lane. */
static void sleep_for(const struct sim_uop *o, struct sim_warp *w)
{
	const u32 *ns = SIM_REG(u32, w, o, 1);
	u32 longest = 0;

	for (int i = 0; i < SIM_LANES; i++)
		if (w->lanes[i] && ns[i] > longest)
			longest = ns[i];
	w->slept += longest < LONGEST_SLEEP ? longest : LONGEST_SLEEP;
	if (w->slept > w->run->counts.sleep_ns)
		w->run->counts.sleep_ns = w->slept;
}

static int lower_nanosleep(struct sim_lower *l, const struct rs_ptx_insn *in,
			   const struct sim_form *form, unsigned flags)
{
	static const sim_fn fn[2] = {sleep_for, sleep_for};
	struct sim_uop *o;
	u32 ns;
	int rc;

	(void)form, (void)flags;
	if (in->noperands != 1)
		return sim_lower_fail(l, "wrong operands");
	rc = sim_lower_src(l, &in->op[0], 'w', &ns);
	o = rc ? NULL : sim_lower_emit(l, SIM_K_ALU, fn);
	if (!o)
		return rc ? rc : l->failed;
	o->r[1] = ns;
	o->rd |= 2;
	return sim_lower_finish(l);
}

const struct sim_form sim_forms_mem[] = {
	{"ld *", NULL, {NULL, NULL}, lower_ld},
	{"ldu *", NULL, {NULL, NULL}, lower_ld},
	{"st *", NULL, {NULL, NULL}, lower_st},
	{"prefetch *", NULL, {NULL, NULL}, lower_nothing},
	{"prefetchu *", NULL, {NULL, NULL}, lower_nothing},
	{"discard *", NULL, {NULL, NULL}, lower_nothing},
	{"applypriority *", NULL, {NULL, NULL}, lower_nothing},
	{"membar cta|gl|sys", NULL, {NULL, NULL}, lower_nothing},
	{"fence sc|acq_rel|acquire|release? cta|cluster|gpu|sys",
	 NULL,
	 {NULL, NULL},
	 lower_nothing},
	{"nanosleep u32", NULL, {NULL, NULL}, lower_nanosleep},
};
const unsigned sim_nforms_mem = sizeof sim_forms_mem / sizeof *sim_forms_mem;
