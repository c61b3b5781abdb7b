/* SPDX-License-Identifier: MIT */
/*
 * Stacks as numbers; see where.h.
 *
 * Invariants: an entry does not change once its number is out, but for `told`. Numbers are 1 to STACKS. Equal
 * digests are equal stacks: of 64 bits, among a thousand. Lines of modules and stacks come before the line
 * that names them, once each.
 * Locks: `lock`, a leaf, for the table and the modules. It is taken inside the loader's (dl_iterate_phdr), never the other way.
 */
#include "shim/where.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tracker/digest.h"

#define STACKS	1024u
#define MODULES 512u
#define UNKNOWN UINT32_MAX
#define OUTER	2u
#define BUILD	20u /* bytes of a build id that are told */

struct line {
	const char *file, *name; /* in the stack's text */
	unsigned line;
};

struct stack {
	uint64_t digest;
	unsigned n, npython;
	int told; /* atomic */
	struct rs_where_frame frame[RS_WHERE_MOST];
	struct line python[RS_WHERE_MOST];
};

struct module {
	char *path;
	char build[2 * BUILD + 1];
	int told; /* atomic */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct stack *stacks[STACKS];
static uint16_t hashed[2 * STACKS]; /* numbers, by digest */
static unsigned nstacks;
static struct module modules[MODULES];
static unsigned nmodules;
static unsigned most; /* frames of each kind; 0: nobody is asked */
static const char *unwinder = "";
static uint64_t asked, known, refused; /* atomic */

/* --- looking ------------------------------------------------------------------------------------- */

struct looked {
	uint64_t ip[RS_WHERE_MOST];
	struct rs_where_pyframe python[RS_WHERE_MOST];
	unsigned n, npython;
};

static uint64_t digest_of(const struct looked *l)
{
	uint64_t h = rs_digest_mix(l->n + ((uint64_t)l->npython << 32) + 1);

	for (unsigned i = 0; i < l->n; i++)
		h = rs_digest_mix(h * RS_DIGEST_K + l->ip[i]);
	for (unsigned i = 0; i < l->npython; i++) {
		const struct rs_where_pyframe *f = &l->python[i];

		/* a code object may be gone, and another one in its place */
		h = rs_digest_mix(h * RS_DIGEST_K + (uintptr_t)f->code);
		h = rs_digest_mix(h * RS_DIGEST_K + (uintptr_t)f->file + (uint64_t)f->at);
		h = rs_digest_mix(h * RS_DIGEST_K + (uintptr_t)f->name + (uint64_t)f->first_line);
	}
	return h;
}

/* The place of a digest among the hashed; lock held. */
static unsigned slot_of(uint64_t digest)
{
	unsigned i = digest % (2 * STACKS);

	while (hashed[i] && stacks[hashed[i] - 1]->digest != digest)
		i = (i + 1) % (2 * STACKS);
	return i;
}

static uint32_t find(uint64_t digest, int *ret_full)
{
	uint32_t id;

	pthread_mutex_lock(&lock);
	id = hashed[slot_of(digest)];
	*ret_full = nstacks == STACKS;
	pthread_mutex_unlock(&lock);
	return id;
}

static void hex(char *out, const uint8_t *bytes, unsigned n)
{
	static const char digit[] = "0123456789abcdef";

	for (unsigned i = 0; i < n && i < BUILD; i++) {
		*out++ = digit[bytes[i] >> 4];
		*out++ = digit[bytes[i] & 15];
	}
	*out = '\0';
}

static uint32_t module_of(const char *path, const uint8_t *build, unsigned build_bytes)
{
	char text[sizeof(modules[0].build)];
	unsigned i;

	hex(text, build, build_bytes);
	pthread_mutex_lock(&lock);
	for (i = 0; i < nmodules; i++)
		if (!strcmp(modules[i].path, path) && !strcmp(modules[i].build, text))
			break;
	if (i == nmodules && i < MODULES) {
		modules[i].path = strdup(path);
		strcpy(modules[i].build, text);
		nmodules += modules[i].path != NULL;
	}
	i = i < nmodules ? i + 1 : 0;
	pthread_mutex_unlock(&lock);
	return i;
}

/* Of the program itself, as far as one can tell: of no package, not of Python's library, not made at run time. */
static int is_own(const char *file)
{
	return *file != '<' && !strstr(file, "/site-packages/") &&
	       !strstr(file, "/dist-packages/") && !strstr(file, "/lib/python3.");
}

/*
 * The innermost frames; but the last two are left to the program's own, however far out, for below a framework
 * all stacks look alike.
 */
static void describe_python(struct stack *s, const struct looked *l)
{
	unsigned first = l->npython > most ? most - (most > OUTER ? OUTER : 0) : most;
	char file[1024], name[256], *text;

	for (unsigned i = 0; i < l->npython && s->npython < most; i++) {
		struct line *f = &s->python[s->npython];
		size_t nfile, nname;

		rs_where_python_describe(&l->python[i], file, sizeof(file), name, sizeof(name),
					 &f->line);
		if (i >= first && !is_own(file))
			continue;
		nfile = strlen(file) + 1;
		nname = strlen(name) + 1;
		text = malloc(nfile + nname);
		if (!text)
			break;
		f->file = memcpy(text, file, nfile);
		f->name = memcpy(text + nfile, name, nname);
		s->npython++;
	}
}

/* NULL: no memory. */
static struct stack *describe(const struct looked *l, uint64_t digest)
{
	struct stack *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->digest = digest;
	s->n = l->n;
	rs_where_native_describe(l->ip, l->n, s->frame, module_of);
	describe_python(s, l);
	return s;
}

static void drop(struct stack *s)
{
	for (unsigned i = 0; s && i < s->npython; i++)
		free((char *)(uintptr_t)s->python[i].file);
	free(s);
}

/* Its number; 0: there is no room. Another thread may have been there first. */
static uint32_t enter(struct stack *s)
{
	unsigned at, id;

	pthread_mutex_lock(&lock);
	at = slot_of(s->digest);
	id = hashed[at];
	if (!id && nstacks < STACKS) {
		stacks[nstacks++] = s;
		hashed[at] = (uint16_t)nstacks;
		id = nstacks;
		s = NULL;
	}
	pthread_mutex_unlock(&lock);
	drop(s);
	return id;
}

/* Apart from its caller: it has a large frame. */
__attribute__((noinline)) static uint32_t look(void)
{
	struct looked l;
	struct stack *s;
	uint64_t digest;
	uint32_t id;
	int full;

	l.n = rs_where_native(l.ip, most);
	l.npython = rs_where_python(l.python, RS_WHERE_MOST);
	if (!l.n && !l.npython)
		return 0;
	digest = digest_of(&l);
	id = find(digest, &full);
	if (id)
		return id;
	s = full ? NULL : describe(&l, digest);
	id = s ? enter(s) : 0;
	if (!id)
		__atomic_fetch_add(&refused, 1, __ATOMIC_RELAXED);
	return id;
}

static uint32_t now(void)
{
	uint32_t held = rs_tls ? rs_tls->where : 0, id = held ? held : look();

	if (id == UNKNOWN)
		id = 0;
	__atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED);
	if (id)
		__atomic_fetch_add(&known, 1, __ATOMIC_RELAXED);
	return id;
}

