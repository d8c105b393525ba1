"""torch.ops.tt: if a program copies the new value of a cache into the cache, the op writes to the cache in place."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch

import tt_torch
from tt_torch.errors import OpArgumentError
from tt_torch.wire import calls
from tt_torch.wire.decode import decode

tt = torch.ops.tt
Tensor = torch.Tensor


class Caches(torch.nn.Module):
    """Two caches of three users. `pages` has pages of 32 positions, and `whole` has 64 positions for each user."""

    def __init__(self, step: Callable[..., Tensor | None], dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.register_buffer("pages", torch.randn(7, 2, 32, 8).to(dtype))
        self.register_buffer("whole", torch.randn(3, 2, 64, 8).to(dtype))
        self.step = step

    def forward(self, *given: Tensor) -> Tensor:
        result = self.step(self, *given)
        return given[0] + 1 if result is None else result


def update_pages(m: Caches, rows: Tensor, positions: Tensor, table: Tensor, prompt: Tensor) -> None:
    m.pages.copy_(tt.paged_update_cache(m.pages, rows, positions, table))


def fill_pages(m: Caches, rows: Tensor, positions: Tensor, table: Tensor, prompt: Tensor) -> Tensor:
    filled = tt.paged_fill_cache(m.pages, prompt[1:2], table, positions.argmax().reshape(1))
    m.pages.copy_(tt.paged_update_cache(filled, rows, positions, table))
    return m.pages.sum(2)


def fill_whole(m: Caches, rows: Tensor, positions: Tensor, table: Tensor, prompt: Tensor) -> None:
    filled = tt.fill_cache(m.whole, prompt, 1)
    m.whole.copy_(tt.update_cache(filled, rows[0, :, :2, None], positions.clamp(min=0).max().reshape(1), 0))


def assign(m: Caches, rows: Tensor, positions: Tensor, table: Tensor, prompt: Tensor) -> None:
    m.whole[:, :, :32] = torch.cat([prompt, prompt[:1] * 2])


STEPS = {
    assign: {"FillCacheOp": 3},
    update_pages: {"PagedUpdateCacheOp": 1},
    fill_pages: {"PagedFillCacheOp": 1, "PagedUpdateCacheOp": 1},
    fill_whole: {"FillCacheOp": 2, "UpdateCacheOp": 1},
}


def given(seed: int, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """Rows (1, 3, 3, 8), a position for each user (3,), a table of shuffled pages (3, 2), and prompts (2, 2, 32, 8).

    A user whose position is negative is skipped.
    """
    torch.manual_seed(seed)
    positions = torch.randint(-20, 64, (3,), dtype=torch.int32)
    table = (torch.randperm(6) + 1).reshape(3, 2)
    return torch.randn(1, 3, 3, 8).to(dtype), positions, table, torch.randn(2, 2, 32, 8).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_a_cache_is_written_in_place(step: Callable, dtype: torch.dtype) -> None:
    model = Caches(step, dtype)
    expected, memory = copy.deepcopy(model), [b.data_ptr() for b in model.buffers()]
    with torch.no_grad():
        run = tt_torch.compile_model(model.eval(), given(0, dtype))
        for seed in range(5):
            torch.testing.assert_close(run(*given(seed, dtype)), expected(*given(seed, dtype)))
            assert all(map(torch.equal, model.buffers(), expected.buffers()))
    assert memory == [b.data_ptr() for b in model.buffers()]
    ops = calls.op_histogram(decode(run.binary))
    assert {op: ops[op] for op in STEPS[step]} == STEPS[step]
    assert "ScatterOp" not in ops and "state" in run.executor.compiled.kinds


def old_values(m: Caches, rows: Tensor, positions: Tensor, table: Tensor, prompt: Tensor) -> Tensor:
    before = m.pages * 2
    m.pages.copy_(tt.paged_update_cache(m.pages, rows, positions, table))
    return before


def two_values(m: Caches, rows: Tensor, positions: Tensor, table: Tensor, prompt: Tensor) -> Tensor:
    other = tt.paged_update_cache(m.pages, rows * 2, positions, table)
    m.pages.copy_(tt.paged_update_cache(m.pages, rows, positions, table))
    return other


def changed(m: Caches, rows: Tensor, positions: Tensor, table: Tensor, prompt: Tensor) -> None:
    m.pages.copy_(tt.paged_update_cache(m.pages, rows, positions, table) * 2)


def part_of_a_tile(m: Caches, rows: Tensor, positions: Tensor, table: Tensor, prompt: Tensor) -> None:
    m.whole.copy_(tt.fill_cache(m.whole, prompt[:, :, :20], 0))
    m.pages.copy_(tt.paged_fill_cache(m.pages, prompt[:1, :, :20], table))


def swapped(m: Caches, rows: Tensor, positions: Tensor, table: Tensor, prompt: Tensor) -> None:
    first, second = tt.fill_cache(m.pages[:3], prompt, 0), tt.fill_cache(m.whole[:, :, :32], prompt * 2, 1)
    m.whole[:, :, :32] = first
    m.pages[:3] = second


@pytest.mark.parametrize(
    "step", [old_values, two_values, changed, part_of_a_tile, swapped], ids=lambda step: step.__name__
)
def test_other_writes_are_right(step: Callable) -> None:
    model = Caches(step)
    expected = copy.deepcopy(model)
    run = torch.compile(model, backend=tt_torch.backend, fullgraph=True, options={"fallback": "error"})
    with torch.no_grad():
        for seed in range(3):
            torch.testing.assert_close(run(*given(seed, torch.float32)), expected(*given(seed, torch.float32)))
            assert all(map(torch.equal, model.buffers(), expected.buffers()))


@pytest.mark.parametrize(
    ("positions", "page", "words"),
    [([64, 0, 0], 1, "out of bounds"), ([1, 2, 3], 7, r"pages \[7\]"), ([1, 2, 3], -1, r"pages \[-1\]")],
)
def test_positions_and_pages_that_do_not_exist(positions: list[int], page: int, words: str) -> None:
    model = Caches(update_pages)
    rows, fine, table, prompt = given(1, torch.float32)
    with torch.no_grad():
        run = tt_torch.compile_model(model.eval(), (rows, fine, table, prompt))
        wrong = table.clone()
        wrong[2, 0] = page
        with pytest.raises((RuntimeError, OpArgumentError), match=words):  # eager PyTorch tells the reason
            run(rows, torch.tensor(positions, dtype=torch.int32), wrong, prompt)
        before = model.pages.clone()
        run(rows, fine, table, prompt)
    assert torch.equal(model.pages, tt.paged_update_cache(before, rows, fine, table))


def attend_to_pages(m: Caches, rows: Tensor, positions: Tensor, table: Tensor, prompt: Tensor) -> Tensor:
    m.keys.copy_(tt.paged_update_cache(m.keys, rows[:, :, :2], positions, table))
    decode = tt.paged_scaled_dot_product_attention_decode
    return decode(rows, m.keys, m.keys, table, is_causal=True, cur_pos_tensor=positions, scale=0.3)


@pytest.mark.parametrize("options", [{}, {"dtype": "bf16"}], ids=["bfloat16", "float32 as bf16"])
def test_attention_to_pages_is_one_op(options: dict[str, str]) -> None:
    dtype = torch.float32 if options else torch.bfloat16
    model = Caches(attend_to_pages)
    model.register_buffer("keys", torch.randn(7, 2, 32, 32).to(dtype))
    expected = copy.deepcopy(model)

    def drawn(seed: int) -> tuple[Tensor, ...]:
        _, positions, table, prompt = given(seed, dtype)
        table[positions < 32, 1] = -1  # these users need no second page
        return torch.randn(1, 3, 4, 32).to(dtype), positions, table, prompt

    with torch.no_grad():
        run = tt_torch.compile_model(model.eval(), drawn(0), config=tt_torch.CompilerConfig(**options))
        for seed in range(5):
            ours, theirs, used = run(*drawn(seed)), expected(*drawn(seed)), drawn(seed)[1] >= 0
            torch.testing.assert_close(ours[:, used], theirs[:, used], rtol=2e-2, atol=2e-2)
    ops = calls.op_histogram(decode(run.binary))
    assert ops["PagedScaledDotProductAttentionDecodeOp"] == 1 and "EmbeddingOp" not in ops
