# SPDX-License-Identifier: MIT
"""torch.utils.checkpoint: marks the forward and each replay of a checkpointed function, and names module buffers.

The choke points below `checkpoint` are replaced, which are looked up at each call, so a program that has imported
`checkpoint` by name is followed too, and torch.compile still recognises the function by identity:
CheckpointFunction.forward (reentrant), _checkpoint_without_reentrant (1.13) and the generator that took its place. They
are told apart by attribute, never by version.

A segment is named after its function; its invocation counts the forwards of that name since the last optimizer step,
which is the step as the library understands it. Not followed: recomputation inside a compiled graph, and frameworks
with a checkpoint of their own.
"""
import functools
import weakref

from . import guard, native, say

_step = 0
_invocations = {}  # name -> forwards of that name in this step
_named = weakref.WeakSet()  # modules whose buffers have been named


class _Segment:
	"""One invocation of a checkpointed function."""

	def __init__(self, function):
		owner = getattr(function, "__self__", function)
		while isinstance(owner, functools.partial):
			owner = getattr(owner.func, "__self__", owner.func)
		name = getattr(owner, "__qualname__", None) or type(owner).__name__
		self.name = name.replace("#", "_").replace(":", "_")
		self.invocation = _invocations.get(self.name, 0)
		_invocations[self.name] = self.invocation + 1
		_name_buffers(owner, self.name)

	def run(self, phase, function, args, kwargs):
		native.range_push("%s:%s#%d" % (phase, self.name, self.invocation))
		try:
			return function(*args, **kwargs)
		finally:  # early stop ends a replay by an exception
			native.range_pop()


@guard
def _name_buffers(module, name):
	if not hasattr(module, "named_buffers") or module in _named:
		return
	_named.add(module)
	for key, b in module.named_buffers():
		if b.device.type == "cuda" and b.numel():
			native.region_name(b.data_ptr(), b.numel() * b.element_size(), "%s.%s" % (name, key))


@guard
def _begin(function, args):
	"""A new segment; None while a compiler only traces the function."""
	if any(type(a).__name__ == "FakeTensor" for a in args):
		return None
	return _Segment(function)


def _phases(function, args):
	"""function, marked as forward when it is called first and as replay from then on."""
	segment = _begin(function, args)
	if segment is None:
		return function
	phases = iter(("forward",))

	@functools.wraps(function, updated=())
	def run(*a, **kw):
		return segment.run(next(phases, "replay"), function, a, kw)
	return run


def _reentrant(cls):
	real = cls.forward

	@functools.wraps(real)
	def forward(ctx, run_function, preserve_rng_state, *args):
		return real(ctx, _phases(run_function, args), preserve_rng_state, *args)
	cls.forward = staticmethod(forward)


def _function(module, name):
	real = getattr(module, name)

	@functools.wraps(real)
	def without_reentrant(function, preserve_rng_state=True, *args, **kwargs):
		return real(_phases(function, args), preserve_rng_state, *args, **kwargs)
	setattr(module, name, without_reentrant)


def _generator(module, name):
	real = getattr(module, name)

	@functools.wraps(real)
	def generator(fn, *args, **kwargs):
		segment = _begin(fn, args)
		if segment is None:
			return (yield from real(fn, *args, **kwargs))

		@functools.wraps(fn, updated=())
		def replay(*a, **kw):
			return segment.run("replay", fn, a, kw)
		inner = real(replay, *args, **kwargs)
		for _ in inner:  # the forward is run by the caller, while the generator waits at its one yield
			native.range_push("forward:%s#%d" % (segment.name, segment.invocation))
			try:
				yield
			finally:
				native.range_pop()
	setattr(module, name, generator)


@guard
def _new_step(*_):
	global _step
	_step += 1
	_invocations.clear()
	native.range_push("step:%d" % _step)
	native.range_pop()


def attach_optimizer(module):
	register = getattr(module, "register_optimizer_step_post_hook", None)
	if register is not None:
		register(lambda *_: _new_step())
		return
	optimizer = module.Optimizer
	real = optimizer._hook_for_profile  # 1.13: run by each optimizer's constructor, and wraps its class's step

	@functools.wraps(real)
	def hook_for_profile(self):
		real(self)
		cls, step = type(self), type(self).step
		if not getattr(step, "replayshim", False):
			@functools.wraps(step)
			def counted(*args, **kwargs):
				ret = step(*args, **kwargs)
				_new_step()
				return ret
			counted.replayshim = True
			cls.step = counted
	optimizer._hook_for_profile = hook_for_profile


def attach(checkpoint):
	found = []
	if hasattr(checkpoint, "CheckpointFunction"):
		_reentrant(checkpoint.CheckpointFunction)
		found.append("CheckpointFunction")
	for name, replace in (("_checkpoint_without_reentrant_generator_impl", _generator),
			("_checkpoint_without_reentrant_generator", _generator), ("_checkpoint_without_reentrant", _function)):
		if hasattr(checkpoint, name):
			replace(checkpoint, name)
			found.append(name)
			break
	say("torch.utils.checkpoint: follows " + (", ".join(found) or "nothing"))
