#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The hazard cases: without the tool, under audit, preserved; on one stream and on two; in several schedules.

Expected words and verdicts are those of the public reports that the cases of tests/clients/hazards.c stand for:
without the tool each goes wrong in its own way (which this asserts, so that a case cannot pass by being harmless);
an audit changes nothing and says which state, written by whom; preserving gives the words of a run that never
recomputed, after one replay or several.
"""
import json
import os
import subprocess
import sys
import tempfile

BUILD = os.environ.get("RS_BUILD") or os.path.join(os.environ.get("RS_TOP", "."), "build")
CLIENT = os.path.join(BUILD, "clients", "hazards")
SHIM = os.path.join(BUILD, "libreplayshim.so")
SCHEDULES = ["eager", "lazy", "random:1", "random:7", "random:1234"]


def words(name, *values):
    return {f"{name}.{i}": v for i, v in enumerate(values)}


class Case:
    """One command line and what must come of it.

    faulty, right: the words without the tool and preserved. hazards: {(segment, invocation): {code: (state, writer)}}
    of the audit, writer None where nobody can be asked to name one; replays not named there must match. output_safe:
    replays whose product is right although the state is not. rejected: replays that preserving cannot vouch for.
    """

    def __init__(self, args, faulty, right, hazards, output_safe=(), replays=None, rejected=()):
        self.args, self.faulty, self.right, self.hazards = args, faulty, right, hazards
        self.output_safe, self.rejected = output_safe, rejected
        self.replays = replays or sorted(hazards)


def twice(state, writer):
    """State that the replay reads after it was written again, and writes once more."""
    return {"RS010": (state, writer), "RS013": (state, writer)}


K = [7, 8, 0, 0, 0, 0, 0, 0]
CASES = [
    Case("c01", dict(y1=20, S_after_1=104, y0=15, S=211), dict(y1=20, S_after_1=50, y0=15, S=50),
         {("block", 1): twice("S", "stat"), ("block", 0): twice("S", "stat")},
         output_safe=[("block", 0), ("block", 1)]),
    Case("c01 one", dict(y0=15, S=49), dict(y0=15, S=23),
         {("block", 0): twice("S", "stat")}, output_safe=[("block", 0)]),
    Case("c02 0", dict(ref=2), dict(ref=2), {}),
    Case("c02", dict(y0=14, ref=3), dict(y0=7, ref=2), {("block", 0): twice("ref", "add")}),
    Case("c02 3", dict(y0=14, y1=21, y2=28, ref=5), dict(y0=7, y1=7, y2=7, ref=2),
         {("block", 0): twice("ref", "add")}, replays=[("block", 0)] * 3),
    Case("c05", dict(y1=60, y0=40, s=5), dict(y1=40, y0=10, s=3),
         {("module", 0): twice("s", "add"), ("module", 1): twice("s", "add")}),
    Case("c05 ascending", dict(y0=30, y1=80, s=5), dict(y0=10, y1=40, s=3),
         {("module", 0): twice("s", "add"), ("module", 1): twice("s", "add")}),
    # Nothing was kept for call 1: it cannot be vouched for and may not be given call 0's state; its side effect is
    # undone all the same.
    Case("c05 missing", dict(y1=60, y0=40, s=5), dict(y1=60, y0=10, s=3),
         {("module", 0): twice("s", "add"), ("module", 1): {"RS017": None, "RS013": ("s", "add")}},
         rejected=[("module", 1)]),
    Case("c06", dict(y1=168, y0=64, u=32), dict(y1=150, y0=30, u=75),
         {("norm", 0): twice("u", "power"), ("norm", 1): twice("u", "power")}),
    Case("c06 one", dict(y0=150, u=75), dict(y0=30, u=15), {("norm", 0): twice("u", "power")}),
    Case("c09", dict(y0=30, cur=4, **words("K", 7, 8, 7, 8, 0, 0, 0, 0)), dict(y0=15, cur=2, **words("K", *K)),
         {("attention", 0): twice("cur", "append")}),
    Case("c09 append", dict(y0=39, cur=5, **words("K", 7, 8, 9, 7, 8, 0, 0, 0)),
         dict(y0=15, cur=3, **words("K", 7, 8, 9, 0, 0, 0, 0, 0)), {("attention", 0): twice("cur", "append")}),
    # A rewrite with equal bytes is no hazard, in any order of the replays.
    *[Case(f"c10 {order}", words("P", 1, 2, 4), words("P", 1, 2, 4), {},
           replays=[("layer", int(i)) for i in order[:3]]) for order in ("210", "012", "120", "210 unnamed")],
    Case("c11", dict(yA=20, C_after_A=2, yB=20, C=2), dict(yA=10, C_after_A=2, yB=20, C=2),
         {("layer", 0): {"RS010": ("C", "cuMemsetD32")}}, replays=[("layer", 0), ("layer", 1)]),
    Case("c14", dict(offset=24, **words("mask", 0, 1, 0, 1, 0, 0, 0, 0)),
         dict(offset=16, **words("mask", 1, 0, 1, 0, 1, 1, 1, 0)), {("dropout", 0): twice("generator", "mask")}),
    Case("c14 one", dict(offset=16, **words("mask", 0, 1, 0, 1, 1, 0, 0, 1)),
         dict(offset=8, **words("mask", 1, 0, 1, 0, 1, 1, 1, 0)), {("dropout", 0): twice("generator", "mask")}),
    Case("c26", dict(y=25, a=5), dict(y=16, a=4), {("block", 0): twice("a", "add")}),
    Case("c26 shifted", dict(**words("y", 12, 20, 30, 30), **words("a", 3, 4, 5, 6, 5)),
         dict(**words("y", 6, 12, 20, 25), **words("a", 2, 3, 4, 5, 5)), {("block", 0): twice("a", "add")}),
    *[Case(f"x1{how}", dict(**words("S", 49, 49, 49, 49), **words("y", 15, 15, 15, 15)),
           dict(**words("S", 23, 23, 23, 23), **words("y", 15, 15, 15, 15)),
           {("block", 0): twice("S", "stat")}, output_safe=[("block", 0)]) for how in ("", " declared")],
    *[Case(f"x2{how}", dict(Y=15, S=49), dict(Y=15, S=23),
           {("block", 0): twice("S", "stat")}, output_safe=[("block", 0)]) for how in ("", " declared")],
]

count = failed = 0


def ok(passed, what, *details):
    global count, failed
    count += 1
    failed += not passed
    print(f"{'' if passed else 'not '}ok {count} - {what}")
    if not passed:
        for d in details:
            print(f"#   {d}")
    sys.stdout.flush()


def lines(path):
    try:
        with open(path) as f:
            return [json.loads(line) for line in f]
    except FileNotFoundError:
        return []


class Run:
    def __init__(self, args, mode, schedule):
        with tempfile.TemporaryDirectory() as out:
            env = {k: v for k, v in os.environ.items() if not k.startswith(("REPLAYSHIM_", "SIMCUDA_"))}
            env.update(LD_LIBRARY_PATH=os.path.join(BUILD, "simcuda"), SIMCUDA_SCHED=schedule)
            if mode != "none":
                env.update(LD_PRELOAD=f"{os.environ.get('RS_SAN_PRELOAD', '')} {SHIM}".strip(),
                           REPLAYSHIM_MODE=mode, REPLAYSHIM_OUT=out, REPLAYSHIM_QUIET="1")
            done = subprocess.run([CLIENT] + args.split(), env=env, capture_output=True, text=True, timeout=60)
            self.status, self.stdout, self.stderr = done.returncode, done.stdout, done.stderr
            self.words = {k: int(v) for k, v in (line.split("=") for line in done.stdout.splitlines())}
            self.records = lines(os.path.join(out, "records.jsonl"))
            self.findings = [e for e in lines(os.path.join(out, "events.jsonl")) if e.get("t") == "finding"]


def show(record):
    return "{segment}#{invocation} {outcome} entry {entry} product {product} after {after} {codes}".format(**record)


def key(record):
    return record["segment"], record["invocation"]


def check_audit(case, run):
    """What is wrong with the audit's records and findings, as text."""
    bad = []
    if [key(r) for r in sorted(run.records, key=key)] != sorted(case.replays):
        bad.append(f"records of {[key(r) for r in run.records]}, not of {case.replays}")
    for r in run.records:
        hazards = case.hazards.get(key(r))
        want = "divergence" if hazards else "match"
        if r["outcome"] != want:
            bad.append(f"{want} wanted: {show(r)}")
        if key(r) in case.output_safe and r["product"] != "equal":
            bad.append(f"the product is right: {show(r)}")
        for code, who in (hazards or {}).items():
            if code not in r["codes"]:
                bad.append(f"{code} wanted: {show(r)}")
            if not who:
                continue
            named = [(f["state"]["name"], f["writer"]["name"]) for f in run.findings
                     if f["code"] == code and key(f) == key(r) and "state" in f]
            if not any(s == who[0] and w.startswith(who[1]) for s, w in named):
                bad.append(f"{code} names {named}, not {who}")
    return bad


