"""Families: one model with a program for each of several sizes, which torch.export's `dynamic_shapes` describe."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.export import Dim

import tt_torch
from tests.driver.test_aot_calls import Batch, refuse, same
from tt_torch.driver.package.contents import HASH, MANIFEST
from tt_torch.driver.package.manifest import FAMILY_FORMAT, FORMAT
from tt_torch.errors import ArgumentError, CompileError, ConfigError, InputShapeError, PackageError, PackagingError
from tt_torch.tools import package_inspection

BATCH = Dim("batch", min=1, max=3)
X = torch.arange(8.0).reshape(2, 4)


def rows(count: int) -> Tensor:
    return torch.arange(count * 4.0).reshape(count, 4) - 5


def copies(family: Any, folder: Path) -> list[Any]:
    """The family itself, and its copies by a file, by a pickle and by `deepcopy`."""
    family.save(folder / "family.ttpkg")
    return [family, tt_torch.load(folder / "family.ttpkg"), pickle.loads(pickle.dumps(family)), copy.deepcopy(family)]


def test_the_size_chooses_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU()).eval()
    family = tt_torch.compile_model(model, (X,), dynamic_shapes={"input": {0: BATCH}})
    assert family.family.count == len(family.members) == 3
    monkeypatch.setattr("tt_torch.driver.backend.compile_graph", refuse)
    for each in copies(family, tmp_path):
        for count in (3, 1, 2):
            torch.testing.assert_close(each(rows(count)), model(rows(count)).detach())
        for count in (0, 4):
            message = f"input has the size {count} in dimension 0, but the model was compiled for batch in 1 .. 3"
            with pytest.raises(InputShapeError, match=message):
                each(rows(count))
        with pytest.raises(InputShapeError, match=r"input has the shape \(2, 5\), but the model was compiled"):
            each(torch.ones(2, 5))
        with pytest.raises(InputShapeError, match=r"input has the shape \(\)"):
            each(torch.ones(()))
        with pytest.raises(ArgumentError, match="input is missing"):
            each()


def test_relations_between_dimensions(tmp_path: Path) -> None:
    def function(x: Tensor, batch: Batch, *, rest: list[Tensor]) -> Tensor:
        return torch.cat([x, x]) + batch.ids * batch.scale, rest[0].sum(0)

    shapes = {"x": (BATCH, None), "batch": {"ids": {0: 2 * BATCH}}, "rest": [{1: 3 * BATCH - 1, 0: Dim.STATIC}, None]}
    args, kwargs = (X, Batch(rows(4))), {"rest": [torch.ones(2, 5), 7]}
    family = tt_torch.compile_model(function, args, kwargs=kwargs, dynamic_shapes=shapes)
    for each in copies(family, tmp_path):
        for n in (1, 3):
            given = (rows(n), Batch(rows(2 * n) + 1))
            rest = [torch.rand(2, 3 * n - 1), 7]
            same(each(*given, rest=rest), function(*given, rest=rest))
        message = (
            "batch.ids has the size 6 in dimension 0, but 2*batch is 4 there, because x has the size 2 in dimension 0"
        )
        with pytest.raises(InputShapeError, match=re.escape(message)):
            each(X, Batch(rows(6)), rest=[torch.ones(2, 5), 7])
        with pytest.raises(InputShapeError, match=re.escape("compiled for 2*batch with batch in 1 .. 3")):
            each(X, Batch(rows(5)), rest=[torch.ones(2, 5), 7])
        with pytest.raises(InputShapeError, match=re.escape("compiled for 3*batch - 1 with batch in 1 .. 3")):
            each(X, Batch(rows(4)), rest=[torch.ones(2, 4), 7])


def test_keys_are_told_from_each_other_whatever_is_in_them() -> None:
    keys = (1, "1", "a'b\"c]", "[1]")
    shapes = {"parts": {1: {0: BATCH}, "a'b\"c]": {0: BATCH}}}
    example = dict.fromkeys(keys, X)
    family = tt_torch.compile_model(lambda parts: [parts[key] + 1 for key in keys], (example,), dynamic_shapes=shapes)
    given = example | {1: X[:1], "a'b\"c]": X[:1]}
    torch.testing.assert_close(family(given), [given[key] + 1 for key in keys])


def test_an_export_with_sizes_that_change() -> None:
    model, x, batch = nn.Linear(8, 4).eval(), torch.randn(3, 8), Dim("batch", min=2, max=4)
    exported = torch.export.export(model, (x,), dynamic_shapes=({0: batch},))
    with pytest.warns(UserWarning, match=r"sizes of input that change, but .* dynamic_shapes makes a family"):
        alone = tt_torch.compile_model(exported)
    with pytest.raises(InputShapeError, match=r"was compiled for \(3, 8\)"):
        alone(x[:2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tt_torch.compile_model(exported, (x[:2],))  # the user has chosen the size
        family = tt_torch.compile_model(exported, dynamic_shapes={"input": {0: batch}})
        tt_torch.compile_model(torch.export.export(model, (x,)))
    for size in (2, 3, 4):
        value = torch.randn(size, 8)
        same(family(value), model(value))


def test_an_export_is_compiled_for_nothing_that_it_does_not_accept() -> None:
    class Scaled(nn.Module):
        def forward(self, x: Tensor, k: int) -> Tensor:
            return x.sin() * k

    dims = {"x": {0: Dim("rows", min=3, max=4)}, "k": None}
    limited = torch.export.export(Scaled(), (rows(4), 3), dynamic_shapes=dims)
    for needed, arguments, shapes in (
        ("x.size()[0] <= 4", (rows(4), 3), {"x": {0: Dim("rows", min=4, max=6)}, "k": None}),
        ("x.size()[0] >= 3", (rows(2), 3), None),
        ("x.size()[1] == 4", (rows(4)[:, :2], 3), None),
        ("k == 3", (rows(4), 4), None),
    ):
        with pytest.raises(CompileError, match=re.escape(f"because it needs {needed}")):
            tt_torch.compile_model(limited, arguments, dynamic_shapes=shapes)
    for message, arguments in (("k is missing", (rows(4),)), (r"x\[0\] is given", ([rows(4)], 3))):
        with pytest.raises(ArgumentError, match=message):
            tt_torch.compile_model(limited, arguments)


def test_two_names_and_chosen_sizes(tmp_path: Path) -> None:
    """Every combination has a program of its own: a wrong program would give another maximum."""
    dims = {0: Dim("rows", max=2), 1: Dim("columns", min=2)}
    family = tt_torch.compile_model(
        lambda x: (x.flatten().max(0), x.T * 2), (X,), dynamic_shapes=({**dims},), sizes={"columns": (5, 4, 2)}
    )
    assert list(family.family.members())[:2] == [{"rows": 1, "columns": 2}, {"rows": 1, "columns": 4}]
    for each in copies(family, tmp_path):
        for shape in ((1, 4), (2, 2), (2, 5)):
            x = torch.rand(shape)
            torch.testing.assert_close(each(x)[1], x.T * 2)
            torch.testing.assert_close(each(x)[0].indices, x.flatten().max(0).indices)
        with pytest.raises(InputShapeError, match="columns in 2, 4, 5"):
            each(torch.rand(2, 3))


def test_members_share_weights_and_buffers(tmp_path: Path) -> None:
    model, eager = nn.BatchNorm1d(4), nn.BatchNorm1d(4)
    family = tt_torch.compile_model(model, (X,), dynamic_shapes={"input": {0: Dim("batch", min=2, max=3)}})
    family.save(tmp_path / "family.ttpkg")
    loaded = tt_torch.load(tmp_path / "family.ttpkg")
    for count in (2, 3, 2):
        expected = eager(rows(count)).detach()
        torch.testing.assert_close(family(rows(count)), expected)
        torch.testing.assert_close(loaded(rows(count)), expected)
    torch.testing.assert_close(loaded.weights["running_mean"], eager.running_mean)
    assert loaded.weights["num_batches_tracked"] == model.num_batches_tracked == 3
    with safe_open(tmp_path / "family.ttpkg", framework="pt") as file:
        names = sorted(file.keys())
    assert [n for n in names if n.startswith("weight/")] == [f"weight/{name}" for name in sorted(model.state_dict())]
    state = {name: torch.full_like(x, 2) for name, x in model.state_dict().items()}
    loaded.load_state_dict(state)
    eager.load_state_dict(state)
    for count in (2, 3):
        torch.testing.assert_close(loaded(rows(count)), eager(rows(count)).detach())


def test_examples_keep_their_layout_and_fake_ones_work() -> None:
    """The members are compiled for the order of the example's dimensions in memory. Views need this order."""
    x = torch.empty_strided((2, 4), (1, 2), device="meta")
    family = tt_torch.compile_model(lambda x: (x, x.T, x + 1), (x,), dynamic_shapes=({0: BATCH},))
    given = rows(3).T.contiguous().T
    found = family(given)
    assert found[0] is given and found[1].data_ptr() == given.data_ptr() and found[1].is_contiguous()


