/* SPDX-License-Identifier: MIT */
/*
 * Python frames of the calling thread, read from the interpreter's own structures (CPython 3.8 to 3.14).
 *
 * Whoever calls the driver from Python has released the GIL as a rule: ctypes does, PyTorch does. The interpreter's functions
 * that give frames need it, and waiting for it here could stop the program for good. But a thread's own
 * frames, their code objects and the names in these do not change while the thread is in here, so they are read where they
 * lie. Where that is, is known for each version: from its headers up to 3.12, then from the table that the
 * interpreter has for debuggers. Only two functions are called, which read and nothing else: PyGILState_GetThisThreadState,
 * and PyCode_Addr2Line.
 *
 * Invariants: the first frames ever read are read by the kernel (process_vm_readv), which survives any address, and must
 * make sense: code objects are of the type PyCode_Type, names of PyUnicode_Type. If they do not, no frame is read any more
 * (a build with other structures). Types are compared ever after.
 * Callers: where.c, any thread. No locks, no memory, no references, no Python exceptions.
 */
#include "shim/where.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define MOST_FRAMES 1000u  /* interpreter's own ones among them */
#define MOST_TEXT   65536u /* of a name, in characters */

/* Byte offsets; 0 where there is none. */
struct layout {
	uint16_t thread_frame;		    /* thread state: innermost frame, or ... */
	uint16_t cframe;		    /* ... 1 + offset of it, in what is pointed to there */
	uint16_t previous, code, at, owner; /* of a frame; owner from 3.11 on */
	uint16_t file, name, first_line;    /* of a code object */
	uint16_t start; /* of its instructions: `at` is a pointer there, else a number ... */
	uint16_t scale; /* ... of so many bytes */
	uint16_t ascii; /* a string's head; others than ASCII have 16 or 24 bytes more */
	uint16_t compact;
};

static const struct layout layouts[] = {
	[8] = {24, 0, 24, 32, 104, 0, 104, 112, 40, 0, 1, 48, 72},
	[9] = {24, 0, 24, 32, 104, 0, 104, 112, 40, 0, 1, 48, 72},
	[10] = {24, 0, 24, 32, 96, 0, 104, 112, 40, 0, 2, 48, 72},
	[11] = {56, 9, 48, 32, 56, 69, 112, 128, 72, 184, 1, 48, 72},
	[12] = {56, 1, 8, 0, 56, 70, 112, 128, 68, 192, 1, 40, 56},
};
#define STRING_LENGTH 16
#define STRING_STATE  32
#define OBJECT_TYPE   8

/* The table for debuggers, as words: where in it the groups begin that are used here. */
#define COOKIE "xdebugpy"
static const struct {
	uint8_t thread, frame, code;
} tables[] = {[13] = {19, 28, 34}, [14] = {22, 31, 39}};

static struct {
	struct layout layout;
	void *(*thread_state)(void);
	int (*line_of)(const void *code, int at);
	const void *code_type, *text_type;
	const char *name; /* atomic; NULL: none is known */
	int known;	  /* atomic: what stands above is there */
	int trusted;	  /* atomic: 1: frames made sense; -1: they did not */
} python;

static int read_safely(void *to, const void *from, size_t bytes)
{
	struct iovec here = {to, bytes}, there = {(void *)(uintptr_t)from, bytes};

	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)bytes ? 0 : -1;
}

/* 0, or -1: there is nothing at that address. */
static int get(void *to, const void *from, size_t bytes)
{
	if (rs_unlikely(!__atomic_load_n(&python.trusted, __ATOMIC_RELAXED)))
		return read_safely(to, from, bytes);
	memcpy(to, from, bytes);
	return 0;
}

static const void *pointer(const void *object, unsigned offset)
{
	const void *p = NULL;

	return object && !get(&p, (const char *)object + offset, sizeof(p)) ? p : NULL;
}

static int is_of(const void *object, const void *type)
{
	return object && !((uintptr_t)object & 7) && pointer(object, OBJECT_TYPE) == type;
}

/* --- finding it ---------------------------------------------------------------------------------- */

static int find_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;

	(void)size;
	if (!slash || strncmp(slash, "/libpython3.", 12) ||
	    strlen(info->dlpi_name) >= sizeof(rs_state.self))
		return 0;
	strcpy(arg, info->dlpi_name);
	return 1;
}

static int count_loaded(struct dl_phdr_info *info, size_t size, void *arg)
{
	*(uint64_t *)arg = size > offsetof(struct dl_phdr_info, dlpi_adds) ? info->dlpi_adds : 0;
	return 1;
}

