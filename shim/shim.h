/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the preloaded library share: the entry-point table, the real functions, the state
 * of the process and of a thread.
 *
 * Invariants
 * - rs_on is the one word that the hot path tests. 0: forward at once (before the program's first
 *   successful cuInit, modes off and nop, after fork in the child, at exit). RS_ON: observe.
 *   RS_ON | RS_STRICT_PENDING: the next intercepted call fails (option STRICT).
 * - A thread's struct rs_tls is written by that thread only; counters are read by others at any time.
 * - depth > 0 while the engine or the real driver runs on behalf of a wrapper: the driver may call its
 *   own exported functions, which are ours then, and those calls are not the program's.
 * - Real functions are called through rs_real only, hooks never call each other.
 */
#ifndef RS_SHIM_SHIM_H
#define RS_SHIM_SHIM_H

/* All ABIs under their own names: no renaming macros. */
#define __CUDA_API_VERSION_INTERNAL	   1
#define __CUDA_API_PUSH_VISIBILITY_DEFAULT 1
#include <cuda.h>
#include <errno.h>
#include <stdint.h>

#include "tracker/engine.h"
#include "tracker/options.h"
#include "tracker/records.h"

/* cudaProfiler.h is a component of its own, which a machine with cuda.h may lack. */
CUresult CUDAAPI cuProfilerInitialize(const char *configFile, const char *outputFile,
				      unsigned int outputMode);
CUresult CUDAAPI cuProfilerStart(void);
CUresult CUDAAPI cuProfilerStop(void);

#define RS_EXPORT      __attribute__((visibility("default")))
#define rs_likely(x)   __builtin_expect(!!(x), 1)
#define rs_unlikely(x) __builtin_expect(!!(x), 0)

/* An expansion of entry_points.def for the functions that have a wrapper: RS_WRAPPED(action, text). */
#define RS_WRAPPED(action, ...) RS_WRAPPED_##action(__VA_ARGS__)
#define RS_WRAPPED_REPLACE(...) __VA_ARGS__
#define RS_WRAPPED_OBSERVE(...) __VA_ARGS__
#define RS_WRAPPED_THIN(...)

enum rs_ep {
#define EP(sym, group, action, since, flavour, params, args) RS_WRAPPED(action, RS_EP_##sym, )
#include "shim/entry_points.def"
#undef EP
	RS_EP_COUNT
};

enum rs_flavour { RS_PLAIN, RS_PTSZ, RS_PTDS };

/* Functions that the shim itself needs and does not intercept. */
#define RS_REAL_EXTRA(X)                                                                           \
	X(cuDeviceGetAttribute)                                                                    \
	X(cuDeviceGetName)                                                                         \
	X(cuDeviceGetUuid)                                                                         \
	X(cuDeviceGetUuid_v2)                                                                      \
	X(cuDeviceTotalMem_v2)

/* The driver's own functions. Each pointer is callable at any time: it starts as a resolver. */
struct rs_real {
#define EP(sym, group, action, since, flavour, params, args)                                       \
	RS_WRAPPED(action, __typeof__(&sym) sym;)
#include "shim/entry_points.def"
#undef EP
#define X(sym) __typeof__(&sym) sym;
	RS_REAL_EXTRA(X)
#undef X
};
extern struct rs_real rs_real;

struct rs_ep_info {
	const char *name;
	const char *group;
	void *hook;
	uint32_t since;
	uint8_t flavour; /* enum rs_flavour */
	uint8_t replace; /* hand-written wrapper, else counted and forwarded */
};
extern const struct rs_ep_info rs_ep_info[RS_EP_COUNT];

/* --- real.c --------------------------------------------------------------------------------- */

/* Bind rs_real to the library that holds addr (what the program's own look-up returned). */
void rs_real_bind_address(void *addr);
/* Bind to libcuda.so.1, loading it if need be. 0, or -ENOENT when there is none. */
int rs_real_open(void);
/* The wrapper of a driver function's address, or NULL. Lock-free. */
void *rs_real_wrapper(const void *addr);
/* The wrapper by the arguments of cuGetProcAddress, or NULL: for an address that is not known. */
void *rs_real_wrapper_by_name(const char *name, int version, uint64_t flags);
/* The wrapper of the intercepted function of exactly that name, or NULL. */
void *rs_real_knows(const char *name);
/* Is it the address of a driver function that is meant to be handed out untouched? */
int rs_real_untouched(const void *addr);
/* Is a function of exactly that name in one of the two lists, or graphics interoperation? */
int rs_real_listed(const char *name);
/* The same for what cuGetProcAddress is asked for: is any ABI up to that version, or a passive one, listed? */
int rs_real_listed_base(const char *name, int version);

/* --- doors.c -------------------------------------------------------------------------------- */

