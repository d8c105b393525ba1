"""Chooses, op by op, where tensors lie and how ops compute: interleaved in DRAM or L1, or split over the cores' L1.

The ops are visited in their order. For each, the pass lists the forms that the library takes (families.py), and takes
the one with the shortest modelled time that fits L1 beside all that still lies there (choice.py). The time includes
moving the operands, and what the next ops pay to read the result. A value that follows such choices stays sharded
through a chain of ops. When no form fits, values that are not needed yet are moved to DRAM.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from torch_mlir import ir

from tt_torch.errors import OverrideError
from tt_torch.mlir import ods
from tt_torch.mlir.context import describe
from tt_torch.mlir.functions import main
from tt_torch.mlir.layer_names import LayerNames
from tt_torch.mlir.rules import shape, users
from tt_torch.mlir.ttir.constness import constant_values
from tt_torch.mlir.ttnn import legality, sharded
from tt_torch.mlir.ttnn.layout import Layout, layout_of, tiles
from tt_torch.mlir.ttnn.optimizer import buffers, families
from tt_torch.mlir.ttnn.optimizer.applying import moved, take
from tt_torch.mlir.ttnn.optimizer.biases import split_biases
from tt_torch.mlir.ttnn.optimizer.choice import Choice, lying, seconds, taking, while_moving
from tt_torch.mlir.ttnn.optimizer.cores import Cores, cores_of, like
from tt_torch.mlir.ttnn.optimizer.foresight import INTERLEAVED, JOINING, seconds_to_readers, spilling
from tt_torch.mlir.ttnn.optimizer.op_model import Questions, Verdict
from tt_torch.mlir.ttnn.optimizer.overriding import NOTHING, asked_of, error, follows, forget, misfit, names_of, words
from tt_torch.mlir.ttnn.optimizer.weighing import CHOSEN, REFUSED, Candidate, Decision, configuration_of, moves_of
from tt_torch.mlir.types import Value
from tt_torch.overrides import Asked
from tt_torch.wire.messages import SystemDesc

MOVES_OF_CONV = 2  # the library splits an interleaved image over the cores, and puts the result back


def optimize(
    module: ir.Module,
    system: SystemDesc,
    level: int,
    questions: Questions | None = None,
    splits_weights: bool = False,
    report: list[Decision] | None = None,
) -> int:
    """Level 1 chooses how products are computed, and level 2 also where tensors lie.

    `questions` go to an op model, which says which forms the library takes and how much memory each form needs. With
    `splits_weights`, weights may lie in parts on the banks of DRAM. A `report` gets one decision per op. Returns the
    most bytes of L1 that the program needs on one core. If nobody knows how much one of its ops needs, these are all
    bytes that a core has.
    """
    if not level:
        return 0
    cores = cores_of(system, splits_weights and level > 1)
    with module.context, ir.Location.unknown():
        if cores.banks:
            split_biases(module, cores)
        return _Walk(module, cores, level, questions, report).run()


class _Walk:
    """The ops of the main function, and the values that lie in L1 at one of them."""

    def __init__(
        self,
        module: ir.Module,
        cores: Cores,
        level: int,
        questions: Questions | None,
        report: list[Decision] | None,
    ) -> None:
        function = main(module)
        self.ops = [op.operation for op in function.regions[0].blocks[0].operations]
        self.constants = constant_values(function)
        self.exchanged = self._scratch_of_norms()
        self.cores, self.level = replace(cores, l1=cores.l1 - self.exchanged), level
        self.last: dict[Value, int] = {v: i for i, op in enumerate(self.ops) for v in op.operands}
        self.held: dict[Value, int] = {}  # bytes in the fullest core's L1, by the values that lie there
        self.in_dram: dict[Value, Value] = {}
        self.peak = 0
        self.questions, self.report, self.layers = questions, report, LayerNames(module)

    def run(self) -> int:
        marked = [op for op in self.ops if asked_of(op) != NOTHING]
        refused = {op for op in self.ops if marked and legality.refusal(op)}
        for i, op in enumerate(self.ops):
            self.held = {v: size for v, size in self.held.items() if self.last[v] >= i}
            if all(result in self.constants for result in op.results) and op.results:
                continue
            self._place(i, op)
        for op in marked:
            self._check(op, refused)
            forget(op)
        return self.peak + self.exchanged

    def _check(self, marked: ir.Operation, before: set[ir.Operation]) -> None:
        """Raises OverrideError if the library does not take the op with an override, or a reader of its result."""
        for op in (marked, *users(marked.results[0])):
            if op not in before and (reason := legality.refusal(op)):
                raise error(marked, f"then {op.name} has {reason}, which ttnn {legality.VERSION} does not take")

    def _place(self, i: int, op: ir.Operation) -> None:
        if op.name in ("func.return", "func.call"):
            return self._bring_back(op, out_of_l1=True)
        if op.name in sharded.OWN:
            return self._make_room_for_norm(i, op) if op.name == "ttnn.to_memory_config" else None
        if not op.results:
            return self._bring_back(op)
        found = self._fastest(op)
        if found is None:
            self._make_room(i, op)
            found = self._fastest(op)
        if self.report is not None and layout_of(op.results[0]).on_device:
            self.report.append(self._decision(op, found))
        if found is None and asked_of(op) != NOTHING:
            raise self._misfit(op)
        if found is None:
            self.peak = self.cores.l1
            return self._bring_back(op, out_of_l1=True)
        return self._apply(i, op, found)

    def _scratch_of_norms(self) -> int:
        """Bytes on the first core in which the norms over several chips exchange statistics, during all ops."""
        made = [r for op in self.ops if op.name == "ttnn.empty" for r in op.results]
        semaphores = sum(op.name == "ttnn.create_global_semaphore" for op in self.ops)
        return sum(layout_of(r).bytes_of_core(shape(r), 1) for r in made) + semaphores * buffers.SEMAPHORE

    def _make_room_for_norm(self, i: int, move: ir.Operation) -> None:
        """Moves to DRAM what lies in L1, the cheapest first, until a norm over several chips fits. Its place is fixed.
        Nothing is placed between the norm and the moves of its operand and its result."""
        norm = next((user for user in users(move.results[0]) if user.name == "ttnn.distributed_rms_norm"), None)
        if norm is None:
            return
        made = layout_of(norm.results[0])
        part = made.bytes_of_core(shape(norm.results[0]), self.cores.count)
        needed = 2 * part + buffers.distributed_norm(norm, tiles(shape(norm.results[0]))[1] // made.cores)
        for value in self._by_cost(i, ()):
            if sum(self.held.values()) + needed > self.cores.l1:
                self._spill(i, move, value)
        self.peak = max(self.peak, sum(self.held.values()) + needed)

    def _misfit(self, op: ir.Operation) -> OverrideError:
        """The error of an op that has no form that its overrides ask for, or none that fits L1."""
        verdicts = [self._verdict(op, choice) for choice in self._choices(op)]
        if verdicts and all(each.refusal for each in verdicts):
            return error(op, f"the op model refuses it: {verdicts[0].refusal}")
        if smallest := min((self._needed(op, each.choice) for each in verdicts), default=0):
            return error(op, f"it needs {smallest:,} bytes of L1 on a core, which has {self.cores.l1:,}")
        why = misfit(asked_of(op), shape(op.results[0]), self.cores) or "it has no such form"
        results = dict.fromkeys(words(choice.result) for choice in self._forms(op, NOTHING))
        return error(op, f"{why}. The optimizer itself chooses from {', '.join(results)}")

    # --- the forms of an op

    def _fastest(self, op: ir.Operation) -> Choice | None:
        """The form that takes the shortest time, fits L1 and is not refused; the first of equally fast ones."""
        for choice in sorted(self._choices(op), key=lambda c: round(self._seconds(op, c), 12)):  # in picoseconds
            verdict = self._verdict(op, choice)
            if not verdict.refusal and self._needed(op, verdict.choice) <= self.cores.l1:
                return verdict.choice
        return None

    def _verdict(self, op: ir.Operation, choice: Choice) -> Verdict:
        """The answer of the op model about a form. Without an op model, only the rules are known."""
        return self.questions.verdict(op, choice) if self.questions else Verdict(choice)

    def _choices(self, op: ir.Operation) -> Iterator[Choice]:
        """The forms that the level and the overrides of the op allow."""
        wanted = asked_of(op)
        yield from (choice for choice in self._forms(op, wanted) if not self._forbidden(op, wanted, choice))

    def _forbidden(self, op: ir.Operation, wanted: Asked, choice: Choice) -> str:
        """Why the optimizer may not take a form; empty if it may."""
        splits = choice.result.sharded or any(layout.sharded for layout in choice.operands.values())
        if splits and self.level < 2 and not wanted.sharded:
            return "level 1 splits no tensors"
        return "" if follows(wanted, choice.result, choice.reads(op)) else "not what the override asks for"

    def _forms(self, op: ir.Operation, wanted: Asked) -> Iterator[Choice]:
        plain = self._plain(op, wanted)
        found = [*families.choices(op, self.cores, wanted), plain, *self._joined(op, plain)]
        yield from found
        in_dram = [c for c in found if c.result.buffer == "DRAM"]
        if wanted.moved:
            yield replace(plain, operands=dict(plain.operands) | self._beside(op, wanted, plain.result))
        in_l1 = [replace(c, result=c.result.interleaved("L1")) for c in in_dram]
        if wanted.buffer != "L1" or wanted.sharded:
            yield from (c for c in in_l1 if self.level > 1 and self._may_lie_in_l1(op, c))
        else:
            yield from in_l1
            if wanted.moved:
                result = plain.result.interleaved("L1")
                yield replace(plain, result=result, operands=dict(plain.operands) | self._beside(op, wanted, result))

    def _plain(self, op: ir.Operation, wanted: Asked) -> Choice:
        """The form with all tensors in DRAM, or where other passes have put them. Operands that overrides have put in
        L1 are read there if the library can do so."""
        lies = dict(enumerate(map(layout_of, op.operands)))
        moved = {i: layout.interleaved() for i, layout in lies.items() if layout.sharded}
        in_l1 = {i: layout.interleaved() for i, layout in lies.items() if layout.buffer == "L1" and i not in moved}
        if in_l1:
            with lying({op.operands[i]: layout for i, layout in moved.items()}):
                moved |= in_l1 if legality.refusal(op) else {}
        scratch = buffers.needed(op, self.cores)
        products = families.WHOLE[op.name](op, self.cores) if op.name in families.WHOLE else 0.0
        launches = MOVES_OF_CONV if op.name == "ttnn.conv2d" else 0
        config = {"conv2d_config": ods.attrs_of(op)["conv2d_config"] | wanted.config} if wanted.config else {}
        return Choice(layout_of(op.results[0]), moved, config, scratch, products, launches)

    def _joined(self, op: ir.Operation, plain: Choice) -> Iterator[Choice]:
        """The plain form, if the op reads its split operands from L1 after they are joined there."""
        lies = plain.operands.items()
        joined = {i: layout.interleaved("L1") if layout_of(op.operands[i]).sharded else layout for i, layout in lies}
        choice = replace(plain, operands=joined)
        if self.level > 1 and op.name in JOINING and choice != plain:
            with taking(op, choice):
                if not legality.refusal(op):
                    yield choice

    @staticmethod
    def _beside(op: ir.Operation, wanted: Asked, result: Layout) -> dict[int, Layout]:
        """The operands that an override moves to where the result lies."""
        return {i: like(layout_of(op.operands[i]), result) for i in wanted.moved}

    def _may_lie_in_l1(self, op: ir.Operation, choice: Choice) -> bool:
        """Whether the library takes a form with its results in L1, and all readers take the results from there."""
        if not (op.name in INTERLEAVED or self._verdict(op, choice).known) or not any(map(users, op.results)):
            return False
        with taking(op, choice):
            return not legality.refusal(op) and all(self._reads_l1(use) for v in op.results for use in v.uses)

    def _reads_l1(self, use: ir.OpOperand) -> bool:
        """Whether a reader takes its operand from L1, if its other operands are not split."""
        reader, index = use.owner.operation, use.operand_number
        if self._splits(reader, index):
            return True
        split = {v: layout_of(v).interleaved() for v in reader.operands if layout_of(v).sharded}
        if self._scratch(reader) >= self.cores.l1:
            return False
        with lying(split):
            return not legality.refusal(reader) or families.reads(
                reader, index, layout_of(reader.operands[index]), self.cores
            )

    def _splits(self, op: ir.Operation, index: int) -> bool:
        """Whether the fastest form of an op begins with a split of its operand, which may lie anywhere before that. If
        the operand is not split, it must lie in DRAM: nobody knows how much L1 the op needs."""
        most = self.cores.l1 + sum(self.held.values())  # these values may lie elsewhere when the op runs
        forms = [c for c in families.choices(op, self.cores) if self._needed(op, c) <= most]
        if not any(c.operands[index].sharded for c in forms if index in c.operands):
            return False
        plain = self._plain(op, NOTHING)
        in_dram = replace(plain, operands=dict(plain.operands) | {index: layout_of(op.operands[index]).interleaved()})
        fastest = min([*forms, in_dram], key=lambda c: self._seconds(op, c))
        return index in fastest.operands and fastest.operands[index].sharded

    # --- time and memory

    def _scratch(self, op: ir.Operation) -> int:
        """Bytes of L1 that an op needs on each core beside its tensors, if these lie in L1 and are not split. If they
        must not lie there, it returns all of the core's L1."""
        if self.questions is None or not op.results:
            return buffers.needed(op, self.cores) if op.name in INTERLEAVED else self.cores.l1
        verdict = self._verdict(op, self._plain(op, NOTHING))
        takes = (verdict.known or op.name in INTERLEAVED) and not verdict.refusal
        return verdict.choice.scratch if takes else self.cores.l1

    def _seconds(self, op: ir.Operation, choice: Choice) -> float:
        return seconds_to_readers(op, choice, self.cores)

    def _needed(self, op: ir.Operation, choice: Choice) -> int:
        """Bytes of L1 on the fullest core while the op runs, or while its operands are moved if that is more."""
        moved = dict.fromkeys((v, to) for i, to in choice.operands.items() if to != layout_of(v := op.operands[i]))
        copies, held = self._in_l1(moved), sum(self.held.values())
        read = {v for v, lies in zip(op.operands, choice.reads(op), strict=True) if lies == layout_of(v)}
        free = {v: self.held.get(v, 0) for v, _ in moved if v not in read and self.ops[self.last[v]] == op}
        moves = ((shape(v), layout_of(v), to, self.cores, free.get(v, 0)) for v, to in moved)
        running = held - sum(free.values()) + self._in_l1(choice.makes(op)) + choice.scratch + copies
        return max(held + sum(while_moving(*move) for move in moves), running)

    def _in_l1(self, values: Iterable[tuple[Value, Layout]]) -> int:
        return sum(to.bytes_of_core(shape(v), self.cores.count) for v, to in values if to.buffer == "L1")

    def _decision(self, op: ir.Operation, found: Choice | None) -> Decision:
        """All forms of an op, each compared with the one that was found."""
        candidates, wanted = list[Candidate](), asked_of(op)
        least = self._seconds(op, found) if found else 0.0
        for form in self._forms(op, wanted):
            answer = self._verdict(op, form)
            refusal, choice = answer.refusal, answer.choice
            own, total, l1 = seconds(op, choice, self.cores), self._seconds(op, choice), self._needed(op, choice)
            longer = f"{(total - least) * 1e6:.2f} us longer" if total > least else "as long, and later in this list"
            verdict = self._forbidden(op, wanted, choice) or (refusal and REFUSED + refusal)
            verdict = verdict or ("L1 is too small" if l1 > self.cores.l1 else longer)
            if choice == found and all(each.verdict != CHOSEN for each in candidates):
                verdict = CHOSEN
            texts = words(choice.result), moves_of(op, choice), configuration_of(choice)
            candidates.append(Candidate(*texts, own, total - own, l1, verdict))
        return Decision(op.name, tuple(names_of(op, self.layers)), describe(op.location), tuple(candidates))

    def _make_room(self, i: int, op: ir.Operation) -> None:
        """Moves to DRAM what lies in L1, the cheapest first, until one form of the op fits."""
        for value in self._by_cost(i, op.operands):
            if self._fastest(op) is not None:
                return
            self._spill(i, op, value)

    def _by_cost(self, i: int, operands: Iterable[Value]) -> list[Value]:
        """The values in L1 in the order in which they leave it: by the modelled seconds that this costs for each byte
        that it frees. The operands of the next op come last."""

        def cost(value: Value) -> tuple[bool, float]:
            readers = sum(value in op.operands for op in self.ops[i : self.last[value] + 1])
            return value in operands, spilling(value, readers, self.cores) / max(self.held[value], 1)

        return sorted(self.held, key=cost)

    def _spill(self, i: int, op: ir.Operation, value: Value) -> None:
        spilled = moved(op, value, layout_of(value).interleaved())
        for later in self.ops[i:]:
            for index, operand in enumerate(later.operands):
                if operand == value:
                    later.operands[index] = spilled
        self.last[spilled] = self.last[value]
        del self.held[value]

    # --- changing the program

    def _apply(self, i: int, op: ir.Operation, choice: Choice) -> None:
        before = list(op.operands)
        self.peak = max(self.peak, self._needed(op, choice))
        for index, layout in choice.operands.items():
            if index not in choice.weights:
                self._move(op, index, layout)
                self._share(i, op.operands[index], before[index])
        self.constants.update(take(op, choice, self.cores))
        for result, layout in choice.makes(op):
            if layout.buffer == "L1" and result in self.last:
                self.held[result] = layout.bytes_of_core(shape(result), self.cores.count)

    def _move(self, op: ir.Operation, index: int, layout: Layout) -> None:
        value = op.operands[index]
        if layout_of(value) == layout:
            return
        if layout.buffer == "DRAM" and value in self.in_dram:
            op.operands[index] = self.in_dram[value]
            return
        op.operands[index] = copy = moved(op, value, layout)
        if layout.buffer == "DRAM":
            self.in_dram[value] = copy

    def _share(self, i: int, copy: Value, value: Value) -> None:
        """Lets all later readers of a value in L1 read a copy that another op has split in another way, if this takes
        none of them longer. The value is free then, and nobody makes the copy again."""
        layout, last = layout_of(copy), self.last.get(value, i)
        later = [op for op in self.ops[i + 1 : last + 1] if value in op.operands]
        if copy == value or value not in self.held or not layout.sharded or not later:
            return
        if all(self._is_free(op) and self._shortest(op, {value: layout}) <= self._shortest(op, {}) for op in later):
            for op in later:
                for index, operand in enumerate(op.operands):
                    if operand == value:
                        op.operands[index] = copy
            self.last[value], self.last[copy] = i, last
            self.held[copy] = layout.bytes_of_core(shape(copy), self.cores.count)

    @staticmethod
    def _is_free(op: ir.Operation) -> bool:
        """Whether the optimizer chooses the form of an op, and no override does."""
        return bool(op.results) and op.name != "func.call" and op.name not in sharded.OWN and asked_of(op) == NOTHING

    def _shortest(self, op: ir.Operation, places: dict[Value, Layout]) -> float:
        """The modelled seconds of the fastest form of an op, if some of its operands lie elsewhere."""
        with lying(places):
            forms = [*families.choices(op, self.cores), self._plain(op, NOTHING)]
            return round(min(self._seconds(op, form) for form in forms), 12)

    def _bring_back(self, op: ir.Operation, out_of_l1: bool = False) -> None:
        """Gives an op operands that are not split, and with `out_of_l1` none in L1."""
        for index, value in enumerate(op.operands):
            layout = layout_of(value)
            if layout.sharded or (out_of_l1 and layout.buffer == "L1"):
                self._move(op, index, layout.interleaved())
