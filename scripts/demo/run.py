#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`make demo`: the main job of replayshim, end to end, on a machine without a GPU.

train.py runs five times on the simulated device: with activations kept (the reference), recomputed without the tool,
recomputed under audit, recomputed under preserve, and kept or recomputed as plans for a budget say. Prints what equals
the reference byte for byte, what the audit found, and one last line: DEMO OK (status 0) or DEMO FAILED: why (status 1).

Environment: RS_BUILD (the build directory), DEMO_SCHED=eager|lazy|random:<seed> (order of the simulated device's
queues), DEMO_STEPS. Results stay in $RS_BUILD/demo.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("RS_BUILD", HERE.parent.parent / "build")).resolve()
OUT = BUILD / "demo"
STEPS = int(os.environ.get("DEMO_STEPS", "8"))
SEGMENTS = 4  # replays of one training step
PARTS = ("loss", "gradients", "weights", "state")
TIMEOUT = 900

# What the audit must name, by the names that the program itself gives its tensors.
HAZARDS = {"running statistics": ("running_mean", "running_var"), "random counters": ("rng.counter",),
	"memory-bank queue": ("bank.queue",)}


class Failed(Exception):
	pass


class Run:
	"""One training process, its results and, under the tool, its run directory."""

	def __init__(self, name, text, recompute, mode=None, **options):
		self.name, self.text, self.mode = name, text, mode
		self.dir = OUT / name
		self.rs = self.dir / "replayshim"
		self.results = self.dir / "results.jsonl"
		self.command = [sys.executable, str(HERE / "train.py"), "--steps", str(STEPS), "--out", str(self.results)]
		self.options = options
		if recompute:
			self.command.append("--recompute=" + recompute)
		self.steps, self.records, self.findings, self.stacks = [], [], [], {}

	def environment(self):
		env = {k: v for k, v in os.environ.items() if not k.startswith("REPLAYSHIM_") and k not in ("LD_PRELOAD", "JIT")}
		libraries = [str(BUILD / "simcuda")] + [p for p in (env.get("LD_LIBRARY_PATH"),) if p]
		env.update(DEV="CUDA:PTX", LD_LIBRARY_PATH=":".join(libraries), CACHEDB=str(self.dir / "cache.db"), CCACHE="0",
			PARALLEL="0", TC="0", PYTHONDONTWRITEBYTECODE="1")
		if os.environ.get("DEMO_SCHED"):
			env["SIMCUDA_SCHED"] = os.environ["DEMO_SCHED"]
		if self.mode:
			env.update(LD_PRELOAD=str(BUILD / "libreplayshim.so"), REPLAYSHIM_MODE=self.mode,
				REPLAYSHIM_OUT=str(self.rs), **self.options)
		return env

	def start(self):
		shutil.rmtree(self.dir, ignore_errors=True)
		self.dir.mkdir(parents=True)
		self.log = open(self.dir / "output.txt", "wb")
		self.errors = open(self.dir / "errors.txt", "wb")
		self.begun = time.monotonic()
		self.process = subprocess.Popen(self.command, env=self.environment(), stdin=subprocess.DEVNULL,
			stdout=self.log, stderr=self.errors)

	def finish(self):
		try:
			status = self.process.wait(TIMEOUT)
		except subprocess.TimeoutExpired:
			self.process.kill()
			self.process.wait()
			raise Failed(f"{self.name}: still running after {TIMEOUT} s") from None
		finally:
			self.log.close()
			self.errors.close()
		if status:
			tail = (self.dir / "errors.txt").read_text(errors="replace").splitlines()[-15:]
			raise Failed("\n".join([f"{self.name}: train.py ended with status {status}", *tail]))
		self.steps = read_lines(self.results)
		if len(self.steps) != STEPS:
			raise Failed(f"{self.name}: {len(self.steps)} steps of {STEPS} in {self.results}")
		if self.mode:
			self.records = [r for r in read_lines(self.rs / "records.jsonl") if r.get("t") == "replay"]
			events = read_lines(self.rs / "events.jsonl")
			self.findings = [e for e in events if e.get("t") == "finding"]
			self.stacks = {e["stack"]: e for e in events if e.get("t") == "stack"}

	def outcomes(self):
		counts = {}
		for r in self.records:
			counts[r["outcome"]] = counts.get(r["outcome"], 0) + 1
		return counts


def read_lines(path):
	try:
		with open(path, encoding="utf-8") as f:
			return [json.loads(line) for line in f]
	except OSError as e:
		raise Failed(f"{path}: {e.strerror}") from None
	except ValueError as e:
		raise Failed(f"{path}: not JSON lines: {e}") from None


def launch(runs):
	"""All of them at once: they share nothing, and each is one Python thread for most of its time."""
	try:
		for r in runs:
			r.start()
		while any(r.process.poll() is None for r in runs) and time.monotonic() < runs[0].begun + TIMEOUT:
			for r in runs:
				if r.process.poll() is not None and not hasattr(r, "seconds"):
					r.seconds = time.monotonic() - r.begun
			time.sleep(0.05)
		for r in runs:
			r.seconds = getattr(r, "seconds", time.monotonic() - r.begun)
			r.finish()
	finally:
		for r in runs:
			if hasattr(r, "process") and r.process.poll() is None:
				r.process.kill()
				r.process.wait()


