/* SPDX-License-Identifier: MIT */
/*
 * Kernels that read and write through surface and texture objects, as a compiler makes them of CUDA C,
 * against scalar C: every geometry, widths of 1 to 16 bytes, boundary modes, sampling, and faults.
 */
#include "tests/clients/kernels.h"

#define W 12
#define H 5
#define D 3

static CUarray array(size_t w, size_t h, size_t d, CUarray_format f, unsigned channels,
		     unsigned flags)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = {w, h, d, f, channels, flags};
	CUarray a;

	MUST(cuArray3DCreate(&a, &desc));
	return a;
}

static CUarray surface_array(size_t w, size_t h, size_t d, CUarray_format f, unsigned channels,
			     unsigned flags)
{
	return array(w, h, d, f, channels, flags | CUDA_ARRAY3D_SURFACE_LDST);
}

static CUDA_MEMCPY3D all_of(CUarray a, void *host)
{
	CUDA_ARRAY3D_DESCRIPTOR d;
	CUDA_MEMCPY3D p = {.srcArray = a, .dstArray = a, .srcHost = host, .dstHost = host};
	size_t elem;

	MUST(cuArray3DGetDescriptor(&d, a));
	elem = d.NumChannels * (d.Format == CU_AD_FORMAT_UNSIGNED_INT8	? 1u
				: d.Format == CU_AD_FORMAT_SIGNED_INT16 ? 2u
									: 4u);
	p.WidthInBytes = d.Width * elem;
	p.Height = d.Height ? d.Height : 1;
	p.Depth = d.Depth ? d.Depth : 1;
	return p;
}

static void put(CUarray a, void *host)
{
	CUDA_MEMCPY3D p = all_of(a, host);

	p.srcMemoryType = CU_MEMORYTYPE_HOST;
	p.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	MUST(cuMemcpy3D(&p));
}

static void get(CUarray a, void *host)
{
	CUDA_MEMCPY3D p = all_of(a, host);

	p.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	p.dstMemoryType = CU_MEMORYTYPE_HOST;
	MUST(cuMemcpy3D(&p));
}

static CUsurfObject surface(CUarray a)
{
	CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_ARRAY};
	CUsurfObject s;

	r.res.array.hArray = a;
	MUST(cuSurfObjectCreate(&s, &r));
	return s;
}

/* Two arrays of one kind, the first with random bytes, the second with a pattern. */
struct pair {
	CUarray a, b;
	CUsurfObject sa, sb;
};

static struct pair pair(size_t w, size_t h, size_t d, CUarray_format f, unsigned channels,
			unsigned flags, void *in, void *out, size_t bytes)
{
	struct pair p = {.a = surface_array(w, h, d, f, channels, flags),
			 .b = surface_array(w, h, d, f, channels, flags)};

	for (size_t i = 0; i < bytes; i++)
		((unsigned char *)in)[i] = (unsigned char)k_random();
	memset(out, 0x77, bytes);
	put(p.a, in);
	put(p.b, out);
	p.sa = surface(p.a);
	p.sb = surface(p.b);
	return p;
}

static void done(struct pair *p)
{
	MUST(cuSurfObjectDestroy(p->sa));
	MUST(cuSurfObjectDestroy(p->sb));
	MUST(cuArrayDestroy(p->a));
	MUST(cuArrayDestroy(p->b));
}

/* ---- surfaces ---- */

static void test_surface_1d(void)
{
	enum { N = 100 };
	float in[N], got[N], want[N];
	struct pair p = pair(N, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0, in, got, sizeof(in));
	int n = N - 3;

	for (int i = 0; i < N; i++) {
		in[i] = k_float(10);
		want[i] = got[i];
		if (i < n)
			want[i] = in[i] + 1;
	}
	put(p.a, in);
	K_RUN("surf_1d", 4, 1, 32, 1, 0, &p.sa, &p.sb, &n);
	get(p.b, got);
	k_same_bits(got, want, N, 4, "surface, 1D");
	done(&p);
}

