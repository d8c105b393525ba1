"""Transformers' own continuous batching runs a prepared model and gives the tokens of eager PyTorch.

It needs few programs, and they write the pages of the cache in place.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers
from transformers import ContinuousBatchingConfig, GenerationConfig, LlamaConfig, LlamaForCausalLM

from tt_torch import serving
from tt_torch.driver.executor import Executor
from tt_torch.errors import ConfigError, RequestError, ServingModelError
from tt_torch.serving import Engine
from tt_torch.serving.model import padded_size
from tt_torch.wire import calls
from tt_torch.wire.decode import decode

SIZES: dict[str, Any] = {
    "vocab_size": 64, "hidden_size": 128, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 128, "initializer_range": 0.3, "pad_token_id": 0,
    "eos_token_id": None, "bos_token_id": None,
}  # fmt: skip
PROMPTS = [[7, 3, 9], [5] * 40, [1], list(range(1, 21)), [5] * 40 + [2]]
STRICT = {"fallback": "error"}


def network(**sizes: Any) -> LlamaForCausalLM:
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**{**SIZES, **sizes})).eval()


def until(condition: Callable[[], object]) -> None:
    """Waits until the condition holds. It fails after a minute."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def single_runs(model: Any, new: int = 10) -> list[list[int]]:
    return [
        model.generate(torch.tensor([prompt]), max_new_tokens=new, do_sample=False)[0, len(prompt) :].tolist()
        for prompt in PROMPTS
    ]


def batched(model: Any, pages: int = 40, most: int = 8, **generation: Any) -> list[list[int]]:
    settings = ContinuousBatchingConfig(page_size=32, num_blocks=pages, max_batch_tokens=most, max_requests_per_batch=8)
    config = GenerationConfig(**{"max_new_tokens": 10, "do_sample": False, **generation})
    found = model.generate_batch(PROMPTS, config, settings)
    assert [output.error for output in found.values()] == [None] * len(found)
    return [output.generated_tokens for output in found.values()]


def test_tokens_are_those_of_single_runs(made: list[Executor]) -> None:
    """Prompts longer than a batch are read in parts. Two prompts share a page. The last batches have few tokens."""
    model = network()
    expected = single_runs(model)
    serving.prepare(model, max_length=64, options=STRICT)
    assert batched(model, most=16) == expected
    writes = [calls.op_histogram(decode(executor.binary)) for executor in made]
    assert [found["PagedUpdateCacheOp"] for found in writes] == [2 * SIZES["num_hidden_layers"]] * 2  # 8 and 16 tokens
    assert single_runs(model) == expected  # other calls are as before
    with torch.no_grad():
        model.lm_head.weight.copy_(model.lm_head.weight.roll(1, 0))
    assert batched(model, most=16) == single_runs(model) != expected  # the new weights are used
    assert len(made) == 2  # a new cache needs no further program


def test_requests_wait_and_start_again_when_pages_run_out() -> None:
    model = network(num_hidden_layers=1)
    expected = single_runs(model, 30)
    serving.prepare(model, max_length=96, options=STRICT)
    restarts = []
    soft_reset = transformers.generation.continuous_batching.requests.RequestState.create_equivalent_initial_request
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            transformers.generation.continuous_batching.requests.RequestState,
            "create_equivalent_initial_request",
            lambda state: restarts.append(state.request_id) or soft_reset(state),
        )
        assert batched(model, pages=4, max_new_tokens=30) == expected
    assert restarts


def test_requests_that_branch_off_get_copies_of_pages() -> None:
    """With top_k=1, both samples of a prompt are its greedy tokens. Each sample has its own pages."""
    model = network(num_hidden_layers=1)
    expected = [tokens for tokens in single_runs(model) for _ in range(2)]
    serving.prepare(model, max_length=64, options=STRICT)
    assert batched(model, do_sample=True, top_k=1, num_return_sequences=2) == expected


def test_a_model_that_returns_all_logits(made: list[Executor]) -> None:
    """Transformers picks the rows itself if `forward` does not name `logits_to_keep`."""
    model = network(num_hidden_layers=1)
    expected, whole = single_runs(model), LlamaForCausalLM.forward

    class All(LlamaForCausalLM):
        def forward(self, input_ids: Any = None, position_ids: Any = None, **others: Any) -> Any:
            return whole(self, input_ids=input_ids, position_ids=position_ids, **others)

    model.__class__ = All
    serving.prepare(model, max_length=64, options=STRICT)
    assert batched(model) == expected
    assert len(made) == 1


