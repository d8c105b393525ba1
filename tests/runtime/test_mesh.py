"""Programs for a mesh of chips, which run in lock step."""

from itertools import product

import pytest
import torch
from programs import Maker

import tt_torch
from tt_torch import errors
from tt_torch.runtime import Binary, Device
from tt_torch.runtime.mesh import Parts, whole_shape
from tt_torch.runtime.mesh_executable import MeshExecutable

MESHES = [(1, 2), (2, 1), (2, 3), (2, 4)]
DTYPES = {"Float32": torch.float32, "BFloat16": torch.bfloat16, "Int32": torch.int32}
RESIDENT = [(), (0,)]


def grid(*choices):
    return list(product(*choices))


def one_op(mesh, op, given, made, dtype="Float32", **attributes):
    """A program of one op. `given` and `made` are the shapes of the operand and the result on one chip."""
    maker = Maker(mesh)
    x = maker.input(given, dtype)
    return maker.binary(maker.op(op, **{"in": x}, out=maker.tensor(made, dtype), **attributes))


def on(mesh, binary, given, made, **options):
    return MeshExecutable(Binary(binary), 0, Device(mesh_shape=mesh, **options), given, made)


def values(shape, dtype):
    made = torch.randn(shape, generator=torch.Generator().manual_seed(0)) * 100
    return made.to(DTYPES[dtype])


def blocks(x, mesh):
    """The parts of x on each row and column of the mesh. Rows split dimension 0, and columns split dimension 1."""
    return [list(row.chunk(mesh[1], 1)) for row in x.chunk(mesh[0], 0)]


def along(grid, axis, function):
    """Applies a function to each group of parts along an axis. The function returns as many parts as it gets."""
    if axis == 1:
        return [function(row) for row in grid]
    columns = [function(list(column)) for column in zip(*grid, strict=True)]
    return [list(row) for row in zip(*columns, strict=True)]


def joined(grid):
    return torch.cat([torch.cat(row, 1) for row in grid], 0)


@pytest.mark.parametrize("mesh, axis, dtype, resident", grid(MESHES, (0, 1), DTYPES, RESIDENT))
def test_all_gather(mesh, axis, dtype, resident):
    n = mesh[axis]
    binary = one_op(mesh, "AllGatherOp", (5, 7), (5, 7 * n), dtype, all_gather_dim=-1, cluster_axis=axis)
    x = values((5 * mesh[0], 7 * mesh[1]), dtype)
    expected = along(blocks(x, mesh), axis, lambda parts: [torch.cat(parts, 1)] * n)
    assert torch.equal(on(mesh, binary, [(0, 1)], [(0, 1)])([x], resident)[0], joined(expected))


