"""Old names: `tt_torch.dynamo.shlo_backend`."""

from __future__ import annotations

import torch
from torch_mlir import ir

from tt_torch.accuracy import random_inputs
from tt_torch.bringup.op_by_op import run_module
from tt_torch.config import OP_BY_OP, CompileDepth, CompilerConfig
from tt_torch.driver.compile import compile_module
from tt_torch.driver.devices import Device
from tt_torch.driver.stablehlo import compile_stablehlo, in_a_list, input_types
from tt_torch.mlir.context import make_context, parse
from tt_torch.mlir.stablehlo.flatten import name_entry

__all__ = ["StablehloExecutor", "generate_random_inputs_for_shlo", "parse_module_from_str"]


def parse_module_from_str(module_str: str) -> ir.Module:
    """The StableHLO module in a text. Its entry function, if it is the only public one, is renamed to `main`."""
    module = parse(module_str, make_context())
    name_entry(module)
    return module


def generate_random_inputs_for_shlo(module_str: str) -> list[torch.Tensor]:
    """A tensor for each argument of `main`: floats uniform in -1 .. 1, integers in 0 .. 99."""
    types = input_types(parse_module_from_str(module_str))
    return random_inputs([shape for shape, _ in types], [dtype for _, dtype in types], (-1, 1), (0, 100))


class StablehloExecutor:
    """A StableHLO module, given as text or parsed, as a callable that takes its inputs and returns a list of tensors.

    At the op-by-op depths each op is compiled by itself, and below EXECUTE the module is only compiled. Then a call
    returns None, because there is no PyTorch program that could compute the results.
    """

    def __init__(
        self,
        module_str: str | None = None,
        parsed_module: ir.Module | None = None,
        compiler_config: CompilerConfig | None = None,
        device: Device | None = None,
    ) -> None:
        if (module_str is None) == (parsed_module is None):
            raise TypeError("give either module_str or parsed_module")
        # The compiler changes its module, so it gets one of its own.
        self._module = parse_module_from_str(str(parsed_module) if module_str is None else module_str)
        self._config = (compiler_config or CompilerConfig()).for_compilation(of_pytorch=False)
        if self._config.compile_depth == CompileDepth.EXECUTE:
            self._compiled = compile_stablehlo(self._module, self._config, device=device)
        elif self._config.compile_depth == CompileDepth.TTNN_IR:
            compile_module(self._module, self._config)

    def __call__(self, *inputs: torch.Tensor) -> list[torch.Tensor] | None:
        if self._config.compile_depth == CompileDepth.EXECUTE:
            return in_a_list(self._compiled(*inputs))
        if self._config.compile_depth in OP_BY_OP:
            run_module(self._module, inputs, self._config)
        return None
