"""JAX tests its own lowering with small programs. StableHLO's test data are made of them.

One program of each kind runs on the device and in JAX, with 64-bit types. `pytest -m sample` runs this file.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="the extra `jax` is not installed")
pytest.importorskip("absl", reason="absl-py is not installed, which JAX's own tests need")
import tt_torch.jax  # noqa: E402
from tt_torch.errors import CompileError, UnsupportedOpError  # noqa: E402

pytestmark = pytest.mark.sample

DIFFERENT = {
    "approx_top_k": "of equal elements, any may be found",
    "eig": "eigenvectors may have any sign, and test_jax.py checks what they mean",
    "eigh": "eigenvectors may have any sign",
    "svd": "singular vectors may have any sign",
    "schur": "no PyTorch function computes it",
    "rng_bit_generator": "the algorithm and the state of DEFAULT are a front-end's own",
}
EVERY = 5  # the index of the program that is taken of each kind, modulo the number of these programs


def programs() -> list[Any]:
    from jax._src.internal_test_util import test_harnesses

    kinds: dict[str, list[Any]] = {}
    for each in test_harnesses.all_harnesses:
        if each.filter("cpu"):  # JAX has some programs for other devices only
            kinds.setdefault(each.group_name, []).append(each)
    return [group[EVERY % len(group)] for name, group in kinds.items() if name not in DIFFERENT]


def plain(leaf: Any) -> np.ndarray:
    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return np.asarray(leaf.astype(np.float32) if leaf.dtype == jax.numpy.bfloat16 else leaf)


@pytest.fixture(scope="module")
def wide() -> Any:
    with jax.enable_x64(True):
        yield


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("wide")
def test_one_program_of_each_kind() -> None:
    """Each program has JAX's result, or is refused with an error. At most one in twenty is refused."""
    refused, chosen = [], programs()
    for program in chosen:
        arguments = program.dyn_args_maker(np.random.RandomState(0))
        expected = jax.jit(program.dyn_fun)(*arguments)
        try:
            got = tt_torch.jax.compile(program.dyn_fun, *arguments)(*arguments)
        except (UnsupportedOpError, CompileError) as error:
            refused.append(f"{program.fullname}: {error}")
            continue
        compare(program.fullname, got, expected)
    assert len(chosen) > 100
    assert len(refused) <= len(chosen) / 20, "\n".join(refused)


def compare(name: str, got: Any, expected: Any) -> None:
    """Asserts equal results. Floats may differ by roundings of float32, or of the narrow type in the program's name."""
    tolerance = 2e-2 if "float16" in name else 2e-4
    for one, other in zip(*(map(plain, jax.tree.leaves(x)) for x in (got, expected)), strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape), name
        if one.dtype.kind in "fc":
            largest = np.abs(other[np.isfinite(other)]).max(initial=0.01)
            np.testing.assert_allclose(one, other, tolerance, tolerance * largest, err_msg=name)
        else:
            np.testing.assert_array_equal(one, other, err_msg=name)
