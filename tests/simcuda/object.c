/* SPDX-License-Identifier: MIT */
/*
 * Texture and surface objects: what a kernel reaches through a handle.
 *
 * An object belongs to a context. Its handle is a number that is never given out again; what kernels see
 * of it is a sim_view (exec.h), built when it is created. Destroying waits for the work queued in
 * the context. Legacy references are not here: modules that declare some do not load.
 * Refused: linear filtering between mipmap levels, sRGB, and views with a format of their own.
 * Driver lock held.
 */
#include "tests/simcuda/limits.h"
#include "tests/simcuda/sim.h"

#include <stdlib.h>
#include <string.h>

struct sim_object {
	CUDA_RESOURCE_DESC res;
	CUDA_TEXTURE_DESC tex;
	CUDA_RESOURCE_VIEW_DESC rv;
	bool has_rv;
};

static uint64_t next_handle = 1;

/* ---- what a view shows ---- */

static void show_level(struct sim_view *v, CUarray a, unsigned first_layer, unsigned layers)
{
	unsigned i = v->nlevels++;

	v->level[i].pitch = a->pitch;
	v->level[i].slice = a->pitch * a->rows;
	v->level[i].data = a->data + first_layer * v->level[i].slice;
	v->level[i].width = (uint32_t)a->desc.Width;
	v->level[i].height = (uint32_t)a->rows;
	v->level[i].depth = layers ? layers : (uint32_t)a->slices;
}

static void shape_of(struct sim_view *v, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	bool cube = d->Flags & CUDA_ARRAY3D_CUBEMAP;

	v->layered = cube || d->Flags & CUDA_ARRAY3D_LAYERED;
	v->is_cube = cube && !v->is_surface;
	v->dims = d->Depth && !v->layered ? 3 : d->Height ? 2 : 1;
}

static CUresult texel_of(CUarray_format format, unsigned channels, struct sim_view *v)
{
	return sim_array_format(format, channels, &v->texel) ? CUDA_ERROR_INVALID_VALUE
							     : CUDA_SUCCESS;
}

static bool aligned(CUdeviceptr p)
{
	return p && !(p % SIM_TEX_ALIGNMENT);
}

static CUresult view_linear(const CUDA_RESOURCE_DESC *r, struct sim_view *v)
{
	CUresult rc = texel_of(r->res.linear.format, r->res.linear.numChannels, v);
	size_t n;

	if (rc)
		return rc;
	n = r->res.linear.sizeInBytes / v->texel.bytes;
	if (!aligned(r->res.linear.devPtr) || !n || n > SIM_TEX1D_LINEAR ||
	    !sim_mem_covers(r->res.linear.devPtr, r->res.linear.sizeInBytes))
		return CUDA_ERROR_INVALID_VALUE;
	v->dims = 1;
	v->is_memory = v->is_linear = 1;
	v->nlevels = 1;
	v->level[0].data = (uint8_t *)(uintptr_t)r->res.linear.devPtr;
	v->level[0].width = (uint32_t)n;
	v->level[0].height = v->level[0].depth = 1;
	return CUDA_SUCCESS;
}

static CUresult view_pitched(const CUDA_RESOURCE_DESC *r, struct sim_view *v)
{
	size_t w = r->res.pitch2D.width, h = r->res.pitch2D.height;
	size_t pitch = r->res.pitch2D.pitchInBytes;
	CUresult rc = texel_of(r->res.pitch2D.format, r->res.pitch2D.numChannels, v);

	if (rc)
		return rc;
	if (!aligned(r->res.pitch2D.devPtr) || !w || !h || w > SIM_TEX2D_LINEAR ||
	    h > SIM_TEX2D_LINEAR_ROWS || pitch % SIM_TEX_PITCH_ALIGN ||
	    pitch > SIM_TEX2D_LINEAR_PITCH || pitch < w * v->texel.bytes ||
	    !sim_mem_covers(r->res.pitch2D.devPtr, (h - 1) * pitch + w * v->texel.bytes))
		return CUDA_ERROR_INVALID_VALUE;
	v->dims = 2;
	v->is_memory = 1;
	v->nlevels = 1;
	v->level[0].data = (uint8_t *)(uintptr_t)r->res.pitch2D.devPtr;
	v->level[0].pitch = pitch;
	v->level[0].width = (uint32_t)w;
	v->level[0].height = (uint32_t)h;
	v->level[0].depth = 1;
	return CUDA_SUCCESS;
}

