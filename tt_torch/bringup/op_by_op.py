"""The op-by-op depths: each unique op of a graph is compiled, and run on golden inputs, in a worker process.

The graph itself runs in eager PyTorch. That gives the result of the model, and the inputs and right results of each op.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch.fx import GraphModule, Interpreter, Node
from torch_mlir import ir

from tt_torch.bringup.records import OpRecords, file_of, shapes_of
from tt_torch.bringup.single_op import SingleOp, single_op
from tt_torch.bringup.stablehlo_ops import cut_module, cut_stablehlo
from tt_torch.config import CompileDepth, CompilerConfig, OpByOpBackend
from tt_torch.driver.observer import Observer
from tt_torch.driver.partition import computing, form, refused
from tt_torch.dynamo import facts
from tt_torch.dynamo.facts import Fact
from tt_torch.dynamo.passes.rewriting import user_line
from tt_torch.dynamo.types import Argument, Result
from tt_torch.errors import OpByOpError
from tt_torch.mlir.stablehlo.flatten import flatten
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES
from tt_torch.records.lines import Record, shortened
from tt_torch.records.op_by_op import not_executed, told
from tt_torch.waiting import waiting
from tt_torch.workers.engine import Item, Limits, Outcome, run

_SAVE_SECONDS = 2.0  # between two versions of the results file
_WORKER, _INTERPRETER = "tt_torch.bringup.worker:run_op", "tt_torch.bringup.interpret:fill_in"

# The models of this process, by folder and options, which have the name: all graphs of a model share a file.
_models: dict[tuple[Path, CompilerConfig], OpRecords] = {}


class OpByOp:
    """A graph that runs on the CPU; its first call also takes it apart and fills the results file."""

    def __init__(self, gm: GraphModule, roles: Sequence[str], config: CompilerConfig) -> None:
        self.gm, self.config = gm, config
        placeholders = (n for n in gm.graph.nodes if n.op == "placeholder")
        self.roles = dict(zip(placeholders, roles, strict=True))
        self.done = False

    def __call__(self, inputs: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        if self.done:
            return self.gm(*inputs)
        self.done = True
        records = _records(self.config)
        records.begin_graph()
        with tempfile.TemporaryDirectory(prefix="tt_torch_op_by_op_") as folder:
            with torch.no_grad(), waiting(lambda: f"op by op: cutting the graph, {len(records.ops)} unique ops so far"):
                if self.config.op_by_op_backend == OpByOpBackend.TORCH:
                    results = GoldenRun(self.gm, self.roles, records, Path(folder)).run(*inputs)
                else:
                    results = self.gm(*inputs)
                    cut_stablehlo(self.gm, list(self.roles.values()), inputs, records, Path(folder))
            _run_all(Path(folder), records, self.config)
        return results


def run_module(module: ir.Module, inputs: Sequence[torch.Tensor], config: CompilerConfig) -> None:
    """Takes a StableHLO module apart, and fills the results file. The module is changed. `inputs` are the arguments of
    `main`. Ops have golden results if StableHLO's interpreter can compute them."""
    flatten(module, lambda op: False, RULES.names)
    records = _records(config)
    records.begin_graph()
    with tempfile.TemporaryDirectory(prefix="tt_torch_op_by_op_") as folder:
        cut_module(module, dict(enumerate(inputs)), records, Path(folder))
        _run_all(Path(folder), records, config)


def observe(observer: Observer, config: CompilerConfig) -> Observer:
    """The entry point: whole graphs are taken apart instead of being compiled."""
    return dataclasses.replace(observer, take_graph=OpByOp)


def _records(config: CompilerConfig) -> OpRecords:
    """The records of the model with this name and these options: other options give an op another result.

    Models without a name and with equal options share a file, which no named model has.
    """
    key = (Path(config.results_path).resolve(), config.frozen())
    if key not in _models:
        _models[key] = OpRecords(config)
    return _models[key]


class GoldenRun(Interpreter):
    """Runs the graph in eager PyTorch and writes a file per unique op, with its inputs and results."""

    def __init__(self, gm: GraphModule, roles: dict[Node, str], records: OpRecords, folder: Path) -> None:
        super().__init__(gm)
        self.roles, self.records, self.folder = roles, records, folder
        self.ops, self.refused = set(computing(gm.graph)), refused(computing(gm.graph))

    def run_node(self, n: Node) -> Result:
        value = super().run_node(n)
        if n in self.ops:
            self._cut(n, value)
        return value

    def _cut(self, node: Node, value: Result) -> None:
        record = self.records.add(form(node), str(node.target), user_line(node))
        if record is None:
            return
        inputs = [self.env[n] for n in node.all_input_nodes]
        if node in self.refused:
            record |= {"verdict": "unsupported", "error": "UnsupportedOpError", "message": self.refused[node]}
        else:
            op = single_op(node, self.roles)
            held = [_held(x) for x in inputs]
            if not all(map(torch.equal, held, inputs)):
                inputs, value = held, op.call(held)
            golden = None if _draws(node, op, inputs, value) else op.outputs(value)
            work = {"key": form(node), "record": record, "op": op, "inputs": inputs, "golden": golden}
            record["input_shapes"], record["output_shapes"] = shapes_of(inputs), shapes_of(op.outputs(value))
            torch.save(work, file_of(self.folder, record), pickle_protocol=4)  # 2 takes no memory formats


