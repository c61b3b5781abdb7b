#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tensors in one allocation and kernels of which nobody knows how far they reach: what a segment makes beside its weights
survives its replay, and where product and state cannot be told apart no replay is a match. The cases are in
tests/clients/hazards_pool.c, what is compared in hazards_rig.py.
"""
import os
import sys

os.environ.setdefault("RS_SEEDS", "10" if os.environ.get("RS_SAN") else "50")
from hazards_rig import Case, check_cases, diverges, match, plan, rejects, words  # noqa: E402

BLOCK = ("block", 0)
UNKNOWN = rejects("RS014", entry="unknown", product="equal", after="equal")
RS010 = diverges(["RS010", "RS014"], entry="different")
CHANGED = diverges(["RS010"], entry="different", product="different")
OURS = rejects("RS014", entry="equal", after="unknown")


def case(args, y, right=None, audit=RS010, preserve=None, w=(1, 2), kept=None, f=None):
    """y, w: without the tool; right, kept: preserved."""
    f = words("f", *f) if f else {}
    return Case(args, {**words("y", *y), **words("w", *w), **f}, {**words("y", *(right or y)), **words("w", *(kept or w)), **f},
                {BLOCK: audit}, {BLOCK: preserve} if preserve else None, replays=[BLOCK])


MADE = (36, 79)
CASES = [
    case("gather", MADE, f=MADE, audit=UNKNOWN),
    case("gather same", MADE, f=MADE, audit=UNKNOWN),
    case("gather reused", MADE, f=MADE),
    case("gather same reused", MADE, f=MADE, audit=rejects("RS014", entry="unknown", after="unknown"), preserve=OURS),
    case("gather written", (324, 79), MADE, f=MADE, w=(9, 2)),
    case("gather written copied", (54, 13), (6, 13), f=(6, 13), w=(9, 2)),
    # What is written, too, is not known: left as the program has made it.
    case("gather inside", MADE, f=MADE, preserve=OURS),
    case("gather inside written", (324, 79), MADE, f=MADE, w=(9, 2), preserve=OURS),
    case("gather inside same reused", MADE, f=MADE, preserve=OURS),
    # Where the allocator tells what it gives out, all of it is known.
    case("gather told", MADE, f=MADE, audit=match()),
    case("gather same told", MADE, f=MADE, audit=match()),
    case("gather reused told", MADE, f=MADE, audit=match()),
    case("gather same reused told", MADE, f=MADE, audit=match()),
    case("gather written told", (324, 79), MADE, f=MADE, w=(9, 2), audit=CHANGED),
    case("gather inside told", MADE, f=MADE, audit=match()),
    case("gather inside written told", (324, 79), MADE, f=MADE, w=(9, 2), audit=CHANGED),
    case("gather inside same reused told", MADE, f=MADE, audit=match()),
    # State that is looked up and changed through the same memory is put back as ever ...
    case("table", (54, 103), (6, 13), w=(73, 137), kept=(9, 17), audit=diverges(["RS010", "RS013"], after="different")),
    # ... and what is written at once, where the forward wrote it, if it has a name.
    case("queue", (54, 79), (6, 13), w=(54, 79), kept=(6, 13), preserve=OURS,
         audit=diverges(["RS014"], entry="unknown", product="different", after="unknown")),
    case("queue named", (54, 79), (6, 13), w=(54, 79), kept=(9, 13), preserve=match(),
         audit=diverges(["RS010", "RS013"], after="different")),
]

check_cases("hazards_pool", CASES, sys.argv[1:])
sys.exit(plan())
