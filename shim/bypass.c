/* SPDX-License-Identifier: MIT */
/*
 * Objects that reach the driver past the hooks: opened with RTLD_DEEPBIND, so that their calls of dlsym or of the
 * driver bind to libc's and the driver's own functions; or living in another namespace (dlmopen) together with a
 * driver of its own. Neither can be prevented without changing what dlopen means, so they are found, named and
 * reported.
 *
 * In our namespace the loader's relocations tell: a slot for a function that we export which holds an address of
 * somebody behind us in load order is a bypass; one that still points into its own object has not been bound yet
 * and is looked at again. Objects of other namespaces are no part of dl_iterate_phdr; they are found in
 * /proc/self/maps, on every glibc, and read through /proc/self/mem, since nothing keeps them mapped.
 *
 * Invariants: everything is looked at inside of one dl_iterate_phdr callback, which holds the loader's lock, so that
 * no object of ours is unmapped meanwhile; nothing is allocated there and no other lock taken. Nothing that is found is
 * touched. Objects are examined once, those with unbound slots again.
 * Callers: cuInit, step markers, the end: never a hot path. One mutex; who finds it taken leaves.
 * Compiled without instrumentation: what is read belongs to others.
 */
#include "shim/bypass.h"
#include "shim/log.h"
#include "shim/object.h"
#include "shim/shim.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BEFORE	 16   /* objects in front of us in load order */
#define EXAMINED 4096 /* a power of two; beyond it objects are examined again */
#define MAIN	 4096 /* objects of our namespace */
#define NAMED	 32
#define TEXT_MAX (16u << 20) /* more is not searched */

struct named {
	char object[256], how[16], what[64];
	int matters, said;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct named named[NAMED];
static unsigned nnamed;
static const void *examined[EXAMINED];
static unsigned nexamined;
static unsigned long long last_adds, last_subs;
static int unbound; /* slots seen at the last look */

/* One look, inside of the callback. */
static struct {
	struct range {
		uintptr_t start, end;
	} self, before[BEFORE];
	unsigned nbefore, nmain;
	int driver; /* one is loaded, in whatever namespace */
	uintptr_t main[MAIN];
} look;

/* --- what is found ------------------------------------------------------------------------------ */

static void found(const char *object, const char *how, const char *what, int matters)
{
	struct named *n;

	for (unsigned i = 0; i < nnamed; i++)
		if (!strcmp(named[i].how, how) && !strncmp(named[i].object, object, 255))
			return;
	if (nnamed >= NAMED) /* so many that nobody reads on */
		return;
	__atomic_fetch_add(matters ? &rs_coverage.bypass : &rs_coverage.bypass_idle, 1,
			   __ATOMIC_RELAXED);
	n = &named[nnamed++];
	snprintf(n->object, sizeof(n->object), "%s", object);
	snprintf(n->how, sizeof(n->how), "%s", how);
	snprintf(n->what, sizeof(n->what), "%s", what);
	n->matters = matters;
}

static void say(struct named *n, uint64_t step)
{
	char text[400];
	struct rs_json j;

	rs_json_begin(&j);
	rs_json_str(&j, "t", "bypass");
	rs_json_u64(&j, "step", step);
	rs_json_str(&j, "object", n->object);
	rs_json_str(&j, "how", n->how);
	rs_json_str(&j, "imports", n->what);
	rs_json_bool(&j, "matters", n->matters);
	rs_records_write(rs_state.records, RS_RECORD_EVENTS, &j);
	if (!n->matters)
		return;
	snprintf(text, sizeof(text), "%s (%s) calls %s past the library", n->object, n->how,
		 n->what);
	rs_log(RS_LOG_WARN, "%s", text);
	rs_json_begin(&j);
	rs_json_str(&j, "t", "finding");
	rs_json_str(&j, "code", "RS061");
	rs_json_str(&j, "sev", "error");
	rs_json_str(&j, "segment", "");
	rs_json_u64(&j, "step", step);
	rs_json_str(&j, "text", text);
	rs_records_write(rs_state.records, RS_RECORD_EVENTS, &j);
}

/* --- our namespace ------------------------------------------------------------------------------ */

static int inside(const struct range *r, uintptr_t addr)
{
	return addr >= r->start && addr < r->end;
}

static struct range extent(const struct dl_phdr_info *info)
{
	struct range r = {UINTPTR_MAX, 0};

	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD)
			continue;
		r.start = start < r.start ? start : r.start;
		r.end = start + p->p_memsz > r.end ? start + p->p_memsz : r.end;
	}
	return r;
}

