"""The manifest of a package, and its form in JSON. This imports no compiler."""

from __future__ import annotations

import dataclasses
import inspect
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import torch

from tt_torch.driver.arguments import Form, Signature, TensorForm
from tt_torch.driver.family import Dimension, Family
from tt_torch.driver.host_functions import require_known
from tt_torch.driver.program import Program
from tt_torch.dynamo.calls import CHECKS, Check, Interface, Reading, View, ViewOfInput
from tt_torch.dynamo.exactness.interval import Interval
from tt_torch.dynamo.exactness.limits import Limit
from tt_torch.flow import Flow, HostCall
from tt_torch.flow import from_json as flow_from_json
from tt_torch.runtime.mesh import Shardings

# A file with one program has the first format. A file with a family has the second. A file for training has the third,
# also for a family. A file with a flow has the fourth. A file with inputs or results that are split over a mesh has the
# fifth. A file for training with a flow in its backward graph has the sixth. A loader refuses all other formats.
FORMAT, FAMILY_FORMAT, TRAINING_FORMAT, FLOW_FORMAT, SPLIT_FORMAT, BACKWARD_FLOW_FORMAT = 1, 2, 3, 4, 5, 6
CHECK = "check"  # the name of the program that tells whether the integers of a call are exact
BACKWARD = "backward/"  # the names of the programs of a backward graph begin with it
Json: TypeAlias = Any
KINDS = {int(kind): kind for kind in type(inspect.Parameter.VAR_KEYWORD)}  # type: ignore[attr-defined]
DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex128, torch.complex64, torch.bool),
        *(torch.int64, torch.int32, torch.int16, torch.int8),
        *(torch.uint64, torch.uint32, torch.uint16, torch.uint8),
    )
}
OPEN = -1  # a size of a result that each call decides; only a flow has such results
NAMES = {dtype: name for name, dtype in DTYPES.items()}
_OPTIONAL = ("shardings", "flow", "training")  # fields that are left out if they are None
CONTAINERS: dict[str, Any] = {"dict": dict, "OrderedDict": OrderedDict, "list": list, "tuple": tuple}  # of a result


@dataclasses.dataclass(frozen=True)
class Weight:
    """A weight of the model; `aliases` are its other names in the model. Some weights are in no checkpoint."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    aliases: tuple[str, ...]
    in_checkpoint: bool


@dataclasses.dataclass(frozen=True)
class Place:
    """A result of the graph in memory. Results with the same `memory` share it; None means a memory of its own. A
    result with an open size is contiguous, and its strides here are zeros."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    memory: int | None
    argument: int | None = None  # the position of the graph's input whose memory this is; the offset is from its start


@dataclasses.dataclass(frozen=True)
class ProgramForm:
    """A program of the package, without its binary and its constants."""

    kinds: list[str]
    output_dtypes: list[torch.dtype]
    output_strides: list[tuple[int, ...] | None] | None
    output_devices: list[torch.device] | None
    compare_weights: bool
    constants: int
    shardings: Shardings | None = None


@dataclasses.dataclass(frozen=True)
class Graph:
    """A graph as programs on the device, and what the host does around them."""

    interface: Interface
    views: dict[int, ViewOfInput]
    checks: list[Check]
    limits: dict[int, Limit]
    checked: list[int]  # inputs of the program CHECK, by their positions among the inputs of MAIN
    resident: list[int]
    programs: dict[str, ProgramForm]
    # When the programs run; None if there is only MAIN, beside CHECK.
    flow: Flow | None = dataclasses.field(default=None, kw_only=True)


@dataclasses.dataclass(frozen=True)
class Training:
    """The backward graph, and the facts that autograd needs about both graphs.

    The backward graph takes what the forward graph keeps for it, then gradients of results. It gives a gradient for
    each input of the forward graph, or None.
    """

    backward: Graph
    results: int  # the number of results of the forward graph; it returns tensors for the backward graph after them
    gradients: list[int]  # positions of the results whose gradients the backward graph takes
    bases: dict[int, int]  # outputs that are views of another result; both are counted from the first output
    differentiable: list[int]  # outputs that require gradients
    hidden: list[int]  # positions of the inputs to which the model writes under `no_grad`
    trained: list[int]  # positions of the inputs that may require gradients
    parameters: dict[str, bool]  # all parameters of the model, in its order, and whether they require gradients


@dataclasses.dataclass(frozen=True)
class Manifest(Graph):
    """A graph, and the model that it belongs to."""

    signature: list[tuple[str, int]]  # the parameters of the model, with their kinds
    forms: dict[str, Form]  # of the arguments
    weights: dict[str, Weight]
    inputs: list[tuple[bool, str]]  # of the graph: whether it is a weight, and its name
    tokens: int  # inputs and outputs before all others, which only keep the order of checks
    written: list[int]  # positions of the inputs that the model writes to: the first outputs are their new values
    places: list[Place]  # of the other outputs
    result: Json  # the tree of the model's result
    versions: dict[str, str]  # of the packages that made the file
    training: Training | None = None  # None for inference


