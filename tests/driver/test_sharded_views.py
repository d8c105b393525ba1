"""Results of graphs for several chips that are views in eager PyTorch: they share memory there, and here, too."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch._dynamo.exc import BackendCompilerFailed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

import tt_torch
from tt_torch.driver.graph_breaks import GraphBreakWarning
from tt_torch.driver.partition import HostFallbackWarning

SPLITS = ([Replicate(), Shard(0)], [Shard(0), Shard(1)], [Shard(1), Shard(1)])
DATA_PARALLEL = {"mesh_shape": (2, 2), "automatic_parallelization": True}


def of_input(x: Any) -> Any:
    v = x[1]
    torch._dynamo.graph_break()
    x.neg_()
    return v, v + 1


def parts_of_input(x: Any) -> Any:
    a, b = x.chunk(2)
    torch._dynamo.graph_break()
    x.mul_(3)
    return a, b


def written_part(x: Any) -> Any:
    v = x[1]
    torch._dynamo.graph_break()
    v.add_(1)
    return x


def of_detached(x: Any) -> Any:
    v = x[:, 1].detach()[2:]
    torch._dynamo.graph_break()
    x.mul_(3)
    return v


def after_a_write(x: Any) -> Any:
    v = x.add_(1).reshape(4, 16)
    x.mul_(2)
    torch._dynamo.graph_break()
    v.neg_()
    return x, v


def of_a_value(x: Any) -> Any:
    v = (y := x + 1)[1]
    torch._dynamo.graph_break()
    y.neg_()
    return v


def of_a_value_that_is_no_result(x: Any) -> Any:
    y = x + 1
    v, w = y[1], y[0:2]
    torch._dynamo.graph_break()
    v.neg_()
    return w


def in_the_form_of_a_value(x: Any) -> Any:
    y = x.cumsum(0)
    v = x.view_as(y)
    torch._dynamo.graph_break()
    x.neg_()
    return v


FORMS = [of_input, parts_of_input, written_part, of_detached, after_a_write, of_a_value, of_a_value_that_is_no_result]
FORMS += [in_the_form_of_a_value]


@pytest.fixture(autouse=True)
def no_mesh_afterwards() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GraphBreakWarning)
        warnings.simplefilter("ignore", HostFallbackWarning)
        yield
    if dist.is_initialized():
        dist.destroy_process_group()


def numbers() -> torch.Tensor:
    return torch.arange(64.0).reshape(8, 8)


def whole(found: Any) -> list[torch.Tensor]:
    values = found if isinstance(found, Sequence) else [found]
    return [(x.full_tensor() if isinstance(x, DTensor) else x).detach().cpu() for x in values]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("split", SPLITS, ids=str)
def test_a_write_behind_a_graph_break_reaches_views(form: Callable[[Any], Any], split: list[Any]) -> None:
    x = numbers()
    given = distribute_tensor(x.clone(), init_device_mesh("tt", (2, 2)), split)
    found = torch.compile(form, backend="tt")(given)
    torch.testing.assert_close(whole(found) + whole(given), whole(form(x)) + [x])


@pytest.mark.parametrize("form", [of_input, parts_of_input, after_a_write, of_a_value_that_is_no_result])
def test_views_of_a_split_batch(form: Callable[[Any], Any]) -> None:
    x, given = numbers(), numbers()
    found = torch.compile(form, backend="tt", options=DATA_PARALLEL)(given)
    torch.testing.assert_close([*whole(found), given], [*whole(form(x)), x])


def test_a_write_through_a_flat_view_of_a_split_batch() -> None:
    def write(x: Any) -> Any:
        x.flatten().add_(1)
        return x + 1

    x, given = numbers(), numbers()
    found = torch.compile(write, backend="tt", options=DATA_PARALLEL)(given)
    torch.testing.assert_close([found, given], [write(x), x])


def test_a_view_is_one_for_autograd() -> None:
    x = distribute_tensor(numbers(), init_device_mesh("tt", (2, 2)), [Shard(0), Shard(1)]).requires_grad_()
    v, w, _ = torch.compile(lambda x: (x[1], x.detach()[1], x * 2), backend="tt")(x)
    assert v.requires_grad and not w.requires_grad  # PyTorch cannot leave out the gradient of a program's DTensor
    (v * v).sum().full_tensor().backward()
    right = torch.zeros(8, 8)
    right[1] = 2 * numbers()[1]
    torch.testing.assert_close(whole(x.grad), [right])


def gradient(write: Callable[[Any, Any], Any], x: Any, w: Any) -> list[torch.Tensor]:
    w.requires_grad_()
    y = x.requires_grad_() * 2
    made = write(y, w)
    total = (made * made.detach()).sum() + (y * 3).sum()
    (total.full_tensor() if isinstance(total, DTensor) else total).backward()
    return whole([x.grad, w.grad])


@pytest.mark.parametrize("split", SPLITS[:2], ids=str)
def test_gradients_of_written_inputs(split: list[Any]) -> None:
    """They were the gradients of the old values, without a message."""

    def write(y: Any, w: Any) -> Any:
        y.add_(y.sum())
        y[1].mul_(w[0])
        return y.clone()

    mesh = init_device_mesh("tt", (2, 2))
    given = [distribute_tensor(x, mesh, split) for x in (numbers(), numbers() + 1)]
    found = gradient(torch.compile(write, backend="tt"), *given)
    torch.testing.assert_close(found, gradient(write, numbers(), numbers() + 1))
    strict = torch.compile(write, backend="tt", options={"fallback": "error"})
    with pytest.raises(BackendCompilerFailed, match=r"MeshError: .* whose new value has gradients"):
        gradient(strict, *(distribute_tensor(x, mesh, split) for x in (numbers(), numbers())))


def test_a_package_with_parts_of_one_value(tmp_path: Any) -> None:
    def halves(x: Any) -> Any:
        return (x + 1).chunk(2, 1)

    given = distribute_tensor(numbers(), init_device_mesh("tt", (2, 2)), [Shard(0), Replicate()])
    model = tt_torch.compile_model(halves, (given,))
    model.save(tmp_path / "m.ttpkg")
    first, second = model(given)
    first.zero_()
    torch.testing.assert_close(whole([first, second]), [torch.zeros(8, 4), numbers()[:, 4:] + 1])
    loaded: Any = tt_torch.load(tmp_path / "m.ttpkg")
    torch.testing.assert_close(whole(loaded(numbers().to("tt"))), whole(halves(numbers())))


@pytest.mark.parametrize("inference", [False, True])
def test_a_view_of_a_part_that_is_gone(inference: bool) -> None:
    """Eager mode: `moved_views` keeps a part as long as a view of it is there."""
    with torch.inference_mode(inference):
        x = distribute_tensor(numbers(), init_device_mesh("tt", (2, 2)), [Shard(0), Shard(1)])
        views = [x[:, 1].detach(), x[1][None], x[1].expand(3, 8)]
        x.mul_(3)
        torch.testing.assert_close(whole(views), [3 * y for y in (numbers()[:, 1], numbers()[1:2], numbers()[[1] * 3])])


@pytest.mark.parametrize("change", [torch.Tensor.squeeze, torch.Tensor.squeeze_], ids=["squeeze", "squeeze_"])
def test_a_dimension_of_size_zero_is_not_squeezed(change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """PyTorch's rule counts it as gone, so the split dimension after it would be another one."""
    x = distribute_tensor(torch.zeros(0, 1, 8), init_device_mesh("tt", (2,)), [Shard(2)])
    assert change(x).full_tensor().shape == (0, 8)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("split", SPLITS[1:], ids=str)
