/* SPDX-License-Identifier: MIT */
/*
 * Where in the program a thread is: its native and Python frames, deduplicated, as a number.
 *
 * The engine asks (rs_engine_config.where) about calls that a finding may name, without any lock held; nobody else does, and
 * nobody asks from inside a hook of the loader. A stack is looked up by a digest of its addresses; a new one is described
 * at once (modules may be unloaded, code may be freed), and written to events.jsonl when the first finding
 * names it. The table is bounded: what does not fit is counted and not known.
 *
 * Callers: init.c, report.c, wrap_graph.c, and the engine on any thread. One lock, a leaf, in where.c; it is not held while
 * stacks or modules are looked at.
 */
#ifndef RS_SHIM_WHERE_H
#define RS_SHIM_WHERE_H

#include "shim/shim.h"

#define RS_WHERE_MOST 64u /* frames of each kind */

/* With option STACKS: finds an unwinder, and has the engine ask. */
void rs_where_start(struct rs_engine_config *config);
/* A step has begun: is there a Python by now? */
void rs_where_look(void);
/* Figures and names, into the object that is open. */
void rs_where_report(struct rs_json *j);

/*
 * What the thread's calls from now on are asked about is answered now: for a wrapper that describes its calls with a
 * lock of its own held.
 */
void rs_where_hold(struct rs_tls *t);
static inline void rs_where_release(struct rs_tls *t)
{
	t->where = 0;
}

/* --- where_native.c ------------------------------------------------------------------------------ */

/* What unwinds: a name. */
const char *rs_where_native_start(void);
/* Return addresses, innermost first, this library's own frames left out. Takes no lock but the loader's. */
unsigned rs_where_native(uint64_t *ret_ip, unsigned most);

struct rs_where_frame {
	uint64_t offset; /* from the module's first address; without a module, the address */
	uint32_t module; /* 0: none, such as code that was generated */
};
/* For each object of the process in turn; returns the number that the object is to have. */
typedef uint32_t rs_where_module_fn(const char *path, const uint8_t *build, unsigned build_bytes);
void rs_where_native_describe(const uint64_t *ip, unsigned n, struct rs_where_frame *ret,
			      rs_where_module_fn *module);

/* --- where_python.c ------------------------------------------------------------------------------ */

/* A frame of the calling thread: valid until the thread returns to the interpreter. */
struct rs_where_pyframe {
	const void *code, *file, *name;
	int32_t at; /* the instruction, as a byte offset; -1: not known */
	int32_t first_line;
};

/* Look for an interpreter in the process, if none is known. */
void rs_where_python_look(void);
/* "3.11"; "" where there is none; else what it is whose frames cannot be read. */
const char *rs_where_python_name(void);
/*
 * Innermost first. Needs no GIL: a thread's own frames do not change while it is here. Takes no lock, no reference, no
 * memory, and calls nothing that does.
 */
unsigned rs_where_python(struct rs_where_pyframe *ret, unsigned most);
/* The frame's text in UTF-8, cut to fit, and its line. */
void rs_where_python_describe(const struct rs_where_pyframe *f, char *file, size_t file_size,
			      char *name, size_t name_size, unsigned *ret_line);

#endif
