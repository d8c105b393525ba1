"""Matrix products, convolutions and pooling, with every attribute that they have."""

import torch
import torch.nn.functional as F
from kernel_rows.images import flat, image
from kernel_rows.row import Row, randn

# --- matrix products ------------------------------------------------------------------------------

ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu, "sigmoid": torch.sigmoid, "tanh": torch.tanh,
               "relu6": F.relu6, "exp": torch.exp, "abs": torch.abs, "square": torch.square,
               "hardsigmoid": F.hardsigmoid, "neg": torch.neg, "softplus": F.softplus}  # fmt: skip
FUNCTIONS = ACTIVATIONS | {"sqrt": torch.sqrt, "": lambda y: y}  # a square root needs operands that are not negative
OF_PRODUCTS = FUNCTIONS | {"gelu_tanh": lambda y: F.gelu(y, approximate="tanh")}


def product(a, b, bias=None, label="", **attributes):
    operands = {"a": a, "b": b} | ({} if bias is None else {"bias": bias})

    def expected(a, b, bias=0.0):
        a = a.transpose(-1, -2) if attributes.get("transpose_a") else a
        b = b.transpose(-1, -2) if attributes.get("transpose_b") else b
        y = a @ b + bias
        return OF_PRODUCTS[attributes.get("activation", "")](y)

    shape = tuple(expected(*operands.values()).shape)
    shapes = " ".join("x".join(map(str, t.shape)) for t in operands.values())
    return Row("MatmulOp" if bias is None else "LinearOp", operands, {"out": shape}, expected, attributes,
               f"{shapes} {label} {' '.join(map(str, attributes.values()))}".strip())  # fmt: skip


A, B, BIAS = randn(6, 8) / 2, randn(8, 5) / 2, randn(5)
BATCHED, MATRICES = randn(3, 6, 8) / 2, randn(3, 8, 5) / 2
PRODUCTS = [
    product(A, B), product(A, B, BIAS), product(A, B, BIAS.reshape(1, 5)), product(A, B, randn(6, 5)),
    product(A, B, randn(6, 1)), product(A, B, BIAS[:1]), product(A[0], B, BIAS),
    product(A.t().contiguous(), B, BIAS, transpose_a=True),
    product(A, B.t().contiguous(), BIAS, transpose_b=True),
    product(BATCHED, B, BIAS), product(BATCHED, MATRICES), product(BATCHED, MATRICES, BIAS),
    product(BATCHED, MATRICES.transpose(1, 2).contiguous(), transpose_b=True),
    product(A, MATRICES), product(A, MATRICES[:1]), product(A[0], B), product(A, B[:, 0]), product(A[0], B[:, 0]),
    product(BATCHED, B[:, 0]), product(A[:, :1], B[:1]), product(A, B[:, :1], BIAS[:1]),
    *(product(A, B, BIAS, activation=name) for name in ACTIVATIONS),
    product(A, B, BIAS, activation="gelu_tanh"), product(BATCHED, MATRICES, activation="gelu"),
    product(A.abs(), B.abs(), BIAS.abs(), activation="sqrt"),
]  # fmt: skip

# --- convolutions ---------------------------------------------------------------------------------

IMAGE = {"batch_size": 2, "input_height": 7, "input_width": 6, "in_channels": 8, "out_channels": 6}


def sides(padding):
    """Returns left, right, top, bottom. The wire has top, bottom, left, right, or it has height, width."""
    top, bottom, left, right = padding if len(padding) == 4 else (padding[0], padding[0], padding[1], padding[1])
    return left, right, top, bottom


FUSED = {name.capitalize() or None: function for name, function in FUNCTIONS.items()}
FUSED |= {"LeakyRelu": F.leaky_relu, "Identity": lambda y: y, "Atan": torch.atan, "Erf": torch.erf, "Erfc": torch.erfc}
FUSED |= {"Exp2": torch.exp2, "Log2": torch.log2, "Log10": torch.log10, "Recip": torch.reciprocal}
POSITIVE = ("Sqrt", "Log2", "Log10", "Recip")
SCALES = {"Relu6": 9, "Exp": 0.25, "Exp2": 0.25}  # Relu6 needs sums above six; Exp enlarges the rounding of large sums


