/* SPDX-License-Identifier: MIT */
/*
 * The shared memory's layout: the list of fields tiles every struct, so that no field is left out of the digest; and an
 * area of another size, version or layout is refused.
 */
#include "tracker/wire_layout.h"

#include <errno.h>
#include <sys/mman.h>

#include "tests/tap.h"

#define S(type)                                                                                    \
	{                                                                                          \
#type, sizeof(struct type)                                                         \
	}

static void test_tiles(void)
{
	static const struct {
		const char *name;
		uint64_t bytes;
	} structs[] = {S(rs_cost_time),	  S(rs_cost),	   S(rs_cost_share), S(rs_cost_rate),
		       S(rs_plan_entry),  S(rs_plan_head), S(rs_wire_ring),  S(rs_wire_client),
		       S(rs_wire_record), S(rs_wire_plan), S(rs_wire)};
	unsigned rows = 0;

	for (unsigned s = 0; s < sizeof(structs) / sizeof(*structs); s++) {
		uint64_t at = 0;
		int tiled = 1;

		for (unsigned i = 0; i < rs_wire_nfields; i++) {
			const struct rs_wire_field *f = &rs_wire_fields[i];

			if (strcmp(f->of, structs[s].name))
				continue;
			if (f->offset != at) {
				tap_diag("%s.%s at %" PRIu64 ", not %" PRIu64, f->of, f->name,
					 f->offset, at);
				tiled = 0;
			}
			at = f->offset + f->bytes;
			rows++;
		}
		/* What alignment adds at the end of the whole is nobody's. */
		ok(tiled && at == structs[s].bytes, "%s: its fields are listed, without a gap",
		   structs[s].name);
		if (at != structs[s].bytes)
			tap_diag("up to %" PRIu64 " of %" PRIu64, at, structs[s].bytes);
	}
	is_u64(rows, rs_wire_nfields, "no row belongs to another struct");
}

static void refused(const struct rs_wire *w, uint64_t bytes, const char *what)
{
	const char *why = NULL;
	int r = rs_wire_check(w, bytes, &why);

	ok(r == -EPROTO && why && *why, "refused: %s (%s)", what, why ? why : "?");
}

int main(void)
{
	struct rs_wire *w =
		mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const char *why = "untouched";

	test_tiles();
	rs_wire_init(w, 4711);
	ok(!rs_wire_check(w, sizeof(*w), &why), "an area as the planner makes it is understood");
	is_str(why, "untouched", "and there is no reason not to");
	is_u64(w->planner_pid, 4711, "the planner's process");
	refused(w, sizeof(*w) - 1, "one byte less");
	refused(w, sizeof(*w) + 4096, "a page more");
	refused(w, 0, "nothing");
	refused(NULL, 8, "a piece that cannot be read");
	w->magic ^= 1;
	refused(w, sizeof(*w), "another magic number");
	w->magic ^= 1;
	w->major++;
	refused(w, sizeof(*w), "another major version");
	w->major--;
	w->layout++;
	refused(w, sizeof(*w), "another layout");
	w->layout--;
	w->bytes--;
	refused(w, sizeof(*w), "another size in its head");
	w->bytes++;
	w->minor++;
	ok(!rs_wire_check(w, sizeof(*w), &why), "another minor version of the same layout will do");
	return tap_done();
}
