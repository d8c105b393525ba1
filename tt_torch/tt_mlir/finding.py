"""Finds tt-mlir: a PJRT plugin that is named or installed, or else the command-line tools."""

from __future__ import annotations

import importlib.util
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from tt_torch.errors import ConfigError

# Packages that have a plugin, and the name of its library: the vendor's package, and PyPI's jax-tt-plugin.
PACKAGES = (("pjrt_plugin_tt", "pjrt_plugin_tt.so"), ("jax_plugins.libtt", "libtt.so"))
OPT, TRANSLATE = "ttmlir-opt", "ttmlir-translate"


@dataclass(frozen=True)
class Tools:
    """The paths of tt-mlir's command-line tools."""

    opt: str
    translate: str


def plugin(named: str) -> Path | None:
    """The library of the plugin that the option `pjrt_plugin` names, or of an installed plugin, or None.

    Raises ConfigError if the option names no file.
    """
    if named:
        path = Path(named)
        if not path.is_file():
            raise ConfigError("pjrt_plugin", named, "the library of a PJRT plugin, such as .../libtt.so")
        return path.resolve()
    found = (folder / library for package, library in PACKAGES for folder in _folders(package))
    return next((path for path in found if path.is_file()), None)


def _folders(package: str) -> list[Path]:
    """The folders of an installed package, which is not imported."""
    parent = package.rpartition(".")[0]
    if parent and importlib.util.find_spec(parent) is None:
        return []
    spec = importlib.util.find_spec(package)
    return [Path(folder) for folder in (spec and spec.submodule_search_locations) or ()]


def tools() -> Tools | None:
    """The tools in the folder TTMLIR_HOME, or otherwise on the PATH. The folder is an installation of tt-mlir, or a
    checkout that is built in build/."""
    home = os.environ.get("TTMLIR_HOME")
    folders = [f"{home}/build/bin{os.pathsep}{home}/bin"] if home else []
    for path in [*folders, None]:
        opt, translate = (shutil.which(name, path=path) for name in (OPT, TRANSLATE))
        if opt and translate:
            return Tools(opt, translate)
    return None
