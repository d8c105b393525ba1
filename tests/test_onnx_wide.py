"""Random ONNX models of a few nodes over most ops and types, against ONNX Runtime and ONNX's evaluator."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from nights import seeds
from onnx_drawing import drawn
from onnx_wide_layers import LAYERS
from onnx_wide_rows import ROWS

from tt_torch.driver.onnx import compile_onnx
from tt_torch.driver.stablehlo import in_a_list


def check(seed: int) -> None:
    """All results of a model. Floats differ by a share of the largest one, as sums in another order do."""
    made = drawn(seed, [*ROWS, *LAYERS])
    model, given = made.whole()
    got = in_a_list(compile_onnx(model)(*map(torch.from_numpy, map(np.array, given.values()))))
    for name, value, want in zip(made.results, got, map(made.values.__getitem__, made.results), strict=True):
        where = f"seed {seed}, opset {made.opset}: {name}"
        assert (value.numpy().dtype.str, value.shape) == (want.dtype.str, want.shape), where
        size = np.abs(want[np.isfinite(want)]).max(initial=0) if want.dtype.kind == "f" else 0
        close = (1e-4, 2e-5 * max(float(size), 1e-3)) if want.dtype.kind == "f" else (0, 0)
        np.testing.assert_allclose(value.numpy(), want, *close, err_msg=where)


@pytest.mark.filterwarnings("ignore::tt_torch.driver.partition.HostFallbackWarning")
@pytest.mark.filterwarnings("ignore::tt_torch.dynamo.exactness.plan.Float64Warning")
@pytest.mark.parametrize("seed", seeds(6, 120))
def test_random_models(seed: int) -> None:
    check(seed)
