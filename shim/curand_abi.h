/* SPDX-License-Identifier: MIT */
/*
 * What the cuRAND host API looks like to a caller: the few types and numbers of curand.h that matter here. That
 * header itself needs the CUDA runtime's, which a Driver-API build does not have.
 *
 * Enumerations are passed as the ABI passes them, as int. tests/t/curand.t compares the names with a real library.
 * Included by: the shim, the tests and their stand-in library.
 */
#ifndef RS_SHIM_CURAND_ABI_H
#define RS_SHIM_CURAND_ABI_H

#include <stddef.h>

typedef struct rs_curand_opaque *rs_curand;
typedef int rs_curand_status;

/* clang-format off */
enum {
	RS_CURAND_SUCCESS             = 0,
	RS_CURAND_NOT_INITIALIZED     = 101,
	RS_CURAND_ALLOCATION_FAILED   = 102,
	RS_CURAND_TYPE_ERROR          = 103,
	RS_CURAND_OUT_OF_RANGE        = 104,
	RS_CURAND_LENGTH_NOT_MULTIPLE = 105,
	RS_CURAND_LAUNCH_FAILURE      = 201,
	RS_CURAND_INIT_FAILED         = 203,
};

enum {
	RS_CURAND_PSEUDO_DEFAULT = 100,
	RS_CURAND_XORWOW         = 101,
	RS_CURAND_MRG32K3A       = 121,
	RS_CURAND_MTGP32         = 141,
	RS_CURAND_MT19937        = 142,
	RS_CURAND_PHILOX         = 161,
	RS_CURAND_QUASI_DEFAULT  = 200,
	RS_CURAND_SOBOL32        = 201,
	RS_CURAND_SCRAMBLED64    = 204,
};

enum {
	RS_CURAND_ORDER_BEST    = 100,
	RS_CURAND_ORDER_DEFAULT = 101,
	RS_CURAND_ORDER_SEEDED  = 102,
	RS_CURAND_ORDER_LEGACY  = 103,
	RS_CURAND_ORDER_DYNAMIC = 104,
	RS_CURAND_ORDER_QUASI   = 201,
};
/* clang-format on */

#endif
