"""`tt-torch link` compiles host functions whose machine code a binary lacks, from the LLVM module in its text."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

from tt_torch.errors import BinaryFormatError
from tt_torch.runtime import Binary, Device, Executable
from tt_torch.tools.cli import app
from tt_torch.tools.link import link
from tt_torch.wire.decode import decode
from tt_torch.wire.encode import encode

DATA = Path(__file__).parent / "data" / "runtime"
GATHER = (DATA / "gather.ttnn").read_bytes()
# tt-mlir wrote this file without a host library, because it cannot compile int64 constants of host functions.
GROUP_NORM = gzip.decompress((DATA / "group_norm.ttnn.gz").read_bytes())


def without(field, binary):
    message = decode(binary)
    if field == "mlir":
        return encode(message | {"mlir": {"name": "ttnn", "source": ""}})
    return encode(message | {"programs": [program | {field: []} for program in message["programs"]]})


def run(binary, name):
    tensors = load_file(DATA / f"{name}.safetensors")
    inputs = [tensors[f"in{i}"] for i in range(len(tensors) - 1)]
    return Executable(Binary(binary), device=Device(allow_host_code=True))(inputs)[0], tensors["out0"]


def test_a_linked_function_computes_what_tt_mlirs_own_does():
    bare = without("dylibs", GATHER)
    with pytest.raises(BinaryFormatError, match=r"has no host library 0.*tt-torch link"):
        run(bare, "gather")
    assert torch.equal(run(link(bare), "gather")[0], run(GATHER, "gather")[0])


def test_a_file_that_tt_mlir_wrote_without_host_library(tmp_path):
    source, target = tmp_path / "source.ttnn", tmp_path / "linked.ttnn"
    source.write_bytes(GROUP_NORM)
    assert CliRunner().invoke(app, ["link", str(source), "-o", str(target)]).exit_code == 0
    got, want = run(target.read_bytes(), "group_norm")
    torch.testing.assert_close(got, want, rtol=0, atol=2**-8 * want.abs().max().item())  # values pass through bf16


def test_a_complete_file_stays_as_it_is():
    assert link(GATHER) is GATHER


CALLS = "llvm.func @f{0}(%a: i64) -> i64 {{ {1} llvm.return %1 : i64 }}"
TWICE = "%0 = llvm.call @f{0}(%a) : (i64) -> i64 %1 = llvm.call @f{0}(%0) : (i64) -> i64"
HOSTILE = {
    "nested": ("builtin.module {" * 6000 + "}" * 6000, "more than 256 brackets inside one another"),
    "nested types": (f"llvm.func @f() -> {'!llvm.struct<(' * 9000}i8{')>' * 9000}", "more than 256 brackets"),
    "a function without code": ("llvm.func @f() { }", "LLVM fails on it: it died of SIGSEGV"),
    "unclosed": ("llvm.func @f() { { { {", "string index out of range"),
    "odd digits": ("\n x: \"0x0\"\n", "non-hexadecimal number"),
    "no such op": ("llvm.so()", "Unable to parse module"),
}  # fmt: skip


def with_host_code(text):
    text = f"module {{ ttcore.cpu_module {{ builtin.module {{ {text} }} }} }}"
    return encode(decode(GROUP_NORM) | {"mlir": {"name": "ttnn", "source": text}})


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_host_code(case):
    text, message = HOSTILE[case]
    with pytest.raises(BinaryFormatError, match=message):
        link(with_host_code(text))


def test_functions_that_call_the_next_one_twice():
    functions = [CALLS.format(i, TWICE.format(i + 1)) for i in range(40)]
    began = time.process_time()
    linked = link(with_host_code("\n".join([*functions, CALLS.format(40, "%1 = llvm.mul %a, %a : i64")])))
    assert time.process_time() - began < 10 and len(linked) < 1 << 18


def test_a_file_without_the_llvm_module_is_an_error():
    with pytest.raises(BinaryFormatError, match="neither the machine code of its host functions nor their LLVM module"):
        link(without("mlir", without("dylibs", GATHER)))
