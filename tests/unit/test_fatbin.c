/* SPDX-License-Identifier: MIT */
/*
 * Images and fat binaries, built by hand after the layout that nvcc writes.
 */
#include "tests/tap.h"
#include "tracker/fatbin.h"

#include <errno.h>

struct __attribute__((packed)) header {
	uint32_t magic;
	uint16_t version, header_size;
	uint64_t size;
};

struct __attribute__((packed)) entry {
	uint16_t kind, one;
	uint32_t header_size;
	uint64_t padded;
	uint32_t compressed, options;
	uint16_t minor, major;
	uint32_t sm, name_offset, name_len;
	uint64_t flags, reserved, raw;
};

struct wrapper {
	uint32_t magic, version;
	const void *data, *list;
};

static struct __attribute__((packed)) image {
	struct header h;
	struct entry elf;
	uint8_t elf_data[16];
	struct entry ptx;
	uint8_t ptx_options[16];
	uint8_t ptx_data[24];
	struct entry lto;
	uint8_t lto_data[8];
} good = {
	{0xba55ed50, 1, 16, sizeof(struct image) - sizeof(struct header)},
	{2, 0x101, 64, 16, 0, 0, 8, 1, 75, 0, 0, 0x11, 0, 0},
	{1, 2, 3},
	{1, 0x101, 80, 24, 21, 64, 0, 9, 90, 0, 0, 0x8011, 0, 975},
	{0},
	{0x28, 0xb5},
	{8, 0x101, 64, 8, 5, 0, 0, 9, 90, 0, 0, 0x18011, 0, 40},
	{0xdc},
};

static enum rs_image_kind kind_of(const char *text)
{
	size_t n = strlen(text) + 1;
	char *exact = malloc(n); /* of just that size, for the address sanitizer */
	const uint8_t *fatbin = NULL;
	enum rs_image_kind kind;

	memcpy(exact, text, n);
	kind = rs_image_identify(exact, &fatbin);
	free(exact);
	return fatbin ? RS_IMAGE_FATBIN : kind;
}

static void test_text(void)
{
	is_u64(kind_of(".version 9.0\n"), RS_IMAGE_PTX, "PTX");
	is_u64(kind_of("\n\n//\n// NVVM\n/* x */\t.version 9.0"), RS_IMAGE_PTX, "behind comments");
	is_u64(kind_of("\177ELF\2"), RS_IMAGE_CUBIN, "cubin");
	is_u64(kind_of(""), RS_IMAGE_UNKNOWN, "empty");
	is_u64(kind_of("P"), RS_IMAGE_UNKNOWN, "one byte of the fatbin's magic number");
	is_u64(kind_of("\177EL"), RS_IMAGE_UNKNOWN, "short ELF");
	is_u64(kind_of("/* never ends"), RS_IMAGE_UNKNOWN, "open comment");
	is_u64(kind_of("/"), RS_IMAGE_UNKNOWN, "a slash");
	is_u64(kind_of("// only"), RS_IMAGE_UNKNOWN, "only a comment");
	is_u64(kind_of("."), RS_IMAGE_UNKNOWN, "a dot");
	is_u64(rs_image_identify(NULL, NULL), RS_IMAGE_UNKNOWN, "NULL");
}

