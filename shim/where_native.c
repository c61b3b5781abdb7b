/* SPDX-License-Identifier: MIT */
/*
 * Native frames: return addresses by libunwind, or by libc's backtrace() where that is not there, and which object they
 * lie in.
 *
 * libunwind is loaded with RTLD_LOCAL and never linked: it exports the names of libgcc's unwinder, and would catch the
 * program's C++ exceptions. It is looked up by two names that it has on every machine. Its cache is told when an object
 * has been unloaded. Objects are found by dl_iterate_phdr, whose lock is never held while constructors run.
 * To see whether an address can be read, libunwind writes from there into a pipe of its own, whose numbers only it knows. A
 * program that closes what is not its own, and opens files in its place, would find these bytes in them: so the
 * pipe is recognised before each use, and once it is gone nothing is unwound any more. Stacks that libunwind has
 * seen before it follows without such a look, so we stand between it and its memory (its accessors) and recognise the pipe
 * when it would use it: that is two system calls, which is more than all the rest.
 * Invariant: what rs_where_native_start has found does not change. Callers: where.c. No locks of ours.
 */
#include "shim/where.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define OWN_FRAMES 12u /* at most so many of them lie above the wrapper's caller */

static int (*unwind)(void **ip, int most);
static void (*flush)(void *space, uintptr_t from, uintptr_t to);
static void **(*accessors)(void *space);
static void **space;
static int (*access_mem)(void *space, uintptr_t addr, uintptr_t *value, int write, void *arg);
static int is_gone; /* the pipe; atomic, and only looked at where access_mem is ours */
static uint64_t own_from, own_to; /* this library */
static uint64_t unloaded;	  /* as of the last flush; atomic */

/* libunwind's pipe, if it has one. */
static struct {
	int fd[2], is_there;
	dev_t dev;
	ino_t ino;
} checks;

static int note_self(struct dl_phdr_info *info, size_t size, void *arg)
{
	uint64_t self = (uintptr_t)arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t from = info->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD || self < from || self >= from + p->p_memsz)
			continue;
		own_from = from;
		own_to = from + p->p_memsz;
		return 1;
	}
	return 0;
}

static int count_unloaded(struct dl_phdr_info *info, size_t size, void *arg)
{
	*(uint64_t *)arg =
		size >= offsetof(struct dl_phdr_info, dlpi_subs) + 8 ? info->dlpi_subs : 0;
	return 1;
}

/*
 * A copy that the program has already has a pipe already, and nobody knows which. Under a thread sanitizer it would be the
 * program's end: libunwind locks a mutex when a thread has ended, which is after the sanitizer has forgotten that thread.
 */
static int find_unwinder(void)
{
	void *lib = dlopen("libunwind.so.8", RTLD_NOW | RTLD_NOLOAD);

	if (lib || rs_doors_dlsym(RTLD_DEFAULT, "__tsan_init"))
		return 0;
	lib = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);

	*(void **)&unwind = lib ? rs_doors_dlsym(lib, "unw_backtrace") : NULL;
	if (!unwind)
		return 0;
#if defined(__x86_64__)
#define UNW "x86_64_"
#elif defined(__aarch64__)
#define UNW "aarch64_"
#endif
#ifdef UNW
	*(void **)&flush = rs_doors_dlsym(lib, "_U" UNW "flush_cache");
	*(void **)&accessors = rs_doors_dlsym(lib, "_U" UNW "get_accessors");
	space = rs_doors_dlsym(lib, "_UL" UNW "local_addr_space");
#endif
	return 1;
}

/* --- its pipe ------------------------------------------------------------------------------------- */

static int is_pipe(int fd, struct stat *ret)
{
	return !fstat(fd, ret) && S_ISFIFO(ret->st_mode);
}

static int is_checking(void)
{
	struct stat st;

	if (!checks.is_there)
		return 1;
	for (int i = 0; i < 2; i++)
		if (!is_pipe(checks.fd[i], &st) || st.st_dev != checks.dev ||
		    st.st_ino != checks.ino)
			return 0;
	return 1;
}

