"""Functions of x, of shape (batch, length, 16), whose length is padded. RIGHT lists functions with rules, and REFUSED
lists functions that are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

aten, f64 = torch.ops.aten, torch.float64


def heads(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(x.shape[0], -1, 2, 8).transpose(1, 2)


def joined(x: torch.Tensor) -> torch.Tensor:
    return x.transpose(1, 2).flatten(2)


def attention_by_hand(x: torch.Tensor) -> torch.Tensor:
    hidden = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
    return (x @ x.transpose(1, 2)).masked_fill(hidden, -1e9).softmax(-1) @ x


# Functions of x, with the shape (batch, length, 16), whose length is padded.
RIGHT: dict[str, Callable[[torch.Tensor], Any]] = {
    "element-wise": lambda x: ((x * 2 + 1).relu(), torch.log(x), x / x.sum(-1, keepdim=True)),
    "reductions": lambda x: (x.sum(1), x.mean(1), x.amax(1), x.amin(), x.mean(), x.sum((0, 1)), x[:, :, :2].prod(1)),
    "masks": lambda x: ((x > 0).all(1), (x > 0).any(1), x.argmax(1), x.max(1), x.logsumexp(1), x.softmax(1)),
    "matrix products": lambda x: (
        x @ x.transpose(1, 2),
        x.transpose(1, 2) @ x,
        F.linear(x, torch.arange(80.0).reshape(5, 16) / 80, torch.ones(5)),
    ),
    "normalization": lambda x: F.layer_norm(x, (16,)),
    "attention": lambda x: joined(F.scaled_dot_product_attention(heads(x), heads(x), heads(x))),
    "causal": lambda x: joined(F.scaled_dot_product_attention(heads(x), heads(x), heads(x), is_causal=True)),
    "attention by hand": attention_by_hand,
    "flattened": lambda x: (x.flatten(0, 1) * 2, x.flatten(0, 1).sum(0), x.flatten(), x.flatten(1)),
    "positions": lambda x: (
        x + torch.arange(x.shape[1])[:, None],
        torch.arange(x.shape[1]),
        x.cumsum(1),
        torch.arange(5, 5 - x.shape[1], -1),
    ),
    "scans": lambda x: (x.cumsum(1), x.cumprod(1), x.cumprod(-1)),
    "picked": lambda x: (x[:, -1], x[:, 0], x[:, -2] + x[:, 1], x[..., 3:5]),
    "size as a number": lambda x: (x * x.shape[1], x.sum(1) / (2 * x.shape[1] + 1)),
    "joined": lambda x: (torch.cat([x, x], -1), torch.stack([x, -x]), x.chunk(2, -1)),
    "joined with nothing": lambda x: torch.cat([x.new_empty(0), x, x.new_empty(2, 0, 16)], 1),
    "looked up": lambda x: torch.arange(30.0).reshape(10, 3)[(x[..., 0] * 9).abs().long().clamp(0, 9)],
    "looked up in it": lambda x: (
        x[:, torch.tensor([-1, 0])],
        x[torch.arange(2)[:, None], torch.arange(x.shape[1])],
        x.gather(1, x.argmax(1, keepdim=True)),
        x.index_select(1, torch.tensor([1])),
        F.embedding(torch.tensor([3, 0]), x[0]),
    ),
    "turned": lambda x: (x.flip(1), x.flip(0, 2), x.transpose(0, 1).flip(0, 1)),
    "padded and moved": lambda x: (F.pad(x, (1, 2)), x.transpose(0, 1), x.unsqueeze(1).expand(-1, 3, -1, -1)),
}


def two_orders(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Two tensors of one size, with padding at different positions."""
    return x[..., 0].flatten(), x[..., 0].t().flatten()


def images(x: torch.Tensor) -> torch.Tensor:
    """One image per element of the length, with two channels and 4 x 4 pixels."""
    return x.transpose(0, 1).reshape(-1, 2, 4, 4)


