#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The planner process seen from outside: replayctl planner, status, set and top, its socket, and whoever speaks nonsense to it.

Programs are those of tests/unit/test_serve_kill.c, which has the deaths; decisions are tests/unit/test_serve_plan.c's.
"""
import ctypes
import fcntl
import json
import os
import pty
import random
import re
import resource
import select
import shutil
import signal
import socket
import stat
import struct
import subprocess
import tempfile
import termios
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("RS_BUILD", os.path.join(TOP, "build"))
CTL = os.path.join(BUILD, "replayctl")
PROGRAM = os.path.join(BUILD, "tests", "test_serve_kill.t")
MAGIC = 0x31737265796C7072
HELLO, STATUS, SET, STOP = 1, 2, 3, 4
MIB = 1 << 20
PATIENCE = 60  # seconds that anything here is waited for: it comes at once, unless the machine stands still
count = failed = 0


def ok(condition, what, detail=""):
    global count, failed
    count += 1
    print(f"{'ok' if condition else 'not ok'} {count} - {what}", flush=True)
    if not condition:
        failed += 1
        for line in str(detail).splitlines()[:40]:
            print("#   " + line)
    return condition


class Home:
    """A runtime directory, and what happens in it."""

    def __init__(self, **kw):
        self.dir = tempfile.mkdtemp(prefix="rs-planner-")
        self.env = dict(os.environ, XDG_RUNTIME_DIR=self.dir, TERM="dumb", **kw)
        self.socket = f"{self.dir}/replayshim/planner.sock"
        self.started = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for p in self.started:
            if p.poll() is None:
                p.kill()
            p.wait()
            for f in (p.stdin, p.stdout):
                if f:
                    f.close()
        self.ctl("planner", "--stop")
        shutil.rmtree(self.dir)

    def ctl(self, *args, **kw):
        return subprocess.run([CTL, *args], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=PATIENCE, **kw)

    def planner(self, *args, **kw):
        """One in the foreground, listening."""
        p = subprocess.Popen([CTL, "planner", *args], env=self.env, stdin=subprocess.DEVNULL, **kw)
        self.started.append(p)
        wait(lambda: self.status() is not None)
        return p

    def program(self, **kw):
        p = subprocess.Popen([PROGRAM, self.socket, *(f"{k}={v}" for k, v in kw.items())], env=self.env, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
        self.started.append(p)
        return p

    def status(self):
        p = self.ctl("status", "--json")
        return json.loads(p.stdout) if p.returncode == 0 else None

    def programs(self):
        return (self.status() or {"programs": []})["programs"]

    def connect(self):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(PATIENCE)
        s.connect(self.socket)
        return s


def wait(test):
    end = time.monotonic() + PATIENCE
    while True:
        result = test()
        if result or time.monotonic() > end:
            return result
        time.sleep(0.02)


def line_of(p, pattern):
    """The next line of a program that the pattern matches."""
    end = time.monotonic() + PATIENCE
    p.text = getattr(p, "text", b"")
    while True:
        line, newline, rest = p.text.partition(b"\n")
        if newline:
            p.text = rest
            m = re.match(pattern, line.decode())
            if m:
                return m
        elif time.monotonic() > end:
            return None
        elif select.select([p.stdout], [], [], 0.1)[0]:
            more = os.read(p.stdout.fileno(), 65536)
            if not more:
                return None
            p.text += more


PLAN = r"plan (?P<generation>\d+) from (?P<start>\d+) budget (?P<budget>\d+) decisions (?P<decisions>\d+) " \
       r"infeasible (?P<infeasible>\d) torn 0$"


def request(ask, magic=MAGIC, major=1, pid=0, text=b""):
    return struct.pack("<QIIQ232s", magic, major, ask, pid, text)


def answer(s):
    """(error, text), or None if the connection ended."""
    data = b""
    while True:
        try:
            part = s.recv(65536)
        except ConnectionResetError:
            part = b""
        if not part:
            break
        data += part
    if len(data) < 24:
        return None
    magic, major, error, length = struct.unpack("<QIiQ", data[:24])
    assert magic == MAGIC and major == 1 and length == len(data) - 24, data
    return error, data[24:].decode()


def asked(h, data):
    """What the planner answers. Whoever says nothing for two seconds is sent away, also when it is the machine that stood still."""
    while True:
        s, begin, said = h.connect(), time.monotonic(), None
        if talk(s, data):
            said = answer(s)
        s.close()
        if said or time.monotonic() - begin < 1:
            return said


def talk(s, data):
    """To somebody who may have had enough of it."""
    try:
        s.sendall(data)
        return True
    except BrokenPipeError:
        return False


def is_over(pid):
    """It has ended, and nothing of it is open any more, whoever has to ask for its status."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def test_absent():
    with Home() as h:
        for args in (["status"], ["status", "--json"], ["top", "--once"], ["set", "all", "off=1"], ["planner", "--stop"]):
            p = h.ctl(*args)
            ok(p.returncode == 3 and "no planner is running" in p.stderr and not p.stdout,
               f"{' '.join(args)}: no planner", p)
        for args in (["planner", "--budget", "48"], ["planner", "--linger", "0"], ["planner", "x"], ["set", "5"],
                     ["set", "x", "off=1"], ["status", "x"], ["top", "x"], ["planner", "--name", "a/b"]):
            ok(h.ctl(*args).returncode == 2, f"{' '.join(args)}: usage")


