"""The plugin for pytest: op-by-op runs of tests, reports that survive a crash, and a log of memory.

pytest loads this file in every run where the package is installed. Without its options it does nothing, and it imports
nothing that is slow.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tt_torch.config import CompilerConfig, OpByOpBackend

SUFFIX = "_crashsafe.xml"  # after the path of --junit-xml
MEMORY_LOG = "pytest-memory-usage.csv"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tt-torch")
    for name, what in (("torch", "ATen graph"), ("stablehlo", "StableHLO program")):
        group.addoption(
            f"--op_by_op_{name}",
            action="store_true",
            help=f"run only the tests that can take a model's {what} apart, and compile each op by itself",
        )
    group.addoption(
        "--crashsafe",
        action="store_true",
        help=f"write each result at once to <file of --junit-xml>{SUFFIX}, so that it survives a crash",
    )
    group.addoption(
        "--log-memory-usage", action="store_true", help=f"add a line about the memory of each test to {MEMORY_LOG}"
    )


def pytest_configure(config: pytest.Config) -> None:
    if kinds := _wanted(config):
        config.pluginmanager.register(_runs(kinds), "tt_torch_op_by_op")
    if config.getoption("--crashsafe"):
        report = config.getoption("--junit-xml")
        if not report:
            raise pytest.UsageError("--crashsafe needs --junit-xml")
        if config.getoption("numprocesses", None) or hasattr(config, "workerinput"):
            raise pytest.UsageError("--crashsafe needs all tests in one process: add -n 0")
        from tt_torch.testing.crashsafe import CrashSafe

        config.pluginmanager.register(CrashSafe(Path(report + SUFFIX)), "tt_torch_crashsafe")
    if config.getoption("--log-memory-usage"):
        from tt_torch.testing.memory import MemoryLog

        config.pluginmanager.register(MemoryLog(config.rootpath / MEMORY_LOG), "tt_torch_memory")


def _wanted(config: pytest.Config) -> list[OpByOpBackend]:
    """The kinds of op-by-op runs that the options ask for."""
    if not (config.getoption("--op_by_op_torch") or config.getoption("--op_by_op_stablehlo")):
        return []
    from tt_torch.config import OpByOpBackend

    return [kind for kind in OpByOpBackend if config.getoption(f"--op_by_op_{kind.name.lower()}")]


def _runs(kinds: list[OpByOpBackend]) -> object:
    """A plugin whose fixture `op_by_op` has a value for each kind of run. pytest finds fixtures in classes only."""

    class Runs:
        @pytest.fixture(params=kinds, ids=lambda kind: f"op_by_op_{kind.name.lower()}")
        def op_by_op(self, request: pytest.FixtureRequest) -> OpByOpBackend:
            kind: OpByOpBackend = request.param
            return kind

    return Runs()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With an op-by-op option, keeps the tests whose parameter `op_by_op` has the option's value."""
    if not (wanted := _wanted(config)):
        return
    others = [item for item in items if _kind(item) not in wanted]
    items[:] = [item for item in items if _kind(item) in wanted]
    config.hook.pytest_deselected(items=others)


def _kind(item: pytest.Item) -> object:
    return item.callspec.params.get("op_by_op") if hasattr(item, "callspec") else None


@pytest.fixture
def op_by_op() -> OpByOpBackend | None:
    """The kind of op-by-op run that an option asks for; None for a whole program."""
    return None


@pytest.fixture
def compiler_config(op_by_op: OpByOpBackend | None) -> CompilerConfig:
    """The options of a test of a model, for a whole program or for its single ops."""
    from tt_torch.config import CompileDepth, CompilerConfig

    config = CompilerConfig()
    if op_by_op is not None:
        config.compile_depth, config.op_by_op_backend = CompileDepth.EXECUTE_OP_BY_OP, op_by_op
    return config
