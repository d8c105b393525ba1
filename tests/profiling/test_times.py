"""Compares the model of the chips with figures that Tenstorrent publishes, and with the roofline, which is the least
possible time."""

from __future__ import annotations

import gzip
import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import tt_torch
from benchmarks import chips
from tt_torch.errors import BinaryFormatError
from tt_torch.profiling import times
from tt_torch.profiling.cost_model import cost_of, of_call, planned
from tt_torch.profiling.work import CONVOLUTIONS, LOOKUPS, PRODUCTS, Product, matrix_flops, product
from tt_torch.wire import schema
from tt_torch.wire.calls import device_ops, public
from tt_torch.wire.chips import CHIPS, DISPATCH, GAP, KERNEL
from tt_torch.wire.decode import decode
from tt_torch.wire.facts import Op

DATA = Path(__file__).parents[1] / "data" / "wire"
FILES = sorted(path for path in DATA.iterdir() if path.name.endswith((".ttnn", ".ttnn.gz")))


@pytest.mark.parametrize("card", chips.ARCHS)
def test_products_take_what_is_published(card: str) -> None:
    found = [(op, seconds) for op, seconds, fits in chips.products(card) if fits]
    chip = CHIPS[chips.ARCHS[card][1]]
    errors = [abs((cost_of(op, chip).full.total - GAP) / seconds - 1) for op, seconds in found]
    assert len(errors) >= 33 and statistics.median(errors) < 0.08 and max(errors) < 0.25


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
@pytest.mark.parametrize("chip", CHIPS)
def test_no_op_is_faster_than_the_roofline(path: Path, chip: str) -> None:
    data = path.read_bytes()
    message = decode(gzip.decompress(data) if path.suffix == ".gz" else data)
    for program in public(message):
        for op in planned(program, chip):
            launched = 0 if op.op.is_view else GAP + KERNEL
            assert op.cost.seconds >= op.cost.ideal.total + launched
            assert (op.cost.full.arithmetic == 0) == (op.cost.ideal.arithmetic == 0)


def ops_of(function: Callable[..., object], *shapes: tuple[int, ...], **options: object) -> list[Op]:
    config = tt_torch.CompilerConfig(**options)  # type: ignore[arg-type]
    return list(device_ops(decode(tt_torch.compile_model(function, tuple(map(torch.zeros, shapes)), config).binary)))


@pytest.mark.parametrize(
    ("function", "shapes", "size"),
    [
        (torch.matmul, [(32, 64), (64, 48)], Product(1, 1, 2, 2)),
        (torch.matmul, [(3, 5, 70), (70, 33)], Product(1, 1, 3, 2)),
        (torch.matmul, [(3, 5, 70), (3, 70, 33)], Product(3, 1, 3, 2)),
        (torch.nn.Linear(96, 64).eval(), [(40, 96)], Product(1, 2, 3, 2)),
        (torch.nn.Conv2d(32, 64, 3, padding=1).eval(), [(2, 32, 8, 8)], Product(1, 4, 9, 2)),
        (torch.nn.Conv2d(3, 64, 7, padding=3).eval(), [(2, 3, 8, 8)], Product(1, 4, 49, 2)),  # 32 channels, 29 of zeros
        (torch.nn.Conv2d(64, 64, 3, padding=1, groups=2).eval(), [(2, 64, 8, 8)], Product(1, 4, 18, 2)),
        (torch.nn.ConvTranspose2d(32, 32, 2).eval(), [(1, 32, 4, 4)], None),
    ],
)
def test_the_product_of_an_op(function: Callable[..., object], shapes: list[tuple[int, ...]], size: object) -> None:
    found = [(op, matrix_flops(op)) for op in ops_of(function, *shapes, dtype="bf16")]
    assert [product(op, flops) for op, flops in found if flops] == [size]


def test_the_names_of_ops_are_those_of_the_wire() -> None:
    tables = {name.rpartition(".")[2] for name in schema.load().tables}
    assert tables.issuperset({*times.WINDOWS, *CONVOLUTIONS, *PRODUCTS, *LOOKUPS})


def test_a_pool_starts_more_kernels() -> None:
    ops = ops_of(torch.nn.MaxPool2d(2), (1, 32, 8, 8), dtype="bf16")
    assert [times.kernels(op) for op in ops if op.name == "Pool2dOp"] == [4]


def test_ops_with_windows_start_more_kernels() -> None:
    """The borders of a convolution are exchanged first. In DRAM, its operand and its result are also moved."""
    layers = torch.nn.Sequential(torch.nn.Conv2d(32, 32, 3, padding=1), torch.nn.Conv2d(32, 32, 3, padding=1)).eval()
    for level, kernels in ((0, [4, 4]), (2, [2, 2])):
        ops = ops_of(layers, (4, 32, 32, 32), dtype="bf16", optimization_level=level)
        assert [times.kernels(op) for op in ops if op.name == "Conv2dOp"] == kernels


