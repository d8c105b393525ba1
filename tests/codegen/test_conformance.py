"""Tenstorrent's library takes every program of the op table and of small models: each is checked and then run.

This takes minutes on two cores, so it has a marker of its own: `pytest -m conformance`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import pytest
import torch
from layered import drawn, of_few_rows, overridden
from nights import seeds
from op_rows import Row, draw
from op_table import FAMILIES
from row_programs import Programs, together
from torch import nn

import tt_torch
from tt_torch.codegen import environment
from tt_torch.config import BackendOptions, CompilerConfig
from tt_torch.driver.backend import compile_captured
from tt_torch.driver.observer import Observer
from tt_torch.errors import OverrideError
from tt_torch.mlir import pipeline
from tt_torch.mlir.ttnn.optimizer.op_model import Questions
from tt_torch.mlir.ttnn.optimizer.overriding import words
from tt_torch.wire import chips

pytestmark = [
    *(pytest.mark.conformance, pytest.mark.needs_ttnn),
    pytest.mark.filterwarnings("ignore:.*mock device"),
]

PARTS = 60  # of the op table, whose ops are asked about with all their forms
ARCHS = {name: environment.DEVICES[name] for name in ("n150", "p150")}  # a chip of an n300 is like that of an n150


def cases() -> Iterator[Any]:
    """Each row in each of its types, on the devices in turn. CI runs only one type of each row."""
    rows = [row for family in FAMILIES.values() for row in family]
    for i, row in enumerate(rows):
        for k, dtype in enumerate(row.dtypes):
            marks = [] if k == i % len(row.dtypes) else [pytest.mark.every_type]
            yield pytest.param(row, dtype, list(ARCHS)[(i + k) % 2], marks=marks, id=f"{row.name}-{str(dtype)[6:]}")


def recorded(function: Any, device: str, made: list[Any], fullgraph: bool = True) -> Any:
    """The function compiled for a device. The executors of its programs are appended to `made`."""
    options = BackendOptions(compiler_config=CompilerConfig(arch=ARCHS[device]))

    def backend(gm, arguments):
        return compile_captured(gm, arguments, options, Observer(made.append, flag=False))

    return torch.compile(function, backend=backend, fullgraph=fullgraph, dynamic=False)


def binaries(rows: Sequence[tuple[Row, torch.dtype]], device: str) -> list[bytes]:
    """The programs of rows of the op table, which are compiled together."""
    functions = [row.fn for row, _ in rows]
    inputs = [[draw(i, dtype) if isinstance(i, tuple) else i(dtype) for i in row.inputs] for row, dtype in rows]
    made: list[Any] = []
    if len(rows) == 1:  # as the row is written
        recorded(functions[0], device, made)(*inputs[0])
    else:
        recorded(together(functions), device, made)(*inputs)
    return [executor.binary for executor in made]


@pytest.fixture(scope="session")
def failures(checkers, dispatched):
    """A function that checks binaries on a device and returns the failures. If there are none, it runs the binaries."""

    def check(device: str, binaries: Iterable[bytes]) -> list[tuple[str, ...]]:
        found = [(v.op, *v.differences, v.code) for b in binaries for v in checkers(device).check(b).failures]
        for binary in [] if found else binaries:
            dispatched(binary, device)
        return found

    return check


@pytest.fixture(scope="session")
def checked_rows(request, failures):
    """For each device, the failures of the rows of the op table that were selected."""
    selected: dict[str, dict[str, Any]] = {device: {} for device in ARCHS}
    for item in request.session.items:
        if getattr(item, "function", None) is test_op_table:
            given = item.callspec.params
            selected[given["device"]][item.callspec.id] = given["row"], given["dtype"]

    def check(device: str, names: Sequence[str]) -> list[list[tuple[str, ...]]]:
        found = failures(device, binaries([selected[device][name] for name in names], device))
        assert len(names) == 1 or not found, found  # each row is then checked alone
        return [found for _ in names]

    return {device: Programs(list(rows), partial(check, device)) for device, rows in selected.items()}


@pytest.mark.parametrize(("row", "dtype", "device"), list(cases()))
def test_op_table(row, dtype, device, checked_rows, request):
    assert checked_rows[device].end(request.node.callspec.id) == []


@pytest.mark.parametrize("device", ARCHS)
@pytest.mark.parametrize(("batch", "dtype"), [(1, torch.bfloat16), (3, torch.float32), (32, torch.bfloat16)])
def test_a_cache_is_updated(batch, dtype, device, failures):
    def write(cache, rows, position):
        return cache.index_copy_(2, position, rows).sum(2)

    made: list[Any] = []
    cache, rows = torch.zeros(batch, 2, 8, 4, dtype=dtype), torch.ones(batch, 2, 1, 4, dtype=dtype)
    recorded(write, device, made)(cache, rows, torch.tensor([3]))
    (executor,) = made
    assert executor.compiled.updates
    assert failures(device, [executor.binary]) == []


@pytest.mark.parametrize("device", ARCHS)
@pytest.mark.parametrize(("users", "dtype"), [(1, torch.float32), (3, torch.bfloat16), (32, torch.float32)])
def test_pages_are_written_and_read(users, dtype, device, failures):
    def write(pages, whole, rows, prompt, positions, table):
        filled = torch.ops.tt.paged_fill_cache(pages, prompt, table, positions[:1])
        pages.copy_(torch.ops.tt.paged_update_cache(filled, rows, positions, table))
        whole.copy_(torch.ops.tt.fill_cache(whole, prompt.expand(2, 3, 64, 32), 1))
        attend = torch.ops.tt.paged_scaled_dot_product_attention_decode
        return attend(torch.cat([rows, rows], 2), pages, pages, table, True, cur_pos_tensor=positions)

    made: list[Any] = []
    table = torch.arange(2 * users).reshape(users, 2)
    pages, whole, prompt = torch.zeros(2 * users, 3, 32, 32), torch.zeros(4, 3, 64, 32), torch.ones(1, 3, 64, 32)
    given = [x.to(dtype) for x in (pages, whole, torch.ones(1, users, 3, 32), prompt)]
    recorded(write, device, made)(*given, torch.zeros(users, dtype=torch.int32), table)
    (executor,) = made
    assert len(executor.compiled.updates) == 2
    assert failures(device, [executor.binary]) == []


BF16 = {"dtype": "bf16"}
MODELS = {
    "matmul": (lambda: nn.Linear(64, 32, bias=False), (8, 64)),
    "linear": (lambda: nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 10)), (8, 64)),
    "conv": (lambda: nn.Conv2d(8, 16, 3, padding=1), (2, 8, 12, 12)),
    "conv 1x1": (lambda: nn.Conv2d(32, 64, 1), (1, 32, 8, 8)),
    "depthwise": (lambda: nn.Conv2d(8, 8, 3, padding=1, groups=8), (1, 8, 12, 12)),
}


@pytest.mark.parametrize("device", ARCHS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        BF16,
        BF16 | {"weight_dtype": "bfp8_b"},
        BF16 | {"weight_dtype": "bfp4_b"},
        BF16 | {"activation_dtype": "bfp8_b"},
        BF16 | {"enable_optimizer": True},
        {"weight_dtype": "bfp8_b"},
        {"weight_dtype": "bfp4_b"},
        BF16 | {"math_fidelity": "lofi", "fp32_dest_acc_en": False},
        {"math_fidelity": "ttnn_default"},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", MODELS)
def test_layers(name, options, device, failures):
    make, shape = MODELS[name]
    config = CompilerConfig(arch=ARCHS[device], **options)
    binary = tt_torch.compile_model(make().eval(), (torch.randn(shape),), config).binary
    assert failures(device, [binary]) == []


class Cached(nn.Module):
    """Attention to a cache in bfloat16, of which `length` positions are written."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length
        self.register_buffer("cache", torch.zeros(2, 4, 64, 32, dtype=torch.bfloat16))

    def forward(self, new, position):
        if self.length > 1:
            self.cache[:, :, : self.length] = new
        else:
            self.cache.index_copy_(2, position, new)
        return nn.functional.scaled_dot_product_attention(new, self.cache, self.cache)


