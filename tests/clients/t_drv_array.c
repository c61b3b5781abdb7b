/* SPDX-License-Identifier: MIT */
/*
 * Arrays and mipmapped arrays through the Driver API: what may be created, every copy with an array on a side against the same copy in host memory, streams, graphs, and what is refused.
 */
#include "tests/clients/drv.h"

#define W     20 /* elements of 4 bytes */
#define H     6
#define D     3
#define ROW   (W * 4)
#define SLICE (ROW * H)
#define BOX   (SLICE * D)

static CUcontext ctx;
static unsigned char src[BOX], dst[BOX], want[BOX];

static void fresh(void)
{
	static unsigned char salt;

	salt += 41;
	for (unsigned i = 0; i < BOX; i++)
		src[i] = (unsigned char)(i * 7 + i / 253 + salt);
	memset(dst, 0xee, sizeof(dst));
	memset(want, 0xee, sizeof(want));
}

static CUarray array(size_t w, size_t h, size_t d, unsigned flags)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = {w, h, d, CU_AD_FORMAT_FLOAT, 1, flags};
	CUarray a;

	must(cuArray3DCreate(&a, &desc));
	return a;
}

/* ---- creation ---- */

static void creation(void)
{
	CUDA_ARRAY_DESCRIPTOR two = {W, H, CU_AD_FORMAT_HALF, 2}, got2;
	CUDA_ARRAY3D_DESCRIPTOR three = {W, H, D, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0}, got3;
	size_t before, during, after, total;
	CUarray a = NULL, b = NULL;

	must(cuMemGetInfo(&before, &total));
	is_cu(cuArrayCreate(&a, &two), CUDA_SUCCESS, "an array of two dimensions");
	must(cuArrayGetDescriptor(&got2, a));
	ok(!memcmp(&got2, &two, sizeof(two)), "its descriptor");
	must(cuArray3DGetDescriptor(&got3, a));
	ok(got3.Width == W && got3.Height == H && !got3.Depth && !got3.Flags,
	   "in three dimensions the depth is 0");
	is_cu(cuArray3DCreate(&b, &three), CUDA_SUCCESS, "an array of three dimensions");
	must(cuArray3DGetDescriptor(&got3, b));
	ok(!memcmp(&got3, &three, sizeof(three)), "its descriptor");
	must(cuMemGetInfo(&during, &total));
	ok(before - during >= W * H * 4 + W * H * D * 4, "both are charged to the device");
	is_cu(cuArrayDestroy(a), CUDA_SUCCESS, "destroy");
	is_cu(cuArrayDestroy(a), CUDA_ERROR_INVALID_HANDLE, "destroy again");
	is_cu(cuArrayGetDescriptor(&got2, a), CUDA_ERROR_INVALID_HANDLE, "describe what is gone");
	must(cuArrayDestroy(b));
	must(cuMemGetInfo(&after, &total));
	is_u64(after, before, "all is given back");
}

static CUresult try(size_t w, size_t h, size_t d, CUarray_format f, unsigned channels,
		    unsigned flags)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = {w, h, d, f, channels, flags};
	CUarray a;
	CUresult r = cuArray3DCreate(&a, &desc);

	if (!r)
		must(cuArrayDestroy(a));
	return r;
}

