/* SPDX-License-Identifier: MIT */
/*
 * The planner's loop: connections, a look at every program, budgets, plans, heartbeats.
 *
 * Invariants: one thread; nothing it calls waits for somebody else; what a program or a connection does costs it only
 * its own place. A round with programs begins at most 200 ms after the last one. Signals are only let in while poll waits.
 */
#include "planner/serve.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "planner/serve_priv.h"

#define ROUND_NS (RS_SERVE_SECOND / 5)
#define BUSY_NS	 (RS_SERVE_SECOND / 100)

static volatile sig_atomic_t ended;

struct loop {
	struct rs_serve s;
	int listen;
	struct rs_serve_peer *peer[RS_SERVE_PEERS];
	unsigned peers;
	uint64_t alone_ns; /* since when there is no program; 0: there is one */
	int full;	   /* the last connection could not be accepted */
	sigset_t waiting;
};

uint64_t rs_serve_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * RS_SERVE_SECOND + (uint64_t)t.tv_nsec;
}

static void on_signal(int sig)
{
	(void)sig;
	ended = 1;
}

/* SIGXFSZ: a limit on files also limits shared memory; it is an error then, and not our end. */
static void prepare_signals(struct loop *l)
{
	struct sigaction end = {.sa_handler = on_signal}, ignore = {.sa_handler = SIG_IGN};
	sigset_t block;

	sigemptyset(&block);
	sigaddset(&block, SIGTERM);
	sigaddset(&block, SIGINT);
	sigprocmask(SIG_BLOCK, &block, &l->waiting);
	sigdelset(&l->waiting, SIGTERM);
	sigdelset(&l->waiting, SIGINT);
	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGINT, &end, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
	sigaction(SIGXFSZ, &ignore, NULL);
}

/* Two descriptors for each program. */
static void raise_limit(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur >= 1024)
		return;
	files.rlim_cur = files.rlim_max < 1024 ? files.rlim_max : 1024;
	setrlimit(RLIMIT_NOFILE, &files);
}

/* --- connections --------------------------------------------------------------------------------------- */

static void drop(struct loop *l, unsigned i)
{
	rs_serve_peer_free(&l->s, l->peer[i]);
	l->peer[i] = l->peer[--l->peers];
}

/* Make room: whoever has been connected for longest without being a program goes. */
static int drop_oldest(struct loop *l)
{
	unsigned oldest = l->peers;

	for (unsigned i = 0; i < l->peers; i++)
		if (!l->peer[i]->client &&
		    (oldest == l->peers || l->peer[i]->since_ns < l->peer[oldest]->since_ns))
			oldest = i;
	if (oldest == l->peers)
		return 0;
	l->s.peers_dropped++;
	drop(l, oldest);
	return 1;
}

static void accept_all(struct loop *l, uint64_t now)
{
	struct rs_serve_peer *p;
	int fd;

	l->full = 0;
	for (unsigned i = 0; i < RS_SERVE_PEERS; i++) {
		if (l->peers == RS_SERVE_PEERS && !drop_oldest(l))
			return;
		fd = accept4(l->listen, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0) {
			/* It would be the same in the next moment, and the connection waits. */
			l->full = errno != EAGAIN && errno != ECONNABORTED && !drop_oldest(l);
			return;
		}
		p = rs_serve_peer_new(fd, now);
		if (p)
			l->peer[l->peers++] = p;
	}
}

/* --- rounds -------------------------------------------------------------------------------------------- */

static void beat(struct rs_serve *s, uint64_t now)
{
	if (now - s->beat_ns < RS_SERVE_SECOND)
		return;
	s->beat_ns = now;
	for (unsigned i = 0; i < s->clients; i++)
		atomic_store(&s->client[i]->w->heartbeat_ns, now);
}

/* Look at everybody, decide what there is to decide. How long until the next time. */
static uint64_t round_of(struct loop *l)
{
	uint64_t now = rs_serve_now();
	int busy = 0;

	beat(&l->s, now);
	for (unsigned i = 0; i < l->s.clients; i++)
		busy |= rs_serve_hear(l->s.client[i], now);
	rs_serve_budgets(&l->s, now);
	busy |= rs_serve_plan(&l->s, now);
	for (unsigned i = 0; i < l->peers; i++)
		if (rs_serve_peer_late(l->peer[i], now)) {
			l->s.peers_dropped++;
			drop(l, i--);
		}
	return busy ? BUSY_NS : ROUND_NS;
}

static int is_time_to_leave(struct loop *l)
{
	const struct rs_serve_options *o = &l->s.options;
	uint64_t now = rs_serve_now();

	if (l->s.clients)
		l->alone_ns = 0;
	else if (!l->alone_ns)
		l->alone_ns = now;
	return o->linger_ns != UINT64_MAX && l->alone_ns && !l->peers &&
	       now - l->alone_ns >= o->linger_ns;
}

static void wait_and_serve(struct loop *l, uint64_t wait_ns)
{
	struct pollfd poll_fd[1 + 2 * RS_SERVE_PEERS];
	struct timespec wait = {.tv_nsec = (long)wait_ns};
	unsigned n = 1, peers = l->peers;

	poll_fd[0] = (struct pollfd){.fd = l->full ? -1 : l->listen, .events = POLLIN};
	for (unsigned i = 0; i < peers; i++) {
		const struct rs_serve_peer *p = l->peer[i];

		poll_fd[n++] = (struct pollfd){.fd = p->fd, .events = rs_serve_peer_wants(p)};
		poll_fd[n++] =
			(struct pollfd){.fd = p->client ? p->client->pidfd : -1, .events = POLLIN};
	}
	l->full = 0;
	if (ppoll(poll_fd, n, &wait, &l->waiting) <= 0)
		return;
	/* From the last one on: dropping one moves only those behind it. */
	for (unsigned i = peers; i-- > 0;)
		if (poll_fd[2 + 2 * i].revents ||
		    rs_serve_peer_turn(&l->s, l->peer[i], poll_fd[1 + 2 * i].revents))
			drop(l, i);
	if (poll_fd[0].revents)
		accept_all(l, rs_serve_now());
}

int rs_serve_run(const struct rs_serve_options *options, int lock, int listen)
{
	struct loop *l = calloc(1, sizeof(*l));
	uint64_t next = 0, now;
	unsigned programs;

	if (!l)
		return -ENOMEM;
	l->s.options = *options;
	l->s.budget = options->budget;
	l->s.started_ns = rs_serve_now();
	l->listen = listen;
	prepare_signals(l);
	raise_limit();
	while (!ended && !l->s.stop && !is_time_to_leave(l)) {
		now = rs_serve_now();
		programs = l->s.clients;
		wait_and_serve(l, next > now ? next - now : 0);
		/* Whoever has come has something to tell. */
		if (l->s.clients > programs && next > now + BUSY_NS)
			next = now + BUSY_NS;
		if (rs_serve_now() >= next)
			next = rs_serve_now() + round_of(l);
	}
	/* First the name, then the lock: the next planner's socket is not ours to remove. */
	unlink(options->path);
	close(listen);
	close(lock);
	for (unsigned i = 0; i < l->peers; i++)
		rs_serve_peer_left(l->peer[i]);
	while (l->peers)
		drop(l, l->peers - 1);
	free(l);
	return 0;
}
