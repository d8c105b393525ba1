"""Testing models: `ModelTester`, `OnnxModelTester` and a plugin for pytest. docs/testing_models.md shows how.

pytest loads the plugin in every run, so this file imports nothing. The names are imported when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tt_torch.testing.model_tester import ModelTester
    from tt_torch.testing.onnx_model_tester import OnnxModelTester
    from tt_torch.testing.tags import skip_full_eval_test

__all__ = ["ModelTester", "OnnxModelTester", "skip_full_eval_test"]

_HOMES = {"ModelTester": "model_tester", "OnnxModelTester": "onnx_model_tester", "skip_full_eval_test": "tags"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
