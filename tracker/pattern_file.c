/* SPDX-License-Identifier: MIT */
/*
 * Files of rules (pattern.h): a line is a rule, "builtin off", or nothing; # begins a comment.
 *
 * Invariants: any byte sequence is accepted; each line is taken whole or reported and left out. One error a line, at the
 * column (in bytes, from 1) of the word that is wrong.
 */
#include "tracker/json.h"
#include "tracker/pattern_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum word { WORD_END, WORD_NAME, WORD_STRING, WORD_BAD };

struct line {
	struct rs_patterns *p;
	unsigned number, limit; /* limit: of rules */
	char *at;		/* the rest of the line, zero-terminated */
	const char *begin;	/* of the line */
	/* of the last word */
	enum word word;
	const char *from, *text; /* text: of a string what it means, else as it stands */
	size_t len;
	/* of the error, if there is one */
	const char *why;
	size_t column;
	char string[RS_ERE_PATTERN + 1];
};

static int bad(struct line *l, const char *from, const char *why)
{
	if (!l->why) {
		l->why = why;
		l->column = (size_t)(from - l->begin) + 1;
	}
	return -EINVAL;
}

/* Where in the line the n-th byte of the string's meaning stands. */
static const char *place(const struct line *l, size_t n)
{
	const char *at = l->from + 1;

	for (; n; n--)
		at += 1 + (at[0] == '\\' && at[1] == '"');
	return at;
}

/* "..." with \" for a quotation mark; every other \ stays, for the pattern. */
static void string(struct line *l)
{
	const char *in = l->at + 1;
	size_t n = 0;

	l->word = WORD_BAD;
	for (; *in && *in != '"'; in++) {
		int pair = in[0] == '\\' && in[1];

		if (n + 2 >= sizeof(l->string)) {
			bad(l, in, "the string is too long");
			return;
		}
		if (pair && in[1] != '"')
			l->string[n++] = *in;
		in += pair;
		l->string[n++] = *in;
	}
	if (!*in) {
		bad(l, l->from, "the string is not closed");
		return;
	}
	l->string[n] = '\0';
	l->text = l->string;
	l->len = n;
	l->at += in + 1 - l->from;
	if (*l->at && !strchr(" \t\r#", *l->at))
		bad(l, l->at, "a blank has to follow");
	else
		l->word = WORD_STRING;
}

static enum word next(struct line *l)
{
	l->at += strspn(l->at, " \t\r");
	l->from = l->at;
	if (!*l->at || *l->at == '#') {
		l->word = WORD_END;
	} else if (*l->at == '"') {
		string(l);
	} else {
		l->word = WORD_NAME;
		l->text = l->at;
		l->len = strcspn(l->at, " \t\r#\"");
		l->at += l->len;
	}
	return l->word;
}

static int is(const struct line *l, const char *word)
{
	return l->word == WORD_NAME && strlen(word) == l->len && !memcmp(word, l->text, l->len);
}

/* The next word has to be a string. */
static int want_string(struct line *l, const char *why)
{
	if (next(l) == WORD_STRING)
		return 0;
	return bad(l, l->from, why);
}

static int domain(struct line *l, struct rs_pattern_domain *d)
{
	next(l);
	if (is(l, "any")) {
		d->any = 1;
		return 0;
	}
	if (is(l, "default"))
		return 0;
	if (l->word != WORD_STRING || !l->len)
		return bad(l, l->from, "a domain is \"NAME\", default or any");
	if (l->len >= sizeof(d->name))
		return bad(l, l->from, "the domain's name is too long");
	memcpy(d->name, l->text, l->len + 1);
	return 0;
}

static int compile(struct line *l, struct rs_ere **ret_ere, char *text)
{
	const char *why;
	size_t at;
	int err = rs_ere_compile(l->text, l->len, ret_ere, &at, &why);

	if (err)
		return bad(l, place(l, at), why);
	if (text)
		memcpy(text, l->text, l->len + 1);
	return 0;
}

/* A condition's pattern: equal ones of one domain are one context. */
static int context(struct line *l, const struct rs_pattern_domain *d, int *ret_context)
{
	struct rs_patterns *p = l->p;
	struct rs_ere *ere;
	unsigned i;

	if (*ret_context >= 0)
		return bad(l, l->from, "said twice");
	if (want_string(l, "a pattern in quotation marks has to follow"))
		return -EINVAL;
	for (i = 0; i < p->ncontexts; i++)
		if (!strcmp(p->context[i].text, l->text) && p->context[i].domain.any == d->any &&
		    !strcmp(p->context[i].domain.name, d->name)) {
			*ret_context = (int)i;
			return 0;
		}
	if (i == RS_PATTERN_CONTEXTS - (l->limit < RS_PATTERN_RULES ? RS_PATTERN_SPARE : 0))
		return bad(l, l->from, "more than 28 different conditions");
	if (compile(l, &ere, p->context[i].text))
		return -EINVAL;
	p->context[i].domain = *d;
	p->context[i].ere = ere;
	p->ncontexts++;
	*ret_context = (int)i;
	return 0;
}

