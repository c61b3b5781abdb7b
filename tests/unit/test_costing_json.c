/* SPDX-License-Identifier: MIT */
/*
 * Costs as lines and in contracts: what the library writes is what is read, what is damaged is said by file and line and
 * passed over, several processes are one.
 */
#include <errno.h>

#include "planner/costing_json.h"
#include "planner/rundir.h"
#include "tests/tap.h"
#include "tests/unit/costing_rig.h"
#include "tracker/costs_json.h"

static uint64_t lines;

static void feed(struct rs_run *run, struct rs_json *j)
{
	char text[sizeof(j->text) + 2];

	snprintf(text, sizeof(text), "%.*s}", (int)j->len, j->text);
	rs_run_feed(run, RS_RUN_EVENTS, ++lines, text, strlen(text), 1, NULL, NULL);
}

/* Every field has a value of its own. */
static void fill(struct rs_cost *c, uint64_t seed)
{
	memset(c, 0, sizeof(*c));
	snprintf(c->segment, sizeof(c->segment), "a \"b\" %" PRIu64, seed);
#define FILL(field) c->field = ++seed;
	RS_COST_NUMBERS(FILL)
#define FILL_TIME(field) c->field = (struct rs_cost_time){++seed, seed + 100, seed + 200};
	RS_COST_TIMES(FILL_TIME)
}

static int same_costs(const struct rs_costs *a, const struct rs_costs *b)
{
	int good = a->n == b->n && a->nshares == b->nshares &&
		   !memcmp(&a->usage, &b->usage, sizeof(a->usage)) &&
		   !memcmp(a->rate, b->rate, sizeof(a->rate));

	for (uint32_t i = 0; good && i < a->n; i++)
		good = !memcmp(&a->segment[i], &b->segment[i], sizeof(a->segment[i]));
	for (uint32_t i = 0; good && i < a->nshares; i++)
		good = !memcmp(&a->share[i], &b->share[i], sizeof(a->share[i]));
	return good;
}

static void put_all(struct rs_costs *c, struct rs_run *run)
{
	const struct rs_cost_usage usage = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
	struct rs_cost_share share = {.bytes = 5, .pieces = 2, .n = 3, .order = {1, 4, 9}};
	struct rs_json j;

	for (uint64_t i = 0; i < 3; i++) {
		struct rs_cost cost;

		fill(&cost, 100 * i);
		cost.order = i;
		cost.flags = 1u << i | RS_COST_HAS_RETAINED;
		rs_costs_put(c, &cost);
		rs_cost_json(&j, &cost);
		feed(run, &j);
	}
	rs_costs_put_share(c, &share);
	rs_cost_share_json(&j, &share);
	feed(run, &j);
	for (uint64_t kind = 0; kind < RS_RATES; kind++) {
		struct rs_cost_rate rate = {kind, 10 + kind, 20, 30, 40 + kind};

		rs_costs_put_rate(c, &rate);
		rs_cost_rate_json(&j, &rate);
		feed(run, &j);
	}
	c->usage = usage;
	rs_cost_usage_json(&j, &usage);
	feed(run, &j);
}

static void round_trips(void)
{
	struct rs_run *run = rs_run_create("run");
	struct rs_costs c = {0}, back = {0};
	json_t *o, *again;
	char bad[96] = "";

	put_all(&c, run);
	is_u64(run->bad_lines, 0, "no line is refused");
	ok(run->costs && same_costs(&c, run->costs), "what was written is what is read");
	o = rs_costs_to_json(&c);
	ok(!rs_costs_from_json(&back, o, bad, sizeof(bad)) && same_costs(&c, &back),
	   "through a contract, too %s", bad);
	again = rs_costs_to_json(&back);
	ok(json_equal(o, again), "and back");
	json_decref(o);
	json_decref(again);
	rs_costs_free(&c);
	rs_costs_free(&back);
	rs_run_free(run);
}

