#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The sparse-write experiment on the simulated H100, through the whole pipeline: audit, contract, measured costs, plan, run.

    make bench-sparse                      or: tests/bench/sparse.py [--pairs N] [--jobs N] [--scale N] [--keep DIR] ...

tests/clients/sparse.c with ten segments at 1/64 of the sizes that fit the published figures: activation 4.086 GiB, bank
1.792 GiB of which 2% is written in a step (rows of 1 KiB), checkpoint and scratch 0.1 GiB, 2.68 GiB of parameters and
optimizer, a forward of 14.88 ms, a backward of twice that, an optimizer of 1.22 ms; budgets of 44 and 32 GiB, all over 64.
Bytes, and what is calculated by sleeping, are divided by 64, and so are launch and copy latencies (SIMCUDA_SCALE); the
simulated bandwidth and the tool are what they are. What does not get smaller with the rest: allocations are charged in
512 bytes, arenas in 64 KiB. No guard is kept of the budget: the simulated driver's accounting has no noise.

Two ways to see writes. "buffers" (REPLAYSHIM_VERSIONS=buffers): a write to a byte of a buffer is one to all of it, which is
what a framework's version counters tell; a whole snapshot then has to be saved, shown and put back as a whole, which is the
published baseline. "bytes": the library's own, by which even a whole snapshot puts back only what was overwritten. Whole
baselines of both kinds, by copy and by swap, are in the table.

