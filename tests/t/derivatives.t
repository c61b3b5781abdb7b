#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Bytes equal means gradients equal: a small network trained with its activations kept, and with segments replayed.

The gradients of the run that keeps activations are checked against a forward pass in dual numbers and against central
differences, both of the formulas in derivatives_model.py. Then the replaying run under the library has to print the
same bytes, gradients and state, with a match for every replay; without it what it prints is wrong, segment by segment
in a known way, and an audit prints just that and names the state. Eagerly, lazily, and in RS_SEEDS (20) random
schedules with replays, the queue's enqueue and a reader of the table on streams of their own. All of the bytes again
under the contract that an audit learns, with every option and way of restoring that can be put into it.
"""
import collections
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

import derivatives_model as model
from hazards_rig import BUILD, SHIM, lines, ok, plan, show

TOP = os.environ.get("RS_TOP") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
SEEDS = int(os.environ.get("RS_SEEDS") or ("4" if os.environ.get("RS_SAN") else "20"))
STEPS = 3
OPTIONS = [(o, r) for o in ("undo", "whole", "regions", "pages", "retain") for r in ("copy", "swap")]
SEGMENTS = [("embedding", 0), ("conv", 0), ("batchnorm", 0), ("dropout", 0), ("linear", 0), ("attention", 0),
            ("embedding", 1), ("contrast", 0)]

# Largest error allowed, of a derivative g: TOLERANCE * (1 + |g|). The dual numbers' is rounding (some 1e-15 was
# measured); that of central differences is h^2/6 times the third derivative, and 1e-16/h (some 1e-9).
DUAL_TOLERANCE = 1e-13
DIFFERENCE_STEP, DIFFERENCE_TOLERANCE = 3e-6, 1e-8

# What an audit finds in each segment: state and its writer. A segment that writes the state itself leaves it changed
# (RS013), too.
WRITERS = {("contrast", 0): {("queue", "contrast_enqueue"), ("head", "contrast_advance")},
           ("attention", 0): {("keys", "kv_append"), ("values", "kv_append"), ("cursor", "kv_advance")},
           ("dropout", 0): {("counter", "dropout_advance")},
           ("batchnorm", 0): {("running_mean", "bn_stats"), ("running_var", "bn_stats")},
           ("embedding", 0): {("table", "sparse_update")}}

# What is wrong after the first step if no segment but this one is replayed, without the tool: its state, and the
# gradients (with the parameters that they update) of the layers before it.
BEFORE_NORM = {"table", "image", "conv_w", "conv_b"}
BEFORE_DROPOUT = BEFORE_NORM | {"bn_gain", "bn_shift"}
BEFORE_ATTENTION = BEFORE_DROPOUT | {"linear_w", "linear_b"}
PROJECTIONS = {"wq", "wk", "wv"}
ALONE = {"embedding": (set(), {"table", "image"}),
         "conv": (set(), set()),
         "batchnorm": ({"running_mean", "running_var"}, set()),
         "dropout": ({"counter"}, BEFORE_DROPOUT),
         "linear": (set(), set()),
         "attention": ({"keys", "values", "cursor"}, BEFORE_ATTENTION | PROJECTIONS),
         "contrast": ({"queue", "head", "watched"}, BEFORE_ATTENTION | PROJECTIONS | {"key_image"})}


class Run:
    """text: {seed: what its training printed}; records and findings, of all steps."""

    def __init__(self, args, mode="none", schedule="eager", contract=None, **environment):
        with tempfile.TemporaryDirectory() as out:
            env = {k: v for k, v in os.environ.items() if not k.startswith(("REPLAYSHIM_", "SIMCUDA_"))}
            env.update(LD_LIBRARY_PATH=os.path.join(BUILD, "simcuda"), SIMCUDA_SCHED=schedule,
                       RS_KERNELS=os.path.join(TOP, "tests/kernels"), **environment)
            if mode != "none":
                env.update(LD_PRELOAD=f"{os.environ.get('RS_SAN_PRELOAD', '')} {SHIM}".strip(),
                           REPLAYSHIM_MODE=mode, REPLAYSHIM_OUT=out, REPLAYSHIM_QUIET="1")
            if contract:
                env["REPLAYSHIM_CONTRACT"] = contract
            done = subprocess.run([os.path.join(BUILD, "clients/derivatives")] + args.split(), env=env,
                                  capture_output=True, text=True, timeout=150)
            self.status, self.stderr = done.returncode, done.stderr
            self.records = lines(os.path.join(out, "records.jsonl"))
            events = lines(os.path.join(out, "events.jsonl"))
            self.findings = [e for e in events if e.get("t") == "finding"]
            self.remaps = sum(e.get("remaps", 0) for e in [e for e in events if e.get("t") == "stats"][-1:])
        self.text = collections.defaultdict(list)
        for line in done.stdout.splitlines():
            seed, _, rest = line.partition(" ")
            self.text[int(seed)].append(rest)

    def values(self, step):
        """{when: {name: values}} of one step of the first training."""
        found = collections.defaultdict(dict)
        for line in self.text[min(self.text)]:
            n, when, name, kind, data = line.split()
            if int(n) == step:
                data = bytes.fromhex(data)
                found[when][name] = list(struct.unpack(f"{len(data) // struct.calcsize(kind)}{kind}", data))
        return found


def finished(run, text, seeds):
    """What is wrong with the outcome, if each training should have printed this text."""
    if run.status:
        return [f"status {run.status}", run.stderr[-300:]]
    wanted = list(range(1, seeds + 1)) if seeds else [0]
    bad = [f"seeds {sorted(run.text)}"] if sorted(run.text) != wanted else []
    for seed, got in sorted(run.text.items()):
        other = [g for g, w in zip(got, text) if g != w]
        if other or len(got) != len(text):
            bad.append(f"seed {seed}: {len(got)} lines, {len(other)} of them differ: {[o[:60] for o in other[:3]]}")
    return bad


def directions(t, name, rng):
    """Random ones of all elements together, and some elements alone."""
    n = len(t[name])
    yield "all", [rng.uniform(-1, 1) for _ in range(n)]
    yield "all", [rng.choice((-1.0, 1.0)) for _ in range(n)]
    for i in rng.sample(range(n), min(n, 2)):
        yield i, [float(k == i) for k in range(n)]


def derivative_errors(values, step):
    """(checked, {tensor: what is not its derivative}, largest errors) of one step's gradients."""
    t, rng = values["before"], random.Random(step)
    checked, wrong, worst = 0, collections.defaultdict(list), [0.0, 0.0]
    for name, g in values["grad"].items():
        n = len(t[name])
        if len(g) == 2 * n:  # the embedding's, for each of its two invocations
            g = [a + b for a, b in zip(g[:n], g[n:])]
        for which, direction in directions(t, name, rng):
            got = model.dot(g, direction)
            want = (model.dual_derivative(t, name, direction),
                    model.difference_quotient(t, name, direction, DIFFERENCE_STEP))
            checked += 1
            for k, tolerance in enumerate((DUAL_TOLERANCE, DIFFERENCE_TOLERANCE)):
                error = abs(got - want[k]) / (1 + abs(want[k]))
                worst[k] = max(worst[k], error)
                if not error <= tolerance:
                    wrong[name].append(f"step {step} {name} {which}: {got!r}, not {want[k]!r}")
    return checked, wrong, worst


