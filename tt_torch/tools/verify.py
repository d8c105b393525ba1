"""Compiling a module and comparing it with plain PyTorch, in one call."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tt_torch.accuracy import calculate_atol, calculate_pcc, random_inputs, verify_against_golden
from tt_torch.config import BackendOptions, CompilerConfig
from tt_torch.driver.backend import backend
from tt_torch.driver.devices import Device
from tt_torch.dynamo.types import Function
from tt_torch.torch_private.trees import tree_leaves

__all__ = ["calculate_atol", "calculate_pcc", "compile_model", "verify_against_golden", "verify_module"]


def compile_model(
    mod: torch.nn.Module, compiler_config: CompilerConfig | None = None, device: Device | None = None
) -> Function:
    """The module compiled for `device` (None: the default one), one program per input shape."""
    options = BackendOptions(compiler_config=compiler_config or CompilerConfig(), devices=[device])
    return torch.compile(mod, backend=backend, dynamic=False, options=options)  # type: ignore[call-overload]


def verify_module(
    mod: torch.nn.Module,
    inputs: Sequence[torch.Tensor] | None = None,
    input_shapes: Sequence[Sequence[int]] | None = None,
    input_data_types: torch.dtype | Sequence[torch.dtype] = torch.float32,
    required_pcc: float = 0.99,
    required_atol: float = 0.01,
    input_range: tuple[float, float] = (-0.5, 0.5),
    input_range_int: tuple[int, int] = (0, 1000),
    compiler_config: CompilerConfig | None = None,
    do_assert: bool = True,
    device: Device | None = None,
) -> tuple[list[float], list[float], bool, bool, list[float]]:
    """Compiles a module, runs it on given or random inputs and compares with plain PyTorch."""
    assert (inputs is None) != (input_shapes is None), "Give either inputs or input_shapes."
    if inputs is None:
        inputs = random_inputs(input_shapes or (), input_data_types, input_range, input_range_int)
    try:
        with torch.no_grad():
            compiled = compile_model(mod, compiler_config, device)
            # Each run has copies, since the module may write to its inputs.
            golden, calculated = (run(*[value.clone() for value in inputs]) for run in (mod, compiled))
    finally:
        torch.compiler.reset()
    expected, got = tree_leaves(golden), tree_leaves(calculated)
    return verify_against_golden(expected, got, do_assert, do_assert, required_pcc, required_atol)
