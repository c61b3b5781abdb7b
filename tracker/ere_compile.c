/* SPDX-License-Identifier: MIT */
/*
 * Patterns to codes (ere.h): a tree first, because a repetition writes the codes of what it repeats several times.
 *
 * Invariants: nesting is bounded (NEST), a repetition of a repetition is refused, and every repeated thing but a plain
 * atom writes codes, so that whatever is too large ends at RS_ERE_CODES and not after a long time.
 */
#include "tracker/ere_priv.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NEST  24
#define SETS  64
#define NODES (2 * RS_ERE_PATTERN)
#define NONE  UINT16_MAX

enum node_kind { NODE_EMPTY, NODE_CODE, NODE_CAT, NODE_ALT, NODE_REPEAT, NODE_GROUP };

struct node {
	uint8_t kind;
	uint16_t a, b;	  /* children */
	int16_t min, max; /* of REPEAT; max -1: any number */
	struct rs_ere_code code;
	uint8_t group;
};

struct build {
	const char *pattern;
	size_t len, pos;
	unsigned depth, groups;
	int err;
	size_t at;
	const char *why;
	struct node node[NODES];
	uint16_t nodes, sets, codes;
	struct rs_ere_set set[SETS];
	struct rs_ere_code code[RS_ERE_CODES];
};

static uint16_t fail(struct build *b, int err, size_t at, const char *why)
{
	if (!b->err) {
		b->err = err;
		b->at = at;
		b->why = why;
	}
	return NONE;
}

static uint16_t node(struct build *b, enum node_kind kind, uint16_t left, uint16_t right)
{
	struct node *n;

	if (b->err)
		return NONE;
	if (b->nodes == NODES)
		return fail(b, -E2BIG, b->pos, "the pattern is too long");
	n = &b->node[b->nodes];
	*n = (struct node){.kind = (uint8_t)kind, .a = left, .b = right};
	return b->nodes++;
}

static uint16_t leaf(struct build *b, enum rs_ere_op op, uint16_t x)
{
	uint16_t n = node(b, NODE_CODE, NONE, NONE);

	if (n != NONE)
		b->node[n].code = (struct rs_ere_code){.op = (uint8_t)op, .x = x};
	return n;
}

static int more(const struct build *b)
{
	return b->pos < b->len && !b->err;
}

static void add(struct rs_ere_set *s, unsigned byte)
{
	s->bits[byte / 64] |= 1ull << byte % 64;
}

/* [:name:] after its "[:". */
static void class_of(struct build *b, struct rs_ere_set *s)
{
	static const struct {
		const char *name;
		int (*has)(int);
	} classes[] = {{"alpha", isalpha}, {"digit", isdigit}, {"alnum", isalnum},
		       {"upper", isupper}, {"lower", islower}, {"space", isspace},
		       {"blank", isblank}, {"punct", ispunct}, {"xdigit", isxdigit},
		       {"print", isprint}, {"graph", isgraph}, {"cntrl", iscntrl}};
	const char *name = b->pattern + b->pos;
	size_t n = 0;

	while (b->pos + n < b->len && islower((unsigned char)name[n]))
		n++;
	for (unsigned i = 0; i < sizeof(classes) / sizeof(*classes); i++) {
		if (strlen(classes[i].name) != n || memcmp(classes[i].name, name, n) ||
		    b->pos + n + 1 >= b->len || memcmp(name + n, ":]", 2) != 0)
			continue;
		for (unsigned byte = 0; byte < 128; byte++)
			if (classes[i].has((int)byte))
				add(s, byte);
		b->pos += n + 2;
		return;
	}
	fail(b, -EINVAL, b->pos - 2, "no such class of characters");
}

/* One character of a bracket, or a range. */
static void bracket_item(struct build *b, struct rs_ere_set *s)
{
	unsigned from = (unsigned char)b->pattern[b->pos], to;

	if (b->pos + 1 < b->len && from == '[' && strchr(".=", b->pattern[b->pos + 1])) {
		fail(b, -EINVAL, b->pos, "collating symbols and equivalence classes are not known");
		return;
	}
	if (b->pos + 1 < b->len && from == '[' && b->pattern[b->pos + 1] == ':') {
		b->pos += 2;
		class_of(b, s);
		return;
	}
	b->pos++;
	to = from;
	if (b->pos + 1 < b->len && b->pattern[b->pos] == '-' && b->pattern[b->pos + 1] != ']') {
		to = (unsigned char)b->pattern[b->pos + 1];
		b->pos += 2;
		if (to < from) {
			fail(b, -EINVAL, b->pos - 3, "the range ends before it begins");
			return;
		}
	}
	for (unsigned byte = from; byte <= to; byte++)
		add(s, byte);
}

