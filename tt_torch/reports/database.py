"""The results database: a DuckDB file, or a server that SQLAlchemy can connect to.

The id of a record is the hash of its content, so a record that is written again is still kept once. Each write is a
transaction of its own, so that a killed run leaves complete records.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy.engine import Connection

from tt_torch.errors import DatabaseError
from tt_torch.records.lines import Record

DEFAULT = "results/results.duckdb"
_LOCK_SECONDS = 60.0  # only one process at a time can open a DuckDB file
_CHUNK = 1000
T = TypeVar("T")

METADATA = sa.MetaData()
RECORDS = sa.Table(
    "records",
    METADATA,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("kind", sa.String, nullable=False),  # op, model or test
    sa.Column("key", sa.String, nullable=False),  # the item; several commits may have records of it
    sa.Column("commit", sa.String),
    sa.Column("time", sa.String),  # ISO 8601
    sa.Column("verdict", sa.String, nullable=False),
    sa.Column("error", sa.String),
    sa.Column("message", sa.String),
    sa.Column("pcc", sa.Float),
    sa.Column("seconds", sa.Float),
    sa.Column("data", sa.String, nullable=False),  # the record itself, as JSON
)
_COPIED = ("kind", "key", "commit", "time", "verdict", "error", "message", "pcc", "seconds")


class Database:
    """Records in a database that SQLAlchemy reaches by its URL, or in the DuckDB file at a path.

    A file that does not exist is made if `create` is set; otherwise DatabaseError is raised.
    """

    def __init__(self, url: str = DEFAULT, create: bool = True) -> None:
        self.file = None if "://" in url else Path(url)
        if self.file and not create and not self.file.is_file():
            raise DatabaseError(url, "there is no such file; `tt-torch report import` makes one")
        if self.file:
            self.file.parent.mkdir(parents=True, exist_ok=True)
        elif url.startswith("postgresql://"):
            url = url.replace("postgresql://", "postgresql+psycopg://", 1)
        # A path is no part of a URL's text, where "?", "#" and "%" would mean something. It is absolute, because DuckDB
        # does not read the relative paths ":memory:" and "md:x" as files.
        self.url = sa.URL.create("duckdb", database=str(self.file.absolute())) if self.file else url
        try:
            self.name = str(self.file or sa.make_url(url).render_as_string(hide_password=True))
            sa.create_engine(self.url)
        except (sa.exc.ArgumentError, ImportError, ValueError) as error:
            raise DatabaseError(url.partition(":")[0] + "://...", error) from None
        self._retry(self._migrate)

    def add(self, records: Iterable[Record]) -> int:
        """Writes the records that the database does not have yet; returns their number."""
        rows = list({row["id"]: row for row in map(_row, records)}.values())
        return sum(self._retry(lambda part=part: self._insert(part)) for part in _chunks(rows))  # type: ignore[misc]

    def latest(self, commit: str | None = None) -> list[Record]:
        """The last record of each key, of one commit or of all, in order of kind and key."""
        return list({(r["kind"], r["key"]): r for r in self.records(commit)}.values())

    def records(self, commit: str | None = None) -> list[Record]:
        """All records, oldest first within a key."""
        query = sa.select(RECORDS.c.data).order_by(RECORDS.c.kind, RECORDS.c.key, RECORDS.c.time)
        if commit is not None:
            query = query.where(RECORDS.c.commit == commit)

        def select() -> list[Record]:
            with self._connect() as connection:
                return [json.loads(data) for data in connection.scalars(query)]

        return self._retry(select)

    def commit(self, name: str) -> str:
        """The commit of records that begins with `name`. Raises DatabaseError if there is none, or more than one."""

        def select() -> list[str]:
            with self._connect() as connection:
                query = sa.select(RECORDS.c.commit).where(RECORDS.c.commit.startswith(name, autoescape=True))
                return sorted(connection.scalars(query.distinct()))

        found = self._retry(select)
        if name in found:
            return name
        if len(found) != 1:
            what = f"{name} could be {', '.join(found)}" if found else f"has no records of commit {name}"
            raise DatabaseError(self.name, what)
        return found[0]

    def _insert(self, rows: Sequence[Record]) -> int:
        with self._connect() as connection:
            known = set(connection.scalars(sa.select(RECORDS.c.id).where(RECORDS.c.id.in_([r["id"] for r in rows]))))
            new = [row for row in rows if row["id"] not in known]
            if new:
                connection.execute(RECORDS.insert(), new)
            return len(new)

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        """A transaction on a connection that is closed afterwards, so that other processes can open the file."""
        engine = sa.create_engine(self.url, poolclass=sa.NullPool)
        try:
            with engine.begin() as connection:
                yield connection
        finally:
            engine.dispose()

    def _migrate(self) -> None:
        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
        with self._connect() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")

    def _retry(self, run: Callable[[], T]) -> T:
        """Tries again after conflicts: another process has the file, or wrote the same record or table at the same
        time."""
        deadline = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                return run()
            except sa.exc.DBAPIError as error:
                if time.monotonic() > deadline or not _passes(error):
                    raise DatabaseError(self.name, error.orig or error) from error
                time.sleep(0.05)


def _passes(error: sa.exc.DBAPIError) -> bool:
    """Whether the error comes from a conflict with another process, which a retry can solve."""
    conflict = isinstance(error, sa.exc.IntegrityError) or "conflict" in str(error).lower()
    return conflict or "Could not set lock" in str(error) or "already exists" in str(error)


def _row(record: Record) -> Record:
    data = json.dumps(record, sort_keys=True)
    identity = hashlib.sha256(data.encode()).hexdigest()
    return {**{name: record.get(name) for name in _COPIED}, "id": identity, "data": data}


def _chunks(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    for i in range(0, len(rows), _CHUNK):
        yield rows[i : i + _CHUNK]
