"""Factorizations of matrices, and solvers that use them, on the device and on the host.

`LARGEST` in `tt_torch/dynamo/decompositions/linalg.py` is chosen by these figures. The compile time is the processor
time of this process and its children, from the first line of Dynamo to the first result. A busy machine changes it
little.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from benchmarks.common import interleaved, table
from tt_torch.config import BackendOptions
from tt_torch.driver.backend import compile_captured
from tt_torch.driver.executor import Executor
from tt_torch.driver.observer import Observer
from tt_torch.driver.partition import HostFallbackWarning
from tt_torch.dynamo.decompositions import linalg
from tt_torch.wire.calls import device_ops
from tt_torch.wire.decode import decode

SIZES = (4, 8, 10, 16, 32)
aten = torch.ops.aten


def matrix(size: int) -> Tensor:
    """A positive definite matrix, which every op accepts."""
    x = torch.randn(size, size)
    return x @ x.mT + size * torch.eye(size)


def _sides(x: Tensor) -> Tensor:
    """Three right-hand sides of a linear system with this matrix."""
    return torch.randn(len(x), 3)


@dataclass(frozen=True)
class Case:
    """The factorization that an op makes or uses, the function that makes its arguments from a matrix, and options."""

    factors: str
    inputs: Callable[[Tensor], tuple[Any, ...]]
    options: dict[str, Any] = field(default_factory=dict)


CASES = {
    aten.linalg_solve_triangular.default: Case("Cholesky", lambda x: (x, _sides(x)), {"upper": True}),
    aten.triangular_solve.default: Case("Cholesky", lambda x: (_sides(x), x)),
    aten.cholesky.default: Case("Cholesky", lambda x: (x,)),
    aten.linalg_cholesky_ex.default: Case("Cholesky", lambda x: (x,)),
    aten.cholesky_solve.default: Case("Cholesky", lambda x: (_sides(x), torch.linalg.cholesky(x))),
    aten.cholesky_inverse.default: Case("Cholesky", lambda x: (torch.linalg.cholesky(x),)),
    aten.linalg_lu_factor_ex.default: Case("LU", lambda x: (x,)),
    aten.lu_unpack.default: Case("LU", torch.linalg.lu_factor),
    aten.linalg_lu.default: Case("LU", lambda x: (x,)),
    aten.linalg_lu_solve.default: Case("LU", lambda x: (*torch.linalg.lu_factor(x), _sides(x))),
    aten._linalg_det.default: Case("LU", lambda x: (x,)),
    aten._linalg_slogdet.default: Case("LU", lambda x: (x,)),
    aten.linalg_inv_ex.default: Case("LU", lambda x: (x,)),
    aten._linalg_solve_ex.default: Case("LU", lambda x: (x, _sides(x))),
    aten.geqrf.default: Case("QR", lambda x: (x,)),
    aten.linalg_householder_product.default: Case("QR", torch.geqrf),
    aten.ormqr.default: Case("QR", lambda x: (*torch.geqrf(x), _sides(x))),
    aten.linalg_qr.default: Case("QR", lambda x: (x,)),
}


def run(threads: int) -> None:
    torch.set_num_threads(threads)
    warnings.simplefilter("ignore", HostFallbackWarning)
    chosen, rows = dict(linalg.LARGEST), []
    _measured(lambda x: torch.linalg.eigvalsh(x) + 1, (torch.eye(3),))  # a first compilation loads many modules
    try:
        for op, case in CASES.items():
            for size in SIZES:
                where = "device" if size <= chosen[case.factors] else "host"
                rows.append((str(op).removesuffix(".default"), size, *_both(op, case, size), where))
    finally:
        linalg.LARGEST.update(chosen)
    heads = ["op", "size", "device ops", "compile s", "host's s", "call ms", "host's ms", "chosen"]
    table("Linear algebra, one float32 matrix", heads, rows)


def _both(op: Any, case: Case, size: int) -> tuple[str, ...]:
    """The cost of the op on the device, and its cost on the host."""
    torch.manual_seed(0)
    inputs = case.inputs(matrix(size))

    def function(*arguments: Tensor) -> Any:
        return op(*arguments, **case.options)

    linalg.LARGEST[case.factors] = size
    ops, seconds, call = _measured(function, inputs)
    linalg.LARGEST[case.factors] = 0
    left, host_seconds, host_call = _measured(function, inputs)
    if not ops or left:
        raise RuntimeError(f"{op} of size {size} makes {ops} device ops, and {left} when it is left to the host")
    return str(ops), f"{seconds:.2f}", f"{host_seconds:.2f}", f"{1e3 * call:.2f}", f"{1e3 * host_call:.2f}"


def _measured(function: Callable[..., Any], inputs: tuple[Any, ...]) -> tuple[int, float, float]:
    """The number of device ops of the compiled function, the seconds to compile it, and the seconds of a call."""
    executors: list[Executor] = []
    options = BackendOptions()

    def backend(gm: torch.fx.GraphModule, inputs: Any) -> Any:
        return compile_captured(gm, inputs, options, Observer(executors.append))

    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend)
    start = _computed()
    compiled(*inputs)
    seconds = _computed() - start
    ops = sum(1 for executor in executors for _ in device_ops(decode(executor.binary)))
    return ops, seconds, interleaved({"": lambda: compiled(*inputs)}, 20, min)[""]


def _computed() -> float:
    """The seconds of processor time that this process and its children have used."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
