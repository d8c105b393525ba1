"""`compile_stablehlo`: every form of a module, calls, files, and what is refused."""

from __future__ import annotations

import io
import math
import pickle
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch_mlir import ir
from torch_mlir._mlir_libs import _stablehlo

import tt_torch
from tt_torch import user_code
from tt_torch.config import CompilerConfig
from tt_torch.dynamo.exactness.plan import Float64Warning
from tt_torch.errors import (
    ArgumentError,
    CompileError,
    EnvironmentMissingError,
    InexactError,
    InputDtypeError,
    InputShapeError,
    ModuleFormatError,
    UnsupportedOpError,
)
from tt_torch.idle_options import IdleOptionWarning
from tt_torch.mlir.context import make_context

TEXT = """
module @named {
  func.func @main(%x: tensor<2x3xf32>, %z: tensor<3xcomplex<f32>>, %n: tensor<3xi64>)
      -> (tensor<2x3xf32>, tensor<3xcomplex<f32>>, tensor<3xi64>) {
    %0 = stablehlo.add %x, %x : tensor<2x3xf32>
    %1 = stablehlo.multiply %z, %z : tensor<3xcomplex<f32>>
    %2 = stablehlo.add %n, %n : tensor<3xi64>
    return %0, %1, %2 : tensor<2x3xf32>, tensor<3xcomplex<f32>>, tensor<3xi64>
  }
}
"""
X, Z, N = torch.randn(2, 3), torch.randn(3, dtype=torch.complex64), torch.tensor([1, -2, 3])
ONE = "func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"


def forms(folder: Path) -> dict[str, object]:
    """The module in every form, by name."""
    module, buffer = ir.Module.parse(TEXT, make_context()), io.BytesIO()
    module.operation.write_bytecode(buffer)
    # `serialize_portable_artifact` changes the module that it is given
    artifact = _stablehlo.serialize_portable_artifact(ir.Module.parse(TEXT, make_context()), "1.0.0")
    for name, data in (("text.mlir", TEXT.encode()), ("code.mlirbc", buffer.getvalue()), ("a.vhlo", artifact)):
        (folder / name).write_bytes(data)
    foreign = SimpleNamespace(operation=SimpleNamespace(get_asm=module.operation.get_asm))
    files = {name: folder / name for name in ("text.mlir", "code.mlirbc", "a.vhlo")}
    return {
        "text": TEXT, "bytes of text": TEXT.encode(), "bytecode": buffer.getvalue(), "artifact": bytes(artifact),
        "text of Windows": TEXT.replace("\n", "\r\n").encode("utf-8-sig"),
        "bytearray": bytearray(artifact), "a module": module, "a module of another package": foreign,
        "a path as text": str(folder / "text.mlir"), **files,
    }  # fmt: skip


def expect(results: object) -> bool:
    doubled, squared, integers = results
    torch.testing.assert_close(doubled, X + X)
    torch.testing.assert_close(squared, Z * Z)
    return torch.equal(integers, N + N) and integers.dtype == torch.int64


def test_every_form_of_a_module(tmp_path: Path) -> None:
    given = forms(tmp_path)
    before = str(given["a module"])
    for name, source in given.items():
        assert name and expect(tt_torch.compile_stablehlo(source)(X, Z, N))
    assert str(given["a module"]) == before


def test_calls_files_and_pickles(tmp_path: Path) -> None:
    before = len(tt_torch.compile_report().programs)
    model = tt_torch.compile_stablehlo(TEXT)
    (program,) = tt_torch.compile_report().programs[before:]
    assert program.ops == 17 and program.seconds > 0  # with the return, and 13 for the check of the int64 sum
    assert expect(model(X, arg2=N, arg1=Z))
    model.save(tmp_path / "m.ttpkg")
    for other in (tt_torch.load(tmp_path / "m.ttpkg"), pickle.loads(pickle.dumps(model))):
        assert expect(other(X, Z, N))
    model.save(tmp_path / "m.ttnn")
    assert (tmp_path / "m.ttnn").read_bytes() == model.binary
    doubled, parts, _, wide = tt_torch.load(tmp_path / "m.ttnn")(*model.arguments(X, Z, N))
    torch.testing.assert_close(doubled, X + X)
    torch.testing.assert_close(torch.view_as_complex(parts), Z * Z)
    assert wide == 0


def test_one_result_is_a_tensor_and_none_is_a_tuple() -> None:
    x = torch.tensor([1.0, -0.0])
    (result,) = [tt_torch.compile_stablehlo(ONE)(x)]  # the only public function is the program
    assert isinstance(result, torch.Tensor) and torch.equal(result, x) and result.data_ptr() != x.data_ptr()


def test_wrong_calls() -> None:
    model = tt_torch.compile_stablehlo(TEXT, CompilerConfig(fallback="error"))
    for arguments, error, said in (
        ((X.T, Z, N), InputShapeError, r"arg0 has the shape \(3, 2\)"),
        ((X.double(), Z, N), InputDtypeError, "arg0 has the dtype torch.float64"),
        ((X, Z), ArgumentError, "arg2 is missing"),
        ((X, Z, N, N), ArgumentError, "too many positional arguments"),
        ((X, Z, N + 2**31), InexactError, r"arg2 \(torch.int64\) has values in .*exact only in"),
    ):
        with pytest.raises(error, match=said):
            model(*arguments)
    largest = torch.tensor([2**30 - 1, -(2**30), 0])
    assert torch.equal(model(X, Z, largest)[2], 2 * largest)


