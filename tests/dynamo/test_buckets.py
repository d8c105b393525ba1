"""Sizes are padded up to buckets: there are few programs, and the results equal the results without padding.

An op for which this is impossible is refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from bucket_table import RIGHT, heads, joined
from torch import nn
from torch._dynamo.exc import BackendCompilerFailed
from torch.utils._pytree import tree_leaves

from tt_torch.config import BackendOptions, CompilerConfig
from tt_torch.driver.backend import compile_captured
from tt_torch.driver.executor import Executor
from tt_torch.driver.observer import Observer
from tt_torch.dynamo.buckets import round_up
from tt_torch.errors import BucketError


def recording(
    function: Any, buckets: dict[str, Sequence[int]], dynamic: bool | None = True
) -> tuple[Any, list[Executor]]:
    """Returns the compiled function, and the list of programs, which grows as they are made."""
    programs: list[Executor] = []
    options = BackendOptions(compiler_config=CompilerConfig(buckets=buckets, fallback="error"))

    def backend(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
        return compile_captured(gm, inputs, options, Observer(programs.append, flag=False))

    return torch.compile(function, backend=backend, dynamic=dynamic), programs


@pytest.mark.parametrize("name", ["attention", "flattened", "looked up in it", "picked"])
def test_results_are_those_without_padding(name: str) -> None:
    run, programs = recording(RIGHT[name], {"x.1": (8, 16)})
    with torch.no_grad():
        for length in (4, 8, 12, 5, 13):
            x = torch.rand(2, length, 16) - 0.5
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


def test_a_refused_op_is_named_with_its_line() -> None:
    run, _ = recording(lambda x: torch.cat([x, x], 1), {"x.1": (8, 16)})
    with pytest.raises(BackendCompilerFailed) as caught, torch.no_grad():
        run(torch.randn(2, 6, 16))
    error = caught.value.inner_exception
    assert isinstance(error, BucketError)
    assert error.op.startswith("aten.cat") and "it joins padded dimensions" in str(error)
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


@pytest.mark.parametrize(
    "function, wrong, right",
    [(lambda x: x * 2, "y.0", "x.0, x.1"), (nn.Sequential(nn.ReLU()), "x.0", "args[0].0, args[0].1")],
)
def test_a_bucket_for_an_unknown_name_is_warned_of(function: Any, wrong: str, right: str) -> None:
    run, _ = recording(function, {wrong: (8,)})
    text = f"names {wrong}, which do not change; the sizes that change in this graph are {right}"
    with pytest.warns(UserWarning, match=re.escape(text)):
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
    return list(torch.autograd.grad(outputs, [x], tangents))


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
