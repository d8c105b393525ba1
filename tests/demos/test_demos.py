"""The demos run as a user runs them, from another folder and without a network. What they print must be true."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from PIL import Image
from wire.wire_reader import check

from tt_torch.wire.decode import decode
from tt_torch.wire.encode import encode

DEMOS = Path(__file__).parents[2] / "demos"
RESNET = "resnet/resnet50_demo.py"

# Runs demos, one after another, in one process, so that they share the modules that they import. If a case names a file
# in "kept", the inputs (with the weights) and the outputs of the demo's first program are written to this file.
RUN = """
import contextlib, io, json, runpy, sys, traceback, torch
from tt_torch.driver.executor import Executor

call, ends = Executor.__call__, []

def recorder(kept):
    def record(self, inputs):
        outputs = call(self, inputs)
        torch.save({"inputs": [*inputs, *self.compiled.constants], "outputs": outputs}, kept)
        Executor.__call__ = call
        return outputs
    return record

for case in json.loads(sys.argv[1]):
    Executor.__call__ = recorder(case["kept"]) if case["kept"] else call
    sys.argv, sys.stdin = case["command"], io.StringIO(case["says"])
    sys.path[:] = [sys.argv[0].rpartition("/")[0], *sys.path]
    out, err, status = io.StringIO(), io.StringIO(), None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
        except SystemExit as end:
            status = end.code
        except Exception:
            traceback.print_exc()
    ends.append([status, out.getvalue(), err.getvalue()])
print(json.dumps(ends))
"""

# Loads binaries without the compiler and repeats the first call of each.
LOAD = """
import json, sys, torch, tt_torch
for saved, kept in json.loads(sys.argv[1]):
    call = torch.load(kept)
    outputs = tt_torch.load(saved)(*(t.detach() for t in call["inputs"]))
    for got, wanted in zip(outputs, call["outputs"], strict=True):
        torch.testing.assert_close(got.to(wanted.dtype), wanted, rtol=0, atol=0)
