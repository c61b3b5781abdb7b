/* SPDX-License-Identifier: MIT */
/*
 * Reading what a loaded object imports, from its own tables in memory; see object.h.
 * Callers: bypass.c. No locks, no memory. Compiled without instrumentation: what is read belongs to others.
 */
#include "shim/object.h"
#include "shim/curand.h"
#include "shim/shim.h"

#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RELOC_MAX 100000u /* of an object that is read through a file */

static int peek(const struct rs_object *im, uintptr_t addr, void *out, size_t n)
{
	if (im->fd >= 0)
		return pread(im->fd, out, n, (off_t)addr) == (ssize_t)n;
	memcpy(out, (const void *)addr, n);
	return 1;
}

static int peek_text(const struct rs_object *im, uintptr_t addr, char *out, size_t size)
{
	ssize_t n;

	if (im->fd < 0) {
		snprintf(out, size, "%s", (const char *)addr);
		return 1;
	}
	n = pread(im->fd, out, size - 1, (off_t)addr);
	out[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* glibc relocates the pointers in place, unless the section cannot be written. */
static uintptr_t at(const struct rs_object *im, uintptr_t value)
{
	return value < im->bias ? im->bias + value : value;
}

int rs_object_dynamic(struct rs_object *im, uintptr_t addr)
{
	ElfW(Dyn) d;
	size_t relacount = 0;

	for (unsigned i = 0; i < 512; i++) {
		if (!peek(im, addr + i * sizeof(d), &d, sizeof(d)))
			return 0;
		if (d.d_tag == DT_NULL)
			break;
		if (d.d_tag == DT_SYMTAB)
			im->symtab = at(im, d.d_un.d_ptr);
		else if (d.d_tag == DT_STRTAB)
			im->strtab = at(im, d.d_un.d_ptr);
		else if (d.d_tag == DT_RELA)
			im->rela = at(im, d.d_un.d_ptr);
		else if (d.d_tag == DT_RELASZ)
			im->relasz = d.d_un.d_val;
		else if (d.d_tag == DT_RELACOUNT)
			relacount = d.d_un.d_val;
		else if (d.d_tag == DT_JMPREL)
			im->jmprel = at(im, d.d_un.d_ptr);
		else if (d.d_tag == DT_PLTRELSZ)
			im->pltrelsz = d.d_un.d_val;
		else if (d.d_tag == DT_SONAME)
			im->soname = d.d_un.d_val;
	}
	/* Relative ones come first and have no symbol. */
	relacount *= sizeof(ElfW(Rela));
	if (im->rela && relacount <= im->relasz) {
		im->rela += relacount;
		im->relasz -= relacount;
	}
	return im->symtab && im->strtab;
}

int rs_object_is_driver(const struct rs_object *im)
{
	const char *slash = strrchr(im->name, '/');
	char soname[32] = "";

	if (im->soname && im->strtab)
		peek_text(im, im->strtab + im->soname, soname, sizeof(soname));
	return !strncmp(soname, "libcuda.so", 10) ||
	       !strncmp(slash ? slash + 1 : im->name, "libcuda.so", 10);
}

/* 0: no concern of ours, 1: a way to the driver, 2: a function that we wrap. */
static int concern(const char *name)
{
	if (!strcmp(name, "dlsym") || !strcmp(name, "dlvsym"))
		return 1;
	if (name[0] != 'c' || name[1] != 'u')
		return 0;
	return rs_real_knows(name) || rs_curand_knows(name) ? 2 : 0;
}

#if defined(__x86_64__)
#define IS_SLOT(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT)
#else
#define IS_SLOT(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT)
#endif

int rs_object_slot(const struct rs_object *im, uintptr_t table, size_t bytes, size_t *pos,
		   char *name, size_t size, uintptr_t *ret_slot)
{
	ElfW(Rela) r;
	ElfW(Sym) s;
	int kind;

	for (; *pos + sizeof(r) <= bytes; *pos += sizeof(r)) {
		if (!peek(im, table + *pos, &r, sizeof(r)))
			return 0;
		if (!IS_SLOT(ELF64_R_TYPE(r.r_info)) || !ELF64_R_SYM(r.r_info))
			continue;
		if (!peek(im, im->symtab + ELF64_R_SYM(r.r_info) * sizeof(s), &s, sizeof(s)) ||
		    s.st_shndx != SHN_UNDEF || !peek_text(im, im->strtab + s.st_name, name, size))
			continue;
		kind = concern(name);
		if (!kind)
			continue;
		*ret_slot = im->bias + r.r_offset;
		*pos += sizeof(r);
		return kind;
	}
	return 0;
}

int rs_object_open(struct rs_object *im, const char *path, uintptr_t start, int fd)
{
	ElfW(Ehdr) eh;
	ElfW(Phdr) ph;
	uintptr_t dynamic = 0;
	int first = 1;

	*im = (struct rs_object){.fd = fd, .name = path};
	if (fd < 0 || !peek(im, start, &eh, sizeof(eh)) || memcmp(eh.e_ident, ELFMAG, SELFMAG) ||
	    eh.e_type != ET_DYN || eh.e_phnum > 64)
		return 0;
	for (unsigned i = 0; i < eh.e_phnum; i++) {
		if (!peek(im, start + eh.e_phoff + i * sizeof(ph), &ph, sizeof(ph)))
			return 0;
		if (ph.p_type == PT_LOAD && first) {
			im->bias = start - (ph.p_vaddr & ~(uintptr_t)(getpagesize() - 1));
			first = 0;
		} else if (ph.p_type == PT_DYNAMIC) {
			dynamic = ph.p_vaddr;
		}
	}
	return dynamic && rs_object_dynamic(im, im->bias + dynamic);
}

void rs_object_imports(const struct rs_object *im, char what[128])
{
	const uintptr_t table[] = {im->jmprel, im->rela};
	const size_t bytes[] = {im->pltrelsz, im->relasz}, most = RELOC_MAX * sizeof(ElfW(Rela));
	char name[128];
	uintptr_t slot;
	int worst = 0, kind;

	what[0] = '\0';
	for (unsigned t = 0; t < 2 && worst < 2; t++) {
		size_t pos = 0, n = !table[t] ? 0 : bytes[t] < most ? bytes[t] : most;

		while (worst < 2 &&
		       (kind = rs_object_slot(im, table[t], n, &pos, name, sizeof(name), &slot)))
			if (kind > worst) {
				worst = kind;
				memcpy(what, name, sizeof(name));
			}
	}
}
