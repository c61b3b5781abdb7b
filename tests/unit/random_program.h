/* SPDX-License-Identifier: MIT */
/*
 * Random training programs for the engine: segments, buffers, streams, contexts, threads one after the other, draws,
 * writes between forward and replay and in the middle of a replay, by another thread, k replays, nesting, replays that overlap,
 * stop early or whose thread ends; each call is made on the fake device and, at once, on a plain sequential model.
 *
 * The program orders its calls only where it must: by events between conflicting accesses, per buffer. In every other
 * program the state is mapped memory: each buffer lies in two backings, and is reached through two addresses at random; or
 * each is a mapping of its own, most of whose accesses are of all its bytes, and replays may be shown theirs by remapping.
 * In others everything lies in one allocation, an allocator of the program's own says what it gives out, and of half of
 * the accesses nobody knows how far they reach.
 * For test_engine_random.c and test_engine_faults.c, which say what has to hold.
 */
#ifndef TESTS_RANDOM_PROGRAM_H
#define TESTS_RANDOM_PROGRAM_H

#include <malloc.h>

#include "tests/tap.h"
#include "tests/unit/calm.h"
#include "tests/unit/fake_dev.h"
#include "tests/unit/random_memory.h"
#include "tests/unit/random_work.h"
#include "tracker/engine.h"

#define NSTATE	  4
#define NPOOL	  20
#define NBUF	  (NSTATE + NPOOL)
#define MAXKERNEL 6
#define MAXSEG	  5
#define PRODUCT	  1536
#define NGEN	  2
#define NTHREAD	  3

enum kernel_kind { K_RMW, K_OUT, K_CHAIN, K_STORE, K_DRAW, K_KINDS };

struct kernel {
	enum kernel_kind kind;
	/* buffers: K_RMW a from b; K_OUT product from a, b; K_STORE a from product; K_DRAW product from generator a % NGEN */
	int a, b;
	uint64_t off, len;   /* bytes of a */
	uint64_t boff, blen; /* bytes of b */
	uint64_t salt;
};

struct seg {
	struct kernel k[MAXKERNEL];
	unsigned n;
	const struct seg
		*inner; /* a segment inside this one: run by its forward and by its replays */
	unsigned inner_at;
	char name[8];
};

static struct buf buf[NBUF];
static struct rs_thread *thread[NTHREAD], *thr; /* thr: the one that goes on now */
static struct calm calm;
static int bad_bytes, audit, contexts;
static unsigned overlapped; /* calls of other threads in the middle of replays */
static uint64_t noise;	    /* kernels make other bytes of the same, while it is not 0 */
/* Audited replays: a match that made or left other bytes; none although nothing differs; where nothing does. */
static unsigned missed, false_alarms, clean_replays;
static const struct rs_devops *device_ops = &fake_ops;
static int kind_of_last; /* enum rs_alloc_kind of the last state buffer */
/* Bytes drawn from each generator: by the model; from the library, which is not called where the engine serves a replay. */
static uint64_t model_drawn[NGEN], library_drawn[NGEN];

struct check {
	uint8_t *dev, *want;
	uint64_t bytes;
};

static void check_bytes(void *arg)
{
	struct check *c = arg;

	if (memcmp(c->dev, c->want, c->bytes))
		bad_bytes++;
	free(c->want);
}

/* The first half of the streams is of the first context. */
static struct rs_queue queue_of(unsigned q)
{
	return (struct rs_queue){.ctx = contexts > 1 && q > 2 ? 2 : 1, .stream = q};
}

static uint64_t record(unsigned q)
{
	struct rs_queue queue = queue_of(q);
	uint64_t ev;

	fake_event_record(NULL, queue, &ev);
	rs_engine_event_record(eng, thr, queue, ev);
	return ev;
}

static void wait_for(unsigned q, uint64_t ev)
{
	struct rs_queue queue = queue_of(q);

	if (!ev)
		return;
	fake_event_wait(NULL, queue, ev);
	rs_engine_event_wait(eng, thr, queue, ev);
}

