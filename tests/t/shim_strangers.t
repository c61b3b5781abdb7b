#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs that do with their process what the library may not expect (tests/shim/stranger.c): they must end as they do
without it, none of their files may have a byte of ours, and what could be seen must be in the records."""
import collections
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "shim"))
from harness import CC, LIBRARY, SANITIZED, SIM, TOP, cc, done, environment, link_flags, ok, same, tmp

place = tmp / "place"
TSAN = "tsan" in os.environ.get("RS_SAN", "")


def go(command, closed=(), limits=(), **where):
	"""In an empty folder: how it ended, stdout, stderr."""
	def prepare():
		for what, most in limits:
			resource.setrlimit(what, (most, most))
		for fd in closed:
			os.close(fd)

	shutil.rmtree(place, ignore_errors=True)
	place.mkdir()
	p = subprocess.run([str(c) for c in command], env=environment(**where), stdin=subprocess.DEVNULL, cwd=place,
	                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, preexec_fn=prepare)
	return p.returncode, p.stdout.decode(errors="replace"), p.stderr.decode(errors="replace")


def ours(stderr):
	return [line for line in stderr.splitlines() if line.startswith("==rs")]


def lines(folder, name):
	"""Each line is JSON, in UTF-8."""
	found = []
	for path in sorted(folder.rglob(name)):
		found += [json.loads(line) for line in path.read_bytes().decode("utf-8").splitlines()]
	return found


def outcomes(folder):
	return dict(collections.Counter(r["outcome"] for r in lines(folder, "records.jsonl")))


def is_whole(folder):
	return [e["t"] for e in lines(folder, "events.jsonl")].count("end") > 0


def stat(key):
	return [e for e in lines(place, "events.jsonl") if e["t"] == "stats"][-1][key]


def case(program, what, replays, whole=True, closed=(), args=(), **where):
	name = " ".join([what, *(repr(a)[:20] for a in args)]) + (f", {closed} closed" if closed else "")
	status, out, err = go([program, what, *args], closed=closed, tool=False)
	files = {p.name: p.read_bytes() for p in place.glob("mine*")}
	for mode in ("audit", "preserve"):
		s, o, e = go([program, what, *args], closed=closed, REPLAYSHIM_MODE=mode, REPLAYSHIM_OUT="out.%p", **where)
		# A product that a replay has made wrong without protection is right with it.
		mine = {p.name: p.read_bytes() for p in place.glob("mine*")}
		if mode == "preserve":
			out, o = (re.sub(r"sum \d+", "sum", text) for text in (out, o))
			files, mine = ({k: re.sub(rb"sum \d+", b"sum", v) for k, v in x.items()} for x in (files, mine))
		same((s, o, mine), (status, out, files), f"{name}, {mode}: ends the same way")
		if replays is not None:
			outcome = "match" if mode == "preserve" else "divergence"
			same((outcomes(place), is_whole(place)), ({outcome: replays}, whole), f"{name}, {mode}: {replays} replays")
		same([line for line in ours(e) if "replayshim" not in line], [], f"{name}, {mode}: has nothing to say")


def processes(program):
	case(program, "plain", 5)
	case(program, "closefrom", 8)
	case(program, "close-all", 8)
	case(program, "chdir", 5)
	case(program, "alarm", 204)
	if not TSAN:  # its library breaks these by itself: what is executed by vfork and spawn, and a main thread that ends first
		case(program, "children", 8)
	case(program, "exec", 7, args=("block", "2"))
	case(program, "_exit", 5, whole=False)
	case(program, "quick_exit", 5, whole=False)
	case(program, "abort", 5, whole=False)
	case(program, "kill", 5, whole=False)
	if not TSAN:
		case(program, "outlive", 4)
	case(program, "daemon", 4)
	if os.geteuid() == 0:
		case(program, "chroot", 5)
	else:
		ok(True, "chroot # SKIP not root")
	if not SANITIZED:
		case(program, "files=8", 5)
		case(program, "files=5", 5)
		case(program, "memory", None)
		ok(outcomes(place)["match"] >= 5 and (stat("internal_errors") or stat("lost") or stat("rejection")),
		   "no memory for a while: what was not followed is counted")
		status, out, err = go([program, "files=4"], REPLAYSHIM_OUT="out")
		ok(status == 0 and "sum " in out and "nothing will be recorded" in err, "no descriptor is left for us: said", err)


def descriptors(program):
	"""Where the program was started without them, its own files get their numbers."""
	for closed in ((0,), (1,), (2,), (0, 1, 2)):
		case(program, "plain", 5, closed=closed)
	status, out, err = go([program, "close-all"], closed=(0, 1, 2), REPLAYSHIM_OUT="out", REPLAYSHIM_LOG="debug")
	same([p.name for p in place.glob("mine*") if p.stat().st_size > 1 and p.name != "mine.1"], [],
	     "a program without stderr: no message in the file that has its number")
	status, out, err = go([program, "close-all"], REPLAYSHIM_OUT="out", REPLAYSHIM_LOG="debug", REPLAYSHIM_LOG_FILE="log")
	ok((place / "log").stat().st_size > 0 and all(b"==rs" not in p.read_bytes() for p in place.glob("mine*")),
	   "a log file that the program has closed: messages go into it all the same")


def directories(program):
	"""One process' data in one directory."""
	go([program], REPLAYSHIM_OUT="out/")
	for n in (2, 3):
		p = subprocess.run([program], cwd=place, env=environment(REPLAYSHIM_OUT="out/"), stdout=subprocess.DEVNULL,
		                   stderr=subprocess.PIPE, text=True)
		ok(f"this is in out.{n}" in p.stderr and len(lines(place / f"out.{n}", "records.jsonl")) == 5,
		   f"the same REPLAYSHIM_OUT again: out.{n}, and it is said", p.stderr)
	same(len(lines(place / "out", "records.jsonl")), 5, "the first one's data is untouched")
	go(["true"])
	both = [subprocess.Popen([program], cwd=place, env=environment(REPLAYSHIM_OUT="both"), stdout=subprocess.DEVNULL,
	                         stderr=subprocess.DEVNULL) for _ in range(4)]
	for p in both:
		p.wait()
	same(sorted((p.name, len(lines(p, "records.jsonl"))) for p in place.glob("both*")),
	     [("both", 5), ("both.2", 5), ("both.3", 5), ("both.4", 5)], "four at once: a directory each")


