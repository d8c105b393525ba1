"""The content of a package, and how it becomes a file or bytes. This imports no compiler."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import safetensors.torch as safetensors
import torch
from safetensors import SafetensorError, safe_open

from tt_torch.driver.family import Family
from tt_torch.driver.package.consistency import consistent
from tt_torch.driver.package.manifest import (
    BACKWARD_FLOW_FORMAT,
    FAMILY_FORMAT,
    FORMAT,
    Json,
    Manifest,
    Weight,
    family_from_json,
    family_to_json,
    format_of,
    from_json,
    program_names,
    to_json,
)
from tt_torch.errors import PackageError, TTTorchError
from tt_torch.files import write_by
from tt_torch.torch_private.tensors import storage_of

MANIFEST, HASH = "tt_torch", "sha256"  # the metadata of the file
SECOND = "second/"
Named = TypeVar("Named")


@dataclass(frozen=True)
class Package:
    """The content of a file. There are several manifests if there is a family, one for each member.

    The tensors have the names `program/NAME` and `constant/NAME/NUMBER` with the name of a program, and `weight/NAME`
    with the name of a weight. A program of a member of a family has a name such as `3/main`. A program of a backward
    graph has a name such as `backward/main` or `3/backward/main`.

    `second` has the same members in a form in which the host computes 64-bit integers. It takes the weights of this
    package. Names of its tensors in a file begin with `second/`.
    """

    manifests: Sequence[Manifest]
    tensors: Mapping[str, torch.Tensor]
    family: Family | None = None
    second: Package | None = None

    def __deepcopy__(self, memo: object) -> Package:
        """A package that shares no memory with this one."""
        manifests = [from_json(to_json(manifest)) for manifest in self.manifests]
        tensors = {name: x.clone() for name, x in self.tensors.items()}
        return Package(manifests, tensors, deepcopy(self.family), deepcopy(self.second))

    def tensors_in_file(self) -> dict[str, torch.Tensor]:
        """The tensors, also those of the second form, by their names in a file."""
        return dict(self.tensors) | {
            SECOND + name: x for name, x in (self.second.tensors if self.second else {}).items()
        }

    def member(self, number: int) -> tuple[Manifest, str]:
        """A manifest, and the beginning of the names of its programs."""
        return self.manifests[number], f"{number}/" if self.family else ""

    def alone(self, number: int) -> Package:
        """The package of a member."""
        manifest, prefix = self.member(number)
        return Package([manifest], {f"program/{x}": self.tensors[f"program/{prefix}{x}"] for x in manifest.programs})

    def weights(self) -> dict[str, Weight]:
        """The weights of all programs. Programs share the weights of the same name."""
        return {name: weight for manifest in self.manifests for name, weight in manifest.weights.items()}


def joined(members: Sequence[Package], family: Family | None) -> Package:
    """The package of all members of a family, which share their weights. Without a family, there is one member."""
    if family is None:
        return members[0]
    tensors = {
        name.replace("program/", f"program/{number}/", 1): x
        for number, member in enumerate(members)
        for name, x in member.tensors.items()
    }
    return Package([member.manifests[0] for member in members], tensors, family)


class Tensors(Mapping[str, torch.Tensor]):
    """The tensors of a file. Each one is compared with its hash when it is first read, so a load is quick.

    Raises PackageError for a tensor that has changed, and if other tensors than these have hashes.
    """

    def __init__(self, origin: str, tensors: Mapping[str, torch.Tensor], hashes: Mapping[str, str]) -> None:
        if set(hashes) != set(tensors):
            raise PackageError(f"{origin} is damaged: its tensors are not those that its manifest lists")
        self._origin, self._tensors, self._hashes, self._equal = origin, tensors, hashes, set[str]()

    def __getitem__(self, name: str) -> torch.Tensor:
        tensor = self._tensors[name]
        if name not in self._equal:
            if hashed(tensor) != self._hashes[name]:
                raise PackageError(f"{self._origin} is damaged: {name} has changed")
            self._equal.add(name)
        return tensor

    def __contains__(self, name: object) -> bool:  # Mapping's own __contains__ would read the tensor
        return name in self._tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)


def write(path: str | Path, package: Package) -> None:
    """Writes a file completely or not at all. The tensors are not copied. Raises OSError if it cannot be written."""
    tensors = package.tensors_in_file()
    try:
        write_by(path, lambda file: safetensors.save_file(tensors, file, _metadata(package, tensors)))
    except SafetensorError as error:
        raise OSError(f"{path} cannot be written: {error}") from error


def to_bytes(package: Package) -> bytes:
    """The content of the file that `write` makes."""
    tensors = package.tensors_in_file()
    return safetensors.save(tensors, _metadata(package, tensors))


def _opened(path: str | Path) -> Any:
    """The open file. safetensors opens it twice, for its header and for its tensors. If it was replaced in between, it
    is opened again."""
    while True:
        before = os.stat(path)
        file = safe_open(path, framework="pt")
        if os.path.samestat(before, os.stat(path)):
            return file


def read(path: str | Path) -> Package:
    """The package in a file, whose tensors are mapped from the file. Inference mode is off, because tensors that are
    made in it have no versions, and no change of a weight would be seen.

    Raises PackageError for a damaged or foreign file, and for a file of a newer version.
    """
    with _damage(path), torch.inference_mode(False), _opened(path) as file:
        metadata = file.metadata() or {}
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    return _package(str(path), metadata, tensors)


def binaries(path: Path) -> dict[str, bytes]:
    """The binaries in a .ttpkg or .ttnn file, by the names of the programs. The name is "" for a .ttnn file.

    Raises PackageError for a damaged package, and OSError for a file that cannot be read.
    """
    if not is_package(path):
        return {"": path.read_bytes()}
    begin, tensors = "program/", read(path).tensors
    return {name.removeprefix(begin): bytes(x.numpy()) for name, x in tensors.items() if name.startswith(begin)}


def from_bytes(data: bytes) -> Package:
    """The package in the bytes of a file. Raises what `read` raises."""
    return _package("the package", *unpacked("the package", data))


def unpacked(origin: str, data: bytes) -> tuple[dict[str, str], dict[str, torch.Tensor]]:
    """The metadata and the tensors in the bytes of a file. Raises PackageError for a damaged or foreign file."""
    with _damage(origin), well_formed(origin), torch.inference_mode(False):
        tensors = safetensors.load(data)
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        return header.get("__metadata__", {}), tensors


def is_package(path: str | Path) -> bool:
    """Whether a file begins as a file of safetensors does, or has the name of a package, whatever is in it.

    A .ttnn file has its identifier at this place.
    """
    with Path(path).open("rb") as file:
        return file.read(9)[8:] == b"{" or Path(path).suffix == ".ttpkg"


def as_json(package: Package) -> Json:
    """The manifest, or the family and its manifests, with the format."""
    manifests = [to_json(manifest) for manifest in package.manifests]
    found: Json = {"format": _format(package)}
    if package.family:
        found |= {"family": family_to_json(package.family), "manifests": manifests}
    else:
        found |= {"manifest": manifests[0]}
    return found | ({"second": as_json(package.second)} if package.second else {})


def _format(package: Package) -> int:
    of_one = format_of(package.manifests[0])
    return FAMILY_FORMAT if package.family and of_one == FORMAT else of_one


def _metadata(package: Package, tensors: Mapping[str, torch.Tensor]) -> dict[str, str]:
    return sealed(as_json(package), tensors)


def sealed(data: Mapping[str, Json], tensors: Mapping[str, torch.Tensor]) -> dict[str, str]:
    """The metadata of a file with these data and tensors: the data as JSON, with all hashes."""
    text = json.dumps({**data, "sha256": {name: hashed(tensor) for name, tensor in tensors.items()}})
    return {MANIFEST: text, HASH: hashlib.sha256(text.encode()).hexdigest()}


def unsealed(origin: str, metadata: Mapping[str, str]) -> Json:
    """The data of a file. Raises PackageError if there are none, or if their hash is wrong."""
    if set(metadata) != {MANIFEST, HASH}:
        raise PackageError(f"{origin} is no package of tt_torch: it has no manifest")
    if hashlib.sha256(metadata[MANIFEST].encode()).hexdigest() != metadata[HASH]:
        raise PackageError(f"{origin} is damaged: its manifest has changed")
    with well_formed(origin):
        return json.loads(metadata[MANIFEST])


def _package(origin: str, metadata: Mapping[str, str], tensors: Mapping[str, torch.Tensor]) -> Package:
    """A package whose manifest has the right hash and fits the tensors."""
    data = unsealed(origin, metadata)
    with well_formed(origin):
        own, inner = (Tensors(origin, *each) for each in zip(_split(tensors), _split(data["sha256"]), strict=True))
        package = _of_json(origin, data, own)
        if "second" not in data:
            return package
        second = _of_json(origin, data["second"], inner)
        forms = [[manifest.forms for manifest in each.manifests] for each in (package, second)]
        if forms[0] != forms[1] or not second.weights().keys() <= package.weights().keys():
            raise ValueError("the second form has other arguments or weights")
        return replace(package, second=second)


def _split(named: Mapping[str, Named]) -> tuple[dict[str, Named], dict[str, Named]]:
    """Two parts: what the package itself has, and what its second form has."""
    inner = {name.removeprefix(SECOND): x for name, x in named.items() if name.startswith(SECOND)}
    return {name: x for name, x in named.items() if not name.startswith(SECOND)}, inner


def _of_json(origin: str, data: Json, tensors: Mapping[str, torch.Tensor]) -> Package:
    """The package of these data and tensors, without a second form. Raises what `well_formed` turns into errors."""
    if data.get("format") not in range(FORMAT, BACKWARD_FLOW_FORMAT + 1):
        known = f"but this tt_torch reads {FORMAT} to {BACKWARD_FLOW_FORMAT}; update it"
        raise PackageError(f"{origin} has the format {data.get('format')}, {known}")
    is_family = "family" in data
    manifests = [consistent(from_json(each)) for each in (data["manifests"] if is_family else [data["manifest"]])]
    family = family_from_json(data["family"], manifests) if is_family else None
    package = Package(manifests, tensors, family)
    members = map(package.member, range(len(manifests)))
    listed = {f"program/{prefix}{name}" for manifest, prefix in members for name in program_names(manifest)}
    if listed != {name for name in tensors if name.startswith("program/")}:
        raise PackageError(f"{origin} has other programs than its manifest lists")
    if data["format"] != _format(package):
        raise ValueError("the content has another format")
    return package


@contextmanager
def _damage(origin: str | Path) -> Iterator[None]:
    """Turns the errors of a file that is cut or foreign into PackageErrors."""
    try:
        yield
    except (SafetensorError, UnicodeDecodeError) as error:
        raise PackageError(f"{origin} is damaged, or is no package: {error}") from None


@contextmanager
def well_formed(origin: str) -> Iterator[None]:
    """Turns the errors of a malformed manifest into PackageErrors."""
    try:
        yield
    except TTTorchError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RuntimeError) as error:
        raise PackageError(f"{origin} has a malformed manifest: {type(error).__name__}: {error}") from None


def hashed(tensor: torch.Tensor) -> str:
    """The hash of the bytes of a tensor. In memory, a single element may have any strides."""
    elements = tensor.contiguous().as_strided([tensor.numel()], [1])
    return hashlib.sha256(elements.view(torch.uint8).numpy().data).hexdigest()


def separate(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The tensors in the form of a file: contiguous, on the CPU, and without common memory. Most are not copied."""
    taken: dict[int, list[range]] = {}  # the addresses of each storage that earlier tensors have
    found = {}
    for name, x in tensors.items():
        own = x.detach().cpu().resolve_conj().resolve_neg().contiguous()
        span = range(own.data_ptr(), own.data_ptr() + own.nbytes)
        spans = taken.setdefault(storage_of(own), [])
        if any(span.start < other.stop and other.start < span.stop for other in spans):
            own = own.clone()
        spans.append(span)
        found[name] = own
    return found
