/* SPDX-License-Identifier: MIT */
/*
 * Surface and texture instructions of the engine: every geometry, width and mode, all lanes and every
 * other one, against a scalar reference; what they fault on, and what is refused at load.
 */
#include <math.h>

#include "tests/simunit/exec_kit.h"

#define HEAD ".version 8.5\n.target sm_90\n.address_size 64\n"
#define N    128 /* threads */
#define PAD  0x5a5a5a5a5a5a5a5aull

static char err[300];
static int32_t coords[N][4];
static uint64_t data[N][4];
static uint8_t store[1 << 15] __attribute__((aligned(512))), before[sizeof(store)];

struct geometry {
	const char *name, *at; /* its coordinates as operands */
	unsigned dims, layered;
};
static const struct geometry geometries[] = {
	{"1d", "{%x}", 1, 0},	   {"1d", "%x", 1, 0},
	{"2d", "{%x, %y}", 2, 0},  {"3d", "{%x, %y, %z, %z}", 3, 0},
	{"a1d", "{%z, %x}", 1, 1}, {"a2d", "{%z, %x, %y, %y}", 2, 1},
};
#define GEOMETRIES (sizeof geometries / sizeof *geometries)

static struct sim_view view(const struct geometry *g, struct sim_texel t, int is_surface)
{
	struct sim_view v = {.handle = 7,
			     .is_surface = (uint8_t)is_surface,
			     .dims = (uint8_t)g->dims,
			     .layered = (uint8_t)g->layered,
			     .texel = t,
			     .nlevels = 1};

	v.level[0].data = store;
	v.level[0].width = 9;
	v.level[0].height = g->dims > 1 ? 5 : 1;
	v.level[0].depth = g->dims == 3 || g->layered ? 4 : 1;
	v.level[0].pitch = v.level[0].width * t.bytes;
	v.level[0].slice = v.level[0].pitch * v.level[0].height;
	return v;
}

static void fill(void)
{
	for (unsigned i = 0; i < sizeof(store); i++)
		before[i] = store[i] = (uint8_t)kit_random();
}

/* Around each edge and inside; x in steps of `step`. */
static void aim(const struct sim_view *v, unsigned step, int inside)
{
	const int32_t size[3] = {(int32_t)(v->level[0].width * v->texel.bytes / step),
				 (int32_t)v->level[0].height, (int32_t)v->level[0].depth};

	for (unsigned i = 0; i < N; i++)
		for (unsigned d = 0; d < 3; d++) {
			int32_t c = (int32_t)(kit_random() % (uint64_t)size[d]);

			/* a dimension that the geometry lacks has one place */
			if (!inside && kit_random() % 5 == 0)
				c = kit_random() % 2 ? -1 - c : size[d] + c;
			coords[i][d] = d ? c : c * (int32_t)step;
		}
}

static const char prologue[] = HEAD
	".visible .entry k(.param .u64 k0, .param .u64 k1, .param .u64 k2, .param .u32 k3)\n"
	"{\n.reg .pred %p;\n.reg .b16 %h<4>;\n.reg .b32 %w<4>;\n.reg .b64 %v<4>;\n"
	".reg .f32 %f<4>;\n.reg .b32 %x, %y, %z, %l, %i, %odd, %t;\n.reg .b64 %o, %c, %d, %s;\n"
	".reg .f32 %lf;\n"
	"ld.param.u64 %o, [k0];\nld.param.u64 %c, [k1];\nld.param.u64 %d, [k2];\n"
	"ld.param.u32 %odd, [k3];\nmov.u32 %t, %ctaid.x;\nmov.u32 %x, %ntid.x;\n"
	"mov.u32 %i, %tid.x;\nmad.lo.u32 %i, %t, %x, %i;\nand.b32 %t, %i, %odd;\n"
	"setp.eq.u32 %p, %t, %odd;\nmul.wide.u32 %s, %i, 16;\nadd.u64 %c, %c, %s;\n"
	"mul.wide.u32 %s, %i, 32;\nadd.u64 %d, %d, %s;\n"
	"ld.global.v4.u32 {%x, %y, %z, %l}, [%c];\n";

static const char reg_of[] = {[1] = 'h', [2] = 'h', [4] = 'w', [8] = 'v'};

