#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The machinery around the tests: what counts as a passed run, scripts/deps with nothing there, make install, and
that the lists in the documentation are those of the tables."""
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("RS_BUILD", os.path.join(TOP, "build")))
count = failed = 0


def ok(condition, what, detail=""):
    global count, failed
    count += 1
    print(f"{'ok' if condition else 'not ok'} {count} - {what}", flush=True)
    if not condition:
        failed += 1
        for line in str(detail).splitlines()[-40:]:
            print("#   " + line)


def run(*args, env=None):
    full = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "HARNESS_ACTIVE")}
    full.update(env or {})
    p = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=full, cwd=TOP,
                       text=True, timeout=120)
    return p.returncode, p.stdout


def script(path, text):
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, 0o755)
    return path


def read(path):
    with open(os.path.join(TOP, path)) as f:
        return f.read()


def test_check(tmp):
    env = {"RS_BUILD": tmp}
    good = script(f"{tmp}/good.t", "#!/bin/sh\necho ok 1; echo 1..1\n")
    bad = script(f"{tmp}/bad.t", "#!/bin/sh\necho 'not ok 1 - reason'; echo '#   detail'; echo 1..1\n")
    skip = script(f"{tmp}/skip.t", "#!/bin/sh\necho '1..0 # SKIP no such machine'\n")
    slow = script(f"{tmp}/slow.t", "#!/bin/sh\nsleep 60\n")
    crash = script(f"{tmp}/crash.t", "#!/bin/sh\necho ok 1; echo 1..1; kill -SEGV $$\n")
    status, out = run("tests/check", good, skip, env=env)
    ok(status == 0 and out.rstrip().endswith("Result: PASS"), "a passed run ends in prove's closing line", out)
    status, out = run("tests/check", skip, env=env)
    ok(status == 1 and "no test ran" in out, "a run in which every test was skipped is a failure", out)
    status, out = run("tests/check", env=env)
    ok(status != 0, "a run without a test is a failure", out)
    status, out = run("tests/check", good, bad, env=env)
    ok(status != 0 and "#   detail" in out and "Result: FAIL" in out, "a failed test fails, and shows its lines", out)
    status, out = run("tests/check", slow, env={**env, "RS_TEST_TIMEOUT": "2"})
    ok(status != 0 and "(time limit)" in out, "a test that hangs is ended", out)
    status, out = run("tests/check", crash, env=env)
    ok(status != 0, "a test that crashes after its last line fails", out)
    env["REPLAYSHIM_MODE"] = env["SIMCUDA_SCHED"] = "x"
    status, out = run("tests/check", script(f"{tmp}/env.t", "#!/bin/sh\n[ -z \"$REPLAYSHIM_MODE$SIMCUDA_SCHED\" ] && echo ok 1"
                                            "; echo 1..1\n"), env=env)
    ok(status == 0, "the caller's settings do not reach the tests", out)


def test_deps(tmp):
    """With a path that holds only what a bare machine has, and a compiler that finds no header."""
    bin = f"{tmp}/bin"
    os.makedirs(bin)
    for name in ("bash", "sh", "env", "grep", "sed", "sort", "dirname", "cat", "cmp", "tr", "id", "mkdir", "rm"):
        os.symlink(shutil.which(name), f"{bin}/{name}")
    script(f"{bin}/nocc", "#!/bin/sh\nexit 1\n")
    script(f"{bin}/ar", "#!/bin/sh\n")
    env = {"PATH": bin, "CC": "nocc", "CUDA_HOME": f"{tmp}/cuda", "RS_PYTHON": ""}
    status, out = run("bash", "scripts/deps", "--check", "--into", f"{tmp}/into", "build", env=env)
    ok(status == 1 and "libjansson-dev" in out and "no cuda.h" in out, "--check names what is missing", out)
    ok(not os.path.exists(f"{tmp}/into"), "--check leaves nothing behind")
    status, out = run("bash", "scripts/deps", "--into", f"{tmp}/into", "build", env=env)
    ok(status == 1 and "no apt-get on this machine" in out, "without apt-get it says what to install", out)
    script(f"{bin}/apt-get", "#!/bin/sh\necho no network >&2; exit 100\n")
    script(f"{bin}/sudo", "#!/bin/sh\nexit 1\n")
    status, out = run("bash", "scripts/deps", "--into", f"{tmp}/into", "build", env=env)
    ok(status == 1 and ("is the network there?" in out or "no sudo" in out), "when apt-get fails it says so", out)
    status, out = run("bash", "scripts/deps", "--check", "odd", env=env)
    ok(status == 1 and "unknown argument 'odd'" in out, "an unknown group is refused", out)
    script(f"{bin}/nocc", "#!/bin/sh\ncat >/dev/null\n")
    os.makedirs(f"{tmp}/cuda/include/nvtx3")
    for line in read("scripts/headers.txt").splitlines():
        if line and not line.startswith("#"):
            open(f"{tmp}/cuda/include/{line.split()[0]}", "w").close()
    os.remove(f"{bin}/apt-get")
    status, out = run("bash", "scripts/deps", "--into", f"{tmp}/into", "build", env=env)
    ok(status == 0 and not out, "when all is there it does nothing and needs nothing", out)


def test_install(tmp):
    wanted = ("bin/replayctl", "lib/libreplayshim.so", "share/man/man1/replayctl.1")
    for path in (f"{BUILD}/replayctl", f"{BUILD}/libreplayshim.so"):
        if not os.path.exists(path):
            ok(False, f"{path} has been built")
            return
    status, out = run("make", "-o", f"{BUILD}/replayctl", "-o", f"{BUILD}/libreplayshim.so", f"O={BUILD}", "DEPS=no",
                      f"DESTDIR={tmp}", "PREFIX=/opt/rs", "install")
    ok(status == 0, "make install", out)
    for path in wanted:
        ok(os.path.isfile(f"{tmp}/opt/rs/{path}"), f"installed: {path}", out)
    for header in os.listdir(f"{TOP}/shim/include"):
        ok(os.path.isfile(f"{tmp}/opt/rs/include/{header}"), f"installed: include/{header}")
    hook = f"{tmp}/opt/rs/lib/replayshim/python/sitecustomize.py"
    ok(os.path.isfile(hook) and not os.stat(hook).st_mode & stat.S_IXUSR, "installed: the Python hook")
    p = subprocess.run([f"{tmp}/opt/rs/bin/replayctl", "run", "--mode=off", "--", "/bin/sh", "-c", 'echo "$LD_PRELOAD"'],
                       stdout=subprocess.PIPE, text=True, timeout=60)
    ok(p.stdout.split(":")[0].strip() == os.path.realpath(f"{tmp}/opt/rs/lib/libreplayshim.so"),
       "the installed replayctl finds the installed library", p.stdout)


def test_documents():
    readme, manual = read("README.md"), read("scripts/man/replayctl.1")
    for name in re.findall(r'^C\("(\w+)"', read("planner/commands.def"), re.M):
        ok(re.search(rf"`{name}[` ]", readme) and re.search(rf"\.(It )?Cm .*\b{name}\b", manual),
           f"command {name}: in README and manual page")
    options = re.findall(r"^OPT\(\w+, (\w+),", read("tracker/options.def"), re.M)
    ok(len(options) > 5, "the table of options has been read")
    for name in options:
        ok(f"REPLAYSHIM_{name}" in readme, f"option {name}: in README")
    status, out = run("make", "help", "DEPS=no")
    for target in ("all", "check", "demo", "bench", "lint", "fuzz", "clean", "install", "help"):
        ok(status == 0 and re.search(rf"^  {target} ", out, re.M), f"make help tells of {target}", out)


for test in (test_check, test_deps, test_install):
    with tempfile.TemporaryDirectory() as tmp:
        test(tmp)
test_documents()
print(f"1..{count}")
sys.exit(1 if failed else 0)
