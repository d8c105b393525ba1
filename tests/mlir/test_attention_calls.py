"""tt-xla's calls for caches and attention, with and without pages: programs are run and compared with plain PyTorch."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from foreign_programs import CALL, TT, Program, check, i32, randn

CACHE, HEADS = randn(4, 2, 5, 3), "tensor<4x2x5x3xf32>"


def cached(cache: torch.Tensor, filled: torch.Tensor, row: torch.Tensor, position: torch.Tensor) -> Any:
    first, second = cache.clone(), cache.clone()
    first[1:3, :, :4] = filled
    second[1:4, :, position.item()] = row[0].transpose(0, 1)
    return first, second


def attended(q: torch.Tensor, k: torch.Tensor, one: torch.Tensor, position: torch.Tensor, mask: torch.Tensor) -> Any:
    attention = F.scaled_dot_product_attention
    seen = torch.arange(k.shape[2]) <= position[:, None, None, None]
    decoded = attention(one.permute(1, 2, 0, 3), k, k, seen, scale=0.5).permute(2, 0, 1, 3)
    return attention(q, k, k, is_causal=True), attention(q, k, k, mask), decoded


def call(name: str, operands: str, attributes: str) -> str:
    return CALL.format(name, operands, TT, attributes)


CACHES = f"""
%0 = {call("tt.fill_cache", "%a, %b", 'batch_offset = "1"')} ({HEADS}, tensor<2x2x4x3xf32>) -> {HEADS}
%1 = {call("tt.update_cache", "%a, %c, %d", 'batch_offset = "1"')} ({HEADS}, tensor<1x2x3x3xf32>, tensor<1xi32>)
  -> {HEADS}"""
ATTENTION = "tt.scaled_dot_product_attention"
MASKLESS = 'has_attention_mask = "False", has_attention_sink = "False"'
ATTENTIONS = f"""
%0 = {call(ATTENTION, "%a, %b, %b", 'is_causal = "True"')} ({HEADS}, {HEADS}, {HEADS}) -> {HEADS}
%1 = {call(ATTENTION, "%a, %b, %b, %e", 'is_causal = "False"')} ({HEADS}, {HEADS}, {HEADS}, tensor<4x1x5x5xf32>)
  -> {HEADS}
%2 = {call(ATTENTION + "_decode", "%c, %b, %b, %d", f'scale = "0.5", {MASKLESS}')} (tensor<1x4x2x3xf32>, {HEADS},
  {HEADS}, tensor<4xi32>) -> tensor<1x4x2x3xf32>"""
PROGRAMS = [
    Program(
        "caches", CACHES, f"%0, %1 : {HEADS}, {HEADS}", (CACHE, randn(2, 2, 4, 3), randn(1, 2, 3, 3), i32(2)), cached
    ),
    Program(
        "attention",
        ATTENTIONS,
        f"%0, %1, %2 : {HEADS}, {HEADS}, tensor<1x4x2x3xf32>",
        (randn(4, 2, 5, 3), CACHE + 1, randn(1, 4, 2, 3), i32(0, 4, 2, 1), randn(4, 1, 5, 5)),
        attended,
    ),
]

# --- pages

PAGES, TABLE, ONE = "tensor<7x2x4x3xf32>", "tensor<2x3xi32>", "tensor<1x2x4x3xf32>"
KEYS = i32(5, 0, 3, 1, 6, 2).reshape(2, 3)


def pages_of(cache: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    return cache[table.long()].transpose(1, 2).flatten(2, 3)


def paged(cache: torch.Tensor, one: torch.Tensor, at: torch.Tensor, table: torch.Tensor, long: torch.Tensor) -> Any:
    updated, filled = cache.clone(), cache.clone()
    updated[table[0, 1], :, 2] = one[0, 0, :2]
    for position in range(6):
        filled[table[1, position // 4], :, position % 4] = long[0, :, position]
    return updated, filled


PAGED = f"""
%0 = {call("tt.paged_update_cache", "%a, %b, %c, %d", "")} ({PAGES}, {ONE}, tensor<2xi32>, {TABLE}) -> {PAGES}
%u = stablehlo.constant dense<1> : tensor<1xi32>
%1 = {call("tt.paged_fill_cache", "%a, %e, %d, %u", "")} ({PAGES}, tensor<1x2x6x3xf32>, {TABLE}, tensor<1xi32>)
  -> {PAGES}"""


def shown(query: torch.Tensor, rows: torch.Tensor, keys: int, window: int = 99) -> torch.Tensor:
    distance = rows.reshape(-1, 1, rows.shape[-1], 1) - torch.arange(keys)
    return torch.zeros(distance.shape).masked_fill((distance < 0) | (distance >= window), -math.inf)


def with_sink(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor, sink: torch.Tensor) -> Any:
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ k.transpose(2, 3) / q.shape[-1] ** 0.5 + mask
    extra = sink.reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)
    return torch.softmax(torch.cat([scores, extra], 3), 3)[..., :-1] @ v


def of_pages(one: torch.Tensor, cache: torch.Tensor, table: torch.Tensor, at: torch.Tensor, sink: torch.Tensor) -> Any:
    keys, q = pages_of(cache, table), one.permute(1, 2, 0, 3)
    decoded = with_sink(q, keys, keys, shown(q, at[:, None], 12, 3), sink).permute(2, 0, 1, 3)
    latent = F.scaled_dot_product_attention(
        q, keys.repeat_interleave(2, 1), keys[..., :2].repeat_interleave(2, 1), shown(q, at[:, None], 12)
    )
    chunk = one.permute(1, 2, 0, 3).repeat(1, 1, 3, 1)
    chunked = F.scaled_dot_product_attention(
        chunk, keys.repeat_interleave(2, 1), keys.repeat_interleave(2, 1), shown(chunk, torch.arange(3) + 4, 12)
    )
    return decoded, latent.permute(2, 0, 1, 3), chunked


POSITION = 'has_cur_pos_tensor = "True", has_attention_mask = "False"'
OF_PAGES = f"""
%0 = {
    call(
        "tt.paged_scaled_dot_product_attention_decode",
        "%a, %b, %b, %c, %d, %e",
        POSITION + ', has_attention_sink = "True", sliding_window_size = "3"',
    )
}
  ({ONE}, {PAGES}, {PAGES}, {TABLE}, tensor<2xi32>, tensor<4x2xf32>) -> {ONE}
