/* SPDX-License-Identifier: MIT */
/*
 * The engine: what the shim tells about each driver call, and what the engine does about it.
 *
 * It keeps the model (allocations, extents with versions, windows, pending segments) and, through
 * rs_devops, preserves, restores, digests and compares. docs: tracker/README.md.
 *
 * Protocol per device call: fill a struct rs_call, rs_engine_before, the real call,
 * rs_engine_after. `before` enqueues what must precede the call on its queue (waits, pre-images,
 * restores), `after` what must follow it (digests of products).
 *
 * Invariants: the engine never calls the driver with its lock held; it never blocks the host except
 * in rs_engine_finish; on its own failure it marks the segment and lets the call through.
 * Callers: shim, any thread; one struct rs_thread per program thread. No call is made
 * from inside a devops operation.
 */
#ifndef RS_TRACKER_ENGINE_H
#define RS_TRACKER_ENGINE_H

#include "tracker/costs.h"
#include "tracker/devops.h"
#include "tracker/plan.h"

struct rs_alloc;
struct rs_engine;
struct rs_records;

enum rs_mode {
	RS_MODE_OFF,	  /* no hook is handed out */
	RS_MODE_NOP,	  /* hooks forward at once */
	RS_MODE_AUDIT,	  /* observe: digests and records, no program byte is touched */
	RS_MODE_PRESERVE, /* also restore what replays need and undo what they did */
};

enum rs_captures {
	RS_CAPTURES_OFF,    /* what is captured is rejected */
	RS_CAPTURES_FOLLOW, /* by nodes of the tool's own in the program's graph */
	RS_CAPTURES_LEARN, /* rejected, but with config.profile it is summed up; the graph stays as it is */
};

struct rs_engine_config {
	enum rs_mode mode;
	uint64_t snapshot_max; /* bytes of preserved memory, 0: no limit but the device's */
	uint8_t verify;	       /* compare products and restores by digest */
	uint8_t profile;       /* sum up what segments do, for rs_engine_learned */
	uint8_t order;	       /* the caller tells what orders its streams */
	uint8_t costs;	       /* measure times and memory, for rs_engine_costs */
	uint8_t capture;       /* enum rs_captures: inside of stream captures, capture.h */
	uint8_t buffers; /* a write counts as one to all of its allocation, where that is claimed */
	uint32_t
		sample; /* digest one in so many claims, to notice writers that nobody saw; 0: none */
	/*
	 * Where in the program the calling thread is: a number from 1 to 65535 that findings and records give as "stack";
	 * 0: not known. NULL: nobody asks. Called without a lock, from within rs_engine_before and the like. `told`, with
	 * the engine's lock held, comes before the line that gives the number.
	 */
	uint32_t (*where)(void);
	void (*where_told)(uint32_t where);
};

/* records may be NULL (nothing is written). Returns NULL without memory. */
struct rs_engine *rs_engine_create(const struct rs_engine_config *config,
				   const struct rs_devops *ops, struct rs_records *records);
/* Wait for outstanding digests (host blocks), write their records. Safe to call repeatedly. */
void rs_engine_finish(struct rs_engine *e);
/* At the end of the run: what is to be said of forwards that nobody has replayed. */
void rs_engine_end(struct rs_engine *e);
/* At the end of the run, with config.profile: the "segment" and "state" lines that contracts are learned from. */
void rs_engine_learned(struct rs_engine *e);
void rs_engine_destroy(struct rs_engine *e); /* tests only: the shim never unloads */

/* A program thread: its stack of open ranges. Created at the thread's first marker or call. */
struct rs_thread;
struct rs_thread *rs_thread_create(struct rs_engine *e);
void rs_thread_destroy(struct rs_thread *t); /* open windows are closed as aborted */

/* --- memory --------------------------------------------------------------------------------- */

enum rs_alloc_kind {
	RS_ALLOC_DEVICE,
	RS_ALLOC_MANAGED,  /* the host may change it at any time, unseen */
	RS_ALLOC_HOST,	   /* pinned or registered: likewise */
	RS_ALLOC_GLOBAL,   /* a module's variables */
	RS_ALLOC_EXTERNAL, /* imported or exported: other processes and devices change it, unseen */
	RS_ALLOC_ARRAY,	   /* opaque layout: always accessed and preserved as a whole, see below */
};

