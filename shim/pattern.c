/* SPDX-License-Identifier: MIT */
/* See pattern.h. */
#include "shim/pattern.h"

#include "shim/handles.h"
#include "shim/log.h"
#include "tracker/mark.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SEEN_MAX   4096u
#define SEEN_SLOTS (4 * SEEN_MAX)
#define CHOICES	   8u /* of one text: seven conditions and what is left */
#define DOMAINS	   256u
#define WRONG_MAX  8u

struct seen {
	uint64_t hash;
	uint32_t contexts, n;
	struct rs_choice choice[]; /* and their markers, behind them */
};

/* A text's answers while they are found out. */
struct draft {
	uint32_t contexts, n;
	struct rs_choice choice[CHOICES];
	char marker[CHOICES][RS_PATTERN_MARKER];
};

struct rs_domain rs_domain_default = {.plain = 1, .followed = 1};
struct rs_domain rs_domain_own = {.number = 1, .plain = 1, .followed = 1, .name = "replayshim"};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rs_domain nobodys = {.number = UINT32_MAX}, *domains;
static uint32_t ndomains = 2;
static struct rs_patterns *patterns; /* NULL until the start, or without memory */
static struct rs_ere_scratch *scratch;
static struct seen *table[SEEN_SLOTS];
static unsigned nseen;
static int counting, quiet;
static uint32_t open_now[RS_PATTERN_CONTEXTS], during;
static struct rs_handles process; /* ids of ranges that conditions ask for, to their contexts */

/* --- domains ------------------------------------------------------------------------------------ */

static void know(struct rs_domain *d)
{
	if (!patterns)
		return;
	d->bits = rs_patterns_domain(patterns, d->name);
	__atomic_store_n(&d->followed, d->plain || d->bits.rules || d->bits.contexts || counting,
			 __ATOMIC_RELAXED);
}

static struct rs_domain *new_domain(const char *name)
{
	struct rs_domain *d = ndomains < DOMAINS ? calloc(1, sizeof(*d)) : NULL;

	if (!d)
		return &nobodys;
	strcpy(d->name, name);
	d->number = ndomains++;
	know(d);
	d->next = domains;
	domains = d;
	return d;
}

struct rs_domain *rs_domain_get(const char *name)
{
	struct rs_domain *d;
	char text[sizeof(d->name)] = "";

	if (name)
		strncpy(text, name, sizeof(text) - 1);
	if (!strcmp(text, rs_domain_own.name))
		return &rs_domain_own;
	pthread_mutex_lock(&lock);
	for (d = domains; d && strcmp(d->name, text) != 0; d = d->next)
		;
	if (!d)
		d = new_domain(text);
	pthread_mutex_unlock(&lock);
	return d;
}

/* --- start and end ------------------------------------------------------------------------------ */

struct complaints {
	unsigned n;
	char first[640];
};

static void complain(void *arg, const char *line)
{
	struct complaints *c = arg;

	if (!c->n++)
		strncpy(c->first, line, sizeof(c->first) - 1);
}

static void tell(const struct complaints *c, unsigned rules)
{
	struct rs_json j;

	if (c->n == 1)
		rs_log(RS_LOG_WARN, "REPLAYSHIM_MARKERS: %s; the run goes on without that rule",
		       c->first);
	else if (c->n)
		rs_log(RS_LOG_WARN,
		       "REPLAYSHIM_MARKERS: %s; the run goes on without that rule and %u others "
		       "(replayctl markers FILE lists them)",
		       c->first, c->n - 1);
	if (!rs_state.records || !rs_state.opt.markers[0])
		return;
	rs_json_begin(&j);
	rs_json_str(&j, "t", "markers");
	rs_json_str(&j, "files", rs_state.opt.markers);
	rs_json_u64(&j, "rules", rules);
	rs_json_u64(&j, "errors", c->n);
	if (c->n)
		rs_json_str(&j, "text", c->first);
	rs_records_write(rs_state.records, RS_RECORD_EVENTS, &j);
}

