"""Runs a package. This imports no compiler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch

from tt_torch import user_code
from tt_torch.config import CompilerConfig
from tt_torch.driver.arguments import TensorForm, check, check_weights, described, parts, tell_untrained
from tt_torch.driver.devices import Device, default_device
from tt_torch.driver.exact_runner import ExactnessWarning, ExactRunner
from tt_torch.driver.executor import CompiledProgram, Executor, of_file
from tt_torch.driver.flow_runner import FlowRunner
from tt_torch.driver.package.contents import Package, from_bytes, separate, to_bytes, well_formed, write
from tt_torch.driver.package.manifest import BACKWARD, CHECK, Graph, Manifest, ProgramForm, Weight, signature
from tt_torch.driver.package.member import Member
from tt_torch.driver.package.results import built
from tt_torch.driver.program import Program
from tt_torch.dynamo.exactness.limits import Plan
from tt_torch.errors import InexactError, PackageError, PackagingError
from tt_torch.files import write as write_file
from tt_torch.flow import MAIN
from tt_torch.runtime import Binary


class Weights(Mapping[str, torch.Tensor]):
    """Weights by name. A weight in the file is compared with its hash, and put on its device, when it is first read.

    The weights that `parameters` names are Parameters. They require gradients if their value in `parameters` is true.
    Raises PackageError for a weight that has changed in the file.
    """

    def __init__(
        self, tensors: Mapping[str, torch.Tensor], forms: Mapping[str, Weight], parameters: Mapping[str, bool]
    ) -> None:
        self._tensors, self._forms, self._parameters = tensors, forms, parameters
        self._unread = {name for name in forms if f"weight/{name}" in tensors}
        self._known: dict[str, torch.Tensor] = {}

    def __getitem__(self, name: str) -> torch.Tensor:
        if name in self._unread:
            self[name] = self._tensors[f"weight/{name}"].to(self._forms[name].device)
        return self._known[name]

    def __setitem__(self, name: str, weight: torch.Tensor) -> None:
        if name in self._parameters and not isinstance(weight, torch.nn.Parameter):
            weight = torch.nn.Parameter(weight, self._parameters[name])
        self._known[name] = weight
        self._unread.discard(name)

    def take(self, name: str, value: torch.Tensor) -> None:
        """Gives a weight a new value. A Parameter stays the same object, because an optimizer may have it."""
        known = self._known.get(name)
        if isinstance(known, torch.nn.Parameter):
            known.detach().copy_(value)
        else:
            self[name] = value

    def __contains__(self, name: object) -> bool:  # Mapping's own __contains__ would read the weight
        return name in self._unread or name in self._known

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._forms if name in self)

    def __len__(self) -> int:
        return len(self._unread) + len(self._known)

    def read(self) -> None:
        """Reads all weights, in several threads, because their hashes take time."""
        if self._unread:
            with ThreadPoolExecutor() as threads:
                list(threads.map(self.__getitem__, list(self._unread)))


class LoadedModel:
    """A model from a package: it takes and returns what the model does.

    Results have gradients if the package was compiled for training; then an optimizer can take `parameters()`.
    Weights come from the file, or from `load_state_dict`. Buffers that the model writes to change here, not in the
    file. A call whose integers the device would not compute exactly raises InexactError, because a package has no graph
    for eager PyTorch. Packages of StableHLO, JAX and ONNX have a second form of the program for such a call.

    `pickle` writes the bytes of a package with the present weights. The model that is read from them runs on the
    default device. A copy by `copy.deepcopy` has weights of its own, and runs on the same device.
    """

    def __init__(self, package: Package, device: Device | None = None) -> None:
        self._package, self._forms = package, package.weights()
        with well_formed("the package"):
            self._device: Device = device or device_for(package, CompilerConfig.from_env())
            self._signature = signature(package.manifests[0])
            training = package.manifests[0].training
            self._parameters = training.parameters if training else None
            self.weights = Weights(package.tensors, self._forms, self._parameters or {})
            self._second: dict[int, LoadedModel] = {}  # by the number of the program
            self._members = [_member(package, number, self._device) for number in range(len(package.manifests))]

    def __repr__(self) -> str:
        manifests = self._package.manifests
        return f"LoadedModel({described(manifests[0].forms, len(manifests))})"

    def _now(self, checkpoint: bool = True) -> Package:
        """The package with the present weights. Without `checkpoint`, it has only weights that are in no checkpoint."""
        names = [name for name in self._package.tensors if not name.startswith("weight/")]
        tensors = {name: self._package.tensors[name] for name in names}
        kept = [name for name in self.weights if checkpoint or not self._forms[name].in_checkpoint]
        weights = separate({f"weight/{name}": self.weights[name] for name in kept})
        manifests = [self._manifest_now(manifest) for manifest in self._package.manifests]
        return replace(self._package, manifests=manifests, tensors=tensors | weights)

    def _manifest_now(self, manifest: Manifest) -> Manifest:
        """The manifest, which says whether the parameters require gradients now."""
        if manifest.training is None:
            return manifest
        known = {name: weight.requires_grad for name, weight in self.weights.items()}
        now = {name: known.get(name, trained) for name, trained in manifest.training.parameters.items()}
        return replace(manifest, training=replace(manifest.training, parameters=now))

    @property
    def executor(self) -> Executor:
        """Runs the program. Raises PackagingError for a package with several programs."""
        if self._package.family or self._parameters is not None or self._package.manifests[0].flow:
            raise PackagingError("the package has several programs, so no single binary has all of it")
        runner = self._members[0].forward.runner
        assert isinstance(runner, ExactRunner) and isinstance(runner.runner, Executor)
        return runner.runner

    @property
    def binary(self) -> bytes:
        """The content of the `.ttnn` file. Raises PackagingError for a package with several programs."""
        return self.executor.binary

    def arguments(self, *args: Any, **kwargs: Any) -> list[torch.Tensor]:
        """Runs a call with these arguments, and returns the inputs of the program, weights included.

        `tt_torch.load(path)(*model.arguments(x))` computes what `model(x)` does, if `path` is a .ttnn file. Raises
        PackagingError for a package with several programs.
        """
        return self.executor.arguments_of(lambda: self(*args, **kwargs))

    def save(self, path: str | Path, weights: bool = True) -> None:
        """Writes the package with its present weights if the name ends in `.ttpkg`; otherwise the binary alone.

        An existing file is replaced only after the new one is complete. If `weights` is False, the package lacks the
        weights that a checkpoint has. Raises PackagingError if several programs are to become a file of another name.
        """
        if Path(path).suffix == ".ttpkg":
            write(path, self._now(weights))
        else:
            write_file(path, self.binary)

    def __reduce__(self) -> tuple[object, ...]:
        return unpickled, (to_bytes(self._now()),)

    def __deepcopy__(self, memo: object) -> LoadedModel:
        return LoadedModel(deepcopy(self._now()), self._device)

    def load_state_dict(self, state: Mapping[str, torch.Tensor]) -> None:
        """Takes the weights from a checkpoint, by their names in the model. The checkpoint may have other tensors, too.

        Raises PackageError if a weight is missing, or has different values under two names; InputShapeError if it has
        another shape; InputDtypeError if it has another dtype; and ArgumentError if it has no values.
        """
        found = {}
        for name, weight in self._forms.items():
            if not weight.in_checkpoint:
                continue
            names = [each for each in (name, *weight.aliases) if each in state]
            if not names:
                raise PackageError(f"the checkpoint has no {name}, which is a weight of the model")
            form = TensorForm(weight.shape, weight.dtype, weight.device)
            check_weights([state[each] for each in names], {i: (each, form) for i, each in enumerate(names)})
            first, *others = (state[each] for each in names)
            if not all(first.is_set_to(other) or torch.equal(first, other) for other in others):
                raise PackageError(f"{' and '.join(names)} are one weight of the model, but have different values")
            found[name] = first.detach().to(weight.device, copy=True).contiguous()
        for name, value in found.items():
            self.weights.take(name, value)

    def state_dict(self) -> dict[str, torch.Tensor]:
        """The weights that a checkpoint of the model has, by all their names. They share memory with this model.

        A package for training has all of them. A package for inference has the weights that its programs use. Raises
        PackageError if the file has no weights, and `load_state_dict` gave none.
        """
        self._read()
        forms = ((name, weight) for name, weight in self._forms.items() if weight.in_checkpoint)
        return {each: self.weights[name].detach() for name, weight in forms for each in (name, *weight.aliases)}

    def named_parameters(self) -> Iterator[tuple[str, torch.nn.Parameter]]:
        """The parameters of the model, in its order, each with the first of its names.

        Raises PackageError for a package that was not compiled for training, and if the weights are missing.
        """
        if self._parameters is None:
            raise PackageError("the package is for inference; compile_model(..., training=True) makes one for training")
        self._read()
        return ((name, cast(torch.nn.Parameter, self.weights[name])) for name in self._parameters)

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """The parameters of the model, in its order. Raises what `named_parameters` raises."""
        return (parameter for _, parameter in self.named_parameters())

    def _read(self) -> None:
        """Reads all weights. Raises PackageError if some are missing, or have changed in the file."""
        self.weights.read()
        for name in self._forms.keys() - self.weights.keys():
            raise PackageError(f"the file has no weights: load_state_dict must give them, such as {name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call, family = self._signature.bind(args, kwargs), self._package.family
        number = family.number(parts(call)) if family else 0
        return self._computed(number, check(call, self._package.manifests[number].forms))

    @property
    def tensor_forms(self) -> dict[str, TensorForm]:
        """The form of each tensor among the arguments, by its name. For a family, it is the form in the first
        program."""
        forms = self._package.manifests[0].forms
        return {name: form for name, form in forms.items() if isinstance(form, TensorForm)}

    def run(self, tensors: Mapping[str, torch.Tensor]) -> Any:
        """The result for these tensors by name. All other arguments have the values that they had in the compilation.

        Raises InputShapeError, InputDtypeError or ArgumentError if a tensor has another form.
        """
        family = self._package.family
        number = family.number(tensors) if family else 0
        given = {}
        for name, form in self._package.manifests[number].forms.items():
            if isinstance(form, TensorForm):
                form.check(name, tensors[name])
                given[name] = tensors[name]
        return self._computed(number, given)

    def _computed(self, number: int, given: Mapping[str, torch.Tensor]) -> Any:
        """The result of a program for tensors that have its forms, or the result of its second form."""
        try:
            return self._in_first_form(number, given)
        except InexactError as error:
            second, reason = self._second_form(number), str(error)
            if second is None:
                raise
        is_new = number not in self._second
        if is_new:
            self._second[number] = LoadedModel(second, self._device)
            self._second[number].weights = self.weights
        result = self._second[number]._in_first_form(0, given)
        if is_new:
            user_code.warn(ExactnessWarning(f"a call computes its 64-bit integers on the host: {reason}"))
        return result

    def _second_form(self, number: int) -> Package | None:
        """The package of one program, in which the host computes the 64-bit integers; None if there is none."""
        second = self._package.second
        return second and second.alone(number)

    def _in_first_form(self, number: int, given: Mapping[str, torch.Tensor]) -> Any:
        manifest = self._package.manifests[number]
        if manifest.training is None:
            tell_untrained(given)
        self._read()
        inputs = [(self.weights if weight else given)[name] for weight, name in manifest.inputs]
        outputs = self._members[number](inputs)
        return built(manifest.result, {"result": outputs, "argument": given, "weight": self.weights})


def unpickled(data: bytes) -> LoadedModel:
    """The model of a pickle, which has the bytes of a package."""
    return LoadedModel(from_bytes(data))


def device_for(package: Package, config: CompilerConfig) -> Device:
    """The default device of `config`. It has as many chips as the first program of the package needs."""
    first = next((x for name, x in package.tensors.items() if name.startswith("program/")), None)
    if first is not None:
        rows, columns = Binary(first.numpy().tobytes()).programs[0].mesh_shape
        config = config.frozen(mesh_shape=(rows, columns))
    return default_device(config)


def _member(package: Package, number: int, device: Device) -> Member:
    """A member of the family, or the only one."""
    (manifest, prefix), backward = package.member(number), None
    if manifest.training:
        backward = program_of(manifest.training.backward, package.tensors, device, prefix + BACKWARD)
    return Member(manifest, program_of(manifest, package.tensors, device, prefix), backward)


def program_of(
    graph: Graph,
    tensors: Mapping[str, torch.Tensor],
    device: Device,
    prefix: str = "",
    flagged: bool = False,
) -> Program:
    """The programs of a graph on a device; their names in the file begin with the prefix.

    If `flagged`, an extra output tells whether the integers of a call are exact.
    """
    executors = {name: _executor(form, prefix + name, tensors, device) for name, form in graph.programs.items()}
    plan = Plan(graph.limits, flagged, checked=graph.checked)
    main = FlowRunner(graph.flow, executors) if graph.flow else executors[MAIN]
    runner = ExactRunner(main, None, plan, graph.resident, executors.get(CHECK))
    return Program(graph.interface, runner, graph.checks, graph.views)


def _executor(form: ProgramForm, name: str, tensors: Mapping[str, torch.Tensor], device: Device) -> Executor:
    compiled = CompiledProgram(
        bytes(tensors[f"program/{name}"].numpy()),
        [tensors[f"constant/{name}/{i}"] for i in range(form.constants)],
        form.kinds,
        form.output_dtypes,
        form.output_strides,
        form.output_devices,
        form.compare_weights,
        shardings=form.shardings,
    )
    return of_file(compiled, device, CompilerConfig.from_env())
