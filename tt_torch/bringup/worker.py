"""The work of a worker process on one op: all stages of the compiler, then a run on golden inputs.

The op comes in a file. Its record is written beside that file after every step, so that it tells how far the op came
even if the process dies.
"""

from __future__ import annotations

import json
import math
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch
from torch_mlir import ir

from tt_torch.accuracy import calculate_atol, calculate_pcc, calculate_rtol, calculate_ulp, random_inputs
from tt_torch.bringup.records import OpCompilationStatus, Work
from tt_torch.bringup.single_op import SingleOp
from tt_torch.config import CompilerConfig
from tt_torch.driver.compile import CompiledGraph, Form, compile_graph, compile_module
from tt_torch.driver.devices import default_device
from tt_torch.driver.executor import Executor
from tt_torch.errors import CompileError, TTTorchError, UnsupportedOpError
from tt_torch.files import write
from tt_torch.mlir.context import make_context
from tt_torch.records.lines import Record
from tt_torch.wire import calls, facts
from tt_torch.wire.decode import decode
from tt_torch.workers.engine import Outcome

_REACHED = {
    "FX": OpCompilationStatus.CREATED_GRAPH,
    "TORCH": OpCompilationStatus.CONVERTED_TO_TORCH_IR,
    "STABLEHLO": OpCompilationStatus.CONVERTED_TO_STABLE_HLO,
    "TTIR": OpCompilationStatus.CONVERTED_TO_TTIR,
    "BINARY": OpCompilationStatus.CONVERTED_TO_TTNN,
}
_TEXTS = {"TORCH": "torch_ir_graph", "STABLEHLO": "stable_hlo_graph", "TTIR": "ttir_graph", "TTNN": "ttnn_graph"}
# the position of the dimension among the arguments, if it is given
_POSITIONS = {"aten.sort.default": 1, "aten.topk.default": 2}
LARGEST_TEXT = 1 << 20  # characters of a module that are kept; its constants can be long
T = TypeVar("T")


def run_op(file: str, config: CompilerConfig, execute: bool, threads: int) -> Outcome:
    """Compiles and runs the op in `file`; its record is then in `<file>.json`."""
    if threads:
        torch.set_num_threads(threads)
    work = torch.load(file, weights_only=False)
    record = _Record(Path(file + ".json"), work["record"])
    _complete(work, record.values)
    compiled = record.attempt("compile", lambda: _compile(work, config, record))
    if compiled and execute:
        outputs = record.attempt("execute", lambda: _execute(compiled, work["inputs"], config))
        if outputs is not None:
            golden = work["golden"] if config.verify_op_by_op else None
            record.executed(_pointed_at(work, outputs), golden and _pointed_at(work, golden))
    record.write()
    return {"verdict": record.values["verdict"]}


def _complete(work: Work, record: Record) -> None:
    """Makes random inputs if some are not known. Then there is nothing to compare the results with."""
    if any(value is None for value in work["inputs"]):
        shapes, dtypes = zip(*work["input_types"], strict=True)
        work["inputs"], work["golden"], record["inputs"] = (
            random_inputs(shapes, dtypes, (-1, 1), (0, 2)),
            None,
            "random",
        )
    elif work["golden"] and any(value is None for value in work["golden"]):
        work["golden"] = None


