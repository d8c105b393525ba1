"""Convolutions and pooling of sharded images: which parts the cores get, and what the library's kernels need.

An image lies as a matrix with a row per pixel and a column per channel. If it is "HeightSharded", each core has some
rows of pixels, and all of the weights. If it is "BlockSharded", each core has some pixels and some channels, and the
weights of these channels. A core needs pixels of its neighbours, too. The library copies them into a second tensor
("halo"). The sizes were read from graph captures of ttnn 0.81.1.

In tiles, each pixel has a multiple of 32 channels, most of which are padding for a picture with 3 channels. Pixels in
rows have a multiple of 8 channels, and the pixels under a row of the window lie beside each other in tiles.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from torch_mlir import ir

from tt_torch.mlir import ods
from tt_torch.mlir.parts import even
from tt_torch.mlir.rules import producer, shape
from tt_torch.mlir.ttnn.layout import Layout, layout_of, tiles
from tt_torch.mlir.ttnn.optimizer.buffers import WIDE_TILE
from tt_torch.mlir.ttnn.optimizer.choice import Choice
from tt_torch.mlir.ttnn.optimizer.cores import Cores, by_block, by_height, largest_part, like
from tt_torch.mlir.ttnn.optimizer.overriding import layouts
from tt_torch.mlir.ttnn.passes.prepare_convolutions import PREPARED
from tt_torch.mlir.types import Attrs
from tt_torch.overrides import Asked
from tt_torch.wire.facts import FEW_CHANNELS, TILE

ONE_ROW = TILE  # the fewest pixels in a block
SLOWER = 1.2  # the time of a convolution in the smallest blocks; an assumption that only breaks ties
INDICES = 1024  # the most bytes of the data that tells a kernel where its pixels lie
POOL_SCRATCH = 64 * 1024  # bytes of circular buffers of a pooling op, beside the halo and the buffers for channels
POOL_CHANNEL = 192  # bytes of the buffers for each channel


def choices(op: ir.Operation, cores: Cores, wanted: Asked) -> Iterator[Choice]:
    """Forms of a convolution whose input and result are sharded."""
    a, x = ods.attrs_of(op), op.operands[0]
    channels = (a["in_channels"], a["out_channels"])
    weight = ods.operand(op, "weight")
    if weight is None or not producer(weight, *PREPARED) or a["groups"] != 1 or a["out_channels"] % TILE:
        return
    if not layout_of(x).tiled or layout_of(op.results[0]).dtype != layout_of(x).dtype:
        return
    by_pixels = by_height(layout_of(x), shape(x), cores)
    found = [layout_of(x), by_pixels]
    if _padded(a["in_channels"]) < TILE and layout_of(x).dtype == "BFloat16" and not _is_product(a):
        found.append(by_pixels.with_(tiled=False))
    if a["in_channels"] % TILE == 0:
        columns = even(math.gcd(*channels) // TILE, cores.columns)
        found.append(by_block(layout_of(x), shape(x), columns, cores))
    block = wanted.config.get("act_block_h_override")
    for layout in dict.fromkeys([*found, *layouts(wanted, layout_of(x), shape(x), cores)]):
        if wanted.config.get("shard_layout", layout.memory_layout) != layout.memory_layout:
            continue
        if layout.memory_layout == "HeightSharded" or (layout.memory_layout == "BlockSharded" and _splits(layout, a)):
            for rows in (0, ONE_ROW) if block is None else (block,):
                if tiles(layout.part(shape(op.results[0])))[0] % max(rows // TILE, 1) == 0:
                    yield _form(op, a, layout, wanted, rows)


def _splits(layout: Layout, a: Attrs) -> bool:
    """Whether all columns of cores have equally many whole tiles of channels, in the input and in the result."""
    across = layout.grid[1]
    return across > 1 and not any(a[name] % (across * TILE) for name in ("in_channels", "out_channels"))


def _form(op: ir.Operation, a: Attrs, layout: Layout, wanted: Asked, block: int) -> Choice:
    """A form with all rows of a core at once, or with `block` rows of pixels, which needs less memory and more time."""
    out = op.results[0]
    result = like(layout_of(out), layout)
    part = largest_part(tiles(shape(out)), result.grid)
    config = (a["conv2d_config"] or {}) | {"shard_layout": layout.memory_layout, **wanted.config}
    if block:
        config["act_block_h_override"] = block
    doubled = [bool(wanted.config.get(f"enable_{what}_double_buffer")) for what in ("act", "weights")]
    size = _product if _is_product(a) else _sliding
    scratch = size(a, layout, part, block // TILE, doubled)
    products = math.prod(part) * steps_of_window(a, layout) * layout.grid[1] * (SLOWER if block else 1.0)
    return Choice(result, {0: layout}, {"conv2d_config": config}, scratch, products, launches=_aligns(a, layout))


def _padded(channels: int) -> int:
    return -(-channels // FEW_CHANNELS) * FEW_CHANNELS


def _aligns(a: Attrs, layout: Layout) -> int:
    """The ops with which the library gives each pixel a multiple of 8 channels."""
    return int(not layout.tiled and a["in_channels"] % FEW_CHANNELS > 0)


def steps_of_window(a: Attrs, layout: Layout) -> int:
    """The tiles of a core's pixels under a window, beside each other."""
    height, width = a["kernel_size"]
    if layout.tiled:
        return height * width * -(-a["in_channels"] // TILE) // layout.grid[1]
    return height * -(-width * _padded(a["in_channels"]) // TILE)


def _window(a: Attrs) -> int:
    return math.prod(a["kernel_size"])


def _is_product(a: Attrs) -> bool:
    """The library computes a convolution of single pixels as a matrix product."""
    return _window(a) == 1 and set(a["stride"]) == {1} and not any(a["padding"])


def _product(a: Attrs, layout: Layout, part: tuple[int, int], block: int, doubled: Sequence[bool]) -> int:
    """Both operands in steps, the bias and partial sums."""
    (rows, columns), inner = part, steps_of_window(a, layout)
    tile, blocks = layout.bytes((TILE, TILE)), layout.memory_layout == "BlockSharded"
    double = 2 if blocks else 1
    size = double * inner * columns * tile + columns * tile + (2 * inner * rows * tile if blocks else 0)
    size += (doubled[0] * inner * rows + doubled[1] * inner * columns) * tile
    return size + (rows * columns * WIDE_TILE if tile != WIDE_TILE else 0)


def _sliding(a: Attrs, layout: Layout, part: tuple[int, int], block: int, doubled: Sequence[bool]) -> int:
    """The halo, the pixels under a row of the window in rows and in tiles, their weights, and the bias. If pixels come
    in several blocks, the weights of all rows of the window stay. Before that, while the halo is made, there are
    buffers for tiles, or a copy of the pixels that gives each of them a multiple of 8 channels."""
    rows, columns = part
    tile, width = layout.bytes((TILE, TILE)), steps_of_window(a, layout) // a["kernel_size"][0]
    channels, at_once = _padded(a["in_channels"]), block or rows
    if layout.tiled:
        inner = width // a["kernel_size"][1]
        pixel, copying = inner * tile // TILE, 4 * inner * tile
    else:
        pixels = a["batch_size"] * a["input_height"] * a["input_width"]
        pixel = layout.bytes([channels])
        copying = _aligns(a, layout) * layout.bytes_of_core([pixels, channels], 1)
    weights = width * columns * (a["kernel_size"][0] if at_once < rows else 1)
    more = doubled[0] * at_once * width + doubled[1] * weights
    at_work = (2 * at_once * width + weights + columns + more) * tile
    return halo(a, rows * TILE) * pixel + max(at_work, copying) + INDICES


def halo(a: Attrs, rows: int) -> int:
    """The most pixels that a core needs, including padding, to compute `rows` pixels of the result."""
    top, bottom, left, right = a["padding"]
    height, width = a["input_height"] + top + bottom, a["input_width"] + left + right
    (kh, kw), (sh, sw), (dh, dw) = a["kernel_size"], a["stride"], a["dilation"]
    down, across = (height - dh * (kh - 1) - 1) // sh + 1, (width - dw * (kw - 1) - 1) // sw + 1
    count = a["batch_size"] * down * across

    def first(pixel: int) -> int:
        image, place = divmod(pixel, down * across)
        return (image * height + place // across * sh) * width + place % across * sw

    window = (kh - 1) * dh * width + (kw - 1) * dw + 1
    starts = range(0, count, rows)
    return max(first(min(start + rows, count) - 1) - first(start) for start in starts) + window


def pooled(op: ir.Operation, cores: Cores, wanted: Asked) -> Iterator[Choice]:
    """Max pooling of an image whose pixels are split over the cores."""
    a, x = ods.attrs_of(op), op.operands[0]
    top, left, bottom, right = a["padding"]
    a["padding"] = [top, bottom, left, right]  # the order of convolutions
    if a["channels"] % TILE or not layout_of(x).tiled:
        return
    made = layout_of(op.results[0])
    asked = layouts(wanted, layout_of(x), shape(x), cores)
    for layout in dict.fromkeys([layout_of(x), by_height(layout_of(x), shape(x), cores), *asked]):
        if layout.memory_layout == "HeightSharded":
            result = like(made, layout)
            pixel = a["channels"] // TILE * layout.bytes((TILE, TILE)) // TILE
            scratch = (
                halo(a, result.part(shape(op.results[0]))[0]) * pixel + POOL_SCRATCH + a["channels"] * POOL_CHANNEL
            )
            yield Choice(result, {0: layout}, {}, scratch)


def whole(op: ir.Operation, cores: Cores) -> float:
    """The products of two tiles on the busiest core, if the library chooses the parts: rows of pixels, or blocks."""
    a, extent = ods.attrs_of(op), tiles(shape(op.results[0]))
    inner = -(-a["in_channels"] // a["groups"] // TILE)
    grids = ((cores.count, 1), (cores.rows, even(extent[1], cores.columns)))
    return float(min(math.prod(largest_part(extent, grid)) for grid in grids) * inner * _window(a))
