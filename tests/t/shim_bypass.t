#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Code that reaches the driver past the library is found, named and reported, and runs as it did without the library."""
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "shim"))
from harness import BUILD, SANITIZED, TOP, calls, cc, done, events, link_flags, ok, run, same, stats, tmp

if SANITIZED:
	# A sanitizer's runtime refuses RTLD_DEEPBIND, and to be loaded twice.
	ok(True, "RTLD_DEEPBIND and dlmopen do not go together with sanitizers # SKIP")
	done()

host = cc("plugin_host.c", "host", f"-I{TOP}")
shared = ["-shared", "-fPIC", "-fvisibility=hidden"]
lookup = cc("plugin.c", "lookup.so", *shared)
linked = cc("plugin.c", "linked.so", *shared, "-DLINKED", *link_flags())
eager = cc("plugin.c", "eager.so", *shared, "-DLINKED", "-fno-plt", "-Wl,-z,now", *link_flags())
innocent = cc("plugin.c", "innocent.so", *shared, "-DINNOCENT")


def report(directory):
	p = subprocess.run([BUILD / "replayctl", "report", "--format=json", directory], stdout=subprocess.PIPE, text=True)
	text = subprocess.run([BUILD / "replayctl", "report", directory], stdout=subprocess.PIPE, text=True).stdout
	return p.returncode, json.loads(p.stdout)["runs"][0], text


def case(name, how, plugin, *more, found):
	"""found: (object, how, imports, matters) of each bypass, in any order."""
	out = tmp / name
	plain = run([host, how, plugin, *more], tool=False)
	p = run([host, how, plugin, *more], REPLAYSHIM_OUT=out, REPLAYSHIM_QUIET=1)
	same((p.stdout, p.returncode), (plain.stdout, plain.returncode), f"{name}: the program runs as it did")
	ok("worked 0" in plain.stdout or how == "none", f"{name}: and the plugin works", plain.stdout)
	lines = [e for e in events(out) if e["t"] == "bypass"]
	got = sorted((pathlib.Path(e["object"]).name, e["how"], e["imports"], e["matters"]) for e in lines)
	same(got, sorted(found), f"{name}: what is found")
	matter = [f for f in found if f[3]]
	same([e["code"] for e in events(out) if e["t"] == "finding"], ["RS061"] * len(matter), f"{name}: findings")
	same(p.stderr.count("past the library"), len(matter), f"{name}: a line on stderr for each")
	code, o, text = report(out)
	same((code, o["verdict"]), (1 if matter else 0, "cannot-tell" if matter else "clean"), f"{name}: verdict")
	same(sorted(pathlib.Path(b["object"]).name for b in o["bypasses"]), sorted(f[0] for f in found), f"{name}: JSON")
	ok(f"objects past the library {len(found)}" in text and all(f[0] in text for f in found), f"{name}: text", text)
	return out, lines


plain = ("cuInit", "cuCtxCreate_v2", "cuMemAlloc_v2")
out, _ = case("none", "none", lookup, found=[])
base = {k: calls(out)[k] for k in plain}
out, _ = case("plain-lookup", "plain", lookup, found=[])
same({k: calls(out)[k] for k in plain}, {k: v + 1 for k, v in base.items()}, "plain-lookup: the plugin's calls are seen")
case("plain-linked", "plain", linked, found=[])
case("plain-eager", "plain", eager, found=[])

out, lines = case("deepbind-lookup", "deepbind", lookup, found=[("lookup.so", "RTLD_DEEPBIND", "dlsym", True)])
same({k: calls(out)[k] for k in plain}, base, "deepbind-lookup: the plugin's calls are not seen, which is why it is told")
same((lines[0]["step"], lines[0]["object"]), (2, str(lookup)), "deepbind-lookup: told at the next step, with its path")
same((stats(out)["bypass"], stats(out)["bypass_idle"]), (1, 0), "deepbind-lookup: counted")
case("deepbind-linked", "deepbind", linked, found=[("linked.so", "RTLD_DEEPBIND", "cuInit", True)])
case("deepbind-eager", "deepbind", eager, found=[("eager.so", "RTLD_DEEPBIND", "cuInit", True)])
out, _ = case("deepbind-innocent", "deepbind", innocent, found=[("innocent.so", "RTLD_DEEPBIND", "dlsym", False)])
same((stats(out)["bypass"], stats(out)["bypass_idle"]), (0, 1), "deepbind-innocent: counted apart")
_, lines = case("lazy-lookup", "lazy", lookup, found=[("lookup.so", "RTLD_DEEPBIND", "dlsym", True)])
same(lines[0]["step"], 3, "lazy-lookup: told at the step after its first call, when its slot was bound")
out, _ = case("left", "deepbind", lookup, "leave", found=[("lookup.so", "RTLD_DEEPBIND", "dlsym", True)])
same([e for e in events(out) if e["t"] == "end"], [], "left: told although the program went by _exit")

second = ("libcuda.so.1", "dlmopen", "a second driver", True)
case("dlmopen-lookup", "dlmopen", lookup, found=[second, ("lookup.so", "dlmopen", "dlsym", True)])
case("dlmopen-linked", "dlmopen", linked, found=[second, ("linked.so", "dlmopen", "cuInit", True)])
case("dlmopen-innocent", "dlmopen", innocent, found=[])

ONLY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
int main(int argc, char **argv)
{
	void *h = argv[1][0] == 'd' ? dlmopen(LM_ID_NEWLM, argv[2], RTLD_NOW) : dlopen(argv[2], RTLD_NOW | RTLD_DEEPBIND);
	int (*work)(void) = h ? dlsym(h, "work") : 0;
	return work ? work() : 99;
}
"""
only = cc(None, "only", text=ONLY)
for how, plugin, name in (("dlmopen", lookup, "libcuda.so.1"), ("bind", lookup, "lookup.so"), ("bind", linked, "linked.so")):
	for mode, said in (("audit", 1), ("preserve", 1), ("nop", 0), ("off", 0)):
		p = run([only, how, plugin], REPLAYSHIM_OUT=tmp / "only.data", REPLAYSHIM_MODE=mode)
		ok(p.returncode == 0 and not p.stdout and p.stderr.count("nothing was seen") == said == len(p.stderr.splitlines()) and
		   (not said or name in p.stderr), f"{how} {plugin.name}, {mode}: past the library altogether; "
		   f"{'one line says so' if said else 'nothing is said'}", p.stderr)
p = run([only, "bind", innocent])
same((p.returncode, p.stderr), (0, ""), "no driver: nothing is said")
ok(not (tmp / "only.data").exists(), "and no data is left")
done()
