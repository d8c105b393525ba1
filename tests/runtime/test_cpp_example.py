"""The C++ library by itself: the example is configured through find_package, built and run."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BINARY = ROOT / "tests" / "data" / "runtime" / "conv_bn_relu.ttnn"


def installed_config() -> Path:
    from tt_torch.runtime import _runtime

    return Path(_runtime.__file__).parent / "cmake"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    build = tmp_path_factory.mktemp("cpp")
    cmake = [sys.executable, "-m", "cmake"]
    subprocess.run(
        [*cmake, "-S", ROOT / "examples" / "cpp", "-B", build, f"-Dtt_runtime_DIR={installed_config()}"],
        check=True, capture_output=True,
    )  # fmt: skip
    subprocess.run([*cmake, "--build", build], check=True, capture_output=True)
    return build / "run_ttnn"


def test_example_runs_a_binary(program):
    done = subprocess.run([program, BINARY], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "output 2x8x16x16 Float32" in done.stdout or "output " in done.stdout
    assert "DRAM peak" in done.stdout


def test_example_reports_errors(program, tmp_path):
    (tmp_path / "foreign.ttnn").write_bytes(b"PK\3\4" * 100)
    done = subprocess.run([program, tmp_path / "foreign.ttnn"], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith("BinaryFormatError: not a valid TTNN binary")
