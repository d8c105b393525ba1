"""Each row is a program of one op, compared with plain PyTorch. An op has a row for each of its functions or modes."""

from dataclasses import replace

import pytest
import torch
from kernel_rows import attention, functions, images, movement, others, products, training
from kernel_rows.images import TRANSPOSED, TRANSPOSED_SIZE, conv_transpose
from kernel_rows.products import conv2d
from kernel_rows.row import randn
from programs import Maker

import tt_torch
from tt_torch.runtime import Binary, Device, Executable
from tt_torch.runtime.mesh_executable import MeshExecutable
from tt_torch.wire.schema import DEFAULT, load

FILES = (attention, functions, images, movement, others, products, training)
OF_ALL = [row for file in FILES for row in file.ROWS]
ROWS = [*OF_ALL, *training.OF_DEFAULT]

WIRE_TYPES = {
    torch.float32: "Float32",
    torch.bfloat16: "BFloat16",
    torch.int32: "Int32",
    torch.int64: "UInt32",
}

# Operands that the wire format has inside a table of parameters.
NESTED = {
    "SliceOp": {"SliceDynamicOpParams": lambda refs: {"begins": refs["begins"], "ends": refs["ends"]}},
    "EltwiseUnaryCompositeOp": {"ClampTensorOpParams": lambda refs: {"min": refs["min"], "max": refs["max"]}},
    "EltwiseQuantizationOp": {
        "QuantizeDequantizeOpParams": lambda refs: {
            "scale": {"PerAxisScale": {"scale": refs["scale"]}},
            "zero_point": {"PerAxisZeroPoint": {"zero_point": refs["zero_point"]}},
        }
    },
}


def program(row, dtype, schema, mesh=(1, 1)):
    maker = Maker(mesh)
    float_type = WIRE_TYPES[dtype]
    wire = {n: float_type if t.is_floating_point() else WIRE_TYPES[t.dtype] for n, t in row.operands.items()}
    refs = {name: maker.input(t.shape, wire[name], tile=False) for name, t in row.operands.items()}
    outs = {}
    for name, result in row.results.items():
        shape, result_type = result if str in map(type, result) else (result, float_type)
        outs[name] = maker.tensor(shape, result_type)
    fields = dict(row.attributes)
    if row.op in NESTED and len(refs) > 1:
        ((member, nest),) = NESTED[row.op].items()
        fields["params"] = {member: nest(refs)}
        refs_here = {"in": refs["in"]}
    else:
        refs_here = refs
    maker.op(row.op, **refs_here, **outs, **fields)
    return maker.binary(*outs.values(), *(refs[name] for name in row.in_place), schema=schema)


def check(got, want, tolerance):
    assert got.shape == want.shape
    if not want.is_floating_point():
        return torch.testing.assert_close(got.long(), want.long(), rtol=0, atol=0)
    far = (got.float() - want.float()).masked_fill(got == want, 0.0).abs().max()  # infinities may be equal
    assert far <= tolerance * max(1.0, want[want.isfinite()].abs().max())


def run(row, dtype, schema=DEFAULT):
    operands = [t.to(dtype) if t.is_floating_point() else t for t in row.operands.values()]
    executable = Executable(Binary(program(row, dtype, schema)))
    assert executable.binary.schema_hash == schema
    # The expected result is PyTorch's, in float32, for the operands as the device holds them.
    expected = row.expected(*(t.float() if t.is_floating_point() else t for t in operands))
    expected = [expected] if isinstance(expected, torch.Tensor) else list(expected)
    tolerance = row.tolerance if dtype == torch.float32 else 1e-2
    kept = () if row.in_place else range(len(operands))
    for resident in ((), (), kept, kept):  # the second call finds what the first one has changed
        for got, want in zip(executable(operands, resident), expected, strict=True):
            check(got, want, tolerance)


# Steps of a quantization, and logarithms for a gradient, are not exact in bfloat16.
EXACT_IN_BFLOAT16 = [row for row in ROWS if row.op not in ("EltwiseQuantizationOp", "SDPABackwardOp")]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_kernel(row):
    run(row, torch.float32)


@pytest.mark.parametrize("row", EXACT_IN_BFLOAT16, ids=str)
def test_kernel_in_bfloat16(row):
    run(row, torch.bfloat16)


@pytest.mark.parametrize("row", OF_ALL, ids=str)
def test_kernel_in_another_schema(row):
    run(row, torch.float32, load("433d79f9").hash)


