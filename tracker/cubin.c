/* SPDX-License-Identifier: MIT */
/*
 * See cubin.h. Callers: the shim, when a module is loaded.
 *
 * Invariants: tables are checked once, in rs_cubin_open(): afterwards an index below nsections is
 * readable, and any offset into a string table is a NUL-terminated string. Fields are copied out, for
 * alignment.
 */
#include "tracker/cubin.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#define SHT_CUDA_INFO	0x70000000u
#define MOST_PARAMS	4096u /* 32764 bytes is what the architecture allows for all of them */
#define STT_CUDA_OBJECT 13    /* a variable of a relocatable image */

/*
 * .nv.info: the formats of a value, and the attributes that are read.
 *   PARAM_CBANK     u32 symbol, u16 offset, u16 size of all parameters
 *   KPARAM_INFO     u32 index, u16 ordinal, u16 offset, u32 whose upper 14 bits are the size
 *   KPARAM_INFO_V2  u32 index, u16 ordinal, u16 offset, u16 size, u16: kernels with large parameters
 */
enum { FORMAT_NONE = 1, FORMAT_BYTE, FORMAT_HALF, FORMAT_SIZED };
enum {
	ATTR_IMAGE_SLOT = 0x02,
	ATTR_PARAM_CBANK = 0x0a,
	ATTR_BINDLESS_IMAGE_OFFSETS = 0x14,
	ATTR_BINDLESS_TEXTURE_BANK = 0x15,
	ATTR_BINDLESS_SURFACE_BANK = 0x16,
	ATTR_KPARAM_INFO = 0x17,
	ATTR_CBANK_PARAM_SIZE = 0x19,
	ATTR_NEED_CNP_WRAPPER = 0x1f,
	ATTR_NEED_CNP_PATCH = 0x20,
	ATTR_KPARAM_INFO_V2 = 0x45,
};

struct record {
	uint8_t format, attr;
	uint16_t half;		     /* the value, where it is one */
	struct rs_cubin_bytes value; /* FORMAT_SIZED */
};

static uint16_t get16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* --- sections ----------------------------------------------------------------------------------- */

static int is_cuda(const Elf64_Ehdr *h)
{
	return !memcmp(h->e_ident, ELFMAG, SELFMAG) && h->e_ident[EI_CLASS] == ELFCLASS64 &&
	       h->e_ident[EI_DATA] == ELFDATA2LSB && h->e_machine == EM_CUDA;
}

static int inside(uint64_t size, uint64_t offset, uint64_t n)
{
	return offset <= size && n <= size - offset;
}

/* Number of sections: the first one's size where the header's field is too small for it. */
static uint64_t count_sections(const uint8_t *image, const Elf64_Ehdr *h)
{
	Elf64_Shdr first;

	if (h->e_shnum || !h->e_shoff)
		return h->e_shnum;
	memcpy(&first, image + h->e_shoff, sizeof(first));
	return first.sh_size;
}

uint64_t rs_cubin_size(const void *image)
{
	Elf64_Ehdr h;
	uint64_t n;

	/* A file that is no ELF64 may be shorter than its header. */
	if (memcmp(image, ELFMAG, SELFMAG) || ((const uint8_t *)image)[EI_CLASS] != ELFCLASS64)
		return 0;
	memcpy(&h, image, sizeof(h));
	if (!is_cuda(&h) || h.e_shoff > INT64_MAX || h.e_shentsize != sizeof(Elf64_Shdr))
		return 0;
	n = count_sections(image, &h);
	if (n > UINT32_MAX)
		return 0;
	n = h.e_shoff + n * sizeof(Elf64_Shdr);
	/* Both tables come behind everything else. */
	if (h.e_phoff < INT64_MAX && h.e_phoff + (uint64_t)h.e_phnum * h.e_phentsize > n)
		n = h.e_phoff + (uint64_t)h.e_phnum * h.e_phentsize;
	return n > sizeof(h) ? n : sizeof(h);
}

static Elf64_Shdr section(const struct rs_cubin *c, uint64_t i)
{
	Elf64_Shdr s;

	memcpy(&s, c->image.data + c->sections + i * sizeof(s), sizeof(s));
	return s;
}

static int contents(const struct rs_cubin *c, const Elf64_Shdr *s, struct rs_cubin_bytes *ret)
{
	if (s->sh_type == SHT_NOBITS || !inside(c->image.n, s->sh_offset, s->sh_size))
		return -EINVAL;
	*ret = (struct rs_cubin_bytes){c->image.data + s->sh_offset, s->sh_size};
	return 0;
}

/* A string table ends with a NUL, so that every string in it does. */
static int string_table(const struct rs_cubin *c, uint64_t i, struct rs_cubin_bytes *ret)
{
	Elf64_Shdr s;

	if (i >= c->nsections)
		return -EINVAL;
	s = section(c, i);
	if (s.sh_type != SHT_STRTAB || contents(c, &s, ret) || !ret->n || ret->data[ret->n - 1])
		return -EINVAL;
	return 0;
}

