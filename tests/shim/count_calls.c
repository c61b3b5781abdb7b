/* SPDX-License-Identifier: MIT */
/*
 * Preloaded beside the library: counts calls of what a hot path must not call, in all of the process, while
 * count_on is set. Built by tests/t/shim_hot.t; read by tests/shim/call_client.c.
 *
 * The real functions are looked up in libc by its handle: RTLD_NEXT would depend on the order of preloading.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

/* return type, name, parameters, arguments */
#define COUNTED(X)                                                                                 \
	X(void *, malloc, (size_t n), (n))                                                         \
	X(void *, calloc, (size_t n, size_t size), (n, size))                                      \
	X(void *, realloc, (void *p, size_t n), (p, n))                                            \
	X(int, pthread_mutex_lock, (pthread_mutex_t * m), (m))                                     \
	X(int, pthread_rwlock_rdlock, (pthread_rwlock_t * l), (l))                                 \
	X(int, pthread_rwlock_wrlock, (pthread_rwlock_t * l), (l))                                 \
	X(int, clock_gettime, (clockid_t id, struct timespec * t), (id, t))                        \
	X(char *, getenv, (const char *name), (name))                                              \
	X(char *, secure_getenv, (const char *name), (name))                                       \
	X(pid_t, getpid, (void), ())

enum {
#define X(type, name, params, args) N_##name,
	COUNTED(X)
#undef X
		N_free,
	N
};

int count_on;
unsigned long count[N + 1];
const char *const count_name[N + 1] = {
#define X(type, name, params, args) #name,
	COUNTED(X)
#undef X
		"free",
};

/* Before libc has been asked for the real ones: allocations of the look-up itself. */
static char early[1 << 16] __attribute__((aligned(16)));
static size_t early_used;

static void *early_get(size_t n)
{
	void *p = early + early_used;

	early_used += (n + 15) & ~(size_t)15;
	return early_used <= sizeof(early) ? p : NULL;
}

#define X(type, name, params, args) static type(*real_##name) params;
COUNTED(X)
#undef X
static void (*real_free)(void *p);

static void look_up(void)
{
	static int busy;
	void *libc;

	if (busy)
		return;
	busy = 1;
	libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
#define X(type, name, params, args) real_##name = (__typeof__(real_##name))dlsym(libc, #name);
	COUNTED(X)
#undef X
	real_free = (__typeof__(real_free))dlsym(libc, "free");
	busy = 0;
}

#define TICK(name)                                                                                 \
	do {                                                                                       \
		if (count_on)                                                                      \
			__atomic_fetch_add(&count[N_##name], 1, __ATOMIC_RELAXED);                 \
		if (!real_##name)                                                                  \
			look_up();                                                                 \
	} while (0)

void *malloc(size_t n)
{
	TICK(malloc);
	return real_malloc ? real_malloc(n) : early_get(n);
}

void *calloc(size_t n, size_t size)
{
	TICK(calloc);
	return real_calloc ? real_calloc(n, size) : early_get(n * size);
}

void *realloc(void *p, size_t n)
{
	TICK(realloc);
	return real_realloc ? real_realloc(p, n) : early_get(n);
}

void free(void *p)
{
	if ((char *)p >= early && (char *)p < early + sizeof(early))
		return;
	TICK(free);
	if (real_free)
		real_free(p);
}

int pthread_mutex_lock(pthread_mutex_t *m)
{
	TICK(pthread_mutex_lock);
	return real_pthread_mutex_lock ? real_pthread_mutex_lock(m) : 0;
}

int pthread_rwlock_rdlock(pthread_rwlock_t *l)
{
	TICK(pthread_rwlock_rdlock);
	return real_pthread_rwlock_rdlock ? real_pthread_rwlock_rdlock(l) : 0;
}

int pthread_rwlock_wrlock(pthread_rwlock_t *l)
{
	TICK(pthread_rwlock_wrlock);
	return real_pthread_rwlock_wrlock ? real_pthread_rwlock_wrlock(l) : 0;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
	TICK(clock_gettime);
	return real_clock_gettime ? real_clock_gettime(id, t) : -1;
}

char *getenv(const char *name)
{
	TICK(getenv);
	return real_getenv ? real_getenv(name) : NULL;
}

char *secure_getenv(const char *name)
{
	TICK(secure_getenv);
	return real_secure_getenv ? real_secure_getenv(name) : NULL;
}

pid_t getpid(void)
{
	TICK(getpid);
	return real_getpid ? real_getpid() : 0;
}
