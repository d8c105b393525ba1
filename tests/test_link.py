"""`tt-torch link` compiles host functions whose machine code a binary lacks, from the LLVM module in its text."""

from __future__ import annotations

import gzip
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


def test_a_file_without_the_llvm_module_is_an_error():
    with pytest.raises(BinaryFormatError, match="neither the machine code of its host functions nor their LLVM module"):
        link(without("mlir", without("dylibs", GATHER)))
