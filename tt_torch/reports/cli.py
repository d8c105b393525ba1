"""`tt-torch report`: imports results into the database, and makes reports from it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tt_torch.cli_errors import needs, one_line_errors
from tt_torch.command_line import AsJson, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tt_torch.records.lines import Record
    from tt_torch.reports.compare import Change
    from tt_torch.reports.database import Database

app = typer.Typer(no_args_is_help=True, help="Keeps results of sweeps and tests in a database; makes reports from it.")

Db = Annotated[str, typer.Option("--db", help="a DuckDB file, or postgresql://user@host/name")]
Commit = Annotated[str | None, typer.Option(help="only the records of this commit")]
DEFAULT = "results/results.duckdb"


@app.command("import")
def import_(
    files: Annotated[
        list[Path], typer.Argument(exists=True, dir_okay=False, help="JSON lines, op-by-op .json, or JUnit .xml")
    ],
    db: Db = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Adds results to the database. Records that it has already are not added again."""
    needs("reports")
    from tt_torch.reports.database import Database
    from tt_torch.reports.reading import read

    with one_line_errors():
        database = Database(db)
        counts = {}
        for file in files:
            records = read(file)
            counts[str(file)] = {"records": len(records), "new": database.add(records)}
            if not as_json:
                print("{}: {records} records, {new} new".format(file, **counts[str(file)]), flush=True)
        if as_json:
            print_json(counts)


@app.command()
def xlsx(
    output: Annotated[Path, typer.Option("-o", "--output", help="the workbook")] = Path("results/report.xlsx"),
    db: Db = DEFAULT,
    commit: Commit = None,
) -> None:
    """Writes a workbook with sheets of models, ops and failures, and a sheet per model."""
    needs("reports")
    from tt_torch.reports.database import Database
    from tt_torch.reports.spreadsheet import write_workbook

    with one_line_errors():
        write_workbook(_latest(Database(db, create=False), commit), output)
    print(output)


@app.command()
def html(
    output: Annotated[Path, typer.Option("-o", "--output", help="the web page")] = Path("results/report.html"),
    db: Db = DEFAULT,
    commit: Commit = None,
) -> None:
    """Writes a web page as a single file, which works offline."""
    needs("reports")
    from tt_torch.files import write
    from tt_torch.reports.database import Database
    from tt_torch.reports.page import render

    with one_line_errors():
        database = Database(db, create=False)
        write(output, render(_latest(database, commit), database.records()).encode())
    print(output)


@app.command()
def pages(
    output: Annotated[Path, typer.Option("-o", "--output", help="folder of the pages")] = Path("results/ops"),
    db: Db = DEFAULT,
    commit: Commit = None,
) -> None:
    """Writes a Markdown page per op into a folder, with the results of its forms in models and of its samples."""
    needs("reports")
    from tt_torch.files import write
    from tt_torch.reports.database import Database
    from tt_torch.reports.op_pages import op_pages

    with one_line_errors():
        written = op_pages(_latest(Database(db, create=False), commit))
        for name, text in written.items():
            write(output / name, text.encode())
    print(f"{output}: {len(written)} files")


@app.command()
def compare(
    before: Annotated[str, typer.Argument(help="a commit")],
    after: Annotated[str, typer.Argument(help="a commit")],
    db: Db = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Prints what got better and worse between two commits. The exit status is 1 if something got worse."""
    needs("reports")
    from tt_torch.reports.compare import compare, only_in_one
    from tt_torch.reports.database import Database

    with one_line_errors():
        database = Database(db, create=False)
        old, new = (database.latest(database.commit(name)) for name in (before, after))
    changes = compare(old, new)
    gone, fresh = only_in_one(old, new)
    if as_json:
        found = {"changes": [asdict(change) for change in changes]}
        print_json({**found, "of": len(new) - fresh, "gone": gone, "new": fresh})
    else:
        _show(changes, len(new) - fresh, gone, fresh)
    raise typer.Exit(1 if any(change.worse for change in changes) else 0)


def _show(changes: Sequence[Change], of: int, gone: int, fresh: int) -> None:
    from rich.text import Text

    from tt_torch.records.console import plain_console

    console = plain_console(soft_wrap=True)
    for change in changes:
        word, style = ("worse", "red") if change.worse else ("better", "green")
        message = f"  {change.message}" if change.message else ""
        text = f" {change.kind} {change.key}: {change.before} -> {change.after}{message}"
        console.print(Text.assemble((f"{word:6}", style), text))
    worse = sum(change.worse for change in changes)
    console.print(f"{worse} worse, {len(changes) - worse} better, of {of}; {gone} gone, {fresh} new")


def _latest(database: Database, commit: str | None) -> list[Record]:
    """The last record of each key. Raises DatabaseError if a commit is named that has no records."""
    return database.latest(None if commit is None else database.commit(commit))
