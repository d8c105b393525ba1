"""Rows for transposed convolution, batch and group normalization, pooling and upsampling."""

import torch.nn.functional as F
from kernel_rows.row import Row, randn


def image(flat, height, width):
    """Reshapes (1, 1, N*H*W, C) to (N, C, H, W)."""
    return flat.reshape(-1, height, width, flat.shape[-1]).permute(0, 3, 1, 2)


def flat(tensor):
    return tensor.permute(0, 2, 3, 1).reshape(1, 1, -1, tensor.shape[1])


def conv_transpose(x, w, b=None):
    b = None if b is None else b.flatten()
    return flat(F.conv_transpose2d(image(x, 5, 6), w, b, (2, 1), (1, 0), (1, 0), 2, (1, 2)))


TRANSPOSED = {
    "in_channels": 8, "out_channels": 6, "batch_size": 2, "input_height": 5, "input_width": 6, "groups": 2,
    "kernel_size": [3, 3], "stride": [2, 1], "padding": [1, 0], "output_padding": [1, 0], "dilation": [1, 2],
}  # fmt: skip
TRANSPOSED_SIZE = (1, 1, 2 * 10 * 10, 6)


def batch_norm(x, mean, var, weight, bias):
    mean, var = mean.flatten().clone(), var.flatten().clone()
    y = F.batch_norm(x, mean, var, weight.flatten(), bias.flatten(), True, 0.3, 1e-3)
    return y, mean.reshape(1, 6, 1, 1), var.reshape(1, 6, 1, 1)


NORM = {
    "running_mean": randn(1, 6, 1, 1),
    "running_var": randn(1, 6, 1, 1).abs(),
    "weight": randn(1, 6, 1, 1),
}
NORM |= {"bias": randn(1, 6, 1, 1) + 1}


def group_norm(x, weight=None, bias=None):
    y = F.group_norm(x.transpose(1, 3).reshape(2, 8, 15), 4, weight, bias, 1e-4)
    return y.reshape(2, 8, 15, 1).transpose(1, 3)


POOL = {"batch_size": 2, "input_height": 6, "input_width": 5, "channels": 8, "kernel_size": [3, 2]}
POOL |= {"stride": [2, 1], "padding": [1, 1, 1, 1], "dilation": [1, 1]}


def max_pool(x):
    values, positions = F.max_pool2d(image(x, 6, 5), (3, 2), (2, 1), (1, 1), return_indices=True)
    return flat(values), flat(positions)


def upsample(x, **how):
    return F.interpolate(x.permute(0, 3, 1, 2), **how).permute(0, 2, 3, 1)


ROWS = [
    Row(
        "ConvTranspose2dOp",
        {"input": randn(1, 1, 60, 8), "weight": randn(8, 3, 3, 3), "bias": randn(1, 1, 1, 6)},
        {"out": TRANSPOSED_SIZE},
        conv_transpose,
        TRANSPOSED,
        "bias",
    ),
    Row(
        "ConvTranspose2dOp",
        {"input": randn(1, 1, 60, 8), "weight": randn(8, 3, 3, 3)},
        {"out": TRANSPOSED_SIZE},
        conv_transpose,
        TRANSPOSED,
    ),
    Row(
        "BatchNormTrainingOp",
        {"input": randn(4, 6, 5, 3)} | NORM,
        {"out": (4, 6, 5, 3)},
        batch_norm,
        {"epsilon": 1e-3, "momentum": 0.3},
        in_place=("running_mean", "running_var"),
    ),
    Row(
        "GroupNormOp",
        {"input": randn(2, 1, 15, 8), "weight": randn(8), "bias": randn(8) + 1},
        {"out": (2, 1, 15, 8)},
        group_norm,
        {"num_groups": 4, "epsilon": 1e-4},
    ),
    Row(
        "GroupNormOp",
        {"input": randn(2, 1, 15, 8)},
        {"out": (2, 1, 15, 8)},
        group_norm,
        {"num_groups": 4, "epsilon": 1e-4},
        "plain",
    ),
    Row(
        "MaxPool2dWithIndicesOp",
        {"in": randn(1, 1, 60, 8)},
        {"result": (1, 1, 36, 8), "result_indices": ((1, 1, 36, 8), "UInt16")},
        max_pool,
        POOL,
    ),
    Row(
        "UpsampleOp",
        {"in": randn(2, 4, 3, 8)},
        {"out": (2, 8, 6, 8)},
        lambda x: upsample(x, scale_factor=2),
        {"mode": "nearest", "scale_factor": {"UniformScale2D": {"scale": 2}}},
        "nearest",
    ),
    Row(
        "UpsampleOp",
        {"in": randn(2, 4, 3, 8)},
        {"out": (2, 12, 6, 8)},
        lambda x: upsample(x, scale_factor=(3, 2), mode="bilinear"),
        {"mode": "bilinear", "scale_factor": {"NonUniformScale2D": {"scale": [3, 2]}}},
        "bilinear",
    ),
    Row(
        "GlobalAvgPool2dOp",
        {"in": randn(2, 6, 5, 8)},
        {"out": (2, 1, 1, 8)},
        lambda x: x.mean((1, 2), keepdim=True),
    ),
]