/* Registers of n elements: "{%w0, %w1}", or "%w0". */
static const char *regs(char letter, unsigned n, char *buf)
{
	char *p = buf;

	p += sprintf(p, n > 1 ? "{" : "");
	for (unsigned e = 0; e < n; e++)
		p += sprintf(p, "%s%%%c%u", e ? ", " : "", letter, e);
	sprintf(p, n > 1 ? "}" : "");
	return buf;
}

/* The data array from or to registers, `size` bytes an element. */
static void transfer(char *p, const char *op, char letter, unsigned size, unsigned n)
{
	p += strlen(p);
	for (unsigned e = 0; e < n; e++)
		p += !strcmp(op, "ld") ? sprintf(p, "ld.global.u%u %%%c%u, [%%d+%u];\n", size * 8,
						 letter, e, e * 8)
				       : sprintf(p, "st.global.u%u [%%d+%u], %%%c%u;\n", size * 8,
						 e * 8, letter, e);
}

static enum sim_fault_kind run(const char *ptx, const struct sim_view *v, uint64_t handle,
			       uint32_t odd, struct sim_fault *f, struct sim_counts *c)
{
	struct {
		uint64_t handle;
		void *coords, *data;
		uint32_t odd;
	} params = {handle, coords, data, odd};
	struct sim_range ranges[2] = {{.base = (uintptr_t)coords, .size = sizeof(coords)},
				      {.base = (uintptr_t)data, .size = sizeof(data)}};

	kit_views = v;
	kit_nviews = 1;
	err[0] = 0;
	return kit_run(ptx, "k", N / 64, 64, &params, ranges, 2, err, sizeof(err), f, c);
}

/* ---- surfaces ---- */

static const char *const modes[] = {"trap", "clamp", "zero"};

/* Byte offset of an access, -1: nowhere. */
static int64_t place(const struct sim_view *v, const int32_t c[4], unsigned unit, unsigned bytes,
		     int clamp)
{
	int64_t at[3] = {(int64_t)c[0] * unit, v->dims > 1 ? c[1] : 0,
			 v->dims == 3 || v->layered ? c[2] : 0};
	int64_t last[3] = {(int64_t)(v->level[0].pitch - bytes), v->level[0].height - 1,
			   v->level[0].depth - 1};

	for (unsigned d = 0; d < 3; d++) {
		if (clamp && at[d] < 0)
			at[d] = 0;
		if (clamp && at[d] > last[d])
			at[d] = last[d];
		if (at[d] < 0 || at[d] > last[d])
			return -1;
	}
	return (int64_t)(at[2] * (int64_t)v->level[0].slice + at[1] * (int64_t)v->level[0].pitch) +
	       at[0];
}

static unsigned compare_load(const struct sim_view *v, unsigned size, unsigned n, int clamp,
			     uint32_t odd)
{
	unsigned bad = 0;

	for (unsigned i = 0; i < N; i++) {
		int64_t at = place(v, coords[i], 1, size * n, clamp);

		for (unsigned e = 0; e < 4; e++) {
			uint64_t want = PAD;

			if (e < n && (i & odd) == odd) {
				uint64_t x = 0;

				if (at >= 0)
					memcpy(&x, before + at + e * size, size);
				memcpy(&want, &x, size);
			}
			bad += memcmp(&data[i][e], &want, 8) != 0;
		}
	}
	return bad;
}

static void load_form(const struct geometry *g, unsigned size, unsigned n, unsigned mode)
{
	struct sim_view v = view(g, (struct sim_texel){SIM_CHAN_UINT, 4, 32, 16}, 1);
	char ptx[4096], list[64], vec[4] = "", letter = reg_of[size];
	struct sim_counts c;

	if (n > 1)
		sprintf(vec, ".v%u", n);
	for (uint32_t odd = 0; odd < 2; odd++) {
		enum sim_fault_kind kind;

		fill();
		aim(&v, size * n, mode == 0);
		memset(data, 0x5a, sizeof(data));
		strcpy(ptx, prologue);
		transfer(ptx, "ld", letter, size, n);
		sprintf(ptx + strlen(ptx), "@%%p suld.b.%s%s%s.b%u.%s %s, [%%o, %s];\n", g->name,
			size == 4 && n == 2 ? ".ca" : "", vec, size * 8, modes[mode],
			regs(letter, n, list), g->at);
		transfer(ptx, "st", letter, size, n);
		strcat(ptx, "ret;\n}\n");
		kind = run(ptx, &v, 7, odd, NULL, &c);
		ok(kind == SIM_OK && !compare_load(&v, size, n, mode == 1, odd),
		   "suld.b.%s%s.b%u.%s, %s lanes %s", g->name, vec, size * 8, modes[mode],
		   odd ? "odd" : "all", err);
	}
}

