/* SPDX-License-Identifier: MIT */
/*
 * Between the files of the planner process: serve.c (the loop), serve_peer.c (connections), serve_area.c (a program's shared
 * memory), serve_budget.c (who may take how much of a device), serve_plan.c (making and publishing plans),
 * serve_status.c (what is told to people).
 *
 * Everything is done by one thread, which never waits for a program: descriptors are non-blocking, shared memory is only
 * looked at. All times are CLOCK_MONOTONIC.
 */
#ifndef RS_PLANNER_SERVE_PRIV_H
#define RS_PLANNER_SERVE_PRIV_H

#include <jansson.h>
#include <stddef.h>

#include "planner/costing.h"
#include "planner/serve.h"
#include "tracker/wire.h"

#define RS_SERVE_CLIENTS  256u
#define RS_SERVE_PEERS	  (RS_SERVE_CLIENTS + 64u) /* connections, with those that ask for text */
#define RS_SERVE_SECOND	  UINT64_C(1000000000)
#define RS_SERVE_REFUSALS 3u /* plans for the same segments and budget that a program may refuse */

/* The program's words, read once in each round, so that a round works with the same numbers throughout. */
struct rs_serve_view {
	uint64_t heartbeat_ns, device[2], device_bytes, job, rank, ranks, wanted;
	uint64_t step, steps, step_ns, live_bytes, peak_bytes, arena_bytes, arena_used;
	uint64_t turn_bytes, outside_bytes, segments, replays, rejections, divergences;
	uint64_t plan_generation, plan_state, plan_order, plan_predicted, plan_measured;
	uint64_t lost, lost_threads;
};

/* What was planned for a program last. */
struct rs_serve_made {
	uint64_t generation; /* in its area; 0: nothing */
	uint64_t agreement;  /* one number for all programs that got the same decisions */
	uint64_t ns;	     /* when; also of a look that changed nothing */
	uint64_t digest;     /* of the decisions */
	uint64_t fingerprint, budget, from_step, peak, arena;
	int64_t time;
	int infeasible;
};

/* A program that takes plans. */
struct rs_serve_client {
	struct rs_wire *w;
	uint64_t pid, started; /* as the kernel says; 0: not known here */
	int pidfd;	       /* or -1 */
	struct rs_serve_view view;
	char program[sizeof(((struct rs_wire_client *)0)->program)];

	/* What it told. */
	struct rs_costs costs;
	uint64_t fingerprint;		  /* of costs */
	uint64_t shares_due, shares_told; /* of the list that is being told */
	uint64_t unbelievable;		  /* records that were not taken */
	uint64_t ready_ns;		  /* since when its costs are complete; 0: they are not */
	const char *why;		  /* they are not */

	/* Budget. */
	uint64_t set;		   /* by replayctl set, if has_set */
	uint64_t ask, need, claim; /* see serve_budget.c */
	uint64_t needs_ask;	   /* for which they were found, if needs_known */
	uint64_t budget;	   /* its share, as published */
	uint64_t
		shrunk_ns; /* when the share was last made smaller, while no plan obeys that; else 0 */
	int has_set, off, needs_known;
	int withheld; /* the plan in its area is not meant for it any more, and it has been told to be off */

	/* Plans. */
	struct rs_serve_made made;
	struct rs_cost *basis; /* segments that plan was made from, as they were: basis_n */
	uint32_t basis_n, basis_shares;
	struct rs_cost_rate basis_rate[RS_RATES];
	uint64_t basis_turn, basis_outside;
	uint64_t judged; /* generation whose refusal has been dealt with */
	uint64_t extra;	 /* bytes left alone because a plan took more than was predicted */
	uint64_t given_up,
		given_up_budget; /* fingerprint and budget for which no plan is made any more */
	unsigned refusals;
};

struct rs_serve {
	struct rs_serve_options options;
	uint64_t started_ns, beat_ns;
	uint64_t budget; /* of each device, as of now */
	struct rs_serve_client *client[RS_SERVE_CLIENTS];
	unsigned clients;
	uint64_t agreements, plans, refused, peers_dropped;
	int stop;
};

uint64_t rs_serve_now(void);

/* --- serve_area.c ----------------------------------------------------------------------------------- */

/* A new program's area. 0, *ret_client and the descriptor to hand over; -EUSERS: there are too many; -errno. */
int rs_serve_admit(struct rs_serve *s, uint64_t pid, struct rs_serve_client **ret_client,
		   int *ret_area);
void rs_serve_part(struct rs_serve *s, struct rs_serve_client *c);
/* Read its words and rings. 1: there may be more. */
int rs_serve_hear(struct rs_serve_client *c, uint64_t now);
/* Field 22 of /proc/<pid>/stat, or 0. */
uint64_t rs_serve_started(uint64_t pid);

/* --- serve_budget.c --------------------------------------------------------------------------------- */

/* Who may take how much: sets budget of all, and tells them. */
void rs_serve_budgets(struct rs_serve *s, uint64_t now);

/* --- serve_plan.c ----------------------------------------------------------------------------------- */

/* Make at most one plan, for one program or the ranks of one job. 1: one was made, there may be more to do. */
int rs_serve_plan(struct rs_serve *s, uint64_t now);
/* It has no budget, or shall be without plans: it is told so, and stays told until there is another plan. */
void rs_serve_withhold(struct rs_serve_client *c);
/* How plans are made here; budget is filled in. */
struct rs_wish rs_serve_wish(uint64_t budget);

/* --- serve_basis.c ---------------------------------------------------------------------------------- */

/* Is what it told now another matter than what its plan was made from? Noise is not. */
int rs_serve_drifted(const struct rs_serve_client *c);
/* A plan is made from its costs as they are. 0 or -ENOMEM. */
int rs_serve_based(struct rs_serve_client *c);

/* --- serve_status.c --------------------------------------------------------------------------------- */

/* The status as text (JSON, malloc'ed) or NULL. */
char *rs_serve_status(const struct rs_serve *s, uint64_t now);
/* key=value for one program, or pid 0: all. 0 and a sentence for people, or -errno and one. */
int rs_serve_set(struct rs_serve *s, uint64_t pid, const char *text, char *ret_say, size_t size);

/* --- serve_peer.c ----------------------------------------------------------------------------------- */

struct rs_serve_peer {
	int fd;
	uint64_t since_ns;
	pid_t pid;
	union {
		struct rs_wire_request request;
		char bytes[sizeof(struct rs_wire_request)];
	} in;
	size_t in_n;
	char *out; /* an answer that is being written: out_at of out_n */
	size_t out_n, out_at;
	int stops; /* it asked the planner to end, and is answered when that is so */
	struct rs_serve_client *client;
};

/* fd is the peer's from now on; NULL: it is closed. */
struct rs_serve_peer *rs_serve_peer_new(int fd, uint64_t now);
/* What poll(2) said of it. 0, or -errno: it is over, drop it. */
int rs_serve_peer_turn(struct rs_serve *s, struct rs_serve_peer *p, short events);
/* It has had its time. */
int rs_serve_peer_late(const struct rs_serve_peer *p, uint64_t now);
short rs_serve_peer_wants(const struct rs_serve_peer *p);
/* The planner's name and lock are another's to take: whoever asked for that is told. */
void rs_serve_peer_left(struct rs_serve_peer *p);
void rs_serve_peer_free(struct rs_serve *s, struct rs_serve_peer *p);

#endif
