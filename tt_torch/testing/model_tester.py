"""A test of a model: it runs in eager PyTorch and compiled, the results are compared, and the figures are recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch

from tt_torch.accuracy import verify_against_golden
from tt_torch.config import OP_BY_OP, BackendOptions, CompileDepth, CompilerConfig
from tt_torch.driver.backend import backend as tt_backend
from tt_torch.driver.devices import Device
from tt_torch.dynamo.types import Function
from tt_torch.testing.parallel import on_each_device
from tt_torch.testing.tags import BACKENDS, Recorder, Required, bringup_status, figures, record_start
from tt_torch.torch_private.trees import tree_leaves

Model: TypeAlias = Any  # a module, a function or, for OnnxModelTester, an ONNX model
Inputs: TypeAlias = Any  # of a call: a mapping of keyword arguments, a sequence of positional ones, or one argument
Outputs: TypeAlias = Any  # whatever the model returns
SEED = 99  # of training, so that dropout is the same in both runs


class ModelTester:
    """Compiles and runs a model, compares with eager PyTorch, and records the figures.

    A subclass has `_load_model` and `_load_inputs`, unless `loader` has `load_model` and `load_inputs`. `test_model`
    does the work, and `finalize` records the figures and raises AssertionError if results differ, so that a report has
    them in any case. `mode` is "eval", or "train" to compare the gradients of the inputs for the mean of the output.
    `run_generate` compiles `forward` and calls `generate`. With `is_token_output`, decoded texts are compared;
    `_load_model` then sets `self.tokenizer`. `data_parallel_mode` runs the model on all `devices` at once, by default
    on all chips, and compares the results of each. All names of `backend` mean the same.

    Raises ValueError for another mode or backend.
    """

    tokenizer: Any
    pccs: Sequence[float] = ()
    atols: Sequence[float] = ()
    compared = False
    failure = ""  # why `finalize` fails the test

    def __init__(
        self,
        model_name: str,
        mode: str,
        loader: Any = None,
        model_info: Any = None,
        required_pcc: float = 0.99,
        required_atol: float | None = None,
        relative_atol: float | None = None,
        compiler_config: CompilerConfig | None = None,
        assert_pcc: bool = True,
        assert_atol: bool = True,
        run_generate: bool = False,
        record_property_handle: Recorder | None = None,
        model_group: str = "generality",
        is_token_output: bool = False,
        model_name_suffix: str = "",
        devices: Device | Sequence[Device] | None = None,
        data_parallel_mode: bool = False,
        backend: str = "tt",
        forge_models_test: bool = False,
    ) -> None:
        _check(mode, backend)
        self.required = Required(required_pcc, required_atol, relative_atol, assert_pcc, assert_atol)
        self.model_info, self.loader, self.mode = model_info, loader, mode
        self.model_name = model_info.name if model_info is not None else model_name
        group = str(model_info.group if model_info is not None else model_group)
        self.run_generate, self.is_token_output = run_generate, is_token_output
        self.data_parallel_mode, self.devices = data_parallel_mode, _listed(devices, data_parallel_mode)
        self.record_property: Recorder = record_property_handle or (lambda name, value: None)
        self.compiler_config = compiler_config or CompilerConfig()
        self.compiler_config.model_name, self.compiler_config.model_group = self.model_name, group
        self.compiler_config.record_property = self.record_property
        self.tags = record_start(self.record_property, self.model_name + model_name_suffix, group, self.compiler_config)
        self.tags |= self.required.tags() | {"forge_models_test": forge_models_test}
        self.tags["parallelism"] = "runtime_data_parallel" if data_parallel_mode else "single_device"
        self.framework_model = self._load_model()
        if is_token_output and not hasattr(self, "tokenizer"):
            raise ValueError("with is_token_output, _load_model sets self.tokenizer")
        self.inputs = self._load_inputs()

    # --- what a subclass may replace ----------------------------------------------------------------

    def _load_model(self) -> Model:
        if self.loader is None:
            raise NotImplementedError("a subclass of ModelTester has _load_model, or give a loader")
        return self.loader.load_model()

    def _load_inputs(self) -> Inputs:
        if self.loader is None:
            raise NotImplementedError("a subclass of ModelTester has _load_inputs, or give a loader")
        return self.loader.load_inputs()

    def _extract_outputs(self, output_object: Outputs) -> tuple[Any, ...]:
        """The tensors of an output, and values such as texts, as a flat tuple."""
        return tuple(_leaves(output_object))

    def get_framework_model(self) -> Model:
        """The model in eval mode. Raises ValueError for `run_generate` with a model that cannot generate."""
        if self.run_generate and not hasattr(self.framework_model, "generate"):
            raise ValueError("run_generate needs a model with the method generate")
        return self.framework_model.eval() if hasattr(self.framework_model, "eval") else self.framework_model

    # --- running ----------------------------------------------------------------------------------

    def test_model(self, on_device: bool = True, assert_eval_token_mismatch: bool = True) -> Outputs:
        """Runs and compares; returns the results of the device, or of eager PyTorch without `on_device`.

        With `assert_eval_token_mismatch`, other decoded texts are a failure. Results are compared at the depth EXECUTE.
        """
        try:
            if self.mode == "train":
                return self._test_train(on_device)
            if self.data_parallel_mode and on_device:
                return self._test_on_each_device()
            return self._test_eval(on_device, assert_eval_token_mismatch)
        finally:
            torch.compiler.reset()

    @property
    def depth(self) -> CompileDepth:
        """The depth of the compilation, after environment variables."""
        return self.compiler_config.with_env().compile_depth

    def compile_model(self, model: Model, compiler_config: CompilerConfig) -> Function:
        """The model as a compiled function."""
        return self._compiled(model, compiler_config, self.devices[0], asynchronous=False)

    def _compiled(self, model: Model, config: CompilerConfig, device: Device | None, asynchronous: bool) -> Function:
        options = BackendOptions(compiler_config=config, devices=[device], async_mode=asynchronous)
        compiled: Function = torch.compile(model, backend=tt_backend, dynamic=False, options=options)  # type: ignore[call-overload]
        return compiled

    def run_model(self, model: Function, inputs: Inputs) -> Outputs:
        """Calls the model with a mapping of keyword arguments, a sequence of positional arguments, or one argument."""
        if isinstance(inputs, Mapping):
            return model(**inputs)
        return model(*inputs) if isinstance(inputs, Sequence) else model(inputs)

    @torch.no_grad()
    def _test_on_each_device(self) -> list[Outputs]:
        """The results of each device, all of which are compared."""
        if self.run_generate or self.is_token_output or self.depth != CompileDepth.EXECUTE:
            raise ValueError("data_parallel_mode is for whole models at the depth EXECUTE whose results are tensors")
        model = self.get_framework_model()
        golden = self._call(model, None)

        def start(device: Device) -> Outputs:
            run = self._compiled(model, self.compiler_config, device, asynchronous=True)
            return self.run_model(run, _copied(self.inputs))

        given = [device for device in self.devices if device is not None] or None
        each = on_each_device(start, self.compiler_config.with_env(), given)
        self.record_property("achieved_compile_depth", "EXECUTE")
        self._compare([golden] * len(each), each)
        return each

    @torch.no_grad()
    def _test_eval(self, on_device: bool, compare_texts: bool) -> Outputs:
        model = self.get_framework_model()
        golden = None if self.depth in OP_BY_OP else self._call(model, None)
        outputs = self._call(model, self.compiler_config if on_device else None)
        self.record_property("achieved_compile_depth", "EXECUTE")
        if self.depth == CompileDepth.EXECUTE:
            self._compare_texts(golden, outputs, compare_texts) if self.is_token_output else self._compare(
                golden, outputs
            )
        return outputs

    def _call(self, model: Model, config: CompilerConfig | None) -> Outputs:
        """The results of the model, compiled if there is a config. Each run has the same random numbers and its own
        copies of the inputs, which a model may change."""
        torch.manual_seed(SEED)
        inputs = _copied(self.inputs)
        if not self.run_generate:
            return self.run_model(model if config is None else self.compile_model(model, config), inputs)
        if config is None:
            return self.run_model(model.generate, inputs)
        own = vars(model).get("forward")
        model.forward = self.compile_model(model.forward, config)
        try:
            return self.run_model(model.generate, inputs)
        finally:
            del model.forward
            if own is not None:
                model.forward = own

    def _test_train(self, on_device: bool) -> Outputs:
        if not isinstance(self.framework_model, torch.nn.Module):
            raise ValueError(f"the mode 'train' is for modules, not for {self.framework_model!r}")
        model = self.framework_model.train()
        golden = self._gradients(model)
        results = self._gradients(self.compile_model(model, self.compiler_config)) if on_device else golden
        self.record_property("achieved_compile_depth", "EXECUTE")
        if self.depth == CompileDepth.EXECUTE:
            self._compare(golden, results)
        return results

    def _gradients(self, model: Function) -> Outputs:
        """The gradients of the inputs of float types for the mean of the output, in the form of the inputs."""
        torch.manual_seed(SEED)
        inputs = _copied(self.inputs)
        floats = [v for v in _leaves(inputs) if isinstance(v, torch.Tensor) and v.is_floating_point()]
        for value in floats:
            value.requires_grad_(True)
        output = next(iter(self._extract_outputs(self.run_model(model, inputs))), None)
        if not floats or not isinstance(output, torch.Tensor) or not output.is_floating_point():
            raise ValueError("the mode 'train' needs an input, and a first output, that are tensors of a float type")
        output.mean().backward()
        return floats[0].grad if isinstance(self.inputs, torch.Tensor) else [value.grad for value in floats]

    # --- comparing and recording ----------------------------------------------------------------------

    def _compare(self, golden: Outputs, outputs: Outputs) -> None:
        """Compares, and keeps a failure for `finalize`."""
        expected, got = self._extract_outputs(golden), self._extract_outputs(outputs)
        need = self.required
        if not expected and not got:
            self.failure = "the model gives nothing that can be compared"
            return
        try:
            self.pccs, self.atols, close, near, _ = verify_against_golden(
                expected, got, False, False, need.pcc, need.atol, need.relative_atol
            )
        except AssertionError as error:  # another number of outputs, or other shapes
            self.failure = str(error)
            return
        wrong = [f"PCC {min(self.pccs)}, required {need.pcc}"] if need.assert_pcc and not close else []
        if need.assert_atol and not near:
            bound = need.atol if need.relative_atol is None else f"{need.relative_atol} of the largest value"
            wrong.append(f"difference {max(self.atols)}, required {bound}")
        self._judge("; ".join(wrong))

    def _compare_texts(self, golden: Outputs, outputs: Outputs, asserted: bool) -> None:
        expected, got = (self.tokenizer.batch_decode(o, skip_special_tokens=True) for o in (golden, outputs))
        self._judge(f"the device gives {got}, eager PyTorch {expected}" if asserted and expected != got else "")

    def _judge(self, failure: str) -> None:
        self.compared, self.failure = True, failure
        if not failure:
            self.record_property("achieved_compile_depth", "PASSED")

    def finalize(self) -> None:
        """Records the figures. Raises AssertionError if results differ."""
        passed = self.compared and not self.failure
        self.tags |= figures(self.pccs, self.atols) | {"bringup_status": bringup_status(self.depth, passed)}
        self.record_property("tags", self.tags)
        assert not self.failure, self.failure

    @staticmethod
    def GenerateCustomTestReport(
        record_property: Recorder,
        model_name: str,
        compiler_config: CompilerConfig,
        test_pcc: float,
        test_atol: float,
        model_group: str = "generality",
        required_pcc: float = 0.99,
        required_atol: float | None = None,
        relative_atol: float | None = None,
        assert_pcc: bool = True,
        assert_atol: bool = True,
    ) -> None:
        """Records what `finalize` would record, for a test that computes its figures itself. It asserts nothing."""
        need = Required(required_pcc, required_atol, relative_atol, assert_pcc, assert_atol)
        tags = record_start(record_property, model_name, str(model_group), compiler_config) | need.tags()
        status = bringup_status(compiler_config.with_env().compile_depth, test_pcc >= required_pcc)
        tags["parallelism"] = "single_device"
        record_property("tags", tags | figures([test_pcc], [test_atol]) | {"bringup_status": status})

    @staticmethod
    def print_outputs(results: Outputs, data_parallel_mode: bool, print_fn: Callable[[Outputs], object]) -> None:
        """Calls `print_fn` with the results, or once for each device with the results of this device."""
        for each in results if data_parallel_mode else [results]:
            print_fn(each)


def _check(mode: str, backend: str) -> None:
    """Raises ValueError for a mode or a backend that does not exist."""
    for name, given, known in (("mode", mode, ("train", "eval")), ("backend", backend, BACKENDS)):
        if given not in known:
            raise ValueError(f"{name} is one of {', '.join(known)}, not {given!r}")


def _listed(devices: Device | Sequence[Device] | None, several: bool) -> list[Device | None]:
    """The devices as a list, [None] without devices. Raises ValueError for more than one device if not `several`."""
    listed: list[Device | None] = list(devices) if isinstance(devices, Sequence) else [devices]
    if len(listed) != 1 and not several:
        raise ValueError(f"a model runs on one device, not on {len(listed)}, without data_parallel_mode")
    return listed


def _copied(inputs: Inputs) -> Inputs:
    """The inputs with copies of their tensors, in lists, tuples and dictionaries."""
    if isinstance(inputs, torch.Tensor):
        return inputs.detach().clone()
    if isinstance(inputs, Mapping):
        return {name: _copied(value) for name, value in inputs.items()}
    return type(inputs)(map(_copied, inputs)) if type(inputs) in (list, tuple) else inputs


def _leaves(output: Outputs) -> list[Any]:
    """Tensors and other values inside of lists, dictionaries, outputs of Hugging Face and key-value caches."""
    found: list[Any] = []
    for leaf in tree_leaves(output):
        if isinstance(leaf, np.ndarray):
            found.append(torch.from_numpy(leaf))
        elif isinstance(leaf, bool | int | float | np.generic):
            found.append(torch.tensor(leaf))
        elif hasattr(leaf, "to_tuple"):
            found += _leaves(leaf.to_tuple())
        elif hasattr(leaf, "layers"):  # a cache: keys and values of each layer
            found += [t for layer in leaf.layers for t in (layer.keys, layer.values) if t is not None]
        elif leaf is not None:
            found.append(leaf)
    return found
