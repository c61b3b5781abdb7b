/* SPDX-License-Identifier: MIT */
/*
 * The shim's operations for the engine (shim/devops.h) in a program of their own: their sources, and what they need of
 * the rest of the library. Included once, by tests/clients/t_devops.c and tests/shim/devops_cost.c.
 *
 * RIG_DRIVER lists the driver's functions that they call; the program fills rs_real with them.
 */
#ifndef TESTS_SHIM_DEVOPS_RIG_H
#define TESTS_SHIM_DEVOPS_RIG_H

#include "shim/arrays.c"
#include "shim/devarrays.c"
#include "shim/devclock.c"
#include "shim/devkernels.c"
#include "shim/devmany.c"
#include "shim/devops.c"
#include "shim/devorder.c"
#include "shim/devremap.c"
#include "shim/handles.c"

#define RIG_DRIVER(X)                                                                              \
	X(cuCtxGetCurrent)                                                                         \
	X(cuCtxPushCurrent_v2)                                                                     \
	X(cuCtxPopCurrent_v2)                                                                      \
	X(cuThreadExchangeStreamCaptureMode)                                                       \
	X(cuStreamIsCapturing)                                                                     \
	X(cuStreamGetCaptureInfo)                                                                  \
	X(cuMemAlloc_v2)                                                                           \
	X(cuMemFree_v2)                                                                            \
	X(cuMemcpyDtoDAsync_v2)                                                                    \
	X(cuMemHostAlloc)                                                                          \
	X(cuMemFreeHost)                                                                           \
	X(cuEventCreate)                                                                           \
	X(cuEventRecord)                                                                           \
	X(cuEventElapsedTime)                                                                      \
	X(cuEventElapsedTime_v2)                                                                   \
	X(cuEventQuery)                                                                            \
	X(cuEventSynchronize)                                                                      \
	X(cuStreamWaitEvent)                                                                       \
	X(cuArray3DGetDescriptor_v2)                                                               \
	X(cuCtxGetDevice)                                                                          \
	X(cuMemAllocFromPoolAsync)                                                                 \
	X(cuMemFreeAsync)                                                                          \
	X(cuMemPoolCreate)                                                                         \
	X(cuMemPoolDestroy)                                                                        \
	X(cuMemcpy3DAsync_v2)                                                                      \
	X(cuModuleLoadData)                                                                        \
	X(cuModuleUnload)                                                                          \
	X(cuModuleGetFunction)                                                                     \
	X(cuLaunchKernel)

struct rs_real rs_real;
struct rs_state rs_state;
__thread struct rs_tls *rs_tls;
static unsigned rig_logged;

int rs_busy_hide(void)
{
	return 0;
}

void rs_busy_show(void)
{
}

void rs_log(enum rs_log_level level, const char *fmt, ...)
{
	(void)level;
	(void)fmt;
	rig_logged++;
}

#endif
