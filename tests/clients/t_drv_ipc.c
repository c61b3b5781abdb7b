/* SPDX-License-Identifier: MIT */
/*
 * Memory and events between two simulated processes: IPC handles, shareable handles, pools.
 *
 * The peer is a child process with a driver of its own that obeys requests on a socket; the tests are
 * in the parent. Both are forked before the driver is initialised.
 */
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/clients/drv.h"

#define G (2ull << 20)

enum request {
	ALLOC,	 /* size, value: cuMemAlloc, fill; gives an IPC handle */
	FREE,	 /* of ALLOC */
	FILL,	 /* value at offset, a word */
	READ,	 /* a word at offset */
	CREATE,	 /* size, value: cuMemCreate, map, fill; gives a file descriptor */
	RELEASE, /* of CREATE */
	POOL, /* size, value: a pool, an allocation from it; gives a file descriptor, export data */
	UNPOOL, /* of POOL */
	EVENT,	/* gives an event handle */
	LATER,	/* value: lazily queue a fill and a record of the event, both on a stream */
	NOW,	/* let the stream run */
	OPENS, /* an event handle of the other side: open and wait for it in the stream, then fill */
	QUIT,
};

struct message {
	enum request what;
	CUresult r;
	uint64_t size, offset;
	unsigned value;
	bool has_fd;
	union {
		CUipcMemHandle mem;
		CUipcEventHandle event;
		CUmemPoolPtrExportData pool;
	};
};

static int to_peer;
static pid_t peer;

static void send_message(int sock, const struct message *m, int fd)
{
	char space[CMSG_SPACE(sizeof(fd))] = {0};
	struct iovec v = {(void *)(uintptr_t)m, sizeof(*m)};
	struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1};

	if (m->has_fd) {
		h.msg_control = space;
		h.msg_controllen = sizeof(space);
		*CMSG_FIRSTHDR(&h) = (struct cmsghdr){
			.cmsg_len = CMSG_LEN(sizeof(fd)),
			.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
		};
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&h)), &fd, sizeof(fd));
	}
	if (sendmsg(sock, &h, MSG_NOSIGNAL) != sizeof(*m))
		exit(9);
}

/* The descriptor that came along, or -1. */
static int receive_message(int sock, struct message *m)
{
	char space[CMSG_SPACE(sizeof(int))];
	struct iovec v = {m, sizeof(*m)};
	struct msghdr h = {.msg_iov = &v,
			   .msg_iovlen = 1,
			   .msg_control = space,
			   .msg_controllen = sizeof(space)};
	int fd = -1;

	if (recvmsg(sock, &h, MSG_WAITALL) != sizeof(*m))
		exit(9);
	if (CMSG_FIRSTHDR(&h))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&h)), sizeof(fd));
	return fd;
}

/* ---- the peer ---- */

static const CUmemAllocationProp shareable = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
};
static const CUmemAccessDesc rw = {
	.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
	.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
};

static struct {
	CUdeviceptr at; /* what FILL and READ mean */
	CUmemGenericAllocationHandle h;
	CUmemoryPool pool;
	CUevent event;
	CUstream s;
} mine;

static int serve_create(struct message *m)
{
	int fd = -1;

	must(cuMemCreate(&mine.h, m->size, &shareable, 0));
	must(cuMemAddressReserve(&mine.at, m->size, 0, 0, 0));
	must(cuMemMap(mine.at, m->size, 0, mine.h, 0));
	must(cuMemSetAccess(mine.at, m->size, &rw, 1));
	must(cuMemsetD32(mine.at, m->value, m->size / 4));
	must(cuCtxSynchronize());
	m->r = cuMemExportToShareableHandle(&fd, mine.h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
					    0);
	return fd;
}

