"""One small program for each op of StableHLO. The arguments are `%a`, `%b` and `%c`; the body makes `%0`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

F, N, B = (f"tensor<2x3x{kind}>" for kind in ("f32", "i32", "i1"))
C = "tensor<2x3xcomplex<f32>>"
SF, SI, SB, V, SQUARE = "tensor<f32>", "tensor<i32>", "tensor<i1>", "tensor<3xf32>", "tensor<3x3xf32>"
Q = "tensor<2x3x!quant.uniform<i8:f32, 0.5:3>>"
IMAGE, KERNEL, SLID = "tensor<1x4x4x2xf32>", "tensor<2x2x2x3xf32>", "tensor<1x3x3x3xf32>"
TOKEN = "!stablehlo.token"
ALONE = "replica_groups = dense<0> : tensor<1x1xi64>"
ADD = """({
^bb0(%x: tensor<f32>, %y: tensor<f32>):
  %s = stablehlo.add %x, %y : tensor<f32>
  stablehlo.return %s : tensor<f32>
})"""
GREATER = """({
^bb0(%x: tensor<f32>, %y: tensor<f32>):
  %g = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
  stablehlo.return %g : tensor<i1>
})"""
DIMS = "dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
GROUPS = "{batch_group_count = 1 : i64, feature_group_count = 1 : i64}"
GATHERED = """#stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0],
  index_vector_dim = 1>"""


@dataclass(frozen=True)
class Spec:
    """`expected` computes what StableHLO's interpreter cannot compute."""

    arguments: tuple[str, ...]
    body: str
    result: str
    expected: Callable[..., Any] | None = None
    functions: str = ""

    def text(self) -> str:
        arguments = ", ".join(f"%{name}: {kind}" for name, kind in zip("abcd", self.arguments, strict=False))
        head = f"func.func @main({arguments}) -> {self.result} {{"
        return f"{head}\n{self.body}\nreturn %0 : {self.result}\n}}\n{self.functions}"


def _same(kind: str, names: str, operands: int) -> dict[str, Spec]:
    given = ", ".join(f"%{name}" for name in "abc"[:operands])
    return {n: Spec((kind,) * operands, f"%0 = stablehlo.{n} {given} : {kind}", kind) for n in names.split()}


def _op(body: str, result: str, *arguments: str, expected: Callable[..., Any] | None = None) -> Spec:
    return Spec(arguments, body, result, expected)


