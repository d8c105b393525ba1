"""Training: forward and backward run on the device, with no op on the host, and gradients are those of eager PyTorch.

`MODELS` has a function per model, which returns the model and its loss. The loss is a function whose argument is the
model or its compiled form.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import tt_torch
from tt_torch.config import CompileDepth, CompilerConfig
from tt_torch.tools.utils import calculate_pcc

transformers = pytest.importorskip("transformers")
Loss = Callable[[Callable[..., Any]], torch.Tensor]
Made = tuple[nn.Module, Loss]
TINY = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 64}


def classifies(model: nn.Module, *inputs: torch.Tensor, classes: int) -> Made:
    labels = torch.randint(0, classes, inputs[0].shape[:1])
    return model, lambda run: F.cross_entropy(run(*inputs), labels)


def predicts_tokens(model: nn.Module, vocabulary: int, *, named: bool = False) -> Made:
    """A language model on random tokens. With `named`, the model computes the loss itself, as in transformers."""
    tokens = torch.randint(0, vocabulary, (2, 6))
    if named:
        return model, lambda run: run(input_ids=tokens, labels=tokens).loss
    return model, lambda run: F.cross_entropy(run(tokens).flatten(0, 1), tokens.flatten())


def matches(model: nn.Module, x: torch.Tensor) -> Made:
    wanted = torch.randn_like(model(x))
    return model, lambda run: F.mse_loss(run(x), wanted)


class Recurrent(nn.Module):
    def __init__(self, layer: type[nn.RNNBase], **options: Any) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.layer = layer(8, 12, batch_first=True, **options)
        self.head = nn.Linear(24 if options.get("bidirectional") else 12, 20)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(self.embed(tokens))[0])


class GraphAttention(nn.Module):
    """Attention with one head, over the edges of an adjacency matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(6, 8, bias=False)
        self.source, self.target = nn.Parameter(torch.randn(8, 1)), nn.Parameter(torch.randn(8, 1))

    def forward(self, nodes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        h = self.project(nodes)
        scores = F.leaky_relu(h @ self.source + (h @ self.target).T, 0.2)
        return F.elu(torch.softmax(scores.masked_fill(~edges, float("-inf")), -1) @ h)


class Tabular(nn.Module):
    """A model of a table with two columns of categories and three of numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.columns = nn.ModuleList([nn.Embedding(5, 4), nn.Embedding(7, 4)])
        self.rest = nn.Sequential(nn.Linear(11, 16), nn.LayerNorm(16), nn.SiLU(), nn.Linear(16, 3))

    def forward(self, categories: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        embedded = [column(categories[:, i]) for i, column in enumerate(self.columns)]
        return self.rest(torch.cat([*embedded, numbers], 1))


class SmallUNet(nn.Module):
    """Grouped, strided, dilated and transposed convolutions, pooling, and two modes of upsampling."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.down = nn.Conv2d(8, 8, 3, stride=2, padding=1, groups=2)
        self.up = nn.ConvTranspose2d(8, 8, 2, stride=2)
        self.last = nn.Conv2d(16, 3, 3, padding=2, dilation=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        whole = F.silu(self.first(x))
        half = F.avg_pool2d(F.relu(self.down(whole)), 2)
        for mode in ("nearest", "bilinear"):
            half = F.interpolate(half, scale_factor=2, mode=mode)
        return self.last(torch.cat([whole, self.up(F.max_pool2d(half, 2))], 1))


def conv_bn_maxpool() -> Made:
    normalized = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)
    grouped = nn.Conv2d(8, 8, 3, groups=4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)
    return classifies(nn.Sequential(*normalized, *grouped), torch.randn(4, 3, 10, 10), classes=5)


def hf_resnet() -> Made:
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], num_labels=3)
    model, labels = transformers.ResNetForImageClassification(config), torch.tensor([0, 2])
    pixels = torch.randn(2, 3, 32, 32)
    return model, lambda run: run(pixel_values=pixels, labels=labels).loss


def unetish() -> Made:
    return matches(SmallUNet(), torch.randn(1, 3, 16, 16))


def hf_bert() -> Made:
    config = transformers.BertConfig(
        **TINY, vocab_size=64, hidden_dropout_prob=0, attention_probs_dropout_prob=0, max_position_embeddings=16
    )
    return predicts_tokens(transformers.BertForMaskedLM(config), 64, named=True)


