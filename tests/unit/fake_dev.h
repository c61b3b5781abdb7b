/* SPDX-License-Identifier: MIT */
/*
 * A device for testing the engine without CUDA: host memory, queues of closures, and a scheduler that
 * runs them in any order that queues and events allow (seeded), so that a missing order shows as
 * wrong bytes.
 *
 * Single threaded. Everything the engine asks for goes through `fake_ops`; the test's own "kernels" are
 * closures on the same queues. fail_alloc, fail_copy, fail_digest count down to an injected failure.
 *
 * Its clock: an operation begins when its queue and what it waits for have ended, and takes FAKE_OP_NS and FAKE_BYTE_NS
 * for each byte (a call: fake.call_ns; events and marks: nothing). So times are the same for every order of running.
 */
#ifndef FAKE_DEV_H
#define FAKE_DEV_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/fake_order.h"
#include "tracker/devops.h"
#include "tracker/digest.h"

#define FAKE_QUEUES 8
#define FAKE_OPS    256

#define FAKE_OP_NS   1000
#define FAKE_BYTE_NS 1

struct fake_op {
	enum {
		FAKE_COPY,
		FAKE_SWAP,
		FAKE_DIFF,
		FAKE_DIGEST,
		FAKE_RECORD,
		FAKE_WAIT,
		FAKE_CALL
	} kind;
	uint64_t dst, src, bytes;
	uint64_t *out;
	uint64_t event;
	uint64_t ns; /* of a call */
	void (*fn)(void *arg);
	void *arg;
};

struct fake_event {
	uint8_t recorded, passed;
	uint64_t ns; /* when it passed, on the device's clock */
};

struct fake_slab {
	struct fake_slab *next;
	uint64_t words[];
};

/* Before each device block; what nobody gives back goes with fake_reset, as with a context. */
struct fake_block {
	struct fake_block *next, **link;
};

/* Memory that can be mapped in another's place: a file's pages. */
struct fake_frame {
	int fd;
	uint64_t addr, bytes; /* where the device's user can always reach it */
	struct fake_frame *next;
};

static struct {
	struct fake_slab *slabs;
	struct fake_op op[FAKE_QUEUES][FAKE_OPS];
	unsigned head[FAKE_QUEUES], tail[FAKE_QUEUES];
	struct fake_event *event;
	uint64_t nevents, cap;
	uint64_t clock[FAKE_QUEUES]; /* when what has run in the queue ended */
	uint64_t call_ns;	     /* what a call enqueued from now on takes */
	int fail_mark;		     /* as fail_alloc */
	uint64_t live_marks;
	uint64_t rng;
	int eager;
	unsigned lazy;		   /* an enqueue runs something once in 2^lazy times */
	int fail_alloc, fail_copy; /* the n-th from now fails; 0: none; alloc < 0: all fail */
	int lost;		   /* questions about events fail */
	int fail_more;		   /* after such a copy as many more, each of its own */
	int fail_digest;	   /* as fail_copy, and after it fail_digests more */
	int fail_digests;
	int fail_result;			 /* as fail_alloc, of result words */
	uint64_t copies, moves;			 /* that were asked for */
	uint64_t digests, batches;		 /* of one range, of many */
	int fail_diff;				 /* as fail_copy */
	int fail_record, fail_wait, fail_within; /* as fail_alloc, of events */
	uint64_t diffs, pairs;			 /* comparisons of one pair, of many */
	uint64_t overlaps; /* of copies within a move, whose order nobody knows */
	uint64_t live_blocks;
	struct fake_block *blocks;
	struct fake_frame *mapped;  /* what is mapped where, by the test and by remap */
	int fail_frame, fail_remap; /* as fail_alloc; of all calls that make frames and views */
	int unmaps;		    /* a remap that fails leaves nothing mapped; so many times */
	uint64_t live_frames, remaps;
	void (*meanwhile)(void); /* during the next remap, once */
} fake;

