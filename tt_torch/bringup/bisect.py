"""Shrinks a failing graph to a smallest part that still fails, and writes that part as a program.

Any part can run alone, because eager PyTorch gives the value of each node.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from pathlib import Path

import torch
from torch.fx import Graph, GraphModule, Node

from tt_torch.accuracy import calculate_atol, calculate_pcc
from tt_torch.bringup.intermediates import ROUNDING, Values
from tt_torch.config import CompilerConfig
from tt_torch.driver.partition import form
from tt_torch.dynamo.types import Result
from tt_torch.errors import CompileError
from tt_torch.files import write
from tt_torch.torch_private.ops import OpOverload

Compile = Callable[[GraphModule, Sequence[str]], Callable[[Sequence[torch.Tensor]], Sequence[torch.Tensor]]]
_SCRIPT_SECONDS = 300


class Part:
    """Some nodes of a graph. They are computed from known values of other nodes, and the node `output` is returned."""

    def __init__(self, nodes: Iterable[Node], output: Node) -> None:
        self.output = output
        self.nodes = _needed(set(nodes), output)
        self.inputs = list(dict.fromkeys(i for n in self.nodes for i in n.all_input_nodes if i not in self.nodes))

    def module(self) -> GraphModule:
        return GraphModule(torch.nn.Module(), self.graph())

    def graph(self, attributes: Collection[Node] = ()) -> Graph:
        """The part as a graph. Inputs in `attributes` become attributes, and the other inputs become placeholders."""
        graph = Graph()
        new: dict[Node, Node] = {}
        for n in self.inputs:
            new[n] = graph.get_attr(n.name) if n in attributes else graph.placeholder(n.name)
            new[n].meta = dict(n.meta)
        for n in self.nodes:
            new[n] = graph.node_copy(n, new.__getitem__)
        graph.output((new[self.output],))
        return graph

    @property
    def ops(self) -> list[Node]:
        return [n for n in self.nodes if isinstance(n.target, OpOverload)]


def _needed(allowed: set[Node], output: Node) -> list[Node]:
    """The allowed nodes on which the output depends, in the order of the graph."""
    found, pending = set(), [output]
    while pending:
        node = pending.pop()
        if node in allowed and node not in found:
            found.add(node)
            pending += node.all_input_nodes
    return [n for n in output.graph.nodes if n in found]


class Bisector:
    """Looks for a smallest part of a graph that fails in the same way as the whole graph.

    With `inputs`, a part fails if the correlation of its result with eager PyTorch is below `required_pcc`. Without
    inputs, it fails if it does not compile. `compile_piece` is the function that compiled the whole graph.
    """

    def __init__(
        self,
        gm: GraphModule,
        roles: Sequence[str],
        compile_piece: Compile,
        inputs: Sequence[torch.Tensor] | None,
        required_pcc: float,
    ) -> None:
        self.compile_piece, self.required = compile_piece, required_pcc
        placeholders = (n for n in gm.graph.nodes if n.op == "placeholder")
        self.roles = dict(zip(placeholders, roles, strict=True))
        self.nodes = [n for n in gm.graph.nodes if n.op == "call_function"]
        self.values: dict[str, Result] | None = None
        self.tried = 0
        if inputs is not None:
            run = Values(gm)
            with torch.no_grad():
                run.run(*inputs)
            self.values = run.values

    def search(self) -> Part | None:
        """The smallest part found, or None if no single result fails."""
        return self._one_op() or self._several()

    def fails(self, part: Part) -> bool:
        self.tried += 1
        try:
            runner = self.compile_piece(part.module(), [self.roles.get(n, "input") for n in part.inputs])
        except CompileError:
            return self.values is None
        if self.values is None:
            return False
        (got,) = runner([self.values[n.name] for n in part.inputs])
        return differs(got, self.values[part.output.name], self.required)

    def value(self, node: Node) -> torch.Tensor:
        """The value of a node in the run. Without a run, it is ones, because the part fails to compile in any case."""
        if self.values is None:
            return torch.ones(node.meta["val"].shape, dtype=node.meta["val"].dtype)
        return self.values[node.name].detach().clone()

    def _one_op(self) -> Part | None:
        """An op that fails by itself, which is the usual case. Each form of op is tried with the values of one node."""
        passed = set()
        for node in self._results():
            if form(node) in passed:
                continue
            part = Part([node, *node.all_input_nodes] if _takes_apart(node) else [node], node)
            if self.fails(part):
                return part
            passed.add(form(node))
        return None

    def _several(self) -> Part | None:
        for node in self._results():
            part = Part(self.nodes, node)
            if self.fails(part):
                return self._shrink(part)
        return None

    def _results(self) -> list[Node]:
        return [n for n in self.nodes if isinstance(n.meta.get("val"), torch.Tensor)]

    def _shrink(self, part: Part) -> Part:
        """Removes nodes as long as the part fails, many at first. In the end, no single node can be removed."""
        size = max(1, len(part.nodes) // 2)
        while True:
            for start in range(0, len(part.nodes), size):
                left_out = set(part.nodes[start : start + size]) - {part.output}
                smaller = Part(set(part.nodes) - left_out, part.output)
                if len(smaller.nodes) < len(part.nodes) and self.fails(smaller):
                    part = smaller
                    break
            else:
                if size == 1:
                    return part
                size //= 2


def _takes_apart(node: Node) -> bool:
    """Whether the node selects one of several results. It must stay together with the op that has these results."""
    return not isinstance(node.target, OpOverload)


def differs(got: torch.Tensor, golden: torch.Tensor, required_pcc: float) -> bool:
    return calculate_pcc(got, golden) < required_pcc and not calculate_atol(got, golden) <= ROUNDING


SCRIPT = '''"""{summary}

