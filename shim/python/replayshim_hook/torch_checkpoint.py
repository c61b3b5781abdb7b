# SPDX-License-Identifier: MIT
"""torch.utils.checkpoint: marks the forward and each replay of a checkpointed function; torch_state.py names its state.

The choke points below `checkpoint` are replaced, which are looked up at each call, so a program that has imported
`checkpoint` by name is followed too, and torch.compile still recognises the function by identity:
CheckpointFunction.forward (reentrant), _checkpoint_without_reentrant (1.13) and the generator that took its place. They
are told apart by attribute, never by version.

A segment is named after its function; its invocation counts the forwards of that name since the last optimizer step,
which is the step as the library understands it. Not followed: recomputation inside a compiled graph, and frameworks
with a checkpoint of their own.

Where a plan keeps a segment's activations, its function is called without a checkpoint around it, which is what gives the
same gradients without running it again. Not where that would be another program: without gradients, with random state that
is not to be preserved, with contexts of the program's own, in a capture, inside of another segment's replay.
"""
import functools
import inspect
import sys
import threading

from . import attribute, guard, native, say, torch_state

_step = 0
_invocations = {}  # name -> forwards of that name in this step
_replays = threading.local()  # .depth: replays that this thread is in


class _Segment:
	"""One invocation of a checkpointed function."""

	def __init__(self, function):
		owner = attribute(function, "__self__", function)
		while isinstance(owner, functools.partial):
			owner = attribute(owner.func, "__self__", owner.func)
		name = attribute(owner, "__qualname__")
		name = name if isinstance(name, str) else type(owner).__name__
		self.name = name.replace("#", "_").replace(":", "_")
		self.invocation = _invocations.get(self.name, 0)
		_invocations[self.name] = self.invocation + 1

	def run(self, phase, function, args, kwargs):
		depth = getattr(_replays, "depth", 0)
		_replays.depth = depth + (phase == "replay")
		try:
			with _Marked(self, phase, function):
				return function(*args, **kwargs)
		finally:
			_replays.depth = depth


class _Marked:
	"""One run of a segment. An exception ends it, too: early stop ends a replay by one."""
	__slots__ = ("segment", "phase", "function", "state")

	def __init__(self, segment, phase, function):
		self.segment, self.phase, self.function = segment, phase, function

	def __enter__(self):
		s = self.segment
		self.state = torch_state.enter(self.function, s.name, _step)
		native.range_push("%s:%s#%d" % (self.phase, s.name, s.invocation))

	def __exit__(self, *_):
		native.range_pop()
		torch_state.leave(self.state)


@guard
def _begin(function, args):
	"""A new segment; None while a compiler only traces the function."""
	if any(type(a).__name__ == "FakeTensor" for a in args):
		return None
	return _Segment(function)


@guard
def _keeps(segment, preserve_rng_state):
	"""Is the segment to run without a checkpoint? False, too, on any doubt, and then the library is not asked."""
	torch = sys.modules["torch"]
	if not preserve_rng_state or not torch.is_grad_enabled() or getattr(_replays, "depth", 0):
		return False
	capturing = getattr(getattr(torch, "cuda", None), "is_current_stream_capturing", None)
	if capturing is not None and torch.cuda.is_initialized() and capturing():
		return False
	return native.retain(segment.name, segment.invocation)


def _like(function, run):
	"""run, looking like function: functools.wraps for what may be any object."""
	for name in functools.WRAPPER_ASSIGNMENTS:
		value = attribute(function, name)
		if isinstance(value, (str, dict, tuple)):
			setattr(run, name, value)
	run.__wrapped__ = function
	return run


def _phases(segment, function):
	"""function, marked as forward when it is called first and as replay from then on."""
	phases = iter(("forward",))

	def run(*a, **kw):
		return segment.run(next(phases, "replay"), function, a, kw)
	run.replayshim = True
	return _like(function, run)


def _reentrant(cls):
	real = cls.forward

	@functools.wraps(real)
	def forward(ctx, run_function, preserve_rng_state, *args):
		if attribute(run_function, "replayshim") is not True:
			segment = _begin(run_function, args)
			run_function = run_function if segment is None else _phases(segment, run_function)
		return real(ctx, run_function, preserve_rng_state, *args)
	cls.forward = staticmethod(forward)
	if "apply" in vars(cls):
		return

	def apply(klass, run_function, preserve_rng_state, *args):
		segment = _begin(run_function, args) if klass is cls else None
		if segment is None:
			return super(cls, klass).apply(run_function, preserve_rng_state, *args)
		# Without an argument that needs a gradient, the checkpoint gives none to anything.
		wants = any(attribute(a, "requires_grad") is True for a in args)
		if wants and _keeps(segment, preserve_rng_state):
			return segment.run("forward", run_function, args, {})
		return super(cls, klass).apply(_phases(segment, run_function), preserve_rng_state, *args)
	cls.apply = classmethod(apply)


def _function(module, name):
	real = getattr(module, name)

	@functools.wraps(real)
	def without_reentrant(function, preserve_rng_state=True, *args, **kwargs):
		segment = _begin(function, args)
		if segment is None:
			return real(function, preserve_rng_state, *args, **kwargs)
		if _keeps(segment, preserve_rng_state):
			return segment.run("forward", function, args, kwargs)
		return real(_phases(segment, function), preserve_rng_state, *args, **kwargs)
	setattr(module, name, without_reentrant)


def _preserves(real, args, kwargs):
	"""Of a call of the generator: does it preserve random state and bring no contexts of its own?"""
	try:
		signature = inspect.signature(real)
		given = signature.bind(*args, **kwargs).arguments
		context = signature.parameters.get("context_fn")
	except (TypeError, ValueError):
		return False
	if context is not None and given.get("context_fn", context.default) is not context.default:
		return False
	return given.get("preserve_rng_state", True)


def _generator(module, name):
	real = getattr(module, name)

	@functools.wraps(real)
	def generator(fn, *args, **kwargs):
		segment = _begin(fn, args)
		if segment is None:
			return (yield from real(fn, *args, **kwargs))
		if _preserves(real, (fn, *args), kwargs) and _keeps(segment, True):
			with _Marked(segment, "forward", fn):
				yield  # the caller runs the function, and its activations are kept as those of any other
			return None

		def replay(*a, **kw):
			return segment.run("replay", fn, a, kw)
		inner = real(_like(fn, replay), *args, **kwargs)
		for _ in inner:  # the forward is run by the caller, while the generator waits at its one yield
			with _Marked(segment, "forward", fn):
				yield
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
