#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A call that is equal to one which needed nothing, or goes to such memory, is not described, until it does need something."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "shim"))
from harness import BUILD, done, run, same, tmp

ROUNDS = 4

for kind in "fill", "copy", "launch", "other", "empty", "new-copy", "new-launch", "grid":
	out = tmp / kind
	p = run([BUILD / "clients/calm", kind], preload=[], REPLAYSHIM_MODE="preserve", REPLAYSHIM_OUT=out)
	same(p.stdout.split("\n")[:-1], [f"{i} {i} {i + 100}" for i in range(1, ROUNDS + 1)],
	     f"{kind}: each replay sees what its forward saw, and leaves what was written since")
	lines = (out / "records.jsonl").read_text().splitlines()
	same([json.loads(line)["outcome"] for line in lines], ["match"] * ROUNDS, f"{kind}: matches")
done()
