/* SPDX-License-Identifier: MIT */
/*
 * A thread's memory of the launches it has described: identity, the bounds that PTX analysis gave, and the
 * accesses. A training step repeats its launches, in the same order, so most of them are found here, and
 * most of those where the one before leads to (next).
 *
 * Direct mapped, RS_MEMOS entries, each with room of its own; keys are compared in full, so a collision costs a
 * description, never a wrong answer. Bounds follow from the key alone; accesses are those of a generation
 * of addresses (rs_memo_generation), for they name memory.
 * A launch gets an entry when it is made for the third time: `glanced` and `seen` have hashes, quick and whole, of those that were
 * made once and twice. Before, one with PTX has the passing entry of its shape: kernel, grid and blocks. Most launches that
 * are new are like the shape's last one but for pointers, which change no bounds.
 * Callers: wrap_launch.c, the owning thread only. No locks.
 */
#ifndef RS_SHIM_MEMO_H
#define RS_SHIM_MEMO_H

#include "shim/describe.h"

#include <string.h>

#define RS_MEMOS	4096u
#define RS_MEMO_NEW	64u
#define RS_MEMO_GLANCED 4096u
#define RS_MEMO_MOST	65536u /* bytes of parameters; no device has taken more than 32764 */

struct rs_memo {
	/* the key */
	const struct rs_code *code; /* lives as long as the process; NULL: an empty entry */
	const void *owner;	    /* module or library: whose global variables */
	uint64_t ctx;
	unsigned grid[3], block[3], shared;
	uint32_t bytes; /* of the parameters */
	uint8_t *params;

	struct rs_memo *next; /* of the launch that came after this one the last time */
	uint64_t ident;
	uint64_t generation; /* of the accesses; 0: there are none yet */
	uint64_t calm; /* a moment at which the launch needed nothing on queue calm_q; 0: none */
	struct rs_queue calm_q;
	uint64_t calm_generation; /* of what it may reach, then */
	uint8_t bounded;	  /* extents and reach are filled in */
	uint8_t passing; /* one of memos_new: the next new launch of the shape takes it over */
	uint8_t everything, untracked;
	uint32_t naccess;
	uint32_t params_cap, extents_cap, access_cap;
	struct rs_access *access;
	struct rs_ptx_extent *extents;
	struct rs_reach *reach; /* what of them is not empty; in the same room */
	uint32_t nreach;
};

/* Something other than the engine's memory changed that a description depends on. */
void rs_memo_void(void);
extern uint64_t rs_memo_voided;

/* Never 0. addresses: rs_engine_generation, before anything is looked up for the call. */
static inline uint64_t rs_memo_generation(uint64_t addresses)
{
	return 1 + addresses + __atomic_load_n(&rs_memo_voided, __ATOMIC_ACQUIRE);
}

static inline void rs_memo_calm(struct rs_memo *m, uint64_t moment, struct rs_queue q,
				uint64_t generation)
{
	m->calm = moment;
	m->calm_q = q;
	m->calm_generation = generation;
}

/*
 * Has the engine said of this very launch, on this queue, that it needs nothing, and is that still so? At another moment it is
 * asked about the same accesses again, as long as the description is valid (generation).
 */
static inline int rs_memo_is_calm(struct rs_memo *m, struct rs_tls *t, struct rs_queue q)
{
	uint64_t addresses = rs_engine_generation(rs_state.engine), moment;
	uint64_t generation = rs_memo_generation(addresses);

	if (rs_likely(m->calm == rs_engine_moment(rs_state.engine) &&
		      m->calm_generation == generation && m->calm_q.stream == q.stream &&
		      m->calm_q.ctx == q.ctx))
		return 1;
	if (m->generation != generation || !m->calm)
		return 0;
	moment = rs_engine_again(rs_state.engine, t->thread, q, m->access, m->naccess, addresses);
	if (!moment)
		return 0;
	rs_memo_calm(m, moment, q, generation);
	return 1;
}

/* The entry for that launch, if it is the one that followed the thread's last launch before; else NULL. */
struct rs_memo *rs_memo_next(struct rs_tls *t, const struct rs_kernel *k,
			     const struct rs_launch *l);
/*
 * Is it certainly none that was made before, by the words alone that its parameters are, where they lie? Then it has no entry
 * and gets none. 0: look closer (rs_memo_get), and so it is for what has PTX.
 */
int rs_memo_is_new(struct rs_tls *t, const struct rs_kernel *k, const struct rs_launch *l);
/*
 * The entry for that launch; what it does not know yet is the caller's to fill in. NULL without memory, or for a
 * parameter block that no device takes.
 */
struct rs_memo *rs_memo_get(struct rs_tls *t, const struct rs_kernel *k, const struct rs_launch *l,
			    struct rs_params p);
/* Room for n extents in the entry, and as many of reach; NULL without memory. */
struct rs_ptx_extent *rs_memo_room(struct rs_memo *m, uint32_t n);
static inline void rs_memo_recall(const struct rs_memo *m, struct rs_call *call)
{
	call->ident = m->ident;
	call->access = m->access;
	call->naccess = m->naccess;
	call->everything = m->everything;
	call->untracked = m->untracked;
}

/* The call is described: keep that. */
void rs_memo_keep(struct rs_memo *m, const struct rs_call *call, uint64_t generation);
/* At the thread's end. */
void rs_memo_drop(struct rs_tls *t);

#endif
