"""Small programs for tests, built as messages and encoded. `Maker` numbers the tensors and collects the ops."""

from __future__ import annotations

from tt_torch.wire.binary import header
from tt_torch.wire.encode import encode
from tt_torch.wire.facts import TILE
from tt_torch.wire.schema import DEFAULT


def tensor_desc(shape, dtype="Float32", buffer="DRAM", tile=True):
    config = {"tensor_memory_layout": "Interleaved", "buffer_type": buffer}
    memory = {
        "storage_type": "Host" if buffer == "host" else "Device",
        "tile_shape": {"y": TILE, "x": TILE} if tile else {"y": 1, "x": 1},
        "data_type": dtype,
    }
    if buffer != "host":
        memory["memory_config"] = config
    layout = {"memory_desc": memory}
    return {"shape": list(shape), "mesh_shape": [1, 1], "layout": layout, "shard_status": "Unsharded"}


class Maker:
    """Builds programs, one after the other; `binary()` encodes them all."""

    def __init__(self, mesh_shape=(1, 1)):
        self.programs, self.next_id = [], 1
        self.mesh = dict(zip("yx", mesh_shape, strict=True))
        self.begin("main")

    def begin(self, name, private=False):
        self.program = {
            "name": name, "inputs": [], "outputs": [], "operations": [], "dylibs": [], "private": private,
            "mesh_shape": self.mesh,
        }  # fmt: skip
        self.programs.append(self.program)

    def tensor(self, shape, dtype="Float32", buffer="DRAM", tile=True):
        ref = {"global_id": self.next_id, "desc": tensor_desc(shape, dtype, buffer, tile)}
        self.next_id += 1
        return ref

    def input(self, *args, **kwargs):
        ref = self.tensor(*args, **kwargs)
        self.program["inputs"].append(ref)
        return ref

    def op(self, name, **fields):
        location = f'loc("model.py":{len(self.program["operations"]) + 1}:0)'
        self.program["operations"].append({"type": {name: fields}, "debug_info": name, "loc_info": location})
        return fields.get("out")

    def binary_op(self, function, lhs, rhs, out):
        return self.op("EltwiseBinaryOp", type=function, lhs=lhs, rhs=rhs, out=out)

    def binary(self, *outputs, schema=DEFAULT):
        self.program["outputs"] = list(outputs)
        return encode({**header(schema), "programs": self.programs}, schema)


def chain_of_adds(count, shape=(32, 32), dtype="Float32", buffer="DRAM"):
    maker = Maker()
    value = x = maker.input(shape, dtype, buffer)
    y = maker.input(shape, dtype, buffer)
    for _ in range(count):
        previous, value = value, maker.binary_op("Add", value, y, maker.tensor(shape, dtype, buffer))
        if previous is not x:
            maker.op("DeallocateOp", **{"in": previous, "force": False})
    return maker.binary(value)
