/* SPDX-License-Identifier: MIT */
/*
 * What the planner process decides, round by round, with a clock of ours and no sockets: when a plan is made and when not,
 * ranks that agree, refusals, budgets of a device, incomplete and hostile tellings.
 */
#include <errno.h>
#include <unistd.h>

#include "tests/tap.h"
#include "tests/unit/serve_rig.h"

static struct rs_serve s;
static uint64_t now;
static struct rs_plan_head head;
static struct rs_plan_entry entry[RS_PLAN_MAX];

static const struct rig small = {.n = 8, .name = "layer", .ns = 1000000, .step_ns = 40000000};

struct prog {
	struct rs_serve_client *c;
	struct rs_wire *w;
	struct rs_wire_ring *ring;
	struct rig rig;
	uint64_t have;
};

static void start(void)
{
	while (s.clients)
		rs_serve_part(&s, s.client[0]);
	memset(&s, 0, sizeof(s));
	s.options.path = "/somewhere";
	now = rs_serve_now();
}

static struct prog come(const struct rig *rig, uint64_t wanted)
{
	struct prog p = {.rig = *rig};
	int area = -1;

	if (rs_serve_admit(&s, 0, &p.c, &area)) {
		printf("Bail out! no shared memory\n");
		exit(1);
	}
	close(area);
	p.w = p.c->w;
	p.ring = rs_wire_claim(p.w);
	p.w->client.wanted = wanted;
	rig_step(p.w, &p.rig, 10);
	return p;
}

/* One round of the planner, `after` seconds later. */
static void turn(double after)
{
	now += (uint64_t)(after * 1e9);
	for (unsigned i = 0; i < s.clients; i++)
		rs_serve_hear(s.client[i], now);
	rs_serve_budgets(&s, now);
	while (rs_serve_plan(&s, now))
		;
}

static int take(struct prog *p)
{
	int r = rs_wire_take(p->w, p->have, &head, entry);

	if (r == 1) {
		p->have = head.generation;
		p->w->client.plan_generation = head.generation;
		p->w->client.plan_state = RS_PLAN_IN_FORCE;
	}
	return r;
}

static void refuse(struct prog *p, enum rs_plan_state state, uint64_t predicted, uint64_t measured)
{
	p->w->client.plan_predicted = predicted;
	p->w->client.plan_measured = measured;
	p->w->client.plan_state = state;
}

static unsigned retained(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < head.n; i++)
		n += entry[i].option == RS_OPTION_RETAIN;
	return n;
}

/* --- one program -------------------------------------------------------------------------------------- */

static void test_when(void)
{
	struct prog p;

	start();
	p = come(&small, 160 * MB);
	strcpy(p.w->client.program, "a\x1b[2J\xff");
	turn(0.2);
	is_str(p.c->program, "a?[2J?", "a name is harmless");
	is_u64(p.w->generation, 0, "nothing told, no plan");
	is_u64(p.w->budget, 160 * MB, "it gets the budget that it asked for");
	rig_tell(p.ring, &p.rig);
	turn(0.2);
	ok(take(&p) == 1 && head.n == 8 && head.budget == 160 * MB, "costs told: a plan");
	ok(retained() > 0 && retained() < 8 && head.peak <= 160 * MB, "that fits: %u of 8 kept",
	   retained());
	is_u64(head.from_step, 12, "from the step after the next");
	is_u64(head.fingerprint, rs_costs_fingerprint(&p.c->costs), "for its segments");
	is_u64(entry[3].name, rs_plan_name("layer"), "by their names");
	p.rig.ns = 1010000;
	rig_tell(p.ring, &p.rig);
	turn(2);
	ok(p.w->generation == 1 && p.c->made.ns < now, "times that differ by noise: not looked at");
	p.rig.ns = 2000000;
	rig_tell(p.ring, &p.rig);
	turn(2);
	is_u64(p.w->generation, 1, "times twice as long, and the same decisions: none");
	ok(p.c->made.ns == now, "but it was looked at");
	p.rig.more = 20 * MB;
	rig_tell(p.ring, &p.rig);
	rig_step(p.w, &p.rig, 20);
	turn(0.2);
	is_u64(p.w->generation, 1, "20 MiB more, but less than a second later: not yet");
	turn(1);
	ok(take(&p) == 1 && head.peak <= 160 * MB && head.from_step == 22, "then: a new one");
}

