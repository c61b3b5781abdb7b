/* SPDX-License-Identifier: MIT */
/*
 * Files of marker rules: what they may say, what is told of those that are wrong, and what rules make of texts.
 */
#include "tests/tap.h"
#include "tracker/pattern.h"

#include <errno.h>
#include <unistd.h>

static struct rs_ere_scratch scratch;

struct said {
	char text[8192];
	unsigned lines;
};

static void report(void *arg, const char *line)
{
	struct said *s = arg;

	s->lines++;
	strncat(s->text, line, sizeof(s->text) - strlen(s->text) - 2);
	strcat(s->text, "\n");
}

static struct rs_patterns *rules(const char *text, struct said *s)
{
	struct rs_patterns *p = rs_patterns_create();
	char *copy = strdup(text);

	memset(s, 0, sizeof(*s));
	s->lines = rs_patterns_read(p, "f", copy, strlen(copy), report, s) - s->lines;
	free(copy);
	return p;
}

/* What the first rule that fits, whatever its conditions, makes of a text; "" for none. */
static const char *becomes(const struct rs_patterns *p, const char *domain, const char *text)
{
	static char marker[RS_PATTERN_MARKER];
	struct rs_pattern_bits bits =
		rs_patterns_match(p, rs_patterns_domain(p, domain), &scratch, text, strlen(text));

	for (unsigned i = 0; i < rs_patterns_count(p); i++)
		if (bits.rules >> i & 1 && !rs_pattern_marker(rs_patterns_rule(p, i), &scratch,
							      text, strlen(text), marker))
			return marker[0] ? marker : "(ignored)";
	return "";
}

static void meaning(void)
{
	struct said s;
	struct rs_patterns *p = rules(
		"# what our training loop says\n"
		"\n"
		"forward \"fwd (layer[0-9]+)\"   # the name is the first group\n"
		"replay \"recompute (layer[0-9]+) mb=([0-9]+)\" name \"\\1\" number \"\\2\"\n"
		"step \"iteration ([0-9]+)\"\n"
		"step \"train_step\"\n"
		"step \"epoch ([0-9]+)\" number count\n"
		"ignore \"forward:.*\"\n"
		"domain \"TSL\" forward \"Thunk:#name=(.*)/checkpoint/.*\" name \"xla/\\1\\\\x\"\n"
		"domain any state \"buffers/(.*)\"\n"
		"output \"say \\\"(.*)\\\"\"\r\n"
		"forward \"whole\"",
		&s);

	is_str(s.text, "", "nothing to complain about");
	is_u64(rs_patterns_count(p), 10, "ten rules");
	is_str(becomes(p, "", "fwd layer7"), "forward:layer7", "a forward");
	is_str(becomes(p, "", "fwd layer7 "), "", "the whole text counts");
	is_str(becomes(p, "", "recompute layer7 mb=03"), "replay:layer7#03", "a replay by number");
	is_str(becomes(p, "", "iteration 12"), "step:12", "a step has its number");
	is_str(becomes(p, "", "train_step"), "step:", "or is counted");
	ok(rs_patterns_rule(p, 3)->count && rs_patterns_rule(p, 4)->count &&
		   !rs_patterns_rule(p, 2)->count,
	   "without a group, or when told to");
	is_str(becomes(p, "", "epoch 3"), "step:", "counted in spite of the group");
	is_str(becomes(p, "", "forward:own"), "(ignored)", "nothing may be made of a marker");
	is_str(becomes(p, "", "Thunk:#name=a/checkpoint/b"), "", "another domain's rule");
	is_str(becomes(p, "TSL", "Thunk:#name=a#b/checkpoint/c"), "forward:xla/a_b\\x",
	       "a domain's rule; # cannot be part of a name");
	is_str(becomes(p, "x", "buffers/running_mean"), "state:running_mean", "memory, any domain");
	is_str(becomes(p, "", "say \"hello\""), "output:hello", "quotation marks");
	is_str(becomes(p, "", "whole"), "forward:whole", "no group: the whole text is the name");
	is_u64(rs_patterns_rule(p, 9)->line, 12, "a rule knows its line");
	is_str(rs_pattern_file(p, rs_patterns_rule(p, 9)), "f", "and its file");
	rs_patterns_free(p);
}

