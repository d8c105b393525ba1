"""Conformance: every op of a binary against the real library's checks, on a mock device (see docs/ttnn_library.md)."""

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

# Results that are blocked and padded as the op that reads them wants it: no descriptor of a binary says how.
BLOCKED = tuple(f"PrepareConv{kind}{part}Op" for kind in ("2d", "Transpose2d") for part in ("Weights", "Bias"))


@dataclass(frozen=True)
class Verdict:
    """One op of a binary. `differences` are empty where library and binary agree."""

    function: str
    op: str
    location: str
    code: str
    differences: tuple[str, ...]

    @property
    def refused(self) -> bool:
        """Whether the library raised an error, instead of giving a result that the binary describes otherwise."""
        return any("Error: " in text for text in self.differences)


@dataclass(frozen=True)
class Report:
    """The verdicts on a binary, and by function the library's peak memory in bytes (DRAM, L1, one core)."""

    verdicts: list[Verdict]
    peaks: dict[str, dict[str, int]]

    @property
    def failures(self) -> list[Verdict]:
        return [v for v in self.verdicts if v.differences]


class Checker:
    """A mock device that binaries are checked on; a context manager. Raises EnvironmentMissingError."""

    def __init__(self, device: str = "n150", folder: Path | None = None) -> None:
        folder = environment.require(folder)
        self._client = Client(environment.python_in(folder), environment.variables(folder, device))
        self.ask = self._client.ask
        self.ask("open")

    def check(self, binary: bytes) -> Report:
        """Checks every function of a binary. Raises UnsupportedBinaryError for ops without a call description."""
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
    """The peaks that our allocator counts in a call with zeros, weights included: bytes of DRAM and of L1."""
    with Device(arch) as device:
        executable = device.load(binary)
        forms = result_forms(executable.inputs)
        executable([torch.zeros(shape, dtype=dtype) for shape, dtype in forms])
        stats = executable.memory_stats()
    return {"DRAM": stats["dram_peak"], "L1": stats["l1_peak"]}


def _request(program: Program) -> Arguments:
    """The program as plain values, which is what passes to the other Python."""
    functions: list[FunctionFacts] = [
        {
            "name": function.name,
            "outputs": function.outputs,
            "inputs": [t.facts() for t in function.inputs],
            "statements": [
                {
                    "code": "\n".join(s.lines()),
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
