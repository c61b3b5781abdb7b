#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What PyTorch's caching allocator reports reaches the library, and PyTorch's profiler all the same.

Stand-ins for libc10, which has the function that is called, and libc10_cuda, which calls it, loaded as Python loads them: out
of sight of everybody else. With the real ones nothing was run but `nm` and `readelf` (PyTorch 1.13).
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "shim"))
from harness import TOP, cc, done, link_flags, run, same, tmp

OLD, NEW = "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE", "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"

C10 = r"""
struct device { signed char type, index; };
long seen[8];
void %s(void *ptr, long bytes, long allocated, long reserved, struct device d)
{
	seen[0]++;
	seen[1] = (long)ptr, seen[2] = bytes, seen[3] = allocated, seen[4] = reserved, seen[5] = d.type, seen[6] = d.index;
}
"""

CUDA = r"""
struct device { signed char type, index; };
extern long seen[8];
void %s(void *ptr, long bytes, long allocated, long reserved, struct device d);
long *report(void *ptr, long bytes, long allocated, long reserved, int type, int index)
{
	struct device d = {type, index};
	%s(ptr, bytes, allocated, reserved, d);
	return seen;
}
"""

PROGRAM = r"""
#include <dlfcn.h>
#include <stdio.h>
#include "shim/include/replayshim.h"
extern int cuInit(), cuCtxCreate_v2(), cuMemAlloc_v2();
int main(int argc, char **argv)
{
	long *(*report)(unsigned long, long, long, long, int, int), *s;
	unsigned long p = 0;
	void *ctx, *lib = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (!lib) return puts(dlerror()), 1;
	report = dlsym(lib, "report");
	report(4096, 64, 1, 2, 1, 0);
	cuInit(0); cuCtxCreate_v2(&ctx, 0, 0); cuMemAlloc_v2(&p, 4096L);
	s = report(p + 512, 1024, 1024, 4096, 1, 3);
	printf("%ld: %d %ld %ld %ld %ld %ld\n", s[0], s[1] == (long)p + 512, s[2], s[3], s[4], s[5], s[6]);
	printf("%d ", replayshim_subfree(p + 512));
	report(p + 512, 1024, 1024, 4096, 1, 3);
	report(p + 2048, 512, 1536, 4096, 0, 0);
	s = report(p + 512, -1024, 0, 4096, 1, 3);
	printf("%d %d %ld: %ld\n", replayshim_subfree(p + 512), replayshim_subfree(p + 2048), s[0], s[2]);
	s = report(0, 64, 0, 0, 1, 0);
	s = report(p, 8192, 0, 0, 1, 0);
	printf("%d %ld\n", replayshim_subfree(p), s[0]);
	return 0;
}
"""


def build(symbol, form):
	place = tmp / form
	place.mkdir()
	c10 = cc(None, f"{form}/libc10.so", "-shared", "-fPIC", "-Wl,-soname,libc10.so", text=C10 % symbol)
	cuda = cc(None, f"{form}/libc10_cuda.so", "-shared", "-fPIC", str(c10), "-Wl,-rpath,$ORIGIN", text=CUDA % (symbol, symbol))
	return c10, cuda


program = cc(None, "program", f"-I{TOP}", *link_flags(), text=PROGRAM)
for symbol, form in ((OLD, "1.13"), (NEW, "2.x")):
	_, cuda = build(symbol, form)
	p = run([program, cuda])
	same((p.stdout, p.returncode), ("2: 1 1024 1024 4096 1 3\n0 -2 -2 5: -1024\n-2 7\n", 0),
	     f"{form}: blocks of a CUDA device are known while they are given out; the profiler gets every event as it was")
	same(p.stderr.count("libc10"), 0, f"{form}: nothing to say")
	p = run([program, cuda], REPLAYSHIM_MODE="off")
	same(p.stdout, "2: 1 1024 1024 4096 1 3\n-1 -1 -1 5: -1024\n-1 7\n", f"{form}, mode off: the same for the profiler")
	plain = run([program, cuda], tool=False)
	same(plain.stdout, p.stdout, f"{form}: as without the library")

# An allocator that has nobody to report to.
lone = cc(None, "lone.so", "-shared", "-fPIC", text="long seen[8];\n" + (CUDA % (NEW, NEW)).replace("extern long seen[8];", ""))
p = run([program, lone])
same((p.returncode, p.stderr.count("no libc10 found")), (0, 1), "where the real function is not found that is said, once")
same(p.stdout.splitlines()[1:], ["0 -2 -2 0: 0", "-2 0"], "and the blocks are known")
done()