static void descriptors(void)
{
	const CUarray_format f = CU_AD_FORMAT_FLOAT;
	CUDA_ARRAY_MEMORY_REQUIREMENTS need;
	CUDA_ARRAY_SPARSE_PROPERTIES sparse;
	CUarray a = array(8, 8, 0, 0), plane;
	static const struct {
		size_t w, h, d;
		CUarray_format format;
		unsigned channels, flags;
		CUresult want;
		const char *what;
	} rows[] = {
		{0, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0, CUDA_ERROR_INVALID_VALUE, "no width"},
		{4, 0, 4, CU_AD_FORMAT_FLOAT, 1, 0, CUDA_ERROR_INVALID_VALUE, "depth, no height"},
		{4, 4, 0, CU_AD_FORMAT_FLOAT, 3, 0, CUDA_ERROR_INVALID_VALUE, "three channels"},
		{4, 4, 0, (CUarray_format)0x77, 1, 0, CUDA_ERROR_INVALID_VALUE, "no format"},
		{4, 4, 0, CU_AD_FORMAT_UNORM_INT8X2, 4, 0, CUDA_ERROR_INVALID_VALUE,
		 "channels against the format"},
		{4, 4, 0, CU_AD_FORMAT_UNORM_INT8X2, 2, 0, CUDA_SUCCESS, "a normalised format"},
		{4, 4, 0, CU_AD_FORMAT_BC1_UNORM, 4, 0, CUDA_ERROR_NOT_SUPPORTED, "compressed"},
		{4, 4, 0, CU_AD_FORMAT_NV12, 3, 0, CUDA_ERROR_NOT_SUPPORTED, "planar"},
		{131072, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0, CUDA_SUCCESS, "as wide as can be"},
		{131073, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0, CUDA_ERROR_INVALID_VALUE, "wider"},
		{32769, 0, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST,
		 CUDA_ERROR_INVALID_VALUE, "wider than a surface"},
		{4, 0, 2048, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED, CUDA_SUCCESS, "layers"},
		{4, 0, 2049, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED, CUDA_ERROR_INVALID_VALUE,
		 "too many layers"},
		{4, 4, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED, CUDA_ERROR_INVALID_VALUE,
		 "layered without layers"},
		{4, 4, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP, CUDA_SUCCESS, "a cube"},
		{4, 4, 12, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP, CUDA_ERROR_INVALID_VALUE,
		 "two cubes without layers"},
		{4, 5, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP, CUDA_ERROR_INVALID_VALUE,
		 "a cube that is none"},
		{4, 4, 4, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_TEXTURE_GATHER,
		 CUDA_ERROR_INVALID_VALUE, "gather in three dimensions"},
		{4, 4, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SPARSE, CUDA_ERROR_NOT_SUPPORTED,
		 "sparse"},
		{4, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0x4000, CUDA_ERROR_INVALID_VALUE, "no such flag"},
		{16384, 16384, 16384, CU_AD_FORMAT_FLOAT, 4, 0, CUDA_ERROR_OUT_OF_MEMORY, "huge"},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		is_cu(try(rows[i].w, rows[i].h, rows[i].d, rows[i].format, rows[i].channels,
			  rows[i].flags),
		      rows[i].want, rows[i].what);
	is_cu(try(1, 1, 1, f, 1, 0), CUDA_SUCCESS, "one texel");
	is_cu(cuArray3DCreate(NULL, NULL), CUDA_ERROR_INVALID_VALUE, "nothing at all");
	is_cu(cuArrayGetPlane(&plane, a, 0), CUDA_ERROR_INVALID_VALUE, "no planes");
	is_cu(cuArrayGetMemoryRequirements(&need, a, 0), CUDA_ERROR_INVALID_VALUE,
	      "memory is not mapped by the program");
	is_cu(cuArrayGetSparseProperties(&sparse, a), CUDA_ERROR_INVALID_VALUE, "not sparse");
	is_cu(cuArrayGetSparseProperties(&sparse, (CUarray)&sparse), CUDA_ERROR_INVALID_HANDLE,
	      "no array");
	must(cuArrayDestroy(a));
}

static void mipmaps(void)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = {16, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0}, got;
	CUmipmappedArray m;
	CUarray level[5], again;
	unsigned char row[64] = {0};

	is_cu(cuMipmappedArrayCreate(&m, &desc, 99), CUDA_SUCCESS, "a mipmapped array");
	for (unsigned i = 0; i < 5; i++)
		must(cuMipmappedArrayGetLevel(&level[i], m, i));
	is_cu(cuMipmappedArrayGetLevel(&again, m, 5), CUDA_ERROR_INVALID_VALUE, "a level too far");
	must(cuMipmappedArrayGetLevel(&again, m, 3));
	ok(again == level[3], "a level has one handle");
	must(cuArray3DGetDescriptor(&got, level[3]));
	ok(got.Width == 2 && got.Height == 1, "levels halve, down to 1");
	fresh();
	for (unsigned i = 0; i < 5; i++) {
		CUDA_MEMCPY2D p = {.srcMemoryType = CU_MEMORYTYPE_HOST,
				   .srcHost = src + i,
				   .dstMemoryType = CU_MEMORYTYPE_ARRAY,
				   .dstArray = level[i],
				   .WidthInBytes = 4 * (16u >> i),
				   .Height = 1};

		must(cuMemcpy2D(&p));
	}
	for (unsigned i = 0; i < 5; i++) {
		CUDA_MEMCPY2D p = {.dstMemoryType = CU_MEMORYTYPE_HOST,
				   .dstHost = row,
				   .srcMemoryType = CU_MEMORYTYPE_ARRAY,
				   .srcArray = level[i],
				   .WidthInBytes = 4 * (16u >> i),
				   .Height = 1};

		must(cuMemcpy2D(&p));
		ok(!memcmp(row, src + i, 4 * (16u >> i)), "level %u holds its own", i);
	}
	is_cu(cuArrayDestroy(level[0]), CUDA_ERROR_INVALID_HANDLE,
	      "a level is not destroyed alone");
	is_cu(cuMipmappedArrayDestroy(m), CUDA_SUCCESS, "destroy");
	is_cu(cuArray3DGetDescriptor(&got, level[0]), CUDA_ERROR_INVALID_HANDLE,
	      "its levels go with it");
	is_cu(cuMipmappedArrayCreate(&m, &desc, 0), CUDA_ERROR_INVALID_VALUE, "no levels");
}

