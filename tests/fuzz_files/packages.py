"""Damages packages: any bytes, or a part of the manifest, whose hash is then made right."""

from __future__ import annotations

import copy
import hashlib
import json
import tempfile
from functools import cache
from pathlib import Path

import torch

from tests.fuzz_files import damage
from tt_torch.driver.aot import compile_model
from tt_torch.driver.package.contents import HASH, MANIFEST
from tt_torch.driver.stablehlo import compile_stablehlo

VALUES = (None, True, -1, 0, 1, 2, 7, 10**12, 10**30, 0.5, "", "text", "float32", "cpu", [], [1], [10**12] * 3, {})


FAMILY = (("x", torch.export.Dim("rows", min=2, max=3)), ("index", torch.export.Dim("count", min=4, max=5)))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x, index, *, scale=2.0):
        y = self.linear(x) * scale
        self.count += y[0]
        return {"y": y, "view": y[1:], "x": x[0], "rest": [index * 3, torch.max(y, 0), None, "text"]}


@cache
def package(dynamic_shapes=None):
    """A small sound package. With dynamic shapes, pairs of an input's name and a dimension, it is of a family."""
    given = (torch.ones(2, 3), torch.arange(4))
    shapes = dynamic_shapes and {name: {0: dim} for name, dim in dynamic_shapes}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.ttpkg")
        compile_model(Model().eval(), given, kwargs={"scale": 3.0}, dynamic_shapes=shapes).save(path)
        return packed(*unpacked(path.read_bytes()))


WIDE = """func.func @main(%x: tensor<3xi64>, %n: tensor<i64>) -> (tensor<3xi64>, tensor<f32>) {
  %one = stablehlo.constant dense<1> : tensor<i64>
  %f = stablehlo.convert %n : (tensor<i64>) -> tensor<f32>
  %0:2 = stablehlo.while(%i = %n, %y = %x) : tensor<i64>, tensor<3xi64> cond {
    %1 = stablehlo.compare LT, %i, %one : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %i, %one : tensor<i64>
    %2 = stablehlo.multiply %y, %y : tensor<3xi64>
    stablehlo.return %1, %2 : tensor<i64>, tensor<3xi64>
  }
  return %0#1, %f : tensor<3xi64>, tensor<f32>
}"""


@cache
def wide():
    """A small sound package with a flow, and a second form in which the host computes 64-bit integers."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.ttpkg")
        compile_stablehlo(WIDE).save(path)
        return packed(*unpacked(path.read_bytes()))


def unpacked(data):
    """The header and the tensors of a file of safetensors: https://huggingface.co/docs/safetensors."""
    size = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def packed(header, tensors):
    text = json.dumps(header, sort_keys=True).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + tensors


def damaged(rng, number):
    """A damaged package. One in twenty has no damage."""
    chosen = rng.random()
    sound = package() if chosen < 0.5 else package(FAMILY) if chosen < 0.7 else wide()
    if number % 20 == 0:
        return sound
    if rng.random() < 0.3:
        return damage.anywhere(rng, sound, package())
    header, tensors = unpacked(sound)
    data = json.loads(header["__metadata__"][MANIFEST])
    for _ in range(rng.choice((1, 1, 2))):
        _change(rng, data[rng.choice([part for part in data if part not in ("format", "sha256")])])
    text = json.dumps(data)
    header["__metadata__"] = {MANIFEST: text, HASH: hashlib.sha256(text.encode()).hexdigest()}
    return packed(header, tensors)


def _change(rng, part):
    """Replaces, removes or doubles something below a part of the manifest."""
    while True:
        key = rng.choice(list(part)) if isinstance(part, dict) else rng.randrange(len(part))
        if not isinstance(part[key], (dict, list)) or not part[key] or rng.random() < 0.2:
            break
        part = part[key]
    how = rng.random()
    if how < 0.6:
        part[key] = copy.deepcopy(rng.choice(VALUES))  # a second change may be inside of it
    elif how < 0.8:
        del part[key]
    elif isinstance(part, list):
        part.append(part[key])
    else:
        part["text"] = part[key]
