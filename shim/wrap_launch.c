/* SPDX-License-Identifier: MIT */
/*
 * Kernel launches (entry_points.def, group C6): which memory this launch may read and write.
 *
 * With PTX: one range per dereferenced parameter word and direction, as the analysis bounds it for this
 * launch's arguments and grid. Without: every allocation that an 8-byte word of the parameters points
 * into, and the global variables of the module (untracked memory, where they are not known). A handle of
 * unknown origin, or parameters of unknown layout: everything.
 * Every launch is looked at, for the contents of the arguments change; one that is equal to an earlier one, byte
 * by byte, is taken from the thread's memory (memo.h) as long as all addresses mean what they meant.
 * Callers: the program, any thread. No locks, except at a kernel's first launch.
 */
#include "shim/describe.h"
#include "shim/memo.h"
#include "shim/tensormap.h"

#include <stdlib.h>
#include <string.h>

/* `extra`: pairs of a tag and a value, up to the end tag. */
static struct rs_params from_extra(void **extra)
{
	struct rs_params b = {NULL, 0};
	const size_t *size = NULL;

	for (unsigned i = 0; i < 16 && extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
		if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
			b.data = extra[i + 1];
		else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
			size = extra[i + 1];
	}
	b.n = b.data && size ? *size : 0;
	return b;
}

/* As gather, where there is nothing but words one after the other. */
static uint32_t gather_words(uint8_t *block, void **params, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (!params[i])
			return UINT32_MAX;
		memcpy(block + 8 * (size_t)i, params[i], 8);
	}
	return 8 * n;
}

/* Every argument to its place. The number of bytes, or UINT32_MAX if there is one missing. */
static uint32_t gather(uint8_t *block, const struct rs_code *code, void **params)
{
	const struct rs_code_param *p = code->params;
	uint32_t n = code->nparams, bytes = 0;

	if (code->words)
		return gather_words(block, params, n);
	for (uint32_t i = 0; i < n; i++) {
		if (!params[i])
			return UINT32_MAX;
		if (p[i].size == 8)
			memcpy(block + p[i].offset, params[i], 8);
		else
			memcpy(block + p[i].offset, params[i], p[i].size);
		bytes += p[i].size;
	}
	return bytes;
}

/* Gathers kernelParams into the thread's scratch. Padding is zero, so that equal launches have equal blocks. */
static struct rs_params from_params(struct rs_tls *t, const struct rs_code *code, void **params)
{
	struct rs_params b = {NULL, 0};
	uint32_t bytes;

	if (code->param_bytes > t->params_cap) {
		uint8_t *more = realloc(t->params, code->param_bytes);

		if (!more)
			return b;
		t->params = more;
		t->params_cap = code->param_bytes;
	}
	bytes = gather(t->params, code, params);
	if (bytes == UINT32_MAX)
		return b;
	if (bytes < code->param_bytes) {
		memset(t->params, 0, code->param_bytes);
		gather(t->params, code, params);
	}
	b.data = t->params;
	b.n = code->param_bytes;
	return b;
}

int rs_launch_params(struct rs_tls *t, const struct rs_kernel *k, const struct rs_launch *l,
		     struct rs_params *ret)
{
	struct rs_code *code = k->code;

	*ret = (struct rs_params){NULL, 0};
	if (l->extra) {
		*ret = from_extra(l->extra);
		return 0;
	}
	if (rs_unlikely(__atomic_load_n(&code->layout, __ATOMIC_ACQUIRE) == RS_LAYOUT_ASK))
		RS_ENGINE(rs_image_layout(code, k->handle, k->is_kernel));
	if (__atomic_load_n(&code->layout, __ATOMIC_ACQUIRE) != RS_LAYOUT_KNOWN)
		return -ENOENT;
	if (!code->nparams || !l->params)
		return 0;
	*ret = from_params(t, code, l->params);
	return ret->data ? 0 : -ENOENT;
}

static uint64_t word_at(struct rs_params b, uint64_t offset)
{
	uint64_t word;

	memcpy(&word, b.data + offset, sizeof(word));
	return word;
}

