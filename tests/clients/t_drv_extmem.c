/* SPDX-License-Identifier: MIT */
/*
 * External memory (a memfd) and external semaphores (an eventfd, a timeline in a memfd).
 *
 * The other API that would own them is played by this program: it maps, reads and writes them itself.
 */
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/clients/drv.h"

#define SIZE 65536u

static CUfunction f_inc;

static int file_of(size_t size)
{
	int fd = memfd_create("external", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)size)) {
		printf("Bail out! no memfd\n");
		exit(1);
	}
	return fd;
}

static void *mapped(int fd, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED) {
		printf("Bail out! the file cannot be mapped\n");
		exit(1);
	}
	return p;
}

static CUDA_EXTERNAL_MEMORY_HANDLE_DESC memory_desc(int fd, size_t size)
{
	return (CUDA_EXTERNAL_MEMORY_HANDLE_DESC){
		.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
		.handle = {.fd = fd},
		.size = size,
	};
}

static void memory_errors(void)
{
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC d = memory_desc(file_of(SIZE), SIZE);
	CUDA_EXTERNAL_MEMORY_BUFFER_DESC b = {.offset = SIZE - 4096, .size = 8192};
	CUexternalMemory m;
	CUdeviceptr p;
	int fd[2];

	is_cu(cuImportExternalMemory(NULL, &d), CUDA_ERROR_INVALID_VALUE, "import to nowhere");
	d.size = SIZE + 1;
	is_cu(cuImportExternalMemory(&m, &d), CUDA_ERROR_INVALID_VALUE, "more than the file has");
	d.size = 0;
	is_cu(cuImportExternalMemory(&m, &d), CUDA_ERROR_INVALID_VALUE, "nothing");
	d.size = SIZE;
	d.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF;
	is_cu(cuImportExternalMemory(&m, &d), CUDA_ERROR_NOT_SUPPORTED, "a kind for other systems");
	d.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
	if (pipe(fd))
		exit(1);
	d.handle.fd = fd[0];
	is_cu(cuImportExternalMemory(&m, &d), CUDA_ERROR_INVALID_HANDLE, "a pipe is no memory");
	close(fd[0]);
	is_cu(cuImportExternalMemory(&m, &d), CUDA_ERROR_INVALID_VALUE, "a closed file");
	close(fd[1]);
	d = memory_desc(file_of(SIZE), SIZE);
	must(cuImportExternalMemory(&m, &d));
	is_cu(cuExternalMemoryGetMappedBuffer(&p, m, &b), CUDA_ERROR_INVALID_VALUE,
	      "a buffer past the end");
	b = (CUDA_EXTERNAL_MEMORY_BUFFER_DESC){.size = 16, .flags = 1};
	is_cu(cuExternalMemoryGetMappedBuffer(&p, m, &b), CUDA_ERROR_INVALID_VALUE,
	      "unknown flags");
	is_cu(cuDestroyExternalMemory(m), CUDA_SUCCESS, "destroy");
	is_cu(cuDestroyExternalMemory(m), CUDA_ERROR_INVALID_HANDLE, "but once");
	is_cu(cuExternalMemoryGetMappedBuffer(&p, m, &b), CUDA_ERROR_INVALID_HANDLE,
	      "nothing comes from it then");
}