def test_life():
    with Home() as h:
        detach = [CTL, "planner", "--detach", "--linger", "600"]
        p = subprocess.run(detach, env=h.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           timeout=PATIENCE)
        # Its output has been read to the end: a planner that kept the pipe would have kept us until it left.
        ok(p.returncode == 0 and not p.stdout + p.stderr, "--detach returns, and keeps no pipe", p)
        said = asked(h, request(STATUS))
        ok(said and said[0] == 0, "it listens by then", said)
        mode = stat.S_IMODE(os.stat(os.path.dirname(h.socket)).st_mode)
        ok(mode == 0o700, "its directory is the user's alone", oct(mode))
        first = h.status()["planner"]["pid"]
        p = h.ctl("planner")
        ok(p.returncode == 0 and "already" in p.stderr, "a second one says so and ends with 0", p)
        os.kill(first, signal.SIGKILL)
        ok(os.path.exists(h.socket) and wait(lambda: is_over(first) and h.ctl("status").returncode == 3),
           "a killed one leaves its socket")
        many = [subprocess.Popen(detach, env=h.env, stderr=subprocess.PIPE, text=True) for _ in range(8)]
        said = [m.communicate(timeout=PATIENCE)[1] for m in many]
        ok(all(m.returncode == 0 for m in many) and sum("already" in t for t in said) == 7,
           "eight at once: one wins, all end with 0", said)
        ok(h.status()["planner"]["pid"] != first, "and serves")
        leaving(h, detach)
        h.ctl("planner", "--stop")
        p = h.ctl("planner", "--detach", "--linger", "1")
        ok(p.returncode == 0 and wait(lambda: h.ctl("status").returncode == 3) and not os.path.exists(h.socket),
           "nobody comes: it leaves, and its socket with it")
        p = h.planner("--name", "planner")
        p.terminate()
        ok(p.wait(PATIENCE) == 0 and not os.path.exists(h.socket), "told to end")
        p = h.planner()
        ok(h.ctl("planner", "--stop").returncode == 0 and p.wait(PATIENCE) == 0, "asked to end")


