"""A model whose forward function serves Transformers' continuous batching on the device."""

from __future__ import annotations

import copy
import functools
import weakref
from typing import Any

import torch
from transformers import AttentionInterface, PreTrainedModel
from transformers.generation.continuous_batching.cache import PagedAttentionCache
from transformers.modeling_outputs import CausalLMOutput

from tt_torch.errors import ConfigError, ServingModelError
from tt_torch.serving.attention import NAME, attention
from tt_torch.serving.pages import Pages, check

SMALLEST = 8  # rows of the smallest program
ANSWERS = 32  # rows of logits that a program computes, unless a batch has more requests
PROGRAMS = 64  # captures of one model before Dynamo would leave it to eager PyTorch

Tensor = torch.Tensor
AttentionInterface.register(NAME, attention)


def prepare(
    model: PreTrainedModel, *, max_length: int | None = None, options: Any = None, backend: Any = "tt"
) -> PreTrainedModel:
    """Puts the continuous batching of a model of Transformers on the device, and returns the model.

    Only calls with a paged cache change: `model.generate_batch`, `init_continuous_batching` and `transformers serve`.
    All other calls stay as they are. Batches are padded to powers of two of tokens, and each size is one program.

    Args:
        model: a decoder whose layers have full attention. It keeps its weights; the device reads the same ones.
        max_length: the tokens that one request may have, prompt and answer. The default is what the model has
            positions for. A float32 program reads this many positions per token, so a smaller number is faster.
        options: options of `torch.compile` for our backend, such as `{"dtype": "bf16"}`.
        backend: another backend of `torch.compile`, to compare.

    Raises:
        ServingModelError: if the model has layers that pages do not serve yet, such as those with a sliding window, or
            attention of its own.
        ConfigError: if `max_length` is not positive, and later if a batch has a longer request.
    """
    serve(model, max_length, backend, options)
    return model


def serve(model: PreTrainedModel, max_length: int | None, backend: Any, options: Any) -> Served:
    """Does what `prepare` does, and returns what serves the model."""
    if max_length is None:
        max_length = model.config.get_text_config().max_position_embeddings
    if max_length < 1:
        raise ConfigError("max_length", max_length, "a number of tokens, at least 1")
    check(model)
    served, original = Served(model, max_length, backend, options), model.forward

    @functools.wraps(original)  # Transformers reads the names of the parameters
    def forward(*given: Any, **named: Any) -> Any:
        if isinstance(named.get("cache"), PagedAttentionCache):
            return served(named)
        return original(*given, **named)

    model.forward = forward
    return served


class Served:
    """A copy of a model, with the same weights, whose attention reads pages; and its program for each size."""

    def __init__(self, model: PreTrainedModel, max_length: int, backend: Any, options: Any) -> None:
        shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
        own = copy.deepcopy(model, shared)
        vars(own).pop("forward", None)  # an earlier prepare or torch.compile of the model
        own.set_attn_implementation(NAME)
        if own.config.get_text_config()._attn_implementation != NAME:  # Transformers has only logged it
            raise ServingModelError(type(model).__name__, "its attention is not one of Transformers' functions")
        limit: Any = {"recompile_limit": PROGRAMS}  # PyTorch's types for this function lack it
        self._step: Any = torch.compile(own.forward, backend=backend, dynamic=False, options=options, **limit)
        self._keeps = own._supports_logits_to_keep()
        self._model, self._max_length = type(model).__name__, max_length
        self._pages: weakref.WeakKeyDictionary[PagedAttentionCache, Pages] = weakref.WeakKeyDictionary()

    def __call__(self, batch: dict[str, Any]) -> CausalLMOutput:
        """The logits of a batch of Transformers: either the logits that it asks for, or the logits of all tokens."""
        cache, asked = batch["cache"], batch["logits_indices"]
        pages, positions = self._pages_of(cache), batch["position_ids"][0]
        count = len(positions)
        rows = padded_size(count, cache.max_batch_tokens)
        table = pages.tables(batch, rows, self._columns(pages, int(positions.max()) + 1))
        logits = self._logits(pages, _padded(batch["input_ids"][0], rows), _padded(positions, rows), table, asked)
        pages.check_written(self._model, int(table[0, int(positions[0]) // pages.size]))
        return CausalLMOutput(logits=logits[:, : len(asked) if self._keeps else count])

    @torch.no_grad()
    def warm_up(self, cache: PagedAttentionCache) -> None:
        """Compiles the program of each size. Its tokens are written to page 0, which no request has."""
        pages, most = self._pages_of(cache), cache.max_batch_tokens
        for rows in sorted({padded_size(1 << i, most) for i in range(most.bit_length() + 1)}):
            nothing = torch.zeros(rows, dtype=torch.int32)
            table = torch.zeros(rows, self._columns(pages, 1), dtype=torch.int32)
            self._logits(pages, nothing, nothing, table, nothing[:1])

    def _pages_of(self, cache: PagedAttentionCache) -> Pages:
        if cache not in self._pages:
            self._pages[cache] = Pages(cache)
        return self._pages[cache]

    def _logits(self, pages: Pages, tokens: Tensor, positions: Tensor, table: Tensor, asked: Tensor) -> Tensor:
        """Runs the program for `tokens` and `positions`, both (rows,), and `table`, (rows, columns)."""
        rows = len(tokens)
        given: dict[str, Any] = {"input_ids": tokens.long()[None], "position_ids": positions.long()[None]}
        if self._keeps:
            given["logits_to_keep"] = _padded(asked, min(ANSWERS, rows) if len(asked) <= ANSWERS else rows).long()
        own = {"pages": pages.layers, "page_table": table, "positions": positions.to(torch.int32)}
        return self._step(**given, **own, use_cache=False).logits

    def _columns(self, pages: Pages, length: int) -> int:
        """The columns of a page table: enough for the longest request. Raises ConfigError if one has more tokens."""
        most = min(self._max_length, pages.most * pages.size)
        if length > most:
            raise ConfigError("max_length", most, f"at least {length}, the tokens of a request")
        return -(-most // pages.size)


def padded_size(count: int, most: int) -> int:
    """The rows of the program for `count` tokens: a power of two, or the most tokens that a batch can have."""
    return max(min(1 << (count - 1).bit_length(), most), min(SMALLEST, most))


def _padded(numbers: Tensor, size: int) -> Tensor:
    """Numbers with zeros behind them. A token of padding is at position 0 of page 0, which no request has."""
    return torch.nn.functional.pad(numbers, (0, size - len(numbers)))
