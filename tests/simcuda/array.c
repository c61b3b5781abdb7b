/* SPDX-License-Identifier: MIT */
/*
 * Arrays and mipmapped arrays: memory without an address, reached by copies and through objects.
 *
 * An array is charged to its device like an allocation, but its bytes lie outside of every address tree,
 * so no pointer leads to them. They are kept row by row; nobody can see that. A copy holds an
 * array by handle and serial and looks again when its turn has come (sim_array_live); an object over an
 * array that is destroyed is left without memory. Levels of a mipmapped array are arrays that it owns.
 * Not here: block-compressed and planar formats, sparse arrays and arrays whose memory is mapped later.
 * Destroying waits for the work queued in the array's context, as freeing memory does. Driver lock held.
 */
#include "tests/simcuda/limits.h"
#include "tests/simcuda/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define GRANULE 512u

static uint64_t next_serial = 1;

/* ---- formats ---- */

static const struct {
	CUarray_format format;
	uint8_t channel, bits, channels; /* channels 0: as the descriptor says */
} formats[] = {
	{CU_AD_FORMAT_UNSIGNED_INT8, SIM_CHAN_UINT, 8, 0},
	{CU_AD_FORMAT_UNSIGNED_INT16, SIM_CHAN_UINT, 16, 0},
	{CU_AD_FORMAT_UNSIGNED_INT32, SIM_CHAN_UINT, 32, 0},
	{CU_AD_FORMAT_SIGNED_INT8, SIM_CHAN_SINT, 8, 0},
	{CU_AD_FORMAT_SIGNED_INT16, SIM_CHAN_SINT, 16, 0},
	{CU_AD_FORMAT_SIGNED_INT32, SIM_CHAN_SINT, 32, 0},
	{CU_AD_FORMAT_HALF, SIM_CHAN_FLOAT, 16, 0},
	{CU_AD_FORMAT_FLOAT, SIM_CHAN_FLOAT, 32, 0},
	{CU_AD_FORMAT_UNORM_INT8X1, SIM_CHAN_UNORM, 8, 1},
	{CU_AD_FORMAT_UNORM_INT8X2, SIM_CHAN_UNORM, 8, 2},
	{CU_AD_FORMAT_UNORM_INT8X4, SIM_CHAN_UNORM, 8, 4},
	{CU_AD_FORMAT_UNORM_INT16X1, SIM_CHAN_UNORM, 16, 1},
	{CU_AD_FORMAT_UNORM_INT16X2, SIM_CHAN_UNORM, 16, 2},
	{CU_AD_FORMAT_UNORM_INT16X4, SIM_CHAN_UNORM, 16, 4},
	{CU_AD_FORMAT_SNORM_INT8X1, SIM_CHAN_SNORM, 8, 1},
	{CU_AD_FORMAT_SNORM_INT8X2, SIM_CHAN_SNORM, 8, 2},
	{CU_AD_FORMAT_SNORM_INT8X4, SIM_CHAN_SNORM, 8, 4},
	{CU_AD_FORMAT_SNORM_INT16X1, SIM_CHAN_SNORM, 16, 1},
	{CU_AD_FORMAT_SNORM_INT16X2, SIM_CHAN_SNORM, 16, 2},
	{CU_AD_FORMAT_SNORM_INT16X4, SIM_CHAN_SNORM, 16, 4},
};

int sim_array_format(CUarray_format format, unsigned channels, struct sim_texel *ret)
{
	for (unsigned i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (formats[i].format != format)
			continue;
		if ((channels != 1 && channels != 2 && channels != 4) ||
		    (formats[i].channels && formats[i].channels != channels))
			return -EINVAL;
		*ret = (struct sim_texel){formats[i].channel, (uint8_t)channels, formats[i].bits,
					  (uint8_t)(channels * formats[i].bits / 8)};
		return 0;
	}
	/* The blocks of formats that the header knows beyond these. */
	return (format >= CU_AD_FORMAT_BC1_UNORM && format <= CU_AD_FORMAT_P010) ||
			       (format >= CU_AD_FORMAT_P016 &&
				format <= CU_AD_FORMAT_YUV444_16bit_SemiPlanar) ||
			       format == CU_AD_FORMAT_UNORM_INT_101010_2
		       ? -ENOTSUP
		       : -EINVAL;
}

/* ---- descriptors ---- */

