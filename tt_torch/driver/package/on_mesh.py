"""Packages of programs for several chips.

A package has whole weights, takes whole arguments and gives whole results. Its programs say how the chips have them. So
it needs no mesh of PyTorch when it is loaded.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import torch
from torch.distributed.device_mesh import DeviceMesh
from torch.fx import Node

from tt_torch.driver.compilation import Compilation, Input
from tt_torch.driver.executor import Executor
from tt_torch.driver.package.manifest import CHECK, Manifest, ProgramForm
from tt_torch.driver.shards import MeshExecutor
from tt_torch.errors import PackagingError
from tt_torch.flow import MAIN
from tt_torch.runtime import Binary
from tt_torch.runtime.mesh import REPLICATED, Sharding, whole_shape
from tt_torch.torch_private.distributed import one_process

PER_CHIP = "has a value per chip, and a package has whole tensors; DTensor.from_local() says how they make one"


def tensors_among(inputs: Sequence[Input]) -> list[Input]:
    """The inputs of a captured graph without meshes."""
    return [given for given in inputs if isinstance(given.tensor, torch.Tensor)]


def as_traced(inputs: Sequence[Input]) -> list[Input | None]:
    """The inputs as AOTAutograd has them, with None for each mesh. AOTAutograd takes a DTensor apart into the part of
    a chip and the mesh."""
    found: list[Input | None] = []
    for given in inputs:
        found.append(given if isinstance(given.tensor, torch.Tensor) else None)
        if _is_dtensor(given.tensor):
            found.append(None)
    return found


def whole(x: torch.Tensor) -> torch.Tensor:
    """The whole tensor of a weight, on the CPU if it is a DTensor."""
    return one_process().whole(x).detach().cpu() if _is_dtensor(x) else x


def _is_dtensor(x: object) -> bool:
    door = one_process()
    return bool(door) and isinstance(x, door.DTensor)


def on_mesh(
    manifest: Manifest,
    made: Compilation,
    inputs: Sequence[Input],
    outputs: Sequence[Node],
    programs: Mapping[str, Executor],
) -> Manifest:
    """The manifest of a program for several chips, from that of the program of a chip.

    Raises PackagingError for a value that is not whole on the chips, nor split evenly.
    """
    if made.backward:
        raise PackagingError("the programs of training are for several chips, and a package holds those of one chip")
    old, traced, tokens = manifest.interface, as_traced(inputs), manifest.tokens
    places = [place for place in old.places if isinstance(place, int)]
    if old.strides or manifest.views or places != old.places:
        raise PackagingError("a result is a view, of a kind that a package for several chips cannot make")
    new = {i: number for number, i in enumerate(i for i, given in enumerate(traced) if given)}
    given = _shardings_of_inputs(programs[MAIN], [traced[i - tokens] for i in old.inputs])
    of_written = dict(zip((i - tokens for i in old.inputs), given, strict=False))
    made_of = [of_written.get(i, REPLICATED) for i in manifest.written] + [_of_output(node) for node in outputs]
    unread = set(places[len(made_of) : len(places) - len(manifest.checks)])  # what views of several results need
    made_in = dict(zip(places, made_of, strict=False))
    forms = {MAIN: (given, made_in, unread), CHECK: ([given[i] for i in manifest.checked], {}, set[int]())}
    split = {x.name for x in tensors_among(inputs) if _is_dtensor(x.tensor)}
    weights = {n: replace(x, device=torch.device("cpu")) if n in split else x for n, x in manifest.weights.items()}
    interface = replace(
        old,
        inputs=[new[i - tokens] + tokens for i in old.inputs],
        outputs=[x for x in old.outputs if not isinstance(x, DeviceMesh)],
    )
    return replace(
        manifest,
        interface=interface,
        written=[new[i] for i in manifest.written],
        programs={name: _placed(form, programs[name], *forms[name]) for name, form in manifest.programs.items()},
        weights=weights,
    )


def _placed(
    form: ProgramForm,
    executor: Executor,
    given: Sequence[Sharding],
    made: Mapping[int, Sharding],
    unread: Collection[int],
) -> ProgramForm:
    """The form of a program with the shardings of its inputs and results. Raises PackagingError for a result that
    differs from chip to chip in another way, unless nobody reads it."""
    assert isinstance(executor, MeshExecutor)
    mesh = Binary(executor.binary).programs[0].mesh_shape
    results = [made.get(i, REPLICATED) for i in range(len(form.output_dtypes))]
    for i, reasons in executor.each.items():
        if i not in unread and any(mesh[axis] > 1 and results[i][axis] is None for _, axis in reasons):
            raise PackagingError(f"a result {PER_CHIP}")
    rest = [REPLICATED] * (len(form.kinds) - len(given))  # seeds and constants
    return replace(form, output_strides=None, shardings=([*given, *rest], results))


def _shardings_of_inputs(executor: Executor, inputs: Sequence[Input | None]) -> list[Sharding]:
    door, found = one_process(), []
    mesh = Binary(executor.binary).programs[0].mesh_shape
    for given, spec in zip(inputs, executor.executable.inputs, strict=False):
        assert given
        x, sharding = given.tensor, REPLICATED
        if door and isinstance(x, (door.DTensor, door.LocalTensor)):
            sharding = _of_tensor(x, given.name)
        elif list(x.shape) != spec.shape[: x.dim()]:  # a part of the batch
            sharding = (0, 0)
        if whole_shape(spec.shape, sharding, mesh)[: x.dim()] != tuple(x.shape):
            raise PackagingError(f"the chips have parts of {given.name} of a kind that a package cannot hold")
        found.append(sharding)
    return found


def _of_output(node: Node) -> Sharding:
    x = node.meta["example_value"]
    return _of_tensor(x, "a result") if _is_dtensor(x) else REPLICATED


def _of_tensor(x: torch.Tensor, name: str) -> Sharding:
    if not _is_dtensor(x):
        raise PackagingError(f"{name} {PER_CHIP}")
    found: Sharding | None = one_process().sharding_of(x)
    if found is None:
        raise PackagingError(f"{name} has the placements {x.placements}, which a package cannot hold")  # type: ignore[attr-defined]
    return found
