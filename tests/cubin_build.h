/* SPDX-License-Identifier: MIT */
/*
 * Builds small CUDA ELF images for tests, in the order in which ptxas lays them out: header, names,
 * strings, symbols, the test's sections, section table. There is no machine code in them.
 *
 * cubin_begin(), then sections and symbols in any order, then cubin_end(). Indices start at 4.
 */
#ifndef RS_TESTS_CUBIN_BUILD_H
#define RS_TESTS_CUBIN_BUILD_H

#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CUBIN_INFO	   0x70000000u /* section type of .nv.info */
#define CUBIN_DATA	   (SHF_WRITE | SHF_ALLOC)
#define CUBIN_MAX_SECTIONS 64

struct cubin_text {
	char data[4096];
	size_t n;
};

struct cubin_build {
	Elf64_Ehdr h;
	Elf64_Shdr section[CUBIN_MAX_SECTIONS];
	const void *content[CUBIN_MAX_SECTIONS];
	unsigned nsections;
	struct cubin_text names, strings;
	Elf64_Sym symbol[64];
	unsigned nsymbols;
};

struct cubin_info {
	uint8_t data[1024];
	size_t n;
};

static inline uint32_t cubin_text(struct cubin_text *t, const char *text)
{
	size_t at = t->n, n = strlen(text) + 1;

	memcpy(t->data + at, text, n);
	t->n += n;
	return (uint32_t)at;
}

/* content stays the caller's until cubin_end(). NULL: no bytes in the file. */
static inline uint16_t cubin_section(struct cubin_build *b, const char *name, uint32_t type,
				     uint64_t flags, const void *content, uint64_t size)
{
	unsigned i = b->nsections++;

	b->section[i] = (Elf64_Shdr){.sh_name = cubin_text(&b->names, name),
				     .sh_type = content ? type : SHT_NOBITS,
				     .sh_flags = flags,
				     .sh_size = size,
				     .sh_addralign = 4};
	b->content[i] = content;
	return (uint16_t)i;
}

static inline void cubin_begin(struct cubin_build *b)
{
	memset(b, 0, sizeof(*b));
	memcpy(b->h.e_ident, ELFMAG, SELFMAG);
	b->h.e_ident[EI_CLASS] = ELFCLASS64;
	b->h.e_ident[EI_DATA] = ELFDATA2LSB;
	b->h.e_ident[EI_VERSION] = EV_CURRENT;
	b->h.e_ident[EI_OSABI] = 0x41;
	b->h.e_ident[EI_ABIVERSION] = 8;
	b->h.e_type = ET_EXEC;
	b->h.e_machine = EM_CUDA;
	b->h.e_version = 1;
	b->h.e_ehsize = sizeof(b->h);
	b->h.e_shentsize = sizeof(Elf64_Shdr);
	b->h.e_shstrndx = 1;
	cubin_text(&b->names, "");
	cubin_text(&b->strings, "");
	b->nsymbols = b->nsections = 1;
	cubin_section(b, ".shstrtab", SHT_STRTAB, 0, b->names.data, 0);
	cubin_section(b, ".strtab", SHT_STRTAB, 0, b->strings.data, 0);
	cubin_section(b, ".symtab", SHT_SYMTAB, 0, b->symbol, 0);
	b->section[3].sh_link = 2;
	b->section[3].sh_entsize = sizeof(Elf64_Sym);
}

static inline void cubin_symbol(struct cubin_build *b, const char *name, unsigned bind,
				unsigned type, uint16_t section, uint64_t value, uint64_t size)
{
	b->symbol[b->nsymbols++] = (Elf64_Sym){.st_name = cubin_text(&b->strings, name),
					       .st_info = (uint8_t)ELF64_ST_INFO(bind, type),
					       .st_shndx = section,
					       .st_value = value,
					       .st_size = size};
}

/* From malloc. */
static inline uint8_t *cubin_end(struct cubin_build *b, size_t *ret_size)
{
	size_t at = sizeof(b->h);
	uint8_t *out;

	b->section[1].sh_size = b->names.n;
	b->section[2].sh_size = b->strings.n;
	b->section[3].sh_size = b->nsymbols * sizeof(Elf64_Sym);
	for (unsigned i = 1; i < b->nsections; i++) {
		b->section[i].sh_offset = at;
		at += b->content[i] ? (b->section[i].sh_size + 7) & ~7ull : 0;
	}
	b->h.e_shoff = at;
	b->h.e_shnum = (uint16_t)b->nsections;
	*ret_size = at + b->nsections * sizeof(Elf64_Shdr);
	out = calloc(1, *ret_size);
	if (!out)
		abort();
	memcpy(out, &b->h, sizeof(b->h));
	for (unsigned i = 1; i < b->nsections; i++)
		if (b->content[i])
			memcpy(out + b->section[i].sh_offset, b->content[i], b->section[i].sh_size);
	memcpy(out + at, b->section, b->nsections * sizeof(Elf64_Shdr));
	return out;
}

/* --- .nv.info ----------------------------------------------------------------------------------- */

static inline void cubin_put(struct cubin_info *info, const void *data, size_t n)
{
	memcpy(info->data + info->n, data, n);
	info->n += n;
}

/* A record without a value (1), with one of a byte (2) or of two (3). */
static inline void cubin_half(struct cubin_info *info, uint8_t format, uint8_t attr, uint16_t value)
{
	cubin_put(info, &(uint8_t[2]){format, attr}, 2);
	cubin_put(info, &value, 2);
}

static inline void cubin_sized(struct cubin_info *info, uint8_t attr, const void *value, uint16_t n)
{
	cubin_half(info, 4, attr, n);
	cubin_put(info, value, n);
}

/* EIATTR_KPARAM_INFO. */
static inline void cubin_param(struct cubin_info *info, uint16_t ordinal, uint16_t offset,
			       uint32_t size)
{
	uint32_t value[3] = {0, ordinal | (uint32_t)offset << 16, size << 18 | 0x1f000};

	cubin_sized(info, 0x17, value, sizeof(value));
}

static inline void cubin_param_v2(struct cubin_info *info, uint16_t ordinal, uint16_t offset,
				  uint16_t size)
{
	uint32_t value[3] = {0, ordinal | (uint32_t)offset << 16, size};

	cubin_sized(info, 0x45, value, sizeof(value));
}

/* EIATTR_PARAM_CBANK and EIATTR_CBANK_PARAM_SIZE. */
static inline void cubin_param_size(struct cubin_info *info, uint16_t bytes)
{
	uint32_t value[2] = {9, 0x210 | (uint32_t)bytes << 16};

	cubin_sized(info, 0x0a, value, sizeof(value));
	cubin_half(info, 3, 0x19, bytes);
}

#endif
