"""Random variations of the parts of decoders: whatever the passes fuse, the values are those of eager PyTorch.

Each program varies one thing that decides whether a rule may match: halves that are exchanged or not, a sign, an axis,
the order of repeated heads, the shape of a table. A rule that ignores it computes something else.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from nights import seeds

import tt_torch
from tt_torch.wire.decode import decode

ROTARY, SPLIT, ATTENTION = "RotaryEmbeddingOp", "SplitQueryKeyValueAndSplitHeadsOp", "ScaledDotProductAttentionOp"


def compiled(model: Any, *inputs: torch.Tensor) -> list[Any]:
    """Compiles a function, compares its results with eager PyTorch, and returns the ops of the main program."""
    with torch.no_grad():
        program = tt_torch.compile_model(model, inputs)
        got, expected = program(*inputs), model(*inputs)
    tolerance = 2e-2 if inputs[0].dtype == torch.bfloat16 else 1e-4
    torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance * 2)
    torch._dynamo.reset()
    (main, *_) = decode(program.binary)["programs"]
    return [next(iter(op["type"].items())) for op in main["operations"]]


def names(ops: list[Any]) -> list[str]:
    return [name.rpartition(".")[2] for name, _ in ops]


def rotary(rng: random.Random) -> tuple[Callable[..., torch.Tensor], bool]:
    """A rotation with random choices, and whether the fused op computes this rotation."""
    exchanged, minus = rng.random() < 0.8, rng.choice(["high", "high", "high", "low", "both", ""])
    cut, axis = rng.choice([32, 32, 32, 16]), rng.choice([-1, -1, -1, -3])
    first, both = rng.random() < 0.5, rng.choice(["x", "x", "x", "turned"])

    def apply(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
        low, high = x.tensor_split([cut if axis == -1 else 1], axis)
        low, high = -low if minus in ("low", "both") else low, -high if minus in ("high", "both") else high
        turned = torch.cat([high, low] if exchanged else [low, high], axis)
        plain = (x if both == "x" else turned) * cosine
        return plain + turned * sine if first else sine * turned + plain

    return apply, exchanged and minus == "high" and cut == 32 and axis == -1 and both == "x"


TABLES = [(1, 1, 7, 64), (7, 64), (1, 7, 64), (2, 1, 7, 64), (1, 2, 7, 64), (1, 1, 1, 64)]


@pytest.mark.parametrize("seed", range(24))
def test_rotations(seed: int) -> None:
    rng, _ = random.Random(seed), torch.manual_seed(seed)
    apply, fits = rotary(rng) if seed >= 4 else (rotary_of_llama, True)
    table, dtype = rng.choice(TABLES if seed % 2 else TABLES[:3]), rng.choice([torch.float32, torch.bfloat16])
    x, cosine, sine = (torch.randn(size).to(dtype) for size in ((2, 2, 7, 64), table, table))
    ops = names(compiled(apply, x, cosine, sine))
    assert (ROTARY in ops) == (fits and table in TABLES[:3]), (table, ops)


def rotary_of_llama(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    low, high = x.chunk(2, -1)
    return x * cosine + torch.cat([-high, low], -1) * sine


def rotary_of_glm(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    return x * cosine + torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2) * sine


def rotary_of_none(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    return x * cosine + torch.stack([x[..., 1::2], -x[..., ::2]], -1).flatten(-2) * sine


@pytest.mark.parametrize("seed", range(32))
def test_rotations_of_a_part(seed: int) -> None:
    """Turns the first columns of each head, or all columns. A wrong program turns the last columns, takes the rest of
    another tensor, or puts the rest first."""
    rng, _ = random.Random(seed), torch.manual_seed(seed)
    wrong = None if seed < 12 else rng.choice(["columns", "other", "behind", None])
    turn = rng.choice([rotary_of_llama, rotary_of_llama, rotary_of_glm, rotary_of_glm, rotary_of_none])
    width, count = rng.choice(
        [(64, 32), (64, 32), (64, 16), (96, 24), (32, 32), (32, 8), (288, 8), (40, 32), (40, 8), (96, 48), (128, 64)]
    )
    table = rng.choice([(7, count), (1, 7, count), (2, 1, 7, count)])
    dtype = torch.float32 if seed % 5 == 4 else torch.bfloat16

    def model(x: torch.Tensor, y: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
        part, rest = x[..., :count], (y if wrong == "other" else x)[..., count:]
        turned = turn(x[..., -count:] if wrong == "columns" else part, cosine, sine)
        if count == width:
            return turned
        return torch.cat([rest, turned] if wrong == "behind" else [turned, rest], -1)

    sizes = [(2, 2, 7, width)] * 2 + [table] * 2
    ops = names(compiled(model, *(torch.randn(size).to(dtype) for size in sizes)))
    of_tiles, whole = width in (32, 64, 96, 128), wrong is None or count == width
    in_tiles = turn is rotary_of_glm or (turn is rotary_of_llama and count <= 32)
    fits = in_tiles and dtype == torch.bfloat16 and len(table) < 4
    assert ("RotaryEmbeddingLlamaOp" in ops) == (fits and (count % 32 == 0 or (of_tiles and whole))), (wrong, turn, ops)
    assert ("SliceOp" not in ops) == (fits and of_tiles and whole), (wrong, turn, ops)
    assert (ROTARY in ops) == (count == 64 and len(table) < 4 and turn is rotary_of_llama)


class Projections(torch.nn.Module):
    """Query, key and value of one input, or of two inputs. `rng` makes the random choices."""

    def __init__(self, rng: random.Random, plain: bool) -> None:
        super().__init__()
        self.heads = (
            (4, 2, 2) if plain else rng.choice([(2, 2, 2), (4, 2, 2), (2, 4, 2), (2, 2, 4), (2, 4, 4), (3, 2, 2)])
        )
        bias = [rng.random() < 0.5] * 3 if plain or rng.random() < 0.7 else [True, False, True]
        self.parts = torch.nn.ModuleList(torch.nn.Linear(24, 32 * h, b) for h, b in zip(self.heads, bias, strict=True))
        self.shared = plain or rng.random() < 0.8
        self.axes = [(1, 2)] * 3 if plain or rng.random() < 0.7 else [(1, 2), (1, 3), (1, 2)]
        self.order = [0, 1, 2] if plain else rng.sample(range(3), 3)
        several = self.heads.count(2) > 1 and max(self.heads) % 2 == 0
        self.fits = several and len(set(bias)) == 1 and self.shared and len(set(self.axes)) == 1

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found = {}
        for i in self.order:
            made = self.parts[i](x if self.shared or i == 0 else y)
            found[i] = made.view(*x.shape[:2], self.heads[i], 32).transpose(*self.axes[i])
        return tuple(found[i] for i in range(3))


@pytest.mark.parametrize("rows", [5, 1])
@pytest.mark.parametrize("seed", range(12))
def test_projections(seed: int, rows: int) -> None:
    torch.manual_seed(seed)
    model = Projections(random.Random(seed), plain=seed < 2).eval()
    ops = names(compiled(model, torch.randn(2, rows, 24), torch.randn(2, rows, 24)))
    assert (SPLIT in ops) == model.fits, (model.heads, ops)


def parts(rng: random.Random, rows: int) -> tuple[Callable[[torch.Tensor], list[torch.Tensor]], bool]:
    """Heads of 32 from the slices of one value of 8 * 32 columns, in a random order, with random numbers of heads."""
    heads = rng.choice([[4, 2, 2], [2, 4, 2], [2, 2, 4], [4, 2, 2]])
    shift, order = rng.choice([0, 0, 0, 32]), rng.sample(range(3), 3)

    def apply(x: torch.Tensor) -> list[torch.Tensor]:
        begins = [0, heads[0] * 32 - shift, sum(heads[:2]) * 32]
        found = {i: x[..., begins[i] : begins[i] + heads[i] * 32].reshape(2, rows, heads[i], 32) for i in order}
        return [found[i].transpose(1, 2) for i in range(3)]

    return apply, heads == [4, 2, 2] and not shift


@pytest.mark.parametrize("rows", [5, 1])
@pytest.mark.parametrize("seed", range(8))
def test_parts_of_one_product(seed: int, rows: int) -> None:
    torch.manual_seed(seed)
    apply, fits = parts(random.Random(seed), rows)
    assert (SPLIT in names(compiled(apply, torch.randn(2, rows, 256)))) == fits


class Interleaved(torch.nn.Module):
    """Each head has query, key and value beside each other, or parts of other sizes, or another reader."""

    def __init__(self, rng: random.Random, plain: bool) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(24, 2 * 96, bias=rng.random() < 0.6)
        self.sizes = [32] * 3 if plain else rng.choice([[32] * 3, [32] * 3, [32, 64], [64, 16, 16], [24] * 4])
        self.order = rng.sample(range(len(self.sizes)), len(self.sizes))
        self.read = "" if plain else rng.choice(["", "", "product", "heads"])
        self.activation = (lambda x: x) if plain or rng.random() < 0.8 else F.silu
        self.fits = self.sizes == [32] * 3 and not self.read and self.activation is not F.silu

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        product = self.activation(self.linear(x))
        heads = product.view(2, -1, 2, 96).transpose(1, 2)
        parts = heads.split(self.sizes, -1)
        others = {"": [], "product": [product], "heads": [heads]}[self.read]
        return [parts[i] + i for i in self.order] + others


@pytest.mark.parametrize("rows", [5, 1])
@pytest.mark.parametrize("seed", range(12))
def test_heads_with_parts_beside_each_other(seed: int, rows: int) -> None:
    torch.manual_seed(seed)
    model = Interleaved(random.Random(seed), plain=seed < 3).eval()
    found = names(compiled(model, torch.randn(2, rows, 24)))
    assert (SPLIT in found) == model.fits, (model.sizes, model.read, found)
    assert not model.fits or "SliceOp" not in found


def gelu_with_tanh(rng: random.Random, plain: bool) -> tuple[Callable[[torch.Tensor], torch.Tensor], bool]:
    """The approximation of gelu in a random form, and whether it is right. If not, one number or tensor differs."""
    wrong = None if plain else rng.choice([None, None, "half", "one", "cubic", "slope", "power", "outer", "minus"])
    half, one, cubic, slope = (
        value * (1.01 if wrong == name else 1.0)
        for name, value in (("half", 0.5), ("one", 1.0), ("cubic", 0.044715), ("slope", math.sqrt(2 / math.pi)))
    )
    cube = rng.choice([lambda x: x**3, lambda x: x * x * x, lambda x: x * (x * x), lambda x: torch.pow(x, 2) * x])
    inner = [
        lambda x: slope * (x + cubic * cube(x)), lambda x: slope * x + cubic * slope * cube(x),
        lambda x: slope * x * (1.0 + cubic * x * x), lambda x: (cube(x) * cubic + x) * slope,
    ]  # fmt: skip
    argument = {"power": lambda x: slope * (x + cubic * x * x), "minus": lambda x: slope * (x + cubic * -cube(x))}
    z = argument[wrong] if wrong in argument else rng.choice(inner)
    outer = (lambda x: x + 0.25) if wrong == "outer" else (lambda x: x)
    forms = [
        lambda x: half * outer(x) * (one + torch.tanh(z(x))), lambda x: outer(x) * half * (torch.tanh(z(x)) + one),
        lambda x: outer(x) * (half * (one + torch.tanh(z(x)))), lambda x: (one + torch.tanh(z(x))) * (half * outer(x)),
    ]  # fmt: skip
    return rng.choice(forms), wrong is None


@pytest.mark.parametrize("seed", range(24))
def test_gelus_with_tanh(seed: int) -> None:
    """The values reach to where the tanh is -1 or 1. With a second reader of the product, the gelu stays."""
    rng, _ = random.Random(seed), torch.manual_seed(seed)
    apply, fits = gelu_with_tanh(rng, plain=seed < 4)
    dtype, read_twice = rng.choice([torch.float32, torch.bfloat16]), seed >= 4 and rng.random() < 0.3
    linear = torch.nn.Linear(32, 32, bias=rng.random() < 0.5).to(dtype)

    def model(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = linear(x)
        return (apply(y), y) if read_twice else (apply(y),)

    ops = compiled(model, torch.randn(5, 32).to(dtype) * 8)
    activations = [record.get("activation") for _, record in ops]
    assert ("gelu_tanh" in activations) == (fits and not read_twice), (activations, names(ops))


class Gated(torch.nn.Module):
    """A product whose columns are read by two or three slices: next to each other, apart, or shared, in any order."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(24, 64, bias=rng.random() < 0.5)
        self.parts = rng.choice([[(0, 32), (32, 64)], [(32, 64), (0, 32)], [(0, 7), (7, 64)], [(9, 20), (30, 64)],
                                 [(0, 33), (32, 64)], [(0, 32), (0, 32)], [(0, 20), (20, 40), (40, 64)]])  # fmt: skip
        self.whole, self.rows = rng.random() < 0.15, rng.choice([5, 5, 5, 4])
        self.activation = rng.choice([F.silu, F.gelu, torch.sigmoid, lambda x: F.gelu(x, approximate="tanh")])
        disjoint = [end <= begin for (_, end), (begin, _) in itertools.pairwise(sorted(self.parts))]
        self.fits = disjoint == [True] and not self.whole and self.rows == 5

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        y = self.linear(x)
        first, *others = [y[: self.rows if i == 1 else 5, begin:end] for i, (begin, end) in enumerate(self.parts)]
        return [self.activation(first), *others, *([y] if self.whole else [])]


