"""States: inputs that a program updates in their own memory, such as caches. The values equal eager PyTorch's."""

from __future__ import annotations

import copy
import random

import pytest
import torch

import tt_torch
from tt_torch import runtime
from tt_torch.driver.executor import Executor
from tt_torch.wire import calls
from tt_torch.wire.decode import decode


class Cache(torch.nn.Module):
    """A cache of shape (B, H, S, D). Each call writes one position of the cache, and reads the whole cache."""

    def __init__(self, batch: int = 1, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(batch, 2, 8, 4, dtype=dtype))

    def forward(self, rows: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        self.keys.index_copy_(2, position, rows)
        return (self.keys * 2).sum(2)


def steps(model: Cache, compiled: torch.nn.Module, positions: list[int]) -> None:
    """Runs eager PyTorch on a copy of the model, and the compiled model; both must agree after each step."""
    reference = copy.deepcopy(model)
    for position in positions:
        rows = torch.randn(model.keys.shape[0], 2, 1, 4).to(model.keys.dtype)
        with torch.no_grad():
            torch.testing.assert_close(
                compiled(rows, torch.tensor([position])), reference(rows, torch.tensor([position]))
            )
        assert torch.equal(model.keys, reference.keys)


def compiled(model: torch.nn.Module, **options: object) -> torch.nn.Module:
    return torch.compile(model, backend=tt_torch.backend, fullgraph=True, options={"fallback": "error", **options})


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_cache_is_updated_in_place(batch: int, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    model = Cache(batch, dtype)
    memory = model.keys.data_ptr()
    steps(model, compiled(model), [0, 3, 7, 3])
    assert model.keys.data_ptr() == memory


class Assigned(Cache):
    """Writes by assignment, and to a position that may be counted from the end."""

    def forward(self, rows: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        self.keys[:, :, position] = rows
        return (self.keys * 2).sum(2)


def test_an_assigned_row_is_updated_in_place() -> None:
    model = Assigned(3)
    steps(model, compiled(model), [0, -1, 7, -8])


@pytest.mark.parametrize("kind", [Cache, Assigned])
def test_the_program_has_an_update_and_no_copy_of_the_cache(kind: type[Cache]) -> None:
    model = kind().eval()
    with torch.no_grad():
        made = tt_torch.compile_model(model, (torch.randn(1, 2, 1, 4), torch.tensor([1])))
    ops = calls.op_histogram(decode(made.binary))
    assert ops["UpdateCacheOp"] == 1 and "ScatterOp" not in ops
    assert made.executor.compiled.updates == {0: made.executor.compiled.kinds.index("state")}


def test_writes_of_the_host_are_seen_and_results_are_visible() -> None:
    model = Cache().eval()
    run = compiled(model)
    steps(model, run, [1])
    model.keys.data.mul_(3)
    steps(model, run, [2])
    model.keys.detach().numpy()[:] = 5
    steps(model, run, [0])
    model.load_state_dict({"keys": torch.ones(1, 2, 8, 4)})
    steps(model, run, [4])
    model.keys.data = torch.full((1, 2, 8, 4), 7.0)  # other memory
    steps(model, run, [5])
    model.keys.zero_()
    steps(model, run, [6])


def test_two_programs_share_a_state() -> None:
    first, second = Cache(), Cache()
    second.keys = first.keys
    one, two = compiled(first), compiled(second, enable_consteval=False)
    steps(first, one, [1])
    steps(second, two, [2])
    steps(first, one, [3])


def test_an_error_leaves_a_usable_state() -> None:
    model = Cache().eval()
    run = compiled(model)
    steps(model, run, [1])
    with torch.no_grad(), pytest.raises(IndexError, match="out of range"):
        run(torch.randn(1, 2, 1, 4), torch.tensor([8]))
    with torch.no_grad(), pytest.raises(IndexError, match="out of range"):
        run(torch.randn(1, 2, 1, 4), torch.tensor([-1]))
    steps(model, run, [2])


def test_a_state_in_another_form_is_copied() -> None:
    model = Cache().eval()
    model.keys = torch.zeros(1, 8, 2, 4).transpose(1, 2)
    steps(model, compiled(model), [1, 2])
    model = Cache().eval()
    with torch.no_grad():  # the device has bf16, and the host has float32
        compiled(model, dtype="bf16")(torch.full((1, 2, 1, 4), 0.5), torch.tensor([1]))
    assert model.keys[:, :, 1].eq(0.5).all() and model.keys.sum() == 4


def test_inference_mode() -> None:
    with torch.inference_mode():
        model = Cache().eval()
        run = compiled(model)
        for position in (1, 2):
            run(torch.ones(1, 2, 1, 4), torch.tensor([position]))
        assert model.keys.sum() == 16


def test_batch_norm() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))
    reference = copy.deepcopy(model)
    run = compiled(model)
    for _ in range(3):
        x = torch.randn(2, 3, 8, 8)
        for module in (run, reference):
            module(x).square().sum().backward()
    for (name, ours), theirs in zip(model.state_dict().items(), reference.state_dict().values(), strict=True):
        torch.testing.assert_close(ours, theirs, msg=name)
    torch.testing.assert_close(model[0].weight.grad, reference[0].weight.grad, rtol=1e-4, atol=1e-4)


def test_the_device_holds_a_state_until_its_tensor_dies() -> None:
    model = Cache().eval()
    with torch.no_grad():
        made = tt_torch.compile_model(model, (torch.randn(1, 2, 1, 4), torch.tensor([1])))
    with runtime.Device() as device:
        executor = Executor(made.executor.compiled, device)
        state = torch.zeros(1, 2, 8, 4)
        given = {(1, 2, 8, 4): state, (1,): torch.tensor([2], dtype=torch.int32), (1, 2, 1, 4): torch.ones(1, 2, 1, 4)}
        inputs = [given[tuple(spec.shape)] for spec in executor.executable.inputs]
        before = state._version
        assert executor(inputs)[0] is state
        assert state.sum() == 8 and state._version > before
        assert device.memory_stats()["dram"]["allocated"] >= 2 * 32 * 32 * 4  # a tile per head
        del given, inputs, state
        assert not [name for name, _ in device.memory_stats()["dram"]["live"] if name.startswith("state")]


# Lines of random programs on the caches a and b (1, 2, 6, 4), rows x (1, 2, 1, 4) and a position p. They fill `out`.
LINES = [
    "a.index_copy_(2, p, x)",
    "b.index_copy_(2, p, x * 2)",
    "a[:, :, p] = x",
    "out.append(a.clone())",
    "out.append(a.sum(2))",
    "out.append(b.transpose(1, 2).contiguous())",
    "out.append(a[:, 1:].clone())",
    "out.append(a + b)",
    "a.copy_(b)",
    "b.copy_(a.flip(2))",
    "a.add_(1)",
    "b.mul_(a)",
    "t = a.clone(); a.copy_(b); b.copy_(t)",
    "a.index_copy_(1, p.clamp(max=1), x.expand(1, 2, 6, 4)[:, :1])",
    "b.index_add_(2, p, x)",
    "a[:, 0].zero_()",
    "b.transpose(1, 2).add_(x.sum())",
]


def random_program(seed: int) -> str:
    chosen = random.Random(seed).choices(LINES, k=random.Random(seed + 1).randint(1, 6))
    return (
        "def program(a, b, x, p):\n    out = []\n"
        + "".join(f"    {line}\n" for line in chosen)
        + "    return out, x + 1"
    )


def pair(kind: str) -> list[torch.Tensor]:
    """Two caches of one of the KINDS. Calls after the same seed give the same values."""
    dtype = torch.bfloat16 if kind == "bfloat16" else torch.float32
    a, b = (torch.randint(-3, 4, (1, 2, 6, 4)).to(dtype) for _ in range(2))
    if kind == "with gaps":
        a = torch.cat([a, a], -1)[..., :4]
    if kind == "one tensor":
        b = a
    if kind == "views of one memory":
        whole = torch.cat([a, b], 2)
        a, b = whole[:, :, :6], whole[:, :, 6:]
    return [x.to("tt") for x in (a, b)] if kind == "on tt" else [a, b]


KINDS = ("plain", "bfloat16", "with gaps", "one tensor", "views of one memory", "on tt")


def check(seed: int) -> None:
    source, kind = random_program(seed), KINDS[seed % len(KINDS)]
    space: dict = {}
    exec(source, space)
    torch.manual_seed(seed)
    ours = pair(kind)
    torch.manual_seed(seed)
    theirs = pair(kind)
    torch._dynamo.reset()
    run = torch.compile(space["program"], backend=tt_torch.backend, fullgraph=True)
    for position in (0, 5, 2):
        x = torch.randint(-3, 4, (1, 2, 1, 4)).to(ours[0].dtype).to(ours[0].device)
        p = torch.tensor([position], device=x.device)
        with torch.no_grad():
            got, expected = run(*ours, x, p), space["program"](*theirs, x, p)
        torch.testing.assert_close(got, expected, msg=lambda text: f"{kind}: {text}\n{source}")
        torch.testing.assert_close(ours, theirs, msg=lambda text: f"{kind}, state: {text}\n{source}")


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed: int) -> None:
    check(seed)
