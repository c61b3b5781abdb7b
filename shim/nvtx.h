/* SPDX-License-Identifier: MIT */
/*
 * What the two halves of the NVTX injection share: ranges (nvtx.c) and memory regions (nvtx_mem.c). The
 * declarations of NVTX's own headers are used without their implementation.
 */
#ifndef RS_SHIM_NVTX_H
#define RS_SHIM_NVTX_H

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

#include "shim/shim.h"

struct rs_domain;

/* Never NULL. */
const struct rs_domain *rs_nvtx_domain(const void *handle);
/* A message's text; buffer: 512 bytes for one that has to be converted. */
const char *rs_nvtx_text(uint32_t type, nvtxMessageValue_t value, char *buffer);
/* A symbol of the injection library that was there before us; NULL without one. */
void *rs_nvtx_next(const char *symbol);

#endif
