"""torch.ops.tt: the names and arguments of tt-xla, and the ops that compilers take apart, compared with loops."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import tt_torch
from tt_torch.errors import OpArgumentError

tt = torch.ops.tt
# The parameters of tt-xla's ops, in order, with their defaults. Without one, an argument must be given.
PARAMETERS = {
    "mark_argument_attributes": "tensor argument_type name=None",
    "sharding_constraint": "tensor sdy_sharding",
    "weight_dtype_override": "tensor dtype_str",
    "scaled_dot_product_attention":
        "query key value attn_mask=None is_causal=True scale=None sliding_window_size=None",
    "scaled_dot_product_attention_decode":
        "query key value cur_pos_tensor attn_mask=None attention_sink=None is_causal=True scale=None",
    "paged_scaled_dot_product_attention_decode":
        "query key value page_table is_causal=False attn_mask=None cur_pos_tensor=None attention_sink=None scale=None",
    "update_cache": "cache fill_value cache_position batch_offset=None",
    "fill_cache": "cache fill_value batch_offset=None",
    "paged_update_cache": "cache fill_value update_indices page_table share_cache=False",
    "paged_fill_cache": "cache fill_value page_table batch_idx=None",
    "sparse_matmul":
        "input_tensor_a input_tensor_b sparsity nnz=None is_input_a_sparse=False is_input_b_sparse=True",
    "all_to_all_dispatch": "input_tensor expert_indices expert_mapping num_devices=1 cluster_axis=0",
    "all_to_all_combine":
        "input_tensor expert_metadata expert_mapping num_devices=1 cluster_axis=0 num_experts_per_tok=2 "
        "output_shard_dim=1",
    "moe_expert_token_remap": "topk_tensor expert_mapping expert_metadata num_devices=1 reduction_size=32",
}  # fmt: skip


@pytest.mark.parametrize("name", PARAMETERS)
def test_names_and_defaults_are_those_of_tt_xla(name: str) -> None:
    found = getattr(tt, name).default._schema.arguments
    texts = [f"{a.name}={a.default_value}" if a.has_default_value() else a.name for a in found]
    assert " ".join(texts) == PARAMETERS[name]


def dispatched(x: Tensor, chosen: Tensor, chips: int) -> tuple[Tensor, Tensor]:
    rows = [x.reshape(x.shape[0], *x.shape[-2:])[b] for _ in range(chips) for b in range(x.shape[0])]
    experts = [chosen.reshape(x.shape[0], -1, chosen.shape[-1])[b] for _ in range(chips) for b in range(x.shape[0])]
    return torch.stack(rows)[None], torch.stack(experts)[None]


def combined(x: Tensor, metadata: Tensor, chips: int, chosen: int, place: int) -> Tensor:
    own, rows = metadata.shape[2] // chips, x.reshape(x.shape[0], -1, x.shape[3])
    zero = torch.zeros(x.shape[3])
    numbers = metadata[0, 0].tolist()
    parts = [
        torch.stack([rows[numbers[t][k], t] if 0 <= numbers[t][k] < len(rows) else zero for t in range(own)])
        for k in range(chosen)
    ]
    return torch.stack(parts).unsqueeze(1 if place == 2 else 2)


def remapped(scores: Tensor, metadata: Tensor, chips: int, size: int) -> tuple[Tensor, Tensor]:
    scores = torch.cat([scores] * chips)
    mapping, blocks = torch.zeros_like(scores), torch.zeros(-(-len(scores) // size), scores.shape[1])
    for t, experts in enumerate(metadata[0, 0].tolist()):
        for e in experts:
            mapping[t, e], blocks[t // size, e] = scores[t, e], 1.0
    return mapping[None, None], blocks[None, None]


def drawn(seed: int) -> dict[str, tuple]:
    """Per op: its call, the same in loops, and the tensor of which both have the gradient."""
    torch.manual_seed(seed)
    batch, length, width, experts, chosen = 1 + seed % 3, 2 + seed % 4, 5, 4, 1 + seed % 3
    chips, place, size = 1 + seed % 2, 1 + seed % 2, 2 + seed % 5
    tokens, mapping = chips * batch * length, torch.zeros(1, 1, experts, chips, dtype=torch.int64)
    kind = torch.int64 if seed % 2 else torch.int32
    some = torch.randint(0, experts, (batch, length, chosen), dtype=kind)
    some = (some, some.flatten(0, 1), some[:, None])[seed % 3]
    x = torch.randn(batch, length, width) if seed % 2 else torch.randn(batch, 1, length, width)
    far = torch.randint(-1, experts + 2, (1, 1, tokens, chosen), dtype=kind)
    near = torch.stack([torch.randperm(experts)[:chosen] for _ in range(tokens)])[None, None].to(kind)
    computed, scores = torch.randn(experts, chips * batch, length, width), torch.rand(batch * length, experts)
    return {
        "all_to_all_dispatch": (
            lambda x: tt.all_to_all_dispatch(x, some, mapping, chips), lambda x: dispatched(x, some, chips), x),
        "all_to_all_combine": (
            lambda x: tt.all_to_all_combine(x, far, mapping, chips, 0, chosen, place),
            lambda x: combined(x, far, chips, chosen, place), computed),
        "moe_expert_token_remap": (
            lambda x: tt.moe_expert_token_remap(x, mapping, near, chips, size),
            lambda x: remapped(x, near, chips, size), scores),
        "mark_argument_attributes": (
            lambda x: tt.mark_argument_attributes(x, "parameter", name="w") * 1, lambda x: x * 1, x),
        "sharding_constraint": (
            lambda x: tt.sharding_constraint(x, '#sdy.sharding_per_value<[<@mesh, [{"_axis_0"}]>]>'),
            lambda x: x * 1, x),
        "weight_dtype_override": (lambda x: tt.weight_dtype_override(x, "bf16"), lambda x: x * 1, x),
    }  # fmt: skip


def parts(result: object) -> list[Tensor]:
    return list(result) if isinstance(result, tuple) else [result]


@pytest.mark.parametrize("name", drawn(0))
def test_values_and_gradients(name: str) -> None:
    for seed in range(12):
        call, plain, x = drawn(seed)[name]
        runs = [call]
        if seed < 2:
            torch.compiler.reset()
            runs.append(torch.compile(call, backend="tt", fullgraph=True, options={"fallback": "error"}))
        expected = parts(plain(x.requires_grad_()))
        weights = torch.randn_like(expected[0])
        (gradient,) = torch.autograd.grad((expected[0] * weights).sum(), x)
        for run in runs:
            found = parts(run(x))
            torch.testing.assert_close(found, expected)
            torch.testing.assert_close(torch.autograd.grad((found[0] * weights).sum(), x)[0], gradient)
            assert all(part.data_ptr() != x.data_ptr() for part in found)


def i(*size: int) -> Tensor:
    return torch.zeros(size, dtype=torch.int64)


X, MAPPING = torch.zeros(2, 3, 4), i(1, 1, 4, 1)
REFUSED = {
    "a role": (lambda: tt.mark_argument_attributes(X, "weight"), "'input' or 'parameter' or 'constant'"),
    "rank of tokens": (lambda: tt.all_to_all_dispatch(X[0], i(3, 2), MAPPING), "input_tensor"),
    "experts of tokens": (lambda: tt.all_to_all_dispatch(X, i(5, 2), MAPPING), "the experts of each token"),
    "metadata": (lambda: tt.all_to_all_combine(X[None], i(1, 2, 3, 2), MAPPING), r"\(1, 1, tokens, chosen\)"),
    "place": (lambda: tt.all_to_all_combine(X[None], i(1, 1, 6, 2), MAPPING, output_shard_dim=0), "1 or 2"),
    "few experts": (lambda: tt.all_to_all_combine(X[None], i(1, 1, 6, 1), MAPPING), "as many experts"),
    "odd tokens": (lambda: tt.all_to_all_combine(X[None], i(1, 1, 6, 2), MAPPING, 4), "as many tokens"),
    "tokens": (lambda: tt.all_to_all_combine(X[None], i(1, 1, 5, 2), MAPPING), "of all tokens"),
    "scores": (lambda: tt.moe_expert_token_remap(X[0], MAPPING, i(1, 1, 6, 2)), "the scores of all tokens"),
    "blocks": (lambda: tt.moe_expert_token_remap(X[0], MAPPING, i(1, 1, 3, 2), 1, 0), "at least 1"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_arguments(case: str) -> None:
    call, accepted = REFUSED[case]
    with pytest.raises(OpArgumentError, match=accepted) as caught:
        call()
    assert caught.value.op.startswith("torch.ops.tt.") and "test_formulas.py:" in caught.value.location


def test_experts_that_are_dispatched_and_combined_are_a_mixture() -> None:
    """The four ops together, compiled, are the mixture of experts that they stand for."""
    torch.manual_seed(0)
    x, w, scores = torch.randn(2, 8, 16), torch.randn(4, 16, 16), torch.rand(16, 4)

    def layer(x: Tensor, w: Tensor, scores: Tensor) -> Tensor:
        weights, chosen = scores.topk(2)
        tokens, experts = tt.all_to_all_dispatch(x, chosen, MAPPING)
        _, sparsity = tt.moe_expert_token_remap(scores, MAPPING, experts.reshape(1, 1, 16, 2), reduction_size=8)
        products = tt.sparse_matmul(tokens.transpose(0, 1), w[None], sparsity.reshape(2, 1, 1, 4))
        by_expert = products[:, 0, 0].transpose(0, 1)
        found = tt.all_to_all_combine(by_expert, experts.reshape(1, 1, 16, 2), MAPPING)
        return (found[:, :, 0] * weights.t().unsqueeze(2)).sum(0)

    weights, chosen = scores.topk(2)
    rows = x.flatten(0, 1)
    expected = torch.stack(
        [sum(weights[t, k] * (rows[t] @ w[chosen[t, k]]) for k in range(2)) for t in range(16)]  # type: ignore[misc]
    )
    run = torch.compile(layer, backend=tt_torch.backend, fullgraph=True, options={"fallback": "error"})
    for call in (layer, run):
        torch.testing.assert_close(call(x, w, scores), expected, rtol=1e-4, atol=1e-4)