def summed(parts):
    """The sum in the order of the chips, rounded after each addition."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


@pytest.mark.parametrize("mesh, axis, dtype, resident", grid(MESHES, (0, 1), DTYPES, RESIDENT))
def test_all_reduce(mesh, axis, dtype, resident):
    binary = one_op(mesh, "AllReduceOp", (5, 7), (5, 7), dtype, cluster_axis=axis)
    x = values((5 * mesh[0], 7 * mesh[1]), dtype)
    expected = along(blocks(x, mesh), axis, lambda parts: [summed(parts)] * len(parts))
    assert torch.equal(on(mesh, binary, [(0, 1)], [(0, 1)])([x], resident)[0], joined(expected))


@pytest.mark.parametrize("mesh, axis, dtype", grid(MESHES, (0, 1), DTYPES))
def test_reduce_scatter(mesh, axis, dtype):
    n = mesh[axis]
    binary = one_op(mesh, "ReduceScatterOp", (6 * n, 7), (6, 7), dtype, scatter_dim=0, cluster_axis=axis)
    x = values((6 * n * mesh[0], 7 * mesh[1]), dtype)
    expected = along(blocks(x, mesh), axis, lambda parts: list(summed(parts).chunk(n, 0)))
    assert torch.equal(on(mesh, binary, [(0, 1)], [(0, 1)])([x])[0], joined(expected))


NORMS = grid(MESHES, (0, 1), ((), ("weight",), ("weight", "residual")), ("Float32", "BFloat16"))


@pytest.mark.parametrize("mesh, axis, more, dtype", NORMS)
def test_distributed_rms_norm(mesh, axis, more, dtype):
    """As tt-mlir writes it: the weight has rows of 32 elements, and the program makes a semaphore and memory."""
    maker, n, where = Maker(mesh), mesh[axis], (None, 2) if axis else (2, None)
    shapes = {"input": (1, 5, 64), "weight": (2, 32), "residual": (1, 5, 64)}
    refs = {name: maker.input(shapes[name], dtype) for name in ("input", *more)}
    maker.op("CreateGlobalSemaphoreOp", initial_value=0, out={"global_id": 0})
    stats = maker.op("EmptyOp", shape=[1, 1], dtype="Float32", layout="Tile", out=maker.tensor((1, 1)))
    out = maker.op("DistributedRMSNormOp", **refs, stats=stats, semaphore={"global_id": 0}, cluster_axis=axis,
                   epsilon=0.1, out=maker.tensor(shapes["input"], dtype))  # fmt: skip
    given = [((None, 0) if axis else (0, None)) if name == "weight" else where for name in refs]
    whole = {name: values((1, 5, 64 * n) if name != "weight" else (2 * n, 32), dtype) for name in refs}
    (result,) = on(mesh, maker.binary(out), given, [where])(list(whole.values()), ())
    x = whole["input"].float() + (whole["residual"].float() if "residual" in more else 0)
    weight = whole["weight"].float().flatten() if "weight" in more else None
    expected = torch.nn.functional.rms_norm(x, (64 * n,), weight, 0.1)
    torch.testing.assert_close(result, expected.to(DTYPES[dtype]))


@pytest.mark.parametrize("mesh, axis, resident", grid(MESHES, (0, 1, None), RESIDENT))
def test_mesh_partition(mesh, axis, resident):
    n = mesh[0] * mesh[1] if axis is None else mesh[axis]
    named = {} if axis is None else {"cluster_axis": axis}
    binary = one_op(mesh, "MeshPartitionOp", (4, 3 * n), (4, 3), dim=1, **named)
    x = values((4, 3 * n), "Float32")
    parts = x.chunk(n, 1)
    numbers = [(r * mesh[1] + c, r, c) for r in range(mesh[0]) for c in range(mesh[1])]
    chosen = [parts[number if axis is None else (row, column)[axis]] for number, row, column in numbers]
    expected = [chosen[i * mesh[1] : (i + 1) * mesh[1]] for i in range(mesh[0])]
    assert torch.equal(on(mesh, binary, [(None, None)], [(0, 1)])([x], resident)[0], joined(expected))


@pytest.mark.parametrize("keeps", [False, True])
def test_point_to_point(keeps):
    maker = Maker((2, 2))
    x, y = maker.input((3, 4)), maker.input((3, 4))
    kept = {"optional_output_tensor": y} if keeps else {}
    places = {"sender_coord": [0, 1], "receiver_coord": [1, 0]}
    out = maker.op("PointToPointOp", **{"in": x}, out=maker.tensor((3, 4)), **places, **kept)
    executable = on((2, 2), maker.binary(out), [(0, 1), (0, 1)], [(0, 1)])
    x, y = values((6, 8), "Float32"), torch.ones(6, 8)
    before = x.clone()
    (result,) = executable([x, y], (0, 1))
    expected = y.clone() if keeps else torch.zeros(6, 8)
    expected[3:, :4] = x[:3, 4:]
    assert torch.equal(result, expected) and torch.equal(x, before) and torch.equal(y, torch.ones(6, 8))


@pytest.mark.parametrize("dims", [*product((None, 0, 1), repeat=2)])
def test_tensors_are_distributed_and_aggregated(dims):
    """The host's tensor is split, each chip adds its numbers, and the parts are joined again."""
    mesh, maker = (2, 3), Maker((2, 3))
    parts = Parts((12, 18), dims, mesh)
    x, y = maker.input((12, 18), buffer="host", tile=False), maker.input(parts.shape)
    placements = [{"type": "Replicate" if d is None else "Shard", "dim": d or 0} for d in dims]
    split = maker.op("DistributeTensorOp", **{"in": x}, out=maker.tensor(parts.shape),
                     mapper_config={"placements": placements})  # fmt: skip
    both = maker.binary_op("Add", split, y, maker.tensor(parts.shape))
    one = [1 if d is None else n for d, n in zip(dims, mesh, strict=True)]
    config = {"dims": [d or 0 for d in dims], "mesh_shape_override": one}
    out = maker.op("AggregateTensorOp", **{"in": both}, out=maker.tensor((12, 18), buffer="host", tile=False),
                   composer_config=config)  # fmt: skip
    x, y = values((12, 18), "Float32"), values((12, 18), "Float32")
    (result,) = on(mesh, maker.binary(out), [(None, None), dims], None)([x, y])
    assert torch.equal(result, x + y)


@pytest.mark.parametrize("shape, sharding", [((12, 18), dims) for dims in grid((None, 0, 1), (None, 0, 1))])
def test_parts_join_to_the_whole(shape, sharding):
    parts = Parts(shape, sharding, (2, 3))
    x = torch.arange(12 * 18).view(shape)
    whole = torch.zeros_like(x)
    for chip, (source, target) in enumerate(zip(parts.of(x), parts.of(whole), strict=True)):
        assert source.shape == parts.shape and (parts.owners[chip] == chip) != bool(target.any())
        target.copy_(source)
    assert torch.equal(whole, x)


def test_a_dimension_without_equal_parts_is_refused():
    with pytest.raises(errors.ShardingError, match=r"\(7, 4\) cannot be split.*dimension 0 has no 2 equal parts"):
        Parts((7, 4), (0, None), (2, 3))
    with pytest.raises(errors.ShardingError, match="it has no dimension 2, which axis 1"):
        Parts((6, 4), (0, 2), (2, 3))
    with pytest.raises(errors.ShardingError, match="it has no dimension -1, which axis 0"):
        Parts(whole_shape((6, 4), (-1, 2), (2, 3)), (-1, 2), (2, 3))


