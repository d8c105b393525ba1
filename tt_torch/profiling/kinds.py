"""The kind of each op: the coarse answer to the question where the time goes."""

from __future__ import annotations

from tt_torch.wire.facts import DATA_MOVEMENT

EXCHANGE = "exchange between chips"
# By the first words of the name of the op's table. The first entry that fits counts.
_KINDS = {
    "Matmul": "matrix product", "Linear": "matrix product", "SparseMatmul": "matrix product",
    "Conv": "convolution", "Eltwise": "element-wise", "Softmax": "normalization", "LayerNorm": "normalization",
    "RMSNorm": "normalization", "GroupNorm": "normalization", "BatchNorm": "normalization", "Reduction": "reduction",
    "Cum": "reduction", "Pool": "pooling", "MaxPool": "pooling", "GlobalAvgPool": "pooling",
    "ScaledDotProductAttention": "attention", "PagedScaledDotProductAttention": "attention",
    "ConcatenateHeads": "data movement", "NLP": "data movement", "SplitQueryKeyValue": "data movement",
    "Embedding": "lookup", "Gather": "lookup", "Scatter": "lookup", "Sort": "sorting", "TopK": "sorting",
    "Empty": "creation", "CreateGlobalSemaphore": "creation", "Full": "creation",
    "Arange": "creation", "Constant": "creation", "NamedFull": "creation", "Rand": "creation",
    "Prepare": "preparation of weights", "AllGather": EXCHANGE, "AllReduce": EXCHANGE, "ReduceScatter": EXCHANGE,
    "DistributedRMSNorm": EXCHANGE, "PointToPoint": EXCHANGE, "MeshPartition": "data movement",
}  # fmt: skip


def kind_of(name: str) -> str:
    """The kind of an op; "other" for rare ones. `name` is the name of its table, such as "MatmulOp"."""
    if name in DATA_MOVEMENT:
        return "data movement"
    return next((kind for prefix, kind in _KINDS.items() if name.startswith(prefix)), "other")
