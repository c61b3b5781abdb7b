#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A run that ends badly: killed half-way, nowhere to write, disk full. What was written is readable, the program is
unaffected, the exit statuses are the documented ones."""
import json
import pathlib
import resource
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "shim"))
from harness import BUILD, done, ok, run, same, start, tmp

STEPS = BUILD / "clients" / "steps"
CTL = BUILD / "replayctl"
REPLAYS = 5  # of each step: four of `block`, one of what never ran forward


def ctl(*args):
	return run([CTL, *args], tool=False)


def parsed(path):
	"""(whole lines as objects, what follows the last newline); a damaged line fails here."""
	*lines, rest = path.read_text().split("\n")
	return [json.loads(line) for line in lines], rest


def kill_after(process, step):
	for line in process.stderr:
		if line == f"step {step}\n":
			break
	process.send_signal(signal.SIGKILL)
	process.stderr.read()
	return process.wait(timeout=60)


def killed(mode):
	out = tmp / f"killed-{mode}"
	p = start([STEPS, "--steps=1000000"], REPLAYSHIM_MODE=mode, REPLAYSHIM_OUT=out, REPLAYSHIM_QUIET=1)
	same(kill_after(p, 25), -signal.SIGKILL, f"{mode}: killed in the middle of it")
	records, rest = parsed(out / "records.jsonl")
	whole = [r for r in records if r["step"] <= 24]
	ok(len(rest) < 3072 and all(r["t"] == "replay" for r in records), f"{mode}: every whole line is a record", records[-2:])
	same(len(whole), 24 * REPLAYS, f"{mode}: every replay of the steps before has its line")
	events, _ = parsed(out / "events.jsonl")
	kinds = {e["t"] for e in events}
	ok(kinds >= {"begin", "finding", "stats"} and "end" not in kinds, f"{mode}: events begin and do not end", kinds)

	report = ctl("report", out)
	same(report.returncode, 1, f"{mode}: report: exit status of findings")
	ok("ended early" in report.stdout and "==rs== AUDIT SUMMARY:" in report.stdout, f"{mode}: report: it says so",
	   report.stdout + report.stderr)
	report = ctl("report", "--format=json", out)
	same((report.returncode, type(json.loads(report.stdout))), (1, dict), f"{mode}: report: as JSON")
	listed = ctl("records", "--format=csv", out)
	same((listed.returncode, len(listed.stdout.splitlines())), (0, len(records) + 1), f"{mode}: records: all of them")

	# Killed inside a write: the last line is part of one.
	torn = tmp / f"torn-{mode}"
	torn.mkdir()
	for name in ("events.jsonl", "records.jsonl"):
		(torn / name).write_bytes((out / name).read_bytes().rstrip(b"\n")[:-7])
	report = ctl("report", torn)
	same(report.returncode, 1, f"{mode}: report of files that end inside a line")
	ok("AUDIT SUMMARY" in report.stdout, f"{mode}: and it is a report", report.stdout + report.stderr)


def two_at_once():
	processes = [start([STEPS, "--steps=20"], cwd=tmp, REPLAYSHIM_QUIET=1) for _ in range(2)]
	for p in processes:
		p.stderr.read()
	same([p.wait(timeout=60) for p in processes], [0, 0], "two processes at once")
	runs = sorted((tmp / "replayshim.data").iterdir())
	same(sorted(r.name.rsplit(".", 1)[1] for r in runs), sorted(str(p.pid) for p in processes), "each has its directory")
	same([len(parsed(r / "records.jsonl")[0]) for r in runs], [20 * REPLAYS] * 2, "with the records of its own replays")
	report = ctl("report", tmp / "replayshim.data")
	same((report.returncode, report.stdout.count("==rs== AUDIT SUMMARY:")), (1, 3), "report of both: each and together")


def without_steps(p):
	"""Of stderr, what is not the program's own."""
	return [line for line in p.stderr.splitlines() if not line.startswith("step ")]


def nowhere(plain):
	(tmp / "file").write_text("")
	for mode in ("audit", "preserve"):
		p = run([STEPS, "--steps=6"], REPLAYSHIM_MODE=mode, REPLAYSHIM_OUT=tmp / "file" / "out", REPLAYSHIM_QUIET=1)
		said = without_steps(p)
		same((p.returncode, p.stdout), plain[mode], f"{mode}, OUT not writable: the program is unaffected")
		ok(len(said) == 1 and "file/out: Not a directory; nothing will be recorded" in said[0],
		   f"{mode}, OUT not writable: one line says so", p.stderr)
	same(ctl("report", tmp / "file" / "out").returncode, 3, "report of what is not there: exit status 3")


def disk_full(plain):
	def limit():
		resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

	for mode in ("audit", "preserve"):
		out = tmp / f"full-{mode}"
		p = run([STEPS, "--steps=40"], preexec_fn=limit, REPLAYSHIM_MODE=mode, REPLAYSHIM_OUT=out, REPLAYSHIM_QUIET=1)
		said = without_steps(p)
		same((p.returncode, p.stdout), plain[mode, 40], f"{mode}, disk full: the program is unaffected")
		ok(len(said) == 1 and "records are missing from here on" in said[0], f"{mode}, disk full: one line says so", p.stderr)
		same([len((out / n).read_bytes()) for n in ("events.jsonl", "records.jsonl")], [8192] * 2,
		     f"{mode}, disk full: what fits was written")
		ok(parsed(out / "records.jsonl")[0], f"{mode}, disk full: the lines before are whole")
		report = ctl("report", out)
		ok(report.returncode == 1 and "AUDIT SUMMARY" in report.stdout, f"{mode}, disk full: report", report.stdout)


def ended(mode, steps):
	p = run([STEPS, f"--steps={steps}"], REPLAYSHIM_MODE=mode, REPLAYSHIM_OUT=tmp / f"whole-{mode}-{steps}", REPLAYSHIM_QUIET=1)
	return p.returncode, p.stdout


plain = {m: ended(m, 6) for m in ("audit", "preserve")}
plain.update({(m, 40): ended(m, 40) for m in ("audit", "preserve")})
same([r for r, _ in plain.values()], [0] * 4, "the program ends well under the tool")
same(plain["audit"][1], run([STEPS, "--steps=6"], tool=False).stdout, "an audit changes nothing")
for mode in ("audit", "preserve"):
	killed(mode)
two_at_once()
nowhere(plain)
disk_full(plain)
done()
