/* SPDX-License-Identifier: MIT */
/*
 * See image.h. Callers: kernels.c, while a module is loaded or a function given out.
 */
#include "shim/image_priv.h"
#include "tracker/cubin.h"
#include "tracker/digest.h"
#include "tracker/fatbin.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_FILE (1ull << 30)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rs_image *images;
static struct rs_code *orphans; /* kernels without an image */

/* --- what does the device run? ------------------------------------------------------------------ */

/* Compute capability of the current device as 10 * major + minor; 0 if the driver does not say. */
static uint32_t device_sm(void)
{
	int major = 0, minor = 0;
	CUdevice device;

	if (rs_real.cuCtxGetDevice(&device) != CUDA_SUCCESS &&
	    rs_real.cuDeviceGet(&device, 0) != CUDA_SUCCESS)
		return 0;
	if (rs_real.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
					 device) != CUDA_SUCCESS ||
	    rs_real.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
					 device) != CUDA_SUCCESS)
		return 0;
	return (uint32_t)(10 * major + minor);
}

/* The driver takes machine code of the device's major version if there is some. 0: none, or not known. */
static uint32_t machine_of(const uint8_t *fatbin, uint32_t sm)
{
	struct rs_fatbin_entry e;
	uint64_t cursor = 0;
	uint32_t machine = 0;

	while (rs_fatbin_next(fatbin, &cursor, &e) == 1)
		if (e.kind == 2 && sm && e.sm / 10 == sm / 10 && e.sm <= sm && e.sm > machine)
			machine = e.sm;
	return machine;
}

/*
 * Else it compiles the newest PTX that it can. The code of different architectures may differ, so PTX counts
 * only if it is the one that is compiled, or if it has the architecture of the machine code that is taken.
 */
static int choose(const uint8_t *fatbin, uint32_t sm, uint32_t machine,
		  struct rs_fatbin_entry *ret_entry)
{
	struct rs_fatbin_entry e;
	uint64_t cursor = 0;
	uint32_t best = 0;
	int found = 0;

	while (rs_fatbin_next(fatbin, &cursor, &e) == 1) {
		if (e.kind != 1 || (machine && e.sm != machine) || (sm && e.sm > sm))
			continue;
		if (!found || e.sm > best) {
			*ret_entry = e;
			best = e.sm;
			found = 1;
		}
	}
	return found;
}

static uint64_t hash_fatbin(const uint8_t *fatbin)
{
	struct rs_fatbin_entry e;
	uint64_t cursor = 0, h = 2;

	while (rs_fatbin_next(fatbin, &cursor, &e) == 1)
		h = rs_image_hash(rs_digest_mix(h + e.kind + ((uint64_t)e.sm << 16)), e.data,
				  e.size);
	return h;
}

/* --- images ------------------------------------------------------------------------------------- */

/* The image of that hash; analysed outside of the lock, so two threads may both do it: one wins. */
static struct rs_image *find(uint64_t hash)
{
	struct rs_image *i;

	pthread_mutex_lock(&lock);
	for (i = images; i && i->hash != hash; i = i->next)
		;
	pthread_mutex_unlock(&lock);
	return i;
}

static struct rs_image *image_of(uint64_t hash, const struct rs_image_source *source)
{
	struct rs_image *image = find(hash), *other;

	if (image)
		return image;
	image = calloc(1, sizeof(*image));
	if (!image)
		return NULL;
	image->hash = hash;
	rs_image_learn(image, source);
	pthread_mutex_lock(&lock);
	for (other = images; other && other->hash != hash; other = other->next)
		;
	if (!other) {
		image->next = images;
		images = image;
	}
	pthread_mutex_unlock(&lock);
	return other ? other : image;
}

static struct rs_image *image_of_fatbin(const uint8_t *fatbin)
{
	uint64_t hash = hash_fatbin(fatbin);
	struct rs_image *image = find(hash);
	uint32_t sm = device_sm(), machine = machine_of(fatbin, sm);
	struct rs_fatbin_entry e;
	char *text = NULL;

	if (image)
		return image;
	if (choose(fatbin, sm, machine, &e))
		text = rs_unpack(&e);
	image = image_of(hash, &(struct rs_image_source){text, text ? strlen(text) : 0, fatbin,
							 machine, NULL});
	free(text);
	return image;
}

