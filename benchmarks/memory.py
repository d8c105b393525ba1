"""Resident memory of compiling and running models, beyond what imports take, as a multiple of the size of the weights.

The weights are counted in the dtype in which the model computes. So each weight of a float32 model that is compiled
with `dtype="bf16"` counts two bytes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.common import in_process, model, table

# The dtype of the weights, and the option `dtype`.
DTYPES = {"float32": ("float32", None), "float32, computed in bf16": ("float32", "bf16"), "bf16": ("bfloat16", None)}
CASES = [("resnet50", "float32"), *(("llama", dtype) for dtype in DTYPES)]
BARS = {("llama", "compile_model, moved"): 1.6}  # of the steady memory
CALLS = 3


def run(threads: int) -> None:
    rows = []
    for name, dtype in CASES:
        for side in SIDES:
            found = in_process("benchmarks.memory", name, dtype, side, str(threads))
            shown = [
                f"{(found[part] - found['imports']) / found['weights']:.2f}" for part in ("loaded", "peak", "steady")
            ]
            rows.append((name, dtype, side, f"{found['weights'] / 1e6:.0f}", *shown, BARS.get((name, side), "")))
    heads = ["model", "weights", "side", "MB", "loaded", "peak", "steady", "bar"]
    table("Resident memory beyond the imports, in sizes of the weights", heads, rows)


def _ours(release: bool) -> Callable[..., Callable[..., object]]:
    def compiled(
        network: torch.nn.Module, inputs: tuple[torch.Tensor, ...], dtype: str | None
    ) -> Callable[..., object]:
        import tt_torch

        config = tt_torch.CompilerConfig(dtype=dtype)
        return tt_torch.compile_model(
            network, inputs, config, weights="move" if release else "keep", **_options(network)
        )

    return compiled


def _by_torch_compile(network: torch.nn.Module, inputs: object, dtype: str | None) -> Callable[..., object]:
    return torch.compile(network, backend="tt", options={"dtype": dtype})


# Each function takes the model, its inputs and the option `dtype`, and returns the function that is measured.
SIDES: dict[str, Callable[..., Callable[..., object]]] = {
    "eager": lambda network, inputs, dtype: network,
    "inductor": lambda network, inputs, dtype: torch.compile(network),
    "torch.compile": _by_torch_compile,
    "compile_model": _ours(False),
    "compile_model, moved": _ours(True),
}


def _options(network: torch.nn.Module) -> dict[str, Any]:
    return {"kwargs": {"use_cache": False}} if hasattr(network, "generate") else {}


def _status(field: str) -> int:
    """A field of the process's status, in bytes. `ru_maxrss` is of no use: it starts from the memory of the parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def _measure(name: str, dtype: str, side: str) -> dict[str, int]:
    import torch._inductor.compile_fx
    import transformers  # noqa: F401

    import tt_torch.driver.backend  # noqa: F401

    imports = _status("VmRSS")
    of_weights, option = DTYPES[dtype]
    torch.set_default_dtype(getattr(torch, of_weights))
    network, inputs = model(name, 1)
    torch.set_default_dtype(torch.float32)
    loaded = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    weights = sum(p.nbytes for p in network.parameters()) // (2 if option else 1)
    call, given = SIDES[side](network, inputs, option), _options(network).get("kwargs", {})
    with torch.no_grad():
        for _ in range(CALLS):
            call(*inputs, **given)
    return {
        "imports": imports, "loaded": loaded, "peak": _status("VmHWM"), "steady": _status("VmRSS"), "weights": weights,
    }  # fmt: skip


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[4]))
    print(json.dumps(_measure(*sys.argv[1:4])))
