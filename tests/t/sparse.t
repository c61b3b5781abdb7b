#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The workload of make bench-sparse, small: it is a hazard, preservation cures it, a plan within a budget holds."""
import glob
import json
import os
import subprocess
import sys
import tempfile

TOP = os.environ.get("RS_TOP") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
BUILD = os.environ.get("RS_BUILD") or os.path.join(TOP, "build")
CTL, CLIENT = os.path.join(BUILD, "replayctl"), os.path.join(BUILD, "clients/sparse")
SIZES = ["--steps=4", "--activation=1M", "--bank=448K", "--checkpoint=24K", "--scratch=24K", "--base=680K"]
done = 0


def ok(good, what):
    global done
    done += 1
    print(f"{'ok' if good else 'not ok'} {done} - {what}")
    return good


def run(command, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("REPLAYSHIM_", "SIMCUDA_"))}
    env.update(LD_LIBRARY_PATH=os.path.join(BUILD, "simcuda"), RS_TOP=TOP, SIMCUDA_MEMORY="64M", REPLAYSHIM_QUIET="1",
               REPLAYSHIM_PLANNER="none", **more)
    return subprocess.run(command, env=env, capture_output=True, text=True)


def client(*args):
    out = run([CLIENT] + SIZES + list(args))
    return json.loads(out.stdout)


def ctl(verb, *args, status=0, **more):
    out = run([CTL, verb, *args], **more)
    if out.returncode != status:
        print(f"# replayctl {verb}: {out.returncode}\n# " + out.stderr.replace("\n", "\n# "))
    return out.stdout


def lines(data, name):
    with open(glob.glob(os.path.join(data, "*", name))[0]) as f:
        return [json.loads(line) for line in f]


def same_bytes(folder, what, *args):
    """Eager, without the tool, and preserved with versions of bytes and of buffers."""
    eager, bare = client("--eager", *args), client(*args)
    ok(bare["digest"] != eager["digest"], f"{what}: replays leave other bytes without the tool")
    for versions in ("bytes", "buffers"):
        data = os.path.join(folder, f"{what}-{versions}")
        got = json.loads(ctl("run", "-o", data, "--", CLIENT, *SIZES, *args, REPLAYSHIM_VERSIONS=versions))
        ok(got["digest"] == eager["digest"], f"{what}: eager's bytes when preserved (versions of {versions})")
        outcomes = {r["outcome"] for r in lines(data, "records.jsonl")}
        ok(outcomes == {"match"}, f"{what}: every replay matches ({', '.join(outcomes)})")


def most_kept(folder, what, versions):
    stats = [e for e in lines(os.path.join(folder, f"{what}-{versions}"), "events.jsonl") if e["t"] == "stats"]
    return stats[-1]["snapshot_bytes_peak"]


def by_plan(folder):
    contract, data, plan = (os.path.join(folder, n) for n in ("contract.json", "costs", "plan.json"))
    command = ["--", CLIENT, *SIZES]
    ctl("audit", "--out", os.path.join(folder, "audit"), "-o", contract, *command)
    ctl("run", "-o", data, *command, REPLAYSHIM_COSTS="1")
    eager = client("--eager")
    least = client()["peak"]
    budget = (eager["peak"] + least) // 2
    ctl("plan", data, "--budget", f"{budget}B", "--guard", "1B", "-o", plan)
    with open(plan) as f:
        predicted = json.load(f)["peak"]
    got = json.loads(ctl("run", "-o", os.path.join(folder, "planned"), *command, REPLAYSHIM_PLAN=plan,
                         REPLAYSHIM_CONTRACT=contract))
    ok(0 < got["retained"] < eager["retained"], f"a plan halfway keeps some: {got['retained']} of {eager['retained']}")
    ok(got["digest"] == eager["digest"], "a planned run leaves eager's bytes")
    ok(got["peak"] <= predicted <= budget, f"{got['peak']} bytes taken, {predicted} predicted, {budget} allowed")
    outcomes = {r["outcome"] for r in lines(os.path.join(folder, "planned"), "records.jsonl")}
    ok(outcomes == {"match"}, "every replay of it matches")


def main():
    with tempfile.TemporaryDirectory() as folder:
        same_bytes(folder, "copies")
        ok(most_kept(folder, "copies", "buffers") > 4 * most_kept(folder, "copies", "bytes"),
           "versions of buffers keep whole buffers")
        same_bytes(folder, "kernel", "--writes=kernel", "--drift=3")
        same_bytes(folder, "queue", "--shared", "--density=1", "--clusters=1")
        ok(client("--clean=4")["digest"] == client("--eager", "--clean=4")["digest"], "segments that only read are no hazard")
        by_plan(folder)
    slept = client("--eager", "--forward-us=300", "--backward-us=500", "--optimizer-us=7")["step_ns"]
    awake = client("--eager", "--forward-us=0", "--backward-us=0", "--optimizer-us=0")["step_ns"]
    ok(0 < slept - awake - (4 * 800 + 7) * 1000 < 9 * 2600, "a step takes as long as it sleeps, and the launches for it")
    for bad in ("--eager=1", "--steps", "--bank=1X", "--nothing=1", "--activation=1K", "--writes=hand", "--clean=5", "--density=2"):
        out = run([CLIENT, bad])
        ok(out.returncode == 2 and "sparse:" in out.stderr, f"{bad} is refused")
    print(f"1..{done}")


if not os.path.exists(CLIENT):
    sys.exit(f"Bail out! no {CLIENT}")
main()