/*
 * Narrows [*lo, *hi) to the allocation that the pointer is in. Bounds cover what the address arithmetic can
 * reach; a guard (padding of a convolution) may keep the kernel from the part outside.
 */
static const void *inside(const struct rs_call *c, uint64_t word, uint64_t *lo, uint64_t *hi)
{
	/* A pointer to the end of an allocation, used backwards, is not in it: its first byte is. */
	uint64_t probe[2] = {word, *lo}, base, bytes, from, to;
	const void *memory;

	for (int i = 0; i < 2; i++) {
		memory = rs_engine_lookup_lately(rs_state.engine, rs_tls->thread, c->generation,
						 probe[i], &base, &bytes);
		if (!memory)
			continue;
		from = *lo < base ? base : *lo;
		to = *hi > base + bytes ? base + bytes : *hi;
		if (from < to) {
			*lo = from;
			*hi = to;
			return memory;
		}
	}
	return NULL;
}

/* One direction of a word that the kernel dereferences. */
static void proved(struct rs_call *c, struct rs_access *a, const struct rs_ptx_kernel *k,
		   uint32_t i, enum rs_ptx_dir dir, uint64_t word, struct rs_ptx_extent e)
{
	uint64_t lo = word, hi = word + 1;
	const void *memory;

	if (!(k->words[i].dir & dir))
		return;
	if (e.known) {
		if (e.lo >= e.hi)
			return;
		lo = word + (uint64_t)e.lo;
		hi = word + (uint64_t)e.hi;
	}
	memory = inside(c, word, &lo, &hi);
	if (!memory) {
		c->untracked = 1;
		return;
	}
	a[c->naccess++] = (struct rs_access){.addr = lo,
					     .bytes = hi - lo,
					     .memory = memory,
					     .dir = dir == RS_PTX_READS ? RS_READ : RS_WRITE,
					     .how = RS_HOW_PTX,
					     .whole = !e.known,
					     .dense = dir == RS_PTX_WRITES && e.known && e.dense,
					     .slot = (uint16_t)(k->words[i].offset / 8)};
}

/* What of the bounds is not empty: that a launch with other pointers reaches, too. */
static uint32_t reach_of(struct rs_reach *r, const struct rs_ptx_kernel *k,
			 const struct rs_ptx_extent *e)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < 2 * k->nwords; i++, e++) {
		const struct rs_ptx_word *w = &k->words[i / 2];

		if (!(w->dir & (i % 2 ? RS_PTX_WRITES : RS_PTX_READS)) ||
		    (e->known && e->lo >= e->hi))
			continue;
		r[n++] = (struct rs_reach){.lo = e->known ? e->lo : 0,
					   .hi = e->known ? e->hi : 1,
					   .at = w->offset,
					   .dir = i % 2 ? RS_WRITE : RS_READ};
	}
	return n;
}

/* Bounds of all words: reads and writes in turn. */
static const struct rs_ptx_extent *bounds(struct rs_memo *m, const struct rs_ptx_kernel *k,
					  struct rs_params b, const struct rs_launch *l)
{
	struct rs_ptx_launch launch = {{l->grid[0], l->grid[1], l->grid[2]},
				       {l->block[0], l->block[1], l->block[2]},
				       b.data,
				       b.n};
	struct rs_ptx_extent *e;

	if (!m)
		return NULL;
	if (m->bounded)
		return m->extents;
	e = rs_memo_room(m, 2 * k->nwords);
	if (!e)
		return NULL;
	for (uint32_t i = 0; i < k->nwords; i++) {
		rs_ptx_access_eval(k, i, RS_PTX_READS, &launch, &e[2 * i]);
		rs_ptx_access_eval(k, i, RS_PTX_WRITES, &launch, &e[2 * i + 1]);
	}
	m->nreach = reach_of(m->reach, k, e);
	m->bounded = 1;
	return e;
}

