#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Findings say where in the program their writer was called: native and Python frames, by every unwinder, or none."""
import glob
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "shim"))
from harness import BUILD, SANITIZED, SIM, TOP, cc, done, events, link_flags, ok, run, same, stats, tmp

CTL = BUILD / "replayctl"
SOURCE = TOP / "tests" / "clients" / "where.c"
CUDA = [f"-I{p}/include" for p in (os.environ.get("CUDA_HOME") or "/usr/local/cuda", TOP / "build" / "cuda")]
UNWINDER = "backtrace" if "tsan" in os.environ.get("RS_SAN", "") else "libunwind"
HERE = next(n for n, line in enumerate(SOURCE.read_text().splitlines(), 1) if "HERE" in line)


def report(directory, *flags):
	return subprocess.run([str(CTL), "report", *flags, str(directory)], stdout=subprocess.PIPE, text=True).stdout


def findings(directory, code="RS010"):
	whole = json.loads(report(directory, "--format=json"))
	return [f for f in whole["runs"][0]["findings"] if f["code"] == code]


def names(finding, kind="native"):
	return [f.get("function", "") for f in finding.get("where", {}).get(kind, [])]


def audit(name, command, **variables):
	out = tmp / name
	return out, run(command, REPLAYSHIM_OUT=out, REPLAYSHIM_QUIET=1, **variables)


def has(got, wanted):
	"""Those names, one directly after the other."""
	return any(got[i:i + len(wanted)] == wanted for i in range(len(got)))


# --- native -----------------------------------------------------------------------------------------

CHAIN = ["overwrite", "inner", "outer"]


def native():
	plain = run([BUILD / "clients" / "where", "once"], tool=False)
	variants = {"built": BUILD / "clients" / "where"}
	for level in ("-O0", "-O2"):
		for pointer in ("-fomit-frame-pointer", "-fno-omit-frame-pointer"):
			name = "where" + level + pointer
			variants[f"{level} {pointer}"] = cc(None, name, level, pointer, f"-I{TOP}", *CUDA, *link_flags(),
			                                    text=SOURCE.read_text())
	for name, program in variants.items():
		out, p = audit(f"native {name}", [program, "once"])
		same((p.returncode, p.stdout, p.stderr), (0, plain.stdout, ""), f"{name}: the program is as without the tool")
		(f,) = findings(out) or [{}]
		ok(has(names(f), CHAIN) and "main" in names(f), f"{name}: frames by name", names(f))
		s = stats(out)
		same((s["stacks_asked"], s["stacks_known"], s["stacks"], s["unwinder"]), (1, 1, 1, UNWINDER),
		     f"{name}: asked once, known")
		first = f["where"]["native"][0]
		ok(first["module"] == str(program) and re.fullmatch("0x[0-9a-f]+", first["offset"]),
		   f"{name}: module and offset", first)
	ok("at        " in report(tmp / "native built") and "in overwrite() <- " in report(tmp / "native built"),
	   "the report says it in a line", report(tmp / "native built"))


def no_addresses():
	"""The same on every run, wherever the kernel has put the program."""
	text = [[(e.get("native"), e.get("build")) for e in events(audit(f"aslr{i}", [BUILD / "clients" / "where", "once"])[0])
	         if e["t"] in ("stack", "module")] for i in range(2)]
	same(text[0], text[1], "modules, builds and offsets do not depend on addresses")
	program = [m for m in events(tmp / "aslr0") if m["t"] == "module"][0]
	noted = subprocess.run(["readelf", "-n", program["path"]], stdout=subprocess.PIPE, text=True).stdout
	ok(program["build"] and program["build"] in noted, "the build id is the file's", program)


def another_build():
	"""What stands in the file now is not what ran."""
	program = tmp / "changed"
	shutil.copy(BUILD / "clients" / "where", program)
	out, _ = audit("stale", [program, "once"])
	ok(has(names(findings(out)[0]), CHAIN), "a copy has names, too")
	program.unlink()
	shutil.copy(tmp / "where-O0-fomit-frame-pointer", program)
	(f,) = findings(out)
	ok(not set(names(f)) & set(CHAIN), "another build lends no names", names(f))
	ok(f"{program.parent.name}/changed+0x" in report(out), "file and offset are left", report(out))
	program.write_bytes(b"\x7fELF\x02\x01" + b"\xff" * 100000)
	ok(not set(names(findings(out)[0])) & set(CHAIN), "nor does a broken file")


