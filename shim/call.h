/* SPDX-License-Identifier: MIT */
/*
 * Building a struct rs_call in a wrapper: identity, queue and the ranges that it touches.
 *
 * That is not done for a call that nobody has a use for (RS_ENTER_CALL): versions only mean something to pending
 * forwards, so while there is none, and no window is open, a write changes nothing that anybody will look at.
 * Hence unknown writers and untracked addresses are counted while a segment may be affected, else not.
 *
 * Nor is it done for one that is like an earlier call of the same thread, as far as the engine cares, as long as
 * nothing has changed that the engine's answer rested on (rs_engine_moment): a copy of the same two addresses or a fill of
 * the same one, here, and a launch of the same arguments (memo.h). Where it is like none the engine is asked about its
 * addresses alone (rs_engine_again_reach, rs_engine_again_words) before anything is described.
 *
 * A range is only handed on when the engine knows memory there. Unknown device memory sets `untracked`;
 * unknown host memory is the program's business.
 */
#ifndef RS_SHIM_CALL_H
#define RS_SHIM_CALL_H

#include "shim/guard.h"
#include "shim/queue.h"
#include "tracker/digest.h"

static inline int rs_call_idle(struct rs_tls *t, CUstream stream, enum rs_flavour flavour)
{
	return !__atomic_load_n(&rs_state.captures, __ATOMIC_RELAXED) &&
	       rs_engine_idle(rs_state.engine, t->thread, rs_queue_of(t, stream, flavour));
}

/*
 * Only the allocations that two addresses lie in, and the direction, matter to a call outside of windows: how many
 * bytes are copied does not, if there are any.
 */
static inline struct rs_calm *rs_call_calm_at(struct rs_tls *t, uint64_t dst, uint64_t src)
{
	return &t->calm[((dst ^ src << 1) * RS_DIGEST_K) >> 32 & (RS_CALM - 1)];
}

/* Time has gone on, or the addresses are new: is it so of them? c: where that is remembered. */
int rs_call_calm_anew(struct rs_tls *t, struct rs_calm *c, struct rs_queue q, uint64_t dst,
		      uint64_t src);

static inline int rs_call_calm(struct rs_tls *t, struct rs_queue q, uint64_t dst, uint64_t src,
			       uint64_t bytes)
{
	struct rs_calm *c;

	if (!bytes)
		return 0;
	c = rs_call_calm_at(t, dst, src);
	if (rs_likely(c->dst == dst && c->src == src && c->q.stream == q.stream &&
		      c->q.ctx == q.ctx && c->moment == rs_engine_moment(rs_state.engine)))
		return 1;
	return rs_call_calm_anew(t, c, q, dst, src);
}

/* After rs_engine_before. With option STRICT every call looks for bad records. */
static inline void rs_call_calm_keep(struct rs_tls *t, const struct rs_call *c, uint64_t dst,
				     uint64_t src, uint64_t bytes)
{
	struct rs_calm *at;

	if (!c->calm || !bytes || rs_state.opt.strict)
		return;
	at = rs_call_calm_at(t, dst, src);
	*at = (struct rs_calm){.moment = c->calm, .dst = dst, .src = src, .q = c->q};
}

/*
 * RS_ENTER for a call on a stream: one that need not be described ends here. dst, src, bytes: of a copy or fill, else
 * bytes is 0. What is being captured does not run now.
 */
#define RS_ENTER_BYTES(t, sym, flavour, stream, args, dst, src, bytes)                             \
	RS_ENTER(t, sym, args);                                                                    \
	if (rs_likely(!__atomic_load_n(&rs_state.captures, __ATOMIC_RELAXED))) {                   \
		struct rs_queue q_ = rs_queue_of(t, stream, flavour);                              \
		if (rs_likely(rs_engine_idle(rs_state.engine, t->thread, q_) ||                    \
			      rs_call_calm(t, q_, dst, src, bytes))) {                             \
			CUresult r_ = rs_real.sym args;                                            \
			RS_LEAVE(t, r_);                                                           \
		}                                                                                  \
	}
#define RS_ENTER_CALL(t, sym, flavour, stream, args)                                               \
	RS_ENTER(t, sym, args);                                                                    \
	if (rs_likely(rs_call_idle(t, stream, flavour))) {                                         \
		CUresult r_ = rs_real.sym args;                                                    \
		RS_LEAVE(t, r_);                                                                   \
	}

/* Field by field: a compiler clears a struct of that size with an instruction that takes longer than all of this. */
static inline void rs_call_begin(struct rs_call *c, struct rs_tls *t, enum rs_ep ep,
				 enum rs_call_kind kind, CUstream stream, enum rs_flavour flavour,
				 const struct rs_access *access)
{
	_Static_assert(sizeof(*c) == 128, "a new field is set here, too");
	c->name = rs_ep_info[ep].name;
	c->ident = rs_digest_mix(kind + 1);
	c->kind = kind;
	c->q = rs_queue_of(t, stream, flavour);
	c->access = access;
	c->generation = rs_engine_generation(rs_state.engine);
	c->args = NULL;
	c->arg_bytes = 0;
	c->naccess = 0;
	c->everything = c->host_effect = c->untracked = c->synchronous = c->deferred = 0;
	c->capturing = (uint8_t)rs_queue_capture(stream, flavour, &c->capture);
	c->calm = 0;
	for (unsigned i = 0; i < sizeof(c->private_) / sizeof(c->private_[0]); i++)
		c->private_[i] = 0;
}

static inline void rs_call_ident(struct rs_call *c, uint64_t value)
{
	c->ident = rs_digest_mix(c->ident + value * RS_DIGEST_K);
}

/* The engine's answer for addr, NULL: it knows no memory there. */
static inline const void *rs_call_known(const struct rs_call *c, uint64_t addr)
{
	uint64_t base, bytes;

	return rs_engine_lookup_lately(rs_state.engine, rs_tls->thread, c->generation, addr, &base,
				       &bytes);
}

/* Device bytes [addr, addr + bytes); a must have room for one more. */
static inline void rs_call_device(struct rs_call *c, struct rs_access *a, uint64_t addr,
				  uint64_t bytes, int dir, int dense, unsigned slot)
{
	const void *memory;

	if (!bytes)
		return;
	memory = rs_call_known(c, addr);
	if (rs_unlikely(!memory)) {
		c->untracked = 1;
		return;
	}
	a[c->naccess++] = (struct rs_access){.addr = addr,
					     .bytes = bytes,
					     .memory = memory,
					     .dir = (uint8_t)dir,
					     .how = RS_HOW_EXACT,
					     .dense = (uint8_t)dense,
					     .slot = (uint16_t)slot};
}

/* Room for n ranges in the thread's scratch, or NULL. Keeps nothing of an earlier call. */
struct rs_access *rs_call_scratch(struct rs_tls *t, unsigned n);

/* before, the driver, after. */
#define RS_CALL(t, call, r, sym, args)                                                             \
	do {                                                                                       \
		rs_guard_before(t, call);                                                          \
		(r) = rs_real.sym args;                                                            \
		rs_guard_after(t, call, r);                                                        \
	} while (0)

#endif
