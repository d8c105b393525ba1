"""Compares a compiled program with eager PyTorch on the same arguments, and finds what ran on the host.

Arguments are a pair: a tuple, and a dict of keyword arguments.

The tolerances are those of `torch.testing` for the data type. float64 has the tolerance of float32, in which the device
computes it. The roundings of eager PyTorch can add up, for example in a chain of bfloat16 ops; therefore a result is
also right if it is within the tolerance of what eager computes in float64. If PyTorch does not define which of several
equal values an op finds, any of their positions is right.
"""

from __future__ import annotations

import copy
import math
import resource
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TypeAlias

import torch

from tt_torch.accuracy import calculate_atol, calculate_pcc
from tt_torch.config import BackendOptions, CompilerConfig
from tt_torch.driver.backend import compile_captured
from tt_torch.driver.partition import HostFallbackWarning
from tt_torch.dynamo.tracing import traced_for_device
from tt_torch.dynamo.types import Argument, Function, Result
from tt_torch.records.lines import Record
from tt_torch.records.summary import GOOD
from tt_torch.sweep.between import between_graphs, marked
from tt_torch.sweep.compiled import Compiled
from tt_torch.sweep.ties import same_but_for_ties
from tt_torch.torch_private.dynamo import BackendCompilerFailed, counters
from tt_torch.torch_private.tensors import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode
from tt_torch.torch_private.testing import default_tolerances
from tt_torch.torch_private.trees import tree_flatten, tree_leaves, tree_map_only
from tt_torch.workers import engine

Arguments: TypeAlias = tuple[tuple[Argument, ...], dict[str, Argument]]

REQUIRED_PCC = 0.99
_DRAWS = 32  # number of results of a random op that are compared, of eager and of the device
_SEEDS = 9  # a fair coin shows the same side in all of them once in 256 times
_IMPROBABLE = 1e-6  # for equal distributions: a sweep makes some thousand such comparisons
_MESSAGE_CHARACTERS = 400
_FLOAT32: dict[str, float] = dict(zip(("rtol", "atol"), default_tolerances(torch.float32), strict=True))


class Mismatch(Exception):
    """The compiled program's result is not eager's."""


