"""A profile answers questions about modules, lines, memory, other data types and differences. A browser shows it."""

from __future__ import annotations

import json
import re
import statistics
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn
from typer.testing import CliRunner

from tests.browser import Browser
from tt_torch import extras
from tt_torch.config import CompilerConfig
from tt_torch.driver.backend import backend
from tt_torch.errors import ProfileFormatError
from tt_torch.profiling import comparison_page, groups, html, page, recorder, text, what_if
from tt_torch.profiling.groups import Spread
from tt_torch.profiling.model import JSON_NAME, Profile, of_session, read_json, write_json
from tt_torch.profiling.session import Session
from tt_torch.profiling.words import quartiles
from tt_torch.tools.cli import app

HOSTILE = "</script><img src=x onerror=alert(1)>\"'<b>"


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wide, self.act, self.narrow = nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)
        self.norm = nn.LayerNorm(64)

    def forward(self, x):
        y = self.narrow(self.act(self.wide(x)))
        return self.norm(x + y)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(Block(), Block())

    def forward(self, x):
        return torch.softmax(self.blocks(x), -1)


def recorded(folder: Path, monkeypatch: pytest.MonkeyPatch, calls: int = 3, **options: object) -> Profile:
    session = Session(folder, "Wormhole_b0")
    monkeypatch.setattr(recorder, "_session", session)
    torch._dynamo.reset()
    config = CompilerConfig(profile=str(folder), **options)
    compiled = torch.compile(Model().eval(), backend=backend, options=config)
    with torch.no_grad():
        for _ in range(calls):
            compiled(torch.randn(32, 64))
    return of_session(session)


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    with pytest.MonkeyPatch.context() as patch:
        return recorded(tmp_path_factory.mktemp("profile"), patch)


def test_modules_and_lines(profile: Profile) -> None:
    """Ops of composites and fused ops have a module, too. A linear op with a fused GELU belongs to the linear layer."""
    modules = {(op.module, op.module_class, op.op) for op in profile.repeated}
    for i in (0, 1):
        assert {(f"blocks.{i}.wide", "Linear", "LinearOp"), (f"blocks.{i}.norm", "LayerNorm", "LayerNormOp")} <= modules
    assert not any(name.endswith(".act") for name, _, _ in modules)
    (softmax,) = (op for op in profile.repeated if op.op == "SoftmaxOp")
    assert softmax.module == "" and groups.module_of(softmax) == groups.MODEL
    assert softmax.code == "return torch.softmax(self.blocks(x), -1)"
    code = Path(__file__).read_text().splitlines()
    for op in profile.repeated:
        assert groups.line_of(op) == f"{groups.short_path(__file__)}:{op.line}" and code[op.line - 1].strip() == op.code


def test_sums_are_those_of_the_calls(profile: Profile) -> None:
    (graph,) = profile.graphs
    assert [len(op.host) for op in profile.repeated] == [3] * len(profile.repeated) and len(graph.calls) == 3
    for number, call in enumerate(graph.calls):
        assert 0 < sum(op.host[number] for op in profile.repeated) <= call
    for key in groups.KEYS.values():
        assert sum(g.host.median for g in groups.grouped(profile, key)) == sum(
            round(statistics.median(op.host)) for op in profile.repeated
        )
    everything, *_ = groups.with_parts(profile)
    assert everything.ops == len(profile.repeated) and everything.name == groups.MODEL
    assert groups.spread([4, 1, 3, 2]) == groups.Spread(2, 2, 3) and groups.spread([7]) == groups.Spread(7, 7, 7)


def test_memory_without_weights(profile: Profile) -> None:
    (graph,) = profile.graphs
    assert graph.weights["DRAM"] >= 2 * 2 * 64 * 256 * 4
    first = profile.repeated[0]
    assert first.before["DRAM"] == 32 * 64 * 4  # the input
    assert max(op.after["DRAM"] for op in profile.repeated) == sum(held.bytes for held in graph.largest)
    for before, after in zip(profile.repeated, profile.repeated[1:], strict=False):
        assert after.before["DRAM"] <= before.after["DRAM"] and after.after["DRAM"] > after.before["DRAM"]


@pytest.mark.parametrize(
    ("numbers", "options"),
    [
        (what_if.BF16, {"dtype": "bf16"}),
        (what_if.BFP8, {"weight_dtype": "bfp8_b"}),
        (f"{what_if.BF16}, {what_if.BFP8}", {"dtype": "bf16", "weight_dtype": "bfp8_b"}),
    ],
)
def test_what_if_agrees_with_compiling_so(
    profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, numbers: str, options: dict
) -> None:
    """Compiled with these options, the same ops have the modelled times that were predicted. The conversions of inputs
    and results are not predicted."""
    border = ("TypecastOp", "ToLayoutOp")
    so = [op for op in recorded(tmp_path, monkeypatch, 1, **options).repeated if op.op not in border]
    ops = [op for op in profile.repeated if op.op not in border]
    assert len(ops) == 9 and [op.op for op in so] == [op.op for op in ops]
    for op, changed in zip(ops, so, strict=True):
        assert profile.time(op, "Wormhole_b0", numbers) == pytest.approx(profile.time(changed))
    assert profile.time(ops[0], "Blackhole") != profile.time(ops[0])


