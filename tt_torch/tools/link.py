"""Machine code for host functions that a binary of tt-mlir calls but does not have.

tt-mlir moves some work to the CPU. The text in its file has an LLVM module for it, and a library that was compiled from
this module is beside the programs. If tt-mlir's LLVM fails on the module, the file has no library, and no runtime can
run it.
"""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from torch_mlir import ir
from torch_mlir.execution_engine import ExecutionEngine

from tt_torch.errors import BinaryFormatError, EnvironmentMissingError
from tt_torch.wire import facts
from tt_torch.wire.decode import decode
from tt_torch.wire.encode import encode
from tt_torch.wire.messages import DynamicLib, Program

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_LOCATION = re.compile(r"^#loc\w* = .*$", re.MULTILINE)
_RESOURCE = re.compile(r'^\s*([\w.]+): "0x([0-9A-Fa-f]+)"', re.MULTILINE)
_USE = re.compile(r"dense_resource<([\w.]+)> : tensor<([\dx]*)x([if])(\d+)>")


def link(binary: bytes) -> bytes:
    """The binary with a library for its host functions; unchanged if it has one or needs none.

    Raises BinaryFormatError if the text in the file has no code for the functions, and EnvironmentMissingError if there
    is no C compiler for linking.
    """
    message = decode(binary)
    needed = {i for program in message["programs"] for i in _libraries(program)}
    found = {library["dylib_id"] for program in message["programs"] for library in program.get("dylibs") or ()}
    if needed <= found:
        return binary
    if needed != {0}:
        raise BinaryFormatError(f"the binary calls the host libraries {sorted(needed)}, but has only {sorted(found)}")
    try:
        code = _compile(_cpu_module(message.get("mlir", {}).get("source", "")))
    except (ir.MLIRError, KeyError, IndexError) as error:  # text that is not what tt-mlir writes
        raise BinaryFormatError(
            f"the LLVM module of the binary's host functions cannot be compiled: {error}"
        ) from error
    library: list[DynamicLib] = [{"dylib_id": 0, "raw_file": code}]
    programs: list[Program] = [{**program, "dylibs": library} for program in message["programs"]]
    return encode({**message, "programs": programs})


def _libraries(program: Program) -> list[int]:
    return [op.record["dylib_id"] for op in facts.ops(program) if op.name == "CpuOp"]


def _cpu_module(source: str) -> str:
    """The module for the CPU without the text around it, whose dialects torch-mlir does not know."""
    start = source.find("builtin.module", source.find("ttcore.cpu_module"))
    if "ttcore.cpu_module" not in source or start < 0:
        raise BinaryFormatError("the binary has neither the machine code of its host functions nor their LLVM module")
    plain = _STRING.sub(lambda text: "_" * len(text[0]), source)  # braces inside of strings must not count
    depth, end = 0, plain.index("{", start)
    while True:
        depth += {"{": 1, "}": -1}.get(plain[end], 0)
        end += 1
        if not depth:
            break
    blobs = {name: bytes.fromhex(digits)[4:] for name, digits in _RESOURCE.findall(source)}  # after the alignment
    body = _USE.sub(lambda use: _dense(blobs[use[1]], *use.groups()[1:]), source[start:end])
    return "\n".join([*_LOCATION.findall(source), body])


def _dense(blob: bytes, shape: str, kind: str, width: str) -> str:
    """A resource as a literal. For an int64 constant, tt-mlir changes the type to 32 bits but not the bytes, which is
    why its LLVM fails."""
    size = int(width) // 8
    count = math.prod(map(int, shape.split("x")))
    if kind == "i" and len(blob) == 2 * count * size:
        blob = b"".join(blob[i : i + size] for i in range(0, len(blob), 2 * size))
    return f'dense<"0x{blob.hex().upper()}"> : tensor<{shape}x{kind}{width}>'


def _compile(module: str) -> bytes:
    compiler = shutil.which("cc")
    if not compiler:
        raise EnvironmentMissingError("linking host functions needs a C compiler: install one that is called cc")
    with tempfile.TemporaryDirectory(prefix="tt_torch_") as folder, ir.Context():
        code, library = Path(folder) / "host.o", Path(folder) / "host.so"
        engine = ExecutionEngine(ir.Module.parse(module), opt_level=2, enable_pic=True)
        engine.dump_to_object_file(str(code))
        subprocess.run([compiler, "-shared", "-o", library, code], check=True, capture_output=True)
        return library.read_bytes()
