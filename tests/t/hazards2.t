#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The hazard cases, part two: randomness, structure, reads that arguments do not show, host state, lifetimes.

Expected words and verdicts are those of the public reports that the cases of tests/clients/hazards2.c and hazards3.c
stand for. Where the tool cannot restore (another kernel, a seed by value, a graph, the host) the verdict must not be a
match, or must carry the note that says so. What is compared is in hazards_rig.py.
"""
import os
import subprocess
import sys
import tempfile

from hazards_rig import BUILD, SHIM, Run, Case, check_cases, diverges, match, ok, plan, rejects, twice, words


def mix(seed, i):
    """The toy generator H."""
    h = (seed * 2654435761 + i * 40503 + 12345) & 0xffffffff
    h ^= h >> 16
    h = h * 2246822519 & 0xffffffff
    return h ^ h >> 13


def bits(seed, offset, n):
    return [mix(seed, offset + i) & 1 for i in range(n)]


def library(runs):
    """A library's 64 words after so many runs."""
    d = list(range(64))
    for _ in range(runs):
        d = [mix(v, i) for i, v in enumerate(d)]
    return d


def parity(values):
    return [v & 1 for v in values]


def different(codes, **fields):
    """The same state, another result: never a match, whatever is restored."""
    return diverges(codes, entry="equal", product="different", **fields)


CANNOT_TELL = dict(entry="unknown", product="unknown", after="unknown")
BLOCK, LAYER, DROPOUT = ("block", 0), ("layer", 0), ("dropout", 0)
HAZARDS3 = ("c17", "c27", "c28", "x3")
SEED = [mix(9, 0), mix(9, 1)]
FIRST = [1, 0, 1, 0, 1, 1, 1, 0]
Y = words("y", 3, 6, 9, 12)

