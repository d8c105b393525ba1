"""The C++ library by itself: CMake finds it by find_package, and the example is built and run."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import tt_torch
from tt_torch.runtime import Binary, Device, Executable

ROOT = Path(__file__).parents[2]
BINARY = ROOT / "tests" / "data" / "runtime" / "conv_bn_relu.ttnn"


def installed_config() -> Path:
    from tt_torch.runtime import _runtime

    return Path(_runtime.__file__).parent / "cmake"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Builds the example with the given name, and returns its path."""
    folder, cmake = tmp_path_factory.mktemp("cpp"), [sys.executable, "-m", "cmake"]
    subprocess.run(
        [*cmake, "-S", ROOT / "examples" / "cpp", "-B", folder, f"-Dtt_runtime_DIR={installed_config()}"],
        check=True, capture_output=True,
    )  # fmt: skip

    def build(name):
        subprocess.run([*cmake, "--build", folder, "--target", name], check=True, capture_output=True)
        return folder / name

    return build


@pytest.fixture(scope="module")
def program(built):
    return built("run_ttnn")


def counting(spec):
    """The values with which the example fills a float input."""
    count = torch.Size(spec.shape).numel()
    return (torch.arange(count, dtype=torch.float32) % 7 / 7).reshape(spec.shape)


@pytest.mark.parametrize("name", ["conv_bn_relu", "linear_relu", "argmax"])
def test_example_computes_what_python_computes(program, name):
    path = BINARY.with_name(f"{name}.ttnn")
    done = subprocess.run([program, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *lines, memory = done.stdout.splitlines()
    executable = Executable(Binary.load(path), 0, Device())  # a new device, for equal memory statistics
    results = executable([counting(spec) for spec in executable.inputs])
    for line, result, spec in zip(lines, results, executable.outputs, strict=True):
        text, _, numbers = line.partition(" sum ")
        assert text == f"output {repr(spec)[len('<TensorSpec ') : -1]}"
        got = [float(number) for number in numbers.split(" last ")]
        wanted = [result.double().sum().item(), result.flatten()[-1].item()]
        assert wanted[0] != 0 and got == pytest.approx(wanted, rel=1e-6)
    assert memory == f"DRAM peak {executable.memory_stats()['dram_peak']} bytes"


def test_example_reports_errors(program, tmp_path):
    (tmp_path / "foreign.ttnn").write_bytes(b"PK\3\4" * 100)
    done = subprocess.run([program, tmp_path / "foreign.ttnn"], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith("BinaryFormatError: not a valid TTNN binary")


TYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64".split()


def every_type(**tensors):
    return {name: x.float() - 1 if x.is_floating_point() else x for name, x in tensors.items()}, tensors["bfloat16"] * 3


@pytest.mark.build
def test_example_of_a_package(built, tmp_path):
    """Inputs and results of all types; then a damaged file."""
    path, program = "types.ttpkg", built("run_package")
    count = torch.arange(30).reshape(5, 6) % 7
    given = {name: (count / 7 if "float" in name else count).to(getattr(torch, name)) for name in TYPES}
    tt_torch.compile_model(every_type, kwargs=given).save(tmp_path / path)
    done = subprocess.run([program, path], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    wanted = {f"result[0]['{name}']": x for name, x in every_type(**given)[0].items()}
    wanted["result[1]"] = every_type(**given)[1]
    for line, name in zip(done.stdout.splitlines(), sorted(wanted), strict=True):
        text, _, number = line.partition(" sum ")
        assert text == f"{name} 5x6" and float(number) == pytest.approx(wanted[name].double().sum().item(), rel=1e-6)
    (tmp_path / path).write_bytes((tmp_path / path).read_bytes()[:-1])
    done = subprocess.run([program, path], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith("PackageError: types.ttpkg is damaged")


@pytest.mark.build
def test_example_of_a_kernel(built, tmp_path):
    """The op of a user is computed by C++. An exception of the kernel names the op and the line."""
    torch.library.define("mylib::doubled", "(Tensor x) -> Tensor")
    torch.library.register_fake("mylib::doubled", torch.empty_like)
    tt_torch.kernel(torch.ops.mylib.doubled)(lambda x: x * 2)
    program = built("run_kernel")
    for add in (1, -1):
        model = tt_torch.compile_model(lambda x, add=add: torch.ops.mylib.doubled(x + add), (torch.zeros(2, 3),))
        (tmp_path / f"{add}.ttnn").write_bytes(model.binary)
    done = subprocess.run([program, tmp_path / "1.ttnn"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "sum 42\n"), done.stderr
    done = subprocess.run([program, tmp_path / "-1.ttnn"], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith("KernelError: CpuOp at "), done.stderr
    assert "test_cpp_example.py:" in done.stderr and "failed: a negative number" in done.stderr
    done = subprocess.run([built("run_ttnn"), tmp_path / "1.ttnn"], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith("KernelMissingError: "), done.stderr
    assert "the op mylib::doubled.default" in done.stderr


@pytest.mark.slow
def test_example_runs_resnet50(program, tmp_path):
    """The binary of a whole model. The example's inputs are no trained weights, so only the result's shape is read."""
    from transformers import ResNetConfig, ResNetForImageClassification

    model = ResNetForImageClassification(ResNetConfig(num_labels=1000)).eval()
    tt_torch.compile_model(model, (torch.randn(1, 3, 224, 224),)).save(tmp_path / "resnet50.ttnn")
    done = subprocess.run([program, tmp_path / "resnet50.ttnn"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("output 1x1000 Float32 ")