static int serve_pool(struct message *m)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
				.location = shareable.location};
	int fd = -1;

	must(cuMemPoolCreate(&mine.pool, &props));
	must(cuMemAllocFromPoolAsync(&mine.at, m->size, mine.pool, NULL));
	must(cuMemsetD32(mine.at, m->value, m->size / 4));
	must(cuCtxSynchronize());
	must(cuMemPoolExportToShareableHandle(&fd, mine.pool,
					      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	m->r = cuMemPoolExportPointer(&m->pool, mine.at);
	return fd;
}

static void serve_event(struct message *m)
{
	CUevent theirs;

	switch (m->what) {
	case EVENT:
		must(cuStreamCreate(&mine.s, CU_STREAM_NON_BLOCKING));
		must(cuEventCreate(&mine.event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
		m->r = cuIpcGetEventHandle(&m->event, mine.event);
		break;
	case LATER:
		simcuda_set_schedule("lazy");
		must(cuMemsetD32Async(mine.at, m->value, 1, mine.s));
		m->r = cuEventRecord(mine.event, mine.s);
		break;
	case NOW:
		m->r = cuStreamSynchronize(mine.s);
		break;
	default: /* OPENS */
		must(cuIpcOpenEventHandle(&theirs, m->event));
		must(cuStreamWaitEvent(mine.s, theirs, 0));
		must(cuMemsetD32Async(mine.at, m->value, 1, mine.s));
		m->r = cuEventDestroy(theirs);
		break;
	}
}

static int serve(struct message *m)
{
	m->r = CUDA_SUCCESS;
	switch (m->what) {
	case ALLOC:
		must(cuMemAlloc(&mine.at, m->size));
		must(cuMemsetD32(mine.at, m->value, m->size / 4));
		must(cuCtxSynchronize());
		m->r = cuIpcGetMemHandle(&m->mem, mine.at + m->offset);
		break;
	case FREE:
		m->r = cuMemFree(mine.at);
		break;
	case FILL:
		must(cuMemsetD32(mine.at + m->offset, m->value, 1));
		m->r = cuCtxSynchronize();
		break;
	case READ:
		m->r = cuMemcpyDtoH(&m->value, mine.at + m->offset, 4);
		break;
	case CREATE:
		return serve_create(m);
	case RELEASE:
		must(cuMemUnmap(mine.at, m->size));
		m->r = cuMemRelease(mine.h);
		break;
	case POOL:
		return serve_pool(m);
	case UNPOOL:
		must(cuMemFreeAsync(mine.at, NULL));
		m->r = cuMemPoolDestroy(mine.pool);
		break;
	default:
		serve_event(m);
		break;
	}
	return -1;
}

static void start_peer(void)
{
	int pair[2];

	fflush(stdout);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		exit(1);
	peer = fork();
	if (peer) {
		close(pair[1]);
		to_peer = pair[0];
		return;
	}
	close(pair[0]);
	drv_context();
	for (;;) {
		struct message m;
		int fd;

		receive_message(pair[1], &m);
		if (m.what == QUIT)
			_exit(0);
		fd = serve(&m);
		m.has_fd = fd >= 0;
		send_message(pair[1], &m, fd);
		if (fd >= 0)
			close(fd);
	}
}

static void stop_peer(void)
{
	struct message m = {.what = QUIT};

	send_message(to_peer, &m, -1);
	waitpid(peer, NULL, 0);
	close(to_peer);
}

/* Ask the peer; its answer, and the descriptor with it. */
static int ask(struct message *m)
{
	int fd;

	m->has_fd = false;
	send_message(to_peer, m, -1);
	fd = receive_message(to_peer, m);
	must(m->r);
	return fd;
}

static void tell(enum request what, uint64_t offset, unsigned value)
{
	struct message m = {.what = what, .offset = offset, .value = value};

	ask(&m);
}

static unsigned peer_word(uint64_t offset)
{
	struct message m = {.what = READ, .offset = offset};

	ask(&m);
	return m.value;
}

static unsigned word(CUdeviceptr p)
{
	unsigned v = 0;

	must(cuMemcpyDtoH(&v, p, 4));
	return v;
}

/* ---- the tests ---- */

static void own_handles(void)
{
	CUipcMemHandle h, junk = {{1, 2, 3}};
	CUdeviceptr p, q, m;

	must(cuMemAlloc(&p, 10000));
	must(cuMemAllocManaged(&m, 4096, CU_MEM_ATTACH_GLOBAL));
	must(cuMemsetD32(p, 77, 2500));
	is_cu(cuIpcGetMemHandle(&h, m), CUDA_ERROR_INVALID_VALUE, "no handle for managed memory");
	is_cu(cuIpcGetMemHandle(&h, 4096), CUDA_ERROR_INVALID_VALUE, "nor for nothing");
	is_cu(cuIpcGetMemHandle(NULL, p), CUDA_ERROR_INVALID_VALUE, "nor to nowhere");
	is_cu(cuIpcGetMemHandle(&h, p), CUDA_SUCCESS, "a handle");
	ok(word(p) == 77 && word(p + 9996) == 77, "exporting keeps the bytes");
	is_cu(cuIpcOpenMemHandle(&q, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
	      CUDA_ERROR_INVALID_CONTEXT, "not to be opened by who made it");
	is_cu(cuIpcOpenMemHandle(&q, junk, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
	      CUDA_ERROR_INVALID_HANDLE, "nor junk by anybody");
	is_cu(cuIpcCloseMemHandle(p), CUDA_ERROR_INVALID_VALUE, "it was not opened");
	must(cuMemFree(p));
	must(cuMemFree(m));
	must(cuMemAlloc(&p, 10000));
	ok(word(p) == 0x7fe5e5e5u, "after a free the address holds fresh memory");
	must(cuMemFree(p));
}

static void memory_handles(void)
{
	struct message m = {.what = ALLOC, .size = 3 << 20, .value = 5, .offset = 64};
	uint64_t before = simcuda_live_bytes(0);
	CUdeviceptr p = 0, q = 1, base = 0;
	size_t size = 0;

	ask(&m);
	is_cu(cuIpcOpenMemHandle(&p, m.mem, 0), CUDA_ERROR_INVALID_VALUE, "a flag is demanded");
	is_cu(cuIpcOpenMemHandle(&p, m.mem, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_SUCCESS,
	      "open the peer's memory");
	ok(word(p) == 5 && word(p + m.size - 4) == 5, "from its first byte to its last");
	must(cuMemGetAddressRange(&base, &size, p + 100));
	ok(base == p && size == m.size, "it is a range");
	is_u64(simcuda_live_bytes(0), before, "that takes no memory");
	is_cu(cuIpcOpenMemHandle(&q, m.mem, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), CUDA_SUCCESS,
	      "open it again");
	ok(q == p, "at the same address");
	must(cuMemsetD32(p + 4096, 6, 2));
	must(cuCtxSynchronize());
	is_u64(peer_word(4100), 6, "the peer sees what is written here");
	tell(FILL, 1 << 20, 7);
	is_u64(word(p + (1 << 20)), 7, "and the other way");
	is_cu(cuMemFree(p), CUDA_ERROR_INVALID_VALUE, "it is not freed");
	is_cu(cuIpcCloseMemHandle(p), CUDA_SUCCESS, "close once");
	is_u64(word(p + (1 << 20)), 7, "it is still open");
	is_cu(cuIpcCloseMemHandle(p), CUDA_SUCCESS, "close twice");
	is_cu(cuIpcCloseMemHandle(p), CUDA_ERROR_INVALID_VALUE, "that was all");
	is_u64(peer_word(4100), 6, "the peer's memory is untouched");
	is_cu(cuMemcpyDtoH(&size, p, 4), CUDA_ERROR_INVALID_VALUE, "it is closed here");
	tell(FREE, 0, 0);
}

static void shareable_handles(void)
{
	CUmemAllocationProp prop = shareable, got;
	struct message m = {.what = CREATE, .size = 2 * G, .value = 9};
	CUmemGenericAllocationHandle h, own;
	CUdeviceptr p;
	int fd, fd2;

	fd = ask(&m);
	is_cu(cuMemImportFromShareableHandle(&h, (void *)(intptr_t)to_peer,
					     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
	      CUDA_ERROR_INVALID_VALUE, "a socket is no memory");
	is_cu(cuMemImportFromShareableHandle(&h, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_FABRIC),
	      CUDA_ERROR_NOT_SUPPORTED, "no fabric handles");
	is_cu(cuMemImportFromShareableHandle(&h, (void *)(intptr_t)fd,
					     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
	      CUDA_SUCCESS, "import a shareable handle");
	close(fd);
	must(cuMemGetAllocationPropertiesFromHandle(&got, h));
	ok(!memcmp(&got, &shareable, sizeof(got)), "it says what it is");
	must(cuMemAddressReserve(&p, 4 * G, 0, 0, 0));
	must(cuMemMap(p, 2 * G, 0, h, 0));
	must(cuMemMap(p + 2 * G, 2 * G, 0, h, 0));
	must(cuMemSetAccess(p, 4 * G, &rw, 1));
	is_u64(word(p + 2 * G - 4), 9, "with the peer's bytes");
	must(cuMemsetD32(p + 3 * G, 10, 1));
	must(cuCtxSynchronize());
	ok(peer_word(G) == 10 && word(p + G) == 10, "written here, read there and at the alias");
	must(cuMemRelease(h));
	m.what = RELEASE;
	ask(&m);
	is_u64(word(p + G), 10, "the memory outlives its maker's handle");
	must(cuMemUnmap(p, 4 * G));
	must(cuMemAddressFree(p, 4 * G));

	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
	must(cuMemCreate(&own, G, &prop, 0));
	is_cu(cuMemExportToShareableHandle(&fd2, own, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
	      CUDA_ERROR_INVALID_VALUE, "only what was made for it is exported");
	must(cuMemRelease(own));
	must(cuMemCreate(&own, G, &shareable, 0));
	must(cuMemExportToShareableHandle(&fd2, own, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	is_cu(cuMemImportFromShareableHandle(&h, (void *)(intptr_t)fd2,
					     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
	      CUDA_SUCCESS, "importing in the same process");
	close(fd2);
	must(cuMemAddressReserve(&p, 2 * G, 0, 0, 0));
	must(cuMemMap(p, G, 0, own, 0));
	must(cuMemMap(p + G, G, 0, h, 0));
	must(cuMemSetAccess(p, 2 * G, &rw, 1));
	must(cuMemsetD32(p, 3, 4));
	is_u64(word(p + G + 12), 3, "is one more alias");
	must(cuMemUnmap(p, 2 * G));
	must(cuMemRelease(own));
	must(cuMemRelease(h));
	must(cuMemAddressFree(p, 2 * G));
	is_u64(simcuda_live_bytes(0), 0, "nothing is left");
}

static void pools(void)
{
	struct message m = {.what = POOL, .size = 100000, .value = 31};
	CUmemPoolPtrExportData junk = {{1}};
	CUmemoryPool pool;
	CUdeviceptr p, q;
	int fd = ask(&m);

	must(cuDeviceGetDefaultMemPool(&pool, 0));
	is_cu(cuMemPoolExportToShareableHandle(&q, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
					       0),
	      CUDA_ERROR_INVALID_VALUE, "the default pool is not exported");
	is_cu(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd,
						 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
	      CUDA_SUCCESS, "import a pool");
	close(fd);
	is_cu(cuMemAllocFromPoolAsync(&p, 100, pool, NULL), CUDA_ERROR_INVALID_VALUE,
	      "it gives out nothing");
	is_cu(cuDeviceSetMemPool(0, pool), CUDA_ERROR_INVALID_VALUE, "and is no device's pool");
	is_cu(cuMemPoolImportPointer(&p, pool, &junk), CUDA_ERROR_INVALID_VALUE, "junk");
	is_cu(cuMemPoolImportPointer(&p, pool, &m.pool), CUDA_SUCCESS, "import a pointer");
	ok(word(p) == 31 && word(p + 99996) == 31, "with the peer's bytes");
	must(cuMemsetD32(p + 400, 32, 1));
	must(cuCtxSynchronize());
	is_u64(peer_word(400), 32, "that are the same");
	is_cu(cuMemFreeAsync(p, NULL), CUDA_SUCCESS, "freed in stream order");
	must(cuMemPoolImportPointer(&p, pool, &m.pool));
	is_u64(word(p + 400), 32, "imported again");
	is_cu(cuMemFree(p), CUDA_SUCCESS, "freed at once");
	must(cuMemPoolDestroy(pool));
	tell(UNPOOL, 0, 0);
}

static void events(void)
{
	struct message mem = {.what = ALLOC, .size = 4096, .value = 1}, m = {.what = EVENT};
	CUipcEventHandle h;
	CUevent theirs, own, plain;
	CUdeviceptr p, copy;
	CUstream s;

	ask(&mem);
	ask(&m);
	must(cuIpcOpenMemHandle(&p, mem.mem, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	must(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
	is_cu(cuIpcGetEventHandle(&h, plain), CUDA_ERROR_INVALID_HANDLE,
	      "a plain event has no handle");
	is_cu(cuEventCreate(&own, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE,
	      "an interprocess event has no times");
	must(cuEventCreate(&own, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	must(cuIpcGetEventHandle(&h, own));
	is_cu(cuIpcOpenEventHandle(&theirs, h), CUDA_ERROR_INVALID_CONTEXT,
	      "not to be opened by who made it");
	is_cu(cuIpcOpenEventHandle(&theirs, m.event), CUDA_SUCCESS, "open the peer's event");
	is_cu(cuEventQuery(theirs), CUDA_SUCCESS, "never recorded");

	must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	must(cuMemAlloc(&copy, 4096));
	tell(LATER, 0, 2);
	is_cu(cuEventQuery(theirs), CUDA_ERROR_NOT_READY, "recorded there, not reached yet");
	must(cuStreamWaitEvent(s, theirs, 0));
	must(cuMemcpyDtoDAsync(copy, p, 4, s));
	is_cu(cuStreamQuery(s), CUDA_ERROR_NOT_READY, "a stream here waits for it");
	tell(NOW, 0, 0);
	is_cu(cuStreamSynchronize(s), CUDA_SUCCESS, "until the peer is there");
	is_u64(word(copy), 2, "and sees what the peer did before");
	is_cu(cuEventSynchronize(theirs), CUDA_SUCCESS, "the host waits for it, too");

	/* The other way: the peer waits for an event of this process. */
	simcuda_set_schedule("lazy");
	must(cuMemsetD32Async(p, 40, 1, s));
	must(cuEventRecord(own, s));
	m = (struct message){.what = OPENS, .event = h, .value = 41};
	ask(&m);
	must(cuEventSynchronize(own));
	simcuda_set_schedule("eager");
	tell(NOW, 0, 0);
	is_u64(word(p), 41, "writes of both in the order of the event");
	must(cuEventDestroy(theirs));
	must(cuEventDestroy(own));
	must(cuEventDestroy(plain));
	must(cuIpcCloseMemHandle(p));
	must(cuMemFree(copy));
	must(cuStreamDestroy(s));
	tell(FREE, 0, 0);
}

static void dead_peer(CUcontext ctx)
{
	struct message m = {.what = ALLOC, .size = 4096, .value = 8};
	struct message e = {.what = EVENT};
	CUevent event;
	CUdeviceptr p, q;

	ask(&m);
	ask(&e);
	must(cuIpcOpenMemHandle(&p, m.mem, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	stop_peer();
	is_u64(word(p + 4092), 8, "what is open outlives the peer");
	is_cu(cuIpcOpenMemHandle(&q, m.mem, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
	      CUDA_ERROR_INVALID_HANDLE, "but nothing more is opened");
	is_cu(cuIpcOpenEventHandle(&event, e.event), CUDA_ERROR_INVALID_HANDLE, "nor an event");
	is_cu(cuCtxDestroy(ctx), CUDA_SUCCESS, "a context takes along what it has open");
}

int main(void)
{
	CUcontext ctx;

	setenv("SIMCUDA_MEMORY", "256M", 1);
	start_peer();
	ctx = drv_context();
	own_handles();
	memory_handles();
	shareable_handles();
	pools();
	events();
	dead_peer(ctx);
	return tap_done();
}
