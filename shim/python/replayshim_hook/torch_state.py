# SPDX-License-Identifier: MIT
"""PyTorch: names the device memory of the state that a checkpointed function can reach.

That is more than a module's buffers: parameters, tensors that are plain attributes or lie in lists and dicts of a module,
and those that a function finds in its closure, its defaults or its globals. What it reaches through calls of other
functions only is not found.

A name must not outlive its tensor: the allocator hands the memory out again, to products as well, and a product that bears
the name of state would be taken back after a replay. So a name goes when the tensor dies, and before each run of a segment
tensors that have other memory now, or have taken another's place, are named anew. Parameters change theirs seldom: they are
looked at once in a step.

Nothing here keeps a tensor or a module alive: a place is a weak reference and a path. No lock is held, since a tensor may
die within any line; what two threads do to these tables at once is at worst done twice.
"""
import functools
import sys
import types
import weakref

from . import attribute, guard, native

_MOST = 4096  # places below one module, items of one list, objects that one function leads to
_DEEP = 4  # lists and dicts, or functions, within each other
_OWN = ("_parameters", "_buffers", "_modules")

_regions = {}  # id of a tensor -> _Region
_modules = weakref.WeakKeyDictionary()  # module -> _Places
_namesakes = {}  # name -> modules that would have it


class _Region:
	"""A named tensor: where its memory was seen last."""
	__slots__ = ("ref", "name", "place")

	def __init__(self, tensor, name):
		key = id(tensor)
		self.ref = weakref.ref(tensor, lambda _: _forget(key))
		self.name, self.place = name, None


@guard
def _forget(key):
	region = _regions.pop(key, None)
	# At the program's end all tensors die, and what is found then still wants their names.
	if region is not None and region.place is not None and not sys.is_finalizing():
		native.region_drop(*region.place)


def _is_tensor(x):  # by type: an object's own __getattr__ may do anything
	return hasattr(type(x), "data_ptr") and hasattr(type(x), "element_size")


def _is_module(x):
	return hasattr(type(x), "named_modules")


def _items(container):
	pairs = container.items() if isinstance(container, dict) else enumerate(container)
	return list(pairs)[:_MOST]


def _joined(*names):
	return ".".join(str(n) for n in names if n != "")


def _place(tensor):
	"""(address, bytes) on the device, or None. Of a view with gaps: from its first byte to its last one."""
	if tensor.device.type != "cuda" or not tensor.numel():
		return None
	last = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride()))
	address = tensor.data_ptr()
	return (address, (last + 1) * tensor.element_size()) if address else None


@guard
def _look(tensor, name):
	"""Name a tensor's memory, if it has no name or is elsewhere now."""
	region = _regions.get(id(tensor))
	if region is None or region.ref() is not tensor:
		region = _regions[id(tensor)] = _Region(tensor, name)
	place = _place(tensor)
	if place == region.place:
		return
	if region.place is not None:
		native.region_drop(*region.place)
		region.place = None
	if place is not None and native.region_name(*place, region.name):
		region.place = place


class _Places:
	"""Where the tensors below one module are: weak owners, and for each a path from there."""

	def __init__(self, name):
		self.name = name
		self.runs, self.due, self.step = 0, 0, None
		self.often, self.seldom = [], []

	def find(self, module):
		self.often, self.seldom = [], []
		seen = set()
		for prefix, part in module.named_modules():
			ref = weakref.ref(part)
			for key in part._parameters:
				self.seldom.append((ref, ("_parameters", key), _joined(self.name, prefix, key)))
			for key in part._buffers:
				self.often.append((ref, ("_buffers", key), _joined(self.name, prefix, key)))
			for key, value in list(vars(part).items()):
				if key not in _OWN:
					self.within(ref, (key,), value, _joined(self.name, prefix, key), seen)
			self.globals_of(type(part), seen)
			if len(self.often) + len(self.seldom) >= _MOST:
				break

	def globals_of(self, cls, seen):
		forward, home = getattr(cls, "forward", None), sys.modules.get(cls.__module__)
		if cls in seen or not isinstance(forward, types.FunctionType) or forward.__globals__ is not vars(home):
			return
		seen.add(cls)
		for key in _names_of(forward.__code__):
			self.within(weakref.ref(home), (key,), vars(home).get(key), _joined(cls.__module__, key), seen)

	def within(self, ref, path, value, name, seen):
		if _is_tensor(value):
			self.often.append((ref, path, name))
		elif isinstance(value, (dict, list, tuple)) and len(path) <= _DEEP and id(value) not in seen:
			seen.add(id(value))
			for key, inner in _items(value):
				self.within(ref, path + (key,), inner, _joined(name, key), seen)

	def look(self, module, step):
		self.runs += 1
		if self.runs > self.due:  # what has come since is found, at a cost that fades
			self.due = 2 * self.runs
			self.find(module)
			self.step = None
		for place in self.often:
			_follow(*place)
		if self.step != step:
			self.step = step
			for place in self.seldom:
				_follow(*place)


def _follow(ref, path, name):
	owner = ref()
	try:
		value = vars(owner)
		for key in path:
			value = value[key]
	except (KeyError, IndexError, TypeError):  # it, or what led to it, is gone
		return
	if _is_tensor(value):
		_look(value, name)


@functools.lru_cache(1024)
def _names_of(code):
	"""The globals that a function's code, and that of functions within it, may use."""
	names = set(code.co_names)
	for const in code.co_consts:
		if isinstance(const, types.CodeType):
			names.update(_names_of(const))
	return sorted(names)


def _held(f):
	"""(name, object) of all that a callable which is no module holds, or finds by name."""
	if isinstance(f, functools.partial):
		yield "", f.func
		yield from enumerate(f.args)
		yield from f.keywords.items()
	elif isinstance(f, types.MethodType):
		yield "", f.__self__
		yield "", f.__func__
	elif isinstance(f, types.FunctionType):
		code, defaults = f.__code__, f.__defaults__ or ()
		for key, cell in zip(code.co_freevars, f.__closure__ or ()):
			try:
				yield key, cell.cell_contents
			except ValueError:  # not assigned yet
				pass
		yield from zip(code.co_varnames[code.co_argcount - len(defaults):], defaults)
		yield from (f.__kwdefaults__ or {}).items()
		for key in _names_of(code):
			yield key, f.__globals__.get(key)
	elif not isinstance(f, (type, types.ModuleType)):
		yield from list(attribute(f, "__dict__", {}).items())


def _look_at(value, name, step, seen, depth):
	if _is_tensor(value):
		_look(value, name)
	elif _is_module(value):
		if value not in _modules:
			n = _namesakes[name] = _namesakes.get(name, 0) + 1
			_modules[value] = _Places(name if n == 1 else "%s[%d]" % (name, n - 1))
		_modules[value].look(value, step)
	elif id(value) not in seen and depth < _DEEP and len(seen) < _MOST:
		seen.add(id(value))
		if isinstance(value, (dict, list, tuple)):
			found = _items(value)
		elif not depth or isinstance(value, (functools.partial, types.MethodType, types.FunctionType)):
			found = _held(value)
		else:
			return
		for key, inner in found:
			_look_at(inner, _joined(name, key), step, seen, depth + (key != ""))


@guard
def look(function, name, step):
	"""Before a run of the checkpointed function, which is called `name`, in this step."""
	_look_at(function, name, step, set(), 0)
