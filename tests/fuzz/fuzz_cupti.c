/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: a buffer of CUPTI's records, and the windows that they belong to. Nothing is read outside of the buffer,
 * every window is told at most once and only after it was entered and left, and its time fits between its records.
 *
 * Input: 16 bytes that choose the records' lengths (the library's own knowledge, so the buffer does not hold them) and how
 * the list ends, then bytes of the buffer. Seeds: tests/fuzz/corpus/fuzz_cupti. No state between inputs, no locks.
 */
#include "cupti/busy.c"
#include "cupti/parse.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEAD	16u
#define WINDOWS 8u

static const uint8_t *head;
static unsigned at_length;

static void require(int good)
{
	if (!good)
		abort();
}

/* As the library: from record to record, and an error, maybe, in place of the end. */
static int next(uint8_t *buffer, size_t valid, void **record)
{
	static const int ends[] = {RS_CUPTI_MAX_LIMIT_REACHED, RS_CUPTI_MAX_LIMIT_REACHED, 21,
				   RS_CUPTI_NOT_INITIALIZED};
	size_t length = 8u * head[at_length++ % (HEAD - 1)];
	uint8_t *p = *record;

	p = p ? p + length : buffer;
	if ((size_t)(p - buffer) >= valid && !(head[HEAD - 1] & 4))
		return ends[head[HEAD - 1] & 3];
	if (at_length > 4096)
		return RS_CUPTI_MAX_LIMIT_REACHED;
	*record = p;
	return RS_CUPTI_SUCCESS;
}

static void take(void *arg, const struct rs_cupti_item *items, unsigned n)
{
	require(n && n <= RS_CUPTI_BATCH);
	for (unsigned i = 0; i < n; i++) {
		require(items[i].what != RS_CUPTI_BUSY ||
			(items[i].start && items[i].end >= items[i].start));
		rs_cupti_busy_item(arg, &items[i]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rs_cupti_busy *b = rs_cupti_busy_create();
	struct rs_cupti_sink sink = {b, take};
	struct rs_cupti_told told[WINDOWS];
	struct rs_cupti_counts counts;
	uint64_t records = 0;
	uint8_t *buffer, seen[WINDOWS + 1] = {0};
	unsigned n;

	if (size < HEAD || !b) {
		rs_cupti_busy_destroy(b);
		return 0;
	}
	head = data;
	at_length = 0;
	size -= HEAD;
	buffer = malloc(size ? size : 1);
	if (!buffer)
		return 0;
	memcpy(buffer, data + HEAD, size);
	for (uint64_t w = 1; w <= WINDOWS; w++)
		rs_cupti_busy_enter(b, w);
	rs_cupti_parse(next, buffer, size, &sink, &records);
	require(records <= size);
	for (uint64_t w = 1; w <= WINDOWS; w++)
		rs_cupti_busy_leave(b, w, w);
	for (unsigned i = 0; i < 6; i++) {
		rs_cupti_busy_flushed(b);
		n = rs_cupti_busy_tell(b, i + 2, told, WINDOWS);
		require(n <= WINDOWS);
		for (unsigned k = 0; k < n; k++) {
			require(told[k].window && told[k].window <= WINDOWS);
			require(!seen[told[k].window]++);
		}
	}
	rs_cupti_busy_counts(b, &counts);
	require(counts.told + counts.missing + counts.empty == WINDOWS);
	rs_cupti_busy_destroy(b);
	free(buffer);
	return 0;
}
