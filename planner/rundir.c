/* SPDX-License-Identifier: MIT */
/*
 * Finding process directories and reading their files line by line; the lines go to run.c.
 * Callers: report, records, audit. Single-threaded, no locks.
 */
#include "planner/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const file_names[] = {"events.jsonl", "records.jsonl"};

struct paths {
	char **v;
	size_t n;
};

static char *join(const char *dir, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : path;
}

static int is_process_dir(const char *dir)
{
	int found = 0;

	for (size_t i = 0; i < 2 && !found; i++) {
		struct stat st;
		char *path = join(dir, file_names[i]);

		found = path && !stat(path, &st) && S_ISREG(st.st_mode);
		free(path);
	}
	return found;
}

static int add_path(struct paths *paths, const char *dir)
{
	char **v = realloc(paths->v, (paths->n + 1) * sizeof(*v));

	if (!v)
		return -ENOMEM;
	paths->v = v;
	v[paths->n] = strdup(dir);
	if (!v[paths->n])
		return -ENOMEM;
	paths->n++;
	return 0;
}

static int search(struct paths *paths, const char *dir, int depth)
{
	struct dirent *entry;
	DIR *d;
	int r = 0;

	if (is_process_dir(dir))
		return add_path(paths, dir);
	d = opendir(dir);
	if (!d)
		return -errno;
	while (depth && !r && (entry = readdir(d))) {
		struct stat st;
		char *path;

		if (entry->d_name[0] == '.')
			continue;
		path = join(dir, entry->d_name);
		if (!path)
			r = -ENOMEM;
		else if (!stat(path, &st) && S_ISDIR(st.st_mode))
			r = search(paths, path, depth - 1);
		free(path);
		/* Someone else's directory between ours is not our business, nor one that has just been removed. */
		if (r == -EACCES || r == -ENOENT)
			r = 0;
	}
	closedir(d);
	return r;
}

int rs_rundir_list(const char *dir, char ***ret_paths, size_t *ret_n)
{
	struct paths paths = {0};
	int r = search(&paths, dir, 2);

	if (r) {
		for (size_t i = 0; i < paths.n; i++)
			free(paths.v[i]);
		free(paths.v);
		return r;
	}
	*ret_paths = paths.v;
	*ret_n = paths.n;
	return 0;
}

/*
 * A file that is not there has no lines: a process killed early may have written only one. Of one that cannot be read
 * nobody knows, and the others can.
 */
static void read_file(struct rs_run *run, enum rs_run_file file, rs_replay_fn *fn, void *ctx)
{
	char *path = join(run->path, file_names[file]), *line = NULL;
	uint64_t lineno = 0;
	size_t size = 0;
	struct stat st;
	ssize_t n;
	FILE *f;

	errno = ENOMEM;
	f = path ? fopen(path, "re") : NULL;
	if (!f && errno != ENOENT)
		rs_run_unreadable(run, file, errno);
	free(path);
	if (!f)
		return;
	if (!fstat(fileno(f), &st) &&
	    (st.st_mtim.tv_sec > run->when.tv_sec ||
	     (st.st_mtim.tv_sec == run->when.tv_sec && st.st_mtim.tv_nsec > run->when.tv_nsec)))
		run->when = st.st_mtim;
	errno = 0;
	while ((n = getline(&line, &size, f)) >= 0) {
		int whole = n > 0 && line[n - 1] == '\n';

		rs_run_feed(run, file, ++lineno, line, n - whole, whole, fn, ctx);
	}
	if (!feof(f))
		rs_run_unreadable(run, file, errno ? errno : EIO);
	free(line);
	fclose(f);
}

static int newest_first(const void *a, const void *b)
{
	const struct rs_run *x = *(struct rs_run *const *)a, *y = *(struct rs_run *const *)b;

	if (x->when.tv_sec != y->when.tv_sec)
		return x->when.tv_sec < y->when.tv_sec ? 1 : -1;
	if (x->when.tv_nsec != y->when.tv_nsec)
		return x->when.tv_nsec < y->when.tv_nsec ? 1 : -1;
	return strcmp(x->path, y->path);
}

static int read_run(const char *path, rs_replay_fn *fn, void *ctx, struct rs_run **ret)
{
	struct rs_run *run = rs_run_create(path);

	if (!run)
		return -ENOMEM;
	read_file(run, RS_RUN_EVENTS, fn, ctx);
	read_file(run, RS_RUN_RECORDS, fn, ctx);
	rs_run_finish(run);
	*ret = run;
	return 0;
}

int rs_rundir_read(const char *dir, rs_replay_fn *fn, void *ctx, struct rs_run ***ret_runs,
		   size_t *ret_n)
{
	struct rs_run **runs;
	size_t npaths, n = 0;
	char **paths;
	int r;

	r = rs_rundir_list(dir, &paths, &npaths);
	if (r)
		return r;
	runs = calloc(npaths + 1, sizeof(*runs));
	if (!runs)
		r = -ENOMEM;
	for (size_t i = 0; i < npaths; i++) {
		if (!r)
			r = read_run(paths[i], fn, ctx, &runs[n]);
		n += !r;
		free(paths[i]);
	}
	free(paths);
	if (!r && !n)
		r = -ENODATA;
	if (r) {
		rs_rundir_free(runs, n);
		return r;
	}
	qsort(runs, n, sizeof(*runs), newest_first);
	*ret_runs = runs;
	*ret_n = n;
	return 0;
}

void rs_rundir_free(struct rs_run **runs, size_t n)
{
	for (size_t i = 0; runs && i < n; i++)
		rs_run_free(runs[i]);
	free(runs);
}