void rs_pattern_start(void)
{
	struct complaints c = {0, ""};
	struct rs_patterns *p = rs_patterns_create();
	unsigned rules;

	scratch = malloc(sizeof(*scratch));
	if (!p || !scratch) {
		rs_log(RS_LOG_ERROR, "no memory for marker rules; only markers count");
		return;
	}
	rs_patterns_load(p, rs_state.opt.markers, complain, &c);
	rules = rs_patterns_count(p);
	rs_patterns_builtin(p);
	tell(&c, rules);
	pthread_mutex_lock(&lock);
	patterns = p;
	during = rs_patterns_during(p);
	counting = rs_state.mode == RS_MODE_AUDIT || rs_state.opt.markers[0];
	know(&rs_domain_default);
	know(&rs_domain_own);
	for (struct rs_domain *d = domains; d; d = d->next)
		know(d);
	pthread_mutex_unlock(&lock);
}

void rs_pattern_finish(void)
{
	struct rs_json j;

	if (!patterns || !counting || !rs_state.records)
		return;
	rs_tally_write(patterns);
	if (!rs_tally_left_out())
		return;
	rs_json_begin(&j);
	rs_json_str(&j, "t", "markers");
	rs_json_u64(&j, "left_out", rs_tally_left_out());
	rs_records_write(rs_state.records, RS_RECORD_EVENTS, &j);
}

/* --- answers ------------------------------------------------------------------------------------ */

static uint64_t hash_of(const struct rs_domain *d, const char *text, size_t len)
{
	uint64_t h = (d->number + 1) * 0x9e3779b97f4a7c15ull ^ len, word;

	for (; len >= 8; len -= 8, text += 8) {
		memcpy(&word, text, 8);
		h = (h ^ word) * 0xff51afd7ed558ccdull;
		h ^= h >> 32;
	}
	word = 0;
	memcpy(&word, text, len);
	h = (h ^ word) * 0xc4ceb9fe1a85ec53ull;
	return h ^ h >> 29;
}

static struct seen *find(uint64_t hash, uint64_t *ret_slot)
{
	struct seen *s;
	uint64_t i = hash;

	while ((s = __atomic_load_n(&table[i % SEEN_SLOTS], __ATOMIC_ACQUIRE)) && s->hash != hash)
		i++;
	*ret_slot = i % SEEN_SLOTS;
	return s;
}

static void add_choice(struct draft *f, const struct rs_choice *c, const char *marker)
{
	f->choice[f->n] = *c;
	if (marker) {
		strcpy(f->marker[f->n], marker);
		f->choice[f->n].marker = f->marker[f->n];
	}
	f->n++;
}

/* *ret_wrong: it looks like a marker, why it is none. */
static enum rs_pattern_kind plain_kind(const struct rs_domain *d, const char *text,
				       const char **ret_wrong)
{
	struct rs_mark m = rs_mark_parse(d->plain ? text : NULL);

	*ret_wrong = m.wrong;
	return m.kind == RS_MARK_OTHER ? RS_PATTERN_NONE : rs_pattern_plain(text);
}

/* Of each text once, and of so many texts: somebody meant to mark something. */
static void tell_wrong(const char *text, const char *why)
{
	static unsigned told;
	struct rs_json j;

	if (told++ >= WRONG_MAX)
		return;
	rs_log(RS_LOG_WARN, "the range \"%s\" looks like a marker and is none: %s", text, why);
	if (!rs_state.records)
		return;
	rs_json_begin(&j);
	rs_json_str(&j, "t", "markers");
	rs_json_str(&j, "wrong", text);
	rs_json_str(&j, "why", why);
	rs_records_write(rs_state.records, RS_RECORD_EVENTS, &j);
}

