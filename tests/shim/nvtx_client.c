/* SPDX-License-Identifier: MIT */
/*
 * A program that marks itself through NVIDIA's NVTX headers, in every form that they have, and names
 * memory regions by the memory extension. Prints what the calls return.
 *
 * Built by tests/t/shim_nvtx.t with the toolkit's or the wheel's headers.
 */
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtMem.h>
#include <stdio.h>
#include <string.h>

extern int cuInit(), cuCtxCreate_v2(), cuMemAlloc_v2(), cuMemsetD8_v2(), cuMemcpyDtoD_v2();
extern int cuCtxSynchronize();

static nvtxEventAttributes_t event(int type, const void *text)
{
	nvtxEventAttributes_t a;

	memset(&a, 0, sizeof(a));
	a.version = NVTX_VERSION;
	a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	a.messageType = type;
	a.message.ascii = text;
	return a;
}

static void regions(nvtxDomainHandle_t domain, unsigned long long state, unsigned long long out)
{
	nvtxMemVirtualRangeDesc_t ranges[2] = {{256, (void *)state}, {256, (void *)out}};
	nvtxMemRegionHandle_t handles[2] = {0, 0};
	nvtxMemRegionsRegisterBatch_t batch;
	nvtxMemRegionNameDesc_t names[2];
	nvtxMemRegionsNameBatch_t naming;

	memset(&batch, 0, sizeof(batch));
	batch.extCompatID = NVTX_EXT_COMPATID_MEM;
	batch.structSize = sizeof(batch);
	batch.regionType = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
	batch.heap = NVTX_MEM_HEAP_HANDLE_PROCESS_WIDE;
	batch.regionCount = 2;
	batch.regionDescElementSize = sizeof(ranges[0]);
	batch.regionDescElements = ranges;
	batch.regionHandleElementsOut = handles;
	nvtxMemRegionsRegister(domain, &batch);
	memset(names, 0, sizeof(names));
	memset(&naming, 0, sizeof(naming));
	for (int i = 0; i < 2; i++) {
		names[i].regionRefType =
			i ? NVTX_MEM_REGION_REF_TYPE_HANDLE : NVTX_MEM_REGION_REF_TYPE_POINTER;
		names[i].nameType = NVTX_MESSAGE_TYPE_ASCII;
		names[i].region.pointer = i ? (void *)handles[1] : (void *)state;
		names[i].name.ascii = i ? "output:product" : "state:counter";
	}
	naming.extCompatID = NVTX_EXT_COMPATID_MEM;
	naming.structSize = sizeof(naming);
	naming.regionCount = 2;
	naming.regionElementSize = sizeof(names[0]);
	naming.regionElements = names;
	nvtxMemRegionsName(domain, &naming);
}

int main(void)
{
	nvtxDomainHandle_t own = nvtxDomainCreateA("replayshim"),
			   other = nvtxDomainCreateA("other");
	nvtxStringHandle_t registered = nvtxDomainRegisterStringA(own, "replay:a#0");
	unsigned long long state, input, out;
	nvtxEventAttributes_t a;
	nvtxRangeId_t id;
	void *ctx;

	nvtxRangePushA("before cuInit");
	cuInit(0);
	cuCtxCreate_v2(&ctx, 0, 0);
	cuMemAlloc_v2(&state, (size_t)256);
	cuMemAlloc_v2(&input, (size_t)256);
	cuMemAlloc_v2(&out, (size_t)256);
	cuMemsetD8_v2(state, 1, (size_t)256);
	cuMemsetD8_v2(input, 2, (size_t)256);
	nvtxRangePop();
	regions(NULL, state, out);
	nvtxMarkA("step:1");

	/* Forward: reads the state, makes the product, then moves the state on. */
	printf("%d ", nvtxRangePushA("forward:a"));
	a = event(NVTX_MESSAGE_TYPE_ASCII, "replay:a#0");
	nvtxDomainRangePushEx(other, &a);
	cuMemcpyDtoD_v2(out, state, (size_t)256);
	nvtxDomainRangePop(other);
	cuMemcpyDtoD_v2(state, input, (size_t)256);
	printf("%d ", nvtxRangePop());

	/* Three replays of it, in three forms. */
	a = event(NVTX_MESSAGE_TYPE_REGISTERED, registered);
	nvtxDomainRangePushEx(own, &a);
	cuMemcpyDtoD_v2(out, state, (size_t)256);
	cuMemcpyDtoD_v2(state, input, (size_t)256);
	nvtxDomainRangePop(own);
	nvtxRangePushW(L"replay:a#0");
	cuMemcpyDtoD_v2(out, state, (size_t)256);
	cuMemcpyDtoD_v2(state, input, (size_t)256);
	nvtxRangePop();
	a = event(NVTX_MESSAGE_TYPE_ASCII, "replay:a#0");
	id = nvtxRangeStartEx(&a);
	cuMemcpyDtoD_v2(out, state, (size_t)256);
	cuMemcpyDtoD_v2(state, input, (size_t)256);
	nvtxRangeEnd(id);
	cuCtxSynchronize();
	printf("done\n");
	return 0;
}
