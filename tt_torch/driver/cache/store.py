"""Entries of the compile cache in a folder, which many processes may use at the same time.

An entry is one file. It is written whole or not at all, and its hashes are compared when it is read. So a killed
process, a full disk or a damaged file costs a compilation, and never more. This module imports no compiler.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import torch
from safetensors.torch import save

from tt_torch import user_code
from tt_torch.config import CompilerConfig
from tt_torch.driver.package.contents import Tensors, sealed, separate, unpacked, unsealed, well_formed
from tt_torch.driver.package.manifest import Json
from tt_torch.errors import EnvironmentMissingError, PackageError
from tt_torch.files import write
from tt_torch.torch_private import cache_artifacts

Content: TypeAlias = tuple[dict[str, Json], dict[str, torch.Tensor]]  # data and tensors
FORM = "compile cache 1"  # is changed when a reader of the old form would misread an entry
SUFFIX = ".ttcache"
HITS, MISSES = "hits", "misses"  # the files that count; each hit or miss adds one byte


class CacheWarning(UserWarning):
    """The compile cache cannot use its folder, or a file in it. Programs are compiled as if there were no cache."""


@dataclass(frozen=True)
class Stats:
    """The content of a cache, and how often processes found an entry, or did not, since the last `clear`."""

    entries: int
    bytes: int
    hits: int
    misses: int


@dataclass(frozen=True)
class Store:
    """A folder of entries. They take at most `bound` bytes. A key is a SHA-256 in hexadecimal digits."""

    folder: Path
    bound: int

    def read(self, key: str) -> Content | None:
        """The data and the tensors of an entry, or None. A damaged entry is removed, with a warning."""
        path, found = self._path(key), None
        try:
            content = path.read_bytes()
            found = _opened(path, content, key)
            cache_artifacts.record(key, content)
            with contextlib.suppress(OSError):  # a folder may be read-only, or another process has removed the file
                os.utime(path)
        except FileNotFoundError:
            found = None
        except (PackageError, OSError) as error:
            found = None
            _tell(f"an entry of the compile cache cannot be used, and is made again: {error}")
            self._remove(path)
        self._count(HITS if found else MISSES)
        return found

    def write(self, key: str, data: Mapping[str, Json], tensors: Mapping[str, torch.Tensor]) -> None:
        """Keeps an entry. If there are too many bytes then, the least recently used entries are removed."""
        own = separate(tensors)
        content = save(own, sealed({**data, "format": FORM, "key": key}, own))
        cache_artifacts.record(key, content)
        self.write_file(key, content)

    def write_file(self, key: str, content: bytes) -> None:
        """Keeps an entry whose file has this content. An entry above the bound is left out."""
        if len(content) > self.bound:
            return
        try:
            write(self._path(key), content)
            self._evict()
        except OSError as error:
            _tell(f"the compile cache cannot write to {self.folder}, so nothing is kept: {error}")

    def stats(self) -> Stats:
        files = self._files()
        return Stats(len(files), sum(size for _, size, _ in files), *(self._counted(n) for n in (HITS, MISSES)))

    def clear(self) -> Stats:
        """Removes all entries and the counts; returns what there was. Other files of the folder stay."""
        before = self.stats()
        for path in [*(path for _, _, path in self._files()), self.folder / HITS, self.folder / MISSES]:
            path.unlink(missing_ok=True)
        return before

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{SUFFIX}"

    def _files(self) -> list[tuple[int, int, Path]]:
        """When each entry was last used, in ns; its bytes; and its file. The least recently used one is the first."""
        found = []
        for path in self.folder.glob(f"*{SUFFIX}"):
            with contextlib.suppress(FileNotFoundError):  # another process may have removed it
                facts = path.stat()
                found.append((facts.st_mtime_ns, facts.st_size, path))
        return sorted(found)

    def _evict(self) -> None:
        files = self._files()
        excess = sum(size for _, size, _ in files) - self.bound
        for _, size, path in files:
            if excess <= 0:
                return
            path.unlink(missing_ok=True)
            excess -= size

    def _remove(self, path: Path) -> None:
        with contextlib.suppress(OSError):  # it stays a miss until somebody can write here
            path.unlink()

    def _count(self, name: str) -> None:
        """Adds one byte to a file. The system does this as a whole, also for many processes at once."""
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            with (self.folder / name).open("ab", buffering=0) as file:
                file.write(b".")

    def _counted(self, name: str) -> int:
        path = self.folder / name
        return path.stat().st_size if path.exists() else 0


def _opened(path: Path, content: bytes, key: str) -> Content:
    """The data and the tensors of a file. All hashes are compared. Raises PackageError for another file."""
    metadata, tensors = unpacked(str(path), content)
    data = unsealed(str(path), metadata)
    with well_formed(str(path)):
        if data["format"] != FORM or data["key"] != key:
            raise PackageError(f"{path} is the entry of another key, or of another version")
        return data, dict(Tensors(str(path), tensors, data["sha256"]))


def store_of(config: CompilerConfig) -> Store | None:
    """The compile cache that the options name; None if it is off, here or for all compilers of PyTorch."""
    if not config.cache_size or torch.compiler.config.force_disable_caches:
        return None
    try:
        return Store(folder_of(config), config.cache_size)
    except EnvironmentMissingError as error:
        _tell(str(error))
        return None


def folder_of(config: CompilerConfig) -> Path:
    """The folder of the compile cache. Raises EnvironmentMissingError if none is named and the user has no home."""
    try:
        if config.cache_dir:
            return Path(config.cache_dir).expanduser()
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tt_torch" / "compile"
    except RuntimeError as error:
        raise EnvironmentMissingError(
            f"the compile cache has no folder, so nothing is kept; set TT_TORCH_CACHE_DIR: {error}"
        ) from None


def _tell(message: str) -> None:
    user_code.warn_once("compile cache", CacheWarning(message))


def take(key: str, content: bytes) -> None:
    """Takes an entry from `torch.compiler.load_cache_artifacts`. Its content is checked when it is read."""
    store = store_of(CompilerConfig.from_env())
    if store and re.fullmatch("[0-9a-f]{64}", key):  # a key is a part of a path
        store.write_file(key, content)