%1 = {call("tt.paged_flash_mla_decode", "%a, %b, %c, %d", POSITION + ', has_value = "False", head_dim_v = "2"')}
  ({ONE}, {PAGES}, {TABLE}, tensor<2xi32>) -> tensor<1x2x4x2xf32>
%t = stablehlo.transpose %a, dims = [1, 2, 0, 3] : ({ONE}) -> tensor<2x4x1x3xf32>
%q = stablehlo.concatenate %t, %t, %t, dim = 2
  : (tensor<2x4x1x3xf32>, tensor<2x4x1x3xf32>, tensor<2x4x1x3xf32>) -> tensor<2x4x3x3xf32>
%s = stablehlo.constant dense<4> : tensor<1xi32>
%2 = {call("tt.chunked_scaled_dot_product_attention", "%q, %b, %b, %c, %s", "")}
  (tensor<2x4x3x3xf32>, {PAGES}, {PAGES}, {TABLE}, tensor<1xi32>) -> tensor<2x4x3x3xf32>"""


def others(q: torch.Tensor, k: torch.Tensor, weights: torch.Tensor, sink: torch.Tensor) -> Any:
    mask = shown(q, torch.arange(5), 5)
    latent = F.scaled_dot_product_attention(q, k, k[..., :2], mask)
    scores = (torch.relu(q @ k[:, :1].transpose(2, 3)) * weights).sum(1, keepdim=True) + shown(
        q, torch.arange(5) + 1, 5
    )
    return latent, scores, with_sink(q, k, k, mask, sink)


OTHERS = f"""
%0 = {call("tt.flash_mla_prefill", "%a, %b", 'head_dim_v = "2"')} ({HEADS}, {HEADS}) -> tensor<4x2x5x2xf32>
%k = stablehlo.slice %b [0:4, 0:1, 0:5, 0:3] : ({HEADS}) -> tensor<4x1x5x3xf32>
%1 = {call("tt.indexer_score_dsa", "%a, %k, %c", 'chunk_start_idx = "1"')}
  ({HEADS}, tensor<4x1x5x3xf32>, tensor<4x2x5x1xf32>) -> tensor<4x1x5x5xf32>
%2 = {call(ATTENTION, "%a, %b, %b, %d", 'has_attention_sink = "True"')} ({HEADS}, {HEADS}, {HEADS}, tensor<1x2x1x1xf32>)
  -> {HEADS}"""
PROGRAMS += [
    Program(
        "pages",
        PAGED,
        f"%0, %1 : {PAGES}, {PAGES}",
        (randn(7, 2, 4, 3), randn(1, 2, 4, 3), i32(6, -1), KEYS, randn(1, 2, 6, 3)),
        paged,
    ),
    Program(
        "attention to pages",
        OF_PAGES,
        f"%0, %1, %2 : {ONE}, tensor<1x2x4x2xf32>, tensor<2x4x3x3xf32>",
        (randn(1, 2, 4, 3), randn(7, 2, 4, 3), KEYS, i32(5, 9), randn(4, 1).expand(4, 2).contiguous()),
        lambda one, cache, table, at, sink: of_pages(one, cache, table, at, sink[:, 0]),
    ),
    Program(
        "latent, indexer, sink",
        OTHERS,
        f"%0, %1, %2 : tensor<4x2x5x2xf32>, tensor<4x1x5x5xf32>, {HEADS}",
        (randn(4, 2, 5, 3), CACHE + 1, randn(4, 2, 5, 1), randn(1, 2, 1, 1)),
        others,
    ),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_program(program: Program) -> None:
    check(program)
