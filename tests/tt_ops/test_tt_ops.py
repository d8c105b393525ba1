"""torch.ops.tt: each op in eager PyTorch, and compiled, is compared with loops in plain PyTorch (tt_op_rows.py)."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from tt_op_rows import OPS, Draw, TTOp

import tt_torch
from tt_torch.driver.partition import HostFallbackWarning
from tt_torch.errors import OpArgumentError

tt = torch.ops.tt
f32, bf16 = torch.float32, torch.bfloat16
TOLERANCE = {f32: {"rtol": 1e-4, "atol": 1e-5}, bf16: {"rtol": 2e-2, "atol": 2e-2}}


def drawn(op: TTOp, seed: int, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(seed)
    return op.draw(Draw(seed, dtype))


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_eager(op: TTOp) -> None:
    for seed in range(6):
        for dtype in (f32, bf16):
            given = drawn(op, seed, dtype)
            before = [x.clone() for x in given]
            torch.testing.assert_close(op.call(*given), op.plain(*given), **TOLERANCE[dtype])
            assert all(map(torch.equal, given, before))


@pytest.mark.parametrize(
    ("op", "dtype"),
    [pytest.param(op, f32, id=op.name) for op in OPS]
    + [pytest.param(op, bf16, id=f"{op.name} in bf16") for op in OPS if " " not in op.name],
)
def test_compiled(op: TTOp, dtype: torch.dtype) -> None:
    seed = sum(map(ord, op.name))  # each op has its own seed
    given = drawn(op, seed, dtype)
    run = torch.compile(op.call, backend=tt_torch.backend, fullgraph=True, options={"fallback": "error"})
    torch.testing.assert_close(run(*given), op.plain(*given), **TOLERANCE[dtype])
    again = drawn(op, seed + 6, dtype)  # other values, and mostly the same sizes
    torch.testing.assert_close(run(*again), op.plain(*again), **TOLERANCE[dtype])


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_fake_form_and_tracing(op: TTOp) -> None:
    torch.manual_seed(0)
    for name, target in calls_of(op):
        torch.library.opcheck(target, *name)


def calls_of(op: TTOp) -> list[tuple[tuple[tuple, dict], object]]:
    """The arguments and the op of each call of torch.ops.tt that a row makes."""
    seen = []

    class Listener(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            if function.namespace == "tt":
                seen.append(((args, kwargs or {}), function))
            return function(*args, **(kwargs or {}))

    given = drawn(op, 5, f32)
    with Listener():
        op.call(*given)
    assert len(seen) == 1
    return seen


def test_other_backends_and_devices() -> None:
    for op, backend in ((OPS[3], "inductor"), (OPS[12], "aot_eager")):
        given = drawn(op, 4, f32)
        expected = op.plain(*given)
        torch.testing.assert_close(torch.compile(op.call, backend=backend)(*given), expected)
        on_device = op.call(*[x.to("tt") for x in given])
        assert on_device.device.type == "tt"
        torch.testing.assert_close(on_device.cpu(), expected)


def test_the_program_of_stablehlo_has_the_call_of_tt_mlir(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = tt_torch.CompilerConfig(save_mlir=["STABLEHLO"])
    given = drawn(OPS[12], 2, f32)
    tt_torch.compile_model(OPS[12].call, given, config=config)
    (text,) = [p.read_text() for p in tmp_path.rglob("*stablehlo*.mlir")]
    assert "stablehlo.custom_call @tt.paged_scaled_dot_product_attention_decode" in text
    assert 'has_attention_mask = "False"' in text and 'has_cur_pos_tensor = "True"' in text
    assert 'is_causal = "True"' in text


def test_an_op_that_is_named_first_is_the_op_that_is_compiled() -> None:
    code = """if True:
        import torch
        op = torch.ops.tt.paged_fill_cache
        from tt_torch.tt_ops import CALLS
        assert torch.ops.tt.paged_fill_cache is op and op.default in CALLS, CALLS
        assert not hasattr(torch.ops.tt, "no_such_op")"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_there_is_no_gradient() -> None:
    cache = torch.zeros(1, 2, 8, 4, requires_grad=True)
    with pytest.raises(RuntimeError, match="autograd"):
        tt.fill_cache(cache, torch.ones(1, 2, 3, 4)).sum().backward()