/*
 * An array has no address. The shim gives each a made-up range in [RS_ARRAY_BASE, 2 * RS_ARRAY_BASE), where no
 * memory can be, and its device operations know what is meant.
 */
#define RS_ARRAY_BASE (1ull << 56)

/* After a successful allocation / before the real free. `q` orders stream-ordered frees. */
void rs_engine_alloc(struct rs_engine *e, struct rs_thread *t, struct rs_queue q, uint64_t addr,
		     uint64_t bytes, enum rs_alloc_kind kind);
void rs_engine_free(struct rs_engine *e, struct rs_thread *t, struct rs_queue q, uint64_t addr);
/*
 * The same for a driver that may refuse: what `begin` returns, before the real free, goes into `end` after it
 * (NULL: nothing of the engine's). In between nobody finds the memory; if the free was refused, it is what it was.
 */
struct rs_alloc *rs_engine_free_begin(struct rs_engine *e, struct rs_thread *t, struct rs_queue q,
				      uint64_t addr);
void rs_engine_free_end(struct rs_engine *e, struct rs_alloc *a, int ok);
/* Before a context is destroyed (the host waits for the records of replays in it); it is gone: all in it is dropped. */
void rs_engine_ctx_leaves(struct rs_engine *e, uint64_t ctx);
void rs_engine_ctx_destroy(struct rs_engine *e, uint64_t ctx);
/* Before a stream goes; the driver has refused to destroy it. */
void rs_engine_queue_destroy(struct rs_engine *e, struct rs_queue q);
void rs_engine_queue_stays(struct rs_engine *e, struct rs_queue q);
/*
 * The program's allocation failed for lack of memory: give cached snapshot memory back to the
 * driver. Returns the bytes released; 0: trying again is pointless.
 */
uint64_t rs_engine_trim(struct rs_engine *e);

/*
 * Largest range around addr that the engine knows: *ret_base, *ret_bytes, and what it is (for rs_access.memory), or
 * NULL. For mapped memory that is its whole reservation, for a pointer into one mapping may be used to reach
 * the next. Lock-free.
 */
const void *rs_engine_lookup(struct rs_engine *e, uint64_t addr, uint64_t *ret_base,
			     uint64_t *ret_bytes);
/* The same, of addresses that the thread's calls come back to. generation: rs_engine_generation, before. */
const void *rs_engine_lookup_lately(struct rs_engine *e, struct rs_thread *t, uint64_t generation,
				    uint64_t addr, uint64_t *ret_base, uint64_t *ret_bytes);

/*
 * The memory at addr has been made accessible to others (exported, shared between processes): from now on
 * it may change unseen. An allocation that nobody knows is ignored.
 */
void rs_engine_share(struct rs_engine *e, uint64_t addr);
void rs_engine_share_handle(struct rs_engine *e, uint64_t handle); /* of a backing */
/* Kernels may reach the memory of other contexts from now on: an unknown writer then may write there, too. */
void rs_engine_peer_access(struct rs_engine *e);

/* --- memory behind several addresses ---------------------------------------------------------- */

/*
 * A backing is memory without an address of its own (a handle of cuMemCreate or cuMulticastCreate). It is
 * reached where it is mapped; mappings of one backing are aliases: a write through one is a write to all,
 * and what is known of the bytes survives remapping. Its memory is alive as long as it is mapped or its
 * handle is held. handle: the driver's value; unknown handles are -ENOENT, which marks nothing: memory
 * mapped from one is untracked.
 */
int rs_engine_backing(struct rs_engine *e, uint64_t handle, uint64_t bytes,
		      enum rs_alloc_kind kind);
/* The driver gave out `handle` (known or new) once more, for the memory mapped at addr. */
int rs_engine_backing_retain(struct rs_engine *e, uint64_t handle, uint64_t addr);
/* One release for each backing or retain. */
void rs_engine_backing_release(struct rs_engine *e, uint64_t handle);

int rs_engine_reserve(struct rs_engine *e, uint64_t addr, uint64_t bytes);
void rs_engine_unreserve(struct rs_engine *e, uint64_t addr);
int rs_engine_map(struct rs_engine *e, uint64_t addr, uint64_t bytes, uint64_t handle,
		  uint64_t offset);