def names(program):
	long = "n" * 4000
	for name in ("a b", "it's \"q\" \\", "new\nline", "größe✓", b"lat\xe9in", "#3", "a#b", "forward:x", "*", "\x1b[31mred", "%s%n", long,
	             "é" * 2000, long + "2"):
		case(program, "plain", 5, args=(name,))
	found = {}
	for name in (long + "1", long + "2", "é" * 2000):
		go([program, "plain", name], REPLAYSHIM_OUT="out")
		found[name[-2:]] = {r["segment"] for r in lines(place, "records.jsonl")}
	ok(len(set(map(str, found.values()))) == 3 and all(len(v) == 1 and len(list(v)[0].encode()) < 128 for v in found.values()),
	   "names that are too long are cut, and different ones stay different", found)


CXX = r"""
#include <cstdio>
#include <stdexcept>
#include <vector>
#include "stranger_api.h"
struct guard { ~guard() { std::printf("unwound\n"); } };
static void fail(int n) { guard g; if (!n) throw std::runtime_error("deep"); fail(n - 1); }
int main()
{
	begin();
	for (int i = 0; i < 3; i++) {
		step(i);
		try { replayshim_forward_begin("thrown", 0); fail(3); } catch (const std::exception &e) { std::printf("%s\n", e.what()); }
		replayshim_forward_end();
	}
	return finish();
}
"""