static int template(struct line *l, const struct rs_pattern_rule *r, char *out)
{
	if (out[0])
		return bad(l, l->from, "said twice");
	if (want_string(l, "a text in quotation marks has to follow"))
		return -EINVAL;
	if (!l->len)
		return bad(l, l->from, "an empty text names nothing");
	if (l->len >= RS_PATTERN_TEMPLATE)
		return bad(l, l->from, "the text is too long");
	for (const char *c = l->text; *c; c++) {
		if (*c != '\\')
			continue;
		c++;
		if (*c >= '0' && *c <= '9' && (unsigned)(*c - '0') > rs_ere_groups(r->ere))
			return bad(l, place(l, (size_t)(c - l->text)),
				   "the pattern has no such group");
		if (*c != '\\' && (*c < '0' || *c > '9'))
			return bad(l, place(l, (size_t)(c - l->text)),
				   "\\0 to \\9 are groups, \\\\ is the character");
	}
	memcpy(out, l->text, l->len + 1);
	return 0;
}

static int is_segment(const struct rs_pattern_rule *r)
{
	return r->kind == RS_PATTERN_FORWARD || r->kind == RS_PATTERN_REPLAY;
}

static int is_region(const struct rs_pattern_rule *r)
{
	return r->kind == RS_PATTERN_STATE || r->kind == RS_PATTERN_OUTPUT;
}

static int clause(struct line *l, struct rs_pattern_rule *r)
{
	const char *from = l->from;

	if (is(l, "name")) {
		if (r->kind == RS_PATTERN_STEP || r->kind == RS_PATTERN_IGNORE)
			return bad(l, from, "this kind of rule takes no name");
		return template(l, r, r->name);
	}
	if (is(l, "number")) {
		if (!is_segment(r) && r->kind != RS_PATTERN_STEP)
			return bad(l, from, "this kind of rule takes no number");
		if (r->kind == RS_PATTERN_STEP &&
		    !strncmp(l->at + strspn(l->at, " \t"), "count", 5)) {
			next(l);
			r->count = 1;
			return is(l, "count") && !r->number[0]
				       ? 0
				       : bad(l, l->from, "a number is \"TEXT\", or count");
		}
		return template(l, r, r->number);
	}
	if (is(l, "inside") || is(l, "during")) {
		if (is_region(r))
			return bad(l, from, "memory is named at any time");
		return context(l, &r->domain, is(l, "inside") ? &r->inside : &r->during);
	}
	if (is(l, "until")) {
		if (!is_segment(r))
			return bad(l, from, "only forwards and replays end");
		return context(l, &r->domain, &r->until);
	}
	return bad(l, from, "name, number, inside, during or until was expected");
}

static void defaults(struct rs_pattern_rule *r)
{
	const char *whole = rs_ere_groups(r->ere) ? "\\1" : "\\0";

	if (r->kind == RS_PATTERN_STEP && !r->number[0] && !r->count) {
		if (rs_ere_groups(r->ere))
			strcpy(r->number, whole);
		else
			r->count = 1;
	}
	if ((is_segment(r) || is_region(r)) && !r->name[0])
		strcpy(r->name, whole);
}

static int kind(const struct line *l, enum rs_pattern_kind *ret_kind)
{
#define X(KIND, word)                                                                              \
	if (is(l, word)) {                                                                         \
		*ret_kind = RS_PATTERN_##KIND;                                                     \
		return 0;                                                                          \
	}
	RS_PATTERN_KINDS(X)
#undef X
	return -EINVAL;
}

static int rule(struct line *l, struct rs_pattern_rule *r)
{
	*r = (struct rs_pattern_rule){.inside = -1, .during = -1, .until = -1, .line = l->number};
	if (is(l, "domain")) {
		if (domain(l, &r->domain))
			return -EINVAL;
		next(l);
	}
	if (kind(l, &r->kind))
		return bad(
			l, l->from,
			"domain, step, forward, replay, ignore, state, output or builtin was expected");
	if (want_string(l, "a pattern in quotation marks has to follow") ||
	    compile(l, &r->ere, r->text))
		return -EINVAL;
	while (next(l) != WORD_END)
		if (l->word == WORD_BAD || clause(l, r))
			return bad(l, l->from,
				   "name, number, inside, during or until was expected");
	defaults(r);
	return 0;
}

