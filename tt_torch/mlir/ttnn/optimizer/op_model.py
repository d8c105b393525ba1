"""Asks a model of ops, such as Tenstorrent's library on a mock device, about one op in one form.

The optimizer knows no such model. A package that has one names a class as an entry point of the group
`tt_torch.op_models`. The class is called with the options of the compilation.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from typing import Protocol

from torch_mlir import ir

from tt_torch.config import CompilerConfig
from tt_torch.errors import ConfigError, EnvironmentMissingError
from tt_torch.mlir import ods
from tt_torch.mlir.functions import block, main, program_of, returned
from tt_torch.mlir.rules import producer, shape
from tt_torch.mlir.ttnn.layout import layout_of, with_layout
from tt_torch.mlir.ttnn.optimizer.applying import moved, take
from tt_torch.mlir.ttnn.optimizer.choice import Choice
from tt_torch.mlir.ttnn.optimizer.cores import Cores, cores_of
from tt_torch.mlir.ttnn.optimizer.overriding import forget
from tt_torch.mlir.ttnn.passes.prepare_convolutions import PREPARED
from tt_torch.mlir.ttnn.to_binary import translate
from tt_torch.wire.binary import system

GROUP = "tt_torch.op_models"
RULES = "rules"  # this op model is the optimizer's own rules


@dataclass(frozen=True)
class Answer:
    """The answer of a model about a small program.

    `refusal` says why it refuses an op, and is empty if it takes all of them. `l1` counts the most bytes of L1 that the
    program needs on a core, including its tensors.
    """

    refusal: str
    l1: int


class OpModel(Protocol):
    """A model of ops, which is asked about binaries. Each has one op, the ops that move its operands, and the ops that
    prepare its weights. The model answers None for an op that it does not know."""

    def ask(self, binary: bytes) -> Answer | None: ...

    def close(self) -> None: ...


@contextmanager
def chosen(config: CompilerConfig) -> Iterator[Questions | None]:
    """Questions to the op model that the option asks for; None for the optimizer's own rules.

    Raises ConfigError if the optimizer is off, and EnvironmentMissingError if no installed package has such a model.
    """
    if config.op_model == RULES:
        yield None
        return
    if not config.level:
        raise ConfigError("op_model", config.op_model, f'"{RULES}", unless optimization_level is 1 or 2')
    found = entry_points(group=GROUP, name=config.op_model)
    if not found:
        raise EnvironmentMissingError(f"no installed package has the entry point {config.op_model!r} of {GROUP!r}")
    model: OpModel = next(iter(found)).load()(config)
    try:
        yield Questions(model, config, cores_of(system(config.arch, config.system_desc)))
    finally:
        model.close()


@dataclass(frozen=True)
class Verdict:
    """A form with the scratch memory that the model finds. `refusal` says why the model refuses the form, and is empty
    if the model takes it.

    If the model does not know the op, `known` is False, and the form is that of the rules.
    """

    choice: Choice
    refusal: str = ""
    known: bool = False


class Questions:
    """Asks a model about forms of the ops of one program. It asks once about ops that differ only in their names."""

    def __init__(self, model: OpModel, config: CompilerConfig, cores: Cores) -> None:
        self._model, self._config, self._cores = model, config, cores
        self._answers: dict[str, Answer | None] = {}

    def verdict(self, op: ir.Operation, choice: Choice) -> Verdict:
        answer = self._answer(op, choice)
        if answer is None:
            return Verdict(choice)
        before = {value: layout_of(value) for value in op.operands}
        copies = [(op.operands[i], layout) for i, layout in choice.operands.items() if layout != before[op.operands[i]]]
        tensors = [*before.items(), *copies, *choice.makes(op)]
        own = sum(layout.bytes_of_core(shape(v), self._cores.count) for v, layout in tensors if layout.buffer == "L1")
        return Verdict(replace(choice, scratch=max(0, answer.l1 - own)), answer.refusal, known=True)

    def _answer(self, op: ir.Operation, choice: Choice) -> Answer | None:
        if ods.OPS[op.name].facts.get("collective"):  # the model has one chip
            return None
        module = question(op, choice, self._cores)
        text = str(module)
        if text not in self._answers:
            self._answers[text] = self._model.ask(translate(module, self._config))
        return self._answers[text]


def question(op: ir.Operation, choice: Choice, cores: Cores) -> ir.Module:
    """A program with one op in the form `choice`, with the ops that move its operands and prepare its weights."""
    prepared = [v.owner for v in op.operands if producer(v, *PREPARED)]
    ops = [*prepared, op]
    inner = {result for each in ops for result in each.results}
    arguments = list(dict.fromkeys(v for each in ops for v in each.operands if v not in inner))
    module = program_of(ops, arguments, list(op.results))
    *_, copy, _ = (each.operation for each in block(main(module)).operations)
    with module.context:
        forget(copy)
        for index, layout in choice.operands.items():
            if layout != layout_of(copy.operands[index]) and index not in choice.weights:
                copy.operands[index] = moved(copy, copy.operands[index], layout)
        for index in choice.weights:  # they are arguments in their final form, as a call gets them
            weight, turned = copy.operands[index], ods.attr(copy, "transpose_b")
            *outer, rows, columns = shape(weight)
            dims = [*outer, columns, rows] if turned else [*outer, rows, columns]
            weight.set_type(with_layout(dims, choice.operands[index]))
        take(copy, replace(choice, weights=()), cores)
        main(module).attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get([v.type for v in block(main(module)).arguments], [v.type for v in returned(module)])
        )
    return module