def leaving(h, detach):
    """Who asks it to leave hears of it when the next one may come; and whoever finds the lock taken, and nobody, waits."""
    libc, free = ctypes.CDLL(None), []
    with open(h.socket + ".lock", "w", encoding="utf-8") as lock:
        for _ in range(5):
            programs = [h.connect() for _ in range(30)]  # whose memory takes it a while to give back
            for s in programs:
                talk(s, request(HELLO))
            wait(lambda: len(h.programs()) == 30)
            said = asked(h, request(STOP))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                free.append(said[0] == 0 and not os.path.exists(h.socket))
            except BlockingIOError:
                free.append(False)
                break
            for s in programs:
                s.close()
            fcntl.flock(lock, fcntl.LOCK_UN)
            h.ctl(*detach[1:])
        ok(all(free), "stopped: by then another one may begin", free)
        h.ctl("planner", "--stop")
        fcntl.flock(lock, fcntl.LOCK_EX)
        watch = libc.inotify_init()
        libc.inotify_add_watch(watch, os.fsencode(lock.name), 8)  # IN_CLOSE_WRITE
        p = subprocess.Popen(detach, env=h.env, stderr=subprocess.PIPE, text=True)
        ok(select.select([watch], [], [], PATIENCE)[0], "another one has found the lock taken")
        os.close(watch)
        fcntl.flock(lock, fcntl.LOCK_UN)
    said = p.communicate(timeout=PATIENCE)[1]
    ok((p.returncode, said) == (0, "") and h.status(), "and nobody who listens: it is the next one", (p.returncode, said))


def test_directory():
    with Home() as h:
        os.mkdir(f"{h.dir}/replayshim")
        os.chmod(f"{h.dir}/replayshim", 0o777)
        p = h.ctl("planner", "--detach")
        ok(p.returncode == 3 and "not yours alone" in p.stderr, "a directory that is open to others is refused", p)
        p = h.ctl("status")
        ok(p.returncode == 3 and "not yours alone" in p.stderr, "by those who ask, too", p)
        os.chmod(f"{h.dir}/replayshim", 0o700)
        if os.geteuid() == 0:
            os.chown(f"{h.dir}/replayshim", 12345, 12345)
            ok(h.ctl("planner").returncode == 3, "another user's directory is refused")
            os.chown(f"{h.dir}/replayshim", 0, 0)
        os.rmdir(f"{h.dir}/replayshim")
        os.symlink("/tmp", f"{h.dir}/replayshim")
        ok(h.ctl("planner").returncode == 3, "a link is refused")
        os.unlink(f"{h.dir}/replayshim")
        h.env["XDG_RUNTIME_DIR"] = f"{h.dir}/not/there"
        p = h.ctl("planner", "--detach")
        ok(p.returncode == 3 and "cannot make" in p.stderr, "a place where nothing can be made", p)
        h.env["XDG_RUNTIME_DIR"] = h.dir
        h.env["XDG_RUNTIME_DIR"] = h.dir + "/" + "x" * 100
        ok(h.ctl("planner").returncode == 2, "a name too long for a socket")
        h.env["XDG_RUNTIME_DIR"] = h.dir
        os.mkdir(f"{h.dir}/replayshim", 0o700)
        os.mkdir(f"{h.dir}/replayshim/planner.sock.lock")
        p = h.ctl("planner")
        ok(p.returncode == 3 and "lock" in p.stderr, "no lock to be had", p)
        os.rmdir(f"{h.dir}/replayshim/planner.sock.lock")


def test_plans():
    with Home() as h:
        h.planner()
        p = h.program()
        ok(line_of(p, "connected"), "a program is served")
        m = line_of(p, PLAN)
        ok(m and int(m["budget"]) == 160 * MIB and m["infeasible"] == "0", "and gets a plan for what it asked for", m)
        q = h.ctl("set", str(p.pid), "budget=130MiB")
        m = line_of(p, PLAN)
        ok(q.returncode == 0 and m and int(m["budget"]) == 130 * MIB and m["generation"] == "2",
           "another budget: another plan, at run time", (q, m))
        h.ctl("set", "all", "off=1")
        ok(wait(lambda: h.programs()[0]["off"] is True), "off")
        h.ctl("set", str(p.pid), "off=0")
        ok(line_of(p, PLAN), "on again")
        q = h.ctl("set", "1", "off=1")
        ok(q.returncode == 3 and "no program" in q.stderr, "somebody who is not there", q)
        q = h.ctl("set", str(p.pid), "budget=130")
        ok(q.returncode == 2 and "SIZE" in q.stderr, "a size without its unit", q)
        h.ctl("set", str(p.pid), "budget=90MiB")
        m = line_of(p, PLAN)
        ok(m and m["infeasible"] == "1", "less than it needs: told so", m)
        text = h.ctl("status").stdout
        ok(wait(lambda: "infeasible" in h.ctl("top", "--once").stdout) and str(p.pid) in text and
           "client of rank 0" in text, "status and top for people", text)


