#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""replayctl entrypoints prints the lists that the library was built from: all of them, in both formats."""
import collections
import json
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "shim"))
from harness import BUILD, TOP, done, ok, same

table = (TOP / "shim" / "entry_points.def").read_text()
passive = (TOP / "shim" / "passive.def").read_text()
rows = re.findall(r"^EP\((\w+), (\w+), (\w+), (\d+), (\w+), ", table, re.M)
titles = dict(re.findall(r'^GROUP\((\w+), "(.+)"\)$', table, re.M))
abouts = {(g, a): t for g, a, t in re.findall(r'^ABOUT\((\w+), (\w+), "(.+)"\)$', table, re.M)}
actions = dict(re.findall(r'^ACTION\((\w+), "(.+)"\)$', table, re.M))
reasons = dict(re.findall(r'^REASON\((\w+), "(.+)"\)$', passive, re.M))
left = re.findall(r"^PASSIVE\((\w+), (\w+)\)$", passive, re.M)

want = [(s, g, a.lower(), int(since), f.lower(), abouts.get((g, a), actions[a])) for s, g, a, since, f in rows]
want += [(s, "H", "passive", 0, "plain", reasons[r]) for s, r in left]


def ctl(*arguments):
	return subprocess.run([BUILD / "replayctl", "entrypoints", *arguments], stdout=subprocess.PIPE,
	                      stderr=subprocess.PIPE, text=True)


KEYS = ("symbol", "group", "action", "since", "flavour", "what")
p = ctl("--json")
o = json.loads(p.stdout)
same((p.returncode, p.stderr, o["v"]), (0, "", 1), "--json is JSON")


def equal(got, wanted, name):
	"""As same, for long lists: what differs."""
	ok(got == wanted, name, f"{len(got)} and {len(wanted)}\n" + "\n".join(f"got  {g}\nwant {w}" for g, w in zip(got, wanted) if g != w))


equal([tuple(e[k] for k in KEYS) for e in o["entrypoints"]], want, "with every row of both lists")
same(o["counts"], dict(collections.Counter(e[2] for e in want)), "and their numbers")
same(o["groups"], {**titles, "H": "not intercepted"}, "all groups have their titles")
same({e[1] for e in want}, set(o["groups"]), "and each has functions")
same(o["actions"], {k.lower(): v for k, v in actions.items()}, "the actions are told")

lines = ctl().stdout.splitlines()
same(lines[0].split()[:5], ["symbol", "group", "action", "since", "flavour"], "text has a head line")
ok(lines[-1].startswith(f"{len(want)} functions: "), "and a sum", lines[-1])


def words(e):
	return [e[0], e[1], e[2], f"{e[3] // 1000}.{e[3] % 1000 // 10}" if e[3] else "-", e[4], e[5]]


equal([line.split(None, 5) for line in lines[1:-1]], [words(e) for e in want], "and one line for each function")

for group in o["groups"]:
	mine = [e for e in want if e[1] == group]
	got = json.loads(ctl("--json", f"--group={group.lower()}").stdout)
	if [tuple(e[k] for k in KEYS) for e in got["entrypoints"]] != mine or sum(got["counts"].values()) != len(mine):
		ok(False, f"--group={group}")
	if [line.split()[0] for line in ctl("--group", group).stdout.splitlines()[1:-1]] != [e[0] for e in mine]:
		ok(False, f"--group {group}, text")
ok(True, "--group takes each group")
p = ctl("--group=Z9")
same((p.returncode, p.stdout), (2, ""), "an unknown group is a usage error")
ok("there is no group 'Z9'" in p.stderr and "A1" in p.stderr and "H" in p.stderr, "that lists the groups", p.stderr)
same((ctl("--frob").returncode, ctl("extra").returncode), (2, 2), "so is anything else")
ok(all(len(e[5]) > 10 for e in want), "something is said about every function")
done()
