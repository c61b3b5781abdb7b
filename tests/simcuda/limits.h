/* SPDX-License-Identifier: MIT */
/*
 * Limits of the simulated device: the H100's per-multiprocessor resources (CUDA C++ Programming Guide,
 * technical specifications per compute capability 9.0), whatever compute capability is reported.
 */
#ifndef SIM_LIMITS_H
#define SIM_LIMITS_H

#define SIM_MAX_THREADS	    1024
#define SIM_MAX_BLOCK_Z	    64
#define SIM_MAX_GRID_X	    2147483647
#define SIM_MAX_GRID_YZ	    65535
#define SIM_SHARED_DEFAULT  49152
#define SIM_SHARED_OPTIN    232448
#define SIM_SHARED_SM	    233472
#define SIM_MAX_THREADS_SM  2048
#define SIM_MAX_BLOCKS_SM   32
#define SIM_REGS_SM	    65536
#define SIM_MAX_REGS	    255
#define SIM_MULTIPROCESSORS 132

#endif
