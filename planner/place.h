/* SPDX-License-Identifier: MIT */
/*
 * Places in the program: the "module" and "stack" lines of a run, for people and for machines.
 *
 * Native frames are return addresses in files; names and lines are looked up when somebody asks, in the files
 * that are there now, if they are the same builds. Callers: run_line.c, the reports. Single-threaded.
 */
#ifndef RS_PLANNER_PLACE_H
#define RS_PLANNER_PLACE_H

#include <stdio.h>

#include "planner/rundir.h"

/* What is wrong with a line: a field's name, or NULL; then it has been added. */
const char *rs_place_add_module(struct rs_run *run, json_t *o);
const char *rs_place_add_stack(struct rs_run *run, json_t *o);
void rs_place_forget(struct rs_run *run);

/* The number of the place in an object ("writer", "noticed"), 0: it has none. */
json_int_t rs_place_of(const json_t *o);

/* {"python": [...], "native": [...]} with names and lines; NULL: no such stack. A new reference. */
json_t *rs_place_json(const struct rs_run *run, json_int_t id);
/* "train.py:123 in step() <- train.py:200 in main()"; "": not known. To be freed; NULL: no memory. */
char *rs_place_text(const struct rs_run *run, json_int_t id);
/* Every frame in a line of its own. */
void rs_place_print(FILE *out, const struct rs_run *run, json_int_t id, const char *indent);

#endif
