/* SPDX-License-Identifier: MIT */
/*
 * Lines of numbers in events.jsonl: at every step and at the end; there, too, the message that lines were lost.
 * Callers: markers (any thread, rarely) and the exit handler. Locks: the threads' list, in rs_tls_counts.
 */
#include "shim/busy.h"
#include "shim/bypass.h"
#include "shim/curand.h"
#include "shim/log.h"
#include "shim/where.h"

#include <stdlib.h>
#include <string.h>

static uint64_t last_step;

static uint64_t launches(const uint64_t *count)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < RS_EP_COUNT; i++)
		if (!strncmp(rs_ep_info[i].name, "cuLaunch", 8) &&
		    strncmp(rs_ep_info[i].name, "cuLaunchHost", 12))
			n += count[i];
	return n;
}

static void put_engine(struct rs_json *j, const struct rs_engine_stats *s)
{
	rs_json_u64(j, "steps", s->steps);
	rs_json_u64(j, "forwards", s->forwards);
	rs_json_u64(j, "replays", s->replays);
	rs_json_u64(j, "match", s->outcome[0]);
	rs_json_u64(j, "rejection", s->outcome[1]);
	rs_json_u64(j, "divergence", s->outcome[2]);
	rs_json_u64(j, "opaque_launches", s->unknown_writers);
	rs_json_u64(j, "untracked", s->untracked);
	rs_json_u64(j, "live_allocs", s->live_allocs);
	rs_json_u64(j, "live_bytes", s->live_bytes);
	rs_json_u64(j, "snapshots", s->snapshots);
	rs_json_u64(j, "snapshot_bytes", s->snapshot_bytes);
	rs_json_u64(j, "snapshot_bytes_peak", s->snapshot_bytes_peak);
	rs_json_u64(j, "restored_bytes", s->restored_bytes);
	rs_json_u64(j, "remaps", s->remaps);
	rs_json_u64(j, "remap_failures", s->remap_failures);
	rs_json_u64(j, "digests", s->digests);
	rs_json_u64(j, "digest_bytes", s->digest_bytes);
	rs_json_u64(j, "possible_bytes", s->possible_bytes);
	rs_json_u64(j, "proven_bytes", s->proven_bytes);
	rs_json_u64(j, "compared_bytes", s->compared_bytes);
	rs_json_u64(j, "changed_bytes", s->changed_bytes);
	rs_json_u64(j, "sampled_bytes", s->sampled_bytes);
	rs_json_u64(j, "internal_errors", s->internal_errors);
}

/* Once, and not from the write that failed: that one may be in the middle of anything. */
void rs_report_lost(void)
{
	static int said;

	if (!rs_records_lost(rs_state.records) || __atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
		return;
	rs_log(RS_LOG_ERROR, "%s: %s; records are missing from here on", rs_state.dir,
	       strerror(-rs_records_error(rs_state.records)));
}

/*
 * Calls of each function: what fits into the line, which comes last. What does not goes into lines of its own before
 * it, so that the last line has all numbers and no count is missing.
 */
static void put_calls(struct rs_json *line, const uint64_t *count)
{
	struct rs_json more, *j = line;

	rs_json_open(j, "calls", '{');
	rs_curand_report(j);
	for (unsigned i = 0; i < RS_EP_COUNT; i++) {
		if (!count[i])
			continue;
		if (j->len > sizeof(j->text) - 200) {
			if (j != line) {
				rs_json_close(j, '}');
				rs_records_write(rs_state.records, RS_RECORD_EVENTS, j);
			}
			j = &more;
			rs_json_begin(j);
			rs_json_str(j, "t", "stats");
			rs_json_open(j, "calls", '{');
		}
		rs_json_u64(j, rs_ep_info[i].name, count[i]);
	}
	if (j != line) {
		rs_json_close(j, '}');
		rs_records_write(rs_state.records, RS_RECORD_EVENTS, j);
	}
	rs_json_close(line, '}');
}

void rs_report_stats(void)
{
	uint64_t count[RS_EP_COUNT];
	struct rs_engine_stats stats;
	struct rs_json j;

	if (!rs_state.records)
		return;
	rs_bypass_look(rs_report_last_step());
	rs_tls_counts(count);
	rs_engine_stats(rs_state.engine, &stats);
	rs_json_begin(&j);
	rs_json_str(&j, "t", "stats");
	rs_json_u64(&j, "launches", launches(count));
	put_engine(&j, &stats);
	rs_json_u64(&j, "lost", rs_records_lost(rs_state.records) + rs_coverage.lost_threads);
	rs_coverage_report(&j);
	rs_json_u64(&j, "draws_unfollowed", rs_curand_unfollowed);
	rs_json_u64(&j, "draws_host", rs_curand_host);
	rs_where_report(&j);
	rs_coverage_names(&j);
	put_calls(&j, count);
	rs_records_write(rs_state.records, RS_RECORD_EVENTS, &j);
}

uint64_t rs_report_last_step(void)
{
	return __atomic_load_n(&last_step, __ATOMIC_RELAXED);
}

void rs_report_step(const char *text)
{
	if (!text || strncmp(text, "step:", 5))
		return;
	__atomic_store_n(&last_step, strtoull(text + 5, NULL, 10), __ATOMIC_RELAXED);
	rs_busy_step();
	rs_where_look();
	rs_report_stats();
	rs_report_lost();
}
