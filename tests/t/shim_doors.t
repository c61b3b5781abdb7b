#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A Driver-API program, however it finds the driver: audited, and unchanged by that.

The program prints every result, errno and the bytes it got; with the tool it must print the same.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "shim"))
from harness import LIBRARY, SIM, calls, cc, done, link_flags, ok, run, same, tmp

FORMS = {
	"linked": cc("client.c", "linked", "-DVIA_LINK", *link_flags()),
	"dlsym": cc("client.c", "dlsym", "-DVIA_DLSYM"),
	"procaddr": cc("client.c", "procaddr", "-DVIA_PROC"),
	"per-thread": cc("client.c", "perthread", "-DVIA_PROC", "-DPER_THREAD"),
}

# What the program does, by ABI symbol; the per-thread form gets the twins.
COUNTS = {
	"cuInit": 1, "cuCtxCreate_v2": 1, "cuCtxDestroy_v2": 1, "cuStreamCreate": 1, "cuMemAlloc_v2": 5, "cuMemFree_v2": 5,
	"cuMemsetD32_v2": 1, "cuMemsetD8Async": 1, "cuMemcpyHtoD_v2": 1, "cuMemcpyDtoH_v2": 1, "cuMemcpyDtoDAsync_v2": 1,
	"cuModuleLoadData": 2, "cuModuleGetFunction": 2, "cuLaunchKernel": 4, "cuStreamSynchronize": 1, "cuModuleUnload": 1,
	"cuCtxSynchronize": 1,
}
TWINS = {
	"cuMemsetD32_v2": "cuMemsetD32_v2_ptds", "cuMemsetD8Async": "cuMemsetD8Async_ptsz",
	"cuMemcpyHtoD_v2": "cuMemcpyHtoD_v2_ptds", "cuMemcpyDtoH_v2": "cuMemcpyDtoH_v2_ptds",
	"cuMemcpyDtoDAsync_v2": "cuMemcpyDtoDAsync_v2_ptsz", "cuLaunchKernel": "cuLaunchKernel_ptsz",
	"cuStreamSynchronize": "cuStreamSynchronize_ptsz",
}


def audited():
	for form, program in FORMS.items():
		plain = run([program], tool=False)
		ok(plain.returncode == 3 and "bytes:" in plain.stdout, f"{form}: runs on the simulated device", plain.stderr)
		for mode in ("audit", "preserve"):
			out = tmp / f"{form}.{mode}"
			with_tool = run([program], REPLAYSHIM_MODE=mode, REPLAYSHIM_OUT=out)
			same(with_tool.stdout, plain.stdout, f"{form}, {mode}: prints the same")
			same(with_tool.returncode, 3, f"{form}, {mode}: exits the same")
			same(with_tool.stderr, f"==rs r0== replayshim 0.1.0 {mode}: {out}\n", f"{form}, {mode}: one line on stderr")
			got = calls(out)
			want = {TWINS.get(k, k) if form == "per-thread" else k: v for k, v in COUNTS.items()}
			same({k: got.get(k) for k in want}, want, f"{form}, {mode}: every call is counted")


def other_modes():
	for form, program in FORMS.items():
		plain = run([program], tool=False)
		for mode in ("off", "nop"):
			out = tmp / f"{form}.{mode}"
			with_tool = run([program], REPLAYSHIM_MODE=mode, REPLAYSHIM_OUT=out)
			same((with_tool.stdout, with_tool.stderr, with_tool.returncode), (plain.stdout, plain.stderr, 3),
			     f"{form}, {mode}: nothing is different")
			ok(not out.exists(), f"{form}, {mode}: nothing is written")


def addresses():
	"""Where the pointers point that the program was given."""
	for form, program in FORMS.items():
		def owners(mode):
			p = run([program, "addresses"], REPLAYSHIM_MODE=mode)
			return {pathlib.Path(line.split()[1]).name for line in p.stdout.splitlines()
			        if line.split()[0] not in ("cuMemGetInfo_v2",)}
		if form != "linked":
			same(owners("off"), {"libcuda.so.1"}, f"{form}, off: the driver's own addresses are handed out")
		same(owners("audit"), {LIBRARY.name}, f"{form}, audit: wrappers are handed out")


CTYPES = """
import ctypes
cu = ctypes.CDLL("libcuda.so.1")
p, ctx = ctypes.c_uint64(), ctypes.c_void_p()
print(cu.cuInit(0), cu.cuCtxCreate_v2(ctypes.byref(ctx), 0, 0), cu.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(64)))
print(cu.cuMemsetD8_v2(p, 5, ctypes.c_size_t(64)), cu.cuMemFree_v2(p))
"""


