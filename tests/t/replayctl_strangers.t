#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""replayctl in odd places: closed descriptors, outputs that are no files, names that are no text, data of which a part cannot
be read, a disk that is full."""
import json
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "shim"))
from harness import BUILD, SANITIZED, cc, done, environment, link_flags, ok, same, tmp, TOP

CTL = BUILD / "replayctl"
GIB = 1 << 30


def ctl(*args, closed=(), cwd=tmp, **kw):
	def prepare():
		for fd in closed:
			os.close(fd)

	kw.setdefault("stdout", subprocess.PIPE)
	return subprocess.run([CTL, *args], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment(tool=False), cwd=cwd,
	                      text=True, errors="surrogateescape", timeout=60, preexec_fn=prepare, **kw)


def save(path, events, records):
	os.makedirs(path)
	for name, lines in (("events.jsonl", events), ("records.jsonl", records)):
		with open(os.path.join(path, name), "w", encoding="utf-8") as f:
			f.writelines(json.dumps(dict(v=1, **line)) + "\n" for line in lines)
	return path


def replay(segment, outcome="match"):
	return {"t": "replay", "step": 1, "segment": segment, "invocation": 0, "replay": 1, "outcome": outcome, "entry": "equal",
	        "product": "equal", "after": "equal", "codes": [], "ranges": 1, "bytes": 64, "ns": 1000}


def costs():
	"""One segment that can be planned for."""
	at = {"live_forward": GIB, "peak_forward": 2 * GIB, "live_replay": GIB, "end_replay": 2 * GIB, "peak_backward": 2 * GIB}
	time = {"median_ns": 1000000, "error_ns": 1, "n": 9}
	segment = {"t": "cost", "segment": "layer", "invocation": 0, "order": 0, "steps": 9, "retains": True, "unsafe": False,
	           "replayed": True, "has_retained": False, "forward": time, "replay": time, "whole_bytes": 4096, "whole_pieces": 1,
	           "kept_bytes": 4096, "kept_pieces": 1, "own_bytes": 4096, "own_pieces": 1, "replays": 1, **at}
	return [segment, {"t": "rate", "kind": "copy", "n": 9, "bytes": GIB, "each_ns": 6000, "gib_ns": 700000},
	        {"t": "usage", "steps": 9, "turn_bytes": GIB, "outside_bytes": GIB, "segments": 1}]


def closed_descriptors(data):
	"""What is printed must not land in a file of ours that got the number, and is not taken for printed."""
	for args in (("report", data), ("records", data), ("options",), ("explain",), ("entrypoints",), ("version",), ("help",), ("map",),
	             ("plan", data, "--budget", "8GiB"), ("records", "--format=json", data)):
		p = ctl(*args, closed=(1,))
		ok(p.returncode != 0 and "cannot write: Bad file descriptor" in p.stderr, f"{args[0]} without stdout fails", p.stderr)
	out = tmp / "plan.json"
	p = ctl("plan", data, "--budget", "8GiB", "-o", out, closed=(0, 1, 2))
	ok(json.loads(out.read_text())["plan_version"] and p.returncode == 3, "a plan file is one, whatever is closed", p.returncode)
	p = ctl("audit", "--", "sh", "-c", "[ -e /dev/fd/0 ] && exit 4; [ -e /dev/fd/1 ] && exit 5; exit 6", closed=(0, 1))
	same(p.returncode, 6, "a command finds closed what was closed")
	with open("/dev/full", "w", encoding="utf-8") as full:
		for args in (("report", data), ("map",), ("plan", data, "--budget", "8GiB", "--json")):
			p = ctl(*args, stdout=full)
			ok(p.returncode != 0 and "cannot write: No space left" in p.stderr, f"{args[0]} onto a full disk fails", p.stderr)
	for args in (("entrypoints",), ("map", "--format", "csv"), ("records", data)):
		p = subprocess.Popen([CTL, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(tool=False))
		p.stdout.read(1)
		p.stdout.close()
		err = p.stderr.read()
		ok(p.wait() in (0, -signal.SIGPIPE) and not err, f"{args[0]} | head: silent", err)


def drain(path, into):
	with open(path, encoding="utf-8") as f:
		into.append(f.read())


def outputs(data, contract):
	"""-o names something that is no file: it is written to, and stays what it is."""
	for args in (("plan", data, "--budget", "8GiB", "-o"), ("contract", contract, "-o"), ("contract", contract, "--force", "-o"), ("map", "-o")):
		pipe, got = tmp / "pipe", []
		os.mkfifo(pipe)
		reader = threading.Thread(target=drain, args=(pipe, got))
		reader.start()
		p = ctl(*args, pipe)
		if not stat.S_ISFIFO(os.stat(pipe).st_mode):
			os.unlink(pipe)
			os.mkfifo(pipe)
			open(pipe, "w", encoding="utf-8").close()
		reader.join()
		ok(p.returncode == 0 and len(got[0]) > 50, f"{' '.join(map(str, args[:1] + args[2:]))} PIPE", p.stderr)
		os.unlink(pipe)
		target, link = tmp / "target", tmp / "link"
		target.write_text("old")
		link.symlink_to("target")
		p = ctl(*args, link)
		if args[0] == "contract" and "--force" not in args:
			ok(p.returncode == 3 and "--force" in p.stderr and target.read_text() == "old", "a link to a file: --force", p.stderr)
		else:
			ok(p.returncode == 0 and link.is_symlink() and len(target.read_text()) > 50, f"{args[0]} -o LINK is followed", p.stderr)
		link.unlink()
		target.unlink()
		p = ctl(*args, tmp)
		ok(p.returncode == 3 and "Is a directory" in p.stderr, f"{args[0]} -o DIRECTORY is refused", p.stderr)
		name = tmp / ("n" * 250)
		p = ctl(*args, name)
		ok(p.returncode == 0 and name.exists(), f"{args[0]} -o with a name as long as can be", p.stderr)
		name.unlink()
	same([p.name for p in tmp.iterdir() if "replayshim." in p.name], [], "nothing is left lying about")
	for where in (tmp / "none" / "x.json", tmp):
		p = ctl("audit", "--contract", where, "--", "touch", tmp / "ran")
		ok(p.returncode == 125 and not (tmp / "ran").exists(), f"audit --contract {str(where)[-12:]}: said before the command runs",
		   p.stderr)


def job_directories():
	for name, word in (("", "No such file"), ("/" + "d" * 4200, "too long"), ("d" * 4200, "too long")):
		for command in ("run", "audit", "verify"):
			p = ctl(command, "-o", name, "--", "true")
			ok(p.returncode == 125 and word in p.stderr, f"{command} -o {name[:4]!r}...: {word}", p.stderr)


def odd_names():
	where = os.path.join(tmp, os.fsdecode(b"lat\xe9in"))
	long = "n" * 200
	save(where, [{"t": "end"}], [replay(long), replay("größe")])
	p = ctl("records", "--format=json", where)
	rows = json.loads(p.stdout)
	ok(len(rows) == 2 and rows[0]["path"].endswith("latéin") and rows[0]["segment"] == long, "a path that is no UTF-8: records as JSON",
	   p.stdout)
	p = ctl("report", "--format=json", where)
	ok(json.loads(p.stdout)["runs"][0]["path"].endswith("latéin"), "and the report", p.stdout[:300])
	p = ctl("records", where)
	widths = [len(line) for line in p.stdout.splitlines()]
	ok(len(widths) == 3 and widths[1] < 320, "a long segment's row is as long as it must be", widths)


def parts():
	"""Of two processes' data one cannot be read."""
	where = tmp / "parts"
	save(where / "a", [{"t": "end"}], [replay("block")])
	save(where / "b", [{"t": "end"}], [replay("block")])
	(where / "b" / "events.jsonl").unlink()
	(where / "b" / "events.jsonl").mkdir()
	p = ctl("report", "--format=json", where)
	runs = {r["path"][-1]: r for r in json.loads(p.stdout)["runs"]} if p.stdout else {}
	ok(len(runs) == 2 and runs["a"]["verdict"] == "clean" and runs["b"]["verdict"] == "cannot-tell"
	   and any("events.jsonl: Is a directory" in t for t in runs["b"]["problems"]), "the other one is reported, and which file it was",
	   p.stdout + p.stderr)
	p = ctl("records", where)
	ok(len(p.stdout.splitlines()) == 3 and "b/events.jsonl: Is a directory" in p.stderr, "and its records are there", p.stdout + p.stderr)
	if os.geteuid() == 0 and shutil.which("setpriv"):
		os.chmod(tmp, 0o755)
		save(where / "c", [{"t": "end"}], [replay("block")])
		os.chmod(where / "c" / "records.jsonl", 0)
		p = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", CTL, "report", where], env=environment(tool=False), text=True,
		                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
		ok("records.jsonl: Permission denied" in p.stdout or p.returncode == 126, "a file that may not be read is named", p.stdout + p.stderr)
	else:
		ok(True, "a file that may not be read # SKIP not root, or no setpriv")


