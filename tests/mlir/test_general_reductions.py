"""Reductions whose bodies are no single ops, compared with StableHLO's interpreter or NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from interpreter import check, compiled

import tt_torch
from tt_torch.bringup.interpret import evaluate
from tt_torch.driver.partition import HostFallbackWarning
from tt_torch.errors import UnsupportedOpError
from tt_torch.mlir.stablehlo.dtypes import DTYPES

# The log of a sum of exponentials, as JAX writes it.
LOG_SUM_EXP = """^bb0(%p: tensor<f32>, %q: tensor<f32>):
  %m = stablehlo.maximum %p, %q : tensor<f32>
  %d = stablehlo.subtract %p, %q : tensor<f32>
  %a = stablehlo.abs %d : tensor<f32>
  %n = stablehlo.negate %a : tensor<f32>
  %e = stablehlo.exponential %n : tensor<f32>
  %l = stablehlo.log_plus_one %e : tensor<f32>
  %s = stablehlo.add %m, %l : tensor<f32>
  stablehlo.return %s : tensor<f32>"""
# The pair with the larger first number, plus a number from outside of the body, and a constant inside of it.
PAIRS = """^bb0(%p: tensor<f32>, %i: tensor<f32>, %q: tensor<f32>, %j: tensor<f32>):
  %t = stablehlo.compare GE, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %g = stablehlo.maximum %p, %q : tensor<f32>
  %k = stablehlo.select %t, %i, %j : tensor<i1>, tensor<f32>
  %h = stablehlo.add %k, %zero : tensor<f32>
  %r = stablehlo.add %h, %none : tensor<f32>
  stablehlo.return %g, %r : tensor<f32>, tensor<f32>"""


def reduction(shape: str, result: str, dims: str) -> str:
    return f"""func.func @main(%x: tensor<{shape}xf32>) -> tensor<{result}f32> {{
      %low = stablehlo.constant dense<-1.0e30> : tensor<f32>
      %0 = "stablehlo.reduce"(%x, %low) ({{ {LOG_SUM_EXP} }}) {{dimensions = array<i64: {dims}>}}
        : (tensor<{shape}xf32>, tensor<f32>) -> tensor<{result}f32>
      return %0 : tensor<{result}f32>
    }}"""


@pytest.mark.parametrize(
    "program",
    [
        reduction("3x7", "3x", "1"),
        reduction("3x7", "7x", "0"),
        reduction("2x5x8", "5x", "0, 2"),
        reduction("4x1", "4x", "1"),
        reduction("3", "", "0"),
    ],
)
def test_a_reduction(program: str) -> None:
    check(program)


def windows(size: str, result: str, *fields: str) -> str:
    attributes = ", ".join([f"window_dimensions = array<i64: {size}>", *fields])
    results = f"(tensor<{result}xf32>, tensor<{result}xf32>)"
    return f"""func.func @main(%x: tensor<5x9xf32>, %y: tensor<5x9xf32>) -> {results} {{
      %low = stablehlo.constant dense<-1.0e30> : tensor<f32>
      %none = stablehlo.constant dense<0.0> : tensor<f32>
      %0:2 = "stablehlo.reduce_window"(%x, %y, %low, %none) ({{ {PAIRS} }}) {{{attributes}}}
        : (tensor<5x9xf32>, tensor<5x9xf32>, tensor<f32>, tensor<f32>) -> {results}
      return %0#0, %0#1 : tensor<{result}xf32>, tensor<{result}xf32>
    }}"""


@pytest.mark.parametrize(
    "program",
    [
        windows("2, 3", "4x7"),
        windows("1, 9", "5x9", "padding = dense<[[0, 0], [8, 0]]> : tensor<2x2xi64>"),
        windows("3, 2", "2x3", "window_strides = array<i64: 2, 3>"),
        windows("2, 3", "3x5", "window_dilations = array<i64: 2, 2>"),
        windows("2, 2", "8x16", "base_dilations = array<i64: 2, 2>"),
        windows("2, 7", "5x6", "padding = dense<[[1, 0], [-1, 4]]> : tensor<2x2xi64>"),
    ],
)
def test_windows_of_pairs(program: str) -> None:
    check(program)


def test_sums_and_products_of_complex_numbers() -> None:
    kind = "tensor<4x6xcomplex<f32>>"
    text = f"""func.func @main(%x: {kind}) -> ({kind}, tensor<4xcomplex<f32>>) {{
      %zero = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f32>>
      %one = stablehlo.constant dense<(1.0, 0.0)> : tensor<complex<f32>>
      %0 = "stablehlo.reduce_window"(%x, %zero) ({{ ^bb0(%p: tensor<complex<f32>>, %q: tensor<complex<f32>>):
          %s = stablehlo.add %p, %q : tensor<complex<f32>>
          stablehlo.return %s : tensor<complex<f32>> }})
        {{window_dimensions = array<i64: 1, 6>, padding = dense<[[0, 0], [5, 0]]> : tensor<2x2xi64>}}
        : ({kind}, tensor<complex<f32>>) -> {kind}
      %1 = "stablehlo.reduce"(%x, %one) ({{ ^bb0(%p: tensor<complex<f32>>, %q: tensor<complex<f32>>):
          %s = stablehlo.multiply %p, %q : tensor<complex<f32>>
          stablehlo.return %s : tensor<complex<f32>> }})
        {{dimensions = array<i64: 1>}} : ({kind}, tensor<complex<f32>>) -> tensor<4xcomplex<f32>>
      return %0, %1 : {kind}, tensor<4xcomplex<f32>>
    }}"""
    x = torch.randn(4, 6, dtype=torch.complex64)
    torch.testing.assert_close(tt_torch.compile_stablehlo(text)(x), (x.cumsum(1), x.prod(1)))


def scattered(shape: str, source: str, window: str, strides: str, padding: str) -> str:
    number = "tensor<f32>"
    return f"""func.func @main(%x: tensor<{shape}xf32>, %s: tensor<{source}xf32>) -> tensor<{shape}xf32> {{
      %zero = stablehlo.constant dense<0.5> : {number}
      %0 = "stablehlo.select_and_scatter"(%x, %s, %zero) ({{ ^bb0(%p: {number}, %q: {number}):
          %t = stablehlo.compare GE, %p, %q : ({number}, {number}) -> tensor<i1>
          stablehlo.return %t : tensor<i1> }}, {{ ^bb0(%p: {number}, %q: {number}):
          %t = stablehlo.add %p, %q : {number}
          stablehlo.return %t : {number} }}) {{window_dimensions = array<i64: {window}>,
        window_strides = array<i64: {strides}>, padding = dense<{padding}> : tensor<{shape.count("x") + 1}x2xi64>}}
        : (tensor<{shape}xf32>, tensor<{source}xf32>, {number}) -> tensor<{shape}xf32>
      return %0 : tensor<{shape}xf32>
    }}"""


@pytest.mark.parametrize(
    ("shape", "source", "window", "strides", "padding"),
    [
        ("2x4x6", "1x3x5", "2, 2, 2", "1, 1, 1", "0"),
        ("4x4x6", "2x2x2", "2, 2, 3", "2, 2, 3", "0"),
        ("2x3x4", "2x2x3", "2, 2, 2", "1, 2, 2", "[[0, 1], [1, 0], [1, 1]]"),
        ("4x5x6", "2x3x3", "2, 1, 2", "2, 2, 2", "0"),
        ("3x5", "3x3", "1, 2", "1, 2", "[[0, 0], [0, 1]]"),
    ],
)
def test_select_and_scatter_of_any_form(shape: str, source: str, window: str, strides: str, padding: str) -> None:
    """Each element of the source is added at the largest element of its window. Padding is never the largest."""
    text = scattered(shape, source, window, strides, padding)
    x, s = (torch.randn([int(n) for n in size.split("x")]) for size in (shape, source))
    sizes, steps = ([int(n) for n in text.split(", ")] for text in (window, strides))
    pads = np.zeros((len(sizes), 2), int) if padding == "0" else np.array(eval(padding))
    wide = np.pad(x.numpy(), pads, constant_values=-np.inf)
    wanted = np.full(wide.shape, 0.5, np.float32)
    for place in np.ndindex(*s.shape):
        part = tuple(slice(p * n, p * n + size) for p, n, size in zip(place, steps, sizes, strict=True))
        best = np.unravel_index(wide[part].argmax(), sizes)
        wanted[part][best] += s.numpy()[place]
    inner = tuple(slice(low, low + n) for low, n in zip(pads[:, 0], x.shape, strict=True))
    (got,) = compiled(text, [x, s])
    torch.testing.assert_close(got, torch.from_numpy(wanted[inner]))


def test_a_body_whose_order_matters_is_refused() -> None:
    text = """func.func @main(%x: tensor<4xf32>, %i: tensor<f32>) -> tensor<f32> {
      %0 = "stablehlo.reduce"(%x, %i) ({ ^bb0(%p: tensor<f32>, %q: tensor<f32>):
          %d = stablehlo.subtract %p, %q : tensor<f32>
          stablehlo.return %d : tensor<f32> }) {dimensions = array<i64: 0>}
        : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    }"""
    with pytest.raises(UnsupportedOpError, match=r"stablehlo\.reduce"):
        tt_torch.compile_stablehlo(text)


def test_a_body_of_tensors_is_refused() -> None:
    text = reduction("3x7", "3x", "1").replace(
        "%m = stablehlo.maximum %p, %q : tensor<f32>",
        "%v = stablehlo.reshape %p : (tensor<f32>) -> tensor<1xf32>\n%w = stablehlo.sine %v : tensor<1xf32>\n"
        "%m = stablehlo.reshape %w : (tensor<1xf32>) -> tensor<f32>",
    )
    with pytest.raises(UnsupportedOpError, match=r"stablehlo\.reduce"):
        tt_torch.compile_stablehlo(text)


# --- masks of 64-bit integers


MASKED = """func.func @main(%x: tensor<3x{0}>) -> (tensor<3xui32>, tensor<3xi8>) {{
  %mask = stablehlo.constant dense<4294967295> : tensor<3x{0}>
  %low = stablehlo.and %x, %mask : tensor<3x{0}>
  %moved = stablehlo.reshape %low : (tensor<3x{0}>) -> tensor<3x1x{0}>
  %back = stablehlo.reshape %moved : (tensor<3x1x{0}>) -> tensor<3x{0}>
  %0 = stablehlo.convert %back : (tensor<3x{0}>) -> tensor<3xui32>
  %1 = stablehlo.convert %low : (tensor<3x{0}>) -> tensor<3xi8>
  return %0, %1 : tensor<3xui32>, tensor<3xi8>
}}"""


@pytest.mark.parametrize(("kind", "numbers"), [("i64", [-2, 7, 2**31 - 1]), ("ui64", [0, 7, 2**32 - 1])])
def test_a_mask_whose_low_bits_alone_are_read(kind: str, numbers: list[int]) -> None:
    """JAX makes its seeds in this way, with 64-bit types."""
    x = torch.tensor(numbers, dtype=torch.int64 if kind == "i64" else torch.uint64)
    words, bytes_ = tt_torch.compile_stablehlo(MASKED.format(kind))(x)
    assert words.tolist() == [n % 2**32 for n in numbers]
    assert bytes_.tolist() == [(n + 128) % 256 - 128 for n in numbers]


def test_a_mask_whose_high_bits_are_read_is_for_the_host() -> None:
    """-2 & 0xFFFFFFFF is 4294967294, which 32 bits with a sign cannot hold."""
    text = MASKED.format("i64").replace("tensor<3xi8>", "tensor<3xf32>")
    with pytest.warns(HostFallbackWarning, match="stablehlo.and"):
        model = tt_torch.compile_stablehlo(text)
    words, floats = model(torch.tensor([-2, 7, 2**31 - 1]))
    assert words.tolist() == [2**32 - 2, 7, 2**31 - 1] and floats.tolist() == [2**32, 7, 2**31]


@pytest.mark.parametrize("start", [0, 44, 255])
def test_a_slice_that_begins_at_a_byte(start: int) -> None:
    """The latest possible start, 300, does not fit into a byte."""
    text = """func.func @main(%x: tensor<303xf32>, %i: tensor<ui8>, %u: tensor<3xf32>)
        -> (tensor<3xf32>, tensor<303xf32>) {
      %0 = stablehlo.dynamic_slice %x, %i, sizes = [3] : (tensor<303xf32>, tensor<ui8>) -> tensor<3xf32>
      %1 = stablehlo.dynamic_update_slice %x, %u, %i
        : (tensor<303xf32>, tensor<3xf32>, tensor<ui8>) -> tensor<303xf32>
      return %0, %1 : tensor<3xf32>, tensor<303xf32>
    }"""
    x, u = torch.randn(303), torch.randn(3)
    part, written = compiled(text, [x, torch.tensor(start, dtype=torch.uint8), u])
    assert torch.equal(part, x[start : start + 3])
    x[start : start + 3] = u
    assert torch.equal(written, x)


@pytest.mark.filterwarnings("ignore::tt_torch.driver.partition.HostFallbackWarning")
@pytest.mark.parametrize(
    ("body", "kind"),
    [("subtract", "f32"), ("subtract", "ui8"), ("subtract", "i64"), ("xor", "i32"), ("and", "i16"), ("or", "ui32"),
     ("xor", "i1")],
)  # fmt: skip
def test_scatters_that_subtract_or_combine_bits(body: str, kind: str) -> None:
    text = f"""func.func @main(%x: tensor<3x2x{kind}>, %i: tensor<4xi64>, %u: tensor<4x2x{kind}>)
        -> tensor<3x2x{kind}> {{
      %0 = "stablehlo.scatter"(%x, %i, %u) ({{
      ^bb0(%p: tensor<{kind}>, %q: tensor<{kind}>):
        %s = stablehlo.{body} %p, %q : tensor<{kind}>
        stablehlo.return %s : tensor<{kind}>
      }}) {{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
        scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}
        : (tensor<3x2x{kind}>, tensor<4xi64>, tensor<4x2x{kind}>) -> tensor<3x2x{kind}>
      return %0 : tensor<3x2x{kind}>
    }}"""
    torch.manual_seed(0)
    x, u = (torch.randint(0, 90, (n, 2)).to(DTYPES[kind]) for n in (3, 4))
    given = [x, torch.tensor([2, 0, 2, 7]), u]  # 7 is outside
    torch.testing.assert_close(tt_torch.compile_stablehlo(text)(*given), evaluate(text, given)[0])


def test_a_scatter_that_subtracts_the_element_is_refused() -> None:
    text = """func.func @main(%x: tensor<3xf32>, %i: tensor<4x1xi64>, %u: tensor<4xf32>) -> tensor<3xf32> {
      %0 = "stablehlo.scatter"(%x, %i, %u) ({
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %s = stablehlo.subtract %q, %p : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
        scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}
        : (tensor<3xf32>, tensor<4x1xi64>, tensor<4xf32>) -> tensor<3xf32>
      return %0 : tensor<3xf32>
    }"""
    with pytest.raises(UnsupportedOpError, match=r"stablehlo\.scatter"):
        tt_torch.compile_stablehlo(text)
