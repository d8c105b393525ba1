"""decode(encode(m)) is m, and encode(decode(x)) is x, for random messages."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tt_torch.wire.decode import decode
from tt_torch.wire.encode import encode
from tt_torch.wire.schema import DEFAULT, SYSTEM_DESC, load
from wire import library_encoder
from wire.messages import Maker, normalised, op_members, random_binary, with_op

PINNED_BY_TT_XLA = "433d79f9"
seeds = st.integers(0, 2**32 - 1)


def assert_round_trip(message, schema_hash):
    schema = load(schema_hash)
    data = encode(message)
    decoded = decode(data)
    assert decoded == normalised(schema, schema.root, message)
    assert encode(decoded) == data


@settings(max_examples=60)
@given(seeds, st.floats(0.3, 0.8))
def test_random_binaries(seed, density):
    assert_round_trip(random_binary(DEFAULT, seed, density), DEFAULT)


@settings(max_examples=15)
@given(seeds)
def test_random_binaries_of_the_other_schema(seed):
    assert_round_trip(random_binary(PINNED_BY_TT_XLA, seed, 0.5), PINNED_BY_TT_XLA)


@settings(max_examples=60)
@given(seeds)
def test_random_system_descriptors(seed):
    assert_round_trip(random_binary(SYSTEM_DESC, seed), SYSTEM_DESC)


@settings(max_examples=60)
@given(st.sampled_from([DEFAULT, PINNED_BY_TT_XLA, SYSTEM_DESC]), seeds, st.floats(0.3, 0.8))
def test_the_flatbuffers_library_writes_the_same(schema_hash, seed, density):
    """The decoded messages agree. The bytes differ, since the library's builder does not share equal parts."""
    schema = load(schema_hash)
    message = random_binary(schema.hash, seed, density)
    assert decode(encode(message)) == decode(library_encoder.encode(schema, message))


@pytest.mark.parametrize("schema_hash", [DEFAULT, PINNED_BY_TT_XLA])
def test_every_op_with_every_density(schema_hash):
    for member in op_members(schema_hash):
        for density in (0.0, 0.5, 1.0):
            assert_round_trip(with_op(schema_hash, member, seed=1, density=density), schema_hash)


@pytest.mark.parametrize("schema_hash", [DEFAULT, PINNED_BY_TT_XLA])
def test_every_op_with_one_field(schema_hash):
    """A field is read from its own place, no matter which other fields are present."""
    schema = load(schema_hash)
    for member in op_members(schema_hash):
        whole = Maker(schema, random.Random(member), 1.0).table(member)
        for name, value in whole.items():
            program = {"operations": [{"type": {member: {name: value}}}]}
            assert_round_trip({"schema_hash": schema.hash, "programs": [program]}, schema_hash)


def test_bytes_depend_only_on_the_content():
    """One dict in two places gives the same bytes as two equal dicts, and the order of keys has no influence."""
    tensor = Maker(load(), random.Random(3), 1.0).table("TensorRef")
    copy = decode(encode(of_tensors(tensor)))["programs"][0]["inputs"][0]
    backwards = dict(reversed(copy.items()))
    assert encode(of_tensors(tensor, tensor)) == encode(of_tensors(copy, backwards))


def of_tensors(*tensors):
    return {"programs": [{"inputs": list(tensors)}]}


def test_shared_tables_come_back_as_one_object():
    tensor = {"global_id": 7, "desc": {"shape": [1, 2]}}
    inputs = decode(encode(of_tensors(tensor, dict(tensor), {"global_id": 8})))["programs"][0]["inputs"]
    assert inputs[0] is inputs[1] and inputs[0] is not inputs[2]


def test_sharing_keeps_files_small():
    tensor = {"global_id": 7, "desc": {"shape": [1, 2]}}
    assert len(encode(of_tensors(*[tensor] * 1000))) < len(encode(of_tensors(tensor))) + 4 * 1000 + 8


@pytest.mark.parametrize("form", [tuple, np.array, lambda v: np.array(v, np.int32), lambda v: np.array(v[::-1])[::-1]])
def test_forms_of_a_number_vector(form):
    assert encode(of_tensors({"desc": {"shape": form([3, 4])}})) == encode(of_tensors({"desc": {"shape": [3, 4]}}))


@pytest.mark.parametrize(
    "form", [bytes, bytearray, memoryview, list, lambda v: np.frombuffer(v, np.uint8), lambda v: np.array([*v])]
)
def test_forms_of_a_byte_vector(form):
    data = bytes(range(256))
    op = {"ConstantOp": {"input": form(data)}}
    decoded = decode(encode({"programs": [{"operations": [{"type": op}]}]}))
    assert decoded["programs"][0]["operations"][0]["type"]["ConstantOp"]["input"] == data


def test_scalars_that_equal_their_default():
    """A plain scalar that equals its default is not written. If absence means "not given", the scalar is written."""
    softmax = {"type": {"SoftmaxOp": {"dimension": 0}}}
    plain, absent = ({"programs": [{"operations": [op]}]} for op in (softmax, {"type": {"SoftmaxOp": {}}}))
    assert encode(plain) == encode(absent)
    desc = {"programs": [{"operations": [{"type": {"TypecastOp": {"dtype": "Float32"}}}]}]}
    assert decode(encode(desc))["programs"][0]["operations"][0]["type"]["TypecastOp"]["dtype"] == "Float32"


def test_negative_zero_is_not_the_default():
    full = {"FullOp": {"fill_value": {"FP": {"value": -0.0}}}}
    decoded = decode(encode({"programs": [{"operations": [{"type": full}]}]}))
    value = decoded["programs"][0]["operations"][0]["type"]["FullOp"]["fill_value"]["FP"]["value"]
    assert str(value) == "-0.0"