/* ---- copies ---- */

static void linear(void)
{
	CUarray a = array(W, 0, 0, 0), b = array(W, 0, 0, 0), two = array(W, H, 0, 0), gone;
	CUdeviceptr p;
	void *pinned;

	must(cuMemAlloc(&p, ROW));
	must(cuMemAllocHost(&pinned, ROW));
	fresh();
	must(cuMemcpyHtoA(a, 0, src, ROW));
	must(cuMemcpyAtoH(dst, a, 0, ROW));
	ok(!memcmp(dst, src, ROW), "HtoA, AtoH");
	must(cuMemcpyAtoA(b, 8, a, 4, 40));
	must(cuMemcpyAtoD(p + 3, b, 8, 40));
	must(cuMemcpyDtoH(dst, p + 3, 40));
	ok(!memcmp(dst, src + 4, 40), "AtoA, AtoD");
	must(cuMemcpyHtoD(p, src + 100, ROW));
	must(cuMemcpyDtoA(a, 16, p + 1, 20));
	must(cuMemcpyAtoHAsync(pinned, a, 0, ROW, NULL));
	must(cuCtxSynchronize());
	memcpy(want, src, ROW);
	memcpy(want + 16, src + 101, 20);
	ok(!memcmp(pinned, want, ROW), "DtoA, AtoH asynchronous");
	memcpy(pinned, src + 200, ROW);
	must(cuMemcpyHtoAAsync(b, 0, pinned, ROW, NULL));
	must(cuMemcpyAtoH(dst, b, 0, ROW));
	ok(!memcmp(dst, src + 200, ROW), "HtoA asynchronous");
	is_cu(cuMemcpyHtoA(a, 4, src, ROW), CUDA_ERROR_INVALID_VALUE, "past the end");
	is_cu(cuMemcpyHtoA(a, 2, src, 4), CUDA_ERROR_INVALID_VALUE, "inside of an element");
	is_cu(cuMemcpyAtoA(a, 0, b, 0, 6), CUDA_ERROR_INVALID_VALUE, "one element and a half");
	is_cu(cuMemcpyHtoA(two, 0, src, 8), CUDA_ERROR_INVALID_VALUE, "two dimensions");
	is_cu(cuMemcpyAtoD((CUdeviceptr)dst, a, 0, 8), CUDA_ERROR_INVALID_VALUE,
	      "to what is no device memory");
	gone = array(W, 0, 0, 0);
	must(cuArrayDestroy(gone));
	is_cu(cuMemcpyHtoA(gone, 0, src, 8), CUDA_ERROR_INVALID_VALUE, "to an array that is gone");
	must(cuArrayDestroy(a));
	must(cuArrayDestroy(b));
	must(cuArrayDestroy(two));
	must(cuMemFreeHost(pinned));
	must(cuMemFree(p));
}

/* The copy of a box in host memory. */
static void model(unsigned char *to, const unsigned char *from, const CUDA_MEMCPY3D *p)
{
	for (size_t z = 0; z < p->Depth; z++)
		for (size_t y = 0; y < p->Height; y++)
			memcpy(to + (p->dstZ + z) * SLICE + (p->dstY + y) * ROW + p->dstXInBytes,
			       from + (p->srcZ + z) * SLICE + (p->srcY + y) * ROW + p->srcXInBytes,
			       p->WidthInBytes);
}

