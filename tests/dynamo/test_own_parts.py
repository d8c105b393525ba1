"""Each chip computes its own part of functions of positions. The values equal a part of the whole function's values."""

import random

import pytest
import torch
from torch.fx import GraphModule

from tt_torch.dynamo import mesh_ops
from tt_torch.dynamo.own_parts import PARTITION, compute_own_parts
from tt_torch.torch_private.tracing import make_fx

aten = torch.ops.aten
MESH = (2, 4)


class OfChip(torch.fx.Interpreter):
    """Runs a graph as one chip of the mesh does."""

    def __init__(self, gm, place):
        super().__init__(gm)
        self.place = place

    def call_function(self, target, args, kwargs):
        if target is not PARTITION:
            return super().call_function(target, args, kwargs)
        row, column = divmod(self.place, MESH[1])
        along = {(0,): row, (1,): column, (0, 1): self.place}[tuple(kwargs["axes"])]
        return args[0].chunk(kwargs["count"], kwargs["dim"])[along]


def partition(x, dim, axes):
    return PARTITION(x, dim=dim, axes=axes, count=mesh_ops.chips_along(axes, MESH))


class Program:
    """A random function of positions and one number, whose parts are taken at the end, or in the middle."""

    def __init__(self, seed):
        self.seed = seed

    def __call__(self, number):
        choose = random.Random(self.seed)
        sizes = [choose.choice([8, 16]) for _ in range(choose.randint(1, 3))]
        ranks = range(len(sizes))
        values = [torch.arange(sizes[d]).reshape([-1 if i == d else 1 for i in ranks]) for d in ranks]
        values.append(number.expand(sizes) if choose.random() < 0.3 else number)
        for _ in range(choose.randint(2, 8)):
            x, y = choose.choice(values), choose.choice(values)
            values.append(
                choose.choice(
                    [
                        lambda x=x, y=y: x + y,
                        lambda x=x, y=y: torch.where(x > 3, y, x * 2),
                        lambda x=x: (x ^ (x * 5)) * 3,
                        lambda x=x: x.unsqueeze(0).clone().squeeze(0),
                        lambda x=x: x.flip(0) if x.dim() else x,
                        lambda x=x: x.tril() if x.dim() > 1 else x,
                        lambda x=x: x.cumsum(-1) if x.dim() else x,
                        lambda x=x: x.to(torch.float32).to(torch.int64),
                    ]
                )()
            )
        x = sum(values)
        for _ in range(choose.randint(1, 2)):
            dims = [d for d in range(x.dim()) if x.shape[d] % 8 == 0]
            if dims:
                x = partition(x, choose.choice(dims), choose.choice([[0], [1], [0, 1]]))
        return x


def traced(program):
    return make_fx(program, tracing_mode="fake")(torch.tensor(5))


@pytest.mark.parametrize("seed", range(60))
def test_the_parts_of_random_functions(seed):
    before, after = traced(Program(seed)), traced(Program(seed))
    compute_own_parts(after.graph)
    after.graph.lint()
    after = GraphModule(after, after.graph)
    for place in range(8):
        expected = OfChip(before, place).run(torch.tensor(5))
        assert torch.equal(OfChip(after, place).run(torch.tensor(5)), expected)


def test_only_positions_are_split():
    def hashed(number):
        x = torch.arange(4).reshape(4, 1) * 8 + torch.arange(8) + number
        return partition((x ^ (x * 7)) * x, 1, [1])

    gm = traced(hashed)
    compute_own_parts(gm.graph)
    gm.graph.eliminate_dead_code()
    (split,) = gm.graph.find_nodes(op="call_function", target=PARTITION)
    assert split.args[0].target is aten.arange.default
    assert max(n.meta["val"].numel() for n in gm.graph.nodes if n.op == "call_function") == 8


def test_what_depends_on_places_is_computed_whole():
    gm = traced(lambda number: partition(torch.ones(8, 8, dtype=torch.int64).tril(), 0, [0]))
    compute_own_parts(gm.graph)
    (split,) = gm.graph.find_nodes(op="call_function", target=PARTITION)
    assert split.args[0].target is aten.tril.default


def test_inputs_stay_whole():
    gm = make_fx(lambda x: partition(x * 2, 0, [0]), tracing_mode="fake")(torch.ones(8))
    compute_own_parts(gm.graph)
    (split,) = gm.graph.find_nodes(op="call_function", target=PARTITION)
    assert split.args[0].target is aten.mul.Tensor
