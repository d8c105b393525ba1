"""Ops that choose: products with the chosen experts of a mixture, and the next token of each user."""

from __future__ import annotations

import torch

from tt_torch.tt_ops.registry import Arguments, Attributes, op, require, sizes

Tensor = torch.Tensor


def _check_sparse(
    input_tensor_a: Tensor,
    input_tensor_b: Tensor,
    sparsity: Tensor,
    nnz: int | None,
    is_input_a_sparse: bool,
    is_input_b_sparse: bool,
) -> list[int]:
    name, a, b = "sparse_matmul", input_tensor_a, input_tensor_b
    got = sizes(input_tensor_a=a, input_tensor_b=b, sparsity=sparsity)
    require(is_input_a_sparse or is_input_b_sparse, name, "no sparse operand", "is_input_a_sparse or is_input_b_sparse")
    require(a.dim() == b.dim() == sparsity.dim() == 4 and b.shape[0] == 1, name, got, "a (A, B, M, K), b (1, E, K, N)")
    experts = b.shape[1]
    require(a.shape[3] == b.shape[2], name, got, "one size K of both operands")
    require(a.dtype == b.dtype and a.is_floating_point(), name, f"{a.dtype} and {b.dtype}", "one floating-point dtype")
    if is_input_a_sparse:
        fits = a.shape[1] == experts and list(sparsity.shape) == [1, 1, a.shape[0], experts]
        require(fits, name, got, "a (A, E, M, K) and sparsity (1, 1, A, E)")
        require(not is_input_b_sparse or a.shape[0] == 1, name, got, "a (1, E, M, K) if both operands are sparse")
        return [*a.shape[:3], b.shape[3]]
    require(list(sparsity.shape) == [*a.shape[:2], 1, experts], name, got, "sparsity (A, B, 1, E)")
    return [*a.shape[:2], 1, experts, a.shape[2], b.shape[3]]


def _flags(a: Arguments) -> Attributes:
    names = ("nnz", "is_input_a_sparse", "is_input_b_sparse")
    return {name: str(a[name]) for name in names if a[name] is not None}


@op(_check_sparse, _flags)
def sparse_matmul(
    input_tensor_a: Tensor,
    input_tensor_b: Tensor,
    sparsity: Tensor,
    nnz: int | None = None,
    is_input_a_sparse: bool = False,
    is_input_b_sparse: bool = True,
) -> Tensor:
    """The products of blocks whose entry in `sparsity` is not zero. The other blocks of the result are zero.

    `nnz` is the number of entries that are not zero. Eager PyTorch raises OpArgumentError for another number.
    """
    wanted = sparsity.reshape(-1).nonzero()[:, 0]
    require(nnz in (None, len(wanted)), "sparse_matmul", f"nnz={nnz}", f"{len(wanted)}, or None: it is counted then")
    experts, rows, columns = input_tensor_b.shape[1], input_tensor_a.shape[2], input_tensor_b.shape[3]
    of_a = wanted if is_input_a_sparse else wanted // experts
    products = input_tensor_a.flatten(0, 1)[of_a] @ input_tensor_b[0][wanted % experts]
    result = products.new_zeros(sparsity.numel(), rows, columns).index_copy(0, wanted, products)
    size = input_tensor_a.shape[:2] if is_input_a_sparse else (*input_tensor_a.shape[:2], 1, experts)
    return result.reshape(*size, rows, columns)


def _check_sampling(
    input_values: Tensor, input_indices: Tensor, k: Tensor, p: Tensor, temp: Tensor, seed: int
) -> list[int]:
    name, got = "sampling", sizes(input_values=input_values, input_indices=input_indices, k=k, p=p, temp=temp)
    fits = input_values.dim() == 2 and input_values.shape == input_indices.shape and input_values.shape[1] > 0
    require(fits, name, got, "values and indices of one shape (users, candidates)")
    users = input_values.shape[:1]
    require(all(x.shape == users for x in (k, p, temp)), name, got, "k, p and temp of shape (users,)")
    floats = all(x.is_floating_point() for x in (input_values, p, temp))
    integers = not any(x.is_floating_point() or x.is_complex() for x in (input_indices, k))
    dtypes = f"dtypes {[x.dtype for x in (input_values, input_indices, k, p, temp)]}"
    require(floats and integers, name, dtypes, "floats for the values, p and temp, and integers for the indices and k")
    require(0 <= seed < 2**32, name, f"seed={seed}", "an unsigned integer of 32 bits")
    return list(users)


@op(_check_sampling, lambda a: {"seed": str(a["seed"])}, dtype=torch.int32)
def sampling(input_values: Tensor, input_indices: Tensor, k: Tensor, p: Tensor, temp: Tensor, seed: int = 0) -> Tensor:
    """One of the candidates of each user, whose logits are `input_values`: an element of `input_indices`, as int32.

    `temp` is 1 / temperature. With a seed other than 0, a user gets the same token each time.
    """
    generator = torch.Generator(input_values.device).manual_seed(seed) if seed else None
    chances, order = _weighed(input_values, k, p, temp)
    chosen = order.gather(1, torch.multinomial(chances, 1, generator=generator))
    return input_indices.gather(1, chosen)[:, 0].to(torch.int32)


def _weighed(values: Tensor, k: Tensor, p: Tensor, temp: Tensor) -> tuple[Tensor, Tensor]:
    """The weights of the candidates in descending order, and the places of these candidates.

    A candidate counts if it is one of the k most likely ones, and if the more likely ones have together at most the
    probability p. The most likely candidate always counts.
    """
    logits = values.float() * temp.float().unsqueeze(1)
    chances, order = torch.softmax(logits, 1).sort(dim=1, descending=True, stable=True)
    before = chances.cumsum(1) - chances
    places = torch.arange(values.shape[1], device=values.device)
    counts = (places < k.unsqueeze(1)) & (before <= p.float().unsqueeze(1)) | (places == 0)
    return torch.where(counts, chances, 0.0), order
