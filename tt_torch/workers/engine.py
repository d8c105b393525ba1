"""Runs items in worker processes: an item that crashes, hangs or uses too much memory fails alone."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import importlib
import itertools
import multiprocessing
import multiprocessing.connection
import multiprocessing.forkserver
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

_ITEMS_PER_WORKER = 100  # then a new process, so that leaks of the compilers do not reach the memory limit
_START_SECONDS = 300  # a worker that starts may wait for imports
_STOP_SECONDS = 5
_STDERR_CHARACTERS = 2000
_PR_SET_PDEATHSIG = 1
_KILLED = (-signal.SIGKILL, 255)  # 255: the fork server was killed, and the worker with it


Outcome: TypeAlias = dict[str, Any]  # what the call of an item returned, or the verdict on it; JSON can hold it


@dataclass(frozen=True)
class Item:
    """A unit of work: the function `call` ("package.module:function") returns a dict that JSON can hold."""

    key: str  # unique within a sweep
    call: str
    arguments: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Limits:
    seconds: float = 60.0  # per item
    memory: int = 8 << 30  # bytes of address space per worker


def run(items: Iterable[Item], jobs: int, limits: Limits) -> Iterator[tuple[Item, Outcome]]:
    """Yields each item with its record when it ends, in any order; `jobs` items run at a time.

    The items may be an iterator: one is taken from it when a worker has time for it. A record is the dict that the
    item's function returned, or {"verdict": "error" | "crash" | "timeout", "error", "message"}.
    """
    waiting = iter(items)
    first = list(itertools.islice(waiting, jobs))
    workers = [Worker({item.call.partition(":")[0] for item in first}, limits) for _ in first]
    waiting = itertools.chain(first, waiting)
    try:
        busy = [worker for worker in workers if worker.next(waiting)]
        while busy:
            _wait(busy)
            for worker in list(busy):
                record = worker.poll()
                if record is None:
                    continue
                item = worker.item
                if not worker.next(waiting):
                    busy.remove(worker)
                yield item, record
    finally:
        for worker in workers:
            worker.stop()


def _wait(workers: list[Worker]) -> None:
    remaining = min(worker.deadline for worker in workers) - time.monotonic()
    multiprocessing.connection.wait([worker.connection for worker in workers], timeout=max(0.0, remaining))


class Worker:
    """A process that runs items one after the other. It is replaced when it dies or when an item exceeds its time.

    Processes are forked from a server. It imports the `modules` of the first workers once for all of them; a worker
    with other modules imports them itself. Neither counts against the time of an item. If a process is killed with
    SIGKILL, its item runs once more, because the cause may lie elsewhere: the kernel also kills processes when memory
    runs out.
    """

    def __init__(self, modules: Iterable[str], limits: Limits) -> None:
        self.context, self.limits, self.modules = multiprocessing.get_context("forkserver"), limits, sorted(modules)
        self.context.set_forkserver_preload(self.modules)
        self.process: Any = None
        self.served = 0

    def run(self, item: Item) -> Outcome:
        """The record of an item, when it has ended."""
        self.start(item)
        while (record := self.poll()) is None:
            _wait([self])
        return record

    def next(self, waiting: Iterator[Item]) -> bool:
        """Starts the next item, if there is one."""
        item = next(waiting, None)
        if item:
            self.start(item)
        return item is not None

    def start(self, item: Item, again: bool = False) -> None:
        self.item, self.again = item, again
        if self.process is None or self.served == _ITEMS_PER_WORKER:
            self._spawn()
        self.served += 1
        self.notes: Outcome = {}
        with contextlib.suppress(ConnectionError):  # it died while it was idle, and poll() sees that
            self.connection.send(self.item)
        self.deadline = time.monotonic() + self.limits.seconds

    def poll(self) -> Outcome | None:
        """The record of the current item, or None while it runs."""
        while self.connection.poll():
            try:
                final, values = self.connection.recv()
            except (EOFError, ConnectionError):  # it died; with ConnectionError, before it has read its item
                return self._died()
            if final:
                return {**self.notes, **values}
            self.notes |= values
        if time.monotonic() < self.deadline:
            return None
        return self._failed("timeout")

    def _died(self) -> Outcome | None:
        self.process.join()
        if self.process.exitcode not in _KILLED or self.again:
            return self._failed("crash")
        self.stop()
        self.start(self.item, again=True)
        return None

    def _failed(self, verdict: str) -> Outcome:
        if verdict == "timeout":
            self.process.kill()
        self.process.join()
        error = f"no result after {self.limits.seconds:g} s" if verdict == "timeout" else _exit(self.process.exitcode)
        message = self._stderr()
        self.stop()
        return {**self.notes, "verdict": verdict, "error": error, "message": message}

    def _stderr(self) -> str:
        with open(self.log_name, errors="replace") as file:
            return file.read()[-_STDERR_CHARACTERS:].strip()

    def _spawn(self) -> None:
        self.stop()
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 - without a name, nothing of it is left if we are killed
        self.log_name = f"/proc/{os.getpid()}/fd/{self.log.fileno()}"
        self.connection, child = self.context.Pipe()
        arguments = (child, self.limits, self.log_name, self.modules)
        # not a daemon, because daemons may not start processes
        self.process = self.context.Process(target=_serve, args=arguments)
        with _nameless_main():
            self.process.start()
        atexit.register(self.stop)
        child.close()  # then the death of the process is an end of file here
        self.served = 0
        if not self.connection.poll(_START_SECONDS):
            raise TimeoutError(f"a worker did not start within {_START_SECONDS} s")
        with contextlib.suppress(EOFError):  # it died while it imported, and poll() sees that
            self.connection.recv()

    def stop(self) -> None:
        if self.process is None:
            return
        atexit.unregister(self.stop)
        self.connection.close()  # an idle worker ends by itself
        self.process.join(_STOP_SECONDS)
        self.process.kill()
        self.process.join()
        self.log.close()
        self.process = None


@contextlib.contextmanager
def _nameless_main() -> Iterator[None]:
    """Hides `__main__`: multiprocessing would import its file in each worker, which runs the user's program again."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _exit(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit status {code}"


