/* SPDX-License-Identifier: MIT */
/*
 * Texture and surface objects through the Driver API: over arrays, linear and pitched memory; what they
 * tell and what is refused. What kernels see through them: t_kernels_surface.c.
 */
#include "tests/clients/drv.h"

#define W 20
#define H 6

static CUarray array(size_t w, size_t h, size_t d, unsigned flags)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = {w, h, d, CU_AD_FORMAT_FLOAT, 1, flags};
	CUarray a;

	must(cuArray3DCreate(&a, &desc));
	return a;
}

static CUDA_RESOURCE_DESC over(CUarray a)
{
	CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_ARRAY};

	r.res.array.hArray = a;
	return r;
}

static void surfaces(void)
{
	CUarray plain = array(W, H, 0, 0), ldst = array(W, H, 0, CUDA_ARRAY3D_SURFACE_LDST);
	CUDA_RESOURCE_DESC r = over(ldst), got, p = over(plain), linear = {0};
	CUsurfObject s, t;

	is_cu(cuSurfObjectCreate(&s, &r), CUDA_SUCCESS, "a surface");
	must(cuSurfObjectCreate(&t, &r));
	ok(s && t && s != t, "handles differ");
	must(cuSurfObjectGetResourceDesc(&got, s));
	ok(got.res.array.hArray == ldst, "it tells its array");
	is_cu(cuTexObjectGetResourceDesc(&got, s), CUDA_ERROR_INVALID_VALUE, "it is no texture");
	is_cu(cuSurfObjectCreate(&t, &p), CUDA_ERROR_INVALID_VALUE,
	      "an array that was not made for it");
	linear.resType = CU_RESOURCE_TYPE_LINEAR;
	is_cu(cuSurfObjectCreate(&t, &linear), CUDA_ERROR_INVALID_VALUE, "linear memory");
	r.flags = 1;
	is_cu(cuSurfObjectCreate(&t, &r), CUDA_ERROR_INVALID_VALUE, "flags");
	is_cu(cuSurfObjectDestroy(s), CUDA_SUCCESS, "destroy");
	is_cu(cuSurfObjectDestroy(s), CUDA_ERROR_INVALID_VALUE, "destroy again");
	must(cuArrayDestroy(plain));
	must(cuArrayDestroy(ldst));
}

static CUresult texture(const CUDA_RESOURCE_DESC *r, const CUDA_TEXTURE_DESC *t,
			const CUDA_RESOURCE_VIEW_DESC *v)
{
	CUtexObject h;
	CUresult rc = cuTexObjectCreate(&h, r, t, v);

	if (!rc)
		must(cuTexObjectDestroy(h));
	return rc;
}

static void memory_textures(void)
{
	CUDA_RESOURCE_DESC l = {.resType = CU_RESOURCE_TYPE_LINEAR}, p = {0};
	CUDA_TEXTURE_DESC t = {.flags = CU_TRSF_READ_AS_INTEGER};
	CUdeviceptr d;

	must(cuMemAlloc(&d, 4096));
	l.res.linear.devPtr = d;
	l.res.linear.format = CU_AD_FORMAT_FLOAT;
	l.res.linear.numChannels = 1;
	l.res.linear.sizeInBytes = 4096;
	is_cu(texture(&l, &t, NULL), CUDA_SUCCESS, "linear memory");
	l.res.linear.sizeInBytes = 4100;
	is_cu(texture(&l, &t, NULL), CUDA_ERROR_INVALID_VALUE, "more than there is");
	l.res.linear.sizeInBytes = 64;
	l.res.linear.devPtr = d + 4;
	is_cu(texture(&l, &t, NULL), CUDA_ERROR_INVALID_VALUE, "not aligned");
	p.resType = CU_RESOURCE_TYPE_PITCH2D;
	p.res.pitch2D.devPtr = d;
	p.res.pitch2D.format = CU_AD_FORMAT_UNSIGNED_INT8;
	p.res.pitch2D.numChannels = 1;
	p.res.pitch2D.width = 50;
	p.res.pitch2D.height = 64;
	p.res.pitch2D.pitchInBytes = 64;
	is_cu(texture(&p, &t, NULL), CUDA_SUCCESS, "pitched memory");
	p.res.pitch2D.pitchInBytes = 56;
	is_cu(texture(&p, &t, NULL), CUDA_ERROR_INVALID_VALUE, "a pitch that is not aligned");
	p.res.pitch2D.pitchInBytes = 32;
	is_cu(texture(&p, &t, NULL), CUDA_ERROR_INVALID_VALUE, "a pitch that is too short");
	must(cuMemFree(d));
}

