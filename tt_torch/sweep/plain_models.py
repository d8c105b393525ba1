"""Models in plain PyTorch, of kinds that transformers and diffusers do not have."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

from tt_torch.sweep.registry import Inputs, Model, Setting

VOCABULARY = 64


class RecurrentLanguageModel(nn.Module):
    """Embedding, recurrent layers, logits: (batch, length) int64 to (batch, length, vocabulary)."""

    def __init__(self, kind: Callable[..., nn.Module], **options: Setting) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 16)
        self.recurrent = kind(16, 24, num_layers=2, batch_first=True, **options)
        self.logits = nn.Linear(24 * (1 + options.get("bidirectional", False)), VOCABULARY)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states, _ = self.recurrent(self.embedding(x))
        return self.logits(states)


class GraphAttention(nn.Module):
    """A layer of graph attention networks: nodes (n, features) and a dense adjacency (n, n) of bool."""

    def __init__(self, features: int, channels: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(features, heads * channels, bias=False)
        self.source, self.target = (nn.Parameter(torch.randn(heads, channels)) for _ in range(2))

    def forward(self, x: torch.Tensor, adjacency: torch.Tensor) -> torch.Tensor:
        values = self.project(x).unflatten(-1, (self.heads, -1)).transpose(0, 1)  # heads, nodes, channels
        source, target = ((values * weight[:, None]).sum(-1) for weight in (self.source, self.target))
        scores = F.leaky_relu(target[:, :, None] + source[:, None, :], 0.2)
        attention = scores.masked_fill(~adjacency, -torch.inf).softmax(-1)
        return F.elu((attention @ values).transpose(0, 1).flatten(1))


class MixtureOfExperts(nn.Module):
    """Each token goes to its two best experts, which are selected by index. Others do not see the token."""

    def __init__(self, features: int, experts: int) -> None:
        super().__init__()
        self.router = nn.Linear(features, experts)
        self.up = nn.Parameter(torch.randn(experts, features, 2 * features) / features**0.5)
        self.down = nn.Parameter(torch.randn(experts, 2 * features, features) / features**0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights, chosen = self.router(x).softmax(-1).topk(2, dim=-1)
        hidden = torch.einsum("tf,tkfh->tkh", x, self.up[chosen]).relu()
        return torch.einsum("tkh,tkhf,tk->tf", hidden, self.down[chosen], weights)


def _double_convolution(inputs: int, outputs: int) -> nn.Sequential:
    convolutions = (nn.Conv2d(i, outputs, 3, padding=1, bias=False) for i in (inputs, outputs))
    return nn.Sequential(*(m for c in convolutions for m in (c, nn.BatchNorm2d(outputs), nn.ReLU())))


class UNet(nn.Module):
    """Two levels down, two up, with skips; images (batch, 3, side, side) to masks (batch, 2, side, side)."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([_double_convolution(3, 8), _double_convolution(8, 16)])
        self.bottom = _double_convolution(16, 32)
        self.up = nn.ModuleList([nn.ConvTranspose2d(32, 16, 2, stride=2), nn.ConvTranspose2d(16, 8, 2, stride=2)])
        self.merge = nn.ModuleList([_double_convolution(32, 16), _double_convolution(16, 8)])
        self.head = nn.Conv2d(8, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skips = []
        for level in self.down:
            skips.append(level(x))
            x = F.max_pool2d(skips[-1], 2)
        x = self.bottom(x)
        for up, merge in zip(self.up, self.merge, strict=True):
            x = merge(torch.cat([skips.pop(), up(x)], dim=1))
        return self.head(x)


def dcgan_generator() -> nn.Module:
    """Noise (batch, 16, 1, 1) to images (batch, 3, 16, 16)."""
    layers: list[nn.Module] = [nn.ConvTranspose2d(16, 32, 4, 1, 0, bias=False), nn.BatchNorm2d(32), nn.ReLU(True)]
    layers += [nn.ConvTranspose2d(32, 16, 4, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(True)]
    return nn.Sequential(*layers, nn.ConvTranspose2d(16, 3, 4, 2, 1, bias=False), nn.Tanh())


def dcgan_discriminator() -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, 16, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True)]
    layers += [nn.Conv2d(16, 32, 4, 2, 1, bias=False), nn.BatchNorm2d(32), nn.LeakyReLU(0.2, inplace=True)]
    return nn.Sequential(*layers, nn.Conv2d(32, 1, 4, 1, 0, bias=False), nn.Sigmoid())


class Tabular(nn.Module):
    """Columns of categories, each with its embedding, next to columns of numbers."""

    def __init__(self, sizes: tuple[int, ...], numbers: int) -> None:
        super().__init__()
        self.embeddings = nn.ModuleList(nn.Embedding(size, 4) for size in sizes)
        self.norm = nn.BatchNorm1d(numbers)
        self.layers = nn.Sequential(nn.Linear(4 * len(sizes) + numbers, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, categories: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        embedded = [embedding(categories[:, i]) for i, embedding in enumerate(self.embeddings)]
        return self.layers(torch.cat([*embedded, self.norm(numbers)], dim=1)).squeeze(1)


def _tokens() -> Inputs:
    return {"x": torch.randint(0, VOCABULARY, (2, 12))}


def _graph() -> Inputs:
    adjacency = (torch.rand(10, 10) < 0.3) | torch.eye(10, dtype=torch.bool)
    return {"x": torch.randn(10, 8), "adjacency": adjacency}


def _table() -> Inputs:
    categories = torch.stack([torch.randint(0, size, (6,)) for size in (5, 7, 3)], dim=1)
    return {"categories": categories, "numbers": torch.randn(6, 4)}


def _noise(name: str, *shape: int) -> Callable[[], Inputs]:
    return lambda: {name: torch.randn(*shape)}


def _translation() -> Inputs:
    mask = nn.Transformer.generate_square_subsequent_mask(6)
    sequences = {"src": torch.randn(2, 9, 16), "tgt": torch.randn(2, 6, 16)}
    # otherwise PyTorch reads the values of the mask to find out
    return {**sequences, "tgt_mask": mask, "tgt_is_causal": True}


def _transformer() -> nn.Module:
    return nn.Transformer(16, 4, 2, 2, dim_feedforward=32, batch_first=True)


def plain(name: str, module: Callable[[], nn.Module], inputs: Callable[[], Inputs]) -> Model:
    return Model(name, lambda: (module().eval(), inputs()), "plain")


MODELS = [
    plain("lstm_lm", lambda: RecurrentLanguageModel(nn.LSTM), _tokens),
    plain("gru_lm", lambda: RecurrentLanguageModel(nn.GRU), _tokens),
    plain("bidirectional_rnn_lm", lambda: RecurrentLanguageModel(nn.RNN, bidirectional=True), _tokens),
    plain("graph_attention", lambda: GraphAttention(8, 4, heads=2), _graph),
    plain("mixture_of_experts", lambda: MixtureOfExperts(8, 4), _noise("x", 10, 8)),
    plain("transformer", _transformer, _translation),
    plain("unet", UNet, _noise("x", 2, 3, 16, 16)),
    plain("dcgan_generator", dcgan_generator, _noise("input", 2, 16, 1, 1)),
    plain("dcgan_discriminator", dcgan_discriminator, _noise("input", 2, 3, 16, 16)),
    plain("tabular", functools.partial(Tabular, (5, 7, 3), 4), _table),
]
