"""The time of one token of Llama 3 8B on the chips, by the profile's model, beside the figures that tt-metal publishes.

The weights are on `meta`, so that nothing is computed and no memory is needed for them. On the device they are in bfp8,
or partly in bfp4, like the weights of the hand-written model. docs/profiling.md has the model, and docs/generation.md
says what the gap consists of.
"""

from __future__ import annotations

import itertools
import json
import resource
import sys
from collections import Counter

import torch

import tt_torch
from benchmarks.common import in_process, table
from benchmarks.published import TOKENS
from tt_torch.profiling.cost_model import CHIPS, planned
from tt_torch.profiling.scaling import CARDS, Step
from tt_torch.wire.binary import first_chip
from tt_torch.wire.calls import public
from tt_torch.wire.decode import decode

LAYERS, CACHE = 32, 256
SIZES = {"hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8}
BFP4 = {"weight_dtype": "bfp4_b", "math_fidelity": "lofi"}
PRECISIONS = {"bfp8": {}, "bfp4 gate, up": {"*.gate_proj": BFP4, "*.up_proj": BFP4}}


def run(threads: int) -> None:
    rows = []
    for (card, arch), weights in itertools.product(CARDS.items(), PRECISIONS):
        found = in_process("benchmarks.decode_cost", arch, weights, str(threads))
        total, products, published = found["seconds"], found["products"], TOKENS.get((card, weights))
        shown = f"{published:.1f}" if published else ""
        rest = f"{1e6 * (1 / published - total) / found['ops']:.1f}" if published else ""
        times = [f"{1e3 * t:.1f}" for t in (total, products, total - products)]
        gigabytes, memory = f"{found['bytes'] / 1e9:.2f}", f"{found['peak']:.1f}"
        rows.append((card, weights, f"{1 / total:.1f}", shown, *times, gigabytes, found["ops"], rest, memory))
    heads = ["card", "weights", "modelled t/s/u", "tt-metal", "ms", "products", "others", "GB of DRAM", "ops"]
    table(f"One token of Llama 3 8B, cache of {CACHE}", [*heads, "gap, us per op", "compiling, GiB"], rows)


def cost(step: Step, arch: str, weights: str) -> dict[str, float]:
    """A step's number of device ops, modelled seconds, seconds of matrix products, and bytes of DRAM traffic."""
    ids = torch.zeros(1, 1, dtype=torch.int64)
    by_layer = PRECISIONS[weights]
    config = tt_torch.CompilerConfig(dtype="bf16", weight_dtype="bfp8_b", arch=arch, precision=by_layer)
    message = decode(tt_torch.compile_model(step.eval(), (ids, ids), config).binary)
    chip = first_chip(message["system_desc"])["arch"]
    assert chip in CHIPS
    ops = [op for program in public(message) for op in planned(program, chip)]
    seconds: Counter[bool] = Counter()
    for op in ops:
        seconds[bool(op.cost.flops)] += op.cost.seconds  # type: ignore[assignment]
    moved = sum(op.cost.dram_read + op.cost.dram_written for op in ops)
    return {"ops": len(ops), "seconds": seconds.total(), "products": seconds[True], "bytes": moved}


if __name__ == "__main__":
    _, chosen, numbers, threads = sys.argv
    torch.set_num_threads(int(threads))
    found = cost(Step(LAYERS, CACHE, vocab_size=128256, **SIZES), chosen, numbers)
    print(json.dumps(found | {"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}))
