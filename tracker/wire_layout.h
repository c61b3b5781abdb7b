/* SPDX-License-Identifier: MIT */
/*
 * The list of all fields in the shared memory, which the layout's digest goes over. For wire_layout.c and its test.
 */
#ifndef RS_TRACKER_WIRE_LAYOUT_H
#define RS_TRACKER_WIRE_LAYOUT_H

#include "tracker/wire.h"

struct rs_wire_field {
	const char *of, *name; /* name "": free because of the next one's alignment */
	uint64_t offset, bytes;
};
extern const struct rs_wire_field rs_wire_fields[];
extern const unsigned rs_wire_nfields;

#endif
