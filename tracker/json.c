/* SPDX-License-Identifier: MIT */
/*
 * See json.h. `expects` is a state of the grammar; the stack of brackets is a word of bits.
 * Callers: contract.c, planfile.c. No locks.
 */
#include "tracker/json.h"
#include "tracker/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum expects {
	E_VALUE,	 /* anywhere a value must stand */
	E_FIRST_ELEMENT, /* or the end of an empty array */
	E_FIRST_KEY,	 /* or the end of an empty object */
	E_COMMA,	 /* or the end of what is open */
	E_END,
};

void rs_jread_begin(struct rs_jread *r, char *text, size_t len)
{
	memset(r, 0, sizeof(*r));
	r->text = text;
	r->len = len;
	r->lines = 1;
	r->expects = E_VALUE;
	r->line = r->column = 1;
}

static enum rs_jtok fail(struct rs_jread *r, const char *why)
{
	if (!r->error)
		r->error = why;
	return r->tok = RS_J_ERROR;
}

int rs_jread_fail(struct rs_jread *r, const char *why)
{
	fail(r, why);
	return -EINVAL;
}

/* An error at the present byte rather than where the token began. */
static enum rs_jtok fail_here(struct rs_jread *r, const char *why)
{
	r->line = r->lines;
	r->column = (unsigned)(r->pos - r->line_at + 1);
	return fail(r, why);
}

static void blanks(struct rs_jread *r)
{
	for (; r->pos < r->len; r->pos++) {
		char c = r->text[r->pos];

		if (c == '\n') {
			r->lines++;
			r->line_at = r->pos + 1;
		} else if (c != ' ' && c != '\t' && c != '\r') {
			break;
		}
	}
	r->line = r->lines;
	r->column = (unsigned)(r->pos - r->line_at + 1);
}

/* --- strings ---------------------------------------------------------------------------------- */

/* Length of the UTF-8 sequence at pos, 0 if it is none. */
static size_t sequence(const struct rs_jread *r)
{
	return rs_utf8_sequence(r->text + r->pos, r->len - r->pos);
}

/* Four hex digits at pos; -1: they are none. */
static int32_t four_digits(struct rs_jread *r)
{
	int32_t v = 0;

	if (r->len - r->pos < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		char c = r->text[r->pos++];

		if (c >= '0' && c <= '9')
			v = v * 16 + c - '0';
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			v = v * 16 + (c | 32) - 'a' + 10;
		else
			return -1;
	}
	return v;
}

static size_t encode(char *out, uint32_t c)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* After the backslash: its bytes into out. 0: an error has been noted. */
static size_t escape(struct rs_jread *r, char out[4])
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at;
	int32_t c, low;

	if (r->pos >= r->len)
		return fail_here(r, "the string does not end"), 0;
	if (r->text[r->pos] != 'u') {
		at = r->text[r->pos] ? strchr(from, r->text[r->pos]) : NULL;
		if (!at)
			return fail_here(r, "no such escape"), 0;
		r->pos++;
		out[0] = to[at - from];
		return 1;
	}
	r->pos++;
	c = four_digits(r);
	if (c < 0)
		return fail_here(r, "\\u needs four hex digits"), 0;
	if (c >= 0xd800 && c < 0xdc00 && r->len - r->pos >= 6 && r->text[r->pos] == '\\' &&
	    r->text[r->pos + 1] == 'u') {
		r->pos += 2;
		low = four_digits(r);
		if (low >= 0xdc00 && low < 0xe000)
			return encode(out, 0x10000u + ((uint32_t)(c - 0xd800) << 10) +
						   (uint32_t)(low - 0xdc00));
	}
	if (c >= 0xd800 && c < 0xe000)
		return fail_here(r, "half of a surrogate pair"), 0;
	if (!c)
		return fail_here(r, "a zero byte in a string"), 0;
	return encode(out, (uint32_t)c);
}

