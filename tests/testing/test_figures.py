"""The figures of a tested model in a report."""

from __future__ import annotations

import math

import pytest

from tests.testing.testers import Noting
from tt_torch.config import CompileDepth, CompilerConfig
from tt_torch.testing import ModelTester, skip_full_eval_test
from tt_torch.testing.tags import LARGEST, bringup_status, figures, plain


@pytest.mark.parametrize(
    ("pcc", "status"), [(0.995, "PASSED"), (0.5, "INCORRECT_RESULT"), (math.nan, "INCORRECT_RESULT")]
)
def test_a_report_with_figures_from_elsewhere(pcc: float, status: str):
    note = Noting()
    ModelTester.GenerateCustomTestReport(note, "m", CompilerConfig(), pcc, 0.1, model_group="red", relative_atol=0.5)
    (tags,) = note.all("tags")
    assert tags["bringup_status"] == status and tags["atol"] == 0.1
    assert (tags["required_atol"], note.all("group"), tags["model_name"]) == (0.5, ["red"], "m")


def test_numbers_that_a_collector_cannot_store():
    values = [0.5, math.nan, math.inf, -math.inf, 1e30, -1e30]
    assert plain(values) == [0.5, -1, -1, -1, LARGEST, -LARGEST]
    tags = figures([0.5, 1.0], [])
    assert (tags["pcc"], tags["avg_pccs"], tags["max_pccs"]) == (0.5, 0.75, 1.0)
    assert (tags["atols"], tags["atol"], tags["avg_atols"]) == ([], -1, -1)


def test_each_depth_has_a_status():
    assert {depth.name: bringup_status(depth, True) for depth in CompileDepth} == {
        "TORCH_FX": "FAILED_FE_COMPILATION", "STABLEHLO": "FAILED_TTMLIR_COMPILATION", "TTNN_IR": "FAILED_RUNTIME",
        "COMPILE_OP_BY_OP": "INCORRECT_RESULT", "EXECUTE_OP_BY_OP": "INCORRECT_RESULT", "EXECUTE": "PASSED",
    }  # fmt: skip
    assert bringup_status(CompileDepth.EXECUTE, False) == "INCORRECT_RESULT"


def test_a_test_of_a_whole_model_is_skipped_with_a_record():
    note, full = Noting(), CompilerConfig()
    with pytest.raises(pytest.skip.Exception, match="too large"):
        skip_full_eval_test(note, full, "m", "FAILED_RUNTIME", "too large", model_name_filter=["m", "n"])
    tags = {"bringup_status": "FAILED_RUNTIME", "model_name": "m", "forge_models_test": False}
    assert note.calls == [("tags", tags), ("group", "generality")]
    assert not skip_full_eval_test(note, full, "m", "FAILED_RUNTIME", "too large", model_name_filter="n")
    apart = CompilerConfig(compile_depth=CompileDepth.EXECUTE_OP_BY_OP)
    assert not skip_full_eval_test(note, apart, "m", "FAILED_RUNTIME", "too large")
    assert len(note.calls) == 2
