"""The option `optimizer_overrides` on a module: which ops an entry is for, and the splits of a result that it asks for.

The step `overrides` writes what the user asks of an op into its attributes, where the optimizer reads it:
`tt.override_output_layout`, `tt.insert_memreconfig` and `tt.override_conv2d_config`, with the texts of the option.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch_mlir import ir

from tt_torch import user_code
from tt_torch.config import CompilerConfig
from tt_torch.errors import OverrideError
from tt_torch.layers import matches
from tt_torch.mlir import ods
from tt_torch.mlir.context import describe
from tt_torch.mlir.functions import main
from tt_torch.mlir.layer_names import LayerNames
from tt_torch.mlir.parts import even, shares
from tt_torch.mlir.rules import producer
from tt_torch.mlir.ttir.constness import constant_values
from tt_torch.mlir.ttnn import sharded
from tt_torch.mlir.ttnn.layout import Layout, layout_of, tiles
from tt_torch.mlir.ttnn.optimizer.cores import Cores, by_block, by_height, by_width
from tt_torch.mlir.ttnn.passes.prepare_convolutions import PREPARED
from tt_torch.option_kinds import nearest
from tt_torch.overrides import PARSERS, Asked, asked, output_words
from tt_torch.wire import locations

PREFIX = "tt."
NOTHING = Asked()
# They come from one node together with other ops. An override that names the node is for the other ops.
_MOVES = {"to_layout", "to_memory_config", "typecast", "reshape", "permute", "transpose", "slice_static", "pad"}


class OverrideWarning(UserWarning):
    """An entry of the option `optimizer_overrides` has no effect."""


def mark(module: ir.Module, options: CompilerConfig) -> None:
    """Writes the overrides into attributes of the ops that they are for. The last entry for an op counts.

    Raises OverrideError for an override that its op cannot follow in any form, and warns of an entry without an op.
    """
    if not options.optimizer_overrides:
        return
    if not options.level:
        return user_code.warn(OverrideWarning("optimizer_overrides have no effect at optimization_level 0"))
    layers = LayerNames(module)
    named = [(op, names_of(op, layers)) for op in placed(module)]
    for pattern, texts in options.optimizer_overrides:
        found = [op for op, names in named if matches(pattern, names)]
        if not found:
            hint = nearest(pattern, {name for _, names in named for name in names})
            user_code.warn(OverrideWarning(f"optimizer_overrides: no op of this graph matches {pattern!r}{hint}"))
        for name, text in texts if found else ():
            for op in _meant(name, found):
                _check(op, name, text)
                with module.context:
                    op.attributes[PREFIX + name] = ir.StringAttr.get(text)


def placed(module: ir.Module) -> list[ir.Operation]:
    """The ops for whose results the optimizer finds a place: those that run at each call."""
    function = main(module)
    constants = constant_values(function)
    ops = [op.operation for op in function.regions[0].blocks[0].operations]
    found = [op for op in ops if op.results and op.name not in sharded.OWN and op.results[0] not in constants]
    return [op for op in found if layout_of(op.results[0]).on_device]


def names_of(op: ir.Operation, layers: LayerNames) -> list[str]:
    """The names that a user can write for an op: names in its location, the modules around it, and its weights."""
    return [*locations.names(str(op.location)), *layers.of(op)]


def _meant(name: str, found: Sequence[ir.Operation]) -> Sequence[ir.Operation]:
    """The ops that an override is for, among the ops that a pattern matches: ops that compute, if there are any."""
    if name == "override_conv2d_config":
        return [op for op in found if op.name == "ttnn.conv2d"] or found
    return [op for op in found if op.name.removeprefix("ttnn.") not in _MOVES] or found


def asked_of(op: ir.Operation) -> Asked:
    """The overrides in the attributes of an op."""
    attributes = op.attributes
    texts = {name: attributes[PREFIX + name].value for name in PARSERS if PREFIX + name in attributes}
    return asked(texts) if texts else NOTHING


def forget(op: ir.Operation) -> None:
    """Removes the attributes, which the optimizer has followed."""
    for name in PARSERS:
        if PREFIX + name in op.attributes:
            del op.attributes[PREFIX + name]


def error(op: ir.Operation, reason: str, texts: str = "") -> OverrideError:
    """The error of an op that cannot follow its overrides, or `texts`."""
    given = {name: op.attributes[PREFIX + name].value for name in PARSERS if PREFIX + name in op.attributes}
    said = texts or ", ".join(f"{name}={text}" for name, text in given.items())
    names = locations.names(str(op.location))
    return OverrideError(said, f"{op.name} ({', '.join(names)})" if names else op.name, describe(op.location), reason)


def _check(op: ir.Operation, name: str, text: str) -> None:
    """Raises OverrideError if the optimizer cannot choose what an override asks for."""
    wanted, made = asked({name: text}), layout_of(op.results[0])
    reason = ""
    if len(op.results) > 1:
        reason = f"it has {len(op.results)} results"
    elif wanted.moved and wanted.moved[-1] >= len(op.operands):
        reason = f"it has {len(op.operands)} operands"
    elif wanted.tiled not in (None, made.tiled) or wanted.dtype not in (None, made.dtype):
        reason = f"its result is {made.dtype} in {made.page_layout}; other options set types, and none sets pages"
    elif wanted.config:
        reason = _check_config(op, wanted)
    if reason:
        raise error(op, reason, f"{name}={text}")


def _check_config(op: ir.Operation, wanted: Asked) -> str:
    if op.name != "ttnn.conv2d":
        return "only ttnn.conv2d has such a configuration"
    if not producer(ods.operand(op, "weight"), *PREPARED):
        return "its weights are not constant"
    dtype = ods.attrs_of(op)["conv2d_config"]["weights_dtype"]
    same = wanted.config.get("weights_dtype", dtype) == dtype
    return "" if same else f"its weights are {dtype}; the options `weight_dtype` and `precision` change that"


def layouts(wanted: Asked, layout: Layout, dims: Sequence[int], cores: Cores) -> list[Layout]:
    """The ways to split a tensor over the cores that an override allows; none if it does not ask for such a way."""
    if not wanted.sharded:
        return []
    if wanted.grid is None:
        blocks = by_block(layout, dims, even(tiles(dims)[1], cores.columns), cores)
        found = [by_height(layout, dims, cores), by_width(layout, dims, cores), blocks]
        return [each for each in found if each.memory_layout == wanted.memory_layout]
    if misfit(wanted, dims, cores):
        return []
    return [layout.with_(buffer="L1", memory_layout=wanted.memory_layout, grid=wanted.grid)]


def misfit(wanted: Asked, dims: Sequence[int], cores: Cores) -> str:
    """Why a tensor cannot lie on the grid that is asked for; empty if it can. Each core of it must have a part."""
    if wanted.grid is None or not wanted.sharded:
        return ""
    (rows, columns), (down, across) = tiles(dims), wanted.grid
    blocks = wanted.memory_layout == "BlockSharded"
    fits = (down <= cores.rows and across <= cores.columns) if blocks else down * across <= cores.count
    if not fits:
        return f"the chip has {cores.rows}x{cores.columns} cores"
    full = shares(rows, down) == down and shares(columns, across) == across
    return "" if full else f"{rows}x{columns} tiles do not give each core of {down}x{across} a part"


def follows(wanted: Asked, result: Layout, operands: Sequence[Layout]) -> bool:
    """Whether a form of an op, in which its operands have these layouts, is what an override asks for."""
    place = (result.buffer, result.memory_layout, result.grid)
    asks = (wanted.buffer, wanted.memory_layout, wanted.grid)
    if any(one not in (None, has) for one, has in zip(asks, place, strict=True)):
        return False
    moved = (operands[i] for i in wanted.moved)
    return all((layout.buffer, layout.memory_layout, layout.grid) == place for layout in moved)


def words(layout: Layout) -> str:
    """A layout as `override_output_layout` has it."""
    return output_words(layout.grid, layout.buffer, layout.memory_layout)
