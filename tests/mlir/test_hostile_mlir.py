"""Hostile StableHLO is an error, before anything grows or overflows."""

import io
import time
from collections.abc import Iterator

import pytest
from torch_mlir import ir
from torch_mlir._mlir_libs import _stablehlo
from typer.testing import CliRunner

from tt_torch.errors import ModuleFormatError, UnsupportedOpError
from tt_torch.explore.graphs import read_graphs
from tt_torch.mlir.context import MOST_NESTED, make_context, parse
from tt_torch.mlir.reading import read_stablehlo
from tt_torch.mlir.stablehlo.flatten import flatten
from tt_torch.tools.cli import app

T = "tensor<4xf32>"
LAST = f"%0 = stablehlo.add %a, %a : {T} return %0 : {T}"


def function(name, body):
    return f"func.func {'public' if name == 'main' else 'private'} @{name}(%a: {T}) -> {T} {{ {body} }}\n"


def calls(depth, times, last=LAST):
    """`main` calls @f0, and each function calls the next one `times` times."""
    texts = [function("main", f"%0 = func.call @f0(%a) : ({T}) -> {T} return %0 : {T}")]
    values = ["%a", *(f"%v{n}" for n in range(times))]
    for i in range(depth):
        body = " ".join(f"%v{n} = func.call @f{i + 1}({values[n]}) : ({T}) -> {T}" for n in range(times))
        texts.append(function(f"f{i}", f"{body} return {values[-1]} : {T}"))
    return f"module {{ {''.join(texts)}{function(f'f{depth}', last)} }}"


def branches(depth):
    text = f"func.func public @main(%a: {T}, %p: tensor<i1>) -> {T} {{\n"
    text += "".join(f'%v{i} = "stablehlo.if"(%p) ({{\n' for i in range(depth)) + f"stablehlo.return %a : {T}\n"
    for i in reversed(range(depth)):
        text += f"}}, {{ stablehlo.return %a : {T} }}) : (tensor<i1>) -> {T}\n"
        text += f"{'stablehlo.return' if i else 'return'} %v{i} : {T}\n"
    return f"module {{ {text} }} }}"


def flattened(text):
    module = parse(text, make_context())
    flatten(module, lambda op: False, ())
    (main,) = module.body.operations
    return len(main.regions[0].blocks[0].operations)


def test_calls_are_inlined_as_long_as_they_stay_small():
    assert flattened(calls(8, 2)) == 2**8 + 1


def test_a_large_module_may_grow_to_eight_times_its_size(monkeypatch):
    """The main program calls a function that calls a function of one op 30 times. With its return, it gets 31 ops."""
    monkeypatch.setattr("tt_torch.mlir.stablehlo.flatten.MOST_OPS", 1)
    wide = calls(1, 30)
    assert flattened(wide) == 31
    twice = wide.replace("%0 = func.call @f0(%a)", f"%9 = func.call @f0(%a) : ({T}) -> {T} %0 = func.call @f0(%9)")
    assert flattened(twice) == 61


@pytest.mark.parametrize("text", [calls(25, 2), calls(20_000, 2), calls(3, 100)], ids=["25", "20,000", "100 times"])
def test_calls_that_grow_without_bound(text):
    module, start = parse(text, make_context()), time.process_time()
    with pytest.raises(UnsupportedOpError, match=r"with all calls inlined it has more than [0-9,]+ ops"):
        flatten(module, lambda op: False, ())
    assert time.process_time() - start < 5


def test_functions_that_call_each_other_in_a_circle():
    back = f"%0 = func.call @f0(%a) : ({T}) -> {T} return %0 : {T}"
    with pytest.raises(UnsupportedOpError, match="in a circle"):
        flattened(calls(3, 1, last=back))


