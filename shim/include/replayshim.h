/* SPDX-License-Identifier: MIT */
/*
 * replayshim's markers as functions, for programs that want to be explicit.
 *
 * Include it and call: nothing has to be linked. Where libreplayshim.so is not preloaded, every call costs a
 * test and returns -1. C89 (gcc, clang) and C++, 64-bit Linux. Callable from any thread.
 *
 *	replayshim_step(n);
 *	replayshim_forward_begin("block3", REPLAYSHIM_NEXT);   ... launches ...   replayshim_forward_end();
 *	replayshim_replay_begin("block3", REPLAYSHIM_NEXT);    ... launches ...   replayshim_replay_end();
 *
 * Results: 0 (replayshim_active and replayshim_retain: 0 or 1); -1 when the library is not there or not observing; -2 when
 * a region or a sub-allocation is not inside a known allocation.
 */
#ifndef REPLAYSHIM_H
#define REPLAYSHIM_H

#ifdef __cplusplus
extern "C" {
#endif

/* As invocation: the next one of that name in this step; for a replay, matched by its inputs. */
#define REPLAYSHIM_NEXT (-1L)

/*
 * One line a function: the library's symbol, weak, and what the program calls, whose own symbol must
 * differ from it.
 */
#define REPLAYSHIM_FUNCTION(name, params, args)                                                    \
	extern int name##_weak params __asm__(#name) __attribute__((weak));                        \
	static __inline__ int name params __asm__(#name "_if_there") __attribute__((unused));      \
	static __inline__ int name params                                                          \
	{                                                                                          \
		return name##_weak ? name##_weak args : -1;                                        \
	}

/* 1: the library is there and observes. */
REPLAYSHIM_FUNCTION(replayshim_active, (void), ())

/* A new step begins; what older steps preserved is retired. */
REPLAYSHIM_FUNCTION(replayshim_step, (long n), (n))

/* The first run of a segment, and a run of it again. */
REPLAYSHIM_FUNCTION(replayshim_forward_begin, (const char *name, long invocation),
		    (name, invocation))
REPLAYSHIM_FUNCTION(replayshim_forward_end, (void), ())
REPLAYSHIM_FUNCTION(replayshim_replay_begin, (const char *name, long invocation),
		    (name, invocation))
REPLAYSHIM_FUNCTION(replayshim_replay_end, (void), ())

/*
 * Asked before the forward of a segment whose activations the program may as well keep: 1, keep them, this invocation will
 * not be replayed; 0, replay it as ever; -1 as below. That is what a plan decides (REPLAYSHIM_BUDGET, REPLAYSHIM_PLAN); without
 * one it is always 0. A program that never asks is planned for as one that replays everything.
 *
 *	int keep = replayshim_retain("block3", REPLAYSHIM_NEXT) == 1;
 *	replayshim_forward_begin("block3", REPLAYSHIM_NEXT);   ... launches ...   replayshim_forward_end();
 *	...
 *	if (!keep) {
 *		replayshim_replay_begin("block3", REPLAYSHIM_NEXT);   ... launches ...   replayshim_replay_end();
 *	}
 */
REPLAYSHIM_FUNCTION(replayshim_retain, (const char *name, long invocation), (name, invocation))

/* Ranges with any text; "forward:NAME", "replay:NAME" and "step:N" mean what they mean in NVTX. */
REPLAYSHIM_FUNCTION(replayshim_range_push, (const char *text), (text))
REPLAYSHIM_FUNCTION(replayshim_range_pop, (void), ())

/* "state:NAME": persistent state; "output:NAME": a declared product; a bare name is state. */
REPLAYSHIM_FUNCTION(replayshim_region_name,
		    (unsigned long address, unsigned long bytes, const char *name),
		    (address, bytes, name))
REPLAYSHIM_FUNCTION(replayshim_region_drop, (unsigned long address, unsigned long bytes),
		    (address, bytes))

/*
 * For an allocator of the program's own, which cuts what the driver gives it: it gives these bytes out, and takes back what
 * begins at address. A kernel of which nobody knows how far it reaches then counts as one that reaches so far, and what is given
 * out inside of a segment is a product of it. PyTorch's caching allocator is followed without these calls. -2: no such memory,
 * or nothing that was given out begins there.
 */
REPLAYSHIM_FUNCTION(replayshim_suballoc, (unsigned long address, unsigned long bytes),
		    (address, bytes))
REPLAYSHIM_FUNCTION(replayshim_subfree, (unsigned long address), (address))

#ifdef __cplusplus
}
#endif

#endif
