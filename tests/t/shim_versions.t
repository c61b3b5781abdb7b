#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every name, version and flag: the library hands out the wrapper of exactly the ABI that the driver alone chooses.

Both forms of cuGetProcAddress, and dlsym, are asked for every name of the lists, in every version in which an ABI
came and the one before it, with each flag: on the simulated driver, on a driver that exports all names and does nothing
(tests/shim/null_*.c), and on the same driver giving addresses that are not its exported ones. What has no wrapper must
be the driver's own address, and a function that no list knows must be counted and named.
"""
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "shim"))
from harness import LIBRARY, SIM, TOP, cc, done, environment, null_driver, ok, same, stats, tmp

rows = re.findall(r"^EP\((\w+), (\w+), (\w+), (\d+), (\w+), ", (TOP / "shim" / "entry_points.def").read_text(), re.M)
passive = re.findall(r"^PASSIVE\((\w+), ", (TOP / "shim" / "passive.def").read_text(), re.M)
wrapped = {r[0] for r in rows if r[2] != "THIN"}


def base(symbol):
	return re.sub(r"(_v\d)?(_ptsz|_ptds)?$", "", symbol)


symbols = [r[0] for r in rows] + passive
names = sorted(set(symbols) | {base(s) for s in symbols}) + [
	"cuNoSuchThing", "cuBrandNewThing", "cuMulticastBindMem_v2", "cuMemAlloc_v3", "cudaMalloc", "cuinit", "", "strlen"]
since = {int(r[3]) for r in rows}
versions = sorted(since | {v - 1 for v in since} | {0, 1000})
newer = [13010, 99000]

null = null_driver()
client = cc("ask_client.c", "ask", "-O2")


def ask(name, driver, tool, versions, **variables):
	env = environment(tool=tool, LD_LIBRARY_PATH=driver, REPLAYSHIM_QUIET=1, REPLAYSHIM_OUT=tmp / name, **variables)
	p = subprocess.run([client, *map(str, versions)], env=env, input="".join(n + "\n" for n in names),
	                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
	lines = dict(line.split(": ", 1) for line in p.stdout.splitlines() if ": " in line)
	ok(p.returncode == 0 and len(lines) == len(names) * 9, f"{name}: every question has its answer", p.stderr)
	return lines


def through(answer, exported):
	"""What the library makes of an answer of the driver; exported: the answer that has exported addresses."""
	out = []
	for got, named in zip(answer.split(), exported.split()):
		symbol = named.split(":")[-1]
		if symbol in wrapped:
			got = got[:got.rindex(",") + 1] if "," in got else ""
			got += f"{LIBRARY.name}:{symbol}"
		out.append(got)
	return " ".join(out)


def compare(name, driver, versions, exported=None, **variables):
	alone = ask(f"{name}, alone", driver, False, versions, **variables)
	exported = exported or alone
	under = ask(f"{name}, audited", driver, True, versions, **variables)
	same(alone.keys(), under.keys(), f"{name}: the same questions")
	wrong = [(q, alone[q], under[q], through(alone[q], exported[q])) for q in alone
	         if under.get(q) != through(alone[q], exported[q])]
	ok(not wrong, f"{name}: wrappers of what the driver chose, or its own addresses",
	   "\n".join("\n  ".join(w) for w in wrong[:5]))
	same(ask(f"{name}, off", driver, True, versions, REPLAYSHIM_MODE="off", **variables), alone,
	     f"{name}: off changes nothing")
	return alone


def given(lines):
	"""The symbols that were handed out at all."""
	return {a.split(":")[-1].split("=")[0] for text in lines.values() for a in re.findall(r"libcuda\S*:[^ ]*", text)}


simulated = compare("simulated", SIM, versions + newer)
ok(len(given(simulated)) > 300, "the simulated driver has most of them")
full = compare("null", null, versions + newer)
same(set(symbols) - given(full), set(), "the null driver gives every ABI to some question")
print(f"# {len(names)} names, {len(versions)} versions, 4 flags, 2 functions, 3 drivers")

s = stats(tmp / "null, audited")
same(sorted(s.get("unknown", [])), ["cuBrandNewThing", "cuMulticastBindMem", "cuMulticastBindMem_v2"],
     "null: the functions that no list has are named, also a newer ABI of a known name")
same((s.get("unknown_names", 0) > 0, s.get("by_name")), (True, 0), "and counted; no wrapper had to be chosen by name")
same(stats(tmp / "simulated, audited").get("unknown_names"), 0, "simulated: nothing is unknown")

compare("thunks", null, versions, exported=ask("null, known versions", null, False, versions), NULL_DRIVER_THUNKS=1)
s = stats(tmp / "thunks, audited")
ok(s.get("by_name", 0) > 1000, "thunks: the wrappers were chosen by name, and that is counted", s)

# What a version newer than the table means, the table cannot know: not wrapped, and counted.
plain = ask("newer, alone", null, False, newer, NULL_DRIVER_THUNKS=1)
under = ask("newer, audited", null, True, newer, NULL_DRIVER_THUNKS=1)
procs = [q for q in plain if not q.startswith("dlsym") and not q.startswith("cuGetProcAddress cuGetProcAddress")]
procs = [q for q in procs if q.split()[1] != "cuGetProcAddress"]
same({q: under[q] for q in procs}, {q: plain[q] for q in procs}, "thunks of newer versions are the driver's own")
ok(stats(tmp / "newer, audited").get("unknown_names", 0) > 1000, "and counted as unknown")
done()
