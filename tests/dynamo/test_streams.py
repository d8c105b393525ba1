"""Streams and events in compiled regions of our backend: they do not break the graph, and they run around it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch._higher_order_ops import map as map_rows
from torch.fx import GraphModule
from torch.utils.checkpoint import checkpoint

import tt_torch
from tt_torch.config import CompilerConfig
from tt_torch.dynamo.streams import without_streams

ON_DEVICE = {"compiler_config": CompilerConfig(fallback="error")}


def timed(x):
    before, after = torch.tt.Event(enable_timing=True), torch.tt.Event(enable_timing=True)
    before.record()
    y = (x @ x).sin()
    after.record()
    after.synchronize()
    return y * y, before, after


def on_another_stream(x):
    stream = torch.tt.Stream()
    stream.wait_stream(torch.tt.current_stream())
    with torch.tt.stream(stream):
        y = x @ x
        done = stream.record_event()
        z = y.sin()
    torch.tt.current_stream().wait_event(done)
    if y.device.type == "tt":
        y.record_stream(stream)
    torch.tt.synchronize()
    return y * z


def waits(x):
    torch.tt.current_stream().synchronize()
    return x.sin()


def in_checkpoint(x):
    return checkpoint(waits, x, use_reentrant=False) * 2


def in_rows(x):
    return map_rows(waits, x)


@pytest.mark.parametrize(
    ("function", "plain"),
    [
        (on_another_stream, lambda x: (x @ x) * (x @ x).sin()),
        (in_checkpoint, lambda x: x.sin() * 2),
        (in_rows, torch.sin),
    ],
)
@pytest.mark.parametrize("device", ["tt", "cpu"])
def test_results_and_gradients(
    function: Callable[[torch.Tensor], torch.Tensor], plain: Callable[[torch.Tensor], torch.Tensor], device: str
) -> None:
    x = torch.randn(4, 4)
    ours, theirs = x.detach().to(device).requires_grad_(), x.requires_grad_()
    result = torch.compile(function, backend=tt_torch.backend, fullgraph=True, options=ON_DEVICE)(ours)
    expected = plain(theirs)
    torch.testing.assert_close(result.cpu(), expected, rtol=1e-4, atol=1e-4)
    result.sum().backward()
    expected.sum().backward()
    torch.testing.assert_close(ours.grad.cpu(), theirs.grad, rtol=1e-4, atol=1e-4)


def test_events_lie_around_the_program() -> None:
    run = torch.compile(timed, backend=tt_torch.backend, fullgraph=True, options=ON_DEVICE)
    for size in (8, 8, 128):
        x = torch.randn(size, size, device="tt")
        result, before, after = run(x)
        torch.testing.assert_close(result.cpu(), timed(x.cpu())[0], rtol=1e-3, atol=1e-3)
        assert before.elapsed_time(after) > 0


def test_calls_of_streams_are_taken_out_of_the_graph() -> None:
    found = {}

    def capture(gm: GraphModule, inputs: object) -> Callable[..., object]:
        names = [node.name for node in gm.graph.nodes]
        found["graph"], *found["calls"] = without_streams(gm)
        assert names == [node.name for node in gm.graph.nodes]
        assert any("stream" in node.meta.get("custom", {}) for node in gm.graph.nodes) == (function is not timed)
        return gm

    for function, before, after in (
        (timed, ["record_event"], ["record_event", "synchronize_event"]),
        (on_another_stream, ["wait_stream"], ["record_event", "wait_event", "synchronize_device"]),
    ):
        torch.compile(function, backend=capture, fullgraph=True)(torch.ones(3, 3))
        names = [[call.func.__name__ for call in calls] for calls in found["calls"]]
        assert names == [before, after]
        nodes = found["graph"].graph.nodes
        assert not any("stream" in node.meta["custom"] or "streams" in str(node.target) for node in nodes)


def test_a_graph_without_streams_is_left_alone() -> None:
    gm = torch.fx.symbolic_trace(lambda x: x + 1)
    assert without_streams(gm) == (gm, [], [])