static inline uint32_t fake_random(uint32_t n)
{
	fake.rng = fake.rng * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((fake.rng >> 33) % n);
}

static int fake_ready(const struct fake_op *op)
{
	return op->kind != FAKE_WAIT || fake.event[op->event].passed;
}

static void fake_exchange(uint8_t *a, uint8_t *b, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		uint8_t x = a[i];

		a[i] = b[i];
		b[i] = x;
	}
}

/* The queue's clock moves on over op. */
static void fake_tick(uint64_t *clock, const struct fake_op *op)
{
	switch (op->kind) {
	case FAKE_RECORD:
		fake.event[op->event].ns = *clock;
		break;
	case FAKE_WAIT:
		if (*clock < fake.event[op->event].ns)
			*clock = fake.event[op->event].ns;
		break;
	case FAKE_CALL:
		*clock += op->ns;
		break;
	default:
		*clock += FAKE_OP_NS + FAKE_BYTE_NS * op->bytes;
	}
}

/* Run the head of queue q if it may run. */
static int fake_run_one(unsigned q)
{
	struct fake_op op;

	if (fake.head[q] == fake.tail[q])
		return 0;
	op = fake.op[q][fake.head[q] % FAKE_OPS];
	if (!fake_ready(&op))
		return 0;
	fake.head[q]++;
	fake_tick(&fake.clock[q], &op);
	switch (op.kind) {
	case FAKE_COPY:
		memmove((void *)op.dst, (void *)op.src, op.bytes);
		break;
	case FAKE_SWAP:
		fake_exchange((uint8_t *)op.dst, (uint8_t *)op.src, op.bytes);
		break;
	case FAKE_DIFF:
		for (uint64_t at = 0; at < op.bytes; at += RS_PAGE)
			op.out[at / RS_PAGE] =
				!!memcmp((char *)op.dst + at, (char *)op.src + at,
					 op.bytes - at < RS_PAGE ? op.bytes - at : RS_PAGE);
		break;
	case FAKE_DIGEST:
		rs_digest_range((void *)op.src, op.bytes, op.out);
		break;
	case FAKE_RECORD:
		fake.event[op.event].passed = 1;
		break;
	case FAKE_CALL:
		op.fn(op.arg);
		free(op.arg);
		break;
	case FAKE_WAIT:
		break;
	}
	return 1;
}

/* Run up to n ready operations from random queues. */
static void fake_run(unsigned n)
{
	unsigned idle = 0;

	while (n && idle < 64) {
		if (fake_run_one(fake_random(FAKE_QUEUES))) {
			n--;
			idle = 0;
		} else {
			idle++;
		}
	}
}

/* Everything; 0 if a queue can never go on. */
static int fake_drain(void)
{
	unsigned q, progress = 1, left = 0;

	while (progress) {
		progress = 0;
		for (q = 0; q < FAKE_QUEUES; q++)
			progress |= (unsigned)fake_run_one(q);
	}
	for (q = 0; q < FAKE_QUEUES; q++)
		left += fake.tail[q] - fake.head[q];
	return !left;
}

static void fake_ordered(unsigned q, const struct fake_op *op)
{
	if (op->kind == FAKE_RECORD) {
		order_record(q, op->event);
	} else if (op->kind == FAKE_WAIT) {
		order_wait(q, op->event);
	} else {
		order_next(q);
		order_touch(q, op->src, op->bytes, op->kind == FAKE_SWAP);
		order_touch(q, op->dst, op->bytes, op->kind == FAKE_SWAP || op->kind == FAKE_COPY);
	}
}

static int fake_enqueue(struct rs_queue q, struct fake_op op)
{
	unsigned i = (unsigned)q.stream % FAKE_QUEUES;

	fake_ordered(i, &op);
	if (fake.tail[i] - fake.head[i] == FAKE_OPS)
		fake_drain();
	fake.op[i][fake.tail[i]++ % FAKE_OPS] = op;
	if (fake.eager)
		fake_drain();
	else if (!fake_random(1u << fake.lazy))
		fake_run(fake_random(4));
	return 0;
}