static void test_fast_steps(void)
{
	struct prog p;

	start();
	p = come(&small, 160 * MB);
	p.rig.step_ns = 100000;
	rig_step(p.w, &p.rig, 1000);
	rig_tell(p.ring, &p.rig);
	turn(0.2);
	take(&p);
	is_u64(head.from_step, 1000 + 201, "steps of 100 us: 20 ms ahead");
}

static void test_settings(void)
{
	char say[200];
	struct prog p;

	start();
	p = come(&small, 0);
	p.c->pid = 4711;
	rig_tell(p.ring, &p.rig);
	turn(0.2);
	ok(!p.w->generation && !p.w->budget, "without a budget, no plan");
	ok(!rs_serve_set(&s, 4711, "budget=150MiB", say, sizeof(say)), "it is given one: %s", say);
	turn(0.2);
	ok(take(&p) == 1 && head.budget == 150 * MB && p.w->budget == 150 * MB, "and a plan");
	rs_serve_set(&s, 4711, "budget=170MiB", say, sizeof(say));
	turn(1.2);
	ok(take(&p) == 1 && head.budget == 170 * MB, "another budget: another plan");
	rs_serve_set(&s, 0, "off=1", say, sizeof(say));
	p.rig.more = 40 * MB;
	rig_tell(p.ring, &p.rig);
	rig_step(p.w, &p.rig, 30);
	turn(1.2);
	ok(p.w->off == 1 && !take(&p), "off: no plans");
	rs_serve_set(&s, 4711, "off=0", say, sizeof(say));
	ok(p.w->off == 1, "on again: the last plan is not meant for it");
	turn(1.2);
	ok(!p.w->off && take(&p) == 1, "but the next one");
	rs_serve_set(&s, 4711, "budget=none", say, sizeof(say));
	turn(1.2);
	ok(!p.w->budget && p.w->off && !take(&p), "no budget any more: it is off, too");
	ok(rs_serve_set(&s, 4712, "off=1", say, sizeof(say)) == -ESRCH, "nobody: %s", say);
	ok(rs_serve_set(&s, 4711, "budget=48", say, sizeof(say)) == -EINVAL, "no unit: %s", say);
	ok(rs_serve_set(&s, 4711, "colour=red", say, sizeof(say)) == -EINVAL, "no such key");
	ok(rs_serve_set(&s, 0, "budget=165MiB", say, sizeof(say)) == 0, "a device's budget");
	turn(1.2);
	is_u64(p.w->budget, 0, "does not undo what was set for one program");
}

static void test_infeasible(void)
{
	struct prog p;

	start();
	p = come(&small, 90 * MB);
	rig_tell(p.ring, &p.rig);
	turn(0.2);
	ok(take(&p) == 1 && head.n == 0 && (head.flags & RS_PLAN_INFEASIBLE),
	   "no plan is possible: said so");
	turn(2);
	turn(2);
	is_u64(p.w->generation, 1, "once");
}

static void test_incomplete(void)
{
	struct rs_wire_record begin = {.kind = RS_WIRE_SHARES_BEGIN, .u.share.pieces = 2};
	struct rs_wire_record share = {
		.kind = RS_WIRE_SHARE,
		.u.share = {.bytes = 1000, .pieces = 1, .n = 2, .order = {0, 1}}};
	struct rs_wire_record forget = {.kind = RS_WIRE_FORGET};
	struct prog p;

	start();
	p = come(&small, 160 * MB);
	p.w->client.segments = 9;
	rig_tell(p.ring, &p.rig);
	turn(0.2);
	ok(!p.w->generation && strstr(p.c->why, "segments"), "eight of nine told: %s", p.c->why);
	p.w->client.segments = 8;
	rs_wire_tell(p.ring, &begin);
	rs_wire_tell(p.ring, &share);
	turn(0.2);
	ok(!p.w->generation && strstr(p.c->why, "share"), "one share of two: %s", p.c->why);
	share.u.share.order[1] = 2;
	rs_wire_tell(p.ring, &share);
	turn(0.2);
	ok(take(&p) == 1, "both: a plan");
	rs_wire_tell(p.ring, &forget);
	turn(1.2);
	ok(!p.c->ready_ns && !take(&p), "all forgotten");
	p.rig.name = "other";
	rig_tell(p.ring, &p.rig);
	turn(1.2);
	ok(take(&p) == 1 && entry[0].name == rs_plan_name("other"), "and told anew");
}

