# SPDX-License-Identifier: MIT
"""What hazards.t and hazards2.t have in common: a case, its runs, and what is compared.

Every case runs without the tool, under audit and preserved, on one stream and on two; eagerly and lazily in a process
of its own, and under RS_SEEDS (200) random schedules, one a step, in one process. Expected everywhere: the same words.
Without the tool they are the faulty ones (so that no case can pass by being harmless); an audit prints the same bytes
and gives every replay its verdict, with just the codes, states and writers that the case names; preserving gives the
right words, or a verdict that is no match.
"""
import collections
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

BUILD = os.environ.get("RS_BUILD") or os.path.join(os.environ.get("RS_TOP", "."), "build")
SHIM = os.path.join(BUILD, "libreplayshim.so")
SEEDS = int(os.environ.get("RS_SEEDS") or ("10" if os.environ.get("RS_SAN") else "200"))
FRESH = ["eager", "lazy"]
SEEDED = {}  # the environment of the runs under random schedules
MODES = ["none", "audit", "preserve"]

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


def plan():
    print(f"1..{count}")
    return failed != 0


def words(name, *values):
    return {f"{name}.{i}": v for i, v in enumerate(values)}


class Verdict:
    """outcome; codes: {code: None or [(state, writer)]}, just these; fields: entry, product, after, as far as told."""

    def __init__(self, outcome, codes=(), **fields):
        self.outcome, self.fields = outcome, fields
        self.codes = codes if isinstance(codes, dict) else dict.fromkeys(codes)


def match(*notes):
    return Verdict("match", notes, entry="equal", product="equal", after="equal")


def rejects(*codes, **fields):
    return Verdict("rejection", codes, **fields)


def diverges(codes, **fields):
    return Verdict("divergence", codes, **fields)


def twice(state, writer):
    """State that the replay reads after it was written again, and writes once more."""
    return {"RS010": [(state, writer)], "RS013": [(state, writer)]}


class Case:
    """One command line and what must come of it.

    faulty, right: the words without the tool and preserved. audit, preserve: {(segment, invocation): Verdict}; what is
    not named there must match without a code. replays: what is replayed, in any order.
    """

    def __init__(self, args, faulty, right, audit, preserve=None, replays=None):
        self.args, self.faulty, self.right = args, faulty, right
        self.verdicts = {"audit": audit, "preserve": preserve or {}}
        self.replays = sorted(audit) if replays is None else sorted(replays)


def lines(path):
    try:
        with open(path) as f:
            return [json.loads(line) for line in f]
    except FileNotFoundError:
        return []


def key(record):
    return record["segment"], record["invocation"]


class Run:
    """words: {step: {name: value}}; without seeds there is one step, whose number is that of the records' last. stats: its last."""

    def __init__(self, client, args, mode, schedule="eager", **environment):
        with tempfile.TemporaryDirectory() as out:
            env = {k: v for k, v in os.environ.items() if not k.startswith(("REPLAYSHIM_", "SIMCUDA_"))}
            env.update(LD_LIBRARY_PATH=os.path.join(BUILD, "simcuda"), SIMCUDA_SCHED=schedule, **environment)
            if mode != "none":
                env.update(LD_PRELOAD=f"{os.environ.get('RS_SAN_PRELOAD', '')} {SHIM}".strip(),
                           REPLAYSHIM_MODE=mode, REPLAYSHIM_OUT=out, REPLAYSHIM_QUIET="1")
            done = subprocess.run([os.path.join(BUILD, "clients", client)] + args.split(), env=env, capture_output=True,
                                  text=True, timeout=150)
            self.status, self.stdout, self.stderr = done.returncode, done.stdout, done.stderr
            self.records = lines(os.path.join(out, "records.jsonl"))
            events = lines(os.path.join(out, "events.jsonl"))
            self.findings = [e for e in events if e.get("t") == "finding"]
            self.stats = ([{}] + [e for e in events if e.get("t") == "stats"])[-1]
        self.steps = collections.defaultdict(dict)
        for line in self.stdout.splitlines():
            step, _, rest = line.rpartition(":")
            name, value = rest.split("=")
            self.steps[int(step or 1)][name] = int(value)
        self.words = self.steps[max(self.steps)] if self.steps else {}


