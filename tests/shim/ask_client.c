/* SPDX-License-Identifier: MIT */
/*
 * Asks the driver for addresses and prints where each answer lies: names on stdin, versions as arguments.
 *
 *	dlsym NAME: OBJECT:SYMBOL
 *	FUNCTION NAME FLAGS: VERSION=RESULT,STATUS,OBJECT:SYMBOL ...	where the answer changes
 *
 * An address inside of an object that is no symbol of it is printed as its offset.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int get1_fn(const char *, void **, int, unsigned long long);
typedef int get2_fn(const char *, void **, int, unsigned long long, int *);

static void where(char *out, size_t size, void *addr)
{
	const char *slash;
	Dl_info info;

	if (!addr) {
		snprintf(out, size, "-");
	} else if (!dladdr(addr, &info)) {
		snprintf(out, size, "?");
	} else {
		slash = strrchr(info.dli_fname, '/');
		slash = slash ? slash + 1 : info.dli_fname;
		if (info.dli_saddr == addr)
			snprintf(out, size, "%s:%s", slash, info.dli_sname);
		else
			snprintf(out, size, "%s:+%lx", slash,
				 (unsigned long)((char *)addr - (char *)info.dli_fbase));
	}
}

static void ask(get1_fn *get1, get2_fn *get2, const char *name, int flags, int n, char **versions)
{
	char at[256], now[300], last[300] = "";

	printf("%s %s %d:", get1 ? "cuGetProcAddress" : "cuGetProcAddress_v2", name, flags);
	for (int i = 0; i < n; i++) {
		void *addr = (void *)1;
		int status = -1, r;

		r = get1 ? get1(name, &addr, atoi(versions[i]), flags)
			 : get2(name, &addr, atoi(versions[i]), flags, &status);
		if (addr == (void *)1)
			strcpy(at, "untouched");
		else
			where(at, sizeof(at), addr);
		snprintf(now, sizeof(now), "%d,%d,%s", r, status, at);
		if (strcmp(now, last))
			printf(" %s=%s", versions[i], now);
		strcpy(last, now);
	}
	putchar('\n');
}

int main(int argc, char **argv)
{
	void *cu = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	int (*init)(unsigned) = cu ? dlsym(cu, "cuInit") : NULL;
	get1_fn *get1 = cu ? dlsym(cu, "cuGetProcAddress") : NULL;
	get2_fn *get2 = cu ? dlsym(cu, "cuGetProcAddress_v2") : NULL;
	char name[256], at[256];

	if (!init || !get1 || !get2 || init(0))
		return 1;
	while (fgets(name, sizeof(name), stdin)) {
		name[strcspn(name, "\n")] = '\0';
		where(at, sizeof(at), dlsym(cu, name));
		printf("dlsym %s: %s\n", name, at);
		for (int flags = 0; flags <= 3; flags++) {
			ask(get1, NULL, name, flags, argc - 1, argv + 1);
			ask(NULL, get2, name, flags, argc - 1, argv + 1);
		}
	}
	return 0;
}
