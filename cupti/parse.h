/* SPDX-License-Identifier: MIT */
/*
 * From a buffer of CUPTI's records to what they say. No state, no lock; any thread.
 *
 * Nothing that a buffer holds is believed: a record must lie in the buffer, behind the one before it, with the fields
 * that are read. What comes after one that does not is not looked at, because nobody knows where it begins.
 */
#ifndef RS_CUPTI_PARSE_H
#define RS_CUPTI_PARSE_H

#include "cupti/abi.h"

enum rs_cupti_what {
	RS_CUPTI_CALL,	  /* the call `correlation` was made in `window` */
	RS_CUPTI_BUSY,	  /* it kept the device busy from start to end */
	RS_CUPTI_UNTIMED, /* it did, nobody knows when */
};

struct rs_cupti_item {
	enum rs_cupti_what what;
	uint32_t correlation;
	uint64_t window;
	uint64_t start, end;
};

#define RS_CUPTI_BATCH 128u

struct rs_cupti_sink {
	void *arg;
	void (*items)(void *arg, const struct rs_cupti_item *items, unsigned n);
};

/*
 * 0 when the buffer was read to its end; -EINVAL when it broke off. Records of other kinds are passed over.
 * *ret_records is how many there were, of any kind.
 */
int rs_cupti_parse(rs_cupti_next_fn *next, uint8_t *buffer, size_t valid,
		   const struct rs_cupti_sink *sink, uint64_t *ret_records);

#endif
