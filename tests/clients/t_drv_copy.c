/* SPDX-License-Identifier: MIT */
/*
 * Copies and fills: every form against memcpy and memset on the host; when the host may go on.
 */
#include "tests/clients/drv.h"

#define BYTES 65536u

static unsigned char src[BYTES], dst[BYTES], want[BYTES];
static CUdeviceptr a, b;

static void fresh(void)
{
	for (unsigned i = 0; i < BYTES; i++)
		src[i] = (unsigned char)(i * 31 + i / 251);
	must(cuMemcpyHtoD(a, src, BYTES));
	must(cuMemsetD8(b, 0xee, BYTES));
	memset(want, 0xee, BYTES);
}

static void same(const char *what)
{
	must(cuMemcpyDtoH(dst, b, BYTES));
	ok(!memcmp(dst, want, BYTES), "%s", what);
}

static void linear(void)
{
	fresh();
	must(cuMemcpyDtoD(b + 100, a + 7, 1000));
	memcpy(want + 100, src + 7, 1000);
	same("DtoD");
	must(cuMemcpy(b + 3000, (CUdeviceptr)src, 500));
	memcpy(want + 3000, src, 500);
	same("unified, from the host");
	must(cuMemcpyAsync(b + 5000, a, 500, NULL));
	memcpy(want + 5000, src, 500);
	same("unified, asynchronous");
	must(cuMemcpyHtoDAsync(b + 6000, src + 1, 77, NULL));
	memcpy(want + 6000, src + 1, 77);
	same("HtoD asynchronous");
	is_cu(cuMemcpyDtoD(b + BYTES - 10, a, 11), CUDA_ERROR_INVALID_VALUE, "one byte too far");
	is_cu(cuMemcpyHtoD((CUdeviceptr)dst, src, 8), CUDA_ERROR_INVALID_VALUE,
	      "HtoD to something that is no device memory");
	is_cu(cuMemcpyHtoD(b, NULL, 8), CUDA_ERROR_INVALID_VALUE, "from a null pointer");
	is_cu(cuMemcpyHtoD(b, src, 0), CUDA_SUCCESS, "nothing to copy");
	same("failed copies changed nothing");
}

static void strided(void)
{
	CUDA_MEMCPY2D p = {.srcMemoryType = CU_MEMORYTYPE_HOST,
			   .srcHost = src,
			   .srcPitch = 100,
			   .srcXInBytes = 3,
			   .srcY = 2,
			   .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			   .dstDevice = b,
			   .dstPitch = 256,
			   .dstXInBytes = 5,
			   .dstY = 1,
			   .WidthInBytes = 50,
			   .Height = 20};
	CUDA_MEMCPY3D q = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			   .srcDevice = a,
			   .srcPitch = 64,
			   .srcHeight = 8,
			   .srcZ = 1,
			   .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
			   .dstDevice = b,
			   .dstPitch = 128,
			   .dstHeight = 16,
			   .dstY = 2,
			   .WidthInBytes = 33,
			   .Height = 7,
			   .Depth = 5};

	fresh();
	must(cuMemcpy2D(&p));
	for (unsigned y = 0; y < 20; y++)
		memcpy(want + (y + 1) * 256 + 5, src + (y + 2) * 100 + 3, 50);
	same("2D, host to device");
	must(cuMemcpy3DAsync(&q, NULL));
	for (unsigned z = 0; z < 5; z++)
		for (unsigned y = 0; y < 7; y++)
			memcpy(want + (z * 16 + y + 2) * 128, src + ((z + 1) * 8 + y) * 64, 33);
	same("3D, device to device");
	p.dstPitch = 40;
	is_cu(cuMemcpy2D(&p), CUDA_ERROR_INVALID_VALUE, "rows that overlap");
	q.Depth = 1000;
	is_cu(cuMemcpy3D(&q), CUDA_ERROR_INVALID_VALUE, "a box that does not fit");
	p.dstPitch = 256;
	p.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	is_cu(cuMemcpy2D(&p), CUDA_ERROR_INVALID_VALUE, "no array");
	same("failed copies changed nothing");
}

