/* SPDX-License-Identifier: MIT */
/*
 * See kernels.h. Callers: wrap_module.c (loading), wrap_launch.c (finding), any thread.
 *
 * Objects of unloaded modules go to free lists and are reused, never returned: a program that launches a
 * function of a module that it has unloaded gets its error from the driver, not a crash from us.
 */
#include "shim/kernels.h"
#include "shim/guard.h"
#include "shim/handles.h"
#include "shim/memo.h"
#include "shim/queue.h"

#include <pthread.h>
#include <stdlib.h>

/* A module, a library, or a library's module in one context (then parent is the library). */
struct rs_loaded {
	const void *owner, *parent;
	struct rs_image *image;
	uint8_t is_library;
	struct rs_kernel *kernels;
	struct variables *variables;
	struct rs_loaded *next, *prev;
};

/* Its variables in one context: a library has its own in each. */
struct variables {
	uint64_t ctx;
	uint8_t resolved; /* what the image names is looked up */
	uint8_t unnamed;  /* the driver did not find all of them */
	struct globals *globals;
	struct rs_alloc **leaving; /* of each, while the driver is asked to unload */
	struct variables *next;
};

/* A full list is followed by a longer one; launches may still read the old one. */
struct globals {
	struct globals *older;
	unsigned n, cap;
	struct rs_global at[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rs_handles kernels, owners;
static struct rs_loaded *all, *free_loaded;
static struct rs_kernel *free_kernels;

const struct rs_kernel *rs_kernels_find(const void *handle)
{
	return rs_handles_find(&kernels, handle);
}

/* Under lock. */
static void take_off(struct rs_loaded *l)
{
	rs_handles_set(&owners, l->owner, NULL);
	if (l->prev)
		l->prev->next = l->next;
	else
		all = l->next;
	if (l->next)
		l->next->prev = l->prev;
}

/* Under lock. What is not found by a handle any more is used again. */
static void spare(struct rs_loaded *l)
{
	struct rs_kernel *k;

	while ((k = l->kernels)) {
		l->kernels = k->next;
		if (rs_handles_find(&kernels, k->handle) == k)
			rs_handles_set(&kernels, k->handle, NULL);
		k->next = free_kernels;
		free_kernels = k;
	}
	l->next = free_loaded;
	free_loaded = l;
}

/* Under lock: the owner's entry goes; its variables are the caller's to release. */
static void drop_loaded(struct rs_loaded *l)
{
	take_off(l);
	spare(l);
}

/* Under lock. A handle that is still there belongs to something that went unseen: it is replaced. */
static struct rs_loaded *add_loaded(const void *owner)
{
	struct rs_loaded *l = rs_handles_find(&owners, owner);

	if (l)
		drop_loaded(l);
	l = free_loaded;
	if (l)
		free_loaded = l->next;
	else
		l = malloc(sizeof(*l));
	if (!l)
		return NULL;
	*l = (struct rs_loaded){.owner = owner, .next = all};
	if (all)
		all->prev = l;
	all = l;
	if (rs_handles_set(&owners, owner, l)) {
		drop_loaded(l);
		return NULL;
	}
	return l;
}

void rs_kernels_loaded(const void *owner, int is_library, const void *image, const char *path)
{
	struct rs_image *found = image ? rs_image_of_memory(image) : rs_image_of_file(path);
	struct rs_loaded *l;

	pthread_mutex_lock(&lock);
	l = add_loaded(owner);
	if (l) {
		l->image = found;
		l->is_library = (uint8_t)is_library;
	}
	pthread_mutex_unlock(&lock);
}

void rs_kernels_module_of(const void *library, const void *module)
{
	struct rs_loaded *parent, *l;

	pthread_mutex_lock(&lock);
	parent = rs_handles_find(&owners, library);
	l = rs_handles_find(&owners, module);
	if (parent && !(l && l->parent == library)) {
		l = add_loaded(module);
		if (l) {
			l->parent = library;
			l->image = parent->image;
		}
	}
	pthread_mutex_unlock(&lock);
}

static void free_variables(struct variables *v)
{
	struct globals *g, *older;

	for (g = v->globals; g; g = older) {
		older = g->older;
		free(g);
	}
	free(v);
}

void rs_kernels_ctx_destroy(uint64_t ctx)
{
	struct variables **at, *v;
	struct rs_loaded *l;

	rs_memo_void();
	pthread_mutex_lock(&lock);
	for (l = all; l; l = l->next) {
		for (at = &l->variables; (v = *at) && v->ctx != ctx; at = &v->next)
			;
		if (v) {
			*at = v->next;
			free_variables(v);
		}
	}
	pthread_mutex_unlock(&lock);
}

/* The engine's word for its variables, while the driver unloads them. Without memory for the list they are gone. */
static void variables_leave(struct rs_tls *t, struct variables *v)
{
	struct rs_queue q = {.ctx = v->ctx, .stream = 0};
	unsigned n = v->globals ? v->globals->n : 0;

	v->leaving = n ? calloc(n, sizeof(*v->leaving)) : NULL;
	for (unsigned i = 0; i < n; i++) {
		uint64_t addr = v->globals->at[i].addr;

		if (v->leaving)
			v->leaving[i] = rs_engine_free_begin(rs_state.engine, t->thread, q, addr);
		else
			rs_engine_free(rs_state.engine, t->thread, q, addr);
	}
}

static void variables_left(struct variables *v, int ok)
{
	for (unsigned i = 0; v->leaving && i < v->globals->n; i++)
		rs_engine_free_end(rs_state.engine, v->leaving[i], ok);
	free(v->leaving);
	v->leaving = NULL;
}

/* Under lock: nobody finds it by a handle any more. Its kernels may still be in use by a launch. */
static void hide(struct rs_loaded *l)
{
	for (const struct rs_kernel *k = l->kernels; k; k = k->next)
		if (rs_handles_find(&kernels, k->handle) == k)
			rs_handles_set(&kernels, k->handle, NULL);
	take_off(l);
}

/* Under lock. */
static void show_again(struct rs_loaded *l)
{
	for (struct rs_kernel *k = l->kernels; k; k = k->next)
		if (!rs_handles_find(&kernels, k->handle))
			rs_handles_set(&kernels, k->handle, k);
	l->prev = NULL;
	l->next = all;
	if (all)
		all->prev = l;
	all = l;
	rs_handles_set(&owners, l->owner, l);
}

struct rs_loaded *rs_kernels_leave(struct rs_tls *t, const void *owner)
{
	struct rs_loaded *l, *next, *list = NULL;

	pthread_mutex_lock(&lock);
	for (l = all; l; l = next) {
		next = l->next;
		if (l->owner != owner && l->parent != owner)
			continue;
		hide(l);
		l->next = list;
		list = l;
	}
	pthread_mutex_unlock(&lock);
	for (l = list; l; l = l->next)
		for (struct variables *v = l->variables; v; v = v->next)
			variables_leave(t, v);
	return list;
}

void rs_kernels_left(struct rs_loaded *list, CUresult r)
{
	int ok = r == CUDA_SUCCESS;
	struct rs_loaded *l, *next;
	struct variables *v;

	rs_memo_void(); /* a handle that is free may be another's soon */
	for (l = list; l; l = next) {
		next = l->next;
		for (v = l->variables; v; v = v->next)
			variables_left(v, ok);
		while (ok && (v = l->variables)) {
			l->variables = v->next;
			free_variables(v);
		}
		pthread_mutex_lock(&lock);
		if (ok)
			spare(l);
		else
			show_again(l);
		pthread_mutex_unlock(&lock);
	}
}

/* Under lock. */
static void add_kernel(const void *handle, const void *owner, struct rs_loaded *l,
		       struct rs_code *code, int is_kernel)
{
	struct rs_kernel *k = rs_handles_find(&kernels, handle);

	/* Given out again. An unchanged entry may be in use by a launch right now. */
	if (k && k->code == code && k->owner == owner)
		return;
	k = free_kernels;
	if (k)
		free_kernels = k->next;
	else
		k = malloc(sizeof(*k));
	if (!k)
		return;
	*k = (struct rs_kernel){.code = code,
				.handle = handle,
				.owner = owner,
				.is_kernel = (uint8_t)is_kernel,
				.next = l ? l->kernels : NULL};
	if (rs_handles_set(&kernels, handle, k)) {
		k->next = free_kernels;
		free_kernels = k;
	} else if (l) {
		l->kernels = k;
	}
}

void rs_kernels_function(const void *owner, const void *handle, const char *name, int is_kernel)
{
	struct rs_code *code;
	struct rs_loaded *l;

	if (!handle || !name)
		return;
	pthread_mutex_lock(&lock);
	l = rs_handles_find(&owners, owner);
	code = rs_image_code(l ? l->image : NULL, name);
	if (code)
		add_kernel(handle, owner, l, code, is_kernel);
	pthread_mutex_unlock(&lock);
}

void rs_kernels_function_of(const void *kernel, const void *function)
{
	struct rs_kernel *k;

	if (!function)
		return;
	pthread_mutex_lock(&lock);
	k = rs_handles_find(&kernels, kernel);
	if (k)
		add_kernel(function, k->owner, rs_handles_find(&owners, k->owner), k->code, 0);
	pthread_mutex_unlock(&lock);
}

/* --- global variables --------------------------------------------------------------------------- */

/* Under lock. NULL without memory. */
static struct variables *variables_in(struct rs_loaded *l, uint64_t ctx)
{
	struct variables *v;

	for (v = l->variables; v && v->ctx != ctx; v = v->next)
		;
	if (v)
		return v;
	v = calloc(1, sizeof(*v));
	if (v) {
		v->ctx = ctx;
		v->next = l->variables;
		l->variables = v;
	}
	return v;
}

/* Under lock. 1: new. */
static int add_global(struct variables *v, uint64_t addr, uint64_t bytes)
{
	struct globals *g = v->globals, *more;

	for (unsigned i = 0; g && i < g->n; i++)
		if (g->at[i].addr == addr)
			return 0;
	if (!g || g->n == g->cap) {
		unsigned cap = g ? 2 * g->cap : 8;

		more = malloc(sizeof(*more) + cap * sizeof(more->at[0]));
		if (!more)
			return 0;
		more->older = g;
		more->cap = cap;
		more->n = g ? g->n : 0;
		for (unsigned i = 0; i < more->n; i++)
			more->at[i] = g->at[i];
		v->globals = g = more;
	}
	g->at[g->n++] = (struct rs_global){addr, bytes};
	return 1;
}

void rs_kernels_global(struct rs_tls *t, const void *owner, uint64_t addr, uint64_t bytes)
{
	struct rs_queue q = {.ctx = rs_ctx_current(t), .stream = 0};
	struct variables *v = NULL;
	uint64_t base, known;
	struct rs_loaded *l;
	int fresh = 0;

	if (!addr || !bytes)
		return;
	pthread_mutex_lock(&lock);
	l = rs_handles_find(&owners, owner);
	if (l)
		v = variables_in(l, q.ctx);
	if (v)
		fresh = add_global(v, addr, bytes);
	pthread_mutex_unlock(&lock);
	if (fresh && !rs_engine_lookup(rs_state.engine, addr, &base, &known))
		RS_ENGINE(rs_engine_alloc(rs_state.engine, t->thread, q, addr, bytes,
					  RS_ALLOC_GLOBAL));
	if (fresh)
		rs_memo_void();
}

static CUresult ask(const struct rs_loaded *l, const char *name, CUdeviceptr *addr, size_t *bytes)
{
	CUlibrary library = (CUlibrary)(uintptr_t)l->owner;
	CUresult r;

	if (!l->is_library)
		return rs_real.cuModuleGetGlobal_v2(addr, bytes, (CUmodule)(uintptr_t)l->owner,
						    name);
	r = rs_real.cuLibraryGetGlobal(addr, bytes, library, name);
	return r == CUDA_SUCCESS ? r : rs_real.cuLibraryGetManaged(addr, bytes, library, name);
}

/* Non-zero if a variable cannot be had. */
static int resolve(struct rs_tls *t, const struct rs_loaded *l)
{
	int unnamed = 0;

	for (unsigned i = 0; i < l->image->nglobals; i++) {
		CUdeviceptr addr = 0;
		size_t bytes = 0;

		if (ask(l, l->image->globals[i], &addr, &bytes) == CUDA_SUCCESS)
			rs_kernels_global(t, l->owner, addr, bytes);
		else
			unnamed = 1;
	}
	return unnamed;
}

/*
 * What the image names, asked for once; two threads may both do it. The driver finds static variables, too,
 * as a rule. One that it does not find can neither be compared nor put back, but nobody else can write it.
 */
int rs_kernels_globals(struct rs_tls *t, const struct rs_kernel *k, const struct rs_global **ret,
		       unsigned *ret_n)
{
	uint64_t ctx = rs_ctx_current(t);
	struct variables *v = NULL;
	struct rs_loaded *l, copy = {0};
	int unnamed = 0, resolved;

	pthread_mutex_lock(&lock);
	l = rs_handles_find(&owners, k->owner);
	if (l && l->image)
		v = variables_in(l, ctx);
	resolved = v && v->resolved;
	if (v)
		copy = *l;
	pthread_mutex_unlock(&lock);
	if (!v)
		return 1;
	if (!resolved)
		unnamed = resolve(t, &copy);
	pthread_mutex_lock(&lock);
	/* It may have been unloaded meanwhile, and its handle given to another. */
	l = rs_handles_find(&owners, k->owner);
	v = l && l->image == copy.image ? variables_in(l, ctx) : NULL;
	if (v && !v->resolved) {
		v->resolved = 1;
		v->unnamed = (uint8_t)unnamed;
	}
	*ret = v && v->globals ? v->globals->at : NULL;
	*ret_n = v && v->globals ? v->globals->n : 0;
	unnamed = !v || v->unnamed || copy.image->hidden;
	pthread_mutex_unlock(&lock);
	return unnamed;
}
