/* SPDX-License-Identifier: MIT */
/*
 * Busy times of windows, measured by CUPTI's activity records. The only header of cupti/ that the shim sees.
 *
 * The library is looked up at run time; nothing of it is needed. There is one user of activity records in a process, and
 * the program's own profiler goes first: as soon as it shows, we withdraw, for good. Whatever goes wrong is told once,
 * through host.lost, and from then on every function here returns at once. cuptiSubscribe is never called.
 *
 * Protocol: rs_cupti_start once, after cuInit; rs_cupti_switch on each thread when its innermost window changes;
 * rs_cupti_step at step markers, which tells the times of windows that are complete, mostly some steps later.
 * Callers: shim/busy.c, any thread, with the driver's hooks passed by; never from inside a CUPTI callback. errno may change.
 * No lock is held while CUPTI or the host is called.
 */
#ifndef RS_CUPTI_H
#define RS_CUPTI_H

#include <stdint.h>

struct rs_cupti_host {
	void *arg;
	/* libc's own dlsym. */
	void *(*symbol)(void *library, const char *name);
	/* A window's busy time; once for each window. */
	void (*busy)(void *arg, uint64_t window, uint64_t ns);
	/* No more of them, because of `why` (valid during the call). Once. */
	void (*lost)(void *arg, const char *why);
};

struct rs_cupti_stats {
	uint64_t records, buffers; /* that came back, and of those that were read */
	uint64_t dropped;	   /* records that CUPTI had no buffer for */
	uint64_t broken;	   /* buffers that could not be read to their end */
	uint64_t windows, missing; /* told; left out because records were missing */
	uint64_t empty;		   /* windows without work */
	uint64_t unmatched;	   /* work outside of windows */
	uint64_t forgotten;
};

/* driver: as cuDriverGetVersion tells. The host is copied. 0, or an error that was also told. */
int rs_cupti_start(const struct rs_cupti_host *host, int driver);
int rs_cupti_running(void);
/* The calling thread leaves window `from` and enters `to` (0: none). What it is in now, 0 when nothing is measured. */
uint64_t rs_cupti_switch(uint64_t from, uint64_t to);
/* The thread that was in it has ended. */
void rs_cupti_left(uint64_t window);
/* What the calling thread does between the two counts for no window. `show` only where `hide` returned 1. */
int rs_cupti_hide(void);
void rs_cupti_show(void);
void rs_cupti_step(void);
/* The program itself is about to use CUPTI: give back what is ours, before that call. */
void rs_cupti_withdraw(const char *who);
/* At the end of the run, when the device has finished: the rest of the times. */
void rs_cupti_finish(void);
void rs_cupti_stats(struct rs_cupti_stats *ret);
/* In a forked child, whose only thread this is: nothing is measured there. */
void rs_cupti_forked(void);

#endif
