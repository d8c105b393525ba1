"""Graphs with DTensors: one program for all chips of a mesh, compared with plain tensors on the CPU."""

import copy
import itertools

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from nights import often_if
from sharded_programs import Program
from torch import nn
from torch._dynamo.exc import BackendCompilerFailed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_module, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module

import tt_torch
from tt_torch.errors import (
    CollectiveError,
    InexactError,
    MeshError,
    ShardingError,
    UnsupportedOpError,
)
from tt_torch.wire import facts
from tt_torch.wire.calls import device_ops, public
from tt_torch.wire.decode import decode

MESHES = [(2,), (8,), (2, 2), (2, 4)]
DTYPES = [torch.float32, torch.bfloat16, torch.int32, torch.bool]


@pytest.fixture(autouse=True)
def no_mesh_afterwards():
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(32), nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x):
        return self.down(torch.relu(self.up(self.norm(x))))


def grid():
    return init_device_mesh("tt", (2, 4), mesh_dim_names=("dp", "tp"))


def tensor_parallel(mesh):
    """A model, and a copy of it whose layers are split over a mesh."""
    model = MLP()
    plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
    return model, parallelize_module(copy.deepcopy(model), mesh, plan)


def whole(x):
    return (x.full_tensor() if isinstance(x, DTensor) else x).cpu()


def difference(x, y):
    return (whole(x) - y).abs().max().item()


