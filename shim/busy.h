/* SPDX-License-Identifier: MIT */
/*
 * Busy times of segment windows by CUPTI (option CUPTI): what the library tells cupti/ and hears from it.
 * Callers as named; no locks. When it is off, each costs one look at rs_state.busy.
 */
#ifndef RS_SHIM_BUSY_H
#define RS_SHIM_BUSY_H

#include "shim/shim.h"

/* init.c: after cuInit, before anything is observed; and at the end, when the device has finished. */
void rs_busy_start(void);
void rs_busy_finish(void);
/* marker.c: after a marker; report.c: at a step; tls.c: the thread has ended. */
void rs_busy_window(struct rs_tls *t);
void rs_busy_step(void);
void rs_busy_thread_ends(const struct rs_tls *t);
/* fork.c: in the child. */
void rs_busy_forked(void);
/* devops.c: around the engine's own work. */
int rs_busy_hide(void);
void rs_busy_show(void);
/* doors.c: our door to a function of libcupti by which its users show, or NULL. addr: its own. */
void *rs_busy_exchange(const char *name, void *addr);

static inline int rs_busy_on(void)
{
	return rs_unlikely(__atomic_load_n(&rs_state.busy, __ATOMIC_RELAXED));
}

#endif
