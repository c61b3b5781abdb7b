#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What was not seen is counted, named in the report, and makes the verdict "cannot tell" where a replay may depend on it.

On a driver that has all functions and does nothing: every counted function, unknown names, functions of a second
library, private tables, launches of unknown kernels.
"""
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "shim"))
from harness import BUILD, TOP, calls, cc, done, environment, events, null_driver, ok, same, stats, tmp

rows = re.findall(r"^EP\((\w+), (\w+), (\w+), ", (TOP / "shim" / "entry_points.def").read_text(), re.M)
answering = re.findall(r"^API (\w+)\(", (TOP / "tests" / "shim" / "null_driver.c").read_text(), re.M)
observed = sorted(r[0] for r in rows if r[2] == "OBSERVE" and r[0] not in answering)
null = null_driver()
other = cc(None, "libother.so", "-shared", "-fPIC",
           text="int cuMemAlloc_v2(void) { return 0; } int cuInit(void) { return 0; } int cuOwnThing(void) { return 0; }")

CLIENT = """
import ctypes, sys
cu = ctypes.CDLL("libcuda.so.1")
cu.cuInit(0)
zero = [ctypes.c_size_t(0)] * 10
what = sys.argv[1]
if what == "observed":
	for name in sys.argv[2:]:
		getattr(cu, name)(*zero)
elif what == "unknown":
	for name in ["cuBrandNewThing", "cuMulticastBindMem_v2", "cuBrandNewThing"]:
		cu[name]
elif what == "foreign":
	lib = ctypes.CDLL(sys.argv[2])
	lib["cuMemAlloc_v2"], lib["cuMemAlloc_v2"]
elif what == "tables":
	table, one, two = ctypes.c_void_p(), bytes(range(16)), bytes(range(16, 32))
	for guid in (one, two, one):
		cu.cuGetExportTable(ctypes.byref(table), guid)
elif what == "kernels":
	rs = ctypes.CDLL(None)
	rs.replayshim_step(ctypes.c_long(1))
	rs.replayshim_forward_begin(b"a", ctypes.c_long(0))
	cu.cuLaunchKernel(ctypes.c_size_t(0x1234), 1, 1, 1, 1, 1, 1, 0, *zero[:3])
	rs.replayshim_forward_end()
elif what == "ours":
	ctypes.CDLL(None)["cuMemAlloc_v2"]
"""


def client(what, *more):
	out = tmp / what
	env = environment(LD_LIBRARY_PATH=null, REPLAYSHIM_QUIET=1, REPLAYSHIM_OUT=out)
	p = subprocess.run([sys.executable, "-c", CLIENT, what, *map(str, more)], env=env, stdout=subprocess.PIPE,
	                   stderr=subprocess.PIPE, text=True, timeout=60)
	ok(p.returncode == 0 and not p.stdout, f"{what}: runs", p.stderr)
	text = subprocess.run([BUILD / "replayctl", "report", "-v", out], stdout=subprocess.PIPE, text=True).stdout
	o = json.loads(subprocess.run([BUILD / "replayctl", "report", "--format=json", out], stdout=subprocess.PIPE).stdout)
	return out, o["runs"][0], text


out, run, text = client("observed", *observed)
got = calls(out)
same([n for n in observed if got.get(n) != 1], [], "observed: every function that is only counted is, once")
ok(len([e for e in events(out) if "calls" in e]) > 2, "observed: in several lines, since they do not fit into one")
same([n for n in observed if run["coverage"]["calls"].get(n) != 1], [], "observed: the report has all")
ok(not any(e.get("cut") for e in events(out) if e["t"] == "stats"), "observed: nothing is cut off")
last = stats(out)
ok("steps" in last and "unknown_names" in last, "observed: the last line has all numbers", last)

out, run, text = client("unknown")
same((stats(out)["unknown_names"], stats(out)["unknown"]), (3, ["cuBrandNewThing", "cuMulticastBindMem_v2"]),
     "unknown: counted, each name once")
ok("unknown to the tool 3 (cuBrandNewThing, cuMulticastBindMem_v2)" in text, "unknown: in the report", text)
ok(not any("does not know" in r for r in run["reasons"]), "unknown: asked for is not called", run["reasons"])

out, run, text = client("foreign", other)
same((stats(out)["foreign_names"], stats(out)["foreign"]), (2, ["cuMemAlloc_v2"]), "foreign: counted, and named")
ok("of another library than the driver 2 (cuMemAlloc_v2)" in text, "foreign: in the report", text)
ok(any("another library" in r for r in run["reasons"]), "foreign: cannot tell, with the reason", run["reasons"])
out, run, text = client("ours")
same((stats(out)["foreign_names"], stats(out)["unknown_names"]), (0, 0), "ours: the library itself is not foreign")

out, run, text = client("tables")
same(stats(out)["tables"], ["00010203-0405-0607-0809-0a0b0c0d0e0f", "10111213-1415-1617-1819-1a1b1c1d1e1f"],
     "tables: each is named once")
ok("private tables asked for 3 (00010203-" in text, "tables: in the report", text)
ok(not any("table" in r for r in run["reasons"]), "tables: cudart asks for some always, so they are no doubt", run["reasons"])

out, run, text = client("kernels")
same(stats(out)["unknown_kernels"], 1, "kernels: a launch of an unknown handle is counted")
ok("of kernels not seen loaded 1" in text, "kernels: in the report", text)
done()