def python():
	plain = run([sys.executable, "-c", CTYPES], tool=False)
	out = tmp / "ctypes"
	with_tool = run([sys.executable, "-c", CTYPES], REPLAYSHIM_OUT=out, REPLAYSHIM_QUIET=1)
	same((with_tool.stdout, with_tool.stderr), (plain.stdout, ""), "ctypes: prints the same, and quiet is quiet")
	same({k: calls(out).get(k) for k in ("cuMemAlloc_v2", "cuMemsetD8_v2", "cuMemFree_v2")},
	     {"cuMemAlloc_v2": 1, "cuMemsetD8_v2": 1, "cuMemFree_v2": 1}, "ctypes: counted")


QUIRKS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
	void *h = dlopen("libcuda.so.1", RTLD_LAZY), *p = (void *)1, *again = 0;
	int (*get2)(const char *, void **, int, unsigned long long, int *) = dlsym(h, "cuGetProcAddress_v2");
	int (*get1)(const char *, void **, int, unsigned long long) = dlsym(h, "cuGetProcAddress");
	int status = -1;
	Dl_info info;
	printf("empty %d\n", get2("", &p, 0, 0, &status));
	printf("itself %d ", get2("cuGetProcAddress", &again, 12000, 0, &status));
	printf("%d ", again == (void *)get2);
	printf("%d ", get2("cuGetProcAddress", &again, 11030, 0, &status));
	printf("%d\n", again == (void *)get1);
	printf("absent %d ", get2("cuNoSuchThing", &p, 12000, 0, &status));
	printf("status %d\n", status);
	printf("null %d\n", get2("cuInit", 0, 12000, 0, &status));
	printf("too old %d status %d\n", get2("cuMemAllocAsync", &p, 10000, 0, &status), status);
	printf("null name %d\n", !!dlsym(h, "cuNoSuchThing"));
	printf("error %d\n", !!dlerror());
	printf("dlvsym %d\n", !!dlvsym(h, "cuInit", "NONE_1.0"));
	printf("default %d\n", dlsym(RTLD_DEFAULT, "strlen") == dlsym(RTLD_NEXT, "strlen"));
	printf("passive %s\n", dladdr(dlsym(h, "cuGetErrorName"), &info) && strstr(info.dli_fname, "libcuda") ? "driver" : "?");
	return 0;
}
"""


def quirks():
	program = cc(None, "quirks", text=QUIRKS)
	plain, with_tool = run([program], tool=False), run([program])
	same(with_tool.stdout, plain.stdout, "odd questions get the driver's answers, cuGetProcAddress itself ours")
	same(with_tool.returncode, 0, "and nothing crashes")


NEXT = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
static int calls;
/* A hook as other tools have it, behind and before ours. */
unsigned int sleep(unsigned int n)
{
	unsigned int (*real)(unsigned int) = dlsym(RTLD_NEXT, "sleep");
	if ((void *)real == (void *)sleep || !real)
		_exit(90);
	calls++;
	return real(0);
}
int hook_calls(void) { return calls; }
"""
SLEEPER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
int main(void)
{
	int (*count)(void) = dlsym(RTLD_DEFAULT, "hook_calls");
	sleep(0);
	printf("%d\n", count ? count() : -1);
	return 0;
}
"""


def others():
	hook = cc(None, "libhook.so", "-shared", "-fPIC", text=NEXT)
	sleeper = cc(None, "sleeper", text=SLEEPER)
	same(run([sleeper], preload=[hook]).stdout, "1\n", "a preloaded hook behind ours finds the real function by RTLD_NEXT")
	same(run([sleeper], tool=False, preload=[hook, LIBRARY]).stdout, "1\n", "and one before ours")


def faults():
	program = FORMS["dlsym"]
	for fail in ("cuMemAlloc_v2:2=2", "cuMemcpyHtoD_v2:1=719", "cuLaunchKernel:1=700", "cuInit:1=100",
	             "cuModuleLoadData:1=209", "cuStreamCreate:1=2", "cuMemFree_v2:3=1", "cuCtxCreate_v2:1=2",
	             "cuMemsetD32_v2:1=1", "cuMemcpyDtoH_v2:1=999", "cuModuleGetFunction:1=500"):
		plain = run([program], tool=False, SIMCUDA_FAIL=fail)
		for mode in ("audit", "preserve"):
			with_tool = run([program], SIMCUDA_FAIL=fail, REPLAYSHIM_MODE=mode, REPLAYSHIM_QUIET=1,
			                REPLAYSHIM_OUT=tmp / "faults")
			same((with_tool.stdout, with_tool.returncode), (plain.stdout, plain.returncode),
			     f"{fail}, {mode}: the program sees the same")


ok(SIM.exists(), "the simulated device is built")
audited()
other_modes()
addresses()
python()
quirks()
others()
faults()
done()
