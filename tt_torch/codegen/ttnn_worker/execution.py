"""Running generated programs on a device of the `ttnn` package."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import ttnn

from .specification import Specification

# Values that NumPy has no type for; float32 has them all.
NARROW = (ttnn.bfloat16, ttnn.bfloat8_b, ttnn.bfloat4_b)


class LoadedProgram:
    """The module that a generated program is, its constants on the host, and what each of its inputs is."""

    def __init__(self, source: str, constants: dict[str, np.ndarray], inputs: list[dict[str, Any]], name: str) -> None:
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)  # for tracebacks
        self.scope: dict[str, Any] = {"__name__": name}
        exec(compile(source, name, "exec"), self.scope)
        self.inputs = [Specification(facts) for facts in inputs]
        place = self.scope["to_host_tensor"]
        self.constants = {key: place(array, *self.scope["WEIGHTS"][key]) for key, array in constants.items()}

    def __call__(self, tensors: list[Any], device: Any) -> list[Any]:
        """`tensors` are the binary's inputs in order; those that stay on the host are the program's weights."""
        pairs = list(zip(self.inputs, tensors, strict=True))
        inputs = [tensor for spec, tensor in pairs if spec.memory_config is not None]
        weights = {spec.name: tensor for spec, tensor in pairs if spec.memory_config is None}
        return self.scope["forward"](inputs, self.constants | weights, device)


class Execution:
    """An open device with the programs that were loaded for it and the tensors that stay between calls."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.programs: dict[int, LoadedProgram] = {}
        self.kept: dict[int, Any] = {}

    def load(self, key: int, source: str, constants: dict[str, np.ndarray], inputs: list[dict[str, Any]]) -> None:
        self.programs[key] = LoadedProgram(source, constants, inputs, f"<program {key}>")

    def keep(self, key: int, facts: dict[str, Any], array: np.ndarray) -> None:
        self.kept[key] = Specification(facts).place(array, self.device)

    def forget(self, keys: list[int]) -> None:
        for key in keys:
            self.programs.pop(key, None)
            self.kept.pop(key, None)

    def run(self, key: int, arguments: list[int | np.ndarray]) -> list[np.ndarray]:
        """Outputs of a program for arrays and, by their keys, kept tensors."""
        program = self.programs[key]
        pairs = zip(program.inputs, arguments, strict=True)
        return [self._values(t) for t in program([self._tensor(*pair) for pair in pairs], self.device)]

    def _tensor(self, spec: Specification, argument: int | np.ndarray) -> Any:
        if isinstance(argument, int):
            # Programs deallocate inputs that they are done with, which spares memory that another tensor shares.
            return ttnn.Tensor(self.kept[argument])
        return spec.place(argument, self.device)

    def _values(self, tensor: Any) -> np.ndarray:
        if ttnn.is_tensor_storage_on_device(tensor):
            tensor = ttnn.from_device(tensor)
        tensor = ttnn.get_device_tensors(tensor)[0]  # all chips of a mesh compute the same
        if tensor.dtype in NARROW:
            tensor = ttnn.to_dtype(tensor, ttnn.float32)
        return tensor.to_numpy()

    def statistics(self) -> dict[str, int]:
        """Numbers of programs and tensors that are here, and of kernels' programs that the library has cached."""
        cached = self.device.num_program_cache_entries()
        return {"programs": len(self.programs), "kept": len(self.kept), "cached": cached}

    def close(self) -> None:
        self.programs.clear()
        self.kept.clear()
        ttnn.close_mesh_device(self.device)
