"""Whether the parts of a manifest fit each other. This imports no compiler.

A hash tells whether a file has changed. A file by another program may have the right hash, and still a manifest whose
parts do not fit each other.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from typing import Any

from tt_torch.driver.arguments import TensorForm
from tt_torch.driver.package.manifest import (
    CHECK,
    CONTAINERS,
    OPEN,
    Graph,
    Json,
    Manifest,
    Place,
    Training,
    kept_for_backward,
    require,
)
from tt_torch.flow import MAIN


def consistent(manifest: Manifest) -> Manifest:
    """The manifest. Raises ValueError, TypeError, KeyError or AttributeError if its parts do not fit each other."""
    tensors = {name for name, form in manifest.forms.items() if isinstance(form, TensorForm)}
    known = {"result": range(len(manifest.places)), "argument": tensors, "weight": manifest.weights}
    for weight, name in manifest.inputs:
        require(name in known["weight" if weight else "argument"], f"{name} is unknown")
    inputs = range(len(manifest.inputs))
    require(_within(manifest.written, inputs), "an unknown input is written")
    for place in manifest.places:
        require(place.argument is None or place.argument in inputs, "a result lies in an unknown input")
        require(_is_layout(place), "a result has other strides than dimensions")
    outputs = len(manifest.interface.outputs) - len(manifest.checks) - manifest.tokens - len(manifest.written)
    require(outputs >= len(manifest.places) and manifest.tokens >= 0, "the graph has another number of results")
    _check_tree(manifest.result, known)
    _check_graph(manifest, manifest.tokens + len(inputs))
    if manifest.training:
        _check_training(manifest, manifest.training)
    return manifest


def _check_graph(graph: Graph, inputs: int) -> None:
    """Raises ValueError if a graph with so many inputs names others, or names results that its programs lack."""
    interface, flow = graph.interface, graph.flow
    results = len(flow.results) if flow else len(graph.programs[MAIN].output_dtypes)
    require(_within(interface.inputs, range(inputs)), "a program has an unknown input")
    require(_within(interface.complex_inputs, range(len(interface.inputs))), "an unknown input is complex")
    named = [place if isinstance(place, int) else place.result for place in interface.places]
    named += [*interface.complex_outputs, *interface.strides]
    require(_within(named, range(results)), "an unknown result of a program is used")
    tensors = sum(value is ... for value in interface.outputs)
    require(tensors == len(interface.places), "the graph has another number of tensors")
    views = (view.input for view in graph.views.values())
    require(_within(graph.views, range(len(interface.outputs))), "an unknown result is a view")
    require(_within(views, range(inputs)), "a result is a view of an unknown input")
    if CHECK in graph.programs:
        require(_within(graph.checked, range(len(interface.inputs))), "an unknown input is checked")


def _check_training(manifest: Manifest, training: Training) -> None:
    """Raises ValueError if the backward graph does not fit the forward graph."""
    outputs = range(training.results - len(manifest.written))
    kept = kept_for_backward(manifest, manifest.tokens, training.results)
    backward = training.backward.interface
    require(kept >= 0 and len(outputs) >= len(manifest.places), "the forward graph has another number of results")
    require(_within(training.gradients, range(training.results)), "an unknown result has a gradient")
    require(backward.inputs == list(range(kept + len(training.gradients))), "the backward graph has other inputs")
    require(len(backward.outputs) == len(manifest.inputs), "the backward graph has another number of results")
    known = _within(training.bases, range(len(manifest.places))) and _within(training.bases.values(), outputs)
    require(known, "an unknown result is a view")
    require(training.parameters.keys() <= manifest.weights.keys(), "a parameter is unknown")
    _check_graph(training.backward, len(backward.inputs))


def _check_tree(node: Json, known: Mapping[str, Container[Any]]) -> None:
    """Raises ValueError for a tree of a result that refers to something unknown."""
    if "parts" not in node:
        ((kind, value),) = node.items()
        require(_is_plain(value) and (kind == "value" or value in known[kind]), "the result has an unknown part")
        return
    keys, parts = node["keys"], node["parts"]
    mapping = node.get("container") in ("dict", "OrderedDict")
    if "class" in node:
        named = node["class"].rpartition(".")[2].isidentifier()
        require(named and node["family"] in ("dataclass", "tuple"), "the result has an unknown class")
    else:
        require(node["container"] in CONTAINERS, "the result has an unknown container")
    require(len(keys) == len(parts) if mapping or keys else True, "the result has another number of keys")
    require(all(map(_is_plain, keys)), "the result has a key that is no number and no text")
    for part in parts:
        _check_tree(part, known)


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


def _is_layout(place: Place) -> bool:
    if OPEN in place.shape:
        alone = place.memory is None and place.argument is None and place.offset == 0
        return (
            alone and min(place.shape) == OPEN and set(place.strides) == {0} and len(place.strides) == len(place.shape)
        )
    return len(place.shape) == len(place.strides) and min((*place.shape, *place.strides, place.offset)) >= 0


def _within(positions: Iterable[int], known: Collection[int]) -> bool:
    return all(position in known for position in positions)
