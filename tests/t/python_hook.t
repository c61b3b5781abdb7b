#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The Python hook (shim/python), in fresh interpreters, against stand-ins for the library and the frameworks.

The stand-in library is a few lines of C that write each call to a file; the stand-in frameworks have the attributes
that the hook uses. The real tinygrad and the real library meet in `make demo`.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
HOOK = TOP / "shim" / "python"

LIBRARY = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say(const char *what, unsigned long long a, unsigned long long b, const char *text)
{
	FILE *f = fopen(getenv("HOOK_CALLS"), "a");

	fprintf(f, "%s %llx %llu %s\n", what, a, b, text);
	fclose(f);
}

int replayshim_region_name(uint64_t address, uint64_t bytes, const char *name)
{
	say("name", address, bytes, name);
	return address == 0xbad0 ? -2 : 0;
}

int replayshim_region_drop(uint64_t address, uint64_t bytes)
{
	say("drop", address, bytes, "");
	return 0;
}

int replayshim_retain(const char *name, long invocation)
{
	char text[200];

	snprintf(text, sizeof(text), "%s#%ld", name, invocation);
	say("retain", 0, 0, text);
	return getenv("HOOK_RETAIN") && strstr(getenv("HOOK_RETAIN"), text);
}

int replayshim_range_push(const char *text)
{
	say("push", 0, 0, text);
	return 0;
}

int replayshim_range_pop(void)
{
	say("pop", 0, 0, "");
	return 0;
}
"""

TENSOR = """
import ctypes

class Buf:
	def __init__(self, address, nbytes, device="CUDA"):
		self._buf, self.nbytes, self.device = ctypes.c_ulonglong(address), nbytes, device

class Node:
	def __init__(self, buf=None):
		self.base, self.realized = self, buf

class Tensor:
	_device_rng_counters, _device_seeds = {}, {}

	def __init__(self, buf, size=None):
		self.buf, self.uop, self.size = buf, Node(), size or buf.nbytes

	def nbytes(self):
		return self.size

	def realize(self, *lst):
		for t in (self,) + lst:
			if t.uop.realized is not t.buf:
				t.uop = Node(t.buf)
		return self

	def __eq__(self, other):
		raise TypeError("a tensor is not compared by accident")

	__hash__ = object.__hash__
"""

STATE = """
from tinygrad.tensor import Tensor

def get_state_dict(obj, prefix="", tensor_type=Tensor):
	if isinstance(obj, tensor_type):
		return {prefix.strip("."): obj}
	named = {}
	for k, v in (obj if isinstance(obj, dict) else vars(obj)).items():
		named.update(get_state_dict(v, prefix + k + ".", tensor_type))
	return named

def get_parameters(obj):
	return list(get_state_dict(obj).values())
"""

TORCH = """
class Function:
	@classmethod
	def apply(cls, *args):
		return cls.forward(cls(), *args)

class CheckpointFunction(Function):
	@staticmethod
	def forward(ctx, run_function, preserve_rng_state, *args):
		ctx.run_function, ctx.args = run_function, args
		CheckpointFunction.last = ctx
		return run_function(*args)

	@staticmethod
	def backward(ctx, *grads):
		return ctx.run_function(*ctx.args)

def _checkpoint_without_reentrant_generator(fn, preserve_rng_state=True, *args, **kwargs):
	global again
	again = lambda: fn(*args, **kwargs)
	yield

def checkpoint(function, *args, use_reentrant=True):
	if use_reentrant:
		return CheckpointFunction.apply(function, True, *args)
	gen = _checkpoint_without_reentrant_generator(function, True, *args)
	next(gen)
	ret = function(*args)
	try:
		next(gen)
	except StopIteration:
		return ret
"""

OPTIMIZER = """
hooks = []

def register_optimizer_step_post_hook(hook):
	hooks.append(hook)

class Optimizer:
	def step(self):
		for h in hooks:
			h(self, (), {})
