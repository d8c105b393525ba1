"""Compares how tt-mlir's compiler and ours encode an op, field by field: `python reference_encoding.py FOLDER`.

FOLDER has pairs of `NAME.mlir` (StableHLO) and `NAME.ttnn` (tt-mlir's binary of it). Each op of theirs is compared
with our ops that have the same table and family member, and the same shapes and data types of tensors. Our op with the
fewest differences counts. If we have no op with these shapes and types, their op is compared with all of our ops of
that table and member. This comparison reads only which fields are set.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch_mlir import ir

import tt_torch
from tt_torch.config import CompilerConfig
from tt_torch.driver.compile import compile_module
from tt_torch.mlir.context import make_context
from tt_torch.wire import facts
from tt_torch.wire.decode import decode

# Intended differences: field -> reason. `*` matches as in file names.
INTENDED = {
    "Conv2dOp.input.desc.*.tile_shape.*": "the layout that the op before made; the library takes both",
    "Pool2dOp.*.desc.*.tile_shape.*": "the layout that the op before made; the library takes both",
    "ReductionArgMaxOp.in.desc.*.tile_shape.*": "the library takes argmax of tiles over the last dimension",
    "TypecastOp.*.desc.*.tile_shape.*": "the layout of the ops before and after it",
    "Pool2dOp.padding": "all four sides; theirs is the short form for equal sides",
    "SoftmaxOp.dimension": "counted from the front; -1 is the same dimension",
    "FullOp.fill_value.*": "a constant of another formula, such as a scale that is applied once instead of twice",
    "LoadCachedOp.program_hash": "it hashes the const-eval function's text, and each compiler writes its own",
    "LoadCachedOp.callee_name": "the order of const-eval functions is free",
    "LoadCachedOp.program_idx": "the order of const-eval functions is free",
    "ToLayoutOp.dtype": "set only if the type changes; for that we use TypecastOp",
    "ToLayoutOp.memcfg": "set only for results in device memory; here theirs is in host memory",
    "DeallocateOp.in.desc.*": "it frees another intermediate",
    "TypecastOp.memcfg": "set only for results in device memory; here theirs is in host memory",
    "ConstantOp.*": "ours is in host memory, and a ToDeviceOp follows it",
    "Conv3dOp.conv3d_config": "blocks of channels are for weights that were prepared in blocks; ours are not",
}
# tt-mlir's ops that we do not emit for these programs: table and family member -> our replacement, and the reason.
OTHERWISE = {
    "Conv1dOp": "a Conv2dOp of height 1: the same kernel, and one op fewer to support",
    "CpuOp": "constants are computed on the device; our files contain no machine code",
    "EltwiseBinaryCompositeScalarOp.PowScalar": "EltwiseBinaryCompositeOp.Pow with a constant exponent",
    "EltwiseUnaryOp.Relu6": "ClampScalar from 0 to 6, or Relu and Minimum",
    "NamedFullOp.Ones": "FullOp with 1",
    "NamedFullOp.Zeros": "FullOp with 0",
    "PrepareConv3dWeightsOp": "reshapes and permutes in a const-eval function, which give weights the kernel's order",
    "RepeatInterleaveOp": "RepeatOp and a reshape",
    "TransposeOp": "PermuteOp, which does the same",
}
# torch-mlir had replaced some ops of the binaries when it wrote the StableHLO files. These functions, and the StableHLO
# below, make our compiler emit them.
FUNCTIONS: list[tuple[Any, tuple[torch.Tensor, ...]]] = [
    (lambda x: F.avg_pool2d(x, 2), (torch.randn(1, 16, 20, 20, dtype=torch.bfloat16),)),
    (F.embedding, (torch.zeros(2, 9, dtype=torch.int64), torch.randn(100, 32, dtype=torch.bfloat16))),
    (torch.nn.Conv2d(8, 16, 3).eval(), (torch.randn(1, 8, 16, 16),)),
    (torch.rsqrt, (torch.rand(4, 64, dtype=torch.bfloat16),)),
    (lambda x: torch.topk(x, 5).values, (torch.randn(4, 64, dtype=torch.bfloat16),)),
]
CONSTANT = """func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %c = stablehlo.constant dense<[1.5, 2.5, 4.0]> : tensor<3xf32>
  %y = stablehlo.add %x, %c : tensor<3xf32>
  return %y : tensor<3xf32>
}"""

Op = tuple[str, dict]


def differences(theirs: dict, ours: dict[str, list[dict]]) -> Iterator[tuple[str, str, Any, Any]]:
    """Yields (kind of op, field, their value, our value) per difference; the field is "" if we never emit the op."""
    for kind, op in ops(theirs):
        alike = [other for other in ours.get(kind, ()) if signature(other) == signature(op)]
        if alike:
            yield from ((kind, *found) for found in closest(op, alike))
        elif kind in ours:
            yield from ((kind, *found) for found in closest(names(op), list(map(names, ours[kind]))))
        else:
            yield kind, "", None, None


def closest(theirs: dict, ours: list[dict]) -> list[tuple[str, Any, Any]]:
    return min((list(compare(theirs, other)) for other in ours), key=len)


def names(op: dict) -> dict[str, str]:
    """The names of the fields that are set, each with the same value."""
    return dict.fromkeys(op, "set")


def ops(message: dict) -> Iterator[Op]:
    yield from ((op.key, op.record) for program in message["programs"] for op in facts.ops(program))


def signature(op: dict) -> list[tuple[tuple[int, ...], str]]:
    return [(tensor.shape, tensor.dtype) for tensor in facts.tensors(op)]


def compare(theirs: dict, ours: dict) -> Iterator[tuple[str, Any, Any]]:
    flat, other = dict(fields(theirs)), dict(fields(ours))
    for name in sorted(flat.keys() | other.keys()):
        if flat.get(name) != other.get(name):
            yield name, flat.get(name), other.get(name)


def fields(part: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yields (a.b.c, value) of each field that is set, but no global ids of tensors, since these are arbitrary."""
    if isinstance(part, dict):
        for name, value in part.items():
            if name != "global_id":
                yield from fields(value, f"{path}.{name}" if path else name)
    elif isinstance(part, list) and part and isinstance(part[0], dict):
        for i, value in enumerate(part):
            yield from fields(value, f"{path}.{i}")
    else:
        yield path, part


