"""Rows for ops of training, and for ops that choose tokens, experts and keys."""

import torch
import torch.nn.functional as F
from kernel_rows.attention import hidden
from kernel_rows.row import Row, randn

ADAMW = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "beta1_pow": 0.9**3, "beta2_pow": 0.99**3, "epsilon": 1e-3,
         "weight_decay": 0.25}  # fmt: skip
MOMENTS = {"param": randn(4, 6), "grad": randn(6, 4).t().contiguous(), "exp_avg": randn(4, 6) / 3,
           "exp_avg_sq": randn(4, 6) ** 2}  # fmt: skip


def adamw(param, grad, first, second, largest=None):
    """The third step of PyTorch's optimizer."""
    parameter = torch.nn.Parameter(param.clone())
    parameter.grad = grad.clone()
    step = torch.optim.AdamW([parameter], 0.1, (0.9, 0.99), 1e-3, 0.25, amsgrad=largest is not None, foreach=False)
    state = {"step": torch.tensor(2.0), "exp_avg": first.clone(), "exp_avg_sq": second.clone()}
    state |= {} if largest is None else {"max_exp_avg_sq": largest.clone()}
    step.state[parameter] = state
    step.step()
    return [parameter.detach(), *[value for name, value in state.items() if name != "step"]]


def attention(q, k, v, mask):
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    scores = q @ k.mT / q.shape[3] ** 0.5 + mask
    return scores.softmax(3) @ v, scores.logsumexp(3, keepdim=True)


CAUSAL = hidden(torch.ones(5, 5, dtype=torch.bool).triu(1))
QKV = {"query": randn(2, 4, 5, 8), "key": randn(2, 2, 5, 8), "value": randn(2, 2, 5, 8) + 1}
LONGER = QKV | {"key": randn(2, 2, 7, 8), "value": randn(2, 2, 7, 8) + 1, "attention_mask": randn(2, 1, 5, 7)}


def attended(label, operands, mask_type, mask=None):
    fields = {"mask_type": mask_type, "dropout_probability": 0.0, "return_intermediates": True}
    return Row("SDPAForwardOp", operands, {"out": (2, 4, 5, 8), "intermediates": (2, 4, 5, 1)},
               lambda q, k, v, given=mask: attention(q, k, v, given), fields, label)  # fmt: skip


def differentiated(label, operands, mask_type, mask=None):
    q, k, v, given = *list(operands.values())[:3], operands.get("attention_mask", mask)
    above = randn(2, 4, 5, 8) * 2

    def expected(above, result, kept, q, k, v, *_):
        leaves = [x.clone().requires_grad_() for x in (q, k, v)]
        return torch.autograd.grad(attention(*leaves, given)[0], leaves, above)

    result, kept = attention(q, k, v, given)
    operands = {"grad_output": above, "attn_output": result, "intermediates": kept} | operands
    return Row("SDPABackwardOp", operands,
               {"grad_query": q.shape, "grad_key": k.shape, "grad_value": v.shape},
               expected, {"mask_type": mask_type, "dropout_probability": 0.0}, label)  # fmt: skip


def router(x, weight, bias):
    """The indices, and the weights of the three best experts."""
    scores, indices = (x @ weight + bias).topk(3)
    return indices, scores.softmax(1)


def indexed(query, key, weights):
    scores = (F.relu(query @ key.mT) * weights).sum(1, keepdim=True)
    return scores + hidden(torch.arange(9) > torch.arange(5)[:, None] + 3)


def sparse(label, a, sparsity, shape, expected, **flags):
    operands = {"a": a, "b": randn(1, 3, 8, 5), "sparsity": sparsity}
    flags = {"is_input_a_sparse": False, "is_input_b_sparse": False} | flags
    return Row("SparseMatmulOp", operands, {"out": shape}, expected, flags, label)


SPARSE = [
    sparse("b", randn(2, 4, 6, 8), randn(2, 4, 1, 3) * (randn(2, 4, 1, 3) > 0), (2, 4, 1, 3, 6, 5),
           lambda a, b, s: (a[:, :, None, None] @ b) * (s != 0)[..., None, None], is_input_b_sparse=True),
    sparse("a", randn(4, 3, 6, 8), torch.tensor([[0.0, 1, 0], [1, 1, 0], [0, 0, 0], [-2, 3, 4]])[None, None],
           (4, 3, 6, 5), lambda a, b, s: (a @ b) * (s[0, 0] != 0)[..., None, None], is_input_a_sparse=True),
    sparse("both, counted", randn(1, 3, 6, 8), torch.tensor([0.0, 1, 1]).reshape(1, 1, 1, 3), (1, 3, 6, 5),
           lambda a, b, s: (a @ b) * (s[0, 0, 0] != 0)[:, None, None],
           is_input_a_sparse=True, is_input_b_sparse=True, nnz=2),
]  # fmt: skip

ROWS = [
    Row("AdamWOp", MOMENTS, {}, adamw, ADAMW, in_place=("param", "exp_avg", "exp_avg_sq")),
    Row("AdamWOp", MOMENTS | {"max_exp_avg_sq": randn(4, 6) ** 2}, {}, adamw, ADAMW, "with the largest",
        in_place=("param", "exp_avg", "exp_avg_sq", "max_exp_avg_sq")),
    attended("all keys", QKV, 0, 0.0), attended("causal", QKV, 1, CAUSAL), attended("mask", LONGER, 2),
    differentiated("all keys", QKV, 0, 0.0), differentiated("causal", QKV, 1, CAUSAL),
    differentiated("mask", LONGER, 2),
    *SPARSE,
    Row("TopKRouterGptOp", {"input": randn(5, 16), "weight": randn(16, 9), "bias": randn(5, 9)},
        {"expert_indices": ((5, 3), "UInt16"), "expert_weights": (5, 3)}, router, {"k": 3, "num_experts": 9}),
    Row("IndexerScoreDsaOp",
        {"query": randn(1, 4, 5, 16), "key": randn(1, 1, 9, 16), "weights": randn(1, 4, 5, 1)},
        {"out": (1, 1, 5, 9)}, indexed, {"chunk_start_idx": 3, "cluster_axis": 0}),
]  # fmt: skip
# Ops that only the default schema has.
OF_DEFAULT = [
    Row("DitRMSNormUnaryFusedOp",
        {"input": randn(3, 8), "weight": randn(8), "bias": randn(8) * 2, "residual_input": randn(3, 8) + 1},
        {"out": (3, 8)}, lambda x, w, b, r: F.silu(F.rms_norm(x + r, (8,), w, 0.1) + b),
        {"epsilon": 0.1, "activation": "silu"}),
    Row("DitRMSNormUnaryFusedOp", {"input": randn(3, 8)}, {"out": (3, 8)}, lambda x: F.rms_norm(x, (8,), None, 0.1),
        {"epsilon": 0.1}, "alone"),
]  # fmt: skip
