"""`encode`: its errors, and the bytes that it writes."""

import json
import mmap
import os
import random
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tt_torch.errors import SchemaError
from tt_torch.runtime import Binary
from tt_torch.wire import schema as schemas
from tt_torch.wire.decode import decode
from tt_torch.wire.encode import EncodeError, encode, plan, write
from tt_torch.wire.schema import DEFAULT, SYSTEM_DESC, Schema, known, load
from wire.messages import random_binary, with_op

TESTS = str(Path(__file__).parents[1])


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
        (op("ConstantOp", input=np.zeros((1, 1), np.uint8)), ["ConstantOp.input", "array([[0]]", "ubyte"]),
        (op("ConstantOp", input=np.array([-1], np.int8)), ["ConstantOp.input", "array([-1]", "ubyte"]),
        (op("ConstantOp", input=np.array([0.5])), ["ConstantOp.input", "array([0.5])", "ubyte"]),
        (program(inputs=[{"desc": {"shape": b"12"}}]), ["TensorDesc.shape", "b'12'", "a list, each int"]),
        (program(inputs=[{"desc": {"shape": np.ones((2, 2))}}]), ["TensorDesc.shape", "a list, each int"]),
        (program(name="\ud800"), ["Program.name", "'\\ud800'", "string"]),
        (program(mesh_shape={"y": 1, "z": 1}), ["Program.mesh_shape", "'z'", "a dict of y, x"]),
        (program(mesh_shape={"y": 1, "x": 2**31}), ["Program.mesh_shape", "a dict of y, x"]),
        (program(operations=[{"type": {"CopyOp": {}, "AddOp": {}}}]), ["Operation.type", "CopyOp"]),
        (program(operations=[{"type": {"CopyOp": None}}]), ["CopyOp", "got None", "a dict"]),
        (program(operations=[{"type_type": 3}]), ["Operation.type_type", "got 3", "one of the fields type, "]),
        ({"programs": [{3: 4}]}, ["Program.3", "got 4", "one of the fields name, "]),
        (op("FullOp", fill_value={"FP": {"value": 1e39}}), ["FloatingPointType.value", "1e+39", "float"]),
    ],
)
def test_errors_name_field_and_value_and_what_is_accepted(message, words):
    with pytest.raises(EncodeError) as error:
        encode(message)
    assert all(word in str(error.value) for word in words), str(error.value)


def test_errors_name_the_path_to_the_field():
    with pytest.raises(EncodeError) as error:
        encode(program(inputs=[{"desc": {"shape": "1x2"}}]))
    assert error.value.__notes__ == ["in TensorRef.desc", "in Program.inputs", "in TTNNBinary.programs"]


STRANGE = (
    None,
    True,
    -1,
    2**70,
    0.5,
    float("nan"),
    "",
    "\ud800",
    b"\xff",
    [],
    [[]],
    (None,),
    {},
    {"": 0},
    {3: {}},
    {"FP": 1},
)
STRANGE += (np.zeros((2, 2)), np.array(["a"]), np.array([None]), memoryview(b"abcd").cast("i"), set(), object())


def spoiled(part, rng):
    """A copy of a message, struct, list or value, in which one value is replaced or one key is renamed."""
    if not isinstance(part, dict | list) or not part or rng.random() < 0.2:
        return rng.choice(STRANGE)
    items = list(part.items() if isinstance(part, dict) else enumerate(part))
    key, value = rng.choice(items)
    copy = dict(items)
    copy[key] = spoiled(value, rng)
    if isinstance(part, list):
        return list(copy.values())
    if rng.random() < 0.1:
        copy[rng.choice(STRANGE[:8])] = copy.pop(key)
    return copy


@settings(max_examples=200)
@given(st.integers(0, 2**32 - 1))
def test_a_spoiled_message_is_an_error_or_a_sound_file(seed):
    rng = random.Random(seed)
    message = random_binary(rng.choice([DEFAULT, SYSTEM_DESC]), seed, 0.7)
    for key in message.keys() - {"schema_hash"}:
        try:
            data = encode(message | {key: spoiled(message[key], rng)})
        except EncodeError as error:
            assert error.field.split(".")[0] and error.accepted
        else:
            assert encode(decode(data)) == data


def test_an_exception_in_a_values_own_code_is_passed_on():
    class Breaks:
        def __index__(self):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        encode(program(inputs=[{"global_id": Breaks()}]))


def test_a_message_that_changes_while_it_is_encoded():
    """A value may remove elements from its own list while it is read. The encoder skips the removed elements."""

    class Empties:
        def __index__(self):
            shape.clear()
            return 7

    shape = [1, Empties(), *range(10_000)]
    (decoded,) = decode(encode(program(inputs=[{"desc": {"shape": shape}}])))["programs"][0]["inputs"]
    assert decoded["desc"]["shape"] == [1, 7]