def test_branches_inside_one_another():
    """Each branch opens two brackets: one around its regions, and one for the region itself."""
    assert flattened(branches(MOST_NESTED // 2 - 2)) == MOST_NESTED // 2 - 1


@pytest.mark.parametrize("command", [[], ["--to", "TTNN"]])
def test_6000_branches(tmp_path, command):
    (tmp_path / "m.mlir").write_text(branches(6000))
    done = CliRunner().invoke(app, ["opt", *command, str(tmp_path / "m.mlir")])
    assert done.exit_code == 1 and f"more than {MOST_NESTED} brackets" in done.output


@pytest.mark.parametrize(
    "text",
    [
        f"module {{ func.func private @f({'tuple<' * 50_000}{T}{'>' * 50_000}) }}",
        f"module {{}} loc({'callsite(' * 50_000}",
        f"module attributes {{a = {'[' * 50_000}{']' * 50_000}}} {{}}",
    ],
    ids=["types", "locations", "attributes"],
)
def test_other_brackets(text):
    with pytest.raises(ModuleFormatError, match="brackets inside one another"):
        parse(text, make_context())


def test_brackets_that_are_none():
    quoted = ", ".join(f'"{text}"' for text in ("(" * 1000, '\\"' + "{" * 1000, ">" * 1000))
    module = parse(f"// {'(' * 1000}\nmodule attributes {{x.a = [{quoted}]}} {{}}", make_context())
    assert len(module.operation.attributes["x.a"]) == 3


def test_bytecode():
    """MLIR reads bytecode without recursion, so this module reaches our check."""
    context = make_context()
    with context, ir.Location.unknown():
        module = ir.Module.create()
        body = module.body
        for _ in range(MOST_NESTED + 1):
            inner = ir.Operation.create("builtin.module", regions=1)
            body.append(inner)
            body = inner.regions[0].blocks.append()
    data = io.BytesIO()
    module.operation.write_bytecode(data)
    with pytest.raises(ModuleFormatError, match="ops inside one another"):
        parse(data.getvalue(), make_context())


@pytest.mark.parametrize(
    "text",
    [
        function("main", LAST).replace("@main", r'@"\FF"'),
        function("main", LAST.replace(f": {T} return", f': {T} loc("\\C3\\28"("f.py":1:2)) return')),
        function("main", LAST.replace("add %a, %a", r'add %a, %a {"\\\FFa" = 1 : i32}')),
    ],
    ids=["symbol", "location", "attribute"],
)
def test_strings_that_are_not_utf8(text):
    """The binding ends the process where it makes a Python string of these bytes."""
    with pytest.raises(ModuleFormatError, match="is not UTF-8"):
        parse(text, make_context())


def test_escaped_strings_that_are_utf8():
    module = parse(r'module attributes {x.a = "\C3\A9 \\FF \"\n"} {}', make_context())
    assert module.operation.attributes["x.a"].value == 'é \\FF "\n'


def deadly() -> Iterator[bytes]:
    """A portable artifact with a wrong size at one place after the other. LLVM aborts at some of them."""
    module = ir.Module.parse(function("main", LAST), make_context())
    data = bytearray(_stablehlo.serialize_portable_artifact(module, "1.0.0"))
    for place in range(24, 42):
        yield bytes(data[:place]) + b"\0" + bytes(data[place + 1 :])


def test_bytes_that_end_the_process_that_reads_them(tmp_path):
    ended = []
    for data in deadly():
        try:
            read_stablehlo(data)
        except ModuleFormatError as error:
            if "the process that read it ended: it died of SIG" in str(error):
                ended.append(data)
        except UnsupportedOpError:
            pass
    assert ended
    path = tmp_path / "m.mlirbc"
    path.write_bytes(ended[0])
    done = CliRunner().invoke(app, ["opt", str(path)])
    assert done.exit_code == 1 and "the process that read it ended" in done.output
    with pytest.raises(ModuleFormatError, match="the process that read it ended"):
        read_graphs(path)


def test_a_module_without_a_main_function_is_named(tmp_path):
    path = tmp_path / "module.mlir"
    path.write_text("func.func @other(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }")
    done = CliRunner().invoke(app, ["opt", "--step", "apply-dtype", "--dtype", "bf16", str(path)])
    assert done.exit_code == 1 and "it has no function @main" in done.output
