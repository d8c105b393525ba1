"""Testing models: `ModelTester`, `OnnxModelTester` and a plugin for pytest. docs/testing_models.md shows how.

pytest loads the plugin in every run, so the names are imported only when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tt_torch.lazy import lazy

if TYPE_CHECKING:
    from tt_torch.testing.model_tester import ModelTester
    from tt_torch.testing.onnx_model_tester import OnnxModelTester
    from tt_torch.testing.tags import skip_full_eval_test

__all__ = ["ModelTester", "OnnxModelTester", "skip_full_eval_test"]

_HOMES = {
    "ModelTester": "testing.model_tester",
    "OnnxModelTester": "testing.onnx_model_tester",
    "skip_full_eval_test": "testing.tags",
}
if not TYPE_CHECKING:  # otherwise a type checker would take every unknown name for an Any
    __getattr__ = lazy(__name__, _HOMES)
