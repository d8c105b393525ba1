"""Ops of DTensors that call graphs, such as `while_loop`: errors that say what to do, while this process has a mesh.

Importing this module imports torch.distributed.tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch._dynamo.variables.base import VariableTracker  # 2.13.0: for _without_dtensors
from torch._dynamo.variables.higher_order_ops import _hop_name_to_variable_class  # 2.13.0: for PATCHES
from torch._dynamo.variables.lazy import LazyVariableTracker  # 2.13.0: for _without_dtensors
from torch._dynamo.variables.tensor import TensorVariable  # 2.13.0: for _without_dtensors
from torch.distributed.tensor import DTensor

from tt_torch.errors import MeshError

_ADVICE = "write a loop of Python, or a choice with torch.where, or compile it by itself, for x.full_tensor()"
_REFUSED = ("cond", "while_loop", "map_impl", "scan", "associative_scan", "flex_attention")


# 2.13.0: without it these ops would end in errors of PyTorch about fake tensors or storages, such as "Expected
# FakeTensor after unwrapping".
def _without_dtensors(of: Callable[..., VariableTracker]) -> Callable[..., VariableTracker]:
    def call_function(self: Any, tx: Any, args: list[Any], kwargs: dict[str, Any]) -> VariableTracker:
        if any(map(_is_dtensor, _parts(args, kwargs))):
            raise MeshError(f"{self.value.__name__} calls graphs, for which DTensor has no rule; {_ADVICE}")
        return of(self, tx, args, kwargs)

    return call_function


def _parts(*arguments: Any) -> list[VariableTracker]:
    found: list[VariableTracker] = []
    VariableTracker.visit(found.append, LazyVariableTracker.realize_all(arguments))
    return found


def _is_dtensor(variable: VariableTracker) -> bool:
    return isinstance(variable, TensorVariable) and isinstance(variable.proxy.node.meta["example_value"], DTensor)


PATCHES: Sequence[tuple[Any, str, Callable[[Any], Any]]] = tuple(
    (_hop_name_to_variable_class[name], "call_function", _without_dtensors) for name in _REFUSED
)
