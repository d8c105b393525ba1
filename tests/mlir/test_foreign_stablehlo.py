"""Whole programs in the form that JAX, XLA and tt-xla write. They are run and compared with plain PyTorch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from foreign_programs import CALL, TT, Program, check, i32, randn, run

from tt_torch.driver.partition import HostFallbackWarning
from tt_torch.driver.stablehlo import compile_stablehlo
from tt_torch.errors import UnsupportedOpError

# --- functions, composites that the compiler does not know, branches

X, T = randn(3, 4), "tensor<3x4xf32>"
CASE = f"""
%z = stablehlo.constant dense<1> : tensor<i32>
%c = stablehlo.compare LT, %b, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>
%0 = "stablehlo.case"(%b) ({{
  %1 = func.call @double(%a) : ({T}) -> {T}
  stablehlo.return %1 : {T}
}}, {{
  %1 = "stablehlo.if"(%c) ({{ stablehlo.return %a : {T} }}, {{
    %2 = stablehlo.negate %a : {T}
    stablehlo.return %2 : {T}
  }}) : (tensor<i1>) -> {T}
  stablehlo.return %1 : {T}
}}, {{
  %1 = stablehlo.abs %a : {T}
  stablehlo.return %1 : {T}
}}) : (tensor<i32>) -> {T}"""
DOUBLE = f"""
func.func private @double(%a: {T}) -> {T} {{
  %0 = stablehlo.composite "my.double" %a {{decomposition = @sum}} : ({T}) -> {T}
  return %0 : {T}
}}
func.func private @sum(%a: {T}) -> {T} {{
  %0 = stablehlo.add %a, %a : {T}
  return %0 : {T}
}}"""
TAKEN = {0: lambda x, _: 2 * x, 1: lambda x, _: -x, 2: lambda x, _: x.abs(), 9: lambda x, _: x.abs()}
PROGRAMS = [
    Program(f"branch {i}", CASE, f"%0 : {T}", (X, torch.tensor(i, dtype=torch.int32)), expected, DOUBLE)
    for i, expected in TAKEN.items()
]

# --- collectives in a group of one device, and custom calls by which XLA and tt-xla mark values

SUM = """({
^bb0(%x: tensor<f32>, %y: tensor<f32>):
  %s = stablehlo.add %x, %y : tensor<f32>
  stablehlo.return %s : tensor<f32>
})"""
GROUP = "replica_groups = dense<0> : tensor<1x1xi64>"
ALONE = f"""
%0 = stablehlo.custom_call @Sharding(%a) {{mhlo.sharding = "{{replicated}}"}} : ({T}) -> {T}
%1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {{mhlo.sharding = "{{manual}}"}} : ({T}) -> {T}
%2 = "stablehlo.all_reduce"(%1) {SUM} {{{GROUP}}} : ({T}) -> {T}
%3 = "stablehlo.all_gather"(%2) {{all_gather_dim = 1 : i64, {GROUP}}} : ({T}) -> {T}
%4 = "stablehlo.reduce_scatter"(%3) {SUM} {{scatter_dimension = 0 : i64, {GROUP}}} : ({T}) -> {T}
%5 = "stablehlo.all_to_all"(%4) {{split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 1 : i64,
  {GROUP}}} : ({T}) -> {T}
%6 = "stablehlo.collective_permute"(%5) {{source_target_pairs = dense<0> : tensor<1x2xi64>}} : ({T}) -> {T}
%7 = "stablehlo.collective_broadcast"(%6) {{{GROUP}}} : ({T}) -> {T}
%8 = "stablehlo.collective_permute"(%7) {{source_target_pairs = dense<> : tensor<0x2xi64>}} : ({T}) -> {T}
%9 = stablehlo.partition_id : tensor<ui32>
%10 = stablehlo.replica_id : tensor<ui32>"""
MARKED = f"""
%0 = {CALL.format("tt.mark_argument", "%a", TT, 'ttcore.argument_type = "input"')} ({T}) -> {T}
%1 = {CALL.format("tt.weight_dtype_override", "%0", TT, 'ttcore.weight_dtype = "bf16"')} ({T}) -> {T}
%2 = {CALL.format("mhlo.erf", "%1", "mhlo.attributes", "")} ({T}) -> {T}
%3 = {CALL.format("mhlo.asinh", "%1", "mhlo.attributes", "")} ({T}) -> {T}
%4:2 = {CALL.format("mhlo.topk", "%1", "mhlo.attributes", "k = 2 : i64, largest = true")} ({T})
  -> (tensor<3x2xf32>, tensor<3x2xi32>)
