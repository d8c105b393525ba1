"""Compares a program for a mesh with runs of single chips, and counts how often chips exchange values per layer.

Eight chips that each compute an eighth of a batch do the work of eight runs of one chip. The bar of the ratio is 1.15.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, ParallelStyle, RowwiseParallel, parallelize_module
from transformers import BertConfig, BertModel, LlamaConfig, LlamaForCausalLM, ResNetConfig, ResNetModel

import tt_torch
from benchmarks.common import interleaved, table
from tt_torch.wire.calls import op_histogram
from tt_torch.wire.decode import decode

CHIPS, PART = 8, 1
SUMS = ("AllReduceOp", "AllGatherOp", "ReduceScatterOp")


def _models() -> dict[str, tuple[torch.nn.Module, torch.Tensor]]:
    bert = BertModel(BertConfig(num_hidden_layers=2, vocab_size=1000))
    resnet = ResNetModel(ResNetConfig(depths=[1, 1, 1, 1]))
    return {
        "BERT, 2 layers, 128 words": (bert, torch.randint(1000, (CHIPS * PART, 128))),
        "ResNet, 4 blocks, 112 x 112": (resnet, torch.randn(CHIPS * PART, 3, 112, 112)),
        "MLP 1024, 128 rows": (
            torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024)),
            torch.randn(CHIPS * 128, 1024),
        ),
    }


def _row(name: str, model: torch.nn.Module, x: torch.Tensor) -> tuple[str, ...]:
    part = x[: len(x) // CHIPS]
    many: Any = tt_torch.compile_model(model.eval(), (x,), mesh=(CHIPS,))
    one: Any = tt_torch.compile_model(model, (part,))

    def single_runs() -> None:
        for piece in x.chunk(CHIPS):
            one(piece)

    times = interleaved({"mesh": lambda: many(x), "single": single_runs}, 10)
    mesh, single = (1e3 * times[side] for side in ("mesh", "single"))
    return name, f"{mesh:.1f}", f"{single:.1f}", f"{mesh / single:.2f}", "1.15"


def _plan(layers: int) -> dict[str, ParallelStyle]:
    columns = "self_attn.q_proj self_attn.k_proj self_attn.v_proj mlp.gate_proj mlp.up_proj"
    rows = "self_attn.o_proj mlp.down_proj"
    found: dict[str, ParallelStyle] = {}
    for i in range(layers):
        found |= {f"model.layers.{i}.{name}": ColwiseParallel() for name in columns.split()}
        found |= {f"model.layers.{i}.{name}": RowwiseParallel() for name in rows.split()}
    return found


def _exchanges(chips: int, layers: int) -> tuple[str, ...]:
    sizes = {"hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 8, "num_key_value_heads": 8}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=512, num_hidden_layers=layers, **sizes)).eval()
    parallelize_module(model, init_device_mesh("tt", (chips,)), _plan(layers))
    ids = torch.randint(512, (1, 32))
    compiled: Any = tt_torch.compile_model(model, (ids,), kwargs={"use_cache": False})
    ops = op_histogram(decode(compiled.binary))
    dist.destroy_process_group()
    return str(chips), str(layers), str(sum(n for key, n in ops.items() if key.startswith(SUMS))), str(2 * layers)


def run(threads: int) -> None:
    torch.set_num_threads(threads)
    with torch.no_grad():
        rows = [_row(name, model, x) for name, (model, x) in _models().items()]
        table(
            f"{CHIPS} chips in one program, beside {CHIPS} runs",
            ["model", "mesh ms", "single ms", "ratio", "bar"],
            rows,
        )
        found = [_exchanges(chips, layers) for chips in (2, 8) for layers in (2, 4)]
    table("Llama, tensor parallel", ["chips", "layers", "exchanges", "by theory"], found)
