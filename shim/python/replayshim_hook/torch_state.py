# SPDX-License-Identifier: MIT
"""PyTorch: names the device memory of the state that a checkpointed function can reach.

That is more than a module's buffers: parameters, tensors that are plain attributes or lie in lists and dicts of a module,
and those that a function finds in its closure, its defaults or its globals. What it reaches through calls of other
functions only is not found.

A name must not outlive its tensor: the allocator hands the memory out again, to products as well, and a product that bears
the name of state would be taken back after a replay. So a name goes when the tensor dies, and before each run of a segment
tensors that have other memory now, or have taken another's place, are named anew.

Memory can go without its tensor: sharded parameters (FSDP, ZeRO) are gathered for a run and have none after it. So before
each run of any segment all names are checked, those of tensors that have long stayed where they are once in a step only; and
tensors that keep on moving have a name just while a segment that reaches them runs. Parameters that stay are looked at by
their own segment once in a step, too.

Nothing here keeps a tensor or a module alive: a place is a weak reference and a path. No lock is held, since a tensor may
die within any line; what two threads do to these tables at once is at worst done twice.
"""
import functools
import sys
import types
import weakref

from . import attribute, guard, native, say

_MOST = 4096  # places below one module, items of one list, objects that one function leads to
_DEEP = 4  # lists and dicts, or functions, within each other
_OWN = ("_parameters", "_buffers", "_modules")
_LONG = 1000  # runs of segments
_OFTEN = 2  # times that a tensor has other memory

_regions = {}  # id of a tensor -> _Region
_fresh = {}  # those of them that have not long stayed where they are
_modules = weakref.WeakKeyDictionary()  # module -> _Places
_namesakes = {}  # name -> modules that would have it
_drops = 0  # names that have gone
_checked = None  # the step in which all names were checked


class _Region:
	"""A named tensor: where its memory was seen last."""
	__slots__ = ("ref", "name", "place", "still", "moves")

	def __init__(self, tensor, name):
		key = id(tensor)
		self.ref = weakref.ref(tensor, lambda _: _forget(key))
		self.name, self.place, self.still, self.moves = name, None, 0, 0

	def drop(self):
		global _drops
		place, self.place = self.place, None
		if place is not None:
			_drops += 1
			native.region_drop(*place)

	def check(self):
		"""Its name goes if its memory has gone."""
		if self.place is None:
			return
		tensor = self.ref()
		if tensor is None or tensor.data_ptr() != self.place[0]:
			self.moves += 1
			self.still = 0
			self.drop()
			if self.moves < _OFTEN and tensor is not None:
				_fresh[id(tensor)] = self


class _Run:
	"""A run of a segment: the step that it is in, what was looked at for it, and what is named for as long as it runs."""
	__slots__ = ("step", "seen", "lent")

	def __init__(self, step):
		self.step, self.seen, self.lent = step, set(), []


@guard
def _forget(key):
	region = _regions.pop(key, None)
	_fresh.pop(key, None)
	# At the program's end all tensors die, and what is found then still wants their names.
	if region is not None and not sys.is_finalizing():
		region.drop()


@guard
def _check_all(step):
	global _checked
	everything, _checked = _checked != step, step
	for key, region in list((_regions if everything else _fresh).items()):
		try:
			region.check()
		except Exception as e:  # of a tensor that has no address any more
			say("check: %s: %s" % (type(e).__name__, e))
			region.drop()
		region.still += 1
		if region.still > _LONG or region.moves >= _OFTEN:  # those have names in runs only
			_fresh.pop(key, None)


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
def _look(tensor, name, run):
	"""Name a tensor's memory, if it has no name or is elsewhere now."""
	key = id(tensor)
	region = _regions.get(key)
	if region is None or region.ref() is not tensor:
		region = _regions[key] = _fresh[key] = _Region(tensor, name)
	place = _place(tensor)
	if place == region.place:
		return
	region.check()
	region.drop()
	if place is not None and native.region_name(*place, region.name):
		region.place = place
		if region.moves >= _OFTEN:
			run.lent.append(region)


class _Places:
	"""Where the tensors below one module are: weak owners, and for each a path from there."""

	def __init__(self, name):
		self.name = name
		self.runs, self.due, self.now = 0, 0, None
		self.often, self.seldom = [], []

	def find(self, module):
		self.often, self.seldom = [], []
		seen = set()
		for prefix, part in module.named_modules():
			self.part(part, _joined(self.name, prefix), seen)
			self.globals_of(type(part), seen)
			if len(self.often) + len(self.seldom) >= _MOST:
				break

	@guard  # one odd part does not cost the others their names
	def part(self, part, name, seen):
		ref = weakref.ref(part)
		for key in part._parameters.keys():  # of a scripted module this is no dict, and has no iterator
			self.seldom.append((ref, ("_parameters", key), _joined(name, key)))
		for key in part._buffers.keys():
			self.often.append((ref, ("_buffers", key), _joined(name, key)))
		for key, value in list(vars(part).items()):
			if key not in _OWN:
				self.within(ref, (key,), value, _joined(name, key), seen)

	@guard
	def globals_of(self, cls, seen):
		forward, home = getattr(cls, "forward", None), sys.modules.get(cls.__module__)
		if cls in seen or home is None or not isinstance(forward, types.FunctionType) or forward.__globals__ is not vars(home):
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

	def look(self, module, run):
		self.runs += 1
		if self.runs > self.due:  # what has come since is found, at a cost that fades
			self.due = 2 * self.runs
			self.find(module)
			self.now = None
		for place in self.often:
			_follow(*place, run)
		now = (run.step, _drops)
		if self.now != now:
			self.now = now
			for place in self.seldom:
				_follow(*place, run)


@guard
def _follow(ref, path, name, run):
	owner = ref()
	try:
		value = vars(owner)
		for key in path:
			value = value[key]
	except (KeyError, IndexError, TypeError):  # it, or what led to it, is gone
		return
	if _is_tensor(value):
		_look(value, name, run)


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


@guard
def _look_at(value, name, run, depth):
	if _is_tensor(value):
		_look(value, name, run)
	elif _is_module(value):
		if value not in _modules:
			n = _namesakes[name] = _namesakes.get(name, 0) + 1
			_modules[value] = _Places(name if n == 1 else "%s[%d]" % (name, n - 1))
		_modules[value].look(value, run)
	elif id(value) not in run.seen and depth < _DEEP and len(run.seen) < _MOST:
		run.seen.add(id(value))
		if isinstance(value, (dict, list, tuple)):
			found = _items(value)
		elif not depth or isinstance(value, (functools.partial, types.MethodType, types.FunctionType)):
			found = _held(value)
		else:
			return
		for key, inner in found:
			_look_at(inner, _joined(name, key), run, depth + (key != ""))


@guard
def enter(function, name, step):
	"""Before a run of the checkpointed function, which is called `name`, in this step. What leave() is to be given."""
	run = _Run(step)
	_check_all(step)
	_look_at(function, name, run, 0)
	return run


@guard
def leave(run):
	"""After it. None is fine."""
	for region in run.lent if run else ():
		region.drop()