static int clamped(int i, int n)
{
	return i < 0 ? 0 : i >= n ? n - 1 : i;
}

static void test_surface_2d(void)
{
	static unsigned in[H][W][4], got[H][W][4], want[H][W][4];
	struct pair p = pair(W, H, 0, CU_AD_FORMAT_FLOAT, 4, 0, in, got, sizeof(in));
	static unsigned long long wide[H][W][2];

	memcpy(want, got, sizeof(got));
	/* Threads from x = -2 to W + 1: those outside store nothing. */
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++)
			for (int c = 0; c < 4; c++)
				want[y][x][c] = in[clamped(y, H)][clamped(x, W)][3 - c];
	K_RUN("surf_2d_clamp", H, 1, W + 4, 1, 0, &p.sa, &p.sb);
	get(p.b, got);
	k_same_bits(got, want, sizeof(got) / 4, 4, "surface, 2D, four floats, clamped and dropped");
	memcpy(wide, in, sizeof(in));
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++) {
			unsigned long long v[2] = {wide[y][x][1], wide[y][x][0] + 1};

			memcpy(want[y][x], v, sizeof(v));
		}
	K_RUN("surf_wide", H, 1, W, 1, 0, &p.sa, &p.sb);
	get(p.b, got);
	k_same_bits(got, want, sizeof(got) / 4, 4, "surface, 2D, two 64-bit words");
	done(&p);
}

static void test_surface_small(void)
{
	static unsigned char in[H][W], got[H][W], want[H][W];
	static short sin[H][W][2], sgot[H][W][2], swant[H][W][2];
	struct pair p = pair(W, H, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0, in, got, sizeof(in));

	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++)
			want[y][x] = in[y][x] ^ 0x5a;
	K_RUN("surf_bytes", H, 1, W, 1, 0, &p.sa, &p.sb);
	get(p.b, got);
	k_same_bits(got, want, sizeof(got), 1, "surface, 2D, bytes");
	done(&p);
	p = pair(W, H, 0, CU_AD_FORMAT_SIGNED_INT16, 2, 0, sin, sgot, sizeof(sin));
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++) {
			swant[y][x][0] = sin[y][x][1];
			swant[y][x][1] = sin[y][x][0];
		}
	K_RUN("surf_pairs", H + 1, 1, W + 5, 1, 0, &p.sa, &p.sb);
	get(p.b, sgot);
	k_same_bits(sgot, swant, sizeof(sgot) / 2, 2, "surface, 2D, pairs of 16 bits, zero mode");
	done(&p);
}

static void test_surface_3d(void)
{
	static int in[D][H][W], got[D][H][W], want[D][H][W], rows[D][W], wrows[D][W];
	struct pair p = pair(W, H, D, CU_AD_FORMAT_SIGNED_INT32, 1, 0, in, got, sizeof(in));
	CUarray r = surface_array(W, 0, D, CU_AD_FORMAT_SIGNED_INT32, 1, CUDA_ARRAY3D_LAYERED);
	CUsurfObject sr = surface(r);
	CUfunction f;

	for (int i = 0; i < D * H * W; i++)
		(&want[0][0][0])[i] =
			(int)((unsigned)(&in[0][0][0])[i] + 100u * (unsigned)(i / (H * W)));
	MUST(cuModuleGetFunction(&f, k_module, "surf_3d"));
	MUST(cuLaunchKernel(f, D, 1, 1, W, H, 1, 0, NULL, (void *[]){&p.sa, &p.sb}, NULL));
	get(p.b, got);
	k_same_bits(got, want, D * H * W, 4, "surface, 3D");
	done(&p);
	p = pair(W, H, D, CU_AD_FORMAT_SIGNED_INT32, 1, CUDA_ARRAY3D_LAYERED, in, got, sizeof(in));
	for (int i = 0; i < D * H * W; i++) {
		(&want[0][0][0])[i] = (int)(3u * (unsigned)(&in[0][0][0])[i]);
		if (i / W % H == 0)
			wrows[i / (H * W)][i % W] = (&in[0][0][0])[i];
	}
	K_RUN("surf_layers", D, 1, W, H, 0, &p.sa, &p.sb, &sr);
	get(p.b, got);
	get(r, rows);
	k_same_bits(got, want, D * H * W, 4, "surface, layers of 2D");
	k_same_bits(rows, wrows, D * W, 4, "surface, layers of 1D");
	done(&p);
	MUST(cuSurfObjectDestroy(sr));
	MUST(cuArrayDestroy(r));
}

