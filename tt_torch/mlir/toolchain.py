"""Compiles StableHLO with tt-mlir's own tools instead of our stages TTIR, TTNN and binary."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from shlex import join, quote

from torch_mlir import ir

from tt_torch.config import CompilerConfig
from tt_torch.errors import ConfigError, StageError, ToolchainMissingError
from tt_torch.mlir import repro
from tt_torch.mlir.context import run_native
from tt_torch.wire.binary import system

OPT, TRANSLATE = "ttmlir-opt", "ttmlir-translate"
# tt-mlir does not take CHLO. The pass that expands it leaves broadcasts to computed shapes, which are all constants.
TO_PLAIN = "func.func(chlo-legalize-to-stablehlo,canonicalize,stablehlo-canonicalize-dynamism,canonicalize)"
_ROLE = re.compile(r'(ttcore\.argument_type = )"(\w+)"')


def compile_stablehlo(module: ir.Module, config: CompilerConfig, dump: Callable[[str, str], None]) -> bytes:
    """The binary that tt-mlir's tools make from a StableHLO module; `dump` is called with the levels between.

    Raises ToolchainMissingError without the tools, and ConfigError for options that they do not have. If a tool fails,
    it raises StageError, and the input of the tool stays in `repro_dir`.
    """
    check(config)
    with tempfile.TemporaryDirectory(prefix="tt_torch_") as folder:
        work = Path(folder)
        stablehlo, ttir, ttnn, binary = (
            work / name for name in ("stablehlo.mlir", "ttir.mlir", "ttnn.mlir", "out.ttnn")
        )
        stablehlo.write_text(text(module))
        _run([OPT, "--stablehlo-to-ttir-pipeline", "--mlir-print-debuginfo"], stablehlo, ttir, config)
        dump("TTIR", ttir.read_text())
        pipeline = f"--ttir-to-ttnn-backend-pipeline={options(config)}"
        _run([OPT, pipeline, "--mlir-print-debuginfo"], ttir, ttnn, config)
        dump("TTNN", ttnn.read_text())
        _run([TRANSLATE, "--ttnn-to-flatbuffer"], ttnn, binary, config)
        return binary.read_bytes()


def check(config: CompilerConfig) -> None:
    missing = [tool for tool in (OPT, TRANSLATE) if not shutil.which(tool)]
    if missing:
        raise ToolchainMissingError(missing)
    if config.dtype is not None:
        raise ConfigError("dtype", config.dtype, 'None with compiler="tt-mlir", whose tools have no such option')
    if config.enable_consteval and not config.consteval_parameters:
        raise ConfigError("consteval_parameters", False, 'True with compiler="tt-mlir", whose tools do not know it')
    if config.schema != type(config).schema:
        raise ConfigError("schema", config.schema, 'its default with compiler="tt-mlir", whose tools know one schema')


def text(module: ir.Module) -> str:
    """The module as text for tt-mlir's parser.

    CHLO ops such as erf, for which tt-mlir has no rules, are expanded. The role of an argument becomes an attribute of
    tt-mlir's dialect; in our module it is a string.
    """
    copy = ir.Module.parse(repro.snapshot(module), module.context)
    run_native(copy, TO_PLAIN)
    printed = copy.operation.get_asm(enable_debug_info=True)
    return _ROLE.sub(r"\1#ttcore.argument_type<\2>", printed)


def options(config: CompilerConfig) -> str:
    """Our options under tt-mlir's names. Binaries must have no machine code, which the device runs only on request."""
    words = ["enable-cpu-hoisted-const-eval=false", f"enable-const-eval={str(config.enable_consteval).lower()}"]
    if config.system_desc:
        # raises an error if the file is not readable or of another architecture
        system(config.arch, config.system_desc)
        words.append(f"system-desc-path={Path(config.system_desc).resolve()}")
    else:
        words.append(f"mock-system-desc-arch={config.arch}")
    if config.enable_optimizer:
        words.append("optimization-level=2")  # the level that places tensors in L1
    if config.weight_dtype:
        words.append("experimental-weight-dtype=bfp_bf8")
    return " ".join(words)


def _run(command: list[str], source: Path, target: Path, config: CompilerConfig) -> None:
    done = subprocess.run([*command, str(source), "-o", str(target)], capture_output=True, text=True, check=False)
    if done.returncode == 0 and target.is_file():
        return
    kept = Path(config.repro_dir).resolve() / f"{datetime.now():%Y%m%d_%H%M%S_%f}_{command[0]}"
    kept.mkdir(parents=True)
    shutil.copy(source, kept)
    repeat = f"{join(command)} {quote(str(kept / source.name))}"
    (kept / "error.txt").write_text(done.stderr)
    (kept / "command.txt").write_text(repeat + "\n")
    said = done.stderr.strip()[-2000:] or "it wrote no result and said nothing"
    raise StageError(command[0], RuntimeError(f"exit status {done.returncode}: {said}"), repeat)
