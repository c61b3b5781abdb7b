/* SPDX-License-Identifier: MIT */
/*
 * A small training program that does with its process what the library may not expect, for tests/t/shim_strangers.t:
 *
 *	stranger WHAT [NAME]
 *
 * Prints a digest of what it has computed, and what it found in files that are its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/include/replayshim.h"

typedef unsigned long long ptr_t;
extern int cuInit(unsigned), cuDeviceGet(int *, int), cuCtxCreate_v2(void **, unsigned, int);
extern int cuCtxSetCurrent(void *), cuMemAlloc_v2(ptr_t *, size_t),
	cuMemsetD8_v2(ptr_t, unsigned char, size_t);
extern int cuMemcpyDtoD_v2(ptr_t, ptr_t, size_t), cuMemcpyDtoH_v2(void *, ptr_t, size_t),
	cuCtxSynchronize(void);

#define BYTES 4096
#define FILES 8

extern char **environ;
static void *ctx;
static ptr_t state, product;
static const char *name = "block";
static volatile sig_atomic_t ticks;

static void begin(void)
{
	int device;

	if (cuInit(0) || cuDeviceGet(&device, 0) || cuCtxCreate_v2(&ctx, 0, device) ||
	    cuMemAlloc_v2(&state, BYTES) || cuMemAlloc_v2(&product, BYTES) ||
	    cuMemsetD8_v2(state, 1, BYTES)) {
		fprintf(stderr, "stranger: no device\n");
		exit(9);
	}
}

/* One step: a segment that reads state, the state is overwritten, the segment again. */
static void step(int n)
{
	replayshim_step(n);
	replayshim_forward_begin(name, 0);
	cuMemcpyDtoD_v2(product, state, BYTES);
	replayshim_forward_end();
	cuMemsetD8_v2(state, (unsigned char)(n + 2), BYTES);
	replayshim_replay_begin(name, 0);
	cuMemcpyDtoD_v2(product, state, BYTES);
	replayshim_replay_end();
}

static int finish(void)
{
	unsigned char seen[2][BYTES];
	unsigned sum = 0;

	cuCtxSynchronize();
	if (cuMemcpyDtoH_v2(seen[0], state, BYTES) || cuMemcpyDtoH_v2(seen[1], product, BYTES))
		return 8;
	for (int i = 0; i < BYTES; i++)
		sum = sum * 31 + seen[0][i] + 7 * seen[1][i];
	printf("sum %u\n", sum);
	return fflush(stdout) ? 7 : 0;
}

static void steps(int from, int to)
{
	for (int i = from; i < to; i++)
		step(i);
}

/* On pages of the stack that nobody has looked at before. */
static void deep_steps(int level, int from, int to)
{
	volatile char pages[65536];

	pages[0] = pages[sizeof(pages) - 1] = 1;
	if (level)
		deep_steps(level - 1, from, to);
	else
		steps(from, to);
	pages[1] = pages[0];
}

/* Everything from `first` on is closed, and its numbers are taken by files of our own, in which only we may write. */
static void take_numbers(int first, unsigned most)
{
	int fd[FILES], n = 0;
	char path[40];
	struct stat st;

	syscall(SYS_close_range, first, ~0u, 0);
	for (int i = 0; i < FILES; i++) {
		snprintf(path, sizeof(path), "mine.%d", i);
		fd[i] = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	}
	/* High numbers as well. */
	for (unsigned i = 0; i < most; i++)
		if (dup2(fd[0], (int)(40 + i)) < 0)
			break;
	deep_steps(8, 1, 4);
	/* The other side of what the program writes there is compared by the test. */
	for (int i = 0; i < FILES; i++)
		n += !fstat(fd[i], &st) && !st.st_size && S_ISREG(st.st_mode) &&
		     write(fd[i], &path[5], 1) == 1;
	printf("%d of %d files are as they were\n", n, FILES);
}

static void on_alarm(int sig)
{
	(void)sig;
	ticks++;
}

