"""Turns FX graphs into FX graphs. Modules of tt-torch with this package's name are in `tt_torch/compat/dynamo`."""

from pathlib import Path

__path__.append(str(Path(__file__).parents[1] / "compat" / "dynamo"))
