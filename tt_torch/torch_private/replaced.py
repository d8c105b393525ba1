"""The parts of Python objects that a capture of Dynamo has read, and that the captured function replaces."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest import mock

import torch
from torch._dynamo import variables  # 2.13.0: without it the new values are not known
from torch._dynamo.convert_frame import CaptureOutput  # 2.13.0: for compare
from torch._dynamo.side_effects import SideEffects  # 2.13.0: without it only the names of changed objects are known
from torch._dynamo.variables import base  # 2.13.0: without it objects that the function makes would count, too

from tt_torch.torch_private.tensors import storage_of

_OF_THE_CLASS = ("TYPE_MATCH", "DUPLICATE_INPUT", "HASATTR")  # 2.13.0: guards that say nothing about a value
_OF_TENSORS = ("TENSOR_MATCH",)  # 2.13.0: guards that say nothing about the values of a tensor


@dataclass
class Replaced:
    """Parts of objects, by the names that Dynamo gives them. Their new values are other values.

    The capture reads `tensors` as inputs, so that each call reads the new ones. It has read the other parts as
    `constants`, so that each call computes with the values that they had in the capture.
    """

    tensors: list[str] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)
    _written: dict[str, variables.VariableTracker] = field(default_factory=dict)

    @contextmanager
    def heard(self) -> Iterator[None]:
        """While this context is active, a capture of this thread tells which parts of objects it writes."""
        write, thread = SideEffects.codegen_update_mutated, threading.get_ident()

        def told(effects: SideEffects, *args: object, **kwargs: object) -> None:
            if threading.get_ident() == thread:
                self._written |= _written(effects)
            write(effects, *args, **kwargs)

        with mock.patch.object(SideEffects, "codegen_update_mutated", told):
            yield

    def compare(self, output: CaptureOutput) -> None:
        """Finds the parts that the capture has read among those that it writes."""
        graph = output.graph_capture_output.output_graph
        read: dict[str, set[str]] = {}
        for guard in graph.guards:
            read.setdefault(_plain(guard.name), set()).add(guard.create_fn_name())
        placeholders = output.backend_input.graph_module.graph.find_nodes(op="placeholder")
        sources = graph.export_metadata.graph_input_idx_to_local_source
        examples = [node.meta.get("example_value") for node in placeholders]
        inputs = {_plain(source.name): examples[i] for i, source in sources.items() if source}
        scope = {"L": graph.local_scope, "G": graph.global_scope}
        for name, new in self._written.items():
            if name in inputs:
                if not _is_tensor(new, inputs[name]):
                    self.tensors.append(_readable(name))
            elif read.get(name, set()).difference(_OF_THE_CLASS, _OF_TENSORS) and not _is_value(new, eval(name, scope)):
                self.constants.append(_readable(name))
        self._written.clear()


def _written(effects: SideEffects) -> dict[str, variables.VariableTracker]:
    """The values of all parts of the objects that change, as far as the capture knows these values."""
    found: dict[str, variables.VariableTracker] = {}
    for changed in effects._get_modified_vars():
        if not isinstance(changed.mutation_type, (base.AttributeMutationExisting, base.ValueMutationExisting)):
            continue  # the function has made this object
        name = changed.source.name
        for key, value in effects.store_attr_mutations.get(changed, {}).items():
            found |= _parts(name if isinstance(changed, variables.NewGlobalVariable) else f"{name}.{key}", value)
        if isinstance(changed, (variables.ConstDictVariable, variables.BaseListVariable)):
            found |= _parts(name, changed)
    return {_plain(name): value for name, value in found.items() if value.is_realized()}


def _parts(name: str, value: variables.VariableTracker) -> dict[str, variables.VariableTracker]:
    """A value, and the parts of a dictionary, a list or a tuple, by their names."""
    found = {name: value}
    if isinstance(value, variables.ConstDictVariable):
        for key, part in value.items.items():
            found |= _parts(f"{name}[{_key(key.vt)!r}]", part)
    elif isinstance(value, variables.BaseListVariable):
        for i, part in enumerate(value.items):
            found |= _parts(f"{name}[{i}]", part)
    return found


def _key(key: variables.VariableTracker) -> object:
    """The key of a dictionary. A tensor as a key is no constant."""
    return key.as_python_constant() if key.is_python_constant() else key


def _plain(name: str) -> str:
    """One name for a part that Dynamo calls by several names, such as a buffer or an attribute of a class."""
    name = re.sub(r"^dict\(type\((.+?)\)\.(?:__mro__\[\d+\]\.)?__dict__\)\['(\w+)'\]", r"\1.\2", name)
    return name.replace(".__dict__['_buffers']", "._buffers").replace(".__dict__['_parameters']", "._parameters")


def _readable(name: str) -> str:
    """The name of a part in the user's words, such as `model.layer.keys`."""
    name = re.sub(r"^[LG]\['(\w+)'\]", r"\1", name)
    return re.sub(r"\._(?:buffers|parameters|modules)\['(\w+)'\]", r".\1", name)


def _is_tensor(new: variables.VariableTracker, old: torch.Tensor) -> bool:
    """Whether the new value is the old tensor, which may have been written to."""
    if not isinstance(new, variables.TensorVariable):
        return False
    made = new.as_proxy().node.meta["example_value"]
    return storage_of(made) == storage_of(old) and made.shape == old.shape and made.stride() == old.stride()


def _is_value(new: variables.VariableTracker, old: object) -> bool:
    """Whether the new value is the old one. The parts of containers are compared by themselves."""
    if isinstance(new, variables.ConstDictVariable):
        return isinstance(old, dict) and old.keys() == {_key(key.vt) for key in new.items}
    if isinstance(new, variables.BaseListVariable):
        return isinstance(old, (list, tuple)) and len(new.items) == len(old)
    return new.is_python_constant() and type(old) is new.python_type() and bool(new.as_python_constant() == old)
