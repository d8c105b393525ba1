"""Rows for the gradients of embedding and gelu, slices and quantization."""

import torch
import torch.nn.functional as F
from kernel_rows.row import Row, indices, randn


def embedding_backward(index, table, grad):
    table = table.clone().requires_grad_()
    F.embedding(index.flatten(), table).backward(grad.reshape(-1, 8))
    return table.grad.reshape(1, 1, 16, 8)


def gelu_backward(approximate):
    def expected(grad, x):
        x = x.clone().requires_grad_()
        F.gelu(x, approximate=approximate).backward(grad)
        return x.grad

    return Row(
        "ExperimentalEltwiseBinaryBackwardOp",
        {"grad": randn(4, 8), "input": randn(8, 4).reshape(4, 8)},
        {"out": (4, 8)},
        expected,
        {"type": "GeluBW", "approximate": approximate},
        approximate,
    )


def per_tensor(prefix=""):
    return {f"{prefix}scale": {"PerTensorScale": {"scale": 0.05}},
            f"{prefix}zero_point": {"PerTensorZeroPoint": {"zero_point": 3}}}  # fmt: skip


def quantization(function, params, **attributes):
    member = "RequantizeOpParams" if function == "Requantize" else "QuantizeDequantizeOpParams"
    return {"type": function, "params": {member: params}, **attributes}


OTHER = {
    "out_scale": {"PerTensorScale": {"scale": 0.1}},
    "out_zero_point": {"PerTensorZeroPoint": {"zero_point": -2}},
}
STEPS = torch.arange(-20, 20, dtype=torch.int32).reshape(4, 10)


ROWS = [
    Row(
        "EmbeddingBackwardOp",
        {"input": indices(16, 2, 1, 1, 32), "weight": randn(16, 8), "in_grad": randn(1, 1, 64, 8)},
        {"out": (1, 1, 16, 8)},
        embedding_backward,
    ),
    Row(
        "SliceOp",
        {"in": randn(5, 8), "begins": torch.tensor([1, 2]), "ends": torch.tensor([5, 8])},
        {"out": (2, 6)},
        lambda x, b, e: x[1:5:2, 2:8],
        {"type": "SliceDynamicOp", "step": [2, 1]},
        "dynamic",
    ),
    Row(
        "SliceOp",
        {"in": randn(5, 8)},
        {"out": (4, 3)},
        lambda x: x[1:5, -3:],
        {
            "type": "SliceStaticOp",
            "step": [1, 1],
            "params": {"SliceStaticOpParams": {"begins": [1, -3], "ends": [5, 8]}},
        },
        "negative",
    ),
    Row(
        "EltwiseQuantizationOp",
        {"in": randn(4, 10)},
        {"out": ((4, 10), "Int32")},
        lambda x: (torch.round(x / 0.05) + 3).int(),
        quantization("Quantize", per_tensor()),
    ),
    Row(
        "EltwiseQuantizationOp",
        {"in": STEPS},
        {"out": ((4, 10), "Float32")},
        lambda x: (x - 3) * 0.05,
        quantization("Dequantize", per_tensor()),
        "back",
    ),
    Row(
        "EltwiseQuantizationOp",
        {"in": STEPS},
        {"out": ((4, 10), "Int32")},
        lambda x: (torch.round((x - 3) * 0.05 / 0.1) - 2).int(),
        quantization("Requantize", per_tensor("in_") | OTHER),
        "again",
    ),
    Row(
        "EltwiseQuantizationOp",
        {"in": STEPS, "scale": randn(10).abs() + 0.1, "zero_point": STEPS[0] + 5},
        {"out": ((4, 10), "Float32")},
        lambda x, scale, zero: (x - zero) * scale,
        quantization("Dequantize", {}, axis=1),
        "per axis",
    ),
    gelu_backward("none"),
    gelu_backward("tanh"),
]
