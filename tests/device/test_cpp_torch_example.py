"""The device as a C++ library: CMake finds it by find_package, and the example is built and run."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tt_torch.device import _device

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_example(tmp_path):
    cmake = [sys.executable, "-m", "cmake"]
    folders = {
        "Torch_DIR": Path(torch.utils.cmake_prefix_path) / "Torch",
        "tt_device_DIR": Path(_device.__file__).parent / "cmake",
    }
    definitions = [f"-D{name}={path}" for name, path in folders.items()]
    for command in ([*cmake, "-S", ROOT / "examples" / "cpp_torch", "-B", tmp_path, *definitions],
                    [*cmake, "--build", tmp_path], [tmp_path / "eager_tt"]):  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    x = torch.arange(6.0).view(2, 3) - 2
    expected = ((x @ x.T - 3).relu() * 0.5).flatten().tolist()
    devices, result, fallbacks = done.stdout.splitlines()
    assert (devices, fallbacks) == ("1 device", "0 fallbacks")
    assert result.split()[0] == "tt:0"
    assert [float(number) for number in result.split()[1:]] == expected
