"""Programs of convolutions and other ops of images that kernels refuse. refusals.py says how they are written."""

from kernel_rows import products
from kernel_rows.fields import HUGE, ints, x, y

SIZE = "a size or the number of groups is out of range"
GROUPS = "the number of channels is not a multiple of the number of groups"
COMPUTED = "the result has another number of elements than the convolution computes"
PADDING = "padding must be from 0 to 1024"
CONVOLUTIONS = {
    "Conv2dOp": [
        ("operand weight is missing", {"weight": None}),
        ("the bias does not have a value per channel", {"bias": x(1, 1, 1, 5)}),
        ("a convolution needs a float input", {"input": ints(1, 1, 84, 8)}),
        *((f"{name} must have 2 values", {name: [1]}) for name in ("kernel_size", "stride", "dilation")),
        *((f"{name} is out of range", {name: [1, n]})
          for name in ("kernel_size", "stride", "dilation") for n in (0, HUGE)),
        *((PADDING, {"padding": [0, 0, n, 0]}) for n in (-1, 1025)),
        ("padding must have two or four values", {"padding": [1, 1, 1]}),
        *((SIZE, {name: n}) for n in (0, HUGE) for name in ("groups", *products.IMAGE)),
        (GROUPS, {"groups": 3}), (GROUPS, {"groups": 4}),  # of 8 and 6 channels
        *(("the input does not have batch x height x width x channels elements", {"input": x(1, 1, 83, 8), **padding})
          for padding in ({}, {"padding": [1, 1, 0, 2]})),
        *(("the kernel is larger than the padded input", {"kernel_size": size, "stride": [2, 2], "padding": [0, 0]})
          for size in ([8, 1], [1, 7])),
        (COMPUTED, {"out": y(1, 1, 85, 6)}),
    ],
    "Conv1dOp": [
        *(("stride, dilation and groups must be positive, and padding must have two values", {name: 0})
          for name in ("stride", "dilation", "groups")),
        ("stride, dilation and groups must be positive, and padding must have two values", {"padding": [0]}),
        *((PADDING, {"padding": [0, n]}) for n in (-1, 1025)),
        ("the weight must have three dimensions", {"weight": x(6, 24)}),
        *((f"{name} is out of range", {name: n, "bias": None}) for n in (0, HUGE)
          for name in ("batch_size", "input_length", "in_channels", "out_channels", "kernel_size")),
        *(("stride or dilation is out of range", {name: HUGE}) for name in ("stride", "dilation")),
        (COMPUTED, {"out": y(2, 6, 6)}), (COMPUTED, {"kernel_size": 10}),
    ],
    "Conv3dOp": [
        *((f"{name} must have 3 values", {name: [1, 1]}) for name in ("kernel_size", "stride")),
        *(("padding must have three values, groups must be positive, and the input must have five dimensions", wrong)
          for wrong in ({"padding": [0, 0]}, {"groups": 0}, {"input": x(8, 6, 5, 4)})),
        *((PADDING, {"padding": [0, n, 0]}) for n in (-1, 1025)),
        *(("the weight does not consist of whole blocks of channels", wrong)
          for wrong in ({"conv3d_config": {"c_in_block": 5}}, {"out_channels": 0, "bias": None})),
        (COMPUTED, {"out": y(2, 3, 4, 4, 5)}),
    ],
    "ConvTranspose2dOp": [
        *(("output_padding must have two values, and padding must be symmetric", wrong)
          for wrong in ({"output_padding": [1]}, {"padding": [1, 0, 0, 0]})),
        (COMPUTED, {"output_padding": [0, 0]}),
    ],
    "PrepareConv2dWeightsOp": [
        ("the weight does not have O x C x KH x KW elements", {"weight_tensor": x(6, 8, 3, 2)}),
        ("input_dtype must be a float type", {"input_dtype": "Int32"}),
        ("a device cannot hold values of type BFP_BFloat2", {"input_dtype": "BFP_BFloat2"}),
    ],
    "PrepareConvTranspose2dWeightsOp": [
        ("the weight's shape is not I x O x KH x KW", {"weight_tensor": x(6, 8, 3, 3)}),
    ],
    "PrepareConv2dBiasOp": [("the bias does not have a value per channel", {"bias_tensor": x(1, 1, 1, 8)})],
    "PrepareConv3dWeightsOp": [
        *(("the weight must have five dimensions, and the alignment must be less than 4096", wrong)
          for wrong in ({"weight_tensor": x(6, 3, 6, 2)}, {"alignment": 4096})),
        ("c_in_block must divide the padded number of channels", {"c_in_block": 2}),
    ],
}  # fmt: skip

EXTENTS = "kernel_size, stride or dilation is out of range"
FACTOR = "scale_factor must be one or two numbers from 1 to 4095"
IMAGES = {
    "Pool2dOp": [
        *(("kernel_size, stride and dilation must have two values each", {name: [1]})
          for name in ("kernel_size", "stride", "dilation")),
        *((EXTENTS, {name: [1, n]}) for name in ("kernel_size", "stride", "dilation") for n in (0, HUGE)),
        ("padding must have two or four values", {"padding": [0]}),
        *(("padding is out of range", {"padding": [0, n]}) for n in (-1, HUGE)),
        *(("batch_size, input_height or input_width is out of range", {name: n})
          for name in ("batch_size", "input_height", "input_width") for n in (0, HUGE)),
        ("batch_size, input_height or input_width is out of range", {"in": x()}),
        ("divisor_override must be positive",
         {"type": "AvgPool2d", "extra_params": {"AvgPool2dExtraParams": {"divisor_override": 0}}}),
        ("the result is a scalar", {"out": y()}),
        ("the kernel is larger than the padded input", {"kernel_size": [8, 1]}),
        ("the kernel is larger than the padded input", {"kernel_size": [1, 4], "dilation": [1, 2]}),
        ("the result has another number of elements than the pooling computes", {"out": y(1, 1, 31, 8)}),
    ],
    "MaxPool2dWithIndicesOp": [
        ("max pooling with indices needs symmetric padding", {"padding": [1, 0, 1, 1]}),
        ("the op needs much more memory than its tensors have", {"batch_size": 1 << 19}),
    ],
    "GlobalAvgPool2dOp": [("the input must be N x H x W x C", {"in": x(6, 5, 8)})],
    "UpsampleOp": [
        *(("the input must be N x H x W x C, and scale_factor must be given", wrong)
          for wrong in ({"in": x(4, 3, 8)}, {"scale_factor": None})),
        *((FACTOR, {"scale_factor": {"NonUniformScale2D": {"scale": scale}}}) for scale in
          ([2, 2, 2], [0, 2], [2, 0], [-1, 2], [2, -1], [4096, 1], [1, 4096])),
        *(("the result's shape is not that of the scaled input", {"out": y(*shape)})
          for shape in [(1, 8, 6, 8), (2, 7, 6, 8), (2, 8, 5, 8), (2, 8, 6, 9)]),
    ],
    "BatchNormInferenceOp": [
        *(("the input must have at least two dimensions", {"input": x(*shape)}) for shape in [(), (8,)]),
        *(("a statistic or weight does not have one value per channel", {name: x(7)})
          for name in ("running_mean", "running_var", "weight", "bias")),
    ],
    "BatchNormTrainingOp": [
        *(("a statistic or weight does not have one value per channel", {name: x(7)})
          for name in ("running_mean", "running_var", "weight", "bias")),
    ],
    "GroupNormOp": [
        ("the input must be N x 1 x H*W x C", wrong) for wrong in ({"input": x(1, 15, 8)}, {"num_groups": 0})
    ],
}  # fmt: skip
