#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Busy times by CUPTI, on the simulated device with a stand-in for libcupti (tests/simcupti): measured, lost, given up."""
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "shim"))
from harness import BUILD, SIM, done, events, ok, run, same, tmp

BUSY = BUILD / "clients" / "busy"
LIBS = BUILD / "simcupti"
CLEAN = "exit: 0 buffers, 0 kinds, 0 calls, 0 pushed"
count = 0


def measure(*args, client=BUSY, libs=LIBS, tool=True, **env):
	"""A run: the process, its events, the stand-in's log."""
	global count
	count += 1
	out, log = tmp / f"run{count}", tmp / f"log{count}"
	env = {"REPLAYSHIM_CUPTI": "on", "REPLAYSHIM_MODE": "preserve", "REPLAYSHIM_OUT": out,
	       "LD_LIBRARY_PATH": f"{SIM}:{libs}", "SIMCUPTI_LOG": log, **env}
	p = run([client, *args], tool=tool, **{k: v for k, v in env.items() if v is not None})
	return p, events(out), log.read_text().splitlines() if log.exists() else []


def numbers(lines):
	found = [e for e in lines if e["t"] == "cupti"]
	return found[-1] if found else {}


def costs(lines):
	return {e["segment"]: e for e in lines if e["t"] == "cost"}


def lost(lines):
	return [e["text"].split(": no busy times: ")[-1] for e in lines if e["t"] == "finding" and e["code"] == "RS091"]


def calls(log, name):
	return sum(line == name for line in log)


def results(*args):
	"""What it prints under the library without CUPTI."""
	return run([BUSY, *args], REPLAYSHIM_MODE="preserve", LD_LIBRARY_PATH=f"{SIM}:{LIBS}").stdout


def measured():
	want = results()
	p, lines, log = measure()
	same((p.returncode, p.stdout), (0, want), "results are those of a run without CUPTI")
	n, c = numbers(lines), costs(lines)
	same([n.get(k) for k in ("dropped", "broken", "missing", "forgotten", "windows")], [0, 0, 0, 0, 32],
	     "all windows with work are told, nothing is lost")
	for kind in ("forward", "replay"):
		event, busy = c["chain"][kind], c["chain"][kind + "_busy"]
		ok(busy["n"] == 8 and event["n"] and 0 < busy["median_ns"] and
		   abs(busy["median_ns"] - event["median_ns"]) <= event["median_ns"] / 1000 + 2,
		   f"a chain of kernels, {kind}: as busy as events say", (event, busy))
	wide = c["wide"]
	ok(wide["forward_busy"]["median_ns"] and wide["replay_busy"]["median_ns"], "work on two streams has one, too", wide)
	same(c["idle"]["forward_busy"]["n"], 0, "a segment without work has no busy time")
	same(log[-1], CLEAN, "nothing of CUPTI is left at the exit")
	same([line for line in log if line.startswith("Subscribe")], [], "cuptiSubscribe is not called")
	same(lost(lines), [], "nothing is lost")


def kinds_of_runs():
	p, lines, log = measure(REPLAYSHIM_CUPTI=None)
	ok(not log and not numbers(lines), "without the option libcupti is not loaded")
	p, lines, log = measure(REPLAYSHIM_MODE="off")
	ok(not log and not lines, "nor in mode off")
	want = costs(measure()[1])
	old = tmp / "only12"
	old.mkdir()
	shutil.copy(LIBS / "libcupti.so.12", old)
	(old / "libcupti.so.13").write_text("no library")
	p, lines, log = measure(libs=old)
	same(log[0], "loaded 12", "libcupti.so.12, if the other cannot be loaded")
	same(costs(lines)["chain"]["forward_busy"], want["chain"]["forward_busy"], "its records say the same")
	same(log[-1], CLEAN, "nothing of it is left")
	p, lines, log = measure(REPLAYSHIM_MODE="audit")
	same(costs(lines)["chain"]["replay_busy"], want["chain"]["replay_busy"],
	     "in audit, too: the tool's own work is not counted")
	p, lines, log = measure("--fork")
	ok("child: 0" in p.stdout and not p.returncode and numbers(lines)["windows"] == 32, "a forked child", p.stdout)
	p, lines, log = measure("--steps=3", client=BUILD / "clients" / "steps")
	same((p.returncode, numbers(lines)["missing"], lost(lines)), (0, 0, []), "threads that end within a window")
	for seed in range(3):
		p, lines, log = measure(SIMCUDA_SCHED=f"random:{seed}")
		same((costs(lines)["chain"]["forward_busy"], log[-1]), (want["chain"]["forward_busy"], CLEAN),
		     f"schedule {seed}: the same times")


