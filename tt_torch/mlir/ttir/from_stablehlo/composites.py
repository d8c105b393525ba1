"""Composites by name: ours, and those of tt-xla with the same names."""

from __future__ import annotations

from collections.abc import Callable

from torch_mlir import ir

from tt_torch.mlir import infer, ods
from tt_torch.mlir.rules import Builder, dtype, shape
from tt_torch.mlir.ttir.from_stablehlo.creation import full
from tt_torch.mlir.ttir.from_stablehlo.registry import RULES
from tt_torch.mlir.ttir.from_stablehlo.sliding import NCHW, flatten, unflatten
from tt_torch.mlir.types import Attrs, Op, Results, Value

Expand = Callable[[Builder, list[Value], Attrs], Results]


def conv_transpose2d(b: Builder, operands: list[Value], a: Attrs) -> Value:
    """The images and the result are in NCHW. The weight has PyTorch's form, (C, O / groups, KH, KW)."""
    x, weight, *bias = operands
    batch, channels, height, width = shape(x)
    out, kernel = shape(weight)[1] * a["groups"], shape(weight)[2:]
    sizes = {"batch_size": batch, "input_height": height, "input_width": width}
    flat = flatten(b, x, NCHW)
    bias = [b("ttir.reshape", v, shape=[1, 1, 1, out]) for v in bias]
    window = a | {"in_channels": channels, "out_channels": out, "kernel_size": kernel}
    product = b("ttir.conv_transpose2d", flat, weight, *bias, **sizes, **window)
    size = infer.transposed_size([height, width], kernel, **a)
    return unflatten(b, product, [batch, *size, out], NCHW)


def max_pool2d_with_indices(b: Builder, operands: list[Value], a: Attrs) -> list[Value]:
    """Returns the maxima and their positions. The images and both results are in NCHW."""
    (x,) = operands
    batch, channels, height, width = shape(x)
    sizes = {"batch_size": batch, "input_height": height, "input_width": width, "channels": channels}
    spans = zip((height, width), a["kernel_size"], a["stride"], a["padding"], a["dilation"], strict=True)
    out = [infer.window(n, k, s, 2 * p, d) for n, k, s, p, d in spans]
    window = a | {"padding": [*a["padding"], *a["padding"]]}
    results = b("ttir.max_pool2d_with_indices", flatten(b, x, NCHW), **sizes, **window)
    return [unflatten(b, r, [batch, *out, channels], NCHW) for r in results]


def topk(b: Builder, operands: list[Value], a: Attrs) -> list[Value]:
    (x,) = operands
    a = {"dim": -1, "largest": True, "sorted": False} | a
    return b("ttir.topk", x, **a | {"dim": a["dim"] % len(shape(x))})


def argmax(b: Builder, operands: list[Value], a: Attrs) -> Value:
    (x,) = operands
    return b("ttir.argmax", x, dim_arg=[a["dim"] % len(shape(x))], keep_dim=a.get("keepdim", False))


def attention(b: Builder, operands: list[Value], a: Attrs) -> Value:
    scale = a.get("scale", shape(operands[0])[-1] ** -0.5)
    return b("ttir.scaled_dot_product_attention", *operands, is_causal=a.get("is_causal", False), scale=scale)


SCATTERS = {"": "Invalid", "sum": "Sum", "prod": "Prod", "amax": "Max", "amin": "Min"}

# Composites that TTIR has in another form. Those with the name, operands and attributes of a TTIR op need no row.
COMPOSITES: dict[str, Expand] = {
    "tenstorrent.conv_transpose2d": conv_transpose2d,
    "tenstorrent.max_pool2d_with_indices": max_pool2d_with_indices,
    "tenstorrent.argmax": argmax,
    "tenstorrent.topk": topk,
    "tenstorrent.topk_values": lambda b, operands, a: topk(b, operands, a)[0],
    "tenstorrent.topk_indices": lambda b, operands, a: topk(b, operands, a)[1],
    "tenstorrent.logical_right_shift": lambda b, operands, a: b(
        "ttir.logical_right_shift", *operands, full(b, [1] * len(shape(operands[0])), dtype(operands[0]), a["bits"])
    ),
    "tenstorrent.scatter": lambda b, operands, a: b(
        "ttir.scatter", *operands, dim=a["dim"], scatter_reduce_type=SCATTERS[a["reduce"]]
    ),
    "tenstorrent.layer_norm": lambda b, operands, a: b("ttir.layer_norm", *operands, epsilon=a["epsilon"]),
    "tenstorrent.scaled_dot_product_attention": attention,
}


# The attributes with which a composite has a rule. With others, its decomposition is used.
TAKEN: dict[str, Callable[[Attrs], bool]] = {
    "tenstorrent.argmax": lambda a: "dim" in a,
    "tenstorrent.layer_norm": lambda a: _length(a.get("normalized_shape")) == 1,
    "tenstorrent.scaled_dot_product_attention": lambda a: set(a) <= {"is_causal", "scale"},
}


def is_known(op: Op) -> bool:
    """Whether a composite has a rule."""
    return _expansion(op) is not None


def _expansion(op: Op) -> Expand | None:
    """The row of a composite. Without a row, it is the TTIR op of the same name, if that has the same number of
    operands and the same attributes; otherwise None."""
    name, attributes = ods.attr(op, "name"), ods.attr(op, "composite_attributes") or {}
    if name in COMPOSITES:
        return COMPOSITES[name] if name not in TAKEN or TAKEN[name](attributes) else None
    declared = ods.OPS.get(name.replace("tenstorrent.", "ttir.")) if name.startswith("tenstorrent.") else None
    if declared is None or declared.segmented or len(declared.operands) != len(op.operands):
        return None
    return _declared(declared.name) if declared.attrs.keys() == attributes.keys() else None


def _declared(name: str) -> Expand:
    return lambda b, operands, attributes: b(name, *operands, **attributes)


def _length(value: ir.Attribute | None) -> int:
    """The length of a list or an elements attribute; 1 for None."""
    return 1 if value is None else len(value)


@RULES.rewrites("stablehlo.composite")
def composite(op: Op, b: Builder) -> Results | None:
    expand = _expansion(op)
    return expand and expand(b, list(op.operands), ods.attr(op, "composite_attributes") or {})
