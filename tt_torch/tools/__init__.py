"""Commands, and names that users know. Modules of tt-torch with this package's name are in `tt_torch/compat/tools`."""

from pathlib import Path

__path__.append(str(Path(__file__).parents[1] / "compat" / "tools"))