/* The program's own order: RAW, WAR and WAW by event, nothing more. */
static void order_read(unsigned q, const struct buf *b)
{
	wait_for(q, b->last_write_event);
}

static void order_write(unsigned q, const struct buf *b)
{
	unsigned i;

	wait_for(q, b->last_write_event);
	for (i = 0; i < FAKE_QUEUES; i++)
		wait_for(q, b->read_event[i]);
}

static void did_write(struct buf *b, uint64_t ev)
{
	b->last_write_event = ev;
	memset(b->read_event, 0, sizeof(b->read_event));
}

/* One of its addresses. */
static uint8_t *place(const struct buf *b)
{
	return b->alias && rnd(2) ? b->alias : b->dev;
}

static struct rs_access access_of(const uint8_t *at, uint64_t len, int dir, unsigned slot)
{
	return (struct rs_access){.addr = (uint64_t)at,
				  .bytes = len,
				  .dir = (uint8_t)dir,
				  .how = RS_HOW_PTX,
				  .dense = dir & RS_WRITE ? 1 : 0,
				  .slot = (uint16_t)slot};
}

/* dst (and dst itself if add) <- src, src2 */
static void launch(uint64_t ident, struct buf *d, uint64_t off, uint64_t len, struct buf *s,
		   uint64_t soff, uint64_t slen, struct buf *s2, int add)
{
	unsigned q = 1 + (unsigned)rnd(4), n = 0;
	struct rs_access x[3];
	struct rs_call call = {.name = "kernel",
			       .ident = ident,
			       .kind = RS_CALL_KERNEL,
			       .q = queue_of(q),
			       .access = x};
	struct work *w = malloc(sizeof(*w)), m;
	uint8_t *dp = place(d), *sp = place(s), *sp2 = s2 ? place(s2) : NULL;
	uint64_t ev;

	order_write(q, d);
	order_read(q, s);
	if (s2)
		order_read(q, s2);
	x[n] = access_of(dp + off, len, add ? RS_READ | RS_WRITE : RS_WRITE, 0);
	if (d->block && ident % 2 == 0) {
		x[n].whole = 1;
		x[n].dense = 0;
	} else if (add && ident % 3 == 0) { /* nobody knows which part */
		x[n] = access_of(dp, d->bytes, RS_READ | RS_WRITE, 0);
		x[n].dense = 0;
	}
	n++;
	x[n] = access_of(sp + soff, slen, RS_READ, 1);
	x[n++].whole = s->block && ident % 5 < 2;
	if (s2)
		x[n++] = access_of(sp2, s2->bytes, RS_READ, 2);
	call.naccess = n;
	*w = (struct work){.dst = dp + off,
			   .src = sp + soff,
			   .src2 = sp2,
			   .bytes = len,
			   .src_bytes = slen,
			   .src2_bytes = s2 ? s2->bytes : 0,
			   .salt = ident + noise,
			   .add = add};
	m = *w;
	m.dst = d->model + off;
	m.src = s->model + soff;
	m.src2 = s2 ? s2->model : NULL;
	calm_before(&calm, eng, thr, &call);
	fake_call(q, compute, w);
	order_touch(q, (uint64_t)(sp + soff), slen, 0);
	order_touch(q, (uint64_t)sp2, s2 ? s2->bytes : 0, 0);
	order_touch(q, (uint64_t)(dp + off), len, 1);
	calm_after(&calm, eng, thr, &call);
	compute(&m);
	ev = record(q);
	did_write(d, ev);
	s->read_event[q] = ev;
	if (s2)
		s2->read_event[q] = ev;
}

/* The program looks at a buffer: the device must show what the model says. */
static void look(struct buf *b)
{
	unsigned q = 1 + (unsigned)rnd(4);
	uint8_t *at = place(b);
	struct rs_access x = access_of(at, b->bytes, RS_READ, 0);
	struct rs_call call = {
		.name = "look", .kind = RS_CALL_COPY, .q = queue_of(q), .access = &x, .naccess = 1};
	struct check *c = malloc(sizeof(*c));

	*c = (struct check){.dev = at, .want = malloc(b->bytes), .bytes = b->bytes};
	memcpy(c->want, b->model, b->bytes);
	order_read(q, b);
	calm_before(&calm, eng, thr, &call);
	fake_call(q, check_bytes, c);
	order_touch(q, (uint64_t)at, b->bytes, 0);
	calm_after(&calm, eng, thr, &call);
	b->read_event[q] = record(q);
}

