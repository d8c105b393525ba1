"""`bytes_by_part` counts every byte of a file for the part that it belongs to."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tt_torch.errors import BinaryFormatError
from tt_torch.wire.decode import decode
from tt_torch.wire.encode import encode
from tt_torch.wire.schema import DEFAULT, SYSTEM_DESC, load
from tt_torch.wire.spending import PARTS, bytes_by_part
from wire.messages import REFERENCES, random_binary


def binary(constant=b"", line="", location="", source="", operations=()):
    op = {"type": {"ConstantOp": {"input": constant}}, "debug_info": line, "loc_info": location}
    message = {"mlir": {"name": "ttnn", "source": source}, "programs": [{"operations": [op, *operations]}]}
    return bytes_by_part(encode(message))


@pytest.mark.parametrize(
    ("field", "part"),
    [
        ("constant", "constants"),
        ("line", "text of each op"),
        ("location", "locations"),
        ("source", "text of the module"),
    ],
)
def test_a_field_that_grows(field, part):
    contents = (b"a" * 96, b"a" * 1096) if field == "constant" else ("a" * 96, "a" * 1096)
    small, large = (binary(**{field: content}) for content in contents)
    assert large - small == {part: 1000}


def test_a_tensor_counts_once():
    tensor = {"global_id": 1, "desc": {"shape": [1] * 1000}}
    copies = [{"type": {"TypecastOp": {"in": tensor, "out": dict(tensor)}}, "loc_info": str(i)} for i in range(9)]
    assert 4000 < binary(operations=copies)["tensors"] < 4100


def test_files_of_tt_mlir():
    for path in REFERENCES:
        spent = bytes_by_part(path.read_bytes())
        assert spent.total() == path.stat().st_size and 0 < spent["padding and container"] < 0.1 * spent.total()


@settings(max_examples=50)
@given(st.sampled_from([DEFAULT, SYSTEM_DESC]), st.integers(0, 2**32 - 1))
def test_all_bytes_of_any_file(schema, seed):
    data = encode(random_binary(load(schema).hash, seed))
    spent = bytes_by_part(data)
    assert spent.total() == len(data) and min(spent.values()) >= 0 and set(spent) <= set(PARTS)


def outcome(read, data):
    try:
        read(data)
    except BinaryFormatError as error:
        return str(error)
    return "no error"


def test_damaged_files_raise_the_errors_of_decode():
    data = encode({"mlir": {"name": "ttnn", "source": "text"}, "programs": [{"name": "main", "operations": []}]})
    for size in (3, 2**16, 2**31 - 1):
        for at in range(16, len(data) - 3, 4):
            damaged = data[:at] + size.to_bytes(4, "little") + data[at + 4 :]
            assert outcome(bytes_by_part, damaged) == outcome(decode, damaged)
