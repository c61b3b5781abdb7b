#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Training steps captured as one graph: tests/clients/captures.c, captures_memory.c. What is compared is in hazards_rig.py.

An audit leaves the program's graph alone (RS030) unless it is told otherwise; preserving puts its copies into it, and
every launch of the graph is judged.
"""
import json
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("RS_SEEDS", "10" if os.environ.get("RS_SAN") else "50")
from hazards_rig import BUILD, SHIM, Case, Run, check_cases, diverges, ok, plan, rejects, show  # noqa: E402

BLOCK = ("block", 0)
CANNOT_TELL = dict(entry="unknown", product="unknown", after="unknown")
NOT_FOLLOWED = rejects("RS030", **CANNOT_TELL)
CHANGED = diverges(["RS030"], entry="unknown", product="different", after="unknown")
FILL = dict(y=7, again=63, s=9), dict(y=7, again=7, s=9)
AGAIN = dict(y=7, again=14, s=3), dict(y=7, again=7, s=2)


def case(args, words, preserve=None, replays=(BLOCK,), audit=NOT_FOLLOWED):
    """In an audit nothing is followed, and there is one record for each replay that the program captured."""
    return Case(args, *words, {r: audit for r in replays}, preserve, replays=replays)


def by_launch(words):
    return {f"{n}{i}": v for i, w in enumerate(words) for n, v in zip(("y", "again"), w)} | {"s": 9}


CASES = [
    case("pair", AGAIN),
    case("pair fill", FILL),
    case("open_end", AGAIN),
    case("nested", (dict(first=7, y=14, again=28, s=5), dict(first=7, y=14, again=7, s=3)),
         replays=(BLOCK, ("block", 1))),
    case("nested checked", (dict(first=28, y=14, again=21, s=5), dict(first=7, y=14, again=14, s=3)),
         replays=(BLOCK, ("block", 1))),
    case("repeated", (dict(y=7, again=28, s=5), dict(y=7, again=7, s=2)), replays=(BLOCK,) * 3),
    case("repeated none", [dict(y=7, again=0, s=2)] * 2, replays=()),
    case("clone fill", FILL),
    case("alias", FILL),

    # Forward and replay in graphs of their own: each may be launched when it likes.
    case("apart", [AGAIN[0]] * 2, {BLOCK: NOT_FOLLOWED}),
    case("apart replay", [AGAIN[0]] * 2, {BLOCK: rejects("RS015", "RS030", **CANNOT_TELL)},
         audit=rejects("RS015", "RS030", **CANNOT_TELL)),

    # What preserves is in the graph, but nobody can vouch for what else is.
    case("changed fill", (dict(y=7, again=49, s=9),) * 2, {BLOCK: CHANGED}),
    case("changed graph fill", (dict(y=7, again=49, s=9),) * 2, {BLOCK: CHANGED}),
    case("by_hand", [FILL[0]] * 2, {BLOCK: CHANGED}),
    case("inside fill", FILL, {BLOCK: NOT_FOLLOWED}),
    case("inside child fill", FILL, {BLOCK: NOT_FOLLOWED}),

    case("foreign", [dict(y=7, again=7, s=1)] * 2),
    case("foreign before", [dict(y=35, again=35, s=5)] * 2),
]


# Memory of the graph's own, and how streams are ordered.
MEMORY = [
    case("temp", AGAIN),
    case("temp pool", AGAIN),
    case("state", FILL),
    case("state adds", AGAIN),
    case("state adds early", AGAIN),
    case("race", [dict(y=7, again=7, s=1)] * 2, {BLOCK: rejects("RS031", entry="unknown", product="equal", after="equal")}),
    case("race ordered", FILL),
    case("race by_hand", FILL),
    case("branch", [w | dict(seen=9) for w in FILL]),
]


def check(what, client, args, mode, want, verdict, replays, schedules=("eager", "lazy", "random:1", "random:2", "random:3"),
          **environment):
    """A run's words, and its records in their order against the verdict of each."""
    bad = []
    for schedule in schedules:
        run = Run(client, args, mode, schedule, **environment)
        got = [(r["outcome"], sorted(r["codes"])) for r in run.records]
        if run.status or run.words != want or got != [verdict] * replays:
            bad += [f"{schedule}: status {run.status}, {run.words}"] + [show(r) for r in run.records] + [run.stderr[-300:]]
    ok(not bad, what, *bad[:8])


