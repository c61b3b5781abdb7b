/* SPDX-License-Identifier: MIT */
/*
 * See parse.h. Callers: session.c, from CUPTI's buffer callback; tests/fuzz/fuzz_cupti.c.
 */
#include "cupti/parse.h"

#include <errno.h>
#include <string.h>

static const struct layout {
	uint32_t kind;
	uint8_t start, end, correlation;
} layouts[] = {
#define X(name, start, end, correlation) {RS_CUPTI_KIND_##name, start, end, correlation},
	RS_CUPTI_LAYOUTS(X)
#undef X
};

struct batch {
	const struct rs_cupti_sink *sink;
	unsigned n;
	struct rs_cupti_item item[RS_CUPTI_BATCH];
};

static void put(struct batch *b, struct rs_cupti_item item)
{
	b->item[b->n++] = item;
	if (b->n < RS_CUPTI_BATCH)
		return;
	b->sink->items(b->sink->arg, b->item, b->n);
	b->n = 0;
}

static uint64_t word64(const uint8_t *at)
{
	uint64_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

static uint32_t word32(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

static int read_external(struct batch *b, const uint8_t *record, size_t left)
{
	struct rs_cupti_external e;

	if (left < sizeof(e))
		return -EINVAL;
	memcpy(&e, record, sizeof(e));
	if (e.external_kind == RS_CUPTI_EXTERNAL_OURS)
		put(b, (struct rs_cupti_item){.what = RS_CUPTI_CALL,
					      .correlation = e.correlation,
					      .window = e.external_id});
	return 0;
}

/* More than an hour: no operation takes that long. */
#define LONGEST_NS (1ull << 42)

/* No times, or impossible ones: CUPTI had no memory for them, or the record is not complete. */
static int read_activity(struct batch *b, const struct layout *l, const uint8_t *record,
			 size_t left)
{
	struct rs_cupti_item item = {.what = RS_CUPTI_BUSY};

	if (left < l->correlation + sizeof(uint32_t))
		return -EINVAL;
	item.correlation = word32(record + l->correlation);
	item.start = word64(record + l->start);
	item.end = word64(record + l->end);
	if (!item.start || item.end < item.start || item.end - item.start > LONGEST_NS)
		item.what = RS_CUPTI_UNTIMED;
	put(b, item);
	return 0;
}

static int read_record(struct batch *b, const uint8_t *record, size_t left)
{
	uint32_t kind;

	if (left < sizeof(kind))
		return -EINVAL;
	kind = word32(record);
	if (kind == RS_CUPTI_KIND_EXTERNAL)
		return read_external(b, record, left);
	for (unsigned i = 0; i < sizeof(layouts) / sizeof(*layouts); i++)
		if (layouts[i].kind == kind)
			return read_activity(b, &layouts[i], record, left);
	return 0;
}

int rs_cupti_parse(rs_cupti_next_fn *next, uint8_t *buffer, size_t valid,
		   const struct rs_cupti_sink *sink, uint64_t *ret_records)
{
	struct batch b = {.sink = sink};
	void *record = NULL;
	uintptr_t from = (uintptr_t)buffer, least = from;
	uint64_t records = 0;
	int r = 0, end = RS_CUPTI_SUCCESS;

	while (!r && (end = next(buffer, valid, &record)) == RS_CUPTI_SUCCESS) {
		uintptr_t at = (uintptr_t)record;

		if (at < least || at - from >= valid) {
			r = -EINVAL;
			break;
		}
		least = at + 1;
		records++;
		r = read_record(&b, record, valid - (at - from));
	}
	if (b.n)
		sink->items(sink->arg, b.item, b.n);
	*ret_records = records;
	return !r && end != RS_CUPTI_MAX_LIMIT_REACHED ? -EINVAL : r;
}