%t = {CALL.format("mhlo.topk", "%1", "mhlo.attributes", "k = 2 : i64, largest = false")} ({T})
  -> tuple<tensor<3x2xf32>, tensor<3x2xi32>>
%5 = stablehlo.get_tuple_element %t[0] : (tuple<tensor<3x2xf32>, tensor<3x2xi32>>) -> tensor<3x2xf32>
%u = stablehlo.tuple %5, %1 : tuple<tensor<3x2xf32>, {T}>
%7:2 = chlo.top_k(%1, k = 3) : {T} -> (tensor<3x3xf32>, tensor<3x3xi32>)
%6 = stablehlo.get_tuple_element %u[1] : (tuple<tensor<3x2xf32>, {T}>) -> {T}"""
PROGRAMS += [
    Program(
        "collectives",
        ALONE,
        f"%7, %8, %9, %10 : {T}, {T}, tensor<ui32>, tensor<ui32>",
        (X,),
        lambda x: (x, 0 * x.abs(), torch.tensor(0), torch.tensor(0)),
    ),
    Program(
        "custom calls",
        MARKED,
        f"%2, %3, %4#0, %4#1, %5, %7#0, %6 : {T}, {T}, "
        f"tensor<3x2xf32>, tensor<3x2xi32>, tensor<3x2xf32>, tensor<3x3xf32>, {T}",
        (X,),
        lambda x: (x.erf(), x.asinh(), x.topk(2)[0], x.topk(2)[1].int(), x.topk(2, largest=False)[0], x.topk(3)[0], x),
    ),
]

UNINDEXED = f"""
%i = stablehlo.constant dense<> : tensor<3x0xi32>
%0 = "stablehlo.gather"(%a, %i) {{dimension_numbers = #stablehlo.gather<offset_dims = [1], operand_batching_dims = [0],
  start_indices_batching_dims = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>}}
  : ({T}, tensor<3x0xi32>) -> tensor<3x2xf32>"""
PROGRAMS += [
    Program("windows of each batch without an index", UNINDEXED, "%0 : tensor<3x2xf32>", (X,), lambda x: x[:, :2])
]

# --- random bits: the expected states and numbers are those of JAX 0.10.2 on a CPU; the runtime returns ui32 as int64

STATE = torch.tensor([[1, 2], [0xFFFFFFFE, 4]], dtype=torch.uint32)
BITS = """
%s = stablehlo.bitcast_convert %a : (tensor<2x2xui32>) -> tensor<2xui64>
%n, %0 = stablehlo.rng_bit_generator %s, algorithm = ALGORITHM : (tensor<2xui64>) -> (tensor<2xui64>, tensor<3x5xKIND>)
%1 = stablehlo.bitcast_convert %n : (tensor<2xui64>) -> tensor<2x2xui32>"""
THREE_FRY = [3245475131, 4052128534, 1659226264, 1696293625, 2593290630, 1606051822, 2624171580, 1038787879, 1027009547]
THREE_FRY += [4194305631, 3319722726, 3349394164, 3246742639, 2561691331, 4198318772]
PHILOX = [3396751987, 1329782938, 4239702414, 3512349795, 2160442090, 646515821, 2332489852, 1920049738, 1192871431]
PHILOX += [4231507064, 808881777, 31250127, 567446892, 2209222090, 3891644431]
for algorithm, numbers, counter in (("THREE_FRY", THREE_FRY, 7), ("DEFAULT", THREE_FRY, 7), ("PHILOX", PHILOX, 2)):
    for kind, dtype in (("ui32", torch.int64), ("ui8", torch.uint8)):
        PROGRAMS += [
            Program(
                f"{algorithm} {kind}",
                BITS.replace("ALGORITHM", algorithm).replace("KIND", kind),
                f"%1, %0 : tensor<2x2xui32>, tensor<3x5x{kind}>",
                (STATE,),
                lambda _, counter=counter, numbers=numbers, dtype=dtype: (
                    torch.tensor([[1, 2], [counter, 5]]),
                    torch.tensor(numbers).to(dtype).reshape(3, 5),
                ),
            )
        ]

# All 64 bits of a constant are used. The device has only the lower words of 64-bit numbers, if only they are read.
WIDE = """
%s = stablehlo.constant dense<[30064771077, 4294967305]> : tensor<2xui64>
%n, %0 = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<5xui64>)
%1 = stablehlo.convert %0 : (tensor<5xui64>) -> tensor<5xui32>"""
LOWER = torch.tensor([2922930575, 932473556, 422555631, 3580238274, 151113864])
PROGRAMS += [Program("64 bits", WIDE, "%1 : tensor<5xui32>", (), lambda: LOWER)]

# --- quantized values

QUANTIZED = "tensor<3x4x!quant.uniform<i8:f32, 0.05:3>>"
COLUMNS = "tensor<4x2x!quant.uniform<i8:f32:1, {0.01, 0.02}>>"
SUMS = "tensor<3x2x!quant.uniform<i32:f32:1, {0.0005, 0.001}>>"
OTHER = "tensor<3x4x!quant.uniform<u8:f32, 0.1:128>>"
QUANTIZING = f"""
%0 = stablehlo.uniform_quantize %a : ({T}) -> {QUANTIZED}
%1 = stablehlo.uniform_quantize %b : (tensor<4x2xf32>) -> {COLUMNS}
%2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : ({QUANTIZED}, {COLUMNS}) -> {SUMS}
%3 = stablehlo.uniform_dequantize %2 : ({SUMS}) -> tensor<3x2xf32>
%4 = stablehlo.uniform_quantize %0 : ({QUANTIZED}) -> {OTHER}
%5 = stablehlo.uniform_dequantize %4 : ({OTHER}) -> {T}"""


def quantized(x: torch.Tensor, w: torch.Tensor) -> Any:
    x = torch.fake_quantize_per_tensor_affine(x, 0.05, 3, -128, 127)
    w = torch.fake_quantize_per_channel_affine(w, torch.tensor([0.01, 0.02]), torch.zeros(2).int(), 1, -128, 127)
    return x @ w, torch.fake_quantize_per_tensor_affine(x, 0.1, 128, 0, 255)


PROGRAMS += [Program("quantized", QUANTIZING, f"%3, %5 : tensor<3x2xf32>, {T}", (X, randn(4, 2)), quantized)]


# --- indices out of range, windows of images with the channels last, orders by two keys

Y, IMAGES = "tensor<5x4xf32>", "tensor<2x6x6x3xf32>"
REDUCER = """^bb0(%x: tensor<f32>, %y: tensor<f32>):
  %m = stablehlo.KIND %x, %y : tensor<f32>
  stablehlo.return %m : tensor<f32>"""
INDEXED = f"""
%0 = "stablehlo.gather"(%a, %b) {{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], start_index_map = [0],
  index_vector_dim = 1>, slice_sizes = array<i64: 2, 3>}} : ({Y}, tensor<3xi32>) -> tensor<3x2x3xf32>
