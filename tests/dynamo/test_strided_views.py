"""Reads and writes of a result by strides name places in memory. They are those of eager PyTorch, whatever strides a
decomposition gives the result."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch


def _memory(base: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A write by strides to a part, and the whole in which it is seen."""
    whole = base.t().masked_scatter(base.t() > 0, torch.arange(48.0))
    part = whole.chunk(2)[1]
    part.as_strided((3,), (5,)).mul_(2)
    return whole, part


def _write_beside(x: torch.Tensor, read: Callable[[torch.Tensor], torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """A view or a copy of a result that has its columns together in memory, before a write to this result."""
    result = torch.linalg.solve(x[:6, :6] + 9 * torch.eye(6), x)
    other = read(result)
    result.mul_(2)
    return other, result


WAYS: dict[str, Callable[[torch.Tensor], object]] = {
    "one row of positions": lambda x: x[:1].cummax(0)[1].fill_diagonal_(-128),
    "fill_value by name": lambda x: x[:1].cummin(0)[1].fill_diagonal_(fill_value=3),
    "a tall matrix that wraps": lambda x: x[:, :2].cummax(0)[1].fill_diagonal_(7, wrap=True),
    "a cube": lambda x: x[:2, :4].reshape(2, 2, 2).cummax(0)[1].fill_diagonal_(9),
    "a permuted result": lambda x: x.t().masked_scatter(x.t() > 0, torch.arange(48.0)).as_strided((4,), (2,)),
    "as_strided_copy": lambda x: torch.as_strided_copy(x[:1].expand(6, 8).cummax(1)[1], (5,), (3,)),
    "a write": lambda x: x.t().masked_scatter(x.t() > 0, x).as_strided((4,), (2,)).add_(1),
    "a part of a result": _memory,
    "a copy in reshape": lambda x: _write_beside(x, lambda y: y.reshape(-1)),
    "a view in flatten": lambda x: _write_beside(x, lambda y: y.mT.flatten()),
    "a copy in contiguous": lambda x: _write_beside(x, torch.Tensor.contiguous),
    "an input behind a write": lambda x: (x.t().fill_(4), x.as_strided((2,), (1,)).fill_(3), x + 0)[2],
    "an input behind several writes": lambda x: (
        x.mT[1:].mul_(2),
        x.as_strided((3, 2), (8, 1), 5).neg_(),
        x.t().copy_(x.t().exp()),
        x.as_strided((3, 2), (8, 1), 5) + 1,
    )[3],
    "a copy of a view with gaps": lambda x: (
        copy := (view := x.as_strided((2, 2), (3, 1))).contiguous(),
        view.clamp_(0, 1),
        copy.neg_(),
    )[0],
    "a write to a copy of windows": lambda x: (copy := x.unfold(-1, 1, 4).contiguous(), copy.mul_(3), x + 0),
    "a flat copy of a view with gaps": lambda x: (flat := x[::2, :3].reshape(-1), x.fill_(2), flat.mul_(3))[0],
    "a permuted input": lambda x: ((y := x.t()).unsqueeze(0).zero_(), y.as_strided((2, 2), (9, 1)).fill_(1), y + 0)[2],
    "a write to a copy": lambda x: (y := torch.linalg.qr(x)[0], y.ravel().add_(100))[0],
    "an input": lambda x: (x.t().as_strided((4,), (2,)).mul_(3), x),
    "a diagonal": lambda x: (x * 2).diagonal().as_strided((3,), (2,), 1),
    "windows": lambda x: (x * 2).unfold(1, 2, 1).as_strided((3,), (2,), 1) + 1,
    "a diagonal of an input": lambda x: x.diagonal(1).as_strided((2,), (2,), x.storage_offset() + 1),
    "as_strided of as_strided": lambda x: x.as_strided((3, 3), (8, 2)).as_strided((2, 2), (9, 5)).neg_(),
    "a copy of a diagonal": lambda x: torch.as_strided_copy((x + 1).diagonal(), (3, 2), (2, 1)),
    "windows that overlap": lambda x: (x[1:].mul_(2), x.mT.as_strided((4, 3), (2, 1)) + 0)[1],
    "another dtype": lambda x: (x.view(torch.int16)[1:].zero_(), x.view(torch.int16).as_strided((3, 2), (16, 3)) + 0)[
        1
    ],
    "beyond the elements": lambda x: (x[1:3].neg_(), x[1:3].as_strided((4,), (9,)) * 2)[1],
    "beside an empty view": lambda x: x.unsqueeze(1).diagonal(1, -1, -2).as_strided((4, 2), (1, 1)) * 2,
    "as_strided in place": lambda x: (y := x + 0, z := y.mul_(2), y.as_strided_((3, 2), (1, 9), 2), z.neg_(), y)[4],
    "a change of form behind a write": lambda x: (
        y := torch.stack([x, x + 1]),
        y.flatten().add_(1),
        y.swapaxes_(0, -1),
        y[1].mul_(3),
        y.squeeze_().unsqueeze_(1),
        y,
    )[5],
    "beside a change of form": lambda x: (y := x * 2, y.as_strided((3,), (2,)).zero_(), y.t_(), y + 0)[3],
}


@pytest.mark.filterwarnings("ignore::tt_torch.driver.partition.HostFallbackWarning")
@pytest.mark.parametrize("begin", [0, 5])
@pytest.mark.parametrize("way", WAYS)
def test_they_are_the_places_of_eager(way: str, begin: int) -> None:
    """The input begins at a place of its memory."""
    memory = torch.randn(60, generator=torch.Generator().manual_seed(4))
    memories = [memory.clone(), memory.clone()]
    inputs = [x[begin : begin + 48].view(6, 8) for x in memories]
    expected, got = WAYS[way](inputs[0]), torch.compile(WAYS[way], backend="tt")(inputs[1])
    torch.testing.assert_close(got, expected)
    torch.testing.assert_close(*memories)


def masked(x: torch.Tensor) -> torch.Tensor:
    return x.t().masked_fill(x.t() > 1, 0.5).cumsum(0).as_strided((4, 2), (3, 1)).square().sum()


def written(x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        x.t().mul_(2)
    return x.t().as_strided((4, 2), (3, 1)).square().sum()


def of_windows(x: torch.Tensor) -> torch.Tensor:
    return x.unfold(-1, 1, 4).contiguous().mul_(3).square().sum()


def outside(x: torch.Tensor) -> torch.Tensor:
    """In eager PyTorch, only elements of the operand get gradients."""
    return (x[2:4].as_strided((3, 2), (16, 1), 1) * x.diagonal().as_strided((2,), (8,))).square().sum()


def outside_and_written(x: torch.Tensor) -> torch.Tensor:
    """A write to the memory changes that: all elements get gradients then."""
    y = x * 1
    y[2:4].as_strided((3, 2), (16, 1), 1).mul_(3)
    return y.square().sum()


@pytest.mark.filterwarnings("ignore::tt_torch.driver.partition.HostFallbackWarning")
@pytest.mark.parametrize("function", [masked, written, of_windows, outside, outside_and_written])
def test_gradients_reach_the_places_of_eager(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    x = torch.randn(6, 8, generator=torch.Generator().manual_seed(5))
    leaves = [x.clone().requires_grad_() for _ in range(2)]
    function(leaves[0]).backward()
    torch.compile(function, backend="tt")(leaves[1]).backward()
    torch.testing.assert_close(leaves[1].grad, leaves[0].grad)
    torch.testing.assert_close(leaves[1], leaves[0])


@pytest.mark.filterwarnings("ignore::tt_torch.driver.partition.HostFallbackWarning")
@pytest.mark.parametrize("factor", [3.0, torch.full((3, 2), 3.0)], ids=["number", "tensor"])
@pytest.mark.parametrize("detached", [lambda x: x.data, lambda x: x[2:].mT.detach()])
def test_a_detached_tensor_has_no_gradients_through_its_places(detached, factor) -> None:
    """The input's elements are in them, but its gradients end at the detached tensor, also behind a write to it."""

    def function(x: torch.Tensor, y: float | torch.Tensor):
        places = detached(x).as_strided((3, 2), (2, 5), 17)
        first = places * 2
        places.mul_(y)
        return first, places, detached(x).as_strided((2,), (3,), 20) + x.sum()

    seen = []
    for call in function, torch.compile(function, backend="tt"):
        leaves = [torch.ones(6, 8, requires_grad=True)]
        if isinstance(factor, torch.Tensor):
            leaves.append(factor.clone().requires_grad_())
        results = call(*leaves) if len(leaves) == 2 else call(*leaves, factor)
        torch.autograd.backward([r.square().sum() for r in results if r.requires_grad])
        seen.append((results, [r.requires_grad for r in results], leaves, [x.grad for x in leaves]))
    torch.testing.assert_close(seen[1], seen[0])