static void textures(void)
{
	CUarray a = array(W, H, 0, 0);
	CUDA_RESOURCE_DESC r = over(a), got;
	CUDA_TEXTURE_DESC t = {.filterMode = CU_TR_FILTER_MODE_LINEAR}, gott;
	CUDA_RESOURCE_VIEW_DESC v = {CU_RES_VIEW_FORMAT_FLOAT_1X32, W, H, 0, 0, 0, 0, 0, {0}}, gotv;
	CUtexObject h;

	is_cu(texture(&r, &t, NULL), CUDA_SUCCESS, "filtered floats");
	is_cu(cuTexObjectCreate(&h, &r, &t, NULL), CUDA_SUCCESS, "a texture");
	must(cuTexObjectGetResourceDesc(&got, h));
	ok(got.res.array.hArray == a, "it tells its array");
	must(cuTexObjectGetTextureDesc(&gott, h));
	ok(gott.filterMode == CU_TR_FILTER_MODE_LINEAR, "and how it is sampled");
	is_cu(cuTexObjectGetResourceViewDesc(&gotv, h), CUDA_ERROR_INVALID_VALUE,
	      "there is no view");
	is_cu(cuSurfObjectDestroy(h), CUDA_ERROR_INVALID_VALUE, "it is no surface");
	must(cuTexObjectDestroy(h));
	must(cuTexObjectCreate(&h, &r, &t, &v));
	must(cuTexObjectGetResourceViewDesc(&gotv, h));
	ok(!memcmp(&gotv, &v, sizeof(v)), "a view is told");
	must(cuTexObjectDestroy(h));
	v.format = CU_RES_VIEW_FORMAT_UINT_1X32;
	is_cu(texture(&r, &t, &v), CUDA_ERROR_NOT_SUPPORTED, "a view of another format");
	v.format = CU_RES_VIEW_FORMAT_NONE;
	v.width = 2 * W;
	is_cu(texture(&r, &t, &v), CUDA_ERROR_INVALID_VALUE, "a view of another size");
	t.addressMode[1] = (CUaddress_mode)4;
	is_cu(texture(&r, &t, NULL), CUDA_ERROR_INVALID_VALUE, "no such addressing mode");
	t.addressMode[1] = 0;
	t.flags = 1u << 20;
	is_cu(texture(&r, &t, NULL), CUDA_ERROR_INVALID_VALUE, "no such flag");
	is_cu(cuTexObjectCreate(&h, NULL, &t, NULL), CUDA_ERROR_INVALID_VALUE, "no resource");
	must(cuArrayDestroy(a));
	r.res.array.hArray = a;
	t.flags = 0;
	is_cu(texture(&r, &t, NULL), CUDA_ERROR_INVALID_VALUE, "an array that is gone");
}

static void mipmapped_textures(void)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = {W, H, 0, CU_AD_FORMAT_FLOAT, 1, 0};
	CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY};
	CUDA_TEXTURE_DESC t = {.flags = CU_TRSF_NORMALIZED_COORDINATES};
	CUDA_RESOURCE_VIEW_DESC v = {CU_RES_VIEW_FORMAT_NONE, W, H, 0, 1, 2, 0, 0, {0}};
	CUmipmappedArray m;

	must(cuMipmappedArrayCreate(&m, &desc, 3));
	r.res.mipmap.hMipmappedArray = m;
	is_cu(texture(&r, &t, NULL), CUDA_SUCCESS, "a mipmapped array");
	is_cu(texture(&r, &t, &v), CUDA_SUCCESS, "some of its levels");
	v.lastMipmapLevel = 3;
	is_cu(texture(&r, &t, &v), CUDA_ERROR_INVALID_VALUE, "levels that it does not have");
	t.mipmapFilterMode = CU_TR_FILTER_MODE_LINEAR;
	is_cu(texture(&r, &t, NULL), CUDA_ERROR_NOT_SUPPORTED, "filtered between levels");
	t = (CUDA_TEXTURE_DESC){0};
	is_cu(texture(&r, &t, NULL), CUDA_ERROR_INVALID_VALUE, "coordinates not normalised");
	must(cuMipmappedArrayDestroy(m));
}

/* Deprecated, and still called. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static void references(void)
{
	CUtexref t;
	CUsurfref s;
	CUmodule m;

	must(cuModuleLoadData(&m, drv_ptx));
	is_cu(cuModuleGetTexRef(&t, m, "t"), CUDA_ERROR_NOT_FOUND, "no texture references");
	is_cu(cuModuleGetSurfRef(&s, m, "s"), CUDA_ERROR_NOT_FOUND, "no surface references");
	must(cuModuleUnload(m));
}

int main(void)
{
	CUcontext ctx = drv_context();

	surfaces();
	memory_textures();
	textures();
	mipmapped_textures();
	references();
	must(cuCtxDestroy(ctx));
	ok(!simcuda_live_bytes(0), "nothing is left with the context");
	return tap_done();
}