"""

count = 0
failed = 0


def ok(right, text, detail=""):
	global count, failed
	count += 1
	print(("ok" if right else "not ok"), count, "-", text)
	if not right:
		failed += 1
		for line in str(detail).splitlines():
			print("#", line)


def is_equal(got, want, text):
	ok(got == want, text, f"got  {got!r}\nwant {want!r}")


class Place:
	"""A directory with the stand-ins; runs Python programs in it."""

	def __init__(self, path):
		self.path = pathlib.Path(path)
		self.library = self.path / "libstandin.so"
		source = self.path / "standin.c"
		source.write_text(LIBRARY)
		subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", self.library, source], check=True)
		for name, text in (("tinygrad/__init__", ""), ("tinygrad/tensor", TENSOR), ("tinygrad/nn/__init__", ""),
				("tinygrad/nn/state", STATE), ("torch/__init__", "def is_grad_enabled(): return True"), ("torch/utils/__init__", ""),
				("torch/utils/checkpoint", TORCH),
				("torch/optim/__init__", ""), ("torch/optim/optimizer", OPTIMIZER),
				("own/sitecustomize", "import sys; sys.own = __name__"),
				("broken/sitecustomize", "raise ValueError('of the user')"),
				("missing/sitecustomize", "import no_such_module")):
			file = self.path / f"{name}.py"
			file.parent.mkdir(parents=True, exist_ok=True)
			file.write_text(text)
		self.calls = self.path / "calls"

	def run(self, code, path=(), library=True, **env):
		"""(calls of the library, stdout, stderr, status) of a program."""
		self.calls.write_text("")
		full = {k: v for k, v in os.environ.items() if not k.startswith(("REPLAYSHIM_", "PYTHON"))}
		preload = os.environ.get("RS_SAN_PRELOAD", "")
		full.update(PYTHONPATH=os.pathsep.join([str(HOOK), *map(str, path), str(self.path)]),
			PYTHONDONTWRITEBYTECODE="1", HOOK_CALLS=str(self.calls), REPLAYSHIM_LOG="debug",
			LD_PRELOAD=f"{preload} {self.library}" if library else preload)
		full.update(env)
		done = subprocess.run([sys.executable, "-c", code], env=full, cwd=self.path, stdout=subprocess.PIPE,
			stderr=subprocess.PIPE, universal_newlines=True, check=False)
		calls = [line.rstrip() for line in self.calls.read_text().splitlines()]
		return calls, done.stdout, done.stderr, done.returncode


NET = """
from tinygrad.tensor import Tensor, Buf, Node
from tinygrad.nn.state import get_parameters, get_state_dict
class Part: pass
net = Part()
net.norm = Part()
net.norm.mean = Tensor(Buf(0x1000, 32))
net.weight = Tensor(Buf(0x2000, 64))
"""


def tinygrad_tests(p):
	calls, _, err, _ = p.run(NET + "get_parameters(net); net.weight.realize(net.norm.mean); net.weight.realize()")
	is_equal(sorted(calls), ["name 1000 32 norm.mean", "name 2000 64 weight"], "state is named once it has buffers")
	ok("attached to tinygrad.nn.state" in err, "what the hook did is said on request", err)

	calls, *_ = p.run(NET + "net.weight.realize(net.norm.mean); get_parameters(net)")
	is_equal(sorted(calls), ["name 1000 32 norm.mean", "name 2000 64 weight"], "state that has buffers is named at once")

	calls, *_ = p.run(NET + """
get_state_dict(net); net.weight.realize()
net.weight.buf = Buf(0x3000, 64); net.weight.uop = Node(); net.weight.realize()
del net.weight
net.norm.mean.realize()
Tensor(Buf(0x1000, 32)).realize()
del net.norm.mean
""")
	is_equal(calls, ["name 2000 64 weight", "drop 2000 64", "name 3000 64 weight", "drop 3000 64",
		"name 1000 32 norm.mean"], "a name follows its tensor to another buffer, and goes before the buffer is used again")

	calls, *_ = p.run(NET + "get_state_dict(net.norm); net.norm.mean.realize(); get_state_dict(net); get_state_dict([])")
	is_equal(calls, ["name 1000 32 mean", "name 1000 32 norm.mean"], "the fuller name wins")

	calls, *_ = p.run(NET + """
