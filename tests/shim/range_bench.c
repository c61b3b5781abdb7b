/* SPDX-License-Identifier: MIT */
/*
 * Nanoseconds for a push and its pop, by kind of text, as `name nanoseconds` lines: the best of several loops. Built and
 * run by tests/bench/ranges.sh. With tests/shim/count_calls.c preloaded (tests/t/shim_markers.t) it counts instead, as
 * call_client.c does.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <nvtx3/nvToolsExt.h>

#define LOOPS	9
#define N	20000
#define WARM_UP 100
#define COUNTED 1000

int cuInit(unsigned);
int cuCtxCreate_v2(void **, unsigned, int);

extern int count_on __attribute__((weak));
extern unsigned long count[] __attribute__((weak));
extern const char *const count_name[] __attribute__((weak));

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static void count_end(const char *name, int n)
{
	count_on = 0;
	for (int i = 0; count_name[i]; i++)
		if (count[i])
			printf("%s %s %lu\n", name, count_name[i], count[i]);
	printf("%s calls %d\n", name, n);
}

/* most: at most so many turns, after a new step. */
static void measure(const char *name, int most, void (*pair)(int))
{
	int n = &count_on ? WARM_UP : N, loops = &count_on ? 2 : LOOPS;
	double best = 1e18;

	for (int loop = 0; loop < loops; loop++) {
		double start, ns;

		if (most < N)
			nvtxMarkA("step:1");
		n = n < most ? n : most;
		start = now();
		if (&count_on && loop) {
			for (int i = 0; count_name[i]; i++)
				count[i] = 0;
			n = COUNTED < most ? COUNTED : most, count_on = 1;
		}
		for (int i = 0; i < n; i++)
			pair(i);
		if (&count_on && loop)
			count_end(name, n);
		ns = (now() - start) / n;
		best = ns < best ? ns : best;
	}
	if (!&count_on)
		printf("%s %.1f\n", name, best);
}

static nvtxEventAttributes_t event(nvtxDomainHandle_t d, const char *text)
{
	nvtxEventAttributes_t a = {0};

	a.version = NVTX_VERSION;
	a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
	a.message.registered = nvtxDomainRegisterStringA(d, text);
	return a;
}

static nvtxDomainHandle_t other, model;
static nvtxEventAttributes_t foreign, ruled;

static void other_text(int i)
{
	nvtxRangePushA("aten::linear, op_id = 2");
	nvtxRangePop();
}

static void long_text(int i)
{
	nvtxRangePushA(
		"aten::convolution, seq = 4711, op_id = 81, sizes = [[32, 64, 56, 56], [64, 64, 3, 3], "
		"[64], [], [], [], [], [], []], input_op_ids = [(1,0)]");
	nvtxRangePop();
}

static void other_domain(int i)
{
	nvtxDomainRangePushEx(other, &foreign);
	nvtxDomainRangePop(other);
}

static void by_rule(int i)
{
	nvtxDomainRangePushEx(model, &ruled);
	nvtxDomainRangePop(model);
}

static void window(int i)
{
	nvtxRangePushA("forward:f");
	nvtxRangePop();
}

static void new_text(int i)
{
	char text[80];

	snprintf(text, sizeof(text), "aten::relu, seq = %d, op_id = %d", i, i);
	nvtxRangePushA(text);
	nvtxRangePop();
}

int main(void)
{
	void *ctx;

	other = nvtxDomainCreateA("other");
	model = nvtxDomainCreateA("model");
	foreign = event(other, "an operator");
	ruled = event(model, "skip 3");
	cuInit(0);
	cuCtxCreate_v2(&ctx, 0, 0);
	measure("other-text", N, other_text);
	measure("long-text", N, long_text);
	measure("other-domain", N, other_domain);
	measure("by-rule", N, by_rule);
	measure("window", 200, window);
	measure("new-text", N, new_text);
	return 0;
}
