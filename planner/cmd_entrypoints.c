/* SPDX-License-Identifier: MIT */
/*
 * replayctl entrypoints: which driver functions the library intercepts, how, and why not the others.
 *
 * The rows are those that the library was built from: entry_rows.inc is made from shim/entry_points.def
 * and shim/passive.def by scripts/make-entries. No run data is read.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "planner/ctl.h"

/* Group and action of what is not intercepted. */
#define PASSIVE_GROUP  "H"
#define PASSIVE_TITLE  "not intercepted"
#define PASSIVE_ACTION "PASSIVE"

struct entry {
	const char *symbol, *group, *action;
	unsigned since;		   /* cudaVersion; 0: not kept for passive ones */
	const char *flavour, *why; /* why: the reason of a passive one */
};

static const struct entry entries[] = {
#define EP(symbol, group, action, since, flavour) {#symbol, #group, #action, since, #flavour, NULL},
#define PASSIVE(symbol, reason)			  {#symbol, PASSIVE_GROUP, PASSIVE_ACTION, 0, "PLAIN", #reason},
#include "planner/entry_rows.inc"
};

struct text {
	const char *key, *key2, *text;
};

static const struct text groups[] = {
#define GROUP(group, title) {#group, "", title},
#include "planner/entry_rows.inc"
	{PASSIVE_GROUP, "", PASSIVE_TITLE},
};

static const struct text abouts[] = {
#define ABOUT(group, action, text) {#group, #action, text},
#include "planner/entry_rows.inc"
};

static const struct text actions[] = {
#define ACTION(action, text) {#action, "", text},
#include "planner/entry_rows.inc"
};

static const struct text reasons[] = {
#define REASON(id, text) {#id, "", text},
#include "planner/entry_rows.inc"
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const char *find(const struct text *table, size_t n, const char *key, const char *key2)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(table[i].key, key) && !strcmp(table[i].key2, key2))
			return table[i].text;
	return NULL;
}

static const char *what(const struct entry *e)
{
	const char *text;

	if (e->why)
		return find(reasons, COUNT(reasons), e->why, "");
	text = find(abouts, COUNT(abouts), e->group, e->action);
	return text ? text : find(actions, COUNT(actions), e->action, "");
}

/* Words of the tables are upper case; what is printed is not. */
static const char *lower(char out[16], const char *word)
{
	size_t i;

	for (i = 0; i < 15 && word[i]; i++)
		out[i] = word[i] >= 'A' && word[i] <= 'Z' ? word[i] | 32 : word[i];
	out[i] = '\0';
	return out;
}

static unsigned of_action(const char *action, const char *group)
{
	unsigned n = 0;

	for (size_t i = 0; i < COUNT(entries); i++)
		n += !strcmp(entries[i].action, action) &&
		     (!group || !strcmp(entries[i].group, group));
	return n;
}

static void print_text(const char *group)
{
	char action[16], flavour[16], since[16];
	unsigned all = 0;

	printf("%-52s %-5s %-8s %-6s %-7s %s\n", "symbol", "group", "action", "since", "flavour",
	       "what is done");
	for (size_t i = 0; i < COUNT(entries); i++) {
		const struct entry *e = &entries[i];

		if (group && strcmp(e->group, group))
			continue;
		all++;
		snprintf(since, sizeof(since), "%u.%u", e->since / 1000, e->since % 1000 / 10);
		printf("%-52s %-5s %-8s %-6s %-7s %s\n", e->symbol, e->group,
		       lower(action, e->action), e->since ? since : "-", lower(flavour, e->flavour),
		       what(e));
	}
	printf("%u functions:", all);
	for (size_t i = 0; i < COUNT(actions); i++)
		printf("%s %u %s", i ? "," : "", of_action(actions[i].key, group),
		       lower(action, actions[i].key));
	if (group)
		printf(" (%s: %s)", group, find(groups, COUNT(groups), group, ""));
	putchar('\n');
}

static json_t *texts(const struct text *table, size_t n, int is_action, const char *group)
{
	json_t *o = json_object();
	char word[16];

	for (size_t i = 0; i < n; i++)
		if (is_action || !group || !strcmp(table[i].key, group))
			json_object_set_new(o, is_action ? lower(word, table[i].key) : table[i].key,
					    json_string(table[i].text));
	return o;
}

static void print_json(const char *group)
{
	json_t *list = json_array(), *o, *counts = json_object();
	char action[16], flavour[16];

	for (size_t i = 0; i < COUNT(entries); i++) {
		const struct entry *e = &entries[i];

		if (group && strcmp(e->group, group))
			continue;
		o = json_pack("{s:s, s:s, s:s, s:i, s:s, s:s}", "symbol", e->symbol, "group",
			      e->group, "action", lower(action, e->action), "since", (int)e->since,
			      "flavour", lower(flavour, e->flavour), "what", what(e));
		json_array_append_new(list, o);
	}
	for (size_t i = 0; i < COUNT(actions); i++)
		json_object_set_new(counts, lower(action, actions[i].key),
				    json_integer(of_action(actions[i].key, group)));
	o = json_object();
	json_object_set_new(o, "v", json_integer(1));
	json_object_set_new(o, "groups", texts(groups, COUNT(groups), 0, group));
	json_object_set_new(o, "actions", texts(actions, COUNT(actions), 1, NULL));
	json_object_set_new(o, "counts", counts);
	json_object_set_new(o, "entrypoints", list);
	json_dumpf(o, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(o);
}

int rs_cmd_entrypoints(int argc, char **argv)
{
	static const struct option options[] = {
		{"group", required_argument, NULL, 'g'}, {"json", no_argument, NULL, 'j'}, {0}};
	const char *group = NULL;
	int json = 0, c;

	while ((c = getopt_long(argc, argv, "+", options, NULL)) >= 0) {
		if (c == 'j') {
			json = 1;
			continue;
		}
		if (c != 'g')
			return rs_ctl_bad_option("entrypoints", RS_EXIT_USAGE);
		group = NULL;
		for (size_t i = 0; i < COUNT(groups); i++)
			if (!strcasecmp(groups[i].key, optarg))
				group = groups[i].key;
		if (group)
			continue;
		fprintf(stderr, "replayctl entrypoints: there is no group '%s'; there are", optarg);
		for (size_t i = 0; i < COUNT(groups); i++)
			fprintf(stderr, "%s %s", i ? "," : "", groups[i].key);
		fputc('\n', stderr);
		return RS_EXIT_USAGE;
	}
	if (optind < argc)
		return rs_ctl_usage("entrypoints", RS_EXIT_USAGE, "no argument '%s'", argv[optind]);
	if (json)
		print_json(group);
	else
		print_text(group);
	return RS_EXIT_CLEAN;
}
