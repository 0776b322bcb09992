"""The command ``isbor``.

A user's error gives one sentence on standard error and exit code 2, Ctrl-C one line and exit code 130. A bug
keeps its traceback, so that it can be reported. A command imports what it needs when it runs, so that the
help appears at once: modules here declare arguments, and `isbor.cli.modelling`, `isbor.demo` and
`isbor.experiments` do the work.
"""

from isbor.cli.application import main

__all__ = ["main"]