/* ---- textures ---- */

static CUtexObject texture(CUarray a, CUmipmappedArray m, CUaddress_mode mode, CUfilter_mode filter,
			   unsigned flags)
{
	CUDA_RESOURCE_DESC r = {.resType = m ? CU_RESOURCE_TYPE_MIPMAPPED_ARRAY
					     : CU_RESOURCE_TYPE_ARRAY};
	CUDA_TEXTURE_DESC t = {.addressMode = {mode, mode, mode},
			       .filterMode = filter,
			       .flags = flags,
			       .maxMipmapLevelClamp = 99,
			       .borderColor = {-7, 0, 0, 0}};
	CUtexObject h;

	if (m)
		r.res.mipmap.hMipmappedArray = m;
	else
		r.res.array.hArray = a;
	MUST(cuTexObjectCreate(&h, &r, &t, NULL));
	return h;
}

static void test_linear_memory(void)
{
	enum { N = 90, TEXELS = 70 };
	float in[TEXELS], got[N], want[N];
	unsigned char bytes[TEXELS * 4], gotb[TEXELS * 4];
	CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_LINEAR};
	CUDA_TEXTURE_DESC t = {.flags = CU_TRSF_READ_AS_INTEGER};
	CUdeviceptr d, db, out = k_out(sizeof(got));
	int n = N, from = -5;
	CUtexObject h;

	for (int i = 0; i < TEXELS; i++)
		in[i] = k_float(100);
	for (int i = 0; i < TEXELS * 4; i++)
		bytes[i] = (unsigned char)k_random();
	for (int i = 0; i < N; i++)
		want[i] = i + from >= 0 && i + from < TEXELS ? in[i + from] : 0;
	d = k_in(in, sizeof(in));
	db = k_in(bytes, sizeof(bytes));
	r.res.linear.devPtr = d;
	r.res.linear.format = CU_AD_FORMAT_FLOAT;
	r.res.linear.numChannels = 1;
	r.res.linear.sizeInBytes = sizeof(in);
	MUST(cuTexObjectCreate(&h, &r, &t, NULL));
	K_RUN("tex_fetch", 3, 1, 32, 1, 0, &h, &out, &n, &from);
	k_get(got, out, sizeof(got));
	k_same_bits(got, want, N, 4, "texture over linear memory, zero outside");
	MUST(cuTexObjectDestroy(h));
	r.res.linear.devPtr = db;
	r.res.linear.format = CU_AD_FORMAT_UNSIGNED_INT8;
	r.res.linear.numChannels = 4;
	r.res.linear.sizeInBytes = sizeof(bytes);
	MUST(cuTexObjectCreate(&h, &r, &t, NULL));
	n = TEXELS;
	K_RUN("tex_fetch_bytes", 1, 1, 96, 1, 0, &h, &out, &n);
	k_get(gotb, out, sizeof(gotb));
	k_same_bits(gotb, bytes, sizeof(gotb), 1, "texture over linear memory, four bytes");
	MUST(cuTexObjectDestroy(h));
	MUST(cuMemFree(d));
	MUST(cuMemFree(db));
	MUST(cuMemFree(out));
}

