#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Options that change what a program sees or what is said: STRICT, HELP, LOG_FILE, OUT, QUIET, bad values, ranks."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "shim"))
from harness import cc, done, events, link_flags, ok, run, same, tmp

# A segment whose state moves on between forward and replay; the results of the calls that follow.
DIVERGING = r"""
#include "shim/include/replayshim.h"
#include <stdio.h>
typedef unsigned long long dptr;
extern int cuInit(), cuCtxCreate_v2(), cuMemAlloc_v2(), cuMemsetD8_v2(), cuMemcpyDtoD_v2(), cuCtxSynchronize();
extern int cuCtxGetCurrent();
int main(void)
{
	dptr state, input, out;
	void *ctx;
	cuInit(0), cuCtxCreate_v2(&ctx, 0, 0);
	cuMemAlloc_v2(&state, (size_t)256), cuMemAlloc_v2(&input, (size_t)256), cuMemAlloc_v2(&out, (size_t)256);
	cuMemsetD8_v2(state, 1, (size_t)256), cuMemsetD8_v2(input, 2, (size_t)256);
	replayshim_step(1);
	replayshim_region_name(state, 256, "state:s");
	for (int i = 0; i < 2; i++) {
		if (i)
			replayshim_replay_begin("a", 0L);
		else
			replayshim_forward_begin("a", REPLAYSHIM_NEXT);
		cuMemcpyDtoD_v2(out, state, (size_t)256);
		cuMemcpyDtoD_v2(state, input, (size_t)256);
		replayshim_range_pop();
	}
	printf("%d ", replayshim_active());
	for (int i = 0; i < 4; i++)
		printf("%d ", cuCtxSynchronize());
	printf("%d\n", cuCtxGetCurrent(&ctx));
	return 0;
}
"""
program = cc(None, "diverging", f"-I{pathlib.Path(__file__).resolve().parent.parent.parent}", *link_flags(), text=DIVERGING)


def results(name, **variables):
	p = run([program], REPLAYSHIM_OUT=tmp / name, **variables)
	active, *codes = p.stdout.split()
	return p, int(active), [int(c) for c in codes]


p, active, codes = results("lax")
same((active, codes), (1, [0] * 5), "audit: a divergence is a record, the program sees nothing")
p, active, codes = results("strict", REPLAYSHIM_STRICT=1)
same((sorted(codes), p.returncode), ([0, 0, 0, 0, 999], 0), "STRICT=1: one later call fails with CUDA_ERROR_UNKNOWN, once")
p, active, codes = results("strict-preserve", REPLAYSHIM_STRICT=1, REPLAYSHIM_MODE="preserve")
same(codes, [0] * 5, "STRICT=1, preserve: a match fails nothing")
p, active, codes = results("nop", REPLAYSHIM_MODE="nop")
same((active, p.stderr), (0, ""), "nop: not active")

log = tmp / "messages"
p, _, _ = results("log", REPLAYSHIM_LOG_FILE=tmp / "messages", RANK=3)
same((p.stderr, log.exists()), ("", True), "LOG_FILE: stderr stays empty")
p, _, _ = results("rank", RANK=3)
same((p.stderr, events(tmp / "rank")[0]["rank"]), ("", 3), "only rank 0 says that it started; all write")
p, _, _ = results("bad", REPLAYSHIM_SNAPSHOT_MAX=48, REPLAYSHIM_MODE="audti", REPLAYSHIM_VERIFI=1, REPLAYSHIM_QUIET=1)
same(sorted(p.stderr.splitlines()), [
	"==rs r0== warning: REPLAYSHIM_MODE=audti: expected off|nop|audit|preserve; using audit",
	"==rs r0== warning: REPLAYSHIM_SNAPSHOT_MAX=48: expected a number with a unit (B KiB MiB GiB TiB), or none; using none",
	"==rs r0== warning: REPLAYSHIM_VERIFI: no such option; did you mean REPLAYSHIM_VERIFY?"],
	"bad values and unknown names are told, with variable and value")
p, _, _ = results("bad", REPLAYSHIM_LOG="error", REPLAYSHIM_MODE="audti", REPLAYSHIM_QUIET=1)
same(p.stderr, "", "LOG=error: warnings are not written")
blocked = tmp / "file"
blocked.write_text("")
p = run([program], REPLAYSHIM_OUT=blocked / "dir", REPLAYSHIM_QUIET=1)
ok(p.returncode == 0 and p.stdout.startswith("1 0") and "error: REPLAYSHIM_OUT=" in p.stderr,
   "no directory: said once, and the program runs on", p.stderr)
p = run([program], REPLAYSHIM_OUT="%q{WHO}/%n", WHO="me", REPLAYSHIM_QUIET=1)
p = run([program], REPLAYSHIM_OUT="%q{WHO}/%n", WHO="me", REPLAYSHIM_QUIET=1)
same(sorted(d.name for d in (tmp / "me").iterdir()), ["0", "1"], "%q{VAR} and %n in OUT")
p = run(["true"], sim=False, REPLAYSHIM_HELP=1, REPLAYSHIM_QUIET=1)
ok(p.returncode == 0 and not p.stdout and "REPLAYSHIM_MODE=audit (default)" in p.stderr and
   "REPLAYSHIM_QUIET=1 (environment)" in p.stderr, "HELP=1 prints every option with value and origin", p.stderr)
begin = events(tmp / "rank")[0]
same((begin["t"], begin["mode"], begin["opts"]["OUT"]["from"]), ("begin", "audit", "env"), "the begin line has the options and where they come from")
done()
