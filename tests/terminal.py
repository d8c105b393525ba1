"""A terminal for tests, which keeps all that is written to it."""

from __future__ import annotations

import contextlib
import os
import pty
import sys
from collections.abc import Callable

import pytest

from tt_torch import waiting


def shown(action: Callable[[], object], patience: float = 0.05) -> str:
    """Runs an action with a terminal as stderr, and returns all that it writes there.

    The line of `waiting` comes after `patience` seconds.
    """
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as terminal, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", terminal)
        patch.setattr(waiting, "PATIENCE", patience)
        patch.setenv("TERM", "xterm")
        action()
        terminal.write("end")
    return written(master)


def written(terminal: int) -> str:
    """All that was written to a terminal whose other side is closed. One read may return only a part."""
    data = b""
    with contextlib.suppress(OSError):  # EIO is the end
        while part := os.read(terminal, 100_000):
            data += part
    os.close(terminal)
    return data.decode()
