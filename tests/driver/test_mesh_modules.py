"""Random modules give the same on meshes and without one, and the comparison sees it if they do not."""

from __future__ import annotations

import mesh_modules
import pytest
from mesh_modules import SPLITS, generate, results, verdict


@pytest.mark.nightly
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("seed", range(8))
def test_modules_on_meshes(split: str, seed: int) -> None:
    assert verdict(generate(seed, split)) in ("match", "refused", "invalid")


def test_a_difference_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def almost(program, mesh):
        module = program.module()
        *found, last = results(program, module, module, lambda inputs: inputs)
        return [*found, last + 0.01]

    monkeypatch.setattr(mesh_modules, "on_mesh", almost)
    assert verdict(generate(0, "batch")).startswith("differs: ")