/* libc's dlsym, for look-ups of our own. */
void *rs_doors_dlsym(void *handle, const char *name);
/* A handle of the library that addr lies in, or NULL. Never given back: pointers into it are kept. */
void *rs_doors_library_of(void *addr);

/* --- coverage.c ----------------------------------------------------------------------------- */

/* Counted for the coverage figures. */
struct rs_coverage {
	uint64_t unknown_names; /* cu* functions handed out that no list of ours knows */
	uint64_t
		foreign_names; /* intercepted names found in a library that is not the driver in use */
	uint64_t by_name;      /* wrappers chosen by name: the address was not an exported one */
	uint64_t export_tables;	 /* private tables handed out */
	uint64_t unknown_kernel; /* launches of a handle that no hook had seen */
	uint64_t opaque_graphs;	 /* launches of graphs that could not be described */
	uint64_t lost_threads;	 /* threads without memory for their state */
	uint64_t bypass;	 /* objects that can call the driver past the hooks (bypass.c) */
	uint64_t bypass_idle;	 /* objects past the hooks with no sign that they use the driver */
};
extern struct rs_coverage rs_coverage;
#define rs_count(field) __atomic_fetch_add(&rs_coverage.field, 1, __ATOMIC_RELAXED)

/* Each counts, and keeps the first few names. */
void rs_coverage_unknown(const char *name);
void rs_coverage_foreign(const char *name);
void rs_coverage_table(const CUuuid *id);
/* The counters, and the names, into the object that is open. */
void rs_coverage_report(struct rs_json *j);
void rs_coverage_names(struct rs_json *j);

/* --- state ---------------------------------------------------------------------------------- */

enum { RS_ON = 1, RS_STRICT_PENDING = 2 };
extern int rs_on;

struct rs_state {
	struct rs_options opt;
	enum rs_mode mode;
	struct rs_engine *engine;
	struct rs_records *records;
	char dir[4096];
	char self[4096];   /* this library's path */
	uint32_t captures; /* streams being captured */
	int busy;	   /* busy times are being measured, see busy.h */
	uint64_t ctx_sole; /* the process's only context; 0: none or several */
	uint32_t ctx_gen;  /* changes when a context goes */
};
extern struct rs_state rs_state;

/* Read the environment; callable at any time, does its work once. */
void rs_init_boot(void);
/* After a successful cuInit. */
void rs_init_start(void);

/* A copy or a fill (src 0) that needed nothing at that moment; see rs_engine_moment and call.h. */
struct rs_calm {
	uint64_t moment, dst, src; /* moment 0: an empty entry */
	struct rs_queue q;
};
#define RS_CALM 128u

/*
 * The global variables of a kernel's module or library in a context; see wrap_launch.c. A handle may come to be another
 * module's: then the code is another.
 */
struct rs_variables {
	const void *owner, *code;
	uint64_t ctx;
	uint64_t generation; /* of addresses and descriptions (memo.h); 0: an empty entry */
	uint64_t voided;     /* of descriptions */
	const struct rs_global *at;
	unsigned n;
	uint8_t unnamed; /* there may be others */
};
#define RS_VARIABLES 64u

struct rs_tls {
	uint32_t depth;
	uint32_t ctx_gen;
	uint64_t ctx; /* current context as of ctx_gen; see queue.h */
	uint64_t own_stream;
	struct rs_thread *thread;
	uint64_t window; /* that CUPTI knows of, see busy.h */
	uint32_t where;	 /* where the thread is, if that has been looked up before: where.h */
	struct rs_access *access; /* scratch of one call */
	unsigned access_cap;
	uint8_t *params; /* scratch of one launch */
	unsigned params_cap;
	struct rs_ranges *ranges; /* ranges.h; NULL until the first one */
	/* memo.h */
	struct rs_memo *memos, *memo_last, *memos_new;
	uint64_t *memos_glanced, *memos_seen;
	struct rs_tls *next, **link;
	uint64_t count[RS_EP_COUNT];
	struct rs_calm calm[RS_CALM];		     /* hashed */
	struct rs_variables variables[RS_VARIABLES]; /* hashed */
};
extern __thread struct rs_tls *rs_tls __attribute__((tls_model("initial-exec")));

/* The calling thread's state; NULL without memory. */
struct rs_tls *rs_tls_get(void);
/* Sum of all threads' counters, the ended ones included. */
void rs_tls_counts(uint64_t ret_count[RS_EP_COUNT]);

/* A line of numbers into events.jsonl. */
void rs_report_stats(void);
void rs_report_lost(void); /* says once that lines could not be written */
/* A marker's text has passed: a new step writes its numbers. */
void rs_report_step(const char *text);
uint64_t rs_report_last_step(void);

void rs_fork_init(void);

#endif
