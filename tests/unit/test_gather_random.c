/* SPDX-License-Identifier: MIT */
/*
 * Random lists of operations (keeps, restores, digests, parts of keeps) against the same carried out one after the other
 * by the host: the bytes of the tables, what is kept, every digest. Rows overlap or do not, on a device that reorders
 * what it may; digests, memory for their results, and the list's own memory fail now and then.
 *
 * Usage: test_gather_random [programs] [first seed]
 */
#include "tests/tap.h"
#include "tests/unit/fake_dev.h"
#include "tracker/model.h"

#define QUEUES 2u /* each with a table of its own */
#define ROWS   96u
#define ROW    140u
#define BYTES  (ROWS * ROW)
#define KEEPS  256u
#define LISTS  5u

struct kept {
	struct rs_keep *k;
	unsigned q;
	uint8_t want[BYTES];
};

struct told {
	struct rs_words *w;
	struct rs_keep *k; /* whose digest it is, or NULL */
	uint64_t n, want[BYTES / RS_DIGEST_CHUNK + 1];
};

#define QUEUE(n) ((struct rs_queue){.ctx = 1, .stream = (n)})

static struct rs_devops device;
static struct rs_engine *eng;
static struct rs_thread *thr;
static uint8_t *table[QUEUES], model[QUEUES][BYTES];
static struct rs_alloc *alloc[QUEUES];
static uint32_t id[QUEUES];
static struct kept kept[KEEPS];
static struct told told[KEEPS * LISTS];
static unsigned nkept, ntold, before; /* before: keeps of lists that have been run */
static uint64_t rng;
static enum rs_mode mode;

static uint32_t below(uint32_t n)
{
	rng = rng * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((rng >> 33) % n);
}

static void start(uint64_t seed)
{
	struct rs_engine_config config = {.verify = 1};

	rng = seed * 2654435761u + 99;
	fake_reset(seed, seed % 3 == 0);
	mode = config.mode = seed % 4 ? RS_MODE_PRESERVE : RS_MODE_AUDIT;
	device = fake_ops;
	if (seed % 5 == 4)
		device.digest_many = NULL;
	eng = rs_engine_create(&config, &device, NULL);
	thr = rs_thread_create(eng);
	nkept = ntold = before = 0;
	for (unsigned q = 0; q < QUEUES; q++) {
		uint64_t base, bytes;

		table[q] = aligned_alloc(256, (BYTES + 255) / 256 * 256);
		rs_engine_alloc(eng, thr, QUEUE(q), (uint64_t)table[q], BYTES, RS_ALLOC_DEVICE);
		alloc[q] = rs_addrmap_find(eng->map, (uint64_t)table[q], &base, &bytes);
		for (unsigned i = 0; i < BYTES; i++)
			table[q][i] = model[q][i] = (uint8_t)below(256);
		pthread_mutex_lock(&eng->lock);
		id[q] = rs_queue_id(eng, thr, QUEUE(q));
		pthread_mutex_unlock(&eng->lock);
	}
}

static void let_go(struct rs_words *w)
{
	pthread_mutex_lock(&eng->lock);
	rs_words_put(eng, w);
	pthread_mutex_unlock(&eng->lock);
}

static void stop(void)
{
	for (unsigned i = 0; i < ntold; i++)
		let_go(told[i].w);
	for (unsigned i = 0; i < nkept; i++) {
		if (kept[i].k->block)
			rs_block_put(eng, kept[i].k->block);
		free(kept[i].k);
	}
	rs_thread_destroy(thr);
	rs_engine_destroy(eng);
	fake_drain();
	for (unsigned q = 0; q < QUEUES; q++)
		free(table[q]);
}

/* --- a list ------------------------------------------------------------------------------------- */

