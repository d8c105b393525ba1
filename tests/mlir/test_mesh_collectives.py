"""Collectives of StableHLO on a mesh, compared with their specification, and with StableHLO's interpreter.

The interpreter runs each chip in a thread of its own, and has as many threads as the machine has cores. In a
reduce_scatter, its threads sometimes wait for each other without end. Then the interpreter ends the process.
"""

import os
from itertools import product
from math import prod

import pytest
import torch
from interpreter import drawn
from mesh_programs import LINES, OPS, function, groups, listed, program, ring
from torch_mlir import ir
from torch_mlir._mlir_libs import _stablehlo

from tt_torch.bringup.interpret import attribute, tensor
from tt_torch.config import CompilerConfig
from tt_torch.driver.compile import compile_module
from tt_torch.mlir.context import make_context
from tt_torch.mlir.functions import main
from tt_torch.mlir.mesh import set_mesh
from tt_torch.runtime import Binary, Device
from tt_torch.runtime.mesh_executable import MeshExecutable

MESHES = [(1, 2), (2, 1), (2, 2), (2, 3)]
COMBINE = {
    "add": torch.add, "maximum": torch.maximum, "minimum": torch.minimum, "multiply": torch.mul,
    "and": torch.bitwise_and, "or": torch.bitwise_or, "xor": torch.bitwise_xor,
}  # fmt: skip


def compiled(text, mesh):
    """The program of a module for a mesh, and the values of its chips."""
    with make_context():
        module = ir.Module.parse(text)
        set_mesh(module, mesh)
        (argument,) = main(module).arguments
        values = [drawn(argument.type) for _ in range(prod(mesh))]
        return Binary(compile_module(module, CompilerConfig(verify_ir=True))), values


def run(binary, mesh, values, dtype):
    """The results of all chips, one after the other."""
    executable = MeshExecutable(binary, 0, Device(mesh_shape=mesh))
    results = [torch.empty(executable.outputs[0].shape, dtype=dtype) for _ in values]
    executable._impl.run(values, None, results)
    return results


def interpreted(text, mesh, values):
    """Each chip is a partition of the interpreter."""
    n = prod(mesh)
    with make_context() as context:
        context.enable_multithreading(True)  # the interpreter has a thread per chip, which all make attributes
        _stablehlo.register_interpreter_dialect(context)
        chip = main(ir.Module.parse(text))
        (given,), (made,) = ([str(kind) for kind in kinds] for kinds in (chip.type.inputs, chip.type.results))
        names, returned = ", ".join(f"%a{i}" for i in range(n)), ", ".join([made] * n)
        module = ir.Module.parse(f"""module {{
          {text.replace("@main", "@chip")}
          func.func @main({", ".join(f"%a{i}: {given}" for i in range(n))}) -> ({returned}) {{
            %r:{n} = "interpreter.run_parallel"({names}) {{programs = [[{", ".join(["@chip"] * n)}]]}}
              : ({", ".join([given] * n)}) -> ({returned})
            return {", ".join(f"%r#{i}" for i in range(n))} : {returned} }} }}""")
        (kind, *_) = (argument.type for argument in main(module).arguments)
        return [tensor(x) for x in _stablehlo.eval_module(module, [attribute(x, kind) for x in values])]


def combined(combining, values, mesh, line):
    """Combines values in the order of the chips, and rounds after each one. For all chips, it first combines the values
    of each column, and then the results of the columns."""
    if line == "all" and min(mesh) > 1:
        columns = [values[column :: mesh[1]] for column in range(mesh[1])]
        values = [combined(combining, column, mesh, "columns") for column in columns]
    total = values[0]
    for value in values[1:]:
        total = COMBINE[combining](total, value)
    return total


def specified(op, mesh, line, combining, values):
    """The result of each chip."""
    results = [torch.zeros_like(values[0])] * prod(mesh)
    if op == "collective_permute":
        for source, target in ring(mesh, line):
            results[target] = values[source]
        return results
    for group in groups(mesh, line):
        own = [values[chip] for chip in group]
        for i, chip in enumerate(group):
            if op == "all_gather":
                results[chip] = torch.cat(own, 1)
            elif op == "all_to_all":
                results[chip] = torch.cat([x.chunk(len(group), 0)[i] for x in own], 1)
            elif op == "collective_broadcast":
                results[chip] = own[0]
            else:
                total = combined(combining, own, mesh, line)
                results[chip] = total if op == "all_reduce" else total.chunk(len(group), 0)[i]
    return results


