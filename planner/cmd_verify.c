/* SPDX-License-Identifier: MIT */
/*
 * replayctl verify: runs a command preserved, under a contract if one is given, and judges every replay of its first
 * steps and segments by its record, which compares state at entry, products, and state afterwards.
 *
 * Invariants: nothing goes to stdout, which is the command's. The exit status is the command's, if it failed; else 1
 * unless there was a replay and all were matches under the contract. No locks.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "planner/cmd_job.h"
#include "planner/contract.h"
#include "planner/ctl.h"
#include "planner/fmt.h"

struct row {
	char *path, *segment;
	uint64_t outcome[3], seen[3][3];
	json_t *codes; /* code -> how often */
};

/* Replays by process and segment, in the order in which they were met. */
struct table {
	uint64_t segments, steps; /* at most; 0: all */
	struct row *rows;
	size_t n;
	/* of the process whose records are being read */
	char *path;
	uint64_t step, nsteps;
	size_t first;
	int failed; /* no memory */
};

static void begin_process(struct table *t, const char *path)
{
	if (t->path && !strcmp(t->path, path))
		return;
	free(t->path);
	t->path = strdup(path);
	t->nsteps = 0;
	t->first = t->n;
}

static struct row *row_of(struct table *t, const char *segment)
{
	struct row *v;

	for (size_t i = t->first; i < t->n; i++)
		if (!strcmp(t->rows[i].segment, segment))
			return &t->rows[i];
	if (t->segments && t->n - t->first >= t->segments)
		return NULL;
	v = realloc(t->rows, (t->n + 1) * sizeof(*v));
	if (!v) {
		t->failed = 1;
		return NULL;
	}
	t->rows = v;
	v[t->n] = (struct row){.path = strdup(t->path ? t->path : ""),
			       .segment = strdup(segment),
			       .codes = json_object()};
	if (!v[t->n].path || !v[t->n].segment) {
		t->failed = 1;
		return NULL;
	}
	return &v[t->n++];
}

/* Records come in the order in which replays were finished; a step's may mingle with the next one's. */
static void add(void *ctx, const struct rs_run *run, const struct rs_replay *r)
{
	struct table *t = ctx;
	struct row *row;

	begin_process(t, run->path);
	if (!t->nsteps || r->step > t->step) {
		t->step = r->step;
		t->nsteps++;
	}
	if (t->steps && t->nsteps > t->steps)
		return;
	row = row_of(t, r->segment);
	if (!row)
		return;
	row->outcome[r->outcome]++;
	for (int a = 0; a < 3; a++)
		row->seen[a][r->seen[a]]++;
	for (size_t i = 0; i < json_array_size(r->codes); i++) {
		const char *code = json_string_value(json_array_get(r->codes, i));
		json_int_t n = json_integer_value(json_object_get(row->codes, code));

		json_object_set_new(row->codes, code, json_integer(n + 1));
	}
}

static int is_of(const struct row *row, struct rs_run **runs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(runs[i]->path, row->path))
			return 1;
	return 0;
}

static void print_code(const char *code)
{
	putc(' ', stderr);
	rs_fmt_text(stderr, code);
}

/* What the codes of the table mean, each once. */
static void print_meanings(json_t *codes)
{
	const struct rs_finding_info *info;
	const char *code;
	json_t *count;

	json_object_foreach(codes, code, count)
	{
		info = rs_code_find(code);
		fputs("==rs==", stderr);
		print_code(code);
		if (info)
			fprintf(stderr, " %s: %s. %s\n", rs_severity_name(info->severity),
				info->title, info->action);
		else
			fputs(" a code of another version\n", stderr);
	}
}

/* Returns 1 unless everything matched. */
static int print(const struct table *t, struct rs_run **runs, size_t n, const char *dir)
{
	json_t *met = json_object();
	uint64_t sum[3] = {0};

	fprintf(stderr, "==rs== %-28s %7s %6s %6s %7s  %s\n", "segment", "replays", "match",
		"reject", "diverge", "entry/product/after equal, codes");
	for (size_t i = 0; i < t->n; i++) {
		const struct row *r = &t->rows[i];
		const char *code;
		json_t *count;
		int len;

		if (!is_of(r, runs, n))
			continue;
		fputs("==rs== ", stderr);
		len = rs_fmt_text(stderr, r->segment);
		fprintf(stderr,
			"%*s %7" PRIu64 " %6" PRIu64 " %6" PRIu64 " %7" PRIu64 "  %" PRIu64
			"/%" PRIu64 "/%" PRIu64,
			len < 28 ? 28 - len : 0, "", r->outcome[0] + r->outcome[1] + r->outcome[2],
			r->outcome[0], r->outcome[1], r->outcome[2], r->seen[0][RS_RUN_EQUAL],
			r->seen[1][RS_RUN_EQUAL], r->seen[2][RS_RUN_EQUAL]);
		json_object_foreach(r->codes, code, count)
		{
			print_code(code);
		}
		putc('\n', stderr);
		json_object_update(met, r->codes);
		for (int k = 0; k < 3; k++)
			sum[k] += r->outcome[k];
	}
	print_meanings(met);
	if (json_object_size(met))
		fprintf(stderr, "==rs== which state, and who wrote it: replayctl report %s\n", dir);
	json_decref(met);
	fprintf(stderr,
		"==rs== VERIFY SUMMARY: %" PRIu64 " match, %" PRIu64 " rejection, %" PRIu64
		" divergence\n",
		sum[0], sum[1], sum[2]);
	return !sum[0] || sum[1] || sum[2] || t->failed;
}

