/* SPDX-License-Identifier: MIT */
/*
 * The doors to the driver: dlsym, dlvsym and what cuGetProcAddress returns. (The third, exported
 * symbols, are the wrappers themselves.)
 *
 * The real look-up always comes first; its answer is exchanged only when the address is that of an
 * intercepted function. RTLD_NEXT and RTLD_DEFAULT depend on who calls, so these two are jumped to, not
 * called: libc sees the program's own frame.
 *
 * libc's functions are found by walking its symbol table: a reference to dlsym or dlvsym from here
 * would bind to ourselves. From the real dlvsym the next dlsym in load order is asked for, so other
 * preloaded hooks keep working.
 * Callers: any thread, at any time, also before our constructor. No locks here.
 */
#include "shim/busy.h"
#include "shim/curand.h"
#include "shim/guard.h"
#include "shim/log.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

typedef void *dlsym_fn(void *, const char *);
typedef void *dlvsym_fn(void *, const char *, const char *);

/* Read by the assembly below. */
__attribute__((visibility("hidden"))) dlsym_fn *rs_doors_real_dlsym;
__attribute__((visibility("hidden"))) dlvsym_fn *rs_doors_real_dlvsym;

/* Called from the assembly. */
void rs_doors_boot(void);
void *rs_doors_dlsym_handle(void *handle, const char *name);
void *rs_doors_dlvsym_handle(void *handle, const char *name, const char *version);

/* --- libc's own --------------------------------------------------------------------------------- */

/*
 * A sanitizer's start resolves its own functions through this door, before its interceptors of libc's
 * string functions and of dl_iterate_phdr work: so none is called on the way to the real dlsym, and this
 * file is compiled without instrumentation (Makefile).
 */
static const char *base_name(const char *path)
{
	const char *base = path;

	for (; *path; path++)
		if (*path == '/')
			base = path + 1;
	return base;
}

/* The rest of text behind prefix, or NULL. */
static const char *behind(const char *text, const char *prefix)
{
	for (; *prefix; prefix++, text++)
		if (*text != *prefix)
			return NULL;
	return text;
}

static int same(const char *a, const char *b)
{
	const char *rest = behind(a, b);

	return rest && !*rest;
}

/* Number of symbols, from the GNU hash table: the highest chain's end. */
static uint32_t symbol_count(const uint32_t *gnu)
{
	uint32_t nbuckets = gnu[0], first = gnu[1], bloom = gnu[2], last = 0;
	const uint32_t *buckets = gnu + 4 + bloom * (sizeof(ElfW(Addr)) / 4);
	const uint32_t *chain = buckets + nbuckets;

	for (uint32_t i = 0; i < nbuckets; i++)
		if (buckets[i] > last)
			last = buckets[i];
	if (last < first)
		return first;
	while (!(chain[last - first] & 1))
		last++;
	return last + 1;
}

static void *find_in(const struct link_map *object, const char *want)
{
	const char *name = base_name(object->l_name ? object->l_name : ""), *strings = NULL;
	const ElfW(Dyn) *dyn = object->l_ld;
	const ElfW(Sym) *sym = NULL;
	const uint32_t *gnu = NULL;
	uint32_t n;

	if (!behind(name, "libc.so") && !behind(name, "libdl.so"))
		return NULL;
	/* glibc has relocated these pointers already. */
	for (; dyn && dyn->d_tag != DT_NULL; dyn++) {
		if (dyn->d_tag == DT_SYMTAB)
			sym = (const void *)dyn->d_un.d_ptr;
		else if (dyn->d_tag == DT_STRTAB)
			strings = (const void *)dyn->d_un.d_ptr;
		else if (dyn->d_tag == DT_GNU_HASH)
			gnu = (const void *)dyn->d_un.d_ptr;
	}
	if (!sym || !strings || !gnu)
		return NULL;
	n = symbol_count(gnu);
	for (uint32_t i = 0; i < n; i++) {
		if (sym[i].st_shndx != SHN_UNDEF && ELF64_ST_TYPE(sym[i].st_info) == STT_FUNC &&
		    same(strings + sym[i].st_name, want))
			return (void *)(object->l_addr + sym[i].st_value);
	}
	return NULL;
}

/*
 * The loader's list of objects, as debuggers find it: through DT_DEBUG of the executable, whose program
 * headers the kernel tells. The loader's own symbol for it would make the loader a library that we need.
 */
static const struct link_map *objects(void)
{
	const ElfW(Phdr) *phdr = (const void *)getauxval(AT_PHDR);
	unsigned long n = getauxval(AT_PHNUM), i;
	const ElfW(Dyn) *dyn = NULL;
	ElfW(Addr) base = 0;

	for (i = 0; phdr && i < n; i++)
		if (phdr[i].p_type == PT_PHDR)
			base = (ElfW(Addr))phdr - phdr[i].p_vaddr;
	for (i = 0; phdr && i < n; i++)
		if (phdr[i].p_type == PT_DYNAMIC)
			dyn = (const void *)(base + phdr[i].p_vaddr);
	for (; dyn && dyn->d_tag != DT_NULL; dyn++)
		if (dyn->d_tag == DT_DEBUG && dyn->d_un.d_ptr)
			return ((const struct r_debug *)dyn->d_un.d_ptr)->r_map;
	/* an executable without it: glibc's handles are entries of the same list */
	return dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
}

