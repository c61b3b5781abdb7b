/* SPDX-License-Identifier: MIT */
/*
 * The engine's inside: the nouns of design section 2 as structs. Included by the engine's own files
 * only (engine.c, alias.c, window.c, access.c, locate.c, pairing.c, order.c, preserve.c, restore.c, arena.c, compare.c,
 * generator.c, oplist.c, memory.c, remap.c, frame.c).
 *
 * Life of a persistent byte in a pending segment:
 *   F reads it first      -> a claim (allocation, range, version): "R must see this version"
 *   somebody overwrites it -> before the write, a keep (that piece, that version): its bytes
 *                            (preserve) or their digest (audit), and who overwrote it
 *   R reads it            -> live version equals the claim's: nothing to do; else the keep is
 *                            compared (audit), or the live piece is kept as P2 and the keep copied in
 *                            (preserve); the live version is then the claimed one again
 *   R writes it           -> the live piece is kept as P2 first
 *   R ends                -> held pieces go back (preserve) or are compared (audit); version P2
 * Versions name contents: a version number is given once and never to other bytes, so one keep serves
 * every segment that needs that version, and restoring is setting the version back.
 *
 * Locks: everything below is under engine.lock unless said otherwise. The lock is a leaf but for
 * words_lock and block_lock; it is never held across a devops operation.
 */
#ifndef RS_TRACKER_MODEL_H
#define RS_TRACKER_MODEL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tracker/addrmap.h"
#include "tracker/arena.h"
#include "tracker/digest.h"
#include "tracker/engine.h"
#include "tracker/extent.h"
#include "tracker/findings.h"
#include "tracker/hash.h"
#include "tracker/log.h"
#include "tracker/places.h"
#include "tracker/oplist.h"
#include "tracker/records.h"
#include "tracker/remap.h"
#include "tracker/vec.h"
#include "tracker/where.h"

static inline uint64_t rs_min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t rs_max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Digest results: host words that the device fills in. Reference counted under engine.lock. */
struct rs_words {
	uint64_t *w;
	uint32_t n;
	uint32_t refs;
	uint8_t failed;		      /* never filled */
	uint8_t cls;		      /* size class in the pool, see memory.c */
	uint64_t users;		      /* queue bits whose enqueued work may still write it */
	uint64_t ctx;		      /* whose memory it is */
	struct rs_words *next, *prev; /* of the list of those in use, or of free ones */
};

/* Per queue, how many of its calls are known to come first; see order.c. */
#define RS_CLOCKS 63u
struct rs_clock {
	uint64_t t[RS_CLOCKS];
};

/* A stream as a point of order. Its id is given out again only when all its work has ended (engine.c). */
struct rs_qstate {
	struct rs_queue q;
	uint64_t final_event; /* recorded when the stream was destroyed, 0: alive */
	uint8_t dead;
	uint8_t idle;	      /* dead, and all its work has ended: the id may be given out again */
	uint8_t free_running; /* created as not ordered with the legacy stream */
	struct rs_clock *clock;
	uint64_t safe_event; /* stalling: after what was enqueued before the stall */
};
#define RS_QBIT(id) (1ull << ((id) < 63 ? (id) : 63))

enum rs_keep_state { RS_KEEP_PLANNED, RS_KEEP_READY, RS_KEEP_FAILED };

struct rs_keep {
	uint64_t off, len, ver;
	struct rs_block *block; /* preserve: the bytes ... */
	uint64_t addr;		/* ... in it, as far from a multiple of 16 as they are themselves */
	struct rs_words *digest; /* of the bytes, when the mode or `verify` wants them */
	uint64_t other_ver;	 /* swapped: the version whose bytes were here, and will be again */
	struct rs_words *other_digest;
	uint8_t state;
	uint8_t replaced; /* its parts live on in keeps of their own: thin.c */
	uint8_t eager;	  /* taken before a write: the live bytes may still be the same */
	uint8_t framed;	  /* its bytes are to lie, or lie, in a frame */
	uint8_t remapped; /* swapped, by what is mapped if that could be done */
	uint32_t holds;	  /* open replays that must put it back or compare with it */
	uint32_t pins;	  /* operations in flight between planning and enqueueing */
	struct rs_writer killer;
};

struct rs_region {
	uint64_t off, len;
	const char *name; /* interned, prefix removed */
	uint8_t product;  /* output:<name> */
};

/* Part of a multicast object: bytes [at, at + len) of it are those of alloc at off. */
struct rs_bind {
	uint64_t at, len, off;
	struct rs_alloc *alloc;
};

/*
 * Memory with one life: what an allocating call made, or a backing (alias.c), which has no base and is
 * reached through its mappings. Never returned to the C library before the engine goes: readers without the
 * lock may look at one that has just been freed.
 */
