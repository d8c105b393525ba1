"""`tt-torch doctor` finds what is broken, and names it together with its remedy."""

from __future__ import annotations

import json
import os
import shutil
from importlib import metadata
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tt_torch
from tests.terminal import shown
from tt_torch.records.lines import commit
from tt_torch.runtime import _runtime
from tt_torch.tools import doctor
from tt_torch.tools.cli import app


def states(findings) -> dict[str, str]:
    return {finding.what: finding.state for finding in findings}


def test_a_sound_installation() -> None:
    for check in (doctor.python, doctor.packages, doctor.libraries):
        assert set(states(check()).values()) == {"ok"}


def test_a_report_says_which_version_it_is_about() -> None:
    found = {finding.what: finding.found for finding in doctor.ourselves()}
    assert found["tt-torch"].startswith(tt_torch.__version__) and found["system"].startswith("Linux x86_64, glibc 2.")
    assert (commit() or tt_torch.__version__) in found["tt-torch"]


def test_another_version_and_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name == "rich":
            raise metadata.PackageNotFoundError
        return {"torch": "2.12.0+cpu"}.get(name, original(name))

    original = metadata.version
    monkeypatch.setattr(metadata, "version", version)
    found = {finding.what: finding for finding in doctor.packages()}
    assert {name for name, finding in found.items() if finding.state == "broken"} == {"torch", "rich"}
    assert "torch==2.13.0" in found["torch"].remedy


def test_a_library_that_lacks_one_it_is_linked_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runtime").mkdir()
    shutil.copy(_runtime.__file__, tmp_path / "runtime")
    monkeypatch.setattr(doctor, "_package_folders", lambda: [tmp_path])
    *absent, lacking = doctor.libraries()
    assert [(f.what, f.state) for f in absent] == [("libtt_runtime.so", "broken"), ("_encoder.so", "broken")]
    assert lacking.found == "lacks libtt_runtime.so" and lacking.state == "broken" and doctor.REBUILD in lacking.remedy


def test_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in os.environ if n.startswith("TT_TORCH_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("TT_TORCH_DTYPES", "bf16")
    monkeypatch.setenv("TT_TORCH_DTYPE", "fp16")
    unknown, refused = doctor.variables()
    assert unknown.what == "TT_TORCH_DTYPES" and unknown.state == "note" and "TT_TORCH_DTYPE" in unknown.found
    assert refused.state == "broken" and "TT_TORCH_DTYPE='fp16'" in refused.found


def test_a_trial_that_fails_is_the_exit_status(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = {"works": ("print('fine')", ""), "crashes": ("import os; os.abort()", "mend it")}
    monkeypatch.setattr(doctor, "TRIALS", programs)
    monkeypatch.setattr(doctor, "CHECKS", [doctor.trials])
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert result.stdout == "ok     works: fine\nbroken crashes: exit status -6\n       mend it\n"
    found = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)
    assert [finding["state"] for finding in found] == ["ok", "broken"]


@pytest.mark.slow
def test_the_whole_command() -> None:
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 0, result.stdout
    assert "compile and run: agrees with eager PyTorch" in result.stdout


def test_a_trial_that_takes_long_shows_a_line(monkeypatch):
    monkeypatch.setattr(doctor, "TRIALS", {"sleeping": ("import time; time.sleep(0.5); print('done')", "")})
    found = []
    text = shown(lambda: found.extend(doctor.trials()))
    assert "tt-torch doctor tries: sleeping" in text and [finding.found for finding in found] == ["done"]
