/* SPDX-License-Identifier: MIT */
/*
 * Lines of numbers in events.jsonl: at every step and at the end; there, too, the message that lines were lost.
 * Callers: markers (any thread, rarely) and the exit handler. Locks: the threads' list, in rs_tls_counts.
 */
#include "shim/curand.h"
#include "shim/shim.h"

#include "shim/log.h"

#include <string.h>

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
	rs_json_u64(j, "digests", s->digests);
	rs_json_u64(j, "digest_bytes", s->digest_bytes);
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

void rs_report_stats(void)
{
	uint64_t count[RS_EP_COUNT];
	struct rs_engine_stats stats;
	struct rs_json j;

	if (!rs_state.records)
		return;
	rs_tls_counts(count);
	rs_engine_stats(rs_state.engine, &stats);
	rs_json_begin(&j);
	rs_json_str(&j, "t", "stats");
	rs_json_u64(&j, "launches", launches(count));
	put_engine(&j, &stats);
	rs_json_u64(&j, "lost", rs_records_lost(rs_state.records) + rs_coverage.lost_threads);
	rs_json_u64(&j, "unknown_names", rs_coverage.unknown_names);
	rs_json_u64(&j, "unknown_kernels", rs_coverage.unknown_kernel);
	rs_json_u64(&j, "by_name", rs_coverage.by_name);
	rs_json_u64(&j, "export_tables", rs_coverage.export_tables);
	rs_json_u64(&j, "draws_unfollowed", rs_curand_unfollowed);
	rs_json_u64(&j, "draws_host", rs_curand_host);
	rs_json_open(&j, "calls", '{');
	for (unsigned i = 0; i < RS_EP_COUNT; i++)
		if (count[i])
			rs_json_u64(&j, rs_ep_info[i].name, count[i]);
	rs_curand_report(&j);
	rs_json_close(&j, '}');
	rs_records_write(rs_state.records, RS_RECORD_EVENTS, &j);
}

void rs_report_step(const char *text)
{
	if (!text || strncmp(text, "step:", 5))
		return;
	rs_report_stats();
	rs_report_lost();
}
