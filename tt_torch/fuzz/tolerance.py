"""How far a result may be from eager's: as far as eager itself moves when it rounds otherwise.

A fixed tolerance is too strict for the difference of nearly equal numbers, and too lax for everything else. So a
program runs in eager several times more, with a relative error of a few units in the last place added to each result
of each op that computes. An element may differ by a multiple of its movement in these runs. A comparison or an integer
that changes in them says nothing, and is not compared.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from tt_torch.dynamo import facts
from tt_torch.dynamo.decompositions.registry import NARROW
from tt_torch.dynamo.facts import Fact
from tt_torch.torch_private.ops import OpOverload, schema
from tt_torch.torch_private.tensors import TorchDispatchMode
from tt_torch.torch_private.trees import tree_leaves, tree_map_only

RUNS = 4
# Runs before a difference is reported. Four runs do not show how far a value moves if it has no correct digit. An
# example is a second step of training, if the first step moved operands by a period of their tangent.
DOUBTED = 64
# Units in the last place of one result: our kernels and eager's may use different algorithms. The kernels of float16
# and bfloat16 compute in float32 and round once.
_ROUNDINGS = {torch.float16: 1, torch.bfloat16: 1, torch.float32: 4, torch.float64: 4}
_MOVEMENTS = 16  # an element may differ by this many times its largest movement: few runs do not show the worst
_LEAST = 4 * 2.0**-149  # a few units in the last place of denormal numbers of float32
_RTOL = {torch.float32: 1e-5, torch.float64: 1e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}
# Ops that lose digits by themselves: the variance of equal numbers can be 3e-05, because their mean is rounded. The
# same is true of a norm, which subtracts a mean. The sinc of a large number is the sine of a rounded product with pi.
# The cross product of equal vectors is the rounding error of one product if the compiler of the kernel joined the other
# product with the subtraction. `gelu` with tanh adds 1 to nearly -1, and `digamma` has a zero near 1.4616, as `logit`
# has near a half. A Fourier transform adds products, and some of them are the negatives of others. If an op adds a
# product, as with `alpha`, one kernel rounds the product, and another one does not. A point of a grid becomes a place
# among the pixels in two steps, of which some kernels round only the last one.
_CANCEL = {
    getattr(torch.ops.aten, name)
    for name in (
        "std std_mean var var_mean sinc gelu digamma logit addcmul addcdiv lerp linalg_cross _fft_r2c _fft_c2c "
        "_fft_c2r grid_sampler_2d grid_sampler_3d native_layer_norm native_group_norm native_batch_norm "
        "_native_batch_norm_legit _native_batch_norm_legit_functional"
    ).split()
}


def _by_degree(args: Sequence[Any]) -> tuple[torch.Tensor, torch.dtype]:
    return torch.as_tensor(args[1]).double().nan_to_num(0.0, 0.0, 0.0).abs().clamp(min=1), torch.float32


# Ops that add terms which may cancel: the size of these terms, and the dtype in which eager PyTorch rounds them, unless
# it is that of the result. For narrow floats, eager's `log_softmax` rounds the logarithm of a sum of 1.0001 to zero.
# Half of 1 + erf(x / sqrt(2)), in float32, is a factor of its `gelu`, so the gradient at -6.5 is zero. Its Chebyshev
# polynomials of a degree above 6 are cosines or sines of a multiple of an arc cosine, which is rounded first.
_WITH_TERMS: dict[Any, Callable[[Sequence[Any]], tuple[torch.Tensor | float, torch.dtype | None]]] = {
    torch.ops.aten._log_softmax: lambda args: (1.0, None),
    torch.ops.aten.gelu: lambda args: (args[0].clamp(max=0), torch.float32),
    torch.ops.aten.gelu_backward: lambda args: (args[0], torch.float32),
    **{
        getattr(torch.ops.aten, f"special_{shifted}chebyshev_polynomial_{kind}"): _by_degree
        for shifted in ("", "shifted_")
        for kind in "tuvw"
    },
}
# Ops whose result jumps with a Python number. The device rounds the number to its dtype: bfloat16 has no 0.001.
_BY_NUMBER = {
    getattr(torch.ops.aten, name)
    for name in "fmod fmod_ remainder remainder_ floor_divide floor_divide_ div div_ lt le gt ge".split()
}
_SUMS = {getattr(torch.ops.aten, name) for name in ("add", "add_", "sub", "sub_")}
# Ops that add many numbers to one, and round after each of them.
_ACCUMULATE = {
    getattr(torch.ops.aten, name)
    for name in (
        "index_put _index_put_impl index_add scatter_add scatter_reduce embedding_dense_backward col2im "
        "_adaptive_avg_pool3d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward "
        "avg_pool2d_backward avg_pool3d_backward"
    ).split()
}
_TRANSFORMS = {torch.ops.aten._fft_c2c, torch.ops.aten._fft_c2r, torch.ops.aten._fft_r2c}
# Ops that choose between 0.0 and -0.0, which are equal. The vector loop of a kernel and the loop over the remaining
# elements choose differently. A kernel may also choose differently for one element and for several. A matrix product of
# narrow floats begins its sums with 0.0, but a product of float32 does not always. In the same way, the gradient of
# `gelu` below -13 is a denormal number or zero. BLAS may add nothing to a quotient, so its -0.0 / -1.0 is -0.0 or 0.0.
_EITHER_ZERO = _TRANSFORMS | {
    getattr(torch.ops.aten, name)
    for name in (
        "max min amax amin aminmax cummax cummin maximum minimum fmax fmin clamp clamp_ clamp_max clamp_max_ clamp_min "
        "clamp_min_ sort topk kthvalue median nanmedian index_reduce index_reduce_ scatter_reduce scatter_reduce_ "
        "max_pool2d_with_indices max_pool2d_with_indices_backward max_pool3d_with_indices adaptive_max_pool2d "
        "max_pool3d_with_indices_backward adaptive_max_pool2d_backward adaptive_max_pool3d fractional_max_pool2d "
        "adaptive_max_pool3d_backward fractional_max_pool2d_backward fractional_max_pool3d "
        "fractional_max_pool3d_backward max_unpool2d max_unpool3d cumsum cumsum_ logcumsumexp _logcumsumexp _softmax "
        "_softmax_backward_data _log_softmax _log_softmax_backward_data binary_cross_entropy gelu gelu_ gelu_backward "
        "binary_cross_entropy_backward binary_cross_entropy_with_logits softshrink softshrink_backward linalg_cross "
        "lerp lerp_ mm addmm bmm baddbmm addbmm linalg_solve_triangular triangular_solve cholesky_solve "
        "cholesky_inverse cholesky linalg_cholesky_ex linalg_qr geqrf"
    ).split()
}
# DTensor computes these with the parts of a sum over chips, and adds the results: 0 * (2 - 3) is 0 * 2 + 0 * -3.
_OF_PARTS = {getattr(torch.ops.aten, name) for name in "mul mul_ div div_ neg neg_".split()}
_EXACT = Fact.KEEPS | Fact.FILLS | Fact.ALLOCATES | Fact.VIEW


class OtherRoundings(TorchDispatchMode):
    """Adds errors to the floats that ops compute. Results that only move numbers, and views, stay as they are, unless
    the device has another dtype for them: float32 for float16 and float64, and bfloat16 if `bf16`.

    Without a seed, the only errors are those of the conversion to the dtype of the device, so that its side of a jump
    is seen: `log1p` of -1.003 is NaN, and -inf in bfloat16, which has -1 for this number. Without a seed, numbers also
    count as equal if roundings could make them equal, because random errors seldom show that.

    With `in_float16`, the errors are as large as those of float16, but the numbers keep the range of their dtype. With
    `on_chips`, zeros are those of DTensors.
    """

    def __init__(self, seed: int | None, bf16: bool, in_float16: bool = False, on_chips: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._converted = (torch.float16, torch.float64, *((torch.float32,) if bf16 else ()))
        self._device = torch.bfloat16 if bf16 else torch.float32
        self._in_float16 = in_float16
        self._either_zero = _EITHER_ZERO | _OF_PARTS if on_chips else _EITHER_ZERO
        self._generator = None if seed is None else torch.Generator().manual_seed(seed)
        self._rounds = seed is not None and seed >= RUNS and seed % 4 == 0

    def converted(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The inputs of a program as the device takes them; strides and shared memory stay."""
        own = copy.deepcopy(list(inputs))
        for x in own:
            memory(x).copy_(self._moved(memory(x), exact=True))
        return own

    def __torch_dispatch__(
        self, op: OpOverload, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if self._generator is None and op.overloadpacket in _NEARLY:
            return _NEARLY[op.overloadpacket](*args, **kwargs, apart=2 * _units(self._device))
        if self._generator is None and op.overloadpacket in _BY_NUMBER:
            args = [torch.tensor(x, dtype=self._device).item() if isinstance(x, float) else x for x in args]
        cancels = op.overloadpacket in _SUMS and kwargs.get("alpha", 1) != 1 and args[0].is_floating_point()
        size = args[0].abs() if cancels and self._generator is not None else None
        result = _product(op, self._operands(op, args, kwargs), kwargs)
        if size is not None and result.is_floating_point():
            self._cancel(result, size)
        # `log_softmax` of integers without elements has integers, and is no error.
        if self._generator is not None and op.overloadpacket in _WITH_TERMS and _is_float(result):
            result = self._beside_terms(result, *_WITH_TERMS[op.overloadpacket](args))
        known, aliases = facts.of(op), [r.alias_info for r in schema(op).returns if r.alias_info]
        if known & Fact.VIEW or any(not alias.is_write for alias in aliases):
            return result
        if not aliases:
            return tree_map_only(torch.Tensor, lambda x: self._changed(x, op, bool(known & _EXACT)), result)
        known |= facts.of(getattr(torch.ops.aten, op.overloadpacket.__name__.rstrip("_"), op))  # `add_` is as `add`
        tree_map_only(torch.Tensor, lambda x: self._rewrite(x, op, bool(known & _EXACT)), result)
        return result

    def _operands(self, op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sequence[Any]:
        """The operands of an op. If it makes float32 of integers only, the integers are rounded as on the device:
        bfloat16 has no 32767. The operands of ops that lose digits get errors here."""
        if _loses_digits(op, args, kwargs) and _gives_floats(op, args, kwargs):
            moved = _float_arguments if op.overloadpacket in _CANCEL else _floats_among
            return _keep_written(op, args, moved(lambda x: self._moved(x, exact=False), args))
        tensors = [x for x in tree_leaves([args, kwargs]) if isinstance(x, torch.Tensor)]
        if self._device is not torch.bfloat16 or any(map(_is_float, tensors)):
            return args
        if schema(op).is_mutable or _dtypes(op(*args, **kwargs)) != {torch.float32}:
            return args
        return tree_map_only(torch.Tensor, lambda x: x.to(self._device).to(torch.float32), args)

    def _rewrite(self, x: torch.Tensor, op: OpOverload, exact: bool) -> None:
        """Changes a result in place. Elements that share memory stay as they are: PyTorch refuses to write them."""
        if (changed := self._changed(x, op, exact)) is not x and 0 not in x.stride():
            x.copy_(changed)

    def _changed(self, x: torch.Tensor, op: OpOverload, exact: bool) -> torch.Tensor:
        if x.is_complex():
            parts = torch.view_as_real(x.resolve_conj()).clone()
            return torch.view_as_complex(self._changed(parts, op, exact).contiguous())
        moved = self._moved(x, exact)
        if op.overloadpacket in _TRANSFORMS:
            moved = self._cancelled(moved)
        if not (x.dtype.is_floating_point and op.overloadpacket in self._either_zero):
            return moved
        # Without a seed, all zeros change. With a seed, only some change, because a second such op changes them back.
        changed = moved == 0
        if self._generator is not None:
            changed &= torch.rand(x.shape, generator=self._generator) < 0.5
        return torch.where(changed, -moved, moved)

    def _cancel(self, x: torch.Tensor, size: torch.Tensor) -> None:
        """Sets some results to zero: a sum that is as small as two rounding errors of its first term, and has a rounded
        product as its other one. In bfloat16, 0.162 - 0.1 * 1.61 may be zero."""
        unit = _units(max(self._device, x.dtype, key=lambda dtype: torch.finfo(dtype).eps))
        small = x.abs() <= 2 * unit * size
        x.masked_fill_(small & (torch.rand(x.shape, generator=self._generator) < 0.5), 0.0)

    def _beside_terms(self, x: torch.Tensor, size: torch.Tensor | float, dtype: torch.dtype | None) -> torch.Tensor:
        """A sum of terms of this size. Some of the results that are as small as a rounding error of the terms become
        zero, and so become equal to others."""
        unit = torch.as_tensor(size) * _units(self._device if self._device is torch.bfloat16 else dtype or x.dtype)
        error, zero = (torch.rand(x.shape, generator=self._generator) for _ in range(2))
        return torch.where((x.abs() <= unit.abs()) & (zero < 0.5), 0.0, x + (error * 2 - 1) * unit).to(x.dtype)

    def _cancelled(self, x: torch.Tensor) -> torch.Tensor:
        """Numbers as small as a rounding error of the largest one. None, half or all of them become zero, and the
        others another such number, because a transform in other steps may cancel exactly, or not."""
        if self._generator is None or x.numel() == 0:
            return x
        unit = _units(x.dtype) * x.abs().nan_to_num(0.0, 0.0).max()
        zero, error = (torch.rand(x.shape, generator=self._generator) for _ in range(2))
        share = torch.randint(3, (), generator=self._generator) / 2
        rest = torch.where(zero < share, 0.0, x + (error * 2 - 1) * unit)
        return torch.where(x.abs() <= unit, rest, x).to(x.dtype)

    def _moved(self, value: torch.Tensor, exact: bool) -> torch.Tensor:
        if value.is_complex():
            return torch.view_as_complex(self._moved(torch.view_as_real(value.resolve_conj()), exact).contiguous())
        if not value.dtype.is_floating_point or (exact and value.dtype not in self._converted):
            return value
        if self._generator is None:
            return value.to(self._device).to(value.dtype)
        coarser = max(self._device, value.dtype, key=lambda dtype: torch.finfo(dtype).eps)
        if self._in_float16:
            return self._with_errors(value.to(torch.float64), _units(torch.float16)).to(value.dtype)
        return self._with_errors(value.to(torch.float64), _units(coarser)).to(coarser).to(value.dtype)

    def _with_errors(self, value: torch.Tensor, unit: float) -> torch.Tensor:
        """The numbers with relative errors of at most `unit`. After a first difference, every fourth run
        rounds the numbers to fewer digits, so nearly equal ones become equal: then a norm of them is zero."""
        if not self._rounds:
            return value * (1 + (torch.rand(value.shape, generator=self._generator) * 2 - 1) * unit)
        mantissa, exponent = torch.frexp(value)
        shift = torch.rand((), generator=self._generator) - 0.5
        rounded = ((mantissa / unit + shift).round() - shift) * unit * torch.exp2(exponent.double())
        return torch.where(value == 0, value, rounded)


def _loses_digits(op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether the operands of an op do not decide all digits of its result."""
    packet = getattr(torch.ops.aten, op.overloadpacket.__name__.rstrip("_"), op.overloadpacket)  # `add_` is as `add`
    if packet not in _ACCUMULATE:
        # Rounding to decimals multiplies by a power of ten first.
        return packet in _CANCEL or kwargs.get("alpha", 1) != 1 or kwargs.get("decimals", 0) != 0
    given = dict(zip((a.name for a in schema(op).arguments), args, strict=False)) | dict(kwargs)
    adds = given.get("accumulate", True) and given.get("reduce", "sum") in ("sum", "mean", "prod")
    return adds and not schema(op).is_mutable


def _gives_floats(op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether an op computes floats. An op in place is not run for that: it computes floats if it writes to floats."""
    result = args[0] if schema(op).is_mutable else op(*args, **kwargs)
    return any(x.is_floating_point or x.is_complex for x in _dtypes(result))


def _product(op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """The result of an op. A product of narrow floats is rounded once, as by the device. Eager PyTorch rounds after
    each factor, and the digits that it loses among the denormal numbers do not come back."""
    if op.overloadpacket is not torch.ops.aten.prod or (kwargs.get("dtype") or args[0].dtype) not in NARROW:
        return op(*args, **kwargs)
    dtype = kwargs.get("dtype") or args[0].dtype
    return op(args[0].to(dtype).float(), *args[1:]).to(dtype)


def _keep_written(op: OpOverload, args: Sequence[Any], moved: Sequence[Any]) -> Sequence[Any]:
    """The moved arguments, except that arguments to which the op writes stay as they are."""
    written = [bool(a.alias_info and a.alias_info.is_write) for a in schema(op).arguments]
    return [old if writes else new for old, new, writes in zip(args, moved, written, strict=False)]


def _float_arguments(change: Callable[[torch.Tensor], torch.Tensor], args: Sequence[Any]) -> Sequence[Any]:
    """The arguments with all tensors changed. Tensors of integers become floats first."""
    return tree_map_only(torch.Tensor, lambda x: change(x if _is_float(x) else x.float()), args)


def _floats_among(change: Callable[[torch.Tensor], torch.Tensor], args: Sequence[Any]) -> Sequence[Any]:
    """The arguments with tensors of floats changed; others are indices."""
    return tree_map_only(torch.Tensor, lambda x: change(x) if _is_float(x) else x, args)


def _is_float(x: torch.Tensor) -> bool:
    return x.is_floating_point() or x.is_complex()


def _dtypes(result: Any) -> set[torch.dtype]:
    return {x.dtype for x in tree_leaves(result) if isinstance(x, torch.Tensor)}


def _units(dtype: torch.dtype) -> float:
    """The relative error of one result with other roundings."""
    return _ROUNDINGS[dtype] * torch.finfo(dtype).eps


def _near(x: Any, y: Any, apart: float) -> torch.Tensor:
    """Which numbers could be equal with other roundings, that is, have a relative distance of at most `apart`."""
    x, y = torch.as_tensor(x), torch.as_tensor(y)
    if not (x.dtype.is_floating_point or y.dtype.is_floating_point):
        return x == y
    distance, size = (x.double() - y.double()).abs(), torch.maximum(x.double().abs(), y.double().abs())
    return (x == y) | (size.isfinite() & (distance <= apart * size))


def _near_any(x: Any, y: Any, *, assume_unique: bool = False, invert: bool = False, apart: float) -> torch.Tensor:
    """Whether each number of `x` is near one of `y`. Only its neighbours in the sorted `y` can be near it."""
    x, y = torch.as_tensor(x), torch.as_tensor(y).reshape(-1)
    if not (x.dtype.is_floating_point or y.dtype.is_floating_point):
        return torch.isin(x, y, invert=invert)
    y = y[y == y].sort()[0]  # NaN is near no number, and `searchsorted` does not order it
    if not len(y):
        return torch.full(x.shape, invert)
    place = torch.searchsorted(y.double(), x.double().contiguous())
    neighbours = [y[(place + step).clamp(0, len(y) - 1)] for step in (-1, 0)]
    near = _near(x, neighbours[0], apart) | _near(x, neighbours[1], apart)
    return near.contiguous() != invert


_NEARLY: Mapping[Any, Callable[..., torch.Tensor]] = {
    torch.ops.aten.eq: _near,
    torch.ops.aten.ne: lambda x, y, apart: ~_near(x, y, apart),
    torch.ops.aten.isin: _near_any,
}


def memory(x: torch.Tensor) -> torch.Tensor:
    """All elements of the memory that `x` is a view of."""
    return x.as_strided((x.untyped_storage().nbytes() // x.itemsize,), (1,), 0)


def difference(got: torch.Tensor, expected: torch.Tensor, others: Sequence[torch.Tensor]) -> str:
    """Says where `got` is not what eager computes, in one line; an empty string if it is. `others` are eager's results
    with other roundings. After many of them, a number that is much larger than most of theirs has no correct digit: it
    is the inverse of what eager's roundings leave of a sum that cancels."""
    if any(other.shape != expected.shape for other in others):
        return ""  # the number of elements depends on a comparison that other roundings change
    for name in ("dtype", "shape"):
        if getattr(got, name) != getattr(expected, name):
            return f"{name} {getattr(got, name)}, expected {getattr(expected, name)}"
    moved, known = _movement(expected, others)
    a, b = got.detach().double(), expected.detach().double()
    far = (a != b) & ~(a.isnan() & b.isnan()) & ~((a - b).abs() <= _allowed(expected, moved))
    far &= ~(
        a.isinf() & (moved > 0) & (_MOVEMENTS * moved >= b.abs())
    )  # a quotient whose divisor other roundings may make zero
    other_zero = (a == 0) & (b == 0) & (a.signbit() != b.signbit()) & _same_zeros(b, others)
    known &= ~(b.isfinite() & (b.abs() > torch.finfo(torch.float32).max))  # float64 is computed in float32
    if len(others) > DOUBTED:
        known &= ~_is_accidental(b, others)
    wrong = known & (far | other_zero)
    if not wrong.any():
        return ""
    place = wrong.nonzero()[0].tolist()
    at = f" at {place}" if place else ""
    return f"{got[tuple(place)].item()}{at}, expected {expected[tuple(place)].item()} ({int(wrong.sum())} wrong)"


def _is_accidental(expected: torch.Tensor, others: Sequence[torch.Tensor]) -> torch.Tensor:
    """Which numbers are much larger than with most of the other roundings."""
    return torch.stack([other.double().abs() for other in others]).median(0).values < expected.abs() / 8


def _same_zeros(expected: torch.Tensor, others: Sequence[torch.Tensor]) -> torch.Tensor:
    """Which elements are a zero of the same sign with other roundings."""
    same = [(other == 0) & (other.signbit() == expected.signbit()) for other in others]
    return torch.stack([torch.ones_like(expected, dtype=torch.bool), *same]).all(0)


def _movement(expected: torch.Tensor, others: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """How far each element moves with other roundings, and which elements are to be compared."""
    base = expected.detach().double()
    moved = torch.zeros_like(base)
    known = torch.ones_like(base, dtype=torch.bool)
    for other in others:
        now = other.detach().double()
        known &= (now.isfinite() == base.isfinite()) & (base.isfinite() | (now == base) | (now.isnan() & base.isnan()))
        moved = torch.maximum(moved, (now - base).abs().nan_to_num(0.0, 0.0, 0.0))
    return moved, known if expected.dtype.is_floating_point else known & (moved == 0)


def _allowed(expected: torch.Tensor, moved: torch.Tensor) -> torch.Tensor:
    """The largest difference that is allowed for each element."""
    if not expected.dtype.is_floating_point:
        return torch.zeros_like(moved)
    base = expected.detach().double()
    largest = base[base.isfinite()].abs().max() if base.isfinite().any() else torch.zeros(())
    rtol = _RTOL[expected.dtype]
    return _LEAST + _MOVEMENTS * moved + rtol * base.abs().nan_to_num(0.0, 0.0, 0.0) + rtol * 1e-2 * largest