static void memory(void)
{
	int fd = file_of(SIZE);
	unsigned *bytes = mapped(fd, SIZE), n = 100, type = 0;
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC d = memory_desc(fd, SIZE);
	CUDA_EXTERNAL_MEMORY_BUFFER_DESC all = {.size = SIZE}, part = {.offset = 5000, .size = 800};
	uint64_t before = simcuda_live_bytes(0);
	CUdeviceptr p, q;
	void *params[] = {&q, &n};
	CUexternalMemory m;

	bytes[5000 / 4] = 3;
	is_cu(cuImportExternalMemory(&m, &d), CUDA_SUCCESS, "import a memfd");
	is_cu(cuExternalMemoryGetMappedBuffer(&p, m, &all), CUDA_SUCCESS, "all of it");
	is_cu(cuExternalMemoryGetMappedBuffer(&q, m, &part), CUDA_SUCCESS, "a part of it");
	is_u64(simcuda_live_bytes(0), before, "it takes no memory of the device");
	must(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, q));
	is_u64(type, CU_MEMORYTYPE_DEVICE, "but is device memory");
	must(drv_launch(f_inc, n, NULL, params));
	must(cuCtxSynchronize());
	is_u64(bytes[5000 / 4], 4, "a kernel's stores are in the file");
	must(cuMemcpyDtoH(&type, p + 5000, 4));
	is_u64(type, 4, "and in the other buffer");
	must(cuMemsetD32(p, 8, SIZE / 4));
	must(cuCtxSynchronize());
	ok(bytes[0] == 8 && bytes[SIZE / 4 - 1] == 8, "to the last byte");
	is_cu(cuMemsetD8(q, 0, 801), CUDA_ERROR_INVALID_VALUE, "the part has an end");
	is_cu(cuDestroyExternalMemory(m), CUDA_SUCCESS, "destroyed before its buffers");
	bytes[1250] = 17;
	must(cuMemcpyDtoH(&type, q, 4));
	is_u64(type, 17, "which are still there");
	is_cu(cuMemFree(q + 4), CUDA_ERROR_INVALID_VALUE, "freed by their first address only");
	is_cu(cuMemFree(q), CUDA_SUCCESS, "free the part");
	is_cu(cuMemFree(p), CUDA_SUCCESS, "and all");
	is_cu(cuMemFree(p), CUDA_ERROR_INVALID_VALUE, "once");
	is_u64(simcuda_live_bytes(0), before, "nothing has changed");
	munmap(bytes, SIZE);
}

static CUexternalSemaphore semaphore(CUexternalSemaphoreHandleType type, int fd)
{
	CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC d = {.type = type, .handle = {.fd = fd}};
	CUexternalSemaphore s = NULL;

	must(cuImportExternalSemaphore(&s, &d));
	return s;
}

static void semaphore_errors(void)
{
	CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC d = {
		.type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_NVSCISYNC};
	CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS p = {.flags = 0};
	CUexternalSemaphore s;
	int fd[2];

	is_cu(cuImportExternalSemaphore(&s, &d), CUDA_ERROR_NOT_SUPPORTED, "another kind");
	if (pipe(fd))
		exit(1);
	d.type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;
	d.handle.fd = fd[0];
	is_cu(cuImportExternalSemaphore(&s, &d), CUDA_ERROR_INVALID_HANDLE,
	      "a pipe is no semaphore");
	close(fd[0]);
	close(fd[1]);
	s = (CUexternalSemaphore)&d;
	is_cu(cuSignalExternalSemaphoresAsync(&s, &p, 1, NULL), CUDA_ERROR_INVALID_HANDLE,
	      "nothing to signal");
	is_cu(cuDestroyExternalSemaphore(s), CUDA_ERROR_INVALID_HANDLE, "nor to destroy");
}

static void binary(CUstream s)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), ours = dup(fd);
	CUexternalSemaphore sem = semaphore(CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD, fd);
	CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS sig = {.flags = 0};
	CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS wait = {.flags = 0};
	uint64_t n = 1, seen = 0;

	is_cu(cuSignalExternalSemaphoresAsync(&sem, &sig, 1, s), CUDA_SUCCESS, "signal");
	must(cuStreamSynchronize(s));
	ok(read(ours, &seen, 8) == 8 && seen == 1, "the other side sees it");
	is_cu(cuWaitExternalSemaphoresAsync(&sem, &wait, 1, s), CUDA_SUCCESS, "wait");
	is_cu(cuStreamQuery(s), CUDA_ERROR_NOT_READY, "the stream waits");
	ok(write(ours, &n, 8) == 8, "the other side signals");
	is_cu(cuStreamSynchronize(s), CUDA_SUCCESS, "the stream goes on");
	ok(read(ours, &seen, 8) < 0, "and the semaphore is reset");
	is_cu(cuDestroyExternalSemaphore(sem), CUDA_SUCCESS, "destroy");
	is_cu(cuDestroyExternalSemaphore(sem), CUDA_ERROR_INVALID_HANDLE, "once");
	close(ours);
}

