"""An open `ttnn` device: the programs and the tensors that were sent to it."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from typing import Protocol

import torch

from tt_torch.codegen.arrays import to_array
from tt_torch.codegen.links import Link
from tt_torch.codegen.program import Program, Tensor
from tt_torch.codegen.source import constant, to_source
from tt_torch.codegen.ttnn_worker.messages import Values
from tt_torch.runtime.residents import Kept, Residents


class Key:
    """The number of a program or tensor on the device. When this object is deleted, the program or tensor is
    dropped later."""

    def __init__(self, number: int, dropped: list[int]) -> None:
        self.number, self._dropped = number, dropped

    def __del__(self) -> None:
        self._dropped.append(self.number)


class _Part:
    """The value of one chip. It is here only until the values of all chips are sent together."""

    def __init__(self, value: torch.Tensor) -> None:
        self.value: torch.Tensor | None = value


class Sendable(Protocol):
    """A program as a session needs it. `each` has the positions of the results that have a value per chip."""

    program: Program
    each: list[int]


class Session:
    """An open device with the programs and tensors that were sent to it. It ends if the device hangs or its worker
    dies."""

    def __init__(self, link: Link) -> None:
        self.link, self.ask = link, link.ask
        self._numbers, self._dropped = itertools.count(), list[int]()
        self._programs: weakref.WeakKeyDictionary[Sendable, Key] = weakref.WeakKeyDictionary()
        self.residents = Residents(self._keep)
        self._parts = Residents(lambda described, value, who: _Part(value))
        # The tensors on the device whose chips have values of their own, by the value of the first chip. A tensor is
        # sent again if the value of another chip is a new object.
        self._of_chips: weakref.WeakKeyDictionary[_Part, tuple[list[weakref.ref[_Part]], Key]]
        self._of_chips = weakref.WeakKeyDictionary()

    def run(self, executable: Sendable, arguments: Sequence[Key | Values]) -> list[Values]:
        self.forget()
        passed = [a.number if isinstance(a, Key) else a for a in arguments]
        return self.ask("run", {"key": self.load(executable).number, "arguments": passed})

    def forget(self) -> None:
        """Frees the tensors and programs that nothing here refers to any more."""
        if dropped := self._dropped[:]:
            del self._dropped[: len(dropped)]
            self.ask("forget", {"keys": dropped})

    def load(self, executable: Sendable) -> Key:
        """Sends a program if the device does not have it yet."""
        if known := self._programs.get(executable):
            return known
        program, key = executable.program, self._key()
        constants = {name: constant(tensor, data) for name, (tensor, data) in program.constants.items()}
        inputs = [tensor.facts() for tensor in program.main.inputs]
        source = to_source(program, "program")
        traceable = not program.needs_host
        parts = {"source": source, "constants": constants, "inputs": inputs, "traceable": traceable}
        results = {"output_shardings": list(program.output_shardings), "each": executable.each}
        self.ask("load", {"key": key.number} | results | parts)
        self._programs[executable] = key
        return key

    def kept(self, described: Tensor, value: torch.Tensor, who: str, whole: bool, owner: Kept | None) -> Key:
        """A tensor that stays on the device as long as `owner`, or the device, keeps it. It is sent if it is new or has
        changed; `whole` compares all values."""
        key: Key = self.residents.get(value, described, _placement(described), who, whole, owner).handle
        return key

    def kept_of_chips(
        self, described: Tensor, values: Sequence[torch.Tensor], who: str, whole: bool, owner: Kept | None
    ) -> Key:
        """The same for a tensor that has a value per chip."""
        placement = _placement(described)
        parts: list[_Part] = [self._parts.get(x, described, placement, who, whole, owner).handle for x in values]
        known = self._of_chips.get(parts[0])
        if known and all(ref() is part for ref, part in zip(known[0], parts, strict=True)):
            return known[1]
        new = [x if part.value is None else part.value for part, x in zip(parts, values, strict=True)]
        key = self._sent(described, [to_array(described, x, who) for x in new])
        self._of_chips[parts[0]] = list(map(weakref.ref, parts)), key
        for part in parts:
            part.value = None
        return key

    def _key(self) -> Key:
        return Key(next(self._numbers), self._dropped)

    def _keep(self, described: Tensor, value: torch.Tensor, who: str) -> Key:
        return self._sent(described, to_array(described, value, who))

    def _sent(self, described: Tensor, values: Values) -> Key:
        key = self._key()
        self.ask("keep", {"key": key.number, "facts": described.facts(), "values": values})
        return key

    def free_weights(self) -> None:
        """Frees the tensors that stay on the device."""
        self._clear()
        self.forget()

    def _clear(self) -> None:
        self.residents.clear()
        self._parts.clear()

    def close(self) -> None:
        self._clear()
        self.link.close()


def _placement(described: Tensor) -> str:
    return repr((described.dtype, described.layout, described.memory_config, described.sharding))
