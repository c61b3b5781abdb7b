#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A training loop under plans, from the real planner process and from files: its bytes are right, the budget holds by the
device's own accounting, and nothing that happens to the planner is felt.

tests/clients/planned.c is the loop; planned_peer.t has planners that misbehave, planned_start.t how one is started.
"""
import atexit
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "shim"))
from harness import BUILD, SANITIZED, Held, done, environment, events, ok, run, same, stats, tmp, until

CLIENT, CTL = BUILD / "clients" / "planned", BUILD / "replayctl"
SEGMENTS, STEPS = 4, 12
MIB = 1 << 20
SLOWEST = 9e6  # us; a step that waited for somebody would take longer
runtime = tmp / "run"
runtime.mkdir(mode=0o700)


def ctl(*args, **kw):
	return subprocess.run([CTL, *map(str, args)], env=environment(tool=False, sim=False, XDG_RUNTIME_DIR=runtime), text=True,
	                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, **kw)


class Planner:
	def __init__(self, name="test", *args, listening=True):
		self.name = name
		atexit.register(self.kill)
		self.process = subprocess.Popen([CTL, "planner", "--name", name, *args], stderr=subprocess.DEVNULL,
		                                env=environment(tool=False, sim=False, XDG_RUNTIME_DIR=runtime))
		if listening:
			until(self.status)

	def kill(self):
		self.process.kill()
		self.process.wait()

	def status(self):
		return json.loads(ctl("status", "--name", self.name, "--json").stdout or "{}")


class Run:
	"""What a client printed: per step a digest, the peak, how many were kept, microseconds."""

	def __init__(self, text, status=0, stderr="", out=None):
		rows = [line.split() for line in text.splitlines() if line.startswith("step")]
		self.digests, self.peaks, self.kept = [r[2] for r in rows], [int(r[3]) for r in rows], [int(r[4]) for r in rows]
		self.slowest = max([int(r[5]) for r in rows] or [0])
		self.text, self.status, self.stderr, self.out = text, status, stderr, out
		self.plans = [e for e in events(out) if e["t"] == "plan"] if out else []

	def right(self, what, steps=None, *args):
		n = len(self.digests)
		ok(self.status == 0 and n >= (steps or STEPS) and self.digests == wanted(n, *args), f"{what}: the program's bytes",
		   f"status {self.status}\n{self.text}{self.stderr}")
		ok(self.slowest < SLOWEST, f"{what}: no step waited", self.slowest)
		s = stats(self.out)
		same((s.get("rejection"), s.get("divergence")), (0, 0), f"{what}: every replay is a match")


_wanted = {}


def wanted(n, *args):
	if len(_wanted.get(args, ())) < n:
		_wanted[args] = Run(run([CLIENT, f"--steps={n + 50}", f"--segments={SEGMENTS}", "--keep", *args], tool=False).stdout).digests
	return _wanted[args][:n]


def command(*args, segments=SEGMENTS, steps=STEPS):
	return [CLIENT, f"--segments={segments}", f"--steps={steps}", "--pause=30000", *args]


def variables(name, budget, **more):
	return {"REPLAYSHIM_MODE": "preserve", "REPLAYSHIM_BUDGET": budget, "REPLAYSHIM_PLANNER": "test", "XDG_RUNTIME_DIR": runtime,
	        "REPLAYSHIM_OUT": tmp / name, "REPLAYSHIM_QUIET": 1, "REPLAYSHIM_LOG": "info", **more}


def start(name, budget, *args, steps=STEPS, **more):
	return Held(name, command(*args, steps=steps), **variables(name, budget, **more))


def finish(p, out):
	return Run(*p.let_go(), out)


def has_plan(out, state="in-force"):
	return [e for e in events(out) if e["t"] == "plan" and e["state"] == state]


def train(name, budget, *args, state="in-force", **more):
	"""Until a plan is in that state, and for some steps more."""
	p = start(name, budget, *args, **more)
	p.sees(lambda: has_plan(tmp / name, state))
	p.goes_on(6)
	return finish(p, tmp / name)


def budgets():
	"""Online: from what keeps everything to what keeps nearly nothing, and to what cannot be."""
	planner = Planner()
	kept = {}
	for budget, least, most in ((64, SEGMENTS, SEGMENTS), (14, 1, SEGMENTS - 1), (7, 0, 1)):
		r = train(f"b{budget}", f"{budget}MiB")
		r.right(f"{budget} MiB")
		force = [p for p in r.plans if p["state"] == "in-force"]
		if not ok(force, f"{budget} MiB: there is a plan", r.stderr + r.text):
			continue
		first = force[0]["step"] - 2  # its dry step, counted from 0
		ok(max(r.peaks[first:]) <= budget * MIB, f"{budget} MiB: the device's own peak keeps it, from its first step on", r.text)
		changes = [p for p in force if not p["steps"]]
		ends = [p["step"] - 2 for p in changes[1:]] + [len(r.peaks)]
		# the program's module is not the tool's to count
		ok(all(max(r.peaks[p["step"] - 2:end], default=0) <= p["predicted"] + 4096 for p, end in zip(changes, ends)),
		   f"{budget} MiB: and what was predicted", f"{r.text}\n{force}")
		ok(force[-1]["measured"] <= force[-1]["predicted"], f"{budget} MiB: so says the tool", force)
		ok(least <= r.kept[-1] <= most, f"{budget} MiB: {least} to {most} segments are kept", r.kept)
		kept[budget] = r.kept[-1]
		text = ctl("report", tmp / f"b{budget}").stdout
		ok("PLAN      in force" in text and f", budget {budget}.0" in text, f"{budget} MiB: the report shows it", text)
	ok(kept.get(64, 0) > kept.get(14, 0) >= kept.get(7, 9), "a smaller budget keeps less", kept)
	r = train("b1", "1MiB", state="infeasible")
	r.right("1 MiB")
	codes = {e["code"] for e in events(tmp / "b1") if e["t"] == "finding"}
	ok("RS070" in codes and not sum(r.kept) and "there is no plan within 1048576 bytes" in r.stderr,
	   "1 MiB: it is said that there is no plan", f"{codes}\n{r.stderr}")
	r = train("deaf", "64MiB", "--deaf")
	r.right("a program that never asks")
	ok(not sum(r.kept) and [p for p in r.plans if p["state"] == "in-force"], "a program that never asks is planned for, too", r.stderr)
	planner.kill()


def drift():
	"""More is overwritten than any plan has foreseen: first the budget's rest is taken, then another plan."""
	planner = Planner()
	r = train("drift", "14MiB", "--drift", steps=40)
	r.right("drift", 40, "--drift")
	first = min([p["step"] - 2 for p in r.plans if p["state"] != "infeasible"] or [0])
	ok(r.plans and max(r.peaks[first:]) <= 14 * MIB, "drift: within the budget", r.text)
	planner.kill()


