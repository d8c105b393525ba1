"""The adapter of Model Explorer: `model-explorer model.ttnn --extensions=tt_torch.explore`."""

from __future__ import annotations

from pathlib import Path

from model_explorer import Adapter, AdapterMetadata, ModelExplorerGraphs, graph_builder

from tt_torch.explore.graphs import Graph, Node, read_graphs


class TTAdapter(Adapter):
    """Programs of .ttnn and .ttpkg files, and functions of .mlir files of any level."""

    metadata = AdapterMetadata(
        id="tt_torch",
        name="tt_torch adapter",
        description="TTNN binaries, and MLIR of the dialects that tt_torch compiles through",
        source_repo="",
        fileExts=["ttnn", "ttpkg", "mlir"],
    )

    def convert(self, model_path: str, settings: dict[str, object]) -> ModelExplorerGraphs:
        """The graphs of a file. `settings` are the explorer's own and are not used."""
        return {"graphs": [_graph(graph) for graph in read_graphs(Path(model_path))]}


def _graph(graph: Graph) -> graph_builder.Graph:
    nodes = [_node(node) for node in graph.nodes]
    return graph_builder.Graph(id=graph.name, nodes=nodes, groupNodeAttributes={"": graph.attributes})


def _node(node: Node) -> graph_builder.GraphNode:
    return graph_builder.GraphNode(
        id=node.id,
        label=node.label,
        namespace=node.namespace,
        attrs=[graph_builder.KeyValue(key, value) for key, value in node.attributes.items()],
        incomingEdges=[
            graph_builder.IncomingEdge(source, str(output), str(i)) for i, (source, output) in enumerate(node.sources)
        ],
        outputsMetadata=[
            graph_builder.MetadataItem(str(i), [graph_builder.KeyValue(k, v) for k, v in output.items()])
            for i, output in enumerate(node.outputs)
        ],
    )