/* Was the contract kept to by every process that replayed something? Lines lost are replays not judged. */
static int check_runs(const struct rs_job *job, struct rs_run **runs, size_t n)
{
	int bad = 0;

	for (size_t i = 0; i < n; i++) {
		const json_t *c = runs[i]->contract;
		const char *status = json_string_value(json_object_get(c, "status"));
		const char *text = json_string_value(json_object_get(c, "text"));

		if (c && (!status || strcmp(status, "enforced"))) {
			fprintf(stderr, "==rs== the contract was refused: %s\n", text ? text : "");
			bad = 1;
		} else if (job->contract && !c) {
			fprintf(stderr, "==rs== %s: the contract was not read\n", runs[i]->path);
			bad = 1;
		}
		if (runs[i]->bad_lines || !runs[i]->ended) {
			fprintf(stderr, "==rs== %s: %s\n", runs[i]->path,
				runs[i]->ended ? "some lines could not be read"
					       : "the run ended early");
			bad = 1;
		}
	}
	return bad;
}

static int number(const char *name, uint64_t *ret)
{
	char *end;
	unsigned long n = strtoul(optarg, &end, 10);

	if (!*optarg || *optarg == '-' || *end || !n)
		return rs_ctl_usage("verify", RS_EXIT_TOOL, "%s takes a number from 1", name);
	*ret = n;
	return 0;
}

static int parse(int argc, char **argv, struct rs_job *job, struct table *t)
{
	static const struct option options[] = {{"out", required_argument, NULL, 'o'},
						{"contract", required_argument, NULL, 'c'},
						{"segments", required_argument, NULL, 'n'},
						{"steps", required_argument, NULL, 'k'},
						{NULL, 0, NULL, 0}};
	int opt, status = 0;

	while (!status && (opt = getopt_long(argc, argv, "+o:", options, NULL)) >= 0) {
		if (opt == 'o')
			job->dir = optarg;
		else if (opt == 'c')
			job->contract = optarg;
		else if (opt == 'n')
			status = number("--segments", &t->segments);
		else if (opt == 'k')
			status = number("--steps", &t->steps);
		else
			status = rs_ctl_bad_option("verify", RS_EXIT_TOOL);
	}
	if (status)
		return status;
	if (optind == argc || strcmp(argv[optind - 1], "--"))
		return rs_ctl_usage("verify", RS_EXIT_TOOL, "which command? It goes after --");
	job->command = argv + optind;
	return 0;
}

/* Read here first: a bad contract is said before the command runs. */
static int take_contract(struct rs_job *job, char path[PATH_MAX])
{
	struct rs_contract_why why = {""};
	json_t *contract = NULL;

	if (!job->contract)
		return 0;
	if (rs_contract_read(job->contract, &contract, &why)) {
		fprintf(stderr, "replayctl verify: %s\n", why.text);
		return RS_EXIT_TOOL;
	}
	json_decref(contract);
	if (!realpath(job->contract, path))
		return rs_ctl_usage("verify", RS_EXIT_TOOL, "%s: %s", job->contract,
				    strerror(errno));
	return 0;
}

int rs_cmd_verify(int argc, char **argv)
{
	struct rs_job job = {.name = "verify", .dir = "replayshim.data"};
	struct rs_launch_env env = {.library = job.library, .mode = "preserve", .out = job.out};
	struct rs_job_before before = {0};
	struct rs_run **runs = NULL;
	struct table table = {0};
	char contract[PATH_MAX];
	int status, r, fail;
	size_t n = 0;

	status = parse(argc, argv, &job, &table);
	if (!status)
		status = take_contract(&job, contract);
	if (!status)
		status = rs_job_prepare(&job);
	if (status)
		return status;
	env.contract = job.contract ? contract : NULL;
	env.run = job.run;
	r = rs_job_run(&job, &env, &before, &status);
	if (r)
		return r;
	rs_job_new_runs(&job, &before, add, &table, &runs, &n);
	if (!n)
		fprintf(stderr, "==rs== no data in %s: nothing was verified\n", job.dir_abs);
	fail = check_runs(&job, runs, n);
	fail |= print(&table, runs, n, job.dir);
	rs_rundir_free(runs, n);
	if (WIFEXITED(status) && !WEXITSTATUS(status) && fail)
		return RS_EXIT_FINDINGS;
	return rs_launch_mirror(status);
}
