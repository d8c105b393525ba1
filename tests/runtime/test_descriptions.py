"""The descriptions of programs, tensors and shards in a file must be possible, and must agree."""

import pytest
from programs import Maker

from tt_torch import errors
from tt_torch.runtime import Binary, Executable


def refused(maker, *outputs, match, error=errors.BinaryFormatError):
    with pytest.raises(error, match=match):
        Executable(Binary(maker.binary(*outputs)))


def shard(shape=(32, 32), *ranges):
    """A program whose only tensor has a shard, on ranges of cores from (x, y) to (x, y)."""
    maker = Maker()
    x = maker.input((64, 64))
    corners = [[{"x": x, "y": y} for x, y in corner_pair] for corner_pair in ranges or [((0, 0), (0, 0))]]
    cores = [{"start_coord": start, "end_coord": end} for start, end in corners]
    spec = {"core_range_set": {"core_ranges": cores}, "shape": list(shape), "orientation": "RowMajor"}
    config = {"tensor_memory_layout": "NDSharded", "buffer_type": "L1", "nd_shard_spec": spec}
    x["desc"]["layout"]["memory_desc"]["memory_config"] = config
    return maker


MOST = 1 << 28
SIZE = "the size of a shard is invalid"
OUTSIDE, EXTENT = "a core range out of bounds", "a core range is not 1 to 64 cores wide and high"
ALL = ((0, 0), (63, 63))
SHARDS = [
    ("a shard has fewer than two dimensions", shard((32,))),
    *((SIZE, shard(shape)) for shape in [(0, 32), (-1, 32), (2, 0, 32), (32, 0), (32, -1), (1 << 30,) * 4]),
    *((SIZE, shard(shape)) for shape in [(MOST + 1, 1), (1, MOST + 1)]),
    (SIZE, shard((32, 32), ALL, ((64, 0), (64, 0)))),  # 4,097 cores
    *((OUTSIDE, shard((32, 32), ((4090, 4090), last))) for last in [(4097, 4090), (4090, 4097)]),
    *((OUTSIDE, shard((32, 32), (first, (3, 3)))) for first in [(2**63, 0), (0, 2**63)]),
    *((EXTENT, shard((32, 32), (first, (3, 3)))) for first in [(4, 0), (0, 4)]),
    *((EXTENT, shard((32, 32), ((0, 0), last))) for last in [(64, 0), (0, 64)]),
]


@pytest.mark.parametrize("message, maker", SHARDS)
def test_shards_that_cannot_be(message, maker):
    refused(maker, match=f"not a valid TTNN binary: {message}")


@pytest.mark.parametrize("maker", [shard((MOST, 1)), shard((1, MOST)), shard((2, 3, 32), ALL),
                                   shard((32, 32), ((4096, 4096), (4096, 4096)))])  # fmt: skip
def test_the_limits_of_shards(maker):
    assert Binary(maker.binary()).programs


@pytest.mark.parametrize("shape", [(-1,), (1 << 30, 1 << 7), (1 << 30,) * 4, (1,) * 13])
def test_shapes_that_cannot_be(shape):
    maker = Maker()
    maker.input(shape)
    refused(maker, match="more than 12 dimensions" if len(shape) == 13 else "negative or larger than 2.36 elements")


def test_the_limits_of_shapes():
    maker = Maker()
    maker.input((1 << 30, 1 << 6))
    maker.input((1,) * 12)
    assert Binary(maker.binary()).programs


@pytest.mark.parametrize("field", ["desc", "layout", "memory_desc", "tile_shape"])
def test_descriptions_are_complete(field):
    maker = Maker()
    part = x = maker.input((32, 32))
    while field not in part:
        part = next(value for name, value in part.items() if name in ("desc", "layout", "memory_desc"))
    del part[field]
    refused(maker, x, match=f"has no field {field}")


def test_programs_that_do_not_agree_with_themselves():
    maker = Maker()
    maker.programs.clear()
    refused(maker, match="it has no program")

    maker = Maker()
    x, unknown = maker.input((32, 32)), maker.tensor((32, 32))
    refused(maker, unknown, match="the result list of main reads tensor 2, which no input or earlier op defines")
    y = maker.binary_op("Add", x, unknown, maker.tensor((32, 32)))
    refused(maker, y, match="the op reads tensor 2, which no input or earlier op defines")

    maker = Maker()
    x = maker.input((32, 32))
    refused(maker, x | {"desc": maker.tensor((32, 31))["desc"]}, match="a result of main is described with two shapes")


def test_programs_of_several_chips():
    maker = Maker((1, 2))
    maker.input((32, 32))
    message = "program main is for a mesh of 1x2 chips, and the device is a mesh of 1x1"
    refused(maker, match=message, error=errors.DeviceError)
    maker = Maker((2000, 2))
    refused(maker, match="a mesh has more than 1024 rows or columns")


def called(cached=False, inputs=1, outputs=1, given=((32, 32), "Float32"), got=((32, 32), "Float32")):
    """A program that calls another one, which takes and returns one float32 matrix of 32 x 32."""
    maker = Maker()
    arguments = [maker.input(*given) for _ in range(inputs)]
    results = [maker.tensor(*got) for _ in range(outputs)]
    name = "LoadCachedOp" if cached else "FuncCallOp"
    fields = {"callee_name": "f", "program_idx": 1, "program_hash": "h"} if cached else {"program_id": 1}
    maker.op(name, inputs=arguments, outputs=results, **fields)
    maker.program["outputs"] = results
    maker.begin("f", private=cached)
    return maker, maker.op("EltwiseUnaryOp", type="Neg", **{"in": maker.input((32, 32))}, out=maker.tensor((32, 32)))


OTHER = [((32, 31), "Float32"), ((32, 32), "BFloat16")]


@pytest.mark.parametrize("cached, kind", [(False, "called"), (True, "const-eval")])
def test_calls_agree_with_what_they_call(cached, kind):
    maker, result = called(cached)
    Executable(Binary(maker.binary(result)))
    for wrong, message in [
        *(({"inputs": n}, f"the number of inputs is not that of the {kind} program") for n in (0, 2)),
        *(({"given": given}, f"an input has another shape or type than in the {kind} program") for given in OTHER),
        *(({"outputs": n}, f"the number of results is not that of the {kind} program") for n in (0, 2)),
        ({"got": OTHER[0]}, "a result has another shape"),
    ]:
        maker, result = called(cached, **wrong)
        refused(maker, result, match=message)
