"""Measures how near a result is to a reference: correlation, differences, units in the last place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

_CONSTANT_RTOL = 1e-2  # about one bfloat16 step


def _comparable(tensor: torch.Tensor, golden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Both tensors as flat float64 copies; float64 holds the values of every type."""
    if tensor.shape != golden.shape:
        raise ValueError(f"shapes differ: got {tuple(tensor.shape)}, expected {tuple(golden.shape)}")
    flat = [torch.view_as_real(t) if t.is_complex() else t for t in (tensor.detach(), golden.detach())]
    values, expected = (t.to("cpu", torch.float64, copy=True).flatten() for t in flat)
    return values, expected


def calculate_pcc(tensor: torch.Tensor, golden_tensor: torch.Tensor) -> float:
    """Pearson correlation of the finite elements; 0 if NaNs or infinities are at different places.

    The correlation of constants is not defined. Here it is 1 if both are the same number within bfloat16's precision.
    Raises ValueError if the shapes differ.
    """
    values, golden = _comparable(tensor, golden_tensor)
    finite = golden.isfinite()
    if not finite.all():
        if not torch.equal(values[~finite].nan_to_num(nan=0.5), golden[~finite].nan_to_num(nan=0.5)):
            return 0.0
        values, golden = values[finite], golden[finite]
    if torch.equal(values, golden):
        return 1.0
    if not values.isfinite().all():
        return 0.0
    return _correlation(values, golden)


def _correlation(values: torch.Tensor, golden: torch.Tensor) -> float:
    scale = max(values.abs().max().item(), golden.abs().max().item())  # so that squares do not overflow
    a, b = values / scale, golden / scale
    a, b = a - a.mean(), b - b.mean()
    norm = float(a.norm() * b.norm())
    if norm < 1e-24:  # at least one of them is constant
        return float(torch.allclose(values, golden, rtol=_CONSTANT_RTOL, atol=0))
    return min(1.0, max(-1.0, torch.dot(a, b).item() / norm))


def calculate_atol(tensor: torch.Tensor, golden_tensor: torch.Tensor) -> float:
    """Largest absolute difference; NaN or infinity if these are at different places, or infinities differ in sign.

    Raises ValueError if the shapes differ.
    """
    values, golden = _comparable(tensor, golden_tensor)
    if not torch.equal(values.isnan(), golden.isnan()):
        return math.nan
    return _worst((values - golden).abs(), golden.isnan() | (values == golden))  # equal infinities give inf - inf


def _worst(errors: torch.Tensor, without: torch.Tensor) -> float:
    return errors.masked_fill(without, 0.0).max().item() if errors.numel() else 0.0


def calculate_rtol(tensor: torch.Tensor, golden_tensor: torch.Tensor) -> float:
    """Largest difference relative to the golden value; NaN if NaNs are at different places.

    Elements whose golden value is zero or infinite do not count; calculate_atol includes them. Raises ValueError if the
    shapes differ.
    """
    values, golden = _comparable(tensor, golden_tensor)
    if not torch.equal(values.isnan(), golden.isnan()):
        return math.nan
    return _worst((values - golden).abs() / golden.abs(), ~golden.isfinite() | (golden == 0))


_BITS = {
    torch.float32: torch.int32, torch.float64: torch.int64, torch.float16: torch.int16, torch.bfloat16: torch.int16,
}  # fmt: skip


def calculate_ulp(tensor: torch.Tensor, golden_tensor: torch.Tensor) -> float:
    """Largest distance in units in the last place: the number of steps between two numbers of the golden type.

    It is NaN if NaNs are at different places. For integers and booleans it is the difference itself. Raises ValueError
    if the shapes differ.
    """
    if golden_tensor.is_complex():
        tensor, golden_tensor = torch.view_as_real(tensor), torch.view_as_real(golden_tensor)
    if golden_tensor.dtype not in _BITS:
        return calculate_atol(tensor, golden_tensor)
    if tensor.shape != golden_tensor.shape:
        raise ValueError(f"shapes differ: got {tuple(tensor.shape)}, expected {tuple(golden_tensor.shape)}")
    if not torch.equal(tensor.isnan(), golden_tensor.isnan()):
        return math.nan
    steps = [_steps(t.detach(), golden_tensor.dtype) for t in (tensor, golden_tensor)]
    return _worst((steps[0] - steps[1]).abs(), golden_tensor.isnan())