/* Every mapping inside of [addr, addr + bytes). Before the real call. */
void rs_engine_unmap(struct rs_engine *e, uint64_t addr, uint64_t bytes);

/*
 * Around calls of the program that change or ask what is mapped, or that make it known to others: until go_on nothing is
 * mapped in the place of the program's memory (RS_RESTORE_REMAP), and what overlaps [addr, addr + bytes), or what the handle
 * stands for, is as the program left it. The host may wait for the device. fix: it stays like that for good.
 */
void rs_engine_remap_pause(struct rs_engine *e, uint64_t addr, uint64_t bytes);
void rs_engine_remap_pause_handle(struct rs_engine *e, uint64_t handle, int fix);
void rs_engine_remap_go_on(struct rs_engine *e);

/*
 * Memory bound to a multicast object: an access through a mapping of `multicast` is one to all that is
 * bound there. mem: a backing's handle; 0: the memory at address `offset`.
 */
int rs_engine_multicast_bind(struct rs_engine *e, uint64_t multicast, uint64_t at, uint64_t mem,
			     uint64_t offset, uint64_t bytes);
void rs_engine_multicast_unbind(struct rs_engine *e, uint64_t multicast, uint64_t at,
				uint64_t bytes);

/* --- order ------------------------------------------------------------------------------------ */

/*
 * What orders the program's streams: from these the engine knows whether a reader comes after a writer
 * (RS031). All are told after the real call succeeded. With config.order they must be complete: an event that is
 * waited for without having been recorded counts as one after everything, but an order that is never told is a race.
 * event: any identity that is recorded and waited for: a CUevent, or the address of a stream memory operation.
 */
void rs_engine_queue_create(struct rs_engine *e, struct rs_thread *t, struct rs_queue q,
			    int blocking); /* ordered with the legacy stream */
void rs_engine_event_record(struct rs_engine *e, struct rs_thread *t, struct rs_queue q,
			    uint64_t event);
void rs_engine_event_wait(struct rs_engine *e, struct rs_thread *t, struct rs_queue q,
			  uint64_t event);
void rs_engine_event_destroy(struct rs_engine *e, uint64_t event);
/* A stream memory operation on q writes a value there: an event of that address, too. */
void rs_engine_value_written(struct rs_engine *e, struct rs_thread *t, struct rs_queue q,
			     uint64_t addr, uint64_t value);
/* In the driver's order. */
enum rs_value_wait { RS_VALUE_GEQ, RS_VALUE_EQ, RS_VALUE_AND, RS_VALUE_NOR };
/* Has a write that ends such a wait already been enqueued, where nothing holds it up? 1: yes; 0: nobody knows. */
int rs_engine_value_comes(struct rs_engine *e, uint64_t addr, uint64_t value,
			  enum rs_value_wait how, unsigned bytes);

/*
 * What is enqueued on q from now on waits for something that no event tells: a value in memory, another process.
 * Told before the real call. The engine never lets another queue wait for what comes after it, because that may be
 * what ends the waiting: replays that would need it are rejected, until the host has waited for the queue.
 */
void rs_engine_queue_stalls(struct rs_engine *e, struct rs_thread *t, struct rs_queue q);
/* The host has waited for all queues of a context, or (not NULL) for one of them. */
void rs_engine_queues_go_on(struct rs_engine *e, uint64_t ctx, const struct rs_queue *q);
/*
 * The same beside other threads: what they have put there since the wait began was not waited for. `met` is what
 * rs_engine_stalls() said before it; if that has changed nothing goes on, until the next wait.
 */
uint64_t rs_engine_stalls(struct rs_engine *e);
void rs_engine_queues_go_on_since(struct rs_engine *e, uint64_t ctx, const struct rs_queue *q,
				  uint64_t met);
/* The host has seen the end of the queue's work; of what the event marks; of all the context's work. */
void rs_engine_synced_queue(struct rs_engine *e, struct rs_thread *t, struct rs_queue q);
void rs_engine_synced_event(struct rs_engine *e, uint64_t event);
void rs_engine_synced_ctx(struct rs_engine *e, uint64_t ctx);

/* --- calls ---------------------------------------------------------------------------------- */

enum rs_dir { RS_READ = 1, RS_WRITE = 2 };

