"""The optimizer: what it chooses leaves the values as they are."""

from __future__ import annotations

import contextlib
import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from layered import drawn
from nights import seeds
from torch import nn
from torch_mlir import ir

import tt_torch
from tt_torch.config import CompilerConfig
from tt_torch.mlir import pipeline
from tt_torch.mlir.context import make_context
from tt_torch.mlir.parts import even, shares
from tt_torch.mlir.rules import Builder
from tt_torch.mlir.ttnn.layout import Layout, memory_config, tiles, with_layout
from tt_torch.mlir.ttnn.optimizer.buffers import needed, sharded_norm
from tt_torch.mlir.ttnn.optimizer.choice import Choice, seconds
from tt_torch.mlir.ttnn.optimizer.convolutions import halo
from tt_torch.mlir.ttnn.optimizer.cores import cores_of
from tt_torch.mlir.ttnn.optimizer.foresight import spilling
from tt_torch.wire import facts
from tt_torch.wire.binary import system_desc
from tt_torch.wire.decode import decode


@pytest.mark.parametrize("seed", seeds(10, 24))
def test_values_do_not_change(seed):
    model, x, rng = drawn(seed)
    options = {"dtype": rng.choice([None, "bf16"]), "arch": rng.choice(["wormhole_b0", "blackhole"])}
    results = [
        tt_torch.compile_model(model, (x,), CompilerConfig(optimization_level=level, **options))(x)
        for level in (0, 1, 2)
    ]
    for result in results[1:]:
        assert torch.equal(result, results[0])


def configured(binary):
    """The ops of a binary that have a program configuration, and the layouts of all results of its first program."""
    ops = list(facts.ops(decode(binary)["programs"][0]))
    layouts = [t.memory_config["tensor_memory_layout"] for op in ops for t in op.results if t.memory_config]
    return [op for op in ops if "matmul_program_config" in op.record], layouts


@pytest.mark.parametrize("activation", [nn.ReLU(), nn.GELU(), nn.SiLU(), nn.Sigmoid(), nn.Tanh(), nn.ReLU6()], ids=str)
@pytest.mark.parametrize("math_fidelity", ["hifi4", "lofi"])
def test_the_runtime_applies_the_activation_of_a_configuration(activation, math_fidelity):
    """The library takes the activation of a sharded product from its configuration only."""
    model, x = nn.Sequential(nn.Linear(64, 128), activation).eval(), torch.randn(128, 64)
    configs = [CompilerConfig(dtype="bf16", optimization_level=n, math_fidelity=math_fidelity) for n in (0, 1)]
    plain, ours = (tt_torch.compile_model(model, (x,), config) for config in configs)
    (op,), _ = configured(ours.binary)
    ((_, chosen),) = op.record["matmul_program_config"].items()
    fused = "fused_activation" in chosen
    assert not op.record.get("activation")
    assert fused or not configured(plain.binary)[0]
    assert torch.equal(ours(x), plain(x))


def test_a_product_with_an_activation_apart_is_not_split():
    """The library computes the gelu of GPT-2 in a kernel of its own, and refuses it for sharded products."""
    sizes, gelu = (128, 768, 3072), nn.GELU(approximate="tanh")
    model = nn.Sequential(nn.LayerNorm(768), nn.Linear(*sizes[1:]), gelu, nn.Linear(3072, 768)).eval()
    x = torch.randn(sizes[:2])
    configs = [CompilerConfig(dtype="bf16", optimization_level=n) for n in (0, 2)]
    plain, ours = (tt_torch.compile_model(model, (x,), config) for config in configs)
    assert torch.equal(ours(x), plain(x))
    (op,) = [op for op in configured(ours.binary)[0] if op.record.get("activation") == "gelu_tanh"]
    ((_, chosen),) = op.record["matmul_program_config"].items()
    assert "fused_activation" not in chosen
    read, written = op.read[0], op.written[0]
    assert read.place == "L1"  # where the norm has put it
    for tensor in (read, written):
        assert tensor.memory_config["tensor_memory_layout"] == "Interleaved"


@pytest.mark.parametrize(
    ("options", "level"), [({}, 0), ({"enable_optimizer": True}, 2), ({"optimization_level": 1}, 1)]
)
def test_levels(options, level):
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256), nn.LayerNorm(256)).eval()
    config = CompilerConfig(dtype="bf16", **options)
    ops, layouts = configured(tt_torch.compile_model(model, (torch.randn(512, 256),), config).binary)
    assert config.level == level
    assert len(ops) == (2 if level else 0)
    assert ("BlockSharded" in layouts) == (level == 2)