/* Which numbers has it taken? 0: those that the next pipe gets, or none at all. */
static int recognise(const int next[2])
{
	struct stat st[2];

	if (fcntl(next[0], F_GETFD) < 0 && fcntl(next[1], F_GETFD) < 0)
		return 0;
	if (!is_pipe(next[0], &st[0]) || !is_pipe(next[1], &st[1]) ||
	    st[0].st_dev != st[1].st_dev || st[0].st_ino != st[1].st_ino)
		return -1;
	memcpy(checks.fd, next, sizeof(checks.fd));
	checks.dev = st[0].st_dev;
	checks.ino = st[0].st_ino;
	checks.is_there = 1;
	return 0;
}

/* The first call opens it. Where one of the first three numbers is free, that is the program's. */
static int open_checks(void)
{
	int low[3] = {-1, -1, -1}, next[2], i, r = -1;
	void *ip[4];

	for (i = 0; i < 3; i++)
		if (fcntl(i, F_GETFD) < 0)
			low[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (!pipe2(next, O_CLOEXEC)) {
		close(next[0]);
		close(next[1]);
		unwind(ip, 4);
		r = recognise(next);
	}
	for (i = 0; i < 3; i++)
		if (low[i] >= 0)
			close(low[i]);
	return r;
}

/* Pages that this thread has read from: they are not asked about again, as in libunwind itself. */
#define PAGE  4096u
#define PAGES 8u
static __thread uintptr_t readable[PAGES] __attribute__((tls_model("initial-exec")));

static uintptr_t *readable_at(uintptr_t addr)
{
	return &readable[addr / PAGE % PAGES];
}

static int access_anew(void *in, uintptr_t addr, uintptr_t *value, int write, void *arg)
{
	int saved = errno, r = -1; /* UNW_EUNSPEC */

	if (is_checking())
		r = access_mem(in, addr, value, write, arg);
	else
		__atomic_store_n(&is_gone, 1, __ATOMIC_RELAXED);
	if (!r && addr % PAGE <= PAGE - sizeof(*value))
		*readable_at(addr) = addr / PAGE;
	errno = saved;
	return r;
}

/* In libunwind's place, whoever uses it. */
static int access_checked(void *in, uintptr_t addr, uintptr_t *value, int write, void *arg)
{
	if (write || addr / PAGE != *readable_at(addr) || addr % PAGE > PAGE - sizeof(*value))
		return access_anew(in, addr, value, write, arg);
	memcpy(value, (const void *)addr, sizeof(*value));
	return 0;
}

/* The fourth of its accessors, in all versions. */
static void stand_between(void)
{
	void **list = accessors && space ? accessors(*space) : NULL;

	if (!list)
		return;
	*(void **)&access_mem = list[3];
	list[3] = (void *)(uintptr_t)access_checked;
}

/* The first call of either loads or allocates something: not in the middle of the program's work. */
const char *rs_where_native_start(void)
{
	void *ip[4];

	dl_iterate_phdr(note_self, (void *)(uintptr_t)rs_where_native_start);
	dl_iterate_phdr(count_unloaded, &unloaded);
	if (find_unwinder() && !open_checks()) {
		stand_between();
		return "libunwind";
	}
	unwind = backtrace;
	flush = NULL;
	unwind(ip, 4);
	return "backtrace";
}

static void forget_unloaded(void)
{
	uint64_t now = 0;

	dl_iterate_phdr(count_unloaded, &now);
	if (__atomic_exchange_n(&unloaded, now, __ATOMIC_RELAXED) != now && flush && space)
		flush(*space, 0, 0);
}

static int is_ours(const void *ip)
{
	return (uintptr_t)ip >= own_from && (uintptr_t)ip < own_to;
}

unsigned rs_where_native(uint64_t *ret_ip, unsigned most)
{
	void *ip[RS_WHERE_MOST + OWN_FRAMES];
	int n, from = 0;
	unsigned k;

	if (access_mem ? __atomic_load_n(&is_gone, __ATOMIC_RELAXED) : !is_checking())
		return 0;
	forget_unloaded();
	n = unwind(ip, (int)(most + OWN_FRAMES));
	if (__atomic_load_n(&is_gone, __ATOMIC_RELAXED))
		return 0;
	if (n > 1 && !is_ours(ip[0]) && is_ours(ip[1])) /* a sanitizer's own backtrace() */
		from++;
	while (from < n && is_ours(ip[from]))
		from++;
	for (k = 0; k < most && from < n && ip[from]; k++, from++)
		ret_ip[k] = (uintptr_t)ip[from];
	return k;
}

/* --- objects ------------------------------------------------------------------------------------- */

struct describing {
	const uint64_t *ip;
	struct rs_where_frame *frame;
	unsigned n, left;
	rs_where_module_fn *module;
};

static int is_loaded(const struct dl_phdr_info *info, uint64_t from, uint64_t bytes)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && p->p_flags & PF_R && from >= p->p_vaddr &&
		    from - p->p_vaddr <= p->p_filesz && bytes <= p->p_filesz - (from - p->p_vaddr))
			return 1;
	}
	return 0;
}

