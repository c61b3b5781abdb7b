/* SPDX-License-Identifier: MIT */
/*
 * See link.h, and planner.c for the invariants.
 *
 * States: none -> asked (connected, HELLO is sent) -> held (the area is mapped). The end of the connection, or a heartbeat
 * that has stopped, leads back to none; what is odd leads to given up.
 */
#include "shim/link.h"

#include "shim/log.h"
#include "shim/shim.h"
#include "shim/spawn.h"
#include "tracker/ownfd.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define SECOND	   1000000000ull
#define SILENT	   (10 * SECOND) /* without a heartbeat, or an answer */
#define FIRST_LOOK (SECOND / 50) /* between tries right after the planner was started */
#define FIRST	   (2 * SECOND)	 /* how long these go on */

enum state { NONE, ASKED, HELD, GIVEN_UP };

static enum state state;
static char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
static struct rs_ownfd sock = RS_OWNFD_NONE;
static struct rs_wire *area;
static uint64_t asked_ns, next_ns, started_ns;
static int may_start, was_held;
static pid_t helper;

/* --- the descriptor ------------------------------------------------------------------------------- */

static void hang_up(uint64_t now)
{
	rs_ownfd_close(&sock);
	if (area)
		munmap(area, sizeof(*area));
	area = NULL;
	state = NONE;
	next_ns = now + (started_ns && now - started_ns < FIRST ? FIRST_LOOK : SECOND);
}

static void give_up(const char *why)
{
	rs_log(RS_LOG_WARN, "planner at %s: %s; the run goes on without it", path, why);
	hang_up(0);
	state = GIVEN_UP;
}

/* --- starting it ----------------------------------------------------------------------------------- */

/* replayctl, seen from the library: where replayctl looks for the library, turned round. */
static int find_ctl(char *out, size_t size)
{
	static const char *const places[] = {"", "../bin/", "../../bin/"};
	const char *slash = strrchr(rs_state.self, '/');

	for (unsigned i = 0; slash && i < sizeof(places) / sizeof(*places); i++) {
		int n = snprintf(out, size, "%.*s%sreplayctl", (int)(slash + 1 - rs_state.self),
				 rs_state.self, places[i]);

		if (n < (int)size && !access(out, X_OK))
			return 1;
	}
	return 0;
}

/* The environment without what would make the planner a program under the library. */
static char **without_ours(void)
{
	static const char *const dropped[] = {
		"LD_PRELOAD=", "LD_AUDIT=", "NVTX_INJECTION64_PATH=", "PYTHONPATH=", "REPLAYSHIM_"};
	size_t n = 0, kept = 0;
	char **env;

	while (environ && environ[n])
		n++;
	env = calloc(n + 1, sizeof(*env));
	for (size_t i = 0; env && i < n; i++) {
		unsigned d = 0;

		while (d < sizeof(dropped) / sizeof(*dropped) &&
		       strncmp(environ[i], dropped[d], strlen(dropped[d])))
			d++;
		if (d == sizeof(dropped) / sizeof(*dropped))
			env[kept++] = environ[i];
	}
	return env;
}

/* Once in a process' life. */
static void start_it(uint64_t now)
{
	char ctl[PATH_MAX], *argv[] = {ctl, "planner", "--detach", "--linger", "60", NULL};
	char **env;
	int r;

	may_start = 0;
	if (!find_ctl(ctl, sizeof(ctl))) {
		rs_log(RS_LOG_WARN, "there is no planner, and no replayctl beside the library or "
				    "in ../bin to start one");
		return;
	}
	env = without_ours();
	r = env ? rs_spawn_orphan(ctl, argv, env, &helper) : -ENOMEM;
	free(env);
	if (r == -EBUSY)
		rs_log(RS_LOG_WARN, "there is no planner, and it would become a child of this "
				    "process: run `replayctl planner --detach` before it");
	else if (r)
		rs_log(RS_LOG_WARN, "%s: cannot be started: %s", ctl, strerror(-r));
	else
		started_ns = now;
}

