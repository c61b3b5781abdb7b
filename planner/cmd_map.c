/* SPDX-License-Identifier: MIT */
/*
 * replayctl map: the crossover map, of the reference model or of a measured program's numbers. Exit status 0, 2, or 3 for
 * unreadable data or a file that cannot be written. No state.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "planner/costing_json.h"
#include "planner/ctl.h"
#include "planner/map.h"
#include "tracker/options.h"

typedef void write_fn(FILE *out, const struct rs_map_model *m, const struct rs_map *map);

static write_fn *format_of(const char *name)
{
	static const struct {
		const char *name;
		write_fn *fn;
	} formats[] = {{"text", rs_map_text}, {"csv", rs_map_csv}, {"svg", rs_map_svg}};

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (!strcmp(name, formats[i].name))
			return formats[i].fn;
	return NULL;
}

static int measured(const char *path, uint64_t budget, struct rs_map_model *ret)
{
	struct rs_contract_why why = {""};
	struct rs_costs c;
	const char *lacking;
	int r = rs_costs_open("map", path, &c, &why);

	if (r) {
		fprintf(stderr, "replayctl map: %s\n", why.text[0] ? why.text : strerror(-r));
		return RS_EXIT_UNREADABLE;
	}
	if (!rs_costs_ready(&c, &lacking)) {
		fprintf(stderr, "replayctl map: %s: %s\n", path, lacking);
		r = RS_EXIT_UNREADABLE;
	} else if (rs_map_measured(&c, budget, ret)) {
		fprintf(stderr,
			"replayctl map: %s: no segment that was replayed and makes anything\n",
			path);
		r = RS_EXIT_UNREADABLE;
	}
	rs_costs_free(&c);
	return r;
}

static int write_map(const char *path, write_fn *fn, const struct rs_map_model *m,
		     const struct rs_map *map)
{
	FILE *out = path ? fopen(path, "w") : stdout;
	int bad = !out;

	if (out)
		fn(out, m, map);
	if (out && path) {
		bad = ferror(out);
		bad |= fclose(out);
	}
	if (bad)
		fprintf(stderr, "replayctl map: %s: %s\n", path, strerror(errno));
	return bad ? RS_EXIT_UNREADABLE : RS_EXIT_CLEAN;
}

int rs_cmd_map(int argc, char **argv)
{
	static const struct option options[] = {{"format", required_argument, NULL, 'f'},
						{"out", required_argument, NULL, 'o'},
						{"budget", required_argument, NULL, 'b'},
						{NULL, 0, NULL, 0}};
	struct rs_map_model model = rs_map_reference;
	const char *path = NULL, *data;
	struct rs_map *map;
	write_fn *fn = rs_map_text;
	uint64_t budget = 0;
	int opt, status;

	while ((opt = getopt_long(argc, argv, "o:", options, NULL)) >= 0) {
		if (opt == 'o')
			path = optarg;
		else if (opt == 'f' && !(fn = format_of(optarg)))
			return rs_ctl_usage("map", RS_EXIT_USAGE,
					    "no such format: '%s'; text, csv and svg are", optarg);
		else if (opt == 'b' && (rs_options_size(optarg, &budget) || !budget))
			return rs_ctl_usage("map", RS_EXIT_USAGE,
					    "'%s' is no size; 48GiB is one, for example", optarg);
		else if (opt == '?')
			return rs_ctl_bad_option("map", RS_EXIT_USAGE);
	}
	data = optind < argc ? argv[optind++] : NULL;
	if (optind < argc)
		return rs_ctl_usage("map", RS_EXIT_USAGE, "no argument '%s'", argv[optind]);
	if (budget && !data)
		return rs_ctl_usage("map", RS_EXIT_USAGE, "--budget is of a program: of which?");
	status = data ? measured(data, budget, &model) : 0;
	if (status)
		return status;
	map = calloc(1, sizeof(*map));
	if (!map || rs_map_make(&model, map)) {
		fprintf(stderr, "replayctl map: %s\n", strerror(ENOMEM));
		status = RS_EXIT_UNREADABLE;
	} else {
		status = write_map(path, fn, &model, map);
	}
	free(map);
	return status;
}
