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
from tt_torch.driver.package.loading import LoadedModel
from tt_torch.driver.stablehlo import compiled_module
from tt_torch.mlir.onnx import input_names, onnx_to_stablehlo, read_onnx
from tt_torch.mlir.onnx_sizes import Shapes
from tt_torch.mlir.stablehlo.wide_integers import check_wide_integers

if TYPE_CHECKING:
    import onnx


def compile_onnx(
    model: onnx.ModelProto | str | Path,
    config: CompilerConfig | None = None,
    *,
    constants: Mapping[str, torch.Tensor] | None = None,
    shapes: Shapes | None = None,
    device: Device | None = None,
) -> LoadedModel:
    """Compiles an ONNX model, or the model in a file, for a device; None is the default device.

    `constants` gives the values of inputs by their names in the model. Inputs that decide shapes, axes or branches must
    be given there. The result does not take the inputs that are given there. `shapes` gives the shapes of inputs with
    open dimensions, by their names; a dimension with a name has the same size in all inputs. The result takes tensors
    in the order of the model's inputs, or by their names; characters that an identifier cannot have are
    written as `_`. It returns a tensor, or a tuple if the model has several outputs. Matrices and filters among the
    initializers and constants are weights by their names, so that `load_state_dict` can replace them. Environment
    variables override `config`.
    Raises CompileError, UnsupportedOpError for an op that the device does not support, ExtraMissingError if the package
    `onnx` is not installed, and OSError for a file that cannot be read.
    """
    chosen = (config or CompilerConfig()).for_compilation(of_pytorch=False)
    if isinstance(model, (str, Path)):
        model = read_onnx(Path(model))
    module, weights = onnx_to_stablehlo(model, chosen, constants, shapes)
    names = [name for name in input_names(model) if name not in (constants or {})]
    return compiled_module(module, identifiers(names), weights, chosen, device, check_wide_integers(module))


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
