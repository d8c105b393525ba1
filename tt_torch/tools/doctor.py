"""`tt-torch doctor`: checks an installation from end to end, and says how to repair what is broken.

Trials that may crash or hang run in their own processes. Nothing here depends on other packages being intact.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

import typer

from tt_torch.command_line import AsJson, print_json
from tt_torch.records.lines import commit
from tt_torch.waiting import waiting

SECONDS = 180  # for one process
REBUILD = "in a clone: rm env/venv/.build && source env/activate; else pip install --force-reinstall --no-deps tt-torch"
REINSTALL = "in a clone: source env/activate; else pip install '{}'"


@dataclass(frozen=True)
class Finding:
    """`state` is ok, note (nothing is broken) or broken. `remedy` says how to repair what is broken."""

    state: str
    what: str
    found: str
    remedy: str = ""


def ourselves() -> Iterator[Finding]:
    """Names this tt-torch and its system, which a report of a bug needs first."""
    version, of = metadata.version("tt-torch"), commit()
    yield Finding("ok", "tt-torch", f"{version}, commit {of}" if of else version)
    yield Finding("ok", "system", f"{platform.system()} {platform.machine()}, {' '.join(platform.libc_ver())}")


def python() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    wanted = _metadata("Requires-Python")
    first, after = sorted(map(int, re.findall(r"3\.(\d+)", wanted)))  # tools write the limits in any order
    fits = (3, first) <= sys.version_info < (3, after)
    yield Finding("ok" if fits else "broken", "Python", version, "" if fits else f"use a Python {wanted}")


def packages() -> Iterator[Finding]:
    """Compares the installed packages with the versions that tt-torch requires."""
    for requirement in metadata.requires("tt-torch") or ():
        if ";" in requirement:
            continue  # of an extra
        name, pin, wanted = re.fullmatch(r"([\w.-]+)\s*(==|>=)?\s*([\w.]*)", requirement).groups()  # type: ignore[union-attr]
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            yield Finding("broken", name, "not installed", REINSTALL.format(requirement))
            continue
        wrong = pin == "==" and found.partition("+")[0] != wanted
        yield Finding("broken" if wrong else "ok", name, found, REINSTALL.format(requirement) if wrong else "")


def libraries() -> Iterator[Finding]:
    """Checks the C++ libraries of the runtime and of the encoder, and the libraries that they need."""
    folders = _package_folders()
    found = [f for folder in folders for part in ("runtime", "wire") for f in sorted((folder / part).glob("*.so"))]
    for name in ("libtt_runtime", "_runtime", "_encoder"):
        if not any(f.name.startswith(name) for f in found):
            yield Finding("broken", f"{name}.so", f"not in {', '.join(map(str, folders))}", REBUILD)
    for file in found:
        missing = _missing_libraries(file)
        remedy = REBUILD + (", after installing what has these files" if missing else "")
        state = "broken" if missing else "ok"
        yield Finding(
            state, file.name, f"lacks {', '.join(missing)}" if missing else str(file), remedy if missing else ""
        )


def _missing_libraries(file: Path) -> list[str]:
    torch = importlib.util.find_spec("torch")
    folder = Path(torch.origin).parent / "lib" if torch and torch.origin else Path()
    paths = f"{folder}:{file.parent}:{os.environ.get('LD_LIBRARY_PATH', '')}"
    done = subprocess.run(
        ["ldd", file], env=os.environ | {"LD_LIBRARY_PATH": paths}, capture_output=True, text=True, check=False
    )
    return re.findall(r"(\S+) => not found", done.stdout)


def variables() -> Iterator[Finding]:
    """Checks our environment variables: each name must be known, and each value must be accepted."""
    from tt_torch.config import CompilerConfig, option_variables
    from tt_torch.errors import ConfigError
    from tt_torch.variables import OTHERS, unknown

    for name, question in unknown(os.environ, option_variables()).items():
        yield Finding("note", name, f"is set, but nothing reads it{question}", "see docs/controlling.md for the names")
    given = [f"{n}={os.environ[n]}" for n in sorted({*option_variables(), *OTHERS}) if os.environ.get(n)]
    try:
        CompilerConfig().with_env(os.environ)
        yield Finding("ok", "variables", ", ".join(given) or "none set")
    except ConfigError as error:
        yield Finding("broken", "variables", str(error), "correct or unset it")


def hardware() -> Iterator[Finding]:
    cards = sorted(map(str, Path("/dev").glob("tenstorrent/*")))
    yield Finding("note", "cards", ", ".join(cards) or "none: programs run on the emulated device")


def mock() -> Iterator[Finding]:
    from tt_torch.codegen.environment import default_folder, is_ready

    if is_ready():
        yield Finding("ok", "ttnn on mock devices", str(default_folder()))
    else:
        yield Finding(
            "note", "ttnn on mock devices", "not set up", "tt-torch check --setup, if you want tt-torch check"
        )


TRIALS = {
    "torch": ("import torch; print(torch.__version__)", REINSTALL.format("torch==2.13.0")),
    "runtime": ("import tt_torch.runtime; print('imported')", REBUILD),
    "compiler": (
        "import tt_torch.driver.backend as b; print('imported')",
        REINSTALL.format("torch-mlir==20261001"),
    ),
    "emulated devices": (
        """