struct rs_alloc {
	/* what calm.c and steady.c look at: two cache lines */
	uint32_t claimed; /* atomic: engine.claim_epoch when a segment claimed some of it last */
	uint32_t fence;	  /* id + 1 of the queue of the shim's own last operation on live bytes */
	uint64_t loose;	  /* atomic: its last write that was followed without the lock; a version */
	uint64_t touched; /* atomic: queues with accesses since the last reordering */
	uint64_t base, size;
	struct rs_touch *touch; /* the one that was looked for last, see rs_touch_of; or NULL */
	struct rs_extmap ext;	/* its one extent begins the second line */
	uint64_t serial;

	uint64_t fence_ordered; /* queues already ordered after the fence */
	uint32_t planned;	/* atomic: operations on it that may not be enqueued yet: views.c */
	uint32_t under_way;	/* calls on it that may not have been made yet: views.c */
	uint64_t ctx;		/* 0: of no context in particular */
	uint64_t birth;		/* engine.clock at allocation */
	uint8_t kind;
	uint8_t dead;
	uint8_t shared;	   /* others may change it, unseen */
	uint8_t multicast; /* no memory of its own: see binds */
	uint8_t fixed;	   /* others know it by more than its address: never remapped */
	uint8_t promised;  /* there are no bytes yet: a graph's, capture_memory.c */
	uint32_t handles;  /* backing: held by the program */
	uint32_t refs;	   /* the map, mappings, claims, holds, checks */
	struct rs_mapping *mappings;
	RS_VEC(struct rs_bind) binds;
	uint64_t met;  /* number of the last call that may do anything */
	uint64_t vain; /* of the last one that has waited for it in vain: views.c */
	RS_VEC(struct rs_keep *) keeps;	  /* sorted by offset */
	uint64_t longest_keep;		  /* that it has had */
	RS_VEC(struct rs_region) regions; /* sorted, disjoint */
	struct rs_remap *remap;		  /* NULL: it never was */
	struct rs_alloc *next;		  /* of the free list */
} __attribute__((aligned(64)));

/* Host-visible memory changes without a call: its version proves nothing. */
static inline int rs_alloc_is_volatile(const struct rs_alloc *a)
{
	return a->kind == RS_ALLOC_MANAGED || a->kind == RS_ALLOC_HOST ||
	       a->kind == RS_ALLOC_EXTERNAL || a->shared;
}

/*
 * An address range that shows bytes of a backing. A value of the address map is either an rs_alloc or one
 * of these, tagged. Never returned to the C library: rs_engine_lookup reads without the lock.
 */
struct rs_mapping {
	uint64_t base, bytes;
	uint64_t res_base, res_bytes; /* atomic: the reservation that it lies in */
	uint64_t off;		      /* in the backing */
	struct rs_alloc *alloc;
	struct rs_mapping *next; /* of the backing; of the free list */
};

static inline struct rs_mapping *rs_mapping_of(void *value)
{
	return (uintptr_t)value & 1 ? (struct rs_mapping *)((uintptr_t)value - 1) : NULL;
}

/* The bytes of an access. */
struct rs_range {
	struct rs_alloc *a;
	uint64_t off, len;
	uint32_t access; /* which one it belongs to */
	uint16_t piece;	 /* n-th range of that access */
	uint8_t cls;	 /* of its first byte, in the window that was there last (enum rs_class) */
	struct rs_ext *ext; /* steady.c: its first extent */
	uint64_t given;	    /* when the program's own allocator gave all of it out; 0: not known */
};

/* A range as contracts see it: what the window's n-th call reaches through an argument. */
struct rs_spot {
	const struct rs_range *range;
	uint32_t call; /* UINT32_MAX: no call of the forward */
	uint16_t slot;
};

/* What a window knows of a byte range it touched; decided at first access (design section 6). */
enum rs_class {
	RS_CLASS_NONE,
	RS_CLASS_STATE,	    /* declared, or read first */
	RS_CLASS_PRODUCT,   /* declared, allocated inside, or certainly written first */
	RS_CLASS_MAYBE,	    /* write-only so far, but coverage is not proved */
	RS_CLASS_AMBIGUOUS, /* MAYBE and then read, or an access nobody can vouch for */
};

struct rs_span {
	uint64_t off, len;
	uint8_t cls;
	uint8_t loose; /* state, because it was read; but by nobody of whom is known how far: loose.c */
	uint32_t place; /* forward: the access that touched it first, as its index in `accesses` */
};

struct rs_claim {
	uint64_t off, len, ver;
	uint8_t cls;
	uint32_t q; /* of the last reader of all of it, and that one's tick there */
	uint64_t tick;
	struct rs_readers *others;	/* whom that one does not stand for: readers.c */
	struct rs_words *sample;	/* their digest at that moment, of some claims */
	struct rs_profile_range *range; /* NULL: none is kept */
	uint64_t range_at;		/* where in the allocation it begins */
};

