"""Programs of Flax and Optax on the device against JAX on the CPU. `pytest -m sample` runs them, in half a minute."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="the extra `jax` is not installed")
pytest.importorskip("flax", reason="the package flax is not installed")
from flax_programs import PROGRAMS, Program  # noqa: E402

import tt_torch.jax  # noqa: E402

pytestmark = pytest.mark.sample


@pytest.mark.parametrize("make", PROGRAMS.values(), ids=PROGRAMS)
def test_a_program(make: Callable[[], Program]) -> None:
    function, *arguments = make()
    expected, got = jax.jit(function)(*arguments), tt_torch.jax.compile(function, *arguments)(*arguments)
    assert jax.tree.structure(got) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-5, atol=1e-5)
