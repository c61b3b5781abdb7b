/* SPDX-License-Identifier: MIT */
/*
 * User objects: reference-counted things of the program that live as long as a graph that retains them.
 *
 * The destructor is a host function: it is called without the driver lock and must not call CUDA.
 * Executable graphs and clones hold references of their own. Driver lock held.
 */
#include "tests/simcuda/graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct CUuserObject_st {
	void *ptr;
	CUhostFn destroy;
	uint64_t refs;
};

static void release(CUuserObject o, uint64_t n)
{
	o->refs -= n;
	if (o->refs)
		return;
	sim_handle_del(o);
	sim_api_unlock();
	sim_api_in_callback++;
	o->destroy(o->ptr);
	sim_api_in_callback--;
	sim_api_lock();
	free(o);
}

void sim_userobj_release_all(CUgraph g)
{
	struct sim_user *users = g->users;
	size_t n = g->nusers;

	g->users = NULL;
	g->nusers = 0;
	for (size_t i = 0; i < n; i++)
		release(users[i].obj, users[i].count);
	free(users);
}

int sim_userobj_copy(CUgraph dst, const struct CUgraph_st *src)
{
	if (!src->nusers)
		return 0;
	dst->users = malloc(src->nusers * sizeof(*dst->users));
	if (!dst->users)
		return -ENOMEM;
	memcpy(dst->users, src->users, src->nusers * sizeof(*dst->users));
	dst->nusers = src->nusers;
	for (size_t i = 0; i < dst->nusers; i++)
		dst->users[i].obj->refs += dst->users[i].count;
	return 0;
}

static bool bad(CUuserObject o, unsigned count)
{
	return !sim_handle_is(o, SIM_H_USEROBJ) || !count;
}

SIM_API(cuUserObjectCreate, SIM_INIT,
	P(CUuserObject *ret, void *ptr, CUhostFn destroy, unsigned refs, unsigned flags),
	P(ret, ptr, destroy, refs, flags))
{
	CUuserObject o;

	if (!ret || !destroy || !refs || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
		return CUDA_ERROR_INVALID_VALUE;
	o = calloc(1, sizeof(*o));
	if (!o || sim_handle_add(o, SIM_H_USEROBJ)) {
		free(o);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	o->ptr = ptr;
	o->destroy = destroy;
	o->refs = refs;
	*ret = o;
	return CUDA_SUCCESS;
}

SIM_API(cuUserObjectRetain, SIM_INIT, P(CUuserObject o, unsigned count), P(o, count))
{
	if (bad(o, count))
		return CUDA_ERROR_INVALID_VALUE;
	o->refs += count;
	return CUDA_SUCCESS;
}

SIM_API(cuUserObjectRelease, SIM_INIT, P(CUuserObject o, unsigned count), P(o, count))
{
	if (bad(o, count) || count > o->refs)
		return CUDA_ERROR_INVALID_VALUE;
	release(o, count);
	return CUDA_SUCCESS;
}

static struct sim_user *find(CUgraph g, CUuserObject o)
{
	for (size_t i = 0; i < g->nusers; i++)
		if (g->users[i].obj == o)
			return &g->users[i];
	return NULL;
}

SIM_API(cuGraphRetainUserObject, SIM_INIT,
	P(CUgraph g, CUuserObject o, unsigned count, unsigned flags), P(g, o, count, flags))
{
	struct sim_user *u;

	if (!sim_handle_is(g, SIM_H_GRAPH) || bad(o, count) || flags > CU_GRAPH_USER_OBJECT_MOVE)
		return CUDA_ERROR_INVALID_VALUE;
	u = find(g, o);
	if (!u) {
		u = realloc(g->users, (g->nusers + 1) * sizeof(*u));
		if (!u)
			return CUDA_ERROR_OUT_OF_MEMORY;
		g->users = u;
		u += g->nusers++;
		*u = (struct sim_user){o, 0};
	}
	u->count += count;
	/* Moved references were the caller's; otherwise the graph gets new ones. */
	if (flags != CU_GRAPH_USER_OBJECT_MOVE)
		o->refs += count;
	return CUDA_SUCCESS;
}

SIM_API(cuGraphReleaseUserObject, SIM_INIT, P(CUgraph g, CUuserObject o, unsigned count),
	P(g, o, count))
{
	struct sim_user *u;

	if (!sim_handle_is(g, SIM_H_GRAPH) || bad(o, count))
		return CUDA_ERROR_INVALID_VALUE;
	u = find(g, o);
	if (!u || u->count < count)
		return CUDA_ERROR_INVALID_VALUE;
	u->count -= count;
	if (!u->count)
		*u = g->users[--g->nusers];
	release(o, count);
	return CUDA_SUCCESS;
}
