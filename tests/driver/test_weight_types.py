"""Block-float weights in models of every layer that takes them, in float32 and in bfloat16."""

import pytest
import torch
from torch import nn

import tt_torch
from tt_torch.wire.decode import decode
from tt_torch.wire.facts import BLOCK_FLOATS, ops

MODELS = {
    "linear": (lambda: nn.Linear(64, 32), (8, 64)),
    "matmul": (lambda: nn.Linear(64, 32, bias=False), (8, 64)),
    "conv 1x1": (lambda: nn.Conv2d(64, 32, 1), (1, 64, 8, 8)),
    "conv 1x1 without bias": (lambda: nn.Conv2d(64, 32, 1, bias=False), (1, 64, 8, 8)),
}
# The relative error in RMS of weights that are normally distributed: about 2^-8 and 2^-4 of a block's largest value.
ERRORS = {"bfp8_b": (1e-3, 0.02), "bfp4_b": (0.03, 0.2)}


@pytest.mark.parametrize("dtype", [None, "bf16"])
@pytest.mark.parametrize("weight_dtype", ERRORS)
@pytest.mark.parametrize("name", MODELS)
def test_the_weight_has_the_type_and_its_error(name, weight_dtype, dtype):
    torch.manual_seed(0)
    make, shape = MODELS[name]
    model, x = make().eval(), torch.randn(shape)
    nn.init.normal_(model.weight)
    config = tt_torch.CompilerConfig(dtype=dtype, weight_dtype=weight_dtype, fallback="error")
    compiled = tt_torch.compile_model(model, (x,), config)
    read = [t.dtype for program in decode(compiled.binary)["programs"] for op in ops(program) for t in op.operands]
    assert BLOCK_FLOATS[weight_dtype] in read
    least, most = ERRORS[weight_dtype]
    with torch.no_grad():
        assert least < (compiled(x) - model(x)).norm() / model(x).norm() < most
