/* SPDX-License-Identifier: MIT */
/*
 * After fork the child is inert: CUDA does not survive fork, and neither do our threads' states.
 *
 * Only a process that had started is affected; a child forked before its parent's cuInit starts by
 * itself. One word is cleared, no lock is taken: nothing that the child may still reach takes one.
 */
#include "shim/busy.h"
#include "shim/log.h"
#include "shim/planner.h"

#include <pthread.h>

static void in_child(void)
{
	__atomic_store_n(&rs_on, 0, __ATOMIC_RELAXED);
	rs_busy_forked();
	rs_tls = NULL;
	rs_planner_child();
	rs_log(RS_LOG_INFO, "forked after cuInit: this child is not observed");
}

void rs_fork_init(void)
{
	pthread_atfork(NULL, NULL, in_child);
}