/* Has anything been loaded since the last look? */
static int is_news(void)
{
	static uint64_t loaded;
	uint64_t now = 0, before = loaded;

	dl_iterate_phdr(count_loaded, &now);
	loaded = now;
	return now != before;
}

/* A program that has loaded an interpreter for itself alone; the library stays then, as interpreters do. */
static void *embedded(void)
{
	char path[sizeof(rs_state.self)] = "";

	dl_iterate_phdr(find_object, path);
	return *path ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD | RTLD_LOCAL) : NULL;
}

static unsigned version_of(void *lib)
{
	const unsigned long *hex = rs_doors_dlsym(lib, "Py_Version");
	const char *(*text)(void);

	if (hex)
		return (unsigned)(*hex >> 16 & 0xffff);
	*(void **)&text = rs_doors_dlsym(lib, "Py_GetVersion");
	return text && !strncmp(text(), "3.", 2) ? 0x300u | (unsigned)atoi(text() + 2) : 0;
}

/* 0, or -1: not the table that is expected. */
static int from_table(const uint64_t *w, unsigned minor, struct layout *l)
{
	const uint64_t *thread, *frame, *code;

	if (!w || memcmp(w, COOKIE, 8) || w[1] >> 16 != (0x300u | minor) || w[2])
		return -1;
	thread = w + tables[minor].thread;
	frame = w + tables[minor].frame;
	code = w + tables[minor].code;
	*l = (struct layout){.thread_frame = (uint16_t)thread[4],
			     .previous = (uint16_t)frame[1],
			     .code = (uint16_t)frame[2],
			     .at = (uint16_t)frame[3],
			     .owner = (uint16_t)frame[5],
			     .file = (uint16_t)code[1],
			     .name = (uint16_t)code[3],
			     .first_line = (uint16_t)code[5],
			     .start = (uint16_t)code[9],
			     .scale = 1,
			     .ascii = 40,
			     .compact = 56};
	return 0;
}

static int find_layout(void *lib, unsigned minor)
{
	if (minor < sizeof(layouts) / sizeof(layouts[0])) {
		python.layout = layouts[minor];
		return layouts[minor].file ? 0 : -1;
	}
	if (minor >= sizeof(tables) / sizeof(tables[0]))
		return -1;
	return from_table(rs_doors_dlsym(lib, "_PyRuntime"), minor, &python.layout);
}

/* One thread at a time: at the start, and then at step markers, which one thread makes. */
void rs_where_python_look(void)
{
	static char name[64];
	static int looking;
	void *lib = RTLD_DEFAULT;
	unsigned version;

	if (__atomic_load_n(&python.name, __ATOMIC_ACQUIRE) ||
	    __atomic_exchange_n(&looking, 1, __ATOMIC_ACQUIRE))
		return;
	if (!is_news())
		goto out;
	if (!rs_doors_dlsym(lib, "PyGILState_GetThisThreadState"))
		lib = embedded();
	*(void **)&python.thread_state = rs_doors_dlsym(lib, "PyGILState_GetThisThreadState");
	*(void **)&python.line_of = rs_doors_dlsym(lib, "PyCode_Addr2Line");
	python.code_type = rs_doors_dlsym(lib, "PyCode_Type");
	python.text_type = rs_doors_dlsym(lib, "PyUnicode_Type");
	if (!python.thread_state || !python.line_of || !python.code_type || !python.text_type)
		goto out;
	version = version_of(lib);
	if (version >> 8 == 3 && !find_layout(lib, version & 255)) {
		snprintf(name, sizeof(name), "3.%u", version & 255);
		__atomic_store_n(&python.known, 1, __ATOMIC_RELEASE);
	} else {
		snprintf(name, sizeof(name), "%u.%u, whose frames cannot be read", version >> 8,
			 version & 255);
	}
	__atomic_store_n(&python.name, name, __ATOMIC_RELEASE);
out:
	__atomic_store_n(&looking, 0, __ATOMIC_RELEASE);
}

const char *rs_where_python_name(void)
{
	const char *name = __atomic_load_n(&python.name, __ATOMIC_ACQUIRE);

	return !name ? ""
	       : __atomic_load_n(&python.trusted, __ATOMIC_RELAXED) < 0
		       ? "of a build whose frames cannot be read"
		       : name;
}

/* --- frames -------------------------------------------------------------------------------------- */

