/* SPDX-License-Identifier: MIT */
/*
 * See options.h. Pure functions of their arguments: callers are the shim (at start) and tests.
 */
#include "tracker/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PREFIX	   "REPLAYSHIM_"
#define PREFIX_LEN (sizeof(PREFIX) - 1)

const struct rs_opt_info rs_opt_info[RS_OPT_COUNT] = {
#define OPT(field, NAME, type, def, choices, help)                                                 \
	[RS_OPT_ID_##NAME] = {#NAME, RS_OPT_##type, def, choices, help},
#include "tracker/options.def"
#undef OPT
};

/* The storage of an option; which type it has is the table's business. */
static void *field_of(struct rs_options *o, enum rs_opt_id id)
{
	switch (id) {
#define OPT(field, NAME, type, def, choices, help)                                                 \
	case RS_OPT_ID_##NAME:                                                                     \
		return &o->field;
#include "tracker/options.def"
#undef OPT
	case RS_OPT_COUNT:
		break;
	}
	return NULL;
}

static int parse_enum(const char *value, const char *choices, unsigned *ret)
{
	size_t len = strlen(value);

	for (unsigned i = 0; *choices; i++) {
		size_t n = strcspn(choices, "|");

		if (n == len && !memcmp(choices, value, n)) {
			*ret = i;
			return 0;
		}
		choices += n + (choices[n] == '|');
	}
	return -EINVAL;
}

int rs_options_size(const char *value, uint64_t *ret)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	uint64_t v = 0;
	const char *p = value;

	if (!strcmp(value, "none")) {
		*ret = 0;
		return 0;
	}
	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(v, 10u, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return -ERANGE;
	if (p == value)
		return -EINVAL;
	for (unsigned i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (strcmp(p, units[i]))
			continue;
		if (v > UINT64_MAX >> 10 * i)
			return -ERANGE;
		*ret = v << 10 * i;
		return 0;
	}
	return -EINVAL;
}

/* off: what counts as 0, by that name, or "". */
static int parse_number(const char *value, const char *off, uint32_t *ret)
{
	uint32_t v = 0;
	const char *p;

	if (*off && !strcmp(value, off)) {
		*ret = 0;
		return 0;
	}

	for (p = value; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(v, 10u, &v) ||
		    __builtin_add_overflow(v, (uint32_t)(*p - '0'), &v))
			return -ERANGE;
	if (p == value || *p)
		return -EINVAL;
	*ret = v;
	return 0;
}

static int parse_value(struct rs_options *o, enum rs_opt_id id, const char *value)
{
	const struct rs_opt_info *info = &rs_opt_info[id];
	void *field = field_of(o, id);
	int r = 0;

	switch (info->type) {
	case RS_OPT_ENUM:
		r = parse_enum(value, info->choices, field);
		break;
	case RS_OPT_BOOL:
		r = parse_enum(value, "0|1", field);
		break;
	case RS_OPT_SIZE:
		r = rs_options_size(value, field);
		break;
	case RS_OPT_NUMBER:
		r = parse_number(value, info->choices, field);
		break;
	case RS_OPT_TEXT:
	case RS_OPT_TEMPLATE:
		*(const char **)field = value;
		break;
	}
	if (!r)
		o->text[id] = value;
	return r;
}

static const char *expected(const struct rs_opt_info *info)
{
	switch (info->type) {
	case RS_OPT_ENUM:
		return info->choices;
	case RS_OPT_BOOL:
		return "0|1";
	case RS_OPT_SIZE:
		return "a number with a unit (B KiB MiB GiB TiB), or none";
	case RS_OPT_NUMBER:
		return *info->choices ? "a number or off" : "a number";
	default:
		return "text";
	}
}

/* Edit distance, for names of at most 31 characters; longer ones are far from everything. */
static unsigned distance(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);
	unsigned row[32];

	if (n > 31 || m > 31)
		return 99;
	for (unsigned j = 0; j <= m; j++)
		row[j] = j;
	for (unsigned i = 1; i <= n; i++) {
		unsigned diagonal = row[0];

		row[0] = i;
		for (unsigned j = 1; j <= m; j++) {
			unsigned above = row[j], v = diagonal + (a[i - 1] != b[j - 1]);

			if (above + 1 < v)
				v = above + 1;
			if (row[j - 1] + 1 < v)
				v = row[j - 1] + 1;
			row[j] = v;
			diagonal = above;
		}
	}
	return row[m];
}

static void report_unknown(const char *entry, size_t len, rs_options_report *report, void *arg)
{
	unsigned best = 0, best_distance = 99;
	char name[64], line[256];

	snprintf(name, sizeof(name), "%.*s", (int)(len - PREFIX_LEN), entry + PREFIX_LEN);
	for (unsigned i = 0; i < RS_OPT_COUNT; i++) {
		unsigned d = distance(name, rs_opt_info[i].name);

		if (d < best_distance) {
			best_distance = d;
			best = i;
		}
	}
	snprintf(line, sizeof(line), PREFIX "%s: no such option%s%s%s", name,
		 best_distance <= 4 ? "; did you mean " PREFIX : "",
		 best_distance <= 4 ? rs_opt_info[best].name : "", best_distance <= 4 ? "?" : "");
	report(arg, line);
}

int rs_options_parse(struct rs_options *ret_options, char *const *env, rs_options_report *report,
		     void *arg)
{
	char line[512];
	int complaints = 0;

	memset(ret_options, 0, sizeof(*ret_options));
	for (unsigned i = 0; i < RS_OPT_COUNT; i++)
		parse_value(ret_options, (enum rs_opt_id)i, rs_opt_info[i].def);
	for (; env && *env; env++) {
		const char *eq = strchr(*env, '=');
		unsigned i;
		size_t len;

		if (!eq || strncmp(*env, PREFIX, PREFIX_LEN))
			continue;
		len = (size_t)(eq - *env);
		for (i = 0; i < RS_OPT_COUNT; i++)
			if (strlen(rs_opt_info[i].name) == len - PREFIX_LEN &&
			    !memcmp(rs_opt_info[i].name, *env + PREFIX_LEN, len - PREFIX_LEN))
				break;
		if (i == RS_OPT_COUNT) {
			complaints++;
			if (report)
				report_unknown(*env, len, report, arg);
		} else if (!parse_value(ret_options, (enum rs_opt_id)i, eq + 1)) {
			ret_options->from_env[i] = 1;
		} else {
			complaints++;
			snprintf(line, sizeof(line), "%.*s=%s: expected %s; using %s", (int)len,
				 *env, eq + 1, expected(&rs_opt_info[i]), rs_opt_info[i].def);
			if (report)
				report(arg, line);
		}
	}
	return complaints;
}

void rs_options_print(const struct rs_options *o, rs_options_report *report, void *arg)
{
	char line[512];

	for (unsigned i = 0; i < RS_OPT_COUNT; i++) {
		const struct rs_opt_info *info = &rs_opt_info[i];

		snprintf(line, sizeof(line), PREFIX "%s=%s (%s)  %s%s%s%s", info->name, o->text[i],
			 o->from_env[i] ? "environment" : "default", info->help,
			 *info->choices ? " [" : "", info->choices, *info->choices ? "]" : "");
		report(arg, line);
	}
}