static void store_form(const struct geometry *g, unsigned size, unsigned n, unsigned mode)
{
	struct sim_view v = view(g, (struct sim_texel){SIM_CHAN_UINT, 4, 32, 16}, 1);
	char ptx[4096], list[64], vec[4] = "", letter = reg_of[size];

	if (n > 1)
		sprintf(vec, ".v%u", n);
	for (uint32_t odd = 0; odd < 2; odd++) {
		enum sim_fault_kind kind;

		fill();
		aim(&v, size * n, mode == 0);
		for (unsigned i = 0; i < N * 4; i++)
			(&data[0][0])[i] = kit_random();
		strcpy(ptx, prologue);
		transfer(ptx, "ld", letter, size, n);
		sprintf(ptx + strlen(ptx), "@%%p sust.b.%s%s%s.b%u.%s [%%o, %s], %s;\nret;\n}\n",
			g->name, size == 4 && n == 2 ? ".wb" : "", vec, size * 8, modes[mode],
			g->at, regs(letter, n, list));
		kind = run(ptx, &v, 7, odd, NULL, NULL);
		/* Lanes store in ascending order. */
		for (unsigned i = odd; i < N; i += 1 + odd) {
			int64_t at = place(&v, coords[i], 1, size * n, mode == 1);

			for (unsigned e = 0; e < n && at >= 0; e++)
				memcpy(before + at + e * size, &data[i][e], size);
		}
		ok(kind == SIM_OK && !memcmp(store, before, sizeof(store)),
		   "sust.b.%s%s.b%u.%s, %s lanes %s", g->name, vec, size * 8, modes[mode],
		   odd ? "odd" : "all", err);
	}
}

/* ---- formatted stores ---- */

static const struct {
	const char *name;
	struct sim_texel t;
} texels[] = {
	{"4 x u8", {SIM_CHAN_UINT, 4, 8, 4}},	   {"2 x s16", {SIM_CHAN_SINT, 2, 16, 4}},
	{"1 x u32", {SIM_CHAN_UINT, 1, 32, 4}},	   {"2 x s8", {SIM_CHAN_SINT, 2, 8, 2}},
	{"4 x unorm8", {SIM_CHAN_UNORM, 4, 8, 4}}, {"2 x snorm16", {SIM_CHAN_SNORM, 2, 16, 4}},
	{"4 x f32", {SIM_CHAN_FLOAT, 4, 32, 16}},  {"2 x f16", {SIM_CHAN_FLOAT, 2, 16, 4}},
};
#define TEXELS (sizeof texels / sizeof *texels)

/* One component as the texel keeps it. */
static uint32_t packed(struct sim_texel t, uint32_t x)
{
	double top = ldexp(1, t.bits) - 1, half = ldexp(1, t.bits - 1) - 1, f;
	float v;

	memcpy(&v, &x, 4);
	f = v;
	switch (t.channel) {
	case SIM_CHAN_UINT:
		return (uint32_t)fmin(x, top);
	case SIM_CHAN_SINT:
		return (uint32_t)(int32_t)fmax(-half - 1, fmin((int32_t)x, half));
	case SIM_CHAN_UNORM:
		return (uint32_t)floor(fmin(fmax(f, 0), 1) * top + 0.5);
	case SIM_CHAN_SNORM:
		f = fmin(fmax(f, -1), 1) * half;
		return (uint32_t)(int32_t)(f < 0 ? ceil(f - 0.5) : floor(f + 0.5));
	default:
		if (t.bits == 32)
			return x;
		/* Multiples of 1/64 below 16 have a half's bits exactly. */
		for (uint32_t h = 0; h < 0x10000; h++) {
			double m = (h >> 10 & 31) ? 1 + (h & 1023) / 1024.0 : (h & 1023) / 512.0;
			double value = ldexp(m, (int)(h >> 10 & 31) - 15);

			if ((h >> 10 & 31) < 31 && (h >> 15 ? -value : value) == f &&
			    (h >> 15) == (x >> 31))
				return h;
		}
		return 0;
	}
}

