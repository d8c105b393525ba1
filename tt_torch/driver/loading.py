"""Runs a saved binary. This imports neither torch-mlir nor the compiler."""

from __future__ import annotations

from pathlib import Path

import torch

from tt_torch.config import CompilerConfig
from tt_torch.driver.devices import Device, default_device
from tt_torch.driver.executor import CompiledProgram, Executor, of_file
from tt_torch.driver.package.contents import is_package, read
from tt_torch.driver.package.loading import LoadedModel
from tt_torch.runtime import TensorSpec
from tt_torch.runtime.buffers import RESULT_TYPES


class LoadedProgram:
    """A saved program as a callable. It takes its inputs in order as tensors, weights included, and returns a tuple.

    `inputs` and `outputs` describe them (shape, dtype, layout, buffer). Inputs that the program expects in host memory
    are weights. They are prepared on the device once, and again only after the tensor has changed (docs/weights.md).
    """

    def __init__(self, binary: bytes, device: Device | None = None) -> None:
        config = CompilerConfig.from_env()
        self._binary, self._device = binary, device or default_device(config)
        self._executable = self._device.load(binary)
        self._executable.compare_weights = config.compare_weights
        self.inputs: list[TensorSpec] = self._executable.inputs
        self.outputs: list[TensorSpec] = self._executable.outputs
        self._resident = frozenset(i for i, spec in enumerate(self.inputs) if spec.buffer == "host")
        self._recorded = self._with_recording(config) if config.profile else None

    def _with_recording(self, config: CompilerConfig) -> Executor:
        """The program as an executor whose calls are recorded, as the option `profile` asks."""
        kinds = ["parameter" if i in self._resident else "input" for i in range(len(self.inputs))]
        dtypes, compares = [host_dtype(spec) for spec in self.outputs], config.compare_weights
        compiled = CompiledProgram(self._binary, [], kinds, dtypes, None, compare_weights=compares)
        return of_file(compiled, self._device, config)

    def __repr__(self) -> str:
        sides = ((f"{host_dtype(x)} {list(x.shape)}" for x in side) for side in (self.inputs, self.outputs))
        return f"LoadedProgram({' -> '.join(map(', '.join, sides))})".replace("torch.", "")

    def __reduce__(self) -> tuple[object, ...]:
        return LoadedProgram, (self._binary,)

    def __deepcopy__(self, memo: object) -> LoadedProgram:
        return LoadedProgram(self._binary, self._device)

    def __call__(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if self._recorded:
            return tuple(self._recorded(inputs))
        return tuple(self._executable(inputs, self._resident))


def host_dtype(spec: TensorSpec) -> torch.dtype:
    """The PyTorch dtype of a tensor with this spec, outside of the device."""
    return RESULT_TYPES[spec.dtype]


def load(path: str | Path, device: Device | None = None) -> LoadedProgram | LoadedModel:
    """Loads a .ttpkg or .ttnn file for a device. The default is the shared device that TT_TORCH_DEVICE and
    TT_TORCH_ARCH name.

    A package gives a LoadedModel. Raises PackageError for a damaged or newer package, BinaryFormatError for a damaged
    or foreign file, SchemaError for an unknown version of the binary's format, UnsupportedBinaryError for ops without a
    kernel, and FileNotFoundError if there is no file.
    """
    if is_package(path):  # also a damaged one, which must not be taken for a binary
        return LoadedModel(read(path), device)
    return LoadedProgram(Path(path).read_bytes(), device)
