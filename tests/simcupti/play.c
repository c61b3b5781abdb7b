/* SPDX-License-Identifier: MIT */
/*
 * Recorded buffers, good and broken; see simcupti.h. A text, a line for each record or command:
 *
 *	N call C K          at the N-th flush: call C was made in the window that was entered as the K-th (from 0 on)
 *	N kernel C A B      the work of call C took from A to B; also copy, fill, peer
 *	N raw BYTES HEX     a record of that many bytes that begins with HEX; what is left out is 0
 *	N cut BYTES         the buffer comes back with that many bytes less than it holds
 *	N dropped COUNT     that many records were dropped
 *	N foreign           a buffer comes back that nobody gave
 *
 * # begins a comment. Under the lock of the stand-in.
 */
#include "tests/simcupti/simcupti.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	uint32_t kind;
} works[] = {{"kernel", 10}, {"copy", 1}, {"fill", 2}, {"peer", 22}};

static void raw(const char *args)
{
	uint8_t r[1024] = {0};
	unsigned size = 0, n = 0, byte;
	int used = 0;

	if (sscanf(args, "%u %n", &size, &used) != 1 || size > sizeof(r))
		return;
	for (args += used; n < size && sscanf(args, "%2x", &byte) == 1; args += 2)
		r[n++] = (uint8_t)byte;
	simcupti_put(r, size);
}

static void foreign(void)
{
	static uint8_t theirs[64];

	simcupti.completed(NULL, 0, theirs, sizeof(theirs), sizeof(theirs));
}

static void play(const char *verb, const char *args, size_t *cut)
{
	unsigned a = 0, b = 0;
	unsigned long long from = 0, to = 0;

	if (!strcmp(verb, "call") && sscanf(args, "%u %u", &a, &b) == 2)
		simcupti_put_call(a, 5, b < simcupti.npushed ? simcupti.pushed[b] : ~0ull);
	for (unsigned i = 0; i < sizeof(works) / sizeof(*works); i++)
		if (!strcmp(verb, works[i].name) &&
		    sscanf(args, "%u %llu %llu", &a, &from, &to) == 3)
			simcupti_put_work(works[i].kind, a, from, to);
	if (!strcmp(verb, "raw"))
		raw(args);
	if (!strcmp(verb, "cut"))
		*cut = strtoul(args, NULL, 10);
	if (!strcmp(verb, "dropped"))
		simcupti.dropped += strtoul(args, NULL, 10);
	if (!strcmp(verb, "foreign"))
		foreign();
}

int simcupti_play(void)
{
	const char *path = getenv("SIMCUPTI_PLAY");
	FILE *f = path ? fopen(path, "r") : NULL;
	char line[4096], verb[16];
	size_t cut = 0;

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f)) {
		unsigned at;
		int used;

		if (sscanf(line, "%u %15s%n", &at, verb, &used) == 2 && at == simcupti.flushes)
			play(verb, line + used, &cut);
	}
	fclose(f);
	simcupti_complete(cut < simcupti.filled ? simcupti.filled - cut : 0);
	return 1;
}
