"""The arguments of a compiled model: their names, and the forms that they must have at each call.

An argument may be a container, so each part of it has a name, such as `batch['ids'][0]`.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from enum import Enum
from typing import Any, TypeAlias

import torch

from tt_torch import user_code
from tt_torch.driver.containers import Container, parts_of
from tt_torch.errors import ArgumentError, CompileError, InputDtypeError, InputShapeError
from tt_torch.torch_private.tensors import FakeTensor, storage_of

Kind: TypeAlias = inspect._ParameterKind
Call: TypeAlias = inspect.BoundArguments
VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
# Two values of one of these classes are the same if they have the same class and the same text.
PLAIN: tuple[type, ...] = (bool, int, float, complex, str, bytes, Enum, slice, range, type(None), type(...))
PLAIN += (torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size)
COMPILED = "but the model was compiled for"
ASSIGNED = "load_state_dict(state, assign=True) gives a model its weights"
UNTRAINED = "results have no gradients; compile_model(..., training=True) compiles the backward pass, too"


@dataclasses.dataclass(frozen=True)
class TensorForm:
    """The form that a tensor must have. `strides` and `offset`, in elements, count only if results share its memory."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    strides: tuple[int, ...] | None = None
    offset: int = 0

    def check_kind(self, name: str, x: torch.Tensor) -> None:
        """Raises InputShapeError, InputDtypeError or ArgumentError for another shape, dtype or layout."""
        if x.is_nested:  # it has no shape
            raise ArgumentError(f"{name} is a nested tensor, {COMPILED} a tensor of shape {self.shape}")
        if x.shape != self.shape:
            raise InputShapeError(f"{name} has the shape {tuple(x.shape)}, {COMPILED} {self.shape}")
        if x.dtype != self.dtype:
            raise InputDtypeError(f"{name} has the dtype {x.dtype}, {COMPILED} {self.dtype}")
        if x.layout != torch.strided:
            raise ArgumentError(f"{name} has the layout {x.layout}, {COMPILED} {torch.strided}")

    def check(self, name: str, x: torch.Tensor) -> None:
        """Raises the errors of `check_kind`, and ArgumentError if the tensor has another form in any other way."""
        self.check_kind(name, x)
        if x.device != self.device:
            raise ArgumentError(f"{name} is on {x.device}, {COMPILED} {self.device}")
        if self.strides is not None and (x.stride(), x.storage_offset()) != (self.strides, self.offset):
            raise ArgumentError(
                f"{name} has the strides {x.stride()} and begins at element {x.storage_offset()} of its memory, "
                f"{COMPILED} {self.strides} and {self.offset}, and its results share this memory"
            )

    def shared_with_results(self, example: torch.Tensor) -> TensorForm:
        """The form of a tensor that is also in the same places of memory as the example."""
        return dataclasses.replace(self, strides=example.stride(), offset=int(example.storage_offset()))


Form: TypeAlias = TensorForm | str  # the form of a tensor; the text of a container or of another value


