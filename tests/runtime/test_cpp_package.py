"""The reader of packages for C++: it computes what Python computes, and refuses what it cannot run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutput

import tt_torch
from tests.driver.damages import cut, flipped
from tests.driver.test_aot_calls import Batch, Pair, X, nested
from tests.driver.test_package_files import changed, paths
from tests.driver.test_packages import ReturnsWeights, Tied
from tests.fuzz_files.packages import unpacked
from tt_torch.driver.containers import parts_of
from tt_torch.driver.package.contents import MANIFEST
from tt_torch.driver.package.manifest import BACKWARD_FLOW_FORMAT, FLOW_FORMAT, SPLIT_FORMAT
from tt_torch.errors import (
    ArgumentError,
    BinaryFormatError,
    InexactError,
    InputDtypeError,
    InputShapeError,
    PackageError,
    TTTorchError,
)
from tt_torch.runtime import Device, default_device
from tt_torch.runtime._runtime import Package
from tt_torch.runtime.buffers import TORCH_TYPES

IDS = torch.tensor([[1, 4]])


def load(path: Path, device: Device | None = None) -> Package:
    return Package(str(path), (device or default_device())._impl)


def run(package: Package, **inputs: Tensor) -> dict[str, Tensor]:
    """All results of the package by name."""
    results = {o.name: torch.full(o.shape, 77, dtype=TORCH_TYPES[o.dtype]) for o in package.outputs}
    package.run(inputs, results)
    return results


@pytest.fixture
def package(tmp_path: Path) -> Callable[..., Package]:
    """Compiles, saves, and loads in C++."""

    def made(model: Any, *args: Any, weights: bool = True, **kwargs: Any) -> Package:
        tt_torch.compile_model(model, args, kwargs=kwargs).save(tmp_path / "model.ttpkg", weights)
        return load(tmp_path / "model.ttpkg")

    return made


def same(found: dict[str, Tensor], **expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_weights_by_name_and_one_result(package: Callable[..., Package], tmp_path: Path) -> None:
    model, ids = Tied().eval(), torch.tensor([[3, 0]])
    loaded = package(model, IDS)
    assert [(t.name, t.shape, t.dtype.name) for t in loaded.inputs] == [("ids", [1, 2], "Int64")]
    assert [(t.name, t.shape, t.dtype.name) for t in loaded.outputs] == [("result", [1, 2, 5], "Float32")]
    for given in (IDS, ids, IDS.repeat(1, 2)[:, ::2][:, [0, 0]]):
        same(run(loaded, ids=given), result=tt_torch.load(tmp_path / "model.ttpkg")(given))


def test_parts_of_containers_have_names(package: Callable[..., Package]) -> None:
    loaded = package(nested, Batch(X), X + 1, y=[X * 2])
    assert [t.name for t in loaded.inputs] == ["batch.ids", "more[0]", "named['y'][0]"]
    found = run(loaded, **{"batch.ids": X + 5, "more[0]": X + 2, "named['y'][0]": X * 3})
    assert set(found) == {"result[0].ids", "result[1][0]", "result[2]['n'].first"}
    torch.testing.assert_close(found["result[0].ids"], (X + 5) * 2)
    torch.testing.assert_close(found["result[2]['n'].first"], X * 3 - 1)

    assert set(run(package(lambda x: BaseModelOutput(x * 2), X), x=X)) == {"result.last_hidden_state"}
    found = run(package(lambda x: {1: x * 2, None: (Pair(x + 1, 3), []), "x": x}, X), x=X)
    same(found, **{"result[1]": X * 2, "result[None][0].first": X + 1, "result['x']": X})
    keys = ("a'b", 'a"b', "a'b\"c\\\n", True, 1.5, "é")
    found = run(package(lambda x: dict.fromkeys(keys, x * 2), X), x=X)
    assert set(found) == {name for name, _ in parts_of(dict.fromkeys(keys), "result")} - {"result"}
    values, indices = torch.max(X, 0)
    same(run(package(lambda x: torch.max(x, 0), X), x=X), **{"result[0]": values, "result[1]": indices})


def test_weights_among_the_results(package: Callable[..., Package]) -> None:
    model = ReturnsWeights().requires_grad_(False)
    found = run(package(model, X), x=X)
    same(found, **{"result[0]": X * model.scale, "result[1]": model.scale, "result[2]['table']": model.table})


def test_what_the_model_changes(package: Callable[..., Package], tmp_path: Path) -> None:
    loaded, content = package(nn.BatchNorm1d(4, momentum=0.3), X), (tmp_path / "model.ttpkg").read_bytes()
    python = tt_torch.load(tmp_path / "model.ttpkg")
    for x in (X, X * 2 + 1):
        same(run(loaded, input=x), result=python(x))
    assert (tmp_path / "model.ttpkg").read_bytes() == content

    def function(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        both = x * 2
        return both, both[1:], both.diagonal(), y.add_(1)[0], y, x[:, 1], both.T, both.expand(2, 3, 4)

    loaded, x, y, own = package(function, X, X.clone()), X + 3, X * 5, X * 5
    found, expected = run(loaded, x=x, y=y), function(x, own)
    same(found, **{f"result[{i}]": value for i, value in enumerate(expected)})
    same({"y": y}, y=own)
    with pytest.raises(ArgumentError, match="the model writes to y, which shares memory with x; pass a copy"):
        run(loaded, x=y, y=y)
    with pytest.raises(ArgumentError, match="x has other strides"):
        run(loaded, x=X.T.contiguous().T, y=y)


def test_buffers_that_change_are_seen_at_the_next_call(package: Callable[..., Package]) -> None:
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("n", torch.zeros(4))

        def forward(self, x: Tensor) -> Tensor:
            self.n.add_(x[0])
            return x + self.n

    loaded, other = package(Counts(), X), package(Counts(), X)
    for count in (1, 2, 3):
        same(run(loaded, x=X), result=X + count * X[0])
    same(run(other, x=X), result=X + X[0])


def test_random_numbers_have_the_seed_of_pytorch(package: Callable[..., Package], tmp_path: Path) -> None:
    loaded = package(lambda x: x + torch.rand(4) + torch.nn.functional.dropout(x), X)
    python = tt_torch.load(tmp_path / "model.ttpkg")
    torch.manual_seed(3)
    expected = python(X)
    torch.manual_seed(3)
    same(run(loaded, x=X), result=expected)
    assert not torch.equal(run(loaded, x=X)["result"], expected)


def test_integers_that_would_not_be_exact_are_an_error(package: Callable[..., Package]) -> None:
    loaded = package(lambda count: count * 3, torch.ones(2, dtype=torch.int64))
    same(run(loaded, count=torch.tensor([5, -6])), result=torch.tensor([15, -18]))
    for value in (2**40, -(2**40), 2**63 - 1):
        with pytest.raises(InexactError, match="count has values in"):
            run(loaded, count=torch.tensor([value, 1]))
    loaded = package(lambda x: (x * 2).to(torch.int64), torch.ones(2))
    same(run(loaded, x=torch.tensor([1.0, 2.0])), result=torch.tensor([2, 4]))
    with pytest.raises(InexactError):
        run(loaded, x=torch.tensor([1e30, 1.0]))


def test_tensors_of_another_form_are_named(package: Callable[..., Package]) -> None:
    loaded, result = package(lambda x, y: x + y, X, X), torch.empty(3, 4)
    calls: list[tuple[type[Exception], str, dict[str, Tensor], dict[str, Tensor]]] = [
        (ArgumentError, "y is missing", {"x": X}, {}),
        (ArgumentError, "z is given", {"x": X, "y": X, "z": X}, {}),
        (ArgumentError, "no result other", {"x": X, "y": X}, {"other": result}),
        (InputShapeError, "y has the shape 4x3", {"x": X, "y": X.T}, {}),
        (InputDtypeError, "y has the type Int32", {"x": X, "y": X.int()}, {}),
        (InputShapeError, "result has the shape 3x4x1", {"x": X, "y": X}, {"result": result[..., None]}),
        (InputDtypeError, "result has the type Float64", {"x": X, "y": X}, {"result": result.double()}),
    ]
    for error, message, inputs, outputs in calls:
        with pytest.raises(error, match=message):
            loaded.run(inputs, outputs)
    strided = torch.zeros(4, 3).T
    loaded.run({"x": X.T.contiguous().T, "y": X}, {"result": strided})
    same({"result": strided}, result=X * 2)


class Complex(nn.Module):
    def forward(self, z: Tensor) -> Tensor:
        return z.real * 2


@pytest.mark.parametrize(
    ("model", "example", "weights", "message"),
    [
        (Complex(), torch.ones(2, dtype=torch.complex64), True, "needs Python: z has the type complex64"),
        (lambda x: ((y := x * 2), y.view(torch.int32)[0]), X, True, "reads the memory of another one in another type"),
        (torch.linalg.inv, torch.eye(3), True, "PyTorch checks its values on the host, by _linalg_check_errors"),
        (Tied().eval(), IDS, False, r"has no weights, such as embedding\.weight"),
    ],
)
def test_models_that_need_python(
    package: Callable[..., Package], model: Any, example: Tensor, weights: bool, message: str
) -> None:
    with pytest.raises(PackageError, match=message):
        package(model, example, weights=weights)


def test_a_family_of_programs_needs_python(tmp_path: Path) -> None:
    rows = {"x": {0: torch.export.Dim("rows", min=1, max=3)}}
    tt_torch.compile_model(lambda x: x * 2, (X,), dynamic_shapes=rows).save(tmp_path / "model.ttpkg")
    with pytest.raises(PackageError, match=r"needs Python: it has a family of programs"):
        load(tmp_path / "model.ttpkg")


def test_training_needs_python(tmp_path: Path) -> None:
    tt_torch.compile_model(nn.Linear(4, 2), (X,), training=True).save(tmp_path / "model.ttpkg")
    with pytest.raises(PackageError, match="needs Python: it is for training"):
        load(tmp_path / "model.ttpkg")


# --- files that are not what they should be


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("package") / "model.ttpkg"
    tt_torch.compile_model(Tied().eval(), (IDS,)).save(path)
    return path


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (FLOW_FORMAT, "the host decides"),
        (SPLIT_FORMAT, "its inputs or results are split"),
        (BACKWARD_FLOW_FORMAT, "the host decides between the programs of its backward pass"),
    ],
)
def test_flows_and_split_tensors_need_python(saved: Path, number: int, why: str, tmp_path: Path) -> None:
    path = changed(saved, tmp_path / "other.ttpkg", lambda document: document.update(format=number))
    with pytest.raises(PackageError, match=f"needs Python: {why}"):
        load(path)


def test_each_damage_is_found(saved: Path, tmp_path: Path) -> None:
    data, path = saved.read_bytes(), tmp_path / "damaged.ttpkg"
    for damaged in flipped(data):
        path.write_bytes(damaged)
        with pytest.raises(PackageError, match=str(path)):
            load(path)
    for begun in cut(data):
        path.write_bytes(begun)
        with pytest.raises(PackageError, match="is damaged"):
            load(path)
    path.write_bytes(data + b"\0")
    with pytest.raises(PackageError, match="do not end where the file does"):
        load(path)


def behind_the_last(manifest: Any) -> Any:
    """A view whose position is one after the last result."""
    return {str(len(manifest["places"])): {"input": 0, "shape": [2], "strides": [1], "offset": 0}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.update(format=7), "has the format 7, but this library reads 1; update it"),
        (lambda data: data["manifest"].pop("places"), "malformed manifest: places is missing"),
        (lambda data: data["manifest"].update(family={"n": 3}), "needs Python: its manifest has family"),
        (lambda data: data["manifest"].update(family=None), None),
        (lambda data: data["sha256"].update({"weight/shift": "0" * 64}), "is damaged: weight/shift has changed"),
        (lambda data: data["manifest"]["forms"]["ids"].update(device="tt:0"), "needs Python: ids is on tt:0"),
        (lambda data: data["manifest"]["weights"]["shift"].update(shape=[6]), "shift has another form"),
        (lambda data: data["manifest"].update(views=behind_the_last(data["manifest"])), "the position 1 is unknown"),
    ],
)
def test_foreign_and_newer_files(saved: Path, tmp_path: Path, change: Callable[[Any], object], message: str) -> None:
    path = changed(saved, tmp_path / "other.ttpkg", change)
    if message is None:
        assert run(load(path), ids=IDS)
        return
    with pytest.raises(PackageError, match=f"{path} .*{message}"):
        load(path)


def test_other_files(saved: Path, tmp_path: Path) -> None:
    header, tensors = unpacked(saved.read_bytes())
    del header["__metadata__"]
    text = json.dumps(header).encode()
    (tmp_path / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + tensors)
    with pytest.raises(PackageError, match="has no manifest"):
        load(tmp_path / "model.safetensors")
    with pytest.raises(PackageError, match="cannot be read: No such file"):
        load(tmp_path / "missing.ttpkg")
    with pytest.raises(PackageError, match="cannot be mapped"):
        load(tmp_path)
    for text, message in {
        b'{"a":' * 10**5: "nested too deep",
        b'{"' + b"long " * 10**5 + b'\xed"': "no package: the byte 500004 of its JSON is wrong$",
        b'{"a": 1': "no package: the byte 8 of its JSON is wrong$",
        b'{"a": 1e999}': "no package: its JSON has a number that is too large$",
    }.items():
        (tmp_path / "wrong.ttpkg").write_bytes(len(text).to_bytes(8, "little") + text)
        with pytest.raises(PackageError, match=message):
            load(tmp_path / "wrong.ttpkg")


def test_no_malformed_manifest_does_more_than_raise(saved: Path, tmp_path: Path) -> None:
    """Each part of the manifest in turn becomes something else, in a file whose hashes are right."""
    header, _ = unpacked(saved.read_bytes())
    manifest = json.loads(header["__metadata__"][MANIFEST])["manifest"]
    device, outcomes = Device(dram_bank_size=1 << 18, l1_bank_size=1 << 18), set()
    for number, path in enumerate(paths(manifest)[1:]):
        other = [None, -1, 10**30, "text", [], {}, [10**12] * 3][number % 7]

        def change(data: Any, path: tuple[Any, ...] = path, other: Any = other) -> None:
            part = data["manifest"]
            for key in path[:-1]:
                part = part[key]
            part[path[-1]] = other

        try:
            loaded = load(changed(saved, tmp_path / "changed.ttpkg", change), device)
        except PackageError:
            outcomes.add("refused")
            continue
        try:
            loaded.run({"ids": IDS}, {})
            outcomes.add("ran")
        except TTTorchError:
            outcomes.add("raised")
    assert {"ran", "refused"} <= outcomes


def test_a_damaged_program_with_the_right_hash(saved: Path, tmp_path: Path) -> None:
    header, tensors = unpacked(saved.read_bytes())
    begin, end = header["program/main"]["data_offsets"]
    tensors = tensors[:begin] + b"\0" * (end - begin) + tensors[end:]
    data = json.loads(header["__metadata__"][MANIFEST])
    data["sha256"]["program/main"] = hashlib.sha256(b"\0" * (end - begin)).hexdigest()
    text = json.dumps(data)
    header["__metadata__"] = {MANIFEST: text, "sha256": hashlib.sha256(text.encode()).hexdigest()}
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    (tmp_path / "program.ttpkg").write_bytes(len(head).to_bytes(8, "little") + head + tensors)
    with pytest.raises(BinaryFormatError):
        load(tmp_path / "program.ttpkg")


def resident(kind: str) -> int:
    """This process's memory in kibibytes: mapped files if `kind` is RssFile, anonymous memory if it is RssAnon."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(kind))
    return int(line.split()[1])


def test_weights_are_not_copied(tmp_path: Path) -> None:
    model, size = nn.Embedding(8192, 1024), 8192 * 1024 * 4 // 1024  # in kibibytes
    tt_torch.compile_model(model.eval(), (IDS,)).save(tmp_path / "model.ttpkg")
    own, mapped = resident("RssAnon"), resident("RssFile")
    loaded = load(tmp_path / "model.ttpkg", Device())
    assert resident("RssAnon") - own < size / 4 and resident("RssFile") - mapped > size * 0.9
    assert run(loaded, input=IDS)["result"].shape == (1, 2, 1024)
