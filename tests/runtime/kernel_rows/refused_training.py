"""Programs of training, experts and sampling, which kernels refuse. refusals.py says how they are written."""

from kernel_rows.fields import ints, x, y

MASKS = "mask_type 2 and an attention mask belong together"
DIMENSIONS = "query and key must have four dimensions, and key and value one shape"
HEADS = "query and key must agree in batch and depth, and share heads"
BROADCAST = "the attention mask cannot be broadcast to the scores"
MOMENT = "an operand has another shape than param"
ROUTED = "input, weight and bias must be B x hidden, hidden x experts and B x experts"
CHOSEN = "k must be from 1 to the number of experts"
SCORED = "the query must be 1 x H x S x D, and the key 1 x 1 x T x D"
BLOCKS = "the operands must be A x B x M x K and 1 x E x K x N"
USERS = "the values must be 1 x 1 x users x candidates"
ATTENTION = [
    ("mask_type must be 0, 1 or 2", {"mask_type": 3}),
    (MASKS, {"mask_type": 2}), (MASKS, {"attention_mask": x(2, 1, 5, 5)}),
    ("dropout in attention has no kernel", {"dropout_probability": 0.1}),
    (DIMENSIONS, {"query": x(8, 5, 8)}), (DIMENSIONS, {"value": x(2, 2, 5, 9)}),
    *((HEADS, {"key": x(*shape), "value": x(*shape)}) for shape in [(1, 2, 5, 8), (2, 3, 5, 8), (2, 0, 5, 8)]),
    ("a causal mask needs as many keys as queries",
     {"mask_type": 1, "key": x(2, 2, 7, 8), "value": x(2, 2, 7, 8)}),
    ("the attention mask must have four dimensions", {"mask_type": 2, "attention_mask": x(5, 5)}),
    *((BROADCAST, {"mask_type": 2, "attention_mask": x(*shape)}) for shape in [(3, 1, 5, 5), (2, 1, 5, 4)]),
]  # fmt: skip
TRAINING = {
    "SDPAForwardOp": [
        *ATTENTION,
        ("return_intermediates and the result intermediates belong together", {"return_intermediates": False}),
        ("the result intermediates must be B x H x S x 1", {"intermediates": y(2, 4, 5, 2)}),
    ],
    "SDPABackwardOp": [
        *ATTENTION,
        ("grad_output and attn_output must have the shape of the query", {"grad_output": x(2, 4, 5, 9)}),
        ("the operand intermediates must be B x H x S x 1", {"intermediates": x(2, 4, 5)}),
    ],
    "AdamWOp": [
        *((MOMENT, {name: x(4, 5)}) for name in ("grad", "exp_avg", "exp_avg_sq", "max_exp_avg_sq")),
        ("stochastic_rounding has no kernel", {"stochastic_rounding": True}),
        ("beta1_pow and beta2_pow must be less than 1", {"beta2_pow": 1.0}),
    ],
    "SparseMatmulOp": [
        ("one of the operands must be sparse", {"is_input_a_sparse": False, "is_input_b_sparse": False}),
        *((BLOCKS, wrong) for wrong in ({"a": x(3, 6, 8)}, {"b": x(2, 3, 8, 5)}, {"b": x(1, 3, 7, 5)})),
        ("a sparse a must have the blocks of b", {"is_input_a_sparse": True}),
        ("the sparsity must have one entry per product", {"sparsity": x(1, 1, 1, 3)}),
        ("the result has another number of elements than the products", {"out": y(2, 4, 1, 3, 6, 4)}),
    ],
    "TopKRouterGptOp": [
        *((ROUTED, wrong) for wrong in ({"input": x(1, 5, 16)}, {"weight": x(16, 8)}, {"bias": x(9)})),
        (CHOSEN, {"k": 0}), (CHOSEN, {"k": 10}),
    ],
    "IndexerScoreDsaOp": [
        *((SCORED, wrong) for wrong in ({"query": x(2, 4, 5, 16)}, {"key": x(1, 2, 9, 16)}, {"key": x(1, 1, 9, 8)})),
        ("the weights must be 1 x H x S x 1", {"weights": x(1, 4, 5)}),
        ("cluster_axis must be 0 or 1", {"cluster_axis": 2}),
    ],
    "SamplingOp": [
        *((USERS, {"input_values": x(*shape)}) for shape in [(4, 64), (1, 2, 4, 64), (1, 1, 4, 0)]),
        ("values and indices differ in shape", {"input_indices": ints(1, 1, 4, 32)}),
        *(("k, p and temp must have one element per user", {name: x(3)}) for name in ("k", "p", "temp")),
    ],
    "DitRMSNormUnaryFusedOp": [
        ("residual_input has another shape than the input", {"residual_input": x(8)}),
    ],
}  # fmt: skip
SAMPLING = {"input_values": x(1, 1, 4, 64), "input_indices": ints(1, 1, 4, 64), "k": ints(4), "p": x(4), "temp": x(4),
            "out": y(1, 1, 1, 4, dtype="UInt32")}  # fmt: skip