static void timeline(CUstream s, CUstream t, CUdeviceptr p)
{
	int fd = file_of(4096);
	uint64_t *value = mapped(fd, 4096);
	CUexternalSemaphore sem =
		semaphore(CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD, fd);
	CUexternalSemaphore both[2] = {sem, semaphore(CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD,
						      eventfd(1, EFD_CLOEXEC))};
	CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS sig = {.params = {.fence = {.value = 5}}};
	CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS wait[2] = {{.params = {.fence = {.value = 7}}}};
	unsigned v = 0;

	must(cuSignalExternalSemaphoresAsync(&sem, &sig, 1, s));
	must(cuStreamSynchronize(s));
	is_u64(*value, 5, "a timeline is set to the value of the signal");
	must(cuWaitExternalSemaphoresAsync(both, wait, 2, t));
	must(cuMemsetD32Async(p, 2, 1, t));
	is_cu(cuStreamQuery(t), CUDA_ERROR_NOT_READY, "a wait for more waits");
	must(cuMemsetD32Async(p, 1, 1, s));
	sig.params.fence.value = 6;
	must(cuSignalExternalSemaphoresAsync(&sem, &sig, 1, s));
	is_cu(cuStreamQuery(t), CUDA_ERROR_NOT_READY, "for all of it");
	sig.params.fence.value = 7;
	must(cuSignalExternalSemaphoresAsync(&sem, &sig, 1, s));
	is_cu(cuStreamSynchronize(t), CUDA_SUCCESS, "and no longer");
	must(cuMemcpyDtoH(&v, p, 4));
	is_u64(v, 2, "streams are ordered by it");
	must(cuWaitExternalSemaphoresAsync(&sem, wait, 1, t));
	must(cuDestroyExternalSemaphore(sem));
	is_cu(cuStreamSynchronize(t), CUDA_SUCCESS, "destroyed while a wait is queued");
	must(cuDestroyExternalSemaphore(both[1]));
	munmap(value, 4096);
}

/* Captured signals and waits are nodes that act at each launch. */
static void captured(CUstream s)
{
	int fd = file_of(4096);
	uint64_t *value = mapped(fd, 4096);
	CUexternalSemaphore sem =
		semaphore(CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD, fd);
	CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS sig = {.params = {.fence = {.value = 3}}};
	CUgraphExec exec;
	CUgraphNode node;
	CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
	size_t n = 1;
	CUgraph g;

	must(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	must(cuSignalExternalSemaphoresAsync(&sem, &sig, 1, s));
	must(cuStreamEndCapture(s, &g));
	is_u64(*value, 0, "nothing is signalled while it is captured");
	must(cuGraphGetNodes(g, &node, &n));
	must(cuGraphNodeGetType(node, &type));
	is_u64(type, CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL, "it is a node");
	must(cuGraphInstantiate(&exec, g, 0));
	must(cuGraphDestroy(g));
	must(cuGraphLaunch(exec, s));
	must(cuStreamSynchronize(s));
	is_u64(*value, 3, "a launch signals");
	must(cuGraphExecDestroy(exec));
	must(cuDestroyExternalSemaphore(sem));
	munmap(value, 4096);
}

int main(void)
{
	CUstream s, t;
	CUdeviceptr p;
	CUcontext ctx;
	CUmodule mod;

	setenv("SIMCUDA_MEMORY", "64M", 1);
	ctx = drv_context();
	must(cuModuleLoadData(&mod, drv_ptx));
	f_inc = drv_function(mod, "inc");
	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
	must(cuMemAlloc(&p, 64));
	memory_errors();
	memory();
	semaphore_errors();
	binary(s);
	timeline(s, t, p);
	captured(s);
	must(cuCtxDestroy(ctx));
	return tap_done();
}
