/* SPDX-License-Identifier: MIT */
/*
 * Guarantees 1-4 as a property: random programs (random_program.h) on a device that reorders whatever it may, under the
 * engine in preserve mode and under audit, against a plain sequential model.
 *
 * Usage: test_engine_random [programs] [first seed] [eager]
 */
#include "tests/unit/random_program.h"

static int eager;
static uint64_t remaps;

/* One random program; returns what went wrong, or NULL. */
static const char *run_program(uint64_t seed, uint64_t *ret_replays)
{
	struct rs_engine_stats st;
	struct seg segs[MAXSEG];
	const char *wrong = NULL;
	unsigned i, step, n, known = overlapped + handed_over;

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
			choose_thread();
			forward(&segs[rnd(MAXSEG)], 0);
			if (rnd(2))
				foreign_write();
		}
		n = (unsigned)rnd(8);
		for (i = 0; i < n; i++) {
			choose_thread();
			if (audit)
				audited_replay((unsigned)rnd(npend));
			else
				rnd(3) ? replay((unsigned)rnd(npend), 0) : replay_at_once();
			if (!rnd(3))
				foreign_write();
		}
		for (i = 0; i < npend; i++)
			drop_state(&pend[i].p0);
	}
	for (i = 0; i < NSTATE; i++)
		look(&buf[i]);
	if (!fake_drain())
		wrong = "a queue waits for ever";
	rs_engine_finish(eng);
	rs_engine_mark(eng, thr, "step:9");
	rs_engine_stats(eng, &st);
	if (overlapped + handed_over != known) { /* then a frame may have had to stay: remap.h */
		rs_engine_remap_pause(eng, 0, UINT64_MAX);
		rs_engine_remap_go_on(eng);
	}
	for (i = 1; i < 5; i++)
		if (!rs_engine_idle(eng, thr, queue_of(i)))
			wrong = "calls are described for ever";
	if (fake_order.missing)
		wrong = "operations on the same bytes have no order";
	else if (bad_bytes)
		wrong = "bytes differ from the model";
	else if (memcmp(model_drawn, library_drawn, sizeof(model_drawn)))
		wrong = "a generator is not where the program left it";
	else if (!audit && (st.outcome[1] || st.outcome[2]))
		wrong = "a right replay was not recorded as a match";
	else if (st.internal_errors)
		wrong = "internal error";
	*ret_replays += st.outcome[0];
	remaps += st.remaps;
	for (i = 0; i < NTHREAD; i++)
		rs_thread_destroy(thread[i]);
	rs_engine_destroy(eng);
	if ((fake.live_blocks || fake.live_frames) && !wrong)
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
	uint64_t n = programs(argc, argv, 400);
	uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1, replays = 0, audited = 0;

	eager = argc > 3;
	ok(!run_programs(first, n, &replays),
	   "%" PRIu64 " random programs from seed %" PRIu64 ": replays see P0, state keeps P2", n,
	   first);
	ok(replays > n, "%" PRIu64 " replays were made and matched", replays);
	ok(remaps > n / 8, "%" PRIu64 " times bytes were shown by remapping", remaps);
	ok(overlapped > n / 4, "%u times another thread went on beside a replay", overlapped);
	audit = 1;
	ok(!run_programs(first, n, &audited), "audited programs run as without the tool");
	ok(!missed, "no replay that made or left other bytes is a match (%u were)", missed);
	ok(!false_alarms && clean_replays > n / 10, "no false alarm in %u clean replays (%u were)",
	   clean_replays, false_alarms);
	ok(calm.taken > n / 4, "%lu calls were like an earlier one that needed nothing, %lu later",
	   calm.taken, calm.again);
	return tap_done();
}