static void formatted(const struct geometry *g, unsigned which, unsigned n)
{
	struct sim_texel t = texels[which].t;
	struct sim_view v = view(g, t, 1);
	char ptx[4096], list[64], vec[4] = "";
	int is_float = t.channel >= SIM_CHAN_UNORM;
	enum sim_fault_kind kind;

	if (n > 1)
		sprintf(vec, ".v%u", n);
	fill();
	aim(&v, t.bytes, 0);
	for (unsigned i = 0; i < N; i++) {
		coords[i][0] /= t.bytes;
		for (unsigned e = 0; e < 4; e++) {
			float f = (float)((int)(kit_random() % 2048) - 1024) / 64;

			data[i][e] = kit_random() >> (kit_random() % 32);
			if (t.channel == SIM_CHAN_UNORM || t.channel == SIM_CHAN_SNORM)
				f /= 8;
			if (is_float)
				memcpy(&data[i][e], &f, 4);
		}
	}
	strcpy(ptx, prologue);
	transfer(ptx, "ld", 'w', 4, n);
	sprintf(ptx + strlen(ptx), "sust.p.%s%s.b32.zero [%%o, %s], %s;\nret;\n}\n", g->name, vec,
		g->at, regs('w', n, list));
	kind = run(ptx, &v, 7, 0, NULL, NULL);
	for (unsigned i = 0; i < N; i++) {
		int64_t at = place(&v, coords[i], t.bytes, t.bytes, 0);

		for (unsigned e = 0; e < t.channels && at >= 0; e++) {
			uint32_t x = e < n ? packed(t, (uint32_t)data[i][e]) : 0;

			memcpy(before + at + e * t.bits / 8, &x, t.bits / 8);
		}
	}
	ok(kind == SIM_OK && !memcmp(store, before, sizeof(store)), "sust.p.%s%s of %s %s", g->name,
	   vec, texels[which].name, err);
}

/* ---- textures ---- */

struct sampling {
	unsigned address, filter, normalised, ints; /* ints: integer coordinates */
};

/* Component c of a texel, as a number. */
static double component(const struct sim_view *v, int64_t x, int64_t y, int64_t z, unsigned c)
{
	struct sim_texel t = v->texel;
	uint32_t raw = 0;
	int32_t s;
	float f;

	if (x < 0 || y < 0 || z < 0)
		return v->border[c];
	if (c >= t.channels)
		return c == 3;
	memcpy(&raw,
	       before + z * (int64_t)v->level[0].slice + y * (int64_t)v->level[0].pitch +
		       x * t.bytes + c * t.bits / 8,
	       t.bits / 8);
	s = t.bits == 8 ? (int8_t)raw : t.bits == 16 ? (int16_t)raw : (int32_t)raw;
	memcpy(&f, &raw, 4);
	switch (t.channel) {
	case SIM_CHAN_UINT:
		return raw;
	case SIM_CHAN_SINT:
		return s;
	case SIM_CHAN_UNORM:
		return (float)raw / (float)(ldexp(1, t.bits) - 1);
	case SIM_CHAN_SNORM:
		return fmaxf((float)s / (float)(ldexp(1, t.bits - 1) - 1), -1);
	default:
		return f;
	}
}

static int64_t wrapped(unsigned mode, int64_t i, int64_t n)
{
	if (mode == SIM_ADDR_WRAP)
		while (i < 0 || i >= n)
			i += i < 0 ? n : -n;
	else if (mode == SIM_ADDR_MIRROR)
		while (i < 0 || i >= n)
			i = i < 0 ? -1 - i : 2 * n - 1 - i;
	else if (mode == SIM_ADDR_CLAMP)
		i = i < 0 ? 0 : i >= n ? n - 1 : i;
	return i < 0 || i >= n ? -1 : i;
}

