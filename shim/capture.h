/* SPDX-License-Identifier: MIT */
/*
 * Which graphs have preserved replays in them (tracker/capture.h): from the end of a stream capture to the launches of
 * what is instantiated from its graph.
 *
 * A graph that was captured is known by its handle, and so are its clones. Executable ones have a list in their
 * description (struct rs_graph), made when they are instantiated or updated, and a print of what they do: if that differs from the
 * print at the capture's end, or a node is changed later, the graph is no longer what was captured. A graph that is
 * put into another one keeps its memory for ever, because nobody sees when that one goes.
 * Locks: one mutex around the list of graphs, a leaf.
 */
#ifndef RS_SHIM_CAPTURE_H
#define RS_SHIM_CAPTURE_H

#include "shim/queue.h"
#include "tracker/capture.h"

/* A captured graph inside of an executable one. */
struct rs_captured {
	struct rs_capture *capture; /* a reference */
	uint64_t print;
};
struct rs_captured_list {
	struct rs_captured *v;
	size_t n;
};

void rs_capture_began(struct rs_queue q);
/* Around a captured call that is not described, but makes a node: memory, or an event. */
void rs_capture_unseen(struct rs_tls *t, CUstream stream, enum rs_flavour flavour, int begins);
/* After a captured allocation, begun as that (addr 0: it has failed); and around a captured free. */
void rs_capture_allocated(struct rs_tls *t, CUstream stream, enum rs_flavour flavour, uint64_t addr,
			  uint64_t bytes);
void rs_capture_frees(struct rs_tls *t, CUstream stream, enum rs_flavour flavour, uint64_t addr);
void rs_capture_freed(struct rs_tls *t, CUstream stream, enum rs_flavour flavour, uint64_t addr,
		      CUresult r);
/* A captured stream has recorded an event, or waited for one; 0: it comes after all of the capture. */
void rs_capture_recorded(struct rs_tls *t, CUstream stream, enum rs_flavour flavour,
			 uint64_t event);
void rs_capture_waited(struct rs_tls *t, CUstream stream, enum rs_flavour flavour, uint64_t event);
/* Around a call that sets (resets), or adds to, what a captured stream's next node comes after. */
uint64_t rs_capture_resets(struct rs_tls *t, CUstream stream, enum rs_flavour flavour, int set);
void rs_capture_reset(struct rs_tls *t, CUstream stream, enum rs_flavour flavour, uint64_t event,
		      int set, CUresult r);
/* Before the driver ends the capture; and after, if it is over. graph NULL: none has come of it. */
void rs_capture_ends(struct rs_queue q);
void rs_capture_over(struct rs_tls *t, struct rs_queue q, CUgraph graph);

void rs_captured_cloned(CUgraph clone, CUgraph of);
/* The graph becomes part of another one. */
void rs_captured_embedded(CUgraph graph);
/* Everything in an executable graph does, because its launch is being captured. */
void rs_captured_list_embedded(const struct rs_captured_list *l);
void rs_captured_gone(CUgraph graph);

/* The captures in a graph, with references; print: of what is in it now. Those that differ are embedded. */
struct rs_captured_list rs_captured_of(CUgraph graph, uint64_t print, int *ret_altered);
void rs_captured_list_free(struct rs_captured_list *l);
/* Is there an executable graph with captures? Cheap. */
int rs_captured_any(void);

/* Around the driver's launch. */
void rs_captured_launches(const struct rs_captured_list *l, struct rs_queue q);
void rs_captured_launched(const struct rs_captured_list *l, struct rs_queue q, int vouched,
			  CUresult r);

#endif
