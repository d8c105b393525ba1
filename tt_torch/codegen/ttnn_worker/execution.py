"""Runs generated programs on a device of the `ttnn` package."""

from __future__ import annotations

import linecache
from functools import partial
from typing import Any

import numpy as np
import ttnn

from .messages import Shardings, TensorFacts, Values
from .sharding import compose, parts_of, to_array
from .specification import Specification
from .trace import Trace


class LoadedProgram:
    """The module of a generated program, its constants on the host, the specifications of its inputs, and how the chips
    have its results. The results at the positions `each` have a value per chip.

    `ran_with` describes the last call that the host made: the key of each input that was a kept tensor, and None for
    each other input.
    """

    def __init__(
        self,
        source: str,
        constants: dict[str, np.ndarray],
        inputs: list[TensorFacts],
        output_shardings: Shardings,
        each: list[int],
        traceable: bool,
        name: str,
    ) -> None:
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)  # for tracebacks
        self.scope: dict[str, Any] = {"__name__": name}
        exec(compile(source, name, "exec"), self.scope)
        self.inputs = [Specification(facts) for facts in inputs]
        self.output_shardings, self.each = output_shardings, each
        place = self.scope["to_host_tensor"]
        self.constants = {key: place(array, *self.scope["WEIGHTS"][key][:2]) for key, array in constants.items()}
        self.traceable = traceable
        self.trace: Trace | None = None
        self.ran_with: tuple[int | None, ...] | None = None

    def __call__(self, tensors: list[ttnn.Tensor], device: ttnn.MeshDevice) -> list[ttnn.Tensor]:
        """Runs the program. `tensors` are the binary's inputs in order. Inputs on the host are its weights."""
        pairs = list(zip(self.inputs, tensors, strict=True))
        inputs = [tensor for spec, tensor in pairs if spec.memory_config is not None]
        weights = {spec.name: tensor for spec, tensor in pairs if spec.memory_config is None}
        return self.scope["forward"](inputs, self.constants | weights, device)

    def values(self, outputs: list[ttnn.Tensor], device: ttnn.MeshDevice) -> list[Values]:
        """The values of the program's results."""
        return [
            [to_array(part) for part in parts_of(x)] if i in self.each else compose(x, sharding, device)
            for i, (x, sharding) in enumerate(zip(outputs, self.output_shardings, strict=True))
        ]


class Execution:
    """An open device with the programs that were loaded for it and the tensors that are kept between calls.

    With `enable_trace`, the second call of a program with the same kept tensors records it, and later calls replay the
    trace. A trace writes to the addresses that were in use when it was recorded. So all traces are released whenever a
    tensor that stays on the device is added or dropped.
    """

    def __init__(self, device: ttnn.MeshDevice, enable_trace: bool = False, queues: int = 1) -> None:
        self.device, self.enable_trace, self.queues = device, enable_trace, queues
        self.programs: dict[int, LoadedProgram] = {}
        self.kept: dict[int, ttnn.Tensor] = {}

    def load(
        self,
        key: int,
        source: str,
        constants: dict[str, np.ndarray],
        inputs: list[TensorFacts],
        output_shardings: Shardings,
        each: list[int],
        traceable: bool,
    ) -> None:
        name = f"<program {key}>"
        self.programs[key] = LoadedProgram(source, constants, inputs, output_shardings, each, traceable, name)

    def keep(self, key: int, facts: TensorFacts, values: Values) -> None:
        self._release_traces()
        self.kept[key] = Specification(facts).place(values, self.device)

    def forget(self, keys: list[int]) -> None:
        self._release_traces()
        for key in keys:
            self.programs.pop(key, None)
            self.kept.pop(key, None)

    def run(self, key: int, arguments: list[int | Values]) -> list[Values]:
        """The outputs of a program. Each argument has the values of a tensor, or is the key of a kept one."""
        program = self.programs[key]
        kept = tuple(a if isinstance(a, int) else None for a in arguments)
        weights = (k for spec, k in zip(program.inputs, kept, strict=True) if spec.memory_config is None)
        if program.ran_with != kept:
            self._release_traces()  # this call may allocate kernels and values of weights that stay on the device
            outputs = self._call(program, arguments)
            program.ran_with = kept
        elif self.enable_trace and program.traceable and None not in weights:
            if program.trace is None:
                run, pairs = partial(program, device=self.device), zip(program.inputs, kept, strict=True)
                stay = [None if key is None else self._tensor(spec, key) for spec, key in pairs]
                program.trace = Trace(self.device, self.queues, run, program.inputs, stay)
            outputs = program.trace.replay([a for a in arguments if not isinstance(a, int)])
        else:
            outputs = self._call(program, arguments)
        return program.values(outputs, self.device)

    def _call(self, program: LoadedProgram, arguments: list[int | Values]) -> list[ttnn.Tensor]:
        pairs = zip(program.inputs, arguments, strict=True)
        return program([self._tensor(*pair) for pair in pairs], self.device)

    def _tensor(self, spec: Specification, argument: int | Values) -> ttnn.Tensor:
        if not isinstance(argument, int):
            return spec.place(argument, self.device)
        kept = self.kept[argument]
        # Programs deallocate their inputs; memory that another tensor object shares is not freed then. Weights on the
        # host must be the same objects in each call, because `cached` compares them by identity.
        return kept if spec.memory_config is None else ttnn.Tensor(kept)

    def _release_traces(self) -> None:
        for program in self.programs.values():
            if program.trace is not None:
                program.trace.release()
                program.trace = None

    def statistics(self) -> dict[str, int]:
        """Counts the programs, traces and kept tensors, and the kernel programs that the library caches."""
        traces = sum(program.trace is not None for program in self.programs.values())
        cached = self.device.num_program_cache_entries()
        return {"programs": len(self.programs), "traces": traces, "kept": len(self.kept), "cached": cached}

    def close(self) -> None:
        self._release_traces()
        self.programs.clear()
        self.kept.clear()
        ttnn.close_mesh_device(self.device)
