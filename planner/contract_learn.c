/* SPDX-License-Identifier: MIT */
/*
 * From the lines of a run to a contract. Lines have been checked by run_learned.c, so fields are what they should be.
 * A contract is made of each process' lines and the next is merged into it; what follows from all (density, option,
 * fingerprint, order) is put in last, so that two runs of one program give one document. docs: contract.h.
 */
#include "planner/contract.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/costing_json.h"
#include "tracker/digest.h"

#define MOST_TIMES 4096u

static json_int_t num(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

static const char *str(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static void copy(json_t *to, const json_t *from, const char *key)
{
	json_object_set_new(to, key, json_deep_copy(json_object_get(from, key)));
}

/* --- times ------------------------------------------------------------------------------------ */

struct rs_contract_times {
	json_t *of; /* path of the run, newline, segment -> array of ns, the first MOST_TIMES */
};

static char *time_key(const struct rs_run *run, const char *segment)
{
	char *key;

	return asprintf(&key, "%s\n%s", run->path, segment) < 0 ? NULL : key;
}

struct rs_contract_times *rs_contract_times_create(void)
{
	struct rs_contract_times *t = calloc(1, sizeof(*t));

	if (t)
		t->of = json_object();
	return t;
}

void rs_contract_times_free(struct rs_contract_times *t)
{
	if (t)
		json_decref(t->of);
	free(t);
}

void rs_contract_times_add(void *times, const struct rs_run *run, const struct rs_replay *replay)
{
	struct rs_contract_times *t = times;
	char *key = time_key(run, replay->segment);
	json_t *list = key ? json_object_get(t->of, key) : NULL;

	if (key && !list) {
		list = json_array();
		json_object_set_new(t->of, key, list);
	}
	if (json_array_size(list) < MOST_TIMES)
		json_array_append_new(list, json_integer((json_int_t)replay->ns));
	free(key);
}

static int by_number(const void *a, const void *b)
{
	json_int_t x = *(const json_int_t *)a, y = *(const json_int_t *)b;

	return (x > y) - (x < y);
}

static json_int_t median(const struct rs_contract_times *t, const struct rs_run *run,
			 const char *segment)
{
	char *key = t ? time_key(run, segment) : NULL;
	const json_t *list = key ? json_object_get(t->of, key) : NULL;
	size_t n = json_array_size(list);
	json_int_t *v = n ? malloc(n * sizeof(*v)) : NULL, found = 0;

	for (size_t i = 0; v && i < n; i++)
		v[i] = json_integer_value(json_array_get(list, i));
	if (v) {
		qsort(v, n, sizeof(*v), by_number);
		found = v[n / 2];
	}
	free(v);
	free(key);
	return found;
}

/* --- verdict ---------------------------------------------------------------------------------- */

static const char *const verdicts[] = {"replayable", "cannot tell", "not replayable"};

/* What a code means once state is preserved: 0 that is put right, 1 cannot be told, 2 is wrong all the same. */
static int weight(const char *code)
{
	static const unsigned right[] = {2, 3, 10, 12, 13, 15, 19, 20, 21, 50},
			      wrong[] = {1, 11, 31, 52};
	const struct rs_finding_info *info = rs_code_find(code);

	for (size_t i = 0; info && i < sizeof(right) / sizeof(right[0]); i++)
		if (info->code == right[i])
			return 0;
	for (size_t i = 0; info && i < sizeof(wrong) / sizeof(wrong[0]); i++)
		if (info->code == wrong[i])
			return 2;
	return 1;
}

static const struct rs_run_segment *replays_of(const struct rs_run *run, const char *name)
{
	for (size_t i = 0; i < run->nsegments; i++)
		if (!strcmp(run->segments[i].name, name))
			return &run->segments[i];
	return NULL;
}

static void set_verdict(json_t *segment, int worst, const char *why)
{
	json_object_set_new(segment, "verdict", json_string(verdicts[worst]));
	json_object_set_new(segment, "reason", json_string(why));
}

static void judge(json_t *segment, const struct rs_run *run)
{
	const struct rs_run_segment *s = replays_of(run, str(segment, "name"));
	json_t *codes = json_array(), *count;
	const char *code, *told = NULL;
	int worst = 0;

	json_object_foreach(s ? s->codes : NULL, code, count)
	{
		int w = weight(code);
		const struct rs_finding_info *info = rs_code_find(code);

		json_array_append_new(codes, json_string(code));
		if (!told || w > worst || (w == worst && !strcmp(code, "RS010")))
			told = info ? info->title : code;
		worst = w > worst ? w : worst;
	}
	json_object_set_new(segment, "codes", codes);
	if (!s || !s->replays)
		set_verdict(segment, 1, "no replay was seen");
	else if (worst)
		set_verdict(segment, worst, told);
	else if (!json_is_true(json_object_get(segment, "complete")))
		set_verdict(segment, 1, "there was more state, or more windows, than was kept");
	else if (run->bad_lines || num(run->stats, "lost"))
		set_verdict(segment, 1, "lines of the run are missing or damaged");
	else if (s->outcome[RS_RUN_DIVERGENCE] + s->outcome[RS_RUN_REJECTION] && !told)
		set_verdict(segment, 1, "a replay was no match, for no known reason");
	else
		set_verdict(segment, 0, told ? told : "every replay was a match");
}

/* --- state ------------------------------------------------------------------------------------ */

char *rs_contract_state_name(const json_t *s)
{
	char *name;
	int n;

	if (json_is_string(json_object_get(s, "region")))
		n = asprintf(&name, "%s [%" PRId64 " + %" PRId64 "]", str(s, "region"),
			     (int64_t)num(s, "offset"), (int64_t)num(s, "bytes"));
	else
		n = asprintf(&name,
			     "call %" PRId64 " slot %" PRId64 " piece %" PRId64 " [%" PRId64
			     " + %" PRId64 "]",
			     (int64_t)num(s, "call"), (int64_t)num(s, "slot"),
			     (int64_t)num(s, "piece"), (int64_t)num(s, "offset"),
			     (int64_t)num(s, "bytes"));
	return n < 0 ? NULL : name;
}

struct piece {
	json_int_t off, len;
};

static int by_offset(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	return (x->off > y->off) - (x->off < y->off);
}

/* Both lists as one, sorted, disjoint, not adjacent. */
static json_t *unite(const json_t *a, const json_t *b)
{
	size_t na = json_array_size(a), n = na + json_array_size(b), k = 0;
	struct piece *v = calloc(n + 1, sizeof(*v));
	json_t *out = json_array();

	for (size_t i = 0; v && i < n; i++) {
		const json_t *w = i < na ? json_array_get(a, i) : json_array_get(b, i - na);

		v[i].off = json_integer_value(json_array_get(w, 0));
		v[i].len = json_integer_value(json_array_get(w, 1));
	}
	if (v && n)
		qsort(v, n, sizeof(*v), by_offset);
	for (size_t i = 1; v && i < n; i++) {
		json_int_t end = v[i].off + v[i].len;

		if (v[i].off > v[k].off + v[k].len)
			v[++k] = v[i];
		else if (end > v[k].off + v[k].len)
			v[k].len = end - v[k].off;
	}
	for (size_t i = 0; v && n && i <= k; i++)
		json_array_append_new(out, json_pack("[I,I]", v[i].off, v[i].len));
	free(v);
	return out;
}

static void add(json_t *to, const json_t *from, const char *key)
{
	uint64_t sum = (uint64_t)num(to, key) + (uint64_t)num(from, key);

	json_object_set_new(to, key, json_integer(sum < INT64_MAX ? (json_int_t)sum : INT64_MAX));
}

static void most(json_t *to, const json_t *from, const char *key)
{
	if (num(from, key) > num(to, key))
		copy(to, from, key);
}

/* The same state of another line or process. `again`: the rest of one that did not fit into a line. */
static void merge_state(json_t *to, const json_t *from, int again)
{
	if (!again) {
		add(to, from, "reads");
		add(to, from, "overwrites");
	}
	if (!*str(to, "writer"))
		copy(to, from, "writer");
	if (strcmp(str(to, "role"), str(from, "role")))
		json_object_set_new(to, "role", json_string("unknown"));
	json_object_set_new(
		to, "windows",
		unite(json_object_get(to, "windows"), json_object_get(from, "windows")));
}

static json_t *new_state(const json_t *line)
{
	static const char *const kept[] = {"region", "call",	   "slot",  "piece",
					   "offset", "bytes",	   "role",  "reads",
					   "reader", "overwrites", "writer"};
	json_t *s = json_object();

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (json_object_get(line, kept[i]))
			copy(s, line, kept[i]);
	json_object_set_new(s, "entry", json_string("digest"));
	json_object_set_new(s, "windows", unite(json_object_get(line, "windows"), NULL));
	return s;
}

/* States are held by name until the end. */
static void put_state(json_t *segment, json_t *state, int again)
{
	json_t *all = json_object_get(segment, "state"), *found;
	char *name = rs_contract_state_name(state);

	found = name ? json_object_get(all, name) : NULL;
	if (found)
		merge_state(found, state, again);
	else if (name)
		json_object_set(all, name, state);
	json_decref(state);
	free(name);
}

/* --- segments --------------------------------------------------------------------------------- */

static json_t *new_segment(const json_t *line, const struct rs_run *run,
			   const struct rs_contract_times *times)
{
	static const char *const kept[] = {"forwards", "invocations", "replays", "calls"};
	static const char *const flags[] = {"host_effect", "captured", "unknown_writer",
					    "untracked"};
	json_t *s = json_object();

	json_object_set_new(s, "name", json_string(str(line, "segment")));
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		copy(s, line, kept[i]);
	json_object_set_new(s, "complete",
			    json_boolean(!json_is_true(json_object_get(line, "cut")) &&
					 json_array_size(json_object_get(line, "calls"))));
	json_object_set_new(s, "state", json_object());
	json_object_set_new(s, "aliases", json_object());
	json_object_set_new(s, "aliases_complete",
			    json_boolean(json_is_false(json_object_get(line, "aliases_cut"))));
	json_object_set_new(s, "generators",
			    json_pack("{s:I, s:I}", "draws", num(line, "draws"), "bytes",
				      num(line, "draw_bytes")));
	json_object_set_new(s, "products",
			    json_pack("{s:I, s:I}", "count", num(line, "products"), "bytes",
				      num(line, "product_bytes")));
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		copy(s, line, flags[i]);
	json_object_set_new(s, "measured",
			    json_pack("{s:I, s:I, s:I, s:I, s:I}", "state_bytes",
				      num(line, "state_bytes"), "product_bytes",
				      num(line, "product_bytes"), "longest", num(line, "longest"),
				      "host_ns", num(line, "host_ns"), "replay_ns",
				      median(times, run, str(line, "segment"))));
	judge(s, run);
	return s;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The texts of both arrays, each once, sorted. */
static json_t *unite_texts(const json_t *a, const json_t *b)
{
	size_t na = json_array_size(a), n = na + json_array_size(b);
	const char **v = calloc(n + 1, sizeof(*v));
	json_t *out = json_array();

	for (size_t i = 0; v && i < n; i++)
		v[i] = json_string_value(i < na ? json_array_get(a, i) : json_array_get(b, i - na));
	if (v && n)
		qsort(v, n, sizeof(*v), by_text);
	for (size_t i = 0; v && i < n; i++)
		if (!i || strcmp(v[i], v[i - 1]))
			json_array_append_new(out, json_string(v[i]));
	free(v);
	return out;
}

static int verdict_of(const json_t *segment)
{
	for (int i = 0; i < 3; i++)
		if (!strcmp(str(segment, "verdict"), verdicts[i]))
			return i;
	return 1;
}

static void merge_segment(json_t *to, json_t *from)
{
	static const char *const lists[] = {"calls", "codes"};
	static const char *const flags[] = {"host_effect", "captured", "unknown_writer",
					    "untracked"};
	static const char *const numbers[] = {"generators", "products", "measured"};
	json_t *state;
	const char *key;

	add(to, from, "forwards");
	most(to, from, "invocations");
	most(to, from, "replays");
	for (size_t i = 0; i < 2; i++)
		json_object_set_new(to, lists[i],
				    unite_texts(json_object_get(to, lists[i]),
						json_object_get(from, lists[i])));
	if (!json_is_true(json_object_get(from, "aliases_complete")))
		copy(to, from, "aliases_complete");
	json_object_foreach(json_object_get(from, "aliases"), key, state)
	{
		rs_contract_alias_put(json_object_get(to, "aliases"), json_incref(state));
	}
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (json_is_true(json_object_get(from, flags[i])))
			copy(to, from, flags[i]);
	if (!json_is_true(json_object_get(from, "complete")))
		copy(to, from, "complete");
	for (size_t i = 0; i < 3; i++) {
		json_t *mine = json_object_get(to, numbers[i]), *v;

		json_object_foreach(json_object_get(from, numbers[i]), key, v)
		{
			most(mine, json_object_get(from, numbers[i]), key);
		}
	}
	if (verdict_of(from) > verdict_of(to)) {
		copy(to, from, "verdict");
		copy(to, from, "reason");
	}
	json_object_foreach(json_object_get(from, "state"), key, state)
	{
		put_state(to, json_incref(state), 0);
	}
}

/* name -> segment */
static json_t *segments_of(const struct rs_run *run, const struct rs_contract_times *times)
{
	json_t *all = json_object(), *line, *s;
	size_t i;

	json_array_foreach(run->learned[RS_RUN_LEARNED_SEGMENT], i, line)
	{
		s = new_segment(line, run, times);
		json_object_set_new(s, "calls", unite_texts(json_object_get(s, "calls"), NULL));
		json_object_set_new(s, "codes", unite_texts(json_object_get(s, "codes"), NULL));
		json_object_set_new(all, str(line, "segment"), s);
	}
	json_array_foreach(run->learned[RS_RUN_LEARNED_STATE], i, line)
	{
		s = json_object_get(all, str(line, "segment"));
		if (s)
			put_state(s, new_state(line), 1);
	}
	json_array_foreach(run->learned[RS_RUN_LEARNED_ALIAS], i, line)
	{
		s = json_object_get(all, str(line, "segment"));
		if (s)
			rs_contract_alias_put(json_object_get(s, "aliases"),
					      rs_contract_alias_of(line));
	}
	return all;
}

/* --- what follows from all -------------------------------------------------------------------- */

/* The values of an object in the order of its keys. */
static json_t *sorted_values(json_t *object)
{
	size_t n = json_object_size(object), i = 0;
	const char **keys = calloc(n + 1, sizeof(*keys)), *key;
	json_t *out = json_array(), *value;

	json_object_foreach(object, key, value)
	{
		if (keys)
			keys[i++] = key;
	}
	if (keys && n)
		qsort(keys, n, sizeof(*keys), by_text);
	for (i = 0; keys && i < n; i++)
		json_array_append(out, json_object_get(object, keys[i]));
	free(keys);
	return out;
}

/*
 * The rule for the option, from what was seen: not replayable -> retain; not known to be -> undo; nothing is
 * overwritten -> free; writes come to less than a quarter of the state -> regions; else undo.
 */
static const char *option(const json_t *segment, uint64_t state, uint64_t written, int writes)
{
	int verdict = verdict_of(segment);

	if (verdict == 2)
		return "retain";
	if (verdict == 1)
		return "undo";
	if (!writes)
		return "free";
	return written && written < state / 4 ? "regions" : "undo";
}

static void settle(json_t *segment)
{
	json_t *list = sorted_values(json_object_get(segment, "state")), *s, *w;
	uint64_t state = 0, written = 0;
	int writes = 0;
	size_t i, k;

	json_array_foreach(list, i, s)
	{
		json_int_t bytes = 0;

		json_array_foreach(json_object_get(s, "windows"), k, w)
		{
			bytes += json_integer_value(json_array_get(w, 1));
		}
		json_object_set_new(s, "density",
				    json_real((double)bytes / (double)num(s, "bytes")));
		state += (uint64_t)num(s, "bytes");
		written += (uint64_t)bytes;
		writes |= num(s, "overwrites") > 0;
	}
	json_object_set_new(segment, "state", list);
	json_object_set_new(segment, "aliases", sorted_values(json_object_get(segment, "aliases")));
	json_object_set_new(segment, "preserve",
			    json_pack("{s:s, s:s}", "option",
				      option(segment, state, written, writes), "restore", "copy"));
}

static uint64_t hash_text(uint64_t h, const char *s)
{
	for (; *s; s++)
		h = rs_digest_mix(h * RS_DIGEST_K + (unsigned char)*s);
	return rs_digest_mix(h + 1);
}

/* Of names and call sequences; the segments are sorted. */
static void fingerprint(char out[24], const json_t *segments)
{
	uint64_t h = json_array_size(segments);
	json_t *s, *call;
	size_t i, k;

	json_array_foreach(segments, i, s)
	{
		h = hash_text(h, str(s, "name"));
		json_array_foreach(json_object_get(s, "calls"), k, call)
		{
			h = hash_text(h, json_string_value(call));
		}
	}
	snprintf(out, 24, "0x%016" PRIx64, h);
}

static json_t *document(json_t *by_name, const struct rs_run *run)
{
	json_t *segments = sorted_values(by_name), *argv = json_object_get(run->begin, "argv"), *s;
	char print[24];
	size_t i;

	json_array_foreach(segments, i, s)
	{
		settle(s);
	}
	fingerprint(print, segments);
	return json_pack("{s:i, s:s, s:{s:o, s:s, s:s}, s:o}", "contract_version",
			 RS_CONTRACT_FORMAT, "tool", RS_VERSION, "program", "argv",
			 argv ? json_deep_copy(argv) : json_array(), "device",
			 str(run->begin, "device"), "fingerprint", print, "segments", segments);
}

/* The same segments with the same calls. */
static int is_same_program(json_t *a, json_t *b)
{
	json_t *s, *other;
	const char *name;

	if (json_object_size(a) != json_object_size(b))
		return 0;
	json_object_foreach(a, name, s)
	{
		other = json_object_get(b, name);
		if (!other ||
		    !json_equal(json_object_get(s, "calls"), json_object_get(other, "calls")))
			return 0;
	}
	return 1;
}

/* What the processes have measured, if that was the same segments. */
static void add_costs(json_t *doc, struct rs_run *const *runs, size_t n)
{
	struct rs_costs c = {0};

	if (!rs_costs_of_runs(runs, n, &c))
		json_object_set_new(doc, "costs", rs_costs_to_json(&c));
	rs_costs_free(&c);
}

int rs_contract_learn(struct rs_run *const *runs, size_t n, const struct rs_contract_times *times,
		      json_t **ret_contract, struct rs_contract_why *why)
{
	json_t *all = NULL, *more, *s, *doc;
	const struct rs_run *first = NULL;
	const char *name;

	for (size_t i = 0; i < n; i++) {
		if (!json_array_size(runs[i]->learned[RS_RUN_LEARNED_SEGMENT]))
			continue;
		more = segments_of(runs[i], times);
		if (all && !is_same_program(all, more)) {
			snprintf(
				why->text, sizeof(why->text),
				"%s and %s are of different programs: their segments or calls differ",
				first->path, runs[i]->path);
			json_decref(more);
			json_decref(all);
			return -EINVAL;
		}
		first = first ? first : runs[i];
		json_object_foreach(all ? more : NULL, name, s)
		{
			merge_segment(json_object_get(all, name), s);
		}
		if (all)
			json_decref(more);
		else
			all = more;
	}
	if (!all) {
		snprintf(why->text, sizeof(why->text),
			 "nothing was learned here: the run needs REPLAYSHIM_LEARN=1 and marked "
			 "segments, and must have ended by itself");
		return -ENODATA;
	}
	doc = document(all, first);
	json_decref(all);
	if (!doc)
		return -ENOMEM;
	add_costs(doc, runs, n);
	*ret_contract = doc;
	return 0;
}
