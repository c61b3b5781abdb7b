/* SPDX-License-Identifier: MIT */
/*
 * replayctl contract: from the data of a run that learned (REPLAYSHIM_LEARN=1) to a contract, on stdout or in a
 * file. Several processes of one run are merged, see contract.h. Exit status 0, 2 or 3. No state.
 */
#include <string.h>

#include "planner/contract.h"
#include "planner/ctl.h"

int rs_cmd_contract(int argc, char **argv)
{
	static const struct option options[] = {{"out", required_argument, NULL, 'o'},
						{"force", no_argument, NULL, 'f'},
						{NULL, 0, NULL, 0}};
	struct rs_contract_why why = {""};
	json_t *contract = NULL;
	const char *out = NULL;
	int opt, force = 0, r;

	while ((opt = getopt_long(argc, argv, "o:", options, NULL)) >= 0) {
		if (opt == 'o')
			out = optarg;
		else if (opt == 'f')
			force = 1;
		else
			return rs_ctl_bad_option("contract", RS_EXIT_USAGE);
	}
	if (argc - optind != 1)
		return rs_ctl_usage("contract", RS_EXIT_USAGE, "one directory, or one contract");
	r = rs_contract_open(argv[optind], &contract, &why);
	if (!r && out)
		r = rs_contract_write(out, contract, force, &why);
	if (!r && !out) {
		json_dumpf(contract, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
		putchar('\n');
	}
	json_decref(contract);
	if (!r)
		return RS_EXIT_CLEAN;
	fprintf(stderr, "replayctl contract: %s\n", why.text[0] ? why.text : strerror(-r));
	return RS_EXIT_UNREADABLE;
}