def live():
	"""Another budget while it runs."""
	planner = Planner()
	p = start("live", "64MiB", steps=4)

	def obeyed(condition):
		before = len(p.lines())
		return p.sees(lambda: [line for line in p.lines()[before:] if condition(int(line.split()[4]))])

	def last():
		return "\n".join(p.lines()[-8:])

	for budget, condition in (("", lambda k: k == SEGMENTS), ("7MiB", lambda k: k <= 1), ("64MiB", lambda k: k == SEGMENTS)):
		if budget:
			done_ = ctl("set", "--name", "test", p.pid, f"budget={budget}")
			ok(done_.returncode == 0, f"replayctl set budget={budget}", done_.stderr)
		ok(obeyed(condition), f"live: budget {budget or 'of the start'} is obeyed", last())
	ok(ctl("set", "--name", "test", p.pid, "off=1").returncode == 0 and obeyed(lambda k: k == 0), "live: off=1", last())
	ok(ctl("set", "--name", "test", p.pid, "off=0").returncode == 0 and obeyed(lambda k: k == SEGMENTS), "live: off=0", last())
	finish(p, tmp / "live").right("live", steps=4)
	planner.kill()


def killed():
	"""The planner dies, again and again, at any moment."""
	rng = random.Random(5)
	p = start("killed", "14MiB", steps=4)
	for i in range(25):
		planner = Planner(listening=False)
		if not i:
			p.sees(lambda: has_plan(tmp / "killed"))
		time.sleep(rng.choice((0, 0.005, 0.02, 0.1, 0.3)) if i % 8 else 15 if SANITIZED else 3)
		if i % 12 == 7:  # it only sleeps, and somebody still connects to it
			planner.process.send_signal(signal.SIGSTOP)
			time.sleep(2)
		planner.kill()
	p.goes_on(6)
	r = finish(p, tmp / "killed")
	r.right("killed 25 times", steps=4)
	first = next((i for i, k in enumerate(r.kept) if k), None)
	ok(first is not None and set(r.kept[first:]) == {r.kept[first]}, "killed: the plan stays", r.kept)
	ok(first is not None and max(r.peaks[first:]) <= 14 * MIB, "killed: and the budget is kept", r.peaks)
	ok(not [line for line in r.stderr.splitlines() if "warning" in line or "error" in line], "killed: nobody is alarmed", r.stderr)