def test_inspect_shows_the_family(tmp_path: Path) -> None:
    family = tt_torch.compile_model(torch.neg, (X,), dynamic_shapes={"args": [{0: BATCH}]})
    family.save(tmp_path / "family.ttpkg")
    text = "\n".join(package_inspection.text(tmp_path / "family.ttpkg"))
    assert "a family of 3 programs" in text and "dimension 0 of args[0]: batch in 1 .. 3" in text
    assert all(f"program main, batch = {size}" in text for size in (1, 2, 3))
    data = package_inspection.as_json(tmp_path / "family.ttpkg")
    assert data["family"]["sizes"] == {"batch": [1, 2, 3]} and len(data["manifests"]) == 3


REFUSED: list[tuple[Any, Any, str]] = [
    ({"y": {0: BATCH}}, None, "dynamic_shapes of the model='y' is not accepted; it takes x"),
    ({"x": {0: Dim.AUTO}}, None, r"x\[0\]=DimHint\(AUTO\) .* a Dim with a name and a range"),
    ({"x": {0: Dim.DYNAMIC(max=4)}}, None, "DYNAMIC.* a Dim with a name"),
    ({"x": {0: 3}}, None, r"x\[0\]=3 .* or the size 2"),
    ({"x": {2: BATCH}}, None, r"dynamic_shapes of x=2 .* the dimensions 0 \.\. 1"),
    ({"x": (BATCH,)}, None, "None, a dict of dimensions, or 2 dimensions"),
    ({"x": 5}, None, "None, a dict of dimensions"),
    (5, None, "the same structure as the arguments"),
    ({"x": None}, None, "at least one torch.export.Dim"),
    ({"x": {0: BATCH, 1: Dim("batch", max=9)}}, None, "one range for each name"),
    ({"x": {0: Dim("batch", min=3)}}, None, "x has the size 2 in dimension 0"),
    ({"x": {0: BATCH, 1: BATCH}}, None, "x has the size 4 in dimension 1"),
    (
        {"x": {0: Dim("n", max=100)}},
        None,
        r"100 programs' .* at most 32 .*narrow the range of Dim\('n'.*sizes=",
    ),
    ({"x": {0: Dim("n"), 1: Dim("m", max=4)}}, None, r"unlimited \* 4 programs"),
    ({"x": {0: BATCH}}, {"bach": (1,)}, "sizes='bach' .* did you mean 'batch'"),
    ({"x": {0: BATCH}}, {"batch": (1, 4)}, r"a list of sizes of batch in its range, 1 \.\. 3"),
    ({"x": {0: BATCH}}, {"batch": (2.0,)}, "a list of sizes of batch"),
    ({"x": {0: BATCH}}, {"batch": 2}, "a list of sizes of batch"),
    ({"x": {0: BATCH}}, {"batch": ()}, "a list of sizes of batch"),
    (None, {"batch": (1,)}, "None without dynamic_shapes"),
]


