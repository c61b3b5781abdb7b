/* SPDX-License-Identifier: MIT */
/*
 * The inside of measuring: costs.c (segments and memory), timing.c (the device's clock), planned.c (obeying plans).
 * Included by the engine's own files only.
 *
 * Memory is followed by phases. A step is divided by its markers: outside of all segments, a forward, the turn (from
 * the end of a forward to whatever comes next), and from the begin of a replay to that of the next, which is where the
 * program runs the backward of what was replayed. Of each phase the most that the program had in use is kept. The
 * phases are those of the process: with segments of several threads at once, the latest marker decides.
 *
 * Locks: phases, entries and shares are under engine.lock; samples, rates and the list of running measurements under
 * rs_costing.lock, a leaf that is not held across device operations.
 */
#ifndef RS_TRACKER_COSTING_H
#define RS_TRACKER_COSTING_H

#include "tracker/model.h"

#define RS_SAMPLES 64u

struct rs_samples {
	uint64_t v[RS_SAMPLES]; /* the latest */
	uint64_t n;
};

/* What a step has shown of a segment, before it is known whether it counts. */
struct rs_cost_now {
	uint64_t live_forward, peak_forward, live_replay, end_replay, peak_backward;
	uint8_t forward, replay;
};

struct rs_cost_key {
	const char *name; /* interned */
	uint64_t invocation;
};

struct rs_cost_entry {
	struct rs_cost_key key;
	struct rs_cost cost;
	struct rs_samples forward, replay, forward_busy, replay_busy;
	struct rs_cost_now now;
	uint64_t forwards_seen, replays_seen; /* windows with calls; rs_costing.lock */
	UT_hash_handle hh;
};

struct rs_share_entry {
	struct rs_cost_share share; /* key: n and order; the rest is zero there */
	uint64_t bytes, pieces;	    /* largest of a step */
	uint64_t now_bytes, now_pieces;
	UT_hash_handle hh;
};

enum rs_phase { RS_PHASE_OUTSIDE, RS_PHASE_FORWARD, RS_PHASE_TURN, RS_PHASE_REPLAY };

#define RS_LANES 7u

/* What a window does on another queue than its first. */
struct rs_lane {
	uint32_t q;
	struct rs_queue queue;
	uint64_t from, to; /* marks, 0: none (yet) */
	uint64_t inner_ns; /* the tool's own operations there */
};

/* A window or an operation whose end the device has not reached yet. */
struct rs_timing {
	uint64_t from, to;    /* marks, 0: none (yet) */
	struct rs_timing *up; /* the window that it is part of, NULL: none; a reference */
	struct rs_timing *next;
	struct rs_cost_entry *entry; /* a window's */
	uint32_t refs;
	uint8_t is_replay, is_op, kind; /* kind: of an operation */
	uint8_t bad;			/* something of it could not be measured */
	uint8_t ended;			/* a window's: marks that come now are too late */
	struct rs_queue queue;		/* an operation's */
	uint32_t q, nlanes;		/* a window's first queue, and the others */
	struct rs_lane lane[RS_LANES];
	uint64_t bytes;
	uint64_t inner_ns; /* the tool's own operations inside, on a window's first queue */
};

struct rs_rate_samples {
	uint64_t bytes[RS_SAMPLES], ns[RS_SAMPLES];
	uint64_t n, total;
};

#define RS_BUSY_WINDOWS 8192u

struct rs_planned_run;

struct rs_costing {
	pthread_mutex_t lock;
	const struct rs_devops *real;
	struct rs_devops timed; /* the same operations, measured; opaque is the engine */

	struct rs_cost_entry *entries;
	struct rs_share_entry *shares;
	uint64_t order; /* forwards of this step so far */
	uint64_t steps;
	uint64_t step_ns; /* when it began, of the host's clock */
	enum rs_phase phase;
	struct rs_cost_entry *phase_of; /* turn: the forward before it */
	uint64_t phase_least;		/* bytes: see rs_costs_freed */
	uint8_t retained;		/* in this step the program keeps some activations */
	uint8_t partial;		/* this step began before we looked: it does not count */
	uint8_t replayed;		/* in this step, since the last forward */
	struct rs_cost_usage usage, now;
	struct {
		uint64_t window;
		struct rs_cost_entry *entry;
		uint8_t is_replay;
	} busy[RS_BUSY_WINDOWS];
	uint32_t busy_at;

	struct rs_timing *running, **running_end; /* in the order of their ends' enqueueing */
	uint32_t nrunning;
	uint8_t polling;
	struct rs_timing *spare;
	struct rs_rate_samples rate[RS_RATES];
	uint64_t ops_seen[RS_RATES];
	uint32_t last_q; /* id + 1 of the last window's queue; engine.lock */
	uint8_t calibrated;