def job():
	"""Two processes of one job, with different budgets: one plan for both, from the same step on."""
	planner = Planner()
	where = dict(TORCHELASTIC_RUN_ID="j", WORLD_SIZE=2)
	ps = [start(f"rank{i}", budget, RANK=i, **where) for i, budget in enumerate(("64MiB", "14MiB"))]

	def agreed():
		"""The step from which one plan is in force in both."""
		plans = [p["plan"] for p in planner.status().get("programs", [])]
		if len(plans) == 2 and plans[0]["agreement"] == plans[1]["agreement"] > 0 and \
		   all(p["taken"] == p["generation"] and p["state"] == "in-force" for p in plans):
			return {p["from_step"] for p in plans}
		return set()

	joint = until(agreed)
	ok(joint, "ranks: one plan is in force in both", planner.status())
	ok(all([p.goes_on(6) for p in ps]), "ranks: they go on with it")
	planner.kill()  # it would make another one for the last of them
	rs = [finish(p, tmp / f"rank{i}") for i, p in enumerate(ps)]
	for i, r in enumerate(rs):
		r.right(f"rank {i}")
	# The first of them may have had a plan of its own before the other one came; steps are counted from 1.
	first, n = max([1, *joint]) - 1, min(len(r.kept) for r in rs)
	same(rs[0].kept[first:n], rs[1].kept[first:n], "ranks: the same decisions in the same steps")
	ok(len(joint) == 1 and n > first and rs[0].kept[first], "ranks: from the first step of their plan on", f"{joint}\n{rs[0].kept}")
	ok(max(rs[1].peaks[-5:]) <= 14 * MIB, "ranks: within the smaller budget", rs[1].peaks)


def by_itself():
	"""Nobody has started it, and the program has children of its own."""
	r = train("auto", "64MiB", "--children", steps=30, REPLAYSHIM_PLANNER="auto")
	r.right("auto", steps=30)
	same(r.kept[-1], SEGMENTS, "auto: the planner that was started has planned")
	p = ctl("planner", "--stop")
	ok(p.returncode == 0, "auto: it can be stopped", p.stderr)