%1 = "stablehlo.scatter"(%a, %b, %c) ({{{REDUCER.replace("KIND", "add")}
}}) {{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0],
  index_vector_dim = 1>}} : ({Y}, tensor<3xi32>, tensor<3x2x3xf32>) -> {Y}"""
SLIDING = f"""
%i = stablehlo.constant dense<0xFF800000> : tensor<f32>
%z = stablehlo.constant dense<0.0> : tensor<f32>
%0 = "stablehlo.reduce_window"(%a, %i) ({{{REDUCER.replace("KIND", "maximum")}
}}) {{window_dimensions = array<i64: 1, 3, 2, 2>, window_strides = array<i64: 1, 2, 2, 1>}} : ({IMAGES}, tensor<f32>)
  -> tensor<2x2x3x2xf32>
%1 = "stablehlo.reduce_window"(%a, %i) ({{{REDUCER.replace("KIND", "maximum")}
}}) {{window_dimensions = array<i64: 1, 6, 1, 1>, padding = dense<[[0, 0], [0, 5], [0, 0], [0, 0]]> : tensor<4x2xi64>}}
  : ({IMAGES}, tensor<f32>) -> {IMAGES}
%2 = "stablehlo.select_and_scatter"(%a, %b, %z) ({{
^bb0(%x: tensor<f32>, %y: tensor<f32>):
  %m = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
  stablehlo.return %m : tensor<i1>
}}, {{{REDUCER.replace("KIND", "add")}
}}) {{window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}}
  : ({IMAGES}, tensor<2x3x3x3xf32>, tensor<f32>) -> {IMAGES}"""
ORDERED = """
%0:2 = "stablehlo.sort"(%a, %b) ({
^bb0(%p: tensor<i32>, %q: tensor<i32>, %r: tensor<f32>, %s: tensor<f32>):
  %1 = stablehlo.compare LT, %p, %q : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %2 = stablehlo.compare EQ, %p, %q : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %3 = stablehlo.compare GT, %r, %s : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %4 = stablehlo.and %2, %3 : tensor<i1>
  %5 = stablehlo.or %1, %4 : tensor<i1>
  stablehlo.return %5 : tensor<i1>
}) {dimension = 0 : i64} : (tensor<6xi32>, tensor<6xf32>) -> (tensor<6xi32>, tensor<6xf32>)"""


def indexed(x: torch.Tensor, at: torch.Tensor, updates: torch.Tensor) -> Any:
    """A window out of range is moved back if it is read, and dropped if it is written."""
    added = x.clone()
    for row, update in zip(at.tolist(), updates, strict=True):
        if 0 <= row <= 3:
            added[row : row + 2, :3] += update
    return torch.stack([x[row : row + 2, :3] for row in at.clamp(0, 3).tolist()]), added


def slid(x: torch.Tensor, grad: torch.Tensor) -> Any:
    pooled = F.max_pool3d(x.unsqueeze(1), (3, 2, 2), (2, 2, 1)).squeeze(1)
    first = x.permute(0, 3, 1, 2)
    _, backward = torch.func.vjp(lambda v: F.max_pool2d(v, 2), first)
    return pooled, x.flip(1).cummax(1)[0].flip(1), backward(grad.permute(0, 3, 1, 2))[0].permute(0, 2, 3, 1)


def ordered(key: torch.Tensor, x: torch.Tensor) -> Any:
    rows = sorted(zip(key.tolist(), x.tolist(), strict=True), key=lambda row: (row[0], -row[1]))
    return i32(*(row[0] for row in rows)), torch.tensor([row[1] for row in rows])


PROGRAMS += [
    Program(
        "indices", INDEXED, f"%0, %1 : tensor<3x2x3xf32>, {Y}", (randn(5, 4), i32(-1, 4, 2), randn(3, 2, 3)), indexed
    ),
    Program(
        "windows",
        SLIDING,
        f"%0, %1, %2 : tensor<2x2x3x2xf32>, {IMAGES}, {IMAGES}",
        (randn(2, 6, 6, 3), randn(2, 3, 3, 3)),
        slid,
    ),
    Program(
        "two keys", ORDERED, "%0#0, %0#1 : tensor<6xi32>, tensor<6xf32>", (i32(2, 1, 2, 0, 1, 2), randn(6)), ordered
    ),
]


# --- complex numbers, which have a last dimension of two as arguments and results

COMPLEX = f"""
%p = stablehlo.reshape %b : ({T}) -> tensor<4x3xf32>
%0 = stablehlo.transpose %p, dims = [1, 0] : (tensor<4x3xf32>) -> {T}
%1 = stablehlo.complex %a, %0 : tensor<3x4xcomplex<f32>>
%c = stablehlo.constant dense<[(1.0, 2.0), (0.5, -1.0), (0.0, 3.0), (0x7F800000, 1.0)]> : tensor<4xcomplex<f32>>
%2 = stablehlo.slice %c [0:3] : (tensor<4xcomplex<f32>>) -> tensor<3xcomplex<f32>>
%3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<3xcomplex<f32>>) -> tensor<3x4xcomplex<f32>>
%4 = stablehlo.multiply %1, %3 : tensor<3x4xcomplex<f32>>
%5 = stablehlo.divide %4, %1 : tensor<3x4xcomplex<f32>>
%6 = stablehlo.exponential %1 : tensor<3x4xcomplex<f32>>
%7 = stablehlo.dot_general %6, %1, contracting_dims = [1] x [1]
  : (tensor<3x4xcomplex<f32>>, tensor<3x4xcomplex<f32>>) -> tensor<3x3xcomplex<f32>>
