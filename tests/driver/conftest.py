"""What several files of tests need."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tt_torch


@pytest.fixture
def package(tmp_path: Path) -> Callable[..., Any]:
    """Compiles, saves and loads."""

    def made(model: Any, *args: Any, weights: bool = True, **kwargs: Any) -> Any:
        tt_torch.compile_model(model, args, kwargs=kwargs).save(tmp_path / "model.ttpkg", weights)
        return tt_torch.load(tmp_path / "model.ttpkg")

    return made
