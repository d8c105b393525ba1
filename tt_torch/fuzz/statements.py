"""The parts of random programs: texts of statements, and numbers, dtypes, shapes and layouts of tensors."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import torch

# {x}, {y}, {z}: variables; {i}: one of integers; {m}: one of booleans; {s}: a number; {d}, {e}: dimensions;
# {n}: a small size; {t}: a dtype.
_ELEMENTWISE = """
{x} + {y} | {x} - {y} | {x} * {y} | {x} / {y} | {x} // {y} | {x} % {y} | {x} ** {y} | {x} + {s} | {x} - {s}
{s} - {x} | {x} * {s} | {x} / {s} | {s} / {x} | {x} // {s} | {x} % {s} | {x} ** 2 | {x} ** {s} | {s} ** {x}
{x} & {y} | {x} | {y} | {x} ^ {y} | {x} & {s} | {x} ^ {s} | {x} << {y} | {x} >> {y} | {x} << {s} | {x} >> {s} | ~{x}
-{x} | {x}.abs() | {x} == {y} | {x} < {y} | {x} != {s} | {x} >= {s} | {x} == {s} | {x} < {s} | {x}.add({y}, alpha={s})
{x}.sub({y}, alpha={s}) | torch.rsub({x}, {y}) | {x}.clamp({s}, {s}) | {x}.clamp(max={s}) | {x}.clamp(min={y})
{x}.relu() | {x}.sigmoid() | {x}.tanh() | {x}.exp() | {x}.log() | {x}.sqrt() | {x}.rsqrt() | {x}.sin() | {x}.erf()
{x}.floor() | {x}.round() | {x}.trunc() | {x}.sign() | {x}.signbit() | {x}.isnan() | {x}.isinf() | {x}.logical_not()
{x}.logical_xor({y}) | torch.where({m}, {x}, {y}) | torch.where({x} < {s}, {x}, {s}) | torch.minimum({x}, {y})
torch.maximum({x}, {y}) | torch.fmod({x}, {y}) | torch.fmod({x}, {s}) | torch.remainder({s}, {x}) | {x}.to({t})
{x}.float() | {x}.long() | {x}.bool() | {x}.int() | torch.lerp({x}, {y}, {s})
torch.addcmul({x}, {y}, {z}, value={s}) | torch.nn.functional.gelu({x}) | torch.nn.functional.threshold({x}, {s}, {s})
torch.nn.functional.softplus({x}) | {x}.masked_fill({m}, {s}) | torch.nan_to_num({x}) | torch.heaviside({x}, {y})
torch.copysign({x}, {y}) | {x}.square() | torch.div({x}, {y}, rounding_mode='floor')
torch.div({x}.clamp(min=-99), {s}, rounding_mode='trunc') | torch.floor_divide({x}, {y})
{x}.exp2() | {x}.expm1() | {x}.log1p() | {x}.cos() | {x}.tan() | {x}.asin() | {x}.sinh() | {x}.atan() | {x}.ceil()
{x}.frac() | {x}.reciprocal() | {x}.isfinite() | {x} > {y} | {x} <= {s} | torch.atan2({x}, {y}) | torch.hypot({x}, {y})
torch.logaddexp({x}, {y}) | torch.xlogy({x}, {y}) | torch.addcdiv({x}, {y}, {z}, value={s}) | torch.isclose({x}, {y})
torch.gcd({x}, {y}) | torch.fmax({x}, {y}) | torch.nn.functional.silu({x}) | torch.nn.functional.elu({x}, {s})
torch.nn.functional.leaky_relu({x}, {s}) | torch.nn.functional.hardtanh({x}, {s}, {s}) | torch.where({m}, {s}, {x})
{x}.logical_and({y}) | {x}.half() | {x}.double() | {x}.type_as({y})
"""
_SHAPES = """
{x}.unsqueeze({d}) | {x}.squeeze() | {x}.flatten() | {x}.transpose({d}, {e}) | {x}.flip({d}) | {x}.roll({n}, {d})
{x}[0] | {x}[..., 0] | {x}[..., -1:] | {x}[1:] | {x}[..., ::2] | {x}[None] | {x}.narrow({d}, 0, {n})
{x}.select({d}, {n}) | torch.cat([{x}, {y}], {d}) | torch.stack([{x}, {x}], {d}) | {x}.expand({n}, *{x}.shape)
{x}.repeat({n}, *[1] * {x}.dim()) | {x}.reshape(-1) | {x}.split({n}, {d})[0] | {x}.chunk(2, {d})[-1]
torch.nn.functional.pad({x}, (1, {n})) | {x}.mT | {x}.contiguous() | {x}.clone() | {x}.diagonal() | {x}.tril()
{x}.triu({n}) | {x}.unfold({d}, {n}, 1) | {x}.movedim({d}, {e}) | torch.zeros_like({x})
torch.ones_like({x}, dtype={t}) | torch.full_like({x}, {s}) | torch.arange({n}, device={x}.device) + {x}
{x}.view(-1) | {x}.repeat_interleave({n}, {d}) | {x}.unbind({d})[0] | {x}.squeeze({d}) | {x}.detach() | {x}.rot90()
{x}.permute(*range({x}.dim())[::-1]) | {x}.expand_as({y}) | {x}[:, None] | {x}[::2, 1:] | torch.hstack([{x}, {y}])
torch.vstack([{x}, {y}]) | torch.broadcast_to({x}, (2, *{x}.shape)) | {x}.select({d}, 0) | {x}.swapaxes({d}, {e})
torch.tile({x}, (2, 1)) | torch.kron({x}, {y}) | torch.block_diag({x}, {y}) | torch.diag_embed({x})
torch.diagflat({x}) | torch.meshgrid({x}.flatten(), {y}.flatten(), indexing='ij')[0]
torch.tensor_split({x}, 3, {d})[1] | torch.column_stack([{x}, {y}])
{x}.unflatten({d}, (-1, 1)) | torch.cat([{x}, {y}, {x}], {d}) | torch.empty_like({x}).copy_({y})
{x}.as_strided(({n},), (1,)) | torch.as_strided({x}, {x}.shape[::-1], (1,) * {x}.dim())
"""
_REDUCTIONS = """
{x}.sum() | {x}.sum({d}) | {x}.sum({d}, dtype={t}) | {x}.mean({d}) | {x}.amax({d}) | {x}.amin({d}, True)
{x}.max({d})[0] | {x}.prod({d}) | {x}.any({d}) | {x}.all() | {x}.all({d}) | {x}.argmax({d}) | {x}.argmin()
{x}.var({d}) | {x}.std() | {x}.cumsum({d}) | {x}.cumprod({d}) | {x}.cummax({d})[0] | {x}.sort({d})[0]
{x}.softmax({d}) | {x}.log_softmax({d}) | {x}.logsumexp({d}) | {x}.norm() | {x}.count_nonzero()
{x}.topk({n}, {d})[0] | {x}.sort(dim={d}, stable=True)[1] | {x}.nansum({d}) | torch.linalg.vector_norm({x}, 1, {d})
{x}.aminmax(dim={d})[1] | {x}.median() | {x}.diff(dim={d})
{x}.cummin({d})[0] | {x}.cummax({d})[1] | {x}.logcumsumexp({d}) | {x}.argsort(dim={d}, stable=True) | {x}.argmin({d})
{x}.kthvalue(1, {d})[0] | {x}.mean() | {x}.std({d}) | {x}.max() | {x}.min({d})[0]
{x}.sum((0, -1)) | {x}.amax((0, -1)) | {x}.any() | {x}.prod() | {x}.nanmean({d}) | {x}.sort({d}, descending=True)[0]
torch.nn.functional.mse_loss({x}, {y}) | torch.nn.functional.normalize({x}, dim={d}) | {x}.trace()
{x}.cumsum({d}, dtype={t}) | {x}.cumprod({d}, dtype={t}) | {x}.prod({d}, dtype={t}) | {x}.mean({d}, dtype={t})
{x}.softmax({d}, dtype={t}) | {x}.sort(dim={d}, stable=True, descending=True)[1] | {x}.msort() | {x}.quantile(0.3, {d})
{x}.nanquantile(0.5) | {x}.nanmedian({d})[0] | {x}.median({d})[0] | {x}.mode({d})[0] | {x}.norm(1, {d})
torch.linalg.vector_norm({x}, inf, {d}) | torch.linalg.vector_norm({x}, 0, {d}) | torch.linalg.vector_norm({x}, 3)
torch.linalg.matrix_norm({x}, 1) | torch.linalg.matrix_norm({x}) | torch.renorm({x}, 2, {d}, 1.0) | {x}.unique()
torch.trapezoid({x}, dim={d}) | torch.histc({x}, 4, -1, 1)
"""
_INDEXING = """
{x}.gather({d}, {i}) | {x}.index_select({d}, {i}.flatten()) | {x}[{i}] | {x}[{m}.flatten()[0].long()] | {x}.take({i})
{x}.scatter({d}, {i}, {y}) | {x}.scatter_add({d}, {i}, {y}) | {x}.index_fill({d}, {i}.flatten(), {s})
{x}.index_put(({i},), {y}) | {x}.index_put(({i},), {y}, accumulate=True) | {x}.index_add({d}, {i}.flatten(), {y})
torch.nn.functional.one_hot({i}) | torch.bucketize({x}, {y}.flatten().sort()[0]) | {x}.masked_scatter({m}, {y})
torch.searchsorted({x}.flatten().sort()[0], {y}) | {x}.scatter({d}, {i}, {s}) | torch.isin({x}, {y})
{x}.scatter_reduce({d}, {i}, {y}, 'amax') | {x}.scatter_reduce({d}, {i}, {y}, 'sum', include_self=False) | {x}[{m}]
{x}.scatter_reduce({d}, {i}, {y}, 'mean') | {x}.index_copy({d}, {i}.flatten(), {y}) | {x}.take_along_dim({i}, {d})
{x}[..., {i}] | {x}[{i}, None] | {x}.select_scatter({y}, {d}, {n}) | {x}.slice_scatter({y}, {d}, {n})
{x}.scatter_reduce({d}, {i}, {y}, 'amin', include_self=False) | {x}.scatter_reduce({d}, {i}, {y}, 'prod')
{x}.scatter_reduce({d}, {i}, {y}, 'mean', include_self=False) | {x}.index_reduce({d}, {i}.flatten(), {y}, 'amax')
torch.bucketize({x}, {y}.flatten().sort()[0], right=True, out_int32=True)
torch.searchsorted({x}.sort(-1)[0], {y}.contiguous(), right=True)
{x}.diagonal_scatter({y}) | torch.nn.functional.embedding({i}, {x}) | {x}.nonzero() | torch.bincount({i}.flatten())
"""
_PRODUCTS = """
{x} @ {y} | {x} @ {x}.mT | torch.mm({x}, {y}) | torch.outer({x}.flatten(), {y}.flatten())
torch.dot({x}.flatten(), {x}.flatten()) | torch.nn.functional.linear({x}, {y})
torch.baddbmm({x}[..., :1], {x}, {x}.mT, beta={s}) | torch.nn.functional.layer_norm({x}, {x}.shape[-1:])
torch.bmm({x}, {x}.mT) | torch.addmm({x}, {y}, {z}, alpha={s}) | torch.mv({x}, {x}[0])
torch.tensordot({x}, {y}, 1) | torch.einsum('...i,...i->...', {x}, {y}) | torch.nn.functional.conv1d({x}, {y})
torch.cdist({x}, {y}) | torch.nn.functional.scaled_dot_product_attention({x}, {x}, {y})
torch.nn.functional.scaled_dot_product_attention({x}, {x}, {y}, attn_mask={m}[..., :1])
torch.nn.functional.avg_pool1d({x}, 2) | torch.einsum('ij,kj->ik', {x}, {y}) | torch.einsum('ii->i', {x})
torch.einsum('...ij->...ji', {x}) | torch.inner({x}, {y}) | torch.linalg.multi_dot([{x}, {y}])
torch.cross({x}, {y}) | torch.addmv({x}.mT[0], {x}, {x}[0], beta={s}) | torch.vander({x}, 3)
torch.cov({x}) | torch.matrix_power({x}, 2) | torch.nn.functional.max_pool1d({x}, 2)
torch.nn.functional.rms_norm({x}, {x}.shape[-1:])
"""
_WRITES = """
{x}.add_({y}) | {x}.mul_({s}) | {x}.zero_() | {x}.fill_({s}) | {x}.copy_({y}) | {x}[..., 0].add_({y})
{x}.clamp_({s}, {s}) | {x}.masked_fill_({m}, {s}) | {x}.sub_({s}) | {x}.flatten().add_(1) | {x}.t_().neg_()
{x}[0].copy_({y}) | {x}.relu_() | {x}.index_put_(({i},), {y}) | {x}.scatter_({d}, {i}, {y})
{x}.transpose(0, -1).mul_({y}) | {x}.cumsum_({d}) | {x}.logical_not_()
{x}.narrow({d}, 0, {n}).copy_({y}) | {x}.select({d}, {n}).mul_({s}) | {x}.diagonal().fill_({s}) | {x}.unsqueeze_({d})
{x}.view(-1)[::2].add_({s}) | {x}.index_add_({d}, {i}.flatten(), {y}) | {x}.index_fill_({d}, {i}.flatten(), {s})
{x}.masked_scatter_({m}, {y}) | {x}.div_({y}) | {x}.pow_(2) | {x}.transpose_({d}, {e}) | {x}.squeeze_() | {x}.exp_()
{x}.fill_diagonal_({s}) | {x}.floor_divide_({s}) | {x}.bitwise_xor_({y}) | {x}.scatter_add_({d}, {i}, {y})
{x}.detach().mul_({s}) | {x}.addcmul_({y}, {z}) | {x}.lerp_({y}, 0.5) | {x}.sign_() | {x}.fmod_({s}) | {x}.cumprod_({d})
{x}.triu_() | {x}.round_() | {x}.eq_({y}) | {x}.index_copy_({d}, {i}.flatten(), {y}) | {x}.bitwise_and_({s})
"""
_FUNCTIONS = """
{x}.acos() | {x}.acosh() | {x}.asinh() | {x}.atanh() | {x}.cosh() | {x}.erfc() | {x}.erfinv() | {x}.log2() | {x}.log10()
{x}.lgamma() | {x}.digamma() | {x}.sinc() | {x}.logit() | {x}.logit(0.3) | {x}.deg2rad() | {x}.sgn()
{x}.float_power({y}) | torch.special.i0({x}) | torch.special.entr({x}) | torch.special.ndtr({x})
torch.special.xlog1py({x}, {y}) | torch.logaddexp2({x}, {y}) | torch.nextafter({x}, {y}) | torch.ldexp({x}, {y})
torch.frexp({x})[0] | torch.frexp({x})[1] | torch.fmin({x}, {y}) | {x}.clamp({y}, {z})
torch.lcm({x}.clamp(min=-99), {y})
{x}.logical_or({y}) | {x}.round(decimals=1) | torch.nn.functional.mish({x}) | torch.nn.functional.hardswish({x})
torch.nn.functional.hardsigmoid({x}) | torch.nn.functional.celu({x}, {s}) | torch.nn.functional.selu({x})
torch.nn.functional.glu({x}, {d}) | torch.nn.functional.logsigmoid({x}) | torch.nn.functional.softsign({x})
torch.nn.functional.tanhshrink({x}) | torch.nn.functional.softshrink({x}, 0.5) | torch.nn.functional.relu6({x})
torch.nn.functional.hardshrink({x}, {s}) | torch.nn.functional.gelu({x}, approximate='tanh')
torch.nn.functional.prelu({x}, {y}.flatten()[:1]) | torch.complex({x}.float(), {y}.float()).abs()
torch.view_as_real(torch.complex({x}.float(), {y}.float()))
(torch.complex({x}.float(), {y}.float()) * torch.complex({y}.float(), {x}.float())).imag
torch.fft.rfft({x}.float(), dim={d}).real
"""
_LAYERS = """
torch.nn.functional.interpolate({x}.reshape(1, 1, -1), scale_factor=2, mode='nearest')
torch.nn.functional.interpolate({x}.reshape(1, 1, -1), size=7, mode='linear')
torch.nn.functional.interpolate({x}.reshape(1, 1, 5, -1), size=(7, 3), mode='bilinear', align_corners=True)
torch.nn.functional.interpolate({x}.reshape(1, 1, 5, -1), size=(7, 3), mode='bicubic')
torch.nn.functional.interpolate({x}.reshape(1, 1, 5, -1), size=(3, 7), mode='area')
torch.nn.functional.interpolate({x}.reshape(1, 1, 5, -1), size=(3, 7), mode='nearest-exact')
torch.nn.functional.max_pool2d({x}.reshape(1, 1, 5, -1), 3, 2, 1, ceil_mode=True)
torch.nn.functional.max_pool1d({x}.reshape(1, 1, -1), 2, 2, 0, 2)
torch.nn.functional.avg_pool2d({x}.reshape(1, 1, 5, -1), 3, 2, 1, True, False)
torch.nn.functional.adaptive_avg_pool2d({x}.reshape(1, 1, 5, -1), (2, 3))
torch.nn.functional.adaptive_max_pool1d({x}.reshape(1, 1, -1), 3)
torch.nn.functional.conv2d({x}.reshape(1, 1, 5, -1), {y}.flatten()[:4].reshape(1, 1, 2, 2), None, 2, 1)
torch.nn.functional.conv_transpose2d({x}.reshape(1, 1, 5, -1), {y}.flatten()[:4].reshape(1, 1, 2, 2), None, 2, 1, 1)
torch.nn.functional.conv_transpose1d({x}.reshape(1, 1, -1), {y}.flatten()[:3].reshape(1, 1, 3), None, 2, 0, 0, 1, 2)
torch.nn.functional.unfold({x}.reshape(1, 1, 5, -1), 2, padding=1) | torch.nn.functional.group_norm({x}, 1)
torch.nn.functional.fold({x}.reshape(1, 4, -1), (5, {x}.numel() // 16 + 1), 2)
torch.nn.functional.instance_norm({x}) | torch.nn.functional.batch_norm({x}, None, None, training=True)
torch.nn.functional.cosine_similarity({x}, {y}, {d}) | torch.nn.functional.l1_loss({x}, {y})
torch.nn.functional.smooth_l1_loss({x}, {y}) | torch.nn.functional.huber_loss({x}, {y})
torch.nn.functional.binary_cross_entropy_with_logits({x}, {y}) | torch.nn.functional.kl_div({x}, {y}, reduction='sum')
torch.nn.functional.cross_entropy({x}, {i}) | torch.nn.functional.nll_loss({x}, {i})
torch.nn.functional.pad({x}, (1, 1), mode='reflect') | torch.nn.functional.pad({x}, (1, 2), mode='replicate')
torch.nn.functional.pad({x}, (1, 1), mode='circular') | torch.nn.functional.pad({x}, (-1, {n}), value={s})
"""


def texts(table: str) -> list[str]:
    """Entries are separated by " | ", except the operator of that form, which has its operands beside it."""
    joined = " | ".join(table.strip().splitlines()).replace("{x} | {y}", "{x} OR {y}")
    return [text.strip().replace(" OR ", " | ") for text in joined.split(" | ")]


Families: TypeAlias = Mapping[str, tuple[float, list[str]]]  # the weight of a family, and its statements
FAMILIES: Families = {
    "elementwise": (6, texts(_ELEMENTWISE)),
    "shapes": (3, texts(_SHAPES)),
    "reductions": (3, texts(_REDUCTIONS)),
    "indexing": (2, texts(_INDEXING)),
    "products": (1, texts(_PRODUCTS)),
    "functions": (2, texts(_FUNCTIONS)),
    "layers": (1, texts(_LAYERS)),
    "writes": (2, texts(_WRITES)),
}
# The errors by which eager PyTorch refuses operands and numbers. Another one would be a fault of the table.
REFUSALS = (
    RuntimeError, IndexError, ValueError, TypeError, OverflowError, ZeroDivisionError,
)  # fmt: skip
DTYPES = (
    torch.float32, torch.float32, torch.float32, torch.float32, torch.bfloat16, torch.bfloat16, torch.float16,
    torch.float64, torch.int64, torch.int64, torch.int32, torch.bool, torch.bool, torch.uint8, torch.int16, torch.int8,
)  # fmt: skip
SHAPES = (
    (), (), (1,), (5,), (5,), (3, 5), (3, 5), (3, 1), (5, 5), (5, 5), (2, 3, 5), (2, 3, 5), (2, 1, 5), (33,), (1, 64),
    (0, 5), (0,), (2, 3, 4, 5), (2, 1, 2, 3, 5), (1025,), (33, 70),
)  # fmt: skip
# float16 has no number above 65504, and bfloat16 not every whole number above 256: counts and sums need more.
LARGE_SHAPES = ((70_000,), (300, 300), (2, 40_000), (3, 5, 5000), (300, 1), (1, 300), ())
SCALARS = (
    0, 1, -1, 2, 3, 7, -5, 31, 33, 127, 128, 255, -128, 2**15, 2**16, 2**24 + 1, 2**31 - 1, -(2**31), 2**31, 2**40,
    10**10, 2**53 + 1, 2**63 - 1, -(2**63), True, False, 0.5, -0.5, 1.5, -2.0, 0.0, -0.0, 1e-3, 3.7, 1e10, 1e-45,
    65520.0, 1e39, -1e300, float("inf"), float("-inf"), float("nan"),
)  # fmt: skip
LAYOUTS: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
    lambda x: x.mT.contiguous().mT if x.dim() > 1 else x,
    lambda x: torch.stack([x, x], -1)[..., 0],
    lambda x: torch.cat([x, x])[len(x) :] if x.dim() else x,
    lambda x: x[:1].expand_as(x) if x.dim() else x,
)


def random_input(draw: random.Random, shapes: Sequence[Sequence[int]]) -> torch.Tensor:
    """A tensor of random dtype, layout and shape, sometimes with the limits of its dtype among its elements."""
    shape, dtype = tuple(draw.choice(shapes)), draw.choice(DTYPES)
    generator = torch.Generator().manual_seed(draw.randrange(1 << 30))
    if dtype.is_floating_point:
        value = torch.randn(shape, generator=generator) * draw.choice((1, 1, 10, 1000))
        special = torch.tensor([float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1e-40, 3e38, 0.5, 2.5])
    else:
        value = torch.randint(*draw.choice(((-4, 5), (0, 2), (0, 3))), shape, generator=generator)  # often indices
        bound = torch.iinfo(dtype if dtype != torch.bool else torch.uint8)
        special = torch.tensor([bound.min, bound.max, 0, 1, -1, 127])
    if draw.random() < 0.3:
        mask = torch.rand(shape, generator=generator) < 0.2
        value = torch.where(mask, special[torch.randint(len(special), shape, generator=generator)], value)
    value = value.to(dtype)
    return draw.choice(LAYOUTS)(value) if draw.random() < 0.25 else value
