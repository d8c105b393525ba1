"""The grammar that all commands of `tt-torch` share: docs/command_line.md."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import sys
import warnings
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

from tt_torch.files import STABLEHLO_SUFFIXES

if TYPE_CHECKING:
    from typer._click.core import Context

AsJson = Annotated[bool, typer.Option("--json", help="print one JSON document instead of text")]
Program = Annotated[
    list[str],
    typer.Argument(metavar="PROGRAM [ARGUMENTS]", help="prog.py, or -m MODULE, and the program's own arguments"),
]

# typer has no public name for this class, and each version of typer keeps it in another module
_USAGE_ERROR: type[Any] = typer.BadParameter.__mro__[1]


class Commands(typer.core.TyperGroup):
    """The whole command. A wrong call ends with one line and status 2. A closed pipe, a full disk and other errors of
    the system end with status 1."""

    def main(self, *args: Any, **options: Any) -> Any:
        _leave_out_types_of_flags(self)
        _open_closed_streams()
        _print_in_any_encoding()
        try:
            with _warnings_without_our_lines():
                status = super().main(*args, **{**options, "standalone_mode": False})
            sys.stdout.flush()
        except _USAGE_ERROR as error:
            status = 2
            if message := error.format_message():  # the message is empty if the help has been printed
                path = error.ctx.command_path if error.ctx else "tt-torch"
                sentence = message if message.endswith(("?", ".")) else f"{message}."
                print(f"error: {sentence} {path} -h shows how to call it.", file=sys.stderr)
        except OSError as error:
            status = 1
            if not isinstance(error, BrokenPipeError):  # nothing reads the output any more
                print(f"error: {error}", file=sys.stderr)
            # Python writes the rest of the output when it ends, and would complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(status or 0)


def _open_closed_streams() -> None:
    """Opens /dev/null in place of a stream that the caller has closed, as in `tt-torch verify prog.py >&-`."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - it stays open until the process ends


def _print_in_any_encoding() -> None:
    """Makes stdout print a character that its encoding does not have as `\\xb5`, as stderr does.

    Without it, a `µ` in ASCII, or a file name that is not UTF-8, ends the command with a traceback.
    """
    out = sys.stdout
    if isinstance(out, io.TextIOWrapper) and (out.encoding, out.errors) != ("utf-8", "surrogateescape"):
        out.reconfigure(errors="backslashreplace")


@contextlib.contextmanager
def _warnings_without_our_lines() -> Iterator[None]:
    """Prints a warning for which no line of a user is to blame as one line, without the line of this package."""
    usual = warnings.formatwarning

    def shown(message: Any, category: type[Warning], filename: str, lineno: int, line: str | None = None) -> str:
        ours = Path(filename).is_relative_to(Path(__file__).parent)
        return f"warning: {message}\n" if ours else usual(message, category, filename, lineno, line)

    warnings.formatwarning = shown
    try:
        yield
    finally:
        warnings.formatwarning = usual


def _leave_out_types_of_flags(command: Any) -> None:
    """Makes the help of a command and of its subcommands show `--json` instead of `--json <bool>`."""
    help_option = command.get_help_option(typer.Context(command, help_option_names=["-h", "--help"]))
    for param in (*command.params, help_option):
        if getattr(param, "is_flag", False):
            param.metavar = ""  # without it, typer shows the type of the parameter in Python
    for subcommand in getattr(command, "commands", {}).values():
        _leave_out_types_of_flags(subcommand)


class ProgramCommand(typer.core.TyperCommand):
    """A command whose last argument is a program: all that follows the program's name belongs to the program."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        options = [param for param in self.params if param.param_type_name == "option"]
        valued = {name for param in options if not getattr(param, "is_flag", False) for name in param.opts}
        own = {name for param in options for name in (*param.opts, *param.secondary_opts)} | {*ctx.help_option_names}
        try:
            return super().parse_args(ctx, separated(args, own, valued))
        except typer.BadParameter as error:
            error.ctx = ctx
            raise


def separated(words: Sequence[str], own: Collection[str], valued: Collection[str]) -> list[str]:
    """The words of a command, with `--` before the program.

    `own` has the names of the command's options. `valued` has the options that take a value. The `--` may also stand
    behind the program's name. Raises BadParameter if an option of the command follows the program, and no `--` says to
    which of the two it belongs.
    """
    start = 0
    while start < len(words) and words[start].startswith("-") and words[start] not in ("-m", "--"):
        start += 2 if words[start] in valued else 1
    ours, rest = list(words[:start]), list(words[start:])
    if not rest or rest[0] == "--":
        return [*ours, *rest]
    name = 2 if rest[0] == "-m" else 1
    program, arguments = rest[:name], rest[name:]
    if arguments[:1] == ["--"]:
        return [*ours, "--", *program, *arguments[1:]]
    for word in arguments:
        if word.partition("=")[0] in own:
            raise typer.BadParameter(
                f"{word} follows the program: put it before {program[-1]} if it is for tt-torch, and put -- before "
                f"{program[-1]} if it is for the program"
            )
    return [*ours, "--", *program, *arguments]


_NO_PROGRAMS = (".ttnn", ".ttpkg", ".onnx", ".pt2")


def check_program(program: Sequence[str]) -> None:
    """Raises BadParameter if there is no such Python file or module, or if the file is a model or a compiled one."""
    if program[0] != "-m":
        if not Path(program[0]).is_file():
            raise typer.BadParameter(f"there is no Python file {program[0]!r}; give prog.py or -m MODULE")
        if Path(program[0]).suffix in (*STABLEHLO_SUFFIXES, *_NO_PROGRAMS):
            others = "tt-torch compile compiles a model; run, verify FILE MODEL, profile and explore take its package"
            raise typer.BadParameter(f"{program[0]!r} is no Python program; {others}")
    elif len(program) < 2 or not is_module(program[1]):
        raise typer.BadParameter(f"there is no module {' '.join(program[1:2])!r}")


def is_module(name: str) -> bool:
    """Whether Python finds a module of this name. Like `python -m`, it also looks in the current folder."""
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    with contextlib.suppress(ModuleNotFoundError, ValueError):  # no package before the last point; an empty name
        return importlib.util.find_spec(name) is not None
    return False


def print_json(facts: object) -> None:
    """Prints one JSON document. Raises ValueError for NaN and infinity, which JSON does not have."""
    print(json.dumps(facts, indent=2, allow_nan=False))
