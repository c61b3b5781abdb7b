#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Contracts end to end: learned, kept, contradicted, edited, refused, compared, verified.

Every hazard case is run under the contract that its own audit has learned, and under each option that can be put into
that contract (with RS_TEST_SCALE=N every N-th), by remapping with its state in mappings: words and verdicts must be those of
preserving without one. A contract
that was tampered with may cost a match, never give a wrong one. Documents are held against planner/contract.schema.json
by a small validator.
"""
import copy
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import hazards_rig
from hazards_rig import BUILD, Run, check_run, lines, ok, plan, show

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CTL = os.path.join(BUILD, "replayctl")
SCALE = int(os.environ.get("RS_TEST_SCALE") or 1)
SEEDS = max(2, hazards_rig.SEEDS // 20)
OPTIONS = [(o, r) for o in ("undo", "whole", "regions", "pages") for r in ("copy", "swap")]


# --- JSON Schema, as far as it is used ---

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool}


def is_type(v, name):
    if name == "integer":
        return isinstance(v, int) and not isinstance(v, bool)
    if name == "number":
        return isinstance(v, (int, float)) and not isinstance(v, bool)
    return isinstance(v, TYPES[name])


KNOWN = {"$schema", "$defs", "title", "description", "$ref", "type", "const", "enum", "pattern", "minLength", "minimum",
         "required", "properties", "items", "minItems", "maxItems"}


def violations(v, schema, root, at="$"):
    assert set(schema) <= KNOWN, f"{set(schema) - KNOWN} is not understood"
    if "$ref" in schema:
        yield from violations(v, root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root, at)
    if "type" in schema and not is_type(v, schema["type"]):
        yield f"{at}: not of type {schema['type']}"
        return
    if "const" in schema and v != schema["const"] or "enum" in schema and v not in schema["enum"]:
        yield f"{at}: {v!r} is not allowed"
    if isinstance(v, str):
        if not re.search(schema.get("pattern", ""), v) or len(v) < schema.get("minLength", 0):
            yield f"{at}: {v!r}"
    elif isinstance(v, list):
        if not schema.get("minItems", 0) <= len(v) <= schema.get("maxItems", len(v)):
            yield f"{at}: {len(v)} elements"
        for i, e in enumerate(v):
            yield from violations(e, schema.get("items", {}), root, f"{at}[{i}]")
    elif isinstance(v, dict):
        yield from (f"{at}: no {k}" for k in schema.get("required", []) if k not in v)
        for k, s in schema.get("properties", {}).items():
            if k in v:
                yield from violations(v[k], s, root, f"{at}.{k}")
    elif v is not None and "minimum" in schema and v < schema["minimum"]:
        yield f"{at}: {v} is too small"


with open(os.path.join(TOP, "planner", "contract.schema.json")) as schema_file:
    SCHEMA = json.load(schema_file)


def check_validator(contract):
    """A validator that accepts everything would prove nothing."""
    def broken(change):
        c = copy.deepcopy(contract)
        change(c)
        return list(violations(c, SCHEMA, SCHEMA))

    changes = [lambda c: c.pop("tool"), lambda c: c.update(contract_version=2),
               lambda c: c["program"].update(fingerprint="12"), lambda c: c["segments"][0].update(verdict="fine"),
               lambda c: c["segments"][0]["state"][0].update(offset=-1),
               lambda c: c["segments"][0]["state"][0]["windows"].append([1, 2, 3]),
               lambda c: c["segments"][0].update(complete=1), lambda c: c["segments"].append(7)]
    missed = [i for i, change in enumerate(changes) if not broken(change)]
    ok(not missed, "the schema refuses what is wrong", missed)


# --- running ---

def environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("REPLAYSHIM_", "SIMCUDA_"))}
    return dict(env, LD_LIBRARY_PATH=os.path.join(BUILD, "simcuda"), SIMCUDA_SCHED="eager", REPLAYSHIM_QUIET="1",
                **more)


def ctl(*args, **more):
    return subprocess.run([CTL, *args], env=environment(**more), capture_output=True, text=True, timeout=150)


def client(name):
    return os.path.join(BUILD, "clients", name)


def write(path, contract):
    with open(path, "w") as f:
        json.dump(contract, f, indent=1)


def read(path):
    with open(path) as f:
        return json.load(f)


def preserved(command, args, path, schedule="eager", **more):
    return Run(command, args, "preserve", schedule, REPLAYSHIM_CONTRACT=path, **more)


def learn(directory, command, args):
    """The contract that an audit of the command learns, and its path."""
    out = tempfile.mkdtemp(dir=directory)
    path = os.path.join(out, "contract.json")
    done = ctl("audit", "--out", os.path.join(out, "data"), "-o", path, "--", client(command), *args.split())
    if not os.path.exists(path):
        raise RuntimeError(f"{command} {args}: {done.returncode} {done.stderr[-600:]}")
    return read(path), path


def cases_of(name):
    """The cases of another test, without its run."""
    path = os.path.join(TOP, "tests", "t", name)
    with open(path) as f:
        text = f.read().replace("sys.exit(main())", "")
    module = {"__name__": name, "__file__": path}
    exec(compile(text, path, "exec"), module)  # pylint: disable=exec-used
    return module


def all_cases():
    for name in ("hazards.t", "hazards2.t", "hazards_memory.t", "hazards_graph.t"):
        module = cases_of(name)
        for case in module["CASES"]:
            yield ("hazards3" if case.args.startswith(module.get("HAZARDS3", "?")) else name[:-2]), case


# --- hazard cases under contracts ---

def with_option(contract, option, restore):
    c = copy.deepcopy(contract)
    for s in c["segments"]:
        s["preserve"] = {"option": option, "restore": restore}
    return c


def check_case(directory, number, command, case, streams):
    """{what: what is wrong}; number: which of all cases, so that each option has its turn where not all are tried."""
    args = case.args + streams
    if not case.replays and not case.verdicts["audit"]:
        return None
    contract, path = learn(directory, command, args)
    wrong = {"schema": list(violations(contract, SCHEMA, SCHEMA)), "learned": [], "options": []}
    for schedule in hazards_rig.FRESH:
        run = preserved(command, args, path, schedule)
        wrong["learned"] += [f"{schedule}: {b}" for b in check_run(case, "preserve", run, case.right, [1])]
    run = preserved(command, f"{args} --seeds={SEEDS}", path)
    wrong["learned"] += [f"seeds: {b}" for b in
                         check_run(case, "preserve", run, case.right, range(1, SEEDS + 1))]
    for option, restore in (OPTIONS if streams else OPTIONS[::3])[number % SCALE::SCALE]:
        edited = os.path.join(os.path.dirname(path), f"{option}-{restore}.json")
        write(edited, with_option(contract, option, restore))
        run = preserved(command, f"{args} --seeds={SEEDS}", edited)
        wrong["options"] += [f"{option}, {restore}: {b}" for b in
                             check_run(case, "preserve", run, case.right, range(1, SEEDS + 1))]
    return wrong


# Cases whose point is memory that a window does not read first, or does not touch: where all is read first (--mapped), they are
# others.
NEVER_MAPPED = ("x1", "x1 declared", "x2", "x2 declared", "x3 inside", "x3 inside named", "c21", "c21 3", "c23 stepped",
                "streams free")
# Those in which a replay must be shown state by remapping, among others.
REMAPPED = ("c01", "c02", "c05", "c06", "c09 append", "c10 210", "c12", "c13", "c14", "c15", "c16", "c18", "c19", "c22",
            "c26", "x3", "pair", "writer memset", "over")


def check_mapped(directory, number, command, case):
    """(what is wrong, remaps) with state in mappings of its own, written to as wholes; on one stream or on two."""
    args, option = case.args + (" --mapped", " --mapped --streams")[number % 2], ("undo", "whole")[number // 2 % 2]
    contract, path = learn(directory, command, args)
    write(path, with_option(contract, option, "remap"))
    run = preserved(command, f"{args} --seeds={SEEDS}", path, REPLAYSHIM_VERSIONS="buffers")
    bad = check_run(case, "preserve", run, case.right, range(1, SEEDS + 1))
    return [f"{args}: {option}: {b}" for b in bad], run.stats.get("remaps", 0)


def check_remapping(directory, only):
    jobs = [(c, case) for c, case in all_cases()
            if case.replays and case.args not in NEVER_MAPPED and (not only or case.args in only)]
    jobs = [(n, *job) for n, job in enumerate(jobs)][::SCALE]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        done = list(pool.map(lambda job: check_mapped(directory, *job), jobs))
    bad = [b for found, _ in done for b in found]
    ok(not bad, f"{len(jobs)} runs of cases on mapped memory, restored by remapping", *bad[:8])
    bad = [job[2].args for job, (_, remaps) in zip(jobs, done) if not remaps and job[2].args in REMAPPED]
    ok(not bad, "and that was done where it applies", *bad)


def check_cases(directory, only):
    jobs = [(n, c, s) for n, c in all_cases() for s in ("", " --streams") if not only or c.args in only]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        done = pool.map(lambda n: check_case(directory, n, *jobs[n]), range(len(jobs)))
        for (name, case, streams), wrong in zip(jobs, done):
            for what, bad in (wrong or {}).items():
                ok(not bad, f"{name} {case.args}{streams}: {what}", *bad[:6])


# --- contracts that are not the program's ---

def judge(case, run, code=None):
    """What is wrong: wrong words that were vouched for, a match where `code` must have rejected, no such code."""
    bad = []
    if run.status or not run.records:
        bad.append(f"status {run.status}, {len(run.records)} records, {run.stderr[-300:]}")
    if run.words != case.right and all(r["outcome"] == "match" for r in run.records):
        bad.append(f"matches, with {run.words}")
    if code and not any(code in r["codes"] for r in run.records):
        bad += [f"no {code}", *map(show, run.records)]
    bad += [f"vouched for: {show(r)}" for r in run.records
            if code in r["codes"] and r["outcome"] == "match"]
    return bad


def check_other_program(directory, cases):
    bad = []
    for one, other in (("c01", "c26"), ("c26", "c01"), ("c01", "c05"), ("c09", "c06")):
        path = learn(directory, "hazards", one)[1]
        run = preserved("hazards", other, path)
        bad += [f"{one} for {other}: {b}" for b in judge(cases[other], run, "RS081")]
        if any(r["outcome"] == "match" for r in run.records) or run.words != cases[other].right:
            bad += [f"{one} for {other}: {run.words}", *map(show, run.records)]
    ok(not bad, "a contract of another program is rejected, and all is preserved the same", *bad[:8])


def check_aliases(directory, cases):
    """Under the contract of the one program the other one shares other memory: named, and never a match."""
    bad = []
    for one, other, shared in (("c26", "c26 apart", False), ("c26 apart", "c26", True)):
        contract, path = learn(directory, "hazards", one)
        run = preserved("hazards", other, path)
        bad += judge(cases[other], run, "RS084")
        found = [f for f in run.findings if f["code"] == "RS084"]
        if run.words != cases[other].right or [r["outcome"] for r in run.records] != ["rejection"] or len(found) != 1:
            bad += [f"{one} for {other}: {run.words}", *map(show, run.records), *found]
        elif found[0]["shared"] != shared or [p["kernel"] for p in found[0]["places"]] != ["add", "mul"]:
            bad += [f"{one} for {other}", found[0]]
        old = copy.deepcopy(contract)
        for s in old["segments"]:
            s["aliases"] = [[a["call"], a["slot"], a["piece"], a["other"]["slot"], a["other"]["piece"], a["bytes"]]
                            for a in s["aliases"] if a["call"] == a["other"]["call"]]
            del s["aliases_complete"]
        write(path, old)
        bad += check_run(cases[one], "preserve", preserved("hazards", one, path), cases[one].right, [1])
    ok(not bad, "aliases that are not there, or that nobody knows, are rejected; contracts of before know none", *bad[:8])


def tampered(contract):
    """(what, contract, code that must come)"""
    for i, segment in enumerate(contract["segments"]):
        for k, alias in enumerate(segment["aliases"]):
            c = copy.deepcopy(contract)
            del c["segments"][i]["aliases"][k]
            yield f"alias {k} removed", c, "RS084"
            c = copy.deepcopy(contract)
            c["segments"][i]["aliases"][k].update(forwards=0)
            yield f"alias {k} sometimes", c, None
        for k, state in enumerate(segment["state"]):
            if state["role"] != "state":
                continue
            name = state.get("region") or f"call {state['call']} slot {state['slot']}"
            c = copy.deepcopy(contract)
            del c["segments"][i]["state"][k]
            yield f"{name} removed", c, "RS080"
            c = copy.deepcopy(contract)
            c["segments"][i]["state"][k]["role"] = "product"
            # what the program itself has named stays what it named it
            yield f"{name} a product", c, None if "region" in state else "RS080"
            if state["windows"]:
                c = with_option(contract, "regions", "copy")
                c["segments"][i]["state"][k]["windows"] = []
                yield f"windows of {name} removed", c, None
                c = with_option(contract, "free", "copy")
                yield f"{name} never overwritten", c, "RS080"


def check_tampered(directory, cases):
    bad, n, exact = [], 0, []
    for args in ("c01", "c02", "c05", "c06", "c09", "c14", "c26", "c26 shifted", "x2 declared"):
        contract, path = learn(directory, "hazards", args)
        for what, changed, code in tampered(contract):
            write(path, changed)
            run = preserved("hazards", args, path)
            n += 1
            bad += [f"{args}: {what}: {b}" for b in judge(cases[args], run, code)]
            if run.words != cases[args].right:
                exact.append(f"{args}: {what}: {run.words} {[show(r) for r in run.records]}")
            if what.startswith("windows") and not all(r["outcome"] == "match" for r in run.records):
                exact.append(f"{args}: {what}: not as safe as without")
    ok(n > 30 and not bad, f"{n} contracts that were tampered with: never a wrong match", *bad[:8])
    ok(not exact, "and the bytes are right all the same", *exact[:8])


def check_incomplete(directory, cases):
    contract, path = learn(directory, "hazards", "c01")
    contract["segments"][0]["complete"] = False
    contract["segments"][0]["calls"] = []
    contract["segments"][0]["state"] = []
    write(path, contract)
    bad = check_run(cases["c01"], "preserve", preserved("hazards", "c01", path), cases["c01"].right, [1])
    ok(not bad, "an incomplete segment is preserved as without a contract", *bad)


def check_refused(directory, cases):
    contract, path = learn(directory, "hazards", "c01")
    good = json.dumps(contract, indent=1)
    no_offset = copy.deepcopy(contract)
    del no_offset["segments"][0]["state"][0]["offset"]
    texts = [(good.replace('"contract_version": 1', '"contract_version": 2'), ":2:22: contract_version is newer"),
             (good.replace('"contract_version": 1', '"contract_version": 0'), ":2:22: contract_version is older"),
             (good[:-1], "ends too early"), ("", "ends too early"),
             (json.dumps(no_offset, indent=1), "segments[0].state[0].offset is missing"),
             (None, "No such file")]
    for text, why in texts:
        bad = []
        refused = os.path.join(directory, "refused.json")
        if text is None:
            os.unlink(refused)
        else:
            with open(refused, "w") as f:
                f.write(text)
        out = tempfile.mkdtemp(dir=directory)
        run = ctl("run", "-o", out, "--", client("hazards"), "c01", REPLAYSHIM_CONTRACT=refused)
        if "S=50" not in run.stdout or run.returncode:
            bad.append(f"{run.returncode} {run.stdout}")
        if run.stderr.count("goes on without a contract") != 1 or why not in run.stderr or refused not in run.stderr:
            bad.append(run.stderr)
        data = os.path.join(out, os.listdir(out)[0])
        events = [e for e in lines(os.path.join(data, "events.jsonl")) if e["t"] == "contract"]
        if len(events) != 1 or events[0]["status"] != "refused" or why not in events[0]["text"]:
            bad.append(events)
        report = ctl("report", out)
        if report.returncode != 1 or "CANNOT TELL" not in report.stdout or "contract was refused" not in report.stdout:
            bad.append(report.stdout[:600])
        as_json = json.loads(ctl("report", "--format=json", out).stdout)
        if '"status": "refused"' not in json.dumps(as_json):
            bad.append("not in the report as JSON")
        verify = ctl("verify", "--contract", refused, "-o", out, "--", client("hazards"), "c01")
        if verify.returncode != 125 or why not in verify.stderr or verify.stdout:
            bad.append(f"verify: {verify.returncode} {verify.stderr}")
        ok(not bad, f"refused, and the run goes on: {why}", *bad)


# --- the commands ---

def check_audit(directory):
    path = os.path.join(directory, "audit.json")
    data = os.path.join(directory, "audit")
    command = ("--", client("hazards"), "c01")
    first = ctl("audit", "--out", data, "-o", path, *command)
    ok(first.returncode == 0 and os.path.exists(path), "audit -o FILE.json learns", first.stderr[-400:])
    before = open(path).read()
    second = ctl("audit", "--out", data, "--contract", path, *command)
    ok(second.returncode == 125 and "--force" in second.stderr and open(path).read() == before and
       second.stdout == "", "what is there is not overwritten, nor the command run", second.stderr)
    contract = json.loads(before)
    contract.update(note="kept")
    contract["program"].update(owner={"a": 1})
    contract["segments"][0].update(ticket=7)
    contract["segments"][0]["state"][0].update(comment="queue")
    contract["segments"][0]["preserve"].update(why="measured")
    write(path, contract)
    third = ctl("audit", "--out", data, "-o", path, "--force", *command)
    now = read(path)
    ok(third.returncode == 0 and now["note"] == "kept" and now["program"]["owner"] == {"a": 1} and
       now["segments"][0]["ticket"] == 7 and now["segments"][0]["state"][0]["comment"] == "queue" and
       now["segments"][0]["preserve"]["why"] == "measured", "--force: what is not known is kept", third.stderr[-300:])
    ok(not [f for f in os.listdir(directory) if f.startswith("audit.json.")], "nothing else is left beside it")
    unwritable = ctl("audit", "--out", data, "-o", os.path.join(directory, "no", "where.json"), *command)
    ok(unwritable.returncode == 125 and "where.json: No such file" in unwritable.stderr, "a contract that cannot be "
       "written is said before the command runs", unwritable.stderr[-300:])
    status = ctl("audit", "--out", data, "--contract", os.path.join(directory, "f.json"), "--", "sh", "-c", "exit 3")
    ok(status.returncode == 3, "the command's own failure comes first", status.returncode)


def check_contract(directory):
    data = os.path.join(directory, "learned")
    env = {"REPLAYSHIM_LEARN": "1"}
    for _ in range(2):
        ctl("run", "--mode=audit", "-o", data, "--", client("hazards"), "c01", **env)
    two = ctl("contract", data)
    contract = json.loads(two.stdout or "{}")
    ok(two.returncode == 0 and contract["segments"][0]["forwards"] == 4 and
       contract["segments"][0]["state"][0]["reads"] == 4 and not list(violations(contract, SCHEMA, SCHEMA)),
       "two processes of one program are merged", two.stderr, two.stdout[:300])
    ctl("run", "--mode=audit", "-o", data, "--", client("hazards"), "c26", **env)
    other = ctl("contract", data)
    ok(other.returncode == 3 and "different programs" in other.stderr and not other.stdout, "of two programs are not",
       other.stderr)
    none = os.path.join(directory, "none")
    ctl("run", "-o", none, "--", client("hazards"), "c01")
    nothing = ctl("contract", none)
    ok(nothing.returncode == 3 and "REPLAYSHIM_LEARN=1" in nothing.stderr, "a run that did not learn says so",
       nothing.stderr)
    ok(ctl("contract").returncode == 2 and ctl("contract", directory + "/nowhere").returncode == 3, "usage; unreadable")


def check_diff(directory):
    contract, path = learn(directory, "hazards", "c09")
    other = os.path.join(directory, "other.json")
    data = os.path.join(os.path.dirname(path), "data")
    same = ctl("diff", path, data)
    ok(same.returncode == 0 and same.stdout == "", "a contract and its run are equal", same.stdout, same.stderr)
    segment = contract["segments"][0]
    segment["state"][0]["role"] = "product"
    segment["state"][1]["windows"] = [[0, 1]]
    removed = segment["state"].pop()
    segment.update(verdict="not replayable", calls=["0x1"])
    segment["products"]["bytes"] += 1
    segment["aliases"] = [{"call": 0, "slot": 0, "piece": 0, "other": {"call": 1, "slot": 2, "piece": 0}, "bytes": 4,
                           "forwards": 1}]
    contract["segments"].append(dict(segment, name="new"))
    write(other, contract)
    text, as_json = ctl("diff", path, other), ctl("diff", "--json", path, other)
    kinds = {d["kind"] for d in json.loads(as_json.stdout)}
    ok([(d["what"], d["new"]["bytes"]) for d in json.loads(as_json.stdout) if d["kind"] == "alias added"] ==
       [("call 0 slot 0 piece 0 = call 1 slot 2 piece 0", 4)],
       "and places that have come to share memory", as_json.stdout[:600])
    ok(text.returncode == as_json.returncode == 1 and
       {"role", "windows", "state removed", "verdict", "calls", "size", "segment added", "alias added",
        "alias removed"} <= kinds and
       all(f": {k}" in text.stdout for k in kinds), "every kind of difference is told", kinds, text.stdout, removed)
    back = {d["kind"] for d in json.loads(ctl("diff", "--json", other, path).stdout)}
    ok({"state added", "segment removed"} <= back, "in both directions", back)
    ok(ctl("diff", path).returncode == 2 and ctl("diff", path, directory + "/none").returncode == 3,
       "usage; unreadable")


def check_verify(directory):
    path = learn(directory, "hazards", "c05")[1]
    out = os.path.join(directory, "verified")
    command = ("--", client("hazards"), "c05", "--steps=6")
    good = ctl("verify", "--contract", path, "-o", out, *command)
    ok(good.returncode == 0 and "12 match, 0 rejection, 0 divergence" in good.stderr, "verify: all match", good.stderr)
    few = ctl("verify", "--contract", path, "--steps", "2", "--segments", "1", "-o", out, *command)
    ok(few.returncode == 0 and "4 match" in few.stderr, "the first steps only", few.stderr)
    other = ctl("verify", "--contract", path, "-o", out, "--", client("hazards"), "c01")
    ok(other.returncode == 1 and "0 match, 2 rejection" in other.stderr and f"replayctl report {out}" in other.stderr and
       "RS081 error: the contract is of another program. learn the contract again" in other.stderr,
       "another program fails", other.stderr)
    none = ctl("verify", "--contract", path, "-o", out, "--", "true")
    ok(none.returncode == 1 and "nothing was verified" in none.stderr, "no data is no success", none.stderr)
    ok(ctl("verify", "-o", out, "--", "sh", "-c", "exit 9").returncode == 9 and
       ctl("verify", "--steps", "0", "--", "true").returncode == 125 and
       ctl("verify", "-o", out, "--", "/nowhere").returncode == 127, "exit statuses as those of audit")


def check_steps(directory):
    """Many allocations, threads, segments of every fate: the same numbers under its contract."""
    out = os.path.join(directory, "steps")
    path = os.path.join(directory, "steps.json")
    plain = subprocess.run([client("steps"), "--steps=5"], env=environment(), capture_output=True, text=True)
    learned = ctl("audit", "--out", out, "-o", path, "--", client("steps"), "--steps=5")
    run = ctl("run", "-o", out + ".run", "--", client("steps"), "--steps=5", REPLAYSHIM_CONTRACT=path)
    without = ctl("run", "-o", out + ".without", "--", client("steps"), "--steps=5")

    def outcomes(d):
        return [(r["segment"], r["outcome"], r["codes"]) for p in os.listdir(d)
                for r in lines(os.path.join(d, p, "records.jsonl"))]
    report = ctl("report", out + ".run").stdout
    ok(f"contract {path}   enforced" in report, "the report names the contract", report[:500])
    ok(learned.returncode == 0 and run.returncode == 0 and run.stdout == without.stdout and plain.returncode == 0 and
       outcomes(out + ".run") == outcomes(out + ".without"), "steps: as without a contract",
       learned.stderr[-300:], run.stdout, without.stdout, outcomes(out + ".run")[:6], outcomes(out + ".without")[:6])
    ok(not list(violations(read(path), SCHEMA, SCHEMA)), "and its contract is one")


def main():
    only = sys.argv[1:]
    cases = {c.args: c for _, c in all_cases()}
    with tempfile.TemporaryDirectory() as directory:
        if not only:
            check_validator(learn(directory, "hazards", "c01")[0])
            check_other_program(directory, cases)
            check_aliases(directory, cases)
            check_tampered(directory, cases)
            check_incomplete(directory, cases)
            check_refused(directory, cases)
            check_audit(directory)
            check_contract(directory)
            check_diff(directory)
            check_verify(directory)
            check_steps(directory)
        check_cases(directory, only)
        check_remapping(directory, only)
    return plan()


sys.exit(main())