def equal_steps(run, other, part):
	return sum(a[part] == b[part] for a, b in zip(run.steps, other.steps))


def table(runs):
	reference = runs[0]
	head = f"{'run':<12}{'steps':>5}  {'loss first, last':<18}" + "".join(f"{p:>13}" for p in PARTS)
	print(f"\n{head}  {'replay records':<34}{'seconds':>8}")
	for r in runs:
		same = ["reference"] * len(PARTS) if r is reference else \
			[f"{equal_steps(r, reference, p)}/{STEPS} equal" for p in PARTS]
		losses = f"{r.steps[0]['loss_value']:.4f}, {r.steps[-1]['loss_value']:.4f}"
		records = ", ".join(f"{n} {o}" for o, n in sorted(r.outcomes().items())) or "-"
		print(f"{r.name:<12}{len(r.steps):>5}  {losses:<18}" + "".join(f"{s:>13}" for s in same) +
			f"  {records:<34}{r.seconds:>8.1f}")
	print("Equal: the same bytes as the reference, in how many steps. Seconds are wall time of runs that share this\n"
		"machine, on a simulated device: they say nothing about a GPU.\n")


def report(run):
	"""The audit as the user sees it."""
	done = subprocess.run([str(BUILD / "replayctl"), "report", str(run.rs)], stdout=subprocess.PIPE,
		stderr=subprocess.STDOUT, check=False)
	print(f"$ {os.path.relpath(BUILD / 'replayctl')} report {os.path.relpath(run.rs)}", flush=True)
	print(done.stdout.decode(errors="replace"))
	if done.returncode not in (0, 1):  # 1: hazards were found
		raise Failed(f"replayctl report ended with status {done.returncode}")


def check(reference, unprotected, audited, preserved, planned):
	"""Raises Failed with the first condition of the demo that does not hold."""
	if all(equal_steps(unprotected, reference, p) == STEPS for p in ("gradients", "state")):
		raise Failed("the unprotected run is right: there is no hazard to show")
	for what in ("results.jsonl", "output.txt"):
		if (audited.dir / what).read_bytes() != (unprotected.dir / what).read_bytes():
			raise Failed(f"the audit changed the program: {audited.dir / what} differs from {unprotected.dir / what}")
	named = {f.get("state", {}).get("name") or "" for f in audited.findings}
	for what, parts in HAZARDS.items():
		for part in parts:
			if not any(part in n for n in named):
				raise Failed(f"the audit does not name the {what} ({part}); it names {sorted(named)}")
	for f in audited.findings:
		stack = audited.stacks.get(f.get("writer", {}).get("stack"), {})
		if f["code"] == "RS010" and not any(file == str(HERE / "train.py") for file, _, _ in stack.get("python", [])):
			raise Failed(f"the audit does not say where in train.py it happened: {f}")
	for run in (preserved, planned):
		for part in (*PARTS, "optimizer"):
			n = equal_steps(run, reference, part)
			if n != STEPS:
				raise Failed(f"{run.name}: {part} equal in {n} of {STEPS} steps")
	if set(planned.outcomes()) - {"match"}:  # how many there are depends on when the first plan comes
		raise Failed(f"planned: records are {planned.outcomes()}")
	if preserved.outcomes() != {"match": STEPS * SEGMENTS}:
		raise Failed(f"preserved: records are {preserved.outcomes()}, not {STEPS * SEGMENTS} match")


def main():
	sockets = tempfile.mkdtemp(prefix="replayshim-")  # of a planner of its own; a path in OUT may be too long for one
	runs = [Run("reference", "activations kept", None), Run("unprotected", "recomputed, without the tool", "all"),
		Run("audited", "recomputed, under audit", "all", "audit"),
		Run("preserved", "recomputed, under preserve", "all", "preserve"),
		Run("planned", "kept or recomputed as plans for 1 GiB say", "asked", "preserve", REPLAYSHIM_BUDGET="1GiB",
			XDG_RUNTIME_DIR=sockets)]
	sched = os.environ.get("DEMO_SCHED")
	print("replayshim demo: train.py on a simulated device" + (f", queues in order {sched}" if sched else ""))
	for r in runs:
		print(f"  {r.name:<12}{r.text}")
	sys.stdout.flush()
	try:
		for path in ("libreplayshim.so", "replayctl", "simcuda/libcuda.so.1"):
			if not (BUILD / path).exists():
				raise Failed(f"{BUILD / path} is missing; `make demo` builds it")
		launch(runs[:2])
		launch(runs[2:])
		table(runs)
		report(runs[2])
		check(*runs)
	except Failed as e:
		print(f"DEMO FAILED: {e}")
		return 1
	finally:
		if (BUILD / "replayctl").exists():
			subprocess.run([str(BUILD / "replayctl"), "planner", "--stop"], env={**os.environ, "XDG_RUNTIME_DIR": sockets},
				stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
		shutil.rmtree(sockets, ignore_errors=True)
	print("DEMO OK")
	return 0


if __name__ == "__main__":
	sys.exit(main())
