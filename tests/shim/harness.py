# SPDX-License-Identifier: MIT
"""What the tests of the preloaded library share: TAP, building small programs, running them with and without it."""
import atexit
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("RS_BUILD", TOP / "build"))
LIBRARY = BUILD / "libreplayshim.so"
SIM = BUILD / "simcuda"
CC = os.environ.get("CC", "gcc")
SANITIZED = bool(os.environ.get("RS_SAN", "").strip())
PATIENCE = 60  # seconds that something is waited for which comes at once, unless the machine stands still

_count, _failed = 0, 0
_dir = tempfile.TemporaryDirectory()
tmp = pathlib.Path(_dir.name)


def ok(condition, name, diag=""):
	global _count, _failed
	_count += 1
	print(f"{'' if condition else 'not '}ok {_count} - {name}", flush=True)
	if not condition:
		_failed += 1
		for line in str(diag).splitlines()[:40]:
			print(f"#   {line}")
	return condition


def same(got, want, name):
	return ok(got == want, name, f"got  {got!r}\nwant {want!r}")


def done():
	print(f"1..{_count}", flush=True)
	sys.exit(1 if _failed or not _count else 0)


def cc(source, name, *flags, text=None):
	"""Compile a source of tests/shim, or text, into the temporary directory."""
	path = tmp / f"{name}.c" if text is not None else TOP / "tests" / "shim" / source
	if text is not None:
		path.write_text(text)
	out = tmp / name
	subprocess.run([CC, "-w", "-g", "-std=gnu11", "-o", out, path, *flags, "-ldl", "-lpthread"], check=True)
	return out


def null_driver():
	"""A folder with a libcuda.so.1 that has every function of the library's lists, and does nothing."""
	folder = tmp / "null"
	folder.mkdir()
	subprocess.run([CC, "-w", "-O2", "-fno-ipa-icf", "-std=gnu11", "-shared", "-fPIC", "-fvisibility=hidden", f"-I{TOP}",
	                "-Wl,-soname,libcuda.so.1", "-Wl,-Bsymbolic", "-o", folder / "libcuda.so.1",
	                *(TOP / "tests" / "shim" / f"{n}.c" for n in ("null_driver", "null_all", "null_proc"))], check=True)
	return folder


def link_flags():
	return [f"-L{SIM}", "-lcuda"]


def environment(tool=True, sim=True, preload=(), **variables):
	"""tool: under the library; sim: on the simulated device."""
	env = {k: v for k, v in os.environ.items()
	       if not k.startswith(("REPLAYSHIM_", "SIMCUDA_", "NVTX_")) and k not in ("PYTHONPATH", "LD_PRELOAD")}
	if sim:
		env["LD_LIBRARY_PATH"] = str(SIM)
	libraries = [str(p) for p in preload]
	if tool:
		libraries.insert(0, str(LIBRARY))
	# The simulated device is instrumented, too: its sanitizer has to be there before it.
	if os.environ.get("RS_SAN_PRELOAD") and (libraries or sim):
		libraries.insert(0, os.environ["RS_SAN_PRELOAD"])
	if libraries:
		env["LD_PRELOAD"] = ":".join(libraries)
	env.update({k: str(v) for k, v in variables.items()})
	return env


def run(command, preexec_fn=None, **where):
	"""A finished process; `where` as in environment. Output as text."""
	return subprocess.run([str(c) for c in command], env=environment(**where), stdout=subprocess.PIPE,
	                      stderr=subprocess.PIPE, text=True, errors="replace", timeout=600 if SANITIZED else 120, cwd=tmp,
	                      preexec_fn=preexec_fn)


def start(command, cwd=None, **where):
	"""A running process whose stderr can be read; its stdout goes nowhere."""
	return subprocess.Popen([str(c) for c in command], env=environment(**where), stdout=subprocess.DEVNULL,
	                        stderr=subprocess.PIPE, text=True, errors="replace", cwd=cwd or tmp)


def until(condition, seconds=PATIENCE):
	end = time.monotonic() + seconds
	while not (found := condition()) and time.monotonic() < end:
		time.sleep(0.02)
	return found


class Held:
	"""A running client that makes steps for as long as a file is there (--hold=FILE) and prints a line for each."""

	def __init__(self, name, command, **where):
		self.flag, self.out, self.err = (tmp / f"{name}.{what}" for what in ("hold", "stdout", "stderr"))
		self.flag.write_text("")
		with open(self.out, "w") as out, open(self.err, "w") as err:
			self.process = subprocess.Popen([*map(str, command), f"--hold={self.flag}"], env=environment(**where), stdout=out,
			                                stderr=err, cwd=tmp)
		self.pid = self.process.pid
		atexit.register(self.process.kill)

	def lines(self):
		return self.out.read_text().split("\n")[:-1]

	def stderr(self):
		return self.err.read_text(errors="replace")

	def sees(self, condition):
		return until(lambda: condition() or self.process.poll() is not None) and bool(condition())

	def goes_on(self, steps):
		"""For so many whole steps from now."""
		least = len(self.lines()) + 1 + steps
		return self.sees(lambda: len(self.lines()) >= least)

	def let_go(self):
		"""(stdout, exit status, stderr) when it has ended, which it does by itself."""
		self.flag.unlink()
		self.process.wait(timeout=600 if SANITIZED else 120)
		return self.out.read_text(), self.process.returncode, self.stderr()


def events(directory):
	"""Whole lines only: it may just be writing."""
	path = pathlib.Path(directory) / "events.jsonl"
	return [json.loads(line) for line in path.read_text().split("\n")[:-1]] if path.exists() else []


def stats(directory):
	lines = [e for e in events(directory) if e["t"] == "stats"]
	return lines[-1] if lines else {}


def calls(directory):
	"""Of all lines: a long list comes in several."""
	merged = {}
	for e in events(directory):
		merged.update(e.get("calls", {}))
	return merged
