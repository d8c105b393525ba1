"""Connections to the place where the `ttnn` package runs: this process, or a worker."""

from __future__ import annotations

import contextlib
import importlib.util
import os
from typing import Protocol

from tt_torch.codegen import environment
from tt_torch.codegen.client import HANGS, TIMEOUT, Client, failure
from tt_torch.codegen.ttnn_worker.messages import Answer, Arguments
from tt_torch.errors import EnvironmentMissingError

MOCK = "TT_METAL_MOCK_CLUSTER_DESC_PATH"  # an environment variable that the library reads


class Link(Protocol):
    """The place where the package runs: this process or a worker."""

    @property
    def alive(self) -> bool: ...

    def ask(self, command: str, argument: Arguments | None = None) -> Answer: ...

    def close(self) -> None: ...


class InProcess:
    """The package in this process. It answers the same commands as a worker, by plain calls."""

    def __init__(self, timeout: float) -> None:
        os.environ.setdefault("TT_METAL_OPERATION_TIMEOUT_SECONDS", f"{timeout:g}")  # ttnn reads it at import
        from tt_torch.codegen.ttnn_worker.server import Worker

        self._worker, self.alive = Worker(), True

    def ask(self, command: str, argument: Arguments | None = None) -> Answer:
        try:
            return self._worker.ask(command, argument)
        except Exception as error:
            from tt_torch.codegen.ttnn_worker.refusal import explanation

            text = explanation(error)
            self.alive = HANGS not in text
            raise failure(command, text) from error

    def close(self) -> None:
        hangs, self.alive = not self.alive, False
        with contextlib.suppress(RuntimeError) if hangs else contextlib.nullcontext():  # the user knows it already
            self._worker.close()


class Part:
    """A part of a mesh. It uses the link of the whole mesh."""

    def __init__(self, link: Link, number: int) -> None:
        self._link, self._number = link, number

    @property
    def alive(self) -> bool:
        return self._link.alive

    def ask(self, command: str, argument: Arguments | None = None) -> Answer:
        return self._link.ask(command, {"part": self._number} | (argument or {}))

    def close(self) -> None:
        if self.alive:
            self.ask("close_part")


def connect(python: str = "", timeout: float = TIMEOUT) -> Link:
    """Connects to the package: in the interpreter `python` if it is given, else in this process if it has the package.

    Otherwise the environment of `tt-torch check --setup` is used. It has no compiler of kernels, so it opens only mock
    devices. Raises EnvironmentMissingError if none of the three can be used.
    """
    if python:
        return Client(python, os.environ, timeout)
    found = importlib.util.find_spec("ttnn")
    if found and found.origin:  # a folder that is only named ttnn has no origin
        return InProcess(timeout)
    if not environment.is_ready():
        raise EnvironmentMissingError(
            "this Python has no ttnn package, and TT_TORCH_TTNN_PYTHON is not set to one that has it; "
            "for mock devices, run: tt-torch check --setup"
        )
    if not os.environ.get(MOCK):
        raise EnvironmentMissingError(
            "this Python has no ttnn package, and TT_TORCH_TTNN_PYTHON is not set to one that has it. The environment "
            f"of tt-torch check --setup opens only mock devices; set {MOCK} to the description of one to use it"
        )
    folder = environment.default_folder()
    kernels = {"TT_METAL_CACHE": str(folder / "kernels")}  # hardware must not find the kernels of the stand-in
    return Client(environment.python_in(folder), os.environ | kernels, timeout)