static void test_refusals(void)
{
	uint64_t peak[8] = {0}, n = 0;
	struct prog p;

	start();
	p = come(&small, 170 * MB);
	rig_tell(p.ring, &p.rig);
	turn(0.2);
	while (n < 8 && take(&p) == 1) {
		peak[n++] = head.peak;
		refuse(&p, RS_PLAN_REFUSED_PEAK, head.peak, head.peak + 5 * MB);
		for (unsigned i = 0; i < 4; i++)
			turn(1.2);
	}
	is_u64(n, 4, "a plan, and three others after refusals");
	ok(peak[1] < peak[0] && peak[2] < peak[1] && peak[3] < peak[2],
	   "each takes less than the one before");
	ok(p.c->given_up && s.refused == 4, "then no more");
	p.w->client.wanted = 150 * MB;
	turn(1.2);
	ok(take(&p) == 1, "another budget: it is tried again");
	p.w->client.plan_state = RS_PLAN_IN_FORCE;
	turn(1.2);
	ok(!p.c->refusals, "one that is obeyed is the end of that");
	p.w->client.wanted = 180 * MB;
	turn(1.2);
	ok(take(&p) == 1 && p.c->extra < 40 * MB, "a larger budget");
	refuse(&p, RS_PLAN_REFUSED_PEAK, head.peak, head.peak + 30 * MB);
	n = p.c->extra;
	turn(1.2);
	ok(take(&p) == 1 && p.c->extra >= n + 30 * MB && head.peak + p.c->extra <= 180 * MB,
	   "what was taken too much is left alone in the next");
}

static void test_refused_kinds(void)
{
	struct prog p;

	start();
	p = come(&small, 170 * MB);
	rig_tell(p.ring, &p.rig);
	turn(0.2);
	take(&p);
	refuse(&p, RS_PLAN_REFUSED_MEMORY, 0, 0);
	turn(1.2);
	ok(take(&p) == 1, "no room for the arena: a smaller plan");
	refuse(&p, RS_PLAN_REFUSED_SEGMENTS, 0, 0);
	for (unsigned i = 0; i < 4; i++)
		turn(1.2);
	ok(!take(&p), "other segments: none until they are told");
	p.w->client.plan_state = 12345;
	p.w->client.plan_generation = 99;
	turn(1.2);
	ok(!take(&p), "a state that does not exist");
}

/* --- several programs ----------------------------------------------------------------------------------- */

static void test_ranks(void)
{
	struct prog p[3];
	struct rs_plan_entry first[8];
	uint64_t from;

	start();
	for (unsigned i = 0; i < 3; i++) {
		p[i] = come(&small, (160 + i) * MB);
		p[i].w->client.job = 77;
		p[i].w->client.rank = i;
		p[i].w->client.ranks = 3;
		rig_step(p[i].w, &p[i].rig, 10 + i);
	}
	p[1].rig.more = 30 * MB;
	rig_tell(p[0].ring, &p[0].rig);
	rig_tell(p[1].ring, &p[1].rig);
	turn(0.2);
	turn(2);
	ok(!p[0].w->generation && !p[1].w->generation, "one rank has not told: they wait");
	rig_tell(p[2].ring, &p[2].rig);
	turn(0.2);
	ok(take(&p[0]) == 1, "all have");
	memcpy(first, entry, sizeof(first));
	from = head.from_step;
	is_u64(from, 14, "from two steps after the latest of them");
	is_u64(head.budget, 160 * MB, "for the smallest budget");
	ok(entry[0].forward >= RIG_BASE + 30 * MB && head.peak <= 160 * MB,
	   "for the one that takes most");
	for (unsigned i = 1; i < 3; i++)
		ok(take(&p[i]) == 1 && head.n == 8 && head.from_step == from &&
			   !memcmp(first, entry, sizeof(first)),
		   "rank %u: the same decisions, from the same step", i);
	refuse(&p[1], RS_PLAN_REFUSED_PEAK, head.peak, head.peak + 4 * MB);
	turn(1.2);
	ok(take(&p[0]) == 1 && take(&p[2]) == 1 && take(&p[1]) == 1,
	   "one refuses: another for all");
	p[0].w->client.plan_state = RS_PLAN_IN_FORCE;
	rs_serve_part(&s, p[0].c);
	turn(1.2);
	ok(!take(&p[1]) && !take(&p[2]), "one leaves: the others keep their plan");
	p[0] = come(&small, 165 * MB);
	p[0].w->client.job = 77;
	rig_step(p[0].w, &p[0].rig, 500);
	turn(1.2);
	rig_tell(p[0].ring, &p[0].rig);
	turn(1.2);
	ok(take(&p[0]) == 1 && head.from_step == 502 && take(&p[1]) == 1 && head.from_step == 502,
	   "one comes: all begin together");
}

