"""Extras: groups of packages that `pip install tt-torch` leaves out. pyproject.toml lists the packages of each."""

from __future__ import annotations

import re
from importlib import metadata

from tt_torch.errors import ExtraMissingError


def require(extra: str) -> None:
    """Raises ExtraMissingError if a package of the extra is not installed."""
    if missing := [name for name in packages(extra) if not _is_installed(name)]:
        raise ExtraMissingError(extra, missing)


def packages(extra: str) -> list[str]:
    """The names of the packages of an extra, from the metadata of the installed tt-torch."""
    marker = re.compile(rf"""extra\s*==\s*['"]{re.escape(extra)}['"]""")
    lines = [line for line in metadata.requires("tt-torch") or () if marker.search(line)]
    return [found[0] for line in lines if (found := re.match(r"[\w.-]+", line))]


def _is_installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True
