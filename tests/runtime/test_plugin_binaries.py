"""Binaries of jax-tt-plugin's compiler, whose schema was inferred, and the parts that only this schema has."""

import itertools
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from programs import Maker

from tt_torch.runtime import Binary, Device, Executable
from tt_torch.runtime.mesh_executable import MeshExecutable

DATA = Path(__file__).parents[1] / "data" / "plugin"
SCHEMA = "912b70aa"


def index(high, *shape):
    return torch.randint(0, high, shape)


def distinct(high, *shape):
    return torch.stack([torch.randperm(high)[: shape[1]] for _ in range(shape[0])])


def mlp(x, first, bias, second):
    return torch.relu(x @ first + bias) @ second


PROGRAMS = {
    "any": (lambda x: (x > 0.9).any(1), lambda: [torch.randn(6, 40)]),
    "avgpool": (lambda x: F.avg_pool2d(x, 2), lambda: [torch.randn(1, 16, 20, 20)]),
    "bitcast": (lambda x: (x + 1).view(torch.float32), lambda: [torch.randn(4, 33).view(torch.int32)]),
    "elu": (F.elu, lambda: [torch.randn(5, 40)]),
    "gather": (lambda x, i: x.gather(1, i), lambda: [torch.randn(5, 20), index(20, 5, 7)]),
    "scatter": (
        lambda x, i, y: x.scatter(1, i, y),
        lambda: [torch.randn(5, 20), distinct(20, 5, 7), torch.randn(5, 7)],
    ),
    "layer_norm_silu": (
        lambda x, weight, bias: F.silu(F.layer_norm(x, (64,), weight, bias)) * x,
        lambda: [torch.randn(32, 64), torch.randn(64), torch.randn(64)],
    ),
    "mlp_level2": (
        mlp,
        lambda: [torch.randn(32, 784), torch.randn(784, 256) / 28, torch.randn(256), torch.randn(256, 10) / 16],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    function, make = PROGRAMS[name]
    torch.manual_seed(0)
    inputs = make()
    executable = Executable(Binary.load(DATA / f"{name}.ttnn"))
    expected = function(*inputs)
    for resident in ((), range(len(inputs))):
        (result,) = executable(inputs, resident, [expected.dtype])
        torch.testing.assert_close(result, expected, rtol=1e-5, atol=1e-5)


def test_fused_attention():
    """The plugin makes fused attention ops at level 2, and rounds their operands to bfloat16."""
    torch.manual_seed(0)
    zero = torch.zeros(())  # the value of rows that are masked completely; there are no such rows
    inputs = [*torch.randn(3, 2, 4, 64, 32), torch.randn(1, 1, 64, 64), zero]
    query, key, value, mask, _ = (x.bfloat16() for x in inputs)
    middle = F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=0.3)
    expected = F.scaled_dot_product_attention(middle, key, value, mask, scale=0.5)
    (result,) = Executable(Binary.load(DATA / "attention.ttnn"))(inputs, (), [torch.float32])
    torch.testing.assert_close(result, expected.float(), rtol=2**-7, atol=2**-10)


# Programs on eight chips: the input's shape, the shardings of input and result, and a function of the whole input x.
COLLECTIVES = {
    "all_gather": ((256, 1024), (None, 1), (None, None), lambda x: x),
    "psum": ((256, 1024), (None, 1), (None, None), lambda x: sum(x.chunk(8, 1))),
    "psum_scatter": ((256, 8192), (None, 1), (None, 1), lambda x: sum(x.chunk(8, 1))),
    "ppermute": ((256, 1024), (None, 1), (None, 1), lambda x: x.roll(128, 1)),
    "all_to_all": ((256, 1024), (None, 0), (None, 0), lambda x: x.view(8, 32, 1024).transpose(0, 1).reshape(32, 8192)),
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives(name):
    shape, given, made, function = COLLECTIVES[name]
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0)).bfloat16()
    executable = on_mesh(f"mesh8_{name}", (1, 8), [given], [made])
    for resident in ((), (0,)):
        assert torch.equal(executable([x], resident)[0], function(x))


@pytest.mark.parametrize("mesh", [(1, 2), (1, 8), (2, 4)])
def test_tensor_parallel(mesh):
    executable = on_mesh(f"tensor_parallel_{mesh[0]}x{mesh[1]}", mesh, [(0, None), (None, 1), (None, 0)], [(0, None)])
    torch.manual_seed(0)
    x, up, down = torch.randn(64, 512), torch.randn(512, 2048) / 22, torch.randn(2048, 512) / 45
    expected = torch.relu(x @ up) @ down
    for resident in ((), (1, 2)):
        (result,) = executable([x, up, down], resident)
        torch.testing.assert_close(result.float(), expected, rtol=0.02, atol=0.05)


