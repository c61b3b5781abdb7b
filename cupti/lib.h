/* SPDX-License-Identifier: MIT */
/*
 * libcupti: found, and its version looked at. For session.c.
 */
#ifndef RS_CUPTI_LIB_H
#define RS_CUPTI_LIB_H

#include "cupti/abi.h"

/*
 * The copy that the process has loaded already, else one that fits the driver. 0, or -errno with the reason in why.
 * The library stays loaded.
 */
int rs_cupti_lib_open(struct rs_cupti_lib *ret, void *(*symbol)(void *library, const char *name),
		      int driver, char *why, size_t size);

#endif
