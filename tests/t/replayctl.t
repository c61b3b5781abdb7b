#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""replayctl from outside: reports against expected text, damaged and cut data, wrong arguments, exit statuses, signals.

The run directories are made here, as the library writes them; the library itself is a stand-in without effect, and the
commands under `audit` write the data. RS_GOLDEN=update rewrites tests/golden/.
"""
import csv
import io
import json
import os
import signal
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("RS_BUILD", os.path.join(TOP, "build"))
CTL = os.path.join(BUILD, "replayctl")
GOLDEN = os.path.join(TOP, "tests", "golden")
count = failed = 0


def ok(condition, what, detail=""):
    global count, failed
    count += 1
    print(f"{'ok' if condition else 'not ok'} {count} - {what}", flush=True)
    if not condition:
        failed += 1
        for line in str(detail).splitlines()[:40]:
            print("#   " + line)


def ctl(*args, env=None, **kw):
    full = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "CLICOLOR_FORCE", "LD_PRELOAD")}
    full.update(env or {})
    kw.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([CTL, *args], stderr=subprocess.PIPE, env=full, text=True, errors="surrogateescape",
                          stdin=subprocess.DEVNULL, timeout=60, **kw)


def both(p):
    return f"status {p.returncode}\n{p.stdout}{p.stderr}"


def begin(**kw):
    return {"v": 1, "t": "begin", "ts": 0, "pid": 4711, "rank": 0, "host": "gpu07", "tool": "0.1.0",
            "argv": ["python", "train.py", "--name", "a b"], "mode": "audit", "driver": 13000,
            "device": "Simulated device (H100 profile)", "opts": {"mode": {"value": "audit", "from": "env"}}, **kw}


def replay(step, segment, outcome="match", seen="equal", codes=(), **kw):
    return {"v": 1, "t": "replay", "step": step, "segment": segment, "invocation": 0, "replay": 1, "outcome": outcome,
            "entry": seen, "product": seen, "after": seen, "codes": list(codes), "ranges": 2, "bytes": 512,
            "ns": 12345, **kw}


def finding(code, step, segment, sev="error", state=None, writer=None, **kw):
    return {"v": 1, "t": "finding", "ts": 5, "code": code, "sev": sev, "segment": segment, "invocation": 0,
            "replay": 1, "step": step, "state": state or {}, "writer": writer or {}, "text": "", **kw}


def stats(steps, **kw):
    return {"v": 1, "t": "stats", "ts": 9, "steps": steps, "calls": {"cuLaunchKernel": 1204331, "cuMemcpyHtoD_v2": 12},
            "launches": 1204331, "opaque_launches": 5, "unknown_names": 0, "export_tables": 0, "lost": 0, **kw}


END = {"v": 1, "t": "end", "ts": 10, "status": "exit"}
MEAN = {"name": "bn1.running_mean", "serial": 12, "offset": 0, "bytes": 128, "addr": "0x7f0000001000"}
QUEUE = {"name": "", "serial": 40, "offset": 4096, "bytes": 2097152, "addr": "0x7f0000002000"}


def lines(items):
    return "".join(json.dumps(i) + "\n" for i in items).encode()


def write(path, events, records, when=None):
    os.makedirs(path, exist_ok=True)
    for name, data in (("events.jsonl", events), ("records.jsonl", records)):
        if data is None:
            continue
        full = os.path.join(path, name)
        with open(full, "wb") as f:
            f.write(data if isinstance(data, bytes) else lines(data))
        if when:
            os.utime(full, (when, when))
    return path


def hazard_events(ended=True):
    events = [begin()]
    for step in (1, 2, 3):
        kernel = {"kind": "kernel", "name": "E_32_4", "how": "ptx", "call": 412, "step": step,
                  "window": "forward:block1#0"}
        copy = {"kind": "copy", "name": "cuMemcpyDtoDAsync_v2", "how": "exact", "call": 9, "step": step, "window": ""}
        events.append(finding("RS010", step, "block1", state=MEAN, writer=kernel))
        events.append(finding("RS013", step, "block1", state=QUEUE, writer=copy, text="written in the replay"))
    events.append(finding("RS050", 1, "", sev="warning", text="no PTX"))
    events.append(stats(3, snapshot_bytes_peak=3000000))
    return events + [END] if ended else events


def hazard_records():
    out = []
    for step in (1, 2, 3):
        out.append(replay(step, "block1", "divergence", "different", ["RS010", "RS013"]))
        out.append(replay(step, "block2", bytes=70000))
    return out


def where_events():
    """Two writers whose place is known, one in Python and one that is not, and a reader that has noticed a race."""
    modules = [{"v": 1, "t": "module", "module": n, "path": path, "build": build}
               for n, path, build in ((1, "/opt/app/bin/train", "0123abcd"), (2, "/usr/lib/libframework.so", ""))]
    deep = [["/opt/venv/lib/python3.11/site-packages/frame/work.py", 55, "launch"],
            ["/opt/app/layers.py", 88, "Norm.update"], ["/opt/app/train.py", 141, "step"], ["<string>", 1, "<module>"]]
    stacks = [{"v": 1, "t": "stack", "stack": 3, "native": [[2, "0x11"], [1, "0x2a7c"], [0, "0x7f00aa"]], "python": deep},
              {"v": 1, "t": "stack", "stack": 4, "native": [[2, "0x22"], [1, "0x1000"], [1, "0x1200"]], "python": []}]
    kernel = {"kind": "kernel", "name": "E_32_4", "how": "ptx", "call": 412, "step": 1, "window": "forward:block1#0"}
    fill = {"kind": "fill", "name": "cuMemsetD8Async", "how": "exact", "call": 9, "step": 1, "window": "", "stack": 4}
    race = {"kind": "other", "name": "E_9", "how": "unknown", "call": 0, "step": 1, "window": ""}
    return [begin(), finding("RS010", 1, "block1", state=MEAN, writer=kernel), *modules, *stacks,
            finding("RS010", 2, "block1", state=MEAN, writer={**kernel, "stack": 3}),
            finding("RS010", 2, "block1", state=QUEUE, writer=fill),
            finding("RS031", 2, "block1", state=QUEUE, writer=race, noticed={"call": 77, "stack": 4}),
            finding("RS013", 2, "block1", state=QUEUE, writer={**kernel, "stack": 99}),
            stats(2, stacks_asked=25, stacks_known=24, stacks_refused=1, stacks=2, unwinder="libunwind", python="3.11"), END]


CLEAN_EVENTS = [begin(), stats(2), END]
CLEAN_RECORDS = [replay(1, "block10"), replay(2, "block10"), replay(1, "block9", invocation=1)]


def golden(name, text, tmp):
    path = os.path.join(GOLDEN, name)
    text = text.replace(tmp, "DIR")
    if os.environ.get("RS_GOLDEN") == "update":
        with open(path, "w") as f:
            f.write(text)
    with open(path) as f:
        wanted = f.read()
    ok(text == wanted, f"text is that of tests/golden/{name}", "got:\n" + text)


def test_reports(tmp):
    d = write(f"{tmp}/hazard", hazard_events(), hazard_records())
    p = ctl("report", d)
    ok(p.returncode == 1 and not p.stderr, "a hazard: status 1, nothing on stderr", both(p))
    golden("report-hazard.txt", p.stdout, tmp)
    ok(p.stdout.splitlines()[-1].startswith("==rs== AUDIT SUMMARY: 2 errors, 1 warning"), "last line to grep for")

    d = write(f"{tmp}/where", where_events(), [replay(2, "block1", "divergence", "different", ["RS010"], stack=3)])
    golden("report-where.txt", ctl("report", "-v", d).stdout, tmp)
    found = json.loads(ctl("report", "--format=json", d).stdout)["runs"][0]["findings"]
    first = next(f for f in found if f["code"] == "RS010" and f["state"]["name"])["where"]
    ok(first["python"][1] == {"file": "/opt/app/layers.py", "line": 88, "function": "Norm.update"}
       and first["native"][1] == {"module": "/opt/app/bin/train", "offset": "0x2a7c"}, "JSON has the frames", first)
    noticed = next(f for f in found if f["code"] == "RS031")
    ok("where" not in noticed and len(noticed["noticed_where"]["native"]) == 3, "and where a race was noticed", noticed)
    p = ctl("records", "--format=csv", d)
    ok(p.stdout.endswith(",app/layers.py:88 in Norm.update() <- app/train.py:141 in step()\n"), "records have the place", both(p))

    d = write(f"{tmp}/clean", CLEAN_EVENTS, CLEAN_RECORDS)
    p = ctl("report", d)
    ok(p.returncode == 0 and "CLEAN in what was observed" in p.stdout, "clean: status 0", both(p))
    golden("report-clean.txt", p.stdout, tmp)
    ok(p.stdout.index("block9") < p.stdout.index("block10"), "segments in the order of their numbers")

    d = write(f"{tmp}/reject", [begin(mode="preserve"), finding("RS018", 2, "b", text="no memory"), stats(2), END],
              [replay(1, "b"), replay(2, "b", "rejection", "unknown", ["RS018"])])
    p = ctl("report", d)
    ok(p.returncode == 1 and "CANNOT TELL\n" in p.stdout, "a rejection cannot be told: status 1", both(p))
    golden("report-reject.txt", p.stdout, tmp)

    for name, events, records, word in (
            ("none", [begin(), stats(4), END], [], "no replay was seen"),
            ("internal", [begin(), stats(4, internal_errors=1), END], CLEAN_RECORDS, "the tool met 1 internal errors"),
            ("lost", [begin(), stats(4, lost=7), END], CLEAN_RECORDS, "7 events were lost"),
            ("unknown", CLEAN_EVENTS, [replay(1, "b", product="unknown")], "comparisons of entry, product or state"),
            ("loose", [begin(), finding("RS017", 1, ""), stats(1), END], CLEAN_RECORDS, "findings without a segment"),
            ("empty", b"", None, "no replay was seen")):
        p = ctl("report", write(f"{tmp}/{name}", events, records))
        ok(p.returncode == 1 and "CANNOT TELL\n" in p.stdout and word in p.stdout, f"cannot tell: {word}", both(p))
    p = ctl("report", write(f"{tmp}/warn", [begin(), finding("RS050", 1, "", sev="warning"), stats(2), END], CLEAN_RECORDS))
    ok(p.returncode == 0, "a warning alone is no hazard", both(p))


def test_damage(tmp):
    whole = lines(hazard_records())
    for cut in (1, 30, len(whole) // 2):
        p = ctl("report", write(f"{tmp}/killed", lines(hazard_events(False)), whole[:-cut]))
        good = p.returncode == 1 and "The run ended early" in p.stdout and "HAZARD" in p.stdout
        ok(good and ("last line is cut off" in p.stdout) == (cut > 1), f"killed, {cut} bytes short", both(p))
    p = ctl("report", write(f"{tmp}/killed", lines(hazard_events(False)), whole[:-30]))
    golden("report-killed.txt", p.stdout, tmp)
    p = ctl("report", write(f"{tmp}/only-records", None, whole))
    ok(p.returncode == 1 and "6 replays" in p.stdout and "not known: no statistics" in p.stdout,
       "records without events are reported", both(p))

    bad = whole.split(b"\n")
    bad[2] = b'{"v":1,"t":"replay","step":'
    bad[4] = b"\x00\xff garbage"
    p = ctl("report", write(f"{tmp}/corrupt", CLEAN_EVENTS, b"\n".join(bad)))
    ok("records.jsonl:3: not a JSON object" in p.stdout and "records.jsonl:5: " in p.stdout and "4 replays" in p.stdout
       and p.returncode == 1, "corrupt lines are named, the rest is kept", both(p))
    for field, value in (("step", "x"), ("outcome", "fine"), ("entry", None), ("codes", [1]), ("bytes", -1),
                         ("segment", 3), ("ns", 1.5), ("v", "1")):
        wrong = {**replay(3, "b"), field: value}
        p = ctl("report", write(f"{tmp}/field", CLEAN_EVENTS, CLEAN_RECORDS + [wrong]))
        ok(f"records.jsonl:4: wrong or missing field '{field}'" in p.stdout and p.returncode == 1,
           f"a wrong {field} is named", both(p))
    for event in (finding("RS010", 1, "b", state=["x"]), finding("", 1, "b"), finding("RS010", 1, "b", sev="bad"),
                  begin(argv=["a", 1]), stats(1, calls={"a": "b"}), finding("RS010", 1, "b", writer={"call": "x"})):
        p = ctl("report", write(f"{tmp}/event", [begin(), event, stats(2), END], CLEAN_RECORDS))
        ok("events.jsonl:2: wrong or missing field" in p.stdout, f"a wrong {event['t']} event is named", both(p))
    p = ctl("report", write(f"{tmp}/newer", [{"v": 2, "t": "begin"}], [{"v": 2, "t": "replay"}]))
    ok(p.returncode == 3 and "newer replayshim" in p.stdout, "data of a newer version: status 3", both(p))
    p = ctl("report", write(f"{tmp}/noise", os.urandom(4096) + b"\n", b"[[[[" * 5000 + b"\n"))
    ok(p.returncode == 3, "noise: status 3", both(p))
    more = [begin(), {"v": 1, "t": "kind to come", "x": [1]}, {**stats(2), "later": {"a": 1}}, END]
    p = ctl("report", write(f"{tmp}/more", more, [{**r, "later": 1} for r in CLEAN_RECORDS]))
    ok(p.returncode == 0, "unknown kinds and fields are passed over", both(p))
    raw = lines([begin(argv=["python", "@@"]), stats(2), END]).replace(b"@@", b"caf\xe9")
    p = ctl("report", write(f"{tmp}/latin", raw, CLEAN_RECORDS))
    ok(p.returncode == 0 and "caf?" in p.stdout, "an argument that is no UTF-8 costs no line", both(p))
    evil = "\x1b[2J\x9b31m\x07"
    p = ctl("report", write(f"{tmp}/evil", [begin(argv=["x", evil]), finding(f"RS010{evil}", 1, evil), stats(1), END],
                            [replay(1, evil, codes=[evil])]))
    ok(not any(c in p.stdout for c in "\x1b\x9b\x07") and "\\x1b[2J" in p.stdout, "control characters are not passed on",
       both(p))


def test_formats(tmp):
    d = write(f"{tmp}/hazard", hazard_events(), hazard_records())
    p = ctl("report", "--format", "json", d)
    o = json.loads(p.stdout)
    run = o["runs"][0]
    first = run["findings"][0]
    ok(p.returncode == 1 and o["v"] == 1 and o["verdict"] == "hazard" and run["errors"] == 2, "report as JSON")
    ok((first["code"], first["count"], first["first_step"], first["last_step"]) == ("RS010", 3, 1, 3),
       "repeats of a finding are counted", first)
    ok(first["state"]["addr"] == "0x7f0000001000" and first["writer"]["name"] == "E_32_4", "state and writer in JSON")
    ok(run["segments"][0]["outcomes"] == {"match": 0, "rejection": 0, "divergence": 3} and run["segments"][1]["verdict"]
       == "clean" and run["coverage"]["launches"] == 1204331, "segments and coverage in JSON", run["segments"])
    p = ctl("report", "--format=jsonl", d)
    kinds = [json.loads(line)["t"] for line in p.stdout.splitlines()]
    ok(kinds == ["run", "segment", "segment", "finding", "finding", "finding", "coverage", "summary"], "report as JSONL",
       kinds)
    p = ctl("report", "--color=always", d, env={"NO_COLOR": "1"})
    ok("\x1b[1;31mHAZARD\x1b[0m" in p.stdout, "--color=always beats NO_COLOR")
    ok("\x1b" not in ctl("report", d).stdout, "no colour into a pipe")
    ok("\x1b" in ctl("report", d, env={"CLICOLOR_FORCE": "1"}).stdout, "CLICOLOR_FORCE is honoured")
    many = [begin()] + [finding("RS010", 1, "b", state={**QUEUE, "serial": i}) for i in range(50)] + [stats(1), END]
    d = write(f"{tmp}/many", many, [replay(1, "b", "divergence")])
    ok("... 38 more: -v" in ctl("report", d).stdout and "more: -v" not in ctl("report", "-v", d).stdout,
       "many findings are cut short, -v prints all")
    moving = [begin()] + [finding("RS010", i, "b", state={**MEAN, "serial": i}) for i in range(9)] + [stats(9), END]
    p = ctl("report", write(f"{tmp}/moving", moving, [replay(1, "b", "divergence")]))
    ok("1 error," in p.stdout and "9 times, steps 0 to 8" in p.stdout, "a named state is one finding wherever it lies",
       both(p))


def plan(state, **kw):
    return {"v": 1, "t": "plan", "step": 4, "state": state, "source": "planner", "generation": 2, "budget": 3 << 20,
            "arena": 1 << 20, "predicted": 2 << 20, "measured": 0, "steps": 0, "time_ns": 12345, "bound_ns": 12000,
            "segments": 3, "options": {"retain": 2, "undo": 1}, **kw}


def test_plan(tmp):
    """The plan block: of the last plan that was taken, and of the last that was not."""
    peak = plan("refused-peak", generation=3, text="9 bytes", at_segment=1, at_predicted=8, at_measured=9)
    cases = (("none", [], []),
             ("taken", [plan("in-force"), plan("in-force", generation=3), plan("in-force", generation=3, steps=9, measured=2 << 20)],
              ["PLAN      in force, number 3 of planner, 2 taken in all", "peak 2.00 MiB predicted, 2.00 MiB measured, budget 3.00 MiB\n",
               "3 segments (2 retain, 1 undo), 1.00 MiB preserved at most, adds 12.3 us to a step"]),
             ("over", [plan("in-force", steps=1, measured=4 << 20)], ["4.00 MiB measured, budget 3.00 MiB   EXCEEDED"]),
             ("refused", [peak], ["PLAN      none was taken", "last of 1 that were not taken: refused: its first step took more "
                                  "memory than predicted, step 4: 9 bytes"]),
             ("both", [plan("in-force"), plan("infeasible"), peak], ["PLAN      in force, number 2", "last of 2 that were not"]),
             ("off", [plan("in-force"), plan("none")], ["PLAN      withdrawn by the planner"]),
             ("again", [plan("in-force"), begin()], []))
    for name, events, texts in cases:
        d = write(f"{tmp}/plan-{name}", [begin(), *events, stats(2), END], CLEAN_RECORDS)
        p = ctl("report", d)
        ok(p.returncode == 0 and all(t in p.stdout for t in texts) and ("PLAN" in p.stdout) == bool(texts),
           f"plan, {name}: text", both(p))
    o = json.loads(ctl("report", "--format=json", f"{tmp}/plan-both").stdout)["runs"][0]
    ok((o["plan"]["generation"], o["plan_refused"]["at_measured"]) == (2, 9), "plan: JSON", o)
    for wrong in ({"budget": -1}, {"options": [1]}, {"options": {"undo": "x"}}, {"state": 3}, {"text": 1}):
        p = ctl("report", write(f"{tmp}/plan-bad", [begin(), {**plan("in-force"), **wrong}, stats(2), END], CLEAN_RECORDS))
        ok(p.returncode == 1 and "events.jsonl:2: wrong or missing field" in p.stdout and "PLAN" not in p.stdout,
           f"plan: a wrong {list(wrong)[0]} is named", both(p))


def test_coverage(tmp):
    """What was not seen: in text and JSON, and the verdict. The clean run's records are used throughout."""
    seen = {"unknown_names": 2, "unknown": ["cuNewThing", "cuOther"]}
    lost = {"foreign_names": 1, "foreign": ["cuMemAlloc_v2"], "export_tables": 3, "tables": ["0-1"], "unknown_kernels": 4,
            "by_name": 5, "lost": 6, "lost_threads": 1, "draws_unfollowed": 7}
    bypass = {"v": 1, "t": "bypass", "step": 2, "object": "/a/libx.so", "how": "RTLD_DEEPBIND", "imports": "dlsym"}
    cases = (("unknown", [stats(2, **seen)], 0, ["unknown to the tool 2 (cuNewThing, cuOther)"]),
             ("foreign", [stats(2, **lost)], 1, ["than the driver 1 (cuMemAlloc_v2)", "private tables asked for 3, ",
                                                 "kernels not seen loaded 4", "chosen by name 5", "events lost 6, threads among "
                                                 "them 1", "draws not followed 7"]),
             ("harmless", [stats(2, export_tables=3, unknown_kernels=4, by_name=5)], 0, ["private tables asked for 3, "]),
             ("idle", [stats(2), {**bypass, "matters": False}], 0, ["objects past the library 1:", "no sign that it uses"]),
             ("bypass", [stats(2), {**bypass, "matters": True}, finding("RS061", 2, "", text="/a/libx.so (x)")], 1,
              ["objects past the library 1:\n            /a/libx.so (RTLD_DEEPBIND, dlsym)\n", "RS061 code that calls"]))
    for name, events, status, texts in cases:
        d = write(f"{tmp}/coverage-{name}", [begin(), *events, END], CLEAN_RECORDS)
        p = ctl("report", d)
        ok(p.returncode == status and all(t in p.stdout for t in texts), f"coverage, {name}: text and status", both(p))
        o = json.loads(ctl("report", "--format=json", d).stdout)["runs"][0]
        ok(o["verdict"] == ("cannot-tell" if status else "clean") and len(o["bypasses"]) == ("bypass" in events[-1].values()
           or len(events) > 2), f"coverage, {name}: JSON", o)
    p = ctl("report", "--format=jsonl", f"{tmp}/coverage-bypass")
    ok([o["object"] for o in map(json.loads, p.stdout.splitlines()) if o["t"] == "bypass"] == ["/a/libx.so"],
       "coverage: objects in JSONL", both(p))
    parts = [{"v": 1, "t": "stats", "calls": {"cuA": 1, "cuB": 2}}, stats(1), {"v": 1, "t": "stats", "calls": {"cuA": 5}}]
    d = write(f"{tmp}/coverage-parts", [begin(), *parts, END], CLEAN_RECORDS)
    o = json.loads(ctl("report", "--format=json", d).stdout)["runs"][0]
    ok(o["coverage"]["calls"] == {"cuA": 5, "cuB": 2, "cuLaunchKernel": 1204331, "cuMemcpyHtoD_v2": 12}, "coverage: calls that "
       "come in several lines are put together", o["coverage"])
    bad = [{**bypass, "object": 1}, {**bypass, "matters": "yes"}, stats(2, unknown="x"), stats(2, tables=[1])]
    d = write(f"{tmp}/coverage-bad", [begin(), *bad, stats(2), END], CLEAN_RECORDS)
    o = json.loads(ctl("report", "--format=json", d).stdout)["runs"][0]
    ok(o["bad_lines"] == len(bad) and not o["bypasses"], "coverage: wrong fields are bad lines", o["problems"])