struct rs_image *rs_image_of_memory(const void *data)
{
	const uint8_t *fatbin = NULL;
	size_t len;

	if (!data)
		return NULL;
	switch (rs_image_identify(data, &fatbin)) {
	case RS_IMAGE_PTX:
		len = strlen(data);
		return image_of(rs_image_hash(1, data, len),
				&(struct rs_image_source){data, len, NULL, 0, NULL});
	case RS_IMAGE_FATBIN:
		return image_of_fatbin(fatbin);
	case RS_IMAGE_CUBIN:
		return image_of(rs_image_hash(3, data, rs_cubin_size(data)),
				&(struct rs_image_source){NULL, 0, NULL, 0, data});
	case RS_IMAGE_UNKNOWN:
		break;
	}
	return NULL;
}

/* The driver has read the same file; a NUL behind it ends PTX text. */
struct rs_image *rs_image_of_file(const char *path)
{
	struct rs_image *image = NULL;
	struct stat st;
	char *data = NULL;
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	off_t at = 0;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && st.st_size > 64 && (uint64_t)st.st_size < MOST_FILE)
		data = malloc((size_t)st.st_size + 1);
	while (data && at < st.st_size) {
		ssize_t n = read(fd, data + at, (size_t)(st.st_size - at));

		if (n <= 0)
			break;
		at += n;
	}
	close(fd);
	if (data && at == st.st_size) {
		data[at] = '\0';
		image = rs_image_of_memory(data);
	}
	free(data);
	return image;
}

/* --- kernels ------------------------------------------------------------------------------------ */

struct rs_code *rs_image_code(struct rs_image *image, const char *name)
{
	struct rs_code **list = image ? &image->codes : &orphans, *code;

	pthread_mutex_lock(&lock);
	code = rs_image_find(*list, name);
	if (!code) {
		code = rs_image_new_code(image, name);
		if (code) {
			code->next = *list;
			*list = code;
		}
	}
	pthread_mutex_unlock(&lock);
	return code;
}

static CUresult ask(const void *handle, int is_kernel, unsigned i, size_t *offset, size_t *size)
{
	if (is_kernel)
		return rs_real.cuKernelGetParamInfo((CUkernel)(uintptr_t)handle, i, offset, size);
	return rs_real.cuFuncGetParamInfo((CUfunction)(uintptr_t)handle, i, offset, size);
}

#define MOST_PARAMS 4096

static int are_words(const struct rs_code *code)
{
	for (uint32_t i = 0; i < code->nparams; i++)
		if (code->params[i].size != 8 || code->params[i].offset != 8 * i)
			return 0;
	return code->nparams > 0;
}

void rs_image_layout(struct rs_code *code, const void *handle, int is_kernel)
{
	struct rs_code_param *params = NULL;
	size_t offset, size, bytes = 0;
	unsigned n = 0;
	CUresult r;

	while ((r = ask(handle, is_kernel, n, &offset, &size)) == CUDA_SUCCESS && n < MOST_PARAMS) {
		struct rs_code_param *more = realloc(params, (n + 1) * sizeof(*params));

		if (!more)
			break;
		params = more;
		params[n].offset = (uint32_t)offset;
		params[n].size = (uint32_t)size;
		if (offset + size > bytes)
			bytes = offset + size;
		n++;
	}
	pthread_mutex_lock(&lock);
	if (code->layout == RS_LAYOUT_ASK && r == CUDA_ERROR_INVALID_VALUE) {
		/* The first index that does not exist: all are known. */
		free(code->params);
		code->params = params;
		code->nparams = n;
		code->param_bytes = (uint32_t)bytes;
		code->words = (uint8_t)are_words(code);
		__atomic_store_n(&code->layout, RS_LAYOUT_KNOWN, __ATOMIC_RELEASE);
	} else {
		free(params);
		if (code->layout == RS_LAYOUT_ASK)
			code->words = (uint8_t)are_words(code);
		if (code->layout == RS_LAYOUT_ASK)
			__atomic_store_n(&code->layout,
					 code->params_found ? RS_LAYOUT_KNOWN : RS_LAYOUT_NONE,
					 __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
}