class _Record:
    def __init__(self, path: Path, values: Record) -> None:
        self.path, self.values = path, values

    def write(self) -> None:
        write(self.path, json.dumps(self.values, allow_nan=False, default=str).encode())

    def reached(self, name: str, form: Form) -> None:
        """The compiler's watcher."""
        if name in _TEXTS:
            self.values[_TEXTS[name]] = str(form)[:LARGEST_TEXT]
        if name == "STABLEHLO":
            self.values["parsed_stable_hlo_ops"] = self.values["stable_hlo_ops"] = _op_names(form)
        if name == "BINARY":
            self._describe(form)
        if name in _REACHED:
            self.values["compilation_status"] = int(_REACHED[name])
            self.values["verdict"] = "compiled" if name == "BINARY" else "compiling"
            self.write()

    def _describe(self, binary: bytes) -> None:
        message = decode(binary)
        (program,) = calls.public(message)
        self.values["compiled_json"] = _plain({key: message[key] for key in ("schema_hash", "programs")})
        self.values["input_tensors"] = list(map(describe, facts.inputs(program)))
        self.values["output_tensors"] = list(map(describe, facts.outputs(program)))

    def attempt(self, what: str, step: Callable[[], T]) -> T | None:
        """The result of a step, or None if it fails; the record then has the error."""
        begin = time.perf_counter()
        try:
            return step()
        except Exception as error:  # op-by-op runs are there to find failures of ops
            self.values["verdict"] = _verdict(error)
            self.values["error"], self.values["message"] = type(error).__name__, str(error)
            self.values["runtime_stack_dump"] = traceback.format_exc()
            return None
        finally:
            self.values[f"{what}_seconds"] = round(time.perf_counter() - begin, 4)

    def executed(self, outputs: list[torch.Tensor], golden: list[torch.Tensor] | None) -> None:
        self.values["compilation_status"] = int(OpCompilationStatus.EXECUTED)
        self.values["verdict"] = "executed"
        if golden is None:
            return
        pairs = list(zip(outputs, golden, strict=True))
        self.values["pcc"] = _finite(min(calculate_pcc(*pair) for pair in pairs))
        for field, measure in (("atol", calculate_atol), ("rtol", calculate_rtol), ("ulp", calculate_ulp)):
            self.values[field] = _finite(_worst([measure(*pair) for pair in pairs]))


def _compile(work: Work, config: CompilerConfig, record: _Record) -> CompiledGraph:
    op, inputs = work["op"], work["inputs"]
    if isinstance(op, SingleOp):
        return compile_graph(op.graph(inputs), op.roles, config, record.reached)
    with make_context():
        module = ir.Module.parse(op)
    record.reached("FX", None)
    record.reached("STABLEHLO", module)
    binary = compile_module(module, config, record.reached)
    return CompiledGraph(binary, [], ["input"] * len(inputs), work["dtypes"], None)


def _execute(compiled: CompiledGraph, inputs: list[torch.Tensor], config: CompilerConfig) -> list[torch.Tensor]:
    return Executor(compiled, default_device(config))(inputs)


def _pointed_at(work: Work, results: list[torch.Tensor]) -> list[torch.Tensor]:
    """The results to compare. Positions are replaced by the values there: PyTorch does not order equal values."""
    op = work["op"]
    place = _POSITIONS.get(getattr(op, "target", ""))
    if place is None:
        return results
    dim = (*op.args, *[-1] * 3)[place]
    return [work["inputs"][0].gather(dim, r) if which == 1 else r for which, r in zip(op.results, results, strict=True)]


def _verdict(error: Exception) -> str:
    if isinstance(error, UnsupportedOpError):
        return "unsupported"
    if isinstance(error, CompileError):
        return "compile-error"
    return "runtime-error" if isinstance(error, TTTorchError) else "error"


def _op_names(module: ir.Module) -> list[str]:
    """Names of the ops in `main`, without the return."""
    function = next(f for f in module.body.operations if f.name.value == "main")
    names = [op.operation.name for op in function.regions[0].blocks[0].operations]
    return names[:-1]


def describe(tensor: facts.Tensor) -> Record:
    """A tensor of a binary, with the field names of op-by-op files."""
    return {
        "shape": list(tensor.shape),
        "data_type": tensor.dtype,
        "buffer_type": tensor.memory_config["buffer_type"] if tensor.memory_config else "SystemMemory",
        "layout": tensor.page_layout,
        "grid_shape": tensor.grid and list(tensor.grid),
    }


def _plain(part: object) -> object:
    """A message as JSON takes it: bytes by their number, numbers that JSON lacks as text."""
    if isinstance(part, dict):
        return {key: _plain(value) for key, value in part.items()}
    if isinstance(part, list | tuple):
        return [_plain(value) for value in part]
    if isinstance(part, bytes | bytearray | memoryview):
        return {"bytes": len(part)}
    return str(part) if isinstance(part, float) and not math.isfinite(part) else part


def _worst(values: list[float]) -> float:
    return math.nan if any(math.isnan(v) for v in values) else max(values)


def _finite(value: float) -> float | str:
    """NaN and infinity as text: JSON has no numbers for them."""
    return value if math.isfinite(value) else str(value)
