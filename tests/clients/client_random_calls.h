/* SPDX-License-Identifier: MIT */
/*
 * The calls of random programs: each is made on the device, by one of the entry points that can, and on the model.
 * Included by client_random.c only. Numbers of words throughout; a byte is never alone, except in fills.
 */
#ifndef TESTS_CLIENTS_CLIENT_RANDOM_CALLS_H
#define TESTS_CLIENTS_CLIENT_RANDOM_CALLS_H

#include "tests/clients/client_random_graph.h"
#include "tests/clients/client_random_ptx.h"

enum op_kind {
	OP_FILL,
	OP_COPY,
	OP_UPLOAD,
	OP_POKE,  /* a word, by the stream itself */
	OP_STORE, /* state from product */
	OP_MIX,	  /* state from itself and a state */
	OP_RED,
	OP_MAKE,  /* product from states */
	OP_CHAIN, /* product from product */
	OP_KINDS
};

/* Rows of cols words; from one to the next, and from a layer to the next, it is so many words on each side. */
struct shape {
	unsigned cols, rows, layers, dpitch, spitch, dheight, sheight;
};

struct op {
	enum op_kind kind;
	unsigned id, d, s, t, doff, soff, toff, value;
	struct shape shape;
};

enum { Q_LEGACY = 3, Q_OWN = 5, Q_OTHER = 7 };

extern CUresult cuLaunchKernel_ptsz(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
				    unsigned, unsigned, CUstream, void **, void **);
extern CUresult cuMemcpyDtoDAsync_v2_ptsz(dev, dev, size_t, CUstream);
extern CUresult cuMemcpyHtoDAsync_v2_ptsz(dev, const void *, size_t, CUstream);
extern CUresult cuMemcpyAsync_ptsz(dev, dev, size_t, CUstream);
extern CUresult cuMemcpyDtoD_v2_ptds(dev, dev, size_t);
extern CUresult cuMemcpyHtoD_v2_ptds(dev, const void *, size_t);
extern CUresult cuMemcpyDtoH_v2_ptds(void *, dev, size_t);
extern CUresult cuMemcpy_ptds(dev, dev, size_t);
extern CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D *);
extern CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D *);
extern CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D *, CUstream);
extern CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D *, CUstream);
extern CUresult cuStreamWriteValue32_v2_ptsz(CUstream, dev, cuuint32_t, unsigned);
extern CUresult cuMemsetD8Async_ptsz(dev, unsigned char, size_t, CUstream);
extern CUresult cuMemsetD16Async_ptsz(dev, unsigned short, size_t, CUstream);
extern CUresult cuMemsetD32Async_ptsz(dev, unsigned, size_t, CUstream);
extern CUresult cuMemsetD32_v2_ptds(dev, unsigned, size_t);
extern CUresult cuMemsetD2D32Async_ptsz(dev, size_t, unsigned, size_t, size_t, CUstream);
extern CUresult cuMemsetD2D8_v2_ptds(dev, size_t, unsigned char, size_t, size_t);

static const char *const op_names[] = {"fill", "copy", "upload", "poke", "store",
				       "mix",  "red",  "make",	 "chain"};
static const char *const memory_names[] = {"device",  "pitch", "slab",	"pool", "mapped",
					   "aliased", "fresh", "async", "slot"};
static int list, depth_now; /* --list: what is called goes to stderr */

#define TELL(...)                                                                                  \
	(list ? (void)(fprintf(stderr, "%*s", 2 * depth_now, ""), fprintf(stderr, __VA_ARGS__))    \
	      : (void)0)

static CUmodule module;
static CUcontext context;
static dev zero; /* a word that is 0 */
static unsigned *host_area;
static size_t host_used;
#define HOST_WORDS (1u << 20)

static unsigned *source[MAXOP]; /* what a call uploads, the same each time */

/* Host memory that stays as it is until the step is over. */
static unsigned *host_words(unsigned n)
{
	unsigned *p = host_area + host_used;

	host_used += n;
	if (host_used > HOST_WORDS)
		fail("host memory", CUDA_ERROR_OUT_OF_MEMORY);
	return p;
}

