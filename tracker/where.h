/* SPDX-License-Identifier: MIT */
/*
 * Who made a call, and where in the program.
 *
 * Only of calls that a finding may name is it asked where the thread is (rs_engine_config.where): those that overwrite what a
 * pending forward has read, that race with it or contradict its contract, or that are why a window cannot vouch for
 * itself. Whoever takes such a call down says so (rs_where_want) under engine.lock, where nobody may look at
 * stacks; rs_engine_before reserves an entry for the call then, and asks when the lock is released. Findings look their
 * writer up by the call's number. The entries are a ring: of a call that so many others came after, the place is forgotten.
 *
 * Callers: the engine. Locks: engine.lock, but for rs_where_take, which is called without.
 */
#ifndef RS_TRACKER_WHERE_H
#define RS_TRACKER_WHERE_H

#include <stdint.h>

struct rs_engine;
struct rs_window;

struct rs_writer {
	const char *name; /* kernel or entry point, immortal */
	uint8_t kind;	  /* enum rs_call_kind */
	uint8_t how;	  /* enum rs_how */
	uint64_t call;	  /* n-th call of the process */
	uint64_t step;
	const char *window; /* interned label, or "" */
	uint32_t q; /* where it was enqueued, and its tick there; 0: order is not followed */
	uint64_t tick;
	uint64_t noticed; /* call that found the writer out, where that was later; 0: none */
};

/* Why a window cannot vouch for itself, or does not do what it did: the first call that is to blame. */
enum rs_cause {
	RS_CAUSE_NONE,
	RS_CAUSE_UNKNOWN_WRITER,
	RS_CAUSE_UNTRACKED,
	RS_CAUSE_HOST_EFFECT,
	RS_CAUSE_DRAW,
	RS_CAUSE_ARGUMENTS,
	RS_CAUSES
};
struct rs_causes {
	struct rs_writer by[RS_CAUSES]; /* name NULL: none */
};

/* One entry: the number of a call and its place, 0: not known (yet). */
#define RS_WHERE_RING 65536u
#define RS_WHERE_BITS 16
struct rs_where {
	uint64_t *ring; /* atomic; NULL: nobody is asked */
	uint64_t n;	/* reserved so far */
	uint8_t wanted; /* the call that is being looked at may come to stand in a finding */
};

void rs_where_init(struct rs_engine *e); /* without memory nobody is asked */
void rs_where_fini(struct rs_engine *e);

/* The call that is being looked at has been taken down. Harmless when there is none. */
void rs_where_want(struct rs_engine *e);
/* The cause behind an enum rs_flag. */
enum rs_cause rs_where_blame(uint32_t flag);
/* A call of the window raises these of them. */
void rs_where_flags(struct rs_engine *e, struct rs_window *w, uint32_t flags,
		    const struct rs_writer *who);
void rs_where_pass_on(struct rs_causes *to, const struct rs_causes *from);

/* If it was wanted: an entry for the call; 0: none. Numbers of calls come in nearly their order. */
uint64_t rs_where_reserve(struct rs_engine *e, uint64_t call);
void rs_where_take(struct rs_engine *e, uint64_t call, uint64_t entry); /* 0: nothing to do */
/* The place of a call, ready to be given in a line; 0: not known. */
uint32_t rs_where_of(struct rs_engine *e, uint64_t call);

#endif