	struct rs_planned_run *plan; /* planned.c */
};

/* costs.c; engine.lock held unless said otherwise */
int rs_costs_init(struct rs_engine *e);
void rs_costs_fini(struct rs_engine *e); /* no lock */
struct rs_cost_entry *rs_costs_entry(struct rs_engine *e, const char *name, uint64_t invocation);
void rs_costs_phase(struct rs_engine *e, enum rs_phase phase, struct rs_cost_entry *entry);
void rs_costs_step(struct rs_engine *e);
void rs_costs_freed(struct rs_engine *e);
void rs_costs_forward_begin(struct rs_engine *e, struct rs_segment *s);
void rs_costs_forward_end(struct rs_engine *e, struct rs_segment *s);
void rs_costs_replay_begin(struct rs_engine *e, struct rs_segment *s);
void rs_costs_replay_end(struct rs_engine *e, struct rs_segment *s);
void rs_costs_retire(struct rs_segment *s);
void rs_costs_overwritten(struct rs_engine *e, const struct rs_alloc *a, const struct rs_ext *x);
uint64_t rs_costs_replays(const struct rs_segment *s);
void rs_costs_outcome(struct rs_engine *e, const struct rs_replay *r, uint64_t codes, int diverged);
void rs_costs_window_closed(struct rs_engine *e, const struct rs_window *w, int is_replay,
			    struct rs_cost_entry *entry);

/* timing.c */
void rs_timing_init(struct rs_engine *e);
void rs_timing_fini(struct rs_engine *e);
/* A window's first call comes on q: its mark is planned. engine.lock held. */
void rs_timing_begin(struct rs_engine *e, struct rs_oplist *l, struct rs_window *w, uint32_t q);
/* Its last call has been enqueued. engine.lock held. */
void rs_timing_end(struct rs_engine *e, struct rs_oplist *l, struct rs_window *w);
/* The window's first call on a queue that is not its first. engine.lock held. */
void rs_lanes_begin(struct rs_engine *e, struct rs_oplist *l, struct rs_window *w, uint32_t q);
/* The ends of all of them. engine.lock held. */
void rs_lanes_end(struct rs_engine *e, struct rs_oplist *l, struct rs_timing *t);
/* Where an operation's mark belongs, or NULL: it comes too late. rs_costing.lock held. */
uint64_t *rs_lanes_place(struct rs_timing *t, const struct rs_op *op);
/* All marks of t, which has none afterwards; rs_costing.lock held. How many. */
unsigned rs_lanes_take(struct rs_timing *t, uint64_t ret[2 * RS_LANES + 2]);
/* How long the device has been busy with it, on any queue, without the tool's own operations. 0, -EAGAIN, -errno. */
int rs_lanes_elapsed(const struct rs_devops *real, const struct rs_timing *t, uint64_t *ret_ns);
/* An operation within it, on its queue, took ns. rs_costing.lock held. */
void rs_lanes_inner(struct rs_timing *t, struct rs_queue queue, uint64_t ns);
int rs_timing_mark(struct rs_engine *e, const struct rs_op *op); /* no lock */
void rs_timing_list(struct rs_engine *e, struct rs_oplist *l, const struct rs_window *w);
void rs_timing_list_done(struct rs_engine *e, struct rs_oplist *l);
/* What this thread's operations belong to from now on; returns what it was. */
struct rs_timing *rs_timing_inside(struct rs_timing *t);
void rs_timing_poll(struct rs_engine *e); /* no lock */
void rs_samples_add(struct rs_samples *s, uint64_t ns);
void rs_samples_sum(const struct rs_samples *s, struct rs_cost_time *ret);
/* rs_costing.lock held. 0: nothing measured. */
int rs_rate_fit(const struct rs_rate_samples *s, enum rs_rate_kind kind, struct rs_cost_rate *ret);

/* Around an operation of its own kind; no lock. NULL: it is not measured. */
struct rs_timing *rs_timing_op_begins(struct rs_engine *e, struct rs_queue q,
				      enum rs_rate_kind kind, uint64_t bytes);
int rs_timing_op_ended(struct rs_engine *e, struct rs_queue q, struct rs_timing *t, int err);

/* calibrate.c; no lock */
void rs_timing_calibrate(struct rs_engine *e);

/* planned.c */
void rs_planned_fini(struct rs_engine *e);
/* Between two steps; calls the driver, no lock held. */
void rs_planned_step(struct rs_engine *e);
/* engine.lock held: */
void rs_planned_phase_ends(struct rs_engine *e, enum rs_phase phase, struct rs_cost_entry *entry,
			   enum rs_phase next, struct rs_cost_entry *next_entry, uint64_t peak);
void rs_planned_forward(struct rs_engine *e, struct rs_segment *s);

#endif
