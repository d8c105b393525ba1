"""Sizes are padded up to buckets: there are few programs, and results are those without padding.

An op for which this is impossible is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._dynamo.exc import BackendCompilerFailed
from torch.utils._pytree import tree_leaves

from tt_torch.config import BackendOptions, CompilerConfig
from tt_torch.driver.backend import compile_captured
from tt_torch.driver.executor import Executor
from tt_torch.driver.observer import Observer
from tt_torch.dynamo.buckets import round_up
from tt_torch.errors import BucketError

LINEAR = torch.nn.Linear(16, 5)
aten, f64 = torch.ops.aten, torch.float64


def recording(
    function: Any, buckets: dict[str, Sequence[int]], dynamic: bool | None = True
) -> tuple[Any, list[Executor]]:
    """Returns the compiled function, and the list of programs, which grows as they are made."""
    programs: list[Executor] = []
    options = BackendOptions(compiler_config=CompilerConfig(buckets=buckets, fallback="error"))

    def backend(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
        return compile_captured(gm, inputs, options, Observer(programs.append, flag=False))

    return torch.compile(function, backend=backend, dynamic=dynamic), programs


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
    "matrix products": lambda x: (x @ x.transpose(1, 2), x.transpose(1, 2) @ x, LINEAR(x)),
    "normalization": lambda x: F.layer_norm(x, (16,)),
    "attention": lambda x: joined(F.scaled_dot_product_attention(heads(x), heads(x), heads(x))),
    "causal": lambda x: joined(F.scaled_dot_product_attention(heads(x), heads(x), heads(x), is_causal=True)),
    "attention by hand": attention_by_hand,
    "flattened": lambda x: (x.flatten(0, 1) * 2, x.flatten(0, 1).sum(0), x.flatten(), x.flatten(1)),
    "positions": lambda x: (x + torch.arange(x.shape[1])[:, None], torch.arange(x.shape[1]), x.cumsum(1)),
    "scans": lambda x: (x.cumsum(1), x.cumprod(1), x.cumprod(-1)),
    "picked": lambda x: (x[:, -1], x[:, 0], x[:, -2] + x[:, 1], x[..., 3:5]),
    "size as a number": lambda x: (x * x.shape[1], x.sum(1) / (2 * x.shape[1] + 1)),
    "joined": lambda x: (torch.cat([x, x], -1), torch.stack([x, -x]), x.chunk(2, -1)),
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
    "a slice that leaves nothing out": lambda x: aten.slice(x.flatten(0, 1), 0) * 2,
    "causal attention of a few rows": lambda x: F.scaled_dot_product_attention(
        torch.ones(2, 2, 3, 8, dtype=f64), heads(x.to(f64)), heads(x.to(f64)), is_causal=True
    ),
    "times a fixed size": lambda x: x * x.shape[0],
    "one that is left out": lambda x: (x[:, :, :1].squeeze(2), x[:1].squeeze(), x[:1].squeeze(1)),
}
# The op that is refused, the reason, and a function in which that happens.
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
    ("aten.slice", "it cuts a padded dimension", lambda x: x[:, :3]),
    ("aten.slice", "it cuts a padded dimension", lambda x: x[:, :-1]),
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
    (
        "aten._native_batch_norm",
        "it mixes along a padded dimension",
        lambda x: F.batch_norm(x, torch.zeros(x.shape[1]), torch.ones(x.shape[1])),
    ),
    ("aten.max_pool2d", "it mixes along a padded dimension", lambda x: F.max_pool2d(x[None], 2)),
    ("aten.avg_pool2d", "it mixes along a padded dimension", lambda x: F.avg_pool2d(x[None], 2)),
    (
        "aten.index_put",
        "it writes to a padded dimension, or overwrites",
        lambda x: x.index_put((torch.tensor([0]),), x[:1]),
    ),
    (
        "aten.index_put",
        "it writes to a padded dimension, or overwrites",
        lambda x: torch.zeros(20, 16).index_put((torch.arange(x.shape[1]),), x[0]),
    ),
    (
        "aten.scatter",
        "it writes to a padded dimension",
        lambda x: torch.zeros(2, 20, 16).scatter(1, (x * 0).long(), x),
    ),
    ("aten.flip", "it turns a dimension of several sizes", lambda x: x.flatten(0, 1).flip(0)),
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


@pytest.mark.parametrize("name", RIGHT)
def test_results_are_those_without_padding(name: str) -> None:
    run, programs = recording(RIGHT[name], {"x.1": (8, 16)})
    with torch.no_grad():
        for length in (4, 8, 12, 5, 13):
            x = torch.rand(2, length, 16) - (0 if name == "element-wise" else 0.5)
            torch.testing.assert_close(run(x), RIGHT[name](x), rtol=1e-4, atol=1e-4)
    assert len(programs) == 2


def test_sizes_that_do_not_change_are_numbers() -> None:
    """With dynamic=True, each size of an input has a symbol. Here only the length has one."""
    run, programs = recording(RIGHT["reductions"], {"x.1": (8, 16)}, dynamic=None)
    for length in (5, 12, 6):
        x = torch.rand(2, length, 16)
        torch._dynamo.mark_dynamic(x, 1)
        with torch.no_grad():
            torch.testing.assert_close(run(x), RIGHT["reductions"](x), rtol=1e-4, atol=1e-4)
    assert len(programs) == 2


@pytest.mark.parametrize(("op", "reason", "function"), REFUSED)
def test_an_op_that_would_mix_in_padding_is_refused_by_name(op: str, reason: str, function: Any) -> None:
    run, _ = recording(function, {"x.1": (8, 16)})
    with pytest.raises(BackendCompilerFailed) as caught, torch.no_grad():
        run(torch.randn(2, 6, 16))
    error = caught.value.inner_exception
    assert isinstance(error, BucketError)
    assert error.op.startswith(op)
    assert reason in str(error)
    assert "test_buckets.py" in error.location


class LanguageModel(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = torch.nn.Embedding(50, 16), torch.nn.Embedding(128, 16)
        self.norm, self.mix, self.head = torch.nn.LayerNorm(16), torch.nn.Linear(16, 48), torch.nn.Linear(16, 50)

    def forward(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        query, key, value = (heads(part) for part in self.mix(self.norm(x)).chunk(3, -1))
        logits = self.head(x + joined(F.scaled_dot_product_attention(query, key, value)))
        return logits, logits[:, -1].argmax(-1)


def test_a_hundred_lengths_make_four_programs() -> None:
    model = LanguageModel().eval()
    run, programs = recording(model, {"ids.1": (16, 32, 64, 128)})
    with torch.no_grad():
        for length in range(3, 103):
            ids = torch.randint(0, 50, (2, length))
            torch.testing.assert_close(run(ids), model(ids), rtol=1e-4, atol=1e-4)
    assert len(programs) == 4


def test_a_transformers_model_with_a_mask() -> None:
    """Its inputs pass through `**kwargs`, but the buckets name them as the caller does."""
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 64}
    model = transformers.BertModel(transformers.BertConfig(vocab_size=50, **sizes)).eval()
    run, programs = recording(model, {"input_ids.1": (8, 16), "attention_mask.1": (8, 16)})
    with torch.no_grad():
        for length in (5, 7, 12):
            ids = torch.randint(0, 50, (2, length))
            given = {"input_ids": ids, "attention_mask": (torch.arange(length) < torch.tensor([[length], [3]])).long()}
            torch.testing.assert_close(run(**given)[0], model(**given)[0], rtol=1e-4, atol=1e-4)
    assert len(programs) == 2


def test_a_bucket_for_an_unknown_name_is_warned_of() -> None:
    run, _ = recording(lambda x: x * 2, {"y.0": (8,)})
    with pytest.warns(UserWarning, match=r"names y\.0, .* sizes that change in this graph are x\.0, x\.1"):
        run(torch.randn(3, 4))


def test_two_padded_dimensions() -> None:
    run, programs = recording(lambda x, y: (x @ y, x.sum(), y.mean(1)), {"x.0": [4], "y.1": [8]})
    for rows, columns in ((2, 3), (3, 7), (4, 8), (2, 8)):
        x, y = torch.randn(rows, 5), torch.randn(5, columns)
        torch.testing.assert_close(run(x, y), (x @ y, x.sum(), y.mean(1)), rtol=1e-4, atol=1e-4)
    assert len(programs) == 1


def gradients(run: Any, x: torch.Tensor) -> list[torch.Tensor]:
    x, seed = x.clone().requires_grad_(), torch.Generator().manual_seed(0)
    outputs = [y for y in tree_leaves(run(x)) if y.requires_grad]
    tangents = [torch.rand(y.shape, generator=seed) for y in outputs]
    return torch.autograd.grad(outputs, [x, LINEAR.weight], tangents, allow_unused=True)


@pytest.mark.parametrize("name", ["masks", "matrix products", "flattened", "positions", "picked"])
def test_gradients_are_those_without_padding(name: str) -> None:
    run, programs = recording(RIGHT[name], {"x.1": (8, 16)})
    for length in (4, 12, 5):
        x = torch.rand(2, length, 16) - 0.5
        torch.testing.assert_close(gradients(run, x), gradients(RIGHT[name], x), rtol=1e-4, atol=1e-4)
    assert len(programs) == 4  # two forward and two backward


def test_training_at_many_lengths() -> None:
    ours, theirs = (LanguageModel() for _ in range(2))
    theirs.load_state_dict(ours.state_dict())
    run, programs = recording(ours, {"ids.1": (16, 32)})
    for length in range(3, 32, 4):
        ids = torch.randint(0, 50, (2, length))
        for model in (run, theirs):
            F.cross_entropy(model(ids)[0].flatten(0, 1), ids.flatten()).backward()
    grads = [[p.grad for p in model.parameters()] for model in (ours, theirs)]
    torch.testing.assert_close(*grads, rtol=1e-4, atol=1e-4)
    assert len(programs) == 4


def test_padded_inputs_changed_in_place() -> None:
    run, _ = recording(lambda x: x.mul_(2).add_(1), {"x.0": (8,)})
    for length in (3, 8):
        x = torch.randn(length)
        expected = x * 2 + 1
        run(x)
        torch.testing.assert_close(x, expected)


def test_round_up() -> None:
    assert [round_up(n, (8, 16)) for n in (1, 8, 9, 16, 17, 33)] == [8, 8, 16, 16, 32, 48]
