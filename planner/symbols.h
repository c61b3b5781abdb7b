/* SPDX-License-Identifier: MIT */
/*
 * From an address in an object file to the name of its function, and to its line where there is debug information.
 *
 * Files are only read if their build id is the one asked for; nothing of them is believed: every offset is checked.
 * What was opened stays open to the end of the process, which is soon. Callers: place.c. Single-threaded.
 */
#ifndef RS_PLANNER_SYMBOLS_H
#define RS_PLANNER_SYMBOLS_H

#include <stdint.h>

struct rs_symbol {
	const char *function; /* NULL: not known; as long as the process */
	uint64_t plus;	      /* bytes from its beginning */
	const char *file;     /* NULL: not known */
	unsigned line;
};

/* address: of the object's own, as its headers have them. build: in hex; "": any. */
void rs_symbols_find(const char *path, const char *build, uint64_t address, struct rs_symbol *ret);

/* debuglines.c; NULL: no debug information, or nothing that reads it. */
struct rs_debuglines;
struct rs_debuglines *rs_debuglines_open(const char *path);
const char *rs_debuglines_find(struct rs_debuglines *d, uint64_t address, unsigned *ret_line);

#endif
