"""Rows for ops that change the order, shape or type of elements, for ops that create tensors, and for the norms."""

import torch
import torch.nn.functional as F
from kernel_rows.row import Row, indices, randn

X = randn(5, 8)
DEEP = randn(3, 4, 5)


def one(op, x, shape, expected, label="", field="in", **attributes):
    return Row(op, {field: x}, {"out": shape}, expected, attributes, label or str(attributes))


def cut(begins, ends, steps, shape, expected):
    params = {"params": {"SliceStaticOpParams": {"begins": begins, "ends": ends}}, "step": steps}
    return one("SliceOp", X, shape, expected, f"{begins} {ends} {steps}", type="SliceStaticOp", **params)


def permuted(order, x=DEEP):
    y = x.permute(order)
    return one("PermuteOp", x, tuple(y.shape), lambda x: x.permute(order), permutation=list(order))


MOVES = [
    cut([1, 2], [5, 8], [], (4, 6), lambda x: x[1:5, 2:8]),
    cut([4, 7], [0, -9], [-1, -3], (4, 3), lambda x: x.flip(0, 1)[:4, ::3]),
    cut([9, -2], [0, 1], [-2, -2], (2, 3), lambda x: x[[4, 2]][:, [6, 4, 2]]),
    *(permuted(order) for order in [(0, 1, 2), (2, 0, 1), (0, -1, 1)]),
    permuted((1, 0, 2), randn(1, 4, 5)),
    permuted((0, 2, 1), randn(3, 4, 1)),
    one("TransposeOp", DEEP, (5, 4, 3), lambda x: x.transpose(0, -1), dim0=0, dim1=-1),
    one("TransposeOp", X[0, 0], (), lambda x: x, "scalar", dim0=0, dim1=0),
    one("ReshapeOp", DEEP, (6, 10), lambda x: x.reshape(6, 10)),
    one("PadOp", X, (8, 9), lambda x: F.pad(x, (0, 1, 2, 1), value=3.5), padding=[2, 1, 0, 1], value=3.5),
    one("RepeatOp", X, (10, 24), lambda x: x.repeat(2, 3), repeat_dims=[2, 3]),
    one("RepeatOp", X[:1], (4, 8), lambda x: x.repeat(4, 1), repeat_dims=[4, 1]),
    one("RepeatInterleaveOp", X, (5, 24), lambda x: x.repeat_interleave(3, 1), field="input", repeats=3, dim=1),
    one("TypecastOp", X * 5, ((5, 8), "Int32"), lambda x: x.int(), dtype="Int32"),
    one("TypecastOp", X, ((5, 8), "Float32"), lambda x: x, dtype="Float32"),
    one("TypecastOp", X, ((5, 8), "BFloat16"), lambda x: x.bfloat16().float(), dtype="BFloat16"),
    *(Row(op, {"operand": X}, {"result": (5, 8)}, lambda x: x) for op in ("AnnotateOp", "RegionStartOp")),
    Row("AssignOp", {"input": X}, {"output": (5, 8)}, lambda x: x),
    *(Row(op, {source: X, target: -X}, {}, lambda x, y: x, in_place=(target,))
      for op, source, target in [("CopyOp", "src", "dst"), ("WriteTensorOp", "host_tensor", "device_tensor")]),
]  # fmt: skip

INDEX = indices(5, 5, 8)
REDUCTIONS = {"Sum": "sum", "Max": "amax", "Min": "amin", "Prod": "prod"}


def scattered(dim, function, expected):
    return Row("ScatterOp", {"input": X, "index": INDEX, "source": randn(8, 5).reshape(5, 8)}, {"out": (5, 8)},
               expected, {"dim": dim, "scatter_reduce_type": function}, function)  # fmt: skip


EACH_ONCE = torch.stack([torch.randperm(5, generator=torch.Generator().manual_seed(i)) for i in range(8)], 1)
MOVES += [
    Row("GatherOp", {"input": X, "index": INDEX[:3]}, {"out": (3, 8)}, lambda x, i: x.gather(0, i), {"dim": -2}),
    Row("ScatterOp", {"input": X, "index": EACH_ONCE[:3], "source": -X[:3]}, {"out": (5, 8)},
        lambda x, i, s: x.scatter(0, i, s), {"dim": 0, "scatter_reduce_type": "Invalid"}),
    *(scattered(0, name, lambda x, i, s, how=how: x.scatter_reduce(0, i, s, how)) for name, how in REDUCTIONS.items()),
    Row("EmbeddingOp", {"input": indices(5, 2, 3), "weight": X}, {"out": (2, 3, 8)}, lambda i, w: w[i]),
]  # fmt: skip


def made(op, shape, expected, **attributes):
    return Row(op, {}, {"out": shape}, lambda: expected, attributes, str(attributes))


MADE = [
    made("ArangeOp", (4,), torch.tensor([1.5, 3.5, 5.5, 7.5]), start=1.5, end=9.0, step=2.0),
    made("ArangeOp", ((3,), "Int32"), torch.tensor([5, 3, 1], dtype=torch.int32), start=5.0, end=0.0, step=-2.0),
    made("FullOp", (2, 3), torch.full((2, 3), 0.5), fill_value={"FP": {"value": 0.5}}),
    made("FullOp", ((2, 3), "Int32"), torch.full((2, 3), -7, dtype=torch.int32), fill_value={"I32": {"value": -7}}),
    made("NamedFullOp", (2, 3), torch.zeros(2, 3), type="Zeros"),
    made("NamedFullOp", (2, 3), torch.ones(2, 3), type="Ones"),
    made("EmptyOp", (2, 3), torch.zeros(2, 3)),
]


def normed(op, expected, epsilon=0.1, **weights):
    return Row(op, {"input": X * 2 + 1} | weights, {"out": (5, 8)}, expected, {"epsilon": epsilon}, str(list(weights)))


def rms(x, weight=None, bias=None):
    return F.rms_norm(x, (8,), weight, 0.1) + (0 if bias is None else bias)


W, B = randn(8), randn(9)[:8] + 1
NORMS = [
    *(one("SoftmaxOp", DEEP, (3, 4, 5), lambda x, d=d: x.softmax(d), dimension=d) for d in (0, -2, -1)),
    one("SoftmaxOp", DEEP, ((3, 4, 5), "BFloat16"), lambda x: x.softmax(1).bfloat16().float(), dimension=1),
    normed("LayerNormOp", lambda x: F.layer_norm(x, (8,), eps=0.1)),
    normed("LayerNormOp", lambda x, w: F.layer_norm(x, (8,), w, eps=0.1), weight=W),
    normed("LayerNormOp", lambda x, w, b: F.layer_norm(x, (8,), w, b, eps=0.1), weight=W, bias=B),
    normed("RMSNormOp", rms), normed("RMSNormOp", rms, weight=W), normed("RMSNormOp", rms, weight=W, bias=B),
    Row("BatchNormInferenceOp",
        {"input": randn(2, 8, 3, 3), "running_mean": W.reshape(1, 8, 1, 1), "running_var": W.abs().reshape(1, 8, 1, 1),
         "weight": B.reshape(1, 8, 1, 1), "bias": (W + B).reshape(1, 8, 1, 1)}, {"out": (2, 8, 3, 3)},
        lambda x, *p: F.batch_norm(x, *(t.flatten() for t in p), eps=0.1), {"epsilon": 0.1}),
]  # fmt: skip

ROWS = MOVES + MADE + NORMS
