#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The sparse-write experiment on the simulated H100, through the whole pipeline: audit, contract, measured costs, plan, run.

    make bench-sparse                      or: tests/bench/sparse.py [--pairs N] [--jobs N] [--scale N] [--keep DIR] ...

tests/clients/sparse.c with ten segments at 1/64 of the sizes that fit the published figures: activation 4.086 GiB, bank
1.792 GiB of which 2% is written in a step (rows of 1 KiB), checkpoint and scratch 0.1 GiB, 2.68 GiB of parameters and
optimizer, a forward of 14.88 ms, a backward of twice that, an optimizer of 1.22 ms; budgets of 44 and 32 GiB, all over 64.
And, at 1/8, a queue that several segments read and that is then overwritten as a whole.
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
BANDWIDTH = 3.35e12  # of the profile, bytes/s
BUDGETS = (44, 32)

# Sizes in GiB, times in ms, before they are scaled.
Workload = collections.namedtuple("Workload", "name scale segments sizes forward_ms optimizer_ms flags")


def sparse(scale):
    sizes = {"activation": 4.086, "bank": 1.792, "checkpoint": 0.1, "scratch": 0.1, "base": 2.68}
    return Workload("sparse", scale, 10, sizes, 14.88, 1.22, ("--density=0.02", "--row=1024"))


def queue():
    sizes = {"activation": 20.5 / 1024, "bank": 32 / 1024, "checkpoint": 0.7 / 1024, "scratch": 0.7 / 1024, "base": 628 / 1024}
    return Workload("queue", 8, 6, sizes, 2.1, 1.2, ("--density=1", "--row=512", "--clusters=1", "--shared"))


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


# Six windows read one version of a queue of 65536 rows of 512 bytes, all of which is then overwritten.
QUEUE = [
    Method("whole", "buffers", WHOLE, (), "every segment replays; one snapshot serves all"),
    Method("regions, private", "bytes", REGIONS, ("--unshared",), "planned as if each kept its own"),
    Method("regions, shared", "bytes", REGIONS, ("--tie", "0.005"), "planned as they are kept: once"),
    Method("joint+", "bytes", "retain,free,whole,undo,regions", ("--tie", "0.005"), "within the peak of whole, and 0.5%"),
]


class Failure(Exception):
    pass


def lines(data, name):
    """Of the one process that left data there."""
    with open(glob.glob(os.path.join(data, "*", name))[0]) as f:
        return [json.loads(line) for line in f]