static int builtin(struct line *l)
{
	next(l);
	if (!is(l, "off") && !is(l, "on"))
		return bad(l, l->from, "on or off has to follow");
	l->p->builtin_off = (uint8_t)is(l, "off");
	if (next(l) != WORD_END)
		return bad(l, l->from, "nothing may follow");
	return 0;
}

static int one_line(struct line *l)
{
	struct rs_patterns *p = l->p;
	struct rs_pattern_rule *r = &p->rule[p->n];
	int err;

	if (next(l) == WORD_END)
		return 0;
	if (is(l, "builtin"))
		return builtin(l);
	if (p->n == l->limit)
		return bad(l, l->from, "more than 60 rules");
	err = rule(l, r);
	if (err) {
		rs_ere_free(r->ere);
		return err;
	}
	r->file = p->nfiles - 1;
	p->n++;
	return 0;
}

static int add_file(struct rs_patterns *p, const char *file)
{
	if (p->nfiles == sizeof(p->file) / sizeof(*p->file))
		return -E2BIG;
	p->file[p->nfiles] = strdup(file);
	if (!p->file[p->nfiles])
		return -ENOMEM;
	p->nfiles++;
	return 0;
}

static void say(rs_pattern_report *report, void *arg, const char *file, const struct line *l,
		const char *why)
{
	char text[768];

	if (!report)
		return;
	if (l)
		snprintf(text, sizeof(text), "%.512s:%u:%zu: %s", file, l->number, l->column,
			 l->why);
	else
		snprintf(text, sizeof(text), "%.512s: %s", file, why);
	report(arg, text);
}

static unsigned read_text(struct rs_patterns *p, unsigned limit, const char *file, char *text,
			  size_t len, rs_pattern_report *report, void *arg)
{
	unsigned errors = 0, number = 1;
	char *end = text + len, *eol;
	int err = add_file(p, file);

	if (err) {
		say(report, arg, file, NULL, err == -E2BIG ? "more than 16 files" : strerror(-err));
		return 1;
	}
	for (; text < end; text = eol + 1, number++) {
		struct line l = {
			.p = p, .number = number, .limit = limit, .at = text, .begin = text};
		char *zero;

		eol = memchr(text, '\n', (size_t)(end - text));
		if (!eol)
			eol = end; /* the caller's text ends in a zero byte */
		*eol = '\0';
		zero = memchr(text, '\0', (size_t)(eol - text));
		if (zero)
			bad(&l, zero, "a zero byte has no place here");
		else
			one_line(&l);
		if (l.why) {
			say(report, arg, file, &l, NULL);
			errors++;
		}
	}
	return errors;
}

unsigned rs_patterns_read(struct rs_patterns *p, const char *file, char *text, size_t len,
			  rs_pattern_report *report, void *arg)
{
	return read_text(p, RS_PATTERN_RULES - RS_PATTERN_SPARE, file, text, len, report, arg);
}

unsigned rs_patterns_load(struct rs_patterns *p, const char *paths, rs_pattern_report *report,
			  void *arg)
{
	unsigned errors = 0;

	while (*paths) {
		size_t n = strcspn(paths, ":"), size;
		char path[4096], *text;
		int err;

		if (n && n < sizeof(path)) {
			memcpy(path, paths, n);
			path[n] = '\0';
			err = rs_jread_file(path, RS_PATTERN_FILE, &text, &size);
			if (err) {
				say(report, arg, path, NULL,
				    err == -ENODEV ? "no regular file" : strerror(-err));
				errors++;
			} else {
				errors += rs_patterns_read(p, path, text, size, report, arg);
				free(text);
			}
		} else if (n) {
			say(report, arg, "a path", NULL, "too long");
			errors++;
		}
		paths += n + (paths[n] == ':');
	}
	return errors;
}

static const char builtin_text[] =
#include "tracker/pattern_builtin.def"
	;

const char *rs_patterns_builtin_text(void)
{
	return builtin_text;
}

void rs_patterns_builtin(struct rs_patterns *p)
{
	char text[sizeof(builtin_text)];
	unsigned before = p->n;

	if (p->builtin_off)
		return;
	memcpy(text, builtin_text, sizeof(text));
	read_text(p, RS_PATTERN_RULES, "built in", text, sizeof(text) - 1, NULL, NULL);
	for (; before < p->n; before++)
		p->rule[before].builtin = 1;
}