static uint16_t bracket(struct build *b)
{
	size_t begin = b->pos++, first;
	struct rs_ere_set s = {{0}};
	int inverse = more(b) && b->pattern[b->pos] == '^';

	b->pos += (size_t)inverse;
	first = b->pos;
	while (more(b) && (b->pattern[b->pos] != ']' || b->pos == first))
		bracket_item(b, &s);
	if (!more(b))
		return fail(b, -EINVAL, begin, "the [ is not closed");
	b->pos++;
	for (unsigned i = 0; i < 4 && inverse; i++)
		s.bits[i] = ~s.bits[i];
	if (b->sets == SETS)
		return fail(b, -E2BIG, begin, "too many [ ]");
	b->set[b->sets] = s;
	return leaf(b, RS_ERE_SET, b->sets++);
}

static uint16_t alternatives(struct build *b);

static uint16_t group(struct build *b)
{
	size_t begin = b->pos++;
	unsigned number = b->groups++;
	uint16_t inner, n;

	if (number == RS_ERE_GROUPS)
		return fail(b, -E2BIG, begin, "more than 9 groups");
	if (++b->depth > NEST)
		return fail(b, -E2BIG, begin, "groups are nested too deep");
	inner = alternatives(b);
	b->depth--;
	if (!more(b))
		return fail(b, -EINVAL, begin, "the ( is not closed");
	b->pos++;
	n = node(b, NODE_GROUP, inner, NONE);
	if (n != NONE)
		b->node[n].group = (uint8_t)number;
	return n;
}

static uint16_t atom(struct build *b)
{
	unsigned char c = (unsigned char)b->pattern[b->pos];

	switch (c) {
	case '(':
		return group(b);
	case '[':
		return bracket(b);
	case '*':
	case '+':
	case '?':
		return fail(b, -EINVAL, b->pos, "there is nothing to repeat");
	case '{':
		return fail(b, -EINVAL, b->pos,
			    "there is nothing to repeat; for the character write \\{");
	case '\\':
		if (++b->pos == b->len)
			return fail(b, -EINVAL, b->pos - 1, "nothing follows the \\");
		c = (unsigned char)b->pattern[b->pos];
		if (isalnum(c))
			return fail(
				b, -EINVAL, b->pos - 1,
				"a \\ takes the meaning from a special character, and gives none");
		break;
	case '.':
		b->pos++;
		return leaf(b, RS_ERE_ANY, 0);
	case '^':
	case '$':
		b->pos++;
		return leaf(b, c == '^' ? RS_ERE_BEGIN : RS_ERE_END, 0);
	default:
		break;
	}
	b->pos++;
	return leaf(b, RS_ERE_BYTE, c);
}

static int number(struct build *b)
{
	int n = 0;

	if (!more(b) || !isdigit((unsigned char)b->pattern[b->pos]))
		return -1;
	for (; more(b) && isdigit((unsigned char)b->pattern[b->pos]); b->pos++)
		if (n <= RS_ERE_REPEAT)
			n = 10 * n + (b->pattern[b->pos] - '0');
	return n;
}

/* After the atom: how often? 0: no sign of repetition here. */
static int repetition(struct build *b, int16_t *ret_min, int16_t *ret_max)
{
	size_t begin = b->pos;
	char c = more(b) ? b->pattern[b->pos] : 0;
	int min, max;

	if (c == '*' || c == '+' || c == '?') {
		b->pos++;
		*ret_min = c == '+';
		*ret_max = c == '?' ? 1 : -1;
		return 1;
	}
	if (c != '{')
		return 0;
	b->pos++;
	min = max = number(b);
	if (more(b) && b->pattern[b->pos] == ',') {
		b->pos++;
		max = number(b);
	}
	if (min < 0 || !more(b) || b->pattern[b->pos] != '}')
		fail(b, -EINVAL, begin, "{ begins {m}, {m,} or {m,n}; for the character write \\{");
	else if (min > RS_ERE_REPEAT || max > RS_ERE_REPEAT)
		fail(b, -E2BIG, begin, "255 repetitions at most");
	else if (max >= 0 && max < min)
		fail(b, -EINVAL, begin, "the most is less than the least");
	b->pos++;
	*ret_min = (int16_t)min;
	*ret_max = (int16_t)max;
	return 1;
}

