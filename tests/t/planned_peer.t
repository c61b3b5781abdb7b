#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A program and planners that misbehave: whatever one hands over, training goes on, its bytes are right, no step waits.

The planner is tests/shim/planner_peer.c; tests/t/planned.t has the real one.
"""
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "shim"))
from harness import BUILD, PATIENCE, TOP, Held, cc, done, events, link_flags, ok, run, same, stats, tmp, until

CLIENT = BUILD / "clients" / "planned"
STEPS = 14
SLOWEST = 9e6  # us of a step: one that waits for an answer, or for a heart to beat, waits for ten seconds at least

SOURCES = [TOP / "tracker" / f"{name}.c" for name in ("wire", "wire_layout", "plan_print", "digest")]
peer = cc("planner_peer.c", "planner_peer", "-D_GNU_SOURCE", f"-I{TOP}", *SOURCES)
runtime = tmp / "run"
sockets = runtime / "replayshim"
sockets.mkdir(parents=True, mode=0o700)
os.chmod(sockets, 0o700)


def digests(text):
	return [line.split()[2] for line in text.splitlines()]


def kept(text):
	return [int(line.split()[4]) for line in text.splitlines()]


def slowest(text):
	return max([int(line.split()[5]) for line in text.splitlines()] or [1e9])


class Peer:
	def __init__(self, mode, name="peer"):
		self.told = tmp / f"{name}.told"
		# Without an area there is nothing with whose end it would end.
		self.ends = mode not in ("deaf", "hangup", "garbage", "text", "refuse", "cut")
		with open(self.told, "w") as told:
			self.process = subprocess.Popen([peer, sockets / f"{name}.sock", mode], stdout=told)
		until(lambda: "ready" in self.lines())

	def lines(self):
		return self.told.read_text().split("\n")[:-1]

	def says(self, pattern):
		return any(re.fullmatch(pattern, line) for line in self.lines())

	def end(self):
		try:
			self.process.wait(timeout=PATIENCE if self.ends else 0)
		except subprocess.TimeoutExpired:
			self.process.kill()
			self.process.wait()
		return self.lines()[1:]


class Done:
	def __init__(self, stdout, returncode, stderr):
		self.stdout, self.returncode, self.stderr = stdout, returncode, stderr


def start(name, *args, **variables):
	where = dict(REPLAYSHIM_MODE="preserve", REPLAYSHIM_BUDGET="64MiB", REPLAYSHIM_PLANNER="peer", XDG_RUNTIME_DIR=runtime,
	             REPLAYSHIM_OUT=tmp / name, REPLAYSHIM_QUIET=1, REPLAYSHIM_LOG="info")
	where.update(variables)
	return Held(name, [CLIENT, f"--steps={STEPS}", "--segments=3", "--pause=10000", *args], **where)


def train(name, *args, seen=lambda p: True, **variables):
	"""Until that can be seen of it, and for some steps more."""
	p = start(name, *args, **variables)
	p.sees(lambda: seen(p))
	p.goes_on(3)
	return Done(*p.let_go())


_wanted = []


def wanted(n):
	if len(_wanted) < n:
		_wanted[:] = digests(run([CLIENT, f"--steps={n + 50}", "--segments=3", "--keep"], tool=False).stdout)
	return _wanted[:n]


def right(p, what, steps=STEPS):
	n = len(digests(p.stdout))
	ok(p.returncode == 0 and n >= steps and digests(p.stdout) == wanted(n), f"{what}: the program's bytes", p.stdout + p.stderr)
	ok(slowest(p.stdout) < SLOWEST, f"{what}: no step waited", p.stdout)


def good():
	planner = Peer("good")
	p = train("good", seen=lambda p: planner.says("state 3 1"))
	told = planner.end()
	right(p, "good")
	costs = [line.split()[1] for line in told if line.startswith("cost")]
	ok(set(costs) == {"layer0", "layer1", "layer2"}, "good: every segment is told of", told)
	ok(len(costs) < 3 * len(kept(p.stdout)), "good: but not in every step", told)
	ok(all(int(line.split()[4]) & 1 for line in told if line.startswith("cost")), "good: and that it asks", told)
	same(kept(p.stdout)[:5], [0] * 5, "good: nothing is kept before there is a plan")
	same(kept(p.stdout)[-2:], [3, 3], "good: what the plan keeps is kept")
	ok("state 3 1" in told and "gone" in told, "good: the planner is told that its plan is in force", told)
	plans = [(e["state"], e["options"]) for e in events(tmp / "good") if e["t"] == "plan"]
	ok(plans and plans[0] == ("in-force", {"retain": 3}) and "plan 1 of planner is in force" in p.stderr,
	   "good: an event and a message say so", f"{plans}\n{p.stderr}")
	same(stats(tmp / "good").get("divergence"), 0, "good: no divergence")


def hostile():
	for mode, text in (("deaf", ""), ("hangup", ""), ("garbage", "makes no sense"), ("text", "hands nothing over"),
	                   ("refuse", "Protocol error"), ("cut", "size"), ("long", "size"), ("unsealed", "not sealed"),
	                   ("version", "version"), ("layout", "lays out"), ("damaged", "plan is damaged")):
		planner = Peer(mode)
		p = train(mode, "--steps=9", seen=lambda p: text in p.stderr())
		planner.end()
		right(p, mode, 9)
		said = [line for line in p.stderr.splitlines() if "warning" in line]
		ok(len(said) == (1 if text else 0) and text in "".join(said) and not sum(kept(p.stdout)),
		   f"{mode}: {'said once' if text else 'nothing to say'}, no plan", p.stderr)


def plans():
	planner = Peer("nonsense")
	p = train("nonsense", seen=lambda p: "malformed" in p.stderr())
	planner.end()
	right(p, "nonsense")
	codes = [e["code"] for e in events(tmp / "nonsense") if e["t"] == "finding"]
	ok(codes == ["RS071"] and "malformed" in p.stderr, "nonsense: the plan is refused, and that is a finding", p.stderr)
	for mode, code, state, text in (("low", "RS070", "refused-peak", "4096 were predicted"),
	                                ("other", "RS071", "refused-segments", "other segments")):
		planner = Peer(mode)
		p = train(mode, seen=lambda p: planner.says("state [4-7] .*"))
		told = planner.end()
		right(p, mode)
		lines = events(tmp / mode)
		codes = [e["code"] for e in lines if e["t"] == "finding"]
		states = [e["state"] for e in lines if e["t"] == "plan"]
		ok(codes == [code] and states == [state] and text in p.stderr, f"{mode}: refused after its first step, and that is said",
		   f"{codes} {states}\n{p.stderr}")
		ok(kept(p.stdout).count(3) == 1 and kept(p.stdout)[-1] == 0, f"{mode}: it held for that step only", p.stdout)
		ok([line for line in told if line.startswith("state") and int(line.split()[1]) > 3], f"{mode}: the planner knows", told)
	planner = Peer("over")
	p = train("over")
	planner.end()
	right(p, "over")
	lines = events(tmp / "over")
	found = [e["text"] for e in lines if e["t"] == "finding" and e["code"] == "RS070"]
	states = [e["state"] for e in lines if e["t"] == "plan"]
	ok(len(found) == 1 and "under a plan for 4096" in found[0] and set(states) == {"in-force"},
	   "over: that a plan in force takes more than its budget is said, once", f"{lines}\n{p.stderr}")
	planner = Peer("infeasible")
	p = train("infeasible", seen=lambda p: "no plan within" in p.stderr())
	planner.end()
	right(p, "infeasible")
	codes = [e["code"] for e in events(tmp / "infeasible") if e["t"] == "finding"]
	ok(codes == ["RS070"] and "no plan within" in p.stderr, "infeasible: a finding", p.stderr)
	planner = Peer("off")
	p = train("off", seen=lambda p: [e for e in events(tmp / "off") if e["t"] == "plan" and e["state"] == "none"])
	planner.end()
	states = [e["state"] for e in events(tmp / "off") if e["t"] == "plan"]
	ok(3 in kept(p.stdout) and kept(p.stdout)[-1] == 0 and states[:2] == ["in-force", "none"],
	   "off: the plan is obeyed, then it is not", f"{states}\n{p.stdout}")


def long_step():
	"""Before its first step a program may take minutes; it is linked as soon as it waits for the device."""
	text = """