static inline void fake_call(unsigned stream, void (*fn)(void *), void *arg)
{
	fake_enqueue((struct rs_queue){.ctx = 1, .stream = stream},
		     (struct fake_op){.kind = FAKE_CALL, .fn = fn, .arg = arg, .ns = fake.call_ns});
}

static inline void fake_block_free(struct fake_block *b)
{
	*b->link = b->next;
	if (b->next)
		b->next->link = b->link;
	free(b);
}

/* Is it the turn of one that fails? */
static int fake_turn(int *count)
{
	return *count < 0 || (*count && !--*count);
}

static int fake_alloc(void *o, struct rs_queue q, uint64_t bytes, uint64_t *ret_addr)
{
	struct fake_block *b;
	void *p;

	(void)o;
	(void)q;
	if (fake_turn(&fake.fail_alloc))
		return -ENOMEM;
	b = aligned_alloc(256, 256 + (bytes + 255) / 256 * 256);
	if (!b)
		return -ENOMEM;
	b->next = fake.blocks;
	b->link = &fake.blocks;
	if (b->next)
		b->next->link = &b->next;
	fake.blocks = b;
	p = (char *)b + 256;
	memset(p, 0xc5, bytes);
	fake.live_blocks++;
	*ret_addr = (uint64_t)p;
	return 0;
}

static void fake_free(void *o, struct rs_queue q, uint64_t addr)
{
	(void)o;
	(void)q;
	fake_drain();
	order_all_seen();
	fake.live_blocks--;
	fake_block_free((struct fake_block *)(addr - 256));
}

/* Is it this copy's turn to fail? */
static int fake_fails(void)
{
	if (!fake.fail_copy || --fake.fail_copy)
		return 0;
	if (fake.fail_more) {
		fake.fail_more--;
		fake.fail_copy = 1;
	}
	return 1;
}

static int fake_digest_fails(void)
{
	if (!fake.fail_digest || --fake.fail_digest)
		return 0;
	if (fake.fail_digests) {
		fake.fail_digests--;
		fake.fail_digest = 1;
	}
	return 1;
}

static int fake_copy(void *o, struct rs_queue q, uint64_t dst, uint64_t src, uint64_t bytes)
{
	(void)o;
	fake.copies++;
	if (fake_fails())
		return -EIO;
	return fake_enqueue(
		q, (struct fake_op){.kind = FAKE_COPY, .dst = dst, .src = src, .bytes = bytes});
}

/* One that fails has been made by half. */
static int fake_move(void *o, struct rs_queue q, const struct rs_move *list, uint64_t n)
{
	int fails = fake_fails();
	uint64_t i;

	(void)o;
	fake.moves++;
	for (i = 0; i < n; i++)
		for (uint64_t k = 0; k < n; k++)
			fake.overlaps += list[i].dst < list[k].src + list[k].bytes &&
					 list[k].src < list[i].dst + list[i].bytes;
	for (i = 0; i < n; i++)
		for (uint64_t k = 0; k < i; k++)
			fake.overlaps += list[i].dst < list[k].dst + list[k].bytes &&
					 list[k].dst < list[i].dst + list[i].bytes;
	n = fails ? n / 2 : n;
	for (i = 0; i < n; i++)
		fake_enqueue(q, (struct fake_op){.kind = FAKE_COPY,
						 .dst = list[i].dst,
						 .src = list[i].src,
						 .bytes = list[i].bytes});
	return fails ? -EIO : 0;
}

static int fake_swap(void *o, struct rs_queue q, uint64_t a, uint64_t b, uint64_t bytes)
{
	(void)o;
	if (fake_fails())
		return -EIO;
	return fake_enqueue(
		q, (struct fake_op){.kind = FAKE_SWAP, .dst = a, .src = b, .bytes = bytes});
}