/* A rule's choice, unless it makes nothing of the text. 1: nothing can come after it. */
static int add_rule(struct draft *f, unsigned i, const char *text, size_t len)
{
	const struct rs_pattern_rule *r = rs_patterns_rule(patterns, i);
	struct rs_choice c = {.rule = (int16_t)i,
			      .kind = (uint8_t)r->kind,
			      .builtin = r->builtin,
			      .count = r->count,
			      .inside = (int8_t)r->inside,
			      .during = (int8_t)r->during,
			      .until = (int8_t)r->until};
	char marker[RS_PATTERN_MARKER];

	if (r->kind == RS_PATTERN_STATE || r->kind == RS_PATTERN_OUTPUT || f->n == CHOICES - 1 ||
	    rs_pattern_marker(r, scratch, text, len, marker))
		return 0;
	add_choice(f, &c, marker);
	return r->inside < 0 && r->during < 0 && !r->builtin;
}

/* The lock is held, for the scratch and for the tallies. */
static void draft(const struct rs_domain *d, const char *text, size_t len, struct draft *f)
{
	struct rs_choice last = {.rule = RS_RULE_NONE, .inside = -1, .during = -1, .until = -1};
	struct rs_pattern_bits fit = {0, 0};
	int done = 0, builtin;
	const char *wrong;

	f->n = 0;
	last.kind = (uint8_t)plain_kind(d, text, &wrong);
	if (last.kind)
		last.rule = RS_RULE_PLAIN;
	if (patterns && (d->bits.rules || d->bits.contexts))
		fit = rs_patterns_match(patterns, d->bits, scratch, text, len);
	f->contexts = fit.contexts;
	for (unsigned i = 0; fit.rules >> i && !done; i++) {
		if (!(fit.rules >> i & 1))
			continue;
		builtin = rs_patterns_rule(patterns, i)->builtin;
		/* What is a marker as it stands is one before the built-in rules. */
		done = (builtin && last.kind) || add_rule(f, i, text, len);
		if (done && builtin)
			add_choice(f, &last, NULL);
		if (i == RS_PATTERN_RULES - 1)
			break;
	}
	if (!done)
		add_choice(f, &last, NULL);
	if (!done && wrong)
		tell_wrong(text, wrong);
	for (unsigned i = 0; i < f->n && counting; i++)
		f->choice[i].tally = rs_tally_get(d, &f->choice[i], text, len);
}

/* The text of a step does not come again. */
static int comes_once(const struct draft *f)
{
	return f->n == 1 && !f->contexts && f->choice[0].kind == RS_PATTERN_STEP &&
	       f->choice[0].rule == RS_RULE_PLAIN;
}

/* NULL without memory, or where enough texts are kept. */
static struct seen *keep(const struct draft *f, uint64_t hash)
{
	struct seen *s;
	char *marker;

	if (nseen == SEEN_MAX)
		return NULL;
	s = malloc(sizeof(*s) + f->n * (sizeof(s->choice[0]) + RS_PATTERN_MARKER));
	if (!s)
		return NULL;
	s->hash = hash;
	s->contexts = f->contexts;
	s->n = f->n;
	marker = (char *)&s->choice[f->n];
	for (uint32_t i = 0; i < f->n; i++, marker += RS_PATTERN_MARKER) {
		s->choice[i] = f->choice[i];
		if (s->choice[i].marker)
			s->choice[i].marker = strcpy(marker, f->marker[i]);
	}
	nseen++;
	return s;
}

static int holds(const struct rs_choice *c, uint32_t inside)
{
	if (c->builtin && __atomic_load_n(&quiet, __ATOMIC_RELAXED))
		return 0;
	if (c->inside >= 0 && !(inside >> c->inside & 1))
		return 0;
	return c->during < 0 || __atomic_load_n(&open_now[c->during], __ATOMIC_RELAXED);
}