static CUDA_MEMCPY3D box(void)
{
	return (CUDA_MEMCPY3D){.srcXInBytes = 8,
			       .srcY = 1,
			       .srcZ = 0,
			       .dstXInBytes = 16,
			       .dstY = 2,
			       .dstZ = 1,
			       .WidthInBytes = 24,
			       .Height = 3,
			       .Depth = 2};
}

enum side { HOST, DEVICE, ARRAY, SIDES };

static struct {
	CUdeviceptr device[2];
	CUarray array[2];
} mem;

static void set_src(CUDA_MEMCPY3D *p, enum side s, unsigned i)
{
	p->srcMemoryType = s == HOST	 ? CU_MEMORYTYPE_HOST
			   : s == DEVICE ? CU_MEMORYTYPE_DEVICE
					 : CU_MEMORYTYPE_ARRAY;
	p->srcHost = i ? dst : src;
	p->srcDevice = mem.device[i];
	p->srcArray = mem.array[i];
	p->srcPitch = s == ARRAY ? 0 : ROW;
	p->srcHeight = s == ARRAY ? 0 : H;
}

static void set_dst(CUDA_MEMCPY3D *p, enum side s, unsigned i)
{
	p->dstMemoryType = s == HOST	 ? CU_MEMORYTYPE_HOST
			   : s == DEVICE ? CU_MEMORYTYPE_DEVICE
					 : CU_MEMORYTYPE_ARRAY;
	p->dstHost = i ? dst : src;
	p->dstDevice = mem.device[i];
	p->dstArray = mem.array[i];
	p->dstPitch = s == ARRAY ? 0 : ROW;
	p->dstHeight = s == ARRAY ? 0 : H;
}

static void whole(enum side to, unsigned ti, enum side from, unsigned fi)
{
	CUDA_MEMCPY3D p = {.WidthInBytes = ROW, .Height = H, .Depth = D};

	set_src(&p, from, fi);
	set_dst(&p, to, ti);
	must(cuMemcpy3D(&p));
}

static CUresult by_2d(const CUDA_MEMCPY3D *p, int unaligned)
{
	CUDA_MEMCPY2D q = {.srcXInBytes = p->srcXInBytes,
			   .srcY = p->srcY,
			   .srcMemoryType = p->srcMemoryType,
			   .srcHost = p->srcHost,
			   .srcDevice = p->srcDevice,
			   .srcArray = p->srcArray,
			   .srcPitch = p->srcPitch,
			   .dstXInBytes = p->dstXInBytes,
			   .dstY = p->dstY,
			   .dstMemoryType = p->dstMemoryType,
			   .dstHost = p->dstHost,
			   .dstDevice = p->dstDevice,
			   .dstArray = p->dstArray,
			   .dstPitch = p->dstPitch,
			   .WidthInBytes = p->WidthInBytes,
			   .Height = p->Height};

	return unaligned ? cuMemcpy2DUnaligned(&q) : cuMemcpy2D(&q);
}

static CUresult by_peer(const CUDA_MEMCPY3D *p)
{
	CUDA_MEMCPY3D_PEER q = {.srcXInBytes = p->srcXInBytes,
				.srcY = p->srcY,
				.srcZ = p->srcZ,
				.srcMemoryType = p->srcMemoryType,
				.srcHost = p->srcHost,
				.srcDevice = p->srcDevice,
				.srcArray = p->srcArray,
				.srcContext = ctx,
				.srcPitch = p->srcPitch,
				.srcHeight = p->srcHeight,
				.dstXInBytes = p->dstXInBytes,
				.dstY = p->dstY,
				.dstZ = p->dstZ,
				.dstMemoryType = p->dstMemoryType,
				.dstHost = p->dstHost,
				.dstDevice = p->dstDevice,
				.dstArray = p->dstArray,
				.dstContext = ctx,
				.dstPitch = p->dstPitch,
				.dstHeight = p->dstHeight,
				.WidthInBytes = p->WidthInBytes,
				.Height = p->Height,
				.Depth = p->Depth};

	return cuMemcpy3DPeer(&q);
}

