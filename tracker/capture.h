/* SPDX-License-Identifier: MIT */
/*
 * Stream captures: what a program records into a graph while its segments' windows are open.
 *
 * Nothing of it runs now. The graph runs later, any number of times, and each time the same order of nodes finds other
 * bytes. A capture is therefore followed as a world of its own, by an engine inside of it (capture.c): what its
 * forwards read, what is overwritten afterwards and what its replays need are the same at each launch, and the copies,
 * digests and put-backs become nodes of the graph, on the streams and in the order in which they would run. They read nothing on the
 * host, wait for nothing and allocate nothing when the graph runs: their memory is taken while it is made.
 *
 * After each launch the digests are copied away, and when the device has come past that they are judged: a record for
 * each replay and launch. A replay is preserved if its forward is of the same capture; else it is rejected (RS030), as are
 * launches of a graph that was changed by hand, while it was captured or later, or put into another one, or in whose capture a
 * thread was at the bytes of another one's replay.
 *
 * Callers: the shim, any thread. config.capture must be set, devops.capture_of and capture_nodes.
 */
#ifndef RS_TRACKER_CAPTURE_H
#define RS_TRACKER_CAPTURE_H

#include "tracker/engine.h"

/* What is preserved inside of one captured graph: as long as somebody has a reference, its memory is there. */
struct rs_capture;

/* After the program has begun to capture q. */
void rs_engine_capture_begin(struct rs_engine *e, struct rs_queue q);
/* Around a captured call that the engine is not told of, and whose node writes nothing: an event. */
void rs_engine_capture_unseen(struct rs_engine *e, struct rs_queue q, int begins);
/*
 * A captured call that allocates, after it, with _unseen before it (addr 0: it has failed), and around one that frees: it
 * happens when the graph runs. See capture_memory.c.
 */
void rs_engine_capture_allocated(struct rs_engine *e, struct rs_thread *t, struct rs_queue q,
				 uint64_t addr, uint64_t bytes);
void rs_engine_capture_frees(struct rs_engine *e, struct rs_thread *t, struct rs_queue q,
			     uint64_t addr);
void rs_engine_capture_freed(struct rs_engine *e, struct rs_thread *t, struct rs_queue q,
			     uint64_t addr, int ok);
/*
 * The order of the graph: after q has recorded the event, or waited for it; event 0: q comes after everything that has
 * been captured so far.
 */
void rs_engine_capture_recorded(struct rs_engine *e, struct rs_thread *t, struct rs_queue q,
				uint64_t event);
void rs_engine_capture_waited(struct rs_engine *e, struct rs_thread *t, struct rs_queue q,
			      uint64_t event);
/*
 * Around a call that sets what the next node on q comes after: the tool's nodes must go on to be among that. What is returned
 * is for _reset. Where what it comes after is only added to, this is not called, and event and set are 0.
 */
uint64_t rs_engine_capture_resets(struct rs_engine *e, struct rs_queue q);
void rs_engine_capture_reset(struct rs_engine *e, struct rs_thread *t, struct rs_queue q,
			     uint64_t event, int set, int ok);
/*
 * Before the driver is asked to end the capture that began on q: windows that are still open end there. Further
 * calls in them are not followed.
 */
void rs_engine_capture_ends(struct rs_engine *e, struct rs_queue q);
/*
 * After it, if it is over. graph: whether one has come of it. Its reference is the caller's; NULL where nothing was put
 * into it.
 */
struct rs_capture *rs_engine_capture_end(struct rs_engine *e, struct rs_queue q, int graph);

struct rs_capture *rs_capture_ref(struct rs_capture *c);
/* Not from inside of a device operation. NULL is fine. With the last one its device memory goes. */
void rs_capture_unref(struct rs_capture *c);

/*
 * Around a launch of a graph that contains it, on q. Launches of one capture must not be mixed up: the caller
 * lets no other one come in between. vouched 0: the graph is no longer what was captured. ok: the driver has taken the launch.
 */
void rs_capture_launches(struct rs_capture *c, struct rs_queue q);
void rs_capture_launched(struct rs_capture *c, struct rs_queue q, int vouched, int ok);
/* It has become part of another graph, where nobody will see its launches: one rejection for each replay says so. */
void rs_capture_embedded(struct rs_capture *c);

/* Does the address lie in memory for bytes preserved in captures? */
int rs_engine_capture_owns(struct rs_engine *e, uint64_t addr);

#endif
