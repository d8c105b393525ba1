"""Checks every op of a binary with the real library on a mock device (see docs/ttnn_library.md)."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import torch

from tt_torch.codegen import environment
from tt_torch.codegen.client import Client
from tt_torch.codegen.program import Function, Program, Statement, from_message
from tt_torch.codegen.recordings import unrecorded
from tt_torch.codegen.ttnn_worker.messages import Arguments, Checked, FunctionFacts
from tt_torch.codegen.values import Call
from tt_torch.errors import DeviceError, WorkerError
from tt_torch.runtime import Binary, Device
from tt_torch.runtime.buffers import result_forms
from tt_torch.runtime.mesh_executable import MeshExecutable
from tt_torch.wire.decode import decode

# The results of these ops are blocked and padded as the convolution needs them. A binary does not describe how.
BLOCKED = tuple(f"PrepareConv{kind}{part}Op" for kind in ("2d", "Transpose2d") for part in ("Weights", "Bias"))

MOST_CHIPS = 256  # a binary may name any mesh


@dataclass(frozen=True)
class Verdict:
    """The verdict on one op of a binary. `differences` is empty if the library and the binary agree."""

    function: str
    op: str
    location: str
    code: str
    differences: tuple[str, ...]

    @property
    def refused(self) -> bool:
        """True if the library raised an error, False if it gave a result that differs from the binary's description."""
        return any("Error: " in text for text in self.differences)


@dataclass(frozen=True)
class Report:
    """The verdicts on a binary, and the library's peak memory in bytes by function and by place (DRAM, L1, core)."""

    verdicts: list[Verdict]
    peaks: dict[str, dict[str, int]]

    @property
    def failures(self) -> list[Verdict]:
        return [v for v in self.verdicts if v.differences]


class Checker:
    """A mock device that checks binaries for its mesh of (rows, columns) of chips. It is a context manager.

    Raises EnvironmentMissingError if the environment of `tt-torch check --setup` does not exist, and DeviceError if the
    library does not open such a mesh.
    """

    def __init__(self, device: str = "n150", folder: Path | None = None, mesh_shape: Sequence[int] = (1, 1)) -> None:
        folder = environment.require(folder)
        if math.prod(mesh_shape) > MOST_CHIPS:
            raise DeviceError(f"a mock device has at most {MOST_CHIPS} chips, and {_chips(mesh_shape)} is asked for")
        self.mesh_shape = tuple(mesh_shape)
        self._client = Client(environment.python_in(folder), environment.variables(folder, device, mesh_shape))
        self.ask = self._client.ask
        try:
            self.ask("open", {"mesh_shape": self.mesh_shape, "fabric": math.prod(mesh_shape) > 1})
        except WorkerError as error:
            self.close()
            raise DeviceError(f"the library does not open a mock {device} of {_chips(mesh_shape)}: {error}") from error

    def check(self, binary: bytes) -> Report:
        """Checks every function of a binary; the ops of a recording are checked as ops of the program that has it.
        Raises UnsupportedBinaryError for ops without a row in calls.py, and DeviceError for a binary for another
        mesh."""
        program = from_message(unrecorded(decode(binary)))
        if program.mesh_shape != self.mesh_shape:
            raise DeviceError(
                f"the binary is for {_chips(program.mesh_shape)}, and the mock device has {_chips(self.mesh_shape)}"
            )
        answers: list[Checked] = self.ask("check", request(program))
        verdicts = [v for f, a in zip(program.functions, answers, strict=True) for v in _verdicts(f, a["verdicts"])]
        peaks = {f.name: a["peak"] for f, a in zip(program.functions, answers, strict=True)}
        return Report(verdicts, peaks)

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> Checker:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Checkers:
    """Checks each binary on a mock device with the mesh `mesh_shape`, or without it, with the binary's own mesh. A
    device is opened when a binary needs it. Like a Checker, it is a context manager and raises the same errors."""

    def __init__(
        self, device: str = "n150", folder: Path | None = None, mesh_shape: Sequence[int] | None = None
    ) -> None:
        self._device, self._folder, self._mesh_shape = device, folder, mesh_shape
        self._opened: dict[tuple[int, ...], Checker] = {}
        self._stack = contextlib.ExitStack()

    def check(self, binary: bytes) -> Report:
        mesh = tuple(self._mesh_shape or from_message(decode(binary)).mesh_shape)
        if mesh not in self._opened:
            self._opened[mesh] = self._stack.enter_context(Checker(self._device, self._folder, mesh))
        return self._opened[mesh].check(binary)

    def __enter__(self) -> Checkers:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()


def own_peaks(binary: bytes, arch: str) -> dict[str, int]:
    """The peaks of our own allocator, in bytes of DRAM and of L1 of a chip, during one call with zeros. They include
    weights."""
    loaded = Binary(binary)
    with Device(arch, loaded.programs[0].mesh_shape) as device:
        executable = MeshExecutable(loaded, 0, device)
        forms = result_forms(executable.inputs)
        executable([torch.zeros(shape, dtype=dtype) for shape, dtype in forms])
        stats = executable.memory_stats()
    return {"DRAM": stats["dram_peak"], "L1": stats["l1_peak"]}


def _chips(mesh_shape: Sequence[int]) -> str:
    return f"a mesh of {'x'.join(map(str, mesh_shape))} chips" if math.prod(mesh_shape) > 1 else "one chip"


def request(program: Program) -> Arguments:
    """The worker's question about a program, as plain values. tt_torch's classes do not exist in its Python."""
    functions: list[FunctionFacts] = [
        {
            "name": function.name,
            "outputs": function.outputs,
            "inputs": [t.facts() for t in function.inputs],
            "statements": [
                {
                    "code": "\n".join(filter(None, [s.imported, *s.lines()])),
                    "results": [t.facts() for t in s.results],
                    "callee": s.callee,
                    "blocked": s.op in BLOCKED,
                    "freed": _freed(s),
                }
                for s in function.statements
            ],
        }
        for function in program.functions
    ]
    return {"functions": functions, "constants": {k: t.facts() for k, (t, _) in program.constants.items()}}


def _freed(statement: Statement) -> str:
    """The name of the tensor that a statement deallocates; empty for other statements."""
    if statement.op != "DeallocateOp" or not isinstance(statement.value, Call):
        return ""
    return str(statement.value.arguments[0][1])


def _verdicts(function: Function, answers: list[list[str]]) -> Iterator[Verdict]:
    for statement, differences in zip(function.statements, answers, strict=True):
        code = " ".join("".join(line.strip() + " " for line in statement.lines()).split())
        yield Verdict(function.name, statement.op, statement.location, code, tuple(differences))
