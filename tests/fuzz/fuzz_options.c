/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: options from an environment, and templates. The first line of the input is a template, the others are
 * the environment. Parsing always gives values that are in their type's range; what an expansion leaves is a string
 * that fits, and an empty one if it failed.
 * Seeds: tests/fuzz/corpus/fuzz_options. No state between inputs, no locks.
 */
#include "tracker/options.h"

#include <stdlib.h>
#include <string.h>

#define MOST_VARIABLES 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int good)
{
	if (!good)
		abort();
}

static void count(void *arg, const char *line)
{
	++*(int *)arg;
	require(*line && strlen(line) < 4096);
}

static unsigned choices(const char *text)
{
	unsigned n = 1;

	for (; *text; text++)
		n += *text == '|';
	return n;
}

static void check_values(const struct rs_options *o)
{
#define VALUE_ENUM(field, list)	    require(o->field < choices(list))
#define VALUE_BOOL(field, list)	    require(o->field < 2)
#define VALUE_SIZE(field, list)	    (void)o->field
#define VALUE_NUMBER(field, list)   (void)o->field
#define VALUE_TEXT(field, list)	    require(o->field != NULL)
#define VALUE_TEMPLATE(field, list) require(o->field != NULL)
#define OPT(field, NAME, type, def, list, help)                                                    \
	VALUE_##type(field, list);                                                                 \
	require(o->text[RS_OPT_ID_##NAME] != NULL);
#include "tracker/options.def"
#undef OPT
}

static void expand(const char *text, char *const *env)
{
	static const size_t sizes[] = {0, 1, 2, 40, 4096};
	struct rs_options_subst s = {.env = env, .pid = 4711, .sequence = 3, .host = "host"};

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		char *out = malloc(sizes[i] + 1);
		int r;

		if (!out)
			return;
		out[sizes[i]] = '!';
		r = rs_options_expand(text, &s, out, sizes[i]);
		require(out[sizes[i]] == '!');
		require(!sizes[i] ? r != 0 : strlen(out) < sizes[i] && (!r || !*out));
		free(out);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *env[MOST_VARIABLES + 1], *line, *rest;
	int complaints, said = 0;
	struct rs_options o;
	unsigned n = 0;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	rest = text;
	line = strsep(&rest, "\n");
	while (rest && n < MOST_VARIABLES)
		env[n++] = strsep(&rest, "\n");
	env[n] = NULL;
	complaints = rs_options_parse(&o, env, count, &said);
	require(complaints == said);
	check_values(&o);
	said = 0;
	rs_options_print(&o, count, &said);
	require(said >= RS_OPT_COUNT);
	require(rs_options_rank(env) >= 0 && rs_options_local_rank(env) >= 0);
	expand(line, env);
	expand(o.out, env);
	free(text);
	return 0;
}
