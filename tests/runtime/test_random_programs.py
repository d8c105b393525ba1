"""Random programs compute the same as PyTorch, for all places of their values in memory and for all fusions.

All values are whole numbers, so results are exact.
"""

import random

import pytest
import torch
from programs import Maker

from tt_torch.runtime import Binary, Executable

SHAPES = [(8, 8), (4, 16), (2, 4, 8), (64,)]
TYPES = {torch.float32: "Float32", torch.int32: "Int32"}
UNARY = {"Neg": torch.neg, "Relu": torch.relu, "Abs": torch.abs, "Sign": torch.sign}
VIEWS = ("ReshapeOp", "PermuteOp", "ToLayoutOp", "TypecastOp")
BINARY = {"Add": torch.add, "Subtract": torch.sub}


class Program:
    """A random program. `maker` has its message, and `values` has each value with its tensor in PyTorch."""

    def __init__(self, seed):
        self.chance, self.maker = random.Random(seed), Maker()
        self.inputs = [
            torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(seed + i)).float()
            for i, shape in enumerate([(8, 8), *self.chance.choices(SHAPES, k=2)])
        ]
        self.values = [(self.maker.input(t.shape), t) for t in self.inputs]
        self.results = {}  # by the location of the op
        for _ in range(14):
            getattr(self, self.chance.choice(STEPS))()
        self.outputs = self.chance.choices(self.values, k=self.chance.randrange(1, 4))

    def pick(self, of=lambda t: True):
        return self.chance.choice([value for value in self.values if of(value[1])] or [self.values[-1]])

    def add(self, op, result, **fields):
        ref = self.maker.tensor(result.shape, TYPES[result.dtype])
        self.maker.op(op, out=ref, **fields)
        self.values.append((ref, result))
        self.results[self.maker.program["operations"][-1]["loc_info"]] = op, result

    def unary(self):
        ref, x = self.pick()
        name = self.chance.choice(list(UNARY))
        self.add("EltwiseUnaryOp", UNARY[name](x), type=name, **{"in": ref})

    def binary(self):
        first, a = self.pick()
        second, b = self.pick(lambda t: t.shape == a.shape and t.dtype == a.dtype)
        if a.shape == b.shape and a.dtype == b.dtype:
            name = self.chance.choice(list(BINARY))
            self.add("EltwiseBinaryOp", BINARY[name](a, b), type=name, lhs=first, rhs=second)

    def product(self):
        """Adds a product of small numbers, and then a unary or a binary op."""
        first, a = self.pick(lambda t: t.shape == (8, 8) and t.dtype == torch.float32 and t.abs().max() < 1000)
        second, b = self.values[0]
        if a.shape == (8, 8) and a.dtype == torch.float32 and a.abs().max() < 1000:
            self.add("MatmulOp", a @ b, a=first, b=second)
            self.chance.choice((self.unary, self.binary))()

    def reshape(self):
        ref, x = self.pick()
        self.add("ReshapeOp", x.reshape(self.chance.choice(SHAPES)), **{"in": ref})

    def permute(self):
        ref, x = self.pick()
        order = self.chance.sample(range(x.dim()), x.dim())
        self.add("PermuteOp", x.permute(order), permutation=order, **{"in": ref})

    def sums(self):
        """Adds an op whose kernel allocates its result."""
        ref, x = self.pick(lambda t: t.abs().max() < 1000)
        self.add("CumSumOp", x.cumsum(0).to(x.dtype), dim=0, **{"in": ref})

    def cast(self):
        ref, x = self.pick()
        self.add("TypecastOp", x.to(self.chance.choice(list(TYPES))), **{"in": ref})

    def same(self):
        ref, x = self.pick()
        self.add("ToLayoutOp", x, **{"in": ref})

    def free(self):
        if len(self.values) > 6:
            ref, _ = self.values.pop(self.chance.randrange(3, len(self.values)))
            self.maker.op("DeallocateOp", **{"in": ref}, force=False)


STEPS = [
    "unary",
    "unary",
    "binary",
    "binary",
    "binary",
    "product",
    "reshape",
    "permute",
    "sums",
    "cast",
    "same",
    "free",
]


@pytest.mark.parametrize("seed", range(150))
def test_random_programs(seed):
    program = Program(seed)
    executable = Executable(Binary(program.maker.binary(*(ref for ref, _ in program.outputs))))
    given = [x.clone() for x in program.inputs]
    for resident in ((), (), (0,), (0, 1, 2), ()):
        results = executable(given, resident)
        for got, (_, want) in zip(results, program.outputs, strict=True):
            assert got.dtype == want.dtype and torch.equal(got, want)
    seen = {}
    executable.set_callback(lambda op, where, info, name, outputs: seen.setdefault(where, (op, outputs[0].clone())))
    executable(given)
    for where, (op, want) in program.results.items():
        if op not in VIEWS or where in seen:  # a view of memory that never moves is made once, when the run is planned
            assert seen[where][0] == op and torch.equal(seen[where][1], want)
    assert all(map(torch.equal, given, program.inputs))
