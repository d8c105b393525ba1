"""A program for a fresh process. It describes PyTorch's behaviour for other backends, before and after ours was used.
The process has TORCH_DEVICE_BACKEND_AUTOLOAD=0, so that our device is not loaded in the first description.

It prints a JSON object with `before` and `after`, which should be equal, and with `replaced`: the paths of PyTorch's
functions, public and private, that have been replaced by other functions.
"""

from __future__ import annotations

import json
import sys
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch import nn
from torch._dynamo.utils import counters

GENERATED = "torch._inductor.runtime.compile_tasks."
OTHERS = ("eager", "aot_eager", "inductor")


def bad_scale_is_refused() -> bool:
    try:
        torch.distributions.Normal(0.0, -1.0)
    except ValueError:
        return True
    return False


def fused_adam() -> tuple[nn.Parameter, torch.optim.Optimizer]:
    parameter = nn.Parameter(torch.ones(3))
    parameter.grad = torch.ones(3)
    return parameter, torch.optim.Adam([parameter], fused=True)


def version_after_a_fused_step() -> int:
    parameter, optimizer = fused_adam()
    optimizer.step()
    return parameter._version


def programs(backend: Any) -> dict[str, Any]:
    """For some programs: the number of graphs that Dynamo makes, the number of calls in them, and the graph breaks."""
    torch.manual_seed(0)
    sequence = torch.randn(3, 2, 4)
    cases = {
        "lstm": lambda: torch.compile(nn.LSTM(4, 5), backend=backend)(sequence),
        "gru, backward": lambda: torch.compile(nn.GRU(4, 5), backend=backend)(sequence)[0].sum().backward(),
        "fused adam": lambda: torch.compile(fused_adam()[1].step, backend=backend)(),
        "layer": lambda: torch.compile(nn.Linear(4, 4), backend=backend)(sequence).sum().backward(),
    }
    return {name: counted(run) for name, run in cases.items()}


def counted(run: Any) -> list[Any]:
    torch.compiler.reset()
    counters.clear()
    try:
        run()
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]
    breaks = [reason.partition("\n")[0] for reason in counters["graph_break"]]
    return [counters["stats"]["unique_graphs"], counters["stats"]["calls_captured"], sorted(breaks)]


def state() -> dict[str, Any]:
    """The behaviour of PyTorch for other backends, as values that JSON can hold."""
    keys = ("CPU", "AutogradCPU", "Autograd", "ADInplaceOrView", "Meta", "Functionalize", "CompositeImplicitAutograd")
    registered = {key: torch._C._dispatch_get_registrations_for_dispatch_key(key) for key in keys}
    return {
        "programs": {backend: programs(backend) for backend in OTHERS},
        "bad scale is refused": bad_scale_is_refused(),
        "settings of dynamo": {name: repr(value) for name, value in torch._dynamo.config.get_config_copy().items()},
        "settings of inductor": {name: repr(value) for name, value in torch._inductor.config.get_config_copy().items()},
        "kernels of aten": {
            key: sorted(n for n in names if n.startswith("aten::")) for key, names in registered.items()
        },
        "version after a fused step": version_after_a_fused_step(),
        "mkldnn": torch.backends.mkldnn.enabled,
        "threads": torch.get_num_threads(),
        "grad": torch.is_grad_enabled(),
    }


def functions() -> dict[str, Any]:
    """All functions of PyTorch's modules and classes, by their path."""
    modules = {name: m for name, m in sys.modules.items() if name.partition(".")[0] in ("torch", "functorch")}
    modules = {name: m for name, m in modules.items() if not name.startswith(GENERATED)}
    found: dict[str, Any] = {}
    for path, module in modules.items():
        classes = {n: v for n, v in vars(module).items() if isinstance(v, type) and v.__module__ == path}
        owners = {path: module} | {f"{path}.{n}": v for n, v in classes.items()}
        for owner, holder in owners.items() if isinstance(module, ModuleType) else ():
            found |= {f"{owner}.{name}": v for name, v in vars(holder).items() if isinstance(v, FunctionType)}
    return found


def use(backend: Any) -> None:
    """Uses the features for which we alter Dynamo: recurrent layers, fused optimizers, operands on two devices."""
    recurrent, sequence = nn.LSTM(4, 5), torch.randn(3, 2, 4)
    torch.compile(recurrent, backend=backend, fullgraph=True)(sequence)[0].sum().backward()
    torch.compile(recurrent, backend="tt")(torch.randn(2, 2, 4))
    torch.compile(fused_adam()[1].step, backend=backend)()
    on_device = torch.compile(nn.Linear(4, 4).to("tt"), backend=backend, fullgraph=True)
    assert on_device(sequence).device.type == "tt"


def main() -> None:
    programs("inductor")  # PyTorch's first compilation has effects of its own, such as on the checks of distributions
    before, known = state(), functions()
    import tt_torch.device

    use(tt_torch.backend)
    tt_torch.compile_model(nn.GRU(4, 5), (torch.randn(3, 2, 4),))
    after, now = state(), functions()
    replaced = sorted(path for path, function in known.items() if now.get(path, function) is not function)
    print(json.dumps({"before": before, "after": after, "replaced": replaced}))


if __name__ == "__main__":
    main()
