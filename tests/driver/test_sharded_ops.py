"""Ops of DTensors for which PyTorch gives wrong numbers, raises an error, or never ends."""

import gc
import itertools
import weakref
from contextlib import nullcontext

import pytest
import torch
import torch.distributed as dist
from nights import often_if
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

from tt_torch.driver.partition import HostFallbackWarning
from tt_torch.errors import CollectiveError, MeshError

SPLITS = list(itertools.product([Replicate(), Shard(0), Shard(1), Shard(2)], repeat=2))
PARTS = 3  # of SPLITS; one part runs for each change, and the others run at night
ALONG_DIMENSIONS = {
    "sums": lambda x: x.cumsum(-1),
    "products": lambda x: x.cumprod(-3, dtype=torch.float64),
    "sums of powers": lambda x: x.logcumsumexp(-2),
    "argmax": lambda x: x.argmax(1),
    "argmin, kept": lambda x: x.argmin(-1, keepdim=True),
    "argmax of all": lambda x: x.argmax(),
    "slice": lambda x: x[1:, ::2],
    "select": lambda x: x.select(-1, 3) * x[:, 1, :1],
    "integers and a sum": lambda x: torch.arange(8, device=x.device) + (x > 0).sum((0, 1)),
    "any": lambda x: (x > 1).any(-1).to(x.dtype) + (x > 1).any() * 2 + (x > 2).any((0, 1), keepdim=True)[0, 0, :4],
    "any of bytes": lambda x: (x > 2).to(torch.uint8).any(1, keepdim=True) * 3,
    "any of nothing": lambda x: x[:0].any(0).to(x.dtype),
    "shifts": lambda x: ((x * 9).clamp(-9, 9).int() << 3) >> (x > 0).int(),
}


@pytest.fixture(autouse=True)
def no_mesh_afterwards():
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def whole(x):
    return (x.full_tensor() if isinstance(x, DTensor) else x).detach().cpu()


def with_gradient(function, x):
    """The result of a function, and the gradient of its square."""
    x = x.detach().requires_grad_()
    result = function(x)
    if result.requires_grad:
        (result * result).sum().backward()
    return whole(result), x.grad if x.grad is None else whole(x.grad)


def _is_often(name, part):
    return list(ALONG_DIMENSIONS).index(name) % PARTS == part


@pytest.mark.parametrize(("name", "part"), often_if(_is_often, itertools.product(ALONG_DIMENSIONS, range(PARTS))))
def test_ops_along_dimensions_that_are_split(name, part):
    function, x = ALONG_DIMENSIONS[name], torch.randn(8, 4, 8)
    expected, mesh = with_gradient(function, x), init_device_mesh("tt", (2, 2))
    for split in SPLITS[part::PARTS]:
        found = with_gradient(function, distribute_tensor(x, mesh, split))
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5, msg=lambda text, s=split: f"{s}: {text}")
    found = with_gradient(torch.compile(function, backend="tt"), distribute_tensor(x, mesh, [Shard(0), Shard(2)]))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_a_scan_makes_no_parts_of_unequal_sizes():
    x = torch.randn(5, 8)
    given = distribute_tensor(x, init_device_mesh("tt", (2, 4)), [Shard(1), Replicate()])
    for run in (torch.logcumsumexp, torch.compile(torch.logcumsumexp, backend="tt")):
        torch.testing.assert_close(whole(run(given, 1)), x.logcumsumexp(1), rtol=1e-5, atol=1e-5)


def writes(x):
    """Writes in turn to views and to the tensors that they view."""
    x[1][2:].fill_(7)
    x[:, 1].add_(1)
    row, (upper, lower) = x[3], x.split(4)
    element = row[1]
    x.mul_(2)
    upper.diagonal().sub_(1)
    lower[0].copy_(row)
    return x * 1, row + 0, element + 0, upper + 0, lower + 0


def writes_in_other_ways(x):
    """Writes with ops that write to several tensors, or to another argument than the first one."""
    torch.add(x[0], 1, out=x[5])
    torch._foreach_mul_([x[6][1:], x[7]], 3)
    torch.nn.init.uniform_(x[2], 5, 5)
    return (x * 1,)


def assert_writes(run, expected_of, split):
    x = torch.arange(32.0).reshape(8, 4)
    given, after = distribute_tensor(x, init_device_mesh("tt", (2, 2)), split), x.clone()
    torch.testing.assert_close([*map(whole, [*run(given), given])], [*expected_of(after), after])