static const void *innermost(const void *thread)
{
	const void *p = pointer(thread, python.layout.thread_frame);

	return python.layout.cframe ? pointer(p, python.layout.cframe - 1u) : p;
}

static int32_t where_at(const void *frame, const void *code)
{
	const struct layout *l = &python.layout;
	int32_t units = 0;
	int64_t bytes;

	if (!l->start)
		return get(&units, (const char *)frame + l->at, 4) ? -1 : units * l->scale;
	bytes = (const char *)pointer(frame, l->at) - ((const char *)code + l->start);
	return bytes >= 0 && bytes < 1 << 28 ? (int32_t)bytes : -1;
}

/* -1: that is not a frame. 0: one of the interpreter's own. */
static int read_frame(const void *frame, struct rs_where_pyframe *f)
{
	const struct layout *l = &python.layout;
	uint8_t owner = 0;

	if (l->owner && get(&owner, (const char *)frame + l->owner, 1))
		return -1;
	if (owner >= 3)
		return 0;
	/* a reference may have bits of its own in its lowest ones (3.14) */
	f->code = (const void *)((uintptr_t)pointer(frame, l->code) & ~(uintptr_t)3);
	if (!is_of(f->code, python.code_type))
		return -1;
	f->file = pointer(f->code, l->file);
	f->name = pointer(f->code, l->name);
	if (!is_of(f->file, python.text_type) || !is_of(f->name, python.text_type) ||
	    get(&f->first_line, (const char *)f->code + l->first_line, 4))
		return -1;
	f->at = where_at(frame, f->code);
	return 1;
}

unsigned rs_where_python(struct rs_where_pyframe *ret, unsigned most)
{
	const void *thread, *frame;
	unsigned n = 0, seen = 0;
	int trusted = __atomic_load_n(&python.trusted, __ATOMIC_RELAXED), r = 1;

	if (!__atomic_load_n(&python.known, __ATOMIC_ACQUIRE) || trusted < 0)
		return 0;
	thread = python.thread_state();
	frame = thread ? innermost(thread) : NULL;
	for (; frame && n < most && seen < MOST_FRAMES && r >= 0; seen++) {
		r = read_frame(frame, &ret[n]);
		n += r > 0;
		frame = r >= 0 ? pointer(frame, python.layout.previous) : NULL;
	}
	if (!trusted && (r < 0 || n))
		__atomic_store_n(&python.trusted, r < 0 ? -1 : 1, __ATOMIC_RELAXED);
	return r < 0 ? 0 : n;
}

/* --- text ---------------------------------------------------------------------------------------- */

/* Bytes of c in UTF-8, or 0 if they do not fit. Half of a pair is no character. */
static size_t put_utf8(char *out, size_t room, uint32_t c)
{
	static const uint8_t first[] = {0, 0, 0xc0, 0xe0, 0xf0};
	size_t n;

	c = (c >= 0xd800 && c < 0xe000) || c > 0x10ffff ? '?' : c;
	n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	if (n >= room)
		return 0;
	for (size_t i = n - 1; i > 0; i--, c >>= 6)
		out[i] = (char)(0x80 | (c & 63));
	out[0] = (char)(first[n] | c);
	return n;
}

static void put_text(const void *text, char *out, size_t size)
{
	const char *data = text;
	int64_t length = 0;
	uint32_t state = 0;
	size_t n = 0, put;
	unsigned kind;

	get(&length, data + STRING_LENGTH, 8);
	get(&state, data + STRING_STATE, 4);
	/* in 3.14 `interned` in front of the kind has 16 bits and not 2 */
	if (!(state & 0x1c))
		state >>= 14;
	kind = state >> 2 & 7;
	if (length > 0 && length < MOST_TEXT && state & 0x20 &&
	    (kind == 1 || kind == 2 || kind == 4)) {
		data += state & 0x40 ? python.layout.ascii : python.layout.compact;
		for (int64_t i = 0; i < length; i++) {
			uint32_t c = 0;

			memcpy(&c, data + i * kind, kind);
			put = put_utf8(out + n, size - n, c);
			if (!put)
				break;
			n += put;
		}
	}
	out[n] = '\0';
}

void rs_where_python_describe(const struct rs_where_pyframe *f, char *file, size_t file_size,
			      char *name, size_t name_size, unsigned *ret_line)
{
	int line = f->at >= 0 ? python.line_of(f->code, f->at) : -1;

	put_text(f->file, file, file_size);
	put_text(f->name, name, name_size);
	*ret_line = (unsigned)(line > 0 ? line : f->first_line > 0 ? f->first_line : 0);
}