/* A row, some, or anything. */
static void choose_range(uint64_t *ret_off, uint64_t *ret_len)
{
	*ret_off = below(ROWS) * ROW;
	*ret_len = ROW;
	if (!below(4))
		*ret_len = rs_min64(ROW * (1 + below(3)), BYTES - *ret_off);
	if (below(8))
		return;
	*ret_off = below(BYTES - 1);
	*ret_len = 1 + below(below(4) ? 200 : BYTES);
	*ret_len = rs_min64(*ret_len, BYTES - *ret_off);
}

static void expect_digest(struct rs_op *op, unsigned q, struct rs_keep *k)
{
	struct told *t = &told[ntold++];

	op->words = rs_words_new(op->len);
	op->words->refs++;
	t->w = op->words;
	t->k = k;
	t->n = rs_digest_count(op->len);
	rs_digest_range(model[q] + op->off, op->len, t->want);
}

static void add_keep(struct rs_oplist *l, unsigned q)
{
	struct rs_op *op = rs_oplist_add(l, RS_OP_KEEP, id[q]);
	struct kept *x = &kept[nkept++];
	uint64_t off, len;

	choose_range(&off, &len);
	rs_op_bind(op, alloc[q], off, len);
	x->q = q;
	x->k = op->keep = calloc(1, sizeof(*op->keep));
	x->k->off = off;
	x->k->len = len;
	x->k->pins = 2; /* ours is the second */
	memcpy(x->want, model[q] + off, len);
	if (mode == RS_MODE_AUDIT || below(3))
		expect_digest(op, q, x->k);
}

/* Part of a keep becomes one of its own. */
static void add_move(struct rs_oplist *l, unsigned q)
{
	struct kept *from = &kept[below(before)], *x;
	struct rs_op *op;
	uint64_t at;

	if (from->q != q || !from->k->block)
		return;
	op = rs_oplist_add(l, RS_OP_MOVE, id[q]);
	x = &kept[nkept++];
	at = below((uint32_t)from->k->len);
	x->k = op->keep = calloc(1, sizeof(*op->keep));
	x->q = q;
	x->k->off = from->k->off + at;
	x->k->len = 1 + below((uint32_t)(from->k->len - at));
	x->k->pins = 2;
	memcpy(x->want, from->want + at, x->k->len);
	rs_op_bind(op, alloc[q], x->k->off, x->k->len);
	op->addr = from->k->addr + at;
	op->guard = from->k;
	from->k->pins++;
}

static void add_restore(struct rs_oplist *l, unsigned q)
{
	struct kept *x = nkept ? &kept[below(nkept)] : NULL;
	struct rs_op *op;
	uint64_t at, len;

	if (!x || x->q != q)
		return;
	at = below(3) ? 0 : below((uint32_t)x->k->len);
	len = x->k->len - at;
	if (!below(3))
		len = 1 + below((uint32_t)len);
	op = rs_oplist_add(l, RS_OP_RESTORE, id[q]);
	rs_op_bind(op, alloc[q], x->k->off + at, len);
	op->keep = x->k;
	x->k->pins++;
	memcpy(model[q] + op->off, x->want + at, op->len);
}

static void add_digest(struct rs_oplist *l, unsigned q)
{
	struct rs_op *op = rs_oplist_add(l, RS_OP_DIGEST, id[q]);
	uint64_t off, len;

	choose_range(&off, &len);
	rs_op_bind(op, alloc[q], off, len);
	expect_digest(op, q, NULL);
}

/* What is kept, shown and compared comes row by row, as the engine plans it, or in any order. */
static void fill(struct rs_oplist *l, unsigned q)
{
	unsigned n = 1 + below(KEEPS / LISTS / 2), restores = below(4),
		 moves = before ? below(3) : 0;

	for (unsigned i = 0; i < n; i++) {
		unsigned what = below(8);

		if (what < 3)
			add_keep(l, q);
		else if (what < 3 + restores && mode == RS_MODE_PRESERVE)
			add_restore(l, q);
		else if (what == 6 && moves)
			add_move(l, q);
		else
			add_digest(l, q);
	}
}

struct scribble {
	uint8_t *to, bytes[ROW];
};

static void put_scribble(void *arg)
{
	const struct scribble *s = arg;

	memcpy(s->to, s->bytes, ROW);
}

