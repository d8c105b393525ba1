"""Configuration of the IR tests. Each .mlir file has the command to run, modules as input, and the expected output."""

import os
import sys
import tempfile

import lit.formats

scripts = os.path.dirname(sys.executable)

config.name = "tt_torch"  # noqa: F821  (lit gives us `config`)
config.test_format = lit.formats.ShTest(execute_external=False)  # noqa: F821
config.test_exec_root = os.path.join(tempfile.gettempdir(), "tt_torch_lit")  # noqa: F821
config.suffixes = [".mlir"]  # noqa: F821
config.environment["PATH"] = os.pathsep.join([scripts, os.environ["PATH"]])  # noqa: F821
config.environment["PYTHONPATH"] = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))  # noqa: F821
config.environment["OMP_NUM_THREADS"] = "1"  # noqa: F821
# The modules in a file are separated by `// -----`. For a module that must fail, the error is printed and checked.
config.substitutions += [  # noqa: F821
    ("%opt", f"{sys.executable} -m tt_torch.tools.opt --split-input-file"),
    ("%check", "filecheck %s"),
]
