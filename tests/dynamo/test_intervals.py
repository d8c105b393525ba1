"""The intervals of exact integers. The results of an op are within its interval if its operands are within theirs.

The interval is as narrow as `interval_table.py` says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from interval_table import ROWS
from torch._functorch.aot_autograd import aot_function
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_leaves

from tt_torch.dynamo.decompositions import DECOMPOSITIONS
from tt_torch.dynamo.exactness.analysis import Analysis, Raw, integer_cone, intervals
from tt_torch.dynamo.exactness.interval import ANYTHING, Interval, held, of_dtype, of_values

SHAPE = (3, 4)
i64 = torch.int64
PLACES = Interval(0, 2)  # the interval of the third input, which is used as an index
BINARY: dict[str, Callable[..., Any]] = {
    "add": lambda x, y, i: torch.add(x, y, alpha=3),
    "sub": lambda x, y, i: torch.sub(x, y, alpha=-2),
    "rsub": lambda x, y, i: 5 - x - y,
    "mul": lambda x, y, i: x * y,
    "extremes": lambda x, y, i: (torch.maximum(x, y), torch.minimum(x, y), x.max(), y.min(1)),
    "clamp": lambda x, y, i: (x.clamp(-3, 100), x.clamp(min=7), x.clamp(max=y)),
    "hardtanh": lambda x, y, i: (F.hardtanh(x, 40, 90), F.hardtanh(y, -9, -5), F.hardtanh(x, -5, 60)),
    "division": lambda x, y, i: (x // 7, x // -3, torch.div(x, 5, rounding_mode="trunc"), (x / 7).to(i64)),
    "remainder": lambda x, y, i: (x % 7, x % -5, torch.fmod(x, 9), x % (y.abs() + 1)),
    "bits": lambda x, y, i: (x & y, x | y, x ^ y, ~x, x & 0xFF, x | 1),
    "shifts": lambda x, y, i: (x << 3, x >> 2, x >> (y & 7), x << (y & 7), x << (-1 - (y & 3))),
    "powers": lambda x, y, i: (x**2, x**3, x.square(), (x & 7) ** (y & 3)),
    "signs": lambda x, y, i: (-x, x.abs(), x.sign(), y.relu()),
    "sums": lambda x, y, i: (x.sum(), x.sum(1), y.cumsum(0), x.sum((0, 1)), (x > y).sum()),
    "products": lambda x, y, i: (
        (x & 15).prod(),
        (x & 15).prod(1),
        (y & 15).cumprod(1),
        (x > y).to(i64).prod(),
    ),
    "matmul": lambda x, y, i: (x @ y.t(), torch.addmm(x[:, :3], x, y.t(), beta=2, alpha=3), x[0].dot(y[0])),
    "places": lambda x, y, i: (x.argmax(), x.argmin(1), x.argsort(1), x.sort(), x.count_nonzero()),
    "moved": lambda x, y, i: (x.t(), x[1:], x[i[:, :1]], x.gather(0, i), x.flip(0), x.expand(2, 3, 4), x.split(2)),
    "joined": lambda x, y, i: (
        torch.cat([x, y]),
        torch.stack([x, y]),
        torch.where(x > y, x, 9),
        x.masked_fill(y > 0, -8),
    ),
    "rearranged": lambda x, y, i: (
        x.roll(1, 0),
        x.repeat(2, 1),
        F.pixel_shuffle(x.reshape(1, 4, 1, 3), 2),
        F.pixel_unshuffle(y.reshape(1, 1, 2, 6), 2),
        torch.diag_embed(x),
        x.unfold(1, 2, 1),
        x.as_strided((2, 2), (1, 3), 1),
    ),
    "chosen": lambda x, y, i: (
        x.cummax(0),
        x.cummin(1),
        x.kthvalue(2),
        x.median(1),
        x.aminmax(),
        x.mode(0),
        x.topk(2),
        x.amin(1),
        F.max_pool2d(x.float().clamp(-9, 9)[None], 2, return_indices=True)[1],
    ),
    "written": lambda x, y, i: (x.scatter(0, i, y[:2]), x.index_put((i[0],), y[0]), x.tril(), x.index_fill(0, i[0], 4)),
    "added": lambda x, y, i: (
        x.scatter_add(0, i, y[:2]),
        x.index_add(0, i[0, :3], y, alpha=2),
        x.index_put((i[0],), y[0], True),
    ),
    "padded": lambda x, y, i: (F.pad(x, (1, 2)), F.pad(y, (1, 1), value=7)),
    "created": lambda x, y, i: (
        torch.arange(3, 15).reshape(3, 4) + x,
        torch.full_like(x, 11),
        x.new_zeros(2),
        torch.ones_like(y),
    ),
    "converted": lambda x, y, i: (
        x.to(torch.int8),
        x.to(torch.float32).to(i64),
        (x.float() * 0.7).floor().to(i64),
    ),
    "of floats": lambda x, y, i: (
        (x.float().clamp(-9, 9) * 3 - 1).to(i64),
        (y.float().abs() / 3).ceil().to(i64),
    ),
}


def bounds(limit: int) -> st.SearchStrategy[Interval]:
    numbers = st.integers(-limit, limit)
    return st.tuples(numbers, numbers).map(lambda pair: Interval(min(pair), max(pair)))


def graph_of(fn: Callable[..., Any]) -> GraphModule:
    """The functional ATen graph that the backend would see."""
    graphs: list[GraphModule] = []

    def keep(gm: GraphModule, inputs: Any) -> GraphModule:
        graphs.append(gm)
        return gm

    example = [torch.ones(SHAPE, dtype=i64) for _ in range(2)]
    example.append(torch.zeros(2, 4, dtype=i64))
    aot_function(fn, fw_compiler=keep, decompositions=DECOMPOSITIONS)(*example)
    return graphs[0]


class Watching(torch.fx.Interpreter):
    """Runs a graph and compares each value with its interval."""

    def __init__(self, gm: GraphModule, raw: Raw) -> None:
        super().__init__(gm)
        self.raw = raw

    def run_node(self, n: torch.fx.Node) -> Any:
        result = super().run_node(n)
        if n in self.raw:
            for tensor, interval in zip(tree_leaves(result), self.raw[n], strict=True):
                if tensor.numel() and not self.wraps(tensor.dtype, interval):
                    assert interval.low <= tensor.min() and tensor.max() <= interval.high, (n.format_node(), interval)
        return result

    @staticmethod
    def wraps(dtype: torch.dtype, interval: Interval) -> bool:
        if dtype is torch.bool or dtype.is_floating_point:
            return False
        return interval.low < torch.iinfo(dtype).min or interval.high > torch.iinfo(dtype).max


@pytest.mark.parametrize("name", BINARY)
def test_results_lie_within(name: str) -> None:
    gm = graph_of(BINARY[name])
    inputs = [n for n in gm.graph.nodes if n.op == "placeholder"]

    @settings(max_examples=20)
    @given(bounds(2**20), bounds(2**20), st.integers(0, 2**30))
    def check(x: Interval, y: Interval, seed: int) -> None:
        ranges = dict(zip(inputs, (x, y, PLACES), strict=False))
        raw = intervals(integer_cone(gm), ranges)
        torch.manual_seed(seed)
        Watching(gm, raw).run(*(drawn(range, n.meta["val"].shape) for n, range in ranges.items()))
        unknown = [n for n, r in raw.items() if r == (ANYTHING,) and not n.meta["val"].dtype.is_floating_point]
        assert not unknown, "no rule says anything"

    check()


@pytest.mark.parametrize("family", ROWS)
def test_intervals_are_narrow(family: str) -> None:
    functions, x, y, expected = zip(*ROWS[family], strict=True)
    gm = graph_of(lambda *inputs: [function(*inputs) for function in functions])
    inputs = [n for n in gm.graph.nodes if n.op == "placeholder"]
    (output,) = gm.graph.find_nodes(op="output")
    nodes = integer_cone(gm)
    found = []
    for node, *ranges in zip(output.args[0], x, y, strict=True):
        given = dict(zip(inputs, (*(Interval(*range) for range in ranges), PLACES), strict=False))
        (interval,) = intervals(nodes, given)[node]
        found.append(tuple(interval))
    assert found == list(expected)


FLOATS: list[Callable[..., torch.Tensor]] = [
    *(torch.add, torch.sub, torch.mul, torch.div, torch.maximum, torch.minimum, torch.fmax, torch.fmin),
    *(torch.fmod, torch.remainder, torch.pow, torch.hypot, torch.atan2),
    lambda a, b: torch.where(a > 0, a, b),
    lambda a, b: a.clamp(max=b),
    lambda a, b: torch.lerp(a, b, 0.5),
    lambda a, b: torch.cat([a, b]),
    lambda a, b: a @ b.t(),
]


@pytest.mark.parametrize("op", FLOATS)
def test_a_result_of_what_may_be_anything_may_be_anything(op: Callable[..., torch.Tensor]) -> None:
    """A quotient by zero is infinite or NaN, whichever operand it is."""
    gm = graph_of(lambda x, y, i: [op(*pair).to(i64) for pair in ((x / y, x.float()), (x.float(), x / y))])
    given = zip(gm.graph.find_nodes(op="placeholder"), (Interval(0, 5), Interval(-1, 1), PLACES), strict=False)
    raw = intervals(integer_cone(gm), dict(given))
    (output,) = gm.graph.find_nodes(op="output")
    assert [raw.get(node.args[0], (ANYTHING,)) for node in output.args[0]] == [(ANYTHING,)] * 2


def drawn(within: Interval, shape: torch.Size) -> torch.Tensor:
    """Random values within an interval; both of its ends are among them."""
    values = torch.randint(int(within.low), int(within.high) + 1, shape)
    values[0, 0], values[-1, -1] = within
    return values


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (torch.tensor([3, -7, 5]), (-7, 5)),
        (torch.tensor([True, False]), (0, 1)),
        (torch.tensor([200, 7], dtype=torch.uint8), (7, 200)),
        (torch.tensor([2**32 - 1, 7], dtype=torch.uint32), (7, 2**32 - 1)),
        (torch.tensor([2**63 + 5, 7], dtype=torch.uint64), (7, 2**63 - 1)),  # only its large size matters
        (torch.tensor([0.5, -2.5]), (-2.5, 0.5)),
        (torch.tensor([0.5, torch.nan]), ANYTHING),
        (torch.tensor([0.5, torch.inf]), ANYTHING),
        (torch.tensor([1j]), ANYTHING),
        (torch.tensor([]), (0, 0)),
        (torch.tensor([], dtype=torch.complex64), (0, 0)),
    ],
)
def test_values_of_a_tensor(values: torch.Tensor, expected: tuple[float, float]) -> None:
    assert of_values(values) == expected


def test_values_that_a_type_has() -> None:
    whole = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    for dtype in whole:
        assert of_dtype(dtype) == (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
        assert held(Interval(-1, 1), dtype) == (of_dtype(dtype) if dtype is torch.uint8 else (-1, 1))
        assert held(Interval(0, 2**70), dtype) == of_dtype(dtype)
    assert of_dtype(torch.bool) == (0, 1)
    for dtype in (torch.float32, torch.bfloat16, torch.complex64):
        assert of_dtype(dtype) == ANYTHING
    assert held(Interval(0, 2**70), torch.float32) == (0, 2**70)


@pytest.mark.parametrize(("a", "b"), [((-3, 5), (2, 4)), ((-3, -1), (-5, 7)), ((0, 2), (-4, -1)), ((3, 3), (-2, 2))])
def test_arithmetic_of_intervals(a: tuple[int, int], b: tuple[int, int]) -> None:
    x, y, pairs = Interval(*a), Interval(*b), [(p, q) for p in range(a[0], a[1] + 1) for q in range(b[0], b[1] + 1)]
    sums, products = [p + q for p, q in pairs], [p * q for p, q in pairs]
    assert x.plus(y) == (min(sums), max(sums)) and x.times(y) == (min(products), max(products))
    assert -x == (-a[1], -a[0]) and x | y == (min(a + b), max(a + b))
    assert x.within(x | y) and not Interval(a[0] - 1, a[1]).within(x) and not Interval(a[0], a[1] + 1).within(x)
    assert x.times(ANYTHING) == ANYTHING and ANYTHING.times(Interval(0, 0)) == ANYTHING


def test_an_op_may_leave_out_some_results() -> None:
    """A frozen layer norm has no gradients of its weight and bias."""
    x, one = torch.randn(3, 6), torch.ones(3, 1)
    backward = torch.ops.aten.native_layer_norm_backward.default
    gm = make_fx(lambda g, x, m, w: backward(g, x, [6], m, m, w, w, [True, False, False])[0], tracing_mode="fake")(
        x, x, one, x[0]
    )
    assert integer_cone(gm) == []


@pytest.mark.parametrize(
    ("function", "levels"),
    [
        (lambda x, y, i: x.flip(0), [2**31, 2**31]),
        (lambda x, y, i: x * x, [2**15, 2**31]),
        (lambda x, y, i: x * y, [2**15, 2**15]),
        (lambda x, y, i: x * x + y, [2**15, 2**29]),  # one limit for both, then higher ones for each
        (lambda x, y, i: x**9, [8, 2**31]),
        (lambda x, y, i: x**12 + y * y, [2**31, 2**15]),  # no limit is low enough for x, so the power is inexact
    ],
)
def test_limits_are_as_high_as_they_can_be(function: Callable[..., Any], levels: list[int]) -> None:
    limits = Analysis(graph_of(function)).limits()
    assert list(limits.values())[:2] == levels
