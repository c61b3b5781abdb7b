#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/check-layers passes the tree and finds planted violations, each on its line."""
import os
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.join(TOP, "scripts", "check-layers")

# path, text, what the report must say (None: nothing)
PLANTED = [
    ("planner/a.c", '#include <cuda.h>\n', "planner/a.c:1: the planner never sees CUDA"),
    ("planner/b.c", '#include "shim/real.h"\n', 'planner/b.c:1: planner must not include "shim/real.h"'),
    ("planner/c.c", '#include "cupti/rs_cupti.h"\n', "planner/c.c:1: planner must not include"),
    ("planner/d.c", '#include "shim/include/replayshim.h"\n#include <jansson.h>\n#include "tracker/x.h"\n', None),
    ("tracker/a.c", '\n\n  #  include <cupti.h>\n', "tracker/a.c:3: tracker includes libc only, not <cupti.h>"),
    ("tracker/b.c", '#include <jansson.h>\n', "tracker/b.c:1: tracker includes libc only"),
    ("tracker/hash.h", '#include <uthash.h>\n', None),
    ("tracker/hash.c", '#include <uthash.h>\n', "tracker/hash.c:1: tracker includes libc only"),
    ("tracker/c.c", '#include "planner/x.h"\n', "tracker/c.c:1: tracker must not include"),
    ("tracker/d.c", '#include "engine.h"\n', "must be named from the top of the tree"),
    ("tracker/e.c", '#include <stdio.h>\n#include <sys/mman.h>\n#include "tracker/d.h"\n', None),
    ("tracker/f.c", 'void f(void)\n{\n\tabort();\n}\n', "tracker/f.c:3: abort() has no place"),
    ("tracker/g.c", '/* abort() */\nconst char *g = "exit(1)"; // getenv("A")\nint h = my_exit(1) + a->exit(2);\n', None),
    ("tracker/h.c", 'int h = sizeof(snprintf(a, 1, "%d", 1));\n_Static_assert(1, "x");\n', None),
    ("shim/a.c", '#include "cupti/inner.h"\n', "shim/a.c:1: shim must not include"),
    ("shim/b.c", '#include "cupti/rs_cupti.h"\n#include <cuda.h>\n#include "shim/x.def"\n', None),
    ("shim/c.c", 'char *c = getenv("HOME");\n', "shim/c.c:1: getenv() has no place"),
    ("shim/options.c", 'char *o = getenv("HOME");\n', None),
    ("shim/options2.c", 'int o(void) { return printf("x"); }\n', "shim/options2.c:1: printf() has no place"),
    ("shim/include/p.h", '#include "tracker/x.h"\n', 'shim/include/p.h:1: shim/include must not include'),
    ("cupti/a.c", '#include "shim/x.h"\n', "cupti/a.c:1: cupti must not include"),
    ("cupti/b.c", '#include <cupti.h>\n#include "tracker/x.h"\n', None),
    ("tests/unit/a.c", '#include "shim/x.h"\n#include <cuda.h>\nint main(void) { exit(1); }\n', None),
    ("tests/unit/b.c", '#include "tap.h"\n', "tests/unit/b.c:1:"),
]
count = failed = 0


def ok(condition, what, detail=""):
    global count, failed
    count += 1
    print(f"{'ok' if condition else 'not ok'} {count} - {what}")
    if not condition:
        failed += 1
        for line in str(detail).splitlines():
            print("#   " + line)


def run(top):
    p = subprocess.run([sys.executable, SCRIPT, top], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return p.returncode, p.stdout


status, out = run(TOP)
ok(status == 0, "the tree keeps its directions", out)
for path, text, wanted in PLANTED:
    with tempfile.TemporaryDirectory() as top:
        os.makedirs(os.path.join(top, os.path.dirname(path)))
        with open(os.path.join(top, path), "w") as f:
            f.write(text)
        status, out = run(top)
        if wanted:
            ok(status == 1 and wanted in out, f"found: {wanted}", out)
        else:
            ok(status == 0, f"allowed: {path}", out)
with tempfile.TemporaryDirectory() as top:
    status, out = run(top)
    ok(status == 2, "an empty tree has not been checked", out)
print(f"1..{count}")
sys.exit(1 if failed else 0)
