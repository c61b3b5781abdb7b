/* SPDX-License-Identifier: MIT */
/* Numbers with units and safe text; see fmt.h. No state, no locks. */
#include "planner/fmt.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/utf8.h"

const char *rs_fmt_count(struct rs_fmt *f, uint64_t n)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, n), out = 0;

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			f->text[out++] = ',';
		f->text[out++] = digits[i];
	}
	f->text[out] = 0;
	return f->text;
}

const char *rs_fmt_bytes(struct rs_fmt *f, uint64_t n)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = n;
	int unit = -1;

	if (n < 1024) {
		snprintf(f->text, sizeof(f->text), "%" PRIu64 " B", n);
		return f->text;
	}
	while (value >= 1024 && unit < 5) {
		value /= 1024;
		unit++;
	}
	snprintf(f->text, sizeof(f->text), value < 10 ? "%.2f %s" : "%.1f %s", value, units[unit]);
	return f->text;
}

const char *rs_fmt_ns(struct rs_fmt *f, uint64_t ns)
{
	if (ns < 1000)
		snprintf(f->text, sizeof(f->text), "%" PRIu64 " ns", ns);
	else if (ns < 1000000)
		snprintf(f->text, sizeof(f->text), "%.1f us", ns / 1e3);
	else if (ns < 1000000000)
		snprintf(f->text, sizeof(f->text), "%.1f ms", ns / 1e6);
	else
		snprintf(f->text, sizeof(f->text), "%.1f s", ns / 1e9);
	return f->text;
}

const char *rs_fmt_plural(struct rs_fmt *f, uint64_t n, const char *word)
{
	struct rs_fmt number;

	snprintf(f->text, sizeof(f->text), "%s %s%s", rs_fmt_count(&number, n), word,
		 n == 1 ? "" : "s");
	return f->text;
}

int rs_fmt_text(FILE *out, const char *text)
{
	int width = 0;

	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		/* C0 and DEL; C1 controls are 0xc2 0x80..0x9f in UTF-8. */
		if (*p < 0x20 || *p == 0x7f) {
			width += fprintf(out, "\\x%02x", *p);
		} else if (*p == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0) {
			width += fprintf(out, "\\x%02x", *++p);
		} else {
			putc(*p, out);
			width += (*p & 0xc0) != 0x80;
		}
	}
	return width;
}

json_t *rs_fmt_json(const char *text)
{
	size_t left = strlen(text), n = 0, bytes;
	char *copy = malloc(2 * left + 1);
	json_t *o;

	for (; copy && left; text += bytes, left -= bytes) {
		unsigned char c = (unsigned char)*text;

		bytes = rs_utf8_sequence(text, left);
		memcpy(copy + n, text, bytes);
		n += bytes;
		if (bytes)
			continue;
		copy[n++] = (char)(0xc0 | c >> 6);
		copy[n++] = (char)(0x80 | (c & 0x3f));
		bytes = 1;
	}
	o = copy ? json_stringn(copy, n) : NULL;
	free(copy);
	return o;
}

void rs_fmt_shell(FILE *out, const char *word)
{
	const char *safe =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
	int control = 0;

	if (*word && word[strspn(word, safe)] == 0) {
		fputs(word, out);
		return;
	}
	for (const unsigned char *p = (const unsigned char *)word; *p; p++)
		control |= *p < 0x20 || *p == 0x7f || (*p == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0);
	/* $'...' is the form that carries control characters without sending them. */
	fputs(control ? "$'" : "'", out);
	for (const unsigned char *p = (const unsigned char *)word; *p; p++) {
		if (control && (*p < 0x20 || *p == 0x7f || *p >= 0x80))
			fprintf(out, "\\x%02x", *p);
		else if (control && (*p == '\'' || *p == '\\'))
			fprintf(out, "\\%c", *p);
		else if (*p == '\'')
			fputs("'\\''", out);
		else
			putc(*p, out);
	}
	putc('\'', out);
}

void rs_fmt_argv(FILE *out, const json_t *argv)
{
	for (size_t i = 0; i < json_array_size(argv); i++) {
		if (i)
			putc(' ', out);
		rs_fmt_shell(out, json_string_value(json_array_get(argv, i)));
	}
}
