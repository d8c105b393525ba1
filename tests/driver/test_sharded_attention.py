"""Attention of DTensors: eager and compiled, with gradients, compared with plain tensors on the CPU."""

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

import tt_torch
from tt_torch.wire.calls import op_histogram
from tt_torch.wire.decode import decode

BATCH, HEADS, WORDS, WIDTH = 4, 8, 6, 16
MASKS = {
    "none": None,
    "of words": torch.randn(WORDS, WORDS),
    "of the batch": torch.randn(BATCH, 1, 1, WORDS),
    "of heads": torch.randn(BATCH, HEADS, WORDS, WORDS),
    "of booleans": torch.rand(BATCH, HEADS, WORDS, WORDS) > 0.5,
}
PLACEMENTS = {
    "heads": [Replicate(), Shard(1)],
    "batch and heads": [Shard(0), Shard(1)],
    "batch twice": [Shard(0), Shard(0)],
    "words": [Shard(0), Shard(2)],
}


@pytest.fixture(autouse=True)
def no_mesh_afterwards():
    yield
    dist.destroy_process_group()


def attend(q, k, v, mask, gqa):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=gqa)


def inputs(groups):
    torch.manual_seed(0)
    return [torch.randn(BATCH, n, WORDS, WIDTH) for n in (HEADS, groups, groups)]


def with_gradients(function, tensors, *others):
    tensors = [x.detach().requires_grad_() for x in tensors]
    result = function(*tensors, *others)
    return [result, *torch.autograd.grad(result.square().sum(), tensors)]


def pairs():
    """All masks with all placements. CI tests each mask with one placement, and the nightly run tests the others."""
    masks = [*((masked, HEADS) for masked in MASKS), ("none", 2), ("of heads", 2)]
    for i, (masked, groups) in enumerate(masks):
        for j, placed in enumerate(PLACEMENTS):
            marks = () if i % len(PLACEMENTS) == j else pytest.mark.nightly
            yield pytest.param(placed, masked, groups, marks=marks)


@pytest.mark.parametrize(("placed", "masked", "groups"), [*pairs()])
def test_attention_equals_that_of_plain_tensors(placed, masked, groups):
    tensors, mask, gqa = inputs(groups), MASKS[masked], groups != HEADS
    expected = with_gradients(attend, tensors, mask, gqa)
    mesh = init_device_mesh("tt", (2, 2))
    split = [distribute_tensor(x, mesh, PLACEMENTS[placed]) for x in tensors]
    whole = None if mask is None else distribute_tensor(mask, mesh, [Replicate()] * 2)
    for run in (attend, torch.compile(attend, backend="tt")):
        found = with_gradients(run, split, whole, gqa)
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one.full_tensor().cpu(), other, rtol=1e-4, atol=1e-5)


def test_heads_that_cannot_be_split_stay_whole():
    """One head of keys serves all queries, so only the batch can be split."""
    tensors = inputs(1)
    mesh = init_device_mesh("tt", (4,))
    q, k, v = (
        distribute_tensor(x, mesh, [p]) for x, p in zip(tensors, [Shard(1), Replicate(), Replicate()], strict=True)
    )
    result = attend(q, k, v, None, True)
    assert result.placements == (Replicate(),)
    torch.testing.assert_close(result.full_tensor().cpu(), attend(*tensors, None, True), rtol=1e-4, atol=1e-5)


def test_split_heads_with_a_plain_mask_take_the_ops_of_one_chip():
    mesh, mask = init_device_mesh("tt", (4,)), MASKS["of words"].tt()
    split = [distribute_tensor(x, mesh, [Shard(1)]) for x in inputs(HEADS)]
    many = tt_torch.compile_model(attend, (*split, mask, False))
    part = [x[:, : HEADS // 4].tt() for x in inputs(HEADS)]
    one = tt_torch.compile_model(attend, (*part, mask, False))
    assert op_histogram(decode(many.binary)) == op_histogram(decode(one.binary))
