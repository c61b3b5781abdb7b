/* SPDX-License-Identifier: MIT */
/*
 * The reader of plan files (REPLAYSHIM_PLAN), which `replayctl plan -o` writes:
 *
 *   {"plan_version": 1, "fingerprint": "0x...", "budget": bytes, "arena": bytes, "peak": bytes, "time": ns, "bound": ns,
 *    "segments": [{"segment": name, "invocation": n, "option": "retain", "restore": "copy",
 *                  "forward": bytes, "backward": bytes}, ...]}
 *
 * Segments are in forward order. A plan is taken whole or not at all; fields that are not known are passed over. Nothing here
 * is global; the shim calls it once, at its start.
 */
#ifndef RS_TRACKER_PLANFILE_H
#define RS_TRACKER_PLANFILE_H

#include <stddef.h>

#include "tracker/jdoc.h"
#include "tracker/plan.h"

#define RS_PLANFILE_VERSION  1
#define RS_PLANFILE_MAX_SIZE (8u << 20)

/*
 * From memory; the text is changed. *ret_entries has head->n of them, to be freed. generation is 1 and from_step 0. The
 * fingerprint must be that of the segments. 0, -EINVAL and *ret_error, -ENOMEM.
 */
int rs_planfile_parse(char *text, size_t size, struct rs_plan_head *ret_head,
		      struct rs_plan_entry **ret_entries, struct rs_jdoc_error *ret_error);
/* The file is read once. Also what the system says, with *ret_error's text. */
int rs_planfile_load(const char *path, struct rs_plan_head *ret_head,
		     struct rs_plan_entry **ret_entries, struct rs_jdoc_error *ret_error);

#endif
