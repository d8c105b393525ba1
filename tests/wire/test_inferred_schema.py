"""The schema 912b70aa was inferred from files that also have the ops as text. Ops and fields outside it are refused."""

import re
from pathlib import Path

import pytest

import tt_torch.mlir.ttnn.dialect  # noqa: F401 (declares the ops)
from tt_torch.errors import BinaryFormatError, SchemaError
from tt_torch.mlir.ods import OPS
from tt_torch.runtime import Binary
from tt_torch.wire.decode import decode
from tt_torch.wire.encode import encode
from tt_torch.wire.facts import key_of, tensors
from tt_torch.wire.schema import load

FILES = sorted((Path(__file__).parents[1] / "data" / "plugin").glob("*.ttnn"))
INFERRED = "912b70aa"
# Our dialect lacks these ops. Each key is the name of an op in the text, and each value is the op's table.
FOREIGN = {
    "ttnn.get_device": "GetDeviceOp", "ttcore.load_cached": "LoadCachedOp", "ttnn.zeros": "NamedFullOp.Zeros",
    "ttnn.ones": "NamedFullOp.Ones", "ttnn.rows_gather": "RowsGatherOp",
    "ttnn.rows_scatter": "RowsScatterOp", "ttnn.capture_or_execute_trace": "CaptureOrExecuteTraceOp",
    "func.call": "FuncCallOp", "ttnn.assign": "AssignOp",
}  # fmt: skip
TYPES = {"f32": "Float32", "bf16": "BFloat16", "si32": "Int32", "ui32": "UInt32"}


def key_in(text):
    """The key of an op, as `facts.key_of` gives it, from the name in its text."""
    (name,) = re.match(r'(?:%[\w, %:]+ = )?"?((?:ttnn|ttcore|func)\.\w+)', text).groups()
    if name in FOREIGN:
        return FOREIGN[name]
    declared = OPS[name].facts
    return key_of(declared["table"], declared["fixed"])


def results_in(text):
    """Shape and data type of each result in the text of an op."""
    after = text.split(" loc(")[0].replace(") -> (d0", "").replace(") -> (0", "").rpartition("->")[2]
    found = re.findall(r"tensor<((?:\d+x)*)(\w+), ", after)
    return [(tuple(int(size) for size in shape.split("x") if size), TYPES[dtype]) for shape, dtype in found]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_fields_say_what_the_text_says(path):
    message = decode(path.read_bytes())
    operations = [op for program in message["programs"] for op in program["operations"]]
    assert len(operations) > 3
    for op in operations:
        ((name, record),) = op["type"].items()
        text = op["debug_info"]
        assert key_of(name, record) == key_in(text)
        out = {"BeginTraceCaptureOp": "trace_id", "AssignOp": "output"}.get(name, "out")
        made = tensors(record.get(out) or record.get("outputs") or [])
        assert [(tensor.shape, tensor.dtype) for tensor in made] == results_in(text)
        fused = [unary["op_type"].lower() for field in record if "activations" in field for unary in record[field]]
        assert sorted(fused) == sorted(re.findall(r"unary_with_param<op_type = (\w+)", text))
        for field, value in re.findall(r"(\w+) = (-?\d+) : [su]?i\d+", text):
            assert record.get(field, int(value)) == int(value)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files_keep_their_content(path):
    message = decode(path.read_bytes())
    assert decode(encode(message)) == message


def program(name, **fields):
    op = {"type": {name: fields}, "debug_info": f'"ttnn.{name.lower()}"()', "loc_info": ""}
    return {"schema_hash": load(INFERRED).hash, "programs": [{"name": "main", "operations": [op]}]}


@pytest.mark.parametrize("read", [decode, Binary])
def test_a_field_that_no_file_had_is_refused(read):
    read(encode(program("DeallocateOp")))
    with pytest.raises(BinaryFormatError, match=r"DeallocateOp.* has 2 slots, its schema has 1"):
        read(encode(program("DeallocateOp", force=True)))


@pytest.mark.parametrize("read", [decode, Binary])
def test_an_op_that_no_file_had_is_refused_by_its_text(read):
    data = encode(program("CopyOp"))
    at = data.rindex(bytes([load(INFERRED).enum("tt.target.ttnn.OpType").values["CopyOp"]]))
    with pytest.raises(BinaryFormatError, match=r'153.*the text of the op: "ttnn.copyop"'):
        read(data[:at] + bytes([153]) + data[at + 1 :])


@pytest.mark.parametrize("read", [decode, Binary])
def test_an_unknown_schema_is_not_guessed(read):
    """Tables of another schema can fit a file and mean something else."""
    data = FILES[0].read_bytes().replace(load(INFERRED).hash.encode(), b"0" * 64)
    with pytest.raises(SchemaError, match=r"(?s)0{64}.*f3606800.*make_schema"):
        read(data)