/* How an access is known, strongest first. */
enum rs_how {
	RS_HOW_EXACT,	  /* the call's own ranges */
	RS_HOW_PTX,	  /* proved from the kernel's PTX */
	RS_HOW_DECLARED,  /* by the program or a framework hook */
	RS_HOW_REACHABLE, /* a pointer-looking word of the arguments */
	RS_HOW_UNKNOWN,	  /* everything the call may reach */
};

struct rs_access {
	uint64_t addr;	/* whole: any address inside the allocation */
	uint64_t bytes; /* whole: ignored */
	/* rs_engine_lookup's answer for addr, of the call's generation; NULL: the engine looks it up */
	const void *memory;
	uint8_t dir; /* RS_READ | RS_WRITE */
	uint8_t how;
	uint8_t whole; /* no bounds known: all of the allocation, or sub-allocation, around addr */
	uint8_t dense; /* writes: every byte of the range is certainly written */
	uint16_t
		slot; /* which argument: parameter byte offset / 8; copies: 0 destination, 1 source */
	/*
	 * Writes, at rs_engine_after: not 0 when parts of the range have been written again by later calls of the
	 * same launch; it says by which ones. What is there then is not what this call has left.
	 */
	uint16_t late;
};

enum rs_call_kind { RS_CALL_COPY, RS_CALL_FILL, RS_CALL_KERNEL, RS_CALL_HOST, RS_CALL_OTHER };

struct rs_call {
	const char *name; /* kernel or entry point; must live as long as the engine */
	uint64_t
		ident; /* identity of code and shape: function, grid, block; equal calls are equal */
	enum rs_call_kind kind;
	struct rs_queue q;
	const struct rs_access *access;
	uint64_t generation; /* rs_engine_generation before the accesses were looked up */
	unsigned naccess;
	const void *args; /* a kernel's parameters, until the call is over; NULL: not known */
	uint32_t arg_bytes;
	uint8_t everything;  /* may read and write any allocation (unknown writer) */
	uint8_t host_effect; /* copies to host memory or runs host code */
	uint8_t untracked;   /* dereferences an address outside of every known allocation */
	uint8_t capturing;   /* the stream is being captured: nothing runs now */
	uint8_t deferred;    /* made some time ago, by what was sub-allocated then */
	uint8_t synchronous; /* the host returns after its end (after stream q's end) */
	uint64_t calm;	     /* set by rs_engine_before, see rs_engine_moment; callers clear it */
	uint64_t capture; /* `capturing`: its number (devops.capture_of); 0: the device is asked */
	uint64_t private_[3]; /* the engine's, from before to after */
};

/* What callers look at inline: the head of every struct rs_engine, a cache line of its own, and of rs_thread. */
struct rs_front {
	uint64_t moment;	 /* atomic, never 0, only grows */
	uint64_t interested;	 /* atomic: pending segments and process-wide windows */
	uint64_t fence_queues;	 /* atomic: queues that hold a fence of some allocation */
	uint64_t map_generation; /* atomic: changes whenever an address may mean other memory */
};
struct rs_thread_front {
	const void *top; /* innermost open range; the thread's own */
};

static inline const struct rs_front *rs_engine_front(const struct rs_engine *e)
{
	return (const struct rs_front *)e;
}

/* Changes whenever an address may have got, or lost, or changed its memory: a cached lookup is then void. */
static inline uint64_t rs_engine_generation(const struct rs_engine *e)
{
	return __atomic_load_n(&rs_engine_front(e)->map_generation, __ATOMIC_ACQUIRE);
}

/*
 * Nobody has a use for a call on q: no window is open, no forward pending, nothing of the shim's own has to
 * come first. Then a call need not be described: before and after would do nothing. Lock-free.
 */
int rs_engine_idle_slow(struct rs_engine *e, const struct rs_thread *t, struct rs_queue q);

static inline int rs_engine_idle(struct rs_engine *e, const struct rs_thread *t, struct rs_queue q)
{
	const struct rs_front *f = rs_engine_front(e);

	if (__atomic_load_n(&f->interested, __ATOMIC_RELAXED))
		return 0;
	if (!__atomic_load_n(&f->fence_queues, __ATOMIC_RELAXED) &&
	    !((const struct rs_thread_front *)t)->top)
		return 1;
	return rs_engine_idle_slow(e, t, q);
}