def refused():
	want = results()
	for what, env in (
		("libcupti's version 18 is not known", {"SIMCUPTI_VERSION": 18}),
		("libcupti's version 140000 is not known", {"SIMCUPTI_VERSION": 140000}),
		("cuptiActivityRegisterCallbacks: error 1", {"SIMCUPTI_FAIL": "ActivityRegisterCallbacks:1=1"}),
		("cuptiActivityEnable: error 39 (another user)", {"SIMCUPTI_FAIL": "ActivityEnable:1=39"}),
		("cuptiActivityEnable: error 14", {"SIMCUPTI_FAIL": "ActivityEnable:3=14"}),
		("cuptiActivityEnable: error 26", {"SIMCUPTI_FAIL": "ActivityEnable:5=26"}),
		("cuptiActivityFlushAll: error 999", {"SIMCUPTI_FAIL": "ActivityFlushAll:1=999"}),
		("cuptiActivityFlushAll: error 15", {"SIMCUPTI_FAIL": "ActivityFlushAll:5=15"}),
		("a tool is injected (CUDA_INJECTION64_PATH)", {"CUDA_INJECTION64_PATH": "/nowhere/libtool.so"}),
	):
		p, lines, log = measure(**env)
		same((p.returncode, p.stdout, lost(lines)), (0, want, [what]), f"{what}: RS091, and the run goes on")
		ok(costs(lines)["chain"]["forward"]["median_ns"] > 0, "events go on measuring")
		ok(what in p.stderr and p.stderr.count("no busy times") == 1, "one line is said", p.stderr)
		ok(not log or re.match(r"exit: \d buffers, 0 kinds, 0 calls, 0 pushed", log[-1]), "CUPTI is off", log[-1:])
	p, lines, log = measure(SIMCUPTI_FAIL="ActivityFlushAll:3=999")
	report = run([BUILD / "replayctl", "report", tmp / f"run{count}"], tool=False)
	ok(report.returncode == 0 and "[N] RS091 busy times are not measured" in report.stdout and "verdict clean" in report.stdout,
	   "the report has it as a note, and the verdict is what it was", report.stdout)
	p, lines, log = measure("--steps=70", SIMCUPTI_SILENT=1)
	same(lost(lines), ["CUPTI writes no records"], "a library that writes nothing is given up")
	p, lines, log = measure(SIMCUPTI_FAIL="ActivityEnableDriverApi:1=1")
	same((lost(lines), numbers(lines)["windows"], log[-1]), ([], 32, CLEAN),
	     "one that cannot record single functions records all")


def other_users():
	for how, windows in (("early", 0), ("late", 4), ("symbol", 4)):
		want = results(f"--user={how}")
		p, lines, log = measure(f"--user={how}")
		same((p.returncode, p.stdout), (0, want), f"{how}: the program's own records come, and its results")
		same(lost(lines), ["the program uses CUPTI itself (cuptiActivityEnable)"], "the library has withdrawn")
		same(numbers(lines)["windows"], windows, "what was complete by then was told")
		on, off = (max((i for i, line in enumerate(log) if line == f" kind 10 {state}"), default=-1)
		           for state in ("on", "off"))
		first_off = log.index(" kind 39 off") if " kind 39 off" in log else -1
		ok(first_off < on < off, "before the program's own call went on, which stays on until it ends it", log)
		same(log[-1], CLEAN, "nothing is left")


