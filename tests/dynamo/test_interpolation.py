"""Interpolation: our decompositions agree with eager PyTorch, and compiled programs use them."""

from __future__ import annotations

import math
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._dynamo.backends.common import aot_autograd

import tt_torch
from tt_torch.driver.partition import HostFallbackWarning
from tt_torch.dynamo import python_kernels
from tt_torch.dynamo.decompositions import DECOMPOSITIONS, interpolation
from tt_torch.wire.calls import op_histogram
from tt_torch.wire.decode import decode

aten = torch.ops.aten
SIZES = [1, 2, 3, 5, 8, 10, 20, 33]
# Factors whose product with some sizes is rounded to the size itself, or to twice the size.
FACTORS = [0.3, 1 / 3, 0.5, 0.77, 1.0, 1.02, 1.04, 1.3, 1.7, 2.0, 2.02, 2.05, 3.0]


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, torch.Tensor, list[Any]]:
    """The name of an op, its input, and the other arguments."""
    name = draw(st.sampled_from([*interpolation.SMOOTH, *interpolation.NEAREST]))
    rank = int(name[name.index("d") - 1]) if "linear1d" in name or "nearest" in name else 3 if "3d" in name else 2
    old = draw(st.lists(st.sampled_from(SIZES), min_size=rank, max_size=rank))
    factors = [draw(st.sampled_from(FACTORS)) for _ in old]
    new = [int(size * factor) for size, factor in zip(old, factors, strict=True)]
    known = draw(st.integers(0, rank))  # the number of factors that are passed; the last ones may be left out
    if min(new) < 1 or draw(st.booleans()):
        new, known = draw(st.lists(st.sampled_from(SIZES), min_size=rank, max_size=rank)), 0
    align = [] if "nearest" in name else [draw(st.booleans())]
    x = torch.randn(draw(st.sampled_from([1, 2])), draw(st.sampled_from([1, 3, 4])), *old)
    if rank > 1 and draw(st.booleans()):
        x = x.contiguous(memory_format=torch.channels_last if rank == 2 else torch.channels_last_3d)
    return name, x, [new, *align, *factors[:known]]


def strides(x: torch.Tensor) -> list[int]:
    """The strides of the dimensions with more than one element."""
    return [stride for stride, size in zip(x.stride(), x.shape, strict=True) if size > 1]


@settings(max_examples=300)
@given(calls())
def test_decompositions_agree_with_eager(call: tuple[str, torch.Tensor, list[Any]]) -> None:
    name, x, (new, *options) = call
    op, backward = (getattr(aten, f"{name}{suffix}").default for suffix in ("", "_backward"))
    left_out = [None] * (len(op._schema.arguments) - 2 - len(options))
    expected = op(x, new, *options, *left_out)
    found = DECOMPOSITIONS[op](x, new, *options)
    if not ("_aa" in name and new[1] == 1):  # eager mistakes the strides of such a result for channels last
        torch.testing.assert_close(found, expected, rtol=0 if "nearest" in name else 1e-5, atol=1e-5)
        assert strides(found) == strides(expected)
    grad = torch.randn_like(expected)
    expected = backward(grad, new, list(x.shape), *options, *left_out)
    found = DECOMPOSITIONS[backward](grad, new, list(x.shape), *options)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-4)


def resize(**options: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: F.interpolate(x, **options)


MODES = {
    "nearest": (1, 2, 3),
    "nearest-exact": (1, 2, 3),
    "linear": (1,),
    "bilinear": (2,),
    "trilinear": (3,),
    "bicubic": (2,),
}
CASES = [
    *((rank, {"mode": mode, "scale_factor": 1.7}) for mode, ranks in MODES.items() for rank in ranks),
    (2, {"mode": "bilinear", "size": (11, 5), "align_corners": True}),
    (2, {"mode": "bicubic", "scale_factor": (0.6, 2.3), "recompute_scale_factor": True}),
    (2, {"mode": "bilinear", "scale_factor": 0.4, "antialias": True}),
    (2, {"mode": "bicubic", "size": 13, "antialias": True}),
    (2, {"mode": "lanczos", "size": (5, 7), "antialias": True}),
]


@pytest.mark.parametrize("size", [14, 7, 21, 5, 17])
def test_a_gradient_of_nearest_neighbours_stays_with_its_element(size: int) -> None:
    """This holds even if the gradient is infinite or NaN."""
    x = torch.randn(1, 2, 7, 7, requires_grad=True)
    gradient = torch.randn(1, 2, size, size)
    gradient[0, 0, 3, 4], gradient[0, 1, -1, 2], gradient[0, 1, 2, 2] = math.nan, math.inf, -math.inf
    function = resize(size=(size, size), mode="nearest")
    (expected,) = torch.autograd.grad(function(x), x, gradient)
    (got,) = torch.autograd.grad(torch.compile(function, backend="tt")(x), x, gradient)
    torch.testing.assert_close(got, expected, equal_nan=True)


@pytest.mark.parametrize(
    ("rank", "options", "how"),
    [
        *((rank, options, torch.enable_grad) for rank, options in CASES),
        *((2, {"mode": mode, "scale_factor": 2}, torch.no_grad) for mode in ("bilinear", "nearest")),
        *((2, {"mode": mode, "scale_factor": 2}, torch.inference_mode) for mode in ("bilinear", "nearest")),
    ],
    ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) else None,
)
def test_no_op_looks_up_elements_one_by_one(rank: int, options: dict[str, Any], how: Callable[[], Any]) -> None:
    """Reads the ops of the captured graphs, forward and backward."""
    function, targets = resize(**options), Counter()
    x = torch.randn(2, 3, *(7, 8, 9)[:rank], requires_grad=how is torch.enable_grad)

    def note(gm: torch.fx.GraphModule, inputs: Any) -> Any:
        targets.update(str(n.target) for n in gm.graph.nodes if n.op == "call_function")
        return gm.forward

    def backend(gm: torch.fx.GraphModule, inputs: Any) -> Any:
        with python_kernels.put_aside():
            return aot_autograd(fw_compiler=note, bw_compiler=note, decompositions=DECOMPOSITIONS)(gm, inputs)

    with how():
        found = torch.compile(function, backend=backend)(x)
        torch.testing.assert_close(found, function(x), rtol=1e-5, atol=1e-5)
    assert not {"aten.index.Tensor", "aten.index_put.default"} & set(targets), targets
    assert ("aten.index_select.default" in targets) == ("nearest" in options["mode"])


