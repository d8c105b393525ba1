"""Models that were compiled ahead of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path

import torch

from tt_torch.driver.arguments import Call, check, described, parts, tell_untrained
from tt_torch.driver.compilation import Compilation
from tt_torch.driver.devices import Device
from tt_torch.driver.executor import Executor
from tt_torch.driver.family import Family
from tt_torch.driver.package import contents
from tt_torch.driver.package.loading import LoadedModel, unpickled
from tt_torch.driver.package.saving import flow_of, package_of
from tt_torch.driver.releasing import release
from tt_torch.dynamo.types import Argument, Function, Result
from tt_torch.errors import InexactError, PackagingError
from tt_torch.files import write


class _Packable:
    """A model that can become a package. `pickle` and `copy.deepcopy` make the LoadedModel that a saved package gives.

    This LoadedModel has weights of its own. All of this raises PackagingError for a model that cannot be a package.
    """

    def __init__(self, compilations: Sequence[Compilation], family: Family | None, device: Device) -> None:
        self._compilations, self._family, self._device = compilations, family, device

    def __repr__(self) -> str:
        first = self._compilations[0]
        return f"{type(self).__name__}({described(first.forms, len(self._compilations))})"

    def _write(self, path: str | Path, weights: bool) -> None:
        contents.write(path, package_of(self._compilations, self._family, weights))

    def named_parameters(self) -> Iterator[tuple[str, torch.nn.Parameter]]:
        """The parameters of the model, which has none if it is a function."""
        model = self._compilations[0].model
        return model.named_parameters() if isinstance(model, torch.nn.Module) else iter(())

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """The parameters of the model, which can be given to an optimizer."""
        return (parameter for _, parameter in self.named_parameters())

    def __reduce__(self) -> tuple[object, ...]:
        return unpickled, (contents.to_bytes(package_of(self._compilations, self._family)),)

    def __deepcopy__(self, memo: object) -> LoadedModel:
        return LoadedModel(deepcopy(package_of(self._compilations, self._family)), self._device)


class CompiledModel(_Packable):
    """A callable like the model, which runs one binary. It never compiles anything again.

    Its calls take arguments of the forms that it was compiled for. Other arguments raise InputShapeError,
    InputDtypeError or ArgumentError. `binary` is the content of the .ttnn file. `executor` has the inputs of the
    program and their roles.
    """

    def __init__(self, compilation: Compilation, function: Function, executor: Executor) -> None:
        super().__init__([compilation], None, executor.device)
        self.compilation, self._function, self._executor = compilation, function, executor
        self.releases = False  # whether the next call on the device releases the weights

    @property
    def executor(self) -> Executor:
        """Runs the program. Raises PackagingError for a model with a loop or a `cond`, which has several programs."""
        if flow_of(self.compilation.program):
            why = "the model has a loop or a `cond`, so it has several programs"
            raise PackagingError(f"{why}; a .ttpkg file holds all of them")
        return self._executor

    @property
    def binary(self) -> bytes:
        """The content of the `.ttnn` file. Raises PackagingError for a model with a loop or a `cond`."""
        return self.executor.binary

    def save(self, path: str | Path, weights: bool = True) -> None:
        """Writes a package, which runs by itself, if the name ends in `.ttpkg`; otherwise the binary alone.

        An existing file is replaced only after the new one is complete. If `weights` is False, the package has no
        weight of the model's `state_dict`. Raises PackagingError for a model that cannot be a package.
        """
        if Path(path).suffix == ".ttpkg":
            self._write(path, weights)
        elif self.compilation.backward:
            raise PackagingError(f"{path} does not end in .ttpkg, and only a package holds the programs of training")
        else:
            write(path, self.binary)

    def arguments(self, *args: Argument, **kwargs: Argument) -> list[torch.Tensor]:
        """The program's inputs, weights included, for a call with these arguments:
        `tt_torch.load(path)(*model.arguments(x))` computes what `model(x)` does, if `path` is a .ttnn file.

        Raises InexactError for a call that runs in eager PyTorch.
        """
        return self.executor.arguments_of(lambda: self(*args, **kwargs))

    def __call__(self, *args: Argument, **kwargs: Argument) -> Result:
        call = self.compilation.signature.bind(args, kwargs)
        tensors = check(call, self.compilation.forms)
        if self.compilation.backward is None:
            tell_untrained(tensors)
        with torch.set_grad_enabled(self.compilation.backward is not None and torch.is_grad_enabled()):
            return self._releasing(call) if self.releases else self._function(*call.args, **call.kwargs)

    def _releasing(self, call: Call) -> Result:
        """The result of a call, which releases the weights unless it runs in eager PyTorch."""
        results: list[Result] = []
        try:
            self.executor.arguments_of(lambda: results.append(self._function(*call.args, **call.kwargs)))
        except InexactError:
            if not results:
                raise
        else:
            self.releases = False
            release(self)
        return results[0]


class CompiledFamily(_Packable):
    """A callable like the model, which has a program for each combination of sizes, and never compiles again.

    The shapes of the arguments choose the program. A call with other sizes raises InputShapeError. `members` are the
    compiled models in the order of `family.members()`.
    """

    def __init__(self, family: Family, members: Sequence[CompiledModel]) -> None:
        compilations = [member.compilation for member in members]
        super().__init__(compilations, family, members[0]._device)
        self.family, self.members = family, members

    def save(self, path: str | Path, weights: bool = True) -> None:
        """Writes all programs and their common weights as one package, whose name ends in `.ttpkg`.

        See CompiledModel.save.
        """
        if Path(path).suffix != ".ttpkg":
            raise PackagingError(f"{path} does not end in .ttpkg, and only a package holds the programs of a family")
        self._write(path, weights)

    def __call__(self, *args: Argument, **kwargs: Argument) -> Result:
        call = self.members[0].compilation.signature.bind(args, kwargs)
        return self.members[self.family.number(parts(call))](*args, **kwargs)
