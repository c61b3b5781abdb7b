#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Kernels without PTX, as in NVIDIA's libraries, and the global variables of their module.

The image of tests/clients/cubin.c is machine code for the device, and PTX for an older one that the simulated device
runs in its place; the tool takes the machine code for what runs, as a real device would. Every kernel counts as a
reader and writer of the variables that the machine code names. What is compared is in hazards_rig.py.
"""
import sys

from hazards_rig import Case, Run, check_cases, check_record, diverges, match, ok, plan, rejects, twice

LAYER = ("layer", 0)


def unknown(code, product="unknown"):
    return rejects(code, entry="unknown", product=product, after="unknown")


def either(args, verdict, **words):
    """The same in both modes: nothing can be put back where nobody can tell what is state."""
    return Case(args, words, words, {LAYER: verdict}, {LAYER: verdict})


CASES = [
    # The replay counts once more. That its product is right must not make it a match.
    either("tick", unknown("RS014", "equal"), y=42, counter=2),
    either("take", unknown("RS014"), y=1, counter=2),
    # Named by the program, the variable is state: seen, and put back.
    Case("tick declared", dict(y=42, counter=2), dict(y=42, counter=1), {LAYER: diverges(twice("counter", "tick"))}),
    Case("take declared", dict(y=1, counter=2), dict(y=0, counter=1),
         {LAYER: diverges(twice("counter", "take"), product="unknown")}),
    # Nothing changed: that a kernel may write a variable is no reason to reject it.
    either("twice", match(), y=42, counter=0),
    either("twice alone", match(), y=42, counter=0),
    # A variable that the driver does not find, one without a symbol, an image that cannot be read.
    either("twice static", unknown("RS060"), y=42, counter=0),
    either("twice nameless", unknown("RS060"), y=42, counter=0),
    either("twice unread", unknown("RS060"), y=42, counter=0),
    # A library has its own variables in each context.
    Case("contexts", dict(first=0, second=0, third=0), dict(first=0, second=0, third=0), {}, {},
         [("first", 0), ("second", 0), ("third", 0)]),
    # A module gets the handle of one that was unloaded, of which less was known.
    either("reload", unknown("RS014", "equal"), y=2),
    either("twice malloc", unknown("RS050"), y=42, counter=0),
]


def layout(args, verdict, what):
    """A driver before 12.4 does not say where parameters are."""
    silent = ",".join(f"cuFuncGetParamInfo:{n}=801" for n in range(1, 20))
    run = Run("cubin", args, "audit", SIMCUDA_FAIL=silent)
    bad = [b for r in run.records for b in check_record(verdict, r, [])] if run.records else ["no record", run.stderr]
    ok(not bad, what, *bad)


check_cases("cubin", CASES)
layout("twice alone", match(), "parameters from the image, when the driver does not tell")
layout("twice unread", unknown("RS050"), "from nowhere: an unknown writer")
sys.exit(plan())