/* A call of which nobody knows what it writes, so that everything has to be ordered after it; it writes d, from s. */
static void unknown_write(struct buf *d, struct buf *s)
{
	unsigned q = 1 + (unsigned)rnd(2); /* in the memory's context */
	struct rs_call call = {
		.name = "unknown", .kind = RS_CALL_KERNEL, .q = queue_of(q), .everything = 1};
	struct work *w = malloc(sizeof(*w)), m;
	uint64_t ev;

	for (unsigned i = 0; i < NBUF; i++)
		order_write(q, &buf[i]);
	*w = (struct work){.dst = place(d),
			   .src = place(s),
			   .bytes = d->bytes,
			   .src_bytes = s->bytes,
			   .salt = rnd(1u << 30)};
	m = *w;
	m.dst = d->model;
	m.src = s->model;
	calm_before(&calm, eng, thr, &call);
	fake_call(q, compute, w);
	calm_after(&calm, eng, thr, &call);
	compute(&m);
	ev = record(q);
	for (unsigned i = 0; i < NBUF; i++)
		did_write(&buf[i], ev);
}

/* The library's generator g fills d. */
static void draw(unsigned g, struct buf *d)
{
	unsigned q = 1 + (unsigned)rnd(4);
	struct rs_access x = access_of(place(d), d->bytes, RS_WRITE, 0);
	struct rs_call call = {.name = "draw",
			       .ident = g,
			       .kind = RS_CALL_KERNEL,
			       .q = queue_of(q),
			       .access = &x,
			       .naccess = 1};
	struct work *w = malloc(sizeof(*w));
	struct work m = {.dst = d->model, .bytes = d->bytes, .salt = model_drawn[g] * NGEN + g};

	x.how = RS_HOW_EXACT;
	order_write(q, d);
	*w = m;
	w->dst = (uint8_t *)x.addr;
	w->salt = library_drawn[g] * NGEN + g;
	rs_engine_before(eng, thr, &call);
	if (rs_engine_draw(eng, thr, &call, 1 + g, library_drawn[g])) {
		free(w);
	} else {
		fake_call(q, compute, w);
		library_drawn[g] += d->bytes;
		rs_engine_drawn(eng, thr, &call, 1 + g, library_drawn[g] - d->bytes);
	}
	rs_engine_after(eng, thr, &call, 1);
	compute(&m);
	model_drawn[g] += d->bytes;
	did_write(d, record(q));
}

static void make_segment(struct seg *segs, struct seg *s, unsigned id)
{
	unsigned i;

	snprintf(s->name, sizeof(s->name), "s%u", id);
	s->n = 1 + (unsigned)rnd(MAXKERNEL);
	for (i = 0; i < s->n; i++) {
		struct kernel *k = &s->k[i];

		k->kind = (enum kernel_kind)rnd(K_KINDS);
		k->a = (int)rnd(NSTATE);
		k->b = (int)rnd(NSTATE);
		if (k->kind == K_STORE && !buf[k->a].declared)
			k->kind = K_RMW; /* an undeclared write-only range is a product by rule */
		k->len = 1 + rnd((uint32_t)buf[k->a].bytes);
		k->off = rnd((uint32_t)(buf[k->a].bytes - k->len + 1));
		k->blen = 1 + rnd((uint32_t)buf[k->b].bytes);
		k->boff = rnd((uint32_t)(buf[k->b].bytes - k->blen + 1));
		if (buf[k->a].whole && k->len % 4) {
			k->off = 0;
			k->len = buf[k->a].bytes;
		}
		if (buf[k->b].whole && k->blen % 4) {
			k->boff = 0;
			k->blen = buf[k->b].bytes;
		}
		k->salt = rnd(1u << 30) | (uint64_t)id << 40 | (uint64_t)i << 32;
	}
	s->k[0].kind = K_OUT;
	s->inner = id && !rnd(3) ? &segs[rnd(id)] : NULL;
	s->inner_at = (unsigned)rnd(s->n);
}

