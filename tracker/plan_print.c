/* SPDX-License-Identifier: MIT */
/*
 * What a plan calls segments: a digest of each name, and one of all of them in their order. Both are written to plan
 * files and shared memory: they must not change within a version of either. Pure functions, any thread.
 */
#include <string.h>

#include "tracker/costs.h"
#include "tracker/devops.h"
#include "tracker/digest.h"
#include "tracker/plan.h"

_Static_assert(RS_COST_NAME <= RS_DIGEST_CHUNK, "a name is one chunk");

uint64_t rs_plan_name(const char *segment)
{
	return rs_digest_chunk(segment, strnlen(segment, RS_COST_NAME));
}

uint64_t rs_plan_print(uint64_t print, uint64_t name, uint32_t invocation)
{
	return rs_digest_mix(rs_digest_mix(print + RS_DIGEST_K) ^ name) +
	       rs_digest_mix(invocation + RS_DIGEST_K);
}
