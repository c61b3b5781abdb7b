#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A training step of the demo's network (scripts/demo/train.py) with and without the tool: from tests/bench/preserve.sh.

For each way to run it a process, which times train_step from call to the device's end: on the simulated device's
virtual clock, and in processor time, which is mostly the simulation's own. The median of all steps but the first two,
in which tinygrad compiles. Environment: RS_BUILD, DEMO_STEPS.
"""
import ctypes
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("RS_BUILD", TOP / "build")).resolve()
STEPS = int(os.environ.get("DEMO_STEPS", "4"))
WAYS = (("kept, no tool", False, None), ("replayed, no tool", True, None), ("audit", True, "audit"),
        ("preserve", True, "preserve"))


def child():
    """train.py with a clock around each step; writes "virtual host" in ns."""
    sys.path.insert(0, str(TOP / "scripts/demo"))
    import train  # pylint: disable=import-outside-toplevel,import-error
    from tinygrad import Device  # pylint: disable=import-outside-toplevel,import-error

    clock = ctypes.CDLL("libcuda.so.1").simcuda_virtual_ns
    clock.restype = ctypes.c_uint64
    step, lines = train.train_step, []

    def timed(*args):
        Device[Device.DEFAULT].synchronize()
        begin = clock(), time.process_time_ns()
        loss = step(*args)
        Device[Device.DEFAULT].synchronize()
        lines.append(f"{clock() - begin[0]} {time.process_time_ns() - begin[1]}")
        return loss

    train.train_step = timed
    sys.argv = ["train.py", "--steps", str(STEPS), *sys.argv[2:]]
    train.main()
    pathlib.Path(os.environ["STEP_TIMES"]).write_text("\n".join(lines), encoding="utf-8")


def measure(directory, recompute, mode):
    env = {k: v for k, v in os.environ.items() if not k.startswith("REPLAYSHIM_") and k not in ("LD_PRELOAD", "JIT")}
    times = os.path.join(directory, "times")
    env.update(DEV="CUDA:PTX", LD_LIBRARY_PATH=str(BUILD / "simcuda"), CACHEDB=os.path.join(directory, "cache.db"),
               CCACHE="0", PARALLEL="0", TC="0", PYTHONDONTWRITEBYTECODE="1", STEP_TIMES=times)
    env.pop("SIMCUDA_SCHED", None)
    if mode:
        env.update(LD_PRELOAD=str(BUILD / "libreplayshim.so"), REPLAYSHIM_MODE=mode, REPLAYSHIM_QUIET="1",
                   REPLAYSHIM_OUT=os.path.join(directory, "out"))
    subprocess.run([sys.executable, __file__, "child"] + ["--recompute"] * recompute, env=env, check=True,
                   stdout=subprocess.DEVNULL, timeout=900)
    with open(times, encoding="utf-8") as f:
        steps = [tuple(map(int, line.split())) for line in f]
    return [statistics.median(s[i] for s in steps[2:]) for i in range(2)]


def main():
    print(f"a step of the demo's network, median of {STEPS - 2}; processor time: mostly the simulation's own")
    print(f"  {'':18} {'simulated ms':>13} {'/ no tool':>10} {'CPU ms':>9} {'/ no tool':>10}")
    base = None
    for name, recompute, mode in WAYS:
        with tempfile.TemporaryDirectory() as directory:
            virtual, host = measure(directory, recompute, mode)
        if recompute and not mode:
            base = virtual, host
        ratio = [f"{a / b:10.3f}" for a, b in zip((virtual, host), base)] if base else [f"{'':10}"] * 2
        print(f"  {name:18} {virtual / 1e6:13.3f} {ratio[0]} {host / 1e6:9.1f} {ratio[1]}", flush=True)


if __name__ == "__main__":
    sys.exit(child() if sys.argv[1:2] == ["child"] else main())
