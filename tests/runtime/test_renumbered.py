"""Enums are read by name: a binary of a schema with other numbers for their members computes the same.

Each program here is encoded twice, for the default schema and for one in which every member of every enum and union
has the number of another (`renumbered.py`). Both binaries must give the same bits, describe their tensors alike, and
take the same device memory.
"""

import json
import re
import subprocess
import sys

import pytest
import renumbered
import test_fusion
import test_kernels
import test_reference
import torch
from kernel_rows.images import POOL
from programs import Maker, tensor_desc
from safetensors.torch import load_file

from tt_torch.errors import BinaryFormatError, UnsupportedBinaryError
from tt_torch.runtime import Binary, Device, Executable
from tt_torch.wire import schema as schemas
from tt_torch.wire.binary import header
from tt_torch.wire.decode import decode
from tt_torch.wire.encode import encode

# The data types that a device can hold, and the activations that a convolution can apply.
HELD = ("Float32", "BFloat16", "BFP_BFloat8", "BFP_BFloat4", "UInt32", "UInt16", "UInt8", "Int32")
FUSED = ("Exp", "Gelu", "Relu", "Sqrt", "Sigmoid", "Tanh", "Abs", "Square", "LeakyRelu", "Relu6", "Hardsigmoid",
         "Silu", "Softplus", "Identity", "Neg")  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def other(tmp_path_factory):
    """The hash of the renumbered schema."""
    folder = tmp_path_factory.mktemp("schemas")
    with pytest.MonkeyPatch.context() as patch:
        other = renumbered.add(folder)
        patch.setattr(schemas, "_FOLDER", folder)
        yield other


def members(enum):
    return sorted(schemas.load().enum(f"tt.target.{enum}").values)


def outcome(data, inputs, resident):
    """The results of the binary, the descriptions of its tensors, and the memory that it takes."""
    device = Device(allow_host_code=True)
    executable = Executable(Binary(data), device=device)
    results = [result.float() for result in executable(inputs, resident)]
    specs = [(repr(spec), spec.memory_layout) for spec in executable.inputs + executable.outputs]
    return results, specs, executable.memory_stats()


def same_in_both(data, inputs, other, resident=()):
    again = encode({**decode(data), **header(other)}, other)
    assert again != data and Binary(again).schema_hash == other
    results, *descriptions = outcome(data, inputs, resident)
    results_again, *descriptions_again = outcome(again, inputs, resident)
    assert descriptions == descriptions_again
    assert len(results) == len(results_again) > 0
    for got, want in zip(results_again, results, strict=True):
        torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)


MATRIX = ((4, 8), "Float32")
COUNTS = ((4, 8), "Int32")


def program(op, operands, result, schema=schemas.DEFAULT, **attributes):
    """The binary of one op. `operands` maps the op's fields to pairs (shape, data type). `result` is a pair, too."""
    maker = Maker()
    refs = {field: maker.input(*given) for field, given in operands.items()}
    return maker.binary(maker.op(op, **refs, out=maker.tensor(*result), **attributes), schema=schema)


def values(spec, seed=1):
    """Random numbers inside the domain of every function, or integers from 1 to 9."""
    numbers = torch.rand(spec[0], generator=torch.Generator().manual_seed(seed)) * 0.8 + 0.1
    return (numbers * 10).int() if spec[1] == "Int32" else numbers


@pytest.mark.parametrize("function", members("ttnn.EltwiseUnaryOpType"))
def test_unary(function, other):
    spec = COUNTS if function == "BitwiseNot" else MATRIX
    same_in_both(program("EltwiseUnaryOp", {"in": spec}, spec, type=function), [values(spec)], other)


FUNCTIONS = [("EltwiseBinaryOp", function) for function in members("ttnn.EltwiseBinaryOpType")]
FUNCTIONS += [("EltwiseBinaryCompositeOp", function) for function in members("ttnn.EltwiseBinaryCompositeOpType")]
ON_FLOATS = [row for row in FUNCTIONS if not re.search("Bitwise|Shift", row[1])]
ON_INTEGERS = [row for row in FUNCTIONS if row[1] != "Atan2"]


