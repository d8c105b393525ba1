"""The functions of `torch.tt` in compiled regions: Dynamo treats them like `torch.cuda`'s functions."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from contextlib import nullcontext
from types import FunctionType

import pytest
import torch
from forked import Server
from torch._dynamo import trace_rules
from torch._dynamo.callback import callback_handler
from torch._dynamo.exc import Unsupported
from torch._dynamo.testing import CompileCounter
from torch._dynamo.utils import counters
from torch._dynamo.variables.torch import constant_fold_functions
from torch.testing._utils import wrapper_set_seed

from tt_torch.device import compiled_regions
from tt_torch.driver.graph_breaks import GraphBreakWarning

tt = torch.tt

# Dynamo evaluates these functions, and their results are constants of the graph.
CONSTANT = {
    "DeviceProperties": lambda: tt.DeviceProperties("a chip", "blackhole", 2, 1).total_memory,
    "current_device": lambda: tt.current_device(),
    "device_count": lambda: tt.device_count(),
    "get_amp_supported_dtype": lambda: tt.get_amp_supported_dtype()[0].itemsize,
    "get_device_name": lambda: len(tt.get_device_name("tt:0")),
    "get_device_properties": lambda: tt.get_device_properties(device=0).total_memory,
    "init": lambda: tt.init() is None,
    "is_available": lambda: tt.is_available(),
    "is_bf16_supported": lambda: tt.is_bf16_supported(),
    "is_initialized": lambda: tt.is_initialized(),
}


def in_device(index):
    with tt.device(index):
        return tt.current_device()


def in_event():
    event = tt.Event()
    event.record()
    event.synchronize()
    return event.query()


def in_stream():
    with tt.stream(tt.Stream()):
        return len([tt.current_stream(), tt.current_stream("tt"), tt.current_stream(device=0)])


# These functions become ops of the graph, or are context managers that Dynamo knows.
IN_GRAPH = {
    "Event": in_event,
    "Stream": lambda: tt.Stream().synchronize() is None,
    "current_stream": lambda: tt.current_stream().wait_stream(tt.current_stream("tt:0")) is None,
    "device": lambda: in_device(0) + in_device("tt:0") + in_device(torch.device("tt")) + in_device(None),
    "stream": in_stream,
    "synchronize": lambda: [tt.synchronize(), tt.synchronize(0), tt.synchronize(device="tt")].count(None),
}
STATES = tt.get_rng_state_all()
# These functions change or read the device's state. The graph ends before the call, and another begins after it.
BREAK = {
    "clear_fallback_counts": lambda: tt.clear_fallback_counts() is None,
    "empty_cache": lambda: tt.empty_cache() is None,
    "fallback_counts": lambda: len(tt.fallback_counts()) >= 0,
    "get_rng_state": lambda: len(tt.get_rng_state("tt:0")),
    "get_rng_state_all": lambda: len(tt.get_rng_state_all()),
    "initial_seed": lambda: tt.initial_seed(),
    "manual_seed": lambda: tt.manual_seed(3) is None,
    "manual_seed_all": lambda: tt.manual_seed_all(4) is None,
    "max_memory_allocated": lambda: tt.max_memory_allocated() >= 0,
    "max_memory_reserved": lambda: tt.max_memory_reserved() >= 0,
    "mem_get_info": lambda: tt.mem_get_info()[1],
    "memory_allocated": lambda: tt.memory_allocated("tt:0") >= 0,
    "memory_reserved": lambda: tt.memory_reserved() >= 0,
    "memory_stats": lambda: len(tt.memory_stats()),
    "memory_summary": lambda: len(tt.memory_summary()),
    "reset_peak_memory_stats": lambda: tt.reset_peak_memory_stats() is None,
    "seed": lambda: tt.seed() > 0,
    "seed_all": lambda: tt.seed_all() is None,
    "set_device": lambda: tt.set_device("tt:0") is None,
    "set_rng_state": lambda: tt.set_rng_state(STATES[0], "tt:0") is None,
    "set_rng_state_all": lambda: tt.set_rng_state_all(STATES) is None,
    "set_stream": lambda: tt.set_stream(tt.current_stream()) is None,
}


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)  # from importing inductor
        warnings.filterwarnings("ignore", ".*`<unknown module>.pybind11_object.__new__")  # from wrapper_set_seed
        yield


def test_every_function_has_its_place_here():
    assert sorted([*CONSTANT, *IN_GRAPH, *BREAK]) == sorted(tt.__all__)
    assert {*compiled_regions.CONSTANT, *compiled_regions.TRACED} <= {*CONSTANT, *IN_GRAPH}


def test_pytorch_does_the_same_with_cuda():
    theirs = {name: getattr(torch.cuda, name) for name in tt.__all__ if hasattr(torch.cuda, name)}
    constant = {name for name, function in theirs.items() if function in constant_fold_functions}
    broken = {
        name
        for name, function in theirs.items()
        if isinstance(function, FunctionType) and trace_rules.lookup(function) is trace_rules.SkipFunctionVariable
    } - {"stream"}  # Dynamo has its own code for it
    assert constant == {"current_device", "get_device_properties", "is_available", "is_initialized"} <= {*CONSTANT}
    assert {"get_rng_state", "manual_seed", "set_device", "set_rng_state"} <= broken <= {*BREAK}


def program(call):
    return lambda x: (x + 1) * (call() + 0)


@pytest.mark.parametrize("name", CONSTANT)
def test_constants(name):
    counter, run = CompileCounter(), program(CONSTANT[name])
    assert torch.equal(torch.compile(run, backend=counter, fullgraph=True)(torch.ones(2)), run(torch.ones(2)))
    assert (counter.frame_count, counter.op_count) == (1, 2)


@pytest.mark.parametrize("name", IN_GRAPH)
def test_ops(name):
    counter, run = CompileCounter(), program(IN_GRAPH[name])
    assert torch.equal(torch.compile(run, backend=counter, fullgraph=True)(torch.ones(2)), run(torch.ones(2)))
    assert counter.frame_count == 1 and counter.op_count > 2


@pytest.mark.parametrize("name", BREAK)
def test_graph_breaks(name):
    run, frames = program(BREAK[name]), []
    with pytest.raises(Unsupported):
        torch.compile(run, backend="eager", fullgraph=True)(torch.ones(2))
    torch._dynamo.reset()
    counters.clear()
    callback_handler.register_start_callback(frames.append)
    try:
        result = torch.compile(run, backend="eager")(torch.ones(2))
    finally:
        callback_handler.remove_start_callback(frames.append)
    assert torch.equal(result, run(torch.ones(2)))
    assert counters["stats"]["unique_graphs"] == 2 and len(counters["graph_break"]) == 1
    assert len(frames) == 2, "Dynamo compiled a function of the device's as a program of its own"


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["inductor", "tt"])
@pytest.mark.parametrize("name", BREAK)
def test_backends_go_on_after_a_graph_break(name, backend):
    run = program(BREAK[name])
    warnings.simplefilter("ignore", GraphBreakWarning)
    counters.clear()
    result = torch.compile(run, backend=backend)(torch.ones(2))
    assert counters["stats"]["unique_graphs"] == 2
    assert name == "seed" or torch.equal(result, run(torch.ones(2)))


def everything(x):
    """Calls all functions that need no graph break. The functions that become ops come first.

    In torch 2.13.0, inductor frees a CPU buffer too early if a stream op stands between its readers.
    """
    numbers = [call() % 7 for call in (*IN_GRAPH.values(), *CONSTANT.values())]
    return x + sum(numbers)


@pytest.mark.parametrize("backend", [pytest.param("inductor", marks=pytest.mark.slow), "tt"])
def test_whole_graphs(backend):
    run = torch.compile(everything, backend=backend, fullgraph=True)
    assert torch.equal(run(torch.ones(2)), everything(torch.ones(2)))


def with_states(x):
    with torch.random.fork_rng():
        torch.manual_seed(1)
        first = torch.rand_like(x)
    state = tt.get_rng_state()
    tt.manual_seed(5)
    second = x + tt.initial_seed()
    tt.set_rng_state(state)
    return first, second, wrapper_set_seed(torch.rand_like, x), torch.rand_like(x)


@pytest.mark.parametrize("backend", ["aot_eager", "tt"])
def test_random_states(backend):
    run = torch.compile(with_states, backend=backend)
    outside = tt.get_rng_state()
    torch.manual_seed(0)
    # Dynamo does not know `fork_rng`, and leaves the function to Python.
    with pytest.warns(GraphBreakWarning) if backend == "tt" else nullcontext():
        first, second, third, fourth = run(torch.ones(3))
    torch.manual_seed(0)
    again = run(torch.ones(3))
    assert second.tolist() == [6, 6, 6]
    assert torch.equal(first, again[0]) and torch.equal(third, again[2]) and torch.equal(fourth, again[3])
    assert not torch.equal(third, fourth)
    assert torch.equal(tt.get_rng_state(), outside)


@pytest.mark.parametrize("device", [("tt",), ()])
def test_the_module_of_a_device(device):
    def run(x):
        module = torch.get_device_module(*device)
        count = module.device_count()
        torch._dynamo.graph_break()
        return x + count + module.current_device()

    counter = CompileCounter()
    compiled = torch.compile(run, backend=counter)
    for _ in range(2):
        assert torch.equal(compiled(torch.ones(2)), run(torch.ones(2)))
    assert counter.frame_count == 1


SEVERAL = """
import torch
from torch._dynamo.testing import CompileCounter

def run(x):
    with torch.tt.device(1):
        inside = torch.ones(2, device="tt") * torch.tt.current_device()
    return inside, x + torch.tt.current_device()

counter = CompileCounter()
compiled = torch.compile(run, backend=counter, fullgraph=True)
for current in (0, 1, 1):
    torch.tt.set_device(current)
    inside, outside = compiled(torch.zeros(2))
    assert inside.device.index == 1 and inside.tolist() == [1, 1]
    assert outside.tolist() == [current, current] and torch.tt.current_device() == current
assert counter.frame_count == 2, counter.frame_count
"""


def test_the_current_device_is_guarded(forks: Server):
    done = forks.run("-c", SEVERAL, env={**os.environ, "TT_TORCH_DEVICE_COUNT": "2"})
    assert done.returncode == 0, done.stderr


def test_the_rules_do_not_load_dynamo():
    code = "import sys, torch; torch.tt.manual_seed(1); print('torch._dynamo' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "False", done.stderr
