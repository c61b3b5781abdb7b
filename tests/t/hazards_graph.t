#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hazards in graphs: tests/clients/hazards_graph.c. What is compared is in hazards_rig.py."""
import os
import sys

os.environ.setdefault("RS_SEEDS", "10" if os.environ.get("RS_SAN") else "50")
from hazards_rig import (MODES, Case, Run, Verdict, match, check_cases, diverges, ok, plan, rejects, show, twice,  # noqa: E402
                         words)

BLOCK = ("block", 0)
CANNOT_TELL = dict(entry="unknown", product="unknown", after="unknown")
AGAIN = {BLOCK: diverges(twice("s", "add"))}
PAIR = dict(y=14, s=3), dict(y=7, s=2), AGAIN
HOW = {"memset": "cuGraphLaunch (memset node)", "kernel": "add", "memcpy": "cuGraphLaunch (memcpy node)",
       "memop": "cuGraphLaunch (memory operations node)", "child": "cuGraphLaunch (memset node)"}


def writer(how, *more, writes=True):
    """C is 3 until the graph makes a 9 of it."""
    y = 9 if writes else 3
    audit = {BLOCK: diverges({"RS010": [("C", HOW[how])]}, after="equal")} if writes else {}
    return Case(" ".join(("writer", how) + more), dict(y=y, C=y), dict(y=3, C=y), audit, replays=[BLOCK])


def over(args, faulty, right, audit, preserve=None):
    s = [words("s", 3, 4, 5, 6), words("s", 2, 3, 4, 5)]
    return Case(args, dict(**words("y", *faulty), **s[0]), dict(**words("y", *right), **s[1]), audit, preserve)


CASES = [
    # Forward, replay, or both in a graph: built by hand, nested, captured.
    *[Case(f"pair{how}{made}", *PAIR) for made in ("", " child", " captured") for how in ("", " forward", " replay")],

    # A fill that does not run must not pass for the state's first access.
    # The audit names the first that may have written.
    Case("skipped", *PAIR),
    Case("skipped conditional", *PAIR[:2], {BLOCK: diverges(twice("s", HOW["memset"]))}),

    # What a later node overwrites is not compared with what a launch of another kind has left in the middle.
    over("over", [10, 15, 20, 25], [5, 10, 15, 20], AGAIN),
    over("over replay", [10, 15, 20, 25], [5, 10, 15, 20], AGAIN),
    over("over part", [10, 15, 4, 5], [5, 10, 3, 4], AGAIN),
    over("over part replay", [10, 15, 4, 5], [5, 10, 3, 4], AGAIN,
         {BLOCK: rejects("RS001", entry="equal", product="unknown", after="equal")}),

    *[writer(how) for how in HOW],
    *[writer(how, "set") for how in HOW],
    *[writer(how, "any") for how in ("memset", "kernel", "memcpy")],
    *[writer(how, "update") for how in ("memset", "kernel", "memcpy", "memop")],
    *[writer(how, "off", writes=False) for how in ("memset", "kernel", "memcpy")],
    writer("memset", "on"),
    writer("memset", "set", "off", writes=False),
    Case("refused", dict(y=3, C=3), dict(y=3, C=3), {}, replays=[BLOCK]),

    Case("opaque", dict(y=9), dict(y=9), *[{BLOCK: rejects("RS050", **CANNOT_TELL)}] * 2),

    *[Case(f"temp{before}", dict(y=70, s=3), dict(y=35, s=2), AGAIN) for before in ("", " before")],
    *[Case(f"temp kept{before}", dict(y=70, s=3, t=7, t_again=14), dict(y=35, s=2, t=7, t_again=7), AGAIN)
      for before in ("", " before")],

    Case("left kept", dict(y=9, t=9), dict(y=7, t=9), {BLOCK: diverges({"RS010": [("", "cuMemsetD32")]}, after="equal")}),

    # A body that may run writes in the eyes of the tool; what it leaves equal is no hazard.
    Case("conditional", dict(y=9, C=9), dict(y=3, C=9),
         {BLOCK: diverges({"RS010": [("C", HOW["memset"])]}, after="equal")}),
    Case("conditional not", dict(y=3, C=3), dict(y=3, C=3), {}, replays=[BLOCK]),

    # Arguments of kernel nodes: other numbers are told of, other pointers are none.
    *[Case(f"numbers {how} {what}", *[dict(twice=twice_)] * 2, *[verdict] * 2, replays=[BLOCK])
      for how in ("forward", "replay", "both")
      for what, twice_, verdict in (
          ("other", 36, {BLOCK: Verdict("divergence", {"RS001": [("", "scale")], "RS003": None}, after="equal")}),
          ("equal", 0, {BLOCK: match("RS003")}), ("moved", 30, {}), ("same", 30, {}))],

    *[Case(f"event {how}", dict(y=9, C=9), dict(y=3, C=9),
           {BLOCK: diverges({"RS010": [("C", name)]}, after="equal")})
      for how, name in (("record", "cuMemsetD32"), ("wait", HOW["memset"]))],
]


def check_threads():
    """Two threads launch one graph, each in windows of its own: every replay is seen, and matches."""
    for mode in MODES:
        for schedule in ("eager", "random:3"):
            run = Run("graph_threads", "", mode, schedule)
            bad = [r for r in run.records if r["outcome"] != "match"]
            ok(not run.status and run.words == {"y": 35} and len(run.records) == (0 if mode == "none" else 40) and not bad,
               f"two threads, one graph: {mode}, {schedule}", run.status, run.words, len(run.records), run.stderr[-300:],
               *map(show, bad[:4]))


def main():
    check_cases("hazards_graph", CASES, sys.argv[1:])
    if not sys.argv[1:]:
        check_threads()
    return plan()


sys.exit(main())