/* The header's view formats in blocks of three: 1, 2 and 4 channels of one type. */
static bool same_format(CUresourceViewFormat f, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	static const CUarray_format types[] = {
		CU_AD_FORMAT_UNSIGNED_INT8,  CU_AD_FORMAT_SIGNED_INT8,
		CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_SIGNED_INT16,
		CU_AD_FORMAT_UNSIGNED_INT32, CU_AD_FORMAT_SIGNED_INT32,
		CU_AD_FORMAT_HALF,	     CU_AD_FORMAT_FLOAT};
	unsigned i = (unsigned)f - 1;

	if (f == CU_RES_VIEW_FORMAT_NONE)
		return true;
	return i < 3 * sizeof(types) / sizeof(types[0]) && types[i / 3] == d->Format &&
	       1u << (i % 3) == d->NumChannels;
}

/* Levels [first, last] and layers of an array or mipmapped array; a view may choose some of them. */
static CUresult view_arrays(const CUarray *level, unsigned nlevels,
			    const CUDA_ARRAY3D_DESCRIPTOR *d, const CUDA_RESOURCE_VIEW_DESC *rv,
			    struct sim_view *v)
{
	unsigned first = 0, last = nlevels - 1, layer = 0, layers = 0;

	if (texel_of(d->Format, d->NumChannels, v))
		return CUDA_ERROR_INVALID_VALUE;
	shape_of(v, d);
	if (rv) {
		if (rv->format > CU_RES_VIEW_FORMAT_UNSIGNED_BC7)
			return CUDA_ERROR_INVALID_VALUE;
		if (!same_format(rv->format, d))
			return CUDA_ERROR_NOT_SUPPORTED;
		first = rv->firstMipmapLevel;
		last = rv->lastMipmapLevel;
		layer = rv->firstLayer;
		layers = rv->lastLayer - rv->firstLayer + 1;
		if (rv->width != d->Width || rv->height != d->Height || rv->depth != d->Depth ||
		    first > last || last >= nlevels || rv->firstLayer > rv->lastLayer ||
		    rv->lastLayer >= (v->layered ? d->Depth : 1))
			return CUDA_ERROR_INVALID_VALUE;
	}
	for (unsigned i = first; i <= last; i++)
		show_level(v, level[i], layer, v->layered ? layers : 0);
	return CUDA_SUCCESS;
}

