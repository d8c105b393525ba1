"""The tool makes the data file of the default schema from the wire description."""

import json
from pathlib import Path

from tt_torch.wire import make_schema
from tt_torch.wire.schema import load
from wire.wire_reader import WIRE


def test_the_default_schema_is_up_to_date():
    schema = load()
    made = make_schema.compact(json.loads(WIRE.read_text()), schema.hash, schema.git_hash, list(schema.version))
    path = Path(make_schema.__file__).with_name("schemas") / f"ttnn_{schema.hash[:8]}.json"
    assert path.read_text() == make_schema.to_text(made)
