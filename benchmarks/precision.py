"""What a decoder's results lose by the fidelity of products, the registers that add up, and the type of weights.

The decoder runs on an exact emulated device. There, matrix products and additions of bfloat16 are rounded as on a chip,
but attention and norms are not. The weights are random, with seed 0, so the figures are only an example.
"""

from __future__ import annotations

import itertools

import torch

import tt_torch
from benchmarks.common import table
from benchmarks.quality import DECODERS, SIZES
from tt_torch.config import BackendOptions, CompilerConfig
from tt_torch.runtime import Device

FAMILY, LAYERS, TOKENS = "llama", 2, 32
FIDELITIES = ("lofi", "hifi2", "hifi3", "hifi4")
WEIGHTS = (None, "bfp8_b", "bfp4_b")


def decoder() -> tuple[torch.nn.Module, torch.Tensor]:
    """A decoder in float32 and its token ids."""
    import transformers

    torch.manual_seed(0)
    sizes = SIZES | DECODERS[FAMILY][0] | {"num_hidden_layers": LAYERS}
    config = transformers.AutoConfig.for_model(FAMILY, **sizes)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    return model, torch.randint(0, config.vocab_size, (1, TOKENS))


def loss(model: torch.nn.Module, ids: torch.Tensor, device: Device, config: CompilerConfig) -> tuple[float, float]:
    """The correlation with eager float32, and the RMS of the difference relative to the RMS of eager float32."""
    options = BackendOptions(compiler_config=config, devices=[device])
    with torch.no_grad():
        want = model(ids).logits.double().flatten()
        got = torch.compile(model, backend=tt_torch.backend, options=options)(ids).logits.double().flatten()
    torch._dynamo.reset()
    return torch.corrcoef(torch.stack([got, want]))[0, 1].item(), ((got - want).norm() / want.norm()).item()


def run(threads: int) -> None:
    torch.set_num_threads(threads)
    model, ids = decoder()
    device = Device(exact=True)
    rows = []
    for fidelity, float32 in itertools.product(FIDELITIES, (False, True)):
        row = [fidelity, "float32" if float32 else "bfloat16"]
        for weights in WEIGHTS:
            options = {"math_fidelity": fidelity, "fp32_dest_acc_en": float32, "weight_dtype": weights}
            correlation, error = loss(model, ids, device, CompilerConfig(dtype="bf16", **options))
            row.append(f"{correlation:.5f}, {error:.2%}")
        rows.append(row)
    heads = ["fidelity", "registers", *(f"weights {w or 'bf16'}" for w in WEIGHTS)]
    table(f"Correlation and relative error of {FAMILY}, {LAYERS} layers, 1 x {TOKENS} ids, bf16", heads, rows)
