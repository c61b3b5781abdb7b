/* SPDX-License-Identifier: MIT */
/*
 * What the simulated driver offers to tests beyond the Driver API.
 *
 * A program that must also run on a real driver looks these up with dlsym and does without.
 * Callable from any thread, except from host functions.
 */
#ifndef SIMCUDA_H
#define SIMCUDA_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SIMCUDA_API __attribute__((visibility("default")))

/* Bytes of device memory in use, and the most there ever were. */
SIMCUDA_API uint64_t simcuda_live_bytes(int device);
SIMCUDA_API uint64_t simcuda_peak_bytes(int device);
/* The same, and from now on the most counts from what is in use. */
SIMCUDA_API uint64_t simcuda_restart_peak(int device);

/* The latest end of any executed operation on the virtual clock. */
SIMCUDA_API uint64_t simcuda_virtual_ns(void);

/* "eager", "lazy" or "random:<seed>" from now on; -1: not understood, nothing changed. */
SIMCUDA_API int simcuda_set_schedule(const char *spec);

/* As SIMCUDA_FAIL; counts start again. "" injects nothing. -1: an item was ignored. */
SIMCUDA_API int simcuda_set_fail(const char *spec);

/*
 * For the stand-in of a profiler: each kernel, copy and fill, as it is queued (by the thread that made the call, its times
 * unknown yet) and once its times on the virtual clock are known. Under the driver's lock: no call back into it. NULL: nobody.
 */
enum { SIMCUDA_KERNEL, SIMCUDA_COPY, SIMCUDA_FILL };
struct simcuda_op {
	uint64_t seq;
	int kind;
	uint64_t start_ns, end_ns;
};
typedef void simcuda_watch_fn(const struct simcuda_op *op);
SIMCUDA_API void simcuda_watch(simcuda_watch_fn *queued, simcuda_watch_fn *timed);

#ifdef __cplusplus
}
#endif

#endif
