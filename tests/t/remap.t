#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Restoring by remapping, end to end: state that is a mapping of its own (tests/clients/remap.c) under contracts that ask
for it. The words must be right, every replay a match, and it must have been done by remapping where that applies, with no
word of the program's own calls changed; where it does not apply, or a call of the driver fails, in another way.
"""
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

os.environ.setdefault("RS_SEEDS", "3" if os.environ.get("RS_SAN") else "8")
import hazards_rig  # noqa: E402
from hazards_rig import BUILD, SEEDS, lines, ok, plan  # noqa: E402
import json  # noqa: E402
import subprocess  # noqa: E402

SHIM = os.path.join(BUILD, "libreplayshim.so")
CLIENT = os.path.join(BUILD, "clients", "remap")


class Run:
    """words: {step: {name: value}}; stats: the run's last."""

    def __init__(self, args, contract=None, schedule="eager", mode="preserve", **environment):
        with tempfile.TemporaryDirectory() as out:
            env = {k: v for k, v in os.environ.items() if not k.startswith(("REPLAYSHIM_", "SIMCUDA_"))}
            env.update(LD_LIBRARY_PATH=os.path.join(BUILD, "simcuda"), SIMCUDA_SCHED=schedule, **environment)
            if mode:
                env.update(LD_PRELOAD=f"{os.environ.get('RS_SAN_PRELOAD', '')} {SHIM}".strip(), REPLAYSHIM_MODE=mode,
                           REPLAYSHIM_OUT=out, REPLAYSHIM_QUIET="1")
            if contract:
                env["REPLAYSHIM_CONTRACT"] = contract
            done = subprocess.run([CLIENT] + args.split(), env=env, capture_output=True, text=True, timeout=170)
            self.status, self.stderr = done.returncode, done.stderr
            self.records = lines(os.path.join(out, "records.jsonl"))
            stats = [e for e in lines(os.path.join(out, "events.jsonl")) if e.get("t") == "stats"]
            self.stats = stats[-1] if stats else {}
        self.steps = {}
        for line in done.stdout.splitlines():
            step, _, rest = line.rpartition(":")
            name, value = rest.split("=")
            self.steps.setdefault(int(step or 1), {})[name] = int(value)

    @property
    def remaps(self):
        return self.stats.get("remaps", 0)

    @property
    def failures(self):
        return self.stats.get("remap_failures", 0)


def contract(directory, args, option="undo", restore="remap"):
    """What an audit of the case learns, but for how it is preserved; how often a forward is replayed is left open."""
    out = tempfile.mkdtemp(dir=directory)
    path = os.path.join(out, "contract.json")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("REPLAYSHIM_", "SIMCUDA_"))}
    env.update(LD_LIBRARY_PATH=os.path.join(BUILD, "simcuda"), REPLAYSHIM_QUIET="1", SIMCUDA_SCHED="lazy")
    done = subprocess.run([os.path.join(BUILD, "replayctl"), "audit", "--out", os.path.join(out, "data"), "-o", path, "--",
                           CLIENT, *args.split()], env=env, capture_output=True, text=True, timeout=150)
    if not os.path.exists(path):
        raise RuntimeError(f"{args}: {done.returncode} {done.stderr[-400:]}")
    with open(path) as f:
        c = json.load(f)
    for segment in c["segments"]:
        segment["preserve"] = {"option": option, "restore": restore}
        segment.pop("replays", None)
    with open(path, "w") as f:
        json.dump(c, f)
    return path


def pair(name, a, b=None):
    return {f"{name}.0": a, f"{name}.1": a if b is None else b}


END = dict(s=9, end=9)
PARTS = "parts"  # some, but none by an undo log: the forward's own write has left two versions of the state
# args: (right words, remaps in a run of one step or None: some)
CASES = {
    "basic never": (END, 0),
    "basic": ({**pair("y", 2), **END}, 1),
    "basic thrice": ({**pair("y", 2), **pair("z", 2), **pair("w", 2), **END}, 3),
    "basic inside": ({**pair("y", 2), **END}, PARTS),
    "basic thrice inside": ({**pair("y", 2), **pair("z", 2), **pair("w", 2), **END}, PARTS),
    "basic thrice all": ({**pair("y", 2), **pair("z", 2), **pair("w", 2), **END}, None),
    "two": ({**pair("y", 2), **pair("z", 9), "s": 20, "end": 20}, 2),
    "two inside": ({**pair("y", 2), **pair("z", 9), "s": 20, "end": 20}, PARTS),
    "two nested": ({**pair("y", 2), **pair("z", 9), **pair("x", 2), "s": 20, "end": 20}, None),
    "aborted": ({**pair("y", 2), **END}, 1),
    "aborted inside": ({**pair("y", 2), **END}, PARTS),
    "asked access": ({**pair("y", 2), **pair("z", 2), "x": 2, "access": 3, **END}, 2),
    "asked set": ({**pair("y", 2), **pair("z", 2), "x": 2, **END}, 2),
    "asked retain": ({**pair("y", 2), **pair("z", 2), "x": 2, "same": 1, **END}, None),
    "asked retain inside": ({**pair("y", 2), **pair("z", 2), "x": 3, "same": 1, **END}, PARTS),
    "asked alias": ({**pair("y", 2), **pair("z", 2), "x": 2, "same": 1, **END}, None),
    "asked unmap": ({**pair("y", 2), **pair("z", 2), "x": 2, **END}, None),
    "asked fork": ({**pair("y", 2), **pair("z", 2), "x": 2, "child": 1, **END}, 2),
    "threads": ({**pair("y", 2), **pair("z", 2), **END}, 2),
    "threads readers": ({**pair("y", 2), **pair("z", 2), **END}, None),
    "host_waits": ({**pair("y", 2), **END}, 0),
    "captured": ({**pair("y", 2), **END}, 0),
}
NEVER_SEEDED = ("threads", "host_waits")  # threads of its own, or of the device's


