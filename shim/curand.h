/* SPDX-License-Identifier: MIT */
/*
 * The cuRAND host API as the rest of the shim sees it: functions to hand out, counters, and (for curand.c) the real
 * library's functions.
 */
#ifndef RS_SHIM_CURAND_H
#define RS_SHIM_CURAND_H

#include "shim/curand_abi.h"
#include "shim/shim.h"

enum rs_curand_id {
#define CURAND(sym, action, params, args) RS_CURAND_##sym,
#include "shim/curand.def"
#undef CURAND
	RS_CURAND_COUNT
};

/* The library's own functions. Each pointer is callable at any time: it starts as a resolver. */
struct rs_curand_real {
#define CURAND(sym, action, params, args) rs_curand_status(*sym) params;
#include "shim/curand.def"
#undef CURAND
};
extern struct rs_curand_real rs_curand_real;

#define CURAND(sym, action, params, args)                                                          \
	rs_curand_status rs_curand_hook_##sym params __attribute__((visibility("hidden")));
#include "shim/curand.def"
#undef CURAND

/* Calls, per function. */
extern uint64_t rs_curand_count[RS_CURAND_COUNT];
/* Draws of generators whose creation was not seen, and of host generators: not followed. */
extern uint64_t rs_curand_unfollowed, rs_curand_host;

/* A look-up of the program's found addr under this name: what to hand out instead, or NULL. */
void *rs_curand_exchange(const char *name, void *addr);
/* Is it the name of one of them? */
int rs_curand_knows(const char *name);
/* "curandGenerate": 3, ... into the object that is open. */
void rs_curand_report(struct rs_json *j);

#endif
