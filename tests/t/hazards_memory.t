#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hazards of state that is not plain memory: aliases, remapped addresses, mappings side by side, other processes, arrays;
and what orders streams. The cases are in tests/clients/hazards_memory.c, what is compared in hazards_rig.py.
"""
import os
import sys

os.environ.setdefault("RS_SEEDS", "10" if os.environ.get("RS_SAN") else "50")
import hazards_rig  # noqa: E402
from hazards_rig import MODES, Case, Run, Verdict, check_cases, check_record, diverges, each_step, ok, plan, show, twice, \
    words  # noqa: E402

# A handle of 2 MiB takes the kernel several milliseconds; what is tested is the order of calls.
hazards_rig.SEEDED["SIMCUDA_GRANULARITY"] = "64K"

BLOCK = ("block", 0)
WRITTEN = dict(faulty=dict(y=21, s=3), right=dict(y=14, s=3))
AS_IT_IS = dict(faulty=dict(y=14, s=2), right=dict(y=14, s=2))


def overwritten(state, writer):
    return {BLOCK: diverges({"RS010": [(state, writer)]}, entry="different", product="different", after="equal")}


def case(args, audit=None, preserve=None, **both):
    return Case(args, both["faulty"], both["right"], audit or {}, preserve, replays=[BLOCK])


def apart(copied, left):
    return left, left, copied, left, left, left


def close(copied, left):
    return copied, left, left, left, left, left


S = {f"S.{i}": 23 for i in range(4)}
Y = words("y", 15, 15, 15, 15)
OTHER = {BLOCK: diverges(["RS016"], entry="unknown", product="different")}
UNSEEN = {BLOCK: diverges({"RS052": None}, entry="different", product="different", after="equal")}
CASES = [
    # A write through one mapping is a write to all.
    case("alias", overwritten("s", "add"), **WRITTEN),
    case("alias inside", {BLOCK: diverges(twice("s", "add"))}, faulty=dict(y=21, s=4), right=dict(y=14, s=3)),
    case("alias_retained", overwritten("s", "add"), **WRITTEN),
    # One state in two mappings, with and without a third that appears behind them.
    *[case(f"adjacent{grow}", {BLOCK: diverges(twice("S", "stat"), product="equal")},
           faulty={**Y, **words("S", 49, 49, 49, 49)}, right={**Y, **S}) for grow in ("", " grow")],
    # What is known of the bytes outlives the address; other memory at the address is not the state.
    case("remap", **AS_IT_IS),
    case("remap written", overwritten("s", "add"), **WRITTEN),
    case("remap moved", overwritten("s", "add"), **WRITTEN),
    case("remap_other", OTHER, OTHER, faulty=dict(y=35, s=5), right=dict(y=35, s=5)),
    # What others can write is compared, never overwritten.
    case("imported", **AS_IT_IS),
    case("imported written", UNSEEN, UNSEEN, faulty=dict(y=21, s=3), right=dict(y=21, s=3)),
    case("imported own", overwritten("s", "add"), overwritten("s", "add"), faulty=dict(y=21, s=3), right=dict(y=21, s=3)),
    case("exported", **AS_IT_IS),
    case("exported own", overwritten("s", "add"), overwritten("s", "add"), faulty=dict(y=21, s=3), right=dict(y=21, s=3)),
    # An array has no name yet; it is found by the copy that wrote it.
    case("array", **AS_IT_IS),
    case("array between", overwritten("", "cuMemcpy2DAsync_v2"), **WRITTEN),
    case("array inside", overwritten("", "cuMemcpy2DAsync_v2"), **WRITTEN),
    # What a strided copy leaves between rows and layers is read.
    *[case(f"layers {how}", overwritten("s", "cuMemcpy3DAsync_v2"),
           faulty={**words("y", 49, 21, *rest(49, 14)), **words("s", 7, 3, *rest(7, 2))},
           right={**words("y", 49, 14, *rest(49, 14)), **words("s", 7, 3, *rest(7, 2))})
      for how, rest in [("pitch", apart), ("height", apart), ("rows", close)]],
    # Everything that orders one stream after another: nobody is told of a race.
    *[case(f"streams {how}", overwritten("s", "add"), **WRITTEN)
      for how in "event eventsync eventquery sync query context value batch host free legacy".split()],
]


def check_refused():
    """The driver refuses to free, or to unmap: what happens to the memory then is still seen, and undone."""
    for args, call in (("refused", "cuMemFree_v2"), ("refused unmap", "cuMemUnmap")):
        bad = []
        for mode in MODES:
            for schedule in ("eager", "lazy", "random:3"):
                run = Run("hazards_memory", args, mode, schedule, SIMCUDA_FAIL=f"{call}:1=1")
                want = dict(WRITTEN["right" if mode == "preserve" else "faulty"], refused=1)
                verdict = overwritten("s", "add")[BLOCK] if mode == "audit" else Verdict("match")
                if run.status or run.words != want or len(run.records) != (mode != "none"):
                    bad.append(f"{mode}, {schedule}: {run.status} {run.words} {run.stderr[-200:]}")
                for record in run.records:
                    bad += check_record(verdict, record, run.findings)
        ok(not bad, f"{args}: memory that {call} refuses stays known", *bad[:6])


def check_race():
    """No order between the writer and the replay: said so at every step, whatever came out of it."""
    bad = []
    for mode in MODES[1:]:
        for where, _, records, findings in each_step("hazards_memory", "streams", mode):
            raced = [f for f in findings if f["code"] == "RS031" and f["writer"]["name"] == "add"]
            if not raced or any(r["outcome"] == "match" for r in records):
                bad += [where] + [show(r) for r in records]
    ok(not bad, "streams: a race is told, and vouched for by nobody", *bad[:8])


def main():
    only = sys.argv[1:]
    check_cases("hazards_memory", CASES, only)
    if not only:
        check_refused()
        check_race()
    return plan()


sys.exit(main())
