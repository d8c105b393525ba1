"""The grammar of `tt-torch`: what holds for all of its commands, and docs/command_line.md, which describes them."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import typer
from typer.testing import CliRunner, Result

from tt_torch import compile_model
from tt_torch.command_line import separated
from tt_torch.tools.cli import app

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "command_line.md").read_text()


def commands(group: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, object]]:
    """All commands that are no groups, with their full names."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


ALL = dict(commands(typer.main.get_command(app)))


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def is_one_line(result: Result) -> bool:
    return result.stdout == "" and result.stderr.startswith("error: ") and result.stderr.count("\n") == 1


def test_the_page_has_a_row_for_each_command() -> None:
    """The columns `-o` and `--json` of the page are what the commands take."""
    lines = (line.split("|") for line in PAGE.splitlines() if line.startswith("| `"))
    rows = ((re.sub(r" [A-Z[].*", "", cells[1].strip(" `")), cells) for cells in lines if len(cells) == 7)
    page = {name: (bool(cells[3].strip()), bool(cells[4].strip())) for name, cells in rows}
    own = {name: {option for param in command.params for option in param.opts} for name, command in ALL.items()}
    assert page == {name: ("-o" in options, "--json" in options) for name, options in own.items()}


@pytest.mark.parametrize("name", ALL)
def test_options_have_the_same_names_everywhere(name: str) -> None:
    options = [param for param in ALL[name].params if param.param_type_name == "option"]
    names = {option for param in options for option in param.opts}
    assert ("-o" in names) == ("--output" in names)
    assert all(re.fullmatch(r"-[a-z]|--[a-z]+(-[a-z]+)*", option) for option in names)
    assert all(param.help for param in ALL[name].params), "an option or an argument without help"


@pytest.mark.parametrize("name", ["", *ALL])
def test_help(name: str) -> None:
    result = invoke(*name.split(), "-h")
    assert result.exit_code == 0 and "Usage: " in result.stdout and "--help" in result.stdout
    assert "<bool>" not in result.stdout, "a flag takes no value"


@pytest.mark.parametrize("name", ["", *ALL])
def test_an_unknown_option_is_one_line(name: str) -> None:
    result = invoke(*name.split(), "--no-such-option")
    assert result.exit_code == 2 and is_one_line(result) and "--no-such-option" in result.stderr, result.output


FILES = [name for name, command in ALL.items() if any(p.param_type_name == "argument" for p in command.params)]


@pytest.mark.parametrize("name", sorted({*FILES} - {"report compare", "opt"}))
def test_an_absent_file_is_one_line(name: str) -> None:
    result = invoke(*name.split(), "absent.py")  # for a model, this lacks a function, too
    assert result.exit_code == 2 and is_one_line(result) and "absent.py" in result.stderr, result.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["inspct"], "Did you mean 'inspect'? tt-torch -h shows"),
        (["profile", "prog.py", "-o", "x"], "tt-torch profile -h shows how to call it."),
        (["report", "imprt"], "Did you mean 'import'?"),
        (["explore", __file__, "--port", "99999"], "'--port': Input should be less than or equal to 65535"),
        (["inspect"], "Missing argument 'file'. tt-torch inspect -h shows how to call it."),
    ],
)
def test_a_mistake_is_one_line(words: list[str], said: str) -> None:
    result = CliRunner().invoke(app, words, prog_name="tt-torch")
    assert result.exit_code == 2 and is_one_line(result) and said in result.stderr, result.output


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("bad.mlir", "Unable to parse module assembly: error: "),
        ("bad.py:made", "a number depends on values: Could not"),
    ],
)
def test_an_error_of_several_lines_is_one_line(model: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "bad.mlir").write_text("no module")
    (tmp_path / "bad.py").write_text("import torch\n\ndef made():\n    return lambda x: x.unique(), (torch.ones(4),)\n")
    result = invoke("compile", str(tmp_path / model))
    assert result.exit_code == 1 and is_one_line(result) and said in result.stderr, result.output


WARNS = """
import sys, warnings
import typer
from tt_torch import command_line

app = typer.Typer(cls=command_line.Commands)
app.callback()(lambda: None)

@app.command()
def warn(file: str):
    warnings.warn_explicit("mind", UserWarning, file, 3)

sys.argv[1] = sys.argv[1] or command_line.__file__
sys.argv.insert(1, "warn")
app()
"""