@pytest.mark.parametrize("device", ARCHS)
@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("length", [1, 32, 64])
def test_caches_of_block_floats(length, level, device, failures):
    config = CompilerConfig(arch=ARCHS[device], kv_cache_dtype="bfp8_b", optimization_level=level)
    args = (torch.zeros(2, 4, length, 32, dtype=torch.bfloat16), torch.tensor([3]))
    with torch.no_grad():
        made = tt_torch.compile_model(Cached(length).eval(), args, config)
    assert failures(device, [made.binary]) == []


@pytest.mark.parametrize("device", ARCHS)
@pytest.mark.parametrize("first", range(0, 600, 100))
def test_optimized(first, device, checkers, monkeypatch):
    """The library takes all that the optimizer chooses, and needs no more memory than the optimizer counts."""
    counted, optimize = [], pipeline.optimize
    monkeypatch.setattr(pipeline, "optimize", lambda *arguments: counted.append(optimize(*arguments)))
    for seed in range(first, first + 10):
        model, x, rng = drawn(seed)
        config = CompilerConfig(arch=ARCHS[device], optimization_level=2)
        config.dtype, config.weight_dtype = rng.choice([None, "bf16", "bf16"]), rng.choice([None, None, "bfp8_b"])
        config.activation_dtype = rng.choice([None, "bfp8_b"]) if config.dtype else None
        report = checkers(device).check(tt_torch.compile_model(model, (x,), config).binary)
        assert [(seed, v.op, v.differences) for v in report.failures] == []
        assert report.peaks["main"]["core"] <= counted[-1], seed


