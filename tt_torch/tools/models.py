"""The models that commands take: each can be compiled, and computes its own results without a device."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch_mlir import ir

import tt_torch
from tt_torch.bringup.interpret import evaluate
from tt_torch.driver.package import contents
from tt_torch.driver.package.loading import LoadedModel
from tt_torch.driver.stablehlo import in_a_list, input_types
from tt_torch.errors import CompileError, PackageError
from tt_torch.files import STABLEHLO_SUFFIXES
from tt_torch.flow import MAIN
from tt_torch.mlir.child import SECONDS, NativeCrash, in_child
from tt_torch.mlir.functions import main, returned
from tt_torch.mlir.mesh import mesh_of
from tt_torch.mlir.reading import read_stablehlo
from tt_torch.runtime import Binary
from tt_torch.tools.explain_cli import model_of
from tt_torch.tools.running import drawn

if TYPE_CHECKING:
    from tt_torch.driver.compiled import CompiledModel

Shapes = Mapping[str, Sequence[int]]
Results = tuple[Any, Any]  # the first one is that of the model itself, the second one that of its package


class Model(Protocol):
    """A model that a command takes."""

    def compiled(self) -> CompiledModel | LoadedModel: ...

    def called(self, package: LoadedModel) -> Results:
        """Calls the model without a device, and its package with the same arguments. Returns both results."""


def model_in(source: str, shapes: Shapes | None = None) -> Model:
    """The model in a file, or the model that a function returns. `shapes` are those of inputs of an ONNX model.

    Raises the errors of `model_of`, CompileError for a file that is no program of torch.export, and OSError.
    """
    suffix = Path(source).suffix
    if suffix in STABLEHLO_SUFFIXES:
        return StableHloFile(Path(source))
    if suffix == ".onnx":
        return OnnxFile(Path(source), shapes or {})
    return _exported(Path(source)) if suffix == ".pt2" else PyTorchModel(*model_of(source))


@dataclass(frozen=True)
class PyTorchModel:
    """A model, or a program of torch.export, with its example arguments. Eager PyTorch computes its results."""

    model: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)

    def compiled(self) -> CompiledModel:
        return tt_torch.compile_model(self.model, self.args, kwargs=self.kwargs)

    def called(self, package: LoadedModel) -> Results:
        """The weights are those of the package, because a function may return a model with other random weights."""
        model = self.model.module() if isinstance(self.model, torch.export.ExportedProgram) else self.model
        if isinstance(model, torch.nn.Module):
            _take_weights(model, package)
        args, kwargs = deepcopy((self.args, self.kwargs))  # a model may write to its arguments
        with torch.no_grad():
            return model(*args, **kwargs), package(*self.args, **self.kwargs)


def _take_weights(model: torch.nn.Module, package: LoadedModel) -> None:
    """Raises PackageError if the package has weights that are not the model's."""
    own, state = model.state_dict(), package.state_dict()
    for name, weight in state.items():
        if name not in own or own[name].shape != weight.shape:
            raise PackageError(f"the package is of another model: it has the weight {name} {tuple(weight.shape)}")
    model.load_state_dict(state, strict=False)


def _exported(source: Path) -> PyTorchModel:
    """A program of torch.export, for arguments like its example. Its open dimensions get the sizes of the example."""
    if not zipfile.is_zipfile(source):  # PyTorch would print a traceback before it raises an error
        raise CompileError(f"{source} is no program of torch.export: it is no complete zip file")
    try:
        program = torch.export.load(source)
    except Exception as error:  # it raises errors of zip files, of JSON, of its own and others
        raise CompileError(f"{source} is no program of torch.export: {error}") from error
    if program.example_inputs is None:
        raise CompileError(f"{source} has no example of its arguments; save it with those of torch.export.export")
    return PyTorchModel(program, *program.example_inputs)


