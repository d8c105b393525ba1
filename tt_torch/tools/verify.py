"""Compiling a module and comparing it with plain PyTorch, or with ONNX Runtime, in one call."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeGuard

import torch

from tt_torch.accuracy import calculate_atol, calculate_pcc, random_inputs, verify_against_golden
from tt_torch.config import BackendOptions, CompilerConfig
from tt_torch.driver.backend import backend
from tt_torch.driver.devices import Device
from tt_torch.dynamo.types import Function, Result
from tt_torch.testing.parallel import on_each_device
from tt_torch.torch_private.trees import tree_leaves

if TYPE_CHECKING:
    import onnx

__all__ = [
    "calculate_atol",
    "calculate_pcc",
    "compile_model",
    "verify_against_golden",
    "verify_module",
    "verify_torch_module_async",
]

Verified = tuple[list[float], list[float], bool, bool, list[float]]  # as verify_against_golden returns it


def compile_model(
    mod: torch.nn.Module | Function,
    compiler_config: CompilerConfig | None = None,
    device: Device | None = None,
    async_mode: bool = False,
) -> Function:
    """The module compiled for `device` (None: the default one), one program per input shape."""
    config = compiler_config or CompilerConfig()
    options = BackendOptions(compiler_config=config, devices=[device], async_mode=async_mode)
    compiled: Function = torch.compile(mod, backend=backend, dynamic=False, options=options)  # type: ignore[call-overload]
    return compiled


def verify_module(
    mod: torch.nn.Module | Function | onnx.ModelProto,
    inputs: Sequence[torch.Tensor] | None = None,
    input_shapes: Sequence[Sequence[int]] | None = None,
    input_data_types: torch.dtype | Sequence[torch.dtype] | None = None,
    required_pcc: float = 0.99,
    required_atol: float = 0.01,
    input_range: tuple[float, float] = (-0.5, 0.5),
    input_range_int: tuple[int, int] = (0, 1000),
    compiler_config: CompilerConfig | None = None,
    do_assert: bool = True,
    device: Device | None = None,
) -> Verified:
    """Compiles a module, runs it on given or random inputs and compares with plain PyTorch.

    Random floats are uniform in `input_range`, random integers in `input_range_int`; without `input_data_types`, inputs
    are float32. An ONNX model is compared with ONNX Runtime. It has data types and shapes for its inputs; if dimensions
    of these are open, give `inputs`.
    Returns what `verify_against_golden` returns; raises AssertionError for a difference if `do_assert`.
    """
    if is_onnx(mod):
        assert input_shapes is None, "An ONNX model has its own input shapes: leave out input_shapes."
        golden, calculated = _run_onnx(
            mod, inputs, input_data_types, (input_range, input_range_int), compiler_config, device
        )
    else:
        given = _inputs(inputs, input_shapes, input_data_types, input_range, input_range_int)
        golden, calculated = _run_torch(mod, given, compiler_config, device)
    expected, got = tree_leaves(golden), tree_leaves(calculated)
    return verify_against_golden(expected, got, do_assert, do_assert, required_pcc, required_atol)


def verify_torch_module_async(
    mod: torch.nn.Module | Function,
    inputs: Sequence[torch.Tensor] | None = None,
    input_shapes: Sequence[Sequence[int]] | None = None,
    input_data_types: torch.dtype | Sequence[torch.dtype] | None = None,
    required_pcc: float = 0.99,
    required_atol: float = 0.01,
    input_range: tuple[float, float] = (-0.5, 0.5),
    input_range_int: tuple[int, int] = (0, 1000),
    compiler_config: CompilerConfig | None = None,
    do_assert: bool = True,
) -> list[Verified]:
    """Like `verify_module`, on all chips at the same time: one asynchronous call on each. Returns an entry per chip."""
    given = _inputs(inputs, input_shapes, input_data_types, input_range, input_range_int)

    def start(chip: Device) -> Result:
        return compile_model(mod, compiler_config, chip, async_mode=True)(*[value.clone() for value in given])

    with torch.no_grad():
        expected = tree_leaves(mod(*[value.clone() for value in given]))
        results = map(tree_leaves, on_each_device(start, (compiler_config or CompilerConfig()).with_env()))
    return [verify_against_golden(expected, r, do_assert, do_assert, required_pcc, required_atol) for r in results]


def _inputs(
    inputs: Sequence[torch.Tensor] | None,
    shapes: Sequence[Sequence[int]] | None,
    dtypes: torch.dtype | Sequence[torch.dtype] | None,
    floats: tuple[float, float],
    integers: tuple[int, int],
) -> Sequence[torch.Tensor]:
    """The given inputs, or random ones of the given shapes, with floats and integers of these ranges."""
    assert (inputs is None) != (shapes is None), "Give either inputs or input_shapes."
    return random_inputs(shapes or (), dtypes or torch.float32, floats, integers) if inputs is None else inputs


def is_onnx(mod: object) -> TypeGuard[onnx.ModelProto]:
    """Whether `mod` is an ONNX model. Only the package `onnx` makes such objects, so it is not imported here."""
    package = sys.modules.get("onnx")
    return package is not None and isinstance(mod, package.ModelProto)


def _run_torch(
    mod: Function, inputs: Sequence[torch.Tensor], config: CompilerConfig | None, device: Device | None
) -> tuple[Result, Result]:
    """The results of plain PyTorch and of the compiled module."""
    try:
        with torch.no_grad():
            compiled = compile_model(mod, config, device)
            # Each run has copies, since the module may write to its inputs.
            golden, calculated = (run(*[value.clone() for value in inputs]) for run in (mod, compiled))
    finally:
        torch.compiler.reset()
    return golden, calculated


def _run_onnx(
    model: onnx.ModelProto,
    inputs: Sequence[torch.Tensor] | None,
    dtypes: torch.dtype | Sequence[torch.dtype] | None,
    ranges: tuple[tuple[float, float], tuple[int, int]],
    config: CompilerConfig | None,
    device: Device | None,
) -> tuple[Result, Result]:
    """The results of ONNX Runtime and of the compiled model."""
    from tt_torch.onnx_compile import compile_onnx, onnx_output_to_torch, run_model_proto, shapes_of

    shapes = None if inputs is None else shapes_of(model, inputs)
    compiled = compile_onnx(model, config, device, shapes=shapes)
    if inputs is None:
        types = compiled.inputs.values()
        inputs = random_inputs([shape for shape, _ in types], dtypes or [dtype for _, dtype in types], *ranges)
    return onnx_output_to_torch(run_model_proto(model, inputs)), compiled(*inputs)
