/* SPDX-License-Identifier: MIT */
/*
 * A rig for engine tests by scenario: named word buffers on the fake device, one-line "kernels", and the
 * records that come out. Words are u32, as in the hazard cases.
 */
#ifndef ENGINE_RIG_H
#define ENGINE_RIG_H

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/tap.h"
#include "tests/unit/calm.h"
#include "tests/unit/fake_dev.h"
#include "tracker/engine.h"
#include "tracker/records.h"

static struct rs_engine *eng;
static struct rs_thread *thr;
static struct rs_records *rec;
/* Kernels outside of windows take the shim's short cut, with its memory of the engine; cleared for a new one. */
static struct calm rig_calm;
static char rig_dir[64];
/* Kernels are looked at by fake_order.h: fake_order.missing. */
static int rig_ordered;

#define RIG_Q(n) ((struct rs_queue){.ctx = 1, .stream = (n)})

/* Freed by drop, or by rig_stop. */
#define RIG_BUFFERS 64
static uint32_t *rig_buffer[RIG_BUFFERS];

static inline uint32_t *words(unsigned n)
{
	uint32_t *p = aligned_alloc(256, (n * 4 + 255) / 256 * 256);

	memset(p, 0, n * 4);
	for (unsigned i = 0; i < RIG_BUFFERS; i++)
		if (!rig_buffer[i]) {
			rig_buffer[i] = p;
			break;
		}
	rs_engine_alloc(eng, thr, RIG_Q(0), (uint64_t)p, n * 4, RS_ALLOC_DEVICE);
	return p;
}

static inline void drop(uint32_t *p)
{
	rs_engine_free(eng, thr, RIG_Q(0), (uint64_t)p);
	fake_drain();
	for (unsigned i = 0; i < RIG_BUFFERS; i++)
		if (rig_buffer[i] == p)
			rig_buffer[i] = NULL;
	free(p);
}

static uint8_t rig_verify = 1, rig_costs, rig_order, rig_buffers;
static uint64_t rig_snapshot_max;

static void rig_start(enum rs_mode mode)
{
	struct rs_engine_config config = {.mode = mode,
					  .verify = rig_verify,
					  .costs = rig_costs,
					  .order = rig_order,
					  .buffers = rig_buffers,
					  .snapshot_max = rig_snapshot_max};

	fake_reset(1, 1);
	snprintf(rig_dir, sizeof(rig_dir), "/tmp/rs-engine-XXXXXX");
	if (!mkdtemp(rig_dir))
		exit(2);
	if (rs_records_open(rig_dir, &rec))
		exit(2);
	eng = rs_engine_create(&config, &fake_ops, rec);
	thr = rs_thread_create(eng);
	memset(&rig_calm, 0, sizeof(rig_calm));
}

/* The text of a record file (static buffer). */
static inline const char *rig_read(const char *name)
{
	static char text[1 << 18];
	char path[128];
	size_t n = 0;
	FILE *f;

	rs_engine_finish(eng);
	snprintf(path, sizeof(path), "%s/%s", rig_dir, name);
	f = fopen(path, "r");
	if (f) {
		n = fread(text, 1, sizeof(text) - 1, f);
		fclose(f);
	}
	text[n] = '\0';
	return text;
}

static void rig_stop(void)
{
	char path[128];

	rs_thread_destroy(thr);
	rs_engine_destroy(eng);
	fake_drain();
	for (unsigned i = 0; i < RIG_BUFFERS; i++) {
		free(rig_buffer[i]);
		rig_buffer[i] = NULL;
	}
	rs_records_close(rec);
	snprintf(path, sizeof(path), "%s/records.jsonl", rig_dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/events.jsonl", rig_dir);
	unlink(path);
	rmdir(rig_dir);
}

/* One access of a rig kernel: words [first, first + n) of p. */
struct rig_arg {
	uint32_t *p;
	unsigned first, n;
	int dir;
	int partial; /* writes: coverage not proved */
	int whole;   /* 2: nor is it known whether it is accessed at all */
};
#define R_(p, n)                                                                                   \
	{                                                                                          \
		(p), 0, (n), RS_READ, 0, 0                                                         \
	}
#define W_(p, n)                                                                                   \
	{                                                                                          \
		(p), 0, (n), RS_WRITE, 0, 0                                                        \
	}
#define RW_(p, n)                                                                                  \
	{                                                                                          \
		(p), 0, (n), RS_READ | RS_WRITE, 0, 0                                              \
	}

struct rig_body {
	void (*fn)(struct rig_arg *a);
	struct rig_arg a[4];
};

static inline void rig_run(void *arg)
{
	struct rig_body *b = arg;

	b->fn(b->a);
}

static inline void kernel_q(unsigned q, const char *name, void (*fn)(struct rig_arg *), unsigned n,
			    const struct rig_arg *a)
{
	struct rs_access x[4];
	struct rs_call call = {.name = name,
			       .ident = (uint64_t)(uintptr_t)fn,
			       .kind = RS_CALL_KERNEL,
			       .q = RIG_Q(q),
			       .access = x,
			       .naccess = n};
	struct rig_body *b = malloc(sizeof(*b));
	unsigned i;

	b->fn = fn;
	if (n)
		memcpy(b->a, a, n * sizeof(*a));
	for (i = 0; i < n; i++)
		x[i] = (struct rs_access){.addr = (uint64_t)(a[i].p + a[i].first),
					  .bytes = a[i].n * 4,
					  .dir = (uint8_t)a[i].dir,
					  .how = a[i].whole > 1 ? RS_HOW_REACHABLE : RS_HOW_PTX,
					  .whole = a[i].whole != 0,
					  .dense = !a[i].partial,
					  .slot = (uint16_t)i};
	calm_before(&rig_calm, eng, thr, &call);
	fake_call(q, rig_run, b);
	for (i = 0; rig_ordered && i < n; i++)
		order_touch(q, x[i].addr, x[i].bytes, x[i].dir & RS_WRITE);
	calm_after(&rig_calm, eng, thr, &call);
}

#define KERNEL(fn, ...)                                                                            \
	kernel_q(0, #fn, fn, sizeof((struct rig_arg[]){__VA_ARGS__}) / sizeof(struct rig_arg),     \
		 (struct rig_arg[]){__VA_ARGS__})

#define PUSH(text) rs_engine_push(eng, thr, text)
#define POP()	   rs_engine_pop(eng, thr)
#define STEP(n)	   rs_engine_mark(eng, thr, "step:" #n)

/* How often a text stands in a text. */
static inline unsigned count(const char *hay, const char *needle)
{
	unsigned n = 0;

	for (hay = strstr(hay, needle); hay; hay = strstr(hay + 1, needle))
		n++;
	return n;
}

#endif