%8 = stablehlo.real %5 : (tensor<3x4xcomplex<f32>>) -> {T}
%9 = stablehlo.abs %7 : (tensor<3x3xcomplex<f32>>) -> tensor<3x3xf32>"""


def complexes(x: torch.Tensor, y: torch.Tensor) -> Any:
    z = torch.complex(x, y.reshape(4, 3).T.contiguous())
    scaled = z * torch.tensor([1 + 2j, 0.5 - 1j, 3j])[:, None]
    return torch.view_as_real(scaled), (scaled / z).real, (z.exp() @ z.T).abs()


PROGRAMS += [
    Program(
        "complex",
        COMPLEX,
        f"%4, %8, %9 : tensor<3x4xcomplex<f32>>, {T}, tensor<3x3xf32>",
        (X, X.flip(1)),
        complexes,
    )
]

# --- booleans, whose arithmetic is logic; integers of 8 bits, which wrap; integers of 64 bits that become floats

V, B = "tensor<3xf32>", "tensor<3xi1>"
LOGIC = f"""
%z = stablehlo.constant dense<0.0> : {V}
%x = stablehlo.compare GT, %a, %z : ({V}, {V}) -> {B}
%y = stablehlo.compare GT, %b, %z : ({V}, {V}) -> {B}
%s = stablehlo.add %x, %y : {B}
%p = stablehlo.multiply %x, %y : {B}
%m = stablehlo.maximum %x, %y : {B}
%n = stablehlo.minimum %x, %y : {B}
%i = stablehlo.constant dense<[[0], [0], [2]]> : tensor<3x1xi32>
%w = "stablehlo.scatter"(%x, %i, %y) ({{
^bb0(%l: tensor<i1>, %r: tensor<i1>):
  %t = stablehlo.add %l, %r : tensor<i1>
  stablehlo.return %t : tensor<i1>
}}) {{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
  index_vector_dim = 1>}} : ({B}, tensor<3x1xi32>, {B}) -> {B}