def at_once():
	"""Two commands with one directory: each reports its own."""
	program = cc("stranger.c", "stranger", f"-I{TOP}", *link_flags())
	both = [subprocess.Popen([CTL, command, "-o", tmp / "both", "--", "sh", "-c", script, "sh", program], env=environment(tool=False),
	                         cwd=tmp, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
	        for command, script in (("audit", '"$1"; sleep 2'), ("verify", 'sleep 0.7; "$1" exec block 1'))]
	said = [p.communicate(timeout=100)[1] for p in both]
	ok("; 5 replays:" in said[0] and said[0].count("VERDICT") == 1, "an audit beside another command reports its own replays", said[0])
	ok("VERIFY SUMMARY: 6 match" in said[1], "and the other one its own", said[1])


EARLY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
int sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	static int told;
	if (sig == SIGTERM && !told++ && !strcmp(program_invocation_short_name, "replayctl"))
		kill(getpid(), SIGTERM);
	return ((int (*)(int, const struct sigaction *, struct sigaction *))dlsym(RTLD_NEXT, "sigaction"))(sig, act, old);
}
"""


def early():
	"""A signal that comes when the command has just been started."""
	if SANITIZED:
		ok(True, "a signal before it waits # SKIP a sanitizer has a sigaction of its own")
		return
	early = cc(None, "early.so", "-shared", "-fPIC", text=EARLY)
	p = subprocess.run([CTL, "audit", "-o", tmp / "early", "--", "sh", "-c", "trap 'kill $!; exit 9' TERM; sleep 60 >/dev/null 2>&1 & wait"],
	                   env=environment(tool=False, preload=[early]), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100)
	ok(p.returncode in (9, -15) and "AUDIT SUMMARY" in p.stderr, "a signal before it waits reaches the command, and there is a report",
	   (p.returncode, p.stderr))


def full_disk():
	"""A file system of 64 KiB that runs full while the program runs."""
	small = tmp / "small"
	small.mkdir()
	mounted = os.geteuid() == 0 and not subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", small],
	                                                   stderr=subprocess.DEVNULL).returncode
	if not mounted:
		ok(True, "a full disk # SKIP nothing can be mounted")
		return
	try:
		program = cc("stranger.c", "stranger", f"-I{TOP}", *link_flags())
		plain = subprocess.run([program, "alarm"], env=environment(tool=False), stdout=subprocess.PIPE, text=True)
		p = subprocess.run([CTL, "audit", "-o", small / "out", "--", program, "alarm"], env=environment(tool=False), text=True,
		                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100)
		ok(p.returncode == 0 and p.stdout == plain.stdout, "a full disk: the program does not feel it", p.stderr[-500:])
		ok("No space left on device" in p.stderr and "verdict" in p.stderr, "it is said once, and there is a report", p.stderr[-1500:])
		same(p.stderr.count("records are missing"), 1, "once")
		p = ctl("contract", tmp / "contract.json", "-o", small / "c.json")
		q = sorted(x.name for x in small.iterdir())
		ok(p.returncode == 3 and "No space left" in p.stderr and q == ["out"], "a contract that has no room: no file, and no part of one",
		   (p.stderr, q))
	finally:
		subprocess.run(["umount", small], check=False)


def main():
	data = save(tmp / "data", [{"t": "begin", "pid": 1, "argv": ["x"]}, *costs(), {"t": "end"}], [replay("layer")] * 50)
	program = cc("stranger.c", "stranger", f"-I{TOP}", *link_flags())
	p = ctl("audit", "-o", tmp / "learned", "--contract", tmp / "contract.json", "--", program)
	ok(p.returncode == 0 and (tmp / "contract.json").exists(), "a contract to work with", p.stderr[-500:])
	closed_descriptors(data)
	outputs(data, tmp / "contract.json")
	job_directories()
	odd_names()
	parts()
	at_once()
	early()
	full_disk()
	done()


main()