def test_a_write_to_a_part_of_a_sum_over_the_chips(split: list[Any], compiled: bool) -> None:
    def form(x: Any) -> Any:
        y = x.sum(1)
        z = x.amax(1)
        y[1].mul_(-128)
        z[2].add_(y[1])
        return y, z

    x = distribute_tensor(numbers(), init_device_mesh("tt", (2, 2)), split)
    run = torch.compile(form, backend="tt") if compiled else form
    torch.testing.assert_close(whole(run(x)), [*form(numbers())])


@pytest.mark.parametrize("compiled", [False, True])
def test_more_of_a_dimension_that_an_axis_of_one_chip_splits(compiled: bool) -> None:
    """PyTorch's rule fails for this split, which needs no exchange."""

    def twice_as(x: Any, size: int) -> Any:
        return x.expand(size) * 2

    x = distribute_tensor(torch.tensor([5.0]), init_device_mesh("tt", (1, 2)), [Shard(0), Replicate()])
    for size in (0, 3):
        run = torch.compile(twice_as, backend="tt") if compiled else twice_as
        assert run(x, size).full_tensor().tolist() == [10.0] * size


@pytest.mark.parametrize("compiled", [False, True])
def test_views_of_nothing_are_no_copies(compiled: bool) -> None:
    """Nobody can write to them. `squeeze_` gives the tensor itself the memory of such a view."""

    def form(x: Any) -> Any:
        x.diagonal(-1).data.add_(1)
        y = x * 1
        y.squeeze_()
        return y[:, 1]

    x = distribute_tensor(torch.zeros(0, 8), init_device_mesh("tt", (2, 2)), [Shard(0), Shard(1)])
    run = torch.compile(form, backend="tt") if compiled else form
    assert run(x).full_tensor().shape == (0,)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_new_shape_in_place_where_an_axis_has_one_chip(compiled: bool) -> None:
    """PyTorch's rule fails, and the view would be a copy. The tensor itself would get the memory of that."""

    def form(x: Any) -> Any:
        y = x * 1
        row = y[..., :]
        y.squeeze_()
        y.add_(1)
        return y, row

    x = distribute_tensor(numbers()[:1], init_device_mesh("tt", (1, 2)), [Shard(0), Shard(1)])
    run = torch.compile(form, backend="tt") if compiled else form
    torch.testing.assert_close(whole(run(x)), [*form(numbers()[:1])])
    torch.testing.assert_close(whole([x.flatten() * 1]), [numbers()[0]])