static void order(void)
{
	struct said s;
	struct rs_patterns *p = rules("replay \"l([0-9])\" during \"bwd\" until \"stop\"\n"
				      "forward \"l([0-9])\"\n"
				      "forward \"(.*)\" inside \"bwd\" inside \"x\"\n"
				      "forward \"l(.*)\" name \"n\" number \"\\1\" inside \"bwd\"\n"
				      "domain \"d\" forward \"q\" inside \"bwd\"\n",
				      &s);
	const struct rs_pattern_rule *r = rs_patterns_rule(p, 0);
	char marker[RS_PATTERN_MARKER];

	is_str(becomes(p, "", "l1"), "replay:1", "the first that fits is taken");
	ok(r->during >= 0 && r->until >= 0 && r->inside < 0 && r->during != r->until,
	   "conditions are contexts");
	is_str(rs_patterns_context(p, (unsigned)r->during)->text, "bwd", "by their pattern");
	ok(rs_patterns_during(p) == 1u << r->during, "those of `during` are known");
	ok(rs_patterns_rule(p, 2)->inside == r->during, "equal conditions of one domain are one");
	ok(rs_patterns_rule(p, 3)->inside != r->during, "of another domain another");
	ok(rs_patterns_match(p, rs_patterns_domain(p, ""), &scratch, "bwd", 3).contexts ==
		   1u << r->during,
	   "a text belongs to contexts");
	is_u64(rs_patterns_match(p, rs_patterns_domain(p, "d"), &scratch, "bwd", 3).contexts,
	       1u << rs_patterns_rule(p, 3)->inside, "of its domain");
	ok(rs_pattern_marker(rs_patterns_rule(p, 2), &scratch, "l1x", 3, marker) == -EINVAL,
	   "a number that is none: the rule makes nothing of the text");
	is_str(s.text, "f:3:29: said twice\n", "a condition twice is an error");
	rs_patterns_free(p);
}

static void builtin(void)
{
	struct said s;
	struct rs_patterns *p = rules("ignore \"_CheckpointFunction.*\"\n", &s);
	const char *f = "CheckpointFunction, seq = 41, op_id = 7, sizes = [[2, 3]]";
	const char *r = "CheckpointFunctionBackward, seq = 41, op_id = 93";

	rs_patterns_builtin(p);
	is_str(becomes(p, "", f), "forward:CheckpointFunction#41", "PyTorch's checkpoint, forward");
	is_str(becomes(p, "", r), "replay:CheckpointFunction#41", "and its backward node");
	is_str(becomes(p, "", "CheckpointFunction, seq = 5"), "forward:CheckpointFunction#5",
	       "without an operation's number");
	is_str(becomes(p, "", "autograd::engine::evaluate_function: CheckpointFunctionBackward"),
	       "", "not the range around it");
	is_str(becomes(p, "", "CheckpointWithoutOutputFunction, seq = 5"), "",
	       "nor a function that is recomputed elsewhere");
	is_str(becomes(p, "", "CheckpointFunction"), "", "nor one without a gradient");
	is_str(becomes(p, "TSL", f), "", "nor in another domain");
	is_str(becomes(p, "", "_CheckpointFunction, seq = 5"), "(ignored)", "files come first");
	ok(rs_patterns_rule(p, 1)->builtin && !rs_patterns_rule(p, 0)->builtin &&
		   rs_patterns_rule(p, 2)->until >= 0,
	   "they are known as such; a nested backward ends the replay");
	rs_patterns_free(p);
	p = rules("builtin off\n", &s);
	rs_patterns_builtin(p);
	is_u64(rs_patterns_count(p), 0, "they can be switched off");
	rs_patterns_free(p);
}

