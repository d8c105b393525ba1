"""Compares results and gradients on device tt with the CPU, for the samples of PyTorch's databases of ops and modules.

    python tests/device/opinfo.py [-k NAME] [--forward | --gradients | --modules] [--json FILE]

Pytest does not collect this file, because 600 ops with their samples take minutes. The program prints how many samples
are right. It also prints the ops that are wrong, sorted by reason.
"""

from __future__ import annotations

import argparse
import collections
import json
import sys
import unittest
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.testing._internal.common_device_type import instantiate_device_type_tests, ops
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db, modules
from torch.testing._internal.common_utils import TestCase
from torch.utils import _pytree as pytree

UNINITIALIZED = {
    "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided",
}  # fmt: skip
right: collections.Counter[str] = collections.Counter()
KINDS = ("forward", "gradients", "modules")
wrong: dict[str, list[tuple[str, str]]] = {kind: [] for kind in KINDS}


def move(value: Any, device: str) -> Any:
    """A copy of a sample's value on a device. The copy is a leaf. It requires a gradient if the value requires one."""
    if not isinstance(value, torch.Tensor):
        return torch.device(device) if value in ("cpu", torch.device("cpu")) else value
    if value.layout != torch.strided:
        return value.detach().to(device).requires_grad_(value.requires_grad)
    copied = torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device=device)
    copied.copy_(value.detach())
    return copied.requires_grad_(value.requires_grad)


def call(op: Any, sample: Any, device: str) -> tuple[Any, list[torch.Tensor]]:
    inputs = pytree.tree_map(lambda value: move(value, device), (sample.input, sample.args, sample.kwargs))
    torch.manual_seed(0)
    with torch.device(device):  # for ops that create tensors
        result = op(inputs[0], *inputs[1], **inputs[2])
    return sample.output_process_fn_grad(result), [
        leaf for leaf in pytree.tree_leaves(inputs) if isinstance(leaf, torch.Tensor) and leaf.requires_grad
    ]


def forward(op: Any, sample: Any, device: str) -> Any:
    result, _ = call(op, sample, device)
    if op.name not in UNINITIALIZED:
        return result
    return pytree.tree_map(lambda value: value.zero_() if isinstance(value, torch.Tensor) else value, result)


def gradients(op: Any, sample: Any, device: str) -> Any:
    result, leaves = call(op, sample, device)
    outputs = [out for out in pytree.tree_leaves(result) if isinstance(out, torch.Tensor) and out.requires_grad]
    if not outputs or not leaves:
        return []
    torch.manual_seed(1)
    weights = [torch.randn(out.shape, dtype=out.dtype).to(device) for out in outputs]
    return torch.autograd.grad(outputs, leaves, weights, allow_unused=True)


def module(info: Any, sample: tuple[Any, bool], device: str) -> list[Any]:
    """Results, gradients and final buffers of a module that is created on the CPU and then moved to the device."""
    given, training = sample
    torch.manual_seed(0)
    made = info.module_cls(*given.constructor_input.args, **given.constructor_input.kwargs).train(training).to(device)
    inputs = given.forward_input.args, given.forward_input.kwargs
    args, kwargs = pytree.tree_map(lambda value: move(value, device), inputs)
    torch.manual_seed(0)
    results = pytree.tree_leaves(made(*args, **kwargs))
    outputs = [out for out in results if isinstance(out, torch.Tensor) and out.requires_grad]
    leaves = [v for v in pytree.tree_leaves((args, kwargs)) if isinstance(v, torch.Tensor) and v.requires_grad]
    weights = [torch.ones_like(out) for out in outputs]
    found = torch.autograd.grad(outputs, [*leaves, *made.parameters()], weights, allow_unused=True) if outputs else ()
    return [results, list(found), list(made.buffers())]


def check(kind: str, compute: Callable[[Any, Any, str], Any], op: Any, sample: Any, device: str) -> None:
    try:
        expected = compute(op, sample, "cpu")
    except Exception:
        return  # the CPU does not take this sample either
    try:
        actual = compute(op, sample, device)
        for value in pytree.tree_leaves(actual):
            assert not isinstance(value, torch.Tensor) or value.device.type == "tt", f"a result is on {value.device}"
        torch.testing.assert_close(
            pytree.tree_leaves(actual), pytree.tree_leaves(expected), check_device=False, equal_nan=True
        )
    except Exception as error:
        wrong[kind].append((op.full_name if hasattr(op, "full_name") else op.name, first_line(error)))
        return
    right[kind] += 1


def first_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()] or [""]
    return f"{type(error).__name__}: {lines[0]}"[:160]


class TestOpInfo(TestCase):
    @ops(op_db, allowed_dtypes=(torch.float32,))
    def test_forward(self, device: str, dtype: torch.dtype, op: Any) -> None:
        for sample in op.sample_inputs("cpu", dtype):
            check("forward", forward, op, sample, device)

    @ops([op for op in op_db if op.supports_autograd], allowed_dtypes=(torch.float32,))
    def test_gradients(self, device: str, dtype: torch.dtype, op: Any) -> None:
        for sample in op.sample_inputs("cpu", dtype, requires_grad=True):
            check("gradients", gradients, op, sample, device)


class TestModules(TestCase):
    @modules(module_db, allowed_dtypes=(torch.float32,))
    def test_modules(self, device: str, dtype: torch.dtype, module_info: Any, training: bool) -> None:
        make = module_info.module_inputs_func
        for given in make(module_info, device="cpu", dtype=dtype, requires_grad=True, training=training):
            if given.forward_input is not None:
                check("modules", module, module_info, (given, training), device)


for tests in (TestOpInfo, TestModules):
    instantiate_device_type_tests(tests, globals(), only_for=("tt",))


def report(kinds: list[str]) -> None:
    for kind in kinds:
        total = right[kind] + len(wrong[kind])
        print(f"{kind}: {right[kind]} of {total} samples are right ({right[kind] / max(total, 1):.2%})")
        reasons = collections.Counter(wrong[kind])
        for (op, reason), count in sorted(reasons.items(), key=lambda item: (item[0][1], item[0][0])):
            print(f"  {count:4} × {op}: {reason}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", metavar="NAME", default="", help="run only tests whose names contain NAME")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--forward", action="store_const", dest="kind", const="forward")
    group.add_argument("--gradients", action="store_const", dest="kind", const="gradients")
    group.add_argument("--modules", action="store_const", dest="kind", const="modules")
    parser.add_argument("--json", metavar="FILE", help="write the figures and the failures to FILE")
    options = parser.parse_args()
    kinds = [options.kind] if options.kind else list(KINDS)
    suites = [v for name, v in globals().items() if name.startswith(("TestOpInfo", "TestModules"))]
    cases = [case for suite in suites for case in unittest.defaultTestLoader.loadTestsFromTestCase(suite)]
    chosen = [t for t in cases if options.k in t.id() and any(f"test_{kind}_" in t.id() for kind in kinds)]  # type: ignore[union-attr]
    warnings.simplefilter("ignore")
    outcome = unittest.TextTestRunner(verbosity=0).run(unittest.TestSuite(chosen))
    report(kinds)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"right": right, "wrong": wrong}, file, indent=1)
    sys.exit(not outcome.wasSuccessful())


if __name__ == "__main__":
    main()
