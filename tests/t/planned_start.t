#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Starting the planner from inside a program: the program must not notice, and the planner gets nothing of it.

replayctl is a stand-in beside a copy of the library; it writes down what it was given, and goes on for a while as its own
child, as `replayctl planner --detach` does.
"""
import json
import os
import pathlib
import shutil
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "shim"))
from harness import LIBRARY, TOP, cc, done, environment, link_flags, ok, run, same, tmp

STAND_IN = f"""#!{sys.executable} -IS
import json, os, sys, time
status = dict(line.split(None, 1) for line in open("/proc/self/status") if len(line.split()) > 1)
facts = dict(argv=sys.argv[1:], env=dict(os.environ), cwd=os.getcwd(), pid=os.getpid(),
             fds=[os.readlink(f"/proc/self/fd/{{f}}") for f in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{{f}}")],
             signals={{k: int(status[k + ":"], 16) for k in ("SigBlk", "SigIgn")}})
with open("DIR/facts.new", "w") as f:
	json.dump(facts, f)
if os.fork():
	os._exit(0)
os.setsid()
with open("DIR/daemon", "w") as f:
	f.write(str(os.getpid()))
os.rename("DIR/facts.new", "DIR/facts")
time.sleep(60)
"""

PROGRAM = r"""
#define _GNU_SOURCE
#include "shim/include/replayshim.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
extern int cuInit(), cuCtxCreate_v2(), cuCtxSynchronize();
static volatile int signals, forks;
static void on_child(int sig) { signals++; }
static void on_fork(void) { forks++; }
static void *waiter(void *arg)
{
	*(int *)arg = wait(NULL) < 0 ? errno : 0; /* until the program's own child ends */
	return NULL;
}
int main(int argc, char **argv)
{
	int ends[2], found = -1, mine, err;
	sigset_t set, now;
	void *ctx;
	pthread_t thread;
	if (argc > 1)
		prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	pipe(ends);
	signal(SIGCHLD, on_child);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGUSR2, on_child);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	pthread_atfork(on_fork, on_fork, on_fork);
	if (!(mine = fork())) {
		char c;
		close(ends[1]);
		read(ends[0], &c, 1);
		_exit(0);
	}
	forks = 0;
	pthread_create(&thread, NULL, waiter, &found);
	errno = 77;
	cuInit(0);
	err = errno;
	cuCtxCreate_v2(&ctx, 0, 0);
	for (int i = 0; i < 20; i++) {
		replayshim_step(i);
		usleep(20000);
	}
	sigprocmask(SIG_BLOCK, NULL, &now);
	printf("%d %d %d %d %d ", err, signals, forks, found, sigismember(&now, SIGUSR1));
	printf("%d ", sigismember(&now, SIGTERM) + sigismember(&now, SIGCHLD));
	fflush(stdout);
	close(ends[1]);
	pthread_join(thread, NULL);
	printf("%d %d ", found, signals);
	mine = wait(NULL);
	printf("%d %d\n", mine, errno == ECHILD);
	return 0;
}
"""

program = cc(None, "starts", f"-I{TOP}", *link_flags(), text=PROGRAM)


def installed(name, library, ctl):
	"""A copy of the library, and the stand-in, where they would be installed."""
	top = tmp / name
	for path in (library, ctl):
		(top / path).parent.mkdir(parents=True, exist_ok=True)
	shutil.copy(LIBRARY, top / library)
	if ctl:
		(top / ctl).write_text(STAND_IN.replace("DIR", str(top)))
		(top / ctl).chmod(0o755)
	return top


def start(top, library, *args, **variables):
	where = dict(LD_PRELOAD=top / library, REPLAYSHIM_MODE="preserve", REPLAYSHIM_BUDGET="1GiB", REPLAYSHIM_OUT=top / "out.%p",
	             REPLAYSHIM_QUIET=1, XDG_RUNTIME_DIR=top, MINE="yes", PYTHONPATH="/mine", SIMCUDA_MEMORY="1G")
	if os.environ.get("RS_SAN_PRELOAD"):
		where["LD_PRELOAD"] = f"{os.environ['RS_SAN_PRELOAD']}:{top / library}"
	where.update(variables)
	return run([program, *args], tool=False, **where)


def shown(p):
	"""What the program printed. A thread sanitizer puts off the call of a handler, and loses it when its thread ends."""
	words = p.stdout.split(" ")
	if "tsan" in os.environ.get("RS_SAN", "") and len(words) > 7:
		words[7] = "1"
	return " ".join(words)


def facts_of(top):
	for _ in range(1200):
		if (top / "facts").exists():
			os.kill(int((top / "daemon").read_text()), signal.SIGKILL)
			return json.loads((top / "facts").read_text())
		time.sleep(0.05)
	return None


for name, library, ctl in (("build", "libreplayshim.so", "replayctl"), ("prefix", "lib/libreplayshim.so", "bin/replayctl"),
                           ("multiarch", "lib/x86_64-linux-gnu/libreplayshim.so", "bin/replayctl")):
	top = installed(name, library, ctl)
	begun = time.monotonic()
	p = start(top, library)
	took = time.monotonic() - begun
	same(shown(p), "77 0 0 -1 1 0 0 1 -1 1\n",
	     f"{name}: errno, signals, atfork handlers, wait() and mask of the program are its own")
	same((p.returncode, p.stderr), (0, ""), f"{name}: and nothing is said")
	ok(took < 30, f"{name}: its output ends with it", took)
	facts = facts_of(top)
	if not ok(facts, f"{name}: the planner has been started"):
		continue
	same(facts["argv"], ["planner", "--detach", "--linger", "60"], f"{name}: as it should be")
	same(sorted(set(facts["fds"])), ["/dev/null"], f"{name}: with no descriptor of the program's")
	same(facts["cwd"], "/", f"{name}: in no folder that may have to go")
	same(facts["signals"]["SigBlk"], 0, f"{name}: no signal blocked")
	ok(not facts["signals"]["SigIgn"] & (1 << signal.SIGUSR2 - 1), f"{name}: and none ignored by inheritance", facts["signals"])
	env = facts["env"]
	ok(env.get("MINE") == "yes" and not [k for k in env if k.startswith(("REPLAYSHIM", "NVTX", "LD_PRELOAD", "PYTHONPATH"))],
	   f"{name}: the environment without what would load the library", env)

top = installed("reaper", "libreplayshim.so", "replayctl")
p = start(top, "libreplayshim.so", "reaper")
same(shown(p), "77 0 0 -1 1 0 0 1 -1 1\n", "a process that adopts orphans: nothing is started")
ok("would become a child of this process" in p.stderr and not (top / "facts.new").exists(), "and that is said", p.stderr)
top = installed("missing", "libreplayshim.so", "replayctl")
(top / "replayctl").unlink()
p = start(top, "libreplayshim.so")
ok(shown(p) == "77 0 0 -1 1 0 0 1 -1 1\n" and p.stderr.count("\n") == 1 and "no replayctl beside the library" in p.stderr,
   "no replayctl: one line says so", p.stdout + p.stderr)
(top / "replayctl").write_text("#!/nonexistent\n")
(top / "replayctl").chmod(0o755)
p = start(top, "libreplayshim.so")
ok(shown(p) == "77 0 0 -1 1 0 0 1 -1 1\n" and "replayctl: cannot be started: No such file" in p.stderr,
   "one that cannot be executed: one line says so", p.stdout + p.stderr)
p = start(top, "libreplayshim.so", REPLAYSHIM_PLANNER="mine")
same(p.stderr, "", "a planner of another name is not started")
p = start(top, "libreplayshim.so", REPLAYSHIM_BUDGET="none")
same(p.stderr, "", "nor is one without a budget")
done()