static unsigned *pageable_words(unsigned n)
{
	static unsigned *block;
	static size_t used;

	if (!block)
		block = malloc(HOST_WORDS * 4);
	used = used + n > HOST_WORDS ? 0 : used;
	used += n;
	return block + used - n;
}

/*
 * How a call is made, the same in the forward and in its replays: by an entry point that waits (`now`), by one of those for
 * which no stream means the thread's own (`own`), and by which of several.
 */
struct way {
	int now, own, graph;
	unsigned how;
};

static struct way way_of(unsigned id, unsigned now, unsigned hows)
{
	struct way w = {.now = now && !pick(id, 0, "now", now),
			.own = !pick(id, 0, "own", 3),
			.how = pick(id, 0, "how", hows)};

	w.graph = !w.now && !pick(id, 0, "graph", 4);
	return w;
}

/* Where it runs; a call that waits does so on the stream that is nobody's or the thread's. */
static unsigned stream_for(unsigned at, const struct way *w)
{
	unsigned q = w->now ? w->own ? Q_OWN : Q_LEGACY : pick(at, 0, "stream", NSTREAM);

	return q != Q_OWN && q != Q_OTHER ? q : other_thread ? Q_OTHER : Q_OWN;
}

/* What such an entry point gets as stream. */
static CUstream handle(unsigned q, const struct way *w)
{
	if (w->own && (q == Q_OWN || q == Q_OTHER))
		return NULL;
	return w->own && q == Q_LEGACY ? CU_STREAM_LEGACY : streams[q];
}

/* The parts of `shape`, of which do_row gets the first words' numbers. */
#define EACH_ROW(sh, d, s)                                                                         \
	for (unsigned l_ = 0, r_ = 0, d = 0, s = 0; l_ < (sh)->layers;                             \
	     r_ + 1 < (sh)->rows ? r_++ : (r_ = 0, l_++),                                          \
		      d = (l_ * (sh)->dheight + r_) * (sh)->dpitch,                                \
		      s = (l_ * (sh)->sheight + r_) * (sh)->spitch)

static unsigned span(const struct shape *sh, unsigned pitch, unsigned height)
{
	return ((sh->layers - 1) * height + sh->rows - 1) * pitch + sh->cols;
}

/* --- kernels -------------------------------------------------------------------------------------- */

struct arguments {
	dev d, s, t;
	unsigned n, k;
};

static CUfunction function(const char *name, const char *variant)
{
	char text[32];
	CUfunction f;

	snprintf(text, sizeof(text), "%s%s", name, variant);
	MUST(cuModuleGetFunction(&f, module, text));
	return f;
}

static void launch_packed(CUfunction f, unsigned blocks, CUstream s, void *packed, size_t bytes)
{
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, packed, CU_LAUNCH_PARAM_BUFFER_SIZE,
			 &bytes, CU_LAUNCH_PARAM_END};

	MUST(cuLaunchKernel(f, blocks, 1, 1, 32, 1, 1, 0, s, NULL, extra));
}

static void launch_ex(CUfunction f, unsigned blocks, CUstream s, void **params)
{
	const CUlaunchConfig config = {.gridDimX = blocks,
				       .gridDimY = 1,
				       .gridDimZ = 1,
				       .blockDimX = 32,
				       .blockDimY = 1,
				       .blockDimZ = 1,
				       .hStream = s};

	MUST(cuLaunchKernelEx(&config, f, params, NULL));
}

