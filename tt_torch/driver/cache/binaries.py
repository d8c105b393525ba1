"""Keeps the binary of a StableHLO module.

The key is the module itself, as bytecode with its locations, with the options and the versions. The stages from
StableHLO to the binary read nothing else.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch_mlir import ir

from tt_torch import user_code
from tt_torch.config import CompilerConfig
from tt_torch.driver.cache.keys import hashed, options, sources, usable_store
from tt_torch.mlir.repro import snapshot
from tt_torch.mlir.user_ops import has_lowerings
from tt_torch.torch_private.tensors import without_modes


def binary_of(module: ir.Module, config: CompilerConfig, compile_module: Callable[[], bytes]) -> bytes:
    """The binary that `compile_module` makes of the module. It comes from the cache if it is there.

    `compile_module` may change the module. A compilation that warns is not kept.
    """
    store = usable_store(config)
    if store is None or has_lowerings(module):  # nobody can tell what else a function of the user reads
        return compile_module()
    key = hashed("binary", snapshot(module), options(config), str(sources()))
    with without_modes():  # while PyTorch captures a graph, new tensors have no elements
        if found := store.read(key):
            return bytes(found[1]["binary"].numpy())
    with user_code.told() as warnings:
        binary = compile_module()
    with without_modes():
        if not warnings:  # a later compilation warns, too
            store.write(key, {}, {"binary": torch.frombuffer(bytearray(binary), dtype=torch.uint8)})
    return binary
