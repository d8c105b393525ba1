"""Runs a generated program with a recording on a mock device, without the call that crashes there.

A Python that has the `ttnn` package runs it, with the path of the program and the arguments of that.
"""

from __future__ import annotations

import runpy
import sys

from without_dispatch import crashing

_, *sys.argv = sys.argv
runpy.run_path(sys.argv[0], run_name="__main__")
print(crashing)
