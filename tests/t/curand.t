#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Segments that draw with cuRAND: without the tool, under audit, preserved; by handle, globally and linked.

Without the tool a replay draws other numbers than its forward did and leaves the generator further on. An audit
changes nothing and says so (RS002). Preserved, a replay gets its forward's numbers, and what is drawn afterwards is
what would have been drawn had nothing been replayed.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "shim"))
from harness import BUILD, SIM, TOP, calls, cc, done, ok, run, same, tmp

CLIENT = BUILD / "clients" / "curand_segments"
RAND = BUILD / "simcurand"
SCHEDULES = ("eager", "lazy", "random:1")
# Case: the records of its replays, in order, and the variants that it is run in.
FORMS = (["--replays=2"], ["--replays=3", "--streams"], ["--replays=1", "--global"])
CASES = {"one": [0], "two": [0], "invocations": [1, 0], "between": [0], "reseed": [0], "doubles": [0]}
TYPES = {"XORWOW": 101, "MRG32k3a": 121, "Philox": 161, "Sobol32": 201}


def client(args, mode, schedule):
	"""Output as {name: hash}, records, the process."""
	out = tmp / "run"
	shutil.rmtree(out, ignore_errors=True)
	p = run([CLIENT, *args], tool=mode != "none", SIMCUDA_SCHED=schedule, REPLAYSHIM_OUT=out,
	        REPLAYSHIM_MODE=mode if mode != "none" else "off")
	lines = (out / "records.jsonl").read_text().splitlines() if (out / "records.jsonl").exists() else []
	return dict(re.findall(r"(\S+)=(\S+)", p.stdout)), [json.loads(line) for line in lines], p


def products(words):
	"""Pairs of a replay's product and its forward's."""
	return [(v, words[f"F{k[1]}.0"]) for k, v in words.items() if k.startswith("R")]


def rest(words):
	return {k: v for k, v in words.items() if not k.startswith("R")}


def check(case, args, schedule):
	"""What is wrong, by mode."""
	bad = {"none": [], "audit": [], "preserve": []}
	times = int(args[0][-1])
	replays = [(i, k + 1) for i in CASES[case] for k in range(times)]
	plain, _, p = client([case, *args], "none", schedule)
	never, _, _ = client([case, *args, "--replays=0"], "none", schedule)
	if p.returncode or len(products(plain)) != len(replays) or any(r == f for r, f in products(plain)):
		bad["none"].append(f"{schedule}: replays drew the same: {plain} {p.stderr[-200:]}")
	if rest(plain) == rest(never):
		bad["none"].append(f"{schedule}: the generator did not move: {plain}")

	_, records, audited = client([case, *args], "audit", schedule)
	if (audited.returncode, audited.stdout) != (0, p.stdout):
		bad["audit"].append(f"{schedule}: status {audited.returncode}, {audited.stdout} {audited.stderr[-200:]}")
	if [(r["invocation"], r["replay"]) for r in records] != replays:
		bad["audit"].append(f"{schedule}: records {records}")
	bad["audit"] += [f"{schedule}: {r}" for r in records if r["outcome"] != "divergence" or r["codes"] != ["RS002"]]

	words, records, p = client([case, *args], "preserve", schedule)
	if p.returncode or any(r != f for r, f in products(words)) or len(products(words)) != len(replays):
		bad["preserve"].append(f"{schedule}: status {p.returncode}, {words} {p.stderr[-200:]}")
	if rest(words) != rest(never):
		bad["preserve"].append(f"{schedule}: left behind {rest(words)}, not {rest(never)}")
	if [(r["invocation"], r["replay"]) for r in records] != replays:
		bad["preserve"].append(f"{schedule}: records {records}")
	bad["preserve"] += [f"{schedule}: {r}" for r in records if r["outcome"] != "match"]
	return bad


def cases():
	for case in CASES:
		for args in FORMS:
			bad = {"none": [], "audit": [], "preserve": []}
			for schedule in SCHEDULES:
				for mode, lines in check(case, args, schedule).items():
					bad[mode] += lines
			name = " ".join([case, *args])
			ok(not bad["none"], f"{name}: goes wrong by itself", "\n".join(bad["none"][:4]))
			ok(not bad["audit"], f"{name}: audited, unchanged and explained", "\n".join(bad["audit"][:4]))
			ok(not bad["preserve"], f"{name}: preserved, right", "\n".join(bad["preserve"][:4]))
	for name, number in TYPES.items():
		bad = sum(check("between", ["--replays=2", f"--type={number}"], "random:3").values(), [])
		ok(not bad, f"{name}: wrong by itself, explained and preserved", "\n".join(bad[:4]))