def threads():
	out, _ = audit("thread", [BUILD / "clients" / "where", "thread"])
	ok(has(names(findings(out)[0]), [*CHAIN, "in_thread"]), "another thread's own frames", names(findings(out)[0]))


def graphs():
	"""The node is described with a lock of the library's own held; where the launch is was looked at before."""
	out, p = audit("graph", [BUILD / "clients" / "where", "graph"])
	ok(has(names(findings(out)[0]), ["launch", "step"]) or names(findings(out)[0])[:1] == ["launch"],
	   "a node of a graph: where the graph was launched", f"{names(findings(out)[0])} {p.stderr}")
	same((stats(out)["stacks_asked"], stats(out)["stacks_known"]), (1, 1), "a node of a graph: known")


def steps():
	out, _ = audit("steps", [BUILD / "clients" / "where", "steps", "20"])
	lines = [e["t"] for e in events(out)]
	same((lines.count("stack"), stats(out)["stacks_asked"], stats(out)["stacks"]), (1, 20, 1), "one place is one line")
	ok(lines.index("module") < lines.index("stack") < lines.index("finding"), "lines stand before those that name them")
	out, _ = audit("clean", [BUILD / "clients" / "where", "clean", "20"])
	same((stats(out)["stacks_asked"], stats(out)["replays"]), (0, 20), "calls that matter to nobody are not looked at")
	ok("stacks: none was needed" in report(out), "which the report says", report(out))


def table_full():
	out, p = audit("many", [BUILD / "clients" / "where", "many", "1500"])
	s = stats(out)
	same((p.returncode, s["stacks"], s["stacks_asked"], s["stacks_known"], s["stacks_refused"]), (0, 1024, 1500, 1024, 476),
	     "no more than the table holds")
	same((s["replays"], s["divergence"] > 1000), (1500, True), "findings are there without it")
	ok(f"stacks 68% of 1,500, without room 476, by {UNWINDER}" in report(out), "the report tells", report(out))


def frames_and_off():
	for value, native in (("3", 3), ("1", 1), ("64", None)):
		out, _ = audit(f"frames{value}", [BUILD / "clients" / "where", "once"], REPLAYSHIM_STACKS=value)
		got = names(findings(out)[0])
		ok(len(got) == native if native else len(got) >= 5, f"STACKS={value}", got)
	out, p = audit("off", [BUILD / "clients" / "where", "once"], REPLAYSHIM_STACKS="off")
	ok(not [e for e in events(out) if e["t"] in ("stack", "module")] and "unwinder" not in stats(out), "STACKS=off: nothing")
	ok(findings(out) and "stack" not in findings(out)[0]["writer"], "STACKS=off: the finding is there")
	ok("stacks" not in report(out), "STACKS=off: nor in the report")
	_, p = audit("bad", [BUILD / "clients" / "where", "once"], REPLAYSHIM_STACKS="many")
	ok("REPLAYSHIM_STACKS=many: expected a number or off; using 16" in p.stderr, "a bad value is told", p.stderr)
	out, _ = audit("preserved", [BUILD / "clients" / "where", "once"], REPLAYSHIM_MODE="preserve")
	same((stats(out)["match"], [e for e in events(out) if e["t"] == "stack"]), (1, []), "a match writes no stack")


def without_libunwind():
	folder = tmp / "broken"
	folder.mkdir()
	(folder / "libunwind.so.8").write_bytes(b"not an object")
	out, p = audit("fallback", [BUILD / "clients" / "where", "once"], LD_LIBRARY_PATH=f"{folder}:{SIM}")
	same((p.returncode, p.stdout, p.stderr), (0, "done\n", ""), "without libunwind: the program is as ever")
	same(stats(out)["unwinder"], "backtrace", "without libunwind: libc unwinds")
	ok(has(names(findings(out)[0]), CHAIN), "without libunwind: the same frames", names(findings(out)[0]))
	ok("by backtrace" in report(out), "without libunwind: the report says by what")
	if UNWINDER == "libunwind":  # else the sanitizer itself is here
		own = cc(None, "sanitized", "-rdynamic", f"-I{TOP}", *CUDA, *link_flags(), text=SOURCE.read_text() + "void __tsan_init(void) {}")
		out, p = audit("beside", [own, "once"])
		same((p.returncode, stats(out)["unwinder"]), (0, "backtrace"), "not beside a thread sanitizer, where it would crash")