def check_sample(
    function: Function, arguments: Arguments, initialized: bool = True, compiler: str = "tt-torch"
) -> Record:
    """Compiles `function` and compares it with eager; returns verdict, error, what ran on the host, and its cost.

    Verdicts: match, wrong, error (only the compiled program raises), eager-raises-same. Arguments that the
    function writes to are compared too. Without `initialized`, only shapes and dtypes of results are compared.
    `compiler` is a value of the option of this name.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        eager = _Run(function, arguments, seed=0)
        randomly = initialized and eager.drew and not _repeats(eager, function, arguments)
        static = _is_static(function, arguments)
    compiled, report, callable_ = _compile(function, arguments, compiler, Compiled())

    def compare() -> None:
        if randomly:
            _compare_distributions(function, callable_, arguments, eager, compiled)
            return
        try:
            _compare(eager, compiled, initialized)
        except Mismatch:
            x = next(iter(arguments[0]), None)
            tied = same_but_for_ties(compiled.result, eager.result, x)
            if not tied and not _is_exact(function, arguments, eager, compiled):
                raise

    return _reached({**_verdict(compare, eager, compiled), "random": randomly, "static": static, **report})


def check_model(module: torch.nn.Module, arguments: Arguments, compiler: str = "tt-torch") -> Record:
    """Like `check_sample`, for a whole model. Its results agree if their correlation is at least REQUIRED_PCC.

    The record also has the lowest correlation and the largest difference of all results, and what `Compiled.contents`
    gives. A model that eager PyTorch cannot run is an error, because nothing is compared.
    """
    figures: dict[str, float] = {}
    programs = Compiled()
    with torch.no_grad():
        eager = _Run(module, arguments, seed=0)
        compiled, report, _ = _compile(module, arguments, compiler, programs)
        verdict = _verdict(lambda: figures.update(_correlate(eager, compiled)), eager, compiled)
    if eager.error is not None:
        message = f"eager PyTorch raises {type(eager.error).__name__}: {_first_line(eager.error)}"
        verdict = {"verdict": "error", "error": type(eager.error).__name__, "message": message[:_MESSAGE_CHARACTERS]}
        figures.clear()
    if figures and not figures["pcc"] >= REQUIRED_PCC:
        message = f"PCC {figures['pcc']:.6f}, required {REQUIRED_PCC}"
        verdict = {"verdict": "wrong", "error": "Mismatch", "message": message}
    return _reached({**verdict, **figures, **report, **programs.contents()})


def _reached(record: Record) -> Record:
    """Adds to the record how far the program came. If it raised an exception, this was noted while it compiled."""
    if record["verdict"] in GOOD:
        return record | {"depth": "PASSED"}
    return record | {"depth": "EXECUTE"} if record["verdict"] == "wrong" else record


def _verdict(compare: Callable[[], None], eager: _Run, compiled: _Run) -> Record:
    try:
        compare()
    except Mismatch as difference:
        raised = compiled.error is not None
        error = type(compiled.error).__name__ if raised else "Mismatch"
        message = str(difference)[:_MESSAGE_CHARACTERS]
        return {"verdict": "error" if raised else "wrong", "error": error, "message": message}
    if eager.error is None:
        return {"verdict": "match"}
    message = _first_line(eager.error)[:_MESSAGE_CHARACTERS]
    return {"verdict": "eager-raises-same", "error": type(eager.error).__name__, "message": message}


class _Run:
    """A call on copies of its arguments: the result or exception, the arguments afterwards, and whether it drew random
    numbers."""

    def __init__(self, function: Function, arguments: Arguments, seed: int) -> None:
        self.arguments = _copied(arguments)
        self.result = self.error = None
        state = torch.manual_seed(seed).get_state()
        try:
            self.result = function(*self.arguments[0], **self.arguments[1])
        except Exception as error:
            inner = isinstance(error, BackendCompilerFailed)
            self.error = error.inner_exception if inner else error  # type: ignore[attr-defined]
        self.drew = not torch.equal(state, torch.get_rng_state())


def _copied(arguments: Arguments) -> Arguments:
    """A copy with the same strides and the same aliases."""
    sparse = (
        leaf for leaf in tree_leaves(arguments) if isinstance(leaf, torch.Tensor) and leaf.layout != torch.strided
    )
    # deepcopy needs a storage, which sparse tensors do not have
    memo: dict[int, torch.Tensor] = {id(leaf): leaf.clone() for leaf in sparse}
    return copy.deepcopy(arguments, memo)


def _config(compiler: str) -> CompilerConfig:
    """The options of a compilation, from the environment. The cache is off, because the record has the compile time."""
    config = CompilerConfig().with_env()
    theirs = config.tt_mlir_options if compiler == "tt-mlir" else ()
    return config.frozen(compiler=compiler, tt_mlir_options=theirs, cache_size=0)


def _compile(
    function: Function, arguments: Arguments, compiler: str, programs: Compiled
) -> tuple[_Run, Record, Function]:
    """The first call of the compiled function; a record of its cost and of what ran on the host; and the function."""
    graphs = 0
    options = BackendOptions(compiler_config=_config(compiler))

    @traced_for_device
    def counting(gm: torch.fx.GraphModule, inputs: Sequence[torch.Tensor]) -> Function:
        nonlocal graphs
        graphs += 1
        return marked(compile_captured(gm, inputs, options, programs.observer()))

    engine.note(depth="FAILED_FE")
    torch.compiler.reset()
    counters.clear()
    compiled = torch.compile(function, backend=counting, fullgraph=False, dynamic=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        begin, cpu_begin = time.perf_counter(), _cpu_seconds()
        run = _Run(compiled, arguments, seed=0)
        seconds, cpu_seconds = time.perf_counter() - begin, _cpu_seconds() - cpu_begin
    host = [asdict(op) for w in caught if isinstance(w.message, HostFallbackWarning) for op in w.message.ops]
    breaks = [_short(reason) for reason in counters["graph_break"]]
    if not graphs and run.error is None and not breaks and _computes(run):
        host.append({"op": "all", "count": 1, "reason": "Dynamo made no graph of it"})
    cost = {"seconds": round(seconds, 4), "cpu_seconds": round(cpu_seconds, 4)}
    report = {"host_ops": host, "graph_breaks": breaks, "graphs": graphs, **cost}
    if breaks and run.error is None:
        args, kwargs = _copied(arguments)
        report["between_graphs"] = between_graphs(lambda: compiled(*args, **kwargs))
    return run, {**report, "binary_bytes": programs.binary_bytes()}, compiled


def _cpu_seconds() -> float:
    """The processor time of this process and of its children that have ended, such as those of `mlir/guard.py`."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _computes(run: _Run) -> bool:
    """Whether any result is a tensor that is not one of the arguments or a view of one."""
    storages = {leaf.untyped_storage().data_ptr() for leaf in _tensors(run.arguments)}
    return any(leaf.untyped_storage().data_ptr() not in storages for leaf in _tensors(run.result))


def _tensors(tree: object) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor) and leaf.layout == torch.strided]


def _is_static(function: Function, arguments: Arguments) -> bool:
    """Whether the shapes of the results follow from the shapes of the arguments."""
    mode = FakeTensorMode()
    try:
        with mode:
            args, kwargs = tree_map_only(torch.Tensor, mode.from_tensor, arguments)
            function(*args, **kwargs)
    except (DataDependentOutputException, DynamicOutputShapeException):
        return False
    except Exception:  # eager or the compiled program will raise it too
        return True
    return True