def recorded():
	"""Windows are entered in the order chain, wide, idle, idle, wide, chain in each step."""
	def play(name, text, left=CLEAN):
		path = tmp / "play"
		path.write_text(text)
		p, lines, log = measure("--steps=8", SIMCUPTI_PLAY=path)
		ok(p.returncode == 0 and log[-1] == left, f"{name}: clean", p.stderr + log[-1])
		return lines, numbers(lines), costs(lines)

	good = "2 call 1 0\n2 kernel 1 1000 1500\n2 call 2 1\n2 copy 2 1200 1600\n2 fill 2 1500 1700\n2 peer 2 9000 9100\n"
	lines, n, c = play("good", good)
	same((c["chain"]["forward_busy"]["median_ns"], c["wide"]["forward_busy"]["median_ns"]), (500, 600),
	     "kernel, copy, fill, copy from device to device; unions")
	same((n["windows"], n["unmatched"], n["broken"]), (2, 0, 0), "two windows")
	lines, n, c = play("late", "3 kernel 1 1000 1500\n5 call 1 0\n2 call 2 1\n4 kernel 2 10 40\n4 kernel 77 10 40\n")
	same((c["chain"]["forward_busy"]["median_ns"], c["wide"]["forward_busy"]["median_ns"], n["unmatched"]),
	     (500, 30, 1), "records before and long after their calls, and of no call")
	lines, n, c = play("reversed", good + "2 kernel 2 500 400\n")
	same((c["chain"]["forward_busy"]["n"], c["wide"]["forward_busy"]["n"], n["missing"]), (1, 0, 1),
	     "reversed times: that window is left out")
	lines, n, c = play("zero", good + "2 kernel 1 0 0\n")
	same((c["chain"]["forward_busy"]["n"], c["wide"]["forward_busy"]["n"], n["missing"]), (0, 1, 1),
	     "a kernel without times, likewise")
	for name, extra in (("cut off", "2 cut 70\n"), ("length 0", "2 raw 64 5a5a0000\n"), ("kind 0", "2 raw 64 00000000\n"),
	                    ("cut within a kind", "2 raw 64 0a\n2 cut 62\n")):
		lines, n, c = play(name, good + extra + "7 call 9 30\n7 kernel 9 5 9\n")
		ok(n["broken"] == 1 and n["missing"] >= 2 and n["windows"] <= 1, f"{name}: its windows are left out", n)
		same(lost(lines), [], "and it goes on")
	lines, n, c = play("unknown kinds", "2 raw 64 e7030000ff\n" + good + "2 raw 64 34000000\n")
	same((n["windows"], n["broken"]), (2, 0), "unknown kinds are passed over")
	lines, n, c = play("dropped", good + "2 dropped 5\n6 call 9 30\n6 kernel 9 5 9\n")
	ok(n["dropped"] == 5 and c["chain"]["forward_busy"]["n"] <= 1 and n["missing"] >= 2, "dropped records are counted", n)
	lines, n, c = play("a call that failed", good + "2 call 3 0\n")
	same(n["windows"], 2, "a call without work holds nothing up for ever")
	lines, n, c = play("foreign", good + "5 foreign\n", left="exit: 0 buffers, 5 kinds, 165 calls, 0 pushed")
	same(lost(lines), ["buffers of another user of CUPTI came back"], "somebody else's buffer: given up, what the other may need is left on")
	lines, n, c = play("calls of windows told long ago", good + "7 call 5 0\n7 kernel 5 5 9\n")
	same((n["windows"], n["unmatched"]), (2, 1), "a window is told once")


measured()
kinds_of_runs()
refused()
other_users()
recorded()
done()