/* At the process' start, or in our constructor: the list of objects does not change meanwhile. */
static void *from_libc(const char *name)
{
	const struct link_map *object;
	void *found = NULL;

	for (object = objects(); object && !found; object = object->l_next)
		found = find_in(object, name);
	return found;
}

/* Idempotent: threads that race store the same values. */
__attribute__((visibility("hidden"), used)) void rs_doors_boot(void)
{
	static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
	dlvsym_fn *vsym = (dlvsym_fn *)from_libc("dlvsym");
	void *sym = NULL;

	for (unsigned i = 0; vsym && !sym && i < sizeof(versions) / sizeof(*versions); i++)
		sym = vsym(RTLD_NEXT, "dlsym", versions[i]);
	if (!sym)
		sym = from_libc("dlsym");
	__atomic_store_n(&rs_doors_real_dlvsym, vsym, __ATOMIC_RELEASE);
	__atomic_store_n(&rs_doors_real_dlsym, (dlsym_fn *)sym, __ATOMIC_RELEASE);
}

void *rs_doors_dlsym(void *handle, const char *name)
{
	dlsym_fn *real = __atomic_load_n(&rs_doors_real_dlsym, __ATOMIC_ACQUIRE);

	if (!real) {
		rs_doors_boot();
		real = rs_doors_real_dlsym;
	}
	return real ? real(handle, name) : NULL;
}

void *rs_doors_library_of(void *addr)
{
	Dl_info info;

	return dladdr(addr, &info) && info.dli_fname
		       ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)
		       : NULL;
}

/* --- dlsym, dlvsym ------------------------------------------------------------------------------ */