/*
 * The moment: a number that changes with everything that decides whether a call outside of windows needs anything.
 * rs_engine_before sets rs_call.calm to the moment at which it found that the call needs nothing, and that all that is to
 * be remembered of it is remembered already. As long as that is still the moment, another call of the same thread on the same
 * queue, which reads no other and writes no other allocations, and is neither `capturing` nor `everything`
 * nor `synchronous`, need not be described: before and after would do nothing. 0: not so.
 */
static inline uint64_t rs_engine_moment(const struct rs_engine *e)
{
	return __atomic_load_n(&rs_engine_front(e)->moment, __ATOMIC_RELAXED);
}

/*
 * For an equal call at another moment: what rs_engine_before would do if the call needs no more than to be remembered, from
 * its accesses alone. The new moment, or 0: nothing is done, describe it. Not for what is `capturing`, `everything` or
 * `synchronous`. Of an access only addr, memory and dir matter; generation: of the look-ups.
 */
uint64_t rs_engine_again(struct rs_engine *e, struct rs_thread *t, struct rs_queue q,
			 const struct rs_access *x, unsigned n, uint64_t generation);
/*
 * The same for a call that may read and write all memory that any of n words of 8 bytes points into, and none other. No
 * device address is less than RS_ADDR_LEAST.
 */
#define RS_ADDR_LEAST 4096u
uint64_t rs_engine_again_words(struct rs_engine *e, struct rs_thread *t, struct rs_queue q,
			       const void *words, unsigned n);
/* The same, where the words lie apart. One that is not there (NULL): 0. */
uint64_t rs_engine_again_scattered(struct rs_engine *e, struct rs_thread *t, struct rs_queue q,
				   void *const *words, unsigned n);

/*
 * The same for a call that reaches bytes from each of n addresses, in the memory around the address or, where that has none of
 * them, around the first of them. Where it is not certain which memory that is the answer is 0, too. block: where the addresses
 * are; from one that is NULL nothing is reached.
 */
struct rs_reach {
	int64_t lo, hi; /* from the address */
	uint32_t at;	/* offset of the address in the block */
	uint32_t dir;	/* RS_READ | RS_WRITE */
};
uint64_t rs_engine_again_reach(struct rs_engine *e, struct rs_thread *t, struct rs_queue q,
			       const void *block, const struct rs_reach *r, unsigned n);
/* The same for a call that writes at dst and reads at src, if that is not 0. */
uint64_t rs_engine_again_copy(struct rs_engine *e, struct rs_thread *t, struct rs_queue q,
			      uint64_t dst, uint64_t src);

/*
 * Both keep errno. A launch of many kernels and copies at once (a graph): before for each in an order that the graph allows,
 * the real call, after for each, in the same order. A write that is over before the launch is (a later call
 * writes the same bytes, or frees them) is then none (dir).
 */
void rs_engine_before(struct rs_engine *e, struct rs_thread *t, struct rs_call *call);
void rs_engine_after(struct rs_engine *e, struct rs_thread *t, struct rs_call *call, int ok);
/* The program has synchronised with the device: a good moment to finish records (never blocks). */
void rs_engine_poll(struct rs_engine *e);

/* --- random generators of libraries ---------------------------------------------------------- */

/*
 * A draw from a generator whose state the engine cannot read (cuRAND host API). It is a call like any
 * other (its output ranges are dense writes), made between rs_engine_before and rs_engine_after; on top,
 * after rs_engine_before:
 *
 *   rs_engine_draw returns 1: a replay is served the bytes that its forward drew; they are enqueued,
 *     the library must not be called, the generator stays where it is (P2). `position` is not advanced.
 *   rs_engine_draw returns 0: call the library, advance the position, then rs_engine_drawn.
 *
 * generator: identity, never reused. position: draws so far in any unit that tells equal from different.
 * Serving works for every generator type and ordering; it costs the output's bytes per pending forward
 * (preserve mode only). In audit a replay that draws from another position is a finding (RS002).
 */
int rs_engine_draw(struct rs_engine *e, struct rs_thread *t, const struct rs_call *call,
		   uint64_t generator, uint64_t position);
void rs_engine_drawn(struct rs_engine *e, struct rs_thread *t, const struct rs_call *call,
		     uint64_t generator, uint64_t position);

