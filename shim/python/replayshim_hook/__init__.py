# SPDX-License-Identifier: MIT
"""Watches for frameworks to be imported and then tells the preloaded library what they know: the names of their state
and the borders of their segments.

Nothing here may change or break the program: an adapter is run once, after its module's own code, every exception stops
at guard(), and without the library in the process nothing is touched. What happened is said, once for each reason, on
stderr with REPLAYSHIM_LOG=debug.
"""
import os
import sys

# Module to wait for -> submodule and function of this package that is called with it.
ADAPTERS = {
	"tinygrad.nn.state": ("tinygrad", "attach"),
	"torch.optim.optimizer": ("torch_checkpoint", "attach_optimizer"),
	"torch.utils.checkpoint": ("torch_checkpoint", "attach"),
}

_said = set()


def say(text):
	"""Diagnose on stderr, each text once."""
	if os.environ.get("REPLAYSHIM_LOG") == "debug" and text not in _said:
		_said.add(text)
		try:
			sys.stderr.write("replayshim: Python hook: %s\n" % text)
		except Exception:  # a closed or replaced stderr is the program's business
			pass


def guard(f):
	"""f, with every exception swallowed and None returned instead."""
	def guarded(*args, **kwargs):
		try:
			return f(*args, **kwargs)
		except Exception as e:
			say("%s: %s: %s" % (f.__name__, type(e).__name__, e))
			return None
	return guarded


def attribute(x, name, default=None):
	"""getattr() of an object of the program's, whose own __getattr__ may do anything."""
	try:
		return getattr(x, name, default)
	except Exception:
		return default


@guard
def _attach(name, module):
	from importlib import import_module
	from . import native
	if not native.present():
		say("no replayshim library in this process; %s is left alone" % name)
		return
	submodule, function = ADAPTERS[name]
	getattr(import_module("." + submodule, __name__), function)(module)
	say("attached to %s" % name)


class _Loader:
	"""A module's own loader, with the adapter run after it."""

	def __init__(self, loader):
		self._loader = loader

	def __getattr__(self, name):
		return getattr(self._loader, name)

	def create_module(self, spec):
		return self._loader.create_module(spec)

	def exec_module(self, module):
		spec = module.__spec__
		module.__loader__ = spec.loader = self._loader
		self._loader.exec_module(module)
		_attach(spec.name, module)


class _Watch:
	"""First on sys.meta_path. Asks the finders behind it, and only for the modules that are waited for."""

	def find_spec(self, name, path=None, target=None):
		if name not in ADAPTERS:
			return None
		for finder in sys.meta_path:
			find = getattr(finder, "find_spec", None)
			if finder is self or find is None:
				continue
			spec = find(name, path, target)
			if spec is not None:
				if hasattr(spec.loader, "exec_module"):
					spec.loader = _Loader(spec.loader)
				return spec
		return None


def install():
	if os.environ.get("REPLAYSHIM_MODE") == "off" or any(isinstance(f, _Watch) for f in sys.meta_path):
		return
	sys.meta_path.insert(0, _Watch())