def to_json(graph: Graph) -> Json:
    return {"format": format_of(graph), **_plain(graph)}


def format_of(graph: Graph) -> int:
    """The format of a file with this graph, if it has no family."""
    if isinstance(graph, Manifest) and graph.training:
        return BACKWARD_FLOW_FORMAT if graph.training.backward.flow else TRAINING_FORMAT
    if graph.flow:
        return FLOW_FORMAT
    return SPLIT_FORMAT if any(form.shardings for form in graph.programs.values()) else FORMAT


def family_to_json(family: Family) -> Json:
    return _plain(family)


def family_from_json(data: Json, manifests: Sequence[Manifest]) -> Family:
    """The family of these programs. Raises what `from_json` raises."""
    sizes = {str(name): _sizes(each) for name, each in data["sizes"].items()}
    names = [field.name for field in dataclasses.fields(Dimension)]
    places = [Dimension(*(place[name] for name in names)) for place in data["dimensions"]]
    family = Family(sizes, places)
    require(all(each and list(each) == sorted({*each}) for each in sizes.values()), "the sizes are not ascending")
    require(family.count == len(manifests) > 0, "the family has another number of programs")
    for place in places:
        form = manifests[0].forms.get(place.argument)
        require(isinstance(form, TensorForm) and place.dimension in range(len(form.shape)), "an unknown dimension")
        numbers = type(place.factor) is type(place.offset) is int and place.factor > 0
        require(place.name in sizes and numbers, "an unknown size")
    for manifest in manifests:
        require(manifest.signature == manifests[0].signature, "programs have different parameters")
        require(_trained(manifest) == _trained(manifests[0]), "programs train different weights")
        for name in manifest.weights.keys() & manifests[0].weights.keys():
            require(manifest.weights[name] == manifests[0].weights[name], f"programs have different forms of {name}")
    return family


def _trained(manifest: Manifest) -> dict[str, bool] | None:
    return manifest.training.parameters if manifest.training else None


