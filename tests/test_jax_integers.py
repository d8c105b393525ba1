"""64-bit integers of JAX programs against JAX on the CPU: hashes, random numbers, times, and integers that leave the 32
bits of the device."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

jax = pytest.importorskip("jax", reason="the extra `jax` is not installed")
jnp, lax, random = jax.numpy, jax.lax, jax.random

import tt_torch.jax  # noqa: E402
from tt_torch.config import CompilerConfig  # noqa: E402
from tt_torch.driver.exact_runner import ExactnessWarning  # noqa: E402
from tt_torch.driver.partition import HostFallbackWarning  # noqa: E402
from tt_torch.errors import InexactError, UnsupportedOpError  # noqa: E402


@pytest.fixture(autouse=True)
def of_64_bits() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def splitmix(x: Any) -> Any:
    z = x + jnp.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> 30)) * jnp.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> 27)) * jnp.uint64(0x94D049BB133111EB)
    return z ^ (z >> 31)


def fnv(data: Any) -> Any:
    def step(i: Any, value: Any) -> Any:
        return (value ^ data[i].astype(jnp.uint64)) * jnp.uint64(0x100000001B3)

    return lax.fori_loop(0, data.shape[0], step, jnp.uint64(0xCBF29CE484222325))


def drawn(algorithm: str) -> Any:
    kind = getattr(lax.RandomAlgorithm, algorithm)
    return lambda state: lax.rng_bit_generator(state, (3, 5), jnp.uint64, kind)


def key() -> Any:
    return random.key(3)


def times() -> Any:
    return jnp.array([1764366000123456789, 1764366001999999999, 0], jnp.int64)


def count() -> Any:
    return jnp.arange(6, dtype=jnp.uint64)


def wide() -> Any:
    return jnp.uint64([7, 2**63, 2**64 - 1])


def state() -> Any:
    return jnp.uint32([1, 2, 3, 4])


WORDS = (jnp.uint32, jnp.uint64, jnp.float64)
# For nearly all values, these leave 32 bits. So the host computes them.
HASHES: dict[str, tuple[Any, ...]] = {
    "uniform": (lambda k: random.uniform(k, (50,)), key),
    "normal": (lambda k: random.normal(k, (4, 5)), key),
    "bits": (lambda k: random.bits(k, (7,), jnp.uint64), key),
    "randint": (lambda k: random.randint(k, (10,), 0, 100), key),
    "randint of 64 bits": (lambda k: random.randint(k, (10,), -(2**40), 2**62), key),
    "choice": (lambda k: random.choice(k, 10, (4,)), key),
    "threefry": (drawn("RNG_THREE_FRY"), state),
    "philox": (drawn("RNG_PHILOX"), state),
    "splitmix": (splitmix, count),
    "fnv": (fnv, lambda: jnp.arange(9, dtype=jnp.uint8)),
    "positions": (lambda x, w: w[splitmix(x) % 5] * 2, count, lambda: jnp.arange(5, dtype=jnp.float32)),
    "a branch": (lambda x: lax.cond(x[1] > 0, splitmix, lambda x: x + 1, x), count),
}
# These leave 32 bits only for these values. The first such call makes the second form of the program.
CALLS: dict[str, tuple[Any, ...]] = {
    "splitmix": (splitmix, wide),
    "arithmetic": (
        lambda x, y: (x + y, x * y, x - y, x // y, x % y, x > y, x.astype(jnp.float32), ~x, x.astype(jnp.bfloat16)),
        wide,
        lambda: jnp.uint64([2**40, 3, 2**33]),
    ),
    "by zero": (
        lambda x, y: (lax.div(x, y), lax.rem(x, y)),
        lambda: jnp.int64([5, -(2**40), -(2**63), -(2**63)]),
        lambda: jnp.int64([0, 0, -1, 7]),
    ),
    "shifts": (
        lambda x, n: (x << n, x >> n, lax.shift_right_logical(x, n)),
        lambda: jnp.int64([-(2**50), 2**62, -7, 1, -1]),
        lambda: jnp.int64([3, 33, 63, 64, 2**40]),
    ),
    "cumsum": (jnp.cumsum, lambda: jnp.arange(10, dtype=jnp.int64) * 2**33),
    "cumsum of small numbers": (jnp.cumsum, lambda: jnp.full(10, 2**31 - 1, jnp.int64)),
    "products so far": (lambda n: jnp.cumprod(n, axis=0), lambda: jnp.arange(1, 20, dtype=jnp.int64)),
    "parts of times": (
        lambda t: (t // 10**9, (t % 10**9) / 1e9, t - t[0], t.max(), t.mean(), jnp.clip(t, 0, 9)),
        times,
    ),
    "order of times": (lambda t: (jnp.sort(t), jnp.argsort(t), jnp.argmax(t), jnp.searchsorted(t, t)), times),
    "hours": (lambda t: (t // (3600 * 10**9) % 24).astype(jnp.float32) / 24, times),
    "indices": (lambda t, i: (t[i], t.at[i].set(5), t.at[i].add(2**50)), times, lambda: jnp.array([2, 0])),
    "sums": (
        lambda t: (jax.ops.segment_sum(t, jnp.array([0, 1, 0]), 2), jnp.dot(t, t), jnp.where(t > 9, t, -1)),
        times,
    ),
    "bits": (
        lambda t: (jnp.bitwise_count(t), lax.clz(t), *(lax.bitcast_convert_type(t, kind) for kind in WORDS)),
        times,
    ),
    "a branch": (lambda t: lax.cond(t[0] > 2**40, lambda t: t + 1, lambda t: t * 3, t), times),
    "a loop": (lambda x, n: lax.while_loop(lambda c: c < n, lambda c: c * 7 + 1, x), lambda: 3, lambda: 2**50),
    "a scan": (lambda x: lax.scan(lambda c, a: (c * 31 + a, c), jnp.int64(7), x), lambda: jnp.arange(12)),
    "a seed": (lambda s: random.uniform(random.key(s), (3,)), lambda: jnp.int64(5 + 2**40)),
    "from floats": (lambda x: (x * 1e12).astype(jnp.int64), lambda: jnp.linspace(0, 3, 4, dtype=jnp.float32)),
}


def compare(got: Any, expected: Any) -> None:
    assert jax.tree.structure(got) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        if jnp.issubdtype(one.dtype, jnp.integer):
            np.testing.assert_array_equal(one, other)
        else:
            np.testing.assert_allclose(one.astype(np.float32), other.astype(np.float32), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("program", HASHES.values(), ids=HASHES)
def test_what_needs_64_bits_is_on_the_host(program: tuple[Any, ...]) -> None:
    function, *makers = program
    arguments = [make() for make in makers]
    with pytest.warns(HostFallbackWarning, match="32 bits"):
        compiled = tt_torch.jax.compile(function, *arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExactnessWarning)
        compare(compiled(*arguments), function(*arguments))


@pytest.mark.filterwarnings("ignore::tt_torch.driver.partition.HostFallbackWarning")
@pytest.mark.parametrize("program", CALLS.values(), ids=CALLS)
def test_calls_that_leave_32_bits(program: tuple[Any, ...]) -> None:
    function, *makers = program
    arguments = [make() for make in makers]
    compiled = tt_torch.jax.compile(function, *arguments)
    with pytest.warns(ExactnessWarning, match="64-bit integers on the host"):
        got = compiled(*arguments)
    compare(got, function(*arguments))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExactnessWarning)  # it comes once
        compare(compiled(*arguments), function(*arguments))


def test_packages_and_errors(tmp_path: Path) -> None:
    """A package and a copy have the ops of the host, and the second form."""
    with pytest.warns(HostFallbackWarning, match=r"stablehlo.multiply at .*test_jax_integers.py:\d+ .*32 bits"):
        model = tt_torch.jax.compile(splitmix, count()).model
    x, expected = np.array(count()), np.asarray(splitmix(count()))
    model.save(tmp_path / "a.ttpkg")
    loaded, copied, large = tt_torch.load(tmp_path / "a.ttpkg"), copy.deepcopy(model), x + np.uint64(2**32)
    for each in (loaded, copied):
        np.testing.assert_array_equal(each(torch.from_numpy(x)).numpy(), expected)
        with pytest.warns(ExactnessWarning, match="arg0"):
            np.testing.assert_array_equal(each(torch.from_numpy(large)).numpy(), np.asarray(splitmix(large)))
    with pytest.raises(UnsupportedOpError, match="more than 32 bits"):
        tt_torch.jax.compile(splitmix, count(), config=CompilerConfig(fallback="error"))
    refusing = tt_torch.jax.compile(jnp.cumsum, times(), config=CompilerConfig(fallback="error"))
    with pytest.raises(InexactError, match="arg0"):
        refusing(times())