/* One dimension, a value at a coordinate, by the programming guide. */
static float at(const float *t, int n, int i, CUaddress_mode mode)
{
	int q = 2 * n;

	switch (mode) {
	case CU_TR_ADDRESS_MODE_CLAMP:
		return t[clamped(i, n)];
	case CU_TR_ADDRESS_MODE_WRAP:
		return t[((i % n) + n) % n];
	case CU_TR_ADDRESS_MODE_MIRROR:
		i = ((i % q) + q) % q;
		return t[i < n ? i : q - 1 - i];
	default:
		return i < 0 || i >= n ? -7 : t[i];
	}
}

static void test_modes(void)
{
	enum { N = 8, M = 64 };
	static const char *const names[] = {"wrap", "clamp", "mirror", "border"};
	float in[N], got[M], want[M], from = -1.4375f, step = 0.0625f;
	CUarray a = array(N, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0);
	CUdeviceptr out = k_out(sizeof(got));

	for (int i = 0; i < N; i++)
		in[i] = (float)(int)(k_random() % 64);
	put(a, in);
	for (unsigned mode = 0; mode < 4; mode++)
		for (unsigned filter = 0; filter < 2; filter++) {
			CUtexObject h =
				texture(a, NULL, (CUaddress_mode)mode, (CUfilter_mode)filter,
					CU_TRSF_NORMALIZED_COORDINATES);

			for (int i = 0; i < M; i++) {
				/* Steps of half a texel: exact. */
				double x = ((double)from + i * (double)step) * N, f, w;

				f = floor(filter ? x - 0.5 : x);
				w = x - 0.5 - f;
				want[i] = at(in, N, (int)f, (CUaddress_mode)mode);
				if (filter)
					want[i] = (float)((1 - w) * want[i] +
							  w * at(in, N, (int)f + 1,
								 (CUaddress_mode)mode));
			}
			K_RUN("tex_1d", 1, 1, M, 1, 0, &h, &out, &from, &step);
			k_get(got, out, sizeof(got));
			k_same_f32(got, want, M, names[mode]);
			MUST(cuTexObjectDestroy(h));
		}
	MUST(cuArrayDestroy(a));
	MUST(cuMemFree(out));
}

