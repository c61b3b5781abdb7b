/* SPDX-License-Identifier: MIT */
/*
 * Asking the planner process something, for the commands of replayctl. Waits at most ten seconds.
 */
#ifndef RS_PLANNER_ASK_H
#define RS_PLANNER_ASK_H

#include <jansson.h>
#include <stdint.h>

#include "tracker/wire.h"

#define RS_ASK_PATH 128u

/*
 * The planner's answer as text, to be freed, and its error (0 or -errno). 0, or -errno: there was no answer, *ret_text is a
 * sentence for people then. name: of the planner, or NULL. text: SET's.
 */
int rs_ask(const char *name, enum rs_wire_ask ask, uint64_t pid, const char *text, char **ret_text,
	   int *ret_error);
/* STATUS, parsed and checked to be an answer of this version; or NULL and a sentence on stderr. */
json_t *rs_ask_status(const char *command, const char *name);

/* The status as a table for people, not wider than `width` columns where that is possible. */
void rs_status_print(FILE *out, const json_t *status);

#endif
