#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Where the library must not be felt: programs without CUDA, machines without a driver, forked children, other linkage."""
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "shim"))
from harness import LIBRARY, SANITIZED, TOP, calls, cc, done, events, link_flags, ok, run, same, tmp


def strangers():
	for command in (["ls", "-la", "/usr/include"], ["sh", "-c", "echo out; echo err >&2; exit 7"],
	                ["bash", "-c", "trap 'echo bye' EXIT; kill -TERM $$ & wait; (exit 3); f() { return 4; }; f"],
	                [sys.executable, "-c", "import os,sys; print(sys.path[-1], os.getpid()>0); sys.exit(5)"],
	                ["cat", "/nonexistent"], ["perl", "-e", 'print "x"; exit 9']):
		plain, with_tool = run(command, tool=False, sim=False), run(command, sim=False)
		same((with_tool.returncode, with_tool.stdout, with_tool.stderr),
		     (plain.returncode, plain.stdout, plain.stderr), f"{command[0]} {command[1][:24]}: unaffected and silent")
	ok(not (tmp / "replayshim.data").exists(), "no directory is made by a program without CUDA")


WITHOUT = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
int main(void)
{
	int (*init)(unsigned) = dlsym(RTLD_DEFAULT, "cuInit");
	int (*alloc)(void *, unsigned long) = dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
	int (*get)(const char *, void **, int, unsigned long long, int *) = dlsym(RTLD_DEFAULT, "cuGetProcAddress_v2");
	int (*active)(void) = dlsym(RTLD_DEFAULT, "replayshim_active");
	void *p = 0;
	printf("%d %d %d %d %d\n", init(0), alloc(&p, 64), get("cuInit", &p, 12000, 0, 0), p != 0, active());
	return 0;
}
"""


def no_driver():
	program = cc(None, "without", text=WITHOUT)
	for mode in ("off", "nop", "audit", "preserve"):
		p = run([program], sim=False, REPLAYSHIM_MODE=mode)
		same((p.stdout, p.stderr, p.returncode), ("3 3 3 0 0\n", "", 0),
		     f"{mode}, no libcuda.so.1: wrappers answer CUDA_ERROR_NOT_INITIALIZED")


FORK = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
extern int cuInit(), cuCtxCreate_v2(), cuMemAlloc_v2(), cuMemsetD8_v2();
int main(int argc, char **argv)
{
	void *ctx;
	unsigned long long p;
	int late = argc > 1, status;
	pid_t pid;
	if (late)
		cuInit(0), cuCtxCreate_v2(&ctx, 0, 0), cuMemAlloc_v2(&p, (size_t)64);
	pid = fork();
	if (!late)
		cuInit(0), cuCtxCreate_v2(&ctx, 0, 0), cuMemAlloc_v2(&p, (size_t)64);
	if (!pid) {
		if (late)
			cuInit(0), cuMemAlloc_v2(&p, (size_t)64), cuMemAlloc_v2(&p, (size_t)64);
		exit(0);
	}
	waitpid(pid, &status, 0);
	cuMemsetD8_v2(p, 1, (size_t)64);
	return WEXITSTATUS(status) + WTERMSIG(status);
}
"""


def forked():
	program = cc(None, "fork", *link_flags(), text=FORK)
	p = run([program, "late"], REPLAYSHIM_OUT=tmp / "late")
	kinds = [e["t"] for e in events(tmp / "late")]
	same((p.returncode, kinds.count("begin"), kinds.count("end")), (0, 1, 1),
	     "forked after cuInit: the child writes nothing and ends well")
	same((calls(tmp / "late").get("cuMemAlloc_v2"), calls(tmp / "late").get("cuMemsetD8_v2")), (1, 1),
	     "and its calls are not counted")
	same(p.stderr.count("=="), 2, "and it says nothing")
	p = run([program], REPLAYSHIM_OUT=tmp / "early.%p")
	same((p.returncode, len(list(tmp.glob("early.*")))), (0, 2), "forked before cuInit: both are audited, each by itself")


def linkage():
	def tool(*command):
		return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
	needed = re.findall(r"NEEDED.*\[(.*)\]", tool("readelf", "-d", LIBRARY))
	if not SANITIZED:
		same(needed, ["libc.so.6"], "the library needs libc and nothing else")
		ok("DF_STATIC_TLS" in tool("readelf", "-d", LIBRARY) or "STATIC_TLS" in tool("readelf", "-d", LIBRARY),
		   "thread-local storage is of the initial-exec kind")
	symbols = tool("nm", "-D", "--defined-only", LIBRARY).split("\n")
	exported = {line.split()[-1] for line in symbols if line}
	table = set(re.findall(r"^EP\((\w+), \w+, (?!THIN)", (TOP / "shim" / "entry_points.def").read_text(), re.M))
	rand = set(re.findall(r"^CURAND\((\w+),", (TOP / "shim" / "curand.def").read_text(), re.M))
	cupti = set(re.findall(r"^\tX\((cupti\w+)\)", (TOP / "shim" / "busy.c").read_text(), re.M))
	others = exported - table - rand - cupti
	same((table | rand | cupti) - exported, set(), "every intercepted function is exported")
	same(others, {"dlsym", "dlvsym", "InitializeInjectionNvtx2", "InitializeInjectionNvtxExtension", "replayshim_active",
	              "replayshim_step", "replayshim_range_push", "replayshim_range_pop", "replayshim_forward_begin",
	              "replayshim_forward_end", "replayshim_replay_begin", "replayshim_replay_end", "replayshim_region_name",
	              "replayshim_region_drop", "replayshim_retain", "replayshim_suballoc", "replayshim_subfree",
	              "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE",
	              "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"}, "and besides them only what is meant to be")
	ok("@" not in "".join(exported), "no symbol has a version")


HEADER = r"""
#include "shim/include/replayshim.h"
#include <stdio.h>
int main(void)
{
	printf("%d %d %d ", replayshim_active(), replayshim_step(1), replayshim_range_pop());
	printf("%d %d ", replayshim_forward_begin("a", REPLAYSHIM_NEXT), replayshim_forward_end());
	printf("%d %d ", replayshim_replay_begin("a", 0L), replayshim_replay_end());
	printf("%d %d ", replayshim_region_name(4096UL, 64UL, "state:x"), replayshim_region_drop(4096UL, 64UL));
	printf("%d %d ", replayshim_suballoc(4096UL, 64UL), replayshim_subfree(4096UL));
	printf("%d\n", replayshim_retain("a", REPLAYSHIM_NEXT));
	return 0;
}
"""


def header():
	program = cc(None, "header", f"-I{TOP}", "-std=c89", "-Wall", "-Wextra", "-pedantic", "-Werror", text=HEADER)
	nothing = "-1" + 11 * " -1" + "\n"
	same(run([program], tool=False, sim=False).stdout, nothing, "the header's functions do nothing without the library")
	same(run([program], sim=False).stdout, nothing.replace("-1", "0", 1), "and before cuInit")
	(tmp / "h.cc").write_text('#include "shim/include/replayshim.h"\nint main() { return replayshim_step(1) + 1; }\n')
	p = subprocess.run(["g++", "-Wall", "-Wextra", "-pedantic", "-Werror", f"-I{TOP}", "-o", tmp / "h", tmp / "h.cc"])
	ok(p.returncode == 0 and run([tmp / "h"], tool=False, sim=False).returncode == 0, "the header works in C++")


strangers()
no_driver()
forked()
linkage()
header()
done()
