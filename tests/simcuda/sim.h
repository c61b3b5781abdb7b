/* SPDX-License-Identifier: MIT */
/*
 * The simulated driver's insides: the types that its modules share.
 *
 * Every exported entry point is defined with SIM_API or SIM_TWINS (below); the macro enters the
 * driver (sim_api_enter: initialised, injected fault, lock, context, sticky error, capture rules),
 * runs the body under the one driver lock and leaves. Everything in this header expects that lock to
 * be held; it is dropped only while a host function of the program runs (sched.c).
 *
 * Vocabulary: a *work* describes something for the device to do and owns its data; a submitted work
 * is an *op* with predecessors, a captured or added one is a graph node.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

/* The real header without its renaming, so that each definition is checked against its prototype. */
#define __CUDA_API_VERSION_INTERNAL
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/simcuda/exec.h"

#define SIM_MAX_DEVICES 16
#define SIM_PATTERN	0x7fe5e5e5u /* fresh device memory: a NaN as f32, huge as f64 */
#define SIM_POISON	0x7fdfdfdfu /* freed device memory */

/* ---- api.c: entering and leaving, options, fault injection ---- */

enum sim_api_id {
#define API(symbol, base, version, twin) SIM_ID_##symbol,
#include "tests/simcuda/api.def"
#undef API
	SIM_API_COUNT
};

/* What an entry point needs. */
#define SIM_ANY	   0u /* works before cuInit */
#define SIM_INIT   1u
#define SIM_CTX	   3u /* a current context without a sticky error */
#define SIM_UNSAFE 4u /* "potentially unsafe" while a stream is being captured */

struct sim_call {
	enum sim_api_id id;
	bool per_thread; /* a _ptsz/_ptds twin: stream handle 0 is the per-thread stream */
	CUcontext ctx;	 /* current, or NULL */
};

CUresult sim_api_enter(struct sim_call *call, enum sim_api_id id, unsigned need);
CUresult sim_api_leave(struct sim_call *call, CUresult r);
const char *sim_api_name(enum sim_api_id id);
void sim_api_prepare(void); /* options are loaded after this */
void sim_api_lock(void);
void sim_api_unlock(void);
void sim_api_wait(unsigned ms); /* drop the lock until something completes, at most ms */
void sim_api_wake(void);
extern __thread int sim_api_in_callback;

