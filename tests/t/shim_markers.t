#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Ranges of a program's own become segments by rules: NVTX in every form, domains, conditions, bad files, the built-in rules."""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "shim"))
from harness import BUILD, SANITIZED, TOP, cc, done, environment, events, link_flags, ok, same, stats, tmp

homes = [pathlib.Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda") / "include", TOP / "build/cuda/include", BUILD / "cuda/include"]
include = next((h for h in homes if (h / "nvtx3/nvToolsExtMem.h").exists()), None)
if not include:
	print("1..0 # SKIP no NVTX headers")
	sys.exit(0)
client = cc("range_client.c", "range_client", f"-isystem{include}", *link_flags())
runs = 0


class Run:
	"""The client's run of some commands, under rules."""

	def __init__(self, commands, rules=None, mode="preserve", **more):
		global runs
		runs += 1
		self.dir = tmp / f"run{runs}"
		if rules is not None:
			self.rules = tmp / f"rules{runs}"
			self.rules.write_text(rules)
			more["REPLAYSHIM_MARKERS"] = self.rules
		p = subprocess.run([client], input=commands, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120,
		                   errors="surrogateescape", env=environment(REPLAYSHIM_MODE=mode, REPLAYSHIM_OUT=self.dir, REPLAYSHIM_QUIET=1, **more))
		self.out, self.err, self.status = p.stdout, p.stderr, p.returncode
		self.stats = stats(self.dir)

	def records(self):
		path = self.dir / "records.jsonl"
		lines = path.read_text().splitlines() if path.exists() else []
		return [(r["segment"], r["invocation"], r["outcome"]) for r in map(json.loads, lines)]

	def ranges(self):
		"""{(domain, text): (kind, rule, count)}, the rule without its directory."""
		return {(e["domain"], e["text"]): (e["kind"], e["rule"].rpartition("/")[2], e["count"])
		        for e in events(self.dir) if e["t"] == "range"}


def lines(*commands):
	return "".join(c + "\n" for c in commands)


RULES = r"""
# what the loop says
step "iteration ([0-9]+)"
forward "fwd (layer[0-9]+)"
replay "recompute (layer[0-9]+)"
domain "model" forward "f/(.*)" name "\1"
domain "model" replay "r/(.*)" name "\1"
"""
STEP = lines("push iteration 3", "push fwd layer0", "work 0", "pop", "push other", "push fwd layer1", "work 1", "pop", "pop",
             "push recompute layer1", "work 1", "pop", "push recompute layer0", "work 0", "pop", "pop", "show 0", "show 1")

# --- what rules are for -----------------------------------------------------------------------------

bare = Run(STEP, mode="off")
same(bare.out, "2 2\n3 3\n", "unprotected: the replays see the state of later")
without = Run(STEP)
same((without.records(), without.out), ([], bare.out), "without rules these ranges are nothing, in preserve mode either")
r = Run(STEP, RULES)
same((r.out, r.err), ("2 1\n3 1\n", ""), "with rules both replays make the products of their forwards, and the state is put back")
same(r.records(), [("layer1", 0, "match"), ("layer0", 0, "match")], "they have records, by the names that the rules give")
same((r.stats["steps"], r.stats["forwards"], r.stats["replays"]), (1, 2, 2), "the step is one")
r = Run(STEP, RULES, mode="audit")
same((r.out, [o for _, _, o in r.records()]), (bare.out, ["divergence"] * 2), "an audit says that they differ, and changes nothing")

# --- forms of ranges --------------------------------------------------------------------------------

for form, begin, end in (("wide characters", "wide recompute layer0", "pop"), ("attributes", "ex recompute layer0", "pop"),
                         ("a range of the process", "start 1 recompute layer0", "end 1"),
                         ("a range of the default domain, by its functions", "dpush - recompute layer0", "dpop -"),
                         ("a named domain", "dpush model r/layer0", "dpop model"),
                         ("a registered string", "rpush model r/layer0", "dpop model"),
                         ("a range of the process in a named domain", "dstart 2 model r/layer0", "dend 2 model")):
	r = Run(lines("push fwd layer0", "work 0", "pop", begin, "work 0", end, "show 0"), RULES)
	same((r.out, r.records(), r.err), ("2 1\n", [("layer0", 0, "match")], ""), f"a replay as {form}")
r = Run(lines("dpush model fwd layer0", "work 0", "dpop model", "push f/layer0", "work 0", "pop", "dpush else f/x", "dpop else"), RULES)
same(r.stats["forwards"], 0, "a rule is about its own domain only")
r = Run(lines("mark iteration 7", "push fwd layer0", "pop", "mark fwd layer0", "dmark replayshim step:9"), RULES)
same((r.stats["steps"], r.stats["forwards"]), (2, 1), "a mark may be a step, and opens no window")
r = Run(lines("push train_step", "pop", "push train_step", "pop", "push step:7", "pop", "push train_step", "pop",
              "push forward:a", "pop", "push replay:a", "pop"), 'step "train_step"\n', REPLAYSHIM_LOG="info")
same((r.stats["steps"], r.records()), (4, [("a", 0, "match")]), "steps without a number are counted")
same([json.loads(line)["step"] for line in (r.dir / "records.jsonl").read_text().splitlines()], [8], "from the last one that had a number")
r = Run(lines("region - buffers/mean", "push forward:a", "work 0", "pop", "push replay:a", "work 0", "pop"),
        'state "buffers/(.*)" name "bn \\1"\n', mode="audit")
ok(any(e["t"] == "finding" and e.get("state", {}).get("name") == "bn mean" for e in events(r.dir)), "memory is named by a rule",
   [e for e in events(r.dir) if e["t"] == "finding"])

# --- what looks like a marker and is none -----------------------------------------------------------

WRONG = lines("push forward:a#b", "work 0", "pop", "push forward:a#b", "pop", "push step:two", "pop", "dpush model replay:a#b", "dpop model")
WHY = {"forward:a#b": "what follows # is no number", "step:two": "after step: there is no number"}
r = Run(WRONG)
same(r.err, "".join(f'==rs r0== warning: the range "{t}" looks like a marker and is none: {w}\n' for t, w in WHY.items()),
     "what is no marker for its number is told, once, and where markers may stand")
same(({e["wrong"]: e["why"] for e in events(r.dir) if e["t"] == "markers"}, r.stats["forwards"], r.stats["steps"]), (WHY, 0, 0), "also in the data")
r = Run(WRONG, 'forward "forward:(a)#b"\nstep "step:two"\n')
same((r.err, r.stats["forwards"], r.stats["steps"]), ("", 2, 1), "a rule may make something of it")
r = Run(lines(*[f"push forward:a#x{i}\npop" for i in range(20)]))
same(r.err.count("looks like a marker"), 8, "not all of very many")

# --- names that are no UTF-8 ------------------------------------------------------------------------

LATIN = lines("region - state:m\udce9moire", "push forward:caf\udce9", "work 0", "pop", "push replay:caf\udce9", "work 0", "pop")
audited = Run(LATIN, mode="audit", REPLAYSHIM_LEARN=1)
same(audited.records(), [("café", 0, "divergence")], "a name in Latin-1 is that in UTF-8")
learned = tmp / "latin.json"
p = subprocess.run([BUILD / "replayctl", "contract", audited.dir, "-o", learned], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
contract = json.loads(learned.read_text()) if learned.exists() else {}
same([(s["name"], [x["region"] for x in s["state"] if x.get("region")]) for s in contract.get("segments", [])], [("café", ["mémoire"])], "so it is in a contract")
r = Run(LATIN, REPLAYSHIM_CONTRACT=learned)
same((r.records(), [e["code"] for e in events(r.dir) if e["t"] == "finding" and e["code"] in ("RS080", "RS081")]), ([("café", 0, "match")], []),
     "and the contract is that of the program")

# --- nesting, balance -------------------------------------------------------------------------------

r = Run(lines("push fwd layer0", "push a", "push b", "work 0", "pop", "pop", "pop", "push a", "push recompute layer0", "push b",
              "work 0", "pop", "pop", "pop", "show 0"), RULES)
same((r.out, r.records()), ("2 1\n", [("layer0", 0, "match")]), "ranges that mean nothing, around and inside")
r = Run(lines("push fwd layer0", "dpush model x", "work 0", "pop", "work 1", "dpop model", "push fwd layer1", "pop",
              "push recompute layer0", "work 0", "pop", "show 0"), RULES, mode="preserve")
same((r.out, r.records()), ("2 1\n", [("layer0", 0, "match")]), "each domain is a stack of its own")
r = Run(lines("push fwd layer0", "dpush model f/layer1", "work 1", "pop", "dpop model", "push recompute layer0", "dpush model r/layer1",
              "pop", "work 1", "dpop model", "show 1"), RULES)
same((r.out, [x for x in r.records() if x[0] == "layer1"]), ("3 1\n", [("layer1", 0, "match")]),
     "windows of two domains may cross: the outer one ends first, and the inner one goes on")
r = Run(lines("pop", "pop", "push fwd layer0", "work 0", "pop", "pop", "pop", "push recompute layer0", "work 0", "pop", "pop", "show 0"), RULES)
same((r.out, r.records(), r.stats["internal_errors"]), ("2 1\n", [("layer0", 0, "match")], 0), "pops without a push end nobody's window")
r = Run(lines("push iteration 1", "push fwd layer0", "work 0", "push iteration 2", "push fwd layer0", "pop", "pop", "pop", "pop", "pop",
              "push fwd layer1", "work 1", "pop", "push recompute layer1", "work 1", "pop", "show 1"), RULES)
same((r.out, r.records()), ("3 1\n", [("layer1", 0, "match")]), "a window that a step cut off is over; later ones are right")
deep = ["push p"] * 300 + ["push fwd layer0", "work 0", "pop"] + ["pop"] * 299 + ["push recompute layer0", "work 0", "pop", "pop", "show 0"]
r = Run(lines(*deep), RULES)
same((r.out, r.records()), ("2 1\n", [("layer0", 0, "match")]), "hundreds of open ranges")

# --- conditions -------------------------------------------------------------------------------------

SAME = 'replay "(layer[0-9])" {} "backward"\nforward "(layer[0-9])"\n'
LAYERS = ("push layer0", "work 0", "pop", "push layer1", "work 1", "pop")
r = Run(lines(*LAYERS, "push backward", "push x", "push layer0", "work 0", "pop", "pop", "pop", "show 0", "push layer0", "pop"), SAME.format("inside"))
same((r.out, r.records(), r.stats["forwards"]), ("2 1\n", [("layer0", 0, "match")], 3), "inside: the same text is a replay within another range")
r = Run(lines(*LAYERS, "push backward", "thread", "push layer0", "pop", "join", "pop"), SAME.format("inside"))
same((r.stats["forwards"], r.stats["replays"]), (3, 0), "inside: of the same thread")
for begin, end in (("push backward", "pop"), ("start 3 backward", "end 3")):
	r = Run(lines(*LAYERS, begin, "thread", "push layer1", "work 1", "pop", "join", end, "show 1", "push layer0", "pop"), SAME.format("during"))
	same((r.out, r.records(), r.stats["forwards"]), ("3 1\n", [("layer1", 0, "match")], 3), f"during: of any thread ({begin})")
r = Run(lines("thread", "push backward", "join", *LAYERS), SAME.format("during"))
same(r.stats["forwards"], 2, "during: a thread that has ended is in no range any more")
UNTIL = 'forward "F"\nreplay "R" name "F" until "node.*"\n'
r = Run(lines("push F", "work 0", "pop", "push R", "work 0", "push node 1", "reset 1", "push node 2", "pop", "pop", "work 2", "pop", "show 0", "show 2"), UNTIL)
same((r.out, r.records()), ("2 1\n4 1\n", [("F", 0, "match")]), "until: the window ends before its range, and what follows is not part of it")

# --- the built-in rules -----------------------------------------------------------------------------

# As PyTorch 1.13's autograd engine opens them for two reentrant checkpoints, texts as emit_nvtx writes them.
TORCH = lines(
	"push CheckpointFunction, seq = 0, op_id = 1", "push aten::linear, op_id = 2", "work 0", "pop", "pop",
	"push CheckpointFunction, seq = 1, op_id = 9", "push aten::linear, op_id = 10", "work 1", "pop", "pop",
	"push aten::sum, seq = 2, op_id = 15", "pop",
	"thread",
	"push autograd::engine::evaluate_function: CheckpointFunctionBackward, op_id = 20",
	"push CheckpointFunctionBackward, seq = 1, op_id = 21", "push aten::linear, seq = 4, op_id = 22", "work 1", "pop",
	"push autograd::engine::evaluate_function: AddmmBackward0, op_id = 30", "push AddmmBackward0, seq = 4, op_id = 31", "work 3",
	"pop", "pop", "pop", "pop",
	"push autograd::engine::evaluate_function: CheckpointFunctionBackward, op_id = 40",
	"push CheckpointFunctionBackward, seq = 0, op_id = 41", "push aten::linear, seq = 6, op_id = 42", "work 0", "pop",
	"push autograd::engine::evaluate_function: AddmmBackward0, op_id = 50", "work 2", "pop", "pop", "pop",
	"join", "show 0", "show 1", "show 2", "show 3")
r = Run(TORCH)
same((r.out, r.err), ("2 1\n3 1\n4 1\n5 1\n", ""), "PyTorch's own ranges: the recomputations in the autograd thread are preserved")
same(r.records(), [("CheckpointFunction", 1, "match"), ("CheckpointFunction", 0, "match")], "by their sequence numbers")
r = Run(TORCH * 3)
same([o for _, _, o in r.records()], ["match"] * 6, "without steps, over several iterations")
r = Run(TORCH + lines("push Optimizer.step#AdamW.step, op_id = 99", "reset 2", "pop"), (TOP / "scripts/markers/pytorch.markers").read_text())
same((r.stats["steps"], [o for _, _, o in r.records()]), (1, ["match"] * 2), "with steps by the file that is there for them")
r = Run(TORCH, "builtin off\n")
same((r.records(), r.out), ([], "2 2\n3 3\n4 1\n5 1\n"), "they can be switched off")
own = lines("push CheckpointFunction, seq = 0, op_id = 1", "dpush replayshim forward:mine#0", "work 0", "dpop replayshim", "pop",
            "push CheckpointFunctionBackward, seq = 0, op_id = 1", "dpush replayshim replay:mine#0", "work 0", "dpop replayshim", "pop",
            "push CheckpointFunction, seq = 5, op_id = 1", "dpush replayshim forward:mine#1", "work 1", "dpop replayshim", "pop",
            "push CheckpointFunctionBackward, seq = 5, op_id = 1", "dpush replayshim replay:mine#1", "work 1", "dpop replayshim", "pop", "show 0")
r = Run(own)
same((r.records(), r.out), ([("mine", 0, "match"), ("mine", 1, "match")], "2 1\n"), "a program that marks itself inside of them is taken at its word")
r = Run(lines("dpush TSL Thunk:#name=jvp()/checkpoint/dot,hlo_op=fusion.1#", "work 0", "dpop TSL",
              "dpush TSL Thunk:#name=transpose(jvp())/checkpoint/rematted_computation/dot,hlo_op=fusion.2#", "work 0", "dpop TSL"), mode="audit")
same((r.stats["forwards"], r.stats["replays"]), (0, 0), "XLA's thunks are no segments by themselves")

# --- bad files --------------------------------------------------------------------------------------

r = Run(STEP, RULES + 'forwards "x"\nreplay "("\n')
same(r.records(), [("layer1", 0, "match"), ("layer0", 0, "match")], "bad rules are left out, the others hold")
want = f"REPLAYSHIM_MARKERS: {r.rules}:8:1: domain, step, forward, replay, ignore, state, output or builtin was expected"
ok(r.err.count("\n") == 1 and want in r.err and "1 others" in r.err, "and it is said once, with the place", r.err)
ok(any(e["t"] == "markers" and e["errors"] == 2 and e["rules"] == 5 for e in events(r.dir)), "also in the data")
r = Run(STEP, REPLAYSHIM_MARKERS="/nonexistent/rules")
same((r.out, r.err.count("No such file")), (bare.out, 1), "a file that is not there: the run goes on without")
two = tmp / "two"
two.write_text('ignore "fwd layer1"\n')
other = tmp / "other"
other.write_text(RULES)
r = Run(STEP, REPLAYSHIM_MARKERS=f"{two}:{other}")
same([x for x in r.records() if x[2] == "match"], [("layer0", 0, "match")], "several files: the first that says something is taken")

# --- what was there ---------------------------------------------------------------------------------

r = Run(STEP + lines("times 1000", "mark hello", "push forward:own", "pop", "dpush lib f(3)", "dpop lib", "dpush lib f(44)", "dpop lib"), RULES, mode="audit")
n = r.rules.name
want = {("", "iteration 3"): ("step", f"{n}:3", 1), ("", "fwd layer0"): ("forward", f"{n}:4", 2), ("", "recompute layer1"): ("replay", f"{n}:5", 2),
        ("", "other"): ("", "", 1), ("", "hello"): ("", "", 1000), ("", "forward:own"): ("forward", "marker", 1), ("lib", "f(3)"): ("", "", 2)}
same(r.ranges(), want, "an audit counts the ranges that there were, and says which rule took them")
same(Run(STEP).ranges(), {}, "preserve mode without rules has better things to do")
many = Run("".join(f"push {'x' * (i % 50)}{'y' * (i // 50)}\npop\n" for i in range(5000)), RULES, mode="audit")
left = sum(e.get("left_out", 0) for e in events(many.dir) if e["t"] == "markers")
ok(len(many.ranges()) == 512 and left >= 4000, "at most 512 different ones; how many were left out is told", (len(many.ranges()), left))
r = Run("".join(f"push fwd layer{i}\npop\n" for i in range(6000)) + STEP, RULES)
same((r.records(), r.stats["forwards"]), ([("layer1", 0, "match"), ("layer0", 0, "match")], 6002), "more texts than are kept are matched all the same")

# --- what it costs ----------------------------------------------------------------------------------

if not SANITIZED:
	driver = tmp / "driver"
	driver.mkdir()
	cc("null_driver.c", "driver/libcuda.so.1", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-soname,libcuda.so.1")
	counter = cc("count_calls.c", "count_calls.so", "-O2", "-shared", "-fPIC")
	bench = cc("range_bench.c", "range_bench", "-O2", f"-isystem{include}", f"-L{driver}", "-lcuda")
	some = tmp / "some"
	some.write_text('forward "layer([0-9]+)" inside "b"\ndomain "model" ignore "skip ([0-9]+)"\n')
	for mode in "audit", "preserve":
		p = subprocess.run([bench], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
		                   env=environment(sim=False, preload=[counter], LD_LIBRARY_PATH=driver, REPLAYSHIM_MODE=mode,
		                                   REPLAYSHIM_MARKERS=some, REPLAYSHIM_QUIET=1, REPLAYSHIM_OUT=tmp / f"cost-{mode}"))
		found = {}
		for name, function, times in map(str.split, p.stdout.splitlines()):
			found.setdefault(name, {})[function] = int(times)
		for name in "other-text", "long-text", "other-domain", "by-rule":
			same(found.get(name), {"calls": 1000}, f"{mode}: {name}: a text that was there before takes no lock and no memory")
		ok(found.get("window", {}).get("pthread_mutex_lock"), f"{mode}: a window does, and is counted", found)

# --- replayctl markers ------------------------------------------------------------------------------


def ctl(*args):
	p = subprocess.run([BUILD / "replayctl", "markers", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
	return p.returncode, p.stdout, p.stderr


listed = Run(STEP, RULES + 'replay "("\n', mode="audit")
status, out, err = ctl(listed.dir)
want = [["2", "forward", f"{listed.rules}:4", "default", "fwd layer0"], ["2", "replay", f"{listed.rules}:5", "default", "recompute layer1"],
        ["1", "step", f"{listed.rules}:3", "default", "iteration 3"], ["1", "-", "-", "default", "other"]]
same((status, [row.split(None, 4) for row in out.splitlines()[2:]], err), (0, want, ""), "a run's ranges are listed")
status, out, err = ctl("--json", listed.dir)
same([(o["text"], o["count"]) for o in map(json.loads, out.splitlines())], [(w[4], int(w[0])) for w in want], "as JSON, too")
report = subprocess.run([BUILD / "replayctl", "report", listed.dir], stdout=subprocess.PIPE, text=True).stdout
ok(f"1 marker rules were left out: {listed.rules}:8:9: the ( is not closed" in report, "the report cannot tell, because a rule was left out", report)
blind = Run(STEP, mode="audit")
report = subprocess.run([BUILD / "replayctl", "report", blind.dir], stdout=subprocess.PIPE, text=True).stdout
ok("replayctl markers lists the" in report, "where no replay was seen it says how to find the ranges", report)
wrong = Run(WRONG, mode="audit")
report = subprocess.run([BUILD / "replayctl", "report", wrong.dir], stdout=subprocess.PIPE, text=True).stdout
ok('2 ranges look like markers and are none, such as "step:two": after step: there is no number' in " ".join(report.split()),
   "the report says so", report)
rules = tmp / "checked"
rules.write_text('replay "(l[0-9])" during "bwd" until "x"\nforward "(l[0-9])"\ndomain "d" forward "(q)#" name "a#\\\\1" number "7"\nignore "nope"\nstep "tick"\n')
status, out, err = ctl(rules, "l3", "nope", "tick", "step:4", "q#", "what\033[1m", "replay:a#b")
same((status, out, err), (0, f"""l3
    replay:l3  ({rules}:1, during "bwd", until "x")
    forward:l3  ({rules}:2)
nope
    nothing  ({rules}:4)
tick
    step: the next number  ({rules}:5)
step:4
    step:4  (a marker as it stands)
q#
    nothing  (no rule)
what\\x1b[1m
    nothing  (no rule)
replay:a#b
    nothing  (what follows # is no number)
""", ""), "what rules make of texts")
status, out, err = ctl(rules, "--domain", "d", "q#")
same((status, out), (0, f"q#\n    forward:a_\\1#7  ({rules}:3)\n"), "of a domain")
same(ctl(rules)[:2], (0, "5 rules, 0 errors, built-in rules on\n"), "a file that is in order")
status, out, err = ctl(listed.rules)
same((status, out, err), (1, "5 rules, 1 errors, built-in rules on\n", f"replayctl markers: {listed.rules}:8:9: the ( is not closed\n"),
     "one that is not")
same([ctl("/nonexistent")[0], ctl(tmp / "nothing-here", "x")[0], ctl("--json", rules)[0], ctl("--bad")[0]], [1, 1, 2, 2], "what cannot be done")
(tmp / "empty").mkdir()
same(ctl(tmp / "empty")[0], 3, "a directory without data")
builtin = tmp / "builtin"
builtin.write_text(ctl()[1])
same((ctl(builtin)[0], builtin.read_text().count("until")), (0, 1), "the built-in rules are rules as any others")
for example in sorted((TOP / "scripts/markers").glob("*")):
	same(ctl(example)[0], 0, f"the example {example.name} is in order")
done()
