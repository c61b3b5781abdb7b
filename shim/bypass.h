/* SPDX-License-Identifier: MIT */
/* Finding objects that reach the driver past the hooks (bypass.c). Any thread; not for hot paths. */
#ifndef RS_SHIM_BYPASS_H
#define RS_SHIM_BYPASS_H

#include <stdint.h>

/* New ones become events and are counted in rs_coverage. */
void rs_bypass_look(uint64_t step);

#endif
