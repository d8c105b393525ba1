"""Captured graphs in the compile cache: a hit gives the same as a compilation, and other graphs have other keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import checkpoint

import tt_torch
from tests.driver.key_pairs import disagreements
from tt_torch.config import CompilerConfig
from tt_torch.driver import backend
from tt_torch.driver.cache import graph_text, graphs
from tt_torch.driver.cache.store import Store
from tt_torch.driver.exact_runner import ExactnessWarning
from tt_torch.dynamo.exactness.plan import Float64Warning
from tt_torch.dynamo.types import Function
from tt_torch.torch_private import state
from tt_torch.torch_private.aot import TracingContext, tracing
from tt_torch.torch_private.tensors import FakeTensorMode, TorchDispatchMode

X = torch.linspace(-2, 2, 12).reshape(3, 4)
I = torch.tensor([2, 0, 1])  # noqa: E741


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Grows by one with each trace of AOTAutograd."""
    done: list[object] = []
    trace = backend._aot

    def counted(*arguments: Any) -> Function:
        done.append(arguments[0])
        return trace(*arguments)

    monkeypatch.setattr(backend, "_aot", counted)
    return done


def again(function: Function) -> Function:
    """The function, compiled as in a new process."""
    torch._dynamo.reset()
    return torch.compile(function, backend=tt_torch.backend, dynamic=False)


def same(x: torch.Tensor, y: torch.Tensor) -> bool:
    return x.dtype == y.dtype and x.stride() == y.stride() and torch.equal(x, y)


def two_of_one_memory(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = x * 2
    return y, y[1:]


KEPT: dict[str, tuple[Function, tuple[torch.Tensor, ...]]] = {
    "outputs and strides": (lambda x: (x.sum(0), (x * 3).long(), F.log_softmax(x.t(), 0)), (X,)),
    "scattered": (lambda x: (x + 1).unfold(1, 2, 1), (X,)),
    "complex": (lambda x: torch.view_as_complex(x.reshape(3, 2, 2)) * 1j, (X,)),
    "constants": (lambda x: x + torch.arange(4) * torch.tensor([1.0, 2.0, 3.0, 4.0]), (X,)),
    "integers": (lambda x, i: x[i] * i[:, None], (X, I)),
    "shared memory": (two_of_one_memory, (X,)),
    "same input twice": (lambda x, y: x @ y.t(), (X, X)),
}


@pytest.mark.parametrize("name", KEPT)
def test_a_hit_gives_what_a_compilation_gives(name: str, cache: Store, traces: list[object]) -> None:
    function, inputs = KEPT[name]
    cold = again(function)(*inputs)
    warm = again(function)(*inputs)
    assert len(traces) == 1 and cache.stats().hits == 1
    results = [v if isinstance(v, tuple) else (v,) for v in (cold, warm)]
    assert all(same(x, y) for x, y in zip(*results, strict=True))
    memory = [[x.untyped_storage().data_ptr() == v[0].untyped_storage().data_ptr() for x in v] for v in results]
    assert memory[0] == memory[1]


def test_weights_are_those_of_the_second_model(cache: Store, traces: list[object]) -> None:
    for seed in range(3):
        torch.manual_seed(seed)
        model, x = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.GELU()).eval(), torch.randn(3, 4)
        model[1].running_mean.fill_(seed)
        with torch.no_grad():
            compiled = again(model)
            torch.testing.assert_close(compiled(x), model(x))
            model[0].weight.mul_(2)
            torch.testing.assert_close(compiled(x), model(x))
    assert len(traces) == 1 and cache.stats().hits == 2


