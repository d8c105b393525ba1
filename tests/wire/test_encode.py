"""What `encode` refuses, what its bytes look like, and how long it takes."""

import struct
import subprocess
import sys
import time

import pytest

from tt_torch.errors import SchemaError
from tt_torch.wire.decode import decode
from tt_torch.wire.encode import EncodeError, encode
from tt_torch.wire.schema import DEFAULT, known, load
from wire.messages import random_binary, with_op


def program(**fields):
    return {"programs": [fields]}


def op(member, **fields):
    return program(operations=[{"type": {member: fields}}])


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (program(nmae="main"), ["Program.nmae", "'main'", "name, inputs, outputs"]),
        (program(name=3), ["Program.name", "got 3", "string"]),
        (program(private="yes"), ["Program.private", "'yes'", "bool"]),
        (program(inputs={}), ["Program.inputs", "got {}", "a list", "TensorRef"]),
        (program(inputs=[3]), ["TensorRef", "got 3", "a dict"]),
        (program(mesh_shape={"y": 1}), ["Program.mesh_shape", "a dict of y, x"]),
        (program(inputs=[{"global_id": -1}]), ["TensorRef.global_id", "-1", "uint"]),
        (program(inputs=[{"desc": {"shape": [1.5]}}]), ["TensorDesc.shape", "[1.5]", "a list, each int"]),
        (program(inputs=[{"desc": {"shape": [2**31]}}]), ["TensorDesc.shape", "2147483648"]),
        (op("MatmulOpp"), ["Operation.type", "MatmulOpp", "AdamWOp"]),
        (program(operations=[{"type": {}}]), ["Operation.type", "got {}"]),
        (program(operations=[{"type": {"NONE": {}}}]), ["Operation.type", "NONE"]),
        (op("TypecastOp", dtype="float32"), ["TypecastOp.dtype", "'float32'", "Float32, Float16"]),
        (op("TypecastOp", dtype=99), ["TypecastOp.dtype", "99"]),
        (op("SoftmaxOp", dimension="1"), ["SoftmaxOp.dimension", "'1'", "int"]),
        (op("ConstantOp", input=[256]), ["ConstantOp.input", "[256]", "ubyte"]),
    ],
)
def test_errors_name_field_and_value_and_what_is_accepted(message, words):
    with pytest.raises(EncodeError) as error:
        encode(message)
    assert all(word in str(error.value) for word in words), str(error.value)


def test_errors_tell_the_way_to_the_field():
    with pytest.raises(EncodeError) as error:
        encode(program(inputs=[{"desc": {"shape": "1x2"}}]))
    assert error.value.__notes__ == ["in TensorRef.desc", "in Program.inputs", "in TTNNBinary.programs"]


def test_unknown_schema():
    with pytest.raises(SchemaError, match=r"'0123abcd'.*ttnn_433d79f9, ttnn_f3606800"):
        encode({}, schema="0123abcd")


def test_a_message_is_not_written_under_another_schema():
    with pytest.raises(SchemaError, match="433d79f9"):
        encode({"schema_hash": DEFAULT}, schema="433d79f9")


def test_the_schema_decides_the_numbers():
    """The same message under two schemas: other tags, and each reads back under its own hash."""
    message = op("MatmulOp", transpose_a=True)
    ours, other = encode(message), encode(message, schema="433d79f9")
    assert ours != other
    assert decode(ours)["programs"] == decode(other)["programs"]
    assert [decode(data)["schema_hash"][:8] for data in (ours, other)] == ["f3606800", "433d79f9"]
    tags = [load(hash).enum("tt.target.ttnn.OpType").values["MatmulOp"] for hash in (DEFAULT, "433d79f9")]
    assert tags[0] == tags[1] + 1


def test_prefixes_of_a_hash_give_the_same_table():
    assert load("f36") is load("f3606800") is load(DEFAULT) is load()
    assert known() == ["system_desc_92f6a8a8", "ttnn_433d79f9", "ttnn_f3606800"]


@pytest.mark.parametrize("wrong", ["", "f3606800" + "0" * 56, "zzz"])
def test_wrong_hashes(wrong):
    with pytest.raises(SchemaError):
        load(wrong)


@pytest.mark.parametrize("length", range(9))
def test_eight_byte_scalars_are_aligned_from_the_first_byte(length):
    """Whatever stands before it, and with the size prefix counted."""
    core = {"x": 0x1122334455667788, "y": 1}
    spec = {"core_range_set": {"core_ranges": [{"start_coord": core, "end_coord": core}]}}
    memory = {"memory_config": {"shard_spec": spec}}
    tensor = {"desc": {"shape": list(range(length)), "layout": {"memory_desc": memory}}}
    data = encode(program(name="n" * length, inputs=[tensor]))
    assert data.index(struct.pack("<Q", core["x"])) % 8 == 0
    assert len(data) % 8 == 0


def test_container():
    data = encode({})
    assert struct.unpack_from("<I", data) == (len(data) - 4,)
    assert data[8:12] == b"TTNN"
    assert encode(random_binary("92f6a8a8", 0))[8:12] == b"TTSY"


def large_message(ops=300):
    """As many operations, each with tensors of its own, as a compiled BERT-base has."""

    def tensor(number):
        shape = [1, number, 768]
        memory = {"memory_config": {"buffer_type": "L1"}, "storage_type": "Device", "data_type": "BFloat16"}
        memory |= {"tile_shape": {"y": 32, "x": 32}}
        desc = {"shape": shape, "mesh_shape": [1, 1], "layout": {"memory_desc": memory}, "local_shape": shape}
        return {"global_id": number, "desc": desc}

    def operation(i):
        a, b, out = (tensor(3 * i + k) for k in range(3))
        return {"type": {"MatmulOp": {"a": a, "b": b, "out": out}}, "debug_info": f"%{i} = matmul" * 9}

    return program(operations=[operation(i) for i in range(ops)])


def test_speed():
    """300 operations with 900 tensors; measured 0.05 s on a busy machine."""
    message = large_message()
    encode(message)
    start = time.perf_counter()
    encode(message)
    assert time.perf_counter() - start < 0.15


def test_start_up_needs_no_compiler():
    code = "import sys, tt_torch.wire.encode; print('torch_mlir' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_ops_can_be_written_empty():
    assert len(encode(with_op(DEFAULT, "MatmulOp", 0, density=0))) < 300