class Bench:

    def __init__(self, args, folder, workload):
        self.args, self.folder, self.workload, self.scale = args, folder, workload, workload.scale
        os.makedirs(folder, exist_ok=True)
        self.build = os.environ.get("RS_BUILD") or os.path.join(TOP, "build")
        self.ctl = os.path.join(self.build, "replayctl")
        self.plans, self.contracts = {}, {}

    # --- the client ---------------------------------------------------------------------------------

    def client(self, seed, *more):
        """The command; what copies and fills take of a forward's time is taken off what it sleeps."""
        w = self.workload
        size = {k: int(v * GIB / w.scale) // 4096 * 4096 for k, v in w.sizes.items()}
        moved = min(size["bank"], size["activation"]) + size["activation"] + size["checkpoint"] * 2
        us = 1000 / w.scale
        options = dict(size, steps=self.args.steps, warmup=2, seed=seed, segments=w.segments,
                       forward_us=w.forward_ms * us - moved / BANDWIDTH * 1e6, backward_us=2 * w.forward_ms * us,
                       optimizer_us=w.optimizer_ms * us)
        return [os.path.join(self.build, "clients/sparse")] + [f"--{k}={v}" for k, v in options.items()] + [
            *w.flags, *more]

    def environment(self, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("REPLAYSHIM_", "SIMCUDA_", "LD_PRELOAD"))}
        env.update(LD_LIBRARY_PATH=os.path.join(self.build, "simcuda"), RS_TOP=TOP, SIMCUDA_PROFILE="h100",
                   SIMCUDA_SCALE=str(self.scale), SIMCUDA_MEMORY=str(80 * GIB // max(self.scale, 16)),
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
        shutil.rmtree(data, ignore_errors=True)
        command = [self.ctl, "audit", "--out", data, "-o", contract, "--force", "--"] + self.client(0, *more)
        self.run(f"audit ({versions})", command, REPLAYSHIM_LEARN="1", REPLAYSHIM_COSTS="1", REPLAYSHIM_VERSIONS=versions)
        return contract, data

    def learn(self, versions):
        """The contract, and costs: they are measured where state is preserved, for what an audit does not do has no price."""
        self.contracts[versions], _ = self.audit(versions)
        data = self.path(versions, "profile")
        shutil.rmtree(data, ignore_errors=True)
        self.run(f"profile ({versions})", [self.ctl, "run", "-o", data, "--"] + self.client(0), REPLAYSHIM_LEARN="1",
                 REPLAYSHIM_COSTS="1", REPLAYSHIM_VERSIONS=versions)
        return data

    def plan(self, method, budget, costs):
        """(path or None, the plan as JSON)"""
        path = self.path(method.name, budget, "plan.json")
        size = f"{int(budget * GIB / self.scale)}B"
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


RUNS_HEAD = (f"  {'method':<26}{'kept':>4}{'step':>10}{'/eager':>8}{'added':>8}{'pred.':>8}{'peak':>8}{'pred.':>8}  "
             f"{'owners':<22}{'bytes':>6}  replays")


def tell_run(scale, label, got, eager, plan=None):
    peak, added = gib(scale, got["peak"]), (got["step_ns"] - eager["step_ns"]) / 1e6
    owners = " + ".join(f"{gib(scale, got[k]):.2f}" for k in ("activation", "program", "other"))
    outcome = ", ".join(f"{n} {k}" for k, n in sorted(got.get("outcomes", {}).items())) or "-"
    predicted = (f"{plan['time'] / 1e6:.3f}", f"{gib(scale, plan['peak']):.2f}") if plan else ("", "")
    print(f"  {label:<26}{got['retained']:>4}{got['step_ns'] / 1e6:>10.3f}{got['step_ns'] / eager['step_ns']:>8.3f}"
          f"{added:>8.3f}{predicted[0]:>8}{peak:>8.2f}{predicted[1]:>8}  {owners:<22}"
          f"{'same' if got['digest'] == eager['digest'] else 'OTHER':>6}  {outcome}")


def options_of(plan):
    count = collections.Counter(s["option"] + (":swap" if s["restore"] == "swap" and s["option"] != "retain" else "")
                                for s in plan["segments"])
    return ", ".join(f"{n} {k}" for k, n in sorted(count.items()))


# --- the experiment ---------------------------------------------------------------------------------


def make_plans(bench, costs, report):
    print(f"\nplans, by costs measured in a run that preserves (GiB at full size; time added to a step, ms at 1/{bench.scale})")
    print(f"  {'method':<22}{'budget':>7}{'peak':>8}{'arena':>8}{'added':>9}{'gap':>9}  choice")
    for method in METHODS:
        for budget in (80,) if method.name in FIXED else BUDGETS:
            path, plan = bench.plan(method, budget, costs[method.versions])
            bench.plans[method.name, budget] = path, plan
            if not path:
                print(f"  {method.name:<22}{budget:>7}  infeasible: {plan.get('reason')}")
                continue
            print(f"  {method.name:<22}{budget:>7}{gib(bench.scale, plan['peak']):>8.2f}"
                  f"{gib(bench.scale, plan['arena']):>8.2f}{plan['time'] / 1e6:>9.3f}{plan['gap']:>9.1e}  {options_of(plan)}")
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
    hazards = {f"block{k}" for k in range(clean, bench.workload.segments)}
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


def check_scale(bench, report, eager):
    w = bench.workload
    is_ms, should = eager["step_ns"] * w.scale / 1e6, w.segments * 3 * w.forward_ms + w.optimizer_ms
    report.expect(abs(is_ms / should - 1) < 0.02, f"an eager step takes {is_ms:.1f} ms at full size; {should:.1f} are meant")


def experiment(bench, report):
    args = bench.args
    by_name = {m.name: m for m in METHODS}
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        seeds = {k: pool.submit(bench.bare, k, "--eager") for k in range(1, args.pairs + 1)}
        profiles = {v: pool.submit(bench.learn, v) for v in ("bytes", "buffers")}
        costs = {v: f.result() for v, f in profiles.items()}
        eager = {k: f.result() for k, f in seeds.items()}
        print("\nthe workload")
        check_scale(bench, report, eager[1])
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
    scale = bench.scale
    runs = collections.defaultdict(list)
    for key, (a, b, _) in jobs.items():
        for k, (of_a, of_b) in enumerate(paired[key]):
            runs[a].append((1 + k, of_a))
            runs[b].append((1 + k, of_b))
    for key, got in singles.items():
        runs[key].append((1, got))
    print(f"\nruns on the simulated device (ms at 1/{scale}; peaks in GiB at full size, of which activations + program + tool)")
    print(RUNS_HEAD)
    tell_run(scale, "eager (no tool)", eager[1], eager[1])
    tell_run(scale, "unsafe replay (no tool)", unsafe, eager[1])
    for name, budget in bench.plans:
        method = next(m for m in METHODS if m.name == name)
        if (method, budget) in runs:
            seed, got = runs[method, budget][0]
            tell_run(scale, name if name in FIXED else f"{name} @{budget}", got, eager[seed], bench.plans[name, budget][1])
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
    over = [f"{m.name} @{b}" for m, b, _, got in every if got["peak"] > b * GIB / bench.scale]
    report.expect(not over, "no run took more than its budget" + (f": {', '.join(sorted(set(over)))} did" if over else ""))
    idle = [f"{m.name} @{b}" for m, b, _, got in every if not in_force(got)]
    report.expect(not idle, "every plan was in force" + (f": not {', '.join(sorted(set(idle)))}" if idle else ""))


# --- the dense queue --------------------------------------------------------------------------------


def dense(bench, report):
    """Where regions are as large as the whole: what they must not cost then, memory least of all."""
    eager = bench.bare(1, "--eager")
    print(f"\na dense queue, SIMULATED at 1/{bench.scale} (ms at that, GiB at full size)")
    check_scale(bench, report, eager)
    costs = {v: bench.learn(v) for v in ("bytes", "buffers")}
    print(RUNS_HEAD)
    tell_run(bench.scale, "eager (no tool)", eager, eager)
    unsafe = bench.bare(1)
    tell_run(bench.scale, "unsafe replay (no tool)", unsafe, eager)
    runs, budget = {}, 4
    for method in QUEUE:
        path, plan = bench.plan(method, budget, costs[method.versions])
        if not path:
            raise Failure(f"{method.name}: {plan.get('reason')}")
        got = runs[method.name] = bench.planned(method, path, 1)
        tell_run(bench.scale, method.name, got, eager, plan)
        got["predicted"] = plan["peak"]
        print(f"    {options_of(plan)}")
        if method.name == "regions, shared":
            budget = runs["whole"]["predicted"] * 1.005 * bench.scale / GIB
    whole, joint = runs["whole"], runs["joint+"]
    ratio = joint["step_ns"] / whole["step_ns"]
    private = runs["regions, private"]
    print(f"  regions planned privately take {private['peak'] / whole['peak']:.4f} of the memory of whole and "
          f"{private['step_ns'] / whole['step_ns']:.4f} of its time (published for joint: 1.2241, 1.0080)")
    report.expect(unsafe["digest"] != eager["digest"], "replays without the tool leave other bytes than eager does")
    report.expect(all(r["digest"] == eager["digest"] and set(r["outcomes"]) <= {"match"} for r in runs.values()),
                  "every run's bytes are eager's, every replay a match")
    report.expect(all(r["peak"] <= r["predicted"] for r in runs.values()), "no run took more memory than predicted")
    report.expect(joint["peak"] <= whole["peak"] * 1.005,
                  f"joint+ takes at most 1.005 of the memory of whole: {joint['peak'] / whole['peak']:.4f}")
    report.expect(ratio <= 1.0080, f"joint+ takes at most 1.0080 of the time of whole: {ratio:.4f}")


def in_force(got):
    return bool(got["plan"]) and got["plan"][-1]["state"] == "in-force"


def main():
    parser = argparse.ArgumentParser(description="the sparse-write experiment, simulated")
    parser.add_argument("--pairs", type=int, default=2, help="of each primary ratio")
    parser.add_argument("--steps", type=int, default=5, help="of a run, of which two are warm-up")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="processes at a time")
    parser.add_argument("--scale", type=int, default=64, help="sizes and times are 1/SCALE of the real ones")
    parser.add_argument("--only", choices=("sparse", "queue"), help="one of the two experiments")
    parser.add_argument("--keep", help="leave contracts, plans and audits in this directory")
    args = parser.parse_args()
    folder = args.keep or tempfile.mkdtemp(prefix="sparse-")
    report = Report()
    print(f"sparse writes, SIMULATED H100 at 1/{args.scale}: times are a virtual clock's, no prediction of hardware")
    sys.stdout.reconfigure(line_buffering=True)
    try:
        bench = Bench(args, os.path.join(folder, "sparse"), sparse(args.scale))
        if args.only != "queue":
            experiment(bench, report)
            controls(bench, report, bench.bare(1, "--eager"))
        if args.only != "sparse":
            dense(Bench(args, os.path.join(folder, "queue"), queue()), report)
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