@pytest.mark.parametrize(
    "op, function, spec", [(*row, MATRIX) for row in ON_FLOATS] + [(*r, COUNTS) for r in ON_INTEGERS]
)
def test_binary(op, function, spec, other):
    data = program(op, {"lhs": spec, "rhs": spec}, spec, type=function)
    inputs = [values(spec), values(spec, seed=2)]
    if re.search("Equal|Than|And|Or", function):  # only equal numbers and zeros show which function it was
        inputs = [(tensor > tensor.float().mean()).to(tensor.dtype) for tensor in inputs]
    same_in_both(data, inputs, other)


@pytest.mark.parametrize("function", members("ttnn.EltwiseUnaryCompositeOpType"))
def test_unary_composite(function, other):
    maker = Maker()
    x, low, high = (maker.input(*MATRIX) for _ in range(3))
    params = {
        "ClampScalar": {"ClampScalarOpParams": {"min": {"FP": {"value": 0.3}}, "max": {"FP": {"value": 0.6}}}},
        "ClampTensor": {"ClampTensorOpParams": {"min": low, "max": high}},
    }.get(function)
    y = maker.op("EltwiseUnaryCompositeOp", type=function, **{"in": x}, params=params, out=maker.tensor(*MATRIX))
    same_in_both(maker.binary(y), [values(MATRIX), torch.full((4, 8), 0.4), torch.full((4, 8), 0.5)], other)


@pytest.mark.parametrize("function", members("ttnn.ReductionOpType"))
def test_reduction(function, other):
    data = program("ReductionOp", {"in": MATRIX}, ((4,), "Float32"), type=function, dim_arg=[1], keep_dim=False)
    same_in_both(data, [values(MATRIX)], other)


@pytest.mark.parametrize("function", members("ttnn.ScatterReduceType"))
def test_scatter(function, other):
    maker = Maker()
    x, index, source = maker.input(*MATRIX), maker.input((4, 8), "UInt32"), maker.input(*MATRIX)
    maker.op(
        "ScatterOp", input=x, index=index, source=source, dim=0, scatter_reduce_type=function,
        out=(y := maker.tensor(*MATRIX)),
    )  # fmt: skip
    rows = torch.arange(32).view(4, 8) % 2
    same_in_both(maker.binary(y), [values(MATRIX), rows, values(MATRIX, seed=2)], other)


@pytest.mark.parametrize("function", members("ttnn.Pool2dOpType"))
def test_pooling(function, other):
    image = ((1, 1, 60, 8), "Float32")
    data = program("Pool2dOp", {"in": image}, ((1, 1, 36, 8), "Float32"), type=function, **POOL)
    same_in_both(data, [values(image)], other)


@pytest.mark.parametrize("function", members("ttnn.NamedFullOpType"))
def test_named_full(function, other):
    same_in_both(program("NamedFullOp", {}, MATRIX, type=function), [], other)


def test_power(other):
    op = "EltwiseBinaryCompositeScalarOp"
    data = program(op, {"lhs": MATRIX}, MATRIX, type="PowScalar", rhs={"I32": {"value": 3}})
    same_in_both(data, [values(MATRIX)], other)


@pytest.mark.parametrize("row", test_kernels.ROWS, ids=str)
def test_kernel_rows(row, other):
    """Slices, quantization, attention and the rest of the ops that have rows of their own."""
    data = test_kernels.program(row, torch.float32, schemas.DEFAULT)
    same_in_both(data, list(row.operands.values()), other)


