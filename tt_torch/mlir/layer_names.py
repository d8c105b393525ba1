"""The names that ops and weights of a program have in the model. Options that a user sets by layer need them.

The MLIR module has them in two attributes. `tt.modules` gives the path in the model for each FX node; the location of
an op names its nodes. `tt.name` is an attribute of each argument that is a parameter or a buffer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch_mlir import ir

from tt_torch.mlir.functions import argument_text, main, set_argument_texts
from tt_torch.mlir.ttir.constness import is_constant
from tt_torch.mlir.types import Op, Value
from tt_torch.wire import locations

MODULES, NAME = "tt.modules", "tt.name"
# The attribute of an argument whose data type the model itself sets, and the wire's data type for each of its values.
WEIGHT_DTYPE = "ttcore.weight_dtype"
WEIGHT_DTYPES = {"bf16": "BFloat16", "bfp_bf8": "BFP_BFloat8", "bfp_bf4": "BFP_BFloat4"}


def write_names(module: ir.Module, modules: Mapping[str, str], weights: Sequence[str]) -> None:
    """Writes the module path of each FX node, and the name of each argument, which is "" for an input."""
    with module.context:
        paths = {node: ir.StringAttr.get(path) for node, path in modules.items()}
        module.operation.attributes[MODULES] = ir.DictAttr.get(paths)
        set_argument_texts(main(module), NAME, {i: name for i, name in enumerate(weights) if name})


class LayerNames:
    """The names of a module's ops."""

    def __init__(self, module: ir.Module) -> None:
        found = module.operation.attributes
        self._paths = {a.name: a.attr.value for a in found[MODULES]} if MODULES in found else {}

    def of(self, op: Op) -> list[str]:
        """The paths of the modules from which an op comes, and the names of the weights that it reads. A fused op has
        the names of all its parts. An op without a name belongs to the model itself, whose path is "" as in PyTorch."""
        nodes = locations.nodes(str(op.location))
        names = [self._paths[node] for node in nodes if node in self._paths]
        names += [name for value in op.operands for name in weights_of(value)]
        return list(dict.fromkeys(names)) or [""]


def weights_of(value: Value) -> list[str]:
    """The names of the parameters from which a constant value is computed; an empty list for other values."""
    names = [attribute(argument, NAME) for argument in constants_of(value)]
    return [name for name in names if name]


def constants_of(value: Value) -> list[Value]:
    """The arguments from which a constant value is computed; an empty list for other values."""
    if not is_constant(value):
        return []
    seen, pending = {value}, [value]
    arguments = []
    while pending:
        owner = (value := pending.pop()).owner
        if isinstance(owner, ir.Block):
            arguments.append(value)
            continue
        fresh = [v for v in owner.operands if v not in seen]
        seen.update(fresh)
        pending += fresh
    return arguments


def attribute(argument: Value, name: str) -> str:
    """The text of an attribute of an argument; "" if it is absent."""
    return argument_text(argument.owner.owner, argument.arg_number, name)