def test_several(tmp):
    top = f"{tmp}/several"
    write(f"{top}/a", [begin(pid=1), stats(2), END], CLEAN_RECORDS, when=1000)
    write(f"{top}/b", [begin(pid=2), *hazard_events()[1:]], hazard_records(), when=3000)
    write(f"{top}/job/c", [begin(pid=3), stats(2), END], CLEAN_RECORDS, when=2000)
    os.makedirs(f"{top}/other/deep/er")
    p = ctl("report", top)
    order = [line.split("pid ")[1].split()[0] for line in p.stdout.splitlines() if " pid " in line]
    ok(order == ["2", "3", "1"] and p.returncode == 1, "several processes, newest first, the worst counts", both(p))
    ok("==rs== 3 processes" in p.stdout and p.stdout.splitlines()[-1].startswith(
        "==rs== AUDIT SUMMARY: 3 processes: 2 errors"), "their sum stands last", p.stdout.splitlines()[-1])
    p = ctl("report", "--latest", top)
    ok(p.stdout.count("VERDICT") == 1 and "pid 2" in p.stdout, "--latest takes the newest", both(p))
    p = ctl("report", f"{top}/a", f"{top}/job")
    ok(p.returncode == 0 and p.stdout.count("VERDICT") == 2, "several directories", both(p))
    p = ctl("report", "--format=json", f"{top}/a", f"{top}/job", f"{tmp}/nowhere")
    ok(p.returncode == 3 and len(json.loads(p.stdout)["runs"]) == 2, "one of them is missing: status 3", both(p))


