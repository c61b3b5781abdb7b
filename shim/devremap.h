/* SPDX-License-Identifier: MIT */
/* Memory that is mapped in another's place: what wrap_map.c tells devremap.c. */
#ifndef RS_SHIM_DEVREMAP_H
#define RS_SHIM_DEVREMAP_H

#include "shim/shim.h"

/* After the program's cuMemSetAccess. */
void rs_devremap_access(uint64_t addr, uint64_t bytes, const CUmemAccessDesc *desc, size_t n);

#endif
