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

/* Textures and surfaces, in elements. */
#define SIM_TEX1D_WIDTH	       131072
#define SIM_TEX2D_WIDTH	       131072
#define SIM_TEX2D_HEIGHT       65536
#define SIM_TEX3D_EXTENT       16384
#define SIM_TEX3D_ALT_WIDTH    8192
#define SIM_TEX3D_ALT_DEPTH    32768
#define SIM_TEX_LAYERED_EXTENT 32768 /* gather, cubemaps and mipmapped arrays, too */
#define SIM_TEX_LAYERS	       2048
#define SIM_TEX_CUBE_LAYERS    2046
#define SIM_TEX1D_LINEAR       268435456
#define SIM_TEX2D_LINEAR       131072
#define SIM_TEX2D_LINEAR_ROWS  65000
#define SIM_TEX2D_LINEAR_PITCH 2097120
#define SIM_TEX_ALIGNMENT      512
#define SIM_TEX_PITCH_ALIGN    32
#define SIM_SURF1D_WIDTH       32768

#endif