struct extent {
	size_t width, height, depth;
};

static bool within(const CUDA_ARRAY3D_DESCRIPTOR *d, struct extent max)
{
	return d->Width <= max.width && d->Height <= max.height && d->Depth <= max.depth;
}

/* The table of the manual: what each type of array may measure. */
static bool extent_fits(const CUDA_ARRAY3D_DESCRIPTOR *d, bool mipmapped)
{
	const size_t layered = SIM_TEX_LAYERED_EXTENT, edge = SIM_TEX3D_EXTENT;
	bool surface = d->Flags & CUDA_ARRAY3D_SURFACE_LDST;

	if (d->Flags & CUDA_ARRAY3D_CUBEMAP)
		return d->Width == d->Height && d->Depth && d->Depth % 6 == 0 &&
		       (d->Flags & CUDA_ARRAY3D_LAYERED || d->Depth == 6) &&
		       within(d, (struct extent){layered, layered, SIM_TEX_CUBE_LAYERS});
	if (d->Flags & CUDA_ARRAY3D_LAYERED)
		return d->Depth && within(d, (struct extent){layered, layered, SIM_TEX_LAYERS});
	if (d->Depth)
		return d->Height && (within(d, (struct extent){edge, edge, edge}) ||
				     (!surface && within(d, (struct extent){SIM_TEX3D_ALT_WIDTH,
									    SIM_TEX3D_ALT_WIDTH,
									    SIM_TEX3D_ALT_DEPTH})));
	if (d->Height && (mipmapped || d->Flags & CUDA_ARRAY3D_TEXTURE_GATHER))
		return within(d, (struct extent){layered, layered, 0});
	if (d->Height)
		return within(d, (struct extent){SIM_TEX2D_WIDTH, SIM_TEX2D_HEIGHT, 0});
	return d->Width <= (surface	? SIM_SURF1D_WIDTH
			    : mipmapped ? SIM_TEX_LAYERED_EXTENT
					: SIM_TEX1D_WIDTH);
}

