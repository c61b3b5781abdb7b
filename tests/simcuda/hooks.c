/* SPDX-License-Identifier: MIT */
/*
 * The exported test hooks; see simcuda.h.
 */
#include "tests/simcuda/sim.h"
#include "tests/simcuda/simcuda.h"

uint64_t simcuda_live_bytes(int device)
{
	uint64_t n = 0;

	sim_api_lock();
	if (device >= 0 && device < SIM_MAX_DEVICES)
		n = sim_mem_used(device);
	sim_api_unlock();
	return n;
}

uint64_t simcuda_peak_bytes(int device)
{
	uint64_t n = 0;

	sim_api_lock();
	if (device >= 0 && device < SIM_MAX_DEVICES)
		n = sim_mem_peak(device);
	sim_api_unlock();
	return n;
}

uint64_t simcuda_restart_peak(int device)
{
	uint64_t n = 0;

	sim_api_lock();
	if (device >= 0 && device < SIM_MAX_DEVICES) {
		n = sim_mem_peak(device);
		sim_mem_restart_peak(device);
	}
	sim_api_unlock();
	return n;
}

uint64_t simcuda_virtual_ns(void)
{
	uint64_t n;

	sim_api_lock();
	n = sim_clock_now();
	sim_api_unlock();
	return n;
}

int simcuda_set_schedule(const char *spec)
{
	int r;

	sim_api_prepare();
	sim_api_lock();
	r = sim_options_sched(spec);
	sim_api_unlock();
	return r;
}

int simcuda_set_fail(const char *spec)
{
	int r;

	sim_api_prepare();
	sim_api_lock();
	r = sim_options_set_fail(spec);
	sim_api_unlock();
	return r;
}
