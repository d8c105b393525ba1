"""Calls of the user's own functions on Tenstorrent's library, for ops of the user that have a kernel.

A file names only the op. The function is the one that this process has registered for it (`@tt_torch.kernel`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tt_torch.codegen import quoting
from tt_torch.codegen.values import Call, Text, render
from tt_torch.errors import BinaryFormatError, UnsupportedBinaryError
from tt_torch.extending import registry
from tt_torch.extending.arguments import Value, decoded
from tt_torch.wire import custom_ops
from tt_torch.wire.messages import Record


def function_of(op: str) -> tuple[str, str]:
    """Module and name of the function of an op. Raises UnsupportedBinaryError if none is registered."""
    registered = registry.of(op)
    if registered is None or not registered.ttnn:
        raise UnsupportedBinaryError(
            f"{op} has no function of Tenstorrent's library in this process; register its kernel with "
            "@tt_torch.kernel(op, ttnn='package.module:function')"
        )
    module, _, name = registered.ttnn.partition(":")
    return module, name


def aliases(ops: Iterable[str], taken: Iterable[str]) -> dict[str, str]:
    """A name in the generated program for each module that has functions of these ops."""
    found: dict[str, str] = {}
    known = set(taken)
    for module in sorted({function_of(op)[0] for op in ops}):
        found[module] = quoting.unique(module.replace(".", "_"), known)
        known.add(found[module])
    return found


def call_of(record: Record, tensors: Sequence[str], modules: dict[str, str]) -> Call:
    """The call of the function of an op, with the names of its tensors."""
    op, text = custom_ops.parsed(record["func_name"]) or ("", "")
    module, name = function_of(op)
    positional, keywords = decoded(text).filled([Text(tensor) for tensor in tensors])
    arguments = [("", _written(op, value)) for value in positional]
    arguments += [(_keyword(op, key), _written(op, value)) for key, value in keywords.items()]
    return Call(f"{modules[module]}.{name}", tuple(arguments))


def _keyword(op: str, name: str) -> str:
    if not (name.isascii() and name.isidentifier()) or name in quoting.TAKEN:
        raise BinaryFormatError(f"{op} has {ascii(name)[:40]}, which is no name of an argument")
    return name


def _written(op: str, value: Value) -> str | Call:
    if isinstance(value, list):
        return Call("", tuple(("", _written(op, part)) for part in value), "[]")
    if isinstance(value, str) and not isinstance(value, Text):
        return quoting.literal(value)
    if value is not None and not isinstance(value, (bool, int, float, Text)):
        raise UnsupportedBinaryError(f"{op} has the argument {value}, which generated programs do not pass")
    return render(value)
