/* SPDX-License-Identifier: MIT */
/*
 * The log of a forward's calls (pairing.c). Part of model.h, which includes it. engine.lock is held.
 */
#ifndef RS_TRACKER_LOG_H
#define RS_TRACKER_LOG_H

#include <stdint.h>

struct rs_engine;
struct rs_segment;
struct rs_words;

/* The forward's calls, to pair with the replay's. */
struct rs_logged_access {
	uint64_t serial, off, len;
	uint64_t at;		 /* where the argument points, if nobody knows how far it reaches */
	uint8_t dir, cls, exact; /* cls: of writes; exact: bounds known, digest comparable */
	uint8_t whole;		 /* nobody knows which of these bytes */
	uint16_t slot, piece;
	uint16_t late;		 /* of digest: rs_access.late */
	struct rs_words *digest; /* products */
};
struct rs_logged_call {
	uint64_t ident;
	const char *name;
	uint64_t call;	   /* number of the call, pairs before and after */
	uint64_t repeated; /* number of the call of a replay that was paired with it last */
	uint64_t scalars;  /* digest of a kernel's arguments that point nowhere; 0: not known */
	uint8_t refused;   /* the driver has not made it */
	uint32_t first, n; /* into accesses */
};

/* Memory of a log that is gone, for the next forward's. */
struct rs_log_room {
	struct rs_logged_call *log;
	struct rs_logged_access *accesses;
	uint32_t log_cap, accesses_cap;
};
#define RS_LOG_ROOMS 16u

/* A segment goes, one begins; the engine goes. */
void rs_log_spare(struct rs_engine *e, struct rs_segment *s);
void rs_log_take_spare(struct rs_engine *e, struct rs_segment *s);
void rs_logs_fini(struct rs_engine *e);

#endif
