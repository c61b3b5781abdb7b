/* SPDX-License-Identifier: MIT */
/*
 * Launchers' variables, and templates with % (options.h). Pure functions of their arguments.
 */
#include "tracker/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *rs_options_env(char *const *env, const char *name)
{
	size_t len = strlen(name);

	for (; env && *env; env++)
		if (!strncmp(*env, name, len) && (*env)[len] == '=')
			return *env + len + 1;
	return NULL;
}

static const char *first_of(char *const *env, const char *const *names)
{
	for (; *names; names++) {
		const char *value = rs_options_env(env, *names);

		if (value && *value)
			return value;
	}
	return NULL;
}

static long number_of(const char *text)
{
	char *end;
	long v = text ? strtol(text, &end, 10) : 0;

	return text && !*end && v >= 0 ? v : 0;
}

long rs_options_rank(char *const *env)
{
	static const char *const names[] = {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", NULL};

	return number_of(first_of(env, names));
}

long rs_options_ranks(char *const *env)
{
	static const char *const names[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS",
					    NULL};

	return number_of(first_of(env, names));
}

long rs_options_local_rank(char *const *env)
{
	static const char *const names[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
					    "SLURM_LOCALID", NULL};

	return number_of(first_of(env, names));
}

const char *rs_options_job(char *const *env)
{
	static const char *const names[] = {"TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", NULL};
	const char *job = first_of(env, names);

	return job ? job : "0";
}

/* The text of one % item; *ret_len: how much of `item` it used up, the % included. */
static int expand_item(const char *item, const struct rs_options_subst *s, char *number,
		       size_t number_size, const char **ret_text, size_t *ret_len)
{
	char name[128];
	const char *end;

	*ret_len = 2;
	*ret_text = number;
	switch (item[1]) {
	case 'p':
		snprintf(number, number_size, "%ld", s->pid);
		return 0;
	case 'n':
		snprintf(number, number_size, "%ld", s->sequence);
		return 0;
	case 'r':
		snprintf(number, number_size, "%ld", rs_options_rank(s->env));
		return 0;
	case 'l':
		snprintf(number, number_size, "%ld", rs_options_local_rank(s->env));
		return 0;
	case 'h':
		*ret_text = s->host;
		return 0;
	case 'j':
		*ret_text = rs_options_job(s->env);
		return 0;
	case '%':
		*ret_text = "%";
		return 0;
	case 'q':
		end = item[2] == '{' ? strchr(item + 3, '}') : NULL;
		if (!end || (size_t)(end - item - 3) >= sizeof(name))
			return -EINVAL;
		snprintf(name, sizeof(name), "%.*s", (int)(end - item - 3), item + 3);
		*ret_len = (size_t)(end + 1 - item);
		*ret_text = rs_options_env(s->env, name);
		return *ret_text ? 0 : -ENOENT;
	default:
		return -EINVAL;
	}
}

int rs_options_expand(const char *text, const struct rs_options_subst *subst, char *out,
		      size_t size)
{
	size_t len = 0;
	char number[32];

	if (!size)
		return -ENAMETOOLONG;
	while (*text) {
		const char *piece = text;
		size_t used = 1, n = 1;
		int r = 0;

		if (*text == '%') {
			r = expand_item(text, subst, number, sizeof(number), &piece, &used);
			n = r ? 0 : strlen(piece);
		}
		if (!r && n >= size - len)
			r = -ENAMETOOLONG;
		if (r) {
			out[0] = '\0';
			return r;
		}
		memcpy(out + len, piece, n);
		len += n;
		text += used;
	}
	out[len] = '\0';
	return 0;
}