/* One allocation in one window. What steady.c looks at, up to hh.tbl, is one cache line. */
struct rs_touch {
	uint64_t serial; /* key */
	struct rs_alloc *alloc;
	RS_VEC(struct rs_span) spans; /* sorted, disjoint; one alone lies in `one` */
	struct rs_span one;
	UT_hash_handle hh;
	RS_VEC(struct rs_claim) claims; /* forward only; sorted, disjoint */
	struct rs_touch *spare;		/* touch.c: the next one that is not in use */
	uint8_t overwritten; /* 1 + replays before the first write to what is claimed; 0: none */
} __attribute__((aligned(64)));
_Static_assert(offsetof(struct rs_touch, hh) + sizeof(void *) <= 64, "a cache line");

/* Reasons why a window cannot vouch for itself. */
enum rs_flag {
	RS_F_CAPTURE = 1,
	RS_F_UNKNOWN_WRITER = 2,
	RS_F_UNTRACKED = 4,
	RS_F_HOST_EFFECT = 8,
	RS_F_LOST = 16,
	RS_F_ABORTED = 64,
	RS_F_STRUCTURE = 128,
	RS_F_NO_FORWARD = 256,
	RS_F_INTERNAL = 512,
	RS_F_RANDOM = 1024,	 /* a generator stood elsewhere */
	RS_F_OTHER_DRAWS = 2048, /* draws that the forward did not make */
	RS_F_OTHER_CALLS = 4096, /* a contract of other code */
	RS_F_KEPT = 8192,	 /* replayed although its activations were to be kept */
	RS_F_SPENT = 16384,	 /* replayed more often than was expected */
	RS_F_ARGUMENTS = 32768,	 /* a kernel got other numbers */
	RS_F_RESIDENCY = 65536,	 /* other allocations and frees */
};

/* What a window allocates and frees. */
struct rs_balance {
	uint32_t calls;
	int64_t bytes;
};

/* An access without order to another one: the first that was noticed. */
struct rs_race {
	struct rs_alloc *alloc; /* NULL: none */
	uint64_t off, len;
	struct rs_writer writer;
};

/* One draw of a library's generator by a forward; see generator.c. */
struct rs_drawn;
struct rs_draw {
	uint64_t generator, position, bytes;
	struct rs_drawn *drawn;
};

/* What a contract or a plan says of a segment: see terms.c. */
struct rs_terms {
	const char *name; /* interned; key: the pointer */
	struct rs_policy policy;
	uint32_t replays; /* most of a forward; 0: nobody knows */
	uint8_t windows;  /* some of its terms say where writes are expected */
	RS_VEC(struct rs_term) terms;
	struct rs_term_group *groups; /* the same by place: terms.c */
	RS_VEC(uint64_t) calls;	      /* what its forwards may do; none: anything */
	struct rs_alias_set aliases;
	UT_hash_handle hh;
};

/* By how many replays came first; the last one is of that many or more. */
#define RS_COST_KEPT 4u

/* A write to what a forward has read, to be told in its profile if a replay comes after it. */
struct rs_overwrite {
	struct rs_profile_range *range;
	uint64_t off, len; /* as the range's windows */
	const char *writer;
	uint32_t replays; /* that came before it */
};

/* A forward and what its replays need: pending from F-begin until retired. */
struct rs_segment {
	const char *name; /* interned */
	uint64_t invocation, step;
	uint64_t since;		     /* the last version given when the forward began */
	uint64_t twin;		     /* inside of a capture: since of the program's */
	const char *label;	     /* "forward:<name>#<n>", interned */
	uint32_t flags;		     /* enum rs_flag, of the forward */
	uint8_t open, retired, told; /* told: what is to be said of it without a replay */
	struct rs_race race;
	struct rs_policy policy;
	const struct rs_terms *terms; /* NULL: none */
	struct rs_race broken;	      /* where the terms were contradicted */
	struct rs_race freed;	      /* what it has read was freed */
	struct rs_race shared; /* where two places share other memory than the terms say ... */
	struct rs_pair pair;   /* ... which two, the kernels that reach them, */
	const char *pair_kernel[2];
	uint8_t pair_absent;	 /* and whether they share none now */
	struct rs_causes causes; /* of flags */
	struct rs_balance balance;
	uint64_t begin_ns;
	uint32_t refs; /* the pending list, windows, records in flight */
	uint32_t replays;
	/* costs and plans: costing.h */
	struct rs_cost_entry *cost; /* NULL: costs are not measured */
	uint8_t planned;	    /* a plan says how it is preserved */
	uint8_t kept;		    /* the program keeps its activations: nothing is preserved */
	uint8_t spent; /* no replay is expected any more: nothing is preserved any more */
	uint64_t kept_bytes[RS_COST_KEPT], kept_pieces[RS_COST_KEPT];
	uint64_t remap_bytes[RS_COST_KEPT], remap_pieces[RS_COST_KEPT];
	uint64_t own_bytes, own_pieces;
	RS_VEC(struct rs_overwrite) overwrites;
	struct rs_touch *touches;
	RS_VEC(struct rs_logged_call) log;
	RS_VEC(struct rs_logged_access) accesses;
	RS_VEC(struct rs_draw) draws;
	struct rs_segment *next, *prev;
};

