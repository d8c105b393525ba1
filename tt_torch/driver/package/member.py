"""Runs the programs of a package for arguments of one form, also under autograd. This imports no compiler."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch

from tt_torch.driver.arguments import trained, unshared
from tt_torch.driver.package.manifest import Manifest, Place
from tt_torch.driver.package.results import placed
from tt_torch.driver.program import Program
from tt_torch.dynamo.calls import View, has_memory_of_autograd, in_memory, in_one_memory, place_in_memory, read_as
from tt_torch.torch_private.tensors import storage_of


@dataclass(frozen=True)
class Member:
    """A member of a family, or the only one. It has a forward program. In a package for training, it also has a
    backward program."""

    manifest: Manifest
    forward: Program
    backward: Program | None

    def __call__(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The outputs of the graph for its inputs, some of which it may write to.

        The outputs have gradients if the package is for training, and gradients are enabled. Raises ArgumentError for
        inputs that must not share memory, or must not require gradients.
        """
        names = [name for _, name in self.manifest.inputs]
        unshared(inputs, names, self.manifest.written)
        training = self.manifest.training if torch.is_grad_enabled() else None
        if training is None:
            with torch.no_grad():
                return self._outputs(self.results(inputs), inputs)
        trained(inputs, names, self._trained)
        return self._outputs(self._differentiable(inputs), inputs)

    def results(self, inputs: Sequence[torch.Tensor]) -> list[Any]:
        """All results of the forward program, with the tensors that it keeps for the backward program."""
        return self.forward([*[None] * self.manifest.tokens, *inputs])[self.manifest.tokens :]

    def _differentiable(self, inputs: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        """The results of the forward graph, with gradients for those inputs that can have one."""
        assert self.backward
        gradients = zip(inputs, self.backward.interface.outputs, strict=True)
        taken = [x.detach() if gradient is None and x.requires_grad else x for x, gradient in gradients]
        results: Sequence[torch.Tensor] = _Forward.apply(self, *taken)  # type: ignore[no-untyped-call]
        return results

    def _outputs(self, results: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Writes to inputs as the model does, and puts the outputs into memory as in eager PyTorch."""
        for position, value in zip(self.manifest.written, results, strict=False):
            hidden = self.manifest.training and position in self.manifest.training.hidden
            (inputs[position].detach() if hidden else inputs[position]).copy_(value)
        values = results[len(self.manifest.written) :]
        if not torch.is_grad_enabled():
            return placed(values[: len(self.manifest.places)], self.manifest.places, inputs)
        return self._with_gradients(values, inputs)

    def _with_gradients(self, values: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The outputs with the gradients that they had in the trace. The gradients of a view reach its base."""
        training, places = self.manifest.training, self._places
        assert training
        made = placed(values[: len(places)], places, inputs)
        for base, group in self._views.items():
            memory, views = values[base], {i: View(base, *place_in_memory(values[i])) for i in group}
            wanted = {i: View(base, places[i].shape, places[i].strides, places[i].offset) for i in group}
            differ = any(_steps(views[i]) != _steps(wanted[i]) for i in group)
            if differ and all(values[i].dtype == memory.dtype for i in group):
                memory, views = _rearranged(memory, views, wanted), wanted
            for i in group:
                if i != base or memory is not values[base]:
                    made[i] = read_as(views[i], values[base], values[i]).of({base: memory})
        self._put_together(made)
        return [x if i in training.differentiable else x.detach() for i, x in enumerate(made)]

    def _put_together(self, made: list[torch.Tensor]) -> None:
        """Moves outputs to one memory where they share it in eager PyTorch, and autograd knows nothing of this."""
        places = self.manifest.places
        for group in self._together.values():
            apart = len({storage_of(made[i]) for i in group}) > 1
            if apart and not any(has_memory_of_autograd(made[i]) for i in group):
                at = [(places[i].strides, places[i].offset) for i in group]
                moved = in_one_memory([made[i].detach() for i in group], at)
                for i, memory in zip(group, moved, strict=True):
                    made[i] = in_memory(made[i], memory)

    @cached_property
    def _trained(self) -> frozenset[int]:
        """Positions of the inputs that may require gradients."""
        training = self.manifest.training
        return frozenset(training.trained if training else ())

    @cached_property
    def _views(self) -> dict[int, list[int]]:
        """The outputs that autograd knows as views of one result, by this result, which may be an output itself."""
        training = self.manifest.training
        assert training
        views = defaultdict[int, list[int]](list)
        for i, base in training.bases.items():
            views[base].append(i)
        return {base: group + [base] * (base < len(self.manifest.places)) for base, group in views.items()}

    @cached_property
    def _together(self) -> dict[int, list[int]]:
        """The outputs in each memory that several outputs share."""
        together = defaultdict[int, list[int]](list)
        for i, place in enumerate(self.manifest.places):
            if place.memory is not None:
                together[place.memory].append(i)
        return together

    @cached_property
    def _places(self) -> list[Place]:
        """The places of outputs in a call with gradients. Outputs with gradients are not copied into common memory. The
        program puts them there, as far as their gradients allow it."""
        training, places = self.manifest.training, self.manifest.places
        assert training
        memory = {places[i].memory for i in (*training.bases, *training.differentiable) if i < len(places)}
        return [replace(place, memory=None) if place.memory in memory else place for place in places]


class _Forward(torch.autograd.Function):
    """The forward program, whose derivative is the backward program."""

    @staticmethod
    def forward(ctx: Any, member: Member, *inputs: torch.Tensor) -> tuple[Any, ...]:
        training = member.manifest.training
        assert training
        found = member.results(inputs)
        ctx.member, ctx.gradients = member, training.gradients
        ctx.save_for_backward(*found[training.results :])
        # `y` and `y.detach()` may be the same object here, and only one of them has gradients
        others = {i: x.detach() for i, x in enumerate(found[: training.results]) if i not in training.gradients}
        ctx.mark_non_differentiable(*others.values())
        return tuple(others.get(i, x) for i, x in enumerate(found[: training.results]))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        inputs = [*ctx.saved_tensors, *(gradients[i] for i in ctx.gradients)]
        if not torch.is_grad_enabled():
            return None, *ctx.member.backward(inputs)
        # The leaf makes the gradients require gradients even if no input does, so that no second derivative is lost.
        return None, *_Backward.apply(ctx.member, torch.empty(0, requires_grad=True), *inputs)  # type: ignore[no-untyped-call]


class _Backward(torch.autograd.Function):
    """The backward program under `create_graph=True`. Its own derivative is an error."""

    @staticmethod
    def forward(ctx: Any, member: Member, leaf: torch.Tensor, *inputs: torch.Tensor) -> tuple[Any, ...]:
        assert member.backward
        return tuple(member.backward(list(inputs)))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        raise RuntimeError("a package has no program for second derivatives")


def _steps(view: View) -> tuple[object, ...]:
    """The strides and the offset of a view, as far as they decide on the places of its elements."""
    steps = [step for size, step in zip(view.shape, view.strides, strict=True) if size != 1]
    return () if 0 in view.shape else (*steps, view.offset)


def _rearranged(memory: torch.Tensor, views: Mapping[int, View], wanted: Mapping[int, View]) -> torch.Tensor:
    """New memory that has the elements of each view where another view wants them. Gradients reach the old memory."""
    read, written = (torch.cat([*map(_numbers, each.values())]) for each in (views, wanted))
    source = torch.zeros(int(written.max()) + 1, dtype=torch.int64)
    source[written] = read
    return memory.as_strided((memory.numel(),), (1,))[source.to(memory.device)]


def _numbers(view: View) -> torch.Tensor:
    """The places of a view's elements in memory."""
    last = view.offset + sum((n - 1) * s for n, s in zip(view.shape, view.strides, strict=True))
    memory = torch.arange(0 if 0 in view.shape else last + 1)
    return memory.as_strided(view.shape, view.strides, view.offset).reshape(-1)