@pytest.mark.parametrize(("width", "splits"), [(256, True), (250, False)])
def test_a_norm_is_split_only_if_its_rows_are_whole_tiles(width, splits):
    """Otherwise, each core would count the padding of its last tile as elements of the row."""
    model = nn.Sequential(nn.Linear(256, width), nn.LayerNorm(width), nn.ReLU()).eval()
    config = CompilerConfig(dtype="bf16", optimization_level=2)
    message = decode(tt_torch.compile_model(model, (torch.randn(512, 256),), config).binary)
    (norm,) = (op for op in facts.ops(message["programs"][0]) if op.name == "LayerNormOp")
    assert bool(norm.results[0].grid) == splits


class Branches(nn.Module):
    """Two convolutions that read one image in another layout than it is made in."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.one, self.two = (nn.Conv2d(i, o, 1) for i, o in ((128, 512), (512, 256), (512, 256)))

    def forward(self, x):
        y = torch.relu(self.first(x))
        return self.one(y) * self.two(y)


POOLED = nn.Sequential(nn.Conv2d(128, 512, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())


@pytest.mark.parametrize(
    ("model", "size", "moves"),
    [
        (Branches(), 28, 2),  # the second convolution reads the copy that is made for the first one
        (POOLED, 7, 1),  # the reshape before the mean joins the parts
        (nn.Sequential(POOLED, nn.Linear(512, 1000)), 7, 1),  # the program returns scores that are not split
    ],
)
def test_nothing_is_moved_twice(model, size, moves):
    """The image is moved once into the parts of the first convolution, and each further move is needed."""
    x, config = torch.randn(8, 128, size, size), CompilerConfig(dtype="bf16", optimization_level=2)
    made = tt_torch.compile_model(model.eval(), (x,), config)
    names = [op.name for op in facts.ops(decode(made.binary)["programs"][0])]
    assert names.count("ToMemoryConfigOp") == moves
    whole = tt_torch.compile_model(model.eval(), (x,), CompilerConfig(dtype="bf16"))
    assert torch.equal(made(x), whole(x))


@pytest.mark.parametrize("channels", [3, 20, 64])
def test_the_first_convolution_is_split_by_pixels(channels):
    """Its image never goes back to DRAM, also if it has fewer channels than a tile has columns. If it has few, it lies
    in rows."""
    model = nn.Sequential(nn.Conv2d(channels, 64, 7, 2, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1)).eval()
    x, config = torch.randn(1, channels, 128, 128), CompilerConfig(dtype="bf16", optimization_level=2)
    compiled = tt_torch.compile_model(model, (x,), config)
    assert torch.equal(compiled(x), tt_torch.compile_model(model, (x,), CompilerConfig(dtype="bf16"))(x))
    ops = list(facts.ops(decode(compiled.binary)["programs"][0]))
    (first,) = (i for i, op in enumerate(ops) if op.name == "Conv2dOp")
    image, result = ops[first].tensor("input"), ops[first].results[0]
    assert [t.memory_config["tensor_memory_layout"] for t in (image, result)] == ["HeightSharded"] * 2
    assert image.tiled == (channels > 3)
    assert all(t.place == "L1" for op in ops[first - 3 : first] if op.on_device for t in op.written), ops


COPYING = {
    "joined rows": lambda x: torch.cat([x.exp(), x.sin()], -2).tanh(),
    "a join of columns": lambda x: torch.cat([x.exp(), x.sin()], -1).tanh(),
    "the second half of the rows": lambda x: x.exp().chunk(2, -2)[1].tanh(),
    "every second row": lambda x: x.exp()[..., ::2, :].tanh(),
    "a join of matrices": lambda x: torch.cat([x.exp(), x.sin()], 0).tanh(),
    "the largest of each matrix": lambda x: x.exp().amax(0).tanh(),
    "the largest of each row": lambda x: x.exp().amax(-1).tanh(),
}
NEVER, INSIDE, ALWAYS = (False, False), (False, True), (True, True)
FEW = 96 * 1024  # bytes of the buffers and the tensors of ops without copies


@pytest.mark.parametrize(
    ("name", "copies"),
    zip(COPYING, [INSIDE, INSIDE, INSIDE, ALWAYS, NEVER, ALWAYS, NEVER], strict=True),
)
def test_copies_of_ops_that_move_tiles_are_counted(name, copies, monkeypatch):
    """The library copies tensors for ops that begin or end inside of a tile. Other ops take only a few tiles. `copies`
    says whether there are copies for 128 rows and columns, and for 100."""
    counted, choose = [], pipeline.optimize
    monkeypatch.setattr(pipeline, "optimize", lambda *arguments: counted.append(choose(*arguments)))
    for size in (128, 100):
        tt_torch.compile_model(COPYING[name], (torch.ones(2, size, size),), CompilerConfig(optimization_level=2))
    assert tuple(size > FEW for size in counted) == copies, counted


@contextlib.contextmanager
def op_of(name, layout, given, missing=0, width=32, **attributes):
    """An op whose first `given` operands are a row of tiles in this layout. `missing` optional ones come after them."""
    with make_context(), ir.Location.unknown():
        kind = with_layout([32, width], layout)
        module = ir.Module.parse(f"func.func @main(%x: {kind}) {{ return }}")
        block = module.body.operations[0].regions[0].blocks[0]
        operands = [block.arguments[0]] * given + [None] * missing
        b = Builder(ir.InsertionPoint.at_block_begin(block), ir.Location.unknown())
        yield b(f"ttnn.{name}", *operands, **attributes, type=kind).owner


@pytest.mark.parametrize(
    ("name", "dtype", "weights", "part", "across", "measured"),
    [
        ("rms_norm", "BFloat16", 1, (2, 1), 8, 88064),
        ("rms_norm", "BFloat16", 1, (5, 8), 2, 434176),
        ("rms_norm", "BFloat16", 0, (2, 8), 1, 176128),
        ("rms_norm", "Float32", 1, (3, 12), 2, 405504),
        ("layer_norm", "BFloat16", 2, (5, 8), 2, 499712),
        ("layer_norm", "BFloat16", 1, (2, 8), 1, 212992),
        ("layer_norm", "BFloat16", 0, (2, 4), 2, 135168),
        ("layer_norm", "Float32", 2, (2, 4), 2, 167936),
    ],
)
def test_buffers_of_a_norm_in_parts_are_those_of_the_library(name, dtype, weights, part, across, measured):
    """The library allocated these bytes for the op on a mock device, beside its operands and its result."""
    missing = {"rms_norm": 1, "layer_norm": 2}[name] - weights
    with op_of(name, Layout(dtype), 1 + weights, missing, epsilon=1e-5) as op:
        assert sharded_norm(op, part, across) == measured


NARROW = {"compute_config": {"math_fidelity": "HiFi4", "fp32_dest_acc_en": False}}
SOFTMAX = {"dimension": 1, "numeric_stable": True}
# An op on a row of tiles: its width and type, its operands and their most, its attributes, and the bytes that graph
# captures of ttnn 0.81.1 have beside operands and results.
MEASURED = [
    ("softmax", 1665, "Float32", 1, 1, SOFTMAX, 542720),
    ("softmax", 1696, "Float32", 1, 1, SOFTMAX, 509952),
    ("softmax", 160, "Float32", 1, 1, SOFTMAX, 116736),
    ("softmax", 319, "BFloat16", 1, 1, SOFTMAX, 147456),
    ("softmax", 640, "BFloat16", 1, 1, SOFTMAX | NARROW, 141312),
    ("layer_norm", 160, "BFloat16", 3, 3, {"epsilon": 1e-5}, 221184),
    ("layer_norm", 100, "Float32", 2, 3, {"epsilon": 1e-5}, 188416),
    ("rms_norm", 640, "BFloat16", 2, 2, {"epsilon": 1e-5}, 262144),
    ("rms_norm", 300, "BFloat16", 1, 2, {"epsilon": 1e-5} | NARROW, 126976),
    ("rotary_embedding", 128, "BFloat16", 3, 3, {}, 90112),
    ("rotary_embedding", 64, "Float32", 3, 3, {}, 96256),
    ("add", 320, "BFloat16", 2, 2, {}, 12288),
    ("logical_and", 70, "Int32", 2, 2, {}, 32768),
    ("exp", 70, "Float32", 1, 1, {}, 16384),
    ("cumsum", 300, "BFloat16", 1, 1, {"dim": 1}, 16384),
    ("cumsum", 300, "Int32", 1, 1, {"dim": 1}, 36864),
    ("sort", 512, "BFloat16", 1, 1, {"dim": 1, "descending": False, "stable": False}, 91136),
]


@pytest.mark.parametrize(("name", "width", "dtype", "given", "most", "attributes", "measured"), MEASURED)
def test_buffers_of_an_op_are_those_of_the_library(name, width, dtype, given, most, attributes, measured):
    with op_of(name, Layout(dtype), given, most - given, width, **attributes) as op:
        assert measured <= needed(op, cores_of(system_desc("wormhole_b0"))) <= 1.12 * measured


def test_what_leaves_l1_costs_time():
    """A value with more readers costs more. A large value costs less for each byte, because it is one move as well."""
    cores, costs = cores_of(system_desc("wormhole_b0")), {}
    for width, readers in ((32, 1), (4096, 1), (4096, 3)):
        with op_of("exp", Layout("BFloat16", buffer="L1"), 1, width=width) as op:
            costs[width, readers] = spilling(op.results[0], readers, cores) / width
    assert costs[4096, 1] < costs[4096, 3] < costs[32, 1]


@pytest.mark.parametrize(("fidelity", "passes"), [("LoFi", 1), ("HiFi2", 2), ("HiFi4", 4), ("", 4)])
def test_a_product_of_two_tiles_takes_16_cycles_in_each_pass(fidelity, passes):
    """The matrix unit multiplies 8x16 by 16x16 numbers in a cycle."""
    config = {"compute_config": {"math_fidelity": fidelity}} if fidelity else {}
    with op_of("matmul", Layout("BFloat16"), 2, transpose_a=False, transpose_b=False, **config) as op:
        found = seconds(op, Choice(Layout("BFloat16"), products=1000), cores_of(system_desc("wormhole_b0")))
    assert found == pytest.approx(1000 * 16 * passes / 1e9)


@given(st.integers(1, 200), st.integers(1, 130))
def test_numbers_of_parts(count, most):
    parts = shares(count, most)
    each = -(-count // parts)
    assert parts <= most and (parts - 1) * each < count <= parts * each and each == -(-count // most)
    assert count % even(count, most) == 0 and even(count, most) <= most


@st.composite
def windows(draw):
    """The attributes of a convolution that fits its image."""
    kernel, padding, dilation = (draw(st.tuples(st.integers(1, 3), st.integers(1, 3))) for _ in range(3))
    padding = [draw(st.integers(0, 2)) for _ in range(4)]
    height, width = (d * (k - 1) + 1 + draw(st.integers(0, 5)) for k, d in zip(kernel, dilation, strict=True))
    stride = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    sizes = {"batch_size": draw(st.integers(1, 3)), "input_height": height, "input_width": width}
    return sizes | {"kernel_size": kernel, "stride": stride, "dilation": dilation, "padding": padding}


@given(windows(), st.integers(1, 40))
def test_pixels_that_a_core_needs(a, rows):
    """All pixels of the padded images are numbered. A core needs the pixels from its first to its last number."""
    top, bottom, left, right = a["padding"]
    height, width = a["input_height"] + top + bottom, a["input_width"] + left + right
    (kh, kw), (sh, sw), (dh, dw) = a["kernel_size"], a["stride"], a["dilation"]
    down, across = ((size - d * (k - 1) - 1) // s + 1 for size, k, s, d in ((height, kh, sh, dh), (width, kw, sw, dw)))
    places = itertools.product(range(a["batch_size"]), range(down), range(across))
    read = [
        [(n * height + y * sh + i * dh) * width + x * sw + j * dw for i in range(kh) for j in range(kw)]
        for n, y, x in places
    ]
    parts = [list(itertools.chain(*read[start : start + rows])) for start in range(0, len(read), rows)]
    assert halo(a, rows) == max(max(part) - min(part) + 1 for part in parts)


@given(
    st.lists(st.integers(1, 100), min_size=1, max_size=4),
    st.sampled_from(["HeightSharded", "WidthSharded", "BlockSharded"]),
    st.integers(1, 8),
    st.integers(1, 8),
)
def test_parts_hold_the_whole_tensor(shape, kind, rows, columns):
    """Every part lies on a core of its own, and all parts together have room for all tiles."""
    grid = {"HeightSharded": (rows * columns, 1), "WidthSharded": (1, rows * columns), "BlockSharded": (rows, columns)}
    layout = Layout("BFloat16", True, "L1", kind, grid[kind])
    spec = memory_config(layout, shape, 8)["shard_spec"]
    corners = [(r["start_coord"], r["end_coord"]) for r in spec["core_range_set"]["core_ranges"]]
    cores = [(x, y) for a, b in corners for x in range(a["x"], b["x"] + 1) for y in range(a["y"], b["y"] + 1)]
    assert len(set(cores)) == len(cores) == layout.cores
    height, width = (size // 32 for size in spec["shape"])
    down, across = tiles(shape)
    assert height * layout.grid[0] >= down > (height - 1) * layout.grid[0] - layout.grid[0]
    assert width * layout.grid[1] >= across
    assert layout.bytes_of_core(shape, 64) == height * width * 2048
