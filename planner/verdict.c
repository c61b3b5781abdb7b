/* SPDX-License-Identifier: MIT */
/*
 * Rules of the verdict. A hazard is something that was seen to be wrong; whatever keeps the tool from
 * knowing is "cannot tell", never "clean": no replay at all, a rejection, an unknown comparison,
 * events lost, lines that cannot be read, code that may have called the driver unseen. Launches of unknown kernels are no
 * such gap: they count as writers of everything, and the replays around them are compared like any other. Nor are
 * names that were asked for and that the tool does not know: a runtime that is newer than the tool asks for all of its
 * own in every program; memory that one of them makes is RS060 where a segment uses it. Callers: the report commands.
 * No state.
 */
#include "planner/verdict.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *rs_verdict_word(enum rs_verdict v)
{
	static const char *const words[] = {"clean", "cannot-tell", "hazard"};

	return words[v];
}

const char *rs_verdict_phrase(enum rs_verdict v)
{
	static const char *const phrases[] = {"CLEAN in what was observed", "CANNOT TELL",
					      "HAZARD"};

	return phrases[v];
}

static uint64_t unknown_in(const uint64_t seen[3][3])
{
	return seen[RS_RUN_ENTRY][RS_RUN_UNKNOWN] + seen[RS_RUN_PRODUCT][RS_RUN_UNKNOWN] +
	       seen[RS_RUN_AFTER][RS_RUN_UNKNOWN];
}

enum rs_verdict rs_verdict_segment(const struct rs_run_segment *s)
{
	if (s->outcome[RS_RUN_DIVERGENCE] || s->errors)
		return RS_VERDICT_HAZARD;
	if (s->outcome[RS_RUN_REJECTION] || s->doubts || !s->replays || unknown_in(s->seen))
		return RS_VERDICT_CANNOT_TELL;
	return RS_VERDICT_CLEAN;
}

uint64_t rs_verdict_count(const struct rs_run *run, enum rs_severity severity)
{
	uint64_t n = 0;

	for (size_t i = 0; i < run->nfindings; i++)
		n += run->findings[i].severity == severity;
	return n;
}

__attribute__((format(printf, 2, 3))) static void reason(json_t *reasons, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_array_append_new(reasons, json_string(text));
}

/* Errors with no segment to their name count for the run. */
static uint64_t loose_errors(const struct rs_run *run, int doubt)
{
	uint64_t n = 0;

	for (size_t i = 0; i < run->nfindings; i++) {
		const struct rs_run_finding *f = &run->findings[i];

		n += f->severity == RS_ERROR && !*f->segment && f->doubt == doubt;
	}
	return n;
}

/* What the run says there, if it says it. */
static const char *word_of(const json_t *o, const char *key)
{
	const char *word = json_string_value(json_object_get(o, key));

	return word ? word : "no reason is given";
}

static enum rs_verdict gaps(const struct rs_run *run, json_t *reasons)
{
	json_int_t lost = json_integer_value(json_object_get(run->stats, "lost"));
	json_int_t internal = json_integer_value(json_object_get(run->stats, "internal_errors"));
	json_int_t foreign = json_integer_value(json_object_get(run->stats, "foreign_names"));
	size_t before = json_array_size(reasons);

	if (json_is_string(json_object_get(run->contract, "status")) &&
	    strcmp(json_string_value(json_object_get(run->contract, "status")), "enforced"))
		reason(reasons, "the contract was refused, the run went on without: %s",
		       word_of(run->contract, "text"));
	if (json_integer_value(json_object_get(run->markers, "errors")))
		reason(reasons, "%" JSON_INTEGER_FORMAT " marker rules were left out: %s",
		       json_integer_value(json_object_get(run->markers, "errors")),
		       word_of(run->markers, "text"));
	if (json_integer_value(json_object_get(run->markers, "wrongs")))
		reason(reasons,
		       "%" JSON_INTEGER_FORMAT
		       " ranges look like markers and are none, such as \"%s\": %s",
		       json_integer_value(json_object_get(run->markers, "wrongs")),
		       word_of(run->markers, "wrong"), word_of(run->markers, "why"));
	if (!run->replays && json_object_size(run->ranges))
		reason(reasons,
		       "no replay was seen, so nothing was judged; replayctl markers lists the "
		       "ranges that there were, for rules");
	else if (!run->replays)
		reason(reasons, "no replay was seen, so nothing was judged");
	if (run->outcome[RS_RUN_REJECTION])
		reason(reasons, "%" PRIu64 " of %" PRIu64 " replays were rejected",
		       run->outcome[RS_RUN_REJECTION], run->replays);
	if (loose_errors(run, 1))
		reason(reasons, "%" PRIu64 " findings without a segment say so",
		       loose_errors(run, 1));
	if (unknown_in(run->seen))
		reason(reasons, "%" PRIu64 " comparisons of entry, product or state are unknown",
		       unknown_in(run->seen));
	if (lost)
		reason(reasons, "%" JSON_INTEGER_FORMAT " events were lost", lost);
	if (internal)
		reason(reasons, "the tool met %" JSON_INTEGER_FORMAT " internal errors", internal);
	if (foreign)
		reason(reasons,
		       "%" JSON_INTEGER_FORMAT " look-ups gave driver functions of another library "
		       "than the driver in use",
		       foreign);
	if (run->bad_lines)
		reason(reasons, "%" PRIu64 " lines of the run's files could not be read",
		       run->bad_lines);
	return json_array_size(reasons) > before ? RS_VERDICT_CANNOT_TELL : RS_VERDICT_CLEAN;
}

enum rs_verdict rs_verdict_run(const struct rs_run *run, json_t **ret_reasons)
{
	enum rs_verdict verdict = RS_VERDICT_CLEAN, more;
	uint64_t hazards = 0, doubts = 0, loose = loose_errors(run, 0);
	json_t *reasons = json_array();

	for (size_t i = 0; i < run->nsegments; i++) {
		enum rs_verdict v = rs_verdict_segment(&run->segments[i]);

		hazards += v == RS_VERDICT_HAZARD;
		doubts += v == RS_VERDICT_CANNOT_TELL;
		verdict = v > verdict ? v : verdict;
	}
	if (hazards)
		reason(reasons,
		       "%" PRIu64 " of %zu segments: the replay was not what the forward was",
		       hazards, run->nsegments);
	if (doubts)
		reason(reasons, "%" PRIu64 " of %zu segments cannot be judged", doubts,
		       run->nsegments);
	if (loose) {
		reason(reasons, "%" PRIu64 " errors outside of every segment", loose);
		verdict = RS_VERDICT_HAZARD;
	}
	more = gaps(run, reasons);
	if (ret_reasons)
		*ret_reasons = reasons;
	else
		json_decref(reasons);
	return more > verdict ? more : verdict;
}