def test_each_chip_keeps_what_it_writes():
    """The result of a gather is one value that all chips have, until one of them writes to it."""
    maker = Maker((1, 2))
    x, y = maker.input((2, 4)), maker.input((4, 4))
    both = maker.op("AllGatherOp", **{"in": x}, out=maker.tensor((4, 4)), all_gather_dim=0, cluster_axis=1)
    maker.op("CopyOp", src=y, dst=both)
    x, y = values((4, 4), "Float32"), values((4, 8), "Float32")
    (result,) = on((1, 2), maker.binary(both), [(None, 0), (None, 1)], [(None, 1)])([x, y])
    assert torch.equal(result, y)


def add_weights(mesh, shape):
    maker = Maker(mesh)
    x, w = maker.input(shape), maker.input(shape)
    return maker.binary(maker.binary_op("Add", x, w, maker.tensor(shape)))


def test_weights_are_copied_once_and_changes_are_seen():
    executable = on((2, 2), add_weights((2, 2), (64, 32)), [(0, 1)] * 2, [(0, 1)])
    x, w = values((128, 64), "Float32"), values((128, 64), "Float32")
    taken = lambda: executable.device.memory_stats()["dram"]["allocated"]  # noqa: E731
    for _ in range(3):
        assert torch.equal(executable([x, w], (1,))[0], x + w)
        assert taken() == 4096 * 12  # one part: a tile in each bank of one chip
    w.add_(1)
    assert torch.equal(executable([x, w], (1,))[0], x + w)
    w.data[100, 50] = 7
    executable.compare_weights = True
    assert torch.equal(executable([x, w], (1,))[0], x + w)
    del w
    assert taken() == 0


def test_a_model_that_needs_more_chips_fails_on_few():
    """Three tensors of 48 tiles, and DRAM of three tiles in each of 12 banks."""
    x, w = values((128, 384), "Float32"), values((128, 384), "Float32")
    small = {"dram_bank_size": 4096 * 3}
    assert torch.equal(
        on((1, 4), add_weights((1, 4), (32, 384)), [(None, 0)] * 2, [(None, 0)], **small)([x, w], (1,))[0], x + w
    )
    executable = on((1, 2), add_weights((1, 2), (64, 384)), [(None, 0)] * 2, [(None, 0)], **small)
    with pytest.raises(errors.DeviceMemoryError, match="DRAM of the device is exhausted"):
        executable([x, w], (1,))
    assert executable.device.memory_stats()["dram"]["allocated"] <= 4096 * 24


def test_wrong_calls_are_refused():
    executable = on((1, 2), add_weights((1, 2), (64, 32)), [(None, 0)] * 2, [(None, 0)])
    x = values((128, 32), "Float32")
    with pytest.raises(errors.InputShapeError, match=r"input 1: got shape \(64, 32\), expected \(128, 32\)"):
        executable([x, x[:64]])
    with pytest.raises(errors.InputCountError, match="takes 2 inputs, got 1"):
        executable([x])
    with pytest.raises(errors.InputDtypeError, match="input 0 of chip 1: got Int32"):
        executable._impl.run([x[:64], x[:64], x[64:].int(), x[64:]], None, [None, None])
    with pytest.raises(errors.InputCountError, match="takes 4 inputs of 2 chips, got 2"):
        executable._impl.run([x[:64], x[:64]], None, [None, None])
    with pytest.raises(errors.InputCountError, match="there are 1 shardings for 2 inputs"):
        on((1, 2), add_weights((1, 2), (64, 32)), [(None, 0)], None)
    with pytest.raises(errors.DeviceError, match="is for a mesh of 1x2 chips, and the device is a mesh of 2x1"):
        MeshExecutable(Binary(add_weights((1, 2), (64, 32))), 0, Device(mesh_shape=(2, 1)))


def test_a_collective_in_a_constant_program_is_refused():
    maker = Maker((1, 2))
    x = maker.input((32, 32))
    out = maker.tensor((32, 32))
    maker.op("LoadCachedOp", inputs=[x], outputs=[out], callee_name="f", program_idx=1, program_hash="h")
    maker.program["outputs"] = [out]
    maker.begin("f", private=True)
    inner = maker.op("AllReduceOp", **{"in": maker.input((32, 32))}, out=maker.tensor((32, 32)), cluster_axis=1)
    with pytest.raises(errors.BinaryFormatError, match="a const-eval program runs for each chip by itself"):
        on((1, 2), maker.binary(inner), None, None)


def test_a_released_weight_stays_on_all_chips():
    mesh = (2, 2)
    run = on(
        mesh, one_op(mesh, "AllGatherOp", (5, 7), (5, 14), all_gather_dim=-1, cluster_axis=1), [(0, 1)], [(0, None)]
    )
    weights = torch.nn.ParameterDict({"table": torch.nn.Parameter(values((10, 14), "Float32"), False)})
    (before,) = run([weights["table"]], {0})
    assert tt_torch.release(weights) == 10 * 14 * 4
    (after,) = run([weights["table"]], {0})
    assert after.equal(before)
    with pytest.raises(errors.ReleasedWeightError, match="table"):
        run([weights["table"]])