static CUresult view_resource(CUcontext ctx, const CUDA_RESOURCE_DESC *r,
			      const CUDA_RESOURCE_VIEW_DESC *rv, struct sim_view *v)
{
	CUmipmappedArray m = r->res.mipmap.hMipmappedArray;
	CUarray a = r->res.array.hArray;

	if (r->flags)
		return CUDA_ERROR_INVALID_VALUE;
	switch (r->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		if (!sim_handle_is(a, SIM_H_ARRAY) || a->ctx != ctx)
			return CUDA_ERROR_INVALID_VALUE;
		return view_arrays(&a, 1, &a->desc, rv, v);
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		if (!sim_handle_is(m, SIM_H_MIPMAP) || m->ctx != ctx)
			return CUDA_ERROR_INVALID_VALUE;
		return view_arrays(m->level, m->nlevels, &m->desc, rv, v);
	case CU_RESOURCE_TYPE_LINEAR:
		return rv ? CUDA_ERROR_INVALID_VALUE : view_linear(r, v);
	case CU_RESOURCE_TYPE_PITCH2D:
		return rv ? CUDA_ERROR_INVALID_VALUE : view_pitched(r, v);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* ---- how a texture is sampled ---- */

static CUresult check_flags(const CUDA_RESOURCE_DESC *r, const CUDA_TEXTURE_DESC *t,
			    const struct sim_view *v)
{
	const unsigned known = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES |
			       CU_TRSF_SRGB | CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION |
			       CU_TRSF_SEAMLESS_CUBEMAP;
	bool mip = r->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;

	if (t->flags & ~known || (unsigned)t->filterMode > CU_TR_FILTER_MODE_LINEAR ||
	    (unsigned)t->mipmapFilterMode > CU_TR_FILTER_MODE_LINEAR ||
	    (mip && !(t->flags & CU_TRSF_NORMALIZED_COORDINATES)) ||
	    (t->flags & CU_TRSF_SEAMLESS_CUBEMAP && !v->is_cube))
		return CUDA_ERROR_INVALID_VALUE;
	if (t->flags & CU_TRSF_SRGB || (mip && t->mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR))
		return CUDA_ERROR_NOT_SUPPORTED;
	for (unsigned i = 0; i < 3; i++)
		if ((unsigned)t->addressMode[i] > CU_TR_ADDRESS_MODE_BORDER)
			return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult view_sampling(const CUDA_RESOURCE_DESC *r, const CUDA_TEXTURE_DESC *t,
			      struct sim_view *v)
{
	static const uint8_t modes[] = {SIM_ADDR_WRAP, SIM_ADDR_CLAMP, SIM_ADDR_MIRROR,
					SIM_ADDR_BORDER};
	CUresult rc = check_flags(r, t, v);
	bool is_integer;

	if (rc)
		return rc;
	v->normalised = !!(t->flags & CU_TRSF_NORMALIZED_COORDINATES);
	for (unsigned i = 0; i < 3; i++) {
		v->address[i] = modes[t->addressMode[i]];
		/* Only with normalised coordinates is there something to repeat. */
		if (!v->normalised && v->address[i] != SIM_ADDR_BORDER)
			v->address[i] = SIM_ADDR_CLAMP;
	}
	/* Integers of 8 and 16 bits are spread over [0, 1] or [-1, 1] unless they are to stay what they are. */
	if (!(t->flags & CU_TRSF_READ_AS_INTEGER) && v->texel.bits < 32) {
		if (v->texel.channel == SIM_CHAN_UINT)
			v->texel.channel = SIM_CHAN_UNORM;
		else if (v->texel.channel == SIM_CHAN_SINT)
			v->texel.channel = SIM_CHAN_SNORM;
	}
	is_integer = v->texel.channel == SIM_CHAN_UINT || v->texel.channel == SIM_CHAN_SINT;
	v->filter = t->filterMode == CU_TR_FILTER_MODE_LINEAR && !v->is_linear;
	if (v->filter && is_integer)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(v->border, t->borderColor, sizeof(v->border));
	v->bias = t->mipmapLevelBias;
	v->min_level = t->minMipmapLevelClamp;
	v->max_level = t->maxMipmapLevelClamp;
	return CUDA_SUCCESS;
}

/* ---- the objects of a context ---- */

static size_t position(CUcontext ctx, uint64_t handle)
{
	size_t lo = 0, hi = ctx->nobjects;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (ctx->views[mid].handle < handle)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static const struct sim_object *find(CUcontext ctx, uint64_t handle, bool surface)
{
	size_t i = position(ctx, handle);

	return i < ctx->nobjects && ctx->views[i].handle == handle &&
			       ctx->views[i].is_surface == surface
		       ? &ctx->objects[i]
		       : NULL;
}

static CUresult append(CUcontext ctx, const struct sim_object *o, struct sim_view *v,
		       unsigned long long *ret)
{
	if (ctx->nobjects == ctx->cobjects) {
		size_t cap = ctx->cobjects ? ctx->cobjects * 2 : 16;
		struct sim_object *objects = realloc(ctx->objects, cap * sizeof(*objects));
		struct sim_view *views;

		if (!objects)
			return CUDA_ERROR_OUT_OF_MEMORY;
		ctx->objects = objects;
		views = realloc(ctx->views, cap * sizeof(*views));
		if (!views)
			return CUDA_ERROR_OUT_OF_MEMORY;
		ctx->views = views;
		ctx->cobjects = cap;
	}
	v->handle = next_handle++;
	ctx->objects[ctx->nobjects] = *o;
	ctx->views[ctx->nobjects++] = *v;
	*ret = v->handle;
	return CUDA_SUCCESS;
}

static CUresult destroy(CUcontext ctx, uint64_t handle, bool surface)
{
	size_t i, rest;
	CUresult r;

	if (!find(ctx, handle, surface))
		return CUDA_ERROR_INVALID_VALUE;
	r = sim_ctx_sync(ctx);
	if (r)
		return r;
	if (!find(ctx, handle, surface))
		return CUDA_ERROR_INVALID_VALUE; /* destroyed by another thread meanwhile */
	i = position(ctx, handle);
	rest = --ctx->nobjects - i;
	memmove(&ctx->views[i], &ctx->views[i + 1], rest * sizeof(*ctx->views));
	memmove(&ctx->objects[i], &ctx->objects[i + 1], rest * sizeof(*ctx->objects));
	return CUDA_SUCCESS;
}

static bool shows(const struct sim_object *o, CUarray a)
{
	return (o->res.resType == CU_RESOURCE_TYPE_ARRAY && o->res.res.array.hArray == a) ||
	       (o->res.resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY && a->mip &&
		o->res.res.mipmap.hMipmappedArray == a->mip);
}

void sim_object_forget_array(CUarray a)
{
	CUcontext ctx = a->ctx;

	/* An object that has lost its array already may name the same handle. */
	for (size_t i = 0; i < ctx->nobjects; i++)
		if (shows(&ctx->objects[i], a))
			ctx->views[i].nlevels = 0;
}

void sim_object_free_ctx(CUcontext ctx)
{
	free(ctx->objects);
	free(ctx->views);
	ctx->objects = NULL;
	ctx->views = NULL;
	ctx->nobjects = ctx->cobjects = 0;
}

/* ---- entry points ---- */

SIM_API(cuTexObjectCreate, SIM_CTX,
	P(CUtexObject *ret, const CUDA_RESOURCE_DESC *res, const CUDA_TEXTURE_DESC *tex,
	  const CUDA_RESOURCE_VIEW_DESC *rv),
	P(ret, res, tex, rv))
{
	struct sim_object o = {0};
	struct sim_view v = {0};
	CUresult r;

	if (!ret || !res || !tex)
		return CUDA_ERROR_INVALID_VALUE;
	r = view_resource(call->ctx, res, rv, &v);
	if (!r)
		r = view_sampling(res, tex, &v);
	if (r)
		return r;
	o.res = *res;
	o.tex = *tex;
	o.has_rv = rv;
	if (rv)
		o.rv = *rv;
	return append(call->ctx, &o, &v, ret);
}

SIM_API(cuTexObjectDestroy, SIM_CTX, P(CUtexObject handle), P(handle))
{
	return destroy(call->ctx, handle, false);
}

SIM_API(cuTexObjectGetResourceDesc, SIM_CTX, P(CUDA_RESOURCE_DESC *ret, CUtexObject handle),
	P(ret, handle))
{
	const struct sim_object *o = find(call->ctx, handle, false);

	if (!ret || !o)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = o->res;
	return CUDA_SUCCESS;
}

SIM_API(cuTexObjectGetTextureDesc, SIM_CTX, P(CUDA_TEXTURE_DESC *ret, CUtexObject handle),
	P(ret, handle))
{
	const struct sim_object *o = find(call->ctx, handle, false);

	if (!ret || !o)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = o->tex;
	return CUDA_SUCCESS;
}

SIM_API(cuTexObjectGetResourceViewDesc, SIM_CTX,
	P(CUDA_RESOURCE_VIEW_DESC *ret, CUtexObject handle), P(ret, handle))
{
	const struct sim_object *o = find(call->ctx, handle, false);

	if (!ret || !o || !o->has_rv)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = o->rv;
	return CUDA_SUCCESS;
}

SIM_API(cuSurfObjectCreate, SIM_CTX, P(CUsurfObject *ret, const CUDA_RESOURCE_DESC *res),
	P(ret, res))
{
	struct sim_object o = {0};
	struct sim_view v = {.is_surface = 1};
	CUresult r;

	if (!ret || !res || res->resType != CU_RESOURCE_TYPE_ARRAY)
		return CUDA_ERROR_INVALID_VALUE;
	r = view_resource(call->ctx, res, NULL, &v);
	if (r)
		return r;
	if (!(res->res.array.hArray->desc.Flags & CUDA_ARRAY3D_SURFACE_LDST))
		return CUDA_ERROR_INVALID_VALUE;
	o.res = *res;
	return append(call->ctx, &o, &v, ret);
}

SIM_API(cuSurfObjectDestroy, SIM_CTX, P(CUsurfObject handle), P(handle))
{
	return destroy(call->ctx, handle, true);
}

SIM_API(cuSurfObjectGetResourceDesc, SIM_CTX, P(CUDA_RESOURCE_DESC *ret, CUsurfObject handle),
	P(ret, handle))
{
	const struct sim_object *o = find(call->ctx, handle, true);

	if (!ret || !o)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = o->res;
	return CUDA_SUCCESS;
}

/* A module of this device has no references: the engine refuses the instructions that use them. */

SIM_API(cuModuleGetTexRef, SIM_CTX, P(CUtexref *ret, CUmodule m, const char *name), P(ret, m, name))
{
	if (!ret || !name)
		return CUDA_ERROR_INVALID_VALUE;
	return sim_handle_is(m, SIM_H_MODULE) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
}

SIM_API(cuModuleGetSurfRef, SIM_CTX, P(CUsurfref *ret, CUmodule m, const char *name),
	P(ret, m, name))
{
	if (!ret || !name)
		return CUDA_ERROR_INVALID_VALUE;
	return sim_handle_is(m, SIM_H_MODULE) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
}