def each_step(client, args, mode):
    """(where, words, records, findings) of every step: eagerly, lazily, and in SEEDS schedules."""
    for schedule in FRESH + ([f"seeds={SEEDS}"] if SEEDS else []):
        seeds = schedule.startswith("seeds")
        run = Run(client, f"{args} --{schedule}" if seeds else args, mode, "eager" if seeds else schedule,
                  **SEEDED if seeds else {})
        for step in range(1, SEEDS + 1) if seeds else [1]:
            yield (f"{mode}, {schedule}, step {step}, status {run.status}", run.steps.get(step, {}),
                   [r for r in run.records if r["step"] == step], [f for f in run.findings if f["step"] == step])


def show(record):
    return "step {step} {segment}#{invocation} {outcome} entry {entry} product {product} after {after} {codes}".format(
        **record)


def explain(verdict, code, found):
    """What is wrong with the findings of one code of one replay: states and writers, wanted against found."""
    wanted = verdict.codes[code] or []
    missing = [w for w in wanted if not any(f[0] == w[0] and f[1].startswith(w[1]) for f in found)]
    extra = [f for f in found if wanted and not any(f[0] == w[0] and f[1].startswith(w[1]) for w in wanted)]
    return [f"{code} names {found}, not {wanted}"] if missing or extra else []


def check_record(verdict, record, findings):
    fields = {k: record[k] for k in verdict.fields}
    if record["outcome"] != verdict.outcome or fields != verdict.fields:
        return [f"{verdict.outcome} {verdict.fields} wanted: {show(record)}"]
    if sorted(record["codes"]) != sorted(verdict.codes):
        return [f"codes {sorted(verdict.codes)} wanted: {show(record)}"]
    bad = []
    for code in verdict.codes:
        bad += explain(verdict, code, [(f["state"]["name"], f["writer"]["name"]) for f in findings
                                       if f["code"] == code and "state" in f])
    return bad


def check_records(case, mode, run, steps):
    findings = collections.defaultdict(list)
    for f in run.findings:
        findings[f["step"], f["replay"], key(f)].append(f)
    bad, replays = [], collections.defaultdict(list)
    for r in run.records:
        replays[r["step"]].append(key(r))
        verdict = case.verdicts[mode].get(key(r)) or match()
        bad += check_record(verdict, r, findings[r["step"], r["replay"], key(r)])
    for step in steps:
        if sorted(replays[step]) != case.replays:
            bad.append(f"step {step}: records of {replays[step]}, not of {case.replays}")
    return bad


def check_run(case, mode, run, want, steps):
    if run.status:
        return [f"status {run.status}", run.stderr[-300:]]
    bad = [f"step {s}: {run.steps[s]}" for s in steps if run.steps[s] != want]
    return bad + (check_records(case, mode, run, steps) if mode != "none" else [])


def check_case(client, case, streams):
    """{mode: what is wrong}"""
    wrong = {m: [] for m in MODES}
    args = case.args + streams
    for schedule in FRESH + ([f"seeds={SEEDS}"] if SEEDS else []):
        seeds = schedule.startswith("seeds")
        steps = range(1, SEEDS + 1) if seeds else [1]
        runs = {m: Run(client, f"{args} --{schedule}" if seeds else args, m, "eager" if seeds else schedule,
                       **SEEDED if seeds else {}) for m in MODES}
        for mode, run in runs.items():
            want = case.right if mode == "preserve" else case.faulty
            wrong[mode] += [f"{schedule}: {b}" for b in check_run(case, mode, run, want, steps)]
        if runs["audit"].stdout != runs["none"].stdout:
            wrong["audit"].append(f"{schedule}: the audit changed what is printed")
    return wrong


def check_cases(client, cases, only=()):
    jobs = [(c, s) for c in cases for s in ("", " --streams") if not only or c.args in only]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for (case, streams), wrong in zip(jobs, pool.map(lambda j: check_case(client, *j), jobs)):
            args = case.args + streams
            itself = "goes wrong by itself as reported" if case.faulty != case.right else "its words without the tool"
            ok(not wrong["none"], f"{args}: {itself}", f"wanted {case.faulty}", *wrong["none"][:6])
            ok(not wrong["audit"], f"{args}: audited, unchanged and explained", *wrong["audit"][:6])
            ok(not wrong["preserve"], f"{args}: preserved, right or not vouched for", f"wanted {case.right}",
               *wrong["preserve"][:6])