def two_results(op, x, shape, **fields):
    """The values and positions that an op picks."""
    maker = Maker()
    name = "in" if op == "SortOp" else "input_tensor"
    outputs = [maker.tensor(shape), maker.tensor(shape, "UInt16")]
    maker.op(op, **{name: maker.input(x.shape)}, outputs=outputs, **fields)
    values, positions = Executable(Binary(maker.binary(*outputs)))([x])
    return values, positions.long()


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("flag", [True, False])
def test_sort_and_top_k(dim, flag):
    """A stable sort keeps the order of equal elements."""
    x = torch.arange(64).remainder(13).reshape(16, 4).float()
    want = torch.sort(x, dim=dim, descending=flag, stable=True)
    got = two_results("SortOp", x, x.shape, dim=dim, descending=flag, stable=True)
    assert torch.equal(got[0], want[0]) and torch.equal(got[1], want[1])

    x = randn(16, 4)
    want = torch.topk(x, 2, dim, largest=flag)
    got = two_results("TopKOp", x, want[0].shape, k=2, dim=dim, largest=flag, sorted=True)
    assert torch.equal(got[0], want[0]) and torch.equal(got[1], want[1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32])
@pytest.mark.parametrize("descending", [True, False])
def test_stable_sorts_of_long_rows(dtype: torch.dtype, descending: bool) -> None:
    """Zeros of both signs are equal, and so are all NaN, which are larger than infinity. Integers use all 32 bits."""
    x = torch.randint(-(2**31), 2**31, (3, 700), dtype=torch.int32)
    x[:, ::2] = torch.randint(-3, 4, (3, 350), dtype=torch.int32)
    if dtype != torch.int32:
        odd = torch.tensor([torch.nan, -torch.nan, torch.inf, -torch.inf, 0.0, -0.0, 1e-40, -1e-40])
        x = x.view(torch.float32).where(torch.rand(3, 700) < 0.5, odd[torch.randint(8, (3, 700))]).to(dtype)
    for given, dim in ((x, 1), (x.T.contiguous(), 0)):
        model = tt_torch.compile_model(
            lambda x, dim=dim: torch.sort(x, stable=True, dim=dim, descending=descending), (given,)
        )
        (values, places), want = model(given), torch.sort(given, stable=True, dim=dim, descending=descending)
        assert torch.equal(places, want.indices)
        torch.testing.assert_close(values, want.values, rtol=0, atol=0, equal_nan=True)
        assert torch.equal(values.double().signbit(), want.values.double().signbit())


@pytest.mark.parametrize("mirror", [True, False])
def test_prepared_transposed_convolution(mirror):
    maker = Maker()
    x, w = maker.input((1, 1, 60, 8)), maker.input((8, 3, 3, 3), buffer="host", tile=False)
    b = maker.input((1, 1, 1, 6), buffer="host", tile=False)
    common = {"input_dtype": "Float32", "input_tensor_layout": "Tile", **TRANSPOSED}
    weight = maker.op(
        "PrepareConvTranspose2dWeightsOp",
        weight_tensor=w,
        weights_format="IOHW",
        has_bias=True,
        mirror_kernel=mirror,
        out=maker.tensor((1, 1, 36, 6)),
        **common,
    )
    common.pop("output_padding")
    bias = maker.op("PrepareConvTranspose2dBiasOp", bias_tensor=b, out=maker.tensor((1, 1, 1, 6)), **common)
    y = maker.op(
        "ConvTranspose2dOp",
        input=x,
        weight=weight,
        bias=bias,
        out=maker.tensor(TRANSPOSED_SIZE),
        **TRANSPOSED,
    )
    inputs = [randn(1, 1, 60, 8), randn(8, 3, 3, 3), randn(1, 1, 1, 6)]
    got = Executable(Binary(maker.binary(y)))(inputs, {1, 2})[0]
    kernel = inputs[1] if mirror else inputs[1].flip(2, 3)
    check(got, conv_transpose(inputs[0], kernel, inputs[2]), 1e-5)


@pytest.mark.parametrize("op", ["TypecastOp", "ToLayoutOp"])
@pytest.mark.parametrize("dtype", ["Float32", "BFloat16"])
def test_a_prepared_weight_that_is_cast_stays_prepared(op, dtype):
    row = conv2d(groups=2, bias=False)
    maker = Maker()
    x, w = maker.input((1, 1, 84, 8)), maker.input((6, 4, 3, 3), buffer="host", tile=False)
    form = {"input_dtype": "Float32", "out": maker.tensor((1, 1, 36, 6))}
    weight = maker.op("PrepareConv2dWeightsOp", weight_tensor=w, **row.attributes, **form)
    cast = maker.op(op, **{"in": weight}, out=maker.tensor((1, 1, 36, 6), dtype))
    y = maker.op("Conv2dOp", input=x, weight=cast, out=maker.tensor(row.results["out"]), **row.attributes)
    x, w = row.operands.values()
    rounded = w.bfloat16().float() if dtype == "BFloat16" else w
    check(Executable(Binary(maker.binary(y)))([x, w], {1})[0], row.expected(x, rounded), 1e-5)