#include <stdio.h>
#include <string.h>
#include <unistd.h>
extern int cuInit(), cuCtxCreate_v2(), cuCtxSynchronize();
int main(int argc, char **argv)
{
	void *ctx;
	cuInit(0), cuCtxCreate_v2(&ctx, 0, 0);
	while (!access(strchr(argv[1], '=') + 1, F_OK)) {
		cuCtxSynchronize(), usleep(20000);
		puts("waits"), fflush(stdout);
	}
	return 0;
}
"""
	program = cc(None, "long_step", *link_flags(), text=text)
	p = Held("long", [program], REPLAYSHIM_MODE="preserve", REPLAYSHIM_BUDGET="64MiB", REPLAYSHIM_PLANNER="peer",
	         XDG_RUNTIME_DIR=runtime, REPLAYSHIM_OUT=tmp / "long", REPLAYSHIM_QUIET=1)
	p.sees(p.lines)
	planner = Peer("good")
	p.sees(lambda: planner.says("hello .*"))
	p.goes_on(3)
	p.let_go()
	told = planner.end()
	same(told[:1] + told[-1:], [f"hello {p.pid}", "gone"], "without a step: linked to a planner that came late")


def frozen():
	"""A planner whose heart has stopped is left after ten seconds, with its last plan."""
	planner = Peer("frozen")
	p = start("frozen", "--pause=100000")
	p.sees(lambda: planner.says("gone"))
	p.goes_on(3)
	p = Done(*p.let_go())
	ok("gone" in planner.end(), "frozen: the planner is left")
	ok(p.returncode == 0 and slowest(p.stdout) < SLOWEST and kept(p.stdout)[-3:] == [3, 3, 3], "frozen: its plan stays", p.stdout)


def untrusted():
	for mode in (0o755, 0o777):
		os.chmod(sockets, mode)
		planner = Peer("good")
		p = train(f"open{mode:o}", "--steps=6")
		planner.process.kill()
		planner.end()
		right(p, f"folder of mode {mode:o}", 6)
		ok("not to be trusted" in p.stderr and not sum(kept(p.stdout)), f"folder of mode {mode:o}: nobody is asked", p.stderr)
	os.chmod(sockets, 0o700)
	p = train("name", "--steps=6", REPLAYSHIM_PLANNER="a/b")
	right(p, "a name with a slash", 6)
	ok("REPLAYSHIM_PLANNER=a/b" in p.stderr, "a name with a slash: said", p.stderr)
	p = train("none", "--steps=6", REPLAYSHIM_PLANNER="none")
	right(p, "none", 6)
	same([line for line in p.stderr.splitlines() if "plan" in line], [], "none: nothing is said")
	p = train("absent", "--steps=6", REPLAYSHIM_PLANNER="absent")
	right(p, "absent", 6)
	ok("warning" not in p.stderr, "absent, of a name: nobody is started", p.stderr)
	p = train("audit", "--steps=6", REPLAYSHIM_MODE="audit")
	ok("need REPLAYSHIM_MODE=preserve" in p.stderr, "audit: a budget needs preserve", p.stderr)


for test in (good, hostile, plans, long_step, frozen, untrusted):
	if not sys.argv[1:] or test.__name__ in sys.argv[1:]:
		test()
done()