_parent: multiprocessing.connection.Connection | None = None  # a worker process's connection


def note(**values: object) -> None:
    """Adds fields to the record of the running item; they stay if the worker dies. It does nothing elsewhere."""
    if _parent is not None:
        _parent.send((False, values))


def _serve(connection: multiprocessing.connection.Connection, limits: Limits, log: str, modules: Iterable[str]) -> None:
    """The main function of a worker process."""
    _die_with_parent()
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory, limits.memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    output = os.open(log, os.O_WRONLY | os.O_TRUNC | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    global _parent
    _parent = connection
    for module in modules:
        with contextlib.suppress(Exception):  # each item of the module has this error in its record
            importlib.import_module(module)
    connection.send("ready")
    with contextlib.suppress(EOFError):  # the parent has closed the connection
        while True:
            item = connection.recv()
            os.ftruncate(output, 0)
            connection.send((True, _call(item)))


def _die_with_parent() -> None:
    """Makes the kernel end this process together with its fork server; an orphan in an endless loop would never end.

    The fork server ends with the process of the sweep, but only if no other process holds the pipe between them.
    multiprocessing passes that pipe on to this process, so it is closed here.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.close(multiprocessing.forkserver._forkserver._forkserver_alive_fd)  # type: ignore[attr-defined]


def _call(item: Item) -> Outcome:
    try:
        outcome: Outcome = resolve(item.call)(**item.arguments)
        return outcome
    except Exception as error:  # the worker is sound; the item is not
        traceback.print_exc()
        return {"verdict": "error", "error": type(error).__name__, "message": str(error)[:_STDERR_CHARACTERS]}


def resolve(call: str) -> Callable[..., Any]:
    """The function that "package.module:function" names."""
    module, _, name = call.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function
