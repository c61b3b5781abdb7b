/* SPDX-License-Identifier: MIT */
/*
 * Memory behind several addresses: what is known of the bytes does not depend on the address through which
 * they are reached, and survives remapping. Memory that others may change is compared, not restored.
 */
#include <sys/mman.h>

#include "tests/unit/engine_rig.h"

static uint64_t page;

/* n pages of shared memory at n_at addresses. */
static int shared_pages(unsigned n)
{
	int fd = memfd_create("backing", 0);

	if (fd < 0 || ftruncate(fd, (off_t)(n * page)))
		exit(2);
	return fd;
}

static uint32_t *view(int fd, uint64_t off, uint64_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)off);

	if (p == MAP_FAILED)
		exit(2);
	return p;
}

/* y = first and last word of x */
static void ends(struct rig_arg *a)
{
	a[0].p[0] = a[1].p[0] + 1000 * a[1].p[a[1].n - 1];
}

static void set7(struct rig_arg *a)
{
	a[0].p[a[0].first] = 7;
}

static struct rs_engine_stats stats(void)
{
	struct rs_engine_stats s;

	rs_engine_finish(eng);
	rs_engine_stats(eng, &s);
	return s;
}

/* The forward reads through one address, a write comes through another one. */
static void through_alias(enum rs_mode mode)
{
	int fd = shared_pages(1);
	uint32_t *a = view(fd, 0, page), *b = view(fd, 0, page), *y;

	rig_start(mode);
	y = words(1);
	rs_engine_backing(eng, 77, page, RS_ALLOC_DEVICE);
	ok(!rs_engine_map(eng, (uint64_t)a, page, 77, 0), "mapped");
	ok(!rs_engine_map(eng, (uint64_t)b, page, 77, 0), "mapped again elsewhere");
	rs_engine_region(eng, (uint64_t)b, 8, "state:shared");
	a[0] = 3;
	a[1] = 4;
	PUSH("forward:f");
	KERNEL(ends, W_(y, 1), R_(a, 2));
	POP();
	KERNEL(set7, W_(b, 1));
	PUSH("replay:f#0");
	KERNEL(ends, W_(y, 1), R_(a, 2));
	POP();
	fake_drain();
	if (mode == RS_MODE_PRESERVE) {
		is_u64(y[0], 4003, "preserve: the replay saw the old word");
		is_u64(a[0], 7, "and the new one is back");
		is_u64(stats().outcome[0], 1, "a match");
	} else {
		is_u64(stats().outcome[2], 1, "audit: a divergence");
		ok(count(rig_read("events.jsonl"), "\"name\":\"shared\""), "of the named state");
		ok(count(rig_read("events.jsonl"), "\"name\":\"set7\""), "by that writer");
	}
	rig_stop();
	munmap(a, page);
	munmap(b, page);
	close(fd);
}

/* Bytes that are unmapped after the forward, and mapped elsewhere for the replay. */
static void remapped(int anew)
{
	int fd = shared_pages(1);
	uint32_t *a = view(fd, 0, page), *b = view(fd, 0, page), *y;

	rig_start(RS_MODE_PRESERVE);
	y = words(1);
	rs_engine_backing(eng, 77, page, RS_ALLOC_DEVICE);
	rs_engine_map(eng, (uint64_t)a, page, 77, 0);
	a[0] = 3;
	a[1] = 4;
	PUSH("forward:f");
	KERNEL(ends, W_(y, 1), R_(a, 2));
	POP();
	KERNEL(set7, W_(a, 1));
	fake_drain();
	rs_engine_unmap(eng, (uint64_t)a, page);
	if (anew) { /* other memory, in the old place */
		rs_engine_backing_release(eng, 77);
		rs_engine_backing(eng, 78, page, RS_ALLOC_DEVICE);
		rs_engine_map(eng, (uint64_t)a, page, 78, 0);
		b = a;
	} else {
		rs_engine_map(eng, (uint64_t)b, page, 77, 0);
	}
	PUSH("replay:f#0");
	KERNEL(ends, W_(y, 1), R_(b, 2));
	POP();
	fake_drain();
	if (anew) {
		is_u64(b[0], 7, "other memory in the old place is left alone");
		is_u64(stats().outcome[2], 1, "and the replay made other bytes of it");
		ok(count(rig_read("records.jsonl"), "RS011"), "because its state was freed");
	} else {
		is_u64(y[0], 4003, "remapped memory is still known");
		is_u64(b[0], 7, "and put back through the new address");
		is_u64(stats().outcome[0], 1, "a match");
	}
	rig_stop();
	munmap(a, page);
	close(fd);
}

