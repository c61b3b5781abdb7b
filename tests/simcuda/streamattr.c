/* SPDX-License-Identifier: MIT */
/*
 * Attributes of streams. They are hints about caches and priorities, kept and given back; the
 * scheduler does not look at them. Driver lock held.
 */
#include "tests/simcuda/sim.h"

#include <string.h>

static const CUlaunchAttributeID known[SIM_STREAM_ATTRS] = {
	CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
	CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY,
	CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
	CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
};

static CUresult find(CUstream s, CUlaunchAttributeID id, CUlaunchAttributeValue **ret)
{
	for (unsigned i = 0; i < SIM_STREAM_ATTRS; i++)
		if (known[i] == id) {
			*ret = &s->attr[i];
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_INVALID_VALUE;
}

SIM_TWINS(cuStreamGetAttribute, _ptsz, SIM_CTX,
	  P(CUstream h, CUstreamAttrID id, CUstreamAttrValue *ret), P(h, id, ret))
{
	CUlaunchAttributeValue *v;
	CUstream s;
	CUresult r = ret ? sim_stream_get(call, h, &s) : CUDA_ERROR_INVALID_VALUE;

	if (!r && id == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
		ret->priority = s->priority;
		return CUDA_SUCCESS;
	}
	if (!r)
		r = find(s, id, &v);
	if (!r)
		*ret = *v;
	return r;
}

SIM_TWINS(cuStreamSetAttribute, _ptsz, SIM_CTX,
	  P(CUstream h, CUstreamAttrID id, const CUstreamAttrValue *value), P(h, id, value))
{
	CUlaunchAttributeValue *v;
	CUstream s;
	CUresult r = value ? sim_stream_get(call, h, &s) : CUDA_ERROR_INVALID_VALUE;

	if (!r && id == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
		s->priority = value->priority > 0 ? 0 : value->priority < -5 ? -5 : value->priority;
		return CUDA_SUCCESS;
	}
	if (!r)
		r = find(s, id, &v);
	if (!r)
		*v = *value;
	return r;
}

SIM_TWINS(cuStreamCopyAttributes, _ptsz, SIM_CTX, P(CUstream dst, CUstream src), P(dst, src))
{
	CUstream d, s;
	CUresult r = sim_stream_get(call, dst, &d);

	if (!r)
		r = sim_stream_get(call, src, &s);
	if (!r)
		memcpy(d->attr, s->attr, sizeof(d->attr));
	return r;
}

SIM_API(cuStreamGetGreenCtx, SIM_CTX, P(CUstream h, CUgreenCtx *ret), P(h, ret))
{
	CUstream s;
	CUresult r = ret ? sim_stream_get(call, h, &s) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*ret = s->green;
	return r;
}
