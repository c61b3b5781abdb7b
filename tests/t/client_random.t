#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random programs through the real library: tests/clients/client_random.c, whose model says what every byte must be.

Each program runs without the tool, audited, preserved, preserved under the contract that its audit has learned, and under one in
which every segment has another option (`options`); and wanted is: no byte differs from the model; an audit prints what is printed without the tool, tells every replay whose product
or state differ, and tells nothing of one where nothing does; preserving makes every replay a match. A program that fails is
run alone and without one call after the other, and what is left of it is printed.

    client_random.t [MODE SCHEDULE FIRST N]   N programs from number FIRST on, by hand; MODE: none audit preserve contract options,
    preserve:NAME=VALUE also sets REPLAYSHIM_NAME

RS_SEEDS: how many programs (40) for each kind of run.
"""
import collections
import json
import os
import subprocess
import sys
import tempfile
import zlib

from hazards_rig import BUILD, SHIM, lines, ok, plan

CLIENT = os.path.join(BUILD, "clients", "client_random")
CTL = os.path.join(BUILD, "replayctl")
SCALE = int(os.environ.get("RS_TEST_SCALE") or 1)
PROGRAMS = max(2, int(os.environ.get("RS_SEEDS") or 40) // SCALE)
CALLS = [*range(2000, 2072), *range(1001, 1030)]  # as the client numbers them


class Run:
    def __init__(self, mode, schedule, args, contract=None):
        mode, *settings = mode.split(":")
        with tempfile.TemporaryDirectory() as out:
            env = {k: v for k, v in os.environ.items() if not k.startswith(("REPLAYSHIM_", "SIMCUDA_"))}
            env.update(LD_LIBRARY_PATH=os.path.join(BUILD, "simcuda"), SIMCUDA_SCHED=schedule, SIMCUDA_GRANULARITY="64K")
            if mode != "none":
                env.update(LD_PRELOAD=f"{os.environ.get('RS_SAN_PRELOAD', '')} {SHIM}".strip(), REPLAYSHIM_OUT=out,
                           REPLAYSHIM_QUIET="1", REPLAYSHIM_MODE="audit" if mode == "learn" else mode)
            env.update(("REPLAYSHIM_" + s).split("=") for s in settings)
            if mode == "learn":
                env.update(REPLAYSHIM_LEARN="1")
            elif contract:
                env.update(REPLAYSHIM_CONTRACT=contract)
            args = args + (["--preserve"] if mode == "preserve" else [])
            done = subprocess.run([CLIENT, *args], env=env, capture_output=True, text=True, timeout=3600)
            self.status, self.stdout, self.stderr = done.returncode, done.stdout, done.stderr
            self.records = lines(os.path.join(out, "records.jsonl"))
            self.findings = [e for e in lines(os.path.join(out, "events.jsonl")) if e.get("t") == "finding"]
            if mode == "learn":
                subprocess.run([CTL, "contract", "--force", "-o", contract, out], env=env, check=False, stderr=subprocess.DEVNULL)


def key(record):
    return record["step"], record["segment"], record["invocation"], record["replay"]


def is_vague(program):
    """Nobody knows how far its kernels reach within a pool: what is state cannot be told, but no match may be none."""
    return program % 4 == 3


def judge_replay(mode, told, record):
    """What is wrong with the record of a replay, of which the model has told this."""
    matched = record["outcome"] == "match"
    if is_vague(record["step"] // 100):
        return ""
    if mode.startswith("preserve"):
        return "" if matched else "no match"
    if matched and ("0" in told["after"] or told["whole"] == "1" and told["product"] == "0"):
        return "a match that is none"
    return "false alarm" if not matched and told["entry"] == told["after"] == "1" else ""


def judge(mode, run):
    """{program: what is wrong}; 0: nobody's."""
    bad = collections.defaultdict(list)
    records = {key(r): r for r in run.records}
    replays = 0
    if run.status:
        bad[0].append(f"status {run.status}: {run.stderr[-300:]}")
    for line in run.stdout.splitlines():
        what, *rest = line.split()
        if what == "made" and rest[4] == "same=0" and mode != "none":
            record = records.get((int(rest[0]), rest[1], int(rest[2]), int(rest[3])))
            if record and record["outcome"] == "match":
                bad[int(rest[0]) // 100] += [f"a match that is none: {line}", f"  {record}"]
        if what == "bad" and (mode in ("none", "audit") or not is_vague(int(rest[0]) // 100)):
            bad[int(rest[0]) // 100].append(line)
        if what != "replay" or mode == "none":
            continue
        replays += 1
        step, segment, invocation, number, *told = rest
        record = records.get((int(step), segment, int(invocation), int(number)))
        wrong = judge_replay(mode, dict(t.split("=") for t in told), record) if record else "no record"
        if wrong:
            bad[int(step) // 100] += [f"{wrong}: {line}", *([f"  {record}"] if record else [])]
            bad[int(step) // 100] += [f"  {f}" for f in run.findings if record and key(f) == key(record)][:4]
    if mode != "none" and not run.status and replays != len(run.records):
        bad[0].append(f"{len(run.records)} records of {replays} replays")
    return bad


OPTIONS = [{"option": o, "restore": r} for o in ("undo", "whole", "regions", "pages") for r in ("copy", "swap", "remap")]


def edit(path):
    """Any option for any segment."""
    with open(path) as f:
        contract = json.load(f)
    for s in contract["segments"]:
        s["preserve"] = OPTIONS[zlib.crc32(s["name"].encode()) % len(OPTIONS)]
    with open(path, "w") as f:
        json.dump(contract, f)


def attempt(mode, schedule, args):
    """A run of each kind that the mode needs: what is wrong, and how many replays were judged."""
    if mode in ("contract", "options"):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "contract.json")
            Run("learn", schedule, args + ["--flat"], path)
            if not os.path.exists(path):
                return {0: ["nothing was learned"]} if "--drop" not in str(args) else {}, None
            if mode == "options":
                edit(path)
            run = Run("preserve", schedule, args + ["--flat"], path)
            return judge("preserve", run), run
    run = Run(mode, schedule, args)
    bad = judge(mode, run)
    if mode == "audit":
        plain = Run("none", schedule, args)
        if (plain.stdout, plain.status) != (run.stdout, run.status):
            bad[0].append("the audit changed what is printed")
    return bad, run


def shrink(mode, schedule, program):
    """The program by itself, without all calls that are not needed for it to fail; or None."""
    def fails(drop):
        text = ",".join(map(str, sorted(drop)))
        return attempt(mode, schedule, [f"--seed={program}", f"--drop={text}"])[0]

    dropped, size = set(), 24
    if not fails(dropped):
        return [f"program {program} does not fail by itself"]
    while size:
        left = [c for c in CALLS if c not in dropped]
        for i in range(0, len(left), size):
            if fails(dropped | set(left[i:i + size])):
                dropped |= set(left[i:i + size])
        size //= 2
    text = ",".join(map(str, sorted(dropped)))
    run = Run("preserve" if mode in ("contract", "options") else mode, schedule, [f"--seed={program}", f"--drop={text}", "--list"])
    wrong = [w for ws in fails(dropped).values() for w in ws]
    return [f"--seed={program} --drop={text}", *wrong[:8], *run.stderr.splitlines()[:60]]


def check(mode, schedule, first, n):
    bad, run = attempt(mode, schedule, [f"--seed={first}", f"--programs={n}"])
    outcomes = collections.Counter(r["outcome"] for r in run.records) if run else {}
    details = [f"program {p}: {w}" for p, ws in sorted(bad.items())[:6] for w in ws[:4]]
    worst = min((p for p in bad if p), default=None)
    if worst:
        details += shrink(mode, schedule, worst)
    ok(not bad, f"{mode}, {schedule}: programs {first} to {first + n - 1}, {dict(outcomes)}", *details)
    return outcomes


def main():
    if len(sys.argv) > 4:
        check(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
        return plan()
    n = PROGRAMS
    for schedule in ("eager", "lazy", "random:1"):
        check("none", schedule, 1, n)
    audited = collections.Counter()
    for i, schedule in enumerate(("eager", "lazy", "random:2")):
        audited += check("audit", schedule, 1 + i * n, max(1, n // 2))
    preserved = sum((check("preserve", schedule, 1 + i * n, n)
                     for i, schedule in enumerate(("eager", "lazy", "random:3"))), collections.Counter())
    check("preserve:SAMPLE=1", "random:5", 1 + 3 * n, max(1, n // 4))
    check("contract", "random:4", 1, max(1, n // 2))
    check("options", "random:5", 1, n)
    ok(audited["divergence"] > n and audited["match"] > n // 4 and preserved["match"] > 10 * n,
       "the programs are no empty ones", audited, preserved)
    return plan()


sys.exit(main())