static const char *string(const struct rs_cubin_bytes *table, uint64_t offset)
{
	return offset < table->n ? (const char *)table->data + offset : "";
}

static int begins(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

/*
 * What kernels share and can write: .nv.global and .nv.global.init. Shared and local memory is laid out
 * in sections, too. The type differs between linked and relocatable images.
 */
static int holds_variables(const struct rs_cubin *c, const Elf64_Shdr *s)
{
	static const char *const other[] = {".nv.shared", ".nv.local", ".nv.constant"};
	const char *name;

	if (!s->sh_size || (s->sh_flags & (SHF_WRITE | SHF_ALLOC)) != (SHF_WRITE | SHF_ALLOC))
		return 0;
	name = string(&c->names, s->sh_name);
	for (unsigned i = 0; i < sizeof(other) / sizeof(*other); i++)
		if (begins(name, other[i]))
			return 0;
	return 1;
}

/* --- symbols ------------------------------------------------------------------------------------ */

static Elf64_Sym symbol(const struct rs_cubin *c, uint64_t i)
{
	Elf64_Sym s;

	memcpy(&s, c->symbols.data + i * sizeof(s), sizeof(s));
	return s;
}

/* Which of the sections that hold variables the symbol names a part of; ndata: none. */
static uint32_t data_section(const struct rs_cubin *c, const Elf64_Sym *s)
{
	unsigned type = ELF64_ST_TYPE(s->st_info);
	uint32_t i;

	if ((type != STT_OBJECT && type != STT_COMMON && type != STT_CUDA_OBJECT) || !s->st_size)
		return c->ndata;
	for (i = 0; i < c->ndata && c->data[i] != s->st_shndx; i++)
		;
	return i;
}

/* Functions of the driver. Printing and a failed assertion leave the program's memory alone. */
static int may_write(const char *name)
{
	static const char *const harmless[] = {"vprintf", "__assertfail", "__assert_fail"};

	for (unsigned i = 0; i < sizeof(harmless) / sizeof(*harmless); i++)
		if (!strcmp(name, harmless[i]))
			return 0;
	return 1;
}

static int find_sections(struct rs_cubin *c)
{
	Elf64_Shdr s;

	for (uint32_t i = 1; i < c->nsections; i++) {
		s = section(c, i);
		if (s.sh_type == SHT_SYMTAB) {
			if (c->symbols.data || s.sh_entsize != sizeof(Elf64_Sym) ||
			    contents(c, &s, &c->symbols) || string_table(c, s.sh_link, &c->strings))
				return -EINVAL;
		} else if (holds_variables(c, &s)) {
			/* The index of a symbol's section has 16 bits. */
			if (c->ndata == RS_CUBIN_DATA_SECTIONS || i >= SHN_LORESERVE)
				c->nameless = 1;
			else
				c->data[c->ndata++] = i;
		}
	}
	return 0;
}

static void look_at_symbols(struct rs_cubin *c)
{
	uint8_t named[RS_CUBIN_DATA_SECTIONS + 1] = {0};
	uint64_t n = c->symbols.n / sizeof(Elf64_Sym);

	for (uint64_t i = 0; i < n; i++) {
		Elf64_Sym s = symbol(c, i);

		named[data_section(c, &s)] = 1;
		if (ELF64_ST_TYPE(s.st_info) == STT_FUNC && s.st_shndx == SHN_UNDEF)
			c->calls_out |= may_write(string(&c->strings, s.st_name));
	}
	for (uint32_t i = 0; i < c->ndata; i++)
		c->nameless |= !named[i];
}

int rs_cubin_open(const void *image, uint64_t size, struct rs_cubin *ret)
{
	struct rs_cubin c = {.image = {image, size}};
	uint64_t n, names;
	Elf64_Ehdr h;

	if (size < sizeof(h))
		return -EINVAL;
	memcpy(&h, image, sizeof(h));
	if (!is_cuda(&h))
		return -ENOTSUP;
	if (h.e_shentsize != sizeof(Elf64_Shdr) || !inside(size, h.e_shoff, sizeof(Elf64_Shdr)))
		return -EINVAL;
	n = count_sections(image, &h);
	if (!n || n > UINT32_MAX || !inside(size, h.e_shoff, n * sizeof(Elf64_Shdr)))
		return -EINVAL;
	c.sections = h.e_shoff;
	c.nsections = (uint32_t)n;
	c.relocatable = h.e_type == ET_REL;
	names = h.e_shstrndx == SHN_XINDEX ? section(&c, 0).sh_link : h.e_shstrndx;
	if (string_table(&c, names, &c.names) || find_sections(&c))
		return -EINVAL;
	look_at_symbols(&c);
	*ret = c;
	return 0;
}

int rs_cubin_next_var(const struct rs_cubin *c, uint64_t *cursor, struct rs_cubin_var *ret)
{
	uint64_t n = c->symbols.n / sizeof(Elf64_Sym);

	while (*cursor < n) {
		Elf64_Sym s = symbol(c, (*cursor)++);
		uint32_t i = data_section(c, &s);
		Elf64_Shdr in;

		if (i == c->ndata)
			continue;
		in = section(c, c->data[i]);
		ret->name = string(&c->strings, s.st_name);
		ret->section = string(&c->names, in.sh_name);
		ret->offset = s.st_value;
		ret->size = s.st_size;
		return 1;
	}
	return 0;
}

/* --- .nv.info ----------------------------------------------------------------------------------- */

/* 1, 0 at the end, -EINVAL. */
static int next_record(const struct rs_cubin_bytes *info, uint64_t *cursor, struct record *ret)
{
	uint64_t rest = info->n - *cursor;
	const uint8_t *p;

	if (!rest)
		return 0;
	p = info->data + *cursor;
	if (rest < 4 || p[0] < FORMAT_NONE || p[0] > FORMAT_SIZED)
		return -EINVAL;
	*ret = (struct record){.format = p[0], .attr = p[1], .half = get16(p + 2)};
	*cursor += 4;
	if (p[0] != FORMAT_SIZED)
		return 1;
	if (ret->half > rest - 4)
		return -EINVAL;
	ret->value = (struct rs_cubin_bytes){p + 4, ret->half};
	*cursor += ret->half;
	return 1;
}

/* 1: the record is a parameter. */
static int parameter(const struct record *r, uint32_t *ret_ordinal, struct rs_cubin_param *ret)
{
	if (r->format != FORMAT_SIZED || r->value.n != 12)
		return 0;
	if (r->attr == ATTR_KPARAM_INFO)
		ret->size = get32(r->value.data + 8) >> 18;
	else if (r->attr == ATTR_KPARAM_INFO_V2)
		ret->size = get16(r->value.data + 8);
	else
		return 0;
	*ret_ordinal = get16(r->value.data + 4);
	ret->offset = get16(r->value.data + 6);
	return 1;
}

static void look_at_record(struct rs_cubin_kernel *k, const struct record *r)
{
	struct rs_cubin_param p;
	uint32_t ordinal;

	switch (r->attr) {
	case ATTR_KPARAM_INFO:
	case ATTR_KPARAM_INFO_V2:
		k->nparams += (uint32_t)parameter(r, &ordinal, &p);
		break;
	case ATTR_CBANK_PARAM_SIZE:
		if (r->format == FORMAT_HALF)
			k->param_bytes = r->half;
		break;
	case ATTR_IMAGE_SLOT:
	case ATTR_BINDLESS_IMAGE_OFFSETS:
	case ATTR_BINDLESS_TEXTURE_BANK:
	case ATTR_BINDLESS_SURFACE_BANK:
		k->images = 1;
		break;
	case ATTR_NEED_CNP_WRAPPER:
	case ATTR_NEED_CNP_PATCH:
		k->launches = 1;
		break;
	default:
		break;
	}
}

int rs_cubin_next_kernel(const struct rs_cubin *c, uint64_t *cursor, struct rs_cubin_kernel *ret)
{
	static const char prefix[] = ".nv.info.";

	while (*cursor < c->nsections) {
		Elf64_Shdr s = section(c, (*cursor)++);
		const char *name = string(&c->names, s.sh_name);
		struct rs_cubin_kernel k = {0};
		uint64_t at = 0;
		struct record r;

		if (s.sh_type != SHT_CUDA_INFO || !begins(name, prefix))
			continue;
		k.name = name + sizeof(prefix) - 1;
		if (contents(c, &s, &k.info))
			k.info = (struct rs_cubin_bytes){NULL, 0};
		while (next_record(&k.info, &at, &r) == 1)
			look_at_record(&k, &r);
		*ret = k;
		return 1;
	}
	return 0;
}

/* One record against the rest. `end` grows to the end of the last parameter. */
static int check_record(const struct rs_cubin_kernel *k, const struct record *r,
			struct rs_cubin_param *params, uint32_t *end)
{
	struct rs_cubin_param p;
	uint32_t ordinal;

	if (r->attr == ATTR_PARAM_CBANK)
		return r->value.n == 8 && get16(r->value.data + 6) == k->param_bytes ? 0 : -ENODATA;
	if (r->attr != ATTR_KPARAM_INFO && r->attr != ATTR_KPARAM_INFO_V2)
		return 0;
	if (!parameter(r, &ordinal, &p) || ordinal >= k->nparams || params[ordinal].size || !p.size)
		return -ENODATA;
	params[ordinal] = p;
	if (p.offset + p.size > *end)
		*end = p.offset + p.size;
	return 0;
}

int rs_cubin_params(const struct rs_cubin_kernel *k, struct rs_cubin_param *ret_params)
{
	uint32_t end = 0;
	uint64_t at = 0;
	struct record r;
	int more;

	if (!k->info.n || k->nparams > MOST_PARAMS)
		return -ENODATA;
	if (k->nparams)
		memset(ret_params, 0, k->nparams * sizeof(*ret_params));
	while ((more = next_record(&k->info, &at, &r)) == 1)
		if (check_record(k, &r, ret_params, &end))
			return -ENODATA;
	/* As many as there are ordinals, none twice: so none is missing. */
	return more || end != k->param_bytes ? -ENODATA : 0;
}