/* As before CUDA 4: nobody sees the arguments, so it may write anything. In vague programs only, between windows. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void launch_old(CUfunction f, unsigned blocks, CUstream s, void *packed, unsigned bytes)
{
	MUST(cuFuncSetBlockShape(f, 32, 1, 1));
	MUST(cuParamSetSize(f, bytes));
	MUST(cuParamSetv(f, 0, packed, bytes));
	MUST(cuLaunchGridAsync(f, (int)blocks, 1, s));
}
#pragma GCC diagnostic pop

/* loose: nobody may know how far it reaches, which for a slab is all of it. */
static void launch(const char *name, struct arguments a, unsigned id, const struct way *w,
		   CUstream s, int loose)
{
	static const char *const variants[] = {"", "", "_struct", "_loose"};
	const char *variant = variants[pick(id, 0, "variant", loose ? 4 : 3)];
	CUfunction f = function(name, variant);
	void *plain[] = {&a.d, &a.s, &a.t, &a.n, &a.k, &zero}, *packed[] = {&a};
	void **params = variant[0] && variant[1] == 's' ? packed : plain;
	unsigned blocks = (a.n + 31) / 32;

	if (seed % 4 == 3 && id >= 2000 && !w->own && w->how == 3 && !variant[0])
		launch_old(f, blocks, s, &a, sizeof(a));
	else if (w->graph)
		graph_kernel(id, f, blocks, params, w->own, s);
	else if (w->own)
		MUST(cuLaunchKernel_ptsz(f, blocks, 1, 1, 32, 1, 1, 0, s, params, NULL));
	else if (w->how == 1 &&
		 !(variant[0] && variant[1] == 'l')) /* its last is not in the struct */
		launch_packed(f, blocks, s, &a, sizeof(a));
	else if (w->how == 2)
		launch_ex(f, blocks, s, params);
	else if (w->how == 3)
		MUST(cuLaunchCooperativeKernel(f, blocks, 1, 1, 32, 1, 1, 0, s, params));
	else
		MUST(cuLaunchKernel(f, blocks, 1, 1, 32, 1, 1, 0, s, params, NULL));
}

static void model_kernel(const char *name, unsigned *d, const unsigned *s, const unsigned *t,
			 unsigned n, unsigned k)
{
	for (unsigned i = 0; i < n; i++)
		if (name[1] == 'a')
			d[i] = s[i] * k + t[i] + i;
		else if (name[1] == 'i')
			d[i] = d[i] * 3 + s[i] * k + 1;
		else
			d[i] += s[i] * k;
}

/* The first n words of what starts at these words of three buffers; id says how, at says where it runs. */
static void kernel(const char *name, struct buf *d, unsigned doff, struct buf *s, unsigned soff,
		   struct buf *t, unsigned toff, unsigned n, unsigned k, unsigned id, unsigned at,
		   int loose)
{
	const struct way w = way_of(id, 0, 4);
	unsigned q = stream_for(at, &w);
	struct arguments a = {.d = place(d, at, "d") + doff * 4,
			      .s = place(s, at, "s") + soff * 4,
			      .t = place(t, at, "t") + toff * 4,
			      .n = n,
			      .k = k};
	CUevent e;

	order_write(q, d);
	order_read(q, s);
	order_read(q, t);
	launch(name, a, id, &w, handle(q, &w), loose);
	e = record(q);
	did_read(s, q, e);
	did_read(t, q, e);
	did_write(d, e);
	model_kernel(name, d->model + doff, s->model + soff, t->model + toff, n, k);
}

/* --- copies --------------------------------------------------------------------------------------- */

/* host: where the source is in the host's memory. */
static CUDA_MEMCPY3D strided(const struct shape *sh, dev d, dev s, const void *host)
{
	return (CUDA_MEMCPY3D){
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = d,
		.dstPitch = sh->dpitch * 4,
		.dstHeight = sh->dheight,
		.srcMemoryType = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
		.srcHost = host,
		.srcDevice = s,
		.srcPitch = sh->spitch * 4,
		.srcHeight = sh->sheight,
		.WidthInBytes = sh->cols * 4,
		.Height = sh->rows,
		.Depth = sh->layers,
	};
}

static void copy_3d(const struct shape *sh, dev d, dev s, const void *host, const struct way *w,
		    CUstream to)
{
	const CUDA_MEMCPY3D p = strided(sh, d, s, host);

	if (w->now && w->own)
		MUST(cuMemcpy3D_v2_ptds(&p));
	else if (w->now)
		MUST(cuMemcpy3D(&p));
	else if (w->own)
		MUST(cuMemcpy3DAsync_v2_ptsz(&p, to));
	else
		MUST(cuMemcpy3DAsync(&p, to));
}

static void copy_2d(const struct shape *sh, dev d, dev s, const void *host, const struct way *w,
		    CUstream to)
{
	const CUDA_MEMCPY2D p = {
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = d,
		.dstPitch = sh->dpitch * 4,
		.srcMemoryType = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
		.srcHost = host,
		.srcDevice = s,
		.srcPitch = sh->spitch * 4,
		.WidthInBytes = sh->cols * 4,
		.Height = sh->rows,
	};

	if (w->now && w->own)
		MUST(cuMemcpy2D_v2_ptds(&p));
	else if (w->now)
		MUST(sh->rows % 2 ? cuMemcpy2D(&p) : cuMemcpy2DUnaligned(&p));
	else if (w->own)
		MUST(cuMemcpy2DAsync_v2_ptsz(&p, to));
	else
		MUST(cuMemcpy2DAsync(&p, to));
}

