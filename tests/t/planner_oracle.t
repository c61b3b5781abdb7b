#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The planner against solvers that are not ours, on random instances and frozen ones: the problem that `replayctl plan
--lp` writes is solved by HiGHS (the Python package highspy, in any of the interpreters tried), cbc and glpsol, as far as they
are installed (scripts/deps solvers); there must be the same optimum, or none.

RS_ORACLE=N instances (20), RS_ORACLE_SEED=N for the first of them (1).
"""
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("RS_BUILD", os.path.join(TOP, "build"))
CTL = os.path.join(BUILD, "replayctl")
DATA = os.path.join(TOP, "tests", "data", "planner")
FROZEN = ("real_n24_f0.1", "real_n96_f0.1", "real_n96_f0.4", "uniform_n96", "sparse_h100_44GiB", "dense_queue_6win", "chain2_n96",
          "real_n384_f0.4")
LIMIT = 5
count = failed = 0

HIGHS = r"""
import json, sys
import highspy
for path in sys.argv[2:]:
    h = highspy.Highs()
    h.silent()
    h.setOptionValue("threads", 1)
    h.setOptionValue("time_limit", float(sys.argv[1]))
    h.setOptionValue("mip_rel_gap", 0.0)
    h.setOptionValue("mip_abs_gap", 0.0)
    h.setOptionValue("mip_feasibility_tolerance", 1e-9)
    h.setOptionValue("primal_feasibility_tolerance", 1e-9)
    h.readModel(path)
    h.run()
    s = h.getModelStatus()
    kind = {highspy.HighsModelStatus.kOptimal: "optimal", highspy.HighsModelStatus.kInfeasible: "infeasible"}.get(s, "open")
    print(json.dumps([path, kind, h.getInfo().objective_function_value]), flush=True)
"""


def ok(condition, what, detail=""):
    global count, failed
    count += 1
    print(f"{'ok' if condition else 'not ok'} {count} - {what}", flush=True)
    if not condition:
        failed += 1
        print("\n".join("#   " + line[:200] for line in str(detail).split("\n")[:12]), flush=True)


def run(*args, timeout=600):
    return subprocess.run([str(a) for a in args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout)


# --- the others: {path: ("optimal", ms) or ("infeasible", 0)}; what they do not decide in time is left out ------------


def by_highs(python, paths):
    p = subprocess.run([python, "-c", HIGHS, str(LIMIT), *paths], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                       timeout=LIMIT * len(paths) + 60)
    if p.returncode:
        raise RuntimeError(p.stderr[-400:])
    found = (json.loads(line) for line in p.stdout.splitlines() if line.startswith("["))
    return {path: (kind, value) for path, kind, value in found if kind != "open"}


def by_cbc(program, paths):
    found = {}
    for path in paths:
        text = run(program, path, "seconds", LIMIT, "ratioGap", 0, "allowableGap", 0, "integerTolerance", 1e-9, "primalTolerance", 1e-9,
                   "solve").stdout
        value = re.search(r"Objective value:\s+([-\d.e+]+)", text)
        if "Optimal solution found" in text and value:
            found[path] = ("optimal", float(value.group(1)))
        elif "infeasible" in text.lower() and "Stopped on time" not in text:
            found[path] = ("infeasible", 0)
    return found


def by_glpsol(program, paths):
    found = {}
    for path in paths:
        said = run(program, "--lp", path, "--tmlim", LIMIT, "-o", path + ".sol").stdout
        text = ""
        if os.path.exists(path + ".sol"):
            with open(path + ".sol", encoding="utf-8") as f:
                text = f.read()
        value = re.search(r"Objective:\s+added = ([-\d.e+]+)", text)
        if "INTEGER OPTIMAL" in text and value:
            found[path] = ("optimal", float(value.group(1)))
        elif "HAS NO PRIMAL FEASIBLE SOLUTION" in said or "HAS NO INTEGER FEASIBLE SOLUTION" in said or "INTEGER EMPTY" in text:
            found[path] = ("infeasible", 0)
    return found


def solvers():
    """(name, function, what it needs) of those that are here."""
    here = []
    for python in dict.fromkeys((os.environ.get("RS_HIGHS_PYTHON"), sys.executable, os.path.join(TOP, "build", "venv", "bin", "python"))):
        if python and shutil.which(python) and not run(python, "-c", "import highspy").returncode:
            here.append(("HiGHS", by_highs, python))
            break
    for name, function in (("cbc", by_cbc), ("glpsol", by_glpsol)):
        if shutil.which(name):
            here.append((name, function, shutil.which(name)))
    for name in ("HiGHS", "cbc", "glpsol"):
        if name not in [s[0] for s in here]:
            ok(True, f"{name} # SKIP not installed")
    return here


# --- instances ----------------------------------------------------------------------------------------------------------


def arc(r, kind, origin, target, option):
    m = r.randrange(1 << 20, 1 << 32)
    w = r.choice((0, r.randrange(1 << 31)))
    near = {"random": r.randrange(10**6, 10**8), "weak": m // 50 + r.randrange(10**6), "strong": (1 << 32) // 50 - m // 50 + 10**6}
    return [origin, target, option, m, w, near[kind]]


def instance(seed):
    """From loose to impossible; one mode or several."""
    r = random.Random(seed)
    n, modes = r.randrange(3, 28), r.choice((1, 1, 1, 2, 3))
    kind = r.choice(("random", "weak", "strong"))
    arcs = []
    for _ in range(n):
        options = []
        for mode in range(modes):
            for _ in range(r.randrange(1, 4)):
                options.append(arc(r, kind, mode, r.randrange(modes), len(options)))
            options.append([mode, r.randrange(modes), len(options), r.randrange(1 << 18), r.randrange(1 << 31), 3 * 10**8])
        arcs.append(options)
    most = sum(max(a[3] for a in options) for options in arcs)
    part = r.choice((0.02, 0.1, 0.3, 0.6, 0.9))
    caps = [int(most * part * r.uniform(0.8, 1.2)) + r.choice((0, 1 << 31)) for _ in range(n)]
    return {"n": n, "S": modes, "cap": caps, "arcs": arcs}


def compare(name, ours, lp, answers):
    said = {}
    for solver, found in answers.items():
        if lp not in found:
            continue
        kind, ms = found[lp]
        if ours["status"] == "infeasible" or kind == "infeasible":
            said[solver] = kind == ours["status"]
        else:
            said[solver] = abs(ms - ours["time"] / 1e6) <= 2e-6 * abs(ms) + 1e-6
    if not said:
        ok(True, f"{name} # SKIP nobody decided it within {LIMIT} s")
        return 0
    ok(all(said.values()), f"{name}: {ours['status']}, and so say {', '.join(said)}",
       f"ours {ours}, theirs " + str({s: f.get(lp) for s, f in answers.items()}))
    return len(said)


def main():
    first, n = int(os.environ.get("RS_ORACLE_SEED", "1")), int(os.environ.get("RS_ORACLE", "20"))
    here = solvers()
    agreed = infeasible = 0
    with tempfile.TemporaryDirectory() as tmp:
        cases = []
        for seed in range(first, first + n if here else first):
            path = os.path.join(tmp, f"{seed}.json")
            with open(path, "w", encoding="utf-8") as f:
                json.dump(instance(seed), f)
            cases.append((f"random instance {seed}", path, path + ".lp"))
        for name in FROZEN if here else ():
            cases.append((name, os.path.join(DATA, name + ".json"), os.path.join(tmp, name + ".lp")))
        plans = []
        for name, path, lp in cases:
            p = run(CTL, "plan", "--instance", path, "--lp", lp)
            plans.append(json.loads(p.stdout))
            infeasible += plans[-1]["status"] == "infeasible"
        answers = {name: function(needs, [lp for _, _, lp in cases]) for name, function, needs in here if cases}
        for (name, _, lp), ours in zip(cases, plans):
            agreed += compare(name, ours, lp, answers)
    if here:
        ok(agreed >= len(cases) * len(here) * 0.7 and 0 < infeasible < len(cases) / 2, "most were decided by all; both answers occur",
           f"{agreed} answers, {infeasible} infeasible")
    print(f"1..{count}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
