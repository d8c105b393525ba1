"""64-bit integers of StableHLO programs: a call has the interpreter's values. Without the host, it may be an error that
names an op that leaves 32 bits instead."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from wide_programs import SIZE, program
from wide_windows import KINDS

import tt_torch
from tt_torch.bringup.interpret import evaluate
from tt_torch.config import CompilerConfig
from tt_torch.driver.exact_runner import ExactnessWarning
from tt_torch.driver.flow_runner import on_host
from tt_torch.driver.package import contents
from tt_torch.driver.package.loading import LoadedModel
from tt_torch.driver.stablehlo import compile_stablehlo, in_a_list
from tt_torch.errors import InexactError, KernelError, PackageError
from tt_torch.flow import HostCall
from tt_torch.mlir.stablehlo import dtypes
from tt_torch.tools import package_inspection

HOSTLESS = CompilerConfig(fallback="error")
DTYPES = {"i64": torch.int64, "ui64": torch.uint64}


def checks(text: str) -> int:
    return len(compile_stablehlo(text)._package.manifests[0].checks)


def interval(kind: str, size: int) -> tuple[int, int]:
    """The numbers of a type up to a size."""
    lowest, highest = (-(2**63), 2**63 - 1) if kind == "i64" else (0, 2**64 - 1)
    return max(lowest, -size), min(highest, size)


def check(text: str, kind: str, seed: int, sizes: Sequence[int], compiled: LoadedModel) -> int:
    """Compares calls with the interpreter. Returns the number of calls without an InexactError."""
    rng, results = random.Random(seed), 0
    for size in sizes:
        drawn = [[rng.randint(*interval(kind, size)) for _ in range(SIZE)] for _ in "xy"]
        given = [torch.tensor(each, dtype=DTYPES[kind]) for each in drawn]
        try:
            got = [x.tolist() for x in in_a_list(compiled(*given))]
        except InexactError:
            continue
        assert got == [x.tolist() for x in evaluate(text, given)], drawn
        results += 1
    return results


@pytest.mark.parametrize("seed", [1, 14, 34, 35, 51, 54, 86, 97])
def test_random_programs_on_the_device(seed: int) -> None:
    text, kind = program(seed)
    assert check(text, kind, seed, (1, 3, 200, 2**15, 2**31 - 1), compile_stablehlo(text, HOSTLESS))


@pytest.mark.filterwarnings("ignore::tt_torch.driver.partition.HostFallbackWarning")
@pytest.mark.filterwarnings("ignore::tt_torch.driver.exact_runner.ExactnessWarning")
@pytest.mark.parametrize("seed", [1, 5, 9, 14, 33, 86, 122])
def test_random_programs_of_large_integers(seed: int) -> None:
    text, kind = program(seed, steps=8, large=True)
    sizes = (1, 2**15, 2**31 - 1, 2**40, 2**64)
    assert check(text, kind, seed, sizes, compile_stablehlo(text)) == len(sizes)


BRANCHES = """func.func @main(%c: tensor<i1>, %x: tensor<i64>) -> tensor<i64> {
  %0 = "stablehlo.if"(%c) ({
    %1 = stablehlo.multiply %x, %x : tensor<i64>
    stablehlo.return %1 : tensor<i64>
  }, { stablehlo.return %x : tensor<i64> }) : (tensor<i1>) -> tensor<i64>
  return %0 : tensor<i64>
}"""


def test_only_the_branch_that_runs_is_checked() -> None:
    """Although the device computes both."""
    compiled, x = compile_stablehlo(BRANCHES, HOSTLESS), torch.tensor(2**20)
    assert compiled(torch.tensor(False), x) == 2**20 and compiled(torch.tensor(True), x // 64) == 2**28
    with pytest.raises(InexactError, match=r"stablehlo.multiply \(loc\(\"-\":3:10\)\) leave"):
        compiled(torch.tensor(True), x)


ENDLESS = """func.func @main(%x: tensor<i64>) -> tensor<i64> {
  %0 = stablehlo.while(%i = %x) : tensor<i64> cond {
    %end = stablehlo.constant dense<-1> : tensor<i64>
    %square = stablehlo.multiply %i, %i : tensor<i64>
    %1 = stablehlo.compare NE, %square, %end : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %i, %i : tensor<i64>
    stablehlo.return %1 : tensor<i64>
  }
  return %0 : tensor<i64>
}"""


def test_the_padding_of_windows_counts() -> None:
    """It has the initial value, so a window of four places may have four of them."""
    text = """func.func @main(%x: tensor<4xi1>) -> tensor<4xi64> {
      %0 = stablehlo.convert %x : (tensor<4xi1>) -> tensor<4xi64>
      %c = stablehlo.constant dense<1073741824> : tensor<i64>
      %1 = "stablehlo.reduce_window"(%0, %c) <{window_dimensions = array<i64: 4>,
          padding = dense<[[3, 0]]> : tensor<1x2xi64>}> ({
        ^bb0(%p: tensor<i64>, %q: tensor<i64>):
          %s = stablehlo.add %p, %q : tensor<i64>
          stablehlo.return %s : tensor<i64>
      }) : (tensor<4xi64>, tensor<i64>) -> tensor<4xi64>
      return %1 : tensor<4xi64>
    }"""
    with pytest.warns(ExactnessWarning, match="reduce_window"):
        sums = compile_stablehlo(text)(torch.tensor([True, False, True, True])).tolist()
    assert sums == [2**32 + 1, 3 * 2**30 + 1, 2**31 + 2, 2**30 + 3]


def test_an_input_that_no_op_reads_may_have_any_value() -> None:
    text = """func.func @main(%x: tensor<2xf32>, %k: tensor<i64>) -> tensor<2xf32> {
      %0 = stablehlo.add %x, %x : tensor<2xf32>
      return %0 : tensor<2xf32>
    }"""
    with pytest.warns(ExactnessWarning, match="arg1"):
        assert compile_stablehlo(text)(torch.ones(2), torch.tensor(2**40)).tolist() == [2, 2]


def test_a_loop_ends_at_a_wide_integer() -> None:
    """Its condition, on integers that wrap, would stay true for ever."""
    with pytest.raises(InexactError, match=r"stablehlo.multiply \(loc\(\"-\":4:15\)\) leave"):
        compile_stablehlo(ENDLESS, HOSTLESS)(torch.tensor(3))


def test_programs_that_need_no_check() -> None:
    """Counters of loops, remainders, x / 0, and hashes of which only 32 bits are read."""
    counted = ENDLESS.replace("multiply", "minimum").replace("NE, %square", "LT, %i")
    counted = counted.replace("add %i, %i", "add %i, %one")
    assert checks(counted.replace("  } do {", "  } do {\n    %one = stablehlo.constant dense<1> : tensor<i64>")) == 0
    body = """func.func @main(%x: tensor<2xui64>, %y: tensor<2xui64>) -> (tensor<2xui64>, tensor<2xui32>) {
      %c = stablehlo.constant dense<1000> : tensor<2xui64>
      %0 = stablehlo.remainder %x, %c : tensor<2xui64>
      %1 = stablehlo.multiply %0, %c : tensor<2xui64>
      %2 = stablehlo.multiply %x, %y : tensor<2xui64>
      %3 = stablehlo.convert %2 : (tensor<2xui64>) -> tensor<2xui32>
      %4 = stablehlo.and %2, %c : tensor<2xui64>
      return %4, %3 : tensor<2xui64>, tensor<2xui32>
    }"""
    assert checks(body) == 0
    x = [2**32 - 1, 2**20 + 7]
    masked, low = compile_stablehlo(body)(*[torch.tensor(x, dtype=torch.uint64)] * 2)
    assert masked.tolist() == [a * a & 1000 for a in x] and low.tolist() == [a * a % 2**32 for a in x]
    divided = compile_stablehlo(
        "func.func @main(%x: tensor<2xi64>, %y: tensor<2xi64>) -> tensor<2xi64> {\n"
        "%0 = stablehlo.divide %x, %y : tensor<2xi64>\nreturn %0 : tensor<2xi64>\n}",
        HOSTLESS,
    )
    assert divided(torch.tensor([7, 7]), torch.tensor([0, -2])).tolist() == [-1, -3]
    with pytest.raises(InexactError, match=r"stablehlo.divide"):
        divided(torch.tensor([7, -(2**31)]), torch.tensor([0, -1]))


CARRIED = """func.func @main(%x: tensor<ui64>, %n: tensor<ui64>) -> (tensor<ui64>, tensor<ui64>) {
  %zero = stablehlo.constant dense<0> : tensor<ui64>
  %r:3 = stablehlo.while(%i = %zero, %h = %x, %s = %zero) : tensor<ui64>, tensor<ui64>, tensor<ui64> cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<ui64>, tensor<ui64>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %prime = stablehlo.constant dense<11400714819323198485> : tensor<ui64>
    %far = stablehlo.constant dense<32> : tensor<ui64>
    %large = stablehlo.constant dense<4294967295> : tensor<ui64>
    %one = stablehlo.constant dense<1> : tensor<ui64>
    %upper = stablehlo.shift_right_logical %h, %far : tensor<ui64>
    %sum = stablehlo.add %upper, %large : tensor<ui64>
    %h2 = stablehlo.multiply %h, %prime : tensor<ui64>
    %i2 = stablehlo.add %i, %one : tensor<ui64>
    stablehlo.return %i2, %h2, %sum : tensor<ui64>, tensor<ui64>, tensor<ui64>
  }
  return %r#1, %r#2 : tensor<ui64>, tensor<ui64>
}"""


@pytest.mark.filterwarnings("ignore::tt_torch.driver.partition.HostFallbackWarning")
def test_a_loop_that_carries_64_bits(tmp_path: Path) -> None:
    """The upper word of the hash fits into 32 bits, and the device adds a number to it, which leaves them."""
    compiled, hashed, total = compile_stablehlo(CARRIED), 7, 0
    x, steps = (torch.tensor(value, dtype=torch.uint64) for value in (7, 3))
    for _ in range(3):
        total, hashed = (hashed >> 32) + 2**32 - 1, hashed * 11400714819323198485 % 2**64
    with pytest.warns(ExactnessWarning, match=r"stablehlo.add \(loc\(\"-\":12:12\)\) leave"):
        assert [value.item() for value in compiled(x, steps)] == [hashed, total]
    compiled.save(tmp_path / "a.ttpkg")
    with pytest.warns(ExactnessWarning, match=r"stablehlo.add \(loc\(\"-\":12:12\)\) leave"):
        assert [value.item() for value in tt_torch.load(tmp_path / "a.ttpkg")(x, steps)] == [hashed, total]


SQUARE = """func.func @main(%x: tensor<2xi64>) -> tensor<2xi64> {
  %0 = stablehlo.multiply %x, %x : tensor<2xi64>
  return %0 : tensor<2xi64>
}"""


@pytest.mark.filterwarnings("ignore::tt_torch.driver.exact_runner.ExactnessWarning")
def test_a_package_has_both_forms(tmp_path: Path) -> None:
    """A package that is saved again has them, too, and so do a copy and a pickle."""
    path, again = tmp_path / "a.ttpkg", tmp_path / "b.ttpkg"
    compiled = compile_stablehlo(SQUARE)
    compiled.save(path)
    loaded = tt_torch.load(path)
    loaded.save(again)
    assert contents.as_json(contents.read(path)) == contents.as_json(contents.read(again))
    for model in (loaded, tt_torch.load(again), copy.deepcopy(loaded), pickle.loads(pickle.dumps(compiled))):
        assert model(torch.tensor([3, -(2**31)])).tolist() == [9, 2**62]
    assert "\nsecond form: " in "\n".join(package_inspection.text(path))


def test_a_package_that_needs_no_second_form(tmp_path: Path) -> None:
    """No input and no op can leave 32 bits. With `fallback="error"`, there is no second form either."""
    text = SQUARE.replace("i64", "f32").replace("return", "%n = stablehlo.iota dim = 0 : tensor<2xi64>\n  return", 1)
    compile_stablehlo(text).save(tmp_path / "a.ttpkg")
    compile_stablehlo(SQUARE, HOSTLESS).save(tmp_path / "b.ttpkg")
    assert not contents.read(tmp_path / "a.ttpkg").second and not contents.read(tmp_path / "b.ttpkg").second
    with pytest.raises(InexactError, match=r"stablehlo\.multiply"):
        tt_torch.load(tmp_path / "b.ttpkg")(torch.tensor([3, 2**20]))


def test_a_second_form_of_another_program(tmp_path: Path) -> None:
    first, other = (compile_stablehlo(SQUARE.replace("2xi64", f"{n}xi64"))._now() for n in (2, 3))
    contents.write(tmp_path / "a.ttpkg", dataclasses.replace(first, second=other.second))
    with pytest.raises(PackageError, match="the second form has other arguments or weights"):
        tt_torch.load(tmp_path / "a.ttpkg")


def test_a_loop_of_the_host_keeps_other_values_in_32_bits() -> None:
    """The loop also carries a value of the device, of which bitwise ops need no check."""
    ops = [f"%{op} = stablehlo.{op} %r#2, %r#2 : tensor<ui64>" for op in ("or", "xor", "and")]
    text = CARRIED.replace("  return %r#1, %r#2", "\n".join([*ops, "  return %or, %xor, %and, %r#1"]))
    text = text.replace("> (tensor<ui64>, tensor<ui64>)", f"> ({', '.join(['tensor<ui64>'] * 4)})")
    text = text.replace("tensor<ui64>, tensor<ui64>\n}", ", ".join(["tensor<ui64>"] * 4) + "\n}")
    text = text.replace("stablehlo.return %i2, %h2, %sum", "stablehlo.return %i2, %h2, %s")
    given = [torch.tensor(value, dtype=torch.uint64) for value in (7, 3)]
    assert checks(text) == 0
    assert [x.item() for x in compile_stablehlo(text)(*given)] == [x.item() for x in evaluate(text, given)]


TOP = """func.func @main(%x: tensor<5xi64>, %f: tensor<9xf32>) -> (tensor<2xi64>, tensor<4xf32>) {
  %0:2 = stablehlo.custom_call @mhlo.topk(%x) {mhlo.attributes = {k = 2 : i64, largest = true}}
      : (tensor<5xi64>) -> (tensor<2xi64>, tensor<2xi32>)
  %1 = stablehlo.slice %x [0:4] : (tensor<5xi64>) -> tensor<4xi64>
  %2 = "stablehlo.gather"(%f, %1) <{dimension_numbers = #stablehlo.gather<offset_dims = [],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}>
      : (tensor<9xf32>, tensor<4xi64>) -> tensor<4xf32>
  return %0#0, %2 : tensor<2xi64>, tensor<4xf32>
}"""


@pytest.mark.filterwarnings("ignore::tt_torch.driver.exact_runner.ExactnessWarning")
def test_what_the_device_reads() -> None:
    """Positions may have any value, and an op that the host lacks reads only integers of 32 bits."""
    compiled, floats = compile_stablehlo(TOP), torch.arange(9.0)
    x = torch.arange(5)
    assert compiled(x, floats)[0].tolist() == [4, 3]
    x[:4] = torch.tensor([3, -(2**40), 2**62, 8])
    with pytest.raises(
        InexactError, match=r"integers that the node stablehlo.custom_call \(loc\(\"-\":2:\d+\)\) reads leave"
    ):
        compiled(x, floats)
    text = TOP.replace("return %0#0, %2 : tensor<2xi64>", "return %x, %2 : tensor<5xi64>").replace(
        "-> (tensor<2xi64>, tensor<4", "-> (tensor<5xi64>, tensor<4"
    )
    same, values = compile_stablehlo(text)(x, floats)
    assert same.tolist() == x.tolist() and values.tolist() == [3, 0, 8, 8]


@pytest.mark.filterwarnings("ignore::tt_torch.driver.exact_runner.ExactnessWarning")
@pytest.mark.filterwarnings("ignore::tt_torch.driver.partition.HostFallbackWarning")  # large windows
@pytest.mark.parametrize(("name", "seed"), [*((name, seed) for name in KINDS for seed in range(3)), ("scatter", 1070)])
def test_random_windows_and_sorts(name: str, seed: int) -> None:
    rng = random.Random(seed)
    drawn = KINDS[name](rng)
    compiled = compile_stablehlo(drawn.text)
    for size in (2, 2**25, 2**31 - 1, 2**64):
        given = drawn.inputs(rng, size)
        for got, expected in zip(in_a_list(compiled(*given)), evaluate(drawn.for_interpreter, given), strict=True):
            torch.testing.assert_close(got, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.filterwarnings("ignore::tt_torch.driver.partition.HostFallbackWarning")
def test_a_constant_as_a_result() -> None:
    """Each call gives it in memory of its own, although it is made once."""
    kind = "tensor<2xui64>"
    text = f"func.func @main(%x: {kind}) -> ({kind}, {kind}) {{\n%0 = stablehlo.constant dense<[7, {2**63}]> : {kind}\n"
    text += f"%1 = stablehlo.xor %x, %0 : {kind}\nreturn %0, %1 : {kind}, {kind}\n}}"
    compiled, x = compile_stablehlo(text), torch.tensor([1, 0], dtype=torch.uint64)
    for _ in range(2):
        constant, result = compiled(x)
        assert constant.tolist() == [7, 2**63] and result.tolist() == [6, 2**63]
        constant.zero_()


def test_the_largest_of_64_bits() -> None:
    """CHLO's op, as `jax.lax.top_k` is."""
    kinds = "tensor<2x4xui64> -> (tensor<2x2xui64>, tensor<2x2xi32>)"
    text = f"func.func @main(%x: {kinds.replace(' ->', ') ->')} {{\n%0:2 = chlo.top_k(%x, k = 2) : {kinds}\n"
    compiled = compile_stablehlo(text + "return %0#0, %0#1 : tensor<2x2xui64>, tensor<2x2xi32>\n}")
    x = torch.tensor([[3, 2**63, 5, 2**63], [2**64 - 1, 0, 2**40, 7]], dtype=torch.uint64)
    with pytest.warns(ExactnessWarning, match="arg0"):
        values, places = compiled(x)
    assert values.tolist() == [[2**63, 2**63], [2**64 - 1, 2**40]] and places.tolist() == [[1, 3], [0, 2]]


@pytest.mark.filterwarnings("ignore::tt_torch.driver.partition.HostFallbackWarning")
def test_random_float64_stays_below_1() -> None:
    """As `jax.random.uniform` makes it: 52 bits behind the exponent of 1, minus 1. The device has 23 of these bits."""
    kind, double = "tensor<3xui64>", "tensor<3xf64>"
    text = f"""func.func @main(%x: {kind}) -> {double} {{
      %far = stablehlo.constant dense<12> : {kind}
      %exponent = stablehlo.constant dense<{0x3FF << 52}> : {kind}
      %one = stablehlo.constant dense<1.0> : {double}
      %0 = stablehlo.shift_right_logical %x, %far : {kind}
      %1 = stablehlo.or %0, %exponent : {kind}
      %2 = stablehlo.bitcast_convert %1 : ({kind}) -> {double}
      %3 = stablehlo.subtract %2, %one : {double}
      return %3 : {double}
    }}"""
    made = compile_stablehlo(text)(torch.tensor([2**64 - 1, 2**63, 0], dtype=torch.uint64))
    assert made.tolist() == [1 - 2**-23, 0.5, 0]


@pytest.mark.filterwarnings("ignore::tt_torch.driver.partition.HostFallbackWarning")
@pytest.mark.parametrize("words", ["ui64", "ui32", "i16", "f16", "bf16", "ui8"])
def test_bits_of_float64(words: str) -> None:
    """An input keeps all of its bits, and bits that become a float64 reach the device rounded toward 0."""
    count = 64 // int(words.strip("uibf"))
    bits, double = f"tensor<4{f'x{count}' if count > 1 else ''}x{words}>", "tensor<4xf64>"
    text = f"""func.func @main(%x: {double}, %y: {bits}) -> ({bits}, {double}, {double}) {{
      %0 = stablehlo.bitcast_convert %x : ({double}) -> {bits}
      %1 = stablehlo.bitcast_convert %y : ({bits}) -> {double}
      %2 = stablehlo.negate %1 : {double}
      return %0, %1, %2 : {bits}, {double}, {double}
    }}"""
    x = torch.tensor([0.1, -2.5e-30, 7.25, -0.0], dtype=torch.float64)
    y = x.view(dtypes.DTYPES[words]).reshape([4, count][: 1 + (count > 1)])
    model = compile_stablehlo(text)
    got, same, negative = model(x, y)
    assert got.dtype == y.dtype and got.view(torch.uint8).equal(y.view(torch.uint8))
    assert same.equal(x)
    torch.testing.assert_close(negative, -x, rtol=2e-7, atol=0.0)
    large = torch.tensor([1e300] * 4, dtype=torch.float64).view(y.dtype).reshape(y.shape)
    with pytest.raises(InexactError, match="beyond the range of float32"):
        model(x, large)


@pytest.mark.parametrize(
    ("op", "options"),
    [
        ("compare", {"direction": "XX"}),
        ("bitcast_convert", {"dtype": "object", "shape": [2]}),
        ("broadcast_in_dim", {"shape": [2, 2**50], "dims": [0]}),
        ("reduce", {"body": "system", "dims": [0]}),
        ("dynamic_slice", {"sizes": ["x"]}),
        ("sort", {"dim": 0, "keys": [[7, False]]}),
        ("sort", {"dim": 5, "keys": [[0, False]]}),
        ("top_k", {"k": "x"}),
    ],
)
def test_wrong_options_in_a_file(op: str, options: dict[str, Any]) -> None:
    count = {"bitcast_convert": 1, "broadcast_in_dim": 1, "top_k": 1}.get(op, 2)
    call = HostCall(f"stablehlo.{op}", options, list(range(count)), 1, [], "model.py:7", "", 0)
    with pytest.raises(KernelError, match=f"{op} at model.py:7 failed on the host"):
        on_host(call, [torch.tensor([3, 4]), torch.tensor(0)][:count])


def test_a_convolution_without_groups_in_a_file() -> None:
    options: dict[str, Any] = {key: [0, 1] for key in ("of_x", "of_kernel", "of_result")}
    options |= {key: [] for key in ("steps", "base", "dilations", "low", "high", "turned")}
    call = HostCall("stablehlo.convolution", options | {"groups": 0, "batches": 0}, [0, 1], 1, [], "", "", 0)
    with pytest.raises(KernelError, match=r"stablehlo.convolution at an unknown line failed on the host: .*zero"):
        on_host(call, [torch.ones(2, 2, dtype=torch.int64)] * 2)