@pytest.mark.parametrize("function", [writes, writes_in_other_ways])
@pytest.mark.parametrize("context", [torch.enable_grad, torch.no_grad])
def test_writes_to_parts_of_a_split_dimension(context, function):
    for split in ([Replicate(), Shard(0)], [Shard(0), Shard(0)], [Shard(0), Shard(1)]):
        with context():
            assert_writes(function, function, split)


def test_compiled_writes_to_parts_of_a_split_dimension():
    assert_writes(torch.compile(writes, backend="tt"), writes, [Shard(0), Shard(1)])


def test_writes_have_gradients():
    def function(x, y):
        z = x * 2
        z[1].copy_(y)
        return z * z

    x, y, mesh = torch.randn(8, 4), torch.randn(4), init_device_mesh("tt", (2,))
    for run in (function, torch.compile(function, backend="tt")):
        grads = []
        for row, rows in ((y, x), (distribute_tensor(y, mesh, [Replicate()]), distribute_tensor(x, mesh, [Shard(0)]))):
            rows, row = rows.detach().requires_grad_(), row.detach().requires_grad_()
            run(rows, row).sum().backward()
            grads.append([whole(rows.grad), whole(row.grad)])
        torch.testing.assert_close(*grads)


def test_a_write_that_would_be_lost_is_an_error():
    x = distribute_tensor(torch.zeros(8, 4), init_device_mesh("tt", (2,)), [Shard(0)])
    lost = pytest.raises(CollectiveError, match=r"a write to a part .* would be lost in .* write to the part itself")
    for part in (x[1].data, x[1].detach()):
        with lost:
            part.add_(1)
    with torch.inference_mode():
        y = x + 1
        y[:, 1].add_(1)
        with lost:
            y[1][2:].add_(1)
    x.data[1].add_(1)
    x.detach()[1].add_(1)
    assert whole(x[1]).tolist() == [2, 2, 2, 2]


def test_a_part_that_is_gone_does_not_keep_the_tensor():
    x = distribute_tensor(torch.zeros(8, 4), init_device_mesh("tt", (2,)), [Shard(0)])
    alive, row = weakref.ref(x), x[1]
    row.add_(1)
    del x, row
    gc.collect()
    assert alive() is None


def write_and_read(x, y):
    x[0:3].mul_(2)
    return y + 1


VIEWS = {
    "rows": lambda x: x[2:4],
    "row": lambda x: x[4],
    "part of another memory": lambda x: x[4:].clone(),
    "columns": lambda x: x[:, 2:],
    "itself": lambda x: x,
}


@pytest.mark.parametrize("split", [[Replicate()], [Shard(0)], [Shard(1)]], ids=str)
def test_a_compiled_graph_that_writes_to_inputs_that_overlap(split):
    """A program would not see its own writes, so eager PyTorch runs the graph. It may read inputs that overlap."""
    strict = torch.compile(write_and_read, backend="tt", options={"fallback": "error"})
    write, read = (torch.compile(f, backend="tt") for f in (write_and_read, lambda x, y: x.sum() + y))
    overlap = r"writes to its inputs, of which these overlap in memory: .*x.*, .*y.*"
    for name, view in VIEWS.items():
        x = torch.arange(32.0).reshape(8, 4)
        given = distribute_tensor(x, init_device_mesh("tt", (2,)), split)
        torch.testing.assert_close(whole(read(given, view(given))), x.sum() + view(x))
        if name in ("part of another memory", "itself"):
            torch.testing.assert_close(whole(write(given, view(given))), write_and_read(x, view(x)))
        else:
            with pytest.raises(MeshError, match=overlap):
                strict(given, view(given))
            with pytest.warns(HostFallbackWarning, match=overlap) if name == "rows" else nullcontext():
                found = write(given, view(given))
            torch.testing.assert_close(whole(found), write_and_read(x, view(x)))
        torch.testing.assert_close(whole(given), x)


@pytest.mark.parametrize("compiled", [False, True])
def test_views_without_elements(compiled):
    def views(x):
        return x.flatten(), x.reshape(8, 0, 1), x.view(-1) + 1, torch.outer(x.flatten(), x.flatten()), torch.isin(x, x)

    x, mesh = torch.zeros(0, 8), init_device_mesh("tt", (2, 2))
    for split in ([Shard(0), Shard(0)], [Replicate(), Shard(1)]):
        found = (torch.compile(views, backend="tt") if compiled else views)(distribute_tensor(x, mesh, split))
        torch.testing.assert_close([*map(whole, found)], [*views(x)])


