"""`model.generate(..., compile_config=CompileConfig(backend="tt"))` of Hugging Face Transformers.

Transformers compiles by itself on a list of devices. On others, it skips `compile_config` with a warning. Its switch
for other devices is an attribute of CompileConfig. This module turns the switch on for configurations that name our
backend, as soon as Transformers is imported; other configurations behave as before. `when_imported` is written here
because the library for such hooks, wrapt, adds 0.17 s to each start.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MODULE = "transformers.generation.configuration_utils"
SWITCH = "_compile_all_devices"  # read in Transformers 5.23.0; without it our backend would be skipped
BACKENDS = ("tt", "tt-experimental", "tt-legacy")


class _Switch:
    """The attribute: what was assigned to it, or True for our backend."""

    def __get__(self, config: Any, owner: object = None) -> bool | None:
        if config is None:
            return None
        return vars(config).get(SWITCH) or is_ours(config.backend) or None

    def __set__(self, config: Any, value: bool | None) -> None:
        vars(config)[SWITCH] = value


def is_ours(backend: object) -> bool:
    """Whether a `backend` of torch.compile is one of tt_torch: a name, or a function."""
    return backend in BACKENDS or getattr(backend, "__module__", "").startswith("tt_torch.")


class _Finder(MetaPathFinder):
    """Finds a module as the other finders do, and calls a function with it after it was executed."""

    def __init__(self, module: str, then: Callable[[ModuleType], None]) -> None:
        self._module, self._then = module, then

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self._module:
            return None
        self.leave()
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_call(module: ModuleType) -> None:
            execute(module)
            self._then(module)

        spec.loader.exec_module = execute_and_call  # type: ignore[method-assign]
        return spec

    def leave(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)


def when_imported(module: str, then: Callable[[ModuleType], None]) -> Callable[[], None]:
    """Calls a function with a module now, or after the module was imported.

    Returns a function after which a later import is not noticed any more.
    """
    finder = _Finder(module, then)
    if module in sys.modules:
        then(sys.modules[module])
    else:
        sys.meta_path.insert(0, finder)
    return finder.leave


def _add_switch(module: ModuleType) -> None:
    config = getattr(module, "CompileConfig", None)
    if hasattr(config, SWITCH):
        setattr(config, SWITCH, _Switch())


def install() -> None:
    """Adds the switch to CompileConfig now, or when Transformers is imported."""
    when_imported(MODULE, _add_switch)
