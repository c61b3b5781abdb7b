/* SPDX-License-Identifier: MIT */
/*
 * A program with ranges of its own, as its standard input tells it, one command a line:
 *
 *	push TEXT, pop, mark TEXT          default domain
 *	wide TEXT, ex TEXT                 a push in wide characters, by attributes
 *	dpush DOMAIN TEXT, dpop DOMAIN     another one (no blank in its name)
 *	rpush DOMAIN TEXT                  the text as a registered string
 *	dmark DOMAIN TEXT
 *	start N TEXT, end N                ranges of the process
 *	dstart N DOMAIN TEXT, dend N DOMAIN
 *	region DOMAIN NAME                 name the state of layer 0; DOMAIN - is the default one
 *	work LAYER                         product = state, which is 1, then state = LAYER + 2
 *	reset LAYER                        state = 1, product = 0
 *	show LAYER                         print the state's and the product's first bytes
 *	thread, join                       the commands between them run in a thread of their own
 *	times N                            the next command so often
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtMem.h>

int cuInit(unsigned);
int cuCtxCreate_v2(void **, unsigned, int);
int cuCtxGetCurrent(void **);
int cuCtxSetCurrent(void *);
int cuMemAlloc_v2(unsigned long long *, size_t);
int cuMemsetD8_v2(unsigned long long, unsigned char, size_t);
int cuMemcpyDtoD_v2(unsigned long long, unsigned long long, size_t);
int cuMemcpyDtoH_v2(void *, unsigned long long, size_t);

#define LAYERS 4

static unsigned long long state[LAYERS], product[LAYERS], next[LAYERS];
static nvtxRangeId_t ids[10];
static void *ctx;

static nvtxDomainHandle_t domain(const char *name)
{
	static struct {
		char name[32];
		nvtxDomainHandle_t handle;
	} known[16];
	int i;

	if (!strcmp(name, "-"))
		return NULL;
	for (i = 0; known[i].handle && strcmp(known[i].name, name); i++)
		;
	if (!known[i].handle) {
		strcpy(known[i].name, name);
		known[i].handle = nvtxDomainCreateA(name);
	}
	return known[i].handle;
}

static nvtxEventAttributes_t event(nvtxDomainHandle_t d, const char *text, int registered)
{
	nvtxEventAttributes_t a = {0};

	a.version = NVTX_VERSION;
	a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	a.messageType = registered ? NVTX_MESSAGE_TYPE_REGISTERED : NVTX_MESSAGE_TYPE_ASCII;
	if (registered)
		a.message.registered = nvtxDomainRegisterStringA(d, text);
	else
		a.message.ascii = text;
	return a;
}

static void region(nvtxDomainHandle_t d, const char *name)
{
	nvtxMemVirtualRangeDesc_t range = {256, (const void *)state[0]};
	nvtxMemHeapDesc_t heap = {0};

	heap.extCompatID = NVTX_EXT_COMPATID_MEM;
	heap.structSize = sizeof(heap);
	heap.usage = NVTX_MEM_HEAP_USAGE_TYPE_LAYOUT;
	heap.type = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
	heap.typeSpecificDescSize = sizeof(range);
	heap.typeSpecificDesc = &range;
	heap.messageType = NVTX_MESSAGE_TYPE_ASCII;
	heap.message.ascii = name;
	nvtxMemHeapRegister(d, &heap);
}

static void work(unsigned i)
{
	cuMemcpyDtoD_v2(product[i], state[i], (size_t)256);
	cuMemcpyDtoD_v2(state[i], next[i], (size_t)256);
}

static void reset(unsigned i)
{
	cuMemsetD8_v2(state[i], 1, (size_t)256);
	cuMemsetD8_v2(product[i], 0, (size_t)256);
}

static void show(unsigned i)
{
	unsigned char s, p;

	cuMemcpyDtoH_v2(&s, state[i], (size_t)1);
	cuMemcpyDtoH_v2(&p, product[i], (size_t)1);
	printf("%u %u\n", s, p);
}

static void wide(const char *text)
{
	wchar_t w[512];
	size_t n = mbstowcs(w, text, 511);

	w[n] = 0;
	nvtxRangePushW(w);
}

static void obey(char *line)
{
	char *rest = strchr(line, ' '), *more;
	nvtxEventAttributes_t a;

	if (rest)
		*rest++ = '\0';
	more = rest ? strchr(rest, ' ') : NULL;
#define IS(word) !strcmp(line, word)
#define SPLIT()	 (more ? (*more++ = '\0') : 0)
	if (IS("push")) {
		nvtxRangePushA(rest);
	} else if (IS("pop")) {
		nvtxRangePop();
	} else if (IS("mark")) {
		nvtxMarkA(rest);
	} else if (IS("wide")) {
		wide(rest);
	} else if (IS("ex")) {
		a = event(NULL, rest, 0);
		nvtxRangePushEx(&a);
	} else if (IS("dpush") || IS("rpush")) {
		SPLIT();
		a = event(domain(rest), more, line[0] == 'r');
		nvtxDomainRangePushEx(domain(rest), &a);
	} else if (IS("dpop")) {
		nvtxDomainRangePop(domain(rest));
	} else if (IS("dmark")) {
		SPLIT();
		a = event(domain(rest), more, 0);
		nvtxDomainMarkEx(domain(rest), &a);
	} else if (IS("start")) {
		ids[rest[0] - '0'] = nvtxRangeStartA(rest + 2);
	} else if (IS("end")) {
		nvtxRangeEnd(ids[rest[0] - '0']);
	} else if (IS("dstart")) {
		char *text = strchr(rest + 2, ' ');

		*text++ = '\0';
		a = event(domain(rest + 2), text, 0);
		ids[rest[0] - '0'] = nvtxDomainRangeStartEx(domain(rest + 2), &a);
	} else if (IS("dend")) {
		nvtxDomainRangeEnd(domain(rest + 2), ids[rest[0] - '0']);
	} else if (IS("region")) {
		SPLIT();
		region(domain(rest), more);
	} else if (IS("work")) {
		work((unsigned)atoi(rest));
	} else if (IS("reset")) {
		reset((unsigned)atoi(rest));
	} else if (IS("show")) {
		show((unsigned)atoi(rest));
	} else {
		fprintf(stderr, "what is %s?\n", line);
		exit(2);
	}
}

static void *block(void *arg)
{
	char line[4096], copy[4096];
	unsigned times = 1;

	cuCtxSetCurrent(ctx);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (!strcmp(line, "join"))
			break;
		if (!strcmp(line, "thread")) {
			pthread_t t;

			pthread_create(&t, NULL, block, NULL);
			pthread_join(t, NULL);
			continue;
		}
		if (!strncmp(line, "times ", 6)) {
			times = (unsigned)atoi(line + 6);
			continue;
		}
		for (; times; times--)
			obey(strcpy(copy, line));
		times = 1;
	}
	return arg;
}

int main(void)
{
	cuInit(0);
	cuCtxCreate_v2(&ctx, 0, 0);
	for (unsigned i = 0; i < LAYERS; i++) {
		cuMemAlloc_v2(&state[i], (size_t)256);
		cuMemAlloc_v2(&product[i], (size_t)256);
		cuMemAlloc_v2(&next[i], (size_t)256);
		cuMemsetD8_v2(next[i], (unsigned char)(i + 2), (size_t)256);
		reset(i);
	}
	block(NULL);
	return 0;
}
