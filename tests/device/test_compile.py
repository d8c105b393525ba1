"""Compiled programs and tensors of device tt: tensors stay there, and programs and eager ops see the same values."""

from __future__ import annotations

import copy
import os

import pytest
import torch
from forked import Server
from torch import nn

import tt_torch
from tt_torch import runtime
from tt_torch.config import CompilerConfig
from tt_torch.wire.calls import op_histogram
from tt_torch.wire.decode import decode

STRICT = {"compiler_config": CompilerConfig(fallback="error")}


def compiled(program):
    return torch.compile(program, backend="tt", fullgraph=True, dynamic=False, options=STRICT)


def live() -> list[tuple[str, int]]:
    return runtime.default_device().memory_stats()["dram"]["live"]


def test_results_are_on_the_device():
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    x = torch.randn(3, 8)
    with torch.no_grad():
        result = compiled(copy.deepcopy(model).tt())(x.tt())
        assert result.is_tt
        torch.testing.assert_close(result.cpu(), model(x))


def test_parameters_stay_where_they_are():
    weight, x = torch.randn(512, 512, device="tt"), torch.randn(2, 512, device="tt")
    model = nn.Linear(512, 512, bias=False).tt()
    model.weight.data.copy_(weight)
    run = compiled(model)
    with torch.no_grad():
        run(x)
        large = [name for name, size in live() if size >= weight.nbytes]
    # The program reads the weight itself, without a resident copy. Const-eval's results are other tensors.
    assert large and not any(name.startswith("resident tensor") for name in large)


def test_parameters_of_another_type_are_converted_once():
    model, x = nn.Linear(512, 512, bias=False).tt(), torch.randn(2, 512, device="tt")
    config = CompilerConfig(dtype="bf16")
    run = torch.compile(model, backend="tt", options={"compiler_config": config})
    with torch.no_grad():
        run(x)
        run(x)
    assert sum("512x512 BFloat16" in name for name, _ in live()) == 1


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("device", ["tt", "cpu"])
def test_eager_and_compiled_steps_share_their_state(device, fused):
    reference = nn.Sequential(nn.Linear(8, 8, bias=False), nn.BatchNorm1d(8), nn.Linear(8, 4))
    model = copy.deepcopy(reference).to(device)
    run = torch.compile(model, backend="tt")
    optimizers = [torch.optim.Adam(m.parameters(), lr=0.05, fused=fused) for m in (reference, model)]
    for step in range(4):
        x, losses = torch.randn(6, 8), []
        for forward, data, optimizer in ((reference, x, optimizers[0]),
                                         (model if step % 2 else run, x.to(device), optimizers[1])):  # fmt: skip
            loss = forward(data).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    torch.testing.assert_close(model[1].running_mean.cpu(), reference[1].running_mean, rtol=1e-4, atol=1e-5)


def test_programs_that_move_tensors():
    to_device = compiled(lambda x, w: x.to("tt") @ w)(torch.ones(2, 2), torch.ones(2, 2, device="tt"))
    assert to_device.is_tt and to_device.sum().item() == 8
    to_host = compiled(lambda x: (x * 2).cpu() + 1)(torch.ones(2, device="tt"))
    assert to_host.device.type == "cpu" and to_host.tolist() == [3, 3]


