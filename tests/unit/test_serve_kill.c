/* SPDX-License-Identifier: MIT */
/*
 * Processes that die at any moment: 64 programs, of which one after the other is killed, and a planner that is killed 100
 * times while programs take plans from it. Nobody else notices: no torn plan, nothing waited for, no descriptor left.
 *
 * With arguments it is one program, for tests/t/planner_process.t: SOCKET key=value...; each new plan is a line.
 */
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "planner/ask.h"
#include "tests/tap.h"
#include "tests/unit/serve_client.h"

#define PROGRAMS 64u
#define TAKERS	 8u
#define DEATHS	 100u

static char dir[64], path[100];
static struct sc_seen *seen;

static const struct sc normal = {
	.path = path,
	.rig = {.n = 8, .name = "layer", .ns = 1000000, .step_ns = 10000000},
	.wanted = 160 * MB,
	.pause = 10000,
	.fd = -1};

static void nap(unsigned us)
{
	nanosleep(&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000}, NULL);
}

static pid_t start_planner(void)
{
	struct rs_serve_options o = {.path = path, .linger_ns = UINT64_MAX};
	pid_t pid = fork();
	const char *why;
	int lock, fd;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* The last one's lock is given back when it is quite dead. */
	while (rs_serve_elect(path, &lock, &fd, &why))
		nap(1000);
	_exit(rs_serve_run(&o, lock, fd) ? 1 : 0);
}