static void fake_put_diff(struct rs_queue q, const struct rs_versus *p)
{
	fake_enqueue(q, (struct fake_op){.kind = FAKE_DIFF,
					 .dst = p->a,
					 .src = p->b,
					 .bytes = p->bytes,
					 .out = p->out});
}

static int fake_diff(void *o, struct rs_queue q, uint64_t a, uint64_t b, uint64_t bytes,
		     uint64_t *out)
{
	(void)o;
	fake.diffs++;
	if (fake.fail_diff && !--fake.fail_diff)
		return -EIO;
	fake_put_diff(q, &(struct rs_versus){a, b, bytes, out});
	return 0;
}

/* As fake_digest_many. */
static int fake_diff_many(void *o, struct rs_queue q, const struct rs_versus *list, uint64_t n)
{
	int fails = fake.fail_diff && !--fake.fail_diff;

	(void)o;
	fake.pairs++;
	for (uint64_t i = n; i-- > (fails ? n / 2 : 0);)
		fake_put_diff(q, &list[i]);
	return fails ? -EIO : 0;
}

static int fake_digest(void *o, struct rs_queue q, uint64_t addr, uint64_t bytes, uint64_t *out)
{
	(void)o;
	fake.digests++;
	if (fake_digest_fails())
		return -EIO;
	return fake_enqueue(
		q, (struct fake_op){.kind = FAKE_DIGEST, .src = addr, .bytes = bytes, .out = out});
}

/* Backwards, for their order is nobody's business. Of one that fails half have been made. */
static int fake_digest_many(void *o, struct rs_queue q, const struct rs_piece *list, uint64_t n)
{
	int fails = fake_digest_fails();
	uint64_t i;

	(void)o;
	fake.batches++;
	for (i = n; i-- > (fails ? n / 2 : 0);)
		fake_enqueue(q, (struct fake_op){.kind = FAKE_DIGEST,
						 .src = list[i].addr,
						 .bytes = list[i].bytes,
						 .out = list[i].out});
	return fails ? -EIO : 0;
}

static int fake_result_alloc(void *o, struct rs_queue q, uint64_t words, uint64_t **ret)
{
	struct fake_slab *s;

	(void)o;
	(void)q;
	if (fake.fail_result && !--fake.fail_result)
		return -ENOMEM;
	s = calloc(1, sizeof(*s) + words * 8);
	if (!s)
		return -ENOMEM;
	s->next = fake.slabs; /* pinned memory is the context's: it goes with fake_reset */
	fake.slabs = s;
	*ret = s->words;
	return 0;
}

static void fake_result_free(void *o, uint64_t *words)
{
	(void)o;
	(void)words;
}

static int fake_event_record(void *o, struct rs_queue q, uint64_t *ret)
{
	(void)o;
	if (fake_turn(&fake.fail_record))
		return -EIO;
	if (fake.nevents == fake.cap) {
		fake.cap = fake.cap ? fake.cap * 2 : 256;
		fake.event = realloc(fake.event, fake.cap * sizeof(*fake.event));
	}
	fake.event[fake.nevents] = (struct fake_event){.recorded = 1};
	*ret = fake.nevents + 1; /* 0 means none */
	fake.nevents++;
	return fake_enqueue(q, (struct fake_op){.kind = FAKE_RECORD, .event = *ret - 1});
}

static int fake_event_wait(void *o, struct rs_queue q, uint64_t event)
{
	(void)o;
	if (fake_turn(&fake.fail_wait))
		return -EIO;
	return fake_enqueue(q, (struct fake_op){.kind = FAKE_WAIT, .event = event - 1});
}

static int fake_event_done(void *o, uint64_t event)
{
	(void)o;
	if (!fake.lost && fake.event[event - 1].passed)
		order_seen(event - 1);
	return fake.lost ? -EIO : fake.event[event - 1].passed;
}

