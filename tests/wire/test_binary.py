"""Headers, device descriptors and costs, against the reference compiler's own."""

import gzip

import pytest

from tt_torch.errors import ConfigError
from tt_torch.wire.binary import (
    Cost,
    cost,
    header,
    op_histogram,
    physical_bytes,
    system_desc,
    tensor_refs,
)
from tt_torch.wire.decode import decode
from tt_torch.wire.encode import encode
from tt_torch.wire.schema import SYSTEM_DESC
from wire.messages import DATA, REFERENCES

REFERENCE = {path.stem: path for path in REFERENCES}


def reference(name):
    return decode(REFERENCE[name].read_bytes())


def test_header_is_that_of_the_reference_compiler():
    """But for the version: the reference was built without git tags and calls itself 0.0.0."""
    theirs = reference("softmax")
    assert header() | {"version": theirs["version"]} == {key: theirs[key] for key in header()}


def test_default_descriptor_is_that_of_the_reference_compiler():
    assert reference("softmax")["system_desc"] == system_desc("wormhole_b0")


@pytest.mark.parametrize(("chips", "links"), [(1, []), (2, [(0, 1), (1, 0)]), (4, [(0, 1), (1, 2), (2, 3), (3, 0)])])
def test_chips_are_linked_in_a_ring(chips, links):
    desc = system_desc("blackhole", chips)
    assert [(c["device_id0"], c["device_id1"]) for c in desc["chip_channels"]] == links
    assert len(desc["chip_descs"]) == len(desc["chip_desc_indices"]) == chips


@pytest.mark.parametrize("arch", ["wormhole_b0", "blackhole"])
def test_descriptor_files(arch):
    message = header(SYSTEM_DESC) | {"product_identifier": "unknown", "system_desc": system_desc(arch, 2)}
    assert decode(encode(message)) == message


@pytest.mark.parametrize(("arch", "chips"), [("grayskull", 1), ("wormhole_b0", 0)])
def test_unknown_machines(arch, chips):
    with pytest.raises(ConfigError):
        system_desc(arch, chips)


def test_cost_counts_what_a_call_does():
    """linear_relu: const-eval, load_cached, get_device and deallocate are left out."""
    message = reference("linear_relu")
    assert op_histogram(message) == {
        "ToLayoutOp": 3, "PermuteOp": 1, "MatmulOp": 1, "EltwiseBinaryOp.Multiply": 2, "ReshapeOp": 1,
        "EltwiseBinaryOp.Add": 1, "EltwiseUnaryOp.Relu": 1,
    }  # fmt: skip
    tile = 32 * 32 * 4
    layouts = 10 * 64 * 4 + 2 * tile + 32 * 64 * 4 + 2 * tile + 32 * 4 + tile
    tiles = 4 + 5 + 3 + 3 + 2 + 3 + 2  # permute, matmul, multiply, multiply, reshape, add, relu
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
    """Its binaries with texts, private programs and deallocations taken out, and the published figures."""
    counted = cost(decode(gzip.decompress((DATA / f"{model}.ttnn.gz").read_bytes())))
    assert (counted.device_ops, counted.data_movement) == (ops, moves)
    assert round(counted.bytes_moved / 1e6) == megabytes


@pytest.mark.parametrize(
    ("dtype", "tile", "size"),
    [
        ("Float32", 1, 3 * 33 * 40 * 4),
        ("BFloat16", 32, 3 * 2 * 2 * 2048),
        ("BFP_BFloat8", 32, 3 * 2 * 2 * 1088),
        ("BFP_BFloat4", 32, 3 * 2 * 2 * 576),
        ("UInt8", 32, 3 * 2 * 2 * 1024),
    ],
)
def test_physical_bytes(dtype, tile, size):
    memory = {"data_type": dtype, "tile_shape": {"y": tile, "x": tile}}
    ref = {"global_id": 1, "desc": {"shape": [3, 33, 40], "layout": {"memory_desc": memory}}}
    assert physical_bytes(ref) == size
    assert list(tensor_refs({"a": ref, "b": [ref, {"c": ref}], "d": 1})) == [ref] * 3
