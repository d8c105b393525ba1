"""`generate` with a static cache: the tokens of eager PyTorch, two programs, and caches that are updated in place."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
import transformers

from tt_torch.driver.exact_runner import ExactnessWarning
from tt_torch.driver.executor import Executor
from tt_torch.wire import calls
from tt_torch.wire.decode import decode

SIZES = {
    "vocab_size": 64, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
    "max_position_embeddings": 320, "pad_token_id": 0, "eos_token_id": None,
}  # fmt: skip
GPT2 = {"vocab_size": 64, "n_embd": 64, "n_layer": 2, "n_head": 4, "pad_token_id": 0, "eos_token_id": None}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {**SIZES, "num_key_value_heads": 2}),
    "gpt2": ("GPT2", GPT2),
    "qwen3": ("Qwen3", {**SIZES, "num_key_value_heads": 2, "head_dim": 16}),
    "gemma": ("Gemma", {**SIZES, "num_key_value_heads": 2, "head_dim": 16}),
    "phi": ("Phi", SIZES),
    "phi3": ("Phi3", {**SIZES, "num_key_value_heads": 2}),
    "qwen2": ("Qwen2", {**SIZES, "num_key_value_heads": 2}),
    "mixtral": ("Mixtral", {**SIZES, "num_key_value_heads": 2, "num_local_experts": 4}),
}
SLIDING: dict[str, tuple[str, dict[str, Any]]] = {
    "mistral": ("Mistral", {**SIZES, "num_key_value_heads": 2, "sliding_window": 16}),
    "gemma2": ("Gemma2", {**SIZES, "num_key_value_heads": 2, "head_dim": 16, "sliding_window": 16}),
}
LAYERS = 2


@pytest.mark.sample
@pytest.mark.parametrize("family", FAMILIES)
def test_tokens_are_those_of_eager(family: str, made: list[Executor]) -> None:
    _generate_as_eager(*FAMILIES[family])
    updates = [calls.op_histogram(decode(executor.binary))["UpdateCacheOp"] for executor in made]
    assert sorted(updates) == [0, 2 * LAYERS]  # the prompt's program makes the caches; the other one updates them


@pytest.mark.sample
@pytest.mark.parametrize("family", SLIDING)
def test_a_sliding_window_makes_three_programs(family: str, made: list[Executor]) -> None:
    """One is for the prompt, one runs until the window is full, and one runs after that."""
    _generate_as_eager(*SLIDING[family])
    assert len(made) == 3


@pytest.mark.sample
def test_the_buckets_of_t5_are_on_the_device(made: list[Executor]) -> None:
    """A row of distances begins with 0, whose logarithm is infinite. Nothing may run on the host because of it."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 64, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
    config = transformers.T5Config(**sizes, decoder_start_token_id=0, initializer_factor=3.0)
    model = transformers.T5ForConditionalGeneration(config).eval()
    given: Any = {"max_new_tokens": 40, "min_new_tokens": 40, "do_sample": False}
    prompt = torch.randint(2, 64, (2, 7))
    expected = model.generate(prompt, **given)
    model.forward = torch.compile(model.forward, backend="tt", options={"fallback": "error"})
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExactnessWarning)
        assert model.generate(prompt, cache_implementation="static", **given).equal(expected)
    assert len(made) == 2


def _generate_as_eager(name: str, sizes: dict[str, Any]) -> None:
    torch.manual_seed(0)
    network = getattr(transformers, f"{name}LMHeadModel" if name == "GPT2" else f"{name}ForCausalLM")
    model = network(getattr(transformers, f"{name}Config")(**sizes)).eval()
    prompt = torch.tensor([[1, 5, 9, 2, 7], [1, 6, 3, 2, 8]])
    given: Any = {"attention_mask": torch.ones_like(prompt), "max_new_tokens": 256, "do_sample": False}
    expected = model.generate(prompt, **given)
    model.forward = torch.compile(model.forward, backend="tt", options={"fallback": "error"})
    assert model.generate(prompt, cache_implementation="static", **given).equal(expected)
