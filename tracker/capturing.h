/* SPDX-License-Identifier: MIT */
/* Between capture.c and capture_run.c: a capture and its launches. */
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
	uint64_t id;
	struct rs_queue origin;
	uint32_t refs;
	uint8_t ending; /* nothing more is followed */
	uint8_t ended;
	uint8_t foreign; /* nodes were added that no call has made: who knows what they write */
	uint32_t calls;	 /* between before and after */
	uint64_t nodes;	 /* as counted when there were none last; UINT64_MAX: not known */
	struct rs_seat *seats;
	RS_VEC(struct rs_mirror) mirrors;
	struct rs_shadow *shadows;
	struct rs_replay *script, **script_end; /* in the order in which the replays ended */
	RS_VEC(struct rs_words *) digests;	/* that the script compares; no references */
	uint64_t nwords;
	struct rs_results *spare;
	struct rs_launched *last; /* the youngest launch that is not judged yet */
	struct rs_capture *next;  /* of the outer engine's */
};

/* The outer engine's operations without the clock around them: nothing of a capture can be timed. */
const struct rs_devops *rs_capture_ops(const struct rs_engine *outer);
/* After the last replay: which digests are to be copied away. Outer lock held. */
void rs_capture_script_ends(struct rs_capture *c);
/* Before the capture goes. Without locks. */
void rs_capture_results_free(struct rs_capture *c);

#endif
