"""The time of one token of Llama 3 70B on 1 to 32 chips, by the profile's model. No time here was measured on a chip.

The weights are on `meta`; on the device, they are in bfp8. Each chip has a part of the heads and of the MLP. On 32
chips, heads are split over the 8 columns of a 4x8 mesh, because the model has 8 heads of keys. The MLP is split over
all chips.

All layers of the model are alike. So two programs are compiled, one with LAYERS layers and one with twice as many.
Their difference is the cost of LAYERS further layers. `python -m benchmarks.mesh_cost 1 8 80` prints the figures of a
program with all 80 layers, and how long it takes to compile.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections import Counter

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import Placement, Replicate, Shard, distribute_tensor

import tt_torch
from benchmarks.common import in_process, table
from benchmarks.decode_cost import Step
from tt_torch.profiling.cost_model import planned
from tt_torch.torch_private import one_process
from tt_torch.wire.binary import first_chip
from tt_torch.wire.calls import public
from tt_torch.wire.decode import decode

SIZES = {"hidden_size": 8192, "intermediate_size": 28672, "num_attention_heads": 64, "num_key_value_heads": 8}
ALL_LAYERS, LAYERS, CACHE = 80, 2, 256
MESHES = [(1, 1), (1, 2), (1, 4), (1, 8), (4, 8)]
GIGABYTE = 1e9
MEMORY = {"wormhole_b0": 12 * 2**30, "blackhole": 32 * 2**30}  # of a chip
PARTS = ("DRAM", "links", "arithmetic")


def run(threads: int) -> None:
    for arch, card in (("wormhole_b0", "n150"), ("blackhole", "p150")):
        rows, alone = [], 0.0
        for mesh in MESHES:
            found = _whole_model(arch, mesh, threads)
            total = sum(found[part] for part in PARTS)
            chips = mesh[0] * mesh[1]
            alone = alone or total
            shares = [f"{found[part] / total:.0%}" for part in PARTS]
            fits = "" if found["weights"] < MEMORY[arch] else ", too many"
            weights, crossed = f"{found['weights'] / GIGABYTE:.1f}{fits}", f"{found['crossed'] / 1e6:.0f}"
            rows.append((
                f"{mesh[0]}x{mesh[1]}", f"{1e3 * total:.1f}", f"{1 / total:.1f}", f"{alone / total / chips:.0%}",
                *shares, weights, crossed, f"{found['ops']:.0f}", f"{found['exchanges']:.0f}",
            ))  # fmt: skip
        heads = ["mesh", "ms", "tokens/s", "efficiency", *(f"in {part}" for part in PARTS)]
        heads += ["GB of weights", "MB over a link", "ops", "exchanges"]
        table(f"One token of Llama 3 70B on {card}, simulated", heads, rows)


def _whole_model(arch: str, mesh: tuple[int, int], threads: int) -> dict[str, float]:
    """Computes the figures of all layers from the figures of two programs."""
    few, more = (in_process("benchmarks.mesh_cost", *map(str, (*mesh, n, arch, threads))) for n in (LAYERS, 2 * LAYERS))
    further = (ALL_LAYERS - LAYERS) / LAYERS
    return {name: few[name] + further * (more[name] - few[name]) for name in few}


def _split(step: Step, mesh: DeviceMesh) -> None:
    """Splits the weights and the cache of a step: heads along the columns of the mesh, the MLP along both axes."""
    columns: list[Placement] = [Replicate(), Shard(0)]
    rows: list[Placement] = [Replicate(), Shard(1)]
    for layer in step.net.model.layers:
        attention, mlp = layer.self_attn, layer.mlp
        for linear, placements in (
            (attention.q_proj, columns), (attention.k_proj, columns), (attention.v_proj, columns),
            (attention.o_proj, rows), (mlp.gate_proj, [Shard(0)] * 2), (mlp.up_proj, [Shard(0)] * 2),
            (mlp.down_proj, [Shard(1)] * 2),
        ):  # fmt: skip
            linear.weight = torch.nn.Parameter(distribute_tensor(linear.weight, mesh, placements), False)
        for linear in (attention.o_proj, mlp.down_proj):  # otherwise DTensor sums at each read
            linear.register_forward_hook(lambda module, given, result: result.full_tensor())
    head = step.net.lm_head
    head.weight = torch.nn.Parameter(distribute_tensor(head.weight, mesh, [Shard(0)] * 2), False)
    heads = [Replicate(), Shard(1)]
    for cache in step.cache.layers:
        cache.keys, cache.values = (distribute_tensor(x, mesh, heads) for x in (cache.keys, cache.values))


def _compiled(mesh: tuple[int, int], layers: int, arch: str) -> bytes:
    """The binary of a step on a mesh of chips. This process has the mesh only during the compilation."""
    step, ids = Step(layers, CACHE, vocab_size=128256, **SIZES).eval(), torch.zeros(1, 1, dtype=torch.int64)
    config = tt_torch.CompilerConfig(dtype="bf16", weight_dtype="bfp8_b", arch=arch)
    if mesh == (1, 1):
        return tt_torch.compile_model(step, (ids, ids), config).binary
    one_process.begin(mesh[0] * mesh[1])  # a mesh of "tt" would put the cache on the device, and the rest stays here
    try:
        _split(step, init_device_mesh("cpu", mesh))
        return tt_torch.compile_model(step, (ids, ids), config).binary
    finally:
        dist.destroy_process_group()


def cost(mesh: tuple[int, int], layers: int, arch: str) -> dict[str, float]:
    """Seconds by what bounds the ops, bytes of a chip's weights, bytes over links, counts of ops, time to compile."""
    start = time.perf_counter()
    message = decode(_compiled(mesh, layers, arch))
    compiling = time.perf_counter() - start
    chip = first_chip(message["system_desc"])["arch"]
    ops = [op for program in public(message) for op in planned(program, chip)]
    seconds: Counter[str] = Counter()
    for op in ops:
        ideal = op.cost.ideal
        parts = {"DRAM": max(ideal.dram, ideal.l1), "links": ideal.links, "arithmetic": ideal.arithmetic}
        seconds[max(parts, key=parts.__getitem__)] += ideal.total  # type: ignore[assignment]
    weights = sum(op.op.tensor("b").bytes for op in ops if op.name in ("MatmulOp", "LinearOp"))
    crossed = [op.cost.link_bytes for op in ops if op.cost.link_bytes]
    found = {part: seconds[part] for part in PARTS}
    numbers = {"ops": len(ops), "exchanges": len(crossed), "compiling": compiling}
    return found | {"weights": weights, "crossed": sum(crossed)} | numbers


if __name__ == "__main__":
    rows, columns, layers, *rest = sys.argv[1:]
    torch.set_num_threads(int(rest[1]) if rest[1:] else torch.get_num_threads())
    warnings.filterwarnings("ignore", message="Found a non-scalar tensor")  # PyTorch distributes positions of size 1
    print(json.dumps(cost((int(rows), int(columns)), int(layers), rest[0] if rest else "wormhole_b0")))