static void fills(void)
{
	fresh();
	must(cuMemsetD8(b + 1, 0x11, 3));
	memset(want + 1, 0x11, 3);
	must(cuMemsetD16Async(b + 10, 0x1234, 5, NULL));
	for (unsigned i = 0; i < 5; i++)
		memcpy(want + 10 + 2 * i, &(uint16_t){0x1234}, 2);
	must(cuMemsetD32(b + 100, 0xdeadbeef, 9));
	for (unsigned i = 0; i < 9; i++)
		memcpy(want + 100 + 4 * i, &(uint32_t){0xdeadbeef}, 4);
	same("linear fills of all widths");
	must(cuMemsetD2D8(b + 1000, 77, 5, 33, 4));
	must(cuMemsetD2D16Async(b + 2000, 78, 6, 20, 3, NULL));
	must(cuMemsetD2D32(b + 4000, 80, 7, 20, 3));
	for (unsigned y = 0; y < 4; y++)
		memset(want + 1000 + y * 77, 5, 33);
	for (unsigned y = 0; y < 3; y++)
		for (unsigned x = 0; x < 20; x++) {
			memcpy(want + 2000 + y * 78 + 2 * x, &(uint16_t){6}, 2);
			memcpy(want + 4000 + y * 80 + 4 * x, &(uint32_t){7}, 4);
		}
	same("pitched fills of all widths");
	is_cu(cuMemsetD32(b + 2, 1, 4), CUDA_ERROR_INVALID_VALUE, "misaligned fill");
	is_cu(cuMemsetD8(b, 1, BYTES + 1), CUDA_ERROR_INVALID_VALUE, "one byte too far");
	is_cu(cuMemsetD8((CUdeviceptr)dst, 1, 4), CUDA_ERROR_INVALID_VALUE, "pageable memory");
	same("failed fills changed nothing");
}

static void batches(void)
{
	CUdeviceptr dsts[] = {b, b + 100, b + 200}, srcs[] = {a, (CUdeviceptr)src, a + 50};
	size_t sizes[] = {10, 20, 30}, idx[] = {0};
	CUmemcpyAttributes attr = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
	CUDA_MEMCPY3D_BATCH_OP boxes[2] = {
		{.src = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .op.ptr = {a, 50, 4}},
		 .dst = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .op.ptr = {b + 1000, 40, 5}},
		 .extent = {20, 3, 2},
		 .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM},
		{.src = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .op.ptr = {(CUdeviceptr)src}},
		 .dst = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .op.ptr = {b + 3000}},
		 .extent = {10, 1, 1},
		 .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY},
	};
	CUstream s;

	fresh();
	must(cuStreamCreate(&s, 0));
	is_cu(cuMemcpyBatchAsync(dsts, srcs, sizes, 3, &attr, idx, 1, s), CUDA_SUCCESS, "a batch");
	must(cuStreamSynchronize(s));
	memcpy(want, src, 10);
	memcpy(want + 100, src, 20);
	memcpy(want + 200, src + 50, 30);
	same("all of it was copied");
	is_cu(cuMemcpyBatchAsync(dsts, srcs, sizes, 3, &attr, idx, 1, NULL),
	      CUDA_ERROR_INVALID_VALUE, "not on the default stream");
	sizes[2] = BYTES;
	is_cu(cuMemcpyBatchAsync(dsts, srcs, sizes, 3, &attr, idx, 1, s), CUDA_ERROR_INVALID_VALUE,
	      "one copy of a batch does not fit");
	is_cu(cuMemcpy3DBatchAsync(2, boxes, 0, s), CUDA_SUCCESS, "a batch of boxes");
	must(cuStreamSynchronize(s));
	for (unsigned z = 0; z < 2; z++)
		for (unsigned y = 0; y < 3; y++)
			memcpy(want + 1000 + (z * 5 + y) * 40, src + (z * 4 + y) * 50, 20);
	memcpy(want + 3000, src, 10);
	same("no copy of the bad batch, both boxes");
	must(cuStreamDestroy(s));
}

static void when_the_host_may_go_on(void)
{
	unsigned char *pinned;
	CUstream s;

	fresh();
	must(cuMemHostAlloc((void **)&pinned, BYTES, 0));
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuCtxSynchronize());
	simcuda_set_schedule("lazy");
	must(cuMemcpyHtoDAsync(b, src, BYTES, s));
	memcpy(want, src, BYTES);
	memset(src, 0, BYTES);
	must(cuStreamSynchronize(s));
	same("pageable source: the bytes of the call");
	memset(pinned, 1, BYTES);
	must(cuMemcpyHtoDAsync(b, pinned, BYTES, s));
	memset(pinned, 2, BYTES);
	memset(want, 2, BYTES);
	must(cuStreamSynchronize(s));
	same("pinned source: the bytes of its turn");
	memset(dst, 0, BYTES);
	must(cuMemcpyDtoHAsync(dst, b, BYTES, s));
	ok(dst[BYTES - 1] == 2, "pageable destination: there at return");
	must(cuMemsetD8Async(b, 9, BYTES, s));
	must(cuMemcpyDtoHAsync(pinned, b, BYTES, s));
	ok(pinned[0] == 2, "pinned destination: not before its turn");
	must(cuStreamSynchronize(s));
	ok(pinned[0] == 9, "but then");
	simcuda_set_schedule("eager");
	must(cuMemFreeHost(pinned));
	must(cuStreamDestroy(s));
}

int main(void)
{
	CUcontext ctx = drv_context();

	must(cuMemAlloc(&a, BYTES));
	must(cuMemAlloc(&b, BYTES));
	linear();
	strided();
	fills();
	batches();
	when_the_host_may_go_on();
	must(cuCtxDestroy(ctx));
	return tap_done();
}
