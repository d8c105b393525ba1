"""Checks every op of a binary with the real library on a mock device (see docs/ttnn_library.md)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import torch

from tt_torch.codegen import environment
from tt_torch.codegen.client import Client
from tt_torch.codegen.program import Function, Program, from_message
from tt_torch.codegen.ttnn_worker.messages import Arguments, Checked, FunctionFacts
from tt_torch.runtime import Device, result_forms
from tt_torch.wire.decode import decode

# The results of these ops are blocked and padded as the convolution needs them. A binary does not describe how.
BLOCKED = tuple(f"PrepareConv{kind}{part}Op" for kind in ("2d", "Transpose2d") for part in ("Weights", "Bias"))


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
    """A mock device on which binaries are checked, as a context manager.

    Raises EnvironmentMissingError if the environment of `tt-torch check --setup` does not exist.
    """

    def __init__(self, device: str = "n150", folder: Path | None = None) -> None:
        folder = environment.require(folder)
        self._client = Client(environment.python_in(folder), environment.variables(folder, device))
        self.ask = self._client.ask
        self.ask("open")

    def check(self, binary: bytes) -> Report:
        """Checks every function of a binary. Raises UnsupportedBinaryError for ops without a row in calls.py."""
        program = from_message(decode(binary))
        answers: list[Checked] = self.ask("check", _request(program))
        verdicts = [v for f, a in zip(program.functions, answers, strict=True) for v in _verdicts(f, a["verdicts"])]
        peaks = {f.name: a["peak"] for f, a in zip(program.functions, answers, strict=True)}
        return Report(verdicts, peaks)

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> Checker:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def own_peaks(binary: bytes, arch: str) -> dict[str, int]:
    """The peaks of our own allocator, in bytes of DRAM and of L1, during one call with zeros. They include weights."""
    with Device(arch) as device:
        executable = device.load(binary)
        forms = result_forms(executable.inputs)
        executable([torch.zeros(shape, dtype=dtype) for shape, dtype in forms])
        stats = executable.memory_stats()
    return {"DRAM": stats["dram_peak"], "L1": stats["l1_peak"]}


def _request(program: Program) -> Arguments:
    """The program as plain values, because tt_torch's classes do not exist in the worker's Python."""
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
                }
                for s in function.statements
            ],
        }
        for function in program.functions
    ]
    return {"functions": functions, "constants": {k: t.facts() for k, (t, _) in program.constants.items()}}


def _verdicts(function: Function, answers: list[list[str]]) -> Iterator[Verdict]:
    for statement, differences in zip(function.statements, answers, strict=True):
        code = " ".join("".join(line.strip() + " " for line in statement.lines()).split())
        yield Verdict(function.name, statement.op, statement.location, code, tuple(differences))
