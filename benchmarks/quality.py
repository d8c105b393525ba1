"""The cost of a compiled program on the device: ops per call, ops per layer of decoders, and bytes moved.

All of it is counted in the binary.

The reference figures are counted in the same way in the binaries that tt-mlir's compiler (19c86fca, optimization level
0, float32) makes of these models.
"""

from __future__ import annotations

from typing import Any

import torch

import tt_torch
from benchmarks.common import model, table
from tt_torch.wire import calls
from tt_torch.wire.decode import decode

# model -> the reference compiler's device ops, data-movement ops and MB moved; then the limit for our device ops
REFERENCE = {"resnet50": (392, 56, 845, 100), "bert-base 1x128": (1168, 218, 2536, 220)}

# Decoders in bfloat16 for 1 x 128 ids: what differs in a family's configuration, the device ops of a layer before its
# parts were fused (commit a2f5297), and the limit that is wanted. A layer is 256 wide, with heads of 64; the ops of a
# wider one are the same.
SIZES = {
    "hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 4, "vocab_size": 128, "use_cache": False,
}  # fmt: skip
GROUPED = {"num_key_value_heads": 2}
DECODERS: dict[str, tuple[dict[str, Any], int, int | None]] = {
    "llama": (GROUPED, 46, 14),
    "mistral": (GROUPED | {"sliding_window": 32}, 46, 14),
    "qwen2": (GROUPED, 46, 14),
    "qwen3": (GROUPED | {"head_dim": 64}, 54, None),
    "gemma": (GROUPED | {"head_dim": 64}, 55, None),
    "gemma3_text": (GROUPED | {"head_dim": 64}, 67, None),
    "phi3": (GROUPED | {"pad_token_id": 0}, 49, None),
    "phi": ({}, 45, None),
    "gpt2": ({}, 27, 10),
    "gpt_neox": ({}, 35, None),
    "mixtral": (GROUPED | {"num_local_experts": 4}, 189, None),
}


def decoder_ops(family: str, layers: int) -> int:
    """The device ops of a decoder with random weights and this number of layers."""
    import transformers

    torch.manual_seed(0)
    sizes = SIZES | DECODERS[family][0] | {"num_hidden_layers": layers}
    config = transformers.AutoConfig.for_model(family, **sizes)
    model = transformers.AutoModelForCausalLM.from_config(config).eval().bfloat16()
    compiled = tt_torch.compile_model(model, (torch.randint(0, config.vocab_size, (1, 128)),))
    torch._dynamo.reset()
    return calls.cost(decode(compiled.binary)).device_ops


def decoders() -> None:
    rows = []
    for family, (_, before, bar) in DECODERS.items():
        one, two = (decoder_ops(family, layers) for layers in (1, 2))
        rows.append((family, two - one, bar or "", before, two))
    table("Device ops of decoders", ["family", "per layer", "bar", "before", "two layers"], rows)


def run(threads: int) -> None:
    torch.set_num_threads(threads)
    decoders()
    rows = []
    for name, (ops, moves, megabytes, bar) in REFERENCE.items():
        for dtype in (None, "bf16"):
            compiled = tt_torch.compile_model(*model(name, 1), tt_torch.CompilerConfig(dtype=dtype))
            cost = calls.cost(decode(compiled.binary))
            ours = f"{cost.bytes_moved / 1e6:.0f}"
            size = f"{len(compiled.binary) / 1e6:.2f}"
            rows.append(
                (name, dtype or "f32", cost.device_ops, bar, ops, cost.data_movement, moves, ours, megabytes, size)
            )
            torch._dynamo.reset()
    heads = ["model", "dtype", "device ops", "bar", "tt-mlir", "moves", "tt-mlir", "MB moved", "tt-mlir", "binary MB"]
    table("Device ops per call and bytes moved", heads, rows)
