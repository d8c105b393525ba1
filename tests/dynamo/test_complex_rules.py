"""Each rule for complex numbers: an op on pairs of real tensors gives what the complex op gives, in PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves

from tt_torch.dynamo.complex_pairs import has_complex, to_pairs
from tt_torch.torch_private.tracing import make_fx

aten, prims = torch.ops.aten, torch.ops.prims
f32, f64, i64 = torch.float32, torch.float64, torch.int64
c32, c64, c128 = torch.complex32, torch.complex64, torch.complex128
copy, convert = aten._to_copy.default, prims.convert_element_type.default

# Functions of complex z and w and of real x, all of shape (3, 4).
OPS: dict[str, Callable[..., Any]] = {
    "parts": lambda z, w, x: (aten.complex(x, x[0]), aten.polar(x, x * 2), aten.view_as_real(z)),
    "of pairs of floats": lambda z, w, x: aten.view_as_complex(x.reshape(3, 2, 2).clone()),
    "copies": lambda z, w, x: (copy(z), *(copy(z, dtype=dtype) for dtype in (c128, c64, f32, f64))),
    "copies of reals": lambda z, w, x: (copy(x, dtype=c64), copy(x > 0, dtype=c128), copy(x.long(), dtype=c64)),
    "conversions": lambda z, w, x: (*(convert(z, dtype) for dtype in (c128, c64, f32, f64)), convert(x, c64) * z),
    "half": lambda z, w, x: copy(copy(z, dtype=c32), dtype=c64),
    "full": lambda z, w, x: (aten.full([2, 3], 1 - 2j), aten.full([2], 1 - 2j, dtype=c128), aten.full([], 3.5) * z),
    "real and full": lambda z, w, x: (aten.full([2], 3, dtype=c64), aten.full_like(x, 3, dtype=c64)),
    "full of a form": lambda z, w, x: (
        *(aten.full_like(z, value) for value in (2, 2j)),
        aten.full_like(z[0], 1j, dtype=c128),
    ),
    "created": lambda z, w, x: (aten.zeros([2], dtype=c64), aten.ones([2], dtype=c128), aten.ones([4]) * z),
    "created of a form": lambda z, w, x: (
        *(create(z) for create in (aten.zeros_like, aten.ones_like)),
        *(create(x, dtype=c64) for create in (aten.zeros_like, aten.ones_like)),
        *(create(z[0], dtype=c128) for create in (aten.zeros_like, aten.ones_like)),
        aten.zeros_like(x) + z,
    ),
    "constants": lambda z, w, x: torch.tensor([1j, 2, 3 - 1j, 0]) * z,
    "complex64 and other types": lambda z, w, x: (
        *(
            op(torch.tensor([1j, 2, 3, 0.1]), y)
            for op in (aten.add, aten.mul, aten.div, aten.eq)
            for y in (x, x[0, 0], z)
        ),
        torch.tensor(0.1 + 1j) + x,
        torch.tensor([1j, 2]) - x.long()[:, :2],
        torch.tensor([0.1 + 0j]) == x * 0 + 0.1,
    ),
    "scalars": lambda z, w, x: (aten.scalar_tensor(3, dtype=c64), aten.scalar_tensor(3.0) * z),
    "conjugates": lambda z, w, x: (
        *(op(z) for op in (aten._conj, aten._conj_physical, aten.conj_physical)),
        aten.conj_physical(x) * z,
    ),
    "polar form": lambda z, w, x: (aten.abs(z), aten.angle(z), aten.sgn(z), aten.sgn(z * 0), aten.abs(x) * z),
    "not a number": lambda z, w, x: (aten.isnan(z), aten.isnan(z + aten.log(x)), aten.isnan(x.log() * 1j)),
    "equality": lambda z, w, x: (z == w, z == z.conj(), z == z.real, z == 1, z * 0 == 0, x == 1j, x == z),
    "inequality": lambda z, w, x: (z != w, z != z.conj(), z != z.real, z != 1, z * 0 != 0, x != 1j, x != z),
    "sums": lambda z, w, x: (z + w, z + x, x + z, z + 2, 1j + z, x + 1j, x.long() + 1j),
    "scaled sums": lambda z, w, x: (
        *(aten.add(z, w, alpha=alpha) for alpha in (3, 1j)),
        *(aten.add(a, b, alpha=alpha) for a, b in ((z, x), (x, z), (z, 3)) for alpha in (2, 2j)),
        aten.add(x, 2, alpha=3) * z,
    ),
    "differences": lambda z, w, x: (z - w, z - x, x - z, z - 2, x - 1j),
    "scaled differences": lambda z, w, x: (
        *(aten.sub(z, w, alpha=alpha) for alpha in (3, 1j)),
        *(aten.sub(a, b, alpha=alpha) for a, b in ((z, x), (x, z), (z, 3)) for alpha in (2, 2j)),
        aten.sub(x, 2, alpha=3) * z,
    ),
    "products": lambda z, w, x: (z * w, z * x, x * z, z * 2, 2j * z, x * 2j, (x > 0) * 2j, z * (x * math.inf)),
    "quotients": lambda z, w, x: (z / w, z / x, x / z, z / 2, z / 2j, x / 2j, 2 / z, aten.reciprocal(z)),
    "quotients of any size": lambda z, w, x: (z / (w * 1e-25) * 1e-25, (z * 1e30) / (w * 1e30), z / (1j * w.imag)),
    "exponentials": lambda z, w, x: (aten.exp(z), aten.log(z), *(op(x.abs()) * z for op in (aten.exp, aten.log))),
    "matrices": lambda z, w, x: (z.mm(w.t()), z.mv(w[0]), z[0].dot(w[0]), z[None].bmm(w.t()[None])),
    "moved": lambda z, w, x: (z.t(), z[1:], z.flip(0), z.expand(2, 3, 4), *z.split(2, 1), *z.unbind(1)),
    "joined": lambda z, w, x: (torch.cat([z, w]), aten.stack([z, x.to(z.dtype)]), torch.cat([x.to(z.dtype), w])),
    "linear": lambda z, w, x: (z.sum(1), z.mean(0), z.cumsum(1), -z, z.sum(dtype=c128), z.mean(0, dtype=c128)),
    "chosen": lambda z, w, x: (
        *(torch.where(x > 0, a, b) for a, b in ((z, w), (z, x), (1j, z))),
        z.masked_fill(x > 0, 2 - 1j),
        z[torch.tensor([2, 0])],
        aten.constant_pad_nd(z, [1, 2], 3.0),
        aten.select_scatter(z, x[0], 0, 1),
    ),
    "reals alone": lambda z, w, x: (
        *(op(x) for op in (aten.sgn, aten.reciprocal, aten.isnan, aten.abs, aten.exp, aten.log)),
        *(op(x, 2) for op in (aten.add, aten.sub, aten.mul, aten.div, aten.eq, aten.ne)),
        *(op([2], *value) for op, value in ((aten.full, [3.0]), (aten.zeros, []), (aten.ones, []))),
        (copy(x, dtype=i64), convert(x, i64), aten.scalar_tensor(2), x.mm(x.t()), z),
    ),
}


@pytest.mark.parametrize("kind", [c64, c128], ids=str)
@pytest.mark.parametrize("name", OPS)
def test_ops(name: str, kind: torch.dtype) -> None:
    """No complex op is left: only inputs and outputs are complex, as floats with a last dimension of two."""
    torch.manual_seed(1)
    inputs = [torch.randn(3, 4, dtype=kind), torch.randn(3, 4, dtype=kind), torch.randn(3, 4, dtype=kind).real.clone()]
    gm = make_fx(lambda *inputs: tuple(tree_leaves(OPS[name](*inputs))), tracing_mode="fake")(*inputs)
    assert has_complex(gm)
    made = to_pairs(gm, {})
    assert not has_complex(made)
    expected = [torch.view_as_real(y.resolve_conj()) if y.is_complex() else y for y in tree_leaves(OPS[name](*inputs))]
    found = list(made(*(torch.view_as_real(x) if x.is_complex() else x for x in inputs)))
    taken = [n.meta["val"].shape for n in made.graph.find_nodes(op="placeholder")]
    assert taken == [(*x.shape, 2) if x.is_complex() else x.shape for x in inputs]
    tolerance = 1e-3 if name == "half" else 1e-5 if kind is c64 else 1e-11
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True)


def test_the_sign_of_zero_is_a_zero_without_a_sign() -> None:
    parts = torch.tensor([[-0.0, 0.0], [0.0, -0.0], [-0.0, -0.0], [3.0, -4.0], [1.0, -0.0]])
    z = torch.view_as_complex(parts)
    (found,) = to_pairs(make_fx(lambda z: (aten.sgn(z),), tracing_mode="fake")(z), {})(parts)
    expected = torch.view_as_real(z.sgn())
    torch.testing.assert_close(found, expected)
    assert torch.equal(found.signbit(), expected.signbit())


def test_an_op_without_a_rule_keeps_its_complex_form() -> None:
    z = torch.randn(3, 4, dtype=c64)
    made = to_pairs(make_fx(lambda z: (aten.asin(z) * 2,), tracing_mode="fake")(z), {})
    assert [n.meta["val"].dtype for n in made.graph.nodes if n.target is aten.asin.default] == [c64]
    torch.testing.assert_close(made(torch.view_as_real(z))[0], torch.view_as_real(z.asin() * 2))


def test_constants_become_real_with_their_metadata() -> None:
    z = torch.randn(4, dtype=c64)
    gm = make_fx(lambda z: (torch.tensor([1j, 2, 3 - 1j, 0]) * z,), tracing_mode="fake")(z)
    (constant,) = gm.graph.find_nodes(op="get_attr")
    constant.meta["val"] = next(iter(gm.graph.nodes)).meta["val"]
    made = to_pairs(gm, {})
    assert [n.meta["val"].dtype for n in made.graph.find_nodes(op="get_attr")] == [f32, f32]


def test_inputs_keep_their_device_and_width() -> None:
    gm = make_fx(lambda z: (z * 2,), tracing_mode="fake")(torch.empty(4, dtype=c128, device="meta"))
    (z,) = to_pairs(gm, {}).graph.find_nodes(op="placeholder")
    assert (z.meta["val"].dtype, z.meta["val"].device.type) == (f64, "meta")


def test_a_long_prime_runs_on_the_host() -> None:
    """4099 is a prime whose matrix would have 64 MB, so the op stays complex."""
    z = torch.randn(4099, dtype=c64)
    gm = make_fx(lambda z: (aten._fft_c2r(z, [0], 0, 4099),), tracing_mode="fake")(z)
    assert "aten._fft_c2r.default" in {str(n.target) for n in to_pairs(gm, {}).graph.nodes}


FUNCTIONS = "cos cosh exp expm1 log1p sin sinh sqrt tan tanh".split()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_all_finite_numbers(name: str) -> None:
    """One part may be zero where an exponential of the other part overflows."""
    parts = [0.0, -0.0, 1e-30, 1e-6, -0.5, 1.0, math.pi, 59.9, -60.1, 88.0, -100.0, 170.0, -200.0, 1e20]
    x = torch.tensor([complex(a, b) for a in parts for b in parts], dtype=torch.complex64)
    function = getattr(torch, name)
    graph = to_pairs(make_fx(lambda x: (function(x),), tracing_mode="fake")(x), {})
    assert not has_complex(graph)
    (got,) = tree_leaves(graph(torch.view_as_real(x)))
    expected = torch.view_as_real(function(x))
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-6, equal_nan=True)


def test_square_roots_of_infinite_and_of_the_largest_numbers() -> None:
    parts = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 3e38, -3e38, 1e-36]
    x = torch.tensor([complex(a, b) for a in parts for b in parts])
    graph = to_pairs(make_fx(lambda x: (torch.sqrt(x),), tracing_mode="fake")(x), {})
    (got,) = tree_leaves(graph(torch.view_as_real(x)))
    torch.testing.assert_close(got, torch.view_as_real(torch.sqrt(x)), rtol=1e-5, atol=0, equal_nan=True)


def test_a_real_factor_is_a_complex_number_whose_imaginary_part_is_zero() -> None:
    parts = [0.0, -0.0, 1.5, -2.0, math.inf, -math.inf, math.nan]
    x = torch.tensor([complex(a, b) for a in parts for b in parts])
    factors = torch.tensor(parts)[:, None]

    def products(x: torch.Tensor, factors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x * factors, factors * x, x * 2.0, -0.5 * x

    graph = to_pairs(make_fx(products, tracing_mode="fake")(x, factors), {})
    got = tree_leaves(graph(torch.view_as_real(x), factors))
    for one, product in zip(got, products(x, factors), strict=True):
        expected = torch.view_as_real(product)
        torch.testing.assert_close(one, expected, rtol=0, atol=0, equal_nan=True)
        finite = ~expected.isnan()
        assert torch.equal(one.signbit()[finite], expected.signbit()[finite])
