"""Reads the `dynamic_shapes` of torch.export: https://docs.pytorch.org/docs/stable/export.html."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch.export import Dim

from tt_torch.driver.arguments import Call, parts
from tt_torch.driver.containers import opened, with_tensors
from tt_torch.driver.family import Dimension, Family, listed
from tt_torch.errors import ConfigError, InputShapeError
from tt_torch.option_kinds import nearest

MOST_PROGRAMS = 32  # of a family: each costs the time of a compilation
WITHOUT_END = 2**40  # more sizes than any range that a user means to limit
FORMS = "None, a dict, a list or a tuple of the same structure as the arguments"
DynamicShapes: TypeAlias = Mapping[str, Any] | Sequence[Any]  # of all arguments
Spec: TypeAlias = Any  # what a user gives for an argument or a dimension
Found: TypeAlias = tuple[Dimension, Dim]  # a dimension, and the Dim that has its name


def family_of(dynamic_shapes: DynamicShapes, sizes: Mapping[str, Sequence[int]], call: Call) -> Family:
    """The family for the Dims of `dynamic_shapes`. A Dim has its `sizes`, by its name, or all sizes in its range.

    Raises ConfigError for another form of these, for examples that do not fit, and for a family of too many programs.
    """
    found = list(_paired(list(call.arguments.items()), dynamic_shapes, ""))
    roots: dict[str, Dim] = {}
    for place, root in found:
        other = roots.setdefault(place.name, root)
        if (other.min, other.max) != (root.min, root.max):
            raise _refused(place.argument, root, f"one range for each name, and there is also {other!r}")
    if not roots:
        raise ConfigError("dynamic_shapes", dynamic_shapes, "at least one torch.export.Dim")
    for name in sizes:
        if name not in roots:
            raise ConfigError("sizes", name, f"the names of Dims: {', '.join(roots)}{nearest(name, roots)}")
    dimensions = [place for place, _ in found]
    ranges = {name: range(max(root.min, 1), _end(root)) for name, root in roots.items()}
    try:
        Family(ranges, dimensions).chosen(parts(call))
    except InputShapeError as error:
        raise ConfigError("dynamic_shapes", dynamic_shapes, f"Dims that the examples fit: {error}") from None
    several = {name: _sizes(name, ranges[name], sizes) for name in roots}
    if Family(several, dimensions).count > MOST_PROGRAMS:
        name = max(several, key=lambda name: len(several[name]))
        narrow = f"narrow the range of Dim({name!r}, min=..., max=...), or name some sizes by sizes={{{name!r}: (...)}}"
        counts = " * ".join("unlimited" if len(each) > WITHOUT_END else str(len(each)) for each in several.values())
        most = f"at most {MOST_PROGRAMS} programs, one for each size"
        raise ConfigError("dynamic_shapes", f"{counts} programs", f"{most}; {narrow}")
    return Family({name: tuple(accepted) for name, accepted in several.items()}, dimensions)


def resized(call: Call, family: Family, sizes: Mapping[str, int]) -> Call:
    """The call with tensors of the sizes of a member. The values of new tensors do not matter."""
    wanted: dict[str, dict[int, int]] = {}
    for place in family.dimensions:
        wanted.setdefault(place.argument, {})[place.dimension] = place.of(sizes[place.name])

    def change(name: str, x: torch.Tensor) -> torch.Tensor:
        shape = [wanted.get(name, {}).get(i, size) for i, size in enumerate(x.shape)]
        return x if shape == list(x.shape) else _like(x, shape)

    arguments = {name: with_tensors(value, change, name) for name, value in call.arguments.items()}
    return Call(call.signature, arguments)


def _like(x: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """A dense tensor of this shape. Its dimensions have the same order in memory as the dimensions of `x`.

    It requires a gradient if `x` does. It is a leaf if `x` is one, and otherwise the result of an op.
    """
    strides = x.stride()
    order = sorted(range(x.dim()), key=lambda i: -strides[i])
    memory = torch.empty([shape[i] for i in order], dtype=x.dtype, device=x.device)
    like = memory.permute([order.index(i) for i in range(x.dim())]).requires_grad_(x.requires_grad)
    return like if x.is_leaf else like.clone()


def _sizes(name: str, accepted: range, given: Mapping[str, Sequence[int]]) -> Sequence[int]:
    """The sizes of a Dim in ascending order."""
    if name not in given:
        return accepted
    sizes = given[name]
    if (
        not isinstance(sizes, (list, tuple, range))
        or not sizes
        or any(type(size) is not int or size not in accepted for size in sizes)
    ):
        raise ConfigError("sizes", dict(given), f"a list of sizes of {name} in its range, {listed(accepted)}")
    return sorted(set(sizes))


def _end(root: Dim) -> int:
    return root.max + 1 if isinstance(root.max, int) else 2 * WITHOUT_END  # without an end, it is an object of sympy


def _paired(values: Sequence[tuple[str, Any]], spec: Spec, name: str) -> Iterator[Found]:
    """The dynamic dimensions of the parts of a container, or of all arguments, for which `name` is empty."""
    if spec is None:
        return
    known = [suffix for suffix, _ in values]
    if isinstance(spec, Mapping):
        given = {_suffix(key, known, name): of_part for key, of_part in spec.items()}
    elif isinstance(spec, (list, tuple)) and len(spec) <= len(known):
        given = dict(zip(known, spec, strict=False))
    else:
        raise _refused(name, spec, FORMS)
    for suffix, value in values:
        yield from _of_part(value, given.get(suffix), name + suffix)


def _suffix(key: object, known: Sequence[str], name: str) -> str:
    """The name of the part with this key, as `parts_of` names it: `['ids']`, `[0]`, `.ids`, or that of an argument."""
    for suffix in (f"[{key!r}]", f".{key}") if name else (key,):
        if suffix in known:
            return str(suffix)
    plain = [suffix.removeprefix(".").strip("[]'\"") for suffix in known]
    raise _refused(name, key, f"{', '.join(plain)}{nearest(str(key), plain)}")


def _of_part(value: Any, spec: Spec, name: str) -> Iterator[Found]:
    if isinstance(value, torch.Tensor):
        yield from _of_tensor(value, spec, name)
    elif container := opened(value):
        yield from _paired(container.parts, spec, name)
    elif spec is not None:
        raise _refused(name, spec, f"None for a {type(value).__name__}")


def _of_tensor(x: torch.Tensor, spec: Spec, name: str) -> Iterator[Found]:
    if isinstance(spec, (list, tuple)) and len(spec) == x.dim():
        spec = dict(enumerate(spec))
    if spec is not None and not isinstance(spec, Mapping):
        raise _refused(name, spec, f"None, a dict of dimensions, or {x.dim()} dimensions")
    for dimension, dim in (spec or {}).items():
        if dimension not in range(x.dim()):
            raise _refused(name, dimension, f"the dimensions 0 .. {x.dim() - 1}")
        if isinstance(dim, Dim):
            root = getattr(dim, "root", dim)  # a derived Dim, such as 2 * d, has a root and a function
            of = getattr(dim, "fn", lambda size: size)
            factor = of(1) - of(0)
            yield Dimension(name, dimension, root.__name__, factor, of(0)), root
        elif dim not in (None, Dim.STATIC, x.shape[dimension]):
            accepted = "a Dim with a name and a range, such as Dim('batch', min=1, max=8), Dim.STATIC, or the size"
            raise _refused(f"{name}[{dimension}]", dim, f"{accepted} {x.shape[dimension]}")


def _refused(name: str, got: Spec, accepted: str) -> ConfigError:
    return ConfigError(f"dynamic_shapes of {name or 'the model'}", got, accepted)