CPP = r"""
#include <cstdio>
#include <dlfcn.h>
#include <stdexcept>
#include <string>
extern "C" { int where_main(int, char **); void *_Unwind_RaiseException; }
struct guard { int &n; ~guard() { n++; } };
__attribute__((noinline)) static void thrower(int depth) { if (!depth) throw std::runtime_error("thrown"); thrower(depth - 1); asm volatile(""); }
int main(int argc, char **argv)
{
	int unwound = 0, caught = 0;
	for (int i = 0; i < 3; i++) {
		if (i == 1)
			where_main(argc, argv);
		try { guard g{unwound}; thrower(20); } catch (const std::exception &e) { caught += std::string(e.what()) == "thrown"; }
	}
	Dl_info info;
	void *f = dlsym(RTLD_DEFAULT, "_Unwind_RaiseException");
	printf("%d %d %s\n", unwound, caught, f && dladdr(f, &info) ? info.dli_fname : "?");
}
"""


def exceptions():
	(tmp / "throw.cc").write_text(CPP)
	obj, program = tmp / "where_main.o", tmp / "throw"
	subprocess.run(["gcc", "-w", "-g", "-O2", "-std=gnu11", "-Dmain=where_main", f"-I{TOP}", *CUDA, "-c", "-o", obj, SOURCE], check=True)
	subprocess.run(["g++", "-w", "-g", "-O2", "-o", program, tmp / "throw.cc", obj, *link_flags(), "-ldl", "-lpthread"], check=True)
	out, p = audit("exceptions", [program, "once"])
	plain = run([program, "once"], tool=False)
	same((p.returncode, p.stdout), (0, plain.stdout), "C++ exceptions are thrown and caught as without the tool")
	ok("libgcc_s" in p.stdout, "by the compiler's unwinder", p.stdout)
	ok(has(names(findings(out)[0]), [*CHAIN, "step"]) or has(names(findings(out)[0]), CHAIN), "and frames are known")


# --- Python -----------------------------------------------------------------------------------------

PYTHON = r'''
import ctypes, sys, threading
kind = sys.argv[1]
load = ctypes.PyDLL if kind == "gil" else ctypes.CDLL
cu = load("libcuda.so.1")
rs = ctypes.CDLL(None)
state, product, other, ctx = (ctypes.c_uint64() for _ in range(4))

def must(r):
	assert r == 0, r

class Módel:
	def überschreiben(self, value):
		must(cu.cuMemsetD32_v2(state, ctypes.c_uint(value), ctypes.c_size_t(1)))  # HERE

	def step(self, value):
		return (lambda: self.überschreiben(value))()

def deep(n, value):
	if n:
		deep(n - 1, value)
	else:
		Módel().step(value)

def generated(value):
	exec(compile("def made(f, v):\n\tf(v)\n", "<made>", "exec"), globals())
	made(Módel().step, value)

def generator(value):
	Módel().step(value)
	yield 1

def in_thread(value):
	def body():
		must(cu.cuCtxSetCurrent(ctx))
		Módel().step(value)
	t = threading.Thread(target=body)
	t.start()
	t.join()

def excepting(value):
	try:
		raise KeyError("kept")
	except KeyError:
		before = sys.exc_info()
		Módel().step(value)
		assert sys.exc_info() == before

ways = {"deep": lambda v: deep(100, v), "generated": generated, "generator": lambda v: list(generator(v)), "thread": in_thread,
        "excepting": excepting}

def segment():
	must(cu.cuMemcpyDtoD_v2(product, state, ctypes.c_size_t(4)))

def main():
	must(cu.cuInit(0))
	must(cu.cuCtxCreate_v2(ctypes.byref(ctx), 0, 0))
	for p in (state, product, other):
		must(cu.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(4096)))
	for i in range(2):
		rs.replayshim_step(ctypes.c_long(i))
		rs.replayshim_forward_begin(b"block", ctypes.c_long(-1))
		segment()
		rs.replayshim_forward_end()
		ways.get(kind, Módel().step)(7 + i)
		rs.replayshim_replay_begin(b"block", ctypes.c_long(-1))
		segment()
		rs.replayshim_replay_end()
	must(cu.cuCtxSynchronize())
	print("done", sys.version_info[0])

main()
'''
STEP = ["überschreiben", "step.<locals>.<lambda>", "step"]


