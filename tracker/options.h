/* SPDX-License-Identifier: MIT */
/*
 * Options from the environment, by the table options.def.
 *
 * Parsing never fails: a bad value is reported with the variable's name and the default is kept; an
 * unknown REPLAYSHIM_* variable is reported with the nearest known name. Nothing is allocated: TEXT
 * values point into the environment strings or the table. No global state; any thread.
 */
#ifndef RS_TRACKER_OPTIONS_H
#define RS_TRACKER_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

enum rs_opt_type {
	RS_OPT_ENUM,
	RS_OPT_BOOL,
	RS_OPT_SIZE,
	RS_OPT_NUMBER,
	RS_OPT_TEXT,
	RS_OPT_TEMPLATE,
};

#define RS_OPT_C_ENUM	  unsigned
#define RS_OPT_C_BOOL	  unsigned
#define RS_OPT_C_SIZE	  uint64_t
#define RS_OPT_C_NUMBER	  uint32_t
#define RS_OPT_C_TEXT	  const char *
#define RS_OPT_C_TEMPLATE const char *

enum rs_opt_id {
#define OPT(field, NAME, type, def, choices, help) RS_OPT_ID_##NAME,
#include "tracker/options.def"
#undef OPT
	RS_OPT_COUNT
};

struct rs_options {
#define OPT(field, NAME, type, def, choices, help) RS_OPT_C_##type field;
#include "tracker/options.def"
#undef OPT
	/* The value as written; the default's text where it comes from there. */
	const char *text[RS_OPT_COUNT];
	uint8_t from_env[RS_OPT_COUNT];
};

struct rs_opt_info {
	const char *name; /* without REPLAYSHIM_ */
	enum rs_opt_type type;
	const char *def, *choices, *help;
};
extern const struct rs_opt_info rs_opt_info[RS_OPT_COUNT];

typedef void rs_options_report(void *arg, const char *line);

/* env as in environ(7). report may be NULL. Returns the number of complaints. */
int rs_options_parse(struct rs_options *ret_options, char *const *env, rs_options_report *report,
		     void *arg);
/* One line an option: name, value, origin, meaning. */
void rs_options_print(const struct rs_options *o, rs_options_report *report, void *arg);

/* Bytes with their unit, "48GiB"; "none" is 0. 0, -EINVAL, -ERANGE. */
int rs_options_size(const char *value, uint64_t *ret);

/* The value of an environment variable or NULL. */
const char *rs_options_env(char *const *env, const char *name);

struct rs_options_subst {
	char *const *env;
	long pid;
	long sequence;
	const char *host;
};

/* Rank, local rank and job of a launcher's environment (torchrun, Open MPI, Slurm). */
long rs_options_rank(char *const *env);
long rs_options_local_rank(char *const *env);
const char *rs_options_job(char *const *env);
long rs_options_ranks(char *const *env); /* of the job; 0: not told */

/*
 * Expand a template. -EINVAL for an unknown %, -ENOENT for a %q{VAR} that is not set, -ENAMETOOLONG.
 * On failure out is empty.
 */
int rs_options_expand(const char *text, const struct rs_options_subst *subst, char *out,
		      size_t size);

#endif
