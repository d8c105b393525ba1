"""flatc, the reference tool of the FlatBuffers format, prints the same JSON of our files as we do."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tt_torch.wire import schema as schemas
from tt_torch.wire.as_json import as_json
from tt_torch.wire.decode import decode
from tt_torch.wire.encode import encode
from tt_torch.wire.schema import DEFAULT, SYSTEM_DESC, load
from wire.fbs import idl
from wire.messages import REFERENCES, op_members, random_binary, with_op

pytestmark = pytest.mark.skipif(not shutil.which("flatc"), reason="flatc is not installed")
FOLDER = Path(schemas.__file__).with_name("schemas")


def flatc_reads(tmp_path, schema_hash, data_files):
    """The JSON that flatc prints of files of one schema, decoded."""
    schema = load(schema_hash)
    (raw,) = (json.loads(p.read_text()) for p in FOLDER.glob(f"*_{schema.hash[:8]}.json"))
    (tmp_path / "schema.fbs").write_text(idl(schema, raw))
    for i, data in enumerate(data_files):
        (tmp_path / f"{i}.bin").write_bytes(data)
    options = ["--json", "--strict-json", "--defaults-json", "--size-prefixed", "--raw-binary"]
    files = [f"{i}.bin" for i in range(len(data_files))]
    # The schema is compiled first, because flatc refuses vectors of unions if it reads IDL to print JSON.
    flatc(tmp_path, "--binary", "--schema", "schema.fbs")
    flatc(tmp_path, *options, "schema.bfbs", "--", *files)
    texts = [(tmp_path / f"{i}.json").read_text() for i in range(len(data_files))]
    texts = [re.sub(r"\binf\b", "Infinity", text) for text in texts]
    return [json.loads(text) for text in texts]


def flatc(folder, *arguments):
    done = subprocess.run(["flatc", *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def rounded(value):
    """A copy of the value. Its floats equal any number near them, because flatc prints few digits."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return pytest.approx(value, rel=1e-5) if isinstance(value, float) else value


def assert_flatc_agrees(tmp_path, schema_hash, messages):
    files = [encode(message) for message in messages]
    for data, theirs in zip(files, flatc_reads(tmp_path, schema_hash, files), strict=True):
        assert rounded(as_json(decode(data))) == theirs


@pytest.mark.parametrize("schema_hash", [DEFAULT, "433d79f9"])
def test_every_op(tmp_path, schema_hash):
    messages = [with_op(schema_hash, member, 5, 1.0) for member in op_members(schema_hash)]
    assert_flatc_agrees(tmp_path, schema_hash, messages)


@pytest.mark.parametrize("schema_hash", [DEFAULT, "433d79f9", SYSTEM_DESC])
def test_random_binaries(tmp_path, schema_hash):
    assert_flatc_agrees(tmp_path, schema_hash, [random_binary(schema_hash, seed) for seed in range(20)])


def test_binaries_of_tt_mlir(tmp_path):
    assert_flatc_agrees(tmp_path, DEFAULT, [decode(path.read_bytes()) for path in REFERENCES])
