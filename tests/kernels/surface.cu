/* SPDX-License-Identifier: MIT */
/* Through objects: surfaces read and written in every shape, textures sampled in every shape. */

extern "C" __global__ void surf_1d(cudaSurfaceObject_t a, cudaSurfaceObject_t b, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		surf1Dwrite(surf1Dread<float>(a, i * 4) + 1, b, i * 4);
}

/* Texels of 16 bytes, a row per block; x from -2 on. */
extern "C" __global__ void surf_2d_clamp(cudaSurfaceObject_t a, cudaSurfaceObject_t b)
{
	int x = (int)threadIdx.x - 2, y = blockIdx.x;
	float4 v = surf2Dread<float4>(a, x * 16, y, cudaBoundaryModeClamp);

	surf2Dwrite(make_float4(v.w, v.z, v.y, v.x), b, x * 16, y, cudaBoundaryModeZero);
}

extern "C" __global__ void surf_bytes(cudaSurfaceObject_t a, cudaSurfaceObject_t b)
{
	int x = threadIdx.x, y = blockIdx.x;

	surf2Dwrite((unsigned char)(surf2Dread<unsigned char>(a, x, y) ^ 0x5a), b, x, y);
}

extern "C" __global__ void surf_pairs(cudaSurfaceObject_t a, cudaSurfaceObject_t b)
{
	int x = threadIdx.x, y = blockIdx.x;
	short2 s = surf2Dread<short2>(a, x * 4, y, cudaBoundaryModeZero);

	surf2Dwrite(make_short2(s.y, s.x), b, x * 4, y, cudaBoundaryModeZero);
}

extern "C" __global__ void surf_wide(cudaSurfaceObject_t a, cudaSurfaceObject_t b)
{
	int x = threadIdx.x, y = blockIdx.x;
	longlong2 v = surf2Dread<longlong2>(a, x * 16, y);

	surf2Dwrite(make_longlong2(v.y, v.x + 1), b, x * 16, y);
}

extern "C" __global__ void surf_3d(cudaSurfaceObject_t a, cudaSurfaceObject_t b)
{
	int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x;

	surf3Dwrite(surf3Dread<int>(a, x * 4, y, z) + 100 * z, b, x * 4, y, z);
}

extern "C" __global__ void surf_layers(cudaSurfaceObject_t a, cudaSurfaceObject_t b,
				       cudaSurfaceObject_t rows)
{
	int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x;
	int v = surf2DLayeredread<int>(a, x * 4, y, z);

	surf2DLayeredwrite(v * 3, b, x * 4, y, z);
	if (!y)
		surf1DLayeredwrite(v, rows, x * 4, z);
}

extern "C" __global__ void tex_fetch(cudaTextureObject_t t, float *out, int n, int from)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[i] = tex1Dfetch<float>(t, i + from);
}

extern "C" __global__ void tex_fetch_bytes(cudaTextureObject_t t, uchar4 *out, int n)
{
	int i = threadIdx.x;

	if (i < n)
		out[i] = tex1Dfetch<uchar4>(t, i);
}

extern "C" __global__ void tex_1d(cudaTextureObject_t t, float *out, float from, float step)
{
	int i = threadIdx.x;

	out[i] = tex1D<float>(t, from + i * step);
}

extern "C" __global__ void tex_2d(cudaTextureObject_t t, float *out, float from, float step)
{
	int x = threadIdx.x, y = blockIdx.x;

	out[y * blockDim.x + x] = tex2D<float>(t, from + x * step, from + y * step);
}

extern "C" __global__ void tex_2d_ints(cudaTextureObject_t t, int2 *out)
{
	int x = threadIdx.x, y = blockIdx.x;

	out[y * blockDim.x + x] = tex2D<int2>(t, x, y);
}

extern "C" __global__ void tex_3d(cudaTextureObject_t t, float *out)
{
	int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x;

	out[(z * blockDim.y + y) * blockDim.x + x] = tex3D<float>(t, x, y, z);
}

extern "C" __global__ void tex_layers(cudaTextureObject_t t, cudaTextureObject_t rows, float *out)
{
	int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x;

	out[(z * blockDim.y + y) * blockDim.x + x] =
		tex2DLayered<float>(t, x, y, z) + tex1DLayered<float>(rows, x, z);
}

/* Level 0 and the level of each block. */
extern "C" __global__ void tex_levels(cudaTextureObject_t t, float *out)
{
	float x = (threadIdx.x + 0.5f) / blockDim.x;

	out[blockIdx.x * blockDim.x + threadIdx.x] =
		tex2DLod<float>(t, x, x, 0) + 1000 * tex2DLod<float>(t, x, x, (float)blockIdx.x);
}
