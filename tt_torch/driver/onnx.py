"""ONNX models as models that are compiled ahead of time.

This needs the package `onnx`: pip install 'tt-torch[onnx]'.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from tt_torch.config import CompilerConfig
from tt_torch.driver.devices import Device
from tt_torch.driver.dynamic_shapes import MOST_PROGRAMS
from tt_torch.driver.family import Dimension, Family
from tt_torch.driver.package.contents import Package, joined
from tt_torch.driver.package.loading import LoadedModel, device_for
from tt_torch.driver.stablehlo import packaged_module, written_if_wide
from tt_torch.driver.two_forms import ModelInTwoForms
from tt_torch.errors import CompileError
from tt_torch.mlir.onnx import input_names, onnx_to_stablehlo, read_onnx
from tt_torch.mlir.onnx_given import check_model, check_sizes
from tt_torch.mlir.onnx_sizes import Shapes, named_dimensions
from tt_torch.mlir.reading import read_stablehlo

if TYPE_CHECKING:
    import onnx


def compile_onnx(
    model: onnx.ModelProto | str | Path,
    config: CompilerConfig | None = None,
    *,
    constants: Mapping[str, torch.Tensor] | None = None,
    shapes: Shapes | None = None,
    sizes: Mapping[str, Sequence[int]] | None = None,
    device: Device | None = None,
) -> LoadedModel:
    """Compiles an ONNX model, or the model in a file, for a device; None is the default device.

    `constants` gives the values of inputs by their names in the model. Inputs that decide shapes, axes or branches must
    be given there. The result does not take the inputs that are given there. `shapes` gives the shapes of inputs with
    open dimensions, by their names; a dimension with a name has the same size in all inputs. `sizes` gives several
    sizes for dimensions with names: the result has a program for each combination. It takes tensors in the order of the
    model's inputs, or by their names; characters that an identifier cannot have are written as `_`. It returns a
    tensor, or a tuple if the model has several outputs. Matrices and filters among the initializers and constants are
    weights by their names, so that `load_state_dict` can replace them. Environment variables override `config`.
    A call whose 64-bit integers leave 32 bits computes them on the host, with an ExactnessWarning. It raises
    InexactError with the option `fallback="error"`. Raises CompileError, UnsupportedOpError for
    an op that the device does not support, ExtraMissingError if the package `onnx` is not installed, and OSError for a
    file that cannot be read.
    """
    chosen = (config or CompilerConfig()).for_compilation(of_pytorch=False)
    if isinstance(model, (str, Path)):
        model = read_onnx(Path(model))
    check_model(model)
    names = [name for name in input_names(model) if name not in (constants or {})]

    arguments, written = identifiers(names), list[tuple[bytes | None, Mapping[str, torch.Tensor]]]()

    def compiled(member: Mapping[str, int]) -> Package:
        module, weights = onnx_to_stablehlo(model, chosen, constants, shapes, member)
        written.append((written_if_wide(module, chosen), weights))
        return packaged_module(module, arguments, weights, chosen)

    def compiled_again(number: int) -> Package:
        source, weights = written[number]
        return packaged_module(read_stablehlo(source), arguments, weights, chosen, exact=True)

    family = None if sizes is None else _family(model, names, sizes)
    package = joined([compiled(member) for member in (family.members() if family else [{}])], family)
    on = device or device_for(package, chosen)
    if all(source is None for source, _ in written):
        return LoadedModel(package, on)
    return ModelInTwoForms(package, on, compiled_again)


def _family(model: onnx.ModelProto, names: Sequence[str], sizes: Mapping[str, Sequence[int]]) -> Family:
    """The family of the sizes, for the inputs with the `names`. Raises CompileError for other things than sizes."""
    check_sizes(sizes)
    places = named_dimensions([value for value in model.graph.input if value.name in names])
    if unknown := sizes.keys() - places.keys():
        known = ", ".join(places) or "none"
        raise CompileError(f"`sizes` has {min(unknown)!r}, but the open dimensions with a name are {known}")
    arguments = dict(zip(names, identifiers(names), strict=True))
    dimensions = [Dimension(arguments[x], place, name, 1, 0) for name in sizes for x, place in places[name]]
    family = Family({name: sorted(set(each)) for name, each in sizes.items()}, dimensions)
    if family.count > MOST_PROGRAMS:
        raise CompileError(f"`sizes` asks for {family.count} programs; at most {MOST_PROGRAMS} are compiled")
    return family


def identifiers(names: Sequence[str]) -> list[str]:
    """A different Python identifier for each name: `in put:0` becomes `in_put_0`."""
    made: list[str] = []
    for name in names:
        made.append(_unused(re.sub(r"\W", "_", name, flags=re.ASCII), {*names, *made} - {name}))
    return made


def _unused(name: str, used: set[str]) -> str:
    name = name if name.isidentifier() and not keyword.iskeyword(name) else f"_{name}"
    while name in used:
        name += "_"
    return name
