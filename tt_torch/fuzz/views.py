"""The statements of programs that make views of views, write to them, and read what the writes have reached.

The letters in braces are those of statements.py.
"""

from __future__ import annotations

from tt_torch.fuzz.statements import Families, texts

_VIEWS = """
{x}.narrow({d}, {n}, 1) | {x}.narrow({d}, 0, {n}) | {x}.select({d}, {n}) | {x}.select({d}, -1)
{x}.unfold({d}, {n}, {n}) | {x}.unfold({d}, 2, 1) | {x}.unfold({d}, 1, 2) | {x}.movedim({d}, {e}) | {x}.unsqueeze({d})
{x}.squeeze({d}) | {x}.squeeze() | {x}[::2] | {x}[..., ::2] | {x}[:, 1:] | {x}[..., {n}:] | {x}[1:, ..., 0]
{x}[None] | {x}[..., None] | {x}.chunk(2, {d})[0] | {x}.chunk(3, {d})[-1] | torch.tensor_split({x}, 3, {d})[1]
{x}.split(2, {d})[-1] | {x}.split([1, {n}], {d})[1] | torch.tensor_split({x}, ({n},), {d})[0]
torch.hsplit({x}, [1])[1] | {x}.unbind({d})[-1] | {x}.unflatten({d}, (1, -1)) | {x}.unflatten({d}, (-1, 2))
{x}.flatten(0, 1) | {x}.flatten() | torch.ravel({x}) | {x}.mT | {x}.adjoint() | {x}.transpose({d}, {e})
{x}.swapaxes(0, -1) | {x}.permute(*range({x}.dim())[::-1]) | {x}.diagonal() | {x}.diagonal({s}, {d}, {e})
{x}.diagonal(1, 0, -1) | {x}.diagonal(-1) | {x}.view(-1) | {x}.view(1, -1) | {x}.view({x}.shape)
{x}.view(*{x}.shape[::-1]) | {x}.view({t}) | {x}.view_as({y}) | {x}.reshape(1, -1) | {x}.reshape(-1, 2)
{x}.reshape({x}.shape) | torch.atleast_2d({x}) | torch.atleast_3d({x}) | {x}.detach() | {x}.data
{x}.expand(2, *{x}.shape) | {x}.expand_as({y}) | torch.broadcast_to({x}, (1, *{x}.shape)) | {x}.contiguous()
torch.broadcast_tensors({x}, {y})[0] | torch.meshgrid({x}.flatten(), {y}.flatten(), indexing='ij')[1]
torch.nn.functional.dropout({x}, training=False) | torch.nn.functional.dropout({x}, 0.0) | {x}.to({t}) | {x}.float()
{x}.as_strided((2, 2), (3, 1)) | {x}.as_strided((2,), (2,), 1) | {x}.as_strided(({n}, 2), (1, 1))
{x}.as_strided({x}.shape, {x}.stride(), {x}.storage_offset())
{x}.as_strided(({n},), ({n},), {x}.storage_offset() + 1) | {x}.positive() | torch.narrow({x}, {d}, 0, 1) | {x}.real
{x}.type_as({y}) | torch.squeeze({x}, (0, -1))
"""
_COPIES = """
{x} * 1 | {x} + 0 | {x}.clone() | {x} + {x} | {x} - {y} | {x}.mT * 1 | {x}.mT.contiguous() | {x}.flip(0)
{x}.roll(1, {d}) | {x}.cumsum({d}) | torch.where({x} > {s}, {x}, {y}) | torch.cat([{x}, {x}], {d})
torch.stack([{x}, {y}]) | {x}.sum({d}) | {x}.repeat(2, 1) | {x}.narrow_copy({d}, 0, 1) | {x}.sort({d})[0]
{x}.amax({d}) | -{x} | {x} == {y} | {x}[{i}] | torch.zeros_like({x}) | torch.empty_like({x}).copy_({y})
{x}.new_zeros(3, 4) | torch.ones(2, 3, dtype={t}, device={x}.device) | {x}.select_scatter({y}, {d}, 0)
{x}.slice_scatter({y}, {d}, 0, {n}) | {x}.diagonal_scatter({y}) | {x}.expand(2, *{x}.shape).clone()
{x}.expand(2, *{x}.shape).contiguous() | torch.tril({x}) | {x} @ {x}.mT
"""
_WRITES = """
{x}.mul_({s}) | {x}.mul_(2) | {x}.fill_({s}) | {x}.zero_() | {x}.add_({x}) | {x}.add_({y}) | {x}.copy_({y})
{x}.neg_() | {x}.copy_({y}.mT) | {x}.copy_({x}.flip(0)) | {x}.clamp_(0, 1) | {x}.sub_(1)
{x}.masked_fill_({x} > 1, {s}) | {x}.masked_fill_({m}, {s})
{x}.index_fill_({d}, torch.zeros(1, dtype=torch.int64, device={x}.device), {s})
{x}.index_fill_({d}, {i}.flatten(), {s}) | {x}[0].copy_({y}) | {x}[..., 0].fill_({s})
{x}[1:].copy_({x}[:-1].clone()) | {x}[{i}].fill_({s}) | {x}.view(-1)[::2].add_(1) | {x}.index_put_(({i},), {y})
{x}.index_put_(({m},), {y}) | {x}.index_add_({d}, {i}.flatten(), {y}) | {x}.index_copy_({d}, {i}.flatten(), {y})
{x}.scatter_({d}, {i}, {y}) | {x}.scatter_({d}, {i}, {s}) | {x}.scatter_add_({d}, {i}, {y})
{x}.masked_scatter_({m}, {y}) | {x}.cumsum_({d}) | {x}.triu_() | {x}.fill_diagonal_({s}) | {x}.detach().mul_(2)
{x}.data.add_(1) | {x}.mT.add_({y}) | {x}.diagonal().fill_({s}) | {x}.flatten().add_(1) | {x}.relu_()
{x}.logical_not_() | {x}.lerp_({y}, 0.5) | {x}.addcmul_({y}, {z}) | {x}.eq_({y}) | {x}.abs_() | {x}.t_()
{x}.unsqueeze_({d}) | {x}.squeeze_() | {x}.transpose_({d}, {e}) | {x}.swapaxes_(0, -1)
({x} + 0).as_strided_((2, 2), (1, 2)) | torch.add({x}, 1, out={x}) | torch.mul({x}, {x}, out={x})
torch.cumsum({x}, {d}, out={x}) | torch.neg({x}, out={x}) | torch.nn.functional.relu({x}, inplace=True)
torch.nn.functional.dropout({x}, 0.0, inplace=True) | {x}.squeeze_({d}).mul_(2) | torch.nn.init.ones_({x})
torch.clamp({x}, 0, 1, out={x}) | {x}.swapdims_({d}, {e}).add_(1) | {x}.unfold({d}, 2, 2).mul_(2)
"""
VIEW_FAMILIES: Families = {
    "views": (6, texts(_VIEWS)),
    "copies": (2, texts(_COPIES)),
    "writes": (4, texts(_WRITES)),
}
