/* SPDX-License-Identifier: MIT */
/*
 * See arrays.h. One list, for arrays are few and rare; the two ways in are hashed.
 */
#include "shim/arrays.h"

#include <pthread.h>
#include <stdlib.h>

#include "shim/handles.h"

#define RANGE_ALIGN 4096u

struct entry {
	struct rs_array a;
	uint64_t owner, ctx;
	struct entry *next, **link;
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rs_handles by_handle, by_base;
static struct entry *arrays;
static uint64_t next_base = RS_ARRAY_BASE;

/* Bytes of one channel, 0: unknown layout. */
static unsigned channel_bytes(CUarray_format format)
{
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
	case CU_AD_FORMAT_UNORM_INT8X1:
	case CU_AD_FORMAT_UNORM_INT8X2:
	case CU_AD_FORMAT_UNORM_INT8X4:
	case CU_AD_FORMAT_SNORM_INT8X1:
	case CU_AD_FORMAT_SNORM_INT8X2:
	case CU_AD_FORMAT_SNORM_INT8X4:
		return 1;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
	case CU_AD_FORMAT_UNORM_INT16X1:
	case CU_AD_FORMAT_UNORM_INT16X2:
	case CU_AD_FORMAT_UNORM_INT16X4:
	case CU_AD_FORMAT_SNORM_INT16X1:
	case CU_AD_FORMAT_SNORM_INT16X2:
	case CU_AD_FORMAT_SNORM_INT16X4:
		return 2;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		return 4;
	default:
		return 0;
	}
}

/* A dimension that an array does not have is 0 there and 1 in a copy. */
static uint64_t extent(size_t n)
{
	return n ? n : 1;
}

static int describe(CUarray handle, struct rs_array *a)
{
	CUDA_ARRAY3D_DESCRIPTOR d = {0};

	if (rs_real.cuArray3DGetDescriptor_v2(&d, handle) != CUDA_SUCCESS)
		return -ENOTSUP;
	*a = (struct rs_array){.handle = handle,
			       .element = (uint64_t)channel_bytes(d.Format) * d.NumChannels,
			       .rows = extent(d.Height),
			       .layers = extent(d.Depth)};
	a->row = a->element * d.Width;
	if (!a->row || __builtin_mul_overflow(a->row, a->rows * a->layers, &a->bytes) ||
	    a->bytes >= RS_ARRAY_BASE >> 8)
		return -ENOTSUP;
	return 0;
}

static struct entry *entry_of(const struct rs_handles *way, const void *key)
{
	return rs_handles_find(way, key);
}

static const void *base_key(uint64_t base)
{
	return (const void *)(uintptr_t)base;
}

static int find(const struct rs_handles *way, const void *key, struct rs_array *ret)
{
	const struct entry *e;

	pthread_mutex_lock(&table_lock);
	e = entry_of(way, key);
	if (e)
		*ret = e->a;
	pthread_mutex_unlock(&table_lock);
	return e != NULL;
}

int rs_arrays_find(CUarray handle, struct rs_array *ret)
{
	return find(&by_handle, handle, ret);
}

int rs_arrays_at(uint64_t base, struct rs_array *ret)
{
	return find(&by_base, base_key(base), ret);
}

/* table_lock held */
static void drop(struct entry *e)
{
	if (entry_of(&by_handle, e->a.handle) == e)
		rs_handles_set(&by_handle, e->a.handle, NULL);
	rs_handles_set(&by_base, base_key(e->a.base), NULL);
	*e->link = e->next;
	if (e->next)
		e->next->link = e->link;
	free(e);
}

/* table_lock held. A handle that is known already was destroyed unseen. */
static int enter(struct entry *e)
{
	struct entry *old = entry_of(&by_handle, e->a.handle);

	if (old)
		drop(old);
	e->a.base = next_base;
	e->next = arrays;
	e->link = &arrays;
	if (rs_handles_set(&by_handle, e->a.handle, e))
		return -ENOMEM;
	if (rs_handles_set(&by_base, base_key(e->a.base), e)) {
		rs_handles_set(&by_handle, e->a.handle, NULL);
		return -ENOMEM;
	}
	if (arrays)
		arrays->link = &e->next;
	arrays = e;
	next_base += (e->a.bytes + 2 * RANGE_ALIGN - 1) & ~(uint64_t)(RANGE_ALIGN - 1);
	return 0;
}

int rs_arrays_add(CUarray handle, uint64_t owner, uint64_t ctx, struct rs_array *ret)
{
	struct rs_array a;
	struct entry *e;
	int err = describe(handle, &a);

	if (err)
		return err;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->a = a;
	e->owner = owner;
	e->ctx = ctx;
	pthread_mutex_lock(&table_lock);
	err = enter(e);
	if (!err)
		*ret = e->a;
	pthread_mutex_unlock(&table_lock);
	if (err)
		free(e);
	return err;
}

void rs_arrays_remove(CUarray handle)
{
	struct entry *e;

	pthread_mutex_lock(&table_lock);
	e = entry_of(&by_handle, handle);
	if (e)
		drop(e);
	pthread_mutex_unlock(&table_lock);
}

void rs_arrays_leaving(CUarray handle, struct rs_alloc *leaving)
{
	struct entry *e;

	pthread_mutex_lock(&table_lock);
	e = entry_of(&by_handle, handle);
	if (e)
		e->a.leaving = leaving;
	pthread_mutex_unlock(&table_lock);
}

int rs_arrays_owned(uint64_t owner, uint64_t after, struct rs_array *ret)
{
	const struct entry *found = NULL;

	pthread_mutex_lock(&table_lock);
	for (const struct entry *e = arrays; e; e = e->next)
		if (e->owner == owner && e->a.base > after && (!found || e->a.base < found->a.base))
			found = e;
	if (found)
		*ret = found->a;
	pthread_mutex_unlock(&table_lock);
	return found != NULL;
}

void rs_arrays_ctx_destroy(uint64_t ctx)
{
	pthread_mutex_lock(&table_lock);
	for (struct entry *e = arrays, *next; e; e = next) {
		next = e->next;
		if (e->ctx == ctx)
			drop(e);
	}
	pthread_mutex_unlock(&table_lock);
}
