/* SPDX-License-Identifier: MIT */
/*
 * The frame of every hand-written wrapper.
 *
 *	RS_HOOK(cuFoo, (int a, CUstream s))
 *	{
 *		RS_ENTER(t, cuFoo, (a, s));
 *		...
 *		RS_LEAVE(t, result);
 *	}
 *
 * RS_HOOK defines the hidden function rs_hook_cuFoo and exports it as cuFoo; the alias makes the compiler
 * compare the prototype with cuda.h. RS_ENTER counts the call and forwards it unseen when observing is
 * off or when the call is not the program's own. Engine calls keep errno.
 */
#ifndef RS_SHIM_GUARD_H
#define RS_SHIM_GUARD_H

#include "shim/planner.h"

#define RS_HOOK(sym, params)                                                                       \
	CUresult rs_hook_##sym params;                                                             \
	extern __typeof__(sym) sym __attribute__((alias("rs_hook_" #sym), visibility("default"))); \
	CUresult rs_hook_##sym params

/* Takes a pending failure of option STRICT. Not for calls that the driver makes itself. */
static inline int rs_guard_strict(void)
{
	int pending = RS_ON | RS_STRICT_PENDING;

	if (rs_likely(__atomic_load_n(&rs_on, __ATOMIC_RELAXED) != pending) ||
	    (rs_tls && rs_tls->depth))
		return 0;
	return __atomic_compare_exchange_n(&rs_on, &pending, RS_ON, 0, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
}

static inline struct rs_tls *rs_guard_count(enum rs_ep ep)
{
	struct rs_tls *t;

	if (rs_unlikely(__atomic_load_n(&rs_on, __ATOMIC_RELAXED) != RS_ON))
		return NULL;
	t = rs_tls;
	if (rs_unlikely(!t)) {
		t = rs_tls_get();
		if (!t)
			return NULL;
	}
	__atomic_store_n(&t->count[ep], t->count[ep] + 1, __ATOMIC_RELAXED);
	return t;
}

static inline struct rs_tls *rs_guard_enter(enum rs_ep ep)
{
	struct rs_tls *t = rs_guard_count(ep);

	if (rs_unlikely(!t) || t->depth)
		return NULL;
	t->depth = 1;
	return t;
}

#define RS_ENTER(t, sym, args)                                                                     \
	struct rs_tls *t = rs_guard_enter(RS_EP_##sym);                                            \
	if (rs_unlikely(!t))                                                                       \
	return rs_guard_strict() ? CUDA_ERROR_UNKNOWN : rs_real.sym args

#define RS_LEAVE(t, result)                                                                        \
	do {                                                                                       \
		(t)->depth = 0;                                                                    \
		return (result);                                                                   \
	} while (0)

/* Engine calls from a wrapper: errno is the program's. */
#define RS_ENGINE(stmt)                                                                            \
	do {                                                                                       \
		int saved_errno_ = errno;                                                          \
		stmt;                                                                              \
		errno = saved_errno_;                                                              \
	} while (0)

/* Did records turn bad since the last look (option STRICT)? Then the next call fails. */
void rs_guard_look(void);

static inline void rs_guard_before(struct rs_tls *t, struct rs_call *call)
{
	rs_engine_before(rs_state.engine, t->thread, call); /* keeps errno */
}

static inline void rs_guard_after(struct rs_tls *t, struct rs_call *call, CUresult result)
{
	rs_engine_after(rs_state.engine, t->thread, call, result == CUDA_SUCCESS);
	if (rs_unlikely(rs_state.opt.strict))
		RS_ENGINE(rs_guard_look());
}

static inline void rs_guard_poll(void)
{
	if (rs_unlikely(__atomic_load_n(&rs_planner_seeking, __ATOMIC_RELAXED)))
		RS_ENGINE(rs_planner_glance());
	RS_ENGINE(rs_engine_poll(rs_state.engine));
	if (rs_unlikely(rs_state.opt.strict))
		rs_guard_look();
}

#endif