/* --- markers -------------------------------------------------------------------------------- */

/*
 * Text grammar (design section 6):
 *   step:<n>  forward:<name>[#<invocation>]  replay:<name>[#<invocation>]
 * Any other text is an ordinary range: it is only kept for pairing.
 */
void rs_engine_push(struct rs_engine *e, struct rs_thread *t, const char *text);
/* Ends the range that `above` others were pushed after. forget: if it is a forward, it was none, and no replay will come. */
void rs_engine_pop_at(struct rs_engine *e, struct rs_thread *t, unsigned above, int forget);
static inline void rs_engine_pop(struct rs_engine *e, struct rs_thread *t)
{
	rs_engine_pop_at(e, t, 0, 0);
}
void rs_engine_mark(struct rs_engine *e, struct rs_thread *t, const char *text);
/* Process-wide ranges; the id pairs them. */
uint64_t rs_engine_range_start(struct rs_engine *e, struct rs_thread *t, const char *text);
void rs_engine_range_end(struct rs_engine *e, struct rs_thread *t, uint64_t id);

/*
 * Name [addr, addr + bytes): "state:<name>" persistent state, "output:<name>" a declared product,
 * a bare name is state. A range outside of known allocations is refused (-ENOENT).
 */
int rs_engine_region(struct rs_engine *e, uint64_t addr, uint64_t bytes, const char *name);
void rs_engine_region_drop(struct rs_engine *e, uint64_t addr, uint64_t bytes);

/*
 * An allocator of the program's own gives [addr, addr + bytes) out, of one allocation or reservation, and takes back what
 * begins at addr: suballoc.c. What was given out of these bytes before is taken back by that. Any thread. 0; -EINVAL: no bytes;
 * -ENOENT: no such memory, or nothing that begins there; -ENOMEM.
 */
int rs_engine_suballoc(struct rs_engine *e, uint64_t addr, uint64_t bytes);
int rs_engine_subfree(struct rs_engine *e, uint64_t addr);

/* --- contracts and plans --------------------------------------------------------------------- */

/* How a segment's state is preserved (preserve mode). */
enum rs_option {
	RS_OPTION_UNDO, /* the bytes before a write, when it comes */
	RS_OPTION_FREE, /* nothing is expected to be overwritten; if it is, the contract is broken */
	RS_OPTION_WHOLE,   /* all that the forward reads, when it reads it */
	RS_OPTION_REGIONS, /* of that, where the contract expects writes; the rest as UNDO */
	RS_OPTION_PAGES,   /* as UNDO, thinned out to the pages that a write has really changed */
	RS_OPTION_RETAIN,  /* the program keeps the activations; as UNDO if it replays after all */
	RS_OPTIONS
};

/* How a replay is shown the preserved bytes. */
enum rs_restore {
	RS_RESTORE_COPY, /* the present bytes are saved, the preserved ones copied over them */
	RS_RESTORE_SWAP, /* they change places: no memory for the present ones */
	/* What is mapped changes places, where the bytes are a whole mapping; else by copy. The host waits for the device. */
	RS_RESTORE_REMAP,
	RS_RESTORES
};

struct rs_policy {
	uint8_t option, restore;
};

enum rs_role { RS_ROLE_STATE, RS_ROLE_PRODUCT };

/*
 * What a contract says of some memory. Memory is found again in another run by its name, or as what the n-th
 * call of a forward reaches through an argument; addresses and allocations differ from run to run.
 */
struct rs_term {
	const char *region; /* a name; NULL: by call, slot and piece as in a "state" line */
	uint32_t call;
	uint16_t slot, piece;
	uint64_t off, len; /* in the region, or from the first byte that the call reaches there */
	uint8_t role;	   /* enum rs_role */
	uint8_t window;	   /* not a role: writes are expected there */
};

/*
 * Two places that share memory older than the forward: arguments of its calls, found as a term's spot is. The engine learns
 * them with config.profile ("alias" lines).
 */
struct rs_alias {
	uint32_t call, other_call;
	uint16_t slot, piece, other_slot, other_piece;
	uint8_t always; /* in every forward: one without it contradicts the contract (RS084) */
};