static void by_ptx(struct rs_call *c, struct rs_memo *m, struct rs_access *a,
		   const struct rs_ptx_kernel *k, struct rs_params b, const struct rs_launch *l)
{
	const struct rs_ptx_extent *e;

	for (uint32_t i = 0; i < k->nwords; i++)
		c->everything |= k->words[i].dir && (uint64_t)k->words[i].offset + 8 > b.n;
	e = c->everything || !k->nwords ? NULL : bounds(m, k, b, l);
	if (!e) {
		c->everything |= k->nwords > 0;
		return;
	}
	for (uint32_t i = 0; i < k->nwords; i++) {
		uint64_t word = k->words[i].dir ? word_at(b, k->words[i].offset) : 0;

		if (!word)
			continue;
		proved(c, a, k, i, RS_PTX_READS, word, e[2 * i]);
		proved(c, a, k, i, RS_PTX_WRITES, word, e[2 * i + 1]);
	}
}

static void by_scan(struct rs_call *c, struct rs_access *a, struct rs_params b)
{
	for (uint64_t at = 0; at + 8 <= b.n; at += 8) {
		uint64_t word = word_at(b, at);
		const void *memory;

		memory = word < RS_ADDR_LEAST ? NULL : rs_call_known(c, word);
		if (!memory)
			continue;
		a[c->naccess++] = (struct rs_access){.addr = word,
						     .memory = memory,
						     .dir = RS_READ | RS_WRITE,
						     .how = RS_HOW_REACHABLE,
						     .whole = 1,
						     .slot = (uint16_t)(at / 8)};
	}
}

static int uses_globals(const struct rs_code *code)
{
	const struct rs_ptx_kernel *k = code->ptx;

	return k ? k->reads_globals || k->writes_globals : code->globals;
}

static void globals(struct rs_call *c, struct rs_access *a, const struct rs_ptx_kernel *k,
		    const struct rs_global *g, unsigned n)
{
	int dir = (!k || k->reads_globals ? RS_READ : 0) | (!k || k->writes_globals ? RS_WRITE : 0);

	for (unsigned i = 0; i < n; i++)
		a[c->naccess++] = (struct rs_access){.addr = g[i].addr,
						     .bytes = g[i].bytes,
						     .dir = (uint8_t)dir,
						     .how = k ? RS_HOW_PTX : RS_HOW_REACHABLE,
						     .slot = UINT16_MAX};
}

static uint64_t identity(const struct rs_code *code, const struct rs_launch *l)
{
	uint64_t h = code->hash;

	h = rs_digest_mix(h + l->grid[0] + ((uint64_t)l->grid[1] << 32));
	h = rs_digest_mix(h + l->grid[2] + ((uint64_t)l->block[0] << 32));
	h = rs_digest_mix(h + l->block[1] + ((uint64_t)l->block[2] << 32));
	return rs_digest_mix(h + l->shared);
}

static struct rs_variables *variables_at(struct rs_tls *t, const struct rs_kernel *k)
{
	uintptr_t h = (uintptr_t)k->owner;

	return &t->variables[(h >> 4 ^ h >> 10) % RS_VARIABLES];
}

static int are_of(const struct rs_variables *v, const struct rs_kernel *k, uint64_t ctx)
{
	return v->owner == k->owner && v->code == k->code && v->ctx == ctx && v->generation;
}

/* As rs_kernels_globals, which takes a lock. generation: before anything was looked up for the call. */
static const struct rs_variables *globals_of(struct rs_tls *t, const struct rs_kernel *k,
					     uint64_t generation)
{
	uint64_t ctx = rs_ctx_current(t),
		 voided = __atomic_load_n(&rs_memo_voided, __ATOMIC_ACQUIRE);
	struct rs_variables *v = variables_at(t, k);

	if (are_of(v, k, ctx) && v->generation == generation)
		return v;
	*v = (struct rs_variables){
		.owner = k->owner, .code = k->code, .ctx = ctx, .voided = voided};
	v->unnamed = (uint8_t)rs_kernels_globals(t, k, &v->at, &v->n);
	v->generation = generation;
	return v;
}

/* Certainly none that anybody has a name for. That does not change with addresses: one that gets a name voids it. */
static int are_none(struct rs_tls *t, const struct rs_kernel *k)
{
	const struct rs_variables *v = variables_at(t, k);

	return are_of(v, k, rs_ctx_current(t)) && !v->n &&
	       v->voided == __atomic_load_n(&rs_memo_voided, __ATOMIC_ACQUIRE);
}

