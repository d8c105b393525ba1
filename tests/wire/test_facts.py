"""Sizes, operands, results and costs are read from messages. Some messages are from the reference compiler, tt-mlir."""

import gzip
import re
import typing

import pytest
import typing_extensions

from tt_torch.errors import BinaryFormatError
from tt_torch.wire import messages, schema
from tt_torch.wire.calls import Cost, cost, device_ops, op_histogram
from tt_torch.wire.decode import decode
from tt_torch.wire.encode import encode
from tt_torch.wire.facts import (
    BLOCK_BITS,
    ELEMENT_BYTES,
    Op,
    allocations,
    named_tensors,
    ops,
    peak_bytes,
    physical_bytes,
    tensor,
    tensors,
)
from wire.messages import DATA, REFERENCES

REFERENCE = {path.stem: path for path in REFERENCES}
TABLES = [name for name in schema.known() if name.startswith("ttnn")]


def reference(name):
    return decode(REFERENCE[name].read_bytes())


def ref(number, shape=(32, 32), dtype="Float32", buffer="DRAM", tile=32):
    memory = {"storage_type": "Device" if buffer else "Host", "data_type": dtype, "tile_shape": {"y": tile, "x": tile}}
    if buffer:
        memory["memory_config"] = {"tensor_memory_layout": "Interleaved", "buffer_type": buffer}
    return {"global_id": number, "desc": {"shape": list(shape), "layout": {"memory_desc": memory}}}


def test_the_attributes_of_an_op_are_its_numbers_and_names():
    program, *_ = reference("linear_relu")["programs"]
    found = {op.name: op.attributes for op in ops(program)}
    assert found["PermuteOp"] == {"permutation": [1, 0], "pad_value": 0.0}
    assert found["MatmulOp"] == {"transpose_a": False, "transpose_b": False}
    assert found["EltwiseUnaryOp"] == {"type": "Relu"}


def test_cost_counts_the_ops_of_a_call():
    """In linear_relu, const-eval, load_cached, get_device and deallocate are not counted."""
    message = reference("linear_relu")
    assert op_histogram(message) == {
        "ToLayoutOp": 3, "PermuteOp": 1, "MatmulOp": 1, "EltwiseBinaryOp.Multiply": 2, "ReshapeOp": 1,
        "EltwiseBinaryOp.Add": 1, "EltwiseUnaryOp.Relu": 1,
    }  # fmt: skip
    tile = 32 * 32 * 4
    layouts = 10 * 64 * 4 + 2 * tile + 32 * 64 * 4 + 2 * tile + 32 * 4 + tile
    tiles = 4 + 5 + 3 + 3 + 0 + 3 + 2  # permute, matmul, multiply, multiply, reshape (a view), add, relu
    assert cost(message) == Cost(device_ops=10, data_movement=5, bytes_moved=layouts + tiles * tile)


@pytest.mark.parametrize(
    ("model", "ops", "moves", "megabytes"),
    [
        ("resnet50_b1", 392, 56, 845),
        ("bert_base_b1_s128", 1168, 218, 2536),
        ("llama_2l_2048_b1_s128", 150, 63, 1224),
    ],
)
def test_cost_of_the_reference_compilers_models(model, ops, moves, megabytes):
    """The files are the compiler's binaries without texts, private programs and deallocations. The expected figures are
    published. The published figures count views, and they count the tables of lookups as a whole."""
    message = decode(gzip.decompress((DATA / f"{model}.ttnn.gz").read_bytes()))
    counted = cost(message)
    assert (counted.device_ops, counted.data_movement) == (ops, moves)
    whole = [t.bytes for op in device_ops(message) for t in (*op.operands, *op.results)]
    assert round(sum(whole) / 1e6) == megabytes
    moved = [t.bytes for op in device_ops(message) for t in (*op.read, *op.written)]
    assert counted.bytes_moved == sum(moved) < sum(whole)


