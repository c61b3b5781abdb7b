/* SPDX-License-Identifier: MIT */
/*
 * The reader of CUDA ELF images, on images built by hand after those that ptxas 13.0 writes for the
 * sources quoted at each case.
 */
#include "tests/cubin_build.h"
#include "tests/tap.h"
#include "tracker/cubin.h"

#include <errno.h>

/*
 *   __device__ int counter[100]; static __device__ int hidden; __device__ float table[4] = {...};
 *   __constant__ int c[8]; __device__ __managed__ int m; printf("%d\n", ...) for $str
 */
static void variables(struct cubin_build *b)
{
	static const char init[36];
	uint16_t global, start, constant, shared, text;

	text = cubin_section(b, ".text.k", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, init, 16);
	constant = cubin_section(b, ".nv.constant3", SHT_PROGBITS, SHF_ALLOC, init, 32);
	start = cubin_section(b, ".nv.global.init", SHT_PROGBITS, CUBIN_DATA, init, 36);
	shared = cubin_section(b, ".nv.shared.k", SHT_NOBITS, CUBIN_DATA, NULL, 1024);
	global = cubin_section(b, ".nv.global", SHT_NOBITS, CUBIN_DATA, NULL, 408);
	cubin_symbol(b, ".nv.global", STB_LOCAL, STT_SECTION, global, 0, 0);
	cubin_symbol(b, "counter", STB_LOCAL, STT_OBJECT, global, 8, 400);
	cubin_symbol(b, "table", STB_LOCAL, STT_OBJECT, start, 16, 16);
	cubin_symbol(b, "hidden", STB_LOCAL, STT_OBJECT, global, 4, 4);
	cubin_symbol(b, "c", STB_LOCAL, STT_OBJECT, constant, 0, 32);
	cubin_symbol(b, "tile", STB_LOCAL, STT_OBJECT, shared, 0, 1024);
	cubin_symbol(b, "m", STB_GLOBAL, STT_OBJECT, global, 0, 4);
	cubin_symbol(b, "$str", STB_WEAK, STT_OBJECT, start, 32, 4);
	cubin_symbol(b, "k", STB_GLOBAL, STT_FUNC, text, 0, 16);
	cubin_symbol(b, "vprintf", STB_GLOBAL, STT_FUNC, SHN_UNDEF, 0, 0);
	cubin_symbol(b, ".nv.reservedSmem.offset0", STB_WEAK, STT_OBJECT, SHN_UNDEF, 0, 4);
}

/* Opened at the size that the headers claim, in a block of just that size. */
static int open_exact(struct cubin_build *b, uint8_t **ret_image, struct rs_cubin *ret)
{
	size_t n;

	*ret_image = cubin_end(b, &n);
	is_u64(rs_cubin_size(*ret_image), n, "the size, from the headers");
	return rs_cubin_open(*ret_image, n, ret);
}

static void test_variables(void)
{
	static const struct rs_cubin_var want[] = {{"counter", ".nv.global", 8, 400},
						   {"table", ".nv.global.init", 16, 16},
						   {"hidden", ".nv.global", 4, 4},
						   {"m", ".nv.global", 0, 4},
						   {"$str", ".nv.global.init", 32, 4}};
	struct cubin_build b;
	struct rs_cubin_var v;
	struct rs_cubin c;
	uint64_t cursor = 0;
	uint8_t *image;

	cubin_begin(&b);
	variables(&b);
	ok(!open_exact(&b, &image, &c), "opens");
	ok(!c.relocatable && !c.nameless && !c.calls_out, "nothing unusual in it");
	for (unsigned i = 0; i < sizeof(want) / sizeof(*want); i++) {
		if (!ok(rs_cubin_next_var(&c, &cursor, &v) == 1, "a variable"))
			break;
		is_str(v.name, want[i].name, "its name");
		is_str(v.section, want[i].section, "its section");
		ok(v.offset == want[i].offset && v.size == want[i].size, "its place");
	}
	ok(!rs_cubin_next_var(&c, &cursor, &v), "no constant, no shared memory");
	free(image);
}

/* For its flags alone: the image is gone. */
static int open_flags(struct cubin_build *b, struct rs_cubin *ret)
{
	uint8_t *image;
	int r = open_exact(b, &image, ret);

	free(image);
	return r;
}