def check_derivatives(kept):
    checked, wrong, worst = 0, [], [0.0, 0.0]
    for step in range(1, STEPS + 1):
        n, found, errors = derivative_errors(kept.values(step), step)
        checked += n
        wrong += [w for tensor in found.values() for w in tensor]
        worst = [max(pair) for pair in zip(worst, errors)]
    ok(checked == STEPS * 12 * 4 and not wrong,
       f"{checked} derivatives are those of dual numbers and of central differences", checked, *wrong[:8])
    print(f"# largest errors: {worst[0]:.1e} against dual numbers, {worst[1]:.1e} against differences")


def close(got, want):
    return len(got) == len(want) and all(abs(a - b) <= 1e-13 * (1 + abs(b)) for a, b in zip(got, want))


def check_model(kept):
    """Losses, the state after each step, updates, and that a step begins as the last one ended."""
    bad, last = [], {}
    for step in range(1, STEPS + 1):
        values = kept.values(step)
        before, after, grad = values["before"], values["after"], values["grad"]
        losses, state = model.forward(before)
        bad += [f"step {step}: losses {values['loss']}, not {losses}"] * (not close(values["loss"]["loss"], losses))
        state.update(model.updated(before, grad))
        bad += [f"step {step}: {name} {after[name]}, not {want}" for name, want in state.items()
                if not close(after[name], want)]
        bad += [f"step {step}: {name} is not as it was left" for name, v in last.items()
                if v != before[name] and not name.endswith(("image", "token"))]
        last = after
    ok(not bad, "losses, updates and state are those of the formulas", *bad[:6])