@pytest.mark.parametrize("device", ARCHS)
@pytest.mark.parametrize("first", [0, 100])
def test_weights_in_banks(first, device, checkers, monkeypatch):
    """The same for models of few rows, on chips on which it would pay to read every weight from the banks of DRAM."""
    counted, optimize, products = [], pipeline.optimize, 0
    monkeypatch.setattr(pipeline, "optimize", lambda *arguments: counted.append(optimize(*arguments)))
    for arch, chip in chips.CHIPS.items():
        monkeypatch.setitem(chips.CHIPS, arch, dataclasses.replace(chip, bank=1e12, row=0.05))
    for seed in range(first, first + 20):
        model, x, rng = of_few_rows(seed)
        dtype, weights = rng.choice([None, "bf16", "bf16"]), rng.choice([None, None, "bfp8_b", "bfp4_b"])
        config = CompilerConfig(dtype=dtype, weight_dtype=weights, arch=ARCHS[device], optimization_level=2)
        config.enable_dram_sharded_matmul = True
        report = checkers(device).check(tt_torch.compile_model(model, (x,), config).binary)
        assert [(seed, v.op, v.differences) for v in report.failures] == []
        assert report.peaks["main"]["core"] <= counted[-1], seed
        products += sum("DRAMSharded" in v.code for v in report.verdicts)
    assert products >= 5


@pytest.mark.parametrize("device", ARCHS)
def test_the_library_as_op_model(device, checkers, monkeypatch, tmp_path):
    """With op_model="ttnn", the optimizer counts what the library needs. With kept answers, it chooses the same."""
    counted, optimize = [], pipeline.optimize
    monkeypatch.setattr(pipeline, "optimize", lambda *arguments: counted.append(optimize(*arguments)))
    for seed in range(700, 706):
        model, x, rng = drawn(seed)
        config = CompilerConfig(dtype=rng.choice([None, "bf16"]), arch=ARCHS[device], optimization_level=2)
        config.op_model = "ttnn"
        made = tt_torch.compile_model(model, (x,), config)
        report = checkers(device).check(made.binary)
        assert [(seed, v.op, v.differences) for v in report.failures] == []
        core = report.peaks["main"]["core"]
        assert core <= counted[-1] <= 1.1 * core, seed
        assert tt_torch.compile_model(model, (x,), config).binary == made.binary
        config.optimization_level, config.op_model = 0, "rules"
        assert torch.equal(tt_torch.compile_model(model, (x,), config)(x), made(x))