static void test_ranks_late(void)
{
	struct prog a, b, c;

	start();
	a = come(&small, 160 * MB);
	b = come(&small, 160 * MB);
	c = come(&small, 160 * MB);
	a.w->client.job = b.w->client.job = 5;
	rig_tell(a.ring, &a.rig);
	c.rig.name = "another program's";
	rig_tell(c.ring, &c.rig);
	turn(0.2);
	ok(take(&c) == 1 && !take(&a), "a program of no job does not wait for a job's ranks");
	turn(11);
	ok(take(&a) == 1 && !take(&b), "nor do they wait for ever");
	/* Given up by one rank, a plan is taken from all. */
	rig_tell(b.ring, &b.rig);
	turn(1.2);
	ok(take(&a) == 1 && take(&b) == 1, "both agree");
	refuse(&b, RS_PLAN_REFUSED_FORM, 0, 0);
	turn(1.2);
	ok(take(&a) == 1 && head.n == 0 && (head.flags & RS_PLAN_INFEASIBLE),
	   "what one rank will never obey, no rank does");
	turn(3);
	turn(3);
	ok(!take(&a) && a.w->generation == 3, "said once");
}

static uint64_t sum(void)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < s.clients; i++)
		all += s.client[i]->w->budget;
	return all;
}

static void on_device(struct prog *p, uint64_t device, uint64_t bytes)
{
	p->w->client.device[0] = device;
	p->w->client.device_bytes = bytes;
}

static void test_device(void)
{
	static const struct rig large = {
		.n = 24, .name = "large", .ns = 1000000, .step_ns = 40000000};
	struct prog a, b, c, d;
	uint64_t before;

	start();
	s.budget = 400 * MB;
	a = come(&large, 0);
	on_device(&a, 1, 1000 * MB);
	rig_tell(a.ring, &a.rig);
	turn(0.2);
	is_u64(a.w->budget, 400 * MB, "alone it gets all of the device's budget");
	ok(take(&a) == 1 && retained() == 24, "and keeps everything");
	b = come(&small, 0);
	on_device(&b, 1, 1000 * MB);
	rig_tell(b.ring, &b.rig);
	turn(0.2);
	ok(sum() <= 400 * MB && a.w->budget < 400 * MB, "two: the sum is not above it");
	before = b.w->budget;
	turn(1.2);
	ok(take(&a) == 1 && a.w->budget == head.budget, "the first one gets a smaller plan");
	turn(0.2);
	turn(1.2);
	ok(b.w->budget > before && sum() <= 400 * MB,
	   "once it obeys, the second one gets its share: %" PRIu64 " and %" PRIu64 " MiB",
	   a.w->budget / MB, b.w->budget / MB);
	ok(take(&b) == 1 && !(head.flags & RS_PLAN_INFEASIBLE), "which is enough for a plan");
	ok(a.w->budget > b.w->budget, "more for whom more is of use");
	c = come(&small, 0);
	c.w->client.device[1] = 1;
	turn(1.2);
	is_u64(c.w->budget, 400 * MB, "another device has a budget of its own");
	rs_serve_part(&s, c.c);
	c = come(&small, 0);
	d = come(&small, 0);
	turn(1.2);
	ok(c.w->budget == 400 * MB && d.w->budget == 400 * MB,
	   "so have two that do not know theirs");
	rs_serve_part(&s, c.c);
	rs_serve_part(&s, d.c);
	d = come(&small, 0);
	on_device(&d, 1, 1000 * MB);
	rig_tell(d.ring, &d.rig);
	for (unsigned i = 0; i < 12; i++) {
		turn(1.2);
		take(&a);
		take(&b);
		take(&d);
		if (sum() > 400 * MB)
			ok(0, "three, round %u: %" PRIu64, i, sum());
	}
	ok(sum() > 380 * MB && a.w->budget >= a.c->need && b.w->budget >= b.c->need &&
		   d.w->budget >= d.c->need,
	   "three: each has what it needs");
	rs_serve_part(&s, a.c);
	for (unsigned i = 0; i < 3; i++)
		turn(1.2);
	ok(b.w->budget + d.w->budget == 400 * MB && b.w->budget == d.w->budget,
	   "one leaves: the others share what it had");
}

