"""Calls the user's kernel for a call of the runtime, and checks what it does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch

from tt_torch.errors import BinaryFormatError, KernelError
from tt_torch.extending.arguments import Call, decoded
from tt_torch.runtime import buffers
from tt_torch.torch_private.tensors import without_modes

Buffer: TypeAlias = buffers.Buffer


def run_kernel(
    function: Callable[..., Any],
    op: str,
    arguments: str,
    location: str,
    inputs: Sequence[Buffer],
    outputs: Sequence[Buffer],
) -> None:
    """Fills `outputs` with the results of the function.

    The function gets copies of the inputs, in the dtypes of the user's program. Raises KernelError, which names the op
    and the line, if the function raises an exception, writes to its inputs, or returns something else than the op does.
    """
    call = decoded(arguments)
    if len(call.tensors()) != len(inputs) or len(call.results) != len(outputs):
        raise BinaryFormatError(f"{op} at {location}: its arguments do not fit its operands and results")
    for (_, _, wire), dtype in zip([*inputs, *outputs], [t.dtype for t in call.tensors()] + call.results, strict=True):
        if not buffers.holds(wire, dtype):
            raise BinaryFormatError(f"{op} at {location}: its arguments say {dtype}, and the file has {wire.name}")
    who = f"{op} at {location}"
    with without_modes(), torch.no_grad():
        given = [buffers.read(x).to(place.dtype) for x, place in zip(inputs, call.tensors(), strict=True)]
        results = _called(function, who, call, given)
        _require_unchanged(who, inputs, given)
        forms = [(tuple(shape), dtype) for (_, shape, _), dtype in zip(outputs, call.results, strict=True)]
        for result, buffer in zip(_checked(who, results, forms), outputs, strict=True):
            buffers.write(result, buffer)


def _called(function: Callable[..., Any], who: str, call: Call, given: Sequence[torch.Tensor]) -> Any:
    positional, keywords = call.filled(given)
    try:
        return function(*positional, **keywords)
    except Exception as error:
        raise KernelError(f"{who} failed: {type(error).__name__}: {error}") from error


def _require_unchanged(who: str, inputs: Sequence[Buffer], given: Sequence[torch.Tensor]) -> None:
    for number, (buffer, tensor) in enumerate(zip(inputs, given, strict=True)):
        before = buffers.read(buffer).to(tensor.dtype)
        if tensor.shape != before.shape or not torch.equal(_bytes(tensor), _bytes(before)):
            raise KernelError(f"{who} failed: its kernel wrote to its tensor {number}; it must return new tensors")


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def _checked(who: str, results: Any, forms: Sequence[tuple[tuple[int, ...], torch.dtype]]) -> list[torch.Tensor]:
    """The results as a list. Raises KernelError if they do not have these shapes and dtypes."""
    found = list(results) if isinstance(results, (list, tuple)) else [results]
    got = [_form(value) for value in found]
    expected = [f"{dtype} of shape {list(shape)}" for shape, dtype in forms]
    if got != expected:
        raise KernelError(f"{who} failed: its kernel returned {', '.join(got)}, expected {', '.join(expected)}")
    return found


def _form(value: object) -> str:
    if not isinstance(value, torch.Tensor):
        return type(value).__name__
    plain = value.layout == torch.strided and value.device.type == "cpu"
    return f"{value.dtype} of shape {list(value.shape)}{'' if plain else f' ({value.layout} on {value.device})'}"