static uint16_t piece(struct build *b)
{
	int16_t min = 0, max = 0;
	uint16_t n = atom(b);
	size_t at = b->pos;

	if (b->err || !repetition(b, &min, &max))
		return n;
	if (b->node[n].kind == NODE_CODE && b->node[n].code.op >= RS_ERE_SPLIT)
		return fail(b, -EINVAL, at, "there is nothing to repeat");
	n = node(b, NODE_REPEAT, n, NONE);
	if (n == NONE)
		return NONE;
	b->node[n].min = min;
	b->node[n].max = max;
	at = b->pos;
	if (repetition(b, &min, &max))
		return fail(b, -EINVAL, at,
			    "a repetition of a repetition: put ( ) around the inner one");
	return n;
}

static uint16_t sequence(struct build *b)
{
	uint16_t left = NONE;

	while (more(b) && b->pattern[b->pos] != '|' && (b->pattern[b->pos] != ')' || !b->depth)) {
		uint16_t right;

		if (b->pattern[b->pos] == ')')
			return fail(b, -EINVAL, b->pos,
				    "no ( is open; for the character write \\)");
		right = piece(b);
		left = left == NONE ? right : node(b, NODE_CAT, left, right);
	}
	return left == NONE ? node(b, NODE_EMPTY, NONE, NONE) : left;
}

static uint16_t alternatives(struct build *b)
{
	uint16_t left = sequence(b);

	while (more(b) && b->pattern[b->pos] == '|') {
		uint16_t right;

		b->pos++;
		right = sequence(b);
		left = node(b, NODE_ALT, left, right);
	}
	return left;
}

/* --- codes -------------------------------------------------------------------------------------- */

static uint16_t put(struct build *b, enum rs_ere_op op, unsigned x)
{
	if (b->codes == RS_ERE_CODES) {
		fail(b, -E2BIG, 0, "the pattern is too large");
		return 0;
	}
	b->code[b->codes] = (struct rs_ere_code){.op = (uint8_t)op, .x = (uint16_t)x};
	return b->codes++;
}

static void emit(struct build *b, uint16_t at);

/* min times; then a loop, or each of the rest within the one before. */
static void emit_repeat(struct build *b, const struct node *n)
{
	uint16_t split, exits = NONE;
	int i;

	for (i = 0; i < n->min && !b->err; i++)
		emit(b, n->a);
	if (n->max < 0) {
		split = put(b, RS_ERE_SPLIT, b->codes + 1u);
		emit(b, n->a);
		put(b, RS_ERE_JUMP, split);
		b->code[split].y = b->codes;
		return;
	}
	for (; i < n->max && !b->err; i++) {
		split = put(b, RS_ERE_SPLIT, b->codes + 1u);
		b->code[split].y = exits; /* chained, until the end is known */
		exits = split;
		emit(b, n->a);
	}
	for (; exits != NONE && !b->err; exits = split) {
		split = b->code[exits].y;
		b->code[exits].y = b->codes;
	}
}

/* Sequences and alternatives lean to the left, as deep as the pattern is long: their left side is not recursed into. */
static void emit_left(struct build *b, uint16_t at)
{
	uint16_t chain[RS_ERE_PATTERN + 1], n = 0;

	for (; b->node[at].kind == NODE_CAT; at = b->node[at].a)
		chain[n++] = b->node[at].b;
	emit(b, at);
	while (n && !b->err)
		emit(b, chain[--n]);
}

static void emit_alt(struct build *b, uint16_t at)
{
	uint16_t side[RS_ERE_PATTERN + 2], jumps = NONE, split = 0, n = 0;

	for (; b->node[at].kind == NODE_ALT; at = b->node[at].a)
		side[n++] = b->node[at].b;
	side[n++] = at;
	while (n && !b->err) {
		if (n > 1)
			split = put(b, RS_ERE_SPLIT, b->codes + 1u);
		emit(b, side[--n]);
		if (n) {
			uint16_t jump = put(b, RS_ERE_JUMP, jumps);

			jumps = jump;
			b->code[split].y = b->codes;
		}
	}
	for (; jumps != NONE && !b->err; jumps = split) {
		split = b->code[jumps].x;
		b->code[jumps].x = b->codes;
	}
}

