/* SPDX-License-Identifier: MIT */
/*
 * See place.h. In one line a place is the innermost frame of the program itself, and the one that called it: what a framework
 * does below looks the same everywhere.
 */
#include "planner/place.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "planner/fmt.h"
#include "planner/symbols.h"

#define IN_A_LINE 2

/* --- reading ------------------------------------------------------------------------------------- */

static json_t *entry(json_t *table, json_int_t id)
{
	char key[24];

	snprintf(key, sizeof(key), "%" JSON_INTEGER_FORMAT, id);
	return json_object_get(table, key);
}

static void enter(json_t **table, json_int_t id, json_t *o)
{
	char key[24];

	snprintf(key, sizeof(key), "%" JSON_INTEGER_FORMAT, id);
	if (!*table)
		*table = json_object();
	json_object_set(*table, key, o);
}

void rs_place_forget(struct rs_run *run)
{
	json_decref(run->modules);
	json_decref(run->stacks);
	run->modules = run->stacks = NULL;
}

const char *rs_place_add_module(struct rs_run *run, json_t *o)
{
	const json_t *id = json_object_get(o, "module");

	if (!json_is_integer(id) || json_integer_value(id) <= 0)
		return "module";
	if (!json_is_string(json_object_get(o, "path")))
		return "path";
	if (!json_is_string(json_object_get(o, "build")))
		return "build";
	enter(&run->modules, json_integer_value(id), o);
	return NULL;
}

/* "0x1234"; 0: it is not that. */
static int is_hex(const json_t *value, uint64_t *ret)
{
	const char *text = json_string_value(value);
	char *end;

	if (!text || strncmp(text, "0x", 2) || !text[2] || strlen(text) > 18)
		return 0;
	*ret = strtoull(text + 2, &end, 16);
	return !*end && text[2] != '-' && text[2] != '+' && text[2] != ' ';
}

static int is_native(const json_t *frame)
{
	const json_t *module = json_array_get(frame, 0);
	uint64_t offset;

	return json_array_size(frame) >= 2 && json_is_integer(module) &&
	       json_integer_value(module) >= 0 && is_hex(json_array_get(frame, 1), &offset);
}

static int is_python(const json_t *frame)
{
	const json_t *line = json_array_get(frame, 1);

	return json_array_size(frame) >= 3 && json_is_string(json_array_get(frame, 0)) &&
	       json_is_integer(line) && json_integer_value(line) >= 0 &&
	       json_is_string(json_array_get(frame, 2));
}

static const char *bad_frames(const json_t *o, const char *key, int (*is_good)(const json_t *))
{
	const json_t *frames = json_object_get(o, key);

	if (!json_is_array(frames))
		return key;
	for (size_t i = 0; i < json_array_size(frames); i++)
		if (!is_good(json_array_get(frames, i)))
			return key;
	return NULL;
}

const char *rs_place_add_stack(struct rs_run *run, json_t *o)
{
	const json_t *id = json_object_get(o, "stack");
	const char *bad;

	if (!json_is_integer(id) || json_integer_value(id) <= 0)
		return "stack";
	bad = bad_frames(o, "native", is_native);
	if (!bad)
		bad = bad_frames(o, "python", is_python);
	if (!bad)
		enter(&run->stacks, json_integer_value(id), o);
	return bad;
}

json_int_t rs_place_of(const json_t *o)
{
	return json_integer_value(json_object_get(o, "stack"));
}

/* --- frames -------------------------------------------------------------------------------------- */

/* For people: both kinds alike. */
struct frame {
	const char *module; /* native; NULL: generated code */
	uint64_t offset;
	const char *file; /* NULL: not known */
	unsigned line;
	const char *function; /* NULL: not known */
	uint64_t plus;
};

static struct frame native_frame(const struct rs_run *run, const json_t *pair)
{
	const json_t *module = entry(run->modules, json_integer_value(json_array_get(pair, 0)));
	struct frame f = {.module = json_string_value(json_object_get(module, "path"))};
	struct rs_symbol symbol;

	is_hex(json_array_get(pair, 1), &f.offset);
	if (!f.module || !f.offset)
		return f;
	/* the address is where the call returns to */
	rs_symbols_find(f.module, json_string_value(json_object_get(module, "build")), f.offset - 1,
			&symbol);
	f.file = symbol.file;
	f.line = symbol.line;
	f.function = symbol.function;
	f.plus = symbol.function ? symbol.plus + 1 : 0;
	return f;
}

static struct frame python_frame(const json_t *triple)
{
	return (struct frame){
		.file = json_string_value(json_array_get(triple, 0)),
		.line = (unsigned)json_integer_value(json_array_get(triple, 1)),
		.function = json_string_value(json_array_get(triple, 2)),
	};
}

/* Of the program itself: of no package, no library of the system, not made at run time. */
static int is_own_file(const char *path)
{
	static const char *const other[] = {"/site-packages/", "/dist-packages/", "/lib/python3."};

	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		if (strstr(path, other[i]))
			return 0;
	return *path != '<' && !strstr(path, "/replayshim_hook/");
}

static int is_own_module(const char *path)
{
	static const char *const system[] = {"/lib", "/usr/lib", "/usr/local/cuda", "linux-vdso"};

	for (size_t i = 0; i < sizeof(system) / sizeof(system[0]); i++)
		if (!strncmp(path, system[i], strlen(system[i])))
			return 0;
	return is_own_file(path);
}