def _held(x: torch.Tensor) -> torch.Tensor:
    """The input as the device holds it: int64 is clamped to 32 bits. Models compute larger values only to mask them,
    for example the logarithm of 0 as an integer."""
    limits = torch.iinfo(torch.int32)
    return x.clamp(limits.min, limits.max) if x.dtype == torch.int64 else x


def _draws(node: Node, op: SingleOp, inputs: Sequence[Argument], value: Result) -> bool:
    """Whether the results cannot be compared, because they are random or uninitialized memory.

    Ops that may be random, such as attention with dropout, are run twice to find out.
    """
    known = facts.of(node.target)
    if Fact.ALLOCATES in known:
        return True
    if Fact.DRAWS not in known:
        return False
    again = zip(op.outputs(value), op.outputs(op.call(inputs)), strict=True)
    return not all(torch.equal(*pair) for pair in again)


def _run_all(folder: Path, records: OpRecords, config: CompilerConfig) -> None:
    """Runs the ops in the folder, saves their records as they end, and prints a line for each on stderr."""
    config.unique_ops.update(records.of_graph())  # the records are completed in place
    chosen = records.chosen(config.run_global_op_idx)
    files = [file for record in chosen if (file := file_of(folder, record)).exists()]
    saved, number = 0.0, 0
    with waiting(lambda: f"op by op: {number} of {len(files)} ops have run"):
        for number, (key, record) in enumerate(_outcomes(files, config), 1):
            records.ops[key].update({k: v for k, v in record.items() if k != "num_ops"})
            print(f"[{number}/{len(files)}] {_line(record)}", file=sys.stderr)
            if time.monotonic() - saved > _SAVE_SECONDS:
                records.save()
                saved = time.monotonic()
    path = records.save()
    print(told(records.ops, path), file=sys.stderr)
    if not chosen and config.run_global_op_idx is not None:
        print(f"run_global_op_idx={config.run_global_op_idx} is no op of the graphs so far", file=sys.stderr)
    if config.check_all_ops_execute and (missing := not_executed(chosen)):
        raise OpByOpError(missing, str(path))


def _outcomes(files: Sequence[Path], config: CompilerConfig) -> Iterator[tuple[str, Outcome]]:
    cores = len(os.sched_getaffinity(0))
    jobs = config.jobs or cores
    arguments = {
        "config": dataclasses.replace(config, compile_depth=CompileDepth.EXECUTE, fallback="error"),
        "execute": config.compile_depth == CompileDepth.EXECUTE_OP_BY_OP,
        "threads": max(1, cores // jobs),
    }
    if config.op_by_op_backend == OpByOpBackend.STABLEHLO:
        needing = [Item(str(f), _INTERPRETER, {"file": str(f)}) for f in files]
        for _ in run(needing, jobs, Limits(seconds=config.single_op_timeout)):
            pass  # values that cannot be computed stay unknown in the file
    items = [Item(str(f), _WORKER, {"file": str(f), **arguments}) for f in files]
    for item, outcome in run(items, jobs, Limits(seconds=config.single_op_timeout)):
        yield _outcome(Path(item.key), outcome)
        Path(item.key).unlink()


def _outcome(file: Path, outcome: Outcome) -> tuple[str, Outcome]:
    """Key and record of the op in a file, even if its process died."""
    work = torch.load(file, weights_only=False)
    written = Path(f"{file}.json")
    record = json.loads(written.read_bytes()) if written.exists() else work["record"]
    if "message" in outcome:  # the engine wrote it, not the worker
        record |= {"verdict": outcome["verdict"], "error": outcome["error"], "runtime_stack_dump": outcome["message"]}
    return work["key"], record


def _line(record: Record) -> str:
    parts = [f"{record['framework_op_name']} {' '.join(record['input_shapes'])}: {record['verdict']}"]
    if record["pcc"] is not None:
        parts.append(f"PCC {float(record['pcc']):.6g}")
    if record["verdict"] not in ("executed", "compiled"):
        parts.append(shortened(" ".join((record["message"] or record["error"]).split()), 120))
    return ", ".join(parts)