def on_mesh(name, mesh, given, made):
    return MeshExecutable(Binary.load(DATA / f"{name}.ttnn"), 0, Device(mesh_shape=mesh), given, made)


def run(maker, out, *inputs):
    return Executable(Binary(maker.binary(out, schema=SCHEMA)))(inputs)[0]


# The sizes of the grid, the sizes of a block, batches of `in` and of `index`, number of blocks, shape of a row.
BLOCKS = [
    ((9,), (1,), 1, 1, 4, (7,)),
    ((9,), (3,), 1, 1, 5, (7,)),
    ((4, 5), (1, 1), 1, 1, 6, (3,)),
    ((4, 5), (2, 3), 3, 3, 6, (3,)),
    ((3, 4, 2), (2, 1, 2), 2, 1, 5, (2, 3)),
    ((4, 5), (2, 3), 2, 1, 4, ()),
]


def blocks(sizes, windows, batch, index_batch, count, row):
    """The program's operands and the attributes of the op. Some blocks leave the grid."""
    column = not row
    rows = torch.randn(batch, *sizes, *row)
    starts = torch.stack([torch.randint(-2, size + 2, (index_batch, count)) for size in sizes], dim=1)
    maker = Maker()
    x = maker.input(rows.flatten(1, len(sizes)).shape if row else rows.shape, tile=False)
    i = maker.input(starts.shape, "Int32", tile=False)
    return maker, x, i, rows, starts, {"sizes": list(sizes), "windows": list(windows), "column": column}


def cells(starts, windows, batch, clamp=None):
    """The coordinates of each row of each block of a batch, in order."""
    for block in starts[batch % len(starts)].T.tolist():
        if clamp:
            limits = zip(block, clamp, windows, strict=True)
            block = [min(max(start, 0), size - window) for start, size, window in limits]
        for step in itertools.product(*map(range, windows)):
            yield tuple(a + b for a, b in zip(block, step, strict=True))


@pytest.mark.parametrize("case", BLOCKS, ids=str)
def test_rows_gather(case):
    torch.manual_seed(1)
    sizes, windows, batch, row = case[0], case[1], case[2], case[5]
    maker, x, i, rows, starts, attributes = blocks(*case)
    expected = torch.stack([torch.stack([rows[b][c] for c in cells(starts, windows, b, sizes)]) for b in range(batch)])
    out = maker.op("RowsGatherOp", **{"in": x}, index=i, **attributes, out=maker.tensor(expected.shape, tile=False))
    assert expected.shape[2:] == row
    assert torch.equal(run(maker, out, rows.reshape(x["desc"]["shape"]), starts), expected)


COMBINE = {
    "Sum": torch.add, "Prod": torch.mul, "Max": torch.maximum, "Min": torch.minimum, "Invalid": lambda old, new: new,
}  # fmt: skip


@pytest.mark.parametrize("reduce", COMBINE)
@pytest.mark.parametrize("case", BLOCKS, ids=str)
def test_rows_scatter(case, reduce):
    torch.manual_seed(2)
    sizes, windows, batch, row = case[0], case[1], case[2], case[5]
    maker, x, i, rows, starts, attributes = blocks(*case)
    count = sum(1 for _ in cells(starts, windows, 0))
    # Blocks may overlap. The order of writes is free, so all written values are equal if they replace the old ones.
    updates = torch.ones(batch, count, *row) if reduce == "Invalid" else torch.randn(batch, count, *row)
    u = maker.input(updates.shape, tile=False)
    expected = rows.clone()
    for b in range(batch):
        for cell, value in zip(cells(starts, windows, b), updates[b], strict=True):
            if all(0 <= at < size for at, size in zip(cell, sizes, strict=True)):
                expected[b][cell] = COMBINE[reduce](expected[b][cell], value)
    out = maker.tensor(x["desc"]["shape"], tile=False)
    maker.op("RowsScatterOp", **{"in": x}, index=i, source=u, **attributes, reduce_type=reduce, out=out)
    got = run(maker, out, rows.reshape(x["desc"]["shape"]), starts, updates)
    torch.testing.assert_close(got, expected.reshape(got.shape))


def activation(name, *params):
    return [{"op_type": name, "params": list(params)}]