/* A product of no window that is still open. */
static struct buf *pool_pick(void)
{
	struct buf *b;

	do
		b = &buf[NSTATE + rnd(NPOOL)];
	while (b->in_use);
	b->in_use = 1;
	give(b);
	return b;
}

static void release(struct buf *b)
{
	if (!b)
		return;
	b->in_use = 0;
	take(b);
}

static void run_kernel(const struct kernel *k, struct buf **product)
{
	struct buf *p;

	switch (k->kind) {
	case K_RMW:
		launch(k->salt, &buf[k->a], k->off, k->len, &buf[k->b], k->boff, k->blen,
		       *product && k->salt & 1 ? *product : NULL, 1);
		break;
	case K_OUT:
		p = pool_pick();
		launch(k->salt, p, 0, p->bytes, &buf[k->a], k->off, k->len, &buf[k->b], 0);
		release(*product);
		*product = p;
		break;
	case K_CHAIN:
		p = pool_pick();
		launch(k->salt, p, 0, p->bytes, *product, 0, (*product)->bytes, NULL, 0);
		release(*product);
		*product = p;
		break;
	case K_STORE:
		launch(k->salt, &buf[k->a], k->off, k->len, *product, 0, (*product)->bytes, NULL,
		       0);
		break;
	case K_DRAW:
		p = pool_pick();
		draw((unsigned)k->a % NGEN, p);
		release(*product);
		*product = p;
		break;
	case K_KINDS:
		break;
	}
}

/* What a replay must see, or find again: bytes and positions. */
struct state {
	uint8_t *bytes[NSTATE];
	uint64_t drawn[NGEN];
};

struct pending {
	const struct seg *seg;
	unsigned invocation;
	unsigned replays;
	int kept; /* the plan lets the program keep the activations */
	int lost; /* nobody knows what it saw */
	struct state p0;
	uint8_t product[PRODUCT]; /* audit: what the forward made */
};

static struct pending pend[256];
static unsigned npend;

/* Under a plan: replays of one forward that the engine has seen at most, and then expects. */
static int planned;
static unsigned seen_replays[MAXSEG][256];

static int may_replay(const struct pending *p)
{
	unsigned most = seen_replays[atoi(p->seg->name + 1)][p->invocation];

	return !p->kept && !p->lost && (!planned || !most || p->replays < most);
}

static void count_replay(struct pending *p)
{
	unsigned *most = &seen_replays[atoi(p->seg->name + 1)][p->invocation];

	p->replays++;
	if (*most < p->replays)
		*most = p->replays;
}

static void save_state(struct state *to)
{
	for (int i = 0; i < NSTATE; i++) {
		to->bytes[i] = malloc(buf[i].bytes);
		memcpy(to->bytes[i], buf[i].model, buf[i].bytes);
	}
	memcpy(to->drawn, model_drawn, sizeof(to->drawn));
}

static void drop_state(struct state *s)
{
	for (int i = 0; i < NSTATE; i++)
		free(s->bytes[i]);
}

static void load_state(const struct state *from)
{
	for (int i = 0; i < NSTATE; i++)
		memcpy(buf[i].model, from->bytes[i], buf[i].bytes);
	memcpy(model_drawn, from->drawn, sizeof(model_drawn));
}

static void choose_thread(void)
{
	thr = thread[rnd(NTHREAD)];
}

/* A thread ends, and what it remembers ends with it. */
static void end_thread(struct rs_thread *t)
{
	rs_thread_destroy(t);
	for (unsigned i = 0; i < CALM_ENTRIES; i++)
		if (calm.entry[i].t == t)
			calm.entry[i].moment = 0;
}

