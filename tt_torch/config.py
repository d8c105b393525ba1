"""The objects that hold options: CompilerConfig for the compiler, and BackendOptions for a backend."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, TypeAlias

from tt_torch import modes
from tt_torch import option_kinds as kinds
from tt_torch.compiler_options import OP_BY_OP, CompileDepth, CompilerOptions, OpByOpBackend
from tt_torch.errors import ConfigError
from tt_torch.idle_options import tell_idle
from tt_torch.old_methods import OldMethods
from tt_torch.old_options import Always, OldName, Outputs, rows
from tt_torch.option_kinds import Checked, Kind, Setting, nearest, option, read, variables
from tt_torch.variables import tell_unknown

__all__ = ["OP_BY_OP", "BackendOptions", "CompileDepth", "CompilerConfig", "OpByOpBackend"]


WATCHING = ("enable_intermediate_verification", "bisect", "profile")  # these options look at single ops


@dataclasses.dataclass
class CompilerConfig(OldMethods, Checked, CompilerOptions):
    """Options of a compilation, which can be assigned to: `config.dtype = "bf16"`.

    A value is checked when it is given. Raises ConfigError for a value that its option does not accept, and
    AttributeError for a name that is no option. A compilation reads a frozen copy, so a later assignment does not
    change it. Names of tt-torch that are no options here can be assigned to as well: see old_options.py. Its methods
    are in old_methods.py.
    """

    def __post_init__(self) -> None:
        vars(self).update(outputs=Outputs(), _assigned=set())

    def __setattr__(self, name: str, value: Setting) -> None:
        if self.is_frozen:
            raise dataclasses.FrozenInstanceError(f"{name!r} belongs to a compilation, which does not change any more")
        if isinstance(getattr(type(self), name, None), OldName):
            return object.__setattr__(self, name, value)
        after = vars(self) | {name: value}
        if after.get("device") == "ttnn" and any(after.get(option) for option in WATCHING):
            raise ConfigError("device", "ttnn", '"emulated" if single ops are watched: verified, bisected or profiled')
        super().__setattr__(name, value)
        if "_assigned" in vars(self):  # __init__ is over
            self.assigned.add(name)

    @property
    def is_frozen(self) -> bool:
        """Whether this is a copy that `frozen` made, which cannot be assigned to."""
        return "_frozen" in vars(self)

    @property
    def assigned(self) -> set[str]:
        """The names of the options that were assigned to, also if the value was the default."""
        names: set[str] = vars(self)["_assigned"]
        return names

    def frozen(self, **changes: Setting) -> CompilerConfig:
        """A changed copy that cannot be assigned to, has a hash, and shares the outputs of this config."""
        copy = dataclasses.replace(self, **changes)
        vars(copy).update(_frozen=True, outputs=self.outputs, _assigned={*self.assigned})
        return copy

    def __hash__(self) -> int:
        if not self.is_frozen:
            raise TypeError("a CompilerConfig may change, so it has no hash; `frozen()` makes a copy that has one")
        return hash(tuple(getattr(self, field.name) for field in dataclasses.fields(self)))

    def __getstate__(self) -> dict[str, Setting]:
        """The options alone: the outputs stay with the owner, and a function among them may not be pickled."""
        return {name: value for name, value in vars(self).items() if name != "outputs"}

    def __setstate__(self, state: dict[str, Setting]) -> None:
        vars(self).update(state, outputs=Outputs())

    @classmethod
    def from_env(cls, base: CompilerConfig | None = None) -> CompilerConfig:
        """`base`, or the defaults, with the overrides of environment variables."""
        return (base or cls()).with_env()

    def with_env(self, environ: Mapping[str, str] | None = None) -> CompilerConfig:
        """A frozen copy with the overrides of environment variables. Unset and empty variables change nothing.

        Without `environ`, these are the variables of this process, and unknown ones among them are named in a warning.
        """
        if environ is None:
            tell_unknown(option_variables())
        return self.frozen(**_overrides(os.environ if environ is None else environ))

    def for_compilation(self, of_pytorch: bool = True) -> CompilerConfig:
        """Does what `with_env` does, and warns of options that have no effect on this compilation.

        `of_pytorch` says whether a model of PyTorch is compiled; otherwise it is a module without a PyTorch graph.
        Then `fallback="strict-dtype"` raises ConfigError, because float64 and float16 would be computed in float32.
        """
        config = self.with_env()
        if config.fallback == "strict-dtype" and not of_pytorch:
            raise ConfigError("fallback", config.fallback, '"host" or "error" for StableHLO, JAX and ONNX')
        tell_idle(config, of_pytorch)
        return config

    def apply_environment_overrides(self) -> None:
        """Assigns the values of environment variables to this config. Each compilation does so with its copy."""
        for name, value in _overrides(os.environ).items():
            setattr(self, name, value)

    def to_dict(self) -> dict[str, Setting]:
        """The options as plain values for JSON: enums by name, tuples as lists."""
        values = dataclasses.asdict(self)
        for name, value in values.items():
            if isinstance(value, IntEnum):
                values[name] = value.name
            elif isinstance(value, tuple):
                values[name] = list(value)
        return values

    @property
    def level(self) -> int:
        """The optimization level that `optimization_level` or `enable_optimizer` asks for; the higher one counts."""
        return max(self.optimization_level, 2 if self.enable_optimizer else 0)

    @property
    def names_layers(self) -> bool:
        """Whether modules have names of layers. Options by layer need them, and `tt-torch inspect --why` needs them in
        a saved module. Other modules have none, so that equal layers share a binary. tt-mlir does not know our
        names."""
        by_layer = self.precision or (self.level and (self.optimizer_overrides or self.save_mlir))
        return self.compiler == "tt-torch" and bool(by_layer)

    @property
    def writes_recordings(self) -> bool:
        """Whether the compiler puts a program into a recording: with `device="ttnn"`, the device makes one itself."""
        return self.enable_trace and self.device == "emulated"

    @property
    def splits_weights(self) -> bool:
        """Whether the optimizer may split weights over the banks of DRAM, which must then happen once."""
        return self.enable_dram_sharded_matmul and self.enable_consteval and self.consteval_parameters

    @property
    def file_stem(self) -> str:
        """`model_name` as a file name: "org/model v2" becomes "org_model_v2"."""
        return re.sub(r"[^\w.-]+", "_", self.model_name).strip("._") or "model"


def option_variables() -> list[str]:
    """The environment variables of all options. Names of tt-torch that are no options may have variables, too."""
    ours = [name for field in dataclasses.fields(CompilerConfig) for name in variables(field)]
    return ours + [row.variable for row in rows().values() if isinstance(row, Always) and row.variable]


def _overrides(environ: Mapping[str, str]) -> dict[str, Setting]:
    """The options that environment variables set. Warns of variables that have no meaning here."""
    for row in rows().values():
        if isinstance(row, Always) and environ.get(row.variable):
            row.tell(row.variable, read(row.variable, row.kind, environ[row.variable]))
    found = {}
    for field in dataclasses.fields(CompilerConfig):
        given = [name for name in variables(field) if environ.get(name)]
        if given:
            found[field.name] = read(given[0], field.metadata["kind"], environ[given[0]])
    return found


def _config() -> Kind:
    return Kind("a CompilerConfig", lambda value: kinds.require(isinstance(value, CompilerConfig), value))


def _cache(doc: str) -> Any:
    """A dict that programs fill. It is no part of what the options say, so it does not count when they are compared."""
    return dataclasses.field(
        default=None, compare=False, repr=False, metadata={"kind": kinds.own_dictionary(), "doc": doc}
    )


@dataclasses.dataclass
class BackendOptions(Checked):
    """The options of `torch.compile(model, backend=tt_torch.backend, options=...)`, which can be assigned to.

    Environment variables override `compiler_config` at every compile. A value is checked when it is given, and again at
    every compile. Raises ConfigError for a value that is not accepted, and AttributeError for a name that is no option.
    """

    compiler_config: CompilerConfig = dataclasses.field(
        default_factory=CompilerConfig, metadata={"kind": _config(), "doc": "options of the compiler"}
    )
    devices: list[Any] = dataclasses.field(
        default_factory=lambda: [None],
        metadata={
            "kind": kinds.devices(),
            "doc": "the devices of the stages; None is the chip that the tensors are on, opened at first use",
        },
    )
    async_mode: bool = option(
        kinds.boolean(), False, "return before the device has finished: [stages.md](stages.md#asynchronous-calls)"
    )
    buffer_cache: dict[Any, Any] | None = _cache(  # noqa: RUF009
        "keeps what programs update, such as the cache of a language model: [weights.md](weights.md#caches)"
    )
    constant_cache: dict[Any, Any] | None = _cache(  # noqa: RUF009
        "keeps weights on their devices: [weights.md](weights.md#caches)"
    )

    @property
    def caches(self) -> tuple[dict[Any, Any], dict[Any, Any]]:
        """`constant_cache` and `buffer_cache`."""
        return vars(self)["constant_cache"], vars(self)["buffer_cache"]

    def __getstate__(self) -> dict[str, Setting]:
        """The options without what they keep on devices."""
        return {name: None if name.endswith("_cache") else value for name, value in vars(self).items()}

    def __setstate__(self, state: dict[str, Setting]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    def clear_caches(self) -> None:
        """Empties both caches. This frees the device memory of the tensors in them that no other options keep.

        A later call copies the tensors again, so results do not change.
        """
        for cache in self.caches:
            cache.clear()

    @classmethod
    def of(cls, given: Options, mode: str | None = None) -> BackendOptions:
        """The options that a user has given to a backend, with a mode of `torch.compile` and environment variables.

        A variable wins over a mode, and a mode over the options. Raises ConfigError if `given` has another type, and
        for unknown names.
        """
        if given is None or isinstance(given, Mapping):
            given = cls._of_dict(given or {})
        elif isinstance(given, CompilerConfig):
            given = cls(compiler_config=given)
        elif not isinstance(given, cls):
            raise ConfigError("options", given, "a BackendOptions, a CompilerConfig, or a dict of their fields")
        config = given.compiler_config
        if modes.known(mode).records and config.with_env().device == "ttnn":
            config = config.frozen(enable_trace=True)
        config = config.for_compilation()
        modes.tell(mode, config.device)
        return dataclasses.replace(given, compiler_config=config)

    @classmethod
    def _of_dict(cls, given: Mapping[str, Any]) -> BackendOptions:
        """The options of a flat dict. Its options of the compiler win over those of its `compiler_config`."""
        own = {field.name for field in dataclasses.fields(cls)}
        compiler = {field.name for field in dataclasses.fields(CompilerConfig)} | {*rows()}
        for name in given:
            if name not in own | compiler:
                names = "names of options, which docs/controlling.md lists"
                raise ConfigError("options", name, f"{names}{nearest(str(name), own | compiler)}")
        options = cls(**{name: value for name, value in given.items() if name in own})
        if compiler & {*given}:
            base = options.compiler_config
            config = options.compiler_config = dataclasses.replace(base)
            vars(config).update(outputs=base.outputs, _assigned={*base.assigned})
            for name in given:
                if name in compiler:
                    setattr(config, name, given[name])
        return options


Options: TypeAlias = BackendOptions | CompilerConfig | Mapping[str, Any] | None  # in the forms that users give
