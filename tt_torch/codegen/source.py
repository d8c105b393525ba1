"""Writes a binary as one readable Python program that uses the public `ttnn` package."""

from __future__ import annotations

import linecache
import math
import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path

import numpy as np

from tt_torch.codegen import quoting
from tt_torch.codegen.program import Function, Program, Tensor, from_message, node_name, numpy_dtype
from tt_torch.codegen.values import names, render
from tt_torch.errors import BinaryFormatError, UnsupportedBinaryError
from tt_torch.files import write
from tt_torch.wire import bfloat16, locations
from tt_torch.wire.decode import decode

TITLE = "{}, written by `tt-torch codegen`. It needs the ttnn and safetensors packages, and the weights beside it."


def to_python(binary: bytes, name: str = "model") -> str:
    """Returns the source of a program that does what `binary` does; `name` appears in its first line.

    The program reads its weights from a safetensors file of the same name beside it (see `write_program`).
    Raises UnsupportedBinaryError, which names all ops without a row in calls.py, and BinaryFormatError.
    """
    return to_source(from_message(decode(binary)), name)


def to_source(program: Program, name: str) -> str:
    if math.prod(program.mesh_shape) > 1:
        mesh = "x".join(map(str, program.mesh_shape))
        raise UnsupportedBinaryError(f"generated programs are for one chip, and this binary is for a mesh of {mesh}")
    template = files("tt_torch.codegen").joinpath("template.py.txt").read_text()
    weights = [*((t.name, t) for t in program.weights), *((k, t) for k, (t, _) in program.constants.items())]
    specifications = [(quoting.literal(key), render(t.dtype), render(t.layout)) for key, t in weights]
    parts = {
        "TITLE": quoting.docstring(TITLE.format(name)),
        "INPUTS": _block("[]", [_specification(t) for t in program.inputs]),
        "WEIGHTS": _block("{}", [f"    {key}: ({dtype}, {layout})," for key, dtype, layout in specifications]),
        "IMPORTS": "\n".join(sorted({s.imported for f in program.functions for s in f.statements} - {""})),
        "FUNCTIONS": "\n\n\n".join("\n".join(_function(program, f)) for f in program.functions),
    }
    return re.sub(r"# <(\w+)>\n|<(\w+)>", lambda m: _filled(parts[m[1]]) if m[1] else parts[m[2]], template)


def _filled(lines: str) -> str:
    return f"{lines}\n" if lines else ""


def _block(brackets: str, lines: list[str]) -> str:
    return "\n".join([brackets[0], *lines, brackets[1]]) if lines else brackets


def _specification(tensor: Tensor) -> str:
    fields = (tensor.shape, tensor.dtype, tensor.layout, tensor.memory_config)
    return f"    ({', '.join(str(render(f)) for f in fields)}),"


def _function(program: Program, function: Function) -> Iterator[str]:
    yield f"def {'forward' if function is program.main else function.name}(inputs, weights, device):"
    yield from _unpack(program, function)
    line = ""
    for statement in function.statements:
        where = source_line(statement.location)
        if where and where != line:
            yield f"    # {where}"
        line = where or line
        yield from statement.lines(4)
    yield from names(function.outputs).lines(4, "return ")


def _unpack(program: Program, function: Function) -> Iterator[str]:
    inputs = program.inputs if function is program.main else function.inputs
    if inputs:
        yield from names([t.name for t in inputs]).lines(4, after=" = inputs")
    for tensor in program.weights if function is program.main else ():
        yield f"    {tensor.name} = weights[{quoting.literal(tensor.name)}]"


def source_line(location: str) -> str:
    """The user's line that a location names, at most 110 characters: file and number, and the text if it can be read.

    Example: `model.py:12: return self.linear(x)`. Empty if the location names no line.
    """
    found = locations.lines(location)
    if not found:
        return ""
    file, number = found[0]
    text = linecache.getline(file, number).strip() if file.isprintable() else ""
    return quoting.comment(f"{Path(file).name}:{number}{': ' if text else ''}{text}")


def place(location: str) -> str:
    """A location for messages: the FX node, then the user's file and line, as far as they are known."""
    return " ".join(filter(None, (node_name(location), source_line(location).partition(": ")[0])))


def write_program(binary: bytes, path: str | Path, weights: Mapping[int, np.ndarray] | None = None) -> Path:
    """Writes the program to `path` and its weights to a safetensors file beside it; returns the path of the weights.

    `weights` maps positions of the binary's inputs to arrays. Random values stand in for missing weights.
    """
    from safetensors.numpy import save

    path = Path(path)
    program = from_message(decode(binary))
    arrays = {key: constant(tensor, data) for key, (tensor, data) in program.constants.items()}
    random = np.random.default_rng(0)
    for position, tensor in enumerate(program.main.inputs):
        if tensor.memory_config is None:
            given = (weights or {}).get(position)
            arrays[tensor.name] = _random(random, tensor) if given is None else np.ascontiguousarray(given)
    beside = path.with_suffix(".safetensors")
    write(beside, save(arrays))
    write(path, to_source(program, path.stem).encode())
    return beside


def constant(tensor: Tensor, data: bytes) -> np.ndarray:
    """The values of a constant of the binary. bfloat16 becomes float32, because NumPy has no such type. Raises
    BinaryFormatError if the binary has another number of bytes than the constant's shape."""
    dtype = np.dtype(np.uint16) if tensor.dtype == "BFloat16" else numpy_dtype(tensor.dtype)
    if len(data) != math.prod(tensor.shape) * dtype.itemsize:
        raise BinaryFormatError(f"a constant of {tensor.dtype} and the shape {tensor.shape} has {len(data)} bytes")
    values = np.frombuffer(data, dtype).reshape(tensor.shape)
    return bfloat16.floats(values) if tensor.dtype == "BFloat16" else values.copy()  # ttnn needs a writable array


def _random(generator: np.random.Generator, tensor: Tensor) -> np.ndarray:
    dtype = numpy_dtype(tensor.dtype)
    if dtype.kind == "f":
        return generator.standard_normal(tensor.shape).astype(dtype)
    return generator.integers(0, 2, tensor.shape).astype(dtype)