def _batch_norm(x: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
    scale, offset, mean, variance = rest
    return (x - mean) * torch.rsqrt(variance + 0.001) * scale + offset


def _batch_norm_grad(x: torch.Tensor, scale: torch.Tensor, noise: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    """The gradient of the operand, as the specification defines it. The program passes the scale as the mean, too."""
    wide, centred = noise.abs() + 0.001, x - scale
    rest = grad * len(x) - grad.sum(0) - (grad * centred).sum(0) * centred / wide
    return scale / wide.sqrt() / len(x) * rest


SPECS = {
    **_same(F, "abs cbrt ceil cosine exponential exponential_minus_one floor log log_plus_one logistic negate", 1),
    **_same(F, "optimization_barrier round_nearest_afz round_nearest_even rsqrt sign sine sqrt tan tanh", 1),
    **_same(N, "count_leading_zeros not popcnt", 1),
    **_same(F, "add atan2 divide maximum minimum multiply power remainder subtract", 2),
    **_same(N, "and or shift_left shift_right_arithmetic shift_right_logical xor", 2),
    **_same(F, "clamp", 3),
    "all_gather": _op(f'%0 = "stablehlo.all_gather"(%a) {{all_gather_dim = 1 : i64, {ALONE}}} : ({F}) -> {F}', F, F,
        expected=lambda x: x),
    "all_reduce": _op(f'%0 = "stablehlo.all_reduce"(%a) {ADD} {{{ALONE}}} : ({F}) -> {F}', F, F,
        expected=lambda x: x),
    "all_to_all": _op(f'%0 = "stablehlo.all_to_all"(%a) {{split_dimension = 0 : i64, concat_dimension = 1 : i64, '
        f"split_count = 1 : i64, {ALONE}}} : ({F}) -> {F}", F, F, expected=lambda x: x),
    "collective_broadcast": _op(f'%0 = "stablehlo.collective_broadcast"(%a) {{{ALONE}}} : ({F}) -> {F}', F, F,
        expected=lambda x: x),
    "collective_permute": _op(f'%0 = "stablehlo.collective_permute"(%a) {{source_target_pairs = dense<0> : '
        f"tensor<1x2xi64>}} : ({F}) -> {F}", F, F, expected=lambda x: x),
    "collective_reduce": _op(f'%0 = "stablehlo.collective_reduce"(%a) {ADD} {{{ALONE}}} : ({F}) -> {F}', F, F),
    "reduce_scatter": _op(f'%0 = "stablehlo.reduce_scatter"(%a) {ADD} {{scatter_dimension = 0 : i64, {ALONE}}} : '
        f"({F}) -> {F}", F, F, expected=lambda x: x),
    "partition_id": _op("%0 = stablehlo.partition_id : tensor<ui32>", "tensor<ui32>",
        expected=lambda: torch.tensor(0)),
    "replica_id": _op("%0 = stablehlo.replica_id : tensor<ui32>", "tensor<ui32>", expected=lambda: torch.tensor(0)),
    "after_all": _op(f"%t = stablehlo.create_token : {TOKEN}\n%u = stablehlo.after_all %t : {TOKEN}\n"
        f'%0, %v = "stablehlo.infeed"(%u) {{infeed_config = ""}} : ({TOKEN}) -> ({F}, {TOKEN})', F),
    "infeed": _op(f'%t = stablehlo.create_token : {TOKEN}\n%0, %v = "stablehlo.infeed"(%t) {{infeed_config = ""}} : '
        f"({TOKEN}) -> ({F}, {TOKEN})", F),
    "outfeed": _op(f'%t = stablehlo.create_token : {TOKEN}\n%u = "stablehlo.outfeed"(%a, %t) {{outfeed_config = ""}} '
        f": ({F}, {TOKEN}) -> {TOKEN}\n%0 = stablehlo.negate %a : {F}", F, F),
    "recv": _op(f'%t = stablehlo.create_token : {TOKEN}\n%0, %v = "stablehlo.recv"(%t) {{channel_handle = '
        f"#stablehlo.channel_handle<handle = 1, type = 3>, is_host_transfer = true}} : ({TOKEN}) -> ({F}, {TOKEN})", F),
    "send": _op(f'%t = stablehlo.create_token : {TOKEN}\n%u = "stablehlo.send"(%a, %t) {{channel_handle = '
        f"#stablehlo.channel_handle<handle = 1, type = 2>, is_host_transfer = true}} : ({F}, {TOKEN}) -> {TOKEN}\n"
        f"%0 = stablehlo.negate %a : {F}", F, F),
    "async_start": _op(f'%f = "stablehlo.async_start"(%a) ({{\n^bb0(%x: {F}):\n%y = "stablehlo.all_gather"(%x) '
        f"{{all_gather_dim = 1 : i64, {ALONE}}} : ({F}) -> {F}\nstablehlo.return %y : {F}\n}}) : ({F}) -> "
        f"!stablehlo.future<{F}>\n%0 = \"stablehlo.async_done\"(%f) : (!stablehlo.future<{F}>) -> {F}", F, F),
    "batch_norm_grad": _op(f'%p = stablehlo.abs %c : {V}\n%0, %1, %2 = "stablehlo.batch_norm_grad"(%a, %b, %b, %p, %d) '
        f"{{epsilon = 0.001 : f32, feature_index = 1 : i64}} : ({F}, {V}, {V}, {V}, {F}) -> ({F}, {V}, "
        f"{V})", F, F, V, V,
        F, expected=_batch_norm_grad),
    "batch_norm_inference": _op(f'%p = stablehlo.abs %b : {V}\n%0 = "stablehlo.batch_norm_inference"(%a, %b, %c, %b, '
        f"%p) {{epsilon = 0.001 : f32, feature_index = 1 : i64}} : ({F}, {V}, {V}, {V}, {V}) -> {F}", F, F, V, V,
        expected=lambda x, s, o: _batch_norm(x, s, o, s, s.abs())),
    "batch_norm_training": _op(f'%0, %1, %2 = "stablehlo.batch_norm_training"(%a, %b, %c) {{epsilon = 0.001 : f32, '
        f"feature_index = 1 : i64}} : ({F}, {V}, {V}) -> ({F}, {V}, {V})", F, F, V, V,
        expected=lambda x, s, o: _batch_norm(x, s, o, x.mean(0), x.var(0, correction=0))),
    "bitcast_convert": _op(f"%0 = stablehlo.bitcast_convert %a : ({F}) -> {N}", N, F),
    "broadcast": _op(f"%0 = stablehlo.broadcast %a, sizes = [2] : ({V}) -> {F}", F, V,
        expected=lambda x: x.expand(2, 3)),
    "broadcast_in_dim": _op(f"%0 = stablehlo.broadcast_in_dim %a, dims = [1] : ({V}) -> {F}", F, V),
    "case": _op(f'%0 = "stablehlo.case"(%b) ({{ stablehlo.return %a : {F} }}, {{ %n = stablehlo.negate %a : {F}\n'
        f"stablehlo.return %n : {F} }}) : ({SI}) -> {F}", F, F, SI),
    "if": _op(f'%0 = "stablehlo.if"(%b) ({{ stablehlo.return %a : {F} }}, {{ %n = stablehlo.negate %a : {F}\n'
        f"stablehlo.return %n : {F} }}) : ({SB}) -> {F}", F, F, SB),
    "while": _op(f"%i = stablehlo.constant dense<0> : {SI}\n%n = stablehlo.constant dense<3> : {SI}\n%o = "
        f"stablehlo.constant dense<1> : {SI}\n%w:2 = stablehlo.while(%j = %i, %x = %a) : {SI}, {F}\ncond {{\n%p = "
        f"stablehlo.compare LT, %j, %n : ({SI}, {SI}) -> {SB}\nstablehlo.return %p : {SB}\n}} do {{\n%k = "
        f"stablehlo.add "
        f"%j, %o : {SI}\n%y = stablehlo.add %x, %x : {F}\nstablehlo.return %k, %y : {SI}, {F}\n}}\n%0 = "
        f"stablehlo.negate %w#1 : {F}", F, F),
    "return": _op(f"%i = stablehlo.constant dense<0.0> : {SF}\n%0 = \"stablehlo.reduce\"(%a, %i) {ADD} {{dimensions = "
        f"array<i64: 0>}} : ({F}, {SF}) -> {V}", V, F),
    "cholesky": _op(f"%p = stablehlo.transpose %a, dims = [1, 0] : ({SQUARE}) -> {SQUARE}\n%m = stablehlo.dot_general "
        f"%a, %p, contracting_dims = [1] x [0] : ({SQUARE}, {SQUARE}) -> {SQUARE}\n%0 = stablehlo.cholesky %m, "
        f"lower = true : {SQUARE}", SQUARE, SQUARE, expected=lambda x: torch.linalg.cholesky(x @ x.T)),
    "compare": _op(f"%0 = stablehlo.compare LT, %a, %b : ({F}, {F}) -> {B}", B, F, F),
    "complex": _op(f"%c = stablehlo.complex %a, %b : {C}\n%0 = stablehlo.real %c : ({C}) -> {F}", F, F, F),
    "real": _op(f"%c = stablehlo.complex %a, %b : {C}\n%0 = stablehlo.real %c : ({C}) -> {F}", F, F, F),
    "imag": _op(f"%c = stablehlo.complex %a, %b : {C}\n%0 = stablehlo.imag %c : ({C}) -> {F}", F, F, F),
    "composite": Spec((F,), f'%0 = stablehlo.composite "my.op" %a {{decomposition = @own}} : ({F}) -> {F}', F,
        lambda x: -x, f"func.func private @own(%a: {F}) -> {F} {{\n%0 = stablehlo.negate %a : {F}\nreturn %0 : "
        f"{F}\n}}"),
    "concatenate": _op(f"%0 = stablehlo.concatenate %a, %b, dim = 0 : ({F}, {F}) -> tensor<4x3xf32>",
        "tensor<4x3xf32>", F, F),
    "constant": _op(f"%0 = stablehlo.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : {F}", F),
    "convert": _op(f"%0 = stablehlo.convert %a : ({N}) -> {F}", F, N),
    "convolution": _op(f"%0 = stablehlo.convolution(%a, %b) {DIMS}, window = {{}} {GROUPS} : ({IMAGE}, {KERNEL}) -> "
        f"{SLID}", SLID, IMAGE, KERNEL),
    "custom_call": _op(f'%0 = stablehlo.custom_call @Sharding(%a) {{mhlo.sharding = "{{replicated}}"}} : ({F}) -> {F}',
        F, F, expected=lambda x: x),
    "dot": _op(f"%0 = stablehlo.dot %a, %b : ({F}, {SQUARE}) -> {F}", F, F, SQUARE, expected=lambda x, y: x @ y),
    "dot_general": _op(f"%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({F}, {SQUARE}) -> {F}", F,
        F, SQUARE),
    "einsum": _op(f'%0 = "stablehlo.einsum"(%a, %b) {{einsum_config = "ij,jk->ik"}} : ({F}, {SQUARE}) -> {F}', F, F,
        SQUARE, expected=lambda x, y: x @ y),
    "unary_einsum": _op(f'%0 = "stablehlo.unary_einsum"(%a) {{einsum_config = "ij->j"}} : ({F}) -> {V}', V, F,
        expected=lambda x: x.sum(0)),
    "dynamic_broadcast_in_dim": _op(f"%s = stablehlo.constant dense<[2, 3]> : tensor<2xi32>\n%0 = "
        f"stablehlo.dynamic_broadcast_in_dim %a, %s, dims = [1] : ({V}, tensor<2xi32>) -> {F}", F, V),
    "dynamic_conv": _op(f"%s = stablehlo.constant dense<0> : tensor<2x2xi32>\n%0 = \"stablehlo.dynamic_conv\"(%a, %b, "
        f"%s) {{dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, batch_group_count = 1 : "
        f"i64, feature_group_count = 1 : i64}} : ({IMAGE}, {KERNEL}, tensor<2x2xi32>) -> {SLID}", SLID, IMAGE, KERNEL),
    "dynamic_gather": _op(f"%i = stablehlo.constant dense<[1, 0]> : tensor<2xi32>\n%s = stablehlo.constant "
        f"dense<[1, 3]>"
        f' : tensor<2xi32>\n%0 = "stablehlo.dynamic_gather"(%a, %i, %s) {{dimension_numbers = {GATHERED}}} : ({F}, '
        f"tensor<2xi32>, tensor<2xi32>) -> {F}", F, F),
    "dynamic_iota": _op(f"%s = stablehlo.constant dense<[2, 3]> : tensor<2xi32>\n%0 = stablehlo.dynamic_iota "
        f"%s, dim = 1"
        f" : (tensor<2xi32>) -> {F}", F),
    "dynamic_pad": _op(f"%l = stablehlo.constant dense<1> : tensor<1xi32>\n%0 = stablehlo.dynamic_pad %a, %b, %l, %l, "
        f"%l : ({V}, {SF}, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<7xf32>", "tensor<7xf32>", V, SF),
    "dynamic_reshape": _op(f"%s = stablehlo.constant dense<[3, 2]> : tensor<2xi32>\n%0 = stablehlo.dynamic_reshape %a, "
        f"%s : ({F}, tensor<2xi32>) -> tensor<3x2xf32>", "tensor<3x2xf32>", F),
    "dynamic_slice": _op(f"%0 = stablehlo.dynamic_slice %a, %b, %b, sizes = [1, 2] : ({F}, {SI}, {SI}) -> "
        "tensor<1x2xf32>", "tensor<1x2xf32>", F, SI),
    "dynamic_update_slice": _op(f"%0 = stablehlo.dynamic_update_slice %a, %b, %c, %c : ({F}, tensor<1x2xf32>, {SI}, "
        f"{SI}) -> {F}", F, F, "tensor<1x2xf32>", SI),
    "real_dynamic_slice": _op(f"%l = stablehlo.constant dense<1> : tensor<1xi32>\n%u = stablehlo.constant dense<3> : "
        f"tensor<1xi32>\n%0 = stablehlo.real_dynamic_slice %a, %l, %u, %l : ({V}, tensor<1xi32>, tensor<1xi32>, "
        "tensor<1xi32>) -> tensor<2xf32>", "tensor<2xf32>", V,
        expected=lambda x: x[1:3]),
    "fft": _op(f"%c = stablehlo.fft %a, type = RFFT, length = [3] : ({F}) -> tensor<2x2xcomplex<f32>>\n%0 = "
        "stablehlo.imag %c : (tensor<2x2xcomplex<f32>>) -> tensor<2x2xf32>", "tensor<2x2xf32>", F,
        expected=lambda x: torch.fft.rfft(x).imag),
    "gather": _op(f'%0 = "stablehlo.gather"(%a, %b) {{dimension_numbers = {GATHERED}, slice_sizes = array<i64: 1, 3>}} '
        f": ({F}, tensor<2xi32>) -> {F}", F, F, "tensor<2xi32>"),
    "get_dimension_size": _op(f"%0 = stablehlo.get_dimension_size %a, dim = 1 : ({F}) -> {SI}", SI, F),
    "set_dimension_size": _op(f"%n = stablehlo.constant dense<2> : {SI}\n%0 = stablehlo.set_dimension_size %a, %n, dim "
        f"= 1 : ({F}, {SI}) -> tensor<2x?xf32, #stablehlo.bounds<?, 3>>",
        "tensor<2x?xf32, #stablehlo.bounds<?, 3>>", F),
    "tuple": _op(f"%t = stablehlo.tuple %a : tuple<{F}>\n%0 = stablehlo.get_tuple_element %t[0] : (tuple<{F}>) -> {F}",
        F, F),
    "iota": _op(f"%0 = stablehlo.iota dim = 1 : {F}", F),
    "is_finite": _op(f"%0 = stablehlo.is_finite %a : ({F}) -> {B}", B, F),
    "map": _op(f'%0 = "stablehlo.map"(%a, %b) {ADD} {{dimensions = array<i64: 0, 1>}} : ({F}, {F}) -> {F}', F, F, F),
    "pad": _op(f"%0 = stablehlo.pad %a, %b, low = [1], high = [0], interior = [1] : ({V}, {SF}) -> tensor<6xf32>",
        "tensor<6xf32>", V, SF),
    "reduce": _op(f'%0 = "stablehlo.reduce"(%a, %b) {ADD} {{dimensions = array<i64: 0>}} : ({F}, {SF}) -> '
        f'{V}', V, F, SF),
    "reduce_precision": _op(f"%0 = stablehlo.reduce_precision %a, format = e5m2 : {F}", F, F),
    "reduce_window": _op(f'%0 = "stablehlo.reduce_window"(%a, %b) {ADD} {{window_dimensions = array<i64: 2>}} : ({V}, '
        f"{SF}) -> tensor<2xf32>", "tensor<2xf32>", V, SF),
    "reshape": _op(f"%0 = stablehlo.reshape %a : ({F}) -> tensor<3x2xf32>", "tensor<3x2xf32>", F),
    "reverse": _op(f"%0 = stablehlo.reverse %a, dims = [1] : {F}", F, F),
    "rng": _op(f"%l = stablehlo.constant dense<1.0> : {SF}\n%u = stablehlo.constant dense<1.0> : {SF}\n%s = "
        f"stablehlo.constant dense<[2, 3]> : tensor<2xi64>\n%0 = stablehlo.rng %l, %u, %s, distribution = UNIFORM : "
        f"({SF}, {SF}, tensor<2xi64>) -> {F}", F, expected=lambda: torch.ones(2, 3)),
    "rng_bit_generator": _op("%s = stablehlo.constant dense<[30064771077, 4294967305]> : tensor<2xui64>\n%n, %r = "
        "stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<5xui64>)\n"
        "%0 = stablehlo.convert %r : (tensor<5xui64>) -> tensor<5xui32>", "tensor<5xui32>",
        expected=lambda: torch.tensor([2922930575, 932473556, 422555631, 3580238274, 151113864])),
    "scatter": _op(f'%0 = "stablehlo.scatter"(%a, %b, %c) {ADD} {{scatter_dimension_numbers = #stablehlo.scatter<'
        f"inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}} : ({V}, "
        f"tensor<2x1xi32>, tensor<2xf32>) -> {V}", V, V, "tensor<2x1xi32>", "tensor<2xf32>"),
    "select": _op(f"%0 = stablehlo.select %a, %b, %c : {B}, {F}", F, B, F, F),
    "select_and_scatter": _op(f"%z = stablehlo.constant dense<0.0> : {SF}\n%0 = "
        f"\"stablehlo.select_and_scatter\"(%a, %b, "
        f"%z) ({GREATER[1:-1]}, {ADD[1:-1]}) {{window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = "
        f"array<i64: 1, "
        f"2, 2, 1>}} : ({IMAGE}, tensor<1x2x2x2xf32>, {SF}) -> {IMAGE}", IMAGE, IMAGE, "tensor<1x2x2x2xf32>"),
    "slice": _op(f"%0 = stablehlo.slice %a [0:2, 0:3:2] : ({F}) -> tensor<2x2xf32>", "tensor<2x2xf32>", F),
    "sort": _op(f'%0 = "stablehlo.sort"(%a) {GREATER.replace("GE", "GT")} {{dimension = 1 : i64}} : ({F}) -> '
        f'{F}', F, F),
    "torch_index_select": _op(f'%0 = "stablehlo.torch_index_select"(%a, %b) {{dim = 0 : i64, batch_dims = 0 : i64}} : '
        f"({F}, tensor<2xi32>) -> {F}", F, F, "tensor<2xi32>"),
    "transpose": _op(f"%0 = stablehlo.transpose %a, dims = [1, 0] : ({F}) -> tensor<3x2xf32>", "tensor<3x2xf32>", F),
    "triangular_solve": _op(f'%0 = "stablehlo.triangular_solve"(%a, %b) {{left_side = true, lower = true, '
        f'unit_diagonal '
        f"= true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}} : ({SQUARE}, {SQUARE}) -> {SQUARE}", SQUARE,
        SQUARE, SQUARE,
        expected=lambda a, b: torch.linalg.solve_triangular(a, b, upper=False, unitriangular=True)),
    "uniform_quantize": _op(f"%q = stablehlo.uniform_quantize %a : ({F}) -> {Q}\n%0 = "
        f"stablehlo.uniform_dequantize %q : "
        f"({Q}) -> {F}", F, F,
        expected=lambda x: torch.fake_quantize_per_tensor_affine(x, 0.5, 3, -128, 127)),
}  # fmt: skip
INSIDE = {"async_done": "async_start", "create_token": "after_all", "get_tuple_element": "tuple"}
INSIDE |= {"uniform_dequantize": "uniform_quantize"}
SPECS |= {name: SPECS[program] for name, program in INSIDE.items()}
