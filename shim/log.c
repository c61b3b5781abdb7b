/* SPDX-License-Identifier: MIT */
/*
 * See log.h. Callers: everywhere in shim/. No locks.
 */
#include "shim/log.h"
#include "tracker/ownfd.h"
#include "tracker/quiet.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

static struct rs_ownfd log_file = RS_OWNFD_NONE;
static int to_file, log_level = RS_LOG_WARN, log_rank;
static int
	no_stderr; /* the program was started without one: whatever becomes number 2 is its own */
static unsigned log_lines;

struct out {
	char text[1024];
	size_t len;
};

static void put(struct out *o, char c)
{
	/* One place stays free for the newline. */
	if (o->len < sizeof(o->text) - 1)
		o->text[o->len++] = c;
}

static void put_str(struct out *o, const char *s)
{
	for (s = s ? s : "(null)"; *s; s++)
		put(o, *s);
}

static void put_number(struct out *o, unsigned long v, unsigned base)
{
	char digits[24];
	int n = 0;

	do {
		digits[n++] = "0123456789abcdef"[v % base];
		v /= base;
	} while (v);
	while (n)
		put(o, digits[--n]);
}

static void put_int(struct out *o, int v)
{
	if (v < 0)
		put(o, '-');
	put_number(o, v < 0 ? 0ul - (unsigned long)v : (unsigned long)v, 10);
}

static void format(struct out *o, const char *fmt, va_list ap)
{
	for (; *fmt; fmt++) {
		int is_long = 0;

		if (*fmt != '%') {
			put(o, *fmt);
			continue;
		}
		if (*++fmt == 'l') {
			is_long = 1;
			fmt++;
		}
		switch (*fmt) {
		case 's':
			put_str(o, va_arg(ap, const char *));
			break;
		case 'c':
			put(o, (char)va_arg(ap, int));
			break;
		case 'd':
			put_int(o, va_arg(ap, int));
			break;
		case 'u':
		case 'x':
			put_number(o, is_long ? va_arg(ap, unsigned long) : va_arg(ap, unsigned),
				   *fmt == 'x' ? 16 : 10);
			break;
		case '\0':
			return;
		default:
			put(o, *fmt);
		}
	}
}

static void begin(struct out *o)
{
	o->len = 0;
	put_str(o, "==rs r");
	put_int(o, log_rank);
	put_str(o, "== ");
}

static void flush(struct out *o)
{
	int fd = to_file ? rs_ownfd_get(&log_file) : no_stderr ? -1 : STDERR_FILENO;

	o->text[o->len++] = '\n';
	/* A message that cannot be delivered has nobody to be told about. */
	if (fd >= 0)
		(void)rs_quiet_write(fd, o->text, o->len);
}

void rs_log_loaded(void)
{
	no_stderr = fcntl(STDERR_FILENO, F_GETFD) < 0;
}

int rs_log_setup(const char *file, enum rs_log_level level, int rank)
{
	int r = file ? rs_ownfd_open(&log_file, file, 0) : 0;

	to_file = file && !r;
	log_level = level;
	log_rank = rank;
	return r;
}

void rs_log(enum rs_log_level level, const char *fmt, ...)
{
	int saved = errno;
	struct out o;
	unsigned n;
	va_list ap;

	if ((int)level > log_level)
		return;
	n = __atomic_fetch_add(&log_lines, 1, __ATOMIC_RELAXED);
	if (n > RS_LOG_MAX)
		return;
	begin(&o);
	if (n == RS_LOG_MAX) {
		put_str(&o, "no more messages from here on");
	} else {
		if (level <= RS_LOG_WARN)
			put_str(&o, level == RS_LOG_ERROR ? "error: " : "warning: ");
		va_start(ap, fmt);
		format(&o, fmt, ap);
		va_end(ap);
	}
	flush(&o);
	errno = saved;
}

void rs_log_say(const char *fmt, ...)
{
	int saved = errno;
	struct out o;
	va_list ap;

	begin(&o);
	va_start(ap, fmt);
	format(&o, fmt, ap);
	va_end(ap);
	flush(&o);
	errno = saved;
}