/* One buffer over two backings, each mapped in another place, too. */
static void side_by_side(void)
{
	int fd = shared_pages(2);
	uint32_t *a = view(fd, 0, 2 * page), *second = view(fd, page, page), *y;
	unsigned n = (unsigned)(2 * page / 4);

	rig_start(RS_MODE_PRESERVE);
	y = words(1);
	rs_engine_backing(eng, 1, page, RS_ALLOC_DEVICE);
	rs_engine_backing(eng, 2, page, RS_ALLOC_DEVICE);
	rs_engine_reserve(eng, (uint64_t)a, 2 * page);
	rs_engine_map(eng, (uint64_t)a, page, 1, 0);
	rs_engine_map(eng, (uint64_t)a + page, page, 2, 0);
	rs_engine_map(eng, (uint64_t)second, page, 2, 0);
	a[0] = 1;
	a[n - 1] = 2;
	PUSH("forward:f");
	KERNEL(ends, W_(y, 1), R_(a, n));
	POP();
	KERNEL(set7, {second, n / 2 - 1, 1, RS_WRITE, 0, 0});
	PUSH("replay:f#0");
	KERNEL(ends, W_(y, 1), R_(a, n));
	POP();
	fake_drain();
	is_u64(y[0], 2001, "an access over two backings sees both as they were");
	is_u64(a[n - 1], 7, "and the second one is put back");
	is_u64(stats().outcome[0], 1, "a match");
	rs_engine_unmap(eng, (uint64_t)a, 2 * page);
	is_u64(stats().live_allocs, 3, "memory lives while a handle is held");
	rs_engine_backing_release(eng, 1);
	is_u64(stats().live_allocs, 2, "and no longer");
	rs_engine_backing_release(eng, 2);
	is_u64(stats().live_allocs, 2, "or while it is mapped somewhere");
	rs_engine_unmap(eng, (uint64_t)second, page);
	is_u64(stats().live_allocs, 1, "the last mapping ends it");
	rig_stop();
	munmap(a, 2 * page);
	munmap(second, page);
	close(fd);
}

/* A write through a multicast mapping reaches all that is bound. */
static void multicast(void)
{
	int fd = shared_pages(2);
	uint32_t *a = view(fd, 0, page), *b = view(fd, page, page), *mc = view(fd, 0, page), *y;

	rig_start(RS_MODE_AUDIT);
	y = words(1);
	rs_engine_backing(eng, 1, page, RS_ALLOC_DEVICE);
	rs_engine_backing(eng, 2, page, RS_ALLOC_DEVICE);
	rs_engine_backing(eng, 3, page, RS_ALLOC_DEVICE);
	rs_engine_map(eng, (uint64_t)a, page, 1, 0);
	rs_engine_map(eng, (uint64_t)b, page, 2, 0);
	ok(!rs_engine_multicast_bind(eng, 3, 0, 1, 0, page), "bound by handle");
	ok(!rs_engine_multicast_bind(eng, 3, 0, 0, (uint64_t)b, page), "bound by address");
	ok(rs_engine_multicast_bind(eng, 3, 0, 1, page, page) < 0, "not beyond the memory's end");
	ok(rs_engine_multicast_bind(eng, 99, 0, 1, 0, page) < 0, "not to an unknown object");
	rs_engine_map(eng, (uint64_t)mc, page, 3, 0);
	PUSH("forward:f");
	KERNEL(ends, W_(y, 1), R_(b, 2));
	POP();
	KERNEL(set7, W_(mc, 1)); /* this view shows the first one's page only, as far as bytes go */
	fake_drain();
	b[0] = 7;
	PUSH("replay:f#0");
	KERNEL(ends, W_(y, 1), R_(b, 2));
	POP();
	is_u64(stats().outcome[2], 1, "a write to all is one to each");
	ok(count(rig_read("events.jsonl"), "\"name\":\"set7\""), "by that writer");
	rs_engine_multicast_unbind(eng, 3, 0, page);
	rig_stop();
	munmap(a, page);
	munmap(b, page);
	munmap(mc, page);
	close(fd);
}

