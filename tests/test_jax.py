"""Functions of JAX on the device against JAX on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

jax = pytest.importorskip("jax", reason="the extra `jax` is not installed")
jnp = jax.numpy

import tt_torch  # noqa: E402
import tt_torch.jax  # noqa: E402
from tt_torch.errors import ArgumentError, InputDtypeError, InputShapeError, UnsupportedOpError  # noqa: E402

X = jnp.linspace(-1, 1, 12).reshape(3, 4)
W = jnp.linspace(-0.5, 0.7, 20).reshape(4, 5)
KEY = jax.random.key(3)
IMAGE, FILTER = jnp.linspace(-1, 1, 192).reshape(1, 3, 8, 8), jnp.linspace(-1, 1, 108).reshape(4, 3, 3, 3)
MESH = jax.make_mesh((1,), ("a",), axis_types=(jax.sharding.AxisType.Auto,))
P = jax.sharding.PartitionSpec
ROWS = jax.sharding.NamedSharding(MESH, P("a"))


def mlp(params: Any, x: Any) -> Any:
    return jnp.tanh(x @ params["w"] + params["b"])


def loss(params: Any, x: Any) -> Any:
    return jnp.mean((mlp(params, x) - 1) ** 2)


def trained(params: Any, x: Any) -> Any:
    """Three steps of gradient descent."""

    def step(params: Any, _: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(params, x)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value

    return jax.lax.scan(step, params, None, length=3)


def attention(q: Any, k: Any, v: Any) -> Any:
    return jax.nn.softmax(q @ k.swapaxes(-1, -2) / 2, -1) @ v


PARAMS = {"w": W, "b": jnp.arange(5.0) / 5}
PROGRAMS: dict[str, tuple[Any, ...]] = {
    "mlp": (mlp, PARAMS, X),
    "gradient": (jax.grad(loss), PARAMS, X),
    "steps of training": (trained, PARAMS, X),
    "hessian": (jax.hessian(lambda v: (v**3).sum()), X[0]),
    "checkpoint": (jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)).sum())), X),
    "vmap": (jax.vmap(lambda v: v @ v), X),
    "attention": (attention, *(jnp.cos(i + jnp.arange(48.0)).reshape(2, 6, 4) for i in range(3))),
    "softmax and others": (lambda x: (jax.nn.softmax(x), jax.nn.logsumexp(x, axis=1), jax.nn.gelu(x)), X),
    "convolution": (lambda x, w: jax.lax.conv(x, w, (1, 1), "SAME"), IMAGE, FILTER),
    "gradient of a convolution": (jax.grad(lambda w, x: jax.lax.conv(x, w, (2, 2), "SAME")[0, 0].sum()), FILTER, IMAGE),
    "einsum": (lambda x, w: jnp.einsum("ij,jk->ki", x, w), X, W),
    "scan": (lambda x: jax.lax.scan(lambda c, a: (c + a, c * a), jnp.zeros(4), x), X),
    "scan backwards": (lambda x: jax.lax.scan(lambda c, a: (c - a, c), jnp.ones(4), x, reverse=True), X),
    "gradient of a scan": (
        jax.grad(lambda x: jax.lax.scan(lambda c, a: (jnp.sin(c) * a, c), jnp.ones(4), x)[0].sum()), X,
    ),
    "fori_loop": (lambda x: jax.lax.fori_loop(2, 6, lambda i, c: c * 1.1 + i, x), X),
    "loops in a loop": (
        lambda x: jax.lax.fori_loop(0, 3, lambda i, c: jax.lax.fori_loop(0, 2, lambda j, d: d * 1.1 + i - j, c), x), X,
    ),
    "map": (lambda x: jax.lax.map(lambda v: v.sum(), x), X),
    "associative_scan": (lambda x: jax.lax.associative_scan(jnp.multiply, x), X),
    "cond": (lambda x: jax.lax.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, x), X),
    "switch": (lambda i, x: jax.lax.switch(i, [jnp.sin, jnp.cos, jnp.exp], x), jnp.int32(2), X),
    "uniform": (lambda k: jax.random.uniform(k, (4, 5)), KEY),
    "normal": (lambda k: jax.random.normal(k, (4, 5)), KEY),
    "split": (lambda k: jax.random.split(k), KEY),
    "bits": (lambda k: jax.random.bits(k, (7,)), KEY),
    "randint": (lambda k: jax.random.randint(k, (10,), 0, 100), KEY),
    "permutation": (lambda k: jax.random.permutation(k, 10), KEY),
    "categorical": (lambda k, x: jax.random.categorical(k, x), KEY, X),
    "old keys": (lambda k: jax.random.uniform(k, (3,)), jax.random.PRNGKey(5)),
    "gradient of a Fourier transform": (jax.grad(lambda x: jnp.abs(jnp.fft.rfft(x)).sum()), X),
    "sort": (lambda x: (jnp.sort(x, axis=0), jnp.argsort(-x, axis=1)), jnp.sin(9 * X)),
    "top_k": (lambda x: jax.lax.top_k(x, 2), jnp.sin(9 * X)),
    "top_k of equal elements": (lambda x: jax.lax.top_k(x, 30), jnp.arange(40.0) % 3),
    "cumulative": (lambda x: (jnp.cumsum(x, 1), jnp.cumprod(x, 0), jax.lax.cummax(x, 1)), X),
    "searchsorted": (lambda x: jnp.searchsorted(x[0], x[1]), X),
    "segment_sum": (lambda x: jax.ops.segment_sum(x, jnp.array([0, 1, 0]), 2), X),
    "indices": (lambda x, i: (x[i], x.at[i, 1].set(7), jnp.take(x, i, axis=1)), X, jnp.array([2, 0])),
    "dynamic slices": (
        lambda x, i: (jax.lax.dynamic_slice(x, (i, 0), (1, 2)), jax.lax.dynamic_update_slice(x, x[:1, :2], (i, 1))),
        X, jnp.int32(1),
    ),
    "special functions": (lambda x: (jax.scipy.special.erfinv(x / 2), jax.scipy.special.gammaln(x + 2)), X),
    "integers": (lambda x: (x * 7 // 3 % 5, x << 3, x ^ 9, -x), jnp.arange(-6, 6)),
    "narrow integers": (lambda x: (x + x, x * 3, x // 2), jnp.arange(90, 120, 3, dtype=jnp.int8)),
    "booleans": (lambda x: (x > 0, jnp.any(x > 0.5, 1), jnp.where(x > 0, x, 0)), X),
    "bfloat16": (lambda x: x @ x.T + 1, X.astype(jnp.bfloat16)),
    "complex numbers": (lambda x: (jnp.abs(jnp.exp(1j * x)), (1j * x) ** 2), X),
    "nan": (lambda x: jnp.nanmean(jnp.where(x > 0, x, jnp.nan)), X),
    "positions of booleans": (lambda x: (jnp.argmax(x > 0, axis=1), jnp.argmin(x > 0, axis=0)), X),
    "positions of uint32": (lambda x: (jnp.argmax(x, axis=1), jnp.argmin(x, axis=0)), jnp.uint32([[7, 2**31, 3]])),
    "integers by zero": (lambda x, y: (x // y, jax.lax.rem(x, y), jnp.gcd(x, y)), *jnp.int8([[5, 0, 6], [0, 0, 4]])),
    "bytes by zero": (lambda x, y: (jax.lax.div(x, y), jax.lax.rem(x, y)), *jnp.uint8([[5, 0, 6], [0, 0, 4]])),
    "containers": (lambda x: (x, None, {"a": (), "b": [x + 1]}), X),
    "an argument that is not used": (lambda x, y: x + 1, X, W),
    "a sharding": (jax.jit(lambda x: jax.lax.with_sharding_constraint(x * 2, ROWS) + 1), X),
    "shard_map": (jax.shard_map(lambda x: jax.lax.psum(x, "a"), mesh=MESH, in_specs=P("a"), out_specs=P()), X),
}  # fmt: skip

# Loops whose number of steps depends on values, or is large, and functions of LAPACK, which the host computes.
S = X.T @ X + 2 * jnp.eye(4)
ON_VALUES: dict[str, tuple[Any, ...]] = {
    "while_loop": (lambda x: jax.lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 1.5 + 1, x), X),
    "fori_loop": (lambda n, x: jax.lax.fori_loop(0, n, lambda i, c: c.at[i].add(i), x), jnp.int32(3), X[0]),
    "no step": (lambda n, x: (x * 2, jax.lax.fori_loop(0, n, lambda i, c: -c, x * 2)), jnp.int32(0), X),
    "long scan": (lambda x: jax.lax.scan(lambda c, a: (jnp.tanh(c * a), c.sum()), x, jnp.ones((3000, 4))), X),
    "inverse": (jnp.linalg.inv, S),
    "qr and eigh": (lambda x: (jnp.abs(jnp.linalg.qr(x)[1]), jnp.linalg.eigh(x)[0]), S),
    "svd": (lambda x: jnp.linalg.svd(x, compute_uv=False), X),
    "eigenvalues": (lambda x: jnp.sort(jnp.abs(jnp.linalg.eigvals(x))), S.at[0, 1].set(3)),
    "tridiagonal system": (lambda x: jax.lax.linalg.tridiagonal_solve(x[0], x[1] + 5, x[2], x.T), S[:3]),
    "left eigenvectors": (
        lambda x: (lambda w, left: jnp.abs(left.conj().T @ x - w[:, None] * left.conj().T))(
            *jax.lax.linalg.eig(x, compute_right_eigenvectors=False)
        ),
        S.at[0, 1].set(3),
    ),
    "approximate largest": (lambda x: jax.lax.approx_max_k(x, 2), X),
    "cumulative log-sum-exp": (lambda x: jax.lax.cumlogsumexp(x, axis=1, reverse=True), X * 50),
    "complex arc cosine": (lambda x: jnp.arccos(x + 0.5j), X),
    "gradient of cholesky": (jax.grad(lambda a: jnp.linalg.cholesky(a).sum()), S),
}


def plain(leaf: Any) -> np.ndarray:
    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return np.asarray(leaf.astype(jnp.float32) if leaf.dtype == jnp.bfloat16 else leaf)


@pytest.mark.filterwarnings("ignore::tt_torch.driver.partition.HostFallbackWarning")
@pytest.mark.parametrize("program", [*PROGRAMS.values(), *ON_VALUES.values()], ids=[*PROGRAMS, *ON_VALUES])
def test_a_function(program: tuple[Callable[..., Any], Any]) -> None:
    function, *arguments = program
    expected, got = function(*arguments), tt_torch.jax.compile(function, *arguments)(*arguments)
    assert jax.tree.structure(got) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(expected), strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        tolerance = 1e-2 if one.dtype == jnp.bfloat16 else 1e-5
        np.testing.assert_allclose(plain(one), plain(other), rtol=tolerance, atol=tolerance)


def test_calls() -> None:
    compiled = tt_torch.jax.compile(lambda x, *, scale: x * scale, jax.ShapeDtypeStruct((2,), jnp.float32), scale=2.0)
    assert compiled(np.array([1, 2], np.float32), scale=3).tolist() == [3, 6]
    torch.testing.assert_close(compiled.model(torch.ones(2), torch.tensor(4.0)), torch.full((2,), 4.0))
    with pytest.raises(ArgumentError, match="the arguments have the form"):
        compiled(jnp.ones(2))
    with pytest.raises(InputShapeError):
        compiled(jnp.ones(3), scale=2.0)
    with pytest.raises(InputDtypeError):
        compiled(jnp.ones(2, jnp.int32), scale=2.0)


def test_what_nobody_computes_is_named_with_its_line() -> None:
    with pytest.raises(UnsupportedOpError, match=r"(?s)stablehlo.custom_call.*at .*test_jax.py:\d+.*lapack_sgees"):
        tt_torch.jax.compile(jax.scipy.linalg.schur, X[:, :3])