def hf_gpt2() -> Made:
    ends = {"bos_token_id": 0, "eos_token_id": 0}
    sizes = {"n_embd": 32, "n_layer": 1, "n_head": 4, "vocab_size": 64, "n_positions": 16, "loss_type": "ForCausalLM"}
    config = transformers.GPT2Config(**sizes, **ends, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    return predicts_tokens(transformers.GPT2LMHeadModel(config), 64, named=True)


def hf_llama() -> Made:
    """There are fewer heads of keys and values than of queries."""
    config = transformers.LlamaConfig(**TINY, vocab_size=64, num_key_value_heads=2, max_position_embeddings=16)
    return predicts_tokens(transformers.LlamaForCausalLM(config), 64, named=True)


def hf_vit() -> Made:
    config = transformers.ViTConfig(**TINY, image_size=16, patch_size=8, num_labels=3)
    model, pixels, labels = (
        transformers.ViTForImageClassification(config),
        torch.randn(2, 3, 16, 16),
        torch.tensor([0, 2]),
    )
    return model, lambda run: run(pixel_values=pixels, labels=labels).loss


def mlp_gelu_ce() -> Made:
    return classifies(nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 5)), torch.randn(4, 8), classes=5)


def layernorm_dropout() -> Made:
    return matches(
        nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.Dropout(0.3), nn.Linear(16, 4)), torch.randn(6, 8)
    )


def transformer_layer() -> Made:
    return matches(nn.TransformerEncoderLayer(16, 4, 32, dropout=0, batch_first=True), torch.randn(2, 6, 16))


def tabular() -> Made:
    return classifies(Tabular(), torch.randint(0, 5, (8, 2)), torch.randn(8, 3), classes=3)


def graph_attention() -> Made:
    edges = (torch.rand(7, 7) < 0.4) | torch.eye(7, dtype=torch.bool)
    return classifies(GraphAttention(), torch.randn(7, 6), edges, classes=8)


MODELS: dict[str, Callable[[], Made]] = {
    "conv_bn_maxpool": conv_bn_maxpool,
    "hf_bert": hf_bert,
    "hf_gpt2": hf_gpt2,
    "hf_llama": hf_llama,
    "hf_resnet": hf_resnet,
    "hf_vit": hf_vit,
    "layernorm_dropout": layernorm_dropout,
    "lstm": lambda: predicts_tokens(Recurrent(nn.LSTM), 20),
    "gru": lambda: predicts_tokens(Recurrent(nn.GRU), 20),
    "rnn_bidirectional": lambda: predicts_tokens(Recurrent(nn.RNN, bidirectional=True), 20),
    "mlp_gelu_ce": mlp_gelu_ce,
    "transformer_layer": transformer_layer,
    "unetish": unetish,
    "tabular": tabular,
    "graph_attention": graph_attention,
}
# These models draw other random numbers than eager PyTorch. Their captured graph draws the same ones on the CPU.
RANDOM = {"layernorm_dropout"}


def gradients(model: nn.Module, loss: Loss, run: Callable[..., Any]) -> dict[str, torch.Tensor]:
    """The gradients of the parameters by name, and the value of the loss as "loss". Each run has the same seed."""
    torch.manual_seed(1)
    result = loss(run)
    result.backward()
    grads = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    return {"loss": result.detach(), **grads}


def compiled(model: nn.Module, depth: CompileDepth = CompileDepth.EXECUTE) -> Callable[..., Any]:
    config = CompilerConfig(fallback="error", compile_depth=depth)
    return torch.compile(model, backend=tt_torch.backend, options={"compiler_config": config})


OF_TRANSFORMERS = [name for name in MODELS if name.startswith("hf_")]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in OF_TRANSFORMERS)) for name in MODELS]
)
def test_gradients(name: str) -> None:
    torch.manual_seed(0)
    model, loss = MODELS[name]()
    reference = copy.deepcopy(model)
    got = gradients(model, loss, compiled(model))
    torch._dynamo.reset()
    run = compiled(reference, CompileDepth.TORCH_FX) if name in RANDOM else reference
    expected = gradients(reference, loss, run)
    assert got.keys() == expected.keys()
    largest = max(g.abs().max() for g in expected.values())
    for key, wanted in expected.items():
        size = wanted.abs().max()
        if size < 1e-6 * largest:  # only rounding errors, as for a bias that the next op subtracts again
            assert got[key].abs().max() < 1e-5 * largest, key
        else:
            assert wanted.numel() == 1 or calculate_pcc(got[key], wanted) >= 0.999, key
            torch.testing.assert_close(got[key], wanted, rtol=0, atol=1e-3 * size.item(), msg=key)
