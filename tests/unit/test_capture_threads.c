/* SPDX-License-Identifier: MIT */
/*
 * Several threads in one stream capture. Nothing waits there and nothing steps aside (views.c): where they are at the same
 * bytes, launches are not vouched for. Two threads of the program are played by one.
 */
#include "tests/unit/capture_dev.h"
#include "tracker/capturing.h"

#define N 8u

static struct rs_thread *one, *two;
static uint32_t *s, *t, *y, *z;

/* --- memory that is not there ----------------------------------------------------------------------- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define NO_CALLOC 1 /* they have theirs */
#else
#define NO_CALLOC 0
void *__libc_calloc(size_t n, size_t bytes);
static size_t refused;

void *calloc(size_t n, size_t bytes)
{
	return refused && bytes == refused ? NULL : __libc_calloc(n, bytes);
}
#endif

/* --- a program -------------------------------------------------------------------------------------- */

/* y = 3 s */
static void triple(struct rig_arg *a)
{
	for (unsigned i = 0; i < a[0].n; i++)
		a[1].p[i] = 3 * a[0].p[i];
}

static void add1(struct rig_arg *a)
{
	for (unsigned i = 0; i < a[0].n; i++)
		a[0].p[i]++;
}

/* The call is what the other thread does. */
#define OTHER_THREAD(call)                                                                         \
	do {                                                                                       \
		thr = two;                                                                         \
		call;                                                                              \
		thr = one;                                                                         \
	} while (0)

static void begin(void)
{
	cap.meanwhile = NULL;
	start(RS_MODE_PRESERVE);
	one = thr;
	two = rs_thread_create(eng);
	s = words(N);
	t = words(N);
	y = words(N);
	z = words(N);
	rs_engine_region(eng, (uint64_t)s, N * 4, "state:s");
	rs_engine_region(eng, (uint64_t)t, N * 4, "state:t");
	for (unsigned i = 0; i < N; i++)
		s[i] = t[i] = 10;
	begin_capture();
}

static void forward(const char *text, uint32_t *state, uint32_t *product)
{
	PUSH(text);
	CAPTURED(triple, R_(state, N), W_(product, N));
	POP();
}

/* One launch: all replays of it are matches, or none. */
static void judged(unsigned replays, int vouched, const char *what)
{
	struct rs_capture *c = end_capture(1);
	const char *text;

	launch(c, 3, 1);
	fake_drain();
	text = rig_read("records.jsonl");
	ok(count(text, "\"outcome\":\"match\"") == (vouched ? replays : 0), "%s: matches", what);
	ok(count(text, "RS030") == (vouched ? 0 : replays), "%s: as a capture's", what);
	rs_capture_unref(c);
	rs_thread_destroy(two);
	rig_stop();
}

/* --- at the same bytes ------------------------------------------------------------------------------ */

static void test_others_write(void)
{
	begin();
	forward("forward:f", s, y);
	CAPTURED(add1, RW_(s, N));
	PUSH("replay:f");
	CAPTURED(triple, R_(s, N), W_(z, N));
	OTHER_THREAD(CAPTURED(add1, RW_(s, N)));
	POP();
	judged(1, 0, "what another thread writes where a replay is shown something");
}

static void test_others_read(void)
{
	begin();
	forward("forward:f", s, y);
	CAPTURED(add1, RW_(s, N));
	PUSH("replay:f");
	CAPTURED(triple, R_(s, N), W_(z, N));
	OTHER_THREAD(CAPTURED(triple, R_(s, N), W_(t, N)));
	POP();
	judged(1, 0, "what another thread reads where a replay is shown something");
}

/* Two replays, which are shown different bytes of the same state. */
static void test_two_replays(void)
{
	begin();
	PUSH("forward:f");
	CAPTURED(triple, R_(s, N), W_(y, N));
	CAPTURED(triple, R_(s, N), W_(y, N));
	POP();
	CAPTURED(add1, RW_(s, N));
	forward("forward:g", s, t);
	CAPTURED(add1, RW_(s, N));
	PUSH("replay:f");
	CAPTURED(triple, R_(s, N), W_(z, N));
	OTHER_THREAD(PUSH("replay:g"));
	OTHER_THREAD(CAPTURED(triple, R_(s, N), W_(t, N)));
	CAPTURED(triple, R_(s, N), W_(z, N));
	OTHER_THREAD(POP());
	POP();
	judged(2, 0, "two replays at the same bytes");
}

