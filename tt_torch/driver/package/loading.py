"""Runs a package. This imports no compiler."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from tt_torch.config import CompilerConfig
from tt_torch.driver.arguments import check, unshared
from tt_torch.driver.devices import Device, default_device
from tt_torch.driver.executor import CompiledProgram, Executor
from tt_torch.driver.package.manifest import CHECK, FORMAT, MAIN, Json, Manifest, from_json, signature
from tt_torch.driver.package.results import built, placed
from tt_torch.driver.program import Program
from tt_torch.dynamo.exactness.runner import ExactRunner, Plan
from tt_torch.errors import InputDtypeError, InputShapeError, PackageError, TTTorchError

MANIFEST, HASH = "tt_torch", "sha256"  # the metadata of the file


def is_package(path: str | Path) -> bool:
    """Whether a file begins as one of safetensors does. A .ttnn file has its identifier there."""
    with Path(path).open("rb") as file:
        return file.read(9)[8:] == b"{"


def read(path: str | Path) -> tuple[Manifest, dict[str, torch.Tensor]]:
    """The manifest and the tensors of a package, which are mapped from the file. All hashes are compared.

    Raises PackageError for a damaged or foreign file, and for one of a newer version.
    """
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, UnicodeDecodeError) as error:
        raise PackageError(f"{path} is damaged, or is no package: {error}") from None
    if set(metadata) != {MANIFEST, HASH}:
        raise PackageError(f"{path} is no package of tt_torch: it has no manifest")
    if hashlib.sha256(metadata[MANIFEST].encode()).hexdigest() != metadata[HASH]:
        raise PackageError(f"{path} is damaged: its manifest has changed")
    with _well_formed(path):
        return _checked(path, json.loads(metadata[MANIFEST]), tensors), tensors


def _checked(path: str | Path, data: Json, tensors: Mapping[str, torch.Tensor]) -> Manifest:
    """The manifest, whose version and whose hashes of the tensors are right."""
    if data.get("format") != FORMAT:
        raise PackageError(f"{path} has the format {data.get('format')}, but this tt_torch reads {FORMAT}; update it")
    hashes = data["sha256"]
    if set(hashes) != set(tensors):
        raise PackageError(f"{path} is damaged: its tensors are not those that its manifest lists")
    for name, tensor in tensors.items():
        if hashed(tensor) != hashes[name]:
            raise PackageError(f"{path} is damaged: {name} has changed")
    manifest = from_json(data["manifest"])
    if {f"program/{name}" for name in manifest.programs} != {name for name in tensors if name.startswith("program/")}:
        raise PackageError(f"{path} has other programs than its manifest lists")
    return manifest


@contextmanager
def _well_formed(path: str | Path) -> Iterator[None]:
    """Turns the errors of a malformed manifest into PackageErrors."""
    try:
        yield
    except TTTorchError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RuntimeError) as error:
        raise PackageError(f"{path} has a malformed manifest: {type(error).__name__}: {error}") from None


def hashed(tensor: torch.Tensor) -> str:
    """The hash of the bytes of a contiguous tensor."""
    return hashlib.sha256(tensor.reshape(-1).view(torch.uint8).numpy().data).hexdigest()


class LoadedModel:
    """A model from a package: it takes and returns what the model does, without gradients.

    Weights come from the file, or from `load_state_dict`. Buffers that the model writes to change here, not in the
    file. A call whose integers the device would not compute exactly raises InexactError: there is no eager PyTorch.
    """

    def __init__(self, path: str | Path, device: Device | None = None) -> None:
        self._manifest, tensors = read(path)
        chosen = device or default_device(CompilerConfig.from_env())
        with _well_formed(path):
            self._signature = signature(self._manifest)
            self.weights = {
                name: tensors[f"weight/{name}"].to(weight.device)
                for name, weight in self._manifest.weights.items()
                if f"weight/{name}" in tensors
            }
            self._program = _program(self._manifest, tensors, chosen)

    def load_state_dict(self, state: Mapping[str, torch.Tensor]) -> None:
        """Takes the weights from a checkpoint, by their names in the model. It may have other tensors, too.

        Raises PackageError if a weight is missing, InputShapeError and InputDtypeError if it has another form.
        """
        found = {}
        for name, weight in self._manifest.weights.items():
            if not weight.in_checkpoint:
                continue
            names = [each for each in (name, *weight.aliases) if each in state]
            if not names:
                raise PackageError(f"the checkpoint has no {name}, which is a weight of the model")
            given = state[names[0]]
            if tuple(given.shape) != weight.shape:
                raise InputShapeError(f"{names[0]} has the shape {tuple(given.shape)}, expected {weight.shape}")
            if given.dtype != weight.dtype:
                raise InputDtypeError(f"{names[0]} has the dtype {given.dtype}, expected {weight.dtype}")
            found[name] = given.detach().to(weight.device, copy=True).contiguous()
        self.weights |= found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        manifest = self._manifest
        given = check(self._signature.bind(args, kwargs), manifest.forms)
        for name in manifest.weights.keys() - self.weights.keys():
            raise PackageError(f"the file has no weights: load_state_dict must give them, such as {name}")
        inputs = [(self.weights if weight else given)[name] for weight, name in manifest.inputs]
        unshared(inputs, [name for _, name in manifest.inputs], manifest.written)
        with torch.no_grad():
            results = self._program([*[None] * manifest.tokens, *inputs])[manifest.tokens :]
            for position, value in zip(manifest.written, results, strict=False):
                inputs[position].copy_(value)
            first = len(manifest.written)
            placed_results = placed(results[first : first + len(manifest.places)], manifest.places, inputs)
        return built(manifest.result, {"result": placed_results, "argument": given, "weight": self.weights})


def _program(manifest: Manifest, tensors: Mapping[str, torch.Tensor], device: Device) -> Program:
    executors = {name: _executor(name, manifest, tensors, device) for name in manifest.programs}
    plan = Plan(manifest.limits, checked=manifest.checked)
    runner = ExactRunner(executors[MAIN], None, plan, manifest.resident, executors.get(CHECK))
    return Program(manifest.interface, runner, manifest.checks, manifest.views)


def _executor(name: str, manifest: Manifest, tensors: Mapping[str, torch.Tensor], device: Device) -> Executor:
    form = manifest.programs[name]
    compiled = CompiledProgram(
        bytes(tensors[f"program/{name}"].numpy()),
        [tensors[f"constant/{name}/{i}"] for i in range(form.constants)],
        form.kinds,
        form.output_dtypes,
        form.output_strides,
        form.output_devices,
        form.compare_weights,
    )
    return Executor(compiled, device)