@pytest.mark.parametrize("options", [{"stride": 2}, {"padding": 1}, {"groups": 2}, {}], ids=str)
def test_a_convolution_of_single_pixels_is_a_product(options: dict[str, int]) -> None:
    (op,) = (
        op
        for op in ops_of(torch.nn.Conv2d(32, 32, 1, **options).eval(), (1, 32, 8, 8), dtype="bf16")
        if op.name == "Conv2dOp"
    )
    assert times.kernels(op) == (4 if options else 1)


@pytest.mark.parametrize(("channels", "inner", "kernels"), [(3, 14, 3), (8, 14, 2), (16, 28, 2), (32, 49, 2)])
def test_pixels_in_rows_have_few_channels(channels: int, inner: int, kernels: int) -> None:
    """Seven rows of seven pixels are 14 tiles of pixels with 8 channels, and 49 tiles of pixels with 32 channels. One
    more kernel makes 8 channels of 3."""
    layers = torch.nn.Sequential(torch.nn.Conv2d(channels, 64, 7, 2, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(3, 2, 1))
    ops = ops_of(layers.eval(), (2, channels, 112, 112), dtype="bf16", optimization_level=2)
    (op,) = (op for op in ops if op.name == "Conv2dOp")
    found = product(op, matrix_flops(op))
    assert found is not None and (found.inner, times.kernels(op)) == (inner, kernels)


@pytest.mark.parametrize("kernel", [[], [7], [7, 7, 7]], ids=str)
@pytest.mark.parametrize("channels", [3, 32])
def test_a_damaged_window_is_read(channels: int, kernel: list[int]) -> None:
    layers = torch.nn.Sequential(torch.nn.Conv2d(channels, 64, 7, 2, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(3, 2, 1))
    ops = ops_of(layers.eval(), (2, channels, 112, 112), dtype="bf16", optimization_level=2)
    (op,) = (op for op in ops if op.name == "Conv2dOp")
    assert product(replace(op, record=op.record | {"kernel_size": kernel}), 1)


def test_a_bias_of_several_rows_starts_a_kernel() -> None:
    linear = torch.nn.Linear(64, 64, bias=False)
    (op,) = (op for op in ops_of(lambda x: linear(x) + x, (64, 64)) if op.name == "LinearOp")
    assert times.kernels(op) == 2


def test_the_host_starts_ops_unless_they_are_recorded() -> None:
    model, x = torch.nn.Linear(64, 64).eval(), torch.zeros(32, 64)
    costs = [
        of_call(decode(tt_torch.compile_model(model, (x,), tt_torch.CompilerConfig(enable_trace=trace)).binary))
        for trace in (False, True)
    ]
    assert costs[0].dispatch == pytest.approx(costs[0].device_ops * DISPATCH) and costs[1].dispatch == 0


def test_the_fullest_core_decides_in_l1() -> None:
    """If the pixels of a convolution lie on half of the cores, reading them takes twice the time."""
    layers = torch.nn.Sequential(torch.nn.Conv2d(32, 32, 3, padding=1), torch.nn.Conv2d(32, 32, 3, padding=1)).eval()
    ops = ops_of(layers, (4, 32, 16, 16), dtype="bf16", optimization_level=2)
    (first, *_) = (op for op in ops if op.name == "Conv2dOp" and op.operands[0].grid)
    rows, columns = first.operands[0].grid or (0, 0)
    assert rows * columns == 32
    cost = cost_of(first, CHIPS["Wormhole_b0"])
    sharded = sum(t.bytes for t in (*first.read, *first.written) if t.grid)
    rest = cost.l1_bytes - sharded
    assert cost.full.l1 == pytest.approx((sharded / 32 + rest / 64) / 64e9) and cost.full.l1 > cost.ideal.l1


def test_a_lookup_asks_for_the_rows_that_it_gives() -> None:
    found = []
    for rows in (1_000, 100_000):
        table = torch.nn.Embedding(rows, 64, dtype=torch.bfloat16).eval()
        message = decode(tt_torch.compile_model(table, (torch.zeros(1, 32, dtype=torch.int64),)).binary)
        found += [cost_of(op, CHIPS["Blackhole"]).seconds for op in device_ops(message) if op.name == "EmbeddingOp"]
    assert len(found) == 2 and found[0] == found[1]


@pytest.mark.parametrize("name", ["MatmulOp", "LinearOp"])
def test_a_product_of_a_tensor_that_nothing_defines_is_refused(name: str) -> None:
    (op,) = (found for found in ops_of(torch.matmul, (32, 64), (64, 48)) if found.name == "MatmulOp")
    with pytest.raises(BinaryFormatError, match=f"{name} .* reads a tensor which no input or earlier op defines"):
        cost_of(replace(op, name=name, operands=op.operands[:1]), CHIPS["Wormhole_b0"])
