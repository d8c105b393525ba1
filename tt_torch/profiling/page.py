"""The texts, tables and plots on the page of a profile."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tt_torch.profiling import groups
from tt_torch.profiling.groups import Group, Spread, spread
from tt_torch.profiling.html import Cell, Page, Section, Table
from tt_torch.profiling.model import PLACES, Profile, ProfiledOp
from tt_torch.profiling.what_if import AS_COMPILED, SCENARIOS
from tt_torch.profiling.words import duration, factor, quartiles, size

PAGE_NAME = "profile.html"
_MEASURED = "Host times are measured on the emulated device. They are no times of a chip."
_MODEL = (
    "All of this is modelled, not measured: an op takes as long as its launch and the slowest of its arithmetic, its "
    "DRAM traffic, its L1 traffic, its traffic between cores, and what it sends to other chips."
)


def page(profile: Profile) -> Page:
    """The page of a profile. Needs plotly."""
    sections = [_calls(profile), _where(profile), _chip(profile)]
    sections += [_between_chips(profile)] if exchanges(profile).rows else []
    sections += [_memory(profile), _what_if(profile), _ops(profile)]
    return Page("tt-torch profile", f"{_MEASURED} {meaning(profile)}", tiles(profile), sections)


def meaning(profile: Profile) -> str:
    """A sentence on the meaning of a sum of times in this profile."""
    if len(profile.graphs) > 1:
        return "Sums count each op's median as often as its graph was called."
    calls = len(profile.graphs[0].calls)
    if calls == 1:
        return "The graph was called once: call it several times to see medians and quartiles."
    return f"Times are medians of {calls} calls, with the quartiles of these calls."


def tiles(profile: Profile) -> list[tuple[str, str]]:
    """The lines at the top of the page, which a reader wants to see first."""
    everything = groups.group(profile, "", profile.repeated)
    largest = max(everything.bounds, key=everything.bounds.__getitem__)
    share = everything.bounds[largest] / (everything.modelled or 1)
    return [
        ("device ops", f"{len(profile.repeated):,}"),
        ("host time of the ops", duration(everything.host.median)),
        (f"modelled for {profile.arch}", duration(everything.modelled)),
        ("bound by", f"{largest}, {share:.0%} of it"),
        ("most DRAM without weights", size(max(op.after["DRAM"] for op in profile.repeated))),
        ("weights", size(sum(sum(graph.weights.values()) for graph in profile.graphs))),
    ]


def _calls(profile: Profile) -> Section:
    rows = []
    for number, graph in enumerate(profile.graphs):
        ops = [op for op in profile.repeated if op.graph == number]
        calls, inside = spread(graph.calls), sum((spread(op.host) for op in ops), groups.NONE)
        rows.append([
            Cell(f"graph {number}"), Cell(f"{len(graph.calls)}", len(graph.calls)), *_spread(calls),
            _time(inside.median), Cell(f"{len(ops)}", len(ops)), _time(sum(profile.time(op) for op in ops)),
            *(_size(max((op.after[place] for op in ops), default=0)) for place in PLACES),
            _size(sum(graph.weights.values())),
        ])  # fmt: skip
    columns = [
        "graph", "calls", "a call", "quartiles", "in its ops", "ops", "modelled", "most DRAM", "most L1", "weights"
    ]  # fmt: skip
    about = (
        "A call takes longer than its ops, because it also copies inputs and results. Each op runs by itself while it "
        "is recorded; without recording, the runtime may run two ops as one. Memory is without weights."
    )
    once = [op for op in profile.ops if op.once]
    prepared = f"Preparing the weights took {duration(sum(sum(op.host) for op in once))} in {len(once)} ops, once."
    return Section("Calls", [about, prepared] if once else [about], tables=[Table(columns, rows)])


def _where(profile: Profile) -> Section:
    from tt_torch.profiling import plots

    about = (
        "A click on a module shows its parts, a click on the top row goes back. The color of an op is its kind. An op "
        "that does the work of several ATen ops counts for the module and the line of the first of them. The host time "
        "of the first op also has the copies of the inputs and the check for changed weights."
    )
    code = {groups.line_of(op): op.code for op in profile.repeated}
    classes = {op.module: op.module_class for op in profile.repeated}
    tables = [
        group_table("module, with its parts", groups.with_parts(profile), ("class", lambda g: classes.get(g.name, ""))),
        *(group_table(name, groups.grouped(profile, key)) for name, key in groups.KEYS.items() if name not in _SHOWN),
        group_table("line", groups.grouped(profile, groups.line_of), ("code", lambda g: code[g.name])),
    ]
    return Section("Where the time goes", [about], plots.modules(profile), tables)


_SHOWN = ("module", "line")  # groups whose tables have a column of their own


def group_table(name: str, found: Sequence[Group], extra: tuple[str, Callable[[Group], str]] | None = None) -> Table:
    """Groups as a table for the page and for the terminal. `extra` is the name of a second column, and its texts."""
    rows = []
    for group in found:
        bound = max(group.bounds, key=group.bounds.__getitem__)
        rows.append([
            Cell(group.name), *([Cell(extra[1](group))] if extra else []), Cell(f"{group.ops}", group.ops),
            *_spread(group.host), _time(group.modelled), Cell(bound), _size(group.moved),
        ])  # fmt: skip
    names = [name, *([extra[0]] if extra else [])]
    return Table([*names, "ops", "host time", "quartiles", "modelled", "bound by", "bytes moved"], rows)


def _chip(profile: Profile) -> Section:
    from tt_torch.profiling import plots

    pictures = [plots.bounds(profile), plots.roofline(profile)]
    return Section(f"What bounds the ops on {profile.arch}", [_MODEL], pictures)


def exchanges(profile: Profile) -> Table:
    """The ops in which chips exchange values, the longest first."""
    columns = ["exchange", "graph", "module", "of line", "modelled", "bytes over a link", "operands", "results"]
    rows = []
    for op in sorted((op for op in profile.repeated if op.crossing), key=lambda op: -profile.time(op)):
        rows.append([
            Cell(groups.op_of(op)), Cell(f"{op.graph}", op.graph), Cell(groups.module_of(op)), Cell(groups.line_of(op)),
            _time(profile.time(op)), _size(op.crossing), Cell(", ".join(op.operands)), Cell(", ".join(op.results)),
        ])  # fmt: skip
    return Table(columns, rows)


def _between_chips(profile: Profile) -> Section:
    about = (
        "The chips of a row or of a column form a line. The bytes are those over its busiest link in one direction. "
        "The model knows how many bytes per second a link takes, but not how long the first byte takes to arrive."
    )
    return Section("Between the chips", [about], tables=[exchanges(profile)])


def _memory(profile: Profile) -> Section:
    from tt_torch.profiling import plots

    about = (
        "The bytes that are allocated before and after each op, without weights. After an op, its operands and its "
        "results are both allocated. The table has the tensors that are allocated when the most DRAM is."
    )
    no_l1 = "No op of this program keeps its result in L1. The option optimization_level=2 places tensors there."
    rows = []
    for number, graph in enumerate(profile.graphs):
        for held in graph.largest:
            maker = profile.ops[held.made_by] if held.made_by is not None else None
            names = (
                (groups.op_of(maker), groups.module_of(maker), groups.line_of(maker)) if maker else ("an input", "", "")
            )
            rows.append([Cell(held.tensor), _size(held.bytes), Cell(f"graph {number}"), *map(Cell, names)])
    table = Table(["tensor", "bytes", "graph", "made by", "module", "line"], rows)
    used = [place for place in PLACES if any(op.after[place] for op in profile.repeated)]
    pictures = [plots.memory(profile, place) for place in used]
    return Section("Memory without weights", [about] if "L1" in used else [about, no_l1], pictures, [table])


def _what_if(profile: Profile) -> Section:
    from tt_torch.profiling import plots

    about = (
        "The same ops with other data types or on another chip. The places of tensors and the math fidelity stay as "
        "they were compiled."
    )
    now = sum(plots.bounds_in(profile, profile.arch, AS_COMPILED).values())
    rows = []
    for scenario in SCENARIOS:
        parts = plots.bounds_in(profile, scenario.chip, scenario.numbers)
        total = sum(parts.values())
        by = ", ".join(f"{name} {parts[name] / (total or 1):.0%}" for name in sorted(parts, key=lambda n: -parts[n]))
        rows.append([Cell(scenario.chip), Cell(scenario.numbers), _time(total), Cell(factor(now, total)), Cell(by)])
    table = Table(["chip", "numbers", "modelled", "compared with now", "bound by"], rows)
    return Section("What would change", [about, _MODEL], [plots.scenarios(profile)], [table])


def _ops(profile: Profile) -> Section:
    columns = [
        "op", "graph", "module", "line", "host time", "quartiles", "modelled", "bound by", "flops", "bytes moved",
        "operands", "results",
    ]  # fmt: skip
    ops = sorted(profile.repeated, key=lambda op: -spread(op.host).median)
    about = "Times of one call. The name of an op has the FX node that it came from."
    return Section("All ops", [about], tables=[Table(columns, [_op(profile, op) for op in ops])])


def _op(profile: Profile, op: ProfiledOp) -> list[Cell]:
    return [
        Cell(groups.op_of(op)), Cell(f"{op.graph}", op.graph), Cell(groups.module_of(op)), Cell(groups.line_of(op)),
        *_spread(spread(op.host)), _time(profile.time(op)), Cell(profile.bound(op)), Cell(f"{op.flops:,}", op.flops),
        _size(sum(op.moved.values())), Cell(", ".join(op.operands)), Cell(", ".join(op.results)),
    ]  # fmt: skip


def _spread(found: Spread) -> tuple[Cell, Cell]:
    return _time(found.median), Cell(quartiles(found), found.high - found.low)


def _time(ns: float) -> Cell:
    return Cell(duration(ns), ns)


def _size(count: int) -> Cell:
    return Cell(size(count), count)
