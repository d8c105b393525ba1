"""Kinds of options: which values an option accepts, and how the text of an environment variable is read."""

from __future__ import annotations

import dataclasses
import difflib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from tt_torch.errors import ConfigError


@dataclasses.dataclass(frozen=True)
class Kind:
    """The rules for the values of an option: `check` normalises a Python value, `parse` turns variable text into one.

    Both raise ValueError, KeyError or TypeError for other values. `accepts` says in words what is accepted.
    """

    accepts: str
    check: Callable[[Setting], Setting]
    parse: Callable[[str], Setting] = str


T = TypeVar("T")
Setting: TypeAlias = Any  # the value of an option, checked or not; each option has its own type


def require(condition: bool, value: T) -> T:
    if not condition:
        raise ValueError(value)
    return value


def boolean() -> Kind:
    words = dict.fromkeys(("1", "true", "on", "yes"), True) | dict.fromkeys(("0", "false", "off", "no"), False)
    return Kind(
        "a boolean (in a variable: 1/0, true/false, on/off, yes/no)",
        lambda value: require(isinstance(value, bool), value),
        lambda text: words[text.lower()],
    )


def choice(*values: str | None) -> Kind:
    named = {str(value).lower(): value for value in values}  # None is written "none" in a variable
    accepts = " or ".join("None (in a variable: none)" if v is None else f'"{v}"' for v in values)
    return Kind(accepts, lambda value: require(value in values, value), lambda text: named[text.lower()])


def subset(*values: str) -> Kind:
    def check(names: Setting) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(name.strip().upper() for name in require(not isinstance(names, str), names)))
        return require(set(names) <= set(values), names)

    return Kind(f"any of {', '.join(values)} (in a variable: comma-separated)", check, lambda text: text.split(","))


def enum(members: type[IntEnum]) -> Kind:
    def check(value: Setting) -> Setting:
        return members(require(isinstance(value, int) and not isinstance(value, bool), value))

    return Kind(", ".join(m.name for m in members), check, lambda text: members[text.upper()])


def number(kind: type, minimum: float, unit: str, maximum: float | None = None) -> Kind:
    def check(value: Setting) -> Setting:
        require(isinstance(value, int | float) and not isinstance(value, bool), value)
        require(value == kind(value) and value >= minimum, value)
        return require(maximum is None or value <= maximum, kind(value))

    accepts = f"{unit}, at least {minimum:g}"
    return Kind(accepts if maximum is None else f"{accepts} and at most {maximum:g}", check, kind)


def buckets() -> Kind:
    def check(given: Setting) -> tuple[tuple[str, tuple[int, ...]], ...]:
        pairs = given.items() if isinstance(given, Mapping) else given
        normal = tuple((str(name), tuple(sorted(sizes))) for name, sizes in pairs)
        for name, sizes in normal:
            require(bool(re.fullmatch(r".+\.\d+", name)) and len(sizes) > 0, given)
            require(all(type(size) is int and size > 1 for size in sizes), given)
        return normal

    def parse(text: str) -> list[tuple[str, list[int]]]:
        named = (part.split("=") for part in text.split(";"))
        return [(name.strip(), [int(size) for size in sizes.split(",")]) for name, sizes in named]

    return Kind('sizes above 1 by dimension, like {"x.1": (16, 32)} (in a variable: x.1=16,32;y.0=4)', check, parse)


def device_map() -> Kind:
    def chip(given: Setting) -> int:
        number = int(given.removeprefix("tt:")) if isinstance(given, str) else given
        return require(type(number) is int and number >= 0, number)

    def check(given: Setting) -> tuple[tuple[str, int], ...]:
        pairs = given.items() if isinstance(given, Mapping) else given
        return tuple((require(isinstance(path, str), path), chip(value)) for path, value in pairs)

    return Kind('numbers of chips by module path, like {"encoder": 0, "decoder.layers.0": 1}', check)


def by_pattern(options: Mapping[str, Kind]) -> Kind:
    """Values of several options for the names that a pattern matches. They may be in a JSON file."""

    def check(given: Setting) -> tuple[tuple[str, tuple[tuple[str, Setting], ...]], ...]:
        if isinstance(given, str | os.PathLike):
            given = _read_json(Path(given).read_text())
        pairs = given.items() if isinstance(given, Mapping) else given
        return tuple((require(isinstance(pattern, str), pattern), values(entry)) for pattern, entry in pairs)

    def values(entry: Setting) -> tuple[tuple[str, Setting], ...]:
        pairs = entry.items() if isinstance(entry, Mapping) else entry
        return tuple((name, options[name].check(value)) for name, value in pairs)

    accepts = "; ".join(f"`{name}`: {kind.accepts}" for name, kind in options.items())
    return Kind(
        f'a dict of dicts, like {{"layers.*.mlp": {{"{next(iter(options))}": ...}}}}, or the path of a JSON file with '
        f"it (in a variable: JSON, or the path). {accepts}",
        check,
        lambda text: _read_json(text) if text.lstrip().startswith("{") else text,
    )


def _read_json(text: str) -> Setting:
    """The value of a JSON text, with lists of pairs for objects, so that an object may have a name several times."""
    return json.loads(text, object_pairs_hook=list)