static double sampled(const struct sim_view *v, const int32_t c[4], const struct sampling *s,
		      unsigned comp)
{
	const int64_t n[3] = {v->level[0].width, v->level[0].height, v->level[0].depth};
	int64_t lo[3] = {0}, hi[3] = {0};
	double a[3] = {0}, sum = 0;

	if (v->layered)
		lo[2] = hi[2] = (uint32_t)c[2] < n[2] ? c[2] : n[2] - 1;
	for (unsigned d = 0; d < v->dims; d++) {
		float f;
		double x;

		memcpy(&f, &c[d], 4);
		x = s->ints ? c[d] : s->normalised ? (double)f * (double)n[d] : (double)f;
		x -= s->filter ? 0.5 : 0;
		lo[d] = wrapped(s->address, (int64_t)floor(x), n[d]);
		hi[d] = wrapped(s->address, (int64_t)floor(x) + 1, n[d]);
		a[d] = s->filter ? round((x - floor(x)) * 256) / 256 : 0;
	}
	for (unsigned k = 0; k < 8; k++) {
		double w = (k & 1 ? a[0] : 1 - a[0]) * (k & 2 ? a[1] : 1 - a[1]) *
			   (k & 4 ? a[2] : 1 - a[2]);

		if (w > 0)
			sum += w * component(v, k & 1 ? hi[0] : lo[0], k & 2 ? hi[1] : lo[1],
					     k & 4 ? hi[2] : lo[2], comp);
	}
	return sum;
}

static void aim_texture(const struct sim_view *v, const struct sampling *s)
{
	const unsigned n[3] = {v->level[0].width, v->level[0].height, v->level[0].depth};

	for (unsigned i = 0; i < N; i++)
		for (unsigned d = 0; d < 3; d++) {
			/* From one extent before to one behind, in steps finer than the weights. */
			float f = (float)(kit_random() % (3072 * n[d])) / 1024 - (float)n[d];

			if (s->normalised)
				f /= (float)n[d];
			coords[i][d] = (int)(kit_random() % (3 * n[d])) - (int)n[d];
			if (!s->ints && !(v->layered && d == 2))
				memcpy(&coords[i][d], &f, 4);
		}
}

static void texture(const struct geometry *g, struct sim_texel t, struct sampling s,
		    const char *dtype, int level)
{
	struct sim_view v = view(g, t, 0);
	char ptx[4096], at[64], *p;
	int is_float = !strcmp(dtype, "f32");
	unsigned bad = 0;
	enum sim_fault_kind kind;

	v.normalised = (uint8_t)s.normalised;
	v.filter = (uint8_t)s.filter;
	memset(v.address, (int)s.address, 3);
	for (unsigned c = 0; c < 4; c++)
		v.border[c] = (float)(3 + c);
	fill();
	if (t.channel == SIM_CHAN_FLOAT)
		for (unsigned i = 0; i < sizeof(store) / 4; i++) {
			float f = (float)((int)(kit_random() % 4096) - 2048);

			memcpy(store + 4 * i, &f, 4);
		}
	memcpy(before, store, sizeof(store));
	aim_texture(&v, &s);
	memset(data, 0, sizeof(data));
	strcpy(ptx, prologue);
	strcpy(at, g->at);
	/* The coordinates are bits in 32-bit registers: .f32 takes them. */
	p = ptx + strlen(ptx);
	p += sprintf(p, "mov.b32 %%lf, 0;\n");
	sprintf(p, "tex.%s%s.v4.%s.%s {%%w0, %%w1, %%w2, %%w3}, [%%o, %s]%s;\n",
		level ? "level." : "", g->name, dtype, s.ints ? "s32" : "f32", at,
		!level	 ? ""
		: s.ints ? ", 0"
			 : ", %lf");
	transfer(ptx, "st", 'w', 4, 4);
	strcat(ptx, "ret;\n}\n");
	kind = run(ptx, &v, 7, 0, NULL, NULL);
	for (unsigned i = 0; i < N; i++)
		for (unsigned c = 0; c < 4; c++) {
			double want = sampled(&v, coords[i], &s, c);
			uint32_t w = (uint32_t)data[i][c];
			float f = (float)want;

			if (!is_float)
				bad += w != (uint32_t)(int64_t)want;
			else
				bad += memcmp(&w, &f, 4) && fabs(want) + fabs((double)w) != 0;
		}
	ok(kind == SIM_OK && !bad, "tex%s.%s.%s.%s of %u x %u bits, mode %u%s%s %s",
	   level ? ".level" : "", g->name, dtype, s.ints ? "s32" : "f32", t.channels, t.bits,
	   s.address, s.filter ? ", filtered" : "", s.normalised ? ", normalised" : "", err);
}

