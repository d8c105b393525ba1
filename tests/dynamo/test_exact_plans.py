"""Which programs with integers are exact: the limits of their inputs, the ops for the host, and what a run checks."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import GraphModule, Interpreter
from torch.utils._pytree import tree_leaves

from tt_torch.driver.exact_runner import OUT_OF_RANGE, ExactnessWarning, ExactRunner
from tt_torch.dynamo.decompositions import DECOMPOSITIONS
from tt_torch.dynamo.exactness.interval import Interval
from tt_torch.dynamo.exactness.limits import Plan
from tt_torch.dynamo.exactness.plan import Float64Warning, make_exact
from tt_torch.dynamo.passes.rewriting import copied
from tt_torch.torch_private.tracing import make_fx

i64, f64 = torch.int64, torch.float64
LARGE = "it computes with a number of more than 32 bits"
RESULT = "its integers may need more than 32 bits"
OPERAND = "it reads integers of more than 32 bits"


def graph_of(function: Callable[..., Any], *inputs: torch.Tensor) -> GraphModule:
    gm = make_fx(
        lambda *inputs: tuple(tree_leaves(function(*inputs))), tracing_mode="fake", decomposition_table=DECOMPOSITIONS
    )(*inputs)
    for node, name in zip(gm.graph.find_nodes(op="placeholder"), "xyz", strict=False):
        node.meta["source"] = name
    return gm


def planned(function: Callable[..., Any], *inputs: torch.Tensor, **options: Any) -> tuple[GraphModule, Plan]:
    gm = graph_of(function, *inputs)
    return gm, make_exact(gm, **({"strict": False} | options))


def reasons(gm: GraphModule) -> dict[str, str]:
    return {n.target.overloadpacket.__name__: n.meta["inexact"] for n in gm.graph.nodes if "inexact" in n.meta}


X, Y, P = torch.ones(3, 4, dtype=i64), torch.ones(3, dtype=i64), torch.rand(3, 4)
# A function of the integers x and y, the largest magnitudes of both for which it is exact, and its ops for the host.
PLANS: list[tuple[Callable[..., Any], tuple[int, int], dict[str, str]]] = [
    (lambda x, y: x + 1, (2**30, 2**31), {}),
    (lambda x, y: -x, (2**30, 2**31), {}),
    (lambda x, y: x * y[:, None], (2**15, 2**15), {}),
    (lambda x, y: (x.flip(0), x > 5, x // 2), (2**31, 2**31), {}),
    (lambda x, y: x > 2**40, (2**31, 2**31), {"gt": LARGE}),
    (lambda x, y: x % 2**31, (2**31, 2**31), {"remainder": RESULT}),
    (lambda x, y: x == -(2**31) - 1, (2**31, 2**31), {"eq": LARGE}),
    (lambda x, y: x == -(2**31), (2**31, 2**31), {}),
    (lambda x, y: (x * 2.0**40, x == 2.0**40), (2**31, 2**31), {}),
    (lambda x, y: x.clamp(max=2**40), (2**31, 2**31), {}),
    (lambda x, y: torch.clamp_max(x, 2**40), (2**31, 2**31), {}),
    (lambda x, y: torch.clamp_min(x, -(2**40)), (2**31, 2**31), {}),
    (lambda x, y: x + 2**40, (2**31, 2**31), {"add": RESULT}),
    (lambda x, y: x * 2**40 > 0, (2**31, 2**31), {"mul": RESULT, "gt": OPERAND}),
    (lambda x, y: (x > 0) * 2**20 + y[:, None], (2**31, 2**30), {}),
    (lambda x, y: x.to(torch.int8).to(i64) * 2**20, (2**31, 2**31), {}),
    (lambda x, y: (x.to(torch.uint8) * 2, x.to(torch.int16) * 2**14), (2**31, 2**31), {}),
    (lambda x, y: x.prod(), (2**31, 2**31), {"prod": RESULT}),
]


@pytest.mark.parametrize(("function", "limits", "host"), PLANS)
def test_plan(function: Callable[..., Any], limits: tuple[int, int], host: dict[str, str]) -> None:
    gm, plan = planned(function, X, Y)
    assert reasons(gm) == host
    found = {position: limit.interval for position, limit in plan.limits.items()}
    assert found == {i: Interval(-n, min(n, 2**31 - 1)) for i, n in enumerate(limits)}
    assert (plan.flagged, plan.check, plan.checked) == (False, None, [])
    for limit, name in zip(plan.limits.values(), "xy", strict=True):
        assert limit.name == name
        assert bool(limit.cause) == (limit.interval.low > -(2**31))
        assert not limit.cause or "test_exact_plans.py" in limit.cause


def test_inputs_of_the_devices_own_types_have_limits_only_where_these_are_needed() -> None:
    x = torch.ones(3, dtype=torch.int32)
    assert planned(lambda x: x + 1, x)[1].limits == {}  # it wraps
    assert list(planned(lambda x: x.to(i64) + 1, x)[1].limits) == [0]
    assert planned(lambda x: x.to(i64) + 1, x.to(torch.int16))[1].limits == {}
    assert planned(lambda x: x.float() + 1, x)[1].limits == {}


# --- floats that become integers, and indices, are checked by each run

IN_PLACE = (torch.tensor([0, 2]), torch.tensor([-4, 3]))


def runs(function: Callable[..., Any], *inputs: torch.Tensor, flag: bool = True) -> Callable[..., tuple[bool, Any]]:
    """A function that runs a planned program in PyTorch: it returns whether the run passed its checks, and results."""
    gm = graph_of(function, *inputs)
    eager = copied(gm)
    plan = make_exact(gm, strict=False, flag=flag)
    assert reasons(gm) == {}  # nothing needs the host
    assert plan.flagged == flag and (plan.check is None) == flag
    check = plan.check and (lambda inputs: Interpreter(plan.check).run(*inputs))
    runner = ExactRunner(lambda inputs: list(Interpreter(gm).run(*inputs)), eager, plan, (), check)

    def run(*inputs: torch.Tensor) -> tuple[bool, Any]:
        runner._warned = False
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ExactnessWarning)
            results = runner(inputs)
        assert [str(w.message) for w in caught] in ([], [f"a call runs in eager PyTorch: {OUT_OF_RANGE}"])
        return not caught, results

    return run


@pytest.mark.parametrize("flag", [True, False])
def test_floats_that_become_integers_are_checked(flag: bool) -> None:
    run = runs(lambda x: (x.exp() - 1).to(i64) // 2, torch.rand(3), flag=flag)
    below = torch.tensor(2.0**31).nextafter(torch.tensor(0.0)).double().log().float()
    for value, passes in ((0.0, True), (-1.0, True), (float(below) - 1e-4, True), (21.5, False), (torch.nan, False)):
        x = torch.tensor([0.0, 1.0, value])
        passed, (result,) = run(x)
        assert passed == passes, value
        if value == value:
            assert torch.equal(result, (x.exp() - 1).to(i64) // 2)


def bucket(x: torch.Tensor) -> torch.Tensor:
    """The bucket of T5 for a distance, whose logarithm is not read for small ones."""
    far = (x.log() * 3).to(i64) + 16
    return torch.where(x < 2, x.to(torch.int32), far.minimum(torch.full_like(far, 31)))


def test_floats_that_become_integers_have_limits_and_are_checked_only_where_they_are_read() -> None:
    """The sum has no more than 32 bits below a limit of 2^30, so it needs no host. An op that needs 64 bits already
    beyond 2^24 runs on the host instead: the limit stays high."""
    run = runs(bucket, torch.rand(3))
    x = torch.tensor([0.0, 1.0, 5.0, 1e30])
    assert run(x)[0] and torch.equal(run(x)[1][0], bucket(x))
    assert not run(torch.tensor([0.0, torch.inf]))[0]
    read_elsewhere: list[Callable[..., Any]] = [
        lambda x: torch.where(x >= 2, (x.log() * 3).to(i64) + 16, 0),
        lambda x: torch.where(x < 2, 0, (x.log() * 3).to(i64) + 16).sum() + (x.log() * 3).to(i64).sum(),
        lambda x: torch.where(x < 2, 0, (x.log() * 3).to(i64).amax(0, True)),
        lambda x: [(far := (x.log() * 3).to(i64)), torch.where(x < 2, 0, far)],
    ]
    for function in read_elsewhere:
        run = runs(function, torch.rand(4))
        assert run(x + 1)[0] and not run(x)[0]
    run = runs(lambda x: x.to(i64) + 16, torch.rand(3))
    assert run(torch.tensor([2.0**29]))[0] and not run(torch.tensor([2.0**30]))[0]
    assert reasons(planned(lambda x: x.to(i64) * 2**20, torch.rand(3))[0]) == {"mul": RESULT}


@pytest.mark.parametrize("flag", [True, False])
def test_several_indices_are_checked(flag: bool) -> None:
    x, (i, j) = torch.arange(12.0).reshape(3, 4), IN_PLACE
    for function in (lambda x, i, j: x[i, j], lambda x, i, j: x.index_put((i, j), x.new_ones(2))):
        run = runs(function, x, i, j, flag=flag)
        for rows, columns in (([0, 2], [-4, 3]), ([-3, 1], [0, -1])):
            passed, (result,) = run(x, torch.tensor(rows), torch.tensor(columns))
            assert passed and torch.equal(result, function(x, torch.tensor(rows), torch.tensor(columns)))
        for rows, columns in (([3, 0], [0, 0]), ([-4, 0], [0, 0]), ([0, 0], [4, 0]), ([0, 0], [0, -5])):
            with pytest.raises(IndexError):  # from eager PyTorch
                run(x, torch.tensor(rows), torch.tensor(columns))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, i, j: x[i],  # one index: the device finds no element, but never a wrong one
        lambda x, i, j: x[:, j],
        lambda x, i, j: x[i.clamp(-3, 2), j.clamp(-4, 3)],
        lambda x, i, j: x[i.clamp(0, 1), (j > 0).long()],
        lambda x, i, j: (i.clamp(0, 9).float() * 0.5).to(i64),
        lambda x, i, j: (x > 0).to(i64) + i.float().to(i64)[0] * 0,
    ],
)
def test_what_needs_no_check(function: Callable[..., Any]) -> None:
    assert not planned(function, P, *IN_PLACE)[1].flagged


def test_one_index_of_two_is_enough_for_a_check() -> None:
    for function in (lambda x, i, j: x[i.clamp(0, 2), j], lambda x, i, j: x[i.clamp(0, 3), j.clamp(0, 3)]):
        gm, plan = planned(function, P, *IN_PLACE)
        assert plan.flagged
        checked = [n for n in gm.graph.nodes if n.target is torch.ops.aten.ge.Scalar]
        assert len(checked) == 1


def test_a_check_apart_reads_only_the_inputs_that_it_needs() -> None:
    _, plan = planned(lambda x, i, j: (x.sum(), x[i, j]), P, *IN_PLACE, flag=False)
    assert plan.checked == [1, 2] and plan.check is not None
    assert [n.meta["source"] for n in plan.check.graph.nodes if n.op == "placeholder"] == ["y", "z"]


# --- floats of other sizes


def test_float64_is_warned_of_or_marked() -> None:
    x = torch.rand(3, dtype=f64)
    with pytest.warns(Float64Warning, match=r"first by aten\.mul\.Tensor"):
        assert reasons(planned(lambda x: (x * 2).float() + 1, x)[0]) == {}
    marked = "the device computes float64 and float16 in float32"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = reasons(planned(lambda x: (x * 2).float() + 1, x, strict=True)[0])
        assert found == {"mul": marked, "_to_copy": marked}
        found = reasons(planned(lambda x: x.float() * x.sum(), x.half(), strict=True)[0])
        assert found == {"_to_copy": marked, "sum": marked}
        # Neither constants nor scalars of float64 count.
        scalar = torch.tensor(0.5, dtype=f64)
        assert reasons(planned(lambda x, s: x * s, x.float(), scalar, strict=True)[0]) == {}
        assert reasons(planned(lambda x: x + torch.ones(3, dtype=f64).sum(), x.float(), strict=True)[0]) == {}
