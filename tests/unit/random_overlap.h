/* SPDX-License-Identifier: MIT */
/*
 * Replays of several threads at once, for random programs (random_program.h, which includes this): each actor replays on a
 * stack of its own and hands over between two calls, at any depth; so windows open and close in any order. What an actor sees
 * is its own world; what the program has is one that all of them share, and in which a further thread goes on meanwhile.
 */
#ifndef TESTS_RANDOM_OVERLAP_H
#define TESTS_RANDOM_OVERLAP_H

#include <ucontext.h>

#define NACTOR	    2
#define ACTOR_STACK (256u << 10)

static struct actor {
	ucontext_t at;
	char *stack;
	struct rs_thread *t; /* the thread that goes on when it does */
	struct state own;
	int begun, done;
} actor[NACTOR], *acting; /* NULL: none of them is, it is the program's own turn */

static ucontext_t stage;
static unsigned handed_over; /* so often in the middle of a replay */

static void act(void)
{
	replay((unsigned)rnd(npend), 0);
	acting->done = 1;
}

/* Between two calls of an actor's replay: perhaps it is somebody else's turn. */
static void hand_over(void)
{
	struct actor *a = acting;

	if (!a || rnd(3))
		return;
	save_state(&a->own);
	a->t = thr;
	handed_over++;
	swapcontext(&a->at, &stage);
	load_state(&a->own);
	drop_state(&a->own);
	thr = a->t;
}

static void take_turn(struct actor *a)
{
	acting = a;
	if (!a->begun++) {
		getcontext(&a->at);
		a->at.uc_stack.ss_sp = a->stack;
		a->at.uc_stack.ss_size = ACTOR_STACK;
		a->at.uc_link = &stage;
		makecontext(&a->at, act, 0);
		thr = a->t;
		if (program_open)
			load_state(&program);
	}
	swapcontext(&stage, &a->at);
	acting = NULL;
}

/* The program goes on, in its own world, on a thread that replays nothing. */
static void go_on_beside(void)
{
	struct buf *d = &buf[rnd(NSTATE)], *s = &buf[rnd(NSTATE)];
	uint64_t len = 1 + rnd((uint32_t)d->bytes), off = rnd((uint32_t)(d->bytes - len + 1));

	if (d->whole && len % 2) {
		off = 0;
		len = d->bytes;
	}
	thr = thread[NACTOR];
	if (program_open)
		load_state(&program);
	switch (rnd(8)) {
	case 0:
	case 1:
	case 2:
		look(s);
		break;
	case 3:
		unknown_write(d, s);
		break;
	default:
		launch(rnd(1u << 30), d, off, len, s, 0, s->bytes, NULL, (int)rnd(2));
	}
	overlapped++;
	if (!program_open)
		return;
	drop_state(&program);
	save_state(&program);
}

static inline void replay_at_once(void)
{
	unsigned left = NACTOR;

	for (unsigned i = 0; i < NACTOR; i++) {
		actor[i].t = thread[i];
		actor[i].begun = actor[i].done = 0;
		if (!actor[i].stack)
			actor[i].stack = malloc(ACTOR_STACK);
	}
	while (left) {
		struct actor *a = &actor[rnd(NACTOR)];

		if (a->done)
			continue;
		take_turn(a);
		left -= (unsigned)a->done;
		if (!rnd(3))
			go_on_beside();
	}
	thr = thread[0];
}

#endif
