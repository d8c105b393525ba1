"""The names that tt-metal's profiler has for device ops, such as `MatmulDeviceOperation`.

Tenstorrent's `tt-perf-report` finds matrix products and groups ops by these names. TTNN's library chooses them when it
runs an op; here they follow from the op's table in the binary.
"""

from __future__ import annotations

from tt_torch.wire import custom_ops
from tt_torch.wire.facts import Op

# Names by the table's name. Other ops have the name of their table, with "DeviceOperation" instead of "Op".
_NAMES = {
    "LinearOp": "Matmul", "EltwiseBinaryOp": "BinaryNg", "EltwiseBinaryCompositeOp": "BinaryNg",
    "EltwiseBinaryCompositeScalarOp": "BinaryNg", "EltwiseUnaryOp": "Unary", "EltwiseUnaryCompositeOp": "Unary",
    "EltwiseTernaryWhereOp": "Ternary", "ReductionOp": "Reduce", "ReductionArgMaxOp": "ArgMax",
    "ReductionProdOp": "Prod", "Pool2dOp": "Pool2D",
    "MaxPool2dWithIndicesOp": "Pool2D", "EmbeddingOp": "Embeddings", "RMSNormOp": "LayerNorm",
    "ReshapeOp": "ReshapeView", "ToMemoryConfigOp": "Copy", "ConcatenateHeadsOp": "NLPConcatHeads",
    "SplitQueryKeyValueAndSplitHeadsOp": "NlpCreateHeads",
}  # fmt: skip
_TRANSFERS = ("ToDeviceOp", "FromDeviceOp")  # between host and device: no device op of tt-metal


def metal_name(op: Op) -> str:
    """The name of the device op. For a transfer between host and device, it is the name of the op's table."""
    if op.name in _TRANSFERS:
        return op.name
    if op.name == custom_ops.TABLE:  # of a user: it consists of any number of device ops
        return op.key
    if op.name.startswith("Cum"):  # running sums, products and so on
        base = "Accumulation"
    elif op.name == "ToLayoutOp":
        base = "Tilize" if any(result.tiled for result in op.results) else "Untilize"
    else:
        base = _NAMES.get(op.name, op.name.removesuffix("Op"))
    return f"{base}DeviceOperation"
