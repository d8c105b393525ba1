"""Models whose calls run in a second form of the program if they leave the 32 bits of the device."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import torch

from tt_torch.driver.arguments import TensorForm
from tt_torch.driver.devices import Device
from tt_torch.driver.package.contents import Package, joined
from tt_torch.driver.package.loading import LoadedModel
from tt_torch.driver.package.manifest import Manifest


class ModelInTwoForms(LoadedModel):
    """In the second form of a program, the host computes the 64-bit integers. `compile_again` compiles it for the
    number of a member, at the first call that needs it. Saving compiles it, too, unless no call can need it."""

    def __init__(self, package: Package, device: Device, compile_again: Callable[[int], Package]) -> None:
        super().__init__(package, device)
        self._compile_again = compile_again
        self._compiled: dict[int, Package] = {}

    def __deepcopy__(self, memo: object) -> ModelInTwoForms:
        return ModelInTwoForms(deepcopy(super()._now()), self._device, self._compile_again)

    def _now(self, checkpoint: bool = True) -> Package:
        if not any(map(_may_be_inexact, self._package.manifests)):
            return super()._now(checkpoint)
        members = [self._second_form(number) for number in range(len(self._package.manifests))]
        return replace(super()._now(checkpoint), second=joined(members, self._package.family))

    def _second_form(self, number: int) -> Package:
        if number not in self._compiled:
            made = self._compile_again(number)
            weightless = {name: x for name, x in made.tensors.items() if not name.startswith("weight/")}
            self._compiled[number] = replace(made, tensors=weightless)
        return self._compiled[number]


def _may_be_inexact(manifest: Manifest) -> bool:
    """Whether a call can leave 32 bits: by an integer input, or in an op that the program checks."""
    forms = [form for form in manifest.forms.values() if isinstance(form, TensorForm)]
    return bool(manifest.checks) or any(form.dtype in (torch.int64, torch.uint64) for form in forms)