static void textures(void)
{
	const struct sim_texel floats = {SIM_CHAN_FLOAT, 2, 32, 8},
			       ints = {SIM_CHAN_SINT, 4, 16, 8}, uints = {SIM_CHAN_UINT, 1, 8, 1},
			       un = {SIM_CHAN_UNORM, 4, 8, 4}, sn = {SIM_CHAN_SNORM, 2, 16, 4};

	for (unsigned i = 0; i < GEOMETRIES; i++) {
		const struct geometry *g = &geometries[i];

		for (unsigned mode = 0; mode < 4; mode++) {
			texture(g, floats, (struct sampling){mode, 0, 1, 0}, "f32", 0);
			texture(g, floats, (struct sampling){mode, 1, 1, 0}, "f32", 0);
		}
		texture(g, floats, (struct sampling){SIM_ADDR_CLAMP, 0, 0, 0}, "f32", 1);
		texture(g, floats, (struct sampling){SIM_ADDR_BORDER, 1, 0, 0}, "f32", 0);
		texture(g, floats, (struct sampling){SIM_ADDR_CLAMP, 0, 0, 1}, "f32", 0);
		texture(g, ints, (struct sampling){SIM_ADDR_BORDER, 0, 0, 1}, "s32", 0);
		texture(g, ints, (struct sampling){SIM_ADDR_CLAMP, 0, 0, 0}, "s32", 0);
		texture(g, uints, (struct sampling){SIM_ADDR_CLAMP, 0, 0, 1}, "u32", 1);
		texture(g, un, (struct sampling){SIM_ADDR_CLAMP, 0, 0, 0}, "f32", 0);
		texture(g, sn, (struct sampling){SIM_ADDR_CLAMP, 0, 0, 1}, "f32", 0);
	}
}

/* ---- linear memory, faults, refusals ---- */

static void memory_and_faults(void)
{
	struct sim_view v = view(&geometries[0], (struct sim_texel){SIM_CHAN_UINT, 1, 32, 4}, 0);
	struct sim_fault f;
	struct sim_counts c = {0};
	char ptx[4096];

	strcpy(ptx, prologue);
	strcat(ptx, "tex.1d.v4.u32.s32 {%w0, %w1, %w2, %w3}, [%o, {%x}];\n"
		    "st.global.u32 [%d], %w0;\nret;\n}\n");
	v.is_memory = v.is_linear = 1;
	memset(v.address, SIM_ADDR_CLAMP, 3);
	v.border[0] = 9;
	/* Coordinates that show themselves: texel i is at coords[i / 4][i % 4]. */
	for (unsigned i = 0; i < N; i++)
		coords[i][0] = (int)(i % 8) - 2;
	v.level[0].data = (uint8_t *)coords;
	v.level[0].width = 5;
	is_u64(run(ptx, &v, 7, 0, NULL, &c), SIM_OK, "a texture over memory of the ranges");
	is_u64(data[2][0], (uint32_t)coords[0][0], "its first texel");
	is_u64(data[6][0], (uint32_t)coords[1][0], "its last texel");
	is_u64(data[7][0] + data[0][0], 0, "zero outside, whatever mode and border");
	is_u64(c.load_bytes, N * 16 + N / 8 * 5 * 4, "reads are counted");
	v.level[0].data = store;
	is_u64(run(ptx, &v, 7, 0, &f, NULL), SIM_FAULT_OUT_OF_BOUNDS, "memory that is not there");
	is_u64(f.addr, (uintptr_t)store, "by its address");
	v.is_memory = v.is_linear = 0;
	is_u64(run(ptx, &v, 7, 0, NULL, NULL), SIM_OK, "an array is in no range");
	is_u64(run(ptx, &v, 8, 0, &f, NULL), SIM_FAULT_OUT_OF_BOUNDS, "no object has this handle");
	is_u64(f.addr, 8, "which is told");
	v.is_surface = 1;
	is_u64(run(ptx, &v, 7, 0, NULL, NULL), SIM_FAULT_OUT_OF_BOUNDS, "a surface is no texture");
	v.is_surface = 0, v.nlevels = 0;
	is_u64(run(ptx, &v, 7, 0, NULL, NULL), SIM_FAULT_OUT_OF_BOUNDS, "its array is gone");
	v.nlevels = 1, v.dims = 2;
	is_u64(run(ptx, &v, 7, 0, NULL, NULL), SIM_FAULT_TRAP, "another geometry");
}

