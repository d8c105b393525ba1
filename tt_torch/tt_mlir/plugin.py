"""Compiles with tt-mlir in a PJRT plugin. It may crash or hang, and prints a lot, so a worker process loads it."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from pathlib import Path

from tt_torch.config import CompilerConfig
from tt_torch.errors import StageError, UnsupportedOpError
from tt_torch.mlir import repro
from tt_torch.mlir.context import describe
from tt_torch.tt_mlir import options
from tt_torch.tt_mlir.client import WorkerFailure, client
from tt_torch.wire import locations
from tt_torch.wire.binary import header, system
from tt_torch.wire.encode import encode
from tt_torch.wire.schema import known

STEP = "tt-mlir"
# The first word of the names of IR files, and the level that `save_mlir` has for them.
LEVELS = {"vhlo": "STABLEHLO", "shlo": "STABLEHLO", "ttir": "TTIR", "ttnn": "TTNN"}
_IR_FILE = re.compile(r"([a-z]+)(?:_(\w+?))?_\d+")  # stage, its part, time in milliseconds
_DIAGNOSTIC = re.compile(r"^(loc\(.*\)): error: (.*)$", re.MULTILINE)
_OP = re.compile(r"'(\w+\.[\w.]+)'")


def compile_text(text: str, library: Path, config: CompilerConfig) -> tuple[bytes, dict[str, str]]:
    """The binary of a StableHLO module, and the IR of each stage by its name, such as TTIR or STABLEHLO/compiler.

    Raises UnsupportedOpError for an op that the plugin refuses. If it fails otherwise, dies or takes too long, raises
    StageError, and its input, log and IR stay in `repro_dir`.
    """
    with tempfile.TemporaryDirectory(prefix="tt_torch_") as folder:
        work = Path(folder)
        request = _request(work, text, config)
        try:
            error, log = client(library).ask(request, config.tt_mlir_timeout)
        except WorkerFailure as failure:
            error, log = str(failure), failure.log
        if not error:
            (binary,) = (work / "out").glob("*.ttnn")
            return binary.read_bytes(), _stages(work / "out")
        if refused := _refusal(log):
            raise refused
        kept = _keep(work, log, config)
        raise StageError(STEP, RuntimeError(f"{error}\n  {kept} has its input, its log and its IR"), None)


def _request(work: Path, text: str, config: CompilerConfig) -> str:
    """Writes the files of a request, and returns it: see pjrt_worker.py."""
    program = work / "stablehlo.mlir"
    program.write_text(text)
    description = system(config.arch, config.system_desc)
    systems = []
    for schema in (name.rpartition("_")[2] for name in known() if name.startswith("system_desc")):
        systems.append(work / f"{schema}.ttsys")
        systems[-1].write_bytes(encode(header(schema) | {"system_desc": description}))
    chosen = options.for_plugin(config) | {"export_path": str(work / "out")}
    request = json.dumps({"program": str(program), "systems": [*map(str, systems)], "options": chosen})
    (work / "request.json").write_text(request)
    return request


def _stages(folder: Path) -> dict[str, str]:
    """The IR of the stages, in their order. The plugin writes a file for each stage. Its name ends with the time."""
    stages = {}
    for path in sorted(folder.glob("irs/*.mlir"), key=lambda path: path.stat().st_mtime_ns):
        named = _IR_FILE.fullmatch(path.stem)
        if named and named[1] in LEVELS:
            level = LEVELS[named[1]]
            part = named[2] or (named[1] if level == "STABLEHLO" else "")  # our own StableHLO has the plain name
            stages[f"{level}/{part}" if part else level] = path.read_text()
    return stages


def _refusal(log: str) -> UnsupportedOpError | None:
    """The error for an op that the log of a compilation names; None if it names none."""
    for location, said in _DIAGNOSTIC.findall(log):
        op = locations.only_node(location)[1] or next(iter(_OP.findall(said)), "")
        if op:
            return UnsupportedOpError(op, STEP, describe(location), said)
    return None


def _keep(work: Path, log: str, config: CompilerConfig) -> Path:
    kept = repro.folder(config, STEP)
    shutil.copytree(work, kept, dirs_exist_ok=True)
    (kept / "log.txt").write_text(log)
    return kept
