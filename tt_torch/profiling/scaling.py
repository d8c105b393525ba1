"""`tt-torch profile --mesh`: one token of Llama 3 70B on 1 to 32 chips, by the profile's model.

This is a simulation: no time here was measured on a chip.

The weights are on `meta`; on the device, they are in bfp8. Each chip has a part of the heads and of the MLP. On 32
chips, heads are split over the 8 columns of a 4x8 mesh, because the model has 8 heads of keys. The MLP is split over
all chips.

All layers of the model are alike. So two programs are compiled, one with LAYERS layers and one with twice as many.
Their difference is the cost of LAYERS further layers. `python -m tt_torch.profiling.scaling 1 8 80 n150` prints the
figures of a program with all 80 layers, and how long it takes to compile.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

import rich.table
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import Placement, Replicate, Shard, distribute_tensor

import tt_torch
from tt_torch.errors import CompileError
from tt_torch.profiling.cost_model import PlannedOp, planned
from tt_torch.records.console import plain_console
from tt_torch.torch_private import one_process
from tt_torch.waiting import waiting
from tt_torch.wire.binary import first_chip
from tt_torch.wire.calls import public
from tt_torch.wire.decode import decode

Figures: TypeAlias = dict[str, Any]  # numbers, and under "exchanges" the numbers of each kind of exchange

CARDS = {"n150": "wormhole_b0", "p150": "blackhole"}
SIZES = {"hidden_size": 8192, "intermediate_size": 28672, "num_attention_heads": 64, "num_key_value_heads": 8}
ALL_LAYERS, LAYERS, CACHE = 80, 2, 256
MESHES = [(1, 1), (1, 2), (1, 4), (1, 8), (4, 8)]
PARTS = ("DRAM", "links", "arithmetic")


def simulated(card: str) -> list[Figures]:
    """The figures of a token on each mesh of MESHES: `cost` has most of them.

    `efficiency` is that of strong scaling: the time of one chip, divided by the product of the time on the chips and
    their number. `fits` says whether a chip has room for its weights. Raises CompileError if a compilation fails.
    """
    rows: list[Figures] = []
    for mesh in MESHES:
        found, chips = whole_model(card, mesh), mesh[0] * mesh[1]
        total = sum(found[part] for part in PARTS)
        alone = rows[0]["seconds"] if rows else total
        found |= {"mesh": list(mesh), "seconds": total, "efficiency": alone / total / chips}
        rows.append(found | {"fits": found["weights"] < found["memory"]})
    return rows


def show(card: str, rows: Sequence[Figures]) -> None:
    """Prints a table of the times, and a table of what crosses the links."""
    times = rich.table.Table(title=f"One token of Llama 3 70B on chips of {card}: a simulation", title_justify="left")
    for name in ("chips", "ms", "tokens/s", "efficiency", "bound by", "links", "GB of weights", "fit"):
        times.add_column(name, justify="right")
    crossing = rich.table.Table(title="What a token sends over the busiest link", title_justify="left")
    for name in ("chips", "exchange", "number", "MB", "ms"):
        crossing.add_column(name, justify="left" if name == "exchange" else "right")
    for row in rows:
        chips, total = "x".join(map(str, row["mesh"])), row["seconds"]
        bound, fits = max(PARTS, key=row.__getitem__), "yes" if row["fits"] else "no"
        speed, share = f"{1 / total:.1f}", f"{row['links'] / total:.0%}"
        efficiency, weights = f"{row['efficiency']:.0%}", f"{row['weights'] / 1e9:.1f}"
        times.add_row(chips, f"{1e3 * total:.1f}", speed, efficiency, bound, share, weights, fits)
        for kind, found in row["exchanges"].items():
            numbers = f"{found['number']:.0f}", f"{found['bytes'] / 1e6:.2f}", f"{1e3 * found['seconds']:.2f}"
            crossing.add_row(chips, kind, *numbers)
    for table in (times, crossing):
        plain_console().print(table)
    plain_console().print(
        f"The weights are in bfp8, and the cache has {CACHE} positions. Efficiency is the time of one chip, divided by "
        "the time on these chips and by their number; `links` is their share of the time; `fit` says whether a chip "
        "has room for its weights. The times are lower bounds by a roofline, without the time until a packet has "
        f"crossed a link. The compilations took {sum(row['compiling'] for row in rows):.0f} s."
    )


class Step(torch.nn.Module):
    """One token: a model on `meta`, and a cache on the CPU whose memory nobody touches."""

    def __init__(self, layers: int, cache: int, **sizes: int) -> None:
        import transformers

        super().__init__()
        config = transformers.LlamaConfig(num_hidden_layers=layers, **sizes)
        with torch.device("meta"):
            self.net = transformers.LlamaForCausalLM(config).bfloat16()
        self.net.model.rotary_emb = type(self.net.model.rotary_emb)(config)  # its frequencies are in no checkpoint
        self.cache = transformers.StaticCache(config=config, max_cache_len=cache)
        size = config.hidden_size // config.num_attention_heads
        self.cache.early_initialization(1, config.num_key_value_heads, size, torch.bfloat16, torch.device("cpu"))

    def forward(self, ids: torch.Tensor, position: torch.Tensor) -> Any:
        return self.net(input_ids=ids, position_ids=position, past_key_values=self.cache).logits


def whole_model(card: str, mesh: tuple[int, int]) -> Figures:
    """The figures of `cost` for all layers, from those of two programs. Each is compiled in a process of its own."""
    few, more = (_in_process(card, mesh, layers) for layers in (LAYERS, 2 * LAYERS))
    return _extrapolated(few, more) | {"compiling": few["compiling"] + more["compiling"]}


def _extrapolated(few: Figures, more: Figures) -> Figures:
    further = (ALL_LAYERS - LAYERS) / LAYERS
    return {
        name: _extrapolated(x, more[name]) if isinstance(x, dict) else x + further * (more[name] - x)
        for name, x in few.items()
    }


def _in_process(card: str, mesh: tuple[int, int], layers: int) -> Figures:
    rows, columns = mesh
    command = [sys.executable, "-m", "tt_torch.profiling.scaling", str(rows), str(columns), str(layers), card]
    with waiting(lambda: f"compiling {layers} of {ALL_LAYERS} layers for {rows}x{columns} chips"):
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise CompileError(f"the compilation for {rows}x{columns} chips ended with: {done.stderr.strip()[-600:]}")
    found: Figures = json.loads(done.stdout.splitlines()[-1])
    return found


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


def cost(mesh: tuple[int, int], layers: int, arch: str) -> Figures:
    """Seconds by what bounds the ops, bytes of a chip's weights and of its memory, the number of ops, and seconds to
    compile. Each kind of exchange has its number, the bytes over the busiest link, and the seconds of the links."""
    start = time.perf_counter()
    message = decode(_compiled(mesh, layers, arch))
    compiling = time.perf_counter() - start
    chip = first_chip(message["system_desc"])
    ops = [op for program in public(message) for op in planned(program, chip["arch"])]
    seconds: Counter[str] = Counter()
    for op in ops:
        ideal = op.cost.ideal
        parts = {"DRAM": max(ideal.dram, ideal.l1), "links": ideal.links, "arithmetic": ideal.arithmetic}
        seconds[max(parts, key=parts.__getitem__)] += ideal.total  # type: ignore[assignment]
    weights = sum(op.op.tensor("b").bytes for op in ops if op.name in ("MatmulOp", "LinearOp"))
    memory = chip["num_dram_channels"] * chip["dram_channel_size"]
    numbers = {"weights": weights, "memory": memory, "ops": len(ops), "compiling": compiling}
    return {part: seconds[part] for part in PARTS} | numbers | {"exchanges": _exchanges(ops)}


def _exchanges(ops: Sequence[PlannedOp]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for op in ops:
        if op.cost.link_bytes:
            kind = found.setdefault(op.name, {"number": 0, "bytes": 0, "seconds": 0.0})
            kind["number"] += 1
            kind["bytes"] += op.cost.link_bytes
            kind["seconds"] += op.cost.ideal.links
    return found


if __name__ == "__main__":
    rows, columns, layers, card = sys.argv[1:]
    warnings.filterwarnings("ignore", message="Found a non-scalar tensor")  # PyTorch distributes positions of size 1
    print(json.dumps(cost((int(rows), int(columns)), int(layers), CARDS[card])))
