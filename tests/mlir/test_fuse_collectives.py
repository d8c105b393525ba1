"""Random programs of collectives: what each chip gets is compared with PyTorch's ops on the values of all chips.

Values are small integers in floating point, so that sums have no rounding and all results must be equal.
"""

import random
from math import prod

import pytest
import torch
from mesh_programs import CHANNEL, LINES, groups, listed, shaped
from torch_mlir import ir

from tt_torch.config import CompilerConfig
from tt_torch.driver.compile import compile_module
from tt_torch.mlir.context import make_context
from tt_torch.mlir.mesh import set_mesh
from tt_torch.runtime import Binary, Device
from tt_torch.runtime.mesh_executable import MeshExecutable
from tt_torch.wire.calls import op_histogram
from tt_torch.wire.decode import decode

KINDS = {torch.float32: "f32", torch.bfloat16: "bf16"}
LARGEST = 4096  # elements of a value


class Program:
    """A program of StableHLO that is written op by op, and what each chip has after each op."""

    def __init__(self, mesh, sizes=(4, 6, 8)):
        self.mesh, self.lines = mesh, []
        self.inputs = [torch.randint(-2, 3, sizes).float() for _ in range(prod(mesh))]
        self.values = {"%x": self.inputs}

    def op(self, text, result):
        """Adds an op. `text` lacks the type of the op's result, and `result` is the result on each chip."""
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {text} -> {self.type(result)}")
        self.values[name] = result
        return name

    def type(self, values):
        return shaped(values[0].shape, KINDS[values[0].dtype])

    def of(self, *names):
        return f": ({', '.join(self.type(self.values[name]) for name in names)})"

    def collective(self, name, x, line, attributes, result, sums=False):
        element = KINDS[self.values[x][0].dtype]
        body = f"""({{ ^bb0(%a: tensor<{element}>, %b: tensor<{element}>):
            %s = stablehlo.add %a, %b : tensor<{element}>
            stablehlo.return %s : tensor<{element}> }})"""
        where = f"replica_groups = {listed(groups(self.mesh, line))}, {CHANNEL}, use_global_device_ids"
        all_attributes = ", ".join([*attributes, where])
        text = f'"stablehlo.{name}"({x}) {body if sums else ""} {{ {all_attributes} }} {self.of(x)}'
        return self.op(text, result)

    def in_groups(self, x, line, function):
        """The result of each chip. `function` gets the values of the chip's group and the chip's place in the group."""
        results = [None] * prod(self.mesh)
        for group in groups(self.mesh, line):
            for place, chip in enumerate(group):
                results[chip] = function([self.values[x][other] for other in group], place)
        return results

    # --- ops

    def gather(self, x, line, dim):
        found = self.in_groups(x, line, lambda own, place: torch.cat(own, dim))
        return self.collective("all_gather", x, line, [f"all_gather_dim = {dim} : i64"], found)

    def total(self, x, line):
        return self.collective("all_reduce", x, line, [], self.in_groups(x, line, lambda own, _: sum(own)), sums=True)

    def scatter(self, x, line, dim):
        found = self.in_groups(x, line, lambda own, place: sum(own).chunk(len(own), dim)[place])
        return self.collective("reduce_scatter", x, line, [f"scatter_dimension = {dim} : i64"], found, sums=True)

    def partition(self, x, line, dim):
        axes = {"rows": [1], "columns": [0], "all": [0, 1]}[line]
        axes = str([axis for axis in axes if self.mesh[axis] > 1]).strip("[]")
        found = self.in_groups(x, line, lambda own, place: own[place].chunk(len(own), dim)[place])
        named = f"mhlo.frontend_attributes = {{dim = {dim} : i64, axes = array<i64: {axes}>}}"
        call = f'call_target_name = "tt_mesh.mesh_partition", {named}'
        return self.op(f'"stablehlo.custom_call"({x}) {{ {call} }} {self.of(x)}', found)

    def exchange(self, x, line, split, join):
        count = len(groups(self.mesh, line)[0])
        found = self.in_groups(x, line, lambda own, place: torch.cat([v.chunk(count, split)[place] for v in own], join))
        where = f"replica_groups = {listed(groups(self.mesh, line))}, {CHANNEL}"
        named = (
            f"split_dimension = {split} : i64, concat_dimension = {join} : i64, split_count = {count} : i64, {where}"
        )
        return self.op(f'"stablehlo.all_to_all"({x}) {{ {named} }} {self.of(x)}', found)

    def first(self, x, line):
        where = f"replica_groups = {listed(groups(self.mesh, line))}, {CHANNEL}"
        found = self.in_groups(x, line, lambda own, place: own[0])
        return self.op(f'"stablehlo.collective_broadcast"({x}) {{ {where} }} {self.of(x)}', found)

    def shard(self, x, line, dim, direction):
        """The own part of a chip, or the parts of the chips, as `shard_map` of JAX has them."""
        split = [dim if axis in {"rows": [1], "columns": [0], "all": [0, 1]}[line] else -1 for axis in (0, 1)]
        take = {"full_to_shard": lambda own, place: own[place].chunk(len(own), dim)[place],
                "shard_to_full": lambda own, place: torch.cat(own, dim)}[direction]  # fmt: skip
        shards = f'shard_direction = "{direction}", shard_dims = array<i64: {str(split).strip("[]")}>'
        call = f'call_target_name = "tt_mesh.mesh_shard", mhlo.frontend_attributes = {{{shards}}}'
        return self.op(f'"stablehlo.custom_call"({x}) {{ {call} }} {self.of(x)}', self.in_groups(x, line, take))

    def cut(self, x, count, dim):
        """Cuts a value into `count` equal slices along a dimension, and returns their names."""
        size, names = self.values[x][0].shape[dim] // count, []
        for i in range(count):
            spans = [f"0:{n}" for n in self.values[x][0].shape]
            spans[dim] = f"{i * size}:{(i + 1) * size}"
            result = [value.narrow(dim, i * size, size) for value in self.values[x]]
            names.append(self.op(f"stablehlo.slice {x} [{', '.join(spans)}] {self.of(x)}", result))
        return names

    def join(self, names, dim):
        result = [torch.cat(parts, dim) for parts in zip(*(self.values[name] for name in names), strict=True)]
        return self.op(f"stablehlo.concatenate {', '.join(names)}, dim = {dim} {self.of(*names)}", result)

    def cast(self, x):
        target = {torch.float32: torch.bfloat16, torch.bfloat16: torch.float32}[self.values[x][0].dtype]
        return self.op(f"stablehlo.convert {x} {self.of(x)}", [value.to(target) for value in self.values[x]])

    def add(self, x, y):
        result = [a + b for a, b in zip(self.values[x], self.values[y], strict=True)]
        return self.op(f'"stablehlo.add"({x}, {y}) {self.of(x, y)}', result)

    def reduce(self, x, dim):
        """The sum along a dimension, which keeps the size 1."""
        element, sums = KINDS[self.values[x][0].dtype], [value.sum(dim) for value in self.values[x]]
        self.lines.append(f"%zero{len(self.lines)} = stablehlo.constant dense<0.0> : tensor<{element}>")
        zero = f"%zero{len(self.lines) - 1}"
        kinds = f": ({self.type(self.values[x])}, tensor<{element}>)"
        total = self.op(
            f"stablehlo.reduce({x} init: {zero}) applies stablehlo.add across dimensions = [{dim}] {kinds}", sums
        )
        return self.op(f"stablehlo.reshape {total} {self.of(total)}", [value.unsqueeze(dim) for value in sums])

    # --- the whole program

    def text(self, result):
        body, kind = "\n".join(self.lines), self.type(self.values[result])
        return f"func.func @main(%x: {self.type(self.inputs)}) -> {kind} {{ {body}\n return {result} : {kind} }}"

    def check(self, result):
        """Compiles the program and compares what each chip returns. Returns how many device ops it has of each kind."""
        with make_context():
            module = ir.Module.parse(self.text(result))
            set_mesh(module, self.mesh)
            compiled = compile_module(module, CompilerConfig(verify_ir=True))
        executable, expected = MeshExecutable(Binary(compiled), 0, Device(mesh_shape=self.mesh)), self.values[result]
        found = [torch.empty_like(value, memory_format=torch.contiguous_format) for value in expected]
        executable._impl.run(self.inputs, None, found)
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=0)
        return op_histogram(decode(compiled))


