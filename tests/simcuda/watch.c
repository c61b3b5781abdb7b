/* SPDX-License-Identifier: MIT */
/*
 * For the stand-in of a profiler (tests/simcupti): what is queued, by the thread that asked for it, and when it would have run.
 *
 * Everything here under the driver's lock; whoever watches must not call the driver.
 */
#include "tests/simcuda/sim.h"
#include "tests/simcuda/simcuda.h"

static simcuda_watch_fn *watch_queued, *watch_timed;

SIMCUDA_API void simcuda_watch(simcuda_watch_fn *queued, simcuda_watch_fn *timed)
{
	sim_api_lock();
	watch_queued = queued;
	watch_timed = timed;
	sim_api_unlock();
}

static int kind_of(const struct sim_op *op)
{
	switch (op->work.kind) {
	case SIM_WORK_KERNEL:
		return SIMCUDA_KERNEL;
	case SIM_WORK_FILL:
		return SIMCUDA_FILL;
	case SIM_WORK_COPY:
		return SIMCUDA_COPY;
	default:
		return -1;
	}
}

static void tell(simcuda_watch_fn *watch, const struct sim_op *op)
{
	struct simcuda_op told = {.seq = op->seq, .kind = kind_of(op)};

	if (!watch || told.kind < 0)
		return;
	told.start_ns = op->start_ns;
	told.end_ns = op->end_ns;
	watch(&told);
}

void sim_watch_queued(const struct sim_op *op)
{
	tell(watch_queued, op);
}

void sim_watch_timed(const struct sim_op *op)
{
	tell(watch_timed, op);
}