@pytest.mark.parametrize("name", test_reference.NAMES)
def test_programs_of_tt_mlir(name, other):
    tensors = load_file(test_reference.DATA / f"{name}.safetensors")
    inputs = [tensors[f"in{i}"] for i in range(len(tensors)) if f"in{i}" in tensors]
    same_in_both((test_reference.DATA / f"{name}.ttnn").read_bytes(), inputs, other, range(len(inputs)))


def convolution(**attributes):
    maker = Maker()
    x, w = maker.input((1, 1, 72, 16)), maker.input((16, 16, 3, 3), buffer="host", tile=False)
    common = {
        "in_channels": 16, "out_channels": 16, "batch_size": 2, "input_height": 6, "input_width": 6,
        "kernel_size": [3, 3], "stride": [1, 1], "padding": [1, 1, 1, 1], "dilation": [1, 1], "groups": 1,
    }  # fmt: skip
    out = maker.tensor((1, 1, 72, 16))
    return maker, x, w, out, common | attributes


@pytest.mark.parametrize("resident", [(), (1,)], ids=["plain", "packed"])
@pytest.mark.parametrize("function", FUSED)
def test_fused_activation(function, resident, other):
    maker, x, w, out, attributes = convolution(conv2d_config={"activation": {"op_type": function, "params": []}})
    y = maker.op("Conv2dOp", input=x, weight=w, out=out, **attributes)
    same_in_both(
        maker.binary(y),
        [values(((1, 1, 72, 16), "Float32")), values(((16, 16, 3, 3), "Float32")) / 50],
        other,
        resident,
    )


@pytest.mark.parametrize("resident", [(), (1, 2)], ids=["plain", "packed"])
@pytest.mark.parametrize("build", [test_fusion.linear, test_fusion.conv])
@pytest.mark.parametrize("tail", ["Add", "Relu", "Gelu"])
def test_absorbed_tail(build, tail, resident, other):
    data, shapes = build(tail, "Float32")
    same_in_both(data, [values((shape, "Float32")) - 0.5 for shape in shapes], other, resident)


@pytest.mark.parametrize("dtype", ["Float32", "BFloat16"])
def test_prepared_weight(dtype, other):
    maker, x, w, out, attributes = convolution()
    weight = maker.op(
        "PrepareConv2dWeightsOp", weight_tensor=w, out=maker.tensor((1, 1, 144, 16), dtype), input_dtype=dtype,
        input_tensor_layout="Tile", weights_format="OIHW", has_bias=False, **attributes,
    )  # fmt: skip
    x["desc"], out["desc"] = tensor_desc((1, 1, 72, 16), dtype), tensor_desc((1, 1, 72, 16), dtype)
    y = maker.op("Conv2dOp", input=x, weight=weight, out=out, **attributes)
    same_in_both(
        maker.binary(y), [values(((1, 1, 72, 16), "Float32")), values(((16, 16, 3, 3), "Float32")) / 50], other
    )


@pytest.mark.parametrize("dtype", HELD)
def test_data_types(dtype, other):
    maker = Maker()
    x = maker.input((4, 32))
    y = maker.op("TypecastOp", **{"in": x}, dtype=dtype, out=maker.tensor((4, 32), dtype))
    z = maker.op("TypecastOp", **{"in": y}, dtype="Float32", out=maker.tensor((4, 32)))
    same_in_both(maker.binary(y, z), [values(((4, 32), "Float32")) * 1000], other)


@pytest.mark.parametrize("dtype", sorted(set(members("DataType")) - set(HELD)))
def test_data_types_that_a_device_lacks(dtype, other):
    data = program("TypecastOp", {"in": MATRIX}, ((4, 8), dtype), dtype=dtype)
    message = f"TypecastOp at model.py:1: a device cannot hold values of type {dtype}"
    for binary in (data, encode({**decode(data), **header(other)}, other)):
        with pytest.raises(UnsupportedBinaryError, match=message):
            Executable(Binary(binary))


