/* SPDX-License-Identifier: MIT */
/*
 * replayctl planner: be the planner process, or stop the one that is running.
 *
 * With --detach the command returns when the socket listens, so that whoever started it can connect at once; also when
 * another planner won. Exit status 0: there is a planner now (or with --stop: none any more); 2 usage; 3 it cannot be.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "planner/ask.h"
#include "planner/ctl.h"
#include "planner/serve.h"
#include "tracker/options.h"

#define SECOND UINT64_C(1000000000)

extern char **environ;

struct arguments {
	const char *name;
	uint64_t budget, linger;
	int detach, stop, has_linger;
};

static int stop(const char *name)
{
	char *text = NULL;
	int error = 0, r = rs_ask(name, RS_WIRE_STOP, 0, NULL, &text, &error);

	if (r || error)
		fprintf(stderr, "replayctl planner: %s\n", text ? text : strerror(ENOMEM));
	free(text);
	return r || error ? RS_EXIT_UNREADABLE : RS_EXIT_CLEAN;
}

static int is_there(const char *path)
{
	int fd = rs_wire_dial(path);

	if (fd >= 0)
		close(fd);
	return fd >= 0 || (fd != -ENOENT && fd != -ECONNREFUSED && fd != -EAGAIN);
}

/*
 * Whoever has the lock and does not listen has just won an election, or leaves: he listens in a moment, or we are next.
 * -EBUSY: another one serves; -ETIMEDOUT: nobody does, and the lock is not to be had.
 */
static int elect(const char *path, int *ret_lock, int *ret_listen, const char **ret_why)
{
	const struct timespec moment = {.tv_nsec = 10000000};
	int r;

	for (unsigned i = 0; i < 500; i++) {
		r = rs_serve_elect(path, ret_lock, ret_listen, ret_why);
		if (r != -EBUSY || is_there(path))
			return r;
		nanosleep(&moment, NULL);
	}
	*ret_why = "somebody has its lock, and nobody listens";
	return -ETIMEDOUT;
}

static int serve(const struct arguments *a)
{
	struct rs_serve_options o = {.budget = a->budget, .linger_ns = a->linger};
	char path[RS_ASK_PATH];
	int lock, listen, r = rs_wire_path(a->name, environ, path, sizeof(path));
	const char *why = "cannot serve";

	if (r) {
		fprintf(stderr, "replayctl planner: no name for a socket: %s\n",
			r == -EINVAL ? "it has a slash" : "it is too long");
		return RS_EXIT_USAGE;
	}
	o.path = path;
	r = elect(path, &lock, &listen, &why);
	if (r == -EBUSY) {
		fprintf(stderr, "replayctl planner: %s: %s\n", why, path);
		return RS_EXIT_CLEAN;
	}
	if (!r && a->detach)
		r = rs_serve_detach(lock, listen);
	if (!r)
		r = rs_serve_run(&o, lock, listen);
	if (r) {
		fprintf(stderr, "replayctl planner: %s: %s: %s\n", why, path, strerror(-r));
		return RS_EXIT_UNREADABLE;
	}
	return RS_EXIT_CLEAN;
}

static int parse_seconds(const char *text, uint64_t *ret)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || n < 1 || n > 1000000000)
		return -EINVAL;
	*ret = n * SECOND;
	return 0;
}

int rs_cmd_planner(int argc, char **argv)
{
	static const struct option options[] = {
		{"name", required_argument, NULL, 'n'},	  {"budget", required_argument, NULL, 'b'},
		{"linger", required_argument, NULL, 'l'}, {"detach", no_argument, NULL, 'd'},
		{"stop", no_argument, NULL, 's'},	  {0}};
	struct arguments a = {.linger = UINT64_MAX};
	int c;

	while ((c = getopt_long(argc, argv, "+", options, NULL)) >= 0) {
		if (c == 'n')
			a.name = optarg;
		else if (c == 'd')
			a.detach = 1;
		else if (c == 's')
			a.stop = 1;
		else if (c == 'b' && rs_options_size(optarg, &a.budget))
			return rs_ctl_usage("planner", RS_EXIT_USAGE,
					    "a budget is a size with its unit, not '%s'", optarg);
		else if (c == 'l' && (a.has_linger = 1, parse_seconds(optarg, &a.linger)))
			return rs_ctl_usage("planner", RS_EXIT_USAGE,
					    "--linger takes whole seconds from 1, not '%s'",
					    optarg);
		else if (c == '?')
			return rs_ctl_bad_option("planner", RS_EXIT_USAGE);
	}
	if (optind < argc)
		return rs_ctl_usage("planner", RS_EXIT_USAGE, "no argument '%s'", argv[optind]);
	if (a.stop)
		return stop(a.name);
	if (a.detach && !a.has_linger)
		a.linger = 10 * SECOND;
	return serve(&a);
}