static void copy_batch(const struct shape *sh, dev d, dev s, CUstream stream)
{
	CUmemcpyAttributes attribute = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
	size_t bytes[16], first = 0, n = 0;
	dev to[16], from[16];

	EACH_ROW(sh, x, y)
	{
		to[n] = d + x * 4;
		from[n] = s + y * 4;
		bytes[n++] = sh->cols * 4;
	}
	MUST(cuMemcpyBatchAsync(to, from, bytes, n, &attribute, &first, 1, stream));
}

static void copy_1d(dev d, dev s, size_t bytes, const struct way *w, CUstream to, unsigned how)
{
	if (w->now && w->own)
		MUST(how ? cuMemcpy_ptds(d, s, bytes) : cuMemcpyDtoD_v2_ptds(d, s, bytes));
	else if (w->now)
		MUST(how > 1 ? cuMemcpyPeer(d, context, s, context, bytes)
		     : how   ? cuMemcpy(d, s, bytes)
			     : cuMemcpyDtoD(d, s, bytes));
	else if (w->own)
		MUST(how ? cuMemcpyAsync_ptsz(d, s, bytes, to)
			 : cuMemcpyDtoDAsync_v2_ptsz(d, s, bytes, to));
	else
		MUST(how > 1 ? cuMemcpyPeerAsync(d, context, s, context, bytes, to)
		     : how   ? cuMemcpyAsync(d, s, bytes, to)
			     : cuMemcpyDtoDAsync(d, s, bytes, to));
}

static void upload_1d(dev d, const void *host, size_t bytes, const struct way *w, CUstream to,
		      unsigned how)
{
	dev s = (dev)(uintptr_t)host;

	if (w->now && w->own)
		MUST(how ? cuMemcpy_ptds(d, s, bytes) : cuMemcpyHtoD_v2_ptds(d, host, bytes));
	else if (w->now)
		MUST(how ? cuMemcpy(d, s, bytes) : cuMemcpyHtoD(d, host, bytes));
	else if (w->own)
		MUST(how ? cuMemcpyAsync_ptsz(d, s, bytes, to)
			 : cuMemcpyHtoDAsync_v2_ptsz(d, host, bytes, to));
	else
		MUST(how ? cuMemcpyAsync(d, s, bytes, to) : cuMemcpyHtoDAsync(d, host, bytes, to));
}

static int is_batch(const struct shape *sh, const struct way *w)
{
	return !w->now && !w->graph && w->how % 4 == 2 && sh->rows > 0;
}

/* One copy of all rows, or one for each. */
static void copy_device(const struct shape *sh, dev d, dev s, const struct way *w, CUstream stream,
			unsigned id)
{
	const CUDA_MEMCPY3D p = strided(sh, d, s, NULL);

	if (w->graph) {
		graph_copy(id, &p, context, w->own, stream);
		return;
	}
	if (sh->layers == 1 && w->how % 4 == 0)
		copy_2d(sh, d, s, NULL, w, stream);
	else if (w->how % 4 == 1)
		copy_3d(sh, d, s, NULL, w, stream);
	else if (is_batch(sh, w))
		copy_batch(sh, d, s, stream);
	else
		EACH_ROW(sh, x, y)
	copy_1d(d + x * 4, s + y * 4, sh->cols * 4, w, stream, w->how / 4 % 3);
}

static void upload_device(const struct shape *sh, dev d, const unsigned *host, const struct way *w,
			  CUstream stream)
{
	if (sh->layers == 1 && w->how % 3 == 0)
		copy_2d(sh, d, 0, host, w, stream);
	else if (w->how % 3 == 1)
		copy_3d(sh, d, 0, host, w, stream);
	else
		EACH_ROW(sh, x, y)
	upload_1d(d + x * 4, host + y, sh->cols * 4, w, stream, w->how / 3 % 2);
}