Tensor._device_rng_counters["CUDA"] = Tensor(Buf(0x4000, 8)).realize()
Tensor._device_seeds["CUDA"] = Tensor(Buf(0x5000, 8))
net.weight.realize(*Tensor._device_seeds.values())
""")
	is_equal(calls, ["name 4000 8 rng.counter[CUDA]", "name 5000 8 rng.seed[CUDA]"],
		"random state is named without a model")

	calls, *_ = p.run(NET + """
net.cpu, net.view = Tensor(Buf(0x6000, 8, "CPU")), Tensor(Buf(0x7000, 64), 8)
get_state_dict(net); net.cpu.realize(net.view)
get_state_dict({"0": Tensor(Buf(0x8000, 8)).realize()})
get_state_dict({"x": Tensor(Buf(0x9000, 8)).realize()}, tensor_type=(Tensor, int))
""")
	is_equal(calls, [], "other devices, views, list places and function arguments are not named")

	calls, *_ = p.run(NET + "net.odd = Tensor(Buf(0xbad0, 8)); get_state_dict(net); net.odd.realize(); net.odd.realize()")
	is_equal(calls, ["name bad0 8 odd"] * 2, "a range that the library does not know is tried again")


def torch_tests(p):
	code = """
import torch.optim.optimizer, torch.utils.checkpoint as c
from torch.utils.checkpoint import checkpoint
class Block:
	def __call__(self, x):
		if x < 0:
			raise ValueError(x)
		return 2 * x
def half(x): return x // 2
"""
	calls, out, err, status = p.run(code + """
b = Block()
again = lambda: c.CheckpointFunction.backward(c.CheckpointFunction.last, 1)
print(checkpoint(b, 4), again(), checkpoint(b, 5), checkpoint(half, 6))
torch.optim.optimizer.Optimizer().step()
print(checkpoint(b, 7))
""")
	is_equal((out, status), ("8 8 10 3\n14\n", 0), "reentrant: results are the program's own")
	is_equal([c.split(None, 3)[-1] for c in calls if c.startswith("push")], ["forward:Block#0", "replay:Block#0",
		"forward:Block#1", "forward:half#0", "step:1", "forward:Block#0"],
		"reentrant: forwards, replays and steps are marked")
	calls, out, err, status = p.run(code + """
print(checkpoint(half, 6, use_reentrant=False), c.again(), c.again())
try: checkpoint(Block(), -1)
except ValueError as e: print(e)
try: checkpoint(Block(), -2, use_reentrant=False)
except ValueError as e: print(e)
class FakeTensor(int): pass
print(checkpoint(half, FakeTensor(8), use_reentrant=False))
""")
	is_equal((out, status), ("3 3 3\n-1\n-2\n4\n", 0), "generator form: results and errors are the program's own")
	is_equal([c.split(None, 3)[-1] for c in calls if c.startswith("push")], ["forward:half#0", "replay:half#0",
		"replay:half#0", "forward:Block#0", "forward:Block#1"], "generator form: each replay is marked, tracing is not")
	is_equal(sum(c.startswith("push") for c in calls), sum(c.startswith("pop") for c in calls),
		"ranges are closed on every path")


def retain_tests(p):
	"""What a plan keeps runs without a checkpoint around it; everything else as ever."""
	code = """