static CUresult by_graph(const CUDA_MEMCPY3D *p)
{
	CUDA_MEMCPY3D got;
	CUgraphExec exec;
	CUgraphNode node;
	CUgraph g;
	CUresult r;

	must(cuGraphCreate(&g, 0));
	r = cuGraphAddMemcpyNode(&node, g, NULL, 0, p, ctx);
	if (!r) {
		must(cuGraphMemcpyNodeGetParams(node, &got));
		ok(!memcmp(&got, p, sizeof(got)), "a graph node tells its parameters");
		must(cuGraphInstantiate(&exec, g, 0));
		must(cuGraphLaunch(exec, NULL));
		must(cuCtxSynchronize());
		must(cuGraphExecDestroy(exec));
	}
	must(cuGraphDestroy(g));
	return r;
}

/* Captured: the node's parameters are the driver's own words for the same copy. */
static CUresult by_capture(const CUDA_MEMCPY3D *p)
{
	CUDA_MEMCPY3D got = {0};
	CUgraphExec exec;
	CUgraphNode node;
	size_t n = 1;
	CUstream s;
	CUgraph g;
	CUresult r;

	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
	r = cuMemcpy3DAsync(p, s);
	must(cuStreamEndCapture(s, &g));
	must(cuGraphGetNodes(g, &node, &n));
	must(cuGraphMemcpyNodeGetParams(node, &got));
	if (p->srcMemoryType == CU_MEMORYTYPE_ARRAY)
		ok(got.srcMemoryType == CU_MEMORYTYPE_ARRAY && got.srcArray == p->srcArray &&
			   got.srcXInBytes == p->srcXInBytes && got.srcY == p->srcY &&
			   got.srcZ == p->srcZ,
		   "a captured copy names its source array");
	if (p->dstMemoryType == CU_MEMORYTYPE_ARRAY)
		ok(got.dstMemoryType == CU_MEMORYTYPE_ARRAY && got.dstArray == p->dstArray &&
			   got.dstXInBytes == p->dstXInBytes && got.dstY == p->dstY &&
			   got.dstZ == p->dstZ,
		   "a captured copy names its destination array");
	must(cuGraphInstantiate(&exec, g, 0));
	must(cuGraphLaunch(exec, s));
	must(cuStreamSynchronize(s));
	must(cuGraphExecDestroy(exec));
	must(cuGraphDestroy(g));
	must(cuStreamDestroy(s));
	return r;
}

static CUresult by_batch(const CUDA_MEMCPY3D *p)
{
	CUDA_MEMCPY3D_BATCH_OP op = {
		.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
		.extent = {p->WidthInBytes, p->Height, p->Depth},
	};
	int arrays =
		p->srcMemoryType == CU_MEMORYTYPE_ARRAY || p->dstMemoryType == CU_MEMORYTYPE_ARRAY;
	size_t elem = arrays ? 4 : 1;
	CUstream s;
	CUresult r;

	op.extent.width /= elem;
	if (p->srcMemoryType == CU_MEMORYTYPE_ARRAY) {
		op.src.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
		op.src.op.array.array = p->srcArray;
		op.src.op.array.offset = (CUoffset3D){p->srcXInBytes / elem, p->srcY, p->srcZ};
	} else {
		op.src.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
		op.src.op.ptr.ptr =
			(p->srcMemoryType == CU_MEMORYTYPE_HOST ? (CUdeviceptr)p->srcHost
								: p->srcDevice) +
			p->srcZ * SLICE + p->srcY * ROW + p->srcXInBytes;
		op.src.op.ptr.rowLength = ROW / elem;
		op.src.op.ptr.layerHeight = H;
	}
	if (p->dstMemoryType == CU_MEMORYTYPE_ARRAY) {
		op.dst.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
		op.dst.op.array.array = p->dstArray;
		op.dst.op.array.offset = (CUoffset3D){p->dstXInBytes / elem, p->dstY, p->dstZ};
	} else {
		op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
		op.dst.op.ptr.ptr =
			(p->dstMemoryType == CU_MEMORYTYPE_HOST ? (CUdeviceptr)p->dstHost
								: p->dstDevice) +
			p->dstZ * SLICE + p->dstY * ROW + p->dstXInBytes;
		op.dst.op.ptr.rowLength = ROW / elem;
		op.dst.op.ptr.layerHeight = H;
	}
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	r = cuMemcpy3DBatchAsync(1, &op, 0, s);
	must(cuStreamSynchronize(s));
	must(cuStreamDestroy(s));
	return r;
}

enum way { PLAIN, ASYNC, PEER, TWO, UNALIGNED, GRAPH, CAPTURE, BATCH, WAYS };

