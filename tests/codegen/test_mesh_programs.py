"""Programs for a mesh of chips on Tenstorrent's library: generated ones, and those that device="ttnn" runs."""

from __future__ import annotations

import re
import subprocess
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from mesh_programs import OPS, norms, program
from torch_mlir import ir

from tt_torch.codegen import environment, to_python, write_program
from tt_torch.codegen.device import TtnnDevice
from tt_torch.config import CompilerConfig
from tt_torch.driver.compile import compile_module
from tt_torch.driver.stablehlo import compile_stablehlo
from tt_torch.errors import DeviceError, InputCountError, InputShapeError, ShardingError
from tt_torch.mlir.context import make_context
from tt_torch.mlir.mesh import set_mesh
from tt_torch.runtime.mesh import Parts

HERE = Path(__file__).parent
PERCEPTRON = (HERE.parent / "data" / "plugin" / "tensor_parallel_1x2.ttnn").read_bytes()
SPLIT = [(None, None), (None, 1), (None, 0)], [(None, None)]  # the columns split the weights
needs_ttnn = pytest.mark.needs_ttnn


def in_library(folder, mesh, place, *command, device="n150"):
    """Runs a program in the library's Python, in the folder `place`, and returns its output."""
    variables = environment.variables(folder, device, mesh)
    options = {"capture_output": True, "text": True, "timeout": 60, "check": False, "cwd": place}
    done = subprocess.run([environment.python_in(folder), *command], env=variables, **options)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@needs_ttnn
@pytest.mark.parametrize("seed", range(2))
def test_the_library_gives_each_chip_the_part_of_the_emulated_one(ttnn_folder, tmp_path, seed):
    random, given = np.random.default_rng(seed), {}
    for dtype, rank in product(["float32", "bfloat16", "int32"], [1, 2, 3]):
        for dims in product((None, *range(rank)), repeat=2):
            sizes = [int(random.integers(1, 6)) for _ in range(rank)]
            for count, dim in zip((2, 4), dims, strict=True):
                if dim is not None:
                    sizes[dim] *= count
            values = random.integers(-99, 99, sizes).astype("int32" if dtype == "int32" else "float32")
            given[f"{len(given)} {dtype} {dims[0]} {dims[1]}"] = values
    file = tmp_path / "arrays.npz"
    np.savez(file, **given)
    in_library(ttnn_folder, (2, 4), tmp_path, HERE / "sharding_on_mock.py", Path(environment.__file__).parent, file)
    found = dict(np.load(file))
    for name, array in given.items():
        dims = tuple(None if dim == "None" else int(dim) for dim in name.split()[2:])
        parts = Parts(array.shape, dims, (2, 4)).of(torch.from_numpy(array))
        for layout in ("ROW_MAJOR", "TILE"):
            assert np.array_equal(found[f"{name} {layout} whole"], array), name
            for chip, part in enumerate(parts if dims != (None, None) else parts[:1]):
                assert np.array_equal(found[f"{name} {layout} {chip}"], part.numpy()), name


@needs_ttnn
def test_a_program_runs_on_its_mesh(ttnn_folder, tmp_path):
    write_program(PERCEPTRON, tmp_path / "net.py", None, [(None, None), (None, 1), (None, 0)], [(None, 1)])
    printed = in_library(ttnn_folder, (1, 2), tmp_path, "net.py", "--calls", "2", device="n300")
    assert re.sub(r"[\d.]+ ms", "ms", printed) == "call 0: ms\ncall 1: ms\noutput 0: BFLOAT16 [64, 1024]\n"


def test_inputs_are_whole_tensors():
    text = to_python(PERCEPTRON, "net", *SPLIT)
    assert "MESH = (1, 2)\n" in text and "OUTPUTS = [(None, None)]\n" in text
    assert "    ([512, 2048], ttnn.bfloat16, ttnn.ROW_MAJOR_LAYOUT, (None, 1), ttnn.DRAM_MEMORY_CONFIG),\n" in text
    assert "ttnn.all_reduce(value_reshape, cluster_axis=1, memory_config=ttnn.DRAM_MEMORY_CONFIG)" in text


def norm_of_a_split_dimension():
    with make_context():
        module = ir.Module.parse(norms((1, 2), "rows", (8, 64), "bf16", count=3))
        set_mesh(module, (1, 2))
        return compile_module(module, CompilerConfig(optimization_level=2))


def test_semaphores_have_names_of_their_own():
    text = to_python(norm_of_a_split_dimension(), "net", [(None, 1), (None, 0)], [(None, 1)])
    made = re.findall(r"^    (\w+) = ttnn.create_global_semaphore\($", text, re.MULTILINE)
    used = re.findall(r"ttnn.fused_rms_minimal\((.*?)\n    \)\n", text, re.DOTALL)
    assert made == ["semaphore_1", "semaphore_2"] and len(used) == 3
    assert [re.search(r" device,\s+(\w+),", call)[1] for call in used] == ["semaphore_1", "semaphore_2", "semaphore_1"]


