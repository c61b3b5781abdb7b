/* SPDX-License-Identifier: MIT */
/*
 * The shared memory between a program and the planner process: one area for each program, made by the planner.
 *
 * The area is a memfd of exactly sizeof(struct rs_wire), sealed against shrinking and growing and filled with real
 * memory, that the planner hands over its socket: so nobody who holds the area can make the other's access fault, a
 * full /dev/shm does not matter, and one program cannot reach another one's area. Each word has one writer. There is no
 * lock and nothing to wait for: a side that dies leaves what it has published, whole.
 *
 * Whoever reads treats what it reads as hostile: counts and indices are checked at each use, text is bounded.
 */
#ifndef RS_TRACKER_WIRE_H
#define RS_TRACKER_WIRE_H

#include <stdatomic.h>
#include <stdint.h>

#include "tracker/costs.h"
#include "tracker/plan.h"

#define RS_WIRE_MAGIC 0x31737265796c7072ull
#define RS_WIRE_MAJOR 1u
#define RS_WIRE_MINOR 1u
#define RS_WIRE_RINGS                                                                              \
	16u /* threads that tell something; later ones share nothing and are counted as lost */
#define RS_WIRE_RECORDS 256u /* of a ring; a power of two */

/* --- the program tells ------------------------------------------------------------------------- */

enum rs_wire_kind {
	RS_WIRE_NONE,
	RS_WIRE_COST,  /* cost */
	RS_WIRE_SHARE, /* share */
	RS_WIRE_RATE,  /* rate */
	/*
	 * What was told of shares is void: u.share.pieces new ones follow. No plan is made until all of them are there, so after a
	 * loss the list is told again from its beginning.
	 */
	RS_WIRE_SHARES_BEGIN,
	RS_WIRE_FORGET /* the program's segments have changed: all that was told is void */
};

struct rs_wire_record {
	uint64_t kind; /* enum rs_wire_kind */
	union {
		struct rs_cost cost;
		struct rs_cost_share share;
		struct rs_cost_rate rate;
	} u;
};

/* One producer, a thread of the program; one consumer, the planner. */
struct rs_wire_ring {
	_Atomic uint64_t head; /* the producer's: records written so far */
	_Atomic uint64_t lost; /* the producer's: records for which there was no room */
	_Atomic uint64_t tail __attribute__((aligned(64))); /* the consumer's */
	struct rs_wire_record record[RS_WIRE_RECORDS] __attribute__((aligned(64)));
};

/*
 * Written by the program only; numbers for people, and what plans are shared by. Who it is (up to wanted, and its name)
 * is there before the first heartbeat: without one it has no budget, and no plan.
 */
struct rs_wire_client {
	_Atomic uint64_t heartbeat_ns; /* CLOCK_MONOTONIC of the last step */
	_Atomic uint64_t pid, started; /* as the program sees itself; field 22 of /proc/self/stat */
	_Atomic uint64_t device[2];    /* CUuuid; 0: not known */
	_Atomic uint64_t device_bytes;
	_Atomic uint64_t
		job; /* digest of the job's name; ranks of one job agree on plans; 0: alone */
	_Atomic uint64_t rank, ranks;
	_Atomic uint64_t wanted; /* bytes of budget asked for by REPLAYSHIM_BUDGET; 0: none */
	_Atomic uint64_t step, steps, step_ns;
	_Atomic uint64_t live_bytes, peak_bytes, arena_bytes, arena_used;
	_Atomic uint64_t turn_bytes, outside_bytes, segments;
	_Atomic uint64_t replays, rejections, divergences;
	_Atomic uint64_t plan_generation,
		plan_state; /* rs_plan_status of the plan that was taken last */
	_Atomic uint64_t plan_order, plan_predicted, plan_measured;
	_Atomic uint64_t rings; /* claimed so far */
	_Atomic uint64_t lost_threads;
	char program[128]; /* for people; written before the heartbeat is set first */
};

/* --- the planner tells -------------------------------------------------------------------------- */

/* A sequence lock: odd while it is written. */
struct rs_wire_plan {
	_Atomic uint64_t sequence;
	struct rs_plan_head head;
	struct rs_plan_entry entry[RS_PLAN_MAX];
	uint64_t digest; /* of head and the entries in use */
};

struct rs_wire {
	/* set before the area is handed over, and then never again */
	uint64_t magic;
	uint32_t major, minor;
	uint64_t bytes;	 /* sizeof(struct rs_wire) */
	uint64_t layout; /* rs_wire_layout() */
	uint64_t planner_pid;

	_Atomic uint64_t heartbeat_ns
		__attribute__((aligned(64))); /* the planner's CLOCK_MONOTONIC */
	_Atomic uint64_t
		generation; /* of the newest plan, which is in plan[generation & 1]; 0: none yet */
	/* Bytes, as of now: what was asked for, a share of the device, or what `replayctl set` says. 0: none */
	_Atomic uint64_t budget;
	/* The program is asked to preserve without plans; when it is set back, the newest one is meant for it. */
	_Atomic uint64_t off;

