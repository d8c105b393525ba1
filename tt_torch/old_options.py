"""Names of tt-torch's `CompilerConfig` that are no options here.

Each row of `OldNames` is one name. It is another way to write an option (`Alias`), something that a compilation gives
back (`Output`), a value that always holds here (`Always`), or an object of torch_xla (`Foreign`). No name is
ignored in silence: setting it has an effect, warns once per process, or raises ConfigError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tt_torch import option_kinds as kinds
from tt_torch import user_code
from tt_torch.option_kinds import Kind, Setting

Config: TypeAlias = Any  # a CompilerConfig, whose module imports this one


class OldOptionWarning(UserWarning):
    """A name of tt-torch was set to a value that has no meaning here; the message says what holds instead."""


@dataclass
class Outputs:
    """Values that compilations and runs give back to the owner of a config. Its frozen copies share them."""

    record_property: Callable[[str, object], object] | None = None
    unique_ops: dict[str, Any] = field(default_factory=dict)
    runtime_intermediate_cache: dict[str, Any] = field(default_factory=dict)
    torch_mlir_module: str | None = None
    stablehlo_mlir_module: str | None = None
    graph_error: str = ""  # why an op-by-op run could not take a graph apart


class OldName:
    """A row of the table: an attribute of the config that checks what it is set to."""

    name = ""

    def __init__(self, kind: Kind, doc: str) -> None:
        self.kind, self.doc = kind, doc

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def checked(self, value: Setting) -> Setting:
        """The normalised value. Raises ConfigError if the kind does not accept it."""
        return kinds.checked(self.name, self.kind, value)


class Alias(OldName):
    """Another way to write an option. `get` makes its value from the option's value. `set` makes the option's value
    from the given value and the option's present value."""

    def __init__(
        self,
        option: str,
        kind: Kind,
        get: Callable[[Setting], Setting] = lambda value: value,
        set: Callable[[Setting, Setting], Setting] = lambda given, present: given,
    ) -> None:
        super().__init__(kind, f"another way to write `{option}`")
        self.option, self.get, self.set = option, get, set

    def __get__(self, config: Config, owner: type | None = None) -> Setting:
        return self if config is None else self.get(getattr(config, self.option))

    def __set__(self, config: Config, value: Setting) -> None:
        setattr(config, self.option, self.set(self.checked(value), getattr(config, self.option)))


class Output(OldName):
    """A field of the config's Outputs. It can be set, so that a user can install a function or start with an empty
    value."""

    def __get__(self, config: Config, owner: type | None = None) -> Setting:
        return self if config is None else getattr(config.outputs, self.name)

    def __set__(self, config: Config, value: Setting) -> None:
        setattr(config.outputs, self.name, self.checked(value))


class Always(OldName):
    """A name for which one value always holds. Setting another value warns once with the reason.

    `variable` is an environment variable that sets it.
    """

    def __init__(self, kind: Kind, value: Setting, reason: str, variable: str = "") -> None:
        super().__init__(kind, f"always `{value}`: {reason}")
        self.value, self.reason, self.variable = value, reason, variable

    def __get__(self, config: Config, owner: type | None = None) -> Setting:
        return self if config is None else self.value

    def __set__(self, config: Config, value: Setting) -> None:
        self.tell(self.name, self.checked(value))

    def tell(self, origin: str, value: Setting) -> None:
        """Warns if this is not the value that holds; `origin` is what was set: the name or its variable."""
        if value != self.value:
            message = f"{origin}={value!r} has no effect here: {self.reason}"
            user_code.warn_once(self.name, OldOptionWarning(message))


class Foreign(OldName):
    """A name of something that only torch_xla has. Setting it to another value than `value` raises ConfigError.

    `instead` is a sentence about what to do.
    """

    def __init__(self, value: Setting, instead: str) -> None:
        accepts = f"{value!r} only, because torch_xla is not used here: {instead}"
        super().__init__(Kind(accepts, lambda given: kinds.require(_same(given, value), given)), f"`{value!r}`")
        self.value = value

    def __get__(self, config: Config, owner: type | None = None) -> Setting:
        return self if config is None else self.value

    def __set__(self, config: Config, value: Setting) -> None:
        self.checked(value)


def _same(given: Setting, value: Setting) -> bool:
    return type(given) is type(value) and given == value


def _levels() -> Kind:
    """The values of `save_mlir` in the forms of tt-torch: None for no level, and also a string."""
    levels = kinds.subset("STABLEHLO", "TTIR", "TTNN")

    def check(given: Setting) -> Setting:
        return levels.check(() if given is None else given.split(",") if isinstance(given, str) else given)

    return Kind("None, or any of STABLEHLO, TTIR, TTNN, as a list or separated by commas", check)


def _list() -> Kind:
    return Kind("a list", lambda given: tuple(kinds.require(isinstance(given, list | tuple), given)))


class OldNames:
    """The table, as attributes of CompilerConfig."""

    outputs: Outputs

    dump_info = Alias(
        "ir_log_level",
        kinds.boolean(),
        lambda level: level is not None,
        lambda on, level: (level or "INFO") if on else None,
    )
    dump_debug = Alias(
        "ir_log_level",
        kinds.boolean(),
        lambda level: level == "DEBUG",
        lambda on, level: "DEBUG" if on else (level and "INFO"),
    )
    dump_binary = Alias("save_binary", kinds.boolean())
    save_mlir_override = Alias("save_mlir", _levels(), lambda levels: list(levels) or None)

    record_property = Output(
        kinds.optional(kinds.function()),
        "what each compilation calls with the stages that it reaches",
    )
    unique_ops = Output(kinds.dictionary(), "records of an op-by-op run by key, as they are in its results file")
    runtime_intermediate_cache = Output(
        kinds.own_dictionary(),
        "with `enable_intermediate_verification`: the comparison of each FX node by name, with `pcc` and `atol`",
    )
    torch_mlir_module = Output(kinds.optional(kinds.text()), "with `profile_ops`: the last module in torch dialect")
    stablehlo_mlir_module = Output(kinds.optional(kinds.text()), "with `profile_ops`: the last StableHLO module")

    typecast_inputs = Always(
        kinds.boolean(),
        True,
        "a device has no bool, int64 or float64, so inputs of these types are always converted; integers that do not "
        "fit, and float64 with fallback='strict-dtype', are computed on the host",
    )
    cache_preprocessed_constants = Always(
        kinds.boolean(), True, "weights always stay on the device, as docs/weights.md describes"
    )
    push_outputs_to_cpu = Always(
        kinds.boolean(),
        True,
        "results are on the CPU if the inputs are; for results that stay on the device, give inputs on device='tt'",
    )
    arg_type_map_override = Always(
        kinds.boolean(), True, "the compiler always knows which arguments are inputs, parameters and constants"
    )
    inline_parameters = Always(
        kinds.boolean(),
        False,
        "parameters are inputs of a program, which stay on the device, so that a changed weight is used without a new "
        "compilation",
        "TT_TORCH_INLINE_PARAMETERS",
    )

    valid_dialects = Always(_list(), ("STABLEHLO", "TTIR", "TTNN"), "these are the levels that `save_mlir` knows")
    stable_hlo_ops = Always(_list(), (), "nothing fills it; `unique_ops` has the ops of an op-by-op run")

    xla_mesh = Foreign(None, "split tensors as DTensors, or set `mesh_shape`, as docs/many_chips.md describes")


def rows() -> Mapping[str, OldName]:
    """The table: each row by its name."""
    return {name: row for name, row in vars(OldNames).items() if isinstance(row, OldName)}
