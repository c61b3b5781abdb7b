/* SPDX-License-Identifier: MIT */
/*
 * Contracts as documents: learned from a run's directory, read, written, compared. The format is
 * planner/contract.schema.json; the library reads what it needs of it by itself (tracker/contract.h).
 *
 * A contract is a jansson object. Callers: cmd_contract.c, cmd_diff.c, cmd_verify.c, cmd_run.c. Single-threaded.
 */
#ifndef RS_PLANNER_CONTRACT_H
#define RS_PLANNER_CONTRACT_H

#include "planner/rundir.h"

#define RS_CONTRACT_FORMAT 1

struct rs_contract_why {
	char text[512];
};

/* What replays of the runs took, collected while their records are read (fn for rs_rundir_read). */
struct rs_contract_times;
struct rs_contract_times *rs_contract_times_create(void);
void rs_contract_times_free(struct rs_contract_times *t);
void rs_contract_times_add(void *times, const struct rs_run *run, const struct rs_replay *replay);

/*
 * From the process directories of one run. Directories in which nothing was learned are passed over; the others
 * must be of one program (their calls are the same) and are merged: state and windows are united, numbers of
 * reads and overwrites are added, of sizes and times the largest is taken, of verdicts the worst. 0, -ENODATA, -EINVAL with
 * *why, -ENOMEM.
 */
int rs_contract_learn(struct rs_run *const *runs, size_t n, const struct rs_contract_times *times,
		      json_t **ret_contract, struct rs_contract_why *why);

/* Complete and of this version, or -EINVAL and *why. -errno of the system. */
int rs_contract_read(const char *path, json_t **ret_contract, struct rs_contract_why *why);

/*
 * Whole or not at all. Without `force` a file that is there is left alone (-EEXIST); with it, what it has in
 * fields that are not known here is taken over.
 */
int rs_contract_write(const char *path, json_t *contract, int force, struct rs_contract_why *why);

/* A file, or a run's directory from which is learned. */
int rs_contract_open(const char *path, json_t **ret_contract, struct rs_contract_why *why);

/* What differs: an array of {"segment", "kind", "what", "old", "new"}, empty for equal ones. */
json_t *rs_contract_diff(const json_t *a, const json_t *b);

/* The name by which state is found again: "region" or "call 0 slot 1 piece 0", with its offset and bytes. */
char *rs_contract_state_name(const json_t *state);

/* contract_alias.c: an "alias" line as the document has it; its name; into an object by names, which takes it over. */
json_t *rs_contract_alias_of(const json_t *line);
char *rs_contract_alias_name(const json_t *alias);
/* The elements of a segment's list as an object, by their names. A new reference. */
json_t *rs_contract_by_name(const json_t *segment, const char *list,
			    char *(*name_of)(const json_t *));
void rs_contract_alias_put(json_t *all, json_t *alias);
/* What differs between the aliases of two segments: fn(arg, kind, name, old, new). */
typedef void rs_contract_alias_fn(void *arg, const char *kind, const char *what, json_t *old,
				  json_t *new);
void rs_contract_alias_diff(const json_t *a, const json_t *b, rs_contract_alias_fn *fn, void *arg);

/* By name, or NULL. */
json_t *rs_contract_segment(const json_t *contract, const char *name);

#endif