static CUresult check(const CUDA_ARRAY3D_DESCRIPTOR *d, bool mipmapped, struct sim_texel *ret)
{
	const unsigned known = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST |
			       CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER |
			       CUDA_ARRAY3D_DEPTH_TEXTURE | CUDA_ARRAY3D_COLOR_ATTACHMENT |
			       CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING |
			       CUDA_ARRAY3D_VIDEO_ENCODE_DECODE;
	const unsigned plain = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST |
			       CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER |
			       CUDA_ARRAY3D_COLOR_ATTACHMENT;
	int rc = sim_array_format(d->Format, d->NumChannels, ret);

	if (rc == -EINVAL || d->Flags & ~known || !d->Width)
		return CUDA_ERROR_INVALID_VALUE;
	if (rc || d->Flags & ~plain)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (d->Flags & CUDA_ARRAY3D_TEXTURE_GATHER && (!d->Height || d->Depth))
		return CUDA_ERROR_INVALID_VALUE;
	return extent_fits(d, mipmapped) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- one array ---- */

static bool charge(int dev, uint64_t bytes)
{
	if (sim_mem_charge(dev, bytes))
		return true;
	sim_pool_trim_all(dev);
	return sim_mem_charge(dev, bytes);
}

static CUresult array_new(CUcontext ctx, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned elem,
			  CUarray *ret)
{
	unsigned __int128 bytes = (unsigned __int128)d->Width * elem;
	CUarray a = calloc(1, sizeof(*a));

	if (!a)
		return CUDA_ERROR_OUT_OF_MEMORY;
	a->desc = *d;
	a->ctx = ctx;
	a->elem = elem;
	a->pitch = d->Width * elem;
	a->rows = d->Height ? d->Height : 1;
	a->slices = d->Depth ? d->Depth : 1;
	bytes *= (unsigned __int128)a->rows * a->slices;
	a->bytes = bytes < 1ull << 46 ? ((uint64_t)bytes + GRANULE - 1) & ~(uint64_t)(GRANULE - 1)
				      : 1ull << 46;
	if (!charge(ctx->dev_id, a->bytes)) {
		free(a);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	a->data = malloc(a->bytes);
	if (!a->data || sim_handle_add(a, SIM_H_ARRAY)) {
		sim_mem_uncharge(ctx->dev_id, a->bytes);
		free(a->data);
		free(a);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	wmemset((wchar_t *)a->data, (wchar_t)SIM_PATTERN, a->bytes / 4);
	a->serial = next_serial++;
	a->next = ctx->arrays;
	ctx->arrays = a;
	*ret = a;
	return CUDA_SUCCESS;
}

static void array_free(CUarray a)
{
	CUarray *at = &a->ctx->arrays;

	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	sim_object_forget_array(a);
	sim_handle_del(a);
	sim_mem_uncharge(a->ctx->dev_id, a->bytes);
	free(a->data);
	free(a);
}

bool sim_array_live(CUarray a, uint64_t serial)
{
	return sim_handle_is(a, SIM_H_ARRAY) && a->serial == serial;
}

static CUresult create(struct sim_call *call, CUarray *ret, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	struct sim_texel texel;
	CUresult r = ret ? check(d, false, &texel) : CUDA_ERROR_INVALID_VALUE;

	return r ? r : array_new(call->ctx, d, texel.bytes, ret);
}

SIM_API(cuArrayCreate_v2, SIM_CTX | SIM_UNSAFE, P(CUarray *ret, const CUDA_ARRAY_DESCRIPTOR *d),
	P(ret, d))
{
	CUDA_ARRAY3D_DESCRIPTOR full;

	if (!d)
		return CUDA_ERROR_INVALID_VALUE;
	full = (CUDA_ARRAY3D_DESCRIPTOR){.Width = d->Width,
					 .Height = d->Height,
					 .Format = d->Format,
					 .NumChannels = d->NumChannels};
	return create(call, ret, &full);
}

SIM_API(cuArray3DCreate_v2, SIM_CTX | SIM_UNSAFE, P(CUarray *ret, const CUDA_ARRAY3D_DESCRIPTOR *d),
	P(ret, d))
{
	return d ? create(call, ret, d) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuArrayGetDescriptor_v2, SIM_CTX, P(CUDA_ARRAY_DESCRIPTOR *ret, CUarray a), P(ret, a))
{
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_handle_is(a, SIM_H_ARRAY))
		return CUDA_ERROR_INVALID_HANDLE;
	*ret = (CUDA_ARRAY_DESCRIPTOR){.Width = a->desc.Width,
				       .Height = a->desc.Height,
				       .Format = a->desc.Format,
				       .NumChannels = a->desc.NumChannels};
	return CUDA_SUCCESS;
}

SIM_API(cuArray3DGetDescriptor_v2, SIM_CTX, P(CUDA_ARRAY3D_DESCRIPTOR *ret, CUarray a), P(ret, a))
{
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_handle_is(a, SIM_H_ARRAY))
		return CUDA_ERROR_INVALID_HANDLE;
	*ret = a->desc;
	return CUDA_SUCCESS;
}

SIM_API(cuArrayDestroy, SIM_CTX | SIM_UNSAFE, P(CUarray a), P(a))
{
	uint64_t serial;
	CUresult r;

	/* A level goes with its mipmapped array. */
	if (!sim_handle_is(a, SIM_H_ARRAY) || a->mip)
		return CUDA_ERROR_INVALID_HANDLE;
	serial = a->serial;
	r = sim_ctx_sync(a->ctx);
	if (r)
		return r;
	if (!sim_array_live(a, serial))
		return CUDA_ERROR_INVALID_HANDLE; /* destroyed by another thread meanwhile */
	array_free(a);
	return CUDA_SUCCESS;
}

/* What only arrays of other kinds have: each call refuses the arrays that exist here. */

static CUresult refuse(const void *handle, enum sim_handle_kind kind, const void *ret)
{
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	return sim_handle_is(handle, kind) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
}

SIM_API(cuArrayGetPlane, SIM_CTX, P(CUarray *ret, CUarray a, unsigned plane), P(ret, a, plane))
{
	(void)plane;
	return refuse(a, SIM_H_ARRAY, ret);
}

SIM_API(cuArrayGetMemoryRequirements, SIM_CTX,
	P(CUDA_ARRAY_MEMORY_REQUIREMENTS *ret, CUarray a, CUdevice dev), P(ret, a, dev))
{
	return dev < 0 || dev >= (int)sim_options.devices ? CUDA_ERROR_INVALID_DEVICE
							  : refuse(a, SIM_H_ARRAY, ret);
}

SIM_API(cuArrayGetSparseProperties, SIM_CTX, P(CUDA_ARRAY_SPARSE_PROPERTIES *ret, CUarray a),
	P(ret, a))
{
	return refuse(a, SIM_H_ARRAY, ret);
}

SIM_API(cuMipmappedArrayGetMemoryRequirements, SIM_CTX,
	P(CUDA_ARRAY_MEMORY_REQUIREMENTS *ret, CUmipmappedArray m, CUdevice dev), P(ret, m, dev))
{
	return dev < 0 || dev >= (int)sim_options.devices ? CUDA_ERROR_INVALID_DEVICE
							  : refuse(m, SIM_H_MIPMAP, ret);
}

SIM_API(cuMipmappedArrayGetSparseProperties, SIM_CTX,
	P(CUDA_ARRAY_SPARSE_PROPERTIES *ret, CUmipmappedArray m), P(ret, m))
{
	return refuse(m, SIM_H_MIPMAP, ret);
}

/* ---- mipmapped arrays ---- */

static void mipmap_free(CUmipmappedArray m)
{
	CUmipmappedArray *at = &m->ctx->mipmaps;

	while (*at && *at != m)
		at = &(*at)->next;
	if (*at)
		*at = m->next;
	while (m->nlevels)
		array_free(m->level[--m->nlevels]);
	sim_handle_del(m);
	free(m);
}

static size_t halved(size_t n, unsigned level)
{
	return n && !(n >> level) ? 1 : n >> level;
}

/* Levels down to a single texel; layers do not shrink. */
static unsigned max_levels(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	size_t most = d->Width > d->Height ? d->Width : d->Height;

	if (!(d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) && d->Depth > most)
		most = d->Depth;
	return 64 - (unsigned)__builtin_clzll(most);
}

SIM_API(cuMipmappedArrayCreate, SIM_CTX | SIM_UNSAFE,
	P(CUmipmappedArray *ret, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned nlevels),
	P(ret, d, nlevels))
{
	struct sim_texel texel;
	CUmipmappedArray m;
	CUresult r = ret && d && nlevels ? check(d, true, &texel) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	m = calloc(1, sizeof(*m));
	if (!m || sim_handle_add(m, SIM_H_MIPMAP)) {
		free(m);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	m->desc = *d;
	m->ctx = call->ctx;
	/* More levels than there can be are clamped. */
	if (nlevels > max_levels(d))
		nlevels = max_levels(d);
	for (unsigned i = 0; i < nlevels && !r; i++) {
		CUDA_ARRAY3D_DESCRIPTOR level = *d;

		level.Width = halved(d->Width, i);
		level.Height = halved(d->Height, i);
		if (!(d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)))
			level.Depth = halved(d->Depth, i);
		r = array_new(call->ctx, &level, texel.bytes, &m->level[i]);
		if (!r)
			m->level[m->nlevels++]->mip = m;
	}
	if (r) {
		mipmap_free(m);
		return r;
	}
	m->next = call->ctx->mipmaps;
	call->ctx->mipmaps = m;
	*ret = m;
	return CUDA_SUCCESS;
}

SIM_API(cuMipmappedArrayGetLevel, SIM_CTX, P(CUarray *ret, CUmipmappedArray m, unsigned level),
	P(ret, m, level))
{
	if (!sim_handle_is(m, SIM_H_MIPMAP))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!ret || level >= m->nlevels)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = m->level[level];
	return CUDA_SUCCESS;
}

SIM_API(cuMipmappedArrayDestroy, SIM_CTX | SIM_UNSAFE, P(CUmipmappedArray m), P(m))
{
	uint64_t serial;
	CUresult r;

	if (!sim_handle_is(m, SIM_H_MIPMAP))
		return CUDA_ERROR_INVALID_HANDLE;
	serial = m->level[0]->serial;
	r = sim_ctx_sync(m->ctx);
	if (r)
		return r;
	if (!sim_handle_is(m, SIM_H_MIPMAP) || m->level[0]->serial != serial)
		return CUDA_ERROR_INVALID_HANDLE;
	mipmap_free(m);
	return CUDA_SUCCESS;
}

void sim_array_free_ctx(CUcontext ctx)
{
	while (ctx->mipmaps)
		mipmap_free(ctx->mipmaps);
	while (ctx->arrays)
		array_free(ctx->arrays);
}
