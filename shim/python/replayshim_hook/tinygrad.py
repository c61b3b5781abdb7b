# SPDX-License-Identifier: MIT
"""tinygrad: names the device buffers of a model's state with the names that the program itself gives them.

get_state_dict (which get_parameters, optimizers' callers, safe_save and load_state_dict go through) tells the names;
Tensor._device_rng_counters and _device_seeds are tinygrad's random state. A tensor has a buffer only once it is
realized and may get another one, so after each Tensor.realize the tensors whose graph node changed are looked at again.
"""
import functools
import weakref

from . import guard, native

_known = {}  # id of a tensor -> _Entry
_stale = []  # regions of tensors that are gone


class _Entry:
	"""A named tensor: where its buffer was seen last."""
	__slots__ = ("ref", "name", "node", "region")

	def __init__(self, tensor, name):
		key = id(tensor)
		self.ref = weakref.ref(tensor, lambda _: _forget(key))
		self.name, self.node, self.region = name, None, None


@guard
def _forget(key):
	entry = _known.pop(key, None)
	if entry is not None and entry.region is not None:
		_stale.append(entry.region)


def _drop_stale():
	# tinygrad keeps freed buffers and hands them out again, so a name must not stick to its address. That happens in
	# realize at the earliest; until then, and in a program that ends, findings still want the name.
	while _stale:
		native.region_drop(*_stale.pop())


def _learn(tensor, name):
	entry = _known.get(id(tensor))
	if entry is None:
		_known[id(tensor)] = _Entry(tensor, name)
	elif name.count(".") > entry.name.count("."):  # "stem.norm.bias" says more than an optimizer's "3"
		entry.name, entry.node = name, None
		if entry.region is not None:
			native.region_name(*entry.region, name)


def _place(buf, tensor):
	"""(address, bytes) of the tensor's own CUDA buffer; None: it is elsewhere, or a view of another's."""
	if not str(getattr(buf, "device", "")).startswith("CUDA") or buf.nbytes != tensor.nbytes():
		return None
	return int(getattr(buf._buf, "value", buf._buf)), buf.nbytes


def _look(entry, tensor):
	node = tensor.uop
	buf = node.base.realized
	if buf is None:  # not computed yet, or an assignment is pending
		return
	place = _place(buf, tensor)
	if place != entry.region:
		if entry.region is not None:
			native.region_drop(*entry.region)
			entry.region = None
		if place is not None and not native.region_name(*place, entry.name):
			return  # not known to the library: ask again next time
		entry.region = place
	entry.node = node


def attach(state):
	from tinygrad.tensor import Tensor
	real_dict, real_realize = state.get_state_dict, Tensor.realize
	depth, drop_stale = [0], guard(_drop_stale)

	@guard
	def learn(named):
		for name, tensor in named.items():
			if isinstance(tensor, Tensor) and not name.replace(".", "").isdigit():  # a place in a list is no name
				_learn(tensor, name)

	@guard
	def sweep():
		for word, table in (("counter", Tensor._device_rng_counters), ("seed", Tensor._device_seeds)):
			for device, tensor in table.items():
				if id(tensor) not in _known:
					_learn(tensor, "rng.%s[%s]" % (word, device))
		for entry in list(_known.values()):
			tensor = entry.ref()
			if tensor is not None and tensor.uop is not entry.node:
				_look(entry, tensor)

	@functools.wraps(real_dict)
	def get_state_dict(*args, **kwargs):
		depth[0] += 1
		try:
			named = real_dict(*args, **kwargs)
		finally:
			depth[0] -= 1
		# It calls itself for each part; and tinygrad.function asks for another type, to find arguments, not state.
		if not depth[0] and kwargs.get("tensor_type", Tensor) is Tensor and len(args) < 3:
			learn(named)
			sweep()
		return named

	@functools.wraps(real_realize)
	def realize(*args, **kwargs):
		if _stale:
			drop_stale()
		ret = real_realize(*args, **kwargs)
		sweep()
		return ret

	state.get_state_dict = get_state_dict
	Tensor.realize = realize