/* The replay has found the program's own bytes, and will look at them once more. */
static void test_overwritten_beside(void)
{
	begin();
	PUSH("forward:f");
	CAPTURED(triple, R_(s, N), W_(y, N));
	CAPTURED(triple, R_(s, N), W_(y, N));
	POP();
	PUSH("replay:f");
	CAPTURED(triple, R_(s, N), W_(z, N));
	OTHER_THREAD(CAPTURED(add1, RW_(s, N)));
	CAPTURED(triple, R_(s, N), W_(z, N));
	POP();
	judged(1, 0, "what another thread writes where a replay has read");
}

/* As a call that may do anything. */
static void test_anything_beside(void)
{
	begin();
	forward("forward:f", s, y);
	PUSH("replay:f");
	CAPTURED(triple, R_(s, N), W_(z, N));
	OTHER_THREAD(captured_q(ORIGIN, "add1", add1, 1, (struct rig_arg[]){RW_(t, N)}, 1));
	POP();
	judged(1, 0, "a call of another thread that may do anything");
}

static void test_apart(void)
{
	begin();
	forward("forward:f", s, y);
	forward("forward:g", t, y);
	CAPTURED(add1, RW_(s, N));
	CAPTURED(add1, RW_(t, N));
	PUSH("replay:f");
	CAPTURED(triple, R_(s, N), W_(y, N));
	OTHER_THREAD(PUSH("replay:g"));
	OTHER_THREAD(CAPTURED(triple, R_(t, N), W_(z, N)));
	CAPTURED(triple, R_(s, N), W_(y, N));
	OTHER_THREAD(POP());
	POP();
	judged(2, 1, "two replays at different bytes");
}

/* --- in each other's calls --------------------------------------------------------------------------- */

/* Described, but in the graph only when the replay is shown something there. */
static void test_under_way(uint32_t *(*state)(void), int vouched, const char *what)
{
	struct rs_access x;
	struct rs_call call = {.name = "reader",
			       .ident = 7,
			       .kind = RS_CALL_KERNEL,
			       .q = RIG_Q(ORIGIN),
			       .access = &x,
			       .naccess = 1,
			       .capturing = 1};

	begin();
	forward("forward:f", s, y);
	forward("forward:g", t, y);
	CAPTURED(add1, RW_(s, N));
	CAPTURED(add1, RW_(t, N));
	x = (struct rs_access){.addr = (uint64_t)state(), .bytes = N * 4, .dir = RS_READ};
	rs_engine_before(eng, two, &call);
	PUSH("replay:f");
	CAPTURED(triple, R_(s, N), W_(z, N));
	POP();
	rs_engine_after(eng, two, &call, 1);
	/* now it is over */
	PUSH("replay:g");
	CAPTURED(triple, R_(t, N), W_(z, N));
	POP();
	judged(2, vouched, what);
}

static uint32_t *same(void)
{
	return s;
}

static uint32_t *another(void)
{
	return t;
}

/* While the replay's end puts back what it has planned to. */
static void read_meanwhile(void)
{
	OTHER_THREAD(CAPTURED(triple, R_(s, N), W_(t, N)));
}

static void test_while_put_back(void)
{
	begin();
	forward("forward:f", s, y);
	CAPTURED(add1, RW_(s, N));
	PUSH("replay:f");
	CAPTURED(triple, R_(s, N), W_(z, N));
	cap.meanwhile = read_meanwhile;
	POP();
	ok(!cap.meanwhile, "there was something to put back");
	judged(1, 0, "a call while a replay's bytes are put back");
}

/* --- unseen ------------------------------------------------------------------------------------------ */

static void test_no_seat(void)
{
#if !NO_CALLOC
	begin();
	forward("forward:f", s, y);
	refused = sizeof(struct rs_thread);
	OTHER_THREAD(CAPTURED(add1, RW_(s, N)));
	refused = 0;
	PUSH("replay:f");
	CAPTURED(triple, R_(s, N), W_(z, N));
	POP();
	judged(1, 0, "a call that could not be followed");
#endif
}

int main(void)
{
	test_others_write();
	test_others_read();
	test_two_replays();
	test_overwritten_beside();
	test_anything_beside();
	test_apart();
	test_under_way(same, 0, "a call under way at the same bytes");
	test_under_way(another, 1, "a call under way elsewhere");
	test_while_put_back();
	test_no_seat();
	return tap_done();
}