def _repeats(first: _Run, function: Function, arguments: Arguments) -> bool:
    """Whether all seeds give the same result: svd_lowrank draws numbers, but its result does not depend on them."""
    try:
        for seed in range(1, _SEEDS):
            _compare(first, _Run(function, arguments, seed), values=True)
    except Mismatch:
        return False
    return True


def _compare(eager: _Run, compiled: _Run, values: bool) -> None:
    for value, golden in _leaves(eager, compiled):
        _compare_leaf(value, golden, values)


def _is_exact(function: Function, arguments: Arguments, eager: _Run, compiled: _Run) -> bool:
    """Whether the differing results are within the same tolerance of eager's results in float64."""
    exact = _Run(function, _widened(arguments), seed=0)
    if eager.error is not None or compiled.error is not None or exact.error is not None:
        return False
    truths = tree_leaves((exact.result, exact.arguments))
    pairs = _leaves(eager, compiled)
    try:
        for (value, golden), truth in zip(pairs, truths, strict=True):
            floating = isinstance(golden, torch.Tensor) and (golden.is_floating_point() or golden.is_complex())
            if not (floating and _is_close(value, truth.to(golden.dtype))):
                _compare_leaf(value, golden, values=True)
    except (Mismatch, ValueError):  # ValueError: the function returns another structure in float64
        return False
    return True


def _is_close(value: object, golden: torch.Tensor) -> bool:
    try:
        _compare_leaf(value, golden, values=True)
    except Mismatch:
        return False
    return True


def _widened(arguments: Arguments) -> Arguments:
    """The arguments with float64 and complex128 instead of narrower types, also for arguments that are dtypes."""

    def wide(value: Result) -> Result:
        dtype = value if isinstance(value, torch.dtype) else value.dtype
        wider = torch.complex128 if dtype.is_complex else torch.float64 if dtype.is_floating_point else dtype
        return wider if isinstance(value, torch.dtype) else value.to(wider)

    with torch.no_grad():
        return tree_map_only((torch.Tensor, torch.dtype), wide, arguments)


def _leaves(eager: _Run, compiled: _Run) -> list[tuple[Result, Result]]:
    """Pairs of compiled and right results; no pair if both raise the same exception."""
    if eager.error is not None:
        _compare_errors(eager.error, compiled.error)
        return []
    if compiled.error is not None:
        raise Mismatch(_first_line(compiled.error))
    expected, spec = tree_flatten((eager.result, eager.arguments))
    got, got_spec = tree_flatten((compiled.result, compiled.arguments))
    if spec != got_spec:
        raise Mismatch(f"structure of the results: got {got_spec}, expected {spec}")
    return list(zip(got, expected, strict=True))


def _correlate(eager: _Run, compiled: _Run) -> dict[str, float]:
    """The lowest correlation and the largest difference. Results that are not floating-point must be equal."""
    pcc, atol = 1.0, 0.0
    for value, golden in _leaves(eager, compiled):
        floating = isinstance(golden, torch.Tensor) and golden.is_floating_point()
        _compare_leaf(value, golden, values=not floating)
        if floating and golden.numel():
            pcc = min(pcc, calculate_pcc(value, golden))
            atol = max(atol, calculate_atol(value, golden), key=lambda x: (math.isnan(x), x))
    return {"pcc": pcc, "atol": atol}


def _compare_errors(expected: BaseException, got: BaseException | None) -> None:
    if got is None:
        raise Mismatch(f"eager raises {type(expected).__name__}: {_first_line(expected)}")
    if not isinstance(got, type(expected)):
        raise Mismatch(f"eager raises {type(expected).__name__}, not this: {_first_line(got)}")


def _compare_leaf(value: Result, golden: Result, values: bool) -> None:
    if type(value) is not type(golden):
        raise Mismatch(f"type: got {type(value).__name__}, expected {type(golden).__name__}")
    if not isinstance(golden, torch.Tensor | float | complex):
        if not callable(golden) and value != golden:  # copies of functions are not equal
            raise Mismatch(f"got {value!r}, expected {golden!r}")
        return
    if isinstance(golden, torch.Tensor) and not values:
        value, golden = (torch.empty_like(t, device="meta") for t in (value, golden))
    dtype = golden.dtype if isinstance(golden, torch.Tensor) else torch.float64
    tolerance = _FLOAT32 if dtype in (torch.float64, torch.complex128) else {}
    try:
        torch.testing.assert_close(value, golden, equal_nan=True, check_stride=False, **tolerance)
    except AssertionError as difference:
        raise Mismatch(_short(difference)) from None


def _compare_distributions(
    function: Function, compiled: Function, arguments: Arguments, first: _Run, first_compiled: _Run
) -> None:
    """Checks that mean and spread of each random result, over several draws, have the same distribution in both."""
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