static CUresult go(enum way way, const CUDA_MEMCPY3D *p)
{
	CUresult r;

	switch (way) {
	case PLAIN:
		return cuMemcpy3D(p);
	case ASYNC:
		r = cuMemcpy3DAsync(p, NULL);
		must(cuCtxSynchronize());
		return r;
	case PEER:
		return by_peer(p);
	case TWO:
	case UNALIGNED:
		return by_2d(p, way == UNALIGNED);
	case GRAPH:
		return by_graph(p);
	case CAPTURE:
		return by_capture(p);
	default:
		return by_batch(p);
	}
}

static void boxes(void)
{
	static const char *const sides[] = {"host", "device", "array"},
				 *const ways[] = {
					 "3D",		 "3D asynchronous", "peer",    "2D",
					 "2D unaligned", "graph",	    "capture", "batch"};

	for (unsigned i = 0; i < 2; i++) {
		must(cuMemAlloc(&mem.device[i], BOX));
		mem.array[i] = array(W, H, D, 0);
	}
	for (int from = HOST; from < SIDES; from++)
		for (int to = HOST; to < SIDES; to++)
			for (int way = PLAIN; way < WAYS; way++) {
				CUDA_MEMCPY3D p = box();

				if (from != ARRAY && to != ARRAY)
					continue;
				fresh();
				if (from != HOST)
					whole(from, 0, HOST, 0);
				if (to != HOST)
					whole(to, 1, HOST, 1);
				if (way == TWO || way == UNALIGNED)
					p.srcZ = p.dstZ = 0, p.Depth = 1;
				must(cuCtxSynchronize());
				set_src(&p, from, 0);
				set_dst(&p, to, 1);
				must(go(way, &p));
				model(want, src, &p);
				if (to != HOST)
					whole(HOST, 1, to, 1);
				ok(!memcmp(dst, want, BOX), "%s: %s to %s", ways[way], sides[from],
				   sides[to]);
			}
}

static void bounds(void)
{
	static const struct {
		size_t x, y, z, w, h, d;
		const char *what;
	} bad[] = {
		{ROW - 4, 0, 0, 8, 1, 1, "a row too long"},
		{0, H - 1, 0, 4, 2, 1, "a row too many"},
		{0, 0, D - 1, 4, 1, 2, "a slice too many"},
		{2, 0, 0, 4, 1, 1, "inside of an element"},
		{ROW + 4, 0, 0, 4, 1, 1, "beside it"},
		{SIZE_MAX - 3, 0, 0, 8, 1, 1, "wrapped"},
	};
	CUDA_ARRAY3D_DESCRIPTOR wide = {W, H, D, CU_AD_FORMAT_FLOAT, 4, 0};
	CUDA_MEMCPY3D p;
	CUgraphNode node;
	CUarray other;
	CUgraph g;

	must(cuGraphCreate(&g, 0));
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		p = (CUDA_MEMCPY3D){.dstXInBytes = bad[i].x,
				    .dstY = bad[i].y,
				    .dstZ = bad[i].z,
				    .WidthInBytes = bad[i].w,
				    .Height = bad[i].h,
				    .Depth = bad[i].d};
		set_src(&p, HOST, 0);
		set_dst(&p, ARRAY, 1);
		is_cu(cuMemcpy3D(&p), CUDA_ERROR_INVALID_VALUE, bad[i].what);
		is_cu(cuGraphAddMemcpyNode(&node, g, NULL, 0, &p, ctx), CUDA_ERROR_INVALID_VALUE,
		      "and in a graph");
	}
	must(cuGraphDestroy(g));
	must(cuArray3DCreate(&other, &wide));
	p = box();
	set_src(&p, ARRAY, 0);
	set_dst(&p, ARRAY, 1);
	p.dstArray = other;
	is_cu(cuMemcpy3D(&p), CUDA_ERROR_INVALID_VALUE, "elements of two sizes");
	p.dstArray = NULL;
	is_cu(cuMemcpy3D(&p), CUDA_ERROR_INVALID_VALUE, "no array");
	p = box();
	set_src(&p, HOST, 0);
	set_dst(&p, ARRAY, 1);
	p.dstLOD = 1;
	is_cu(cuMemcpy3D(&p), CUDA_ERROR_INVALID_VALUE, "a level of detail");
	must(cuArrayDestroy(other));
}

/* ---- time ---- */

