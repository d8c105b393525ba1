"""JUnit files of tests: values of properties, and the record of a model that a ModelTester has tested."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest

from tt_torch.errors import ResultsFileError
from tt_torch.reports.reading import read

TAGS = {"bringup_status": "PASSED", "model_name": "m-b3", "pcc": 0.9, "atol": -1, "is_asserting_pcc": True, "x": None}


def config(depth: str) -> dict[str, object]:
    return {"compiler_config": {"compile_depth": depth, "save_mlir": []}}


def junit(folder: Path, properties: dict[str, object], outcome: str = "") -> Path:
    """A file with one test."""
    listed = "".join(f"<property name={quoteattr(n)} value={quoteattr(str(v))} />" for n, v in properties.items())
    case = (
        f'<testcase classname="models" name="test_it" time="1.5"><properties>{listed}</properties>{outcome}</testcase>'
    )
    path = folder / "junit.xml"
    path.write_text(f'<testsuites><testsuite timestamp="2026-11-22T12:00:00">{case}</testsuite></testsuites>')
    return path


def value(folder: Path, text: str) -> object:
    return read(junit(folder, {"x": text}))[0]["properties"]["x"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": [1, null, true]}', {"a": [1, None, True]}),
        ("{'a': [1, None, True], 2: (3,)}", {"a": [1, None, True], "2": [3]}),
        ("{'a': open('x')}", "{'a': open('x')}"),
        ("{1, 2}", "{1, 2}"),
        ("[b'x']", "[b'x']"),
        ("{'a': 1", "{'a': 1"),
        ("[1+1]", "[1+1]"),
        ("plain", "plain"),
        ("", ""),
    ],
)
def test_values_of_properties(tmp_path: Path, text: str, expected: object):
    assert value(tmp_path, text) == expected


def test_a_deep_value_is_an_error(tmp_path: Path):
    deep = "['a', " * 60 + "1" + "]" * 60
    with pytest.raises(ResultsFileError, match="nested too deeply"):
        read(junit(tmp_path, {"x": deep}))


def test_a_model_has_a_record_of_its_own(tmp_path: Path):
    properties = {"group": "red", "config": config("EXECUTE"), "achieved_compile_depth": "PASSED", "tags": TAGS}
    test, model = read(junit(tmp_path, properties))
    assert (test["kind"], test["key"], test["verdict"]) == ("test", "models::test_it", "match")
    assert model == {
        "kind": "model", "key": "m-b3", "model": "m-b3", "group": "red", "depth": "PASSED", "verdict": "match",
        "seconds": 1.5, "time": "2026-11-22T12:00:00", "commit": None, "pcc": 0.9,
    }  # fmt: skip


def test_a_failure_of_a_model_has_its_message(tmp_path: Path):
    tags = TAGS | {"bringup_status": "INCORRECT_RESULT"}
    properties = {"config": config("EXECUTE"), "achieved_compile_depth": "EXECUTE", "tags": tags}
    _, model = read(junit(tmp_path, properties, '<failure message="PCC 0.9">text</failure>'))
    assert (model["verdict"], model["depth"], model["message"]) == ("wrong", "EXECUTE", "PCC 0.9")


@pytest.mark.parametrize(
    "properties",
    [
        {"config": config("EXECUTE")},
        {"tags": {"pcc": 1.0}},
        {"tags": "{'bringup_status'"},
        {"tags": TAGS, "config": config("EXECUTE_OP_BY_OP")},
    ],
    ids=["no tags", "other tags", "cut tags", "op by op"],
)
def test_other_tests_are_only_tests(tmp_path: Path, properties: dict[str, object]):
    assert [record["kind"] for record in read(junit(tmp_path, properties))] == ["test"]


def test_a_model_without_options_or_depth(tmp_path: Path):
    _, model = read(junit(tmp_path, {"tags": {"bringup_status": "FAILED_RUNTIME"}, "config": "{'a': 1}"}))
    assert (model["model"], model["depth"], model["group"]) == ("models::test_it", "FAILED_FE", None)


def test_figures_of_another_type_are_an_error(tmp_path: Path):
    with pytest.raises(ResultsFileError, match="pcc is 'high', not a number"):
        read(junit(tmp_path, {"tags": TAGS | {"pcc": "high"}}))