def test_files_have_at_most_2_gigabytes():
    with mmap.mmap(-1, 2**31) as zeros, pytest.raises(ValueError, match="larger than 2 GB"):
        encode(op("ConstantOp", input=zeros))


def test_a_cyclic_message_of_a_recursive_schema():
    raw = json.loads(next(Path(schemas.__file__).with_name("schemas").glob("ttnn_f3606800.json")).read_text())
    recursive = {"name": "inputs", "type": "obj", "ref": raw["root"], "id": 0}
    raw["tables"][raw["root"]] = {"fields": [recursive]}
    message = {}
    message["inputs"] = message
    with pytest.raises(RecursionError):
        write(plan(Schema(raw)), message, EncodeError)


def test_unknown_schema():
    with pytest.raises(SchemaError, match=r"'0123abcd'.*ttnn_433d79f9, ttnn_912b70aa, ttnn_f3606800"):
        encode({}, schema="0123abcd")


def test_a_message_is_not_written_under_another_schema():
    with pytest.raises(SchemaError, match="433d79f9"):
        encode({"schema_hash": DEFAULT}, schema="433d79f9")


def test_the_schema_determines_the_tags():
    """The same message has other tags under another schema, and each file is decoded by its own schema."""
    message = op("MatmulOp", transpose_a=True)
    ours, other = encode(message), encode(message, schema="433d79f9")
    assert ours != other
    assert decode(ours)["programs"] == decode(other)["programs"]
    assert [decode(data)["schema_hash"][:8] for data in (ours, other)] == ["f3606800", "433d79f9"]
    tags = [load(hash).enum("tt.target.ttnn.OpType").values["MatmulOp"] for hash in (DEFAULT, "433d79f9")]
    assert tags[0] == tags[1] + 1


def test_prefixes_of_a_hash_give_the_same_table():
    assert load("f36") is load("f3606800") is load(DEFAULT) is load()
    found = ["system_desc_92f6a8a8", "system_desc_f0b54f15", "ttnn_433d79f9", "ttnn_912b70aa", "ttnn_f3606800"]
    assert known() == found


@pytest.mark.parametrize("wrong", ["", "f3606800" + "0" * 56, "zzz"])
def test_wrong_hashes(wrong):
    with pytest.raises(SchemaError):
        load(wrong)


@pytest.mark.parametrize("length", range(9))
def test_eight_byte_scalars_are_aligned_from_the_first_byte(length):
    """Eight-byte scalars are aligned after any number of other bytes. The size prefix counts, too."""
    core = {"x": 0x1122334455667788, "y": 1}
    spec = {"core_range_set": {"core_ranges": [{"start_coord": core, "end_coord": core}]}}
    memory = {"memory_config": {"shard_spec": spec}}
    tensor = {"desc": {"shape": list(range(length)), "layout": {"memory_desc": memory}}}
    data = encode(program(name="n" * length, inputs=[tensor]))
    assert data.index(struct.pack("<Q", core["x"])) % 8 == 0
    assert len(data) % 8 == 0


@pytest.mark.parametrize("length", range(9))
@pytest.mark.parametrize("count", [0, 1, 2])
def test_the_runtime_accepts_the_alignment_of_vectors_and_empty_vectors(length, count):
    """The runtime refuses a file in which elements are not aligned."""
    activation = {"op_type": "Relu", "params": [1.5] * count}
    operations = [{"type": {"Conv2dOp": {"conv2d_config": {"activation": activation}}}, "loc_info": "l" * length}]
    Binary(encode(program(operations=operations, name="n" * length)))


def test_size_prefix_and_file_identifier():
    data = encode({})
    assert struct.unpack_from("<I", data) == (len(data) - 4,)
    assert data[8:12] == b"TTNN"
    assert encode(random_binary("92f6a8a8", 0))[8:12] == b"TTSY"


def large_message(ops):
    """A message of `ops` matrix products. Each has tensors of its own."""

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


def test_the_bytes_are_the_same_in_every_process():
    """Python's hashes of strings have another seed in each process."""
    code = (
        "import hashlib; from wire.test_encode import *; print(hashlib.sha256(encode(large_message(20))).hexdigest())"
    )
    runs = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment).stdout
        for environment in (os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": TESTS} for seed in ("1", "2"))
    }
    assert len(runs) == 1


def test_start_up_needs_no_compiler():
    code = "import sys, tt_torch.wire.encode; print('torch_mlir' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_ops_can_be_written_empty():
    assert len(encode(with_op(DEFAULT, "MatmulOp", 0, density=0))) < 300
