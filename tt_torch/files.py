"""Marks of kinds of files, and how files are written."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

# The endings of files of StableHLO: text, bytecode, and portable artifacts.
STABLEHLO_SUFFIXES = (".mlir", ".mlirbc", ".stablehlo", ".vhlo")
MLIR_BYTECODE = b"ML\xefR"  # the first bytes; a version follows in one byte, and then the producer
ARTIFACT = b"StableHLO_v"  # the producer of portable artifacts, which are bytecode of the dialect VHLO
# The temporary name does not contain the file's name, because that name may be as long as names can be.
_TEMPORARY = ".tt_torch_unfinished."


def is_artifact(bytecode: bytes) -> bool:
    return bytecode[len(MLIR_BYTECODE) + 1 :].startswith(ARTIFACT)


def write(path: str | Path, data: bytes) -> None:
    """Writes a file completely or not at all: under a temporary name, which is then renamed.

    Temporary files that killed processes left in the folder are removed.
    """
    write_by(path, lambda file: file.write_bytes(data))


def write_by(path: str | Path, fill: Callable[[Path], object]) -> None:
    """Like `write`, but `fill` writes the content into the file that it is given.

    The file keeps its rights. A symbolic link stays: the file to which it points is written. What is no file on a disk,
    such as /dev/stdout or a named pipe, is not replaced: it receives the content.
    """
    path = Path(path)
    if path.exists() and not path.is_file() and not path.is_dir():
        _send(path, fill)
        return
    path = Path(os.path.realpath(path))
    rights = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    with _written(path.parent, fill, rights) as temporary:
        temporary.replace(path)


def require_writable(path: Path) -> None:
    """Makes the folder of the file. Raises OSError if the file cannot be written, before a long work that it is for."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.is_file() or not path.exists():
        with _written(Path(os.path.realpath(path)).parent, Path.touch):
            pass


def _send(device: Path, fill: Callable[[Path], object]) -> None:
    """Writes to something that cannot be replaced. The content is complete before the first byte goes there."""
    import shutil  # both only here: each command imports this module, and few write to a device
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        content = Path(folder) / "content"
        fill(content)
        with content.open("rb") as source, device.open("wb") as target:
            shutil.copyfileobj(source, target)


def write_new(paths: Iterable[Path], data: bytes) -> Path:
    """Writes a file under the first of these names, all in one folder, that no file has; returns the name.

    If several processes write at the same time, each gets a name of its own. `paths` must not come to an end.
    """
    remaining = iter(paths)
    path = next(remaining)
    with _written(path.parent, lambda file: file.write_bytes(data)) as temporary:
        while True:
            try:
                os.link(temporary, path)
                return path
            except FileExistsError:
                path = next(remaining)


@contextlib.contextmanager
def _written(folder: Path, fill: Callable[[Path], object], rights: int | None = None) -> Iterator[Path]:
    """A new file in the folder, whose content `fill` has written, for the time of the context. It has the usual rights,
    or `rights`; nobody else can read it before it has them."""
    folder.mkdir(parents=True, exist_ok=True)
    _clean(folder)
    with _lock(folder) as lock:
        own = _content(lock)
        own.mkdir(0o700)
        try:
            content = own / "content"
            fill(content)  # a library may write another file and rename it, so `content` itself cannot be the lock
            content.chmod(stat.S_IMODE(lock.stat().st_mode) if rights is None else rights)
            yield content
        finally:
            _remove(own)


def _content(lock: Path) -> Path:
    """The folder of the content that a lock is for."""
    return lock.with_name(f"{lock.name}.content")


def _remove(folder: Path) -> None:
    for file in [*folder.iterdir()]:
        file.unlink()
    folder.rmdir()


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[Path]:
    """A new file with the usual rights. Its lock tells other processes that somebody still writes. Errors name the
    folder, because nobody knows the name of this file."""
    while True:
        lock = folder / f"{_TEMPORARY}{secrets.token_hex(8)}"
        try:
            descriptor = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(folder)) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if not lock.exists():
                continue  # somebody cleaned it away before it was locked
            try:
                yield lock
            finally:
                lock.unlink(missing_ok=True)
            return
        finally:
            os.close(descriptor)


def _clean(folder: Path) -> None:
    for left in folder.glob(f"{_TEMPORARY}*"):
        with contextlib.suppress(OSError), left.open("rb") as file:  # it is gone, a folder, locked, or somebody else's
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _content(left).exists():
                _remove(_content(left))
            left.unlink(missing_ok=True)
