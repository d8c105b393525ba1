"""Package files: copies of models in the form of a package, damaged files, foreign files, and harmful files."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
import pickletools
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

import tt_torch
from tests.driver.damages import cut, flipped
from tests.driver.test_aot_calls import X, same
from tests.driver.test_packages import Tied
from tt_torch.driver.package import contents
from tt_torch.driver.package.contents import HASH, MANIFEST, hashed
from tt_torch.errors import (
    PackageError,
    TTTorchError,
)
from tt_torch.runtime import Device
from tt_torch.tools import package_inspection

# --- files


def test_a_file_that_is_replaced_while_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """safetensors opens the file twice."""
    path, models = tmp_path / "model.ttpkg", [nn.Linear(4, 2) for _ in range(2)]
    first, second = (tt_torch.compile_model(model, (X,)) for model in models)
    first.save(path)

    def replaced(*given: Any, **named: Any) -> Any:
        opened = safe_open(*given, **named)
        monkeypatch.undo()
        second.save(path)
        return opened

    monkeypatch.setattr(contents, "safe_open", replaced)
    loaded = tt_torch.load(path)
    first.save(path)
    same(loaded(X), models[1](X))


def test_a_full_disk_is_an_oserror_and_leaves_no_file(tmp_path: Path) -> None:
    program, limits = tt_torch.compile_model(nn.Linear(4, 2), (X,)), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))  # Python ignores the signal that comes with the error
    try:
        for name in ("model.ttpkg", "model.ttnn"):
            with pytest.raises(OSError, match="too large"):
                program.save(tmp_path / name)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not [*tmp_path.iterdir()]


# --- copies


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_share_nothing(package: Callable[..., Any], copied: Callable[[Any], Any]) -> None:
    model = nn.BatchNorm1d(4)
    for original in (package(model, X), tt_torch.compile_model(model, (X,))):
        original(X)
        first, eager = copied(original), copy.deepcopy(model)
        if type(original) is type(first):
            eager.load_state_dict(dict(original.weights), strict=False)
        original(X * 3)
        second = copied(first)
        torch.testing.assert_close(first(X + 1), eager(X + 1).detach())
        torch.testing.assert_close(first.weights["running_mean"], eager.running_mean)
        first.weights["weight"].zero_()
        torch.testing.assert_close(second(X + 1), first(X + 1) * 0 + eager(X + 1).detach())
        assert model.weight.all()


def test_a_pickle_has_nothing_but_a_package(package: Callable[..., Any]) -> None:
    data = pickle.dumps(package(nn.Linear(4, 2), X))
    names = [value for op, value, _ in pickletools.genops(data) if op.name in ("SHORT_BINUNICODE", "GLOBAL", "INST")]
    assert names == ["tt_torch.driver.package.loading", "unpickled"]
    with pytest.raises(PackageError, match="damaged"):
        pickle.loads(data.replace(b'"tokens', b'"tokers'))


def test_a_copy_runs_on_the_same_device(package: Callable[..., Any], tmp_path: Path) -> None:
    with Device() as device:
        tt_torch.compile_model(torch.relu, (X,), options={"devices": [device]}).save(tmp_path / "model.ttnn")
        package(torch.relu, X)
        for name in ("model.ttnn", "model.ttpkg"):
            loaded = tt_torch.load(tmp_path / name, device)
            copied, anew = copy.deepcopy(loaded), pickle.loads(pickle.dumps(loaded))
            assert copied._device is device is not anew._device
            same(copied(X), loaded(X))
            same(anew(X), loaded(X))


# --- files that are not what they should be


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("package") / "model.ttpkg"
    tt_torch.compile_model(Tied().eval(), (torch.tensor([[1, 4]]),)).save(path)
    return path


def test_each_damage_is_found(saved: Path, tmp_path: Path) -> None:
    data, path = saved.read_bytes(), tmp_path / "damaged.ttpkg"
    for damaged in flipped(data):
        path.write_bytes(damaged)
        with pytest.raises(TTTorchError):
            tt_torch.load(path)(torch.tensor([[1, 4]]))
        with pytest.raises(TTTorchError):
            package_inspection.as_json(path)
    for begun in cut(data):
        path.write_bytes(begun)
        with pytest.raises(PackageError):
            tt_torch.load(path)
    path.write_bytes(data + b"\0")
    with pytest.raises(PackageError):
        tt_torch.load(path)


def test_a_damaged_weight_is_found_when_it_is_first_read(saved: Path, tmp_path: Path) -> None:
    data, ids = bytearray(saved.read_bytes()), torch.tensor([[1, 4]])
    data[data.index(torch.arange(5.0).numpy().tobytes())] ^= 1  # of the weight `shift`
    (tmp_path / "damaged.ttpkg").write_bytes(data)
    loaded = tt_torch.load(tmp_path / "damaged.ttpkg")
    for _ in range(2):
        with pytest.raises(PackageError, match="weight/shift has changed"):
            loaded(ids)
    with pytest.raises(PackageError, match="weight/shift has changed"):
        loaded.weights["shift"]
    loaded.weights["shift"] = torch.arange(5.0)
    torch.testing.assert_close(loaded(ids), tt_torch.load(saved)(ids))


def changed(saved: Path, path: Path, change: Callable[[Any], object]) -> Path:
    """Writes a copy of the file with a changed manifest and its right hash. Returns the path of the copy."""
    with safe_open(saved, framework="pt") as file:
        tensors, metadata = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118
    data = json.loads(metadata[MANIFEST])
    change(data)
    text = json.dumps(data)
    save_file(tensors, path, {MANIFEST: text, HASH: hashlib.sha256(text.encode()).hexdigest()})
    return path


def test_one_element_has_a_hash_in_any_strides() -> None:
    assert hashed(torch.ones(1, dtype=torch.int64).as_strided((1,), (0,))) == hashed(torch.ones(1, dtype=torch.int64))
    assert hashed(torch.arange(6).reshape(2, 3).t()) == hashed(torch.tensor([[0, 3], [1, 4], [2, 5]]))


def test_foreign_and_newer_files(saved: Path, tmp_path: Path) -> None:
    path = tmp_path / "other.ttpkg"
    save_file({"weight": X}, path)
    with pytest.raises(PackageError, match="no manifest"):
        tt_torch.load(path)
    with pytest.raises(PackageError, match="format 7"):
        tt_torch.load(changed(saved, path, lambda data: data.update(format=7)))
    with pytest.raises(PackageError, match="malformed"):
        tt_torch.load(changed(saved, path, lambda data: data["manifest"].pop("places")))
    with pytest.raises(FileNotFoundError):
        tt_torch.load(tmp_path / "missing.ttpkg")


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, child in children for found in paths(child, (*path, key)))]


def test_no_malformed_manifest_does_more_than_raise(saved: Path, tmp_path: Path) -> None:
    """Each part of the manifest in turn becomes something else. The file runs, or is refused, or its call is an error.

    Because the hashes are right, such a file cannot come from an accident.
    """
    with safe_open(saved, framework="pt") as file:
        manifest = json.loads(file.metadata()[MANIFEST])["manifest"]
    ids, outcomes = torch.tensor([[1, 4]]), set()
    for number, path in enumerate(paths(manifest)[1:]):
        other = [None, -1, 10**30, "text", [], {}, [10**12] * 3][number % 7]

        def change(data: Any, path: tuple[Any, ...] = path, other: Any = other) -> None:
            part = data["manifest"]
            for key in path[:-1]:
                part = part[key]
            part[path[-1]] = other

        try:
            loaded = tt_torch.load(changed(saved, tmp_path / "changed.ttpkg", change))
        except TTTorchError:
            outcomes.add("refused")
            continue
        try:
            loaded(ids)
            outcomes.add("ran")
        except Exception:
            outcomes.add("raised")
    assert outcomes == {"ran", "refused", "raised"}


def test_a_file_chooses_no_class_that_is_called(saved: Path, tmp_path: Path) -> None:
    def change(data: Any) -> None:
        parts = [{"value": "touch called"}, {"value": True}]
        data["manifest"]["result"] = {
            "class": "subprocess.Popen", "family": "dataclass", "keys": ["args", "shell"], "parts": parts
        }  # fmt: skip

    found = tt_torch.load(changed(saved, tmp_path / "class.ttpkg", change))(torch.tensor([[1, 4]]))
    assert type(found) is not subprocess.Popen and found.args == "touch called"


@pytest.mark.parametrize(
    "kind",
    [
        {"class": "", "family": "tuple"},
        {"class": "mine.not a name", "family": "tuple"},
        {"class": "mine.Output", "family": "set"},
        {"container": "set"},
        {},
    ],
)
def test_a_result_of_an_unknown_kind_is_refused(kind: dict[str, str], saved: Path, tmp_path: Path) -> None:
    """The file is refused when it is loaded, and not only at a call: `tt-torch inspect` reads the tree, too."""

    def change(data: Any) -> None:
        data["manifest"]["result"] = kind | {"keys": ["a"], "parts": [{"value": 1}]}

    with pytest.raises(PackageError, match="malformed"):
        tt_torch.load(changed(saved, tmp_path / "kind.ttpkg", change))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("interface inputs 0", 99, "a program has an unknown input"),
        ("interface complex_inputs", [-1], "an unknown input is complex"),
        ("interface complex_outputs", [10**30], "an unknown result of a program is used"),
        ("interface places 0", 7, "an unknown result of a program is used"),
        ("interface places", [], "another number of tensors"),
        ("interface outputs 0", None, "another number of tensors"),
        ("interface outputs", [], "the graph has another number of results"),
        ("tokens", -1, "the graph has another number of results"),
        ("checks", [{"op": "other", "arguments": [], "options": {}}], "the check other is unknown"),
        ("checks", [{"op": "in_32_bits", "arguments": [1], "options": {}}], "an argument that is no text"),
        ("limits", {"0": {"name": "x", "interval": [[], 1], "cause": ""}}, "a limit is no number"),
        ("written", [99], "an unknown input is written"),
        ("views", {"9": {"input": 0, "shape": [], "strides": [], "offset": 0}}, "an unknown result is a view"),
        ("views", {"0": {"input": 9, "shape": [], "strides": [], "offset": 0}}, "a view of an unknown input"),
        ("places 0 argument", 99, "a result lies in an unknown input"),
        ("places 0 strides", [], "other strides than dimensions"),
        ("places 0 offset", -1, "other strides than dimensions"),
        ("result", {"container": "dict", "keys": [], "parts": [{"value": 1}]}, "another number of keys"),
        ("result", {"container": "dict", "keys": [[]], "parts": [{"value": 1}]}, "no number and no text"),
    ],
)
def test_parts_of_a_manifest_that_do_not_fit_each_other(
    path: str, value: Any, message: str, saved: Path, tmp_path: Path
) -> None:
    def change(data: Any) -> None:
        *folders, name = (int(key) if key.isdigit() else key for key in path.split())
        part = data["manifest"]
        for key in folders:
            part = part[key]
        part[name] = value

    with pytest.raises(PackageError, match=f"malformed manifest: ValueError: .*{message}"):
        tt_torch.load(changed(saved, tmp_path / "changed.ttpkg", change))


def test_a_result_of_another_shape_than_in_the_manifest(saved: Path, tmp_path: Path) -> None:
    def change(data: Any) -> None:
        place = next(place for place in data["manifest"]["places"] if place["argument"] is None)
        place["shape"], place["strides"] = [*place["shape"], 1], [*place["strides"], 1]

    model = tt_torch.load(changed(saved, tmp_path / "changed.ttpkg", change))
    with pytest.raises(PackageError, match="the package says that a result has the shape"):
        model.run({name: torch.zeros(form.shape, dtype=form.dtype) for name, form in model.tensor_forms.items()})
