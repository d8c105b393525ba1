"""Tensors by name in `.npz` and `.safetensors` files."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import safetensors.torch as safetensors
import torch
import typer
from safetensors import SafetensorError

from tt_torch.errors import TensorFileError
from tt_torch.files import write_by

SUFFIXES = (".npz", ".safetensors")


def check_suffix(path: Path, option: str) -> None:
    """Raises BadParameter for a file of another kind."""
    if path.suffix not in SUFFIXES:
        raise typer.BadParameter(f"{path} does not end in {' or '.join(SUFFIXES)}", param_hint=option)


def read(path: Path) -> dict[str, torch.Tensor]:
    """The tensors of a file. Nothing in it is unpickled. Raises TensorFileError for a damaged or foreign file."""
    try:
        if path.suffix == ".safetensors":
            return safetensors.load_file(path)
        with np.load(path, allow_pickle=False) as arrays:
            return {name: torch.from_numpy(arrays[name]) for name in arrays.files}
    except (SafetensorError, zipfile.BadZipFile, ValueError, TypeError, EOFError, AttributeError) as error:
        raise TensorFileError(str(path), error) from None


def write(path: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    """Writes a file completely or not at all. Raises TensorFileError for a dtype that such a file cannot hold."""
    own = {name: x.detach().cpu().resolve_conj().resolve_neg().clone().contiguous() for name, x in tensors.items()}
    try:
        if path.suffix == ".safetensors":
            write_by(path, lambda file: safetensors.save_file(own, file))
        else:
            arrays = {name: x.numpy() for name, x in own.items()}
            write_by(path, lambda file: _save(file, arrays))
    except (SafetensorError, TypeError, KeyError) as error:  # NumPy has no bfloat16
        raise TensorFileError(str(path), error) from None


def _save(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    with path.open("wb") as file:  # NumPy would add .npz to the name
        np.savez(file, allow_pickle=False, **arrays)


def by_name(names: list[str], given: Mapping[str, torch.Tensor], path: str) -> dict[str, torch.Tensor]:
    """The tensors with these names, in this order. The names of `numpy.savez(file, a, b)`, which are `arr_0` and so
    on, stand for positions.

    Raises TensorFileError if a tensor is missing, or if there are others.
    """
    if given.keys() == {f"arr_{i}" for i in range(len(names))}:
        return {name: given[f"arr_{i}"] for i, name in enumerate(names)}
    if given.keys() != set(names):
        raise TensorFileError(path, f"it has {_listed(given)}, expected {_listed(names)}")
    return {name: given[name] for name in names}


def _listed(names: Mapping[str, object] | list[str]) -> str:
    return ", ".join(map(repr, names)) or "nothing"