def test_records(tmp):
    d = write(f"{tmp}/hazard", hazard_events(), hazard_records() + [replay(4, 'odd,"name"', ns=5, bytes=1)])
    p = ctl("records", d)
    ok(p.returncode == 0 and len(p.stdout.splitlines()) == 8 and "RS010 RS013" in p.stdout, "all records", both(p))
    p = ctl("records", "--outcome=divergence", "--format", "csv", d)
    rows = list(csv.DictReader(io.StringIO(p.stdout)))
    ok([r["step"] for r in rows] == ["1", "2", "3"] and {r["segment"] for r in rows} == {"block1"}, "by outcome", both(p))
    rows = list(csv.DictReader(io.StringIO(ctl("records", "--format=csv", "--segment", "o*", d).stdout)))
    ok(len(rows) == 1 and rows[0]["segment"] == 'odd,"name"' and rows[0]["ns"] == "5", "by segment, quoted for CSV", rows)
    rows = json.loads(ctl("records", "--format=json", "--segment", "block?", d).stdout)
    ok(len(rows) == 6 and rows[0]["codes"] == ["RS010", "RS013"] and rows[0]["bytes"] == 512, "as JSON", rows)
    ok(json.loads(ctl("records", "--format=json", "--segment", "none", d).stdout) == [], "none as JSON")
    with open(f"{d}/records.jsonl", "ab") as f:
        f.write(b'{"v":1,"t":"rep')
    p = ctl("records", d)
    ok(p.returncode == 0 and len(p.stdout.splitlines()) == 8 and "records.jsonl:8: the last line is cut off" in p.stderr,
       "a cut line is told on stderr", both(p))


