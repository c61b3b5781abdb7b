/* SPDX-License-Identifier: MIT */
/*
 * Options from an environment, complaints about it, and templates.
 */
#include "tests/tap.h"
#include "tracker/options.h"

#include <errno.h>

struct said {
	char text[4096];
	int lines;
};

static void report(void *arg, const char *line)
{
	struct said *s = arg;

	s->lines++;
	strncat(s->text, line, sizeof(s->text) - strlen(s->text) - 2);
	strcat(s->text, "\n");
}

static int parse(struct rs_options *o, struct said *s, const char *a, const char *b)
{
	char *env[] = {(char *)"PATH=/bin", (char *)a, (char *)b, NULL};

	memset(s, 0, sizeof(*s));
	return rs_options_parse(o, env, report, s);
}

static void values(void)
{
	struct rs_options o;
	struct said s;

	is_u64(rs_options_parse(&o, NULL, NULL, NULL), 0, "no environment: no complaint");
	is_u64(o.mode, 2, "default mode: audit");
	is_u64(o.snapshot_max, 0, "none is no limit");
	is_u64(o.verify, 1, "default of a switch");
	is_str(o.out, "replayshim.data/%h.r%r.%p", "default of a template");
	parse(&o, &s, "REPLAYSHIM_MODE=preserve", "REPLAYSHIM_SNAPSHOT_MAX=3GiB");
	is_u64(o.mode, 3, "mode from the environment");
	is_u64(o.snapshot_max, 3ull << 30, "a size with its unit");
	is_str(o.text[RS_OPT_ID_SNAPSHOT_MAX], "3GiB", "the text as it was written");
	ok(o.from_env[RS_OPT_ID_MODE] && !o.from_env[RS_OPT_ID_VERIFY], "the origin is kept");
	is_u64(s.lines, 0, "nothing to complain about");
	parse(&o, &s, "REPLAYSHIM_SNAPSHOT_MAX=17B", "REPLAYSHIM_STRICT=1");
	is_u64(o.snapshot_max, 17, "bytes");
	is_u64(o.strict, 1, "a switch");
	parse(&o, &s, "REPLAYSHIM_SAMPLE=7", NULL);
	is_u64(o.sample, 7, "a number");
}

static void complaints(void)
{
	static const char *const bad[] = {
		"REPLAYSHIM_SNAPSHOT_MAX=48",
		"REPLAYSHIM_SNAPSHOT_MAX=GiB",
		"REPLAYSHIM_SNAPSHOT_MAX=-1GiB",
		"REPLAYSHIM_SNAPSHOT_MAX=18446744073709551616B",
		"REPLAYSHIM_SNAPSHOT_MAX=99999999999TiB",
		"REPLAYSHIM_MODE=replay",
		"REPLAYSHIM_MODE=",
		"REPLAYSHIM_MODE=off|nop",
		"REPLAYSHIM_QUIET=yes",
		"REPLAYSHIM_SAMPLE=",
		"REPLAYSHIM_SAMPLE=7B",
		"REPLAYSHIM_SAMPLE=4294967296",
	};
	struct rs_options o;
	struct said s;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		is_u64((uint64_t)parse(&o, &s, bad[i], NULL), 1, bad[i]);
		ok(s.lines == 1 && !strncmp(s.text, bad[i], strlen(bad[i])),
		   "the complaint names the variable and the value");
		ok(o.mode == 2 && !o.snapshot_max && !o.quiet, "the default stays");
	}
	parse(&o, &s, "REPLAYSHIM_SNAPSHOTMAX=1GiB", NULL);
	is_str(s.text,
	       "REPLAYSHIM_SNAPSHOTMAX: no such option; did you mean REPLAYSHIM_SNAPSHOT_MAX?\n",
	       "an unknown variable is told, with the nearest name");
	parse(&o, &s, "REPLAYSHIM_ENTIRELY_DIFFERENT_THING=1", NULL);
	is_str(s.text, "REPLAYSHIM_ENTIRELY_DIFFERENT_THING: no such option\n", "or without one");
	parse(&o, &s, "REPLAYSHIM=1", "REPLAYSHIMX_MODE=off");
	is_u64(s.lines, 0, "other names are not ours");
}

static void expect(const char *text, int want, const char *result)
{
	char *env[] = {(char *)"RANK=5", (char *)"LOCAL_RANK=1", (char *)"SLURM_JOB_ID=77",
		       (char *)"WHO=me", NULL};
	struct rs_options_subst subst = {env, 123, 4, "node"};
	char out[32] = "untouched";

	is_u64((uint64_t)rs_options_expand(text, &subst, out, sizeof(out)), (uint64_t)want, text);
	is_str(out, result, "  its text");
}

static void templates(void)
{
	char *slurm[] = {(char *)"SLURM_PROCID=9", NULL}, *junk[] = {(char *)"RANK=x", NULL};

	expect("a/%h.r%r.%p", 0, "a/node.r5.123");
	expect("%l-%j-%n-%%", 0, "1-77-4-%");
	expect("%q{WHO}/x", 0, "me/x");
	expect("%q{NOBODY}", -ENOENT, "");
	expect("%q{WHO", -EINVAL, "");
	expect("%z", -EINVAL, "");
	expect("%", -EINVAL, "");
	expect("", 0, "");
	expect("0123456789012345678901234567890", 0, "0123456789012345678901234567890");
	expect("01234567890123456789012345678901", -ENAMETOOLONG, "");
	is_u64((uint64_t)rs_options_rank(slurm), 9, "rank from Slurm");
	is_u64((uint64_t)rs_options_rank(junk), 0, "a rank that is no number is 0");
	is_str(rs_options_job(NULL), "0", "no job");
}

static void print(void)
{
	struct rs_options o;
	struct said s;

	parse(&o, &s, "REPLAYSHIM_MODE=nop", NULL);
	rs_options_print(&o, report, &s);
	is_u64((uint64_t)s.lines, RS_OPT_COUNT, "every option is printed");
	ok(strstr(s.text, "REPLAYSHIM_MODE=nop (environment)"), "with value and origin");
	ok(strstr(s.text, "REPLAYSHIM_QUIET=0 (default)"), "also defaults");
}

int main(void)
{
	values();
	complaints();
	templates();
	print();
	return tap_done();
}