/* By hand: libc's search is intercepted by sanitizers, and what is read here may hold their traps. */
static int holds(const char *text, size_t n, const char *word)
{
	size_t len = strlen(word);

	for (size_t i = 0; i + len <= n; i++) {
		size_t k = 0;

		while (k < len && text[i + k] == word[k])
			k++;
		if (k == len)
			return 1;
	}
	return 0;
}

/* Does its constant data name the driver or a function of it? Large objects get no search, and the doubt. */
static int names_driver(const struct dl_phdr_info *info)
{
	static const char *const words[] = {"libcuda.", "cuInit",   "cuGetProcAddress",
					    "cuMem",	"cuLaunch", "curandCreate"};
	size_t left = TEXT_MAX;

	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const char *text = (const char *)(info->dlpi_addr + p->p_vaddr);

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_R) || (p->p_flags & PF_W))
			continue;
		if (p->p_filesz > left)
			return 1;
		left -= p->p_filesz;
		for (unsigned w = 0; w < sizeof(words) / sizeof(*words); w++)
			if (holds(text, p->p_filesz, words[w]))
				return 1;
	}
	return 0;
}

/* Returns whether there are slots that have not been bound. */
static int judge(const struct dl_phdr_info *info, const struct rs_object *im,
		 const struct range *own)
{
	const uintptr_t table[] = {im->jmprel, im->rela};
	const size_t bytes[] = {im->pltrelsz, im->relasz};
	char name[128], what[128] = "";
	int kind, worst = 0, open = 0;
	uintptr_t slot, to;

	for (unsigned t = 0; t < 2; t++) {
		size_t pos = 0;

		while ((kind = rs_object_slot(im, table[t], table[t] ? bytes[t] : 0, &pos, name,
					      sizeof(name), &slot))) {
			int fine = 0;

			to = *(const uintptr_t *)slot;
			open |= inside(own, to);
			fine = !to || inside(own, to) || inside(&look.self, to);
			for (unsigned i = 0; i < look.nbefore; i++)
				fine |= inside(&look.before[i], to);
			if (fine || kind <= worst)
				continue;
			worst = kind;
			snprintf(what, sizeof(what), "%s", name);
		}
	}
	if (worst)
		found(im->name, "RTLD_DEEPBIND", what, worst == 2 || names_driver(info));
	return open && !worst;
}

/* Adds an object to those examined, or says that it is among them. */
static int known(const void *key, int add)
{
	unsigned i = (unsigned)((uintptr_t)key * 0x9e3779b97f4a7c15ull >> 40) & (EXAMINED - 1);

	for (; examined[i]; i = (i + 1) & (EXAMINED - 1))
		if (examined[i] == key)
			return 1;
	if (add && nexamined < EXAMINED / 2) {
		examined[i] = key;
		nexamined++;
	}
	return 0;
}

static int each(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct rs_object im = {.bias = info->dlpi_addr, .fd = -1, .name = info->dlpi_name};
	struct range own = extent(info);
	uintptr_t dynamic = 0;
	int *ret_open = arg;

	(void)size;
	if (look.nmain < MAIN)
		look.main[look.nmain++] = own.start & ~(uintptr_t)(getpagesize() - 1);
	if (inside(&own, (uintptr_t)&look)) {
		look.self = own;
		return 0;
	}
	if (!look.self.end) {
		if (look.nbefore < BEFORE)
			look.before[look.nbefore++] = own;
		return 0;
	}
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dynamic = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
	if (!im.name || !*im.name || !dynamic || known(info->dlpi_phdr, 0) ||
	    !rs_object_dynamic(&im, dynamic))
		return 0;
	if (rs_object_is_driver(&im)) {
		look.driver = 1;
		return 0; /* its own calls are its own business; looked at each time, for the line above */
	}
	if (judge(info, &im, &own))
		*ret_open = 1;
	else
		known(info->dlpi_phdr, 1);
	return 0;
}

/* --- other namespaces --------------------------------------------------------------------------- */

#define IMAGES 128

struct mapped {
	uintptr_t start;
	int executable;
	char path[256];
};

static struct mapped mapped[IMAGES];
static unsigned nmapped;

static int in_main(uintptr_t start)
{
	for (unsigned i = 0; i < look.nmain; i++)
		if (look.main[i] == start)
			return 1;
	return 0;
}