/* The linker's digest of the object, in a note that is loaded with it. */
static const uint8_t *build_id(const struct dl_phdr_info *info, unsigned *ret_bytes)
{
	*ret_bytes = 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const uint8_t *at = (const uint8_t *)(info->dlpi_addr + p->p_vaddr), *end;

		if (p->p_type != PT_NOTE || !is_loaded(info, p->p_vaddr, p->p_filesz))
			continue;
		for (end = at + p->p_filesz; (size_t)(end - at) > sizeof(ElfW(Nhdr));) {
			const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;
			size_t name = (note->n_namesz + 3ul) & ~3ul;
			size_t all = sizeof(*note) + name + ((note->n_descsz + 3ul) & ~3ul);

			if (all > (size_t)(end - at))
				break;
			if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
			    !memcmp(note + 1, "GNU", 4)) {
				*ret_bytes = note->n_descsz;
				return at + sizeof(*note) + name;
			}
			at += all;
		}
	}
	return NULL;
}

static uint32_t number(struct describing *d, const struct dl_phdr_info *info)
{
	const char *path = info->dlpi_name;
	char exe[4096];
	unsigned bytes;
	const uint8_t *build = build_id(info, &bytes);

	/* the program itself has no name there */
	if (!path || !*path) {
		ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

		exe[n > 0 ? n : 0] = '\0';
		path = exe;
	}
	return d->module(path, build, bytes);
}

static int describe(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct describing *d = arg;
	uint32_t id = 0;

	(void)size;
	for (unsigned k = 0; k < d->n; k++) {
		/* a call may be the last instruction of its object */
		uint64_t ip = d->ip[k] - 1;

		for (int i = 0; !d->frame[k].module && i < info->dlpi_phnum; i++) {
			const ElfW(Phdr) *p = &info->dlpi_phdr[i];
			uint64_t from = info->dlpi_addr + p->p_vaddr;

			if (p->p_type != PT_LOAD || ip < from || ip >= from + p->p_memsz)
				continue;
			id = id ? id : number(d, info);
			if (!id)
				return 0;
			d->frame[k] = (struct rs_where_frame){d->ip[k] - info->dlpi_addr, id};
			d->left--;
		}
	}
	return !d->left;
}

void rs_where_native_describe(const uint64_t *ip, unsigned n, struct rs_where_frame *ret,
			      rs_where_module_fn *module)
{
	struct describing d = {ip, ret, n, n, module};

	for (unsigned k = 0; k < n; k++)
		ret[k] = (struct rs_where_frame){.offset = ip[k]};
	if (n)
		dl_iterate_phdr(describe, &d);
}