def _steps(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The rank of each number among all numbers of its type. Zero has rank 0. Ranks are float64, exact up to 2**53."""
    bits = tensor.to(dtype).contiguous().view(_BITS[dtype])
    magnitude = bits & torch.iinfo(bits.dtype).max
    return torch.where(bits < 0, -magnitude.double(), magnitude.double())


def verify_against_golden(
    golden_tensors: Sequence[Any],
    calculated_tensors: Sequence[Any],
    assert_pcc: bool,
    assert_atol: bool,
    required_pcc: float = 0.99,
    required_atol: float | None = None,
    relative_atol: float | None = None,
) -> tuple[list[float], list[float], bool, bool, list[float]]:
    """Compares outputs one by one, prints a line for each, then asserts what was asked for.

    The bound on the difference is `required_atol`, or `relative_atol` times the largest golden value.
    Values that are not tensors must be equal. The correlation of a single element is not defined and passes.
    Returns PCCs, differences, whether all PCCs passed, whether all differences passed, and the bounds.
    """
    assert (required_atol is None) != (relative_atol is None), "Give either required_atol or relative_atol."
    assert len(golden_tensors) == len(calculated_tensors), (
        f"Number of outputs differs: got {len(calculated_tensors)}, expected {len(golden_tensors)}."
    )
    pccs: list[float] = []
    atols: list[float] = []
    bounds: list[float] = []
    lines: list[str] = []
    for i, (golden, value) in enumerate(zip(golden_tensors, calculated_tensors, strict=True)):
        if not isinstance(golden, torch.Tensor):
            assert golden == value, f"Output {i} differs: got {value!r}, expected {golden!r}."
            continue
        assert golden.shape == value.shape, (
            f"Shape of output {i} differs: got {tuple(value.shape)}, expected {tuple(golden.shape)}."
        )
        pccs.append(calculate_pcc(value, golden) if golden.numel() > 1 else 1.0)
        atols.append(calculate_atol(value, golden))
        bounds.append((relative_atol or 0.0) * _largest(golden) if required_atol is None else required_atol)
        lines.append(_line(i, "PCC", pccs[-1], ">=", required_pcc, assert_pcc))
        lines.append(_line(i, "ATOL", atols[-1], "<=", bounds[-1], assert_atol))
    print("\n".join(lines))
    passed_pcc = all(pcc >= required_pcc for pcc in pccs)
    passed_atol = all(atol <= bound for atol, bound in zip(atols, bounds, strict=True))
    failed = (assert_pcc and not passed_pcc) or (assert_atol and not passed_atol)
    assert not failed, "\n".join(["Outputs differ from the golden ones:", *lines])
    return pccs, atols, passed_pcc, passed_atol, bounds


def _largest(golden: torch.Tensor) -> float:
    finite = golden.detach()[golden.detach().isfinite()]
    return finite.abs().max().item() if finite.numel() else 0.0


def _line(index: int, name: str, value: float, relation: str, bound: float, asserted: bool) -> str:
    passed = value >= bound if relation == ">=" else value <= bound
    mark = "✅" if passed else "❌" if asserted else "❎"  # the last one: failed, but not asserted
    return f"{mark} output {index}: {name} {value:.6g}, required {relation} {bound:.6g}"


def random_inputs(
    shapes: Sequence[Sequence[int]],
    dtypes: torch.dtype | Sequence[torch.dtype],
    value_range: tuple[float, float] = (-0.5, 0.5),
    value_range_int: tuple[int, int] = (0, 1000),
) -> list[torch.Tensor]:
    """Makes one tensor per shape: floats in `value_range`, integers in `value_range_int` without its end, and booleans.

    All values are uniform. `dtypes` is one data type, or one for each shape; another number of them raises ValueError.
    """
    each = [dtypes] * len(shapes) if isinstance(dtypes, torch.dtype) else list(dtypes)
    if len(each) != len(shapes):
        raise ValueError(f"{len(shapes)} shapes but {len(each)} data types")
    return [
        _random_input(shape, dtype, value_range, value_range_int) for shape, dtype in zip(shapes, each, strict=True)
    ]


def _random_input(
    shape: Sequence[int], dtype: torch.dtype, floats: tuple[float, float], integers: tuple[int, int]
) -> torch.Tensor:
    if dtype == torch.bool:
        return torch.randint(0, 2, tuple(shape), dtype=dtype)
    if not dtype.is_floating_point:
        high = min(integers[1], torch.iinfo(dtype).max)
        return torch.randint(integers[0], high, tuple(shape), dtype=dtype)
    least, most = floats
    return torch.empty(tuple(shape), dtype=torch.float32).uniform_(least, most).to(dtype)