/* One line of the map: an image begins with its file's first byte and has an executable part. */
static void map_line(const char *line)
{
	unsigned long start, end, offset;
	char perms[5], path[256] = "";
	struct mapped *m = nmapped ? &mapped[nmapped - 1] : NULL;

	if (sscanf(line, "%lx-%lx %4s %lx %*s %*s %255[^\n]", &start, &end, perms, &offset, path) <
		    4 ||
	    path[0] != '/')
		return;
	if (!offset && perms[0] == 'r' && !in_main(start)) {
		/* What came before was a file of data. */
		if (!m || m->executable) {
			if (nmapped >= IMAGES)
				return;
			m = &mapped[nmapped++];
		}
		m->start = start;
		m->executable = 0;
		memcpy(m->path, path, sizeof(path));
	}
	if (m && perms[2] == 'x' && !strcmp(m->path, path))
		m->executable = 1;
}

static void read_maps(void)
{
	static char text[8192];
	size_t have = 0;
	ssize_t n;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	nmapped = 0;
	while (fd >= 0 && (n = read(fd, text + have, sizeof(text) - 1 - have)) > 0) {
		char *line = text, *end;

		have += (size_t)n;
		text[have] = '\0';
		for (; (end = strchr(line, '\n')); line = end + 1) {
			*end = '\0';
			map_line(line);
		}
		have -= (size_t)(line - text);
		memmove(text, line, have);
		if (have == sizeof(text) - 1)
			have = 0; /* no line of the kernel's is that long */
	}
	if (fd >= 0)
		close(fd);
}

/* Without a driver among them they cannot reach one; every later look sees whether one has come. */
static void other_namespaces(void)
{
	int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC), driver = 0;
	struct rs_object im;
	char what[128];

	if (look.nmain < MAIN) /* else some of ours would be taken for others' */
		read_maps();
	for (unsigned i = 0; i < nmapped; i++) {
		im = (struct rs_object){.fd = fd, .name = mapped[i].path};
		if (!mapped[i].executable)
			continue;
		/* One that cannot be read still has its name. */
		rs_object_open(&im, mapped[i].path, mapped[i].start, fd);
		if (!rs_object_is_driver(&im))
			continue;
		driver = look.driver = 1;
		found(mapped[i].path, "dlmopen", "a second driver", 1);
	}
	for (unsigned i = 0; driver && i < nmapped; i++) {
		if (!mapped[i].executable ||
		    !rs_object_open(&im, mapped[i].path, mapped[i].start, fd) ||
		    rs_object_is_driver(&im))
			continue;
		rs_object_imports(&im, what);
		if (what[0])
			found(mapped[i].path, "dlmopen", what, 1);
	}
	if (fd >= 0)
		close(fd);
}

/* --- the look ----------------------------------------------------------------------------------- */

/* Called for the first object; everything else happens inside, under the loader's lock. */
static int first(struct dl_phdr_info *info, size_t size, void *arg)
{
	int changed = info->dlpi_adds != last_adds || info->dlpi_subs != last_subs;

	(void)size, (void)arg;
	if (!changed && !unbound)
		return 1;
	if (info->dlpi_subs != last_subs) {
		memset(examined, 0, sizeof(examined));
		nexamined = 0;
	}
	last_adds = info->dlpi_adds;
	last_subs = info->dlpi_subs;
	look.nmain = look.nbefore = 0;
	look.self = (struct range){0, 0};
	unbound = 0;
	dl_iterate_phdr(each, &unbound);
	if (changed)
		other_namespaces();
	return 1;
}

void rs_bypass_look(uint64_t step)
{
	if (pthread_mutex_trylock(&lock))
		return;
	dl_iterate_phdr(first, NULL);
	for (unsigned i = 0; rs_state.records && i < nnamed; i++)
		if (!named[i].said) {
			named[i].said = 1;
			say(&named[i], step);
		}
	pthread_mutex_unlock(&lock);
}

/* A process in which no hook has seen a cuInit ends: a warning if this is why. */
__attribute__((destructor)) static void depart(void)
{
	if ((rs_state.mode != RS_MODE_AUDIT && rs_state.mode != RS_MODE_PRESERVE) ||
	    rs_state.engine || rs_state.opt.quiet || pthread_mutex_trylock(&lock))
		return;
	dl_iterate_phdr(first, NULL);
	for (unsigned i = 0; look.driver && i < nnamed; i++)
		if (named[i].matters) {
			rs_log(RS_LOG_WARN,
			       "%s (%s) used the driver past the library; nothing was seen",
			       named[i].object, named[i].how);
			break;
		}
	pthread_mutex_unlock(&lock);
}
