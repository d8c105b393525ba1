"""`tt-torch explore` shows a file in Model Explorer, with times and PCCs on its nodes."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tt_torch.cli_errors import needs, one_line_errors

if TYPE_CHECKING:
    from model_explorer.node_data_builder import ModelNodeData

    from tt_torch.explore.graphs import Graph

File = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="a .ttnn, .ttpkg or .mlir file")]
TT_ADAPTER = "tt_torch"  # the id of the adapter in tt_torch/explore/main.py
Table = Path | None
DEFAULT_PORT = 8080  # Model Explorer's default
# colours of the lowest and of the highest value
_HIGH_IS_BAD, _LOW_IS_BAD = ("#ffffff", "#f28e2b"), ("#f28e2b", "#ffffff")


def explore(
    file: File,
    profile: Annotated[
        Table, typer.Option(exists=True, dir_okay=False, help="device_ops_perf_trace.csv of tt-torch profile")
    ] = None,
    comparison: Annotated[
        Table, typer.Option(exists=True, dir_okay=False, help="*_intermediates.csv of tt-torch verify")
    ] = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="the port of the server on this machine")] = DEFAULT_PORT,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="start the server without a browser")] = False,
) -> None:
    """Opens a program in Google's Model Explorer. Nodes show layouts, memory and costs, and times and PCCs if given."""
    needs("explore")
    _require_free(port)
    import model_explorer

    from tt_torch.explore.graphs import add_comparison, add_profile, read_graphs

    with one_line_errors():
        graphs = read_graphs(file)
        if profile:
            add_profile(graphs, profile)
        if comparison:
            add_comparison(graphs, comparison)
    config = model_explorer.config()
    config.add_model_from_path(str(file.resolve()), adapterId=TT_ADAPTER)
    for measure in sorted({measure for graph in graphs for measure in graph.data if any(graph.data[measure].values())}):
        config.add_node_data(measure, _node_data(graphs, measure))
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a reader of a pipe waits for the address
    model_explorer.visualize_from_config(
        config, extensions=["tt_torch.explore"], port=port, no_open_in_browser=no_browser
    )


def _require_free(port: int) -> None:
    """Raises BadParameter if no server can use the port. If 8080 is taken, Model Explorer itself uses another port."""
    if port == DEFAULT_PORT:
        return
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the port of a server that has just ended is free
        try:
            probe.bind(("localhost", port))
        except OSError as error:
            raise typer.BadParameter(f"{port}: {error.strerror}", param_hint="--port") from None


def _node_data(graphs: list[Graph], measure: str) -> ModelNodeData:
    """One measure of all graphs in the form of Model Explorer. Worse numbers give their nodes a stronger colour."""
    from model_explorer import node_data_builder as builder

    colours = _LOW_IS_BAD if measure == "PCC" else _HIGH_IS_BAD
    data = {}
    for graph in graphs:
        results = {node: builder.NodeDataResult(value) for node, value in graph.data.get(measure, {}).items()}
        gradient = [builder.GradientItem(stop, bgColor=colour) for stop, colour in enumerate(colours)]
        words = any(isinstance(result.value, str) for result in results.values())
        data[graph.name] = builder.GraphNodeData(results, gradient=[] if words else gradient)
    return builder.ModelNodeData(data)
