"""Runs the RUN lines of IR tests in the process of lit or pytest. A new process for each line would need most of a
second to start Python and torch-mlir.

A line is a pipe of `opt` and `filecheck`, with `env NAME=VALUE` before it if necessary.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import shlex
from typing import Any

import lit.formats
import typer
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options
from filecheck.parser import Parser
from lit.Test import FAIL, PASS, Result, Test
from lit.TestRunner import applySubstitutions, parseIntegratedTestScript
from typer.testing import CliRunner

from tt_torch.tools.opt_cli import opt

OPT = typer.Typer()
OPT.command()(opt)


class InProcess(lit.formats.FileBasedTest):
    def execute(self, test: Test, lit_config: Any) -> Result:
        script = parseIntegratedTestScript(test)
        if isinstance(script, Result):
            return script
        substitutions = [*test.config.substitutions, ("%s", test.getSourcePath())]
        for line in applySubstitutions([directive.command for directive in script], substitutions):
            command = line.partition(") ")[2].strip()  # lit marks each command with its place: "%dbg(RUN: at line 1) "
            status, text = run_line(command)
            if status:
                return Result(FAIL, f"status {status} of {command}\n{text}")
        return Result(PASS)


def run_line(line: str) -> tuple[int, str]:
    """The first exit status of a pipe that is not 0, with the messages of its command; 0 if there is none."""
    text = ""
    for command in line.split("|"):
        words = shlex.split(command)
        variables = {}
        if words[0] == "env":
            variables = dict(word.split("=", 1) for word in itertools.takewhile(lambda w: "=" in w, words[1:]))
            words = words[1 + len(variables) :]
        status, text, messages = PROGRAMS[words[0]](words[1:], text, variables)
        if status:
            return status, messages
    return 0, ""


def run_opt(arguments: list[str], _text: str, variables: dict[str, str]) -> tuple[int, str, str]:
    run = CliRunner().invoke(OPT, arguments, env=variables)
    if run.exception and not isinstance(run.exception, SystemExit):
        raise run.exception
    return run.exit_code, run.stdout, run.output


def run_filecheck(arguments: list[str], text: str, _variables: dict[str, str]) -> tuple[int, str, str]:
    messages = io.StringIO()
    with contextlib.redirect_stdout(messages), contextlib.redirect_stderr(messages):
        options = parse_argv_options(["filecheck", *arguments])
        status = Matcher(options, FInput("-", text), Parser.from_opts(options)).run()
    return status, "", messages.getvalue()


PROGRAMS = {"opt": run_opt, "filecheck": run_filecheck}
