/* SPDX-License-Identifier: MIT */
/*
 * The verdict on a run and on a segment: three values, and the reasons for what is not clean.
 * docs: README.md, "Reading the report". Pure functions of struct rs_run.
 */
#ifndef RS_PLANNER_VERDICT_H
#define RS_PLANNER_VERDICT_H

#include "planner/rundir.h"

enum rs_verdict { RS_VERDICT_CLEAN, RS_VERDICT_CANNOT_TELL, RS_VERDICT_HAZARD };

const char *rs_verdict_word(enum rs_verdict v);	  /* for machines: clean, cannot-tell, hazard */
const char *rs_verdict_phrase(enum rs_verdict v); /* for people */

enum rs_verdict rs_verdict_segment(const struct rs_run_segment *s);

/* *ret_reasons: a new array of strings, empty for a clean run; may be NULL if not wanted. */
enum rs_verdict rs_verdict_run(const struct rs_run *run, json_t **ret_reasons);

/* Findings of one severity: repeats counted or not. */
uint64_t rs_verdict_count(const struct rs_run *run, enum rs_severity severity);

#endif
