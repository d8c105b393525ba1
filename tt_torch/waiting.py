"""One line on the terminal while something takes long. The line is gone afterwards, and a log never gets it."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 2.0  # seconds before the terminal shows the line


@contextmanager
def waiting(text: Callable[[], str]) -> Iterator[None]:
    """Shows `text()` and the seconds so far, several times per second, if the block takes longer than PATIENCE.

    It shows nothing if stderr is no terminal, or with TT_TORCH_PROGRESS=0. What the block prints stands above the line.
    """
    if os.environ.get("TT_TORCH_PROGRESS") == "0" or not (sys.stderr and sys.stderr.isatty()):
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_show, args=(text, done), daemon=True, name="tt_torch progress")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _show(text: Callable[[], str], done: threading.Event) -> None:
    start = time.monotonic()
    if done.wait(PATIENCE):
        return
    from rich.console import Console  # only here: a program that is never slow does not import it
    from rich.live import Live
    from rich.text import Text

    def line() -> Text:
        return Text(f"{text()}  {time.monotonic() - start:.0f} s", overflow="ellipsis", no_wrap=True)

    console = Console(stderr=True)
    with Live(get_renderable=line, console=console, transient=True, redirect_stdout=False, refresh_per_second=4):
        done.wait()
