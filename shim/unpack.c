/* SPDX-License-Identifier: MIT */
/*
 * Decompression of fat binary entries by libraries that the process may have: zstd and LZ4, loaded
 * when first needed and private to us. Without them an entry stays closed.
 * Callers: image.c. Locks: one mutex around loading.
 */
#include "shim/image.h"
#include "shim/log.h"
#include "tracker/fatbin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES (64u << 20)

typedef size_t zstd_fn(void *dst, size_t dst_size, const void *src, size_t src_size);
typedef int lz4_fn(const char *src, char *dst, int src_size, int dst_size);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *load(void **cache, const char *library, const char *symbol)
{
	void *handle;

	pthread_mutex_lock(&lock);
	if (!*cache) {
		handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
		*cache = handle ? rs_doors_dlsym(handle, symbol) : NULL;
		if (!*cache) {
			rs_log(RS_LOG_INFO, "%s is missing: compressed images stay closed",
			       library);
			*cache = (void *)-1;
		}
	}
	pthread_mutex_unlock(&lock);
	return *cache == (void *)-1 ? NULL : *cache;
}

static int zstd(const struct rs_fatbin_entry *e, char *out)
{
	static void *cache;
	zstd_fn *decompress = (zstd_fn *)load(&cache, "libzstd.so.1", "ZSTD_decompress");

	return decompress && decompress(out, e->raw_size, e->data, e->size) == e->raw_size;
}

static int lz4(const struct rs_fatbin_entry *e, char *out)
{
	static void *cache;
	lz4_fn *decompress = (lz4_fn *)load(&cache, "liblz4.so.1", "LZ4_decompress_safe");

	return decompress && decompress((const char *)e->data, out, (int)e->size,
					(int)e->raw_size) == (int)e->raw_size;
}

char *rs_unpack(const struct rs_fatbin_entry *entry)
{
	uint64_t bytes = entry->codec == RS_FATBIN_RAW ? entry->size : entry->raw_size;
	char *out;
	int ok = 0;

	if (bytes > MOST_BYTES || entry->size > MOST_BYTES)
		return NULL;
	out = malloc(bytes + 1);
	if (!out)
		return NULL;
	switch (entry->codec) {
	case RS_FATBIN_RAW:
		memcpy(out, entry->data, bytes);
		ok = 1;
		break;
	case RS_FATBIN_ZSTD:
		ok = zstd(entry, out);
		break;
	case RS_FATBIN_LZ4:
		ok = lz4(entry, out);
		break;
	case RS_FATBIN_CODEC_UNKNOWN:
		break;
	}
	out[bytes] = '\0';
	if (!ok) {
		free(out);
		return NULL;
	}
	return out;
}