enum rs_check_kind {
	RS_CHECK_ENTRY,
	RS_CHECK_PRODUCT,
	RS_CHECK_AFTER,
	RS_CHECK_AMBIGUOUS,
	RS_CHECK_RESTORE,
	RS_CHECK_SAMPLE, /* of bytes that nobody was seen to write */
	RS_CHECK_RACE,	 /* no digests: there was no order */
	RS_CHECK_BROKEN, /* no digests: the contract says something else */
	RS_CHECK_FREED,	 /* no digests: the memory is gone */
	RS_CHECK_ALIAS	 /* no digests: two places share memory, or no longer do */
};

/* Two digests that should be equal, once the device has made them; NULL: cannot be told. */
struct rs_check {
	uint8_t kind;	/* enum rs_check_kind */
	uint8_t exact;	/* a difference is one, not a stale byte in a gap */
	uint8_t unseen; /* nobody was seen to write there */
	uint8_t reason; /* enum rs_finding: why a or b is missing */
	struct rs_words *a, *b;
	struct rs_alloc *alloc;
	uint64_t off, len;
	struct rs_region
		region; /* at off when the check was made: names may go before it is judged */
	struct rs_writer writer;
};

/* One replay's outcome in the making. */
struct rs_replay {
	struct rs_segment *seg; /* NULL: no forward */
	const char *name;
	uint64_t invocation, step, k;
	uint32_t flags;
	uint32_t ranges; /* restored or compared pieces */
	uint64_t bytes;
	uint64_t begin_ns, end_ns;
	RS_VEC(struct rs_check) checks;
	uint32_t *slots, nslots, indexed; /* 1 + index of the first `indexed` of them, by hash */
	uint32_t extra, skipped; /* calls that the forward did not make; that the replay left out */
	struct rs_causes causes; /* of flags */
	uint32_t pins;		 /* operations in flight that may still have something to say */
	uint8_t busy;		 /* a thread is asking the driver about `event` */
	uint64_t event;		 /* 0: nothing to wait for */
	uint64_t ctx;		 /* of the event */
	uint64_t fenced;	 /* queue bits of the fences that its window has set */
	uint64_t refusals;	 /* engine.refusals when it set the first of them */
	uint8_t covered;  /* when the event has passed, so has everything behind those fences */
	uint8_t captured; /* nothing of it has run: it is judged when its graph is launched */
	struct rs_replay *next;
};

/* What becomes of a held P2 when the replay ends. */
enum rs_hold_how {
	RS_HOLD_RESTORE, /* it comes back (audit: should have been left) */
	RS_HOLD_COMPARE, /* P3 stays; nobody can tell which of them is right */
	RS_HOLD_BOTH,	 /* nobody can tell, but it was declared state: it comes back */
	RS_UNHOLD,	 /* it is none after all */
};

struct rs_hold {
	struct rs_alloc *alloc;
	struct rs_keep *keep;
	uint64_t off, len; /* what of the keep comes back: it may have more */
	uint64_t at;	   /* when, as a version */
	uint8_t how;	   /* enum rs_hold_how */
	uint8_t away;	   /* the program's bytes are there: views.c */
};

/* Bytes that a replay holds, of whatever holds they are. */
struct rs_held {
	uint64_t serial; /* of the allocation */
	uint64_t off, end;
};

enum rs_window_kind { RS_WINDOW_OTHER, RS_WINDOW_FORWARD, RS_WINDOW_REPLAY };

struct rs_window {
	enum rs_window_kind kind;
	uint64_t id;		  /* process-wide ranges */
	uint64_t begin;		  /* engine.clock */
	const char *label;	  /* interned */
	uint8_t closed;		  /* ended by a step: what remains is a placeholder for its pop */
	uint8_t mixed;		  /* some of its calls were captured where it cannot be followed */
	struct rs_timing *timing; /* NULL: its time is not measured */
	struct rs_segment *seg;	  /* NULL for a replay that is not resolved (yet) */
	const char *name;	  /* replay: segment name */
	uint8_t unresolved;
	struct rs_touch *touches; /* replay's own; a forward's live in the segment */
	RS_VEC(struct rs_hold) holds;
	RS_VEC(struct rs_held) held; /* sorted, disjoint */
	RS_VEC(struct rs_aside) aside;
	uint32_t away; /* of holds, those that are */
	struct rs_replay *rec;
	uint32_t draw_at;  /* replay: next draw of the forward */
	uint32_t log_at;   /* replay: next call of the forward's log */
	uint32_t after_at; /* behind the log's entry of the last call that was made */
	struct rs_balance balance;
	uint64_t matched_call;	    /* replay: number of the call that matched ... */
	uint32_t matched;	    /* ... this entry of the log */
	uint64_t queues;	    /* bits used inside */
	uint32_t last_q;	    /* id + 1 */
	struct rs_capture *capture; /* its calls were captured, and followed there; a reference */
	struct rs_window *up;	    /* enclosing, or next in the process list */
	struct rs_window *next_replay; /* all open replays of the process */
};