KINDS_OF_OPS = (
    "gather joined total scatter scattered partition part reduced cast sums both exchange first full_to_shard "
    "shard_to_full"
).split()


def grown(program, x, draw):
    """A random op after the value `x`; None if it does not fit."""
    value, line = program.values[x][0], draw.choice(LINES)
    chips, dim, other = len(groups(program.mesh, line)[0]), draw.randrange(3), draw.randrange(3)
    small, fits = value.numel() * chips <= LARGEST, value.shape[dim] % chips == 0
    kind = draw.choice(KINDS_OF_OPS)
    if kind == "reduced" and small:
        return program.reduce(program.gather(x, line, dim), draw.choice([dim, other]))
    if kind == "part" and fits and chips > 1:
        whole = program.total(x, draw.choice(LINES)) if draw.random() < 0.5 else program.gather(x, line, dim)
        return program.partition(whole, line, dim)
    if kind in ("gather", "joined") and small:
        gathered = program.gather(x, line, dim)
        return gathered if kind == "gather" else program.join(program.cut(gathered, chips, dim), other)
    if kind == "scattered" and fits:
        return program.scatter(program.join(program.cut(x, chips, dim), other), line, other)
    if kind in ("scatter", "partition") and fits and chips > 1:
        return getattr(program, kind)(x, line, dim)
    if kind == "exchange" and fits:
        return program.exchange(x, line, dim, other)
    if kind in ("full_to_shard", "shard_to_full") and (fits if kind == "full_to_shard" else small):
        return program.shard(x, line, dim, kind)
    if kind == "first":
        return program.first(x, line)
    if kind == "sums":
        return program.add(program.total(x, line), program.total(program.add(x, x), draw.choice(LINES)))
    if kind == "both":
        return program.add(program.add(x, program.total(x, line)), program.total(program.add(x, x), line))
    return program.total(x, line) if kind == "total" else program.cast(x) if kind == "cast" else None


def run_random(seed):
    draw = random.Random(seed)
    torch.manual_seed(seed)
    program = Program(draw.choice([(1, 2), (2, 1), (2, 2), (2, 3), (1, 4)]), (12, 12, 4))
    x = "%x"
    for _ in range(draw.randrange(2, 7)):
        x = grown(program, x, draw) or x
        if max(value.abs().max().item() for value in program.values[x]) > 64:
            break  # bfloat16 has all integers up to 256
    if x != "%x":
        program.check(x)


@pytest.mark.parametrize("seed", range(25))
def test_random_programs(seed):
    run_random(seed)


@pytest.mark.parametrize("dtype", KINDS.values())
def test_the_sums_of_what_was_gathered_cross_instead(dtype):
    program = Program((1, 2))
    x = "%x" if dtype == "f32" else program.cast("%x")
    ops = program.check(program.reduce(program.gather(x, "rows", 0), 0))
    assert (ops["AllReduceOp"], ops["AllGatherOp"]) == (1, 0)
