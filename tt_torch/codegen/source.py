"""Writes a binary as one readable Python program that uses the public `ttnn` package."""

from __future__ import annotations

import linecache
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np

from tt_torch.codegen import quoting, recordings
from tt_torch.codegen.program import Function, Program, Tensor, from_message, node_name, numpy_dtype
from tt_torch.codegen.values import names, render
from tt_torch.errors import BinaryFormatError
from tt_torch.files import write
from tt_torch.runtime.mesh import Sharding
from tt_torch.wire import bfloat16, locations
from tt_torch.wire.decode import decode

TITLE = "{}, written by `tt-torch codegen`. It needs the ttnn and safetensors packages, and the weights beside it."

MESH = """# Rows and columns of the mesh.
MESH = {}

# A sharding names the dimension of a tensor that the rows of the mesh split, and the one that the columns split. None
# means that each of them has all of it. These are the shardings of the results.
OUTPUTS = {}
"""


def to_python(
    binary: bytes,
    name: str = "model",
    input_shardings: Sequence[Sharding] | None = None,
    output_shardings: Sequence[Sharding] | None = None,
) -> str:
    """Returns the source of a program that does what `binary` does; `name` appears in its first line.

    The program reads its weights from a safetensors file of the same name beside it (see `write_program`). The
    shardings say how inputs and results lie on the chips of a mesh, as in a MeshExecutable.
    Raises the errors of `from_message` in program.py.
    """
    return to_source(from_message(decode(binary), input_shardings, output_shardings), name)


def to_source(program: Program, name: str) -> str:
    on_mesh = math.prod(program.mesh_shape) > 1
    weights = [*((t.name, t) for t in program.weights), *((k, t) for k, (t, _) in program.constants.items())]
    parts = {
        "TITLE": quoting.docstring(TITLE.format(name)),
        "MESH": _mesh(program) if on_mesh else "",
        "AND_INPUTS": ", sharding" if on_mesh else "",
        "AND_WEIGHTS": ", and sharding," if on_mesh else "",
        "INPUTS": _block("[]", [f"    ({_input(program, t)})," for t in program.inputs]),
        "WEIGHTS": _block("{}", [f"    {quoting.literal(k)}: ({_host_form(program, t)})," for k, t in weights]),
        "IMPORTS": "\n".join(sorted({s.imported for f in program.functions for s in f.statements} - {""})),
        "RECORDED": _text("recorded.py.txt").rstrip() if _records(program) else "",
        "FUNCTIONS": "\n\n\n".join("\n".join(_function(program, f)) for f in program.functions),
        "MAIN": _text("main_of_mesh.py.txt" if on_mesh else "main_of_chip.py.txt").rstrip(),
        "SHARDING": _text("ttnn_worker/sharding.py").partition("import ttnn\n")[2].strip() + "\n\n" if on_mesh else "",
    }
    template = _text("template.py.txt")
    return re.sub(r"# <(\w+)>\n|<(\w+)>", lambda m: _filled(parts[m[1]]) if m[1] else parts[m[2]], template)


def _records(program: Program) -> bool:
    return any(s.op == recordings.TABLE for f in program.functions for s in f.statements)


def _text(name: str) -> str:
    return files("tt_torch.codegen").joinpath(name).read_text()


def _filled(lines: str) -> str:
    return f"{lines}\n" if lines else ""


def _block(brackets: str, lines: list[str]) -> str:
    return "\n".join([brackets[0], *lines, brackets[1]]) if lines else brackets


def _mesh(program: Program) -> str:
    """The parts of a generated program that only a mesh needs. A sharding is a tuple, like the mesh."""
    return MESH.format(program.mesh_shape, [tuple(sharding) for sharding in program.output_shardings])


def _input(program: Program, tensor: Tensor) -> str:
    shape = render(tensor.whole(program.mesh_shape))
    return f"{shape}, {_host_form(program, tensor)}, {render(tensor.memory_config)}"


def _host_form(program: Program, tensor: Tensor) -> str:
    form = f"{render(tensor.dtype)}, {render(tensor.layout)}"
    return f"{form}, {tuple(tensor.sharding)}" if math.prod(program.mesh_shape) > 1 else form


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


def write_program(
    binary: bytes,
    path: str | Path,
    weights: Mapping[int, np.ndarray] | None = None,
    input_shardings: Sequence[Sharding] | None = None,
    output_shardings: Sequence[Sharding] | None = None,
) -> Path:
    """Writes the program to `path` and its weights to a safetensors file beside it; returns the path of the weights.

    `weights` maps positions of the binary's inputs to whole arrays. Random values stand in for missing weights. The
    shardings have the same meaning as in `to_python`.
    """
    from safetensors.numpy import save

    path = Path(path)
    program = from_message(decode(binary), input_shardings, output_shardings)
    arrays = {key: constant(tensor, data) for key, (tensor, data) in program.constants.items()}
    random = np.random.default_rng(0)
    for position, tensor in enumerate(program.main.inputs):
        if tensor.weight:
            given = (weights or {}).get(position)
            arrays[tensor.name] = (
                _random(random, tensor, program.mesh_shape) if given is None else np.ascontiguousarray(given)
            )
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


def _random(generator: np.random.Generator, tensor: Tensor, mesh_shape: tuple[int, int] = (1, 1)) -> np.ndarray:
    dtype, shape = numpy_dtype(tensor.dtype), tensor.whole(mesh_shape)
    if dtype.kind == "f":
        return generator.standard_normal(shape).astype(dtype)
    return generator.integers(0, 2, shape).astype(dtype)