@pytest.mark.parametrize("compiled", [False, True])
def test_a_squeeze_of_a_dimension_that_one_chip_has(compiled):
    """PyTorch refuses it if an axis of one chip splits the dimension."""

    def squeezes(x):
        y = x.squeeze()
        x.squeeze(0).add_(1)
        return y, x.squeeze((0, 1)), torch.cov(x[:, 0])

    x = torch.arange(4.0).reshape(1, 1, 4)
    given = distribute_tensor(x.clone(), init_device_mesh("tt", (1, 2)), [Shard(0), Shard(2)])
    found = (torch.compile(squeezes, backend="tt") if compiled else squeezes)(given)
    torch.testing.assert_close([*map(whole, found), whole(given)], [*squeezes(x), x], equal_nan=True)


def test_python_numbers_are_those_of_the_whole_tensor():
    x, mesh = torch.tensor([[9, 1, 4, 8, 0, 4, 0, 4]] * 4), init_device_mesh("tt", (2, 2))
    for split in ([Shard(0), Shard(1)], [Shard(1), Replicate()]):
        given = distribute_tensor(x, mesh, split)
        assert (given.max().item(), int(given.min()), given.float().mean().item()) == (9, 0, x.float().mean().item())
        assert float(given.float().sum()) == 120 and bool((given > 8).any()) and not bool((given > 8).all())
        assert torch.equal(whole(torch.nn.functional.one_hot(given)), torch.nn.functional.one_hot(x))


def test_a_dtensor_is_not_written_to_a_plain_tensor():
    x = distribute_tensor(torch.ones(8, 4), init_device_mesh("tt", (2,)), [Shard(0)])
    plain = torch.zeros(8, 4, device="tt")
    with pytest.raises(MeshError, match=r"copy_.default writes a DTensor to a plain tensor"):
        plain.copy_(x)
    assert not plain.any()


def test_the_whole_tensor_of_nan():
    x = torch.tensor([1.0, torch.nan, torch.nan, 2.0])
    mesh = init_device_mesh("tt", (2,))
    for split in (Replicate(), Shard(0)):
        torch.testing.assert_close(whole(distribute_tensor(x, mesh, [split])), x, equal_nan=True)


MASKED = {
    "number": lambda x, m: x.index_put((m,), torch.tensor(3.0, device=x.device)),
    "added": lambda x, m: x.index_put((m,), torch.tensor(3.0, device=x.device), accumulate=True),
    "rows": lambda x, m: x.index_put((m[:, 0],), torch.tensor(3.0, device=x.device)),
    "columns": lambda x, m: torch.ops.aten.index_put(x, (None, m[0]), torch.tensor(3.0, device=x.device)),
    "values": lambda x, m: x.index_put((m,), torch.arange(1.0, 33.0, device=x.device)),
    "two masks": lambda x, m: x.index_put_((m[0], m[1]), torch.tensor(3.0, device=x.device), accumulate=True),
}


# The device has no op that chooses with two masks: compiling this is an UnsupportedOpError.
@pytest.mark.parametrize(
    ("name", "compiled"), [*((name, False) for name in MASKED), ("number", True), ("values", True)]
)
def test_writes_to_what_a_mask_chooses(name, compiled):
    x, mask = torch.randn(8, 8), (torch.arange(64).view(8, 8) + torch.arange(8)[:, None]) % 2 == 0
    expected = MASKED[name](x.clone(), mask)
    mesh = init_device_mesh("tt", (2, 4))
    function = torch.compile(MASKED[name], backend="tt") if compiled else MASKED[name]
    for split, of_mask in (
        ([Shard(0), Replicate()], [Replicate()] * 2),
        ([Shard(1), Shard(0)], [Shard(1), Replicate()]),
    ):
        found = function(distribute_tensor(x, mesh, split), distribute_tensor(mask, mesh, of_mask))
        assert torch.equal(whole(found), expected)


def test_a_mask_does_not_choose_the_size_of_a_dtensor():
    x = distribute_tensor(torch.randn(8), init_device_mesh("tt", (2,)), [Shard(0)])
    with pytest.raises(MeshError, match=r"x\[mask\] of a DTensor has a size that depends on values; use torch.where"):
        x[x > 0]


@pytest.mark.parametrize("compiled", [False, True])
def test_a_sum_over_chips_gets_no_parts_of_unequal_sizes(compiled):
    x, mesh = torch.randn(2, 8), init_device_mesh("tt", (2, 4))

    def function(x):
        return x.repeat(3, 1, 1).sum(1).relu()

    found = (torch.compile(function, backend="tt") if compiled else function)(
        distribute_tensor(x, mesh, [Shard(0), Shard(1)])
    )
    assert found.placements == (Replicate(), Shard(1))
    torch.testing.assert_close(whole(found), function(x))