static void emit(struct build *b, uint16_t at)
{
	const struct node *n = &b->node[at];
	uint16_t c;

	if (b->err)
		return;
	switch (n->kind) {
	case NODE_CODE:
		c = put(b, (enum rs_ere_op)n->code.op, n->code.x);
		(void)c;
		break;
	case NODE_CAT:
		emit_left(b, at);
		break;
	case NODE_ALT:
		emit_alt(b, at);
		break;
	case NODE_REPEAT:
		emit_repeat(b, n);
		break;
	case NODE_GROUP:
		put(b, RS_ERE_SAVE, 2u * n->group);
		emit(b, n->a);
		put(b, RS_ERE_SAVE, 2u * n->group + 1);
		break;
	default:
		break;
	}
}

/* --- what lets most texts be turned away at once ------------------------------------------------ */

/* Length of the shortest match. Children have smaller numbers than their parents. */
static uint16_t shortest(const struct build *b, uint16_t root)
{
	static const unsigned most = RS_ERE_TEXT + 1;
	uint16_t len[NODES];

	for (uint16_t i = 0; i <= root; i++) {
		const struct node *n = &b->node[i];
		unsigned l = 0;

		if (n->kind == NODE_CODE)
			l = n->code.op <= RS_ERE_SET;
		else if (n->kind == NODE_CAT)
			l = (unsigned)len[n->a] + len[n->b];
		else if (n->kind == NODE_ALT)
			l = len[n->a] < len[n->b] ? len[n->a] : len[n->b];
		else if (n->kind == NODE_REPEAT)
			l = (unsigned)len[n->a] * (unsigned)n->min;
		else if (n->kind == NODE_GROUP)
			l = len[n->a];
		len[i] = (uint16_t)(l < most ? l : most);
	}
	return len[root];
}

static void first_bytes(struct rs_ere *e)
{
	uint8_t reached[RS_ERE_CODES] = {0};
	uint16_t todo[2 * RS_ERE_CODES + 2], n = 0;

	todo[n++] = 0;
	while (n) {
		uint16_t at = todo[--n];
		const struct rs_ere_code *c = &e->code[at];

		if (reached[at])
			continue;
		reached[at] = 1;
		if (c->op == RS_ERE_BYTE)
			add(&e->first, c->x);
		else if (c->op == RS_ERE_SET)
			for (unsigned i = 0; i < 4; i++)
				e->first.bits[i] |= e->set[c->x].bits[i];
		else if (c->op == RS_ERE_ANY)
			memset(&e->first, 0xff, sizeof(e->first));
		else if (c->op == RS_ERE_SPLIT || c->op == RS_ERE_JUMP)
			todo[n++] = c->x;
		else if (c->op != RS_ERE_MATCH)
			todo[n++] = (uint16_t)(at + 1);
		if (c->op == RS_ERE_SPLIT)
			todo[n++] = c->y;
	}
}

static int finish(const struct build *b, uint16_t root, struct rs_ere **ret_ere)
{
	size_t codes = b->codes * sizeof(b->code[0]), sets = b->sets * sizeof(b->set[0]);
	size_t head = (sizeof(struct rs_ere) + codes + 7) & ~(size_t)7;
	struct rs_ere *e = calloc(1, head + sets);

	if (!e)
		return -ENOMEM;
	e->n = b->codes;
	e->sets = b->sets;
	e->groups = (uint8_t)b->groups;
	e->set = (struct rs_ere_set *)((char *)e + head);
	memcpy(e->code, b->code, codes);
	memcpy(e->set, b->set, sets);
	e->shortest = shortest(b, root);
	first_bytes(e);
	*ret_ere = e;
	return 0;
}

int rs_ere_compile(const char *pattern, size_t len, struct rs_ere **ret_ere, size_t *ret_at,
		   const char **ret_why)
{
	struct build *b = calloc(1, sizeof(*b));
	uint16_t root;
	int err;

	*ret_at = 0;
	*ret_why = "no memory";
	if (!b)
		return -ENOMEM;
	b->pattern = pattern;
	b->len = len;
	if (len > RS_ERE_PATTERN)
		fail(b, -E2BIG, RS_ERE_PATTERN, "the pattern is too long");
	root = b->err ? NONE : alternatives(b);
	if (!b->err)
		emit(b, root);
	if (!b->err)
		put(b, RS_ERE_MATCH, 0);
	err = b->err ? b->err : finish(b, root, ret_ere);
	if (b->err) {
		*ret_at = b->at;
		*ret_why = b->why;
	}
	free(b);
	return err;
}
