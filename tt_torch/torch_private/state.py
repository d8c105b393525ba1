"""The state of PyTorch, beyond a captured graph, that AOTAutograd reads while it traces the graph."""

from __future__ import annotations

import torch
from torch import library
from torch._functorch import config as aot_config  # 2.13.0: without it a changed setting would find an old trace
from torch._guards import TracingContext  # 2.13.0: without it sizes that are symbols would look like numbers
from torch.overrides import (
    _get_current_function_mode_stack,  # 2.13.0: without it a mode that changes functions would not be seen
)
from torch.utils._python_dispatch import (
    _get_current_dispatch_mode_stack,  # 2.13.0: without it a mode that changes ops would not be seen
)

# The keys under which PyTorch itself registers kernels of its ops in Python. No trace runs the kernels of devices.
# The kernels of `vmap` run only inside of functorch's transforms.
_OWN_KERNELS = {"aten": {"Meta", "CUDA", "MPS", "FuncTorchBatched"}}


def settings() -> list[object] | None:
    """The settings that a trace depends on, as plain values; None if modes, symbols or kernels of a user change it."""
    context = TracingContext.try_get()
    if context is None or context.fake_mode is None or not _is_plain(context):
        return None
    return [
        (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), str(torch.get_default_dtype())),
        (torch.are_deterministic_algorithms_enabled(), torch.get_float32_matmul_precision()),
        [
            torch.backends.cuda.flash_sdp_enabled(),
            torch.backends.cuda.mem_efficient_sdp_enabled(),
            torch.backends.cuda.math_sdp_enabled(),
            torch.backends.cuda.cudnn_sdp_enabled(),
        ],
        aot_config.get_hash().hex(),  # Dynamo's settings act on the graph, which is in the key
    ]


def _is_plain(context: TracingContext) -> bool:
    """Whether only PyTorch's own code decides about a trace, and there is no autocast and no symbol."""
    symbols = context.fake_mode.shape_env
    return not (
        _get_current_function_mode_stack()
        or _get_current_dispatch_mode_stack()
        or torch._C._is_any_autocast_enabled()  # 2.13.0: without it a trace of another precision would be found
        or torch._C._functorch.peek_interpreter_stack()  # 2.13.0: the same for functorch's transforms
        or (symbols is not None and (symbols.var_to_range or symbols.guards))
        or any(_is_of_user(name) for name in library._impls)  # 2.13.0: without it changed kernels would not be seen
    )


def _is_of_user(kernel: str) -> bool:
    """Whether a kernel in Python, such as "aten/add.Tensor/Meta", replaces one of PyTorch's for tracing."""
    namespace, *_, key = kernel.split("/")
    return namespace in _OWN_KERNELS and key not in _OWN_KERNELS[namespace]


def guards_of_aliases() -> int:
    """How many conditions on the memory of inputs AOTAutograd has found in this trace."""
    return len(TracingContext.get().guards_context.aotautograd_guards)