def test_eager_ops_after_a_program_of_them():
    """PyTorch keeps the plans of eager ops. It must not keep those of a graph, in which one chip stands for all."""
    mesh, x, places = init_device_mesh("tt", (2, 2)), torch.randn(16, 8), torch.randint(16, (8,))

    def function(x, places):
        return torch.gather(x, 0, places.reshape(1, -1)) * 2

    expected = with_gradient(lambda x: function(x, places), x)
    split = distribute_tensor(places, mesh, [Replicate(), Shard(0)])
    for run, to in (
        (torch.compile(function, backend="tt"), [Shard(0), Replicate()]),
        (function, [Replicate(), Shard(0)]),
    ):
        found = with_gradient(lambda x, run=run: run(x, split).full_tensor(), distribute_tensor(x, mesh, to))
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_product_of_a_largest_value_over_chips_gets_no_parts_of_unequal_sizes(compiled):
    x, w, mesh = torch.randn(8, 3), torch.randn(3), init_device_mesh("tt", (2, 2))

    def function(x, w):
        return torch.nn.functional.linear(x.amax(0), w)

    run = torch.compile(function, backend="tt") if compiled else function
    found = run(distribute_tensor(x, mesh, [Replicate(), Shard(0)]), w.to("tt"))
    torch.testing.assert_close(whole(found), function(x, w))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("compiled", [False, True])
def test_norms_whose_squares_are_too_large(compiled, dtype):
    x, mesh = (torch.randn(8, 4) * 200).to(dtype), init_device_mesh("tt", (2, 2))
    run = torch.compile(torch.norm, backend="tt") if compiled else torch.norm
    found = run(distribute_tensor(x, mesh, [Shard(0), Shard(1)]))
    torch.testing.assert_close(whole(found), x.norm())


def test_a_norm_over_chips_is_not_written_in_place():
    """The norms of the chips add up to no negative number."""
    x = distribute_tensor(torch.randn(8, 4), init_device_mesh("tt", (2,)), [Shard(0)])
    for write in (lambda n: n.mul_(x[0]), lambda n: n.add_(1), lambda n: torch.empty_like(n).copy_(n)):
        with pytest.raises(MeshError, match="a norm over the chips"):
            write(x.norm(dim=0))


def swapped_and_written(x):
    x = x.clone()
    x.swapaxes(0, -1).add_(1)
    return x


SCALAR, NOTHING = torch.tensor(3.0), torch.empty(0, 8)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "function, x, placement",
    [
        (swapped_and_written, SCALAR, Replicate()),
        (lambda x: swapped_and_written(x.mean()), torch.randn(4), Shard(0)),
        (lambda x: x.scatter(0, x, x[:, 0]), NOTHING, Replicate()),
        (lambda x: x.split(3, 0)[0] + 1, NOTHING, Shard(1)),
    ],
)
def test_ops_whose_rule_fails_are_computed_with_whole_tensors(function, x, placement, compiled):
    split = distribute_tensor(x, init_device_mesh("tt", (1, 2)), [Replicate(), placement])
    found = (torch.compile(function, backend="tt") if compiled else function)(split)
    torch.testing.assert_close(whole(found), function(x))


@pytest.mark.parametrize("compiled", [False, True])
def test_a_view_gives_a_dimension_fewer_parts_than_there_are_chips(compiled):
    x = torch.randn(32, 6, requires_grad=True)

    def function(x):
        return x.view(4, 8, 6).cumsum(1).square().sum()

    (expected,) = torch.autograd.grad(function(x), x)
    split = distribute_tensor(x, init_device_mesh("tt", (2, 4)), [Shard(0), Shard(0)])
    found = (torch.compile(function, backend="tt") if compiled else function)(split)
    torch.testing.assert_close(whole(found), function(x))
    (gradient,) = torch.autograd.grad(found, split)
    torch.testing.assert_close(whole(gradient), expected)


def test_a_write_at_a_computed_place_without_dimensions():
    """It ended torch-mlir's process."""
    x, value, mesh = torch.randn(8), torch.tensor(3.0), init_device_mesh("tt", (2, 2))

    def function(x, value):
        return x.index_put((value.cummax(-1)[1],), value)

    split = [distribute_tensor(each, mesh, [Replicate()] * 2) for each in (x, value)]
    torch.testing.assert_close(whole(torch.compile(function, backend="tt")(*split)), function(x, value))
