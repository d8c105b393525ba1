"""The form of a record: which fields have which types. Records come from files that anybody can write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tt_torch.records.lines import Record
from tt_torch.reports.compare import STATES

_LARGEST = 3e38  # what a column of the database takes: DuckDB has 32 bits for a FLOAT
# Fields that reports read, by what they must be. They may be absent, unless they are required below.
_TEXTS = (
    "kind key commit time error message dtype model op outcome backend group depth framework_op_name location "
    "torch_ir_graph stable_hlo_graph ttir_graph ttnn_graph runtime_stack_dump compiled_json model_group"
).split()
_NUMBERS = "pcc atol rtol ulp seconds cpu_seconds binary_bytes num_ops global_op_idx compilation_status".split()
_NULLABLE = frozenset("commit time group model_group backend pcc atol rtol ulp seconds".split())
_FLAGS = ("static", "between_graphs")
_COUNTS = ("device_ops", "aten_ops")
_LISTS = ("graph_breaks", "input_shapes", "output_shapes", "stable_hlo_ops")
_RECORDS: dict[str, dict[str, type]] = {
    "host_ops": {"op": str, "reason": str, "count": int},
    "input_tensors": {"shape": list, "data_type": str, "buffer_type": str, "layout": str},
    "output_tensors": {"shape": list, "data_type": str, "buffer_type": str, "layout": str},
}
_REQUIRED = {
    "op": ("dtype",),
    "model": ("model",),
    "unique-op": ("framework_op_name", "model", "outcome"),
    "test": ("seconds",),
}
# Fields of a unique-op that has a name: a record of a whole graph has none.
_OF_A_FORM = ("compilation_status", "input_tensors", "output_tensors", "input_shapes", "output_shapes")


def oddity(record: object) -> str:
    """The first fault in the form of a record, as part of a sentence; "" for a record without a fault."""
    if not isinstance(record, dict):
        return f"a record is an object, not {_shown(record)}"
    required = ("kind", "key", "verdict", *_REQUIRED.get(str(record.get("kind")), ()))
    if missing := [name for name in required if record.get(name) is None]:
        return f"a record has no {', '.join(missing)}"
    named = record["kind"] == "unique-op" and record["framework_op_name"]
    if missing := [name for name in _OF_A_FORM if named and record.get(name) is None]:
        return f"a record of an op in a model has no {', '.join(missing)}"
    return next(_odd(record), "")


def _odd(record: Record) -> Iterator[str]:
    if record["verdict"] not in STATES:
        yield f"verdict is {_shown(record['verdict'])}, not one of {', '.join(STATES)}"
    for names, is_right, what in _RULES:
        for name in names:
            if name not in record or (record[name] is None and name in _NULLABLE):
                continue
            if not is_right(value := record[name]):
                yield f"{name} is {_shown(value)}, not {what}"
    for name, fields in _RECORDS.items():
        if not _are_records(record.get(name, []), fields):
            yield f"{name} is {_shown(record[name])}, not a list of objects with {', '.join(fields)}"


def _is_text(value: object) -> bool:
    """Whether a database can store the value as text."""
    return isinstance(value, str) and "\0" not in value and not any("\ud800" <= c <= "\udfff" for c in value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not abs(value) > _LARGEST


def _is_list(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_counts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(count, int) for count in value.values())


def _are_records(value: object, fields: dict[str, type]) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, dict) and all(isinstance(one.get(name), kind) for name, kind in fields.items()) for one in value
    )


_RULES: tuple[tuple[Sequence[str], Callable[[object], bool], str], ...] = (
    (_TEXTS, _is_text, "a text"),
    (_NUMBERS, _is_number, "a number"),
    (_FLAGS, lambda value: isinstance(value, bool), "true or false"),
    (_COUNTS, _are_counts, "an object with numbers"),
    (_LISTS, _is_list, "a list of texts"),
)


def _shown(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
