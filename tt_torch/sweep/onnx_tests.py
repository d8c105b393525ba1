"""The sweep of ONNX's own backend tests: each model compiled, run, and compared with the results that come with it.

This needs the package `onnx`, which has the tests: pip install 'tt-torch[onnx]'.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import torch

from tt_torch.config import CompilerConfig
from tt_torch.driver.onnx import compile_onnx
from tt_torch.driver.stablehlo import in_a_list
from tt_torch.errors import CompileError, InexactError, IRVerificationError, StageError
from tt_torch.mlir.onnx import input_names, onnx_package, other_type, read_onnx
from tt_torch.mlir.onnx_preparing import deciding_inputs
from tt_torch.records.lines import Record
from tt_torch.torch_private.testing import default_tolerances
from tt_torch.workers.engine import Item

if TYPE_CHECKING:
    import onnx
    from onnx.backend.test.case.test_case import TestCase

Tensors: TypeAlias = list[torch.Tensor]

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "real")
HELD = "of TTNN"  # the field `dtype` of a test whose inputs and results TTNN can hold
# ops whose results are random: only their shapes and dtypes are compared
RANDOM = frozenset("Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike".split())
_MESSAGE_CHARACTERS = 400


def items() -> Iterator[Item]:
    """One item per test, by kind and name."""
    for kind in KINDS:
        for name in sorted(_cases(kind)):
            yield Item(
                f"{kind}/{name.removeprefix('test_')}", f"{__name__}:run_test", {"test_kind": kind, "test": name}
            )


@cache
def _cases(kind: str) -> dict[str, TestCase]:
    onnx_package()
    from onnx.backend.test.loader import load_model_tests

    return {case.name: case for case in load_model_tests(kind=kind)}


def run_test(test_kind: str, test: str) -> Record:
    """The record of one test.

    Its verdict is `match`, `wrong`, `refused` if an error says what is not supported, or `error` for any other
    exception. Its `dtype` is HELD, or a type among the inputs and results that TTNN cannot hold.
    """
    case = _cases(test_kind)[test]
    model = _model(case)
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdict = _verdict(model, case)
    ops = sorted({node.op_type for node in model.graph.node})
    return {"dtype": _type(model.graph), "ops": ops, **verdict, "seconds": round(time.perf_counter() - begin, 4)}


def _verdict(model: onnx.ModelProto, case: TestCase) -> Record:
    """The outcome of a test. Inputs that decide shapes or axes have the values of the test when it is compiled."""
    constants: list[str] = []
    try:
        if _type(model.graph) != HELD:
            compile_onnx(model, CompilerConfig(cache_size=0))
            return {"verdict": "error", "error": "NotRefused", "message": "a type that TTNN cannot hold was compiled"}
        constants = deciding_inputs(model)
        for data in _data_sets(model, case):
            named = dict(zip(input_names(model), data.inputs, strict=True))
            known = {name: named.pop(name) for name in constants}
            shapes = {name: x.shape for name, x in named.items()}
            compiled = compile_onnx(model, CompilerConfig(cache_size=0), constants=known, shapes=shapes)
            _compare(in_a_list(compiled(*named.values())), data.results, case.rtol, _is_random(model))
    except AssertionError as difference:
        return {"verdict": "wrong", "error": "Mismatch", "message": _short(difference), "constants": constants}
    except Exception as error:
        verdict = "refused" if is_refusal(error) else "error"
        return {"verdict": verdict, "error": type(error).__name__, "message": _short(error), "constants": constants}
    return {"verdict": "match", "constants": constants}


def is_refusal(error: Exception) -> bool:
    """Whether the error says which part of the model is not supported; other errors are bugs of the compiler."""
    return isinstance(error, CompileError | InexactError) and not isinstance(error, StageError | IRVerificationError)


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:_MESSAGE_CHARACTERS]


def _model(case: TestCase) -> onnx.ModelProto:
    return read_onnx(_folder(case) / "model.onnx" if case.model_dir else _light(case))


def _folder(case: TestCase) -> Path:
    assert case.model_dir
    return Path(case.model_dir)


def _light(case: TestCase) -> Path:
    """The file of a known model without its weights, which the package has."""
    import onnx

    return Path(onnx.__file__).parent / str(case.url).removeprefix("onnx/")


@dataclass(frozen=True)
class _Data:
    """The inputs of a call, and its right results."""

    inputs: Tensors
    results: Tensors


def _data_sets(model: onnx.ModelProto, case: TestCase) -> Iterator[_Data]:
    """The data of a test, which are read one after the other."""
    if case.model_dir is None:
        yield _light_data(model, case)
        return
    for folder in sorted(_folder(case).glob("test_data_set_*")):
        yield _Data(*(_tensors(sorted(folder.glob(f"{side}_*.pb"), key=_number)) for side in ("input", "output")))


def _light_data(model: onnx.ModelProto, case: TestCase) -> _Data:
    """The data of a known model. The test suite defines its input, and the package has the result."""
    from onnx.backend.test.runner import Runner

    names, path = input_names(model), _light(case)
    values = [value for value in model.graph.input if value.name in names]
    inputs = [torch.from_numpy(Runner.generate_dummy_data(value)) for value in values]
    return _Data(inputs, _tensors(sorted(path.parent.glob(f"{path.stem}_output_*.pb"), key=_number)))


def _number(path: Path) -> int:
    return int(re.findall(r"\d+", path.stem)[-1])


def _tensors(paths: Sequence[Path]) -> Tensors:
    import onnx

    return [_tensor(onnx.TensorProto.FromString(path.read_bytes())) for path in paths]


def _tensor(value: onnx.TensorProto) -> torch.Tensor:
    import onnx

    array = onnx.numpy_helper.to_array(value)
    if value.data_type == onnx.TensorProto.BFLOAT16:
        return torch.from_numpy(array.view("int16").copy()).view(torch.bfloat16)
    return torch.from_numpy(array.copy())


def _type(graph: onnx.GraphProto) -> str:
    """HELD, or the first type among the inputs and results that TTNN cannot hold."""
    return next(filter(None, map(other_type, (*graph.input, *graph.output))), HELD)


def _is_random(model: onnx.ModelProto) -> bool:
    return any(node.op_type in RANDOM for node in model.graph.node)


def _compare(got: Tensors, expected: Tensors, rtol: float, random: bool = False) -> None:
    """Raises AssertionError for other values, shapes or dtypes. The values of random results are not compared.

    Floating-point numbers must be within the relative tolerance of the test, or within the tolerances of
    `torch.testing` if these are wider. All other values must be equal.
    """
    assert len(got) == len(expected), f"{len(got)} results, expected {len(expected)}"
    for value, golden in zip(got, expected, strict=True):
        relative, absolute = default_tolerances(torch.float32 if golden.dtype == torch.float64 else golden.dtype)
        limits = (max(rtol, relative), absolute) if golden.dtype.is_floating_point else (0.0, 0.0)
        if random:
            value, golden = value.to("meta"), golden.to("meta")
        torch.testing.assert_close(value, golden, rtol=limits[0], atol=limits[1], equal_nan=True, check_stride=False)