CASES = [
    Case("c03", dict(y=56, A=56), dict(y=75, A=75), {("observer", 0): diverges(twice("A", "decay"))}),
    Case("c03 idempotent", dict(y=100, A=100), dict(y=100, A=100), {}, replays=[("observer", 0)]),

    # What a flag of the host makes of the backward is not in any byte of the segment: the replay itself is right.
    Case("c04 keep", dict(G=9), dict(G=9), {}),
    Case("c04", dict(y=15, G=0), dict(y=15, G=0), {}, replays=[LAYER]),
    # In the segment it shows as a call left out.
    Case("c04 inside", dict(y=15, G=9), dict(y=15, G=9), {LAYER: match("RS015")}, {LAYER: match("RS015")}),

    # The pointer of the host cannot be put back: the first call's replay takes another path, which is said.
    *[Case(f"c07{how}", dict(**words("L_after_1", 7, 5), **words("L", 10, 6)),
           dict(**words("L_after_1", 5, 3), **words("L", 5, 3)),
           {("moe", 1): diverges(twice(name, "count")),
            ("moe", 0): diverges({"RS013": [(name, "count")], "RS015": None, "RS016": [(name, "count")],
                                  "RS021": None})},
           {("moe", 0): rejects("RS015", "RS016", "RS021", after="equal")}) for how, name in (("", "L"), (" unnamed", ""))],

    # The host has counted twice; the device's bytes are right, and the note says what is not.
    Case("c08", dict(y=35, N=14), dict(y=35, N=14), {("metrics", 0): match("RS020")}, {("metrics", 0): match("RS020")}),

    Case("c12", dict(w3=7, w2=5, w1=7, w0=5, **words("T", 5, 7)), dict(w3=7, w2=5, w1=3, w0=2, **words("T", 5, 7)),
         {("layer", i): diverges({"RS010": [("T", "cuMemcpyDtoD")]}, after="equal") for i in (0, 1)},
         replays=[("layer", i) for i in range(4)]),
    Case("c13", dict(m=30, b=10), dict(m=12, b=10),
         {("partition", 0): diverges({"RS010": [("b", "add")], "RS015": None}, after="equal")},
         {("partition", 0): match("RS015")}),
    Case("c13 outside", dict(m=30, b=10), dict(m=12, b=10),
         {("partition", 0): diverges({"RS010": [("b", "add")]}, after="equal")}),

    # The program takes care of G0, after the window too; only G1 is a surprise at entry.
    Case("c15", dict(offset0=8, offset1=16, **words("mask", *FIRST, *bits(2, 8, 8))),
         dict(offset0=8, offset1=8, **words("mask", *FIRST, *bits(2, 0, 8))),
         {DROPOUT: diverges({"RS010": [("G1", "draw")], "RS013": [("G0", "draw"), ("G1", "draw")]})}),
    # The right entry does not help where the replay draws at another pace.
    Case("c16", dict(offset=26, **words("second", *bits(1, 21, 5))), dict(offset=16, **words("second", 1, 1, 0, 0, 1)),
         {("jit", 0): diverges({"RS003": None, **twice("G", "draw")})},
         {("jit", 0): different({"RS001": [("", "draw")], "RS003": None}, after="equal")}),
    Case("c16 restored", dict(offset=10, **words("second", 1, 1, 0, 0, 1)),
         dict(offset=0, **words("second", 1, 1, 0, 0, 1)),
         {("jit", 0): different({"RS001": [("", "draw")], "RS003": None, "RS013": [("G", "draw")]})},
         {("jit", 0): different({"RS001": [("", "draw")], "RS003": None}, after="equal")}),

    # Windows around launches of graphs. The second copy of the generator is the program's own: the forward made it and
    # did not read it, so nothing vouches for it.
    Case("c17", dict(offset=32, nodes=6, **words("mask1", *bits(1, 16, 8)), **words("mask0", *bits(1, 24, 8))),
         dict(offset=16, nodes=6, **words("mask1", *bits(1, 8, 8)), **words("mask0", *FIRST)),
         {("graph", i): diverges({**twice("G", "draw"), "RS015": None}) for i in (0, 1)},
         {("graph", i): match("RS015") for i in (0, 1)}),
    Case("c17 saved", *[dict(offset=16, nodes=6, **words("mask1", *bits(1, 8, 8)), **words("mask0", *FIRST))] * 2,
         {("graph", i): diverges({"RS013": [("", "draw")], "RS015": None, "RS016": [("", "draw")]}) for i in (0, 1)},
         {("graph", i): rejects("RS015", "RS016", after="equal") for i in (0, 1)}),
    # An audit leaves what is captured alone; more of it is in captures.t.
    Case("c17_capture", dict(offset=16, **words("mask", *bits(1, 8, 8))), dict(offset=8, **words("mask", *bits(1, 0, 8))),
         {("captured", 0): rejects("RS030", **CANNOT_TELL)}),
    Case("c17_writer", dict(y=9, C=9), dict(y=3, C=9), {LAYER: diverges({"RS010": [("C", "cuGraphLaunch")]})}),

    # A seed by value is the host's: its bytes go back, the mask is another one.
    Case("c18", dict(seed=SEED[1], drawn=2, **words("mask", *bits(SEED[1], 0, 8))),
         dict(seed=SEED[0], drawn=2, **words("mask", *bits(SEED[1], 0, 8))),
         {("compiled", 0): different({"RS001": [("", "draw")], "RS013": [("seed", "cuMemsetD32")], "RS015": None})},
         {("compiled", 0): different({"RS001": [("", "draw")], "RS015": None}, after="equal")}),
    Case("c18 outside", dict(seed=SEED[1], drawn=2, **words("mask", *bits(SEED[1], 0, 8))),
         dict(seed=SEED[1], drawn=2, **words("mask", *bits(SEED[0], 0, 8))),
         {("compiled", 0): diverges({"RS010": [("seed", "cuMemsetD32")]}, after="equal")}),

    Case("c19", dict(**words("mask", *parity(library(2))), **words("D", *library(3))),
         dict(**words("mask", *parity(library(0))), **words("D", *library(2))),
         {DROPOUT: diverges(twice("", "libdrop"))}),
    # Made by the first call: nothing was kept of it before the second one. The replay's own effect is undone.
    Case("c19 lazy", dict(**words("mask", *parity(library(2))), **words("D", *library(3))),
         dict(**words("mask", *parity(library(2))), **words("D", *library(2))),
         {DROPOUT: diverges({**twice("", "libdrop"), "RS015": None, "RS021": None})},
         {DROPOUT: diverges({"RS010": [("", "libdrop")], "RS015": None, "RS021": None}, after="equal")}),

    Case("c20", dict(rows=0), dict(rows=0),
         *[{("route", 0): different({"RS001": [("", "route")], "RS015": None}, after="equal")}] * 2),
    Case("c20 tuned", dict(rows=0), dict(rows=0), *[{("route", 0): different({"RS001": [("", "sum4")], "RS003": None})}] * 2),
    Case("c20 alone", dict(rows=0), dict(rows=0),
         *[{("route", 0): rejects("RS015", entry="equal", product="unknown", after="equal")}] * 2),

    Case("c21", dict(y1=6, Z=1), dict(y1=6, Z=1), *[{("racy", 0): rejects("RS050", **CANNOT_TELL)}] * 2),
    Case("c21 3", dict(y1=6, y2=7, y3=8, Z=3), dict(y1=6, y2=7, y3=8, Z=3),
         *[{("racy", 0): rejects("RS050", **CANNOT_TELL)}] * 2, replays=[("racy", 0)] * 3),
    Case("c21 global", dict(y1=6, Z=1), dict(y1=5, Z=1),
         {("racy", 0): diverges({"RS010": [("", "set_global")]}, after="equal")}),
    Case("c21 fresh", *[dict(y1=0xa5a5a5a5 + 5, Z=1)] * 2,
         *[{("racy", 0): different({"RS001": [("", "count")], "RS015": None})}] * 2),

    Case("c22", dict(L=2, rows=5, **Y), dict(L=1, rows=4, **Y),
         {("dispatch", 0): diverges({**twice("L", "dispatch"), "RS015": None, "RS020": None, "RS021": None})},
         {("dispatch", 0): match("RS020")}),
    Case("c22 saved", dict(L=1, rows=4, **Y), dict(L=1, rows=4, **Y),
         *[{("dispatch", 0): match("RS015", "RS020", "RS021")}] * 2),

    # Other calls, equal bytes: notes. The weight that only the replay reads is the one the forward would have read.
    Case("c23", dict(y=150, W=100), dict(y=150, W=100), *[{("B", 0): match("RS012", "RS015", "RS021")}] * 2),
    Case("c23 stepped", dict(y=180, W=120), dict(y=180, W=120),
         *[{("B", 0): diverges({"RS012": [("", "free")], "RS015": None, "RS016": [("W", "halve")], "RS021": None},
                               product="different", after="equal")}] * 2),
]
KEPT = {"RS010": [("", "add")], "RS015": None, "RS021": None}
CASES += [
    # A product that the replay takes from where the forward left it, and that was changed in place since.
    Case("c24", dict(y=8, m=8), dict(y=8, m=7),
         {("policy", 0): diverges({"RS013": [("", "add")], **KEPT}, entry="different", product="different")},
         {("policy", 0): diverges(KEPT, entry="different", product="different", after="equal")}),
    Case("c24 equal", dict(y=6, m=6), dict(y=6, m=6), *[{("policy", 0): match("RS015", "RS021")}] * 2),

    # Equal at the beginning is not equal.
    *[Case(f"c25{how}", *[words("mask", 0, 0, 1, 1, 1, 1, 1, 0)] * 2,
           *[{("rbg", 0): different({"RS001": [("", "shards")], "RS003": None}, after="equal")}] * 2) for how in ("", " large")],
    Case("c25 large same", *[words("mask", 0, 0, 1, 1, 1, 1, 1, 0)] * 2, {}, replays=[("rbg", 0)]),

    # What the tool puts back may not land in the next owner's memory, nor old bytes be given to it.
    Case("c27", dict(y=14, owner=255, reused=1), dict(y=7, owner=255, reused=1),
         {("offload", 0): diverges(twice("s", "add"))}),
    Case("c27_recycled", *[dict(y=255, owner=255, reused=1)] * 2,
         *[{("offload", 0): diverges({"RS011": [("", "scale")], "RS012": [("", "free")]}, product="different",
                                     after="equal")}] * 2),

    # What a replay allocates and nobody frees is the program's: never touched, but told of.
    Case("c28", *[dict(y1=26, y0=22, still_there=1, P1=13)] * 2,
         *[{("module", 1): match("RS012", "RS015", "RS021")}] * 2,
         replays=[("module", 0), ("module", 1)]),

    Case("x3", dict(y=15, grad=107, S=49), dict(y=15, grad=107, S=23),
         {BLOCK: diverges(twice("S", "stat"), product="equal")}),
    # State that only the replay touches: nobody can tell whether its bytes or the earlier ones must survive.
    Case("x3 inside", dict(y=15, grad=107, S=49), dict(y=15, grad=107, S=23),
         {BLOCK: diverges({**twice("S", "stat"), "RS014": [("", "add")], "RS015": None})},
         {BLOCK: rejects("RS014", "RS015", entry="equal", product="equal", after="unknown")}),
    # Declared, it is put back, and still not vouched for.
    Case("x3 inside named", dict(y=15, grad=107, S=49), dict(y=15, grad=100, S=23),
         {BLOCK: diverges({**twice("S", "stat"), "RS014": [("grad", "add")], "RS015": None})},
         {BLOCK: rejects("RS014", "RS015", entry="equal", product="equal", after="unknown")}),
]


