"""Rows of the op table: pooling, interpolation, and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from op_rows import FLOATS, IMAGE, INTS, Row, f32, uniform

SIGNAL, VOLUME = (2, 3, 9), (2, 3, 5, 6, 7)
POSITIONS = {"return_indices": True}


def _gradient(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    """The gradient of the input, if the gradient of the output is the output itself."""

    def run(x: torch.Tensor) -> torch.Tensor:
        y, backward = torch.func.vjp(function, x)
        return backward(y)[0]

    return run


def _fractional(pool: Callable[..., Any], size: int) -> Callable[..., Any]:
    return lambda x, samples: pool(x, size, output_size=3, return_indices=True, _random_samples=samples)


def _gradients(functions: dict[str, tuple[Callable[..., Any], tuple[int, ...]]]) -> list[Row]:
    return [Row(f"{name} backward", _gradient(f), [shape], (f32,), scale=10) for name, (f, shape) in functions.items()]


POOLING = [
    Row("max_pool2d", lambda x: F.max_pool2d(x, 2), [IMAGE]),
    Row("max_pool2d options", lambda x: F.max_pool2d(x, 3, 2, 1), [IMAGE]),
    Row("max_pool2d dilation", lambda x: F.max_pool2d(x, 2, 1, 0, 2), [IMAGE]),
    Row("max_pool2d ceil", lambda x: F.max_pool2d(x, 2, 2, ceil_mode=True), [IMAGE]),
    Row("max_pool2d rank 3", lambda x: F.max_pool2d(x, 2), [(4, 9, 8)]),
    Row("max_pool1d", lambda x: F.max_pool1d(x, 3, 2), [(2, 3, 9)]),
    Row("avg_pool2d", lambda x: F.avg_pool2d(x, 2), [IMAGE]),
    Row("avg_pool2d of one channel", lambda x: F.avg_pool2d(x, (2, 3), (1, 3)), [(2, 1, 6, 5)]),
    Row("avg_pool2d options", lambda x: F.avg_pool2d(x, 3, 2, 1), [IMAGE]),
    Row("avg_pool2d uncounted", lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), [IMAGE]),
    Row("avg_pool2d divisor", lambda x: F.avg_pool2d(x, 2, divisor_override=3), [IMAGE]),
    Row("avg_pool2d ceil", lambda x: F.avg_pool2d(x, 2, 2, ceil_mode=True), [IMAGE]),
    Row("avg_pool2d of padding", lambda x: F.avg_pool2d(x, 40, ceil_mode=True), [IMAGE]),
    Row("avg_pool1d", lambda x: F.avg_pool1d(x, 3, 2, 1), [(2, 3, 9)]),
    Row("adaptive_avg_pool2d 1", lambda x: F.adaptive_avg_pool2d(x, 1), [IMAGE]),
    Row("adaptive_avg_pool2d even", lambda x: F.adaptive_avg_pool2d(x, (3, 4)), [IMAGE]),
    Row("adaptive_avg_pool2d uneven", lambda x: F.adaptive_avg_pool2d(x, (4, 3)), [IMAGE]),
    Row("adaptive_avg_pool1d", lambda x: F.adaptive_avg_pool1d(x, 3), [(2, 3, 9)]),
    Row("adaptive_max_pool2d", lambda x: F.adaptive_max_pool2d(x, (3, 4)), [IMAGE]),
    Row("im2col", lambda x: F.unfold(x, (2, 3), stride=2), [IMAGE]),
    Row("col2im", lambda x: F.fold(x, (4, 5), (2, 2)), [(2, 12, 12)]),
    Row("col2im all", lambda x: F.fold(x, (6, 7), (2, 3), (2, 1), 1, (2, 3)), [(2, 12, 9)], (f32,)),
    Row("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), [(2, 8, 3, 4)]),
    Row("max_pool2d of integers", lambda x: F.max_pool2d(x, 2, padding=1), [IMAGE], INTS),
    Row("max_pool2d indices", lambda x: F.max_pool2d(x, 3, 2, 1, **POSITIONS), [IMAGE], (f32,)),
    Row("max_pool2d ceil indices", lambda x: F.max_pool2d(x, 2, ceil_mode=True, **POSITIONS), [IMAGE], (f32,)),
    Row("max_pool1d indices", lambda x: F.max_pool1d(x, 3, 2, **POSITIONS), [SIGNAL], (f32,)),
    Row("max_pool3d", lambda x: F.max_pool3d(x, 2), [VOLUME]),
    Row("max_pool3d indices", lambda x: F.max_pool3d(x, 3, 2, 1, **POSITIONS), [VOLUME], (f32,)),
    Row("max_pool3d all", lambda x: F.max_pool3d(x, (2, 3, 2), (2, 1, 3), (1, 1, 0), (1, 2, 1), True), [VOLUME]),
    Row("fractional_max_pool2d", _fractional(F.fractional_max_pool2d, 2), [IMAGE, uniform(0, 1, 3, 4, 2)], (f32,)),
    Row(  # the starts of the windows are computed in the type of the samples
        "fractional_max_pool2d of many windows",
        lambda x, s: F.fractional_max_pool2d(x, 2, output_size=8, return_indices=True, _random_samples=s),
        [(2, 4, 33, 33), uniform(0, 1, 2, 4, 2)],
        FLOATS,
    ),
    Row(  # a number of elements that bfloat16 does not have
        "fractional_max_pool2d of a large image",
        lambda x, s: F.fractional_max_pool2d(x, 1, output_size=(40, 1), return_indices=True, _random_samples=s),
        [(1, 1, 600, 1), uniform(0, 1, 1, 1, 2)],
        FLOATS,
    ),
    Row("fractional_max_pool3d", _fractional(F.fractional_max_pool3d, 2), [VOLUME, uniform(0, 1, 2, 3, 3)], (f32,)),
    Row("adaptive_max_pool1d", lambda x: F.adaptive_max_pool1d(x, 4, **POSITIONS), [SIGNAL], (f32,)),
    Row("adaptive_max_pool2d indices", lambda x: F.adaptive_max_pool2d(x, (4, 3), **POSITIONS), [IMAGE], (f32,)),
    Row("adaptive_max_pool3d", lambda x: F.adaptive_max_pool3d(x, (2, 3, 4), **POSITIONS), [VOLUME], (f32,)),
    Row("max_unpool2d", lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, **POSITIONS), 2), [(2, 3, 8, 6)]),
    Row("max_unpool3d", lambda x: F.max_unpool3d(*F.max_pool3d(x, 2, **POSITIONS), 2), [(2, 3, 4, 4, 6)]),
    Row("avg_pool3d", lambda x: F.avg_pool3d(x, 2), [VOLUME], (f32,)),
    Row("avg_pool3d options", lambda x: F.avg_pool3d(x, 3, 2, 1, True, False), [VOLUME], (f32,)),
    Row("avg_pool3d divisor", lambda x: F.avg_pool3d(x, (1, 2, 3), divisor_override=5), [VOLUME], (f32,)),
    Row("adaptive_avg_pool3d", lambda x: F.adaptive_avg_pool3d(x, (2, 3, 4)), [VOLUME]),
    Row("lp_pool2d", lambda x: F.lp_pool2d(x, 2, 3), [uniform(0.1, 2, *IMAGE)]),
    *_gradients(
        {
            "max_pool1d": (lambda x: F.max_pool1d(x, 3, 2), SIGNAL),
            "max_pool2d": (lambda x: F.max_pool2d(x, 3, 2, 1), IMAGE),
            "max_pool3d": (lambda x: F.max_pool3d(x, 2), VOLUME),
            "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, (4, 3)), IMAGE),
            "adaptive_max_pool3d": (lambda x: F.adaptive_max_pool3d(x, (2, 3, 4)), VOLUME),
            "avg_pool1d": (lambda x: F.avg_pool1d(x, 3, 2), SIGNAL),
            "avg_pool2d": (lambda x: F.avg_pool2d(x, 3, 2, 1), IMAGE),
            "avg_pool2d ceil": (lambda x: F.avg_pool2d(x, 3, 2, 1, True, False), IMAGE),
            "avg_pool2d divisor": (lambda x: F.avg_pool2d(x, 2, divisor_override=3), IMAGE),
            "avg_pool3d": (lambda x: F.avg_pool3d(x, 2), VOLUME),
            "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, (4, 3)), IMAGE),
            "adaptive_avg_pool3d": (lambda x: F.adaptive_avg_pool3d(x, (2, 3, 4)), VOLUME),
            "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), (2, 8, 3, 4)),
        }
    ),
]

SMOOTH = {"linear": SIGNAL, "bilinear": IMAGE, "trilinear": VOLUME, "bicubic": IMAGE}
COPYING = {"nearest": (SIGNAL, IMAGE, VOLUME), "nearest-exact": (SIGNAL, IMAGE, VOLUME)}


def _resize(mode: str, size: Any = None, **options: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: F.interpolate(x, size, mode=mode, **options)


INTERPOLATION = [
    *(Row(f"interpolate {m}", _resize(m, scale_factor=1.7), [s]) for m, s in SMOOTH.items()),
    *(Row(f"interpolate {m} corners", _resize(m, 11, align_corners=True), [s], (f32,)) for m, s in SMOOTH.items()),
    *(Row(f"interpolate {m} down", _resize(m, 4), [s], (f32,)) for m, s in SMOOTH.items()),
    *(
        Row(f"interpolate {m} antialiased", _resize(m, (5, 12), antialias=True), [IMAGE], (f32,))
        for m in ("bilinear", "bicubic")
    ),
    *(
        Row(f"interpolate {m} rank {len(s)}", _resize(m, scale_factor=1.7), [s], FLOATS)
        for m, shapes in COPYING.items()
        for s in shapes
    ),
    Row("interpolate nearest down", _resize("nearest", (4, 13)), [IMAGE]),
    *_gradients({f"interpolate {m}": (_resize(m, scale_factor=1.7), s) for m, s in SMOOTH.items()}),
    *_gradients({f"interpolate {m}": (_resize(m, scale_factor=2), s[1]) for m, s in COPYING.items()}),
    Row(
        "grid_sample",
        lambda x, grid: F.grid_sample(x, grid, align_corners=False),
        [(2, 3, 5, 6), uniform(-1.1, 1.1, 2, 4, 4, 2)],
        (f32,),
    ),
    Row(
        "grid_sample nearest",
        lambda x, grid: F.grid_sample(x, grid, "nearest", "border", True),
        [(2, 3, 5, 6), uniform(-1.1, 1.1, 2, 4, 4, 2)],
        (f32,),
    ),
    Row(
        "grid_sample bicubic",
        lambda x, grid: F.grid_sample(x, grid, "bicubic", "reflection", False),
        [(2, 3, 5, 6), uniform(-1.1, 1.1, 2, 4, 4, 2)],
        (f32,),
    ),
    *(
        Row(
            f"grid_sample volume {mode} {padding}",
            lambda x, grid, mode=mode, padding=padding: F.grid_sample(x, grid, mode, padding, padding == "border"),
            [(2, 3, 5, 6, 4), uniform(-1.3, 1.3, 2, 3, 4, 2, 3)],
            (f32,),
        )
        for mode in ("bilinear", "nearest")
        for padding in ("zeros", "border", "reflection")
    ),
    Row("affine_grid", lambda t: F.affine_grid(t, (2, 3, 4, 5), False), [(2, 2, 3)], (f32,)),
    Row("channel_shuffle", lambda x: F.channel_shuffle(x, 2), [(2, 8, 3, 4)]),
]