ACTIVATIONS = {
    "Rsqrt": torch.rsqrt, "Log": torch.log, "Log1p": torch.log1p, "Expm1": torch.expm1, "Sin": torch.sin,
    "Cos": torch.cos, "Sign": torch.sign, "Floor": torch.floor, "Ceil": torch.ceil,
    "Round": torch.round, "LogicalNotUnary": torch.logical_not, "Relu": torch.relu, "Gelu": F.gelu,
    "Tan": torch.tan,
}  # fmt: skip


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_fused_activations(name):
    torch.manual_seed(3)
    x, y = torch.rand(4, 8) * 3 + 0.1, torch.rand(4, 8) * 3 + 0.1
    y[0, 0] = 0 if name == "LogicalNotUnary" else y[0, 0]
    function = ACTIVATIONS[name]
    for field, expected in {
        "input_tensor_a_activations": function(x) * y,
        "input_tensor_b_activations": x * function(y),
        "activations": function(x * y).float(),
    }.items():
        maker = Maker()
        a, b, out = maker.input((4, 8)), maker.input((4, 8)), maker.tensor((4, 8))
        maker.op("EltwiseBinaryOp", type="Multiply", lhs=a, rhs=b, out=out, **{field: activation(name)})
        torch.testing.assert_close(run(maker, out, x, y), expected, rtol=1e-6, atol=1e-6)


def test_an_activation_with_decimals():
    maker = Maker()
    x, out = maker.input((4,)), maker.tensor((4,))
    maker.op("EltwiseBinaryOp", type="Add", lhs=x, rhs=x, out=out, activations=activation("Round", 1.0))
    given = torch.tensor([0.123, 0.456, -1.28, 3.0])
    assert torch.equal(run(maker, out, given), torch.round(given + given, decimals=1))


@pytest.mark.parametrize("field", ["activations", "input_tensor_a_activations", "input_tensor_b_activations"])
def test_an_add_with_activations_is_no_tail_of_a_product(field):
    """A product followed by an Add runs as one kernel, which would leave out the activation."""
    torch.manual_seed(4)
    maker = Maker()
    x, w, r = (maker.input((32, 32)) for _ in range(3))
    product = maker.op("MatmulOp", a=x, b=w, out=maker.tensor((32, 32)))
    out = maker.tensor((32, 32))
    maker.op("EltwiseBinaryOp", type="Add", lhs=product, rhs=r, out=out, **{field: activation("Relu")})
    inputs = [torch.randn(32, 32) for _ in range(3)]
    a, b = inputs[0] @ inputs[1], inputs[2]
    expected = {"activations": (a + b).relu(), "input_tensor_a_activations": a.relu() + b}.get(field, a + b.relu())
    torch.testing.assert_close(run(maker, out, *inputs), expected)


@pytest.mark.parametrize("padding", [[1, 1], [1, 0, 0, 1]], ids=str)
@pytest.mark.parametrize("divisor", [None, 1, 7])
def test_average_with_a_divisor(padding, divisor):
    maker = Maker()
    x = maker.input((1, 1, 6 * 5, 8))
    top, left, bottom, right = padding if len(padding) == 4 else padding * 2
    image = torch.randn(1, 8, 6, 5, generator=torch.Generator().manual_seed(5))
    padded = F.pad(image, (left, right, top, bottom))
    expected = F.avg_pool2d(padded, (3, 2), (2, 1), divisor_override=divisor)
    rows = expected.permute(0, 2, 3, 1).reshape(1, 1, -1, 8)
    extra = {"count_include_pad": True, "divisor_override": divisor}
    out = maker.op(
        "Pool2dOp", type="AvgPool2d", **{"in": x}, batch_size=1, input_height=6, input_width=5, channels=8,
        kernel_size=[3, 2], stride=[2, 1], padding=padding, dilation=[1, 1],
        extra_params={"AvgPool2dExtraParams": extra}, out=maker.tensor(rows.shape),
    )  # fmt: skip
    got = run(maker, out, image.permute(0, 2, 3, 1).reshape(1, 1, 30, 8))
    torch.testing.assert_close(got, rows)


@pytest.mark.parametrize("block", [0, 4, 2, 8])
def test_convolution_with_blocks_of_channels_and_dilation(block):
    torch.manual_seed(6)
    image, kernel = torch.randn(1, 6, 5, 6, 7), torch.randn(3, 6, 2, 2, 2)
    expected = F.conv3d(image, kernel, stride=(1, 2, 1), dilation=(1, 2, 3)).permute(0, 2, 3, 4, 1)
    maker = Maker()
    x, w = maker.input((1, 5, 6, 7, 6)), maker.input(kernel.shape, buffer="host", tile=False)
    prepared = maker.op(
        "PrepareConv3dWeightsOp", weight_tensor=w, groups=1, c_in_block=block, alignment=8, out=maker.tensor((64, 3))
    )
    out = maker.op(
        "Conv3dOp", input=x, weight=prepared, in_channels=6, out_channels=3, batch_size=1, input_depth=5,
        input_height=6, input_width=7, kernel_size=[2, 2, 2], stride=[1, 2, 1], padding=[0, 0, 0], dilation=[1, 2, 3],
        padding_mode="zeros", groups=1, conv3d_config={"c_in_block": block}, out=maker.tensor(expected.shape),
    )  # fmt: skip
    got = run(maker, out, image.permute(0, 2, 3, 4, 1), kernel)
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
