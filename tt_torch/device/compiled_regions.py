"""Makes Dynamo treat the functions of `torch.tt` in a compiled region like the functions of `torch.cuda`.

Dynamo has lists with the names of the functions of `torch.cuda`. A device from outside of PyTorch cannot add names to
these lists. So our functions have marks that Dynamo reads. It would trace a function without marks as a part of the
user's program.
"""

from __future__ import annotations

from types import FunctionType, ModuleType

from tt_torch.torch_private.marks import constant_result, never_traced, part_of_graphs

# Their result depends only on their arguments. Dynamo calls them while it traces, and keeps the result.
CONSTANT = ("device_count", "get_device_name", "get_device_properties", "is_available")

# They return constants or call functions of `torch.accelerator`, which Dynamo knows. Dynamo traces them.
TRACED = (
    "current_device", "current_stream", "device", "get_amp_supported_dtype", "init", "is_bf16_supported",
    "is_initialized", "stream", "synchronize",
)  # fmt: skip


def set_rules(module: ModuleType) -> None:
    """Marks every function of `module` that is defined in its package. A function in none of the lists above breaks the
    graph."""
    breaks_graph = never_traced("it changes or reads the state of the device")
    package = module.__name__.rpartition(".")[0]
    for name, function in vars(module).items():
        if not isinstance(function, FunctionType) or not function.__module__.startswith(f"{package}."):
            continue
        if name in CONSTANT:
            constant_result(function)
        elif name in TRACED:
            part_of_graphs(function)
        else:
            breaks_graph(function)