def failure(function, *args):
    with pytest.raises(BackendCompilerFailed) as caught:
        torch.compile(function, backend="tt")(*args)
    return caught.value.inner_exception


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_equal_those_of_plain_tensors(seed):
    shape = MESHES[seed % len(MESHES)]
    program = Program(seed, steps=4, mesh_dims=len(shape))
    expected, gradients = with_gradients(program, [x.requires_grad_() for x in program.inputs])
    mesh = init_device_mesh("tt", shape)
    for function in (program, torch.compile(program, backend="tt")):
        results, found = with_gradients(function, [x.requires_grad_() for x in program.distributed(mesh)])
        torch.testing.assert_close(results, expected, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(found, gradients, rtol=1e-4, atol=1e-4)


def with_gradients(function, inputs):
    """The results of a function, and the gradients of a weighted sum of them."""
    results = function(*inputs)
    generator = torch.Generator().manual_seed(0)
    weights = [torch.randn(r.shape, generator=generator) for r in results]
    torch.stack([(whole(r) * w).sum() for r, w in zip(results, weights, strict=True)]).sum().backward()
    return [whole(r).detach() for r in results], [x.grad if x.grad is None else whole(x.grad) for x in inputs]


def test_tensor_parallel_layers_exchange_one_sum(made):
    model, parallel = tensor_parallel(grid()["tp"])
    compiled, x = torch.compile(parallel, backend="tt"), torch.randn(4, 32)
    for _ in range(3):
        assert difference(compiled(x), model(x)) < 1e-6
    assert exchanges(made[0]) == ["AllReduceOp"]
    assert difference(compiled(x[:2]), model(x[:2])) < 1e-6  # another shape


def exchanges(executor):
    """The collectives of a program, in order."""
    return [kind for kind in ops(executor) if kind in ("AllReduceOp", "AllGatherOp", "ReduceScatterOp")]


def ops(executor):
    return [op.name for op in device_ops(decode(executor.compiled.binary))]


@pytest.mark.parametrize("line", ["dp", "tp"])
def test_chips_keep_their_parts_of_a_whole_tensor_by_one_op(made, line):
    mesh, x = grid()[line], torch.randn(8, 8)
    cut = torch.compile(lambda x: x.redistribute(mesh, [Shard(0)]), backend="tt")
    assert difference(cut(distribute_tensor(x, mesh, [Replicate()])), x) == 0
    assert set(ops(made[0])) <= {"MeshPartitionOp", "ToLayoutOp"} and ops(made[0]).count("MeshPartitionOp") == 1


def test_batch_and_columns_are_split_at_once():
    mesh = grid()
    model, parallel = tensor_parallel(mesh["tp"])
    x = torch.randn(8, 32)
    part = distribute_tensor(x, mesh["dp"], [Shard(0)]).to_local()
    result = torch.compile(parallel, backend="tt")(part)
    assert difference(DTensor.from_local(result, mesh["dp"], [Shard(0)]), model(x)) < 1e-6


def test_sequence_parallel_with_gradients():
    mesh = grid()["tp"]
    model, plan = MLP(), {
        "norm": SequenceParallel(),
        "up": ColwiseParallel(input_layouts=Shard(1)),
        "down": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
    }  # fmt: skip
    parallel, x = parallelize_module(copy.deepcopy(model), mesh, plan), torch.randn(2, 8, 32)
    result, expected = torch.compile(parallel, backend="tt")(distribute_tensor(x, mesh, [Shard(1)])), model(x)
    assert difference(result, expected) < 1e-6
    whole(result).square().mean().backward()
    expected.square().mean().backward()
    for (name, p), q in zip(parallel.named_parameters(), model.parameters(), strict=True):
        assert difference(p.grad, q.grad) < 1e-6, name


def test_training_with_a_split_batch_follows_that_of_one_chip():
    mesh = init_device_mesh("tt", (8,))
    model, x, target = MLP(), torch.randn(16, 32), torch.randn(16, 32)
    replicas = distribute_module(copy.deepcopy(model), mesh)
    given = [distribute_tensor(t, mesh, [Shard(0)]) for t in (x, target)]
    loss = torch.compile(lambda m, x, t: F.mse_loss(m(x), t), backend="tt")
    plain, split = (torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (model, replicas))
    for _ in range(10):
        one, many = F.mse_loss(model(x), target), loss(replicas, *given)
        assert abs(whole(many).item() - one.item()) < 1e-5
        for optimizer, value in ((plain, one), (split, many)):
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
    for p, q in zip(replicas.parameters(), model.parameters(), strict=True):
        assert difference(p, q) < 1e-5


LOSSES = [F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss, F.soft_margin_loss, F.binary_cross_entropy]
LOSSES += [F.binary_cross_entropy_with_logits, F.kl_div, F.poisson_nll_loss]


@pytest.mark.parametrize(
    ("loss", "reduction"),
    often_if(lambda _, reduction: reduction == "mean", itertools.product(LOSSES, ["mean", "sum", "none"])),
    ids=lambda x: getattr(x, "__name__", x),
)
def test_gradients_of_losses(loss, reduction):
    mesh = init_device_mesh("tt", (4,))
    x, target = torch.rand(8, 4, requires_grad=True), torch.rand(8, 4)
    weights = torch.rand(8, 4) if reduction == "none" else torch.tensor(3.0)
    (loss(x, target, reduction=reduction) * weights).sum().backward()
    for function in (loss, torch.compile(loss, backend="tt", fullgraph=True)):
        given = distribute_tensor(x.detach(), mesh, [Shard(0)]).requires_grad_()
        result = function(given, distribute_tensor(target, mesh, [Shard(0)]), reduction=reduction)
        (result.full_tensor() * weights.to(result.device)).sum().backward()
        torch.testing.assert_close(whole(given.grad), x.grad, rtol=1e-5, atol=1e-6)


def test_a_changed_weight_is_used():
    model, parallel = tensor_parallel(grid()["tp"])
    compiled, x = torch.compile(parallel, backend="tt"), torch.randn(4, 32)
    compiled(x)
    with torch.no_grad():
        model.up.weight.mul_(2)
        parallel.up.weight.mul_(2)
        model.norm.bias.add_(1)
        parallel.norm.bias.data.add_(1)
    assert difference(compiled(x), model(x)) < 1e-6


@pytest.mark.parametrize(
    ("shape", "dtype"),
    often_if(lambda shape, dtype: dtype == DTYPES[MESHES.index(shape)], itertools.product(MESHES, DTYPES)),
)
def test_every_change_of_placements(shape, dtype):
    mesh, x = init_device_mesh("tt", shape), (torch.randn(16, 24) * 100).to(dtype)
    options = [Replicate(), Shard(0), Shard(1)]
    pairs = [(a, b) for a in options for b in options]
    before = distribute_tensor(x, mesh, [a for a, _ in zip(options[1:], shape, strict=False)])
    moves = [[a] if len(shape) == 1 else [a, b] for a, b in pairs]

    def all_moves(x):
        return [x.redistribute(mesh, to) for to in moves]

    for result, to in zip(torch.compile(all_moves, backend="tt")(before), moves, strict=True):
        assert list(result.placements) == to
        assert torch.equal(whole(result), x)


@pytest.mark.parametrize("kind", ["sum", "avg", "max", "min"])
def test_partial_values(kind):
    mesh = init_device_mesh("tt", (2, 4))
    parts = distribute_tensor(torch.randn(8, 16), mesh, [Shard(0), Shard(1)]).to_local()
    given = DTensor.from_local(parts, mesh, [Partial(kind), Partial(kind)])
    each = torch.stack(list(parts._local_tensors.values()))
    expected = {"sum": each.sum(0), "avg": each.mean(0), "max": each.amax(0), "min": each.amin(0)}[kind]
    for to in ([Replicate(), Replicate()], [Shard(0), Replicate()], [Replicate(), Shard(1)]):
        result = torch.compile(lambda x, to=to: x.redistribute(mesh, to), backend="tt")(given)
        assert difference(result, expected.cpu()) < 1e-6


def test_integer_sums_over_chips_are_exact():
    mesh = init_device_mesh("tt", (8,))
    compiled = torch.compile(lambda x: x.sum(0), backend="tt")
    x = torch.randint(-(2**24), 2**24, (64, 8), dtype=torch.int32)
    assert torch.equal(whole(compiled(distribute_tensor(x, mesh, [Shard(0)]))), x.sum(0))
    with pytest.raises(InexactError, match=r"values in .* the device is exact only in -16777216 .. 16777216"):
        compiled(distribute_tensor(x * 8, mesh, [Shard(0)]))


def test_compile_model_of_a_parallel_module(tmp_path):
    model, parallel = tensor_parallel(grid()["tp"])
    x = torch.randn(4, 32)
    compiled = tt_torch.compile_model(parallel.eval(), (x,))
    assert difference(compiled(x), model(x)) < 1e-6
    compiled.save(tmp_path / "m.ttnn")
    (program,) = public(decode((tmp_path / "m.ttnn").read_bytes()))
    assert facts.mesh_shape(program) == (2, 4)


# --- refused by name


def test_parts_of_unequal_sizes_are_refused():
    mesh = init_device_mesh("tt", (4,))
    with pytest.raises(ShardingError, match=r"shape \(6, 3\).*dimension 0 is split over 4 chips.*parts of one size"):
        distribute_tensor(torch.ones(6, 3), mesh, [Shard(0)])
    uneven = distribute_tensor(torch.ones(6, 3), mesh, [Replicate()]).redistribute(mesh, [Shard(0)])
    assert whole(uneven * 2).sum() == 36
    with pytest.raises(ShardingError, match=r"shape \(6, 3\).*dimension 0 is split over 4 chips"):
        tt_torch.compile_model(nn.ReLU().eval(), (uneven,))


def test_a_dtensor_beside_values_of_chips_is_refused():
    mesh = init_device_mesh("tt", (2, 2))
    rows = distribute_tensor(torch.ones(8, 4), mesh, [Replicate(), Shard(0)])
    part = distribute_tensor(torch.ones(8, 4), mesh, [Shard(0), Replicate()]).to_local()
    with pytest.raises(CollectiveError, match="a DTensor and a tensor with a value per chip"):
        rows[:4] + part
    other = distribute_tensor(torch.ones(8, 4), mesh, [Shard(0), Replicate()])
    found = failure(lambda a, b: a.to_local() * b[:4], other, rows)
    assert isinstance(found, UnsupportedOpError)
    assert "from_local() says how the values of the chips make one tensor" in str(found)
    assert "test_shards.py" in str(found)


def test_an_op_for_the_host_is_an_error():
    x = distribute_tensor(torch.randn(8, 8), init_device_mesh("tt", (2,)), [Shard(0)])
    assert isinstance(failure(lambda x: torch.linalg.eigvals(x @ x.T), x), UnsupportedOpError)


def test_another_mesh_than_the_option_says_is_an_error():
    x = distribute_tensor(torch.randn(8, 8), init_device_mesh("tt", (2,)), [Shard(0)])
    with pytest.raises(BackendCompilerFailed) as caught:
        torch.compile(lambda x: x + 1, backend="tt", options={"mesh_shape": (2, 4)})(x)
    assert isinstance(caught.value.inner_exception, MeshError)


def test_a_collective_of_a_plain_tensor_is_an_error():
    init_device_mesh("tt", (2,))
    with pytest.raises(CollectiveError, match=r"all_?reduce of a plain tensor, which all 2 chips of the mesh have"):
        dist.all_reduce(torch.ones(2))
    with pytest.raises(BackendCompilerFailed, match=r"all_reduce of a plain tensor, which all .* at .*test_shards.py"):
        torch.compile(lambda x: (dist.all_reduce(x), x + 1)[1], backend="tt")(torch.ones(2))


def test_nothing_is_left_after_the_mesh():
    dispatcher = DTensor._op_dispatcher
    before = dict(dispatcher._custom_op_handlers), DTensor.full_tensor, Shard._shard_tensor
    init_device_mesh("tt", (2,))
    assert DTensor.full_tensor is not before[1]
    dist.destroy_process_group()
    assert not dist.is_initialized()
    assert (dict(dispatcher._custom_op_handlers), DTensor.full_tensor, Shard._shard_tensor) == before
    assert not dispatcher._allow_implicit_replication
    assert torch.equal(torch.compile(lambda x: x + 1, backend="tt")(torch.zeros(2)), torch.ones(2))


def test_a_plain_model_can_be_compiled_ahead_of_time_while_a_mesh_is_there():
    model, _ = tensor_parallel(grid()["tp"])
    x = torch.randn(4, 32)
    assert difference(tt_torch.compile_model(model, (x,))(x), model(x)) < 1e-5