Each run is a fresh process. Ratios are of pairs of runs with the same seed, their order alternating (ABBA). The virtual
clock gives the same times in every run of one program, so two pairs say as much as fifty; on a real device, --pairs 50.
Exit status 0: every expectation held; 1: the ones named did not; 2: something could not be run.
"""
import argparse
import collections
import concurrent.futures
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

import sparse_stats

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
GIB = 1 << 30
SEGMENTS = 10
SIZES = {"activation": 4.086, "bank": 1.792, "checkpoint": 0.1, "scratch": 0.1, "base": 2.68}  # GiB
FORWARD_MS, OPTIMIZER_MS, DENSITY, ROW = 14.88, 1.22, 0.02, 1024
BANDWIDTH = 3.35e12  # of the profile, bytes/s
BUDGETS = (44, 32)

Method = collections.namedtuple("Method", "name versions allow extra what")
WHOLE, REGIONS = "whole:copy", "undo,regions"
METHODS = [
    Method("whole", "buffers", WHOLE, (), "every segment replays, whole snapshots"),
    Method("fixed regions", "bytes", REGIONS, ("--unshared",), "every segment replays, its own rows kept"),
    Method("eager/whole", "buffers", f"retain,free,{WHOLE}", (), "planned"),
    Method("eager/regions", "bytes", f"retain,free,{REGIONS}", ("--unshared",), "planned"),
    Method("joint", "bytes", "retain,free,whole,undo,regions", ("--unshared",), "planned, every option"),
    Method("joint+", "bytes", "retain,free,whole,undo,regions", ("--tie", "0.005"), "and sharing, tie rule 0.5%"),
    Method("eager/whole, swap", "buffers", "retain,free,whole:swap", (), "strongest whole by buffers: exchanged in place"),
    Method("eager/whole, bytes", "bytes", "retain,free,whole", (), "strongest whole: only what was overwritten is put back"),
]
FIXED = ("whole", "fixed regions")  # planned with no budget


class Failure(Exception):
    pass


def lines(data, name):
    """Of the one process that left data there."""
    with open(glob.glob(os.path.join(data, "*", name))[0]) as f:
        return [json.loads(line) for line in f]


class Bench:

    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.build = os.environ.get("RS_BUILD") or os.path.join(TOP, "build")
        self.ctl = os.path.join(self.build, "replayctl")
        self.plans, self.contracts = {}, {}

    # --- the client ---------------------------------------------------------------------------------

    def size(self, gib):
        return int(gib * GIB / self.args.scale) // 4096 * 4096

    def client(self, seed, *more):
        """The command; what copies and fills take of a forward's time is taken off what it sleeps."""
        size = {k: self.size(v) for k, v in SIZES.items()}
        moved = size["bank"] * 2 + size["activation"] - size["bank"] + size["checkpoint"] * 2
        us = 1000 / self.args.scale
        options = dict(size, segments=SEGMENTS, density=DENSITY, row=ROW, steps=self.args.steps, warmup=2, seed=seed,
                       forward_us=FORWARD_MS * us - moved / BANDWIDTH * 1e6, backward_us=2 * FORWARD_MS * us,
                       optimizer_us=OPTIMIZER_MS * us)
        return [os.path.join(self.build, "clients/sparse")] + [f"--{k}={v}" for k, v in options.items()] + list(more)

    def environment(self, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("REPLAYSHIM_", "SIMCUDA_", "LD_PRELOAD"))}
        env.update(LD_LIBRARY_PATH=os.path.join(self.build, "simcuda"), RS_TOP=TOP, SIMCUDA_PROFILE="h100",
                   SIMCUDA_SCALE=str(self.args.scale), SIMCUDA_MEMORY=str(80 * GIB // self.args.scale),
                   REPLAYSHIM_QUIET="1", REPLAYSHIM_PLANNER="none")
        env.update(more)
        return env

    def run(self, what, command, status=(0,), **env):
        out = subprocess.run(command, env=self.environment(**env), capture_output=True, text=True)
        if out.returncode not in status:
            raise Failure(f"{what}: {' '.join(command[:3])} ... ended with {out.returncode}\n{out.stderr[-2000:]}")
        return out

    def path(self, *parts):
        return os.path.join(self.folder, "-".join(str(p).replace("/", "_").replace(" ", "_") for p in parts))

    # --- the pipeline -------------------------------------------------------------------------------

    def bare(self, seed, *mode):
        return json.loads(self.run("without the tool", self.client(seed, *mode)).stdout)

    def audit(self, versions, *more):
        contract = self.path(versions, *more, "contract.json")
        data = self.path(versions, *more, "audit")
        command = [self.ctl, "audit", "--out", data, "-o", contract, "--"] + self.client(0, *more)
        self.run(f"audit ({versions})", command, REPLAYSHIM_LEARN="1", REPLAYSHIM_COSTS="1", REPLAYSHIM_VERSIONS=versions)
        return contract, data

    def learn(self, versions):
        """The contract, and costs: they are measured where state is preserved, for what an audit does not do has no price."""
        self.contracts[versions], _ = self.audit(versions)
        data = self.path(versions, "profile")
        self.run(f"profile ({versions})", [self.ctl, "run", "-o", data, "--"] + self.client(0), REPLAYSHIM_LEARN="1",
                 REPLAYSHIM_COSTS="1", REPLAYSHIM_VERSIONS=versions)
        return data

    def plan(self, method, budget, costs):
        """(path or None, the plan as JSON)"""
        path = self.path(method.name, budget, "plan.json")
        size = f"{int(budget * GIB / self.args.scale)}B"
        out = self.run(f"plan {method.name} at {budget} GiB",
                       [self.ctl, "plan", costs, "--budget", size, "--guard", "1B", "--allow", method.allow, "--json",
                        "-o", path, *method.extra], status=(0, 4))
        return None if out.returncode else path, json.loads(out.stdout)

    def planned(self, method, plan, seed):
        """A run under a plan: the client's report, with what the library says of plan and replays."""
        data = tempfile.mkdtemp(prefix="run-", dir=self.folder)
        out = self.run(f"run {method.name}", [self.ctl, "run", "-o", data, "--"] + self.client(seed),
                       REPLAYSHIM_PLAN=plan, REPLAYSHIM_CONTRACT=self.contracts[method.versions],
                       REPLAYSHIM_VERSIONS=method.versions)
        got = json.loads(out.stdout)
        got["outcomes"] = collections.Counter(r["outcome"] for r in lines(data, "records.jsonl"))
        got["plan"] = [e for e in lines(data, "events.jsonl") if e["t"] == "plan"]
        got["log"] = out.stderr
        shutil.rmtree(data)
        return got


class Report:
    """What is expected, and whether it is so."""

    def __init__(self):
        self.missed = []

    def expect(self, good, what):
        print(f"  {'holds  ' if good else 'MISSED '} {what}")
        if not good:
            self.missed.append(what)


# --- tables -----------------------------------------------------------------------------------------


def gib(scale, n):
    return n * scale / GIB


def tell_run(scale, label, got, reference, predicted=None, eager=None):
    peak = gib(scale, got["peak"])
    owners = " + ".join(f"{gib(scale, got[k]):.2f}" for k in ("activation", "program", "other"))
    outcome = ", ".join(f"{n} {k}" for k, n in sorted(got.get("outcomes", {}).items())) or "-"
    print(f"  {label:<26}{got['retained']:>4}{got['step_ns'] / 1e6:>10.3f}"
          f"{got['step_ns'] / eager['step_ns'] if eager else 1:>8.3f}{peak:>8.2f}"
          f"{'' if predicted is None else f'{gib(scale, predicted):.2f}':>8}  {owners:<22}"
          f"{'same' if got['digest'] == reference['digest'] else 'OTHER':>6}  {outcome}")


def options_of(plan):
    count = collections.Counter(s["option"] + (":swap" if s["restore"] == "swap" and s["option"] != "retain" else "")
                                for s in plan["segments"])
    return ", ".join(f"{n} {k}" for k, n in sorted(count.items()))


# --- the experiment ---------------------------------------------------------------------------------


def make_plans(bench, costs, report):
    print(f"\nplans, by costs measured in a run that preserves (GiB at full size; time added to a step, ms at 1/{bench.args.scale})")
    print(f"  {'method':<22}{'budget':>7}{'peak':>8}{'arena':>8}{'added':>9}{'gap':>9}  choice")
    for method in METHODS:
        for budget in (80,) if method.name in FIXED else BUDGETS:
            path, plan = bench.plan(method, budget, costs[method.versions])
            bench.plans[method.name, budget] = path, plan
            if not path:
                print(f"  {method.name:<22}{budget:>7}  infeasible: {plan.get('reason')}")
                continue
            print(f"  {method.name:<22}{budget:>7}{gib(bench.args.scale, plan['peak']):>8.2f}"
                  f"{gib(bench.args.scale, plan['arena']):>8.2f}{plan['time'] / 1e6:>9.3f}{plan['gap']:>9.1e}  {options_of(plan)}")
    report.expect(bench.plans["eager/whole", 32][0] is None, "eager/whole has no plan within 32 GiB")
    for name, budget in (("eager/whole", 44), ("joint", 44), ("joint", 32)):
        report.expect(bench.plans[name, budget][0] is not None, f"{name} has a plan within {budget} GiB")


def controls(bench, report, eager):
    """What happens to whoever does nothing, and what an audit says of it: exactly the segments that write."""
    clean = 3
    unsafe = bench.bare(1)
    report.expect(unsafe["digest"] != eager["digest"], "replays without the tool leave other bytes than eager does")
    _, data = bench.audit("bytes", f"--clean={clean}")
    records = lines(data, "records.jsonl")
    flagged = {r["segment"] for r in records if r["outcome"] != "match"}
    passed = {r["segment"] for r in records} - flagged
    hazards = {f"block{k}" for k in range(clean, SEGMENTS)}
    report.expect(flagged == hazards and len(passed) == clean,
                  f"an audit that would reject by version rejects the {len(hazards)} segments that write, and not the "
                  f"{clean} that only read (false accepts {len(hazards - flagged)}, false rejects {len(flagged - hazards)})")
    return unsafe


def compare(bench, pool, jobs):
    """jobs: {key: (A, B, pairs)} with A, B = (method, budget). Runs of each key in pairs, ABBA, each pair in one worker."""

    def pair(a, b, k):
        runs = {}
        for side in ("ab", "ba")[k % 2]:
            method, budget = a if side == "a" else b
            runs[side] = bench.planned(method, bench.plans[method.name, budget][0], 1 + k)
        return runs["a"], runs["b"]

    futures = {key: [pool.submit(pair, a, b, k) for k in range(n)] for key, (a, b, n) in jobs.items()}
    return {key: [f.result() for f in fs] for key, fs in futures.items()}


def experiment(bench, report):
    args = bench.args
    by_name = {m.name: m for m in METHODS}
    expected = SEGMENTS * 3 * FORWARD_MS + OPTIMIZER_MS
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        seeds = {k: pool.submit(bench.bare, k, "--eager") for k in range(1, args.pairs + 1)}
        profiles = {v: pool.submit(bench.learn, v) for v in ("bytes", "buffers")}
        costs = {v: f.result() for v, f in profiles.items()}
        eager = {k: f.result() for k, f in seeds.items()}
        print("\nthe workload")
        report.expect(abs(eager[1]["step_ns"] * args.scale / 1e6 / expected - 1) < 0.02,
                      f"an eager step takes {eager[1]['step_ns'] * args.scale / 1e6:.1f} ms at full size; {expected:.1f} are meant")
        make_plans(bench, costs, report)
        if report.missed:
            return
        at = lambda name, budget: (by_name[name], budget)
        jobs = {"joint over eager/whole at 44 GiB": (at("joint", 44), at("eager/whole", 44), args.pairs),
                "joint over fixed regions at 32 GiB": (at("joint", 32), at("fixed regions", 80), args.pairs),
                "joint over itself at 44 GiB (A/A)": (at("joint", 44), at("joint", 44), max(1, args.pairs // 10))}
        for name in ("eager/whole, swap", "eager/whole, bytes", "joint+"):
            if bench.plans[name, 44][0]:
                jobs[f"joint over {name} at 44 GiB"] = at("joint", 44), at(name, 44), 1
        paired = compare(bench, pool, jobs)
        seen = {j[s] for j in jobs.values() for s in (0, 1)}
        rest = [(m, b) for (n, b), (path, _) in bench.plans.items() for m in [by_name[n]] if path and (m, b) not in seen]
        single = {(m, b): pool.submit(bench.planned, m, bench.plans[m.name, b][0], 1) for m, b in rest}
        singles = {k: f.result() for k, f in single.items()}
        control = pool.submit(bench.bare, 1).result()
    show(bench, report, eager, control, jobs, paired, singles)


def show(bench, report, eager, unsafe, jobs, paired, singles):
    scale = bench.args.scale
    runs = collections.defaultdict(list)
    for key, (a, b, _) in jobs.items():
        for k, (of_a, of_b) in enumerate(paired[key]):
            runs[a].append((1 + k, of_a))
            runs[b].append((1 + k, of_b))
    for key, got in singles.items():
        runs[key].append((1, got))
    print(f"\nruns on the simulated device (step in ms at 1/{scale}; peaks in GiB at full size, of which activations + program + tool)")
    print(f"  {'method':<26}{'kept':>4}{'step':>10}{'/eager':>8}{'peak':>8}{'pred.':>8}  {'owners':<22}{'bytes':>6}  replays")
    tell_run(scale, "eager (no tool)", eager[1], eager[1])
    tell_run(scale, "unsafe replay (no tool)", unsafe, eager[1], eager=eager[1])
    for name, budget in bench.plans:
        method = next(m for m in METHODS if m.name == name)
        if (method, budget) in runs:
            seed, got = runs[method, budget][0]
            tell_run(scale, name if name in FIXED else f"{name} @{budget}", got, eager[seed],
                     bench.plans[name, budget][1]["peak"], eager[seed])
    ratios = {}
    print("\nratios of step times, paired (simulated)")
    for key in jobs:
        ratios[key] = sparse_stats.Ratio([(a["step_ns"], b["step_ns"]) for a, b in paired[key]])
        print(f"  {key}: {ratios[key]}")
    print("\nexpectations")
    judge(bench, report, eager, runs, ratios)


def judge(bench, report, eager, runs, ratios):
    every = [(m, b, seed, got) for (m, b), all_of in runs.items() for seed, got in all_of]
    report.expect(ratios["joint over eager/whole at 44 GiB"].mean <= 0.8195,
                  f"joint over eager/whole at 44 GiB at most 0.8195: {ratios['joint over eager/whole at 44 GiB'].mean:.4f}")
    report.expect(ratios["joint over fixed regions at 32 GiB"].mean <= 0.9502,
                  f"joint over fixed regions at 32 GiB at most 0.9502: {ratios['joint over fixed regions at 32 GiB'].mean:.4f}")
    aa = ratios["joint over itself at 44 GiB (A/A)"]
    report.expect(all(v == 0 for v in aa.y) or (aa.low is not None and aa.low <= 1 <= aa.high), "A over A is 1")
    report.expect(all(got["digest"] == eager[seed]["digest"] for _, _, seed, got in every),
                  f"the bytes of all {len(every)} runs are eager's")
    bad = [f"{m.name} @{b}" for m, b, _, got in every if set(got["outcomes"]) - {"match"}]
    report.expect(not bad, "every replay under a plan is a match" + (f": not {', '.join(sorted(set(bad)))}" if bad else ""))
    over = [f"{m.name} @{b}" for m, b, _, got in every if got["peak"] > bench.plans[m.name, b][1]["peak"]]
    report.expect(not over, "no run took more memory than predicted" + (f": {', '.join(sorted(set(over)))} did" if over else ""))
    over = [f"{m.name} @{b}" for m, b, _, got in every if got["peak"] > b * GIB / bench.args.scale]
    report.expect(not over, "no run took more than its budget" + (f": {', '.join(sorted(set(over)))} did" if over else ""))
    idle = [f"{m.name} @{b}" for m, b, _, got in every if not in_force(got)]
    report.expect(not idle, "every plan was in force" + (f": not {', '.join(sorted(set(idle)))}" if idle else ""))


def in_force(got):
    return bool(got["plan"]) and got["plan"][-1]["state"] == "in-force"


def main():
    parser = argparse.ArgumentParser(description="the sparse-write experiment, simulated")
    parser.add_argument("--pairs", type=int, default=2, help="of each primary ratio")
    parser.add_argument("--steps", type=int, default=5, help="of a run, of which two are warm-up")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="processes at a time")
    parser.add_argument("--scale", type=int, default=64, help="sizes and times are 1/SCALE of the real ones")
    parser.add_argument("--keep", help="leave contracts, plans and audits in this directory")
    args = parser.parse_args()
    folder = args.keep or tempfile.mkdtemp(prefix="sparse-")
    os.makedirs(folder, exist_ok=True)
    report = Report()
    print(f"sparse writes, SIMULATED H100 at 1/{args.scale}: times are a virtual clock's, no prediction of hardware")
    try:
        bench = Bench(args, folder)
        experiment(bench, report)
        controls(bench, report, bench.bare(1, "--eager"))
    except Failure as e:
        print(e, file=sys.stderr)
        return 2
    finally:
        if not args.keep:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"\n{len(report.missed)} expectations missed" + "".join(f"\n  {m}" for m in report.missed) if report.missed
          else "\nall expectations hold")
    return 1 if report.missed else 0


sys.exit(main())
