"""Random models for the optimizer: rows through products, norms and activations, or images through convolutions."""

from __future__ import annotations

import random
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

ROWS = [1, 8, 32, 64, 100, 128, 197, 384, 512, 1000, 1024, 2048]
WIDTHS = [10, 64, 96, 256, 320, 512, 768, 1000, 1024, 1536, 2048, 3072, 4096]
CHANNELS = [32, 64, 128, 256]
FIRST_CHANNELS = [*CHANNELS, 1, 3, 16, 48]  # of an input
FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "silu": F.silu,
    "tanh": torch.tanh,
    "gate": lambda x: torch.tanh(x) * torch.sigmoid(x),
    "first row": lambda x: x * x[..., :1, :],
    "centre": lambda x: x - x.mean(-1, keepdim=True),
    "softmax": lambda x: torch.softmax(x, -1),
    "slice": lambda x: x[..., : x.shape[-2] // 2 + 1, :],
    "twice": lambda x: torch.cat([x, x], -2),
    "largest": lambda x: x - x.amax(-2, keepdim=True) + x.sum(-1, keepdim=True),
    "turned": lambda x: torch.tanh(x.transpose(-1, -2).contiguous()).transpose(-1, -2),
    "pairs": lambda x: torch.tanh(x.unflatten(-1, (-1, 2)).flatten(-3, -2)).reshape(x.shape).exp(),
    "halves": lambda x: torch.cat(x.chunk(2, -1)[::-1], -1).exp(),
    "pool": lambda x: F.max_pool2d(x, 3, 2, 1),
}


class Attention(nn.Module):
    """Self-attention over rows, with several heads that may share keys and values."""

    def __init__(self, width: int, heads: int, shared: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        keys = width // shared
        self.query, self.key, self.value = nn.Linear(width, width), nn.Linear(width, keys), nn.Linear(width, keys)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        size = x.shape[-1] // self.heads
        rows = x.reshape(-1, *x.shape[-2:])
        q, k, v = (f(rows).unflatten(-1, (-1, size)).transpose(1, 2) for f in (self.query, self.key, self.value))
        made = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal, enable_gqa=True)
        return self.out(made.transpose(1, 2).flatten(2)).reshape(x.shape)