static void alarms(void)
{
	struct sigaction a = {.sa_handler = on_alarm}; /* no SA_RESTART */
	struct itimerval every = {{0, 300}, {0, 300}}, off = {{0, 0}, {0, 0}};

	sigaction(SIGALRM, &a, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	steps(1, 200);
	setitimer(ITIMER_REAL, &off, NULL);
}

static void children(void)
{
	char *argv[] = {"sh", "-c", "exit 3", NULL};
	int status = 0;
	pid_t pid;

	pid = vfork();
	if (!pid) {
		execv("/bin/sh", argv);
		_exit(1);
	}
	waitpid(pid, &status, 0);
	printf("vfork %d\n", WEXITSTATUS(status));
	if (!posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ))
		waitpid(pid, &status, 0);
	printf("spawn %d system %d\n", WEXITSTATUS(status), WEXITSTATUS(system("exit 4")));
	fflush(stdout);
	pid = fork();
	if (!pid)
		exit(5);
	waitpid(pid, &status, 0);
	printf("exit %d", WEXITSTATUS(status));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		step(9); /* no use of the device is right here, and none may hang or crash in us */
		_exit(6);
	}
	waitpid(pid, &status, 0);
	printf(" _exit %d\n", WEXITSTATUS(status));
	fflush(stdout);
	steps(1, 4);
}

static void daemonise(void)
{
	int status = 0, null;
	pid_t pid = fork();

	if (pid) {
		waitpid(pid, &status, 0);
		_exit(WEXITSTATUS(status));
	}
	setsid();
	if (chdir("/"))
		_exit(1);
	syscall(SYS_close_range, 3, ~0u, 0);
	null = open("/dev/null", O_RDWR);
	dup2(null, 0);
	dup2(null, 2);
	begin();
	steps(0, 4);
}

static void *work(void *arg)
{
	cuCtxSetCurrent(ctx);
	steps(4, 8);
	return arg;
}

static void *outlive(void *arg)
{
	pthread_join(*(pthread_t *)arg, NULL); /* main has ended by pthread_exit */
	cuCtxSetCurrent(ctx);
	steps(0, 4);
	exit(finish());
}

static void limit(int what, rlim_t most)
{
	struct rlimit r;

	getrlimit(what, &r);
	r.rlim_cur = most;
	setrlimit(what, &r);
}

/* Nothing more is to be had, for a while. */
static void out_of_memory(void)
{
	static void **all; /* for ever */
	void **p;

	limit(RLIMIT_DATA, 1);
	limit(RLIMIT_AS, 1);
	while ((p = malloc(64))) {
		*p = all;
		all = p;
	}
	name = "starved";
	steps(1, 4);
	name = "block";
	limit(RLIMIT_DATA, RLIM_INFINITY);
	limit(RLIMIT_AS, RLIM_INFINITY);
}

static void end_by(const char *what)
{
	fflush(stdout);
	if (!strcmp(what, "_exit"))
		_exit(finish() + 4);
	if (!strcmp(what, "quick_exit"))
		quick_exit(finish() + 4);
	if (!strcmp(what, "abort")) {
		limit(RLIMIT_CORE, 0);
		abort();
	}
	if (!strcmp(what, "kill"))
		kill(getpid(), SIGKILL);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "plain";
	static pthread_t self;
	pthread_t t;

	if (argc > 2)
		name = argv[2];
	if (!strcmp(what, "daemon")) {
		daemonise();
		return finish();
	}
	if (!strncmp(what, "files=", 6))
		limit(RLIMIT_NOFILE, (rlim_t)atoi(what + 6));
	begin();
	if (!strcmp(what, "outlive")) {
		self = pthread_self();
		pthread_create(&t, NULL, outlive, &self);
		pthread_exit(NULL);
	}
	step(0);
	if (!strcmp(what, "closefrom"))
		take_numbers(3, 0);
	else if (!strcmp(what, "close-all"))
		take_numbers(0, 900);
	else if (!strcmp(what, "chdir") && chdir("/"))
		return 6;
	else if (!strcmp(what, "chroot") && (mkdir("root", 0700) || chroot("root") || chdir("/")))
		return 6;
	else if (!strcmp(what, "alarm"))
		alarms();
	else if (!strcmp(what, "children"))
		children();
	else if (!strcmp(what, "memory"))
		out_of_memory();
	else if (!strcmp(what, "size"))
		limit(RLIMIT_FSIZE, 0);
	else if (!strcmp(what, "exec") && argc > 3 && atoi(argv[3])) {
		argv[3][0]--;
		execv("/proc/self/exe", argv);
	}
	pthread_create(&t, NULL, work, NULL);
	pthread_join(t, NULL);
	end_by(what);
	return finish();
}