def _plain(value: object) -> Json:
    """Dataclasses become dicts, tuples become lists, and dtypes and devices become text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        named = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {name: _plain(part) for name, part in named.items() if part is not None or name not in _OPTIONAL}
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if value is ...:
        return "tensor"
    if isinstance(value, torch.dtype):
        return NAMES[value]
    return str(value) if isinstance(value, torch.device) else value


def from_json(data: Json) -> Manifest:
    """The manifest in these data. Raises KeyError, TypeError, ValueError, AttributeError, IndexError or RuntimeError if
    they are no manifest. Whether its parts fit each other is for consistency.py to say."""
    return Manifest(
        **_graph_fields(data),
        signature=[(str(name), int(KINDS[kind])) for name, kind in data["signature"]],
        forms={name: _form(form) for name, form in data["forms"].items()},
        weights={name: _weight(weight) for name, weight in data["weights"].items()},
        inputs=[(bool(weight), str(name)) for weight, name in data["inputs"]],
        tokens=int(data["tokens"]),
        written=_ints(data["written"]),
        places=[_place(place) for place in data["places"]],
        result=data["result"],
        versions={str(name): str(version) for name, version in data["versions"].items()},
        training=_training(data["training"]) if "training" in data else None,
    )


def program_names(manifest: Manifest) -> list[str]:
    """The names of all programs, in the order in which they run."""
    backward = manifest.training.backward.programs if manifest.training else {}
    return [*manifest.programs, *(BACKWARD + name for name in backward)]


def _flow(data: Json, programs: Mapping[str, ProgramForm], interface: Interface) -> Flow:
    arguments = {name: (len(form.kinds) - form.constants, len(form.output_dtypes)) for name, form in programs.items()}
    flow = flow_from_json(data, arguments)
    for step in flow.all_steps():
        if isinstance(step, HostCall):
            require_known(step)
    inputs = len(interface.inputs) + bool(interface.seeds)
    require(flow.inputs == inputs, "the flow has other inputs")
    return flow


def _training(data: Json) -> Training:
    return Training(
        backward=graph_from_json(data["backward"]),
        results=int(data["results"]),
        gradients=_ints(data["gradients"]),
        bases={int(i): int(of) for i, of in data["bases"].items()},
        differentiable=_ints(data["differentiable"]),
        hidden=_ints(data["hidden"]),
        trained=_ints(data["trained"]),
        parameters={str(name): bool(trained) for name, trained in data["parameters"].items()},
    )


def kept_for_backward(forward: Graph | Program, tokens: int, results: int) -> int:
    """The number of tensors that a forward graph keeps for its backward graph."""
    return len(forward.interface.outputs) - len(forward.checks) - tokens - results


def graph_from_json(data: Json) -> Graph:
    """The graph in these data, without a model. Raises what `from_json` raises."""
    return Graph(**_graph_fields(data))


def _graph_fields(data: Json) -> dict[str, Any]:
    interface = _interface(data["interface"])
    programs = {name: _program(program) for name, program in data["programs"].items()}
    return {
        "interface": interface,
        "views": {int(i): ViewOfInput(*_view(view, "input")) for i, view in data["views"].items()},
        "checks": [_check(check) for check in data["checks"]],
        "limits": {int(i): Limit(x["name"], _interval(*x["interval"]), x["cause"]) for i, x in data["limits"].items()},
        "checked": _ints(data["checked"]),
        "resident": _ints(data["resident"]),
        "programs": programs,
        "flow": _flow(data["flow"], programs, interface) if "flow" in data else None,
    }


def _check(check: Json) -> Check:
    require(check["op"] in CHECKS.values(), f"the check {check['op']} is unknown")
    require(all(type(x) is str for x in check["arguments"]), "a check has an argument that is no text")
    return Check(check["op"], tuple(check["arguments"]), dict(check["options"]))


def _interval(low: Json, high: Json) -> Interval:
    require({type(low), type(high)} <= {int, float}, "a limit is no number")
    return Interval(low, high)


def require(holds: bool, otherwise: str) -> None:
    """Raises ValueError with the text if something does not hold."""
    if not holds:
        raise ValueError(otherwise)


def signature(manifest: Manifest) -> Signature:
    return Signature([(name, KINDS[kind]) for name, kind in manifest.signature])


def _ints(values: Json) -> list[int]:
    return [int(value) for value in values]


def _sizes(values: Json) -> tuple[int, ...]:
    return tuple(_ints(values))


def _form(form: Json) -> Form:
    if isinstance(form, str):
        return form
    strides = None if form["strides"] is None else _sizes(form["strides"])
    device = torch.device(form["device"])
    return TensorForm(_sizes(form["shape"]), DTYPES[form["dtype"]], device, strides, int(form["offset"]))


def _weight(weight: Json) -> Weight:
    device, aliases = torch.device(weight["device"]), tuple(map(str, weight["aliases"]))
    return Weight(_sizes(weight["shape"]), DTYPES[weight["dtype"]], device, aliases, bool(weight["in_checkpoint"]))


def _view(view: Json, of: str) -> tuple[int, tuple[int, ...], tuple[int, ...], int]:
    return int(view[of]), _sizes(view["shape"]), _sizes(view["strides"]), int(view["offset"])


def _place(place: Json) -> Place:
    memory, argument = (None if place[name] is None else int(place[name]) for name in ("memory", "argument"))
    return Place(_sizes(place["shape"]), _sizes(place["strides"]), int(place["offset"]), memory, argument)


def _interface(data: Json) -> Interface:
    return Interface(
        inputs=_ints(data["inputs"]),
        outputs=[... if value == "tensor" else value for value in data["outputs"]],
        seeds=[torch.device(device) for device in data["seeds"]],
        complex_inputs=_ints(data["complex_inputs"]),
        complex_outputs=_ints(data["complex_outputs"]),
        strides={int(i): _sizes(strides) for i, strides in data["strides"].items()},
        places=[place if isinstance(place, int) else _part(place) for place in data["places"]],
    )


def _part(place: Json) -> View | Reading:
    if "view" not in place:
        return View(*_view(place, "result"))
    view = View(*_view(place["view"], "result"))
    return Reading(view, DTYPES[place["dtype"]], bool(place["conj"]), bool(place["neg"]))


def _program(data: Json) -> ProgramForm:
    strides, devices = data["output_strides"], data["output_devices"]
    return ProgramForm(
        kinds=[str(kind) for kind in data["kinds"]],
        output_dtypes=[DTYPES[name] for name in data["output_dtypes"]],
        output_strides=None if strides is None else [None if s is None else _sizes(s) for s in strides],
        output_devices=None if devices is None else [torch.device(device) for device in devices],
        compare_weights=bool(data["compare_weights"]),
        constants=int(data["constants"]),
        shardings=_shardings(data["shardings"]) if data.get("shardings") else None,
    )


def _shardings(data: Json) -> Shardings:
    inputs, results = ([(_dim(rows), _dim(columns)) for rows, columns in given] for given in data)
    return inputs, results


def _dim(value: Json) -> int | None:
    return None if value is None else int(value)