/* A queue's id, as long as no queue has been destroyed since: engine.generation + 1, 0: no entry. */
struct rs_known {
	struct rs_queue q;
	uint64_t generation;
	uint32_t id;
};
#define RS_KNOWN 8u

/*
 * Memory that the thread's calls have met: calm.c. A direct-mapped table by 4 KiB, and one by 2 MiB for what is at least that
 * large, behind it.
 */
struct rs_lately {
	uint64_t base, bytes; /* bytes 0: an empty entry */
	uint64_t
		calm; /* a moment, a queue and whether it was written: nothing was needed then; 0: not so */
	struct rs_alloc *alloc;
};
#define RS_LATELY_SMALL 1024u
#define RS_LATELY_LARGE 256u
#define RS_LATELY	(RS_LATELY_SMALL + RS_LATELY_LARGE)

/* A product of the call that is being made: its digest is planned, and is to be made when the call has been made. */
struct rs_post {
	struct rs_words *words; /* the log's */
	struct rs_alloc *alloc; /* the forward has touched it */
	uint64_t addr, off, len;
	uint32_t access, logged; /* which one of the call; which one of the forward's log */
};

struct rs_thread {
	struct rs_window *top; /* the first: struct rs_thread_front */
	struct rs_engine *engine;
	uint32_t unmatched;		 /* pushes that found no memory, above top */
	struct rs_known known[RS_KNOWN]; /* direct mapped: rs_known_at */
	struct rs_range *ranges;	 /* scratch of one call */
	uint32_t ranges_cap;
	/* The ranges that are there: how many, of which call, as of which engine.map_generation. */
	uint32_t nranges;
	uint64_t ranges_call, ranges_generation;
	const struct rs_engine *ranges_of;
	RS_VEC(struct rs_post) posts; /* pairing.c: of call posts_call, a call of this forward's */
	uint64_t posts_call;
	uint32_t posts_q;
	const struct rs_segment *posts_of;
	RS_VEC(struct rs_alloc *)
	under_way;	/* what the calls touch that it is just making: views.c */
	uint8_t flying; /* is between before and after of a call that may reach mapped memory: remap.c */
	uint8_t hosts; /* the call that it is just making runs code on the host: remap.c */
	struct rs_lately lately[RS_LATELY];
	uint64_t lately_generation[RS_LATELY]; /* engine.map_generation before it was looked up */
};

struct rs_engine {
	union {
		struct rs_front front;
		struct {
			uint64_t moment, interested, fence_queues, map_generation;
		};
		uint8_t line[64]; /* others write to what follows, call by call */
	};
	struct rs_engine_config config;
	const struct rs_devops *ops;
	struct rs_records *records;
	pthread_mutex_t lock;
	struct rs_addrmap *map;
	struct rs_addrmap *suballocs; /* atomic; NULL: none was ever told */
	uint64_t clock;		      /* counts events: allocations, calls, markers */
	uint64_t version;	      /* last version given */
	uint64_t serial;
	uint64_t step;
	uint8_t seen_step;
	RS_VEC(struct rs_qstate) queues;
	struct rs_queue handle
		[RS_CLOCKS]; /* atomic, field by field: of the first queues, as rs_queue_of needs it */
	struct rs_segment *pending, *ending; /* ending: writes now, in its last replay */
	struct rs_window *process;	     /* start/end windows */
	uint64_t generation; /* queues destroyed so far: cached ids of older ones are void */
	uint32_t fences[64]; /* bit by bit of fence_queues: records in flight with such a fence */
	uint64_t refusals;   /* so often somebody has not waited for a fence */
	uint64_t stalling; /* atomic: queues that may wait for memory, see rs_engine_queue_stalls */
	uint64_t stalls;   /* atomic: counts these, and host functions, before they show */
	uint64_t used_since;  /* atomic: of those, the ones with calls after the stall */
	uint64_t touched_all; /* queues whose calls may have touched anything */
	uint64_t loose_all;   /* the last write that may have gone anywhere; a version */
	uint32_t claim_epoch; /* atomic, odd: changes when no segment is pending any more */
	uint64_t idle_unknown_writers; /* atomic; the rest of them is in stats */
	uint64_t digest_queues; /* atomic: those with digests that no record has waited for yet */
	struct rs_window *replays; /* open ones, of all threads; atomic */
	uint64_t under_way;	   /* of all allocations: views.c */
	uint32_t all_under_way;	   /* of these, calls that may do anything */
	uint64_t range_id;
	uint32_t told_alone;			/* findings of forwards that nobody replayed */
	struct rs_replay *flight, **flight_end; /* records that wait for their event, in order */
	struct rs_engine_stats stats;
	struct rs_strings *strings;
	struct rs_alloc *spare_allocs; /* linked through `next` */
	struct rs_mapping *spare_mappings;
	struct rs_touch *spare_touches;
	uint32_t nspare_touches;
	struct rs_log_room spare_logs[RS_LOG_ROOMS];
	uint32_t nspare_logs;
	struct rs_handle *handles;   /* of backings */
	struct rs_addrmap *reserved; /* NULL: nothing was ever reserved */
	uint8_t no_swap;	     /* atomic: the device has failed to exchange ranges */
	uint8_t peers;		     /* kernels reach other contexts' memory */
	struct rs_thin *thins;	     /* newest first */
	uint32_t thins_new;	     /* atomic: those whose write has not been made yet */
	struct rs_profile *profiles;
	struct rs_terms *terms;
	struct rs_policy policy; /* of segments without their own */
	/* order.c */
	struct rs_clock host;		  /* what the host has waited for */
	struct rs_clock everything_known; /* every call so far */
	struct rs_event *events;
	uint32_t nevents; /* atomic: how many of them there are */
	uint32_t
		legacy_unseen; /* atomic: there were calls on a legacy stream that nobody described */