@dataclass(frozen=True)
class StableHloFile:
    """A file with StableHLO. StableHLO's interpreter computes its results for random inputs."""

    path: Path

    def compiled(self) -> LoadedModel:
        return tt_torch.compile_stablehlo(self.path)

    def called(self, package: LoadedModel) -> Results:
        module = read_stablehlo(self.path)
        _require_interpretable(module, self.path)
        if input_types(module) != (taken := [(form.shape, form.dtype) for form in package.tensor_forms.values()]):
            raise PackageError(f"the package takes {taken}, and {self.path} takes {input_types(module)}")
        inputs, bytecode = [*drawn(package.tensor_forms).values()], io.BytesIO()
        module.operation.write_bytecode(bytecode)
        try:
            found = in_child(partial(_interpreted, bytecode.getvalue(), inputs), SECONDS)
        except NativeCrash as crash:
            message = f"StableHLO's interpreter gave no results of {self.path}: {crash}; stderr may have the cause"
            raise CompileError(message) from None
        return torch.load(io.BytesIO(found)), in_a_list(package(*inputs))


def _require_interpretable(module: ir.Module, path: Path) -> None:
    """Raises CompileError for a program that StableHLO's interpreter cannot run."""
    values = [*main(module).arguments, *returned(module)]
    if mesh_of(module.operation) != (1, 1):
        raise CompileError(f"{path} is for several chips, and StableHLO's interpreter has one device")
    if any(isinstance(value.type.element_type, ir.ComplexType) for value in values):
        raise CompileError(f"{path} takes or returns complex numbers, which StableHLO's interpreter cannot")


def _interpreted(bytecode: bytes, inputs: Sequence[torch.Tensor]) -> bytes:
    """The results of a program as the bytes of a file. The interpreter ends the process at an op that it lacks."""
    saved = io.BytesIO()
    torch.save(evaluate(bytecode, inputs), saved)
    return saved.getvalue()


@dataclass(frozen=True)
class OnnxFile:
    """A file with an ONNX model. ONNX Runtime computes its results for random inputs."""

    path: Path
    shapes: Shapes

    def of_binary(self, binary: bytes) -> OnnxFile:
        """The model with the shapes of the inputs of a binary, because inputs of the model may have open dimensions."""
        from tt_torch.mlir.onnx import input_names, read_onnx

        taken = (tuple(spec.shape) for spec in Binary(binary).programs[0].inputs)  # the weights follow
        return OnnxFile(self.path, dict(zip(input_names(read_onnx(self.path)), taken, strict=False)))

    def compiled(self) -> LoadedModel:
        return tt_torch.compile_onnx(self.path, shapes=self.shapes)

    def called(self, package: LoadedModel) -> Results:
        from tt_torch.driver.onnx import identifiers
        from tt_torch.mlir.onnx import input_names, read_onnx
        from tt_torch.mlir.onnx_sizes import fix_sizes
        from tt_torch.onnx_compile import onnx_output_to_torch, run_model_proto

        model, forms = read_onnx(self.path), package.tensor_forms
        names, inputs = input_names(model), [*drawn(forms).values()]
        if identifiers(names) != [*forms]:
            raise PackageError(f"the package takes {', '.join(forms)}, and {self.path} takes {', '.join(names)}")
        shapes = {name: form.shape for name, form in zip(names, forms.values(), strict=True)}
        fix_sizes([value for value in model.graph.input if value.name in names], shapes, {})  # compares them
        return onnx_output_to_torch(run_model_proto(model, inputs)), in_a_list(package(*inputs))


def package_in(file: Path, model: Model) -> LoadedModel:
    """The package in a file of the model. For a binary, it is the package that the model becomes now, with this binary.

    Raises the errors of `tt_torch.load`, those of compiling the model, and PackageError if it becomes several programs.
    """
    if contents.is_package(file):
        return LoadedModel(contents.read(file))
    binary = file.read_bytes()
    if isinstance(model, OnnxFile):
        model = model.of_binary(binary)
    with TemporaryDirectory() as folder:
        saved = Path(folder, "model.ttpkg")
        model.compiled().save(saved)
        package = contents.read(saved)
    if package.family or package.manifests[0].flow:
        raise PackageError(f"{file} has one program, and the model becomes several")
    program = torch.frombuffer(bytearray(binary), dtype=torch.uint8)
    return LoadedModel(replace(package, tensors={**package.tensors, f"program/{MAIN}": program}))
