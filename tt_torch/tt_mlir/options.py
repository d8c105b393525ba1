"""Our options under tt-mlir's names, which differ between its plugins and its command-line tools."""

from __future__ import annotations

from pathlib import Path

from tt_torch.config import CompilerConfig
from tt_torch.errors import ConfigError
from tt_torch.wire.binary import system

# The names that options have in the tools, if they are not the plugin's names with hyphens.
_TOOL_NAMES = {
    "enable_const_eval_on_cpu": "enable-cpu-hoisted-const-eval",
    "fp32_dest_acc_en": "compute-cfg-fp32-dest-acc-en",
    "math_fidelity": "compute-cfg-math-fidelity",
}
_OURS = ("backend", "export_model_name", "export_path")  # the plugin must write a binary to the place where we read it


def check(config: CompilerConfig) -> None:
    """Raises ConfigError for options that tt-mlir does not have."""
    if config.dtype is not None:
        raise ConfigError("dtype", config.dtype, 'None with compiler="tt-mlir", which has no such option')
    for name in ("activation_dtype", "kv_cache_dtype"):
        if getattr(config, name) is not None:
            raise ConfigError(name, getattr(config, name), 'None with compiler="tt-mlir"')
    for name in ("precision", "optimizer_overrides"):
        if given := getattr(config, name):
            raise ConfigError(name, dict(given), '{} with compiler="tt-mlir"; `tt_mlir_options` has its own options')
    if config.op_model != type(config).op_model:
        raise ConfigError("op_model", config.op_model, 'its default with compiler="tt-mlir", which has its own')
    if config.enable_dram_sharded_matmul:
        raise ConfigError("enable_dram_sharded_matmul", True, 'False with compiler="tt-mlir", which has no such option')
    if config.enable_consteval and not config.consteval_parameters:
        raise ConfigError("consteval_parameters", False, 'True with compiler="tt-mlir", which has no such option')
    if config.schema != type(config).schema:
        raise ConfigError("schema", config.schema, 'its default with compiler="tt-mlir", which knows one schema')
    for name, text in config.tt_mlir_options:
        if name in _OURS:
            raise ConfigError("tt_mlir_options", {name: text}, f"other names than {', '.join(_OURS)}, which we set")


def for_plugin(config: CompilerConfig) -> dict[str, str]:
    """Compile options of a plugin. Const-eval must stay on the device, which runs machine code only on request."""
    options = {
        "optimization_level": str(config.level),
        "enable_const_eval": str(config.enable_consteval).lower(),
        "enable_const_eval_on_cpu": "false",
    }
    if config.writes_recordings:
        options["enable_trace"] = "true"
    if config.weight_dtype:
        options["experimental_weight_dtype"] = {"bfp8_b": "bfp_bf8", "bfp4_b": "bfp_bf4"}[config.weight_dtype]
    if config.math_fidelity != type(config).math_fidelity:
        options["math_fidelity"] = config.math_fidelity
    if config.fp32_dest_acc_en != type(config).fp32_dest_acc_en:
        options["fp32_dest_acc_en"] = str(config.fp32_dest_acc_en).lower()
    return options | dict(config.tt_mlir_options)


def for_tools(config: CompilerConfig) -> str:
    """Options of the pipeline of `ttmlir-opt`. They also name the system to compile for.

    Raises ConfigError if the `.ttsys` file is not readable or of another architecture.
    """
    if config.system_desc:
        system(config.arch, config.system_desc)
        words = [f"system-desc-path={Path(config.system_desc).resolve()}"]
    else:
        words = [f"mock-system-desc-arch={config.arch}"]
    named = ((_TOOL_NAMES.get(name, name.replace("_", "-")), text) for name, text in for_plugin(config).items())
    return " ".join([*words, *(f"{name}={text}" for name, text in named)])