@pytest.mark.parametrize(
    ("before", "after", "tile", "view"),
    [
        ((2, 64, 96), (128, 96), 32, True),
        ((1, 5, 96), (5, 96), 32, True),
        ((64,), (1, 64), 32, True),
        ((2, 48, 96), (96, 96), 32, False),  # 48 rows end inside of a tile
        ((64, 96), (96, 64), 32, False),
        ((2, 48, 96), (96, 96), 1, True),
        ((6, 4), (3, 8), 1, False),
    ],
)
def test_a_reshape_that_keeps_pages_moves_nothing(before, after, tile, view):
    x, made = ref(1, before, tile=tile), ref(2, after, tile=tile)
    program = {"inputs": [x], "operations": [{"type": {"ReshapeOp": {"in": x, "out": made}}}]}
    (found,) = ops(program)
    assert found.is_view is view
    assert (found.read, found.written) == ((), ()) if view else (found.operands, found.results)


def test_a_reshape_into_other_memory_is_no_view():
    x, made = ref(1, (1, 64, 96)), ref(2, (64, 96), buffer="L1")
    (found,) = ops({"inputs": [x], "operations": [{"type": {"ReshapeOp": {"in": x, "out": made}}}]})
    assert not found.is_view and found.written == found.results


@pytest.mark.parametrize(("rows", "read"), [(64, 32), (16, 16)])
def test_a_lookup_reads_as_much_of_its_table_as_it_gives(rows, read):
    """A table that is smaller than the result is read as a whole."""
    table = ref(1, (rows, 64), "BFloat16", tile=1)
    record = {"input": ref(2, (32,), "UInt32"), "weight": table, "out": ref(3, (32, 64), "BFloat16")}
    program = {"inputs": [table, record["input"]], "operations": [{"type": {"EmbeddingOp": record}}]}
    (found,) = ops(program)
    assert [(t.id, t.bytes) for t in found.read if t.id == 1] == [(1, read * 64 * 2)]


@pytest.mark.parametrize(
    ("dtype", "tile", "size"),
    [
        ("Float32", 1, 3 * 33 * 40 * 4),
        ("BFloat16", 32, 3 * 2 * 2 * 2048),
        ("BFP_BFloat8", 32, 3 * 2 * 2 * 1088),
        ("BFP_BFloat4", 32, 3 * 2 * 2 * 576),
        ("BFP_BFloat2", 32, 3 * 2 * 2 * 320),
        ("BFP_Float8", 32, 3 * 2 * 2 * 1088),
        ("BFP_Float4", 32, 3 * 2 * 2 * 576),
        ("BFP_Float2", 32, 3 * 2 * 2 * 320),
        ("UInt8", 32, 3 * 2 * 2 * 1024),
    ],
)
def test_physical_bytes(dtype, tile, size):
    """tests/runtime/test_execution.py compares such sizes with the runtime's allocations."""
    assert tensor(ref(1, (3, 33, 40), dtype, tile=tile)).bytes == size


def test_row_major_block_floats():
    with pytest.raises(BinaryFormatError, match="BFP_BFloat8 is row major"):
        physical_bytes("BFP_BFloat8", False, (32, 32))


@pytest.mark.parametrize("name", TABLES)
def test_every_data_type_has_a_size(name):
    types = schema.load(name.rpartition("_")[2]).enum("tt.target.DataType").values
    assert set(types) <= {*ELEMENT_BYTES, *BLOCK_BITS}


def test_the_bits_of_a_data_type_are_in_its_name():
    bits = {name: 8 * size for name, size in ELEMENT_BYTES.items()} | BLOCK_BITS
    named = {name: int("".join(filter(str.isdigit, name)) or 8) for name in bits}  # Bool has no digits
    assert bits == named


def test_tensors_are_found_in_nested_fields():
    one = ref(1)
    part = {"a": one, "b": [one, {"c": one}], "d": 1, "device": {"global_id": 1}}
    assert [field for field, _ in named_tensors(part)] == ["a", "b", "c"]
    assert tensors(part) == [tensor(one)] * 3


@pytest.mark.parametrize("name", REFERENCE)
def test_results_are_the_fields_with_names_of_results(name):
    """A tensor that no earlier op has named counts as a result. The names of the fields agree with this."""
    for program in reference(name)["programs"]:
        for op in ops(program):
            by_name = {True: [], False: []}
            for field, found in named_tensors(op.record):
                by_name[bool(re.fullmatch(r"out|\w+_out|outs|output|outputs|result\w*", field))].append(found)
            assert (list(op.results), list(op.operands)) == (by_name[True], by_name[False]), op.name