LATE = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	int (*init)(unsigned), (*get)(int *, int), (*ctx)(void **, unsigned, int), (*alloc)(unsigned long long *, size_t);
	void *lib = dlopen("libcuda.so.1", argc > 1 ? RTLD_NOW | RTLD_GLOBAL : RTLD_LAZY | RTLD_LOCAL), *c;
	unsigned long long p;
	int d;
	if (!lib) return puts("no libcuda"), 1;
	init = dlsym(lib, "cuInit"); get = dlsym(lib, "cuDeviceGet");
	ctx = dlsym(lib, "cuCtxCreate_v2"); alloc = dlsym(lib, "cuMemAlloc_v2");
	printf("%d ", init(0));
	printf("%d ", get(&d, 0));
	printf("%d ", ctx(&c, 0, d));
	printf("%d\n", alloc(&p, 64));
	return 0;
}
"""

OTHER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
static int calls;
int close(int fd) { calls++; return ((int (*)(int))dlsym(RTLD_NEXT, "close"))(fd); }
void *malloc(size_t n) { static void *(*real)(size_t); if (!real) real = dlsym(RTLD_NEXT, "malloc"); calls++; return real(n); }
"""


def linkage(program):
	late = cc(None, "late", text=LATE)
	for args in ((), ("global",)):
		status, out, err = go([late, *args], REPLAYSHIM_OUT="out")
		same((status, out, stat("live_allocs")), (0, "0 0 0 0\n", 1),
		     f"libcuda opened late {' '.join(args)}: seen")
	now = tmp / "now"
	subprocess.run([CC, "-w", "-std=gnu11", f"-I{TOP}", "-o", now, TOP / "tests/shim/stranger.c", *link_flags(), "-lpthread",
	                "-Wl,-z,now,-z,relro", "-fno-plt"], check=True)
	case(now, "plain", 5)
	other = tmp / "other.so"
	(tmp / "other.c").write_text(OTHER)
	subprocess.run([CC, "-w", "-shared", "-fPIC", "-o", other, tmp / "other.c", "-ldl"], check=True)
	if SANITIZED:
		ok(True, "another preloaded library # SKIP it wraps what a sanitizer does")
	else:
		case(program, "closefrom", 8, preload=[other])
		status, out, err = go(["env", f"LD_PRELOAD={other}:{LIBRARY}", program, "closefrom"], tool=False, REPLAYSHIM_OUT="out")
		same((status, outcomes(place)), (0, {"divergence": 8}), "another preloaded library before ours")
	if shutil.which("g++"):
		api = (TOP / "tests/shim/stranger.c").read_text().split("static void steps(")[0]
		(tmp / "stranger_api.h").write_text('extern "C" {\n' + "\n".join(l for l in api.splitlines() if not l.startswith("#include"))
		                                   .replace("extern int cu", "int cu") + "\n}\n")
		(tmp / "thrown.cc").write_text("#include <cstring>\n#include <csignal>\n#include <cstdlib>\n#include <unistd.h>\n"
		                               '#include "shim/include/replayshim.h"\n' + CXX)
		thrown = tmp / "thrown"
		subprocess.run(["g++", "-w", f"-I{TOP}", f"-I{tmp}", "-o", thrown, tmp / "thrown.cc", *link_flags(), "-Wl,-z,now"], check=True)
		case(thrown, "", 3)
	else:
		ok(True, "C++ exceptions # SKIP no g++")


def bare(program):
	"""No HOME, no PATH, nothing."""
	env = {k: v for k, v in environment(REPLAYSHIM_OUT="out").items() if k.startswith(("LD_", "REPLAYSHIM_", "ASAN", "UBSAN", "TSAN"))}
	go(["true"], tool=False)
	p = subprocess.run([program], env=env, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
	same((p.returncode, outcomes(place)), (0, {"divergence": 5}), "an environment without HOME, PATH and locale")


def main():
	# Without tables an unwinder asks of each address whether it can be read.
	program = cc("stranger.c", "stranger", f"-I{TOP}", "-fno-asynchronous-unwind-tables", "-fno-omit-frame-pointer", *link_flags())
	processes(program)
	descriptors(program)
	directories(program)
	names(program)
	linkage(program)
	bare(program)
	done()


main()
