"""The tool makes the data file of the default schema from the wire description."""

from pathlib import Path

import pytest

from tt_torch.wire import make_schema
from tt_torch.wire.schema import load
from wire.wire_reader import WIRE


def test_the_default_schema_is_up_to_date(tmp_path, monkeypatch, capsys):
    schema = load()
    path = Path(make_schema.__file__).with_name("schemas") / f"ttnn_{schema.hash[:8]}.json"
    (tmp_path / "schemas").mkdir()
    monkeypatch.setattr(make_schema, "__file__", tmp_path / "make_schema.py")
    said = {"--hash": schema.hash, "--commit": schema.git_hash, "--version": ".".join(map(str, schema.version))}
    monkeypatch.setattr("sys.argv", ["make_schema", str(WIRE), *(word for pair in said.items() for word in pair)])
    make_schema.main()
    made = Path(capsys.readouterr().out.strip())
    assert made == tmp_path / "schemas" / path.name
    assert made.read_text() == path.read_text()


@pytest.mark.parametrize("option", ["--hash", "--commit", "--version"])
def test_what_the_file_says_of_itself_must_be_given(option, monkeypatch, capsys):
    given = {"--hash": "0" * 64, "--commit": "0" * 40, "--version": "1.2.3"}
    del given[option]
    monkeypatch.setattr("sys.argv", ["make_schema", str(WIRE), *(word for pair in given.items() for word in pair)])
    with pytest.raises(SystemExit):
        make_schema.main()
    assert f"the following arguments are required: {option}" in capsys.readouterr().err