def restored():
	"""The program restores the generator itself: nothing to complain about, nothing to spoil."""
	for mode in ("none", "audit", "preserve"):
		for schedule in SCHEDULES:
			words, records, p = client(["restored", "--replays=1"], mode, schedule)
			never, _, _ = client(["restored", "--replays=0"], "none", schedule)
			good = p.returncode == 0 and all(r == f for r, f in products(words)) and rest(words) == rest(never)
			ok(good and all(r["outcome"] == "match" and not r["codes"] for r in records) and
			   len(records) == (mode != "none"), f"restored by the program, {mode}, {schedule}: a match",
			   f"{words} {never} {records} {p.stderr[-300:]}")


LINKED = r"""
#include <cuda.h>
#include <stdio.h>
#include "shim/curand_abi.h"
rs_curand_status curandCreateGenerator(rs_curand *, int), curandCreateGeneratorHost(rs_curand *, int);
rs_curand_status curandGenerateUniform(rs_curand, float *, size_t), curandDestroyGenerator(rs_curand);
rs_curand_status curandGetVersion(int *), curandGenerateNormal(rs_curand, float *, size_t, float, float);
int main(void)
{
	float got[4] = {0}, host[4] = {0};
	int version = 0, r[8];
	rs_curand g, h;
	CUdeviceptr p;
	CUcontext c;
#ifndef BY_LIBRARY
	cuInit(0), cuCtxCreate(&c, NULL, 0, 0);
#endif
	r[0] = curandCreateGenerator(&g, 101);
	r[1] = curandCreateGenerator(&h, 7);
	r[2] = curandCreateGeneratorHost(&h, 161);
	r[3] = curandGetVersion(&version);
	cuMemAlloc(&p, sizeof(got));
	r[4] = curandGenerateUniform(g, (float *)p, 4);
	r[5] = curandGenerateNormal(g, (float *)p, 3, 0, 1);
	r[6] = curandGenerateUniform(h, host, 4);
	cuMemcpyDtoH(got, p, sizeof(got));
	r[7] = curandDestroyGenerator(g) + curandDestroyGenerator(h);
	for (int i = 0; i < 8; i++)
		printf("%d ", r[i]);
	printf("%d %a %a %a\n", version, got[0], got[3], host[2]);
	return 0;
}
"""


def linked():
	for form, define in (("program", []), ("library", ["-DBY_LIBRARY"])):
		flags = [f"-I{TOP}", "-isystem", "/usr/local/cuda/include", "-isystem", BUILD / "cuda/include", "-isystem",
		         TOP / "build/cuda/include", f"-L{SIM}", "-lcuda", RAND / "libcurand.so.10", f"-Wl,-rpath,{RAND}"]
		program = cc("", f"linked_{form}", *define, *map(str, flags), text=LINKED)
		plain = run([program], tool=False)
		ok(re.match(r"0 103 0 0 0 105 0 0 10400 0x1.", plain.stdout), f"linked, driver opened by the {form}: runs",
		   plain.stdout + plain.stderr)
		for mode in ("audit", "preserve", "nop", "off"):
			out = tmp / f"linked.{form}.{mode}"
			p = run([program], REPLAYSHIM_MODE=mode, REPLAYSHIM_OUT=out, REPLAYSHIM_QUIET=1)
			same((p.returncode, p.stdout, p.stderr), (0, plain.stdout, ""), f"{form}, {mode}: nothing is different")
			if mode not in ("audit", "preserve"):
				continue
			got = calls(out)
			same({k: v for k, v in got.items() if k.startswith("curand")},
			     {"curandCreateGenerator": 2, "curandCreateGeneratorHost": 1, "curandGetVersion": 1,
			      "curandGenerateUniform": 2, "curandGenerateNormal": 1, "curandDestroyGenerator": 2},
			     f"{form}, {mode}: every call is counted")
			ends = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
			stats = [e for e in ends if e["t"] == "stats"][-1]
			same((stats["draws_host"], stats["draws_unfollowed"]), (1, 0), f"{form}, {mode}: draws into host memory too")


def table():
	rows = re.findall(r"^CURAND\((\w+), (\w+), \((.*)\), \((.*)\)\)$", (TOP / "shim" / "curand.def").read_text(), re.M)
	names = sorted(r[0] for r in rows)
	same(len(set(names)), 27, "27 functions")

	def exported(library):
		out = subprocess.run(["nm", "-D", "--defined-only", library], stdout=subprocess.PIPE, text=True, check=True).stdout
		return sorted(re.findall(r" T (curand\w+)", out)), out
	found, text = exported(RAND / "libcurand.so.10")
	same(found, names, "the stand-in has them all")
	same(text.count("@@libcurand.so.10"), 28, "under the version that the real one has")
	same(exported(BUILD / "libreplayshim.so")[0], names, "and so has the library, without a version")
	real = pathlib.Path("/usr/local/cuda/lib64/libcurand.so.10")
	if real.exists():
		same(exported(real)[0], names, "and the real one")
	else:
		ok(True, "and the real one # SKIP no toolkit")


cases()
restored()
linked()
table()
done()
