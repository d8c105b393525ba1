"""compile_model and packages of models that replace parts of Python objects, which they also read."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import tt_torch
from tt_torch.errors import PackagingError


class Parts(nn.Module):
    """Buffers, a tensor, and Python values. The bodies of `forward` replace some of them."""

    of_the_class = 0

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("k", torch.zeros(2, 4))
        self.register_buffer("v", torch.ones(2, 4))
        self.pair = (torch.zeros(2, 4), torch.ones(2, 4))
        self.hidden: Tensor | None = None
        self.count, self.table, self.list = 0, dict[str, Tensor](), [0]


def model(body: str) -> Parts:
    """A module with these lines, separated by semicolons, as its `forward` of x."""
    space: dict = {}
    exec("def forward(self, x):\n" + "".join(f"    {line.strip()}\n" for line in body.split(";")), space)
    return type("Model", (Parts,), space)().eval()


def values(run: object) -> list[Tensor]:
    with torch.no_grad():
        return [run(torch.full((2, 4), i + 1.0)) for i in range(4)]  # type: ignore[operator]


# Each body reads and replaces the part, which is a tensor.
TENSORS = {
    "self.k = self.k + x; return self.k": "model.k",
    "self.k = (self.k + x).clone(); return self.k * 2": "model.k",
    "self.k, self.v = self.v, self.k; return self.k + x": "model.v",
    "y = self.k + x; self.k = x; return y": "model.k",
    "self.pair = (self.pair[0] + x, self.pair[1]); return self.pair[0] * self.pair[1]": "model.pair[0]",
}


@pytest.mark.parametrize("body", TENSORS)
def test_a_package_cannot_replace_a_tensor_that_it_reads(body: str, tmp_path: Path) -> None:
    made, reference = model(body), model(body)
    compiled = tt_torch.compile_model(made, (torch.ones(2, 4),))
    with pytest.raises(PackagingError, match="keeps tensors in Python objects") as refused:
        compiled.save(tmp_path / "model.ttpkg")
    if body.endswith(("return self.k", "self.pair[1]", "+ x", "return y")):
        assert str(refused.value).endswith(f"a package lacks: {TENSORS[body]}")
    torch.testing.assert_close(values(compiled), values(reference))


@pytest.mark.parametrize(
    "body",
    [
        "self.k += x; return self.k * 2",
        "self.k = self.k.add_(x); return self.k.clone()",
        "self.k = self.k; return self.k + x",
        "self.k.add_(x); self.count = 7; self.hidden = None; return self.k + 1",
        "self.list = [0]; return x + self.list[0] + self.k",
    ],
)
def test_parts_that_keep_their_value_or_are_not_read(body: str, tmp_path: Path) -> None:
    made, reference = model(body), model(body)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled = tt_torch.compile_model(made, (torch.ones(2, 4),))
    compiled.save(tmp_path / "model.ttpkg")
    loaded = tt_torch.load(tmp_path / "model.ttpkg")
    expected = values(copy.deepcopy(reference))
    torch.testing.assert_close(values(loaded), expected)
    torch.testing.assert_close(values(compiled), expected)


def counting(x: Tensor) -> Tensor:
    global calls
    calls += 1
    return x * calls


calls = 0


def test_a_global_value_that_a_call_changes_is_told() -> None:
    with pytest.warns(UserWarning, match="the model reads and changes calls, and each call"):
        tt_torch.compile_model(counting, (torch.ones(2, 4),))


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("self.count += 1; return x * self.count", "count"),
        ("self.of_the_class += 1; return x * self.of_the_class", "of_the_class"),
        ("self.hidden = x * 2 if self.hidden is None else self.hidden + x; return self.hidden", "hidden"),
        ("y = self.table.get('a', self.k) + x; self.table['a'] = y; return y", "table"),
        ("self.list.append(1); return x * len(self.list)", "list"),
        ("self.list[0] += 1; return x * self.list[0]", r"list\[0\]"),
    ],
)
def test_a_python_value_that_a_call_changes_is_told(body: str, name: str) -> None:
    with pytest.warns(UserWarning, match=rf"the model reads and changes model\.{name}, and each call .* from now"):
        tt_torch.compile_model(model(body), (torch.ones(2, 4),))
