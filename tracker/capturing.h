/* SPDX-License-Identifier: MIT */
/* Between the files of captures (capture.c, capture_memory.c, capture_window.c, capture_run.c): what they share. */
#ifndef RS_TRACKER_CAPTURING_H
#define RS_TRACKER_CAPTURING_H

#include "tracker/capture.h"
#include "tracker/model.h"

/* A thread of the program, inside. */
struct rs_seat {
	const struct rs_thread *outer;
	struct rs_thread *inner;
	struct rs_seat *next;
};

/* A window of the program that is open inside. */
struct rs_mirror {
	const struct rs_window *outer;
	struct rs_window *inner;
	struct rs_thread *seat; /* on whose stack it lies; NULL: it is the process's */
};

/* Memory of the program, as the capture sees it. */
struct rs_shadow {
	uint64_t serial; /* key */
	struct rs_alloc *alloc;
	UT_hash_handle hh;
};

/* Memory that a node of the graph allocates, and none of it frees: rs_alloc_promise. */
struct rs_promise {
	uint64_t addr, serial;
};

/* Host words that the results of one launch are copied to. */
struct rs_results {
	uint64_t *words;
	struct rs_move *move; /* one for each of the capture's digests */
	uint64_t ctx;
	struct rs_results *next;
};

/* A launch whose results are not judged yet. */
struct rs_launched {
	struct rs_capture *capture; /* a reference */
	struct rs_results *results; /* NULL: there are none */
	struct rs_queue q;
	uint64_t event, step;
	uint32_t flags; /* enum rs_flag, for all records */
	uint8_t busy;	/* a thread is asking the driver about the event */
	uint32_t pins;	/* threads that order something after it */
	struct rs_launched *next;
};

/*
 * Everything under the outer engine's lock, but what the inner engine has of its own, and `shadows`: under both. The
 * outer lock is taken first. After the end nothing of the inner engine changes but references.
 */
struct rs_capture {
	struct rs_engine *outer;
	struct rs_engine *inner; /* NULL: no segment was met */
	uint64_t id, graph;
	struct rs_queue origin;
	uint32_t refs;
	uint8_t ending; /* nothing more is followed */
	uint8_t ended;
	/* nodes were added that no call has made, or that nobody could follow: who knows what they write; or threads have met */
	uint8_t foreign;
	uint32_t calls;	  /* between before and after */
	uint32_t looking; /* threads that ask the driver for nodes */
	uint64_t nodes;	  /* as counted when there were none last; UINT64_MAX: not known */
	struct rs_seat *seats;
	RS_VEC(struct rs_mirror) mirrors;
	struct rs_shadow *shadows;
	RS_VEC(struct rs_promise) promises;
	struct rs_replay *script, **script_end; /* in the order in which the replays ended */
	RS_VEC(struct rs_words *) digests;	/* that the script compares; no references */
	uint64_t nwords;
	struct rs_results *spare;
	struct rs_launched *last; /* the youngest launch that is not judged yet */
	struct rs_capture *next;  /* of the outer engine's */
};

/* Nothing of it is judged or added to the graph. */
static inline int rs_capture_only_learns(const struct rs_capture *c)
{
	return c->outer->config.capture == RS_CAPTURES_LEARN;
}

/* The outer engine's operations without the clock around them: nothing of a capture can be timed. */
const struct rs_devops *rs_capture_ops(const struct rs_engine *outer);
/*
 * Around a call in it: its nodes are counted, and compared when no other call is in between. Without locks, and with a
 * reference.
 */
enum rs_look { RS_CALL_BEGINS, RS_CALL_ENDS };
void rs_capture_look(struct rs_capture *c, enum rs_look why);
/* The one of that id, or, id 0, that q takes part in; with a reference. NULL: none that is followed. Without locks. */
struct rs_capture *rs_capture_find(struct rs_engine *e, struct rs_queue q, uint64_t id);

/* capture_window.c */
/* The calling thread, inside. There is an inner engine. Outer lock held; NULL: no memory. */
struct rs_thread *rs_capture_seat_of(struct rs_capture *c, const struct rs_thread *t);
/* The windows that a captured call lies in are of this capture, or cannot be vouched for. Outer lock held. */
void rs_capture_enter(struct rs_capture *c, const struct rs_thread *t);
/* Close the i-th mirror. Outer lock held, and released. */
void rs_capture_close_at(struct rs_capture *c, uint32_t i, int aborted);

/* capture_memory.c */
void rs_capture_shadows_free(struct rs_capture *c);   /* inner lock held */
void rs_capture_promises_break(struct rs_capture *c); /* outer lock held */

/* capture_run.c */
/* After the last replay: which digests are to be copied away. Outer lock held. */
void rs_capture_script_ends(struct rs_capture *c);
/* Before the capture goes. Without locks. */
void rs_capture_results_free(struct rs_capture *c);

#endif
