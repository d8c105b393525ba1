"""The real library on a mock device as a model of ops: the optimizer asks it which forms of an op it accepts.

Its answers are kept in a database beside the library, so that it is asked once about each form. The key of an answer is
all that the library gets to see: the statements, and the descriptions of tensors.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tt_torch.codegen import environment
from tt_torch.codegen.check import Checker, request
from tt_torch.codegen.program import from_message
from tt_torch.codegen.ttnn_worker.messages import Arguments, Checked
from tt_torch.config import CompilerConfig
from tt_torch.errors import ConfigError, EnvironmentMissingError, UnsupportedBinaryError
from tt_torch.mlir.ttnn.optimizer.op_model import Answer
from tt_torch.wire.binary import first_chip, system
from tt_torch.wire.decode import decode

NAME = "answers.sqlite"
TABLE = "CREATE TABLE IF NOT EXISTS answers (question TEXT PRIMARY KEY, refusal TEXT, l1 INTEGER) WITHOUT ROWID"
WAIT = 60.0  # seconds for another process that writes


class Library:
    """Answers from the database, or else from a mock device, which is opened for the first unknown question.

    Raises EnvironmentMissingError if the library is not set up, and ConfigError for chips of which there is no mock.
    """

    def __init__(self, config: CompilerConfig) -> None:
        folder = environment.require()
        asked, mock = (first_chip(system(config.arch, file))["grid_size"] for file in (config.system_desc, ""))
        if asked != mock:
            cores = "{y} x {x} cores".format
            accepted = f'"rules" for chips with {cores(**asked)}; the mock device has {cores(**mock)}'
            raise ConfigError("op_model", config.op_model, accepted)
        self._card = next(card for card, arch in environment.DEVICES.items() if arch == config.arch)
        self._checker: Checker | None = None
        self._answers = _opened(folder / NAME)

    def ask(self, binary: bytes) -> Answer | None:
        """The answer for a program, or None if a generated program cannot have its ops. Raises WorkerError if the
        library ends or does not answer."""
        try:
            question = request(from_message(decode(binary)))
        except UnsupportedBinaryError:
            return None
        key = hashlib.sha256(json.dumps([self._card, question], sort_keys=True).encode()).hexdigest()
        with closing(self._answers.execute("SELECT refusal, l1 FROM answers WHERE question = ?", (key,))) as found:
            if row := found.fetchone():
                return Answer(*row)
        answer = self._of_the_library(question)
        with self._answers:
            self._answers.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", (key, answer.refusal, answer.l1))
        return answer

    def _of_the_library(self, question: Arguments) -> Answer:
        if self._checker is None:
            self._checker = Checker(self._card)
        checked: list[Checked] = self._checker.ask("check", question)
        differences = [text for each in checked for verdict in each["verdicts"] for text in verdict]
        return Answer("; ".join(differences), max(each["peak"]["core"] for each in checked))

    def close(self) -> None:
        self._answers.close()
        if self._checker is not None:
            self._checker.close()


def _opened(file: Path) -> sqlite3.Connection:
    """The database, which several processes may use. Raises EnvironmentMissingError if it is damaged."""
    answers = sqlite3.connect(file, timeout=WAIT)
    try:
        with answers:
            answers.execute(TABLE)
    except sqlite3.DatabaseError as error:
        answers.close()
        raise EnvironmentMissingError(f"{file} cannot be used: {error}; delete it, and it is made anew") from error
    return answers