	pthread_mutex_t memory_lock; /* blocks and words; a leaf */
	struct rs_chunk *chunks, *lost_chunks;
	struct rs_block *block_bins[RS_BLOCK_BINS];
	struct rs_words *free_words[20];
	struct rs_words *used_words, *lost_words;
	uint64_t block_bytes; /* allocated from the driver */
	/* Under a plan: what it has reserved for them; and with what its budget leaves beside its peak, the most. */
	uint64_t planned_bytes, planned_most;
	uint64_t planned_frames; /* of planned_bytes: what frames are to take */
	uint64_t frame_bytes;	 /* of block_bytes */
	uint8_t is_planned;

	/* the program's device memory, rounded as drivers do: now, and most of the present phase */
	uint64_t device_bytes, device_peak;
	struct rs_costing *costing; /* NULL: costs are not measured */
	struct rs_where where;
	uint8_t inexact; /* atomic: a replay was not exact in itself: where its calls are made is asked from then on */

	/* capture.c: of the program's engine, and of the one inside of a capture */
	struct rs_capture *captures;
	uint32_t open_captures;			      /* atomic: those that have not ended */
	struct rs_launched *launches, **launches_end; /* atomic; with results to come, in order */
	struct rs_engine *outer;		      /* NULL: this is the program's */
	struct rs_capture *capture;
	RS_VEC(uint64_t *) slabs; /* host words of a capture: they go with it */
	struct rs_remapping remapping;
};

/*
 * Something of that which rs_follow_loosely (calm.c) looks at without the lock has changed: whoever found before that
 * a call needs nothing must look again. Under engine.lock, after the change: who reads the new moment
 * reads what changed, too, and who was just looking keeps an old moment. Call it for: claims of an allocation, fences and what
 * they reset, the address map, queue ids, queues that stall, windows, engine.legacy_unseen taken back. A window that opens
 * stands for the versions, too: marks of writes are compared with the version at which a forward began, and what was
 * marked since stays so. What only makes calls need less (a claim that ends) does not have to.
 */
static inline void rs_moment_next(struct rs_engine *e)
{
	__atomic_store_n(&e->moment, e->moment + 1, __ATOMIC_RELEASE);
}

/* Under engine.lock, but rs_follow_loosely (calm.c) looks without it. */
static inline uint64_t rs_version_next(struct rs_engine *e)
{
	uint64_t v = e->version + 1;

	__atomic_store_n(&e->version, v, __ATOMIC_RELAXED);
	return v;
}

/* The address map has changed. Under engine.lock. */
static inline void rs_map_changed(struct rs_engine *e)
{
	__atomic_fetch_add(&e->map_generation, 1, __ATOMIC_RELEASE);
	rs_moment_next(e);
}

/* Ids of queues that were looked up before are void. Under engine.lock. */
static inline void rs_queues_changed(struct rs_engine *e)
{
	__atomic_fetch_add(&e->generation, 1, __ATOMIC_RELAXED);
	rs_moment_next(e);
}

static inline struct rs_known *rs_known_at(struct rs_thread *t, struct rs_queue q)
{
	return &t->known[(q.stream >> 4 ^ q.stream >> 9 ^ q.stream) % RS_KNOWN];
}

/* NULL: look for it under the lock (rs_queue_id). */
static inline const struct rs_known *rs_known_queue(const struct rs_engine *e,
						    const struct rs_thread *t, struct rs_queue q)
{
	const struct rs_known *k = rs_known_at((struct rs_thread *)t, q);

	return k->q.stream == q.stream && k->q.ctx == q.ctx &&
			       k->generation ==
				       __atomic_load_n(&e->generation, __ATOMIC_RELAXED) + 1
		       ? k
		       : NULL;
}