def intended(kind: str, field: str) -> bool:
    if not field:
        return kind in OTHERWISE
    return any(fnmatch(f"{kind.split('.')[0]}.{field}", pattern) for pattern in INTENDED)


def compile_all(programs: Iterable[str]) -> dict[str, list[dict]]:
    """All ops, by kind, that our compiler emits for the StableHLO programs and for `FUNCTIONS` and `CONSTANT`."""
    made = [tt_torch.compile_model(f, inputs).executor.compiled.binary for f, inputs in FUNCTIONS]
    with make_context():
        made += [compile_module(ir.Module.parse(text), CompilerConfig()) for text in (*programs, CONSTANT)]
    ours: dict[str, list[dict]] = {}
    for binary in made:
        for kind, op in ops(decode(binary)):
            ours.setdefault(kind, []).append(op)
    return ours


def unmeant(folder: Path) -> list[str]:
    """A line for each difference that is not intended."""
    paths = sorted(folder.glob("*.mlir"))
    ours = compile_all(path.read_text() for path in paths)
    return [
        f"{path.stem}: {kind} {field or '(never ours)'}: tt-mlir has {their}, we have {our}"
        for path in paths
        for kind, field, their, our in differences(decode(path.with_suffix(".ttnn").read_bytes()), ours)
        if not intended(kind, field)
    ]


def table() -> str:
    """The table of intended differences in docs/binary_format.md."""
    rows = [(field, f"differs: {why}") for field, why in INTENDED.items()]
    rows += [(kind, f"not used: {what}") for kind, what in OTHERWISE.items()]
    return "\n".join(["| tt-mlir's | ours |", "|---|---|", *(f"| `{name}` | {text} |" for name, text in rows)])


if __name__ == "__main__":
    lines = unmeant(Path(sys.argv[1]))
    print("\n".join([*lines, f"{len(lines)} unintended differences"]))
    sys.exit(bool(lines))
