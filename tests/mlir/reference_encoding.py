"""How tt-mlir's compiler encodes an op and how ours does, field by field: `python reference_encoding.py FOLDER`.

FOLDER has `NAME.mlir` (StableHLO) and `NAME.ttnn` (what tt-mlir made of it). Each op of theirs is held against that of
all our ops which differs least: of the same table and family member, and with tensors of the same shapes and data
types. Where there is none, it is held against all of the same table and member, by which fields are set.
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
from tt_torch.driver.compile import compile_stablehlo
from tt_torch.mlir.context import make_context
from tt_torch.wire import facts
from tt_torch.wire.decode import decode

# Differences that are meant: field -> why. `*` as in file names.
INTENDED = {
    "Conv2dOp.input.desc.*.tile_shape.*": "tiles are what the op before has made; the library takes either",
    "Pool2dOp.*.desc.*.tile_shape.*": "tiles are what the op before has made; the library takes either",
    "ReductionArgMaxOp.in.desc.*.tile_shape.*": "the library takes argmax of tiles over the last dimension",
    "TypecastOp.*.desc.*.tile_shape.*": "follows the op before and after",
    "Pool2dOp.padding": "all four sides, of which theirs is the short form for equal ones",
    "SoftmaxOp.dimension": "counted from the front; -1 is the same dimension",
    "FullOp.fill_value.*": "another number of another formula, such as a scale applied once instead of twice",
    "LoadCachedOp.program_hash": "it hashes the const-eval function's text, and each compiler writes its own",
    "LoadCachedOp.callee_name": "the order of const-eval functions is free",
    "LoadCachedOp.program_idx": "the order of const-eval functions is free",
    "ToLayoutOp.dtype": "only where a type changes, which we leave to TypecastOp",
    "ToLayoutOp.memcfg": "only for results in device memory; theirs is in host memory here",
    "DeallocateOp.in.desc.*": "another intermediate",
    "TypecastOp.memcfg": "only for results in device memory; theirs is in host memory here",
    "ConstantOp.*": "ours is in host memory, and a ToDeviceOp follows it",
    "Conv3dOp.conv3d_config": "blocks of channels belong to weights prepared in blocks; ours are whole",
}
# Ops of theirs that we do not emit for these programs: table and family member -> what we do instead, and why.
OTHERWISE = {
    "Conv1dOp": "a Conv2dOp of height 1: the same kernel, and one op less to support",
    "CpuOp": "constants are computed on the device: our files carry no machine code",
    "EltwiseBinaryCompositeScalarOp.PowScalar": "EltwiseBinaryCompositeOp.Pow with a constant exponent",
    "EltwiseUnaryOp.Relu6": "ClampScalar from 0 to 6, or Relu and Minimum",
    "NamedFullOp.Ones": "FullOp with 1",
    "NamedFullOp.Zeros": "FullOp with 0",
    "PrepareConv3dWeightsOp": "reshapes and permutes in a const-eval function bring weights into the kernel's order",
    "RepeatInterleaveOp": "RepeatOp and a reshape",
    "TransposeOp": "PermuteOp, which does the same",
}
# What torch-mlir's StableHLO of the files has lost, and PyTorch's functions or other StableHLO show of our compiler.
FUNCTIONS: list[tuple[Any, tuple[torch.Tensor, ...]]] = [
    (lambda x: F.avg_pool2d(x, 2), (torch.randn(1, 16, 20, 20, dtype=torch.bfloat16),)),
    (F.embedding, (torch.zeros(2, 9, dtype=torch.int64), torch.randn(100, 32, dtype=torch.bfloat16))),
    (torch.nn.Conv2d(8, 16, 3).eval(), (torch.randn(1, 8, 16, 16),)),
    (lambda x: torch.topk(x, 5).values, (torch.randn(4, 64, dtype=torch.bfloat16),)),
]
CONSTANT = """func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %c = stablehlo.constant dense<[1.5, 2.5, 4.0]> : tensor<3xf32>
  %y = stablehlo.add %x, %c : tensor<3xf32>
  return %y : tensor<3xf32>
}"""

Op = tuple[str, dict]


def differences(theirs: dict, ours: dict[str, list[dict]]) -> Iterator[tuple[str, str, Any, Any]]:
    """(kind of op, field, their value, our value) of each difference; field "" where we have no such op at all."""
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
    """The fields that are set, without their values."""
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
    """(a.b.c, value) of all that is set; tensors by their descriptors, since their numbers are free."""
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
    """All ops, by kind, that our compiler makes of StableHLO programs, and of the functions beside them."""
    made = [tt_torch.compile_model(f, inputs).executor.compiled.binary for f, inputs in FUNCTIONS]
    with make_context():
        made += [compile_stablehlo(ir.Module.parse(text), CompilerConfig()) for text in (*programs, CONSTANT)]
    ours: dict[str, list[dict]] = {}
    for binary in made:
        for kind, op in ops(decode(binary)):
            ours.setdefault(kind, []).append(op)
    return ours


def unmeant(folder: Path) -> list[str]:
    """A line for each difference that is not among those meant."""
    paths = sorted(folder.glob("*.mlir"))
    ours = compile_all(path.read_text() for path in paths)
    return [
        f"{path.stem}: {kind} {field or '(never ours)'}: tt-mlir has {their}, we have {our}"
        for path in paths
        for kind, field, their, our in differences(decode(path.with_suffix(".ttnn").read_bytes()), ours)
        if not intended(kind, field)
    ]


def table() -> str:
    """What is meant, for docs/binary_format.md."""
    rows = [(field, f"differs: {why}") for field, why in INTENDED.items()]
    rows += [(kind, f"not used: {what}") for kind, what in OTHERWISE.items()]
    return "\n".join(["| tt-mlir's | ours |", "|---|---|", *(f"| `{name}` | {text} |" for name, text in rows)])


if __name__ == "__main__":
    lines = unmeant(Path(sys.argv[1]))
    print("\n".join([*lines, f"{len(lines)} differences that are not meant"]))
    sys.exit(bool(lines))