static void copy(const struct shape *sh, struct buf *d, unsigned doff, struct buf *s, unsigned soff,
		 unsigned id, unsigned at)
{
	const struct way w = way_of(id, 6, 12);
	unsigned q = stream_for(at, &w);
	dev to = place(d, at, "d") + doff * 4, from = place(s, at, "s") + soff * 4;
	CUevent e;

	if (is_batch(sh, &w))
		q %= 3; /* not on the stream that is nobody's */
	order_write(q, d);
	order_read(q, s);
	copy_device(sh, to, from, &w, handle(q, &w), id);
	e = record(q);
	did_read(s, q, e);
	did_write(d, e);
	EACH_ROW(sh, x, y)
	memcpy(d->model + doff + x, s->model + soff + y, sh->cols * 4);
}

static void upload(const struct shape *sh, struct buf *d, unsigned doff, unsigned id, unsigned at)
{
	const struct way w = way_of(id, 3, 6);
	unsigned q = stream_for(at, &w), n = span(sh, sh->spitch, sh->sheight);
	unsigned *words = source[id];

	if (!words) {
		words = source[id] = pick(id, 0, "pinned", 2) ? host_words(n) : pageable_words(n);
		for (unsigned i = 0; i < n; i++)
			words[i] = pick(id, i, "upload", 1u << 30);
	}
	order_write(q, d);
	upload_device(sh, place(d, at, "d") + doff * 4, words, &w, handle(q, &w));
	did_write(d, record(q));
	EACH_ROW(sh, x, y)
	memcpy(d->model + doff + x, words + y, sh->cols * 4);
}

/* --- fills ---------------------------------------------------------------------------------------- */

static void fill_2d(const struct shape *sh, dev d, unsigned v, const struct way *w, CUstream s)
{
	size_t pitch = sh->dpitch * 4, size = 1u << w->how, cols = sh->cols * 4 / size,
	       rows = sh->rows;

	if (w->now && w->own)
		MUST(cuMemsetD2D8_v2_ptds(d, pitch, (unsigned char)v, sh->cols * 4, rows));
	else if (w->now)
		MUST(size == 1	 ? cuMemsetD2D8(d, pitch, (unsigned char)v, cols, rows)
		     : size == 2 ? cuMemsetD2D16(d, pitch, (unsigned short)v, cols, rows)
				 : cuMemsetD2D32(d, pitch, v, cols, rows));
	else if (w->own)
		MUST(cuMemsetD2D32Async_ptsz(d, pitch, v, sh->cols, rows, s));
	else
		MUST(size == 1	 ? cuMemsetD2D8Async(d, pitch, (unsigned char)v, cols, rows, s)
		     : size == 2 ? cuMemsetD2D16Async(d, pitch, (unsigned short)v, cols, rows, s)
				 : cuMemsetD2D32Async(d, pitch, v, cols, rows, s));
}

static void fill_1d(dev d, unsigned v, size_t words, const struct way *w, CUstream s)
{
	size_t size = 1u << w->how, n = words * 4 / size;

	if (w->now && w->own)
		MUST(cuMemsetD32_v2_ptds(d, v, words));
	else if (w->now)
		MUST(size == 1	 ? cuMemsetD8(d, (unsigned char)v, n)
		     : size == 2 ? cuMemsetD16(d, (unsigned short)v, n)
				 : cuMemsetD32(d, v, n));
	else if (w->own)
		MUST(size == 1	 ? cuMemsetD8Async_ptsz(d, (unsigned char)v, n, s)
		     : size == 2 ? cuMemsetD16Async_ptsz(d, (unsigned short)v, n, s)
				 : cuMemsetD32Async_ptsz(d, v, n, s));
	else
		MUST(size == 1	 ? cuMemsetD8Async(d, (unsigned char)v, n, s)
		     : size == 2 ? cuMemsetD16Async(d, (unsigned short)v, n, s)
				 : cuMemsetD32Async(d, v, n, s));
}

static void fill_graph(const struct shape *sh, dev d, unsigned v, unsigned id, const struct way *w,
		       CUstream s)
{
	unsigned size = 1u << w->how;
	const CUDA_MEMSET_NODE_PARAMS p = {.dst = d,
					   .pitch = sh->dpitch * 4,
					   .value = size < 4 ? v & ((1u << 8 * size) - 1) : v,
					   .elementSize = size,
					   .width = sh->cols * 4 / size,
					   .height = sh->rows};

	graph_fill(id, &p, context, w->own, s);
}