/* engine.c */
struct rs_alloc *rs_alloc_new(struct rs_engine *e, uint64_t bytes, enum rs_alloc_kind kind);
void rs_alloc_drop(struct rs_engine *e, struct rs_alloc *a);
/* Memory with that base; NULL: none, or a mapping. */
struct rs_alloc *rs_alloc_at(struct rs_engine *e, uint64_t base);
/* Memory that will be there when a graph runs. It has an address, and counts for nothing. NULL: none could be entered. */
struct rs_alloc *rs_alloc_promise(struct rs_engine *e, uint64_t ctx, uint64_t addr, uint64_t bytes);
void rs_alloc_forget(struct rs_engine *e, struct rs_alloc *a);

/* suballoc.c: what was given out of these bytes is that no more */
void rs_suballocs_forget(struct rs_engine *e, uint64_t addr, uint64_t bytes);
const char *rs_intern(struct rs_engine *e, const char *text);
void rs_alloc_unref(struct rs_engine *e, struct rs_alloc *a);
const struct rs_region *rs_region_at(const struct rs_alloc *a, uint64_t off, uint64_t *ret_until);
uint32_t rs_queue_id(struct rs_engine *e, struct rs_thread *t, struct rs_queue q);
uint64_t rs_now_ns(void);

/* memory.c: result words; no engine.lock needed */
int rs_words_fill(struct rs_engine *e, uint32_t q, struct rs_words *w);
struct rs_words *rs_words_new(uint64_t bytes);		    /* one reference, NULL: no memory */
void rs_words_put(struct rs_engine *e, struct rs_words *w); /* engine.lock; NULL is fine */
void rs_words_reap(struct rs_engine *e);
void rs_words_ctx_gone(struct rs_engine *e, uint64_t ctx); /* engine.lock */
void rs_memory_fini(struct rs_engine *e);

/* alias.c */
uint64_t rs_alloc_addr(const struct rs_alloc *a, uint64_t off, uint64_t len);
struct rs_alloc *rs_alias_backing(struct rs_engine *e, uint64_t handle);
void rs_alias_fini(struct rs_engine *e);

/* thin.c */
void rs_thin_note(struct rs_engine *e, struct rs_alloc *a, struct rs_keep *k,
		  const struct rs_writer *writer);
void rs_thin_written(struct rs_engine *e, const struct rs_alloc *a, uint64_t call, uint64_t ver);
void rs_thin_compare(struct rs_engine *e, struct rs_oplist *l, uint64_t call, int made);
int rs_thin_diff(struct rs_engine *e, struct rs_op *op);
int rs_thin_move(struct rs_engine *e, struct rs_op *op);
void rs_thin_ready(struct rs_engine *e);
void rs_thin_fini(struct rs_engine *e);

/* readers.c */
void rs_readers_forget(struct rs_claim *c);
int rs_readers_done(const struct rs_engine *e, const struct rs_claim *c, uint64_t off, uint64_t len,
		    uint32_t q);
void rs_readers_race(struct rs_engine *e, struct rs_segment *s, struct rs_alloc *a, uint64_t off,
		     uint64_t len, const struct rs_writer *writer);

/* order.c */
uint64_t rs_order_tick(struct rs_engine *e, uint32_t q); /* a call on q; 0: not followed */
/* Does call `tick` of queue `from` come before what is enqueued on q now, as far as is known? */
int rs_order_known(const struct rs_engine *e, uint32_t from, uint64_t tick, uint32_t q);
void rs_order_forget(struct rs_engine *e); /* all that was enqueued so far counts as ordered */
void rs_order_reuse(struct rs_engine *e, uint32_t q);
void rs_order_fini(struct rs_engine *e);

/* preserve.c */
struct rs_keep *rs_keep_find(struct rs_alloc *a, uint64_t off, uint64_t ver);
int rs_keep_add(struct rs_alloc *a, struct rs_keep *k);
struct rs_words *rs_plan_digest(struct rs_oplist *l, uint32_t q, struct rs_alloc *a, uint64_t off,
				uint64_t len);
int rs_claimed(struct rs_engine *e, const struct rs_alloc *a, uint64_t off, uint64_t len,
	       uint64_t ver);
struct rs_keep *rs_keep_take(struct rs_engine *e, struct rs_oplist *l, uint32_t q,
			     struct rs_alloc *a, const struct rs_ext *piece,
			     const struct rs_writer *killer, int exact);
void rs_keeps_outdate(struct rs_engine *e, struct rs_alloc *a, const struct rs_ext *x);
void rs_keeps_collect(struct rs_engine *e, struct rs_alloc *a);
void rs_keep_collect(struct rs_engine *e, struct rs_alloc *a, struct rs_keep *k);
struct rs_claim *rs_claim_add(struct rs_touch *t, uint64_t off);
void rs_write_piecewise(struct rs_engine *e, struct rs_oplist *l, uint32_t q, struct rs_alloc *a,
			uint64_t off, uint64_t len, const struct rs_writer *writer);