def differences(a, b, step):
    """{when: names whose bytes differ}"""
    x, y = a.values(step), b.values(step)
    return {when: {n for n in x[when] if x[when][n] != y[when][n]} for when in ("before", "loss", "grad", "after")}


def check_alone(kept):
    """Each segment alone, without the tool: exactly its own consequences."""
    for segment, (state, grads) in ALONE.items():
        run = Run(f"replay --only={segment} --steps=1")
        params = grads - {"image", "key_image"}
        want = {"before": set(), "loss": set(), "grad": grads, "after": state | params}
        got = differences(kept, run, 1) if not run.status else run.stderr
        ok(got == want, f"{segment} alone, without the tool: {', '.join(sorted(state | grads)) or 'nothing'} wrong",
           f"got {got}", f"wanted {want}")


def check_control(faulty):
    """The derivatives' check can fail: these gradients are another computation's."""
    _, wrong, _ = derivative_errors(faulty.values(1), 1)
    ok(len(wrong) == 12 and all(len(w) >= 2 for w in wrong.values()),
       "without the tool, no tensor's gradient is its derivative", sorted(wrong))


def expected_states(key):
    return {"RS010": WRITERS[key], **({"RS013": WRITERS[key]} if key[0] != "embedding" else {})}


def check_replays(run, mode, trainings):
    """A record for every replay, with its verdict; findings name just the state and its writers."""
    bad, replays, found = [], collections.Counter(), collections.defaultdict(lambda: collections.defaultdict(set))
    for f in run.findings:
        key = f["step"], f["segment"], f["invocation"]
        found[key][f["code"]].add((f.get("state", {}).get("name"), f.get("writer", {}).get("name")))
    for r in run.records:
        key = r["segment"], r["invocation"]
        replays[key] += 1
        alarm = mode == "audit" and key in WRITERS
        want = expected_states(key) if alarm else {}
        outcome = ("divergence", "different") if alarm else ("match", "equal")
        if (r["outcome"], r["entry"]) != outcome or sorted(r["codes"]) != sorted(want):
            bad.append(show(r))
        if not alarm and (r["product"], r["after"]) != ("equal", "equal"):
            bad.append(show(r))
        got = {code: set(pairs) for code, pairs in found[(r["step"], *key)].items()}
        if got != want:
            bad.append(f"step {r['step']} {key}: found {got}, not {want}")
    wanted = {key: STEPS * trainings for key in SEGMENTS}
    return bad + ([f"records of {dict(replays)}, not {wanted}"] if replays != wanted else [])


def check_schedule(name, args, schedule, seeds, kept, faulty):
    runs = {(how, mode): Run(how + args, mode, schedule)
            for how, mode in (("keep", "none"), ("replay", "none"), ("replay", "audit"), ("replay", "preserve"))}
    trainings = seeds or 1
    right, wrong = kept.text[0], faulty.text[0]
    ok(not (bad := finished(runs["keep", "none"], right, seeds)), f"{name}: kept activations, the same bytes", *bad)
    ok(not (bad := finished(runs["replay", "none"], wrong, seeds)), f"{name}: replayed without the tool, wrong alike",
       *bad[:6])
    bad = finished(runs["replay", "audit"], wrong, seeds) + check_replays(runs["replay", "audit"], "audit", trainings)
    ok(not bad, f"{name}: audited, unchanged, and the state is named", *bad[:6])
    run = runs["replay", "preserve"]
    bad = finished(run, right, seeds) + check_replays(run, "preserve", trainings)
    ok(not bad, f"{name}: preserved, gradients and state of {trainings * STEPS} steps to the bit, all match", *bad[:6])


def learn(directory, *args):
    """The contract of the replaying run, and what an audit says of it."""
    path = os.path.join(directory, "learned.json" if not args else "mapped.json")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("REPLAYSHIM_", "SIMCUDA_"))}
    env.update(LD_LIBRARY_PATH=os.path.join(BUILD, "simcuda"), RS_KERNELS=os.path.join(TOP, "tests/kernels"))
    done = subprocess.run([os.path.join(BUILD, "replayctl"), "audit", "--out", directory + "/data", "-o", path, "--",
                           os.path.join(BUILD, "clients/derivatives"), "replay", *args], env=env, capture_output=True,
                          text=True, timeout=150)
    if not os.path.exists(path):
        return None, done.stderr
    with open(path, encoding="utf-8") as f:
        return json.load(f), done.stderr


