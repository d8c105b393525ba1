"""Counts the bytes of a file by the part that they belong to."""

from __future__ import annotations

from collections import Counter

from tt_torch.wire.decode import Reader, TablePlan, read
from tt_torch.wire.messages import Record

# The part to which a table and the objects in it belong, unless an inner table or field belongs to another part.
_TABLES = {"MLIR": "text of the module", "SystemDesc": "system descriptor", "TensorRef": "tensors"}
_FIELDS = {
    "Operation.debug_info": "text of each op",
    "Operation.loc_info": "locations",
    "ConstantOp.input": "constants",
    "DynamicLib.raw_file": "host code",
}
_OTHERS, _VTABLES, _BETWEEN = "programs and ops", "vtables", "padding and container"
PARTS = (*_TABLES.values(), *_FIELDS.values(), _OTHERS, _VTABLES, _BETWEEN)


def bytes_by_part(data: bytes) -> Counter[str]:
    """The bytes of each of PARTS. An object that several others refer to counts for the first of them.

    Raises the same errors as `decode`.
    """
    reader = _Accountant(data)
    read(reader)
    spent: Counter[str] = Counter()
    for size, part in reader.objects.values():
        spent[part] += size
    spent[_BETWEEN] = len(data) - spent.total()
    return spent


class _Accountant(Reader):
    """A reader that records the size and the part of each object that it reads."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.objects: dict[int, tuple[int, str]] = {}  # position -> size, part
        self._part = _OTHERS

    def table(self, plan: TablePlan, pos: int) -> Record:
        outer, self._part = self._part, _TABLES.get(plan.name, self._part)
        message = super().table(plan, pos)
        self._part = outer
        return message

    def charge(self, pos: int, size: int, what: str) -> None:
        super().charge(pos, size, what)
        self.objects.setdefault(pos, (size, _FIELDS.get(what, self._part)))

    def vtable(self, pos: int, what: str) -> tuple[int, tuple[int, ...]]:
        size, offsets = super().vtable(pos, what)
        self.objects.setdefault(self.vtable_position(pos), (4 + 2 * len(offsets), _VTABLES))
        return size, offsets
