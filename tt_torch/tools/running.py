"""Runs a `.ttnn` binary or a `.ttpkg` package on tensors by name, several times, and compares with saved outputs."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tt_torch.accuracy import calculate_atol, calculate_pcc, random_inputs
from tt_torch.driver.arguments import TensorForm
from tt_torch.driver.containers import parts_of
from tt_torch.driver.devices import Device
from tt_torch.driver.loading import LoadedProgram, host_dtype, load
from tt_torch.tools.tensor_files import by_name

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Loaded:
    """The content of a file: the form of each tensor that it takes, by name, and a function from such tensors to the
    tensors of its result, by name. `tt-torch inspect` shows these names. `writes`: `run` can write to its tensors."""

    inputs: Mapping[str, TensorForm]
    run: Callable[[Mapping[str, torch.Tensor]], Tensors]
    writes: bool


def loaded(path: Path, device: Device | None) -> Loaded:
    """The content of a `.ttnn` or `.ttpkg` file. Raises the errors of `tt_torch.load`."""
    model = load(path, device)
    if isinstance(model, LoadedProgram):
        cpu = torch.device("cpu")
        forms = [TensorForm(tuple(spec.shape), host_dtype(spec), cpu) for spec in model.inputs]
        program: LoadedProgram = model
        return Loaded(
            {f"input {i}": form for i, form in enumerate(forms)},
            lambda given: {f"output {i}": x for i, x in enumerate(program(*given.values()))},
            writes=False,
        )
    package = model
    return Loaded(package.tensor_forms, lambda given: named(package.run(given)), writes=True)


def drawn(forms: Mapping[str, TensorForm], seed: int = 0) -> Tensors:
    """Random tensors: floats between -0.5 and 0.5; integers 0 and 1, which are indices into any table."""
    torch.manual_seed(seed)
    shapes, dtypes = [form.shape for form in forms.values()], [form.dtype for form in forms.values()]
    made = random_inputs(shapes, dtypes, value_range_int=(0, 2))
    return {name: x.to(form.device) for (name, form), x in zip(forms.items(), made, strict=True)}


def named(result: Any) -> Tensors:
    """The tensors of a result, by name."""
    return {name: part for name, part in parts_of(result, "result") if isinstance(part, torch.Tensor)}


@dataclass(frozen=True)
class Times:
    """Milliseconds of the first call, and of each later one."""

    first: float
    later: list[float]

    def __str__(self) -> str:
        if not self.later:
            return f"{self.first:.1f} ms"
        middle, least, most = statistics.median(self.later), min(self.later), max(self.later)
        more = f"{len(self.later)} more: median {middle:.3f} ms, {least:.3f} to {most:.3f} ms"
        return f"first call {self.first:.1f} ms; {more}"


def timed(model: Loaded, inputs: Mapping[str, torch.Tensor], repeat: int) -> tuple[Tensors, Times]:
    """The outputs of the first call, and the times of it and of `repeat` more calls with the same inputs."""

    def call() -> tuple[Tensors, float]:
        # a binary keeps weights on the device as long as they are the same tensors
        given = {name: x.clone() for name, x in inputs.items()} if model.writes else inputs
        begin = time.perf_counter()
        outputs = model.run(given)
        return outputs, (time.perf_counter() - begin) * 1e3

    with torch.no_grad():
        outputs, first = call()
        return outputs, Times(first, [call()[1] for _ in range(repeat)])


@dataclass(frozen=True)
class Comparison:
    """An output and its golden value: their PCC, and the largest absolute difference with its bound. The measures are
    None if the shapes differ, or if NaNs or infinities are at different places. Integers must be equal."""

    name: str
    pcc: float | None
    difference: float | None
    bound: float
    ok: bool

    def __str__(self) -> str:
        mark = "ok" if self.ok else "differs"
        if self.difference is None:
            return f"{mark:8}{self.name}: its shape, its NaNs or its infinities differ"
        difference = f"largest difference {self.difference:.3g} (bound {self.bound:.3g})"
        return f"{mark:8}{self.name}: PCC {self.pcc:.7f}, {difference}"


def compare(outputs: Tensors, golden: Tensors, origin: str, pcc: float, tolerance: float) -> list[Comparison]:
    """Compares each output with the golden tensor of the same name. Raises TensorFileError if the names differ.

    The bound of the difference is `tolerance` times the largest finite magnitude of the golden tensor, or times 1 if
    all of it is zero.
    """
    expected = by_name(list(outputs), golden, origin)
    return [_compared(name, value, expected[name], pcc, tolerance) for name, value in outputs.items()]


def _compared(name: str, value: torch.Tensor, golden: torch.Tensor, pcc: float, tolerance: float) -> Comparison:
    exact = not (golden.is_floating_point() or golden.is_complex())
    finite = golden.abs()[golden.isfinite()].double() if not exact else torch.zeros(0)
    largest = finite.max().item() if finite.numel() else 0.0
    bound = 0.0 if exact else tolerance * (largest or 1.0)
    if value.shape != golden.shape:
        return Comparison(name, None, None, bound, False)
    correlation = calculate_pcc(value, golden) if golden.numel() > 1 else 1.0
    difference = calculate_atol(value, golden)
    if not math.isfinite(difference):
        return Comparison(name, None, None, bound, False)
    return Comparison(name, correlation, difference, bound, difference <= bound and (exact or correlation >= pcc))