@needs_ttnn
@pytest.mark.filterwarnings("ignore:.*mock device")
def test_norms_are_dispatched(opened, ttnn_folder, tmp_path):
    """By a device, and by a generated program."""
    binary, split = norm_of_a_split_dimension(), ([(None, 1), (None, 0)], [(None, 1)])
    run = opened().load(binary, *split)
    for _ in range(2):
        (result,) = run([torch.ones(8, 128, dtype=torch.bfloat16), torch.ones(128, dtype=torch.bfloat16)])
        assert result.shape == (8, 128) and result.dtype == torch.bfloat16
    write_program(binary, tmp_path / "net.py", None, *split)
    printed = in_library(ttnn_folder, (1, 2), tmp_path, "net.py", "--calls", "2", device="n300")
    assert printed.endswith("output 0: BFLOAT16 [8, 128]\n")


def test_shardings_that_do_not_fit_are_refused():
    with pytest.raises(InputCountError, match="there are 1 shardings for 3 inputs"):
        to_python(PERCEPTRON, "net", [(None, None)])
    with pytest.raises(ShardingError, match="it has no dimension 2, which axis 1"):
        to_python(PERCEPTRON, "net", [(None, 2), (None, 1), (None, 0)])


@pytest.fixture
def opened(ttnn_folder, monkeypatch):
    """A function that makes a device of two mock chips."""
    for name, value in environment.variables(ttnn_folder, "n300", (1, 2)).items():
        monkeypatch.setenv(name, value)
    made = []

    def make(**options):
        made.append(TtnnDevice(**{"mesh_shape": (1, 2), "fabric": True} | options))
        return made[-1]

    yield make
    for device in made:
        device.close()


@needs_ttnn
@pytest.mark.filterwarnings("ignore:.*mock device")
def test_a_device_takes_and_returns_whole_tensors(opened):
    run = opened().load(PERCEPTRON, [(None, None), (None, 1), (None, 0)], [(None, 1)])
    shapes = [(64, 512), (512, 2048), (2048, 512)]
    inputs = [torch.randn(shape, dtype=torch.bfloat16) for shape in shapes]
    for resident in ((), (1, 2), (1, 2)):
        (result,) = run(inputs, resident)
        assert result.shape == (64, 1024) and result.dtype == torch.bfloat16
    with pytest.raises(InputShapeError, match=r"input 1: got shape \[512, 1024\], expected \[512, 2048\]"):
        run([inputs[0], inputs[1][:, :1024], inputs[2]])


@needs_ttnn
@pytest.mark.filterwarnings("ignore:.*mock device")
def test_collectives_are_dispatched(opened):
    """On a mock mesh, the library crashes if it dispatches something for only a part of the chips. So the test has
    only transfers between two chips, and none within a chip."""
    device = opened()
    for op in OPS:
        with make_context():
            module = ir.Module.parse(program(op, (1, 2), "all", sizes=(24, 40)))
            set_mesh(module, (1, 2))
            run = device.load(compile_module(module, CompilerConfig()), [(None, 0)], [(None, 0)])
        (result,) = run([torch.ones(48, 40)])
        whole = {"all_gather": (48, 80), "reduce_scatter": (24, 40), "all_to_all": (24, 80)}.get(op, (48, 40))
        assert result.shape == whole


@needs_ttnn
@pytest.mark.filterwarnings("ignore:.*mock device")
def test_a_part_for_each_chip_runs_on_the_mesh_of_its_module(opened):
    """JAX's shard_map would write this. On a mock device, the results are zeros."""
    text = """"builtin.module"() ({
      "sdy.mesh"() <{mesh = #sdy.mesh<["x"=2]>, sym_name = "mesh"}> : () -> ()
      "func.func"() <{function_type = (tensor<64x32xf32>) -> tensor<64x32xf32>, sym_name = "main"}> ({
      ^bb0(%a: tensor<64x32xf32>):
        %r = "sdy.manual_computation"(%a) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>,
            out_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>, manual_axes = #sdy<manual_axes{"x"}>}> ({
        ^bb0(%p: tensor<32x32xf32>):
          "sdy.return"(%p) : (tensor<32x32xf32>) -> ()
        }) : (tensor<64x32xf32>) -> tensor<64x32xf32>
        "func.return"(%r) : (tensor<64x32xf32>) -> ()
      }) : () -> ()
    }) : () -> ()"""
    model = compile_stablehlo(text, CompilerConfig(device="ttnn"), device=opened())
    assert model(torch.ones(64, 32)).shape == (64, 32)
    emulated = compile_stablehlo(text)
    x = torch.randn(64, 32)
    assert torch.equal(emulated(x), x)


@needs_ttnn
@pytest.mark.filterwarnings("ignore:.*mock device")
def test_a_device_that_does_not_fit_is_refused(opened):
    with pytest.raises(DeviceError, match="for a mesh of 1x2 chips, and the device is a mesh of 2x1"):
        opened(mesh_shape=(2, 1)).load(PERCEPTRON)
    with pytest.raises(DeviceError, match="and the device was made without fabric=True"):
        opened(fabric=False).load(PERCEPTRON)