static const struct rs_choice *choose(const struct rs_choice *c, uint32_t inside)
{
	while (!holds(c, inside))
		c++; /* the last one always holds */
	return c;
}

/* A text that is met for the first time, or not kept. */
static const struct rs_choice *read_new(const struct rs_domain *d, const char *text, size_t len,
					uint64_t hash, uint32_t inside, struct rs_reading *ret)
{
	const struct rs_choice *c;
	struct draft f;
	struct seen *s;
	uint64_t slot;

	pthread_mutex_lock(&lock);
	s = find(hash, &slot);
	if (!s) {
		draft(d, text, len, &f);
		s = comes_once(&f) ? NULL : keep(&f, hash);
		if (s)
			__atomic_store_n(&table[slot], s, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	if (s) {
		ret->contexts = s->contexts;
		return choose(s->choice, inside);
	}
	ret->contexts = f.contexts;
	c = choose(f.choice, inside);
	ret->own = *c;
	if (c->marker)
		ret->own.marker = strcpy(ret->buffer, c->marker);
	return &ret->own;
}

void rs_pattern_read(const struct rs_domain *d, const char *text, uint32_t inside,
		     struct rs_reading *ret)
{
	size_t len = strlen(text);
	uint64_t hash = hash_of(d, text, len), slot;
	const struct seen *s = find(hash, &slot);
	const struct rs_choice *c;

	if (rs_likely(s)) {
		ret->contexts = s->contexts;
		c = choose(s->choice, inside);
	} else {
		c = read_new(d, text, len, hash, inside, ret);
	}
	ret->choice = c;
	ret->marker = c->marker ? c->marker : text;
	if (c->tally)
		rs_tally_count(c->tally, patterns);
}

const char *rs_pattern_region(const struct rs_domain *d, const char *name,
			      char buffer[RS_PATTERN_MARKER])
{
	size_t len = strlen(name);
	const char *found = name;

	if (!d->bits.rules)
		return name;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < rs_patterns_count(patterns) && found == name; i++) {
		const struct rs_pattern_rule *r = rs_patterns_rule(patterns, i);

		if (d->bits.rules >> i & 1 &&
		    (r->kind == RS_PATTERN_STATE || r->kind == RS_PATTERN_OUTPUT) &&
		    !rs_pattern_marker(r, scratch, name, len, buffer))
			found = buffer;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

static void count(uint32_t contexts, uint32_t by)
{
	for (contexts &= during; contexts; contexts &= contexts - 1)
		__atomic_fetch_add(&open_now[__builtin_ctz(contexts)], by, __ATOMIC_RELAXED);
}

void rs_pattern_opened(uint32_t contexts)
{
	count(contexts, 1);
}

void rs_pattern_closed(uint32_t contexts)
{
	count(contexts, UINT32_MAX);
}

void rs_pattern_started(uint64_t id, uint32_t contexts)
{
	int err;

	contexts &= during;
	if (!contexts)
		return;
	pthread_mutex_lock(&lock);
	err = rs_handles_set(&process, (void *)(uintptr_t)(id + 1), (void *)(uintptr_t)contexts);
	pthread_mutex_unlock(&lock);
	if (!err)
		rs_pattern_opened(contexts);
}

void rs_pattern_ended(uint64_t id)
{
	const void *key = (void *)(uintptr_t)(id + 1);
	uintptr_t contexts;

	if (!during)
		return;
	pthread_mutex_lock(&lock);
	contexts = (uintptr_t)rs_handles_find(&process, key);
	rs_handles_set(&process, key, NULL);
	pthread_mutex_unlock(&lock);
	rs_pattern_closed((uint32_t)contexts);
}

void rs_pattern_quiet(void)
{
	if (!__atomic_exchange_n(&quiet, 1, __ATOMIC_RELAXED))
		rs_log(RS_LOG_INFO,
		       "segments are marked inside of ranges that the built-in rules take for some; "
		       "from now on these rules are not used");
}
