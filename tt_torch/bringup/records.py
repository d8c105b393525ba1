"""Results of op-by-op runs: one record per unique op, which a file keeps: records/op_by_op.py."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any, TypeAlias

import torch

from tt_torch.config import CompilerConfig
from tt_torch.records.lines import Record
from tt_torch.records.op_by_op import EXECUTED, OpsFile

Work: TypeAlias = dict[str, Any]  # the file of an op: the op, its inputs and results, their types, its record


class OpCompilationStatus(IntEnum):
    """How far an op came. An op never ends at 3, because torch-mlir's passes run as one step."""

    NOT_STARTED = 0
    CREATED_GRAPH = 1
    CONVERTED_TO_TORCH_IR = 2
    CONVERTED_TO_TORCH_BACKEND_IR = 3
    CONVERTED_TO_STABLE_HLO = 4
    CONVERTED_TO_TTIR = 5
    CONVERTED_TO_TTNN = 6
    EXECUTED = EXECUTED


def new_record(config: CompilerConfig, op: str, index: int) -> Record:
    """The record of an op that has not been compiled yet."""
    return {
        "framework_op_name": op,
        "torch_name": op,
        "frontend": "tt-torch",
        "backend": config.op_by_op_backend.name.lower(),
        "model_name": config.model_name,
        "model_group": config.model_group,
        "global_op_idx": index,
        "location": "",
        "num_ops": 1,
        "input_shapes": [],
        "output_shapes": [],
        "input_tensors": [],
        "output_tensors": [],
        "inputs": "golden",
        "compilation_status": int(OpCompilationStatus.NOT_STARTED),
        "verdict": "not-started",
        "error": "",
        "message": "",
        "pcc": None,
        "atol": None,
        "rtol": None,
        "ulp": None,
        "compile_seconds": None,
        "execute_seconds": None,
        "parsed_stable_hlo_ops": [],
        "stable_hlo_ops": [],
        "torch_ir_graph": "",
        "stable_hlo_graph": "",
        "ttir_graph": "",
        "ttnn_graph": "",
        "runtime_stack_dump": "",
        "compiled_json": None,
    }


def shapes_of(tensors: Sequence[torch.Tensor]) -> list[str]:
    return [str(tuple(t.shape)) for t in tensors]


def file_of(folder: Path, record: Record) -> Path:
    """The file with the work on an op."""
    return folder / f"{record['global_op_idx']:06}.pt"


class OpRecords:
    """The unique ops of all graphs of a model, and the file with their records."""

    def __init__(self, config: CompilerConfig) -> None:
        self.config = config
        self.file = OpsFile(config)
        self.ops: dict[str, Record] = {}
        self.error = ""  # why a graph could not be taken apart
        self._seen: list[str] = []  # the key of each op of the model, in order
        self._first = 0  # the position of the first op of the newest graph

    def begin_graph(self) -> None:
        """The ops that are added from now on are those of another graph."""
        self._first = len(self._seen)

    def of_graph(self) -> dict[str, Record]:
        """The records of the ops of the newest graph. The records of the other ops may be those of another model."""
        return {key: self.ops[key] for key in self._seen[self._first :]}

    def add(self, key: str, op: str, location: str) -> Record | None:
        """The new record of an op. For a known op, its count is increased and the result is None."""
        self._seen.append(key)
        if key in self.ops:
            self.ops[key]["num_ops"] += 1
            return None
        self.ops[key] = new_record(self.config, op, len(self._seen) - 1) | {"location": location}
        return self.ops[key]

    def chosen(self, only: int | None) -> list[Record]:
        """The record of the op at the position `only` in the model, if there is one; with None, those of the graph."""
        return [*self.of_graph().values()] if only is None else [self.ops[key] for key in self._seen[only : only + 1]]

    def save(self) -> Path:
        """Writes the file and returns its name."""
        return self.file.save(self.ops, self.error)