def from_file():
	"""Offline: measured in one run, planned, obeyed by the next one from its first step on."""
	p = run([CTL, "run", "-o", tmp / "data", "--", *command()], tool=False, REPLAYSHIM_COSTS=1)
	plan = tmp / "plan.json"
	made = ctl("plan", tmp / "data", "--budget", "14MiB", "-o", plan)
	if not ok(made.returncode == 0 and plan.exists(), "a plan is made from a run's costs", p.stderr + made.stdout + made.stderr):
		return
	p = run([CTL, "run", "-o", tmp / "planned", "--plan", plan, "--", *command()], tool=False)
	out = next((tmp / "planned").iterdir())
	r = Run(p.stdout, p.returncode, p.stderr, out)
	r.right("plan file")
	ok(0 < r.kept[0] < SEGMENTS and set(r.kept) == {r.kept[0]}, "plan file: obeyed from the first step on", r.kept)
	ok(max(r.peaks) <= 14 * MIB, "plan file: the budget is kept", r.peaks)
	ok(r.plans and r.plans[-1]["source"] == str(plan) and r.plans[-1]["state"] == "in-force", "plan file: the events say so", r.plans)
	other = run([CTL, "run", "-o", tmp / "other", "--plan", plan, "--", *command(segments=SEGMENTS - 1)], tool=False)
	found = events(next((tmp / "other").iterdir()))
	codes = [e["code"] for e in found if e["t"] == "finding"]
	ok(other.returncode == 0 and codes == ["RS071"] and "other segments" in other.stderr, "plan file of another program: refused",
	   f"{codes}\n{other.stderr}")
	bad = tmp / "bad.json"
	bad.write_text(plan.read_text().replace('"retain"', '"remain"'))
	r = run(command(), **variables("bad", "64MiB", REPLAYSHIM_PLAN=bad))
	ok(r.returncode == 0 and "bad.json:" in r.stderr and "option" in r.stderr and "goes on without a plan" in r.stderr,
	   "a bad plan file: named with place and field, and the run goes on", r.stderr)
	for args, text in ((("--plan", bad), "bad.json:"), (("--plan", tmp / "none.json"), "No such file"),
	                   (("--budget", "48"), "with a unit"), (("--budget", "none"), "with a unit"),
	                   (("--mode=audit", "--budget", "1GiB"), "need mode preserve")):
		p = ctl("run", *args, "--", "true")
		ok(p.returncode == 125 and text in p.stderr, f"run {' '.join(map(str, args))[-30:]}: refused at once", p.stderr)
	p = Held("viarun", [CTL, "run", "-o", tmp / "viarun", "--budget", "64MiB", "--", *command()], tool=False, XDG_RUNTIME_DIR=runtime)
	p.sees(lambda: [d for d in (tmp / "viarun").glob("*") if has_plan(d)])
	p.goes_on(6)
	same(finish(p, None).kept[-1:], [SEGMENTS], "run --budget: plans by itself")
	ctl("planner", "--stop")


def remapped():
	"""A plan of nothing but remapping, with each option: made of what was measured, obeyed, and within its budget."""
	mapped = command("--mapped", "--deaf")
	versions = dict(REPLAYSHIM_VERSIONS="buffers")  # all of a mapping is written then
	run([CTL, "run", "-o", tmp / "mapped", "--", *mapped], tool=False, REPLAYSHIM_COSTS=1, **versions)
	for option in ("undo", "whole"):
		plan, out = tmp / f"{option}.json", tmp / f"mapped.{option}"
		made = ctl("plan", tmp / "mapped", "--budget", "40MiB", "--allow", f"{option}:remap", "-o", plan)
		if not ok(made.returncode == 0, f"{option}: a plan to remap is made", made.stdout + made.stderr):
			continue
		same([s["restore"] for s in json.loads(plan.read_text())["segments"]], ["remap"] * SEGMENTS, f"{option}: each segment's")
		p = run([CTL, "run", "-o", out, "--plan", plan, "--", *mapped], tool=False, **versions)
		r = Run(p.stdout, p.returncode, p.stderr, next(out.iterdir()))
		r.right(f"{option}: remapped", STEPS, "--mapped")
		ok(r.plans and r.plans[-1]["state"] == "in-force", f"{option}: the plan is in force", r.plans)
		same(stats(r.out).get("remaps"), SEGMENTS * STEPS, f"{option}: each replay is shown its state by remapping")
		ok(max(r.peaks) <= 40 * MIB, f"{option}: within the budget", r.peaks)


for test in (budgets, drift, live, killed, job, by_itself, from_file, remapped):
	if not sys.argv[1:] or test.__name__ in sys.argv[1:]:
		test()
done()
