"""The translation of a TTNN module to the message of a binary: order of programs, const-eval programs, hashes, text."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
import torch
from torch_mlir import ir

from tt_torch.config import CompilerConfig
from tt_torch.driver.compile import compile_module
from tt_torch.mlir import pipeline
from tt_torch.mlir.context import make_context
from tt_torch.mlir.mesh import set_mesh
from tt_torch.mlir.ttnn import text
from tt_torch.mlir.ttnn.to_binary import translate
from tt_torch.wire.decode import decode

KIND = 'tensor<2x3xf32> {ttcore.argument_type = "parameter"}'


def programs(*weights: str) -> list[dict]:
    """The programs of x * f(a) * g(b) * ... `weights` has the texts of f, g, ..., which const-eval hoists from main."""
    arguments = ", ".join(f"%w{i}: {KIND}" for i in range(len(weights)))
    tensor = "tensor<2x3xf32>"
    lines = [f"  %h{i} = {text.format(f'%w{i}')}" for i, text in enumerate(weights)]
    last = "%x"
    for i in range(len(weights)):
        lines.append(f'  %y{i} = "ttir.multiply"({last}, %h{i}) : ({tensor}, {tensor}) -> {tensor}')
        last = f"%y{i}"
    body = "\n".join([*lines, f"  return {last} : {tensor}"])
    text = f"func.func public @main(%x: {tensor}, {arguments}) -> {tensor} {{\n{body}\n}}"
    with make_context():
        module = ir.Module.parse(text)
        pipeline.run_steps(module, pipeline.TO_TTNN, CompilerConfig(verify_ir=True), pipeline.Timings())
        return decode(translate(module, CompilerConfig()))["programs"]


def unary(name: str) -> str:
    return f'"ttir.{name}"({{}}) : (tensor<2x3xf32>) -> tensor<2x3xf32>'


def cached(program: dict) -> list[dict]:
    return [op["type"]["LoadCachedOp"] for op in program["operations"] if "LoadCachedOp" in op["type"]]


def test_the_public_program_comes_first_and_calls_the_others():
    main, *others = programs(unary("exp"), unary("neg"))
    assert [p["private"] for p in (main, *others)] == [False, True, True]
    loads = cached(main)
    assert [load["program_idx"] for load in loads] == [1, 2]
    assert [load["callee_name"] for load in loads] == [p["name"] for p in others]


def test_a_program_names_its_mesh_and_all_chips_at_first():
    kind = "tensor<2x3xf32>"
    with make_context():
        module = ir.Module.parse(f"func.func @main(%x: {kind}) -> {kind} {{ return %x : {kind} }}")
        set_mesh(module, (2, 3))
        (program,) = decode(compile_module(module, CompilerConfig()))["programs"]
    bound = program["operations"][0]["type"]["GetDeviceOp"]
    assert bound["mesh"] == program["mesh_shape"] == {"y": 2, "x": 3} and bound["chip_ids"] == [*range(6)]


def test_inputs_and_outputs_of_cached_programs_fit():
    main, first, _ = programs(unary("exp"), unary("neg"))
    load = cached(main)[0]
    assert load["inputs"] == [main["inputs"][1]]
    assert [t["desc"]["shape"] for t in load["outputs"]] == [t["desc"]["shape"] for t in first["outputs"]]


def test_inputs_and_temporaries_are_freed_and_cached_tensors_are_kept():
    (main, _) = programs(unary("exp"))
    ops = {name: record for op in main["operations"] for name, record in op["type"].items()}
    freed = [op["type"]["DeallocateOp"]["in"]["global_id"] for op in main["operations"] if "DeallocateOp" in op["type"]]
    assert freed == [main["inputs"][0]["global_id"], ops["ToLayoutOp"]["out"]["global_id"]]


def test_tensor_ids_are_unique_in_the_binary():
    ids = [t["global_id"] for p in programs(unary("exp"), unary("neg")) for t in p["inputs"]]
    assert len(ids) == len(set(ids)) and 0 not in ids


def test_equal_hashes_mean_equal_functions():
    one, other, same = (load["program_hash"] for load in cached(programs(*map(unary, ("exp", "neg", "exp")))[0]))
    assert one == same != other


def test_each_op_has_its_own_text():
    main, constants = programs(unary("exp"))
    shown = [
        (next(iter(op["type"])), re.sub(r"^%\d+ = |\(.*", "", op["debug_info"]))
        for program in (main, constants)
        for op in program["operations"]
    ]
    assert shown == [
        ("GetDeviceOp", ""),
        ("LoadCachedOp", "call @main_const_eval_0"),
        ("ToLayoutOp", '"ttnn.to_layout"'),
        ("DeallocateOp", '"ttnn.deallocate"'),
        ("EltwiseBinaryOp", '"ttnn.multiply"'),
        ("DeallocateOp", '"ttnn.deallocate"'),
        ("GetDeviceOp", ""),
        ("ToDeviceOp", '"ttnn.to_device"'),
        ("ToLayoutOp", '"ttnn.to_layout"'),
        ("EltwiseUnaryOp", '"ttnn.exp"'),
    ]


LAYOUTS = [
    f'#ttnn.layout<"{dtype}", "{pages}", "{buffer}", "{memory}", array<i64: {grid}>>'
    for dtype, pages, buffer, (memory, grid) in itertools.product(
        ("BFloat16", "BFP_BFloat8"),
        ("Tile", "RowMajor"),
        ("DRAM", "L1", "SystemMemory"),
        (("Interleaved", "1, 1"), ("Interleaved", "1, 11"), ("HeightSharded", "1, 1"), ("BlockSharded", "11, 1")),
    )
]


def all_layouts() -> ir.Module:
    """A function with one argument per layout, a constant of 17 elements, and locations."""
    arguments = ", ".join(f"%a{i}: tensor<2xbf16, {layout}>" for i, layout in enumerate(LAYOUTS))
    constant = f'"ttnn.constant"() {{input = dense<{list(range(17))}> : tensor<17xi32>}}'
    body = f'%0 = {constant} : () -> tensor<17xi32, {LAYOUTS[0]}> loc("n: aten.n"("a \\22b.py":1:2))\n    return'
    return ir.Module.parse(f"func.func @main({arguments}) {{\n    {body}\n  }}")


def test_the_text_of_a_module_is_the_module():
    with make_context():
        module = all_layouts()
        again = ir.Module.parse(text.of_module(module))
        shown = {"enable_debug_info": True, "large_elements_limit": 16}
        assert again.operation.get_asm(**shown) == module.operation.get_asm(**shown)


def test_each_layout_is_written_in_full_once_and_then_named():
    with make_context():
        source = text.of_module(all_layouts())
    assert source.count("#ttnn.layout<") == len(LAYOUTS)
    assert "%arg0: tensor<2xbf16, #BFloat16_Tile_DRAM>" in source
    assert "tensor<2xbf16, #BFP_BFloat8_RowMajor_L1_BlockSharded_11_1>" in source


def test_constants_are_left_out_of_the_text():
    with make_context():
        source = text.of_module(all_layouts())
        ((line, end),) = text.by_function(source, list(all_layouts().body.operations)).values()
    assert line.startswith('%0 = "ttnn.constant"() {input = dense_resource<__elided__>') and end == "return"


FOLDER = Path(torch.__file__).parent
TORCH, LIBRARY = (f'"{FOLDER}/f.py":9:0', '"/v/site-packages/transformers/m.py":7:0')


@pytest.mark.parametrize(
    ("frames", "kept"),
    [
        ([TORCH, LIBRARY, '"run.py":5:0', '"main.py":8:0'], '"run.py":5:0'),
        ([TORCH, LIBRARY, '"/v/site-packages/transformers/m.py":8:0'], LIBRARY),
        ([TORCH, f'"{FOLDER}/f.py":10:0'], TORCH),
    ],
)
def test_the_location_of_an_op_has_the_users_frame_and_the_module_has_all(frames, kept):
    chain = frames[-1]
    for frame in reversed(frames[:-1]):
        chain = f"callsite({frame} at {chain})"
    tensor = f"tensor<2x3xbf16, {LAYOUTS[0]}>"
    line = f'%0 = "ttnn.relu"(%x) : ({tensor}) -> {tensor} loc("relu_1: aten.relu"({chain}))'
    with make_context():
        module = ir.Module.parse(f"func.func @main(%x: {tensor}) -> {tensor} {{ {line}\n return %0 : {tensor} }}")
        message = decode(translate(module, CompilerConfig()))
    relu = message["programs"][0]["operations"][1]
    assert relu["loc_info"] == f'loc("relu_1: aten.relu"({kept}))'
    assert all(frame in message["mlir"]["source"] for frame in frames)