def test_arguments(tmp):
    d = write(f"{tmp}/clean", CLEAN_EVENTS, CLEAN_RECORDS)
    os.makedirs(f"{tmp}/void")
    for args, status, word in (
            ([], 2, "usage: replayctl COMMAND"), (["reprot", d], 2, "is 'report' meant?"), (["rec"], 2, "is 'records' meant?"),
            (["qqqqqqqq"], 2, "no command 'qqqqqqqq'"), (["report"], 2, "which directory?"),
            (["report", "--format=xml", d], 2, "no format 'xml'"), (["report", "--colour", d], 2, "usage: replayctl report"),
            (["report", "--color=pink", d], 2, "auto, always or never"), (["report", f"{tmp}/void"], 3, "no run data here"),
            (["report", f"{tmp}/nowhere"], 3, "No such file"), (["report", f"{d}/events.jsonl"], 3, "Not a directory"),
            (["records"], 2, "which directory?"), (["records", "--outcome=odd", d], 2, "match, rejection or divergence"),
            (["records", f"{tmp}/nowhere"], 3, ""), (["explain", "RS999"], 2, "no code 'RS999'"),
            (["explain", "-x"], 2, "no option"), (["version", "x"], 2, "no argument"), (["help", "repor"], 2, "'report'"),
            (["run"], 125, "which command?"), (["audit", "--", ], 125, "which command?"),
            (["audit", "python", "train.py"], 125, "replayctl audit -- python ..."),
            (["run", "--bs", "16", "--", "true"], 125, "go after --"), (["run", "--mode=fast", "--", "true"], 125, "not 'fast'"),
            (["audit", "--error-exitcode=0", "--", "true"], 125, "1 to 255"),
            (["audit", "--fail-on=all", "--", "true"], 125, "error or warn"), (["audit", "--mode=off", "--", "true"], 125, "")):
        p = ctl(*args, env={"REPLAYSHIM_LIB": CTL})
        ok(p.returncode == status and word in p.stderr and not p.stdout, f"wrong: {' '.join(args)[:40]}", both(p))
    p = ctl("explain", "rs10", "RS013")
    ok(p.returncode == 0 and p.stdout.startswith("RS010  state read by the replay was overwritten") and "RS013" in p.stdout,
       "explain", both(p))
    ok(max(map(len, p.stdout.splitlines())) <= 100, "explain is wrapped")
    ok(len(ctl("explain").stdout.splitlines()) > 10, "explain lists the codes")
    p = ctl("options", env={"REPLAYSHIM_MODE": "nop", "REPLAYSHIM_VERIFY": "maybe"})
    ok(p.returncode == 0 and "REPLAYSHIM_MODE=nop (environment)" in p.stdout and "REPLAYSHIM_VERIFY" in p.stderr,
       "options: value and origin, complaints on stderr", both(p))
    moved = [begin(), stats(2), {"v": 1, "t": "stats", "steps": 5, "launches": 77}, END]
    p = ctl("report", write(f"{tmp}/stats", moved, CLEAN_RECORDS))
    ok("launches 77," in p.stdout and "cuLaunchKernel 1,204,331" in p.stdout, "later statistics replace earlier ones", both(p))
    ok(json.loads(ctl("version", "--json").stdout)["records"] == 1, "version as JSON")
    ok(ctl("--version").stdout.startswith("replayctl ") and "audit" in ctl("--help").stdout, "--version and --help")
    ok("usage: replayctl records" in ctl("records", "--help").stdout, "help of one command")
    with open("/dev/full", "w") as full:
        p = ctl("report", d, stdout=full)
    ok(p.returncode != 0 and "cannot write" in p.stderr, "a full disk is no clean report", p)


