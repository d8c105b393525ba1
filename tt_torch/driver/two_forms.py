"""Models whose calls run in a second form of the program if they leave the 32 bits of the device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import torch

from tt_torch import user_code
from tt_torch.driver.devices import Device
from tt_torch.driver.exact_runner import ExactnessWarning
from tt_torch.driver.package.contents import Package
from tt_torch.driver.package.loading import LoadedModel
from tt_torch.errors import InexactError


class ModelInTwoForms(LoadedModel):
    """In the second form of a program, the host computes the 64-bit integers. `compile_again` compiles it for the
    number of a member, at the first call that needs it. A saved package does not have it."""

    def __init__(self, package: Package, device: Device, compile_again: Callable[[int], Package]) -> None:
        super().__init__(package, device)
        self._compile_again = compile_again
        self._second: dict[int, LoadedModel] = {}

    def __deepcopy__(self, memo: object) -> ModelInTwoForms:
        return ModelInTwoForms(deepcopy(self._now()), self._device, self._compile_again)

    def _computed(self, number: int, given: Mapping[str, torch.Tensor]) -> Any:
        try:
            return super()._computed(number, given)
        except InexactError as error:
            reason = str(error)
        is_new = number not in self._second
        if is_new:
            self._second[number] = LoadedModel(self._compile_again(number), self._device)
            self._second[number].weights = self.weights
        result = self._second[number]._computed(0, given)
        if is_new:
            user_code.warn(ExactnessWarning(f"a call computes its 64-bit integers on the host: {reason}"))
        return result