def named_texts() -> Kind:
    def text_of(value: Setting) -> str:
        require(isinstance(value, str | int | float), value)
        return str(value).lower() if isinstance(value, bool) else str(value)

    def check(given: Setting) -> tuple[tuple[str, str], ...]:
        pairs = given.items() if isinstance(given, Mapping) else given
        return tuple((require(bool(re.fullmatch(r"[a-z]\w*", name)), name), text_of(value)) for name, value in pairs)

    def parse(text: str) -> list[list[str]]:
        return [part.strip().split("=", 1) for part in text.split(",")]

    return Kind('texts or numbers by name, like {"math_fidelity": "hifi2"} (in a variable: a=1,b=2)', check, parse)


def mesh() -> Kind:
    def check(shape: Setting) -> tuple[int, ...]:
        sizes = tuple(require(isinstance(shape, list | tuple), shape))
        return require(len(sizes) == 2 and all(type(n) is int and n > 0 for n in sizes), sizes)

    return Kind(
        "two positive integers. (1, 1) is the mesh of the program's DTensors, or one chip if it has none. A program "
        "for another mesh has DTensors on it, or `automatic_parallelization`. `device_map` needs no mesh",
        check,
    )


def schema() -> Kind:
    def check(value: Setting) -> str:
        return str(require(bool(re.fullmatch("[0-9a-f]{8,64}", value)), value))

    return Kind("the first 8 or more hex digits of a schema hash", check)


def folder() -> Kind:
    return Kind("a path", lambda value: require(os.fspath(value) != "", os.fspath(value)))


def text() -> Kind:
    return Kind("a string", lambda value: require(isinstance(value, str), value))


def optional(kind: Kind) -> Kind:
    return Kind(
        f"None (in a variable: none) or {kind.accepts}",
        lambda value: None if value is None else kind.check(value),
        lambda text: None if text.lower() == "none" else kind.parse(text),
    )


def function() -> Kind:
    return Kind("a function", lambda value: require(callable(value), value))


def dictionary() -> Kind:
    return Kind("a dict", lambda value: require(isinstance(value, dict), value))


def own_dictionary() -> Kind:
    """A dict of the user. tt-torch's programs may write None for a new one."""
    check = dictionary().check
    return Kind("a dict, or None for an empty one", lambda value: {} if value is None else check(value))


def option(kind: Kind, default: Setting, doc: str, env: str | None = None, old_env: str | None = None) -> Any:
    """An option with an environment variable; `old_env` is tt-torch's variable, which counts if `env` is not set."""
    return dataclasses.field(default=default, metadata={"kind": kind, "doc": doc, "env": env, "old_env": old_env})


def variables(field: dataclasses.Field[Setting]) -> list[str]:
    """The environment variables of an option. The first one wins over the second."""
    return [name for name in (field.metadata.get("env"), field.metadata.get("old_env")) if name]


def checked(name: str, kind: Kind, value: Setting) -> Setting:
    """The normalised value. Raises ConfigError with the name if the kind does not accept the value."""
    try:
        return kind.check(value)
    except (ValueError, KeyError, TypeError, AttributeError, OSError):
        raise ConfigError(name, value, kind.accepts) from None


def read(variable: str, kind: Kind, text: str) -> Setting:
    """The value that the text of an environment variable gives. Raises ConfigError, which names the variable."""
    try:
        return kind.check(kind.parse(text))
    except (ValueError, KeyError, TypeError, AttributeError, OSError):
        raise ConfigError(variable, text, kind.accepts) from None


def devices() -> Kind:
    def check(given: Setting) -> list[Setting]:
        found = list(require(isinstance(given, list | tuple) and len(given) > 0, given))
        for device in found if found != [None] else ():
            require(callable(getattr(device, "load", None)), device)
        return found

    return Kind(
        "a list of devices, one for each number in `device_map`, or [None] for default ones. Each has one chip, or the "
        "chips of the program's mesh. To cut a part out of a mesh, use `mesh.submesh((rows, columns), (row, column))`",
        check,
    )


class Checked:
    """A dataclass of options. Each option is checked and normalised when it is assigned."""

    def __setattr__(self, name: str, value: Setting) -> None:
        fields: dict[str, dataclasses.Field[Setting]] = getattr(type(self), "__dataclass_fields__", {})
        if name not in fields:
            known = {*fields, *(other for other in dir(type(self)) if not other.startswith("_"))}
            raise AttributeError(f"{type(self).__name__} has no option {name!r}{nearest(name, known)}")
        super().__setattr__(name, checked(name, fields[name].metadata["kind"], value))

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{name!r} cannot be deleted; assign its default value instead")


def nearest(name: str, known: Iterable[str], prefix: str = "") -> str:
    """A question for the message about an unknown name, or "" if no known name is close.

    A `prefix` that all names share does not make them similar.
    """
    rests = {other.removeprefix(prefix): other for other in known if other != name}  # a method is no option, either
    close = difflib.get_close_matches(name.removeprefix(prefix), rests, n=1)
    return f"; did you mean {rests[close[0]]!r}?" if close else ""