static void test_wrapper(void)
{
	static struct header empty = {0xba55ed50, 1, 16, 0};
	const void *list[] = {&good, NULL}, *none[] = {NULL};
	struct wrapper w = {0x466243b1, 1, &good, NULL};
	const uint8_t *fatbin = NULL;

	is_u64(rs_image_identify(&good, &fatbin), RS_IMAGE_FATBIN, "bare fatbin");
	ok(fatbin == (const uint8_t *)&good, "is itself");
	fatbin = NULL;
	is_u64(rs_image_identify(&w, &fatbin), RS_IMAGE_FATBIN, "wrapper, version 1");
	ok(fatbin == (const uint8_t *)&good, "points at the fatbin");
	w = (struct wrapper){0x466243b1, 2, &empty, list};
	is_u64(rs_image_identify(&w, &fatbin), RS_IMAGE_FATBIN, "wrapper, version 2");
	ok(fatbin == (const uint8_t *)&good, "first fatbin of the list");
	w.list = none;
	is_u64(rs_image_identify(&w, &fatbin), RS_IMAGE_FATBIN, "empty list");
	ok(fatbin == (const uint8_t *)&empty, "falls back to the data");
	w = (struct wrapper){0x466243b1, 1, list, NULL};
	is_u64(rs_image_identify(&w, &fatbin), RS_IMAGE_UNKNOWN, "wrapper of something else");
	w.data = NULL;
	is_u64(rs_image_identify(&w, &fatbin), RS_IMAGE_UNKNOWN, "wrapper of nothing");
}

static void test_entries(void)
{
	const uint8_t *fb = (const uint8_t *)&good;
	struct rs_fatbin_entry e;
	uint64_t cursor = 0;

	ok(rs_fatbin_next(fb, &cursor, &e) == 1 && e.kind == 2 && e.sm == 75, "ELF entry");
	ok(e.codec == RS_FATBIN_RAW && e.size == 16 && e.raw_size == 16, "stored as it is");
	ok(e.data == good.elf_data, "its data");
	ok(rs_fatbin_next(fb, &cursor, &e) == 1 && e.kind == 1 && e.sm == 90, "PTX entry");
	ok(e.codec == RS_FATBIN_ZSTD && e.size == 21 && e.raw_size == 975, "zstd");
	ok(e.data == good.ptx_data, "data behind the options");
	ok(rs_fatbin_next(fb, &cursor, &e) == 1 && e.kind == 8, "LTO entry");
	is_u64(e.codec, RS_FATBIN_CODEC_UNKNOWN, "its zstd bit is not believed");
	is_u64((uint64_t)rs_fatbin_next(fb, &cursor, &e), 0, "end");
	is_u64((uint64_t)rs_fatbin_next(fb, &cursor, &e), 0, "and stays there");
}

/* The second entry's header, changed. */
static int walk(const struct image *img)
{
	struct rs_fatbin_entry e;
	uint64_t cursor = 0;
	int rc, n = 0;

	while ((rc = rs_fatbin_next((const uint8_t *)img, &cursor, &e)) == 1)
		n++;
	return rc ? rc : n;
}

static void test_bad(void)
{
	static struct image img;
	struct rs_fatbin_entry e;
	uint64_t cursor = 0;

#define BAD(change, what)                                                                          \
	do {                                                                                       \
		img = good;                                                                        \
		change;                                                                            \
		ok(walk(&img) == -EINVAL, what);                                                   \
	} while (0)
	ok(walk(&good) == 3, "three entries");
	BAD(img.h.magic++, "magic");
	BAD(img.h.version = 2, "version");
	BAD(img.h.header_size = 8, "header size");
	BAD(img.h.size -= 8, "entry longer than the image");
	BAD(img.h.size = 16 + 64 + 40, "image ends inside a header");
	BAD(img.ptx.header_size = 0, "header of no size");
	BAD(img.ptx.header_size = 0xffffffff, "header longer than the image");
	BAD(img.ptx.padded = UINT64_MAX - 40, "size that wraps");
	BAD(img.ptx.compressed = 25, "more compressed bytes than bytes");
	img = good;
	img.ptx.flags = 0x2011;
	rs_fatbin_next((const uint8_t *)&img, &cursor, &e);
	rs_fatbin_next((const uint8_t *)&img, &cursor, &e);
	is_u64(e.codec, RS_FATBIN_LZ4, "LZ4");
	cursor = 80;
	img.ptx.flags = 0x11;
	rs_fatbin_next((const uint8_t *)&img, &cursor, &e);
	is_u64(e.codec, RS_FATBIN_CODEC_UNKNOWN, "compressed, with no codec named");
}

int main(void)
{
	test_text();
	test_wrapper();
	test_entries();
	test_bad();
	return tap_done();
}
