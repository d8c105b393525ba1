"""Gives a module the weights of safetensors files. They are mapped from the files, so that they take no memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from tt_torch.errors import TensorFileError
from tt_torch.torch_private.distributed import one_process

SHOWN = 3  # names in an error


def weights_in(paths: Sequence[Path], model: torch.nn.Module) -> dict[int, torch.Tensor]:
    """The weights that files have for a module, by the `id` of the tensor that each replaces. Files use the names of
    its `state_dict`. Parameters that are DTensors get the values of their parts when a program needs them.

    The files can have a tied weight under any of its names. Raises TensorFileError for weights that are missing or
    unexpected, or have another shape or dtype. Raises it also for tied weights with different values, and for a tensor
    that stays on `meta`.
    """
    files = ", ".join(map(str, paths))
    found = _read(paths)
    names: dict[int, list[str]] = {}
    forms = {name: x for name, x in model.state_dict(keep_vars=True).items() if isinstance(x, torch.Tensor)}
    for name, x in forms.items():
        names.setdefault(id(x), []).append(name)
    _require(files, "does not have", [own[0] for own in names.values() if not found.keys() & {*own}])
    _require(files, "has, and the model does not have,", [name for name in found if name not in forms])
    made = {number: _weight(files, own, forms[own[0]], found) for number, own in names.items()}
    for path, module in model.named_modules(remove_duplicate=False):
        for name, x in [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]:
            if id(x) not in made and x.is_meta:
                advice = "it is in no checkpoint, so give it values before, such as by making its module anew"
                raise TensorFileError(files, f"{path}.{name} is on meta, and stays so; {advice}".lstrip("."))
    return made


def _read(paths: Sequence[Path]) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    for path in paths:
        try:
            with safe_open(path, framework="pt") as file:
                own = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, OSError) as error:
            raise TensorFileError(str(path), f"it cannot be read: {error}") from None
        if twice := own.keys() & found.keys():
            raise TensorFileError(str(path), f"another file has {min(twice)}, too")
        found |= own
    return found


def _require(files: str, problem: str, names: Sequence[str]) -> None:
    if names:
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        raise TensorFileError(files, f"it {problem} {', '.join(names[:SHOWN])}{more}")


def _weight(files: str, names: Sequence[str], form: torch.Tensor, found: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """The weight with these names in place of `form`. A buffer gets memory of its own, because programs write to it."""
    first, *others = [name for name in names if name in found]
    value = found[first]
    for name in others:
        if not torch.equal(found[name], value):
            raise TensorFileError(files, f"{first} and {name} are one weight of the model, but have different values")
    for what, got, wanted in (("shape", tuple(value.shape), tuple(form.shape)), ("dtype", value.dtype, form.dtype)):
        if got != wanted:
            raise TensorFileError(files, f"{first} has the {what} {got}; the model has {wanted}")
    door = one_process()
    split = door and isinstance(form, door.DTensor)
    if not isinstance(form, torch.nn.Parameter):
        return door.distributed(value.clone(), form) if split else value.clone()
    return door.deferred(value, form, first) if split else torch.nn.Parameter(value, form.requires_grad)


def assign(model: torch.nn.Module, made: Mapping[int, torch.Tensor]) -> None:
    """Puts new weights into a module. Each has the `id` of the tensor that it replaces as its key."""
    for module in model.modules():
        for name, x in [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]:
            if id(x) in made:
                setattr(module, name, made[id(x)])