def test_an_input_of_float64_is_within_float32() -> None:
    model = tt_torch.compile_stablehlo(ONE.replace("f32", "f64"))
    limits = torch.tensor([torch.finfo(torch.float32).max, -math.inf], dtype=torch.float64)
    assert torch.equal(model(limits), limits)
    assert model(torch.tensor([math.nan, 1e-60], dtype=torch.float64)).tolist()[1] == 0
    with pytest.raises(
        InexactError, match=r"arg0 \(torch.float64\) has values in -1e\+199 .. 0, and the device has them in"
    ):
        model(torch.tensor([0, -1e199], dtype=torch.float64))


@pytest.mark.parametrize(
    ("source", "error", "said"),
    [
        ("hello", ModuleFormatError, "not an MLIR module of the known dialects"),
        (b"\xff\xfe", ModuleFormatError, "codec can't decode"),
        (b"ML\xefR\x01abc", ModuleFormatError, "not an MLIR module of the known dialects"),
        (b"ML\xefR\x0dStableHLO_v9.9.9\0abc", ModuleFormatError, "a newer StableHLO"),
        (3, ModuleFormatError, "a int is neither text, nor bytes, nor a path, nor a module"),
        ("absent.mlir", FileNotFoundError, "absent.mlir"),
        ("module {}", UnsupportedOpError, "public are: none"),
        (ONE.replace("tensor<2xf32>", "tensor<?xf32>"), CompileError, r"argument 0 .* tensor<\?xf32>"),
        (ONE.replace("tensor<2xf32>", "tensor<2xi4>"), CompileError, "argument 0 .*tensor<2xi4>"),
        (ONE.replace("tensor<2xf32>", "!stablehlo.token"), CompileError, "argument 0 .*!stablehlo.token"),
        (ONE.replace("return", '"my.op"(%x) : (tensor<2xf32>) -> () return'), UnsupportedOpError, "my.op"),
    ],
)  # fmt: skip
def test_what_is_refused(source: object, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        tt_torch.compile_stablehlo(source)


def test_nothing_is_compiled_below_execute() -> None:
    with pytest.raises(CompileError, match="compile_depth is TTNN_IR"):
        tt_torch.compile_stablehlo(ONE, tt_torch.CompilerConfig(compile_depth=tt_torch.CompileDepth.TTNN_IR))


def test_the_size_of_a_result_may_follow_from_constants() -> None:
    text = """func.func @main(%x: tensor<3xf32>) -> tensor<?x3xf32> {
      %s = stablehlo.constant dense<[2, 3]> : tensor<2xi32>
      %0 = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [1] : (tensor<3xf32>, tensor<2xi32>) -> tensor<?x3xf32>
      return %0 : tensor<?x3xf32>
    }"""
    x = torch.randn(3)
    assert torch.equal(tt_torch.compile_stablehlo(text)(x), x.expand(2, 3))


SHARDED = """
module {
  sdy.mesh @mesh = <["a"=2, "b"=4]>
  func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) -> tensor<8x4xf32> {
    %0 = sdy.sharding_constraint %x <@mesh, [{"a"}, {?}]> : tensor<8x4xf32>
    %1 = stablehlo.add %0, %x : tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
}
"""
GENERIC = SHARDED.replace('sdy.mesh @mesh = <["a"=2, "b"=4]>', '"sdy.mesh"() <{sym_name = "mesh"}> : () -> ()').replace(
    'sdy.sharding_constraint %x <@mesh, [{"a"}, {?}]> : tensor<8x4xf32>',
    '"sdy.reshard"(%x) <{sharding = #sdy.sharding<@mesh, [{}]>}> : (tensor<8x4xf32>) -> tensor<8x4xf32>',
)


@pytest.mark.parametrize("text", [SHARDED, GENERIC])
def test_shardings_change_no_value(text: str) -> None:
    x = torch.randn(8, 4)
    torch.testing.assert_close(tt_torch.compile_stablehlo(text)(x), x + x)


def test_computing_on_parts_is_refused_by_name() -> None:
    parts = GENERIC.replace("sdy.reshard", "sdy.manual_computation")
    with pytest.raises(UnsupportedOpError, match=r"sdy\.manual_computation"):
        tt_torch.compile_stablehlo(parts)


def test_the_device_is_that_of_the_config() -> None:
    assert tt_torch.compile_stablehlo(ONE, CompilerConfig(arch="blackhole"))._device.arch == "blackhole"
    with pytest.raises(EnvironmentMissingError, match="no_python cannot be started"):
        tt_torch.compile_stablehlo(ONE, CompilerConfig(device="ttnn", ttnn_python="no_python"))
    user_code._once.clear()
    with pytest.warns(IdleOptionWarning, match="bisect=True .*needs a model of PyTorch"):
        tt_torch.compile_stablehlo(ONE, CompilerConfig(bisect=True))


def test_float64_is_told() -> None:
    """At the first op that reads it and depends on an input, as in PyTorch. A constant does not count."""
    text = """func.func @main(%x: tensor<2xf64>, %y: tensor<2xf32>) -> (tensor<2xf64>, tensor<2xf32>) {
      %c = stablehlo.constant dense<0.1> : tensor<2xf64>
      %0 = stablehlo.convert %c : (tensor<2xf64>) -> tensor<2xf32>
      %1 = stablehlo.add %y, %0 : tensor<2xf32>
      %2 = stablehlo.sine %x : tensor<2xf64>
      return %2, %1 : tensor<2xf64>, tensor<2xf32>
    }"""
    with pytest.warns(Float64Warning, match=r"first by stablehlo.sine at loc\(\"-\":5:12\)$"):
        tt_torch.compile_stablehlo(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error", Float64Warning)
        tt_torch.compile_stablehlo(text.replace("stablehlo.sine %x", "stablehlo.negate %c"))
