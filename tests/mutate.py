#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Break the engine on purpose, one place at a time: each time its tests must fail.

Usage: tests/mutate.py [NAME-PART ...]     (make mutate)
Each mutation is an exact text of a tracker file and what replaces it; a text that no longer stands there is an
error, so this list follows the code. Speaks TAP. Builds in a temporary directory; the tree is not touched.
"""
import os
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TESTS = ["test_engine_verdicts", "test_engine_cases", "test_engine_random"]

MUTATIONS = [
    ("restore to P2 left out", "tracker/preserve.c",
     "\top = rs_oplist_add(l, RS_OP_RESTORE, q);\n\tif (!op) {\n\t\tw->rec->flags |= RS_F_LOST;\n\t\treturn;\n\t}",
     "\top = NULL;\n\tif (!op)\n\t\treturn;"),
    ("P0 not shown to the replay", "tracker/preserve.c",
     "\top = p2 ? rs_oplist_add(l, RS_OP_RESTORE, q) : NULL;", "\top = NULL;"),
    ("any keep of the allocation will do, whatever its version", "tracker/preserve.c",
     "struct rs_keep *k = rs_keep_find(a, piece->off, piece->ver);", "struct rs_keep *k = a->keeps;"),
    ("invocations not told apart", "tracker/window.c",
     "if (s->name == name && (int64_t)s->invocation == invocation)", "if (s->name == name)"),
    ("pre-image without the writes of other streams before the restore", "tracker/preserve.c",
     "\trs_oplist_order(l, a->touched, q);\n\tk->pins++;", "\tk->pins++;"),
    ("later accesses do not wait for the put-back", "tracker/access.c",
     "\tif (a->fence && a->fence - 1 != c->q &&", "\tif (0 && a->fence && a->fence - 1 != c->q &&"),
    ("put-back not ordered after the replay's other streams", "tracker/preserve.c",
     "\trs_oplist_order(l, a->touched, q);\n\trs_write_piecewise(e, l, q, a, k->off, k->len, &self);",
     "\trs_write_piecewise(e, l, q, a, k->off, k->len, &self);"),
    ("snapshot block reused before its readers are done", "tracker/memory.c",
     "\t\tif (rs_order_now(e, b->users, q)) {", "\t\tif (0) {"),
    ("a keep is dropped while a segment still claims it", "tracker/preserve.c",
     "rs_claimed(e, a, k->off, k->len, k->ver))) {", "0)) {"),
    ("claims are not looked at before a write", "tracker/preserve.c",
     "\t\tif (!x->claimed)\n\t\t\tcontinue;", "\t\tcontinue;"),
    ("a write does not change the version", "tracker/preserve.c",
     "\trs_extmap_set(&a->ext, off, len, ++e->version, 0);\n}\n\n/* The shim",
     "\trs_extmap_set(&a->ext, off, len, e->version, 0);\n}\n\n/* The shim"),
    ("digests are not compared", "tracker/compare.c",
     "\t\tif (c->a->w[i] != c->b->w[i])", "\t\tif (0)"),
    ("unknown counts as equal", "tracker/compare.c",
     "\tif (with > *v)", "\tif (with == V_DIFFERENT)"),
    ("windows are visited innermost first", "tracker/access.c",
     "\tin_windows(c, outer_window(w));\n\tin_window(c, w);", "\tin_window(c, w);\n\tin_windows(c, outer_window(w));"),
    ("a step does not close open replays", "tracker/window.c",
     "\tabort_windows(e, &t->top);\n\tabort_windows(e, &e->process);", ""),
    ("state and product are decided per allocation", "tracker/access.c",
     "\tr.off = x->whole ? 0 : x->addr - base;\n\tr.len = x->whole ? bytes : x->bytes;",
     "\tr.off = 0;\n\tr.len = bytes;"),
    ("old bytes are put over the new owner of an address", "tracker/access.c",
     "\tif (!la || (la->serial == a->serial && la->off < off + len && off < la->off + la->len))\n\t\treturn 0;", "\treturn 0;"),
    ("a pool is one tensor: any place of the same allocation will do", "tracker/access.c",
     "la->serial == a->serial && la->off < off + len && off < la->off + la->len", "la->serial == a->serial"),
    ("restores P0 although P2 could not be held", "tracker/oplist.c",
     "\tif (op->guard && __atomic_load_n(&op->guard->state, __ATOMIC_ACQUIRE) != RS_KEEP_READY)",
     "\tif (0)"),
    ("what only the replay reads is taken for unchanged", "tracker/preserve.c",
     "\t\tif (x->ver > s->since && (!t || j == t->claims.n))", "\t\tif (0)"),
    ("a kept product is not compared with what was kept", "tracker/access.c",
     "\t    !made->digest)\n\t\treturn 0;", "\t    !made->digest)\n\t\treturn 0;\n\treturn 1;"),
    ("an older version put back is taken for unchanged", "tracker/preserve.c",
     "if (rs_alloc_is_volatile(a) || a->restored > s->since)", "if (rs_alloc_is_volatile(a))"),
    ("state that only the replay touches is undone", "tracker/access.c",
     "return rs_region_at(a, s->off, &until) ? RS_HOLD_BOTH : RS_HOLD_COMPARE;", "return RS_HOLD_RESTORE;"),
    ("an unknown writer's products count as equal", "tracker/compare.c",
     "{RS_F_UNKNOWN_WRITER, RS_FINDING_UNKNOWN_WRITER, V_UNKNOWN, V_UNKNOWN, V_UNKNOWN}",
     "{RS_F_UNKNOWN_WRITER, RS_FINDING_UNKNOWN_WRITER, V_UNKNOWN, V_EQUAL, V_UNKNOWN}"),
]


def build_and_test(tree):
    """0 when every test passes, else the name of the first that fails."""
    objects = []
    sources = [f for f in sorted(os.listdir(tree + "/tracker")) if f.endswith(".c")]
    wanted = ("access window preserve oplist memory extent compare engine generator records findings digest "
              "quiet").split()
    sources = [f for f in sources if f[:-2] in wanted or f.startswith("addrmap")]
    for f in sources:
        obj = f"{tree}/{f}.o"
        subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-w", "-fno-strict-aliasing", "-I", tree, "-c",
                        f"{tree}/tracker/{f}", "-o", obj], check=True)
        objects.append(obj)
    for t in TESTS:
        exe = f"{tree}/{t}"
        subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-w", "-I", tree, f"{tree}/tests/unit/{t}.c", *objects,
                        "-lpthread", "-o", exe], check=True)
        args = ["150"] if t == "test_engine_random" else []
        try:
            run = subprocess.run([exe, *args], capture_output=True, timeout=60)
        except subprocess.TimeoutExpired:
            return t
        if run.returncode:
            return t
    return 0


def mutate(n, name, path, old, new):
    with tempfile.TemporaryDirectory() as tree:
        shutil.copytree(TOP + "/tracker", tree + "/tracker")
        shutil.copytree(TOP + "/tests/unit", tree + "/tests/unit")
        shutil.copy(TOP + "/tests/tap.h", tree + "/tests/tap.h")
        if path:
            text = open(f"{tree}/{path}").read()
            if text.count(old) != 1:
                print(f"not ok {n} - {name}: the text stands {text.count(old)} times in {path}", flush=True)
                return False
            open(f"{tree}/{path}", "w").write(text.replace(old, new))
        failed = build_and_test(tree)
    caught = bool(failed) == bool(path)
    how = f"caught by {failed}" if failed else "all tests pass"
    print(f"{'ok' if caught else 'not ok'} {n} - {name}: {how}", flush=True)
    return caught


def main():
    chosen = [m for m in MUTATIONS if not sys.argv[1:] or any(a in m[0] for a in sys.argv[1:])]
    print(f"1..{len(chosen) + 1}", flush=True)
    results = [mutate(1, "the code as it is", None, "", "")]
    results += [mutate(i, *m) for i, m in enumerate(chosen, 2)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