MATCH = ("match", [])


def check_launches():
    """One record a launch, each of the state that the launch has found."""
    want = by_launch([(14, 14), (21, 21), (28, 28)])
    for streams in ("", " --streams"):
        check(f"launches{streams}: every launch is preserved and recorded", "captures", "launches" + streams, "preserve",
              want, MATCH, 3)
    check("launches: audited in the graph, every launch's divergence is seen", "captures", "launches --streams", "audit",
          by_launch([(14, 63), (21, 63), (28, 63)]), ("divergence", ["RS010"]), 3, REPLAYSHIM_CAPTURE="on")
    check("update: both graphs of an executable one are preserved", "captures", "update fill", "preserve",
          dict(y=7, again=7, s=9), MATCH, 2)


def check_memory_nodes():
    """Memory that outlives its launch, and a graph that uses what another one leaves."""
    right = by_launch([(14, 14), (21, 21), (28, 28)])
    for variant in ("", " auto", " pool"):
        for streams in ("", " --streams"):
            check(f"left{variant}{streams}: products that outlive their launch", "captures_memory", "left" + variant + streams,
                  "preserve", right, MATCH, 3)
    check("left: audited in the graph", "captures_memory", "left", "audit", by_launch([(14, 63), (21, 63), (28, 63)]),
          ("divergence", ["RS010"]), 3, REPLAYSHIM_CAPTURE="on")
    check("other: state in the memory of another graph", "captures_memory", "other --streams", "preserve", FILL[1], MATCH, 2)
    check("race: audited in the graph", "captures_memory", "race", "audit", dict(y=7, again=7, s=1), ("rejection", ["RS031"]), 1,
          REPLAYSHIM_CAPTURE="on")
    run = Run("captures_memory", "race", "preserve")
    names = {(f["code"], f["state"]["name"], f["writer"]["name"]) for f in run.findings}
    ok(names == {("RS031", "s", "cuMemsetD32Async")}, "race: state and writer are named", names)


def check_questions():
    """A captured call asks the driver once whether it is captured: here three calls, and the capture's two ends."""
    with tempfile.NamedTemporaryFile() as counts:
        run = Run("captures", "pair fill", "preserve", SIMCUDA_CALLS=counts.name)
        calls = dict(line.split() for line in counts.read().decode().splitlines())
    asked = {n: v for n, v in calls.items() if "Captur" in n and "Begin" not in n and "End" not in n and "Mode" not in n}
    ok(run.words == FILL[1] and asked == {"cuStreamGetCaptureInfo": "5", "cuStreamGetCaptureInfo_v2": "1"},
       "pair fill: the driver is asked once a call for its capture", run.words, asked)


def learn(out, client, args, **environment):
    """The contract of an audited run; None: it was not made."""
    path = os.path.join(out, "contract.json")
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(BUILD, "simcuda"), REPLAYSHIM_QUIET="1", REPLAYSHIM_LIB=SHIM, **environment)
    done = subprocess.run([os.path.join(BUILD, "replayctl"), "audit", "--out", os.path.join(out, "data"), "-o", path, "--force",
                           "--", os.path.join(BUILD, "clients", client)] + args.split(), env=env, capture_output=True, text=True)
    if not os.path.exists(path):
        print(f"# {done.returncode} {done.stderr[-300:]}")
        return None
    with open(path) as f:
        return json.load(f)


def content(contract):
    """What two runs of the same segments have in common, however they were run."""
    told = ("name", "invocations", "replays", "calls", "complete", "state", "aliases", "aliases_complete", "generators", "products",
            "captured", "untracked")
    counts = ("reads", "overwrites", "forwards")
    lists = ("state", "aliases")
    return [{k: [{n: v for n, v in x.items() if n not in counts} for x in s[k]] if k in lists else s[k] for k in told}
            for s in contract["segments"]]


