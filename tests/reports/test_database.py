"""The results database stores each record once and loses none, on DuckDB and on a real PostgreSQL server."""

from __future__ import annotations

import json
import multiprocessing
import os
import pwd
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.reports.records import RECORDS, model, op
from tt_torch.errors import DatabaseError, ResultsFileError
from tt_torch.reports.database import METADATA, Database
from tt_torch.reports.reading import read


@pytest.fixture(scope="session")
def postgres():
    """The URL of a PostgreSQL server from Debian's package. It runs as a user that is not root, on a Unix socket."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))  # Debian's folder for these programs
    if not programs:
        pytest.skip("the package postgresql is not installed")
    folder = Path(tempfile.mkdtemp(prefix="postgres"))  # other users have no access to pytest's own folders
    as_user = ["runuser", "-u", "nobody", "--"] if os.getuid() == 0 else []
    if as_user:
        nobody = pwd.getpwnam("nobody")
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    subprocess.run(
        [*as_user, programs[-1] / "initdb", "-D", folder / "data", "-A", "trust", "-U", "tt"], check=True, cwd=folder
    )
    start = [
        *as_user,
        programs[-1] / "pg_ctl",
        "-D",
        folder / "data",
        "-l",
        folder / "log",
        "-w",
        "-o",
        f"-k {folder} -h ''",
    ]
    subprocess.run([*start, "start"], check=True, cwd=folder)
    yield f"postgresql://tt@/postgres?host={folder}"
    subprocess.run([*start[:-2], "-m", "immediate", "stop"], check=True, cwd=folder)


@pytest.fixture(params=["duckdb", "postgresql"])
def url(request, tmp_path):
    if request.param == "duckdb":
        yield str(tmp_path / "results" / "r.duckdb")
        return
    server = request.getfixturevalue("postgres")
    yield server
    engine = sa.create_engine(server.replace("postgresql:", "postgresql+psycopg:"), poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.execute(sa.text("drop schema public cascade; create schema public"))


def test_each_record_is_stored_once(url):
    database = Database(url)
    assert database.add(RECORDS) == len(RECORDS)
    assert database.add(RECORDS + RECORDS) == 0
    assert Database(url).latest() == sorted(RECORDS, key=lambda record: (record["kind"], record["key"]))


def test_latest_and_one_commit(url):
    database = Database(url)
    database.add([model("a", commit="c1"), model("a", "wrong", commit="c2"), model("b", commit="c1")])
    assert [(r["key"], r["commit"]) for r in database.latest()] == [("a", "c2"), ("b", "c1")]
    assert [r["key"] for r in database.latest("c1")] == ["a", "b"]


def write(url, first):
    database = Database(url)
    for i in range(first, first + 10):
        database.add([op(f"add/float32/{i}")])


def test_writers_at_the_same_time_lose_nothing(url):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=write, args=(url, first)) for first in (0, 5)]  # five records are in both
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
        assert writer.exitcode == 0
    assert len(Database(url).records()) == 15


def write_for_ever(url):
    database = Database(url)
    for i in range(100_000):
        database.add([op(f"add/float32/{i}")])


def test_a_killed_writer_leaves_whole_records(url):
    writer = multiprocessing.get_context("spawn").Process(target=write_for_ever, args=(url,))
    writer.start()
    deadline = time.monotonic() + 120
    while not written(url) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(writer.pid, signal.SIGKILL)
    writer.join()
    assert {r["key"] for r in Database(url).records()} >= {"add/float32/0"}
    assert Database(url).add([model("after")]) == 1


def written(url):
    return len(Database(url).records()) >= 3


def test_the_migrations_make_the_declared_table(url):
    database = Database(url)
    with database._connect() as connection:
        query = "select column_name, is_nullable from information_schema.columns where table_name = 'records'"
        columns = dict(connection.execute(sa.text(query)).all())
    declared = METADATA.tables["records"].columns
    assert {c.name: "YES" if c.nullable else "NO" for c in declared} == columns


def test_commits_by_their_beginning(tmp_path):
    database = Database(str(tmp_path / "r.duckdb"))
    database.add([model("a", commit="c1ab"), model("a", commit="c1cd")])
    assert database.commit("c1a") == "c1ab"
    with pytest.raises(DatabaseError, match="c1 could be c1ab, c1cd"):
        database.commit("c1")
    with pytest.raises(DatabaseError, match="no records of commit c2"):
        database.commit("c2")


def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / "r.duckdb").write_text("something else")
    with pytest.raises(DatabaseError, match=r"r\.duckdb"):
        Database(str(tmp_path / "r.duckdb"))


@pytest.mark.parametrize("url", ["nosuch://x", "postgresql+nosuch://user:secret@h/d", "postgresql://[:"])
def test_a_malformed_url_is_an_error(url):
    with pytest.raises(DatabaseError) as error:
        Database(url)
    assert url.partition(":")[0] in str(error.value) and "secret" not in str(error.value)


def test_a_server_that_does_not_answer_keeps_the_password_secret():
    with pytest.raises(DatabaseError) as error:
        Database("postgresql://user:secret@localhost:1/none")
    assert "secret" not in str(error.value) and "localhost" in str(error.value)


JUNIT = """<testsuites><testsuite name="pytest" timestamp="2026-01-01T00:00:00"><properties>
<property name="commit" value="c7"/></properties>
<testcase classname="tests.test_a" name="test_x" time="0.25"><properties>
<property name="tags" value='{"pcc": 0.5}'/></properties></testcase>
<testcase classname="tests.test_a" name="test_y" time="1"><failure type="AssertionError" message="no">text</failure>
</testcase></testsuite></testsuites>"""


def test_junit_twice_adds_nothing(tmp_path):
    file = tmp_path / "junit.xml"
    file.write_text(JUNIT)
    passed, failed = read(file)
    assert (passed["key"], passed["verdict"], passed["commit"]) == ("tests.test_a::test_x", "match", "c7")
    assert passed["properties"] == {"tags": {"pcc": 0.5}}
    assert (failed["verdict"], failed["error"], failed["message"]) == ("wrong", "AssertionError", "no")
    database = Database(str(tmp_path / "r.duckdb"))
    assert [database.add(read(file)) for _ in range(2)] == [2, 0]


@pytest.mark.parametrize(("name", "text"), [("a.xml", "<testsuite"), ("a.jsonl", "hello"), ("b.jsonl", '{"a": 1}')])
def test_other_files_are_named(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(ResultsFileError, match=name):
        read(tmp_path / name)


def test_a_truncated_last_line_is_skipped(tmp_path):
    file = tmp_path / "r.jsonl"
    file.write_text(json.dumps(RECORDS[0]) + "\n" + json.dumps(RECORDS[1])[:-5])
    assert read(file) == RECORDS[:1]