@pytest.mark.parametrize("dtype", ["Float32", "BFloat16", "Int32", "UInt16", "UInt8"])
def test_constants(dtype, other):
    width = {"Float32": 4, "Int32": 4, "BFloat16": 2, "UInt16": 2, "UInt8": 1}[dtype]
    data = program("ConstantOp", {}, ((4, 8), dtype), input=bytes(range(32 * width)), input_dtype=dtype)
    same_in_both(data, [], other)


SHARDS = {
    "core_range_set": {"core_ranges": [{"start_coord": {"x": 0, "y": 0}, "end_coord": {"x": 1, "y": 1}}]},
    "shape": [32, 32],
}


@pytest.mark.parametrize("buffer", members("BufferType"))
@pytest.mark.parametrize("layout", members("ttnn.TensorMemoryLayout"))
def test_placements(buffer, layout, other):
    maker = Maker()
    x, y = maker.input((64, 64)), maker.tensor((64, 64))
    config = {"tensor_memory_layout": layout, "buffer_type": buffer}
    if layout != "Interleaved":
        config |= {"nd_shard_spec" if layout == "NDSharded" else "shard_spec": SHARDS | {"orientation": "RowMajor"}}
    y["desc"]["layout"]["memory_desc"]["memory_config"] = config
    maker.op("ToMemoryConfigOp", in0=x, memcfg=config, out=y)
    z = maker.op("ToMemoryConfigOp", in0=y, out=maker.tensor((64, 64)))
    same_in_both(maker.binary(z, y), [values(((64, 64), "Float32"))], other)


def test_storage_types(other):
    maker = Maker()
    x = maker.input((4, 8), buffer="host", tile=False)
    y = maker.op("ToDeviceOp", **{"in": x}, out=maker.tensor((4, 8)))
    z = maker.op("FromDeviceOp", **{"in": y}, out=maker.tensor((4, 8), buffer="host"))
    same_in_both(maker.binary(z), [values(MATRIX)], other)


# Each row is an op, a field that has the unknown member (or text), and the op's operands.
NOVELTIES = [
    ("EltwiseUnaryOp", "type", ["in"]),
    ("EltwiseUnaryCompositeOp", "type", ["in"]),
    ("EltwiseBinaryOp", "type", ["lhs", "rhs"]),
    ("EltwiseBinaryCompositeOp", "type", ["lhs", "rhs"]),
    ("EltwiseBinaryCompositeScalarOp", "type", ["lhs"]),
    ("ExperimentalEltwiseBinaryBackwardOp", "type", ["grad", "input"]),
    ("EltwiseQuantizationOp", "type", ["in"]),
    ("ReductionOp", "type", ["in"]),
    ("Pool2dOp", "type", ["in"]),
    ("NamedFullOp", "type", []),
    ("SliceOp", "type", ["in"]),
    ("ScatterOp", "scatter_reduce_type", ["input", "index", "source"]),
    ("ConstantOp", "input_dtype", []),
    ("ExperimentalEltwiseBinaryBackwardOp", "approximate", ["grad", "input"]),
    ("UpsampleOp", "mode", ["in"]),
    ("Conv3dOp", "padding_mode", ["input", "weight"]),
]


def refused(what, maker, *outputs, other):
    """Planning the program raises an error that names its last op, the line of that op, and the field `what`."""
    data = maker.binary(*outputs, schema=other)
    operation = maker.program["operations"][-1]
    (op,), line = operation["type"], len(maker.program["operations"])
    message = f"{op} at model.py:{line}: {what} is Novel, which the runtime does not support"
    with pytest.raises(UnsupportedBinaryError, match=re.escape(message) + "$"):
        Executable(Binary(data))


@pytest.mark.parametrize("op, field, operands", NOVELTIES, ids=[f"{row[0]}.{row[1]}" for row in NOVELTIES])
def test_a_function_without_kernel(op, field, operands, other):
    maker = Maker()
    refs = {name: maker.input(*MATRIX) for name in operands}
    y = maker.op(op, **refs, **{field: "Novel"}, out=maker.tensor(*MATRIX))
    refused(f"{op}.{field}", maker, y, other=other)


