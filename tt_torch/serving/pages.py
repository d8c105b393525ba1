"""The memory of Transformers' paged cache, in the layout of `torch.ops.tt`.

Transformers decides which pages a request has: it allocates, shares and frees them. Its own tensor is one buffer for
all layers, from which a program would copy. Here each layer has two tensors, which a program updates in place.

These attributes of Transformers were read in version 5.23.0. A test fails when they change.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
from transformers import PreTrainedModel
from transformers.generation.continuous_batching.cache import PagedAttentionCache, group_layers_by_attn_type

from tt_torch.errors import ServingModelError

Tensor = torch.Tensor
KIND = "full_attention"


def check(model: PreTrainedModel) -> None:
    """Raises ServingModelError for a model with layers that need another kind of cache."""
    try:
        kinds = group_layers_by_attn_type(model.config.get_text_config())
    except ValueError as error:  # Transformers does not serve it either
        raise ServingModelError(type(model).__name__, str(error)) from None
    if others := [kind for kind in kinds if kind != KIND]:
        raise ServingModelError(type(model).__name__, f"it has layers with {' and '.join(others)}")


class Pages:
    """The keys and values of each layer: `layers` has two tensors of shape (pages, heads, size, depth) per layer."""

    def __init__(self, cache: PagedAttentionCache) -> None:
        """Takes over the memory of a cache. Transformers' own tensors are released, so a use of them is an error."""
        allocator = cache.cache_allocators[KIND]
        self.size, self._stride = allocator.tokens_per_page, allocator.block_physical_stride
        count = cache.cache_tensor.numel() // allocator.bytes_per_block  # with two sectors that no request gets
        self.most = allocator.num_blocks
        _release(cache, allocator)
        shape = (count, allocator.num_key_value_heads, self.size, allocator.head_dim)
        self.layers = [
            (torch.zeros(shape, dtype=cache.dtype), torch.zeros(shape, dtype=cache.dtype))
            for _ in allocator.layer_indices
        ]
        cache.perform_cache_copy = self._copy
        self._checked = False

    def tables(self, batch: dict[str, Any], rows: int, columns: int) -> Tensor:
        """The pages of each token of a batch of Transformers, (rows, columns). Unused entries name page 0.

        Transformers lists the positions in its own buffer that each request reads. In a batch without earlier tokens,
        it lists only the positions that a request writes. Every `size`-th of them is the first one of a page.
        """
        queries, listed = batch["cu_seq_lens_q"].tolist(), batch["read_index"][0]
        ends = batch["cu_seq_lens_k"][KIND].tolist()
        if not len(listed):
            listed, ends = batch["write_index"][0], queries
        table = torch.zeros(rows, columns, dtype=torch.int32)
        tokens, places = itertools.pairwise(queries), itertools.pairwise(ends)
        for (first, last), (start, stop) in zip(tokens, places, strict=True):
            own = listed[start : stop : self.size] // self._stride
            table[first:last, : len(own)] = own.to(torch.int32)
        return table

    def check_written(self, model: str, page: int) -> None:
        """Raises ServingModelError if a layer has written nothing to a page of the first batch.

        Such a layer has attention of its own, which knows no pages. The tokens would be wrong.
        """
        layers = [] if self._checked else self.layers
        if empty := [i for i, layer in enumerate(layers) if not any(tensor[page].any() for tensor in layer)]:
            raise ServingModelError(model, f"layer {empty[0]} writes no keys and values into the pages")
        self._checked = True

    def _copy(self, pairs: dict[str, tuple[list[int], list[int]]]) -> None:
        """Copies pages for requests that branch off from another. It replaces the cache's own method."""
        for sources, targets in pairs.values():
            for tensor in itertools.chain(*self.layers):
                tensor[targets] = tensor[sources]


def _release(cache: PagedAttentionCache, allocator: Any) -> None:
    del cache.cache_tensor, allocator.cache_tensor, allocator._copy_view
    del allocator._kv_token_views, allocator._kv_page_views