import torch, torch.utils.checkpoint as c
from torch.utils.checkpoint import checkpoint
class T(int): requires_grad = True
def half(x): return x // 2
c.CheckpointFunction.last = c.again = None
"""

	def run(text, retain):
		calls, out, err, status = p.run(code + text, HOOK_RETAIN=retain)
		ok(not err.count("Error"), "no error inside the hook", err)
		words = [c.split()[0][0] + c.split()[-1] for c in calls if c.startswith(("push", "retain"))]
		return words, out, status, sum(c.startswith("push") for c in calls) - sum(c.startswith("pop") for c in calls)

	text = "print(checkpoint(half, T(6)), c.CheckpointFunction.last is None, checkpoint(half, T(8)))"
	is_equal(run(text, "half#0"), (["rhalf#0", "pforward:half#0", "rhalf#1", "pforward:half#1"], "3 True 4\n", 0, 0),
		"reentrant: kept without a checkpoint, asked before the forward")
	text += "\nprint(c.CheckpointFunction.backward(c.CheckpointFunction.last, 1))"
	is_equal(run(text, "half#0")[:2], (["rhalf#0", "pforward:half#0", "rhalf#1", "pforward:half#1", "preplay:half#1"],
		"3 True 4\n4\n"), "reentrant: what is not kept is replayed")
	is_equal(run("print(checkpoint(half, 6), c.CheckpointFunction.last is None)", "half#0")[:2],
		(["pforward:half#0"], "3 False\n"), "reentrant: without an argument that needs a gradient nobody is asked")
	text = "print(checkpoint(half, 6, use_reentrant=False), c.again is None, checkpoint(half, 8, use_reentrant=False), c.again())"
	is_equal(run(text, "half#0"), (["rhalf#0", "pforward:half#0", "rhalf#1", "pforward:half#1", "preplay:half#1"],
		"3 True 4 4\n", 0, 0), "generator form: the same")
	is_equal(run("torch.is_grad_enabled = lambda: False\n" + text.replace("c.again()", "0").replace("c.again is", "None is"),
		"half#0")[:2], (["pforward:half#0", "pforward:half#1"], "3 True 4 0\n"), "without gradients nobody is asked")
	text = "list(c._checkpoint_without_reentrant_generator(half, False, 6)); print(c.again())"
	is_equal(run(text, "half#0")[:2], (["pforward:half#0", "preplay:half#0"], "3\n"),
		"random state that is not preserved: nobody is asked")
	text = """
def outer(x): return checkpoint(half, T(x), use_reentrant=False)
print(checkpoint(outer, T(6)), c.CheckpointFunction.backward(c.CheckpointFunction.last, 1))
"""
	is_equal(run(text, "half#1")[:2], (["router#0", "pforward:outer#0", "rhalf#0", "pforward:half#0", "preplay:outer#0",
		"pforward:half#1"], "3 3\n"), "inside of a replay nobody is asked")


PARTS = """
import collections, functools
import torch.optim.optimizer, torch.utils.checkpoint as c
from torch.utils.checkpoint import checkpoint

class Tensor:
	device = collections.namedtuple("Device", "type")("cuda")
	def __init__(self, address, n, step=1): self.address, self.n, self.step = address, n, step
	def data_ptr(self): return self.address
	def element_size(self): return 4
	def numel(self): return self.n
	shape = property(lambda self: (self.n,))
	def stride(self): return (self.step,)
	def __eq__(self, other): raise TypeError("a tensor is not compared by accident")
	__hash__ = object.__hash__

class Module:
	def __init__(self, **attributes):
		self._parameters, self._buffers, self._modules = {}, {}, {}
		vars(self).update(attributes)
	def named_modules(self):
		yield "", self
		for name, part in self._modules.items():
			for inner, m in part.named_modules():
				yield name + "." + inner if inner else name, m
	def __call__(self, x): return self.forward(x)
	def forward(self, x): return x

def again(): return c.CheckpointFunction.backward(c.CheckpointFunction.last, 1)
def half(x): return x // 2
"""


def state_tests(p):
	"""What a checkpointed function can reach in PyTorch has a name while it is there, and no longer."""
	def run(text):
		calls, out, err, status = p.run(PARTS + text)
		ok(status == 0 and not err.count("Error"), "no error in the hook or in the program", err + out)
		return [c.split(None, 3)[-1] if c.startswith("push") else c for c in calls if not c.startswith("pop")]

	is_equal(run("""
TABLE = Tensor(0x9000, 4)
class Block(Module):
	def forward(self, x): return x * len(TABLE.shape)