/* --- asking ---------------------------------------------------------------------------------------- */

static void dial(uint64_t now)
{
	struct rs_wire_request hello = {.ask = RS_WIRE_HELLO, .pid = (uint64_t)getpid()};
	int r = rs_wire_dial(path);

	if (r == -EACCES) {
		give_up("its folder, or who listens there, is not to be trusted");
		return;
	}
	if (r >= 0)
		r = rs_ownfd_adopt(&sock, r);
	if (!r)
		r = rs_wire_ask(rs_ownfd_get(&sock), &hello);
	if (!r) {
		state = ASKED;
		asked_ns = now;
		return;
	}
	hang_up(now);
	if (may_start && (r == -ENOENT || r == -ECONNREFUSED)) {
		start_it(now);
		next_ns = now + (started_ns ? FIRST_LOOK : SECOND);
	}
}

static void take_area(int fd)
{
	const char *why;
	int r = rs_wire_map(fd, &area, &why);

	close(fd);
	if (r) {
		give_up(why);
		return;
	}
	madvise(area, sizeof(*area), MADV_DONTFORK);
	if (!was_held)
		rs_log(RS_LOG_INFO, "planner at %s", path);
	was_held = 1;
	state = HELD;
}

static void listen_for_it(uint64_t now)
{
	struct rs_wire_answer answer;
	int fd, r = rs_wire_answer(rs_ownfd_get(&sock), &answer, &fd);

	if (r == -EAGAIN && now - asked_ns < SILENT)
		return;
	if (r == -EPROTO)
		give_up("its answer makes no sense");
	else if (r)
		hang_up(now);
	else if (answer.error)
		give_up(answer.error < 0 ? strerror(-answer.error) : "it refuses");
	else if (fd < 0)
		give_up("it hands nothing over");
	else
		take_area(fd);
}

/* --- as long as it lives ---------------------------------------------------------------------------- */

static int is_alive(uint64_t now)
{
	uint64_t beat = atomic_load_explicit(&area->heartbeat_ns, memory_order_relaxed);
	char byte;
	ssize_t n = recv(rs_ownfd_get(&sock), &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	if (n >= 0 || (errno != EAGAIN && errno != EINTR))
		return 0;
	if (!beat)
		beat = asked_ns; /* its first one is still to come */
	return beat > now || now - beat < SILENT;
}

int rs_link_start(uint64_t now_ns)
{
	const char *name = rs_state.opt.planner;
	int r = rs_wire_path(name, environ, path, sizeof(path));

	if (r) {
		rs_log(RS_LOG_ERROR, "REPLAYSHIM_PLANNER=%s: %s; the run goes on without a planner",
		       name, strerror(-r));
		return r;
	}
	may_start = !strcmp(name, "auto");
	dial(now_ns);
	return 0;
}

struct rs_wire *rs_link_area(uint64_t now_ns, int *ret_new)
{
	enum state before = state;

	*ret_new = 0;
	if (helper && rs_spawn_reap(helper))
		helper = 0;
	if ((state == ASKED || state == HELD) && rs_ownfd_get(&sock) < 0)
		hang_up(now_ns); /* the program has closed it */
	if (state == NONE && now_ns >= next_ns)
		dial(now_ns);
	if (state == ASKED)
		listen_for_it(now_ns);
	if (state == HELD && !is_alive(now_ns)) {
		rs_log(RS_LOG_INFO, "the planner has ended; the last plan stays in force");
		hang_up(now_ns);
	}
	*ret_new = state == HELD && before != HELD;
	return state == HELD ? area : NULL;
}

int rs_link_is_hoped_for(void)
{
	return state != GIVEN_UP;
}

void rs_link_distrust(const char *why)
{
	if (state != GIVEN_UP)
		give_up(why);
}

void rs_link_child(void)
{
	rs_ownfd_close(&sock);
}
