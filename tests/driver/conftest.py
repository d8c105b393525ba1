"""Fixtures that several files of tests use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tt_torch
from tt_torch.config import CompilerConfig
from tt_torch.driver.cache.store import Store, store_of


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """An empty compile cache that is on.

    It would be off for a compilation that verifies the IR, so no IR is verified.
    """
    monkeypatch.setenv("TT_TORCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TT_TORCH_CACHE_SIZE", str(1 << 24))
    monkeypatch.delenv("TT_TORCH_VERIFY_IR", raising=False)
    found = store_of(CompilerConfig.from_env())
    assert found
    return found


@pytest.fixture
def package(tmp_path: Path) -> Callable[..., Any]:
    """A function that compiles a model, saves it as a package, and loads the package."""

    def made(model: Any, *args: Any, weights: bool = True, **kwargs: Any) -> Any:
        tt_torch.compile_model(model, args, kwargs=kwargs).save(tmp_path / "model.ttpkg", weights)
        return tt_torch.load(tmp_path / "model.ttpkg")

    return made
