"""The demos as a user runs them, from another folder and without network. What they print must be true."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path

import pytest
import torch
from PIL import Image
from wire.wire_reader import check

from tt_torch.wire.decode import decode
from tt_torch.wire.encode import encode

DEMOS = Path(__file__).parents[2] / "demos"
RESNET = "resnet/resnet50_demo.py"
PHOTOGRAPH = Path(str(files("sklearn.datasets.images") / "flower.jpg"))

# Runs a demo and saves the inputs (weights included) and the outputs of the first call of its program.
RECORD = """
import runpy, sys, torch
from tt_torch.driver.executor import Executor

call, kept = Executor.__call__, sys.argv.pop(1)

def record(self, inputs):
    outputs = call(self, inputs)
    torch.save({"inputs": [*inputs, *self.compiled.constants], "outputs": outputs}, kept)
    Executor.__call__ = call
    return outputs

Executor.__call__ = record
sys.argv.pop(0)
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""

# Runs demos with bad options, one after the other. They share a process, and so the modules that they import.
REFUSE = """
import contextlib, io, json, runpy, sys
cases, ends = json.loads(sys.argv[1]), []
for sys.argv in cases:
    sys.path[:] = [sys.argv[0].rpartition("/")[0], *sys.path]
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        ends.append([end.code, out.getvalue(), err.getvalue()])
print(json.dumps(ends))
"""

LOAD = """
import sys, torch, tt_torch
kept = torch.load(sys.argv[2])
outputs = tt_torch.load(sys.argv[1])(*(t.detach() for t in kept["inputs"]))
compiler = {"torch_mlir", "torch._dynamo", "tt_torch.mlir", "tt_torch.driver.compile"} & set(sys.modules)
assert not compiler, compiler
for got, wanted in zip(outputs, kept["outputs"], strict=True):
    torch.testing.assert_close(got.to(wanted.dtype), wanted, rtol=0, atol=0)
print("same")
"""


def python(*arguments: str | Path, cwd: Path, says: str = "") -> subprocess.CompletedProcess:
    """Runs Python in a folder; `says` is its standard input."""
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(cwd)}  # no network, and an empty cache
    if "PYTEST_XDIST_WORKER" in os.environ:
        environment["OMP_NUM_THREADS"] = "1"
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, env=environment, input=says, capture_output=True, text=True, timeout=300)


