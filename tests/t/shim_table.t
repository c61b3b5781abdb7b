#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The two lists of driver functions: complete, without overlap, and true to the toolkit where there is one."""
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "shim"))
from harness import LIBRARY, TOP, done, ok, same

text = (TOP / "shim" / "entry_points.def").read_text()
rows = re.findall(r"^EP\((\w+), (\w+), (\w+), (\d+), (\w+), \((.*)\), \((.*)\)\)$", text, re.M)
table = [r[0] for r in rows]
groups = re.findall(r"^GROUP\((\w+), \".+\"\)$", text, re.M)
abouts = re.findall(r"^ABOUT\((\w+), (\w+), \".+\"\)$", text, re.M)
passive_text = (TOP / "shim" / "passive.def").read_text()
passive = re.findall(r"^PASSIVE\((\w+), (\w+)\)$", passive_text, re.M)
reasons = dict(re.findall(r'^REASON\((\w+), "(.+)"\)$', passive_text, re.M))

ok(len(table) > 300 and text.count("\nEP(") == len(rows), "every row of entry_points.def has the form of a row")
same([s for s in set(table) if table.count(s) > 1], [], "no function is in it twice")
same({r[2] for r in rows}, {"REPLACE", "OBSERVE", "THIN"}, "actions are the three known ones")
thin = [r for r in rows if r[2] == "THIN"]
same([r[0] for r in thin if int(r[3]) >= 3020 or r[4] != "PLAIN"], [], "THIN are ABIs from before CUDA 3.2 only")
same([r[0] for r in rows if "CUdeviceptr_v1" in r[5] and r[2] != "THIN"], [], "and all of those with narrow pointers")
same(sorted({r[1] for r in rows}), groups, "every group has its title, in order")
same(sorted(abouts), sorted({(r[1], r[2]) for r in rows if r[2] != "THIN"}),
     "what is done is told for every group and action that there is, and for no other (ABOUT)")
same(set(table) & {s for s, _ in passive}, set(), "no function is in both lists")
same([s for s, r in passive if r not in reasons], [], "every passive function has a reason")
same([r for r in reasons if r not in {x for _, x in passive}], [], "every reason is used")
for symbol, _, _, since, flavour, _, _ in rows:
	want = {"_ptsz": "PTSZ", "_ptds": "PTDS"}.get(symbol[-5:], "PLAIN")
	if flavour != want or not 2000 <= int(since) <= 13000:
		ok(False, f"{symbol}: flavour {flavour}, since {since}")
extra = re.search(r"define RS_REAL_EXTRA\(X\)((?:.*\\\n)*.*)", (TOP / "shim" / "shim.h").read_text()).group(1)
same(set(re.findall(r"X\((\w+)\)", extra)) & set(table), set(), "what the shim calls besides is not in the table")
source = "\n".join(p.read_text() for p in (TOP / "shim").glob("*.c"))
hooked = set(re.findall(r"\b(cu[A-Z]\w+)\b", source))
same([r[0] for r in rows if r[2] == "REPLACE" and r[0] not in hooked], [], "every REPLACE row has its wrapper")

home = pathlib.Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda")
stub = next((p for p in (home / "lib64/stubs/libcuda.so", home / "lib/stubs/libcuda.so") if p.exists()), None)
if stub:
	out = subprocess.run(["nm", "-D", "--defined-only", stub], stdout=subprocess.PIPE, text=True, check=True).stdout
	exported = {line.split()[-1] for line in out.splitlines() if re.match(r"cu[A-Z]", line.split()[-1])}
	listed = set(table) | {s for s, _ in passive}
	same(sorted(exported - listed), [], "every function that the toolkit's driver exports is classified")
	same(sorted(listed - exported), [], "and no list names one that it does not export")
else:
	ok(True, "no toolkit: what its driver exports was not compared # SKIP")

typedefs = home / "include" / "cudaTypedefs.h"
if typedefs.exists():
	profiler = typedefs.parent / "cudaProfilerTypedefs.h"
	headers = typedefs.read_text() + (profiler.read_text() if profiler.exists() else "")
	found = re.findall(r"\bPFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\b", headers)
	versions = {}
	for base, version, twin in found:
		versions.setdefault((base, bool(twin)), set()).add(int(version))
	wrong = []
	for symbol, _, _, since, flavour, _, _ in rows:
		base = re.sub(r"(_v\d)?(_ptsz|_ptds)?$", "", symbol)
		if base.startswith("cuProfiler") and not profiler.exists():
			continue
		if int(since) not in versions.get((base, flavour != "PLAIN"), set()):
			wrong.append((symbol, since))
	same(wrong, [], "the versions are those of cudaTypedefs.h")
done()
