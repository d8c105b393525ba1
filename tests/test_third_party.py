"""third_party/: versions.json and the licences agree with the code and the packages; CMake finds a build of tt-mlir."""

from __future__ import annotations

import json
import re
import subprocess
from importlib.metadata import distribution
from pathlib import Path

import pytest
import tomllib

from tt_torch.codegen import environment
from tt_torch.mlir.ttnn import legality
from tt_torch.wire import schema

ROOT = Path(__file__).parents[1]
THIRD_PARTY = ROOT / "third_party"
VERSIONS = json.loads((THIRD_PARTY / "versions.json").read_text())


def test_each_wire_table_is_of_a_known_version():
    known = {}
    for entry in [*VERSIONS["tt-mlir"], *VERSIONS["plugins"]]:
        plugin = "package" in entry
        commit, version = ("unknown", "0.0.0") if plugin else (entry["commit"], entry["version"] or "0.0.0")
        for kind, digest in entry["schemas"].items():
            known.setdefault(f"{kind}_{digest[:8]}", (digest, commit, version))
    tables = {path.stem: json.loads(path.read_text()) for path in (ROOT / "tt_torch/wire/schemas").iterdir()}
    for name, table in tables.items():
        assert known[name] == (table["schema_hash"], table["ttmlir_git_hash"], ".".join(map(str, table["version"])))
    written = {f"{kind}_{digest[:8]}" for entry in VERSIONS["tt-mlir"] for kind, digest in entry["schemas"].items()}
    assert written <= set(tables)
    assert VERSIONS["tt-mlir"][0]["schemas"] == {"ttnn": schema.DEFAULT, "system_desc": schema.SYSTEM_DESC}


def test_packages_have_the_same_version_everywhere():
    wanted = VERSIONS["packages"]
    assert {environment.VERSION, legality.VERSION} == {wanted["ttnn"]}
    files = [ROOT / "pyproject.toml", ROOT / "env/requirements.txt", ROOT / "README.md", *ROOT.glob("docs/*.md")]
    named = re.compile(r"(?<![\w-])([\w.-]+)==([\w.]+)")
    pins = {pin for file in files for pin in named.findall(file.read_text()) if pin[0] in wanted}
    assert pins == set(wanted.items())


def test_licences_are_those_of_the_packages():
    for package, file in (("pybind11", "pybind11.txt"), ("torch", "pytorch.txt")):
        (installed,) = (path for path in distribution(package).files if path.match("licenses/LICENSE"))
        assert (THIRD_PARTY / "licences" / file).read_text() == installed.read_text()


def test_wheels_pass_on_both_licences_of_openssl():
    """OpenSSL 1.1.1, which is in the image of the wheels, has two licences, and each asks for an acknowledgement."""
    pattern = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["license-files"][1]
    (text,) = (path.read_text() for path in ROOT.glob(pattern) if path.name.startswith("openssl"))
    for licence in ("OpenSSL License", "Original SSLeay License"):
        assert re.search(rf"^\s*{licence}\n\s*-+\n", text, re.M)
    for asked in ("software developed by the OpenSSL Project", "cryptographic software written by"):
        assert f'"This product includes {asked}' in text


def test_each_library_of_the_build_has_a_licence():
    """The names that CMake searches, and those that the licences' table has for them."""
    names = {
        "pybind11": "pybind11",
        "FLATBUFFERS_INCLUDE": "FlatBuffers",
        "JSON_INCLUDE": "JSON for Modern C++",
        "OpenSSL": "OpenSSL",
    }
    listing = subprocess.run(
        ["git", "ls-files", "*CMakeLists.txt"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    ours = [ROOT / file for file in listing.stdout.split() if not file.startswith("examples/")]
    searched = {
        name
        for file in ours
        for name in re.findall(r"^\s*find_(?:package|path|library)\((\w+)", file.read_text(), re.M)
    }
    assert searched == set(names)
    rows = re.findall(r"^\| \[([^]]+)\]", (THIRD_PARTY / "README.md").read_text(), re.M)
    assert {*names.values(), "PyTorch"} <= set(rows)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("--stablehlo-to-ttir-pipeline --ttir-to-ttnn-backend-pipeline", "FOUND ttir-to-ttnn-backend-pipeline"),
        (
            "--stablehlo-to-ttir-pipeline --ttir-to-ttnn-backend-pipeline --ttir-to-ttnn-runtime-pipeline",
            "FOUND ttir-to-ttnn-runtime-pipeline",
        ),
        ("--ttir-to-ttnn-runtime-pipeline", "was built without TTMLIR_ENABLE_STABLEHLO=ON"),
    ],
)
def test_cmake_finds_the_tools(tmp_path, text, found):
    for name in ("ttmlir-opt", "ttmlir-translate"):
        tool = tmp_path / "build" / "bin" / name
        tool.parent.mkdir(parents=True, exist_ok=True)
        tool.write_text(f"#!/bin/sh\necho '{text}'\n")
        tool.chmod(0o755)
    script = tmp_path / "find.cmake"
    script.write_text('find_package(TTMLIR REQUIRED)\nmessage("FOUND ${TTMLIR_PIPELINE} ${TTMLIR_OPT}")\n')
    command = ["cmake", f"-DCMAKE_MODULE_PATH={THIRD_PARTY}", f"-DTTMLIR_HOME={tmp_path}", "-P", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found in " ".join(done.stderr.split())
    assert (done.returncode == 0) == found.startswith("FOUND")