def stand_in(tmp):
    """A library that can be preloaded and does nothing."""
    path = f"{tmp}/lib/libreplayshim.so"
    os.makedirs(os.path.dirname(path))
    subprocess.run([os.environ.get("CC") or "cc", "-shared", "-fPIC", "-x", "c", "-o", path, "-"],
                   input=b"int rs_stand_in;\n", check=True)
    return path


SHOW = ["sh", "-c", 'echo "$LD_PRELOAD|$REPLAYSHIM_MODE|$REPLAYSHIM_OUT|$#"; exit 9', "sh", "--bs", "16"]


def test_run(tmp, lib):
    env = {"REPLAYSHIM_LIB": lib}
    p = ctl("run", "--", *SHOW, env=env, cwd=tmp)
    ok(p.returncode == 9 and p.stdout == f"{lib}|preserve|{tmp}/replayshim.data/%h.r%r.%p|2\n", "run: environment, status",
       both(p))
    p = ctl("run", "-o", "50%/d", "--mode=nop", "--", *SHOW, env={**env, "LD_PRELOAD": lib}, cwd=tmp)
    ok(p.stdout == f"{lib}:{lib}|nop|{tmp}/50%%/d/%h.r%r.%p|2\n", "run: after it what was preloaded before, % doubled", both(p))
    p = ctl("run", "-o", "/abs", "--", *SHOW, env=env)
    ok("|/abs/%h" in p.stdout, "run: an absolute directory stays", both(p))
    p = ctl("run", "--", "sh", "-c", "kill -SEGV $$", env=env)
    ok(p.returncode == -signal.SIGSEGV, "run: is the command, its signal too", both(p))
    for name in ("run", "audit"):
        p = ctl(name, "--", f"{tmp}/no/such", env=env, cwd=tmp)
        ok(p.returncode == 127 and "No such file" in p.stderr, f"{name}: not found is 127", both(p))
        p = ctl(name, "--", tmp, env=env, cwd=tmp)
        ok(p.returncode == 126 and "Permission denied" in p.stderr, f"{name}: cannot execute is 126", both(p))
        p = ctl(name, "--", "true", env={"REPLAYSHIM_LIB": f"{tmp}/no.so"}, cwd=tmp)
        ok(p.returncode == 125 and "REPLAYSHIM_LIB" in p.stderr, f"{name}: no library is 125", both(p))
    os.makedirs(f"{tmp}/a b")
    os.symlink(lib, f"{tmp}/a b/x.so")
    with open(f"{tmp}/a b/y.so", "wb") as f:
        f.write(open(lib, "rb").read())
    p = ctl("run", "--", "true", env={"REPLAYSHIM_LIB": f"{tmp}/a b/y.so"})
    ok(p.returncode == 125 and "blank or a colon" in p.stderr, "run: a path that cannot be preloaded", both(p))


