# SPDX-License-Identifier: MIT
"""Entry of replayshim's Python hook: the library puts this directory on PYTHONPATH of the programs that it is in.

Installs the import watch of replayshim_hook, takes the directory off sys.path again and hands over to the sitecustomize
that the program would have had without us. An error of that one is raised as Python would have seen it; one of ours is
never raised.
"""
import sys


def _install():
	here = __file__.rpartition("/")[0] or "."
	try:
		import replayshim_hook
		replayshim_hook.install()
	except Exception as e:  # the program comes first, whatever is wrong with us
		import os
		if os.environ.get("REPLAYSHIM_LOG") == "debug":
			sys.stderr.write("replayshim: Python hook not installed: %r\n" % (e,))
	sys.path[:] = [p for p in sys.path if p.rstrip("/") != here]


def _chain():
	own = sys.modules.pop("sitecustomize", None)
	try:
		import sitecustomize  # noqa: F401  the program's own, now that ours is off the path
	except ImportError as e:
		if e.name != "sitecustomize":
			raise
	finally:
		# The import system takes the module that it is loading from here.
		sys.modules.setdefault("sitecustomize", own)


_install()
_chain()
