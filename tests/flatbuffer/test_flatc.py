"""flatc, the reference tool of the format, reads our files as we do."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from flatbuffer.fbs import idl
from flatbuffer.messages import REFERENCES, op_members, random_binary, with_op
from tt_torch.flatbuffer import schema as schemas
from tt_torch.flatbuffer.decode import decode
from tt_torch.flatbuffer.encode import encode
from tt_torch.flatbuffer.schema import DEFAULT, SYSTEM_DESC, load

pytestmark = pytest.mark.skipif(not shutil.which("flatc"), reason="flatc is not installed")
FOLDER = Path(schemas.__file__).with_name("schemas")


def flatc_reads(tmp_path, schema_hash, data_files):
    """What flatc makes of files of one schema, as decoded JSON."""
    schema = load(schema_hash)
    (raw,) = (json.loads(p.read_text()) for p in FOLDER.glob(f"*_{schema.hash[:8]}.json"))
    (tmp_path / "schema.fbs").write_text(idl(schema, raw))
    for i, data in enumerate(data_files):
        (tmp_path / f"{i}.bin").write_bytes(data)
    options = ["--json", "--strict-json", "--defaults-json", "--size-prefixed", "--raw-binary"]
    files = [f"{i}.bin" for i in range(len(data_files))]
    # By way of a compiled schema, because flatc refuses vectors of unions when it reads IDL to print JSON.
    flatc(tmp_path, "--binary", "--schema", "schema.fbs")
    flatc(tmp_path, *options, "schema.bfbs", "--", *files)
    texts = [(tmp_path / f"{i}.json").read_text() for i in range(len(data_files))]
    return [json.loads(re.sub(r"\binf\b", "Infinity", text)) for text in texts]


def flatc(folder, *arguments):
    done = subprocess.run(["flatc", *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def as_flatc_has_it(part):
    """Our message in flatc's form: a union's member in a field of its own, bytes as numbers."""
    if isinstance(part, bytes):
        return list(part)
    if isinstance(part, list):
        return [as_flatc_has_it(item) for item in part]
    if isinstance(part, float):
        return pytest.approx(part, rel=1e-5)
    if not isinstance(part, dict):
        return part
    return {key: as_flatc_has_it(value) for key, value in part.items()}


def assert_same(ours, theirs, schema, table):
    """Field by field, because flatc prints a union as two fields."""
    expected = set()
    for field in schema.fields(table):
        value = ours.get(field.name)
        if value is None or "utype" in (field.type, field.element):
            continue
        expected.add(field.name)
        if "union" in (field.type, field.element):
            expected.add(field.name + "_type")
            tags = theirs[field.name + "_type"]
            one = field.type == "union"
            triples = (
                [(value, tags, theirs[field.name])]
                if one
                else list(zip(value, tags, theirs[field.name], strict=True))
            )
            for item, tag, their in triples:
                assert list(item) == [tag]
                assert_same(item[tag], their, schema, schema.enum(field.ref).refs[tag])
        elif "obj" in (field.type, field.element) and not schema.is_struct(field.ref):
            pairs = (
                zip(value, theirs[field.name], strict=True)
                if field.type == "vector"
                else [(value, theirs[field.name])]
            )
            for mine, their in pairs:
                assert_same(mine, their, schema, field.ref)
        else:
            assert as_flatc_has_it(value) == theirs[field.name], f"{table}.{field.name}"
    given = {name for name, value in theirs.items() if value not in (None, "NONE")}
    assert given == expected, table


def assert_flatc_agrees(tmp_path, schema_hash, messages):
    schema = load(schema_hash)
    files = [encode(message) for message in messages]
    for data, theirs in zip(files, flatc_reads(tmp_path, schema_hash, files), strict=True):
        assert_same(decode(data), theirs, schema, schema.root)


@pytest.mark.parametrize("schema_hash", [DEFAULT, "433d79f9"])
def test_every_op(tmp_path, schema_hash):
    messages = [with_op(schema_hash, member, 5, 1.0) for member in op_members(schema_hash)]
    assert_flatc_agrees(tmp_path, schema_hash, messages)


@pytest.mark.parametrize("schema_hash", [DEFAULT, "433d79f9", SYSTEM_DESC])
def test_random_binaries(tmp_path, schema_hash):
    assert_flatc_agrees(tmp_path, schema_hash, [random_binary(schema_hash, seed) for seed in range(20)])


def test_binaries_of_tt_mlir(tmp_path):
    assert_flatc_agrees(tmp_path, DEFAULT, [decode(path.read_bytes()) for path in REFERENCES])