static void test_flags(void)
{
	struct cubin_build b;
	struct rs_cubin c;

	cubin_begin(&b);
	variables(&b);
	cubin_symbol(&b, "malloc", STB_GLOBAL, STT_FUNC, SHN_UNDEF, 0, 0);
	ok(!open_flags(&b, &c) && c.calls_out, "malloc");
	cubin_begin(&b);
	cubin_section(&b, ".nv.global", SHT_NOBITS, CUBIN_DATA, NULL, 4);
	ok(!open_flags(&b, &c) && c.nameless, "a variable without a symbol");
	cubin_begin(&b);
	for (int i = 0; i <= RS_CUBIN_DATA_SECTIONS; i++)
		cubin_symbol(&b, "x", STB_GLOBAL, STT_OBJECT,
			     cubin_section(&b, ".nv.global", SHT_NOBITS, CUBIN_DATA, NULL, 4), 0,
			     4);
	ok(!open_flags(&b, &c) && c.nameless, "more sections than are looked at");
	cubin_begin(&b);
	b.h.e_type = ET_REL;
	ok(!open_flags(&b, &c) && c.relocatable, "relocatable");
}

/* __global__ void plain(int *p, char c, struct { double a; int b; char c[13]; } s, const float *q) */
static void plain(struct cubin_info *i)
{
	cubin_sized(i, 0x37, "\202\0\0", 4);
	cubin_param(i, 3, 48, 8);
	cubin_param(i, 2, 16, 32);
	cubin_param(i, 1, 8, 1);
	cubin_param(i, 0, 0, 8);
	cubin_half(i, 3, 0x1b, 255);
	cubin_half(i, 2, 0x4c, 1);
	cubin_half(i, 1, 0x2a, 0);
	cubin_param_size(i, 56);
}

static void test_kernels(void)
{
	static const struct rs_cubin_param want[] = {{0, 8}, {8, 1}, {16, 32}, {48, 8}};
	struct cubin_info info = {.n = 0}, large = {.n = 0}, none = {.n = 0};
	struct rs_cubin_param p[4] = {{0, 0}};
	struct rs_cubin_kernel k;
	struct cubin_build b;
	struct rs_cubin c;
	uint64_t cursor = 0;
	uint8_t *image;

	plain(&info);
	cubin_param_v2(&large, 1, 20000, 8);
	cubin_param_v2(&large, 0, 0, 20000);
	cubin_param_size(&large, 20008);
	cubin_half(&large, 2, 0x16, 0);
	cubin_half(&none, 3, 0x1b, 255);
	cubin_half(&none, 1, 0x1f, 0);
	cubin_begin(&b);
	cubin_section(&b, ".nv.info", CUBIN_INFO, 0, &info, 0);
	cubin_section(&b, ".nv.info.plain", CUBIN_INFO, SHF_INFO_LINK, info.data, info.n);
	cubin_section(&b, ".nv.info.large", CUBIN_INFO, SHF_INFO_LINK, large.data, large.n);
	cubin_section(&b, ".nv.info.none", CUBIN_INFO, SHF_INFO_LINK, none.data, none.n);
	ok(!open_exact(&b, &image, &c), "opens");
	ok(rs_cubin_next_kernel(&c, &cursor, &k) == 1, "a kernel");
	is_str(k.name, "plain", "its name");
	ok(k.nparams == 4 && k.param_bytes == 56, "four parameters");
	ok(!rs_cubin_params(&k, p) && !memcmp(p, want, sizeof(p)), "where they are");
	ok(!k.images && !k.launches, "no texture, no launch");
	ok(rs_cubin_next_kernel(&c, &cursor, &k) == 1 && !strcmp(k.name, "large"), "the next");
	ok(k.nparams == 2 && !rs_cubin_params(&k, p), "large parameters");
	ok(!p[0].offset && p[0].size == 20000 && p[1].offset == 20000 && p[1].size == 8,
	   "are where they are");
	ok(k.images && !k.launches, "a surface reference");
	ok(rs_cubin_next_kernel(&c, &cursor, &k) == 1 && !strcmp(k.name, "none"), "the last");
	ok(!k.nparams && !k.param_bytes && !rs_cubin_params(&k, p), "has no parameters");
	ok(!k.images && k.launches, "and launches others");
	ok(!rs_cubin_next_kernel(&c, &cursor, &k), "no more");
	free(image);
}

/* What rs_cubin_params() says of a kernel with that .nv.info. */
static int params_of(const struct cubin_info *info)
{
	struct rs_cubin_param p[64] = {{0, 0}};
	struct rs_cubin_kernel k;
	struct cubin_build b;
	uint64_t cursor = 0;
	struct rs_cubin c;
	uint8_t *image;
	size_t n;
	int r;

	cubin_begin(&b);
	cubin_section(&b, ".nv.info.k", CUBIN_INFO, 0, info->data, info->n);
	image = cubin_end(&b, &n);
	r = rs_cubin_open(image, n, &c);
	if (!r)
		r = rs_cubin_next_kernel(&c, &cursor, &k) == 1 ? rs_cubin_params(&k, p) : -ENOENT;
	free(image);
	return r;
}

