"""The binary of a TTNN module: program order, cached results, hashes."""

from __future__ import annotations

from torch_mlir import ir

from tt_torch.config import CompilerConfig
from tt_torch.mlir import pipeline
from tt_torch.mlir.context import make_context
from tt_torch.mlir.ttnn.to_binary import translate
from tt_torch.wire.decode import decode

KIND = 'tensor<2x3xf32> {ttcore.argument_type = "parameter"}'


def programs(*weights: str) -> list[dict]:
    """Programs of x * f(a) * g(b) * ..., `weights` being the text of f, g, ..., which const-eval hoists."""
    arguments = ", ".join(f"%w{i}: {KIND}" for i in range(len(weights)))
    tensor = "tensor<2x3xf32>"
    lines = [f"  %h{i} = {text.format(f'%w{i}')}" for i, text in enumerate(weights)]
    last = "%x"
    for i in range(len(weights)):
        lines.append(f'  %y{i} = "ttir.multiply"({last}, %h{i}) : ({tensor}, {tensor}) -> {tensor}')
        last = f"%y{i}"
    body = "\n".join([*lines, f"  return {last} : {tensor}"])
    text = f"func.func @main(%x: {tensor}, {arguments}) -> {tensor} {{\n{body}\n}}"
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


def test_inputs_and_outputs_of_cached_programs_fit():
    main, first, _ = programs(unary("exp"), unary("neg"))
    load = cached(main)[0]
    assert load["inputs"] == [main["inputs"][1]]
    assert [t["desc"]["shape"] for t in load["outputs"]] == [t["desc"]["shape"] for t in first["outputs"]]


def test_tensor_ids_are_unique_in_the_binary():
    ids = [t["global_id"] for p in programs(unary("exp"), unary("neg")) for t in p["inputs"]]
    assert len(ids) == len(set(ids)) and 0 not in ids


def test_equal_hashes_mean_equal_functions():
    one, other, same = (load["program_hash"] for load in cached(programs(*map(unary, ("exp", "neg", "exp")))[0]))
    assert one == same != other


def test_the_text_of_each_op_is_its_own():
    main = programs(unary("exp"))[0]
    for op in main["operations"]:
        name = op["debug_info"].split('"ttnn.')[-1].split('"')[0]
        if '"ttnn.' in op["debug_info"]:
            assert name.replace("_", "") in next(iter(op["type"])).lower() or "Eltwise" in next(iter(op["type"]))