@pytest.mark.parametrize("seed", range(16))
def test_gates(seed: int) -> None:
    torch.manual_seed(seed)
    model = Gated(random.Random(seed)).eval()
    dtype = torch.bfloat16 if seed % 3 == 0 else torch.float32
    found = names(compiled(model.to(dtype), torch.randn(5, 24).to(dtype)))
    products = found.count("LinearOp") + found.count("MatmulOp")
    assert products == (2 if model.fits else 1), (model.parts, found)


@pytest.mark.parametrize("seed", range(16))
def test_residuals(seed: int) -> None:
    """A product plus a residual, a vector, a column, or a value that all batches or all rows share."""
    rng, _ = random.Random(seed), torch.manual_seed(seed)
    rows, dtype = rng.choice([1, 31, 32, 33, 70]), rng.choice([torch.float32, torch.bfloat16])
    sizes = [(2, rows, 24), (rows, 24), (24,), (2, rows, 1), (1, rows, 24), (2, 1, 24)]
    size = sizes[0] if seed < 6 else rng.choice(sizes)
    layer, twice, first = torch.nn.Linear(24, 24, rng.random() < 0.3).to(dtype), rng.random() < 0.3, rng.random() < 0.5
    after = rng.choice([lambda y: y, torch.relu, F.silu])

    def model(x: torch.Tensor, other: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = layer(x)
        total = other + y if first else y + other
        return after(total), *([y] if twice else [])

    ops = compiled(model, torch.randn(2, rows, 24).to(dtype), torch.randn(size).to(dtype))
    (product,) = [record for name, record in ops if name in ("LinearOp", "MatmulOp")]
    bias = product["bias"]["desc"]["shape"] if product.get("bias") else None
    fits = size == sizes[0] and rows > 32 and layer.bias is None and not twice
    assert (bias == [2, rows, 24]) == fits, (size, rows, bias)


class NormOfHeads(torch.nn.Module):
    """The RMS norm in float32 of bfloat16 heads. They move before or after it, or change between the cast and it."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(24, 64).bfloat16()
        self.weight = torch.nn.Parameter(torch.rand(32).to(rng.choice([torch.float32, torch.bfloat16])))
        self.before, self.narrow_first, self.scale = rng.random() < 0.5, rng.random() < 0.5, rng.random() < 0.3
        self.fits = not self.scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        heads = self.linear(x).view(2, 5, 2, 32)
        heads = heads.transpose(1, 2) if self.before else heads
        wide = heads.float() * (1.1 if self.scale else 1.0)
        wide = wide * torch.rsqrt((wide * wide).mean(-1, keepdim=True) + 1e-5)
        normed = wide.bfloat16() * self.weight.bfloat16() if self.narrow_first else (wide * self.weight).bfloat16()
        return normed if self.before else normed.transpose(1, 2)


@pytest.mark.parametrize("seed", range(12))
def test_norms_of_heads(seed: int) -> None:
    """The norm reads bfloat16, unless something is computed in float32 before it."""
    torch.manual_seed(seed)
    model = NormOfHeads(random.Random(seed)).eval()
    ((_, norm),) = [op for op in compiled(model, torch.randn(2, 5, 24).bfloat16()) if op[0] == "RMSNormOp"]
    dtype = norm["input"]["desc"]["layout"]["memory_desc"]["data_type"]
    assert dtype == ("BFloat16" if model.fits else "Float32")


@pytest.mark.parametrize("seed", range(12))
def test_scaled_queries(seed: int) -> None:
    """A number, or an input, times query, key or value: before, between or after the moves that split its heads."""
    rng, _ = random.Random(seed), torch.manual_seed(seed)
    number, place, part = rng.choice([0.25, -0.5, 3.0, None]), rng.randrange(3), rng.choice("qqqkv")
    dtype, scale = rng.choice([torch.float32, torch.bfloat16]), rng.choice([None, 1.0, 0.3])

    def model(factor: torch.Tensor, *inputs: torch.Tensor) -> torch.Tensor:
        parts = []
        for name, x in zip("qkv", inputs, strict=True):
            for i, move in enumerate((lambda y: y.view(2, 5, 2, 32), lambda y: y.transpose(1, 2), lambda y: y)):
                scaled = name == part and i == place
                x = move(x * (factor if number is None else number) if scaled else x)
            parts.append(x)
        return F.scaled_dot_product_attention(*parts, scale=scale)

    found = names(compiled(model, *(torch.randn(size).to(dtype) for size in ((), *[(2, 5, 64)] * 3))))
    if dtype == torch.bfloat16:
        assert ("EltwiseBinaryOp" in found) == (part != "q" or number is None), (place, part, number, found)


def repetitions() -> Iterator[tuple[str, Callable[[torch.Tensor], torch.Tensor], bool]]:
    yield "interleave", lambda x: x.repeat_interleave(3, 1), True
    yield "expand", lambda x: x[:, :, None].expand(2, 2, 3, 7, 32).reshape(2, 6, 7, 32), True
    yield "whole", lambda x: x.repeat(1, 3, 1, 1), False
    yield "expand whole", lambda x: x[:, None].expand(2, 3, 2, 7, 32).reshape(2, 6, 7, 32), False
    yield "rows", lambda x: x.repeat_interleave(3, 2).reshape(2, 6, 7, 32), False


@pytest.mark.parametrize(("repeat", "fits"), [pytest.param(r, f, id=n) for n, r, f in repetitions()])
def test_repeated_heads(repeat: Callable[[torch.Tensor], torch.Tensor], fits: bool) -> None:
    query, key, value = (torch.randn(2, heads, 7, 32).bfloat16() for heads in (6, 2, 2))
    ops = compiled(lambda q, k, v: F.scaled_dot_product_attention(q, repeat(k), repeat(v)), query, key, value)
    ((_, attention),) = [op for op in ops if op[0].endswith(ATTENTION)]
    assert attention["key"]["desc"]["shape"][1] == (2 if fits else 6)


@pytest.mark.parametrize("seed", seeds(6, 16))
def test_grouped_heads_in_steps(seed: int) -> None:
    """Attention of float32 with fewer heads of keys, and masks that are shared by heads, rows or batches, or not."""
    rng, _ = random.Random(seed), torch.manual_seed(seed)
    batch, own, group = rng.choice([1, 2]), rng.choice([1, 2, 3]), rng.choice([2, 4])
    rows, columns = rng.choice([1, 5, 32, 40]), rng.choice([5, 32, 40])
    causal, masked = rng.random() < 0.3, rng.random() < 0.8
    kinds = [(batch, own * group, rows, 32), (batch, own, columns, 32), (batch, own, columns, rng.choice([16, 32]))]
    if masked and not causal:
        kinds.append((rng.choice([1, batch]), rng.choice([1, own * group]), rng.choice([1, rows]), columns))

    def model(*parts: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(*parts, is_causal=causal, enable_gqa=True)

    compiled(model, *(torch.randn(kind) for kind in kinds))


@pytest.mark.parametrize("seed", range(20))
def test_masks(seed: int) -> None:
    """The fused op takes all masks. It gets no mask if a constant mask hides nothing, or if it hides all later keys.

    A key may be hidden by a boolean, by -inf or by the lowest number of a type; almost causal masks stay masks.
    """
    rng, _ = random.Random(seed), torch.manual_seed(seed)
    rows, columns = rng.choice([(6, 6), (6, 6), (6, 9), (9, 6)])
    sees = torch.ones(rows, columns, dtype=torch.bool)
    plain = rng.random() < 0.3
    sees = sees if plain else sees.tril(rng.choice([0, 0, 0, 1, -1] if rows == columns else [0]))
    sees[-1, 0] = sees[-1, 0] and rng.random() < 0.8
    hidden, shown = rng.choice([-math.inf, -3.39e38, -3.4028e38, -1e4]), rng.choice([0.0, 0.0, 0.0, 1.0])
    number = torch.where(sees, shown, hidden).bfloat16()
    boolean, spread = rng.random() < 0.5, rng.choice([lambda m: m, lambda m: m.expand(2, 1, rows, columns)])
    given = sees if boolean else number
    elements = given.tolist()  # a tensor of another scope is no constant: somebody may write to it

    def model(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        mask = spread(torch.tensor(elements, dtype=given.dtype))
        return F.scaled_dot_product_attention(q, k, k, attn_mask=mask)

    sizes = [(2, 3, rows, 32), (2, 3, columns, 32)]
    ((_, attention),) = [
        op for op in compiled(model, *(torch.randn(s).bfloat16() for s in sizes)) if ATTENTION in op[0]
    ]
    usual = boolean or (shown == 0 and hidden < -1e38)
    causal = rows == columns and usual and torch.equal(sees, torch.ones_like(sees).tril())
    without = causal or bool(sees.all() if boolean else (number == 0).all())
    assert (attention["is_causal"], attention.get("attention_mask") is None) == (causal, without), (given, attention)
