/* SPDX-License-Identifier: MIT */
/*
 * replayctl top: the status of all programs, each second. On a terminal the screen is redrawn and q quits; elsewhere one
 * table follows the other. The programs are never touched: all comes from the planner process.
 *
 * The terminal's settings are put back on the way out, also when a signal ends the command.
 */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "planner/ask.h"
#include "planner/ctl.h"

#define CLEAR "\x1b[H\x1b[J"

static struct termios before;
static volatile sig_atomic_t ended;

static void on_signal(int sig)
{
	(void)sig;
	ended = 1;
}

/* Keys come one by one and unseen. */
static int take_terminal(void)
{
	struct sigaction end = {.sa_handler = on_signal};
	struct termios raw;

	if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &before))
		return 0;
	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGHUP, &end, NULL);
	raw = before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	return !tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

/* A second goes by, or somebody wants to leave. */
static int is_over(int terminal)
{
	struct pollfd key = {.fd = terminal ? STDIN_FILENO : -1, .events = POLLIN};
	char c = 0;
	int n = poll(&key, 1, 1000);

	if (n > 0 && read(STDIN_FILENO, &c, 1) <= 0)
		return 1;
	return ended || c == 'q' || c == 'Q';
}

static int show(const char *name, int clear)
{
	json_t *status = rs_ask_status("top", name);

	if (!status)
		return RS_EXIT_UNREADABLE;
	if (clear)
		fputs(CLEAR, stdout);
	rs_status_print(stdout, status);
	if (clear)
		fputs("\nq quits\n", stdout);
	json_decref(status);
	return fflush(stdout) ? RS_EXIT_UNREADABLE : RS_EXIT_CLEAN;
}

int rs_cmd_top(int argc, char **argv)
{
	static const struct option options[] = {
		{"name", required_argument, NULL, 'n'}, {"once", no_argument, NULL, 'o'}, {0}};
	const char *name = NULL;
	int once = 0, terminal = 0, c, r;

	while ((c = getopt_long(argc, argv, "+", options, NULL)) >= 0) {
		if (c == 'n')
			name = optarg;
		else if (c == 'o')
			once = 1;
		else
			return rs_ctl_bad_option("top", RS_EXIT_USAGE);
	}
	if (optind < argc)
		return rs_ctl_usage("top", RS_EXIT_USAGE, "no argument '%s'", argv[optind]);
	if (!once)
		terminal = take_terminal();
	do
		r = show(name, terminal);
	while (!r && !once && !is_over(terminal));
	if (terminal)
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
	return r;
}