This program fails as long as the bug exists.
"""

from pathlib import Path

import torch
from torch import device, inf, nan  # noqa: F401

from tt_torch.config import CompilerConfig
from tt_torch.tools.verify import verify_module


class Part(torch.nn.Module):
    def __init__(self, weights):
        super().__init__()
        for name, value in weights.items():
            self.register_buffer(name, value)

{code}


values = torch.load(Path(__file__).with_suffix(".pt"))
config = CompilerConfig({options})
verify_module(
    Part(values["weights"]), values["inputs"], required_pcc={pcc}, required_atol=inf, compiler_config=config
)
'''


def write_script(part: Part, bisector: Bisector, config: CompilerConfig) -> Path:
    """Writes the part as a program into the folder of repros, with its inputs in a file beside it."""
    weights = [n for n in part.inputs if bisector.roles.get(n, "input") != "input"]
    source = part.graph(weights).python_code("self").src
    code = "\n".join(f"    {line}".rstrip() for line in source.strip().splitlines())
    ops = ", ".join(dict.fromkeys(str(n.target) for n in part.ops))
    departs = f"departs from eager PyTorch: its correlation is below {bisector.required:g}"
    summary = f"{ops} {departs if bisector.values else 'does not compile'}."
    text = SCRIPT.format(summary=summary, code=code, options=_options(config), pcc=bisector.required)
    path = Path(config.repro_dir) / f"{datetime.now():%Y%m%d_%H%M%S_%f}_bisect.py"
    write(path, text.encode())
    inputs = {n.name: bisector.value(n) for n in part.inputs if n not in weights}
    values = {"inputs": list(inputs.values()), "weights": {n.name: bisector.value(n) for n in weights}}
    torch.save(values, path.with_suffix(".pt"))
    return path


def _options(config: CompilerConfig) -> str:
    names = (
        "dtype", "weight_dtype", "activation_dtype", "kv_cache_dtype", "fallback", "arch", "enable_consteval",
        "consteval_parameters", "enable_optimizer", "optimization_level", "math_fidelity", "fp32_dest_acc_en",
        "enable_dram_sharded_matmul",
    )  # fmt: skip
    return ", ".join(f"{name}={getattr(config, name)!r}" for name in names)


def bisect(
    gm: GraphModule,
    roles: Sequence[str],
    compile_piece: Compile,
    inputs: Sequence[torch.Tensor] | None,
    config: CompilerConfig,
) -> Path | None:
    """Shrinks a failing graph, writes the smallest part as a program and runs it; reports the outcome on stderr."""
    bisector = Bisector(gm, roles, compile_piece, inputs, config.required_pcc)
    part = bisector.search()
    if part is None:
        print("bisect: no single result of the graph fails by itself", file=sys.stderr)
        return None
    path = write_script(part, bisector, config)
    verdict = "it fails too" if _fails_alone(path) else "it does NOT fail by itself"
    ops = ", ".join(str(n.target) for n in part.ops)
    print(f"bisect: {ops}, after {bisector.tried} trials: {path} ({verdict})", file=sys.stderr)
    return path


def _fails_alone(script: Path) -> bool:
    """Whether a program fails in a process of its own, with none of our environment variables and no compile cache."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith("TT_TORCH_")} | {"TT_TORCH_CACHE_SIZE": "0"}
    try:
        done = subprocess.run(
            [sys.executable, script], env=variables, capture_output=True, timeout=_SCRIPT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0
