"""The ops of torch.ops.tt agree with their compositions of PyTorch's ops, and pass PyTorch's checks of custom ops."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import tt_torch
from tt_torch.runtime.block_float import round_to_blocks

ACTIVATIONS = {"": lambda x: x, "relu": F.relu, "gelu": F.gelu, "silu": F.silu, "sigmoid": F.sigmoid, "tanh": F.tanh}


def on_tt(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, dtype=dtype).tt().requires_grad_()


SAMPLES = {
    "tilize": [(on_tt(2, 40, 70),), (on_tt(32, 32),)],
    "untilize": [(on_tt(2, 2, 3, 32, 32), 40, 70)],
    "typecast": [(on_tt(3, 4), torch.bfloat16), (on_tt(3, 4), torch.float32)],
    "to_bfp8": [(on_tt(4, 33),), (on_tt(5, dtype=torch.bfloat16),), (on_tt(0, 3),)],
    "linear_activation": [(on_tt(2, 3, 4), on_tt(5, 4), on_tt(5), name) for name in ACTIVATIONS]
    + [(on_tt(3, 4), on_tt(5, 4))],
}


CHECKS = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")


@pytest.mark.parametrize("name", SAMPLES)
def test_opcheck(name: str) -> None:
    op = getattr(torch.ops.tt, name).default
    for sample in SAMPLES[name]:
        torch.library.opcheck(op, sample, test_utils=CHECKS)
    # PyTorch's fourth check asks whether gradients are registered. It knows the devices CPU, CUDA and XPU only, so it
    # gets inputs on the CPU.
    on_host = [value.cpu().detach().requires_grad_() if isinstance(value, torch.Tensor) else value for value in sample]
    torch.library.opcheck(op, on_host, test_utils="test_autograd_registration")


def test_tiles() -> None:
    x = torch.arange(40.0 * 70).view(40, 70)
    tiles = torch.ops.tt.tilize(x.tt())
    assert tiles.shape == (2, 3, 32, 32)
    assert torch.equal(tiles[1, 2, :8, :6].cpu(), x[32:, 64:])
    assert tiles[1, 2, 8:].abs().sum().item() == tiles[:, 2, :, 6:].abs().sum().item() == 0
    assert torch.equal(torch.ops.tt.untilize(tiles, 40, 70).cpu(), x)
    with pytest.raises(ValueError, match="fewer than 65 rows or 3 columns"):
        torch.ops.tt.untilize(tiles, 65, 3)


def test_bfp8_rounds_as_compiled_programs_do() -> None:
    x = torch.randn(6, 48) * torch.logspace(-3, 3, 48)
    expected = torch.from_numpy(round_to_blocks(x.numpy(), "bfp8_b"))
    assert torch.equal(torch.ops.tt.to_bfp8(x.tt()).cpu(), expected)
    with pytest.raises(TypeError, match="to_bfp8 needs floats"):
        torch.ops.tt.to_bfp8(torch.arange(3).tt())


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_fused_linear(activation: str) -> None:
    def run(device: str, op) -> list[torch.Tensor]:
        inputs = [value.detach().to(device).requires_grad_() for value in (x, w, b)]
        result = op(*inputs)
        return [value.cpu() for value in (result, *torch.autograd.grad(result.square().sum(), inputs))]

    x, w, b = torch.randn(2, 3, 4), torch.randn(5, 4), torch.randn(5)
    ours = run("tt", lambda *inputs: torch.ops.tt.linear_activation(*inputs, activation))
    theirs = run("cpu", lambda *inputs: ACTIVATIONS[activation](F.linear(*inputs)))
    torch.testing.assert_close(ours, theirs)


def test_fused_linear_compiled() -> None:
    x, w, b = torch.randn(2, 3, 4), torch.randn(5, 4), torch.randn(5)
    options = {"compiler_config": tt_torch.CompilerConfig(fallback="error")}
    run = torch.compile(torch.ops.tt.linear_activation, backend="tt", options=options)
    torch.testing.assert_close(
        run(x.tt(), w.tt(), b.tt(), "gelu").cpu(), F.gelu(F.linear(x, w, b)), rtol=1e-4, atol=1e-4
    )


def test_unknown_activation() -> None:
    with pytest.raises(RuntimeError, match="the fused activation wiggle has no kernel"):
        torch.ops.tt.linear_activation(on_tt(2, 2), on_tt(2, 2), None, "wiggle")