static void forward(const struct seg *s, unsigned depth)
{
	struct pending *p = &pend[npend++];
	struct buf *product = NULL;
	char text[64];
	unsigned i;

	p->seg = s;
	p->invocation = p->replays = 0;
	p->lost = 0;
	for (i = 0; i + 1 < npend; i++)
		p->invocation += pend[i].seg == s;
	save_state(&p->p0);
	snprintf(text, sizeof(text), "forward:%s", s->name);
	p->kept = rnd(2) && rs_engine_retain(eng, thr, s->name, p->invocation);
	rs_engine_push(eng, thr, text);
	i = 0;
	do { /* a segment has a kernel */
		run_kernel(&s->k[i], &product);
		if (s->inner && i == s->inner_at && npend < 250 && !audit)
			forward(s->inner, depth + 1);
	} while (++i < s->n);
	rs_engine_pop(eng, thr);
	memcpy(p->product, product->model, PRODUCT);
	if (!depth && rnd(2))
		look(product);
	release(product);
}

static void replay(unsigned which, unsigned depth);
static void hand_over(void);
static struct actor *acting;

/* The program's own state while outermost replays are open: so many. */
static struct state program;
static unsigned program_open;

/*
 * Another thread goes on in the middle of a replay, in the program's world, where that is not: it writes, looks, or has a
 * replay of its own.
 */
static unsigned besides;

static void beside(void)
{
	struct rs_thread *until = thr;
	struct buf *d = &buf[rnd(NSTATE)], *s = &buf[rnd(NSTATE)];
	struct state own;

	besides++;
	thr = thread[0] == until ? thread[1] : thread[0];
	save_state(&own);
	load_state(&program);
	switch (rnd(4)) {
	case 0:
		look(s);
		break;
	case 1:
		replay((unsigned)rnd(npend), 1);
		break;
	case 2:
		if (!rnd(4)) {
			unknown_write(d, s);
			break;
		}
		/* fall through */
	default:
		launch(rnd(1u << 30), d, 0, d->bytes, s, 0, s->bytes, NULL, (int)rnd(2));
	}
	drop_state(&program);
	save_state(&program);
	load_state(&own);
	drop_state(&own);
	thr = until;
	overlapped++;
	besides--;
}

/*
 * The kernels of a replay, within its window: all of them, or it stops early; or its thread ends in the middle of it. Meanwhile
 * another thread goes on.
 * Returns the product.
 */
static struct buf *replay_window(const struct pending *p, unsigned depth)
{
	struct rs_thread *until = thr;
	struct buf *product = NULL;
	int ends = !depth && !rnd(8);
	unsigned i, n = rnd(4) ? p->seg->n : 1 + (unsigned)rnd(p->seg->n);
	char text[64];

	if (ends)
		thr = rs_thread_create(eng);
	snprintf(text, sizeof(text), "replay:%s#%u", p->seg->name, p->invocation);
	rs_engine_push(eng, thr, text);
	i = 0;
	do { /* n is not 0 */
		run_kernel(&p->seg->k[i], &product);
		if (p->seg->inner && i == p->seg->inner_at && npend < 250)
			forward(p->seg->inner, depth + 1);
		if (depth < 2 && !rnd(8))
			replay((unsigned)rnd(npend), depth + 1);
		if (!besides && !acting && !rnd(6))
			beside();
		hand_over();
	} while (++i < n);
	if (ends)
		end_thread(thr);
	else
		rs_engine_pop(eng, thr);
	thr = until;
	return product;
}

static void replay(unsigned which, unsigned depth)
{
	struct pending *p = &pend[which];
	struct buf *product;
	struct state p2; /* what is there around an inner one */

	if (!may_replay(p))
		return;
	count_replay(p);
	if (depth)
		save_state(&p2);
	else if (!program_open++)
		save_state(&program);
	load_state(&p->p0);
	product = replay_window(p, depth);
	load_state(depth ? &p2 : &program);
	if (depth)
		drop_state(&p2);
	else if (!--program_open)
		drop_state(&program);
	if (!depth)
		look(product); /* inside of another replay it would be one of its calls */
	release(product);
	if (!depth && rnd(2))
		look(&buf[rnd(NSTATE)]);
}

#include "tests/unit/random_overlap.h"

static int draws(const struct seg *s)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->k[i].kind == K_DRAW)
			return 1;
	return 0;
}