#define P(...) __VA_ARGS__
#define SIM_ENTRY_(name, need, symbol, params, args)                                               \
	CUresult symbol(params)                                                                    \
	{                                                                                          \
		struct sim_call call;                                                              \
		CUresult r = sim_api_enter(&call, SIM_ID_##symbol, need);                          \
                                                                                                   \
		return r ? r : sim_api_leave(&call, do_##name(&call, args));                       \
	}
#define SIM_API(name, need, params, args)                                                          \
	static CUresult do_##name(struct sim_call *call, params);                                  \
	SIM_ENTRY_(name, need, name, P(params), P(args))                                           \
	static CUresult do_##name(__attribute__((unused)) struct sim_call *call, params)
#define SIM_TWINS(name, suffix, need, params, args)                                                \
	static CUresult do_##name(struct sim_call *call, params);                                  \
	SIM_ENTRY_(name, need, name, P(params), P(args))                                           \
	SIM_ENTRY_(name, need, name##suffix, P(params), P(args))                                   \
	static CUresult do_##name(__attribute__((unused)) struct sim_call *call, params)

enum sim_sched_mode { SIM_SCHED_EAGER, SIM_SCHED_LAZY, SIM_SCHED_RANDOM };

struct sim_profile {
	const char *name;
	uint64_t mem_bytes_per_us, pcie_bytes_per_us, insns_per_us;
	uint64_t launch_ns, copy_ns;
	uint64_t map_ns, access_ns; /* of the host */
};

struct sim_options {
	enum sim_sched_mode sched;
	uint64_t seed;
	unsigned devices;
	uint64_t memory, granularity;
	int cc; /* major * 10 + minor */
	bool check_uninit, trace;
	unsigned hang_ms;
	uint64_t scale; /* latencies are divided by it */
	uint64_t max_insns;
	const struct sim_profile *profile;
};
extern struct sim_options sim_options;

void sim_options_load(void);
int sim_options_sched(const char *spec);
/* The code to inject into this call, or 0. */
CUresult sim_options_fault(enum sim_api_id id);
int sim_options_set_fail(const char *spec);
void sim_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- handle.c: which pointers are live handles ---- */

enum sim_handle_kind {
	SIM_H_NONE,
	SIM_H_CTX,
	SIM_H_STREAM,
	SIM_H_EVENT,
	SIM_H_MODULE,
	SIM_H_FUNC,
	SIM_H_LIB,
	SIM_H_KERN,
	SIM_H_GRAPH,
	SIM_H_NODE,
	SIM_H_EXEC,
	SIM_H_POOL,
	SIM_H_USEROBJ,
	SIM_H_PHYS, /* CUmemGenericAllocationHandle */
	SIM_H_EXTMEM,
	SIM_H_EXTSEM,
	SIM_H_GREEN,
	SIM_H_RESDESC,
	SIM_H_ARRAY,
	SIM_H_MIPMAP,
};
int sim_handle_add(const void *p, enum sim_handle_kind kind);
void sim_handle_del(const void *p);
enum sim_handle_kind sim_handle_kind(const void *p);
static inline bool sim_handle_is(const void *p, enum sim_handle_kind kind)
{
	return p && sim_handle_kind(p) == kind;
}

/* ---- tree.c: disjoint address ranges ---- */

struct sim_node {
	uint64_t base, size;
	uint32_t prio;
	struct sim_node *left, *right;
	void *owner;
};
struct sim_tree {
	struct sim_node *root;
	uint64_t generation; /* changes with every insert and remove */
};
void sim_tree_insert(struct sim_tree *t, struct sim_node *n, uint64_t base, uint64_t size,
		     void *owner);
void sim_tree_remove(struct sim_tree *t, struct sim_node *n);
void *sim_tree_find(const struct sim_tree *t, uint64_t addr); /* owner of the range holding addr */
void sim_tree_walk(const struct sim_node *n, void (*fn)(void *owner, void *opaque), void *opaque);
/* Does any range intersect [base, base + size)? */
bool sim_tree_overlaps(const struct sim_tree *t, uint64_t base, uint64_t size);

/* ---- memory.c: arenas, allocations, the two views of them ---- */

enum sim_mem_kind {
	SIM_MEM_PAGEABLE, /* no allocation of ours */
	SIM_MEM_DEVICE,
	SIM_MEM_MANAGED,
	SIM_MEM_MODULE,	  /* module-level variables */
	SIM_MEM_MAPPED,	  /* a mapping: of a handle (vmm.c) or of a file (window.c) */
	SIM_MEM_RESERVED, /* address space without memory; no record has this kind */
	SIM_MEM_PINNED,
	SIM_MEM_REGISTERED,
};

struct sim_alloc {
	struct sim_node host; /* what API calls see: from the allocating to the freeing call */
	struct sim_node dev;  /* what executing ops see: the same, in stream order */
	bool in_host, in_dev;
	enum sim_mem_kind kind;
	uint64_t base, size, block, serial;
	unsigned flags;
	int dev_id;
	CUcontext ctx;
	CUmemoryPool pool;
	struct sim_graph_mem *graph_mem; /* of a graph's allocation node */
	uint8_t *init;			 /* of a mapping: not owned */
	bool sync_memops;
	struct sim_mapping *map;       /* SIM_MEM_MAPPED */
	struct sim_advice *advice;     /* managed memory, once advised: one a page */
	struct sim_alloc *next, *prev; /* all of them */
};

extern struct sim_tree sim_mem_host, sim_mem_dev;

struct sim_arena;
CUresult sim_mem_init(void);
/* Reserve bytes of a device (-1: host); *ret_block is what sim_mem_put gives back. */
uint64_t sim_mem_get(int dev, size_t size, uint64_t *ret_block);
void sim_mem_put(int dev, uint64_t addr, uint64_t block);
bool sim_mem_charge(int dev, uint64_t bytes);
void sim_mem_uncharge(int dev, uint64_t bytes);
CUresult sim_mem_alloc(CUcontext ctx, enum sim_mem_kind kind, size_t size, unsigned flags,
		       struct sim_alloc **ret);
struct sim_alloc *sim_mem_record(CUcontext ctx, enum sim_mem_kind kind, uint64_t base, size_t size,
				 uint64_t block, unsigned flags);
void sim_mem_show(struct sim_alloc *a); /* enter the executing ops' view, filled with the pattern */
void sim_mem_hide(struct sim_alloc *a); /* leave it, poisoned */
void sim_mem_forget(struct sim_alloc *a); /* leave both views, free the record, not the bytes */
void sim_mem_free(struct sim_alloc *a);	  /* everything */
void sim_mem_free_ctx(CUcontext ctx);
struct sim_alloc *sim_mem_find(uint64_t addr);
enum sim_mem_kind sim_mem_kind(uint64_t addr);
bool sim_mem_covers(uint64_t addr, uint64_t size); /* wholly inside one allocation, API view */
bool sim_mem_live(uint64_t addr, uint64_t size);   /* the same in the executing ops' view */
void sim_mem_mark_init(uint64_t addr, uint64_t size);
void sim_mem_copy_init(uint64_t dst, uint64_t src, uint64_t size);
const char *sim_mem_describe(uint64_t addr, char *buf, size_t len);
void sim_mem_ranges(CUcontext ctx, const struct sim_range **ret, size_t *ret_n);
uint64_t sim_mem_used(int dev);
uint64_t sim_mem_peak(int dev);
void sim_mem_restart_peak(int dev);
void sim_mem_fill(uint64_t addr, uint64_t size, uint32_t word);
bool sim_mem_writable(uint64_t addr, uint64_t size); /* live, and not mapped for reading only */
bool sim_mem_foreign(uint64_t addr);		     /* nothing that this driver hands out */
extern uint64_t sim_mem_top;			     /* address space behind the arenas */

struct CUmemPoolHandle_st {
	int dev_id;
	bool is_default;
	unsigned handle_types; /* it may be exported as */
	int fd;		       /* imported: the exporter's arena; else -1 */
	bool reuse_event, reuse_opportunistic, reuse_internal;
	uint64_t threshold, used, used_high, reserved, reserved_high, max_size;
	struct sim_block {
		uint64_t addr, block;
		struct sim_op *free_op;
		CUstream stream;
	} * blocks;
	size_t nblocks, cblocks;
};
CUmemoryPool sim_pool_new(int dev);
void sim_pool_trim(CUmemoryPool pool, uint64_t keep);
void sim_pool_trim_all(int dev);
void sim_pool_give(CUmemoryPool pool, struct sim_alloc *a, struct sim_op *op, CUstream s);
CUmemoryPool sim_pool_default(int dev);
void sim_pool_forget_stream(CUstream s);

/* ---- array.c: arrays, memory without an address ---- */

#define SIM_MAX_LEVELS SIM_VIEW_LEVELS

struct CUarray_st {
	CUDA_ARRAY3D_DESCRIPTOR desc;
	CUcontext ctx;
	CUmipmappedArray mip; /* the one that it is a level of, or NULL */
	uint64_t serial;      /* handles are reused, this is not */
	unsigned elem;	      /* bytes */
	size_t pitch, rows, slices;
	uint8_t *data; /* outside of every address tree: no pointer of a program leads here */
	uint64_t bytes;
	CUarray next;
};

struct CUmipmappedArray_st {
	CUDA_ARRAY3D_DESCRIPTOR desc;
	CUcontext ctx;
	CUarray level[SIM_MAX_LEVELS];
	unsigned nlevels;
	CUmipmappedArray next;
};

bool sim_array_live(CUarray a, uint64_t serial);
void sim_array_free_ctx(CUcontext ctx);
/* Format to channel type, channels and bytes of an element; -EINVAL, or -ENOTSUP for what is not simulated. */
int sim_array_format(CUarray_format format, unsigned channels, struct sim_texel *ret);

/* ---- object.c: texture and surface objects ---- */

void sim_object_forget_array(CUarray a); /* objects over it are left without memory */
void sim_object_free_ctx(CUcontext ctx);

/* ---- work.c: what can be done ---- */

enum sim_work_kind {
	SIM_WORK_NOP,
	SIM_WORK_COPY,
	SIM_WORK_FILL,
	SIM_WORK_KERNEL,
	SIM_WORK_HOST,
	SIM_WORK_CALLBACK,
	SIM_WORK_EVENT,	    /* graph event record node */
	SIM_WORK_EVENTWAIT, /* graph event wait node */
	SIM_WORK_WRITE,
	SIM_WORK_WAIT,
	SIM_WORK_ALLOC,
	SIM_WORK_FREE,
	SIM_WORK_GRAPH,	   /* child graph */
	SIM_WORK_BATCH,	   /* graph node: stream memory operations, an op each at launch */
	SIM_WORK_MEMALLOC, /* graph memory becomes live */
	SIM_WORK_MEMFREE,
	SIM_WORK_COND,	   /* conditional node, or one look at its condition */
	SIM_WORK_CONDINIT, /* conditions get their default values */
	SIM_WORK_RELEASE,  /* the user objects of a graph that was in flight go */
	SIM_WORK_SIGNAL,   /* semaphores and events shared with other processes (sync.c) */
	SIM_WORK_AWAIT,
};

struct sim_graph_mem;
struct sim_cond;
struct sim_cond_run;

struct sim_work {
	enum sim_work_kind kind;
	union {
		struct sim_copy {
			uint64_t dst, src;
			size_t dpitch, spitch, dheight, sheight; /* rows of a slice */
			size_t width, height, depth;
			CUarray darray, sarray; /* NULL: a pointer; addresses are inside of it */
			uint64_t dserial, sserial;
			void *staged; /* owned copy of a pageable source, packed */
			bool to_host, from_host;
			CUDA_MEMCPY3D *params; /* graph nodes: as given */
		} copy;
		struct sim_fill {
			uint64_t dst;
			size_t pitch, width, height; /* width in elements */
			unsigned elem, value;
		} fill;
		struct sim_kernel_work {
			CUfunction func;
			CUkernel kern; /* as given by the caller, or NULL */
			unsigned grid[3], block[3], shared;
			void *params; /* owned */
			size_t bytes; /* of params */
			bool cooperative;
		} kernel;
		struct {
			CUhostFn fn;
			void *arg;
		} host;
		struct {
			CUstreamCallback fn;
			void *arg;
			CUstream stream;
		} callback;
		CUevent event;
		struct sim_memop {
			uint64_t addr, value;
			unsigned flags, bytes;
		} memop;
		struct sim_alloc *alloc;
		CUgraph graph; /* child, owned by the node; NULL in an executable graph */
		struct sim_batch {
			CUstreamBatchMemOpParams *ops; /* owned */
			unsigned n;
			CUcontext ctx; /* as given */
		} batch;
		struct sim_graph_mem *mem; /* counted */
		struct sim_cond_work {
			struct sim_cond *cond; /* counted */
			CUgraphConditionalNodeType type;
			unsigned n;
			CUgraph *bodies;	  /* nodes: owned */
			struct sim_cond_run *run; /* ops: owned */
		} cond;
		struct sim_cond_init *condinit; /* owned */
		struct sim_sync_list {
			unsigned n;
			struct sim_sync_item {
				struct sim_sync *sync;
				uint64_t value;
			} * items;		   /* owned */
			CUexternalSemaphore *sems; /* owned, as given, or NULL */
			void *params;		   /* the same */
		} sync;
	};
};

int sim_work_clone(struct sim_work *dst, const struct sim_work *src);
void sim_work_clear(struct sim_work *w);
struct sim_op;
CUresult sim_work_run(struct sim_op *op);
bool sim_work_blocked(const struct sim_work *w); /* a wait whose value is not there yet */
const char *sim_work_name(const struct sim_work *w);
CUresult sim_kernel_run(struct sim_op *op, const struct sim_kernel_work *k);

/* ---- sched.c, clock.c ---- */

enum sim_engine {
	SIM_ENGINE_NONE,
	SIM_ENGINE_COMPUTE,
	SIM_ENGINE_H2D,
	SIM_ENGINE_D2H,
	SIM_ENGINES
};
enum sim_op_state { SIM_OP_QUEUED, SIM_OP_RUNNING, SIM_OP_DONE };

struct sim_op {
	struct sim_work work;
	CUcontext ctx;
	uint64_t seq, stream_id;
	enum sim_op_state state;
	unsigned refs, pending, mark;
	struct sim_op **preds, **succs;
	unsigned npreds, nsuccs;
	unsigned ready_at; /* position in the ready list + 1 */
	/* clock */
	enum sim_engine engine;
	unsigned untimed; /* predecessors whose end is not known, plus one until it has run */
	bool timed;
	int dev_id;
	uint64_t cost, ready_ns, start_ns, end_ns;
	struct sim_op *engine_next;
};

struct sim_op *sim_op_new(CUcontext ctx, uint64_t stream_id,
			  struct sim_work *work); /* takes work */
int sim_op_after(struct sim_op *op, struct sim_op *pred);
void sim_sched_enqueue(struct sim_op *op);
void sim_op_ref(struct sim_op *op);
void sim_op_unref(struct sim_op *op);
void sim_sched_kick(void);		    /* after enqueuing: run what the mode wants */
CUresult sim_sched_wait(struct sim_op *op); /* until done */
void sim_sched_poll(struct sim_op *op);	    /* a query is a step forward, too */
void sim_sched_force_time(struct sim_op *op);
void sim_sched_reset(enum sim_sched_mode mode, uint64_t seed);

enum sim_engine sim_clock_engine(const struct sim_work *w);
void sim_clock_enqueue(struct sim_op *op);
void sim_clock_after(struct sim_op *op, struct sim_op *pred);
void sim_clock_done(struct sim_op *op);
uint64_t sim_clock_copy_cost(const struct sim_work *w, uint64_t bytes);
uint64_t sim_clock_kernel_cost(const struct sim_counts *c);
uint64_t sim_clock_fill_cost(uint64_t bytes);
void sim_clock_host_saw(struct sim_op *op); /* the host waited for op: later ops start after it */
void sim_clock_host_takes(uint64_t ns);	    /* a call: what is submitted later starts later */
struct sim_op *sim_clock_host_op(void);	    /* submitted ops come after it, in time only */
uint64_t sim_clock_now(void);

/* watch.c */
void sim_watch_queued(const struct sim_op *op);
void sim_watch_timed(const struct sim_op *op);

/* ---- context.c, stream.c, event.c ---- */

struct CUctx_st {
	uint64_t id;
	int dev_id;
	unsigned flags, api_version;
	unsigned primary_refs, attached;
	bool is_primary, destroyed;
	CUresult sticky;
	uint64_t limits[16];
	CUstream legacy;
	CUstream streams;	  /* all, the legacy one and per-thread ones included */
	struct sim_op **detached; /* tails of destroyed streams */
	size_t ndetached;
	CUmodule modules;
	uint32_t peers; /* devices whose memory it may touch */
	struct sim_range *ranges;
	size_t nranges, cranges;
	uint64_t ranges_generation;
	CUarray arrays;
	CUmipmappedArray mipmaps;
	struct sim_object *objects; /* by ascending handle, like views */
	struct sim_view *views;
	size_t nobjects, cobjects;
	CUcontext next;
};

CUcontext sim_ctx_current(void);
CUcontext sim_ctx_primary(int dev); /* active primary context or NULL */
void sim_ctx_fail(CUcontext ctx, CUresult r);
CUresult sim_ctx_sync(CUcontext ctx);
void sim_ctx_sync_all(void);
CUresult sim_ctx_release(int dev);		   /* a reference to the primary context */
CUresult sim_ctx_default(int dev, CUcontext *ret); /* the primary context, created if need be */

#define SIM_STREAM_ATTRS 4
struct sim_capture;
struct CUstream_st {
	CUcontext ctx;
	uint64_t id;
	unsigned flags;
	int priority;
	bool is_legacy, is_ptds;
	struct sim_op *tail;
	struct sim_capture *cap;
	CUgraphNode *deps; /* capture: what the next node depends on */
	size_t ndeps;
	CUlaunchAttributeValue attr[SIM_STREAM_ATTRS];
	CUgreenCtx green; /* that it was made for, or NULL */
	CUstream next, cap_next;
};

/* The object behind a stream handle; 0, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD included. */
CUresult sim_stream_get(struct sim_call *call, CUstream h, CUstream *ret);
CUresult sim_stream_new(CUcontext ctx, unsigned flags, int priority, CUstream *ret);
void sim_stream_free(CUstream s);
uint64_t sim_stream_next_id(void);
CUresult sim_stream_join(CUstream s, struct sim_op *op); /* op after everything s orders it after */
void sim_stream_detach(CUcontext ctx, struct sim_op *tail); /* on no stream: the context waits */
void sim_stream_set_tail(CUstream s, struct sim_op *op);
/* Queue work on a stream, or record it if the stream is captured. Takes the work. */
CUresult sim_stream_submit(CUstream s, struct sim_work *w, struct sim_op **ret_op);
CUresult sim_stream_submit_wait(CUstream s, struct sim_work *w);
CUresult sim_stream_sync(CUstream s);
void sim_stream_forget_thread(CUcontext ctx);

struct CUevent_st {
	CUcontext ctx;
	unsigned flags;
	struct sim_op *op;     /* of the last record */
	struct sim_sync *sync; /* CU_EVENT_INTERPROCESS: the state shared with other processes */
	struct sim_capture *cap;
	CUgraphNode *deps;
	size_t ndeps;
};
CUresult sim_event_record(CUevent e, CUstream s);
CUresult sim_event_wait(CUstream s, CUevent e, unsigned flags);

/* ---- module.c, library.c, launch.c ---- */

struct CUmod_st {
	CUcontext ctx;
	CUlibrary lib;
	struct sim_module *engine;
	char *text;
	struct sim_alloc **vars;
	size_t nvars;
	CUfunction funcs;
	CUmodule next;
};

#define SIM_FUNC_ATTRS 16
struct CUfunc_st {
	CUmodule mod;
	const struct sim_kernel *k;
	int attr[SIM_FUNC_ATTRS];
	struct sim_old_launch *old; /* state of launchold.c, or NULL */
	CUkernel kern;
	CUfunction next;
};

struct CUlib_st {
	char *text;
	CUkernel kerns;
	struct sim_module *engine; /* to list kernels without a context */
	struct sim_lib_mod {
		CUcontext ctx;
		CUmodule mod;
	} * mods;
	size_t nmods;
	void **vars;
	size_t nvars;
};

struct CUkern_st {
	CUlibrary lib;
	const struct sim_kernel *k; /* of lib->engine: for names and layout, never run */
	int attr[SIM_FUNC_ATTRS];
	CUkernel next;
};

/* The PTX inside an image, as malloc'ed NUL-terminated text. */
CUresult sim_image_text(const void *image, char **ret_text);
CUresult sim_module_new(CUcontext ctx, char *text, char *err, size_t errlen, CUmodule *ret);
void sim_module_delete(CUmodule m);
void sim_library_drop(CUlibrary lib, CUmodule m);
CUresult sim_image_read(const char *name, char **ret);
CUresult sim_func_resolve(CUcontext ctx, CUfunction h, CUfunction *ret, CUkernel *ret_kern);
CUresult sim_func_attribute(const struct sim_kernel *k, const int *attr, CUfunction_attribute a,
			    int *ret);
CUresult sim_func_set(const struct sim_kernel *k, int *attr, CUfunction_attribute a, int value);
void sim_func_defaults(int *attr);

struct sim_launch_args {
	CUfunction f;
	unsigned grid[3], block[3], shared;
	void **params, **extra;
	bool cooperative;
};
CUresult sim_launch_prepare(CUcontext ctx, const struct sim_launch_args *a, struct sim_work *ret);
CUresult sim_copy_prepare(const CUDA_MEMCPY3D *p, struct sim_copy *ret);
CUresult sim_copy_submit(CUstream s, struct sim_copy *c, bool async);
/* A copy as parameters: pointers are unified addresses. */
void sim_copy_describe(const struct sim_copy *c, CUDA_MEMCPY3D *ret);
CUresult sim_fill_prepare(uint64_t dst, size_t pitch, unsigned elem, unsigned value, size_t width,
			  size_t height, struct sim_work *ret);
unsigned sim_occupancy_blocks(const struct sim_kernel *k, unsigned threads, size_t dynamic);

/* ---- graphs (the rest is in graph.h), capture.c ---- */

CUgraph sim_graph_new(void);
void sim_graph_free(CUgraph g);
void sim_userobj_release_all(CUgraph g);
int sim_userobj_copy(CUgraph dst, const struct CUgraph_st *src);
int sim_graph_clone(CUgraph src, CUgraph *ret);
/* Takes the work. */
CUresult sim_graph_add(CUgraph g, CUgraphNodeType type, struct sim_work *w, CUcontext ctx,
		       const CUgraphNode *deps, size_t ndeps, CUgraphNode *ret);
/* Does a come before b? */
bool sim_graph_precedes(CUgraphNode a, CUgraphNode b);

/* Stream memory operations as parameters: checked, and as works. */
CUresult sim_memop_check(const CUstreamBatchMemOpParams *ops, unsigned n);
struct sim_work sim_memop_work(const CUstreamBatchMemOpParams *op);
int sim_memop_batch(const CUstreamBatchMemOpParams *ops, unsigned n, struct sim_work *ret);

void sim_graphmem_ref(struct sim_graph_mem *m);
void sim_graphmem_unref(struct sim_graph_mem *m);
CUresult sim_graphmem_run(struct sim_op *op);
CUresult sim_graphmem_capture_alloc(CUstream s, size_t size, int dev, CUdeviceptr *ret);
CUresult sim_graphmem_capture_free(CUstream s, CUdeviceptr p);
/* Free memory of a graph outside of graphs: at once, after everything is done, or in stream order. */
CUresult sim_graphmem_free(struct sim_call *call, struct sim_graph_mem *m);
CUresult sim_graphmem_free_async(struct sim_graph_mem *m, CUstream s);

void sim_cond_work_clone(struct sim_cond_work *dst, const struct sim_cond_work *src);
void sim_cond_work_clear(struct sim_work *w);
CUresult sim_cond_run(struct sim_op *op);
int sim_cond_set(CUcontext ctx, uint64_t handle, unsigned value); /* by a kernel */

CUresult sim_capture_add(CUstream s, struct sim_work *w, CUgraphNodeType type);
CUgraph sim_capture_graph(CUstream s); /* of a captured stream */
CUresult
sim_capture_unsafe(void); /* an unsafe call: refused, and captures break, while one is open */
CUresult sim_capture_record(CUstream s, CUevent e);
CUresult sim_capture_wait(CUstream s, CUevent e);
bool sim_capture_blocks_legacy(CUcontext ctx);
CUresult sim_capture_break(CUstream s, CUresult r);
void sim_capture_drop_event(CUevent e);
void sim_capture_drop_stream(CUstream s);

#endif
