"""`python -m benchmarks.reference FOLDER` runs binaries of tt-mlir's compiler, and compares them with eager PyTorch.

FOLDER has `ops/NAME.ttnn` with `ops/NAME.safetensors` (inputs in0..., PyTorch's float32 results out0...) and
`models/NAME.ttnn`, which run with seeded random weights. The exit status is 1 if any result departs.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import torch
import typer
from safetensors.torch import load_file

from benchmarks import common
from benchmarks.common import table
from tt_torch.accuracy import calculate_pcc
from tt_torch.errors import TTTorchError
from tt_torch.runtime import Binary, Device, Executable
from tt_torch.tools.link import link
from tt_torch.wire import facts
from tt_torch.wire.decode import decode

# Tolerances, relative to the largest magnitude. tt-mlir converts some float32 ops to bf16 and back; their results are
# only as exact as bf16.
FLOAT32, BFLOAT16 = 2e-6, 2**-8
REQUIRED_PCC = 0.999


def model(name: str) -> tuple[torch.nn.Module, torch.Tensor]:
    """The model that a binary was made of, with seeded random weights, and an input."""
    import transformers

    if name.startswith("bert_base"):
        torch.manual_seed(0)
        config = transformers.BertConfig()
        bert = transformers.BertModel(config, add_pooling_layer=False)
        return bert.eval(), torch.randint(0, config.vocab_size, (1, 128))
    module, (given,) = common.model("resnet50" if name.startswith("resnet50") else "llama", 1)
    return module, given


def load(path: Path) -> tuple[bytes, Executable]:
    binary = link(path.read_bytes())
    return binary, Executable(Binary(binary), device=Device(allow_host_code=True))


def check_op(path: Path) -> tuple[bool, str]:
    tensors = load_file(path.with_suffix(".safetensors"))
    inputs, wanted = (
        [tensors[f"{way}{i}"] for i in range(len(tensors)) if f"{way}{i}" in tensors] for way in ("in", "out")
    )
    binary, executable = load(path)
    results = executable(inputs, output_dtypes=[want.dtype for want in wanted])
    rounded = any(tensor.dtype == "BFloat16" for tensor in facts.tensors(decode(binary)))
    worst = max(error(got, want) for got, want in zip(results, wanted, strict=True))
    return worst <= (BFLOAT16 if rounded else FLOAT32), f"{worst:.1e} of the largest{', bf16' if rounded else ''}"


def error(got: torch.Tensor, want: torch.Tensor) -> float:
    """The largest difference relative to the largest magnitude. For dtypes other than floats, it is 0 or infinity."""
    if got.shape != want.shape:
        return float("inf")
    if not want.is_floating_point():
        return 0.0 if torch.equal(got, want) else float("inf")
    return float((got.double() - want.double()).abs().max() / want.double().abs().max().clamp(min=1.0))


def check_model(path: Path) -> tuple[bool, str]:
    module, given = model(path.stem)
    weights = [tensor.detach() for _, tensor in (*module.named_parameters(), *module.named_buffers())]
    result = load(path)[1]([*weights, given])[0]
    with torch.no_grad():
        pcc = calculate_pcc(result, module(given)[0])
    return pcc >= REQUIRED_PCC, f"PCC {pcc:.7f}"


def main(folder: Annotated[Path, typer.Argument(exists=True, file_okay=False)]) -> None:
    """Runs all binaries of a folder, and prints those that fail and the number of those that pass."""
    rows, passed = [], 0
    for kind, check in (("ops", check_op), ("models", check_model)):
        for path in sorted((folder / kind).glob("*.ttnn")):
            try:
                good, said = check(path)
            except TTTorchError as failure:
                good, said = False, str(failure)
            passed += good
            if not good or kind == "models":
                rows.append((path.name, "ok" if good else "WRONG", said))
    table(f"{passed} binaries of tt-mlir agree with PyTorch", ("binary", "", ""), rows)
    sys.exit(not passed or any(row[1] == "WRONG" for row in rows))


if __name__ == "__main__":
    typer.run(main)
