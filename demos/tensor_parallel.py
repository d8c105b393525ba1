"""A Llama with random weights on one to eight chips, which share its layers. The CPU must compute the same.

python demos/tensor_parallel.py [--layers N] [--width N] [-o chips.png]
"""

from __future__ import annotations

import copy
import os
import time
from pathlib import Path
from typing import Annotated, Any

import torch
import torch.distributed as dist
import typer
from common import OutOption, conclude, console, run, save_curves, short_time
from rich.table import Table
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, ParallelStyle, RowwiseParallel, parallelize_module

import tt_torch
from tt_torch.wire.calls import op_histogram
from tt_torch.wire.decode import decode

os.environ["HF_HUB_OFFLINE"] = "1"  # transformers reads this when it is imported
from transformers import LlamaConfig, LlamaForCausalLM

CHIPS, HEADS, WORDS, LENGTH = (1, 2, 4, 8), 8, 512, 32
COLLECTIVES = ("AllReduceOp", "AllGatherOp", "ReduceScatterOp")


def make_model(layers: int, width: int) -> LlamaForCausalLM:
    torch.manual_seed(0)
    sizes = {"hidden_size": width, "intermediate_size": 2 * width, "num_hidden_layers": layers}
    config = LlamaConfig(vocab_size=WORDS, num_attention_heads=HEADS, num_key_value_heads=HEADS, **sizes)
    return LlamaForCausalLM(config).eval()


def plan(layers: int) -> dict[str, ParallelStyle]:
    """Columns of the first weights and rows of the last one, so that each part of a layer needs one sum."""
    found: dict[str, ParallelStyle] = {}
    for i in range(layers):
        attention, mlp = f"model.layers.{i}.self_attn", f"model.layers.{i}.mlp"
        for name in ("q_proj", "k_proj", "v_proj"):
            found[f"{attention}.{name}"] = ColwiseParallel()
        found |= {f"{mlp}.gate_proj": ColwiseParallel(), f"{mlp}.up_proj": ColwiseParallel()}
        found |= {f"{attention}.o_proj": RowwiseParallel(), f"{mlp}.down_proj": RowwiseParallel()}
    return found


def bytes_per_chip(model: torch.nn.Module) -> int:
    """The bytes of the weights on each chip."""
    sizes = []
    for p in model.parameters():
        part = p.to_local() if isinstance(p, DTensor) else p
        sizes.append(part.numel() * part.element_size())
    return sum(sizes)


def on(chips: int, model: LlamaForCausalLM, ids: torch.Tensor) -> dict[str, Any]:
    """The logits of the model on this number of chips, and facts about its program."""
    parallel = copy.deepcopy(model)
    if chips > 1:
        parallelize_module(parallel, init_device_mesh("tt", (chips,)), plan(model.config.num_hidden_layers))
    start = time.perf_counter()
    compiled = tt_torch.compile_model(parallel, (ids,), kwargs={"use_cache": False})
    logits = compiled(ids, use_cache=False).logits.cpu()
    found = {"logits": logits, "bytes": bytes_per_chip(parallel), "seconds": time.perf_counter() - start}
    ops = op_histogram(decode(compiled.binary))
    found |= {"ops": ops.total(), "exchanges": sum(n for key, n in ops.items() if key.startswith(COLLECTIVES))}
    if chips > 1:
        dist.destroy_process_group()
    return found


@torch.no_grad()
def main(
    layers: Annotated[int, typer.Option(min=1, max=64, help="layers of the model")] = 2,
    width: Annotated[int, typer.Option(min=64, max=4096, help="hidden size of the model, a multiple of 64")] = 256,
    out: OutOption = Path("chips.png"),
) -> None:
    """Computes the logits of a small Llama on one to eight emulated chips, and on the CPU. It has random weights."""
    if width % 64:
        raise typer.BadParameter(f"{width} is no multiple of 64", param_hint="--width")
    model = make_model(layers, width)
    ids = torch.randint(WORDS, (1, LENGTH))
    expected = model(ids, use_cache=False).logits
    table = Table("chips", "weights on each", "device ops", "exchanges between chips", "compile and run", "difference")
    checks, sizes = {}, []
    for chips in CHIPS:
        found = on(chips, model, ids)
        difference = (found["logits"] - expected).abs().max().item()
        megabytes = found["bytes"] / 1e6
        facts = (f"{megabytes:.2f} MB", str(found["ops"]), str(found["exchanges"]), short_time(found["seconds"]))
        table.add_row(str(chips), *facts, f"{difference:.1e}")
        checks[f"{chips} chips give the CPU's logits"] = difference < 1e-5
        checks[f"{chips} chips exchange two sums per layer"] = found["exchanges"] == (2 * layers if chips > 1 else 0)
        sizes.append(megabytes)
    console.print(table)
    curves = {"this model": (CHIPS, sizes), "all weights split": (CHIPS, [sizes[0] / n for n in CHIPS])}
    save_curves(out, curves, title="Weights on each chip", xlabel="chips", ylabel="MB")
    conclude(checks)


if __name__ == "__main__":
    run(main)
