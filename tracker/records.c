/* SPDX-License-Identifier: MIT */
/*
 * Append-only record files and the small JSON writer behind them; see records.h.
 *
 * Invariant: a struct rs_json is always one cut away from valid JSON: a value is appended whole or, when
 * it does not fit beside the closing brackets, left out and `overflow` set.
 */
#include "tracker/records.h"
#include "tracker/ownfd.h"
#include "tracker/quiet.h"
#include "tracker/utf8.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Room kept for closing brackets, an overflow mark and the newline. */
#define RESERVE 64

struct rs_records {
	struct rs_ownfd file[2];
	_Atomic uint64_t lost;
	_Atomic int error;   /* of the first lost line */
	atomic_bool torn[2]; /* the file ends inside a line */
};

static int make_parents(char *path)
{
	char *p;

	for (p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(path, 0700) && errno != EEXIST) {
			*p = '/';
			return -errno;
		}
		*p = '/';
	}
	return mkdir(path, 0700) && errno != EEXIST ? -errno : 0;
}

static int open_file(const char *dir, const char *name, int is_new, struct rs_ownfd *ret)
{
	char path[4096];

	if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	return rs_ownfd_open(ret, path, is_new);
}

int rs_records_open(const char *dir, struct rs_records **ret_records)
{
	char path[4096];
	struct rs_records *r;
	int err;

	if (!*dir || snprintf(path, sizeof(path), "%s", dir) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	err = make_parents(path);
	if (err)
		return err;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	/* The first of the two to be made says whose directory it is. */
	err = open_file(dir, "events.jsonl", 1, &r->file[RS_RECORD_EVENTS]);
	if (err)
		goto fail;
	err = open_file(dir, "records.jsonl", 0, &r->file[RS_RECORD_REPLAYS]);
	if (err) {
		rs_ownfd_close(&r->file[RS_RECORD_EVENTS]);
		goto fail;
	}
	*ret_records = r;
	return 0;
fail:
	free(r);
	return err;
}

void rs_records_close(struct rs_records *r)
{
	if (!r)
		return;
	rs_ownfd_close(&r->file[0]);
	rs_ownfd_close(&r->file[1]);
	free(r);
}

uint64_t rs_records_lost(const struct rs_records *r)
{
	return r ? atomic_load(&((struct rs_records *)r)->lost) : 0;
}

int rs_records_error(const struct rs_records *r)
{
	return r ? -atomic_load(&((struct rs_records *)r)->error) : 0;
}

/* Append text whole, or nothing. */
static int put(struct rs_json *j, const char *text, size_t len)
{
	if (j->skipped || j->len + len + RESERVE > sizeof(j->text)) {
		j->overflow = 1;
		return 0;
	}
	memcpy(j->text + j->len, text, len);
	j->len += len;
	return 1;
}

/* What is no UTF-8 is taken for Latin-1, so that a line is JSON whatever a program calls its things. */
static size_t escape(char *out, size_t room, const char *s)
{
	size_t n = 0, bytes;

	for (; *s && n + 8 < room; s += bytes) {
		unsigned char c = (unsigned char)*s;

		bytes = rs_utf8_sequence(s, strnlen(s, 4));
		if (c == '"' || c == '\\') {
			out[n++] = '\\';
			out[n++] = (char)c;
		} else if (!bytes || c < 0x20 || c == 0x7f) {
			n += (size_t)snprintf(out + n, room - n, "\\u%04x", c);
			bytes = 1;
		} else {
			memcpy(out + n, s, bytes);
			n += bytes;
		}
	}
	return n;
}

/* `,"key":` in front of a value. */
static int put_key(struct rs_json *j, const char *key)
{
	char text[128];
	size_t n = 0;

	if (!(j->depth_first & 1u << j->depth))
		text[n++] = ',';
	if (key) {
		text[n++] = '"';
		n += escape(text + n, sizeof(text) - n - 4, key);
		text[n++] = '"';
		text[n++] = ':';
	}
	return put(j, text, n);
}

static int put_value(struct rs_json *j, const char *key, const char *text, size_t len)
{
	size_t before = j->len;

	if (!put_key(j, key) || !put(j, text, len)) {
		j->len = before;
		return 0;
	}
	j->depth_first &= (uint8_t) ~(1u << j->depth);
	return 1;
}

void rs_json_begin(struct rs_json *j)
{
	j->len = 0;
	j->depth = 0;
	j->skipped = 0;
	j->overflow = 0;
	j->depth_first = 1;
	put(j, "{", 1);
	rs_json_u64(j, "v", 1);
}

void rs_json_str(struct rs_json *j, const char *key, const char *value)
{
	char text[1200];
	size_t n = 0;

	text[n++] = '"';
	n += escape(text + n, sizeof(text) - 2, value ? value : "");
	text[n++] = '"';
	put_value(j, key, text, n);
}

void rs_json_u64(struct rs_json *j, const char *key, uint64_t value)
{
	char text[24];

	put_value(j, key, text,
		  (size_t)snprintf(text, sizeof(text), "%llu", (unsigned long long)value));
}

void rs_json_bool(struct rs_json *j, const char *key, int value)
{
	put_value(j, key, value ? "true" : "false", value ? 4 : 5);
}

void rs_json_hex(struct rs_json *j, const char *key, uint64_t value)
{
	char text[24];

	put_value(j, key, text,
		  (size_t)snprintf(text, sizeof(text), "\"0x%llx\"", (unsigned long long)value));
}

/* Deeper nesting than a byte of flags holds is a caller's mistake: the value is left out. */
void rs_json_open(struct rs_json *j, const char *key, char bracket)
{
	if (j->skipped || j->depth >= 7) {
		j->overflow = 1;
		j->skipped++;
		return;
	}
	if (!put_value(j, key, &bracket, 1)) {
		j->skipped++;
		return;
	}
	j->depth++;
	j->depth_first |= (uint8_t)(1u << j->depth);
}

void rs_json_close(struct rs_json *j, char bracket)
{
	if (j->skipped) {
		j->skipped--;
		return;
	}
	if (!j->depth)
		return;
	j->text[j->len++] = bracket; /* RESERVE holds room for every open bracket */
	j->depth--;
}

/* A line that was cut short (the disk was full for a while) must not take the next one with it. */
static ssize_t write_line(struct rs_records *r, enum rs_record_file file, const char *text,
			  size_t len)
{
	int fd = rs_ownfd_get(&r->file[file]);

	if (fd < 0)
		return -1;
	if (atomic_load(&r->torn[file])) {
		if (rs_quiet_write(fd, "\n", 1) != 1)
			return -1;
		atomic_store(&r->torn[file], 0);
	}
	return rs_quiet_write(fd, text, len);
}

void rs_records_write(struct rs_records *r, enum rs_record_file file, struct rs_json *j)
{
	static const char cut[] = ",\"cut\":true";
	ssize_t done;
	int saved = errno, none = 0;

	if (j->overflow && !j->depth) {
		memcpy(j->text + j->len, cut, sizeof(cut) - 1);
		j->len += sizeof(cut) - 1;
	}
	memcpy(j->text + j->len, "}\n", 2);
	j->len += 2;
	done = write_line(r, file, j->text, j->len);
	if (done != (ssize_t)j->len) {
		atomic_compare_exchange_strong(&r->error, &none, done < 0 ? errno : ENOSPC);
		if (done > 0)
			atomic_store(&r->torn[file], 1);
		atomic_fetch_add(&r->lost, 1);
	}
	errno = saved;
}