/* The program's own calls: without them what is put back would be there already. */
static void overwrite(unsigned q)
{
	for (unsigned n = below(ROWS); n--;) {
		struct scribble *s = malloc(sizeof(*s));
		uint64_t off = below(ROWS) * ROW;

		s->to = table[q] + off;
		for (unsigned i = 0; i < ROW; i++)
			s->bytes[i] = (uint8_t)below(256);
		memcpy(model[q] + off, s->bytes, ROW);
		fake_call(q, put_scribble, s);
	}
}

/* --- what came of it ---------------------------------------------------------------------------- */

/* Digests that are there are right; returns how many are not there. */
static unsigned judge_digests(const char **ret_wrong)
{
	unsigned lost = 0;

	for (unsigned i = 0; i < ntold; i++) {
		const struct told *t = &told[i];
		int is_kept = !t->k || t->k->state == RS_KEEP_READY;

		lost += t->w->failed;
		if (!t->w->failed && memcmp(t->w->w, t->want, t->n * 8))
			*ret_wrong = "a digest";
		if (is_kept != (mode == RS_MODE_PRESERVE || !t->k || !t->w->failed))
			*ret_wrong = "the state of a keep";
	}
	return lost;
}

static const char *judge(unsigned most_lost)
{
	const char *wrong = NULL;

	if (judge_digests(&wrong) > most_lost)
		wrong = "digests that are missing";
	for (unsigned q = 0; q < QUEUES; q++)
		if (memcmp(table[q], model[q], BYTES))
			wrong = "a table's bytes";
	for (unsigned i = 0; mode == RS_MODE_PRESERVE && i < nkept; i++)
		if (kept[i].k->state != RS_KEEP_READY || kept[i].k->pins != 1 ||
		    memcmp((void *)kept[i].k->addr, kept[i].want, kept[i].k->len))
			wrong = "what is kept";
	return wrong;
}

/* Half of the digests are forgotten while the device may still make them: their words are given to others. */
static void forget(void)
{
	unsigned left = 0;

	for (unsigned i = 0; i < ntold; i++)
		if (below(2) && !told[i].w->failed)
			let_go(told[i].w);
		else
			told[left++] = told[i];
	ntold = left;
}

static const char *program(uint64_t seed)
{
	const char *wrong = NULL;
	unsigned lost = 0;

	start(seed);
	for (unsigned i = 0; i < LISTS && !wrong; i++) {
		struct rs_oplist list;

		if (!below(4)) {
			fake.fail_digest = 1 + (int)below(6);
			fake.fail_digests = (int)below(4);
			lost += 1 + (unsigned)fake.fail_digests;
		}
		if (!below(6))
			fake.fail_result = 1, lost++;
		rs_oplist_init(&list);
		overwrite(i % QUEUES);
		fill(&list, i % QUEUES);
		rs_oplist_run(eng, &list);
		fake.fail_digest = fake.fail_digests = fake.fail_result = 0;
		before = nkept;
		if (below(2))
			forget();
		if (below(2)) {
			fake_drain();
			wrong = judge(lost);
		}
	}
	fake_drain();
	wrong = wrong ? wrong : judge(lost);
	stop();
	return wrong;
}

int main(int argc, char **argv)
{
	uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 0) : 600, bad = 0, batches = 0, alone = 0;
	uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;

	for (uint64_t seed = first; seed < first + n && bad < 5; seed++) {
		const char *wrong = program(seed);

		batches += fake.batches;
		alone += fake.digests;
		if (wrong)
			tap_diag("seed %llu: %s", (unsigned long long)seed, wrong);
		bad += wrong != NULL;
	}
	ok(!bad, "%llu programs from seed %llu do what their operations do one by one",
	   (unsigned long long)n, (unsigned long long)first);
	ok(batches > n, "many digests went together (%llu times, alone %llu)",
	   (unsigned long long)batches, (unsigned long long)alone);
	return tap_done();
}
