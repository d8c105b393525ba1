"""Reads a file by everything that reads such files. Each reader must take it or raise one of our errors."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from math import prod
from pathlib import Path

import torch

from tt_torch.codegen.program import from_message
from tt_torch.codegen.source import constant, to_source
from tt_torch.driver.loading import load
from tt_torch.driver.stablehlo import compile_stablehlo
from tt_torch.errors import TTTorchError
from tt_torch.explore.graphs import read_graphs
from tt_torch.mlir.ttnn.optimizer.cores import cores_of
from tt_torch.profiling.cost_model import planned
from tt_torch.records.console import plain_console
from tt_torch.records.summary import print_summary
from tt_torch.reports.compare import compare
from tt_torch.reports.op_pages import op_pages
from tt_torch.reports.reading import read
from tt_torch.runtime import Binary, Device, Executable
from tt_torch.runtime._runtime import Package
from tt_torch.runtime.buffers import TORCH_TYPES
from tt_torch.tools import inspection, package_inspection
from tt_torch.tools.link import link
from tt_torch.wire.binary import system
from tt_torch.wire.chips import CHIPS
from tt_torch.wire.decode import decode
from tt_torch.wire.encode import encode

SMALL = 1 << 18  # bytes of each bank, so that no file gets gigabytes


def device() -> Device:
    """A device for the reader of binaries."""
    return Device(dram_bank_size=SMALL, l1_bank_size=SMALL, host_memory_size=64 * SMALL)


def try_file(ending: str, data: bytes, scratch: Path, on: Device, tools: bool = True) -> str:
    """Reads a file whose name has the given ending. Returns "read" if its first reader took it, otherwise "refused".

    Without `tools`, a binary is run by the runtime and decoded in Python, and nothing else looks at it. Readers that
    take paths find the file in the folder `scratch`. Exceptions that are none of our errors are not caught: they are
    faults of the reader.
    """
    outcomes = []
    for reader in _READERS[ending, tools](scratch / f"file{ending}", data, on):
        try:
            reader()
            outcomes.append("read")
        except TTTorchError:
            outcomes.append("refused")
    return outcomes[0]


def _run_and_decode(path: Path, data: bytes, on: Device) -> Iterator[Callable[[], object]]:
    yield partial(_run, data, on)
    yield partial(decode, data)


def _of_binary(path: Path, data: bytes, on: Device) -> Iterator[Callable[[], object]]:
    yield partial(_run, data, on)
    yield lambda: list(inspection.text(path.name, data))
    try:
        message = decode(data)
    except TTTorchError:
        return
    yield from (partial(inspection.section, name, message, True) for name in inspection.SECTIONS)
    yield partial(_generate, message)
    yield from (partial(_profile, message, arch) for arch in CHIPS)
    yield partial(link, data)
    yield partial(encode, message, message["schema_hash"])
    path.write_bytes(data)
    yield partial(read_graphs, path)


def _run(data, on):
    executable = Executable(Binary(data), 0, on)
    kinds = [torch.float32 if "Float" in spec.dtype.name else torch.int32 for spec in executable.inputs]
    # Expanded scalars are inputs of any shape that take no memory.
    values = [torch.ones((), dtype=k).expand(s.shape) for k, s in zip(kinds, executable.inputs, strict=True)]
    executable(values, [0])


def _generate(message):
    program = from_message(message)
    to_source(program, "model")
    for tensor, values in program.constants.values():
        constant(tensor, values)


def _profile(message, arch):
    for program in message["programs"]:
        list(planned(program, arch))


def _of_system(path: Path, data: bytes, on: Device) -> Iterator[Callable[[], object]]:
    path.write_bytes(data)
    yield lambda: list(inspection.text(path.name, data))
    yield lambda: Binary(data)
    yield from (partial(_section, data, name) for name in ("all", "version", "system_desc"))
    for arch in ("wormhole_b0", "blackhole"):
        yield lambda arch=arch: cores_of(system(arch, str(path)))


def _section(data, name):
    inspection.section(name, decode(data))


def _of_package(path: Path, data: bytes, on: Device) -> Iterator[Callable[[], object]]:
    path.write_bytes(data)
    yield partial(load, path, on)
    yield partial(_run_package, path, on)
    yield lambda: list(package_inspection.text(path))


def _run_package(path, on):
    """Runs a package by the C++ library. Large inputs are expanded scalars. Large results are not asked for."""
    package = Package(str(path), on._impl)
    forms = [[(t.name, t.shape, TORCH_TYPES[t.dtype]) for t in of] for of in (package.inputs, package.outputs)]
    inputs = {name: torch.ones((), dtype=dtype).expand(shape) for name, shape, dtype in forms[0]}
    inputs = {name: x.contiguous() if x.numel() <= SMALL else x for name, x in inputs.items()}
    small = [form for form in forms[1] if prod(form[1]) <= SMALL]
    package.run(inputs, {name: torch.empty(shape, dtype=dtype) for name, shape, dtype in small})


def _of_module(path: Path, data: bytes, on: Device) -> Iterator[Callable[[], object]]:
    path.write_bytes(data)
    yield partial(compile_stablehlo, path, device=on)


def _of_records(path: Path, data: bytes, on: Device) -> Iterator[Callable[[], object]]:
    path.write_bytes(data)
    yield partial(_report, path)


def _report(path):
    records = read(path)
    op_pages(records)
    compare(records, records)
    print_summary(records, plain_console(file=io.StringIO()))


_READERS = {
    (".ttnn", True): _of_binary,
    (".ttnn", False): _run_and_decode,
    **dict.fromkeys(product((".ttsys",), (True, False)), _of_system),
    **dict.fromkeys(product((".ttpkg",), (True, False)), _of_package),
    **dict.fromkeys(product((".mlir", ".mlirbc", ".vhlo"), (True, False)), _of_module),
    **dict.fromkeys(product((".jsonl", ".json", ".xml"), (True, False)), _of_records),
}
