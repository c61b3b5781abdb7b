#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The PTX in the tree is what its .cu file compiles to (comment lines apart).

Skipped without nvcc, or with an nvcc of another release than the one that made the committed files.
"""
import os
import re
import subprocess
import sys
import tempfile

TOP = os.environ.get("RS_TOP") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
os.chdir(TOP)


def sources():
    for folder in ("shim/kernels", "tests/kernels"):
        for name in sorted(os.listdir(folder)):
            if name.endswith(".cu"):
                yield os.path.join(folder, name)


def release(text):
    found = re.search(r"Cuda compilation tools, release .*", text)
    return found and found.group()


def code(path):
    with open(path) as f:
        return [line.rstrip() for line in f if not line.lstrip().startswith("//")]


def skip(why):
    print(f"1..0 # SKIP {why}")
    sys.exit(0)


def main():
    home = os.environ.get("CUDA_HOME") or "/usr/local/cuda"
    nvcc = os.path.join(home, "bin", "nvcc")
    if not os.access(nvcc, os.X_OK):
        skip("no nvcc")
    version = release(subprocess.run([nvcc, "--version"], capture_output=True, text=True).stdout)
    files = list(sources())
    failed = 0
    carried = [src[:-3] + ".ptx" for src in files if src.startswith("shim/")]
    print(f"1..{len(files) + len(carried)}")
    with tempfile.TemporaryDirectory() as into:
        for n, src in enumerate(files, 1):
            ptx = src[:-3] + ".ptx"
            head = open(ptx).read(1000) if os.path.exists(ptx) else ""
            if head and release(head) != version:
                print(f"ok {n} - {ptx} # SKIP made by {release(head)}, here is {version}")
                continue
            env = dict(os.environ, CUDA_HOME=home)
            subprocess.run(["scripts/make-ptx", "--into", into, src], check=True, env=env)
            same = bool(head) and code(ptx) == code(os.path.join(into, ptx))
            failed += not same
            print(f"{'' if same else 'not '}ok {n} - {ptx}")
            if not same:
                print(f"#   run scripts/make-ptx {src}")
            sys.stdout.flush()
    # The version that shim/ kernels are lowered to must still hold what they use.
    for n, ptx in enumerate(carried, len(files) + 1):
        run = subprocess.run([os.path.join(home, "bin", "ptxas"), "-arch=sm_75", ptx, "-o", os.devnull])
        failed += run.returncode != 0
        print(f"{'not ' if run.returncode else ''}ok {n} - {ptx} assembles as it is")
    return failed != 0


sys.exit(main())