def check_claim():
    """The flag of c04 is beyond what any byte shows, so the report may only be clean in what was observed."""
    with tempfile.TemporaryDirectory() as out:
        env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(BUILD, "simcuda"), REPLAYSHIM_OUT=out, REPLAYSHIM_QUIET="1",
                   LD_PRELOAD=f"{os.environ.get('RS_SAN_PRELOAD', '')} {SHIM}".strip())
        subprocess.run([os.path.join(BUILD, "clients", "hazards2"), "c04"], env=env, check=True, capture_output=True)
        env.pop("LD_PRELOAD")
        done = subprocess.run([os.path.join(BUILD, "replayctl"), "report", out], env=env, capture_output=True,
                              text=True)
    verdict = [line for line in done.stdout.splitlines() if line.startswith("VERDICT")]
    ok(done.returncode == 0 and len(verdict) == 1 and "CLEAN" in verdict[0].upper() and
       "in what was observed" in verdict[0].lower() and "paths not run were not judged" in done.stdout,
       "c04: clean in what was observed, and no more is claimed", done.returncode, *done.stdout.splitlines()[:12])


def check_unreplayed():
    """C27 in a program that replays nothing: nothing is judged, but a free under a pending reader is an error."""
    for args, want in (("c27_reader", {"RS031": "error"}), ("c27_reader ordered", {})):
        for mode in ("audit", "preserve"):
            run = Run("hazards3", args, mode)
            found = {f["code"]: f["sev"] for f in run.findings}
            names = {(f["segment"], f["replay"], f["writer"]["name"], f["state"]["bytes"]) for f in run.findings}
            ok(not run.status and run.words == dict(owner=255, reused=1) and not run.records and found == want and
               names == ({("offload", 0, "free", 4)} if want else set()), f"{args}: {mode}", run.status, run.words, run.records, found, names,
               run.stderr[-300:])


def main():
    only = sys.argv[1:]
    for client in ("hazards2", "hazards3"):
        check_cases(client, [c for c in CASES if c.args.startswith(HAZARDS3) == (client == "hazards3")], only)
    if not only:
        check_claim()
        check_unreplayed()
    return plan()


sys.exit(main())
