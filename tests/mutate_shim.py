#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Break the preloaded library on purpose, one place at a time: each time a test that looks at it from outside must fail.

Usage: tests/mutate_shim.py [NAME-PART ...]     (make mutate-shim)
As mutate.py, for what lies between the program and the engine. Each mutation names the scripts of t/ that are to notice it; those
that none of them notices are reported. The library is built in copies of the tree. Speaks TAP.
"""
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from queue import Queue

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.realpath(os.environ.get("RS_BUILD") or os.path.join(TOP, "build"))
WORKERS = os.cpu_count() or 1
SECONDS = 180  # a test takes less than a minute
SEEDS = "3"
LIBRARY = "build/libreplayshim.so"
RANDOM = "client_random preserve random:3 1000 60"

MUTATIONS = [
    ("memo: a launch's bytes do not count", "shim/memo.c", "\treturn !differ;", "\treturn 1;", ["shim_calm", "hazards", RANDOM]),
    ("memo: another grid is the same launch", "shim/memo.c", "m->grid[0] == l->grid[0] && ", "", ["shim_calm", "hazards", RANDOM]),
    ("plan: that it takes more than its budget is not told", "shim/plan.c",
     "if (!force.head.budget || bytes <= force.head.budget || force.exceeded)", "if (1)", ["planned", "planned_peer"]),
    ("plan: one that nothing fits is obeyed", "shim/plan.c", "if (head->flags & RS_PLAN_INFEASIBLE)", "if (0)",
     ["planned_peer", "planned"]),
    ("markers: what a built-in rule found stays, where the program marks its own", "shim/marker.c",
     "if (r->builtins && is_window(m.choice) && !m.choice->builtin)", "if (0)", ["shim_markers"]),
    ("markers: the end of a range of the process is not told to rules", "shim/marker.c", "rs_pattern_ended(id); ", "", ["shim_markers"]),
    ("markers: a counted step is the last one", "shim/marker.c", "rs_report_last_step() + 1", "rs_report_last_step()", ["shim_markers"]),
    ("markers: a pop ends any domain's range", "shim/ranges.c", "i >= 0 && r->v[i].domain != d", "0", ["shim_markers", "shim_nvtx"]),
    ("markers: what is around a range does not count", "shim/ranges.c", "\t\tcontexts |= r->v[i].contexts;", "\t\t;", ["shim_markers"]),
    ("curand: what was served is drawn all the same", "shim/curand.c", "if (!served(t, g, &d)) {", "if (served(t, g, &d), 1) {", ["curand"]),
    ("copies: the host does not wait for any", "shim/wrap_copy.c", "\tcall->synchronous = 1;\n", "", ["hazards2", "hazards_memory", RANDOM]),
    ("copies: the host's memory is nobody's business", "shim/wrap_copy.c", "if (side == DST && bytes)", "if (0)", ["hazards2", "hazards"]),
    ("copies: layers of one row lie close", "shim/wrap_copy.c", "int dense = bytes == width * height * depth;",
     "int dense = (height == 1 || s->pitch == width) && (depth == 1 || s->rows == height);", ["hazards_memory"]),
    ("device: nobody waits for the tool's events", "shim/devorder.c",
     "rs_real.cuStreamWaitEvent(rs_dev_stream(q), e->handle, 0)", "CUDA_SUCCESS", ["hazards", "hazards2", RANDOM]),
    ("device: what is asked about is over", "shim/devorder.c", "return r ? r : result == CUDA_SUCCESS;", "return r ? r : 1;",
     ["hazards", "hazards2", RANDOM]),
    ("graphs: nodes that are disabled run", "shim/graph_run.c",
     "\t\tif (n->disabled)\n\t\t\tcontinue;\n\t\tswitch", "\t\tswitch", ["hazards_graph", RANDOM]),
    ("graphs: nodes that may not run overwrite for certain", "shim/graph_run.c", "\t\tif (n->maybe)\n\t\t\ta->dense = 0;\n", "",
     ["hazards_graph"]),
    ("graphs: each node's product is as the launch leaves it", "shim/graph_run.c", "\tlook_back(w);\n", "", ["hazards_graph", RANDOM]),
    ("processes: a child goes on as its parent", "shim/fork.c", "\t__atomic_store_n(&rs_on, 0, __ATOMIC_RELAXED);\n", "",
     ["shim_strangers", "shim_modes"]),
]


def environment(top):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("REPLAYSHIM_", "SIMCUDA_"))
           and k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH", "NVTX_INJECTION64_PATH")}
    env.setdefault("RS_PYTHON", f"{BUILD}/venv/bin/python")
    env.update(RS_TOP=top, RS_BUILD=f"{top}/build", RS_SEEDS=SEEDS, TZ="UTC", LC_ALL="C.UTF-8")
    return env


def copy_tree(top):
    """What the library and the scripts need, with what is built; objects keep their times, so that make knows them."""
    shutil.copytree(TOP, top, symlinks=True, ignore=lambda d, names: [n for n in names if n == ".git" or f"{d}/{n}" == f"{TOP}/build"])
    shutil.copytree(BUILD, f"{top}/build", symlinks=True,
                    ignore=lambda d, names: [n for n in names if d == BUILD and n in ("tests", "venv", "test-logs", "bench")])
    if os.path.exists(f"{BUILD}/venv"):
        os.symlink(f"{BUILD}/venv", f"{top}/build/venv")


def build(top):
    return subprocess.run(["make", "-s", "O=build", "WARN=-w", LIBRARY], cwd=top, env=environment(top),
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def passes(top, test):
    name, *args = test.split()
    with tempfile.TemporaryFile() as out:
        p = subprocess.Popen([f"tests/t/{name}.t", *args], cwd=top, env=environment(top), stdout=out, stderr=out, start_new_session=True)
        try:
            status = p.wait(SECONDS)
        except subprocess.TimeoutExpired:
            status = None
        try:
            os.killpg(p.pid, 9)  # what it left behind
        except ProcessLookupError:
            pass
        p.wait()
        out.seek(0)
        return status == 0 and not any(line.startswith(b"not ok") for line in out)


def mutate(trees, name, path, old, new, tests):
    """(the test that fails or None, what is wrong with the mutation itself)"""
    top = trees.get()
    try:
        with open(f"{top}/{path}") as f:
            text = f.read()
        if text.count(old) != 1:
            return None, f"the text stands {text.count(old)} times in {path}"
        try:
            with open(f"{top}/{path}", "w") as f:
                f.write(text.replace(old, new))
            if not build(top):
                return None, f"{path} does not compile with it"
            return next((t for t in tests if not passes(top, t)), None), ""
        finally:
            with open(f"{top}/{path}", "w") as f:
                f.write(text)
    finally:
        trees.put(top)


def main():
    parts = sys.argv[1:]
    chosen = [m for m in MUTATIONS if not parts or any(p in m[0] for p in parts)]
    used = sorted({t for m in chosen for t in m[4]})
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    subprocess.run(["make", "-s", f"-j{WORKERS}", f"O={os.path.relpath(BUILD, TOP)}"], cwd=TOP, env=env, check=True, stdout=sys.stderr)
    failed = 0
    print(f"1..{len(chosen) + 1}", flush=True)
    with tempfile.TemporaryDirectory() as where, ThreadPoolExecutor(WORKERS) as pool:
        trees = Queue()
        for i in range(WORKERS):
            copy_tree(f"{where}/{i}")
            trees.put(f"{where}/{i}")
        broken = [t for t, ok in zip(used, pool.map(lambda n: passes(f"{where}/{n[0] % WORKERS}", n[1]), enumerate(used))) if not ok]
        print(f"not ok 1 - the library as it is: {', '.join(broken)}" if broken else "ok 1 - the library as it is passes", flush=True)
        failed += bool(broken)
        for n, (m, (test, wrong)) in enumerate(zip(chosen, pool.map(lambda m: mutate(trees, *m), chosen)), 2):
            failed += not test
            print(f"{'ok' if test else 'not ok'} {n} - {m[0]}: "
                  f"{wrong or (f'caught by {test}' if test else 'its tests pass')}", flush=True)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