/* Ranges from parameters and module. 0, or -errno: the call stays one that may do anything. */
static int describe(struct rs_call *c, struct rs_tls *t, const struct rs_kernel *k,
		    struct rs_memo *m, struct rs_params b, const struct rs_launch *l,
		    uint64_t generation)
{
	const struct rs_ptx_kernel *ptx = k->code->ptx;
	const struct rs_global *g = NULL;
	struct rs_access *a;
	unsigned n, ng = 0, maps = 0;

	if (uses_globals(k->code)) {
		const struct rs_variables *v = globals_of(t, k, generation);

		c->untracked |= v->unnamed;
		g = v->at;
		ng = v->n;
	}
	if (rs_unlikely(rs_tensormap_any()))
		maps = rs_tensormap_room(b.n);
	n = (ptx ? 2 * ptx->nwords : (unsigned)(b.n / 8)) + ng + maps;
	a = t->access;
	if (rs_unlikely(n > t->access_cap))
		RS_ENGINE(a = rs_call_scratch(t, n + 16));
	if (n && !a)
		return -ENOMEM;
	c->access = a;
	c->everything = ptx ? ptx->opaque : k->code->opaque;
	if (ptx)
		by_ptx(c, m, a, ptx, b, l);
	else
		by_scan(c, a, b);
	if (maps && !c->everything)
		rs_tensormap_scan(c, a, n - ng, b.data, b.n);
	globals(c, a, ptx, g, ng);
	return 0;
}

/* A launch whose kernel and parameters have been looked at. */
struct known {
	const struct rs_kernel *k; /* NULL: a handle that no hook has seen */
	struct rs_memo *m;	   /* NULL: it is not to be remembered */
	struct rs_params b;
	void **scattered; /* b is still to be gathered from there; words alone */
	uint8_t has_params;
};

static inline void recognise(struct known *n, struct rs_tls *t, const struct rs_launch *l)
{
	n->k = rs_kernels_find(l->f);
	n->m = n->k ? rs_memo_next(t, n->k, l) : NULL;
	n->scattered = NULL;
	n->has_params = 1;
	if (rs_likely(n->m)) {
		n->b = (struct rs_params){n->m->params, n->m->bytes};
		return;
	}
	if (n->k && rs_memo_is_new(t, n->k, l)) {
		n->scattered = l->params;
		return;
	}
	n->has_params = n->k && !rs_launch_params(t, n->k, l, &n->b);
	if (n->has_params)
		n->m = rs_memo_get(t, n->k, l, n->b);
}

static void describe_known(struct rs_call *c, struct rs_tls *t, const struct rs_launch *l,
			   struct known *n)
{
	uint64_t generation;

	c->everything = 1;
	if (n->scattered)
		n->has_params = !rs_launch_params(t, n->k, l, &n->b);
	if (n->has_params) {
		c->args = n->b.data;
		c->arg_bytes = (uint32_t)n->b.n;
	}
	if (rs_unlikely(!n->k)) {
		rs_count(unknown_kernel);
		return;
	}
	c->name = n->k->code->name;
	generation = rs_memo_generation(c->generation);
	if (rs_likely(n->m && n->m->generation == generation)) {
		rs_memo_recall(n->m, c);
		return;
	}
	c->ident = identity(n->k->code, l);
	if (n->has_params && !describe(c, t, n->k, n->m, n->b, l, generation) && n->m)
		rs_memo_keep(n->m, c, generation);
}

void rs_launch_describe(struct rs_call *c, struct rs_tls *t, const struct rs_launch *l)
{
	struct known n;

	recognise(&n, t, l);
	describe_known(c, t, l, &n);
	/* they lie in the caller's hands, or in a scratch that the next one needs */
	c->args = NULL;
}

/* By the bounds that such a launch had before, if there are any. */
static __attribute__((noinline)) uint64_t moment_by_ptx(struct rs_tls *t, const struct known *n,
							struct rs_queue q)
{
	const struct rs_memo *m = n->m;