/* As far as a segment can tell. */
static int same_state(const struct state *a, const struct seg *s)
{
	for (int i = 0; i < NSTATE; i++)
		if (memcmp(a->bytes[i], buf[i].model, buf[i].bytes))
			return 0;
	return !draws(s) || !memcmp(a->drawn, model_drawn, sizeof(model_drawn));
}

/*
 * Under audit a replay runs as the program has it. It must be a match when nothing differs, neither the
 * state at entry nor the state afterwards, and no match when its product or the state afterwards differ.
 */
static void audited_replay(unsigned which)
{
	const struct pending *p = &pend[which];
	struct rs_engine_stats before, after;
	struct buf *product = NULL;
	struct state live;
	int entry_same, after_same, product_same;
	char text[64];
	unsigned i;

	rs_engine_finish(eng);
	rs_engine_stats(eng, &before);
	entry_same = same_state(&p->p0, p->seg);
	save_state(&live);
	noise = !rnd(6);
	snprintf(text, sizeof(text), "replay:%s#%u", p->seg->name, p->invocation);
	rs_engine_push(eng, thr, text);
	i = 0;
	do /* a segment has a kernel */
		run_kernel(&p->seg->k[i], &product);
	while (++i < p->seg->n);
	rs_engine_pop(eng, thr);
	entry_same &= !noise;
	noise = 0;
	after_same = same_state(&live, p->seg);
	product_same = !memcmp(product->model, p->product, PRODUCT);
	drop_state(&live);
	look(product);
	release(product);
	rs_engine_finish(eng);
	rs_engine_stats(eng, &after);
	if (entry_same && after_same) {
		clean_replays++;
		false_alarms += after.outcome[0] != before.outcome[0] + 1;
	}
	if (!after_same || !product_same)
		missed += after.outcome[0] != before.outcome[0];
}
/* Sometimes the same buffers again: such a call is like the one before, unless that one was followed. */
static void foreign_write(void)
{
	struct buf *d = &buf[rnd(NSTATE)], *s = &buf[rnd(NSTATE)];
	int add = (int)rnd(2);

	do {
		uint64_t len = 1 + rnd((uint32_t)d->bytes);
		uint64_t off = rnd((uint32_t)(d->bytes - len + 1));

		if (d->whole && len % 2) {
			off = 0;
			len = d->bytes;
		}
		choose_thread();
		if (rnd(8))
			launch(rnd(1u << 30), d, off, len, s, 0, s->bytes, NULL, add);
		else
			unknown_write(d, s);
		if (rnd(2))
			look(&buf[rnd(NBUF)]);
	} while (rnd(3));
}

/* How state is preserved: every option and way of restoring, by the seed; the bytes must not tell. */
static void choose_policy(uint64_t seed)
{
	static const struct rs_policy policies[] = {
		{RS_OPTION_UNDO, RS_RESTORE_COPY},  {RS_OPTION_UNDO, RS_RESTORE_SWAP},
		{RS_OPTION_WHOLE, RS_RESTORE_COPY}, {RS_OPTION_WHOLE, RS_RESTORE_SWAP},
		{RS_OPTION_PAGES, RS_RESTORE_COPY}, {RS_OPTION_PAGES, RS_RESTORE_SWAP},
	};
	unsigned n = sizeof(policies) / sizeof(*policies);
	struct rs_policy p = policies[seed / 2 % n];

	if (seed % 8 == 7)
		p.restore = RS_RESTORE_REMAP;
	rs_engine_policy(eng, NULL, p);
	p = policies[seed / 3 % n];
	if (seed % 11 == 7)
		p.restore = RS_RESTORE_REMAP;
	if (seed % 7 == 0) /* and one segment with another one */
		rs_engine_policy(eng, "s1", p);
}