@pytest.mark.parametrize(("file", "said"), [("", "warning: mind\n"), ("net.py", "net.py:3: UserWarning: mind\n")])
def test_a_warning_names_no_line_of_ours(file: str, said: str) -> None:
    done = subprocess.run([sys.executable, "-c", WARNS, file], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", said)


def test_a_port_that_is_taken_is_one_line() -> None:
    with socket.socket() as server:
        server.bind(("localhost", 0))
        server.listen()
        port = server.getsockname()[1]
        result = invoke("explore", __file__, "--port", str(port))
    assert result.exit_code == 2 and is_one_line(result) and f"{port}: Address already in use" in result.stderr


def test_without_a_command_the_help_is_shown() -> None:
    result = invoke()
    assert result.exit_code == 2 and "Usage: " in result.output and "error" not in result.output


def test_a_reader_that_stops_early() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "tt_torch.tools.cli", "--version"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, b"")


def test_a_full_disk_is_one_line() -> None:
    command = [sys.executable, "-m", "tt_torch.tools.cli", "--version"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (1, b"error: [Errno 28] No space left on device\n")


@pytest.mark.parametrize("encoding", ["ascii", "ascii:surrogateescape", "latin-1", "utf-8"])
def test_a_stdout_that_lacks_a_character(encoding: str, tmp_path: Path) -> None:
    """The page of help has an ellipsis, and the name of the file is no UTF-8."""
    command = [sys.executable, "-m", "tt_torch.tools.cli"]
    variables = os.environ | {"PYTHONIOENCODING": encoding, "COLUMNS": "50"}
    for words in (["-h"], ["query", "-o", os.fsencode(tmp_path) + b"/a\xff.ttsys"]):
        done = subprocess.run([*command, *words], env=variables, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.endswith(b"a\\udcff.ttsys\n")


@pytest.mark.parametrize("redirection", [">&-", "2>&-", ">&- 2>&-"])
def test_a_stream_that_is_closed(redirection: str) -> None:
    for words, status in (("query", 0), ("inspect absent.ttnn", 2)):
        command = f'"{sys.executable}" -m tt_torch.tools.cli {words} {redirection}'
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
        assert done.returncode == status and "Traceback" not in done.stderr and "error" not in done.stdout


OWN, VALUED = {"-o", "--output", "--bisect", "-h"}, {"-o", "--output"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("prog.py", "-- prog.py"),
        ("--bisect -o out prog.py a --flag", "--bisect -o out -- prog.py a --flag"),
        ("--output=out -m mod a -m b", "--output=out -- -m mod a -m b"),
        ("-- prog.py -o x -- y", "-- prog.py -o x -- y"),
        ("prog.py -- -o x", "-- prog.py -o x"),
        ("-m mod -- --bisect -- y", "-- -m mod --bisect -- y"),
        ("-o prog.py", "-o prog.py"),
        ("", ""),
    ],
)
def test_the_program_takes_all_words_behind_it(words: str, expected: str) -> None:
    assert separated(words.split(), OWN, VALUED) == expected.split()


@pytest.mark.parametrize("words", ["prog.py --bisect", "prog.py a --output=x", "-m mod -o x", "--bisect prog.py -h"])
def test_an_option_behind_the_program_is_refused(words: str) -> None:
    with pytest.raises(typer.BadParameter, match="follows the program: put it before"):
        separated(words.split(), OWN, VALUED)


@pytest.mark.parametrize("command", ["codegen", "inspect", "link"])
def test_a_file_that_is_no_binary_is_named(command: str, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("import torch")
    result = CliRunner().invoke(app, [command, str(tmp_path / "net.py")])
    assert result.exit_code == 1 and result.stderr.startswith(f"error: {tmp_path / 'net.py'}: not a ")


def test_codegen_says_how_to_make_a_binary_in_place_of_a_package(tmp_path: Path) -> None:
    compile_model(torch.relu, (torch.ones(2),)).save(tmp_path / "net.ttpkg")
    result = CliRunner().invoke(app, ["codegen", str(tmp_path / "net.ttpkg")])
    assert result.exit_code == 2 and "`tt-torch compile MODEL -o NAME.ttnn` writes a binary" in result.stderr