void rs_fence(struct rs_engine *e, struct rs_alloc *a, uint32_t q, struct rs_replay *rec);
void rs_fences_over(struct rs_engine *e, struct rs_replay *rec);
int rs_range_is_live(const struct rs_alloc *a, uint64_t off, uint64_t len, uint64_t ver);
void rs_op_concerns(struct rs_op *op, struct rs_replay *rec);
void rs_memory_leaves(struct rs_engine *e, struct rs_alloc *a, const struct rs_writer *who);
void rs_memory_stays(struct rs_engine *e, struct rs_alloc *a);
void rs_op_bind(struct rs_op *op, struct rs_alloc *a, uint64_t off, uint64_t len);

/* restore.c */
void rs_place_note(struct rs_engine *e, struct rs_window *w, enum rs_check_kind kind,
		   struct rs_alloc *a, uint64_t off, uint64_t len, const struct rs_writer *writer);
void rs_window_enter_range(struct rs_engine *e, struct rs_oplist *l, uint32_t q,
			   struct rs_window *w, struct rs_alloc *a, uint64_t off, uint64_t len,
			   int must_know, const struct rs_writer *reader);
void rs_window_compare_kept(struct rs_oplist *l, uint32_t q, struct rs_window *w,
			    struct rs_alloc *a, uint64_t off, uint64_t len, struct rs_words *then,
			    const struct rs_writer *writer);
void rs_window_hold_range(struct rs_engine *e, struct rs_oplist *l, uint32_t q, struct rs_window *w,
			  struct rs_alloc *a, uint64_t off, uint64_t len, enum rs_hold_how how,
			  const struct rs_writer *writer);
/* What of these bytes is held already is to be treated so from now on. */
void rs_window_unhold(struct rs_window *w, struct rs_alloc *a, uint64_t off, uint64_t len,
		      enum rs_hold_how how);
void rs_window_release(struct rs_engine *e, struct rs_oplist *l, struct rs_window *w);

/* capture.c, capture_memory.c, capture_window.c */
/* What an engine inside of a capture knows of memory is the program's: the engine that has the address map. */
static inline const struct rs_engine *rs_engine_outer(const struct rs_engine *e)
{
	return e->outer ? e->outer : e;
}
struct rs_alloc *rs_capture_alloc(struct rs_engine *inner, struct rs_alloc *a);
int rs_capture_before(struct rs_engine *e, struct rs_thread *t, struct rs_call *call);
int rs_capture_after(struct rs_engine *e, struct rs_thread *t, struct rs_call *call, int ok);
int rs_capture_seat(struct rs_engine **e, struct rs_thread **t, const struct rs_call *call);
void rs_capture_close(struct rs_engine *e, struct rs_window *w, int aborted);
void rs_capture_step(struct rs_engine *e);
/* The replays that have ended so far. Both locks held. */
struct rs_replay *rs_capture_script(const struct rs_engine *inner);
void rs_capture_event_gone(struct rs_engine *e, uint64_t event);
void rs_capture_ctx_gone(struct rs_engine *e, uint64_t ctx);
/* capture_run.c */
void rs_capture_harvest(struct rs_engine *e, int wait, uint64_t ctx);

/* compare.c */
void rs_replay_judge(struct rs_engine *e, const struct rs_replay *r);
void rs_replay_free(struct rs_engine *e, struct rs_replay *r);
struct rs_check *rs_check_add(struct rs_replay *r, enum rs_check_kind kind, struct rs_alloc *a,
			      uint64_t off, uint64_t len, struct rs_words *x, struct rs_words *y);
void rs_segment_tell(struct rs_engine *e, struct rs_segment *s);
int rs_check_has(struct rs_replay *r, enum rs_check_kind kind, const struct rs_alloc *a,
		 uint64_t off);
void rs_replay_finish_ready(struct rs_engine *e, int wait);
void rs_replay_finish_ctx(struct rs_engine *e, uint64_t ctx);

/* generator.c */
void rs_draws_free(struct rs_engine *e, struct rs_segment *s);

/* window.c */
struct rs_window *rs_window_open(struct rs_engine *e, const char *text);
struct rs_replay *rs_window_close(struct rs_engine *e, struct rs_oplist *l, struct rs_window *w,
				  int aborted, uint32_t *ret_q);
void rs_windows_balance(struct rs_engine *e, const struct rs_thread *t, int64_t bytes);
void rs_segment_unref(struct rs_engine *e, struct rs_segment *s);
void rs_segment_note(struct rs_engine *e, struct rs_segment *s, enum rs_check_kind kind,
		     struct rs_alloc *a, uint64_t off, uint64_t len,
		     const struct rs_writer *writer);
void rs_segment_retire(struct rs_engine *e, struct rs_segment *s);
/* Nothing of it is needed any more, but its name and number still are. */
void rs_segment_spend(struct rs_engine *e, struct rs_segment *s);
uint64_t rs_next_invocation(struct rs_engine *e, const char *name);

#include "tracker/touch.h"

#include "tracker/learn.h"
#include "tracker/views.h"

#endif