def check_preserved(case, run):
    bad = []
    if [key(r) for r in sorted(run.records, key=key)] != sorted(case.replays):
        bad.append(f"records of {[key(r) for r in run.records]}, not of {case.replays}")
    for r in run.records:
        want = "rejection" if key(r) in case.rejected else "match"
        if r["outcome"] != want:
            bad.append(f"{want} wanted: {show(r)}")
    return bad


def check_case(case, streams):
    args = case.args + streams
    wrong = {"none": [], "audit": [], "preserve": []}
    for schedule in SCHEDULES:
        plain = Run(args, "none", schedule)
        if plain.status or plain.words != case.faulty:
            wrong["none"] += [f"{schedule}: status {plain.status}, {plain.words}", plain.stderr[-300:]]
        run = Run(args, "audit", schedule)
        if (run.status, run.stdout) != (plain.status, plain.stdout):
            wrong["audit"] += [f"{schedule}: status {run.status}, {run.words}", run.stderr[-300:]]
        wrong["audit"] += [f"{schedule}: {b}" for b in check_audit(case, run)]
        run = Run(args, "preserve", schedule)
        if run.status or run.words != case.right:
            wrong["preserve"] += [f"{schedule}: status {run.status}, {run.words}", run.stderr[-300:]]
        wrong["preserve"] += [f"{schedule}: {b}" for b in check_preserved(case, run)]
    ok(not wrong["none"], f"{args}: goes wrong by itself as reported" if case.hazards else f"{args}: is right by itself",
       f"wanted {case.faulty}", *wrong["none"][:6])
    ok(not wrong["audit"], f"{args}: audited, unchanged and explained", *wrong["audit"][:6])
    ok(not wrong["preserve"], f"{args}: preserved, right", f"wanted {case.right}", *wrong["preserve"][:6])


