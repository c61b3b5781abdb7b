/* SPDX-License-Identifier: MIT */
/*
 * See cmd_job.h. Nothing is written to stdout, which is the command's. No locks.
 */
#include "planner/cmd_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "planner/ctl.h"

/*
 * REPLAYSHIM_OUT: DIR made absolute, because the command may change its directory, then one
 * directory for each process. A % in DIR is doubled, as the template wants it.
 */
static int make_template(struct rs_job *job)
{
	static const char tail[] = "/%h.r%r.%p";
	char cwd[PATH_MAX];
	size_t n = 0;

	if (!job->dir[0])
		return -ENOENT;
	if (job->dir[0] == '/')
		cwd[0] = 0;
	else if (!getcwd(cwd, sizeof(cwd)))
		return -errno;
	if (snprintf(job->dir_abs, sizeof(job->dir_abs), "%s%s%s", cwd, cwd[0] ? "/" : "",
		     job->dir) >= PATH_MAX)
		return -ENAMETOOLONG;
	for (const char *p = job->dir_abs; *p; p++) {
		if (n + 2 + sizeof(tail) > sizeof(job->out))
			return -ENAMETOOLONG;
		if (*p == '%')
			job->out[n++] = '%';
		job->out[n++] = *p;
	}
	strcpy(job->out + n, tail);
	return 0;
}

int rs_job_prepare(struct rs_job *job)
{
	int r = rs_launch_library(job->library, sizeof(job->library));
	struct timespec now;

	if (r)
		return rs_ctl_usage(job->name, RS_EXIT_TOOL,
				    "libreplayshim.so is neither beside replayctl nor in ../lib "
				    "(%s); REPLAYSHIM_LIB names it",
				    strerror(-r));
	/* The loader splits LD_PRELOAD at both, and has no quoting. */
	if (strpbrk(job->library, ": "))
		return rs_ctl_usage(job->name, RS_EXIT_TOOL,
				    "a path with a blank or a colon cannot be preloaded: %s",
				    job->library);
	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(job->run, sizeof(job->run), "%ld.%lld%09ld", (long)getpid(), (long long)now.tv_sec,
		 now.tv_nsec);
	r = make_template(job);
	if (r)
		return rs_ctl_usage(job->name, RS_EXIT_TOOL, "%s: %s", job->dir, strerror(-r));
	return 0;
}

int rs_job_cannot_exec(const struct rs_job *job, int error)
{
	fprintf(stderr, "replayctl %s: %s: %s\n", job->name, job->command[0], strerror(error));
	return error == ENOENT ? RS_EXIT_NOT_FOUND : RS_EXIT_CANNOT_EXEC;
}

static void look(const char *dir, struct stat st[2])
{
	static const char *const names[] = {"events.jsonl", "records.jsonl"};
	char path[PATH_MAX + 16];

	memset(st, 0, 2 * sizeof(*st));
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		if (stat(path, &st[i]))
			memset(&st[i], 0, sizeof(st[i]));
	}
}

static void remember(const char *dir, struct rs_job_before *b)
{
	if (rs_rundir_list(dir, &b->paths, &b->n))
		return;
	b->stats = calloc(2 * b->n + 1, sizeof(*b->stats));
	for (size_t i = 0; b->stats && i < b->n; i++)
		look(b->paths[i], &b->stats[2 * i]);
}

int rs_job_run(const struct rs_job *job, const struct rs_launch_env *env, struct rs_job_before *b,
	       int *ret_status)
{
	pid_t pid;
	int r;

	remember(job->dir_abs, b);
	r = rs_launch_spawn(job->command, env, &pid);
	if (r)
		return rs_job_cannot_exec(job, -r);
	r = rs_launch_wait(pid, ret_status);
	if (!r)
		return 0;
	fprintf(stderr, "replayctl %s: waiting failed: %s\n", job->name, strerror(-r));
	return RS_EXIT_TOOL;
}

static int is_old(const struct rs_job_before *b, const char *path)
{
	struct stat now[2];

	for (size_t i = 0; b->stats && i < b->n; i++) {
		const struct stat *was = &b->stats[2 * i];

		if (strcmp(b->paths[i], path))
			continue;
		look(path, now);
		return now[0].st_size == was[0].st_size && now[1].st_size == was[1].st_size &&
		       now[0].st_ino == was[0].st_ino && now[1].st_ino == was[1].st_ino;
	}
	return 0;
}

/* It says so itself; what says nothing is taken for ours. */
static int is_of_another(const struct rs_job *job, const struct rs_run *run)
{
	const json_t *opts = json_object_get(run->begin, "opts");
	const char *name =
		json_string_value(json_object_get(json_object_get(opts, "RUN"), "value"));

	return name && *name && strcmp(name, job->run) != 0;
}

int rs_job_new_runs(const struct rs_job *job, const struct rs_job_before *b, rs_replay_fn *fn,
		    void *ctx, struct rs_run ***ret_runs, size_t *ret_n)
{
	struct rs_run **runs = NULL;
	size_t n = 0, kept = 0;
	int r = rs_rundir_read(job->dir_abs, fn, ctx, &runs, &n);

	if (r && r != -ENOENT && r != -ENODATA)
		fprintf(stderr, "==rs== %s: %s\n", job->dir_abs, strerror(-r));
	for (size_t i = 0; i < n; i++) {
		if (is_old(b, runs[i]->path) || is_of_another(job, runs[i]))
			rs_run_free(runs[i]);
		else
			runs[kept++] = runs[i];
	}
	*ret_runs = runs;
	*ret_n = kept;
	return r;
}