def hostile(profile: Profile) -> Profile:
    """The profile, as if the names, files and lines of its program were markup."""
    names = {"op": HOSTILE, "module": f"a.{HOSTILE}", "module_class": HOSTILE, "file": HOSTILE, "code": HOSTILE}
    return replace(profile, ops=[replace(op, nodes=[HOSTILE], **names) for op in profile.ops])


def test_the_page_in_a_browser(profile: Profile, tmp_path: Path) -> None:
    """Hostile names are text. The page loads nothing, fits a narrow screen, and its tables sort."""
    shown = hostile(profile)
    html.write_page(tmp_path / "page.html", lambda: page.page(shown))
    html.write_page(tmp_path / "difference.html", lambda: comparison_page.page(profile, shown))
    with Browser(tmp_path / "chromium") as browser:
        for name, pictures in (("difference.html", 4), ("page.html", 6)):
            browser.open((tmp_path / name).as_uri())
            browser.resize(400, 800)
            browser.wait("document.body.dataset.drawn === 'yes'")
            assert (
                browser.run("document.querySelectorAll('.plot .main-svg').length >= 1 && document.images.length") == 0
            )
            assert browser.run("document.querySelectorAll('.plot.js-plotly-plot').length") == pictures
            assert browser.run("performance.getEntriesByType('resource').length") == 0
            assert browser.run("document.documentElement.scrollWidth") == 400
            assert HOSTILE in browser.run("document.body.textContent")
        assert HOSTILE in browser.run("[...document.querySelectorAll('.plot text')].map(t => t.textContent).join()")
        table = "[...document.querySelectorAll('table')].at(-1)"
        column = f"[...{table}.tBodies[0].rows].map(row => Number(row.cells[6].dataset.value))"
        for reverse in (True, False):
            browser.run(f"{table}.tHead.rows[0].cells[6].firstChild.click()")
            values = browser.run(column)
            assert values == sorted(values, reverse=reverse) and len(set(values)) > 2


def test_a_page_needs_plotly(
    profile: Profile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """Without Plotly, an older page is removed, because it would not fit the new files."""
    monkeypatch.setattr(extras, "packages", lambda extra: ["no-such-package"])
    (tmp_path / "profile.html").write_text("old")
    html.write_page(tmp_path / "profile.html", lambda: page.page(profile))
    said = capsys.readouterr().err
    assert not (tmp_path / "profile.html").exists() and said.count("\n") == 1 and "tt-torch[profile]" in said


def test_json_and_comparison(profile: Profile, tmp_path: Path) -> None:
    slower = replace(
        profile, ops=[replace(op, host=[9 * t for t in op.host] if op.module else op.host) for op in profile.ops]
    )
    for name, one in (("old", profile), ("new", slower)):
        (tmp_path / name).mkdir()
        write_json(one, tmp_path / name)
        assert read_json(tmp_path / name) == one
    command = ["compare-profiles", str(tmp_path / "old"), str(tmp_path / "new"), "--json"]
    found = json.loads(CliRunner().invoke(app, command).stdout)
    same = next(change for change in found["by"]["module"] if change["name"] == groups.MODEL)
    assert same["old"]["host"] == same["new"]["host"] and not same["clear"]
    first, *_ = found["by"]["kind of op"]
    assert first["new"]["host"]["median"] > first["old"]["host"]["median"]
    assert found["total"]["old"]["modelled"] == found["total"]["new"]["modelled"]
    assert CliRunner().invoke(app, command[:-1]).output.count("matrix product") == 1


def test_tables_fit_into_a_terminal_of_80_columns(profile: Profile, capsys: pytest.CaptureFixture) -> None:
    text.show(profile)
    plain = capsys.readouterr().out
    assert not re.search("│ +│$", plain, re.MULTILINE), "a name takes a second row"
    text.show_comparison(profile, profile)
    lines = plain.splitlines() + capsys.readouterr().out.splitlines()
    rows = [line for line in lines if line.startswith("│")]
    assert rows and all(line.endswith("│") for line in rows) and max(map(len, lines)) <= 80
    assert "blocks.0.wide" in "".join(lines)


def test_quartiles_show_their_unit_once() -> None:
    assert quartiles(Spread(1.2e6, 1.1e6, 1.3e6)) == "1.10 – 1.30 ms"
    assert quartiles(Spread(1e6, 900.0e3, 1.3e6)) == "900 µs – 1.30 ms"


def test_a_folder_without_a_profile(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["compare-profiles", str(tmp_path), str(tmp_path)])
    assert done.exit_code == 1 and "it has no profile.json" in done.stderr


@pytest.mark.parametrize("damaged", ["{", "[]", "{}", '{"format": 0}', '{"format": 1, "graphs": [], "ops": [{}]}'])
def test_a_damaged_profile(tmp_path: Path, damaged: str) -> None:
    (tmp_path / JSON_NAME).write_text(damaged)
    with pytest.raises(ProfileFormatError, match="record it again"):
        read_json(tmp_path)
    done = CliRunner().invoke(app, ["compare-profiles", str(tmp_path), str(tmp_path)])
    assert done.exit_code == 1 and done.stderr.startswith("error: ")