static void damaged(void)
{
	static const struct {
		const char *line, *says;
	} cases[] = {
		{"{\"v\":1,\"t\":\"cost\"}", "segment"},
		{"{\"v\":1,\"t\":\"cost\",\"segment\":\"\"}", "segment"},
		{"{\"v\":1,\"t\":\"cost\",\"segment\":\"a\",\"order\":-1}", "order"},
		{"{\"v\":1,\"t\":\"cost\",\"segment\":\"a\",\"kept_bytes\":\"1\"}", "kept_bytes"},
		{"{\"v\":1,\"t\":\"cost\",\"segment\":\"a\",\"kept_bytes\":9223372036854775807}",
		 "bytes or ns"},
		{"{\"v\":1,\"t\":\"cost\",\"segment\":\"a\",\"unsafe\":1}", "unsafe"},
		{"{\"v\":1,\"t\":\"cost\",\"segment\":\"a\",\"replay\":7}", "replay"},
		{"{\"v\":1,\"t\":\"cost\",\"segment\":\"a\",\"replay\":{\"n\":1.5}}", "replay"},
		{"{\"v\":1,\"t\":\"share\",\"bytes\":1,\"order\":[1]}", "order"},
		{"{\"v\":1,\"t\":\"share\",\"bytes\":1,\"order\":[1,99999999]}", "order"},
		{"{\"v\":1,\"t\":\"share\",\"bytes\":1}", "order"},
		{"{\"v\":1,\"t\":\"rate\",\"kind\":\"fast\"}", "kind"},
		{"{\"v\":1,\"t\":\"rate\",\"kind\":\"copy\",\"gib_ns\":9223372036854775807}",
		 "each_ns"},
		{"{\"v\":1,\"t\":\"usage\",\"steps\":true}", "steps"},
	};
	struct rs_run *run = rs_run_create("run");
	const size_t n = sizeof(cases) / sizeof(cases[0]);
	size_t right = 0;

	for (size_t i = 0; i < n; i++) {
		char want[64];

		rs_run_feed(run, RS_RUN_EVENTS, i + 1, cases[i].line, strlen(cases[i].line), 1,
			    NULL, NULL);
		snprintf(want, sizeof(want), "events.jsonl:%zu: wrong or missing field '%s'", i + 1,
			 cases[i].says);
		if (run->nproblems == i + 1 && !strcmp(run->problems[i].text, want))
			right++;
		else
			tap_diag("want %s", want);
	}
	is_u64(right, n, "damaged lines are told by file and line");
	ok(!run->costs->n && !run->costs->nshares && !run->costs->rate[0].n, "and not used");
	rs_run_free(run);
}

static int refuses(const char *text, const char *want)
{
	json_t *o = json_loads(text, 0, NULL);
	struct rs_costs c = {0};
	char bad[96] = "";
	int r = rs_costs_from_json(&c, o, bad, sizeof(bad));

	json_decref(o);
	rs_costs_free(&c);
	if (r != -EINVAL || strcmp(bad, want))
		tap_diag("%s: '%s'", text, bad);
	return r == -EINVAL && !strcmp(bad, want);
}

static void contracts(void)
{
	ok(refuses("{}", "usage") && refuses("{\"usage\":{\"step\":\"x\"}}", "step") &&
		   refuses("{\"usage\":{}}", "segments") &&
		   refuses("{\"usage\":{},\"segments\":[{\"segment\":\"a\"},7]}",
			   "segments[1].an object") &&
		   refuses("{\"usage\":{},\"segments\":[],\"shares\":[],\"rates\":[{}]}",
			   "rates[0].kind"),
	   "what is wrong in a contract's costs is told by its place");
}

static void processes(void)
{
	struct rs_run *runs[3];
	struct rs_costs c = {0};
	struct rs_cost cost;
	struct rs_json j;

	for (uint64_t i = 0; i < 3; i++) {
		runs[i] = rs_run_create("run");
		fill(&cost, 5);
		cost.order = 0;
		cost.kept_bytes = 1000 + i;
		rs_cost_json(&j, &cost);
		if (i != 1)
			feed(runs[i], &j);
	}
	ok(!rs_costs_of_runs(runs, 3, &c) && c.n == 1 && c.segment[0].kept_bytes == 1002,
	   "processes are merged, those without costs passed over");
	rs_costs_free(&c);
	is_u64((uint64_t)-rs_costs_of_runs(&runs[1], 1, &c), ENODATA, "none has any");
	cost.invocation++;
	rs_cost_json(&j, &cost);
	feed(runs[1], &j);
	is_u64((uint64_t)-rs_costs_of_runs(runs, 3, &c), EINVAL, "other segments are not merged");
	for (int i = 0; i < 3; i++)
		rs_run_free(runs[i]);
}

int main(void)
{
	round_trips();
	damaged();
	contracts();
	processes();
	return tap_done();
}