def number(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    assert found, f"{pattern!r} is not in:\n{text}"
    return float(found[1])


def check_resnet(text: str) -> None:
    assert "random weights (seed 0): the Hugging Face hub does not answer" in text
    assert "china.jpg" in text and "flower.jpg" in text and text.count("class ") == 2 * 2 * 5
    assert number(r"PCC +(\S+) \(device", text) >= 0.9999
    assert "time per image, CPU" in text and "time per image, device" in text


def check_photograph(text: str) -> None:
    assert str(PHOTOGRAPH) in text and "china.jpg" not in text and text.count("class ") == 2 * 5
    assert number(r"PCC +(\S+) \(device", text) >= 0.99 and "time per image, device" in text


def check_sentences(text: str) -> None:
    assert number(r"cosine +(\S+) \(device", text) >= 0.999
    ranked = [float(value) for value in re.findall(r"│ +(-?\d\.\d+) │ +-?\d\.\d+ │ \d  ", text)]
    assert len(ranked) == 6 and ranked == sorted(ranked, reverse=True)
    nearest = text[text.index("Nearest") :]
    assert nearest.index("The cat") < nearest.index("A kitten") < nearest.index("The central bank")


def check_digits(text: str) -> None:
    cpu, device = number(r"accuracy, CPU +(\S+) %", text), number(r"accuracy, device +(\S+) %", text)
    assert cpu > 80 and abs(cpu - device) <= 0.5


@pytest.mark.parametrize(
    ("demo", "options", "says"),
    [
        (RESNET, [], check_resnet),
        (RESNET, ["--dtype", "bf16", "--batch", "2", "--image", str(PHOTOGRAPH)], check_photograph),
        ("sentence_similarity.py", [], check_sentences),
        ("digits.py", ["--epochs", "2"], check_digits),
    ],
)
def test_demo(demo, options, says, tmp_path):
    """Each demo prints true figures. A second reader reads its binary, which gives the same results when loaded."""
    saved, kept = tmp_path / "model.ttnn", tmp_path / "call.pt"
    ran = python("-c", RECORD, kept, DEMOS / demo, "--save", saved, *options, cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    says(ran.stdout)
    assert "FAILED" not in ran.stdout and str(saved) in ran.stdout and "compile time" in ran.stdout
    data = saved.read_bytes()
    assert check(data) == decode(data)
    assert encode(decode(data)) == data
    loaded = python("-c", LOAD, saved, kept, cwd=tmp_path)
    assert loaded.stdout.strip() == "same", loaded.stderr


def test_training_demo(tmp_path):
    """In one epoch, the device learns what the CPU learns. The curve is an image with lines in both colours."""
    curve = tmp_path / "curve.png"
    ran = python(DEMOS / "train_digits.py", "--epochs", "1", "--curve", curve, cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "FAILED" not in ran.stdout and str(curve) in ran.stdout and "22/22" in ran.stdout
    cpu, device = number(r"accuracy, CPU +(\S+) %", ran.stdout), number(r"accuracy, device +(\S+) %", ran.stdout)
    assert cpu > 60 and abs(cpu - device) <= 1
    first, last = re.search(r"loss, device +(\S+) at the first step, (\S+) at", ran.stdout).groups()
    assert float(last) < float(first) / 2
    image = Image.open(curve)
    colours = {colour for count, colour in image.convert("RGB").getcolors(1 << 20) if count > 50}
    assert image.format == "PNG" and {(31, 119, 180), (255, 127, 14)} <= colours
    assert [file.name for file in tmp_path.iterdir() if file.suffix == ".png"] == ["curve.png"]


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The address of a server with the files of `tmp_path`."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_questions_for_photographs(tmp_path: Path, address: str):
    """A path, a URL, nothing for the samples, and what cannot be read."""
    Image.linear_gradient("L").save(tmp_path / "grey [1].png")
    (tmp_path / "text.png").write_text("no image")
    url = f"{address}/grey%20[1].png"
    places = [
        "grey [1].png",
        url,
        "nowhere.png",
        "text.png",
        f"{address}/none.png",
        "http://:x/",
        "",
        "stop",
        "never.png",
    ]
    ran = python(DEMOS / RESNET, "--run_interactive", cwd=tmp_path, says="".join(f"{place}\n" for place in places))
    assert ran.returncode == 0 and not ran.stderr, ran.stdout + ran.stderr
    shown = ran.stdout.replace("path or URL of a photograph (nothing: the samples; stop: the end): ", "")
    named = [before for before, line in itertools.pairwise(shown.splitlines()) if line.startswith("┏")]
    assert named == ["grey [1].png", url, "china.jpg", "flower.jpg"], ran.stdout
    tables = re.findall(r"┏[^┏]*┘", ran.stdout)
    assert len(tables) == 4 and tables[0] == tables[1] != tables[2]
    assert ran.stdout.count("cannot be read: ") == 4 and "never.png" not in ran.stdout


REFUSED = [
    (RESNET, ["--image", "a.jpg", "--run_interactive"], "photographs are named when it asks"),
    (RESNET, ["--image", "nowhere.jpg"], "nowhere.jpg"),
    (RESNET, ["--image", __file__], "cannot identify image file"),
    (RESNET, ["--dtype", "f64"], "'f64' is not one of 'bf16', 'f32'"),
    ("sentence_similarity.py", ["--sentence", "alone"], "at least two sentences"),
    ("digits.py", ["--epochs", "0"], "--epochs"),
    ("train_digits.py", ["--epochs", "0"], "--epochs"),
    ("train_digits.py", ["--optimizer", "lion"], "'lion' is not one of 'sgd', 'adam', 'adamw'"),
    ("train_digits.py", ["--curve", "nowhere/loss.png"], "there is no folder"),
]


def test_bad_input_is_one_line(tmp_path):
    cases = [[str(DEMOS / demo), *options] for demo, options, _ in REFUSED]
    ran = python("-c", REFUSE, json.dumps(cases), cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    for (demo, options, message), (status, out, err) in zip(REFUSED, json.loads(ran.stdout), strict=True):
        assert (status, out) == (2, ""), (demo, options, err)
        (line,) = err.splitlines()
        assert line.startswith("error: ") and message in line


def test_failed_check_is_status_1(monkeypatch):
    """If the device's result is wrong, a demo prints this and fails."""
    monkeypatch.syspath_prepend(str(DEMOS))
    import common
    import typer

    with common.console.capture() as printed, pytest.raises(typer.Exit) as ended:
        common.conclude({"right": True, "wrong": False})
    assert ended.value.exit_code == 1 and "FAILED  wrong" in printed.get()


@pytest.mark.parametrize(("similar", "same"), [([0.9, 0.5, 0.2], True), ([0.9, 0.2, 0.5], False)])
def test_same_ranking_notices_a_swap(similar, same, monkeypatch):
    monkeypatch.syspath_prepend(str(DEMOS))
    from sentence_similarity import same_ranking

    def symmetric(values):
        matrix = torch.eye(3)
        matrix[[0, 0, 1], [1, 2, 2]] = torch.tensor(values)
        return matrix

    assert same_ranking(symmetric(similar), symmetric([0.9, 0.5, 0.2])) is same