def x(*size: int, dtype: torch.dtype = f32) -> torch.Tensor:
    return torch.zeros(size, dtype=dtype)


def i(*size: int) -> torch.Tensor:
    return torch.zeros(size, dtype=torch.int32)


CACHE, PAGES, ONE, EXPERTS = x(3, 2, 8, 4), x(5, 2, 4, 8), x(1, 3, 4, 8), x(1, 6, 4, 5)
REFUSED = {
    "no offset": (lambda: tt.fill_cache(CACHE, x(1, 2, 3, 4)), "batch_offset, unless"),
    "users": (lambda: tt.fill_cache(CACHE, x(2, 2, 3, 4), 2), "users from batch_offset on"),
    "negative offset": (lambda: tt.update_cache(CACHE, x(1, 2, 1, 4), i(1), -1), "users from batch_offset on"),
    "too long": (lambda: tt.fill_cache(CACHE, x(3, 2, 9, 4)), "no more positions"),
    "heads": (lambda: tt.fill_cache(CACHE, x(3, 1, 8, 4)), "the heads and depth"),
    "dtype": (lambda: tt.fill_cache(CACHE, x(3, 2, 8, 4, dtype=bf16)), "the dtype of the cache"),
    "rank": (lambda: tt.fill_cache(x(2, 8, 4), x(2, 8, 4)), "four dimensions"),
    "two positions": (lambda: tt.update_cache(CACHE, x(3, 2, 1, 4), i(2)), "one position"),
    "rows": (lambda: tt.update_cache(CACHE, x(3, 2, 2, 4), i(1)), "fill_value of shape"),
    "float position": (lambda: tt.update_cache(CACHE, x(3, 2, 1, 4), x(1)), "int32 or int64"),
    "shared": (lambda: tt.paged_update_cache(PAGES, ONE, i(3), i(3, 2), True), "share_cache=False"),
    "few heads": (lambda: tt.paged_update_cache(PAGES, ONE[:, :, :1], i(3), i(3, 2)), "at least the heads"),
    "table": (lambda: tt.paged_update_cache(PAGES, ONE, i(3), i(2, 2)), "one row of the page table per user"),
    "page": (lambda: tt.paged_update_cache(PAGES, ONE, i(3), i(3, 2) - 1), "pages from 0 to 4"),
    "large page": (lambda: tt.paged_fill_cache(PAGES, x(1, 2, 5, 8), i(3, 2) + 5), "pages from 0 to 4"),
    "few pages": (lambda: tt.paged_fill_cache(PAGES, x(1, 2, 9, 8), i(3, 2)), "no more positions than"),
    "two users": (lambda: tt.paged_fill_cache(PAGES, x(1, 2, 8, 8), i(3, 2), i(2)), "batch_idx of one element"),
    "causal mask": (
        lambda: tt.scaled_dot_product_attention(CACHE, CACHE, CACHE, x(3, 1, 8, 8)), "attn_mask and is_causal"),
    "more keys": (lambda: tt.scaled_dot_product_attention(CACHE, x(3, 2, 9, 4), x(3, 2, 9, 4)), "as many keys"),
    "window": (
        lambda: tt.scaled_dot_product_attention(CACHE, CACHE, CACHE, is_causal=False, sliding_window_size=2),
        "with is_causal only"),
    "three heads": (
        lambda: tt.scaled_dot_product_attention(x(3, 3, 8, 4), CACHE, CACHE), "heads that share"),
    "no positions": (
        lambda: tt.paged_scaled_dot_product_attention_decode(ONE, PAGES, PAGES, i(3, 2), True), "without cur_pos"),
    "boolean mask": (
        lambda: tt.paged_scaled_dot_product_attention_decode(
            ONE, PAGES, PAGES, i(3, 2), attn_mask=x(3, 1, 4, 8, dtype=torch.bool)), "attn_mask of dtype"),
    "deep values": (lambda: tt.flash_mla_prefill(CACHE, CACHE, 5), "head_dim_v up to"),
    "dense": (lambda: tt.sparse_matmul(CACHE, EXPERTS, x(3, 2, 1, 6), None, False, False), "is_input_a_sparse or"),
    "two matrices": (lambda: tt.sparse_matmul(CACHE, x(2, 6, 4, 5), x(3, 2, 1, 6)), r"b \(1, E, K, N\)"),
    "inner size": (lambda: tt.sparse_matmul(x(3, 2, 8, 5), EXPERTS, x(3, 2, 1, 6)), "one size K"),
    "dtypes": (lambda: tt.sparse_matmul(CACHE, EXPERTS.to(bf16), x(3, 2, 1, 6)), "one floating-point dtype"),
    "sparsity": (lambda: tt.sparse_matmul(CACHE, EXPERTS, x(3, 2, 6, 1)), r"sparsity \(A, B, 1, E\)"),
    "sparsity of blocks": (lambda: tt.sparse_matmul(CACHE, EXPERTS, x(1, 1, 3, 6), None, True), "sparsity"),
    "both sparse": (lambda: tt.sparse_matmul(x(3, 6, 8, 4), EXPERTS, x(1, 1, 3, 6), None, True), "if both operands"),
    "count": (lambda: tt.sparse_matmul(CACHE, EXPERTS, x(3, 2, 1, 6), 1), "0, or None"),
    "candidates": (lambda: tt.sampling(x(2, 9), i(2, 8), i(2), x(2), x(2)), "one shape"),
    "one k": (lambda: tt.sampling(x(2, 9), i(2, 9), i(1), x(2), x(2)), r"of shape \(users,\)"),
    "float indices": (lambda: tt.sampling(x(2, 9), x(2, 9), i(2), x(2), x(2)), "integers for the indices"),
    "seed": (lambda: tt.sampling(x(2, 9), i(2, 9), i(2), x(2), x(2), -1), "32 bits"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused_arguments(case: str) -> None:
    call, accepted = REFUSED[case]
    with pytest.raises(OpArgumentError, match=accepted) as caught:
        call()
    assert caught.value.op.startswith("torch.ops.tt.") and "test_tt_ops.py:" in caught.value.location


def test_refused_while_compiling() -> None:
    run = torch.compile(lambda c, x: tt.fill_cache(c, x), backend=tt_torch.backend, fullgraph=True)
    with pytest.raises(Exception, match="no more positions"):
        run(CACHE, x(3, 2, 9, 4))


def test_products_that_are_not_wanted_may_be_infinite() -> None:
    a, b = torch.tensor([1.0, torch.inf]).reshape(1, 2, 1, 1).expand(1, 2, 1, 3), torch.ones(1, 2, 3, 3)
    wanted = torch.tensor([[1.0, 0.0], [0.0, 0.0]]).reshape(1, 2, 1, 2)
    run = torch.compile(tt.sparse_matmul, backend=tt_torch.backend, fullgraph=True, options={"fallback": "error"})
    for call in (tt.sparse_matmul, run):
        assert torch.equal(call(a, b, wanted).sum((3, 4, 5)).flatten(), torch.tensor([9.0, 0.0]))


def test_tokens_are_drawn_by_their_probabilities() -> None:
    """With a seed, the compiled program gives the tokens of eager PyTorch."""
    values = torch.log(torch.tensor([0.1, 0.4, 0.2, 0.3])).expand(4000, 4)
    most, share, scale = torch.full((4000,), 3), torch.full((4000,), 0.8), torch.ones(4000)
    numbers = torch.arange(100, 104).expand(4000, 4)
    expected = torch.tensor([0, 4 / 9, 2 / 9, 3 / 9])
    run = torch.compile(tt.sampling, backend=tt_torch.backend, fullgraph=True, options={"fallback": "error"})
    for call in (tt.sampling, run):
        found = torch.bincount(call(values, numbers, most, share, scale) - 100, minlength=4) / 4000
        assert found[0] == 0 and ((found - expected).abs() < 0.04).all()
    seeded = torch.compile(lambda *given: tt.sampling(*given, seed=3), backend=tt_torch.backend)
    with pytest.warns(HostFallbackWarning, match="tt.sampling"):
        assert torch.equal(
            seeded(values, numbers, most, share, scale), tt.sampling(values, numbers, most, share, scale, 3)
        )