static void test_texture_2d(void)
{
	static float in[H][W], got[H + 2][W + 2], want[H + 2][W + 2];
	static int pairs[H][W][2], gotp[H][W][2];
	CUarray a = array(W, H, 0, CU_AD_FORMAT_FLOAT, 1, 0);
	CUarray b = array(W, H, 0, CU_AD_FORMAT_SIGNED_INT32, 2, 0);
	CUdeviceptr out = k_out(sizeof(got) + sizeof(gotp));
	float from = -0.75f, step = 1;
	CUtexObject h;

	for (int i = 0; i < H * W; i++)
		(&in[0][0])[i] = (float)(int)(k_random() % 1024);
	put(a, in);
	/* Clamped; texel i from i on, so -0.75 is in texel 0. Filtered: three quarters between centres. */
	for (int y = 0; y < H + 2; y++)
		for (int x = 0; x < W + 2; x++)
			want[y][x] = in[clamped(y - 1, H)][clamped(x - 1, W)];
	h = texture(a, NULL, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
	K_RUN("tex_2d", H + 2, 1, W + 2, 1, 0, &h, &out, &from, &step);
	k_get(got, out, sizeof(got));
	k_same_f32(&got[0][0], &want[0][0], (H + 2) * (W + 2), "texture, 2D");
	MUST(cuTexObjectDestroy(h));
	for (int y = 0; y < H + 2; y++)
		for (int x = 0; x < W + 2; x++) {
			double sum = 0;

			for (int k = 0; k < 4; k++)
				sum += (k & 1 ? 0.75 : 0.25) * (k & 2 ? 0.75 : 0.25) *
				       in[clamped(y - 2 + (k >> 1), H)]
					 [clamped(x - 2 + (k & 1), W)];
			want[y][x] = (float)sum;
		}
	h = texture(a, NULL, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_LINEAR, 0);
	K_RUN("tex_2d", H + 2, 1, W + 2, 1, 0, &h, &out, &from, &step);
	k_get(got, out, sizeof(got));
	k_same_f32(&got[0][0], &want[0][0], (H + 2) * (W + 2), "texture, 2D, filtered");
	MUST(cuTexObjectDestroy(h));
	for (int i = 0; i < H * W * 2; i++)
		(&pairs[0][0][0])[i] = (int)k_random();
	put(b, pairs);
	h = texture(b, NULL, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
	K_RUN("tex_2d_ints", H, 1, W, 1, 0, &h, &out);
	k_get(gotp, out, sizeof(gotp));
	k_same_bits(gotp, pairs, H * W * 2, 4, "texture, 2D, pairs of integers");
	MUST(cuTexObjectDestroy(h));
	MUST(cuArrayDestroy(a));
	MUST(cuArrayDestroy(b));
	MUST(cuMemFree(out));
}

static void test_pitched(void)
{
	enum { PITCH = 64 };
	static unsigned char in[H][PITCH];
	static float got[H][W], want[H][W];
	CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_PITCH2D};
	CUDA_TEXTURE_DESC t = {.addressMode = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP}};
	CUdeviceptr d, out = k_out(sizeof(got));
	float from = 0.5f, step = 1;
	CUtexObject h;

	for (int i = 0; i < H * PITCH; i++)
		(&in[0][0])[i] = (unsigned char)k_random();
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++)
			want[y][x] = (float)in[y][x] / 255;
	d = k_in(in, sizeof(in));
	r.res.pitch2D.devPtr = d;
	r.res.pitch2D.format = CU_AD_FORMAT_UNSIGNED_INT8;
	r.res.pitch2D.numChannels = 1;
	r.res.pitch2D.width = W;
	r.res.pitch2D.height = H;
	r.res.pitch2D.pitchInBytes = PITCH;
	MUST(cuTexObjectCreate(&h, &r, &t, NULL));
	K_RUN("tex_2d", H, 1, W, 1, 0, &h, &out, &from, &step);
	k_get(got, out, sizeof(got));
	k_same_f32(&got[0][0], &want[0][0], H * W, "texture over pitched bytes, read as floats");
	MUST(cuTexObjectDestroy(h));
	MUST(cuMemFree(d));
	MUST(cuMemFree(out));
}

