"""The only hook for other packages. With it, they observe how graphs are compiled and run, or do this work themselves.

The driver imports none of these packages. A package that offers an observer names a function of `(observer, config)` as
an entry point of the group `tt_torch.observers`; the function returns the observer with its own fields filled in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch.fx import GraphModule

from tt_torch.config import OP_BY_OP, CompileDepth, CompilerConfig
from tt_torch.driver.compile import Watch
from tt_torch.driver.devices import Device
from tt_torch.driver.executor import Executor
from tt_torch.driver.offered import offered
from tt_torch.driver.program import Program, Runner


@dataclass(frozen=True)
class Observer:
    """Functions that the driver calls while it compiles, and functions that replace parts of its work."""

    executor: Callable[[Executor], object] = lambda executor: None  # gets each executor of the program, in order
    graph: Callable[[GraphModule], object] = lambda gm: None  # gets each graph, before the host ops are known
    # Gets each graph with the roles of its inputs, and what will run it: an Executor, a HostProgram, or eager PyTorch.
    compiled: Callable[[GraphModule, Sequence[str], Runner], object] = lambda gm, roles, runner: None
    program: Callable[[Program], object] = lambda program: None  # gets each graph on the device, when it is complete
    reached: Watch | None = None  # gets each form of each graph and of its parts, including trials
    input_name: Callable[[str], str] = lambda name: name  # gives an input its name in messages, from Dynamo's name
    flag: bool = True  # whether an extra output may tell that integers are exact; if not, an extra program tells it
    # Runs a whole graph with inputs of these roles; the driver then compiles nothing of it.
    take_graph: Callable[[GraphModule, Sequence[str], CompilerConfig], Runner] | None = None
    # Compiles a part of a graph that belongs on the device.
    make_executor: Callable[[GraphModule, Sequence[str], CompilerConfig, Device], Executor] | None = None


NOBODY = Observer()

# For each entry point of the group: whether the options ask for it.
_ASKED: dict[str, Callable[[CompilerConfig], bool]] = {
    "op-by-op": lambda c: c.compile_depth in OP_BY_OP,
    "profiling": lambda c: bool(c.profile) and c.compile_depth == CompileDepth.EXECUTE,
    "verification": lambda c: c.enable_intermediate_verification or c.bisect,  # wins over profiling
}


def asked_for(config: CompilerConfig, observer: Observer) -> Observer:
    """The observer, extended as the options ask. Raises EnvironmentMissingError if no installed package offers that."""
    for name, asks in _ASKED.items():
        if asks(config):
            observer = offered(name)(observer, config)
    return observer
