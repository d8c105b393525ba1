"""The tool makes the data file of the default schema from the wire description."""

import json
from pathlib import Path

import pytest

from tt_torch.wire import make_schema
from tt_torch.wire.schema import load
from wire.wire_reader import WIRE


def test_the_default_schema_is_up_to_date():
    schema = load()
    made = make_schema.compact(json.loads(WIRE.read_text()), schema.hash, schema.git_hash, list(schema.version))
    path = Path(make_schema.__file__).with_name("schemas") / f"ttnn_{schema.hash[:8]}.json"
    assert path.read_text() == make_schema.to_text(made)


@pytest.mark.parametrize("option", ["--hash", "--commit", "--version"])
def test_what_the_file_says_of_itself_must_be_given(option, monkeypatch, capsys):
    given = {"--hash": "0" * 64, "--commit": "0" * 40, "--version": "1.2.3"}
    del given[option]
    monkeypatch.setattr("sys.argv", ["make_schema", str(WIRE), *(word for pair in given.items() for word in pair)])
    with pytest.raises(SystemExit):
        make_schema.main()
    assert f"the following arguments are required: {option}" in capsys.readouterr().err