# What the library would write, from a child of audit: argv are the event and record files to copy, then the status.
CHILD = """import os, shutil, socket, sys, time
out = os.environ["REPLAYSHIM_OUT"].replace("%h", "h").replace("%r", "0").replace("%p", str(os.getpid()))
os.makedirs(out)
for name in ("events.jsonl", "records.jsonl"):
    shutil.copy(os.path.join(sys.argv[1], name), out)
print("mine")
if sys.argv[2] == "sleep":
    print("ready", flush=True)
    time.sleep(600)
if sys.argv[2].startswith("-"):
    sys.stdout.flush()
    os.kill(os.getpid(), -int(sys.argv[2]))
sys.exit(int(sys.argv[2]))
"""


def test_audit(tmp, lib):
    env = {"REPLAYSHIM_LIB": lib}
    hazard = write(f"{tmp}/hazard", hazard_events(), hazard_records())
    clean = write(f"{tmp}/clean", CLEAN_EVENTS, CLEAN_RECORDS)
    cmd = [sys.executable, "-c", CHILD]
    p = ctl("audit", "-o", "out", "--", *cmd, hazard, "0", env=env, cwd=tmp)
    ok(p.returncode == 0 and p.stdout == "mine\n", "audit: stdout and status are the command's", both(p))
    ok("HAZARD" in p.stderr and p.stderr.splitlines()[-1].startswith("==rs== AUDIT SUMMARY: 2 errors"),
       "audit: the report is on stderr", both(p))
    p = ctl("audit", "-o", "out", "--error-exitcode=42", "--", *cmd, hazard, "0", env=env, cwd=tmp)
    ok(p.returncode == 42 and p.stderr.count("VERDICT") == 1, "audit: --error-exitcode; older runs are not reported", both(p))
    p = ctl("audit", "-o", "out", "--error-exitcode=42", "--", *cmd, clean, "0", env=env, cwd=tmp)
    ok(p.returncode == 0 and "CLEAN" in p.stderr, "audit: a clean run passes the gate", both(p))
    p = ctl("audit", "-o", "out", "--error-exitcode=42", "--", *cmd, hazard, "7", env=env, cwd=tmp)
    ok(p.returncode == 7, "audit: the command's own failure goes first", both(p))
    p = ctl("audit", "-o", "out", "--error-exitcode=42", "--", "true", env=env, cwd=tmp)
    ok(p.returncode == 42 and "no data in" in p.stderr, "audit: no data does not pass the gate", both(p))
    p = ctl("audit", "-o", "none", "--", "true", env=env, cwd=tmp)
    ok(p.returncode == 0 and "verdict cannot-tell" in p.stderr, "audit: no data is said", both(p))
    warn = write(f"{tmp}/warn", [begin(), finding("RS050", 1, "", sev="warning"), stats(2), END], CLEAN_RECORDS)
    for level, status in (("error", 0), ("warn", 42)):
        p = ctl("audit", "-o", "out", f"--fail-on={level}", "--error-exitcode=42", "--", *cmd, warn, "0", env=env, cwd=tmp)
        ok(p.returncode == status, f"audit: a warning with --fail-on={level}", both(p))
    for sig in (signal.SIGSEGV, signal.SIGKILL):
        p = ctl("audit", "-o", "out", "--error-exitcode=42", "--", *cmd, hazard, str(-sig), env=env, cwd=tmp)
        ok(p.returncode == -sig and "VERDICT" in p.stderr, f"audit: ends by the command's {sig.name}, reports before", both(p))
    for sig in (signal.SIGTERM, signal.SIGINT):
        proc = subprocess.Popen([CTL, "audit", "-o", "out", "--", *cmd, hazard, "sleep"], env={**os.environ, **env}, cwd=tmp,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        proc.stdout.readline()
        proc.stdout.readline()
        proc.send_signal(sig)
        _, err = proc.communicate(timeout=120)
        ok(proc.returncode in (-sig, 1) and "VERDICT" in err,
           f"audit: {sig.name} goes on to the command, the report is made", f"{proc.returncode}\n{err}")


def main():
    if not os.access(CTL, os.X_OK):
        print(f"Bail out! {CTL} has not been built")
        return 1
    for test in (test_reports, test_damage, test_formats, test_plan, test_coverage, test_several, test_records, test_arguments):
        with tempfile.TemporaryDirectory() as tmp:
            test(tmp)
    for test in (test_run, test_audit):
        with tempfile.TemporaryDirectory() as tmp:
            test(tmp, stand_in(tmp))
    print(f"1..{count}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
