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

# Decoders for 1 x 128 ids: what differs in a family's configuration, the device ops of a layer in bfloat16 before its
# parts were fused (commit a2f5297; None: not counted), and the limit that is wanted. A layer is 256 wide, with heads of
# 64; the ops of a wider one are the same.
SIZES = {
    "hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 4, "vocab_size": 128, "use_cache": False,
}  # fmt: skip
GROUPED = {"num_key_value_heads": 2}
LATENT = {
    "q_lora_rank": 128, "kv_lora_rank": 64, "qk_rope_head_dim": 64, "qk_nope_head_dim": 64, "v_head_dim": 64,
    "num_key_value_heads": 4, "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1,
}  # fmt: skip
DECODERS: dict[str, tuple[dict[str, Any], int | None, int | None]] = {
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
    "glm4": (GROUPED | {"head_dim": 64, "pad_token_id": 0}, None, None),
    "opt": ({"ffn_dim": 512, "word_embed_proj_dim": 256}, None, None),
    "mixtral": (GROUPED | {"num_local_experts": 4}, 189, None),
    "deepseek_v3": (LATENT, None, None),  # its experts begin behind the layers that are counted
}


def decoder_ops(family: str, layers: int, dtype: torch.dtype = torch.bfloat16) -> int:
    """The device ops of a decoder with random weights and this number of layers."""
    import transformers

    torch.manual_seed(0)
    sizes = SIZES | DECODERS[family][0] | {"num_hidden_layers": layers}
    config = transformers.AutoConfig.for_model(family, **sizes)
    model = transformers.AutoModelForCausalLM.from_config(config).eval().to(dtype)
    compiled = tt_torch.compile_model(model, (torch.randint(0, config.vocab_size, (1, 128)),))
    torch._dynamo.reset()
    return calls.cost(decode(compiled.binary)).device_ops


def decoders() -> None:
    rows = []
    for family, (_, before, bar) in DECODERS.items():
        one, two = (decoder_ops(family, layers) for layers in (1, 2))
        wide = decoder_ops(family, 2, torch.float32) - decoder_ops(family, 1, torch.float32)
        rows.append((family, two - one, bar or "", before or "", two, wide))
    heads = ["family", "per layer", "bar", "before", "two layers", "per layer in float32"]
    table("Device ops of decoders in bfloat16", heads, rows)


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
