/* SPDX-License-Identifier: MIT */
/*
 * Every function that the library's lists name, doing nothing; null_driver.c and null_proc.c have those of them that must
 * answer. Two more that no list names stand for a newer driver's. Built by tests/t/shim_versions.t.
 */
#define DEFINE(sym)                                                                                \
	__attribute__((visibility("default"), weak)) int sym(void);                                \
	int sym(void)                                                                              \
	{                                                                                          \
		return 0;                                                                          \
	}
#define EP(sym, group, action, since, flavour, params, args) DEFINE(sym)
#include "shim/entry_points.def"
#undef EP
#define PASSIVE(sym, reason) DEFINE(sym)
#include "shim/passive.def"
#undef PASSIVE
DEFINE(cuMulticastBindMem_v2)
DEFINE(cuBrandNewThing)
