"""The table of all ops in docs/stablehlo.md, compared with the ops that exist and with what the compiler does."""

from __future__ import annotations

import mmap
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
import torch_mlir
from interpreter import inputs_of
from spec_programs import SPECS, Spec

import tt_torch
from tt_torch.bringup.interpret import evaluate
from tt_torch.config import CompilerConfig
from tt_torch.driver.stablehlo import in_a_list
from tt_torch.errors import UnsupportedOpError
from tt_torch.mlir.context import make_context

PAGE = Path(__file__).parents[2] / "docs" / "stablehlo.md"
GROUPS = 6  # programs for all ops of the device together
NAME = re.compile(rb"stablehlo\.([a-z][a-z0-9_]*)\0")


def table() -> dict[str, str]:
    """Where each op is computed: "device" or "refused"."""
    (rows,) = re.findall(r"<!-- ops -->(.*)<!-- ops end -->", PAGE.read_text(), re.DOTALL)
    found = re.findall(r"^\| (`.*?`) \| (\w+) \|", rows, re.MULTILINE)
    names = [(name, where) for ops, where in found for name in re.findall(r"`(\w+)`", ops)]
    assert len(dict(names)) == len(names), "an op has two rows"
    return dict(names)


TABLE = table()
DEVICE = sorted(name for name, where in TABLE.items() if where == "device")
REFUSED = sorted(name for name, where in TABLE.items() if where == "refused")


def registered() -> set[str]:
    """The ops of the dialect. MLIR has no list, so this asks for each string in its library that may be a name."""
    (library,) = Path(next(iter(torch_mlir.__path__))).glob("_mlir_libs/libTorchMLIRAggregateCAPI.*")
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        names = {name.decode() for name in NAME.findall(content)}
    context = make_context()
    return {name for name in names if context.is_registered_operation(f"stablehlo.{name}")}


def test_the_table_has_each_op_once() -> None:
    assert set(TABLE) == registered()
    assert set(TABLE) == set(SPECS)
    assert set(TABLE.values()) == {"device", "refused"}


def test_each_program_has_its_op() -> None:
    assert not [name for name, spec in SPECS.items() if not re.search(rf"stablehlo\.{name}\b", spec.body)]


def merged(specs: Sequence[Spec]) -> str:
    """One program that has the ops of all programs and returns the values of all."""
    arguments, lines = [], []
    for number, spec in enumerate(specs):
        arguments += [f"%r{number}{name}: {kind}" for name, kind in zip("abcd", spec.arguments, strict=False)]
        lines.append(re.sub(r"%(\w+)", rf"%r{number}\1", spec.body))
    values, types = ", ".join(f"%r{n}0" for n in range(len(specs))), ", ".join(spec.result for spec in specs)
    head = f"func.func @main({', '.join(arguments)}) -> ({types}) {{"
    functions = "\n".join(spec.functions for spec in specs)
    return "\n".join([head, *lines, f"return {values} : {types}", "}", functions])


@pytest.mark.parametrize("group", range(GROUPS))
def test_the_device_computes_what_the_op_means(group: int) -> None:
    names = DEVICE[group::GROUPS]
    specs = [SPECS[name] for name in names]
    inputs = [inputs_of(spec.text()) for spec in specs]
    program = tt_torch.compile_stablehlo(merged(specs), CompilerConfig(verify_ir=True))
    results = in_a_list(program(*(x for given in inputs for x in given)))
    known = [number for number, spec in enumerate(specs) if spec.expected is None]
    text = merged([specs[number] for number in known])
    values = dict(zip(known, evaluate(text, [x for number in known for x in inputs[number]]), strict=True))
    for number, (name, spec, got) in enumerate(zip(names, specs, results, strict=True)):
        wanted = spec.expected(*inputs[number]) if spec.expected else values[number]
        torch.testing.assert_close(
            got.double(), wanted.double(), rtol=1e-5, atol=1e-5, equal_nan=True, msg=lambda m, n=name: f"{n}: {m}"
        )


@pytest.mark.parametrize("name", REFUSED)
def test_an_op_without_a_form_on_the_device_is_refused(name: str) -> None:
    """The error names the op, or the op that makes its token or its future value."""
    with pytest.raises(UnsupportedOpError, match=rf"stablehlo\.({name}|create_token|async_start) is not supported"):
        tt_torch.compile_stablehlo(SPECS[name].text())