def check_case(directory, option, args, right, remaps):
    bad = []
    path = contract(directory, args, option)
    for streams in ("", " --streams"):
        runs = [(s, Run(args + streams, path, s), [1]) for s in ("eager", "lazy")[args == "host_waits":]]
        if SEEDS and not args.startswith(NEVER_SEEDED):
            runs.append(("seeds", Run(f"{args}{streams} --seeds={SEEDS}", path), range(1, SEEDS + 1)))
        for schedule, run, steps in runs:
            where = f"{schedule}{streams}"
            if run.status:
                bad.append(f"{where}: status {run.status} {run.stderr[-300:]}")
            bad += [f"{where}, step {n}: {run.steps.get(n)}" for n in steps if run.steps.get(n) != right]
            bad += [f"{where}: {hazards_rig.show(r)}" for r in run.records
                    if r["outcome"] != "match" and "RS032" not in r["codes"]]
            wanted = remaps
            if remaps == PARTS:
                wanted = 0 if option == "undo" else None
            if run.remaps != wanted * len(steps) if wanted is not None else not run.remaps and "readers" not in args:
                bad.append(f"{where}: {run.remaps} remaps, {run.failures} failures")
            if run.stats.get("internal_errors"):
                bad.append(f"{where}: {run.stats['internal_errors']} internal errors")
    return bad


CALLS = ("cuMemCreate", "cuMemMap", "cuMemUnmap", "cuMemSetAccess", "cuMemAddressReserve", "cuMemRetainAllocationHandle",
         "cuMemGetAccess", "cuMemGetAllocationPropertiesFromHandle", "cuMemRelease", "cuMemAddressFree", "cuEventQuery",
         "cuDeviceGetCount")


def check_failure(path, call, n, code):
    """The n-th call fails: in the program's hands as without the tool, in ours without anybody's noticing."""
    right = CASES["basic thrice"][0]
    run = Run("basic thrice", path, SIMCUDA_FAIL=f"{call}:{n}={code}")
    if run.status == 3:  # it was one of the program's own: it says so and ends
        return [] if call in run.stderr else [f"{call}:{n}: {run.stderr[-200:]}"], 0
    bad = []
    if run.status or run.steps.get(1) != right:
        bad.append(f"{call}:{n}={code}: status {run.status}, {run.steps.get(1)} {run.stderr[-200:]}")
    bad += [f"{call}:{n}={code}: {hazards_rig.show(r)}" for r in run.records
            if r["outcome"] != "match" and not set(r["codes"]) & {"RS080", "RS090", "RS092"}]
    return bad, run.failures


def check_failures(path, pool):
    jobs = [(call, n, code) for call in CALLS for n in range(1, 13) for code in (2, 999)
            if code == 2 or n % 3 == 0]
    done = list(pool.map(lambda j: check_failure(path, *j), jobs))
    bad = [b for found, _ in done for b in found]
    ok(not bad, f"{len(jobs)} runs in each of which a call of the driver fails: words are right, or not vouched for",
       *bad[:8])
    failures = sum(n for _, n in done)
    ok(failures > 10, f"in some of them remapping failed ({failures}), and it was done in another way")


def check_export(directory):
    """Exported in the middle: others may write there from then on, so it is compared and not restored any more."""
    run = Run("asked export", contract(directory, "asked export"))
    bad = [] if not run.status or "cuMemExport" in run.stderr else [run.stderr[-300:]]
    ok(not bad, "memory that is exported in the middle of a replay", *bad)


def main():
    only = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        jobs = [(option, args) for option in ("undo", "whole") for args in CASES if not only or args in only]
        done = pool.map(lambda j: check_case(directory, *j, *CASES[j[1]]), jobs)
        for (option, args), bad in zip(jobs, done):
            ok(not bad, f"{option}, {args}", *bad[:6])
        if not only:
            path = contract(directory, "basic thrice")
            swapped = Run("basic thrice", contract(directory, "basic thrice", restore="swap"))
            ok(swapped.steps.get(1) == CASES["basic thrice"][0] and not swapped.remaps,
               "a contract that does not ask for it does not get it")
            check_export(directory)
            check_failures(path, pool)
    return plan()


if __name__ == "__main__":
    sys.exit(main())