def assert_equal(got, expected):
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def agrees(op, mesh, line, element="f32", combining="add", sizes=(12, 12)):
    text = program(op, mesh, line, element, combining, sizes)
    binary, values = compiled(text, mesh)
    wide = [x.long() if element == "ui32" else x for x in values]  # PyTorch has few ops for uint32
    expected = specified(op, mesh, line, combining, wide)
    if op != "reduce_scatter" and prod(mesh) <= (os.cpu_count() or 1):
        found = interpreted(text, mesh, values)
        assert_equal([x.long() if element == "ui32" else x for x in found], expected)
    assert_equal(run(binary, mesh, values, expected[0].dtype), expected)


@pytest.mark.parametrize("op, mesh, line", list(product(OPS, MESHES, LINES)))
def test_values(op, mesh, line):
    agrees(op, mesh, line)


@pytest.mark.parametrize("op, element", list(product(OPS, ["bf16", "i32", "ui32", "i8", "ui8", "i1"])))
@pytest.mark.parametrize("mesh", [(1, 2), (2, 2)])
def test_types(op, element, mesh):
    agrees(op, mesh, "all", element, "or" if element == "i1" else "add")


@pytest.mark.parametrize("element", ["i8", "ui8", "i16"])
def test_sums_of_small_integers_wrap(element):
    """The sum also wraps inside of a program. Here, it is divided after it has wrapped."""
    operand = f"tensor<64x{element}>"
    body = f"""%s = "stablehlo.all_reduce"(%x) ({{ ^bb0(%a: tensor<{element}>, %b: tensor<{element}>):
        %c = stablehlo.add %a, %b : tensor<{element}>
        stablehlo.return %c : tensor<{element}> }}) {{replica_groups = {listed([[0, 1]])}}} : ({operand}) -> {operand}
      %two = stablehlo.constant dense<2> : {operand}
      %r = stablehlo.divide %s, %two : {operand}"""
    binary, values = compiled(function(body, operand, operand), (1, 2))
    dtype = values[0].dtype
    values = [torch.randint(torch.iinfo(dtype).min, torch.iinfo(dtype).max + 1, (64,)).to(dtype) for _ in range(2)]
    assert_equal(run(binary, (1, 2), values, dtype), [torch.div(sum(values), 2, rounding_mode="trunc")] * 2)


@pytest.mark.parametrize("combining", ["maximum", "minimum", "multiply", "and", "or", "xor"])
@pytest.mark.parametrize("op", ["all_reduce", "reduce_scatter"])
def test_reductions(op, combining):
    agrees(op, (1, 2), "rows", "i32" if combining in ("and", "or", "xor") else "f32", combining)


@pytest.mark.parametrize("mesh", MESHES)
def test_numbers_of_chips(mesh):
    body = """%p = stablehlo.partition_id : tensor<ui32>
              %w = stablehlo.broadcast_in_dim %p, dims = [] : (tensor<ui32>) -> tensor<3xui32>
              %r = stablehlo.add %w, %x : tensor<3xui32>"""
    binary, values = compiled(function(body, "tensor<3xui32>", "tensor<3xui32>"), mesh)
    expected = [x.to(torch.int64) + chip for chip, x in enumerate(values)]
    assert_equal(run(binary, mesh, values, torch.int64), expected)


def test_constants_that_chips_exchange_are_no_constants():
    """A value that depends on weights alone is computed once for each chip. A sum over chips is not."""
    operand = "tensor<4x6xf32>"
    text = f"""func.func @main(%x: {operand}, %w: {operand} {{ttcore.argument_type = "parameter"}}) -> {operand} {{
      %e = stablehlo.exponential %w : {operand}
      %s = "stablehlo.all_reduce"(%e) ({{ ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %t = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %t : tensor<f32> }}) {{replica_groups = {listed([[0, 1]])}}} : ({operand}) -> {operand}
      %r = stablehlo.add %x, %s : {operand}
      return %r : {operand} }}"""
    with make_context():
        module = ir.Module.parse(text)
        set_mesh(module, (1, 2))
        binary = Binary(compile_module(module, CompilerConfig()))
    assert [program.mesh_shape for program in binary.programs] == [[1, 2]] * 2
    executable = MeshExecutable(binary, 0, Device(mesh_shape=(1, 2)), [(None, 0), (None, 1)], [(None, 0)])
    for seed in range(2):
        torch.manual_seed(seed)
        x, w = torch.randn(8, 6), torch.randn(4, 12)
        expected = x + w.exp().view(4, 2, 6).sum(1).repeat(2, 1)
        for _ in range(2):
            torch.testing.assert_close(executable([x, w], (1,))[0], expected)