def test_a_large_image_takes_no_more_memory_than_its_elements() -> None:
    """From 480 x 270 to 960 x 540. In a lookup of single elements, each index tensor would take 4 GB."""
    x = torch.randn(1, 64, 270, 480)
    held = tt_torch.runtime.default_device().memory_stats()["dram"]["allocated"]  # memory that other tests hold
    compiled = tt_torch.compile_model(resize(scale_factor=2, mode="bilinear"), (x,))
    torch.testing.assert_close(compiled(x), F.interpolate(x, scale_factor=2, mode="bilinear"))
    kinds = op_histogram(decode(compiled.binary))
    assert kinds["MatmulOp"] == 2 and not kinds["GatherOp"]
    bytes_of_elements = (64 * 270 * 480 + 64 * 540 * 480 + 64 * 540 * 960) * 4
    assert compiled.executor.executable.memory_stats()["dram_peak"] - held < 1.1 * bytes_of_elements


@pytest.mark.filterwarnings("error::tt_torch.driver.partition.HostFallbackWarning")
@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_a_long_dimension_has_no_matrix(mode: str) -> None:
    """For this length, a matrix of weights would take 2 GB."""
    x = torch.randn(1, 2, 16000, requires_grad=True)
    own = x.detach().clone().requires_grad_()
    function = resize(scale_factor=2.1, mode=mode)
    expected, found = function(x), torch.compile(function, backend=tt_torch.backend)(own)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    grad = torch.randn_like(expected)
    expected.backward(grad)
    found.backward(grad)
    torch.testing.assert_close(own.grad, x.grad, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_bytes_are_interpolated_as_eager_does(mode: str) -> None:
    """Eager PyTorch uses fixed-point arithmetic, so the host computes it. PyTorch's decomposition is off by one."""
    x = torch.randint(0, 256, (2, 3, 8, 9), dtype=torch.uint8)
    function = resize(scale_factor=1.7, mode=mode)
    with pytest.warns(HostFallbackWarning, match=f"aten.upsample_{mode}2d"):
        assert torch.equal(torch.compile(function, backend=tt_torch.backend)(x), function(x))


def kernels() -> list[dict[Any, Any]]:
    return [dict(op.py_kernels) for op in python_kernels.overloads()]


def graph_of_another_backend() -> str:
    found = []

    def note(gm: torch.fx.GraphModule, inputs: Any) -> Any:
        found.append(gm.code)
        return gm.forward

    torch._dynamo.reset()
    torch.compile(resize(scale_factor=2, mode="bilinear"), backend=aot_autograd(fw_compiler=note))(
        torch.randn(1, 1, 3, 3)
    )
    return found[0]


def test_other_backends_trace_as_before() -> None:
    before, graph = kernels(), graph_of_another_backend()
    assert "aten._unsafe_index" in graph or "aten.index" in graph
    torch._dynamo.reset()
    torch.compile(resize(scale_factor=2, mode="bilinear"), backend=tt_torch.backend)(torch.randn(1, 1, 3, 3))
    with warnings.catch_warnings(), pytest.raises(torch._dynamo.exc.BackendCompilerFailed):
        torch.compile(
            torch.linalg.eigvalsh, backend="tt", options={"compiler_config": tt_torch.CompilerConfig(fallback="error")}
        )(torch.eye(3))
    assert kernels() == before and graph_of_another_backend() == graph


def test_captures_in_several_threads() -> None:
    """The capture of the main thread begins while the other thread captures, and ends after the other capture."""
    before, steps = kernels(), [threading.Event() for _ in range(3)]
    seen = []

    def first() -> None:
        with python_kernels.put_aside():
            steps[0].set()
            steps[1].wait()
        seen.append(kernels())
        steps[2].set()

    thread = threading.Thread(target=first)
    thread.start()
    steps[0].wait()
    with python_kernels.put_aside():
        steps[1].set()
        steps[2].wait()
    thread.join()
    early = (torch._C.DispatchKey.Autograd, torch._C.DispatchKey.CompositeImplicitAutograd)
    aside = [{k: f for k, f in table.items() if k not in early} for table in before]
    assert seen == [aside] and aside != before and kernels() == before