def check_overlap():
    """Replay 2 reads what replay 0 has half written, on another stream. The audit blames replay 0's window; preserved,
    replay 2 sees its own state, or is not vouched for."""
    bad = []
    for schedule in SCHEDULES:
        plain = Run("c10_overlap", "none", schedule)
        if plain.words != words("P", 1, 2, 3):
            bad.append(f"{schedule}: {plain.words} without the tool")
        run = Run("c10_overlap", "audit", schedule)
        blamed = [f["writer"]["window"] for f in run.findings if f["code"] == "RS010" and f["invocation"] == 2]
        if run.stdout != plain.stdout or "replay:layer#0" not in blamed:
            bad.append(f"{schedule}: audit {run.words}, overwritten by {blamed}")
        run = Run("c10_overlap", "preserve", schedule)
        matches = len(run.records) == 2 and all(r["outcome"] == "match" for r in run.records)
        if run.status or (run.words != words("P", 1, 2, 4) and matches) or len(run.records) != 2:
            bad += [f"{schedule}: status {run.status}, {run.words}"] + [show(r) for r in run.records]
    ok(not bad, "c10_overlap: overlapping replays are told apart, or rejected", *bad[:8])


def check_loop():
    """Rewrites whose bounds nobody can prove: the words are right in every mode."""
    bad = []
    for schedule in SCHEDULES:
        for mode in ("none", "audit", "preserve"):
            run = Run("c10 loop", mode, schedule)
            if run.status or run.words != words("P", 1, 2, 4):
                bad.append(f"{mode}, {schedule}: status {run.status}, {run.words}")
    ok(not bad, "c10 loop: right in every mode", *bad[:6])


def check_steps():
    """Many steps: the last one is as right as the first, and every replay has its record."""
    case = next(c for c in CASES if c.args == "c05")
    run = Run("c05 --steps=20 --streams", "preserve", "random:5")
    ok(run.words == case.right and len(run.records) == 40 and all(r["outcome"] == "match" for r in run.records),
       "c05: 20 steps preserved, 40 matches", run.words, len(run.records), *map(show, run.records[:3]))


def main():
    only = sys.argv[1:]
    for case in CASES:
        if only and case.args not in only:
            continue
        for streams in ("", " --streams"):
            check_case(case, streams)
    if not only:
        check_overlap()
        check_loop()
        check_steps()
    print(f"1..{count}")
    return failed != 0


sys.exit(main())
