/* SPDX-License-Identifier: MIT */
/*
 * See ere.h: a compiled pattern as codes of a small machine, and the machine (Thompson's simulation with groups: all
 * ways through the codes at once, byte by byte, the preferred first).
 *
 * Invariants: every code is in a list at most once, so a match takes at most len * codes rounds; the stack of a step
 * holds at most two entries for each code.
 */
#include "tracker/ere_priv.h"

#include <stdlib.h>
#include <string.h>

void rs_ere_free(struct rs_ere *e)
{
	free(e);
}

unsigned rs_ere_groups(const struct rs_ere *e)
{
	return e->groups;
}

struct machine {
	const struct rs_ere *e;
	struct rs_ere_scratch *s;
	int16_t at, len;
	struct rs_ere_span group[RS_ERE_GROUPS]; /* of the way that is being followed */
};

static int16_t *slot_of(struct machine *m, unsigned slot)
{
	struct rs_ere_span *g = &m->group[slot / 2];

	return slot % 2 ? &g->to : &g->from;
}

/* Everything that can be reached from a code without a byte, in order of preference, into the list. */
static void follow(struct machine *m, unsigned which, uint16_t code)
{
	struct rs_ere_scratch *s = m->s;
	uint16_t round = (uint16_t)(m->at + 1), n = 0;

	s->stack[n].restores = 0;
	s->stack[n++].code = code;
	while (n) {
		const struct rs_ere_code *c;
		uint16_t at;

		n--;
		if (s->stack[n].restores) {
			*slot_of(m, s->stack[n].slot) = s->stack[n].old;
			continue;
		}
		at = s->stack[n].code;
		if (s->mark[at] == round)
			continue;
		s->mark[at] = round;
		c = &m->e->code[at];
		switch (c->op) {
		case RS_ERE_SPLIT:
			s->stack[n].restores = 0;
			s->stack[n++].code = c->y;
			/* fall through */
		case RS_ERE_JUMP:
			s->stack[n].restores = 0;
			s->stack[n++].code = c->x;
			break;
		case RS_ERE_SAVE:
			s->stack[n].restores = 1;
			s->stack[n].slot = (uint8_t)c->x;
			s->stack[n++].old = *slot_of(m, c->x);
			*slot_of(m, c->x) = m->at;
			s->stack[n].restores = 0;
			s->stack[n++].code = (uint16_t)(at + 1);
			break;
		case RS_ERE_BEGIN:
		case RS_ERE_END:
			if (m->at != (c->op == RS_ERE_BEGIN ? 0 : m->len))
				break;
			s->stack[n].restores = 0;
			s->stack[n++].code = (uint16_t)(at + 1);
			break;
		default:
			memcpy(s->list[which].group[s->list[which].n], m->group,
			       m->e->groups * sizeof(m->group[0]));
			s->list[which].code[s->list[which].n++] = at;
		}
	}
}

static int takes(const struct rs_ere *e, const struct rs_ere_code *c, unsigned char byte)
{
	switch (c->op) {
	case RS_ERE_BYTE:
		return c->x == byte;
	case RS_ERE_ANY:
		return 1;
	case RS_ERE_SET:
		return rs_ere_in(&e->set[c->x], byte);
	default:
		return 0;
	}
}

int rs_ere_match(const struct rs_ere *e, struct rs_ere_scratch *s, const char *text, size_t len,
		 struct rs_ere_span ret_group[RS_ERE_GROUPS + 1])
{
	struct machine m = {.e = e, .s = s, .len = (int16_t)len};
	unsigned now = 0, i, k;

	if (len > RS_ERE_TEXT || len < e->shortest)
		return 0;
	if (len && !rs_ere_in(&e->first, (unsigned char)text[0]))
		return 0;
	memset(s->mark, 0, e->n * sizeof(s->mark[0]));
	memset(m.group, 0xff, sizeof(m.group));
	s->list[0].n = 0;
	follow(&m, 0, 0);
	for (i = 0; i < len && s->list[now].n; i++, now = !now) {
		s->list[!now].n = 0;
		m.at = (int16_t)(i + 1);
		for (k = 0; k < s->list[now].n; k++) {
			uint16_t code = s->list[now].code[k];

			if (!takes(e, &e->code[code], (unsigned char)text[i]))
				continue;
			memcpy(m.group, s->list[now].group[k], e->groups * sizeof(m.group[0]));
			follow(&m, !now, (uint16_t)(code + 1));
		}
	}
	for (k = 0; k < s->list[now].n; k++)
		if (e->code[s->list[now].code[k]].op == RS_ERE_MATCH)
			break;
	if (k == s->list[now].n)
		return 0;
	memset(ret_group, 0xff, (RS_ERE_GROUPS + 1) * sizeof(*ret_group));
	ret_group[0] = (struct rs_ere_span){0, (int16_t)len};
	memcpy(ret_group + 1, s->list[now].group[k], e->groups * sizeof(*ret_group));
	return 1;
}
