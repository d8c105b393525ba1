"""The options of each op, where the option `precision` sets some of them by layer."""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.compiler_options import BY_LAYER, CompilerOptions
from tt_torch.layers import matches
from tt_torch.mlir.functions import main
from tt_torch.mlir.layer_names import WEIGHT_DTYPE, WEIGHT_DTYPES, LayerNames, attribute, constants_of
from tt_torch.mlir.types import Attrs, Op
from tt_torch.wire.facts import BLOCK_FLOATS


class Precision:
    """The options of the ops of a module."""

    def __init__(self, module: ir.Module, options: CompilerOptions) -> None:
        self.default: Attrs = {name: getattr(options, name) for name in BY_LAYER}
        self.by_layer = options.precision
        self._names = LayerNames(module)
        self._marked = any(attribute(argument, WEIGHT_DTYPE) for argument in main(module).arguments)

    def has(self, name: str) -> bool:
        """Whether an op may have another value of an option than its default."""
        changed = self.default[name] != getattr(CompilerOptions, name) or (name == "weight_dtype" and self._marked)
        return changed or any(name in dict(values) for _, values in self.by_layer)

    def weight_type(self, op: Op) -> str | None:
        """The type that a constant weight of an op gets, by its name on the wire; None if it keeps its own type.

        A type that the model itself names comes before the options. If several weights are joined, the most precise one
        of their types counts.
        """
        arguments = [argument for value in op.operands for argument in constants_of(value)]
        given = {attribute(argument, WEIGHT_DTYPE) for argument in arguments}
        if said := [dtype for name, dtype in WEIGHT_DTYPES.items() if name in given]:
            return said[0]
        chosen = self.of(op)["weight_dtype"]
        return BLOCK_FLOATS[chosen] if chosen else None

    def of(self, op: Op) -> Attrs:
        """The options of one op. The last entry that matches one of its names counts."""
        names = self._names.of(op) if self.by_layer else []
        chosen = dict(self.default)
        for pattern, values in self.by_layer:
            if matches(pattern, names):
                chosen |= dict(values)
        return chosen
