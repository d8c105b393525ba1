"""Calls of ops as PyTorch's database of ops makes them, but with other values and layouts of their tensors."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import Any

import torch

from tt_torch.fuzz.statements import DTYPES, LAYOUTS, REFUSALS, SCALARS
from tt_torch.sweep.ops import sample_of
from tt_torch.torch_private.op_samples import op_db
from tt_torch.torch_private.trees import tree_leaves, tree_map_only

# Ops of which eager PyTorch leaves something open, or which are known to differ, by what it is.
LEFT_OUT = {
    "kthvalue": "the position, among equal elements",
    "topk": "the position, among equal elements",
    "mode": "the position, among equal elements",
    "linalg.cholesky_ex": "the rest of a matrix that has no factor",
    "var_mean": "the mean of infinities, see docs/data_types.md",
    "std_mean": "the mean of infinities, see docs/data_types.md",
    "linalg.lstsq": "the strides on device tt, see docs/data_types.md",
    "tensor_split": "its sizes must be on the CPU",
    "histc": "the bin of numbers near the limit of float32",
}
_SAMPLES = 40  # of an op and a dtype that may be drawn
_LARGEST = 5000  # elements of a tensor, each of which may get another value
_DEGREE = 1000  # the largest one of a polynomial: PyTorch takes as many steps as the degree, so 1e10 takes minutes
# What a text raises if it is no call that eager PyTorch computes. A sample may have an object without a literal, and an
# op may be a method only. Some functions check an operand by `assert`, as `embedding` does for `padding_idx`.
_NO_CALL = (*REFUSALS, SyntaxError, NameError, AttributeError, AssertionError)


class _Name(str):
    """A variable among arguments that are written as literals."""

    __repr__ = str.__str__


def random_call(draw: random.Random, scope: Mapping[str, Any]) -> tuple[dict[str, torch.Tensor], str]:
    """Inputs, and the text of a call with them that eager PyTorch computes, such as `torch.special.zeta(x0, x1)`."""
    while True:
        info, dtype, number = draw.choice(_infos()), draw.choice(DTYPES), draw.randrange(_SAMPLES)
        sample = sample_of(info, dtype, number) if dtype in info.dtypes else None
        if sample is None:
            continue
        tensors = [x for x in tree_leaves(sample) if isinstance(x, torch.Tensor)]
        if not tensors or not all(x.layout == torch.strided and _is_small(x) for x in tensors):
            continue
        inputs = {f"x{i}": _changed(draw, x.detach(), integers=not i) for i, x in enumerate(tensors)}
        if "_polynomial_" in info.name and "x1" in inputs:
            inputs["x1"] = inputs["x1"].double().clamp(max=_DEGREE).to(inputs["x1"].dtype)
        args, kwargs = tree_map_only(torch.Tensor, partial(_next, map(_Name, inputs)), sample)
        written = [*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())]
        text = _accepted(draw, f"torch.{info.name}({', '.join(written)})", inputs, scope)
        if text:
            return inputs, text


def _next(names: Iterator[_Name], _: torch.Tensor) -> _Name:
    return next(names)


@cache
def _infos() -> list[Any]:
    return sorted((info for info in op_db if info.name not in LEFT_OUT), key=lambda info: str(info.full_name))


def _is_small(x: torch.Tensor) -> bool:
    return x.numel() <= _LARGEST and x.dtype in DTYPES


def _changed(draw: random.Random, x: torch.Tensor, integers: bool) -> torch.Tensor:
    """The tensor with other numbers at some places, and sometimes in another layout. Integers are changed only if
    they are the first tensor of the op. Others may be positions, which eager's kernels may not check."""
    if x.dtype.is_floating_point or (integers and x.dtype != torch.bool):
        share, numbers = draw.choice((0, 0.1, 0.5, 1)), [draw.choice(_numbers(x.dtype)) for _ in range(4)]
        places = [i for i in range(x.numel()) if draw.random() < share]
        chosen = torch.tensor([draw.choice(numbers) for _ in places], dtype=x.dtype)
        x = x.flatten().index_copy(0, torch.tensor(places, dtype=torch.int64), chosen).reshape(x.shape)
    return draw.choice(LAYOUTS)(x) if draw.random() < 0.4 and x.numel() else x


@cache
def _numbers(dtype: torch.dtype) -> list[float]:
    if dtype.is_floating_point:
        return [float(number) for number in SCALARS]
    bounds = torch.iinfo(dtype)
    return [number for number in SCALARS if isinstance(number, int) and bounds.min <= number <= bounds.max]


def _accepted(draw: random.Random, text: str, inputs: Mapping[str, torch.Tensor], scope: Mapping[str, Any]) -> str:
    """The call, or one of several results of it. Empty if it names a device, if eager PyTorch refuses it, if it draws
    random numbers, or if its result is another one each time."""
    if "device=" in text:
        return ""
    try:
        state = torch.get_rng_state()
        results = [eval(text, dict(scope), copy.deepcopy(dict(inputs))) for _ in range(2)]
        if not torch.equal(torch.get_rng_state(), state):
            return ""
        if isinstance(results[0], (tuple, list)):
            place = draw.randrange(len(results[0]))
            text, results = f"{text}[{place}]", [each[place] for each in results]
        first, second = results
        return text if torch.equal(first.nan_to_num(), second.nan_to_num()) else ""
    except _NO_CALL:
        return ""