/* The value is one byte four times, so that every width of the elements does the same. */
static void fill(const struct shape *shape, struct buf *b, unsigned off, unsigned value,
		 unsigned id, unsigned at)
{
	const struct way w = way_of(id, 6, 3);
	struct shape sh = *shape;
	unsigned byte = value & 255, v = byte * 0x01010101u, q = stream_for(at, &w);
	dev d = place(b, at, "d") + off * 4;

	sh.layers = 1;
	order_write(q, b);
	if (w.graph)
		fill_graph(&sh, d, v, id, &w, handle(q, &w));
	else if (sh.rows > 1)
		fill_2d(&sh, d, v, &w, handle(q, &w));
	else
		fill_1d(d, v, sh.cols, &w, handle(q, &w));
	did_write(b, record(q));
	for (unsigned r = 0; r < sh.rows; r++)
		memset(b->model + off + r * sh.dpitch, (int)byte, sh.cols * 4);
}

static void poke(struct buf *b, unsigned off, unsigned value, unsigned id, unsigned at)
{
	const struct way w = way_of(id, 0, 3);
	unsigned q = stream_for(at, &w);
	dev d = place(b, at, "d") + off * 4;
	CUstreamBatchMemOpParams op = {.writeValue = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32,
						      .address = d,
						      .value = value}};

	order_write(q, b);
	if (w.own)
		MUST(cuStreamWriteValue32_v2_ptsz(handle(q, &w), d, value, 0));
	else if (w.how == 0)
		MUST(cuStreamWriteValue32(handle(q, &w), d, value, 0));
	else
		MUST(cuStreamBatchMemOp(handle(q, &w), 1, &op, 0));
	did_write(b, record(q));
	b->model[off] = value;
}

/* --- one call ------------------------------------------------------------------------------------- */

/* made: what the window has made last, or NULL; a new one takes its place. */
static void do_op(const struct op *o, struct buf **made, unsigned at)
{
	struct buf *d = &state[o->d], *s = &state[o->s], *t = &state[o->t], *p;
	int loose = seed % 4 == 3 || (d->kind != M_SLAB && s->kind != M_SLAB && t->kind != M_SLAB);

	TELL("%u %s s%u(%s)+%u s%u(%s)+%u s%u+%u %ux%ux%u%s\n", o->id, op_names[o->kind], o->d,
	     memory_names[d->kind], o->doff, o->s, memory_names[s->kind], o->soff, o->t, o->toff,
	     o->shape.cols, o->shape.rows, o->shape.layers, loose ? " (loose)" : "");
	switch (o->kind) {
	case OP_FILL:
		fill(&o->shape, d, o->doff, o->value, o->id, at);
		break;
	case OP_COPY:
		copy(&o->shape, d, o->doff, s, o->soff, o->id, at);
		break;
	case OP_UPLOAD:
		upload(&o->shape, d, o->doff, o->id, at);
		break;
	case OP_POKE:
		poke(d, o->doff, o->value, o->id, at);
		break;
	case OP_STORE:
		copy(&o->shape, d, o->doff, *made, 0, o->id, at);
		break;
	case OP_MIX:
	case OP_RED:
		kernel(o->kind == OP_MIX ? "mix" : "red", d, o->doff, s, o->soff, s, o->soff,
		       o->shape.cols, o->value, o->id, at, loose);
		break;
	case OP_MAKE:
	case OP_CHAIN:
		p = make_product(at, pick(at, 0, "making", 3),
				 loose && o->kind == OP_MAKE && seed % 4 != 3);
		TELL("  product %zu (%s)\n", (size_t)(p - product), memory_names[p->kind]);
		if (o->kind == OP_MAKE)
			kernel("make", p, 0, s, o->soff, t, o->toff, PRODUCT, o->value, o->id, at,
			       loose);
		else
			kernel("make", p, 0, *made, 0, *made, 0, PRODUCT, o->value, o->id, at, 0);
		*made = p;
		break;
	case OP_KINDS:
		break;
	}
}

#endif