/* At the opening quote. What is decoded never takes more room than what it was written as. */
static int string(struct rs_jread *r)
{
	size_t begin = ++r->pos, out = begin, n;
	char bytes[4];

	for (;;) {
		unsigned char c;

		if (r->pos >= r->len)
			return fail(r, "the string does not end"), -EINVAL;
		c = (unsigned char)r->text[r->pos];
		if (c == '"')
			break;
		if (c < 0x20)
			return fail_here(r, "a control character in a string"), -EINVAL;
		if (c == '\\') {
			r->pos++;
			n = escape(r, bytes);
			if (!n)
				return -EINVAL;
			if (!r->keep)
				memcpy(r->text + out, bytes, n);
		} else {
			n = sequence(r);
			if (!n)
				return fail_here(r, "not UTF-8"), -EINVAL;
			if (!r->keep)
				memmove(r->text + out, r->text + r->pos, n);
			r->pos += n;
		}
		out += n;
	}
	r->str = r->text + begin;
	r->str_len = (r->keep ? r->pos : out) - begin;
	if (!r->keep)
		r->text[out] = '\0';
	r->pos++;
	return 0;
}

/* --- other scalars ---------------------------------------------------------------------------- */

static int is_digit(const struct rs_jread *r)
{
	return r->pos < r->len && r->text[r->pos] >= '0' && r->text[r->pos] <= '9';
}

static size_t digits(struct rs_jread *r)
{
	size_t n = 0;

	for (; is_digit(r); n++)
		r->pos++;
	return n;
}

static enum rs_jtok number(struct rs_jread *r)
{
	size_t begin, end;
	int real = 0;

	r->negative = r->text[r->pos] == '-';
	r->pos += r->negative;
	begin = r->pos;
	if (!digits(r))
		return fail_here(r, "a number needs a digit here");
	end = r->pos;
	if (r->text[begin] == '0' && end - begin > 1)
		return fail(r, "a number may not begin with 0");
	if (r->pos < r->len && r->text[r->pos] == '.') {
		r->pos++;
		real = 1;
		if (!digits(r))
			return fail_here(r, "a number needs a digit here");
	}
	if (r->pos < r->len && (r->text[r->pos] | 32) == 'e') {
		r->pos++;
		real = 1;
		if (r->pos < r->len && (r->text[r->pos] == '+' || r->text[r->pos] == '-'))
			r->pos++;
		if (!digits(r))
			return fail_here(r, "a number needs a digit here");
	}
	r->number = 0;
	for (size_t i = begin; !real && i < end; i++) {
		unsigned d = (unsigned)(r->text[i] - '0');

		if (r->number > (UINT64_MAX - d) / 10)
			return fail(r, "the number does not fit into 64 bits");
		r->number = r->number * 10 + d;
	}
	if (!real && r->negative && r->number > 1ull << 63)
		return fail(r, "the number does not fit into 64 bits");
	return real ? RS_J_REAL : RS_J_INTEGER;
}

static enum rs_jtok word(struct rs_jread *r, const char *text, enum rs_jtok tok, int value)
{
	size_t n = strlen(text);

	if (r->len - r->pos < n || memcmp(r->text + r->pos, text, n))
		return fail(r, "not a JSON value");
	r->pos += n;
	r->number = (uint64_t)value;
	return tok;
}

/* --- structure -------------------------------------------------------------------------------- */

static int in_object(const struct rs_jread *r)
{
	return r->depth && (r->in_object >> (r->depth - 1) & 1);
}

static enum rs_jtok open_bracket(struct rs_jread *r, int object)
{
	if (r->depth == RS_JREAD_DEPTH)
		return fail(r, "nested too deeply");
	r->pos++;
	r->in_object = (r->in_object & ~(1u << r->depth)) | (uint32_t)object << r->depth;
	r->depth++;
	r->expects = object ? E_FIRST_KEY : E_FIRST_ELEMENT;
	return object ? RS_J_OBJECT : RS_J_ARRAY;
}

static enum rs_jtok close_bracket(struct rs_jread *r)
{
	int object = in_object(r);

	r->pos++;
	r->depth--;
	r->expects = r->depth ? E_COMMA : E_END;
	return object ? RS_J_OBJECT_END : RS_J_ARRAY_END;
}

