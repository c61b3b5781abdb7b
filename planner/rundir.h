/* SPDX-License-Identifier: MIT */
/*
 * A run directory as the library leaves it: events.jsonl and records.jsonl of one process, read
 * into sums by segment and finding. docs: README.md, "What a run leaves".
 *
 * Invariants: any byte sequence is accepted. A line that cannot be used is a problem with file, line
 * and reason, and the rest is kept; a last line without its newline is a process killed while
 * writing. Memory grows with distinct segments and findings, not with the number of replays.
 * Callers: the report commands, the fuzzer; single-threaded.
 */
#ifndef RS_PLANNER_RUNDIR_H
#define RS_PLANNER_RUNDIR_H

#include <jansson.h>
#include <stdint.h>
#include <time.h>

#include "tracker/findings.h"

enum rs_outcome_of { RS_RUN_MATCH, RS_RUN_REJECTION, RS_RUN_DIVERGENCE };
enum rs_seen { RS_RUN_EQUAL, RS_RUN_DIFFERENT, RS_RUN_UNKNOWN };
enum rs_aspect { RS_RUN_ENTRY, RS_RUN_PRODUCT, RS_RUN_AFTER };

extern const char *const rs_outcome_names[3], *const rs_seen_names[3];

/* One line of records.jsonl; strings are borrowed for the time of the callback. */
struct rs_replay {
	const char *segment;
	uint64_t step, invocation, replay, ranges, bytes, ns;
	uint64_t stack; /* the place of its first finding, see place.h; 0: not known */
	enum rs_outcome_of outcome;
	enum rs_seen seen[3];
	json_t *codes; /* array of strings or NULL, borrowed */
};

struct rs_run_segment {
	char *name;
	uint64_t invocations; /* highest number seen, plus one */
	uint64_t replays, bytes, ns;
	uint64_t outcome[3], seen[3][3]; /* seen[aspect][value] */
	json_t *codes;			 /* code -> count */
	uint64_t errors, doubts;	 /* error findings: wrong / cannot be known */
};

#define RS_CODE_SIZE 16

/* Where one finding repeats (same code, segment, state and writer), it is counted. */
struct rs_run_finding {
	json_t *first; /* the event's object */
	char code[RS_CODE_SIZE];
	enum rs_severity severity;
	int doubt;	     /* says "nobody can know", as against "this went wrong" */
	const char *segment; /* into `first`, "" if absent */
	uint64_t count, first_step, last_step;
};

struct rs_run_fault {
	char *text; /* file:line: reason */
};

struct rs_costs;

struct rs_run {
	char *path;
	struct timespec when;  /* last write, orders runs */
	json_t *begin, *stats; /* latest such event or NULL */
	json_t *bypasses;      /* array of such events */
	json_t *contract;      /* latest such event or NULL */
	json_t *ranges;	       /* "range" events by domain, text and rule; the latest of each */
	json_t *markers;       /* fields of "markers" events */
	json_t *plan;	       /* latest plan event of one that was taken, or NULL */
	json_t *plan_refused;  /* and of one that was not */
	uint64_t plans_taken, plans_refused;
	json_t *modules, *stacks; /* by number, or NULL: see place.h */
	json_t *learned[3]; /* arrays of "segment", "state" and "alias" lines: see contract.h */
	struct rs_costs
		*costs; /* what "cost" lines and their like say, or NULL: see costing_json.h */
	int ended, cut; /* end event seen; a last line was cut off */
	uint64_t replays, outcome[3], seen[3][3], steps;
	uint64_t lines, bad_lines, newer_lines;
	struct rs_run_segment *segments;
	size_t nsegments;
	struct rs_run_finding *findings;
	size_t nfindings;
	struct rs_run_fault *problems; /* the first RS_RUN_PROBLEMS of them */
	size_t nproblems;
	/* private */
	json_t *segment_index, *finding_index;
	uint64_t last_step, step_changes;
};

#define RS_RUN_PROBLEMS 20

enum rs_learned_line {
	RS_RUN_LEARNED_SEGMENT,
	RS_RUN_LEARNED_STATE,
	RS_RUN_LEARNED_ALIAS,
	RS_RUN_LEARNED
};

enum rs_run_file { RS_RUN_EVENTS, RS_RUN_RECORDS };

/* Called for each good line of records.jsonl. */
typedef void rs_replay_fn(void *ctx, const struct rs_run *run, const struct rs_replay *replay);

/* An empty run; NULL without memory. */
struct rs_run *rs_run_create(const char *path);
void rs_run_free(struct rs_run *run);

/* A file of it cannot be read (errno); it counts as a line that cannot. */
void rs_run_unreadable(struct rs_run *run, enum rs_run_file file, int error);
/* One line, without its newline. `whole` is 0 for a last line that has none. */
void rs_run_feed(struct rs_run *run, enum rs_run_file file, uint64_t lineno, const char *line,
		 size_t len, int whole, rs_replay_fn *fn, void *ctx);

/* Findings to segments, worst first. After the last line. */
void rs_run_finish(struct rs_run *run);

/*
 * Read the process directory `dir`, or every process directory below it, newest first.
 * 0, -ENODATA (no run data there), or what the system said. `fn` may be NULL.
 */
int rs_rundir_read(const char *dir, rs_replay_fn *fn, void *ctx, struct rs_run ***ret_runs,
		   size_t *ret_n);
void rs_rundir_free(struct rs_run **runs, size_t n);

/* Paths of process directories at or below dir (depth 2); NULL-terminated, to be freed by element. */
int rs_rundir_list(const char *dir, char ***ret_paths, size_t *ret_n);

const struct rs_finding_info *rs_code_find(const char *code); /* "RS010", "rs10", "10" or NULL */

#endif
