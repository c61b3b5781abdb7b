/* SPDX-License-Identifier: MIT */
/* Between ere_compile.c, which makes codes of patterns, and ere.c, which runs them. */
#ifndef RS_TRACKER_ERE_PRIV_H
#define RS_TRACKER_ERE_PRIV_H

#include "tracker/ere.h"

enum rs_ere_op {
	RS_ERE_BYTE, /* x: the byte */
	RS_ERE_ANY,
	RS_ERE_SET,   /* x: which */
	RS_ERE_SPLIT, /* x preferred, else y */
	RS_ERE_JUMP,  /* x */
	RS_ERE_SAVE,  /* x: twice the group, from 0, and 1 for its end */
	RS_ERE_BEGIN,
	RS_ERE_END,
	RS_ERE_MATCH,
};

struct rs_ere_code {
	uint8_t op;
	uint16_t x, y;
};

struct rs_ere_set {
	uint64_t bits[4];
};

struct rs_ere {
	uint16_t n, sets;
	uint8_t groups;
	uint16_t shortest;	 /* no shorter text matches */
	struct rs_ere_set first; /* bytes that a matching text, unless it is empty, begins with */
	struct rs_ere_set *set;	 /* behind the codes */
	struct rs_ere_code code[];
};

static inline int rs_ere_in(const struct rs_ere_set *s, unsigned char byte)
{
	return s->bits[byte / 64] >> byte % 64 & 1;
}

#endif