static void test_texture_3d(void)
{
	static float in[D][H][W], rows[D][W], got[D][H][W], want[D][H][W];
	CUarray a = array(W, H, D, CU_AD_FORMAT_FLOAT, 1, 0);
	CUarray b = array(W, H, D, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED);
	CUarray c = array(W, 0, D, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED);
	CUdeviceptr out = k_out(sizeof(got));
	CUtexObject h, g;

	for (int i = 0; i < D * H * W; i++)
		(&in[0][0][0])[i] = k_float(9);
	for (int i = 0; i < D * W; i++)
		(&rows[0][0])[i] = k_float(9);
	put(a, in);
	put(b, in);
	put(c, rows);
	h = texture(a, NULL, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
	K_RUN("tex_3d", D, 1, W, H, 0, &h, &out);
	k_get(got, out, sizeof(got));
	k_same_f32(&got[0][0][0], &in[0][0][0], D * H * W, "texture, 3D");
	MUST(cuTexObjectDestroy(h));
	for (int z = 0; z < D; z++)
		for (int y = 0; y < H; y++)
			for (int x = 0; x < W; x++)
				want[z][y][x] = in[z][y][x] + rows[z][x];
	h = texture(b, NULL, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
	g = texture(c, NULL, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
	K_RUN("tex_layers", D, 1, W, H, 0, &h, &g, &out);
	k_get(got, out, sizeof(got));
	k_same_f32(&got[0][0][0], &want[0][0][0], D * H * W, "texture, layers");
	MUST(cuTexObjectDestroy(h));
	MUST(cuTexObjectDestroy(g));
	MUST(cuArrayDestroy(a));
	MUST(cuArrayDestroy(b));
	MUST(cuArrayDestroy(c));
	MUST(cuMemFree(out));
}

static void test_levels(void)
{
	enum { N = 8, LEVELS = 4 };
	CUDA_ARRAY3D_DESCRIPTOR desc = {N, N, 0, CU_AD_FORMAT_FLOAT, 1, 0};
	float texels[N * N], got[LEVELS][N], want[LEVELS][N];
	CUdeviceptr out = k_out(sizeof(got));
	CUmipmappedArray m;
	CUtexObject h;

	MUST(cuMipmappedArrayCreate(&m, &desc, LEVELS));
	for (int l = 0; l < LEVELS; l++) {
		CUarray a;

		MUST(cuMipmappedArrayGetLevel(&a, m, (unsigned)l));
		for (int i = 0; i < N * N; i++)
			texels[i] = (float)(l + 1);
		put(a, texels);
		for (int i = 0; i < N; i++)
			want[l][i] = 1 + 1000 * (float)(l + 1);
	}
	h = texture(NULL, m, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT,
		    CU_TRSF_NORMALIZED_COORDINATES);
	K_RUN("tex_levels", LEVELS, 1, N, 1, 0, &h, &out);
	k_get(got, out, sizeof(got));
	k_same_f32(&got[0][0], &want[0][0], LEVELS * N, "texture, levels");
	MUST(cuTexObjectDestroy(h));
	MUST(cuMipmappedArrayDestroy(m));
	MUST(cuMemFree(out));
}

/* ---- faults: each in a context of its own, which it breaks ---- */

static CUresult launch(const char *name, void **params)
{
	CUfunction f;

	MUST(cuModuleGetFunction(&f, k_module, name));
	MUST(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
	return cuCtxSynchronize();
}

static void fault(int what, CUresult want, const char *text)
{
	float *no = NULL;
	CUcontext ctx;
	CUarray a;
	CUsurfObject s;
	CUtexObject t;
	CUdeviceptr out;
	int n = 32, from = 0;
	CUresult r;

	MUST(cuCtxCreate(&ctx, NULL, 0, 0));
	k_load("surface");
	MUST(cuMemAlloc(&out, 4096));
	a = surface_array(what == 0 ? 16 : 64, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0);
	s = surface(a);
	t = texture(a, NULL, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_FILTER_MODE_POINT, 0);
	switch (what) {
	case 0: /* .trap outside */
		r = launch("surf_1d", (void *[]){&s, &s, &n});
		break;
	case 1: /* a pointer is no handle */
		r = launch("surf_1d", (void *[]){&out, &s, &n});
		break;
	case 2:
		r = launch("surf_1d", (void *[]){&t, &s, &n});
		break;
	case 3:
		MUST(cuArrayDestroy(a));
		r = launch("surf_1d", (void *[]){&s, &s, &n});
		break;
	case 4:
		r = launch("surf_bytes", (void *[]){&s, &s});
		break;
	default:
		MUST(cuTexObjectDestroy(t));
		r = launch("tex_fetch", (void *[]){&t, &out, &n, &from, no});
	}
	ok(r == want, "%s: %d", text, r);
	MUST(cuCtxDestroy(ctx));
}

int main(int argc, char **argv)
{
	k_begin(argc, argv);
	k_load("surface");
	test_surface_1d();
	test_surface_2d();
	test_surface_small();
	test_surface_3d();
	test_linear_memory();
	test_modes();
	test_texture_2d();
	test_pitched();
	test_texture_3d();
	test_levels();
	fault(0, CUDA_ERROR_LAUNCH_FAILED, "outside of a surface");
	fault(1, CUDA_ERROR_ILLEGAL_ADDRESS, "a pointer instead of a handle");
	fault(2, CUDA_ERROR_ILLEGAL_ADDRESS, "a texture instead of a surface");
	fault(3, CUDA_ERROR_ILLEGAL_ADDRESS, "a surface whose array is gone");
	fault(4, CUDA_ERROR_LAUNCH_FAILED, "two dimensions of a surface that has one");
	fault(5, CUDA_ERROR_ILLEGAL_ADDRESS, "a texture that is gone");
	return tap_done();
}