from tt_torch.runtime import Device
def found(arch):
    with Device(arch) as device:
        return f"{arch} with {device.memory_stats()['dram']['total'] / 2**30:.0f} GiB DRAM"
print("; ".join(map(found, ("wormhole_b0", "blackhole"))))
""",
        REBUILD,
    ),
    "backend name": (
        "import torch; assert 'tt' in torch._dynamo.list_backends(None), 'no tt'; print('torch.compile knows tt')",
        "install the package: its entry point names the backend",
    ),
    "compile and run": (
        """
import time, torch
torch.manual_seed(0)
model, x = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()).eval(), torch.randn(8, 64)
begin = time.perf_counter()
with torch.no_grad():
    y = torch.compile(model, backend="tt")(x)
    torch.testing.assert_close(y, model(x), rtol=1e-4, atol=1e-4)
print(f"agrees with eager PyTorch, {time.perf_counter() - begin:.1f} s")
""",
        "if all checks above are ok, this is a bug: report it with the output of tt-torch doctor --json",
    ),
}


def trials() -> Iterator[Finding]:
    """Runs small programs, which an intact installation can run."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("TT_TORCH_")}
    variables["TT_TORCH_CACHE_SIZE"] = "0"  # the compiler is tried, not what it made before
    for what, (program, remedy) in TRIALS.items():
        try:
            with waiting(lambda: f"tt-torch doctor tries: {what}"):  # noqa: B023, which ends before the next trial
                done = subprocess.run(
                    [sys.executable, "-c", program],
                    env=variables,
                    capture_output=True,
                    text=True,
                    timeout=SECONDS,
                    check=False,
                )
        except subprocess.TimeoutExpired:
            yield Finding("broken", what, f"took more than {SECONDS} s", remedy)
            continue
        lines = (done.stderr if done.returncode else done.stdout).strip().splitlines()
        said = lines[-1] if lines else f"exit status {done.returncode}"
        yield Finding("broken" if done.returncode else "ok", what, said, remedy if done.returncode else "")


CHECKS: list[Callable[[], Iterator[Finding]]] = [
    ourselves,
    python,
    packages,
    libraries,
    variables,
    hardware,
    mock,
    trials,
]


def examine() -> Iterator[Finding]:
    for check in CHECKS:
        yield from check()


def doctor(as_json: AsJson = False) -> None:
    """Checks an installation from end to end; the exit status is 1 if something is broken."""
    findings = []
    for finding in examine():
        findings.append(finding)
        if not as_json:
            print(f"{finding.state:6} {finding.what}: {finding.found}", flush=True)
            if finding.remedy:
                print(f"       {finding.remedy}")
    if as_json:
        print_json([asdict(finding) for finding in findings])
    raise typer.Exit(any(finding.state == "broken" for finding in findings))


def _metadata(field: str) -> str:
    return metadata.metadata("tt-torch")[field]


def _package_folders() -> list[Path]:
    spec = importlib.util.find_spec("tt_torch")
    places = list(spec.submodule_search_locations or ()) if spec else []
    return [Path(place) for place in dict.fromkeys(places)]
