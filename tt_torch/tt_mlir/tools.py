"""Compiles with tt-mlir's command-line tools."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from shlex import join, quote

from tt_torch.config import CompilerConfig
from tt_torch.errors import StageError
from tt_torch.mlir import repro
from tt_torch.tt_mlir import options
from tt_torch.tt_mlir.finding import Tools

# The pipeline from TTIR to TTNN, and the name that older versions have for it.
PIPELINE, FORMER_PIPELINE = "ttir-to-ttnn-runtime-pipeline", "ttir-to-ttnn-backend-pipeline"
Stages = dict[str, str]  # the IR of each stage by its name


def compile_text(text: str, tools: Tools, config: CompilerConfig) -> tuple[bytes, Stages]:
    """The binary of a StableHLO module, and the IR of the levels between.

    Raises StageError if a tool fails or takes too long. The input of the tool stays in `repro_dir`.
    """
    with tempfile.TemporaryDirectory(prefix="tt_torch_") as folder:
        work = Path(folder)
        stablehlo, ttir, ttnn, binary = (
            work / name for name in ("stablehlo.mlir", "ttir.mlir", "ttnn.mlir", "out.ttnn")
        )
        stablehlo.write_text(text)
        _run([tools.opt, "--stablehlo-to-ttir-pipeline", "--mlir-print-debuginfo"], stablehlo, ttir, config)
        pipeline = f"--{_pipeline(tools, config)}={options.for_tools(config)}"
        _run([tools.opt, pipeline, "--mlir-print-debuginfo"], ttir, ttnn, config)
        _run([tools.translate, "--ttnn-to-flatbuffer"], ttnn, binary, config)
        return binary.read_bytes(), {"TTIR": ttir.read_text(), "TTNN": ttnn.read_text()}


def _pipeline(tools: Tools, config: CompilerConfig) -> str:
    command = [tools.opt, "--help"]
    known = subprocess.run(command, capture_output=True, text=True, check=False, timeout=config.tt_mlir_timeout)
    return PIPELINE if f"--{PIPELINE}" in known.stdout else FORMER_PIPELINE


def _run(command: list[str], source: Path, target: Path, config: CompilerConfig) -> None:
    step = Path(command[0]).name
    try:
        words = [*command, str(source), "-o", str(target)]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=config.tt_mlir_timeout)
        failure, log = f"exit status {done.returncode}", done.stderr
    except subprocess.TimeoutExpired as late:
        failure, log = f"it took more than {config.tt_mlir_timeout:g} s", (late.stderr or b"").decode(errors="replace")
    else:
        if done.returncode == 0 and target.is_file():
            return
    kept = repro.folder(config, step)
    shutil.copy(source, kept)
    repeat = f"{join(command)} {quote(str(kept / source.name))}"
    (kept / "error.txt").write_text(log)
    (kept / "command.txt").write_text(repeat + "\n")
    said = log.strip()[-2000:] or "it wrote no result and said nothing"
    raise StageError(step, RuntimeError(f"{failure}: {said}"), repeat)