compiler = {"torch_mlir", "torch._dynamo", "tt_torch.mlir", "tt_torch.driver.compile"} & set(sys.modules)
assert not compiler, compiler
print("same")
"""


@dataclass
class Case:
    """A demo, its options, its standard input, and the check of what it prints.

    `saves` tells whether the demo can save its binary.
    """

    demo: str
    options: list[str]
    check: Callable[[str], None]
    saves: bool = True
    says: str = ""


def python(*arguments: str | Path, cwd: Path) -> str:
    """Runs Python in a folder, and returns what it prints."""
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(cwd)}  # no network, and an empty cache
    if "PYTEST_XDIST_WORKER" in os.environ:
        environment["OMP_NUM_THREADS"] = "1"
    command = [sys.executable, *map(str, arguments)]
    ran = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def run_demos(cases: list[Case], cwd: Path) -> list[list]:
    """Runs demos in a folder, and returns the status, the output and the errors of each."""
    described = []
    for i, case in enumerate(cases):
        files = ["--save", str(cwd / f"{i}.ttnn")] if case.saves else []
        command = [str(DEMOS / case.demo), *case.options, *files]
        described.append({"command": command, "says": case.says, "kept": str(cwd / f"{i}.pt") if case.saves else None})
    return json.loads(python("-c", RUN, json.dumps(described), cwd=cwd).splitlines()[-1])


def number(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    assert found, f"{pattern!r} is not in:\n{text}"
    return float(found[1])


def check_names(text: str) -> None:
    assert text.startswith("EfficientNet-Lite0 with pretrained weights")
    firsts = [row.split("│") for row in text.splitlines() if row.startswith("│ 1 ")]
    assert [row[2].strip() for row in firsts] == ["tiger cat", "espresso", "palace", "daisy"]
    assert all(row[2:4] == row[4:6] for row in firsts)  # the device and the CPU give the same names and probabilities
    assert number(r"PCC +(\S+) \(device", text) >= 0.9999 and "names.png" in text


def check_resnet(text: str) -> None:
    assert text.startswith("ResNet-50 with random weights (seed 0): the Hugging Face hub does not answer")
    assert "china.jpg" in text and "flower.jpg" in text and text.count("class ") == 2 * 2 * 5
    assert "daisy" in text and "palace" in text
    assert number(r"PCC +(\S+) \(device", text) >= 0.99
    assert "time per image, CPU" in text and "time per image, device" in text


def check_sentences(text: str) -> None:
    assert number(r"cosine +(\S+) \(device", text) >= 0.999
    ranked = [float(value) for value in re.findall(r"│ +(-?\d\.\d+) │ +-?\d\.\d+ │ \d  ", text)]
    assert len(ranked) == 6 and ranked == sorted(ranked, reverse=True)
    nearest = text[text.index("Nearest") :]
    assert nearest.index("The cat") < nearest.index("A kitten") < nearest.index("The central bank")


def check_digits(text: str) -> None:
    cpu, device = number(r"accuracy, CPU +(\S+) %", text), number(r"accuracy, device +(\S+) %", text)
    assert cpu > 80 and abs(cpu - device) <= 0.5


def check_training(text: str) -> None:
    """In one epoch, the device learns what the CPU learns."""
    assert "22/22" in text
    cpu, device = number(r"accuracy, CPU +(\S+) %", text), number(r"accuracy, device +(\S+) %", text)
    assert cpu > 60 and abs(cpu - device) <= 1
    first, last = re.search(r"loss, device +(\S+) at the first step, (\S+) at", text).groups()
    assert float(last) < float(first) / 2


def check_face(text: str) -> None:
    found = [float(edge) for edge in re.search(r"│ 1 +│ (.*?) │", text)[1].split(",")]
    assert found == pytest.approx([178, 56, 268, 175], abs=4) and "│ 2 " not in text
    assert text.startswith("MTCNN with pretrained weights") and "faces.png" in text


def check_speech(text: str) -> None:
    begin, end = number(r"speech from (\S+) s", text), number(r"speech from .* to (\S+) s", text)
    assert begin < 0.1 and 0.8 < end < 0.95  # the recording begins and ends with speech
    assert number(r"difference +(\S+) ", text) < 1e-4 and "28 chunks" in text


def check_text(text: str) -> None:
    first, written, *_ = text.splitlines()
    assert first.startswith("Llama with random weights") and written.startswith(" once upon a time ")
    assert len(set(written.split())) > 6  # the words differ, because one repeated token would hide errors
    assert "all tokens are the CPU's" in text


def check_chips(text: str) -> None:
    rows = [line.split("│")[1:-1] for line in text.splitlines() if line.startswith("│")]
    assert [(int(chips), int(exchanges)) for chips, _, _, exchanges, *_ in rows] == [(1, 0), (2, 2), (4, 2), (8, 2)]
    sizes = [float(row[1].split()[0]) for row in rows]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > sizes[3]
    assert "8 chips give the CPU's logits" in text


def check_diffusion(text: str) -> None:
    assert text.startswith("U-Net with random weights")
    assert number(r"PCC of a step +(\S+) ", text) >= 0.9999 and number(r"PCC of the end +(\S+) ", text) >= 0.999


PICTURES = {f"{name}.png" for name in ("names", "faces", "speech", "tokens", "chips", "diffusion", "curve")}
TINY_LLAMA = ["--tokens", "6", "--layers", "1", "--width", "32", "-o", "tokens.png"]
SPEECH = str(Path(find_spec("amfm_decompy").origin).with_name("sample.wav"))
CASES = [
    Case("image_classification.py", ["-o", "names.png"], check_names),
    Case(RESNET, ["--dtype", "bf16", "--batch", "2"], check_resnet),
    Case("sentence_similarity.py", [], check_sentences),
    Case("digits.py", ["--epochs", "2"], check_digits),
    Case("face_detection.py", ["-o", "faces.png"], check_face, saves=False),
    Case("voice_activity.py", ["--sound", SPEECH, "-o", "speech.png"], check_speech),
    Case("generate.py", TINY_LLAMA, check_text, saves=False),
    Case("tensor_parallel.py", ["--layers", "1", "--width", "64", "-o", "chips.png"], check_chips, saves=False),
    Case("diffusion.py", ["--steps", "3", "--size", "16", "-o", "diffusion.png"], check_diffusion),
    Case("train_digits.py", ["--epochs", "1", "-o", "curve.png"], check_training, saves=False),
]


@pytest.mark.slow
def test_demos(tmp_path, subtests):
    """Each demo prints true figures and writes its picture. Its binary gives the same results when it is loaded."""
    for case, (status, out, err) in zip(CASES, run_demos(CASES, tmp_path), strict=True):
        with subtests.test(case.demo):
            assert status in (0, None), out + err
            assert "FAILED" not in out and "ok  " in out
            case.check(out)
    saved = sorted(tmp_path.glob("*.ttnn"))
    assert len(saved) == sum(case.saves for case in CASES)
    for path in saved:
        data = path.read_bytes()
        assert check(data) == decode(data)
        assert encode(decode(data)) == data
    pairs = json.dumps([[str(path), str(path.with_suffix(".pt"))] for path in saved])
    assert python("-c", LOAD, pairs, cwd=tmp_path) == "same\n"
    assert {file.name for file in tmp_path.glob("*.png")} == PICTURES
    assert {(31, 119, 180), (255, 127, 14)} <= colours(tmp_path / "curve.png")  # the curves of the device and the CPU
    assert {(31, 119, 180)} <= colours(tmp_path / "names.png") & colours(tmp_path / "speech.png")
    assert {(90, 255, 90)} <= colours(tmp_path / "faces.png")
    assert {(31, 119, 180), (255, 127, 14)} <= colours(tmp_path / "tokens.png")
    assert len(colours(tmp_path / "diffusion.png")) > 100


def colours(path: Path) -> set[tuple[int, int, int]]:
    image = Image.open(path)
    assert image.format == "PNG"
    return {colour for count, colour in image.convert("RGB").getcolors(1 << 22) if count > 50}


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("rapidocr_onnxruntime"), reason="needs pip install 'tt-torch[onnx-models]'")
def test_ocr(tmp_path: Path):
    """The device reads the four lines that the demo draws. A picture without text is refused."""
    Image.new("RGB", (64, 64), "white").save(tmp_path / "white.png")
    read, refused = run_demos(
        [
            Case("ocr.py", ["-o", "text.png"], print, saves=False),
            Case("ocr.py", ["--image", "white.png"], print, saves=False),
        ],
        tmp_path,
    )
    status, out, err = read
    assert status in (0, None) and not err, out + err
    assert "FAILED" not in out and out.count("ok  ") == 3
    for words in ("tt-torch reads ONNX models", "Hello, world! 2026", "upside down", "PaddleOCR 4.0 (a + b = 7)"):
        assert out.count(f"│ {words} ") == 2  # by the device and by the CPU
    assert (90, 255, 90) in colours(tmp_path / "text.png")
    status, out, err = refused
    assert status == 2 and err.startswith("error: ") and "no text in the picture" in err


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The address of a server with the files of `tmp_path`."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.slow
def test_questions_and_bad_input(tmp_path: Path, address: str):
    """A user answers with a path, a URL, an empty line for the samples, or a name that cannot be read.

    Bad options give one line and status 2.
    """
    Image.linear_gradient("L").save(tmp_path / "grey [1].png")
    (tmp_path / "text.png").write_text("no image")
    url = f"{address}/grey%20[1].png"
    places = ["grey [1].png", url, "nowhere.png", "text.png", f"{address}/none.png", "http://:x/", "", "stop", "no.png"]
    asks = Case(RESNET, ["--run_interactive"], print, saves=False, says="".join(f"{place}\n" for place in places))
    cases = [asks, *(Case(demo, options, print, saves=False) for demo, options, _ in REFUSED)]
    (status, out, err), *refused = run_demos(cases, tmp_path)
    assert status in (0, None) and not err, out + err
    shown = out.replace("path or URL of a photograph (nothing: the samples; stop: the end): ", "")
    named = [before for before, line in itertools.pairwise(shown.splitlines()) if line.startswith("┏")]
    assert named == ["grey [1].png", url, "china.jpg", "flower.jpg"], out
    tables = re.findall(r"┏[^┏]*┘", out)
    assert len(tables) == 4 and tables[0] == tables[1] != tables[2]
    unread = re.findall(r"cannot be read: '(.*)': ", out)
    assert unread == ["nowhere.png", "text.png", f"{address}/none.png", "http://:x/"] and "no.png" not in out, out
    for (demo, options, message), (status, out, err) in zip(REFUSED, refused, strict=True):
        assert (status, out) == (2, ""), (demo, options, err)
        (line,) = err.splitlines()
        assert line.startswith("error: ") and message in line


REFUSED = [
    (RESNET, ["--image", "a.jpg", "--run_interactive"], "photographs are named when it asks"),
    (RESNET, ["--image", "nowhere.jpg"], "nowhere.jpg"),
    (RESNET, ["--image", __file__], "test_demos.py': this is no picture in a known format"),
    (RESNET, ["--dtype", "f64"], "'f64' is not one of 'bf16', 'f32'"),
    ("image_classification.py", ["-o", "nowhere/names.png"], "there is no folder"),
    ("face_detection.py", ["--smallest", "600"], "astronaut.png has 512 x 512 pixels"),
    ("face_detection.py", ["--image", "nowhere.jpg"], "nowhere.jpg"),
    ("voice_activity.py", ["--sound", __file__], "file does not start with RIFF id"),
    ("generate.py", ["--prompt", " "], "the prompt has no words"),
    ("generate.py", ["--width", "20"], "20 is no multiple of 8"),
    ("tensor_parallel.py", ["--width", "20"], "greater than or equal to 64"),
    ("tensor_parallel.py", ["--width", "100"], "100 is no multiple of 64"),
    ("diffusion.py", ["--size", "20"], "20 is no multiple of 8"),
    ("sentence_similarity.py", ["--sentence", "alone"], "at least two sentences"),
    ("digits.py", ["--epochs", "0"], "--epochs"),
    ("train_digits.py", ["--epochs", "0"], "--epochs"),
    ("train_digits.py", ["--optimizer", "lion"], "'lion' is not one of 'sgd', 'adam', 'adamw'"),
    ("train_digits.py", ["-o", "nowhere/loss.png"], "there is no folder"),
]


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