%f = stablehlo.constant dense<false> : tensor<i1>
%e = stablehlo.reduce(%s init: %f) applies stablehlo.add across dimensions = [0] : ({B}, tensor<i1>) -> tensor<i1>
%0 = stablehlo.convert %s : ({B}) -> {V}
%1 = stablehlo.convert %p : ({B}) -> {V}
%2 = stablehlo.convert %m : ({B}) -> {V}
%3 = stablehlo.convert %n : ({B}) -> {V}
%4 = stablehlo.convert %w : ({B}) -> {V}
%5 = stablehlo.convert %e : (tensor<i1>) -> tensor<f32>"""
LARGE = f"""
%k = stablehlo.constant dense<10000000000> : tensor<i64>
%r = stablehlo.broadcast_in_dim %k, dims = [] : (tensor<i64>) -> tensor<3xi64>
%f = stablehlo.convert %r : (tensor<3xi64>) -> {V}
%0 = stablehlo.divide %a, %f : {V}
%l = stablehlo.constant dense<[1, 1099511627776, -3000000000]> : tensor<3xi64>
%g = stablehlo.convert %l : (tensor<3xi64>) -> {V}
%1 = stablehlo.multiply %a, %g : {V}"""


BYTE, BYTES, INTS = "tensor<i8>", "tensor<4xi8>", "tensor<4xi32>"
NARROW = f"""
%x = stablehlo.convert %a : ({INTS}) -> {BYTES}
%y = stablehlo.convert %b : ({INTS}) -> {BYTES}
%s = stablehlo.add %x, %y : {BYTES}
%m = stablehlo.multiply %x, %y : {BYTES}
%n = stablehlo.negate %x : {BYTES}
%l = stablehlo.shift_left %x, %y : {BYTES}
%r = stablehlo.shift_right_logical %x, %y : {BYTES}
%h = stablehlo.shift_right_arithmetic %x, %y : {BYTES}
%z = stablehlo.constant dense<0> : {BYTE}
%t = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : ({BYTES}, {BYTE}) -> {BYTE}
""" + "".join(f"%{i} = stablehlo.convert %{name} : ({BYTES}) -> {INTS}\n" for i, name in enumerate("smnlrh"))
NARROW += f"%6 = stablehlo.convert %t : ({BYTE}) -> tensor<i32>"


def narrow(a: torch.Tensor, b: torch.Tensor) -> list[torch.Tensor]:
    """A shift to the right that fills with zeros is computed with unsigned numbers."""
    x, y = a.to(torch.int8), b.to(torch.int8)
    right = (x.view(torch.uint8) >> y.view(torch.uint8)).view(torch.int8)
    return [v.int() for v in (x + y, x * y, -x, x << y, right, x >> y, x.sum(dtype=torch.int8))]


def logic(x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    x, y = x > 0, y > 0
    written = torch.stack([x[0] | y[0] | y[1], x[1], x[2] | y[2]])
    return [v.float() for v in (x | y, x & y, x | y, x & y, written, (x | y).any())]


SIGNS = (torch.tensor([1.0, -1.0, 1.0]), torch.tensor([1.0, 1.0, -1.0]))
PROGRAMS += [
    Program("booleans", LOGIC, f"%0, %1, %2, %3, %4, %5 : {', '.join([V] * 5)}, tensor<f32>", SIGNS, logic),
    Program(
        "int8",
        NARROW,
        f"%0, %1, %2, %3, %4, %5, %6 : {', '.join([INTS] * 6)}, tensor<i32>",
        (i32(100, -128, -1, 77), i32(100, 3, 1, 9)),
        narrow,
    ),
    Program(
        "large integers",
        LARGE,
        f"%0, %1 : {V}, {V}",
        (randn(3) * 1e10,),
        lambda x: (x / 1e10, x * torch.tensor([1, 2.0**40, -3e9])),
    ),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_program(program: Program) -> None:
    check(program)


BEYOND = """
%k = stablehlo.constant dense<{}> : tensor<i64>
%x = stablehlo.convert %a : (tensor<i32>) -> tensor<i64>
%y = stablehlo.{} %x, %k : tensor<i64>
%0 = stablehlo.convert %y : (tensor<i64>) -> tensor<i32>"""


@pytest.mark.parametrize(("op", "expected"), [("minimum", 7), ("maximum", 2**31 - 1)])
def test_a_bound_beyond_32_bits_is_the_largest_integer(op: str, expected: int) -> None:
    bound = Program(
        op, BEYOND.format(2**40, op), "%0 : tensor<i32>", (torch.tensor(7, dtype=torch.int32),), lambda _: ()
    )
    assert run(bound)[0].item() == expected


def test_other_integers_beyond_32_bits_are_refused() -> None:
    total = Program("add", BEYOND.format(2**40, "add"), "%0 : tensor<i32>", (i32(7)[0],), lambda _: ())
    with pytest.raises(UnsupportedOpError, match="integers of 32 bits"):
        run(total)


def test_the_host_joins_the_words_of_random_bits() -> None:
    """The values are those of XLA."""
    kinds = "tensor<2xui64>, tensor<5xui64>"
    text = f"func.func @main() -> ({kinds}) {{{WIDE}\nreturn %n, %0 : {kinds}\n}}"
    with pytest.warns(HostFallbackWarning, match="bitcast_convert"):
        state, numbers = compile_stablehlo(text)()
    assert state.tolist() == [30064771077, 4294967310]
    assert [x % 2**32 for x in numbers.tolist()] == LOWER.tolist()
    assert [x >> 32 for x in numbers.tolist()] == [1052625415, 3085245494, 2669277976, 231252706, 3888221574]
