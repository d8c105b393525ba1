"""The sweep of models: each row of the catalogue compiled and compared with eager, as a whole or op by op."""

from __future__ import annotations

import json
import resource
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import torch

import tt_torch
from tt_torch.config import BackendOptions, CompileDepth, CompilerConfig
from tt_torch.errors import ModelsFileError
from tt_torch.records.lines import Record
from tt_torch.reports.unique_ops import unique_ops
from tt_torch.sweep.catalogue import load
from tt_torch.sweep.compare import check_model
from tt_torch.sweep.registry import Config, Inputs, randomize
from tt_torch.workers.engine import Item

_MESSAGE = 2000  # characters


def items(source: str = "") -> Iterator[Item]:
    """One item per model of the catalogue, or of the Python file `source`."""
    for model in load(source):
        yield Item(model.name, f"{__name__}:run_model", {"model": model.name, "source": source})


def op_by_op_items(source: str, folder: Path) -> Iterator[Item]:
    """Like `items`; the ops of each model go to `<model>_unique_ops.json` in the folder."""
    for model in load(source):
        arguments = {"model": model.name, "source": source, "folder": str(folder)}
        yield Item(f"{model.name} op by op", f"{__name__}:run_op_by_op", arguments)


def run_model(model: str, source: str, compiler: str) -> Record:
    """The record of one model, compiled by `compiler`."""
    module, inputs, labels = made(model, source)
    record = check_model(module, ((), inputs), compiler)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {**labels, **record, "peak_memory": peak}


def run_op_by_op(model: str, source: str, folder: str) -> Record:
    """The record of one model's unique ops, each compiled and run by itself."""
    module, inputs, labels = made(model, source)
    names = {"model_name": model, "model_group": labels["group"]}
    config = CompilerConfig(compile_depth=CompileDepth.EXECUTE_OP_BY_OP, results_path=folder, jobs=1, **names)
    path = Path(folder) / f"{config.file_stem}_unique_ops.json"
    path.unlink(missing_ok=True)
    torch.compiler.reset()  # otherwise the models before it count against the limit of recompilations
    options = BackendOptions(compiler_config=config)
    compiled = torch.compile(module, backend=tt_torch.backend, options=options)  # type: ignore[call-overload]
    with torch.no_grad():
        compiled(**inputs)
    if not path.exists():
        return {**labels, "verdict": "error", "error": "OpByOpError", "message": "nothing of the model became a graph"}
    ops = list(unique_ops(json.loads(path.read_bytes())))
    verdicts = Counter(op["verdict"] for op in ops)
    record = {"verdict": "match", **labels, "unique_ops": len(ops), "op_verdicts": dict(verdicts), "file": str(path)}
    bad = [op for op in ops if op["verdict"] != "match"]
    if bad:
        message = "; ".join(f"{op['framework_op_name']}: {op['outcome']}: {op['message']}" for op in bad)
        record |= {"verdict": "error", "error": f"{len(bad)} of {len(ops)} ops", "message": message[:_MESSAGE]}
    return record


def made(name: str, source: str) -> tuple[torch.nn.Module, Inputs, Config]:
    """The module and the inputs of a row, and the fields that all its records have."""
    (row,) = (row for row in load(source) if row.name == name)
    torch.manual_seed(0)
    module, inputs = _checked(row.make(), name, source)
    if not source:  # a user's model keeps its weights, which may be trained
        randomize(module)
    parameters = sum(p.numel() for p in module.parameters())
    return module, inputs, {"group": row.group, "config": row.config, "parameters": parameters}


def _checked(made: object, name: str, source: str) -> tuple[torch.nn.Module, Inputs]:
    """The module and the inputs that a row's `make` returned. Raises ModelsFileError for a result of another form."""
    match made:
        case (torch.nn.Module() as module, dict() as inputs) if all(isinstance(key, str) for key in inputs):
            return module, inputs
    parts = made if isinstance(made, tuple) else (made,)
    returned = " and ".join(type(part).__name__ for part in parts)
    raise ModelsFileError(
        source, f"`make` of {name} returns {returned or 'nothing'}, not a module and a dict of its keyword arguments"
    )
