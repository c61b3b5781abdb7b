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
TYPES = r"""
#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>
#include <cudaTypedefs.h>
%s
#define SAME(a, b) __builtin_types_compatible_p(a, b)
#define EP(sym, group, action, since, flavour, params, args) \
	_Static_assert(SAME(CUresult (*) params, __typeof__(&sym)), #sym " is not declared like that");
#include "shim/entry_points.def"
#undef EP
%s
"""
if typedefs.exists():
	profiler = typedefs.parent / "cudaProfilerTypedefs.h"
	headers = typedefs.read_text() + (profiler.read_text() if profiler.exists() else "")
	found = set(re.findall(r"\bPFN_(cu\w+?)_v(\d+)(_ptsz|_ptds)?\b", headers))

	def base(symbol):
		return re.sub(r"(_v\d)?(_ptsz|_ptds)?$", "", symbol)

	known = {(base(r[0]), r[3], r[4]): r[0] for r in rows}
	same(len(known), len(rows), "name, version and flavour tell all rows apart")
	asked = {(b, v, twin[1:].upper() or "PLAIN") for b, v, twin in found}
	bases = {base(s) for s, _ in passive}
	same(sorted(a for a in asked if a not in known and a[0] not in bases), [],
	     "every type of cudaTypedefs.h is that of a row, by version and flavour, or passive")
	same(sorted(k for k in known if k not in asked and not (k[0].startswith("cuProfiler") and not profiler.exists())), [],
	     "and every row is one of its types")
	pfn = [(f"PFN_{b}_v{v}{twin}", known.get((b, v, twin[1:].upper() or "PLAIN"))) for b, v, twin in sorted(found)]
	checks = "\n".join(f'_Static_assert(SAME({t}, __typeof__(&{s})), "{t} is not the type of {s}");' for t, s in pfn if s)
	include = f"#include <cudaProfiler.h>\n#include <{profiler.name}>" if profiler.exists() else \
		"CUresult cuProfilerInitialize(const char *, const char *, unsigned), cuProfilerStart(void), cuProfilerStop(void);"
	p = subprocess.run([os.environ.get("CC", "gcc"), "-std=gnu11", "-fsyntax-only", "-w", "-fmax-errors=20", f"-I{TOP}",
	                    f"-I{typedefs.parent}", "-xc", "-"], input=TYPES % (include, checks), text=True,
	                   stderr=subprocess.PIPE)
	ok(p.returncode == 0 and len(checks) > 30000, "parameters are those of cuda.h, and each type fits the function it names", p.stderr)
else:
	ok(True, "no toolkit: the types of cudaTypedefs.h were not compared # SKIP")
done()
