"""The data of a profile. The JSON file, the page, the text and the comparison are all made from it.

All times are in ns, all sizes in bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from pathlib import Path

from tt_torch import files
from tt_torch.errors import ProfileFormatError
from tt_torch.profiling.kinds import kind_of
from tt_torch.profiling.links import Mesh
from tt_torch.profiling.session import OpRun, RecordedGraph, Session
from tt_torch.profiling.sources import of_location
from tt_torch.profiling.what_if import AS_COMPILED, SCENARIOS, constant_tensors, costs
from tt_torch.wire import facts, locations
from tt_torch.wire.chips import CHIPS
from tt_torch.wire.messages import Program

JSON_NAME = "profile.json"
FORMAT = 2  # of the JSON file
PLACES = ("DRAM", "L1")
LAUNCH = "launch"  # the part that no other one overlaps
Sizes = dict[str, int]  # bytes by place
# The times that the parts of an op take by the model of the chip (PARTS): by chip, by the choice of numbers, by name.
Modelled = dict[str, dict[str, dict[str, float]]]


@dataclass(frozen=True)
class ProfiledOp:
    """One device op of one graph, with everything that is known about it.

    `graph` is its position in `Profile.graphs`, `number` the op's position in its program. `once` is true for ops of
    const-eval, which run once per weights and not in each call. `op` is its name in the binary, and `nodes` are the FX
    nodes that it came from. `target`, `module`, `module_class`, `file`, `line` and `code` are fields of
    `profiling.sources.Source`. `operands` and `results` describe tensors. `host` has the measured time of each call.
    `moved` are the bytes that it moves, and `crossing` those over the busiest link between chips. `before` and `after`
    are the bytes that are allocated, without weights.
    """

    graph: int
    program: str
    number: int
    once: bool
    op: str
    kind: str
    nodes: list[str]
    target: str
    module: str
    module_class: str
    file: str
    line: int
    code: str
    operands: list[str]
    results: list[str]
    host: list[int]
    flops: int
    fidelity: str
    moved: Sizes
    modelled: Modelled
    before: Sizes
    after: Sizes
    crossing: int = 0


@dataclass(frozen=True)
class HeldTensor:
    """A tensor that is allocated when a graph needs the most memory. `made_by` is the position of the op that made it
    in `Profile.ops`; None for an input."""

    tensor: str
    place: str
    bytes: int
    made_by: int | None


@dataclass(frozen=True)
class ProfiledGraph:
    """A graph on the device. `calls` has the time of each call from begin to end. `weights` are the bytes that stay
    allocated between calls. `largest` has the tensors, without weights, when the most DRAM is allocated."""

    calls: list[int]
    weights: Sizes
    largest: list[HeldTensor]


@dataclass(frozen=True)
class Profile:
    """A recorded run of a program. `arch` is the chip of its binaries, and `chips` has the figures of all chips."""

    format: int
    arch: str
    chips: dict[str, dict[str, float]]
    graphs: list[ProfiledGraph]
    ops: list[ProfiledOp]

    def time(self, op: ProfiledOp, chip: str = "", numbers: str = AS_COMPILED) -> float:
        """The time of an op in ns, by the model of a chip. The default is the chip of the binary."""
        parts = op.modelled[chip or self.arch][numbers]
        return parts[LAUNCH] + max(time for part, time in parts.items() if part != LAUNCH)

    def bound(self, op: ProfiledOp, chip: str = "", numbers: str = AS_COMPILED) -> str:
        """The longest part by the model: "arithmetic", "DRAM", "L1", "network", "links" or "launch"."""
        parts = op.modelled[chip or self.arch][numbers]
        return max(parts, key=parts.__getitem__)

    @property
    def repeated(self) -> list[ProfiledOp]:
        """The ops that run in each call."""
        return [op for op in self.ops if not op.once]

    def weight(self, op: ProfiledOp) -> int:
        """How often an op counts in sums: once if the run has one graph, otherwise once per call of its graph."""
        return len(self.graphs[op.graph].calls) if len(self.graphs) > 1 else 1


def write_json(profile: Profile, folder: Path) -> None:
    files.write(folder / JSON_NAME, json.dumps(asdict(profile)).encode())


def read_json(folder: Path) -> Profile:
    """The profile in a folder. Raises ProfileFormatError if there is none, or if its file is damaged."""
    path = folder / JSON_NAME
    if not path.exists():
        raise ProfileFormatError(folder, f"it has no {JSON_NAME}")
    try:
        data = json.loads(path.read_bytes())
        if data["format"] != FORMAT:
            raise ProfileFormatError(path, f"it has the format {data['format']}, not {FORMAT}")
        graphs = [ProfiledGraph(**g | {"largest": [HeldTensor(**t) for t in g["largest"]]}) for g in data["graphs"]]
        return Profile(**data | {"graphs": graphs, "ops": [ProfiledOp(**op) for op in data["ops"]]})
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ProfileFormatError(path, str(error)) from error
    except (KeyError, TypeError) as error:
        raise ProfileFormatError(path, f"it lacks or has {error}") from error


def of_session(session: Session) -> Profile:
    """The profile of a recording."""
    times: dict[tuple[int, str, int], list[OpRun]] = {}
    for run in session.runs:
        times.setdefault((run.graph, run.program, run.number), []).append(run)
    firsts: list[ProfiledOp] = []
    graphs = []
    for number, graph in enumerate(session.graphs):
        begin = len(firsts)
        for program in graph.programs:
            firsts += _ops(program, graph, number, times)
        graphs.append(_graph(graph, firsts[begin:], begin))
    return Profile(FORMAT, session.arch, _chips(), graphs, firsts)


def _chips() -> dict[str, dict[str, float]]:
    return {name: asdict(chip) | {"cores": chip.cores} for name, chip in CHIPS.items()}


def _graph(graph: RecordedGraph, ops: Sequence[ProfiledOp], begin: int) -> ProfiledGraph:
    (program,) = (p for p in graph.programs if not p.get("private"))
    weights = facts.weights(program, graph.roles)
    kept = {t.id: t for t in (*facts.inputs(program), *(t for op in facts.ops(program) for t in op.results))}
    sizes = facts.bytes_by_place(t for t in kept.values() if t.id in weights)
    numbers = {op.number: begin + i for i, op in enumerate(ops) if not op.once}
    calls = [end - start for start, end in graph.calls]
    return ProfiledGraph(calls, {place: sizes[place] for place in PLACES}, _largest(program, weights, numbers))


def _ops(
    program: Program, graph: RecordedGraph, number: int, times: Mapping[tuple[int, str, int], Sequence[OpRun]]
) -> Iterator[ProfiledOp]:
    """The device ops of a program that ran. Ops of const-eval hold no memory after it, except their results."""
    once = program["name"] in graph.cached
    weights = set() if program.get("private") else facts.weights(program, graph.roles)
    constants = constant_tensors(program, weights)
    for i, (op, before, after) in enumerate(_memory(program, weights)):
        if runs := times.get((number, program["name"], i)):
            nodes = locations.nodes(op.location)
            found = [graph.sources[name] for name in nodes if name in graph.sources]
            cost = runs[0].op.cost
            yield ProfiledOp(
                graph=number, program=program["name"], number=i, once=once, op=op.key, kind=kind_of(op.name),
                nodes=nodes, **asdict(found[0] if found else of_location(op.location)),
                operands=[describe(t) for t in op.operands], results=[describe(t) for t in op.results],
                host=[run.end - run.begin for run in runs], flops=cost.flops, fidelity=cost.fidelity,
                moved={"DRAM": cost.dram_read + cost.dram_written, "L1": cost.l1_bytes},
                modelled=_modelled(op, constants, facts.mesh_shape(program)), before=before, after=after,
                crossing=cost.link_bytes,
            )  # fmt: skip


def _modelled(op: facts.Op, constants: Set[int], mesh: Mesh) -> Modelled:
    found: Modelled = {}
    for scenario, cost in zip(SCENARIOS, costs(op, constants, mesh), strict=True):
        part = cost.full
        parts = {"arithmetic": part.arithmetic, "DRAM": part.dram, "L1": part.l1, "network": part.network}
        parts |= {"links": part.links} if cost.link_bytes else {}
        parts[LAUNCH] = part.launch
        found.setdefault(scenario.chip, {})[scenario.numbers] = {name: time * 1e9 for name, time in parts.items()}
    return found


def _memory(program: Program, weights: Set[int]) -> Iterator[tuple[facts.Op, Sizes, Sizes]]:
    """Each device op, with the bytes that are allocated before and after it, without weights."""
    held = facts.bytes_by_place(t for t in facts.inputs(program) if t.id not in weights)
    before = {place: held[place] for place in PLACES}
    for op, held in facts.allocations(program, weights):
        after = {place: held[place] for place in PLACES}
        if op.on_device:
            yield op, before, after
        before = after


def _largest(program: Program, weights: Set[int], numbers: Mapping[int, int]) -> list[HeldTensor]:
    """The tensors that are allocated when the most DRAM is in use. The largest comes first. `numbers` has the position
    of each op in the profile, by its number in the program."""
    sizes = [held["DRAM"] for _, held in facts.allocations(program, weights)]
    if not sizes:
        return []
    makers = {t.id: i for i, op in enumerate(o for o in facts.ops(program) if o.on_device) for t in op.results}
    held = facts.live_after(program, sizes.index(max(sizes)), weights)
    found = [HeldTensor(describe(t), t.place, t.bytes, numbers.get(makers.get(t.id, -1))) for t in held]
    return sorted(found, key=lambda tensor: -tensor.bytes)


def describe(tensor: facts.Tensor) -> str:
    """A tensor in words: "4x64 Float32 DRAM", or "4x64 Float32 DRAM row major"."""
    shape = "x".join(map(str, tensor.shape)) or "scalar"
    return f"{shape} {tensor.dtype} {tensor.place}{'' if tensor.tiled else ' row major'}"
