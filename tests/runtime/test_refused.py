"""Kernels refuse fields that do not fit, before anything runs, and say why."""

import re
from functools import cache
from pathlib import Path

import pytest
import torch
from kernel_rows.refusals import ACCEPTED, OF_INFERRED, PROGRAMS, REFUSED, Result
from programs import Maker

import tt_torch.runtime
from tt_torch.errors import TTTorchError
from tt_torch.runtime import Binary, Executable
from tt_torch.wire.schema import DEFAULT

WIRE_TYPES = {torch.float32: "Float32", torch.int32: "Int32", torch.int64: "UInt32"}
KERNELS = Path(tt_torch.runtime.__file__).parent / "src" / "kernels"
ELSEWHERE = ("custom_op.cpp", "host_code.cpp")  # files whose refusals have tests of their own


def planned(op, wrong):
    """Plans a program of one op, with some fields that are wrong. Returns the error's text, or "" if there is none."""
    maker = Maker()

    def on_wire(value):
        if isinstance(value, torch.Tensor):
            return maker.input(value.shape, WIRE_TYPES[value.dtype], tile=False)
        if isinstance(value, Result):
            return maker.tensor(value.shape, value.dtype)
        if isinstance(value, dict):
            return {name: on_wire(part) for name, part in value.items()}
        return [on_wire(part) for part in value] if isinstance(value, list) else value

    fields = PROGRAMS[op] | wrong
    maker.op(op, **{name: on_wire(value) for name, value in fields.items() if value is not None})
    try:
        Executable(Binary(maker.binary(schema="912b70aa" if op in OF_INFERRED else DEFAULT)))
    except TTTorchError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("op", REFUSED)
def test_what_does_not_fit_is_refused(op):
    assert not planned(op, {})
    for message, wrong in REFUSED[op]:
        assert f"{op} at model.py:1: {message}" in planned(op, wrong), wrong


@pytest.mark.parametrize("op, fields", ACCEPTED)
def test_the_limits_are_accepted(op, fields):
    assert not planned(op, fields)


@cache
def messages():
    """The literal messages of all checks in the sources of the kernels."""
    found = {}
    for file in sorted(KERNELS.glob("*.cpp")):
        for check in re.finditer(r"\b(?:require\(|invalid\(|throw Error\()[^;{]*;", file.read_text()):
            for literal in re.findall(r'"(?:[^"\n]|"\s*")+"', check[0]):
                found[re.sub(r'"\s*"', "", literal)[1:-1].strip()] = file.name
    return found


def test_each_op_has_one_kernel():
    """The tables at the ends of the files have each op once."""
    ops = [op for file in KERNELS.glob("*.cpp") for op in re.findall(r'\{"(\w+Op)", \w+\}', file.read_text())]
    assert len(ops) == len(set(ops)) > 80


def test_each_check_of_a_kernel_is_tried():
    tried = [message for cases in REFUSED.values() for message, _ in cases]
    left = {m: file for m, file in messages().items() if file not in ELSEWHERE and not any(m in t for t in tried)}
    assert len(messages()) > 80 and not left
