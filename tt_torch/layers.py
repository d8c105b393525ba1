"""Names of the parts of a model for the option `precision`: patterns of names, and the names of weights."""

from __future__ import annotations

import json
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from torch import nn

from tt_torch.files import write


def matches(pattern: str, names: Iterable[str]) -> bool:
    """Whether a pattern as in a shell matches a name, or the name of a module around it: `layers.*.mlp` matches
    `layers.0.mlp.up.weight`. A `*` also stands for dots."""
    return any(fnmatchcase(around, pattern) for name in names for around in _around(name))


def _around(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts) + 1)]


def dump_weight_names(model: nn.Module, path: str | Path | None = None) -> dict[str, dict[str, str | None]]:
    """The weights of a model to which `weight_dtype` applies, as a value for `precision` that changes nothing.

    These are the parameters of two or more dimensions. Embeddings, and convolutions with windows, are left out.
    `path` is a JSON file that is written, too. Edit the entries, and give the dict or the path as `precision`:

        {"layers.0.mlp.up.weight": {"weight_dtype": null}, ...}
    """
    names: dict[str, dict[str, str | None]] = {}
    for prefix, module in model.named_modules():
        if isinstance(module, nn.Embedding | nn.EmbeddingBag):
            continue
        for name, parameter in module.named_parameters(prefix, recurse=False):
            has_window = any(size != 1 for size in getattr(module, "kernel_size", ()))
            if parameter.dim() > 1 and not has_window:
                names[name] = {"weight_dtype": None}
    if path is not None:
        write(Path(path), (json.dumps(names, indent=2) + "\n").encode())
    return names
