#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The hazard cases, part one: without the tool, under audit, preserved; on one stream and on two; in many schedules.

Expected words and verdicts are those of the public reports that the cases of tests/clients/hazards.c stand for. What
is compared is in hazards_rig.py; hazards2.t has the other cases.
"""
import sys

from hazards_rig import MODES, Case, Run, check_cases, diverges, each_step, ok, plan, rejects, show, twice, words


def again(state, writer, **fields):
    return diverges(twice(state, writer), **fields)


def with_output(state, writer):
    """The product does not depend on the state, so it is right."""
    return again(state, writer, product="equal")


CACHE = [("cur", "append"), ("K", "append")]
APPENDED = diverges({"RS010": CACHE, "RS013": CACHE})
K = [7, 8, 0, 0, 0, 0, 0, 0]
BLOCK = ("block", 0)
CASES = [
    Case("c01", dict(y1=20, S_after_1=104, y0=15, S=211), dict(y1=20, S_after_1=50, y0=15, S=50),
         {("block", 1): with_output("S", "stat"), BLOCK: with_output("S", "stat")}),
    Case("c01 one", dict(y0=15, S=49), dict(y0=15, S=23), {BLOCK: with_output("S", "stat")}),
    Case("c02 0", dict(ref=2), dict(ref=2), {}),
    Case("c02", dict(y0=14, ref=3), dict(y0=7, ref=2), {BLOCK: again("ref", "add")}),
    Case("c02 3", dict(y0=14, y1=21, y2=28, ref=5), dict(y0=7, y1=7, y2=7, ref=2), {BLOCK: again("ref", "add")},
         replays=[BLOCK] * 3),
    Case("c05", dict(y1=60, y0=40, s=5), dict(y1=40, y0=10, s=3),
         {("module", 0): again("s", "add"), ("module", 1): again("s", "add")}),
    Case("c05 ascending", dict(y0=30, y1=80, s=5), dict(y0=10, y1=40, s=3),
         {("module", 0): again("s", "add"), ("module", 1): again("s", "add")}),
    # Nothing was kept for call 1: it cannot be vouched for and may not be given call 0's state; its side effect is
    # undone all the same.
    Case("c05 missing", dict(y1=60, y0=40, s=5), dict(y1=60, y0=10, s=3),
         {("module", 0): again("s", "add"),
          ("module", 1): diverges({"RS017": None, "RS013": [("s", "add")]}, entry="unknown", product="unknown")},
         {("module", 1): rejects("RS017")}),
    Case("c06", dict(y1=168, y0=64, u=32), dict(y1=150, y0=30, u=75),
         {("norm", 0): again("u", "power"), ("norm", 1): again("u", "power")}),
    Case("c06 one", dict(y0=150, u=75), dict(y0=30, u=15), {("norm", 0): again("u", "power")}),
    Case("c09", dict(y0=30, cur=4, **words("K", 7, 8, 7, 8, 0, 0, 0, 0)), dict(y0=15, cur=2, **words("K", *K)),
         {("attention", 0): APPENDED}),
    Case("c09 append", dict(y0=39, cur=5, **words("K", 7, 8, 9, 7, 8, 0, 0, 0)),
         dict(y0=15, cur=3, **words("K", 7, 8, 9, 0, 0, 0, 0, 0)), {("attention", 0): APPENDED}),
    # A rewrite with equal bytes is no hazard, in any order of the replays.
    *[Case(f"c10 {order}", words("P", 1, 2, 4), words("P", 1, 2, 4), {},
           replays=[("layer", int(i)) for i in order[:3]]) for order in ("210", "012", "120", "210 unnamed")],
    Case("c11", dict(yA=20, C_after_A=2, yB=20, C=2), dict(yA=10, C_after_A=2, yB=20, C=2),
         {("layer", 0): diverges({"RS010": [("C", "cuMemsetD32")]}, after="equal")},
         replays=[("layer", 0), ("layer", 1)]),
    Case("c14", dict(offset=24, **words("mask", 0, 1, 0, 1, 0, 0, 0, 0)),
         dict(offset=16, **words("mask", 1, 0, 1, 0, 1, 1, 1, 0)), {("dropout", 0): again("generator", "mask")}),
    Case("c14 one", dict(offset=16, **words("mask", 0, 1, 0, 1, 1, 0, 0, 1)),
         dict(offset=8, **words("mask", 1, 0, 1, 0, 1, 1, 1, 0)), {("dropout", 0): again("generator", "mask")}),
    Case("c26", dict(y=25, a=5), dict(y=16, a=4), {BLOCK: again("a", "add")}),
    Case("c26 apart", dict(y=15, a=5), dict(y=12, a=4), {BLOCK: again("a", "add")}),
    Case("c26 shifted", dict(**words("y", 12, 20, 30, 30), **words("a", 3, 4, 5, 6, 5)),
         dict(**words("y", 6, 12, 20, 25), **words("a", 2, 3, 4, 5, 5)), {BLOCK: again("a", "add")}),
    *[Case(f"x1{how}", dict(**words("S", 49, 49, 49, 49), **words("y", 15, 15, 15, 15)),
           dict(**words("S", 23, 23, 23, 23), **words("y", 15, 15, 15, 15)),
           {BLOCK: with_output("S", "stat")}) for how in ("", " declared")],
    *[Case(f"x2{how}", dict(Y=15, S=49), dict(Y=15, S=23),
           {BLOCK: with_output("S", "stat")}) for how in ("", " declared")],
]


def check_overlap():
    """Replay 2 reads what replay 0 has half written, on another stream. The audit blames replay 0's window; preserved,
    replay 2 sees its own state, or is not vouched for."""
    bad = []
    for mode in MODES:
        for where, got, records, findings in each_step("hazards", "c10_overlap", mode):
            blamed = [f["writer"]["window"] for f in findings if f["code"] == "RS010" and f["invocation"] == 2]
            matches = len(records) == 2 and all(r["outcome"] == "match" for r in records)
            if mode != "preserve" and got != words("P", 1, 2, 3):
                bad.append(f"{where}: {got}")
            if mode == "audit" and "replay:layer#0" not in blamed:
                bad.append(f"{where}: overwritten by {blamed}")
            if mode == "preserve" and (len(records) != 2 or not got or got != words("P", 1, 2, 4) and matches):
                bad += [f"{where}: {got}"] + [show(r) for r in records]
    ok(not bad, "c10_overlap: overlapping replays are told apart, or rejected", *bad[:8])


def check_loop():
    """Rewrites whose bounds nobody can prove: the words are right in every mode."""
    bad = [f"{where}: {got}" for mode in MODES for where, got, _, _ in each_step("hazards", "c10 loop", mode)
           if got != words("P", 1, 2, 4)]
    ok(not bad, "c10 loop: right in every mode", *bad[:6])


def check_steps():
    """Many steps: the last one is as right as the first, and every replay has its record."""
    case = next(c for c in CASES if c.args == "c05")
    run = Run("hazards", "c05 --steps=20 --streams", "preserve", "random:5")
    ok(run.words == case.right and len(run.records) == 40 and all(r["outcome"] == "match" for r in run.records),
       "c05: 20 steps preserved, 40 matches", run.words, len(run.records), *map(show, run.records[:3]))


def main():
    only = sys.argv[1:]
    check_cases("hazards", CASES, only)
    if not only:
        check_overlap()
        check_loop()
        check_steps()
    return plan()


sys.exit(main())
