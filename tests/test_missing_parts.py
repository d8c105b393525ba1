"""Files that lack a part: each reader says which part is missing and where, or does without it."""

from __future__ import annotations

import json

import pytest
import torch

from tests.fuzz_files import ops, reading
from tests.runtime.programs import chain_of_adds
from tt_torch.codegen.source import to_python
from tt_torch.driver.aot import compile_model
from tt_torch.errors import BinaryFormatError
from tt_torch.explore.graphs import read_graphs
from tt_torch.profiling.cost_model import planned
from tt_torch.tools import inspection
from tt_torch.tools.link import link
from tt_torch.wire.binary import system_desc
from tt_torch.wire.decode import decode
from tt_torch.wire.encode import encode


def paths(part, path, seen):
    """Yields the path of each part of a message that is not in `seen`. A part that all tensors have comes once."""
    for key, value in part.items() if isinstance(part, dict) else enumerate(part):
        here = (*path, key)
        if isinstance(part, dict):
            # The name of the table of an op, two steps above, tells the fields of different ops apart.
            name = here[here.index("desc") :] if "desc" in here else here[-3:]
            if name not in seen:
                seen.add(name)
                yield here
        if isinstance(value, dict | list):
            yield from paths(value, here, seen)


def without(part, path):
    """A copy of a message without the part of a path."""
    key, *rest = path
    copy = part.copy()
    if rest:
        copy[key] = without(part[key], rest)
    else:
        del copy[key]
    return copy


@pytest.mark.slow
def test_each_part_in_turn_is_named_or_not_needed(tmp_path):
    model = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3)).eval()
    compiled = compile_model(model, (torch.ones(1, 2, 5, 5),)).binary
    device, seen, outcomes = reading.device(), set(), []
    for data in (compiled, *(ops.file(json.loads(rows[0])) for rows in ops.rows().values())):
        message = decode(data)
        for path in paths(message, (), seen):
            try:
                lacking = encode(without(message, path))
            except ValueError:  # a struct without a part of it cannot be in a file
                continue
            outcomes.append(reading.try_file(".ttnn", lacking, tmp_path, device))
    assert min(outcomes.count("read"), outcomes.count("refused")) > 100


def _inspect(data, path):
    list(inspection.text("x.ttnn", data))


def _profile(data, path):
    list(planned(decode(data)["programs"][0], "Blackhole"))


def _explore(data, path):
    path.write_bytes(data)
    read_graphs(path)


READERS = {
    "inspect": _inspect,
    "codegen": lambda data, path: to_python(data),
    "profile": _profile,
    "explore": _explore,
    "link": lambda data, path: link(data),
}
DESCRIBED = ("programs", 0, "operations", 0, "type", "EltwiseBinaryOp", "out", "desc")
LACKING = {
    "no programs": (
        ("programs",),
        r"TTNNBinary at byte \d+ has no programs",
        {"codegen", "profile", "explore", "link"},
    ),
    "no system": (("system_desc",), r"TTNNBinary at byte \d+ has no system_desc", {"inspect", "explore"}),
    "no chips": (("system_desc", "chip_descs"), r"SystemDesc at byte \d+ has no chip_descs", {"inspect", "explore"}),
    "no name": (("programs", 0, "name"), r"Program at byte \d+ has no name", {"inspect", "codegen", "explore"}),
    "no shape": ((*DESCRIBED, "shape"), r"TensorDesc at byte \d+ has no shape", set(READERS)),
    "no layout": ((*DESCRIBED, "layout"), r"TensorDesc at byte \d+ has no layout", set(READERS)),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("case", LACKING)
def test_what_is_missing_is_named(case, reader, tmp_path):
    path, words, readers = LACKING[case]
    message = decode(chain_of_adds(1)) | {"system_desc": system_desc("blackhole")}
    data = encode(without(message, path))
    if reader in readers:
        with pytest.raises(BinaryFormatError, match=words):
            READERS[reader](data, tmp_path / "x.ttnn")
    else:
        READERS[reader](data, tmp_path / "x.ttnn")


def _changed(path, value):
    message = decode(chain_of_adds(1)) | {"system_desc": system_desc("blackhole")}

    def change(part, path):
        key, *rest = path
        copy = part.copy()
        copy[key] = change(part[key], rest) if rest else value
        return copy

    return encode(change(message, path))


WRONG = {
    "chips": (
        ("system_desc", "chip_desc_indices"),
        [0, 7],
        "describes 1 chips, and has one of number 7",
        "inspect",
    ),
    "no chips": (("system_desc", "chip_descs"), [], "the system has no description of a chip", "explore"),
    "private": (("programs", 0, "private"), True, "the binary has no public program", "codegen"),
    "output": (("programs", 0, "outputs", 0, "global_id"), 99, "tensor 99, which no input or op gives", "explore"),
    "shape": ((*DESCRIBED, "shape"), [-1, 32], r"has the shape \(-1, 32\), which no tensor has", "inspect"),
    "large": ((*DESCRIBED, "shape"), [1 << 30, 1 << 30], "which no tensor has", "profile"),
}


@pytest.mark.parametrize("case", WRONG)
def test_parts_that_do_not_fit_are_named(case, tmp_path):
    path, value, words, reader = WRONG[case]
    with pytest.raises(BinaryFormatError, match=words):
        READERS[reader](_changed(path, value), tmp_path / "x.ttnn")