def test_an_activation_without_kernel(other):
    maker, x, w, out, attributes = convolution(conv2d_config={"activation": {"op_type": "Novel"}})
    y = maker.op("Conv2dOp", input=x, weight=w, out=out, **attributes)
    refused("UnaryWithParam.op_type", maker, y, other=other)


@pytest.mark.parametrize("field", ["data_type", "storage_type", "tensor_memory_layout", "buffer_type"])
def test_a_description_with_an_unknown_member(field, other):
    maker = Maker()
    x, y = maker.input(*MATRIX), maker.tensor(*MATRIX)
    memory = y["desc"]["layout"]["memory_desc"]
    table, owner = (memory, "MemoryDesc") if field in memory else (memory["memory_config"], "MemoryConfig")
    table[field] = "Novel"
    maker.op("ToLayoutOp", **{"in": x}, out=y)
    refused(f"{owner}.{field}", maker, x, other=other)


def with_number(message, edit, first, second, number):
    """A file in which the field that `edit` sets has `number`, instead of the number of the member `first`.

    Its place is found by comparison with a file that has the member `second`.
    """
    edit(message, first)
    data = bytearray(encode(message))
    edit(message, second)
    (at,) = (i for i, (a, b) in enumerate(zip(data, encode(message), strict=True)) if a != b)
    data[at] = number
    return bytes(data)


def set_function(message, member):
    message["programs"][0]["operations"][0]["type"]["EltwiseUnaryOp"]["type"] = member


def set_buffer(message, member):
    memory = message["programs"][0]["inputs"][0]["desc"]["layout"]["memory_desc"]
    memory["memory_config"]["buffer_type"] = member


def set_chip(message, member):
    chip = {"supported_data_types": ["Float32", member]}
    message["system_desc"] = {"chip_descs": [chip]}


def set_placement(message, member):
    mapper = {"placements": [{"type": member, "dim": 7}]}
    message["programs"][0]["operations"].append({"type": {"DistributeTensorOp": {"mapper_config": mapper}}})
    del message["programs"][0]["operations"][1:-1]


@pytest.mark.parametrize(
    "edit, first, second, field, enum",
    [
        (set_function, "Relu", "Gelu", "EltwiseUnaryOp.type", "EltwiseUnaryOpType"),
        (set_buffer, "L1", "SystemMemory", "MemoryConfig.buffer_type", "BufferType"),
        (set_chip, "Float16", "BFloat16", "ChipDesc.supported_data_types", "DataType"),
        (set_placement, "Replicate", "Shard", "Placement.type", "PlacementType"),
    ],
)
def test_a_number_that_no_member_has(edit, first, second, field, enum):
    message = decode(program("EltwiseUnaryOp", {"in": MATRIX}, MATRIX, type="Abs"))
    assert Binary(with_number(message, edit, first, second, 0)).programs
    text = f"not a valid TTNN binary: {field} is 99, and {enum} of its schema has no such value"
    with pytest.raises(BinaryFormatError, match=re.escape(text)):
        Binary(with_number(message, edit, first, second, 99))


def test_a_default_that_no_member_has(tmp_path):
    """The generator refuses a schema in which the default of an enum's field is no member of the enum."""
    raw = json.loads(renumbered.path_of(schemas.DEFAULT).read_text())
    function = raw["tables"]["tt.target.ttnn.EltwiseUnaryOp"]["fields"][0]
    assert function["name"] == "type"
    function["default"] = 99
    (tmp_path / "schema.json").write_text(json.dumps(raw))
    command = [sys.executable, renumbered.EMBEDDER, tmp_path / "tables.cpp", tmp_path / "schema.json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0 and "the default of tt.target.ttnn.EltwiseUnaryOp.type is no member" in done.stderr