def heads():
    """A message whose one op has three results."""
    query = {"in": ref(1, (1, 32, 96)), "q_out": ref(2, buffer="L1"), "k_out": ref(3), "v_out": ref(4), "num_heads": 1}
    types = [{"SplitQueryKeyValueAndSplitHeadsOp": query}, {"DeallocateOp": {"in": ref(1, (1, 32, 96))}}]
    program = {"name": "main", "inputs": [ref(1, (1, 32, 96))], "operations": [{"type": t} for t in types]}
    return decode(encode({"programs": [program]}))


def test_allocations_follow_results_and_deallocations():
    (program,) = heads()["programs"]
    held = [(op.name, dict(sizes)) for op, sizes in allocations(program)]
    tile = 4096
    assert held == [
        ("SplitQueryKeyValueAndSplitHeadsOp", {"DRAM": 5 * tile, "L1": tile}),
        ("DeallocateOp", {"DRAM": 2 * tile, "L1": tile}),
    ]
    assert peak_bytes(program) == {"DRAM": 5 * tile, "L1": tile}
    assert [op.name for op in device_ops(heads())] == ["SplitQueryKeyValueAndSplitHeadsOp"]


def test_the_peak_of_a_program_without_ops():
    inputs = [ref(1), ref(1), ref(2, buffer="")]
    assert peak_bytes({"name": "main", "private": False, "inputs": inputs}) == {"DRAM": 4096}


# Types of messages. Each has the name of a table or struct, and all of its fields must be in the schema.
DECLARED = {name: kind for name, kind in vars(messages).items() if typing_extensions.is_typeddict(kind)}
NAMES = {"File": "TTNNBinary"}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("declared", DECLARED)
def test_types_of_messages_have_fields_of_the_schema(name, declared):
    table = schema.load(name.rpartition("_")[2])
    kind = DECLARED[declared]
    known = {full.rpartition(".")[2]: full for full in (*table._tables, *table._structs)}
    full = known[NAMES.get(declared, declared)]
    fields = {f.name for f in (table.struct(full).fields if table.is_struct(full) else table.fields(full))}
    assert kind.__required_keys__ | kind.__optional_keys__ <= fields
    if table.is_struct(full):
        assert kind.__required_keys__ == fields


def conforms(value, kind):
    """Asserts that a part of a message has the declared type and, if it is a table, all required fields."""
    if typing_extensions.is_typeddict(kind):
        assert kind.__required_keys__ <= set(value)
        for field, of in typing_extensions.get_type_hints(kind).items():
            if field in value:
                conforms(value[field], of)
    elif typing.get_origin(kind) is list:
        for item in value:
            conforms(item, *typing.get_args(kind))
    else:
        assert isinstance(value, typing.get_origin(kind) or kind)


@pytest.mark.parametrize("name", REFERENCE)
def test_files_are_of_the_declared_types(name):
    conforms(reference(name), messages.File)


def test_a_sharded_tensor_without_cores_is_refused():
    described = ref(1, buffer="L1")
    core = {"x": 2, "y": 1}
    spec = {"core_range_set": {"core_ranges": [{"start_coord": {"x": 0, "y": 0}, "end_coord": core}]}}
    described["desc"]["layout"]["memory_desc"]["memory_config"]["shard_spec"] = spec
    assert tensor(described).grid == (2, 3)
    spec["core_range_set"]["core_ranges"][0]["start_coord"] = {"x": 3, "y": 0}
    with pytest.raises(BinaryFormatError, match="tensor 1 is sharded over 2 x 0 cores"):
        tensor(described).grid  # noqa: B018
    spec["core_range_set"]["core_ranges"] = []
    with pytest.raises(BinaryFormatError, match="tensor 1 is sharded over 0 x 0 cores"):
        tensor(described).grid  # noqa: B018


@pytest.mark.parametrize(("shape", "users"), [((1, 2, 3, 32), 3), ((1, 2, 1 << 30, 32), 1 << 30), ((32,), 1), ((), 1)])
def test_a_cache_is_written_once_per_user(shape, users):
    """A shape of a hostile file may have few dimensions, or so many users that a list of them does not fit."""
    record = {"cache": ref(1, (3, 2, 64, 32)), "input": ref(2, shape)}
    operands = tuple(tensor(record[field]) for field in record)
    written = Op("UpdateCacheOp", record, "", operands, ()).written
    assert sum(t.elements for t in written) == users * operands[1].elements
    assert sum(t.bytes for t in written) == users * operands[1].bytes
