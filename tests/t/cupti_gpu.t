#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""On a real GPU with libcupti only: what CUPTI says of a segment's time, next to what events say."""
import ctypes.util
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "shim"))
from harness import BUILD, LIBRARY, done, environment, events, ok, same, tmp

BUSY = BUILD / "clients" / "busy"


def skip(why):
	print(f"1..0 # SKIP {why}")
	sys.exit(0)


def run(*args, tool=True, **variables):
	"""On the machine's own driver."""
	env = environment(tool=False, sim=False, **variables)
	if tool:
		env["LD_PRELOAD"] = str(LIBRARY)
	return subprocess.run([BUSY, *args], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
	                      timeout=300, cwd=tmp)


if os.environ.get("RS_SAN", "").strip():
	skip("a sanitizer's library cannot be preloaded into a plain program")
if not os.path.exists("/dev/nvidiactl"):
	skip("no GPU (/dev/nvidiactl)")
if not ctypes.util.find_library("cuda"):
	skip("no libcuda.so.1")
args = ("--steps=20", f"--size={1 << 24}")
plain = run(*args, tool=False)
if plain.returncode:
	skip(f"the driver does not run {BUSY.name}: {plain.stdout.strip()}")
without = run(*args, REPLAYSHIM_MODE="audit", REPLAYSHIM_COSTS=1, REPLAYSHIM_OUT=tmp / "without")
both = run(*args, REPLAYSHIM_MODE="audit", REPLAYSHIM_CUPTI="on", REPLAYSHIM_OUT=tmp / "both")
lines = events(tmp / "both")
lost = [e["text"] for e in lines if e["t"] == "finding" and e["code"] == "RS091"]
if lost and "not found" in lost[0]:
	skip("no libcupti")
same((without.stdout, both.stdout), (plain.stdout, plain.stdout), "results are those of a run without the tool")
same(lost, [], "CUPTI is there to the end")
numbers = [e for e in lines if e["t"] == "cupti"][-1]
same([numbers[k] for k in ("dropped", "broken", "forgotten")], [0, 0, 0], "no records were lost")
cost = {e["segment"]: e for e in lines if e["t"] == "cost"}
alone = {e["segment"]: e for e in events(tmp / "without") if e["t"] == "cost"}
for name in ("chain", "wide"):
	for kind in ("forward", "replay"):
		event, busy = cost[name][kind], cost[name][kind + "_busy"]
		print(f"# {name} {kind}: events {event['median_ns']} ns (+- {event['error_ns']}), without CUPTI "
		      f"{alone[name][kind]['median_ns']} ns; busy {busy['median_ns']} ns (+- {busy['error_ns']}, n {busy['n']})")
		ok(busy["n"] >= 10, f"{name}, {kind}: busy times of most steps", busy)
# Of "wide", whose calls go to two streams, events see from before the first call's to after the last call's.
for kind in ("forward", "replay"):
	event, busy = cost["chain"][kind]["median_ns"], cost["chain"][kind + "_busy"]["median_ns"]
	ok(0.5 * event <= busy <= 1.1 * event + 5000, f"chain, {kind}: long kernels one after the other fill the time",
	   (busy, event))
done()
