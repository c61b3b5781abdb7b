/* SPDX-License-Identifier: MIT */
/*
 * Guarantees 1-4 as a property: random programs (random_program.h) on a device that reorders whatever it may, under the
 * engine in preserve mode and under audit, against a plain sequential model.
 *
 * Usage: test_engine_random [programs] [first seed] [eager]
 */
#include "tests/unit/random_program.h"

static unsigned missed, false_alarms, clean_replays;

static int same_state(uint8_t *const *a)
{
	for (int i = 0; i < NSTATE; i++)
		if (memcmp(a[i], buf[i].model, buf[i].bytes))
			return 0;
	return 1;
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
	uint8_t *live[NSTATE];
	int entry_same, after_same, product_same;
	char text[64];
	unsigned i;

	rs_engine_finish(eng);
	rs_engine_stats(eng, &before);
	entry_same = same_state(p->p0);
	save_state(live);
	snprintf(text, sizeof(text), "replay:%s#%u", p->seg->name, p->invocation);
	rs_engine_push(eng, thr, text);
	i = 0;
	do /* a segment has a kernel */
		run_kernel(&p->seg->k[i], &product);
	while (++i < p->seg->n);
	rs_engine_pop(eng, thr);
	after_same = same_state(live);
	product_same = !memcmp(product->model, p->product, PRODUCT);
	for (i = 0; i < NSTATE; i++)
		free(live[i]);
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
/* One random program; returns what went wrong, or NULL. */
static const char *run_program(uint64_t seed, uint64_t *ret_replays)
{
	struct rs_engine_stats st;
	struct seg segs[MAXSEG];
	const char *wrong = NULL;
	unsigned i, step, n;

	fake_reset(seed, eager);
	bad_bytes = 0;
	setup(seed);
	for (i = 0; i < MAXSEG; i++)
		make_segment(segs, &segs[i], i);
	for (step = 0; step < 3; step++) {
		char text[32];

		snprintf(text, sizeof(text), "step:%u", step);
		planned = seed % 3 == 0 && step && !audit;
		if (planned)
			give_plan(step);
		rs_engine_mark(eng, thr, text);
		while (!rnd(3)) /* nothing is pending, but the replays may still be on the device */
			foreign_write();
		if (rnd(2))
			rs_engine_poll(eng);
		npend = 0;
		n = 1 + (unsigned)rnd(6);
		for (i = 0; i < n; i++) {
			forward(&segs[rnd(MAXSEG)], 0);
			if (rnd(2))
				foreign_write();
		}
		n = (unsigned)rnd(8);
		for (i = 0; i < n; i++) {
			if (audit)
				audited_replay((unsigned)rnd(npend));
			else
				replay((unsigned)rnd(npend), 0);
			if (!rnd(3))
				foreign_write();
		}
		for (i = 0; i < npend; i++)
			for (int j = 0; j < NSTATE; j++)
				free(pend[i].p0[j]);
	}
	for (i = 0; i < NSTATE; i++)
		look(&buf[i]);
	if (!fake_drain())
		wrong = "a queue waits for ever";
	rs_engine_finish(eng);
	rs_engine_mark(eng, thr, "step:9");
	rs_engine_stats(eng, &st);
	for (i = 1; i < 5; i++)
		if (!rs_engine_idle(eng, thr, (struct rs_queue){.ctx = 1, .stream = i}))
			wrong = "calls are described for ever";
	if (bad_bytes)
		wrong = "bytes differ from the model";
	else if (!audit && (st.outcome[1] || st.outcome[2]))
		wrong = "a right replay was not recorded as a match";
	else if (st.internal_errors)
		wrong = "internal error";
	*ret_replays += st.outcome[0];
	rs_thread_destroy(thr);
	rs_engine_destroy(eng);
	if (fake.live_blocks && !wrong)
		wrong = "snapshot memory leaked";
	for (i = 0; i < NBUF; i++)
		free_buffer(&buf[i]);
	return wrong;
}

/* n programs from a seed on; how many went wrong. */
static unsigned run_programs(uint64_t first, uint64_t n, uint64_t *ret_replays)
{
	unsigned failed = 0;

	for (uint64_t s = first; s < first + n; s++) {
		const char *wrong = run_program(s, ret_replays);

		if (wrong && failed++ < 60)
			tap_diag("seed %" PRIu64 ": %s", s, wrong);
	}
	return failed;
}

int main(int argc, char **argv)
{
	const char *scale = getenv("RS_TEST_SCALE");
	uint64_t parts = scale && atoi(scale) > 0 ? strtoull(scale, NULL, 0) : 1;
	uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 0) : 400 / parts;
	uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1, replays = 0, audited = 0;

	eager = argc > 3;
	ok(!run_programs(first, n, &replays),
	   "%" PRIu64 " random programs from seed %" PRIu64 ": replays see P0, state keeps P2", n,
	   first);
	ok(replays > n, "%" PRIu64 " replays were made and matched", replays);
	audit = 1;
	ok(!run_programs(first, n, &audited), "audited programs run as without the tool");
	ok(!missed, "no replay that made or left other bytes is a match (%u were)", missed);
	ok(!false_alarms && clean_replays > n / 10, "no false alarm in %u clean replays (%u were)",
	   clean_replays, false_alarms);
	ok(calm.taken > n / 4, "%lu calls were like an earlier one that needed nothing, %lu later",
	   calm.taken, calm.again);
	return tap_done();
}