static enum rs_jtok key(struct rs_jread *r)
{
	unsigned line = r->line, column = r->column;

	if (r->text[r->pos] != '"')
		return fail(r, "a key in quotes is expected here");
	if (string(r))
		return RS_J_ERROR;
	blanks(r);
	if (r->pos >= r->len || r->text[r->pos] != ':')
		return fail(r, "':' is expected here");
	r->pos++;
	r->line = line;
	r->column = column;
	r->expects = E_VALUE;
	return RS_J_KEY;
}

static enum rs_jtok value(struct rs_jread *r)
{
	enum rs_jtok tok;

	switch (r->text[r->pos]) {
	case '{':
	case '[':
		return open_bracket(r, r->text[r->pos] == '{');
	case '"':
		tok = string(r) ? RS_J_ERROR : RS_J_STRING;
		break;
	case 't':
		tok = word(r, "true", RS_J_BOOL, 1);
		break;
	case 'f':
		tok = word(r, "false", RS_J_BOOL, 0);
		break;
	case 'n':
		tok = word(r, "null", RS_J_NULL, 0);
		break;
	default:
		if (r->text[r->pos] != '-' && !is_digit(r))
			return fail(r, "not a JSON value");
		tok = number(r);
	}
	r->expects = r->depth ? E_COMMA : E_END;
	return tok;
}

/* The comma between two members, or the end of what is open. */
static enum rs_jtok after_value(struct rs_jread *r)
{
	char c = r->text[r->pos];

	if (c == (in_object(r) ? '}' : ']'))
		return close_bracket(r);
	if (c != ',')
		return fail(r, in_object(r) ? "',' or '}' is expected here"
					    : "',' or ']' is expected here");
	r->pos++;
	blanks(r);
	if (r->pos >= r->len)
		return fail(r, "the text ends too early");
	return in_object(r) ? key(r) : value(r);
}

static enum rs_jtok next(struct rs_jread *r)
{
	blanks(r);
	if (r->expects == E_END)
		return r->pos < r->len ? fail(r, "more text after the end") : RS_J_END;
	if (r->pos >= r->len)
		return fail(r, "the text ends too early");
	switch (r->expects) {
	case E_FIRST_KEY:
		return r->text[r->pos] == '}' ? close_bracket(r) : key(r);
	case E_FIRST_ELEMENT:
		return r->text[r->pos] == ']' ? close_bracket(r) : value(r);
	case E_COMMA:
		return after_value(r);
	default:
		return value(r);
	}
}

enum rs_jtok rs_jread_next(struct rs_jread *r)
{
	if (r->error)
		return RS_J_ERROR;
	return r->tok = next(r);
}

int rs_jread_skip(struct rs_jread *r)
{
	unsigned depth = r->depth;

	if (r->tok != RS_J_OBJECT && r->tok != RS_J_ARRAY)
		return r->error ? -EINVAL : 0;
	while (r->depth >= depth)
		if (rs_jread_next(r) == RS_J_ERROR)
			return -EINVAL;
	return 0;
}

int rs_jread_is(const struct rs_jread *r, const char *text)
{
	return r->str_len == strlen(text) && !memcmp(r->str, text, r->str_len);
}

static int read_all(int fd, size_t most, char **ret_text, size_t *ret_size)
{
	size_t size = 0;
	struct stat st;
	ssize_t n = 1;
	char *text;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENODEV;
	if (st.st_size > (off_t)most)
		return -EFBIG;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	while (n && size < (size_t)st.st_size) {
		n = read(fd, text + size, (size_t)st.st_size - size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int err = -errno;

			free(text);
			return err;
		}
		size += (size_t)n;
	}
	*ret_text = text;
	*ret_size = size;
	return 0;
}

int rs_jread_file(const char *path, size_t most, char **ret_text, size_t *ret_size)
{
	/* a pipe without a writer must not stop the program */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int err = fd < 0 ? -errno : read_all(fd, most, ret_text, ret_size);

	if (fd >= 0)
		close(fd);
	return err;
}