b = Block(cache=Tensor(0x3000, 3), scales={"x": [Tensor(0x4000, 1)]}, host=Tensor(0x5000, 1), name="b")
b.host.device = collections.namedtuple("Device", "type")("cpu")
b._parameters["weight"] = Tensor(0x1000, 2)
b._modules["norm"] = Module()
b._modules["norm"]._buffers.update(mean=Tensor(0x2000, 2), none=None)
checkpoint(b, 4)
"""), ["name 3000 12 Block.cache", "name 4000 4 Block.scales.x.0", "name 9000 16 __main__.TABLE", "name 2000 8 Block.norm.mean",
		"name 1000 8 Block.weight", "forward:Block#0"],
		"buffers, parameters, attributes, lists and dicts of a module, and its globals are named before its forward")

	is_equal(run("""
mask, bank, module = Tensor(0x1000, 2), [Tensor(0x2000, 2)], Module(seen=Tensor(0x3000, 1))
def make(inner):
	def seg(x, shift=Tensor(0x4000, 1)): return inner(x) + len(bank)
	seg.__qualname__ = "seg"
	return seg
checkpoint(make(module), 4)
checkpoint(functools.partial(half), 4)
checkpoint(functools.partial(lambda x, k: x, k=mask), 4)
class Plain:
	def __init__(self): self.held = Tensor(0x5000, 1)
	def step(self, x): return x
plain = Plain()
checkpoint(plain.step, 4)
"""), ["name 3000 4 seg.inner.seen", "name 4000 4 seg.shift", "name 2000 8 seg.bank.0", "forward:seg#0", "drop 4000 4", "forward:half#0",
		"name 1000 8 <lambda>.k", "forward:<lambda>#0", "name 5000 4 Plain.held", "forward:Plain#0"],
		"so are closures, defaults, globals, bound arguments and the objects of methods")

	is_equal(run("""
b = Module(queue=Tensor(0x1000, 2))
def forward(x):
	b.queue = Tensor(0x2000, 2)
	return x
checkpoint(b, 1)
b.queue.address = 0x3000
again()
c.CheckpointFunction.last = None
checkpoint(forward, 1)
c.CheckpointFunction.last = None
checkpoint(b, 1)
b.queue.address = 0
checkpoint(b, 1)
c.CheckpointFunction.last = None
b.queue = Tensor(0x4000, 2)
checkpoint(b, 1)
c.CheckpointFunction.last = None
"""), ["name 1000 8 Module.queue", "forward:Module#0", "drop 1000 8", "name 3000 8 Module.queue", "replay:Module#0",
		"forward:forward#0", "drop 3000 8", "name 2000 8 Module.queue", "forward:Module#1", "drop 2000 8", "forward:Module#2",
		"name 4000 8 Module.queue", "forward:Module#3"],
		"a name follows its state to other memory, and goes with the tensor at once")

	is_equal(run("""
one, two = Module(x=Tensor(0x1000, 1)), Module(x=Tensor(0x2000, 2, 3))
checkpoint(one, 1), checkpoint(two, 1), checkpoint(one, 1)
torch.optim.optimizer.Optimizer().step()
checkpoint(two, 1)
"""), ["name 1000 4 Module.x", "forward:Module#0", "name 2000 16 Module[1].x", "forward:Module#1", "forward:Module#2",
		"step:1", "forward:Module#0"], "modules of one class keep their names apart, and keep them; views are named with their gaps")

	is_equal(run("""
b = Module(); b._parameters["w"] = Tensor(0x1000, 1)
checkpoint(b, 1), checkpoint(b, 1)
b._parameters["w"].address = 0x2000
checkpoint(b, 1)
b.late = Tensor(0x3000, 1)
for i in range(4): checkpoint(b, 1)
"""), ["name 1000 4 Module.w", "forward:Module#0", "forward:Module#1", "drop 1000 4", "name 2000 4 Module.w", "forward:Module#2",
		"forward:Module#3", "forward:Module#4", "forward:Module#5", "name 3000 4 Module.late", "forward:Module#6"],
		"parameters that have other memory are found before the next run, what comes later is found later")

	is_equal(run("""