/* A plan with any option for any forward of the next step; it may turn out to be for other forwards. */
static void give_plan(unsigned step)
{
	static const uint8_t options[] = {RS_OPTION_UNDO, RS_OPTION_WHOLE, RS_OPTION_REGIONS,
					  RS_OPTION_PAGES, RS_OPTION_RETAIN};
	struct rs_plan_head head = {
		.generation = step, .from_step = step, .arena = 64u << 20, .peak = 1ull << 40};
	struct rs_plan_entry entry[MAXSEG * 8];
	char name[24];

	for (unsigned i = 0; i < MAXSEG * 8; i++) {
		snprintf(name, sizeof(name), "s%u", i / 8);
		entry[i] = (struct rs_plan_entry){.name = rs_plan_name(name),
						  .invocation = i % 8,
						  .option = options[rnd(5)],
						  .restore = (uint8_t)rnd(RS_RESTORES),
						  .order = (uint16_t)i,
						  .forward = head.peak,
						  .backward = head.peak};
	}
	head.n = MAXSEG * 8;
	rs_engine_plan(eng, (struct rs_queue){.ctx = 1}, &head, entry);
}

/* How many programs, of `all` for code that is not instrumented. */
static uint64_t programs(int argc, char **argv, uint64_t all)
{
	const char *scale = getenv("RS_TEST_SCALE");
	uint64_t parts = scale ? strtoull(scale, NULL, 0) : 1;

	/* each program allocates the same again: half of the time would be the kernel's */
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	mallopt(M_TOP_PAD, 1 << 26);
	return argc > 1 ? strtoull(argv[1], NULL, 0) : all / (parts ? parts : 1);
}

static void setup(uint64_t seed)
{
	static struct rs_devops device;
	int mapped = (int)(seed & 1), large = seed % 5 == 0;
	const struct rs_engine_config config = {.mode = audit ? RS_MODE_AUDIT : RS_MODE_PRESERVE,
						.verify = 1,
						.order = 1,
						.costs = seed % 3 == 0,
						.profile = seed % 3 == 0,
						.sample = 3,
						/* one version for a pool would be no use */
						.buffers = seed % 13 == 5 && seed % 4 != 2};

	planned = 0;
	memset(seen_replays, 0, sizeof(seen_replays));
	device = *device_ops;
	if (seed % 4 == 3) /* one that makes each digest by itself */
		device.digest_many = NULL;
	eng = rs_engine_create(&config, &device, NULL);
	for (int i = 0; i < NTHREAD; i++)
		thread[i] = rs_thread_create(eng);
	thr = thread[0];
	contexts = seed % 3 ? 1 + seed / 4 % 2 : 1; /* a plan has one arena, in one context */
	memset(model_drawn, 0, sizeof(model_drawn));
	memset(library_drawn, 0, sizeof(library_drawn));
	memset(calm.entry, 0, sizeof(calm.entry)); /* moments are an engine's */
	choose_policy(seed);
	if (seed % 4 == 2)
		make_pool(NBUF * 512000ull);
	for (int i = 0; i < NBUF; i++) {
		struct buf *b = &buf[i];

		memset(b, 0, sizeof(*b));
		b->bytes = i < NSTATE ? 200 + rnd(large ? 400000 : 9000) : PRODUCT;
		if (mapped && i < NSTATE && seed % 4 == 3)
			map_whole(b, (unsigned)i, large);
		else if (mapped && i < NSTATE)
			map_buffer(b, (unsigned)i, large);
		else if (seed % 4 == 2 && i != NSTATE - 1)
			b->dev = pool + i * 512000ull, b->block = 1;
		else
			b->dev = malloc(b->bytes);
		b->model = malloc(b->bytes);
		for (uint64_t j = 0; j < b->bytes; j++)
			b->dev[j] = b->model[j] = (uint8_t)rnd(256);
		if (b->block && i < NSTATE)
			give(b);
		if (!b->alias && !b->whole && !b->block)
			rs_engine_alloc(eng, thr, (struct rs_queue){.ctx = 1}, (uint64_t)b->dev,
					b->bytes,
					i == NSTATE - 1 ? (enum rs_alloc_kind)kind_of_last
							: RS_ALLOC_DEVICE);
		b->declared = i < NSTATE / 2;
		if (b->declared)
			rs_engine_region(eng, (uint64_t)b->dev, b->bytes, "state:declared");
	}
}

#endif
