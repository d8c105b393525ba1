"""Commands without the packages of extras: each says in one line what to install."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest
import tomllib
from typer.testing import CliRunner

from tt_torch import extras
from tt_torch.errors import ExtraMissingError
from tt_torch.tools.cli import app

ROOT = Path(__file__).parents[1]
BINARY = str(ROOT / "tests" / "data" / "wire" / "linear_relu.ttnn")
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
MODELS = "from tt_torch.sweep.registry import Model\nMODELS = [Model('model', dict)]\n"


@pytest.fixture(autouse=True)
def this_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives the tests the metadata of pyproject.toml. An editable install may have metadata of an earlier version."""
    lines = [f'{line}; extra == "{name}"' for name, packages in EXTRAS.items() for line in packages]
    monkeypatch.setattr(metadata, "requires", lambda name: {"tt-torch": ["torch==2.13.0", *lines]}[name])


def hide(monkeypatch: pytest.MonkeyPatch, extra: str) -> None:
    """Makes the packages of an extra look as if they were not installed, and their modules impossible to import."""
    hidden, real = set(extras.packages(extra)), metadata.distribution

    def distribution(name: str) -> metadata.Distribution:
        if name in hidden:
            raise metadata.PackageNotFoundError(name)
        return real(name)

    for module, names in metadata.packages_distributions().items():
        if hidden & {name.lower().replace("_", "-") for name in names}:
            monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(metadata, "distribution", distribution)


COMMANDS = {
    "report import {file}": "reports",
    "report xlsx -o out.xlsx": "reports",
    "report html -o out.html": "reports",
    "report pages -o out": "reports",
    "report compare a b": "reports",
    "sweep ops": "sweeps",
    "sweep models": "sweeps",
    "sweep {models} --db out.duckdb": "reports",
    "sweep {models} --ray auto": "ray",
    f"explore {BINARY}": "explore",
    "compare-profiles . . -o out.html": "profile",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_says_what_to_install(command, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    file, models = tmp_path / "r.jsonl", tmp_path / "models.py"
    file.write_text("")
    models.write_text(
        "import torch\nfrom tt_torch.sweep.registry import Model\nMODELS = [Model('m', 'g', 's', dict)]\n"
    )
    hide(monkeypatch, COMMANDS[command])
    result = CliRunner().invoke(app, [word.format(file=file, models=models) for word in command.split()])
    missing = ", ".join(extras.packages(COMMANDS[command]))
    verb = "are" if "," in missing else "is"
    line = f"error: {missing} {verb} not installed; run: pip install 'tt-torch[{COMMANDS[command]}]'\n"
    assert (result.exit_code, result.stderr) == (1, line)


def test_onnx_models_say_what_to_install(monkeypatch):
    from tt_torch.mlir.onnx import onnx_package
    from tt_torch.onnx_compile import prepare_inference_session

    hide(monkeypatch, "onnx")
    for call in onnx_package, lambda: prepare_inference_session(None):
        with pytest.raises(ExtraMissingError, match=r"^onnx, onnxruntime are not .*'tt-torch\[onnx\]'$"):
            call()


def test_the_page_of_the_installation_names_all_extras():
    page = (ROOT / "docs" / "install.md").read_text()
    assert [extra for extra in EXTRAS if f"`{extra}`" not in page] == []


def test_the_extras_of_the_package():
    for extra, lines in EXTRAS.items():
        assert extras.packages(extra) == [line.partition("==")[0].partition("[")[0] for line in lines]
        extras.require(extra)  # this environment has all of them
