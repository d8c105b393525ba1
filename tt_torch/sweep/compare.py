"""One program, compiled and eager, on the same arguments: do they agree, and what ran on the host?"""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch._dynamo.exc import BackendCompilerFailed
from torch._dynamo.utils import counters
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
)
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map_only

from tt_torch.dynamo.backend import backend

_DRAWS = 32  # of a random op, from eager and from the device
_SEEDS = 9  # a fair coin falls on one side so often once in 256 times
_IMPROBABLE = 1e-6  # of equal distributions: a sweep makes some thousand such comparisons
_MESSAGE_CHARACTERS = 400


class Mismatch(Exception):
    """The compiled program's result is not eager's."""


def check_sample(function: Callable[..., Any], arguments: tuple, initialized: bool = True) -> dict[str, Any]:
    """Compiles `function` and compares with eager; returns verdict, error, what ran on the host, and seconds.

    Verdicts: match, wrong, error (only the compiled program raises), eager-raises-same. Arguments that the
    function writes to are compared too. Results that are not `initialized` agree in shape and dtype only.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eager = _Run(function, arguments, seed=0)
        randomly = initialized and eager.drew and not _repeats(eager, function, arguments)
        static = _is_static(function, arguments)
    compiled, report = _compile(function, arguments)
    try:
        if randomly:
            _compare_distributions(function, report.pop("callable"), arguments, eager, compiled)
        else:
            _compare(eager, compiled, initialized)
        verdict = {"verdict": "match" if eager.error is None else "eager-raises-same"}
    except Mismatch as difference:
        raised = compiled.error is not None
        error = type(compiled.error).__name__ if raised else "Mismatch"
        verdict = {
            "verdict": "error" if raised else "wrong",
            "error": error,
            "message": str(difference)[:_MESSAGE_CHARACTERS],
        }
    report.pop("callable", None)
    return {**verdict, "random": randomly, "static": static, **report}


class _Run:
    """A call on copies of its arguments: result or exception, the arguments afterwards, were random numbers drawn."""

    def __init__(self, function: Callable[..., Any], arguments: tuple, seed: int) -> None:
        self.arguments = copy.deepcopy(arguments)  # keeps strides and what aliases what
        self.result = self.error = None
        state = torch.manual_seed(seed).get_state()
        try:
            self.result = function(*self.arguments)
        except Exception as error:
            inner = isinstance(error, BackendCompilerFailed)
            self.error = error.inner_exception if inner else error  # type: ignore[attr-defined]
        self.drew = not torch.equal(state, torch.get_rng_state())


def _compile(function: Callable[..., Any], arguments: tuple) -> tuple[_Run, dict[str, Any]]:
    """The first call of the compiled function, and what it cost and left on the host."""
    graphs = 0

    def counting(gm: torch.fx.GraphModule, inputs: Any) -> Any:
        nonlocal graphs
        graphs += 1
        return backend(gm, inputs)

    torch._dynamo.reset()
    counters.clear()
    compiled = torch.compile(function, backend=counting, fullgraph=False, dynamic=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        begin = time.perf_counter()
        run = _Run(compiled, arguments, seed=0)
        seconds = time.perf_counter() - begin
    host = [op for warning in caught for op in _host_ops(warning.message)]
    breaks = [_short(reason) for reason in counters["graph_break"]]
    if not graphs and run.error is None and not breaks and _computes(run):
        host.append({"op": "all", "count": 1, "reason": "Dynamo made no graph of it"})
    report = {"host_ops": host, "graph_breaks": breaks, "graphs": graphs, "seconds": round(seconds, 4)}
    return run, {**report, "callable": compiled}


def _host_ops(warning: Any) -> list[dict[str, Any]]:
    if type(warning).__name__ != "HostFallbackWarning":
        return []
    fields = ("op", "count", "location", "reason", "bytes")
    return [{name: getattr(op, name) for name in fields} for op in warning.ops]


def _computes(run: _Run) -> bool:
    """Whether any result is a tensor that is not one of the arguments or a view of one."""
    storages = {leaf.untyped_storage().data_ptr() for leaf in _tensors(run.arguments)}
    return any(leaf.untyped_storage().data_ptr() not in storages for leaf in _tensors(run.result))


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided]


def _is_static(function: Callable[..., Any], arguments: tuple) -> bool:
    """Whether shapes of results follow from shapes of arguments."""
    mode = FakeTensorMode()
    try:
        with mode:
            function(*tree_map_only(torch.Tensor, mode.from_tensor, arguments))
    except (DataDependentOutputException, DynamicOutputShapeException):
        return False
    except Exception:  # whatever it is, eager or the compiled program shows it too
        return True
    return True


def _repeats(first: _Run, function: Callable[..., Any], arguments: tuple) -> bool:
    """Whether other seeds give the same result: svd_lowrank draws numbers, but its result does not show them."""
    try:
        for seed in range(1, _SEEDS):
            _compare(first, _Run(function, arguments, seed), values=True)
    except Mismatch:
        return False
    return True


def _compare(eager: _Run, compiled: _Run, values: bool) -> None:
    if eager.error is not None:
        _compare_errors(eager.error, compiled.error)
        return
    if compiled.error is not None:
        raise Mismatch(_first_line(compiled.error))
    expected, spec = tree_flatten((eager.result, eager.arguments))
    got, got_spec = tree_flatten((compiled.result, compiled.arguments))
    if spec != got_spec:
        raise Mismatch(f"structure of the results: got {got_spec}, expected {spec}")
    for value, golden in zip(got, expected, strict=True):
        _compare_leaf(value, golden, values)


def _compare_errors(expected: BaseException, got: BaseException | None) -> None:
    if got is None:
        raise Mismatch(f"eager raises {type(expected).__name__}: {_first_line(expected)}")
    if not isinstance(got, type(expected)):
        raise Mismatch(f"eager raises {type(expected).__name__}, not this: {_first_line(got)}")


def _compare_leaf(value: Any, golden: Any, values: bool) -> None:
    if type(value) is not type(golden):
        raise Mismatch(f"type: got {type(value).__name__}, expected {type(golden).__name__}")
    if not isinstance(golden, torch.Tensor | float | complex):
        if not callable(golden) and value != golden:  # functions among the arguments are copied, not equal
            raise Mismatch(f"got {value!r}, expected {golden!r}")
        return
    if isinstance(golden, torch.Tensor) and not values:
        value, golden = (torch.empty_like(t, device="meta") for t in (value, golden))
    try:
        torch.testing.assert_close(value, golden, equal_nan=True, check_stride=False)
    except AssertionError as difference:
        raise Mismatch(_short(difference)) from None


def _compare_distributions(
    function: Callable[..., Any], compiled: Callable[..., Any], arguments: tuple, first: _Run, first_compiled: _Run
) -> None:
    """Mean and spread of each random result, over some draws, come from the same distribution in both."""
    from scipy.stats import ks_2samp

    _compare(first, first_compiled, values=False)
    draws = [[_moments(_Run(run, arguments, seed)) for seed in range(_DRAWS)] for run in (function, compiled)]
    expected, got = (torch.tensor(drawn, dtype=torch.float64) for drawn in draws)
    for column in range(expected.shape[1]):
        a, b = expected[:, column], got[:, column]
        if torch.allclose(a, b, rtol=1e-3, atol=1e-3, equal_nan=True):
            continue
        probability = ks_2samp(a, b).pvalue
        if probability < _IMPROBABLE:
            raise Mismatch(f"random result: moment {column} has mean {b.mean():.4g}, eager's has {a.mean():.4g}")


def _moments(run: _Run) -> list[float]:
    if run.error is not None:
        raise Mismatch(_first_line(run.error))
    leaves = (leaf for leaf in _tensors(run.result) if leaf.numel())
    values = [torch.view_as_real(leaf) if leaf.is_complex() else leaf for leaf in leaves]
    wide = [value.detach().double() for value in values]
    return [moment for value in wide for moment in (value.mean().item(), value.std(correction=0).item())]


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]


def _short(text: object) -> str:
    return " ".join(str(text).split())[:_MESSAGE_CHARACTERS]
