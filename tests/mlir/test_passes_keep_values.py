"""Passes do not change a program's results: the modules of the IR tests are run with and without their pass."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from torch_mlir import ir

from tt_torch.config import CompilerConfig
from tt_torch.mlir import pipeline
from tt_torch.mlir.context import context_to_compile
from tt_torch.mlir.functions import main
from tt_torch.mlir.mesh import mesh_of
from tt_torch.mlir.ttnn.to_binary import translate
from tt_torch.runtime import Binary, Device, Executable
from tt_torch.runtime.mesh_executable import MeshExecutable

TESTS = Path(__file__).parents[1] / "ir"
TTIR = [
    f"ttir/{name}" for name in "apply_dtype canonicalize fuse_attention fuse_convolution fuse_heads fuse_matmul".split()
]
TTIR += [f"ttir/{name}" for name in "fuse_activations fuse_normalization fuse_rotary sink_data_movement".split()]
TTIR += ["ttir/turn_tiles"]
TTNN = [f"ttnn/{name}" for name in "const_eval deallocate layouts optimize prepare_convolutions workarounds".split()]
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "i32": torch.int32, "ui8": torch.uint8}
# Modules that are right only after the pass. TTNN has no batch normalization. If there are fewer queries than keys,
# `is_causal` means another mask in TTNN.
NEEDED = ("ttir.batch_norm_inference", "is_causal = true")
# Steps that are there for Tenstorrent's library, for speed or for memory. Results are right without them.
OPTIONAL = ("workarounds", "prepare-convolutions", "const-eval", "optimize", "legality", "deallocate")


def modules(names: list[str]) -> list[object]:
    """The text of each module, and the step that its file tests."""
    found = []
    for name in names:
        text = (TESTS / f"{name}.mlir").read_text()
        step = re.findall(r"--step (\S+)", text.split("\n")[0])[-1]
        parts = re.split(r"^// -----$", text, flags=re.MULTILINE)
        found += [pytest.param(part, step, id=f"{name}-{i}") for i, part in enumerate(parts)]
    return [module for module in found if not any(op in module.values[0] for op in NEEDED)]


def drawn(kind: ir.Type) -> torch.Tensor:
    """Normal floats, or the integers 1 and 2, which are valid as indices, divisors and exponents, too."""
    dtype, shape = DTYPES[str(kind.element_type)], list(kind.shape)
    return torch.randn(shape).to(dtype) if dtype.is_floating_point else torch.randint(1, 3, shape).to(dtype)


def run(text: str, steps: list[pipeline.Step], config: CompilerConfig) -> list[torch.Tensor]:
    torch.manual_seed(0)
    with context_to_compile():
        module = ir.Module.parse(text)
        inputs = [drawn(argument.type) for argument in main(module).arguments]
        pipeline.run_steps(module, steps, config, pipeline.Timings())
        binary, mesh = Binary(translate(module, config)), mesh_of(module)
    if mesh == (1, 1):
        return Executable(binary)(inputs)
    return MeshExecutable(binary, 0, Device(mesh_shape=mesh))(inputs)


def check(text: str, without: list[pipeline.Step], steps: list[pipeline.Step], config: CompilerConfig) -> None:
    tolerance = 2e-2 if config.dtype == "bf16" or "bf16" in text else 1e-5
    for got, expected in zip(run(text, steps, config), run(text, without, CompilerConfig()), strict=True):
        torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize(("text", "step"), modules(TTIR))
def test_ttir(text: str, step: str) -> None:
    config = CompilerConfig(dtype="bf16" if step == "apply-dtype" else None)
    check(text, pipeline.TO_TTNN, [(step, pipeline.STEPS[step]), *pipeline.TO_TTNN], config)


@pytest.mark.parametrize(("text", "step"), modules(TTNN))
def test_ttnn(text: str, step: str) -> None:
    without = [(name, run) for name, run in pipeline.TO_TTNN if name not in OPTIONAL]
    check(text, without, pipeline.TO_TTNN, CompilerConfig(enable_optimizer=step == "optimize"))