static int fake_event_sync(void *o, uint64_t event)
{
	(void)o;
	fake_drain();
	order_seen(event - 1);
	return fake.event[event - 1].passed ? 0 : -EIO;
}

static void fake_event_free(void *o, uint64_t event)
{
	(void)o;
	(void)event;
}

static int fake_mark(void *o, struct rs_queue q, uint64_t *ret)
{
	int r;

	if (fake_turn(&fake.fail_mark))
		return -EXDEV;
	r = fake_event_record(o, q, ret);
	fake.live_marks += !r;
	return r;
}

static int fake_elapsed(void *o, uint64_t from, uint64_t to, uint64_t *ret_ns)
{
	const struct fake_event *a = &fake.event[from - 1], *b = &fake.event[to - 1];

	(void)o;
	if (!a->passed || !b->passed)
		return -EAGAIN;
	if (b->ns < a->ns)
		return -ERANGE;
	*ret_ns = b->ns - a->ns;
	return 0;
}

static void fake_mark_free(void *o, uint64_t mark)
{
	(void)o;
	(void)mark;
	fake.live_marks--;
}

/* --- memory that is mapped ------------------------------------------------------------------------ */

static inline void *fake_view_of(void *at, uint64_t bytes, int fd)
{
	void *p = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (at ? MAP_FIXED : 0), fd, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

/* The test's own: whole pages of a new backing, zeroed; they go with fake_unmap. */
static inline void *fake_map(uint64_t bytes)
{
	struct fake_frame *f = calloc(1, sizeof(*f));

	f->fd = memfd_create("backing", 0);
	if (f->fd < 0 || ftruncate(f->fd, (off_t)bytes))
		abort();
	f->bytes = bytes;
	f->addr = (uint64_t)fake_view_of(NULL, bytes, f->fd);
	f->next = fake.mapped;
	fake.mapped = f;
	return (void *)f->addr;
}

static inline struct fake_frame *fake_mapped(uint64_t addr)
{
	struct fake_frame *f;

	for (f = fake.mapped; f && f->addr != addr; f = f->next)
		;
	return f;
}

static inline void fake_unmap(void *p)
{
	struct fake_frame **at, *f;

	for (at = &fake.mapped; (f = *at) && f->addr != (uint64_t)p; at = &f->next)
		;
	*at = f->next;
	munmap(p, f->bytes);
	close(f->fd);
	free(f);
}

static int fake_frame_make(uint64_t bytes, int fd, uint64_t *ret_frame, uint64_t *ret_addr)
{
	struct fake_frame *f = calloc(1, sizeof(*f));

	f->fd = fd;
	f->bytes = bytes;
	f->addr = (uint64_t)fake_view_of(NULL, bytes, fd);
	fake.live_frames++;
	*ret_frame = (uint64_t)f;
	*ret_addr = f->addr;
	return 0;
}

static int fake_frame_fails(void)
{
	return fake_turn(&fake.fail_frame);
}

static int fake_frame_alloc(void *o, struct rs_queue q, uint64_t addr, uint64_t bytes,
			    uint64_t *ret_frame, uint64_t *ret_addr)
{
	int fd;

	(void)o;
	(void)q;
	bytes = (bytes + 4095) & ~4095ull;
	if (addr && !fake_mapped(addr))
		return -ENOTSUP;
	if (fake_frame_fails())
		return -ENOMEM;
	fd = memfd_create("frame", 0);
	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		abort();
	return fake_frame_make(bytes, fd, ret_frame, ret_addr);
}

static int fake_frame_view(void *o, struct rs_queue q, uint64_t addr, uint64_t bytes,
			   uint64_t *ret_frame, uint64_t *ret_addr)
{
	struct fake_frame *f = fake_mapped(addr);

	(void)o;
	(void)q;
	if (!f || f->bytes != bytes)
		return -ENOTSUP;
	if (fake_frame_fails())
		return -ENOMEM;
	return fake_frame_make(bytes, dup(f->fd), ret_frame, ret_addr);
}

static void fake_frame_free(void *o, uint64_t frame)
{
	struct fake_frame *f = (struct fake_frame *)frame;

	(void)o;
	munmap((void *)f->addr, f->bytes);
	close(f->fd);
	free(f);
	fake.live_frames--;
}

static int fake_same(int a, int b)
{
	struct stat x, y;

	return !fstat(a, &x) && !fstat(b, &y) && x.st_ino == y.st_ino;
}

/* At once, whatever is still in the queues: that is the caller's business. */
static int fake_remap(void *o, uint64_t addr, uint64_t bytes, uint64_t home, uint64_t from,
		      uint64_t to)
{
	struct fake_frame *f = fake_mapped(addr), *t = (struct fake_frame *)to;

	(void)o;
	if (home && ((struct fake_frame *)home)->addr == addr) { /* of the caller's own */
		fake_view_of((void *)addr, bytes, t->fd);
		return 0;
	}
	if (!f || !home || f->bytes != bytes || t->bytes != bytes ||
	    (from && !fake_same(f->fd, ((struct fake_frame *)from)->fd)))
		abort();
	if (fake.meanwhile) {
		void (*meanwhile)(void) = fake.meanwhile;

		fake.meanwhile = NULL;
		meanwhile();
	}
	if (fake.fail_remap < 0 || (fake.fail_remap && !--fake.fail_remap)) {
		if (!fake.unmaps)
			return from ? -EIO : -EFAULT;
		fake.unmaps--;
		fake.fail_remap += fake.unmaps != 0 && fake.fail_remap >= 0;
		mprotect((void *)addr, bytes, PROT_NONE);
		return -EFAULT;
	}
	fake_view_of((void *)addr, bytes, t->fd);
	close(f->fd);
	f->fd = dup(t->fd);
	fake.remaps++;
	return 0;
}

static int fake_event_within(void *o, uint64_t event, uint64_t ns)
{
	(void)o;
	(void)ns;
	if (fake.lost || fake_turn(&fake.fail_within))
		return -EIO;
	fake_drain();
	order_seen(event - 1);
	return fake.event[event - 1].passed ? 0 : -ETIMEDOUT;
}

static const struct rs_devops fake_ops = {
	.alloc = fake_alloc,
	.free = fake_free,
	.copy = fake_copy,
	.move = fake_move,
	.swap = fake_swap,
	.diff = fake_diff,
	.diff_many = fake_diff_many,
	.digest = fake_digest,
	.digest_many = fake_digest_many,
	.result_alloc = fake_result_alloc,
	.result_free = fake_result_free,
	.event_record = fake_event_record,
	.event_wait = fake_event_wait,
	.event_done = fake_event_done,
	.event_sync = fake_event_sync,
	.event_free = fake_event_free,
	.mark = fake_mark,
	.elapsed = fake_elapsed,
	.mark_free = fake_mark_free,
	.frame_alloc = fake_frame_alloc,
	.frame_view = fake_frame_view,
	.frame_free = fake_frame_free,
	.remap = fake_remap,
	.event_within = fake_event_within,
};

static inline void fake_reset(uint64_t seed, int eager)
{
	struct fake_slab *s;

	fake_drain();
	free(fake.event);
	while (fake.blocks)
		fake_block_free(fake.blocks);
	while (fake.mapped)
		fake_unmap((void *)fake.mapped->addr);
	while ((s = fake.slabs)) {
		fake.slabs = s->next;
		free(s);
	}
	memset(&fake, 0, sizeof(fake));
	order_reset();
	fake.rng = seed * 2654435761u + 1;
	fake.eager = eager;
	fake.lazy = (unsigned)(seed % 4) * 2;
	fake.call_ns = FAKE_OP_NS;
}

#endif