def interpreters():
	"""(name, program): those in PATH, and of RS_PYTHONS, a list like PATH."""
	found = {}
	for program in [sys.executable, *(shutil.which(f"python3.{n}") for n in range(8, 15)),
	                *os.environ.get("RS_PYTHONS", "").split(":")]:
		p = program and subprocess.run([program, "-c", "import sys; print('%d.%d' % sys.version_info[:2]); print(sys.executable)"],
		                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
		if p and p.returncode == 0:
			name, real = p.stdout.split()
			found.setdefault(name, real)
	return sorted(found.items(), key=lambda x: int(x[0].split(".")[1]))


def simple(frames, version):
	"""Qualified names, from 3.11 on, without the class."""
	return [n.replace("Módel.", "") for n in frames] if int(version.split(".")[1]) >= 11 else frames


def python():
	folder = tmp / "Prögramm"
	folder.mkdir()
	script = folder / "train.py"
	script.write_text(PYTHON, encoding="utf-8")
	here = next(n for n, line in enumerate(PYTHON.splitlines(), 1) if "HERE" in line)
	for version, program in interpreters():
		step = STEP if int(version.split(".")[1]) >= 11 else ["überschreiben", "<lambda>", "step"]
		for kind, more in (("plain", ["main", "<module>"]), ("gil", ["main", "<module>"]), ("deep", ["deep"] * 11),
		                   ("generated", ["made", "generated", "main"]), ("generator", ["generator"]), ("thread", []),
		                   ("excepting", ["excepting", "main"])):
			out, p = audit(f"python{version}{kind}", [program, script, kind], PYTHONIOENCODING="utf-8")
			same((p.returncode, p.stdout), (0, "done 3\n"), f"Python {version}, {kind}: the program ends well")
			(f,) = findings(out) or [{}]
			got = simple(names(f, "python"), version)
			first = (f.get("where", {}).get("python") or [{}])[0]
			ok(got[:3 + len(more)] == [*step, *more], f"Python {version}, {kind}: frames", f"{got}\n{p.stderr}{stats(out)}")
			same((first.get("file"), first.get("line")), (str(script), here), f"Python {version}, {kind}: file and line")
			same((stats(out).get("python"), stats(out)["stacks_known"]), (version, 2), f"Python {version}, {kind}: said by what")
	text = report(tmp / f"python{version}plain")
	ok(re.search(rf"at        Prögramm/train.py:{here} in (Módel.)?überschreiben\(\) <- ", text), "the report says it in a line", text)
	text = report(tmp / f"python{version}plain", "-v")
	ok(f"      python    {script}:{here} in " in text and "\n      native    " in text, "with -v frame by frame", text)
	records = subprocess.run([str(CTL), "records", str(tmp / f"python{version}plain")], stdout=subprocess.PIPE, text=True).stdout
	ok(f"at Prögramm/train.py:{here} in " in records, "and so do the records", records)


# --- damaged data -----------------------------------------------------------------------------------

def damaged():
	out = tmp / "damaged"
	shutil.copytree(tmp / "steps", out)
	path = out / "events.jsonl"
	lines = path.read_text().splitlines(keepends=True)
	at = next(i for i, line in enumerate(lines) if '"t":"stack"' in line)
	for what, line, why in (("no JSON", lines[at][:40] + "\n", "not a JSON object"),
	                        ("a number", re.sub(r'"stack":1', '"stack":"x"', lines[at]), "wrong or missing field 'stack'"),
	                        ("native", re.sub(r'"native":\[\[1', '"native":[["a"', lines[at]), "wrong or missing field 'native'"),
	                        ("offset", lines[at].replace('"0x', '"0y'), "wrong or missing field 'native'"),
	                        ("python", lines[at].replace('"python":[]', '"python":[["a",-1,"b"]]'),
	                         "wrong or missing field 'python'"),
	                        ("no list", lines[at].replace('"python":[]', '"python":7'), "wrong or missing field 'python'")):
		path.write_text("".join([*lines[:at], line, *lines[at + 1:]]))
		text = report(out)
		ok(f"events.jsonl:{at + 1}: {why}" in text and "RS010" in text and "      at  " not in text,
		   f"a stack line with {what}: file and line are told, the rest is kept", text)
	path.write_text("".join(line for line in lines if '"t":"module"' not in line))
	ok("RS010" in report(out), "modules that are missing do no harm", report(out))


native()
no_addresses()
another_build()
threads()
graphs()
steps()
damaged()
table_full()
frames_and_off()
without_libunwind()
if not SANITIZED:
	exceptions()
python()
done()