import replayshim_hook.torch_state as state
state._LONG = 10
b = Module(); b._parameters["w"] = Tensor(0x1000, 1)
for i in range(12): checkpoint(b, 1)
b._parameters["w"].address = 0x2000
checkpoint(b, 1)
torch.optim.optimizer.Optimizer().step()
checkpoint(half, 1)
checkpoint(b, 1)
""")[12:], ["forward:Module#11", "forward:Module#12", "step:1", "drop 1000 4", "forward:half#0", "name 2000 4 Module.w",
		"forward:Module#0"], "those of tensors that have long stayed are checked once in a step, whichever segment is first")

	sharded = """
b = Module(); b._parameters["w"] = w = Tensor(0, 1)
def gathered(address, run):
	w.address = address
	run()
	w.address = 0
gathered(0x1000, lambda: checkpoint(b, 1))
checkpoint(half, 1)
c.CheckpointFunction.last = None
"""
	is_equal(run(sharded + """
gathered(0x2000, lambda: checkpoint(b, 1))
checkpoint(half, 1)
c.CheckpointFunction.last = None
def both(x): return checkpoint(b, x) + checkpoint(half, x)
gathered(0x3000, lambda: checkpoint(both, 1))
def seg(x): return b(x) // 0
try: gathered(0x4000, lambda: checkpoint(seg, 1))
except ZeroDivisionError: pass
w = None
"""), ["name 1000 4 Module.w", "forward:Module#0", "drop 1000 4", "forward:half#0", "name 2000 4 Module.w", "forward:Module#1",
		"drop 2000 4", "forward:half#1", "name 3000 4 Module.w", "forward:both#0", "forward:Module#2", "forward:half#2", "drop 3000 4",
		"name 4000 4 Module.w", "forward:seg#0", "drop 4000 4"],
		"memory that goes without its tensor loses its name; what keeps on moving has one while a run lasts")
	is_equal(run(sharded + "gathered(0x1000, lambda: checkpoint(b, 1)), again()"), ["name 1000 4 Module.w", "forward:Module#0",
		"drop 1000 4", "forward:half#0", "name 1000 4 Module.w", "forward:Module#1", "drop 1000 4", "replay:Module#1"],
		"also where it comes back to the same place")

	calls, out, err, _ = p.run(PARTS + """
import types
class Scripted:  # no dict: what PyTorch's scripted modules have
	def __init__(self, d): self.d = d
	def keys(self): return list(self.d)
	def __getitem__(self, key):
		if key not in self.d: raise KeyError(key)
		return self.d[key]
class Broken(Module):
	def __init__(self): super().__init__(); self._buffers = None
ghost = types.ModuleType("ghost")
exec("class Ghost(Module):\\n\\tdef forward(self, x): return x", dict(vars(ghost), Module=Module), vars(ghost))
b = ghost.Ghost()
b._modules.update(s=Module(), broken=Broken(), last=Module(x=Tensor(0x3000, 1)))
b._modules["s"]._parameters = Scripted({"w": Tensor(0x1000, 1)})
b._modules["s"]._buffers = Scripted({"k": Tensor(0x2000, 1)})
vars(ghost)["Ghost"].__module__ = "ghost"
checkpoint(b, 1)
print("through")
""")
	is_equal([c for c in calls if c.startswith("name")], ["name 2000 4 Ghost.s.k", "name 3000 4 Ghost.last.x",
		"name 1000 4 Ghost.s.w"],
		"scripted modules, odd ones and those of modules that nobody can find cost the others nothing")
	is_equal((out, [line for line in err.splitlines() if "Error" in line]), ("through\n",
		["replayshim: Python hook: part: AttributeError: 'NoneType' object has no attribute 'keys'"]), "which is said")

	is_equal(run("""
class Odd(Module):
	def __getattr__(self, name): raise RuntimeError("asked for " + name)
