/* SPDX-License-Identifier: MIT */
/*
 * What the hooks could not see, for the report: counters, and the first few names and tables of each kind.
 *
 * Invariants: counters only grow. A slot is taken by an atomic add, filled, and then published; it never changes
 * again, so readers need no lock. Two threads may enter one name twice.
 * Callers: doors.c on any thread at any time, also before our constructor; report.c. No locks, no memory.
 */
#include "shim/shim.h"

#include <stdio.h>
#include <string.h>

#define SLOTS 16

struct list {
	unsigned next;
	struct slot {
		int ready;
		char text[64];
	} slot[SLOTS];
};

struct rs_coverage rs_coverage;
static struct list unknown, foreign, tables;

static int has(const struct list *list, const char *text)
{
	for (unsigned i = 0; i < SLOTS; i++)
		if (__atomic_load_n(&list->slot[i].ready, __ATOMIC_ACQUIRE) &&
		    !strcmp(list->slot[i].text, text))
			return 1;
	return 0;
}

/* Text that does not fit is cut, and then still found by what fits. */
static void enter(struct list *list, const char *text)
{
	char cut[sizeof(list->slot[0].text)];
	unsigned i;

	snprintf(cut, sizeof(cut), "%s", text);
	if (has(list, cut))
		return;
	i = __atomic_fetch_add(&list->next, 1, __ATOMIC_RELAXED);
	if (i >= SLOTS) {
		__atomic_store_n(&list->next, SLOTS, __ATOMIC_RELAXED);
		return;
	}
	memcpy(list->slot[i].text, cut, sizeof(cut));
	__atomic_store_n(&list->slot[i].ready, 1, __ATOMIC_RELEASE);
}

void rs_coverage_unknown(const char *name)
{
	rs_count(unknown_names);
	enter(&unknown, name);
}

void rs_coverage_foreign(const char *name)
{
	rs_count(foreign_names);
	enter(&foreign, name);
}

/* Bytes in memory order. */
void rs_coverage_table(const CUuuid *id)
{
	char text[40];
	unsigned n = 0;

	rs_count(export_tables);
	for (unsigned i = 0; id && i < 16; i++)
		n += (unsigned)snprintf(text + n, sizeof(text) - n, "%s%02x",
					i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
					(unsigned char)id->bytes[i]);
	if (id)
		enter(&tables, text);
}

static void put(struct rs_json *j, const char *key, const struct list *list)
{
	rs_json_open(j, key, '[');
	for (unsigned i = 0; i < SLOTS; i++)
		if (__atomic_load_n(&list->slot[i].ready, __ATOMIC_ACQUIRE))
			rs_json_str(j, NULL, list->slot[i].text);
	rs_json_close(j, ']');
}

void rs_coverage_report(struct rs_json *j)
{
	rs_json_u64(j, "unknown_names", rs_coverage.unknown_names);
	rs_json_u64(j, "foreign_names", rs_coverage.foreign_names);
	rs_json_u64(j, "unknown_kernels", rs_coverage.unknown_kernel);
	rs_json_u64(j, "opaque_graphs", rs_coverage.opaque_graphs);
	rs_json_u64(j, "by_name", rs_coverage.by_name);
	rs_json_u64(j, "export_tables", rs_coverage.export_tables);
	rs_json_u64(j, "lost_threads", rs_coverage.lost_threads);
	rs_json_u64(j, "bypass", rs_coverage.bypass);
	rs_json_u64(j, "bypass_idle", rs_coverage.bypass_idle);
}

void rs_coverage_names(struct rs_json *j)
{
	put(j, "unknown", &unknown);
	put(j, "foreign", &foreign);
	put(j, "tables", &tables);
}