/* All before the segments run. segment NULL: those without a policy of their own. -EINVAL, -ENOMEM. */
int rs_engine_policy(struct rs_engine *e, const char *segment, struct rs_policy policy);
int rs_engine_term(struct rs_engine *e, const char *segment, const struct rs_term *term);
int rs_engine_alias(struct rs_engine *e, const char *segment, const struct rs_alias *alias);
/* Places of the segment of which no alias is given share nothing: where they do, that is RS084. */
int rs_engine_expect_no_other_alias(struct rs_engine *e, const char *segment);
/* A forward of the segment makes one of these call sequences, as its "calls" in a segment line says. */
int rs_engine_expect_calls(struct rs_engine *e, const char *segment, uint64_t calls);
/* Most replays of a forward: after that many nothing is preserved for it, and one more is a rejection. 0: any number. */
int rs_engine_expect_replays(struct rs_engine *e, const char *segment, uint32_t replays);
/* No other segments than those that something has been said of are expected: theirs are other calls (RS081). */
int rs_engine_expect_none(struct rs_engine *e);

/* --- costs and plans -------------------------------------------------------------------------- */

/* What was measured so far, called in turn without a lock held. Best right after a step marker. */
struct rs_cost_visitor {
	void *arg;
	void (*segment)(void *arg, const struct rs_cost *cost); /* in forward order */
	void (*share)(void *arg, const struct rs_cost_share *share);
	void (*rate)(void *arg, const struct rs_cost_rate *rate);
	void (*usage)(void *arg, const struct rs_cost_usage *usage);
};
/* 0 or -ENOMEM. Any of the functions may be NULL. Host only: never calls the driver. */
int rs_engine_costs(struct rs_engine *e, const struct rs_cost_visitor *visitor);
/*
 * Busy time of a window, as somebody else has measured it (CUPTI). window: rs_engine_window() while it was the thread's
 * innermost segment window, a number that is not given again; 0: there is none. Told at any time later.
 */
uint64_t rs_engine_window(const struct rs_thread *t);
void rs_engine_cost_busy(struct rs_engine *e, uint64_t window, uint64_t ns);
/* At the end of the run: the same as lines of events.jsonl. */
void rs_engine_costs_write(struct rs_engine *e);

/*
 * Obey a plan: from the next step marker whose number is at least head->from_step. Then the arena is reserved in
 * context q.ctx; a plan that cannot be obeyed is refused, and the one before it stays in force. Entries are copied. Any
 * thread. NULL, or generation 0: preserve as without a plan from the next step on. 0, -EINVAL (malformed), -ENOMEM.
 */
int rs_engine_plan(struct rs_engine *e, struct rs_queue q, const struct rs_plan_head *head,
		   const struct rs_plan_entry *entries);
void rs_engine_plan_status(struct rs_engine *e, struct rs_plan_status *ret);
/*
 * The program asks, before its forward or inside of it, whether to keep this invocation's activations: 1 yes, 0 it will replay.
 * invocation -1: the innermost open forward of that name, or the next one. Whoever was told 1 and replays all the same gets
 * a rejection: nothing was preserved.
 */
int rs_engine_retain(struct rs_engine *e, struct rs_thread *t, const char *segment,
		     int64_t invocation);

/* --- numbers -------------------------------------------------------------------------------- */

struct rs_engine_stats {
	uint64_t steps, forwards, replays;
	uint64_t outcome[3]; /* match, rejection, divergence */
	uint64_t calls, unknown_writers, untracked;
	uint64_t live_allocs, live_bytes;
	uint64_t snapshots, snapshot_bytes, snapshot_bytes_peak, restored_bytes;
	uint64_t
		thinned_bytes; /* preserved at first, and given back because they had not changed */
	uint64_t remaps,
		remap_failures;	   /* shown by remapping; planned so, and done in another way */
	uint64_t arena_bytes_peak; /* device memory taken from the driver for preserved state */
	uint64_t digests, digest_bytes;
	/*
	 * Precision. Of followed writes: bytes possibly and certainly written. Of state that was possibly overwritten
	 * before a replay: bytes compared, bytes in chunks that differed. Bytes sampled for writers that nobody saw.
	 */
	uint64_t possible_bytes, proven_bytes, compared_bytes, changed_bytes, sampled_bytes;
	uint64_t internal_errors;
};
void rs_engine_stats(struct rs_engine *e, struct rs_engine_stats *ret);

#endif
