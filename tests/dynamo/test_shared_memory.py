"""Outputs that share memory: a write to one of them is seen in the others as in eager PyTorch."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from functools import reduce
from typing import Any

import pytest
import torch
from torch._functorch._aot_autograd.schemas import MemoryFormatMeta
from torch.utils._pytree import tree_leaves

import tt_torch
from tt_torch.torch_private.aot import gradients_in_own_places

VIEWS: dict[str, Callable[[torch.Tensor], Any]] = {
    "reshaped": lambda x: ((y := x + 1), y.view(-1), y.t(), y[1:]),
    "expanded": lambda x: ((y := x[:1] + 1), y.expand(3, 4)),
    "overlapping slices": lambda x: ((y := x.sin())[:, :3], y[:, 1:]),
    "split": lambda x: (x * 2).split(2, 1),
    "one twice": lambda x: ((y := x + 1), y, y.detach()),
    "diagonal": lambda x: ((y := x + 1), y.diagonal(), y[1]),
    "diagonal alone": lambda x: ((x + 1).diagonal(1), x),
    "changed in place": lambda x: ((y := x + 1), y.neg_()),
    "not converted": lambda x: (x.sum(0), (y := x.sum(1)), y.float()),
    "not shared": lambda x: (x + 1, (x + 1).clone()),
    "complex": lambda x: ((y := torch.complex(x, x + 1)), y[0]),
    "a diagonal by einsum": lambda x: ((y := x[:, :3].clone()), torch.einsum("ii->i", y)),
    "parts of complex numbers": lambda x: ((z := torch.complex(x, x + 1)).imag, z.real),
    "complex numbers and a part": lambda x: ((z := torch.complex(x, x + 1)), z.imag[1:]),
    "a part of a diagonal": lambda x: ((z := torch.complex(x, x + 1)).diagonal(), z.real),
    "a conjugate": lambda x: ((z := torch.complex(x, x + 1)), z.conj()),
    "a conjugate of a diagonal": lambda x: ((z := torch.complex(x, x + 1).diagonal()).conj(), z),
    "parts of a conjugate": lambda x: torch.complex(x, x + 1).conj().split(2),
    "the imaginary part of a conjugate": lambda x: ((z := torch.complex(x, x + 1)).mH, z.conj().imag),
    "pairs as complex numbers": lambda x: (torch.view_as_complex(y := x.exp().view(3, 2, 2)), y),
    "bits": lambda x: ((y := x + 1), y[1:].view(torch.int32)),
    "the largest of one": lambda x: ((y := x[:1, :1] + 1), y.cummax(0)[0], y.logcumsumexp(0), y.cumsum(1)),
    "the largest of one input": lambda x: (x[:1, :1].cummax(0)[0], x[:1, :1].logcumsumexp(1), x * 2),
    "changed input": lambda x: (x.add_(1).view(-1), (y := x * 1), y[0]),
    "windows": lambda x: ((y := x + 1), y.unfold(1, 3, 1)),
    "parts of windows": lambda x: (y := (x + 1).unfold(1, 2, 1), y[1:], y[..., ::2]),
    "parts without their whole": lambda x: ((y := (x + 1).unfold(1, 2, 1))[:1], y[2:, 1:]),
    "windows alone": lambda x: (x + 1).unfold(0, 2, 1),
    "given strides": lambda x: ((y := x.t() + 1), y[:2], torch.as_strided(y, (3, 2), (1, 1), 2)),
    "windows of an input": lambda x: (x.unfold(0, 2, 1), x + 1),
    "parts of a Fourier transform": lambda x: ((y := torch.fft.rfft(x, dim=-2).real).sum(), y, y[1:]),
    "mean and a view": lambda x: ((y := x + 1).mean(), y[:2], y[1:]),
}


@pytest.mark.parametrize("name", VIEWS)
def test_writes_are_seen_as_in_eager(name: str) -> None:
    results = []
    for run in (VIEWS[name], torch.compile(VIEWS[name], backend=tt_torch.backend)):
        outputs = tree_leaves(run(torch.arange(12.0).reshape(3, 4)))
        outputs[0].mul_(100)
        outputs[-1].select(0, 0).add_(5)
        results.append(outputs)
    for expected, got in zip(*results, strict=True):
        assert got.stride() == expected.stride()
        torch.testing.assert_close(got, expected)


STEPS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    **{name: lambda v, name=name: getattr(v, name) for name in ("real", "imag", "mT", "mH")},
    **{name: lambda v, name=name: getattr(v, name)() for name in ("conj", "diagonal")},
    "as real": torch.view_as_real,
    "as complex": torch.view_as_complex,
    "one": lambda v: v[0],
    "all but one": lambda v: v[1:],
    "every second": lambda v: v[..., ::2],
    "bits": lambda v: v.view(torch.int32),
    "flat": lambda v: v.view(-1),
    "half": lambda v: v.chunk(2)[1],
    "windows": lambda v: v.unfold(0, 2, 1),
}
MEMORIES: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
    lambda x: x * 2,
    lambda x: torch.complex(x, x + 1),
    lambda x: torch.complex(x, x + 1).diagonal(),
    lambda x: (x * 2).unfold(0, 2, 1),
    lambda x: torch.fft.rfft(x, dim=0),
    lambda x: torch.complex(x, x + 1).permute(1, 0).exp(),
)


def random_views(seed: int) -> Callable[[torch.Tensor], list[torch.Tensor]]:
    """Up to three chains of up to three views of one memory."""
    draw = random.Random(seed)
    memory, chains = draw.choice(MEMORIES), list[list[str]]()

    def views(x: torch.Tensor) -> list[torch.Tensor]:
        return [reduce(lambda v, name: STEPS[name](v), chain, value) for value in [memory(x)] for chain in chains]

    for _ in range(draw.randint(1, 3)):
        chains.append([])
        for name in draw.choices(list(STEPS), k=9):
            chains[-1].append(name)
            try:
                fits = views(torch.ones(4, 4))[-1].numel() > 0
            except (RuntimeError, IndexError):
                fits = False
            if not fits or len(chains[-1]) > 3:
                chains[-1].pop()
    return views


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_views_of_one_memory_share_it(first: int) -> None:
    for seed in range(first, first + 10):
        views, results = random_views(seed), []
        for run in (views, torch.compile(views, backend=tt_torch.backend)):
            outputs = run(torch.arange(16.0).reshape(4, 4))
            before = [x.clone() for x in outputs]
            for x in outputs:
                with suppress(RuntimeError):  # eager PyTorch refuses to write to windows that overlap
                    x.mul_(2)
            memory = [x.untyped_storage().data_ptr() for x in outputs]
            # If a memory has a single reader, it does not matter whether this result is conjugated when it is read.
            lazy = [x.is_conj() and memory.count(at) > 1 for x, at in zip(outputs, memory, strict=True)]
            results.append((before, outputs, [memory.index(each) for each in memory], lazy))
        torch.testing.assert_close(results[1], results[0])


def test_a_change_of_an_output_does_not_change_what_backward_saved() -> None:
    """The saved activation has memory of its own, so the gradient follows from the values before the change."""
    w = torch.ones(4, requires_grad=True)
    whole, part = torch.compile(lambda w: ((y := w.exp()), y[:2]), backend=tt_torch.backend)(w)
    with torch.no_grad():
        part.add_(1)
    torch.testing.assert_close(whole[:2], part)
    whole.sum().backward()
    torch.testing.assert_close(w.grad, torch.ones(4).exp())


STRIDED: dict[str, tuple[Callable[..., Any], torch.Tensor]] = {
    "log_softmax of a permuted float64": (lambda x: x.log_softmax(-2), torch.randn(2, 1, 2, 5, 3).mT.double()),
    "cummax of repeated elements": (lambda x: x.cummax(-1)[0], torch.full((1, 1), 2).expand(3, 1)),
    "logcumsumexp with gaps": (lambda x: x.logcumsumexp(0), torch.randn(1, 128)[:, ::2]),
    "isclose of a diagonal": (lambda x: torch.isclose(x.diagonal(), x.diagonal()), torch.randn(2, 3, 5)),
    "a view beside its base": (lambda x: (y := x.log_softmax(-2), y.mT), torch.randn(2, 1, 2, 5, 3).mT.double()),
    "a slice with gaps": (
        lambda x: x.slice_scatter(x[..., :1] * 0, 2, 0, 1),
        torch.arange(20).view(2, 2, 5)[..., ::2],
    ),
    "the input itself": (lambda x: (x, x.mT), torch.randn(2, 5, 3).mT),
    "windows": (lambda x: (x * 2).unfold(1, 2, 1), torch.randn(3, 5)),
    "windows beside their base": (lambda x: ((y := x + 1), y.unfold(0, 2, 1)), torch.randn(2, 5, 3).mT),
    "windows by strides": (lambda x: (x * 2).as_strided((3, 4, 2), (5, 1, 1)), torch.randn(3, 5)),
}


@pytest.mark.parametrize("name", STRIDED)
def test_strides_are_those_of_eager(name: str) -> None:
    function, x = STRIDED[name]
    for trained in [False, True] if x.is_floating_point() else [False]:
        runs = (function, torch.compile(function, backend=tt_torch.backend))
        eager, ours = (tree_leaves(run(x.detach().requires_grad_(trained))) for run in runs)
        assert [y.requires_grad for y in ours] == [y.requires_grad for y in eager]
        for a, b in zip(ours, eager, strict=True):
            torch.testing.assert_close(a, b, check_stride=True, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["log_softmax of a permuted float64", "windows", "windows by strides"])
def test_gradients_pass_results_of_other_strides(name: str) -> None:
    function, x = STRIDED[name]
    gradients = []
    for run in (function, torch.compile(function, backend=tt_torch.backend)):
        (own := x.detach().requires_grad_()).grad = None
        y = run(own)
        (y * torch.arange(y.numel()).view(y.shape)).sum().backward()
        gradients.append(own.grad)
    torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-5)


def test_aot_autograd_takes_gradients_as_before_after_a_compilation() -> None:
    before = vars(MemoryFormatMeta)["from_tensor"]
    with gradients_in_own_places():
        assert vars(MemoryFormatMeta)["from_tensor"] is not before
    with pytest.raises(ZeroDivisionError), gradients_in_own_places(), gradients_in_own_places():
        _ = 1 / 0
    assert vars(MemoryFormatMeta)["from_tensor"] is before


DETACHED: dict[str, Callable[[torch.Tensor], Any]] = {
    "a part": lambda y: (y, y.detach()[0]),
    "parts": lambda y: (y[1:], y.detach()[:1], y.detach().t()),
    "the first result": lambda y: (y.detach()[1:], y, y.view(-1)),
    "windows": lambda y: (y, y.detach().unfold(0, 2, 1)),
    "a diagonal": lambda y: (y, y.detach().diagonal()),
    "of other strides": lambda y: (z := y.t().double().log_softmax(0), z.detach()[1:], z.detach().t()),
}


@pytest.mark.parametrize("name", DETACHED)
def test_a_detached_result_in_the_memory_of_another_one_has_no_gradients(name: str) -> None:
    gradients = []
    for run in (eager := lambda x: DETACHED[name](x * 2), torch.compile(eager, backend=tt_torch.backend)):
        x = torch.arange(12.0).view(3, 4).requires_grad_()
        results = run(x)
        sum((y.double() * y.double()).sum() for y in results).backward()
        gradients.append([x.grad, *((y, y.requires_grad) for y in results)])
    expected, got = gradients
    torch.testing.assert_close(got, expected)


PARTS: dict[str, Callable[[torch.Tensor], Any]] = {
    "chunk": lambda x: x.chunk(2)[-1],
    "split": lambda x: (x.split(2)[0], x.exp()),
    "unbind": lambda x: x.unbind(1),
    "a part of a part": lambda x: x.chunk(2)[1].mT,
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_a_parameter_share_its_memory(name: str) -> None:
    seen = []
    for run in (PARTS[name], torch.compile(PARTS[name], backend=tt_torch.backend)):
        x = torch.arange(40.0)[4:].reshape(9, 4).requires_grad_()
        parts = tree_leaves(run(x))
        sum(part.sin().sum() for part in parts).backward()
        x.data.mul_(2)
        seen.append([*(part.detach().clone() for part in parts), x.grad])
    torch.testing.assert_close(seen[1], seen[0])


@pytest.mark.parametrize("windows", [lambda x: x.unfold(0, 2, 1), lambda x: x.unfold(0, 1, 2), lambda x: x.diagonal()])
def test_windows_of_a_part_share_the_memory_of_the_parameter(windows: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """On the device, windows are copies. AOTAutograd makes no views of parts of a parameter of a module."""

    class Part(torch.nn.Linear):
        def forward(self) -> torch.Tensor:
            return windows(self.weight.split(3, 1)[-1])

    seen = []
    for backend in "eager", "tt":
        torch.manual_seed(0)
        model = Part(5, 5)
        result = torch.compile(model, backend=backend)()
        result.sin().sum().backward()
        model.weight.data.mul_(2)
        seen.append((result, result.stride(), model.weight.grad))
    torch.testing.assert_close(seen[1], seen[0])


@pytest.mark.parametrize("part", [lambda x: x.chunk(3, -1)[-1], lambda x: x.unbind(0)[2].t()])
def test_windows_beside_parts_share_memory_in_training(part: Callable[[torch.Tensor], torch.Tensor]) -> None:
    def run(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return ((whole := x * 2).unfold(-1, 1, 2), part(whole))

    seen = []
    for each in (run, torch.compile(run, backend=tt_torch.backend)):
        x = torch.arange(60.0).reshape(3, 4, 5).requires_grad_()
        windows, found = each(x)
        sum(y.sin().sum() for y in (windows, found)).backward()
        results = [windows.detach(), found.detach()]
        results[0].mul_(2)
        seen.append([x.grad, *results, *(y.stride() for y in results)])
    torch.testing.assert_close(seen[1], seen[0])


@pytest.mark.parametrize("part", [lambda x: x[0], lambda x: x[:, 1:], lambda x: x.t()])
def test_results_in_a_memory_with_gaps_share_it(part: Callable[[torch.Tensor], torch.Tensor]) -> None:
    def run(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return ((whole := x.slice_scatter(y, -1, 0)), part(whole).copy_(torch.tensor(5.0)))

    x, y = torch.arange(60.0).as_strided((3, 5), (10, 2)), torch.ones(3, 5)
    expected, got = run(x, y), torch.compile(run, backend=tt_torch.backend)(x, y)
    assert [v.stride() for v in got] == [v.stride() for v in expected]
    got[1].fill_(7)
    expected[1].fill_(7)
    torch.testing.assert_close(got, expected)


# Views of a matrix of 4 x 4 that stand between a result and its memory.
MADE: dict[str, Callable[[torch.Tensor], tuple[torch.Tensor, ...]]] = {
    "a transpose and its detached twin": lambda x: ((v := (x * 2).mT), v.detach()),
    "the memory, too": lambda x: ((h := x * 2), (v := h.mT), v.data),
    "a part, its twin, and parts of both": lambda x: ((v := (x * 2)[1:]), (d := v.detach()), v.mT, d.mT),
    "a detached transpose that gets gradients": lambda x: ((t := (x * 2).mT.detach().mul_(x)), t.mT),
    "parts of it": lambda x: ((h := x * 2), (t := h.mT.detach().mul_(x))[1:], t[2:], t),
    "windows": lambda x: ((v := (x * 2).unfold(1, 2, 1)), v.detach(), v.mT),
    "a changed twin": lambda x: ((v := (x * 2).mT), v.detach().mul_(3)),
}


@pytest.mark.parametrize("name", MADE)
def test_views_between_a_result_and_its_memory_are_made_once(name: str) -> None:
    """AOTAutograd alone would make them again, from a result that has them already."""

    def seen(run: Callable[[torch.Tensor], tuple[torch.Tensor, ...]]) -> list[object]:
        x = torch.arange(16.0).view(4, 4).requires_grad_()
        results = run(x)
        sum((y * y.detach().cos()).sum() for y in results if y.requires_grad).backward()
        found = [(y.detach().clone(), y.stride(), y.requires_grad) for y in results]
        with torch.no_grad():
            results[-1].add_(100)  # seen in the results that share its memory
        return [*found, *(y.detach() for y in results), x.grad]

    torch.testing.assert_close(seen(torch.compile(MADE[name], backend=tt_torch.backend)), seen(MADE[name]))


@pytest.mark.filterwarnings("ignore:the graph breaks")
def test_a_tensor_with_two_names_is_one_tensor_behind_a_break() -> None:
    def run(x: torch.Tensor) -> list[object]:
        first = x * 2
        second = first.squeeze_().neg_()
        torch._dynamo.graph_break()
        second.unsqueeze_(2)
        return [first, first is second]

    x = torch.arange(6.0).view(1, 2, 3)
    torch.testing.assert_close(torch.compile(run, backend=tt_torch.backend)(x), run(x))