static pid_t start_program(struct sc c, unsigned place)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	c.seen = &seen[place];
	for (;;) {
		sc_step(&c);
		nap(c.pause);
	}
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static unsigned count_descriptors(pid_t pid)
{
	char name[40];
	unsigned n = 0;
	DIR *d;

	snprintf(name, sizeof(name), "/proc/%d/fd", (int)pid);
	d = opendir(name);
	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* Without those of a question that was asked a moment ago. */
static unsigned descriptors(pid_t pid)
{
	unsigned least = ~0u, n;

	for (unsigned i = 0; i < 10; i++) {
		nap(20000);
		n = count_descriptors(pid);
		least = n < least ? n : least;
	}
	return least;
}

/* Programs that the planner knows; -1: it does not answer. */
static int programs(void)
{
	json_t *status = rs_ask_status("status", "kill");
	int n = status ? (int)json_array_size(json_object_get(status, "programs")) : -1;

	json_decref(status);
	return n;
}

static int wait_for_programs(int n)
{
	int is = -1;

	for (unsigned i = 0; i < 500 && is != n; i++) {
		nap(20000);
		is = programs();
	}
	return is;
}

static int wait_for(_Atomic uint64_t *word, uint64_t least)
{
	for (unsigned i = 0; i < 2000 && *word < least; i++)
		nap(5000);
	return *word >= least;
}

static void test_programs_die(void)
{
	pid_t planner = start_planner(), pid[PROGRAMS];
	unsigned before, after, rounds = 200, steps = 0;
	uint64_t beats, torn = 0;

	while (programs() != 0)
		nap(5000);
	before = descriptors(planner);
	for (unsigned i = 0; i < PROGRAMS; i++)
		pid[i] = start_program(normal, i);
	is_u64((uint64_t)wait_for_programs(PROGRAMS), PROGRAMS, "64 programs are served");
	beats = seen[0].beats;
	for (unsigned i = 0; i < rounds; i++) {
		unsigned victim = 1 + (unsigned)rand() % (PROGRAMS - 1);

		end(pid[victim]);
		nap((unsigned)rand() % 20000);
		pid[victim] = start_program(normal, victim);
	}
	is_u64((uint64_t)wait_for_programs(PROGRAMS), PROGRAMS, "200 were killed, and others came");
	ok(seen[0].connected == 1 && seen[0].plans >= 1 && wait_for(&seen[0].beats, beats + 2),
	   "the one that was spared has its plan and hears the planner's heart");
	after = descriptors(planner);
	is_u64(after, before + 2 * PROGRAMS, "the planner has two descriptors for each");
	for (unsigned i = 0; i < PROGRAMS; i++)
		end(pid[i]);
	is_u64((uint64_t)wait_for_programs(0), 0, "all are gone");
	is_u64(descriptors(planner), before, "and so are their descriptors");
	for (unsigned i = 0; i < PROGRAMS; i++) {
		torn += seen[i].torn;
		steps += seen[i].steps;
	}
	ok(!torn && steps > PROGRAMS, "no torn plan in %u steps", steps);
	kill(planner, SIGTERM);
	waitpid(planner, NULL, 0);
	ok(access(path, F_OK), "a planner that is told to end takes its socket away");
}

static void test_planner_dies(void)
{
	pid_t planner = start_planner(), pid[TAKERS];
	uint64_t torn = 0, plans = 0, connected = 0, slow = 0, refused = 0, steps = 0;
	uint64_t had[TAKERS] = {0};
	struct sc c = normal;

	memset(seen, 0, PROGRAMS * sizeof(*seen));
	c.pause = 2000;
	for (unsigned i = 0; i < TAKERS; i++) {
		c.rank = i;
		c.job = i < TAKERS / 2 ? 5 : 0;
		pid[i] = start_program(c, i);
	}
	for (unsigned i = 0; i < DEATHS; i++) {
		nap((unsigned)rand() % 120000);
		/* On a slow machine they might not meet one of them. */
		for (unsigned k = 0; i % 4 == 0 && k < TAKERS; k++)
			wait_for(&seen[k].connected, had[k] + 1);
		end(planner);
		for (unsigned k = 0; k < TAKERS; k++)
			had[k] = seen[k].connected;
		planner = start_planner();
	}
	for (unsigned i = 0; i < TAKERS; i++)
		wait_for(&seen[i].connected, 1);
	is_u64((uint64_t)wait_for_programs(TAKERS), TAKERS,
	       "killed 100 times: the programs are with the last planner");
	for (unsigned i = 0; i < TAKERS; i++) {
		uint64_t before = seen[i].plans;

		/* It may have the last one's plan by now. */
		if (!before)
			wait_for(&seen[i].plans, 1);
		wait_for(&seen[i].steps, 101);
		end(pid[i]);
		torn += seen[i].torn;
		plans += seen[i].plans;
		connected += seen[i].connected;
		refused += seen[i].refused;
		steps += seen[i].steps;
		slow += seen[i].slow;
	}
	end(planner);
	ok(!torn, "no torn plan among %" PRIu64, plans);
	ok(plans > TAKERS && connected > DEATHS,
	   "they connected %" PRIu64 " times, and got %" PRIu64 " plans", connected, plans);
	/* What a virtual machine stands still for may be put down to whoever was running. */
	ok(steps > 100 * TAKERS && slow <= steps / 100,
	   "of %" PRIu64 " steps %" PRIu64 " took a tenth of a second of the processor", steps,
	   slow);
	tap_diag("%" PRIu64 " connections ended while they were made", refused);
}

static int number_of(const char *argument, const char *key, uint64_t *ret)
{
	size_t n = strlen(key);

	if (strncmp(argument, key, n) || argument[n] != '=')
		return 0;
	*ret = strtoull(argument + n + 1, NULL, 0);
	return 1;
}

/* One program, until its standard input ends. */
static int be_program(int argc, char **argv)
{
	struct sc c = normal;
	uint64_t last = 0, n = 8, flood = 0, more = 0;
	struct sc_seen *mine = sc_shared(1);

	c.path = argv[1];
	c.seen = mine;
	for (int i = 2; i < argc; i++)
		if (!number_of(argv[i], "wanted", &c.wanted) &&
		    !number_of(argv[i], "job", &c.job) && !number_of(argv[i], "rank", &c.rank) &&
		    !number_of(argv[i], "device", &c.device) &&
		    !number_of(argv[i], "segments", &n) && !number_of(argv[i], "flood", &flood) &&
		    !number_of(argv[i], "more", &more))
			return 2;
	c.rig.n = (unsigned)n;
	c.rig.more = more;
	c.flood = (int)flood;
	for (;;) {
		struct pollfd in = {.fd = 0, .events = POLLIN};
		uint64_t connected = mine->connected;
		char byte;

		sc_step(&c);
		if (mine->connected != connected)
			printf("connected\n");
		if (mine->refused) {
			printf("refused\n");
			mine->refused = 0;
		}
		if (mine->plans != last)
			printf("plan %" PRIu64 " from %" PRIu64 " budget %" PRIu64
			       " decisions %" PRIu64 " infeasible %" PRIu64 " torn %" PRIu64 "\n",
			       mine->generation, mine->from_step, mine->budget, mine->digest,
			       mine->infeasible, mine->torn);
		last = mine->plans;
		fflush(stdout);
		nap(c.pause);
		if (poll(&in, 1, 0) > 0 && read(0, &byte, 1) <= 0)
			return 0;
	}
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return be_program(argc, argv);
	snprintf(dir, sizeof(dir), "/tmp/replayshim-test-XXXXXX");
	if (!mkdtemp(dir))
		return 1;
	setenv("XDG_RUNTIME_DIR", dir, 1);
	snprintf(path, sizeof(path), "%s/replayshim/kill.sock", dir);
	seen = sc_shared(PROGRAMS);
	srand(7);
	test_programs_die();
	test_planner_dies();
	for (const char *const *f = (const char *const[]){"kill.sock", "kill.sock.lock", NULL}; *f;
	     f++) {
		snprintf(path, sizeof(path), "%s/replayshim/%s", dir, *f);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/replayshim", dir);
	rmdir(path);
	rmdir(dir);
	return tap_done();
}