class Drawn(nn.Module):
    """Runs steps, which are layers or names of functions.

    "residual" adds the input of the step before, or 1 if that has another shape.
    """

    def __init__(self, steps: list[nn.Module | str]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(step for step in steps if isinstance(step, nn.Module))
        self.steps = steps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        before = x
        for step in self.steps:
            last = x
            if step == "residual":
                x = x + before if x.shape == before.shape else x + 1
            else:
                x = FUNCTIONS[step](x) if isinstance(step, str) else step(x)
            before = last
        return x


def drawn(seed: int) -> tuple[nn.Module, torch.Tensor, random.Random]:
    """A model, its input, and the generator for further choices."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    make = rng.choice([of_rows, of_rows, of_images])
    return *make(rng), rng


def of_rows(rng: random.Random) -> tuple[nn.Module, torch.Tensor]:
    rows, width = rng.choice(ROWS), rng.choice(WIDTHS[1:-2])
    outer = rng.choice([(), (1,), (2,), (8,)]) if rows <= 512 else ()
    x, steps = torch.randn(*outer, rows, width), list[nn.Module | str]()
    for _ in range(rng.randint(2, 7)):
        kind = rng.choice(["linear"] * 4 + ["norm", "norm", "residual", "residual", "attention", *list(FUNCTIONS)[:-1]])
        if kind == "linear":
            wider = rng.choice([width, *WIDTHS])
            steps.append(nn.Linear(width, wider, bias=rng.random() < 0.6))
            width = wider
        elif kind == "norm":
            steps.append(rng.choice([nn.LayerNorm, nn.RMSNorm])(width))
        elif kind != "attention":
            steps.append(kind)
        elif width % 64 == 0:
            steps.append(Attention(width, width // 32, rng.choice([1, 2]), rng.random() < 0.5))
    return Drawn(steps).eval(), x


def of_images(rng: random.Random) -> tuple[nn.Module, torch.Tensor]:
    size, channels = rng.choice([7, 14, 16, 28, 56]), rng.choice(FIRST_CHANNELS)
    x, steps = torch.randn(rng.choice([1, 2, 8]), channels, size, size), list[nn.Module | str]()
    for _ in range(rng.randint(1, 5)):
        kind = rng.choice(["convolution"] * 3 + ["relu", "silu", "residual", "pool", "norm"])
        if kind == "convolution":
            layer, size = _convolution(rng, channels, size)
            channels = layer.out_channels
            steps.append(layer)
        elif kind == "norm":
            steps.append(nn.BatchNorm2d(channels))
        elif kind != "pool" or size > 4:
            steps.append(kind)
            size = (size - 1) // 2 + 1 if kind == "pool" else size
    return Drawn(steps).eval(), x


def _convolution(rng: random.Random, channels: int, size: int) -> tuple[nn.Conv2d, int]:
    kernel = rng.choice([1, 1, 3, 3, 5]) if size > 6 else 1
    stride, padding = rng.choice([1, 1, 2]), rng.choice([0, kernel // 2])
    groups = rng.choice([1] * 6 + [2]) if channels % 2 == 0 else 1
    layer = nn.Conv2d(channels, rng.choice(CHANNELS), kernel, stride, padding, bias=rng.random() < 0.5, groups=groups)
    return layer, (size + 2 * padding - kernel) // stride + 1


def overridden(model: nn.Module, rng: random.Random) -> dict[str, dict[str, str]]:
    """A value for `optimizer_overrides` about one layer of the model. It may name a form that the layer cannot have."""
    layers = [(name, layer) for name, layer in model.named_modules() if name.startswith("layers.")]
    if not layers:
        return {}
    name, layer = rng.choice(layers)
    down, across = rng.choice([1, 2, 4, 7, 8]), rng.choice([1, 2, 4, 8])
    grids = {
        "block_sharded": f"{down}x{across}",
        "height_sharded": f"{down * across}x1",
        "width_sharded": f"1x{across}",
    }
    kind = rng.choice([*grids, *grids, "interleaved"])
    place = rng.choice([kind, f"{grids.get(kind, '1x1')}:{kind}", "l1" if kind == "interleaved" else f"{kind}:l1:tile"])
    texts = {"override_output_layout": place}
    if rng.random() < 0.3:
        texts["insert_memreconfig"] = "0"
    if isinstance(layer, nn.Conv2d) and rng.random() < 0.7:
        fields = [f"act_block_h_override#{rng.choice([32, 64])}", "enable_act_double_buffer#true"]
        fields += [
            f"{name}#{rng.choice(['true', 'false'])}" for name in ("reallocate_halo_output", "config_tensors_in_dram")
        ]
        fields += ["enable_weights_double_buffer#true", f"shard_layout#{rng.choice(['height', 'block'])}_sharded"]
        texts["override_conv2d_config"] = ":".join(rng.sample(fields, rng.randint(1, 3)))
        if rng.random() < 0.5:
            del texts["override_output_layout"]
    return {name: texts}


def of_few_rows(seed: int) -> tuple[nn.Module, torch.Tensor, random.Random]:
    """A model for at most 32 rows, whose layers mostly have no bias, its input, and the generator for more choices."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    width = rng.choice(WIDTHS[1:-1])
    x = torch.randn(*rng.choice([(), (1,), (1, 1)]), rng.randint(1, 32), width)
    steps = list[nn.Module | str]()
    for _ in range(rng.randint(2, 6)):
        kind = rng.choice(["linear"] * 5 + ["norm", "residual", "relu", "silu", "gate", "gelu", "softmax", "halves"])
        if kind == "linear":
            wider = rng.choice([width, *WIDTHS, rng.randint(1, 2000), 11008])
            steps.append(nn.Linear(width, wider, bias=rng.random() < 0.2))
            width = wider
        else:
            steps.append(nn.RMSNorm(width) if kind == "norm" else kind)
    return Drawn(steps).eval(), x, rng