def test_ranks():
    with Home() as h:
        h.planner("--budget", "400MiB")
        ranks = [h.program(job=5, rank=i, wanted=(150 + i) * MIB, more=i * MIB) for i in range(3)]
        def agreed():
            plans = [p["plan"] for p in h.programs()]
            return plans if len(plans) == 3 and all(p["agreement"] == plans[0]["agreement"] > 0 for p in plans) else []

        # The first of them may have been served before the others had come.
        plans = wait(agreed)
        ok(len(plans) == 3 and len({(p["agreement"], p["from_step"], p["budget"], p["peak"]) for p in plans}) == 1 and
           plans[0]["budget"] == 150 * MIB, "three ranks: one agreed plan, from one step, for the smallest budget", plans)
        generation = {p["pid"]: str(p["plan"]["generation"]) for p in h.programs()}
        last = []
        for r in ranks:
            seen = None
            while (m := line_of(r, PLAN)):
                seen = (m["start"], m["decisions"])
                if m["generation"] == generation[r.pid]:
                    break
            last.append(seen)
        ok(len(set(last)) == 1 and last[0], "each takes the same decisions", last)


def test_device():
    with Home() as h:
        h.planner("--budget", "400MiB")
        for n in (24, 8, 8):
            h.program(device=7, segments=n, wanted=0)
        sums = []

        def settled():
            budgets = [p["budget"] for p in h.programs()]
            sums.append(sum(budgets))
            return len(budgets) == 3 and min(budgets) > 110 * MIB
        ok(wait(settled) and max(sums) <= 400 * MIB, "three on a device: its budget is split, never exceeded", sums)


def test_lost():
    for more in range(20, -1, -1):
        with Home() as h:
            h.planner()
            p = h.program(flood=40)
            told, lost = line_of(p, PLAN), h.programs()[0]["lost"]
            if more and told and not lost["records"]:  # the planner was quicker
                continue
            ok(told, "a program that tells too much gets its plan")
            ok(0 < lost["records"] <= 41 * 9 - 256, "what was lost is counted", lost)
            ok(f"lost: {lost['records']} records" in h.ctl("status").stdout, "and shown", h.ctl("status").stdout)
            break


def test_no_memory():
    with Home() as h:
        h.planner(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536)))
        p = h.program()
        ok(line_of(p, "refused"), "no memory to share: the program is told")
        s = h.connect()
        s.sendall(request(HELLO))
        said = answer(s)
        ok(said and said[0] < 0 and "memory" in said[1], "in an answer", said)
        ok(h.status()["programs"] == [], "and the planner goes on")


def test_nonsense():
    rng = random.Random(3)
    with Home() as h:
        h.planner()
        good = h.program()
        ok(line_of(good, PLAN), "a program among those that speak nonsense")
        fds = len(os.listdir(f"/proc/{h.status()['planner']['pid']}/fd"))
        for what, data in (("another magic number", request(STATUS, magic=1)), ("another version", request(STATUS, major=9)),
                           ("an unknown request", request(77)), ("noise", rng.randbytes(256))):
            said = asked(h, data)
            ok(said and said[0] < 0, f"{what}: {said and said[1]}", said)
        for n in range(60):
            s = h.connect()
            talk(s, (request(rng.choice((HELLO, SET, 0))) + rng.randbytes(600))[:rng.randrange(900)])
            s.close()
        said = asked(h, request(SET, text=b"x" * 232))
        ok(said and said[0] < 0, "a text without an end", said)
        s = h.connect()
        s.sendall(request(HELLO) + b"more than a program has to say")
        s.recv(24)
        try:
            end = s.recv(1)
        except ConnectionResetError:
            end = b""
        ok(end == b"", "a program that goes on talking is none")
        silent = [h.connect() for _ in range(100)]
        ok(h.status() is not None, "a hundred that say nothing: others are served")
        more = [h.connect() for _ in range(100)]
        ok(wait(lambda: h.status()["planner"]["dropped"] >= 200), "they have two seconds", h.status())
        for s in silent + more:
            s.close()
        for s in [h.connect() for _ in range(20)]:
            talk(s, request(STATUS))  # and the answer is not read
        ok(h.ctl("set", str(good.pid), "budget=130MiB").returncode == 0 and line_of(good, PLAN), "the program has what it needs")
        now = wait(lambda: len(os.listdir(f"/proc/{h.status()['planner']['pid']}/fd")) <= fds)
        ok(now, "no descriptor is left", os.listdir(f"/proc/{h.status()['planner']['pid']}/fd"))