def check_learned():
    """A captured segment's contract is that of the same segment when it runs, and holds it when it is captured."""
    steps = 2  # a contract has eight sequences of calls at most
    with tempfile.TemporaryDirectory() as out:
        running = learn(out, "capture_random", f"random running --steps={steps}")
        for how in ({}, dict(REPLAYSHIM_CAPTURE="on")):
            captured = learn(out, "capture_random", f"random --steps={steps}", **how)
            ok(running and captured and content(running) == content(captured) and captured["segments"][0]["complete"],
               f"a contract learned of captures is that of the same program when it is not captured, {how}")
        for option in ("undo", "free", "whole", "regions", "pages", "retain"):
            for restore in ("copy", "swap"):
                for segment in captured["segments"]:
                    segment["preserve"] = dict(option=option, restore=restore)
                path = os.path.join(out, "edited.json")
                with open(path, "w") as f:
                    json.dump(captured, f)
                run = Run("capture_random", f"random --seeds={steps}", "preserve", REPLAYSHIM_CONTRACT=path)
                codes = {c for r in run.records for c in r["codes"]}
                outcomes = {r["outcome"] for r in run.records}
                ok(not run.status and not any(w["bad"] for w in run.steps.values()) and len(run.steps) == steps and run.records and
                   ("RS080" in codes if option == "free" else outcomes == {"match"}),
                   f"under it, {option}, {restore}", run.status, run.steps, outcomes, codes, run.stderr[-300:])
    with tempfile.TemporaryDirectory() as out:
        learn(out, "captures", "pair fill")
        for args, codes in (("pair fill", []), ("pair", ["RS081", "RS084"]), ("clone fill", [])):
            run = Run("captures", args, "preserve", REPLAYSHIM_CONTRACT=os.path.join(out, "contract.json"))
            ok([r["codes"] for r in run.records] == [codes], f"{args}: held against the contract of pair fill",
               *map(show, run.records))
        learn(out, "captures", "pair")
        run = Run("captures", "repeated", "preserve", REPLAYSHIM_CONTRACT=os.path.join(out, "contract.json"))
        ok(["RS083" in r["codes"] for r in run.records] == [False, True, True], "repeated: more replays than the contract has",
           *map(show, run.records))
        contract = learn(out, "captures", "pair", REPLAYSHIM_CAPTURE="off")
        ok(contract and not contract["segments"][0]["complete"], "with CAPTURE=off nothing is learned, and that is said")
    run = Run("hazards3", "c17_capture nodes", "audit", REPLAYSHIM_LEARN="1")
    ok(run.words.get("nodes") == 2, "learning puts nothing into the program's graph", run.words)
    run = Run("captures", "pair fill", "audit", REPLAYSHIM_LEARN="1")
    ok(run.words == FILL[0] and [r["codes"] for r in run.records] == [["RS030"]], "and vouches for nothing", run.words,
       *map(show, run.records))


def check_audit():
    """In the graph an audit finds what it finds elsewhere, and names it."""
    for args, codes, words in (("pair", ["RS010", "RS013"], AGAIN[0]), ("pair fill", ["RS010"], FILL[0])):
        run = Run("captures", args, "audit", REPLAYSHIM_CAPTURE="on")
        names = {(f["code"], f["state"]["name"], f["writer"]["name"]) for f in run.findings if "state" in f}
        wanted = {("RS010", "s", "cuMemsetD32Async")} if "fill" in args else {(c, "s", "add") for c in codes}
        ok(run.words == words and [r["codes"] for r in run.records] == [codes] and names == wanted,
           f"{args}: audited in the graph, state and writer are named", run.words, names, *map(show, run.records))
    run = Run("captures", "pair fill", "preserve", REPLAYSHIM_CAPTURE="off")
    ok(run.words == FILL[0] and [r["codes"] for r in run.records] == [["RS030"]],
       "with CAPTURE=off the graph is left alone", run.words, *map(show, run.records))
    run = Run("hazards3", "c17_capture nodes", "audit")
    ok(run.words.get("nodes") == 2, "an audit puts nothing into the program's graph", run.words)
    for value in ("0", "1"):
        run = Run("captures", "launches", "preserve", REPLAYSHIM_VERIFY=value)
        outcome = "match" if value == "1" else "rejection"
        ok(run.words == by_launch([(14, 14), (21, 21), (28, 28)]) and [r["outcome"] for r in run.records] == [outcome] * 3,
           f"VERIFY={value}", run.words, *map(show, run.records))