@pytest.mark.parametrize(("shapes", "sizes", "message"), REFUSED)
def test_what_is_refused(shapes: Any, sizes: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        tt_torch.compile_model(lambda x: x + 1, (X,), dynamic_shapes=shapes, sizes=sizes)


def test_a_failing_member_is_named_and_a_binary_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="same reduction dim") as failure:
        tt_torch.compile_model(lambda x, y: x @ y, (X, X.T), dynamic_shapes={"x": {1: Dim("k", max=4)}})
    assert failure.value.__notes__[-1] == "in the program for k = 1"
    family = tt_torch.compile_model(torch.neg, (X,), dynamic_shapes=([{0: BATCH}],), sizes={"batch": [2]})
    with pytest.raises(PackagingError, match=r"does not end in \.ttpkg"):
        family.save(tmp_path / "family.ttnn")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("family") / "family.ttpkg"
    tt_torch.compile_model(nn.Linear(4, 2).eval(), (X,), dynamic_shapes=({0: BATCH},)).save(path)
    return path


CHANGES: list[tuple[Callable[[Any], object], str]] = [
    (lambda data: data.update(format=7), "format 7"),
    (lambda data: data.update(format=FORMAT), "another format"),
    (lambda data: data["family"]["sizes"].update(batch=[1, 2]), "another number of programs"),
    (lambda data: data["family"]["sizes"].update(batch=[3, 2, 1]), "not ascending"),
    (lambda data: data["family"]["dimensions"][0].update(dimension=7), "an unknown dimension"),
    (lambda data: data["family"]["dimensions"][0].update(argument="y"), "an unknown dimension"),
    (lambda data: data["family"]["dimensions"][0].update(factor=0), "an unknown size"),
    (lambda data: data["family"].pop("dimensions"), "malformed"),
    (lambda data: data["manifests"][1].update(signature=[]), "different parameters"),
    (lambda data: data["manifests"][1]["weights"]["bias"].update(shape=[3]), "different forms of bias"),
    (lambda data: data["manifests"][1]["programs"].update(other=data["manifests"][1]["programs"]["main"]), "programs"),
]


@pytest.mark.parametrize(("change", "message"), CHANGES)
def test_malformed_families_are_refused(
    saved: Path, tmp_path: Path, change: Callable[[Any], object], message: str
) -> None:
    with safe_open(saved, framework="pt") as file:
        tensors, metadata = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118
    data = json.loads(metadata[MANIFEST])
    assert data["format"] == FAMILY_FORMAT
    change(data)
    text = json.dumps(data)
    save_file(tensors, tmp_path / "new.ttpkg", {MANIFEST: text, HASH: hashlib.sha256(text.encode()).hexdigest()})
    with pytest.raises(PackageError, match=message):
        tt_torch.load(tmp_path / "new.ttpkg")


def test_repr_counts_the_programs(tmp_path: Path) -> None:
    family = tt_torch.compile_model(nn.Identity().eval(), (X,), dynamic_shapes={"input": {0: BATCH}})
    for each in copies(family, tmp_path):
        assert repr(each) == f"{type(each).__name__}(input: float32 [1, 4]; 3 programs)"