static void order(void)
{
	CUarray a = array(W, 0, 0, 0);
	CUdeviceptr p, q;
	CUstream s, t;
	CUevent e;
	void *pinned;

	must(cuMemAlloc(&p, ROW));
	must(cuMemAlloc(&q, ROW));
	must(cuMemAllocHost(&pinned, ROW));
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	must(cuEventCreate(&e, 0));
	fresh();
	memcpy(pinned, src, ROW);
	must(cuMemcpyHtoAAsync(a, 0, pinned, ROW, s));
	must(cuEventRecord(e, s));
	must(cuStreamWaitEvent(t, e, 0));
	must(cuMemcpyAtoHAsync((char *)pinned + 40, a, 0, 40, t));
	must(cuMemcpyHtoAAsync(a, 40, src + 100, 40, t));
	memset(src + 100, 0, 40); /* pageable: taken during the call */
	must(cuStreamSynchronize(t));
	ok(!memcmp((char *)pinned + 40, src, 40), "an event orders the array's writer and reader");
	fresh();
	must(cuMemcpyHtoA(a, 0, src, ROW));
	must(cuMemcpyAtoH(dst, a, 0, ROW));
	ok(!memcmp(dst, src, ROW), "synchronous copies");
	must(cuMemcpyHtoAAsync(a, 0, src, ROW, s));
	is_cu(cuArrayDestroy(a), CUDA_SUCCESS, "destroying waits for what is queued");
	is_cu(cuCtxSynchronize(), CUDA_SUCCESS, "which was right");
	must(cuStreamDestroy(s));
	must(cuStreamDestroy(t));
	must(cuEventDestroy(e));
	must(cuMemFree(p));
	must(cuMemFree(q));
	must(cuMemFreeHost(pinned));
}

static float timed(CUarray to, CUarray from, const void *host, size_t n)
{
	CUevent a, b;
	float ms = 0;

	must(cuEventCreate(&a, 0));
	must(cuEventCreate(&b, 0));
	must(cuEventRecord(a, NULL));
	if (from)
		must(cuMemcpyAtoA(to, 0, from, 0, n));
	else
		must(cuMemcpyHtoAAsync(to, 0, host, n, NULL));
	must(cuEventRecord(b, NULL));
	must(cuCtxSynchronize());
	must(cuEventElapsedTime(&ms, a, b));
	must(cuEventDestroy(a));
	must(cuEventDestroy(b));
	return ms;
}

static void clocks(void)
{
	enum { N = 100000 };
	CUarray a = array(N, 0, 0, 0), b = array(N, 0, 0, 0);
	float up, inside;
	void *pinned;

	must(cuMemAllocHost(&pinned, 4 * N));
	up = timed(a, NULL, pinned, 4 * N);
	inside = timed(b, a, NULL, 4 * N);
	ok(inside > 0 && up > 2 * inside, "a copy from the host takes longer (%g, %g ms)", up,
	   inside);
	must(cuMemFreeHost(pinned));
	must(cuArrayDestroy(a));
	must(cuArrayDestroy(b));
}

/* Last: the context breaks. */
static void used_after_destroy(void)
{
	CUarray a = array(W, 0, 0, 0);
	CUgraphExec exec;
	CUgraphNode node;
	CUgraph g;
	CUDA_MEMCPY3D p = {.srcMemoryType = CU_MEMORYTYPE_HOST,
			   .srcHost = src,
			   .dstMemoryType = CU_MEMORYTYPE_ARRAY,
			   .dstArray = a,
			   .WidthInBytes = 8,
			   .Height = 1,
			   .Depth = 1};

	must(cuGraphCreate(&g, 0));
	must(cuGraphAddMemcpyNode(&node, g, NULL, 0, &p, ctx));
	must(cuGraphInstantiate(&exec, g, 0));
	must(cuArrayDestroy(a));
	a = array(W, 0, 0, 0); /* perhaps with the same handle */
	must(cuGraphLaunch(exec, NULL));
	is_cu(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS,
	      "a graph writes to an array that is gone");
}

int main(void)
{
	ctx = drv_context();
	creation();
	descriptors();
	mipmaps();
	linear();
	boxes();
	bounds();
	order();
	clocks();
	used_after_destroy();
	must(cuCtxDestroy(ctx));
	ok(!simcuda_live_bytes(0), "nothing is left with the context");
	return tap_done();
}
