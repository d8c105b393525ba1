"""Ops of a user in generated programs and with device="ttnn": the functions that the user registered are called."""

from __future__ import annotations

import ast
import json
import os
import sys

import pytest
import torch
from runtime.programs import Maker
from ttnn_devices import STAND_IN, on

import tt_torch
from tt_torch.codegen import to_python
from tt_torch.codegen.device import TtnnDevice
from tt_torch.errors import BinaryFormatError, UnsupportedBinaryError
from tt_torch.wire import custom_ops

LIBRARY = torch.library.Library("on_ttnn", "DEF")
SIGNATURE = (
    "(Tensor x, Tensor? y, Tensor[] zs, int n, float k, bool flag, str mode, int[] sizes, *, str last='') -> Tensor"
)
HOSTILE = (
    '"); import os; os.abort() #',
    "'); import os #",
    '"""\nimport os\n"""',
    "\r\nimport os",
    "\\",
    "\u2028",
    "{0}",
)


def op(name, signature, ttnn=None, results=1):
    LIBRARY.define(f"{name}{signature}")
    torch.library.register_fake(
        f"on_ttnn::{name}", lambda x, *_, **__: torch.empty_like(x) if results == 1 else (x + 0,) * results, lib=LIBRARY
    )
    found = getattr(torch.ops.on_ttnn, name)
    tt_torch.kernel(found, ttnn=ttnn)(lambda *_: pytest.fail("the emulated device was asked"))
    return found


def calls(source):
    """The calls of functions of the user's module `package_functions` in a generated program, as Python text."""
    tree = ast.parse(source)
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [ast.unparse(node) for node in found if ast.unparse(node.func).startswith("package_functions.")]


def binary_of(function, *inputs):
    return tt_torch.compile_model(function, inputs, options={"fallback": "error"}).binary


def test_every_kind_of_argument_is_written() -> None:
    every = op("every", SIGNATURE, "package.functions:compute")
    x = torch.ones(2, 3)
    for text in HOSTILE:
        source = to_python(
            binary_of(lambda x, text=text: every(x, None, [x, x], -1, float("inf"), True, text, [], last=text), x)
        )
        ((call),) = calls(source)
        given = ast.parse(call, mode="eval").body
        values = [ast.unparse(argument) for argument in given.args]
        tensor = values[0]
        assert values[1:6] == ["None", f"[{tensor}, {tensor}]", "-1", "float('inf')", "True"]
        assert [ast.literal_eval(given.args[6]), values[7]] == [text, "[]"]
        assert [(k.arg, ast.literal_eval(k.value)) for k in given.keywords] == [("last", text)]
        assert source.count("import package.functions as package_functions\n") == 1


def test_ops_that_generated_programs_refuse_by_name() -> None:
    x = torch.ones(2, 3)
    without = op("without", "(Tensor x) -> Tensor")
    binary = binary_of(lambda x: without(x), x)
    with pytest.raises(
        UnsupportedBinaryError, match=r"on_ttnn::without\.default has no function of Tenstorrent's library"
    ):
        to_python(binary)
    typed = op("typed", "(Tensor x, *, ScalarType? dtype=None) -> Tensor", "package.functions:compute")
    binary = binary_of(lambda x: typed(x, dtype=torch.int32), x)
    with pytest.raises(UnsupportedBinaryError, match=r"on_ttnn::typed\.default has the argument torch\.int32"):
        to_python(binary)


@pytest.mark.parametrize(
    "module", ["ttnn", "np", "main", "forward", "weights", "inputs", "relu", "json", "print", "class_"]
)
def test_the_name_of_a_module_hides_no_other_name(module) -> None:
    hiding = getattr(torch.ops.on_ttnn, "hiding", None) or op("hiding", "(Tensor x) -> Tensor")
    tt_torch.kernel(hiding, ttnn=f"{module}:f")(lambda x: x)
    source = to_python(binary_of(lambda x: hiding(x.relu()).relu(), torch.ones(2)))
    (line,) = [line for line in source.splitlines() if line.startswith(f"import {module} as ")]
    alias = line.rpartition(" ")[2]
    assert source.count(f"{alias}.f(") == 1
    assigned = {n.id for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    defined = {n.name for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef)}
    assert alias not in assigned | defined | {"ttnn", "np", "print"}


def test_text_of_a_file_never_becomes_code() -> None:
    """The names of arguments, and an op that is registered under another name, come from the file."""
    named = op("named", "(Tensor x) -> Tensor", "package.functions:compute")
    assert named
    for text in (*HOSTILE, "if", "x=1, y", "\U0001d41a"):  # Python reads the last one, a bold letter, as another name
        maker = Maker()
        x, out = maker.input((2, 3)), maker.tensor((2, 3))
        parts = {"arguments": [{"tensor": "float32"}], "keywords": {text: text}, "results": ["float32"]}
        name = custom_ops.text_of("on_ttnn::named.default", json.dumps(parts))
        maker.op("CpuOp", ins=[x], outs=[out], func_name=name, dylib_id=0)
        with pytest.raises(BinaryFormatError, match="no name of an argument"):
            to_python(maker.binary(out))


FUNCTIONS = """
import ttnn

def scaled(x, k, *, other=None):
    assert x.layout == ttnn.TILE_LAYOUT and x.dtype == ttnn.float32
    return ttnn.add(x, ttnn.full(list(x.array.shape), k, ttnn.float32, ttnn.TILE_LAYOUT, x.device, "DRAM"))
"""


def test_the_function_runs_with_device_ttnn(tmp_path, monkeypatch) -> None:
    scaled = op("scaled", "(Tensor x, float k) -> Tensor", "functions_of_user:scaled")
    (tmp_path / "functions_of_user.py").write_text(FUNCTIONS)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([STAND_IN, str(tmp_path)]))
    with TtnnDevice(python=sys.executable) as device:
        x = torch.randn(3, 5)
        found = on(device, lambda x: scaled(x + x, 2.5) + x)(x)
    torch.testing.assert_close(found, 3 * x + 2.5)