/* At most the last two parts of a path. */
static const char *short_path(const char *path)
{
	const char *last = strrchr(path, '/'), *p = last;

	if (!strncmp(path, "./", 2))
		return path + 2;
	if (*path != '/' || !last || last == path)
		return path;
	while (p > path && p[-1] != '/')
		p--;
	return p;
}

static void put_function(FILE *out, const char *name)
{
	rs_fmt_text(out, name);
	if (!strchr(name, '(') && *name != '<')
		fputs("()", out);
}

static void put_frame(FILE *out, const struct frame *f, int whole)
{
	if (f->file) {
		rs_fmt_text(out, whole ? f->file : short_path(f->file));
		fprintf(out, ":%u", f->line);
		if (f->function) {
			fputs(" in ", out);
			put_function(out, f->function);
		}
		if (!whole || !f->module)
			return;
		fputs("  (", out);
		rs_fmt_text(out, f->module);
		fprintf(out, "+0x%" PRIx64 ")", f->offset);
		return;
	}
	if (f->function) {
		put_function(out, f->function);
		fprintf(out, "+0x%" PRIx64 " in ", f->plus);
	}
	if (f->module)
		rs_fmt_text(out, whole ? f->module : short_path(f->module));
	if (!f->function || whole)
		fprintf(out, "%s0x%" PRIx64, f->module ? "+" : "", f->offset);
}

static size_t python_own(const json_t *frames, size_t from)
{
	while (from < json_array_size(frames) &&
	       !is_own_file(python_frame(json_array_get(frames, from)).file))
		from++;
	return from;
}

static size_t native_own(const struct rs_run *run, const json_t *frames, size_t from)
{
	for (; from < json_array_size(frames); from++) {
		struct frame f = native_frame(run, json_array_get(frames, from));

		if (f.module && is_own_module(f.module))
			break;
	}
	return from;
}

/* The frames to show in one line; how many. Of the program itself, else the innermost one. */
static int choose(const struct rs_run *run, const json_t *stack, struct frame chosen[IN_A_LINE])
{
	const json_t *python = json_object_get(stack, "python");
	const json_t *native = json_object_get(stack, "native");
	int is_py = json_array_size(python) > 0, n = 0;
	const json_t *frames = is_py ? python : native;
	size_t at = 0;

	for (; n < IN_A_LINE; n++, at++) {
		const json_t *f;

		at = is_py ? python_own(frames, at) : native_own(run, frames, at);
		f = json_array_get(frames, at);
		if (!f)
			break;
		chosen[n] = is_py ? python_frame(f) : native_frame(run, f);
	}
	if (n || !json_array_size(frames))
		return n;
	chosen[0] = is_py ? python_frame(json_array_get(frames, 0))
			  : native_frame(run, json_array_get(frames, 0));
	return 1;
}

char *rs_place_text(const struct rs_run *run, json_int_t id)
{
	const json_t *stack = entry(run->stacks, id);
	struct frame chosen[IN_A_LINE];
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int n;

	if (!out)
		return NULL;
	n = stack ? choose(run, stack, chosen) : 0;
	for (int i = 0; i < n; i++) {
		fputs(i ? " <- " : "", out);
		put_frame(out, &chosen[i], 0);
	}
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

void rs_place_print(FILE *out, const struct rs_run *run, json_int_t id, const char *indent)
{
	const json_t *stack = entry(run->stacks, id);
	const json_t *python = json_object_get(stack, "python");
	const json_t *native = json_object_get(stack, "native");

	for (size_t i = 0; i < json_array_size(python); i++) {
		struct frame f = python_frame(json_array_get(python, i));

		fprintf(out, "%s%-10s", indent, i ? "" : "python");
		put_frame(out, &f, 1);
		putc('\n', out);
	}
	for (size_t i = 0; i < json_array_size(native); i++) {
		struct frame f = native_frame(run, json_array_get(native, i));

		fprintf(out, "%s%-10s", indent, i ? "" : "native");
		put_frame(out, &f, 1);
		putc('\n', out);
	}
}

/* --- for machines -------------------------------------------------------------------------------- */

/* A name from a file may hold anything. */
static void set_text(json_t *o, const char *key, const char *text)
{
	json_t *value = text ? json_string(text) : NULL;

	if (value)
		json_object_set_new(o, key, value);
}

static json_t *frame_json(const struct frame *f, int native)
{
	json_t *o = json_object();
	char hex[24];

	if (native) {
		snprintf(hex, sizeof(hex), "0x%" PRIx64, f->offset);
		set_text(o, "module", f->module);
		set_text(o, "offset", hex);
	}
	set_text(o, "function", f->function);
	set_text(o, "file", f->file);
	if (f->file)
		json_object_set_new(o, "line", json_integer(f->line));
	return o;
}

json_t *rs_place_json(const struct rs_run *run, json_int_t id)
{
	const json_t *stack = entry(run->stacks, id);
	const json_t *python = json_object_get(stack, "python");
	const json_t *native = json_object_get(stack, "native");
	json_t *o, *list;

	if (!stack)
		return NULL;
	o = json_object();
	list = json_array();
	for (size_t i = 0; i < json_array_size(python); i++) {
		struct frame f = python_frame(json_array_get(python, i));

		json_array_append_new(list, frame_json(&f, 0));
	}
	json_object_set_new(o, "python", list);
	list = json_array();
	for (size_t i = 0; i < json_array_size(native); i++) {
		struct frame f = native_frame(run, json_array_get(native, i));

		json_array_append_new(list, frame_json(&f, 1));
	}
	json_object_set_new(o, "native", list);
	return o;
}
