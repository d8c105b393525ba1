"""Keys of the compile cache: hashes of everything on which a result depends."""

from __future__ import annotations

import functools
import hashlib
import json
import platform
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import torch

import tt_torch
from tt_torch.config import CompileDepth, CompilerConfig
from tt_torch.driver.cache import artifacts  # noqa: F401 - makes entries known to PyTorch
from tt_torch.driver.cache.store import Store, store_of
from tt_torch.wire.binary import system

# The options that are not in keys, with the reason. All other options are in keys.
NOT_IN_KEYS = {"cache_dir": "names the folder of the entries", "cache_size": "bounds the folder of the entries"}
SOURCES = (".py", ".so", ".json")
_FOLDERS = [Path(folder) for folder in tt_torch.__path__]  # an editable installation has its libraries elsewhere
_IMPORTED = time.time()  # a source file that is newer can differ from the code that runs


def hashed(*parts: str | bytes) -> str:
    """One key for several parts. The length of each part is hashed, too, so that no other parts give this key."""
    found = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        found.update(len(data).to_bytes(8, "little"))
        found.update(data)
    return found.hexdigest()


def usable_store(config: CompilerConfig) -> Store | None:
    """The compile cache, or None if one of its results cannot do all that the options ask for.

    Only a compilation gives IR, files, checks of steps, and single ops.
    """
    asked = (
        config.compile_depth != CompileDepth.EXECUTE,
        config.compiler != "tt-torch",  # it calls other programs, whose versions are not known
        *(config.save_mlir, config.save_binary, config.verify_ir, config.ir_log_level),
        *(config.enable_intermediate_verification, config.bisect, config.profile),
        config.outputs.record_property,
    )
    return None if any(asked) or sources() is None else store_of(config)


def options(config: CompilerConfig) -> str:
    """All options that are in keys, and the content of the file that one of them names."""
    values = {name: value for name, value in config.to_dict().items() if name not in NOT_IN_KEYS}
    described = repr(system(config.arch, config.system_desc)) if config.system_desc else ""
    return json.dumps([values, hashlib.sha256(described.encode()).hexdigest()], sort_keys=True)


@functools.cache
def sources() -> str | None:
    """The versions of the compiler and of what it calls, with a hash of this package's files.

    None if a file has changed after this process had begun: then the code that runs may be older than the files.
    """
    files = sorted((str(path.relative_to(folder)), path) for folder in _FOLDERS for path in _source_files(folder))
    if any(path.stat().st_mtime > _IMPORTED for _, path in files):
        return None
    contents = hashed(*(part for name, path in files for part in (name, path.read_bytes())))
    packages = (str(torch.__version__), str(torch.version.git_version), version("torch-mlir"))
    return json.dumps([contents, *packages, platform.python_version(), torch.backends.cpu.get_cpu_capability()])


def _source_files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.suffix in SOURCES and path.is_file())
