"""Measures a model with a level of precision for each of its layers."""

from __future__ import annotations

import dataclasses
import glob
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from tt_torch.accuracy import calculate_pcc
from tt_torch.config import BackendOptions, CompilerConfig
from tt_torch.driver.aot import compile_model
from tt_torch.layers import dump_weight_names
from tt_torch.profiling import cost_model
from tt_torch.runtime import Device
from tt_torch.torch_private.trees import tree_leaves
from tt_torch.tuning.search import LEVELS, Choice, Trial
from tt_torch.wire.decode import decode


class Meter:
    """Compiles a model for a choice of levels, and compares it with eager PyTorch on given inputs.

    The device is an exact one, which has the roundings of a chip. The time comes from the profile's model of the chip.
    """

    def __init__(
        self, model: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], config: CompilerConfig
    ) -> None:
        self.model, self.args, self.kwargs, self.config = model, tuple(args), dict(kwargs), config
        self.patterns = list(dict.fromkeys(map(_layer, dump_weight_names(model))))
        with torch.no_grad():
            self._golden = _floats(model(*self.args, **self.kwargs))
        self._device = Device(exact=True)

    def precision(self, choice: Choice) -> dict[str, dict[str, str | None]]:
        """The option `precision` for a choice."""
        return {pattern: dict(LEVELS[level].options) for pattern, level in zip(self.patterns, choice, strict=True)}

    def __call__(self, choice: Choice) -> Trial:
        by_layer = tuple((pattern, tuple(entry.items())) for pattern, entry in self.precision(choice).items())
        config = dataclasses.replace(self.config, precision=by_layer)
        options = BackendOptions(compiler_config=config, devices=[self._device])
        with torch.no_grad():
            compiled = compile_model(self.model, self.args, kwargs=self.kwargs, options=options)
            results = _floats(compiled(*self.args, **self.kwargs))
        pcc = min((calculate_pcc(a, b) for a, b in zip(results, self._golden, strict=True)), default=1.0)
        cost = cost_model.of_call(decode(compiled.binary))
        return Trial(choice, pcc, cost.seconds, cost.bytes)


def _layer(weight: str) -> str:
    """The pattern of the module that has a weight. If the model itself has it, it is the pattern of the weight."""
    return glob.escape(weight.rpartition(".")[0] or weight)


def _floats(results: object) -> list[torch.Tensor]:
    return [x for x in tree_leaves(results) if isinstance(x, torch.Tensor) and x.is_floating_point()]
