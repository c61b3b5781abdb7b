#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A driver call fails: with the tool the program must see just what it would have seen without it.

The simulated driver lets the n-th call of an entry point fail (SIMCUDA_FAIL); every n of every entry point that a run
calls gets its turn, in audit and preserve. What a program has seen is its exit status and all that it printed;
tests/clients/faults.c prints the result of every call and every byte that it reads back.

Where the tool does not call the entry point itself, call n is the program's own call n, and the traces must be equal.
Where it does, the failure may hit a call of the tool's: then the trace must be one that the program shows without the
tool for a failure at some call of that entry point, or for none.

Preserving changes what replays make, which is what it is for; all else must be equal as above, and no replay may be
recorded as a match whose product differs from its forward's, or which left other state behind than it found. What
the program could not give back is used by one more replay, which must be a match.

Every second failure of that client is tried and every eighth of the other programs, with RS_TEST_SCALE=N every N-th of
those. FAULTS=all in the environment tries all, FAULTS=ENTRY[:N] only those, and prints the traces of those that fail.
"""
import collections
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import hazards_rig
from hazards_rig import BUILD, SHIM, lines, ok, plan

# The tool must know it as before.
GIVES_BACK = ("cuMemFree_v2", "cuMemFreeAsync", "cuMemUnmap", "cuModuleUnload", "cuLibraryUnload", "cuStreamDestroy_v2",
              "cuCtxDestroy_v2", "cuArrayDestroy", "cuGraphExecDestroy", "cuEventDestroy_v2", "cuMemPoolDestroy",
              "cuMemRelease", "cuMemAddressFree", "cuMemFreeHost", "cuMemHostUnregister", "cuGraphDestroy",
              "cuDevicePrimaryCtxRelease_v2", "cuTexObjectDestroy")
UNKNOWN, OUT_OF_MEMORY = 999, 2
SCALE = int(os.environ.get("RS_TEST_SCALE") or 1)
ONLY = os.environ.get("FAULTS", "")

Seen = collections.namedtuple("Seen", "status out calls records")


def read_calls(path):
    with open(path) as f:
        return {name: int(n) for name, n in (line.split() for line in f)}


def run(command, mode, fail=""):
    """What the program showed, how often it and the tool called what, and the tool's records."""
    with tempfile.TemporaryDirectory() as out:
        env = {k: v for k, v in os.environ.items() if not k.startswith(("REPLAYSHIM_", "SIMCUDA_"))}
        env.update(LD_LIBRARY_PATH=os.path.join(BUILD, "simcuda"), SIMCUDA_CALLS=os.path.join(out, "calls"))
        if fail:
            env["SIMCUDA_FAIL"] = fail
        if mode != "none":
            env.update(LD_PRELOAD=f"{os.environ.get('RS_SAN_PRELOAD', '')} {SHIM}".strip(), REPLAYSHIM_MODE=mode,
                       REPLAYSHIM_OUT=os.path.join(out, "data"), REPLAYSHIM_QUIET="1", REPLAYSHIM_LOG="error")
        program, *args = command.split()
        done = subprocess.run([os.path.join(BUILD, "clients", program), *args], env=env, capture_output=True,
                              timeout=100)
        try:
            calls = read_calls(os.path.join(out, "calls"))
        except FileNotFoundError:
            calls = {}
        return Seen(done.returncode, done.stdout.decode(), calls, lines(os.path.join(out, "data", "records.jsonl")))


# --- programs: what of a trace the tool may change, and what its records vouch for -----------------------------------

class Segments:
    """Lines "segment NAME FORWARD REPLAYED BEFORE AFTER" of tests/clients/faults.c."""

    @staticmethod
    def comparable(mode, text):
        if mode != "preserve":
            return text
        kept = []
        for line in text.splitlines():
            word = line.split()
            kept.append(" ".join([*word[:3], word[4]]) if line.startswith("segment ") else line)
        return "\n".join(kept)

    @staticmethod
    def vouched(seen, right):
        bad = []
        made = {w[1]: w[2:] for w in (line.split() for line in seen.out.splitlines()) if w and w[0] == "segment"}
        for r in seen.records:
            forward, replayed, before, after = made.get(r["segment"], "????")
            if r["outcome"] != "match":
                continue
            if "?" not in (forward, replayed) and forward != replayed:
                bad.append(f"{r['segment']} is a match, with another product")
            if "?" not in (before, after) and before != after:
                bad.append(f"{r['segment']} is a match, and left other state")
        return bad