	if (n->k->code->ptx->opaque || !m || !m->bounded || !m->nreach)
		return 0;
	return rs_engine_again_reach(rs_state.engine, t->thread, q, n->b.data, m->reach, m->nreach);
}

/* What the engine says of it by its arguments alone: a moment, or 0. */
static inline uint64_t moment_of(struct rs_tls *t, const struct known *n, struct rs_queue q)
{
	const struct rs_code *code = n->k->code;

	if (rs_state.opt.strict || rs_tensormap_any())
		return 0;
	if (uses_globals(code) && !are_none(t, n->k))
		return 0;
	if (code->ptx)
		return moment_by_ptx(t, n, q);
	if (n->scattered)
		return code->opaque ? 0
				    : rs_engine_again_scattered(rs_state.engine, t->thread, q,
								n->scattered, code->nparams);
	return code->opaque ? 0
			    : rs_engine_again_words(rs_state.engine, t->thread, q, n->b.data,
						    (unsigned)(n->b.n / 8));
}

/* A new launch, or one that was made when addresses had other memory. */
__attribute__((noinline)) static int is_calm_anew(struct rs_tls *t, const struct known *n,
						  struct rs_queue q)
{
	uint64_t generation = rs_memo_generation(rs_engine_generation(rs_state.engine));
	uint64_t moment = moment_of(t, n, q);

	if (moment && n->m)
		rs_memo_calm(n->m, moment, q, generation);
	return !!moment;
}

/*
 * Does the launch need nothing, as far as that can be told without describing it? With option STRICT every call looks for
 * bad records.
 */
static inline int is_calm(struct rs_tls *t, const struct known *n, CUstream stream,
			  enum rs_flavour flavour)
{
	struct rs_queue q;

	if (!n->has_params || __atomic_load_n(&rs_state.captures, __ATOMIC_RELAXED))
		return 0;
	q = rs_queue_of(t, stream, flavour);
	return (rs_likely(n->m) && rs_memo_is_calm(n->m, t, q)) || is_calm_anew(t, n, q);
}

/* With option STRICT every call looks for bad records. */
static inline void keep_calm(const struct known *n, const struct rs_call *c)
{
	if (c->calm && n->m && !rs_state.opt.strict)
		rs_memo_calm(n->m, c->calm, c->q, n->m->generation);
}

/* The body of a wrapper, behind RS_ENTER_CALL. */
#define LAUNCH_BODY(t, l, r, sym, flavour, stream, args)                                           \
	do {                                                                                       \
		struct rs_call call;                                                               \
		struct known n;                                                                    \
		recognise(&n, t, l);                                                               \
		if (rs_likely(is_calm(t, &n, stream, flavour))) {                                  \
			r = rs_real.sym args;                                                      \
			break;                                                                     \
		}                                                                                  \
		rs_call_begin(&call, t, RS_EP_##sym, RS_CALL_KERNEL, stream, flavour, NULL);       \
		describe_known(&call, t, l, &n);                                                   \
		RS_CALL(t, &call, r, sym, args);                                                   \
		keep_calm(&n, &call);                                                              \
	} while (0)

#define LAUNCH(sym, flavour, stream, params, args, ...)                                            \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		CUresult r;                                                                        \
		RS_ENTER_CALL(t, sym, flavour, stream, args);                                      \
		const struct rs_launch l = __VA_ARGS__;                                            \
		LAUNCH_BODY(t, &l, r, sym, flavour, stream, args);                                 \
		RS_LEAVE(t, r);                                                                    \
	}

#define P_L                                                                                        \
	(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,         \
	 unsigned int by, unsigned int bz, unsigned int shared, CUstream hStream, void **params,   \
	 void **extra)
#define A_L (f, gx, gy, gz, bx, by, bz, shared, hStream, params, extra)
#define L_L                                                                                        \
	{                                                                                          \
		f, {gx, gy, gz}, {bx, by, bz}, shared, params, extra                               \
	}
LAUNCH(cuLaunchKernel, RS_PLAIN, hStream, P_L, A_L, L_L)
LAUNCH(cuLaunchKernel_ptsz, RS_PTSZ, hStream, P_L, A_L, L_L)