void rs_where_hold(struct rs_tls *t)
{
	if (most)
		t->where = look() ?: UNKNOWN;
}

/* --- telling ------------------------------------------------------------------------------------- */

static void tell_module(unsigned id)
{
	struct module *m = &modules[id - 1];
	struct rs_json j;

	if (__atomic_exchange_n(&m->told, 1, __ATOMIC_RELAXED))
		return;
	rs_json_begin(&j);
	rs_json_str(&j, "t", "module");
	rs_json_u64(&j, "module", id);
	rs_json_str(&j, "path", m->path);
	rs_json_str(&j, "build", m->build);
	rs_records_write(rs_state.records, RS_RECORD_EVENTS, &j);
}

/* Bytes of a text in JSON, at most. */
static size_t cost(const char *text)
{
	size_t n = 8;

	for (; *text; text++)
		n += (unsigned char)*text < 0x20 || *text == 0x7f ? 6
		     : *text == '"' || *text == '\\'		  ? 2
								  : 1;
	return n;
}

/* The innermost ones, as far as there is room for a whole frame. */
static void put_python(struct rs_json *j, const struct stack *s)
{
	rs_json_open(j, "python", '[');
	for (unsigned i = 0; i < s->npython; i++) {
		const struct line *f = &s->python[i];

		if (j->len + cost(f->file) + cost(f->name) + 200 > sizeof(j->text))
			break;
		rs_json_open(j, NULL, '[');
		rs_json_str(j, NULL, f->file);
		rs_json_u64(j, NULL, f->line);
		rs_json_str(j, NULL, f->name);
		rs_json_close(j, ']');
	}
	rs_json_close(j, ']');
}

static void told(uint32_t id)
{
	struct stack *s = stacks[id - 1];
	struct rs_json j;

	if (!rs_state.records || __atomic_exchange_n(&s->told, 1, __ATOMIC_RELAXED))
		return;
	for (unsigned i = 0; i < s->n; i++)
		if (s->frame[i].module)
			tell_module(s->frame[i].module);
	rs_json_begin(&j);
	rs_json_str(&j, "t", "stack");
	rs_json_u64(&j, "stack", id);
	rs_json_open(&j, "native", '[');
	for (unsigned i = 0; i < s->n; i++) {
		rs_json_open(&j, NULL, '[');
		rs_json_u64(&j, NULL, s->frame[i].module);
		rs_json_hex(&j, NULL, s->frame[i].offset);
		rs_json_close(&j, ']');
	}
	rs_json_close(&j, ']');
	put_python(&j, s);
	rs_records_write(rs_state.records, RS_RECORD_EVENTS, &j);
}

/* --- frame --------------------------------------------------------------------------------------- */

void rs_where_start(struct rs_engine_config *config)
{
	if (!rs_state.records || !rs_state.opt.stacks)
		return;
	most = rs_state.opt.stacks < RS_WHERE_MOST ? rs_state.opt.stacks : RS_WHERE_MOST;
	unwinder = rs_where_native_start();
	rs_where_python_look();
	config->where = now;
	config->where_told = told;
}

void rs_where_look(void)
{
	if (most)
		rs_where_python_look();
}

void rs_where_report(struct rs_json *j)
{
	unsigned n;

	if (!most)
		return;
	pthread_mutex_lock(&lock);
	n = nstacks;
	pthread_mutex_unlock(&lock);
	rs_json_u64(j, "stacks_asked", __atomic_load_n(&asked, __ATOMIC_RELAXED));
	rs_json_u64(j, "stacks_known", __atomic_load_n(&known, __ATOMIC_RELAXED));
	rs_json_u64(j, "stacks_refused", __atomic_load_n(&refused, __ATOMIC_RELAXED));
	rs_json_u64(j, "stacks", n);
	rs_json_str(j, "unwinder", unwinder);
	rs_json_str(j, "python", rs_where_python_name());
}
