// The ops that the device has kernels for, by family. A name means all overloads that have a CPU kernel of
// their own; PyTorch composes further ops (`add.Scalar` in place, `linear`, `dropout`) from them. Ops that
// are not in the list run on the CPU: linear algebra except products, Fourier transforms, most special
// functions, histograms, and ops on quantized and sparse tensors.
#pragma once

#include <string_view>

namespace tt::device {

// clang-format off
constexpr std::string_view kOps[] = {
    // creation
    "arange", "eye", "fill_", "full", "linspace", "logspace", "range", "zero_", "tril_indices", "triu_indices",
    // copies and views
    "_local_scalar_dense", "complex", "conj_physical", "equal", "is_set_to", "polar", "unfold",
    "view_as_complex", "view_as_real",
    // element-wise, one operand
    "abs", "acos", "acosh", "angle", "asin", "asinh", "atan", "atanh", "bitwise_not", "ceil", "clamp",
    "clamp_max", "clamp_min", "cos", "cosh", "digamma", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "floor",
    "frac", "frexp", "i0", "isnan", "isneginf", "isposinf", "lgamma", "log", "log10", "log1p", "log2",
    "logical_not", "logit", "mvlgamma", "nan_to_num", "neg", "polygamma", "reciprocal", "round", "rsqrt", "sgn",
    "sigmoid", "sign", "signbit", "sin", "sinc", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
    // activations
    "_prelu_kernel", "celu", "elu", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh",
    "leaky_relu", "log_sigmoid_forward", "mish", "relu", "relu6", "rrelu_with_noise", "silu", "softplus",
    "softshrink", "threshold",
    "_prelu_kernel_backward", "elu_backward", "gelu_backward", "glu_backward", "glu_backward_jvp", "glu_jvp",
    "hardshrink_backward", "hardsigmoid_backward", "hardswish_backward", "hardtanh_backward",
    "leaky_relu_backward", "log_sigmoid_backward", "logit_backward", "mish_backward", "sigmoid_backward",
    "silu_backward", "softplus_backward", "softshrink_backward", "tanh_backward", "threshold_backward",
    // element-wise, several operands
    "__lshift__", "__rshift__", "_add_relu", "add", "addcdiv", "addcmul", "atan2", "bitwise_and",
    "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "copysign", "div", "floor_divide",
    "fmax", "fmin", "fmod", "gcd", "heaviside", "hypot", "lcm", "ldexp", "lerp", "logaddexp", "logaddexp2", "logical_and",
    "logical_or", "logical_xor", "maximum", "minimum", "mul", "nextafter", "pow", "remainder", "rsub", "sub",
    "where", "xlogy",
    // comparison
    "eq", "ge", "gt", "isin", "le", "lt", "ne",
    // reductions and scans
    "_aminmax", "_cummax_helper", "_cummin_helper", "_logcumsumexp", "all", "amax", "amin", "aminmax", "any",
    "argmax", "argmin", "count_nonzero", "cumprod", "cumsum", "linalg__powsum", "linalg_vector_norm", "max", "mean", "median",
    "min", "mode", "nanmedian", "nansum", "norm", "prod", "renorm", "std", "std_mean", "sum", "trace", "var", "var_mean",
    // matrix products
    "_addmm_activation", "_int_mm", "addbmm", "addmm", "addmv", "addr", "baddbmm", "bmm", "dot", "linalg_cross",
    "mm", "vdot", "_cdist_forward", "_cdist_backward", "_pdist_forward", "_pdist_backward",
    // convolution
    "col2im", "convolution", "convolution_backward", "im2col",
    // pooling and sampling
    "_adaptive_avg_pool2d", "_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d",
    "_adaptive_avg_pool3d_backward", "adaptive_avg_pool3d_backward", "adaptive_max_pool2d", "adaptive_max_pool2d_backward", "adaptive_max_pool3d",
    "adaptive_max_pool3d_backward", "avg_pool2d", "avg_pool2d_backward", "avg_pool3d", "avg_pool3d_backward",
    "fractional_max_pool2d", "fractional_max_pool2d_backward", "fractional_max_pool3d",
    "fractional_max_pool3d_backward", "grid_sampler_2d", "grid_sampler_2d_backward", "grid_sampler_3d",
    "grid_sampler_3d_backward", "max_pool2d_with_indices", "max_pool2d_with_indices_backward",
    "max_pool3d_with_indices", "max_pool3d_with_indices_backward", "max_unpool2d", "max_unpool3d",
    "_upsample_bicubic2d_aa", "_upsample_bicubic2d_aa_backward", "_upsample_bilinear2d_aa",
    "_upsample_bilinear2d_aa_backward", "_upsample_nearest_exact1d", "_upsample_nearest_exact1d_backward",
    "_upsample_nearest_exact2d", "_upsample_nearest_exact2d_backward", "_upsample_nearest_exact3d",
    "_upsample_nearest_exact3d_backward", "upsample_bicubic2d", "upsample_bicubic2d_backward",
    "upsample_bilinear2d", "upsample_bilinear2d_backward", "upsample_linear1d", "upsample_linear1d_backward",
    "upsample_nearest1d", "upsample_nearest1d_backward", "upsample_nearest2d", "upsample_nearest2d_backward",
    "upsample_nearest3d", "upsample_nearest3d_backward", "upsample_trilinear3d", "upsample_trilinear3d_backward",
    // attention
    "_native_multi_head_attention", "_transform_bias_rescale_qkv", "_transformer_encoder_layer_fwd",
    // normalization and softmax
    "_batch_norm_with_update", "_log_softmax", "_log_softmax_backward_data", "_masked_softmax",
    "_masked_softmax_backward", "_native_batch_norm_legit", "_softmax", "_softmax_backward_data",
    "_weight_norm_interface", "_weight_norm_interface_backward", "batch_norm_backward", "batch_norm_update_stats",
    "native_batch_norm", "native_batch_norm_backward", "native_group_norm", "native_group_norm_backward",
    "native_layer_norm", "native_layer_norm_backward",
    // embedding and indexing
    "_embedding_bag", "_embedding_bag_backward", "_embedding_bag_dense_backward", "_embedding_bag_forward_only",
    "_embedding_bag_per_sample_weights_backward", "_index_put_impl_", "bucketize", "embedding", "embedding_dense_backward", "embedding_renorm_", "gather",
    "index", "index_add", "index_copy", "index_fill", "index_put", "index_reduce", "index_select", "masked_fill",
    "masked_scatter", "masked_select", "nonzero", "nonzero_static", "put_", "scatter", "scatter_add",
    "scatter_reduce", "searchsorted", "take",
    // movement
    "_stack", "cat", "channel_shuffle", "constant_pad_nd", "flip", "narrow_copy", "native_channel_shuffle", "pixel_shuffle", "pixel_unshuffle",
    "reflection_pad1d", "reflection_pad1d_backward", "reflection_pad2d", "reflection_pad2d_backward",
    "reflection_pad3d", "reflection_pad3d_backward", "repeat_interleave", "replication_pad1d",
    "replication_pad1d_backward", "replication_pad2d", "replication_pad2d_backward", "replication_pad3d",
    "replication_pad3d_backward", "roll", "tril", "triu", "unfold_backward",
    // sort and top-k
    "_unique2", "kthvalue", "sort", "topk", "unique_dim", "unique_consecutive", "unique_dim_consecutive",
    // losses
    "binary_cross_entropy", "binary_cross_entropy_backward", "huber_loss", "huber_loss_backward", "mse_loss",
    "mse_loss_backward", "multi_margin_loss", "multi_margin_loss_backward", "multilabel_margin_loss_backward",
    "multilabel_margin_loss_forward", "nll_loss2d_backward", "nll_loss2d_forward", "nll_loss_backward",
    "nll_loss_forward", "smooth_l1_loss", "smooth_l1_loss_backward",
    // random numbers
    "_sample_dirichlet", "_standard_gamma", "_standard_gamma_grad", "bernoulli", "binomial", "cauchy_",
    "exponential_", "geometric_", "log_normal_", "multinomial", "native_dropout_backward", "normal", "normal_", "poisson", "random_", "randperm",
    "uniform_",
    // lists of tensors, and optimizers
    "_amp_foreach_non_finite_check_and_unscale_", "_amp_update_scale_", "_foreach_abs", "_foreach_add",
    "_foreach_addcdiv", "_foreach_addcmul", "_foreach_clamp_max", "_foreach_clamp_min", "_foreach_copy",
    "_foreach_div", "_foreach_exp", "_foreach_lerp", "_foreach_max", "_foreach_maximum", "_foreach_minimum",
    "_foreach_mul", "_foreach_neg", "_foreach_norm", "_foreach_pow", "_foreach_reciprocal", "_foreach_rsqrt",
    "_foreach_sign", "_foreach_sqrt", "_foreach_sub", "_foreach_zero", "_fused_adagrad", "_fused_adam",
    "_fused_adamw", "_fused_sgd",
};
// clang-format on

}  // namespace tt::device
