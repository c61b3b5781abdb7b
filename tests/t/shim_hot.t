#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A followed call that no segment is affected by allocates nothing, takes no lock, asks for no time and no environment."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "shim"))
from harness import SANITIZED, TOP, cc, done, ok, run, same, tmp

if SANITIZED:
	print("1..0 # SKIP a sanitizer has its own malloc and locks")
	sys.exit(0)

CALLS = ["passed-through", "copy", "fill", "launch-8", "launch-64", "launch-8-ptx", "copy-new", "launch-8-new",
         "launch-64-new", "launch-8-ptx-new", "alloc-free", "sub-alloc-free"]
# Who enters and removes allocations excludes others.
BUSY = {"alloc-free", "sub-alloc-free"}

driver = tmp / "driver"
driver.mkdir()
cc("null_driver.c", "driver/libcuda.so.1", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-soname,libcuda.so.1")
counter = cc("count_calls.c", "count_calls.so", "-O2", "-shared", "-fPIC")
client = cc("call_client.c", "call_client", "-O2", f"-I{TOP}")


def counts(mode, state, live):
	"""{call: {function: times}} for 1000 calls each, or None."""
	p = run([client, live, state], sim=False, preload=[counter], LD_LIBRARY_PATH=driver, REPLAYSHIM_MODE=mode,
	        REPLAYSHIM_QUIET=1, REPLAYSHIM_OUT=tmp / f"out-{mode}-{state}-{live}")
	found = {}
	for line in p.stdout.splitlines():
		call, function, times = line.split()
		found.setdefault(call, {})[function] = int(times)
	if not ok(p.returncode == 0 and not p.stderr and list(found) == CALLS and
	          all(f.pop("calls") == 1000 for f in found.values()), f"{mode}, {state}, {live} live: runs",
	          p.stdout + p.stderr):
		return None
	return found


for mode in "audit", "preserve":
	for state, live in ("idle", 1000), ("pending", 1000), ("pending", 10):
		found = counts(mode, state, live)
		for call in CALLS:
			if found and call not in BUSY:
				same(found[call], {}, f"{mode}, {state}, {live} live: {call} calls none of them")

# What is counted is there to be counted: a followed call of a segment does all kinds of things.
found = counts("audit", "window", 1000)
ok(found and all(found[call].get("pthread_mutex_lock", 0) >= 1000 for call in CALLS if call != "passed-through"),
   "inside of a forward locks are taken, and counted", found)
ok(found and any(found[call].get("malloc", 0) + found[call].get("realloc", 0) for call in CALLS),
   "inside of a forward memory is allocated, and counted", found)
done()