@pytest.fixture
def counted_too_little(monkeypatch):
    """The forms of ops for which the rules count less L1 than the library needs, among all that are weighed."""
    found, ask = [], Questions.verdict

    def verdict(self, op, choice):
        answer = ask(self, op, choice)
        known = answer.known and not answer.refusal and choice.scratch < self._cores.l1
        if known and choice.scratch < answer.choice.scratch:
            types = [str(value.type) for value in (*op.operands, *op.results)]
            found.append((op.name, types, words(choice.result), choice.scratch, answer.choice.scratch))
        return answer

    monkeypatch.setattr(Questions, "verdict", verdict)
    return found


@pytest.mark.parametrize("device", ARCHS)
@pytest.mark.parametrize("part", seeds(1, PARTS))
def test_rules_count_what_ops_need(part, device, counted_too_little):
    """This holds for ops of the op table and of random models, in all forms that the optimizer weighs."""
    config = CompilerConfig(optimization_level=2, op_model="ttnn", arch=ARCHS[device])
    for row in [row for family in FAMILIES.values() for row in family][part::PARTS]:
        inputs = [draw(i, row.dtypes[0]) if isinstance(i, tuple) else i(row.dtypes[0]) for i in row.inputs]
        torch.compiler.reset()
        with torch.no_grad():
            torch.compile(row.fn, backend="tt", options=BackendOptions(compiler_config=config), dynamic=False)(*inputs)
    for seed in range(5 * part, 5 * part + 5):
        model, x, rng = drawn(seed)
        dtype, weights = rng.choice([None, "bf16"]), rng.choice([None, "bfp8_b"])
        tt_torch.compile_model(model, (x,), dataclasses.replace(config, dtype=dtype, weight_dtype=weights))
    assert counted_too_little == []


@pytest.mark.parametrize("device", ARCHS)
def test_overridden(device, checkers, monkeypatch):
    """The library takes the layouts and configurations that users ask for, if the optimizer does not refuse them."""
    counted, optimize, taken = [], pipeline.optimize, 0
    monkeypatch.setattr(pipeline, "optimize", lambda *arguments: counted.append(optimize(*arguments)))
    for seed in range(40):
        model, x, rng = drawn(seed)
        overrides, level = overridden(model, rng), rng.choice([1, 2])
        config = CompilerConfig(arch=ARCHS[device], optimization_level=level, optimizer_overrides=overrides)
        try:
            binary = tt_torch.compile_model(model, (x,), config).binary
        except OverrideError:
            continue
        report = checkers(device).check(binary)
        assert [(seed, overrides, v.op, v.differences) for v in report.failures] == []
        assert report.peaks["main"]["core"] <= counted[-1], (seed, overrides)
        taken += 1
    assert taken > 20


@pytest.mark.parametrize("device", ARCHS)
@pytest.mark.parametrize(("dtype", "level"), [(None, 0), ("bf16", 0), (None, 2), ("bf16", 2)])
def test_models(dtype, level, device, failures):
    """The demos' models, a residual network and an encoder, with one or two of each kind of layer."""
    transformers = pytest.importorskip("transformers")
    config = CompilerConfig(dtype=dtype, arch=ARCHS[device], optimization_level=level)
    residual = transformers.ResNetForImageClassification(transformers.ResNetConfig(depths=[1, 1, 1, 1])).eval()
    encoder = transformers.BertModel(transformers.BertConfig(num_hidden_layers=2)).eval()
    for model, inputs in ((residual, torch.randn(1, 3, 224, 224)), (encoder, torch.randint(0, 1000, (1, 128)))):
        binary = tt_torch.compile_model(model, (inputs,), config).binary
        assert failures(device, [binary]) == []


@pytest.mark.parametrize(
    ("optimizer", "device"), [(torch.optim.AdamW, "n150"), (partial(torch.optim.SGD, momentum=0.9), "p150")]
)
def test_training(optimizer, device, failures):
    """Forward, backward and the optimizer's step of the layers of demos/train_digits.py."""
    layers = [nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    model, made = nn.Sequential(*layers, nn.Linear(128, 10)), []
    trained = optimizer(model.parameters(), lr=1e-3)
    loss = nn.functional.cross_entropy(recorded(model, device, made)(torch.randn(4, 1, 8, 8)), torch.arange(4))
    loss.backward()
    recorded(trained.step, device, made, fullgraph=False)()
    assert len(made) >= 3
    assert failures(device, [executor.binary for executor in made]) == []
