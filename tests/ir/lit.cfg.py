"""Configuration of the IR tests. Each .mlir file has the command to run, modules as input, and the expected output."""

import os
import sys
import tempfile

here = os.path.dirname(__file__)
sys.path[:0] = [here, os.path.dirname(os.path.dirname(here))]  # this folder, and that of the package

from in_process import InProcess  # noqa: E402

config.name = "tt_torch"  # noqa: F821  (lit gives us `config`)
config.test_format = InProcess()  # noqa: F821
config.test_exec_root = os.path.join(tempfile.gettempdir(), "tt_torch_lit")  # noqa: F821
config.suffixes = [".mlir"]  # noqa: F821
# The modules in a file are separated by `// -----`. For a module that must fail, the error is printed and checked.
config.substitutions += [  # noqa: F821
    ("%opt", "opt --split-input-file"),
    ("%check", "filecheck %s"),
]
