/* SPDX-License-Identifier: MIT */
/*
 * Test Anything Protocol for C tests, run by prove(1).
 *
 * A test calls ok()/is_u64()/... and returns tap_done() from main. With no test run, or with one
 * failed, the exit status is 1. tap_skip_all() is for what a machine cannot do (no nvcc, no GPU).
 * Not thread safe: report from one thread.
 */
#ifndef RS_TESTS_TAP_H
#define RS_TESTS_TAP_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int tap_count, tap_failed;

__attribute__((format(printf, 4, 5), unused)) static int tap_ok(int pass, const char *file,
								int line, const char *fmt, ...)
{
	va_list ap;

	printf("%sok %d - ", pass ? "" : "not ", ++tap_count);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	if (!pass) {
		tap_failed++;
		printf("#   failed at %s:%d\n", file, line);
	}
	fflush(stdout);
	return pass;
}

__attribute__((format(printf, 1, 2), unused)) static void tap_diag(const char *fmt, ...)
{
	va_list ap;

	fputs("# ", stdout);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

__attribute__((unused)) static int tap_is_u64(uint64_t got, uint64_t want, const char *file,
					      int line, const char *what)
{
	if (!tap_ok(got == want, file, line, "%s", what))
		tap_diag("  got 0x%" PRIx64 " (%" PRIu64 "), want 0x%" PRIx64 " (%" PRIu64 ")", got,
			 got, want, want);
	return got == want;
}

__attribute__((unused)) static int tap_is_str(const char *got, const char *want, const char *file,
					      int line, const char *what)
{
	int pass = got && want ? !strcmp(got, want) : got == want;

	if (!tap_ok(pass, file, line, "%s", what))
		tap_diag("  got \"%s\", want \"%s\"", got ? got : "(null)", want ? want : "(null)");
	return pass;
}

__attribute__((unused)) static int tap_done(void)
{
	printf("1..%d\n", tap_count);
	fflush(stdout);
	return tap_failed || !tap_count;
}

__attribute__((unused, noreturn)) static void tap_skip_all(const char *why)
{
	printf("1..0 # SKIP %s\n", why);
	exit(0);
}

#define ok(cond, ...)		tap_ok(!!(cond), __FILE__, __LINE__, __VA_ARGS__)
#define is_u64(got, want, what) tap_is_u64(got, want, __FILE__, __LINE__, what)
#define is_str(got, want, what) tap_is_str(got, want, __FILE__, __LINE__, what)

#endif
