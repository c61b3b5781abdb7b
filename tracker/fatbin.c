/* SPDX-License-Identifier: MIT */
/*
 * Images handed to the driver: what they are, and the entries of a fat binary.
 *
 * Invariants: an image comes without a length, so every read is justified by what was read before
 * it: text byte by byte up to its NUL, structures only behind their magic number. Inside a fatbin
 * nothing is read beyond the size its header claims. Fields are copied out, for alignment.
 * Callers: the shim's and the simulated driver's module loading. No state, no locks.
 */
#include "tracker/fatbin.h"

#include <errno.h>
#include <string.h>

#define WRAPPER_MAGIC 0x466243b1u
#define FATBIN_MAGIC  0xba55ed50u
#define ENTRY_FIXED   64u /* bytes every entry header has */

#define FLAG_LZ4  0x2000u
#define FLAG_ZSTD 0x8000u

enum { KIND_LTO = 8 };

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

static uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static const uint8_t *get_pointer(const uint8_t *p)
{
	return (const uint8_t *)(uintptr_t)get64(p);
}

/* Compares from the front and stops at the first difference, so that a short text is not overrun. */
static int begins(const uint8_t *p, const void *with, size_t len)
{
	const uint8_t *w = with;
	size_t i;

	for (i = 0; i < len; i++)
		if (p[i] != w[i])
			return 0;
	return 1;
}

static int begins32(const uint8_t *p, uint32_t magic)
{
	return begins(p, &magic, sizeof(magic));
}

/* Blanks and comments, then a directive: every PTX text starts with .version. */
static int is_ptx(const uint8_t *p)
{
	for (;;) {
		while (*p == ' ' || (*p >= '\t' && *p <= '\r'))
			p++;
		if (p[0] == '/' && p[1] == '/') {
			while (*p && *p != '\n')
				p++;
		} else if (p[0] == '/' && p[1] == '*') {
			for (p += 2; *p && !(p[0] == '*' && p[1] == '/'); p++)
				;
			if (!*p)
				return 0;
			p += 2;
		} else {
			break;
		}
	}
	return p[0] == '.' && p[1] >= 'a' && p[1] <= 'z';
}

/* Version 1 points at a fatbin, version 2 at a NULL-terminated array of them to link together. */
static const uint8_t *unwrap(const uint8_t *wrapper)
{
	const uint8_t *data = get_pointer(wrapper + 8), *list = get_pointer(wrapper + 16);

	if (get32(wrapper + 4) == 2 && list && get_pointer(list))
		data = get_pointer(list);
	return data && begins32(data, FATBIN_MAGIC) ? data : NULL;
}

enum rs_image_kind rs_image_identify(const void *image, const uint8_t **ret_fatbin)
{
	const uint8_t *p = image, *fatbin = NULL;

	if (!p)
		return RS_IMAGE_UNKNOWN;
	if (begins32(p, WRAPPER_MAGIC))
		fatbin = unwrap(p);
	else if (begins32(p, FATBIN_MAGIC))
		fatbin = p;
	if (fatbin) {
		*ret_fatbin = fatbin;
		return RS_IMAGE_FATBIN;
	}
	if (begins(p, "\177ELF", 4))
		return RS_IMAGE_CUBIN;
	return is_ptx(p) ? RS_IMAGE_PTX : RS_IMAGE_UNKNOWN;
}

static enum rs_fatbin_codec entry_codec(uint16_t kind, uint64_t flags, uint32_t compressed)
{
	if (!compressed)
		return RS_FATBIN_RAW;
	if (kind == KIND_LTO) /* sets zstd's bit but is something else */
		return RS_FATBIN_CODEC_UNKNOWN;
	switch (flags & (FLAG_LZ4 | FLAG_ZSTD)) {
	case FLAG_LZ4:
		return RS_FATBIN_LZ4;
	case FLAG_ZSTD:
		return RS_FATBIN_ZSTD;
	default:
		return RS_FATBIN_CODEC_UNKNOWN;
	}
}

int rs_fatbin_next(const uint8_t *fatbin, uint64_t *cursor, struct rs_fatbin_entry *ret)
{
	uint64_t rest, header, padded;
	uint32_t compressed;
	const uint8_t *e;

	if (!begins32(fatbin, FATBIN_MAGIC) || get16(fatbin + 4) != 1 || get16(fatbin + 6) < 16)
		return -EINVAL;
	if (*cursor == get64(fatbin + 8))
		return 0;
	if (*cursor > get64(fatbin + 8))
		return -EINVAL;
	rest = get64(fatbin + 8) - *cursor;
	e = fatbin + get16(fatbin + 6) + *cursor;
	if (rest < ENTRY_FIXED)
		return -EINVAL;
	header = get32(e + 4);
	padded = get64(e + 8);
	compressed = get32(e + 16);
	if (header < ENTRY_FIXED || header > rest || padded > rest - header || compressed > padded)
		return -EINVAL;
	ret->kind = get16(e);
	ret->sm = get32(e + 28);
	ret->codec = entry_codec(ret->kind, get64(e + 40), compressed);
	ret->data = e + header;
	ret->size = compressed ? compressed : padded;
	ret->raw_size = compressed ? get64(e + 56) : padded;
	*cursor += header + padded;
	return 1;
}
