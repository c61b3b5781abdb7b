/* SPDX-License-Identifier: MIT */
/* The memory of random programs (random_program.h): how the engine knows it, and its twin in the sequential model. */
#ifndef TESTS_RANDOM_MEMORY_H
#define TESTS_RANDOM_MEMORY_H

#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/random_work.h"
#include "tracker/engine.h"

static struct rs_engine *eng;

/* A buffer on the device and its twin in the sequential model. */
struct buf {
	uint8_t *dev, *model;
	uint8_t *alias; /* the same bytes; or NULL */
	int whole;	/* a mapping of its own */
	int block;	/* in an allocation with others, given out by the program's own allocator */
	uint64_t bytes;
	int declared, in_use;
	uint64_t last_write_event, read_event[FAKE_QUEUES];
};

/* Two backings side by side, mapped at two addresses. */
static void map_buffer(struct buf *b, unsigned id, int large)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), most = large ? 50 : 2;
	uint64_t h = 1000 + 2 * id, first = page * (1 + rnd((uint32_t)most));
	uint64_t rest = page * (1 + rnd((uint32_t)most));
	int fd = memfd_create("state", 0), one;
	uint8_t **at[] = {&b->dev, &b->alias};

	b->bytes = first + rest;
	if (fd < 0 || ftruncate(fd, (off_t)b->bytes))
		exit(2);
	/* one backing mapped in two pieces, or one for each */
	one = (int)rnd(2);
	rs_engine_backing(eng, h, one ? b->bytes : first, RS_ALLOC_DEVICE);
	rs_engine_backing(eng, h + 1, rest, RS_ALLOC_DEVICE);
	for (unsigned i = 0; i < 2; i++) {
		uint64_t p =
			(uint64_t)mmap(NULL, b->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		rs_engine_reserve(eng, p, b->bytes);
		rs_engine_map(eng, p, first, h, 0);
		rs_engine_map(eng, p + first, rest, one ? h : h + 1, one ? first : 0);
		*at[i] = (uint8_t *)p;
	}
	order_alias((uint64_t)b->alias, b->bytes, (uint64_t)b->dev);
	rs_engine_backing_release(eng, h);
	rs_engine_backing_release(eng, h + 1);
	close(fd);
}

/* A backing with one mapping, of all of it: what can be remapped. */
static void map_whole(struct buf *b, unsigned id, int large)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), h = 1000 + id;

	b->bytes = page * (1 + rnd(large ? 100 : 3));
	b->whole = 1;
	b->dev = fake_map(b->bytes);
	rs_engine_backing(eng, h, b->bytes, RS_ALLOC_DEVICE);
	rs_engine_map(eng, (uint64_t)b->dev, b->bytes, h, 0);
}

/* What the program's own allocator has given out: at the memory of `pool`, which stays until the next program. */
static uint8_t *pool;

static void make_pool(uint64_t bytes)
{
	free(pool);
	pool = malloc(bytes);
	rs_engine_alloc(eng, NULL, (struct rs_queue){.ctx = 1}, (uint64_t)pool, bytes,
			RS_ALLOC_DEVICE);
}

static void give(const struct buf *b)
{
	if (b->block && rs_engine_suballoc(eng, (uint64_t)b->dev, b->bytes))
		exit(2);
}

static void take(const struct buf *b)
{
	if (b->block && rs_engine_subfree(eng, (uint64_t)b->dev))
		exit(2);
}

static void free_buffer(struct buf *b)
{
	if (b->block) {
		; /* goes with its pool */
	} else if (b->whole) {
		fake_unmap(b->dev);
	} else if (b->alias) {
		munmap(b->alias, b->bytes);
		munmap(b->dev, b->bytes);
	} else {
		free(b->dev);
	}
	free(b->model);
}

#endif
