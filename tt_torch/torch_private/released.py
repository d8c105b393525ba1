"""Parameters without values: their memory was given up, because a device has the weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from tt_torch.errors import ReleasedWeightError

_T: Any = torch.Tensor
# What can be asked of a released weight: all that needs no values.
_FORM = {
    *(getattr(_T, name).__get__ for name in ("shape", "dtype", "device", "layout", "ndim", "nbytes", "itemsize")),
    *(getattr(_T, name).__get__ for name in ("is_meta", "is_nested", "is_sparse", "is_quantized", "is_leaf")),
    *(getattr(_T, name).__get__ for name in ("grad", "grad_fn", "requires_grad")),
    *(getattr(_T, name).__set__ for name in ("grad", "requires_grad")),
    _T._version.__get__,  # 2.13.0: without it a call with released weights would be refused
    *(_T.size, _T.dim, _T.numel, _T.element_size, _T.stride, _T.storage_offset, _T.is_inference, _T.is_neg, _T.is_conj),
    *(_T.is_floating_point, _T.is_complex, _T.untyped_storage, _T.requires_grad_, _T.__hash__),
}


class ReleasedWeight(torch.nn.Parameter):
    """A parameter that has a form and no values. Whatever would read or write values raises ReleasedWeightError.

    A parameter changes its class in place, so that modules, optimizers and compiled programs keep the same object.
    """

    tt_released: str  # the name of the weight
    tt_source: torch.Tensor | None = None  # a tensor of the host that still has the values

    @classmethod
    def __torch_function__(
        cls,
        function: Callable[..., Any],
        types: Iterable[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = dict(kwargs or {})
        if function in _FORM:
            return super().__torch_function__(function, types, args, given)  # type: ignore[no-untyped-call]
        name = getattr(function, "__name__", str(function))
        if name in ("__get__", "__set__"):  # of an attribute
            name = getattr(function, "__self__", function).__name__
        require_values(name, [*args, *given.values()])


def release_memory(parameter: torch.Tensor, name: str) -> None:
    """Makes a parameter of floating-point numbers, or a part of one, a ReleasedWeight with this name in errors.

    Code that PyTorch does not show to `__torch_function__`, such as `torch.tensor(parameter)`, reads NaN.
    """
    parameter.data = torch.full((), torch.nan, dtype=parameter.dtype, device=parameter.device).expand(parameter.shape)
    parameter.tt_released = name  # type: ignore[attr-defined]
    parameter.__class__ = ReleasedWeight


def defer_memory(part: torch.Tensor, name: str, source: torch.Tensor) -> None:
    """Makes a part of a weight a ReleasedWeight. A device gets the values from `source` when it needs them."""
    release_memory(part, name)
    part.tt_source = source  # type: ignore[attr-defined]


# 2.13.0: DTensor lets no `__torch_function__` of its parts run, so their values would be NaN without a word.
def require_values(op: object, operands: Iterable[object]) -> None:
    """Raises ReleasedWeightError if a released weight, or a part of one, is among the operands or in their lists."""
    for x in operands:
        if isinstance(x, ReleasedWeight):
            why = "was released" if x.tt_source is None else "is in a file that only programs read"
            raise ReleasedWeightError(f"{op} needs the values of {x.tt_released}, which {why}")
        if isinstance(x, (list, tuple)):
            require_values(op, x)
