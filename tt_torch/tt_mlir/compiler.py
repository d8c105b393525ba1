"""Compiles StableHLO with tt-mlir instead of our stages TTIR, TTNN and binary."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
from torch_mlir import ir

from tt_torch.config import CompilerConfig
from tt_torch.errors import ToolchainMissingError
from tt_torch.mlir import repro
from tt_torch.mlir.context import run_native
from tt_torch.tt_mlir import finding, options, plugin, tools

# tt-mlir does not take CHLO. The pass that expands it leaves broadcasts to computed shapes, which are all constants.
TO_PLAIN = "func.func(chlo-legalize-to-stablehlo,canonicalize,stablehlo-canonicalize-dynamism,canonicalize)"
_ROLE = re.compile(r'(ttcore\.argument_type = )"(\w+)"')


def compile_stablehlo(module: ir.Module, config: CompilerConfig, dump: Callable[[str, str], None]) -> bytes:
    """The binary that tt-mlir makes from a StableHLO module; `dump` is called with the IR of each of its stages.

    Raises ToolchainMissingError if tt-mlir is not installed, ConfigError for options that it does not have,
    UnsupportedOpError for an op that a plugin refuses, and StageError if tt-mlir fails, with a folder in `repro_dir`.
    """
    options.check(config)
    if library := finding.plugin(config.pjrt_plugin):
        binary, stages = plugin.compile_text(text(module), library, config)
    elif found := finding.tools():
        binary, stages = tools.compile_text(text(module), found, config)
    else:
        raise ToolchainMissingError
    for name, form in stages.items():
        dump(name, form)
    return binary


def text(module: ir.Module) -> str:
    """The module as text for tt-mlir's parser.

    CHLO ops such as erf, for which tt-mlir has no rules, are expanded. The role of an argument becomes an attribute of
    tt-mlir's dialect; in our module it is a string. Attributes of composite ops get the types that tt-mlir expects;
    with other types, tt-mlir crashes while it writes the binary.
    """
    copy = ir.Module.parse(repro.snapshot(module), module.context)
    run_native(copy, TO_PLAIN)
    with copy.context, ir.Location.unknown():
        copy.operation.walk(_retype)
    printed = copy.operation.get_asm(enable_debug_info=True)
    return _ROLE.sub(r"\1#ttcore.argument_type<\2>", printed)


def _retype(op: ir.Operation) -> ir.WalkResult:
    if op.name == "stablehlo.composite" and "composite_attributes" in op.attributes:
        given = op.attributes["composite_attributes"]
        op.attributes["composite_attributes"] = ir.DictAttr.get({each.name: _retyped(each.attr) for each in given})
    return ir.WalkResult.ADVANCE


def _retyped(attribute: ir.Attribute) -> ir.Attribute:
    """A float as float32, and a list of integers as a tensor of int64."""
    if isinstance(attribute, ir.FloatAttr):
        return ir.FloatAttr.get(ir.F32Type.get(), attribute.value)
    if isinstance(attribute, ir.DenseI64ArrayAttr):
        return ir.DenseElementsAttr.get(np.array(list(attribute), dtype=np.int64))
    return attribute
