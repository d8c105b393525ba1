"""What Dynamo makes of the functions of `torch.tt` in a compiled region: what it makes of those of `torch.cuda`.

Dynamo knows the functions of `torch.cuda` by lists of names, to which a device from outside of PyTorch adds nothing. It
reads marks on ours instead. A function without marks is traced as if it were part of the user's program.
"""

from __future__ import annotations

from types import FunctionType, ModuleType

import torch

# Their result depends on nothing but their arguments. Dynamo calls them while it traces, and keeps the result.
CONSTANT = ("device_count", "get_device_name", "get_device_properties", "is_available")

# They are lines on `torch.accelerator`, whose functions Dynamo knows, or constants. Dynamo traces them.
TRACED = (
    "current_device", "current_stream", "device", "get_amp_supported_dtype", "init", "is_bf16_supported",
    "is_initialized", "stream", "synchronize",
)  # fmt: skip


def set_rules(module: ModuleType) -> None:
    """Gives a rule to every function that `module` has and that is written in its package.

    A function that is in no list above breaks the graph: it changes the state of the device, or reads it.
    """
    package = module.__name__.rpartition(".")[0]
    for name, function in vars(module).items():
        if isinstance(function, FunctionType) and function.__module__.startswith(f"{package}."):
            _mark(function, constant=name in CONSTANT, traced=name in TRACED)


def _mark(function: FunctionType, constant: bool, traced: bool) -> None:
    """Sets the marks that Dynamo reads from a function and from its code.

    These are private names of torch 2.13.0, read in torch/_dynamo/decorators.py and torch/_dynamo/eval_frame.py.
    `torch.compiler.assume_constant_result` and `torch.compiler.disable` are the public ways to set the first two marks,
    but they import torch._dynamo, which takes as long as importing torch, and this runs whenever torch is imported.

    Without the first mark, `is_available` would break graphs. Without the second one, Dynamo would trace calls of C++,
    and warn. The last mark is for a call from outside a graph, as after a graph break. Without it Dynamo would compile
    the function as a program of its own, and fail in `set_rng_state`.
    """
    if constant:
        function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    elif not traced:
        function._torchdynamo_disable = True  # type: ignore[attr-defined]
        function._torchdynamo_disable_msg = "it changes or reads the state of the device"  # type: ignore[attr-defined]
    frames = torch._C._dynamo.eval_frame
    skip = frames._FrameAction.SKIP
    frames.set_code_exec_strategy(function.__code__, frames._FrameExecStrategy(skip, skip))
