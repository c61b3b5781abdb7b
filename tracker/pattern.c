/* SPDX-License-Identifier: MIT */
/* See pattern.h: the set of rules, and what they make of a text. Pure functions of their arguments. */
#include "tracker/pattern_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rs_patterns *rs_patterns_create(void)
{
	return calloc(1, sizeof(struct rs_patterns));
}

void rs_patterns_free(struct rs_patterns *p)
{
	unsigned i;

	if (!p)
		return;
	for (i = 0; i < p->n; i++)
		rs_ere_free(p->rule[i].ere);
	for (i = 0; i < p->ncontexts; i++)
		rs_ere_free(p->context[i].ere);
	for (i = 0; i < p->nfiles; i++)
		free(p->file[i]);
	free(p);
}

unsigned rs_patterns_count(const struct rs_patterns *p)
{
	return p->n;
}

const struct rs_pattern_rule *rs_patterns_rule(const struct rs_patterns *p, unsigned rule)
{
	return &p->rule[rule];
}

const char *rs_pattern_file(const struct rs_patterns *p, const struct rs_pattern_rule *r)
{
	return p->file[r->file];
}

const struct rs_pattern_context *rs_patterns_context(const struct rs_patterns *p, unsigned context)
{
	return &p->context[context];
}

uint32_t rs_patterns_during(const struct rs_patterns *p)
{
	uint32_t bits = 0;

	for (unsigned i = 0; i < p->n; i++)
		if (p->rule[i].during >= 0)
			bits |= 1u << p->rule[i].during;
	return bits;
}

static int covers(const struct rs_pattern_domain *d, const char *domain)
{
	return d->any || !strcmp(d->name, domain);
}

struct rs_pattern_bits rs_patterns_domain(const struct rs_patterns *p, const char *domain)
{
	struct rs_pattern_bits bits = {0, 0};
	unsigned i;

	for (i = 0; i < p->n; i++)
		bits.rules |= (uint64_t)covers(&p->rule[i].domain, domain) << i;
	for (i = 0; i < p->ncontexts; i++)
		bits.contexts |= (uint32_t)covers(&p->context[i].domain, domain) << i;
	return bits;
}

struct rs_pattern_bits rs_patterns_match(const struct rs_patterns *p, struct rs_pattern_bits among,
					 struct rs_ere_scratch *s, const char *text, size_t len)
{
	struct rs_ere_span group[RS_ERE_GROUPS + 1];
	struct rs_pattern_bits fit = {0, 0};
	unsigned i;

	for (i = 0; i < p->n; i++)
		if (among.rules >> i & 1 && rs_ere_match(p->rule[i].ere, s, text, len, group))
			fit.rules |= 1ull << i;
	for (i = 0; i < p->ncontexts; i++)
		if (among.contexts >> i & 1 && rs_ere_match(p->context[i].ere, s, text, len, group))
			fit.contexts |= 1u << i;
	return fit;
}

/* A template with its groups filled in. -EINVAL: too long. */
static int fill(const char *template, const char *text, const struct rs_ere_span *group, char *out,
		size_t size)
{
	size_t n = 0;

	for (; *template; template ++) {
		const char *from = template;
		size_t len = 1;

		if (*template == '\\' && template[1]) {
			template ++;
			from = template;
			if (*template >= '0' && *template <= '9') {
				const struct rs_ere_span *g = &group[*template - '0'];

				from = g->from < 0 ? "" : text + g->from;
				len = g->from < 0 ? 0 : (size_t)(g->to - g->from);
			}
		}
		if (len >= size - n)
			return -EINVAL;
		memcpy(out + n, from, len);
		n += len;
	}
	out[n] = '\0';
	return 0;
}

static int is_number(const char *s)
{
	size_t n = strspn(s, "0123456789");

	return n && n <= 18 && !s[n];
}

int rs_pattern_marker(const struct rs_pattern_rule *r, struct rs_ere_scratch *s, const char *text,
		      size_t len, char ret_marker[RS_PATTERN_MARKER])
{
	struct rs_ere_span group[RS_ERE_GROUPS + 1];
	char name[RS_PATTERN_TEMPLATE] = "", number[24] = "";
	int n;

	if (!rs_ere_match(r->ere, s, text, len, group))
		return -EINVAL;
	if (fill(r->name, text, group, name, sizeof(name)) ||
	    fill(r->number, text, group, number, sizeof(number)))
		return -EINVAL;
	if (r->number[0] && !is_number(number))
		return -EINVAL;
	/* # separates name and invocation. */
	for (char *c = name; *c; c++)
		if (*c == '#' || (unsigned char)*c < ' ')
			*c = '_';
	if (r->kind == RS_PATTERN_IGNORE)
		n = snprintf(ret_marker, RS_PATTERN_MARKER, "%s", "");
	else if (r->kind == RS_PATTERN_STEP)
		n = snprintf(ret_marker, RS_PATTERN_MARKER, "step:%s", number);
	else if (!name[0])
		return -EINVAL;
	else
		n = snprintf(ret_marker, RS_PATTERN_MARKER, "%s:%s%s%s",
			     rs_pattern_kind_name(r->kind), name, number[0] ? "#" : "", number);
	return n < RS_PATTERN_MARKER ? 0 : -EINVAL;
}

static const char *const kinds[] = {[RS_PATTERN_NONE] = "",
#define X(KIND, word) [RS_PATTERN_##KIND] = word,
				    RS_PATTERN_KINDS(X)
#undef X
};

const char *rs_pattern_kind_name(enum rs_pattern_kind kind)
{
	return kinds[kind];
}

enum rs_pattern_kind rs_pattern_plain(const char *text)
{
	static const enum rs_pattern_kind plain[] = {RS_PATTERN_STEP, RS_PATTERN_FORWARD,
						     RS_PATTERN_REPLAY, RS_PATTERN_STATE,
						     RS_PATTERN_OUTPUT};

	for (unsigned i = 0; i < sizeof(plain) / sizeof(*plain); i++) {
		size_t n = strlen(kinds[plain[i]]);

		if (!strncmp(text, kinds[plain[i]], n) && text[n] == ':')
			return plain[i];
	}
	return RS_PATTERN_NONE;
}