class Signature:
    """How a model is called: names and kinds of its parameters. A call may leave out any of them."""

    def __init__(self, parameters: Sequence[tuple[str, Kind]]) -> None:
        self.parameters = list(parameters)
        made = [
            inspect.Parameter(n, k, default=inspect.Parameter.empty if k in VARIADIC else None) for n, k in parameters
        ]
        self._signature = inspect.Signature(made)

    @classmethod
    def of(cls, model: Callable[..., Any], keywords: Collection[str] = ()) -> Signature:
        """The signature of a model. It takes the parameters `keywords` by name only, which its code does not show."""
        try:
            found = inspect.signature(model.forward if isinstance(model, torch.nn.Module) else model)
        except ValueError:  # a function that is not written in Python
            found = inspect.signature(lambda *args, **kwargs: None)
        by_name = inspect.Parameter.KEYWORD_ONLY
        return cls([(name, by_name if name in keywords else p.kind) for name, p in found.parameters.items()])

    def bind(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Call:
        """The arguments by parameter. Raises ArgumentError if the model does not take them."""
        try:
            return self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(str(error)) from None


def parts(call: Call) -> dict[str, Any]:
    """All arguments and their parts by name; containers are Containers."""
    return {name: part for key, value in call.arguments.items() for name, part in parts_of(value, key)}


def tensors_in(call: Call) -> dict[str, torch.Tensor]:
    """The tensors among the arguments and their parts."""
    return {name: part for name, part in parts(call).items() if isinstance(part, torch.Tensor)}


def forms(call: Call) -> dict[str, Form]:
    """The forms of all arguments and of their parts. Raises CompileError for an object whose parts are not known."""
    found = parts(call)
    for name, part in found.items():
        if not isinstance(part, (torch.Tensor, Container, *PLAIN)):
            raise CompileError(
                f"{name} is a {type(part).__name__}, so later calls cannot be compared with this one; pass tensors, "
                "a dict, a dataclass, or a class for which torch.utils._pytree.register_pytree_node was called"
            )
    return {name: _form(part) for name, part in found.items()}


def described(forms: Mapping[str, Form], programs: int = 1) -> str:
    """The tensors among the arguments of a model, in one line for `repr`: `x: float32 [8, 64]; 3 programs`."""
    told = (
        f"{name}: {str(form.dtype).removeprefix('torch.')} {list(form.shape)}"
        for name, form in forms.items()
        if isinstance(form, TensorForm)
    )
    return ", ".join(told) + (f"; {programs} programs" if programs > 1 else "")


def check(call: Call, compiled: Mapping[str, Form]) -> dict[str, torch.Tensor]:
    """The tensors of a call by name. Raises the errors of TensorForm.check, and ArgumentError for another structure."""
    given = parts(call)
    tensors = {}
    for name, form in compiled.items():
        if name not in given:
            raise ArgumentError(f"{name} is missing; the model was compiled with it")
        part = given[name]
        if isinstance(form, TensorForm) and isinstance(part, torch.Tensor):
            form.check(name, part)
            tensors[name] = part
        elif isinstance(form, TensorForm) or isinstance(part, torch.Tensor) or _form(part) != form:
            raise ArgumentError(f"{name} is {_described(_form(part))}, {COMPILED} {_described(form)}")
    for name in given:
        if name not in compiled:
            raise ArgumentError(f"{name} is given, but the model was compiled without it")
    return tensors


def unshared(inputs: Sequence[object], names: Sequence[str], written: Sequence[int]) -> None:
    """Raises ArgumentError if an input that the model writes to shares memory with another one."""
    memory = [storage_of(x) if isinstance(x, torch.Tensor) else None for x in inputs] if written else []
    for i in written:
        if memory.count(memory[i]) > 1:
            other = next(names[k] for k in range(len(inputs)) if k != i and memory[k] == memory[i])
            raise ArgumentError(f"the model writes to {names[i]}, which shares memory with {other}; pass a copy")


def check_weights(inputs: Sequence[object], weights: Mapping[int, tuple[str, TensorForm]]) -> None:
    """Raises the errors of `check_kind` for a weight, and ArgumentError for one without values. `weights` has the name
    and the form of the weight at each position."""
    for i, (name, form) in weights.items():
        x = inputs[i]
        if not isinstance(x, torch.Tensor):
            raise ArgumentError(f"{name} is {_described(_form(x))}, {COMPILED} {_described(form)}")
        if reason := lacks_values(x):
            raise ArgumentError(f"{name} is {reason}, so it has no values; {ASSIGNED}")
        form.check_kind(name, x)


def trained(inputs: Sequence[object], names: Sequence[str], known: Set[int]) -> None:
    """Raises ArgumentError if an input requires a gradient, and is not at one of the `known` positions."""
    for i, x in enumerate(inputs):
        if isinstance(x, torch.Tensor) and x.requires_grad and i not in known:
            raise ArgumentError(f"{names[i]} requires a gradient, {COMPILED} one that does not")


def tell_untrained(arguments: Mapping[str, object]) -> None:
    """Warns of arguments that require gradients, for a model that is compiled without training."""
    if torch.is_grad_enabled():
        found = [name for name, x in arguments.items() if isinstance(x, torch.Tensor) and x.requires_grad]
        if found:
            user_code.warn(UserWarning(f"gradients are required for {', '.join(found)}, but {UNTRAINED}"))


def tensor_form(x: torch.Tensor) -> TensorForm:
    return TensorForm(tuple(x.shape), x.dtype, device_of(x))


def _form(part: object) -> Form:
    if isinstance(part, torch.Tensor):
        return tensor_form(part)
    if isinstance(part, Container):
        return part.text
    kind = type(part).__name__
    return f"{kind} {part!r}" if isinstance(part, PLAIN) else f"of type {kind}"  # its text may be pages of numbers


def _described(form: Form) -> str:
    return f"a tensor of shape {form.shape}" if isinstance(form, TensorForm) else form


def device_of(x: torch.Tensor) -> torch.device:
    """The device for which an example is compiled. An example without values stands for a tensor on the CPU."""
    return torch.device("cpu") if lacks_values(x) else x.device


def lacks_values(x: torch.Tensor) -> str:
    """The reason why a tensor has no values, as the end of a sentence. It is empty if the tensor has values."""
    return "on meta" if x.is_meta else "a fake tensor" if isinstance(x, FakeTensor) else ""
