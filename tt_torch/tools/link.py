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
from functools import partial
from pathlib import Path

from torch_mlir import ir
from torch_mlir.execution_engine import ExecutionEngine

from tt_torch.errors import BinaryFormatError, EnvironmentMissingError, ModuleFormatError
from tt_torch.mlir.child import NativeCrash, in_child
from tt_torch.mlir.context import parse
from tt_torch.wire import facts
from tt_torch.wire.decode import decode
from tt_torch.wire.encode import encode
from tt_torch.wire.messages import DynamicLib, Program

SECONDS = 60  # of processor time for LLVM; a host function of tt-mlir takes less than one
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
    source = message.get("mlir", {}).get("source", "")
    start = source.find("builtin.module", source.find("ttcore.cpu_module"))
    if "ttcore.cpu_module" not in source or start < 0:
        raise BinaryFormatError("the binary has neither the machine code of its host functions nor their LLVM module")
    try:
        module = _cpu_module(source, start)
    except (LookupError, ValueError) as error:  # text that is not what tt-mlir writes
        raise _failure(error) from error
    library: list[DynamicLib] = [{"dylib_id": 0, "raw_file": _compile(module)}]
    programs: list[Program] = [{**program, "dylibs": library} for program in message["programs"]]
    return encode({**message, "programs": programs})


def _libraries(program: Program) -> list[int]:
    return [op.record["dylib_id"] for op in facts.ops(program) if op.name == "CpuOp"]


def _cpu_module(source: str, start: int) -> str:
    """The module for the CPU, which begins at `start`. The text around it is left out, because torch-mlir does not know
    its dialects. Raises LookupError or ValueError for text that is not what tt-mlir writes."""
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


def _failure(cause: Exception | str) -> BinaryFormatError:
    return BinaryFormatError(f"the LLVM module of the binary's host functions cannot be compiled: {cause}")


def _compile(module: str) -> bytes:
    """The library of an LLVM module in MLIR's text. LLVM crashes on some modules, so a child compiles it."""
    compiler = shutil.which("cc")
    if not compiler:
        raise EnvironmentMissingError("linking host functions needs a C compiler: install one that is called cc")
    with tempfile.TemporaryDirectory(prefix="tt_torch_") as folder:
        code, library = Path(folder) / "host.o", Path(folder) / "host.so"
        try:
            if fault := in_child(partial(_write_object, module, code), SECONDS):
                raise _failure(fault.decode())
        except NativeCrash as crash:
            raise _failure(f"LLVM fails on it: {crash}") from None
        done = subprocess.run([compiler, "-shared", "-o", library, code], check=False, capture_output=True, text=True)
        if done.returncode:
            raise _failure(done.stderr)
        return library.read_bytes()


def _write_object(module: str, path: Path) -> bytes:
    """Writes the object file of an LLVM module. Returns the text of the error, which is empty if there is none."""
    with ir.Context() as context:
        try:
            engine = ExecutionEngine(parse(module, context), opt_level=2, enable_pic=True)
        except (ir.MLIRError, ModuleFormatError, RuntimeError) as error:
            return str(error).encode()
        engine.dump_to_object_file(str(path))
    return b""
