/* SPDX-License-Identifier: MIT */
/*
 * The grammar of markers:
 *
 *   step:<n>                       retires what older steps preserved; closes windows left open
 *   forward:<name>[#<invocation>]  without a number, the n-th of that name in the step
 *   replay:<name>[#<invocation>]   without a number, matched by the first call's inputs
 *
 * A text that begins like a marker but is malformed (no name, a bad number) is an ordinary range: the grammar is small
 * enough that guessing would only hide the mistake. No state.
 */
#ifndef RS_TRACKER_MARK_H
#define RS_TRACKER_MARK_H

#include <stdint.h>

#include "tracker/name.h"

struct rs_mark {
	enum { RS_MARK_OTHER, RS_MARK_STEP, RS_MARK_FORWARD, RS_MARK_REPLAY } kind;
	char name[RS_NAME_BYTES];
	int64_t number;	   /* step, invocation, or -1 */
	const char *wrong; /* it begins like a marker: why it is none; or NULL */
};

/* text: NULL is none. */
struct rs_mark rs_mark_parse(const char *text);

#endif