	struct rs_wire_client client __attribute__((aligned(64)));
	struct rs_wire_plan plan[2] __attribute__((aligned(64)));
	struct rs_wire_ring ring[RS_WIRE_RINGS] __attribute__((aligned(64)));
};

/* Digest over names, offsets and sizes of all fields: two builds that agree on it agree on the layout. */
uint64_t rs_wire_layout(void);
/* The planner: fill a zeroed area. */
void rs_wire_init(struct rs_wire *w, uint64_t planner_pid);
/* The program: is this an area that it understands? 0, or -EPROTO and what is wrong with it. */
int rs_wire_check(const struct rs_wire *w, uint64_t bytes, const char **ret_why);

/* The planner publishes; head->generation is set here, to one more than the last one's. Returns it; 0: too many entries. */
uint64_t rs_wire_publish(struct rs_wire *w, struct rs_plan_head *head,
			 const struct rs_plan_entry *entries);
/*
 * The program takes a copy of the newest plan if it is not generation `have`. entries has room for RS_PLAN_MAX. 1: there was
 * one; 0: nothing new; -EAGAIN: it is just being written, look again at the next step; -EPROTO: it is damaged.
 */
int rs_wire_take(const struct rs_wire *w, uint64_t have, struct rs_plan_head *ret_head,
		 struct rs_plan_entry *entries);

/* A ring for the calling thread, or NULL when all are taken. The program's side. */
struct rs_wire_ring *rs_wire_claim(struct rs_wire *w);
/* 0, or -ENOSPC, which is counted. */
int rs_wire_tell(struct rs_wire_ring *r, const struct rs_wire_record *record);
/* The planner's side: the next record that makes sense, 1, or 0. Never more than a ring's worth at a time. */
int rs_wire_hear(struct rs_wire_ring *r, struct rs_wire_record *ret_record);

/* --- the socket ------------------------------------------------------------------------------------ */

/*
 * A stream socket in a directory that only the user can enter. Whoever connects sends one request, and gets one answer:
 * HELLO is answered with the area's descriptor (SCM_RIGHTS) and the connection then stays open for as long as both live: its
 * end tells each side of the other one's death. All other requests are answered with text, and the connection ends.
 */
enum rs_wire_ask { RS_WIRE_HELLO = 1, RS_WIRE_STATUS, RS_WIRE_SET, RS_WIRE_STOP };

struct rs_wire_request {
	uint64_t magic;
	uint32_t major, ask; /* enum rs_wire_ask */
	uint64_t pid;	     /* HELLO: for people; who it is, the socket tells. SET: whom; 0: all */
	char text[232];	     /* SET: key=value */
};

struct rs_wire_answer {
	uint64_t magic;
	uint32_t major;
	int32_t error;	/* 0, or what is wrong, as -errno; HELLO: then no descriptor comes */
	uint64_t bytes; /* of text that follows; HELLO: of the area */
};

/*
 * The socket's path: $XDG_RUNTIME_DIR/replayshim/planner.sock, or /tmp/replayshim-<uid>/planner.sock; `name` (an option's
 * text, or NULL) takes the place of "planner". 0, -ENAMETOOLONG, -EINVAL (a slash in the name).
 */
int rs_wire_path(const char *name, char *const *env, char *out, unsigned size);
/* Is the socket's directory the user's own, and closed to others? 0 or -errno (-EACCES: it is not). */
int rs_wire_trust(const char *path);

/*
 * The other end's use of it. Nothing here waits: descriptors are non-blocking (and closed on exec), to be polled by who can
 * wait. A connection, or -errno: -ENOENT, -ECONNREFUSED: there is no planner; -EAGAIN: it is busy; -EACCES: the directory
 * is not to be trusted, or somebody else listens.
 */
int rs_wire_dial(const char *path);
/* Magic and version are filled in. 0 or -errno. */
int rs_wire_ask(int fd, struct rs_wire_request *request);
/*
 * 0: *ret_area is the area's descriptor, or -1 if the answer has none; text follows. -EAGAIN: nothing yet; -EPIPE: the
 * other side is gone; -EPROTO: what came is no answer (of this version).
 */
int rs_wire_answer(int fd, struct rs_wire_answer *ret_answer, int *ret_area);
/*
 * Map an area and check it (rs_wire_check): also that nobody can shrink it and that all of it has memory. 0 or -errno and a
 * reason. The descriptor stays the caller's, and is not needed any more; munmap(*ret_wire, sizeof(struct rs_wire)).
 */
int rs_wire_map(int area, struct rs_wire **ret_wire, const char **ret_why);

#endif