def check_memory():
    run = Run("captures", "memory fill", "preserve")
    ok(run.words.get("lost") == 0 and len(run.records) == 5 and all(r["outcome"] == "match" for r in run.records),
       "what a capture holds goes with its graphs", run.words, *map(show, run.records))


def check_broken():
    for mode in ("none", "audit", "preserve"):
        run = Run("captures", "broken fill", mode)
        want = dict(FILL[mode == "preserve"], refused=1, ended=1)
        ok(not run.status and run.words == want, f"broken: a capture that the program breaks ends as it does, {mode}",
           run.status, run.words, run.stderr[-300:])


def check_shortage():
    """No memory for what is preserved: the capture goes on, the program's words are its own, no launch is a match."""
    own = 6  # the program's come first; the second one, of less, is tried when the first is refused
    for failing, outcome in ((1, "match"), (2, "divergence")):
        fail = ",".join(f"cuMemAlloc_v2:{own + i}=2" for i in range(failing))
        run = Run("captures", "pair fill", "preserve", SIMCUDA_FAIL=fail)
        ok(not run.status and run.words == FILL[outcome == "match"] and [r["outcome"] for r in run.records] == [outcome],
           f"pair fill: {failing} of the tool's allocations fail", run.words, *map(show, run.records), run.stderr[-300:])
    run = Run("captures", "pair fill", "preserve", REPLAYSHIM_SNAPSHOT_MAX="16B")
    ok(run.words == FILL[0] and [r["outcome"] for r in run.records] == ["divergence"],
       "pair fill: more than SNAPSHOT_MAX", run.words, *map(show, run.records))


def check_failures():
    """The driver does not answer the tool: what is a match is right all the same."""
    bad, runs = [], 0
    for entry in ("cuStreamGetCaptureInfo", "cuStreamWaitEvent", "cuEventRecord", "cuGraphGetNodes"):
        for n in range(1, 13):
            run = Run("captures_memory", "branch", "preserve", "random:8", SIMCUDA_FAIL=f"{entry}:{n}=999")
            runs += not run.status
            if not run.status and run.words != FILL[1] | dict(seen=9) and any(r["outcome"] == "match" for r in run.records):
                bad.append(f"{entry}:{n}: {run.words}")
    ok(runs > 20 and not bad, f"branch: {runs} failures of the driver, no false match", *bad)


def check_random():
    """Programs and schedules by number: no word is wrong, and every replay of every launch is a match."""
    n = 20 if os.environ.get("RS_SAN") else 150
    for settings in ({}, dict(REPLAYSHIM_SAMPLE="1"), dict(REPLAYSHIM_VERIFY="0")):
        run = Run("capture_random", f"random --seeds={n}", "preserve", **settings)
        bad = [f"program {i}: {w}" for i, w in run.steps.items() if w["bad"]]
        wanted = 3 * sum(w["replays"] for w in run.steps.values())
        outcomes = {r["outcome"] for r in run.records}
        ok(not run.status and not bad and len(run.steps) == n and len(run.records) == wanted and
           outcomes == ({"match", "rejection"} if "REPLAYSHIM_VERIFY" in settings else {"match"}),
           f"{n} random programs, {wanted} replays, {settings}", run.status, run.stderr[-300:], *bad[:5],
           *[show(r) for r in run.records if r["outcome"] != "match"][:5])
    run = Run("capture_random", f"random --seeds={n}", "none")
    wrong = sum(w["bad"] > 0 for w in run.steps.values())
    ok(wrong > n / 2, f"without the tool most of them go wrong ({wrong} of {n})")


if __name__ == "__main__":
    check_cases("captures", CASES, sys.argv[1:])
    check_cases("captures_memory", MEMORY, sys.argv[1:])
    if not sys.argv[1:]:
        for f in (check_launches, check_memory_nodes, check_questions, check_learned, check_audit, check_memory, check_broken,
                  check_shortage, check_failures, check_random):
            f()
    sys.exit(plan())