def conv2d(
    kernel=(3, 3), stride=(1, 1), padding=(1, 1), dilation=(1, 1), groups=1, bias=True, activation=None, scale=1,
    params=(),
):  # fmt: skip
    x, w = randn(1, 1, 84, 8) * scale, randn(6, 8 // groups, *kernel) / 4
    operands = {"input": x, "weight": w} | ({"bias": randn(1, 1, 1, 6)} if bias else {})
    if activation in POSITIVE:
        operands = {name: operand.abs() for name, operand in operands.items()}
    function = FUSED[activation]

    def expected(x, w, b=None):
        x = F.pad(image(x, 7, 6), sides(padding))
        y = F.conv2d(x, w, None if b is None else b.flatten(), stride, 0, dilation, groups)
        return flat(function(y, *params))

    how = {"kernel_size": list(kernel), "stride": list(stride), "padding": list(padding),
           "dilation": list(dilation), "groups": groups}  # fmt: skip
    config = {"conv2d_config": {"activation": {"op_type": activation, "params": list(params)}}} if activation else {}
    label = f"{list(how.values())} {bias} {activation} {list(params)}"
    return Row("Conv2dOp", operands, {"out": tuple(expected(*operands.values()).shape)}, expected,
               IMAGE | how | config, label)  # fmt: skip


def conv1d(stride=1, padding=(0, 0), dilation=1, groups=1, bias=True):
    x, w = randn(2, 9, 8), randn(6, 8 // groups, 3) / 4
    operands = {"input": x, "weight": w} | ({"bias": randn(1, 1, 6)} if bias else {})

    def expected(x, w, b=None):
        x = F.pad(x.transpose(1, 2), padding)
        return F.conv1d(x, w, None if b is None else b.flatten(), stride, 0, dilation, groups).transpose(1, 2)

    how = {"stride": stride, "padding": list(padding), "dilation": dilation, "groups": groups}
    size = {"batch_size": 2, "input_length": 9, "in_channels": 8, "out_channels": 6, "kernel_size": 3}
    return Row("Conv1dOp", operands, {"out": tuple(expected(*operands.values()).shape)}, expected, how | size,
               f"{list(how.values())} {bias}")  # fmt: skip


def conv3d(stride=(1, 1, 1), padding=(0, 0, 0), mode="zeros", groups=1, aligned=4):
    """The weight is prepared: (KD * KH * KW * C, O), with the channels padded up to `aligned`."""
    depth, kernel = 4 // groups, (2, 3, 2)
    w = randn(6, depth, *kernel) / 4
    matrix = F.pad(w, (0, 0) * 3 + (0, aligned - depth)).permute(2, 3, 4, 1, 0).reshape(-1, 6)
    operands = {"input": randn(2, 4, 6, 5, 4), "weight": matrix, "bias": randn(1, 6)}

    def expected(x, matrix, b):
        w = matrix.reshape(*kernel, aligned, 6)[..., :depth, :].permute(4, 3, 0, 1, 2)
        width = [p for p in reversed(padding) for _ in range(2)]
        x = F.pad(x.permute(0, 4, 1, 2, 3), width, **({"mode": mode} if mode == "replicate" else {}))
        return F.conv3d(x, w, b.flatten(), stride, 0, 1, groups).permute(0, 2, 3, 4, 1)

    how = {"stride": list(stride), "padding": list(padding), "padding_mode": mode, "groups": groups}
    return Row("Conv3dOp", operands, {"out": tuple(expected(*operands.values()).shape)}, expected,
               how | {"kernel_size": list(kernel), "out_channels": 6, "in_channels": 4},
               f"{list(how.values())} {aligned}")  # fmt: skip


def prepared3d(alignment, padded):
    return Row("PrepareConv3dWeightsOp", {"weight_tensor": randn(6, 3, 2, 3, 2)}, {"out": (padded * 12, 6)},
               lambda w: F.pad(w, (0, 0) * 3 + (0, padded - 3)).permute(2, 3, 4, 1, 0).reshape(-1, 6),
               {"alignment": alignment, "groups": 1}, str(alignment))  # fmt: skip


CONVOLUTIONS = [
    conv2d(), conv2d(bias=False), conv2d(stride=(2, 1), padding=(2, 0)), conv2d(dilation=(1, 2), padding=(0, 2)),
    conv2d(groups=2), conv2d(padding=(1, 1, 2, 2)), conv2d(padding=(0, 1, 2, 3), stride=(2, 3)),
    conv2d(padding=(0, 1, 2, 2)), conv2d(padding=(1, 1, 0, 2)), conv2d(activation="LeakyRelu", params=(0.3,)),
    conv2d(kernel=(1, 2), padding=(0, 0)), conv2d(kernel=(7, 6), padding=(0, 0)),
    *(conv2d(activation=name, scale=SCALES.get(name, 1)) for name in FUSED),
    *(conv2d(activation=name, padding=(0, 1, 1, 0)) for name in ("Relu", "Gelu", "LeakyRelu")),
    conv1d(), conv1d(stride=2, padding=(1, 0)), conv1d(dilation=3, padding=(2, 1), groups=2), conv1d(bias=False),
    conv3d(), conv3d((2, 1, 2), (1, 0, 1)), conv3d(padding=(0, 2, 1), mode="replicate"),
    conv3d(groups=2, aligned=8), prepared3d(1, 3), prepared3d(8, 8), prepared3d(0, 3), prepared3d(2, 4),
]  # fmt: skip

# --- pooling --------------------------------------------------------------------------------------

POOLED = {"batch_size": 2, "input_height": 7, "input_width": 6, "channels": 8}


def wire_padding(left, right, top, bottom):
    return [top, left, bottom, right]


def pool(function, shape, expected, label, **attributes):
    how = {"kernel_size": [3, 2], "stride": [2, 1], "padding": [0, 0], "dilation": [1, 1]} | attributes
    return Row(
        "Pool2dOp",
        {"in": randn(1, 1, 84, 8) - 3},
        {"out": (1, 1, shape, 8)},
        lambda x: flat(expected(image(x, 7, 6))),
        {"type": function} | POOLED | how,
        f"{function} {label}",
    )


def counted(x, width, kernel, stride):
    """The mean of the image's elements in each window. The elements of the padding do not count."""
    total = F.avg_pool2d(F.pad(x, width), kernel, stride, divisor_override=1)
    return total / F.avg_pool2d(F.pad(torch.ones_like(x), width), kernel, stride, divisor_override=1)


COUNTED = {"extra_params": {"AvgPool2dExtraParams": {"count_include_pad": True}}}
INFINITE = float("-inf")
POOLS = [
    pool("MaxPool2d", 2 * 3 * 5, lambda x: F.max_pool2d(x, (3, 2), (2, 1)), "plain"),
    pool("MaxPool2d", 2 * 4 * 7, lambda x: F.max_pool2d(x, (3, 2), (2, 1), (1, 1)), "padded", padding=[1, 1]),
    pool("MaxPool2d", 2 * 2 * 4, lambda x: F.max_pool2d(x, (3, 2), (2, 1), 0, (2, 2)), "dilated", dilation=[2, 2]),
    pool("MaxPool2d", 2 * 4 * 6,
         lambda x: F.max_pool2d(F.pad(x, (1, 0, 0, 1), value=INFINITE), (3, 2), (2, 1), ceil_mode=True), "uneven",
         padding=wire_padding(1, 0, 0, 1), ceil_mode=True),
    pool("MaxPool2d", 2 * 3 * 3, lambda x: F.max_pool2d(x, 3, 3, 1, ceil_mode=True), "ceil", kernel_size=[3, 3],
         stride=[3, 3], padding=[1, 1], ceil_mode=True),
    pool("MaxPool2d", 2 * 3 * 2, lambda x: F.max_pool2d(x, 3, 3, (1, 0), ceil_mode=True), "ceil of rows",
         kernel_size=[3, 3], stride=[3, 3], padding=[1, 0], ceil_mode=True),
    pool("AvgPool2d", 2 * 3 * 5, lambda x: F.avg_pool2d(x, (3, 2), (2, 1)), "plain", dilation=[]),
    pool("AvgPool2d", 2 * 4 * 7, lambda x: F.avg_pool2d(x, (3, 2), (2, 1), 1, count_include_pad=False), "padded",
         padding=[1, 1, 1, 1]),
    pool("AvgPool2d", 2 * 4 * 7, lambda x: F.avg_pool2d(x, (3, 2), (2, 1), 1), "counted", padding=[1, 1], **COUNTED),
    pool("AvgPool2d", 2 * 3 * 6, lambda x: counted(x, (1, 0, 1, 0), (3, 2), (2, 1)), "uneven",
         padding=wire_padding(1, 0, 1, 0)),
    pool("AvgPool2d", 2 * 4 * 7, lambda x: F.avg_pool2d(F.pad(x, (0, 2, 2, 0)), (3, 2), (2, 1)), "uneven, counted",
         padding=wire_padding(0, 2, 2, 0), **COUNTED),
]  # fmt: skip

ROWS = PRODUCTS + CONVOLUTIONS + POOLS