static void complaints(void)
{
	static const struct {
		const char *text, *say;
	} bad[] = {
		{"forwards \"a\"",
		 "f:1:1: domain, step, forward, replay, ignore, state, output or builtin was expected"},
		{"forward a", "f:1:9: a pattern in quotation marks has to follow"},
		{"forward", "f:1:8: a pattern in quotation marks has to follow"},
		{"forward \"a", "f:1:9: the string is not closed"},
		{"forward \"a\"name \"b\"", "f:1:12: a blank has to follow"},
		{"forward \"x(\"", "f:1:11: the ( is not closed"},
		{"forward \"\\\"\\\"x(\"", "f:1:15: the ( is not closed"},
		{"forward \"a\" name", "f:1:17: a text in quotation marks has to follow"},
		{"forward \"a\" name \"\"", "f:1:18: an empty text names nothing"},
		{"forward \"a\" name \"b\" name \"c\"", "f:1:22: said twice"},
		{"forward \"a\" name \"x\\1\"", "f:1:21: the pattern has no such group"},
		{"forward \"(a)\" name \"x\\d\"",
		 "f:1:23: \\0 to \\9 are groups, \\\\ is the character"},
		{"forward \"a\" number count", "f:1:20: a text in quotation marks has to follow"},
		{"step \"a\" number counts", "f:1:17: a number is \"TEXT\", or count"},
		{"step \"a\" name \"b\"", "f:1:10: this kind of rule takes no name"},
		{"state \"a\" number \"1\"", "f:1:11: this kind of rule takes no number"},
		{"state \"a\" inside \"b\"", "f:1:11: memory is named at any time"},
		{"step \"a\" until \"b\"", "f:1:10: only forwards and replays end"},
		{"forward \"a\" when \"b\"",
		 "f:1:13: name, number, inside, during or until was expected"},
		{"forward \"a\" inside \"b)\"",
		 "f:1:22: no ( is open; for the character write \\)"},
		{"domain TSL forward \"a\"", "f:1:8: a domain is \"NAME\", default or any"},
		{"domain \"a\"",
		 "f:1:11: domain, step, forward, replay, ignore, state, output or builtin was expected"},
		{"builtin", "f:1:8: on or off has to follow"},
		{"builtin off now", "f:1:13: nothing may follow"},
	};
	struct said s;
	struct rs_patterns *p;
	char text[64 * 16 + 1] = "", nul[] = "forward \"a\"\nfor\0ward\nreplay \"b\"";

	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		char line[200];

		p = rules(bad[i].text, &s);
		snprintf(line, sizeof(line), "%s\n", bad[i].say);
		is_str(s.text, line, bad[i].text);
		is_u64(rs_patterns_count(p), 0, "and there is no such rule");
		rs_patterns_free(p);
	}
	p = rules("forward \"a\"\nfoo\n\nreplay \"(\"\nreplay \"b\" # bar \"\n", &s);
	is_u64(rs_patterns_count(p), 2, "the other lines are kept");
	is_str(becomes(p, "", "b"), "replay:b", "and mean what they meant");
	ok(strstr(s.text, "f:2:1: ") && strstr(s.text, "f:4:9: "), "each error has its place: %s",
	   s.text);
	rs_patterns_free(p);
	p = rs_patterns_create();
	memset(&s, 0, sizeof(s));
	is_u64(rs_patterns_read(p, "f", nul, sizeof(nul) - 1, report, &s), 1, "a zero byte");
	is_str(s.text, "f:2:4: a zero byte has no place here\n", "is an error of its line");
	is_u64(rs_patterns_count(p), 2, "and of no other");
	rs_patterns_free(p);
	for (unsigned i = 0; i < 61; i++)
		strcat(text, "forward \"a(b)\"\n");
	p = rules(text, &s);
	is_str(s.text, "f:61:1: more than 60 rules\n", "there is a limit");
	rs_patterns_builtin(p);
	is_u64(rs_patterns_count(p), 62, "which leaves room for the built-in rules");
	rs_patterns_free(p);
}

static void files(void)
{
	char dir[] = "/tmp/test_pattern.XXXXXX", a[64], b[64], paths[256], want[300];
	struct rs_patterns *p = rs_patterns_create();
	struct said s = {{0}, 0};
	FILE *f;

	if (!mkdtemp(dir))
		return;
	snprintf(a, sizeof(a), "%s/a", dir);
	snprintf(b, sizeof(b), "%s/b", dir);
	f = fopen(a, "w");
	fputs("forward \"a\"", f);
	fclose(f);
	f = fopen(b, "w");
	fputs("replay \"b\"\nx\n", f);
	fclose(f);
	snprintf(paths, sizeof(paths), ":%s::%s/none:%s:%s", a, dir, dir, b);
	is_u64(rs_patterns_load(p, paths, report, &s), 3, "several files, of which some are bad");
	snprintf(want, sizeof(want),
		 "%s/none: No such file or directory\n%s: no regular file\n%s:2:1: domain, step, "
		 "forward, replay, ignore, state, output or builtin was expected\n",
		 dir, dir, b);
	is_str(s.text, want, "each is named");
	is_u64(rs_patterns_count(p), 2, "the rules of the good ones are there");
	is_str(rs_pattern_file(p, rs_patterns_rule(p, 1)), b, "and know where they come from");
	rs_patterns_free(p);
	unlink(a);
	unlink(b);
	rmdir(dir);
}

static void plain(void)
{
	is_u64(rs_pattern_plain("forward:a"), RS_PATTERN_FORWARD, "a marker as it stands");
	is_u64(rs_pattern_plain("step:"), RS_PATTERN_STEP, "or what looks like one");
	is_u64(rs_pattern_plain("forwards:a"), RS_PATTERN_NONE, "another text");
	is_u64(rs_pattern_plain("forward"), RS_PATTERN_NONE, "the beginning of one");
	is_u64(rs_pattern_plain("ignore:a"), RS_PATTERN_NONE, "a word that is none");
}

int main(void)
{
	meaning();
	order();
	builtin();
	complaints();
	files();
	plain();
	return tap_done();
}
