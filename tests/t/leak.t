#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Under valgrind: what the library and the simulated device hold at the end does not depend on the number of steps."""
import os
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "shim"))
from harness import BUILD, TOP, done, ok, run, same, tmp

FEW, MANY = 4, 40
SLACK = 512  # bytes, and a tenth of it in blocks: a table that has found its size a step later
LINES = {"definitely lost": "definitely", "indirectly lost": "indirectly", "possibly lost": "possibly",
         "still reachable": "reachable"}

if not shutil.which("valgrind"):
	print("1..0 # SKIP valgrind is not installed")
	sys.exit(0)
if os.environ.get("RS_SAN", "").strip():
	print("1..0 # SKIP instrumented code does not run under valgrind")
	sys.exit(0)


def heap(name, program, steps, mode):
	"""(exit status, stdout, {kind: (bytes, blocks)}, errors)"""
	log = tmp / f"{name}.log"
	p = run(["valgrind", "--leak-check=full", "--show-leak-kinds=all", "--num-callers=16", f"--log-file={log}",
	         f"--suppressions={TOP / 'tests' / 'valgrind.supp'}",
	         BUILD / "clients" / program[0], *program[1:], f"--steps={steps}"],
	        REPLAYSHIM_MODE=mode, REPLAYSHIM_QUIET=1, REPLAYSHIM_OUT=tmp / name)
	text = log.read_text()
	held = {}
	for line, kind in LINES.items():
		m = re.search(rf"{line}: ([\d,]+) bytes in ([\d,]+) blocks", text)
		held[kind] = tuple(int(n.replace(",", "")) for n in m.groups()) if m else (0, 0)
	errors = re.search(r"ERROR SUMMARY: (\d+)", text)
	return p, held, int(errors.group(1)) if errors else -1, text


def used(p):
	return [line for line in p.stdout.splitlines() if line.startswith("used=")]


def check(name, program):
	for mode in ("audit", "preserve"):
		few, few_held, _, _ = heap(f"{name}-{mode}-few", program, FEW, mode)
		many, many_held, errors, text = heap(f"{name}-{mode}-many", program, MANY, mode)
		same((few.returncode, many.returncode), (0, 0), f"{name}, {mode}: ends well under valgrind")
		same(errors, 0, f"{name}, {mode}: no bad access, nothing lost")
		grown = {k: (b - few_held[k][0], n - few_held[k][1]) for k, (b, n) in many_held.items()}
		ok(many_held["reachable"][0] > 0 and all(b <= SLACK and n <= SLACK // 10 for b, n in grown.values()),
		   f"{name}, {mode}: the heap of {MANY} steps is that of {FEW}", f"grown by (bytes, blocks) {grown}\n" + text[-3000:])
		same(used(many), used(few), f"{name}, {mode}: and so is the device's memory")


check("steps", ["steps"])
check("hazards", ["hazards", "c09", "append", "--streams"])
done()
