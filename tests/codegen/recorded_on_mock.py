"""Runs a generated program with a recording on a mock device, without the call that crashes there.

A Python that has the `ttnn` package runs this file, with the program's path and the program's arguments.
"""

from __future__ import annotations

import runpy
import sys

from without_dispatch import crashing

_, *sys.argv = sys.argv
runpy.run_path(sys.argv[0], run_name="__main__")
print(crashing)