class Loop: pass
loop = Loop(); loop.me, loop.list = loop, [loop]
loop.list.append(loop.list)
loop.__class__.__call__ = lambda self, x: x
odd = Odd(ok=Tensor(0x1000, 1), ring=[])
odd.ring.append(odd.ring)
checkpoint(odd, 1), checkpoint(loop, 1)
try: checkpoint(Module(), 1), again()
finally: print("through")
"""), ["name 1000 4 Odd.ok", "forward:Odd#0", "forward:Loop#0", "forward:Module#0", "replay:Module#0"],
		"objects that lead to themselves, or answer by errors, do no harm")


def safety_tests(p):
	calls, out, err, status = p.run(NET + """
Tensor.nbytes = lambda self: 1 // 0
print(len(get_parameters(net)), net.weight.realize() is net.weight)
""")
	is_equal((calls, out, status), ([], "2 True\n", 0), "an error inside the hook does not reach the program")
	ok(err.count("ZeroDivisionError") == 1, "it is said once", err)

	_, out, err, _ = p.run(NET + "Tensor.nbytes = lambda self: 1 // 0; get_parameters(net); net.weight.realize()",
		REPLAYSHIM_LOG="")
	is_equal((out, err), ("", ""), "and not at all unless asked for")

	code = NET + """
try: get_state_dict(3)
except TypeError as e: print("TypeError")
import tinygrad.nn.state as s
print(type(s.__loader__).__name__, type(s.__spec__.loader).__name__, get_state_dict.__name__)
"""
	_, out, _, _ = p.run(code)
	is_equal(out, "TypeError\nSourceFileLoader SourceFileLoader get_state_dict\n",
		"errors and identities are the program's own")

	code = NET + "print(get_state_dict.__module__, hasattr(get_state_dict, '__wrapped__'))"
	calls, out, err, status = p.run(code, library=False)
	is_equal((calls, out, status), ([], "tinygrad.nn.state False\n", 0), "without the library nothing is touched")

	_, out, _, _ = p.run(NET + "print(hasattr(get_state_dict, '__wrapped__'))", REPLAYSHIM_MODE="off")
	is_equal(out, "False\n", "nor in mode off")

	_, out, _, _ = p.run("import sys; print('ctypes' in sys.modules, 'importlib.util' in sys.modules and 1 or 0 > 1)")
	ok(out.startswith("False"), "a program that imports no framework pays for none of it", out)


def chain_tests(p):
	show = "import sys; print(getattr(sys, 'own', None), [d for d in sys.path if d.endswith('shim/python')])"
	_, out, err, _ = p.run(show, [p.path / "own"])
	is_equal(out, "sitecustomize []\n", "the program's sitecustomize runs, under its name, and our directory is gone")
	is_equal(err, "", "silently")
	_, out, err, _ = p.run("import sitecustomize; print(sitecustomize.__file__)", [p.path / "own"])
	ok("own/sitecustomize.py" in out, "sitecustomize is the program's own", out + err)
	_, out, err, status = p.run(show)
	is_equal((out, status), ("None []\n", 0), "a program without one runs as well")

	def plain(directory):
		env = dict(os.environ, PYTHONPATH=str(directory), PYTHONDONTWRITEBYTECODE="1")
		env.pop("LD_PRELOAD", None)
		return subprocess.run([sys.executable, "-c", "print(1)"], env=env, stderr=subprocess.PIPE, stdout=subprocess.PIPE,
			universal_newlines=True, check=False)

	for name in ("broken", "missing"):
		want = plain(p.path / name)
		_, out, err, status = p.run("print(1)", [p.path / name])
		is_equal((out, status, err.splitlines()[-1:]), (want.stdout, want.returncode, want.stderr.splitlines()[-1:]),
			f"a {name} sitecustomize ends as without us")
	calls, *_ = p.run(NET + "get_state_dict(net); net.weight.realize()", [p.path / "broken"])
	is_equal(calls, ["name 2000 64 weight"], "and the hook works behind it")


def main():
	with tempfile.TemporaryDirectory() as d:
		p = Place(d)
		tinygrad_tests(p)
		torch_tests(p)
		retain_tests(p)
		state_tests(p)
		safety_tests(p)
		chain_tests(p)
	print(f"1..{count}")
	return 1 if failed else 0


if __name__ == "__main__":
	sys.exit(main())
