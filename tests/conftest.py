"""Every test starts from the same state: one seed and a fresh Dynamo; the IR is verified after every step."""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
import torch
from forked import Server
from nights import ONE_IN, at_night

# Many tests start processes that import torch. With this variable, which some container images set, each of them would
# compile two thousand Python files again. The first process of the suite keeps them, as Python does by default.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Workers of pytest-xdist share the cores. With a thread per core in each of them, they would slow each other down.
if "PYTEST_XDIST_WORKER" in os.environ:
    torch.set_num_threads(1)

# Results of JAX on the CPU are only compared. Optimizing each small program takes longer than running it.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
os.environ.setdefault("TT_TORCH_VERIFY_IR", "1")
os.environ["TT_TORCH_CACHE_SIZE"] = "0"  # a test must compile what it tests; tests of the compile cache turn it on

# By default, hypothesis fails an example that takes more than 200 ms, as examples sometimes do on a busy machine.
hypothesis.settings.register_profile("untimed", parent=hypothesis.settings(), deadline=None)
hypothesis.settings.load_profile("untimed")

TESTS = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`pytest -m sample` imports only the files that name this marker. The same is true of the other markers below.
    Other calls, such as a plain `pytest`, leave out a file if its `pytestmark` names a marker that they exclude.
    Importing all tests takes each process half a minute."""
    wanted, _, rest = config.option.markexpr.partition(" ")
    if collection_path.suffix != ".py" or " or " in rest:
        return None
    text = collection_path.read_text()
    if wanted in ("build", "conformance", "nightly", "sample", "slow"):
        named = f"mark.{wanted}" in text
        if wanted == "nightly":
            named |= "from nights import" in text or collection_path.relative_to(TESTS).as_posix() in ONE_IN
        return not named or None
    whole = re.search(r"^pytestmark = \[?pytest\.mark\.(\w+)", text, re.MULTILINE)
    return bool(whole and f"not {whole[1]}" in config.option.markexpr) or None


@pytest.hookimpl(tryfirst=True)  # before tests are selected by their markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    left_out = at_night([item.nodeid for item in items])
    for item in items:
        if item.nodeid in left_out:
            item.add_marker("nightly")


def pytest_collection_finish() -> None:
    """Two million objects exist after the collection, and live as long as the process. Without these lines, the
    garbage collector walks over them again and again, which takes a sixth of the processor time of all tests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)  # a compilation makes this many objects in a moment


@pytest.fixture(scope="session")
def forks() -> Iterator[Server]:
    """Runs Python scripts in forks of a process that has imported the backend. Each worker of pytest has one."""
    server = Server()
    yield server
    server.close()


@pytest.fixture
def made(monkeypatch):
    """The executors of all programs that a test compiles, in the order in which they are made."""
    from tt_torch.driver.executor import Executor  # imports the compiler, which not every test needs

    executors, build = [], Executor.__init__

    def init(self, *arguments):
        executors.append(self)
        build(self, *arguments)

    monkeypatch.setattr(Executor, "__init__", init)
    return executors


@pytest.fixture(autouse=True)
def _fresh_start():
    torch.manual_seed(0)
    yield
    if "torch._dynamo.utils" in sys.modules:
        # These write all of PyTorch's settings as text, for a log that nobody reads.
        for name in ("_get_dynamo_config_for_logging", "_scrubbed_inductor_config_for_logging"):
            setattr(sys.modules["torch._dynamo.utils"], name, lambda: None)
    if "torch._dynamo" in sys.modules:  # to import it only for a reset would take seconds
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()  # otherwise a test would count the graph breaks of the one before it