#define P_K                                                                                        \
	(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,         \
	 unsigned int by, unsigned int bz, unsigned int shared, CUstream hStream, void **params)
#define A_K (f, gx, gy, gz, bx, by, bz, shared, hStream, params)
#define L_K                                                                                        \
	{                                                                                          \
		f, {gx, gy, gz}, {bx, by, bz}, shared, params, NULL                                \
	}
LAUNCH(cuLaunchCooperativeKernel, RS_PLAIN, hStream, P_K, A_K, L_K)
LAUNCH(cuLaunchCooperativeKernel_ptsz, RS_PTSZ, hStream, P_K, A_K, L_K)

/* Without a configuration the driver refuses the call; nothing runs then. */
static struct rs_launch from_config(const CUlaunchConfig *c, CUfunction f, void **params,
				    void **extra)
{
	if (!c)
		return (struct rs_launch){f, {0, 0, 0}, {0, 0, 0}, 0, params, extra};
	return (struct rs_launch){f,
				  {c->gridDimX, c->gridDimY, c->gridDimZ},
				  {c->blockDimX, c->blockDimY, c->blockDimZ},
				  c->sharedMemBytes,
				  params,
				  extra};
}

/* An event that the launch itself records: whoever waits for it counts as ordered. */
static void events_of(const CUlaunchConfig *c)
{
	for (unsigned i = 0; i < c->numAttrs; i++) {
		CUevent event = NULL;

		if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
			event = c->attrs[i].value.programmaticEvent.event;
		else if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
			event = c->attrs[i].value.launchCompletionEvent.event;
		if (event)
			RS_ENGINE(rs_engine_event_destroy(rs_state.engine, (uintptr_t)event));
	}
}

#define LAUNCH_EX(sym, flavour)                                                                    \
	RS_HOOK(sym,                                                                               \
		(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra))   \
	{                                                                                          \
		const CUstream stream = config ? config->hStream : NULL;                           \
		struct rs_launch l;                                                                \
		CUresult r;                                                                        \
		RS_ENTER_CALL(t, sym, flavour, stream, (config, f, kernelParams, extra));          \
		l = from_config(config, f, kernelParams, extra);                                   \
		LAUNCH_BODY(t, &l, r, sym, flavour, stream, (config, f, kernelParams, extra));     \
		if (r == CUDA_SUCCESS && config->numAttrs)                                         \
			events_of(config);                                                         \
		RS_LEAVE(t, r);                                                                    \
	}
LAUNCH_EX(cuLaunchKernelEx, RS_PLAIN)
LAUNCH_EX(cuLaunchKernelEx_ptsz, RS_PTSZ)

/* Forms whose arguments were set by earlier calls, or that run on several devices at once. */
#define LAUNCH_OLD(sym, stream, params, args)                                                      \
	RS_HOOK(sym, params)                                                                       \
	{                                                                                          \
		struct rs_call call;                                                               \
		CUresult r;                                                                        \
		RS_ENTER(t, sym, args);                                                            \
		rs_call_begin(&call, t, RS_EP_##sym, RS_CALL_KERNEL, stream, RS_PLAIN, NULL);      \
		call.everything = 1;                                                               \
		RS_CALL(t, &call, r, sym, args);                                                   \
		RS_LEAVE(t, r);                                                                    \
	}
LAUNCH_OLD(cuLaunch, NULL, (CUfunction f), (f))
LAUNCH_OLD(cuLaunchGrid, NULL, (CUfunction f, int grid_width, int grid_height),
	   (f, grid_width, grid_height))
LAUNCH_OLD(cuLaunchGridAsync, hStream,
	   (CUfunction f, int grid_width, int grid_height, CUstream hStream),
	   (f, grid_width, grid_height, hStream))
LAUNCH_OLD(cuLaunchCooperativeKernelMultiDevice,
	   launchParamsList &&numDevices ? launchParamsList->hStream : NULL,
	   (CUDA_LAUNCH_PARAMS * launchParamsList, unsigned int numDevices, unsigned int flags),
	   (launchParamsList, numDevices, flags))