static void test_bad_layouts(void)
{
	struct cubin_info i;

#define LAYOUT(want, what, ...)                                                                    \
	do {                                                                                       \
		i.n = 0;                                                                           \
		__VA_ARGS__;                                                                       \
		ok(params_of(&i) == (want), what);                                                 \
	} while (0)
	LAYOUT(0, "good", plain(&i));
	LAYOUT(-ENODATA, "nothing", (void)0);
	LAYOUT(-ENODATA, "one ordinal missing", cubin_param(&i, 1, 8, 8), cubin_param_size(&i, 16));
	LAYOUT(-ENODATA, "one twice", cubin_param(&i, 0, 0, 8), cubin_param(&i, 0, 8, 8),
	       cubin_param_size(&i, 16));
	LAYOUT(-ENODATA, "a size of 0", cubin_param(&i, 0, 0, 0), cubin_param_size(&i, 0));
	LAYOUT(-ENODATA, "less than all bytes", cubin_param(&i, 0, 0, 8), cubin_param_size(&i, 16));
	LAYOUT(-ENODATA, "more than all bytes", cubin_param(&i, 0, 8, 8), cubin_param_size(&i, 8));
	LAYOUT(-ENODATA, "no size of all", cubin_param(&i, 0, 0, 8));
	LAYOUT(-ENODATA, "a size, but no parameters", cubin_param_size(&i, 8));
	LAYOUT(-ENODATA, "two sizes", cubin_param(&i, 0, 0, 8), cubin_half(&i, 3, 0x19, 8),
	       cubin_sized(&i, 0x0a, "\0\0\0\0\0\0\020", 8));
	LAYOUT(-ENODATA, "another record's format", cubin_param_size(&i, 8),
	       cubin_sized(&i, 0x17, "", 0));
	LAYOUT(-ENODATA, "an unknown format", plain(&i), cubin_half(&i, 5, 1, 0));
	LAYOUT(-ENODATA, "half a record", plain(&i), cubin_put(&i, "\1", 2));
	LAYOUT(-ENODATA, "a value beyond the end", plain(&i), cubin_half(&i, 4, 0x1c, 4));
}

/* A good image with a header changed, or cut. */
static void test_bad_images(void)
{
	struct cubin_build b;
	struct rs_cubin c;
	uint8_t *image;
	size_t n;

#define BAD(want, what, ...)                                                                       \
	do {                                                                                       \
		cubin_begin(&b);                                                                   \
		variables(&b);                                                                     \
		__VA_ARGS__;                                                                       \
		image = cubin_end(&b, &n);                                                         \
		ok(rs_cubin_open(image, n, &c) == (want), what);                                   \
		free(image);                                                                       \
	} while (0)
	BAD(0, "good", (void)0);
	BAD(-ENOTSUP, "another machine", b.h.e_machine = EM_X86_64);
	BAD(-ENOTSUP, "32 bits", b.h.e_ident[EI_CLASS] = ELFCLASS32);
	BAD(-ENOTSUP, "big endian", b.h.e_ident[EI_DATA] = ELFDATA2MSB);
	BAD(-EINVAL, "section headers of another size", b.h.e_shentsize = 40);
	BAD(-EINVAL, "no section of names", b.h.e_shstrndx = 60);
	BAD(-EINVAL, "names that are none", b.h.e_shstrndx = 3);
	BAD(-EINVAL, "strings without an end", b.content[2] = ".", b.strings.n = 1);
	BAD(-EINVAL, "strings nowhere", b.section[3].sh_link = 60);
	BAD(-EINVAL, "symbols of another size", b.section[3].sh_entsize = 16);
	BAD(-EINVAL, "two symbol tables", cubin_section(&b, ".symtab", SHT_SYMTAB, 0, b.symbol, 24);
	    b.section[9].sh_entsize = 24);
	BAD(0, "a symbol of no section, without a name",
	    cubin_symbol(&b, "x", STB_GLOBAL, STT_OBJECT, 60, 0, 4);
	    b.symbol[b.nsymbols - 1].st_name = 99999);

	cubin_begin(&b);
	variables(&b);
	image = cubin_end(&b, &n);
	for (size_t cut = 0; cut < n; cut++) {
		uint8_t *part = malloc(cut + 1);
		int r;

		memcpy(part + 1, image, cut); /* not aligned, for the sanitizers */
		r = rs_cubin_open(part + 1, cut, &c);
		if (r != -EINVAL)
			ok(0, "cut to %zu bytes: %d", cut, r);
		free(part);
	}
	ok(1, "cut anywhere, it is refused");
	image[1] = 'e';
	is_u64(rs_cubin_size(image), 0, "no ELF has no size");
	free(image);
	is_u64(rs_cubin_size("\177ELF\1"), 0, "nor has one of 32 bits, however short");
}

int main(void)
{
	test_variables();
	test_flags();
	test_kernels();
	test_bad_layouts();
	test_bad_images();
	return tap_done();
}
