/* SPDX-License-Identifier: MIT */
/*
 * cuGetProcAddress of the driver that does nothing (null_all.c): of a name's ABIs the newest that is no newer than the
 * version asked for, and its per-thread twin where the flag asks for one and there is one in that version.
 *
 * With NULL_DRIVER_THUNKS in the environment it gives addresses that are not the exported ones. The versions of passive
 * functions are this file's own: bare ones are as old as can be, a _v2 is from 3.2.
 */
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default"))) int

enum { PLAIN, PTSZ, PTDS };

#define DECLARE(sym)                                                                               \
	extern int sym();                                                                          \
	static int thunk_##sym()                                                                   \
	{                                                                                          \
		return sym() + 1;                                                                  \
	}
#define EP(sym, group, action, since, flavour, params, args) DECLARE(sym)
#include "shim/entry_points.def"
#undef EP
#define PASSIVE(sym, reason) DECLARE(sym)
#include "shim/passive.def"
#undef PASSIVE
DECLARE(cuMulticastBindMem_v2)
DECLARE(cuBrandNewThing)

static const struct {
	const char *symbol;
	int since; /* 0: by the suffix */
	int flavour;
	int (*fn)(), (*thunk)();
} table[] = {
#define EP(sym, group, action, since, flavour, params, args)                                       \
	{#sym, since, flavour, sym, thunk_##sym},
#include "shim/entry_points.def"
#undef EP
#define PASSIVE(sym, reason) {#sym, 0, PLAIN, sym, thunk_##sym},
#include "shim/passive.def"
	PASSIVE(cuBrandNewThing, )
#undef PASSIVE
		{"cuMulticastBindMem_v2", 13010, PLAIN, cuMulticastBindMem_v2,
		 thunk_cuMulticastBindMem_v2},
};

/* The number behind _v, 1 without; the base name's length. */
static int abi(const char *symbol, size_t *ret_base)
{
	size_t n = strlen(symbol);

	if (!strcmp(symbol + n - 5, "_ptsz") || !strcmp(symbol + n - 5, "_ptds"))
		n -= 5;
	*ret_base = n;
	if (symbol[n - 3] != '_' || symbol[n - 2] != 'v')
		return 1;
	*ret_base = n - 3;
	return symbol[n - 1] - '0';
}

/* Rows of that name; the last question's are kept, since a name is asked for many times in a row. */
static unsigned rows_of(const char *name, const unsigned **ret_rows)
{
	static unsigned rows[16], n;
	static char last[256] = "?";
	size_t base;

	*ret_rows = rows;
	if (!strcmp(name, last))
		return n;
	n = 0;
	for (unsigned i = 0; i < sizeof(table) / sizeof(*table); i++) {
		abi(table[i].symbol, &base);
		if (strlen(name) == base && !strncmp(table[i].symbol, name, base))
			rows[n++] = i;
	}
	strncpy(last, name, sizeof(last) - 1);
	return n;
}

/* 0, 1: no such name, 2: not in this version. */
static int find(const char *name, void **pfn, int version, unsigned long long flags)
{
	const unsigned *rows;
	unsigned n = rows_of(name, &rows);
	int best = -1, best_abi = 0;

	for (unsigned k = 0; k < n; k++) {
		unsigned i = rows[k];
		size_t base;
		int number = abi(table[i].symbol, &base);
		int since = table[i].since ? table[i].since : number > 1 ? 3020 : 2000;

		if (since > version || (table[i].flavour != PLAIN && flags != 2) ||
		    number < best_abi)
			continue;
		if (number == best_abi && table[i].flavour == PLAIN)
			continue;
		best = (int)i;
		best_abi = number;
	}
	*pfn = best < 0 ? NULL
			: (void *)(getenv("NULL_DRIVER_THUNKS") ? table[best].thunk
								: table[best].fn);
	return best >= 0 ? 0 : n ? 2 : 1;
}

API cuGetProcAddress(const char *symbol, void **pfn, int version, unsigned long long flags)
{
	if (!symbol || !pfn || flags > 2)
		return 1;
	return find(symbol, pfn, version, flags) ? 500 : 0;
}

API cuGetProcAddress_v2(const char *symbol, void **pfn, int version, unsigned long long flags,
			int *status)
{
	int answer;

	if (!symbol || !pfn || flags > 2)
		return 1;
	answer = find(symbol, pfn, version, flags);
	if (status)
		*status = answer;
	return 0;
}