class Words:
    """Lines NAME=WORD of the hazard programs: each word is the faulty one, or the right one."""

    @staticmethod
    def comparable(mode, text):
        if mode != "preserve":
            return text
        return "\n".join(line.split("=")[0] for line in text.splitlines())

    @staticmethod
    def vouched(seen, right):
        if seen.status or seen.out == right or any(r["outcome"] != "match" for r in seen.records):
            return []
        return [f"all of {len(seen.records)} replays match, but {seen.out.split()} is not {right.split()}"]


class Program:
    def __init__(self, command, judge):
        self.command, self.judge = command, judge
        self.plain = {m: run(command, m) for m in ("none", "audit", "preserve")}
        self.without = {}

    def bare(self, entry, code):
        """Traces without the tool: {n: (status, text)}, for all its calls of the entry point."""
        if (entry, code) not in self.without:
            calls = range(1, self.plain["none"].calls.get(entry, 0) + 1)
            self.without[entry, code] = {n: run(self.command, "none", f"{entry}:{n}={code}") for n in calls}
        return self.without[entry, code]

    def view(self, mode, seen):
        return seen.status, self.judge.comparable(mode, seen.out)

    def check(self, mode, entry, n, code):
        """What is wrong when call n of the entry point fails under the tool."""
        seen = run(self.command, mode, f"{entry}:{n}={code}")
        got, bare = self.view(mode, seen), self.bare(entry, code)
        ours = self.plain[mode].calls.get(entry, 0) != self.plain["none"].calls.get(entry, 0)
        allowed = [self.view(mode, b) for b in bare.values()] + [self.view(mode, self.plain["none"])]
        if not ours and code == UNKNOWN:
            allowed = [self.view(mode, bare[n])]
        bad = self.judge.vouched(seen, self.plain["preserve"].out)
        if mode == "preserve" and entry in GIVES_BACK and code == UNKNOWN and seen.out != self.plain[mode].out:
            bad += [f"{r['segment']} is a {r['outcome']}: {r['codes']}" for r in seen.records if r["outcome"] != "match"]
        if got not in allowed:
            bad.append(f"status {got[0]}, not as without the tool: {difference(got[1], allowed)}")
        if ONLY not in ("", "all") and bad:
            print("\n".join(f"# {line}" for line in seen.out.splitlines()))
        return [f"{mode}, {entry}:{n}={code}: {b}" for b in bad]

    def faults(self, mode):
        for entry, count in sorted(self.plain[mode].calls.items()):
            for code in (UNKNOWN, OUT_OF_MEMORY) if "Alloc" in entry else (UNKNOWN,):
                yield from ((mode, entry, n, code) for n in range(1, count + 1))


def difference(got, allowed):
    """The first line in which a trace differs from that which it resembles most."""
    def common(want):
        pairs = zip(got.splitlines() + [""], want[1].splitlines() + [""])
        return next((i for i, (a, b) in enumerate(pairs) if a != b), 0)
    best = max(allowed, key=common)
    i = common(best)
    return f"line {i + 1}: {(got.splitlines() + [''])[i:i + 1]}, not {(best[1].splitlines() + [''])[i:i + 1]}"


def check_program(program, pool):
    for mode in ("audit", "preserve"):
        faults = list(program.faults(mode))
        if not ONLY:
            faults = faults[::SCALE * (2 if program.command == "faults" else 8)]
        elif ONLY != "all":
            faults = [f for f in faults if ONLY in (f[1], f"{f[1]}:{f[2]}")]
        for entry, code in sorted({(f[1], f[3]) for f in faults}):
            program.bare(entry, code)
        bad = [b for result in pool.map(lambda f: program.check(*f), faults) for b in result]
        plain = program.plain[mode]
        ok(program.view(mode, plain) == program.view(mode, program.plain["none"]),
           f"{program.command}: {mode} without a failure shows what no tool shows")
        if mode == "preserve":
            ok(plain.records and all(r["outcome"] == "match" for r in plain.records),
               f"{program.command}: {len(plain.records)} replays, all match")
        ok(faults and not bad, f"{program.command}: {mode}, {len(faults)} failures, each seen as without the tool",
           f"{len(bad)} are not", *bad[:int(os.environ.get("FAULTS_SHOWN") or 12)])


def main():
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        programs = [("faults", Segments), ("faults --streams", Segments), ("contexts", Words)]
        programs += [(f"hazards {case}", Words) for case in ("c01", "c09 --streams", "c10 210", "c14")]
        for command, judge in programs:
            if len(sys.argv) < 2 or command in sys.argv[1:]:
                check_program(Program(command, judge), pool)
    if hazards_rig.count == 0:
        ok(0, "no such program")
    return plan()


if __name__ == "__main__":
    sys.exit(main())