@pytest.mark.sample
@pytest.mark.parametrize("family", ["GPT2", "Qwen2", "Qwen3", "Phi3", "GPTNeoX", "Mixtral", "Olmo2", "Granite"])
def test_families(family: str) -> None:
    torch.manual_seed(0)
    names = {"n_embd": 64, "n_layer": 1, "n_head": 4} if family == "GPT2" else {**SIZES, "num_hidden_layers": 1}
    if family == "Qwen3":
        names["head_dim"] = 32
    if family == "GPTNeoX":
        del names["num_key_value_heads"]
    own = getattr(transformers, f"{family}Config")(
        **{**names, "vocab_size": 64, "pad_token_id": 0, "eos_token_id": None, "bos_token_id": None}
    )
    model = getattr(transformers, f"{family}LMHeadModel" if family == "GPT2" else f"{family}ForCausalLM")(own).eval()
    expected = single_runs(model)
    serving.prepare(model, max_length=64, options=STRICT)
    assert batched(model) == expected


def test_heads_that_the_configuration_does_not_know() -> None:
    """GPT-NeoX has equal numbers of heads for keys and for queries, even if its configuration gives another number."""
    sizes = {**SIZES, "num_hidden_layers": 1}
    model = transformers.GPTNeoXForCausalLM(transformers.GPTNeoXConfig(**sizes)).eval()
    refused = pytest.raises(RequestError, match="its attention has 4 heads of keys, and its configuration says 2")
    with Engine(model, max_length=32, max_batch_tokens=8) as engine, refused:
        engine.submit([1, 2]).result()


def test_latent_attention_is_refused() -> None:
    sizes = {**SIZES, "num_hidden_layers": 1, "num_key_value_heads": 4, "first_k_dense_replace": 1, "kv_lora_rank": 16}
    heads = {"qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8, "q_lora_rank": 16}
    model = transformers.DeepseekV3ForCausalLM(transformers.DeepseekV3Config(**sizes, **heads)).eval()
    refused = pytest.raises(RequestError, match="its attention has 16 features per key and 8 per value, and the pages")
    with Engine(model, max_length=32, max_batch_tokens=8) as engine, refused:
        engine.submit([1, 2]).result()


def test_attention_that_knows_no_pages() -> None:
    """This model would forget the earlier tokens. Its answer would then be wrong."""
    sizes = {**SIZES, "num_hidden_layers": 1}
    with pytest.raises(
        ServingModelError, match="FalconForCausalLM: its attention is not one of Transformers' functions"
    ):
        serving.prepare(transformers.FalconForCausalLM(transformers.FalconConfig(**sizes)))
    passes_nothing = transformers.StableLmForCausalLM(transformers.StableLmConfig(**sizes)).eval()
    own = network()
    own.model.layers[1].self_attn.forward = lambda hidden_states, **others: (hidden_states, None)
    reasons = {"its layers do not pass the pages to it": passes_nothing, "layer 1 writes no keys and values": own}
    for reason, model in reasons.items():
        refused = pytest.raises(RequestError, match=reason)
        with Engine(model, max_length=32, max_batch_tokens=8) as engine, refused:
            engine.submit([1, 2]).result()


def test_models_and_lengths_that_are_refused() -> None:
    sizes = {**SIZES, "num_hidden_layers": 1, "sliding_window": 16}
    sliding = transformers.MistralForCausalLM(transformers.MistralConfig(**sizes))
    with pytest.raises(ServingModelError, match="MistralForCausalLM: it has layers with sliding_attention"):
        serving.prepare(sliding)
    with pytest.raises(ConfigError, match="max_length=0 is not accepted"):
        serving.prepare(network(), max_length=0)


def test_sizes_of_programs() -> None:
    assert [padded_size(n, 100) for n in (1, 8, 9, 33, 64, 65, 100)] == [8, 8, 16, 64, 64, 100, 100]
    assert padded_size(3, 5) == 5 and padded_size(1, 1) == 1