@pytest.mark.parametrize(
    "op, fields, expected, moves",
    [
        ("TypecastOp", {"dtype": "Float32"}, lambda x: x, False),
        ("ToLayoutOp", {}, lambda x: x, False),
        ("ReshapeOp", {}, lambda x: x[0], False),
        ("PermuteOp", {"permutation": [1, 0, 2]}, lambda x: x.transpose(0, 1), False),
        ("TransposeOp", {"dim0": 0, "dim1": 2}, lambda x: x.transpose(0, 2), True),
    ],
)
def test_what_moves_no_element_takes_no_memory(op, fields, expected, moves):
    """A dimension of size one may change its place."""
    value = torch.rand(1, 32, 32)
    want, maker = expected(-value), Maker()
    x = maker.op("EltwiseUnaryOp", type="Neg", **{"in": maker.input(value.shape)}, out=maker.tensor(value.shape))
    y = maker.op(op, **{"in": x}, **fields, out=maker.tensor(want.shape))
    executable = Executable(Binary(maker.binary(y)))
    assert torch.equal(executable([value])[0], want)
    assert executable.memory_stats()["host_arena"] == (2 if moves else 1) * 4 * value.numel()


@pytest.mark.parametrize(
    "source, target, dtype",
    [
        ("Float32", "Int32", torch.int32),
        ("Int32", "Float32", torch.float32),
        ("BFloat16", "UInt16", torch.uint16),
        ("UInt32", "Float32", torch.float32),
    ],
)
def test_bitcast(source, target, dtype):
    maker = Maker()
    x = maker.input((4, 8), source)
    y = maker.op("BitcastConvertOp", **{"in": x}, dtype=target, out=maker.tensor((4, 8), target))
    floats = randn(4, 8).to(torch.bfloat16) if source == "BFloat16" else randn(4, 8)
    value = floats if "Float" in source else floats.view(torch.int32 if source == "Int32" else torch.uint32)
    got = Executable(Binary(maker.binary(y)))([value], output_dtypes=[dtype])[0]
    assert torch.equal(got.view(torch.uint8), value.view(torch.uint8))


@pytest.mark.parametrize(
    "source, target, value",
    [
        ("Float32", "BFP_BFloat8", randn(32, 32)),
        ("Float32", "BFP_BFloat4", randn(32, 32)),
        ("Int32", "UInt16", torch.arange(32 * 32, dtype=torch.int32).reshape(32, 32) * 97 - 500),
    ],
)
def test_what_is_written_in_place_has_the_type_of_its_target(source, target, value):
    """Block floats are rounded, and short integers wrap, as in a cast."""

    def result(op):
        maker = Maker()
        x, y = maker.input((32, 32), source), maker.input((32, 32), target)
        if op == "CopyOp":
            maker.op(op, src=x, dst=y)
        else:
            y = maker.op(op, **{"in": x}, out=maker.tensor((32, 32), target))
        zeros = torch.zeros(32, 32, dtype=value.dtype)
        return Executable(Binary(maker.binary(y)))([value, zeros])[0]

    written = result("CopyOp")
    assert torch.equal(written, result("TypecastOp"))
    assert not torch.equal(written.to(value.dtype), value)


def other_values(x):
    """Operands for another chip: the same numbers at other places. Indices and flags stay valid."""
    return x.flatten().flip(0).reshape(x.shape) if x.is_floating_point() else x


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_each_chip_of_a_mesh_computes_with_its_own_values(row):
    """A kernel may keep a value from one of its steps to the next step. Each chip must have its own value."""
    chips = [list(row.operands.values()), [other_values(x) for x in row.operands.values()]]
    alone = Executable(Binary(program(row, torch.float32, DEFAULT)))
    expected = [alone([x.clone() for x in operands]) for operands in chips]
    count = len(row.results) + len(row.in_place)
    together = MeshExecutable(
        Binary(program(row, torch.float32, DEFAULT, (1, 2))), 0, Device(mesh_shape=(1, 2)), each=range(count)
    )
    found = together([[x.clone() for x in own] for own in zip(*chips, strict=True)])
    for chip, results in enumerate(expected):
        for one, other in zip(found, results, strict=True):
            torch.testing.assert_close(one[chip], other, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("axis, moved", [(None, [0, 5]), (0, [0, 0]), (1, [0, 5])])
def test_scores_of_several_chips_are_of_rows_after_each_other(axis, moved):
    (row,) = (row for row in training.ROWS if row.op == "IndexerScoreDsaOp")
    of_axis = replace(row, attributes={"chunk_start_idx": 0} | ({} if axis is None else {"cluster_axis": axis}))
    binary = Binary(program(of_axis, torch.float32, DEFAULT, (1, 2)))
    (scores,) = MeshExecutable(binary, 0, Device(mesh_shape=(1, 2)), each=[0])(list(row.operands.values()))
    for chip, first in enumerate(moved):
        visible = torch.arange(9) <= torch.arange(5)[:, None] + first
        assert torch.equal(scores[chip][0, 0].isfinite(), visible)
