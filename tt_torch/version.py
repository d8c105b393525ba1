"""The version of the package. pyproject.toml says it, and an installation has it in its metadata."""

from __future__ import annotations

from importlib.metadata import version

__version__ = version("tt-torch")
