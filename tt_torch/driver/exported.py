"""Programs of `torch.export` as models of `compile_model`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch.export import ExportedProgram

from tt_torch import user_code
from tt_torch.driver.arguments import Call, parts
from tt_torch.driver.dynamic_shapes import DynamicShapes
from tt_torch.dynamo.types import Argument
from tt_torch.errors import ArgumentError, CompileError

_GUARD = "Guard failed: "  # how PyTorch's message begins; the condition follows


def examples_of(
    exported: ExportedProgram, dynamic_shapes: DynamicShapes | None
) -> tuple[Sequence[Argument], Mapping[str, Argument]]:
    """The arguments of an export. Warns if their sizes change in the export, but nothing says so here."""
    names = exported.graph_signature.user_inputs
    values = {node.name: node.meta["val"] for node in exported.graph.nodes if node.name in names}
    shapes = {name: x.shape for name, x in values.items() if isinstance(x, torch.Tensor)}
    name = next((name for name, shape in shapes.items() if not all(isinstance(size, int) for size in shape)), None)
    if name is not None and dynamic_shapes is None:
        only = "it is compiled for the shapes of its examples only; dynamic_shapes makes a family of programs"
        user_code.warn(UserWarning(f"the export has sizes of {name} that change, but {only}"))
    return exported.example_inputs or ((), {})


def require_parts(call: Call, exported: Call) -> None:
    """Raises ArgumentError if a call has other arguments, or containers of other parts, than the call of an export."""
    given, known = parts(call), parts(exported)
    for name in [*known, *given]:
        if (name in known) != (name in given):
            told = "is missing; the export has it" if name in known else "is given, but the export does not have it"
            raise ArgumentError(f"{name} {told}")


def refusal(failure: AssertionError) -> CompileError | None:
    """The error for sizes or values that an export does not accept; None if the assertion is one of the model itself.

    The module of an export checks them. Its message has the condition, such as `x.size()[0] <= 4`.
    """
    text = str(failure)
    if not text.startswith(_GUARD):
        return None
    cure = "export the model with these sizes, or in a range (torch.export.Dim) that has all of them"
    return CompileError(f"the export does not accept this, because it needs {text.removeprefix(_GUARD)}\n  {cure}")
