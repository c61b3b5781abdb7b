/* SPDX-License-Identifier: MIT */
/*
 * Symbol tables of ELF files (64 bits, this machine's byte order); see symbols.h.
 *
 * A stripped file has the names of its exported functions only; a debug file by its build id is looked for in the place where
 * distributions put them. Names of C++ are made readable by libstdc++, if the machine has it.
 */
#include "planner/symbols.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct image {
	const uint8_t *data;
	uint64_t bytes;
};

struct object {
	char *path, *build;
	struct image image, debug; /* data NULL: cannot be read, or is another build */
	struct rs_debuglines *lines;
	struct object *next;
};

static struct object *objects;

/* --- files --------------------------------------------------------------------------------------- */

static int has(const struct image *m, uint64_t from, uint64_t bytes)
{
	return from <= m->bytes && bytes <= m->bytes - from;
}

static const Elf64_Shdr *section(const struct image *m, unsigned i)
{
	const Elf64_Ehdr *e = (const Elf64_Ehdr *)m->data;

	if (!e || i >= e->e_shnum || e->e_shentsize != sizeof(Elf64_Shdr) || e->e_shoff % 8 ||
	    !has(m, e->e_shoff, (uint64_t)e->e_shnum * sizeof(Elf64_Shdr)))
		return NULL;
	return (const Elf64_Shdr *)(m->data + e->e_shoff) + i;
}

static unsigned sections(const struct image *m)
{
	return m->data ? ((const Elf64_Ehdr *)m->data)->e_shnum : 0;
}

static void close_image(struct image *m)
{
	if (m->data)
		munmap((void *)(uintptr_t)m->data, m->bytes);
	*m = (struct image){NULL, 0};
}

static void open_image(const char *path, struct image *ret)
{
	const uint8_t want[] = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB};
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	void *p = MAP_FAILED;

	if (fd < 0)
		return;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && (size_t)st.st_size > sizeof(Elf64_Ehdr))
		p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return;
	*ret = (struct image){p, (uint64_t)st.st_size};
	if (memcmp(p, want, sizeof(want)))
		close_image(ret);
}

/* Is it that build? Hex digits of a note's bytes; "": one does not know. */
static int note_is(const uint8_t *at, uint64_t bytes, const char *build)
{
	while (bytes > sizeof(Elf64_Nhdr)) {
		const Elf64_Nhdr *n = (const Elf64_Nhdr *)at;
		uint64_t name = (n->n_namesz + 3ull) & ~3ull;
		uint64_t all = sizeof(*n) + name + ((n->n_descsz + 3ull) & ~3ull);
		char digits[3];

		if (all > bytes)
			return 0;
		if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 && !memcmp(n + 1, "GNU", 4)) {
			for (uint64_t i = 0; i < n->n_descsz && build[2 * i]; i++) {
				snprintf(digits, sizeof(digits), "%02x", at[sizeof(*n) + name + i]);
				if (strncmp(&build[2 * i], digits, 2))
					return 0;
			}
			return strlen(build) <= 2ull * n->n_descsz;
		}
		at += all;
		bytes -= all;
	}
	return 0;
}

static int is_build(const struct image *m, const char *build)
{
	for (unsigned i = 0; *build && i < sections(m); i++) {
		const Elf64_Shdr *s = section(m, i);

		if (s && s->sh_type == SHT_NOTE && s->sh_offset % 4 == 0 &&
		    has(m, s->sh_offset, s->sh_size) &&
		    note_is(m->data + s->sh_offset, s->sh_size, build))
			return 1;
	}
	return !*build;
}

static struct object *open_object(const char *path, const char *build)
{
	struct object *o = calloc(1, sizeof(*o));
	char debug[128];

	if (!o)
		return NULL;
	o->path = strdup(path);
	o->build = strdup(build);
	open_image(path, &o->image);
	if (o->image.data && !is_build(&o->image, build))
		close_image(&o->image);
	if (strlen(build) > 2 && !build[strspn(build, "0123456789abcdef")]) {
		snprintf(debug, sizeof(debug), "/usr/lib/debug/.build-id/%.2s/%.80s.debug", build,
			 build + 2);
		open_image(debug, &o->debug);
	}
	if (o->image.data)
		o->lines = rs_debuglines_open(path);
	o->next = objects;
	objects = o;
	return o;
}

/* --- names --------------------------------------------------------------------------------------- */

/* As in the source: without what a compiler or a linker has put behind the name. */
static const char *readable(const char *name)
{
	static char *(*demangle)(const char *, char *, size_t *, int *);
	static int looked;
	char *text;
	int failed;

	if (strncmp(name, "_Z", 2)) {
		size_t n = strcspn(name, ".@");

		text = n && name[n] ? strndup(name, n) : NULL;
		return text ? text : name;
	}
	if (!looked++) {
		void *lib = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);

		*(void **)&demangle = lib ? dlsym(lib, "__cxa_demangle") : NULL;
	}
	text = demangle ? demangle(name, NULL, NULL, &failed) : NULL;
	return text ? text : name;
}

/* The function of one table around an address. */
static void in_table(const struct image *m, const Elf64_Shdr *table, uint64_t address,
		     struct rs_symbol *ret)
{
	const Elf64_Shdr *text = section(m, table->sh_link);
	const Elf64_Sym *sym = (const Elf64_Sym *)(m->data + table->sh_offset), *best = NULL;
	const char *name;

	if (!text || !has(m, table->sh_offset, table->sh_size) || table->sh_offset % 8 ||
	    !has(m, text->sh_offset, text->sh_size))
		return;
	for (uint64_t i = 0; i < table->sh_size / sizeof(*sym); i++) {
		unsigned type = ELF64_ST_TYPE(sym[i].st_info);

		if ((type == STT_FUNC || type == STT_GNU_IFUNC) && sym[i].st_shndx != SHN_UNDEF &&
		    address >= sym[i].st_value && address - sym[i].st_value < sym[i].st_size)
			best = &sym[i];
	}
	if (!best || best->st_name >= text->sh_size)
		return;
	name = (const char *)m->data + text->sh_offset + best->st_name;
	if (!memchr(name, '\0', text->sh_size - best->st_name))
		return;
	ret->function = readable(name);
	ret->plus = address - best->st_value;
}

static void in_image(const struct image *m, uint32_t type, uint64_t address, struct rs_symbol *ret)
{
	for (unsigned i = 0; !ret->function && i < sections(m); i++) {
		const Elf64_Shdr *s = section(m, i);

		if (s && s->sh_type == type)
			in_table(m, s, address, ret);
	}
}

void rs_symbols_find(const char *path, const char *build, uint64_t address, struct rs_symbol *ret)
{
	struct object *o;

	*ret = (struct rs_symbol){0};
	for (o = objects; o; o = o->next)
		if (o->path && o->build && !strcmp(o->path, path) && !strcmp(o->build, build))
			break;
	if (!o)
		o = open_object(path, build);
	if (!o)
		return;
	in_image(&o->image, SHT_SYMTAB, address, ret);
	in_image(&o->debug, SHT_SYMTAB, address, ret);
	in_image(&o->image, SHT_DYNSYM, address, ret);
	if (o->lines)
		ret->file = rs_debuglines_find(o->lines, address, &ret->line);
}