/* Memory that was handed to others changes unseen: it is kept at once, compared, never restored. */
static void others(void)
{
	uint32_t *x, *y;

	rig_start(RS_MODE_PRESERVE);
	x = words(2);
	y = words(1);
	rs_engine_share(eng, (uint64_t)x);
	x[0] = 3;
	PUSH("forward:f");
	KERNEL(ends, W_(y, 1), R_(x, 2));
	POP();
	fake_drain();
	x[0] = 9; /* nobody sees that */
	PUSH("replay:f#0");
	KERNEL(ends, W_(y, 1), R_(x, 2));
	POP();
	is_u64(stats().outcome[2], 1, "an unseen change of shared memory is found");
	is_u64(x[0], 9, "and not undone");
	rig_stop();
}

/* A sample of the claims notices a writer that nobody saw. */
static void unseen_writer(void)
{
	const struct rs_engine_config config = {.mode = RS_MODE_PRESERVE, .verify = 1, .sample = 1};
	uint32_t *x, *y;

	rig_start(RS_MODE_PRESERVE);
	rs_thread_destroy(thr);
	rs_engine_destroy(eng);
	eng = rs_engine_create(&config, &fake_ops, rec);
	memset(&rig_calm, 0, sizeof(rig_calm));
	thr = rs_thread_create(eng);
	x = words(2);
	y = words(1);
	PUSH("forward:f");
	KERNEL(ends, W_(y, 1), R_(x, 2));
	POP();
	fake_drain();
	x[0] = 9;
	PUSH("replay:f#0");
	KERNEL(ends, W_(y, 1), R_(x, 2));
	POP();
	is_u64(stats().outcome[2], 1, "bytes that changed without a write are a divergence");
	ok(count(rig_read("records.jsonl"), "RS052"), "of its own kind");
	PUSH("replay:f#0");
	x[0] = 0;
	KERNEL(ends, W_(y, 1), R_(x, 2));
	POP();
	is_u64(stats().outcome[0], 1, "equal bytes are none");
	rig_stop();
}

static void bad_calls(void)
{
	uint64_t base, bytes;

	rig_start(RS_MODE_AUDIT);
	ok(rs_engine_map(eng, 0x100000, 4096, 5, 0) < 0, "an unknown handle is not mapped");
	rs_engine_backing(eng, 5, 8192, RS_ALLOC_DEVICE);
	ok(rs_engine_map(eng, 0x100000, 4096, 5, 8192) < 0, "nor bytes beyond its end");
	ok(!rs_engine_reserve(eng, 0x100000, 1 << 20), "reserved");
	ok(!rs_engine_map(eng, 0x100000, 4096, 5, 4096), "mapped");
	ok(rs_engine_map(eng, 0x100000, 4096, 5, 0) < 0, "not twice in one place");
	ok(rs_engine_lookup(eng, 0x100fff, &base, &bytes) && base == 0x100000 && bytes == 1 << 20,
	   "a look-up gives the reservation");
	ok(!rs_engine_lookup(eng, 0x101000, &base, &bytes), "but not where nothing is mapped");
	ok(!rs_engine_backing_retain(eng, 6, 0x100000), "another handle of the same memory");
	rs_engine_backing_release(eng, 5);
	ok(!rs_engine_map(eng, 0x102000, 4096, 6, 0), "which can be mapped");
	rs_engine_unmap(eng, 0x100000, 1 << 20);
	ok(!rs_engine_lookup(eng, 0x100000, &base, &bytes), "unmapped");
	rs_engine_backing_release(eng, 6);
	is_u64(stats().live_allocs, 0, "nothing is left");
	rs_engine_unreserve(eng, 0x100000);
	rs_engine_backing_release(eng, 6);
	rs_engine_share(eng, 0x100000);
	rig_stop();
}

int main(void)
{
	page = (uint64_t)sysconf(_SC_PAGESIZE);
	through_alias(RS_MODE_AUDIT);
	through_alias(RS_MODE_PRESERVE);
	remapped(0);
	remapped(1);
	side_by_side();
	multicast();
	others();
	unseen_writer();
	bad_calls();
	return tap_done();
}