static void test_device_small(void)
{
	struct prog p[4];

	start();
	for (unsigned i = 0; i < 4; i++) {
		p[i] = come(&small, 300 * MB);
		on_device(&p[i], 9, 300 * MB);
		rig_tell(p[i].ring, &p[i].rig);
	}
	turn(0.2);
	ok(sum() <= 300 * MB && sum() > 299 * MB,
	   "more needed than the device has: %" PRIu64 " MiB", sum() / MB);
	turn(1.2);
	ok(take(&p[3]) == 1 && (head.flags & RS_PLAN_INFEASIBLE),
	   "and each is told that there is no plan");
	rs_serve_part(&s, p[0].c);
	p[1].w->client.wanted = 0;
	turn(1.2);
	ok(p[1].w->budget == 0 && sum() <= 300 * MB - 112 * MB,
	   "what a program without a budget takes is taken off");
}

/* --- what cannot be -------------------------------------------------------------------------------------- */

static void test_lost(void)
{
	struct prog p;
	struct rig r = small;

	start();
	p = come(&small, 160 * MB);
	for (unsigned i = 0; i < 40; i++)
		rig_tell(p.ring, &r);
	p.w->client.lost_threads = 3;
	turn(0.2);
	ok(p.c->view.lost == 40 * 9 - RS_WIRE_RECORDS && p.c->view.lost_threads == 3,
	   "lost records are counted");
	ok(take(&p) == 1, "what was told suffices");
}

static void test_hostile(void)
{
	struct rs_wire_record record = {.kind = RS_WIRE_COST};
	uint64_t seed = 1;
	struct prog p, good;
	json_t *status;
	char *text;

	start();
	good = come(&small, 160 * MB);
	p = come(&small, UINT64_MAX);
	rig_tell(p.ring, &p.rig);
	rig_tell(good.ring, &good.rig);
	for (unsigned round = 0; round < 300; round++) {
		uint64_t *words = (uint64_t *)&p.w->client;

		for (unsigned i = 0; i < 40; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			words[(seed >> 33) % (sizeof(p.w->client) / 8)] = seed >> (seed >> 59);
		}
		if (round % 8 == 0)
			memset(p.w->client.program, 0xff, sizeof(p.w->client.program));
		for (unsigned i = 0; i < 250; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			record.u.cost = rig_cost(&small, seed >> 60);
			record.u.cost.order = (seed >> 32) % 4096;
			record.u.cost.peak_backward = seed >> 20;
			rs_wire_tell(p.ring, &record);
		}
		p.w->ring[3].head = seed;
		p.w->generation = seed;
		p.w->plan[0].sequence = seed;
		turn(0.3);
	}
	ok(p.c->costs.n <= RS_PLAN_MAX + 1,
	   "a liar's segments are bounded: %u, %" PRIu64 " were not believed", p.c->costs.n,
	   p.c->unbelievable);
	text = rs_serve_status(&s, now);
	status = text ? json_loads(text, 0, NULL) : NULL;
	ok(status != NULL, "the status can be read all the same");
	json_decref(status);
	free(text);
	ok(take(&good) == 1 && head.peak <= 160 * MB, "and its neighbour has its plan");
	/* Now as many different segments as it can think of. */
	for (unsigned i = 0; i < 10000; i++) {
		record.u.cost = rig_cost(&small, i % 4096);
		record.u.cost.invocation = i;
		rs_wire_tell(p.ring, &record);
		if (i % 200 == 0)
			rs_serve_hear(p.c, now);
	}
	turn(0.2);
	ok(p.c->costs.n <= RS_PLAN_MAX + 1, "so are 10000 of them: %u", p.c->costs.n);
}

static void test_full(void)
{
	struct rs_serve_client *c;
	int area, r = 0;

	start();
	for (unsigned i = 0; i < RS_SERVE_CLIENTS && !r; i++) {
		r = rs_serve_admit(&s, 0, &c, &area);
		close(area);
	}
	is_u64(s.clients, RS_SERVE_CLIENTS, "256 programs");
	ok(rs_serve_admit(&s, 0, &c, &area) == -EUSERS, "and no more");
	turn(0.2);
	start();
}

int main(void)
{
	test_when();
	test_fast_steps();
	test_settings();
	test_infeasible();
	test_incomplete();
	test_refusals();
	test_refused_kinds();
	test_ranks();
	test_ranks_late();
	test_device();
	test_device_small();
	test_lost();
	test_hostile();
	test_full();
	return tap_done();
}