/* cuda*, cudnn*, cublas* begin with cu as well. */
static int is_driver_name(const char *name)
{
	return name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

static int is_curand_name(const char *name)
{
	const char *rest = behind(name, "curand");

	return rest && *rest >= 'A' && *rest <= 'Z';
}

static int is_cupti_name(const char *name)
{
	const char *rest = behind(name, "cupti");

	return rest && *rest >= 'A' && *rest <= 'Z';
}

static int is_ours(const char *name)
{
	return is_driver_name(name) || is_curand_name(name) || is_cupti_name(name);
}

static void *exchange(const char *name, void *addr)
{
	void *hook, *own;

	rs_init_boot();
	if (rs_state.mode == RS_MODE_OFF)
		return addr;
	if (is_curand_name(name)) {
		hook = rs_curand_exchange(name, addr);
		return hook ? hook : addr;
	}
	if (is_cupti_name(name)) {
		hook = rs_busy_exchange(name, addr);
		return hook ? hook : addr;
	}
	own = rs_real_knows(name);
	if (own)
		rs_real_bind_address(addr);
	hook = rs_real_wrapper(addr);
	if (hook)
		return hook;
	if (own && own != addr)
		rs_coverage_foreign(name);
	else if (!own && !rs_real_listed(name))
		rs_coverage_unknown(name);
	return addr;
}

/* With a handle: the caller does not matter. */
__attribute__((visibility("hidden"), used)) void *rs_doors_dlsym_handle(void *handle,
									const char *name)
{
	void *addr = rs_doors_dlsym(handle, name);

	if (addr && name && is_ours(name))
		RS_ENGINE(addr = exchange(name, addr));
	return addr;
}

__attribute__((visibility("hidden"), used)) void *
rs_doors_dlvsym_handle(void *handle, const char *name, const char *version)
{
	void *addr;

	if (!rs_doors_real_dlvsym)
		rs_doors_boot();
	if (!rs_doors_real_dlvsym)
		return NULL;
	addr = rs_doors_real_dlvsym(handle, name, version);
	if (addr && name && is_ours(name))
		RS_ENGINE(addr = exchange(name, addr));
	return addr;
}

/*
 * The exported functions. A handle of RTLD_DEFAULT (0) or RTLD_NEXT (-1) leads to a jump with all
 * arguments in place; everything else to the functions above.
 */
#if defined(__x86_64__)
#define DOOR(sym)                                                                                  \
	__asm__(".text\n"                                                                          \
		".globl " #sym "\n"                                                                \
		".type " #sym ", @function\n" #sym ":\n"                                           \
		"	.cfi_startproc\n"                                                                \
		"	endbr64\n"                                                                       \
		"	lea 1(%rdi), %rax\n"                                                             \
		"	cmp $1, %rax\n"                                                                  \
		"	ja rs_doors_" #sym "_handle\n"                                             \
		"	mov rs_doors_real_" #sym "(%rip), %rax\n"                                  \
		"	test %rax, %rax\n"                                                               \
		"	jz 1f\n"                                                                         \
		"	jmp *%rax\n"                                                                     \
		"1:	push %rdi\n"                                                                   \
		"	.cfi_adjust_cfa_offset 8\n"                                                      \
		"	push %rsi\n"                                                                     \
		"	.cfi_adjust_cfa_offset 8\n"                                                      \
		"	push %rdx\n"                                                                     \
		"	.cfi_adjust_cfa_offset 8\n"                                                      \
		"	call rs_doors_boot\n"                                                            \
		"	pop %rdx\n"                                                                      \
		"	.cfi_adjust_cfa_offset -8\n"                                                     \
		"	pop %rsi\n"                                                                      \
		"	.cfi_adjust_cfa_offset -8\n"                                                     \
		"	pop %rdi\n"                                                                      \
		"	.cfi_adjust_cfa_offset -8\n"                                                     \
		"	jmp *rs_doors_real_" #sym "(%rip)\n"                                       \
		"	.cfi_endproc\n"                                                                  \
		".size " #sym ", .-" #sym "\n")
#elif defined(__aarch64__)
#define DOOR(sym)                                                                                  \
	__asm__(".text\n"                                                                          \
		".globl " #sym "\n"                                                                \
		".type " #sym ", %function\n" #sym ":\n"                                           \
		"	.cfi_startproc\n"                                                                \
		"	hint #34\n"                                                                      \
		"	add x9, x0, #1\n"                                                                \
		"	cmp x9, #1\n"                                                                    \
		"	b.ls 1f\n"                                                                       \
		"	b rs_doors_" #sym "_handle\n"                                              \
		"1:	adrp x9, rs_doors_real_" #sym "\n"                                         \
		"	ldr x9, [x9, #:lo12:rs_doors_real_" #sym "]\n"                             \
		"	cbz x9, 2f\n"                                                                    \
		"	br x9\n"                                                                         \
		"2:	stp x29, x30, [sp, #-48]!\n"                                                   \
		"	stp x0, x1, [sp, #16]\n"                                                         \
		"	str x2, [sp, #32]\n"                                                             \
		"	bl rs_doors_boot\n"                                                              \
		"	ldr x2, [sp, #32]\n"                                                             \
		"	ldp x0, x1, [sp, #16]\n"                                                         \
		"	ldp x29, x30, [sp], #48\n"                                                       \
		"	adrp x9, rs_doors_real_" #sym "\n"                                         \
		"	ldr x9, [x9, #:lo12:rs_doors_real_" #sym "]\n"                             \
		"	br x9\n"                                                                         \
		"	.cfi_endproc\n"                                                                  \
		".size " #sym ", .-" #sym "\n")
#else
#error "dlsym's door is written for x86-64 and aarch64"
#endif
DOOR(dlsym);
DOOR(dlvsym);

/* --- cuGetProcAddress --------------------------------------------------------------------------- */

/* The driver has answered; is it one of ours? */
static void exchange_answer(const char *symbol, void **pfn, int version, uint64_t flags)
{
	void *addr = *pfn, *hook;

	if (rs_state.mode == RS_MODE_OFF || !addr || !symbol || !is_driver_name(symbol))
		return;
	hook = rs_real_wrapper(addr);
	if (!hook && !rs_real_untouched(addr)) {
		/* An address that is not the exported one: by name, and only then. */
		hook = rs_real_wrapper_by_name(symbol, version, flags);
		if (hook)
			rs_count(by_name);
		else if (!rs_real_listed_base(symbol, version))
			rs_coverage_unknown(symbol);
	}
	if (hook)
		*pfn = hook;
}

/* Counted before cuInit too, when rs_on is still 0: programs resolve first. */
RS_HOOK(cuGetProcAddress, (const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags))
{
	CUresult r;

	rs_guard_count(RS_EP_cuGetProcAddress);
	r = rs_real.cuGetProcAddress(symbol, pfn, cudaVersion, flags);
	if (r == CUDA_SUCCESS && pfn)
		RS_ENGINE(rs_init_boot(); exchange_answer(symbol, pfn, cudaVersion, flags));
	return r;
}

RS_HOOK(cuGetProcAddress_v2, (const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
			      CUdriverProcAddressQueryResult *symbolStatus))
{
	CUresult r;

	rs_guard_count(RS_EP_cuGetProcAddress_v2);
	r = rs_real.cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, symbolStatus);
	if (r == CUDA_SUCCESS && pfn)
		RS_ENGINE(rs_init_boot(); exchange_answer(symbol, pfn, cudaVersion, flags));
	return r;
}

/* Private tables are the driver's business; that one was handed out is worth knowing. */
RS_HOOK(cuGetExportTable, (const void **ppExportTable, const CUuuid *pExportTableId))
{
	CUresult r;

	rs_guard_count(RS_EP_cuGetExportTable);
	r = rs_real.cuGetExportTable(ppExportTable, pExportTableId);
	if (r == CUDA_SUCCESS)
		RS_ENGINE(rs_coverage_table(pExportTableId));
	return r;
}
