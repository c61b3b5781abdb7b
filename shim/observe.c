/* SPDX-License-Identifier: MIT */
/*
 * The wrappers that only count, made from the table, and the table itself.
 * Callers: the program, any thread. No locks.
 */
#include "shim/guard.h"

#define RS_OBSERVE_REPLACE(sym, params, args)                                                      \
	extern __typeof__(sym) rs_hook_##sym __attribute__((visibility("hidden")));
#define RS_OBSERVE_OBSERVE(sym, params, args)                                                      \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		if (rs_unlikely(!rs_guard_count(RS_EP_##sym)) && rs_guard_strict())                \
			return CUDA_ERROR_UNKNOWN;                                                 \
		return rs_real.sym args;                                                           \
	}
#define RS_OBSERVE_THIN(sym, params, args)
#define EP(sym, group, action, since, flavour, params, args) RS_OBSERVE_##action(sym, params, args)
#include "shim/entry_points.def"
#undef EP

#define RS_IS_REPLACE 1
#define RS_IS_OBSERVE 0

const struct rs_ep_info rs_ep_info[RS_EP_COUNT] = {
#define EP(sym, group, action, since, flavour, params, args)                                       \
	RS_WRAPPED(action,                                                                         \
		   [RS_EP_##sym] = {#sym, #group, (void *)rs_hook_##sym, since, RS_##flavour,      \
				    RS_IS_##action}, )
#include "shim/entry_points.def"
#undef EP
};
