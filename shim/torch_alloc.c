/* SPDX-License-Identifier: MIT */
/*
 * What PyTorch's caching allocator gives out and takes back, as it does so.
 *
 * The allocator reports each block to a function of libc10 that hands it to PyTorch's profiler, if that is on. The call goes
 * through the dynamic linker, where a preloaded library comes first: these are that function's two forms (PyTorch 1.13, with
 * whose libraries its name was compared, and with size_t as in later headers). Each goes on to the one that it stands for,
 * which is found from the caller, for libc10 is loaded out of sight of RTLD_NEXT. Where that fails PyTorch's profiler misses
 * its memory events, which is said.
 *
 * Callers: the allocator, any thread, with a lock of its own held; nothing here calls back into it.
 */
#include <dlfcn.h>
#include <stdint.h>

#include "shim/log.h"
#include "shim/marker.h"
#include "shim/shim.h"

/* c10::Device */
struct device {
	signed char type, index;
};
#define DEVICE_CUDA 1

typedef void report_fn(void *ptr, int64_t bytes, int64_t allocated, int64_t reserved,
		       struct device device);

static report_fn *find(const char *name, void *caller, report_fn *own)
{
	void *lib = rs_doors_library_of(caller), *sym = lib ? rs_doors_dlsym(lib, name) : NULL;

	if (!sym || (report_fn *)sym == own) {
		lib = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
		sym = lib ? rs_doors_dlsym(lib, name) : NULL;
	}
	return (report_fn *)sym == own ? NULL : (report_fn *)sym;
}

/* bytes: less than none when they are taken back. */
static void told(void *ptr, int64_t bytes, struct device device)
{
	if (device.type != DEVICE_CUDA || !ptr)
		return;
	if (bytes > 0)
		rs_marker_suballoc((uintptr_t)ptr, (uint64_t)bytes);
	else if (bytes < 0)
		rs_marker_subfree((uintptr_t)ptr);
}

#define REPORT(symbol)                                                                             \
	RS_EXPORT void symbol(void *ptr, int64_t bytes, int64_t allocated, int64_t reserved,       \
			      struct device device);                                               \
	void symbol(void *ptr, int64_t bytes, int64_t allocated, int64_t reserved,                 \
		    struct device device)                                                          \
	{                                                                                          \
		static report_fn *real;                                                            \
		static int missing;                                                                \
		report_fn *f = __atomic_load_n(&real, __ATOMIC_ACQUIRE);                           \
                                                                                                   \
		if (!f && !__atomic_load_n(&missing, __ATOMIC_RELAXED)) {                          \
			f = find(#symbol, __builtin_return_address(0), symbol);                    \
			__atomic_store_n(&real, f, __ATOMIC_RELEASE);                              \
			if (!f && !__atomic_exchange_n(&missing, 1, __ATOMIC_RELAXED))             \
				rs_log(RS_LOG_WARN,                                                \
				       "no libc10 found: PyTorch's profiler gets no memory "       \
				       "events");                                                  \
		}                                                                                  \
		told(ptr, bytes, device);                                                          \
		if (f)                                                                             \
			f(ptr, bytes, allocated, reserved, device);                                \
	}

REPORT(_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE)
REPORT(_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE)
