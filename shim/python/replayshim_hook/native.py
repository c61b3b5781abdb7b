# SPDX-License-Identifier: MIT
"""The functions of shim/include/replayshim.h that adapters call. The preloaded library exports them into the process;
where it is not loaded they are absent, and every call here does nothing."""
import ctypes

_functions = {}


def _find(name, *arguments):
	if name not in _functions:
		try:
			f = ctypes.PyDLL(None)[name]  # no GIL juggling: the calls are short and block on nothing
			f.argtypes, f.restype = arguments, ctypes.c_int
		except (AttributeError, OSError):
			f = None
		_functions[name] = f
	return _functions[name]


def present():
	return _find("replayshim_region_name", ctypes.c_uint64, ctypes.c_uint64, ctypes.c_char_p) is not None


def region_name(address, size, name):
	"""Name device bytes. False: the library does not know them (yet)."""
	f = _find("replayshim_region_name", ctypes.c_uint64, ctypes.c_uint64, ctypes.c_char_p)
	return f is not None and f(address, size, name.encode("utf-8", "replace")) == 0


def region_drop(address, size):
	f = _find("replayshim_region_drop", ctypes.c_uint64, ctypes.c_uint64)
	if f is not None:
		f(address, size)


def retain(name, invocation):
	"""True: a plan has it that this invocation's activations are kept and nothing is replayed."""
	f = _find("replayshim_retain", ctypes.c_char_p, ctypes.c_long)
	return f is not None and f(name.encode("utf-8", "replace"), invocation) == 1


def range_push(text):
	f = _find("replayshim_range_push", ctypes.c_char_p)
	if f is not None:
		f(text.encode("utf-8", "replace"))


def range_pop():
	f = _find("replayshim_range_pop")
	if f is not None:
		f()
