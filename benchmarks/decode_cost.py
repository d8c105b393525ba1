"""The time of one token of Llama 3 8B on the chips, by the profile's model, beside the figures that tt-metal publishes.

The weights are on `meta`, in bfp8 on the device, so that nothing is computed and no memory is needed for them. The
roofline model gives the least time: docs/generation.md says what the gap consists of.
"""

from __future__ import annotations

import json
import resource
import sys
from collections import Counter
from typing import Any

import torch

import tt_torch
from benchmarks.common import in_process, table
from tt_torch.profiling.cost_model import CHIPS, planned
from tt_torch.wire.binary import first_chip
from tt_torch.wire.calls import public
from tt_torch.wire.decode import decode

LAYERS, CACHE = 32, 256
SIZES = {"hidden_size": 4096, "intermediate_size": 14336, "num_attention_heads": 32, "num_key_value_heads": 8}
# Tokens per second of one user, batch 1 after a prompt of 128: models/tt_transformers/PERF.md of tt-metal at 040a27c1.
# Its weights are bfp8 in the first figure. In the second, most of those between the attentions are bfp4.
PUBLISHED = {"n150": ("wormhole_b0", 25.2, 28.3), "p150": ("blackhole", None, 33.6)}


def run(threads: int) -> None:
    rows = []
    for card, (arch, *published) in PUBLISHED.items():
        found = in_process("benchmarks.decode_cost", arch, str(threads))
        total, products = found["seconds"], found["products"]
        shown = ["" if each is None else f"{each:.1f}" for each in published]
        rest = [f"{1e6 * (1 / each - total) / found['ops']:.1f}" for each in published if each]
        times = [f"{1e3 * t:.1f}" for t in (total, products, total - products)]
        gigabytes = f"{found['bytes'] / 1e9:.2f}"
        memory = f"{found['peak']:.1f}"
        rows.append((card, f"{1 / total:.1f}", *shown, *times, gigabytes, found["ops"], " / ".join(rest), memory))
    heads = ["card", "modelled t/s/u", "tt-metal bfp8", "bfp4", "ms", "products", "others", "GB of DRAM", "ops"]
    table(f"One token of Llama 3 8B, cache of {CACHE}", [*heads, "gap, us per op", "compiling, GiB"], rows)


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


def cost(step: Step, arch: str) -> dict[str, float]:
    """Device ops, bytes of DRAM traffic, and modelled seconds of a step: all, and those of matrix products."""
    ids = torch.zeros(1, 1, dtype=torch.int64)
    config = tt_torch.CompilerConfig(dtype="bf16", weight_dtype="bfp8_b", arch=arch)
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
    torch.set_num_threads(int(sys.argv[2]))
    found = cost(Step(LAYERS, CACHE, vocab_size=128256, **SIZES), sys.argv[1])
    print(json.dumps(found | {"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}))