def preserved_under(path, kept):
    """What is wrong: on one stream eagerly, on several in random schedules."""
    seeds = max(2, SEEDS // 5)
    run = Run("replay", "preserve", "eager", path)
    bad = finished(run, kept.text[0], 0) + check_replays(run, "preserve", 1)
    run = Run(f"replay --streams --seeds={seeds}", "preserve", "eager", path)
    return bad + finished(run, kept.text[0], seeds) + check_replays(run, "preserve", seeds)


def check_contracts(kept):
    with tempfile.TemporaryDirectory() as directory:
        contract, why = learn(directory)
        ok(contract and {s["name"] for s in contract["segments"]} == {name for name, _ in SEGMENTS},
           "an audit learns a contract of all segments", why[-300:])
        if not contract:
            return
        path = os.path.join(directory, "learned.json")
        ok(not (bad := preserved_under(path, kept)), "under it: gradients and state to the bit, all match", *bad[:6])
        for option, restore in OPTIONS:
            for s in contract["segments"]:
                s["preserve"] = {"option": option, "restore": restore}
            edited = os.path.join(directory, f"{option}-{restore}.json")
            with open(edited, "w", encoding="utf-8") as f:
                json.dump(contract, f)
            bad = preserved_under(edited, kept)
            ok(not bad, f"{option}, {restore}: gradients and state to the bit, all match", *bad[:6])
        check_never_overwritten(directory, contract, kept)


def check_remapping(kept):
    """With state in mappings, which is written to as a whole, replays are shown it by remapping."""
    with tempfile.TemporaryDirectory() as directory:
        contract, why = learn(directory, "--mapped")
        for option in ("undo", "whole") if contract else ():
            for s in contract["segments"]:
                s["preserve"] = {"option": option, "restore": "remap"}
            path = os.path.join(directory, "remap.json")
            with open(path, "w", encoding="utf-8") as f:
                json.dump(contract, f)
            for schedule in ("eager", "random:5"):
                run = Run("replay --mapped", "preserve", schedule, path, REPLAYSHIM_VERSIONS="buffers")
                bad = finished(run, kept.text[0], 0) + check_replays(run, "preserve", 1)
                ok(not bad and run.remaps >= STEPS, f"{option}, {schedule}, by remapping ({run.remaps} times): to the bit, "
                   "all match", *bad[:6])
        ok(contract, "an audit learns the contract with mapped state", why[-300:])


def check_never_overwritten(directory, contract, kept):
    """A contract that wrongly says so costs matches where state moves on, never bytes."""
    for s in contract["segments"]:
        s["preserve"] = {"option": "free", "restore": "copy"}
    path = os.path.join(directory, "free.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(contract, f)
    run = Run("replay", "preserve", "eager", path)
    bad = finished(run, kept.text[0], 0)
    bad += [show(r) for r in run.records
            if ((r["segment"], r["invocation"]) in WRITERS) != (r["outcome"] == "rejection" and "RS080" in r["codes"])]
    ok(not bad and run.records, "free: the same bytes, and no match where the state is overwritten", *bad[:6])


def main():
    kept, faulty = Run("keep"), Run("replay")
    ok(not kept.status and not faulty.status, "both ways of training run", kept.stderr, faulty.stderr)
    if kept.status or faulty.status:
        return plan()
    check_derivatives(kept)
    check_model(kept)
    check_alone(kept)
    check_control(faulty)
    for schedule in ("eager", "lazy"):
        check_schedule(schedule, "", schedule, 0, kept, faulty)
        check_schedule(f"{schedule}, several streams", " --streams", schedule, 0, kept, faulty)
    check_schedule(f"{SEEDS} random schedules", f" --streams --seeds={SEEDS}", "eager", SEEDS, kept, faulty)
    check_contracts(kept)
    check_remapping(kept)
    for mode in ("audit", "preserve"):
        run = Run("keep", mode)
        bad = finished(run, kept.text[0], 0) + [show(r) for r in run.records + run.findings]
        ok(not bad, f"nothing replayed, {mode}: unchanged, no finding", *bad)
    return plan()


sys.exit(main())
