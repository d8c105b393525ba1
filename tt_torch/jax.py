"""JAX functions on the device. This needs JAX: pip install 'tt-torch[jax]'."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tt_torch.config import CompilerConfig
from tt_torch.driver.devices import Device
from tt_torch.driver.package.loading import LoadedModel
from tt_torch.driver.stablehlo import compile_stablehlo, in_a_list
from tt_torch.errors import ArgumentError
from tt_torch.extras import require

__all__ = ["CompiledFunction", "compile"]


class CompiledFunction:
    """A JAX function, compiled for arguments of given shapes and dtypes.

    It takes and returns what the function does: arrays of JAX in its containers. Arguments may be arrays of NumPy and
    numbers, too. `model` is the compiled program, which takes the leaves of the arguments as PyTorch's tensors, in the
    order of JAX. It can be saved, and has the `binary`.
    """

    def __init__(self, model: LoadedModel, lowered: Any) -> None:
        import jax

        self.model, self._form = model, lowered.in_tree
        self._dtypes = [leaf.dtype for leaf in jax.tree_util.tree_leaves(lowered.args_info)]
        results, self._result = jax.tree_util.tree_flatten(lowered.out_info)
        self._keys = [_kind_of_key(leaf.dtype) for leaf in results]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raises ArgumentError for other containers, InputShapeError for other shapes, and InputDtypeError for other
        dtypes."""
        import jax

        leaves, form = jax.tree_util.tree_flatten((args, kwargs))
        if form != self._form:
            raise ArgumentError(f"the arguments have the form {form}, but the function was compiled for {self._form}")
        results = in_a_list(self.model(*map(_tensor, leaves, self._dtypes)))
        return jax.tree_util.tree_unflatten(self._result, map(_array, results, self._keys))


def compile(
    function: Callable[..., Any],
    *args: Any,
    config: CompilerConfig | None = None,
    device: Device | None = None,
    **kwargs: Any,
) -> CompiledFunction:
    """Compiles a JAX function for arguments like `args` and `kwargs`, which may be `jax.ShapeDtypeStruct`s.

    The function may be jitted, and it may be a gradient: `compile(jax.grad(loss), params, x)`. Python numbers among the
    arguments are inputs of the program. JAX lowers the function for a CPU, and `tt_torch.compile_stablehlo` compiles
    the result, and raises its errors. `device` is None for the default device. Environment variables override `config`.
    Raises ExtraMissingError if JAX is not installed.
    """
    require("jax")
    import jax

    # The program of a jitted function would lack the arguments that the function does not use.
    jitted = jax.jit(lambda *args, **kwargs: function(*args, **kwargs), keep_unused=True)
    lowered = jitted.trace(*args, **kwargs).lower(lowering_platforms=("cpu",))
    return CompiledFunction(compile_stablehlo(lowered.compiler_ir("stablehlo"), config, device=device), lowered)


def _tensor(leaf: Any, dtype: Any) -> torch.Tensor:
    """A leaf of the arguments as a tensor. It is in the same memory if it is an array of JAX on one device."""
    import jax

    if not isinstance(leaf, jax.Array):
        leaf = jax.numpy.asarray(leaf, dtype)
    if len(leaf.devices()) > 1:
        leaf = jax.device_put(leaf, next(iter(leaf.devices())))
    return torch.utils.dlpack.from_dlpack(jax.random.key_data(leaf) if _kind_of_key(leaf.dtype) else leaf)


def _array(x: torch.Tensor, kind: str) -> Any:
    import jax

    array = jax.dlpack.from_dlpack(x)
    return jax.random.wrap_key_data(array, impl=kind) if kind else array


def _kind_of_key(dtype: Any) -> str:
    """The kind of random keys, which JAX passes to programs as plain integers; "" for arrays of numbers."""
    import jax

    return dtype._impl.name if jax.numpy.issubdtype(dtype, jax.dtypes.prng_key) else ""
