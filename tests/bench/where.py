#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What it costs to note where a call is made (REPLAYSHIM_STACKS). `make bench` runs it by where.sh. RS_BUILD.

Programs that time a call which overwrites what a forward has read, with STACKS=off and with others, in turn: a C program
(tests/clients/where.c), six functions deep, and a Python one, with so many Python functions around the call. The driver
does nothing (tests/shim/null_driver.c), so all of it is the library's time. Medians of a process, best of ROUNDS.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("RS_BUILD", TOP / "build")).resolve()
ROUNDS = int(os.environ.get("ROUNDS", "5"))
STEPS = int(os.environ.get("WHERE_STEPS", "1000"))
VALUES = ("off", "1", "16", "64")

PYTHON = r"""
import ctypes, statistics, sys, time
cu, rs = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(None)
state, product, ctx = (ctypes.c_uint64() for _ in range(3))
steps, depth, took = int(sys.argv[1]), int(sys.argv[2]), []
cu.cuInit(0)
cu.cuCtxCreate_v2(ctypes.byref(ctx), 0, 0)
for p in (state, product):
	cu.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(4096))
four, last = ctypes.c_size_t(4), ctypes.c_long(-1)
def overwrite(left):
	if left:
		return overwrite(left - 1)
	begin = time.perf_counter_ns()
	cu.cuMemsetD8Async(state, 7, four, None)
	took.append(time.perf_counter_ns() - begin)
for i in range(steps):
	rs.replayshim_step(ctypes.c_long(i))
	rs.replayshim_forward_begin(b"block", last)
	cu.cuMemcpyDtoDAsync_v2(product, state, four, None)
	rs.replayshim_forward_end()
	overwrite(depth - 1)
print(int(statistics.median(took)))
"""


def nanoseconds(command, mode, value, folder):
	env = {k: v for k, v in os.environ.items() if not k.startswith("REPLAYSHIM_") and k not in ("LD_PRELOAD", "PYTHONPATH")}
	with tempfile.TemporaryDirectory() as out:
		env.update(LD_LIBRARY_PATH=folder, LD_PRELOAD=str(BUILD / "libreplayshim.so"), REPLAYSHIM_QUIET="1",
		           REPLAYSHIM_OUT=out, REPLAYSHIM_MODE=mode, REPLAYSHIM_STACKS=value, REPLAYSHIM_PYTHON="off")
		return int(subprocess.run([str(c) for c in command], env=env, check=True, stdout=subprocess.PIPE).stdout)


def main():
	programs = {"C": [BUILD / "clients" / "where", "time", STEPS]}
	for depth in (2, 10, 50):
		programs[f"Python, {depth} deep"] = [sys.executable, "-c", PYTHON, STEPS, depth]
	with tempfile.TemporaryDirectory() as folder:
		subprocess.run([os.environ.get("CC", "gcc"), "-w", "-O2", "-shared", "-fPIC", "-fvisibility=hidden",
		                "-Wl,-soname,libcuda.so.1", "-o", f"{folder}/libcuda.so.1", TOP / "tests/shim/null_driver.c"], check=True)
		print(f"ns for a call that overwrites, by STACKS, best of {ROUNDS}")
		print(f"{'':30}" + "".join(f"{v:>8}" for v in VALUES))
		for mode in ("audit", "preserve"):
			for name, command in programs.items():
				best = {}
				for _ in range(ROUNDS):
					for value in VALUES:
						best[value] = min(best.get(value, 1 << 60), nanoseconds(command, mode, value, folder))
				print(f"{mode + ', ' + name:30}" + "".join(f"{best[v]:8}" for v in VALUES), flush=True)


if __name__ == "__main__":
	main()