def test_a_call_that_needs_eager_pytorch_gets_it(cache: Store, traces: list[object]) -> None:
    """A program of the cache has no graph for eager PyTorch. The graph is traced when a call first needs it."""

    def function(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return F.embedding(i, x) * (i * i)[:, None]

    again(function)(X, I)
    compiled = again(function)
    assert same(compiled(X, I), function(X, I)) and len(traces) == 1
    with pytest.raises(IndexError, match="index out of range"):
        compiled(X, torch.tensor([2, 0, 7]))
    assert same(compiled(X, I), function(X, I)) and len(traces) == 2
    big = torch.tensor([2, 0, 1 << 40])
    squares = again(lambda i: i * i)
    squares(I)
    squares = again(lambda i: i * i)
    with pytest.warns(ExactnessWarning):
        assert torch.equal(squares(big), big * big)
    assert torch.equal(squares(I), I * I)


def writes(x: torch.Tensor) -> torch.Tensor:
    x.mul_(2)
    return x + 1


NOT_KEPT: dict[str, tuple[Function, tuple[torch.Tensor, ...]]] = {
    "writes": (writes, (X,)),
    "a view of an input": (lambda x: x[1:], (X,)),
    "checks of values": (torch.linalg.inv, (torch.eye(3) * 2,)),
    "random numbers": (lambda x: x + torch.rand(4), (X,)),
    "host ops": (lambda x: torch.linalg.eigvals(x[:, :3]).abs() + 1, (X,)),
    "gradients": (lambda x: x * 2, (X.clone().requires_grad_(),)),
}


@pytest.mark.filterwarnings("ignore::tt_torch.driver.partition.HostFallbackWarning")
@pytest.mark.parametrize("name", NOT_KEPT)
def test_other_graphs_are_not_kept(name: str, cache: Store) -> None:
    function, inputs = NOT_KEPT[name]
    again(function)(*(x.detach().clone().requires_grad_(x.requires_grad) for x in inputs))
    entries = [cache.read(path.stem) for path in cache.folder.glob("*.ttcache")]
    assert not [data for data, _ in filter(None, entries) if "graph" in data]


def test_a_graph_with_conditions_on_memory_is_not_kept(cache: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "guards_of_aliases", lambda: 1)
    again(torch.relu)(X)
    assert cache.stats().entries == 1  # the binary


def test_a_warning_of_the_compiler_is_given_each_time(cache: Store) -> None:
    for _ in range(2):
        with pytest.warns(Float64Warning):
            again(lambda x: x * 2)(X.double())


# --- keys -----------------------------------------------------------------------------------


def key_of(function: Function, *inputs: Any) -> str | None:
    """The key of the only graph of a call. Nothing is compiled."""
    found: list[str | None] = []

    def look(gm: torch.fx.GraphModule, examples: list[object]) -> Function:
        found.append(graphs._key(gm, examples, CompilerConfig()))
        return gm.forward

    torch._dynamo.reset()
    torch.compile(function, backend=look, dynamic=False)(*inputs)
    (key,) = found
    return key


def lines(text: str) -> Function:
    """A function of x (and y) with these lines. Equal texts have equal lines in stack traces."""
    names: dict[str, Any] = {"torch": torch, "F": F}
    exec(compile(f"def f(x, y=None):\n    return {text}", "f.py", "exec"), names)
    return names["f"]


TEXTS = """
x * 2.0; x * 2; x * True; x * 0.0; x * -0.0; x * float('nan'); x * 1e-45; x / 2.0; 2.0 * x; x * 2j; x ** 2
x.sum(0); x.sum((0,)); x.sum(0, True); x.sum(0, dtype=torch.bfloat16); x.sum(1); x.sum(); x.sum(None)
x[0:2]; x[:2]; x[0:2:1]; x[..., 0]; x[0]; x[:, None]; x[None, :]
x.to(torch.bfloat16); x.to(torch.float16); x.clone(); x.clone(memory_format=torch.contiguous_format)
F.relu(x); torch.relu(x); x.relu(); F.gelu(x); F.gelu(x, approximate='tanh'); F.relu(x * 2.0)
F.max_pool1d(x, 2); F.avg_pool1d(x, 2); F.max_pool1d(x, 2, return_indices=True)
""".replace("\n", ";").split(";")  # fmt: skip


def test_no_two_programs_have_one_key() -> None:
    texts = [text.strip() for text in TEXTS if text.strip()]
    found = {text: key_of(lines(text), X) for text in texts}
    assert None not in found.values() and len(set(found.values())) == len(texts) == len(set(texts))
    assert found[texts[0]] == key_of(lines(texts[0]), X)


def buffers(kind: type) -> tuple[nn.Module, torch.Tensor]:
    module = nn.Module()
    setattr(module, "w", nn.Parameter(X, False)) if kind is nn.Parameter else module.register_buffer("w", X.clone())
    module.forward = lambda x: x + module.w  # type: ignore[method-assign]
    return module, X


def test_no_two_forms_of_inputs_have_one_key() -> None:
    wide = torch.zeros(3, 8)
    with torch.inference_mode():
        inference = X.clone()
    x = [
        *(X, X.double(), X.int(), X.to(torch.bfloat16), X.bool(), X[:2].clone(), X.reshape(4, 3), X.reshape(1, 3, 4)),
        *(X.t().contiguous().t(), wide[:, :4], wide[:, 4:], wide[:, ::2], X[None].expand(2, 3, 4), X[0], X[0, 0]),
        *(X.clone().requires_grad_(), nn.Parameter(X), nn.Parameter(X, False), inference),
        *(X.to(torch.complex64), X.to(torch.complex64).conj(), X.to(torch.complex64).conj().imag),
    ]
    one, two = X.clone(), X.clone()
    with torch.no_grad():
        found = [key_of(lines("x + 1"), each) for each in x]
        found += [key_of(lines("x + y"), *pair) for pair in ((one, two), (one, one.view(3, 4)))]
        torch._dynamo.mark_static_address(two)
        found += [key_of(lines("x + 1"), two)]
        found += [key_of(*buffers(kind)) for kind in (nn.Parameter, torch.Tensor)]
        found += [key_of(lambda other: other + 1, X), key_of(lambda x: x + 1, X)]  # two lines, two names
    assert None not in found and len(set(found)) == len(found)


def settings() -> Iterator[tuple[Callable[[], object], Callable[[], object]]]:
    """Ways to change a setting, and to change it back."""
    yield lambda: torch.set_default_dtype(torch.bfloat16), lambda: torch.set_default_dtype(torch.float32)
    yield lambda: torch.use_deterministic_algorithms(True), lambda: torch.use_deterministic_algorithms(False)
    precision = torch.set_float32_matmul_precision
    yield lambda: precision("high"), lambda: precision("highest")
    flash = torch.backends.cuda.enable_flash_sdp
    yield lambda: flash(False), lambda: flash(True)
    yield lambda: torch.set_grad_enabled(False), lambda: torch.set_grad_enabled(True)
    views = torch._functorch.config
    yield lambda: setattr(views, "functionalize_rng_ops", True), lambda: setattr(views, "functionalize_rng_ops", False)


def test_settings_of_pytorch_are_in_the_key() -> None:
    found = [key_of(lines("x + 1"), X)]
    for change, undo in settings():
        change()
        try:
            found.append(key_of(lines("x + 1"), X))
        finally:
            undo()
    assert None not in found and len(set(found)) == len(found)
    assert key_of(lines("x + 1"), X) == found[0]


@torch.compiler.allow_in_graph
def of_the_user(x: torch.Tensor) -> torch.Tensor:
    return x + 1


@torch.library.custom_op("tt_torch_tests::cached_graphs", mutates_args=())
def custom(x: torch.Tensor) -> torch.Tensor:
    return x + 1


custom.register_fake(lambda x: torch.empty_like(x))


@pytest.mark.parametrize(
    ("function", "x", "context"),
    [
        (lines("x + 1"), X.clone().requires_grad_(), nullcontext()),
        (lines("x + 1"), X, torch.autocast("cpu", torch.bfloat16)),
        (lambda x: of_the_user(x), X, nullcontext()),
        (custom, X, nullcontext()),
        (lambda x: checkpoint(torch.relu, x, use_reentrant=False), X, nullcontext()),
        (lines("x + 1"), X.to_sparse().to_dense().to("meta"), nullcontext()),
    ],
    ids=["gradients", "autocast", "a function", "a custom op", "a graph inside", "another device"],
)
def test_what_a_key_cannot_tell_has_none(function: Function, x: torch.Tensor, context: AbstractContextManager) -> None:
    with context:
        assert key_of(function, x) is None


def test_symbolic_sizes_have_no_key() -> None:
    found = []

    def look(gm: torch.fx.GraphModule, examples: list[object]) -> Function:
        found.append(graphs._key(gm, examples, CompilerConfig()))
        return gm.forward

    torch.compile(lambda x: x + 1, backend=look, dynamic=True)(X)
    assert found == [None]


def test_a_kernel_of_the_user_for_an_op_of_pytorch_leaves_no_key() -> None:
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("special_zeta", lambda x, y: x, "CompositeImplicitAutograd", allow_override=True)
        assert key_of(lines("x + 1"), X) is None
    assert key_of(lines("x + 1"), X)


def test_pytorchs_own_kernels_for_vmap_leave_the_key() -> None:
    torch.vmap(torch.exp)(X)
    assert key_of(lines("x + 1"), X)


@pytest.mark.parametrize("mode", [TorchFunctionMode(), TorchDispatchMode()])
def test_a_mode_around_the_compiler_leaves_no_key(mode: AbstractContextManager) -> None:
    with tracing(TracingContext(FakeTensorMode())):
        assert state.settings()
        with mode:
            assert state.settings() is None
    assert state.settings() is None  # nothing is traced


def test_all_metadata_that_we_read_is_known() -> None:
    """The package reads only those metadata of nodes that are in the key's text, or that it makes itself from these."""
    made = set("val desc source inexact constant recompute fwd_nn_module_stack original_aten".split())
    folder = Path(tt_torch.__file__).parent
    files = [path for part in ("driver", "dynamo", "mlir", "torch_private") for path in (folder / part).rglob("*.py")]
    read = {name for path in files for name in re.findall(r'meta(?:\.get\(|\[)"(\w+)"', path.read_text())}
    assert read - made <= {*graph_text.METADATA, "example_value", "grapharg", "tensor_dict"}


@pytest.mark.filterwarnings("ignore")
def test_programs_that_differ_in_one_thing_share_no_key(cache: Store) -> None:
    """`python -m tests.driver.key_pairs` tries more of them."""
    assert disagreements([1], length=2) == ([], True)
