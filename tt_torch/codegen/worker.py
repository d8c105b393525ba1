"""Runs in a Python that has the `ttnn` package, where tt_torch is not installed: imports only that and numpy.

The parent talks to it over a socket whose number is the first argument: pickled requests `(command, argument)`,
answered by `("ok", result)` or `("error", text)`.
"""

from __future__ import annotations

import math
import sys
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import ttnn

GRAPH = ttnn._ttnn.graph
TILE = 32
NAMES = {"ttnn": ttnn, "np": np}


class Specification:
    """What the binary says about a tensor, as objects of the package."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.name, self.shape = facts["name"], list(facts["shape"])
        self.dtype, self.layout, self.memory_config = (
            eval(facts[k], NAMES) for k in ("dtype", "layout", "memory_config")
        )

    def make(self, device: Any) -> Any:
        """A tensor as specified, without values."""
        if self.memory_config is not None:
            return ttnn.empty(self.shape, self.dtype, self.layout, device, self.memory_config)
        host = ttnn.Tensor(np.zeros(self.shape, np.float32), self.dtype)
        return host if self.layout == ttnn.ROW_MAJOR_LAYOUT else ttnn.to_layout(host, self.layout)

    def differences(self, tensor: Any, blocked: bool = False) -> list[str]:
        """What is not as specified. The padding of tensors that are blocked for one op is the library's."""
        on_device = ttnn.is_tensor_storage_on_device(tensor)
        found = {
            "shape": list(tensor.shape),
            "padded volume": None if blocked else math.prod(tensor.padded_shape),
            "dtype": tensor.dtype,
            "layout": tensor.layout,
            "memory config": tensor.memory_config() if on_device else None,
        }
        wanted = {
            "shape": self.shape,
            "padded volume": None if blocked else self._padded_volume(),
            "dtype": self.dtype,
            "layout": self.layout,
            "memory config": self.memory_config,
        }
        return [f"{k} is {_short(found[k])}, not {_short(wanted[k])}" for k in wanted if found[k] != wanted[k]]

    def _padded_volume(self) -> int:
        if self.layout != ttnn.TILE_LAYOUT:
            return math.prod(self.shape)
        *outer, rows, columns = [1, 1, *self.shape]
        return math.prod(outer) * _round_up(rows) * _round_up(columns)


def _round_up(size: int) -> int:
    return -(-size // TILE) * TILE


def _short(value: Any) -> str:
    if isinstance(value, ttnn.MemoryConfig):
        return f"{value.memory_layout.name} {value.buffer_type.name}"
    return "host" if value is None else getattr(value, "name", str(value))


def refusal(error: BaseException) -> str:
    """The words of the library's check, without places in its sources and without the backtrace."""
    text = str(error)
    if "info:\n" in text:
        text = text.partition("info:\n")[2]
    text = text.partition("\nbacktrace:")[0].strip()
    if "incompatible function arguments" in text:
        text = "incompatible function arguments; got" + text.rpartition("Invoked with types:")[2]
    return f"{type(error).__name__}: {' '.join(text.split())}"[:600]


def check_function(
    function: dict[str, Any], constants: dict[str, Any], prepared: dict[tuple[str, int], Any], device: Any
) -> dict[str, Any]:
    """Runs a function's statements without dispatching them: a verdict per statement, and the peak of memory.

    `prepared` takes the function's blocked results, by its name and their position, for the functions that call it.
    """
    GRAPH.begin_graph_capture(ttnn.graph.RunMode.NO_DISPATCH)
    try:
        scope = {"ttnn": ttnn, "device": device}
        scope["weights"] = {name: Specification(facts).make(device) for name, facts in constants.items()}
        scope |= {facts["name"]: Specification(facts).make(device) for facts in function["inputs"]}
        verdicts = [_check_statement(s, scope, prepared, device) for s in function["statements"]]
    finally:
        trace = GRAPH.end_graph_capture()
    blocked = {facts["name"] for s in function["statements"] if s["blocked"] for facts in s["results"]}
    outputs = enumerate(function["outputs"])
    prepared |= {(function["name"], i): scope[name] for i, name in outputs if name in blocked}
    return {"verdicts": verdicts, "peak": peaks(trace)}


def _check_statement(
    statement: dict[str, Any], scope: dict[str, Any], prepared: dict[tuple[str, int], Any], device: Any
) -> list[str]:
    """What the library has against a statement; what is not as specified goes on as specified."""
    wanted = [Specification(facts) for facts in statement["results"]]
    if statement["callee"]:  # a function that is checked by itself
        for i, spec in enumerate(wanted):
            known = prepared.get((statement["callee"], i))
            scope[spec.name] = spec.make(device) if known is None else known
        return []
    try:
        exec(statement["code"], scope)
    except Exception as error:
        scope |= {spec.name: spec.make(device) for spec in wanted}
        return [refusal(error)]
    differences = []
    for spec in wanted:
        found = spec.differences(scope[spec.name], statement["blocked"])
        if found:
            scope[spec.name] = spec.make(device)
        differences += found
    return differences


def peaks(trace: list[dict[str, Any]]) -> dict[str, int]:
    """Bytes of live buffers at most, and of circular buffers and L1 tensors together in one core."""
    live = {"DRAM": 0, "L1": 0}
    peak = dict(live)
    for node in trace:
        change = {"buffer_allocate": 1, "buffer_deallocate": -1}.get(node["node_type"])
        if change and node["params"]["type"] in live:
            space = node["params"]["type"]
            live[space] += change * int(node["params"]["size"])
            peak[space] = max(peak[space], live[space])
    return peak | {"core": GRAPH.extract_resource_usage_per_core(trace).peak_total}


class Worker:
    def __init__(self) -> None:
        self.device: Any = None

    def open(self, _: Any) -> str:
        self.device = ttnn.open_device(device_id=0)
        return str(self.device)

    def check(self, program: dict[str, Any]) -> list[dict[str, Any]]:
        prepared: dict[tuple[str, int], Any] = {}
        return [check_function(f, program["constants"], prepared, self.device) for f in program["functions"]]

    def pack(self, request: dict[str, Any]) -> tuple[bytes, bytes]:
        """A tile of float32 in another data type as the library packs it on the host, and its float32 values."""
        tile = np.frombuffer(request["values"], np.float32).reshape(TILE, TILE).copy()  # writable
        tensor = ttnn.Tensor(tile, eval(request["dtype"], NAMES), layout=ttnn.TILE_LAYOUT)
        shard = tensor.host_buffer().get_shard(ttnn.MeshCoordinate(0, 0))
        return np.from_dlpack(shard).tobytes(), tensor.to_numpy().astype(np.float32).tobytes()

    def close(self, _: Any) -> None:
        if self.device is not None:
            ttnn.close_device(self.device)
            self.device = None


def serve(connection: Connection, worker: Any) -> None:
    commands: dict[str, Callable[[Any], Any]] = {n: getattr(worker, n) for n in ("open", "check", "pack", "close")}
    while True:
        try:
            command, argument = connection.recv()
        except EOFError:  # the parent has gone
            return worker.close(None)
        try:
            connection.send(("ok", commands[command](argument)))
        except Exception:
            connection.send(("error", traceback.format_exc()))


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])), Worker())