def test_child_outlives():
    """A program's child holds the connection open after the program's end."""
    with Home() as h:
        h.planner()
        code = (f"import socket,os,time\ns=socket.socket(socket.AF_UNIX)\ns.connect({h.socket!r})\n"
                f"s.sendall({request(HELLO)!r})\ns.recv(24)\n"
                "if os.fork():\n os.read(0, 1)\n os._exit(0)\ntime.sleep(600)")
        p = subprocess.Popen(["python3", "-c", code], start_new_session=True, stdin=subprocess.PIPE)
        ok(wait(lambda: len(h.programs()) == 1), "a program with a child")
        p.stdin.close()
        p.wait(PATIENCE)
        ok(wait(lambda: not h.programs()), "its end is seen all the same")
        os.killpg(p.pid, signal.SIGKILL)


def test_top():
    with Home() as h:
        h.planner()
        p = h.program()
        line_of(p, PLAN)
        master, slave = pty.openpty()
        before = termios.tcgetattr(slave)
        top = subprocess.Popen([CTL, "top"], env=dict(h.env, TERM="xterm"), stdin=slave, stdout=slave, stderr=slave)
        text = b""
        end = time.monotonic() + PATIENCE
        while text.count(b"PROGRAM") < 2 and time.monotonic() < end:
            if select.select([master], [], [], 0.2)[0]:
                text += os.read(master, 65536)
        ok(text.count(b"\x1b[H\x1b[J") >= 2 and b"client of rank 0" in text, "top draws the screen again each second", text)
        os.write(master, b"q")
        wait(lambda: select.select([master], [], [], 0)[0] and os.read(master, 65536) and False or top.poll() is not None)
        ok(top.wait(PATIENCE) == 0 and termios.tcgetattr(slave) == before, "q quits, and the terminal is as before")
        os.close(master)
        os.close(slave)
        top = subprocess.Popen([CTL, "top"], env=h.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        lines = [top.stdout.readline() for _ in range(6)]
        top.kill()
        top.communicate()
        ok(sum(line.startswith("planner ") for line in lines) == 2 and not any("\x1b" in line for line in lines),
           "elsewhere it is plain text", lines)


def keys_of(value):
    if isinstance(value, dict):
        for k, v in value.items():
            yield k
            yield from keys_of(v)
    elif isinstance(value, list):
        for v in value:
            yield from keys_of(v)


def test_documented():
    with open(f"{TOP}/planner/README.md", encoding="utf-8") as f:
        readme = f.read()
    with Home() as h:
        h.planner()
        line_of(h.program(job=3), PLAN)
        keys = set(keys_of(h.status()))
    missing = sorted(k for k in keys if f"`{k}`" not in readme)
    ok(len(keys) > 40 and not missing, "each field of the status is in planner/README.md", missing)


for test in (test_absent, test_life, test_directory, test_plans, test_ranks, test_device, test_lost, test_no_memory,
             test_nonsense, test_child_outlives, test_top, test_documented):
    test()
print(f"1..{count}")
raise SystemExit(failed != 0)