static void surface_faults(void)
{
	struct sim_view v = view(&geometries[2], (struct sim_texel){SIM_CHAN_UINT, 1, 32, 4}, 1);
	struct sim_fault f;
	char ptx[4096];

	memset(coords, 0, sizeof(coords));
	strcpy(ptx, prologue);
	strcat(ptx, "sust.b.2d.b32.trap [%o, {%x, %y}], %x;\nret;\n}\n");
	is_u64(run(ptx, &v, 7, 0, NULL, NULL), SIM_OK, "a store inside");
	coords[37][0] = 36;
	is_u64(run(ptx, &v, 7, 0, &f, NULL), SIM_FAULT_TRAP, ".trap outside in x");
	is_u64(f.tid[0], 37, "of this thread");
	coords[37][0] = 0, coords[37][1] = -1;
	is_u64(run(ptx, &v, 7, 0, NULL, NULL), SIM_FAULT_TRAP, ".trap outside in y");
	coords[37][1] = 0, coords[37][0] = 2;
	is_u64(run(ptx, &v, 7, 0, NULL, NULL), SIM_FAULT_MISALIGNED, "inside of a word");
}

static void refused(void)
{
	static const char *const bad[][2] = {
		{"tex.cube.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%o, {%x, %y, %z, %z}];", "tex.cube"},
		{"tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [tr, {%x, %y}];", "tr is a reference"},
		{"tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%o, %s, {%x, %y}];", "samplers"},
		{"tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%o, {%x, %y, %z}];", "operands"},
		{"tex.grad.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%o, {%x, %y}], {%x, %y}, {%x, %y};",
		 "tex.grad"},
		{"tld4.r.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%o, {%x, %y}];", "tld4"},
		{"suld.b.2d.b32.trap %w0, [sr, {%x, %y}];", "sr is a reference"},
		{"suld.b.3d.b32.trap %w0, [%o, {%x, %y, %z}];", "operands"},
		{"suld.b.2d.v4.b64.trap {%v0, %v1, %v2, %v3}, [%o, {%x, %y}];", "suld.b.2d.v4.b64"},
		{"sust.b.2d.b32 [%o, {%x, %y}], %w0;", "sust.b.2d.b32"},
		{"sust.b.2d.v2.b32.trap [%o, {%x, %y}], %w0;", "operands"},
		{"sured.b.add.2d.u32.trap [%o, {%x, %y}], %w0;", "sured"},
		{"txq.width.b32 %w0, [%o];", "txq"},
	};

	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		char ptx[4096], text[300] = "";
		struct sim_module *m;

		sprintf(ptx, "%s.global .texref tr;\n.global .surfref sr;\n%s%s\nret;\n}\n", HEAD,
			prologue + strlen(HEAD), bad[i][0]);
		m = sim_module_load(ptx, strlen(ptx), kit_alloc, NULL, text, sizeof(text));
		ok(!m && strstr(text, bad[i][1]), "refused: %s (%s)", bad[i][0], text);
		if (m)
			sim_module_free(m);
		kit_release();
	}
}

int main(void)
{
	for (unsigned g = 0; g < GEOMETRIES; g++)
		for (unsigned size = 1; size <= 8; size *= 2)
			for (unsigned n = 1; n <= 4 && n * size <= 16; n *= 2)
				for (unsigned mode = 0; mode < 3; mode++) {
					load_form(&geometries[g], size, n, mode);
					store_form(&geometries[g], size, n, mode);
				}
	for (unsigned g = 0; g < 4; g++)
		for (unsigned t = 0; t < TEXELS; t++)
			for (unsigned n = 1; n <= 4; n *= 2)
				formatted(&geometries[g], t, n);
	textures();
	memory_and_faults();
	surface_faults();
	refused();
	return tap_done();
}