def test_inputs_of_the_cpu_are_copied():
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(12, 4))
    on_tt = copy.deepcopy(model).tt()
    x = torch.randn(2, 2, 4, 4)
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    result, expected = compiled(on_tt)(ours), model(theirs)
    assert result.is_tt
    (result.cpu() - 1).square().sum().backward()
    (expected - 1).square().sum().backward()
    torch.testing.assert_close(result.cpu(), expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(on_tt[0].weight.grad.cpu(), model[0].weight.grad, rtol=1e-4, atol=1e-4)


def test_ops_that_take_tensors_of_two_devices_in_eager_take_them_compiled():
    host, on_tt = torch.arange(3.0), torch.ones(3, device="tt")
    results = compiled(lambda x, y: (x.to(y), y.to(x), y.type_as(x), x[y.long()], y.copy_(x)))(on_tt, host)
    assert [value.device.type for value in results] == ["cpu", "tt", "tt", "tt", "cpu"]


def test_mixed_calls_that_are_refused():
    host, on_tt = torch.zeros(3), torch.ones(3, device="tt")
    for program in (lambda x, y: x.add_(y), lambda x, y: torch.add(x, y, out=x), lambda x, y: torch.add(y, y, out=x)):
        with pytest.raises(RuntimeError, match="same device"):
            compiled(program)(host, on_tt)
    assert host.tolist() == [0, 0, 0]


def test_tensors_that_decompositions_and_passes_create_are_on_the_device():
    def program(x):
        frequencies = torch.fft.fft(x).abs()
        small = nn.functional.avg_pool3d(x[None], 2).sum() + nn.functional.interpolate(x, 3, mode="bilinear").sum()
        return frequencies, x.mode(0).values, nn.functional.batch_norm(x, x.mean((0, 2, 3)), x.var((0, 2, 3))), small

    x = torch.randn(2, 3, 4, 4)
    torch.testing.assert_close([v.cpu() for v in compiled(program)(x.tt())], list(program(x)), rtol=1e-4, atol=1e-4)


def draws(x):
    return (
        torch.rand(3, device=x.device), torch.randn(3, device=x.device), torch.randint(9, (3,), device=x.device),
        torch.randperm(9, device=x.device), torch.normal(0.0, 1.0, (3,), device=x.device), torch.rand_like(x),
        nn.functional.dropout(x, 0.5), torch.rand(3), torch.rand_like(x, device="cpu"),
    )  # fmt: skip


def test_random_tensors_are_where_eager_has_them_and_drawn_from_generators_there():
    run, x = compiled(draws), torch.ones(9, device="tt")
    places = [value.device for value in draws(x)]
    on_tt = [place.type == "tt" for place in places]
    assert on_tt == [True] * 7 + [False] * 2
    outside = torch.get_rng_state()
    torch.tt.manual_seed(3)
    first = run(x)
    assert [value.device for value in first] == places
    assert not torch.equal(torch.get_rng_state(), outside)  # the last two are drawn from the CPU's generator
    torch.tt.manual_seed(3)
    assert [torch.equal(a, b) for a, b in zip(first, run(x), strict=True)] == on_tt
    torch.tt.manual_seed(3)
    torch.set_rng_state(outside)
    assert all(map(torch.equal, first, run(x)))


def test_compilation_keeps_the_users_default_device():
    def program(x):
        return (
            torch.rand_like(x),
            nn.functional.interpolate(x[None, None], 5),
            torch.rand(3),
            torch.rand(3, device="cpu"),
        )

    x = torch.ones(3)
    with torch.device("tt"):
        assert [value.device.type for value in compiled(program)(x)] == ["cpu", "cpu", "tt", "cpu"]


CHIPS = """
import torch, tt_torch
from tt_torch import runtime
model = torch.nn.Linear(512, 512).to("tt:1")
run = torch.compile(model, backend="tt")
x = torch.randn(2, 512, device="tt:1")
with torch.no_grad():
    y = run(x)
assert y.device == x.device and torch.allclose(y.cpu(), model(x).cpu(), atol=1e-4)
first, second = (runtime.default_device(chip=i).memory_stats()["dram"]["peak"] for i in (0, 1))
assert first < model.weight.nbytes <= second, (first, second)
here = runtime.default_device()
for program, options in ((lambda x: x.to("tt:0") * 2, {}), (lambda x: x * 2, {"devices": [here]})):
    try:
        torch.compile(program, backend="tt", fullgraph=True, options=options)(x)
    except Exception as error:
        print(error.inner_exception)
on_second = torch.compile(lambda x: x * 2, backend="tt", options={"devices": [runtime.Device(device_ids=(1,))]})
print(on_second(torch.ones(1)).item())
"""


def test_programs_run_on_the_chip_of_their_tensors(forks: Server):
    done = forks.run("-c", CHIPS, env={**os.environ, "TT_TORCH_DEVICE_COUNT": "2"})
    assert done.returncode == 0, done.stderr
    two, other, from_host = done.stdout.splitlines()
    assert two == "a program runs on one chip, but this one has tensors on tt:0 and tt:1; move them to one device"
    assert other == "the program's tensors are on tt:1, but `devices` has only the chips (0,)"
    assert from_host == "2.0"  # tensors of the host go to any chip


def test_views_and_updates():
    x = torch.arange(6.0, device="tt").view(2, 3)
    assert compiled(lambda x: x + 1)(x.t()).cpu().tolist() == [[1, 4], [2, 5], [3, 6]]
    compiled(lambda x: x.mul_(2))(x)
    assert x.sum().item() == 30
    assert compiled(lambda x: x + torch.arange(3, device=x.device))(x).is_tt


def test_attention():
    q = torch.randn(1, 2, 8, 16)
    attend = torch.nn.functional.scaled_dot_product_attention
    result = compiled(lambda q: attend(q, q, q, is_causal=True))(q.tt())
    torch.testing.assert_close(result.cpu(), attend(q, q, q, is_causal=True), rtol=1e-4, atol=1e-5)


def test_attention_of_tensors_on_the_device_takes_the_ops_of_tensors_on_the_host():
    q = torch.randn(1, 2, 8, 16)
    attend = torch.nn.functional.scaled_dot_product_attention
    programs = [tt_torch.compile_model(attend, (x, x, x)) for x in (q, q.tt())]
    here, there = (op_histogram(decode(program.binary)) for program in programs)
    assert here == there


def test_host_ops_run_on_the_eager_device():
    run = torch.compile(lambda x: torch.linalg.eigvalsh(x * 2) + 1, backend="tt")
    with pytest.warns(tt_torch.driver.partition.HostFallbackWarning, match="eigh"):
        result = run(torch.eye(3, device="tt"))
    assert result.is_tt
    torch.testing.assert_close(result.cpu(), torch.linalg.eigvalsh(torch.eye(3) * 2) + 1)
