"""Old names: `tt_torch.dynamo.torch_backend`."""

from __future__ import annotations

from torch.export import ExportedProgram
from torch.fx import Graph
from torch_mlir import ir

from tt_torch.compat import refused
from tt_torch.mlir.context import make_context
from tt_torch.mlir.stablehlo import importer
from tt_torch.mlir.stablehlo.lowering import to_stablehlo as lower_to_stable_hlo
from tt_torch.mlir.verify import verify as verify_ir

__all__ = ["TorchExecutor", "import_graph", "import_program", "lower_to_stable_hlo", "verify_ir"]

TorchExecutor = refused(
    "tt_torch.dynamo.torch_backend.TorchExecutor",
    "Compile with the depth EXECUTE_OP_BY_OP and op_by_op_backend=OpByOpBackend.TORCH: docs/bring_up.md.",
)


def import_graph(graph: Graph) -> ir.Module:
    """A functional ATen graph with `val` metadata as a module of the torch dialect. All its inputs are activations."""
    return importer.import_graph(graph, make_context(), ["input"] * len(graph.find_nodes(op="placeholder")))


def import_program(program: ExportedProgram) -> ir.Module:
    """An exported program as a module of the torch dialect. Parameters and buffers are its first arguments."""
    return import_graph(program.graph)
