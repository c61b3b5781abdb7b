#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Markers and memory regions by NVTX's own headers, alone and behind another injection library."""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "shim"))
from harness import BUILD, TOP, cc, done, link_flags, ok, run, same, stats, tmp

homes = [pathlib.Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda") / "include", TOP / "build/cuda/include", BUILD / "cuda/include"]
include = next((h for h in homes if (h / "nvtx3/nvToolsExtMem.h").exists()), None)
if not include:
	print("1..0 # SKIP no NVTX headers")
	sys.exit(0)
client = cc("nvtx_client.c", "nvtx_client", f"-isystem{include}", *link_flags())


def records(directory):
	path = directory / "records.jsonl"
	return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def findings(directory):
	lines = (directory / "events.jsonl").read_text().splitlines()
	return [e for e in map(json.loads, lines) if e["t"] == "finding"]


plain = run([client], tool=False)
same(plain.stdout, "-2 -2 done\n", "the program runs by itself")
for mode in ("audit", "preserve"):
	out = tmp / mode
	p = run([client], REPLAYSHIM_MODE=mode, REPLAYSHIM_OUT=out, REPLAYSHIM_QUIET=1)
	same((p.stdout, p.stderr, p.returncode), (plain.stdout, "", 0), f"{mode}: NVTX calls return what they return without a tool")
	s = stats(out)
	same((s.get("steps"), s.get("forwards"), s.get("replays")), (1, 1, 3),
	     f"{mode}: the step, the forward and each form of replay are seen, the foreign domain is not")
	same([r["segment"] for r in records(out)], ["a"] * 3, f"{mode}: one record a replay")
	same(p.stderr, "", f"{mode}: and quietly")
same([r["outcome"] for r in records(tmp / "audit")], ["divergence"] * 3, "audit: the state had moved on")
same([r["outcome"] for r in records(tmp / "preserve")], ["match"] * 3, "preserve: every replay saw the original state")
ok("counter" in json.dumps(findings(tmp / "audit")), "audit: the finding names the region as the program did",
   findings(tmp / "audit"))

CHAIN = r"""
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
static int depth;
static int push(const char *m) { fprintf(stderr, "[%s]", m); return depth++; }
static int pop(void) { fprintf(stderr, "[pop]"); return --depth; }
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get)
{
	const NvtxExportTableCallbacks *c = get(NVTX_ETID_CALLBACKS);
	NvtxFunctionTable t;
	unsigned n;
	if (!c->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &t, &n))
		return 0;
	*t[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push;
	*t[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)pop;
	return 1;
}
"""
other = cc(None, "libother.so", "-shared", "-fPIC", f"-isystem{include}", text=CHAIN)
alone = run([client], tool=False, NVTX_INJECTION64_PATH=other)
out = tmp / "chain"
both = run([client], NVTX_INJECTION64_PATH=other, REPLAYSHIM_OUT=out, REPLAYSHIM_QUIET=1)
same((both.stdout, both.stderr), (alone.stdout, alone.stderr), "another injection library sees and answers the same as alone")
same((stats(out).get("forwards"), stats(out).get("replays")), (1, 3), "and so do we")
nested = run(["sh", "-c", str(client)], NVTX_INJECTION64_PATH=other, REPLAYSHIM_OUT=tmp / "nested", REPLAYSHIM_QUIET=1)
same(nested.stderr, alone.stderr, "also in a child process, where the variable names us")
missing = run([client], NVTX_INJECTION64_PATH="/nonexistent.so", REPLAYSHIM_OUT=tmp / "missing", REPLAYSHIM_QUIET=1)
same((missing.stdout, missing.stderr.count("warning: REPLAYSHIM_NVTX_NEXT")), (plain.stdout, 1),
     "a missing one is warned of once, and we work")
done()