def found(x: torch.Tensor) -> torch.Tensor:
    """0 for each real element of the length, and 1 for the garbage in the padding."""
    return (x[..., 0] > 100).long()


def thirds(x: torch.Tensor) -> torch.Tensor:
    """A position from 0 to 2 for each real element, and one that does not exist for the garbage in the padding."""
    return ((x + 0.5) * 3).long()


RIGHT |= {
    "of images": lambda x: (
        F.max_pool2d(images(x), 2),
        F.avg_pool2d(images(x), 2),
        F.adaptive_avg_pool2d(images(x), 2),
        F.pad(images(x), (1, 1, 1, 1), mode="reflect"),
        F.conv2d(images(x), torch.ones(3, 2, 2, 2)),
        F.batch_norm(images(x), torch.zeros(2), torch.ones(2)),
    ),
    "masked attention": lambda x: F.scaled_dot_product_attention(
        heads(x), heads(x), heads(x), torch.ones(x.shape[1], x.shape[1]).tril().bool()
    ),
    "products with vectors": lambda x: (x[0].t().mv(x[0, :, 0]), x[0, :, 0].dot(x[1, :, 0])),
    "products with a sum": lambda x: (
        torch.addmm(torch.ones(16, 16), x[0].t(), x[0]),
        torch.baddbmm(torch.ones(2, 16, 16), x.transpose(1, 2), x),
    ),
    "least elements": lambda x: (x.argmin(1), x.min(1), x.amin(1), (x > 0).amin(1), (x * 9).int().amin(1)),
    "largest elements": lambda x: ((x > 0).amax(1), (x * 9).int().amax(1)),
    "counts": lambda x: ((x > 0).count_nonzero(1), x.mean((1, 2), keepdim=True), x.sum(1, keepdim=True)),
    "along others": lambda x: (x.sort(2), x.roll(1, 2), x.unbind(2), x.scatter_add(2, x.argmax(2, True), x[..., :1])),
    "marked places": lambda x: torch.zeros(20, 16, dtype=torch.bool).index_put(
        (torch.arange(x.shape[1]),), x[0] > 0, accumulate=True
    ),
    "counted places": lambda x: torch.zeros(20, 16).index_put((torch.arange(x.shape[1]),), x[0], accumulate=True),
    "overwritten places": lambda x: (
        torch.zeros(20, 16).index_put((torch.arange(x.shape[1]) + 3,), x[0]),
        torch.zeros(3, 16).index_put((thirds(x)[0, :, 0],), x[0]),
        torch.zeros(3, 16).index_put((thirds(x)[0, :, 0],), torch.tensor(2.0)),
        aten.index_put(torch.zeros(2, 3), [None, thirds(x)[0, :, :2]], x[..., :2]),
        torch.zeros(2, 20, 16).scatter(1, thirds(x), x),
        torch.zeros(2, 20, 16).scatter(1, thirds(x), 2.0),
        torch.zeros(2, 20, 16).scatter_add(1, thirds(x), x),
        x.scatter(1, thirds(x), x),
    ),
    "the last elements": lambda x: (x[:, -1:], x[:, -3:], x[:, -1:, :2].flatten(0, 1), x.transpose(0, 1)[-2:]),
    "a slice that leaves nothing out": lambda x: aten.slice(x.flatten(0, 1), 0) * 2,
    "causal attention of a few rows": lambda x: F.scaled_dot_product_attention(
        torch.ones(2, 2, 3, 8, dtype=f64), heads(x.to(f64)), heads(x.to(f64)), is_causal=True
    ),
    "times a fixed size": lambda x: x * x.shape[0],
    "means of another type": lambda x: (x.mean(1, dtype=f64), x.mean(2, dtype=f64)),
    "looked up at the first position": lambda x: (
        x[:, :, :1].gather(2, found(x)[..., None]),
        x[:, :, :1].scatter(2, found(x)[..., None], 1.0),
        torch.ones(1, 3)[found(x)],
        F.embedding(found(x), torch.ones(1, 3)),
        torch.zeros(1, 16).index_put((found(x)[0],), x[0], accumulate=True),
    ),
    "written at real positions": lambda x: x.scatter(1, torch.tensor([0, 2, 1])[None, :, None].expand(2, 3, 16), 1.0),
    "expanded": lambda x: (
        x[:, None, :, :1].expand(2, 3, -1, 4),
        two_orders(x)[1].expand(3, -1),
        x[:, :, :1].mT.expand(2, 5, -1),
    ),
    "integers": lambda x: (
        (x * 9).long().sum(1),
        (x * 9).int().amin(1),
        (x > 0).sum(1),
        (x > 0).prod(1),
        (x * 9).to(torch.uint8).amax(1),
    ),
    "one that is left out": lambda x: (x[:, :, :1].squeeze(2), x[:1].squeeze(), x[:1].squeeze(1)),
}
# The op that is refused, the reason, and a function in which the op is refused.
REFUSED: list[tuple[str, str, Callable[[torch.Tensor], Any]]] = [
    ("aten.add.Tensor", "its operands are padded differently", lambda x: torch.add(*two_orders(x))),
    ("aten.mm", "its operands are padded differently", lambda x: two_orders(x)[0][None] @ two_orders(x)[1][:, None]),
    ("aten.gather", "its operands are padded differently", lambda x: x.gather(2, torch.zeros(2, 3, 2).long())),
    ("aten.view", "its elements would change places", lambda x: x.reshape(-1, 2, 16)),
    ("aten.split_with_sizes", "it picks or moves positions of a padded", lambda x: x.split([2, x.shape[1] - 2], 1)),
    ("aten.select", "it picks a position of a padded dimension", lambda x: x.flatten(0, 1)[3]),
    ("aten.select", "it picks a position of a padded dimension", lambda x: x.flatten(0, 1)[-1]),
    ("aten.slice", "it cuts a padded dimension elsewhere than at its end", lambda x: x[:, 1:]),
    ("aten.slice", "it cuts a padded dimension elsewhere than at its end", lambda x: x[:, ::2]),
    (
        "aten.slice",
        "it cuts a padded dimension elsewhere than at its end",
        lambda x: torch.arange(40)[x.shape[1] : 2 * x.shape[1]],
    ),
    ("aten.slice", "it cuts a padded dimension", lambda x: x[:, :3]),
    ("aten.slice", "it cuts a padded dimension", lambda x: x[:, :-1]),
    ("aten.slice", "it cuts a padded dimension elsewhere than at its end", lambda x: x[:, -3:-1]),
    ("aten.slice", "it cuts a padded dimension elsewhere than at its end", lambda x: x.flatten(0, 1)[-3:]),
    ("aten.cat", "it joins padded dimensions", lambda x: torch.cat([x, x], 1)),
    ("aten.cat", "it joins padded dimensions", lambda x: torch.cat([v[:, None] for v in two_orders(x)], 1)),
    ("aten.stack", "it joins padded dimensions", lambda x: torch.stack(two_orders(x))),
    ("aten.argmax", "it gives a position among all elements", lambda x: x.argmax()),
    ("aten.argmin", "it gives a position among all elements", lambda x: x.argmin()),
    ("aten.var", "it has no rule that keeps padding out", lambda x: x.var(1)),
    ("aten.sort", "it works along a padded dimension", lambda x: x.sort(1)[0]),
    ("aten.topk", "it works along a padded dimension", lambda x: x.topk(2, 1)),
    ("aten.cumsum", "it works along a padded dimension", lambda x: x.flatten(0, 1).cumsum(0)),
    ("aten.constant_pad_nd", "it mixes along a padded dimension", lambda x: F.pad(x, (0, 0, 1, 0))),
    (
        "aten.convolution",
        "it mixes along a padded dimension",
        lambda x: F.conv1d(x.transpose(1, 2), torch.ones(4, 16, 3)),
    ),
    (
        "aten.native_layer_norm",
        "it mixes along a padded dimension",
        lambda x: F.layer_norm(x.transpose(1, 2), [x.shape[1]]),
    ),
    ("aten.native_group_norm", "it mixes along a padded dimension", lambda x: F.group_norm(x.transpose(1, 2), 4)),
    ("aten.native_group_norm", "it mixes along a padded dimension", lambda x: F.group_norm(x, 1)),
    (
        "aten._native_batch_norm",
        "it mixes along a padded dimension",
        lambda x: F.batch_norm(x, torch.zeros(x.shape[1]), torch.ones(x.shape[1])),
    ),
    ("aten.max_pool2d", "it mixes along a padded dimension", lambda x: F.max_pool2d(x[None], 2)),
    ("aten.avg_pool2d", "it mixes along a padded dimension", lambda x: F.avg_pool2d(x[None], 2)),
    (
        "aten.index_put",
        "it writes to a padded dimension",
        lambda x: x.index_put((torch.tensor([0]),), x[:1]),
    ),
    *(
        (op, "it writes at positions of a dimension of several sizes", function)
        for op, function in {
            "aten.index_put": lambda x: torch.zeros(9).index_put(
                ((x[..., 0] > 0).long().flatten(),), x[..., 0].flatten()
            ),
            "aten.scatter": lambda x: torch.zeros(99, 16).scatter(0, (x * 0).long().flatten(0, 1), x.flatten(0, 1)),
        }.items()
    ),
    *(
        ("aten.arange", "it computes with the size itself", function)
        for function in (
            lambda x: torch.arange(x.shape[1], x.shape[1] + 3) * x[0, 0, 0],
            lambda x: torch.arange(x.shape[1], 20) * x[0, 0, 0],
        )
    ),
    ("aten.flip", "it turns a dimension of several sizes", lambda x: x.flatten(0, 1).flip(0)),
    *(
        (op, "it looks up positions of a dimension of several sizes", function)
        for op, function in {
            "aten.index.": lambda x: x.flatten(0, 1)[torch.tensor([0, 6])],
            "aten.index_select": lambda x: x.flatten(0, 1).index_select(0, torch.tensor([6])),
            "aten.gather": lambda x: x.flatten(0, 1).gather(0, torch.full((1, 16), 6)),
            "aten.embedding": lambda x: F.embedding(torch.tensor([6]), x.flatten(0, 1)),
            "aten.scatter": lambda x: x.flatten(0, 1).scatter(0, torch.full((1, 16), 6), 1.0),
        }.items()
    ),
    (
        "aten.convolution",
        "it mixes along a padded dimension",
        lambda x: F.conv1d(torch.ones(2, 16, 5), x[0][:, :, None]),
    ),
    (
        "aten.scatter",
        "it writes to a padded dimension",
        lambda x: torch.zeros(2, 20, 16).scatter(1, torch.zeros(2, 3, 16).long(), x),
    ),
    ("aten.scatter", "it writes to a padded dimension", lambda x: x.mT.scatter(1, torch.zeros(2, 3, 4).long(), 1.0)),
    ("aten.clamp", "it computes with the size itself", lambda x: x.clamp(max=x.shape[1])),
    ("aten.mul", "it computes with the size itself", lambda x: x * (x.shape[1] // 2)),
    ("aten.mul", "it computes with the size itself", lambda x: x * (x.shape[1] / 3)),
    ("aten.clamp", "it computes with the size itself", lambda x: x.clamp(min=x.shape[1] / 8)),
    (  # it divides by the root of a padded size
        "aten.mul",
        "it computes with the size itself",
        lambda x: F.scaled_dot_product_attention(*[heads(x).transpose(2, 3)] * 3),
    ),
]
